//! `GET /api/events/stream`: the feed of events as server-sent events (`Last-Event-ID`, `after`, `types`).
//!
//! A follower holds one page of events at most and takes the next one from the store when its client has taken all of it. All
//! followers together read through one connection, so that a thousand of them, woken by one commit, leave the others to the API.

use std::vec;

use actix_web::{HttpRequest, HttpResponse, web};
use sluice_store::events::{self, Event};
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::{
    Page,
    cursor::{Cursor, Query, Types},
};
use crate::{
    application::{
        caller::{Caller, Read},
        context::EventContext,
        error::{ApiError, ErrorBody},
    },
    http::event_stream::{self, Pieces, STILL_HERE, Waited},
};

/// Most events that a follower holds, each of at most 64 KiB.
const EVENTS_HELD: u32 = 8;

/// Follow events
///
/// Server-sent events: `event` is the type, `data` the envelope with the bytes that webhooks get, `id` a cursor. Without
/// `Last-Event-ID` and `after`, what happens from now on; with one of them (the header wins), everything after it first.
/// Comments keep the stream open in between. Ends when the service stops, and when the key is revoked or the session over:
/// connect again with the last `id`, as browsers do.
#[utoipa::path(get, path = "/api/events/stream", tag = "events", params(
    ("after" = Option<String>, Query, description = "An `id` of the stream, or `nextCursor` of `/api/events`"),
    ("Last-Event-ID" = Option<String>, Header, description = "The same; browsers send it when they connect again"),
    ("types" = Option<String>, Query, description = "Only events of these types, separated by commas"),
), responses(
    (status = 200, description = "Events without end", content_type = "text/event-stream", body = String),
    (status = 410, description = "Events after the cursor have expired (`webhooks.keep`); code `cursor_expired`", body = ErrorBody)))]
pub async fn stream(
    request: HttpRequest,
    context: web::Data<EventContext>,
    caller: Caller<Read>,
) -> Result<HttpResponse, ApiError> {
    let Query { after, types, .. } = Query::parse(request.query_string())?;
    let after = last_event_id(&request)?.or(after);
    let permit = context.followers.place()?;
    let committed = context.store.newest_event();
    let mut db = context.store.read().await?;
    let (page, reached) = match after {
        Some(after) => (
            Page::read(&mut db, caller.account_id(), Some(after), EVENTS_HELD)
                .await?
                .events,
            after,
        ),
        None => (
            Vec::new(),
            Cursor(events::newest(&mut db, caller.account_id()).await?),
        ),
    };
    drop(db);
    let following = Following {
        context,
        caller,
        types,
        reached,
        page: page.into_iter(),
        committed,
        is_greeted: false,
        _permit: permit,
    };
    Ok(event_stream::answer(&request, following))
}

fn last_event_id(request: &HttpRequest) -> Result<Option<Cursor>, ApiError> {
    match request.headers().get("last-event-id") {
        None => Ok(None),
        Some(id) if id.is_empty() => Ok(None),
        Some(id) => {
            Cursor::parse("Last-Event-ID", &String::from_utf8_lossy(id.as_bytes())).map(Some)
        }
    }
}

/// A client that follows the feed.
struct Following {
    context: web::Data<EventContext>,
    caller: Caller<Read>,
    types: Types,
    /// Position up to which the client has seen the events or does not want them.
    reached: Cursor,
    page: vec::IntoIter<Event>,
    committed: watch::Receiver<i64>,
    is_greeted: bool,
    _permit: OwnedSemaphorePermit,
}

impl Pieces for Following {
    async fn next(mut self) -> Option<(String, Option<Self>)> {
        if !self.is_greeted {
            self.is_greeted = true;
            return Some((self.here(), Some(self)));
        }
        loop {
            if let Some(text) = self.next_of_page() {
                return Some((text, Some(self)));
            }
            // Marked before reading, so that a commit in between wakes it again.
            self.committed.mark_unchanged();
            // A client that falls behind the kept events, is not admitted any more, or meets a store that closes,
            // connects again and gets the error.
            let page = self.read().await.ok()?;
            if !page.events.is_empty() {
                self.page = page.events.into_iter();
                continue;
            }
            self.reached = page.end;
            match event_stream::wait(&self.context, self.committed.changed()).await {
                Waited::Happened(Ok(())) => {}
                Waited::Happened(Err(_)) | Waited::Closing => return None,
                Waited::Silent => return Some((self.here(), Some(self))),
            }
        }
    }
}

impl Following {
    fn next_of_page(&mut self) -> Option<String> {
        loop {
            let event = self.page.next()?;
            self.reached = Cursor(event.seq);
            if self.types.want(&event) {
                let id = event_stream::id(self.reached);
                return Some(id + &event_stream::event(&event.event_type, &event.body));
            }
        }
    }

    async fn read(&self) -> Result<Page, ApiError> {
        let _turn = self.context.followers.reading.lock().await;
        let mut db = self.context.store.read().await?;
        if !self.caller.is_still_admitted(&mut db).await? {
            return Err(ApiError::Unauthenticated(
                "the API key or session has ended",
            ));
        }
        let account_id = self.caller.account_id();
        Page::read(&mut db, account_id, Some(self.reached), EVENTS_HELD).await
    }

    /// Makes a comment with the client's position: events that it does not want count too.
    fn here(&self) -> String {
        event_stream::id(self.reached) + STILL_HERE
    }
}

//! `GET /api/events` and `GET /api/events/{id}`: the feed of events in the order of commits; default `limit`, 410 `cursor_expired`.
//!
//! A cursor is a position in that order. There is one writer, so that nothing is ever committed before a position that a client
//! has passed.

mod cursor;
mod stream;

use actix_web::{HttpRequest, HttpResponse, http::header, web};
use serde_json::json;
use sluice_store::{
    Connection,
    events::{self, Event},
};
use url::form_urlencoded;
use utoipa::ToSchema;
use uuid::Uuid;

use cursor::Cursor;
pub(super) use cursor::Query;
pub use stream::{__path_stream, stream};

use crate::application::{
    caller::{Caller, Read},
    context::EventContext,
    error::{ApiError, ErrorBody},
    field::wrong,
    page::row_count,
};

/// Events of one page when the client names no limit.
const DEFAULT_LIMIT: u32 = 50;

/// An event.
#[derive(ToSchema)]
#[schema(as = Event)]
#[allow(
    dead_code,
    reason = "describes the envelopes, which are stored as they are sent"
)]
pub struct EventEnvelope {
    /// `evt_…`
    id: String,
    /// Name of the type, such as `file.uploaded`.
    r#type: String,
    /// Unix seconds.
    created: i64,
    /// By type; `sequence` grows by resource from 1.
    #[schema(value_type = Object)]
    data: serde_json::Value,
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[allow(
    dead_code,
    reason = "describes the answer, which is made of stored envelopes"
)]
pub struct EventList {
    events: Vec<EventEnvelope>,
    /// To ask with as `after` the next time, also when nothing is new; with `order=desc` as `before`, null at the oldest event.
    next_cursor: Option<String>,
}

/// List events
///
/// Oldest first, in the order in which they happened, `webhook.test` left out. Ask on with `after` = `nextCursor`, at once while
/// it changes and from time to time once it does not; no event is skipped. With `types` a page may be shorter than `limit`,
/// even empty, although more follow. `order=desc` shows the newest first, for people: ask on with `before` = `nextCursor` until
/// that is null.
#[utoipa::path(get, path = "/api/events", tag = "events", params(
    ("after" = Option<String>, Query, description = "`nextCursor` of the answer before, or the `id` of an event of the stream; without one from the oldest event kept"),
    ("limit" = Option<u32>, Query, description = "1 to 100, 50 without one"),
    ("types" = Option<String>, Query, description = "Only events of these types, separated by commas"),
    ("order" = Option<String>, Query, description = "`asc` (default) or `desc`"),
    ("before" = Option<String>, Query, description = "With `order=desc`: `nextCursor` of the answer before; without one from the newest event"),
), responses(
    (status = 200, description = "Oldest first, or newest first with `order=desc`", body = EventList),
    (status = 410, description = "Events after the cursor have expired (`webhooks.keep`); code `cursor_expired`", body = ErrorBody)))]
pub async fn list(
    request: HttpRequest,
    context: web::Data<EventContext>,
    caller: Caller<Read>,
) -> Result<HttpResponse, ApiError> {
    let query = Query::parse(request.query_string())?;
    let limit = limit(request.query_string())?;
    let mut db = context.store.read().await?;
    let account_id = caller.account_id();
    let (events, next_cursor) = if query.is_newest_first {
        let before = query.before.map(|cursor| cursor.0);
        let events = events::before(&mut db, account_id, before, limit).await?;
        let is_full = events.len() == limit as usize;
        let oldest = events
            .last()
            .filter(|_| is_full)
            .map(|event| Cursor(event.seq));
        (events, oldest)
    } else {
        let page = Page::read(&mut db, account_id, query.after, limit).await?;
        (page.events, Some(page.end))
    };
    drop(db);
    let wanted: Vec<&str> = events
        .iter()
        .filter(|event| query.types.want(event))
        .map(|event| event.body.as_str())
        .collect();
    // The envelopes are JSON already, and stay as they were sent.
    let body = format!(
        r#"{{"events":[{}],"nextCursor":{}}}"#,
        wanted.join(","),
        json!(next_cursor.map(|cursor| cursor.to_string()))
    );
    Ok(HttpResponse::Ok()
        .insert_header((header::CONTENT_TYPE, "application/json"))
        .body(body))
}

#[derive(ToSchema)]
#[allow(
    dead_code,
    reason = "describes the answer, which is made of a stored envelope"
)]
pub struct EventAnswer {
    event: EventEnvelope,
}

/// Show an event
///
/// The envelope that webhooks get; a `webhook.test` too, which is not in the list. Its deliveries: `/api/webhooks/deliveries?eventId=`.
#[utoipa::path(get, path = "/api/events/{id}", tag = "events",
    params(("id" = String, Path, description = "The event's id, `evt_…`")),
    responses((status = 200, description = "The event", body = EventAnswer)))]
pub async fn show(
    context: web::Data<EventContext>,
    caller: Caller<Read>,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let id = event_id("id", &id)?;
    let mut db = context.store.read().await?;
    let event = events::get(&mut db, caller.account_id(), id).await?;
    drop(db);
    Ok(HttpResponse::Ok()
        .insert_header((header::CONTENT_TYPE, "application/json"))
        .body(format!(r#"{{"event":{}}}"#, event.body)))
}

/// Reads the id of an event, with `evt_` or without it.
pub(super) fn event_id(field: &str, text: &str) -> Result<Uuid, ApiError> {
    Uuid::try_parse(text.strip_prefix("evt_").unwrap_or(text))
        .map_err(|_| wrong(field, "the id of an event, evt_…", text))
}

fn limit(query: &str) -> Result<u32, ApiError> {
    form_urlencoded::parse(query.as_bytes())
        .find(|(name, _)| name == "limit")
        .map_or(Ok(DEFAULT_LIMIT), |(_, limit)| row_count(&limit))
}

/// Events of an account, and the cursor after them.
struct Page {
    events: Vec<Event>,
    end: Cursor,
}

impl Page {
    /// The events after a cursor, or the oldest ones. [`ApiError::CursorExpired`] when what followed the cursor has been
    /// dropped, or when no event has had it yet, as after a backup was put back.
    async fn read(
        db: &mut impl Connection,
        account_id: Uuid,
        after: Option<Cursor>,
        limit: u32,
    ) -> Result<Self, ApiError> {
        let begin = match after {
            Some(Cursor(after)) => after,
            None => events::dropped_up_to(db, account_id).await?,
        };
        let page = events::after(db, account_id, begin, limit).await?;
        // Read after the page: events dropped before that are missing in it.
        if after.is_some() && begin < events::dropped_up_to(db, account_id).await? {
            return Err(ApiError::CursorExpired);
        }
        if page.is_empty() && begin > events::newest(db, account_id).await? {
            return Err(ApiError::CursorExpired);
        }
        let end = Cursor(page.last().map_or(begin, |event| event.seq));
        Ok(Self { events: page, end })
    }
}

//! Server-sent events: heartbeat, end at shutdown and with the credential, `GET …/events` of jobs, runs and streams. (WHATWG HTML,
//! "Server-sent events".)
//!
//! The next piece of a stream is made when the client has taken the one before, so that a slow client delays no other
//! and no queue grows for it.

use std::{convert::Infallible, fmt::Display, ops::Deref, time::Duration};

use actix_http::h1::EndOnHalfClose;
use actix_web::{
    FromRequest, HttpRequest, HttpResponse,
    dev::Payload,
    http::{
        Method,
        header::{self, HeaderValue},
    },
    web::{Bytes, Data, Path},
};
use futures_util::{
    future::{FutureExt as _, LocalBoxFuture},
    stream,
};
use serde_json::Value;
use uuid::Uuid;

use super::context;
use crate::application::{
    caller::{Caller, Read},
    context::Platform,
    error::ApiError,
    reached::Reached,
};

/// Pause between two comments; proxies close what is silent for a minute.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// A comment, which keeps the connection open and has no meaning for the client.
pub(super) const STILL_HERE: &str = ": still here\n\n";

/// Source of pieces, each one or several whole events.
pub(super) trait Pieces: Sized {
    /// The next piece and the source of those after it; without that it was the last one.
    async fn next(self) -> Option<(String, Option<Self>)>;
}

/// Next action of a stream that waited.
pub(super) enum Waited<T> {
    Happened(T),
    /// No piece for long: send a keep-alive.
    Silent,
    /// The service stops: end.
    Closing,
}

/// Waits until something has happened, or the stream has to be kept open or ended.
pub(super) async fn wait<T>(platform: &Platform, happening: impl Future<Output = T>) -> Waited<T> {
    tokio::select! {
        outcome = happening => Waited::Happened(outcome),
        () = tokio::time::sleep(HEARTBEAT) => Waited::Silent,
        () = platform.closing.cancelled() => Waited::Closing,
    }
}

/// Work that continues without its request, such as a job or a run.
pub(super) trait Work: Sized {
    /// The context of the resource.
    type Context: Deref<Target = Platform> + 'static;

    /// The work with this id, followed from now on; 404 when it is none of the account's.
    async fn follow(context: &Self::Context, account_id: Uuid, id: Uuid) -> Result<Self, ApiError>;

    /// Returns the state at first, then at every change; dropping the future and calling again is fine.
    async fn next(&mut self) -> Result<StreamedState, ApiError>;

    /// Returns the final record.
    async fn end(&self, context: &Self::Context, reached: &Reached) -> Result<Value, ApiError>;
}

/// State of a piece of [`Work`].
pub(super) struct StreamedState {
    pub progress: Value,
    pub has_ended: bool,
}

/// A request to follow the work that its path names by an id, from a caller who may read.
pub struct FollowRequest {
    request: HttpRequest,
    caller: Caller<Read>,
    reached: Reached,
    id: Uuid,
}

impl FromRequest for FollowRequest {
    type Error = actix_web::Error;
    type Future = LocalBoxFuture<'static, Result<Self, Self::Error>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        type Parts = (Caller<Read>, Reached, Path<Uuid>);
        let (request, parts) = (request.clone(), Parts::from_request(request, payload));
        async move {
            let (caller, reached, id) = parts.await?;
            Ok(Self {
                request,
                caller,
                reached,
                id: *id,
            })
        }
        .boxed_local()
    }
}

impl FollowRequest {
    /// Answers with `progress` at once and at every change, then `end`, and the stream closes.
    pub(super) async fn answer<W: Work + 'static>(self) -> Result<HttpResponse, ApiError> {
        let context = context::of::<W::Context>(&self.request).clone();
        let work = W::follow(&context, self.caller.account_id(), self.id).await?;
        let followed = Followed {
            work,
            context,
            caller: self.caller,
            reached: self.reached,
        };
        Ok(answer(&self.request, followed))
    }
}

/// A client that follows a piece of work.
struct Followed<W: Work> {
    work: W,
    context: Data<W::Context>,
    caller: Caller<Read>,
    reached: Reached,
}

impl<W: Work> Pieces for Followed<W> {
    async fn next(mut self) -> Option<(String, Option<Self>)> {
        let waited = wait(&self.context, self.work.next()).await;
        if !is_still_admitted(&self.context, &self.caller).await {
            return None;
        }
        let report = match waited {
            Waited::Happened(report) => report.ok()?,
            Waited::Silent => return Some((STILL_HERE.to_owned(), Some(self))),
            Waited::Closing => return None,
        };
        let text = event("progress", report.progress);
        if !report.has_ended {
            return Some((text, Some(self)));
        }
        let end = self.work.end(&self.context, &self.reached).await.ok()?;
        Some((text + &event("end", end), None))
    }
}

/// Returns whether the credential that opened a stream is still valid; false when that cannot be determined.
pub(super) async fn is_still_admitted<S>(platform: &Platform, caller: &Caller<S>) -> bool {
    let Ok(mut db) = platform.store.read().await else {
        return false;
    };
    matches!(caller.is_still_admitted(&mut db).await, Ok(true))
}

/// The answer that sends the pieces until there are no more; to HEAD it has no body.
pub(super) fn answer(request: &HttpRequest, pieces: impl Pieces + 'static) -> HttpResponse {
    let mut response = HttpResponse::Ok();
    response
        .insert_header((header::CONTENT_TYPE, "text/event-stream"))
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .insert_header(("x-accel-buffering", HeaderValue::from_static("no")));
    if request.method() == Method::HEAD {
        return response.finish();
    }
    let mut response = response.streaming(stream::unfold(Some(pieces), async |pieces| {
        let (text, rest) = pieces?.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(text)), rest))
    }));
    // Else a client that has left would keep its permit until a keep-alive cannot be written.
    response.extensions_mut().insert(EndOnHalfClose);
    response
}

/// An event whose data has no line ends, as JSON has none.
pub(super) fn event(name: &str, data: impl Display) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

/// Makes the client ask for the events after `id` when it connects again (`Last-Event-ID`). Before an event it is the
/// event's id, alone it moves the client's position.
pub(super) fn id(id: impl Display) -> String {
    format!("id: {id}\n")
}

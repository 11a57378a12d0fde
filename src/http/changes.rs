//! `GET /api/changes`: changes of the caller's account as server-sent events (`change`, `progress`, `resync`, `health`); `retry` of
//! clients.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use serde_json::{Value, json};
use sluice_store::{
    changes::{Batch, Change, Kind, Progress},
    events,
};
use url::form_urlencoded;
use utoipa::ToSchema;
use uuid::Uuid;

use super::event_stream::{self, Pieces, STILL_HERE, Waited, event};
use crate::application::{
    caller::{Caller, Read},
    changes::{Following, News},
    context::ChangeContext,
    error::{ApiError, ErrorBody},
    field,
};

/// Time in milliseconds after which a client connects again.
const RETRY: &str = "retry: 1000\n";

/// A nudge: look at the resource again.
#[derive(Serialize, ToSchema)]
#[schema(as = Change)]
pub struct ChangeRecord {
    /// `account`, `user`, `session`, `api_key`, `audit`, `file`, `folder`, `share` (by its folder), `upload`, `live_input`, `output`,
    /// `recording`, `stream`, `job`, `run`, `workflow`, `webhook` (an endpoint), `delivery`, `event`, `delivery_key`,
    /// `playback_key`, `preset`, `usage`, `service` (`/readyz` says something else) or `system` (`/api/system` does).
    kind: &'static str,
    /// Id in the form of the resource's own routes; null: something of this kind.
    id: Option<String>,
    /// `created`, `changed` or `deleted`: what happened since this client's last nudge about the resource. `created` includes
    /// later changes.
    action: &'static str,
}

impl From<Change> for ChangeRecord {
    fn from(change: Change) -> Self {
        Self {
            kind: change.kind.as_str(),
            id: change.id.map(|id| match change.kind {
                Kind::Event => events::name(id),
                _ => id.to_string(),
            }),
            action: change.action.as_str(),
        }
    }
}

/// Progress of a job, a run or a stream.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ProgressOfWork)]
pub struct ProgressRecord {
    /// `job`, `run` or `stream`.
    kind: &'static str,
    id: Uuid,
    /// 0 to 100.
    percent: u8,
    /// The place in the queue of the workers; 1 is next.
    queue_place: Option<u32>,
}

impl From<Progress> for ProgressRecord {
    fn from(progress: Progress) -> Self {
        Self {
            kind: progress.kind.as_str(),
            id: progress.id,
            percent: progress.percent,
            queue_place: progress.queue_place,
        }
    }
}

/// Follow changes
///
/// Server-sent events about everything of the account, as nudges: on `change` with `{kind, id, action}` read the resource, or
/// the list that shows it, again. `progress` with `{kind, id, percent, queuePlace}` comes for jobs, runs and streams, at most
/// four times a second each. `resync` with `{reason, kinds}` is the first event, and comes again when not every change could
/// be kept for this client: read everything of these kinds again (`null`: of all). With `health`, `health` with `{id,
/// health}` comes each second, as `GET /api/live/inputs/{id}/health` answers. Equal nudges are merged, and nothing is
/// replayed after a reconnect. Comments keep the stream open. Ends when the service stops, when the key is revoked or the
/// session over, and when the input of `health` is deleted.
#[utoipa::path(get, path = "/api/changes", tag = "events", params(
    ("health" = Option<Uuid>, Query, description = "A live input, whose health is sent too"),
), responses(
    (status = 200, description = "Events without end; the schema is that of a `change`", content_type = "text/event-stream", body = ChangeRecord),
    (status = 429, description = "As many streams as one account, session or key may have (`changes.max_followers_per_…`)", body = ErrorBody),
    (status = 503, description = "As many streams as the service may have (`changes.max_followers`)", body = ErrorBody)))]
pub async fn follow(
    request: HttpRequest,
    context: web::Data<ChangeContext>,
    caller: Caller<Read>,
) -> Result<HttpResponse, ApiError> {
    let health = health_asked(request.query_string())?;
    let following = Following::begin(&context, caller, health).await?;
    let stream = Stream {
        context,
        following,
        has_begun: false,
    };
    Ok(event_stream::answer(&request, stream))
}

fn health_asked(query: &str) -> Result<Option<Uuid>, ApiError> {
    let asked = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "health");
    asked
        .filter(|(_, id)| !id.is_empty())
        .map(|(_, id)| field::id("health", "the id of a live input", &id))
        .transpose()
}

/// A client's stream.
struct Stream {
    context: web::Data<ChangeContext>,
    following: Following,
    has_begun: bool,
}

impl Pieces for Stream {
    async fn next(mut self) -> Option<(String, Option<Self>)> {
        if !self.has_begun {
            self.has_begun = true;
            return Some((RETRY.to_owned() + &resync("begin", None), Some(self)));
        }
        let next = self.following.next(&self.context);
        let text = match event_stream::wait(&self.context, next).await {
            Waited::Happened(news) => text_of(news?),
            Waited::Silent => {
                if !self.following.is_admitted(&self.context).await {
                    return None;
                }
                STILL_HERE.to_owned()
            }
            Waited::Closing => return None,
        };
        Some((text, Some(self)))
    }
}

fn text_of(news: News) -> String {
    match news {
        News::Changes(batch) => text_of_batch(batch),
        News::Health { input_id, health } => {
            event("health", json!({"id": input_id, "health": health}))
        }
    }
}

fn text_of_batch(batch: Batch) -> String {
    let mut text = String::new();
    if !batch.lost.is_empty() {
        let is_all = batch.lost.len() == Kind::ALL.len();
        let kinds = (!is_all).then_some(batch.lost);
        text += &resync("lagged", kinds);
    }
    for change in batch.changes {
        text += &event("change", record(ChangeRecord::from(change)));
    }
    for progress in batch.progress {
        text += &event("progress", record(ProgressRecord::from(progress)));
    }
    text
}

/// Makes the event after which the client reads all resources of these kinds again; `None`: of all kinds.
fn resync(reason: &str, kinds: Option<Vec<Kind>>) -> String {
    let kinds: Option<Vec<&str>> = kinds.map(|kinds| kinds.into_iter().map(Kind::as_str).collect());
    event("resync", json!({"reason": reason, "kinds": kinds}))
}

fn record(record: impl Serialize) -> Value {
    serde_json::to_value(record).expect("records are plain values")
}

#[cfg(test)]
mod tests {
    use sluice_store::changes::Action;

    use super::*;

    #[test]
    fn a_batch_is_events_in_words_of_the_api() {
        let id = Uuid::from_u128(7);
        let batch = Batch {
            lost: vec![Kind::Delivery],
            changes: vec![
                Change {
                    kind: Kind::Event,
                    id: Some(id),
                    action: Action::Created,
                },
                Change {
                    kind: Kind::Usage,
                    id: None,
                    action: Action::Changed,
                },
            ],
            progress: vec![Progress {
                kind: Kind::Job,
                id,
                percent: 5,
                queue_place: Some(2),
            }],
        };
        let expected = [
            ("resync", json!({"reason": "lagged", "kinds": ["delivery"]})),
            (
                "change",
                json!({"kind": "event", "id": format!("evt_{id}"), "action": "created"}),
            ),
            (
                "change",
                json!({"kind": "usage", "id": null, "action": "changed"}),
            ),
            (
                "progress",
                json!({"kind": "job", "id": id, "percent": 5, "queuePlace": 2}),
            ),
        ];
        let expected: String = expected
            .into_iter()
            .map(|(name, data)| event(name, data))
            .collect();
        assert_eq!(text_of_batch(batch), expected);
        let everything = Batch {
            lost: Kind::ALL.to_vec(),
            ..Batch::default()
        };
        let expected = event("resync", json!({"reason": "lagged", "kinds": null}));
        assert_eq!(text_of_batch(everything), expected);
    }

    #[test]
    fn health_is_asked_of_an_input_by_its_id() {
        let id = Uuid::from_u128(9);
        let asked = |query: &str| health_asked(query).map_err(|error| error.to_string());
        assert_eq!(asked(&format!("x=1&health={id}")), Ok(Some(id)));
        assert_eq!(asked("health="), Ok(None));
        let rejection = asked("health=main").unwrap_err();
        assert!(rejection.ends_with("got `main`"), "{rejection}");
    }
}

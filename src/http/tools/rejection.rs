//! `media.tool.failed` of requests for a tool that are rejected before a job is made. A follower of the events of a tool thereby
//! sees every failure.

use actix_web::{ResponseError as _, http::StatusCode};
use sluice_actors::events::{self, Event, Failures, MediaToolFailed, Results, error_text};
use sluice_store::{now_ms, write_tx};
use tracing::warn;
use uuid::Uuid;

use crate::application::{context::JobContext, error::ApiError};

/// Facts of a request when it is rejected.
#[derive(Default)]
pub(super) struct RejectedCall {
    pub tool: Option<&'static str>,
    /// Name of its first file.
    pub filename: Option<String>,
}

/// Emits the event of a rejection, and returns the result.
pub(super) async fn reported<T>(
    context: &JobContext,
    account_id: Uuid,
    asked: RejectedCall,
    outcome: Result<T, ApiError>,
) -> Result<T, ApiError> {
    if let Err(rejection) = &outcome {
        emit(context, account_id, asked, rejection).await;
    }
    outcome
}

/// Emits the event, unless the same request may succeed a moment later or names what is not there. The client's answer is the
/// rejection, whatever becomes of this.
async fn emit(context: &JobContext, account_id: Uuid, asked: RejectedCall, rejection: &ApiError) {
    if !is_reported(rejection.status_code()) {
        return;
    }
    let event = Event::MediaToolFailed(MediaToolFailed {
        tool: asked.tool.map(str::to_owned),
        job_id: None,
        filename: asked.filename,
        error: error_text(&rejection.to_string()),
        code: rejection.code().map(str::to_owned),
        results: Results::default(),
        failures: Failures::default(),
    });
    let written = write_tx!(context.store, account_id, |tx| {
        events::emit(tx, account_id, &event, now_ms()).await
    });
    if let Err(error) = written {
        warn!(%error, "the event of a rejected media tool request was not written");
    }
}

fn is_reported(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::BAD_REQUEST
            | StatusCode::PAYMENT_REQUIRED
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::UNSUPPORTED_MEDIA_TYPE
            | StatusCode::UNPROCESSABLE_ENTITY
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_succeed_later_or_is_not_there_is_not_reported() {
        for (status, expected) in [
            (400, true),
            (402, true),
            (413, true),
            (415, true),
            (422, true),
            (401, false),
            (403, false),
            (404, false),
            (408, false),
            (429, false),
            (500, false),
            (503, false),
            (507, false),
        ] {
            assert_eq!(
                is_reported(StatusCode::from_u16(status).unwrap()),
                expected,
                "{status}"
            );
        }
    }
}

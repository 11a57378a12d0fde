//! Who may watch a stream: whoever knows its playback id, or has a token where it is signed; from its pages only, where its
//! owner says which.

use std::sync::Arc;

use actix_web::{HttpRequest, HttpResponse};
use sluice_actors::video::Playback;
use sluice_store::{credentials::is_playback_id, now_ms, video::Access};

use crate::http::{
    context::AppState,
    error::ApiError,
    playback_token::{PlaybackGrant, Refusal, TokenKey, looks_like_token},
    site::{self, Cors},
};

/// A viewer that was admitted to a stream.
pub(super) struct Viewer {
    pub playback: Arc<Playback>,
    /// Seconds that are left of the token; `None` without one.
    left_s: Option<i64>,
}

/// How long an answer is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keeping {
    /// Its bytes never change.
    Forever,
    Hour,
    Minute,
    /// It grows.
    Moment,
}

impl Viewer {
    /// The `Cache-Control`. What needs a token is kept by the viewer's own browser alone, and no longer than the token holds.
    pub(super) fn cache_control(&self, keeping: Keeping) -> String {
        let (kept_s, more) = match keeping {
            Keeping::Forever => (31_536_000, ", immutable"),
            Keeping::Hour => (3_600, ""),
            Keeping::Minute => (60, ""),
            Keeping::Moment => (1, ""),
        };
        match self.left_s {
            None => format!("public, max-age={kept_s}{more}"),
            Some(left_s) => format!("private, max-age={}{more}", kept_s.min(left_s)),
        }
    }
}

/// Admits whoever asks for something of a stream, and says what a browser may read of the answer, whichever it is. The one
/// place where that is decided, for every address of a stream.
///
/// 404 for an id that is unknown, 403 for a token that does not hold, for none where one is needed, and for a page that is
/// not allowed.
pub(super) async fn admit(request: &HttpRequest, leave: &str) -> (Cors, Result<Viewer, ApiError>) {
    let state = AppState::of(request);
    let found = async {
        let grant = grant(state, leave).await?;
        let playback_id = grant.as_ref().map_or(leave, |grant| &grant.sub);
        let playback = state.streams.playback(playback_id).await?;
        Ok::<_, ApiError>((playback, grant))
    };
    let (playback, grant) = match found.await {
        Ok(found) => found,
        Err(refusal) => return (Cors::Everyone, Err(refusal)),
    };
    let (cors, allowed) = check_site(request, &playback, grant.as_ref());
    let admitted = allowed.and_then(|()| {
        if playback.stream.access == Access::Signed && grant.is_none() {
            return Err(ApiError::NoPlayback {
                code: "playback_token_required",
                message: "this stream needs a playback token in place of the playback id: ask its owner for one",
            });
        }
        let left_s = grant.map(|grant| (grant.exp - now_s()).max(0));
        Ok(Viewer { playback, left_s })
    });
    (cors, admitted)
}

/// What the token permits; `None` for a playback id.
async fn grant(state: &AppState, leave: &str) -> Result<Option<PlaybackGrant>, ApiError> {
    if is_playback_id(leave) {
        return Ok(None);
    }
    if !looks_like_token(leave) {
        return Err(ApiError::NotFound("playback"));
    }
    let read = TokenKey::of(state).await?.read(leave, now_s());
    read.map(Some).map_err(|refusal| match refusal {
        Refusal::Wrong => ApiError::NoPlayback {
            code: "playback_token_invalid",
            message: "this is no playback token of this service: ask the stream's owner for one",
        },
        Refusal::Expired => ApiError::NoPlayback {
            code: "playback_token_expired",
            message: "the playback token has expired: ask for a new one",
        },
    })
}

/// The sites of the stream, and of the token where it names some.
fn check_site(
    request: &HttpRequest,
    playback: &Playback,
    grant: Option<&PlaybackGrant>,
) -> (Cors, Result<(), ApiError>) {
    let (cors, allowed) = site::check(request, &playback.stream.allowed_domains);
    let narrower = grant.map_or(&[][..], |grant| &grant.dom);
    if narrower.is_empty() || allowed.is_err() {
        return (cors, allowed);
    }
    site::check(request, narrower)
}

fn now_s() -> i64 {
    now_ms() / 1_000
}

/// A preflight: it names the origins that the answer itself would name.
pub(super) async fn preflight(request: HttpRequest) -> HttpResponse {
    let leave = request.match_info().get("playback_id").unwrap_or_default();
    let (cors, _) = admit(&request, leave).await;
    site::preflight(&cors)
}

//! Who may watch a live input.

use std::sync::Arc;

use actix_web::{HttpRequest, HttpResponse, web};
use sluice_actors::live::{Playback, Policy};
use tokio::sync::SemaphorePermit;

use crate::http::{
    context::AppState,
    error::ApiError,
    site::{self, Cors},
};

/// A viewer that may watch this playback.
pub(super) struct Access {
    pub playback: Arc<Playback>,
    state: web::Data<AppState>,
}

impl Access {
    pub fn new(playback: Arc<Playback>, request: &HttpRequest) -> Self {
        Self {
            playback,
            state: AppState::of(request).clone(),
        }
    }

    /// Leave to wait; `None` when `live.max_waiting_viewers` do.
    pub fn permit(&self) -> Option<SemaphorePermit<'_>> {
        self.state.waiting_viewers.try_acquire().ok()
    }

    /// Resolves when the service closes: nobody waits any longer.
    pub async fn closing(&self) {
        self.state.closing.cancelled().await;
    }
}

/// Whether the viewer's site may show this playback, and what its browser may read of the answer.
pub(super) fn check(request: &HttpRequest, policy: &Policy) -> (Cors, Result<(), ApiError>) {
    site::check(request, &policy.allowed_domains)
}

/// A preflight. It names the origins that the answer itself would name.
pub(super) async fn preflight(request: HttpRequest) -> HttpResponse {
    let playback_id = request.match_info().get("playback_id").unwrap_or_default();
    let playback = AppState::of(&request).live.playback(playback_id);
    let cors = playback.map_or(Cors::Everyone, |playback| {
        check(&request, &playback.policy()).0
    });
    site::preflight(&cors)
}

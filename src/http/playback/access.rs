//! Access of one viewer to a live input, `Cache-Control`, permits to wait (`live.max_waiting_viewers`).

use std::sync::Arc;

use actix_web::{HttpRequest, web};
use sluice_actors::live::Playback;
use tokio::sync::SemaphorePermit;

use crate::{
    application::context::LiveContext,
    http::{
        context,
        playback_access::{CacheLifetime, LiveStream, Viewer},
    },
};

/// Viewer that may watch this playback.
pub(super) struct Access {
    viewer: Viewer<LiveStream>,
    context: web::Data<LiveContext>,
}

impl Access {
    pub fn new(viewer: Viewer<LiveStream>, request: &HttpRequest) -> Self {
        Self {
            viewer,
            context: context::of::<LiveContext>(request).clone(),
        }
    }

    pub fn playback(&self) -> &Arc<Playback> {
        &self.viewer.watched.playback
    }

    pub fn cache_control(&self, keeping: CacheLifetime) -> String {
        self.viewer.cache_control(keeping)
    }

    /// Returns a permit to wait; `None` when `live.max_waiting_viewers` wait already.
    pub fn permit(&self) -> Option<SemaphorePermit<'_>> {
        self.context.waiting_viewers.try_acquire().ok()
    }

    /// Resolves when the service closes: no one waits any longer.
    pub async fn closing(&self) {
        self.context.closing.cancelled().await;
    }
}

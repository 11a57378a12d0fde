//! What the façade asks of live inputs: a port, so that the façade's tests need no actor tree.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _};
use sluice_actors::{
    Error,
    live::{Health, InputStatus, Live, Playback, Times},
};
use sluice_store::{live_inputs::LiveInput, now_ms};
use uuid::Uuid;

use crate::metrics::OnAir;

/// The façade's view of [`Live`]. Reads are published state and cost no message.
pub trait LivePort: Send + Sync {
    fn status(&self, input_id: Uuid) -> InputStatus;
    /// Newer than the row's.
    fn times(&self, input_id: Uuid) -> Times;
    fn health(&self, input_id: Uuid) -> Option<Arc<Health>>;
    /// Who watches now.
    fn viewers(&self, input_id: Uuid) -> u64;
    fn playback(&self, playback_id: &str) -> Option<Arc<Playback>>;
    /// By the input's own id.
    fn playback_of(&self, input_id: Uuid) -> Option<Arc<Playback>>;
    fn on_air(&self) -> OnAir;
    /// The row was committed like this.
    fn changed(&self, input: LiveInput) -> BoxFuture<'static, Result<(), Error>>;
    /// The row is gone.
    fn deleted(&self, input_id: Uuid) -> BoxFuture<'static, Result<(), Error>>;
}

impl LivePort for Live {
    fn status(&self, input_id: Uuid) -> InputStatus {
        Live::status(self, input_id)
    }

    fn times(&self, input_id: Uuid) -> Times {
        Live::times(self, input_id)
    }

    fn health(&self, input_id: Uuid) -> Option<Arc<Health>> {
        Live::health(self, input_id)
    }

    fn playback(&self, playback_id: &str) -> Option<Arc<Playback>> {
        Live::playback(self, playback_id)
    }

    fn viewers(&self, input_id: Uuid) -> u64 {
        Live::viewers(self, input_id)
    }

    fn playback_of(&self, input_id: Uuid) -> Option<Arc<Playback>> {
        Live::playback_of(self, input_id)
    }

    fn on_air(&self) -> OnAir {
        let now_ms = now_ms();
        let mut on_air = OnAir::default();
        for playback in self.playbacks() {
            let health = playback.health();
            match playback.status() {
                InputStatus::Idle => on_air.idle += 1,
                InputStatus::Live => {
                    on_air.live += 1;
                    let protocol = health.as_ref().and_then(|health| health.protocol);
                    on_air.count_publisher(protocol);
                }
                InputStatus::Reconnecting => on_air.reconnecting += 1,
            }
            on_air.viewers += playback.viewers(now_ms);
            if let Some(health) = health {
                let measured = &health.measured;
                on_air.bitrate_bps += measured.video_bitrate_bps.unwrap_or(0)
                    + measured.audio_bitrate_bps.unwrap_or(0);
            }
        }
        on_air
    }

    fn changed(&self, input: LiveInput) -> BoxFuture<'static, Result<(), Error>> {
        let live = self.clone();
        async move { Live::changed(&live, input).await }.boxed()
    }

    fn deleted(&self, input_id: Uuid) -> BoxFuture<'static, Result<(), Error>> {
        let live = self.clone();
        async move { Live::deleted(&live, input_id).await }.boxed()
    }
}

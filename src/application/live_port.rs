//! Interface of live inputs for the use cases (`LivePort`), so that tests need no actor tree.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _};
use sluice_actors::{
    Error,
    live::{Health, InputStatus, Live, Playback, Times},
    subsystem::Subsystem,
};
use sluice_store::live_inputs::LiveInput;
use uuid::Uuid;

/// The façade's view of [`Live`]. Reads are published state and cost no message.
pub trait LivePort: Subsystem {
    fn status(&self, input_id: Uuid) -> InputStatus;
    /// Returns the times of the broadcast, which are newer than the row's.
    fn times(&self, input_id: Uuid) -> Times;
    fn health(&self, input_id: Uuid) -> Option<Arc<Health>>;
    /// Number of viewers now.
    fn viewers(&self, input_id: Uuid) -> u64;
    fn playback(&self, playback_id: &str) -> Option<Arc<Playback>>;
    /// Returns the playback of the input with this id.
    fn playback_of(&self, input_id: Uuid) -> Option<Arc<Playback>>;
    /// Returns the playbacks of what is live or within its reconnect window.
    fn on_air(&self) -> Vec<Arc<Playback>>;
    /// Ends the input's broadcast; false when nothing is on air.
    fn end(&self, input_id: Uuid) -> BoxFuture<'static, Result<bool, Error>>;
    /// Applies a committed row.
    fn changed(&self, input: LiveInput) -> BoxFuture<'static, Result<(), Error>>;
    /// Ends the input of a deleted row.
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

    fn on_air(&self) -> Vec<Arc<Playback>> {
        Live::on_air(self)
    }

    fn end(&self, input_id: Uuid) -> BoxFuture<'static, Result<bool, Error>> {
        let live = self.clone();
        async move { Live::end(&live, input_id).await }.boxed()
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

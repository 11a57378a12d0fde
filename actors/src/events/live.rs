//! Payloads of `live.input.connected`, `live.input.disconnected` (`reason`) and `live.input.recording.ready`.

use serde::{Deserialize, Serialize};
use sluice_store::events::EventPosition;
use uuid::Uuid;

/// `live.input.connected`: a publisher was admitted and owns the input's timeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LiveInputConnected {
    pub live_input_id: Uuid,
    pub name: String,
    pub playback_id: String,
    /// The broadcast that it begins or continues.
    pub broadcast_id: String,
    /// `rtmp`, `rtmps`, `srt` or `rtsp`.
    pub protocol: String,
    /// Without the port.
    pub remote_address: Option<String>,
}

/// `live.input.disconnected`: the publisher of a `live.input.connected` is gone. There is one for each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LiveInputDisconnected {
    #[serde(flatten)]
    pub connection: LiveInputConnected,
    pub reason: Parting,
}

impl LiveInputDisconnected {
    /// Returns the place among the input's events: none follows that of a deleted input.
    pub(super) fn position(&self) -> EventPosition {
        match self.reason {
            Parting::Deleted => EventPosition::Last,
            _ => EventPosition::Next,
        }
    }
}

/// Reason why a publisher is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Parting {
    /// The encoder ended its publish.
    Ended,
    /// The connection was lost or cut.
    Dropped,
    /// A newer publisher with the right key continues.
    TakenOver,
    /// The service closed it: its owner ended the broadcast, the input was disabled, its key changed, or the service stopped.
    Closed,
    /// The input was deleted.
    Deleted,
    /// The service was killed while the publisher was connected.
    Interrupted,
}

impl Parting {
    /// Returns the name in events and lists.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ended => "ended",
            Self::Dropped => "dropped",
            Self::TakenOver => "taken_over",
            Self::Closed => "closed",
            Self::Deleted => "deleted",
            Self::Interrupted => "interrupted",
        }
    }
}

/// `live.input.recording.ready`: a broadcast's recording is stored.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LiveInputRecordingReady {
    pub live_input_id: Uuid,
    pub name: String,
    pub playback_id: String,
    pub broadcast_id: String,
    pub file_id: Uuid,
    /// The video stream made of it.
    pub stream_id: Option<Uuid>,
    pub filename: String,
    pub size_bytes: u64,
    /// In seconds.
    pub duration: Option<f64>,
}

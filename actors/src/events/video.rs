//! Payload of `video.stream.started`, `video.stream.ready` and `video.stream.failed`.

use serde::Serialize;
use uuid::Uuid;

/// `video.stream.started`, `.ready` and `.failed`: the status of a stream asset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VideoStream {
    pub stream_id: Uuid,
    pub playback_id: String,
    /// `processing`, `ready` or `failed`.
    pub status: &'static str,
    /// Set when the stream is ready.
    pub manifest_url: Option<String>,
    /// Set when the stream failed.
    pub error: Option<String>,
}

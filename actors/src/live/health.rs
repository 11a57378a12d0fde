//! What is said of a stream on air: measurements, troubles and advice.

use serde::Serialize;
use sluice_media::meter::{AdviceContext, Measured, advice};

/// What an input does now, as shown in its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum InputStatus {
    Idle,
    Live,
    Reconnecting,
}

/// Something beside the encoder that is wrong; viewers notice nothing of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Trouble {
    /// Why segments stay in memory only.
    pub disk: Option<String>,
    /// Why rows are written late.
    pub database: Option<String>,
}

/// Answer of `GET /api/live/inputs/{id}/health` while there is a broadcast.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    pub status: InputStatus,
    pub broadcast: String,
    pub protocol: Option<&'static str>,
    pub remote_address: Option<String>,
    pub encoder: Option<String>,
    /// ISO 8601, UTC.
    pub connected_at: Option<jiff::Timestamp>,
    #[serde(flatten)]
    pub measured: Measured,
    pub bytes_received: u64,
    /// Units left out because they were damaged or their codec is not carried.
    pub damaged_units: u64,
    /// Units left out because no key frame or configuration had come yet.
    pub dropped_units: u64,
    /// Packets lost on the line; `null` for protocols that cannot lose any.
    pub lost_packets: Option<u64>,
    pub retransmitted_packets: Option<u64>,
    /// Viewers are not counted yet.
    pub viewers: Option<u64>,
    /// Publisher sessions of this broadcast so far.
    pub sessions: u64,
    /// Encoders refused because another one had the key.
    pub conflicts: u64,
    pub target_duration_s: u32,
    pub part_target_ms: Option<f64>,
    pub trouble: Trouble,
    pub advice: Vec<String>,
}

impl Health {
    /// Fills `advice` from everything else.
    pub(super) fn advised(mut self, context: AdviceContext) -> Self {
        self.advice = advice(&self.measured, &context);
        self
    }
}

//! `GET /api/live/inputs/{id}/health/history`: health of the last 15 minutes in columns, `seconds`.

use serde::Serialize;
use sluice_actors::live::{HISTORY_S, Sample};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::application::{answer::Timestamp, context::LiveContext, error::ApiError};

/// Health of the last minutes, a value each second. All columns are as long as `t`; null where there was nothing to measure, which
/// is a gap in a graph and never zero.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HealthHistory {
    /// The service's clock.
    now: Timestamp,
    interval_seconds: u32,
    /// The value asked for.
    seconds: u32,
    /// Unix seconds without holes, from the first measurement within `seconds`; empty when there is none.
    t: Vec<i64>,
    /// Means of the ten seconds before.
    video_kbps: Vec<Option<u32>>,
    audio_kbps: Vec<Option<u32>>,
    /// Frames a second of media time.
    fps: Vec<Option<f32>>,
    /// Media time against wall-clock time; negative when the encoder falls behind.
    drift_ms: Vec<Option<i32>>,
    /// Also within the reconnect window.
    viewers: Vec<Option<u32>>,
    /// Packets lost in that second; null for protocols that cannot lose any.
    lost_packets: Vec<Option<u32>>,
    round_trip_ms: Vec<Option<f32>>,
}

/// Reads `seconds`: 1 to 900, which is also the default.
pub(crate) fn seconds(given: Option<&str>) -> Result<u32, ApiError> {
    let Some(given) = given else {
        return Ok(HISTORY_S);
    };
    let seconds = given.parse().ok();
    seconds
        .filter(|seconds| (1..=HISTORY_S).contains(seconds))
        .ok_or_else(|| {
            let shown: String = given.chars().take(30).collect();
            invalid!("seconds must be 1 to {HISTORY_S}, got `{shown}`")
        })
}

/// Returns the history of the input; empty columns when it was not on air for long.
pub(crate) fn history(
    context: &LiveContext,
    input_id: Uuid,
    seconds: u32,
    now_ms: i64,
) -> HealthHistory {
    let playback = context.live.playback_of(input_id);
    let samples = playback.map(|playback| playback.history().last(seconds, now_ms));
    columns(&samples.unwrap_or_default(), seconds, now_ms)
}

fn columns(samples: &[Sample], seconds: u32, now_ms: i64) -> HealthHistory {
    fn column<T>(samples: &[Sample], of: impl Fn(&Sample) -> T) -> Vec<T> {
        samples.iter().map(of).collect()
    }
    HealthHistory {
        now: Timestamp(now_ms),
        interval_seconds: 1,
        seconds,
        t: column(samples, |sample| sample.at_s),
        video_kbps: column(samples, |sample| sample.video_kbps),
        audio_kbps: column(samples, |sample| sample.audio_kbps),
        fps: column(samples, |sample| sample.frame_rate),
        drift_ms: column(samples, |sample| sample.drift_ms),
        viewers: column(samples, |sample| sample.viewers),
        lost_packets: column(samples, |sample| sample.lost_packets),
        round_trip_ms: column(samples, |sample| sample.round_trip_ms),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_window_is_1_to_900_seconds() {
        assert_eq!(seconds(None).unwrap(), 900);
        assert_eq!(seconds(Some("1")).unwrap(), 1);
        for odd in ["0", "901", "-1", "", "x", "1.5"] {
            let message = seconds(Some(odd)).unwrap_err().to_string();
            assert_eq!(message, format!("seconds must be 1 to 900, got `{odd}`"));
        }
    }

    #[test]
    fn a_gap_is_null_and_all_columns_are_as_long() {
        let sent = Sample {
            at_s: 5,
            video_kbps: Some(0),
            frame_rate: Some(59.94),
            drift_ms: Some(-3),
            ..Sample::default()
        };
        let gap = Sample {
            at_s: 6,
            viewers: Some(2),
            ..Sample::default()
        };
        let sent = serde_json::to_value(columns(&[sent, gap], 60, 6_000)).unwrap();
        assert_eq!(
            sent,
            json!({
                "now": "1970-01-01T00:00:06.000Z",
                "intervalSeconds": 1,
                "seconds": 60,
                "t": [5, 6],
                "videoKbps": [0, null],
                "audioKbps": [null, null],
                "fps": [59.94_f32, null],
                "driftMs": [-3, null],
                "viewers": [null, 2],
                "lostPackets": [null, null],
                "roundTripMs": [null, null],
            })
        );
    }
}

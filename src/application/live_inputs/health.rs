//! Fields of a live input's health in the OpenAPI document (`droppedUnits`, `driftMs`, `lostPackets`, `advice`), and health while
//! `idle`.
//!
//! The facts themselves are [`Health`] of `actors` and `Measured` of `media`, which do not depend on OpenAPI; a test
//! keeps this description equal to them.

use serde_json::Value;
use sluice_actors::live::Health;
use utoipa::ToSchema;

/// Health of a stream. Without a broadcast `status` is `idle`, lists are empty and the rest is null or 0.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes `Health`, which is what is sent")]
pub struct LiveInputHealth {
    /// `idle`, `live` or `reconnecting`.
    status: String,
    /// Name of the broadcast in the playlist's addresses.
    broadcast: Option<String>,
    /// `rtmp`, `rtmps`, `srt`, `rtsp` or `whip`.
    protocol: Option<String>,
    remote_address: Option<String>,
    /// Name that the encoder gives itself.
    encoder: Option<String>,
    connected_at: Option<jiff::Timestamp>,
    /// `h264`, `hevc` or `av1`.
    video_codec: Option<String>,
    /// Profile and level, for instance `High 4.1`.
    video_profile: Option<String>,
    width: Option<u16>,
    height: Option<u16>,
    /// Frame rate that the encoder declared.
    declared_frame_rate: Option<f64>,
    /// Frame rate measured by media time.
    frame_rate: Option<f64>,
    video_bitrate_bps: Option<u64>,
    audio_bitrate_bps: Option<u64>,
    /// Mean of the last distances between key frames.
    key_frame_interval_s: Option<f64>,
    max_key_frame_interval_s: Option<f64>,
    b_frames: Option<bool>,
    reorder_delay_ms: Option<i64>,
    /// `aac`, `opus` or `mp3`.
    audio_codec: Option<String>,
    sample_rate: Option<u32>,
    channels: Option<u8>,
    /// Jumps of media time: back, or forward by more than 1 s.
    timestamp_jumps: u64,
    last_timestamp_jump_age_ms: Option<i64>,
    /// Media time against wall-clock time; negative when the encoder falls behind.
    drift_ms: Option<i64>,
    /// Positive when audio is ahead of video.
    av_offset_ms: Option<i64>,
    /// Pauses of more than 1 s in which no data arrived.
    stalls: u64,
    last_stall_age_ms: Option<i64>,
    last_media_age_ms: Option<i64>,
    bytes_received: u64,
    /// Left out because they were damaged or their codec is not carried.
    damaged_units: u64,
    /// Units dropped because no key frame or configuration had arrived yet.
    dropped_units: u64,
    /// Never arrived, or too late to be played. Null for protocols that cannot lose any, as all of these.
    lost_packets: Option<u64>,
    /// Lost on the line and sent again.
    retransmitted_packets: Option<u64>,
    /// Arrived, and thrown away because the service did not keep up.
    discarded_packets: Option<u64>,
    round_trip_ms: Option<f64>,
    /// Time in which a lost packet may be sent again, as both sides agreed.
    line_latency_ms: Option<u32>,
    /// Length of the receive buffer in time.
    receive_buffer_ms: Option<u32>,
    /// Players that requested the media playlist within the last three target durations, or are connected by WebRTC.
    viewers: Option<u64>,
    webrtc: WebRtcHealthRecord,
    /// Publisher sessions of this broadcast so far.
    sessions: u64,
    /// Encoders rejected because another one held the key.
    conflicts: u64,
    target_duration_s: Option<u32>,
    part_target_ms: Option<f64>,
    /// `recording`, `stopped`, or null when the broadcast is not recorded.
    recording: Option<String>,
    trouble: HealthIssueRecord,
    /// Advice in plain words that name the encoder's setting; empty when all is well.
    advice: Vec<String>,
}

/// Viewers by WebRTC.
#[derive(ToSchema)]
#[schema(as = WebRtcHealth, rename_all = "camelCase")]
#[expect(dead_code, reason = "describes `WebRtcHealth`, which is what is sent")]
pub struct WebRtcHealthRecord {
    /// Connected viewers.
    viewers: u64,
    /// Viewers whose line is too slow: they get audio and key frames only.
    thin: u64,
    /// Mean of all viewers.
    loss_percent: Option<f64>,
    /// Mean of all viewers.
    rtt_ms: Option<f64>,
    branch: WebRtcBranchRecord,
    /// Viewers of the last ten minutes who fetched an answer and from whom no packet came; 0 again once one is connected.
    unreachable: u64,
}

/// Form in which viewers by WebRTC are sent each track.
#[derive(ToSchema)]
#[schema(as = WebRtcBranch, rename_all = "camelCase")]
#[expect(dead_code, reason = "describes `BranchHealth`, which is what is sent")]
pub struct WebRtcBranchRecord {
    /// `copied`, `reencoded`, or null while no viewer is sent any.
    video: Option<String>,
    /// Same values as `video`.
    audio: Option<String>,
    /// Reason for re-encoding video: `b-frames`, `codec`, `bit-depth`, `chroma` or `interlaced`.
    reason: Option<String>,
    /// Share of a core that re-encoding takes.
    cpu_percent: Option<f64>,
}

/// Problems beside the encoder; viewers do not notice them.
#[derive(ToSchema)]
#[schema(as = HealthTrouble)]
#[expect(dead_code, reason = "describes `HealthIssue`, which is what is sent")]
pub struct HealthIssueRecord {
    /// Reason why the broadcast is not recorded any further, or why recorded segments wait on the disk.
    recording: Option<String>,
    /// Reason why segments stay in memory only.
    disk: Option<String>,
    /// Reason why rows are written late.
    database: Option<String>,
    /// Reason why the source of `pullUrl` does not send at the moment.
    pull: Option<String>,
}

/// Returns the fields of [`Health`], null where there is no value.
pub(crate) fn idle() -> Value {
    let mut value = serde_json::to_value(Health::default()).expect("health is plain values");
    for field in ["broadcast", "targetDurationS"] {
        value[field] = Value::Null;
    }
    value
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    #[test]
    fn idle_health_has_its_fields_and_no_measurement() {
        let health = idle();
        assert_eq!(
            (&health["status"], &health["advice"]),
            (&json!("idle"), &json!([]))
        );
        for field in [
            "protocol",
            "videoCodec",
            "frameRate",
            "broadcast",
            "viewers",
        ] {
            assert!(
                health.get(field).is_some_and(Value::is_null),
                "{field}: {health}"
            );
        }
    }

    #[test]
    fn the_description_names_what_is_sent() {
        let document = serde_json::to_value(crate::http::openapi()).unwrap();
        let schema = |name: &str| document["components"]["schemas"][name]["properties"].clone();
        let names = |value: &Value| -> BTreeSet<String> {
            value.as_object().unwrap().keys().cloned().collect()
        };
        let sent = idle();
        assert_eq!(names(&schema("LiveInputHealth")), names(&sent));
        assert_eq!(names(&schema("HealthTrouble")), names(&sent["trouble"]));
        assert_eq!(names(&schema("WebRtcHealth")), names(&sent["webrtc"]));
        assert_eq!(
            names(&schema("WebRtcBranch")),
            names(&sent["webrtc"]["branch"])
        );
    }
}

//! Health of a live input on air: the fields of `GET /api/live/inputs/{id}/health`, its issues (`trouble`) and `advice`.

use jiff::Timestamp;
use serde::Serialize;
use sluice_media::meter::{AdviceContext, Measured, advice};

use super::{
    broadcast::Broadcast,
    publisher::Publisher,
    webrtc::{WebRtcHealth, WebRtcViewers},
};

/// Status of an input, as shown in its record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum InputStatus {
    #[default]
    Idle,
    Live,
    Reconnecting,
}

/// Problems beside the encoder, which viewers do not notice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HealthIssue {
    /// Reason why the broadcast is not recorded any further, or why recorded segments wait on the disk.
    pub recording: Option<String>,
    /// Reason why segments stay in memory only.
    pub disk: Option<String>,
    /// Reason why rows are written late.
    pub database: Option<String>,
    /// Reason why the source of `pullUrl` does not send at the moment.
    pub pull: Option<String>,
}

/// Answer of `GET /api/live/inputs/{id}/health` while there is a broadcast; the default is that of an idle input.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    pub status: InputStatus,
    pub broadcast: String,
    pub protocol: Option<&'static str>,
    pub remote_address: Option<String>,
    pub encoder: Option<String>,
    /// ISO 8601, UTC.
    pub connected_at: Option<Timestamp>,
    #[serde(flatten)]
    pub measured: Measured,
    pub bytes_received: u64,
    /// Units left out because they were damaged or their codec is not carried.
    pub damaged_units: u64,
    /// Units left out because no key frame or configuration had come yet.
    pub dropped_units: u64,
    /// Packets lost on the way; `null` for protocols that cannot lose any.
    pub lost_packets: Option<u64>,
    pub retransmitted_packets: Option<u64>,
    /// Packets that arrived and were discarded because the service did not keep up.
    pub discarded_packets: Option<u64>,
    pub round_trip_ms: Option<f64>,
    /// Time in which a lost packet may be sent again, as both sides agreed.
    pub line_latency_ms: Option<u32>,
    /// Length of the receive buffer in time.
    pub receive_buffer_ms: Option<u32>,
    /// Players that asked for the media playlist within the last three target durations or are connected by WebRTC; `null` when they
    /// are not counted.
    pub viewers: Option<u64>,
    pub webrtc: WebRtcHealth,
    /// Publisher sessions of this broadcast so far.
    pub sessions: u64,
    /// Encoders rejected because another one had the key.
    pub conflicts: u64,
    pub target_duration_s: u32,
    pub part_target_ms: Option<f64>,
    /// `recording`, `stopped`, or `null` when the broadcast is not recorded.
    pub recording: Option<&'static str>,
    pub trouble: HealthIssue,
    pub advice: Vec<String>,
}

/// Facts from which health is derived.
pub(super) struct Facts<'a> {
    pub session: Option<&'a Publisher>,
    pub broadcast: &'a Broadcast,
    pub measured: Measured,
    pub viewers: Option<u64>,
    pub webrtc: &'a WebRtcViewers,
    pub now_ms: i64,
    pub sessions: u64,
    pub conflicts: u64,
    pub conflict_addresses: &'a [String],
    pub database_error: Option<String>,
}

impl Health {
    /// Returns whether something differs that a list of inputs shows: advice, issues, publishers. Measurements alone differ
    /// every second.
    pub(super) fn asks_for_more_than_measuring(&self, before: &Self) -> bool {
        // Advice names what was measured.
        let without_numbers = |text: &String| text.replace(|c: char| c.is_ascii_digit(), "");
        let advice = self.advice.iter().map(without_numbers);
        self.trouble != before.trouble
            || self.recording != before.recording
            || self.broadcast != before.broadcast
            || (self.sessions, self.conflicts) != (before.sessions, before.conflicts)
            || !advice.eq(before.advice.iter().map(without_numbers))
    }

    /// Makes the record of health, with its advice, of the facts.
    pub(super) fn of(facts: Facts<'_>) -> Self {
        let Facts {
            session,
            broadcast,
            measured,
            ..
        } = facts;
        let report = session
            .map(|session| session.report.clone())
            .unwrap_or_default();
        let request = session.map(|session| &session.request);
        let line = report.line;
        let header = broadcast.header();
        let recording_writer = broadcast.recording_writer();
        let stopped = recording_writer
            .and_then(|recording_writer| recording_writer.stopped())
            .map(str::to_owned);
        let waiting = recording_writer
            .and_then(|recording_writer| recording_writer.upload_failure())
            .map(str::to_owned);
        let mut advice = advice(
            &measured,
            &AdviceContext {
                target_duration_s: header.target_duration_s,
                low_latency: header.low_latency,
                damaged_units: report.damaged,
                last_damage: report.last_damage,
                disk_error: broadcast.disk().error(),
                database_error: facts.database_error.clone(),
                conflicts: facts.conflicts,
                conflict_addresses: facts.conflict_addresses.to_vec(),
                line,
            },
        );
        if let Some(reason) = &stopped {
            advice.push(format!(
                "the recording of this broadcast has stopped ({reason}); the stream continues, and the recorded part is kept"
            ));
        }
        if let Some(reason) = &waiting {
            advice.push(format!(
                "{reason}; the stream and the recording continue as long as the disk has room"
            ));
        }
        let webrtc = facts.webrtc.health(facts.now_ms);
        advice.extend(facts.webrtc.advice(&webrtc));
        Self {
            webrtc,
            status: session.map_or(InputStatus::Reconnecting, |_| InputStatus::Live),
            broadcast: header.broadcast.clone(),
            protocol: request.map(|request| request.protocol.as_str()),
            remote_address: request.map(|request| request.remote.ip().to_string()),
            encoder: session.and_then(Publisher::encoder),
            connected_at: session
                .and_then(|session| Timestamp::from_millisecond(session.connected_ms).ok()),
            measured,
            bytes_received: report.bytes_received,
            damaged_units: report.damaged,
            dropped_units: broadcast.dropped_units(),
            lost_packets: line.map(|line| line.lost),
            retransmitted_packets: line.map(|line| line.retransmitted),
            discarded_packets: line.map(|line| line.discarded),
            round_trip_ms: line.map(|line| line.rtt_ms),
            line_latency_ms: line.map(|line| line.latency_ms),
            receive_buffer_ms: line.map(|line| line.buffer_ms),
            viewers: facts.viewers,
            sessions: facts.sessions,
            conflicts: facts.conflicts,
            target_duration_s: header.target_duration_s,
            part_target_ms: broadcast
                .window()
                .part_target_90k()
                .map(|ticks| f64::from(ticks) / 90.0),
            recording: recording_writer.map(|_| {
                if stopped.is_some() {
                    "stopped"
                } else {
                    "recording"
                }
            }),
            trouble: HealthIssue {
                recording: stopped.or(waiting),
                disk: broadcast.disk().error(),
                database: facts.database_error,
                pull: None,
            },
            advice,
        }
    }
}

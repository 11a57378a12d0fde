//! WebRTC's part of an input's health (`webrtc`): viewers, loss, re-encoding, unreachable ports.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use serde::Serialize;

/// Time for which offers without any packet count.
const UNREACHABLE_FOR_MS: i64 = 10 * 60 * 1_000;

/// Field `webrtc` of an input's health.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WebRtcHealth {
    /// Connected viewers.
    pub viewers: u64,
    /// Those whose line is too slow: they get audio and key frames only.
    pub thin: u64,
    /// Mean of all viewers.
    pub loss_percent: Option<f64>,
    /// Mean of all viewers.
    pub rtt_ms: Option<f64>,
    pub branch: BranchHealth,
    /// Viewers of the last minutes who fetched an answer and from whom no packet came.
    pub unreachable: u64,
}

/// Form in which viewers are sent each track.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BranchHealth {
    /// `copied`, `reencoded`, or null while no viewer is sent any.
    pub video: Option<&'static str>,
    /// Same values as `video`.
    pub audio: Option<&'static str>,
    /// Reason for re-encoding the video.
    pub reason: Option<&'static str>,
    /// Share of a core that re-encoding takes.
    pub cpu_percent: Option<f64>,
}

/// Counts of an input's WebRTC viewers, which its playback holds.
#[derive(Debug, Default)]
pub(in crate::live) struct WebRtcViewers {
    connected: AtomicU64,
    line: ArcSwap<WebRtcHealth>,
    unreachable: Mutex<Unreachable>,
}

#[derive(Debug, Default)]
struct Unreachable {
    count: u64,
    last_ms: i64,
    /// Ports at which no packet arrived.
    ports: String,
}

impl WebRtcViewers {
    pub fn count(&self) -> u64 {
        self.connected.load(Relaxed)
    }

    pub(super) fn connect(&self) {
        self.connected.fetch_add(1, Relaxed);
        // The ports are open.
        self.unreachable.lock().count = 0;
    }

    pub(super) fn disconnect(&self) {
        self.connected.fetch_sub(1, Relaxed);
    }

    /// `ports`: those of this service, such as `UDP 8189 or TCP 8189`.
    pub(super) fn note_unreachable(&self, now_ms: i64, ports: &str) {
        let mut unreachable = self.unreachable.lock();
        if now_ms - unreachable.last_ms > UNREACHABLE_FOR_MS {
            unreachable.count = 0;
        }
        unreachable.count += 1;
        unreachable.last_ms = now_ms;
        ports.clone_into(&mut unreachable.ports);
    }

    /// Sets what was measured last.
    pub(super) fn set(&self, health: WebRtcHealth) {
        self.line.store(health.into());
    }

    pub fn health(&self, now_ms: i64) -> WebRtcHealth {
        let unreachable = self.unreachable.lock();
        let is_recent = now_ms - unreachable.last_ms <= UNREACHABLE_FOR_MS;
        WebRtcHealth {
            viewers: self.count(),
            unreachable: if is_recent { unreachable.count } else { 0 },
            ..WebRtcHealth::clone(&self.line.load())
        }
    }

    /// Returns advice on what was measured.
    pub fn advice(&self, health: &WebRtcHealth) -> Vec<String> {
        let mut advice = Vec::new();
        if health.unreachable > 0 {
            let (count, ports) = (health.unreachable, self.unreachable.lock().ports.clone());
            let viewers = if count == 1 { "viewer" } else { "viewers" };
            advice.push(format!(
                "{count} {viewers} tried WebRTC and nothing arrived at {ports}: open the port, or set webrtc.public_addresses to the address that viewers reach"
            ));
        }
        let remedy = match health.branch.reason {
            Some("b-frames") => {
                "because of B-frames: set Max B-frames to 0 and Tune to zerolatency"
            }
            Some("codec") => {
                "because their browsers do not decode its codec: choose H.264 at the encoder"
            }
            Some("bit-depth" | "chroma") => {
                "because of its pixel format: choose 8 bits and 4:2:0 (NV12) at the encoder"
            }
            Some("interlaced") => {
                "because it is interlaced: choose a progressive format at the encoder"
            }
            _ => return advice,
        };
        advice.push(format!(
            "WebRTC viewers are served by re-encoding, {remedy}"
        ));
        advice
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORTS: &str = "UDP 8189 or TCP 8189";

    #[test]
    fn a_viewer_who_connects_shows_that_the_ports_are_open() {
        let viewers = WebRtcViewers::default();
        viewers.note_unreachable(1_000, PORTS);
        viewers.note_unreachable(2_000, PORTS);
        let health = viewers.health(2_000);
        assert_eq!(health.unreachable, 2);
        let advice = viewers.advice(&health);
        assert!(advice[0].starts_with("2 viewers tried WebRTC and nothing arrived at UDP 8189 or"));
        let later_ms = 2_000 + UNREACHABLE_FOR_MS + 1;
        assert_eq!(viewers.health(later_ms).unreachable, 0);
        viewers.note_unreachable(later_ms, PORTS);
        assert_eq!(viewers.health(later_ms).unreachable, 1);
        viewers.connect();
        let health = viewers.health(later_ms + 1);
        assert_eq!((health.viewers, health.unreachable), (1, 0));
        assert!(viewers.advice(&health).is_empty());
    }

    #[test]
    fn advice_names_the_setting_of_the_encoder() {
        let viewers = WebRtcViewers::default();
        for (reason, word) in [
            ("b-frames", "Max B-frames"),
            ("codec", "H.264"),
            ("chroma", "4:2:0"),
            ("interlaced", "progressive"),
        ] {
            viewers.set(WebRtcHealth {
                branch: BranchHealth {
                    video: Some("reencoded"),
                    reason: Some(reason),
                    ..BranchHealth::default()
                },
                ..WebRtcHealth::default()
            });
            let advice = viewers.advice(&viewers.health(0));
            assert!(advice.len() == 1 && advice[0].contains(word), "{advice:?}");
        }
    }
}

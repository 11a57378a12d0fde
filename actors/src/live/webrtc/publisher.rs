//! Publishers by WHIP: a task for each, bounded queue of frames (`ARRIVALS`), report of the line.
//!
//! The gateway's reports are put into the queue at once, so that no publisher holds another back. What does not fit is dropped, and
//! the session continues at a key frame.

use std::sync::{Arc, OnceLock};

use sluice_ingest::{
    publish::{Ended, LinkStatistics, PublishSession, SessionReport},
    webrtc::{
        message::{AudioFrame, SessionStatistics, VideoFrame},
        publish::PublishedTracks,
    },
};
use sluice_media::unit::Unit;
use tokio::sync::mpsc;

/// Most frames that wait for a session.
const ARRIVALS: usize = 128;
/// Most frames that are delivered at a time.
const BATCH: usize = 32;

/// Reports of the gateway on a publisher, in order.
#[derive(Clone, Debug)]
enum Arrival {
    /// `gap` when frames before it were dropped.
    Video {
        frame: VideoFrame,
        gap: bool,
    },
    Audio(AudioFrame),
    Line(LinkStatistics),
}

/// Way from the gateway's reports to a publisher's task.
pub(super) struct PublisherRoute {
    arrivals: mpsc::Sender<Arrival>,
    /// Set before the arrivals end.
    ended: Arc<OnceLock<Ended>>,
    gap: bool,
    line: LinkStatistics,
}

/// The task's end of a [`PublisherRoute`].
pub(super) struct Arrivals {
    receiver: mpsc::Receiver<Arrival>,
    ended: Arc<OnceLock<Ended>>,
}

impl PublisherRoute {
    pub fn new() -> (Self, Arrivals) {
        let (arrivals, receiver) = mpsc::channel(ARRIVALS);
        let ended = Arc::new(OnceLock::new());
        let route = Self {
            arrivals,
            ended: ended.clone(),
            gap: false,
            line: LinkStatistics::default(),
        };
        (route, Arrivals { receiver, ended })
    }

    pub fn take_video(&mut self, frame: VideoFrame) {
        let gap = self.gap;
        let taken = self.arrivals.try_send(Arrival::Video { frame, gap });
        self.gap = taken.is_err();
        self.line.discarded += u64::from(taken.is_err());
    }

    pub fn take_audio(&mut self, frame: AudioFrame) {
        let taken = self.arrivals.try_send(Arrival::Audio(frame));
        self.line.discarded += u64::from(taken.is_err());
    }

    pub fn take_statistics(&mut self, statistics: SessionStatistics) {
        let packets = u64::from(statistics.packets);
        self.line.received += packets;
        self.line.lost += (statistics.loss * packets as f64).round() as u64;
        self.line.retransmitted += u64::from(statistics.retransmitted);
        self.line.rtt_ms = statistics.rtt_ms;
        // Left out when the queue is full: the next one has the same totals.
        let _ = self.arrivals.try_send(Arrival::Line(self.line));
    }

    pub fn end(self, how: Ended) {
        let _ = self.ended.set(how);
    }
}

/// Publishes what arrives until either side ends it; true when the service has, and the gateway has to know.
pub(super) async fn run<P: PublishSession>(mut session: P, mut arrivals: Arrivals) -> bool {
    let mut publishing = Publishing::default();
    let is_ours = publishing.run(&mut session, &mut arrivals.receiver).await;
    let how = match is_ours {
        true => Ended::Dropped,
        false => arrivals.ended.get().copied().unwrap_or(Ended::Dropped),
    };
    session.report(publishing.report());
    session.end(how).await;
    is_ours
}

#[derive(Default)]
struct Publishing {
    tracks: PublishedTracks,
    units: Vec<Unit>,
    line: LinkStatistics,
}

impl Publishing {
    /// Returns whether the service ended the publish.
    async fn run<P: PublishSession>(
        &mut self,
        session: &mut P,
        arrivals: &mut mpsc::Receiver<Arrival>,
    ) -> bool {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            let count = tokio::select! {
                biased;
                count = arrivals.recv_many(&mut batch, BATCH) => count,
                _ = session.closed() => return true,
            };
            if count == 0 {
                return false;
            }
            let mut has_line = false;
            for arrival in batch.drain(..) {
                has_line |= matches!(arrival, Arrival::Line(_));
                self.take(arrival);
            }
            if has_line {
                session.report(self.report());
            }
            if !self.units.is_empty() && session.deliver(&mut self.units).await.is_err() {
                return true;
            }
        }
    }

    fn take(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Video { frame, gap } => {
                if gap {
                    self.tracks.lost();
                }
                self.tracks.video(frame, &mut self.units);
            }
            Arrival::Audio(frame) => self.tracks.audio(frame, &mut self.units),
            Arrival::Line(line) => self.line = line,
        }
    }

    fn report(&self) -> SessionReport {
        SessionReport {
            line: Some(self.line),
            ..self.tracks.report().clone()
        }
    }
}

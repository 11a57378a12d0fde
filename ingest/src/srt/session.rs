//! SRT publisher in the service: demultiplexes the gateway's data, asks the authorizer, ends after 20 s of silence.
//!
//! The gateway has accepted the caller already, so a rejection here closes an open connection. Data that does not fit
//! into the bounded queue of arrivals is discarded by its sender, and marked: frames continue at the next key frame
//! then.

use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use sluice_media::unit::Unit;
use tokio::{sync::mpsc, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{
    publish::{
        ADMIT_WITHIN, Closed, Ended, LinkStatistics, Protocol, PublishAuthorizer, PublishRequest,
        PublishSession, Rejection, SessionReport,
    },
    ts::{Demuxer, Limits},
};

/// Silence after which a connected publisher counts as lost.
const SILENT_FOR: Duration = Duration::from_secs(20);

/// Events of a connection that the gateway reports, in order.
#[derive(Clone, Debug)]
pub enum GatewayEvent {
    /// Payloads; `gap` when some before them were discarded.
    Data {
        gap: bool,
        bytes: Bytes,
    },
    Line(LinkStatistics),
}

/// An accepted caller.
#[derive(Debug)]
pub struct Caller {
    /// Stream name in the authorizer's form: `{slug}.{key}` or the key.
    pub stream: String,
    pub remote: SocketAddr,
    pub arrivals: mpsc::Receiver<GatewayEvent>,
    /// End of the connection as the gateway reported it, set before the arrivals end. Unset: it was lost.
    pub ended: Arc<OnceLock<Ended>>,
}

/// Publishes what a caller sends until either side ends it. A returned rejection has not been reported yet.
pub async fn serve<G: PublishAuthorizer>(
    caller: Caller,
    authorizer: &G,
    stop: CancellationToken,
) -> Result<(), Rejection> {
    let request = PublishRequest {
        protocol: Protocol::Srt,
        remote: caller.remote,
        stream: caller.stream.into(),
        encoder: None,
    };
    let admitted = tokio::select! {
        admitted = tokio::time::timeout(ADMIT_WITHIN, authorizer.admit(request)) => {
            admitted.unwrap_or(Err(Rejection::Busy))
        }
        () = stop.cancelled() => Err(Rejection::Busy),
    };
    let mut publisher = admitted?;
    let mut session = CallerSession::new();
    let mut arrivals = caller.arrivals;
    let how = session.run(&mut publisher, &mut arrivals, &stop).await;
    let how = match how {
        PublishEnd::Peer => caller.ended.get().copied().unwrap_or(Ended::Dropped),
        PublishEnd::Silent => Ended::Dropped,
        PublishEnd::Ours => {
            session.take_arrived(&mut publisher, &mut arrivals).await;
            Ended::Dropped
        }
    };
    session.finish(&mut publisher).await;
    publisher.end(how).await;
    Ok(())
}

/// Reason for the end of a publish.
enum PublishEnd {
    Peer,
    Silent,
    /// The service ended it.
    Ours,
}

struct CallerSession {
    demuxer: Demuxer,
    units: Vec<Unit>,
    /// True while frames before the next key frame would refer to missing frames.
    awaits_key: bool,
    skipped_video_frames: u64,
    bytes_received: u64,
    line: LinkStatistics,
    last_data: Instant,
}

impl CallerSession {
    fn new() -> Self {
        Self {
            demuxer: Demuxer::new(Limits::default()),
            units: Vec::new(),
            awaits_key: false,
            skipped_video_frames: 0,
            bytes_received: 0,
            line: LinkStatistics::default(),
            last_data: Instant::now(),
        }
    }

    async fn run<P: PublishSession>(
        &mut self,
        publisher: &mut P,
        arrivals: &mut mpsc::Receiver<GatewayEvent>,
        stop: &CancellationToken,
    ) -> PublishEnd {
        loop {
            let arrival = tokio::select! {
                biased;
                arrival = arrivals.recv() => arrival,
                _ = publisher.closed() => return PublishEnd::Ours,
                () = stop.cancelled() => return PublishEnd::Ours,
            };
            let Some(arrival) = arrival else {
                return PublishEnd::Peer;
            };
            if self.take(publisher, arrival).await.is_err() {
                return PublishEnd::Ours;
            }
            if self.last_data.elapsed() > SILENT_FOR {
                return PublishEnd::Silent;
            }
        }
    }

    /// Takes what had arrived when the service ended the publish, and belongs to it.
    async fn take_arrived<P: PublishSession>(
        &mut self,
        publisher: &mut P,
        arrivals: &mut mpsc::Receiver<GatewayEvent>,
    ) {
        while let Ok(arrival) = arrivals.try_recv() {
            let _ = self.take(publisher, arrival).await;
        }
    }

    async fn take<P: PublishSession>(
        &mut self,
        publisher: &mut P,
        arrival: GatewayEvent,
    ) -> Result<(), Closed> {
        match arrival {
            GatewayEvent::Data { gap, bytes } => {
                self.last_data = Instant::now();
                self.demultiplex(gap, &bytes);
                self.deliver(publisher).await
            }
            GatewayEvent::Line(line) => {
                self.line = line;
                publisher.report(self.report());
                Ok(())
            }
        }
    }

    fn demultiplex(&mut self, gap: bool, bytes: &[u8]) {
        if gap {
            self.demuxer.skipped();
            self.awaits_key = true;
        }
        self.bytes_received += bytes.len() as u64;
        self.demuxer.push(bytes, &mut self.units);
        self.skip_to_key();
    }

    fn skip_to_key(&mut self) {
        if !self.awaits_key {
            return;
        }
        let (awaits_key, skipped) = (&mut self.awaits_key, &mut self.skipped_video_frames);
        self.units.retain(|unit| match unit {
            Unit::Video(video) if *awaits_key && !video.key => {
                *skipped += 1;
                false
            }
            Unit::Video(_) => {
                *awaits_key = false;
                true
            }
            _ => true,
        });
    }

    async fn deliver<P: PublishSession>(&mut self, publisher: &mut P) -> Result<(), Closed> {
        if self.units.is_empty() {
            return Ok(());
        }
        publisher.deliver(&mut self.units).await
    }

    async fn finish<P: PublishSession>(&mut self, publisher: &mut P) {
        self.demuxer.flush(&mut self.units);
        self.skip_to_key();
        let _ = self.deliver(publisher).await;
        publisher.report(self.report());
    }

    fn report(&self) -> SessionReport {
        let last_damage = self
            .demuxer
            .last_damage()
            .map(|corruption| corruption.to_string());
        let skipped = (self.skipped_video_frames > 0)
            .then(|| "frames up to a key frame, because the service did not keep up".to_owned());
        SessionReport {
            encoder: None,
            damaged: self.demuxer.counters().damaged + self.skipped_video_frames,
            last_damage: last_damage.or(skipped),
            bytes_received: self.bytes_received,
            line: Some(self.line),
        }
    }
}

#[cfg(test)]
mod tests {
    use sluice_media::unit::{AudioUnit, VideoUnit};

    use super::*;

    fn video(dts_90k: i64, key: bool) -> Unit {
        Unit::Video(VideoUnit {
            dts_90k,
            cts_90k: 0,
            key,
            data: Bytes::from_static(b"frame"),
        })
    }

    fn times(units: &[Unit]) -> Vec<i64> {
        let time = |unit: &Unit| match unit {
            Unit::Video(video) => video.dts_90k,
            Unit::Audio(audio) => -audio.pts_90k,
            _ => 0,
        };
        units.iter().map(time).collect()
    }

    #[test]
    fn after_a_gap_frames_continue_at_a_key_frame() {
        let audio = Unit::Audio(AudioUnit {
            pts_90k: 7,
            data: Bytes::from_static(b"audio"),
        });
        let mut session = CallerSession::new();
        session.units = vec![video(1, false)];
        session.skip_to_key();
        assert_eq!(times(&session.units), [1], "nothing is missing");
        session.units.clear();

        session.demultiplex(true, &[]);
        session.units = vec![video(2, false), audio, video(3, false)];
        session.skip_to_key();
        assert_eq!(times(&session.units), [-7], "audio continues");
        session.units = vec![video(4, false), video(5, true), video(6, false)];
        session.skip_to_key();
        assert_eq!(times(&session.units), [5, 6]);
        let report = session.report();
        assert_eq!(session.skipped_video_frames, 3);
        // The demuxer counts what it had to leave unfinished.
        assert!(report.damaged >= 3);
        assert!(report.last_damage.is_some());
    }
}

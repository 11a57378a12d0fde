//! Task of an output: waits for its input, connects, sends, tries again (`restream.retry_first`, `retry_longest`).

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use uuid::Uuid;

use super::{
    RestreamSettings,
    feed::Feed,
    progress::{OutputProgress, OutputStatus},
    sink::Sink,
    unit_window::{SourceState, UnitBatch, UnitWindow},
    url::OutputUrl,
};
use crate::{live::retry_pause, outbound::Outbound};

/// Time of sending after which the failures of a target are forgotten.
const STEADY_AFTER: Duration = Duration::from_secs(30);

/// Parts of an output's task.
pub(super) struct OutputWork {
    pub(super) output_id: Uuid,
    pub(super) url: String,
    pub(super) tap: Arc<UnitWindow>,
    pub(super) progress: Arc<OutputProgress>,
    pub(super) outbound: Outbound,
    pub(super) settings: Arc<RestreamSettings>,
    /// It was removed, changed or turned off.
    pub(super) over: CancellationToken,
    /// The service ends; its broadcasts wait for the next process, and so do their targets.
    pub(super) stop: CancellationToken,
}

/// End of an attempt without an error.
enum End {
    /// The broadcast is over.
    Broadcast,
    Ordered,
    /// Ordered, and the target's stream is not ended politely.
    Cut,
}

impl OutputWork {
    /// Works until it is cancelled.
    pub(super) async fn run(self) {
        self.keep(|| self.try_once()).await;
    }

    /// Repeats attempts until it is cancelled.
    async fn keep<F>(&self, try_once: impl Fn() -> F)
    where
        F: Future<Output = Result<End, String>>,
    {
        let mut failures = 0;
        while self.on_air().await {
            let started = Instant::now();
            // A panic costs this try.
            let tried = AssertUnwindSafe(try_once()).catch_unwind().await;
            let outcome =
                tried.unwrap_or_else(|_| Err("the output panicked in the service".to_owned()));
            let reason = match outcome {
                Ok(End::Ordered | End::Cut) => break,
                Ok(End::Broadcast) => {
                    failures = 0;
                    continue;
                }
                Err(reason) => reason,
            };
            if started.elapsed() > STEADY_AFTER {
                failures = 0;
            }
            failures += 1;
            let settings = &self.settings;
            let pause = retry_pause(settings.retry_first, settings.retry_longest, failures);
            warn!(output = %self.output_id, reason, ?pause, "an output is tried again");
            self.progress.fail(reason);
            tokio::select! {
                () = sleep(pause) => {}
                // Nothing is to be sent any more.
                _ = self.tap.until(&[SourceState::Off]) => {}
                () = self.ordered() => break,
            }
        }
        self.progress.enter(OutputStatus::Idle);
    }

    async fn ordered(&self) {
        tokio::select! {
            () = self.over.cancelled() => {}
            () = self.stop.cancelled() => {}
        }
    }

    /// Waits until there is something to send; `false` when it is cancelled.
    async fn on_air(&self) -> bool {
        loop {
            let wanted: &[SourceState] = match self.tap.air() {
                SourceState::Sending => &[SourceState::Sending],
                SourceState::Silent => {
                    self.progress.enter(OutputStatus::Waiting);
                    &[SourceState::Sending, SourceState::Off]
                }
                SourceState::Off => {
                    self.progress.enter(OutputStatus::Idle);
                    &[SourceState::Sending, SourceState::Silent]
                }
            };
            let air = tokio::select! {
                biased;
                () = self.ordered() => return false,
                air = self.tap.until(wanted) => air,
            };
            if air == SourceState::Sending {
                return true;
            }
        }
    }

    /// Makes one connection to the target, from its beginning to its end.
    async fn try_once(&self) -> Result<End, String> {
        let url = OutputUrl::parse(&self.url).map_err(|error| error.to_string())?;
        self.progress.enter(OutputStatus::Connecting);
        let opened = tokio::select! {
            biased;
            () = self.ordered() => return Ok(End::Ordered),
            opened = Sink::open(&url, &self.outbound, &self.settings) => opened,
        };
        let mut sink = opened?;
        info!(output = %self.output_id, "an output is live");
        self.progress.enter(OutputStatus::Live);
        let end = self.feed(&mut sink).await?;
        // When the service ends, its targets are to wait for the next one, as for any encoder that breaks off.
        if !(matches!(end, End::Cut) || self.stop.is_cancelled()) {
            sink.close().await;
        }
        Ok(end)
    }

    async fn feed(&self, sink: &mut Sink) -> Result<End, String> {
        let mut follower = self.tap.follow(self.settings.buffer);
        let mut feed = Feed::new();
        let (mut items, mut units) = (Vec::new(), Vec::new());
        loop {
            // Biased: an order to end must not wait behind media that never stop coming.
            let taken = tokio::select! {
                biased;
                () = self.ordered() => return Ok(End::Ordered),
                attended = sink.attend() => {
                    attended?;
                    None
                }
                taken = follower.next(&mut items) => Some(taken),
            };
            let dropped = feed.dropped();
            match taken {
                Some(UnitBatch::Over) => return Ok(End::Broadcast),
                Some(UnitBatch::Items { missed }) => feed.miss(missed),
                None => {}
            }
            let arrived = items.last().map(|item| item.arrived);
            for item in items.drain(..) {
                feed.push(item, &mut units);
            }
            self.progress.dropped(feed.dropped() - dropped);
            let bytes = tokio::select! {
                biased;
                sent = sink.send(&units) => sent?,
                () = self.ordered() => return Ok(End::Cut),
            };
            units.clear();
            self.progress.sent(bytes);
            if let Some(arrived) = arrived {
                self.progress.lags(arrived.elapsed());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Mutex,
        atomic::{AtomicU32, Ordering::Relaxed},
    };

    use bytes::Bytes;
    use sluice_media::unit::{AudioUnit, Unit};

    use super::*;
    use crate::outbound::OutboundSettings;

    #[test]
    fn pauses_double_and_end() {
        let settings = RestreamSettings::default();
        let pauses: Vec<u64> = (1..=7)
            .map(|it| retry_pause(settings.retry_first, settings.retry_longest, it).as_secs())
            .collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
    }

    fn work(tap: &Arc<UnitWindow>) -> OutputWork {
        OutputWork {
            output_id: Uuid::nil(),
            url: "rtmp://target.example/live/key".to_owned(),
            tap: tap.clone(),
            progress: Arc::new(OutputProgress::new(None)),
            outbound: Outbound::new(&OutboundSettings::default()).expect("no ca_file"),
            settings: Arc::default(),
            over: CancellationToken::new(),
            stop: CancellationToken::new(),
        }
    }

    fn audio(pts_90k: i64) -> Unit {
        let data = Bytes::from_static(b"audio");
        Unit::Audio(AudioUnit { pts_90k, data })
    }

    /// A connection to a target that takes everything; the times of what it got.
    async fn send(work: &OutputWork, sent: &Mutex<Vec<i64>>) -> Result<End, String> {
        work.progress.enter(OutputStatus::Live);
        let mut follower = work.tap.follow(work.settings.buffer);
        let mut items = Vec::new();
        while let UnitBatch::Items { missed } = follower.next(&mut items).await {
            assert_eq!(missed, 0);
            for item in items.drain(..) {
                if let Unit::Audio(audio) = item.unit {
                    sent.lock().expect("no panic").push(audio.pts_90k);
                }
            }
        }
        Ok(End::Broadcast)
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_costs_one_output_one_try() {
        const SECONDS: i64 = 10;
        let tap = Arc::new(UnitWindow::default());
        tap.set_air(SourceState::Sending);
        let (faulty, steady) = (work(&tap), work(&tap));
        let (sent_faulty, sent_steady) = (Mutex::default(), Mutex::default());
        let tries = AtomicU32::new(0);
        let errors = Mutex::new(Vec::new());
        let try_faulty = || async {
            let report = faulty.progress.report();
            errors.lock().expect("no panic").push(report.last_error);
            // The second time within the connection, while it follows.
            match tries.fetch_add(1, Relaxed) {
                0 => panic!("asked to panic"),
                1 => {
                    let mut follower = faulty.tap.follow(faulty.settings.buffer);
                    follower.next(&mut Vec::new()).await;
                    panic!("asked to panic");
                }
                _ => send(&faulty, &sent_faulty).await,
            }
        };
        let encoder = async {
            for second in 0..SECONDS {
                tap.put(&[audio(second)]);
                sleep(Duration::from_secs(1)).await;
            }
            tap.set_air(SourceState::Off);
            steady.over.cancel();
            faulty.over.cancel();
        };
        tokio::join!(
            steady.keep(|| send(&steady, &sent_steady)),
            faulty.keep(try_faulty),
            encoder,
        );

        let all: Vec<i64> = (0..SECONDS).collect();
        assert_eq!(*sent_steady.lock().expect("no panic"), all);
        let report = steady.progress.report();
        assert_eq!((report.retries, report.last_error), (0, None));
        // It continues after its two pauses, like one whose target broke off.
        let sent = sent_faulty.lock().expect("no panic");
        assert!(sent.len() >= 4 && all.ends_with(&sent), "{sent:?}");
        let report = faulty.progress.report();
        assert_eq!((report.retries, report.status), (2, OutputStatus::Idle));
        let fault = Some("the output panicked in the service".to_owned());
        assert_eq!(
            *errors.lock().expect("no panic"),
            [None, fault.clone(), fault]
        );
    }
}

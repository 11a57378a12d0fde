//! Task of a branch: one worker process after another, with pauses; units in, checked frames out.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use bytes::BytesMut;
use parking_lot::Mutex;
use sluice_media::{
    av::live::{FromLive, LiveTrack, LiveVideo, MAX_MEDIA, ToLive},
    codec::{AudioConfig, VideoConfig},
    unit::Unit,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::mpsc,
    time::{Instant, MissedTickBehavior, interval, sleep, timeout},
};
use tracing::{debug, info, warn};

use super::{
    BranchOutput, BranchTracks, CpuPercent, Order, Terms,
    output::OutputCheck,
    watchdog::{PATIENCE, Watchdog},
};
use crate::{
    component::doubled,
    compute::{LiveProcess, LiveStartError},
};

/// The only encoder of a branch's video.
const ENCODER: u8 = 0;
/// Bounds of its frames.
const MOST_WIDTH: u16 = 1_920;
const MOST_HEIGHT: u16 = 1_080;
const MOST_RATE: u16 = 60;
/// Bits per second of Opus.
const AUDIO_BITRATE: u32 = 96_000;
/// Bytes of one read from the process.
const READ_BYTES: usize = 256 << 10;
/// Pause before a process is replaced: the first, and the longest.
const PAUSE_FIRST: Duration = Duration::from_millis(200);
const PAUSE_LONGEST: Duration = Duration::from_secs(10);
/// Run time after which failures are forgotten.
const STEADY_AFTER: Duration = Duration::from_secs(30);
/// Interval of the watchdog.
const WATCH_EVERY: Duration = Duration::from_millis(250);
/// Interval at which processor time is read.
const CPU_EVERY: Duration = Duration::from_secs(2);
/// Longest time for a process whose socket is closed to end by itself.
const END_WITHIN: Duration = Duration::from_millis(500);

/// Bytes that a unit holds while it waits.
pub(super) fn bytes_of(unit: &Unit) -> usize {
    usize::try_from(unit.media_len()).unwrap_or(usize::MAX)
}

/// Messages of the handle.
pub(super) struct Incoming {
    orders: mpsc::Receiver<Order>,
    waiting_bytes: Arc<AtomicUsize>,
}

impl Incoming {
    pub fn new(orders: mpsc::Receiver<Order>, waiting_bytes: Arc<AtomicUsize>) -> Self {
        Self {
            orders,
            waiting_bytes,
        }
    }

    /// Returns the next message; `None` when the handle is gone.
    async fn next(&mut self) -> Option<Order> {
        let order = self.orders.recv().await?;
        if let Order::Unit { unit, .. } = &order {
            self.waiting_bytes.fetch_sub(bytes_of(unit), Relaxed);
        }
        Some(order)
    }
}

/// Arguments that a process is started with.
#[derive(Default)]
struct Source {
    tracks: BranchTracks,
    video: Option<Arc<VideoConfig>>,
    audio: Option<Arc<AudioConfig>>,
}

impl Source {
    /// Notes what a later process must know.
    fn note(&mut self, order: &Order) {
        match order {
            Order::Want(tracks) => self.tracks = *tracks,
            Order::Unit { unit, .. } => match unit {
                Unit::VideoConfig(config) => self.video = Some(config.clone()),
                Unit::AudioConfig(config) => self.audio = Some(config.clone()),
                Unit::Video(_) | Unit::Audio(_) => {}
            },
            Order::WantKeyFrame => {}
        }
    }
}

/// Reason why a process is not used any more.
enum End {
    /// The branch is dropped.
    Unwanted,
    /// Its socket was closed: it says why.
    Closed,
    /// It is killed.
    Given(String),
    /// No process can do better.
    Undecodable(String),
}

/// See the module documentation.
pub(super) struct BranchTask {
    terms: Arc<Terms>,
    source: Source,
    incoming: Incoming,
    outputs: mpsc::Sender<BranchOutput>,
    cpu: Arc<CpuPercent>,
}

impl BranchTask {
    pub fn new(
        terms: Arc<Terms>,
        tracks: BranchTracks,
        incoming: Incoming,
        outputs: mpsc::Sender<BranchOutput>,
        cpu: Arc<CpuPercent>,
    ) -> Self {
        Self {
            terms,
            source: Source {
                tracks,
                ..Source::default()
            },
            incoming,
            outputs,
            cpu,
        }
    }

    /// Runs until the branch is dropped, or until no process can help.
    pub async fn run(mut self) {
        let mut failures = 0_u32;
        loop {
            let started = Instant::now();
            let reason = match LiveProcess::start(&self.terms.launch, self.terms.sandbox).await {
                Ok((process, socket)) => match self.serve(process, socket).await {
                    Some(reason) => reason,
                    None => return,
                },
                Err(LiveStartError::Failed(reason)) => reason,
                Err(LiveStartError::Impossible(reason)) => {
                    warn!(reason, "no stream is re-encoded for WebRTC");
                    return;
                }
            };
            failures = match started.elapsed() > STEADY_AFTER {
                true => 1,
                false => failures + 1,
            };
            let pause = doubled(PAUSE_FIRST, PAUSE_LONGEST, failures);
            warn!(reason, ?pause, "a live worker is replaced");
            let _ = self.outputs.try_send(BranchOutput::Replaced { reason });
            if self.pause(pause).await.is_none() {
                return;
            }
        }
    }

    /// Waits, and drops units meanwhile; `None` when the handle is gone.
    async fn pause(&mut self, pause: Duration) -> Option<()> {
        let until = sleep(pause);
        tokio::pin!(until);
        loop {
            tokio::select! {
                () = &mut until => return Some(()),
                order = self.incoming.next() => self.source.note(&order?),
            }
        }
    }

    /// Serves a process until it ends; returns the reason why another is needed.
    async fn serve(&mut self, process: LiveProcess, socket: UnixStream) -> Option<String> {
        let (reader, writer) = socket.into_split();
        let watchdog = Mutex::new(Watchdog::new(Instant::now()));
        let (wants_key, key_wishes) = mpsc::channel(1);
        let end = {
            let Self {
                terms,
                source,
                incoming,
                outputs,
                cpu,
            } = self;
            tokio::select! {
                end = write(writer, terms, source, incoming, key_wishes, &watchdog) => end,
                end = read(reader, outputs, wants_key, &watchdog) => end,
                end = watch(&watchdog) => end,
                end = measure(&process, cpu) => end,
            }
        };
        self.cpu.set(None);
        let id = process.id();
        match end {
            End::Unwanted => None,
            End::Closed => Some(
                timeout(END_WITHIN, process.end())
                    .await
                    .unwrap_or_else(|_| "it closed its socket".into()),
            ),
            End::Given(reason) => Some(reason),
            End::Undecodable(reason) => {
                info!(
                    process = id,
                    reason, "a stream cannot be re-encoded for WebRTC"
                );
                None
            }
        }
    }
}

/// Sends the source to the process.
async fn write(
    mut socket: OwnedWriteHalf,
    terms: &Terms,
    source: &mut Source,
    incoming: &mut Incoming,
    mut key_wishes: mpsc::Receiver<()>,
    watchdog: &Mutex<Watchdog>,
) -> End {
    let mut bytes = Vec::new();
    put_start(terms, source.tracks, BranchTracks::default(), &mut bytes);
    for config in [
        source.video.clone().map(Unit::VideoConfig),
        source.audio.clone().map(Unit::AudioConfig),
    ] {
        if let Some(message) = config.and_then(|unit| message(&unit, false)) {
            message.encode(&mut bytes);
        }
    }
    loop {
        match timeout(PATIENCE, socket.write_all(&bytes)).await {
            Ok(Ok(())) => bytes.clear(),
            Ok(Err(_)) => return End::Closed,
            Err(_) => return End::Given("it reads nothing".into()),
        }
        let order = tokio::select! {
            order = incoming.next() => match order {
                Some(order) => order,
                None => return End::Unwanted,
            },
            Some(()) = key_wishes.recv() => Order::WantKeyFrame,
        };
        let before = source.tracks;
        source.note(&order);
        match order {
            Order::Want(tracks) => put_start(terms, tracks, before, &mut bytes),
            Order::WantKeyFrame if source.tracks.video => {
                ToLive::WantKeyFrame(ENCODER).encode(&mut bytes);
            }
            Order::WantKeyFrame => {}
            Order::Unit { unit, is_old } => {
                if let Some(message) = message(&unit, is_old) {
                    message.encode(&mut bytes);
                    let mut watchdog = watchdog.lock();
                    match unit {
                        Unit::Video(_) => watchdog.sent_video(Instant::now()),
                        Unit::Audio(_) => watchdog.sent_audio(Instant::now()),
                        Unit::VideoConfig(_) | Unit::AudioConfig(_) => {}
                    }
                }
            }
        }
    }
}

/// Starts and stops encoders.
fn put_start(terms: &Terms, tracks: BranchTracks, before: BranchTracks, out: &mut Vec<u8>) {
    if tracks.video && !before.video {
        let work = LiveVideo {
            max_width: MOST_WIDTH,
            max_height: MOST_HEIGHT,
            max_rate: MOST_RATE,
            max_bitrate: terms.max_bitrate,
        };
        let encoder = ENCODER;
        ToLive::StartVideo { encoder, work }.encode(out);
    }
    if before.video && !tracks.video {
        ToLive::StopVideo(ENCODER).encode(out);
    }
    if tracks.audio && !before.audio {
        let bitrate = AUDIO_BITRATE;
        ToLive::StartAudio { bitrate }.encode(out);
    }
    if before.audio && !tracks.audio {
        ToLive::StopAudio.encode(out);
    }
}

/// Returns the message of a unit; `None` for one that is larger than a frame may be.
fn message(unit: &Unit, is_old: bool) -> Option<ToLive> {
    (bytes_of(unit) <= MAX_MEDIA).then(|| match unit {
        Unit::VideoConfig(config) => ToLive::VideoConfig {
            codec: config.codec,
            record: config.record.clone(),
        },
        Unit::AudioConfig(config) => ToLive::AudioConfig {
            codec: config.codec,
            record: config.record.clone(),
        },
        Unit::Video(frame) => ToLive::Video {
            key: frame.key,
            is_old,
            dts_90k: frame.dts_90k,
            cts_90k: frame.cts_90k,
            data: frame.data.clone(),
        },
        Unit::Audio(frame) => ToLive::Audio {
            pts_90k: frame.pts_90k,
            data: frame.data.clone(),
        },
    })
}

/// Passes on what the process makes.
async fn read(
    mut socket: OwnedReadHalf,
    outputs: &mpsc::Sender<BranchOutput>,
    wants_key: mpsc::Sender<()>,
    watchdog: &Mutex<Watchdog>,
) -> End {
    let mut passing = Passing {
        outputs,
        wants_key,
        check: OutputCheck::default(),
        waits_for_key: false,
    };
    let mut input = BytesMut::new();
    loop {
        input.reserve(READ_BYTES);
        match socket.read_buf(&mut input).await {
            Ok(0) | Err(_) => return End::Closed,
            Ok(_) => {}
        }
        loop {
            match FromLive::decode(&mut input) {
                Ok(Some(message)) => {
                    if let Err(end) = passing.pass(message, watchdog) {
                        return end;
                    }
                }
                Ok(None) => break,
                Err(malformed) => return End::Given(malformed.to_string()),
            }
        }
    }
}

struct Passing<'t> {
    outputs: &'t mpsc::Sender<BranchOutput>,
    wants_key: mpsc::Sender<()>,
    check: OutputCheck,
    /// True after a frame that did not fit.
    waits_for_key: bool,
}

impl Passing<'_> {
    fn pass(&mut self, message: FromLive, watchdog: &Mutex<Watchdog>) -> Result<(), End> {
        let odd = |what: String| End::Given(format!("it made {what}"));
        match message {
            FromLive::Video {
                encoder,
                key,
                pts_90k,
                data,
            } => {
                if encoder != ENCODER {
                    return Err(odd("frames of no encoder".into()));
                }
                self.check.video(key, pts_90k, &data).map_err(odd)?;
                watchdog.lock().made_video(Instant::now());
                self.waits_for_key &= !key;
                let output = BranchOutput::Video { key, pts_90k, data };
                if self.waits_for_key || self.outputs.try_send(output).is_err() {
                    // A relay that does not keep up begins with a key frame again.
                    self.waits_for_key = true;
                    let _ = self.wants_key.try_send(());
                }
            }
            FromLive::Audio { pts_90k, data } => {
                self.check.audio(pts_90k, &data).map_err(odd)?;
                let _ = self.outputs.try_send(BranchOutput::Audio { pts_90k, data });
            }
            FromLive::Progress(progress) => {
                let frames = watchdog.lock().heard(progress, Instant::now());
                if frames > 0 {
                    let _ = self.outputs.try_send(BranchOutput::Dropped { frames });
                }
            }
            FromLive::Undecodable {
                track: LiveTrack::Video,
                reason,
            } => return Err(End::Undecodable(reason)),
            FromLive::Undecodable {
                track: LiveTrack::Audio,
                reason,
            } => info!(
                reason,
                "the audio of a stream cannot be re-encoded for WebRTC"
            ),
        }
        Ok(())
    }
}

async fn watch(watchdog: &Mutex<Watchdog>) -> End {
    let mut ticks = interval(WATCH_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Some(reason) = watchdog.lock().verdict(Instant::now()) {
            return End::Given(reason.into());
        }
    }
}

/// Publishes the share of a core that the process uses.
async fn measure(process: &LiveProcess, cpu: &CpuPercent) -> End {
    let (mut used, mut at) = (process.processor_time(), Instant::now());
    if used.is_none() {
        debug!(process = process.id(), "its processor time is not reported");
        return pending().await;
    }
    loop {
        sleep(CPU_EVERY).await;
        let now = (process.processor_time(), Instant::now());
        let percent = now.0.zip(used).map(|(now_used, used)| {
            let seconds = (now.1 - at).as_secs_f32().max(0.001);
            now_used.saturating_sub(used).as_secs_f32() / seconds * 100.0
        });
        cpu.set(percent);
        (used, at) = now;
    }
}

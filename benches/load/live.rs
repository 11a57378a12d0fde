//! Scenario `live`: N publishers of one file, M low-latency HLS viewers, and the cost of both. RTMP is sent by the
//! harness itself, SRT by ffmpeg with the address that a user would paste; of SRT the gateway's cost counts too, and no
//! part is timed.
//!
//! Two phases on the same broadcasts: *watched*, with a watcher on every stream and the viewers, gives the times of
//! parts; *unwatched*, with the publishers alone, gives the cost of a stream. A peer gets the second phase.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use clap::{Args, ValueEnum};
use sluice_testkit::{
    Failure,
    flv::Clip,
    process::{Figures, Server},
    publisher::Target,
};
use tokio::{
    process::Command,
    runtime::{Builder, Runtime},
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    clip, peer,
    publisher::{self, SendLog},
    report::{self, Span},
    service::{Input, Service},
    viewer::{self, Timings, Traffic},
};

/// Publishers start spread over one key-frame interval of the clip, as unrelated encoders would.
const SPREAD: Duration = Duration::from_secs(2);
/// After viewers left or publishers came: what is in progress ends.
const SETTLE: Duration = Duration::from_secs(3);
/// Seconds that the media playlist lists by default.
const WINDOW_SECONDS: u64 = 20;
const STOP_DEADLINE: Duration = Duration::from_secs(15);
/// Niceness by which the viewers are less urgent than encoders, the server and the watchers.
const VIEWERS_NICENESS: i32 = 10;

#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// Protocol of the publishers.
    #[arg(long, value_enum, default_value_t = Protocol::Rtmp)]
    protocol: Protocol,
    /// Records every broadcast.
    #[arg(long)]
    record: bool,
    /// Publishers, each to an input of its own.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=500))]
    publishers: u16,
    /// Viewers, spread over the streams.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(0..=2000))]
    viewers: u16,
    /// Length of each measured phase.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(5..=600))]
    seconds: u64,
    /// Bit rate of each publisher, frame and audio together: 6M, 1M, 800k.
    #[arg(long, default_value = "6M", value_parser = bitrate)]
    bitrate: u64,
    /// Runs this server beside it with the same publishers.
    #[arg(long)]
    peer: Option<Peer>,
    /// The program to measure.
    #[arg(long, default_value = "target/release/sluice")]
    program: PathBuf,
    /// Measures only the peer.
    #[arg(long, requires = "peer")]
    only_peer: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Protocol {
    Rtmp,
    Srt,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Peer {
    Nginx,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            protocol: Protocol::Rtmp,
            record: false,
            publishers: 10,
            viewers: 10,
            seconds: 30,
            bitrate: 6_000_000,
            peer: None,
            program: "target/release/sluice".into(),
            only_peer: false,
        }
    }
}

/// Runs the scenario and prints its figures.
pub(crate) async fn run(options: &Options) -> Result<(), Failure> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = root.join("target/load");
    std::fs::create_dir_all(&folder)?;
    let clip = clip::obtain(&folder, options.bitrate)?;
    println!(
        "live: {} publishers ({:?}{}) of {:.1} Mbit/s, {} viewers, phases of {} s",
        options.publishers,
        options.protocol,
        if options.record { ", recorded" } else { "" },
        options.bitrate as f64 / 1e6,
        options.viewers,
        options.seconds,
    );
    if !options.only_peer {
        let scratch = tempfile::TempDir::new_in(&folder)?;
        measure_service(options, &root.join(&options.program), scratch.path(), &clip).await?;
    }
    if let Some(Peer::Nginx) = options.peer {
        let scratch = tempfile::TempDir::new_in(&folder)?;
        measure_nginx(options, root, scratch.path(), &clip).await?;
    }
    Ok(())
}

async fn measure_service(
    options: &Options,
    program: &Path,
    folder: &Path,
    clip: &Arc<Clip>,
) -> Result<(), Failure> {
    let service = Service::start(program, folder).await?;
    let record_mode = if options.record { "automatic" } else { "off" };
    let inputs = service
        .create_inputs(options.publishers.into(), record_mode)
        .await?;
    sleep(SETTLE).await;
    let idle = look(&service.server, options)?;

    // Watchers wait for their streams, so that they see the first part of each.
    let mut audience = Audience::gather(&inputs, options.viewers.into())?;
    let publishers = match options.protocol {
        Protocol::Rtmp => {
            let targets = inputs.iter().map(|input| input.target.clone());
            Publishers::start(targets, clip, &audience.logs)
        }
        Protocol::Srt => {
            let file = clip::transport_stream(folder.parent().unwrap_or(folder), options.bitrate)?;
            Publishers::start_srt(&inputs, &file)
        }
    };
    sleep(SPREAD + SETTLE).await;
    let watched = span(&service.server, options, &publishers).await?;
    let (mut timings, traffic) = audience.leave().await?;

    sleep(SETTLE).await;
    let unwatched = span(&service.server, options, &publishers).await?;
    let worst_lag = publishers.stop().await?;

    report::cpu(
        "sluice, with a watcher on every stream and the viewers",
        &watched,
        inputs.len(),
    );
    if options.protocol == Protocol::Rtmp {
        report::timings(&mut timings);
    }
    report::traffic(&traffic, options.viewers.into(), watched.lasted);
    report::cpu("sluice, publishers alone", &unwatched, inputs.len());
    let media_kib = options.bitrate / 8 * WINDOW_SECONDS / 1024;
    report::memory(&idle, &unwatched.after, inputs.len(), Some(media_kib));
    println!(
        "  (the harness sent its latest frame {:.0} ms after it was due)",
        worst_lag.as_secs_f64() * 1000.0
    );
    Ok(())
}

async fn measure_nginx(
    options: &Options,
    root: &Path,
    folder: &Path,
    clip: &Arc<Clip>,
) -> Result<(), Failure> {
    let (server, targets) = peer::start(root, folder, options.publishers.into()).await?;
    sleep(SETTLE).await;
    let idle: Figures = server.figures()?;
    let logs: Vec<_> = targets.iter().map(|_| Arc::default()).collect();
    let publishers = Publishers::start(targets.iter().cloned(), clip, &logs);
    sleep(SPREAD + SETTLE).await;
    let alone = span(&server, options, &publishers).await?;
    publishers.stop().await?;
    report::cpu("nginx-rtmp, publishers alone", &alone, targets.len());
    report::memory(&idle, &alone.after, targets.len(), None);
    Ok(())
}

/// Looks at the server at both ends of a phase. A publisher that ends inside it makes the figures worthless.
async fn span(
    server: &Server,
    options: &Options,
    publishers: &Publishers,
) -> Result<Span, Failure> {
    let started = Instant::now();
    let before = look(server, options)?;
    sleep(Duration::from_secs(options.seconds)).await;
    let after = look(server, options)?;
    publishers.check()?;
    Ok(Span {
        before,
        after,
        lasted: started.elapsed(),
    })
}

/// SRT has a process of its own.
fn look(server: &Server, options: &Options) -> Result<Figures, Failure> {
    match options.protocol {
        Protocol::Rtmp => server.figures(),
        Protocol::Srt => server.tree_figures(),
    }
}

/// All publishers of a run.
pub(crate) struct Publishers {
    tasks: Vec<tokio::task::JoinHandle<Result<(), Failure>>>,
    logs: Vec<Arc<SendLog>>,
    stop: CancellationToken,
}

impl Publishers {
    pub(crate) fn start(
        targets: impl ExactSizeIterator<Item = Target>,
        clip: &Arc<Clip>,
        logs: &[Arc<SendLog>],
    ) -> Self {
        let stop = CancellationToken::new();
        let step = SPREAD / targets.len() as u32;
        let tasks = targets
            .zip(logs)
            .enumerate()
            .map(|(number, (target, log))| {
                let (clip, log, stop) = (Arc::clone(clip), Arc::clone(log), stop.clone());
                tokio::spawn(async move {
                    sleep(step * number as u32).await;
                    publisher::publish(&target, &clip, &log, &stop).await
                })
            })
            .collect();
        Self {
            tasks,
            logs: logs.to_vec(),
            stop,
        }
    }

    /// Starts an ffmpeg each, which sends the file again and again unchanged.
    fn start_srt(inputs: &[Input], file: &Path) -> Self {
        let stop = CancellationToken::new();
        let step = SPREAD / inputs.len() as u32;
        let tasks = inputs.iter().zip(0..).map(|(input, number)| {
            let mut command = Command::new("ffmpeg");
            command
                .args(["-nostdin", "-v", "error", "-re", "-stream_loop", "-1", "-i"])
                .arg(file)
                .args(["-c", "copy", "-f", "mpegts", &input.srt_url])
                .kill_on_drop(true);
            let stop = stop.clone();
            tokio::spawn(async move {
                sleep(step * number).await;
                let mut sending = command.spawn()?;
                tokio::select! {
                    ended = sending.wait() => Err(format!("ffmpeg ended: {}", ended?).into()),
                    () = stop.cancelled() => Ok(sending.kill().await?),
                }
            })
        });
        Self {
            tasks: tasks.collect(),
            logs: Vec::new(),
            stop,
        }
    }

    pub(crate) fn check(&self) -> Result<(), Failure> {
        let ended = self.tasks.iter().filter(|task| task.is_finished()).count();
        if ended > 0 {
            return Err(format!("{ended} of {} publishers ended early", self.tasks.len()).into());
        }
        Ok(())
    }

    /// Ends all broadcasts; gives the harness's own worst delay.
    pub(crate) async fn stop(self) -> Result<Duration, Failure> {
        self.stop.cancel();
        for task in self.tasks {
            timeout(STOP_DEADLINE, task).await???;
        }
        Ok(self
            .logs
            .iter()
            .map(|log| log.worst_lag())
            .max()
            .unwrap_or_default())
    }
}

/// A watcher for every stream, and the viewers.
struct Audience {
    logs: Vec<Arc<SendLog>>,
    watchers: JoinSet<Result<Timings, Failure>>,
    viewers: JoinSet<Result<(), Failure>>,
    elsewhere: Elsewhere,
    traffic: Arc<Traffic>,
    stop: CancellationToken,
}

/// Threads for the viewers, which would have machines of their own: they take what processor time is left, so that a
/// thousand of them hold up neither the sending of frames nor the clock that times their parts.
struct Elsewhere(Option<Runtime>);

impl Elsewhere {
    fn new() -> Result<Self, Failure> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .on_thread_start(|| {
                // Linux keeps niceness per thread. Raising it needs no privilege.
                let _ = rustix::process::nice(VIEWERS_NICENESS);
            })
            .enable_all()
            .build()?;
        Ok(Self(Some(runtime)))
    }

    fn handle(&self) -> &tokio::runtime::Handle {
        self.0.as_ref().expect("taken by the drop only").handle()
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        // Waiting for its threads is not allowed on a thread of another runtime.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Audience {
    fn gather(inputs: &[Input], viewers: usize) -> Result<Self, Failure> {
        let mut audience = Self {
            elsewhere: Elsewhere::new()?,
            logs: inputs.iter().map(|_| Arc::default()).collect(),
            watchers: JoinSet::new(),
            viewers: JoinSet::new(),
            traffic: Arc::default(),
            stop: CancellationToken::new(),
        };
        for (input, log) in inputs.iter().zip(&audience.logs) {
            let (playback, log, stop) = (
                input.playback.clone(),
                Arc::clone(log),
                audience.stop.clone(),
            );
            audience
                .watchers
                .spawn(async move { viewer::watch(&playback, &log, &stop).await });
        }
        for input in inputs.iter().cycle().take(viewers) {
            let (playback, stop) = (input.playback.clone(), audience.stop.clone());
            let traffic = Arc::clone(&audience.traffic);
            audience.viewers.spawn_on(
                async move { viewer::view(&playback, traffic, &stop).await },
                audience.elsewhere.handle(),
            );
        }
        Ok(audience)
    }

    /// Ends all viewers; returns what they measured.
    async fn leave(&mut self) -> Result<(Timings, Arc<Traffic>), Failure> {
        self.stop.cancel();
        let mut timings = Timings::default();
        while let Some(seen) = timeout(STOP_DEADLINE, self.watchers.join_next()).await? {
            timings.merge(seen??);
        }
        while let Some(ended) = timeout(STOP_DEADLINE, self.viewers.join_next()).await? {
            ended??;
        }
        Ok((timings, Arc::clone(&self.traffic)))
    }
}

/// Reads `6M`, `800k` or a plain number of bits per second.
fn bitrate(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.strip_suffix(['M', 'm']) {
        Some(digits) => (digits, 1_000_000),
        None => text
            .strip_suffix(['k', 'K'])
            .map_or((text, 1), |digits| (digits, 1000)),
    };
    match digits
        .parse::<u64>()
        .map(|number| number.saturating_mul(unit))
    {
        Ok(bps @ 300_000..=50_000_000) => Ok(bps),
        _ => Err(format!("expected a bitrate from 300k to 50M, got `{text}`")),
    }
}

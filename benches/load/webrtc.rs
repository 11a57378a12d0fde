//! Scenario `web-rtc`: one RTMP publisher without B-frames and N viewers by WebRTC, and what a viewer costs. Viewers come one
//! after the other, so that the times of their first frames are those of single joins at random places of a group.
//!
//! A peer gets the same stream as RTP packets from ffmpeg, and the same viewers.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use clap::{Args, ValueEnum};
use sluice_testkit::{
    Failure,
    process::{self, Figures, Server, free_port},
    webrtc::{Crowd, Seat},
};
use tokio::time::sleep;

use crate::{clip, live::Publishers, service::Service};

/// Built by `scripts/install.sh peers`.
const PION: &str = "target/tools/pion/pion";
/// Fetched by `scripts/install.sh test`.
const FFMPEG: &str = "target/tools/ffmpeg/ffmpeg";
const SETTLE: Duration = Duration::from_secs(3);
/// Pause between two joins, which is no divisor of the key-frame interval.
const BETWEEN_JOINS: Duration = Duration::from_millis(130);
const JOINED_WITHIN: Duration = Duration::from_secs(20);
/// Largest payload of ffmpeg's packets, as ours.
const PACKET_BYTES: u32 = 1_200;

#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
    viewers: u16,
    /// Length of each measured phase.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(5..=600))]
    seconds: u64,
    /// Bits a second of the stream.
    #[arg(long, default_value_t = 6_000_000)]
    bitrate: u64,
    /// Runs this server after it with the same stream and viewers.
    #[arg(long)]
    peer: Option<Peer>,
    /// The program to measure.
    #[arg(long, default_value = "target/release/sluice")]
    program: PathBuf,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Peer {
    Pion,
}

/// Runs the scenario and prints its figures.
pub(crate) async fn run(options: &Options) -> Result<(), Failure> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = root.join("target/load");
    std::fs::create_dir_all(&folder)?;
    println!(
        "webrtc: {} viewers of {:.1} Mbit/s, phases of {} s",
        options.viewers,
        options.bitrate as f64 / 1e6,
        options.seconds,
    );
    let scratch = tempfile::TempDir::new_in(&folder)?;
    measure_service(
        options,
        &root.join(&options.program),
        scratch.path(),
        &folder,
    )
    .await?;
    if let Some(Peer::Pion) = options.peer {
        measure_pion(options, root, scratch.path(), &folder).await?;
    }
    Ok(())
}

async fn measure_service(
    options: &Options,
    program: &Path,
    scratch: &Path,
    clips: &Path,
) -> Result<(), Failure> {
    let (clip, _) = clip::obtain_in_order(clips, options.bitrate)?;
    let settings = [
        ("SLUICE_WEBRTC__MAX_PENDING_PER_ADDRESS", "1000"),
        ("SLUICE_WEBRTC__MAX_PENDING", "1000"),
    ];
    let service = Service::start_with(program, scratch, &settings).await?;
    let inputs = service.create_inputs(1, "off").await?;
    let input = &inputs[0];
    let publishers =
        Publishers::start([input.target.clone()].into_iter(), &clip, &[Arc::default()]);
    sleep(SETTLE * 2).await;
    let url = format!("http://{}{}whep", service.address(), input.playback.folder);
    let root = service.server.process_id();
    let gateway = process::descendant(root, "rtc-gateway").ok_or("no WebRTC gateway")?;
    // One viewer stays, so that reading at once and the re-encoding of audio are in both phases.
    let first = Crowd::new();
    first.join(&url).await?;
    sleep(SETTLE).await;
    let look = || (process::tree_figures(root), process::tree_figures(gateway));
    let alone = phase(options, look).await;
    let crowd = gather(&url, options.viewers).await?;
    sleep(SETTLE).await;
    let seats = crowd.seats();
    let watched = phase(options, look).await;
    let traffic = Traffic::between(&seats, &crowd.seats(), watched.lasted);
    publishers.check()?;
    drop((crowd, first));
    publishers.stop().await?;

    let viewers = f64::from(options.viewers);
    println!("sluice");
    row(
        "gateway, CPU of a viewer",
        (watched.gateway - alone.gateway) / viewers,
    );
    row(
        "all processes, CPU of a viewer",
        (watched.all - alone.all) / viewers,
    );
    row("all processes, CPU with one viewer", alone.all);
    let grown = watched
        .end
        .1
        .resident_kib
        .saturating_sub(alone.end.1.resident_kib);
    println!(
        "  gateway, memory of a viewer      {:.0} kB",
        grown as f64 / viewers
    );
    traffic.print(options.viewers);
    print_joins(&seats);
    Ok(())
}

async fn measure_pion(
    options: &Options,
    root: &Path,
    scratch: &Path,
    clips: &Path,
) -> Result<(), Failure> {
    let program = root.join(PION);
    if !program.exists() {
        return Err(format!("{PION} is missing: run scripts/install.sh peers").into());
    }
    let (_, file) = clip::obtain_in_order(clips, options.bitrate)?;
    let (port, input) = (free_port()?, free_port()?);
    let mut command = Command::new(program);
    command.args([port.to_string(), input.to_string()]);
    let server = Server::start("pion", &mut command, &scratch.join("pion.log"))?;
    // Debian's ffmpeg 5.1 ends its bitstream filters where a file begins again.
    let mut sending = Command::new(root.join(FFMPEG));
    sending
        .args(["-nostdin", "-v", "error", "-re", "-stream_loop", "-1", "-i"])
        .arg(file)
        .args(["-an", "-c:v", "copy", "-bsf:v", "h264_mp4toannexb"])
        .args(["-f", "rtp", "-payload_type", "96"])
        .arg(format!("rtp://127.0.0.1:{input}?pkt_size={PACKET_BYTES}"));
    let encoder = Server::start("ffmpeg", &mut sending, &scratch.join("ffmpeg.log"))?;
    sleep(SETTLE).await;
    let url = format!("http://127.0.0.1:{port}/whep");
    let first = Crowd::new();
    first.join(&url).await?;
    sleep(SETTLE).await;
    let own = server.process_id();
    let look = || (process::tree_figures(own), process::tree_figures(own));
    let alone = phase(options, look).await;
    let crowd = gather(&url, options.viewers).await?;
    sleep(SETTLE).await;
    let seats = crowd.seats();
    let watched = phase(options, look).await;
    let traffic = Traffic::between(&seats, &crowd.seats(), watched.lasted);
    encoder.figures()?;

    let viewers = f64::from(options.viewers);
    println!("Pion");
    row("CPU of a viewer", (watched.all - alone.all) / viewers);
    let grown = watched
        .end
        .0
        .resident_kib
        .saturating_sub(alone.end.0.resident_kib);
    println!(
        "  memory of a viewer               {:.0} kB",
        grown as f64 / viewers
    );
    traffic.print(options.viewers);
    print_joins(&seats);
    Ok(())
}

/// Joins viewers one after the other, and waits until each has a frame.
async fn gather(url: &str, viewers: u16) -> Result<Crowd, Failure> {
    let crowd = Crowd::new();
    for _ in 0..viewers {
        crowd.join(url).await?;
        sleep(BETWEEN_JOINS).await;
    }
    let started = Instant::now();
    loop {
        let waiting = crowd.seats().iter().filter(|seat| seat.frames == 0).count();
        if waiting == 0 {
            return Ok(crowd);
        }
        if started.elapsed() > JOINED_WITHIN {
            return Err(format!("{waiting} of {viewers} viewers have no frame").into());
        }
        sleep(Duration::from_millis(50)).await;
    }
}

/// CPU of a phase as shares of a core, in percent.
struct Phase {
    all: f64,
    gateway: f64,
    end: (Figures, Figures),
    lasted: Duration,
}

async fn phase(options: &Options, look: impl Fn() -> (Figures, Figures)) -> Phase {
    let (started, before) = (Instant::now(), look());
    sleep(Duration::from_secs(options.seconds)).await;
    let (lasted, end) = (started.elapsed(), look());
    let percent = |after: &Figures, before: &Figures| {
        100.0 * after.cpu.saturating_sub(before.cpu).as_secs_f64() / lasted.as_secs_f64()
    };
    Phase {
        all: percent(&end.0, &before.0),
        gateway: percent(&end.1, &before.1),
        end,
        lasted,
    }
}

/// Counts of what all viewers received in a phase.
struct Traffic {
    packets: u64,
    lost: u64,
    frames: u64,
    bytes: u64,
    over: usize,
    lasted: Duration,
}

impl Traffic {
    fn between(before: &[Seat], after: &[Seat], lasted: Duration) -> Self {
        let sum = |of: fn(&Seat) -> u64| {
            let total = |seats: &[Seat]| seats.iter().map(of).sum::<u64>();
            total(after) - total(before)
        };
        Self {
            packets: sum(|seat| seat.video_packets),
            lost: sum(|seat| seat.lost_packets),
            frames: sum(|seat| seat.frames),
            bytes: sum(|seat| seat.bytes),
            over: after.iter().filter(|seat| seat.is_over).count(),
            lasted,
        }
    }

    fn print(&self, viewers: u16) {
        let each = |count: u64| count as f64 / self.lasted.as_secs_f64() / f64::from(viewers);
        println!(
            "  each viewer received             {:.0} video packets/s, {:.1} frames/s, {:.2} Mbit/s",
            each(self.packets),
            each(self.frames),
            each(self.bytes) * 8e-6,
        );
        println!(
            "  lost                             {} of {} packets; {} viewers ended",
            self.lost,
            self.packets + self.lost,
            self.over
        );
    }
}

fn row(what: &str, percent: f64) {
    println!("  {what:<32} {percent:.3} % of a core");
}

fn print_joins(seats: &[Seat]) {
    let times = |of: fn(&Seat) -> Option<Duration>| {
        let mut times: Vec<Duration> = seats.iter().filter_map(of).collect();
        times.sort_unstable();
        let at = |share: usize| {
            let time = times.get(times.len() * share / 100).or(times.last());
            time.copied().unwrap_or_default().as_millis()
        };
        format!("median {} ms, 95 % {} ms", at(50), at(95))
    };
    println!(
        "  from offer to connection         {}",
        times(|seat| seat.connected)
    );
    println!(
        "  from offer to the first frame    {}",
        times(|seat| seat.first_frame)
    );
}

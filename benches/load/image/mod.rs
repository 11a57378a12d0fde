//! Image scenarios: delivery from the cache, delivery of variants that are rendered first, and conversion.
//!
//! Servers of one run are started side by side and loaded in turn, round by round, so that other load of the machine
//! affects all of them. CPU and memory are of all processes of a server.

mod contestant;
mod conversion;
mod crops;
mod equal;
mod measure;

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use clap::{Args, ValueEnum};
use sluice_testkit::{Failure, process};

pub(crate) use self::{
    contestant::nginx,
    conversion::{Options as ConvertOptions, run as convert},
    crops::Crops,
    equal::{Options as EqualOptions, run as equal},
    measure::Measurement,
};
use self::{
    contestant::{Contestant, Variant},
    measure::{Work, round},
};
use crate::{http::Client, report, service::workplace};

const QUALITY: u8 = 80;
/// libwebp's method, as the service sets it: where a client waits for a page, and where a file is kept.
const FAST_WEBP: u8 = 2;
const BALANCED_WEBP: u8 = 4;
/// Width of the most frequent delivery: a card, an article's image.
const WIDTH: u32 = 512;
/// An `srcset`, in the order in which a page with many visitors meets it: any.
const LADDER: [u32; 8] = [640, 1280, 320, 960, 1920, 480, 1600, 800];

#[derive(Clone, Debug, Args)]
pub(crate) struct HitOptions {
    /// Seconds of each turn.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=60))]
    seconds: u64,
    /// Turns of each server.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=20))]
    rounds: u8,
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1000))]
    connections: u16,
    /// The program to measure.
    #[arg(long, default_value = "target/release/sluice")]
    program: PathBuf,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct MissOptions {
    /// Turns of each server.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=20))]
    rounds: u8,
    /// Photographs of a turn; by default 100, and 25 of the ladder.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=100))]
    images: Option<u16>,
    /// Only this output format; by default both.
    #[arg(long)]
    format: Option<Target>,
    /// At a time; as many as there are cores keep them busy.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=100))]
    connections: u16,
    /// Runs the installed peers beside it (scripts/install.sh peers).
    #[arg(long)]
    peers: bool,
    /// The program to measure.
    #[arg(long, default_value = "target/release/sluice")]
    program: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Target {
    Jpeg,
    Webp,
}

impl Target {
    fn name(self) -> &'static str {
        match self {
            Self::Jpeg => "jpeg",
            Self::Webp => "webp",
        }
    }
}

/// Measures one image from the cache, again and again, and the same bytes from a file by nginx.
pub(crate) async fn hit(options: &HitOptions) -> Result<(), Failure> {
    let (root, scratch) = workplace()?;
    let mut crops = Crops::obtain(root, ".jpg")?;
    crops.names.truncate(1);
    let variant = Variant {
        width: WIDTH,
        format: "jpeg",
        quality: QUALITY,
    };
    let ours = contestant::sluice(&root.join(&options.program), scratch.path(), &crops).await?;
    let path = ours.path(&crops.names[0], variant)?;
    let answer = Client::new(&ours.address).get(&path).await?;
    if answer.status != 200 {
        return Err(format!("GET {path}: {} {}", answer.status, answer.text()).into());
    }
    let files = scratch.path().join("files");
    std::fs::create_dir_all(&files)?;
    std::fs::write(files.join(&crops.names[0]), &answer.body)?;
    let nginx = contestant::nginx(root, scratch.path(), &files).await?;

    println!(
        "cdn-hit: {} bytes, {} connections, {} turns of {} s each",
        answer.body.len(),
        options.connections,
        options.rounds,
        options.seconds
    );
    let contestants = [ours, nginx];
    let mut measurements = [Measurement::default(), Measurement::default()];
    for _ in 0..options.rounds {
        for (contestant, measurement) in contestants.iter().zip(&mut measurements) {
            let path = contestant.path(&crops.names[0], variant)?;
            let work = Work::Repeat(path, Duration::from_secs(options.seconds));
            let (process, connections) = (contestant.process_id(), options.connections.into());
            round(
                measurement,
                &contestant.address,
                process,
                connections,
                &work,
            )
            .await?;
        }
    }
    report::images(contestants.iter().map(|it| it.name).zip(&measurements));
    Ok(())
}

/// Each photograph once at one width.
pub(crate) async fn miss_unique(options: &MissOptions) -> Result<(), Failure> {
    misses("cdn-miss-unique", options, &[WIDTH], 100).await
}

/// Each photograph at all widths of a ladder.
pub(crate) async fn miss_ladder(options: &MissOptions) -> Result<(), Failure> {
    misses("cdn-miss-ladder", options, &LADDER, 25).await
}

async fn misses(
    title: &str,
    options: &MissOptions,
    widths: &[u32],
    images: u16,
) -> Result<(), Failure> {
    let (root, scratch) = workplace()?;
    let mut crops = Crops::obtain(root, ".jpg")?;
    crops
        .names
        .truncate(options.images.unwrap_or(images).into());
    let program = root.join(&options.program);
    let mut contestants = vec![contestant::sluice(&program, scratch.path(), &crops).await?];
    if options.peers {
        contestants.extend(contestant::peers(root, scratch.path(), &crops).await?);
    }
    for target in [Target::Jpeg, Target::Webp] {
        if options.format.is_some_and(|only| only != target) {
            continue;
        }
        println!(
            "{title}: {} photographs to {} at {widths:?} px, {} turns, {} at a time",
            crops.names.len(),
            target.name(),
            options.rounds,
            options.connections
        );
        let mut measurements: Vec<Measurement> =
            contestants.iter().map(|_| Measurement::default()).collect();
        let mut plain = Measurement::default();
        for _ in 0..options.rounds {
            for (contestant, measurement) in contestants.iter().zip(&mut measurements) {
                turn(contestant, measurement, options, &crops, widths, target).await?;
            }
            let saver = saver(target.name(), FAST_WEBP);
            vipsthumbnail(&mut plain, scratch.path(), &crops, widths, &saver)?;
        }
        let named = contestants.iter().map(|it| it.name).zip(&measurements);
        report::images(named.chain([("vipsthumbnail, one process", &plain)]));
    }
    Ok(())
}

async fn turn(
    contestant: &Contestant,
    measurement: &mut Measurement,
    options: &MissOptions,
    crops: &Crops,
    widths: &[u32],
    target: Target,
) -> Result<(), Failure> {
    contestant.forget().await?;
    let mut paths = Vec::new();
    for name in &crops.names {
        for &width in widths {
            let variant = Variant {
                width,
                format: target.name(),
                quality: QUALITY,
            };
            paths.push(contestant.path(name, variant)?);
        }
    }
    let (process, connections) = (contestant.process_id(), options.connections.into());
    let work = Work::Each(paths);
    round(
        measurement,
        &contestant.address,
        process,
        connections,
        &work,
    )
    .await
}

/// Cuts the photographs, when they are not there yet.
pub(crate) fn photographs() -> Result<(), Failure> {
    let (root, _) = workplace()?;
    println!("{}", Crops::obtain(root, ".jpg")?.folder.display());
    Ok(())
}

/// A plain libvips program over the same files, in one process and thread: what the work costs without a service.
fn vipsthumbnail(
    measurement: &mut Measurement,
    folder: &Path,
    crops: &Crops,
    widths: &[u32],
    saver: &str,
) -> Result<(), Failure> {
    let results = folder.join("vipsthumbnail");
    std::fs::create_dir_all(&results)?;
    for width in widths {
        let (before, started) = (process::cpu_of_ended_children(), Instant::now());
        let status = Command::new("vipsthumbnail")
            .env("VIPS_CONCURRENCY", "1")
            .env("VIPS_WARNING", "0")
            .args(["--size", &format!("{width}x"), "--output"])
            .arg(results.join(saver))
            .args(crops.names.iter().map(|name| crops.folder.join(name)))
            .status();
        match status {
            Ok(status) if status.success() => {}
            Ok(status) => return Err(format!("vipsthumbnail: {status}").into()),
            Err(_) => {
                println!("NOT MEASURED: vipsthumbnail (Debian: libvips-tools)");
                return Ok(());
            }
        }
        measurement.lasted += started.elapsed();
        measurement.cpu += process::cpu_of_ended_children().saturating_sub(before);
        measurement.requests += crops.names.len();
        for entry in std::fs::read_dir(&results)?.flatten() {
            measurement.bytes += entry.metadata()?.len();
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// A result's name, with the settings of libvips that a service has for the format.
fn saver(format: &str, webp_effort: u8) -> String {
    match format {
        "webp" => format!("%s.webp[Q={QUALITY},effort={webp_effort},strip]"),
        // libheif's effort of aom's speed 6, which the planar path has.
        "avif" => format!("%s.avif[Q={QUALITY},effort=3,bitdepth=8,strip]"),
        "png" => "%s.png[compression=6,strip]".to_owned(),
        _ => format!("%s.jpg[Q={QUALITY},optimize_coding,strip]"),
    }
}

//! Scenario `ladder`: one video becomes an HLS asset of the profile `standard`, compared with one ffmpeg command for
//! the same renditions.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use clap::Args;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{Cost, clip, ffmpeg, median, print, print_beside, used};
use sluice_testkit::{Failure, process};

use crate::{
    http::Client,
    service::{Service, with_key, workplace},
    upload::upload,
};

const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The renditions of the profile, from one decode, as [`sluice_media::av`] plans them for 24 frames a second.
const FFMPEG: &[&str] = &[
    "-filter_complex",
    "[0:v]split=3[a][b][c];[a]scale=640:360[x];[b]scale=854:480[y];[c]scale=1280:720[z]",
    "-map",
    "[x]",
    "-map",
    "[y]",
    "-map",
    "[z]",
    "-map",
    "0:a",
    "-c:v",
    "libx264",
    "-preset",
    "veryfast",
    "-g",
    "48",
    "-sc_threshold",
    "0",
    "-b:v:0",
    "700k",
    "-maxrate:v:0",
    "1050k",
    "-bufsize:v:0",
    "1575k",
    "-b:v:1",
    "1220k",
    "-maxrate:v:1",
    "1830k",
    "-bufsize:v:1",
    "2745k",
    "-b:v:2",
    "2450k",
    "-maxrate:v:2",
    "3675k",
    "-bufsize:v:2",
    "5512k",
    "-c:a",
    "copy",
    "result.mp4",
];

#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=20))]
    rounds: u8,
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(10..=600))]
    seconds: u32,
    /// The program to measure.
    #[arg(long, default_value = "target/release/sluice")]
    program: PathBuf,
}

/// Cost of an asset.
struct Made {
    cost: Cost,
    playable: Duration,
    /// The most that all processes held at a time.
    peak_kib: u64,
}

/// Runs the scenario and prints its figures.
pub(crate) async fn run(options: &Options) -> Result<(), Failure> {
    let (root, scratch) = workplace()?;
    let program = root.join(&options.program);
    let service = Service::start(&program, scratch.path()).await?;
    let source = clip::obtain(root, 1080, options.seconds)?;
    let bytes = std::fs::read(&source)?;
    let id = upload(&mut Client::new(service.address()), "clip.mp4", &bytes).await?;
    println!(
        "ladder: {} s of 1920×1080, profile standard, the middle of {} turns",
        options.seconds, options.rounds
    );
    let (mut made, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        made.push(make(&service, &id).await?);
        theirs.push(ffmpeg(scratch.path(), &source, FFMPEG)?);
    }
    let ours: Vec<Cost> = made.iter().map(|it| it.cost).collect();
    print("sluice", median(&ours));
    print("ffmpeg", median(&theirs));
    print_beside(median(&ours), median(&theirs));
    let mut playable: Vec<Duration> = made.iter().map(|it| it.playable).collect();
    playable.sort_unstable();
    println!(
        "  playable after {:.1} s, ready after {:.1} s; at most {:.0} MiB in all processes",
        playable[playable.len() / 2].as_secs_f64(),
        median(&ours).wall.as_secs_f64(),
        made.iter().map(|it| it.peak_kib).max().unwrap_or_default() as f64 / 1024.0,
    );
    Ok(())
}

async fn make(service: &Service, file_id: &str) -> Result<Made, Failure> {
    let mut client = Client::new(service.address());
    let (before, started) = (used(service), Instant::now());
    let body = json!({"sourceFileId": file_id, "profile": "standard"}).to_string();
    let answer = service.post("/api/video/streams", &body).await?;
    let id = answer["stream"]["id"].as_str();
    let path = format!(
        "/api/video/streams/{}",
        id.ok_or_else(|| format!("no stream: {answer}"))?
    );
    let (mut playable, mut peak_kib) = (None, 0);
    loop {
        let stream = stream(&mut client, &path).await?;
        let held = process::tree_figures(service.server.process_id()).proportional_kib;
        peak_kib = peak_kib.max(held);
        if stream["playable"] == true {
            playable.get_or_insert(started.elapsed());
        }
        match stream["status"].as_str() {
            Some("ready") => break,
            Some("pending" | "processing") => sleep(LOOK_AGAIN).await,
            _ => return Err(format!("{path}: {stream}").into()),
        }
    }
    Ok(Made {
        cost: Cost {
            cpu: used(service).saturating_sub(before),
            wall: started.elapsed(),
            bytes: 0,
        },
        playable: playable.unwrap_or_default(),
        peak_kib,
    })
}

async fn stream(client: &mut Client, path: &str) -> Result<Value, Failure> {
    let answer = client.get_with(path, &with_key("application/json")).await?;
    let record: Value = serde_json::from_slice(&answer.body)?;
    Ok(record["stream"].clone())
}

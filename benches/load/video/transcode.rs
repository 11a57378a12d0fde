//! Scenario `transcode`: conversions of one video as jobs, compared with ffmpeg with the same encoder, preset and
//! quality; and a frame of a long video.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use clap::Args;
use serde_json::Value;
use tokio::time::sleep;

use super::{Cost, clip, ffmpeg, median, print, print_beside, used};
use sluice_testkit::Failure;

use crate::{
    http::Client,
    service::{Service, with_key, workplace},
    upload::{form, form_headers, upload},
};

const LOOK_AGAIN: Duration = Duration::from_millis(100);

#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// Turns of each case; the middle one counts.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=20))]
    rounds: u8,
    /// Length of the video that becomes H.264, in seconds.
    #[arg(long, default_value_t = 55, value_parser = clap::value_parser!(u32).range(5..=600))]
    seconds: u32,
    /// Length of the video that becomes VP9.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(5..=600))]
    vp9_seconds: u32,
    /// Length of the video out of which a frame is taken; 0: none.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=10))]
    hours: u32,
    /// The program to measure.
    #[arg(long, default_value = "target/release/sluice")]
    program: PathBuf,
}

/// A result, and the arguments by which ffmpeg makes the same.
struct Case {
    name: &'static str,
    /// Form fields of the conversion.
    fields: &'static [(&'static str, &'static str)],
    seconds: u32,
    ffmpeg: &'static [&'static str],
}

/// Runs the scenario and prints its figures.
pub(crate) async fn run(options: &Options) -> Result<(), Failure> {
    let (root, scratch) = workplace()?;
    let program = root.join(&options.program);
    let service = Service::start(&program, scratch.path()).await?;
    let cases = [
        // Its tracks fit, so that it is copied; ffmpeg shows what encoding them would cost.
        Case {
            name: "MP4 of the same size",
            fields: &[("format", "mp4")],
            seconds: options.seconds,
            ffmpeg: &[
                "-c:v",
                "libx264",
                "-preset",
                "veryfast",
                "-crf",
                "23",
                "-profile:v",
                "high",
                "-c:a",
                "copy",
                "-movflags",
                "+faststart",
                "result.mp4",
            ],
        },
        Case {
            name: "H.264 of 960×540",
            fields: &[("format", "mp4"), ("resizeWidth", "960")],
            seconds: options.seconds,
            ffmpeg: &[
                "-vf",
                "scale=960:540",
                "-c:v",
                "libx264",
                "-preset",
                "veryfast",
                "-crf",
                "23",
                "-profile:v",
                "high",
                "-c:a",
                "copy",
                "-movflags",
                "+faststart",
                "result.mp4",
            ],
        },
        Case {
            name: "VP9 and Opus of 960×540",
            fields: &[("format", "webm"), ("resizeWidth", "960")],
            seconds: options.vp9_seconds,
            ffmpeg: &[
                "-vf",
                "scale=960:540",
                "-c:v",
                "libvpx-vp9",
                "-deadline",
                "good",
                "-cpu-used",
                "5",
                "-row-mt",
                "1",
                "-threads",
                "2",
                "-crf",
                "33",
                "-b:v",
                // The worker's bound for this size and rate.
                "870912",
                "-auto-alt-ref",
                "1",
                "-lag-in-frames",
                "25",
                "-tile-columns",
                "6",
                "-g",
                "240",
                "-c:a",
                "libopus",
                "-b:a",
                "128k",
                "result.webm",
            ],
        },
    ];
    for case in &cases {
        compare(&service, root, scratch.path(), options, case).await?;
    }
    if options.hours > 0 {
        video_frame(&service, root, options.hours).await?;
    }
    Ok(())
}

async fn compare(
    service: &Service,
    root: &Path,
    folder: &Path,
    options: &Options,
    case: &Case,
) -> Result<(), Failure> {
    let source = clip::obtain(root, 720, case.seconds)?;
    let bytes = std::fs::read(&source)?;
    println!(
        "transcode: {} s of 1280×720 to {}, the middle of {} turns",
        case.seconds, case.name, options.rounds
    );
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        ours.push(convert(service, &bytes, case.fields).await?);
        theirs.push(ffmpeg(folder, &source, case.ffmpeg)?);
    }
    print("sluice", median(&ours));
    print("ffmpeg", median(&theirs));
    print_beside(median(&ours), median(&theirs));
    Ok(())
}

/// Runs a conversion as a job.
async fn convert(
    service: &Service,
    bytes: &[u8],
    fields: &[(&str, &str)],
) -> Result<Cost, Failure> {
    let mut client = Client::new(service.address());
    let body = form("files", "clip.mp4", bytes, fields);
    let before = used(service);
    let answer = client.post("/api/jobs", &form_headers(), &body).await?;
    let started = Instant::now();
    let job: Value = serde_json::from_slice(&answer.body)?;
    let id = job["jobId"].as_str();
    let id = id.ok_or_else(|| format!("no job: {job}"))?.to_owned();
    let job = ended(&mut client, &format!("/api/jobs/{id}")).await?;
    let result = &job["results"][0];
    Ok(Cost {
        cpu: used(service).saturating_sub(before),
        wall: started.elapsed(),
        bytes: result["finalSize"].as_u64().unwrap_or_default(),
    })
}

async fn ended(client: &mut Client, path: &str) -> Result<Value, Failure> {
    loop {
        let answer = client.get_with(path, &with_key("application/json")).await?;
        let job: Value = serde_json::from_slice(&answer.body)?;
        match job["status"].as_str() {
            Some("completed") => return Ok(job),
            Some("pending" | "processing") => sleep(LOOK_AGAIN).await,
            _ => return Err(format!("{path}: {job}").into()),
        }
    }
}

/// Measures a frame at nine tenths of a long video, by the tool for stored files.
async fn video_frame(service: &Service, root: &Path, hours: u32) -> Result<(), Failure> {
    let source = clip::obtain_long(root, hours)?;
    let mut client = Client::new(service.address());
    let id = upload(&mut client, "long.mp4", &std::fs::read(&source)?).await?;
    let at = hours * 3_240;
    println!("transcode: a frame at {at} s of {hours} h");
    let mut costs = Vec::new();
    for _ in 0..3 {
        let (before, started) = (used(service), Instant::now());
        let body = format!(r#"{{"tool":"thumbnail","params":{{"timestamp":{at}}}}}"#);
        let answer = service
            .post(&format!("/api/files/{id}/tools"), &body)
            .await?;
        costs.push(Cost {
            cpu: used(service).saturating_sub(before),
            wall: started.elapsed(),
            bytes: answer["files"][0]["finalSize"].as_u64().unwrap_or_default(),
        });
    }
    print("sluice", median(&costs));
    Ok(())
}

//! The load harness: starts a server of its own, loads it as encoders and viewers do, and prints what it cost.
//!
//! `cargo bench --bench load -- live --publishers 10 --viewers 10 --peer nginx`, or `make bench`. The figures are from
//! /proc: of the server's process alone for live streams, webhooks and workflows, of all its processes for images.
//! Everything stays on loopback, in a temporary folder below `target/load`, and is bounded in number and time.
#![allow(clippy::print_stdout, reason = "printing is what this program is for")]

mod clip;
mod cluster;
mod dashboard;
mod http;
mod image;
mod live;
mod moving;
mod peer;
mod publisher;
mod report;
mod service;
mod upload;
mod video;
mod viewer;
mod webhooks;
mod webrtc;
mod workflows;
mod zip;

use clap::{Parser, Subcommand};
use sluice_testkit::Failure;

#[derive(Debug, Parser)]
#[command(name = "load")]
struct Arguments {
    /// Given by `cargo bench` to every bench.
    #[arg(long, hide = true, global = true)]
    bench: bool,
    #[command(subcommand)]
    scenario: Option<Scenario>,
}

#[derive(Debug, Subcommand)]
enum Scenario {
    /// RTMP publishers and low-latency HLS viewers.
    Live(live::Options),
    /// One RTMP publisher and viewers by WebRTC, beside a server on Pion with the same stream.
    WebRtc(webrtc::Options),
    /// Delivered images that are in the cache, beside nginx with the same bytes in a file.
    CdnHit(image::HitOptions),
    /// Delivered images that no one has asked for before: 100 photographs to 512 pixels.
    CdnMissUnique(image::MissOptions),
    /// The same at eight widths each, as in an `srcset`.
    CdnMissLadder(image::MissOptions),
    /// A thousand equal requests at once for what is not there yet: one render.
    CdnEqual(image::EqualOptions),
    /// Cuts the photographs, when they are not there yet, and prints where they are.
    Photographs,
    /// `POST /api/convert`, upload and download included.
    Convert(image::ConvertOptions),
    /// Deliveries to receivers in this process: healthy ones, some that hang, and a backlog for dead ones.
    Webhooks(webhooks::Options),
    /// A video to MP4 and WebM, beside ffmpeg; a frame out of a long one.
    Transcode(video::TranscodeOptions),
    /// A video to an HLS asset, beside ffmpeg.
    Ladder(video::LadderOptions),
    /// Workflow runs of resize, conversion and storage, each waited for: what the engine costs beside the operations.
    Workflows(workflows::Options),
    /// Requests of a page of the dashboard in a large account: lists, followers of changes, a killed service.
    Dashboard(dashboard::Options),
    /// A service with many files, brought to PostgreSQL and an object store and back by `sluice move`.
    Move(moving::Options),
    /// A folder of photographs as one archive, beside nginx with a file of the same size.
    Zip(zip::Options),
}

fn main() -> Result<(), Failure> {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let scenario = arguments
        .scenario
        .unwrap_or(Scenario::Live(live::Options::default()));
    runtime.block_on(async {
        match scenario {
            Scenario::Live(options) => live::run(&options).await,
            Scenario::WebRtc(options) => webrtc::run(&options).await,
            Scenario::CdnHit(options) => image::hit(&options).await,
            Scenario::CdnMissUnique(options) => image::miss_unique(&options).await,
            Scenario::CdnMissLadder(options) => image::miss_ladder(&options).await,
            Scenario::CdnEqual(options) => image::equal(&options).await,
            Scenario::Photographs => image::photographs(),
            Scenario::Convert(options) => image::convert(&options).await,
            Scenario::Webhooks(options) => webhooks::run(&options).await,
            Scenario::Transcode(options) => video::transcode(&options).await,
            Scenario::Ladder(options) => video::ladder(&options).await,
            Scenario::Workflows(options) => workflows::run(&options).await,
            Scenario::Dashboard(options) => dashboard::run(&options).await,
            Scenario::Move(options) => moving::run(&options).await,
            Scenario::Zip(options) => zip::run(&options).await,
        }
    })
}

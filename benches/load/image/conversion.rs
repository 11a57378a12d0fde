//! Scenario `convert`: photographs by `POST /api/convert`, with upload, compared with a plain libvips program.

use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Instant,
};

use clap::Args;
use serde_json::Value;
use sluice_testkit::{Failure, process};
use tokio::task::JoinSet;

use super::{
    BALANCED_WEBP,
    contestant::{self, Contestant},
    crops::Crops,
    measure::Measurement,
    saver, vipsthumbnail,
};
use crate::{
    http::Client,
    report,
    service::workplace,
    upload::{form, form_headers},
};

/// Conversions: the extension of the photographs, the format, and the width.
const CASES: [(&str, &str, u32); 5] = [
    (".jpg", "jpg", 1024),
    (".jpg", "webp", 1024),
    (".jpg", "avif", 1024),
    (".jpg", "png", 1024),
    (".png", "webp", 512),
];
/// Photographs of a turn.
const IMAGES: usize = 25;

#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// Turns of each case.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=20))]
    rounds: u8,
    /// Requests at a time.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=100))]
    connections: u16,
    /// The program to measure.
    #[arg(long, default_value = "target/release/sluice")]
    program: PathBuf,
}

/// Runs the scenario and prints its figures.
pub(crate) async fn run(options: &Options) -> Result<(), Failure> {
    let (root, scratch) = workplace()?;
    let program = root.join(&options.program);
    let nothing = Crops {
        folder: PathBuf::new(),
        names: Vec::new(),
    };
    let ours = contestant::sluice(&program, scratch.path(), &nothing).await?;
    for (extension, format, width) in CASES {
        let mut crops = Crops::obtain(root, extension)?;
        crops.names.truncate(IMAGES);
        println!(
            "convert: {} photographs from {extension} to {format} at {width} px, {} turns, {} at a time",
            crops.names.len(),
            options.rounds,
            options.connections
        );
        let (mut measurement, mut plain) = (Measurement::default(), Measurement::default());
        for _ in 0..options.rounds {
            turn(&mut measurement, &ours, options, &crops, format, width).await?;
            let saver = saver(format, BALANCED_WEBP);
            vipsthumbnail(&mut plain, scratch.path(), &crops, &[width], &saver)?;
        }
        let beside = (plain.requests > 0).then_some(("vipsthumbnail, one process", &plain));
        report::images([("sluice", &measurement)].into_iter().chain(beside));
    }
    Ok(())
}

async fn turn(
    measurement: &mut Measurement,
    ours: &Contestant,
    options: &Options,
    crops: &Crops,
    format: &'static str,
    width: u32,
) -> Result<(), Failure> {
    let names = Arc::new(Mutex::new(VecDeque::from(crops.names.clone())));
    let before = process::tree_figures(ours.process_id()).cpu;
    let started = Instant::now();
    let mut connections = JoinSet::new();
    for _ in 0..options.connections {
        let (names, folder) = (Arc::clone(&names), crops.folder.clone());
        let client = Client::new(&ours.address);
        connections.spawn(async move {
            let mut done = Measurement::default();
            one_connection(&mut done, client, &names, &folder, format, width).await?;
            Ok::<_, Failure>(done)
        });
    }
    while let Some(done) = connections.join_next().await {
        let done = done??;
        measurement.requests += done.requests;
        measurement.bytes += done.bytes;
        measurement.latencies.extend(done.latencies);
        let held = process::tree_figures(ours.process_id()).proportional_kib;
        measurement.peak_kib = measurement.peak_kib.max(held);
    }
    measurement.lasted += started.elapsed();
    measurement.cpu += process::tree_figures(ours.process_id())
        .cpu
        .saturating_sub(before);
    Ok(())
}

async fn one_connection(
    measurement: &mut Measurement,
    mut client: Client,
    names: &Mutex<VecDeque<String>>,
    folder: &Path,
    format: &str,
    width: u32,
) -> Result<(), Failure> {
    let width = width.to_string();
    let fields = [
        ("format", format),
        ("resizeWidth", width.as_str()),
        ("compression", "80"),
    ];
    loop {
        let Some(name) = names.lock().ok().and_then(|mut names| names.pop_front()) else {
            return Ok(());
        };
        let body = form("files", &name, &std::fs::read(folder.join(&name))?, &fields);
        let started = Instant::now();
        let answer = client.post("/api/convert", &form_headers(), &body).await?;
        measurement.latencies.push(started.elapsed());
        if answer.status != 200 {
            return Err(format!("converting {name}: {} {}", answer.status, answer.text()).into());
        }
        let record: Value = serde_json::from_slice(&answer.body)?;
        measurement.requests += 1;
        measurement.bytes += record["files"][0]["finalSize"].as_u64().unwrap_or_default();
    }
}

//! Scenario `cdn-equal`: many clients ask at once for a variant that was never rendered, and how often it is rendered.

use std::{path::PathBuf, sync::Arc, time::Instant};

use clap::Args;
use sluice_testkit::{Failure, process};
use tokio::{sync::Barrier, task::JoinSet};

use super::{
    QUALITY,
    contestant::{self, Variant},
    crops::Crops,
    measure::Measurement,
    workplace,
};
use crate::{http::Client, report};

/// Metric of the variants that the service has rendered since its start.
const RENDERED: &str = "sluice_cdn_variants{made=\"rendered\"} ";

#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// Requests at once, each on a connection of its own.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u16).range(1..=5000))]
    requests: u16,
    /// The program to measure.
    #[arg(long, default_value = "target/release/sluice")]
    program: PathBuf,
}

/// Runs the scenario; more than one render is a failure.
pub(crate) async fn run(options: &Options) -> Result<(), Failure> {
    let (root, scratch) = workplace()?;
    let mut crops = Crops::obtain(root, ".jpg")?;
    crops.names.truncate(1);
    let program = root.join(&options.program);
    let ours = contestant::sluice(&program, scratch.path(), &crops).await?;
    let variant = Variant {
        width: 1920,
        format: "webp",
        quality: QUALITY,
    };
    let path = ours.path(&crops.names[0], variant)?;
    let before = rendered(&ours.address).await?;
    let cpu = process::tree_figures(ours.process_id()).cpu;
    let mut measurement = all_at_once(&ours.address, &path, options.requests).await?;
    let after = process::tree_figures(ours.process_id());
    (measurement.cpu, measurement.peak_kib) =
        (after.cpu.saturating_sub(cpu), after.proportional_kib);
    let renders = rendered(&ours.address).await? - before;
    println!(
        "cdn-equal: {} requests at once, {renders} rendered",
        options.requests
    );
    report::images([("sluice", &measurement)].into_iter());
    match renders {
        1 => Ok(()),
        _ => Err(format!("{renders} renders of one variant").into()),
    }
}

async fn all_at_once(address: &str, path: &str, requests: u16) -> Result<Measurement, Failure> {
    let start = Arc::new(Barrier::new(requests.into()));
    let began = Instant::now();
    let mut connections = JoinSet::new();
    for _ in 0..requests {
        let (mut client, path, start) = (Client::new(address), path.to_owned(), Arc::clone(&start));
        connections.spawn(async move {
            // Opens the connection, so that nothing but the request is left to send.
            client.get("/healthz").await?;
            start.wait().await;
            let asked = Instant::now();
            let answer = client.get(&path).await?;
            match answer.status {
                200 => Ok((asked.elapsed(), answer.body.len())),
                status => Err(Failure::from(format!(
                    "GET {path}: {status} {}",
                    answer.text()
                ))),
            }
        });
    }
    let mut measurement = Measurement::default();
    while let Some(answered) = connections.join_next().await {
        let (latency, length) = answered??;
        measurement.requests += 1;
        measurement.bytes += length as u64;
        measurement.latencies.push(latency);
    }
    measurement.lasted = began.elapsed();
    Ok(measurement)
}

async fn rendered(address: &str) -> Result<u64, Failure> {
    let answer = Client::new(address).get("/metrics").await?;
    let text = answer.text();
    let line = text.lines().find_map(|line| line.strip_prefix(RENDERED));
    // A family without an entry yet is not listed.
    Ok(line.map(str::parse).transpose()?.unwrap_or(0))
}

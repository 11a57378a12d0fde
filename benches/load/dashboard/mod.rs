//! Scenario `dashboard`: time of the pages of a large account.
//!
//! Pages of 100 000 files at three depths and a search; 2 000 live inputs of which 50 are on air; a thousand clients
//! that follow changes and wait; a killed service and its pages after that. The bars are those of the dashboard's
//! design: they are printed beside the figures and never asserted. Figures of the screens themselves are taken in
//! Chromium by `benches/dashboard.mjs`.

mod follow;
mod outage;
mod screens;
mod seed;

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use clap::Args;
use sluice_testkit::Failure;
use tokio::time::sleep;

use crate::{
    clip,
    http::Client,
    live::Publishers,
    report::{self, Span},
    service::{Service, with_key, workplace},
};

/// Requests of each measured kind.
const ASKED: usize = 200;
/// After much was written or many connections came: what is in progress ends.
const SETTLE: Duration = Duration::from_secs(5);
/// Bit rate of each publisher.
const BITRATE: u64 = 1_000_000;
/// Bounds beyond what the scenario asks for.
const SETTINGS: [(&str, &str); 4] = [
    ("SLUICE_SIGN_IN__REQUESTS_PER_MINUTE", "100000"),
    ("SLUICE_CHANGES__MAX_FOLLOWERS", "20000"),
    ("SLUICE_CHANGES__MAX_FOLLOWERS_PER_ACCOUNT", "20000"),
    ("SLUICE_HTTP__MAX_CONNECTIONS", "25000"),
];

#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// Files of the account.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1_000..=1_000_000))]
    files: u32,
    /// Live inputs.
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    inputs: u16,
    /// Those of them that are on air.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=200))]
    on_air: u16,
    /// Clients that follow changes.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u16).range(1..=20_000))]
    followers: u16,
    /// Length of each measured phase.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(5..=600))]
    seconds: u64,
    /// Leaves the screens out.
    #[arg(long)]
    without_browser: bool,
    /// The program to measure.
    #[arg(long, default_value = "target/release/sluice")]
    program: PathBuf,
}

/// Runs the scenario and prints its figures.
pub(crate) async fn run(options: &Options) -> Result<(), Failure> {
    let (root, scratch) = workplace()?;
    let (program, folder) = (root.join(&options.program), scratch.path());
    println!(
        "dashboard: {} files, {} live inputs, {} on air, {} followers of changes, phases of {} s",
        options.files, options.inputs, options.on_air, options.followers, options.seconds
    );
    let service = Service::start_with(&program, folder, &SETTINGS).await?;
    seed::first_file(&service).await?;
    let inputs = service.create_inputs(options.inputs.into(), "off").await?;
    // The rows of the other files are written while the service is down.
    let ports = service.kill();
    seed::files(&folder.join("data"), options.files).await?;
    let service = Service::start_at(ports, &program, folder, &SETTINGS).await?;
    sleep(SETTLE).await;

    files(&service, options).await?;
    let alone = span(&service, options).await?;
    let followers = follow::Followers::connect(&service, options.followers.into()).await?;
    sleep(SETTLE).await;
    let waiting = span(&service, options).await?;
    println!(
        "{} followers that wait (bar: 30 MB, 2 % of a core)",
        options.followers
    );
    report::waiting(options.followers.into(), &alone, &waiting);
    followers.time_nudges(&service).await?;

    let clip = clip::obtain(&root.join("target/load"), BITRATE)?;
    let on_air = inputs.iter().take(options.on_air.into());
    let targets: Vec<_> = on_air.map(|input| input.target.clone()).collect();
    let logs: Vec<_> = targets.iter().map(|_| Default::default()).collect();
    let publishers = Publishers::start(targets.into_iter(), &clip, &logs);
    sleep(SETTLE + SETTLE).await;
    publishers.check()?;
    live_inputs(&service).await?;
    if !options.without_browser {
        screens::measure(root, &service).await?;
    }
    publishers.stop().await?;

    outage::measure(service, &program, folder, &SETTINGS).await
}

async fn span(service: &Service, options: &Options) -> Result<Span, Failure> {
    let (started, before) = (Instant::now(), service.server.figures()?);
    sleep(Duration::from_secs(options.seconds)).await;
    Ok(Span {
        before,
        after: service.server.figures()?,
        lasted: started.elapsed(),
    })
}

async fn files(service: &Service, options: &Options) -> Result<(), Failure> {
    println!("files, a page of 100 (bar: 20 ms at 99 % for the last one)");
    let last = options.files - 100;
    for offset in [0, options.files / 2, last] {
        let path = format!("/api/files?limit=100&offset={offset}");
        time(service, &format!("offset {offset}"), &path).await?;
    }
    for text in ["photo 77777", "no such name"] {
        let path = format!("/api/files/search?limit=100&q={}", text.replace(' ', "%20"));
        time(service, &format!("search `{text}`"), &path).await?;
    }
    Ok(())
}

async fn live_inputs(service: &Service) -> Result<(), Failure> {
    println!("live inputs, a page of 100 with {BITRATE} bit/s from each publisher");
    time(service, "newest", "/api/live/inputs?limit=100").await?;
    time(service, "on air", "/api/live/inputs?limit=100&status=live").await
}

/// Asks some times over one connection, as a page does, and prints the times.
async fn time(service: &Service, title: &str, path: &str) -> Result<(), Failure> {
    let mut client = Client::new(service.address());
    let headers = with_key("application/json");
    let mut times = Vec::with_capacity(ASKED);
    for _ in 0..ASKED {
        let asked = Instant::now();
        let answer = client.get_with(path, &headers).await?;
        times.push(asked.elapsed());
        if answer.status != 200 {
            return Err(format!("{path}: {} {}", answer.status, answer.text()).into());
        }
    }
    report::percentiles(title, &mut times);
    Ok(())
}

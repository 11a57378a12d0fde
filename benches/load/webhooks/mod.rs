//! Scenario `webhooks`: events of real uploads, delivered to receivers in this process.
//!
//! Every endpoint is subscribed to `file.uploaded`, so that one upload is one delivery for each of them. A delivery's
//! time is from the upload's answer at the client, which comes after the commit, to the request's first byte at the
//! receiver. With `--nodes` the uploads go to several nodes in turn, and any of them delivers.

mod backlog;
mod receivers;
mod uploads;

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use clap::Args;
use serde_json::{Value, json};
use tokio::time::sleep;

use self::{
    receivers::{Arrival, Receivers, Temper},
    uploads::{Acknowledged, Pace, upload_all},
};
use sluice_testkit::{Failure, process::Figures};

use crate::{
    cluster::start_nodes,
    report::{self, Deliveries, Span},
    service::{Service, workplace},
};

/// Share of hanging receivers in the second run.
const HANGING_PERCENT: usize = 20;
/// Time for costs that occur once: connections, pools and plans of statements.
const WARM_UP: Duration = Duration::from_secs(3);
/// For what is still on its way when the last upload is answered.
const LATEST: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(100);

#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// Seconds of the measured part of each of the first two runs.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
    endpoints: u16,
    /// Deliveries a second that the uploads ask for; healthy and hanging endpoints count alike.
    #[arg(long, default_value_t = 1200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rate: u32,
    /// Deliveries that wait for dead endpoints in the third run; 0 leaves it out.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    backlog: u32,
    /// Nodes on the PostgreSQL and S3 servers of `scripts/with-postgres.sh` and `scripts/with-objects.sh`; 0 is a service alone on SQLite.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=9))]
    nodes: u16,
    /// Leaves out the run with endpoints that hang.
    #[arg(long)]
    only_healthy: bool,
    /// The program to measure.
    #[arg(long, default_value = "target/release/sluice")]
    program: PathBuf,
}

impl Options {
    fn uploads_per_second(&self) -> f64 {
        f64::from(self.rate) / f64::from(self.endpoints)
    }
}

/// Runs the scenario and prints its figures.
pub(crate) async fn run(options: &Options) -> Result<(), Failure> {
    println!(
        "webhooks: {} endpoints, {} deliveries/s asked for in {} s",
        options.endpoints, options.rate, options.seconds
    );
    let mut alone = steady(options, 0).await?;
    report::deliveries("all healthy", &mut alone);
    if !options.only_healthy {
        let hanging = usize::from(options.endpoints) * HANGING_PERCENT / 100;
        let mut beside = steady(options, hanging).await?;
        let title = format!("{hanging} endpoints hang; of the healthy ones");
        report::deliveries(&title, &mut beside);
        let p99 = |of: &Deliveries| report::share(&of.latencies, 0.99).as_secs_f64();
        println!(
            "  99 % against the first run: {:.2} ×",
            p99(&beside) / p99(&alone)
        );
    }
    if options.backlog > 0 {
        backlog::run(options).await?;
    }
    Ok(())
}

/// A service with its endpoints: one process, or several nodes.
#[derive(Debug)]
struct Site {
    services: Vec<Service>,
    _scratch: tempfile::TempDir,
}

impl Site {
    fn addresses(&self) -> Vec<String> {
        let addresses = self.services.iter().map(Service::address);
        addresses.map(str::to_owned).collect()
    }

    /// The sum over its processes, workers left out.
    fn figures(&self) -> Result<Figures, Failure> {
        self.services
            .iter()
            .map(|service| service.server.figures())
            .sum()
    }
}

/// Starts a service without rows and subscribes the receivers.
async fn start(options: &Options, receivers: &Receivers) -> Result<Site, Failure> {
    let (root, scratch) = workplace()?;
    let program: &Path = &root.join(&options.program);
    let endpoints = options.endpoints.to_string();
    let settings = [
        ("SLUICE_OUTBOUND__ALLOW", "127.0.0.0/8"),
        ("SLUICE_WEBHOOKS__MAX_ENDPOINTS", &endpoints),
    ];
    let services = match options.nodes {
        0 => vec![Service::start_with(program, scratch.path(), &settings).await?],
        nodes => start_nodes(program, scratch.path(), nodes, &settings).await?,
    };
    for url in receivers.urls() {
        let body: Value = json!({"url": url, "eventTypes": ["file.uploaded"]});
        services[0].post("/api/webhooks", &body.to_string()).await?;
    }
    Ok(Site {
        services,
        _scratch: scratch,
    })
}

/// Uploads at a rate; the deliveries of those that were acknowledged in the measured part.
async fn steady(options: &Options, hanging: usize) -> Result<Deliveries, Failure> {
    let healthy = usize::from(options.endpoints) - hanging;
    let receivers = Receivers::start(
        |number| match number < healthy {
            true => Temper::Prompt,
            false => Temper::Hanging,
        },
        options.endpoints,
    )?;
    let site = start(options, &receivers).await?;
    let lasts = Duration::from_secs(options.seconds);
    let pace = Pace {
        per_second: options.uploads_per_second(),
        count: ((WARM_UP + lasts).as_secs_f64() * options.uploads_per_second()) as usize,
    };
    let uploading = tokio::spawn(upload_all(site.addresses(), pace));

    sleep(WARM_UP).await;
    let (from, before) = (Instant::now(), site.figures()?);
    sleep(lasts).await;
    let (to, after) = (Instant::now(), site.figures()?);
    let acknowledged = uploading.await??;
    let expected = acknowledged.len() * healthy;
    wait_for(&receivers, expected).await;

    let arrivals = receivers.arrivals();
    let arrived = arrivals.iter().filter(|it| (from..to).contains(&it.at));
    Ok(Deliveries {
        arrived: arrived.count(),
        missing: expected.saturating_sub(arrivals.len()),
        latencies: latencies(&acknowledged, &arrivals, from..to),
        span: Span {
            before,
            after,
            lasted: to - from,
        },
    })
}

/// Waits until all have come or the time is over; missing ones are reported.
async fn wait_for(receivers: &Receivers, expected: usize) {
    let started = Instant::now();
    while receivers.count() < expected && started.elapsed() < LATEST {
        sleep(LOOK_AGAIN).await;
    }
}

/// Sorted; zero where the request came before the upload's own answer.
fn latencies(
    acknowledged: &Acknowledged,
    arrivals: &[Arrival],
    measured: std::ops::Range<Instant>,
) -> Vec<Duration> {
    let mut times: Vec<_> = arrivals
        .iter()
        .filter_map(|arrival| {
            let at = acknowledged.get(&arrival.file)?;
            let time = arrival.at.saturating_duration_since(*at);
            measured.contains(at).then_some(time)
        })
        .collect();
    times.sort_unstable();
    times
}

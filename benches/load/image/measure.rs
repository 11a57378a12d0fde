//! Rounds of requests to one image server: rates, times, CPU and memory.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use sluice_testkit::{Failure, process};
use tokio::task::JoinSet;

use crate::http::Client;

/// Between two looks at the memory of a server's processes.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Requests of a round.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    /// Each path once, in order, over all connections.
    Each(Vec<String>),
    /// Requests one path as often as possible.
    Repeat(String, Duration),
}

/// Measurement of a server over all its rounds.
#[derive(Debug, Default)]
pub(crate) struct Measurement {
    pub(crate) requests: usize,
    pub(crate) lasted: Duration,
    pub(crate) cpu: Duration,
    pub(crate) bytes: u64,
    pub(crate) latencies: Vec<Duration>,
    /// The most that all its processes held together, shared pages counted once.
    pub(crate) peak_kib: u64,
}

impl Measurement {
    pub(crate) fn cpu_per_request(&self) -> Duration {
        self.cpu / self.requests.max(1) as u32
    }

    fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.latencies.extend(other.latencies);
    }
}

/// Does the work against a server and adds its cost: all processes below `process`, from the first request to the last
/// answer.
pub(crate) async fn round(
    measurement: &mut Measurement,
    address: &str,
    process: u32,
    connections: usize,
    work: &Work,
) -> Result<(), Failure> {
    let peak = Arc::new(AtomicU64::new(0));
    let watcher = tokio::spawn(watch(process, Arc::clone(&peak)));
    let before = process::tree_figures(process).cpu;
    let started = Instant::now();
    let done = all_connections(address, connections, work).await;
    measurement.lasted += started.elapsed();
    measurement.cpu += process::tree_figures(process).cpu.saturating_sub(before);
    watcher.abort();
    measurement.peak_kib = measurement.peak_kib.max(peak.load(Ordering::Relaxed));
    measurement.add(done?);
    Ok(())
}

async fn all_connections(address: &str, count: usize, work: &Work) -> Result<Measurement, Failure> {
    let mut connections = JoinSet::new();
    let shared = match work {
        Work::Each(paths) => Some(Arc::new(Mutex::new(VecDeque::from(paths.clone())))),
        Work::Repeat(..) => None,
    };
    for _ in 0..count {
        let (client, work) = (Client::new(address), work.clone());
        match (work, shared.clone()) {
            (Work::Repeat(path, lasting), _) => {
                let until = Instant::now() + lasting;
                let next = move || (Instant::now() < until).then(|| path.clone());
                connections.spawn(one_connection(client, next));
            }
            (Work::Each(_), shared) => {
                let next = move || shared.as_ref()?.lock().ok()?.pop_front();
                connections.spawn(one_connection(client, next));
            }
        }
    }
    let mut sum = Measurement::default();
    while let Some(measurement) = connections.join_next().await {
        sum.add(measurement??);
    }
    Ok(sum)
}

async fn one_connection(
    mut client: Client,
    mut next: impl FnMut() -> Option<String>,
) -> Result<Measurement, Failure> {
    let mut measurement = Measurement::default();
    while let Some(path) = next() {
        let started = Instant::now();
        let answer = client.get(&path).await?;
        measurement.latencies.push(started.elapsed());
        if answer.status != 200 || answer.body.is_empty() {
            return Err(format!("GET {path}: {} {}", answer.status, answer.text()).into());
        }
        measurement.requests += 1;
        measurement.bytes += answer.body.len() as u64;
    }
    Ok(measurement)
}

async fn watch(process: u32, peak: Arc<AtomicU64>) {
    loop {
        let now = process::tree_figures(process).proportional_kib;
        peak.fetch_max(now, Ordering::Relaxed);
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

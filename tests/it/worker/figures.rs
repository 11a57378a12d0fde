//! Cost of the worker processes, printed: `cargo test --release --test it worker::figures -- --ignored --nocapture`.

use std::time::Duration;

use sluice_actors::compute::{ComputeSettings, Lane};
use tokio::time::Instant;

use super::{Pool, look_at};
use crate::support::Failure;

const ROUNDS: usize = 2_000;
const STARTS: u32 = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "it measures and asserts nothing"]
async fn round_trips_and_starts() -> Result<(), Failure> {
    let pool = Pool::with(ComputeSettings {
        workers: 1,
        recycle_after: u32::MAX,
        ..ComputeSettings::default()
    })?;
    let mut taken = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let assignment = look_at(&pool.compute, "")?;
        let begun = Instant::now();
        pool.compute.run(Lane::Interactive, assignment).await?;
        taken.push(begun.elapsed());
    }
    taken.sort();
    let [process] = pool.processes()?[..] else {
        return Err("one worker".into());
    };
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let memory = status.lines().filter(|line| {
        ["VmRSS", "RssAnon", "RssFile"]
            .iter()
            .any(|name| line.starts_with(name))
    });
    eprintln!(
        "header of a 1×1 PNG through the pool: median {:?}, p99 {:?}",
        taken[ROUNDS / 2],
        taken[ROUNDS * 99 / 100]
    );
    memory.for_each(|line| eprintln!("worker {line}"));
    eprintln!(
        "start to ready, mean of {STARTS}: {:?}",
        mean_start().await?
    );
    Ok(())
}

/// Each task is its worker's last: the next waits for a start.
async fn mean_start() -> Result<Duration, Failure> {
    let pool = Pool::with(ComputeSettings {
        workers: 1,
        recycle_after: 1,
        ..ComputeSettings::default()
    })?;
    let begun = Instant::now();
    for _ in 0..STARTS {
        let assignment = look_at(&pool.compute, "")?;
        pool.compute.run(Lane::Interactive, assignment).await?;
    }
    Ok(begun.elapsed() / STARTS)
}

//! Cost of a run's rows: `cargo test --release -p sluice-store measure_runs -- --ignored --nocapture`.

#![allow(clippy::print_stdout, reason = "a measurement prints what it found")]

use std::{fs, time::Instant};

use super::*;

const RUNS: u32 = 1_000;
/// Tick of the kernel's clock that counts processor time.
const TICK_MS: f64 = 10.0;

/// Runs the engine's sequence without the operations: submitted, claimed and begun, two steps that make buffers, and
/// the end.
#[tokio::test]
#[ignore = "a measurement"]
async fn measure_runs() {
    let bench = Bench::new().await;
    let (begun, ticks) = (Instant::now(), cpu_ticks());
    for _ in 0..RUNS {
        let (_, lease) = bench.begun().await;
        for first in [0, 2] {
            let steps = [first, first + 1].map(|n| step(n, StepStatus::Completed));
            bench.record_steps(&lease, steps.to_vec()).await.unwrap();
        }
        let completion = Completion {
            steps: vec![step(4, StepStatus::Completed)],
            ..Completion::default()
        };
        bench.complete(&lease, completion).await.unwrap();
    }
    let cpu_ms = (cpu_ticks() - ticks) as f64 * TICK_MS / f64::from(RUNS);
    let wall = begun.elapsed() / RUNS;
    println!("a run, one after the other: {cpu_ms:.2} ms of processor time, {wall:?}");
}

/// User and system time of this process, `proc_pid_stat(5)`.
fn cpu_ticks() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let (_, after_name) = stat.rsplit_once(')').unwrap();
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

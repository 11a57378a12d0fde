//! Scenarios `transcode` and `ladder`: the cost of video work, compared with the ffmpeg command with the same settings.
//!
//! The service's figures are of all its processes, workers that have ended included; ffmpeg's are of the whole command.
//! Both take turns on the same source, on the same cores, with nothing else running.

mod clip;
mod ladder;
mod transcode;

use std::{
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

pub(crate) use ladder::{Options as LadderOptions, run as ladder};
use sluice_testkit::{Failure, process};
pub(crate) use transcode::{Options as TranscodeOptions, run as transcode};

use crate::service::Service;

/// Cost of a turn.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    cpu: Duration,
    wall: Duration,
    bytes: u64,
}

/// Returns the processor time of the service and its children so far.
fn used(service: &Service) -> Duration {
    process::tree_figures(service.server.process_id()).cpu
}

/// Runs ffmpeg on `source`; `arguments` end with the name of the result, which is removed afterwards.
fn ffmpeg(folder: &Path, source: &Path, arguments: &[&str]) -> Result<Cost, Failure> {
    let (before, started) = (process::cpu_of_ended_children(), Instant::now());
    let status = Command::new("ffmpeg")
        .args(["-nostdin", "-y", "-loglevel", "error", "-i"])
        .arg(source)
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .status()
        .map_err(|cause| format!("ffmpeg does not start: {cause}"))?;
    if !status.success() {
        return Err(format!("ffmpeg {arguments:?}: {status}").into());
    }
    let result = folder.join(arguments.last().ok_or("ffmpeg without a result")?);
    let bytes = std::fs::metadata(&result).map_or(0, |it| it.len());
    // It may have written other files, which are removed with the folder at the end.
    let _ = std::fs::remove_file(&result);
    Ok(Cost {
        cpu: process::cpu_of_ended_children().saturating_sub(before),
        wall: started.elapsed(),
        bytes,
    })
}

/// The middle one by processor time.
fn median(costs: &[Cost]) -> Cost {
    let mut costs = costs.to_vec();
    costs.sort_unstable_by_key(|cost| cost.cpu);
    costs.get(costs.len() / 2).copied().unwrap_or_default()
}

/// Prints a line of a table.
fn print(name: &str, cost: Cost) {
    println!(
        "  {name:<12} CPU {:>7.2} s, {:>7.2} s in all, {:>8.1} KB",
        cost.cpu.as_secs_f64(),
        cost.wall.as_secs_f64(),
        cost.bytes as f64 / 1e3,
    );
}

fn print_beside(ours: Cost, theirs: Cost) {
    println!(
        "  sluice against ffmpeg: {:.2} × the CPU, {:.2} × the time",
        ours.cpu.as_secs_f64() / theirs.cpu.as_secs_f64(),
        ours.wall.as_secs_f64() / theirs.wall.as_secs_f64(),
    );
}

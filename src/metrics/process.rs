//! Metrics of this process from `/proc/self`: resident memory, CPU time.

use std::fmt;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
    registry::Unit,
};

/// USER_HZ: what Linux reports to programs, whatever its own tick, on every machine that Rust runs on.
const TICKS_PER_SECOND: f64 = 100.0;

/// Memory and processor time.
#[derive(Debug)]
pub(super) struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        if let Some(bytes) = resident_bytes() {
            let gauge = ConstGauge::new(bytes);
            let name = "process_resident_memory";
            let metric = encoder.encode_descriptor(
                name,
                "Resident memory",
                Some(&Unit::Bytes),
                MetricType::Gauge,
            )?;
            gauge.encode(metric)?;
        }
        if let Some(seconds) = cpu_seconds() {
            let counter = ConstCounter::new(seconds);
            let metric = encoder.encode_descriptor(
                "process_cpu",
                "Processor time",
                Some(&Unit::Seconds),
                MetricType::Counter,
            )?;
            counter.encode(metric)?;
        }
        Ok(())
    }
}

/// Reads the resident memory. proc_pid_status(5): `VmRSS` in KiB.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// Reads the CPU time. proc_pid_stat(5): fields 14 and 15 count user and system time in clock ticks; the name before them may hold blanks.
fn cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    let ticks: u64 = after_name
        .split_ascii_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<u64>().ok())
        .sum();
    Some(ticks as f64 / TICKS_PER_SECOND)
}

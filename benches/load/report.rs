//! Figures in the form in which docs/reference/performance.md quotes them.

use std::{sync::atomic::Ordering, time::Duration};

use sluice_testkit::process::Figures;

use crate::{
    image::Measurement,
    viewer::{Timings, Traffic},
};

/// Two looks at a server, a while apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) before: Figures,
    pub(crate) after: Figures,
    pub(crate) lasted: Duration,
}

impl Span {
    fn cpu(&self) -> Duration {
        self.after.cpu.saturating_sub(self.before.cpu)
    }

    /// Processor time per stream, as a share of one core.
    fn percent_per_stream(&self, streams: usize) -> f64 {
        100.0 * self.cpu().as_secs_f64() / self.lasted.as_secs_f64() / streams as f64
    }
}

/// Processor time of a span.
pub(crate) fn cpu(title: &str, span: &Span, streams: usize) {
    let seconds = span.cpu().as_secs_f64();
    println!("{title}");
    println!(
        "  CPU              {seconds:.2} s in {:.1} s",
        span.lasted.as_secs_f64()
    );
    println!(
        "  per stream       {:.3} s = {:.3} % of a core",
        seconds / streams as f64,
        span.percent_per_stream(streams)
    );
}

/// Memory against that of the idle server. `media_kib` is the media that one stream has in its window.
pub(crate) fn memory(idle: &Figures, now: &Figures, streams: usize, media_kib: Option<u64>) {
    let per_stream =
        |after: u64, before: u64| after.saturating_sub(before) as f64 / 1024.0 / streams as f64;
    println!(
        "  resident         {:.1} MiB (idle {:.1}), proportional {:.1} MiB (idle {:.1})",
        mib(now.resident_kib),
        mib(idle.resident_kib),
        mib(now.proportional_kib),
        mib(idle.proportional_kib),
    );
    println!(
        "  per stream       {:.2} MiB resident beyond idle",
        per_stream(now.resident_kib, idle.resident_kib)
    );
    if let Some(media_kib) = media_kib {
        println!(
            "  (its window      {:.1} MiB of media a stream)",
            mib(media_kib)
        );
    }
}

fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}

/// Prints the times until parts were listed.
pub(crate) fn timings(timings: &mut Timings) {
    println!(
        "  parts timed      {}, late {}",
        timings.first_frame.len(),
        timings.late
    );
    percentiles("first frame sent → part listed", &mut timings.first_frame);
    percentiles("last frame sent → part listed", &mut timings.last_frame);
}

/// Prints a line of quantiles.
pub(crate) fn percentiles(title: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let at = |part: f64| milliseconds(share(times, part));
    println!(
        "  {title}: median {:.1} ms, 95 % {:.1}, 99 % {:.1}, most {:.1}",
        at(0.5),
        at(0.95),
        at(0.99),
        at(1.0),
    );
}

/// Prints the traffic of the viewers.
pub(crate) fn traffic(traffic: &Traffic, viewers: usize, lasted: Duration) {
    let bytes = traffic.bytes.load(Ordering::Relaxed);
    println!(
        "  served           {:.1} MB to {viewers} viewers in {} answers ({:.1} Mbit/s)",
        bytes as f64 / 1e6,
        traffic.requests.load(Ordering::Relaxed),
        bytes as f64 * 8.0 / 1e6 / lasted.as_secs_f64(),
    );
}

/// Prints a line for each server, then the ratio of the first one to each other one.
pub(crate) fn images<'a>(measurements: impl Iterator<Item = (&'static str, &'a Measurement)>) {
    let measurements: Vec<_> = measurements
        .filter(|(_, measurement)| measurement.requests > 0)
        .collect();
    println!(
        "  {:<28}{:>10}{:>16}{:>10}{:>10}{:>12}{:>12}",
        "", "requests/s", "CPU a request", "p50", "p99", "KB a piece", "peak memory"
    );
    for (name, measurement) in &measurements {
        let mut latencies = measurement.latencies.clone();
        latencies.sort_unstable();
        print!(
            "  {name:<28}{:>10.1}{:>13.3} ms",
            measurement.requests as f64 / measurement.lasted.as_secs_f64(),
            milliseconds(measurement.cpu_per_request()),
        );
        let kilobytes = measurement.bytes as f64 / 1e3 / measurement.requests as f64;
        if latencies.is_empty() {
            // A program and not a server: no one waited, and no one looked at its memory.
            println!("{:>10}{:>10}{kilobytes:>12.1}{:>12}", "–", "–", "–");
            continue;
        }
        println!(
            "{:>7.2} ms{:>7.2} ms{kilobytes:>12.1}{:>8.1} MiB",
            milliseconds(share(&latencies, 0.5)),
            milliseconds(share(&latencies, 0.99)),
            mib(measurement.peak_kib),
        );
    }
    let Some(((first, ours), others)) = measurements.split_first() else {
        return;
    };
    for (name, other) in others {
        let rate = |measurement: &Measurement| {
            measurement.requests as f64 / measurement.lasted.as_secs_f64()
        };
        println!(
            "  {first} against {name}: {:.2} × the CPU, {:.2} × the requests/s",
            ours.cpu_per_request().as_secs_f64() / other.cpu_per_request().as_secs_f64(),
            rate(ours) / rate(other),
        );
    }
}

/// Deliveries of one run to receivers that answer.
#[derive(Debug)]
pub(crate) struct Deliveries {
    /// In the span.
    pub(crate) arrived: usize,
    pub(crate) missing: usize,
    /// From the upload's answer to the request's first byte.
    pub(crate) latencies: Vec<Duration>,
    pub(crate) span: Span,
}

/// Rate, times and cost of deliveries.
pub(crate) fn deliveries(title: &str, run: &mut Deliveries) {
    let seconds = run.span.lasted.as_secs_f64();
    println!("{title}");
    println!(
        "  delivered        {} in {seconds:.1} s = {:.0}/s, missing {}",
        run.arrived,
        run.arrived as f64 / seconds,
        run.missing
    );
    percentiles("upload answered → first byte", &mut run.latencies);
    let cpu = run.span.cpu();
    println!(
        "  CPU              {:.1} % of a core, {:.3} ms a delivery",
        100.0 * cpu.as_secs_f64() / seconds,
        milliseconds(cpu) / run.arrived.max(1) as f64
    );
    println!(
        "  resident         {:.1} MiB before, {:.1} MiB after",
        mib(run.span.before.resident_kib),
        mib(run.span.after.resident_kib)
    );
}

/// A backlog that was built up and delivered.
#[derive(Debug)]
pub(crate) struct Drain {
    pub(crate) expected: usize,
    /// Number of the arrived ones that differ.
    pub(crate) different: usize,
    pub(crate) arrived: usize,
    pub(crate) built_in: Duration,
    pub(crate) drained_in: Duration,
    /// Processor time during the delivery.
    pub(crate) cpu: Duration,
    /// Before; the most while it was built; when it was built; the most while it was delivered.
    pub(crate) idle: Figures,
    pub(crate) building: Figures,
    pub(crate) waiting: Figures,
    pub(crate) draining: Figures,
}

/// Memory and rate of a backlog.
pub(crate) fn drain(run: &Drain) {
    let seconds = run.drained_in.as_secs_f64();
    println!("a backlog of {} deliveries to dead endpoints", run.expected);
    println!(
        "  built            in {:.1} s; delivered in {seconds:.1} s = {:.0}/s, CPU {:.1} % of a core",
        run.built_in.as_secs_f64(),
        run.arrived as f64 / seconds,
        100.0 * run.cpu.as_secs_f64() / seconds,
    );
    println!(
        "  arrived          {} different ones, {} requests",
        run.different, run.arrived
    );
    println!(
        "  resident         {:.1} MiB idle, {:.1} while building, {:.1} with the backlog, {:.1} while delivering",
        mib(run.idle.resident_kib),
        mib(run.building.resident_kib),
        mib(run.waiting.resident_kib),
        mib(run.draining.resident_kib),
    );
}

/// Runs of a workflow, and what storing the same files costs.
#[derive(Debug)]
pub(crate) struct Runs {
    /// Number of each.
    pub(crate) count: usize,
    pub(crate) storing: Span,
    pub(crate) running: Span,
    /// Samples of resident memory during the run, at equal intervals.
    pub(crate) resident_kib: Vec<u64>,
    /// From the request to its answer.
    pub(crate) whole: Vec<Duration>,
    /// From the last step's end to the answer.
    pub(crate) answers: Vec<Duration>,
}

/// Processor time, memory and times of runs.
pub(crate) fn runs(run: &mut Runs) {
    let each = |span: &Span| milliseconds(span.cpu()) / run.count.max(1) as f64;
    let seconds = run.running.lasted.as_secs_f64();
    println!(
        "  runs             {} in {seconds:.1} s = {:.1}/s",
        run.count,
        run.count as f64 / seconds
    );
    println!(
        "  CPU              {:.2} ms a run, {:.2} ms to store the same file: {:.2} ms of the engine",
        each(&run.running),
        each(&run.storing),
        each(&run.running) - each(&run.storing)
    );
    let quarters = run
        .resident_kib
        .chunks(run.resident_kib.len().div_ceil(4).max(1));
    let means = quarters.map(|it| mib(it.iter().sum::<u64>() / it.len() as u64));
    let means: Vec<String> = means.map(|mean| format!("{mean:.1}")).collect();
    println!(
        "  resident         {} MiB in the quarters of the run, most {:.1} MiB",
        means.join(", "),
        mib(run.resident_kib.iter().copied().max().unwrap_or_default())
    );
    percentiles("request → answer", &mut run.whole);
    percentiles("last step's end → answer", &mut run.answers);
}

/// Cost of clients that are connected and wait, against the same service without them.
pub(crate) fn waiting(clients: usize, alone: &Span, waiting: &Span) {
    let percent = |span: &Span| 100.0 * span.cpu().as_secs_f64() / span.lasted.as_secs_f64();
    println!(
        "  CPU              {:.2} % of a core, {:.2} % without them",
        percent(waiting),
        percent(alone),
    );
    let more = waiting
        .after
        .resident_kib
        .saturating_sub(alone.after.resident_kib);
    println!(
        "  resident         {:.1} MiB, {:.1} MiB without them: {:.1} MiB, {:.1} KiB each",
        mib(waiting.after.resident_kib),
        mib(alone.after.resident_kib),
        mib(more),
        more as f64 / clients.max(1) as f64,
    );
}

/// Returns a quantile of sorted times; zero when there are none.
pub(crate) fn share(times: &[Duration], share: f64) -> Duration {
    let index = (times.len().saturating_sub(1) as f64 * share) as usize;
    times.get(index).copied().unwrap_or_default()
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

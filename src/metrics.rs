//! Prometheus metrics: requests as they end, everything else read at the scrape.

mod process;
mod video;
mod webhooks;
mod workflows;

use std::borrow::Cow;

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};
/// The counters of the image workers at the moment of a scrape.
pub use sluice_actors::compute::PoolStatus;
use sluice_actors::{
    cdn::CdnStatistics, convert::JobTotals, live::restream::OutputStatus, video as streams,
    webhooks::WebhookStatistics, workflow,
};
use sluice_ingest::publish::Protocol;
/// The counters of the store at the moment of a scrape.
pub use sluice_store::Statistics;
use sluice_store::{
    jobs::JobState, video::StreamCounts, webhooks::Counts as Backlog, workflows::RunCounts,
};

use self::{process::Process, video::Video, webhooks::Webhooks, workflows::Workflows};

/// A blocking reload waits about one part, a slow client's body some seconds.
const DURATION_BUCKETS_S: [f64; 10] = [0.001, 0.005, 0.02, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    route: Cow<'static, str>,
    method: &'static str,
    /// `2xx` and so on.
    status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Route {
    route: Cow<'static, str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Status {
    status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByProtocol {
    protocol: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Failed {
    /// As answers have it.
    code: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WorkerState {
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Made {
    made: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Tier {
    tier: &'static str,
}

/// What is on air at the moment of a scrape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OnAir {
    pub idle: u64,
    pub live: u64,
    pub reconnecting: u64,
    pub viewers: u64,
    /// Video and audio, as measured over the last seconds.
    pub bitrate_bps: u64,
    /// In the order of [`Protocol::ALL`].
    pub publishers: [u64; Protocol::ALL.len()],
}

impl OnAir {
    /// Counts a publisher by the name of its protocol.
    pub fn count_publisher(&mut self, name: Option<&str>) {
        let mut protocols = Protocol::ALL.iter();
        if let Some(index) = protocols.position(|protocol| Some(protocol.as_str()) == name) {
            self.publishers[index] += 1;
        }
    }
}

/// The registry and the metrics that requests write.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: Family<Answered, Counter>,
    durations: Family<Route, Histogram, fn() -> Histogram>,
    live_inputs: Family<Status, Gauge>,
    live_bitrate: Gauge,
    live_publishers: Family<ByProtocol, Gauge>,
    live_viewers: Gauge,
    live_outputs: Family<Status, Gauge>,
    srt_output_panics: Gauge,
    store_commits: Gauge,
    store_failures: Gauge,
    store_waiting: Gauge,
    parked_components: Gauge,
    jobs: Family<Status, Gauge>,
    files_converted: Gauge,
    files_failed: Family<Failed, Gauge>,
    variants: Family<Made, Gauge>,
    variant_bytes: Family<Tier, Gauge>,
    image_workers: Family<WorkerState, Gauge>,
    image_tasks_waiting: Gauge,
    image_workers_replaced: Gauge,
    image_workers_killed: Gauge,
    video: Video,
    webhooks: Webhooks,
    workflows: Workflows,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("sluice"),
            requests: Family::default(),
            durations: Family::new_with_constructor(duration_histogram),
            live_inputs: Family::default(),
            live_bitrate: Gauge::default(),
            live_publishers: Family::default(),
            live_viewers: Gauge::default(),
            live_outputs: Family::default(),
            srt_output_panics: Gauge::default(),
            store_commits: Gauge::default(),
            store_failures: Gauge::default(),
            store_waiting: Gauge::default(),
            parked_components: Gauge::default(),
            jobs: Family::default(),
            files_converted: Gauge::default(),
            files_failed: Family::default(),
            variants: Family::default(),
            variant_bytes: Family::default(),
            image_workers: Family::default(),
            image_tasks_waiting: Gauge::default(),
            image_workers_replaced: Gauge::default(),
            image_workers_killed: Gauge::default(),
            video: Video::default(),
            webhooks: Webhooks::default(),
            workflows: Workflows::default(),
        };
        metrics.register();
        metrics
    }
}

fn duration_histogram() -> Histogram {
    Histogram::new(DURATION_BUCKETS_S)
}

impl Metrics {
    fn register(&mut self) {
        let registry = &mut self.registry;
        registry.register("http_requests", "Requests answered", self.requests.clone());
        registry.register_with_unit(
            "http_request_duration",
            "From the request's head to the answer's head",
            Unit::Seconds,
            self.durations.clone(),
        );
        registry.register(
            "live_inputs",
            "Live inputs by what they do now",
            self.live_inputs.clone(),
        );
        registry.register(
            "live_publishers",
            "Live inputs that receive media now, by protocol",
            self.live_publishers.clone(),
        );
        registry.register(
            "live_viewers",
            "Players that watch live streams",
            self.live_viewers.clone(),
        );
        registry.register(
            "live_outputs",
            "Outputs of live inputs by what they do now",
            self.live_outputs.clone(),
        );
        registry.register(
            "srt_output_panics",
            "Connections to SRT targets that ended because the SRT library panicked at what the target sent",
            self.srt_output_panics.clone(),
        );
        registry.register(
            "live_bitrate_bps",
            "Media received now, all inputs together",
            self.live_bitrate.clone(),
        );
        registry.register(
            "store_commits",
            "Commits since the start",
            self.store_commits.clone(),
        );
        registry.register(
            "store_failures",
            "Units of work refused or failed",
            self.store_failures.clone(),
        );
        registry.register(
            "store_waiting",
            "Units of work that wait for the writer",
            self.store_waiting.clone(),
        );
        registry.register(
            "parked_components",
            "Components whose restart budget is spent",
            self.parked_components.clone(),
        );
        self.register_conversions();
        self.register_variants();
        self.register_image_workers();
        self.video.register(&mut self.registry);
        self.webhooks.register(&mut self.registry);
        self.workflows.register(&mut self.registry);
        self.registry.register_collector(Box::new(Process));
    }

    fn register_conversions(&mut self) {
        let registry = &mut self.registry;
        registry.register("jobs", "Conversion jobs by status", self.jobs.clone());
        registry.register(
            "files_converted",
            "Files that operations made since the start",
            self.files_converted.clone(),
        );
        registry.register(
            "files_failed",
            "Files that operations failed on since the start, by error code",
            self.files_failed.clone(),
        );
    }

    fn register_variants(&mut self) {
        let registry = &mut self.registry;
        registry.register(
            "cdn_variants",
            "Delivered variants since the start, by how they were made; failures are those that are remembered",
            self.variants.clone(),
        );
        registry.register_with_unit(
            "cdn_cache",
            "Variants that are kept",
            Unit::Bytes,
            self.variant_bytes.clone(),
        );
    }

    fn register_image_workers(&mut self) {
        let registry = &mut self.registry;
        registry.register(
            "image_workers",
            "Processes that decode images, by what they do now",
            self.image_workers.clone(),
        );
        registry.register(
            "image_tasks_waiting",
            "Tasks that wait for a worker",
            self.image_tasks_waiting.clone(),
        );
        registry.register(
            "image_workers_replaced",
            "Workers started in place of another",
            self.image_workers_replaced.clone(),
        );
        registry.register(
            "image_workers_killed",
            "Workers killed for a deadline or because no caller waited any more",
            self.image_workers_killed.clone(),
        );
    }

    /// Counts a request that was answered.
    pub fn answered(
        &self,
        route: Cow<'static, str>,
        method: &'static str,
        status: u16,
        seconds: f64,
    ) {
        let status = ["1xx", "2xx", "3xx", "4xx", "5xx"]
            .get(usize::from(status / 100).wrapping_sub(1))
            .copied()
            .unwrap_or("other");
        let answered = Answered {
            route: route.clone(),
            method,
            status,
        };
        self.requests.get_or_create(&answered).inc();
        self.durations
            .get_or_create(&Route { route })
            .observe(seconds);
    }

    /// Notes what has become of conversions, before a scrape.
    pub fn conversions(&self, jobs: &[(JobState, i64)], files: &JobTotals) {
        for state in JobState::ALL {
            let count = jobs.iter().find(|(counted, _)| *counted == state);
            let status = state.as_str();
            self.jobs
                .get_or_create(&Status { status })
                .set(count.map_or(0, |(_, count)| *count));
        }
        self.files_converted.set(signed(files.converted));
        for (code, count) in &files.failed {
            let code = code.clone();
            self.files_failed
                .get_or_create(&Failed { code })
                .set(signed(*count));
        }
    }

    /// Notes what image delivery has done, before a scrape.
    pub fn delivery(&self, statistics: &CdnStatistics) {
        for (made, count) in [
            ("rendered", statistics.renders),
            ("mezzanine", statistics.mezzanines),
            ("from_disk", statistics.disk_hits),
            ("failed", statistics.failures),
        ] {
            self.variants
                .get_or_create(&Made { made })
                .set(signed(count));
        }
        for (tier, bytes) in [
            ("memory", statistics.memory_bytes),
            ("disk", statistics.disk_bytes),
        ] {
            self.variant_bytes
                .get_or_create(&Tier { tier })
                .set(signed(bytes));
        }
    }

    /// Notes what webhooks have done and what waits for them, before a scrape.
    pub fn webhooks(&self, backlog: &Backlog, done: WebhookStatistics, now_ms: i64) {
        self.webhooks.show(backlog, done, now_ms);
    }

    /// Notes what outputs do, before a scrape.
    pub fn outputs(&self, counts: [(OutputStatus, u64); 4]) {
        for (status, count) in counts {
            let status = status.as_str();
            self.srt_output_panics
                .set(signed(sluice_ingest::srt::caller::panics()));
            self.live_outputs
                .get_or_create(&Status { status })
                .set(signed(count));
        }
    }

    /// Notes what has become of workflow runs and what waits, before a scrape.
    pub fn workflows(&self, unfinished: &RunCounts, ended: &workflow::RunTotals) {
        self.workflows.show(unfinished, ended);
    }

    /// Notes what has become of video streams and what waits, before a scrape.
    pub fn streams(&self, unfinished: &StreamCounts, ended: &streams::StreamTotals) {
        self.video.show_streams(unfinished, ended);
    }

    /// The text of `/metrics` (OpenMetrics).
    pub fn scrape(
        &self,
        on_air: OnAir,
        store: Statistics,
        parked: u64,
        pool: &PoolStatus,
    ) -> String {
        for (status, count) in [
            ("idle", on_air.idle),
            ("live", on_air.live),
            ("reconnecting", on_air.reconnecting),
        ] {
            self.live_inputs
                .get_or_create(&Status { status })
                .set(signed(count));
        }
        for (protocol, count) in Protocol::ALL.into_iter().zip(on_air.publishers) {
            let protocol = protocol.as_str();
            self.live_publishers
                .get_or_create(&ByProtocol { protocol })
                .set(signed(count));
        }
        self.live_bitrate.set(signed(on_air.bitrate_bps));
        self.live_viewers.set(signed(on_air.viewers));
        self.store_commits.set(signed(store.commits));
        self.store_failures.set(signed(store.failures));
        self.store_waiting.set(signed(store.waiting));
        self.parked_components.set(signed(parked));
        self.show_pool(pool);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry)
            .expect("a String takes any text");
        text
    }

    fn show_pool(&self, pool: &PoolStatus) {
        let idle = pool.workers.saturating_sub(pool.busy);
        for (state, number) in [("idle", idle), ("busy", pool.busy)] {
            let gauge = self.image_workers.get_or_create(&WorkerState { state });
            gauge.set(count(number));
        }
        self.image_tasks_waiting.set(count(pool.waiting));
        self.image_workers_replaced.set(signed(pool.replaced));
        self.image_workers_killed.set(signed(pool.killed));
        self.video.show(&pool.video);
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use sluice_actors::compute::{QueueStatus, VideoStatus};

    use super::*;

    #[test]
    fn a_scrape_shows_requests_process_and_live_state() {
        let metrics = Metrics::default();
        metrics.answered("/api/keys".into(), "GET", 204, 0.004);
        let mut on_air = OnAir {
            idle: 3,
            live: 2,
            reconnecting: 1,
            viewers: 5,
            bitrate_bps: 12_000_000,
            ..OnAir::default()
        };
        for protocol in [Some("rtmp"), Some("srt"), None, Some("rtmp")] {
            on_air.count_publisher(protocol);
        }
        let pool = PoolStatus {
            workers: 2,
            busy: 1,
            waiting: 5,
            replaced: 3,
            killed: 4,
            video: VideoStatus {
                long: QueueStatus {
                    running: 1,
                    waiting: 7,
                },
                ended: 8,
                killed: 2,
                retried: 1,
                ..VideoStatus::default()
            },
            ..PoolStatus::default()
        };
        let files = JobTotals {
            converted: 7,
            failed: [("timed_out".to_owned(), 1)].into(),
        };
        metrics.conversions(&[(JobState::Failed, 2)], &files);
        let unfinished = StreamCounts {
            pending: 3,
            processing: 1,
        };
        let ended = streams::StreamTotals {
            ready: 4,
            failed: [("undecodable".to_owned(), 2), ("timed_out".to_owned(), 1)].into(),
        };
        metrics.streams(&unfinished, &ended);
        let text = metrics.scrape(on_air, Statistics::default(), 1, &pool);
        for line in [
            r#"sluice_jobs{status="failed"} 2"#,
            r#"sluice_jobs{status="pending"} 0"#,
            "sluice_files_converted 7",
            r#"sluice_files_failed{code="timed_out"} 1"#,
            r#"sluice_http_requests_total{route="/api/keys",method="GET",status="2xx"} 1"#,
            r#"sluice_http_request_duration_seconds_count{route="/api/keys"} 1"#,
            r#"sluice_live_inputs{status="live"} 2"#,
            "sluice_live_bitrate_bps 12000000",
            "sluice_live_viewers 5",
            r#"sluice_live_publishers{protocol="rtmp"} 2"#,
            r#"sluice_live_publishers{protocol="rtmps"} 0"#,
            r#"sluice_live_publishers{protocol="srt"} 1"#,
            r#"sluice_live_publishers{protocol="rtsp"} 0"#,
            "sluice_parked_components 1",
            r#"sluice_image_workers{state="idle"} 1"#,
            r#"sluice_image_workers{state="busy"} 1"#,
            "sluice_image_tasks_waiting 5",
            "sluice_image_workers_replaced 3",
            "sluice_image_workers_killed 4",
            r#"sluice_video_tasks{queue="long",state="running"} 1"#,
            r#"sluice_video_tasks{queue="long",state="waiting"} 7"#,
            r#"sluice_video_tasks{queue="short",state="running"} 0"#,
            "sluice_video_tasks_ended 8",
            "sluice_video_tasks_killed 2",
            "sluice_video_tasks_retried 1",
            r#"sluice_video_streams{status="pending"} 3"#,
            r#"sluice_video_streams{status="processing"} 1"#,
            r#"sluice_video_streams_ended{status="ready"} 4"#,
            r#"sluice_video_streams_ended{status="failed"} 3"#,
            r#"sluice_video_streams_failed{code="undecodable"} 2"#,
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
        let value = |name: &str| -> f64 {
            let line = text
                .lines()
                .find(|line| line.starts_with(name))
                .unwrap_or_else(|| panic!("{name}: {text}"));
            line.rsplit(' ').next().unwrap().parse().unwrap()
        };
        assert!(value("sluice_process_resident_memory_bytes ") > 1e6);
        assert!(value("sluice_process_cpu_seconds_total ") >= 0.0);
    }
}

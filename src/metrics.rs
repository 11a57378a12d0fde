//! `/metrics`: metrics of requests (`sluice_http_requests`, duration buckets), store, changes and nodes; those of subsystems are read at
//! the scrape.

mod process;

use std::{borrow::Cow, collections::BTreeMap, fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, MetricEncoder, NoLabelSet},
    metrics::{MetricType, counter::Counter, family::Family, histogram::Histogram},
    registry::{Registry, Unit},
};
use sluice_actors::metric::{Metric, MetricUnit, MetricValue};
use sluice_store::{
    Cluster, Statistics,
    blob::ObjectStatistics,
    cluster::{Node, NodeState},
};

use self::process::Process;

/// Upper bounds of request durations, in seconds: a blocking reload waits about one part, the body of a slow client some seconds.
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

/// The registry and the metrics that requests write.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: Family<Answered, Counter>,
    durations: Family<Route, Histogram, fn() -> Histogram>,
    read: LastRead,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("sluice");
        let (requests, read) = (Family::default(), LastRead::default());
        let durations = Family::new_with_constructor(duration_histogram as fn() -> Histogram);
        registry.register(
            "http_requests",
            "Requests answered",
            Family::clone(&requests),
        );
        registry.register_with_unit(
            "http_request_duration",
            "From the request's head to the answer's head",
            Unit::Seconds,
            durations.clone(),
        );
        registry.register_collector(Box::new(read.clone()));
        registry.register_collector(Box::new(Process));
        Self {
            registry,
            requests,
            durations,
            read,
        }
    }
}

fn duration_histogram() -> Histogram {
    Histogram::new(DURATION_BUCKETS_S)
}

impl Metrics {
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

    /// Replaces the metrics that were read of a part of the service.
    pub fn set(&self, part: &'static str, metrics: Vec<Metric>) {
        self.read.0.lock().insert(part, metrics);
    }

    /// Writes the text of `/metrics` (OpenMetrics).
    pub fn encode(&self) -> String {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry)
            .expect("a String takes any text");
        text
    }
}

/// Metrics of the store, whose `parked` components are counted beside it.
pub fn of_store(store: Statistics, parked: usize) -> Vec<Metric> {
    vec![
        Metric::gauge("store_commits", "Commits since the start", store.commits),
        Metric::gauge(
            "store_failures",
            "Units of work rejected or failed",
            store.failures,
        ),
        Metric::gauge(
            "store_waiting",
            "Units of work that wait for the writer",
            store.waiting,
        ),
        Metric::gauge(
            "parked_components",
            "Components whose restart budget is spent",
            parked,
        ),
    ]
}

/// Metrics of the followers of changes.
pub fn of_changes(followers: usize) -> Vec<Metric> {
    vec![Metric::gauge(
        "change_followers",
        "Clients that follow the changes of their account",
        followers,
    )]
}

/// Metrics of the object store and of the cache of its files.
pub fn of_objects(objects: ObjectStatistics) -> Vec<Metric> {
    let found = [("hit", objects.hits), ("fetched", objects.fills)];
    vec![
        Metric::by_label(
            "objects_reads",
            "Files and pieces that were read since the start, by where they were found",
            "from",
            found,
        ),
        Metric::by_label(
            "objects_transferred",
            "Bytes since the start, by direction",
            "direction",
            [
                ("sent", objects.sent_bytes),
                ("fetched", objects.fetched_bytes),
            ],
        )
        .with_unit(MetricUnit::Bytes),
        Metric::gauge(
            "objects_failures",
            "Pieces that could not be fetched or sent since the start, or had other bytes than were stored",
            objects.failures(),
        ),
        Metric::gauge(
            "objects_cache",
            "Bytes that the cache takes on the disk",
            objects.cached_bytes,
        )
        .with_unit(MetricUnit::Bytes),
    ]
}

/// Metrics of the nodes as this one knows them; a service that is alone is one.
pub fn of_cluster(cluster: &Cluster) -> Vec<Metric> {
    let ages = [cluster.lease_age(), cluster.log_age()];
    of_nodes(
        &cluster.nodes(),
        ages.map(Option::unwrap_or_default),
        cluster.this().clock_offset_ms,
    )
}

fn of_nodes(
    nodes: &[Node],
    [lease_age, log_age]: [Duration; 2],
    clock_offset_ms: i64,
) -> Vec<Metric> {
    let states = [NodeState::Starting, NodeState::Up, NodeState::Draining];
    let counts = states.map(|state| {
        let count = nodes.iter().filter(|node| node.state == state).count();
        (state.as_str(), count)
    });
    vec![
        Metric::by_label("cluster_nodes", "Live nodes by state", "state", counts),
        Metric::gauge(
            "cluster_renewal_age",
            "Time since this node renewed its lease",
            lease_age.as_secs_f64(),
        )
        .with_unit(MetricUnit::Seconds),
        Metric::gauge(
            "cluster_log_age",
            "Time since this node read what others have changed",
            log_age.as_secs_f64(),
        )
        .with_unit(MetricUnit::Seconds),
        Metric::gauge(
            "cluster_clock_offset",
            "Time by which the database's clock is ahead of this machine's",
            clock_offset_ms as f64 / 1_000.0,
        )
        .with_unit(MetricUnit::Seconds),
    ]
}

/// Metrics of each part as last read.
#[derive(Clone, Debug, Default)]
struct LastRead(Arc<Mutex<BTreeMap<&'static str, Vec<Metric>>>>);

impl Collector for LastRead {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for metric in self.0.lock().values().flatten() {
            encode(metric, &mut encoder)?;
        }
        Ok(())
    }
}

fn encode(metric: &Metric, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
    let help = format!("{}.", metric.help);
    let unit = metric.unit.map(|unit| match unit {
        MetricUnit::Bytes => Unit::Bytes,
        MetricUnit::Seconds => Unit::Seconds,
    });
    let kind = match metric.value {
        MetricValue::Gauge(_) => MetricType::Gauge,
        MetricValue::Histogram(_) => MetricType::Histogram,
    };
    let mut encoder = encoder.encode_descriptor(metric.name, &help, unit.as_ref(), kind)?;
    match &metric.value {
        MetricValue::Gauge(samples) => {
            for sample in samples {
                let labels: Vec<_> = sample
                    .labels
                    .iter()
                    .map(|(name, value)| (*name, value.as_ref()))
                    .collect();
                match labels.is_empty() {
                    true => encode_gauge(&mut encoder, sample.value)?,
                    false => encode_gauge(&mut encoder.encode_family(&labels)?, sample.value)?,
                }
            }
            Ok(())
        }
        MetricValue::Histogram(histogram) => encoder.encode_histogram::<NoLabelSet>(
            histogram.sum,
            histogram.count,
            &histogram.buckets,
            None,
        ),
    }
}

/// Writes a number; a whole one without a decimal point.
fn encode_gauge(encoder: &mut MetricEncoder<'_>, value: f64) -> Result<(), fmt::Error> {
    match value.fract() == 0.0 {
        true => encoder.encode_gauge(&(value as i64)),
        false => encoder.encode_gauge(&value),
    }
}

#[cfg(test)]
mod tests {
    use sluice_actors::metric::HistogramValue;

    use super::*;

    #[test]
    fn a_scrape_shows_requests_process_and_what_parts_count() {
        let metrics = Metrics::default();
        metrics.answered("/api/keys".into(), "GET", 204, 0.004);
        metrics.set("store", of_store(Statistics::default(), 1));
        metrics.set("jobs", vec![Metric::gauge("jobs", "Jobs", 1_u64)]);
        let ages = [500, 1_250].map(Duration::from_millis);
        metrics.set("cluster", of_nodes(&[], ages, -1_500));
        let waits = HistogramValue {
            buckets: vec![(0.5, 3), (f64::INFINITY, 1)],
            sum: 2.5,
            count: 4,
        };
        let jobs = [("failed", 2_i64), ("pending", 0)];
        metrics.set(
            "jobs",
            vec![
                Metric::by_label("jobs", "Jobs by status", "status", jobs),
                Metric::gauge("oldest_due", "Age", 2.5).with_unit(MetricUnit::Seconds),
                Metric::gauge("cache", "Kept", 1_u64 << 40).with_unit(MetricUnit::Bytes),
                Metric::histogram("wait", "Waits", waits).with_unit(MetricUnit::Seconds),
            ],
        );
        let text = metrics.encode();
        for line in [
            r#"sluice_http_requests_total{route="/api/keys",method="GET",status="2xx"} 1"#,
            r#"sluice_http_request_duration_seconds_count{route="/api/keys"} 1"#,
            "sluice_parked_components 1",
            "sluice_store_commits 0",
            r#"sluice_cluster_nodes{state="up"} 0"#,
            "sluice_cluster_renewal_age_seconds 0.5",
            "sluice_cluster_log_age_seconds 1.25",
            "sluice_cluster_clock_offset_seconds -1.5",
            "# HELP sluice_jobs Jobs by status.",
            "# TYPE sluice_jobs gauge",
            r#"sluice_jobs{status="failed"} 2"#,
            r#"sluice_jobs{status="pending"} 0"#,
            "sluice_oldest_due_seconds 2.5",
            "sluice_cache_bytes 1099511627776",
            r#"sluice_wait_seconds_bucket{le="0.5"} 3"#,
            r#"sluice_wait_seconds_bucket{le="+Inf"} 4"#,
            "sluice_wait_seconds_sum 2.5",
            "sluice_wait_seconds_count 4",
        ] {
            assert!(
                text.lines().any(|it| it == line),
                "{line} is not in\n{text}"
            );
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

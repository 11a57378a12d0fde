//! Metrics of the subsystems (gauges, histograms, labels, units), which the façade encodes for `/metrics` (OpenMetrics).

use std::borrow::Cow;

/// Unit of a metric, which becomes the suffix of its name (OpenMetrics).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricUnit {
    Bytes,
    Seconds,
}

/// A metric at the moment of a scrape.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Name without the prefix `sluice_` and without the unit.
    pub name: &'static str,
    /// A sentence without its full stop.
    pub help: &'static str,
    pub unit: Option<MetricUnit>,
    pub value: MetricValue,
}

#[derive(Clone, Debug, PartialEq)]
pub enum MetricValue {
    /// A sample for each set of labels.
    Gauge(Vec<Sample>),
    Histogram(HistogramValue),
}

/// A value under its labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    pub labels: Vec<(&'static str, Cow<'static, str>)>,
    pub value: f64,
}

/// Observations since the start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HistogramValue {
    /// Upper bound of each bucket in the metric's unit, and the number of observations in it alone.
    pub buckets: Vec<(f64, u64)>,
    pub sum: f64,
    pub count: u64,
}

impl Metric {
    /// A gauge without labels.
    pub fn gauge(name: &'static str, help: &'static str, value: impl Count) -> Self {
        Self::samples(name, help, vec![Sample::new(Vec::new(), value)])
    }

    /// A gauge with one label.
    pub fn by_label<L: Into<Cow<'static, str>>, C: Count>(
        name: &'static str,
        help: &'static str,
        label: &'static str,
        values: impl IntoIterator<Item = (L, C)>,
    ) -> Self {
        let samples = values
            .into_iter()
            .map(|(of, value)| Sample::new(vec![(label, of.into())], value));
        Self::samples(name, help, samples.collect())
    }

    /// A gauge with any labels.
    pub fn samples(name: &'static str, help: &'static str, samples: Vec<Sample>) -> Self {
        Self {
            name,
            help,
            unit: None,
            value: MetricValue::Gauge(samples),
        }
    }

    pub fn histogram(name: &'static str, help: &'static str, value: HistogramValue) -> Self {
        Self {
            name,
            help,
            unit: None,
            value: MetricValue::Histogram(value),
        }
    }

    pub fn with_unit(self, unit: MetricUnit) -> Self {
        Self {
            unit: Some(unit),
            ..self
        }
    }
}

impl Sample {
    pub fn new(labels: Vec<(&'static str, Cow<'static, str>)>, value: impl Count) -> Self {
        Self {
            labels,
            value: value.into_f64(),
        }
    }
}

/// A number that a sample can hold: exact up to 2⁵³.
pub trait Count {
    fn into_f64(self) -> f64;
}

impl Count for u64 {
    fn into_f64(self) -> f64 {
        self as f64
    }
}

impl Count for i64 {
    fn into_f64(self) -> f64 {
        self as f64
    }
}

impl Count for usize {
    fn into_f64(self) -> f64 {
        self as f64
    }
}

impl Count for f64 {
    fn into_f64(self) -> f64 {
        self
    }
}

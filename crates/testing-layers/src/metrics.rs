//! A reader of recorded measurements.

use opentelemetry::KeyValue;
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, Metric, MetricData, ResourceMetrics};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};
use reattempt::grpc::metrics::GrpcMetrics;

pub const TARGET: &str = "dns:///one.example";

/// A provider of instruments, and what they have recorded.
pub struct Reader {
    pub provider: SdkMeterProvider,
    exporter: InMemoryMetricExporter,
}

impl Default for Reader {
    fn default() -> Self {
        let exporter = InMemoryMetricExporter::default();
        let reader = PeriodicReader::builder(exporter.clone()).build();
        Self { provider: SdkMeterProvider::builder().with_reader(reader).build(), exporter }
    }
}

impl Reader {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn metrics(&self) -> GrpcMetrics {
        GrpcMetrics::new(&self.provider, TARGET)
    }

    /// Returns everything that was recorded so far.
    pub fn all(&self) -> ResourceMetrics {
        self.exporter.reset();
        self.provider.force_flush().unwrap();
        self.exporter.get_finished_metrics().unwrap().pop().unwrap()
    }

    fn points(&self) -> Vec<Point> {
        let all = self.all();
        let metrics = all.scope_metrics().flat_map(|scope| scope.metrics());
        metrics.flat_map(points_of).collect()
    }

    /// Returns the names of the instruments that have recorded anything.
    pub fn names(&self) -> Vec<String> {
        distinct(self.points().into_iter().map(|point| point.name))
    }

    /// Returns the label `key` of everything that was recorded; "none" if there is no such label.
    pub fn labels(&self, key: &str) -> Vec<String> {
        distinct(self.points().into_iter().map(|point| point.label(key).unwrap_or("none".to_owned())))
    }

    /// Returns the values of the instrument `reattempt.guard.{name}`, each after its labels in order.
    pub fn of_guard(&self, name: &str) -> Vec<(String, u64)> {
        self.labelled(&format!("reattempt.guard.{name}"))
    }

    /// Returns the values of the instrument `reattempt.endpoints.{name}`.
    pub fn of_endpoints(&self, name: &str) -> Vec<(String, u64)> {
        self.labelled(&format!("reattempt.endpoints.{name}"))
    }

    /// Returns the number of measurements of an instrument, or the sum of a counter, each after its labels in order.
    pub fn counted(&self, name: &str) -> Vec<(String, u64)> {
        let points = self.points().into_iter().filter(|point| point.name == name);
        sorted(points.map(|point| {
            let labels = point.labels.iter().map(|label| format!("{}={}", label.key, label.value));
            (sorted(labels).join(" "), point.count)
        }))
    }

    /// Returns the sum of all measurements of an instrument.
    pub fn milliseconds(&self, name: &str) -> u64 {
        self.points().into_iter().filter(|point| point.name == name).map(|point| point.sum).sum()
    }

    fn labelled(&self, name: &str) -> Vec<(String, u64)> {
        let points = self.points().into_iter().filter(|point| point.name == name);
        sorted(points.map(|point| {
            let labels = point.labels.iter().map(|label| format!("{}={}", label.key, label.value));
            (sorted(labels).join(" "), point.sum)
        }))
    }

    /// Returns the measurements of the instrument `grpc.client.{name}`: for each set of labels, the status if there is
    /// one, the number of measurements and their sum. Seconds are converted to milliseconds.
    pub fn of(&self, name: &str) -> Vec<(String, u64, u64)> {
        let name = format!("grpc.client.{name}");
        let points = self.points().into_iter().filter(|point| point.name == name);
        sorted(points.map(|point| {
            let status = point.label("grpc.status").unwrap_or_default();
            (status, point.count, point.sum)
        }))
    }
}

/// The measurements of an instrument under one set of labels.
struct Point {
    name: String,
    labels: Vec<KeyValue>,
    count: u64,
    sum: u64,
}

impl Point {
    fn label(&self, key: &str) -> Option<String> {
        let label = self.labels.iter().find(|label| label.key.as_str() == key);
        label.map(|label| label.value.to_string())
    }
}

fn points_of(metric: &Metric) -> Vec<Point> {
    let point = |labels, count, sum| Point { name: metric.name().to_owned(), labels, count, sum };
    match metric.data() {
        AggregatedMetrics::U64(MetricData::Sum(sum)) => sum
            .data_points()
            .map(|data| point(data.attributes().cloned().collect(), data.value(), data.value()))
            .collect(),
        AggregatedMetrics::U64(MetricData::Histogram(histogram)) => histogram
            .data_points()
            .map(|data| point(data.attributes().cloned().collect(), data.count(), data.sum()))
            .collect(),
        AggregatedMetrics::U64(MetricData::Gauge(gauge)) => {
            gauge.data_points().map(|data| point(data.attributes().cloned().collect(), 1, data.value())).collect()
        }
        AggregatedMetrics::F64(MetricData::Gauge(gauge)) => gauge
            .data_points()
            .map(|data| {
                let seconds = format!("{:.0}", data.value()).parse().unwrap();
                point(data.attributes().cloned().collect(), 1, seconds)
            })
            .collect(),
        AggregatedMetrics::F64(MetricData::Histogram(histogram)) => histogram
            .data_points()
            .map(|data| {
                let milliseconds = format!("{:.0}", data.sum() * 1000.0).parse().unwrap();
                point(data.attributes().cloned().collect(), data.count(), milliseconds)
            })
            .collect(),
        other => panic!("{other:?}"),
    }
}

fn sorted<T: Ord>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut all: Vec<_> = all.collect();
    all.sort();
    all
}

fn distinct<T: Ord>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut all = sorted(all);
    all.dedup();
    all
}

/// One line of [`Reader::of`].
pub fn line(status: &str, count: u64, sum: u64) -> (String, u64, u64) {
    (status.to_owned(), count, sum)
}

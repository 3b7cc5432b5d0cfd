//! Tests of the OpenTelemetry instruments.

use std::time::Duration;

use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};
use reattempt_fleet::{FleetBudget, FleetMetrics};
use tokio::time::sleep;

use crate::support::{Faulty, ask, confirmed};

struct Reader {
    provider: SdkMeterProvider,
    exporter: InMemoryMetricExporter,
}

impl Reader {
    fn new() -> Self {
        let exporter = InMemoryMetricExporter::default();
        let reader = PeriodicReader::builder(exporter.clone()).build();
        Self { provider: SdkMeterProvider::builder().with_reader(reader).build(), exporter }
    }

    /// Returns each instrument that has recorded anything, with its labels and value, in order. A histogram is shown as
    /// its number of values and their sum in milliseconds.
    fn lines(&self) -> Vec<String> {
        self.exporter.reset();
        self.provider.force_flush().unwrap();
        let all = self.exporter.get_finished_metrics().unwrap();
        let mut lines = Vec::new();
        for metric in all.iter().flat_map(|all| all.scope_metrics()).flat_map(|scope| scope.metrics()) {
            let name = metric.name().strip_prefix("reattempt.fleet.").unwrap();
            match metric.data() {
                AggregatedMetrics::U64(MetricData::Sum(sum)) => lines.extend(sum.data_points().map(|point| {
                    let labels: String = point.attributes().map(|label| format!(" {}", label.value)).collect();
                    format!("{name}{labels} {}", point.value())
                })),
                AggregatedMetrics::F64(MetricData::Histogram(histogram)) => {
                    lines.extend(histogram.data_points().map(|point| {
                        let labels: String = point.attributes().map(|label| format!(" {}", label.value)).collect();
                        format!("{name}{labels} {} {:.0}", point.count(), point.sum() * 1000.0)
                    }));
                }
                other => panic!("{other:?}"),
            }
        }
        lines.sort();
        lines
    }
}

/// Requests 13 retries, with a full local bucket each time: ten grants, then refusals.
async fn outage(budget: &FleetBudget) {
    for _ in 0..13 {
        (0..5).for_each(|_| reattempt_core::Budget::on_success(budget.local(), "a", 0));
        if let Some(permit) = ask(budget, "a") {
            confirmed(&permit).await;
            drop(permit.spend());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_event_has_its_instrument() {
    let reader = Reader::new();
    let metrics = FleetMetrics::new(&reader.provider);
    let budget = FleetBudget::new(Faulty::taking(Duration::from_millis(2))).on_event(metrics.on_event());
    reattempt_core::Budget::on_success(&budget, "a", 0);
    outage(&budget).await;
    assert_eq!(reader.lines(), ["asked 11", "granted 10", "refused 1", "remembered 2", "round_trip 11 22"]);
}

#[tokio::test(start_paused = true)]
async fn faults_of_the_store_have_instruments() {
    let reader = Reader::new();
    let metrics = FleetMetrics::new(&reader.provider).with_destinations();
    for store in [Faulty::down(), Faulty::taking(Duration::from_millis(60))] {
        let budget = FleetBudget::new(store).on_event(metrics.on_event());
        assert!(!confirmed(&ask(&budget, "a").unwrap()).await);
        assert!(ask(&budget, "a").is_none());
        sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(reader.lines(), ["asked a 2", "failed a 1", "late a 1", "withheld a 4"]);
}

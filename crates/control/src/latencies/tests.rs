//! Tests of the quantile against sorted samples, its warm-up and its fading.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::*;

fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

#[test]
fn each_latency_lies_in_its_bucket() {
    let mut random = SmallRng::seed_from_u64(1);
    for _ in 0..20_000 {
        let bits = random.next_u64() % 36 + 1;
        let latency = random.next_u64() % (1 << bits);
        let bucket = bucket(micros(latency));
        assert!(bucket < BUCKETS, "{latency}");
        let end = upper_end(bucket);
        assert!(latency < end, "{latency} < {end}");
        assert!(end - latency <= latency / 16 + 1, "{end} is far above {latency}");
    }
    assert!(bucket(Duration::MAX) < BUCKETS);
    assert_eq!(bucket(Duration::ZERO), 0);
}

#[test]
fn estimate_is_at_most_a_sixteenth_above() {
    for (seed, percent) in [(1, 50_u8), (2, 90), (3, 95), (4, 99)] {
        let latencies = Latencies::new(f64::from(percent) / 100.0);
        let mut random = SmallRng::seed_from_u64(seed);
        // Long-tailed, from 100 µs to a few seconds.
        let mut samples: Vec<u64> = (0..1000).map(|_| 100 + (random.next_u64() % 2000).pow(2) / 2).collect();
        for sample in &samples {
            latencies.record(micros(*sample));
        }
        // The quantile is updated once per 16 samples, so the last eight do not count yet.
        samples.truncate(1000 - 1000 % 16);
        samples.sort_unstable();
        let rank = (samples.len() * usize::from(percent)).div_ceil(100);
        let exact = samples[rank - 1];
        let estimate = latencies.quantile().unwrap();
        assert!(estimate > micros(exact), "{percent}: {estimate:?} of {exact} µs");
        assert!(estimate <= micros(exact + exact / 16 + 1), "{percent}: {estimate:?} of {exact} µs");
    }
}

#[test]
fn there_is_none_before_samples_are_enough() {
    for (share, enough) in [(0.5, 100), (0.95, 200), (0.99, 1000), (0.9999, 100_000)] {
        let latencies = Latencies::new(share);
        for _ in 1..enough {
            latencies.record(micros(1000));
        }
        assert_eq!(latencies.quantile(), None, "{share}");
        latencies.record(micros(1000));
        assert!(latencies.quantile().is_some(), "{share}");
    }
}

#[test]
fn old_samples_fade() {
    let latencies = Latencies::new(0.95);
    for _ in 0..100_000 {
        latencies.record(micros(1_000_000));
    }
    assert!(latencies.quantile().unwrap() >= micros(1_000_000));
    // These samples fill six windows. If old samples never faded, 1.9 million would be needed.
    for _ in 0..12_000 {
        latencies.record(micros(1000));
    }
    let now = latencies.quantile().unwrap();
    assert!(now < micros(1100), "{now:?}");
}

#[test]
fn quantile_is_clamped() {
    let rows = [(0.0, 0.5), (0.49, 0.5), (-1.0, 0.5), (f64::NAN, 0.5), (1.0, 0.9999), (f64::INFINITY, 0.9999)];
    for (beyond, end) in rows {
        let (beyond, end) = (Latencies::new(beyond), Latencies::new(end));
        assert_eq!((beyond.below, beyond.warm_up), (end.below, end.warm_up));
    }
}

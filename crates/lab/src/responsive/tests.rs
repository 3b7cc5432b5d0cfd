//! The figures of the reference, and a table whose workers come and go.

use clap::Parser;

use super::*;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    responsive: Responsive,
}

fn calls(arguments: &[&str]) -> (Vec<Call>, Vec<Pace>) {
    let line = Line::try_parse_from([&["responsive"], arguments].concat()).unwrap();
    let (course, paces) = line.responsive.course(1).unwrap();
    (course.calls, paces)
}

/// The interval grows from 1 ms by a half each time, to 291.929 ms after the 15th refusal in a row.
/// Then it settles from above around the 60 ms that the service requires.
#[test]
fn the_check_of_the_reference() {
    let (calls, paces) = calls(&["--calls", "600"]);
    assert!(calls[..15].iter().all(|call| !call.accepted));
    assert!(calls[15].accepted);
    assert!((calls[15].delay - 0.291_929).abs() < 1e-6, "{:?}", calls[15]);
    let settled = &calls[50..];
    let mean = settled.iter().map(|call| call.delay).sum::<f64>() / settled.len() as f64;
    assert!((0.060..0.080).contains(&mean), "{mean}");
    for call in settled {
        assert!((0.036..=0.090).contains(&call.delay), "{call:?}");
        assert_eq!(call.accepted, call.delay > 0.060, "{call:?}");
    }
    // A step down takes five successes, and 1.26 refusals make up for it: a fifth is refused.
    let refused = settled.iter().filter(|call| !call.accepted).count() as f64;
    assert!((refused / settled.len() as f64 - 0.2).abs() < 0.02, "{refused}");
    assert_eq!(paces[0].metrics().times_slept, 599, "all but the first call waited");
}

/// The pace also settles from below: at first only calls that come too soon are refused.
#[test]
fn it_settles_from_below_too() {
    let (calls, _) = calls(&["--closed", "0", "--calls", "300"]);
    assert!(calls[0].accepted && !calls[1].accepted && calls[1].delay == 0.0);
    let settled = &calls[100..];
    assert!(settled.iter().all(|call| (0.036..=0.090).contains(&call.delay)), "{settled:?}");
}

/// Four workers come one by one and stay for five minutes. Few calls are refused, because the pace
/// falls and the capacity rises until they meet.
#[test]
fn a_table_and_workers_that_come_and_go() {
    let table = ["--service", "table"];
    let (calls, paces) = calls(&table);
    assert_eq!(paces.len(), 4);
    let minute = |minute: usize| {
        let from = 60.0 * minute as f64;
        let of_it = |call: &&Call| (from..from + 60.0).contains(&call.at);
        calls.iter().filter(of_it).collect::<Vec<_>>()
    };
    for worker in 0..4 {
        let own: Vec<_> = calls.iter().filter(|call| call.worker == worker).collect();
        let (first, last) = (own[0].at, own[own.len() - 1].at);
        assert!((first - 60.0 * worker as f64).abs() < 1e-9, "{first}");
        assert!(last < first + 300.0 && last > first + 290.0, "{last}");
    }
    for passed in 0..8 {
        let of_it = minute(passed);
        let refused = of_it.iter().filter(|call| !call.accepted).count() as f64;
        assert!(refused < 0.15 * of_it.len() as f64, "{passed}: {refused} of {}", of_it.len());
    }
    let capacity = |call: &Call| call.capacity.unwrap();
    let most = calls.iter().map(capacity).fold(0.0, f64::max);
    assert_eq!(most, 400.0, "it has grown");
    // Without a pace most calls would be refused.
    let (unpaced, _) = super::tests::calls(&[&table[..], &["--initial", "1ns", "--max", "1ns"]].concat());
    let refused = unpaced.iter().filter(|call| !call.accepted).count() as f64;
    assert!(refused > 0.25 * unpaced.len() as f64, "{refused} of {}", unpaced.len());
}

/// A shared pace learns from the outcomes of all workers.
#[test]
fn one_pace_for_all() {
    let (calls, paces) = calls(&["--service", "table", "--shared", "--stay", "30s", "--apart", "1s"]);
    assert_eq!(paces.len(), 1);
    assert_eq!(paces[0].metrics().invocations, calls.len() as u64);
}

#[test]
fn the_seed_decides() {
    let of_seed = |seed| {
        let line = Line::try_parse_from(["responsive", "--service", "table", "--stay", "20s"]);
        line.unwrap().responsive.course(seed).unwrap().0
    };
    assert_eq!(of_seed(1), of_seed(1));
    assert_ne!(of_seed(1), of_seed(2));
}

/// Returns the calls per second in the second minute: those sent, and those accepted.
fn second_minute(arguments: &[&str]) -> (f64, f64) {
    second_minute_of_seed(1, arguments)
}

fn second_minute_of_seed(seed: u64, arguments: &[&str]) -> (f64, f64) {
    let settled = ["responsive", "--turns", "--stay", "2min"];
    let line = Line::try_parse_from([&settled, arguments].concat()).unwrap();
    let calls = line.responsive.course(seed).unwrap().0.calls;
    let calls: Vec<_> = calls.iter().filter(|call| (60.0..120.0).contains(&call.at)).collect();
    let served = calls.iter().filter(|call| call.accepted).count();
    (calls.len() as f64 / 60.0, served as f64 / 60.0)
}

/// Turns settle near the capacity of a service: 80 % to 120 % of it is served, with few calls more.
/// The window is the hardest case, because it refuses all calls until its second is over.
// trap 37
#[test]
fn turns_serve_the_capacity_of_any_service() {
    let fast = ["--latency", "100us"];
    for capacity in ["1", "50", "5000"] {
        let number: f64 = capacity.parse().unwrap();
        let open = [1.05, 1.2, 2.0].map(|load| (load * number).to_string());
        let closed = ["1", "10", "200"];
        let loads = open.iter().map(|load| vec!["--load", load]);
        let loads = loads.chain(closed.map(|workers| vec!["--apart", "0s", "--workers", workers]));
        for load in loads {
            for kind in ["table", "window"] {
                let service = ["--service", kind, "--capacity", capacity];
                let largest: &[&str] = if kind == "table" { &["--largest", capacity] } else { &[] };
                let (sent, served) = second_minute(&[&service, largest, &load, &fast].concat());
                let (sent, served) = (sent / number, served / number);
                assert!((0.8..=1.2).contains(&served), "{kind} {capacity} {load:?}: {served}");
                assert!(sent < 1.5, "{kind} {capacity} {load:?}: {sent}");
            }
        }
    }
}

/// A load just above the capacity is refused seldom, and the interval has far to go from 10 µs.
// trap 37
#[test]
fn a_slow_service_is_served_by_any_seed() {
    let services = [
        &["--service", "table", "--capacity", "1", "--largest", "1"][..],
        &["--service", "window", "--capacity", "1"],
        &["--closed", "0", "--gap", "1s"],
    ];
    for service in services {
        for load in ["1.2", "1.5", "2"] {
            for seed in 1..=20 {
                let (_, served) = second_minute_of_seed(seed, &[service, &["--load", load]].concat());
                assert!((0.8..=1.2).contains(&served), "{service:?} {load} {seed}: {served}");
            }
        }
    }
}

/// With slower answers many calls are in flight, and their outcomes arrive late.
#[test]
fn turns_serve_the_capacity_with_late_news() {
    for (capacity, load) in [("1", "2"), ("50", "100"), ("5000", "10000")] {
        let number: f64 = capacity.parse().unwrap();
        for kind in ["table", "window"] {
            let service = ["--service", kind, "--capacity", capacity, "--latency", "50ms"];
            let largest: &[&str] = if kind == "table" { &["--largest", capacity] } else { &[] };
            let (_, served) = second_minute(&[&service[..], largest, &["--load", load]].concat());
            assert!((0.8..=1.2).contains(&(served / number)), "{kind} {capacity}: {served}");
        }
    }
}

/// Returns the share of its capacity that a gate serves in the second minute.
fn share_of_gate(gap: &str, load: &[&str], timer: &str, latency: &str) -> f64 {
    let gate = ["--closed", "0", "--calls", "5000000", "--gap", gap];
    let others = ["--timer", timer, "--latency", latency];
    let (sent, served) = second_minute(&[&gate[..], load, &others].concat());
    let capacity = 1.0 / humantime::parse_duration(gap).unwrap().as_secs_f64();
    assert!(sent < 1.2 * capacity, "{gap} {load:?}: {sent}");
    served / capacity
}

/// A service that requires an exact gap is served too, if the timer can measure the gap. With a timer of 1 ms, most
/// turns of 0.2 ms come together, and the service takes one of each group.
// trap 37
#[test]
fn turns_serve_a_service_of_exact_gaps() {
    let closed = |workers| ["--apart", "0s", "--workers", workers];
    for (gap, loads, timer) in
        [("1s", ["1.2", "2"], "1ms"), ("20ms", ["60", "100"], "1ms"), ("200us", ["6000", "10000"], "1us")]
    {
        let open = loads.map(|load| ["--load", load]);
        let closed = ["1", "10", "200"].map(closed);
        for load in open.iter().map(|load| &load[..]).chain(closed.iter().map(|load| &load[..])) {
            let share = share_of_gate(gap, load, timer, "100us");
            assert!((0.8..=1.2).contains(&share), "{gap} {load:?}: {share}");
        }
    }
    let coarse = share_of_gate("200us", &closed("200"), "1ms", "100us");
    assert!((0.15..=0.2).contains(&coarse), "one call in each tick: {coarse}");
}

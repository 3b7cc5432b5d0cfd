//! `lab responsive`.

use super::{run, scratch, wrote};

#[test]
fn the_delays_of_each_call() {
    let picture = scratch("responsive.png");
    let (code, text, errors) = run(&["responsive", "--calls", "16", "--plot", picture.to_str().unwrap()]);
    assert_eq!((code, errors), (0, wrote(&picture)));
    assert!(text.contains("16 calls, 1 accepted; the interval went up 15 times"), "{text}");
    assert!(text.ends_with("; 15 waits, 874 ms in all, the longest 291.929 ms.\n"), "{text}");
    assert!(std::fs::read(picture).unwrap().starts_with(b"\x89PNG"));

    let (code, text, _) = run(&["responsive", "--calls", "16", "--json"]);
    assert_eq!(code, 0);
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["times_up"], 15);
    let last = &document["calls"][15];
    assert_eq!((&last["accepted"], last["worker"].as_u64()), (&true.into(), Some(0)));
    assert!((last["delay"].as_f64().unwrap() - 0.291_929).abs() < 1e-6);
}

#[test]
fn settings_that_the_library_refuses() {
    for (arguments, expected) in [
        (&["--up", "0.5"][..], "error: `up` must be a finite number, 1 or above, but it is 0.5\n"),
        (&["--down", "1"], "error: `down` must be a number above 0 and below 1, but it is 1\n"),
        (&["--max", "1us"], "error: `max` must be from `initial` to 584 years, but it is 1µs\n"),
        (&["--service", "table", "--adapts", "0s"], "error: `adapts` must be above 0, but it is 0s\n"),
        (&["--largest", "9"], "error: --largest needs --service table\n"),
        (&["--capacity", "9"], "error: --capacity needs --service table or window\n"),
        (&["--service", "table", "--gap", "9ms"], "error: --gap needs --service gate\n"),
    ] {
        let (code, text, errors) = run(&[&["responsive"], arguments].concat());
        assert_eq!((code, &*text, &*errors), (2, "", expected));
    }
}

#[test]
fn load_is_a_number_above_zero() {
    let of = |load| run(&["responsive", "--turns", "--stay", "10s", "--load", load]);
    let (code, text, errors) = of("1.2");
    assert_eq!((code, &*errors), (0, ""));
    assert!(text.contains("served a second"), "{text}");
    for (load, reason) in [
        ("0", "must be from 0.0001 to 1000000"),
        ("-1", "must be from 0.0001 to 1000000"),
        ("nan", "must be from 0.0001 to 1000000"),
        ("inf", "must be from 0.0001 to 1000000"),
        ("1,2", "not a number"),
    ] {
        let (code, text, errors) = of(load);
        assert_eq!((code, &*text), (2, ""));
        let expected = format!("error: invalid value '{load}' for '--load <NUMBER>': {reason}\n");
        assert!(errors.starts_with(&expected), "{errors}");
    }
}

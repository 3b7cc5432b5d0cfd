//! `lab replay`.

use super::{run, scratch};

/// An outage from 100 ms to 400 ms, in which three of six calls began.
pub(super) const RECORDING: &str = "\
may-remain = true

[recording]
destination = \"orders.example\"
end-ms = 5000
calls-ms = [0, 100, 200, 300, 450, 5000]

[[step]]
fault = { status = 503 }
from-ms = 100
to-ms = 400
always = true
";

pub(super) fn recorded(name: &str, text: &str) -> String {
    let path = scratch(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn policies_meet_the_recorded_outage() {
    let file = recorded("outage.toml", RECORDING);
    let (code, text, errors) = run(&["replay", &file, "none", "naive", "constant:max_attempts=2,base=250ms"]);
    assert_eq!((code, &*errors), (0, ""));
    let expected = "\
6 calls to orders.example in 5 s

policy                          succeeded  failed  undecided  attempts  mean wait  longest wait
no retry                       3 (50.0 %)       3          0         6        0 s           0 s
three at once                  3 (50.0 %)       3          0        15        0 s           0 s
constant:max_attempts=2,base=250ms  5 (83.3 %)       1          0         9     250 ms        250 ms
";
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let (table, limits) = text.split_at(text.find("\n\nAn attempt").unwrap());
    assert_eq!(words(table), words(expected).into_iter().map(|word| word.replace("50.0", "50")).collect::<Vec<_>>());
    assert!(limits.contains("The server's load is not simulated"), "{limits}");
}

#[test]
fn replay_prints_json() {
    let file = recorded("json.toml", RECORDING);
    let (code, text, errors) = run(&["replay", &file, "--json"]);
    assert_eq!((code, &*errors), (0, ""));
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&document["destination"], &document["seconds"]), (&"orders.example".into(), &5.0.into()));
    let policies = document["policies"].as_array().unwrap();
    assert_eq!(policies.len(), 4);
    assert_eq!((&policies[0]["succeeded"], &policies[0]["attempts"]), (&3.into(), &6.into()));
}

/// A call whose next attempt is later than everything that was recorded is neither a success nor a failure.
#[test]
fn call_past_the_end_is_undecided() {
    let file = recorded("open.toml", &RECORDING.replace("5000", "400").replace("450", "390").replace(", 400]", "]"));
    let (code, text, _) = run(&["replay", &file, "constant:max_attempts=2,base=250ms,budget=none", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let row = &document["policies"][0];
    let counts = ["succeeded", "failed", "undecided"].map(|count| row[count].as_u64().unwrap());
    assert_eq!((code, counts), (0, [1, 1, 3]));
}

#[test]
fn replay_names_what_is_wrong() {
    let good = recorded("good.toml", RECORDING);
    let script = recorded("script.toml", "[[step]]\nfault = \"hang\"");
    let negative = recorded("negative.toml", &RECORDING.replace("5000\n", "-1\n"));
    let empty = recorded("empty.toml", &RECORDING.replace("[0, 100, 200, 300, 450, 5000]", "[]"));
    for (arguments, problem) in [
        (&["replay", "/none.toml"][..], "cannot read /none.toml: "),
        (&["replay", &script], "script.toml: line 1, column 1: `recording` is missing"),
        (&["replay", &negative], "negative.toml: line 5, column 10: end-ms: invalid value"),
        (&["replay", &empty], "`calls-ms` is empty"),
        (&["replay", &good, "ours+breaker"], "guards and fleet budgets are not simulated"),
        (&["replay", &good, "fleet"], "guards and fleet budgets are not simulated"),
        (&["replay", &good, "ours", "--plot", "a.svg"], "this command draws no picture"),
    ] {
        let (code, _, errors) = run(arguments);
        assert_eq!(code, 2, "{arguments:?}");
        assert!(errors.contains(problem), "{arguments:?}: {errors}");
    }
}

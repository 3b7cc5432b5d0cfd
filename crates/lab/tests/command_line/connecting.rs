//! `lab connections`.

use super::{run, scratch, wrote};

#[test]
fn scenes_in_a_table_and_a_document() {
    let picture = scratch("connections.svg");
    let short = ["connections", "--scenes", "reset,goaway", "--fleets", "1x64/2", "--fault", "5s"];
    let (code, text, errors) = run(&[&short[..], &["--plot", picture.to_str().unwrap()]].concat());
    assert_eq!((code, errors), (0, wrote(&picture)));
    assert!(text.starts_with(" one connection reset each second, 1 × 64 on 2  success  attempts/call"), "{text}");
    assert_eq!(text.lines().count(), 2 * (1 + 7) + 1, "{text}");
    let svg = std::fs::read_to_string(picture).unwrap();
    for text in ["former rule", "gRPC throttle", "attempts a call", "GOAWAY on all, 10 a second, 1 × 64 on 2"] {
        assert!(svg.contains(text), "{text}");
    }
    let (_, json, _) = run(&[&short[..], &["ours+breaker", "--json", "--seed", "3"]].concat());
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    let ours = &document["scenes"][0]["policies"][0];
    assert_eq!((&document["seed"], &ours["policy"]), (&3.into(), &"ours + breaker".into()));
    for (arguments, text) in [
        ("connections --scenes stall", "[possible values: reset, goaway"),
        ("connections --fleets 64", "must be CLIENTSxCALLS[/CONNECTIONS] or CLIENTSxRATE/s[/CONNECTIONS]"),
        ("connections --fault 10ms", "error: --fault must be from 1 s to 1 h"),
        ("connections fleet", "error: fleet: fleet budgets are not simulated here"),
    ] {
        let (code, _, errors) = run(&arguments.split(' ').collect::<Vec<_>>());
        assert_eq!(code, 2, "{arguments}: {errors}");
        assert!(errors.contains(text), "{arguments}: {errors}");
    }
}

//! `lab endpoints`.

use super::{run, scratch, wrote};

#[test]
fn rules_in_a_table_and_a_document() {
    let picture = scratch("endpoints.svg");
    let short = ["endpoints", "--scenes", "1-of-3", "--fault", "10s"];
    let (code, text, errors) = run(&[&short[..], &["--plot", picture.to_str().unwrap()]].concat());
    assert_eq!((code, errors), (0, wrote(&picture)));
    assert!(text.starts_with(" 1 of 3 refuses  success  at faulty"), "{text}");
    assert_eq!(text.lines().count(), 1 + 4, "{text}");
    let svg = std::fs::read_to_string(picture).unwrap();
    for text in ["calls that succeed", "attempts at faulty servers", "tower P2C", "fault"] {
        assert!(svg.contains(text), "{text}");
    }
    let (_, json, _) = run(&[&short[..], &["ours", "--json", "--seed", "3"]].concat());
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    let ours = &document["scenes"][0]["rules"][0];
    assert_eq!((&document["seed"], &ours["rule"]), (&3.into(), &"endpoints".into()));
    assert!(ours["success"].as_f64().unwrap() > 0.99);
    for (arguments, text) in [
        ("endpoints linkerd", "[possible values: ours, tower-p2c, round-robin, envoy]"),
        ("endpoints --scenes 3-of-3", "[possible values: 1-of-3, 2-of-3"),
        ("endpoints --fault 10ms", "error: --fault must be from 1 s to 1 h"),
        ("endpoints --load 9", "must be from 0.0001 to 2"),
    ] {
        let (code, _, errors) = run(&arguments.split(' ').collect::<Vec<_>>());
        assert_eq!(code, 2, "{arguments}: {errors}");
        assert!(errors.contains(text), "{arguments}: {errors}");
    }
}

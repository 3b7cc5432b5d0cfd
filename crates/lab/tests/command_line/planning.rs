//! `lab plan`.

use super::{run, scratch, wrote};

#[test]
fn the_defaults_without_any_argument() {
    let (code, text, errors) = run(&["plan"]);
    assert_eq!((code, &*errors), (0, ""));
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "standard");
    assert!(lines[2].starts_with(" 1       0 s  100 ms  "), "{text}");
    assert!(lines[4].starts_with("A call that always fails is retried 2 times"), "{text}");
    assert!(text.ends_with(": all allowed attempts have been made.\n"), "{text}");
}

#[test]
fn policies_of_a_file_and_words_beside_them() {
    let (file, svg) = (scratch("plan.toml"), scratch("plan.svg"));
    std::fs::write(&file, "[orders]\nschedule = \"constant\"\nbase = \"2s\"\n").unwrap();
    let (file, picture) = (file.to_str().unwrap(), svg.to_str().unwrap());
    let (code, text, errors) = run(&["plan", "google", "--file", file, "--json", "--plot", picture]);
    assert_eq!((code, errors), (0, wrote(&svg)));
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["policies"][0]["policy"], "google");
    assert_eq!(document["policies"][0]["retries"][4]["waited_from"], 31.0);
    assert_eq!(document["policies"][1]["retries"][1]["mean"], 2.0);
    let svg = std::fs::read_to_string(svg).unwrap();
    assert!(svg.contains("google") && svg.contains("orders"));
}

#[test]
fn a_schedule_by_flags() {
    let flags = ["--base", "10ms", "--factor", "3", "--cap", "50ms", "--jitter", "none"];
    let limits = ["--max-attempts", "5", "--max-elapsed", "none"];
    let (code, text, errors) = run(&[&["plan", "--json"], &flags[..], &limits[..]].concat());
    assert_eq!((code, &*errors), (0, ""));
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let delays = document["policies"][0]["retries"].as_array().unwrap();
    let delays: Vec<_> = delays.iter().map(|band| band["mean"].as_f64().unwrap()).collect();
    assert_eq!(delays, [0.01, 0.03, 0.05, 0.05]);

    let (_, text, _) = run(&["plan", "stripe", "list:1s,2s", "--max-attempts", "2"]);
    assert!(text.starts_with("stripe:max_attempts=2\n"), "{text}");
    assert!(text.contains("\nlist:1s,2s,max_attempts=2\n"), "{text}");
    assert_eq!(text.matches("is retried once").count(), 2, "{text}");
}

#[test]
fn what_is_no_policy_is_said_with_its_place() {
    for (arguments, expected) in [
        (
            &["exponential:cap=1ms"][..],
            "error: exponential:cap=1ms: cap must be at least the base delay, but it is 1ms\n",
        ),
        (
            &["--factor", "-1", "--base", "5"],
            "error: exponential:base=5,factor=-1: base must be a duration like \"1500ms\" or \"5s\", but it \
             is 5; factor must be a finite number above 0, but it is -1\n",
        ),
        (
            &["stripe", "--cap", "5s"],
            "error: stripe:cap=5s: cap belongs to a `schedule`, and here the profile's is used\n",
        ),
    ] {
        let (code, text, errors) = run(&[&["plan"], arguments].concat());
        assert_eq!((code, &*text, &*errors), (2, "", expected));
    }
    let (code, _, errors) = run(&["plan", "aws:max_attempts=2", "--max-attempts", "3"]);
    assert_eq!(code, 2);
    assert_eq!(errors, "error: aws:max_attempts=2,max_attempts=3: duplicate key\n");
    let (code, _, errors) = run(&["plan", "often"]);
    assert_eq!(code, 2);
    assert!(errors.starts_with("error: often: \"often\" is no kind of schedule (expo"), "{errors}");

    let file = scratch("broken.toml");
    std::fs::write(&file, "[orders]\ncap = 5\nfactor = \"2\"\n").unwrap();
    let (code, text, errors) = run(&["plan", "--file", file.to_str().unwrap()]);
    let file = file.display();
    assert_eq!((code, &*text), (2, ""));
    assert!(errors.starts_with(&format!("error: {file}:2: orders.cap must be a duration")));
    assert!(errors.contains(&format!("\n       {file}:3: orders.factor must be a number")));

    let (code, _, errors) = run(&["plan", "--file", "no/such.toml"]);
    assert_eq!(code, 2);
    assert!(errors.starts_with("error: no/such.toml: cannot be read: No such file"), "{errors}");
}

//! `lab plan`.

use super::{run, scratch};

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
    let (code, text, errors) =
        run(&["plan", "google", "--file", file, "--json", "--plot", picture]);
    assert_eq!((code, &*errors), (0, ""));
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["policies"][0]["policy"], "google");
    assert_eq!(document["policies"][0]["retries"][4]["waited_from"], 31.0);
    assert_eq!(document["policies"][1]["retries"][1]["mean"], 2.0);
    let svg = std::fs::read_to_string(svg).unwrap();
    assert!(svg.contains("google") && svg.contains("orders"));
}

#[test]
fn what_is_no_policy_is_said_with_its_place() {
    let (code, _, errors) = run(&["plan", "exponential:cap=1ms"]);
    let expected = "error: invalid value 'exponential:cap=1ms' for '[POLICY]...': cap must be at \
                    least the base delay, but it is 1ms";
    assert_eq!(code, 2);
    assert!(errors.starts_with(expected), "{errors}");

    let file = scratch("broken.toml");
    std::fs::write(&file, "[orders]\ncap = 5\nfactor = \"2\"\n").unwrap();
    let (code, text, errors) = run(&["plan", "--file", file.to_str().unwrap()]);
    let file = file.display();
    assert_eq!((code, &*text), (2, ""));
    assert!(errors.starts_with(&format!("error: {file}:2: orders.cap must be a duration")));
    assert!(errors.contains(&format!("\n       {file}:3: orders.factor must be a number")));

    let (code, _, errors) = run(&["plan", "--file", "no/such.toml"]);
    assert_eq!(code, 2);
    assert!(errors.starts_with("error: cannot read no/such.toml: No such file"), "{errors}");
}

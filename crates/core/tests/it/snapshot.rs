use core::time::Duration;

use reattempt_core::snapshot::{Part, Value};

fn page() -> Part {
    let pay = Part::new("destination", "https://pay.example:443")
        .field("tokens", 7.25)
        .field("third", 1.0 / 3.0)
        .field_if("doubt", Some(3_u32))
        .field_if("nothing", None::<u32>);
    Part::new("budget", "payments")
        .field("rule", "cautious")
        .field("on", true)
        .field("wait", Duration::from_micros(1_500_999))
        .field("latency", Duration::from_nanos(12_345_678))
        .parts([pay, Part::new("others", "")])
}

#[test]
fn text_is_a_line_for_each_part() {
    let expected = "\
budget payments: rule cautious, on true, wait 1.5s, latency 12.345ms
  destination https://pay.example:443: tokens 7.25, third 0.333, doubt 3
  others
";
    assert_eq!(page().to_string(), expected);
    let whole = Part::new("n", "").field("a", 10.0).field("b", -0.5).field("c", 100_u64).field("d", f64::INFINITY);
    let whole = whole.field("e", Duration::ZERO);
    assert_eq!(whole.to_string(), "n: a 10, b -0.5, c 100, d inf, e 0s\n");
}

/// A name that a peer chose adds no line to the page.
#[test]
fn control_characters_are_escaped() {
    let part = Part::new("destination", "a\nbudget b: tokens 9").field("reason", "\u{1b}[2J\r");
    assert_eq!(part.to_string(), "destination a\\nbudget b: tokens 9: reason \\u{1b}[2J\\r\n");
}

#[test]
fn texts_are_replaced_in_all_parts() {
    let page = page().map_texts(&|text| text.replace("pay", "***"));
    assert_eq!(page.name(), "***ments");
    assert_eq!(page.get_parts()[0].name(), "https://***.example:443");
    assert_eq!((page.kind(), page.get("on")), ("budget", Some(&Value::Flag(true))));
    let text = Part::new("a", "").field("b", "pay").map_texts(&|_| "c".to_owned());
    assert_eq!(text.get("b"), Some(&Value::Text("c".to_owned())));
}

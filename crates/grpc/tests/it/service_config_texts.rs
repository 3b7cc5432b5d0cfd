//! Tests that any text gives a service config or errors with paths, in time linear in its length. The fuzz target
//! `configs` in `fuzz/` runs the same function.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use reattempt_grpc::ServiceConfig;

use crate::any_config::look;

const FULL: &str = r#"{
  "loadBalancingConfig": [{"round_robin": {}}],
  "methodConfig": [
    {"name": [{"service": "a.B", "method": "C"}, {"service": "a.D"}], "waitForReady": true,
     "timeout": "1.500s", "maxRequestMessageBytes": 1024, "maxResponseMessageBytes": 4096,
     "retryPolicy": {"maxAttempts": 5, "initialBackoff": "0.1s", "maxBackoff": "10s",
       "backoffMultiplier": 1.6, "retryableStatusCodes": ["UNAVAILABLE", 8]}},
    {"name": [{}], "hedgingPolicy": {"maxAttempts": 3, "hedgingDelay": "0.05s",
       "nonFatalStatusCodes": ["ABORTED", "é"]}}
  ],
  "retryThrottling": {"maxTokens": 100, "tokenRatio": 0.1}
}"#;

#[test]
fn odd_texts_have_a_defined_end() {
    let texts = [
        "\u{feff}{}",
        "{}\0",
        "\0",
        "nul",
        "-",
        "01",
        "1e",
        "\"",
        "\"\\",
        "\"\\u12\"",
        "{\"\\ud800\":1}",
        "{\"a\":\"\u{1}\"}",
        "[1,]",
        "{,}",
        "// {}",
        "{\"methodConfig\":[{}]}",
        "{\"methodConfig\":[[[[]]]]}",
        "{\"methodConfig\":[{\"name\":[{\"service\":\"/\",\"method\":\"/\"}]}]}",
        "{\"methodConfig\":[{\"name\":[{\"service\":\"\\u0000\\ud83d\\ude00\"}]}]}",
        "{\"methodConfig\":[{\"timeout\":\"\u{202e}s1\"}]}",
        "{\"methodConfig\":[{\"maxRequestMessageBytes\":-0.0e-0}]}",
        "{\"retryThrottling\":{\"maxTokens\":1E+0001,\"tokenRatio\":1e-00003}}",
        "{\"$serde_json::private::RawValue\":\"{}\"}",
        "{\"$serde_json::private::Number\":\"1\"}",
        "{\"methodConfig\":{\"$serde_json::private::RawValue\":\"[]\"}}",
    ];
    texts.into_iter().for_each(look);
}

#[test]
fn cut_or_changed_text_has_defined_end() {
    for (at, _) in FULL.char_indices() {
        look(&FULL[..at]);
        for other in ["\"", "{", "0", "é"] {
            let rest = &FULL[at..];
            let rest = &rest[rest.chars().next().unwrap().len_utf8()..];
            look(&format!("{}{other}{rest}", &FULL[..at]));
        }
    }
}

#[test]
fn no_depth_overflows_the_stack() {
    for open in ["[", "{\"a\":", "{\"methodConfig\":[", "{\"methodConfig\":[{\"name\":[{\"service\":"] {
        look(&open.repeat(50_000));
    }
    let deep = format!("{}{}", "[".repeat(50_000), "]".repeat(50_000));
    for field in ["unknown", "methodConfig", "retryThrottling"] {
        look(&format!("{{\"{field}\":{deep}}}"));
    }
    look(&format!("{{\"methodConfig\":[{{\"name\":[{{\"service\":{deep}}}],\"timeout\":{deep}}}]}}"));
}

#[test]
fn long_texts_are_read_in_time() {
    let many = 20_000;
    let codes = vec!["99"; many].join(",");
    let text =
        format!("{{\"methodConfig\":[{{\"hedgingPolicy\":{{\"maxAttempts\":2,\"nonFatalStatusCodes\":[{codes}]}}}}]}}");
    assert_eq!(ServiceConfig::parse(&text).unwrap_err().iter().count(), many);

    let names: Vec<_> = (0..many).map(|number| format!("{{\"service\":\"s{number}\"}}")).collect();
    let text = format!("{{\"methodConfig\":[{{\"name\":[{}]}}]}}", names.join(","));
    let config = ServiceConfig::parse(&text).unwrap();
    assert!(config.for_method("/s19999/m").is_some());

    let keys: Vec<_> = (0..many).map(|number| format!("\"k{}\":1", number / 2)).collect();
    let text = format!("{{{}}}", keys.join(","));
    assert_eq!(ServiceConfig::parse(&text).unwrap_err().iter().count(), many / 2);
}

/// Returns JSON of any shape, in which known names and values are frequent.
fn document() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        9 => prop::sample::select(&[
            "methodConfig", "name", "service", "method", "timeout", "waitForReady", "retryPolicy",
            "maxRequestMessageBytes", "maxResponseMessageBytes", "hedgingPolicy", "maxAttempts",
            "initialBackoff", "maxBackoff", "backoffMultiplier", "retryableStatusCodes",
            "hedgingDelay", "nonFatalStatusCodes", "retryThrottling", "maxTokens", "tokenRatio",
        ][..]).prop_map(|name| format!("{name:?}")),
        1 => Just("\"other\"".to_owned()),
    ];
    let leaf = prop_oneof![
        prop::sample::select(
            &[
                "null",
                "true",
                "0",
                "2",
                "3.0",
                "1e9",
                "-1",
                "0.1",
                "\"2\"",
                "\"1s\"",
                "\".5s\"",
                "\"-1s\"",
                "\"UNAVAILABLE\"",
                "\"ok\"",
                "\"\"",
                "[14]",
                "[{}]",
                "{}",
            ][..]
        )
        .prop_map(str::to_owned),
        any::<f64>()
            .prop_filter("JSON has no others", |number| number.is_finite())
            .prop_map(|number| format!("{number:e}")),
        "\"[a-z0-9.s/ -]{0,8}\"",
    ];
    leaf.prop_recursive(6, 48, 6, move |inner| {
        prop_oneof![
            1 => vec(inner.clone(), 0..4).prop_map(|items| format!("[{}]", items.join(","))),
            3 => vec((name.clone(), inner.clone()), 0..6).prop_map(|members| {
                let members: Vec<_> =
                    members.iter().map(|(name, value)| format!("{name}:{value}")).collect();
                format!("{{{}}}", members.join(","))
            }),
            2 => btree_map(name.clone(), inner, 0..6).prop_map(|members| {
                let members: Vec<_> =
                    members.iter().map(|(name, value)| format!("{name}:{value}")).collect();
                format!("{{\"methodConfig\":[{{{}}}]}}", members.join(","))
            }),
        ]
    })
}

/// A field, a valid value, invalid values with the place of their error, and whether the field is required.
type Field = (&'static str, &'static str, &'static [(&'static str, &'static str)], bool);

const DURATIONS: &[(&str, &str)] = &[("\"-1s\"", ""), ("1", ""), ("\"1m\"", "")];
const BYTES: &[(&str, &str)] = &[("-1", ""), ("1.5", ""), ("4294967296", ""), ("\"x\"", "")];
const ATTEMPTS: &[(&str, &str)] = &[("1", ""), ("2.5", ""), ("\"many\"", ""), ("[]", "")];
const CODES: &[(&str, &str)] = &[("14", ""), ("[14, 0]", "[1]"), ("[\"NOPE\", 14]", "[0]")];

const OF_RETRIES: &[Field] = &[
    ("maxAttempts", "4", ATTEMPTS, true),
    ("initialBackoff", "\"0.1s\"", &[("\"0s\"", ""), ("true", "")], true),
    ("maxBackoff", "\"1s\"", DURATIONS, true),
    ("backoffMultiplier", "2", &[("0", ""), ("\"two\"", ""), ("{}", "")], true),
    ("retryableStatusCodes", "[\"UNAVAILABLE\"]", CODES, true),
];
const OF_HEDGES: &[Field] = &[
    ("maxAttempts", "3", ATTEMPTS, true),
    ("hedgingDelay", "\"0.5s\"", DURATIONS, false),
    ("nonFatalStatusCodes", "[14]", CODES, false),
];
const OF_METHODS: &[Field] = &[
    ("timeout", "\"1s\"", DURATIONS, false),
    ("waitForReady", "true", &[("\"true\"", ""), ("1", "")], false),
    ("maxRequestMessageBytes", "0", BYTES, false),
    ("maxResponseMessageBytes", "7.0", BYTES, false),
    ("name", "[]", &[("{}", ""), ("[7]", "[0]"), ("[{\"method\": \"m\"}]", "[0].service")], false),
];
const OF_THROTTLING: &[Field] = &[
    ("maxTokens", "10", &[("0", ""), ("1001", ""), ("null", "")], true),
    ("tokenRatio", "0.1", &[("-0.1", ""), ("0.0009", ""), ("[]", "")], true),
];

/// A document with errors, and their places.
#[derive(Default)]
struct Broken {
    paths: Vec<String>,
}

impl Broken {
    /// Returns an object with these fields, each at random valid, invalid, missing or repeated.
    fn object(&mut self, path: &str, fields: &[Field], chance: &mut impl Iterator<Item = u8>) -> String {
        let mut members = Vec::new();
        for (name, right, wrong, required) in fields {
            let (kind, which) = (chance.next().unwrap() % 8, chance.next().unwrap());
            let (value, place) = wrong[usize::from(which) % wrong.len()];
            match kind {
                0 => self.paths.push(format!("{path}.{name}{place}")),
                1 if *required => self.paths.push(format!("{path}.{name}")),
                2 => self.paths.push(format!("{path}.{name}")),
                _ => {}
            }
            let value = if kind == 0 { value } else { right };
            let times = [1, 0, 2, 1, 1, 1, 1, 1][usize::from(kind)];
            members.extend(vec![format!("\"{name}\": {value}"); times]);
        }
        format!("{{{}}}", members.join(", "))
    }

    fn document(&mut self, chance: &mut impl Iterator<Item = u8>) -> String {
        let methods: Vec<_> = (0..chance.next().unwrap() % 5)
            .map(|number| {
                let path = format!("methodConfig[{number}]");
                let method = self.object(&path, OF_METHODS, chance);
                let (policy, fields) = match chance.next().unwrap() % 2 {
                    0 => ("retryPolicy", OF_RETRIES),
                    _ => ("hedgingPolicy", OF_HEDGES),
                };
                let value = self.object(&format!("{path}.{policy}"), fields, chance);
                let rest = method.strip_prefix('{').unwrap();
                let separator = if rest == "}" { "" } else { ", " };
                format!("{{\"{policy}\": {value}{separator}{rest}")
            })
            .collect();
        let throttling = self.object("retryThrottling", OF_THROTTLING, chance);
        format!("{{\"methodConfig\": [{}], \"retryThrottling\": {throttling}}}", methods.join(", "))
    }
}

fn config() -> ProptestConfig {
    ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..<_>::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_text_gives_errors_or_a_config(text in any::<String>()) {
        look(&text);
    }

    #[test]
    fn any_bytes_give_errors_or_a_config(bytes in vec(any::<u8>(), 0..64)) {
        let _ = ServiceConfig::read(&bytes[..]);
    }

    // SC-23
    #[test]
    fn any_json_gives_errors_or_a_config(text in document()) {
        look(&text);
        let syntax = |error: &reattempt_grpc::ServiceConfigError| error.position().is_some();
        let known = ServiceConfig::parse(&text).err().is_none_or(|errors| !errors.iter().any(syntax));
        prop_assert!(known, "it is JSON: {text}");
    }

    // SC-23
    #[test]
    fn each_error_is_told_once_with_its_path(chance in vec(any::<u8>(), 256)) {
        let mut broken = Broken::default();
        let text = broken.document(&mut chance.into_iter());
        let errors = ServiceConfig::parse(&text).err();
        let mut told: Vec<_> =
            errors.iter().flat_map(|errors| errors.iter()).map(|error| error.path().to_owned()).collect();
        told.sort_unstable();
        broken.paths.sort_unstable();
        prop_assert_eq!(told, broken.paths, "{}", text);
    }

    #[test]
    fn any_number_is_read_as_its_text_says(whole in 0..1000_u32, fraction in "[0-9]{1,12}") {
        let text = format!("{{\"retryThrottling\":{{\"maxTokens\":1,\"tokenRatio\":{whole}.{fraction}}}}}");
        let decimals: u32 = format!("{fraction:0<3}")[..3].parse().unwrap();
        let expected = whole * 1000 + decimals;
        let read = ServiceConfig::parse(&text).ok().and_then(|config| config.retry_throttling());
        prop_assert_eq!(read.map_or(0, |read| read.token_ratio_thousandths()), expected);
    }

    #[test]
    fn any_duration_is_read_as_its_text_says(seconds in 0..=315_576_000_000_u64, fraction in "[0-9]{1,9}") {
        let text = format!("{{\"methodConfig\":[{{\"name\":[{{}}],\"timeout\":\"{seconds}.{fraction}s\"}}]}}");
        let config = ServiceConfig::parse(&text).unwrap();
        let timeout = config.for_method("/s/m").unwrap().timeout.unwrap();
        prop_assert_eq!(format!("{}.{:09}", timeout.as_secs(), timeout.subsec_nanos()), format!("{seconds}.{fraction:0<9}"));
    }
}

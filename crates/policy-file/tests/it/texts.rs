//! Tests that any text gives a policy file or problems with their places.

use crate::any_file::look;

const FULL: &str = include_str!("../../examples/policies.toml");

const JSON: &str = r#"{
  "default": "é",
  "é": {"schedule": "exponential", "base": "100ms", "cap": "5s", "max_attempts": "none", "repeatable": true,
        "budget": {"ratio": 0.1, "burst": 20}, "guards": ["breaker:open_time=30s", "rate-limit:rate=5,burst=9"],
        "delay_headers": ["x-wait"], "quota_headers": ["x-left x-reset"], "attempt_timeout": "1.5s"},
  "routes": [{"policy": "é", "destination": "https://a.example", "method": "GET", "path": "/v1/*"}],
  "bodies": [{"path": "/v1/*", "up_to": 1000, "within": "1s", "rules": ["slack"]}],
  "never_retry": false
}"#;

#[test]
fn odd_texts_have_a_defined_end() {
    let texts = [
        "",
        "\u{feff}",
        "\0",
        "[a]\n[a]",
        "[a.b]\nbase = \"1s\"",
        "a = 1",
        "[[a]]",
        "[routes]",
        "routes = 1",
        "bodies = {}",
        "[[routes]]\n[[routes]]",
        "[[routes]]\npolicy = \"\"",
        "[\"\"]\n",
        "['é\u{202e}']\nmax_attempts = 99999999999999999999",
        "[a]\nbase = \"18446744073709551615y\"",
        "[a]\nbase = nan\nfactor = inf\nmax_attempts = -0",
        "[a]\nbudget = { ratio = 1e308, burst = -1 }",
        "[a]\nguards = [\"\", \":\", \"breaker:\", \"breaker:=\", \"rate-limit:rate=1e-9,rate=2\"]",
        "[a]\nguards = [[], {}]",
        "{\"a\":{\"a\":{}}}",
        "{\"a\":{},\"a\":{}}",
        "{\"routes\":[[]],\"bodies\":[null],\"endpoints\":{\"x\":{\"urls\":[\"\\ud83d\\ude00\"]}}}",
        "{\"a\":{\"base\":\"\\u0000\"}}",
    ];
    texts.into_iter().for_each(look);
    look(&format!("a = {}", "[".repeat(20_000)));
    look(&"[".repeat(20_000));
    look(&"{\"a\":".repeat(20_000));
    look(&format!("[a]\nguards = [{}]", "\"bulkhead\",".repeat(20_000)));
}

#[test]
fn cut_or_changed_text_has_defined_end() {
    for text in [FULL, JSON] {
        look(text);
        for (at, _) in text.char_indices().step_by(3) {
            look(&text[..at]);
            look(&text[at..]);
            for other in ["\"", "{", "[", "0", "é", "\n"] {
                look(&format!("{}{other}{}", &text[..at], &text[at..]));
            }
        }
    }
}

//! The schema: the file beside the crate is current, and it accepts and refuses the same files as the reader.

use boon::{Compiler, Schemas};
use reattempt_policy_file::reader::{Document, Format};
use reattempt_policy_file::{fields_page, schema};
use serde_json::{Value, json};

/// Returns the problems that the schema finds in a document, as a text.
fn refused(document: &Value) -> Option<String> {
    let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
    compiler.add_resource("policies", serde_json::from_str(&schema()).unwrap()).unwrap();
    let index = compiler.compile("policies", &mut schemas).unwrap();
    schemas.validate(document, index).err().map(|error| format!("{error:#}"))
}

fn read(document: &Value) -> Option<String> {
    let text = serde_json::to_string_pretty(document).unwrap();
    Document::read(&text, Format::Json).err().map(|mistakes| mistakes.to_string())
}

/// `REATTEMPT_WRITE=1 cargo test -p reattempt-policy-file schema_file` writes the file.
#[test]
fn schema_file_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/policies.schema.json");
    if std::env::var_os("REATTEMPT_WRITE").is_some() {
        std::fs::write(path, schema()).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(written == schema(), "{path}: run the test with REATTEMPT_WRITE=1");
}

/// `REATTEMPT_WRITE=1 cargo test -p reattempt-policy-file field_page` writes the page.
#[test]
fn field_page_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/fields.md");
    if std::env::var_os("REATTEMPT_WRITE").is_some() {
        std::fs::write(path, fields_page()).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(written == fields_page(), "{path}: run the test with REATTEMPT_WRITE=1");
}

/// Each example of a guard on the page is accepted.
#[test]
fn examples_of_guards_are_accepted() {
    let page = fields_page();
    let examples: Vec<_> = page.lines().filter_map(|line| line.split("| `guards = ").nth(1)).collect();
    assert!(examples.len() > 30, "{examples:?}");
    for example in examples {
        let text = format!("[p]\nguards = {}\n", example.trim_end_matches("` |"));
        Document::read(&text, Format::Toml).unwrap();
    }
}

/// Every example of the documentation is accepted by the reader and by the schema.
#[test]
fn examples_are_accepted() {
    let examples = [include_str!("../../examples/policies.toml"), include_str!("../../../lab/pictures/jitters.toml")];
    for text in examples {
        Document::read(text, Format::Toml).unwrap();
        let document: toml::Value = toml::from_str(text).unwrap();
        let document = serde_json::to_value(document).unwrap();
        assert_eq!(refused(&document), None);
        assert_eq!(read(&document), None);
    }
}

/// Every field of every kind, each with a legal value.
#[test]
fn every_field_is_accepted_by_both() {
    let with = |kind: &str, fields: Value| {
        let mut policy = fields;
        policy["schedule"] = kind.into();
        json!({ "p": policy })
    };
    for document in [
        with(
            "exponential",
            json!({ "base": "1s 5ms", "factor": 1.5, "cap": "none", "jitter": "symmetric",
            "randomisation": 0, "clamp_jitter": true }),
        ),
        with("decorrelated", json!({ "base": "0.5s", "cap": "1min" })),
        with("constant", json!({ "base": "2 hours" })),
        with("linear", json!({ "base": "1s", "step": "1ms", "cap": "1d" })),
        with("truncated", json!({ "base": "1s", "random_part": "1us", "retries": "none" })),
        with("list", json!({ "delays": ["1s", "0s"], "repeat_last": true })),
        json!({ "p": { "profile": "cenkalti-quick", "max_attempts": "none", "max_elapsed": "none",
            "max_server_delay": "1s", "attempt_timeout": "1s", "repeatable": true } }),
        json!({ "p": { "budget": { "ratio": 1, "capacity": 10_000_000, "min_per_second": 0 } } }),
        json!({ "p": { "budget": { "rate": 0.000_001, "burst": 1 } } }),
        json!({ "p": { "budget": "fleet" } }),
        json!({ "p": { "guards": ["breaker", "counting:probes=2", "rate-limit:rate=5,burst=1", "bulkhead:limit=8",
            "aimd:backoff=0.9,least=1,most=9,initial=3", "vegas", "gradient2", "throttle:multiplier=2,window=1m", "pause:longest=1h,spread=2s"] } }),
        json!({ "p": { "rate_limit": true, "delay_headers": ["x-cooldown"], "quota_headers": ["x-left x-reset"],
            "on_status": ["501 retry", "429  return", "202 pending", "503 not-processed"],
            "on_code": ["ABORTED retry", "UNAVAILABLE return"] } }),
        json!({ "default": { "max_attempts": 1 } }),
        json!({ "default": "p", "p": {}, "never_retry": false, "routes": [
            { "policy": "p", "destination": "https://a:1", "method": "GET", "path": "/" },
            { "policy": "p", "method": ["GET", "PUT"] }, { "policy": "p", "grpc": "a.B/C" }],
            "endpoints": { "a": { "urls": ["http://a"], "base": "http://b" }, "b": { "dns": "a:1", "interval": "5s" } } }),
        json!({ "never_retry": true }),
        json!({ "bodies": [{}, { "destination": "a", "method": "GET", "path": "/*", "up_to": "64 KiB", "within": "1s",
            "rules": ["aws-json", "aws-xml", "bulk-all-rejected", "connect", "github", "google", "openai", "shopify",
            "slack", "stripe"] }, { "up_to": 0 }, { "up_to": "1MB" }] }),
    ] {
        assert_eq!(read(&document), None, "{document}");
        assert_eq!(refused(&document), None, "{document}");
    }
}

/// A value of the wrong type, out of range or under an unknown name is refused by both.
#[test]
fn mistakes_are_refused_by_both() {
    for policy in [
        json!({ "colour": "red" }),
        json!({ "schedule": "exponental" }),
        json!({ "base": 5 }),
        json!({ "base": "5" }),
        json!({ "base": "fast" }),
        json!({ "factor": 0 }),
        json!({ "factor": "2" }),
        json!({ "jitter": true }),
        json!({ "max_attempts": -1 }),
        json!({ "max_attempts": 1.5 }),
        json!({ "max_attempts": 4_294_967_296_u64 }),
        json!({ "max_elapsed": 20 }),
        json!({ "repeatable": "yes" }),
        json!({ "profile": "strype" }),
        json!({ "budget": "some" }),
        json!({ "budget": { "ratio": 2 } }),
        json!({ "budget": { "size": 1 } }),
        json!({ "budget": 1 }),
        json!({ "guards": ["braker"] }),
        json!({ "guards": "breaker" }),
        json!({ "guards": ["bulkhead:probes=1"] }),
        json!({ "endpoints": 1 }),
        json!({ "schedule": "exponential", "randomisation": 2, "jitter": "symmetric" }),
        json!([]),
    ] {
        let document = json!({ "p": policy });
        assert!(read(&document).is_some(), "{document}");
        assert!(refused(&document).is_some(), "{document}");
    }
    for document in [
        json!({ "p": {}, "never_retry": 1 }),
        json!({ "p": {}, "routes": {} }),
        json!({ "p": {}, "routes": [{}] }),
        json!({ "p": {}, "routes": [{ "policy": "p", "hots": "a" }] }),
        json!({ "p": {}, "endpoints": [] }),
        json!({ "p": {}, "bodies": {} }),
        json!({ "p": {}, "bodies": [{ "up_to": "64 KB" }] }),
        json!({ "p": {}, "bodies": [{ "up_to": -1 }] }),
        json!({ "p": {}, "bodies": [{ "rules": ["aws"] }] }),
        json!({ "p": {}, "bodies": [{ "policy": "p" }] }),
        json!({ "p": {}, "endpoints": { "a": { "url": "http://a" } } }),
    ] {
        assert!(read(&document).is_some(), "{document}");
        assert!(refused(&document).is_some(), "{document}");
    }
}

//! Bodies of any bytes. The fuzz target `bodies` in `fuzz/` runs the same function.

mod readers;

use proptest::collection::vec;
use proptest::prelude::*;

/// Parts of documents, so that many bodies are nearly valid.
const PARTS: [&str; 24] = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"code\"",
    "\"errors\"",
    "\"extensions\"",
    "\"items\"",
    "\"status\"",
    "\"x\\u0041\"",
    "1e9",
    "429",
    "true",
    "null",
    " ",
    "<Error>",
    "<Code>",
    "SlowDown",
    "</Code>",
    "</Error>",
    "<!--",
    "-->",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    // BI-6, BI-9
    #[test]
    fn readers_of_any_bytes_are_total(data in vec(any::<u8>(), 0..200)) {
        readers::check(&data);
    }

    // BI-6, BI-9
    #[test]
    fn readers_of_nearly_valid_bodies_are_total(parts in vec(0..PARTS.len(), 0..60)) {
        let body: String = parts.into_iter().map(|part| PARTS[part]).collect();
        readers::check(body.as_bytes());
    }
}

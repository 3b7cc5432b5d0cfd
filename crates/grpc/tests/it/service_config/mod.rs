//! Tests of the document as a whole: which entry applies to a method, what is refused, and the error texts.

mod errors;

use std::error::Error;
use std::io;
use std::time::Duration;

use reattempt_grpc::{MethodConfig, MethodPolicy, ServiceConfig};

/// Returns each error as one text: the path, then the reason.
fn errors(text: &str) -> Vec<String> {
    let errors = ServiceConfig::parse(text).unwrap_err();
    let lines: Vec<_> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(errors.to_string(), lines.join("\n"));
    for (error, line) in errors.iter().zip(&lines) {
        let path = if error.path().is_empty() { "the document" } else { error.path() };
        assert_eq!(*line, format!("{path} {}", error.reason()));
    }
    lines
}

/// Returns a document in which entry number n has a timeout of n + 1 seconds.
fn entries(names: &[&str]) -> String {
    let entry = |(number, names)| format!(r#"{{"name": {names}, "timeout": "{}s"}}"#, number + 1);
    let entries: Vec<_> = names.iter().enumerate().map(entry).collect();
    format!(r#"{{"methodConfig": [{}]}}"#, entries.join(", "))
}

/// Returns the number of the entry that applies to a path, from 1.
fn entry(config: &ServiceConfig, path: &str) -> Option<u64> {
    config.for_method(path).map(|method| method.timeout.unwrap().as_secs())
}

// SC-1
#[test]
fn most_specific_entry_wins() {
    let names = ["[{}]", r#"[{"service": "a.B"}, {"service": "a.C"}]"#, r#"[{"service": "a.B", "method": "Get"}]"#];
    let config = ServiceConfig::parse(&entries(&names)).unwrap();
    let rows = [
        ("/a.B/Get", 3),
        ("/a.B/Put", 2),
        ("/a.B/", 2),
        ("/a.C/Get", 2),
        ("/a.D/Get", 1),
        ("/a.B/get", 2),
        ("/A.B/Get", 1),
        ("/a.B", 1),
        ("a.B/Get", 1),
        ("/a.B/Get/", 1),
        ("/", 1),
        ("", 1),
        ("nonsense", 1),
        ("/é/ü", 1),
    ];
    for (path, number) in rows {
        assert_eq!(entry(&config, path), Some(number), "{path:?}");
    }
    let config = ServiceConfig::parse(&entries(&names[1..])).unwrap();
    assert_eq!(entry(&config, "/a.B/Get"), Some(2));
    for path in ["/a.D/Get", "/", "", "nonsense"] {
        assert_eq!(entry(&config, path), None, "{path:?}");
    }
}

// SC-1
#[test]
fn entry_that_wins_wins_whole() {
    let text = r#"{"methodConfig": [
        {"name": [{}], "timeout": "1s", "waitForReady": true},
        {"name": [{"service": "a.B"}], "maxRequestMessageBytes": 5},
        {"name": [{"service": "a.B", "method": "Get"}]}
    ]}"#;
    let config = ServiceConfig::parse(text).unwrap();
    assert_eq!(config.for_method("/a.B/Get"), Some(&MethodConfig::default()));
    let service = config.for_method("/a.B/Put").unwrap();
    assert_eq!((service.timeout, service.wait_for_ready), (None, None));
    assert_eq!(service.max_request_message_bytes, Some(5));
}

// SC-2
#[test]
fn entry_without_names_is_read_unapplied() {
    for names in ["", r#""name": [],"#, r#""name": null,"#] {
        let text = format!(r#"{{"methodConfig": [{{{names} "timeout": "1s"}}]}}"#);
        let config = ServiceConfig::parse(&text).unwrap();
        assert_eq!(config, ServiceConfig::default(), "{names}");
        let bad = text.replace("1s", "1h");
        assert_eq!(
            errors(&bad),
            [r#"methodConfig[0].timeout must be a duration like "1.5s", not below 0, but it is "1h""#],
            "{names}"
        );
    }
}

// SC-3
#[test]
fn default_and_service_entries_are_spelled() {
    let whole = [
        "{}",
        r#"{"service": ""}"#,
        r#"{"service": null}"#,
        r#"{"method": ""}"#,
        r#"{"method": null}"#,
        r#"{"service": "", "method": null}"#,
    ];
    for name in whole {
        let config = ServiceConfig::parse(&entries(&[&format!("[{name}]")])).unwrap();
        assert_eq!(entry(&config, "/any/Thing"), Some(1), "{name}");
    }
    let service = [r#"{"service": "s"}"#, r#"{"service": "s", "method": ""}"#, r#"{"service":"s","method":null}"#];
    for name in service {
        let config = ServiceConfig::parse(&entries(&[&format!("[{name}]")])).unwrap();
        assert_eq!(entry(&config, "/s/Thing"), Some(1), "{name}");
        assert_eq!(entry(&config, "/other/Thing"), None, "{name}");
    }
}

// SC-5
#[test]
fn unknown_fields_are_ignored() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let text = format!(
        r#"{{
            "loadBalancingConfig": [], "loadBalancingPolicy": 7, "healthCheckConfig": null,
            "": {{"methodConfig": 1}}, "MethodConfig": 1, "method_config": 1, "deep": {deep},
            "twice inside": {{"a": 1, "a": 2}}, "half a character": "\ud800",
            "methodConfig": [{{
                "name": [{{"service": "s", "version": 4}}], "Timeout": "1h",
                "hedgingPolicy": {{"maxAttempts": 2, "perAttemptRecvTimeout": []}}
            }}],
            "retryThrottling": {{"maxTokens": 1, "tokenRatio": 1, "more": 1e999}}
        }}"#
    );
    let config = ServiceConfig::parse(&text).unwrap();
    let method = config.for_method("/s/m").unwrap();
    assert!(matches!(method.policy, MethodPolicy::Hedging(_)), "{method:?}");
    assert_eq!(method.timeout, None);
    assert!(config.retry_throttling().is_some());
}

// SC-5
#[test]
fn null_is_as_good_as_no_field() {
    let text = r#"{"methodConfig": [{
        "name": [{}], "timeout": null, "waitForReady": null, "maxRequestMessageBytes": null,
        "maxResponseMessageBytes": null, "retryPolicy": null, "hedgingPolicy": null
    }], "retryThrottling": null}"#;
    let config = ServiceConfig::parse(text).unwrap();
    assert_eq!(config.for_method("/s/m"), Some(&MethodConfig::default()));
    assert_eq!(config.retry_throttling(), None);
    let none = ServiceConfig::parse(r#"{"methodConfig": null}"#).unwrap();
    assert_eq!(none, ServiceConfig::default());
    assert_eq!(
        errors(r#"{"methodConfig": [null]}"#),
        ["methodConfig[0] must be an object, its keys Unicode text, but it is null"]
    );
}

// SC-6
#[test]
fn config_that_says_nothing_is_valid() {
    let config = ServiceConfig::parse(" {} ").unwrap();
    assert_eq!(config, ServiceConfig::default());
    assert_eq!((config.for_method("/s/m"), config.retry_throttling()), (None, None));
    assert_eq!("{}".parse::<ServiceConfig>().unwrap(), config);
}

// SC-9
#[test]
fn load_balancing_is_not_looked_at() {
    let text = r#"{"loadBalancingPolicy": "no_such", "loadBalancingConfig": [{"no_such": {}}, 1]}"#;
    assert_eq!(ServiceConfig::parse(text).unwrap(), ServiceConfig::default());
}

#[test]
fn reader_and_file_give_what_text_gives() {
    let text = entries(&["[{}]"]);
    let config = ServiceConfig::parse(&text).unwrap();
    assert_eq!(ServiceConfig::read(text.as_bytes()).unwrap(), config);
    assert_eq!(config.for_method("/s/m").unwrap().timeout, Some(Duration::from_secs(1)));

    let errors = ServiceConfig::read(&b"{\"a\": \"\xff\"}"[..]).unwrap_err();
    assert_eq!(errors.to_string(), "the document is not UTF-8: invalid utf-8 sequence of 1 bytes from index 7");

    struct Broken;
    impl io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is gone"))
        }
    }
    let errors = ServiceConfig::read(Broken).unwrap_err();
    assert_eq!(errors.to_string(), "the document cannot be read: the disk is gone");
    assert!(errors.source().unwrap().is::<io::Error>());

    let path = std::env::temp_dir().join(format!("service-config-{}.json", std::process::id()));
    std::fs::write(&path, &text).unwrap();
    let loaded = ServiceConfig::load(&path);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(loaded.unwrap(), config);
    let errors = ServiceConfig::load(&path).unwrap_err();
    let begins = format!("the document cannot be read from {}: ", path.display());
    assert!(errors.to_string().starts_with(&begins), "{errors}");
    assert!(errors.source().unwrap().is::<io::Error>());
}

// DL-7, SC-13
#[test]
fn settings_that_are_not_applied_are_listed() {
    let text = r#"{"methodConfig": [
        {"name": [{"service": "a.B"}, {"service": "a.B", "method": "C"}], "waitForReady": true},
        {"name": [{"service": "a.D"}], "waitForReady": false, "timeout": "1s"},
        {"name": [{}], "maxRequestMessageBytes": 0, "maxResponseMessageBytes": 5}
    ]}"#;
    let config = ServiceConfig::parse(text).unwrap();
    let unapplied: Vec<_> = config.unapplied().map(|setting| (setting.methods(), setting.field())).collect();
    assert_eq!(
        unapplied,
        [
            ("/a.B/", "waitForReady"),
            ("/a.B/C", "waitForReady"),
            ("", "maxRequestMessageBytes"),
            ("", "maxResponseMessageBytes"),
        ]
    );
    let last = config.unapplied().last().unwrap().to_string();
    assert_eq!(last, "maxResponseMessageBytes of the default entry is not applied");
    assert_eq!(ServiceConfig::parse("{}").unwrap().unapplied().count(), 0);
}

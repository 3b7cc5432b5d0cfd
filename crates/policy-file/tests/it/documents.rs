//! Whole documents: routes, endpoints and top-level fields, in both formats, and the problems that are reported.

use reattempt_policy_file::reader::{Document, Format, Mistakes};

fn problems_in(text: &str, format: Format, file: &str) -> Vec<String> {
    let Mistakes { problems, .. } = Document::read(text, format).unwrap_err();
    problems.iter().map(|problem| problem.in_file(&file)).collect()
}

fn problems(text: &str) -> Vec<String> {
    problems_in(text, Format::Toml, "p.toml")
}

/// Each mistake is reported, with its line, its path, its value and what is allowed.
#[test]
fn routes_with_mistakes_are_all_reported() {
    let text = r#"never_retry = "yes"
default = "ordrs"
never_rety = true

[orders]
max_atempts = 3
endpoints = "stok"

[[routes]]
policy = "order"
destination = "ftp://a"
method = "get"
path = "v1"

[[routes]]
path = "/a*b"

[[routes]]
policy = "orders"
grpc = "a/b/c"
hots = "x"

[[routes]]
policy = "orders"
grpc = "a.B"
path = "/x"

[endpoints.stock]
urls = ["http://a", "b"]
base = "c"

[endpoints.none]
interval = "1ms"

[endpoints.both]
urls = []
dns = "a"
"#;
    assert_eq!(
        problems(text),
        [
            "p.toml:1: never_retry must be true or false, but it is \"yes\"",
            "p.toml:2: default must be the name of a policy, but it is \"ordrs\"; did you mean \"orders\"?",
            "p.toml:3: never_rety must be a table, for each policy is one, such as [orders]; did you mean `never_retry`?",
            "p.toml:6: orders.max_atempts is not known here; did you mean `max_attempts`?",
            "p.toml:11: routes[0].destination must be a host with an optional port and scheme, such as \
             \"https://orders.example:8443\", but it is \"ftp://a\"",
            "p.toml:12: routes[0].method must be a word or a list of words: it must be a method in capitals, such as GET",
            "p.toml:13: routes[0].path must be a path that begins with /, with {…} for a whole segment, and * only at \
             its end, but it is \"v1\"",
            "p.toml:16: routes[1].path must be a path that begins with /, with {…} for a whole segment, and * only at \
             its end, but it is \"/a*b\"",
            "p.toml:20: routes[2].grpc must be a service such as \"inventory.Stock\", or one of its methods such as \
             \"inventory.Stock/Count\", but it is \"a/b/c\"",
            "p.toml:21: routes[2].hots is not known here; known: policy, destination, method, path, grpc",
            "p.toml:25: routes[3].grpc stands for a path and a method, so `path` and `method` must not be set beside it",
            "p.toml:29: endpoints.stock.urls has \"b\": endpoint `b` has no scheme or no host (`https://host/prefix`)",
            "p.toml:30: endpoints.stock.base is no base URL: endpoint `c` has no scheme or no host (`https://host/prefix`)",
            "p.toml:33: endpoints.none.interval is the time between two look-ups of `dns`, which is not set",
            "p.toml:33: endpoints.none.interval must be at least 1s",
            "p.toml:36: endpoints.both.urls must be a list of at least one base URL",
            "p.toml:37: endpoints.both.dns is no host name with a port: endpoint `a` has no host and port (`host:port`)",
            "p.toml:37: endpoints.both.dns must not be set beside `urls`",
        ]
    );
}

/// Names that stand for nothing are reported once everything else is right.
#[test]
fn names_of_nothing_are_reported() {
    let text = "default = \"b\"\n[orders]\nendpoints = \"stok\"\n[[routes]]\npolicy = \"order\"\n[[routes]]\n\
                path = \"/\"\n[endpoints.stock]\nurls = [\"http://a\"]\n[endpoints.none]\n";
    assert_eq!(
        problems(text),
        [
            "p.toml:1: default must be the name of a policy, but it is \"b\"",
            "p.toml:3: orders.endpoints must be the name of a section of endpoints, but it is \"stok\"; did you mean \"stock\"?",
            "p.toml:5: routes[0].policy must be the name of a policy, but it is \"order\"; did you mean \"orders\"?",
            "p.toml:6: routes[1].policy is missing: the name of a policy",
            "p.toml:10: endpoints.none has no servers: set `urls` or `dns`",
        ]
    );
    for (text, expected) in [
        ("routes = 1", "p.toml:1: routes must be a list of tables, such as [[routes]], but it is 1"),
        ("routes = [1]", "p.toml:1: routes[0] must be a table, but it is 1"),
        ("endpoints = 1", "p.toml:1: endpoints must be a table of sections, such as [endpoints.orders], but it is 1"),
        ("endpoints.a = 1", "p.toml:1: endpoints.a must be a table, but it is 1"),
        (
            "[a]\nnever_retry = true",
            "p.toml:2: a.never_retry is not known here; it must be above the first section of the file",
        ),
        (
            "[a]\nattempt_timeout = \"0s\"",
            "p.toml:2: a.attempt_timeout must be above 0s, because every attempt would fail; without it there is no limit",
        ),
        ("[endpoints.a]\nurls = []", "p.toml:2: endpoints.a.urls must be a list of at least one base URL"),
        (
            "[endpoints.a]\nurls = [\"http://a\"]\nbase = \"https://o\"",
            "p.toml:3: endpoints.a.base is no base URL: endpoint `https://o` is for https, but the servers are not (https for all, or http)",
        ),
        (
            "[endpoints.a]\ndns = \"a:1\"\nbase = \"https://o\"",
            "p.toml:3: endpoints.a.base is no base URL: endpoint `https://o` is for https, but the servers are not (https for all, or http)",
        ),
        ("[\"\"]\nmax_attempts = 2", "p.toml:1: a policy must have a name"),
        ("default = 1", "p.toml:1: default must be the name of a policy in quotes, or a table, but it is 1"),
        ("[\"a b\"]\nbase = 1", "p.toml:2: \"a b\".base must be a duration like \"1500ms\" or \"5s\", but it is 1"),
    ] {
        assert_eq!(problems(text), [expected], "{text}");
    }
}

/// A file that only turns retries off is complete.
#[test]
fn kill_switch_alone_is_a_document() {
    let document = Document::read("never_retry = true\n", Format::Toml).unwrap();
    assert!(document.never_retry && document.policies.is_empty());
    assert_eq!(
        problems("never_retry = false\n"),
        ["p.toml: the document has no policy: each is a table, such as [orders]"]
    );
    // A mistake elsewhere does not hide the switch.
    for (text, never) in [
        ("never_retry = true\n[a]\nx = 1\n", true),
        ("never_retry = true\n[a\n", true),
        ("never_retry = false\n[a]\nx = 1\n", false),
        ("never_retry = \"true\"\n", false),
        ("[a]\nnever_retry = true\n", false),
    ] {
        assert_eq!(Document::read(text, Format::Toml).unwrap_err().never_retry, never, "{text}");
    }
}

/// A byte order mark and line breaks of Windows change nothing, and lines are counted as editors do.
#[test]
fn mark_and_crlf_are_accepted() {
    let document = Document::read("\u{feff}[a]\r\nmax_attempts = 4\r\n", Format::Toml).unwrap();
    assert_eq!(document.policies[0].limits().max_attempts, 4);
    let [problem] = &problems("\u{feff}[a]\r\nx = 1\r\n")[..] else { panic!("one problem") };
    assert!(problem.starts_with("p.toml:2: a.x is not known here; known: profile, "), "{problem}");
    Document::read("\u{feff}{\r\n\"a\": {}}", Format::Json).unwrap();
}

/// Deep nesting and long values end in short errors.
#[test]
fn hostile_texts_get_short_errors() {
    let deep = format!("a = {}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(problems(&deep)[0].starts_with("p.toml:1: "), "{:?}", &problems(&deep)[..1]);
    let long = "x".repeat(100_000);
    let shown = problems(&format!("[a]\nprofile = \"{long}\"\n{long} = 1\n"));
    assert!(shown.iter().all(|problem| problem.len() < 1000), "{}", shown.len());
    assert_eq!(shown.len(), 2);
    let tables = format!("[a{}]\n", ".b".repeat(1000));
    assert!(!problems(&tables).is_empty());
}

#[test]
fn json_says_the_same_as_toml() {
    let text = r#"{
  "default": "orders",
  "orders": { "max_attempts": 4, "budget": { "ratio": 0.2 }, "guards": ["bulkhead:limit=8"] },
  "routes": [{ "policy": "orders", "method": ["GET"], "path": "/v1/*" }],
  "endpoints": { "orders": { "urls": ["http://one", "http://two"] } }
}"#;
    let document = Document::read(text, Format::Json).unwrap();
    assert_eq!(document.policies[0].limits().max_attempts, 4);
    assert_eq!((document.routes.len(), document.endpoints[0].urls.len()), (1, 2));
    assert_eq!(document.default.as_deref(), Some("orders"));
}

#[test]
fn json_mistakes_have_their_lines() {
    let text = "{\n\"a\": {\n\"max_attempts\": 1.5,\n\"base\": null,\n\"base\": \"1s\",\n\"caap\": 1\n},\n\"b\": []\n}";
    assert_eq!(
        problems_in(text, Format::Json, "p.json"),
        ["p.json:5: a.base is listed twice"],
        "the structure comes first"
    );
    let text = text.replace("\"base\": null,\n", "\n");
    assert_eq!(
        problems_in(&text, Format::Json, "p.json"),
        [
            "p.json:3: a.max_attempts must be a whole number from 0 to 4294967295, or \"none\", but it is 1.5",
            "p.json:6: a.caap is not known here; did you mean `cap`?",
            "p.json:8: b must be a table, for each policy is one, such as [orders]",
        ]
    );
    for (text, expected) in [
        ("{\n\"a\": {}", "p.json:2: EOF while parsing an object"),
        ("[1]", "p.json:1: the document must be an object, but it is a list"),
        ("", "p.json:1: EOF while parsing a value"),
        ("{\n\"a\": 1,\n\n}", "p.json:4: key must be a string"),
    ] {
        assert_eq!(problems_in(text, Format::Json, "p.json"), [expected], "{text}");
    }
    let deep = format!("{{\"a\": {}{}}}", "[".repeat(50_000), "]".repeat(50_000));
    assert_eq!(problems_in(&deep, Format::Json, "p.json"), ["p.json:1: a is nested more than 16 levels deep"]);
}

/// User information of a URL is not shown, wherever the URL stands.
#[test]
fn credentials_are_not_shown() {
    for (text, shown) in [
        ("[endpoints.a]\nurls = [\"https://user:secret@a\"]", "has \"https://…@a\": "),
        ("[endpoints.a]\nurls = [\"http://a\"]\nbase = \"user:secret@a\"", "endpoint `a` has no scheme"),
        ("default = \"https://user:secret@a/b\"\n[a]", "but it is \"https://…@a/b\""),
        ("[a]\n[[routes]]\npolicy = \"a\"\ndestination = \"ftp://user:secret@a\"", "but it is \"ftp://…@a\""),
        ("[a]\n\"https://user:secret@a\" = 1", "a.\"https://…@a\" is not known"),
    ] {
        let problems = format!("{:?}", problems(text)).replace('\\', "");
        assert!(problems.contains(shown) && !problems.contains("secret"), "{problems}");
    }
}

/// In JSON too, the switch counts before an error, and in any of its lines.
#[test]
fn json_kill_switch_counts_in_a_bad_file() {
    for (text, never) in [
        ("{ \"never_retry\": true, \"a\": {", true),
        ("{ \"never_retry\": true, \"a\": { \"base\": }, \"b\": {} }", true),
        ("{ \"never_retry\": false, \"never_retry\": true }", true),
        ("{ \"never_retry\": true, \"never_retry\": false }", true),
        ("{ \"never_retry\": false, \"a\": {", false),
        ("{ \"a\": { \"never_retry\": true }", false),
    ] {
        let mistakes = Document::read(text, Format::Json).unwrap_err();
        assert_eq!((mistakes.never_retry, mistakes.problems.len()), (never, 1), "{text}: {mistakes}");
    }
}

/// Half of a character empties neither a text nor a table.
#[test]
fn json_half_character_is_reported() {
    let of_text = "p.json:2: a.base cannot be read: unexpected end of hex escape";
    assert_eq!(problems_in("{ \"a\": {\n\"base\": \"\\ud800\" } }", Format::Json, "p.json"), [of_text]);
    let of_name = "p.json:1: a has a name that cannot be read: unexpected end of hex escape";
    assert_eq!(problems_in("{ \"a\": { \"\\ud800\": 1 } }", Format::Json, "p.json"), [of_name]);
}

//! `lab check`.

use super::{run, run_with, scratch};

const SERVICE_CONFIG: &str = r#"{
  "methodConfig": [
    { "name": [{ "service": "stock.Stock", "method": "Count" }, { "service": "billing.Invoices" }],
      "timeout": "2.5s",
      "retryPolicy": { "maxAttempts": 3, "initialBackoff": "0.1s", "maxBackoff": "1s",
                       "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"] } },
    { "name": [{}],
      "hedgingPolicy": { "maxAttempts": 2, "hedgingDelay": "0.5s", "nonFatalStatusCodes": [10] } }
  ],
  "retryThrottling": { "maxTokens": 10, "tokenRatio": 0.1 }
}"#;

#[test]
fn a_service_config_in_words() {
    let (code, text, errors) = run_with(&["check", "-"], SERVICE_CONFIG);
    assert_eq!((code, &*errors), (0, ""));
    assert_eq!(
        text,
        "\
stock.Stock/Count and all other methods of billing.Invoices
  Retried after UNAVAILABLE, at most 2 times (3 attempts), after 80 ms to 120 ms, 160 ms to 240 ms.
  A call ends after 2.5 s, with all its attempts and delays.

all other methods
  Hedged: sent up to 2 times, once more after each 500 ms without an answer; the first answer \
counts.
  After ABORTED the next is sent at once; any other error ends the call.

throttling, for all methods together
  Each retryable failure takes 1 of 10 tokens, and each success adds 0.1. While 5 or fewer are left, \
nothing is retried or hedged.
"
    );
}

#[test]
fn service_config_errors_have_paths() {
    let broken = SERVICE_CONFIG
        .replace("\"maxAttempts\": 3", "\"maxAttempts\": 1")
        .replace("\"0.1s\"", "\"1h\"")
        .replace("[10]", "[0]");
    let file = scratch("broken.json");
    std::fs::write(&file, broken).unwrap();
    let (code, text, errors) = run(&["check", file.to_str().unwrap()]);
    assert_eq!((code, &*errors), (1, ""), "the findings are what was asked for");
    let file = file.display();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    for (line, path) in lines.iter().zip([
        "methodConfig[0].retryPolicy.maxAttempts",
        "methodConfig[0].retryPolicy.initialBackoff",
        "methodConfig[1].hedgingPolicy.nonFatalStatusCodes",
    ]) {
        assert!(line.starts_with(&format!("{file}: error: {path}")), "{line}");
    }
    let (code, text, _) = run_with(&["check", "-"], "{ \"a\":\n");
    assert_eq!(code, 1);
    assert!(text.starts_with("<stdin>:2: error: the document is not JSON: EOF"), "{text}");
}

#[test]
fn warnings_count_when_they_are_to() {
    let unusual = SERVICE_CONFIG
        .replace("\"maxAttempts\": 3", "\"maxAttempts\": 9")
        .replace("\"0.1s\"", "\"3s\"")
        .replace("\"hedgingDelay\": \"0.5s\",", "");
    let (code, text, _) = run_with(&["check", "-", "--json"], &unusual);
    assert_eq!(code, 0);
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let said = |problem: &serde_json::Value| {
        format!("{} {}", problem["path"].as_str().unwrap(), problem["reason"].as_str().unwrap())
    };
    let warnings: Vec<_> = document["warnings"].as_array().unwrap().iter().map(said).collect();
    assert_eq!(
        warnings,
        [
            "methodConfig[0].retryPolicy.maxAttempts is 9; a client makes no more than 5 unless told so",
            "methodConfig[0].retryPolicy.initialBackoff is 3 s (recommended: 10 ms to 1 s, usually 100 ms)",
            "methodConfig[0].retryPolicy.initialBackoff is above maxBackoff, which cuts it",
            "methodConfig[1].hedgingPolicy.hedgingDelay is 0: every call is sent several times at once",
        ]
    );
    let retried = document["descriptions"][0]["sentences"][0].as_str().unwrap();
    assert!(retried.contains("at most 4 times (5 attempts)"), "a client caps it: {retried}");
    let hedged = unusual.replace("\"maxAttempts\": 2", "\"maxAttempts\": 8");
    let (_, text, _) = run_with(&["check", "-"], &hedged);
    assert!(text.contains("  Hedged: sent 5 times at once; the first answer counts.\n"), "{text}");
    assert_eq!(run_with(&["check", "-", "--strict"], &unusual).0, 1);
    assert_eq!(run_with(&["check", "-", "--strict"], SERVICE_CONFIG).0, 0);
}

/// A setting is reported once for each entry, even if the entry names several methods.
#[test]
fn settings_without_effect_are_reported() {
    let config = SERVICE_CONFIG
        .replace("\"timeout\": \"2.5s\"", "\"waitForReady\": true, \"maxRequestMessageBytes\": 9")
        .replace("[{}],", "[{}], \"waitForReady\": false, \"maxResponseMessageBytes\": 9,");
    let (code, text, _) = run_with(&["check", "-"], &config);
    let why = "is not applied: the channel and the generated client have such settings";
    let expected = format!(
        "<stdin>: warning: methodConfig[0].waitForReady {why}
<stdin>: warning: methodConfig[0].maxRequestMessageBytes {why}
<stdin>: warning: methodConfig[1].maxResponseMessageBytes {why}

stock.Stock/Count and "
    );
    assert_eq!(code, 0);
    assert!(text.starts_with(&expected), "{text}");
    assert_eq!(run_with(&["check", "-", "--strict"], &config).0, 1);
}

/// Methods without an entry are described too, and a timeout that leaves no time is reported.
#[test]
fn methods_that_are_not_retried() {
    let (code, text, _) = run_with(&["check", "-"], "{}");
    assert_eq!((code, &*text), (0, "all methods\n  Neither retried nor hedged.\n"));

    let hasty = SERVICE_CONFIG.replace("\"2.5s\"", "\"0.05s\"").replace("[{}]", "[]");
    let (code, text, _) = run_with(&["check", "-"], &hasty);
    assert_eq!(code, 0);
    let expected = "\
<stdin>: warning: methodConfig[0].timeout is 50 ms (recommended: 1 s to 1 h, usually 5 s to 30 s)
<stdin>: warning: methodConfig[0].timeout leaves no time for a retry
<stdin>: warning: methodConfig[1] names no method, so it is never used

stock.Stock/Count and all other methods of billing.Invoices
  Not retried: the timeout leaves no time for it.
  A call ends after 50 ms, with all its attempts and delays.

all other methods
  Neither retried nor hedged.
";
    assert!(text.starts_with(expected), "{text}");
}

/// Values below and above every recommended range give warnings, in the order of the file.
#[test]
fn warnings_outside_of_every_range() {
    let policy = |figures: [&str; 6]| {
        let [base, factor, cap, elapsed, ratio, burst] = figures;
        format!(
            "[a]\nbase = \"{base}\"\nfactor = {factor}\ncap = \"{cap}\"\nmax_elapsed = \"{elapsed}\"\n\
             budget = {{ ratio = {ratio} }}\n[b]\nbudget = {{ rate = 2, burst = {burst} }}\n\
             max_attempts = 11\n[[routes]]\npolicy = \"a\"\n"
        )
    };
    let warnings = |figures| {
        let (code, text, _) = run_with(&["check", "-"], &policy(figures));
        assert_eq!(code, 0, "{text}");
        let lines = text.lines().take_while(|line| !line.is_empty());
        let line = |line: &str| line.split(" (").next().unwrap().replace("<stdin>:", "");
        lines.map(line).collect::<Vec<_>>()
    };
    let attempts = "9: warning: b.max_attempts is 11";
    assert_eq!(
        warnings(["9ms", "1.4", "900ms", "900ms", "0.009", "1"]),
        [
            "2: warning: a.base is 9 ms",
            "3: warning: a.factor is 1.4",
            "4: warning: a.cap is 900 ms",
            "5: warning: a.max_elapsed is 900 ms",
            "6: warning: a.budget.ratio is 0.009",
            "8: warning: b.budget.burst is 0.5 times the rate",
            attempts,
        ]
    );
    assert_eq!(
        warnings(["1100ms", "3.1", "61s", "61m", "0.51", "12"]),
        [
            "2: warning: a.base is 1.1 s",
            "3: warning: a.factor is 3.1",
            "4: warning: a.cap is 61 s",
            "5: warning: a.max_elapsed is 1.02 h",
            "6: warning: a.budget.ratio is 0.51",
            "8: warning: b.budget.burst is 6 times the rate",
            attempts,
        ]
    );
    assert_eq!(warnings(["10ms", "1.5", "1s", "1s", "0.01", "2"]), [attempts]);
    assert_eq!(warnings(["1s", "3", "60s", "1h", "0.5", "10"]), [attempts]);
}

/// The description names the limit that ends the retries, unless it is the number of attempts.
#[test]
fn when_the_retries_end() {
    let text = "[a]\nschedule = \"list\"\ndelays = [\"1s\", \"2s\"]\nmax_attempts = \"none\"\n\
                [b]\nschedule = \"constant\"\nbase = \"1s\"\nmax_attempts = 10\nmax_elapsed = \"3s\"\n";
    let (_, text, _) = run_with(&["check", "-"], text);
    for expected in [
        "  Retried at most 2 times (3 attempts), after 1 s, 2 s.\n",
        "  A call that always fails is retried 2 times and ends after 3 s: the schedule has ended.\n",
        "  Retried at most 9 times (10 attempts), after 1 s, 1 s, 1 s.\n",
        "  A call that always fails is retried 3 times and ends after 3 s: the next delay would pass \
         the limit on elapsed time.\n",
    ] {
        assert!(text.contains(expected), "{text}");
    }
}

/// The budget of all processes is a word in a policy file, and its description has both of its parts.
#[test]
fn shared_budget_is_described() {
    let (code, text, errors) = run_with(&["check", "-"], "[a]\nbudget = \"fleet\"\n");
    assert_eq!((code, &*errors), (0, ""));
    let expected = "  Budget: three retries without a success, and two more for each success; a retry takes one of 10 \
                    tokens, which its success gives back, and a success gives 0.2; the calls of one lost connection are \
                    one failure; all processes together have ten more tokens for each destination, one in two seconds, and three for each retry that succeeds.\n";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn a_policy_file_in_words_and_with_warnings() {
    let file = scratch("policies.toml");
    let text = "
[orders]
max_attempts = 4
base = \"2ms\"
max_elapsed = \"20s\"
budget = { ratio = 0.8 }

[hopeless]
schedule = \"constant\"
base = \"1m\"

[never]
max_attempts = 1
guards = [\"breaker:open_time=1s\", \"bulkhead:limit=8\"]
";
    std::fs::write(&file, text).unwrap();
    let (code, text, errors) = run(&["check", file.to_str().unwrap()]);
    assert_eq!((code, &*errors), (0, ""));
    let file = file.display();
    let expected = format!(
        "\
{file}:4: warning: orders.base is 2 ms (recommended: 10 ms to 1 s, usually 100 ms)
{file}:6: warning: orders.budget.ratio is 0.8 (recommended: 0.01 to 0.5, usually 0.1)
{file}:10: warning: hopeless.base is 60 s (recommended: 10 ms to 1 s, usually 100 ms)
{file}: warning: has several policies, and uses none: set `default`, or add [[routes]]
{file}: warning: hopeless never retries: the next delay would pass the limit on elapsed time
{file}: warning: never.guards has \"breaker:open_time=1s\": `open_time` is 1s (recommended: 10 s to 2 min, usually 30 s)

orders
  Retried at most 3 times (4 attempts), after 0 s to 2 ms, 0 s to 4 ms, 0 s to 8 ms.
  Over HTTP, any request is retried after 425 and 429, or with proof that it was not processed. A \
repeatable request is also retried after 408, 500, 502, 503 and 504, a lost connection or a timeout.
  No retry is sent later than 20 s after the start. A delay that the server asks for is obeyed up to \
60 s.
  Budget: a retry takes one of 10 tokens; a success gives 0.8, and a second gives 0.01.

hopeless
  Nothing is retried.

never
  Each attempt must be admitted by breaker:open_time=1s and bulkhead:limit=8.
  Nothing is retried.
"
    );
    assert_eq!(text, expected);
}

/// The warnings of a policy's own `validate`, with their lines.
#[test]
fn settings_that_contradict_each_other() {
    let text = "[many]
max_attempts = 15
[paid]
max_attempts = 15
budget = { ratio = 0.1, capacity = 20 }
[slow]
attempt_timeout = \"10s\"
max_elapsed = \"10s\"
[breaker]
guards = [\"breaker:min_calls=30,last_calls=20\"]
";
    let (code, text, errors) = run_with(&["check", "-"], text);
    assert_eq!((code, &*errors), (0, ""));
    let warnings: Vec<_> = text.lines().filter(|line| line.contains("warning")).collect();
    let range = "max_attempts is 15 (recommended: 2 to 10, usually 3 to 5)";
    let expected = [
        format!("<stdin>:2: warning: many.{range}"),
        "<stdin>:2: warning: many.max_attempts is 15, and the budget grants 4 while no call succeeds (recommended: as \
         many as the budget grants)"
            .to_owned(),
        format!("<stdin>:4: warning: paid.{range}"),
        "<stdin>:7: warning: slow.attempt_timeout is 10s (recommended: below `max_elapsed`, after which no attempt \
         starts)"
            .to_owned(),
        "<stdin>: warning: has several policies, and uses none: set `default`, or add [[routes]]".to_owned(),
        "<stdin>: warning: breaker.guards has \"breaker:min_calls=30,last_calls=20\": `min_calls` is 30 (recommended: \
         at most `last_calls`)"
            .to_owned(),
    ];
    assert_eq!(warnings, expected);
}

#[test]
fn what_cannot_be_read_or_is_wrong() {
    let (code, text, errors) = run(&["check", "no/such.json"]);
    assert_eq!((code, &*text), (2, ""));
    assert!(errors.starts_with("error: no/such.json: cannot be read: No such file"), "{errors}");
    let (code, text, _) = run_with(&["check", "-"], "[a]\nfactor = -1\ncap = \"1ms\"\n");
    assert_eq!(code, 1);
    let expected = "\
<stdin>:2: error: a.factor must be a finite number above 0, but it is -1
<stdin>:3: error: a.cap must be at least the base delay, but it is 1ms
";
    assert_eq!(text, expected);
    let (code, text, _) = run_with(&["check", "-"], "[a]\nguards = [\"breaker:x=1\"]\n");
    let expected = "<stdin>:2: error: a.guards has \"breaker:x=1\": x is not known here; known: failure_ratio, ";
    assert!(code == 1 && text.starts_with(expected), "{text}");
    assert_eq!(run(&["check"]).0, 2);
    let (code, _, errors) = run(&["check", "-", "--plot", "x.png"]);
    assert_eq!((code, &*errors), (2, "error: --plot: this command draws no picture\n"));
}

/// A file that a layer refuses is refused here, too, with the same text.
#[test]
fn bad_files_are_those_of_the_layer() {
    let file = scratch("bad.toml");
    let error = |text: &[u8]| {
        std::fs::write(&file, text).unwrap();
        let (code, out, errors) = run(&["check", file.to_str().unwrap()]);
        assert_eq!((code, &*out), (2, ""));
        errors.replace(&file.display().to_string(), "p.toml")
    };
    assert_eq!(error(&b"# \n".repeat(3_500_000)), "error: p.toml: is longer than 1 MiB (1048576 bytes)\n");
    assert_eq!(error(b"\n"), "error: p.toml: is empty\n");
    assert_eq!(error(b"[a]\n\nbase = \"\xff\"\n"), "error: p.toml:3: is not UTF-8\n");
    let (code, _, errors) = run(&["check", "/dev/zero"]);
    assert_eq!((code, &*errors), (2, "error: /dev/zero: is not a file\n"));

    let (code, text, _) = run_with(&["check", "-"], "[a]\n[b]\n");
    let warning = "<stdin>: warning: has several policies, and uses none: set `default`, or add [[routes]]\n";
    assert!(code == 0 && text.starts_with(warning), "{text}");
    let deep = format!("{{\n\"a\": {}1{} }}", "[".repeat(100_000), "]".repeat(100_000));
    let (code, text, _) = run_with(&["check", "-"], &deep);
    assert_eq!((code, &*text), (1, "<stdin>:2: error: a is nested more than 16 levels deep\n"));
}

/// A file of a program, in either format: the routes are described, in their order.
#[test]
fn routes_are_described() {
    let toml = "never_retry = true\ndefault = \"b\"\n[a]\n[b]\nmax_attempts = 1\n\
                [[routes]]\ndestination = \"http://orders\"\nmethod = [\"GET\", \"PUT\"]\npath = \"/v1/{id}\"\npolicy = \"a\"\n\
                [[routes]]\ngrpc = \"stock.Stock\"\npolicy = \"a\"\n[[routes]]\npolicy = \"a\"\n";
    let json = r#"{ "never_retry": true, "default": "b", "a": {}, "b": { "max_attempts": 1 }, "routes": [
        { "destination": "http://orders", "method": ["GET", "PUT"], "path": "/v1/{id}", "policy": "a" },
        { "grpc": "stock.Stock", "policy": "a" }, { "policy": "a" }] }"#;
    let expected = "\
The first route that matches counts
  destination http://orders, method GET or PUT, path /v1/{id}: a
  gRPC stock.Stock: a
  any request: a
  any other request: b
  Nothing is retried (never_retry).

a
";
    for text in [toml, json] {
        let (code, found, errors) = run_with(&["check", "-"], text);
        assert_eq!((code, &*errors), (0, ""), "{found}");
        assert!(found.starts_with(expected), "{found}");
    }
    let (code, found, _) = run_with(&["check", "-"], r#"{ "a": { "max_atempts": 1 } }"#);
    assert_eq!(
        (code, &*found),
        (1, "<stdin>:1: error: a.max_atempts is not known here; did you mean `max_attempts`?\n")
    );
    let (code, found, _) = run_with(&["check", "-"], r#"{ "methodConfigs": [] }"#);
    assert!(!found.contains("policy"), "{code} {found}");
}

/// Sections of bodies are described, and the one that covers a request.
#[test]
fn bodies_that_are_read() {
    let file = "[a]\n[[bodies]]\nmethod = \"GET\"\nup_to = \"1 KiB\"\nwithin = \"50ms\"\nrules = [\"aws-json\", \"slack\"]\n\
                [[bodies]]\n";
    let (code, text, _) = run_with(&["check", "-"], file);
    let expected = "\
Response bodies that are read, by the first section that matches
  method GET: up to 1024 bytes, within 50 ms, judged by aws-json, slack
  any request: as the program sets
";
    assert!(code == 0 && text.contains(expected), "{text}");
    let (_, text, _) = run_with(&["check", "-", "--explain", "a.example", "PUT /x"], file);
    let expected = "  Its response body is read by bodies[1] (any request): as the program sets.\n";
    assert!(text.contains(expected), "{text}");
}

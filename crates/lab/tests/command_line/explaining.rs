//! `lab check --explain`.

use super::{run, run_with};

const POLICIES: &str = r#"default = "rest"

[orders]
max_attempts = 4
base = "100ms"
attempt_timeout = "2s"
guards = ["breaker", "bulkhead:limit=8"]

[counts]
profile = "aws"
repeatable = true

[rest]
schedule = "constant"
base = "1s"
max_attempts = "none"
max_elapsed = "none"

[[routes]]
policy = "orders"
destination = "https://orders.example"
method = ["GET", "POST"]
path = "/v1/*"

[[routes]]
policy = "counts"
grpc = "stock.Stock"
"#;

fn explained(of: &[&str]) -> String {
    let arguments = [&["check", "-", "--explain"], of].concat();
    let (code, text, errors) = run_with(&arguments, POLICIES);
    assert_eq!((code, &*errors), (0, ""), "{text}");
    text
}

#[test]
fn request_with_a_route_has_its_policy() {
    let text = explained(&["orders.example", "POST /v1/orders"]);
    let expected = "\
POST https://orders.example/v1/orders
  Policy: orders, by routes[0] (destination https://orders.example, method GET or POST, path /v1/*).
  The request must not be repeated without an idempotency key: it is a POST.

orders
  Each attempt must be admitted by breaker and bulkhead:limit=8.
";
    assert!(text.starts_with(expected), "{text}");
    let settings = "
Settings in force
  max_attempts: 4 (line 4)
  max_elapsed: 30 s
  max_server_delay: 60 s
  attempt_timeout: 2 s (line 6)
";
    assert!(text.contains(settings), "{text}");
    assert!(text.ends_with("guards: breaker and bulkhead:limit=8\n  endpoints: none\n"), "{text}");
    assert!(!text.contains("counts") && !text.contains("rest"), "{text}");
}

#[test]
fn grpc_method_has_its_policy() {
    let text = explained(&["http://stock:50051", "stock.Stock/Count"]);
    let expected = "\
POST http://stock:50051/stock.Stock/Count
  Policy: counts, by routes[1] (gRPC stock.Stock).
  The request may be repeated: the policy declares it.
";
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn other_request_has_the_default() {
    for of in [&["orders.example"][..], &["http://orders.example", "/v1/orders"], &["orders.example", "PUT /v1/orders"]]
    {
        let text = explained(of);
        assert!(text.contains("Policy: rest, the default, because no route matches."), "{text}");
        assert!(text.contains("max_attempts: none\n  max_elapsed: none\n"), "{text}");
    }
    let (_, text, _) = run_with(&["check", "-", "--explain", "any"], "never_retry = true\n");
    assert!(text.contains("Policy: the library's defaults, because no route matches, and the file has no default."));
    assert!(text.contains("Nothing is retried, because never_retry is set."), "{text}");
    let (_, text, _) = run_with(&["check", "-", "--explain", "any"], "[only]\n");
    assert!(text.contains("Policy: only, the policy of every request."), "{text}");
}

#[test]
fn json_has_the_explanation() {
    let (code, text, _) = run_with(&["check", "-", "--explain", "any", "--json"], "[only]\n");
    let found: serde_json::Value = serde_json::from_str(&text).unwrap();
    let names: Vec<_> = found["descriptions"].as_array().unwrap().iter().map(|one| one["of"].clone()).collect();
    assert_eq!((code, names), (0, vec!["GET https://any/".into(), "only".into(), "Settings in force".into()]));
}

#[test]
fn wrong_request_is_refused() {
    for (of, expected) in [
        (&["ftp://a"][..], "the destination must be a host"),
        (&["a b"], "the destination must be a host"),
        (&["a", "orders"], "the route must be \"/path\""),
        (&["a", "GET orders"], "the route must be \"/path\""),
        (&["a", "GET"], "the route must be \"/path\""),
    ] {
        let (code, _, errors) = run_with(&[&["check", "-", "--explain"], of].concat(), POLICIES);
        assert_eq!(code, 2);
        assert!(errors.starts_with(&format!("error: {expected}")), "{errors}");
    }
    let (code, _, errors) = run_with(&["check", "-", "--explain", "a"], "{ \"methodConfig\": [] }");
    let expected = "error: --explain needs a policy file, and this is a gRPC service config\n";
    assert_eq!((code, &*errors), (2, expected));
    assert_eq!(run(&["check", "--explain", "a"]).0, 2);
}

#[test]
fn unknown_key_names_the_known_ones() {
    let (code, text, _) = run_with(&["check", "-"], "[a]\ncolour = 1\n\n[[routes]]\npolicy = \"a\"\ntaste = 1\n");
    assert_eq!(code, 1);
    assert!(text.contains(":2: error: a.colour is not known here; known: profile, schedule, max_attempts, "), "{text}");
    let known = "routes[0].taste is not known here; known: policy, destination, method, path, grpc\n";
    assert!(text.ends_with(known), "{text}");
}

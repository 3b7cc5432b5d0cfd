//! curl as a process. Its shortest delay before a retry is a second, which passes in real time.

use std::process::Command;

use http::StatusCode;
use reattempt_faults::{Reply, Rule, Server};

/// Runs curl. Returns what it prints: the status.
async fn curl(arguments: &'static [&'static str], url: String) -> String {
    let run = move || {
        Command::new("curl")
            .args(["--silent", "--output", "/dev/null", "--noproxy", "*"])
            .args(arguments)
            .args(["--write-out", "%{http_code}", "--max-time", "30", &url])
            .output()
    };
    let output = tokio::task::spawn_blocking(run).await.unwrap().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn curl_retries_a_busy_server() {
    let server = Server::http1([Reply::status(StatusCode::SERVICE_UNAVAILABLE)]).await.unwrap();
    assert_eq!(curl(&["--retry", "1"], server.url("/orders")).await, "200");
    server.ledger().no_unsafe_repeat().at_most_attempts(2);
}

/// A lost response is no transient error for curl, unless it is told to retry all errors. Then it repeats a POST.
#[tokio::test]
async fn curl_repeats_a_payment_if_it_must() {
    let server = Server::http1([Reply::reset()]).await.unwrap();
    assert_eq!(curl(&["--retry", "1", "--data", "tea"], server.url("/pay")).await, "000");
    server.ledger().at_most_attempts(1);

    let server = Server::http1([Reply::reset()]).await.unwrap();
    assert_eq!(curl(&["--retry", "1", "--retry-all-errors", "--data", "tea"], server.url("/pay")).await, "200");
    let violation = server.ledger().check(Rule::NoUnsafeRepeat).unwrap_err();
    assert_eq!(violation.arrivals().len(), 2, "{violation}");
}

//! The layers of a file: which policy a call gets, and what it does.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use reattempt::classify::RequestView;
use reattempt::grpc::Grpc;
use reattempt::guard::Refused;
use reattempt::{CallOptions, Http};
use reattempt_policy_file::PolicyFileOptions;
use tokio::time::Instant;
use tower::service_fn;

use crate::support::{Folder, Ledger, Sent, client, get, load};

const ROUTES: &str = r#"
    default = "once"

    [once]
    max_attempts = 1

    [twice]
    max_attempts = 2
    budget = "none"

    [thrice]
    max_attempts = 3
    budget = "none"

    [[routes]]
    destination = "https://orders.example"
    method = ["GET", "HEAD"]
    path = "/v1/{tenant}/orders/*"
    policy = "twice"

    [[routes]]
    destination = "stock.internal"
    policy = "thrice"
"#;

/// The first route that matches counts, then the default.
#[tokio::test(start_paused = true)]
async fn route_matches_its_policy_applies() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    folder.write(ROUTES);
    let (file, _) = load(&folder);
    let client = client(&file.layer(), ledger.server(503));
    for (uri, attempts) in [
        ("https://orders.example/v1/a/orders/1", 2),
        ("https://orders.example:443/v1/a/orders/", 2),
        ("https://ORDERS.example/v1/a/orders/1?x=/", 2),
        ("https://orders.example/v1/a/orders", 1),
        ("https://orders.example/v1//orders/1", 1),
        ("https://orders.example/v1/a/b/orders/1", 1),
        ("http://orders.example/v1/a/orders/1", 1),
        ("https://orders.example:8443/v1/a/orders/1", 1),
        ("https://other.example/v1/a/orders/1", 1),
        ("http://stock.internal:9000/", 3),
        ("https://stock.internal./x", 3),
        ("/v1/a/orders/1", 1),
    ] {
        let response = client.send(get(uri)).await.unwrap();
        assert_eq!((response.status().as_u16(), ledger.count()), (503, attempts), "{uri}");
    }
    let put = Request::put("https://orders.example/v1/a/orders/1").body(Full::default()).unwrap();
    client.send(put).await.unwrap();
    assert_eq!(ledger.count(), 1);
}

/// A route finds its server in every form in which a person writes it, and a text that is no server is an error.
// field 26
#[tokio::test(start_paused = true)]
async fn destination_is_found_in_every_form() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    let text = |form: &str| {
        format!(
            "[twice]\nmax_attempts = 2\nbudget = \"none\"\n[[routes]]\ndestination = \"{form}\"\npolicy = \"twice\"\n"
        )
    };
    for form in ["orders.example", "Orders.Example.", "orders.example:443", "HTTPS://orders.example:443/"] {
        folder.write(text(form));
        let client = client(&load(&folder).0.layer(), ledger.server(503));
        client.send(get("https://orders.example./1")).await.unwrap();
        assert_eq!(ledger.count(), 2, "{form}");
        client.send(get("https://other.example/1")).await.unwrap();
        assert_eq!(ledger.count(), 3, "{form}: by default, there are 3 attempts");
    }
    for form in ["", " orders.example", "https://orders.example/v1", "a@orders.example", "orders.example:port", "::1"] {
        folder.write(text(form));
        assert!(PolicyFileOptions::new().unwatched().load(folder.file()).is_err(), "{form}");
    }
}

/// A profile brings its service's classification with it, and its limit on the server's delay.
#[tokio::test(start_paused = true)]
async fn profile_classifies_its_service() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    folder.write(
        "default = \"plain\"\n[plain]\n[cluster]\nprofile = \"kubernetes\"\nbudget = \"none\"\n\
         [[routes]]\npath = \"/api/*\"\npolicy = \"cluster\"\n",
    );
    let (file, _) = load(&folder);
    let client = client(&file.layer(), ledger.server(429));
    client.send(get("http://a/other")).await.unwrap();
    assert_eq!(ledger.count(), 3, "a 429 is retried");
    client.send(get("http://a/api/pods")).await.unwrap();
    assert_eq!(ledger.count(), 1, "a 429 without Retry-After is an eviction that a budget forbids");
}

/// Without a default, the library's own applies to requests without a route.
#[tokio::test(start_paused = true)]
async fn no_default_the_library_decides() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    folder.write("[orders]\nmax_attempts = 5\n[[routes]]\npath = \"/orders\"\npolicy = \"orders\"\n");
    let (file, _) = load(&folder);
    let client = client(&file.layer(), ledger.server(503));
    client.send(get("http://a/other")).await.unwrap();
    assert_eq!(ledger.count(), 3);

    folder.write("[default]\nmax_attempts = 2\n[other]\n");
    file.reload().unwrap();
    client.send(get("http://b/other")).await.unwrap();
    assert_eq!(ledger.count(), 2, "the policy of the name default");

    folder.write("[only]\nmax_attempts = 1\n");
    file.reload().unwrap();
    client.send(get("http://b/other")).await.unwrap();
    assert_eq!(ledger.count(), 1, "the only policy");

    folder.write("[one]\n[other]\n");
    let error = file.reload().unwrap_err().to_string();
    assert!(
        error.ends_with("p.toml: has several policies, and uses none: set `default`, or add [[routes]]"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn grpc_route_matches_its_method() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    folder.write(
        "[once]\nmax_attempts = 1\n[many]\nmax_attempts = 4\nbudget = \"none\"\nrepeatable = true\n\
         [default]\nmax_attempts = 2\nrepeatable = true\nbudget = \"none\"\n[[routes]]\ngrpc = \"inventory.Stock/Count\"\npolicy = \"many\"\n[[routes]]\n\
         grpc = \"inventory.Stock\"\npolicy = \"once\"\n",
    );
    let (file, _) = load(&folder);
    let layer = file.layer_with(Grpc::new(), |_, policy| policy);
    let client = tower::Layer::layer(&layer, ledger.server_of::<tonic::body::Body>(503));
    for (method, attempts) in [("/inventory.Stock/Count", 4), ("/inventory.Stock/Take", 1), ("/other.Stock/Count", 2)] {
        let call = Request::post(format!("http://stock{method}")).header("content-type", "application/grpc");
        client.send(call.body(tonic::body::Body::empty()).unwrap()).await.unwrap();
        assert_eq!(ledger.count(), attempts, "{method}");
    }
}

/// One word in a policy declares whether its requests may be processed twice. A rule in the program takes precedence.
// C-12
#[tokio::test(start_paused = true)]
async fn repeatable_is_a_word_of_a_policy() {
    let policy = |word: &str| format!("[default]\nmax_attempts = 3\nbudget = \"none\"\n{word}\n");
    let rule =
        |request: RequestView<'_>| (request.path() == "/orders/Place").then(|| CallOptions::new().repeatable(false));
    for (word, grpc, post, fetch) in [("", 1, 1, 3), ("repeatable = true", 3, 3, 3), ("repeatable = false", 1, 1, 1)] {
        let (folder, ledger) = (Folder::new(), Ledger::default());
        folder.write(policy(word));
        let (file, _) = load(&folder);

        let layer = file.layer_with(Grpc::new().options_for(rule), |_, policy| policy);
        let calls = tower::Layer::layer(&layer, ledger.server_of::<tonic::body::Body>(503));
        for (path, attempts) in [("/stock/Count", grpc), ("/orders/Place", 1)] {
            let call = Request::post(format!("http://shop{path}")).header("content-type", "application/grpc");
            calls.send(call.body(tonic::body::Body::empty()).unwrap()).await.unwrap();
            assert_eq!(ledger.count(), attempts, "{word} {path}");
        }

        let layer = file.layer_with(Http::new().options_for(rule), |_, policy| policy);
        let client = client(&layer, ledger.server(503));
        for (method, path, attempts) in
            [("POST", "/search", post), ("GET", "/search", fetch), ("POST", "/orders/Place", 1)]
        {
            let mut request = get(&format!("http://shop{path}"));
            *request.method_mut() = method.parse().unwrap();
            client.send(request).await.unwrap();
            assert_eq!(ledger.count(), attempts, "{word} {method} {path}");
        }
    }
}

/// The schedule, the limits, the budget and the guards of a section all reach the call.
#[tokio::test(start_paused = true)]
async fn every_setting_reaches_the_call() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    folder.write(
        "[default]\nschedule = \"list\"\ndelays = [\"3s\", \"5s\"]\nmax_attempts = \"none\"\nbudget = \"none\"\n",
    );
    let (file, _) = load(&folder);
    let client = client(&file.layer(), ledger.server(503));
    let start = tokio::time::Instant::now();
    client.send(get("http://a/")).await.unwrap();
    assert_eq!((ledger.count(), start.elapsed().as_secs()), (3, 8));

    folder.write("[default]\nbudget = { ratio = 0.1, capacity = 1, min_per_second = 0 }\nmax_attempts = 9\n");
    file.reload().unwrap();
    client.send(get("http://a/")).await.unwrap();
    assert_eq!(ledger.count(), 2);

    folder.write("[default]\nguards = [\"rate-limit:rate=0.000001,burst=1\"]\n");
    file.reload().unwrap();
    let error = client.send(get("http://a/")).await.unwrap_err();
    assert!(error.downcast_ref::<Refused>().is_some(), "{error}");
    assert_eq!(ledger.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn attempt_timeout_ends_an_attempt() {
    let folder = Folder::new();
    folder.write("[default]\nattempt_timeout = \"2s\"\nmax_attempts = 2\nschedule = \"constant\"\nbase = \"1s\"\n");
    let (file, _) = load(&folder);
    let hanging = tower::service_fn(|_: crate::support::Sent| async {
        std::future::pending::<Result<http::Response<Full<bytes::Bytes>>, std::convert::Infallible>>().await
    });
    let start = tokio::time::Instant::now();
    let error = client(&file.layer(), hanging).send(get("http://a/")).await.unwrap_err();
    assert!(error.to_string().contains("timed out"), "{error}");
    assert_eq!(start.elapsed(), Duration::from_secs(5));
}

/// The attempts go to the servers of the section, and the retry to the one that was not tried.
#[tokio::test(start_paused = true)]
async fn endpoints_get_the_attempts() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    folder.write(
        "[default]\nendpoints = \"orders\"\nmax_attempts = 2\n[endpoints.orders]\nbase = \"http://orders\"\n\
         urls = [\"http://one:81/api\", \"http://two:82\"]\n",
    );
    let (file, _) = load(&folder);
    let client = client(&file.layer(), ledger.server(503));
    client.send(get("http://orders/x")).await.unwrap();
    let mut sent = ledger.take();
    sent.sort_unstable();
    assert_eq!(sent, ["GET http://one:81/api/x", "GET http://two:82/x"]);
    client.send(get("http://others/x")).await.unwrap();
    assert_eq!(ledger.take()[0], "GET http://others/x");
}

/// A handle's options and a request's own apply under every policy.
#[tokio::test(start_paused = true)]
async fn call_options_override_the_file() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    folder.write(ROUTES);
    let (file, _) = load(&folder);
    let client = client(&file.layer(), ledger.server(503)).with_options(CallOptions::new().max_attempts(2));
    client.send(get("http://stock.internal/")).await.unwrap();
    assert_eq!(ledger.count(), 2);
    let mut request = get("http://stock.internal/");
    request.extensions_mut().insert(CallOptions::new().never_retry());
    client.send(request).await.unwrap();
    assert_eq!(ledger.count(), 1);
}

/// The budget that processes share is the program's. Without it the file is refused.
#[tokio::test(start_paused = true)]
async fn fleet_budget_is_the_programs() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    folder.write("\n[orders]\nbudget = \"fleet\"\nmax_attempts = 5\n[default]\nbudget = \"fleet\"\n");
    let error = PolicyFileOptions::new().unwatched().load(folder.file()).unwrap_err().to_string();
    let path = folder.file();
    let reason = "must not be \"fleet\", because this program supplies no store for it";
    let expected = [
        format!("{}:3: orders.budget {reason}", path.display()),
        format!("{}:6: default.budget {reason}", path.display()),
    ];
    assert_eq!(error, expected.join("\n"));

    let budget = |name: &str| -> reattempt::policies::TableBudget {
        let capacity = if name == "default" { 1.0 } else { 2.0 };
        std::sync::Arc::new(reattempt::RetryBudget::ratio(0.1).capacity(capacity).min_per_second(0.0))
    };
    let file = PolicyFileOptions::new().unwatched().fleet_budget(budget).load(folder.file()).unwrap();
    let client = client(&file.layer(), ledger.server(503));
    client.send(get("http://a/")).await.unwrap();
    assert_eq!(ledger.count(), 2);
}

/// The program's own settings are applied to each policy, with its name, after each change.
#[tokio::test(start_paused = true)]
async fn changes_of_the_program_are_applied() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    folder.write(ROUTES);
    let (file, _) = load(&folder);
    let names = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let (seen, reader) = (std::sync::Arc::clone(&names), file.clone());
    let layer = file.layer_with(reattempt::Http::new(), move |name, policy| {
        // The function may read the handle.
        seen.lock().unwrap().push(format!("{name} of {}", reader.names().len()));
        policy.retries(|retries| retries.max_attempts(4))
    });
    assert_eq!(std::mem::take(&mut *names.lock().unwrap()), ["once of 3", "twice of 3", "thrice of 3"]);
    let client = client(&layer, ledger.server(503));
    client.send(get("http://stock.internal/")).await.unwrap();
    assert_eq!(ledger.count(), 4);
    folder.write("[default]\n");
    file.reload().unwrap();
    assert_eq!(*names.lock().unwrap(), ["default of 1"]);
}

/// A policy adds names of headers to those that the program reads, and a line pauses all calls.
// field 23, field 24
#[tokio::test(start_paused = true)]
async fn headers_and_pause_are_read_from_the_file() {
    let folder = Folder::new();
    folder.write(
        "[default]\nmax_attempts = 2\nbudget = \"none\"\ndelay_headers = [\"X-Cooldown\"]\n\
         quota_headers = [\"x-calls-left x-calls-reset\"]\n\
         guards = [\"pause:longest=1h,spread=0s\"]\n",
    );
    let (file, _) = load(&folder);
    for (header, value, wait) in
        [("x-cooldown", "7", 7), ("x-calls-reset", "9", 9), ("x-ratelimit-reset", "9", 0), ("retry-after", "3", 3)]
    {
        let sent = Arc::new(AtomicUsize::new(0));
        let number = Arc::clone(&sent);
        let server = service_fn(move |_: Sent| {
            let refuses = number.fetch_add(1, Ordering::Relaxed) == 0;
            let mut response = Response::builder().status(if refuses { 429 } else { 200 });
            if refuses {
                response = response.header(header, value).header("x-calls-left", "0");
                response = response.header("x-ratelimit-remaining", "0");
            }
            let response = response.body(Full::<Bytes>::default()).unwrap();
            async move { Ok::<_, Infallible>(response) }
        });
        let client = client(&file.layer(), server);
        let uri = format!("http://{header}.example/");
        let began = Instant::now();
        let late = async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            let response = client.send(get(&uri)).await.unwrap();
            (response.status(), began.elapsed().as_secs())
        };
        let (first, late) = tokio::join!(client.send(get(&uri)), late);
        assert_eq!((first.unwrap().status(), late), (StatusCode::OK, (StatusCode::OK, wait)), "{header}");
        let waited = began.elapsed().as_secs();
        assert!((wait..=wait + 1).contains(&waited), "{header}: {waited} s");
    }
    folder.write("[default]\nquota_headers = [\"one\"]\n");
    let problem = file.reload().unwrap_err().to_string();
    assert!(problem.contains("must be two headers"), "{problem}");
}

/// Verdicts for single statuses and codes, each for its protocol.
// field 23
#[tokio::test(start_paused = true)]
async fn verdicts_are_read_from_the_file() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    folder.write(
        "[default]\nmax_attempts = 3\nbudget = \"none\"\nrepeatable = true\n\
         on_status = [\"501 retry\", \"503 return\"]\non_code = [\"UNIMPLEMENTED retry\", \"UNAVAILABLE return\"]\n",
    );
    let (file, _) = load(&folder);
    for (status, attempts) in [(501, 3), (503, 1), (500, 3), (404, 1)] {
        let client = client(&file.layer(), ledger.server(status));
        client.send(get("http://stock.internal/")).await.unwrap();
        assert_eq!(ledger.count(), attempts, "{status}");
    }
    let layer = file.layer_with(Grpc::new(), |_, policy| policy);
    for (code, attempts) in [("12", 3), ("14", 1), ("8", 3), ("5", 1)] {
        let sent = Arc::new(AtomicUsize::new(0));
        let number = Arc::clone(&sent);
        let server = service_fn(move |_: Request<tonic::body::Body>| {
            number.fetch_add(1, Ordering::Relaxed);
            let response = Response::builder().header("grpc-status", code).header("content-type", "application/grpc");
            let response = response.body(Full::<Bytes>::default()).unwrap();
            async move { Ok::<_, Infallible>(response) }
        });
        let client = tower::Layer::layer(&layer, server);
        let call = Request::post("http://stock/inventory.Stock/Count").header("content-type", "application/grpc");
        client.send(call.body(tonic::body::Body::empty()).unwrap()).await.unwrap();
        assert_eq!(sent.load(Ordering::Relaxed), attempts, "{code}");
    }
}

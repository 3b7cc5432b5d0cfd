//! The allocations of a call that succeeds at once, in comparison with the client alone.

#![allow(missing_docs, reason = "tests")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]
#![allow(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use reattempt::ReplayBody;
use reattempt_policy_file::PolicyFileOptions;
use tower::{Layer, Service, ServiceExt, service_fn};

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every method passes its arguments on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const FILE: &str = r#"
    [default]
    max_attempts = 4
    [plain]
    max_attempts = 5
    [guarded]
    guards = ["breaker"]
    [twice]
    guards = ["breaker", "bulkhead"]
    [[routes]]
    destination = "http://plain.example"
    path = "/v1/{id}"
    policy = "plain"
    [[routes]]
    path = "/guarded"
    policy = "guarded"
    [[routes]]
    path = "/twice"
    policy = "twice"
"#;

/// Returns the allocations of one call, without those of its request.
fn counted<S>(client: &mut S, uri: &'static str) -> usize
where
    S: Service<Request<Full<Bytes>>, Error: std::fmt::Debug>,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let request = Request::get(uri).body(Full::default()).unwrap();
        let before = COUNT.with(Cell::get);
        let response = client.ready().await.unwrap().call(request).await.unwrap();
        let after = COUNT.with(Cell::get);
        drop(response);
        after - before
    })
}

#[test]
fn success_at_once_allocates_nothing() {
    let path = std::env::temp_dir().join(format!("reattempt-allocations-{}.toml", std::process::id()));
    std::fs::write(&path, FILE).unwrap();
    let file = PolicyFileOptions::new().unwatched().load(&path).unwrap();
    let server = service_fn(|_: Request<ReplayBody<Full<Bytes>>>| {
        std::future::ready(Ok::<_, Infallible>(Response::new(Full::<Bytes>::default())))
    });
    let mut retries = reattempt::RetryLayer::new(reattempt::RetryPolicy::http().boxed_errors()).layer(server);
    let mut client = file.layer().layer(server);
    for _ in 0..3 {
        // The first calls fill the thread's buffers.
        let _ = (counted(&mut retries, "http://a/"), counted(&mut client, "http://a/"));
    }
    let retried = counted(&mut retries, "http://a/");
    for uri in ["http://a/", "http://plain.example/v1/1", "http://a/", "http://plain.example/v1/2"] {
        assert_eq!(counted(&mut client, uri), retried, "{uri}: as many as the retry layer alone");
    }
    // The bulkhead keeps its ticket to the end of the body, which allocates once more for it and for the pair.
    for (uri, more) in [("http://a/guarded", 1), ("http://a/twice", 5)] {
        let _ = counted(&mut client, uri);
        assert_eq!(counted(&mut client, uri), retried + more, "{uri}");
    }
    // A change costs the first call only.
    std::fs::write(&path, FILE.replace("max_attempts = 4", "max_attempts = 2")).unwrap();
    file.reload().unwrap();
    assert!(counted(&mut client, "http://a/") > retried);
    assert_eq!(counted(&mut client, "http://a/"), retried);
    std::fs::remove_file(&path).unwrap();
}

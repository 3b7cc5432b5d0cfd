//! Tests of each service fault, under a paused clock.

use std::convert::Infallible;
use std::io::{self, ErrorKind};

use http::{Request, Response};
use http_body_util::BodyExt;
use reattempt_faults::{Faults, ServiceFault, Step};
use tokio::time::{Instant, timeout};
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::support::{BUSY, ms, panic_of, request, retry};

fn kind_of(error: &(dyn std::error::Error + Send + Sync + 'static)) -> ErrorKind {
    error.downcast_ref::<io::Error>().unwrap().kind()
}

#[tokio::test(start_paused = true)]
async fn faults_come_in_order_then_none() {
    let faults = Faults::new([BUSY, ServiceFault::Error(ErrorKind::ConnectionReset)]);
    let mut server = faults.service();
    let put = request("PUT", "/", "hello");
    let statuses = async |server: &mut _| retry(server, 1, &put).await.map(|it| it.status());
    assert_eq!(statuses(&mut server).await.unwrap(), 503);
    assert_eq!(kind_of(&*statuses(&mut server).await.unwrap_err()), ErrorKind::ConnectionReset);
    assert_eq!(statuses(&mut server).await.unwrap(), 200);
    let answers: Vec<_> = faults.ledger().arrivals().into_iter().map(|it| it.answer).collect();
    let expected = ["503", "connection reset", "200"].map(|answer| Some(answer.to_owned()));
    assert_eq!(answers, expected);
    assert!(faults.ledger().arrivals().iter().all(|it| it.whole && it.body == b"hello"));
}

#[tokio::test(start_paused = true)]
async fn delay_passes_before_fault() {
    let faults = Faults::new([Step::new(BUSY).delay(ms(70))]);
    let began = Instant::now();
    retry(&mut faults.service(), 1, &request("GET", "/", "")).await.unwrap();
    assert_eq!(began.elapsed(), ms(70));
}

#[tokio::test(start_paused = true)]
async fn hung_call_is_open_until_dropped() {
    let faults = Faults::new([ServiceFault::Hang]);
    let get = request("GET", "/", "");
    {
        let mut call = std::pin::pin!(faults.service().oneshot(get));
        timeout(ms(1000), call.as_mut()).await.unwrap_err();
        assert!(faults.ledger().arrivals()[0].open);
    }
    faults.ledger().nothing_left_open();
    assert_eq!(faults.ledger().arrivals()[0].answer, None);
}

#[tokio::test(start_paused = true)]
async fn instance_that_is_never_ready_stays_so() {
    let faults = Faults::new([BUSY, ServiceFault::NeverReady]);
    let mut server = faults.service();
    retry(&mut server, 1, &request("GET", "/", "")).await.unwrap();
    for _ in 0..2 {
        let ready = timeout(ms(1000), ServiceExt::<Request<String>>::ready(&mut server)).await;
        assert!(ready.is_err());
    }
    let other = server.clone().oneshot(request("GET", "/", "")).await.unwrap();
    assert_eq!(other.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn panics_come_from_call_and_future() {
    let faults = Faults::new([ServiceFault::PanicInCall, ServiceFault::Panic]);
    let mut server = faults.service();
    ServiceExt::<Request<String>>::ready(&mut server).await.unwrap();
    let get = || request("GET", "/", "");
    let text = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(server.call(get()))));
    assert_eq!(*text.unwrap_err().downcast::<&str>().unwrap(), "injected by the script");
    let future = server.call(get());
    assert!(tokio::spawn(future).await.unwrap_err().is_panic());
    faults.ledger().nothing_left_open();
}

/// The inner service receives a request whose response is lost, but not one that is refused above it.
#[tokio::test(start_paused = true)]
async fn layer_calls_inner_service_unless_fault() {
    let lost = ServiceFault::LoseResponse(ErrorKind::ConnectionReset);
    let faults = Faults::new([lost, BUSY, ServiceFault::NoFault]);
    let worked = std::sync::atomic::AtomicUsize::new(0);
    let worked = std::sync::Arc::new(worked);
    let counted = std::sync::Arc::clone(&worked);
    let inner = service_fn(move |request: Request<String>| {
        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        std::future::ready(Ok::<_, Infallible>(Response::new(request.into_body())))
    });
    let server = faults.layer().layer(inner);
    let call = || server.clone().oneshot(request("POST", "/", "echo"));
    assert_eq!(kind_of(&*call().await.unwrap_err()), ErrorKind::ConnectionReset);
    assert_eq!(call().await.unwrap().status(), 503);
    let response = call().await.unwrap();
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "echo");
    assert_eq!(worked.load(std::sync::atomic::Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn refusals_prove_effect_was_not_done() {
    let status = |code| ServiceFault::Status(http::StatusCode::from_u16(code).unwrap());
    let refused = ServiceFault::Error(ErrorKind::ConnectionRefused);
    let faults = Faults::new([status(421), status(425), status(429), refused, status(500)]);
    let mut server = faults.service();
    retry(&mut server, 6, &request("GET", "/", "")).await.unwrap();
    let done: Vec<_> = faults.ledger().arrivals().iter().map(|it| it.carried_out).collect();
    assert_eq!(done, [false, false, false, false, true, true]);
    let other = Faults::new([BUSY]);
    assert!(panic_of(move || drop(other)).starts_with("the script was not used up"));
}

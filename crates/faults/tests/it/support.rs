//! A handwritten client that retries, and short names.

use std::time::Duration;

use http::{Request, Response, StatusCode};
use reattempt_faults::{Alone, BoxError, FaultBody, FaultService, ServiceFault};
use tower::{Service, ServiceExt};

pub(crate) const BUSY: ServiceFault = ServiceFault::Status(StatusCode::SERVICE_UNAVAILABLE);

pub(crate) type Answer = Result<Response<FaultBody<String>>, BoxError>;

pub(crate) fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

pub(crate) fn request(method: &str, target: &str, body: &str) -> Request<String> {
    Request::builder().method(method).uri(target).body(body.to_owned()).unwrap()
}

/// Sends the request until it succeeds, at most `attempts` times, 100 ms apart.
pub(crate) async fn retry(server: &mut FaultService<Alone>, attempts: usize, request: &Request<String>) -> Answer {
    let mut number = 1;
    loop {
        let answer = ServiceExt::<Request<String>>::ready(server).await?.call(request.clone()).await;
        let succeeded = answer.as_ref().is_ok_and(|response| response.status().is_success());
        if succeeded || number == attempts {
            return answer;
        }
        tokio::time::sleep(ms(100)).await;
        number += 1;
    }
}

/// Returns the text of the panic with which `work` ends.
pub(crate) fn panic_of(work: impl FnOnce()) -> String {
    let payload = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_err();
    payload.downcast_ref::<String>().cloned().expect("a text")
}

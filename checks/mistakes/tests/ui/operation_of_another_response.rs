//! HTTP's rules, around an operation whose response is of another client.

use reattempt::operation::retry_blocking;
use reattempt::schedule::Constant;

struct Response;

fn send() -> Result<Response, std::io::Error> {
    Ok(Response)
}

fn main() {
    let _ = retry_blocking(Constant::immediate(), send).http(&http::Method::GET);
}

//! The answers of dropped attempts, which a task reads in the background if the client lingers.
//!
//! A layer drops attempts inside `leave`. A lingering client's future that is dropped there leaves its answer behind
//! (`expect`), and the guards around it leave their tickets ([`hold`]). Then one task reads the answers.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::time::timeout;

use crate::call::clock;

/// The longest time for which an answer is awaited. It is the default time for draining a refused response.
const DRAIN_TIME: Duration = Duration::from_millis(50);

/// The rest of an attempt: it waits for the response, and reads a short body.
pub(crate) type LateAnswer = Pin<Box<dyn Future<Output = ()> + Send>>;

thread_local! {
    static LEFT: RefCell<Option<Left>> = const { RefCell::new(None) };
}

/// The parts that dropped attempts have left behind.
#[derive(Default)]
struct Left {
    // Declared first, so that attempts end before the guards around them.
    answers: Vec<LateAnswer>,
    held: Vec<Box<dyn Send>>,
}

/// Drops attempts by calling `drop_all`. Their answers are then awaited in the background, if this thread has a
/// runtime.
#[cold]
pub(crate) fn leave<R>(drop_all: impl FnOnce() -> R) -> R {
    let _leaving = clock::has_timer().then(|| Leaving(LEFT.replace(Some(Left::default()))));
    drop_all()
}

/// Returns `true` if the attempt that is being dropped may leave its answer behind.
pub(crate) fn is_leaving() -> bool {
    LEFT.try_with(|left| left.borrow().is_some()).unwrap_or_default()
}

/// Leaves the answer of an attempt that is being dropped.
pub(crate) fn expect(answer: LateAnswer) {
    with_left(|left| left.answers.push(answer));
}

/// Returns `true` if an attempt has left its answer, which its guards wait for.
#[cold]
pub fn is_expected() -> bool {
    let is_expected =
        |left: &RefCell<Option<Left>>| left.borrow().as_ref().is_some_and(|left| !left.answers.is_empty());
    LEFT.try_with(is_expected).unwrap_or_default()
}

/// Holds a value until the expected answers have been read.
pub fn hold(held: Box<dyn Send>) {
    with_left(|left| left.held.push(held));
}

fn with_left(change: impl FnOnce(&mut Left)) {
    LEFT.with_borrow_mut(|left| change(left.get_or_insert_default()));
}

/// The former value of [`LEFT`], which is restored even if a destructor panics.
struct Leaving(Option<Left>);

impl Drop for Leaving {
    fn drop(&mut self) {
        if let Some(left) = LEFT.replace(self.0.take())
            && !left.answers.is_empty()
        {
            tokio::spawn(read(left));
        }
    }
}

/// Reads the answers, until all have ended or their time is up. Then releases what was held.
async fn read(mut left: Left) {
    let answers = &mut left.answers;
    let all = poll_fn(|cx| {
        answers.retain_mut(|answer| answer.as_mut().poll(cx).is_pending());
        if answers.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    });
    // Past the time, the answers are dropped, which resets their streams.
    let _ = timeout(DRAIN_TIME, all).await;
}

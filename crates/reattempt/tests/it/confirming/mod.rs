//! Tests of a budget that answers later, with every driver.

mod operation;

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use reattempt_core::{Budget, Failure, Permit, PermitIssuer};
use tokio::time::{Sleep, sleep};

/// A budget that confirms or refuses each retry after a while. It records what happens to its permits.
#[derive(Clone)]
pub(crate) struct Asking {
    after: Duration,
    confirms: bool,
    log: Arc<Mutex<Vec<&'static str>>>,
}

struct Question {
    sleep: Mutex<Pin<Box<Sleep>>>,
    budget: Asking,
}

impl Asking {
    pub(crate) fn new(after: Duration, confirms: bool) -> Self {
        Self { after, confirms, log: Arc::default() }
    }

    pub(crate) fn log(&self) -> Vec<&'static str> {
        self.log.lock().unwrap().clone()
    }

    fn note(&self, event: &'static str) {
        self.log.lock().unwrap().push(event);
    }
}

impl Budget for Asking {
    fn acquire(&self, _: &str, _: &Failure, _: Duration) -> Option<Permit> {
        self.note("asked");
        let sleep = Mutex::new(Box::pin(sleep(self.after)));
        Some(Permit::new(Arc::new(Question { sleep, budget: self.clone() }), 1))
    }
}

impl PermitIssuer for Question {
    fn give_back(&self, _: u32) {
        self.budget.note("returned");
    }

    fn on_retry_end(&self, _: u32, succeeded: bool) {
        self.budget.note(if succeeded { "succeeded" } else { "failed" });
    }

    fn poll_confirmed(&self, cx: &mut Context<'_>) -> Poll<bool> {
        ready!(self.sleep.lock().unwrap().as_mut().poll(cx));
        Poll::Ready(self.budget.confirms)
    }
}

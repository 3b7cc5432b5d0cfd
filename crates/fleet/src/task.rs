//! A program's courier: one tokio task per message.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, timeout};

use crate::courier::{Amounts, Courier, Message, Question, Report};
use crate::store::BudgetStore;

/// The time for which a late answer is awaited, so that the tokens of an unneeded grant can be returned.
const LATEST: Duration = Duration::from_secs(1);

pub(crate) struct TaskCourier {
    pub(crate) store: Arc<dyn BudgetStore>,
    pub(crate) start: Instant,
}

impl Courier for TaskCourier {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn is_ready(&self) -> bool {
        Handle::try_current().is_ok()
    }

    fn seed(&self) -> u64 {
        RandomState::new().hash_one(0)
    }

    fn carry(&self, message: Message) {
        let Ok(runtime) = Handle::try_current() else { return };
        let store = Arc::clone(&self.store);
        match message {
            Message::Question(question) => drop(runtime.spawn(ask(store, question))),
            Message::Report(report) => drop(runtime.spawn(send_report(store, report))),
        }
    }
}

/// Asks the store. If the task is dropped with its runtime, the request is lost and the process decides alone.
async fn ask(store: Arc<dyn BudgetStore>, question: Question) {
    let Amounts { earned, cost, least } = question.amounts();
    let answered = {
        let mut settling = store.settle(question.key(), earned, cost, least);
        match timeout(question.patience(), &mut settling).await {
            Ok(answer) => Some(answer),
            Err(_) => {
                question.is_late();
                timeout(LATEST, settling).await.ok()
            }
        }
    };
    if let Some(answer) = answered {
        question.answer(answer);
    }
}

async fn send_report(store: Arc<dyn BudgetStore>, report: Report) {
    sleep(report.delay()).await;
    let Some(earned) = report.take() else { return };
    let answer = timeout(LATEST, store.settle(report.key(), earned, 0, 0)).await;
    report.answer(answer.unwrap_or_else(|late| Err(late.into())));
}

//! Tests of a service and a store that are down at the same time, with the driver that a program would have.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use reattempt::schedule::Constant;
use reattempt::{RetryBudget, RetryPolicy, retry};
use reattempt_core::Budget;
use tokio::time::{Instant, timeout};

use crate::server::Server;
use crate::support::{budget, returns};

const BOUND: Duration = Duration::from_secs(20);

/// A service that refuses connections while it is down.
#[derive(Clone, Default)]
struct Service {
    down: Arc<AtomicBool>,
    attempts: Arc<AtomicU32>,
}

impl Service {
    /// Calls the service, with retries.
    async fn call(&self, budget: &(impl Budget + Clone)) -> Result<(), io::ErrorKind> {
        let policy = RetryPolicy::operations().backoff(Constant::new(Duration::from_millis(1))).budget(budget.clone());
        let attempt = || {
            self.attempts.fetch_add(1, Ordering::Relaxed);
            let result = if self.down.load(Ordering::Relaxed) { Err(io::ErrorKind::ConnectionReset) } else { Ok(()) };
            async move { result }
        };
        let outcome = timeout(BOUND, retry(policy, attempt).into_future()).await.unwrap();
        outcome.map_err(|error| *error.error())
    }
}

/// Without a retry that succeeded, no client retries alone at first. Each waits for the store no longer than its
/// patience, and goes on once both are back.
// FB-1, F-11
#[tokio::test]
async fn service_and_store_down_together_return() {
    const CALLS: u32 = 5;
    let Some(mut server) = Server::start(&[]).await else { return };
    let service = Service::default();
    service.down.store(true, Ordering::Relaxed);
    let own = RetryBudget::cautious();
    for _ in 0..CALLS {
        assert_eq!(service.call(&own).await, Err(io::ErrorKind::ConnectionReset));
    }
    let attempts = service.attempts.swap(0, Ordering::Relaxed);
    assert!(attempts > CALLS);

    server.kill();
    let budgets: Vec<_> = (0..10).map(|_| budget(server.url()).prefix("shop")).collect();
    let start = Instant::now();
    for budget in &budgets {
        for _ in 0..CALLS {
            assert_eq!(service.call(budget).await, Err(io::ErrorKind::ConnectionReset));
        }
        let stats = budget.stats();
        assert!(stats.alone == 0 && stats.withheld > 0, "{stats:?}");
        assert_eq!(service.attempts.swap(0, Ordering::Relaxed), CALLS);
    }
    assert!(start.elapsed() < BOUND, "a refused connection is no wait");

    server.restart().await;
    service.down.store(false, Ordering::Relaxed);
    for budget in &budgets {
        assert_eq!(service.call(budget).await, Ok(()));
    }
    assert_eq!(service.attempts.load(Ordering::Relaxed), 10);
    returns(&budgets[0]).await;
}

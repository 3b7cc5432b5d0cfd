//! The job of the task that updates a set.
//!
//! If the runtime of the task ends before the set, the set takes the job back. The next call in another runtime starts
//! it there.

use std::sync::{Arc, Weak};

use super::guard::EndpointGuard;

/// A job that updates a set until its source ends or the set is dropped.
pub(super) trait Job: Send + Sized + 'static {
    /// The client of an endpoint.
    type Client: Send + Sync + 'static;

    fn run(&mut self, guard: &Weak<EndpointGuard<Self::Client>>) -> impl Future<Output = ()> + Send;
}

/// Starts the task of a set. Without a runtime, the first call starts it.
pub(super) fn begin<J: Job>(guard: &Arc<EndpointGuard<J::Client>>, job: J) {
    guard.discovery.begin(Running { guard: Arc::downgrade(guard), job: Some(job) }.run());
}

/// A job in a task. The job is taken out when it has ended.
struct Running<J: Job> {
    guard: Weak<EndpointGuard<J::Client>>,
    job: Option<J>,
}

impl<J: Job> Running<J> {
    async fn run(mut self) {
        if let Some(job) = &mut self.job {
            job.run(&self.guard).await;
        }
        self.job = None;
    }
}

impl<J: Job> Drop for Running<J> {
    fn drop(&mut self) {
        let Some(guard) = self.guard.upgrade() else { return };
        match self.job.take().filter(|_| !std::thread::panicking()) {
            // The runtime has ended before the job.
            Some(job) => {
                let again = Self { guard: Weak::clone(&self.guard), job: Some(job) };
                guard.discovery.put_back(again.run());
            }
            // Calls that wait for the first endpoints continue.
            None => guard.discovery.answered(),
        }
    }
}

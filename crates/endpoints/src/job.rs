//! The job of the task that updates a set.
//!
//! If the task's runtime shuts down before the set is dropped, the set takes the job back. The next call in another
//! runtime restarts it there.

use std::sync::{Arc, Weak};

use super::guard::EndpointGuard;

/// A job that updates a set until its source ends or the set is dropped.
pub(super) trait Job: Send + Sized + 'static {
    /// The client of an endpoint.
    type Client: Send + Sync + 'static;

    fn run(&mut self, guard: &Weak<EndpointGuard<Self::Client>>) -> impl Future<Output = ()> + Send;
}

/// Starts the task of a set, or lets the first call start it if there is no runtime.
pub(super) fn begin<J: Job>(guard: &Arc<EndpointGuard<J::Client>>, job: J) {
    guard.discovery.begin(Running { guard: Arc::downgrade(guard), job: Some(job) }.run());
}

/// A job that runs in a task, or `None` once it has ended.
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
            // The runtime shut down before the job ended.
            Some(job) => {
                let again = Self { guard: Weak::clone(&self.guard), job: Some(job) };
                guard.discovery.put_back(again.run());
            }
            // Lets calls continue that wait for the first endpoints.
            None => guard.discovery.answered(),
        }
    }
}

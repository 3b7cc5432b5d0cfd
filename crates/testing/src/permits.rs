//! A budget whose permits are counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use reattempt_core::{Budget, Failure, Permit, PermitIssuer};

/// A budget that grants everything and counts its permits in use. Clones share the count.
#[derive(Debug, Clone, Default)]
pub struct PermitCount(Arc<Permits>);

#[derive(Debug, Default)]
struct Permits(AtomicUsize);

impl PermitIssuer for Permits {
    fn give_back(&self, _: u32) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }

    fn on_retry_end(&self, _: u32, _: bool) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Budget for PermitCount {
    fn acquire(&self, _: &str, _: &Failure, _: Duration) -> Option<Permit> {
        self.0.0.fetch_add(1, Ordering::SeqCst);
        Some(Permit::new(Arc::clone(&self.0), 1))
    }
}

impl PermitCount {
    /// Returns the number of permits in use.
    pub fn in_use(&self) -> usize {
        self.0.0.load(Ordering::SeqCst)
    }
}

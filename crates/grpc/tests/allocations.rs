//! Tests of allocations when reading the service config in force.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use reattempt_grpc::{ServiceConfig, ServiceConfigHandle};
use reattempt_testing::{CountingAllocator, allocations};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn a_look_up_allocates_nothing() {
    let text = r#"{"methodConfig": [
        {"name": [{}]}, {"name": [{"service": "s"}]}, {"name": [{"service": "s", "method": "m"}]}
    ]}"#;
    let handle = ServiceConfigHandle::new(ServiceConfig::parse(text).unwrap());
    let look = || {
        for path in ["/s/m", "/s/n", "/t/m", "nonsense"] {
            assert!(handle.for_method(path).unwrap().is_some());
        }
    };
    // A thread's first read registers it with the others.
    look();
    let before = allocations();
    (0..100).for_each(|_| look());
    assert_eq!(allocations() - before, 0);
}

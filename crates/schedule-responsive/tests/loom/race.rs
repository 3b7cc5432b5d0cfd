//! Two threads that race, with every outcome that the model checker finds.
//!
//! loom 0.7 misses an order if one thread loads an atomic, and the other thread loads it before it stores to it
//! ([tokio-rs/loom#166](https://github.com/tokio-rs/loom/issues/166)). A model of two such threads may run only one
//! order. So each race is run twice, with the threads' roles exchanged, and the tests list all outcomes.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use loom::thread;

/// Runs `one` and `another` at once in all orders. Returns every outcome of `end`.
pub(crate) fn outcomes<S, A, B, T>(
    start: impl Fn() -> S + Copy + Send + Sync + 'static,
    one: fn(&S) -> A,
    another: fn(&S) -> B,
    end: fn(&S, A, B) -> T,
) -> Vec<T>
where
    S: Send + Sync + 'static,
    A: 'static,
    B: 'static,
    T: Ord + Debug + Send + 'static,
{
    let found = Arc::<Mutex<BTreeSet<T>>>::default();
    for exchanged in [false, true] {
        let found = Arc::clone(&found);
        loom::model(move || {
            let scene = Arc::new(start());
            let shared = Arc::clone(&scene);
            let outcome = if exchanged {
                let spawned = thread::spawn(move || one(&shared));
                let another = another(&scene);
                end(&scene, spawned.join().unwrap(), another)
            } else {
                let spawned = thread::spawn(move || another(&shared));
                let one = one(&scene);
                end(&scene, one, spawned.join().unwrap())
            };
            found.lock().unwrap().insert(outcome);
        });
    }
    Arc::into_inner(found).unwrap().into_inner().unwrap().into_iter().collect()
}

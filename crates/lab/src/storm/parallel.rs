//! Parallel storms, as many as cores and memory allow, with one progress bar.

use std::num::NonZero;
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::curves::{Curves, SECOND};
use super::fleet::StoreCounts;
use super::policy::Policy;
use super::simulation::{Ended, Scene, Simulation, Watch};
use crate::progress::Progress;

/// A million clients take up to 2.5 GB, so only one storm of that size runs at a time.
const MOST_CLIENTS_AT_ONCE: u32 = 1_500_000;

/// Runs the storms and returns the curves of each, in order.
pub(super) fn run(storms: &[(Scene, Policy)]) -> Vec<Curves> {
    let seconds = |(scene, _): &(Scene, Policy)| scene.duration.div_ceil(SECOND);
    let progress = Mutex::new(Progress::new(storms.iter().map(seconds).sum()));
    let mut curves = vec![Curves::default(); storms.len()];
    let to_do = Mutex::new(storms.iter().zip(&mut curves));
    thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let clients = storms.iter().map(|(scene, _)| scene.clients).max().unwrap_or(1);
        let room = usize::try_from(MOST_CLIENTS_AT_ONCE / clients.max(1)).unwrap_or(1).max(1);
        for _ in 0..cores.min(room).min(storms.len()) {
            scope.spawn(|| {
                while let Some(((scene, policy), curves)) = take(&to_do) {
                    let watch = Measured { curves, progress: &progress, seconds: 0 };
                    Simulation::new(scene, policy, watch).run();
                }
            });
        }
    });
    curves
}

/// Takes the next storm to run.
fn take<T>(to_do: &Mutex<impl Iterator<Item = T>>) -> Option<T> {
    to_do.lock().unwrap_or_else(PoisonError::into_inner).next()
}

/// An observer that fills curves, and moves the progress bar with each second in which a call
/// begins.
struct Measured<'a> {
    curves: &'a mut Curves,
    progress: &'a Mutex<Progress>,
    seconds: u64,
}

impl Watch for Measured<'_> {
    fn begun(&mut self, at: u64) {
        self.curves.begun(at);
        while self.seconds < at / SECOND {
            self.seconds += 1;
            self.progress.lock().unwrap_or_else(PoisonError::into_inner).step();
        }
    }

    fn sent(&mut self, at: u64) {
        self.curves.sent(at);
    }

    fn ended(&mut self, end: &Ended) {
        self.curves.ended(end);
    }

    fn stored(&mut self, counts: StoreCounts) {
        self.curves.stored(counts);
    }
}

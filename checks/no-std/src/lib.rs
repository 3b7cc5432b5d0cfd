//! A program without std that decides over retries.
//!
//! Input: the number of attempts made. Output: the delay in nanoseconds, or −1. CI only builds it,
//! to show that it links.

#![no_std]

use core::alloc::{GlobalAlloc, Layout};
use core::panic::PanicInfo;
use core::time::Duration;

use reattempt_core::{
    Call, Decision, FailedAttempt, Failure, FailureKind, Jitter, Limits, Random, Schedule,
    ScheduleExt, SharedSchedule, Terms, Unlimited, Verdict,
};
use reattempt_schedule_exponential::{Exponential, TruncatedExponential};
use reattempt_schedule_fixed::{Constant, Iterated, Linear, List};
use reattempt_schedule_responsive::Responsive;

/// An allocator without memory.
struct Empty;

// SAFETY: a null pointer reports a failed allocation, and no other pointer is ever returned.
unsafe impl GlobalAlloc for Empty {
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        core::ptr::null_mut()
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static MEMORY: Empty = Empty;

#[panic_handler]
fn halt(_: &PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}

/// A generator of evenly spaced numbers.
struct Steps(u64);

impl Random for Steps {
    fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0
    }
}

/// Returns the delay before the next retry of a call with this many attempts, in nanoseconds; −1 if
/// no retry is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn reattempt_next_delay(attempts: u32) -> i64 {
    let millisecond = Duration::from_millis(1);
    let schedule = Exponential::default()
        .then(Exponential::decorrelated(millisecond))
        .then(TruncatedExponential::default())
        .then(Linear::new(millisecond).immediate_first().jittered(Jitter::equal()))
        .then(Iterated::new(|| core::iter::repeat_n(Duration::ZERO, 3)))
        .then(List::ending([millisecond]))
        .then(Responsive::new().take(2))
        .then(Constant::new(millisecond).floor(millisecond).capped(millisecond).take(4));
    let schedule = SharedSchedule::new(schedule);

    let random = &mut Steps(0);
    let failure = Failure::new(FailureKind::Server).with_code(503);
    let mut call = Call::new(&schedule);
    (1..attempts).for_each(|_| call.on_send());
    let failed = FailedAttempt::new(Verdict::Transient(failure), "", Duration::ZERO)
        .sent_at(schedule.on_send());
    let terms = Terms::new(Limits::default());
    match call.failed(&terms, &failed, &schedule, &Unlimited, random) {
        Decision::Retry { after } => {
            call.on_send();
            i64::try_from(after.as_nanos()).unwrap_or(i64::MAX)
        }
        _ => -1,
    }
}

//! The thread that watches the file by comparing its content.
//!
//! Reading a small file takes a few microseconds. Unlike file system notifications, a comparison also detects changes
//! on network file systems, in mounted volumes and behind links. It needs no platform-specific code. The thread is
//! independent of async runtimes, so an overloaded or stopped runtime does not delay the kill switch.

use std::io;
use std::mem::discriminant;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::error::ErrorKind;
use crate::pause::Pause;

/// Starts the thread, which calls `look` after each interval until `look` returns `false` or the pause is ended.
pub(crate) fn start(
    interval: Duration,
    pause: Arc<Pause>,
    mut look: impl FnMut() -> bool + Send + 'static,
) -> io::Result<()> {
    let job = move || {
        // A panic in the program's callbacks must not end the watch. The panic hook has already reported it.
        while !pause.wait(interval) && catch_unwind(AssertUnwindSafe(&mut look)).unwrap_or(true) {}
    };
    std::thread::Builder::new().name("reattempt-policy-file".to_owned()).spawn(job).map(drop)
}

/// Content that was found once. It is used only if two consecutive reads find it, because a file that is being written
/// may be incomplete. The kill switch does not wait for the second read.
#[derive(Default)]
pub(crate) struct Settling(Option<Result<Vec<u8>, ErrorKind>>);

impl Settling {
    /// Returns the content if the previous read found it too. Known content is discarded.
    pub(crate) fn found(
        &mut self,
        content: Result<Vec<u8>, ErrorKind>,
        is_known: bool,
    ) -> Option<Result<Vec<u8>, ErrorKind>> {
        let before = self.0.take();
        if is_known {
            return None;
        }
        if before.is_some_and(|before| is_same(&before, &content)) {
            return Some(content);
        }
        self.0 = Some(content);
        None
    }
}

/// Returns `true` if two reads found the same content.
pub(crate) fn is_same(one: &Result<Vec<u8>, ErrorKind>, other: &Result<Vec<u8>, ErrorKind>) -> bool {
    match (one, other) {
        (Ok(one), Ok(other)) => one == other,
        (Err(one), Err(other)) => discriminant(one) == discriminant(other),
        _ => false,
    }
}

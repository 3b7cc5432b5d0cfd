//! A progress bar for whatever takes longer than a second, on a terminal only.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shows how far a command has come, on standard error.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    shown: bool,
}

impl Progress {
    /// Of this many steps none is done.
    pub(crate) fn new(steps: u64) -> Self {
        Self {
            bar: ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::hidden()),
            shown: false,
        }
    }

    /// One more step is done. Looks at the clock, so a step should be a millisecond or more.
    pub(crate) fn step(&mut self) {
        self.advance(1);
    }

    /// The same for small steps, numbered from 0: looks at the clock at every thousandth.
    pub(crate) fn step_of(&mut self, number: u32) {
        if number % 1000 == 999 {
            self.advance(1000);
        }
    }

    fn advance(&mut self, steps: u64) {
        self.bar.inc(steps);
        if !self.shown && self.bar.elapsed() > Duration::from_secs(1) {
            self.shown = true;
            // Where standard error is no terminal, this draws nothing.
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{bar:40} {percent:>3} %  {eta} left") {
                self.bar.set_style(style);
            }
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

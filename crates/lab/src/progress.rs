//! A progress bar for commands that take longer than a second, on a terminal only.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The progress of a command, shown on standard error.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    shown: bool,
}

impl Progress {
    /// Creates a bar of this many steps, none of them done.
    pub(crate) fn new(steps: u64) -> Self {
        Self { bar: ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::hidden()), shown: false }
    }

    /// Counts one step. It reads the clock, so a step should take a millisecond or more.
    pub(crate) fn step(&mut self) {
        self.advance(1);
    }

    /// Counts a small step, numbered from 0. It reads the clock only at every thousandth.
    pub(crate) fn step_of(&mut self, number: u32) {
        if number % 1000 == 999 {
            self.advance(1000);
        }
    }

    fn advance(&mut self, steps: u64) {
        self.bar.inc(steps);
        if !self.shown && self.bar.elapsed() > Duration::from_secs(1) {
            self.shown = true;
            // If standard error is no terminal, this draws nothing.
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

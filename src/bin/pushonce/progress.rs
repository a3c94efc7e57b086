//! What is under way, on stderr, if that is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// So that it is seen that the program is alive.
const TICK: Duration = Duration::from_millis(120);

/// A count that rises to nobody knows what, or to a known end.
#[derive(Debug)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Of so many, if that is known.
    pub(crate) fn of(total: Option<usize>, doing: &'static str) -> Self {
        let bar = match total {
            Some(total) => ProgressBar::new(total as u64),
            None => ProgressBar::new_spinner(),
        };
        let template = if total.is_some() {
            "{msg} {wide_bar} {human_pos} of {human_len}"
        } else {
            "{spinner} {msg} {human_pos}"
        };
        // The template is right, and its default would do too.
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = bar.with_style(style).with_message(doing);
        bar.enable_steady_tick(TICK);
        Self(bar)
    }

    pub(crate) fn add(&self, done: usize) {
        self.0.inc(done as u64);
    }

    /// Writes something else between.
    pub(crate) fn beside<T>(&self, write: impl FnOnce() -> T) -> T {
        self.0.suspend(write)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

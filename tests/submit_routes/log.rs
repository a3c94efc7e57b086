//! Everything that is logged by a test, as text.

use std::io;
use std::sync::{Arc, Mutex, OnceLock};

use tracing::subscriber::DefaultGuard;
use tracing::{Dispatch, Level};
use tracing_subscriber::fmt::MakeWriter;

/// The lines of this thread, of every level, as long as the guard lives.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    pub(crate) fn capture() -> (Self, DefaultGuard) {
        // With a single subscriber in the process, an event that is met first by a thread without one is
        // switched off for all threads. So there is always a second, which nobody reads.
        static SECOND: OnceLock<Dispatch> = OnceLock::new();
        SECOND.get_or_init(|| Self::default().dispatch());
        let log = Self::default();
        let guard = tracing::dispatcher::set_default(&log.dispatch());
        (log, guard)
    }

    fn dispatch(&self) -> Dispatch {
        let lines = tracing_subscriber::fmt().with_max_level(Level::TRACE).with_ansi(false);
        Dispatch::new(lines.with_writer(self.clone()).finish())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    /// The lines of that level.
    pub(crate) fn of(&self, level: Level) -> Vec<String> {
        let level = format!(" {level} ");
        self.text().lines().filter(|line| line.contains(&level)).map(str::to_owned).collect()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

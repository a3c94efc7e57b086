//! One store, one clock, and what a test asks of them.

use std::future::Future;
use std::io::Write;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use pushonce::store::record::{Receipt, State};
use pushonce::store::{Memory, Record, chaos::Chaos};
use pushonce::testing::TokioClock;
use pushonce::{AtMostOnce, Clock, Guarded, IntoKey, Lock, RunError, Store, at_most_once, lock, mutex};
use tracing::Dispatch;
use tracing_subscriber::fmt::MakeWriter;

pub(crate) const SECOND: Duration = Duration::from_secs(1);

pub(crate) const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) struct World {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) chaos: Arc<Chaos>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) memory: Arc<Memory>,
}

impl World {
    /// On tokio's clock, which the tests pause.
    pub(crate) fn new() -> Self {
        Self::on(Arc::new(TokioClock::new()))
    }

    pub(crate) fn on(clock: Arc<dyn Clock>) -> Self {
        let memory = Arc::new(Memory::with_clock(clock.clone()));
        let chaos = Chaos::new(memory.clone());
        Self { clock, store: chaos.clone(), chaos, memory }
    }

    pub(crate) fn lock(&self, key: impl IntoKey) -> Guarded<Lock> {
        lock(key, &self.store).clock(self.clock.clone())
    }

    pub(crate) fn mutex(&self, key: impl IntoKey) -> Guarded<pushonce::Mutex> {
        mutex(key, &self.store).clock(self.clock.clone())
    }

    pub(crate) fn at_most_once(&self, key: impl IntoKey) -> Guarded<AtMostOnce> {
        at_most_once(key, &self.store).clock(self.clock.clone())
    }

    /// What stands, past the faults.
    pub(crate) async fn record(&self, key: impl IntoKey) -> Option<Record> {
        let key = key.into_key().unwrap();
        self.memory.read(&key).await.unwrap().map(|stored| stored.record)
    }

    pub(crate) async fn state(&self, key: impl IntoKey) -> Option<State> {
        self.record(key).await.map(|record| record.state)
    }

    pub(crate) async fn receipt(&self, key: impl IntoKey) -> Receipt {
        self.record(key).await.unwrap().receipt.unwrap()
    }

    /// Waits, at most ten minutes of the test's time, until the key stands so.
    pub(crate) async fn until(&self, key: &str, state: State) {
        let there = async {
            while self.state(key).await != Some(state) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        if tokio::time::timeout(seconds(600), there).await.is_err() {
            panic!("{key} never became {state:?}: {:?}", self.record(key).await);
        }
    }
}

/// Counts runs of a work.
#[derive(Clone, Default)]
pub(crate) struct Runs(Arc<AtomicU32>);

impl Runs {
    pub(crate) fn count(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }

    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    /// A work that only counts.
    pub(crate) fn work(
        &self,
    ) -> impl Future<Output = Result<(), pushonce::store::BoxError>> + Send + 'static {
        let runs = self.clone();
        async move {
            runs.add();
            Ok(())
        }
    }
}

/// Work that takes so long and succeeds.
pub(crate) async fn slow(length: Duration) -> Result<(), pushonce::store::BoxError> {
    tokio::time::sleep(length).await;
    Ok(())
}

/// Runs the future until it has done what it can at this instant, and keeps it.
pub(crate) async fn begin<F: Future<Output: Send + 'static> + Send + 'static>(
    future: F,
) -> tokio::task::JoinHandle<F::Output> {
    let caller = tokio::spawn(future);
    // The shortest sleep that exists: paused time moves on only when nothing else is to be done.
    tokio::time::sleep(Duration::from_millis(1)).await;
    caller
}

/// The caller goes away.
pub(crate) async fn hang_up<T>(caller: tokio::task::JoinHandle<T>) {
    caller.abort();
    assert!(caller.await.is_err_and(|error| error.is_cancelled()), "the caller had its answer already");
}

/// A holder that crashes in its work: its process, that is its runtime, is gone before the work ended.
pub(crate) fn crash<F: Future<Output: Send> + Send + 'static>(until: F) {
    std::thread::spawn(|| {
        let process = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        process.unwrap().block_on(until);
    })
    .join()
    .unwrap();
}

/// The source of that type in the error's chain.
pub(crate) fn find<'a, E: std::error::Error + 'static>(
    error: &'a (dyn std::error::Error + 'static),
) -> Option<&'a E> {
    std::iter::successors(Some(error), |error| error.source()).find_map(|error| error.downcast_ref())
}

/// Whether the work was not started since the store failed.
pub(crate) fn is_unavailable<T>(result: &Result<T, RunError>) -> bool {
    matches!(result, Err(RunError::Store(error)) if error.is_transient())
}

/// What is logged in this thread while it lives.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    pub(crate) fn capture() -> (Self, tracing::subscriber::DefaultGuard) {
        // With a single subscriber in the process, an event that is met first by a thread without one is
        // switched off for all threads. So there is always a second, which writes to nobody.
        static SECOND: OnceLock<Dispatch> = OnceLock::new();
        SECOND.get_or_init(|| Dispatch::new(tracing_subscriber::fmt().with_writer(std::io::sink).finish()));
        let log = Self::default();
        let subscriber = tracing_subscriber::fmt().with_writer(log.clone()).with_ansi(false).finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    /// The lines of one event.
    pub(crate) fn event(&self, name: &str) -> Vec<String> {
        self.lines(&format!("event=\"{name}\""))
    }

    /// The lines that say that.
    pub(crate) fn lines(&self, that: &str) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().filter(|line| line.contains(that)).map(str::to_owned).collect()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

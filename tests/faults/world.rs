//! What the tests look at: the record that stands, and who ran.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use pushonce::store::Stored;
use pushonce::store::record::State;
use pushonce::{IntoKey, Key, Lease, RunError, Skip, Store, lock};

/// For what must come about, on a machine that may be busy with other tests.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);

/// Parts of the document, by which a write is known on its way.
pub(crate) const CLAIMED: &str = r#""state":"claimed""#;
pub(crate) const DONE: &str = r#""state":"done""#;

pub(crate) fn key(text: impl AsRef<str>) -> Key {
    ("orders", text).into_key().unwrap()
}

/// Waits until the condition brings something.
pub(crate) async fn eventually<T>(what: &str, mut condition: impl AsyncFnMut() -> Option<T>) -> T {
    let comes = async {
        loop {
            if let Some(found) = condition().await {
                return found;
            }
            tokio::time::sleep(POLL).await;
        }
    };
    tokio::time::timeout(PATIENCE, comes).await.unwrap_or_else(|_| panic!("waited in vain until {what}"))
}

/// A connection may be found broken first.
pub(crate) async fn standing(store: &Arc<dyn Store>, key: &Key) -> Stored {
    let read = async {
        loop {
            match store.read(key).await {
                Ok(read) => return read,
                Err(error) => assert!(error.is_transient(), "{error:?}"),
            }
            tokio::time::sleep(POLL).await;
        }
    };
    let read = tokio::time::timeout(PATIENCE, read).await.expect("a read is answered");
    read.expect("a record stands under the key")
}

/// Waits until the key is in that state: what was to be stored may still be on its way.
pub(crate) async fn settled(store: &Arc<dyn Store>, key: &Key, state: State) -> Stored {
    let what = format!("{key} is {state:?}");
    let found = async || store.read(key).await.ok().flatten().filter(|stored| stored.record.state == state);
    eventually(&what, found).await
}

/// Recorded once, under that fence, and skipped from then on.
pub(crate) async fn assert_done(store: &Arc<dyn Store>, key: &Key, fence: u64) {
    assert_eq!(settled(store, key, State::Done).await.record.fence, fence);
    // A process that has not yet learned that its completion was stored says so, and claims nothing.
    let duplicate = async || match lock(key, store).run(async { Ok(()) }).await {
        Err(RunError::Skipped(Skip::Duplicate { .. })) => Some(()),
        Err(RunError::Store(error)) if error.is_transient() => None,
        again => panic!("{again:?}"),
    };
    eventually("a duplicate is skipped", duplicate).await;
}

/// Counts runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Runs(Arc<AtomicU32>);

impl Runs {
    pub(crate) fn count(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }

    /// The work: it counts its run, and the store must agree on whose claim it is.
    pub(crate) async fn run(self, store: Arc<dyn Store>, lease: Lease) {
        self.0.fetch_add(1, Ordering::SeqCst);
        let held = standing(&store, lease.key()).await.record;
        assert_eq!((held.state, held.fence), (State::Claimed, lease.fence()));
    }
}

//! The one builder of the three verbs: settings, then `run`.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use super::guard;
use super::plan::Plan;
use super::settings::Settings;
use super::told::OnUncertain;
use super::unless_done;
use crate::key::{InvalidKey, Key};
use crate::lease::{Lease, Misuse, Note, Place, RunError};
use crate::store::{BoxError, Store};
use crate::time::{Clock, system_clock};

/// Marks a [`Guarded`] of [`lock`](super::lock).
#[derive(Debug, Clone, Copy)]
pub enum Lock {}
/// Marks a [`Guarded`] of [`mutex`](super::mutex).
#[derive(Debug, Clone, Copy)]
pub enum Mutex {}
/// Marks a [`Guarded`] of [`at_most_once`](super::at_most_once).
#[derive(Debug, Clone, Copy)]
pub enum AtMostOnce {}

mod sealed {
    use crate::store::record::Verb;

    pub trait Named {
        const VERB: Verb;
    }

    impl Named for super::Lock {
        const VERB: Verb = Verb::Lock;
    }
    impl Named for super::Mutex {
        const VERB: Verb = Verb::Mutex;
    }
    impl Named for super::AtMostOnce {
        const VERB: Verb = Verb::AtMostOnce;
    }
}

/// The verbs whose keys become done, and so have a ttl.
pub trait Recorded: sealed::Named {}
impl Recorded for Lock {}
impl Recorded for AtMostOnce {}

/// A key, a store and settings: what [`lock`](super::lock), [`mutex`](super::mutex) and
/// [`at_most_once`](super::at_most_once) give. Nothing happens before `run`.
///
/// Claim, wait, work and settling outlive their caller: when the future that `run` returned is
/// dropped, the work still ends and is recorded, and [`drain`](crate::drain) waits for it. While that
/// future is kept it has to be awaited: nobody else drives the work, or renews its lease. The work
/// must not need task-locals of its caller, which are gone when the caller is.
#[must_use = "nothing happens before `run`"]
pub struct Guarded<V> {
    key: Result<Key, InvalidKey>,
    store: Arc<dyn Store>,
    settings: Settings,
    clock: Arc<dyn Clock>,
    on_uncertain: Option<OnUncertain>,
    verb: PhantomData<V>,
}

impl<V> fmt::Debug for Guarded<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guarded")
            .field("key", &self.key)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl<V: sealed::Named> Guarded<V> {
    pub(super) fn new(key: Result<Key, InvalidKey>, store: &Arc<dyn Store>) -> Self {
        let settings = Settings::new(V::VERB);
        Self {
            key,
            store: store.clone(),
            settings,
            clock: system_clock(),
            on_uncertain: None,
            verb: PhantomData,
        }
    }

    /// How long the claim excludes others: longer than the work can take. Default 15 minutes.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.settings.lease = lease;
        self
    }

    /// Renews the lease every third of it while the work runs, at most for
    /// [`max_hold`](Self::max_hold): a short lease will then do, and a crash frees the key soon.
    pub fn renew(mut self) -> Self {
        self.settings.renew = true;
        self
    }

    /// The most that renewal holds a key, whatever the work does. Default 60 minutes.
    pub fn max_hold(mut self, limit: Duration) -> Self {
        self.settings.max_hold = limit;
        self
    }

    /// Cancels the work after this time. Its key is left to lapse, since what the work started may
    /// go on, unless it is [`cancel_safe`](Self::cancel_safe). Off by default.
    pub fn work_timeout(mut self, limit: Duration) -> Self {
        self.settings.work_timeout = Some(limit);
        self
    }

    /// Declares that dropping the work's future stops all that it does: a cancelled key is then
    /// released at once instead of left to lapse.
    pub fn cancel_safe(mut self) -> Self {
        self.settings.cancel_safe = true;
        self
    }

    /// Waits at most this long for a live holder. Default: 5 seconds for a mutex, else none. The
    /// wait holds no connection and ends when the caller goes.
    pub fn wait(mut self, most: Duration) -> Self {
        self.settings.wait = most;
        self
    }

    /// Counts the lease by another clock: for tests.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Is told of a key whose work succeeded although nobody recorded it. A panic in it changes nothing.
    pub fn on_uncertain(mut self, hook: impl Fn(&Key) + Send + Sync + 'static) -> Self {
        self.on_uncertain = Some(Arc::new(hook));
        self
    }

    async fn guarded<T, F, W>(self, work: F) -> Result<T, RunError>
    where
        T: Send + 'static,
        F: FnOnce(Lease) -> W + Send + 'static,
        W: Future<Output = Result<T, BoxError>> + Send + 'static,
    {
        let key = self.key.map_err(RunError::Key)?;
        self.settings.checked().map_err(|setting| RunError::Misuse(Misuse::Setting(setting.to_string())))?;
        let place = Arc::new(Place { store: self.store, key, clock: self.clock });
        let plan = Plan { place, settings: self.settings, digest: None, note: Note::default(), entity: None };
        guard::run(plan, self.on_uncertain, work).await.map(|ran| ran.value)
    }
}

impl<V: Recorded> Guarded<V> {
    /// How long a recorded key skips duplicates. Default 7 days, as long as Pub/Sub keeps a message.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.settings.ttl = ttl;
        self
    }
}

// One text for three impls that differ in what they return.
macro_rules! runs {
    ($verb:ty, $value:ty, $map:expr) => {
        impl Guarded<$verb> {
            /// Runs the work under the key. `?` takes any error inside of it; a future with another
            /// error type is wrapped: `async { Ok(f().await?) }`.
            ///
            /// # Errors
            /// [`RunError`]; each variant says whether the work was started and what to do. Work
            /// that succeeded is never an error, also when it could not be recorded.
            pub async fn run<T, W>(self, work: W) -> Result<$value, RunError>
            where
                T: Send + 'static,
                W: Future<Output = Result<T, BoxError>> + Send + 'static,
            {
                // Boxed, or each level of nesting would multiply the size of the caller's future.
                let work = Box::pin(work);
                self.run_with(move |_| work).await
            }

            /// The same, for work that looks at its [`Lease`]: fence, history, effect ids.
            ///
            /// # Errors
            /// As [`run`](Self::run).
            pub async fn run_with<T, F, W>(self, work: F) -> Result<$value, RunError>
            where
                T: Send + 'static,
                F: FnOnce(Lease) -> W + Send + 'static,
                W: Future<Output = Result<T, BoxError>> + Send + 'static,
            {
                let work = Box::new(work);
                ($map)(self.guarded(work).await)
            }
        }
    };
}

runs!(Lock, T, |ran| ran);
runs!(Mutex, T, |ran| ran);
runs!(AtMostOnce, Option<T>, unless_done);

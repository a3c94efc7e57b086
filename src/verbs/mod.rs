//! The verbs: `lock` (once), `mutex` (one at a time), `at_most_once` (marked before it runs).
//!
//! | | [`lock`] | [`mutex`] | [`at_most_once`] |
//! |---|---|---|---|
//! | the work succeeded | recorded; skipped until the ttl has passed | released; the next one runs | recorded |
//! | the work failed or crashed | runs again | runs again | never runs again |
//! | a later message on the key | [`Skip::Duplicate`] | runs | `Ok(None)` |
//! | a concurrent message on the key | [`Skip::InProgress`] | waits up to 5 s, then `InProgress` | `Ok(None)` |
//! | meant for | "this message, this order: once" | "these messages of an order: one at a time" | "better lost than twice" |

mod admit;
pub(crate) mod guard;
mod guarded;
mod pending;
pub(crate) mod plan;
pub(crate) mod reject;
mod settings;
mod settle;
mod told;
mod transaction;
pub(crate) mod watch;

use std::sync::Arc;

pub use self::guarded::{AtMostOnce, Guarded, Lock, Mutex, Recorded};
pub use self::settings::{DEFAULT_LEASE, DEFAULT_TTL, InvalidSetting};
pub(crate) use self::settings::{MUTEX_WAIT, Settings, wait_checked};
use crate::key::IntoKey;
use crate::lease::{RunError, Skip};
use crate::store::Store;

/// De-duplicates: once the work is recorded, the key is skipped until its ttl has passed. Work that
/// failed, or whose holder crashed, runs again.
///
/// ```
/// # use std::sync::Arc;
/// use pushonce::{RunError, Skip, Store, lock, store::Memory};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), RunError> {
/// let store: Arc<dyn Store> = Arc::new(Memory::new());
/// let sent = lock(("orders", "po-123"), &store).run(async { Ok("sent") }).await?;
/// assert_eq!(sent, "sent");
///
/// let again = lock(("orders", "po-123"), &store).run(async { Ok("sent") }).await;
/// assert!(matches!(again, Err(RunError::Skipped(Skip::Duplicate { .. }))));
/// # Ok(()) }
/// ```
pub fn lock(key: impl IntoKey, store: &Arc<dyn Store>) -> Guarded<Lock> {
    Guarded::new(key.into_key(), store)
}

/// Serializes: whatever succeeds or fails, the key is released and the next one runs. Exclusion, not order.
///
/// ```
/// # use std::sync::Arc;
/// use pushonce::{RunError, Store, mutex, store::Memory};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), RunError> {
/// let store: Arc<dyn Store> = Arc::new(Memory::new());
/// for status in ["packed", "shipped"] {
///     mutex(("orders", "po-123"), &store).run(async move { Ok(status) }).await?;
/// }
/// # Ok(()) }
/// ```
pub fn mutex(key: impl IntoKey, store: &Arc<dyn Store>) -> Guarded<Mutex> {
    Guarded::new(key.into_key(), store)
}

/// Marks the key before the work runs, and never runs it again: for effects that are better lost
/// than repeated. `Ok(None)` means that it was marked before. Work that fails, or crashes, is lost.
///
/// ```
/// # use std::sync::Arc;
/// use pushonce::{RunError, Store, at_most_once, store::Memory};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), RunError> {
/// let store: Arc<dyn Store> = Arc::new(Memory::new());
/// assert_eq!(at_most_once("mail-7", &store).run(async { Ok("mailed") }).await?, Some("mailed"));
/// assert_eq!(at_most_once("mail-7", &store).run(async { Ok("mailed") }).await?, None);
/// # Ok(()) }
/// ```
pub fn at_most_once(key: impl IntoKey, store: &Arc<dyn Store>) -> Guarded<AtMostOnce> {
    Guarded::new(key.into_key(), store)
}

/// "Done before: go on." Makes `Ok(None)` of a duplicate, for a [`lock`] that guards one step of more.
///
/// Under the layer a bare `?` on such a lock fails the delivery (500) once the step is done, since an
/// ack would lose what follows the step.
///
/// ```
/// # use std::sync::Arc;
/// use pushonce::{RunError, Store, lock, store::Memory, unless_done};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), RunError> {
/// # let store: Arc<dyn Store> = Arc::new(Memory::new());
/// let mail = || lock(("mail", "po-123"), &store).run(async { Ok("mailed") });
/// assert_eq!(unless_done(mail().await)?, Some("mailed"));
/// assert_eq!(unless_done(mail().await)?, None);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Every other [`RunError`], as it was.
pub fn unless_done<T>(ran: Result<T, RunError>) -> Result<Option<T>, RunError> {
    match ran {
        Ok(value) => Ok(Some(value)),
        Err(RunError::Skipped(Skip::Duplicate { .. })) => Ok(None),
        Err(error) => Err(error),
    }
}

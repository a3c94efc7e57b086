//! Completions that are not stored yet: their keys are known to be done, so no claim of this process may take them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use crate::key::Key;
use crate::lease::Place;

type Keys = HashMap<(usize, Key), usize>;

static PENDING: LazyLock<Mutex<Keys>> = LazyLock::new(Mutex::default);
/// How many there are, so that a claim need not lock to learn that there is none, as nearly always.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// A key whose completion is under way, for as long as this lives.
#[derive(Debug)]
pub(super) struct Pending((usize, Key));

impl Pending {
    pub(super) fn begin(place: &Place) -> Self {
        let name = name(place);
        *keys().entry(name.clone()).or_default() += 1;
        COUNT.fetch_add(1, Ordering::Release);
        Self(name)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        COUNT.fetch_sub(1, Ordering::Release);
        let mut keys = keys();
        if let Some(count) = keys.get_mut(&self.0) {
            *count -= 1;
            if *count == 0 {
                keys.remove(&self.0);
            }
        }
    }
}

pub(super) fn is_pending(place: &Place) -> bool {
    COUNT.load(Ordering::Acquire) > 0 && keys().contains_key(&name(place))
}

/// One store of this process, by its address, and a key of it.
fn name(place: &Place) -> (usize, Key) {
    (Arc::as_ptr(&place.store).cast::<()>() as usize, place.key.clone())
}

fn keys() -> MutexGuard<'static, Keys> {
    PENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

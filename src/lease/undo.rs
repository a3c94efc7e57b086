//! Undoing an abandoned claim, in the background: by a write on the same condition, never by a look-up alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::machine::{self, Ask, Op};
use super::planted::{Fault, planted};
use super::{Claim, Place, pause};
use crate::store::{Standing, StoreError, Stored, Swap};
use crate::task;
use crate::time::Stopwatch;

/// How many undos may be under way. Over it no claim is begun.
const LIMIT: usize = 1024;
static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);

/// Whether another claim may be begun that might have to be undone.
pub(crate) fn room() -> bool {
    UNDER_WAY.load(Ordering::Relaxed) < LIMIT
}

/// Gives a claim back whose work never began.
pub(super) fn give_back(claim: &Claim) {
    let mut claim = claim.twin();
    in_background(async move {
        let op = Op::Undo(claim.found.clone());
        let (began, lease) = (Stopwatch::start(&claim.place.clock), claim.record.lease);
        for tries in (0..).take_while(|_| began.steady() < lease) {
            if claim.write(&op).await.is_ok() {
                return;
            }
            pause(tries).await;
        }
    });
}

/// Makes a claim impossible that was sent on `condition` and may still land, or gives it back if it has.
pub(super) fn forestall(place: Arc<Place>, ask: Ask, condition: Option<Box<Stored>>) {
    in_background(async move {
        let began = Stopwatch::start(&place.clock);
        // A claim that lands after that heals by lapsing. Steadily counted: a wall clock that is set
        // forward must not end it, since a mark that lands then would stand for its whole ttl.
        for tries in (0..).take_while(|_| began.steady() < ask.lease) {
            if let Ok(true) = forestalled(&place, &ask, condition.as_deref()).await {
                return;
            }
            pause(tries).await;
        }
    });
}

/// One try: whether the claim can land no more and does not stand.
async fn forestalled(place: &Arc<Place>, ask: &Ask, condition: Option<&Stored>) -> Result<bool, StoreError> {
    let version = condition.map(|stored| &stored.version);
    let standing = if planted(Fault::LookUpOnly) {
        place.read().await?
    } else {
        let next = machine::forestall(ask, condition, place.stamp());
        match place.swap(version, &next).await? {
            Swap::Written(_) => return Ok(true),
            Swap::Lost(Standing::Is(stored)) => Some(*stored),
            Swap::Lost(Standing::Absent) => None,
            Swap::Lost(Standing::Unknown) => place.read().await?,
        }
    };
    match standing {
        Some(stored) if stored.record.holder == Some(ask.holder) => {
            let mut claim = Claim {
                place: place.clone(),
                me: ask.holder,
                fence: stored.record.fence,
                record: Box::new(stored.record),
                version: stored.version,
                found: condition.and_then(|stored| stored.record.receipt.clone()),
                since: Stopwatch::start(&place.clock),
                idle: false,
            };
            let op = Op::Undo(claim.found.clone());
            claim.write(&op).await.map(|_| true)
        }
        standing => {
            Ok(planted(Fault::LookUpOnly) || standing.as_ref().map(|stored| &stored.version) != version)
        }
    }
}

/// Runs an undo on the tracker. Outside of a runtime, as a process ends, the lease lapses by itself.
fn in_background(undo: impl Future<Output = ()> + Send + 'static) {
    if tokio::runtime::Handle::try_current().is_ok() && !planted(Fault::NoUndo) {
        let slot = Slot::take();
        task::spawn(async move {
            undo.await;
            drop(slot);
        });
    }
}

struct Slot(());

impl Slot {
    fn take() -> Self {
        UNDER_WAY.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        UNDER_WAY.fetch_sub(1, Ordering::Relaxed);
    }
}

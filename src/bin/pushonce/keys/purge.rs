//! `pushonce keys purge`.

use serde_json::json;

use crate::list::Limit;
use crate::output::answer;
use crate::place::{Place, again};
use crate::progress::Progress;
use crate::{Answer, Failed};

/// How many records one call deletes, so that it is seen how it goes on.
const BATCH: usize = 1000;

pub(super) async fn purge(place: &Place, limit: &Limit) -> Result<Answer, Failed> {
    let store = place.open()?;
    let limit = limit.most();
    let mut purged = 0;
    let progress = Progress::of(None, "deleted");
    while purged < limit {
        let left = limit - purged;
        let deleted = if place.bills_looks() {
            // Each call would begin at the first record again, and may take its time.
            store.purge_expired(left).await?
        } else {
            again(async || store.purge_expired(left.min(BATCH)).await).await?
        };
        purged += deleted;
        progress.add(deleted);
        if deleted == 0 || place.bills_looks() {
            break;
        }
    }
    drop(progress);
    answer(place.json, &json!({ "purged": purged }), || format!("Deleted: {purged}.\n"), false)
}

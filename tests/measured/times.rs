//! What the times say, on a clock that stands still unless it is moved.

use std::sync::Arc;
use std::time::Duration;

use pushonce::testing::ManualClock;
use pushonce::{Store, lock, store::Memory};

use crate::samples::{listen, sample};

#[tokio::test]
async fn work_and_what_is_left_of_the_lease_are_told_in_seconds() {
    listen();
    let clock = ManualClock::new();
    let store: Arc<dyn Store> = Arc::new(Memory::with_clock(Arc::new(clock.clone())));
    for (text, takes, lease) in [("a", 40, 60), ("b", 90, 60)] {
        let moved = clock.clone();
        let guard =
            lock(("timed", text), &store).lease(Duration::from_secs(lease)).clock(Arc::new(clock.clone()));
        let work = async move {
            moved.advance(Duration::from_secs(takes));
            Ok(())
        };
        guard.run(work).await.unwrap();
    }
    let sum = |metric: &str| sample(&format!("pushonce_{metric}_seconds_sum"), &[("consumer", "timed")]);
    assert_eq!(["claim", "work", "complete", "lease_left"].map(sum), [0.0, 130.0, 0.0, 20.0]);
    let lapsed = [("consumer", "timed"), ("le", "0")];
    assert_eq!(sample("pushonce_lease_left_seconds_bucket", &lapsed), 1.0);
    // As a histogram, not as a summary, with the bounds that are documented.
    for (bound, count) in [("30", 0.0), ("60", 1.0), ("120", 2.0), ("+Inf", 2.0)] {
        let labels = [("consumer", "timed"), ("le", bound)];
        assert_eq!(sample("pushonce_work_seconds_bucket", &labels), count, "{bound}");
    }
}

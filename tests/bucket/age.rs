//! The age of an object: never more than has passed, whosever clock is wrong.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use object_store::ObjectStoreExt as _;
use object_store::memory::InMemory;
use pushonce::store::Bucket;
use pushonce::{Clock, RunError, Skip, Store as _, lock};

use crate::s3::{S3, name};
use crate::{key, record, report, shared, standing, written};

const HOUR: Duration = Duration::from_secs(60 * 60);
/// What the documentation says: the margin, and the second that the time of an object is coarse.
const LATE: Duration = Duration::from_secs(6);

/// A wall clock that shows what it is set to.
#[derive(Debug, Clone)]
struct Set(Arc<Mutex<SystemTime>>);

impl Set {
    fn to(time: SystemTime) -> Self {
        Self(Arc::new(Mutex::new(time)))
    }

    fn show(&self, time: SystemTime) {
        *self.0.lock().unwrap() = time;
    }
}

impl Clock for Set {
    fn wall(&self) -> SystemTime {
        *self.0.lock().unwrap()
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

/// A wall clock that is that much ahead of the machine's, or behind it.
#[derive(Debug)]
struct Wrong {
    ahead: Duration,
    behind: Duration,
}

impl Clock for Wrong {
    fn wall(&self) -> SystemTime {
        SystemTime::now() + self.ahead - self.behind
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

#[tokio::test]
async fn a_key_is_taken_over_at_its_lease_and_the_margin_and_not_before() {
    let objects = Arc::new(InMemory::new());
    let clock = Set::to(SystemTime::now());
    let store = Bucket::builder(objects.clone()).clock(Arc::new(clock.clone())).build().unwrap();
    let lease = Duration::from_secs(30);
    let crashes = lock(key("po-1"), &shared_twin(&objects, &clock))
        .lease(lease)
        .work_timeout(Duration::from_millis(1))
        .run::<(), _>(std::future::pending());
    crashes.await.unwrap_err();
    let modified = objects.head(&name("pushonce", &key("po-1"))).await.unwrap().last_modified;
    let at = |since: Duration| clock.show(SystemTime::from(modified) + since);
    for (since, age) in [
        (Duration::ZERO, Duration::ZERO),
        (LATE, Duration::ZERO),
        (LATE + Duration::from_secs(4), Duration::from_secs(4)),
        (LATE + lease, lease),
    ] {
        at(since);
        assert_eq!(standing(&store, &key("po-1")).await.age, age, "{since:?}");
    }
    // By a clock that shows an earlier time than the object's.
    clock.show(SystemTime::from(modified) - HOUR);
    assert_eq!(standing(&store, &key("po-1")).await.age, Duration::ZERO);

    let store = shared(store);
    let take_over = || lock(key("po-1"), &store).run(async { Ok(()) });
    at(LATE + lease - Duration::from_millis(1));
    let early = take_over().await;
    assert!(matches!(early, Err(RunError::Skipped(Skip::InProgress { .. }))), "{early:?}");
    at(LATE + lease);
    take_over().await.unwrap();
    report::test("object-store-memory", "a_key_is_taken_over_at_its_lease_and_the_margin_and_not_before");
}

/// Another store over the same objects.
fn shared_twin(objects: &Arc<InMemory>, clock: &Set) -> Arc<dyn pushonce::Store> {
    shared(Bucket::builder(objects.clone()).clock(Arc::new(clock.clone())).build().unwrap())
}

#[tokio::test]
async fn a_client_whose_clock_is_wrong_takes_no_live_key_over() {
    let s3 = S3::start().await;
    let seen = written(s3.store().swap(&key("po-1"), None, &record(1)).await.unwrap());
    for (ahead, behind) in [(HOUR, Duration::ZERO), (Duration::ZERO, HOUR)] {
        let clock = Arc::new(Wrong { ahead, behind });
        let store = s3.builder(&s3.host).clock(clock).build().unwrap();
        let age = standing(&store, &key("po-1")).await.age;
        assert!(age < HOUR / 2, "by a clock {ahead:?} ahead and {behind:?} behind it is {age:?} old");
        let store = shared(store);
        let holder = lock(key("live"), &shared(s3.store())).run({
            let store = store.clone();
            async move {
                let other = lock(key("live"), &store).run(async { Ok(()) }).await;
                assert!(matches!(other, Err(RunError::Skipped(Skip::InProgress { .. }))), "{other:?}");
                Ok(())
            }
        });
        holder.await.unwrap();
        s3.delete(&key("live")).await;
    }
    assert_eq!(standing(&s3.store(), &key("po-1")).await.version, seen);
    report::test("s3", "a_client_whose_clock_is_wrong_takes_no_live_key_over");
}

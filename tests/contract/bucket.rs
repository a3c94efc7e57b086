//! Object storage: a real S3 server, which `PUSHONCE_TEST_S3` names, the library's store in memory, and our
//! fake of Google Cloud Storage.

use std::sync::Arc;
use std::time::Duration;

use object_store::ObjectStoreExt as _;
use object_store::memory::InMemory;
use pushonce::contract::{Law, Subject};
use pushonce::store::{BoxFuture, Bucket, Maintain};
use pushonce::{Key, Store};

use crate::fake_gcs::{self, FakeGcs};
use crate::report;
use crate::s3::{S3, name};

/// How long the fake takes no second write here: a quarter of what the service needs, since laws write keys
/// often. What a whole second means is tested elsewhere.
const PACE: Duration = Duration::from_millis(250);
/// Of an age: the second that is taken off it for the time of an object, and a little for the machine.
const GRAIN: Duration = Duration::from_millis(1100);

#[derive(Debug)]
enum Server {
    S3(S3),
    Memory(Arc<InMemory>),
    FakeGcs(FakeGcs),
}

struct OnBucket {
    server: Server,
    store: Arc<Bucket>,
    space: Option<&'static str>,
}

impl OnBucket {
    async fn s3() -> Self {
        let s3 = S3::start().await;
        let store = Arc::new(s3.store());
        Self { server: Server::S3(s3), store, space: None }
    }

    fn memory() -> Self {
        let objects = Arc::new(InMemory::new());
        let builder = Bucket::builder(objects.clone()).prefix("laws");
        let store = Arc::new(builder.clock_margin(Duration::ZERO).build().unwrap());
        Self { server: Server::Memory(objects), store, space: None }
    }

    async fn fake_gcs() -> Self {
        let fake = FakeGcs::with_pace(PACE).await;
        let builder = Bucket::gcs(fake_gcs::client(&fake.host())).prefix("laws");
        let store = Arc::new(builder.clock_margin(Duration::ZERO).build().unwrap());
        Self { server: Server::FakeGcs(fake), store, space: None }
    }

    /// The same in a key space whose objects have places of their own.
    fn within(self, space: &'static str) -> Self {
        Self { space: Some(space), ..self }
    }
}

impl Subject for OnBucket {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    fn forget<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            match &self.server {
                Server::S3(s3) => s3.delete(key).await,
                Server::Memory(objects) => objects.delete(&name("laws", key)).await.unwrap(),
                Server::FakeGcs(fake) => fake.delete(name("laws", key).as_ref()),
            }
        })
    }

    fn maintained(&self) -> Option<Arc<dyn Maintain>> {
        Some(self.store.clone())
    }

    fn space(&self) -> Option<&'static str> {
        self.space
    }

    fn pace(&self) -> Duration {
        if let Server::FakeGcs(_) = self.server { PACE } else { Duration::ZERO }
    }

    // Laws that write a key again within its lease have to find it live after a pace of the fake.
    fn short(&self) -> Duration {
        if let Server::FakeGcs(_) = self.server { PACE * 4 } else { Duration::from_millis(600) }
    }

    fn grain(&self) -> Duration {
        GRAIN
    }

    fn passed(&self, law: &Law) {
        let server = match self.server {
            Server::S3(_) => "s3",
            Server::Memory(_) => "object-store-memory",
            Server::FakeGcs(_) => "fake-gcs",
        };
        report::law(server, law.name());
    }
}

mod s3 {
    use super::OnBucket;

    pushonce::contract!(OnBucket::s3().await);
}

mod s3_idempotency_keys {
    use super::OnBucket;

    pushonce::contract!(OnBucket::s3().await.within("idempotency"));
}

mod s3_tasks {
    use super::OnBucket;

    pushonce::contract!(OnBucket::s3().await.within("tasks"));
}

mod object_store_memory {
    use super::OnBucket;

    pushonce::contract!(OnBucket::memory());
}

mod object_store_memory_idempotency_keys {
    use super::OnBucket;

    pushonce::contract!(OnBucket::memory().within("idempotency"));
}

mod object_store_memory_tasks {
    use super::OnBucket;

    pushonce::contract!(OnBucket::memory().within("tasks"));
}

mod fake_gcs_server {
    use super::OnBucket;

    pushonce::contract!(OnBucket::fake_gcs().await);
}

mod fake_gcs_server_idempotency_keys {
    use super::OnBucket;

    pushonce::contract!(OnBucket::fake_gcs().await.within("idempotency"));
}

mod fake_gcs_server_tasks {
    use super::OnBucket;

    pushonce::contract!(OnBucket::fake_gcs().await.within("tasks"));
}

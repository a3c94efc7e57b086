//! Redis, single.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use pushonce::contract::{Law, Subject};
use pushonce::store::{BoxFuture, Redis};
use pushonce::{Key, Store};

use crate::report;

struct Single {
    url: String,
    prefix: String,
    store: Arc<Redis>,
}

impl Single {
    fn new() -> Self {
        let url = std::env::var("PUSHONCE_TEST_REDIS").unwrap();
        let prefix = format!("t-{:016x}", RandomState::new().hash_one(0));
        let store = Arc::new(Redis::builder(&url).prefix(&prefix).build().unwrap());
        Self { url, prefix, store }
    }
}

impl Subject for Single {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    fn forget<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let client = redis::Client::open(&*self.url).unwrap();
            let mut connection = client.get_multiplexed_async_connection().await.unwrap();
            let name = key.stored_name(256);
            let name = format!("{}:{{{}}}{}", self.prefix, &name[..4], &name[4..]);
            redis::cmd("DEL").arg(name).exec_async(&mut connection).await.unwrap();
        })
    }

    fn tells_what_stands(&self) -> bool {
        true
    }

    fn passed(&self, law: &Law) {
        report::law("redis", law.name());
    }
}

mod single {
    use super::Single;

    pushonce::contract!(Single::new());
}

//! Redis: the server that `PUSHONCE_TEST_REDIS` names, a replica that was promoted, and a cluster of three.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, OnceLock};

use pushonce::contract::{LAWS, Law, Subject, Tells, Waiver};
use pushonce::store::{BoxFuture, Maintain, Redis};
use pushonce::{IntoKey, Key, Store};
use tokio::runtime::Runtime;

use crate::forwarder::Forwarder;
use crate::redis_server::{RedisCluster, RedisServer};
use crate::{report, waivers};

struct OnRedis {
    server: &'static str,
    store: Arc<Redis>,
    past: Past,
}

/// The way to the same records past the store.
struct Past {
    url: String,
    prefix: String,
}

impl Past {
    fn of(url: impl Into<String>) -> Self {
        Self { url: url.into(), prefix: format!("t-{:016x}", RandomState::new().hash_one(0)) }
    }

    async fn delete(&self, key: &Key) {
        let (digits_and_key, cluster) = (key.stored_name(256), self.url.contains("cluster=true"));
        let (digits, rest) = digits_and_key.split_at(4);
        let mut delete = redis::cmd("DEL");
        delete.arg(format!("{}:{{{digits}}}{rest}", self.prefix));
        if cluster {
            let client = redis::cluster::ClusterClient::new([&*self.url]).unwrap();
            delete.exec_async(&mut client.get_async_connection().await.unwrap()).await.unwrap();
        } else {
            let client = redis::Client::open(&*self.url).unwrap();
            delete.exec_async(&mut client.get_multiplexed_async_connection().await.unwrap()).await.unwrap();
        }
    }
}

impl OnRedis {
    fn at(server: &'static str, url: String) -> Self {
        let past = Past::of(url);
        let store = Arc::new(Redis::builder(&past.url).prefix(&past.prefix).build().unwrap());
        Self { server, store, past }
    }

    fn single() -> Self {
        let url = std::env::var("PUSHONCE_TEST_REDIS").ok().filter(|url| !url.is_empty());
        Self::at(
            "redis",
            url.expect("set PUSHONCE_TEST_REDIS=redis://host:port of a server that does not evict"),
        )
    }

    fn cluster() -> Self {
        static CLUSTER: OnceLock<RedisCluster> = OnceLock::new();
        Self::at("redis-cluster", CLUSTER.get_or_init(RedisCluster::start).url())
    }

    /// A store that wrote on the primary that there was before, and finds the promoted replica when it is used.
    async fn promoted() -> Self {
        static FAILOVER: OnceLock<Failover> = OnceLock::new();
        // On a thread of its own, since a runtime blocks on none other.
        let failover = FAILOVER.get_or_init(|| std::thread::spawn(Failover::start).join().unwrap());
        let connected = failover.connected.lock().unwrap().pop();
        let Connected { store, past, .. } = connected.expect("one store for each law");
        // The connection that it has leads to the old primary, which is a replica now: nothing of it is believed.
        let error = store.read(&before()).await.unwrap_err();
        assert!(error.is_transient() && error.to_string().contains("READONLY"), "{error}");
        let stands = store.read(&before()).await.unwrap();
        assert!(stands.is_some(), "what was written before the failover is there after it");
        Self { server: "redis-failover", store, past }
    }
}

fn before() -> Key {
    "written before the failover".into_key().unwrap()
}

/// A primary that has failed over to its replica, and stores that were connected before.
struct Failover {
    _servers: [RedisServer; 2],
    /// On which the connections from before go on.
    _runtime: Runtime,
    connected: Mutex<Vec<Connected>>,
}

struct Connected {
    store: Arc<Redis>,
    past: Past,
    _endpoint: Forwarder,
}

impl Failover {
    fn start() -> Self {
        let old = RedisServer::start(&[]);
        let new = old.replica();
        let runtime = Runtime::new().unwrap();
        let connected: Vec<_> = LAWS.iter().map(|_| Connected::to(&old, &new, &runtime)).collect();
        for connected in &connected {
            connected._endpoint.switch(new.port);
        }
        new.promote(&old);
        Self { _servers: [old, new], _runtime: runtime, connected: Mutex::new(connected) }
    }
}

impl Connected {
    fn to(old: &RedisServer, new: &RedisServer, runtime: &Runtime) -> Self {
        let endpoint = Forwarder::to(old.port);
        let past = Past::of(new.url());
        let store = Arc::new(Redis::builder(endpoint.url()).prefix(&past.prefix).build().unwrap());
        let written: Arc<dyn Store> = store.clone();
        runtime.block_on(pushonce::lock(before(), &written).run(async { Ok(()) })).unwrap();
        Self { store, past, _endpoint: endpoint }
    }
}

impl Subject for OnRedis {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    fn forget<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, ()> {
        Box::pin(self.past.delete(key))
    }

    fn tells_what_stands(&self) -> Tells {
        Tells::Swaps
    }

    fn maintained(&self) -> Option<Arc<dyn Maintain>> {
        Some(self.store.clone())
    }

    fn waives(&self) -> &'static [Waiver] {
        waivers::of(self.server)
    }

    fn passed(&self, law: &Law) {
        report::law(self.server, law.name());
    }

    fn waived(&self, law: &Law, _: &str) {
        report::waived(self.server, law.name());
    }
}

mod single {
    use super::OnRedis;

    pushonce::contract!(OnRedis::single());
}

mod failover {
    use super::OnRedis;

    pushonce::contract!(OnRedis::promoted().await);
}

mod cluster {
    use super::OnRedis;

    pushonce::contract!(OnRedis::cluster());
}

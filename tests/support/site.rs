//! Every server that keeps records, and a place on each that nobody else has: the one list of them.

use std::hash::{BuildHasher as _, RandomState};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use object_store::memory::InMemory;
use pushonce::Store;
use pushonce::store::{self, Bucket, BucketBuilder, Maintain, Memory, Sql};
use sqlx::{MySqlPool, PgPool};

use crate::emulator::{Emulator, PROJECT};
use crate::fake_gcs::{self, FakeGcs};
use crate::proxy::{Proxy, Speech};
use crate::s3::{self, S3};

/// A place on a server.
pub(crate) struct Site {
    /// As the report calls the server.
    pub(crate) name: &'static str,
    at: At,
}

enum At {
    Memory(Arc<Memory>),
    Objects(Arc<InMemory>),
    File(PathBuf),
    Datastore(Emulator),
    /// The address of a store with its place, and within it the server's `host:port`.
    Url(String, String),
    S3(S3),
    Gcs(FakeGcs),
}

impl Site {
    pub(crate) async fn memory() -> Self {
        Self { name: "memory", at: At::Memory(Arc::default()) }
    }

    pub(crate) async fn object_store_memory() -> Self {
        Self { name: "object-store-memory", at: At::Objects(Arc::default()) }
    }

    pub(crate) async fn sqlite() -> Self {
        Self::file(std::env::temp_dir().join(format!("{}.db", fresh())))
    }

    /// SQLite, in that file. It is deleted with this.
    pub(crate) fn file(path: PathBuf) -> Self {
        Self { name: "sqlite", at: At::File(path) }
    }

    pub(crate) async fn datastore_emulator() -> Self {
        Self { name: "datastore-emulator", at: At::Datastore(Emulator::datastore()) }
    }

    pub(crate) async fn firestore_emulator() -> Self {
        Self { name: "firestore-emulator", at: At::Datastore(Emulator::firestore()) }
    }

    pub(crate) async fn redis() -> Self {
        Self::of("redis", &variable("PUSHONCE_TEST_REDIS")).await
    }

    pub(crate) async fn postgres() -> Self {
        Self::of("postgres", &variable("PUSHONCE_TEST_POSTGRES")).await
    }

    pub(crate) async fn mariadb() -> Self {
        Self::of("mariadb", &variable("PUSHONCE_TEST_MYSQL")).await
    }

    pub(crate) async fn s3() -> Self {
        Self::of("s3", &variable("PUSHONCE_TEST_S3")).await
    }

    /// Google Cloud Storage takes one write of an object per second; that is for tests of it alone.
    pub(crate) async fn fake_gcs() -> Self {
        Self { name: "fake-gcs", at: At::Gcs(FakeGcs::without_pace().await) }
    }

    /// A place on the server of that URL, as its script in `functional/servers` gives it.
    pub(crate) async fn of(name: &'static str, url: &str) -> Self {
        let place = fresh();
        let at = match name {
            "redis" => At::Url(format!("{url}?prefix={place}"), host(url)),
            "postgres" => {
                let pool = PgPool::connect(url).await.unwrap();
                Sql::builder(pool).table(&place).build().unwrap().create_table().await.unwrap();
                At::Url(format!("{url}?table={place}"), host(url))
            }
            "mariadb" => {
                let pool = MySqlPool::connect(url).await.unwrap();
                Sql::builder(pool).table(&place).build().unwrap().create_table().await.unwrap();
                At::Url(format!("{url}?table={place}"), host(url))
            }
            "s3" => At::S3(S3::at(url).await),
            "datastore-emulator" | "firestore-emulator" => At::Datastore(Emulator::at(url)),
            _ => unreachable!("no store is at a URL of {name}"),
        };
        Self { name, at }
    }

    /// A store of its own connections, as another process would have.
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        self.operated()
    }

    /// The same, as an operator has it.
    pub(crate) fn operated(&self) -> Arc<dyn Maintain> {
        match &self.at {
            At::Memory(memory) => memory.clone(),
            At::Objects(objects) => Arc::new(in_step(Bucket::builder(objects.clone()))),
            At::File(file) => store::open(&format!("sqlite://{}", file.display())).unwrap(),
            At::Datastore(_) | At::Url(..) | At::S3(_) | At::Gcs(_) => self.operated_at(&self.host()),
        }
    }

    /// What a process is to be told, so that it finds the same place.
    pub(crate) fn variables(&self) -> Vec<(&'static str, String)> {
        let (url, mut variables) = match &self.at {
            At::Memory(_) | At::Objects(_) => unreachable!("{} is in this process", self.name),
            At::File(file) => (format!("sqlite://{}", file.display()), Vec::new()),
            At::Url(url, _) => (url.clone(), Vec::new()),
            At::Datastore(emulator) => (
                format!("datastore://{PROJECT}?namespace={}", emulator.namespace),
                vec![("DATASTORE_EMULATOR_HOST", emulator.host.clone())],
            ),
            At::S3(s3) => (
                format!("s3://{}/{}?region=eu-central-1&endpoint=http://{}", s3::BUCKET, s3.prefix, s3.host),
                vec![("AWS_ACCESS_KEY_ID", s3.access.clone()), ("AWS_SECRET_ACCESS_KEY", s3.secret.clone())],
            ),
            At::Gcs(fake) => {
                (format!("gs://{}/site?endpoint=http://{}", fake_gcs::BUCKET, fake.host()), Vec::new())
            }
        };
        variables.push(("PUSHONCE_STORE", url));
        variables
    }

    /// The emulator, for a test of nothing else.
    pub(crate) fn emulator(&self) -> &Emulator {
        let At::Datastore(emulator) = &self.at else { unreachable!("{} is no emulator", self.name) };
        emulator
    }

    /// A store that finds the server at that `host:port`.
    pub(crate) fn store_at(&self, at: &str) -> Arc<dyn Store> {
        self.operated_at(at)
    }

    fn operated_at(&self, at: &str) -> Arc<dyn Maintain> {
        match &self.at {
            At::Datastore(emulator) => Arc::new(emulator.builder(at).build().unwrap()),
            At::Url(url, host) => store::open(&url.replacen(host, at, 1)).unwrap(),
            At::S3(s3) => Arc::new(s3.builder(at).build().unwrap()),
            At::Gcs(_) => Arc::new(in_step(Bucket::gcs(fake_gcs::client(at)))),
            At::Memory(_) | At::Objects(_) | At::File(_) => unreachable!("{} has no wire", self.name),
        }
    }

    /// The same with one connection, where the store has a pool: so that it is known which are fresh.
    pub(crate) fn store_on_one_connection_at(&self, at: &str) -> Arc<dyn Store> {
        self.operated_on_one_connection_at(at)
    }

    /// The same, as an operator has it, with the timeout that a store has of itself.
    pub(crate) fn operated_on_one_connection_at(&self, at: &str) -> Arc<dyn Maintain> {
        match &self.at {
            At::Datastore(emulator) => {
                Arc::new(emulator.builder(at).request_timeout(Duration::from_secs(5)).build().unwrap())
            }
            At::Url(url, host) if url.contains("?table=") => {
                store::open(&format!("{}&connections=1", url.replacen(host, at, 1))).unwrap()
            }
            _ => self.operated_at(at),
        }
    }

    /// A proxy in front of the server.
    pub(crate) async fn proxy(&self) -> Proxy {
        let speech = if matches!(self.at, At::Datastore(_)) { Speech::Streams } else { Speech::Turns };
        Proxy::start(&self.host(), speech).await.unwrap()
    }

    /// Where the server listens.
    fn host(&self) -> String {
        match &self.at {
            At::Datastore(emulator) => emulator.host.clone(),
            At::Url(_, host) => host.clone(),
            At::S3(s3) => s3.host.clone(),
            At::Gcs(fake) => fake.host(),
            At::Memory(_) | At::Objects(_) | At::File(_) => unreachable!("{} has no wire", self.name),
        }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let At::File(file) = &self.at else { return };
        for end in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{end}", file.display()));
        }
    }
}

/// Server and clients have one clock here.
fn in_step(bucket: BucketBuilder) -> Bucket {
    bucket.prefix("site").clock_margin(Duration::ZERO).build().unwrap()
}

fn variable(name: &str) -> String {
    let url = std::env::var(name).ok().filter(|url| !url.is_empty());
    url.unwrap_or_else(|| panic!("{name} must be the URL of a server: functional/with-servers starts one"))
}

fn host(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split('/').next().unwrap_or(rest);
    rest.rsplit_once('@').map_or(rest, |(_, host)| host).to_owned()
}

/// A name that nobody else has.
fn fresh() -> String {
    format!("site_{:016x}", RandomState::new().hash_one(0))
}

//! Each server twice: the store on it, and a bare client of the same driver with as many connections.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;
use object_store::ObjectStore;
use pushonce::store::{self, Sql};
use pushonce::{Store, lock};
use sqlx::mysql::MySqlConnectOptions;
use sqlx::pool::PoolOptions;
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{MySql, Postgres, Sqlite};

use crate::bare::{BareDatastore, BareObjects, BareRedis, BareSql};
use crate::emulator::Emulator;
use crate::s3::S3;

pub(crate) const NAMES: [&str; 7] =
    ["redis", "postgres", "sqlite", "mariadb", "datastore-emulator", "firestore-emulator", "s3"];

pub(crate) struct Subject {
    pub(crate) name: &'static str,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) bare: Arc<dyn Bare>,
}

/// What the server and its driver cost by themselves.
pub(crate) trait Bare: Send + Sync {
    /// What the no-op is.
    fn names_no_op(&self) -> &'static str;
    fn no_op(&self) -> BoxFuture<'static, ()>;
    /// The two writes of a first message, under a key that was never used.
    fn two_writes(&self, key: u64) -> BoxFuture<'static, ()>;
}

/// A document as long as that of a record.
pub(crate) fn document() -> String {
    format!(r#"{{"key":"bench:123456","record":"{}"}}"#, "x".repeat(330))
}

pub(crate) fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: functional/with-servers sets it"))
}

/// A name that nobody else has.
pub(crate) fn unique(prefix: &str) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    format!("{prefix}_{:x}", now.as_nanos())
}

pub(crate) async fn open(name: &'static str) -> Subject {
    let (store, bare): (Arc<dyn Store>, Arc<dyn Bare>) = match name {
        "redis" => {
            let url = variable("PUSHONCE_TEST_REDIS");
            let store = store::connect(&format!("{url}?prefix={}", unique("bench"))).unwrap();
            // The server has its script from then on.
            lock("first", &store).run(async { Ok(()) }).await.unwrap();
            (store, Arc::new(BareRedis::open(&url).await))
        }
        "postgres" => {
            let url = variable("PUSHONCE_TEST_POSTGRES");
            let options: PgConnectOptions = url.parse().unwrap();
            let pool = PoolOptions::<Postgres>::new().max_connections(5).test_before_acquire(false);
            let pool = pool.connect_lazy_with(options);
            let [ours, bare] = [unique("ours"), unique("bare")];
            for table in [&ours, &bare] {
                Sql::builder(pool.clone()).table(table).build().unwrap().create_table().await.unwrap();
            }
            let store = store::connect(&format!("{url}?table={ours}")).unwrap();
            let bare = BareSql::<Postgres>::new(
                pool,
                format!(
                    "INSERT INTO {bare} VALUES ($1, $2, $3, clock_timestamp(), clock_timestamp() + interval '8 days') ON CONFLICT (name) DO NOTHING"
                ),
                format!(
                    "UPDATE {bare} SET token = $1, document = $2, written_at = clock_timestamp(), expires_at = clock_timestamp() + interval '8 days' WHERE name = $3 AND token = $4"
                ),
            );
            (store, Arc::new(bare))
        }
        "mariadb" => {
            let url = variable("PUSHONCE_TEST_MYSQL");
            let options: MySqlConnectOptions = url.parse().unwrap();
            let pool = PoolOptions::<MySql>::new().max_connections(5).test_before_acquire(false);
            let pool = pool.connect_lazy_with(options);
            let [ours, bare] = [unique("ours"), unique("bare")];
            for table in [&ours, &bare] {
                Sql::builder(pool.clone()).table(table).build().unwrap().create_table().await.unwrap();
            }
            let store = store::connect(&format!("{url}?table={ours}")).unwrap();
            let bare = BareSql::<MySql>::new(
                pool,
                format!(
                    "INSERT INTO {bare} VALUES (?, ?, ?, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL 8 DAY)"
                ),
                format!(
                    "UPDATE {bare} SET token = ?, document = ?, written_at = UTC_TIMESTAMP(6), expires_at = UTC_TIMESTAMP(6) + INTERVAL 8 DAY WHERE name = ? AND token = ?"
                ),
            );
            (store, Arc::new(bare))
        }
        "sqlite" => {
            let [ours, bare] = [file("ours"), file("bare")];
            let store = store::connect(&format!("sqlite://{ours}")).unwrap();
            let options = SqliteConnectOptions::new().filename(bare).create_if_missing(true);
            let options = options.journal_mode(SqliteJournalMode::Wal).synchronous(SqliteSynchronous::Full);
            let pool = PoolOptions::<Sqlite>::new().max_connections(1).test_before_acquire(false);
            let pool = pool.connect_lazy_with(options);
            Sql::builder(pool.clone()).build().unwrap().create_table().await.unwrap();
            let now = "strftime('%Y-%m-%d %H:%M:%f', 'now')";
            let then = "strftime('%Y-%m-%d %H:%M:%f', 'now', '8 days')";
            let bare = BareSql::<Sqlite>::new(
                pool,
                format!("INSERT INTO pushonce VALUES (?, ?, ?, {now}, {then}) ON CONFLICT (name) DO NOTHING"),
                format!(
                    "UPDATE pushonce SET token = ?, document = ?, written_at = {now}, expires_at = {then} WHERE name = ? AND token = ?"
                ),
            );
            (store, Arc::new(bare))
        }
        "s3" => {
            let s3 = S3::start().await;
            let bare: Arc<dyn ObjectStore> = Arc::new(s3.raw());
            (Arc::new(s3.store()), Arc::new(BareObjects::new(bare, unique("bare"))))
        }
        emulator => {
            let emulator =
                if emulator.starts_with("datastore") { Emulator::datastore() } else { Emulator::firestore() };
            let bare = BareDatastore::open(&emulator.host).await;
            (Arc::new(emulator.store()), Arc::new(bare))
        }
    };
    Subject { name, store, bare }
}

/// The folder of the files of this run, which ends with it.
pub(crate) fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = std::env::temp_dir().join(unique("pushonce"));
        std::fs::create_dir(&folder).expect("a folder for temporary files");
        folder
    })
}

/// The path of a new file.
pub(crate) fn file(name: &str) -> String {
    folder().join(unique(name)).with_extension("db").display().to_string()
}

//! The SQL servers: `PUSHONCE_TEST_POSTGRES` and `PUSHONCE_TEST_MYSQL` name two of them by URL; SQLite
//! needs none.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pushonce::store::record::{Id, Record};
use pushonce::store::{Sql, Swap, Version};
use pushonce::{IntoKey as _, Key};
use sqlx::pool::PoolOptions;
use sqlx::{Connection, Pool};

#[path = "sql_kinds.rs"]
mod kinds;

pub(crate) use kinds::Server;

const PATIENCE: Duration = Duration::from_secs(60);

type Options<DB> = <<DB as sqlx::Database>::Connection as Connection>::Options;

pub(crate) fn key() -> Key {
    ("orders", "po-1").into_key().unwrap()
}

/// A live claim, to be kept for three years.
pub(crate) fn record(token: u128) -> Record {
    let document = r#"{"format":100,"state":"claimed","verb":"lock","fence":7,"token":"01","lease_us":1000000,
        "ttl_us":1000000,"ended":"fresh","written_us":1700000000000000,"expires_us":1800000000000000}"#;
    Record { token: Id::from_bits(token), ..Record::decode(document.as_bytes()).unwrap() }
}

pub(crate) fn written(swap: Swap) -> Version {
    let Swap::Written(version) = swap else { panic!("nothing was written: {swap:?}") };
    version
}

/// A name that nobody else has: of a table, or of a file.
pub(crate) fn fresh(prefix: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    format!("{prefix}_{now:x}_{}_{count}", std::process::id())
}

/// A place with a table of its own.
pub(crate) struct Place<DB: Server> {
    /// As `store::connect` takes it, with the table.
    pub(crate) url: String,
    pub(crate) table: String,
    options: Options<DB>,
    /// Of a file that is deleted with this.
    file: Option<PathBuf>,
}

impl<DB: Server> Place<DB> {
    /// A place whose table is not there yet.
    pub(crate) fn new() -> Self {
        DB::place(fresh("t"))
    }

    /// A table of that name on the server, or in the file, of a URL.
    pub(crate) fn of(url: &str, table: &str) -> Self {
        let options = Options::<DB>::from_str(url.split('?').next().unwrap()).unwrap();
        Place { url: url.to_owned(), table: table.to_owned(), options, file: None }
    }

    /// A place whose table is there.
    pub(crate) async fn ready() -> Self {
        let place = Self::new();
        place.store().create_table().await.unwrap();
        place
    }

    /// A store on the table, with a few connections of its own, and patience with a busy machine.
    pub(crate) fn store(&self) -> Sql<DB> {
        let builder = Sql::builder(self.pool(4)).table(&self.table);
        builder.acquire_timeout(PATIENCE).request_timeout(PATIENCE).build().unwrap()
    }

    /// Where the server listens.
    pub(crate) fn server(&self) -> SocketAddr {
        authority(&self.url).to_socket_addrs().unwrap().next().unwrap()
    }

    /// The same place, at another port of this machine.
    pub(crate) fn at(&self, port: u16) -> Self {
        let url = self.url.replace(authority(&self.url), &format!("127.0.0.1:{port}"));
        let options = DB::with_port(self.options.clone(), port);
        Place { url, table: self.table.clone(), options, file: None }
    }

    /// The file of an embedded database.
    pub(crate) fn file(&self) -> &Path {
        self.file.as_deref().unwrap()
    }

    /// The same place, used by a role that has these grants on the table and no other.
    pub(crate) async fn role(&self, grants: &str) -> Place<DB> {
        let role = fresh("r");
        for statement in DB::MAKE_ROLE {
            self.run(&statement.replace("{role}", &role).replace("{grants}", grants)).await;
        }
        let options = DB::with_user(self.options.clone(), &role);
        Place { url: role, table: self.table.clone(), options, file: None }
    }

    pub(crate) async fn drop_role(&self, role: Place<DB>) {
        for statement in DB::DROP_ROLE {
            self.run(&statement.replace("{role}", &role.url)).await;
        }
    }

    /// Some connections.
    pub(crate) fn pool(&self, most: u32) -> Pool<DB> {
        self.pool_with(most, &[])
    }

    /// Some connections, in each of which these statements are run first.
    pub(crate) fn pool_with(&self, most: u32, first: &'static [&'static str]) -> Pool<DB> {
        let pool = PoolOptions::new().max_connections(most).idle_timeout(None).max_lifetime(None);
        let pool = pool.after_connect(move |connection, _| {
            Box::pin(async move {
                for statement in first {
                    DB::run(connection, statement).await?;
                }
                Ok(())
            })
        });
        pool.connect_lazy_with(self.options.clone())
    }

    /// Runs a statement past the store; `{table}` in it is the table. How many rows it changed.
    pub(crate) async fn run(&self, statement: &str) -> u64 {
        let statement = statement.replace("{table}", &self.table);
        let mut connection = self.pool(1).acquire().await.unwrap().detach();
        let changed = DB::run(&mut connection, &statement).await;
        let _ = connection.close().await;
        changed.unwrap_or_else(|error| panic!("{statement}: {error}"))
    }

    /// The name of a key in the table, as a literal.
    pub(crate) fn name_of(&self, key: &Key) -> String {
        DB::text(&key.stored_name(255).bytes().map(|byte| format!("{byte:02x}")).collect::<String>())
    }

    /// Deletes the record of a key.
    pub(crate) async fn forget(&self, key: &Key) {
        self.run(&format!("DELETE FROM {{table}} WHERE name = {}", self.name_of(key))).await;
    }
}

impl<DB: Server> Drop for Place<DB> {
    fn drop(&mut self) {
        for end in ["", "-wal", "-shm"] {
            let Some(file) = &self.file else { return };
            let _ = std::fs::remove_file(format!("{}{end}", file.display()));
        }
    }
}

/// The `host:port` of a URL.
fn authority(url: &str) -> &str {
    let rest = url.split_once("://").unwrap().1.split('/').next().unwrap();
    rest.rsplit('@').next().unwrap()
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} must be the URL of a server"))
}

fn served<DB: Server>(table: String, url: &str, options: Options<DB>) -> Place<DB> {
    let mark = if url.contains('?') { '&' } else { '?' };
    Place { url: format!("{url}{mark}table={table}"), table, options, file: None }
}

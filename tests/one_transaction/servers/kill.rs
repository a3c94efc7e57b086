//! A service that is killed by SIGKILL at every step of its transaction, as a real process: with
//! redelivery until success there is one committed effect for each message, and no sink has a key.

use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus, Stdio};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::post;
use bytes::Bytes;
use futures_util::FutureExt as _;
use pushonce::store::{
    BoxError, BoxFuture, Commits, Completes, Record, Sql, StoreError, Stored, Swap, Version,
};
use pushonce::{Ack, Delivery, Failure, IdempotentLayer, Key, Lease, Store};
use rustix::process::{Signal, getpid, kill_process};
use sqlx::pool::PoolOptions;
use sqlx::{Connection, Pool, Postgres, Sqlite, Transaction};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::client;
use super::report;
use super::sql::{Scene, Spoken};

/// Set in the process that is to be killed: where its database and its table are.
const URL: &str = "PUSHONCE_TEST_KILLED_URL";
const TABLE: &str = "PUSHONCE_TEST_KILLED_TABLE";
/// At which step it dies.
const STEP: &str = "PUSHONCE_TEST_KILLED_AT";
/// How the handler commits its effect: with its key, with its key by its own commit, or alone.
const TOGETHER: &str = "together";
const BY_HAND: &str = "by-hand";
const APART: &str = "apart";
/// Who dies holds its key so long.
const LEASE: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(60);

/// Where the process dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    BeforeEffect,
    AfterEffect,
    AfterStatement,
    /// The commit is sent, and nobody waits for its answer.
    InCommit,
    AfterCommit,
}

impl Step {
    const ALL: [Self; 5] =
        [Self::BeforeEffect, Self::AfterEffect, Self::AfterStatement, Self::InCommit, Self::AfterCommit];

    /// Dies, if this is the step.
    fn reached(self) {
        if std::env::var(STEP).is_ok_and(|step| step == format!("{self:?}")) {
            let killed = kill_process(getpid(), Signal::KILL);
            unreachable!("it was killed: {killed:?}");
        }
    }
}

/// The store of the service: it passes everything on, and dies where it is told to.
#[derive(Debug)]
struct Dying<S>(S);

impl<S: Store> Store for Dying<S> {
    fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Stored>, StoreError>> {
        self.0.read(key)
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        seen: Option<&'a Version>,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        self.0.swap(key, seen, next)
    }
}

impl<Tx: Send, S: Completes<Tx>> Completes<Tx> for Dying<S> {
    fn swap_in<'a>(
        &'a self,
        tx: &'a mut Tx,
        key: &'a Key,
        seen: &'a Version,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            let moved = self.0.swap_in(tx, key, seen, next).await;
            Step::AfterStatement.reached();
            moved
        })
    }
}

impl<Tx: Send + 'static, S: Commits<Tx>> Commits<Tx> for Dying<S> {
    fn commit(&self, tx: Tx) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let mut commit = self.0.commit(tx);
            let committed = (&mut commit).now_or_never();
            Step::InCommit.reached();
            let committed = match committed {
                Some(committed) => committed,
                None => commit.await,
            };
            Step::AfterCommit.reached();
            committed
        })
    }
}

/// The process that is to be killed: a service with one effect for each message.
async fn service<DB: Spoken>(url: String)
where
    <DB::Connection as Connection>::Options: FromStr<Err: std::fmt::Debug>,
{
    let options = <DB::Connection as Connection>::Options::from_str(&url).unwrap();
    let pool: Pool<DB> = PoolOptions::new().max_connections(3).connect_lazy_with(options);
    let table = std::env::var(TABLE).unwrap();
    let sql = Arc::new(Dying(Sql::builder(pool.clone()).table(&table).build().unwrap()));
    let layer = IdempotentLayer::new("orders", sql.clone()).lease(LEASE);
    let handler = move |lease: Lease, delivery: Delivery| {
        let (sql, pool, table) = (sql.clone(), pool.clone(), table.clone());
        async move {
            let how = delivery.attribute("how").unwrap_or_default();
            work(&sql, &pool, &table, how, lease).await.map(|()| Ack).map_err(Failure::from)
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("listening on {}", listener.local_addr().unwrap());
    let app = Router::new().route("/", post(handler).layer(layer));
    pushonce::serve(app).listener(listener).until(std::future::pending()).await.unwrap();
}

async fn work<DB: Spoken>(
    sql: &Arc<Dying<Sql<DB>>>,
    pool: &Pool<DB>,
    table: &str,
    how: &str,
    lease: Lease,
) -> Result<(), BoxError> {
    let completion = if how == BY_HAND { Some(lease.completion(sql).await?) } else { None };
    let mut tx: Transaction<'static, DB> = pool.begin_with(DB::BEGIN).await?;
    Step::BeforeEffect.reached();
    DB::run(&mut tx, &format!("INSERT INTO {table}_effects VALUES ('{}')", lease.key().text())).await?;
    Step::AfterEffect.reached();
    match completion {
        Some(completion) => {
            completion.execute(&mut tx).await?;
            Ok(Commits::commit(&**sql, tx).await?)
        }
        None if how == APART => Ok(Commits::commit(&**sql, tx).await?),
        None => Ok(lease.commit(sql, tx).await?),
    }
}

/// A process of the service, and where it listens.
struct Service {
    child: tokio::process::Child,
    address: SocketAddr,
}

impl Service {
    async fn start<DB: Spoken>(test: &str, scene: &Scene<DB>, url: &str, step: Option<Step>) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", test, "--nocapture"]);
        command.env(URL, url).env(TABLE, &scene.place.table);
        command.env(STEP, step.map_or_else(String::new, |step| format!("{step:?}")));
        command.env_remove("PUSHONCE_DISABLED").env_remove("K_SERVICE").stdout(Stdio::piped());
        let mut child = tokio::process::Command::from(command).kill_on_drop(true).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let listening = async {
            while let Some(line) = lines.next_line().await.unwrap() {
                if let Some((_, address)) = line.split_once("listening on ") {
                    return address.parse().unwrap();
                }
            }
            panic!("the service ended before it listened")
        };
        let address = tokio::time::timeout(PATIENCE, listening).await.expect("the service listens");
        // Read on, or its output would block.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Self { child, address }
    }

    /// Pub/Sub's part of one delivery: the status, or nothing where the process died.
    async fn push(&self, id: &str, how: &str) -> Option<u16> {
        let body = format!(
            r#"{{"message":{{"messageId":"{id}","attributes":{{"how":"{how}"}}}},"subscription":"s"}}"#
        );
        let request = http::Request::post("/").body(Bytes::from(body)).unwrap();
        client::send(self.address, request).await.ok().map(|answer| answer.status().as_u16())
    }

    async fn ended(mut self) -> ExitStatus {
        tokio::time::timeout(PATIENCE, self.child.wait()).await.expect("it dies").unwrap()
    }
}

/// Kills the service at each of these steps in turn, each time by one delivery of the same message,
/// then delivers until success: how often its effect was committed.
async fn delivered<DB: Spoken>(test: &str, scene: &Scene<DB>, id: &str, steps: &[Step], how: &str) -> u64 {
    // Without the parameters that are the store's own.
    let url = scene.place.url.split('?').next().unwrap();
    for step in steps {
        let service = Service::start(test, scene, url, Some(*step)).await;
        let died = async {
            loop {
                match service.push(id, how).await {
                    None => return true,
                    // Who died before holds it, until its lease has lapsed.
                    Some(503) => tokio::time::sleep(Duration::from_millis(100)).await,
                    // It was committed by who died before.
                    Some(204) => return false,
                    Some(status) => panic!("{id}: {step:?} was passed, and it answered {status}"),
                }
            }
        };
        if !tokio::time::timeout(PATIENCE, died).await.expect("a lease lapses") {
            break;
        }
        assert_eq!(service.ended().await.signal(), Some(9), "{id}: {step:?}");
    }
    let service = Service::start(test, scene, url, None).await;
    let acked = async {
        while !matches!(service.push(id, how).await, Some(200 | 204)) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(PATIENCE, acked).await.expect("it is acked at last");
    assert_eq!(service.push(id, how).await, Some(204), "{id}");
    scene.effects(id).await
}

async fn killed_at_every_step<DB: Spoken>(test: &str) {
    let scene = Scene::<DB>::new().await;
    for how in [TOGETHER, BY_HAND] {
        for step in Step::ALL {
            let id = format!("{step:?}-{how}");
            assert_eq!(delivered(test, &scene, &id, &[step], how).await, 1, "{id}");
        }
        // One message, whose every delivery dies one step later than the one before.
        let id = format!("all-{how}");
        assert_eq!(delivered(test, &scene, &id, &Step::ALL, how).await, 1, "{id}");
    }
    // The proof that these kills can hurt: what is committed apart from its key is repeated.
    assert_eq!(delivered(test, &scene, "apart", &[Step::AfterCommit], APART).await, 2);
}

/// In the process that is to be killed this is the service.
fn killed<DB: Spoken>(test: &str)
where
    <DB::Connection as Connection>::Options: FromStr<Err: std::fmt::Debug>,
{
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    match std::env::var(URL) {
        Ok(url) => runtime.block_on(service::<DB>(url)),
        Err(_) => runtime.block_on(killed_at_every_step::<DB>(test)),
    }
}

#[test]
fn a_service_on_postgres_that_is_killed_at_every_step_commits_once() {
    killed::<Postgres>("servers::kill::a_service_on_postgres_that_is_killed_at_every_step_commits_once");
    report::test("postgres", "a_service_that_is_killed_at_every_step_commits_once");
}

#[test]
fn a_service_on_sqlite_that_is_killed_at_every_step_commits_once() {
    killed::<Sqlite>("servers::kill::a_service_on_sqlite_that_is_killed_at_every_step_commits_once");
    report::test("sqlite", "a_service_that_is_killed_at_every_step_commits_once");
}

#[test]
fn a_service_on_mariadb_that_is_killed_at_every_step_commits_once() {
    killed::<sqlx::MySql>("servers::kill::a_service_on_mariadb_that_is_killed_at_every_step_commits_once");
    report::test("mariadb", "a_service_that_is_killed_at_every_step_commits_once");
}

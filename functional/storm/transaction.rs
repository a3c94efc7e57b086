//! What an instance does with a message where its effect is a row beside its key: both in one transaction.

use std::str::FromStr as _;
use std::sync::Arc;

use axum::Router;
use axum::routing::post;
use pushonce::store::{BoxFuture, Commits, Completes, Record, Sql, StoreError, Stored, Swap, Version};
use pushonce::{Ack, Failure, Key, Lease, Store};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, PgPool, Postgres, Transaction};

use crate::dice::Dice;
use crate::fate::{Own, Point};
use crate::journal::{self, Name};
use crate::work::{layer, rest, under_way};

tokio::task_local! {
    /// The run whose transaction is committed.
    static COMMITS: Name;
}

/// The table of the keys, and beside it that of the effects: it has no unique column, and no index.
#[derive(Debug, Clone)]
pub(crate) struct Database {
    pool: PgPool,
    keys: String,
}

impl Database {
    /// At the address of a store.
    pub(crate) fn at(url: &str) -> Self {
        let (url, keys) = url.split_once("?table=").unwrap();
        let pool = PgPoolOptions::new()
            .max_connections(20)
            .connect_lazy_with(PgConnectOptions::from_str(url).unwrap());
        Self { pool, keys: keys.to_owned() }
    }

    /// The same, with a table of effects.
    pub(crate) async fn created(url: &str) -> Self {
        let database = Self::at(url);
        let table =
            format!("CREATE TABLE {}_effects (key text NOT NULL, fence bigint NOT NULL)", database.keys);
        sqlx::query(AssertSqlSafe(table)).execute(&database.pool).await.unwrap();
        database
    }

    /// The key of each row.
    pub(crate) async fn effects(&self) -> Vec<String> {
        let rows = format!("SELECT key FROM {}_effects", self.keys);
        sqlx::query_scalar(AssertSqlSafe(rows)).fetch_all(&self.pool).await.unwrap()
    }

    async fn insert(&self, tx: &mut Transaction<'static, Postgres>, run: &Name) -> Result<(), sqlx::Error> {
        let insert = format!("INSERT INTO {}_effects VALUES ($1, $2)", self.keys);
        let fence = i64::try_from(run.fence).unwrap();
        sqlx::query(AssertSqlSafe(insert)).bind(&run.key).bind(fence).execute(&mut **tx).await?;
        Ok(())
    }
}

/// An instance whose effects are rows.
pub(crate) fn service(database: Database, own: Own, dice: Dice) -> Router {
    let (own, dice) = (Arc::new(own), Arc::new(dice));
    let sql = Sql::builder(database.pool.clone()).table(&database.keys).build().unwrap();
    let store = Arc::new(UpTo { sql, own: own.clone(), dice: dice.clone() });
    let layer = layer(store.clone());
    let handler = move |lease: Lease| {
        let (store, database, own, dice) = (store.clone(), database.clone(), own.clone(), dice.clone());
        async move {
            let run = Name::of(&lease);
            journal::began(&run, lease.history());
            own.at(Point::Begun, &run);
            // Before the transaction, whose connection the renewals of others need, too.
            tokio::time::sleep(rest(&dice)).await;
            let mut tx = database.pool.begin().await?;
            database.insert(&mut tx, &run).await?;
            own.at(Point::EffectInserted, &run);
            tokio::time::sleep(dice.millis(0, 60)).await;
            COMMITS.scope(run.clone(), lease.commit(&store, tx)).await?;
            journal::recorded(&run);
            own.at(Point::CommitAnswered, &run);
            Ok::<_, Failure>(Ack)
        }
    };
    Router::new().route("/", post(handler).layer(layer))
}

/// A store that passes everything on, and knows when a transaction completes a key.
#[derive(Debug)]
struct UpTo {
    sql: Sql<Postgres>,
    own: Arc<Own>,
    dice: Arc<Dice>,
}

impl Store for UpTo {
    fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Stored>, StoreError>> {
        self.sql.read(key)
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        seen: Option<&'a Version>,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        self.sql.swap(key, seen, next)
    }
}

impl Completes<Transaction<'static, Postgres>> for UpTo {
    fn swap_in<'a>(
        &'a self,
        tx: &'a mut Transaction<'static, Postgres>,
        key: &'a Key,
        seen: &'a Version,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            let moved = self.sql.swap_in(tx, key, seen, next).await;
            COMMITS.with(|run| self.own.at(Point::KeyCompleted, run));
            moved
        })
    }
}

impl Commits<Transaction<'static, Postgres>> for UpTo {
    fn commit(&self, tx: Transaction<'static, Postgres>) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let mut sent = self.sql.commit(tx);
            let strike = || COMMITS.with(|run| self.own.at(Point::CommitSent, run));
            under_way(&mut sent, &self.dice, strike).await
        })
    }
}

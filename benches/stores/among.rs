//! Stores among a thousand keys and among a million, loaded in the fastest way that the server has.

use std::sync::Arc;

use pushonce::Store;
use pushonce::store::{self, Sql};
use sqlx::{AssertSqlSafe, Database, Executor, MySqlPool, PgPool, Pool, SqlitePool};

use crate::subject::{document, file, unique, variable};

const FEW: u32 = 1_000;
const MANY: u32 = 1_000_000;
/// Of one script, which nobody else can interrupt.
const BATCH: u32 = 1_000;
const TOKEN: &str = "000000000000000000000000000000a1";

/// Two stores on the server of that name, beside each other; `None` where a million keys say nothing of
/// what Google or Amazon would do.
pub(crate) async fn few_and_many(name: &str) -> Option<(Arc<dyn Store>, Arc<dyn Store>)> {
    Some(match name {
        "redis" => (redis(FEW, 14).await, redis(MANY, 15).await),
        "postgres" => (postgres(FEW).await, postgres(MANY).await),
        "mariadb" => (mariadb(FEW).await, mariadb(MANY).await),
        "sqlite" => (sqlite(FEW).await, sqlite(MANY).await),
        _ => return None,
    })
}

/// In a database of its own, since a database of Redis is one table of names.
async fn redis(keys: u32, database: u8) -> Arc<dyn Store> {
    let url = format!("{}/{database}", variable("PUSHONCE_TEST_REDIS"));
    let client = redis::Client::open(&*url).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let prefix = unique("bench");
    let load = redis::Script::new(
        "for key = ARGV[1], ARGV[2] - 1 do
           local name = string.format('%s:{%04x}=bench:loaded-%d', ARGV[5], key * 40503 % 65536, key)
           redis.call('HSET', name, 'document', ARGV[3], 'token', ARGV[4], 'written_us', '1')
           redis.call('PEXPIRE', name, 700000000)
         end",
    );
    for first in (0..keys).step_by(BATCH as usize) {
        let mut load = load.arg(first);
        let load = load.arg(keys.min(first + BATCH)).arg(document()).arg(TOKEN).arg(&prefix);
        let () = load.invoke_async(&mut connection).await.unwrap();
    }
    store::connect(&format!("{url}?prefix={prefix}")).unwrap()
}

async fn postgres(keys: u32) -> Arc<dyn Store> {
    let (url, table) = (variable("PUSHONCE_TEST_POSTGRES"), unique("among"));
    let pool = PgPool::connect(&url).await.unwrap();
    Sql::builder(pool.clone()).table(&table).build().unwrap().create_table().await.unwrap();
    let load = format!(
        "INSERT INTO {table} SELECT substr(md5(key::text), 1, 4) || '=bench:loaded-' || key, '{TOKEN}', '{}', \
         clock_timestamp(), clock_timestamp() + interval '8 days' FROM generate_series(1, {keys}) AS key",
        document()
    );
    run(&pool, &load).await;
    run(&pool, &format!("VACUUM ANALYZE {table}")).await;
    run(&pool, "CHECKPOINT").await;
    store::connect(&format!("{url}?table={table}")).unwrap()
}

async fn mariadb(keys: u32) -> Arc<dyn Store> {
    let (url, table) = (variable("PUSHONCE_TEST_MYSQL"), unique("among"));
    let pool = MySqlPool::connect(&url).await.unwrap();
    Sql::builder(pool.clone()).table(&table).build().unwrap().create_table().await.unwrap();
    // In the order of the names, as the table keeps them.
    let load = format!(
        "INSERT INTO {table} SELECT concat(substr(md5(seq), 1, 4), '=bench:loaded-', seq) AS name, '{TOKEN}', '{}', \
         UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL 8 DAY FROM seq_1_to_{keys} ORDER BY name",
        document()
    );
    run(&pool, &load).await;
    run(&pool, &format!("ANALYZE TABLE {table}")).await;
    store::connect(&format!("{url}?table={table}")).unwrap()
}

async fn sqlite(keys: u32) -> Arc<dyn Store> {
    let url = format!("sqlite://{}", file("among"));
    let pool = SqlitePool::connect(&format!("{url}?mode=rwc")).await.unwrap();
    run(&pool, "PRAGMA journal_mode = WAL").await;
    Sql::builder(pool.clone()).build().unwrap().create_table().await.unwrap();
    let load = format!(
        "WITH RECURSIVE keys(key) AS (SELECT 1 UNION ALL SELECT key + 1 FROM keys WHERE key < {keys}) \
         INSERT INTO pushonce SELECT printf('%04x=bench:loaded-%d', key * 40503 % 65536, key) AS name, '{TOKEN}', '{}', \
         strftime('%Y-%m-%d %H:%M:%f', 'now'), strftime('%Y-%m-%d %H:%M:%f', 'now', '8 days') FROM keys ORDER BY name",
        document()
    );
    run(&pool, &load).await;
    run(&pool, "PRAGMA wal_checkpoint(TRUNCATE)").await;
    pool.close().await;
    store::connect(&url).unwrap()
}

async fn run<DB: Database>(pool: &Pool<DB>, statement: &str)
where
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
{
    let mut connection = pool.acquire().await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut *connection).await.unwrap();
}

//! The bare clients: each driver by itself, without records, leases or errors that anybody could mend.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use gcloud_sdk::google::datastore::v1 as pb;
use gcloud_sdk::google::datastore::v1::commit_request::Mode;
use gcloud_sdk::google::datastore::v1::datastore_client::DatastoreClient;
use gcloud_sdk::google::datastore::v1::key::PathElement;
use gcloud_sdk::google::datastore::v1::key::path_element::IdType;
use gcloud_sdk::google::datastore::v1::mutation::{
    ConflictDetectionStrategy, ConflictResolutionStrategy, Operation,
};
use gcloud_sdk::google::datastore::v1::value::ValueType;
use gcloud_sdk::tonic::transport::Channel;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, UpdateVersion};
use redis::aio::MultiplexedConnection;
use sqlx::{AssertSqlSafe, Database, MySql, Pool, Postgres, Sqlite};

use crate::emulator::PROJECT;
use crate::subject::{Bare, document, unique};

const TOKENS: [&str; 2] = ["000000000000000000000000000000a1", "000000000000000000000000000000a2"];

/// One multiplexed connection, and the store's own script.
pub(crate) struct BareRedis {
    connection: MultiplexedConnection,
    digest: Arc<str>,
    prefix: Arc<str>,
}

fn script() -> &'static str {
    let source = include_str!("../../src/store/redis/script.rs");
    let code = source.split_once("const CODE: &str = r\"").and_then(|(_, rest)| rest.split_once("\";"));
    code.expect("the script of the store").0
}

impl BareRedis {
    pub(crate) async fn open(url: &str) -> Self {
        let client = redis::Client::open(url).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        let digest = redis::Script::new(script()).get_hash().to_owned();
        let known = redis::cmd("SCRIPT").arg("EXISTS").arg(&digest).query_async(&mut connection).await;
        assert_eq!(known, Ok([true]), "the store has used another script");
        Self { connection, digest: digest.into(), prefix: unique("bare").into() }
    }
}

impl Bare for BareRedis {
    fn names_no_op(&self) -> &'static str {
        "PING"
    }

    fn no_op(&self) -> BoxFuture<'static, ()> {
        let mut connection = self.connection.clone();
        Box::pin(async move { redis::cmd("PING").exec_async(&mut connection).await.unwrap() })
    }

    fn two_writes(&self, key: u64) -> BoxFuture<'static, ()> {
        let (mut connection, digest) = (self.connection.clone(), self.digest.clone());
        let name = format!("{}:{key}", self.prefix);
        Box::pin(async move {
            for (seen, token) in [("", TOKENS[0]), (TOKENS[0], TOKENS[1])] {
                let mut call = redis::cmd("EVALSHA");
                call.arg(&*digest).arg(1).arg(&name).arg(seen).arg(document()).arg(token).arg(700_000_000);
                let answer: Vec<redis::Value> = call.query_async(&mut connection).await.unwrap();
                assert_eq!(answer[0], redis::Value::Int(1), "it is written");
            }
        })
    }
}

/// A pool, and one insert and one update that a person would write.
pub(crate) struct BareSql<DB: Database> {
    pool: Pool<DB>,
    insert: Arc<str>,
    update: Arc<str>,
}

impl<DB: Database> BareSql<DB> {
    pub(crate) fn new(pool: Pool<DB>, insert: String, update: String) -> Self {
        Self { pool, insert: insert.into(), update: update.into() }
    }
}

macro_rules! bare_sql {
    ($($database:ident)+) => {
        $(impl Bare for BareSql<$database> {
            fn names_no_op(&self) -> &'static str {
                "SELECT 1"
            }

            fn no_op(&self) -> BoxFuture<'static, ()> {
                let pool = self.pool.clone();
                Box::pin(async move {
                    sqlx::query("SELECT 1").fetch_one(&pool).await.unwrap();
                })
            }

            fn two_writes(&self, key: u64) -> BoxFuture<'static, ()> {
                let (pool, insert, update) = (self.pool.clone(), self.insert.clone(), self.update.clone());
                let name = format!("{:04x}=bench:{key}", key.wrapping_mul(40_503) % 65_536);
                Box::pin(async move {
                    let query = sqlx::query(AssertSqlSafe(&*insert)).bind(&name).bind(TOKENS[0]).bind(document());
                    assert_eq!(query.execute(&pool).await.unwrap().rows_affected(), 1);
                    let query = sqlx::query(AssertSqlSafe(&*update)).bind(TOKENS[1]).bind(document());
                    let query = query.bind(&name).bind(TOKENS[0]);
                    assert_eq!(query.execute(&pool).await.unwrap().rows_affected(), 1);
                })
            }
        })+
    };
}
bare_sql! { Postgres MySql Sqlite }

/// The library's client, a PUT where nothing is and one over the version that it gave.
pub(crate) struct BareObjects {
    objects: Arc<dyn ObjectStore>,
    prefix: Arc<str>,
}

impl BareObjects {
    pub(crate) fn new(objects: Arc<dyn ObjectStore>, prefix: String) -> Self {
        Self { objects, prefix: prefix.into() }
    }
}

impl Bare for BareObjects {
    fn names_no_op(&self) -> &'static str {
        "GET of nothing"
    }

    fn no_op(&self) -> BoxFuture<'static, ()> {
        let (objects, path) = (self.objects.clone(), Path::from(format!("{}/nothing", self.prefix)));
        Box::pin(async move { assert!(objects.get(&path).await.is_err()) })
    }

    fn two_writes(&self, key: u64) -> BoxFuture<'static, ()> {
        let (objects, path) = (self.objects.clone(), Path::from(format!("{}/{key}.json", self.prefix)));
        Box::pin(async move {
            let create = PutOptions::from(PutMode::Create);
            let put = objects.put_opts(&path, (document() + TOKENS[0]).into(), create).await.unwrap();
            let update = PutOptions::from(PutMode::Update(UpdateVersion::from(put)));
            objects.put_opts(&path, (document() + TOKENS[1]).into(), update).await.unwrap();
        })
    }
}

/// One channel, an insert and an update on the version that it gave.
pub(crate) struct BareDatastore {
    client: DatastoreClient<Channel>,
    namespace: Arc<str>,
}

impl BareDatastore {
    pub(crate) async fn open(host: &str) -> Self {
        let client = DatastoreClient::connect(format!("http://{host}")).await.unwrap();
        Self { client, namespace: unique("bare").into() }
    }

    fn key(&self, name: String) -> pb::Key {
        let partition_id = pb::PartitionId {
            project_id: PROJECT.into(),
            namespace_id: self.namespace.to_string(),
            ..Default::default()
        };
        let path = vec![PathElement { kind: "bare".into(), id_type: Some(IdType::Name(name)) }];
        pb::Key { partition_id: Some(partition_id), path }
    }
}

impl Bare for BareDatastore {
    fn names_no_op(&self) -> &'static str {
        "lookup of nothing"
    }

    fn no_op(&self) -> BoxFuture<'static, ()> {
        let mut client = self.client.clone();
        let keys = vec![self.key("nothing".into())];
        let request = pb::LookupRequest { project_id: PROJECT.into(), keys, ..Default::default() };
        Box::pin(async move {
            client.lookup(request).await.unwrap();
        })
    }

    fn two_writes(&self, key: u64) -> BoxFuture<'static, ()> {
        let mut client = self.client.clone();
        let key = self.key(key.to_string());
        let entity = |token: &str| {
            let text = Some(ValueType::StringValue(document() + token));
            let value = pb::Value { exclude_from_indexes: true, value_type: text, ..Default::default() };
            pb::Entity { key: Some(key.clone()), properties: [("record".to_owned(), value)].into() }
        };
        let [created, updated] = TOKENS.map(entity);
        let commit = |mutation| pb::CommitRequest {
            project_id: PROJECT.into(),
            mode: Mode::NonTransactional.into(),
            mutations: vec![mutation],
            ..Default::default()
        };
        Box::pin(async move {
            let insert = pb::Mutation { operation: Some(Operation::Insert(created)), ..Default::default() };
            let answer = client.commit(commit(insert)).await.unwrap().into_inner();
            let update = pb::Mutation {
                operation: Some(Operation::Update(updated)),
                conflict_detection_strategy: Some(ConflictDetectionStrategy::BaseVersion(
                    answer.mutation_results[0].version,
                )),
                conflict_resolution_strategy: ConflictResolutionStrategy::Fail.into(),
                ..Default::default()
            };
            client.commit(commit(update)).await.unwrap();
        })
    }
}

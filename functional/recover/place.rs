//! Where one run keeps its records: a schema of its own in PostgreSQL.

use std::hash::{BuildHasher as _, RandomState};

use pushonce::store::Sql;
use pushonce::store::record::State;
use pushonce::{IntoKey as _, Store as _};
use sqlx::{PgPool, Postgres};

use crate::by_hand;
use crate::program::CONSUMER;
use crate::proxy::{Proxy, Speech};
use crate::subject::Subject;

/// A schema. It stays until [`Place::clear`].
#[derive(Debug)]
pub(crate) struct Place {
    server: String,
    schema: String,
    pool: PgPool,
    keys: Sql<Postgres>,
}

/// What the record of a message says, in anybody's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Nothing,
    Begun,
    Done,
}

impl Place {
    pub(crate) async fn new() -> Self {
        let server = std::env::var("PUSHONCE_TEST_POSTGRES").ok().filter(|url| !url.is_empty());
        let server = server
            .expect("PUSHONCE_TEST_POSTGRES must be the URL of a server: functional/with-servers starts one");
        let schema = format!("recover_{:016x}", RandomState::new().hash_one(0));
        let pool = PgPool::connect_lazy(&in_schema(&server, &schema)).unwrap();
        let keys = Sql::new(pool.clone());
        // The name is of hex digits.
        let create = sqlx::AssertSqlSafe(format!("CREATE SCHEMA {schema}"));
        sqlx::query(create).execute(&pool).await.unwrap();
        keys.create_table().await.unwrap();
        by_hand::create_table(&pool).await.unwrap();
        sqlx::query("CREATE TABLE charges (message TEXT NOT NULL)").execute(&pool).await.unwrap();
        Self { server, schema, pool, keys }
    }

    /// The database as a subject finds it.
    pub(crate) fn url(&self) -> String {
        in_schema(&self.server, &self.schema)
    }

    /// A proxy in front of the server, and the database as a subject finds it through that.
    pub(crate) async fn proxied(&self) -> (Proxy, String) {
        let (_, host) = self.server.rsplit_once('@').expect("a URL with a user");
        let host = host.split('/').next().unwrap();
        let proxy = Proxy::start(host, Speech::Turns).await.unwrap();
        let url = in_schema(&self.server.replacen(host, &proxy.address(), 1), &self.schema);
        (proxy, url)
    }

    /// What the subject's record of the message says.
    pub(crate) async fn standing(&self, subject: Subject, message: &str) -> Standing {
        let done: Option<bool> = match subject {
            Subject::ByHand => {
                let select = "SELECT done_at IS NOT NULL FROM processed_messages WHERE message_id = $1";
                sqlx::query_scalar(select).bind(message).fetch_optional(&self.pool).await.unwrap()
            }
            Subject::Peer => {
                let select = "SELECT state = 'DONE' FROM gcp_pubsub_idempotency WHERE idem_key = $1";
                sqlx::query_scalar(select).bind(message).fetch_optional(&self.pool).await.unwrap()
            }
            Subject::Pushonce | Subject::Renewed | Subject::OneTransaction => {
                let key = (CONSUMER, message).into_key().unwrap();
                let stored = self.keys.read(&key).await.unwrap();
                stored.map(|stored| stored.record.state == State::Done)
            }
        };
        match done {
            None => Standing::Nothing,
            Some(false) => Standing::Begun,
            Some(true) => Standing::Done,
        }
    }

    /// The subject's record of the message, to be compared with what it is later.
    pub(crate) async fn row(&self, subject: Subject, message: &str) -> Option<String> {
        let row = match subject {
            Subject::ByHand => "SELECT row(t.*)::text FROM processed_messages t WHERE message_id = $1",
            Subject::Peer => "SELECT row(t.*)::text FROM gcp_pubsub_idempotency t WHERE idem_key = $1",
            Subject::Pushonce | Subject::Renewed | Subject::OneTransaction => {
                let key = (CONSUMER, message).into_key().unwrap();
                return self.keys.read(&key).await.unwrap().map(|stored| format!("{:?}", stored.version));
            }
        };
        sqlx::query_scalar(row).bind(message).fetch_optional(&self.pool).await.unwrap()
    }

    /// The effects that are rows here.
    pub(crate) async fn charges(&self) -> usize {
        let count: i64 =
            sqlx::query_scalar("SELECT count(*) FROM charges").fetch_one(&self.pool).await.unwrap();
        usize::try_from(count).unwrap()
    }

    /// Drops it. The subjects must be gone: an open transaction would hold it.
    pub(crate) async fn clear(self) {
        let drop = sqlx::AssertSqlSafe(format!("DROP SCHEMA {} CASCADE", self.schema));
        sqlx::query(drop).execute(&self.pool).await.unwrap();
    }
}

/// As sqlx and psycopg both read it.
fn in_schema(server: &str, schema: &str) -> String {
    format!("{server}?options=-csearch_path%3D{schema}")
}

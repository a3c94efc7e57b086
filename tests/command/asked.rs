//! A store with keys, tasks and uncertain ones in it, and the program that is asked about it.

use std::sync::Arc;
use std::time::Duration;

use pushonce::maintain::{Force, Reset, reset};
use pushonce::publish::{Message, PublishError, Publisher};
use pushonce::store::{BoxFuture, Maintain};
use pushonce::submit::{Submitted, Submitter};
use pushonce::{IntoKey as _, Store, lock};
use serde_json::{Value, json};
use sqlx::SqlitePool;

use crate::program::{Ran, run_with};
use crate::site::Site;

/// The program, told of a store by its environment.
pub(crate) struct Asked {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) operated: Arc<dyn Maintain>,
    pub(crate) variables: Vec<(&'static str, String)>,
}

impl Asked {
    pub(crate) fn of(site: &Site) -> Self {
        let operated = site.operated();
        Self { store: operated.clone(), operated, variables: site.variables() }
    }

    /// On a thread of its own: some servers live in this runtime.
    pub(crate) async fn run(&self, arguments: &[&str]) -> Ran {
        let arguments: Vec<_> = arguments.iter().map(ToString::to_string).collect();
        let variables = self.variables.clone();
        let run = move || {
            let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
            run_with(&arguments, &variables, b"")
        };
        tokio::task::spawn_blocking(run).await.unwrap()
    }

    /// The code, and the document that it prints.
    pub(crate) async fn json(&self, arguments: &[&str]) -> (i32, Value) {
        let ran = self.run(&[arguments, &["--json"]].concat()).await;
        assert_eq!(ran.err, "");
        (ran.code, serde_json::from_str(&ran.out).expect(&ran.out))
    }

    /// The object in each line of a list.
    pub(crate) async fn lines(&self, arguments: &[&str]) -> Vec<Value> {
        let ran = self.run(&[arguments, &["--json"]].concat()).await;
        assert_eq!((ran.code, &*ran.err), (0, ""));
        ran.out.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    }

    pub(crate) async fn done(&self, consumer: &str, text: &str) {
        lock((consumer, text), &self.store).run(async { Ok(()) }).await.unwrap();
    }

    /// Many keys that are done, `po-1` and so on, in the file of a SQLite site: copies of one.
    pub(crate) async fn many(&self, count: i64) {
        self.done("orders", "po-1").await;
        let copies = "WITH RECURSIVE count (at) AS (SELECT 2 UNION ALL SELECT at + 1 FROM count WHERE at < $1) \
            INSERT INTO pushonce SELECT name || at, token, replace(document, 'po-1', 'po-' || at), written_at, \
            expires_at FROM pushonce, count";
        let copied = sqlx::query(copies).bind(count).execute(&self.file().await).await.unwrap();
        assert_eq!(copied.rows_affected(), count.unsigned_abs() - 1);
    }

    /// Past the store: the file of a SQLite site.
    pub(crate) async fn file(&self) -> SqlitePool {
        let url = self.variables.iter().find(|(name, _)| *name == "PUSHONCE_STORE");
        SqlitePool::connect(&url.unwrap().1).await.unwrap()
    }

    /// Leaves a claim that nobody works on any more, as a crash would.
    pub(crate) async fn held(&self, consumer: &str, text: &str, lease: Duration) {
        let guard = lock((consumer, text), &self.store).lease(lease).work_timeout(Duration::from_millis(1));
        guard.run(std::future::pending::<Result<(), _>>()).await.unwrap_err();
    }

    /// Leaves an entry in the ledger: the key is taken from its holder while it works.
    pub(crate) async fn uncertain(&self, consumer: &str, text: &str) {
        let (store, key) = (self.store.clone(), (consumer, text).into_key().unwrap());
        let taken = key.clone();
        let work = async move { Ok(reset(&store, &taken, Force::Yes).await?) };
        assert_eq!(lock(key, &self.store).run(work).await.unwrap(), Reset::Freed);
    }

    pub(crate) async fn submitted(&self, key: &str) -> Submitted {
        let submitter = Submitter::new(self.store.clone(), Arc::new(Nowhere), "projects/p/topics/t");
        submitter.submit("charge", &json!({"order": key})).idempotency_key(key).send().await.unwrap()
    }
}

/// Confirms what it drops.
#[derive(Debug)]
struct Nowhere;

impl Publisher for Nowhere {
    fn publish<'a>(&'a self, _: &'a str, _: &'a Message) -> BoxFuture<'a, Result<Arc<str>, PublishError>> {
        Box::pin(async { Ok("m-1".into()) })
    }
}

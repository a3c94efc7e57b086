//! The records of a submission: where they lie, what people read there, and that nothing else meets them.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures_util::TryStreamExt as _;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};
use pushonce::idempotent::{End, Follow as _};
use pushonce::publish::{Message, PublishError, Publisher};
use pushonce::store::{BoxFuture, Bucket, Filter, Maintain, Page};
use pushonce::submit::{Scope, Submission, SubmitError, Submitter, TaskId};
use pushonce::testing::ManualClock;
use pushonce::{Store, lock};
use serde_json::{Value, json};

use crate::report;
use crate::s3::S3;

/// What the golden documents were written under.
const KEY: &str = "pushonce/idempotency/acme@type:charge/04f5ebbced6354cb41b65c371b5fbbe3ba682b1a1e644dc8ddec7f5355c8a604.json";
const ID: &str = "019b76da-a800-710a-adec-89025cc1beeb";
const GOLDEN_KEY: &str = include_str!("../records/bucket/idempotency.json");
const GOLDEN_TASK: &str = include_str!("../records/bucket/task.json");

#[derive(Debug)]
struct Accepts;

impl Publisher for Accepts {
    fn publish<'a>(&'a self, _: &'a str, _: &'a Message) -> BoxFuture<'a, Result<Arc<str>, PublishError>> {
        Box::pin(async { Ok("1".into()) })
    }
}

fn submitter(store: Arc<dyn Store>) -> Submitter {
    Submitter::new(store, Arc::new(Accepts), "projects/p/topics/tasks")
}

fn charge(submitter: &Submitter) -> Submission {
    let input = json!({ "order": "ORD-123", "card": "tok-secret" });
    submitter.submit("charge", &input).tenant("acme").queue("eu").idempotency_key("charge-ORD-123")
}

/// The task of a key that is in progress.
async fn in_progress(submission: Submission) -> TaskId {
    match submission.send().await {
        Err(SubmitError::InProgress { task_id, .. }) => task_id,
        other => panic!("expected a task in progress: {other:?}"),
    }
}

async fn document(objects: &dyn ObjectStore, name: &str) -> String {
    let name = Path::parse(name).unwrap();
    let found = objects.get(&name).await.unwrap_or_else(|error| panic!("{name}: {error}"));
    String::from_utf8(found.bytes().await.unwrap().to_vec()).unwrap()
}

async fn names(objects: &dyn ObjectStore, prefix: &str) -> Vec<String> {
    let all = objects.list(Some(&Path::parse(prefix).unwrap()));
    let mut names: Vec<_> = all.map_ok(|object| object.location.to_string()).try_collect().await.unwrap();
    names.sort();
    names
}

/// The keys that a list brings, by pages of two.
async fn listed(store: &Bucket, prefix: &str) -> Vec<String> {
    let filter = Filter { prefix: prefix.to_owned(), ..Filter::default() };
    let (mut keys, mut after) = (Vec::new(), None);
    loop {
        let listing = store.list(&filter, &Page { after, limit: 2 }).await.unwrap();
        keys.extend(listing.found.into_iter().map(|found| {
            assert!(found.stored.is_ok(), "{found:?}");
            found.key
        }));
        after = listing.next;
        if after.is_none() {
            keys.sort();
            return keys;
        }
    }
}

/// A document without what is random in it. What people are shown is what the record holds.
fn without_chance(document: &str) -> Value {
    let mut document: Value = serde_json::from_str(document).unwrap();
    let id = document["shown"]["task_id"].as_str().unwrap().to_owned();
    let fields = document.as_object_mut().unwrap();
    let data = fields.remove("data").unwrap();
    let data = BASE64.decode(data.as_str().unwrap()).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&data).unwrap(), fields["shown"]);
    for name in ["token", "holder"] {
        fields.remove(name);
    }
    let shard = &id[id.len() - 1..];
    let text = document.to_string().replace(&format!("tasks/{shard}/{id}"), "tasks/S/ID").replace(&id, "ID");
    let mut document: Value = serde_json::from_str(&text).unwrap();
    if document["key"] == "pushonce-tasks:ID" {
        document["key_hash"].take();
    }
    document
}

#[tokio::test]
async fn a_submission_is_two_readable_objects_at_the_promised_places() {
    let objects = Arc::new(InMemory::new());
    let store = Arc::new(Bucket::new(objects.clone(), "pushonce").unwrap());
    let submitter = submitter(store).clock(Arc::new(ManualClock::new()));
    let id = charge(&submitter).send().await.unwrap().task.task_id.to_string();
    let shard = &id[id.len() - 1..];
    let task = format!("pushonce/tasks/{shard}/{id}.json");
    assert_eq!(names(&*objects, "pushonce").await, [KEY, &task]);
    for (name, golden) in [(KEY, GOLDEN_KEY), (&task, GOLDEN_TASK)] {
        let document = document(&*objects, name).await;
        assert_eq!(without_chance(&document), without_chance(golden), "{name}");
        assert!(!document.contains("tok-secret"), "{document}");
    }
    let key: Value = serde_json::from_str(&document(&*objects, KEY).await).unwrap();
    assert_eq!(key["shown"]["task_key"], json!(format!("tasks/{shard}/{id}.json")));
    assert_eq!(key["shown"]["key_hash"], key["key_hash"]);
}

/// What this version wrote is understood for ever.
#[tokio::test]
async fn golden_documents_name_their_task() {
    let objects = Arc::new(InMemory::new());
    let task = format!("pushonce/tasks/b/{ID}.json");
    for (name, golden) in [(KEY, GOLDEN_KEY), (&task, GOLDEN_TASK)] {
        objects.put(&Path::parse(name).unwrap(), golden.into()).await.unwrap();
    }
    let store = Arc::new(Bucket::new(objects.clone(), "pushonce").unwrap());
    let submitter = submitter(store);
    assert_eq!(in_progress(charge(&submitter)).await.to_string(), ID);
    submitter.tasks().ended(ID, End::Completed).await.unwrap();
    let again = charge(&submitter).send().await.unwrap();
    assert_eq!((again.duplicate, again.task.task_id.to_string()), (true, ID.to_owned()));
    let shown = |document: String| serde_json::from_str::<Value>(&document).unwrap()["shown"]["state"].take();
    for name in [KEY, &task] {
        assert_eq!(shown(document(&*objects, name).await), json!("completed"), "{name}");
    }
}

// F68
#[tokio::test]
async fn on_a_server_every_scope_and_key_names_a_task_of_its_own() {
    let s3 = S3::start().await;
    let store = Arc::new(s3.store());
    let submitter = submitter(store.clone());
    let long = "\u{e9}".repeat(64);
    let odd =
        ["a", "A", "..", ".", "a/b", "a:b", "a@b", "a%3Ab", "a b", "\u{e9}", "e\u{301}", "#?*|\"", &long];
    let scopes = odd.iter().map(|name| (None, Scope::Custom((*name).to_owned())));
    let tenants = odd.iter().map(|name| (Some(*name), Scope::Global));
    let places: Vec<_> = scopes.chain(tenants).chain([(Some(&*long), Scope::Custom(long.clone()))]).collect();
    let submit = |(tenant, scope): &(Option<&str>, Scope), key: &str| {
        let submission = submitter.submit("t", &1).scope(scope.clone()).idempotency_key(key);
        tenant.iter().fold(submission, |submission, tenant| submission.tenant(*tenant))
    };
    let mut tasks = Vec::new();
    for place in &places {
        for key in ["k", ".."] {
            tasks.push(submit(place, key).send().await.unwrap().task.task_id);
        }
    }
    let mut found = Vec::new();
    for place in &places {
        for key in ["k", ".."] {
            found.push(in_progress(submit(place, key)).await);
        }
    }
    assert_eq!(tasks, found);
    tasks.sort();
    tasks.dedup();
    assert_eq!(tasks.len(), places.len() * 2);

    let raw = s3.raw();
    let keys = names(&raw, &format!("{}/idempotency", s3.prefix)).await;
    assert_eq!(keys.len(), tasks.len());
    for name in keys {
        let shown = serde_json::from_str::<Value>(&document(&raw, &name).await).unwrap()["shown"].take();
        let task = format!("{}/{}", s3.prefix, shown["task_key"].as_str().unwrap());
        let task = serde_json::from_str::<Value>(&document(&raw, &task).await).unwrap()["shown"].take();
        assert_eq!(task["task_id"], shown["task_id"]);
        assert_eq!(task["scope"], shown["scope"]);
    }
    let ids: Vec<_> = tasks.iter().map(|id| format!("pushonce-tasks:{id}")).collect();
    assert_eq!(listed(&store, "pushonce-tasks:").await, ids);
    report::test("s3", "on_a_server_every_scope_and_key_names_a_task_of_its_own");
}

#[tokio::test]
async fn consumers_of_the_names_of_the_folders_meet_no_submission_and_each_is_listed_alone() {
    let store = Arc::new(Bucket::new(Arc::new(InMemory::new()), "pushonce").unwrap());
    let users = [("tasks", ID), ("idempotency", "acme@type:charge")];
    let shared: Arc<dyn Store> = store.clone();
    for user in users {
        lock(user, &shared).run(async { Ok(()) }).await.unwrap();
    }
    let submitter = submitter(store.clone());
    let mut ids = Vec::new();
    for key in ["1", "2", "3", "4", "5"] {
        ids.push(submitter.submit("t", &1).idempotency_key(key).send().await.unwrap().task.task_id);
    }
    for user in users {
        lock(user, &shared).run(async { Ok(()) }).await.unwrap_err();
        assert_eq!(listed(&store, &format!("{}:", user.0)).await, [format!("{}:{}", user.0, user.1)]);
    }
    let tasks: Vec<_> = ids.iter().map(|id| format!("pushonce-tasks:{id}")).collect();
    assert_eq!(listed(&store, "pushonce-tasks:").await, tasks);
    assert_eq!(listed(&store, &format!("pushonce-tasks:{}", ids[2])).await, tasks[2..3]);
    let keys = ["1", "2", "3", "4", "5"].map(|key| format!("pushonce-idempotency:6.type:t|1.{key}"));
    assert_eq!(listed(&store, "pushonce-idempotency:").await, keys);
    assert_eq!(listed(&store, "pushonce-").await.len(), 10);
    assert_eq!(listed(&store, "").await.len(), 12);
}

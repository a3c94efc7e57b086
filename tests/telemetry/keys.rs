//! Keys that are personal data: hashed in every line that names them, but for the one that somebody has to look into.

use std::sync::Arc;
use std::time::Duration;

use axum::routing::post;
use pushonce::store::chaos::{Fault, On};
use pushonce::store::{BoxFuture, Memory, Record, StoreError, Stored, Swap, Version};
use pushonce::{
    Failure, IdempotentLayer, IntoKey as _, Key, KeyInLogs, Lease, Outcome, Store, at_most_once, attribute,
    lock, mutex,
};

use crate::lines::{Entry, Lines};
use crate::world::{World, answering, app, message};

const MAIL: &str = "ada@example.org";
/// The first 32 hex digits of the SHA-256 of `orders:ada@example.org`.
const HASHED: &str = "orders:#07bf76b2a9c6470047594d8416074fdc";

fn hashed(world: &World) -> IdempotentLayer {
    world.layer().key(attribute("mail")).key_in_logs(KeyInLogs::Hashed)
}

async fn push(app: &axum::Router) -> Option<Outcome> {
    message("1").attribute("mail", MAIL).send(app).await.outcome
}

/// No line has the key; those that name it have its hash.
fn none_says_it(entries: &[Entry]) {
    assert!(!entries.is_empty());
    for entry in entries {
        assert!(!entry.says(MAIL) && !entry.says("ada"), "{entry:?}");
        assert_eq!(entry.text("key"), HASHED, "{entry:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_line_of_a_delivery_has_a_hashed_key_whatever_becomes_of_it() {
    let (lines, _guard) = Lines::capture();
    let world = World::new();
    let failing = || async { Err::<(), Failure>(format!("no account {MAIL}: {MAIL}").into()) };
    let panicking = post(async || -> () { panic!("{MAIL} is gone") });
    let quoting = post(async |lease: Lease| tracing::info!(key = %lease.key(), held = ?lease.key(), "mine"));
    let hook = hashed(&world).on(Outcome::Failed, |_| Err(format!("about {MAIL}").into()));
    push(&app(post(failing), hook)).await;
    push(&app(panicking, hashed(&world))).await;
    push(&app(quoting, hashed(&world))).await;
    push(&app(answering(200), hashed(&world))).await;
    push(&app(answering(200), hashed(&world).at_most_once())).await;
    world.chaos.always(On::Any, Fault::Fail);
    push(&app(answering(200), hashed(&world))).await;
    let entries = lines.entries();
    let events: Vec<_> = entries.iter().map(|entry| entry.text("event")).collect();
    assert_eq!(events, ["failed", "", "failed", "", "ran", "duplicate", "duplicate", "unavailable"]);
    none_says_it(&entries);
    assert!(entries[0].text("error").contains("no account #"), "{:?}", entries[0]);
}

#[tokio::test]
async fn misuse_names_the_hash() {
    let (lines, _guard) = Lines::capture();
    let world = World::new();
    let inside = app(answering(200), hashed(&world));
    mutex(("orders", MAIL), &world.store)
        .run(async move {
            assert_eq!(push(&inside).await, Some(Outcome::Misuse));
            Ok(())
        })
        .await
        .unwrap();
    let store = world.store.clone();
    let reentrant = post(async move || -> Result<(), Failure> {
        let key = ("orders", MAIL).into_key()?.in_logs(KeyInLogs::Hashed);
        Ok(lock(key, &store).run(async { Ok(()) }).await?)
    });
    assert_eq!(push(&app(reentrant, hashed(&world))).await, Some(Outcome::Misuse));
    let entries = lines.entries();
    none_says_it(&entries);
    assert!(entries.iter().all(|entry| entry.text("error").contains(HASHED)), "{entries:#?}");
}

/// A store whose errors quote what was asked of it, as some servers' do, for everything after a claim.
#[derive(Debug)]
struct Quoting(Memory);

impl Store for Quoting {
    fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Stored>, StoreError>> {
        self.0.read(key)
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        seen: Option<&'a Version>,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        if seen.is_none() {
            return self.0.swap(key, seen, next);
        }
        let error = StoreError::unavailable(format!("too much contention on {}", key.stored_name(1500)));
        Box::pin(async { Err(error) })
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_of_a_store_that_quotes_the_key_is_logged_without_it() {
    let (lines, _guard) = Lines::capture();
    let store: Arc<dyn Store> = Arc::new(Quoting(Memory::new()));
    let layer = IdempotentLayer::new("orders", store.clone()).key(attribute("mail"));
    let layer = layer.key_in_logs(KeyInLogs::Hashed).lease(Duration::from_secs(30)).renew();
    let slow = post(async || {
        tokio::time::sleep(Duration::from_secs(20)).await;
        http::StatusCode::BAD_GATEWAY
    });
    push(&app(slow, layer)).await;
    let entries = lines.entries();
    let said = |text: &str| entries.iter().filter(|entry| entry.text("message") == text).count();
    assert!(said("a lease was not renewed") > 0 && said("the end of the work is not stored yet") > 0);
    none_says_it(&entries);
}

#[tokio::test(start_paused = true)]
async fn nor_is_an_entity_that_a_store_quotes_before_the_work() {
    let (lines, _guard) = Lines::capture();
    let store: Arc<dyn Store> = Arc::new(QuotingEntities(Memory::new()));
    let layer = IdempotentLayer::new("orders", store).serialize(attribute("mail"));
    let app = app(answering(200), layer.key_in_logs(KeyInLogs::Hashed));
    assert_eq!(push(&app).await, Some(Outcome::Unavailable));
    let entry = lines.outcome();
    assert!(entry.text("error").contains("too much contention on") && !entry.says("ada"), "{entry:?}");
}

/// The same, for all that is asked of an entity.
#[derive(Debug)]
struct QuotingEntities(Memory);

impl Store for QuotingEntities {
    fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Stored>, StoreError>> {
        let error = StoreError::unavailable(format!("too much contention on {}", key.stored_name(1500)));
        Box::pin(async { Err(error) })
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

#[tokio::test(start_paused = true)]
async fn what_is_uncertain_has_the_key_in_full_since_somebody_has_to_look_into_it() {
    let (lines, _guard) = Lines::capture();
    let world = World::new();
    world.chaos.always(On::Complete, Fault::Fail);
    assert_eq!(push(&app(answering(200), hashed(&world))).await, Some(Outcome::Uncertain));
    let key = ("orders", MAIL).into_key().unwrap().in_logs(KeyInLogs::Hashed);
    world.chaos.heal();
    world.chaos.always(On::Complete, Fault::Fail);
    let other = ("verbs", MAIL).into_key().unwrap().in_logs(KeyInLogs::Hashed);
    lock(other, &world.store).run(async { Ok(()) }).await.unwrap();
    let entries = lines.entries();
    let (uncertain, rest): (Vec<_>, Vec<_>) =
        entries.iter().partition(|entry| entry.text("event") == "uncertain");
    let keys: Vec<_> = uncertain.iter().map(|entry| entry.text("key")).collect();
    assert_eq!(keys, ["orders:ada@example.org", "verbs:ada@example.org"]);
    assert!(!rest.is_empty() && rest.iter().all(|entry| !entry.says(MAIL)), "{rest:#?}");
    assert_eq!(key.to_string(), HASHED);
}

#[tokio::test(start_paused = true)]
async fn the_entity_of_serialize_is_hashed_with_its_key() {
    let (lines, _guard) = Lines::capture();
    let world = World::new();
    let layer = || world.layer().serialize(attribute("mail")).key_in_logs(KeyInLogs::Hashed);
    world.chaos.always(On::Release, Fault::Fail);
    push(&app(answering(200), layer())).await;
    let entries = lines.entries();
    assert!(
        entries.iter().any(|entry| entry.text("key").starts_with("pushonce-serialize:#")),
        "{entries:#?}"
    );
    assert!(entries.iter().all(|entry| !entry.says("ada")), "{entries:#?}");
}

/// As `Format::Human` writes it, to where a test can read it.
#[tokio::test(start_paused = true)]
async fn a_key_with_a_line_break_writes_no_line_of_its_own_for_people() {
    let (page, other) = (Lines::default(), Lines::capture());
    drop(other);
    let writer = page.clone();
    let human = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone());
    let _guard = tracing::subscriber::set_default(human.finish());
    let world = World::new();
    let forged = "1\n2026-01-01T00:00:00Z ERROR forged: \u{1b}[31mred";
    let failing = post(async move || Err::<(), Failure>(format!("no {forged}").into()));
    let app = app(failing, world.layer().key(attribute("id")));
    assert_eq!(message("1").attribute("id", forged).send(&app).await.outcome, Some(Outcome::Failed));
    let marked = || at_most_once(("verbs", forged), &world.store).run(async { Err::<(), _>(forged.into()) });
    assert!(marked().await.is_err());
    let (written, ours) =
        (page.text(), |line: &&str| line.contains("orders:1\\n") || line.contains("verbs:1\\n"));
    let lines: Vec<_> = written.lines().collect();
    assert!(lines.len() >= 2 && lines.iter().all(ours), "{written}");
    assert!(!written.contains('\u{1b}'), "{written:?}");
}

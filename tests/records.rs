//! Golden records: what version 1 wrote is understood for ever, byte for byte.
#![cfg(test)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::{Router, routing::post};
use bytes::Bytes;
use pushonce::store::record::{Ended, Id, Progress, Receipt, State, Verb};
use pushonce::store::{BoxFuture, Memory, Record, Standing, StoreError, Stored, Swap, Version};
use pushonce::{Ack, Failure, IdempotentLayer, IntoKey, Key, RunError, Store, lock};
use serde_json::json;
use tower::ServiceExt as _;

/// When the golden records were written.
const WRITTEN: u64 = 1_700_000_000_000_000;
const HOLDER: Id = Id::from_bits(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff);
const LEASE: Duration = Duration::from_secs(900);
const TTL: Duration = Duration::from_secs(604_800);

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/records/v1")
}

fn document(name: &str) -> Vec<u8> {
    fs::read(folder().join(format!("{name}.json"))).unwrap()
}

fn golden(name: &str) -> Record {
    Record::decode(&document(name)).unwrap()
}

fn key() -> Key {
    ("orders", "po-1").into_key().unwrap()
}

#[test]
fn every_golden_record_comes_back_byte_for_byte() {
    let names = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let stems = names.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned());
    let mut ours: Vec<_> = stems.filter(|name| name != "newer_major").collect();
    ours.sort_unstable();
    let all =
        ["claimed", "done", "everything", "mutex", "newer_minor", "rejected", "released", "reset", "started"];
    assert_eq!(ours, all);
    for name in ours {
        let encoded = String::from_utf8(golden(&name).encode().unwrap()).unwrap();
        assert_eq!(encoded, String::from_utf8(document(&name)).unwrap(), "{name}");
    }
}

#[test]
fn every_state_is_decoded_as_it_was_meant() {
    for (name, state, verb, ended, runs, progress) in [
        ("claimed", State::Claimed, Verb::Lock, Ended::Fresh, 0, None),
        ("mutex", State::Claimed, Verb::Mutex, Ended::Fresh, 0, None),
        ("released", State::Released, Verb::Lock, Ended::Failed, 2, None),
        ("reset", State::Released, Verb::Lock, Ended::Fresh, 0, None),
        ("done", State::Done, Verb::Lock, Ended::Fresh, 0, Some(Progress::Finished)),
        ("started", State::Done, Verb::AtMostOnce, Ended::Fresh, 0, Some(Progress::Started)),
        ("rejected", State::Done, Verb::Lock, Ended::Fresh, 0, Some(Progress::Rejected)),
    ] {
        let record = golden(name);
        assert_eq!((record.format, record.lease, record.written), (100, LEASE, WRITTEN), "{name}");
        assert_eq!(
            (record.state, record.verb, record.ended, record.runs),
            (state, verb, ended, runs),
            "{name}"
        );
        assert_eq!(record.receipt.map(|receipt| receipt.progress), progress, "{name}");
        assert_eq!(record.holder, (name != "reset").then_some(HOLDER), "{name}");
        assert_eq!(record.ttl, if verb == Verb::Mutex { Duration::ZERO } else { TTL }, "{name}");
        assert_eq!((record.aged, record.digest, record.data), (Duration::ZERO, None, Bytes::new()), "{name}");
        assert!(record.unknown.is_empty(), "{name}");
    }
}

#[test]
fn every_field_is_decoded_as_it_was_meant() {
    let mut digest = [0; 32];
    let hex = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    for (at, byte) in digest.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap();
    }
    let receipt = Receipt {
        progress: Progress::Finished,
        at: WRITTEN - 1,
        message: Some("m-0".into()),
        delivery: Some("projects/p1/subscriptions/charge".into()),
    };
    let meant = Record {
        format: 100,
        state: State::Claimed,
        verb: Verb::Lock,
        fence: WRITTEN,
        holder: Some(HOLDER),
        token: Id::from_bits(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef),
        lease: LEASE,
        ttl: TTL,
        aged: Duration::from_micros(1_234_567),
        runs: 3,
        ended: Ended::Unknown,
        digest: Some(digest),
        receipt: Some(receipt),
        data: Bytes::from_static(b"\x00\xffpushonce"),
        written: WRITTEN,
        expires: WRITTEN + 900_000_000 + 604_800_000_000 + 86_400_000_000,
        unknown: serde_json::Map::new(),
    };
    assert_eq!(golden("everything"), meant);
}

#[tokio::test]
async fn unknown_fields_of_a_newer_minor_survive_claim_and_complete() {
    let memory = Arc::new(Memory::new());
    let store: Arc<dyn Store> = memory.clone();
    let newer = golden("newer_minor");
    assert!(matches!(memory.swap(&key(), None, &newer).await.unwrap(), Swap::Written(_)));
    let watch = store.clone();
    lock(key(), &store)
        .run(async move {
            let held = watch.read(&key()).await?.expect("a claim stands").record;
            assert_eq!((held.state, held.unknown["colour"].clone()), (State::Claimed, json!("blue")));
            Ok(())
        })
        .await
        .unwrap();
    let done = store.read(&key()).await.unwrap().unwrap().record;
    assert_eq!((done.state, done.format), (State::Done, 101));
    assert_eq!(done.unknown, newer.unknown);
    assert_eq!(done.unknown["region"], json!({ "name": "europe-west1", "zones": [1, 2] }));
}

/// A store that keeps one document, as a server does. `Memory` keeps records of this very version, in
/// which a newer one cannot even be said.
#[derive(Debug)]
struct Paper(Mutex<Option<(u64, Vec<u8>)>>);

impl Paper {
    fn stored(&self) -> Result<Option<Stored>, StoreError> {
        let standing = self.0.lock().unwrap();
        let Some((version, document)) = &*standing else { return Ok(None) };
        let (record, version) = (Record::decode(document)?, Version::number(*version));
        Ok(Some(Stored { record, version, age: Duration::ZERO }))
    }
}

impl Store for Paper {
    fn read<'a>(&'a self, _: &'a Key) -> BoxFuture<'a, Result<Option<Stored>, StoreError>> {
        Box::pin(async { self.stored() })
    }

    fn swap<'a>(
        &'a self,
        _: &'a Key,
        seen: Option<&'a Version>,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        Box::pin(async move {
            let mut standing = self.0.lock().unwrap();
            let version = standing.as_ref().map(|(version, _)| *version);
            if version != seen.and_then(Version::as_number) {
                return Ok(Swap::Lost(Standing::Unknown));
            }
            let version = version.unwrap_or_default() + 1;
            *standing = Some((version, next.encode()?));
            Ok(Swap::Written(Version::number(version)))
        })
    }
}

#[tokio::test]
async fn a_record_of_a_newer_major_is_refused_and_never_overwritten() {
    let paper = Arc::new(Paper(Mutex::new(Some((7, document("newer_major"))))));
    let store: Arc<dyn Store> = paper.clone();
    let refused = lock(key(), &store).run(async { Ok(()) }).await.unwrap_err();
    let RunError::Store(StoreError::NewerFormat { found: 200, limit: 200 }) = refused else {
        panic!("{refused:?}")
    };

    let handler = || async { Err::<Ack, Failure>("the handler must not run".into()) };
    let layer = IdempotentLayer::new("orders", store);
    let app: Router = Router::new().route("/", post(handler).layer(layer));
    let body = r#"{"message":{"messageId":"po-1","data":""}}"#;
    let answer = app.oneshot(http::Request::post("/").body(Body::from(body)).unwrap()).await.unwrap();
    let told = answer.headers()["pushonce-outcome"].to_str().unwrap();
    assert_eq!((answer.status().as_u16(), told), (503, "unavailable"));
    assert_eq!(*paper.0.lock().unwrap(), Some((7, document("newer_major"))));
}

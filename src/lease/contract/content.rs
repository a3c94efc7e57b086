//! Laws of what is kept: every field, unknown fields, data, and records of a newer format.

use std::time::Duration;

use bytes::Bytes;
use serde_json::json;

use super::trial::Trial;
use super::{Breach, must};
use crate::random;
use crate::store::record::{DATA_LIMIT, Ended, Progress, Receipt, Record, State, Verb};
use crate::store::{StoreError, Swap};

/// Writes it, reads it, and demands that it is the same.
async fn comes_back(t: &Trial, text: &str, next: &Record) -> Result<(), Breach> {
    let key = t.key(text)?;
    t.write(&key, None, next).await?;
    let read = t.stands(&key).await?.record;
    must!(read == *next, "{read:?} came back for {next:?}");
    Ok(())
}

pub(super) async fn every_field_comes_back(t: &Trial) -> Result<(), Breach> {
    let receipt = Receipt {
        progress: Progress::Finished,
        at: u64::MAX,
        message: Some("m \"1\" ✓ \u{1F600} \0".into()),
        delivery: Some("projects/p/subscriptions/s".into()),
    };
    let full = Record {
        state: State::Done,
        verb: Verb::AtMostOnce,
        // A number that a double would round.
        fence: (1 << 53) + 1,
        aged: Duration::from_micros(1),
        runs: u32::MAX,
        ended: Ended::Unknown,
        digest: Some([0xa5; 32]),
        receipt: Some(receipt),
        data: Bytes::from_static(b"\0\xff\r\n"),
        ..t.record()
    };
    comes_back(t, "full", &full).await?;
    let extreme = Record {
        state: State::Released,
        verb: Verb::Mutex,
        fence: u64::MAX,
        lease: Duration::from_micros(u64::MAX),
        ttl: Duration::ZERO,
        aged: Duration::from_micros(u64::MAX),
        written: 0,
        ..t.record()
    };
    comes_back(t, "extreme", &extreme).await?;
    comes_back(t, "least", &Record { holder: None, runs: 0, ended: Ended::Fresh, ..t.record() }).await
}

pub(super) async fn unknown_fields_come_back(t: &Trial) -> Result<(), Breach> {
    let mut next = Record { format: 101, ..t.record() };
    next.unknown.insert("colour".into(), json!("blue"));
    next.unknown.insert("nested".into(), json!({ "a": [1, null, true, "é"], "b": { "c": 1.5 } }));
    comes_back(t, "k", &next).await
}

pub(super) async fn data_at_the_limit_comes_back(t: &Trial) -> Result<(), Breach> {
    let every_byte = (0..DATA_LIMIT).map(|at| at.to_le_bytes()[0] ^ at.to_le_bytes()[1]).collect::<Vec<_>>();
    comes_back(t, "k", &Record { data: every_byte.into(), ..t.record() }).await
}

pub(super) async fn data_over_the_limit_is_refused(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    let next = Record { data: vec![0; DATA_LIMIT + 1].into(), ..t.record() };
    match t.store().swap(&key, None, &next).await {
        Err(StoreError::Refused { .. }) => {}
        other => return Err(Breach::new(format!("data over the limit was answered {other:?}"))),
    }
    must!(t.read(&key).await?.is_none(), "data over the limit was refused and written");
    Ok(())
}

pub(super) async fn a_newer_major_is_neither_absent_nor_overwritten(t: &Trial) -> Result<(), Breach> {
    let key = t.key("k")?;
    t.write(&key, None, &Record { format: 200, ..t.record() }).await?;
    let newer = |error: &StoreError| matches!(error, StoreError::NewerFormat { found: 200, .. });
    for _ in 0..2 {
        match t.store().read(&key).await {
            Err(error) if newer(&error) => {}
            other => return Err(Breach::new(format!("a read answered {other:?}"))),
        }
        match t.store().swap(&key, None, &Record { token: random::id(), ..t.record() }).await {
            Ok(Swap::Lost(_)) => {}
            Err(error) if newer(&error) => {}
            other => return Err(Breach::new(format!("a create answered {other:?}"))),
        }
        match t.client(&key).try_claim().await {
            Err(error) if newer(&error) => {}
            other => return Err(Breach::new(format!("a claim answered {other:?}"))),
        }
    }
    Ok(())
}

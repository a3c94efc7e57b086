//! The table in numbers: what each write starts anew, and what it keeps.

use bytes::Bytes;

use super::*;
use crate::store::Version;

const ME: Id = Id::from_bits(1);
const NOW: u64 = 1_000_000;
const STAMP: Stamp = Stamp { now: NOW, token: Id::from_bits(3) };

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn receipt(progress: Progress, at: u64) -> Option<Receipt> {
    Some(Receipt { progress, at, message: Some("m".into()), delivery: None })
}

fn note() -> Note {
    Note { message: Some("m".into()), delivery: None }
}

/// A record of ours with something in every field, rewritten when it was 3 s old.
fn record(state: State, progress: Progress) -> Record {
    Record {
        state,
        fence: 100,
        holder: Some(ME),
        aged: secs(3),
        runs: 2,
        ended: Ended::Failed,
        digest: Some([1; 32]),
        receipt: receipt(progress, 7),
        data: Bytes::from_static(b"data"),
        ..Record::blank(Verb::Lock, secs(10), secs(100))
    }
}

fn stored(record: Record, age: Duration) -> Stored {
    Stored { record, version: Version::number(1), age }
}

fn ask(verb: Verb) -> Ask {
    Ask { note: note(), ..Ask::new(verb, secs(20), secs(200), Id::from_bits(2)) }
}

fn written(step: Step) -> Record {
    match step {
        Step::Write(next) => *next,
        Step::Answer(answer) => panic!("nothing is written: {answer:?}"),
    }
}

fn taken(verdict: Verdict) -> Record {
    match verdict {
        Verdict::Take(next) => *next,
        other => panic!("not taken: {other:?}"),
    }
}

/// Every write of the table, by name: what it was made of, and what it is.
fn writes() -> Vec<(String, Record, Record)> {
    let mut writes = Vec::new();
    let claimed = record(State::Claimed, Progress::Finished);
    let started = record(State::Done, Progress::Started);
    let undo = || Op::Undo(receipt(Progress::Rejected, 5));
    for op in [
        Op::Renew,
        Op::Complete(note()),
        Op::Reject(note()),
        Op::Release(Ended::Failed),
        Op::Release(Ended::Unknown),
        Op::Release(Ended::Fresh),
        undo(),
    ] {
        let next = written(settle(&op, ME, &claimed, || secs(4), STAMP));
        writes.push((format!("{op:?}"), claimed.clone(), next));
    }
    let next = written(settle(&undo(), ME, &started, || secs(4), STAMP));
    writes.push(("undo of a mark".into(), started, next));
    for (name, found, age) in [
        ("released", record(State::Released, Progress::Rejected), 0),
        ("lapsed", claimed, 8),
        ("expired", record(State::Done, Progress::Finished), 98),
    ] {
        for verb in [Verb::Lock, Verb::Mutex, Verb::AtMostOnce] {
            let next = taken(claim(&ask(verb), Some(&stored(found.clone(), secs(age))), STAMP));
            writes.push((format!("{verb} takes {name}"), found.clone(), next));
        }
        if name != "released" {
            let Reset::Write(next) = reset(&stored(found.clone(), secs(age)), Force::No, STAMP) else {
                panic!("{name} is not reset")
            };
            writes.push((format!("reset of {name}"), found, *next));
        }
    }
    writes
}

#[test]
fn every_write_starts_age_anew_under_a_fresh_token_and_keeps_what_the_lease_does_not_know() {
    for (name, found, next) in writes() {
        assert_eq!((next.aged, next.token, next.written), (Duration::ZERO, STAMP.token, NOW), "{name}");
        assert_eq!(next.data, found.data, "{name}");
        let kept = if next.state == State::Claimed { next.lease + next.ttl } else { next.ttl };
        let day = secs(24 * 60 * 60);
        assert_eq!(next.expires, NOW + duration_micros(kept + day), "{name}");
    }
}

#[test]
fn the_fence_rises_with_every_claim_and_release_and_with_nothing_else() {
    for (name, found, next) in writes() {
        let same = ["Renew", "Complete", "Reject"].into_iter().any(|op| name.starts_with(op));
        assert_eq!(next.fence, if same { found.fence } else { NOW }, "{name}");
    }
    // Also by a clock that is behind.
    let behind = Stamp { now: 5, ..STAMP };
    let late = higher(record(State::Claimed, Progress::Finished), behind);
    assert_eq!(late.fence, 101);
}

#[test]
fn a_claim_is_of_its_own_verb_lease_ttl_holder_and_payload() {
    let found = record(State::Released, Progress::Rejected);
    for verb in [Verb::Lock, Verb::Mutex, Verb::AtMostOnce] {
        let next = taken(claim(&ask(verb), Some(&stored(found.clone(), secs(0))), STAMP));
        let (state, ttl, told) = match verb {
            Verb::Lock => (State::Claimed, 200, found.receipt.clone()),
            Verb::Mutex => (State::Claimed, 0, found.receipt.clone()),
            Verb::AtMostOnce => (State::Done, 200, receipt(Progress::Started, NOW)),
        };
        assert_eq!((next.state, next.verb, next.lease, next.ttl), (state, verb, secs(20), secs(ttl)));
        assert_eq!((next.holder, next.digest, next.receipt), (Some(Id::from_bits(2)), None, told), "{verb}");
    }
}

#[test]
fn the_next_run_is_told_how_the_ones_before_it_ended() {
    let history = |name: &str| {
        let found = writes().into_iter().find(|(other, ..)| other.starts_with(name));
        let next = found.unwrap_or_else(|| panic!("no write {name}")).2;
        (next.runs, next.ended)
    };
    assert_eq!(history("Release(Failed)"), (3, Ended::Failed));
    assert_eq!(history("Release(Unknown)"), (3, Ended::Unknown));
    assert_eq!(history("Release(Fresh)"), (0, Ended::Fresh));
    // Its work never began.
    assert_eq!(history("Undo"), (2, Ended::Failed));
    assert_eq!(history("lock takes released"), (2, Ended::Failed));
    assert_eq!(history("lock takes lapsed"), (3, Ended::Unknown));
    assert_eq!(history("lock takes expired"), (0, Ended::Fresh));
    assert_eq!(history("reset of lapsed"), (3, Ended::Unknown));
    assert_eq!(history("reset of expired"), (0, Ended::Fresh));
}

#[test]
fn a_mark_keeps_its_window_whatever_its_holder_writes() {
    let mark = record(State::Done, Progress::Started);
    for (held, aged) in [(4, 4), (99, 99), (101, 100)] {
        let next = |op| written(settle(&op, ME, &mark, || secs(held), STAMP));
        let renewed = next(Op::Renew);
        assert_eq!((renewed.aged, &renewed.receipt), (secs(aged), &mark.receipt));
        let finished = next(Op::Complete(note()));
        assert_eq!((finished.aged, finished.receipt), (secs(aged), receipt(Progress::Finished, NOW)));
        let rejected = next(Op::Reject(note()));
        assert_eq!((rejected.aged, rejected.receipt), (secs(aged), receipt(Progress::Rejected, NOW)));
    }
}

#[test]
fn what_is_undone_is_told_as_it_was_found() {
    for state in [State::Claimed, State::Done] {
        let found = receipt(Progress::Rejected, 5);
        let step = settle(&Op::Undo(found.clone()), ME, &record(state, Progress::Started), || secs(4), STAMP);
        let next = written(step);
        assert_eq!((next.state, next.receipt), (State::Released, found), "{state:?}");
    }
}

#[test]
fn a_write_that_forestalls_a_claim_changes_nothing_for_the_holder_that_stands() {
    let found = record(State::Claimed, Progress::Finished);
    let next = forestall(&ask(Verb::Lock), Some(&stored(found.clone(), secs(5))), STAMP);
    // As old as it was.
    assert_eq!((next.aged, next.token), (secs(8), STAMP.token));
    let aside = Record { aged: found.aged, token: found.token, written: 0, expires: 0, ..next };
    assert_eq!(aside, found);

    // Where nothing stood, what is written is ours to find, released, and without a run.
    let next = forestall(&ask(Verb::Lock), None, STAMP);
    assert_eq!((next.state, next.holder, next.fence), (State::Released, Some(Id::from_bits(2)), NOW));
    assert_eq!((next.runs, next.ended), (0, Ended::Fresh));
}

#[test]
fn a_live_record_of_a_verb_that_excludes_the_asked_one_is_misuse_and_a_free_one_is_not() {
    for (verb, asked, misuse) in [
        (Verb::Lock, Verb::Mutex, true),
        (Verb::Mutex, Verb::Lock, true),
        (Verb::Mutex, Verb::AtMostOnce, true),
        (Verb::Lock, Verb::AtMostOnce, false),
        (Verb::Mutex, Verb::Mutex, false),
    ] {
        let held = Record { verb, ..record(State::Claimed, Progress::Finished) };
        for (age, live) in [(1, true), (7, false)] {
            let verdict = claim(&ask(asked), Some(&stored(held.clone(), secs(age))), STAMP);
            let case = format!("{asked} on {verb} after {age} s: {verdict:?}");
            match verdict {
                Verdict::Misuse { stands } => assert!(misuse && live && stands == verb, "{case}"),
                // What is left of 10 s, of which 3 were over when it was rewritten.
                Verdict::Held { left } => assert!(!misuse && live && left == secs(6), "{case}"),
                Verdict::Take(_) => assert!(!live, "{case}"),
                Verdict::Done { .. } => panic!("{case}"),
            }
        }
    }
}

#[test]
fn a_reset_spares_who_may_be_at_work_unless_it_is_forced_and_leaves_no_holder() {
    let claimed = record(State::Claimed, Progress::Finished);
    let started = record(State::Done, Progress::Started);
    for record in [claimed, started] {
        let at = |age, force| reset(&stored(record.clone(), secs(age)), force, STAMP);
        assert!(matches!(at(1, Force::No), Reset::Held { left } if left == secs(6)));
        for step in [at(1, Force::Yes), at(7, Force::No)] {
            let Reset::Write(next) = step else { panic!("spared: {step:?}") };
            assert_eq!((next.state, next.holder), (State::Released, None));
            assert_eq!((next.runs, next.ended), (3, Ended::Unknown));
        }
    }
    let released = stored(record(State::Released, Progress::Finished), secs(0));
    assert!(matches!(reset(&released, Force::Yes, STAMP), Reset::Free));
}

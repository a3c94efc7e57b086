//! That the storm's own judgement can fail: what must not be is found, one fault at a time.

use std::collections::BTreeMap;
use std::time::Duration;

use pushonce::History;

use crate::came::Came;
use crate::causes::{Cause, Life, Run, repeats};
use crate::fate::{Act, Fate, Point};
use crate::gate::Counted;
use crate::journal::{Line, Name, Said};
use crate::load::Published;
use crate::work::Mode;

#[test]
fn a_repeat_has_the_cause_that_somebody_saw() {
    let killed = Life { killed: Some(2_000_000), ..Life::default() };
    let stood = Life { stood: vec![(2_000_000, 8_000_000)], ..Life::default() };
    let stood_then_killed = Life { killed: Some(8_500_000), ..stood.clone() };
    let lived = Life::default();
    let uncertain = |at| Some((at, "uncertain".to_owned()));
    for (life, ended, cause) in [
        (&killed, None, Cause::Killed),
        (&stood, uncertain(8_100_000), Cause::Stopped),
        (&stood_then_killed, None, Cause::Stopped),
        (&lived, uncertain(7_000_000), Cause::Late),
        (&lived, uncertain(1_500_000), Cause::Unrecorded),
        (&lived, Some((1_500_000, "failed".to_owned())), Cause::Failed),
    ] {
        assert_eq!(told(life, ended, false, History::Unknown { runs: 1 }, 5_000_000), Ok(cause));
    }
}

#[test]
fn a_repeat_that_nothing_explains_is_found() {
    let (lived, killed) = (Life::default(), Life { killed: Some(2_000_000), ..Life::default() });
    // It stood, but before it began, or when it had been repeated.
    let stood = |stood| Life { stood: vec![stood], ..Life::default() };
    let (before, within, after) =
        (stood((100, 900_000)), stood((2_000_000, 9_000_000)), stood((5_500_000, 9_000_000)));
    let ended = |outcome: &str| Some((1_500_000, outcome.to_owned()));
    let (recorded, otherwise) = ("it was run again although it was recorded", "how it ended is no cause");
    let (unknown, late) = (History::Unknown { runs: 1 }, 5_000_000);
    for (life, ended, recorded, history, began, why) in [
        (&lived, ended("ran"), false, unknown, late, recorded),
        (&within, ended("ran"), false, unknown, late, recorded),
        (&killed, None, true, unknown, late, recorded),
        (&lived, ended("lost"), false, unknown, late, otherwise),
        (&before, ended("lost"), false, unknown, late, otherwise),
        (&after, ended("lost"), false, unknown, late, otherwise),
        (&lived, None, false, unknown, late, "nobody knows how it ended"),
        (&killed, None, false, unknown, 3_999_999, "it was taken over within its lease"),
        (&killed, None, false, History::Fresh, late, "the repeat was not told of the runs before it"),
    ] {
        assert_eq!(told(life, ended, recorded, history, began), Err(why));
    }
}

/// What is said of a run that began after a second, on a lease of three, and of one that began then.
fn told(
    life: &Life,
    ended: Option<(u64, String)>,
    recorded: bool,
    history: History,
    began: u64,
) -> Result<Cause, &'static str> {
    let run = |began: u64, history| {
        let name = Name { key: "po-1".to_owned(), fence: began };
        Run { name, life: 0, began, history, recorded: false, point: None, ended: None }
    };
    let earlier = Run { recorded, ended, ..run(1_000_000, History::Fresh) };
    let lives = [life.clone()];
    let runs = [earlier, run(began, history)];
    repeats(&runs, &lives, Duration::from_secs(3)).next().unwrap().cause
}

/// A storm over one order, in which all that a storm must show has happened once; then changed.
fn faults_of(
    change: impl FnOnce(&mut Published, &mut Vec<(Fate, Life)>, &mut Vec<(String, String)>),
) -> Vec<String> {
    let name = |fence| Name { key: "po-1".to_owned(), fence };
    let run = |at, said| Line { at, name: name(at / 10_000_000 * 10_000_000), said };
    let began =
        |at, runs| run(at, Said::Began(if runs == 0 { History::Fresh } else { History::Unknown { runs } }));
    let at = |point| Line { at: 1, name: name(10_000_000), said: Said::CameTo(point) };
    let mut lives = Vec::new();
    // Killed in its run; stopped in its run; the last.
    lives.push((
        Fate::Spared,
        Life { killed: Some(11_000_000), lines: vec![began(10_000_000, 0)], ..Life::default() },
    ));
    let stood = vec![(21_000_000, 31_000_000)];
    lives.push((Fate::Spared, Life { stood, lines: vec![began(20_000_000, 1)], ..Life::default() }));
    let lines = vec![
        began(30_000_000, 2),
        run(30_000_001, Said::Recorded),
        run(30_000_002, Said::Ended("ran".to_owned())),
    ];
    lives.push((Fate::Spared, Life { lines, ..Life::default() }));
    for point in Point::KEYED {
        for act in [Act::Die, Act::Stand] {
            let lines = vec![at(point)];
            lives.push((Fate::At { point, act, nth: 1 }, Life { lines, ..Life::default() }));
        }
    }
    let mut published = Published::from([("m-1".to_owned(), "po-1".to_owned())]);
    let mut effects = vec![("po-1".to_owned(), "id-1".to_owned()); 3];
    change(&mut published, &mut lives, &mut effects);
    let told = BTreeMap::from([("duplicate".to_owned(), 1), ("in-progress".to_owned(), 1)]);
    let mut gate = Counted::default();
    gate.told = told;
    Came::of(Mode::Supplier, &published, &gate, &lives, &effects).1
}

#[test]
fn what_must_not_be_is_found() {
    assert_eq!(faults_of(|_, _, _| ()), [""; 0]);
    let lost = faults_of(|published, _, _| drop(published.insert("m-2".to_owned(), "po-2".to_owned())));
    assert_eq!(lost, ["po-2 has 0 effects"]);
    let twice = faults_of(|_, _, effects| effects.push(("po-1".to_owned(), "id-2".to_owned())));
    assert_eq!(twice, ["po-1 has 2 effects"]);
    let never = faults_of(|_, lives, _| drop(lives.pop()));
    assert_eq!(never, ["nobody came to complete-answered, to Stand there"]);
    let unexplained = faults_of(|_, lives, _| lives[1].1.stood.clear());
    assert!(unexplained[0].starts_with("nobody knows how it ended"), "{unexplained:?}");
    let again = faults_of(|_, lives, _| {
        let recorded = lives[2].1.lines[1].clone();
        let name = Name { fence: 20_000_000, ..recorded.name };
        lives[1].1.lines.push(Line { name, ..recorded });
    });
    assert!(again.iter().any(|fault| fault.starts_with("two runs of one key were recorded")), "{again:?}");
}

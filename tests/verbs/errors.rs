//! Errors: each variant's own type is a source, so it survives a box; and `?` takes any error in the work.

use std::error::Error;

use pushonce::store::chaos::{Fault, On};
use pushonce::store::{BoxError, StoreError};
use pushonce::{InvalidKey, Misuse, Panicked, RunError, Shutdown, Skip, lock};

use crate::world::{SECOND, World, begin, find};

/// As anyhow does: only the sources of what was put in are seen from outside.
#[derive(Debug, thiserror::Error)]
#[error("while charging")]
struct Context(#[source] BoxError);

fn boxed(error: RunError) -> BoxError {
    Box::new(Context(error.into()))
}

fn assert_portable<T: Error + Send + Sync + 'static>() {}

#[test]
fn every_error_can_be_sent_and_kept() {
    assert_portable::<RunError>();
    assert_portable::<Skip>();
    assert_portable::<Misuse>();
    assert_portable::<Shutdown>();
    assert_portable::<StoreError>();
    assert_portable::<InvalidKey>();
    assert_portable::<pushonce::InvalidSetting>();
}

#[tokio::test(start_paused = true)]
async fn every_variant_has_its_own_type_as_its_source() {
    let world = World::new();
    world.lock("done").run(async { Ok(()) }).await.unwrap();
    let error = boxed(world.lock("done").run(async { Ok(()) }).await.unwrap_err());
    assert!(matches!(find::<Skip>(&*error), Some(Skip::Duplicate { .. })), "{error:?}");
    assert!(find::<RunError>(&*error).unwrap().source().unwrap().is::<Skip>());

    let work = std::future::pending::<Result<(), _>>();
    let holder = begin(world.lock("held").run(work)).await;
    let error = boxed(world.lock("held").run(async { Ok(()) }).await.unwrap_err());
    assert!(matches!(find::<Skip>(&*error), Some(Skip::InProgress { .. })), "{error:?}");
    holder.abort();

    let error = boxed(world.mutex("done").run(async { Ok(()) }).await.unwrap_err());
    assert!(find::<RunError>(&*error).unwrap().source().unwrap().is::<Misuse>());

    let error = boxed(world.lock(" ").run(async { Ok(()) }).await.unwrap_err());
    assert!(find::<RunError>(&*error).unwrap().source().unwrap().is::<InvalidKey>());

    let io = async { Ok(std::fs::read("/no/such/file")?) };
    let error = boxed(world.lock("io").run(io).await.unwrap_err());
    assert!(find::<RunError>(&*error).unwrap().source().unwrap().is::<std::io::Error>());

    let error = boxed(world.lock("panic").run::<(), _>(async { panic!("no") }).await.unwrap_err());
    assert!(find::<RunError>(&*error).unwrap().source().unwrap().is::<Panicked>());

    world.chaos.always(On::Any, Fault::Fail);
    let error = boxed(world.lock("down").run(async { Ok(()) }).await.unwrap_err());
    assert!(find::<RunError>(&*error).unwrap().source().unwrap().is::<StoreError>());
    assert!(RunError::Shutdown(Shutdown).source().unwrap().is::<Shutdown>());
}

#[tokio::test(start_paused = true)]
async fn a_store_that_refuses_for_good_is_an_error_at_once() {
    let (world, began) = (World::new(), tokio::time::Instant::now());
    world.chaos.always(On::Any, Fault::Refuse);
    let refused = world.lock("k").run(async { Ok(()) }).await;
    assert!(matches!(&refused, Err(RunError::Store(StoreError::Refused { .. }))), "{refused:?}");
    assert!(began.elapsed().is_zero());
}

#[tokio::test(start_paused = true)]
async fn in_the_work_the_question_mark_takes_any_error() {
    fn text() -> Result<u8, String> {
        Err("a text".to_owned())
    }
    fn portable() -> Result<u8, BoxError> {
        Ok(1)
    }
    async fn of_its_own_type() -> Result<u8, std::num::ParseIntError> {
        "7".parse()
    }
    let world = World::new();
    let failed = world.lock("text").run(async { Ok(text()?) }).await.unwrap_err();
    assert_eq!(failed.source().unwrap().to_string(), "a text");
    let value = world.lock("number").run(async { Ok("1".parse::<u8>()? + portable()?) }).await.unwrap();
    assert_eq!(value, 2);
    assert_eq!(world.lock("wrapped").run(async { Ok(of_its_own_type().await?) }).await.unwrap(), 7);
    // A verb inside of a verb: its error is the outer work's.
    let store = world.store.clone();
    let nested =
        world.lock("outer").run(async move { Ok(lock("number", &store).run(async { Ok(()) }).await?) });
    assert!(matches!(find::<Skip>(&nested.await.unwrap_err()), Some(Skip::Duplicate { .. })));
}

#[test]
fn a_verb_is_shown_with_its_key_and_its_settings_and_without_its_store() {
    let shown = format!("{:?}", World::new().lock(("orders", "po-1")).lease(77 * SECOND));
    assert!(shown.contains("po-1") && shown.contains("77s") && !shown.contains("Memory"), "{shown}");
}

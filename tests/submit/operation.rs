//! The contract of `idempotent_operation`, by `at_most_once`, on every store: the first caller runs the
//! function and has its result, and whoever calls later within the ttl does not run it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use futures_util::future::join_all;
use pushonce::store::Store;
use pushonce::{RunError, at_most_once};
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::on_servers::on_servers;
use crate::site::Site;
use crate::world::eventually;

on_servers! {
    all {
        the_first_caller_runs_and_has_the_result_and_later_callers_do_not_run
        of_many_callers_at_once_one_runs
        a_function_that_failed_is_not_run_again
        a_crash_after_the_mark_is_not_run_again
        after_the_ttl_it_runs_anew
    }
}

/// As the document spells it: whether the function was executed, and its result.
async fn operation(
    store: &Arc<dyn Store>,
    ttl: Duration,
    ran: &Arc<AtomicUsize>,
) -> Result<(bool, Option<usize>), RunError> {
    let ran = ran.clone();
    let once = at_most_once(("receipts", "receipt:7"), store).ttl(ttl);
    let result = once.run(async move { Ok(ran.fetch_add(1, Ordering::SeqCst) + 1) }).await?;
    Ok((result.is_some(), result))
}

const DAY: Duration = Duration::from_secs(86_400);

async fn the_first_caller_runs_and_has_the_result_and_later_callers_do_not_run(site: &Site) {
    let ran = Arc::default();
    assert_eq!(operation(&site.store(), DAY, &ran).await.unwrap(), (true, Some(1)));
    for _ in 0..2 {
        assert_eq!(operation(&site.store(), DAY, &ran).await.unwrap(), (false, None));
    }
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

async fn of_many_callers_at_once_one_runs(site: &Site) {
    let (store, ran) = (site.store(), Arc::default());
    let answers = join_all((0..16).map(|_| operation(&store, DAY, &ran))).await;
    let executed = answers.into_iter().filter(|answer| answer.as_ref().unwrap().0).count();
    assert_eq!((executed, ran.load(Ordering::SeqCst)), (1, 1));
}

async fn a_function_that_failed_is_not_run_again(site: &Site) {
    let (store, ran) = (site.store(), Arc::default());
    let failing = at_most_once(("receipts", "receipt:7"), &store).ttl(DAY);
    let failed = failing.run(async { Err::<(), _>("no".into()) }).await;
    assert!(matches!(failed, Err(RunError::Work(_))), "{failed:?}");
    assert_eq!(operation(&store, DAY, &ran).await.unwrap(), (false, None));
    assert_eq!(ran.load(Ordering::SeqCst), 0);
}

async fn a_crash_after_the_mark_is_not_run_again(site: &Site) {
    let store = site.store();
    // Another runtime, which ends with all that runs on it while the function is at work.
    let crashed = tokio::task::spawn_blocking(move || {
        thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            let (begun, begins) = oneshot::channel();
            let work = async move {
                begun.send(()).map_err(|()| "nobody waits")?;
                std::future::pending::<()>().await;
                Ok(())
            };
            runtime.block_on(async {
                tokio::select! {
                    ended = at_most_once(("receipts", "receipt:7"), &store).ttl(DAY).run(work) => panic!("{ended:?}"),
                    begun = begins => begun.unwrap(),
                }
            });
            runtime.shutdown_background();
        })
        .join()
        .unwrap();
    });
    crashed.await.unwrap();
    let ran = Arc::default();
    for _ in 0..2 {
        assert_eq!(operation(&site.store(), DAY, &ran).await.unwrap(), (false, None));
    }
    assert_eq!(ran.load(Ordering::SeqCst), 0);
}

async fn after_the_ttl_it_runs_anew(site: &Site) {
    let (store, ran, ttl) = (site.store(), Arc::default(), Duration::from_secs(1));
    assert_eq!(operation(&store, ttl, &ran).await.unwrap(), (true, Some(1)));
    let anew = eventually("the ttl is over", async || operation(&store, ttl, &ran).await.unwrap().1).await;
    assert_eq!((anew, ran.load(Ordering::SeqCst)), (2, 2));
}

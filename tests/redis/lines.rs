//! Lines that fall silent or are cut, before and after the server has got the request.

use std::sync::Arc;
use std::time::Duration;

use pushonce::store::record::State;
use pushonce::{RunError, Skip, Store, lock};

use crate::cluster;
use crate::forwarder::{Cut, Forwarder};
use crate::redis_server::RedisServer;
use crate::{at, key, passes, record, report, standing, written};

const SHORT: Duration = Duration::from_millis(300);

#[tokio::test]
async fn a_server_that_fell_silent_is_given_up_within_the_request_timeout_and_dialled_anew() {
    let server = RedisServer::start(&[]);
    let line = Forwarder::to(server.port);
    let store = at(line.url()).request_timeout(SHORT).build().unwrap();
    let version = written(store.swap(&key("po-1"), None, &record(1)).await);
    line.silence();
    passes(&store.swap(&key("po-1"), Some(&version), &record(2)).await.unwrap_err(), true);
    // Nothing that is sent to a new connection is answered either: nothing was asked there yet.
    passes(&store.swap(&key("po-1"), Some(&version), &record(3)).await.unwrap_err(), false);
    passes(&store.read(&key("po-1")).await.unwrap_err(), false);
    line.resume();
    // The write that nobody waited for lands, and its token names it.
    while standing(&store, &key("po-1")).await.record.token != record(2).token {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    line.silence();
    passes(&store.read(&key("po-1")).await.unwrap_err(), false);
    report::test(
        "redis",
        "a_server_that_fell_silent_is_given_up_within_the_request_timeout_and_dialled_anew",
    );
}

#[tokio::test]
async fn a_silent_line_is_dialled_anew_also_when_its_caller_gave_up_first() {
    let server = RedisServer::start(&[]);
    let line = Forwarder::to(server.port);
    let store = at(line.url()).request_timeout(Duration::from_secs(60)).build().unwrap();
    let _ = written(store.swap(&key("po-1"), None, &record(1)).await);
    line.silence_open();
    assert!(tokio::time::timeout(SHORT, store.read(&key("po-1"))).await.is_err());
    let _ = standing(&store, &key("po-1")).await;
    assert_eq!(line.dialled(), 2);
    report::test("redis", "a_silent_line_is_dialled_anew_also_when_its_caller_gave_up_first");
}

#[tokio::test]
async fn a_connection_that_is_cut_leaves_a_write_open_and_is_replaced() {
    let server = RedisServer::start(&[]);
    let line = Forwarder::to(server.port);
    let store = at(line.url()).build().unwrap();
    let mut version = written(store.swap(&key("po-1"), None, &record(1)).await);
    for (cut, token) in [(Cut::BeforeTheWrite, 2), (Cut::AfterTheWrite, 3)] {
        line.cut_next(cut);
        passes(&store.read(&key("po-1")).await.unwrap_err(), false);
        // Dialled anew, so that it is the write that is cut next.
        let _ = standing(&store, &key("po-1")).await;
        line.cut_next(cut);
        let error = store.swap(&key("po-1"), Some(&version), &record(token)).await.unwrap_err();
        passes(&error, true);
        assert!(!line.has_next());
        let stored = standing(&store, &key("po-1")).await;
        assert_eq!(stored.record.token == record(token).token, cut == Cut::AfterTheWrite, "{cut:?}");
        version = stored.version;
    }
    report::test("redis", "a_connection_that_is_cut_leaves_a_write_open_and_is_replaced");
}

// F65
#[tokio::test]
async fn work_runs_once_whichever_answer_is_lost() {
    let server = RedisServer::start(&[]);
    for cut in [Cut::BeforeTheWrite, Cut::AfterTheWrite] {
        let line = Arc::new(Forwarder::to(server.port));
        let store: Arc<dyn Store> = Arc::new(at(line.url()).build().unwrap());
        assert!(store.read(&key("warm")).await.unwrap().is_none());
        line.cut_next(cut);
        let inside = line.clone();
        let work = async move {
            assert!(!inside.has_next(), "the claim was cut");
            inside.cut_next(cut);
            Ok(())
        };
        lock(key("po-1"), &store).run(work).await.unwrap();
        assert!(!line.has_next(), "the completion was cut");
        // A completion whose answer was lost may still be on its way.
        let mut stands = standing(&*store, &key("po-1")).await;
        while stands.record.state != State::Done {
            tokio::time::sleep(Duration::from_millis(20)).await;
            stands = standing(&*store, &key("po-1")).await;
        }
        let again = lock(key("po-1"), &store).run(async { Ok(()) }).await.unwrap_err();
        assert!(matches!(again, RunError::Skipped(Skip::Duplicate { .. })), "{again:?}");
    }
    report::test("redis", "work_runs_once_whichever_answer_is_lost");
}

/// The driver works on the runtime that dialled. Nothing but calls that fail tells that it has ended.
#[test]
fn a_connection_that_answers_nobody_any_more_is_replaced() {
    for (server, url, failures) in
        [("redis", crate::shared(), 1), ("redis-cluster", cluster::shared().url(), 3)]
    {
        let store = at(url).build().unwrap();
        let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let ended = runtime();
        let version = written(ended.block_on(store.swap(&key("po-1"), None, &record(1))));
        drop(ended);
        runtime().block_on(async {
            for _ in 0..failures {
                passes(&store.read(&key("po-1")).await.unwrap_err(), false);
            }
            assert_eq!(standing(&store, &key("po-1")).await.version, version);
        });
        report::test(server, "a_connection_that_answers_nobody_any_more_is_replaced");
    }
}

//! Connections: none is held while work runs, none is lost when a caller goes, and what a broken one
//! means for a write.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use futures_util::future::{join_all, poll_fn};
use pushonce::store::record::Id;
use pushonce::store::{self, Maintain as _, Sql, StoreError};
use pushonce::{IntoKey as _, RunError, Skip, Store, lock};
use sqlx::{MySql, Pool, Sqlite};
use tokio::net::TcpListener;
use tokio::sync::Barrier;

use crate::proxy::{Fate, Proxy};
use crate::server::{Place, Server, key, record, written};

on! {
    each [
        ten_handlers_begin_on_a_pool_of_two
        callers_that_hang_up_give_their_connections_back
        a_connection_goes_on_from_call_to_call_and_the_handlers_have_their_turn
        a_connection_passes_by_whoever_no_longer_waits
        a_call_without_a_connection_is_an_outage_and_nothing_was_written
        a_store_is_built_where_there_is_no_runtime_and_dials_nothing
    ]
    postgres [
        a_pool_is_filled_once_however_many_call
        a_write_whose_answer_was_lost_is_known_by_its_token
        a_write_that_was_cut_off_on_its_way_is_not_there
        a_server_that_is_silent_is_given_up_and_keeps_no_connection
        a_server_that_is_not_there_yet_is_an_outage_and_found_later
        a_call_that_was_dropped_while_it_waited_for_a_lock_keeps_no_connection
        two_that_wait_for_each_other_are_told_to_begin_anew
        an_idle_connection_that_broke_is_replaced_before_it_is_used
    ]
    sqlite [
        a_file_that_another_process_writes_to_is_an_outage_and_nothing_was_written
    ]
    mariadb [
        a_pool_is_filled_once_however_many_call
        a_write_whose_answer_was_lost_is_known_by_its_token
        a_write_that_was_cut_off_on_its_way_is_not_there
        a_server_that_is_silent_is_given_up_and_keeps_no_connection
        a_server_that_is_not_there_yet_is_an_outage_and_found_later
        a_call_that_was_dropped_while_it_waited_for_a_lock_keeps_no_connection
        two_that_wait_for_each_other_are_told_to_begin_anew
        an_idle_connection_that_broke_is_replaced_before_it_is_used
        a_connection_that_freezes_on_its_way_back_is_not_waited_for
    ]
}

const LONG: Duration = Duration::from_secs(60);

fn on<DB: Server>(place: &Place<DB>, pool: Pool<DB>) -> Sql<DB> {
    Sql::builder(pool).table(&place.table).build().unwrap()
}

fn nothing_written(error: &StoreError) -> bool {
    error.is_transient() && !error.may_have_written()
}

// F82
async fn ten_handlers_begin_on_a_pool_of_two<DB: Server>(place: Place<DB>) {
    let store: Arc<dyn Store> = Arc::new(on(&place, place.pool(2)));
    let all = Arc::new(Barrier::new(10));
    let runs = (0..10).map(|at| {
        let all = all.clone();
        // None goes on before all ten are here.
        lock(("orders", format!("po-{at}")), &store).run(async move { Ok(all.wait().await.is_leader()) })
    });
    let ran = tokio::time::timeout(LONG, join_all(runs)).await.expect("all ten begin");
    assert_eq!(ran.into_iter().filter(|ran| *ran.as_ref().unwrap()).count(), 1);
}

// F82
async fn callers_that_hang_up_give_their_connections_back<DB: Server>(place: Place<DB>) {
    let pool = place.pool(2);
    let store = on(&place, pool.clone());
    let _ = written(store.swap(&key(), None, &record(1)).await.unwrap());
    for at in 0..100 {
        let (key, record) = (("orders", format!("po-{at}")).into_key().unwrap(), record(1));
        let mut call = pin!(store.swap(&key, None, &record));
        // It goes after as many steps as there are before it.
        for _ in 0..at % 7 {
            if poll_fn(|context| Poll::Ready(call.as_mut().poll(context).is_ready())).await {
                break;
            }
            tokio::task::yield_now().await;
        }
    }
    let held = tokio::time::timeout(LONG, async { (pool.acquire().await, pool.acquire().await) });
    let (one, other) = held.await.expect("both connections came back");
    drop((one.unwrap(), other.unwrap()));
    assert!(store.read(&key()).await.unwrap().is_some());
    // The same as a service sees it: whoever hangs up does not stop the work.
    let store: Arc<dyn Store> = Arc::new(store);
    for at in 0..10 {
        let name = ("orders", format!("service-{at}"));
        let mut run = Box::pin(lock(name.clone(), &store).run(async { Ok(()) }));
        let _ = poll_fn(|context| Poll::Ready(run.as_mut().poll(context).is_ready())).await;
        drop(run);
        let ended = async {
            while !matches!(
                lock(name.clone(), &store).run(async { Ok(()) }).await,
                Err(RunError::Skipped(Skip::Duplicate { .. }))
            ) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(LONG, ended).await.expect("the work goes on without its caller");
    }
}

async fn a_connection_goes_on_from_call_to_call_and_the_handlers_have_their_turn<DB: Server>(
    place: Place<DB>,
) {
    let pool = place.pool(1);
    let store = on(&place, pool.clone());
    let (reads, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    // There is always one that waits for the only connection.
    let readers = join_all((0..8).map(|_| async {
        while !stop.load(Ordering::Relaxed) {
            assert!(store.read(&key()).await.unwrap().is_none());
            reads.fetch_add(1, Ordering::Relaxed);
        }
    }));
    let handler = async {
        while reads.load(Ordering::Relaxed) < 100 {
            tokio::task::yield_now().await;
        }
        let connection = tokio::time::timeout(LONG, pool.acquire()).await;
        stop.store(true, Ordering::Relaxed);
        connection.map(Result::unwrap).map(drop)
    };
    let (_, handler) = tokio::join!(readers, handler);
    handler.expect("the calls leave the connection to the handler for once");
}

async fn a_connection_passes_by_whoever_no_longer_waits<DB: Server>(place: Place<DB>) {
    let pool = place.pool(1);
    let store = on(&place, pool.clone());
    assert!(store.read(&key()).await.unwrap().is_none());
    for stay in [0, 1, 4] {
        let key = key();
        let taken = pool.acquire().await.unwrap();
        let mut waiting: Vec<_> = (0..5).map(|_| Box::pin(store.read(&key))).collect();
        for read in &mut waiting {
            assert!(poll_fn(|context| Poll::Ready(read.as_mut().poll(context).is_pending())).await);
        }
        // The first has the connection next, and those who stay after it.
        drop(waiting.drain(1..5 - stay));
        drop(taken);
        let read = tokio::time::timeout(LONG, join_all(waiting)).await.expect("each has its turn");
        assert!(read.len() == stay + 1 && read.into_iter().all(|read| read.unwrap().is_none()));
    }
    drop(tokio::time::timeout(LONG, pool.acquire()).await.expect("it came back").unwrap());
}

async fn a_call_without_a_connection_is_an_outage_and_nothing_was_written<DB: Server>(place: Place<DB>) {
    let pool = place.pool(1);
    let builder = Sql::builder(pool.clone()).table(&place.table);
    let store = builder.acquire_timeout(Duration::from_millis(100)).build().unwrap();
    assert!(store.read(&key()).await.unwrap().is_none());
    let taken = pool.acquire().await.unwrap();
    for error in [
        store.swap(&key(), None, &record(1)).await.unwrap_err(),
        store.read(&key()).await.unwrap_err(),
        store.check().await.unwrap_err(),
    ] {
        assert!(nothing_written(&error) && error.to_string().contains("no connection within"), "{error:?}");
    }
    drop(taken);
    let _ = written(store.swap(&key(), None, &record(1)).await.unwrap());
}

async fn a_store_is_built_where_there_is_no_runtime_and_dials_nothing<DB: Server>(place: Place<DB>) {
    let url = place.url.clone();
    let built = std::thread::spawn(move || store::connect(&url).unwrap());
    let store = built.join().expect("no runtime is needed");
    assert!(store.read(&key()).await.unwrap().is_none());
}

/// The place, through a proxy.
async fn behind<DB: Server>(place: &Place<DB>) -> (Proxy, Place<DB>) {
    let proxy = Proxy::start(place.server()).await;
    let through = place.at(proxy.port);
    (proxy, through)
}

async fn a_pool_is_filled_once_however_many_call<DB: Server>(place: Place<DB>) {
    let (proxy, through) = behind(&place).await;
    // Like sqlx's own, it asks the server before each use.
    let pool = through.pool(5);
    let (store, key) = (on(&through, pool.clone()), key());
    for _ in 0..20 {
        let read = join_all((0..64).map(|_| store.read(&key))).await;
        assert!(read.into_iter().all(|read| read.unwrap().is_none()));
    }
    // What a call has begun to open, and no longer needs, is opened all the same: else no pool would grow
    // under load, and each call would open one in vain.
    let opened = async {
        while pool.size() < 5 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LONG, opened).await.expect("the pool is full");
    // One that comes free just as a call looks for it may be lost with that call.
    assert!(proxy.connections() < 10, "{} were opened", proxy.connections());
}

// F65, F85
async fn a_write_whose_answer_was_lost_is_known_by_its_token<DB: Server>(place: Place<DB>) {
    let (proxy, through) = behind(&place).await;
    assert_eq!(proxy.connections(), 0);
    let store = through.store();
    let mut seen = None;
    for token in 1..=3 {
        proxy.next(Fate::CutAfter, Id::from_bits(token).to_string());
        let error = store.swap(&key(), seen.as_ref(), &record(token)).await.unwrap_err();
        assert!(proxy.met() && error.is_transient() && error.may_have_written(), "{error:?}");
        let stored = store.read(&key()).await.unwrap().unwrap();
        assert_eq!(stored.record.token, Id::from_bits(token));
        seen = Some(stored.version);
    }
}

async fn a_write_that_was_cut_off_on_its_way_is_not_there<DB: Server>(place: Place<DB>) {
    let (proxy, through) = behind(&place).await;
    let store = through.store();
    assert!(store.read(&key()).await.unwrap().is_none());
    proxy.next(Fate::CutBefore, Id::from_bits(1).to_string());
    let error = store.swap(&key(), None, &record(1)).await.unwrap_err();
    // To the store both cuts look the same, so it may not rule the write out.
    assert!(proxy.met() && error.is_transient() && error.may_have_written(), "{error:?}");
    assert!(store.read(&key()).await.unwrap().is_none());
    proxy.next(Fate::CutBefore, "po-1");
    let error = store.read(&key()).await.unwrap_err();
    assert!(proxy.met() && nothing_written(&error), "{error:?}");
    let _ = written(store.swap(&key(), None, &record(1)).await.unwrap());
}

async fn a_server_that_is_silent_is_given_up_and_keeps_no_connection<DB: Server>(place: Place<DB>) {
    let (proxy, through) = behind(&place).await;
    let builder = Sql::builder(through.pool(1)).table(&place.table);
    let store = builder.request_timeout(Duration::from_millis(500)).build().unwrap();
    assert!(store.read(&key()).await.unwrap().is_none());
    for token in 1..=3 {
        proxy.next(Fate::Hold, Id::from_bits(token).to_string());
        let error = store.swap(&key(), None, &record(token)).await.unwrap_err();
        assert!(proxy.met() && error.is_transient() && error.may_have_written(), "{error:?}");
        proxy.next(Fate::Hold, "po-1");
        let error = store.read(&key()).await.unwrap_err();
        assert!(proxy.met() && nothing_written(&error), "{error:?}");
        // The pool's only connection was replaced.
        assert!(store.read(&key()).await.unwrap().is_none());
    }
}

async fn a_connection_that_freezes_on_its_way_back_is_not_waited_for(place: Place<MySql>) {
    // What the driver asks before it takes a connection back into the pool.
    const PING: [u8; 5] = [1, 0, 0, 0, 14];
    let (proxy, through) = behind(&place).await;
    let limit = Duration::from_millis(500);
    let builder = Sql::builder(through.pool(1)).table(&place.table);
    let store = builder.acquire_timeout(limit).request_timeout(limit).build().unwrap();
    proxy.next(Fate::Hold, PING);
    let read = async {
        while let Err(error) = store.read(&key()).await {
            assert!(nothing_written(&error), "{error:?}");
        }
    };
    tokio::time::timeout(LONG / 4, read).await.expect("the pool's only connection comes free again");
    assert!(proxy.met() && proxy.connections() > 1);
}

async fn a_server_that_is_not_there_yet_is_an_outage_and_found_later<DB: Server>(place: Place<DB>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let builder = Sql::builder(place.at(address.port()).pool(2)).table(&place.table);
    let store = builder.acquire_timeout(Duration::from_millis(200)).build().unwrap();
    for error in [
        store.swap(&key(), None, &record(1)).await.unwrap_err(),
        store.read(&key()).await.unwrap_err(),
        store.check().await.unwrap_err(),
    ] {
        assert!(nothing_written(&error), "nothing was sent: {error:?}");
    }
    let _proxy = Proxy::on(TcpListener::bind(address).await.unwrap(), place.server());
    let _ = written(store.swap(&key(), None, &record(1)).await.unwrap());
}

async fn a_call_that_was_dropped_while_it_waited_for_a_lock_keeps_no_connection<DB: Server>(
    place: Place<DB>,
) {
    let seen = written(place.store().swap(&key(), None, &record(1)).await.unwrap());
    let others = place.pool(1);
    let mut transaction = others.begin().await.unwrap();
    let lock = format!("UPDATE {} SET token = 'taken'", place.table);
    DB::run(&mut transaction, &lock).await.unwrap();

    let store = on(&place, place.pool(1));
    assert!(store.read(&key()).await.unwrap().is_some());
    for _ in 0..3 {
        let next = record(2);
        let key = key();
        let waiting = store.swap(&key, Some(&seen), &next);
        let waited = tokio::time::timeout(Duration::from_millis(100), waiting).await;
        assert!(waited.is_err(), "{waited:?}");
        // On the pool's only connection, while the lock is still held.
        let read = tokio::time::timeout(LONG, store.read(&key)).await.expect("a connection").unwrap();
        assert_eq!(read.unwrap().version, seen);
    }
    transaction.rollback().await.unwrap();
}

async fn two_that_wait_for_each_other_are_told_to_begin_anew<DB: Server>(place: Place<DB>) {
    use pushonce::store::Completes as _;
    let store = place.store();
    let pool = place.pool(2);
    let keys = ["a", "b"].map(|text| ("orders", text).into_key().unwrap());
    let mut seen = Vec::new();
    for key in &keys {
        seen.push(written(store.swap(key, None, &record(1)).await.unwrap()));
    }
    let (mut one, mut other) = (pool.begin().await.unwrap(), pool.begin().await.unwrap());
    assert!(store.swap_in(&mut one, &keys[0], &seen[0], &record(2)).await.unwrap());
    assert!(store.swap_in(&mut other, &keys[1], &seen[1], &record(3)).await.unwrap());
    let (next, last) = (record(2), record(3));
    let both = async {
        tokio::join!(
            // Whoever is not chosen to fail waits until the other has ended.
            async {
                let swapped = store.swap_in(&mut one, &keys[1], &seen[1], &next).await;
                let _ = one.rollback().await;
                swapped
            },
            async {
                let swapped = store.swap_in(&mut other, &keys[0], &seen[0], &last).await;
                let _ = other.rollback().await;
                swapped
            }
        )
    };
    let (one, other) = tokio::time::timeout(LONG, both).await.expect("the server ends it");
    let failed: Vec<_> = [&one, &other].into_iter().filter_map(|swapped| swapped.as_ref().err()).collect();
    assert_eq!(failed.len(), 1, "{one:?}, {other:?}");
    assert!(nothing_written(failed[0]), "{failed:?}");
}

async fn an_idle_connection_that_broke_is_replaced_before_it_is_used<DB: Server>(place: Place<DB>) {
    let (proxy, through) = behind(&place).await;
    let store = store::connect(&format!("{}&connections=1", through.url)).unwrap();
    assert!(store.read(&key()).await.unwrap().is_none());
    assert_eq!(proxy.connections(), 1);
    proxy.end_all();
    // A connection that was just used is not asked whether it is well.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert!(store.read(&key()).await.unwrap().is_none());
    assert_eq!(proxy.connections(), 2);
}

async fn a_file_that_another_process_writes_to_is_an_outage_and_nothing_was_written(place: Place<Sqlite>) {
    let pool = place.pool_with(1, &["PRAGMA busy_timeout = 50"]);
    let store = on(&place, pool);
    let seen = written(store.swap(&key(), None, &record(1)).await.unwrap());
    let others = place.pool(1);
    let writing = others.begin_with("BEGIN IMMEDIATE").await.unwrap();
    for (seen, token) in [(None, 2), (Some(&seen), 3)] {
        let error =
            store.swap(&("orders", "po-2").into_key().unwrap(), seen, &record(token)).await.unwrap_err();
        assert!(nothing_written(&error), "{error:?}");
    }
    assert!(store.read(&key()).await.unwrap().is_some(), "readers wait for nobody");
    writing.commit().await.unwrap();
    let _ = written(store.swap(&key(), Some(&seen), &record(4)).await.unwrap());
}

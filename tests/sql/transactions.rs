//! The record and an effect of the handler's, in one transaction.

use std::time::Duration;

use pushonce::store::{Commits as _, Completes as _, Sql, StoreError, Version};
use pushonce::{IntoKey as _, Store as _};
use sqlx::{MySql, Postgres, Transaction};

use crate::proxy::{Fate, Proxy};
use crate::server::{Place, Server, key, record, written};

on! {
    each [
        an_effect_and_its_record_are_committed_together
        what_is_rolled_back_or_dropped_is_not_there
        who_was_fenced_out_moves_no_row
        a_record_in_a_transaction_is_as_old_as_its_statement
        a_transaction_of_a_pool_that_is_closed_is_an_error
    ]
    postgres [
        a_commit_whose_answer_was_lost_may_be_done
        a_commit_that_was_cut_off_may_be_done_and_is_not
        a_transaction_that_failed_before_swaps_nothing
        a_commit_that_cannot_be_serialized_is_certainly_not_done
        a_commit_that_breaks_a_constraint_is_certainly_not_done
    ]
    mariadb [
        a_commit_whose_answer_was_lost_may_be_done
        a_commit_that_was_cut_off_may_be_done_and_is_not
        a_transaction_that_is_over_swaps_nothing_without_autocommit_either
    ]
}

/// A table for effects beside the records.
async fn effects<DB: Server>(place: &Place<DB>) -> String {
    let effects = format!("{}_effects", place.table);
    place.run(&format!("CREATE TABLE {effects} (id INTEGER PRIMARY KEY, sum INTEGER NOT NULL)")).await;
    effects
}

async fn count<DB: Server>(place: &Place<DB>, effects: &str) -> u64 {
    // A statement that touches every row tells how many there are; it changes each of them.
    place.run(&format!("UPDATE {effects} SET sum = sum + 1")).await
}

async fn begun<DB: Server>(store: &Sql<DB>) -> Version {
    written(store.swap(&key(), None, &record(1)).await.unwrap())
}

async fn token<DB: Server>(store: &Sql<DB>) -> u8 {
    let token = store.read(&key()).await.unwrap().unwrap().record.token.to_string();
    u8::from_str_radix(&token, 16).unwrap()
}

async fn act<DB: Server>(transaction: &mut Transaction<'static, DB>, effects: &str) {
    DB::run(transaction, &format!("INSERT INTO {effects} VALUES (1, 100)")).await.unwrap();
}

async fn an_effect_and_its_record_are_committed_together<DB: Server>(place: Place<DB>) {
    let (store, effects) = (place.store(), effects(&place).await);
    let seen = begun(&store).await;
    let mut transaction = place.pool(1).begin().await.unwrap();
    act(&mut transaction, &effects).await;
    assert!(store.swap_in(&mut transaction, &key(), &seen, &record(2)).await.unwrap());
    assert_eq!(token(&store).await, 1, "nothing is committed yet");
    store.commit(transaction).await.unwrap();
    assert_eq!((token(&store).await, count(&place, &effects).await), (2, 1));
}

async fn what_is_rolled_back_or_dropped_is_not_there<DB: Server>(place: Place<DB>) {
    let (store, effects) = (place.store(), effects(&place).await);
    let seen = begun(&store).await;
    let pool = place.pool(1);
    for drops in [false, true] {
        let mut transaction = pool.begin().await.unwrap();
        act(&mut transaction, &effects).await;
        assert!(store.swap_in(&mut transaction, &key(), &seen, &record(2)).await.unwrap());
        if drops {
            drop(transaction);
        } else {
            transaction.rollback().await.unwrap();
        }
        // The pool's only connection is given out once its transaction is over.
        drop(pool.acquire().await.unwrap());
        assert_eq!((token(&store).await, count(&place, &effects).await), (1, 0));
    }
}

async fn who_was_fenced_out_moves_no_row<DB: Server>(place: Place<DB>) {
    let (store, effects) = (place.store(), effects(&place).await);
    let seen = begun(&store).await;
    let newer = written(store.swap(&key(), Some(&seen), &record(3)).await.unwrap());
    let pool = place.pool(1);
    let mut transaction = pool.begin().await.unwrap();
    act(&mut transaction, &effects).await;
    assert!(!store.swap_in(&mut transaction, &key(), &seen, &record(2)).await.unwrap());
    transaction.rollback().await.unwrap();
    assert_eq!((token(&store).await, count(&place, &effects).await), (3, 0));
    // Of a record that was deleted none is made.
    place.forget(&key()).await;
    let mut transaction = pool.begin().await.unwrap();
    assert!(!store.swap_in(&mut transaction, &key(), &newer, &record(2)).await.unwrap());
    store.commit(transaction).await.unwrap();
    assert!(store.read(&key()).await.unwrap().is_none());
}

async fn a_record_in_a_transaction_is_as_old_as_its_statement<DB: Server>(place: Place<DB>) {
    let store = place.store();
    let seen = begun(&store).await;
    let pool = place.pool(1);
    let (other, half) = (("orders", "beside").into_key().unwrap(), Duration::from_millis(500));
    let _ = written(store.swap(&other, None, &record(1)).await.unwrap());
    let mut transaction = pool.begin().await.unwrap();
    // By now every database has begun it.
    DB::run(&mut transaction, &format!("SELECT * FROM {}", place.table)).await.unwrap();
    while store.read(&other).await.unwrap().unwrap().age < half {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(store.swap_in(&mut transaction, &key(), &seen, &record(2)).await.unwrap());
    store.commit(transaction).await.unwrap();
    let age = store.read(&key()).await.unwrap().unwrap().age;
    let older = store.read(&other).await.unwrap().unwrap().age;
    assert!(age + half <= older + Duration::from_millis(2), "{age:?}, {older:?}");
}

async fn a_transaction_of_a_pool_that_is_closed_is_an_error<DB: Server>(place: Place<DB>) {
    let pool = place.pool(1);
    let store = Sql::builder(pool.clone()).table(&place.table).build().unwrap();
    assert!(store.read(&key()).await.unwrap().is_none());
    pool.close().await;
    let error = store.swap(&key(), None, &record(1)).await.unwrap_err();
    assert!(error.is_transient() && !error.may_have_written(), "{error:?}");
}

/// A transaction that goes through a proxy, with the swap in it.
async fn ready_to_commit<DB: Server>(
    place: &Place<DB>,
    store: &Sql<DB>,
) -> (Proxy, Transaction<'static, DB>) {
    let seen = begun(store).await;
    let proxy = Proxy::start(place.server()).await;
    let mut transaction = place.at(proxy.port).pool(1).begin().await.unwrap();
    assert!(store.swap_in(&mut transaction, &key(), &seen, &record(2)).await.unwrap());
    (proxy, transaction)
}

fn open(error: &StoreError) -> bool {
    error.is_transient() && error.may_have_written()
}

async fn a_commit_whose_answer_was_lost_may_be_done<DB: Server>(place: Place<DB>) {
    let store = place.store();
    let (proxy, transaction) = ready_to_commit(&place, &store).await;
    proxy.next(Fate::CutAfter, "COMMIT");
    let error = store.commit(transaction).await.unwrap_err();
    assert!(proxy.met() && open(&error), "{error:?}");
    assert_eq!(token(&store).await, 2);
}

async fn a_commit_that_was_cut_off_may_be_done_and_is_not<DB: Server>(place: Place<DB>) {
    let store = place.store();
    let (proxy, transaction) = ready_to_commit(&place, &store).await;
    proxy.next(Fate::CutBefore, "COMMIT");
    let error = store.commit(transaction).await.unwrap_err();
    assert!(proxy.met() && open(&error), "{error:?}");
    assert_eq!(token(&store).await, 1);
}

// F78: no statement runs in an aborted transaction as if nothing had happened.
async fn a_transaction_that_failed_before_swaps_nothing(place: Place<Postgres>) {
    let (store, effects) = (place.store(), effects(&place).await);
    let seen = begun(&store).await;
    let mut transaction = place.pool(1).begin().await.unwrap();
    act(&mut transaction, &effects).await;
    let twice = format!("INSERT INTO {effects} VALUES (1, 100)");
    Postgres::run(&mut transaction, &twice).await.unwrap_err();
    let error = store.swap_in(&mut transaction, &key(), &seen, &record(2)).await.unwrap_err();
    assert!(!error.may_have_written(), "{error:?}");
    assert_eq!((token(&store).await, count(&place, &effects).await), (1, 0));
}

async fn a_commit_that_cannot_be_serialized_is_certainly_not_done(place: Place<Postgres>) {
    let (store, effects) = (place.store(), effects(&place).await);
    place.run(&format!("INSERT INTO {effects} VALUES (1, 0), (2, 0)")).await;
    let seen = begun(&store).await;
    let pool = place.pool_with(2, Postgres::SERIALIZABLE);
    let (mut one, mut other) = (pool.begin().await.unwrap(), pool.begin().await.unwrap());
    // Each reads what the other writes: no order of the two explains it.
    let skew =
        |id: u8| format!("UPDATE {effects} SET sum = (SELECT sum(sum) FROM {effects}) + 1 WHERE id = {id}");
    Postgres::run(&mut one, &skew(1)).await.unwrap();
    Postgres::run(&mut other, &skew(2)).await.unwrap();
    assert!(store.swap_in(&mut other, &key(), &seen, &record(2)).await.unwrap());
    one.commit().await.unwrap();
    let error = store.commit(other).await.unwrap_err();
    assert!(error.is_transient() && !error.may_have_written(), "{error:?}");
    assert_eq!(token(&store).await, 1);
}

async fn a_commit_that_breaks_a_constraint_is_certainly_not_done(place: Place<Postgres>) {
    let (store, effects) = (place.store(), effects(&place).await);
    place.run(&format!("ALTER TABLE {effects} ADD UNIQUE (sum) DEFERRABLE INITIALLY DEFERRED")).await;
    let seen = begun(&store).await;
    let mut transaction = place.pool(1).begin().await.unwrap();
    let twice = format!("INSERT INTO {effects} VALUES (1, 100), (2, 100)");
    Postgres::run(&mut transaction, &twice).await.unwrap();
    assert!(store.swap_in(&mut transaction, &key(), &seen, &record(2)).await.unwrap());
    let error = store.commit(transaction).await.unwrap_err();
    assert!(!error.may_have_written(), "{error:?}");
    assert_eq!(token(&store).await, 1);
}

async fn a_transaction_that_is_over_swaps_nothing_without_autocommit_either(place: Place<MySql>) {
    let (store, effects) = (place.store(), effects(&place).await);
    let seen = begun(&store).await;
    let mut transaction = place.pool_with(1, &["SET autocommit = 0"]).begin().await.unwrap();
    act(&mut transaction, &effects).await;
    // As a deadlock does. Whatever follows it is a transaction of its own.
    MySql::run(&mut transaction, "ROLLBACK").await.unwrap();
    let swapped = store.swap_in(&mut transaction, &key(), &seen, &record(2)).await;
    assert!(matches!(swapped, Err(StoreError::Refused { .. })), "{swapped:?}");
    drop(transaction);
    assert_eq!((token(&store).await, count(&place, &effects).await), (1, 0));
}

//! What a server's refusals mean: what may pass, what must be mended, and whether a write may have landed.

use std::time::Duration;

use pushonce::store::{self, Maintain as _, Sql};
use pushonce::{IntoKey as _, Store as _};
use sqlx::{MySql, Postgres, Sqlite};

use crate::private::Private;
use crate::refusal;
use crate::server::{Place, Server, fresh, key, record, written};

on! {
    each []
    postgres [
        what_may_pass_leaves_no_write_open
        a_session_that_is_ended_leaves_its_write_open
        a_database_or_a_role_that_is_not_there_is_refused
        a_database_of_another_encoding_is_refused_with_what_to_mend
        a_commit_that_waits_for_no_disk_is_refused_by_the_check
        nothing_that_an_error_says_is_a_password
    ]
    sqlite [
        what_may_not_be_written_is_refused
        what_is_not_a_database_is_refused
        a_write_that_waits_for_no_disk_is_refused_by_the_check
    ]
    mariadb [
        what_may_pass_leaves_no_write_open
        a_session_that_is_ended_leaves_its_write_open
        a_database_or_a_role_that_is_not_there_is_refused
        nothing_that_an_error_says_is_a_password
        a_server_that_does_not_flush_is_refused_by_the_check
        a_session_that_commits_nothing_is_refused_by_the_check
    ]
}

/// Sessions that were begun with these statements, while somebody else holds the row.
async fn what_may_pass_leaves_no_write_open<DB: Server>(place: Place<DB>) {
    let seen = written(place.store().swap(&key(), None, &record(1)).await.unwrap());
    let others = place.pool(1);
    let mut transaction = others.begin().await.unwrap();
    let lock = format!("UPDATE {} SET token = 'taken'", place.table);
    DB::run(&mut transaction, &lock).await.unwrap();
    for first in DB::IMPATIENT {
        let store = Sql::builder(place.pool_with(1, first)).table(&place.table).build().unwrap();
        let error = store.swap(&key(), Some(&seen), &record(2)).await.unwrap_err();
        assert!(error.is_transient() && !error.may_have_written(), "{first:?}: {error:?}");
    }
    transaction.rollback().await.unwrap();
    assert_eq!(place.store().read(&key()).await.unwrap().unwrap().version, seen);
}

// It may have been ended after its commit.
async fn a_session_that_is_ended_leaves_its_write_open<DB: Server>(place: Place<DB>) {
    let seen = written(place.store().swap(&key(), None, &record(1)).await.unwrap());
    let others = place.pool(1);
    let mut transaction = others.begin().await.unwrap();
    let lock = format!("UPDATE {} SET token = 'taken'", place.table);
    DB::run(&mut transaction, &lock).await.unwrap();
    let store = place.store();
    assert!(store.read(&key()).await.unwrap().is_some());
    let (key, next) = (key(), record(2));
    let ending = async {
        // Until the session that waits is found.
        while !DB::end_waiting(&place).await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let (swapped, ()) = tokio::join!(store.swap(&key, Some(&seen), &next), ending);
    let error = swapped.unwrap_err();
    assert!(error.is_transient() && error.may_have_written(), "{error:?}");
    transaction.rollback().await.unwrap();
}

async fn a_database_or_a_role_that_is_not_there_is_refused<DB: Server>(place: Place<DB>) {
    let bare = place.url.split('?').next().unwrap();
    let (server, _) = bare.rsplit_once('/').unwrap();
    let nowhere = store::open(&format!("{server}/nowhere_{}", place.table)).unwrap();
    let text = refusal(&nowhere.check().await.unwrap_err());
    assert!(text.contains("check the name of the database"), "{text}");
    let user = fresh("u");
    let nobody = format!("{}://{user}:pa55w0rd@{}/x", bare.split(':').next().unwrap(), place.server());
    let nobody = store::open(&nobody).unwrap();
    let text = refusal(&nobody.read(&key()).await.unwrap_err());
    assert!(text.contains("check the user, the password"), "{text}");
    assert!(!text.contains("pa55w0rd"), "{text}");
}

async fn nothing_that_an_error_says_is_a_password<DB: Server>(place: Place<DB>) {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let scheme = place.url.split(':').next().unwrap();
    let store = store::open(&format!("{scheme}://me:pa55w0rd@{closed}/db?table=t")).unwrap();
    for error in [store.check().await.unwrap_err(), store.read(&key()).await.unwrap_err()] {
        assert!(error.is_transient(), "{error:?}");
        assert!(!format!("{error} {error:?} {store:?}").contains("pa55w0rd"));
    }
}

async fn a_database_of_another_encoding_is_refused_with_what_to_mend(place: Place<Postgres>) {
    let latin = fresh("latin");
    place.run(&format!("CREATE DATABASE {latin} ENCODING 'LATIN1' TEMPLATE template0")).await;
    let bare = place.url.split('?').next().unwrap();
    let elsewhere =
        Place::<Postgres>::of(&format!("{}/{latin}", bare.rsplit_once('/').unwrap().0), "pushonce");
    let store = elsewhere.store();
    store.create_table().await.unwrap();
    let euro = ("orders", "\u{20ac}").into_key().unwrap();
    let text = refusal(&store.swap(&euro, None, &record(1)).await.unwrap_err());
    assert!(text.contains("must have the encoding UTF8"), "{text}");
    drop((store, elsewhere));
    place.run(&format!("DROP DATABASE {latin} WITH (FORCE)")).await;
}

async fn a_commit_that_waits_for_no_disk_is_refused_by_the_check(place: Place<Postgres>) {
    let pool = place.pool_with(1, &["SET synchronous_commit = off"]);
    let text = refusal(&Sql::builder(pool).table(&place.table).build().unwrap().check().await.unwrap_err());
    assert!(text.contains("may lose what it has acknowledged: synchronous_commit is off"), "{text}");
}

async fn a_write_that_waits_for_no_disk_is_refused_by_the_check(place: Place<Sqlite>) {
    const LESS: &[&str] = &["PRAGMA synchronous = NORMAL"];
    const FULL: &[&str] = &["PRAGMA synchronous = FULL"];
    for (first, says) in [(LESS, true), (FULL, false)] {
        let pool = place.pool_with(1, first);
        let checked = Sql::builder(pool).table(&place.table).build().unwrap().check().await;
        assert_eq!(checked.is_err(), says, "{checked:?}");
        if let Err(error) = checked {
            let text = refusal(&error);
            assert!(text.contains("synchronous is below FULL"), "{text}");
        }
    }
}

async fn what_may_not_be_written_is_refused(place: Place<Sqlite>) {
    let pool = place.pool_with(1, &["PRAGMA query_only = 1"]);
    let store = Sql::builder(pool).table(&place.table).build().unwrap();
    assert!(store.read(&key()).await.unwrap().is_none());
    for error in [store.swap(&key(), None, &record(1)).await.unwrap_err(), store.check().await.unwrap_err()] {
        let text = refusal(&error);
        assert!(text.contains("check the file and its folder"), "{text}");
    }
}

async fn what_is_not_a_database_is_refused(_: Place<Sqlite>) {
    let place = Place::<Sqlite>::new();
    std::fs::write(place.file(), "this is a letter, and not a database, and long enough to be told from one")
        .unwrap();
    let text = refusal(&store::open(&place.url).unwrap().check().await.unwrap_err());
    assert!(text.contains("check the file and its folder"), "{text}");
}

async fn a_server_that_does_not_flush_is_refused_by_the_check(_: Place<MySql>) {
    // The setting is the whole server's.
    let server = Private::mariadb();
    let place = Place::<MySql>::of(&server.url(), "pushonce");
    let store = place.store();
    while let Err(error) = store.create_table().await {
        assert!(error.is_transient(), "{error:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    store.check().await.unwrap();
    place.run("SET GLOBAL innodb_flush_log_at_trx_commit = 2").await;
    let text = refusal(&store.check().await.unwrap_err());
    assert!(text.contains("innodb_flush_log_at_trx_commit is not 1"), "{text}");
    // Then a commit waits for the binary log alone.
    place.run("SET GLOBAL innodb_flush_log_at_trx_commit = 1, GLOBAL sync_binlog = 0").await;
    let text = refusal(&store.check().await.unwrap_err());
    assert!(text.contains("sync_binlog is not 1"), "{text}");
}

async fn a_session_that_commits_nothing_is_refused_by_the_check(place: Place<MySql>) {
    let pool = place.pool_with(1, &["SET autocommit = 0"]);
    let store = Sql::builder(pool).table(&place.table).build().unwrap();
    let text = refusal(&store.check().await.unwrap_err());
    assert!(text.contains("autocommit is off"), "{text}");
}

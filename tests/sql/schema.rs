//! The table: missing, of another version, made by many at once, and used without any right to make it.

use futures_util::future::join_all;
use pushonce::store::sql::schema;
use pushonce::store::{Maintain as _, Sql};
use pushonce::{Key, Store as _};
use sqlx::Sqlite;

use crate::refusal;
use crate::server::{Place, Server, key, record, written};

static KEY: std::sync::OnceLock<Key> = std::sync::OnceLock::new();

on! {
    each [
        a_missing_table_is_refused_with_what_to_run_and_found_once_it_is_there
        a_table_of_another_version_is_refused
        many_may_make_the_table_at_once
        a_missing_column_is_refused_with_what_to_run
    ]
    postgres [
        a_role_without_any_right_to_ddl_can_do_all
        a_role_that_may_only_read_is_refused_by_the_check
        a_table_may_be_in_a_schema
    ]
    sqlite [
        an_embedded_store_makes_its_file_and_its_table
    ]
    mariadb [
        a_role_without_any_right_to_ddl_can_do_all
        a_role_that_may_only_read_is_refused_by_the_check
        a_table_may_be_in_a_schema
    ]
}

async fn a_missing_table_is_refused_with_what_to_run_and_found_once_it_is_there<DB: Server>(
    place: Place<DB>,
) {
    place.run("DROP TABLE {table}").await;
    let store = place.store();
    for error in [
        store.read(&key()).await.unwrap_err(),
        store.swap(&key(), None, &record(1)).await.unwrap_err(),
        store.check().await.unwrap_err(),
    ] {
        let text = refusal(&error);
        assert!(text.contains("is not there") && text.contains("CREATE TABLE IF NOT EXISTS"), "{text}");
        assert!(text.contains(&place.table) && text.lines().count() == 1, "{text}");
    }
    // What it says can be run as it stands.
    let text = refusal(&store.read(&key()).await.unwrap_err());
    let (_, statements) = text.split_once("run, as a role that may: ").unwrap();
    place.run(statements.trim_end_matches(')')).await;
    let _ = written(store.swap(&key(), None, &record(1)).await.unwrap());
    store.check().await.unwrap();
}

async fn a_table_of_another_version_is_refused<DB: Server>(place: Place<DB>) {
    let shown = schema::<DB>(&place.table).unwrap();
    for (mark, says) in [("pushonce schema 0", "has schema 0"), ("orders", "is not marked")] {
        place.run("DROP TABLE {table}").await;
        place.run(&shown.replace("pushonce schema 1", mark)).await;
        let store = place.store();
        let text = refusal(&store.swap(&key(), None, &record(1)).await.unwrap_err());
        assert!(text.contains(says) && text.contains("CREATE TABLE IF NOT EXISTS"), "{text}");
        refusal(&store.check().await.unwrap_err());
    }
    // A newer schema only adds.
    place.run("DROP TABLE {table}").await;
    place.run(&shown.replace("pushonce schema 1", "pushonce schema 2")).await;
    place.run("ALTER TABLE {table} ADD COLUMN colour INTEGER").await;
    let store = place.store();
    let _ = written(store.swap(&key(), None, &record(1)).await.unwrap());
    store.check().await.unwrap();
}

async fn many_may_make_the_table_at_once<DB: Server>(place: Place<DB>) {
    for _ in 0..10 {
        place.run("DROP TABLE {table}").await;
        let stores: Vec<Sql<DB>> = (0..10).map(|_| place.store()).collect();
        for made in join_all(stores.iter().map(Sql::create_table)).await {
            made.unwrap();
        }
        let _ = written(stores[0].swap(&key(), None, &record(1)).await.unwrap());
        stores[1].create_table().await.unwrap();
        assert!(stores[1].read(&key()).await.unwrap().is_some(), "what stands is left alone");
    }
}

async fn a_missing_column_is_refused_with_what_to_run<DB: Server>(place: Place<DB>) {
    place.run("ALTER TABLE {table} RENAME COLUMN document TO documents").await;
    let store = place.store();
    for error in
        [store.read(&key()).await.unwrap_err(), store.swap(&key(), None, &record(1)).await.unwrap_err()]
    {
        let text = refusal(&error);
        assert!(text.contains("CREATE TABLE IF NOT EXISTS") && text.contains("document"), "{text}");
    }
}

async fn a_role_without_any_right_to_ddl_can_do_all<DB: Server>(place: Place<DB>) {
    let role = place.role("SELECT, INSERT, UPDATE, DELETE").await;
    let store = Sql::builder(role.pool(2)).table(&place.table).build().unwrap();
    store.check().await.unwrap();
    let _ = written(store.swap(&key(), None, &record(1)).await.unwrap());
    assert_eq!(store.purge_expired(1).await.unwrap(), 0);
    let other = Sql::builder(role.pool(2)).table(format!("{}_x", place.table)).build().unwrap();
    refusal(&other.create_table().await.unwrap_err());
    place.drop_role(role).await;
}

async fn a_role_that_may_only_read_is_refused_by_the_check<DB: Server>(place: Place<DB>) {
    let role = place.role("SELECT").await;
    let store = Sql::builder(role.pool(2)).table(&place.table).build().unwrap();
    assert!(store.read(&key()).await.unwrap().is_none());
    for error in [store.check().await.unwrap_err(), store.swap(&key(), None, &record(1)).await.unwrap_err()] {
        let text = refusal(&error);
        assert!(text.contains("grant the role SELECT, INSERT, UPDATE"), "{text}");
    }
    place.drop_role(role).await;
}

async fn a_table_may_be_in_a_schema<DB: Server>(place: Place<DB>) {
    let ledger = crate::server::fresh("s");
    place.run(&format!("CREATE SCHEMA {ledger}")).await;
    let table = format!("{ledger}.{}", place.table);
    let store = Sql::builder(place.pool(2)).table(&table).build().unwrap();
    refusal(&store.read(&key()).await.unwrap_err());
    store.create_table().await.unwrap();
    let _ = written(store.swap(&key(), None, &record(1)).await.unwrap());
    store.check().await.unwrap();
    assert_eq!(place.run(&format!("DELETE FROM {table}")).await, 1);
    place.run("DROP TABLE {table}").await;
    place.run(&format!("DROP TABLE {table}")).await;
    place.run(&format!("DROP SCHEMA {ledger}")).await;
}

async fn an_embedded_store_makes_its_file_and_its_table(place: Place<Sqlite>) {
    // Many at once, as processes that start together: whoever comes first makes it.
    for _ in 0..20 {
        let place = Place::<Sqlite>::new();
        let stores: Vec<_> = (0..4).map(|_| pushonce::store::connect(&place.url).unwrap()).collect();
        assert!(!place.file().exists(), "nothing is made when it is built");
        for read in join_all(stores.iter().map(|store| store.read(KEY.get_or_init(key)))).await {
            assert!(read.unwrap().is_none());
        }
    }
    let nowhere = pushonce::store::open("sqlite:///nowhere/at/all/orders.db").unwrap();
    let text = refusal(&nowhere.check().await.unwrap_err());
    assert!(text.contains("check the file and its folder"), "{text}");
    drop(place);
}

//! One transaction on real databases: PostgreSQL, SQLite and MariaDB.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::routing::post;
use pushonce::store::record::{Ended, Id, State};
use pushonce::store::{BoxError, Record, Sql, Swap};
use pushonce::testing::Push;
use pushonce::{Ack, Failure, IdempotentLayer, IntoKey as _, Lease, Store, lock};
use sqlx::{MySql, Pool, Postgres, Sqlite, Transaction};
use tokio::sync::oneshot;

use super::sql_server::{Place, Server};
use crate::world::{DUPLICATE, MISUSE, RAN, RAN_LOUDLY, ROLLED_BACK, Runs, UNAVAILABLE, push};

/// Long enough that a third of it is time for a claim on a busy machine.
const LEASE: Duration = Duration::from_secs(3);
/// No condition takes longer to become true.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a database says in its own way.
pub(crate) trait Spoken: Server {
    /// Begins a transaction that will write.
    const BEGIN: &'static str = "BEGIN";
    /// Run after the effect: it fails, and the database ends the whole transaction or lets nothing
    /// more happen in it. `None` where only another transaction can make it so.
    const ENDS: Option<&'static str>;
    /// Whether a constraint can fail at the commit.
    const DEFERS: bool;
}

impl Spoken for Postgres {
    const ENDS: Option<&'static str> = Some("SELECT 1/0");
    const DEFERS: bool = true;
}

impl Spoken for Sqlite {
    const BEGIN: &'static str = "BEGIN IMMEDIATE";
    const ENDS: Option<&'static str> = Some("INSERT OR ROLLBACK INTO {table}_parents VALUES (0)");
    const DEFERS: bool = true;
}

impl Spoken for MySql {
    const ENDS: Option<&'static str> = None;
    const DEFERS: bool = false;
}

/// A store, the handler's own table beside it, and connections to both.
pub(crate) struct Scene<DB: Spoken> {
    pub(crate) place: Place<DB>,
    pub(crate) pool: Pool<DB>,
    pub(crate) sql: Arc<Sql<DB>>,
    pub(crate) store: Arc<dyn Store>,
}

impl<DB: Spoken> Scene<DB> {
    pub(crate) async fn new() -> Arc<Self> {
        Self::of(Place::new(), 5, &[]).await
    }

    /// On so many connections, in each of which these statements are run first.
    async fn of(place: Place<DB>, connections: u32, first: &'static [&'static str]) -> Arc<Self> {
        let pool = place.pool_with(connections, first);
        let sql = Arc::new(Sql::builder(pool.clone()).table(&place.table).build().unwrap());
        sql.create_table().await.unwrap();
        // No key: whatever is committed twice is there twice.
        place.run("CREATE TABLE {table}_effects (name VARCHAR(99) NOT NULL)").await;
        place.run("CREATE TABLE {table}_parents (id INT NOT NULL PRIMARY KEY)").await;
        place.run("INSERT INTO {table}_parents VALUES (0)").await;
        Arc::new(Self { store: sql.clone(), sql, pool, place })
    }

    pub(crate) fn layer(&self) -> IdempotentLayer {
        IdempotentLayer::new("orders", self.store.clone())
    }

    pub(crate) fn app<F, W>(self: &Arc<Self>, layer: IdempotentLayer, work: F) -> Router
    where
        F: Fn(Arc<Self>, Lease) -> W + Clone + Send + Sync + 'static,
        W: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        let scene = self.clone();
        let handler = move |lease: Lease| {
            let work = work(scene.clone(), lease);
            async move { work.await.map(|()| Ack).map_err(Failure::from) }
        };
        Router::new().route("/", post(handler).layer(layer))
    }

    pub(crate) async fn begin(&self) -> Result<Transaction<'static, DB>, BoxError> {
        Ok(self.pool.begin_with(DB::BEGIN).await?)
    }

    pub(crate) async fn run_in(
        &self,
        tx: &mut Transaction<'static, DB>,
        statement: &str,
    ) -> Result<(), BoxError> {
        DB::run(tx, &statement.replace("{table}", &self.place.table)).await?;
        Ok(())
    }

    pub(crate) async fn insert(
        &self,
        tx: &mut Transaction<'static, DB>,
        lease: &Lease,
    ) -> Result<(), BoxError> {
        let statement = format!("INSERT INTO {{table}}_effects VALUES ('{}')", lease.key().text());
        self.run_in(tx, &statement).await
    }

    /// How often the effect of a message was committed.
    pub(crate) async fn effects(&self, id: &str) -> u64 {
        self.place.run(&format!("UPDATE {{table}}_effects SET name = name WHERE name = '{id}'")).await
    }

    pub(crate) async fn stands(&self, id: &str) -> Option<(State, Ended, u32)> {
        let stored = self.store.read(&("orders", id).into_key().unwrap()).await.unwrap()?;
        Some((stored.record.state, stored.record.ended, stored.record.runs))
    }

    async fn is_done_once(self: &Arc<Self>, app: &Router) {
        assert_eq!(
            (self.effects("m").await, self.stands("m").await.map(|stands| stands.0)),
            (1, Some(State::Done))
        );
        assert_eq!(push(app, "m").await, DUPLICATE);
        assert_eq!(self.effects("m").await, 1);
    }

    /// Waits until the key is claimed by somebody whose fence is above that.
    async fn until_taken(&self, lease: &Lease) {
        let taken = async {
            loop {
                let stored = self.store.read(lease.key()).await.unwrap().unwrap();
                if stored.record.fence > lease.fence() {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, taken).await.expect("somebody takes the key over");
    }
}

impl<DB: Spoken> Drop for Scene<DB> {
    fn drop(&mut self) {
        // The tables of a server outlive the test; its rows are few.
        let pool = self.pool.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { pool.close().await });
        }
    }
}

pub(crate) async fn effect<DB: Spoken>(scene: Arc<Scene<DB>>, lease: Lease) -> Result<(), BoxError> {
    let mut tx = scene.begin().await?;
    scene.insert(&mut tx, &lease).await?;
    Ok(lease.commit(&scene.sql, tx).await?)
}

async fn by_hand<DB: Spoken>(scene: Arc<Scene<DB>>, lease: Lease) -> Result<(), BoxError> {
    let completion = lease.completion(&scene.sql).await?;
    let mut tx = scene.begin().await?;
    scene.insert(&mut tx, &lease).await?;
    completion.execute(&mut tx).await?;
    Ok(tx.commit().await?)
}

/// Something that a handler can say, once.
fn signal() -> (impl Fn() + Clone + Send + Sync + 'static, oneshot::Receiver<()>) {
    let (sender, receiver) = oneshot::channel();
    let sender = Arc::new(Mutex::new(Some(sender)));
    let say = move || {
        let _ = sender.lock().unwrap().take().map(|sender| sender.send(()));
    };
    (say, receiver)
}

async fn effect_and_key_are_committed_together<DB: Spoken>() {
    for hand in [false, true] {
        let scene = Scene::<DB>::new().await;
        let app = scene.app(scene.layer(), move |scene, lease| async move {
            if hand { by_hand(scene, lease).await } else { effect(scene, lease).await }
        });
        assert_eq!(push(&app, "m").await, RAN);
        scene.is_done_once(&app).await;
    }
}

async fn a_rollback_and_a_200_are_nacked_and_the_redelivery_runs<DB: Spoken>() {
    let (scene, runs) = (Scene::<DB>::new().await, Runs::default());
    let app = scene.app(scene.layer(), move |scene, lease| {
        let first = runs.add() == 0;
        async move {
            if !first {
                return effect(scene, lease).await;
            }
            let completion = lease.completion(&scene.sql).await?;
            let mut tx = scene.begin().await?;
            scene.insert(&mut tx, &lease).await?;
            completion.execute(&mut tx).await?;
            tx.rollback().await?;
            Ok(())
        }
    });
    assert_eq!(push(&app, "m").await, ROLLED_BACK);
    assert_eq!(scene.stands("m").await, Some((State::Released, Ended::Failed, 1)));
    assert_eq!(scene.effects("m").await, 0);
    assert_eq!(push(&app, "m").await, RAN);
    scene.is_done_once(&app).await;
}

async fn a_transaction_that_is_dropped_is_rolled_back_and_nacked<DB: Spoken>() {
    let (scene, runs) = (Scene::<DB>::new().await, Runs::default());
    let app = scene.app(scene.layer(), move |scene, lease| {
        let first = runs.add() == 0;
        async move {
            if !first {
                return by_hand(scene, lease).await;
            }
            let completion = lease.completion(&scene.sql).await?;
            let mut tx = scene.begin().await?;
            scene.insert(&mut tx, &lease).await?;
            completion.execute(&mut tx).await?;
            Ok(())
        }
    });
    assert_eq!(push(&app, "m").await, ROLLED_BACK);
    assert_eq!(push(&app, "m").await, RAN);
    scene.is_done_once(&app).await;
}

async fn a_commit_that_the_database_refuses_is_nacked<DB: Spoken>() {
    if !DB::DEFERS {
        return no_constraint_fails_at_the_commit::<DB>().await;
    }
    let (scene, runs) = (Scene::<DB>::new().await, Runs::default());
    scene
        .place
        .run(
            "CREATE TABLE {table}_children (parent INT NOT NULL REFERENCES {table}_parents (id) \
             DEFERRABLE INITIALLY DEFERRED)",
        )
        .await;
    let app = scene.app(scene.layer(), move |scene, lease| {
        let parent = if runs.add() == 0 { 9 } else { 0 };
        async move {
            let mut tx = scene.begin().await?;
            scene.insert(&mut tx, &lease).await?;
            scene.run_in(&mut tx, &format!("INSERT INTO {{table}}_children VALUES ({parent})")).await?;
            let _ = lease.commit(&scene.sql, tx).await;
            Ok(())
        }
    });
    assert_eq!(push(&app, "m").await, ROLLED_BACK);
    assert_eq!((scene.effects("m").await, scene.stands("m").await.map(|stands| stands.2)), (0, Some(1)));
    assert_eq!(push(&app, "m").await, RAN);
    scene.is_done_once(&app).await;
}

/// There a constraint fails with its statement, before the commit.
async fn no_constraint_fails_at_the_commit<DB: Spoken>() {
    let (scene, runs) = (Scene::<DB>::new().await, Runs::default());
    let app = scene.app(scene.layer(), move |scene, lease| {
        let parent = if runs.add() == 0 { 0 } else { 9 };
        async move {
            let mut tx = scene.begin().await?;
            scene.insert(&mut tx, &lease).await?;
            scene.run_in(&mut tx, &format!("INSERT INTO {{table}}_parents VALUES ({parent})")).await?;
            Ok(lease.commit(&scene.sql, tx).await?)
        }
    });
    assert_eq!(push(&app, "m").await, ROLLED_BACK);
    assert_eq!(push(&app, "m").await, RAN);
    scene.is_done_once(&app).await;
}

async fn a_handler_error_after_the_commit_is_acked_and_logged<DB: Spoken>() {
    for hand in [false, true] {
        let scene = Scene::<DB>::new().await;
        let app = scene.app(scene.layer(), move |scene, lease| async move {
            let committed = if hand { by_hand(scene, lease).await } else { effect(scene, lease).await };
            committed?;
            Err("after the commit".into())
        });
        assert_eq!(push(&app, "m").await, RAN_LOUDLY);
        scene.is_done_once(&app).await;
    }
}

async fn a_handler_that_was_replaced_is_fenced_out_inside_its_transaction<DB: Spoken>() {
    for (hand, careless) in [(false, false), (false, true), (true, false)] {
        let scene = Scene::<DB>::new().await;
        let (begun, has_begun) = signal();
        let app = scene.app(scene.layer().lease(LEASE), move |scene, lease| {
            let begun = begun.clone();
            async move {
                begun();
                scene.until_taken(&lease).await;
                let ended = if hand { by_hand(scene, lease).await } else { effect(scene, lease).await };
                if careless { Ok(()) } else { ended }
            }
        });
        let zombie = tokio::spawn(async move { push(&app, "m").await });
        has_begun.await.unwrap();
        let (go, gone) = oneshot::channel::<()>();
        let store = scene.store.clone();
        let heir = tokio::spawn(async move {
            lock(("orders", "m"), &store).wait(PATIENCE).run(async move { Ok(gone.await?) }).await
        });
        assert_eq!(zombie.await.unwrap(), UNAVAILABLE, "{hand} {careless}");
        // Left alone: the heir still holds it, and completes it.
        assert_eq!(scene.stands("m").await, Some((State::Claimed, Ended::Unknown, 1)));
        assert_eq!(scene.effects("m").await, 0);
        go.send(()).unwrap();
        heir.await.unwrap().unwrap();
    }
}

async fn who_comes_while_the_row_is_locked_waits_for_the_commit<DB: Spoken>() {
    let scene = Scene::<DB>::new().await;
    let (executed, is_executed) = signal();
    let app = scene.app(scene.layer().lease(LEASE), move |scene, lease| {
        let executed = executed.clone();
        async move {
            let completion = lease.completion(&scene.sql).await?;
            let mut tx = scene.begin().await?;
            scene.insert(&mut tx, &lease).await?;
            completion.execute(&mut tx).await?;
            executed();
            // By now anybody may take the key over, but for the row.
            lease.lost().await;
            tokio::time::sleep(LEASE).await;
            Ok(tx.commit().await?)
        }
    });
    let pushed = app.clone();
    let holder = tokio::spawn(async move { push(&pushed, "m").await });
    is_executed.await.unwrap();
    let store = scene.store.clone();
    let ran = Arc::new(AtomicBool::new(false));
    let heir = {
        let ran = ran.clone();
        let work = async move {
            ran.store(true, Ordering::SeqCst);
            Ok(())
        };
        tokio::spawn(async move { lock(("orders", "m"), &store).wait(PATIENCE).run(work).await })
    };
    assert_eq!(holder.await.unwrap(), RAN);
    heir.await.unwrap().unwrap_err();
    assert!(!ran.load(Ordering::SeqCst), "the key was taken over from under the transaction");
    scene.is_done_once(&app).await;
}

async fn a_lease_is_committed_once<DB: Spoken>() {
    let scene = Scene::<DB>::new().await;
    let app = scene.app(scene.layer(), |scene, lease| async move {
        effect(scene.clone(), lease.clone()).await?;
        effect(scene, lease).await.expect_err("it was committed before");
        Ok(())
    });
    assert_eq!(push(&app, "m").await, RAN);
    scene.is_done_once(&app).await;
}

async fn a_transaction_for_another_store_is_misuse_and_rolled_back<DB: Spoken>() {
    let scene = Scene::<DB>::new().await;
    // The same table, and the same pool: but not the store that the layer was given.
    let other = Sql::builder(scene.pool.clone()).table(&scene.place.table).build().unwrap();
    let other = Arc::new(other);
    let app = scene.app(scene.layer(), move |scene, lease| {
        let other = other.clone();
        async move {
            let mut tx = scene.begin().await?;
            scene.insert(&mut tx, &lease).await?;
            let _ = lease.commit(&other, tx).await;
            Ok(())
        }
    });
    assert_eq!(push(&app, "m").await, MISUSE);
    assert_eq!(scene.effects("m").await, 0);
    assert_eq!(scene.stands("m").await, Some((State::Released, Ended::Failed, 1)));
}

async fn a_renewal_beside_the_transaction_is_no_fencing_out<DB: Spoken>() {
    let scene = Scene::<DB>::of(Place::new(), 20, &[]).await;
    // Commits fall on all sides of renewals, which are sent every second.
    let one = async |delay: u64| {
        let app = scene.app(scene.layer().lease(LEASE).renew(), move |scene, lease| async move {
            let mut tx = scene.begin().await?;
            scene.insert(&mut tx, &lease).await?;
            tokio::time::sleep(Duration::from_millis(delay)).await;
            Ok(lease.commit(&scene.sql, tx).await?)
        });
        let id = delay.to_string();
        let answer = Push::empty().id(&id).send(&app).await;
        assert_eq!((answer.status.as_u16(), scene.effects(&id).await), (200, 1), "{delay}: {answer:?}");
        assert_eq!(scene.stands(&id).await, Some((State::Done, Ended::Fresh, 0)));
    };
    if DB::SHORT == "sqlite" {
        // There the transaction keeps the renewal waiting, and one keeps all others.
        for delay in [950, 1000, 1050] {
            one(delay).await;
        }
    } else {
        let delays = [950, 970, 980, 990, 995, 1000, 1005, 1010, 1020, 1990, 2000, 2010];
        futures_util::future::join_all(delays.map(one)).await;
    }
}

async fn a_claim_that_was_rewritten_is_completed_on_the_version_that_stands<DB: Spoken>() {
    let scene = Scene::<DB>::new().await;
    let app = scene.app(scene.layer(), |scene, lease| async move {
        rewrite(&scene, &lease).await?;
        effect(scene, lease).await
    });
    assert_eq!(push(&app, "m").await, RAN);
    scene.is_done_once(&app).await;
}

/// As the undo of somebody else's take-over does.
async fn rewrite<DB: Spoken>(scene: &Scene<DB>, lease: &Lease) -> Result<(), BoxError> {
    let stored = scene.store.read(lease.key()).await?.unwrap();
    let next = Record { token: Id::from_bits(7), ..stored.record };
    let swapped = scene.store.swap(lease.key(), Some(&stored.version), &next).await?;
    assert!(matches!(swapped, Swap::Written(_)));
    Ok(())
}

async fn a_claim_that_is_rewritten_beside_a_transaction_that_cannot_see_it_is_nacked<DB: Spoken>() {
    if DB::SHORT == "sqlite" {
        // There nobody writes beside a transaction that has written.
        return a_claim_that_was_rewritten_is_completed_on_the_version_that_stands::<DB>().await;
    }
    let first: &[&str] = match DB::SHORT {
        "postgres" => &["SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ"],
        _ => &["SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"],
    };
    let (scene, runs) = (Scene::<DB>::of(Place::new(), 5, first).await, Runs::default());
    let app = scene.app(scene.layer(), move |scene, lease| {
        let first = runs.add() == 0;
        async move {
            let mut tx = scene.begin().await?;
            scene.insert(&mut tx, &lease).await?;
            // Now it has its snapshot.
            scene.run_in(&mut tx, "SELECT name FROM {table}_effects").await?;
            if first {
                rewrite(&scene, &lease).await?;
            }
            Ok(lease.commit(&scene.sql, tx).await?)
        }
    });
    match push(&app, "m").await {
        // MySQL writes over what stands, not over what the snapshot shows.
        RAN if DB::SHORT == "mariadb" => {}
        ROLLED_BACK => assert_eq!(push(&app, "m").await, RAN),
        other => panic!("{other:?}"),
    }
    scene.is_done_once(&app).await;
}

async fn a_handler_that_is_replaced_beside_its_transaction_is_fenced_out<DB: Spoken>() {
    // Where the snapshot hides who took over, the database only says that the row cannot be changed.
    let levels: [&[&str]; 2] = match DB::SHORT {
        "postgres" => [&[], &["SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ"]],
        _ => [&["SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"], &[]],
    };
    for level in levels {
        let scene = Scene::<DB>::of(Place::new(), 5, level).await;
        let (begun, has_begun) = signal();
        let app = scene.app(scene.layer().lease(LEASE), move |scene, lease| {
            let begun = begun.clone();
            async move {
                let mut tx = scene.begin().await?;
                scene.insert(&mut tx, &lease).await?;
                scene.run_in(&mut tx, "SELECT name FROM {table}_effects").await?;
                begun();
                scene.until_taken(&lease).await;
                Ok(lease.commit(&scene.sql, tx).await?)
            }
        });
        let zombie = tokio::spawn(async move { push(&app, "m").await });
        has_begun.await.unwrap();
        let (go, gone) = oneshot::channel::<()>();
        let store = scene.store.clone();
        let heir = tokio::spawn(async move {
            lock(("orders", "m"), &store).wait(PATIENCE).run(async move { Ok(gone.await?) }).await
        });
        assert_eq!(zombie.await.unwrap(), UNAVAILABLE, "{level:?}");
        assert_eq!(scene.stands("m").await, Some((State::Claimed, Ended::Unknown, 1)));
        go.send(()).unwrap();
        heir.await.unwrap().unwrap();
        assert_eq!(scene.effects("m").await, 0);
    }
}

async fn one_connection_is_enough<DB: Spoken>() {
    let scene = Scene::<DB>::of(Place::new(), 1, &[]).await;
    let runs = Runs::default();
    let app = scene.app(scene.layer().lease(LEASE).renew(), move |scene, lease| {
        let first = runs.add() == 0;
        async move {
            let completion = lease.completion(&scene.sql).await?;
            let mut tx = scene.begin().await?;
            scene.insert(&mut tx, &lease).await?;
            completion.execute(&mut tx).await?;
            if !first {
                tx.commit().await?;
            }
            Ok(())
        }
    });
    assert_eq!(push(&app, "m").await, ROLLED_BACK);
    assert_eq!(push(&app, "m").await, RAN);
    scene.is_done_once(&app).await;
}

async fn a_transaction_that_an_error_has_ended_completes_nothing<DB: Spoken>() {
    let (scene, runs) = (Scene::<DB>::new().await, Runs::default());
    let app = scene.app(scene.layer(), move |scene, lease| {
        let first = runs.add() == 0;
        async move {
            let mut tx = scene.begin().await?;
            scene.insert(&mut tx, &lease).await?;
            if first {
                // A handler that goes on as if its statement had not failed.
                match DB::ENDS {
                    Some(statement) => drop(scene.run_in(&mut tx, statement).await.unwrap_err()),
                    None => deadlock(&scene, &mut tx).await,
                }
            }
            let _ = lease.commit(&scene.sql, tx).await;
            Ok(())
        }
    });
    let told = push(&app, "m").await;
    assert_eq!((told, scene.effects("m").await), (ROLLED_BACK, 0));
    assert_eq!(scene.stands("m").await, Some((State::Released, Ended::Failed, 1)));
    assert_eq!(push(&app, "m").await, RAN);
    scene.is_done_once(&app).await;
}

/// Two transactions each wait for the other's row, and the handler's, which has changed less, is rolled back.
async fn deadlock<DB: Spoken>(scene: &Arc<Scene<DB>>, tx: &mut Transaction<'static, DB>) {
    let lock = |id| format!("SELECT id FROM {{table}}_parents WHERE id = {id} FOR UPDATE");
    scene.place.run("INSERT INTO {table}_parents VALUES (1)").await;
    let mut other = scene.begin().await.unwrap();
    let many = vec!["('other')"; 100].join(", ");
    scene.run_in(&mut other, &format!("INSERT INTO {{table}}_effects VALUES {many}")).await.unwrap();
    scene.run_in(&mut other, &lock(1)).await.unwrap();
    scene.run_in(tx, &lock(0)).await.unwrap();
    let rest = scene.clone();
    let waits = tokio::spawn(async move {
        let waited = rest.run_in(&mut other, &lock(0)).await;
        other.rollback().await.unwrap();
        waited
    });
    let error = scene.run_in(tx, &lock(1)).await.unwrap_err();
    assert!(error.to_string().contains("Deadlock"), "{error}");
    waits.await.unwrap().unwrap();
}

macro_rules! on_all {
    ($($test:ident)+) => {
        on_all!(@ postgres Postgres $($test)+);
        on_all!(@ sqlite Sqlite $($test)+);
        on_all!(@ mariadb MySql $($test)+);
    };
    (@ $server:ident $db:ident $($test:ident)+) => {
        mod $server {
            $(
                #[tokio::test]
                async fn $test() {
                    super::$test::<sqlx::$db>().await;
                    crate::report::test(stringify!($server), stringify!($test));
                }
            )+
        }
    };
}

mod beside {
    use super::*;

    // SQLite has one writer at a time, so nobody replaces one that has written.
    on_all!(@ postgres Postgres a_handler_that_is_replaced_beside_its_transaction_is_fenced_out);
    on_all!(@ mariadb MySql a_handler_that_is_replaced_beside_its_transaction_is_fenced_out);
}

on_all! {
    effect_and_key_are_committed_together
    a_rollback_and_a_200_are_nacked_and_the_redelivery_runs
    a_transaction_that_is_dropped_is_rolled_back_and_nacked
    a_commit_that_the_database_refuses_is_nacked
    a_handler_error_after_the_commit_is_acked_and_logged
    a_handler_that_was_replaced_is_fenced_out_inside_its_transaction
    who_comes_while_the_row_is_locked_waits_for_the_commit
    a_lease_is_committed_once
    a_transaction_for_another_store_is_misuse_and_rolled_back
    a_renewal_beside_the_transaction_is_no_fencing_out
    a_claim_that_was_rewritten_is_completed_on_the_version_that_stands
    a_claim_that_is_rewritten_beside_a_transaction_that_cannot_see_it_is_nacked
    one_connection_is_enough
    a_transaction_that_an_error_has_ended_completes_nothing
}

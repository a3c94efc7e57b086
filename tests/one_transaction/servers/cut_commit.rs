//! The connection is lost at the commit, on real servers: whatever the handler is told, the record decides.

use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use pushonce::Lease;
use pushonce::store::BoxError;
use pushonce::store::record::State;
use sqlx::mysql::MySqlConnectOptions;
use sqlx::pool::PoolOptions;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, MySql, Pool, Postgres};

use super::proxy::{Cut, Proxy};
use super::sql::{Scene, Spoken};
use crate::world::{DUPLICATE, RAN, RAN_LOUDLY, ROLLED_BACK, UNAVAILABLE, push};

/// A server whose connections can be led through a proxy.
trait Reached: Spoken {
    /// How its protocol spells a commit.
    const COMMIT: &'static [u8];
    /// `host:port` of the server, and the options of a connection that goes to another port of this machine.
    fn led_to(port: Option<u16>) -> (String, <Self::Connection as Connection>::Options);
}

impl Reached for Postgres {
    const COMMIT: &'static [u8] = b"COMMIT\0";
    fn led_to(port: Option<u16>) -> (String, PgConnectOptions) {
        let options = PgConnectOptions::from_str(&std::env::var("PUSHONCE_TEST_POSTGRES").unwrap()).unwrap();
        let server = format!("{}:{}", options.get_host(), options.get_port());
        (
            server,
            match port {
                Some(port) => options.host("127.0.0.1").port(port),
                None => options,
            },
        )
    }
}

impl Reached for MySql {
    const COMMIT: &'static [u8] = b"\x03COMMIT";
    fn led_to(port: Option<u16>) -> (String, MySqlConnectOptions) {
        let url = std::env::var("PUSHONCE_TEST_MYSQL").unwrap();
        let options = MySqlConnectOptions::from_str(&url).unwrap();
        let server = format!("{}:{}", options.get_host(), options.get_port());
        (
            server,
            match port {
                Some(port) => options.host("127.0.0.1").port(port),
                None => options,
            },
        )
    }
}

/// A scene whose handlers reach the database through a proxy, and whose store does not.
struct Cutting<DB: Reached> {
    scene: Arc<Scene<DB>>,
    proxy: Proxy,
    pool: Pool<DB>,
}

impl<DB: Reached> Cutting<DB> {
    async fn new() -> Arc<Self> {
        let scene = Scene::<DB>::new().await;
        let proxy = Proxy::start(DB::led_to(None).0, DB::COMMIT).await;
        let (_, options) = DB::led_to(Some(proxy.address.port()));
        let pool = PoolOptions::new().max_connections(3).connect_lazy_with(options);
        Arc::new(Self { scene, proxy, pool })
    }

    /// One effect, in a transaction whose commit is cut so, by a handler that passes its error on or not.
    async fn work(&self, cut: Option<Cut>, hand: bool, careless: bool, lease: Lease) -> Result<(), BoxError> {
        cut.into_iter().for_each(|cut| self.proxy.cut_next(cut));
        let completion = if hand { Some(lease.completion(&self.scene.sql).await?) } else { None };
        let mut tx = self.pool.begin_with(DB::BEGIN).await?;
        self.scene.insert(&mut tx, &lease).await?;
        let committed: Result<(), BoxError> = match completion {
            Some(completion) => {
                completion.execute(&mut tx).await?;
                match tokio::time::timeout(Duration::from_secs(5), tx.commit()).await {
                    Ok(committed) => committed.map_err(Into::into),
                    Err(late) => Err(late.into()),
                }
            }
            None => lease.commit(&self.scene.sql, tx).await.map_err(Into::into),
        };
        assert!(self.proxy.was_cut(), "the commit passed by the proxy unseen");
        assert_eq!(committed.is_err(), cut.is_some(), "{committed:?}");
        if careless { Ok(()) } else { committed }
    }
}

async fn the_answer_to_a_commit_is_lost<DB: Reached>() {
    let second = Duration::from_secs(1);
    for (cut, committed) in [
        (Cut::Before, false),
        (Cut::After, true),
        (Cut::Silent, true),
        (Cut::Late(second), true),
        (Cut::LateRollback(second), false),
    ] {
        for (hand, careless) in [(false, false), (false, true), (true, false), (true, true)] {
            let cutting = Cutting::<DB>::new().await;
            let (scene, works) = (cutting.scene.clone(), cutting.clone());
            let runs = crate::world::Runs::default();
            let app = scene.app(scene.layer(), move |_, lease| {
                let works = works.clone();
                let cut = (runs.add() == 0).then_some(cut);
                async move { works.work(cut, hand, careless, lease).await }
            });
            let told = match (committed, careless) {
                (true, true) => RAN,
                // Its error came after the commit.
                (true, false) => RAN_LOUDLY,
                (false, _) => ROLLED_BACK,
            };
            let what = format!("{cut:?}, by hand: {hand}, careless: {careless}");
            assert_eq!(push(&app, "m").await, told, "{what}");
            assert_eq!(scene.effects("m").await, u64::from(committed), "{what}");
            assert_eq!(push(&app, "m").await, if committed { DUPLICATE } else { RAN }, "{what}");
            assert_eq!((scene.effects("m").await, scene.stands("m").await.unwrap().0), (1, State::Done));
        }
    }
}

async fn a_commit_that_is_open_for_longer_than_anybody_waits_is_nacked_and_known_later<DB: Reached>() {
    let late = Duration::from_secs(8);
    for (cut, state, again) in
        [(Cut::Late(late), State::Done, DUPLICATE), (Cut::LateRollback(late), State::Released, RAN)]
    {
        let cutting = Cutting::<DB>::new().await;
        let (scene, works) = (cutting.scene.clone(), cutting.clone());
        let runs = crate::world::Runs::default();
        let app = scene.app(scene.layer(), move |_, lease| {
            let works = works.clone();
            let cut = (runs.add() == 0).then_some(cut);
            async move { works.work(cut, false, true, lease).await }
        });
        assert_eq!(push(&app, "m").await, UNAVAILABLE, "{cut:?}");
        let known = async {
            while scene.stands("m").await.map(|stands| stands.0) != Some(state) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), known).await.expect("it is decided in the background");
        assert_eq!(push(&app, "m").await, again, "{cut:?}");
        assert_eq!(scene.effects("m").await, 1, "{cut:?}");
    }
}

macro_rules! on_both {
    ($($test:ident)+) => {
        on_both!(@ postgres Postgres $($test)+);
        on_both!(@ mariadb MySql $($test)+);
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

on_both! {
    the_answer_to_a_commit_is_lost
    a_commit_that_is_open_for_longer_than_anybody_waits_is_nacked_and_known_later
}

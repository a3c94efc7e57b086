//! Where the records of a scenario are kept: one of the servers, and in it a place that nobody else has.

use std::any::Any;
use std::sync::Arc;

use pushonce::{Store, store};
use sqlx::{MySql, Postgres, Sqlite};

use crate::emulator::{Emulator, PROJECT};
use crate::sql_server;

/// Which server keeps the records.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Server {
    /// The Datastore emulator, which tells no time.
    Datastore,
    /// The Firestore emulator in Datastore mode, whose own clock counts.
    Firestore,
    Redis,
    Postgres,
    Sqlite,
    Mariadb,
}

impl Server {
    /// As the report calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Datastore => "datastore-emulator",
            Self::Firestore => "firestore-emulator",
            Self::Redis => "redis",
            Self::Postgres => "postgres",
            Self::Sqlite => "sqlite",
            Self::Mariadb => "mariadb",
        }
    }
}

/// A place in a server.
pub(crate) struct Place {
    /// What `PUSHONCE_STORE` is to be.
    pub(crate) url: String,
    /// The same store, for the scenario to look at.
    pub(crate) store: Arc<dyn Store>,
    emulator: Option<Emulator>,
    _kept: Box<dyn Any + Send + Sync>,
}

impl Place {
    pub(crate) async fn in_a(server: Server) -> Self {
        match server {
            Server::Datastore => Self::emulated(Emulator::datastore()),
            Server::Firestore => Self::emulated(Emulator::firestore()),
            Server::Redis => {
                let url = std::env::var("PUSHONCE_TEST_REDIS").expect("PUSHONCE_TEST_REDIS names a server");
                Self::at(format!("{url}?prefix={}", sql_server::fresh("f")), ())
            }
            Server::Postgres => Self::table(sql_server::Place::<Postgres>::ready().await),
            Server::Sqlite => Self::table(sql_server::Place::<Sqlite>::ready().await),
            Server::Mariadb => Self::table(sql_server::Place::<MySql>::ready().await),
        }
    }

    fn table<DB: sql_server::Server>(place: sql_server::Place<DB>) -> Self {
        Self::at(place.url.clone(), place)
    }

    fn at(url: String, kept: impl Any + Send + Sync) -> Self {
        let store = store::connect(&url).expect("the address of a store");
        Self { url, store, emulator: None, _kept: Box::new(kept) }
    }

    fn emulated(emulator: Emulator) -> Self {
        Self {
            url: format!("datastore://{PROJECT}?namespace={}", emulator.namespace),
            store: Arc::new(emulator.store()),
            emulator: Some(emulator),
            _kept: Box::new(()),
        }
    }

    /// The host of an emulator; blank where there is none.
    pub(crate) fn emulator_host(&self) -> &str {
        self.emulator.as_ref().map_or("", |emulator| &emulator.host)
    }

    /// The emulator, for a scenario that runs on no other server.
    pub(crate) fn emulator(&self) -> &Emulator {
        self.emulator.as_ref().expect("this scenario is one for the emulators")
    }
}

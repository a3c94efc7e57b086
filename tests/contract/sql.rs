//! The SQL databases, each opened by its address.

use std::sync::Arc;

use pushonce::contract::{Law, Subject, Tells, Waiver};
use pushonce::store::{self, BoxFuture, Maintain, Sql};
use pushonce::{Key, Store};
use sqlx::{MySql, Postgres, Sqlite};

use crate::sql_server::{Place, Server};
use crate::{report, waivers};

struct InTable<DB: Server> {
    place: Place<DB>,
    store: Arc<dyn Maintain>,
    tells: Tells,
}

impl<DB: Server> InTable<DB> {
    async fn new(tells: Tells) -> Self {
        let place = Place::<DB>::new();
        let table = Sql::builder(place.pool(1)).table(&place.table).build().unwrap();
        table.create_table().await.unwrap();
        Self { store: store::open(&place.url).unwrap(), place, tells }
    }
}

impl<DB: Server> Subject for InTable<DB> {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    fn forget<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, ()> {
        Box::pin(self.place.forget(key))
    }

    fn tells_what_stands(&self) -> Tells {
        self.tells
    }

    fn maintained(&self) -> Option<Arc<dyn Maintain>> {
        Some(self.store.clone())
    }

    fn waives(&self) -> &'static [Waiver] {
        waivers::of(DB::SHORT)
    }

    fn passed(&self, law: &Law) {
        report::law(DB::SHORT, law.name());
    }

    fn waived(&self, law: &Law, _: &str) {
        report::waived(DB::SHORT, law.name());
    }
}

mod postgres {
    use super::{InTable, Postgres, Tells};

    pushonce::contract!(InTable::<Postgres>::new(Tells::Creates).await);
}

mod sqlite {
    use super::{InTable, Sqlite, Tells};

    pushonce::contract!(InTable::<Sqlite>::new(Tells::Creates).await);
}

mod mariadb {
    use super::{InTable, MySql, Tells};

    pushonce::contract!(InTable::<MySql>::new(Tells::Never).await);
}

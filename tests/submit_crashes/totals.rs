//! What came of all rounds, for each store and point, as a table.

use std::fmt;
use std::sync::Mutex;

use crate::point::Point;
use crate::round::Came;

#[derive(Debug)]
struct Row {
    store: &'static str,
    point: Point,
    rounds: usize,
    reached: usize,
    /// Of the rounds that came to their end.
    ended: usize,
    /// The most tasks that one key had.
    ids: usize,
    early: usize,
    late: usize,
    published: usize,
    runs: usize,
    effects: usize,
}

/// The rows, while rounds are played.
#[derive(Debug)]
pub(crate) struct Totals(Mutex<Vec<Row>>);

impl Totals {
    pub(crate) fn of(stores: &[&'static str]) -> Self {
        let rows = stores.iter().flat_map(|store| Point::ALL.map(|point| Row::new(store, point)));
        Self(Mutex::new(rows.collect()))
    }

    pub(crate) fn began(&self, store: &str, point: Point) {
        self.row(store, point, |row| row.rounds += 1);
    }

    pub(crate) fn reached(&self, store: &str, point: Point) {
        self.row(store, point, |row| row.reached += 1);
    }

    pub(crate) fn ended(&self, store: &str, point: Point, came: &Came) {
        self.row(store, point, |row| {
            row.ended += 1;
            row.ids = row.ids.max(came.told.ids.len());
            row.early += came.told.early;
            row.late += came.told.late;
            row.published += came.published;
            row.runs += came.runs;
            row.effects += came.effects.len();
        });
    }

    fn row(&self, store: &str, point: Point, change: impl FnOnce(&mut Row)) {
        let mut rows = self.0.lock().unwrap();
        change(rows.iter_mut().find(|row| row.store == store && row.point == point).unwrap());
    }

    /// The rows that break a promise.
    pub(crate) fn broken(&self, rounds: usize) -> Vec<String> {
        let rows = self.0.lock().unwrap();
        rows.iter().filter(|row| !row.is_kept(rounds)).map(|row| format!("{row:?}")).collect()
    }
}

impl Row {
    fn new(store: &'static str, point: Point) -> Self {
        let (rounds, reached, ended, ids, early, late, published, runs, effects) = Default::default();
        Self { store, point, rounds, reached, ended, ids, early, late, published, runs, effects }
    }

    fn is_kept(&self, rounds: usize) -> bool {
        let messages = if self.point == Point::AfterPublish { 2 } else { 1 };
        [self.rounds, self.reached, self.ended, self.runs, self.effects] == [rounds; 5]
            && (self.ids, self.late, self.published) == (1, 0, messages * rounds)
    }
}

const COUNTED: [&str; 8] =
    ["rounds", "reached", "ids per key", "409s early", "409s late", "published", "runs", "effects"];

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<20}{:<18}  {}", "store", "killed", COUNTED.join("  "))?;
        for row in self.0.lock().unwrap().iter() {
            write!(f, "{:<20}{:<18}", row.store, row.point)?;
            let counts =
                [row.rounds, row.reached, row.ids, row.early, row.late, row.published, row.runs, row.effects];
            for (count, name) in counts.into_iter().zip(COUNTED) {
                write!(f, "  {count:>width$}", width = name.len())?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

//! What a month costs, for so many messages.

use crate::sheet::{ByUse, Sheet};

const GIB: f64 = 1_073_741_824.0;
const TIB: f64 = 1024.0 * GIB;

/// The parts of what a store costs that is paid by use.
pub(crate) struct Parts {
    pub(crate) first: f64,
    pub(crate) duplicates: f64,
    pub(crate) deletes: f64,
    pub(crate) storage: f64,
}

impl Parts {
    pub(crate) fn sum(&self) -> f64 {
        self.first + self.duplicates + self.deletes + self.storage
    }
}

impl Sheet {
    pub(crate) fn duplicates(&self, messages: f64) -> f64 {
        messages * self.duplicates_in_a_hundred / 100.0
    }

    /// What is stored on average, in GiB, where messages come evenly.
    fn stored(&self, messages: f64, days_kept: u64, record_bytes: f64) -> f64 {
        let days = self.month_hours / 24.0;
        messages * days_kept as f64 / days * record_bytes / GIB
    }

    pub(crate) fn by_use(&self, store: &ByUse, messages: f64) -> Parts {
        let all = |operations: &[String], times| operations.iter().map(|one| self.cost(one, times)).sum();
        Parts {
            first: all(&store.first, messages),
            duplicates: all(&store.duplicate, self.duplicates(messages)),
            deletes: self.cost(&store.expiry, messages),
            storage: self.cost(&store.storage, self.stored(messages, store.days_kept, store.record_bytes)),
        }
    }

    /// The whole GiB that Redis needs, and what they cost.
    pub(crate) fn redis(&self, messages: f64) -> (f64, f64) {
        let redis = &self.redis;
        let stored = self.stored(messages, redis.days_kept, redis.record_bytes);
        let size = (stored / redis.most_full).ceil();
        let (_, price) =
            redis.sizes.iter().find(|(most, _)| size <= *most).expect("a size that is large enough");
        (size, self.cost(price, size * self.month_hours))
    }

    /// The GiB of disk that PostgreSQL needs, and what it costs, machine included; a standby doubles all.
    pub(crate) fn sql(&self, messages: f64) -> (f64, f64) {
        let sql = &self.sql;
        let stored = self.stored(messages, sql.days_kept, sql.record_bytes);
        let disk = (stored / sql.most_full).ceil().max(sql.least_disk_gib);
        let machine = self.cost("sql vcpu", sql.vcpus * self.month_hours)
            + self.cost("sql memory", sql.memory_gib * self.month_hours);
        (disk, machine + self.cost("sql storage", disk))
    }

    pub(crate) fn pubsub(&self, messages: f64) -> f64 {
        let passages = messages + messages + self.duplicates(messages);
        self.cost("pubsub", passages * self.around.message_bytes / TIB)
    }

    /// With a CPU while a request is active, and one request at a time: the most that it can cost.
    pub(crate) fn requests(&self, messages: f64) -> f64 {
        let requests = messages + self.duplicates(messages);
        let seconds = requests * self.around.work_seconds;
        self.cost("run request", requests)
            + self.cost("run cpu", seconds)
            + self.cost("run memory", seconds * self.around.memory_gib)
    }

    /// One instance with one CPU that is always on.
    pub(crate) fn always_on(&self) -> f64 {
        let seconds = self.month_hours * 3600.0;
        self.cost("run cpu always on", seconds)
            + self.cost("run memory always on", seconds * self.around.always_on_memory_gib)
    }

    pub(crate) fn logs(&self, messages: f64) -> f64 {
        self.cost("logging", (messages + self.duplicates(messages)) * self.around.log_bytes / GIB)
    }
}

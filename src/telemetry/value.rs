//! The fields of an event or a span as JSON, bounded, whatever their values are and do.

use std::error::Error;
use std::fmt::{self, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::Serialize;
use tracing::field::{Field, Visit};

use crate::chain::chain;

/// The most that one value keeps of its text, in bytes. Cloud Logging takes 256 KB for a whole entry.
pub(super) const VALUE_LIMIT: usize = 16 * 1024;
/// Cloud Logging's numbers are doubles: a whole number beyond this would come out as another.
const EXACT: u128 = 1 << 53;

/// Names and values, each value a piece of JSON.
#[derive(Debug, Default)]
pub(super) struct Fields(Vec<(&'static str, String)>);

impl Fields {
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(name, value)| (*name, value.as_str()))
    }

    /// Takes over what `later` says, also where it says it of a name that is known.
    pub(super) fn update(&mut self, later: Self) {
        for (name, value) in later.0 {
            self.set(name, value);
        }
    }

    fn set(&mut self, name: &'static str, value: String) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => self.0.push((name, value)),
        }
    }

    fn put(&mut self, field: &Field, value: &impl Serialize) {
        // Nothing that comes here can fail to be written.
        let value = serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned());
        // A field that had to be spelt as a raw identifier is named without its mark.
        let name = field.name();
        self.set(name.strip_prefix("r#").unwrap_or(name), value);
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        if value.is_finite() {
            self.put(field, &value);
        } else {
            self.put(field, &value.to_string());
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.record_i128(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.record_u128(field, value.into());
    }

    fn record_i128(&mut self, field: &Field, value: i128) {
        match i64::try_from(value) {
            Ok(exact) if value.unsigned_abs() <= EXACT => self.put(field, &exact),
            _ => self.put(field, &value.to_string()),
        }
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        match u64::try_from(value) {
            Ok(exact) if value <= EXACT => self.put(field, &exact),
            _ => self.put(field, &value.to_string()),
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, &value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let mut text = Bounded::default();
        text.push(value);
        self.put(field, &text.ended());
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.record_str(field, &chain(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let mut text = Bounded::default();
        // A value that panics when it is shown must not take down the work that logs it.
        let shown = catch_unwind(AssertUnwindSafe(|| write!(text, "{value:?}")));
        if !matches!(shown, Ok(Ok(()))) {
            text.push(" (and it fails when it is shown)");
        }
        self.put(field, &text.ended());
    }
}

/// A text that stops growing at its limit, and says so.
#[derive(Default)]
struct Bounded {
    text: String,
    left_out: usize,
}

impl Bounded {
    fn push(&mut self, more: &str) {
        let room = if self.left_out == 0 { VALUE_LIMIT - self.text.len() } else { 0 };
        let kept = (0..=room.min(more.len())).rfind(|at| more.is_char_boundary(*at)).unwrap_or_default();
        self.text.push_str(&more[..kept]);
        self.left_out += more.len() - kept;
    }

    fn ended(mut self) -> String {
        if self.left_out > 0 {
            // Writing into a String cannot fail.
            let _ = write!(self.text, "… ({} bytes left out)", self.left_out);
        }
        self.text
    }
}

impl fmt::Write for Bounded {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        self.push(more);
        Ok(())
    }
}

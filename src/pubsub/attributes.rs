//! Named texts, in the order in which they came, each name once.

use std::fmt;

use super::json::{Fields, MEMBERS, text};
use super::refused::Refused;

/// A message's attributes, or a CloudEvent's. `Debug` shows the names only.
#[derive(Clone, Default)]
pub(super) struct Attributes(Vec<(String, String)>);

impl Attributes {
    /// The value of exactly that name.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// A name may come twice if it says the same: to choose between two values would be to guess.
    pub(super) fn insert(&mut self, name: &str, value: String) -> Result<(), Refused> {
        match self.get(name) {
            Some(known) if known == value => Ok(()),
            Some(_) => Err(Refused::twice(name)),
            None if self.0.len() == MEMBERS => Err(Refused::TooMany { limit: MEMBERS }),
            None => {
                self.0.push((name.to_owned(), value));
                Ok(())
            }
        }
    }

    /// The `attributes` of an envelope.
    pub(super) fn from_json(fields: Fields<'_>) -> Result<Self, Refused> {
        let mut attributes = Self::default();
        for (name, value) in fields.0 {
            attributes.insert(&name, text("attributes", value)?.into_owned())?;
        }
        Ok(attributes)
    }
}

impl fmt::Debug for Attributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(|(name, _)| name)).finish()
    }
}

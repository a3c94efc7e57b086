//! Which topic, subscription, service or account an attribute means: one of the plan, or one outside of it.

use super::{Plan, Resource, Told};

/// What an attribute means.
#[derive(Debug, Clone)]
pub(crate) enum Identity<'a> {
    /// This resource of the plan.
    Planned(&'a Resource),
    /// One that the plan does not make, by the name that it is given.
    Elsewhere(&'a str),
    /// It cannot be told from the plan.
    Untold,
}

/// Whether something is so, from worst to best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum So {
    No,
    Untold,
    Yes,
}

impl From<bool> for So {
    fn from(is: bool) -> Self {
        if is { Self::Yes } else { Self::No }
    }
}

impl Identity<'_> {
    pub(crate) fn is(&self, other: &Identity<'_>) -> So {
        match (self, other) {
            (Identity::Planned(one), Identity::Planned(other)) => (one.address == other.address).into(),
            (Identity::Elsewhere(one), Identity::Elsewhere(other)) if one == other => So::Yes,
            // A short name, and a path that ends in it: the project of the former is not known.
            (Identity::Elsewhere(one), Identity::Elsewhere(other)) => {
                let last = |name: &str| name.rsplit('/').next().map(str::to_owned);
                let short = one.contains('/') != other.contains('/');
                if short && last(one) == last(other) { So::Untold } else { So::No }
            }
            (Identity::Untold, _) | (_, Identity::Untold) => So::Untold,
            _ => So::No,
        }
    }
}

impl Plan {
    /// Which resource of this type an attribute means.
    pub(crate) fn identity<'a>(&'a self, resource: &'a Resource, pointer: &str, kind: &str) -> Identity<'a> {
        match self.told(resource, pointer) {
            Told::Is(value) => match value.as_str() {
                Some(text) => self.named(text, self.project(resource), kind),
                None => Identity::Untold,
            },
            Told::Absent => Identity::Untold,
            Told::Unknown => self.origin(resource, pointer, kind),
        }
    }

    /// The only resource of this type that a value can come from.
    fn origin<'a>(&'a self, resource: &'a Resource, pointer: &str, kind: &str) -> Identity<'a> {
        let leaves = self.origins(resource, pointer).unwrap_or_default();
        let mut found = Vec::new();
        for leaf in leaves.iter().filter(|leaf| leaf.kind == kind) {
            let addresses = self.instances(leaf).map(|resource| &resource.address);
            found.extend(addresses);
        }
        match found[..] {
            [address] => {
                self.of(kind).find(|r| &r.address == address).map_or(Identity::Untold, Identity::Planned)
            }
            _ => Identity::Untold,
        }
    }

    /// The resource of this type with this name, which may be a path or an account's e-mail.
    pub(crate) fn named<'a>(&'a self, text: &'a str, project: Option<&str>, kind: &str) -> Identity<'a> {
        let named: Vec<_> = self.of(kind).filter(|resource| self.is_named(resource, text, project)).collect();
        match named[..] {
            [] if self.of(kind).any(|resource| self.told(resource, "/name") == Told::Unknown) => {
                Identity::Untold
            }
            [] => Identity::Elsewhere(text),
            [one] => Identity::Planned(one),
            _ => Identity::Untold,
        }
    }

    fn is_named(&self, resource: &Resource, text: &str, project: Option<&str>) -> bool {
        let known = |pointer| self.told(resource, pointer).text();
        if let Some((account, domain)) = text.split_once('@') {
            let within = domain.strip_suffix(".iam.gserviceaccount.com");
            let fits = self.project(resource).is_none_or(|project| Some(project) == within);
            return known("/email") == Some(text) || known("/account_id") == Some(account) && fits;
        }
        let mut path = text.split('/');
        let project = if path.next() == Some("projects") { path.next() } else { project };
        let fits = project.zip(self.project(resource)).is_none_or(|(one, other)| one == other);
        known("/name").is_some() && known("/name") == text.rsplit('/').next() && fits
    }

    pub(crate) fn project<'a>(&'a self, resource: &'a Resource) -> Option<&'a str> {
        self.told(resource, "/project").text()
    }
}

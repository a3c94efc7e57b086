//! Which topic, subscription, service or account an attribute means: one of the plan, or one outside of it.

use super::{Plan, Resource, Told};

/// What an attribute means.
#[derive(Debug, Clone)]
pub(crate) enum Identity<'a> {
    /// This resource of the plan.
    Planned(&'a Resource),
    /// This resource of the plan, if it is in the project that this name is in; else one outside of it.
    Perhaps(&'a Resource, &'a str),
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

impl std::ops::Not for So {
    type Output = Self;

    fn not(self) -> Self {
        match self {
            Self::No => Self::Yes,
            Self::Untold => Self::Untold,
            Self::Yes => Self::No,
        }
    }
}

impl<'a> Identity<'a> {
    /// The name that it is given, where it may be one that the plan does not make.
    pub(crate) fn name(&self) -> Option<&'a str> {
        match self {
            Self::Perhaps(_, name) | Self::Elsewhere(name) => Some(name),
            Self::Planned(_) | Self::Untold => None,
        }
    }

    pub(crate) fn is(&self, other: &Identity<'_>) -> So {
        match (self, other) {
            (Identity::Untold, _) | (_, Identity::Untold) => So::Untold,
            (Identity::Planned(one), Identity::Planned(other)) => (one.address == other.address).into(),
            _ if self.name() == other.name() => So::Yes,
            (Identity::Perhaps(one, _), Identity::Perhaps(other, _) | Identity::Planned(other))
            | (Identity::Planned(one), Identity::Perhaps(other, _)) => {
                if one.address == other.address {
                    So::Untold
                } else {
                    So::No
                }
            }
            // A short name, and a path that ends in it: the project of the former is not known.
            _ => self.name().zip(other.name()).map_or(So::No, |(one, other)| {
                let last = |name: &str| name.rsplit('/').next().map(str::to_owned);
                let short = one.contains('/') != other.contains('/');
                if short && last(one) == last(other) { So::Untold } else { So::No }
            }),
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
        let all = |so| self.of(kind).filter(move |resource| self.is_named(resource, text, project) == so);
        let [named, perhaps] = [So::Yes, So::Untold].map(|so| all(so).collect::<Vec<_>>());
        match (&named[..], &perhaps[..]) {
            ([one], _) => Identity::Planned(one),
            ([], []) if self.of(kind).any(|resource| self.told(resource, "/name") == Told::Unknown) => {
                Identity::Untold
            }
            ([], []) => Identity::Elsewhere(text),
            ([], [one]) => Identity::Perhaps(one, text),
            _ => Identity::Untold,
        }
    }

    fn is_named(&self, resource: &Resource, text: &str, project: Option<&str>) -> So {
        let known = |pointer| self.told(resource, pointer).text();
        let (own, name, project) = if let Some((account, domain)) = text.split_once('@') {
            if known("/email") == Some(text) {
                return So::Yes;
            }
            let Some(project) = domain.strip_suffix(".iam.gserviceaccount.com") else { return So::No };
            (known("/account_id"), account, Some(project))
        } else {
            let mut path = text.split('/');
            let project = if path.next() == Some("projects") { path.next() } else { project };
            (known("/name"), text.rsplit('/').next().unwrap_or(text), project)
        };
        match (project, self.project(resource)) {
            _ if own != Some(name) => So::No,
            (Some(one), Some(other)) => self.is_project(one, other),
            (Some(_), None) => So::Untold,
            (None, _) => So::Yes,
        }
    }
}

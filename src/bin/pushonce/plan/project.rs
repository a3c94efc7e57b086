//! Which project a resource is in, and the number of a project.

use super::{Plan, Resource, So, Told};

const PROJECT: &str = "google_project";

impl Plan {
    /// The project of a resource, or that a `google_project` is: its own, or else the provider's.
    pub(crate) fn project<'a>(&'a self, resource: &'a Resource) -> Option<&'a str> {
        match self.told(resource, attribute(resource)) {
            Told::Is(project) => project.as_str(),
            // A provider may also take it from its environment, of which no plan says anything.
            Told::Absent => {
                let provider = self.provider(resource)?;
                let written = self.configuration.provider_config.get(provider)?;
                written.expressions.pointer("/project/constant_value")?.as_str()
            }
            Told::Unknown => None,
        }
    }

    /// Whether two resources are in one project.
    pub(crate) fn same_project(&self, one: &Resource, other: &Resource) -> So {
        if let (Some(one), Some(other)) = (self.project(one), self.project(other)) {
            return (one == other).into();
        }
        let is_open = |resource| self.is_unset(resource, attribute(resource));
        let same = is_open(one) && is_open(other) && self.provider(one) == self.provider(other);
        if same { So::Yes } else { So::Untold }
    }

    /// Whether a project, which may be called by its number, is the one with this id.
    pub(super) fn is_project(&self, called: &str, id: &str) -> So {
        if called != id && called.bytes().all(|c| c.is_ascii_digit()) {
            return self.number(id).map_or(So::Untold, |number| (number == called).into());
        }
        (called == id).into()
    }

    /// The number of a project, if the plan knows it.
    pub(crate) fn number(&self, project: &str) -> Option<&str> {
        let is_it =
            |of: &&Resource| of.kind == PROJECT && self.told(of, "/project_id").text() == Some(project);
        self.resources.iter().filter(is_it).find_map(|of| self.told(of, "/number").text())
    }

    fn provider(&self, resource: &Resource) -> Option<&str> {
        self.configured(resource).map(|configured| &*configured.provider_config_key)
    }
}

fn attribute(resource: &Resource) -> &'static str {
    if resource.kind == PROJECT { "/project_id" } else { "/project" }
}

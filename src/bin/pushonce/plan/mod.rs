//! A plan as `terraform show -json` prints it: the resources as planned, what is not known of them yet, and the text behind them.

mod address;
mod follow;
mod identity;
mod project;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::Failed;

use self::address::Part;
pub(crate) use self::follow::Leaf;
pub(crate) use self::identity::{Identity, So};

/// The planned resources and the configuration that they come from.
#[derive(Debug)]
pub(crate) struct Plan {
    /// With the data that was looked up already.
    resources: Vec<Resource>,
    configuration: Configuration,
}

/// One planned resource, an instance of its own where there are several.
#[derive(Debug, Deserialize)]
pub(crate) struct Resource {
    pub(crate) address: String,
    mode: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    name: String,
    index: Option<Value>,
    #[serde(default)]
    values: Value,
    #[serde(skip)]
    unknown: Value,
    #[serde(skip)]
    module: Vec<Part>,
}

/// What the plan knows of an attribute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Told<'a> {
    Is(&'a Value),
    /// Not set; what the provider or the cloud takes then.
    Absent,
    /// Set, to what only the apply will tell.
    Unknown,
}

impl<'a> Told<'a> {
    pub(crate) fn text(self) -> Option<&'a str> {
        if let Told::Is(value) = self { value.as_str() } else { None }
    }
}

impl Plan {
    /// # Errors
    /// That the text is no plan.
    pub(crate) fn read(text: &str) -> Result<Self, Failed> {
        let what = "expected what `terraform show -json PLANFILE` prints";
        let shown: Shown = serde_json::from_str(text).map_err(|error| format!("{what}: {error}"))?;
        if !shown.format_version.starts_with("1.") {
            return Err(format!("format_version is {:?}: expected 1", shown.format_version).into());
        }
        let Some(planned) = shown.planned_values else {
            return Err(format!("{what}, but it has no `planned_values`").into());
        };
        let changes = shown.resource_changes.into_iter();
        let mut unknown: BTreeMap<_, _> =
            changes.map(|change| (change.address, change.change.after_unknown)).collect();
        let mut resources = Vec::new();
        planned.root_module.flatten(&mut resources);
        for resource in &mut resources {
            resource.unknown = unknown.remove(&resource.address).unwrap_or_default();
        }
        let mut known = Vec::new();
        shown.prior_state.unwrap_or_default().values.root_module.flatten(&mut known);
        resources.extend(known.into_iter().filter(|resource| resource.mode == "data"));
        Ok(Self { resources, configuration: shown.configuration })
    }

    /// The managed resources of a type.
    pub(crate) fn of(&self, kind: &str) -> impl Iterator<Item = &Resource> {
        self.resources.iter().filter(move |resource| resource.kind == kind && resource.mode == "managed")
    }

    /// An attribute by its JSON pointer, as `/retry_policy/0/minimum_backoff`.
    ///
    /// What is computed and set by nobody is [`Told::Absent`]: it will be the cloud's default.
    pub(crate) fn told<'a>(&'a self, resource: &'a Resource, pointer: &str) -> Told<'a> {
        match resource.values.pointer(pointer) {
            Some(Value::Null) => Told::Absent,
            Some(value) => Told::Is(value),
            None if !resource.is_unknown(pointer) => Told::Absent,
            None if self.is_unset(resource, pointer) => Told::Absent,
            None => Told::Unknown,
        }
    }

    /// The text that is written for an attribute, where it is one and no expression.
    pub(crate) fn constant(&self, resource: &Resource, pointer: &str) -> Option<&str> {
        self.configured(resource)?.expressions.pointer(pointer)?.get("constant_value")?.as_str()
    }

    /// Whether the configuration shows that nobody sets an attribute of the resource itself.
    fn is_unset(&self, resource: &Resource, pointer: &str) -> bool {
        // A dynamic block is not in the configuration: nothing can be said of what is inside.
        let own = pointer.matches('/').count() == 1;
        let configured = self.configured(resource);
        own && configured.is_some_and(|configured| configured.expressions.pointer(pointer).is_none())
    }
}

impl Resource {
    fn is_unknown(&self, pointer: &str) -> bool {
        let ends = pointer.match_indices('/').map(|(at, _)| at).skip(1).chain([pointer.len()]);
        ends.into_iter().any(|end| self.unknown.pointer(&pointer[..end]) == Some(&Value::Bool(true)))
    }
}

#[derive(Deserialize)]
struct Shown {
    format_version: String,
    planned_values: Option<Values>,
    #[serde(default)]
    resource_changes: Vec<Changed>,
    prior_state: Option<State>,
    #[serde(default)]
    configuration: Configuration,
}

#[derive(Default, Deserialize)]
struct State {
    #[serde(default)]
    values: Values,
}

#[derive(Default, Deserialize)]
struct Values {
    #[serde(default)]
    root_module: PlannedModule,
}

#[derive(Default, Deserialize)]
struct PlannedModule {
    #[serde(default)]
    address: String,
    #[serde(default)]
    resources: Vec<Resource>,
    #[serde(default)]
    child_modules: Vec<PlannedModule>,
}

impl PlannedModule {
    fn flatten(self, into: &mut Vec<Resource>) {
        let module = address::modules(&self.address);
        into.extend(
            self.resources.into_iter().map(|resource| Resource { module: module.clone(), ..resource }),
        );
        for child in self.child_modules {
            child.flatten(into);
        }
    }
}

#[derive(Deserialize)]
struct Changed {
    address: String,
    change: Change,
}

#[derive(Deserialize)]
struct Change {
    #[serde(default)]
    after_unknown: Value,
}

#[derive(Debug, Default, Deserialize)]
struct Configuration {
    #[serde(default)]
    root_module: Module,
    #[serde(default)]
    provider_config: BTreeMap<String, Provider>,
}

#[derive(Debug, Deserialize)]
struct Provider {
    #[serde(default)]
    expressions: Value,
}

/// A module as it is written: expressions, which name what they refer to.
#[derive(Debug, Default, Deserialize)]
struct Module {
    #[serde(default)]
    resources: Vec<Configured>,
    #[serde(default)]
    module_calls: BTreeMap<String, Call>,
    #[serde(default)]
    outputs: BTreeMap<String, Output>,
}

#[derive(Debug, Deserialize)]
struct Configured {
    mode: String,
    #[serde(rename = "type")]
    kind: String,
    name: String,
    #[serde(default)]
    provider_config_key: String,
    #[serde(default)]
    expressions: Value,
    #[serde(default)]
    for_each_expression: Value,
}

#[derive(Debug, Deserialize)]
struct Call {
    #[serde(default)]
    expressions: Value,
    #[serde(default)]
    for_each_expression: Value,
    #[serde(default)]
    module: Module,
}

#[derive(Debug, Deserialize)]
struct Output {
    #[serde(default)]
    expression: Value,
}

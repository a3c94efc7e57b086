//! Where a value that is not known yet comes from: references followed through variables, outputs and `for_each`.

use serde_json::Value;

use super::address::{Part, parts};
use super::{Call, Configured, Module, Plan, Resource};

/// References that go in a circle are none of terraform's; after so many it is given up.
const STEPS: u16 = 256;

/// Where a value comes from in the end.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Leaf {
    module: Vec<Part>,
    is_data: bool,
    pub(crate) kind: String,
    name: String,
    key: Option<Value>,
    pub(crate) attribute: Option<String>,
}

/// Where an expression stands: in which module, and in which instance of a `for_each` or `count`.
struct Scope<'a> {
    module: &'a [Part],
    key: Option<&'a Value>,
    for_each: &'a Value,
}

impl Plan {
    /// All that an attribute of a resource comes from; `None` where that cannot be followed.
    pub(crate) fn origins(&self, resource: &Resource, pointer: &str) -> Option<Vec<Leaf>> {
        let configured = self.configured(resource)?;
        let scope = Scope {
            module: &resource.module,
            key: resource.index.as_ref(),
            for_each: &configured.for_each_expression,
        };
        let (mut leaves, mut left) = (Vec::new(), STEPS);
        self.follow(&scope, configured.expressions.pointer(pointer)?, &mut left, &mut leaves)?;
        Some(leaves)
    }

    /// The planned instances that a leaf can mean.
    pub(crate) fn instances<'a>(&'a self, leaf: &'a Leaf) -> impl Iterator<Item = &'a Resource> {
        let mode = if leaf.is_data { "data" } else { "managed" };
        self.resources.iter().filter(move |resource| {
            let kind = resource.kind == leaf.kind && resource.mode == mode;
            let named = resource.name == leaf.name && resource.module == leaf.module;
            kind && named && (leaf.key.is_none() || leaf.key == resource.index)
        })
    }

    pub(super) fn configured(&self, resource: &Resource) -> Option<&Configured> {
        self.module(&resource.module)?.resources.iter().find(|configured| {
            configured.kind == resource.kind
                && configured.name == resource.name
                && configured.mode == resource.mode
        })
    }

    fn module(&self, path: &[Part]) -> Option<&Module> {
        path.iter().try_fold(&self.configuration.root_module, |module, part| {
            module.module_calls.get(&part.name).map(|call| &call.module)
        })
    }

    fn call(&self, path: &[Part]) -> Option<&Call> {
        let (last, parents) = path.split_last()?;
        self.module(parents)?.module_calls.get(&last.name)
    }

    fn follow(
        &self,
        scope: &Scope<'_>,
        expression: &Value,
        left: &mut u16,
        into: &mut Vec<Leaf>,
    ) -> Option<()> {
        *left = left.checked_sub(1)?;
        let references =
            expression.get("references").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let references: Vec<_> = references.iter().filter_map(Value::as_str).collect();
        let of_this = references.iter().any(|name| ["each.key", "count.index"].contains(name));
        for reference in &references {
            // Each reference is followed by its own prefixes.
            let longer =
                |other: &&str| other.strip_prefix(reference).is_some_and(|rest| rest.starts_with(['.', '[']));
            if references.iter().any(longer) {
                continue;
            }
            let mut parts = parts(reference);
            if let ("each" | "count", Some("key" | "index")) =
                (&*parts[0].name, parts.get(1).map(|part| &*part.name))
            {
                continue;
            }
            if of_this {
                // `x[each.key]`: the key is not in the reference.
                let named = if parts[0].name == "data" { 2 } else { 1 };
                if let Some(part) = parts.get_mut(named) {
                    part.key = part.key.take().or_else(|| scope.key.cloned());
                }
            }
            self.follow_one(scope, &parts, left, into)?;
        }
        Some(())
    }

    fn follow_one(
        &self,
        scope: &Scope<'_>,
        parts: &[Part],
        left: &mut u16,
        into: &mut Vec<Leaf>,
    ) -> Option<()> {
        let name = |at: usize| parts.get(at).map(|part| part.name.clone());
        match &*parts[0].name {
            "var" => {
                let Some((own, module)) = scope.module.split_last() else { return Some(()) };
                let call = self.call(scope.module)?;
                let scope = Scope { module, key: own.key.as_ref(), for_each: &call.for_each_expression };
                // A variable that is not given has its default, which is no reference.
                let Some(given) = call.expressions.get(name(1)?) else { return Some(()) };
                self.follow(&scope, given, left, into)
            }
            "module" => {
                let module: Vec<_> = scope.module.iter().chain(parts.get(1)).cloned().collect();
                let output = self.module(&module)?.outputs.get(&name(2)?)?;
                self.follow(
                    &Scope { module: &module, key: None, for_each: &Value::Null },
                    &output.expression,
                    left,
                    into,
                )
            }
            "each" => {
                // The instance of what is gone through that has our key.
                let over = scope.for_each.get("references")?.as_array()?;
                let [over] = over.as_slice() else { return None };
                let mut over = super::address::parts(over.as_str()?);
                over.last_mut()?.key = scope.key.cloned();
                over.extend_from_slice(parts.get(2..)?);
                *left = left.checked_sub(1)?;
                self.follow_one(&Scope { for_each: &Value::Null, ..*scope }, &over, left, into)
            }
            "path" | "terraform" => Some(()),
            "local" | "self" => None,
            first => {
                let is_data = first == "data";
                let at = usize::from(is_data);
                into.push(Leaf {
                    module: scope.module.to_vec(),
                    is_data,
                    kind: name(at)?,
                    name: name(at + 1)?,
                    key: parts.get(at + 1)?.key.clone(),
                    attribute: name(at + 2),
                });
                Some(())
            }
        }
    }
}

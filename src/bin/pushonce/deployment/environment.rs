//! What a service is given in its environment.

use serde_json::Value;

use crate::plan::{Leaf, Plan, Resource, So, Told};

use super::Found;

/// The variables of one service.
pub(super) struct Environment<'a> {
    pub(super) service: &'a Resource,
    /// Name, value, and where it is written, if not in a dynamic block.
    variables: Vec<(&'a str, Told<'a>, Option<String>)>,
}

impl<'a> Environment<'a> {
    /// That of the container with the port, which is the one that is pushed to; the others are its sidecars.
    pub(super) fn of(plan: &'a Plan, service: &'a Resource, found: &mut Found) -> Option<Self> {
        let count = |pointer: &str| match plan.told(service, pointer) {
            Told::Is(Value::Array(list)) => list.len(),
            _ => 0,
        };
        let containers = 0..count("/template/0/containers");
        let at = |container| format!("/template/0/containers/{container}");
        let serving = |container: &usize| {
            containers.len() == 1
                || plan.told(service, &format!("{}/ports/0", at(*container))) != Told::Absent
        };
        let serving: Vec<_> = containers.clone().filter(serving).collect();
        let [container] = serving[..] else {
            found.unknown("environment", format!(
                "which of its containers serves {} cannot be told from the plan, for not just one of them has ports: its environment was not checked",
                service.address
            ));
            return None;
        };
        let mut variables = Vec::new();
        let list = format!("{}/env", at(container));
        let each = || (0..count(&list)).map(|at| format!("{list}/{at}"));
        for at in each() {
            let Some(name) = plan.told(service, &format!("{at}/name")).text() else { continue };
            let is_secret = plan.told(service, &format!("{at}/value_source/0")) != Told::Absent;
            let value = if is_secret { Told::Unknown } else { plan.told(service, &format!("{at}/value")) };
            // A set, which the plan sorts: its order is not that of the text.
            let is_this = |at: &String| plan.constant(service, &format!("{at}/name")) == Some(name);
            variables.push((name, value, each().find(is_this).map(|at| format!("{at}/value"))));
        }
        Some(Self { service, variables })
    }

    /// The value of a variable; `None` where it is not set, or is blank.
    pub(super) fn get(&self, name: &str) -> Option<Told<'a>> {
        let (_, told, _) = self.variables.iter().find(|(set, ..)| *set == name)?;
        let blank = *told == Told::Absent || told.text().is_some_and(|text| text.trim().is_empty());
        (!blank).then_some(*told)
    }

    /// What the value of a variable comes from; `None` where that cannot be followed.
    pub(super) fn origins(&self, plan: &Plan, name: &str) -> Option<Vec<Leaf>> {
        let (.., at) = self.variables.iter().find(|(set, ..)| *set == name)?;
        plan.origins(self.service, at.as_ref()?)
    }

    /// With the guard switched off a service does not start on Cloud Run, nor with a switch that is neither.
    pub(super) fn guards(&self, found: &mut Found) {
        let Some(switch) = self.get("PUSHONCE_DISABLED") else { return };
        let is_off = |text: &str| ["0", "false", "no", "off"].contains(&&*text.trim().to_ascii_lowercase());
        let so = switch.text().map_or(So::Untold, |text| is_off(text).into());
        found.demand(
            so,
            "environment",
            format!(
                "{} sets PUSHONCE_DISABLED, which is for tests: it does not start on Cloud Run; unset it",
                self.service.address
            ),
        );
    }
}

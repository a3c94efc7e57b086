//! The times of a subscription and of its service, and whether the service's environment says the same.

use std::ffi::OsString;
use std::time::Duration;

use pushonce::sizing::Sizing;
use serde_json::Value;

use crate::plan::{Leaf, Plan, Resource, Told};

use super::Found;

/// The variables that [`Sizing::from_variables`] reads.
const VARIABLES: [&str; 8] = [
    "LEASE_SECONDS",
    "TTL_SECONDS",
    "REQUEST_TIMEOUT_SECONDS",
    "ACK_DEADLINE_SECONDS",
    "MIN_BACKOFF_SECONDS",
    "MAX_BACKOFF_SECONDS",
    "MAX_DELIVERY_ATTEMPTS",
    "RETENTION_SECONDS",
];

/// What a service's containers are given.
pub(super) struct Environment<'a> {
    pub(super) service: &'a Resource,
    /// Name, value, and where it is written, if not in a dynamic block.
    variables: Vec<(&'a str, Told<'a>, Option<String>)>,
}

impl<'a> Environment<'a> {
    pub(super) fn of(plan: &'a Plan, service: &'a Resource) -> Self {
        let mut variables = Vec::new();
        let count = |pointer: &str| match plan.told(service, pointer) {
            Told::Is(Value::Array(list)) => list.len(),
            _ => 0,
        };
        for container in 0..count("/template/0/containers") {
            let list = format!("/template/0/containers/{container}/env");
            let each = || (0..count(&list)).map(|at| format!("{list}/{at}"));
            for at in each() {
                let Some(name) = plan.told(service, &format!("{at}/name")).text() else { continue };
                let is_secret = plan.told(service, &format!("{at}/value_source/0")) != Told::Absent;
                let value =
                    if is_secret { Told::Unknown } else { plan.told(service, &format!("{at}/value")) };
                // A set, which the plan sorts: its order is not that of the text.
                let is_this = |at: &String| plan.constant(service, &format!("{at}/name")) == Some(name);
                variables.push((name, value, each().find(is_this).map(|at| format!("{at}/value"))));
            }
        }
        Self { service, variables }
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

    /// What the service takes its times to be; `None` where it is told nothing, or nothing that can be read.
    fn sizing(&self, found: &mut Found) -> Option<Sizing> {
        let address = &self.service.address;
        let set: Vec<_> = VARIABLES.iter().filter(|name| self.get(name).is_some()).collect();
        if set.is_empty() {
            found.unknown("environment", format!("{address} sets no LEASE_SECONDS and TTL_SECONDS: its lease and ttl cannot be told from the plan; give --lease and --ttl"));
            return None;
        }
        for name in set.iter().filter(|name| self.get(name) == Some(Told::Unknown)) {
            found.unknown(
                "environment",
                format!("{name} of {address} cannot be told from the plan: its default is taken"),
            );
        }
        if self.get("PUSHONCE_SIZING").is_some() {
            found.warn("environment", format!("{address} sets PUSHONCE_SIZING: it starts also with times that do not fit together; unset it"));
        }
        let text = |name: &str| Some(OsString::from(self.get(name)?.text()?));
        let read = Sizing::from_variables(|name| if name == "PUSHONCE_SIZING" { None } else { text(name) });
        read.map_err(|error| found.refuse("environment", format!("{address} does not start: {error}"))).ok()
    }
}

/// The sizing that the plan makes: lease and ttl as the service has them, the rest as it will be.
pub(super) fn sizing(
    plan: &Plan,
    subscription: &Resource,
    service: Option<&Resource>,
    environment: Option<&Environment<'_>>,
    found: &mut Found,
) -> Sizing {
    let told = environment.and_then(|environment| environment.sizing(found));
    let mut planned = told.unwrap_or_default();
    planned.ack_deadline = time(plan, subscription, "/ack_deadline_seconds", 10, found);
    planned.retention = time(plan, subscription, "/message_retention_duration", 604_800, found);
    // Cloud Run's default, or ours where there is no service to ask.
    planned.request_timeout = match service {
        Some(service) => time(plan, service, "/template/0/timeout", 300, found),
        None => Sizing::default().request_timeout,
    };
    if plan.told(subscription, "/retry_policy/0") == Told::Absent {
        found.refuse("retry-policy", "the subscription has no retry_policy, so that a message comes back at once and only the push backoff of 100 ms to 60 s, which is the whole subscription's, holds it up; set both bounds");
        planned.min_backoff = Duration::from_millis(100);
        planned.max_backoff = Duration::from_secs(60);
    } else {
        planned.min_backoff = time(plan, subscription, "/retry_policy/0/minimum_backoff", 10, found);
        planned.max_backoff = time(plan, subscription, "/retry_policy/0/maximum_backoff", 600, found);
    }
    if plan.told(subscription, "/dead_letter_policy/0") != Told::Absent {
        planned.max_delivery_attempts = attempts(plan, subscription, found);
    }
    if let (Some(told), Some(service)) = (told, service) {
        agree(&told, &planned, service, found);
    }
    planned
}

/// Pub/Sub takes none for its fewest.
fn attempts(plan: &Plan, subscription: &Resource, found: &mut Found) -> u32 {
    let at = "/dead_letter_policy/0/max_delivery_attempts";
    match plan.told(subscription, at) {
        Told::Is(value) => match value.as_u64().map(u32::try_from) {
            Some(Ok(0)) => 5,
            Some(Ok(attempts)) => attempts,
            _ => u32::MAX,
        },
        Told::Absent => 5,
        Told::Unknown => {
            found.unknown(
                "sizing",
                format!(
                    "max_delivery_attempts of {} cannot be told from the plan: 12 is taken",
                    subscription.address
                ),
            );
            12
        }
    }
}

/// A time as a number of seconds, or as text like `600s`.
fn time(plan: &Plan, resource: &Resource, pointer: &str, default: u64, found: &mut Found) -> Duration {
    let default = Duration::from_secs(default);
    let value = match plan.told(resource, pointer) {
        Told::Absent => return default,
        Told::Is(Value::String(text)) if text.is_empty() => return default,
        Told::Is(Value::String(text)) => text.strip_suffix('s').and_then(|text| text.parse().ok()),
        Told::Is(value) => value.as_f64(),
        Told::Unknown => None,
    };
    value.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or_else(|| {
        let name = pointer.rsplit('/').next().unwrap_or_default();
        found.unknown(
            "sizing",
            format!(
                "{name} of {} cannot be told from the plan: {} s is taken",
                resource.address,
                default.as_secs()
            ),
        );
        default
    })
}

/// The service judges by what its environment says: it must be what is deployed.
fn agree(told: &Sizing, planned: &Sizing, service: &Resource, found: &mut Found) {
    let times = [
        ("REQUEST_TIMEOUT_SECONDS", told.request_timeout, planned.request_timeout),
        ("ACK_DEADLINE_SECONDS", told.ack_deadline, planned.ack_deadline),
        ("MIN_BACKOFF_SECONDS", told.min_backoff, planned.min_backoff),
        ("MAX_BACKOFF_SECONDS", told.max_backoff, planned.max_backoff),
        ("RETENTION_SECONDS", told.retention, planned.retention),
    ]
    .map(|(name, told, planned)| (name, told.as_secs_f64(), planned.as_secs_f64()));
    let attempts = (told.max_delivery_attempts.into(), planned.max_delivery_attempts.into());
    for (name, told, planned) in times.into_iter().chain([("MAX_DELIVERY_ATTEMPTS", attempts.0, attempts.1)])
    {
        if told != planned {
            found.refuse("environment", format!(
                "{} takes {name} to be {told} (its own default where it is not set), and the plan makes it {planned}: set it from the same local",
                service.address
            ));
        }
    }
}

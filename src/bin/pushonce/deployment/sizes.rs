//! The times of a subscription and of its service, and whether the service's environment says the same.

use std::ffi::OsString;
use std::time::Duration;

use pushonce::sizing::Sizing;
use serde_json::Value;

use crate::plan::{Plan, Resource, Told};

use super::Found;
use super::environment::Environment;

/// How many seconds a subscription keeps a message, where it does not say.
pub(super) const RETENTION: u64 = 604_800;

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

/// The sizing that the plan makes: lease and ttl as the service has them, the rest as it will be.
pub(super) fn sizing(
    plan: &Plan,
    subscription: &Resource,
    service: Option<&Resource>,
    environment: Option<&Environment<'_>>,
    found: &mut Found,
) -> Sizing {
    let told = environment.and_then(|environment| self::told(environment, found));
    let mut planned = told.unwrap_or_default();
    planned.ack_deadline = time(plan, subscription, "/ack_deadline_seconds", 10, found);
    planned.retention = time(plan, subscription, "/message_retention_duration", RETENTION, found);
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
pub(super) fn time(
    plan: &Plan,
    resource: &Resource,
    pointer: &str,
    default: u64,
    found: &mut Found,
) -> Duration {
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

/// What the service takes its times to be; `None` where it is told nothing, or nothing that can be read.
fn told(environment: &Environment<'_>, found: &mut Found) -> Option<Sizing> {
    let address = &environment.service.address;
    let set: Vec<_> = VARIABLES.iter().filter(|name| environment.get(name).is_some()).collect();
    if set.is_empty() {
        found.unknown("environment", format!("{address} sets no LEASE_SECONDS and TTL_SECONDS: its lease and ttl cannot be told from the plan; give --lease and --ttl"));
        return None;
    }
    for name in set.iter().filter(|name| environment.get(name) == Some(Told::Unknown)) {
        found.unknown(
            "environment",
            format!("{name} of {address} cannot be told from the plan: its default is taken"),
        );
    }
    if environment.get("PUSHONCE_SIZING").is_some() {
        found.warn(
            "environment",
            format!(
                "{address} sets PUSHONCE_SIZING: it starts also with times that do not fit together; unset it"
            ),
        );
    }
    let text = |name: &str| Some(OsString::from(environment.get(name)?.text()?));
    let read = Sizing::from_variables(|name| if name == "PUSHONCE_SIZING" { None } else { text(name) });
    read.map_err(|error| found.refuse("environment", format!("{address} does not start: {error}"))).ok()
}

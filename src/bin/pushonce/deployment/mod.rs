//! What a plan deploys: each push subscription, with its service, its dead letters and the grants that they need.

mod agent;
mod auth;
mod caller;
mod dead_letters;
mod door;
mod environment;
mod grants;
mod shape;
mod sizes;

use pushonce::sizing::Sizing;

use crate::Failed;
use crate::plan::{Identity, Plan, Resource, So, Told};
use crate::report::{Checked, Finding};

use self::environment::Environment;

const SUBSCRIPTION: &str = "google_pubsub_subscription";
const TOPIC: &str = "google_pubsub_topic";
const SERVICE: &str = "google_cloud_run_v2_service";
const ACCOUNT: &str = "google_service_account";

/// Checks every push subscription of a plan; `over` has what was given on the command line instead.
///
/// # Errors
/// That there is none.
pub(crate) fn check(plan: &Plan, over: &dyn Fn(Sizing) -> Sizing) -> Result<Vec<Checked>, Failed> {
    let pushes = |subscription: &&Resource| plan.told(subscription, "/push_config/0") != Told::Absent;
    let checked: Vec<_> =
        plan.of(SUBSCRIPTION).filter(pushes).map(|subscription| one(plan, subscription, over)).collect();
    if checked.is_empty() {
        let eventarc = match plan.of("google_eventarc_trigger").next() {
            Some(_) => "; the subscription of an Eventarc trigger is made by Google and stands in no plan",
            None => "",
        };
        return Err(format!("it has no google_pubsub_subscription with a push_config{eventarc}").into());
    }
    Ok(checked)
}

fn one(plan: &Plan, subscription: &Resource, over: &dyn Fn(Sizing) -> Sizing) -> Checked {
    let mut found = Found::default();
    let service = service(plan, subscription, &mut found);
    let environment = service.and_then(|service| Environment::of(plan, service, &mut found));
    if let Some(environment) = &environment {
        environment.guards(&mut found);
    }
    let sizing = over(sizes::sizing(plan, subscription, service, environment.as_ref(), &mut found));
    shape::check(plan, subscription, &mut found);
    dead_letters::check(plan, subscription, &mut found);
    caller::check(plan, subscription, service, environment.as_ref(), &mut found);
    let mut checked = Checked::numbers(&sizing);
    checked.subscription = Some(subscription.address.clone());
    checked.findings.extend(found.findings);
    // What is refused stands first.
    checked
        .findings
        .sort_by_key(|finding| ["refused", "warned", "unknown"].iter().position(|s| *s == finding.severity));
    checked
}

/// The service that a subscription pushes to.
fn service<'a>(plan: &'a Plan, subscription: &'a Resource, found: &mut Found) -> Option<&'a Resource> {
    let endpoint = "/push_config/0/push_endpoint";
    if let Some(text) = plan.told(subscription, endpoint).text() {
        let at = |service: &&Resource| {
            plan.told(service, "/uri").text().is_some_and(|uri| {
                text.strip_prefix(uri).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']))
            })
        };
        if let Some(service) = plan.of(SERVICE).find(at) {
            return Some(service);
        }
    } else if let Identity::Planned(service) = plan.identity(subscription, endpoint, SERVICE) {
        return Some(service);
    }
    let services: Vec<_> = plan.of(SERVICE).collect();
    if let [only] = services[..] {
        found.unknown(
            "service",
            format!(
                "which service it pushes to cannot be told from the plan: {} is taken, the only one",
                only.address
            ),
        );
        return Some(only);
    }
    found.unknown("service", "which service it pushes to cannot be told from the plan: its request timeout, its environment and who may call it were not checked");
    None
}

/// What is wrong with one subscription, and what the plan does not tell.
#[derive(Default)]
struct Found {
    findings: Vec<Finding>,
}

impl Found {
    fn refuse(&mut self, id: &'static str, text: impl Into<String>) {
        self.findings.push(Finding { id, severity: "refused", text: text.into() });
    }

    fn warn(&mut self, id: &'static str, text: impl Into<String>) {
        self.findings.push(Finding { id, severity: "warned", text: text.into() });
    }

    fn unknown(&mut self, id: &'static str, text: impl Into<String>) {
        self.findings.push(Finding { id, severity: "unknown", text: text.into() });
    }

    /// Refuses what is not so, and says where it cannot be told.
    fn demand(&mut self, so: So, id: &'static str, fault: impl Into<String>) {
        match so {
            So::Yes => {}
            So::No => self.refuse(id, fault),
            So::Untold => {
                self.unknown(id, format!("it cannot be told from the plan whether {}", fault.into()));
            }
        }
    }
}

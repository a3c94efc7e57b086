//! Who pushes: the token, its audience and account, and whether Cloud Run and the service expect them.

use serde_json::Value;

use crate::plan::{Leaf, Plan, Resource, So, Told};

use super::environment::Environment;
use super::{Found, auth, door};

pub(super) const ACCOUNT_AT: &str = "/push_config/0/oidc_token/0/service_account_email";
const AUDIENCE_AT: &str = "/push_config/0/oidc_token/0/audience";

pub(super) fn check(
    plan: &Plan,
    subscription: &Resource,
    service: Option<&Resource>,
    environment: Option<&Environment<'_>>,
    found: &mut Found,
) {
    if plan.told(subscription, "/push_config/0/oidc_token/0") == Told::Absent {
        found.refuse("push-token", "push_config has no oidc_token: nobody can tell its pushes from a stranger's; add one with service_account_email and audience");
        return;
    }
    match plan.told(subscription, AUDIENCE_AT) {
        Told::Absent => found.refuse("audience", "oidc_token has no audience, so that it is the push endpoint with its path, which Cloud Run does not accept; set it to the service's URL or to one of its custom audiences"),
        told => expected(plan, subscription, (AUDIENCE_AT, told), environment, "PUSH_AUDIENCE", "audience-differs", found),
    }
    let account = plan.told(subscription, ACCOUNT_AT);
    expected(
        plan,
        subscription,
        (ACCOUNT_AT, account),
        environment,
        "PUSH_SERVICE_ACCOUNT",
        "push-account-differs",
        found,
    );
    if let Some(service) = service {
        let open = door::open(plan, service);
        auth::check(service, environment, open, found);
        accepted(plan, subscription, service, open, found);
        door::invoker(plan, subscription, service, open, found);
    }
}

/// Whether Cloud Run takes the token's audience for the service's; where everybody may call, it does not look.
fn accepted(plan: &Plan, subscription: &Resource, service: &Resource, open: So, found: &mut Found) {
    let Some(audience) = plan.told(subscription, AUDIENCE_AT).text() else { return };
    let among = |pointer| match plan.told(service, pointer) {
        Told::Is(Value::Array(list)) => list.iter().any(|one| one == audience).into(),
        Told::Is(one) => (one == audience).into(),
        Told::Absent if pointer == "/custom_audiences" => So::No,
        // It is an address of Cloud Run's own.
        _ if pointer != "/custom_audiences" && !audience.ends_with(".run.app") => So::No,
        _ => So::Untold,
    };
    let so = ["/custom_audiences", "/uri", "/urls"].map(among).into_iter().fold(open, So::max);
    found.demand(so, "audience", format!(
        "the push token's audience is {audience}, which is neither the address of {} nor among its custom_audiences: Cloud Run refuses every push; make it one of them",
        service.address
    ));
}

/// Whether a value of the token is one of those that a variable of the service names, if it names any.
fn expected(
    plan: &Plan,
    subscription: &Resource,
    (pointer, told): (&str, Told<'_>),
    environment: Option<&Environment<'_>>,
    variable: &str,
    id: &'static str,
    found: &mut Found,
) {
    let Some(environment) = environment else { return };
    let Some(value) = environment.get(variable) else { return };
    let (so, is, names) = match (told.text(), value.text()) {
        (Some(is), Some(names)) => (names.split(',').any(|name| name.trim() == is).into(), is, names),
        (None, None) => {
            // Not known yet, but the same: the e-mail of one account. What is put around another value, as a
            // path behind an address, no plan says.
            let [one, other] = [plan.origins(subscription, pointer), environment.origins(plan, variable)];
            let emails =
                |leaves: &Vec<Leaf>| leaves.iter().all(|leaf| leaf.attribute.as_deref() == Some("email"));
            let same = one.is_some_and(|one| !one.is_empty() && emails(&one) && Some(one) == other);
            (if same { So::Yes } else { So::Untold }, "(not known yet)", "(not known yet)")
        }
        (is, names) => (So::Untold, is.unwrap_or("(not known yet)"), names.unwrap_or("(not known yet)")),
    };
    let what = pointer.rsplit('/').next().unwrap_or_default();
    found.demand(so, id, format!(
        "the push token's {what} is {is}, and {variable} of {} is {names}: where they differ every push is refused; make both the same",
        environment.service.address
    ));
}

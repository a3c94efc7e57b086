//! Who pushes: the token, its audience and account, what the service expects of them, and that the account may call it.

use crate::plan::{Identity, Leaf, Plan, Resource, So, Told};

use super::grants::{Sought, granted};
use super::sizes::Environment;
use super::{ACCOUNT, Found, SERVICE};

const ACCOUNT_AT: &str = "/push_config/0/oidc_token/0/service_account_email";
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
        invoker(plan, subscription, service, environment, found);
    }
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
        "the push token's {what} is {is}, and {variable} of {} is {names}: every push is refused; make both the same",
        environment.service.address
    ));
}

/// Whether Cloud Run lets the push account in, and nobody else.
fn invoker(
    plan: &Plan,
    subscription: &Resource,
    service: &Resource,
    environment: Option<&Environment<'_>>,
    found: &mut Found,
) {
    let grants = |member: &dyn Fn(&Resource, &str, Told<'_>) -> So| {
        granted(
            plan,
            &Sought {
                on: &[(SERVICE, "name"), ("google_cloud_run_service", "service")],
                target: &Identity::Planned(service),
                kind: SERVICE,
                roles: &["roles/run.invoker", "roles/run.servicesInvoker"],
                member,
            },
        )
    };
    let unchecked = plan.told(service, "/invoker_iam_disabled") == Told::Is(&true.into());
    let everybody = grants(&|_, _, told| {
        told.text().is_some_and(|text| ["allUsers", "allAuthenticatedUsers"].contains(&text)).into()
    });
    if unchecked || everybody == So::Yes {
        let verifies = environment.and_then(|environment| environment.get("PUSH_AUTH"));
        let so = match verifies {
            Some(Told::Is(mode)) => (mode.as_str() == Some("verify")).into(),
            Some(Told::Unknown) => So::Untold,
            _ => So::No,
        };
        found.demand(so, "open-to-all", format!(
            "{} may be called by everybody, and its PUSH_AUTH is not `verify`: a stranger can burn keys; take the grant away or verify the token",
            service.address
        ));
        return;
    }
    let account = plan.identity(subscription, ACCOUNT_AT, ACCOUNT);
    let so = grants(&|resource, pointer, told| {
        let Some(text) = told.text() else { return plan.identity(resource, pointer, ACCOUNT).is(&account) };
        match text.split_once(':') {
            Some(("serviceAccount", email)) => plan.named(email, None, ACCOUNT).is(&account),
            // Who is in these, no plan says.
            Some(("group" | "domain" | "principalSet", _)) => So::Untold,
            _ => So::No,
        }
    });
    found.demand(so, "invoker", format!(
        "{} does not grant roles/run.invoker to the account of the push token: Cloud Run answers every push 403; add a google_cloud_run_v2_service_iam_member",
        service.address
    ));
}

//! Whom Cloud Run lets in: everybody, or the account of the push token.

use crate::plan::{Identity, Plan, Resource, So, Told};

use super::caller::ACCOUNT_AT;
use super::grants::{Sought, granted};
use super::{ACCOUNT, Found, SERVICE};

/// Whether everybody may call the service.
pub(super) fn open(plan: &Plan, service: &Resource) -> So {
    let unchecked = match plan.told(service, "/invoker_iam_disabled") {
        Told::Is(disabled) => (*disabled == true).into(),
        Told::Absent => So::No,
        Told::Unknown => So::Untold,
    };
    let everybody = invokers(plan, service, &|_, pointer, told| match told {
        // A list that is not known yet may have a constant in it; one member that is not known is none.
        Told::Unknown => {
            if pointer == "/members" {
                So::Untold
            } else {
                So::No
            }
        }
        told => told.text().is_some_and(|text| ["allUsers", "allAuthenticatedUsers"].contains(&text)).into(),
    });
    unchecked.max(everybody)
}

/// Whether the account of the push token may call it.
pub(super) fn invoker(plan: &Plan, subscription: &Resource, service: &Resource, open: So, found: &mut Found) {
    let account = plan.identity(subscription, ACCOUNT_AT, ACCOUNT);
    let so = invokers(plan, service, &|resource, pointer, told| {
        let Some(text) = told.text() else { return plan.identity(resource, pointer, ACCOUNT).is(&account) };
        match text.split_once(':') {
            Some(("serviceAccount", email)) => plan.named(email, None, ACCOUNT).is(&account),
            // Who is in these, no plan says.
            Some(("group" | "domain" | "principalSet", _)) => So::Untold,
            _ => So::No,
        }
    });
    found.demand(so.max(open), "invoker", format!(
        "{} does not grant roles/run.invoker to the account of the push token: Cloud Run answers every push 403; add a google_cloud_run_v2_service_iam_member",
        service.address
    ));
}

fn invokers(plan: &Plan, service: &Resource, member: &dyn Fn(&Resource, &str, Told<'_>) -> So) -> So {
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
}

//! How the service itself tells a push from a stranger's request: `PUSH_AUTH`, and what belongs to it.

use crate::plan::{Resource, So, Told};

use super::Found;
use super::environment::Environment;

/// What the push token is compared with, in the service.
const EXPECTED: [&str; 2] = ["PUSH_AUDIENCE", "PUSH_SERVICE_ACCOUNT"];

pub(super) fn check(service: &Resource, environment: Option<&Environment<'_>>, open: So, found: &mut Found) {
    let address = &service.address;
    let mode = environment.map_or(Some(Told::Unknown), |environment| environment.get("PUSH_AUTH"));
    let verifies = match mode {
        Some(Told::Is(mode)) => (mode == "verify").into(),
        Some(Told::Unknown) => So::Untold,
        Some(Told::Absent) | None => So::No,
    };
    found.demand(verifies.max(!open), "open-to-all", format!(
        "{address} may be called by everybody, and its PUSH_AUTH is not `verify`: a stranger can burn keys; take the grant away or verify the token"
    ));
    let Some(environment) = environment else { return };
    match mode.map(Told::text) {
        None => found.unknown("push-auth", format!(
            "{address} sets no PUSH_AUTH: `orders` does not start without it on Cloud Run, and whether another program needs it cannot be told from the plan"
        )),
        Some(None) => found.unknown("push-auth", format!(
            "PUSH_AUTH of {address} cannot be told from the plan: whether a push is let in was not checked"
        )),
        Some(Some("none")) => {}
        Some(Some(mode @ ("verify" | "platform"))) => {
            if mode == "verify" {
                found.demand(open, "push-auth", format!(
                    "{address} has PUSH_AUTH `verify` and is not open to everybody: Cloud Run then takes the signature off each token, and every push is answered 401; set it to `platform`"
                ));
            }
            for name in EXPECTED.into_iter().filter(|name| environment.get(name).is_none()) {
                found.refuse("push-auth", format!(
                    "{address} has PUSH_AUTH `{mode}` and no {name}: it does not start; set it to what the push token has"
                ));
            }
        }
        Some(Some(mode)) => found.refuse("push-auth", format!(
            "PUSH_AUTH of {address} is {mode:?}, so that it does not start: expected `verify`, `platform` or `none`"
        )),
    }
}

//! Whether a member of a grant is the account with which Pub/Sub itself works in the project of a subscription.

use crate::plan::{Leaf, Plan, Resource, So, Told};

/// It has the number of the project in its name, not the id.
pub(super) const AGENT: &str = "@gcp-sa-pubsub.iam.gserviceaccount.com";

pub(super) fn agent(
    plan: &Plan,
    source: &Resource,
    resource: &Resource,
    pointer: &str,
    told: Told<'_>,
) -> So {
    if let Some(text) = told.text() {
        let number = text.strip_prefix("serviceAccount:service-").and_then(|rest| rest.strip_suffix(AGENT));
        let Some(number) =
            number.filter(|number| !number.is_empty() && number.bytes().all(|c| c.is_ascii_digit()))
        else {
            return So::No;
        };
        if let Some(expected) = plan.project(source).and_then(|project| plan.number(project)) {
            return (expected == number).into();
        }
    }
    let leaves = plan.origins(resource, pointer).unwrap_or_default();
    let mut each = leaves.iter().map(|leaf| made_of(plan, source, leaf));
    // Of several the plan does not say which is in which member.
    each.next().filter(|first| each.all(|so| so == *first)).unwrap_or(So::Untold)
}

/// Whether what is made of this value is the account.
fn made_of(plan: &Plan, source: &Resource, leaf: &Leaf) -> So {
    let mut instances = plan.instances(leaf);
    let (Some(of), None) = (instances.next(), instances.next()) else { return So::Untold };
    match (&*leaf.kind, leaf.attribute.as_deref()) {
        ("google_project", Some("number")) => plan.same_project(of, source),
        ("google_project", Some("id" | "name" | "project_id")) => So::No,
        ("google_project_service_identity", Some("email" | "member")) => {
            match plan.told(of, "/service").text() {
                Some("pubsub.googleapis.com") => plan.same_project(of, source),
                Some(_) => So::No,
                None => So::Untold,
            }
        }
        _ => So::Untold,
    }
}

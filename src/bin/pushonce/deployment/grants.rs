//! Who may do what: the grants of a plan, in the four shapes in which Terraform writes them.

use serde_json::Value;

use crate::plan::{Identity, Plan, Resource, So, Told};

/// What a grant is sought for.
pub(super) struct Sought<'a> {
    /// The resource types that grant on it, without `_iam_member`, and the attribute that names it in each.
    pub(super) on: &'a [(&'a str, &'a str)],
    /// What it is granted on, and the type of that.
    pub(super) target: &'a Identity<'a>,
    pub(super) kind: &'a str,
    /// One of these roles is enough.
    pub(super) roles: &'a [&'a str],
    /// Whether a member is the one, by its text or by where it comes from.
    pub(super) member: &'a dyn Fn(&Resource, &str, Told<'_>) -> So,
}

/// Whether the plan grants it.
pub(super) fn granted(plan: &Plan, sought: &Sought<'_>) -> So {
    let mut best = So::No;
    // A policy replaces all that others grant on the resource.
    let mut most = So::Yes;
    for (prefix, named) in sought.on {
        for grant in ["member", "binding", "policy"] {
            for resource in plan.of(&format!("{prefix}_iam_{grant}")) {
                let here = plan.identity(resource, &format!("/{named}"), sought.kind).is(sought.target);
                let grants = grants(plan, resource, grant, sought);
                best = best.max(here.min(grants));
                if grant == "policy" && here != So::No && grants != So::Yes {
                    most = So::Untold;
                }
            }
        }
    }
    best = best.min(most);
    for grant in ["member", "binding"] {
        for resource in plan.of(&format!("google_project_iam_{grant}")) {
            best = best.max(in_project(plan, resource, sought).min(grants(plan, resource, grant, sought)));
        }
    }
    best
}

/// Whether a grant on a project reaches the target.
fn in_project(plan: &Plan, resource: &Resource, sought: &Sought<'_>) -> So {
    let of = match sought.target {
        Identity::Planned(target) => plan.project(target),
        _ => {
            let path = sought.target.name().and_then(|path| path.strip_prefix("projects/"));
            path.and_then(|rest| rest.split('/').next())
        }
    };
    plan.project(resource).zip(of).map_or(So::Untold, |(one, other)| (one == other).into())
}

/// Whether a resource gives the role to the member, on whatever it is.
fn grants(plan: &Plan, resource: &Resource, grant: &str, sought: &Sought<'_>) -> So {
    if grant == "policy" {
        return policy(plan, resource, sought);
    }
    let role = match plan.told(resource, "/role") {
        Told::Is(role) => is_role(role, sought),
        _ => So::Untold,
    };
    let member = match (grant, plan.told(resource, "/members")) {
        ("member", _) => (sought.member)(resource, "/member", plan.told(resource, "/member")),
        (_, Told::Is(Value::Array(members))) => {
            let each = members.iter().map(|member| (sought.member)(resource, "/members", Told::Is(member)));
            // In a set with one unknown member the plan leaves a null, or the set out.
            each.max().unwrap_or(So::No)
        }
        _ => (sought.member)(resource, "/members", Told::Unknown),
    };
    // When a condition holds, no plan says.
    let most = if plan.told(resource, "/condition/0") == Told::Absent { So::Yes } else { So::Untold };
    role.min(member).min(most)
}

fn policy(plan: &Plan, resource: &Resource, sought: &Sought<'_>) -> So {
    let text = plan.told(resource, "/policy_data").text();
    let Some(policy) = text.and_then(|text| serde_json::from_str::<Value>(text).ok()) else {
        return So::Untold;
    };
    let bindings = policy.get("bindings").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let granted = bindings.iter().map(|binding| {
        let members = binding.get("members").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let member = members.iter().map(|member| (sought.member)(resource, "/policy_data", Told::Is(member)));
        let most = if binding.get("condition").is_none_or(Value::is_null) { So::Yes } else { So::Untold };
        is_role(&binding["role"], sought).min(member.max().unwrap_or(So::No)).min(most)
    });
    granted.max().unwrap_or(So::No)
}

/// What is in a role of one's own, no plan says.
fn is_role(role: &Value, sought: &Sought<'_>) -> So {
    match role.as_str() {
        Some(role) if !role.starts_with("roles/") => So::Untold,
        Some(role) => sought.roles.contains(&role).into(),
        None => So::Untold,
    }
}

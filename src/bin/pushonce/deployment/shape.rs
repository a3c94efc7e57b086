//! In which shape a push arrives: unwrapped it must have its metadata, or no message has an id.

use crate::plan::{Plan, Resource, So, Told};

use super::Found;

pub(super) fn check(plan: &Plan, subscription: &Resource, found: &mut Found) {
    let so = match plan.told(subscription, "/push_config/0/no_wrapper/0") {
        Told::Absent => So::Yes,
        Told::Unknown => So::Untold,
        Told::Is(_) => match plan.told(subscription, "/push_config/0/no_wrapper/0/write_metadata") {
            Told::Is(written) => (*written == true).into(),
            Told::Absent => So::No,
            Told::Unknown => So::Untold,
        },
    };
    found.demand(so, "unwrapped", "push_config has a no_wrapper without write_metadata: no push says its message's id or attributes, and each is answered 422 for want of a key, unless the service finds one in the data; set write_metadata = true");
}

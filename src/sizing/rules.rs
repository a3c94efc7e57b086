//! The rules, each in one place: what must hold, where it comes from, and what a breach says.

use std::fmt;
use std::time::Duration;

use super::Verdict;
use super::verdict::Seconds;

/// The longest request of Cloud Run, whatever a service sets for itself
/// (<https://cloud.google.com/run/docs/configuring/request-timeout>).
const LONGEST_REQUEST: Duration = Duration::from_secs(3600);
/// Of a subscription (<https://cloud.google.com/pubsub/docs/reference/rest/v1/projects.subscriptions>).
const ACK_DEADLINE: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(600)];
const RETENTION: [Duration; 2] = [Duration::from_secs(600), Duration::from_secs(31 * 86400)];
/// Pub/Sub itself takes a minimum of zero, with which a message comes back at once and burns every attempt.
const BACKOFF: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(600)];
const ATTEMPTS: [u32; 2] = [5, 100];

/// A rule that the times of a deployment must keep; the [table](crate::sizing) says each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Rule {
    /// The lease is longer than the request timeout, or a redelivery runs beside its holder.
    Lease,
    /// Lease and ttl are longer than the longest request, or its repeat finds the key forgotten.
    Window,
    /// The delivery attempts outlast a held key, or a healthy message is dead-lettered.
    Attempts,
    /// The ack deadline is one that Pub/Sub takes and not below the request timeout, or a handler is
    /// delivered again while it runs.
    AckDeadline,
    /// The retention is one that Pub/Sub takes and longer than all attempts, or a message expires instead
    /// of being dead-lettered.
    Retention,
    /// The backoff is one that Pub/Sub takes, from a second up, or the attempts are burned at once.
    Backoff,
    /// The ttl is not below the retention, or a late redelivery of a done message runs again. A warning.
    Ttl,
}

impl Rule {
    /// The name of the rule, as `lease` or `ack-deadline`; part of the API, like the names of variables.
    pub fn id(self) -> &'static str {
        match self {
            Self::Lease => "lease",
            Self::Window => "window",
            Self::Attempts => "attempts",
            Self::AckDeadline => "ack-deadline",
            Self::Retention => "retention",
            Self::Backoff => "backoff",
            Self::Ttl => "ttl",
        }
    }

    /// What a breach of it does.
    pub fn severity(self) -> Severity {
        if self == Self::Ttl { Severity::Warned } else { Severity::Refused }
    }
}

/// What a finding does to the sizing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Severity {
    /// The service must not serve with it.
    Refused,
    /// It works, with a limit that one should know.
    Warned,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Refused => "refused",
            Self::Warned => "warned",
        })
    }
}

/// One rule that is broken. A rule can be broken in two ways at once, and then has two findings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    rule: Rule,
    text: String,
}

impl Finding {
    /// The rule that is broken.
    pub fn rule(&self) -> Rule {
        self.rule
    }

    /// What it does to the sizing.
    pub fn severity(&self) -> Severity {
        self.rule.severity()
    }

    /// In one line: what is, what was expected, what to change.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule.id(), self.text)
    }
}

/// What is wrong with a sizing whose numbers these are.
pub(super) fn findings(verdict: &Verdict) -> Vec<Finding> {
    let rules = [lease, window, attempts, ack_deadline, retention, backoff, ttl];
    rules.into_iter().flat_map(|rule| rule(verdict)).collect()
}

type Found = Vec<Finding>;

fn broken(rule: Rule, text: String) -> Found {
    vec![Finding { rule, text }]
}

fn lease(verdict: &Verdict) -> Found {
    let (lease, request) = (verdict.sizing().lease, verdict.sizing().request_timeout);
    if lease > request {
        return Found::new();
    }
    let text = format!(
        "lease is {}: expected more than request_timeout, {}, or a redelivery runs beside its holder; lengthen the lease or shorten the requests",
        Seconds(lease),
        Seconds(request),
    );
    broken(Rule::Lease, text)
}

fn window(verdict: &Verdict) -> Found {
    let (lease, ttl) = (verdict.sizing().lease, verdict.sizing().ttl);
    let kept = lease.saturating_add(ttl);
    if kept > LONGEST_REQUEST {
        return Found::new();
    }
    let text = format!(
        "lease + ttl is {}: expected more than {}, Cloud Run's longest request, or a key can be forgotten while its holder runs; lengthen the ttl",
        Seconds(kept),
        Seconds(LONGEST_REQUEST),
    );
    broken(Rule::Window, text)
}

fn attempts(verdict: &Verdict) -> Found {
    let [fewest, most] = ATTEMPTS;
    let (set, needed) = (verdict.sizing().max_delivery_attempts, verdict.needed());
    if needed > most.into() {
        let needed = if needed == u64::MAX { "without end".to_owned() } else { needed.to_string() };
        let text = format!(
            "no max_delivery_attempts is enough: needed {needed}, and Pub/Sub takes at most {most}; raise max_backoff, at most 600 s, or shorten the lease",
        );
        return broken(Rule::Attempts, text);
    }
    if !(fewest..=most).contains(&set) {
        let expected = needed.max(fewest.into());
        let text = format!(
            "max_delivery_attempts is {set}: Pub/Sub takes {fewest} to {most}; set {expected} or more (needed {needed})"
        );
        return broken(Rule::Attempts, text);
    }
    if u64::from(set) >= needed {
        return Found::new();
    }
    let text = format!(
        "max_delivery_attempts is {set}: expected at least {needed}, since a key that is held for {} burns up to {}, and a healthy message is dead-lettered; raise it, raise the backoff or shorten the lease",
        Seconds(verdict.window()),
        verdict.burned(),
    );
    broken(Rule::Attempts, text)
}

fn ack_deadline(verdict: &Verdict) -> Found {
    let (deadline, request) = (verdict.sizing().ack_deadline, verdict.sizing().request_timeout);
    let mut found = outside(Rule::AckDeadline, "ack_deadline", deadline, ACK_DEADLINE);
    if deadline < request {
        let text = format!(
            "ack_deadline is {}: expected at least request_timeout, {}, or a handler is delivered again while it runs; shorten the requests or lengthen the deadline, at most {}",
            Seconds(deadline),
            Seconds(request),
            Seconds(ACK_DEADLINE[1]),
        );
        found.extend(broken(Rule::AckDeadline, text));
    }
    found
}

fn retention(verdict: &Verdict) -> Found {
    let retention = verdict.sizing().retention;
    let mut found = outside(Rule::Retention, "retention", retention, RETENTION);
    if retention <= verdict.all_attempts() {
        let text = format!(
            "retention is {}: expected more than {}, what {} attempts can take with every backoff and ack deadline, or a message expires instead of being dead-lettered; lengthen it or lower max_delivery_attempts",
            Seconds(retention),
            Seconds(verdict.all_attempts()),
            verdict.sizing().max_delivery_attempts,
        );
        found.extend(broken(Rule::Retention, text));
    }
    found
}

fn backoff(verdict: &Verdict) -> Found {
    let (min, max) = (verdict.sizing().min_backoff, verdict.sizing().max_backoff);
    let mut found = outside(Rule::Backoff, "min_backoff", min, BACKOFF);
    found.extend(outside(Rule::Backoff, "max_backoff", max, BACKOFF));
    if min > max {
        let text = format!(
            "min_backoff is {}: expected at most max_backoff, {}; lower it or raise the other",
            Seconds(min),
            Seconds(max)
        );
        found.extend(broken(Rule::Backoff, text));
    }
    let share = verdict.sizing().floor_ratio;
    if !(share > 0.0 && share <= 1.0) {
        let text = format!("floor_ratio is {share}: expected a share of a delay, above 0 and at most 1");
        found.extend(broken(Rule::Backoff, text));
    }
    found
}

fn ttl(verdict: &Verdict) -> Found {
    let (ttl, retention) = (verdict.sizing().ttl, verdict.sizing().retention);
    if ttl >= retention {
        return Found::new();
    }
    let text = format!(
        "ttl is {}: expected at least retention, {}, or a message that is redelivered after its key was forgotten runs again; lengthen the ttl or shorten the retention",
        Seconds(ttl),
        Seconds(retention),
    );
    broken(Rule::Ttl, text)
}

fn outside(rule: Rule, name: &str, value: Duration, [shortest, longest]: [Duration; 2]) -> Found {
    if (shortest..=longest).contains(&value) {
        return Found::new();
    }
    let text = format!(
        "{name} is {}: expected {} to {}, which is what Pub/Sub takes",
        Seconds(value),
        Seconds(shortest),
        Seconds(longest)
    );
    broken(rule, text)
}

//! `Scope`: within what an idempotency key names one task.

/// Within what an idempotency key names one task. The same key in two scopes names two tasks.
///
/// As a text (in records, and in the attribute `task-scope`): `type:charge`, `queue:mail`, `global`,
/// `custom:x`, after `tenant@` where the submitter tells callers apart; `%`, `:` and `@` inside of a name
/// are percent-encoded, so no two scopes have one text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Scope {
    /// The task's type.
    #[default]
    TaskType,
    /// That queue.
    Queue(String),
    /// One for all.
    Global,
    /// Any name.
    Custom(String),
}

impl Scope {
    /// The scope as a text.
    pub(super) fn text(&self, task_type: &str, tenant: Option<&str>) -> String {
        let scope = match self {
            Self::TaskType => format!("type:{}", encoded(task_type)),
            Self::Queue(queue) => format!("queue:{}", encoded(queue)),
            Self::Global => "global".to_owned(),
            Self::Custom(name) => format!("custom:{}", encoded(name)),
        };
        match tenant {
            Some(tenant) => format!("{}@{scope}", encoded(tenant)),
            None => scope,
        }
    }
}

fn encoded(name: &str) -> String {
    name.replace('%', "%25").replace(':', "%3A").replace('@', "%40")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_scopes_have_one_text() {
        let custom = |name: &str| Scope::Custom(name.to_owned());
        let texts = [
            Scope::TaskType.text("a", None),
            Scope::Queue("a".to_owned()).text("a", None),
            Scope::Global.text("a", None),
            custom("a").text("a", None),
            custom("a").text("a", Some("t")),
            custom("t@custom:a").text("a", None),
            custom("t%40custom%3Aa").text("a", None),
            Scope::Global.text("a", Some("t")),
            Scope::Global.text("a", Some("t@custom:t")),
        ];
        for (at, text) in texts.iter().enumerate() {
            assert!(!texts[at + 1..].contains(text), "{text}");
        }
    }
}

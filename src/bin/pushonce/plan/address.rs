//! Addresses and references, as `module.m["a"].google_pubsub_topic.dead[0].id`, in their parts.

use serde_json::Value;

/// A name, and the key in brackets behind it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Part {
    pub(super) name: String,
    pub(super) key: Option<Value>,
}

/// The parts of a reference. A key that is neither a text nor a number is none.
pub(super) fn parts(reference: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let (mut start, mut depth, mut quoted, mut escaped) = (0, 0, false, false);
    for (at, c) in reference.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '[' => depth += 1,
            ']' => depth -= 1,
            '.' if depth == 0 => {
                parts.push(part(&reference[start..at]));
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(part(&reference[start..]));
    parts
}

fn part(text: &str) -> Part {
    let (name, key) = text.split_once('[').unwrap_or((text, ""));
    let key = key.strip_suffix(']').and_then(|key| serde_json::from_str(key).ok());
    Part { name: name.to_owned(), key }
}

/// The modules of a module's address: `module.a["x"].module.b` is `a["x"]`, `b`.
pub(super) fn modules(address: &str) -> Vec<Part> {
    parts(address).into_iter().filter(|part| !part.name.is_empty()).skip(1).step_by(2).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_reference_is_its_parts() {
        let part = |name: &str, key: Option<Value>| Part { name: name.to_owned(), key };
        assert_eq!(
            parts(r#"module.m["a.b]\""].google_pubsub_topic.dead[0].id"#),
            [
                part("module", None),
                part("m", Some(json!("a.b]\""))),
                part("google_pubsub_topic", None),
                part("dead", Some(json!(0))),
                part("id", None)
            ]
        );
        assert_eq!(modules(r#"module.a["x"].module.b"#), [part("a", Some(json!("x"))), part("b", None)]);
        assert_eq!(modules(""), []);
        assert_eq!(parts("a[each.key]"), [part("a", None)]);
    }
}

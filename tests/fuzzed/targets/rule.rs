//! A key rule in a line of text, and the same rule once more as plainly as it can be said.

use pushonce::Delivery;
use pushonce::pubsub::{KeyRule, Shape, attribute, json_pointer, message_id};
use serde_json::Value;

/// A rule, resolved without the library's own reader of JSON.
pub(super) struct Model {
    scope: Option<String>,
    parts: Vec<Part>,
}

enum Part {
    Id,
    Attribute(String),
    Pointer(String),
    Either(Box<(Model, Model)>),
}

/// The parts of a key.
pub(super) enum Text {
    Parts(Vec<String>),
    /// There is no key.
    None,
    /// The plain reader cannot say.
    Unknown,
}

impl Model {
    /// Words between tabs, each of which goes on with the rule of those before it: `#` the message id, `@name` an
    /// attribute, `^name` a scope, anything else a JSON pointer. A word behind `?` is an alternative, others are one
    /// more part.
    pub(super) fn read(line: &str) -> (KeyRule, Self) {
        let mut words = line.split('\t');
        let mut both = Self::one(words.next().unwrap_or_default());
        for word in words.take(16) {
            let (rule, mut model) = both;
            both = match (word.strip_prefix('^'), word.strip_prefix('?')) {
                (Some(scope), _) => {
                    model.scope = Some(scope.to_owned());
                    (rule.scope(scope), model)
                }
                (None, Some(word)) => {
                    let (other, alternative) = Self::one(word);
                    let either = Part::Either(Box::new((model, alternative)));
                    (rule.or(other), Self { scope: None, parts: vec![either] })
                }
                (None, None) => {
                    let (other, more) = Self::one(word);
                    model.parts.extend(more.parts);
                    (rule.and(other), model)
                }
            };
        }
        both
    }

    fn one(word: &str) -> (KeyRule, Self) {
        let (rule, part) = match word.strip_prefix('@') {
            _ if word == "#" => (message_id(), Part::Id),
            Some(name) => (attribute(name), Part::Attribute(name.to_owned())),
            None => (json_pointer(word), Part::Pointer(word.to_owned())),
        };
        (rule, Self { scope: None, parts: vec![part] })
    }

    /// Whether the rule can ever find a key.
    pub(super) fn is_valid(&self) -> bool {
        let named = |text: &String| !text.trim().is_empty();
        self.scope.as_ref().is_none_or(named)
            && self.parts.iter().all(|part| match part {
                Part::Id => true,
                Part::Attribute(name) => named(name),
                Part::Pointer(pointer) => {
                    let mut after = pointer.split('~').skip(1);
                    (pointer.is_empty() || pointer.starts_with('/'))
                        && after.all(|text| text.starts_with(['0', '1']))
                }
                Part::Either(rules) => rules.0.is_valid() && rules.1.is_valid(),
            })
    }

    pub(super) fn parts(&self, delivery: &Delivery) -> Text {
        let mut found: Vec<String> = self.scope.iter().cloned().collect();
        let mut missing = false;
        for part in &self.parts {
            match part.text(delivery) {
                Text::Parts(parts) => found.push(joined(&parts)),
                Text::None => missing = true,
                Text::Unknown => return Text::Unknown,
            }
        }
        if missing { Text::None } else { Text::Parts(found) }
    }
}

impl Part {
    fn text(&self, delivery: &Delivery) -> Text {
        let found = match self {
            // Of an event without a message the id has two parts, and is not told here.
            Self::Id if delivery.shape() == Shape::CloudEvent => return Text::Unknown,
            Self::Id => delivery.message_id().map(str::to_owned),
            Self::Attribute(name) => delivery.attribute(name).map(str::to_owned),
            Self::Pointer(pointer) => {
                let Ok(data) = delivery.json::<Value>() else { return Text::Unknown };
                match data.pointer(pointer) {
                    Some(Value::String(text)) => Some(text.clone()),
                    Some(Value::Bool(truth)) => Some(truth.to_string()),
                    Some(Value::Number(_)) => return Text::Unknown,
                    Some(Value::Null | Value::Array(_) | Value::Object(_)) | None => None,
                }
            }
            Self::Either(rules) => match rules.0.parts(delivery) {
                Text::None => return rules.1.parts(delivery),
                found => return found,
            },
        };
        match found.filter(|text| !text.trim().is_empty()) {
            Some(text) => Text::Parts(vec![text]),
            None => Text::None,
        }
    }
}

/// The alternative that was taken is one part of the rule around it.
fn joined(parts: &[String]) -> String {
    match parts {
        [one] => one.clone(),
        _ => parts.iter().map(|part| format!("{}.{part}", part.len())).collect::<Vec<_>>().join("|"),
    }
}

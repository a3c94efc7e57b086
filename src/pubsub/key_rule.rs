//! Key rules, as data: which part of a delivery says what is done once.

use std::borrow::Cow;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::delivery::Delivery;
use super::pointer;
use crate::key::join;
use crate::store::BoxError;

/// Finds the text of a key in a delivery: [`message_id`], [`attribute`], [`json_pointer`], [`key_fn`],
/// several of them joined by [`and`](Self::and), or the first that finds something, by [`or`](Self::or).
///
/// ```
/// use pushonce::pubsub::attribute;
///
/// // Cloud Storage may publish one change of an object twice, under two message ids.
/// let change = attribute("bucketId")
///     .and(attribute("objectId"))
///     .and(attribute("objectGeneration"))
///     .and(attribute("eventType"));
/// # let _ = change;
/// ```
///
/// Name all of what is done once. A build id alone names a build, not its change from queued to
/// done: a key of it would skip every later state. And do not hash the body: two ticks of a schedule
/// are the same bytes and two messages.
#[derive(Clone, Debug)]
#[must_use = "a rule finds no key until a layer or `resolve` uses it"]
pub struct KeyRule {
    scope: Option<Arc<str>>,
    parts: Vec<Part>,
}

type Closure = dyn Fn(&Delivery) -> Result<Option<String>, BoxError> + Send + Sync;

#[derive(Clone)]
enum Part {
    MessageId,
    Attribute(Arc<str>),
    /// As given, and read when the rule was made.
    Pointer(Arc<str>, Result<Arc<[String]>, &'static str>),
    Closure(Arc<Closure>),
    /// The first that finds something.
    Either(Arc<(KeyRule, KeyRule)>),
}

/// The id that Pub/Sub gave the message. The default.
///
/// It is the same on each redelivery and, since an Eventarc trigger hands the same message on, there
/// too; but a producer that publishes again gets another one. Of a CloudEvent that is not Pub/Sub's
/// it is source and id, which together name one event.
pub fn message_id() -> KeyRule {
    KeyRule::of(Part::MessageId)
}

/// An attribute of the message (see [`Delivery::attribute`]).
pub fn attribute(name: impl AsRef<str>) -> KeyRule {
    KeyRule::of(Part::Attribute(name.as_ref().into()))
}

/// A string, number or boolean in the data, by its JSON Pointer (RFC 6901), such as `/order/id`.
///
/// Null, an object, an array or nothing there is no key, and so is data that is not JSON. A number
/// counts as the text that the sender wrote: `5` and `"5"` are the same key, since senders change
/// the type of an id but not the thing it names, while `5` and `5.0` are two.
pub fn json_pointer(pointer: impl AsRef<str>) -> KeyRule {
    let pointer = pointer.as_ref();
    KeyRule::of(Part::Pointer(pointer.into(), pointer::parse(pointer).map(Into::into)))
}

/// Whatever a closure finds; `Ok(None)` is no key. An error or a panic of it is answered 500 and not acked.
pub fn key_fn<F>(find: F) -> KeyRule
where
    F: Fn(&Delivery) -> Result<Option<String>, BoxError> + Send + Sync + 'static,
{
    KeyRule::of(Part::Closure(Arc::new(find)))
}

impl Default for KeyRule {
    /// [`message_id`].
    fn default() -> Self {
        message_id()
    }
}

impl KeyRule {
    fn of(part: Part) -> Self {
        Self { scope: None, parts: vec![part] }
    }

    /// This and another rule: both must find something. The parts stay apart, so that `a` and `bc`
    /// are not `ab` and `c`. The scope is this rule's, or the other's if this has none.
    pub fn and(mut self, other: Self) -> Self {
        self.scope = self.scope.or(other.scope);
        self.parts.extend(other.parts);
        self
    }

    /// This rule, or where it finds nothing the other: for producers that name one thing in two
    /// places. Both must give the same text for it.
    pub fn or(self, other: Self) -> Self {
        Self::of(Part::Either(Arc::new((self, other))))
    }

    /// Sets these keys apart from those of other scopes: one more part, before all others.
    pub fn scope(mut self, name: impl AsRef<str>) -> Self {
        self.scope = Some(name.as_ref().into());
        self
    }

    /// The scope, if one was set.
    pub(crate) fn scope_name(&self) -> Option<&str> {
        self.scope.as_deref()
    }

    /// Whether the message id is the whole key.
    pub(crate) fn is_message_id(&self) -> bool {
        matches!(self.parts[..], [Part::MessageId])
    }

    /// What is wrong with the rule itself, told when a layer is built and not at the first message.
    pub(crate) fn check(&self) -> Result<(), KeyRuleError> {
        if self.scope_name().is_some_and(is_blank) {
            return Err(KeyRuleError::Rule { reason: "a scope is a text that is not blank" });
        }
        self.parts.iter().try_for_each(|part| match part {
            Part::Pointer(_, Err(reason)) => Err(KeyRuleError::Rule { reason }),
            Part::Attribute(name) if is_blank(name) => {
                Err(KeyRuleError::Rule { reason: "the name of an attribute is not blank" })
            }
            Part::Either(rules) => rules.0.check().and_then(|()| rules.1.check()),
            _ => Ok(()),
        })
    }

    /// The text of the key, or `None` if any part of it is absent or blank: a key that lacks a part
    /// would take unrelated messages for one.
    ///
    /// # Errors
    /// [`KeyRuleError`]: answer 500 and do not ack. The message is not at fault, the rule is.
    pub fn resolve(&self, delivery: &Delivery) -> Result<Option<String>, KeyRuleError> {
        Ok(self.find(delivery)?.map(Cow::into_owned))
    }

    /// The same, borrowed where it can be.
    pub(crate) fn find<'a>(&self, delivery: &'a Delivery) -> Result<Option<Cow<'a, str>>, KeyRuleError> {
        self.check()?;
        if let (None, [part]) = (&self.scope, &self.parts[..]) {
            // The usual rule, whose text is the key as it is.
            return Ok(part.find(delivery)?.filter(|text| !is_blank(text)));
        }
        let mut found: Vec<String> = self.scope_name().map(str::to_owned).into_iter().collect();
        for part in &self.parts {
            match part.find(delivery)? {
                Some(text) if !is_blank(&text) => found.push(text.into_owned()),
                _ => return Ok(None),
            }
        }
        Ok(Some(join(&found).into()))
    }
}

impl Part {
    fn find<'a>(&self, delivery: &'a Delivery) -> Result<Option<Cow<'a, str>>, KeyRuleError> {
        Ok(match self {
            Self::MessageId => match delivery.message_id() {
                Some(id) => Some(id.into()),
                None => event_id(delivery).map(Cow::Owned),
            },
            Self::Attribute(name) => delivery.attribute(name).map(Cow::Borrowed),
            Self::Pointer(_, path) => {
                let path = path.as_ref().map_err(|reason| KeyRuleError::Rule { reason })?;
                delivery.data().ok().and_then(|data| pointer::find(&data, path)).map(Cow::Owned)
            }
            Self::Either(rules) => match rules.0.find(delivery)? {
                None => rules.1.find(delivery)?,
                found => found,
            },
            // Nothing that the closure may have left half done is looked at afterwards.
            Self::Closure(find) => catch_unwind(AssertUnwindSafe(|| find(delivery)))
                .map_err(|_| KeyRuleError::Panicked)?
                .map_err(|source| KeyRuleError::Failed { source })?
                .map(Cow::Owned),
        })
    }
}

/// Source and id of a CloudEvent that carries no message. One that does has the message's id or no key.
fn event_id(delivery: &Delivery) -> Option<String> {
    let event = delivery.event().filter(|event| !event.is_published())?;
    Some(join(&[event.source().to_owned(), event.id().to_owned()]))
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MessageId => f.write_str("message_id()"),
            Self::Attribute(name) => write!(f, "attribute({name:?})"),
            Self::Pointer(text, _) => write!(f, "json_pointer({text:?})"),
            Self::Closure(_) => f.write_str("key_fn(..)"),
            Self::Either(rules) => write!(f, "{:?} or {:?}", rules.0, rules.1),
        }
    }
}

/// A rule that could not be applied. Nothing was claimed; answer 500, do not ack, and correct the rule.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyRuleError {
    /// The closure returned an error, which is the source.
    #[error("the closure of the key rule failed; return `Ok(None)` where a message has no key")]
    Failed {
        /// What it returned.
        source: BoxError,
    },
    /// The closure panicked.
    #[error("the closure of the key rule panicked; return `Ok(None)` where a message has no key")]
    Panicked,
    /// The rule can never find a key.
    #[error("the key rule is wrong: {reason}")]
    Rule {
        /// What a right one is like.
        reason: &'static str,
    },
}

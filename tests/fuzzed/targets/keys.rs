//! Key rules and stored names: what is not one thing never gets one key, and a stored name says whose it is.

use bytes::Bytes;
use pushonce::pubsub::{KeyRuleError, attribute, json_pointer};
use pushonce::testing::Push;
use pushonce::{Consumer, Delivery, Key, KeyInLogs};
use serde_json::Value;

use super::input::Input;
use super::rule::{Model, Text};

/// What the stores ask for, and the least that may be asked for.
const LIMITS: [usize; 4] = [160, 255, 900, 1500];

pub(crate) fn run(input: &[u8]) -> &'static str {
    let Input { line, headers, body } = Input::read(input);
    let (rule, model) = Model::read(&line);
    let Ok(delivery) = Delivery::decode(&headers, body) else { return "no delivery" };
    pointed(&delivery, &line);
    let found = match (rule.resolve(&delivery), model.is_valid()) {
        (Ok(found), true) => found,
        (Err(KeyRuleError::Rule { .. }), false) => return "no rule",
        (found, valid) => panic!("{rule:?}, which is valid ({valid}): {found:?}"),
    };
    assert_eq!(found, rule.resolve(&delivery).unwrap());
    match model.parts(&delivery) {
        Text::Unknown => {}
        Text::None => assert_eq!(found, None, "{rule:?}"),
        Text::Parts(parts) => {
            let text = found.as_deref().unwrap_or_else(|| panic!("{rule:?} finds nothing: {parts:?}"));
            assert_eq!(taken_apart(text, parts.len()), parts, "{rule:?}");
            moved(&parts);
        }
    }
    let Some(text) = found else { return "no key" };
    assert!(!text.trim().is_empty(), "{rule:?}");
    named(&text);
    "key"
}

/// The parts of a joined text, of which the number is known: by it nothing else could have been joined.
fn taken_apart(text: &str, count: usize) -> Vec<String> {
    if count == 1 {
        return vec![text.to_owned()];
    }
    let (mut parts, mut rest) = (Vec::new(), text);
    loop {
        let (length, after) = rest.split_once('.').unwrap();
        let (part, after) = after.split_at(length.parse().unwrap());
        parts.push(part.to_owned());
        match after.strip_prefix('|') {
            Some(after) => rest = after,
            None => break,
        }
        assert!(parts.len() < count, "{text:?}");
    }
    parts
}

/// `a` and `bc` are not `ab` and `c`: neither as keys nor as stored names.
fn moved(parts: &[String]) {
    let [one, other, ..] = parts else { return };
    let Some(first) = other.chars().next() else { return };
    let both = |one: &str, other: &str| {
        let push = Push::empty().id("1").attribute("one", one).attribute("other", other);
        let delivery = Delivery::decode(push.request::<Bytes>().headers(), push.body()).unwrap();
        attribute("one").and(attribute("other")).resolve(&delivery).unwrap()
    };
    let here = both(one, other).unwrap();
    if let Some(there) = both(&format!("{one}{first}"), &other[first.len_utf8()..]) {
        assert_ne!(here, there);
        let name = |text: &str| key(text).stored_name(LIMITS[0]);
        assert_ne!(name(&here), name(&there));
    }
}

fn key(text: &str) -> Key {
    Key::new(Consumer::new("orders").unwrap(), text).unwrap()
}

/// A stored name is short and plain enough for any store, and is that of no other key.
fn named(text: &str) {
    let key = key(text);
    let pseudonym = key.clone().in_logs(KeyInLogs::Hashed).to_string();
    let hash = pseudonym.strip_prefix("orders:#").unwrap();
    for limit in LIMITS {
        let name = key.stored_name(limit);
        assert!(name.len() <= limit, "{} bytes, and not {limit}", name.len());
        assert!(!name.chars().any(char::is_control), "{name:?}");
        let rest = name.strip_prefix(&hash[..4]).unwrap();
        match rest.strip_prefix("=orders:") {
            Some(told) => assert_eq!(told, text),
            None => {
                let whole = rest.strip_prefix("#orders:").unwrap();
                assert!(whole.len() == 64 && whole.starts_with(hash), "{name}");
                let fits = name.len() - 64 + text.len() <= limit;
                assert!(!fits || text.chars().any(char::is_control), "hashed without need: {name}");
            }
        }
    }
    let longer = Key::new(key.consumer().clone(), format!("{text} ")).unwrap();
    assert_ne!(longer, key);
    assert_ne!(longer.stored_name(LIMITS[0]), key.stored_name(LIMITS[0]));
}

/// A number is found as it was written, which only its value shows to another reader.
fn pointed(delivery: &Delivery, pointer: &str) {
    let Ok(data) = delivery.json::<Value>() else { return };
    let Ok(found) = json_pointer(pointer).resolve(delivery) else { return };
    if let Some(number @ Value::Number(_)) = data.pointer(pointer) {
        let found = found.unwrap_or_else(|| panic!("no key at {pointer:?}"));
        assert_eq!(&serde_json::from_str::<Value>(&found).unwrap(), number);
    }
}

//! The digest of an input: of JSON by its meaning, of anything else by its bytes.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use super::InvalidSubmission;
use crate::key::hex;

/// As deep as arrays and objects may be nested: what `serde_json` itself reads.
const DEEPEST: usize = 128;

/// The digest of a JSON text, as `sha256:` and hex. Members are sorted, white space is dropped, strings
/// are compared by what they say and numbers by their exact decimal value: `1.0` is `1`, and two integers
/// of nineteen digits stay distinct.
pub(super) fn json(text: &str) -> Result<String, InvalidSubmission> {
    if is_too_deep(text) {
        return Err(InvalidSubmission::Input { what: format!("it is nested more than {DEEPEST} deep") });
    }
    let raw: &RawValue = serde_json::from_str(text).map_err(|error| no_json(&error))?;
    let mut canonical = String::with_capacity(text.len());
    write(raw, &mut canonical).map_err(|error| no_json(&error))?;
    Ok(digest("json", canonical.as_bytes()))
}

/// The digest of any bytes.
pub(super) fn bytes(bytes: &[u8]) -> String {
    digest("bytes", bytes)
}

fn digest(kind: &str, bytes: &[u8]) -> String {
    let hash = Sha256::new().chain_update(kind).chain_update(":").chain_update(bytes);
    format!("sha256:{}", hex(&hash.finalize()))
}

/// Whether a text is nested too deeply to be taken apart: each level is a call, and the stack ends.
fn is_too_deep(json: &str) -> bool {
    let mut depth = 0_usize;
    let mut bytes = json.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'"' => skip_string(&mut bytes),
            _ => {}
        }
        if depth > DEEPEST {
            return true;
        }
    }
    false
}

fn skip_string(bytes: &mut std::str::Bytes<'_>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => drop(bytes.next()),
            _ => {}
        }
    }
}

fn no_json(error: &serde_json::Error) -> InvalidSubmission {
    InvalidSubmission::Input { what: format!("line {}, column {}", error.line(), error.column()) }
}

fn write(raw: &RawValue, out: &mut String) -> Result<(), serde_json::Error> {
    let text = raw.get();
    match text.as_bytes().first() {
        Some(b'{') => {
            // Of two members of one name the last counts, as for whoever reads it.
            let members: BTreeMap<String, &RawValue> = serde_json::from_str(text)?;
            out.push('{');
            for (at, (name, value)) in members.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                out.push_str(&serde_json::to_string(&name)?);
                out.push(':');
                write(value, out)?;
            }
            out.push('}');
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(text)?;
            out.push('[');
            for (at, item) in items.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write(item, out)?;
            }
            out.push(']');
        }
        Some(b'"') => out.push_str(&serde_json::to_string(&serde_json::from_str::<String>(text)?)?),
        Some(b'-' | b'0'..=b'9') => out.push_str(&number(text)),
        _ => out.push_str(text),
    }
    Ok(())
}

/// The exact decimal value: sign, digits without zeros at either end, and the power of ten.
fn number(text: &str) -> String {
    let (sign, rest) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (mantissa, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let leading = digits.trim_start_matches('0');
    let significant = leading.trim_end_matches('0');
    if significant.is_empty() {
        return "0".to_owned();
    }
    let dropped = i128::try_from(leading.len() - significant.len()).unwrap_or_default();
    let behind = i128::try_from(fraction.len()).unwrap_or_default();
    match exponent.parse::<i64>() {
        Ok(exponent) => format!("{sign}{significant}e{}", i128::from(exponent) + dropped - behind),
        // A power beyond all meaning: as it is written.
        Err(_) => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_members_white_space_and_spelling_do_not_count() {
        let one = json(r#"{"a":1,"b":[1.50,"é"],"c":{"x":null}}"#).unwrap();
        assert_eq!(one, json("{ \"c\" : {\"x\":null},\n\"b\":[15e-1, \"\\u00e9\"], \"a\":1.0 }").unwrap());
        assert_ne!(one, json(r#"{"a":1,"b":["é",1.50],"c":{"x":null}}"#).unwrap());
    }

    #[test]
    fn numbers_are_compared_exactly() {
        for (one, other) in [("1", "1.0"), ("-0", "0"), ("100", "1e2"), ("0.001", "1E-3"), ("0e9", "0.0")] {
            assert_eq!(json(one).unwrap(), json(other).unwrap(), "{one} {other}");
        }
        for (one, other) in [
            ("1234567890123456789", "1234567890123456788"),
            ("0.1", "0.10000000000000000001"),
            ("1", "-1"),
            ("1", "\"1\""),
            ("1e99999999999999999999", "1e99999999999999999998"),
        ] {
            assert_ne!(json(one).unwrap(), json(other).unwrap(), "{one} {other}");
        }
    }

    #[test]
    fn what_is_nested_without_end_is_refused() {
        let nested = |depth| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        assert!(json(&nested(DEEPEST)).is_ok());
        for text in [nested(DEEPEST + 1), nested(1_000_000), "[{\"a\":".repeat(65), "[".repeat(129)] {
            assert!(matches!(json(&text), Err(InvalidSubmission::Input { what }) if what.contains("128")));
        }
        // Side by side, and in strings, they are not nested.
        for text in ["[[],".repeat(99) + "1" + &"]".repeat(99), format!("[{}1]", "[],".repeat(999))] {
            assert!(json(&text).is_ok());
        }
        for quoted in
            ["[".repeat(999), format!("\\\"{}", "[".repeat(999)), format!("\\\\\",\"{}", "[".repeat(999))]
        {
            assert!(json(&format!("[\"{quoted}\"]")).is_ok(), "{quoted:.9}");
        }
    }

    #[test]
    fn bytes_are_not_json() {
        assert_ne!(bytes(b"1"), json("1").unwrap());
        assert!(json("{").is_err() && json("").is_err() && json("1 2").is_err());
    }
}

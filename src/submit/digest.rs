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
    serde_json::from_str::<&RawValue>(text).map_err(|error| no_json(&error))?;
    let mut canonical = Canonical { text, at: 0, out: String::with_capacity(text.len()) };
    canonical.value().map_err(|error| no_json(&error))?;
    Ok(digest("json", canonical.out.as_bytes()))
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

/// A reader of a text that is JSON for sure, which writes it as it is compared. Each byte is read once,
/// whatever the nesting: callers choose it.
struct Canonical<'a> {
    text: &'a str,
    at: usize,
    out: String,
}

impl<'a> Canonical<'a> {
    fn next(&mut self) -> Option<u8> {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.text.as_bytes().get(self.at).copied()
    }

    /// Takes what separates two parts, and tells whether there is another one.
    fn goes_on(&mut self, end: u8) -> bool {
        let next = self.next();
        self.at += usize::from(next == Some(end) || next == Some(b','));
        next.is_some_and(|next| next != end)
    }

    fn value(&mut self) -> Result<(), serde_json::Error> {
        match self.next() {
            Some(b'{') => self.object(),
            Some(b'[') => self.array(),
            Some(b'"') => {
                let text = self.string()?;
                self.out.push_str(&serde_json::to_string(&text)?);
                Ok(())
            }
            _ => {
                let text =
                    self.span(|byte| !matches!(byte, b',' | b']' | b'}') && !byte.is_ascii_whitespace());
                let is_number = text.starts_with(|c: char| c == '-' || c.is_ascii_digit());
                self.out.push_str(&if is_number { number(text) } else { text.to_owned() });
                Ok(())
            }
        }
    }

    fn array(&mut self) -> Result<(), serde_json::Error> {
        self.at += 1;
        self.out.push('[');
        let mut comma = "";
        while self.goes_on(b']') {
            self.out.push_str(std::mem::replace(&mut comma, ","));
            self.value()?;
        }
        self.out.push(']');
        Ok(())
    }

    fn object(&mut self) -> Result<(), serde_json::Error> {
        self.at += 1;
        // Of two members of one name the last counts, as for whoever reads it.
        let mut members = BTreeMap::<String, String>::new();
        let outer = std::mem::take(&mut self.out);
        while self.goes_on(b'}') {
            self.next();
            let name = self.string()?;
            self.next();
            self.at += 1;
            self.value()?;
            members.insert(name, std::mem::take(&mut self.out));
        }
        self.out = outer;
        self.out.push('{');
        let mut comma = "";
        for (name, value) in members {
            let name = serde_json::to_string(&name)?;
            self.out.extend([std::mem::replace(&mut comma, ","), &name, ":", &value]);
        }
        self.out.push('}');
        Ok(())
    }

    fn string(&mut self) -> Result<String, serde_json::Error> {
        let from = self.at;
        let mut bytes = self.text[from + 1..].bytes();
        skip_string(&mut bytes);
        self.at = self.text.len() - bytes.len();
        serde_json::from_str(&self.text[from..self.at])
    }

    fn span(&mut self, within: impl Fn(u8) -> bool) -> &'a str {
        let from = self.at;
        self.at += self.text[from..].bytes().take_while(|byte| within(*byte)).count();
        &self.text[from..self.at]
    }
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

    // A part of the format: a digest that is stored today has to be found again tomorrow.
    #[test]
    fn an_input_has_this_digest() {
        let digest = json(r#"{ "b": [1.50, "\u00e9", null, {}], "a": {"y": -0, "x": [] } }"#).unwrap();
        let canonical = r#"json:{"a":{"x":[],"y":0},"b":[15e-1,"é",null,{}]}"#;
        assert_eq!(digest, format!("sha256:{}", hex(&Sha256::digest(canonical))));
    }

    #[test]
    fn parts_stay_apart() {
        let texts = [
            "[1,2]",
            "[12]",
            "[[1],2]",
            "[1,[2]]",
            "[]",
            "[[]]",
            "{}",
            "[{}]",
            r#"{"a":{}}"#,
            r#"["a"]"#,
            r#"{"a":"b"}"#,
            r#"{"a":1,"b":2}"#,
            r#"{"a":{"b":2}}"#,
            r#"[",",1]"#,
            r#"["\\",1]"#,
            "null",
            "true",
            "[null]",
        ];
        for (at, text) in texts.iter().enumerate() {
            for other in &texts[at + 1..] {
                assert_ne!(json(text).unwrap(), json(other).unwrap(), "{text} {other}");
            }
        }
        assert_eq!(json(r#"{"a":1,"a":2}"#).unwrap(), json(r#"{"a":2}"#).unwrap());
        assert_eq!(json("\t[ 1 ,\n{ \"a\" : null } ]\r").unwrap(), json(r#"[1,{"a":null}]"#).unwrap());
    }

    #[test]
    fn bytes_are_not_json() {
        assert_ne!(bytes(b"1"), json("1").unwrap());
        assert!(json("{").is_err() && json("").is_err() && json("1 2").is_err());
    }
}

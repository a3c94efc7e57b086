//! The header `Idempotency-Key`: quoted or bare, one value.

use http::HeaderMap;

const NAME: &str = "idempotency-key";
/// What may stand around a value (RFC 9110, section 5.6.3).
const BLANKS: [char; 2] = [' ', '\t'];

/// The one key that the headers name. Whether it can be a key is the submission's to say.
pub(super) fn read(headers: &HeaderMap) -> Result<Option<String>, &'static str> {
    let mut key = None;
    for header in headers.get_all(NAME) {
        let text = header.to_str().map_err(|_| "has characters that are not ASCII")?;
        for value in values(text)? {
            if key.as_ref().is_some_and(|key| *key != value) {
                return Err("has two values that differ (one with a comma must be quoted)");
            }
            key = Some(value);
        }
    }
    Ok(key)
}

/// The values between the commas.
fn values(text: &str) -> Result<Vec<String>, &'static str> {
    let mut values = Vec::new();
    let mut rest = text;
    loop {
        let (value, after) = match rest.trim_start_matches(BLANKS).strip_prefix('"') {
            Some(quoted) => unquoted(quoted)?,
            None => bare(rest)?,
        };
        values.push(value);
        match after.trim_start_matches(BLANKS) {
            "" => return Ok(values),
            after => rest = after.strip_prefix(',').ok_or("goes on after its closing quote")?,
        }
    }
}

/// A value without quotes, and what follows it.
fn bare(text: &str) -> Result<(String, &str), &'static str> {
    let (value, after) = text.split_at(text.find(',').unwrap_or(text.len()));
    if value.contains('"') {
        return Err("has a quote inside of a value that does not begin with one");
    }
    Ok((value.trim_matches(BLANKS).to_owned(), after))
}

/// The string whose opening quote was read, and what follows it (RFC 9651, section 4.2.5).
fn unquoted(text: &str) -> Result<(String, &str), &'static str> {
    let mut value = String::new();
    let mut rest = text.chars();
    loop {
        match rest.next() {
            Some('"') => return Ok((value, rest.as_str())),
            Some('\\') => match rest.next() {
                Some(escaped @ ('"' | '\\')) => value.push(escaped),
                _ => return Err("has a backslash before neither a quote nor a backslash"),
            },
            Some(plain) => value.push(plain),
            None => return Err("has no closing quote"),
        }
    }
}

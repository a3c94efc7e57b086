//! An input as text, so that people can read and write one: a line, headers, an empty line, and a body of any bytes.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

/// What a target is given, as the files of `tests/payloads` write a request. Every sequence of bytes is one.
pub(crate) struct Input {
    /// The first line, which each target reads in its own way.
    pub(crate) line: String,
    /// Those that HTTP would let through.
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Input {
    pub(crate) fn read(input: &[u8]) -> Self {
        let mut lines = input.split_inclusive(|byte| *byte == b'\n');
        let line = String::from_utf8_lossy(lines.next().unwrap_or_default()).trim_end().to_owned();
        let mut headers = HeaderMap::new();
        for line in lines.by_ref().map(<[u8]>::trim_ascii).take_while(|line| !line.is_empty()) {
            let (name, value) = line.split_at(line.iter().position(|byte| *byte == b':').unwrap_or(0));
            let value = value.strip_prefix(b":").unwrap_or_default().trim_ascii();
            if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
                // A map of headers has an end, and a panic behind it.
                let _ = headers.try_append(name, value);
            }
        }
        let body = lines.flatten().copied().collect();
        Self { line, headers, body }
    }
}

//! A message's data as it lies in the body: decoded when somebody asks, hashed without being held.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use sha2::{Digest as _, Sha256};

use super::refused::BadData;

/// Symbols that are decoded at once. A multiple of four, so that no group of symbols is cut.
const CHUNK: usize = 4096;
/// Padding is optional at the end and wrong before it.
const LAST: GeneralPurpose = engine(DecodePaddingMode::Indifferent);
const INNER: GeneralPurpose = engine(DecodePaddingMode::RequireNone);

const fn engine(padding: DecodePaddingMode) -> GeneralPurpose {
    GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_padding_mode(padding))
}

/// Data, as a slice of the body.
pub(super) enum Payload {
    /// The data itself.
    Raw(Bytes),
    /// The inside of a JSON string of base64.
    ///
    /// The standard or the URL-safe alphabet, with or without padding, as the JSON mapping of
    /// protocol buffers asks of every parser; JSON escapes too (the emulator writes `\/`, others
    /// write `\u003d` for `=`).
    Base64(Bytes),
}

impl Payload {
    /// The data. Copies only what is encoded.
    pub(super) fn decode(&self) -> Result<Bytes, BadData> {
        match self {
            Self::Raw(data) => Ok(data.clone()),
            Self::Base64(text) => {
                let mut data = Vec::with_capacity(text.len() / 4 * 3 + 3);
                decode(text, |piece| data.extend_from_slice(piece))?;
                Ok(data.into())
            }
        }
    }

    /// The SHA-256 of the data, which is never held as a whole.
    pub(super) fn digest(&self) -> Result<[u8; 32], BadData> {
        let mut hash = Sha256::new();
        match self {
            Self::Raw(data) => hash.update(data),
            Self::Base64(text) => decode(text, |piece| hash.update(piece))?,
        }
        Ok(hash.finalize().into())
    }
}

/// Decodes the inside of a JSON string of base64, piece by piece.
fn decode(text: &[u8], mut sink: impl FnMut(&[u8])) -> Result<(), BadData> {
    let mut data = [0; CHUNK / 4 * 3];
    let mut emit = |symbols: &[u8], engine: &GeneralPurpose| {
        let length = engine.decode_slice(symbols, &mut data).map_err(|_| BadData::Base64)?;
        sink(&data[..length]);
        Ok(())
    };
    if !text.iter().any(|byte| matches!(byte, b'\\' | b'-' | b'_')) {
        let (inner, last) = text.split_at(text.len().saturating_sub(1) / CHUNK * CHUNK);
        inner.chunks(CHUNK).try_for_each(|symbols| emit(symbols, &INNER))?;
        return emit(last, &LAST);
    }
    let mut symbols = [0; CHUNK];
    let mut filled = 0;
    let mut rest = text;
    while !rest.is_empty() {
        if filled == CHUNK {
            emit(&symbols, &INNER)?;
            filled = 0;
        }
        (symbols[filled], rest) = next_symbol(rest).ok_or(BadData::Base64)?;
        filled += 1;
    }
    emit(&symbols[..filled], &LAST)
}

/// The next symbol, unescaped and in the standard alphabet, and what follows it.
fn next_symbol(text: &[u8]) -> Option<(u8, &[u8])> {
    let (symbol, rest) = match text {
        [b'\\', b'u', a, b, c, d, rest @ ..] => {
            let digits = [*a, *b, *c, *d];
            let code = u16::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?;
            (u8::try_from(code).ok()?, rest)
        }
        [b'\\', b'/', rest @ ..] => (b'/', rest),
        [b'\\', ..] | [] => return None,
        [symbol, rest @ ..] => (*symbol, rest),
    };
    let standard = match symbol {
        b'-' => b'+',
        b'_' => b'/',
        symbol => symbol,
    };
    Some((standard, rest))
}

#[cfg(test)]
mod tests {
    use base64::prelude::BASE64_STANDARD;

    use super::*;

    fn base64(text: impl Into<Bytes>) -> Payload {
        Payload::Base64(text.into())
    }

    fn decoded(text: &'static str) -> Option<Bytes> {
        base64(text).decode().ok()
    }

    #[test]
    fn padding_is_optional_and_both_alphabets_are_read() {
        let bytes: &[u8] = &[0xfb, 0xff, 0xfe, 0xff];
        for text in
            ["+//+/w==", "+//+/w", "-__-_w==", "-__-_w", r"+\/\/+\/w==", r"\u002b//\u002B/w\u003d\u003d"]
        {
            assert_eq!(decoded(text).as_deref(), Some(bytes), "{text}");
        }
        assert_eq!(decoded("").as_deref(), Some(&b""[..]));
    }

    #[test]
    fn what_is_no_base64_is_said_to_be_none() {
        for text in
            ["e", "e===", "eA==eA==", "eA = =", r"eA\n==", r"\u00e9", r"\u", r"\", "eA\u{e9}", "\"", "===="]
        {
            assert!(decoded(text).is_none(), "{text}");
            assert!(base64(text).digest().is_err(), "{text}");
        }
        // Padding in the middle is wrong, also where a chunk happens to end.
        let mut long = "A".repeat(CHUNK - 4) + "eA==";
        long.push_str("eA==");
        assert!(base64(long.clone()).decode().is_err());
        assert!(base64(long.replace('A', "_")).decode().is_err());
    }

    #[test]
    fn the_digest_is_that_of_the_decoded_data_at_every_length() {
        for length in (0..40).chain(3060..3090).chain(6130..6160) {
            let data: Vec<u8> = (0..length).map(|n| (n * 31 % 251) as u8).collect();
            let plain = BASE64_STANDARD.encode(&data);
            let expected: [u8; 32] = Sha256::digest(&data).into();
            for text in [plain.replace('/', r"\/"), plain.replace('+', "-"), plain.replace('=', ""), plain] {
                let payload = base64(text);
                assert_eq!(payload.decode().unwrap(), data, "{length}");
                assert_eq!(payload.digest().unwrap(), expected, "{length}");
            }
            assert_eq!(Payload::Raw(data.into()).digest().unwrap(), expected);
        }
    }
}

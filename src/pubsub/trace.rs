//! `Trace`: where a request stands in a distributed trace, as its headers or its message say.

use std::str::FromStr as _;

use http::HeaderMap;

use super::Delivery;

const TRACEPARENT: &str = "traceparent";
const CLOUD: &str = "x-cloud-trace-context";
/// Where Google's client libraries put the publisher's `traceparent`.
const PUBLISHER: &str = "googclient_traceparent";
/// The length of a `traceparent` of version 00, and of what later versions begin with.
const LENGTH: usize = 55;

/// A trace, the span in it that sent us, and whether the sender keeps it.
///
/// Read strictly: whatever is malformed is as good as absent, and never an error, since a trace decides
/// nothing. Ids are never zero.
///
/// ```
/// use http::HeaderMap;
/// use pushonce::pubsub::Trace;
///
/// let mut headers = HeaderMap::new();
/// headers.insert("x-cloud-trace-context", "4bf92f3577b34da6a3ce929d0e0e4736/74;o=1".parse()?);
/// let trace = Trace::of(&headers).ok_or("no trace")?;
/// assert_eq!(trace.id(), "4bf92f3577b34da6a3ce929d0e0e4736");
/// assert_eq!(trace.span_id().as_deref(), Some("000000000000004a"));
/// assert_eq!(trace.sampled(), Some(true));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trace {
    id: u128,
    span: Option<u64>,
    sampled: Option<bool>,
}

impl Trace {
    /// The request's: by `traceparent` (W3C Trace Context), else by `X-Cloud-Trace-Context`, the order
    /// of Google's own libraries. A header that comes twice says nothing.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let read = |name| single(headers, name);
        read(TRACEPARENT)
            .and_then(Self::from_traceparent)
            .or_else(|| read(CLOUD).and_then(Self::from_cloud_context))
    }

    /// The publisher's: by the message's attribute `googclient_traceparent`, which Google's client
    /// libraries set where their tracing is on.
    pub fn of_publisher(delivery: &Delivery) -> Option<Self> {
        delivery.attribute(PUBLISHER).and_then(Self::from_traceparent)
    }

    /// Reads `VERSION-TRACE-SPAN-FLAGS`, lower-case hex of 2, 32, 16 and 2 digits. Of a version after
    /// 00 only what 00 has is read, and `ff` is none (W3C Trace Context, level 1, section 3.2).
    pub fn from_traceparent(text: &str) -> Option<Self> {
        let (known, more) = text.split_at_checked(LENGTH)?;
        let mut fields = known.split('-');
        let mut next = |length| fields.next().filter(|field| is_lower_hex(field, length));
        let (version, id, span, flags) = (next(2)?, next(32)?, next(16)?, next(2)?);
        let whole = more.is_empty() || (version != "00" && more.starts_with('-'));
        if version == "ff" || !whole {
            return None;
        }
        let sampled = u8::from_str_radix(flags, 16).ok()? & 1 == 1;
        let span = u64::from_str_radix(span, 16).ok().filter(|span| *span != 0)?;
        Some(Self { id: id_of(id)?, span: Some(span), sampled: Some(sampled) })
    }

    /// Reads `TRACE[/SPAN][;o=OPTIONS]`: 32 hex digits, a decimal number, and bits of which the lowest
    /// says whether the trace is kept (Google's `X-Cloud-Trace-Context`).
    pub fn from_cloud_context(text: &str) -> Option<Self> {
        let (ids, options) = text.split_once(';').map_or((text, None), |(ids, options)| (ids, Some(options)));
        let (id, span) = ids.split_once('/').map_or((ids, None), |(id, span)| (id, Some(span)));
        let sampled = match options {
            Some(options) => Some(decimal(options.strip_prefix("o=")?)? & 1 == 1),
            None => None,
        };
        let span = match span {
            // Zero: no span of the sender's.
            Some(span) => Some(decimal(span)?).filter(|span| *span != 0),
            None => None,
        };
        let id = is_hex(id, 32).then(|| id_of(id)).flatten()?;
        Some(Self { id, span, sampled })
    }

    /// The trace's id: 32 lower-case hex digits.
    pub fn id(&self) -> String {
        format!("{:032x}", self.id)
    }

    /// The id of the span that sent the request: 16 lower-case hex digits.
    pub fn span_id(&self) -> Option<String> {
        self.span.map(|span| format!("{span:016x}"))
    }

    /// Whether the sender keeps the trace; `None` where it does not say.
    pub fn sampled(&self) -> Option<bool> {
        self.sampled
    }
}

fn single<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

fn id_of(hex: &str) -> Option<u128> {
    u128::from_str_radix(hex, 16).ok().filter(|id| *id != 0)
}

/// Digits only: the standard library's reader takes a sign too.
fn decimal(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| u64::from_str(text).ok()).flatten()
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_lower_hex(text: &str, length: usize) -> bool {
    is_hex(text, length) && !text.bytes().any(|byte| byte.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    const ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";
    const READ: Trace = Trace {
        id: 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736,
        span: Some(0x00f0_67aa_0ba9_02b7),
        sampled: Some(true),
    };

    #[test]
    fn a_traceparent_is_read_as_the_w3c_has_it_and_nothing_else_is() {
        let not_sampled = Trace { sampled: Some(false), ..READ };
        for (text, read) in [
            (format!("00-{ID}-{SPAN}-01"), Some(READ)),
            (format!("00-{ID}-{SPAN}-00"), Some(not_sampled)),
            (format!("00-{ID}-{SPAN}-ff"), Some(READ)),
            (format!("00-{ID}-{SPAN}-02"), Some(not_sampled)),
            (format!("01-{ID}-{SPAN}-01"), Some(READ)),
            (format!("cc-{ID}-{SPAN}-01-what-the-future-will-be-like"), Some(READ)),
            (format!("fe-{ID}-{SPAN}-01-"), Some(READ)),
            (format!("cc-{ID}-{SPAN}-01.what"), None),
            (format!("00-{ID}-{SPAN}-01-"), None),
            (format!("00-{ID}-{SPAN}-01-more"), None),
            (format!("ff-{ID}-{SPAN}-01"), None),
            (format!("00-{}-{SPAN}-01", "0".repeat(32)), None),
            (format!("00-{ID}-{}-01", "0".repeat(16)), None),
            (format!("00-{}-{SPAN}-01", ID.to_uppercase()), None),
            (format!("00-{ID}-{SPAN}-0A"), None),
            (format!("00-{ID}-{SPAN}-1"), None),
            (format!("0-{ID}-{SPAN}-011"), None),
            (format!("00-{}g-{SPAN}-01", &ID[1..]), None),
            (format!("00-+{}-{SPAN}-01", &ID[1..]), None),
            (format!("00-{ID}0-{}-01", &SPAN[1..]), None),
            (format!("00_{ID}-{SPAN}-01"), None),
            (format!(" 00-{ID}-{SPAN}-01"), None),
            (format!("00-{ID}-{SPAN}-01 "), None),
            (format!("00-{ID}-{SPAN}-é1"), None),
            (ID.to_owned(), None),
            (String::new(), None),
        ] {
            assert_eq!(Trace::from_traceparent(&text), read, "{text:?}");
        }
    }

    #[test]
    fn googles_own_header_is_read_with_and_without_span_and_options() {
        let trace = |span, sampled| Some(Trace { span, sampled, ..READ });
        for (text, read) in [
            (format!("{ID}/74;o=1"), trace(Some(74), Some(true))),
            (format!("{ID}/74;o=0"), trace(Some(74), Some(false))),
            (format!("{ID}/74;o=3"), trace(Some(74), Some(true))),
            (format!("{ID}/18446744073709551615;o=1"), trace(Some(u64::MAX), Some(true))),
            (format!("{ID}/74"), trace(Some(74), None)),
            (format!("{ID}/0;o=1"), trace(None, Some(true))),
            (format!("{ID};o=1"), trace(None, Some(true))),
            (ID.to_owned(), trace(None, None)),
            (format!("{}/74;o=1", ID.to_uppercase()), trace(Some(74), Some(true))),
            (format!("{ID}/18446744073709551616;o=1"), None),
            (format!("{ID}/-1;o=1"), None),
            (format!("{ID}/+1;o=1"), None),
            (format!("{ID}/4a;o=1"), None),
            (format!("{ID}/;o=1"), None),
            (format!("{ID}/74;"), None),
            (format!("{ID}/74;o="), None),
            (format!("{ID}/74;o=x"), None),
            (format!("{ID}/74;p=1"), None),
            (format!("{}/74;o=1", &ID[1..]), None),
            (format!("{ID}0/74;o=1"), None),
            (format!("{}/74;o=1", "0".repeat(32)), None),
            (format!("+{}/74", &ID[1..]), None),
            (String::new(), None),
        ] {
            assert_eq!(Trace::from_cloud_context(&text), read, "{text:?}");
        }
    }

    #[test]
    fn w3c_goes_before_googles_header_and_what_comes_twice_says_nothing() {
        let w3c = format!("00-{ID}-{SPAN}-01");
        let cloud = format!("{}/9;o=0", ID.replace('4', "5"));
        let of = |pairs: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.append(*name, HeaderValue::from_str(value).unwrap());
            }
            Trace::of(&headers)
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[(CLOUD, &cloud), (TRACEPARENT, &w3c)]), Some(READ));
        assert_eq!(of(&[(CLOUD, &cloud), (TRACEPARENT, "00-zz")]).unwrap().span, Some(9));
        assert_eq!(of(&[(CLOUD, &cloud), (TRACEPARENT, &w3c), (TRACEPARENT, &w3c)]).unwrap().span, Some(9));
        assert_eq!(of(&[(CLOUD, &cloud), (CLOUD, &cloud)]), None);
    }

    proptest! {
        #[test]
        fn what_is_written_by_the_rules_is_read_back(id in 1..=u128::MAX, span in 1..=u64::MAX, flags: u8) {
            let sampled = Some(flags & 1 == 1);
            let (w3c, cloud) = (format!("00-{id:032x}-{span:016x}-{flags:02x}"), format!("{id:032x}/{span};o={flags}"));
            for read in [Trace::from_traceparent(&w3c), Trace::from_cloud_context(&cloud)] {
                prop_assert_eq!(read, Some(Trace { id, span: Some(span), sampled }));
                prop_assert_eq!(read.unwrap().id(), format!("{id:032x}"));
            }
        }

        #[test]
        fn nothing_that_is_sent_makes_it_panic_or_invent_an_id(text in "\\PC{0,80}", w3c in "[0-9a-fA-F-]{50,60}") {
            for text in [text, w3c] {
                for read in [Trace::from_traceparent(&text), Trace::from_cloud_context(&text)].into_iter().flatten() {
                    prop_assert!(text.to_lowercase().contains(&read.id()));
                }
            }
        }
    }
}

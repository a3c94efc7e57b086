//! Several parts as one text, from which each can be told again.

/// Joins parts into one text so that `a` + `bc` and `ab` + `c` differ: each part is led by its length.
/// A single part stays as it is.
pub(crate) fn join(parts: &[String]) -> String {
    match parts {
        [one] => one.clone(),
        _ => parts.iter().map(|part| format!("{}.{part}", part.len())).collect::<Vec<_>>().join("|"),
    }
}

/// The parts of a text, of which there are at least two; `None` if [`join`] made no such text.
#[cfg(any(feature = "bucket-s3", feature = "bucket-gcs", test))]
pub(crate) fn split(text: &str) -> Option<Vec<&str>> {
    let (mut parts, mut rest) = (Vec::new(), text);
    loop {
        let (length, after) = rest.split_once('.')?;
        // A number has more spellings than the one that is written here.
        let length = length.parse().ok().filter(|number: &usize| number.to_string() == length)?;
        let (part, after) = after.split_at_checked(length)?;
        parts.push(part);
        if after.is_empty() {
            return Some(parts).filter(|parts| parts.len() > 1);
        }
        rest = after.strip_prefix('|')?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(parts: &[&str]) -> String {
        join(&parts.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn joined_parts_stay_apart() {
        assert_ne!(joined(&["a", "b/c"]), joined(&["a/b", "c"]));
        assert_ne!(joined(&["a", "bc"]), joined(&["ab", "c"]));
        assert_ne!(joined(&["1.a|1.b"]), joined(&["1.a|1", "b"]));
        assert_eq!(joined(&["a"]), "a");
    }

    #[test]
    fn joined_parts_are_told_again() {
        for parts in [["a", "b:c"], ["a:b", "c"], ["", ""], ["1.a|", "|1.b"], ["é", "."], ["a\0", "12.b"]] {
            assert_eq!(split(&joined(&parts)).as_deref(), Some(&parts[..]), "{parts:?}");
        }
        assert_eq!(split(&joined(&["a", "", "c"])), Some(vec!["a", "", "c"]));
    }

    #[test]
    fn what_was_not_joined_has_no_parts() {
        for text in
            ["", "a", "1.a", "1.a|", "1.a|1.", "1.a|2.b", "2.é", "1.é|1.a", "+1.a|1.b", "01.a|1.b", "1.a1.b"]
        {
            assert_eq!(split(text), None, "{text}");
        }
        assert_eq!(split("99999999999999999999999.a|1.b"), None);
    }
}

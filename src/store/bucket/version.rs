//! The version of an object: its ETag and its generation in one opaque text.

use object_store::UpdateVersion;

use crate::store::{StoreError, Version};

/// Stands in no header, so in neither of the two.
const BETWEEN: char = '\n';

/// The version of what was written or read. S3 compares the ETag, Google Cloud Storage the generation.
/// `None` if the server told neither.
pub(super) fn of(e_tag: Option<&str>, version: Option<&str>) -> Option<Version> {
    if e_tag.is_none() && version.is_none() {
        return None;
    }
    Some(Version::text(format!("{}{BETWEEN}{}", e_tag.unwrap_or_default(), version.unwrap_or_default())))
}

/// The condition that the object is still of that version.
pub(super) fn condition(version: &Version) -> Result<UpdateVersion, StoreError> {
    let parts = version.as_text().and_then(|text| text.split_once(BETWEEN));
    let (e_tag, version) = parts.ok_or_else(|| StoreError::Refused {
        what: "the version is not one of this store: give back what `read` or `swap` gave".to_owned(),
        source: None,
    })?;
    let told = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Ok(UpdateVersion { e_tag: told(e_tag), version: told(version) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_parts_come_back_and_each_counts() {
        for (e_tag, version) in [(Some("\"a\""), Some("7")), (Some("\"a\""), None), (None, Some("7"))] {
            let back = condition(&of(e_tag, version).unwrap()).unwrap();
            assert_eq!((back.e_tag.as_deref(), back.version.as_deref()), (e_tag, version));
        }
        assert_ne!(of(Some("a"), Some("b")), of(Some("ab"), None));
        assert_eq!(of(None, None), None);
    }

    #[test]
    fn a_version_of_another_store_is_refused() {
        for foreign in [Version::number(7), Version::text("0a")] {
            assert!(matches!(condition(&foreign), Err(StoreError::Refused { .. })), "{foreign:?}");
        }
    }
}

//! Conditional requests: the tag of an entity's state, and what clients may demand of it.
//!
//! A tag is strong and names the row too, since an entity that is created again begins at version 1 again. `If-Match`
//! goes on writes of something that is there; `If-None-Match: *` on a create; `If-None-Match` with tags on a load.

use axum::http::header::{IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderName};
use treeline_core::{EntityTag, Error, Result};
use treeline_dispatch::Precondition;

/// More tags than this in one header are no honest precondition.
const TAGS_MAX: usize = 100;

/// What `If-Match` demands of the row that a write is about.
pub(crate) fn if_match(headers: &HeaderMap) -> Result<Precondition> {
    let Some(text) = joined(headers, &IF_MATCH)? else {
        return Ok(Precondition::None);
    };
    if text.trim() == "*" {
        return Ok(Precondition::Exists);
    }
    let tags = text
        .split(',')
        .map(|item| strong_tag(item.trim()))
        .take(TAGS_MAX + 1);
    let tags = tags.collect::<Result<Vec<_>>>()?;
    if tags.len() > TAGS_MAX {
        return Err(Error::invalid(
            "If-Match",
            format!("names more than {TAGS_MAX} tags"),
        ));
    }
    Ok(Precondition::Tags(tags))
}

/// Whether a create must find nothing there: `If-None-Match: *`. No other value makes sense on a create.
pub(crate) fn only_if_absent(headers: &HeaderMap) -> Result<bool> {
    match joined(headers, &IF_NONE_MATCH)? {
        None => Ok(false),
        Some(text) if text.trim() == "*" => Ok(true),
        Some(_) => Err(Error::invalid("If-None-Match", "a create takes `*` only")),
    }
}

/// Whether a load may answer that the client holds this state already. What cannot be read names no state of ours.
pub(crate) fn is_held(headers: &HeaderMap, tag: EntityTag) -> bool {
    let Ok(Some(text)) = joined(headers, &IF_NONE_MATCH) else {
        return false;
    };
    let names = |item: &str| {
        let item = item.trim();
        item == "*" || strong_tag(item.strip_prefix("W/").unwrap_or(item)) == Ok(tag)
    };
    text.split(',').take(TAGS_MAX).any(names)
}

fn strong_tag(item: &str) -> Result<EntityTag> {
    if item.starts_with("W/") {
        return Err(Error::invalid(
            "If-Match",
            format!("`{item}` is a weak tag; the tags here are strong"),
        ));
    }
    let quoted = item.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    quoted.and_then(|text| text.parse().ok()).ok_or_else(|| {
        let shown: String = item.chars().take(60).collect();
        Error::invalid(
            "If-Match",
            format!("`{shown}` is neither `*` nor a tag as an `ETag` names it"),
        )
    })
}

/// All values of a header as one list; none where it is not sent.
fn joined(headers: &HeaderMap, name: &HeaderName) -> Result<Option<String>> {
    if !headers.contains_key(name) {
        return Ok(None);
    }
    let values: std::result::Result<Vec<_>, _> =
        headers.get_all(name).iter().map(|value| value.to_str()).collect();
    let values = values.map_err(|_| Error::invalid(name.as_str(), "has characters outside of ASCII"))?;
    Ok(Some(values.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;
    use treeline_core::{EntityId, Version};

    fn headers(name: HeaderName, values: &[&str]) -> HeaderMap {
        let values = values
            .iter()
            .map(|value| (name.clone(), HeaderValue::from_str(value).unwrap()));
        values.collect()
    }

    fn tag(id: i64, version: i64) -> EntityTag {
        EntityTag {
            id: EntityId::new(id).unwrap(),
            version: Version::new(version).unwrap(),
        }
    }

    #[test]
    fn if_match_is_a_star_or_a_list_of_strong_tags() {
        let read = |values: &[&str]| if_match(&headers(IF_MATCH, values));
        assert_eq!(if_match(&HeaderMap::new()), Ok(Precondition::None));
        assert_eq!(read(&["*"]), Ok(Precondition::Exists));
        assert_eq!(read(&[r#""5-1""#]), Ok(Precondition::Tags(vec![tag(5, 1)])));
        let two = Precondition::Tags(vec![tag(5, 1), tag(5, 2)]);
        assert_eq!(read(&[r#""5-1" , "5-2""#]), Ok(two.clone()));
        assert_eq!(read(&[r#""5-1""#, r#""5-2""#]), Ok(two));
    }

    #[test]
    fn a_weak_or_malformed_tag_is_refused() {
        for value in [
            "",
            "5-1",
            r#"W/"5-1""#,
            r#""5""#,
            r#""5-1"#,
            r#""5-1","#,
            r#"*, "5-1""#,
            r#""0-1""#,
        ] {
            assert!(if_match(&headers(IF_MATCH, &[value])).is_err(), "{value}");
        }
        let many = vec![r#""5-1""#; TAGS_MAX + 1].join(",");
        assert!(if_match(&headers(IF_MATCH, &[&many])).is_err());
    }

    #[test]
    fn a_create_takes_a_star_only() {
        assert_eq!(only_if_absent(&HeaderMap::new()), Ok(false));
        assert_eq!(only_if_absent(&headers(IF_NONE_MATCH, &["*"])), Ok(true));
        assert!(only_if_absent(&headers(IF_NONE_MATCH, &[r#""5-1""#])).is_err());
        assert!(only_if_absent(&headers(IF_NONE_MATCH, &["*", "*"])).is_err());
    }

    #[test]
    fn a_load_compares_weakly_and_passes_over_what_it_cannot_read() {
        let held = |value: &str| is_held(&headers(IF_NONE_MATCH, &[value]), tag(5, 2));
        assert!(held(r#""5-2""#) && held(r#"W/"5-2""#) && held(r#""5-1", "5-2""#) && held("*"));
        assert!(!held(r#""5-1""#) && !held("nonsense") && !held(""));
        assert!(!is_held(&HeaderMap::new(), tag(5, 2)));
    }
}

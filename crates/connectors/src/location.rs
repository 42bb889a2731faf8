//! Locations as text: one spelling for one place, so that they can be compared, indexed and shown.
//!
//! A qualified location is `scheme:/path` for files of this machine and `scheme://authority/path` elsewhere, without
//! a slash at the end, without empty, `.` and `..` segments. It is not percent-decoded: a client that writes `%2F`
//! means these three characters.

use std::path::PathBuf;

use treeline_core::{Error, Result};

/// The longest location, in bytes: short enough for every database to index the text.
pub const LOCATION_BYTES_MAX: usize = 2_048;

/// The field that errors about a location name.
pub(crate) const FIELD: &str = "storageLocations";

const FILE: &str = "file";

/// The one spelling of a location that a client gives: `/tmp/a` and `file:///tmp/a/` become `file:/tmp/a`.
/// [`Error::Invalid`] for what is relative, blank, too long, or has `..` segments or control characters.
pub fn qualify(text: &str) -> Result<String> {
    check_text(text)?;
    let Some((scheme, rest)) = split_scheme(text) else {
        return match text.strip_prefix('/') {
            Some(path) => Ok(join(FILE, None, &segments(text, path)?)),
            None => Err(refused(
                text,
                "is relative; a location begins with `/` or with a scheme",
            )),
        };
    };
    let scheme = scheme.to_ascii_lowercase();
    let Some(path) = rest.strip_prefix('/') else {
        return Err(refused(text, "has no `/` after its scheme"));
    };
    if scheme == FILE {
        return Ok(join(FILE, None, &segments(text, local_part(text, path)?)?));
    }
    let (authority, path) = match path.strip_prefix('/') {
        Some(rest) => rest
            .split_once('/')
            .map_or((Some(rest), ""), |(authority, path)| (Some(authority), path)),
        None => (None, path),
    };
    let segments = segments(text, path)?;
    if authority.is_none_or(str::is_empty) && segments.is_empty() {
        return Err(refused(text, "names no place under its scheme"));
    }
    Ok(join(&scheme, authority, &segments))
}

/// The scheme of a qualified location; `file` where there is none.
pub fn scheme_of(location: &str) -> &str {
    split_scheme(location).map_or(FILE, |(scheme, _)| scheme)
}

/// The path of a qualified location on this machine; none for other schemes.
pub fn local_path(location: &str) -> Option<PathBuf> {
    let (scheme, path) = split_scheme(location)?;
    (scheme == FILE).then(|| PathBuf::from(path))
}

/// Whether `child` is `parent` or lies below it, by whole segments. Both are qualified.
pub fn contains(parent: &str, child: &str) -> bool {
    let parent = parent.strip_suffix('/').unwrap_or(parent);
    match child.strip_prefix(parent) {
        Some(rest) => rest.is_empty() || rest.starts_with('/'),
        None => false,
    }
}

/// Whether one of the two is, or holds, the other. Both are qualified.
pub fn overlaps(one: &str, other: &str) -> bool {
    contains(one, other) || contains(other, one)
}

/// [`Error::Invalid`] about a location.
pub(crate) fn refused(location: &str, reason: &str) -> Error {
    const SHOWN_MAX: usize = 200;
    let shown: String = location
        .chars()
        .take(SHOWN_MAX)
        .flat_map(char::escape_debug)
        .collect();
    Error::invalid(FIELD, format!("`{shown}` {reason}"))
}

fn check_text(text: &str) -> Result<()> {
    if text.trim().is_empty() {
        Err(refused(text, "is blank"))
    } else if text.trim() != text {
        Err(refused(text, "has white space at an end"))
    } else if text.chars().any(char::is_control) {
        Err(refused(text, "has a control character"))
    } else if text.len() > LOCATION_BYTES_MAX {
        Err(refused(text, "is longer than 2,048 bytes"))
    } else {
        Ok(())
    }
}

/// The scheme and what follows its colon, if the text begins with one.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let mut characters = scheme.chars();
    let well_formed = characters.next().is_some_and(|first| first.is_ascii_alphabetic())
        && characters.all(|character| character.is_ascii_alphanumeric() || "+-.".contains(character));
    well_formed.then_some((scheme, rest))
}

/// What follows `file:/`, without the authority: only this machine's own name may stand there.
fn local_part<'a>(text: &str, after_first_slash: &'a str) -> Result<&'a str> {
    let Some(rest) = after_first_slash.strip_prefix('/') else {
        return Ok(after_first_slash);
    };
    match rest.split_once('/').unwrap_or((rest, "")) {
        ("" | "localhost", path) => Ok(path),
        _ => Err(refused(
            text,
            "names another host; after `file:` comes one slash, or three",
        )),
    }
}

fn segments<'a>(text: &str, path: &'a str) -> Result<Vec<&'a str>> {
    let segments: Vec<&str> = path
        .split('/')
        .filter(|segment| !segment.is_empty() && *segment != ".")
        .collect();
    if segments.contains(&"..") {
        return Err(refused(text, "has a `..` segment"));
    }
    Ok(segments)
}

fn join(scheme: &str, authority: Option<&str>, segments: &[&str]) -> String {
    let path = segments.join("/");
    match authority {
        None => format!("{scheme}:/{path}"),
        Some(authority) if path.is_empty() => format!("{scheme}://{authority}"),
        Some(authority) => format!("{scheme}://{authority}/{path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_place_has_one_spelling() {
        for text in [
            "/tmp/a",
            "/tmp/a/",
            "//tmp//a",
            "/tmp/./a",
            "file:/tmp/a",
            "file:///tmp/a/",
            "FILE://localhost/tmp/a",
        ] {
            assert_eq!(qualify(text).as_deref(), Ok("file:/tmp/a"), "{text}");
        }
        assert_eq!(qualify("/").as_deref(), Ok("file:/"));
        assert_eq!(qualify("S3a://bucket/a/").as_deref(), Ok("s3a://bucket/a"));
        assert_eq!(qualify("s3://bucket/").as_deref(), Ok("s3://bucket"));
        assert_eq!(qualify("hdfs:///a/b").as_deref(), Ok("hdfs:///a/b"));
        assert_eq!(qualify("hdfs:/a//b/").as_deref(), Ok("hdfs:/a/b"));
        assert_eq!(
            qualify("/tmp/%2e%2e/a:b=c").as_deref(),
            Ok("file:/tmp/%2e%2e/a:b=c")
        );
    }

    #[test]
    fn qualifying_twice_changes_nothing() {
        for text in [
            "/tmp/a",
            "/",
            "s3://bucket",
            "s3://bucket/a/b",
            "hdfs:///a",
            "hdfs:/a",
        ] {
            let once = qualify(text).unwrap();
            assert_eq!(qualify(&once), Ok(once.clone()));
        }
    }

    #[test]
    fn what_is_no_absolute_place_is_refused() {
        let long = format!("/{}", "a".repeat(LOCATION_BYTES_MAX));
        for text in [
            "",
            "  ",
            " /a",
            "/a ",
            "a",
            "./a",
            "../a",
            "/a/../b",
            "/..",
            "file:/a/..",
            "s3://b/../c",
            "/a\0b",
            "/a\nb",
            "file:",
            "file:a",
            "file://host/a",
            "s3:",
            "s3:a",
            "s3:/",
            "s3:///",
            "1a:/b",
            "a b:/c",
            &long,
        ] {
            let error = qualify(text).unwrap_err();
            assert!(
                matches!(&error, Error::Invalid { field, .. } if field == FIELD),
                "{text:?}: {error}"
            );
        }
    }

    #[test]
    fn places_are_compared_by_whole_segments() {
        assert!(contains("file:/a", "file:/a"));
        assert!(contains("file:/a", "file:/a/b"));
        assert!(contains("file:/", "file:/a"));
        assert!(!contains("file:/a", "file:/ab"));
        assert!(!contains("file:/a/b", "file:/a"));
        assert!(contains("s3://b", "s3://b/a"));
        assert!(!contains("s3://b", "s3://bc"));
        assert!(overlaps("file:/a/b", "file:/a"));
        assert!(!overlaps("file:/a/b", "file:/a/c"));
    }

    #[test]
    fn only_files_of_this_machine_have_a_path() {
        assert_eq!(local_path("file:/tmp/a"), Some(PathBuf::from("/tmp/a")));
        assert_eq!(local_path("s3://bucket/a"), None);
        assert_eq!(scheme_of("s3://bucket/a"), "s3");
        assert_eq!(scheme_of("file:/a"), "file");
    }
}

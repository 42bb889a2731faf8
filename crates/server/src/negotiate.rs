//! Which version of the protocol a client speaks, and whether its body is JSON (contract 1.2).

use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName};

use crate::error::Refusal;

/// In front of the number in a vendored media type.
const VENDOR: &str = "application/vnd.gravitino.v";

/// Checks the version that a client asks for: in `Accept`, or failing that in its `Content-Type`. Who names none
/// gets version 1, so any other `Accept` passes.
pub(crate) fn check_version(headers: &HeaderMap) -> Result<(), Refusal> {
    let version = asked_version(headers, &ACCEPT).or_else(|| asked_version(headers, &CONTENT_TYPE));
    match version {
        None | Some("1") => Ok(()),
        Some(version) => {
            let shown: String = version.chars().take(20).collect();
            Err(Refusal::not_acceptable(format!(
                "version {shown} of the protocol is not spoken here, 1 is"
            )))
        }
    }
}

/// The digits of the first vendored media type in a header.
fn asked_version<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get_all(name).iter().find_map(|value| {
        let text = value.to_str().ok()?;
        text.match_indices(VENDOR).find_map(|(at, _)| {
            let rest = &text[at + VENDOR.len()..];
            let digits = rest.find(|character: char| !character.is_ascii_digit())?;
            (digits > 0 && rest[digits..].starts_with("+json")).then(|| &rest[..digits])
        })
    })
}

/// Checks what a request says of its body: `application/json`, anything `+json`, or nothing.
pub(crate) fn check_content_type(headers: &HeaderMap) -> Result<(), Refusal> {
    let Some(value) = headers.get(CONTENT_TYPE) else {
        return Ok(());
    };
    let essence = value
        .to_str()
        .unwrap_or("?")
        .split(';')
        .next()
        .unwrap_or("")
        .trim()
        .to_ascii_lowercase();
    if essence.is_empty() || essence == "application/json" || essence.ends_with("+json") {
        Ok(())
    } else {
        Err(Refusal::unsupported_media_type(
            "the body must be `application/json`",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderValue, StatusCode};

    fn with(pairs: &[(HeaderName, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap()))
            .collect()
    }

    #[test]
    fn version_1_or_no_version_passes() {
        for accept in [
            "*/*",
            "application/json",
            "text/html",
            "application/vnd.gravitino.v1+json",
            "nonsense",
        ] {
            assert_eq!(check_version(&with(&[(ACCEPT, accept)])), Ok(()), "{accept}");
        }
        assert_eq!(check_version(&HeaderMap::new()), Ok(()));
        assert_eq!(
            check_version(&with(&[(ACCEPT, "application/vnd.gravitino.v+json")])),
            Ok(())
        );
    }

    #[test]
    fn another_version_is_not_acceptable_wherever_it_is_asked_for() {
        for (name, value) in [
            (ACCEPT, "application/vnd.gravitino.v9+json"),
            (ACCEPT, "text/plain, application/vnd.gravitino.v2+json"),
            (CONTENT_TYPE, "application/vnd.gravitino.v2+json"),
        ] {
            let refusal = check_version(&with(&[(name, value)])).unwrap_err();
            assert_eq!(refusal.status, StatusCode::NOT_ACCEPTABLE);
        }
        let both = with(&[
            (ACCEPT, "application/vnd.gravitino.v1+json"),
            (CONTENT_TYPE, "application/vnd.gravitino.v9+json"),
        ]);
        assert_eq!(check_version(&both), Ok(()));
    }

    #[test]
    fn a_body_is_json_by_its_own_account_or_gives_none() {
        for value in [
            "application/json",
            "Application/JSON; charset=utf-8",
            "application/vnd.gravitino.v1+json",
            "",
        ] {
            assert_eq!(
                check_content_type(&with(&[(CONTENT_TYPE, value)])),
                Ok(()),
                "{value}"
            );
        }
        assert_eq!(check_content_type(&HeaderMap::new()), Ok(()));
        for value in ["text/plain", "application/x-www-form-urlencoded", "json"] {
            let refusal = check_content_type(&with(&[(CONTENT_TYPE, value)])).unwrap_err();
            assert_eq!(refusal.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
        }
    }
}

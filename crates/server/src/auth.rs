//! Simple authentication (contract 1.6): the user of a `Basic` header is the principal, and nobody checks a password.
//!
//! It says who is written into the audit; it does not keep anybody out. A header of another scheme is refused, since
//! its sender expects to be authenticated and would not be.

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderValue};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use treeline_core::{Error, Result};

/// The principal of a request that does not say who asks.
pub(crate) const ANONYMOUS: &str = "anonymous";

/// A principal goes into two columns and the feed with every write, so it has a bound.
const PRINCIPAL_CHARS_MAX: usize = 256;

/// Who asks. [`Error::Unauthenticated`] for a scheme that is not ours, or a user that cannot be written down.
pub(crate) fn principal(headers: &HeaderMap) -> Result<String> {
    let Some(value) = headers.get(AUTHORIZATION) else {
        return Ok(ANONYMOUS.to_owned());
    };
    let Some(token) = basic_token(value)? else {
        return Ok(ANONYMOUS.to_owned());
    };
    let Some(user) = user(token) else {
        return Ok(ANONYMOUS.to_owned());
    };
    if user.chars().count() > PRINCIPAL_CHARS_MAX || user.chars().any(char::is_control) {
        return Err(refused("the user's name is too long or has control characters"));
    }
    Ok(user)
}

/// What stands after `Basic`; none in a blank header.
fn basic_token(value: &HeaderValue) -> Result<Option<&str>> {
    let Ok(text) = value.to_str() else {
        return Err(refused("the header is not ASCII"));
    };
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let (scheme, token) = text.split_once(' ').unwrap_or((text, ""));
    if scheme.eq_ignore_ascii_case("basic") {
        Ok(Some(token.trim()))
    } else {
        Err(refused("this server takes `Basic` only"))
    }
}

/// The text before the first colon of a token that decodes; none where there is nothing in it.
fn user(token: &str) -> Option<String> {
    let text = String::from_utf8(STANDARD.decode(token).ok()?).ok()?;
    let user = text.split(':').next()?.trim();
    (!user.is_empty()).then(|| user.to_owned())
}

fn refused(reason: &str) -> Error {
    Error::Unauthenticated {
        reason: reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked_by(value: &str) -> Result<String> {
        principal(&HeaderMap::from_iter([(
            AUTHORIZATION,
            HeaderValue::from_str(value).unwrap(),
        )]))
    }

    fn basic(text: &[u8]) -> String {
        format!("Basic {}", STANDARD.encode(text))
    }

    #[test]
    fn the_user_is_what_stands_before_the_first_colon() {
        assert_eq!(asked_by(&basic(b"alice:dummy")).as_deref(), Ok("alice"));
        assert_eq!(asked_by(&basic(b"alice")).as_deref(), Ok("alice"));
        assert_eq!(asked_by(&basic(b"alice:a:b")).as_deref(), Ok("alice"));
        assert_eq!(
            asked_by(&basic(b"alice:dummy").replace("Basic", "basic")).as_deref(),
            Ok("alice")
        );
    }

    #[test]
    fn nobody_in_particular_is_anonymous() {
        assert_eq!(principal(&HeaderMap::new()).as_deref(), Ok(ANONYMOUS));
        for value in [
            "",
            "  ",
            "Basic",
            "Basic !!!",
            &basic(b""),
            &basic(b":x"),
            &basic(b"\xff:x"),
        ] {
            assert_eq!(asked_by(value).as_deref(), Ok(ANONYMOUS), "{value}");
        }
    }

    #[test]
    fn another_scheme_is_refused() {
        for value in [
            "Bearer abc",
            "Negotiate abc",
            "abc",
            &basic(b"a\nb:x"),
            &basic(&[b'a'; 300]),
        ] {
            assert!(
                matches!(asked_by(value), Err(Error::Unauthenticated { .. })),
                "{value}"
            );
        }
    }
}

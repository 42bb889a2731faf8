//! The client's name for a request: the header `Idempotency-Key` on any write (P11).
//!
//! A key stands for one request, so it goes along with a fingerprint of what was asked: method, path, query and body.
//! Only a request that has the header pays for it. The store does the rest, in the write's own transaction.

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use sha2::{Digest, Sha256};
use treeline_core::Error;
use treeline_dispatch::Idempotency;

use crate::error::Refusal;

const HEADER: HeaderName = HeaderName::from_static("idempotency-key");

/// As long as the store keeps.
const CHARS_MAX: usize = 256;

/// Takes the fingerprint of a write that the client named, and leaves it with the request for the handlers.
pub(crate) fn mark(parts: &mut Parts, body: &[u8]) -> Result<(), Refusal> {
    let Some(key) = key(&parts.headers)? else {
        return Ok(());
    };
    let mut hash = Sha256::new();
    for part in [
        parts.method.as_str().as_bytes(),
        parts.uri.to_string().as_bytes(),
        body,
    ] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let fingerprint = BASE64_STANDARD.encode(hash.finalize());
    parts.extensions.insert(Idempotency { key, fingerprint });
    Ok(())
}

fn key(headers: &HeaderMap) -> Result<Option<String>, Refusal> {
    let mut values = headers.get_all(HEADER).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let refused = |reason: &str| Refusal::from(Error::invalid("Idempotency-Key", reason));
    if values.next().is_some() {
        return Err(refused("is sent more than once"));
    }
    let text = value
        .to_str()
        .map_err(|_| refused("has characters outside of visible ASCII"))?
        .trim();
    if text.is_empty() || text.len() > CHARS_MAX {
        return Err(refused("must have 1 to 256 characters"));
    }
    Ok(Some(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Request;

    fn marked(method: &str, path: &str, key: &str, body: &str) -> Result<Option<Idempotency>, Refusal> {
        let request = Request::builder().method(method).uri(path).header(HEADER, key);
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        mark(&mut parts, body.as_bytes())?;
        Ok(parts.extensions.remove())
    }

    #[test]
    fn equal_requests_have_equal_fingerprints_and_others_do_not() {
        let of =
            |method, path, body| marked(method, path, "k", body).map(|found| found.map(|it| it.fingerprint));
        let first = of("POST", "/api/metalakes", "{}");
        assert!(matches!(first, Ok(Some(_))));
        assert_eq!(of("POST", "/api/metalakes", "{}"), first);
        for (method, path, body) in [
            ("PUT", "/api/metalakes", "{}"),
            ("POST", "/api/metalakes?x", "{}"),
            ("POST", "/api/metalakes", "{ }"),
        ] {
            assert_ne!(of(method, path, body), first);
        }
    }

    #[test]
    fn a_key_without_a_name_is_refused() {
        for key in ["", " ", &"k".repeat(257)] {
            assert!(marked("POST", "/api/metalakes", key, "{}").is_err(), "{key:?}");
        }
    }
}

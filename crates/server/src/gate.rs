//! The one middleware: what happens to every request before and after its handler.
//!
//! 1. It gets an id, the client's own if that is well-formed.
//! 2. On the API: a version of the protocol that is not spoken is refused, then a scheme of authentication that is
//!    not ours, and a path that is not UTF-8 (in this order, as clients know it).
//! 3. The body of a write is read; only then it waits for its turn, so that a client that sends slowly holds up nobody. Probes
//!    and metrics wait for none.
//! 4. It is given up when its time is over. A handler that panics is a refusal too.
//! 5. The answer carries the id, and is counted and timed under its operation.
//!
//! It is one function and not a stack of layers because each layer boxes a future. The span and the access line are
//! at level debug: filtered out they cost nothing that can be measured, the span enabled costs a fifth of the
//! requests per second of an empty handler, the line a third.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use tracing::Instrument;

use crate::app::App;
use crate::body::{Room, discard, read_within};
use crate::error::Refusal;
use crate::extract::{REQUEST_ID, decode};
use crate::held::Held;
use crate::{auth, idempotency, negotiate};

/// Takes a request through all of the above.
pub(crate) async fn gate(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let started = Instant::now();
    let method = request.method().clone();
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let id = identify(request.headers_mut());
    let span =
        tracing::debug_span!("request", id = id.to_str().unwrap_or(""), %method, path = request.uri().path());

    let checked = if is_api(request.uri().path()) {
        check(&request)
    } else {
        Ok(())
    };
    let mut response = match checked {
        Ok(()) => take_turn(&app, request, next).instrument(span.clone()).await,
        Err(refusal) => {
            if is_write(&method) {
                let (parts, body) = request.into_parts();
                discard(&parts.headers, body, app.limits().body_bytes_max).await;
            }
            refusal.into_response()
        }
    };

    response.headers_mut().insert(REQUEST_ID, id);
    let (status, elapsed) = (response.status(), started.elapsed());
    tracing::debug!(parent: &span, status = status.as_u16(), elapsed_us = elapsed.as_micros(), "answered");
    app.metrics().count(
        matched.as_ref().map(MatchedPath::as_str),
        &method,
        status,
        elapsed,
    );
    response
}

/// The paths that clients of the protocol use, without the probes, which nobody authenticates for.
fn is_api(path: &str) -> bool {
    path.starts_with("/api/") && !(path == "/api/health" || path.starts_with("/api/health/"))
}

fn check(request: &Request) -> Result<(), Refusal> {
    negotiate::check_version(request.headers())?;
    auth::principal(request.headers())?;
    let path = request.uri().path();
    if path.contains('%') {
        decode(path)?;
    }
    Ok(())
}

/// Probes and metrics wait for no turn: they are asked what is wrong just when everybody else waits.
fn is_asked_by_operators(path: &str) -> bool {
    let path = path.strip_prefix("/api").unwrap_or(path);
    let probe = path.strip_prefix("/health");
    probe.is_some_and(|rest| matches!(rest, "" | "/live" | "/ready" | ".html"))
        || matches!(path, "/metrics" | "/prometheus/metrics")
}

async fn take_turn(app: &App, request: Request, next: Next) -> Response {
    let work = async {
        let (request, room) = match take_body(app, request).await {
            Ok(taken) => taken,
            Err(refusal) => return refusal.into_response(),
        };
        let handling = async {
            if is_asked_by_operators(request.uri().path()) {
                return next.run(request).await;
            }
            let Ok(turn) = Arc::clone(app.turns()).acquire_owned().await else {
                return Refusal::timed_out("the server is shutting down").into_response();
            };
            Held::new(turn, room).during(next.run(request)).await
        };
        AssertUnwindSafe(handling)
            .catch_unwind()
            .await
            .unwrap_or_else(|_| Refusal::internal("a handler panicked").into_response())
    };
    tokio::time::timeout(app.limits().request_max, work)
        .await
        .unwrap_or_else(|_| {
            let told =
                "the request took too long and was given up; a write that was begun is still carried through";
            Refusal::timed_out(told).into_response()
        })
}

/// The request with its body in hand, and the room that the body takes until the request is carried out.
async fn take_body(app: &App, request: Request) -> Result<(Request, Room), Refusal> {
    let (mut parts, body) = request.into_parts();
    if parts.extensions.get::<MatchedPath>().is_none() {
        discard(&parts.headers, body, app.limits().body_bytes_max).await;
        return Ok((Request::from_parts(parts, Body::empty()), Room::default()));
    }
    if !is_write(&parts.method) {
        return Ok((Request::from_parts(parts, body), Room::default()));
    }
    let (bytes, room) = read_within(app, &parts.headers, body).await?;
    idempotency::mark(&mut parts, &bytes)?;
    Ok((Request::from_parts(parts, Body::from(bytes)), room))
}

fn is_write(method: &Method) -> bool {
    method != Method::GET && method != Method::HEAD
}

/// The request's id: the client's own if it is well-formed, else a new one. It stays among the headers.
fn identify(headers: &mut HeaderMap) -> HeaderValue {
    if let Some(id) = headers.get(REQUEST_ID).filter(|id| is_well_formed(id)) {
        return id.clone();
    }
    let id = HeaderValue::try_from(format!("{:016x}", fastrand::u64(..)));
    let id = id.unwrap_or_else(|_| HeaderValue::from_static("none"));
    headers.insert(REQUEST_ID, id.clone());
    id
}

/// It goes into the log and the feed, so it is short and has nothing that either would have to escape.
fn is_well_formed(id: &HeaderValue) -> bool {
    const CHARS_MAX: usize = 128;
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:/+=@".contains(byte);
    (1..=CHARS_MAX).contains(&id.len()) && id.as_bytes().iter().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identified(id: &'static str) -> HeaderValue {
        identify(&mut HeaderMap::from_iter([(
            REQUEST_ID,
            HeaderValue::from_static(id),
        )]))
    }

    #[test]
    fn a_well_formed_id_is_kept_and_any_other_replaced() {
        assert_eq!(identified("abc-1:2/3"), "abc-1:2/3");
        for id in ["", "a b", "a\"b", "a\tb"] {
            assert_ne!(identified(id), id);
        }
        let mut headers = HeaderMap::new();
        let id = identify(&mut headers);
        assert_eq!((headers.get(REQUEST_ID), id.len()), (Some(&id), 16));
    }

    #[test]
    fn probes_are_no_part_of_the_api() {
        assert!(is_api("/api/version") && is_api("/api/healthy"));
        assert!(
            !is_api("/api/health") && !is_api("/api/health/ready") && !is_api("/metrics") && !is_api("/")
        );
    }
}

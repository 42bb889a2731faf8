//! What becomes of a request whose client, time or handler gives out.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request};
use axum::routing::get;
use axum::{Router, middleware};
use futures_util::FutureExt;
use tower::ServiceExt;

use super::Bed;
use crate::app::Limits;
use crate::error::Asked;
use crate::gate::gate;
use treeline_core::{Error, Kind};

/// A client sends a create and goes away at once: its handler is polled once and then dropped, as a connection does
/// it. The write was begun by then, so it is carried through, and holds its turn and the room of its body until it is.
#[tokio::test]
async fn a_write_is_carried_through_when_its_client_goes_away() {
    let bed = Bed::new().await;
    let free = || {
        (
            bed.app.turns().available_permits(),
            bed.app.bodies().available_permits(),
        )
    };
    let (turns, bytes) = free();
    let text = r#"{"name":"m"}"#;
    let body = Body::from(text);
    let request = Request::builder()
        .method(Method::POST)
        .uri("/api/metalakes")
        .body(body)
        .unwrap();
    let mut handler = Box::pin(bed.router.clone().oneshot(request));
    let answered = handler.as_mut().now_or_never();
    drop(handler);
    assert!(
        answered.is_none(),
        "the write must still be going on for this to prove anything"
    );
    assert_eq!(free(), (turns - 1, bytes - text.len()));
    bed.app.settle().await;
    assert_eq!(free(), (turns, bytes));
    bed.get("/api/metalakes/m").await.assert(200, 0);
}

/// The only turn is taken, so the request waits until its time is over. The bound holds for the last request too, so it
/// must be long enough for a slow machine.
#[tokio::test]
async fn a_request_that_waits_for_its_turn_too_long_is_given_up() {
    let limits = Limits {
        requests_max: 1,
        request_max: Duration::from_millis(500),
        ..Limits::default()
    };
    let bed = Bed::with(limits).await;
    let turn = bed.app.turns().acquire().await.unwrap();
    let refused = bed.get("/api/metalakes").await;
    refused.assert_class(503, 1002, "RuntimeException");
    assert_eq!(refused.headers["retry-after"], "1");
    drop(turn);
    bed.get("/api/metalakes").await.assert(200, 0);
}

#[tokio::test]
async fn operators_are_answered_while_every_turn_is_taken() {
    let limits = Limits {
        requests_max: 1,
        ..Limits::default()
    };
    let bed = Bed::with(limits).await;
    let _turn = bed.app.turns().acquire().await.unwrap();
    for path in [
        "/api/health/live",
        "/api/health/ready",
        "/api/health",
        "/health.html",
        "/metrics",
    ] {
        let answered = tokio::time::timeout(Duration::from_secs(10), bed.get(path)).await;
        assert_eq!(answered.unwrap().status, 200, "{path}");
    }
}

#[tokio::test]
async fn a_handler_that_panics_is_refused_and_its_words_are_kept_back() {
    let bed = Bed::new().await;
    let panicking = get(|| async {
        if true {
            panic!("row 17");
        }
    });
    let routes: Router = Router::new().route("/api/panic", panicking);
    let router = routes.layer(middleware::from_fn_with_state(bed.app.clone(), gate));
    let bed = Bed { router, ..bed };
    let refused = bed.get("/api/panic").await;
    refused.assert_class(500, 1002, "RuntimeException");
    assert!(!refused.text.contains("17"));
}

#[tokio::test]
async fn a_write_that_panics_is_an_internal_error() {
    let bed = Bed::new().await;
    let written = async {
        if true {
            panic!("row 17");
        }
        Ok(())
    };
    let refused = bed
        .app
        .write(Asked::entity(Kind::Schema), written)
        .await
        .unwrap_err();
    assert_eq!(refused.status, 500);
    assert_eq!(refused.message, Error::internal("").to_string());
}

//! Bodies that are too long, too slow, too deep, broken off, or not JSON.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::Method;
use futures_util::{FutureExt, StreamExt, stream};

use super::Bed;
use crate::app::Limits;

const METALAKES: &str = "/api/metalakes";

async fn with_limit(body_bytes_max: usize) -> Bed {
    Bed::with(Limits {
        body_bytes_max,
        ..Limits::default()
    })
    .await
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_and_one_at_the_limit_is_not() {
    let body = r#"{"name":"m","comment":"c"}"#;
    let bed = with_limit(body.len()).await;
    bed.post(METALAKES, body).await.assert(200, 0);
    bed.post(METALAKES, &format!("{body} ")).await.assert(413, 1001);
    let declared = [("content-length", "99999999999")];
    bed.send(Method::POST, METALAKES, &declared, Body::from(body))
        .await
        .assert(413, 1001);
}

#[tokio::test]
async fn a_body_of_unknown_length_is_refused_once_it_is_over_the_limit() {
    let bed = with_limit(100).await;
    let chunks = (0..50).map(|_| Ok::<_, Infallible>(Bytes::from_static(b"0123456789")));
    let body = Body::from_stream(stream::iter(chunks));
    bed.send(Method::POST, METALAKES, &[], body)
        .await
        .assert(413, 1001);
}

#[tokio::test]
async fn a_body_in_several_pieces_is_put_together() {
    let bed = Bed::new().await;
    let pieces = [r#"{"na"#, r#"me":"#, r#""m"}"#];
    let chunks = pieces.map(|piece| Ok::<_, Infallible>(Bytes::from_static(piece.as_bytes())));
    let body = Body::from_stream(stream::iter(chunks));
    bed.send(Method::POST, METALAKES, &[], body).await.assert(200, 0);
}

#[tokio::test]
async fn a_body_that_does_not_arrive_is_given_up() {
    let bed = Bed::with(Limits {
        body_read_max: Duration::from_millis(10),
        ..Limits::default()
    })
    .await;
    let body = Body::from_stream(stream::pending::<Result<Bytes, Infallible>>());
    bed.send(Method::POST, METALAKES, &[], body)
        .await
        .assert(408, 1001);
}

#[tokio::test]
async fn a_body_that_breaks_off_writes_nothing() {
    let bed = Bed::new().await;
    let pieces = [
        Ok(Bytes::from_static(br#"{"name":"m"}"#)),
        Err("the connection is gone"),
    ];
    let body = Body::from_stream(stream::iter(pieces));
    bed.send(Method::POST, METALAKES, &[], body)
        .await
        .assert(400, 1001);
    bed.get("/api/metalakes/m").await.assert(404, 1003);
}

#[tokio::test]
async fn what_is_not_what_the_operation_takes_is_refused() {
    let bed = Bed::new().await;
    let deep = format!(
        r#"{{"name":"m","properties":{}"a"{}}}"#,
        r#"{"k":"#.repeat(5_000),
        "}".repeat(5_000)
    );
    let bodies = [
        "",
        " ",
        "{",
        "[]",
        "null",
        r#""m""#,
        r#"{"name":null}"#,
        r#"{"name":1}"#,
        r#"{"name":"m"} x"#,
        r#"{"name":"m","x":1}"#,
        r#"{"name":"m","name":"n"}"#,
        r#"{"name":"m","properties":{"k":null}}"#,
        r#"{"name":"m","properties":{"k":1}}"#,
        r#"{"name":"m","properties":[]}"#,
        deep.as_str(),
    ];
    for body in bodies {
        bed.post(METALAKES, body).await.assert(400, 1001);
    }
    assert_eq!(
        bed.get(METALAKES).await.assert(200, 0)["metalakes"]
            .as_array()
            .map(Vec::len),
        Some(0)
    );
}

#[tokio::test]
async fn the_media_type_matters_only_where_there_is_a_body() {
    let bed = Bed::new().await;
    let text = [("content-type", "text/plain")];
    let body = || Body::from(r#"{"name":"m"}"#);
    bed.send(Method::POST, METALAKES, &text, body())
        .await
        .assert(415, 1001);
    bed.send(Method::POST, METALAKES, &[], body())
        .await
        .assert(200, 0);
    bed.send(Method::GET, METALAKES, &text, Body::empty())
        .await
        .assert(200, 0);
    bed.send(Method::POST, METALAKES, &text, Body::empty())
        .await
        .assert(400, 1001);
}

#[tokio::test]
async fn ten_thousand_properties_go_in_and_come_out() {
    let bed = Bed::new().await;
    let properties: Vec<String> = (0..10_000)
        .map(|number| format!(r#""key-{number}":"value""#))
        .collect();
    bed.post(
        METALAKES,
        &format!(r#"{{"name":"m","properties":{{{}}}}}"#, properties.join(",")),
    )
    .await
    .assert(200, 0);
    let loaded = bed.get("/api/metalakes/m").await.assert(200, 0);
    assert_eq!(
        loaded["metalake"]["properties"]
            .as_object()
            .map(serde_json::Map::len),
        Some(10_001)
    );
}

#[tokio::test]
async fn a_connection_test_needs_no_body() {
    let bed = Bed::with_schema().await;
    let path = "/api/metalakes/m/catalogs/c/testConnection";
    for body in ["", r#"{"updates":[]}"#] {
        bed.post(path, body).await.assert(405, 1006);
    }
    bed.post(path, r#"{"updates":[{"@type":"x"}]}"#)
        .await
        .assert(400, 1001);
    bed.post("/api/metalakes/m/catalogs/x/testConnection", "")
        .await
        .assert(200, 1003);
}

/// A body whose first piece is here and whose second never comes.
fn unfinished(first: &'static str) -> Body {
    let first = stream::iter([Ok::<_, Infallible>(Bytes::from_static(first.as_bytes()))]);
    Body::from_stream(first.chain(stream::pending()))
}

/// The server works on one request at a time, and a client sends half a body and then nothing. A read, a probe and
/// another write are served beside it.
#[tokio::test]
async fn a_body_that_never_ends_holds_up_no_other_request() {
    let bed = Bed::with(Limits {
        requests_max: 1,
        request_max: Duration::from_secs(5),
        ..Limits::default()
    })
    .await;
    for path in [METALAKES, "/api/nothing", "/api/metalakes/m/tags", "/api/version"] {
        let mut slow = Box::pin(bed.send(Method::POST, path, &[], unfinished("{")));
        assert!(
            slow.as_mut().now_or_never().is_none(),
            "{path} waits for its body"
        );
        bed.get(METALAKES).await.assert(200, 0);
        bed.get("/api/health/ready").await.assert(200, 0);
        bed.post("/api/metalakes/m/catalogs", "{").await.assert(400, 1001);
    }
}

/// One request has most of the room, first because its body is still on its way, then because it waits for its turn.
/// What does not fit beside it is refused and writes nothing; once it is answered there is room again.
#[tokio::test]
async fn bodies_beyond_the_bound_of_all_are_refused_until_there_is_room() {
    let body = r#"{"name":"m"}"#;
    let bed = Bed::with(Limits {
        body_bytes_max: body.len(),
        bodies_bytes_max: body.len(),
        requests_max: 1,
        ..Limits::default()
    })
    .await;
    let mut arriving = Box::pin(bed.send(Method::POST, METALAKES, &[], unfinished("{")));
    assert!(arriving.as_mut().now_or_never().is_none());
    let beside = bed.post(METALAKES, body).await;
    beside.assert_class(503, 1002, "RuntimeException");
    assert_eq!(beside.headers["retry-after"], "1");
    bed.get("/api/metalakes/m").await.assert(404, 1003);
    drop(arriving);

    let turn = bed.app.turns().acquire().await.unwrap();
    let mut waiting = Box::pin(bed.post(METALAKES, body));
    assert!(waiting.as_mut().now_or_never().is_none());
    let beside = bed.post(METALAKES, r#"{"name":"n"}"#).await;
    beside.assert_class(503, 1002, "RuntimeException");
    drop(turn);
    waiting.await.assert(200, 0);
    bed.get("/api/metalakes/n").await.assert(404, 1003);
    bed.post(METALAKES, r#"{"name":"n"}"#).await.assert(200, 0);
    assert_eq!(bed.app.bodies().available_permits(), body.len());
}

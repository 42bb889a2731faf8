//! The router against the table of operations: what is routed, and what everything else is answered.

use axum::body::Body;
use axum::http::Method;

use super::Bed;
use crate::later;
use crate::operations::{Operation, operations};

const METHODS: [Method; 7] = [
    Method::GET,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
    Method::OPTIONS,
    Method::TRACE,
];

/// A path with something in the place of each parameter.
fn filled(path: &str) -> String {
    let segments = path
        .split('/')
        .map(|segment| if segment.starts_with('{') { "x" } else { segment });
    segments.collect::<Vec<_>>().join("/")
}

/// The router is written out beside the table. Where they agree, every operation of the table is answered by its
/// handler, and any other method on its path is refused as a method.
#[tokio::test]
async fn every_operation_is_routed_and_no_other_method_is() {
    let bed = Bed::new().await;
    let all = operations();
    for Operation { path, .. } in &all {
        // A catalog may have this name, so its path takes the methods of a catalog too.
        let doubled = path.ends_with("/catalogs/testConnection");
        for method in METHODS
            .iter()
            .filter(|method| !doubled || **method == Method::POST)
        {
            let reply = bed.send(method.clone(), &filled(path), &[], Body::empty()).await;
            let refused = reply.text.contains("does not take the method");
            let known = all
                .iter()
                .any(|operation| operation.path == *path && operation.method == *method);
            assert_eq!(refused, !known, "{method} {path}: {}", reply.text);
            if refused {
                reply.assert_class(405, 1006, "UnsupportedOperationException");
                assert!(!reply.headers["allow"].is_empty(), "{method} {path}");
            }
        }
    }
}

#[tokio::test]
async fn every_later_endpoint_is_there_and_refused() {
    let bed = Bed::new().await;
    for path in later::paths() {
        for method in METHODS {
            let reply = bed
                .send(method.clone(), &filled(&path), &[], Body::from("x"))
                .await;
            reply.assert_class(405, 1006, "UnsupportedOperationException");
            assert_eq!(reply.headers["allow"], "", "{method} {path}");
        }
    }
}

#[tokio::test]
async fn an_unknown_path_is_not_found_whatever_the_method() {
    let bed = Bed::new().await;
    for path in [
        "/api",
        "/api/",
        "/api/nothing",
        "/nothing",
        "/api/metalakes/",
        "/api/metalakes/m/x",
        "/x%ff",
    ] {
        for method in METHODS {
            let reply = bed.send(method, path, &[], Body::from("x")).await;
            reply.assert_class(404, 1003, "NotFoundException");
        }
    }
}

#[tokio::test]
async fn a_path_that_is_not_utf8_is_refused_on_the_api() {
    let bed = Bed::new().await;
    for path in [
        "/api/metalakes/%ff",
        "/api/metalakes/m/catalogs/%c3%28",
        "/api/%ff",
    ] {
        bed.get(path).await.assert(400, 1001);
    }
}

#[tokio::test]
async fn version_is_checked_before_authentication_and_both_before_the_route() {
    let bed = Bed::new().await;
    let version = ("accept", "application/vnd.gravitino.v9+json");
    let scheme = ("authorization", "Bearer x");
    let ask = async |headers: &[(&str, &str)]| {
        bed.send(Method::GET, "/api/nothing", headers, Body::empty())
            .await
    };
    ask(&[version, scheme]).await.assert(406, 1001);
    ask(&[scheme]).await.assert(401, 1011);
    ask(&[]).await.assert(404, 1003);
    for open in [
        "/api/health",
        "/health/ready",
        "/configs",
        "/metrics",
        "/openapi.json",
        "/docs",
    ] {
        assert_eq!(
            bed.send(Method::GET, open, &[version, scheme], Body::empty())
                .await
                .status,
            200,
            "{open}"
        );
    }
}

#[tokio::test]
async fn a_catalog_may_be_called_as_the_connection_test_is() {
    let bed = Bed::new().await;
    bed.post("/api/metalakes", r#"{"name":"m"}"#).await.assert(200, 0);
    bed.post(
        "/api/metalakes/m/catalogs",
        r#"{"name":"testConnection","type":"model"}"#,
    )
    .await
    .assert(200, 0);
    let path = "/api/metalakes/m/catalogs/testConnection";
    assert_eq!(
        bed.get(path).await.assert(200, 0)["catalog"]["name"],
        "testConnection"
    );
    bed.put(path, r#"{"updates":[]}"#, &[]).await.assert(200, 0);
    bed.post(&format!("{path}/schemas"), r#"{"name":"s"}"#)
        .await
        .assert(200, 0);
    assert_eq!(
        bed.delete(&format!("{path}?force=true"), &[])
            .await
            .assert(200, 0)["dropped"],
        true
    );
}

#[tokio::test]
async fn a_request_keeps_its_id() {
    let bed = Bed::new().await;
    for path in ["/api/version", "/api/nothing", "/health"] {
        let reply = bed
            .send(Method::GET, path, &[("x-request-id", "abc-1")], Body::empty())
            .await;
        assert_eq!(reply.headers["x-request-id"], "abc-1", "{path}");
    }
}

#[tokio::test]
async fn closing_is_well_and_a_person_is_shown_the_documentation() {
    let bed = Bed::new().await;
    let close = Method::from_bytes(b"CLOSE").unwrap();
    bed.send(close, "/", &[], Body::empty()).await.assert(200, 0);
    let reply = bed.get("/").await;
    assert_eq!(
        (reply.status.as_u16(), reply.headers["location"].as_bytes()),
        (307, b"/docs".as_slice())
    );
    bed.post("/", "").await.assert(405, 1006);
    let page = bed.get("/docs").await.text;
    assert!(page.contains("/openapi.json") && !page.contains("http://") && !page.contains("https://"));
}

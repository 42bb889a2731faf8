//! Requests whose head is wrong: media types, methods, routes, credentials, conditions.

use anyhow::{Context as _, Result, ensure};
use hyper::Method;
use treeline_tests::{Connection, Tree};

use crate::stand::Stand;

const BODY: &str = r#"{"name": "x"}"#;

#[tokio::test]
async fn a_body_of_another_media_type_is_not_taken() -> Result<()> {
    let mut stand = Stand::new().await?;
    for content_type in [
        "text/plain",
        "text/html",
        "application/xml",
        "application/x-www-form-urlencoded",
        "nonsense",
    ] {
        let headers = [("content-type", content_type)];
        let answer = stand
            .client
            .send(Method::POST, "/api/metalakes", &headers, BODY)
            .await?;
        answer
            .refused(415, 1001)
            .with_context(|| format!("content type `{content_type}`"))?;
    }
    stand.stands_unharmed().await
}

#[tokio::test]
async fn json_by_any_of_its_names_is_taken() -> Result<()> {
    let stand = Stand::new().await?;
    let mut client = stand.server.client();
    for (number, content_type) in [
        "application/json",
        "application/json; charset=utf-8",
        "Application/JSON",
        "application/vnd.gravitino.v1+json",
    ]
    .into_iter()
    .enumerate()
    {
        let body = format!(r#"{{"name": "x{number}"}}"#);
        let answer = client
            .send(
                Method::POST,
                "/api/metalakes",
                &[("content-type", content_type)],
                &body,
            )
            .await?;
        answer.ok().with_context(|| content_type.to_owned())?;
    }
    // Who says nothing of the body's type means JSON: there is nothing else to mean.
    let mut connection = Connection::open(stand.server.address()).await?;
    let head = format!(
        "POST /api/metalakes HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n",
        BODY.len()
    );
    connection.write(head + BODY).await?;
    connection.read_answer().await?.ok()?;
    stand.bed.check_is_clean().await
}

#[tokio::test]
async fn a_version_of_the_protocol_that_is_not_served_is_not_acceptable() -> Result<()> {
    let mut stand = Stand::new().await?;
    for accept in [
        "application/vnd.gravitino.v9+json",
        "application/vnd.gravitino.v0+json",
        "text/html, application/vnd.gravitino.v99999999999999999999+json",
    ] {
        for (method, body) in [(Method::GET, ""), (Method::POST, BODY)] {
            let answer = stand
                .client
                .send(method, "/api/metalakes", &[("accept", accept)], body)
                .await?;
            answer.refused(406, 1001).with_context(|| accept.to_owned())?;
        }
    }
    for accept in [
        "*/*",
        "application/json",
        "application/vnd.gravitino.v1+json",
        "text/html",
        "nonsense",
    ] {
        let answer = stand
            .client
            .send(Method::GET, "/api/metalakes", &[("accept", accept)], "")
            .await?;
        answer.ok().with_context(|| accept.to_owned())?;
    }
    stand.stands_unharmed().await
}

#[tokio::test]
async fn an_unknown_route_is_not_found() -> Result<()> {
    let mut stand = Stand::new().await?;
    for path in [
        "/nonsense",
        "/api",
        "/api/",
        "/api/nonsense",
        "/api/metalakes/m/nonsense",
        "/api/metalakes/m/catalogs/files/nonsense",
        "/api/metalakes/m/catalogs/files/schemas/s/nonsense",
        "/api/metalakes/m/catalogs/files/schemas/s/filesets/f/nonsense",
        "//api/metalakes",
        "/api//metalakes",
        "/API/metalakes",
        "/api/metalakes/m/catalogs/files/schemas/s/filesets/f/files/x",
    ] {
        for method in ["GET", "POST", "PUT", "DELETE"] {
            let body = if method == "GET" { "" } else { BODY };
            let answer = stand.send(method, path, body).await?;
            answer
                .refused(404, 1003)
                .with_context(|| format!("{method} {path}"))?;
        }
    }
    stand.stands_unharmed().await
}

#[tokio::test]
async fn a_method_that_a_route_has_not_is_not_allowed() -> Result<()> {
    let mut stand = Stand::new().await?;
    for (method, path) in [
        ("PUT", "/api/metalakes"),
        ("DELETE", "/api/metalakes"),
        ("POST", "/api/metalakes/m"),
        ("PATCH", "/api/metalakes"),
        ("PATCH", "/api/metalakes/m/catalogs/files/schemas/s"),
        ("POST", "/api/version"),
        ("TRACE", "/api/metalakes"),
        ("NONSENSE", "/api/metalakes"),
    ] {
        stand
            .send(method, path, BODY)
            .await?
            .refused(405, 1006)
            .with_context(|| format!("{method} {path}"))?;
    }
    stand.stands_unharmed().await
}

/// Parts of the protocol that this server will have later: a client is told that they are not supported, which it
/// understands, and not that they do not exist.
#[tokio::test]
async fn what_comes_later_is_not_supported_yet() -> Result<()> {
    let mut stand = Stand::new().await?;
    let schema = "/api/metalakes/m/catalogs/files/schemas/s";
    for path in [
        format!("{schema}/tables"),
        format!("{schema}/tables/t"),
        format!("{schema}/tables/t/partitions/p"),
        format!("{schema}/views"),
        format!("{schema}/topics/t"),
        format!("{schema}/functions"),
        "/api/metalakes/m/tags".to_owned(),
        "/api/metalakes/m/policies/p".to_owned(),
        "/api/metalakes/m/users".to_owned(),
        "/api/metalakes/m/groups/g".to_owned(),
        "/api/metalakes/m/roles".to_owned(),
        "/api/metalakes/m/owners/catalog/files".to_owned(),
        "/api/metalakes/m/jobs/runs".to_owned(),
        "/api/metalakes/m/objects/catalog/files/tags".to_owned(),
    ] {
        stand
            .send("GET", &path, "")
            .await?
            .refused(405, 1006)
            .with_context(|| path.clone())?;
    }
    stand.stands_unharmed().await
}

#[tokio::test]
async fn a_scheme_of_credentials_that_is_not_served_is_unauthorized() -> Result<()> {
    let mut stand = Stand::new().await?;
    for credentials in ["Bearer abc", "Negotiate abc", "Digest a=b", "nonsense"] {
        let answer = stand
            .client
            .send(
                Method::GET,
                "/api/metalakes",
                &[("authorization", credentials)],
                "",
            )
            .await?;
        answer
            .refused(401, 1011)
            .with_context(|| credentials.to_owned())?;
    }
    for credentials in ["Basic !!!", "Basic ", "Basic Og==", "Basic /w=="] {
        let answer = stand
            .client
            .send(
                Method::GET,
                "/api/metalakes",
                &[("authorization", credentials)],
                "",
            )
            .await?;
        answer.ok().with_context(|| credentials.to_owned())?;
    }
    stand.stands_unharmed().await
}

#[tokio::test]
async fn a_condition_that_is_none_or_does_not_hold_is_a_clients_error() -> Result<()> {
    let mut stand = Stand::new().await?;
    let update = r#"{"updates": [{"@type": "setProperty", "property": "a", "value": "b"}]}"#;
    let path = format!("{}/s", Tree::SCHEMAS);
    for tag in [
        "nonsense",
        "\"nonsense\"",
        "\"1-1\"",
        "W/\"1-1\"",
        "\"99999999999999999999-1\"",
        "\"",
        ",",
    ] {
        let answer = stand
            .client
            .send(Method::PUT, &path, &[("if-match", tag)], update)
            .await?;
        answer.is_error_envelope().with_context(|| tag.to_owned())?;
        ensure!(
            answer.status == 400 || answer.status == 412,
            "{tag}: {}",
            answer.text
        );
    }
    stand.stands_unharmed().await
}

#[tokio::test]
async fn queries_and_headers_that_make_no_sense_hurt_nobody() -> Result<()> {
    let mut stand = Stand::new().await?;
    let long = format!("/api/metalakes?a={}", "b".repeat(8_000));
    for path in [
        "/api/metalakes?%FF=%FF",
        "/api/metalakes?force=%FF",
        "/api/metalakes?&&==&",
        "/api/metalakes?a",
        &long,
    ] {
        let answer = stand.send("GET", path, "").await?;
        ensure!(
            answer.status == 200 || answer.is_error_envelope().is_ok(),
            "{path}: {}",
            answer.text
        );
    }
    // Not a way to say yes, so it is a no: the metalake is enabled and stays.
    for force in ["maybe", "1", "", "%FF"] {
        let answer = stand
            .send("DELETE", &format!("/api/metalakes/m?force={force}"), "")
            .await?;
        answer.is_error_envelope().with_context(|| force.to_owned())?;
    }
    let huge = "x".repeat(64 * 1024);
    let answer = stand
        .client
        .send(Method::GET, "/api/metalakes", &[("x-nonsense", &huge)], "")
        .await;
    ensure!(
        answer.is_err() || answer.is_ok_and(|answer| answer.status < 500),
        "a huge header hurt"
    );
    for nonsense in [
        "\0\0\0\0\r\n\r\n",
        "GET\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "\u{16}\u{3}\u{1}",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let mut connection = Connection::open(stand.server.address()).await?;
        connection.write(nonsense).await?;
    }
    stand.stands_unharmed().await
}

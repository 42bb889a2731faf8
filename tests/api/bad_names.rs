//! Names that no rule lets in, in bodies and in paths, and odd names that are right.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use treeline_tests::{Bed, Connection, Tree, head};

use crate::stand::Stand;

/// A collection, what creates an entity of a name in it, and the names that only its kind refuses.
fn collections(stand: &Stand) -> [(&'static str, serde_json::Value, &'static [&'static str]); 5] {
    [
        ("/api/metalakes", json!({}), &["system", "a-b", "a=b", "a/b"]),
        (
            Tree::CATALOGS,
            json!({"type": "fileset"}),
            &["system", "*", "a=b", "a/b"],
        ),
        (Tree::SCHEMAS, json!({}), &["*", "a/b"]),
        (
            Tree::FILESETS,
            json!({"storageLocation": stand.tree.location("x")}),
            &["*", "a/b"],
        ),
        (Tree::MODELS, json!({}), &["*"]),
    ]
}

#[tokio::test]
async fn a_name_that_its_rule_does_not_let_in_is_invalid() -> Result<()> {
    let mut stand = Stand::new().await?;
    let long = "a".repeat(65);
    let huge = "a".repeat(100_000);
    for (path, body, own) in collections(&stand) {
        let everywhere = [
            "",
            " ",
            "  ",
            " a",
            "a ",
            "a\t",
            "\ta",
            "a\n",
            "\u{a0}a",
            "a\u{2003}",
            "a b",
            "a.b",
            "a:b",
            "a\\b",
            "a%2Fb",
            "a\0",
            "\u{1}",
            "\u{202e}a",
            "-a",
            "=a",
            "/a",
            ".",
            "..",
            "ä",
            "名",
            "🌲",
            "a'b",
            "a\"b",
            "a;b",
            "a?b",
            "a#b",
            &long,
            &huge,
        ];
        for name in everywhere.iter().chain(own) {
            let mut body = body.clone();
            body["name"] = json!(name);
            stand.is_invalid("POST", path, &body.to_string()).await?;
        }
    }
    stand.stands_unharmed().await
}

#[tokio::test]
async fn a_reserved_name_is_told_from_an_ill_formed_one() -> Result<()> {
    let mut stand = Stand::new().await?;
    let reserved = stand
        .send("POST", "/api/metalakes", r#"{"name": "system"}"#)
        .await?;
    reserved.refused(400, 1001)?;
    ensure!(reserved.text.contains("reserved"), "{}", reserved.text);
    let ill_formed = stand.send("POST", "/api/metalakes", r#"{"name": "a b"}"#).await?;
    ill_formed.refused(400, 1001)?;
    ensure!(!ill_formed.text.contains("reserved"), "{}", ill_formed.text);
    stand.stands_unharmed().await
}

#[tokio::test]
async fn sixty_four_characters_are_a_name_of_every_kind() -> Result<()> {
    let stand = Stand::new().await?;
    let mut client = stand.server.client();
    let name = "a".repeat(64);
    for (path, mut body, _) in collections(&stand) {
        body["name"] = json!(name);
        client.post(path, &body).await?.ok()?;
        client.get(&format!("{path}/{name}")).await?.ok()?;
    }
    stand.bed.check_is_clean().await
}

/// `/` and `=` are letters of some names; in a path they are percent-encoded and still one segment.
#[tokio::test]
async fn names_with_slashes_and_equal_signs_travel_encoded_in_one_segment() -> Result<()> {
    let bed = Bed::new()?;
    let server = bed.start().await?;
    let mut client = server.client();
    Tree::plant(&bed, &mut client).await?;
    let schemas = format!("{}/models/schemas", Tree::CATALOGS);
    client.post(&schemas, &json!({"name": "a/b=c-d"})).await?.ok()?;
    let models = format!("{schemas}/a%2Fb%3Dc-d/models");
    client.post(&models, &json!({"name": "dt=1/x=2"})).await?.ok()?;
    for segment in ["dt=1%2Fx=2", "dt%3D1%2fx%3D2", "%64t=1%2Fx=2"] {
        let answer = client.get(&format!("{models}/{segment}")).await?.ok()?;
        ensure!(answer.json["model"]["name"] == "dt=1/x=2", "{}", answer.text);
    }
    let listed = client.get(&models).await?.ok()?;
    let expected = json!([{"namespace": ["m", "models", "a/b=c-d"], "name": "dt=1/x=2"}]);
    ensure!(listed.json["identifiers"] == expected, "{}", listed.text);
    // Encoded twice, it is another name.
    client
        .get(&format!("{models}/dt=1%252Fx=2"))
        .await?
        .refused(404, 1003)?;
    let dropped = client.delete(&format!("{models}/dt%3D1%2Fx%3D2")).await?.ok()?;
    ensure!(dropped.json["dropped"] == true, "{}", dropped.text);
    bed.check_is_clean().await
}

/// What cannot be a name cannot exist, so the answer to looking it up is that it is not there.
#[tokio::test]
async fn a_segment_that_cannot_be_a_name_is_not_found() -> Result<()> {
    let mut stand = Stand::new().await?;
    let long = "a".repeat(4_000);
    let segments = [
        "%20",
        "%20a",
        "a%20",
        "a.b",
        "a:b",
        "a%3Ab",
        "%2F",
        "a%2Fb",
        "%00",
        "a%00b",
        "%0A",
        "%25",
        "%252F",
        "%E4%B8%AD",
        "*",
        "%2A",
        "-",
        "a@b",
        "a;b",
        "a,b",
        "a+b",
        "%5C",
        "%22",
        "%27",
        "a%27%20OR%201%3D1",
        "%2e%2e%2f%2e%2e%2fetc",
        &long,
    ];
    for collection in [
        "/api/metalakes",
        Tree::CATALOGS,
        Tree::SCHEMAS,
        Tree::FILESETS,
        Tree::MODELS,
    ] {
        for segment in segments {
            let path = format!("{collection}/{segment}");
            let answer = stand.send("GET", &path, "").await?;
            answer.refused(404, 1003).with_context(|| path.clone())?;
            let update = r#"{"updates": [{"@type": "setProperty", "property": "a", "value": "b"}]}"#;
            stand
                .send("PUT", &path, update)
                .await?
                .refused(404, 1003)
                .with_context(|| path.clone())?;
            let dropped = stand
                .send("DELETE", &path, "")
                .await?
                .ok()
                .with_context(|| path.clone())?;
            ensure!(dropped.json["dropped"] == false, "{path}: {}", dropped.text);
        }
    }
    stand.stands_unharmed().await
}

/// Paths that are no text, or that mean something to a file system: an error of the client's, in the envelope.
#[tokio::test]
async fn a_path_that_is_no_text_is_refused_in_the_envelope() -> Result<()> {
    let stand = Stand::new().await?;
    for segment in [
        "%FF",
        "a%FFb",
        "%C3%28",
        "%ED%A0%80",
        "%F0%80%80%80",
        "%zz",
        "%",
        "%1",
        "..",
        ".",
        "%2e%2e",
        "%2E",
        "",
    ] {
        for (method, path) in [
            ("GET", format!("/api/metalakes/{segment}")),
            ("GET", format!("/api/metalakes/{segment}/catalogs")),
            ("PUT", format!("{}/{segment}", Tree::SCHEMAS)),
            ("POST", format!("{}/{segment}/versions", Tree::MODELS)),
            ("GET", format!("{}/{segment}/aliases/{segment}", Tree::MODELS)),
            ("PATCH", format!("/api/metalakes/{segment}")),
        ] {
            let mut connection = Connection::open(stand.server.address()).await?;
            connection.write(head(method, &path, 2) + "{}").await?;
            let answer = connection.read_answer().await?;
            answer
                .is_error_envelope()
                .with_context(|| format!("{method} {path}"))?;
        }
    }
    let mut raw = Connection::open(stand.server.address()).await?;
    raw.write("GET /api/metalakes/\u{e9} HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await?;
    raw.read_answer().await?.is_error_envelope()?;
    // This is no HTTP any more, and refused before anybody could say so in JSON.
    let mut raw = Connection::open(stand.server.address()).await?;
    raw.write(b"GET /api/metalakes/\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await?;
    ensure!(
        raw.read_answer().await?.status == 400,
        "a request line that is no text was taken"
    );
    stand.stands_unharmed().await
}

/// The numbers of model versions and the aliases that could be taken for one.
#[tokio::test]
async fn a_version_that_is_no_number_is_a_clients_error() -> Result<()> {
    let mut stand = Stand::new().await?;
    for number in [
        "-1",
        "1.5",
        "a",
        "%20",
        "99999999999",
        "99999999999999999999999",
        "0x1",
        "%2B1",
        "1e3",
    ] {
        let path = format!("{}/model/versions/{number}", Tree::MODELS);
        let update = r#"{"updates": [{"@type": "setProperty", "property": "a", "value": "b"}]}"#;
        stand
            .send("GET", &path, "")
            .await?
            .is_error_envelope()
            .with_context(|| path.clone())?;
        stand
            .send("PUT", &path, update)
            .await?
            .is_error_envelope()
            .with_context(|| path.clone())?;
        stand
            .send("GET", &format!("{path}/uri"), "")
            .await?
            .is_error_envelope()
            .with_context(|| path.clone())?;
    }
    for aliases in [
        json!(["1"]),
        json!([""]),
        json!([" "]),
        json!([" a"]),
        json!([1]),
        json!("a"),
        json!([null]),
    ] {
        let body = json!({"uri": "s3://bucket/model", "aliases": aliases});
        stand
            .is_invalid(
                "POST",
                &format!("{}/model/versions", Tree::MODELS),
                &body.to_string(),
            )
            .await?;
    }
    stand.stands_unharmed().await
}

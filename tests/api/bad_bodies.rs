//! Bodies that are not what they should be.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Map, Value, json};
use treeline_tests::{Bed, Connection, Tree, head};

use crate::stand::Stand;

/// Every request with a body, and a body that would be right.
fn writes(stand: &Stand) -> Vec<(&'static str, String, Value)> {
    let set = json!({"updates": [{"@type": "setProperty", "property": "a", "value": "b"}]});
    let version = json!({"uri": "s3://bucket/model"});
    vec![
        ("POST", "/api/metalakes".into(), json!({"name": "x"})),
        ("PUT", "/api/metalakes/m".into(), set.clone()),
        ("PATCH", "/api/metalakes/m".into(), json!({"inUse": true})),
        (
            "POST",
            Tree::CATALOGS.into(),
            json!({"name": "x", "type": "fileset"}),
        ),
        ("PUT", format!("{}/files", Tree::CATALOGS), set.clone()),
        (
            "PATCH",
            format!("{}/files", Tree::CATALOGS),
            json!({"inUse": true}),
        ),
        ("POST", Tree::SCHEMAS.into(), json!({"name": "x"})),
        ("PUT", format!("{}/s", Tree::SCHEMAS), set.clone()),
        ("POST", Tree::FILESETS.into(), stand.tree.fileset("x")),
        ("PUT", format!("{}/x", Tree::FILESETS), set.clone()),
        ("POST", Tree::MODELS.into(), json!({"name": "x"})),
        ("PUT", format!("{}/model", Tree::MODELS), set.clone()),
        ("POST", format!("{}/model/versions", Tree::MODELS), version),
        ("PUT", format!("{}/model/versions/0", Tree::MODELS), set),
    ]
}

#[tokio::test]
async fn what_is_no_json_object_is_invalid_wherever_a_body_is_due() -> Result<()> {
    let mut stand = Stand::new().await?;
    for (method, path, right) in writes(&stand) {
        let right = right.to_string();
        let cut = &right[..right.len() - 1];
        let twice = format!("{right}{right}");
        let comma = format!("{cut},}}");
        let marked = format!("\u{feff}{right}");
        for body in [
            "",
            " ",
            "{",
            "}",
            "nul",
            "null",
            "true",
            "1",
            "\"text\"",
            "[]",
            "[{}]",
            "{\"name\"",
            "{name: 1}",
            "NaN",
            "<a/>",
            "\0",
            cut,
            &twice,
            &comma,
            &marked,
        ] {
            stand.is_invalid(method, &path, body).await?;
        }
    }
    stand.stands_unharmed().await
}

#[tokio::test]
async fn an_object_without_what_it_must_have_is_invalid() -> Result<()> {
    let mut stand = Stand::new().await?;
    for (method, path, _) in writes(&stand) {
        stand.is_invalid(method, &path, "{}").await?;
    }
    stand.stands_unharmed().await
}

#[tokio::test]
async fn bytes_that_are_no_utf8_are_invalid() -> Result<()> {
    let stand = Stand::new().await?;
    for (method, path, right) in writes(&stand) {
        let mut body = right
            .to_string()
            .replace("\"x\"", "\"x?\"")
            .replace("\"a\"", "\"a?\"")
            .into_bytes();
        let place = body.iter().position(|byte| *byte == b'?').unwrap_or(1);
        body[place] = 0xFF;
        let mut connection = Connection::open(stand.server.address()).await?;
        connection.write(head(method, &path, body.len())).await?;
        connection.write(&body).await?;
        connection
            .read_answer()
            .await?
            .refused(400, 1001)
            .with_context(|| format!("{method} {path}"))?;
    }
    stand.stands_unharmed().await
}

#[tokio::test]
async fn a_value_of_another_type_is_invalid() -> Result<()> {
    let mut stand = Stand::new().await?;
    let wrong = [
        json!(1),
        json!(1.5),
        json!(true),
        json!([]),
        json!(["a"]),
        json!({}),
        json!({"a": "b"}),
    ];
    let fields = [
        ("/api/metalakes", json!({"name": "x"}), vec!["name", "comment"]),
        (
            Tree::CATALOGS,
            json!({"name": "x", "type": "fileset"}),
            vec!["name", "type", "provider", "comment"],
        ),
        (Tree::SCHEMAS, json!({"name": "x"}), vec!["name", "comment"]),
        (
            Tree::FILESETS,
            stand.tree.fileset("x"),
            vec!["name", "comment", "type", "storageLocation"],
        ),
        (Tree::MODELS, json!({"name": "x"}), vec!["name", "comment"]),
    ];
    for (path, right, texts) in fields {
        for field in texts {
            for value in &wrong {
                stand
                    .is_invalid("POST", path, &with(&right, field, value.clone()).to_string())
                    .await?;
            }
        }
        for properties in [
            json!("a"),
            json!(1),
            json!(["a"]),
            json!({"a": {}}),
            json!({"a": ["b"]}),
        ] {
            stand
                .is_invalid("POST", path, &with(&right, "properties", properties).to_string())
                .await?;
        }
    }
    for locations in [
        json!("a"),
        json!(["/tmp/a"]),
        json!({"a": 1}),
        json!({"a": {}}),
        json!({"a": ["/tmp/a"]}),
    ] {
        let body = json!({"name": "x", "storageLocations": locations});
        stand
            .is_invalid("POST", Tree::FILESETS, &body.to_string())
            .await?;
    }
    for in_use in [json!({}), json!([]), json!("perhaps"), json!(null)] {
        let body = json!({"inUse": in_use}).to_string();
        stand.is_invalid("PATCH", "/api/metalakes/m", &body).await?;
        stand
            .is_invalid("PATCH", &format!("{}/files", Tree::CATALOGS), &body)
            .await?;
    }
    stand.stands_unharmed().await
}

#[tokio::test]
async fn an_update_of_no_known_type_or_without_its_fields_is_invalid() -> Result<()> {
    let mut stand = Stand::new().await?;
    let bad = [
        json!(null),
        json!({}),
        json!("setProperty"),
        json!([null]),
        json!([1]),
        json!([[]]),
        json!([{}]),
        json!([{"property": "a", "value": "b"}]),
        json!([{"@type": "explode"}]),
        json!([{"@type": "SetProperty", "property": "a", "value": "b"}]),
        json!([{"@type": 1, "property": "a", "value": "b"}]),
        json!([{"@type": null, "property": "a", "value": "b"}]),
        json!([{"@type": "setProperty"}]),
        json!([{"@type": "setProperty", "property": "a"}]),
        json!([{"@type": "setProperty", "property": "a", "value": null}]),
        json!([{"@type": "setProperty", "property": null, "value": "b"}]),
        json!([{"@type": "setProperty", "property": "", "value": "b"}]),
        json!([{"@type": "setProperty", "property": 1, "value": "b"}]),
        json!([{"@type": "setProperty", "property": "a", "value": {}}]),
        json!([{"@type": "removeProperty"}]),
        json!([{"@type": "removeProperty", "property": null}]),
        // One that is right does not save the others, nor is it applied.
        json!([{"@type": "setProperty", "property": "a", "value": "b"}, {"@type": "explode"}]),
    ];
    let paths = [
        "/api/metalakes/m".to_owned(),
        format!("{}/files", Tree::CATALOGS),
        format!("{}/s", Tree::SCHEMAS),
    ];
    for path in &paths {
        for updates in &bad {
            stand
                .is_invalid("PUT", path, &json!({"updates": updates}).to_string())
                .await?;
        }
    }
    for path in &paths[..2] {
        for new_name in [
            json!(null),
            json!(""),
            json!(" "),
            json!(1),
            json!("a b"),
            json!("a".repeat(65)),
        ] {
            let body = json!({"updates": [{"@type": "rename", "newName": new_name}]});
            stand.is_invalid("PUT", path, &body.to_string()).await?;
        }
    }
    stand.stands_unharmed().await
}

#[tokio::test]
async fn an_unknown_field_is_refused_and_nothing_is_created() -> Result<()> {
    let mut stand = Stand::new().await?;
    for (method, path, right) in writes(&stand) {
        if method == "POST" {
            let body = with(&right, "nonsense", json!(1));
            stand.is_invalid(method, &path, &body.to_string()).await?;
        }
    }
    stand.stands_unharmed().await
}

#[tokio::test]
async fn null_where_a_value_is_due_is_invalid() -> Result<()> {
    let mut stand = Stand::new().await?;
    for path in ["/api/metalakes", Tree::SCHEMAS, Tree::MODELS] {
        stand.is_invalid("POST", path, r#"{"name": null}"#).await?;
        stand
            .is_invalid("POST", path, r#"{"name": "x", "properties": {"a": null}}"#)
            .await?;
    }
    for body in [
        r#"{"name": null, "type": "fileset"}"#,
        r#"{"name": "x", "type": null}"#,
        r#"{"name": "x"}"#,
    ] {
        stand.is_invalid("POST", Tree::CATALOGS, body).await?;
    }
    let location = stand.tree.location("x");
    for body in [
        json!({"name": null, "storageLocation": location}),
        json!({"name": "x"}),
        json!({"name": "x", "storageLocation": null, "storageLocations": null}),
        json!({"name": "x", "storageLocations": {}}),
        json!({"name": "x", "storageLocations": {"a": null}}),
    ] {
        stand
            .is_invalid("POST", Tree::FILESETS, &body.to_string())
            .await?;
    }
    stand.stands_unharmed().await
}

/// Deep enough to overflow the stack of a parser that recurses without a bound.
#[tokio::test]
async fn a_hundred_thousand_levels_of_nesting_are_invalid() -> Result<()> {
    const LEVELS: usize = 100_000;
    let mut stand = Stand::new().await?;
    let lists = format!("{}{}", "[".repeat(LEVELS), "]".repeat(LEVELS));
    let objects = format!("{}1{}", "{\"a\":".repeat(LEVELS), "}".repeat(LEVELS));
    let open = "[".repeat(LEVELS);
    for value in [&lists, &objects, &open] {
        for (method, path, _) in writes(&stand) {
            stand.is_invalid(method, &path, value).await?;
        }
        for field in ["name", "comment", "properties", "nonsense"] {
            let body = format!(r#"{{"name": "x", "{field}": {value}}}"#);
            stand.is_invalid("POST", "/api/metalakes", &body).await?;
        }
        let body = format!(r#"{{"updates": {value}}}"#);
        stand.is_invalid("PUT", "/api/metalakes/m", &body).await?;
    }
    stand.stands_unharmed().await
}

/// The server refuses by the length that the head announces, and by what really comes where none is announced.
#[tokio::test]
async fn a_body_over_the_limit_is_refused_without_reading_all_of_it() -> Result<()> {
    const HUGE: usize = 1 << 40;
    let stand = Stand::new().await?;
    let mut announced = Connection::open(stand.server.address()).await?;
    let waiting =
        head("POST", "/api/metalakes", HUGE).replace("\r\n\r\n", "\r\nExpect: 100-continue\r\n\r\n");
    announced.write(waiting).await?;
    announced.read_answer().await?.refused(413, 1001)?;

    let mut chunked = Connection::open(stand.server.address()).await?;
    let start = "POST /api/metalakes HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                 Transfer-Encoding: chunked\r\n\r\n";
    chunked.write(start).await?;
    let chunk = format!("100000\r\n{}\r\n", " ".repeat(1 << 20));
    let mut sent_bytes: usize = 0;
    while sent_bytes < 1 << 30 && chunked.write_while_taken(&chunk).await {
        sent_bytes += chunk.len();
    }
    ensure!(
        sent_bytes < 1 << 29,
        "the server took {sent_bytes} bytes of a body without an end"
    );
    stand.stands_unharmed().await
}

#[tokio::test]
async fn ten_thousand_properties_are_kept_or_refused_whole() -> Result<()> {
    const COUNT: usize = 10_000;
    let bed = Bed::new()?;
    let mut server = bed.start().await?;
    let mut client = server.client();
    Tree::plant(&bed, &mut client).await?;
    let properties: Map<String, Value> = (0..COUNT)
        .map(|number| (format!("property{number}"), json!(format!("value {number}"))))
        .collect();
    client
        .post(Tree::SCHEMAS, &json!({"name": "x", "properties": properties}))
        .await?
        .ok()?;
    let loaded = client.get(&format!("{}/x", Tree::SCHEMAS)).await?.ok()?;
    ensure!(
        loaded.json["schema"]["properties"] == Value::Object(properties.clone()),
        "not all are there"
    );

    let set: Vec<Value> = (0..COUNT)
        .map(|number| json!({"@type": "setProperty", "property": format!("other{number}"), "value": "x"}))
        .collect();
    let path = format!("{}/s", Tree::SCHEMAS);
    let altered = client.put(&path, &json!({"updates": set})).await?.ok()?;
    ensure!(
        altered.tag()?.version.get() == 2,
        "one request is one step of the version"
    );
    let count = altered.json["schema"]["properties"]
        .as_object()
        .map_or(0, Map::len);
    ensure!(count == COUNT, "{count} properties");
    server.stop().await?;
    bed.check_is_clean().await
}

fn with(body: &Value, field: &str, value: Value) -> Value {
    let mut body = body.clone();
    body[field] = value;
    body
}

//! How much one entity may hold, whatever one request may send.

use serde_json::{Map, Value, json};

use super::Bed;
use crate::app::Limits;

const METALAKE: &str = "/api/metalakes/m";
const MODEL: &str = "/api/metalakes/m/catalogs/c/schemas/s/models/o";

/// A metalake with a model and with a schema for filesets.
async fn planted(limits: Limits) -> Bed {
    let bed = Bed::with(limits).await;
    for (path, body) in [
        ("", r#"{"name":"m"}"#),
        ("/m/catalogs", r#"{"name":"c","type":"model"}"#),
        ("/m/catalogs/c/schemas", r#"{"name":"s"}"#),
        ("/m/catalogs/c/schemas/s/models", r#"{"name":"o"}"#),
        ("/m/catalogs", r#"{"name":"f","type":"fileset"}"#),
        ("/m/catalogs/f/schemas", r#"{"name":"s"}"#),
    ] {
        bed.post(&format!("/api/metalakes{path}"), body)
            .await
            .assert(200, 0);
    }
    bed
}

fn property_of_3_900_000_bytes(key: u32) -> String {
    let value = "x".repeat(3_900_000);
    json!({"updates": [{"@type": "setProperty", "property": key.to_string(), "value": value}]}).to_string()
}

/// Each request is within the bound of a body. What would be too much with what is there is refused and changes nothing;
/// what makes room for it is not.
#[tokio::test]
async fn an_entity_does_not_grow_over_its_bound_by_several_updates() {
    let bed = Bed::new().await;
    bed.post("/api/metalakes", r#"{"name":"m"}"#).await.assert(200, 0);
    for key in 0..2 {
        bed.put(METALAKE, &property_of_3_900_000_bytes(key), &[])
            .await
            .assert(200, 0);
    }
    let before = bed.get(METALAKE).await;
    for key in 2..5 {
        let refused = bed.put(METALAKE, &property_of_3_900_000_bytes(key), &[]).await;
        refused.assert_class(400, 1001, "IllegalArgumentException");
        assert!(refused.text.contains("8000000"), "{}", refused.text);
    }
    let after = bed.get(METALAKE).await;
    assert_eq!(after.tag(), before.tag());
    assert_eq!(after.assert(200, 0), before.assert(200, 0));

    let remove = r#"{"updates":[{"@type":"removeProperty","property":"0"}]}"#;
    bed.put(METALAKE, remove, &[]).await.assert(200, 0);
    bed.put(METALAKE, &property_of_3_900_000_bytes(2), &[])
        .await
        .assert(200, 0);
}

/// An operator may let bodies be longer than what is kept.
#[tokio::test]
async fn an_entity_is_not_created_over_its_bound() {
    let limits = Limits {
        body_bytes_max: 16_000_000,
        ..Limits::default()
    };
    let bed = planted(limits).await;
    let comment = "x".repeat(8_000_000);
    for (path, body) in [
        (
            "/api/metalakes".to_owned(),
            json!({"name": "n", "comment": comment}),
        ),
        (
            format!("{MODEL}/versions"),
            json!({"uri": "u", "comment": comment}),
        ),
    ] {
        bed.post(&path, &body.to_string()).await.assert(400, 1001);
    }
    bed.get("/api/metalakes/n").await.assert(404, 1003);
    bed.get(&format!("{MODEL}/versions/0")).await.assert(404, 1003);
}

#[tokio::test]
async fn a_version_has_at_most_256_aliases_whether_linked_with_them_or_given_them() {
    let bed = planted(Limits::default()).await;
    let aliases = |count: u32| (0..count).map(|number| format!("a{number}")).collect::<Vec<_>>();
    let versions = format!("{MODEL}/versions");
    let link = |count| json!({"uri": "u", "aliases": aliases(count)}).to_string();
    let refused = bed.post(&versions, &link(257)).await;
    refused.assert_class(400, 1001, "IllegalArgumentException");
    bed.get(&format!("{versions}/0")).await.assert(404, 1003);

    bed.post(&versions, &link(256)).await.assert(200, 0);
    let add = json!({"updates": [{"@type": "updateAliases", "aliasesToAdd": ["one-more"]}]});
    let before = bed.get(&format!("{versions}/0")).await;
    let refused = bed.put(&format!("{versions}/0"), &add.to_string(), &[]).await;
    refused.assert_class(400, 1001, "IllegalArgumentException");
    assert_eq!(bed.get(&format!("{versions}/0")).await.text, before.text);
    bed.get(&format!("{MODEL}/aliases/one-more"))
        .await
        .assert(404, 1003);
}

#[tokio::test]
async fn a_fileset_has_at_most_256_locations_and_none_is_made_for_one_with_more() {
    let bed = planted(Limits::default()).await;
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("files");
    let fileset = |name: &str, count: u32| {
        let location = |number| root.join(name).join(format!("{number}"));
        let locations: Map<String, Value> = (0..count)
            .map(|number| (format!("l{number}"), json!(location(number))))
            .collect();
        let properties = json!({"default-location-name": "l0"});
        json!({"name": name, "storageLocations": locations, "properties": properties}).to_string()
    };
    let filesets = "/api/metalakes/m/catalogs/f/schemas/s/filesets";
    let refused = bed.post(filesets, &fileset("over", 257)).await;
    refused.assert_class(400, 1001, "IllegalArgumentException");
    assert!(refused.text.contains("at most 256 locations"), "{}", refused.text);
    assert!(!root.exists());
    bed.get(&format!("{filesets}/over")).await.assert(404, 1003);
    bed.post(filesets, &fileset("at", 256)).await.assert(200, 0);
}

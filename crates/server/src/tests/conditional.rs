//! Tags and preconditions, through every verb that takes them.

use axum::body::Body;
use axum::http::Method;

use super::Bed;

const SCHEMA: &str = "/api/metalakes/m/catalogs/c/schemas/s";
const NOTHING: &str = r#"{"updates":[]}"#;

fn set(key: &str) -> String {
    format!(r#"{{"updates":[{{"@type":"setProperty","property":"{key}","value":"1"}}]}}"#)
}

#[tokio::test]
async fn every_answer_with_an_entity_carries_the_tag_of_its_state() {
    let bed = Bed::with_schema().await;
    let loaded = bed.get(SCHEMA).await;
    let (tag, stem) = (
        loaded.tag().to_owned(),
        loaded.tag().trim_end_matches("-1\"").to_owned(),
    );
    assert_eq!(tag, format!("{stem}-1\""));
    assert_eq!(
        bed.put(SCHEMA, NOTHING, &[]).await.tag(),
        tag,
        "what changes nothing keeps the version"
    );
    assert_eq!(bed.put(SCHEMA, &set("a"), &[]).await.tag(), format!("{stem}-2\""));
    assert_eq!(bed.get(SCHEMA).await.tag(), format!("{stem}-2\""));
    let body = Body::from(r#"{"inUse":true}"#);
    let switched = bed.send(Method::PATCH, "/api/metalakes/m", &[], body).await;
    assert!(switched.tag().ends_with("-1\""));
}

#[tokio::test]
async fn a_load_of_a_state_that_is_held_has_no_body() {
    let bed = Bed::with_schema().await;
    let tag = bed.get(SCHEMA).await.tag().to_owned();
    let held = bed
        .send(Method::GET, SCHEMA, &[("if-none-match", &tag)], Body::empty())
        .await;
    assert_eq!(
        (held.status.as_u16(), held.text.as_str(), held.tag()),
        (304, "", tag.as_str())
    );
    bed.put(SCHEMA, &set("a"), &[]).await.assert(200, 0);
    bed.send(Method::GET, SCHEMA, &[("if-none-match", &tag)], Body::empty())
        .await
        .assert(200, 0);
}

#[tokio::test]
async fn a_write_under_an_old_tag_changes_nothing_and_names_both_sides() {
    let bed = Bed::with_schema().await;
    let old = bed.get(SCHEMA).await.tag().to_owned();
    let new = bed
        .put(SCHEMA, &set("a"), &[("if-match", &old)])
        .await
        .tag()
        .to_owned();
    let refused = bed.put(SCHEMA, &set("b"), &[("if-match", &old)]).await;
    let body = refused.assert(412, 1012);
    let quoted = |field: &str| format!("\"{}\"", body[field].as_str().unwrap());
    assert_eq!((quoted("expected"), quoted("actual")), (old.clone(), new.clone()));
    bed.delete(SCHEMA, &[("if-match", &old)]).await.assert(412, 1012);
    assert_eq!(bed.get(SCHEMA).await.tag(), new);
    let either = format!("{old}, {new}");
    bed.delete(SCHEMA, &[("if-match", &either)]).await.assert(200, 0);
}

#[tokio::test]
async fn what_is_pinned_must_be_there() {
    let bed = Bed::with_schema().await;
    let missing = format!("{SCHEMA}x");
    assert_eq!(bed.delete(&missing, &[]).await.assert(200, 0)["dropped"], false);
    for tag in ["*", r#""5-1""#] {
        let pinned = [("if-match", tag)];
        bed.delete(&missing, &pinned)
            .await
            .assert_class(404, 1003, "NoSuchSchemaException");
        bed.put(&missing, NOTHING, &pinned)
            .await
            .assert_class(404, 1003, "NoSuchSchemaException");
        let elsewhere = "/api/metalakes/x/catalogs/c";
        bed.delete(elsewhere, &pinned)
            .await
            .assert_class(404, 1003, "NoSuchCatalogException");
    }
}

#[tokio::test]
async fn a_weak_or_malformed_tag_is_refused_on_every_write() {
    let bed = Bed::with_schema().await;
    for tag in [r#"W/"5-1""#, "5-1", "\"abc\"", ""] {
        bed.put(SCHEMA, NOTHING, &[("if-match", tag)])
            .await
            .assert(400, 1001);
        bed.delete(SCHEMA, &[("if-match", tag)]).await.assert(400, 1001);
    }
}

#[tokio::test]
async fn a_create_may_demand_that_nothing_is_there() {
    let bed = Bed::with_schema().await;
    let create = async |name: &str, condition: &str| {
        let body = Body::from(format!(r#"{{"name":"{name}"}}"#));
        bed.send(
            Method::POST,
            "/api/metalakes",
            &[("if-none-match", condition)],
            body,
        )
        .await
    };
    create("n", "*").await.assert(200, 0);
    create("n", "*")
        .await
        .assert_class(412, 1004, "MetalakeAlreadyExistsException");
    create("o", r#""5-1""#).await.assert(400, 1001);
    bed.post("/api/metalakes", r#"{"name":"n"}"#).await.assert_class(
        409,
        1004,
        "MetalakeAlreadyExistsException",
    );
}

#[tokio::test]
async fn a_version_by_its_alias_has_the_tag_that_it_has_by_its_number() {
    let bed = Bed::with_schema().await;
    bed.post(&format!("{SCHEMA}/models"), r#"{"name":"o"}"#)
        .await
        .assert(200, 0);
    let versions = format!("{SCHEMA}/models/o/versions");
    let linked = bed.post(&versions, r#"{"uri":"u","aliases":["prod"]}"#).await;
    assert_eq!(linked.text, r#"{"code":0}"#);
    assert_eq!(linked.headers["location"], format!("{versions}/0"));
    let by_alias = format!("{SCHEMA}/models/o/aliases/prod");
    let tag = bed.get(&by_alias).await.tag().to_owned();
    assert_eq!(bed.get(&format!("{versions}/0")).await.tag(), tag);
    assert_eq!(linked.tag(), tag);
    bed.delete(&by_alias, &[("if-match", r#""5-1""#)])
        .await
        .assert(412, 1012);
    bed.delete(&by_alias, &[("if-match", &tag)]).await.assert(200, 0);
    assert_eq!(bed.delete(&by_alias, &[]).await.assert(200, 0)["dropped"], false);
    bed.delete(&by_alias, &[("if-match", "*")])
        .await
        .assert_class(404, 1003, "NoSuchModelVersionException");
}

#[tokio::test]
async fn a_keyed_drop_that_found_nothing_never_drops_a_successor() {
    let bed = Bed::with_schema().await;
    let (path, key) = (
        "/api/metalakes/m/catalogs/c/schemas/later",
        [("idempotency-key", "k")],
    );
    let nothing = bed.delete(path, &key).await.assert(200, 0);
    assert_eq!(nothing["dropped"], false);
    bed.post("/api/metalakes/m/catalogs/c/schemas", r#"{"name":"later"}"#)
        .await
        .assert(200, 0);
    let repeated = bed.delete(path, &key).await.assert(200, 0);
    assert_eq!(repeated["dropped"], false);
    bed.get(path).await.assert(200, 0);
}

/// That a level above is missing is told as if the entity were.
#[tokio::test]
async fn a_keyed_drop_below_what_is_missing_never_drops_a_successor() {
    let bed = Bed::with_schema().await;
    let schemas = "/api/metalakes/m/catalogs/c/schemas";
    let (path, key) = (format!("{schemas}/later/models/m1"), [("idempotency-key", "k")]);
    let nothing = bed.delete(&path, &key).await.assert(200, 0);
    assert_eq!(nothing["dropped"], false);
    bed.post(schemas, r#"{"name":"later"}"#).await.assert(200, 0);
    bed.post(&format!("{schemas}/later/models"), r#"{"name":"m1"}"#)
        .await
        .assert(200, 0);
    let repeated = bed.delete(&path, &key).await.assert(200, 0);
    assert_eq!(repeated["dropped"], false);
    bed.get(&path).await.assert(200, 0);
}

/// A repeat is answered before its alias is looked up: the first request may have taken it away.
#[tokio::test]
async fn a_keyed_write_by_alias_is_answered_again_whatever_the_alias_has_become() {
    let bed = Bed::with_schema().await;
    let model = "/api/metalakes/m/catalogs/c/schemas/s/models/m1";
    bed.post("/api/metalakes/m/catalogs/c/schemas/s/models", r#"{"name":"m1"}"#)
        .await
        .assert(200, 0);
    let versions = format!("{model}/versions");
    for body in [r#"{"uri":"u","aliases":["a"]}"#, r#"{"uri":"u","aliases":["b"]}"#] {
        bed.post(&versions, body).await.assert(200, 0);
    }
    let detach = r#"{"updates":[{"@type":"updateAliases","aliasesToAdd":[],"aliasesToRemove":["a"]}]}"#;
    let by_alias = format!("{model}/aliases/a");
    let first = bed.put(&by_alias, detach, &[("idempotency-key", "k1")]).await;
    first.assert(200, 0);
    let again = bed.put(&by_alias, detach, &[("idempotency-key", "k1")]).await;
    again.assert(200, 0);
    assert_eq!((again.tag(), &again.text), (first.tag(), &first.text));

    let by_alias = format!("{model}/aliases/b");
    for _ in 0..2 {
        let dropped = bed.delete(&by_alias, &[("idempotency-key", "k2")]).await;
        assert_eq!(dropped.assert(200, 0)["dropped"], true);
    }
    let nothing = bed.delete(&by_alias, &[("idempotency-key", "k3")]).await;
    assert_eq!(nothing.assert(200, 0)["dropped"], false);
    bed.post(&versions, r#"{"uri":"u","aliases":["b"]}"#)
        .await
        .assert(200, 0);
    let nothing = bed.delete(&by_alias, &[("idempotency-key", "k3")]).await;
    assert_eq!(nothing.assert(200, 0)["dropped"], false);
    bed.get(&by_alias).await.assert(200, 0);
}

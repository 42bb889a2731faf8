//! Databases that were damaged by hand: the audit names each damage and exits with 1, and a schema of
//! another time is not served.

use std::path::Path;

use anyhow::{Result, ensure};
use hyper::Method;
use serde_json::json;
use treeline_tests::{Bed, Tree};

/// A database with a fileset, and a model with two versions, an alias and a few changes; no server runs on it.
async fn sound() -> Result<Bed> {
    let bed = Bed::new()?;
    let mut server = bed.start().await?;
    let mut client = server.client();
    let tree = Tree::plant(&bed, &mut client).await?;
    client.post(Tree::FILESETS, &tree.fileset("f")).await?.ok()?;
    client.post(Tree::MODELS, &json!({"name": "model"})).await?.ok()?;
    for number in 0..2 {
        let version = json!({"uri": "s3://bucket/model", "aliases": [format!("alias{number}")]});
        client
            .post(&format!("{}/model/versions", Tree::MODELS), &version)
            .await?
            .ok()?;
    }
    for value in ["1", "2", "3"] {
        let set = json!({"@type": "setProperty", "property": "a", "value": value});
        client
            .put(&format!("{}/f", Tree::FILESETS), &json!({"updates": [set]}))
            .await?
            .ok()?;
    }
    server.stop().await?;
    bed.check_is_clean().await?;
    Ok(bed)
}

/// Damages a sound database and fails unless the audit says all of `words` about it.
async fn names(sql: &str, words: &[&str]) -> Result<()> {
    let bed = sound().await?;
    bed.damage(sql).await?;
    let outcome = bed.run(&["check"]).await?;
    ensure!(
        outcome.code == Some(1),
        "exit code {:?}:\n{}",
        outcome.code,
        outcome.text()
    );
    for word in words {
        ensure!(
            outcome.stdout.contains(word),
            "nothing of `{word}` in:\n{}",
            outcome.text()
        );
    }
    Ok(())
}

#[tokio::test]
async fn a_live_child_under_a_dropped_parent_is_named() -> Result<()> {
    let sql = "UPDATE entities SET tombstone = id, parent_tombstone = NULL, dropped_at = 1, dropped_by = 'hand' \
               WHERE kind = 'schema' AND id = (SELECT parent_id FROM entities WHERE kind = 'fileset')";
    names(sql, &["INV-1", "`f`"]).await
}

#[tokio::test]
async fn two_live_entities_of_one_name_are_named() -> Result<()> {
    // The unique key is gone with the table that had it.
    let sql = "CREATE TABLE copy AS SELECT * FROM entities; \
               DROP TABLE entities; \
               ALTER TABLE copy RENAME TO entities; \
               INSERT INTO entities SELECT id + 1, kind, parent_id, parent_tombstone, metalake_id, name, version, \
               tombstone, in_use, provider, payload, created_by, created_at, updated_by, updated_at, dropped_by, \
               dropped_at FROM entities WHERE kind = 'fileset'";
    names(sql, &["INV-2", "`f`"]).await
}

#[tokio::test]
async fn an_alias_without_its_version_is_named() -> Result<()> {
    names(
        "DELETE FROM entities WHERE kind = 'model_version' AND name = '1'",
        &["INV-7", "alias1"],
    )
    .await
}

#[tokio::test]
async fn an_alias_of_another_models_version_is_named() -> Result<()> {
    let sql = "UPDATE version_aliases SET model_id = (SELECT id FROM entities WHERE kind = 'fileset') WHERE alias = 'alias0'";
    names(sql, &["INV-7", "alias0"]).await
}

#[tokio::test]
async fn a_gap_in_the_versions_of_an_entity_is_named() -> Result<()> {
    let sql =
        "DELETE FROM feed WHERE version = 3 AND entity_id = (SELECT id FROM entities WHERE kind = 'fileset')";
    names(sql, &["INV-3", "`f`"]).await
}

#[tokio::test]
async fn a_version_ahead_of_the_feed_is_named() -> Result<()> {
    names(
        "UPDATE entities SET version = version + 1 WHERE kind = 'fileset'",
        &["INV-3", "`f`"],
    )
    .await
}

#[tokio::test]
async fn every_damage_of_one_database_is_named_at_once() -> Result<()> {
    let sql = "UPDATE entities SET version = version + 1 WHERE kind = 'fileset'; \
               DELETE FROM entities WHERE kind = 'model_version' AND name = '1'";
    names(sql, &["INV-3", "INV-7"]).await
}

#[tokio::test]
async fn a_schema_newer_than_the_binary_is_not_served() -> Result<()> {
    let bed = sound().await?;
    bed.damage("INSERT INTO schema_migrations VALUES (99, 'later', 0)")
        .await?;
    let before = std::fs::read(bed.database())?;
    for command in [&["serve", "--listen", "127.0.0.1:0"][..], &["migrate"]] {
        let ended = bed.run(command).await?;
        let text = ended.text();
        ensure!(ended.code == Some(1), "{:?}: {text}", ended.code);
        ensure!(
            text.contains("`database`") && text.contains("version 99"),
            "{text}"
        );
    }
    ensure!(std::fs::read(bed.database())? == before, "the file was changed");
    Ok(())
}

#[tokio::test]
async fn a_log_that_cannot_be_written_fails_no_request() -> Result<()> {
    let bed = Bed::new()?;
    let server = bed.start_logging_to(Path::new("/dev/full")).await?;
    let mut client = server.client();
    let metalake = json!({"name": "m"});
    client.post("/api/metalakes", &metalake).await?.ok()?;
    // Something to write into the log: whoever uses a key meets a table that is gone.
    bed.damage("DROP TABLE idempotency").await?;
    let broken = client
        .send(
            Method::POST,
            "/api/metalakes",
            &[("idempotency-key", "k")],
            r#"{"name":"n"}"#,
        )
        .await?;
    ensure!(broken.status == 500, "{}", broken.text);
    client.get("/api/metalakes/m").await?.ok()?;
    Ok(())
}

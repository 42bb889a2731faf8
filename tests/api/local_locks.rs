//! What an operator sees while writers of one name wait for each other.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use treeline_tests::{Bed, Client, Server, Tree, eventually};

const LOCKS: &str = "/api/treeline/locks";

async fn locks(client: &mut Client) -> Result<Value> {
    let answer = client.get(LOCKS).await?.ok()?;
    Ok(answer.json["locks"].clone())
}

fn set(server: &Server, requests: &mut JoinSet<Result<u64>>) {
    let number = requests.len();
    let mut client = server.client();
    let path = format!("{}/s", Tree::SCHEMAS);
    let update = json!({"@type": "setProperty", "property": format!("p{number}"), "value": "1"});
    requests.spawn(async move {
        let answer = client.put(&path, &json!({"updates": [update]})).await?.ok()?;
        Ok(answer.tag()?.version.get().unsigned_abs())
    });
}

/// Another process keeps the database, so the first writer cannot get on, and holds its name. Those behind it wait for
/// their turns, each for a short time only; then they wait for the database too. In the end all are served.
#[tokio::test(flavor = "multi_thread")]
async fn operators_see_who_writes_and_who_waits() -> Result<()> {
    let bed = Bed::new()?;
    let patient = ["--local-locks", "on", "--operation-ms-max", "60000"];
    let server = bed.start_with(&patient).await?;
    let mut operator = server.client();
    Tree::plant(&bed, &mut operator).await?;
    let free = locks(&mut operator).await?;
    ensure!(
        free == json!({"enabled": true, "nameCount": 0, "names": []}),
        "{free}"
    );

    let held = bed.hold().await?;
    let mut requests = JoinSet::new();
    set(&server, &mut requests);
    eventually("somebody holds the name", async || {
        Ok(locks(&mut operator).await?["nameCount"] == 1)
    })
    .await?;
    let mut seen = Value::Null;
    eventually("somebody waits for the name", async || {
        set(&server, &mut requests);
        seen = locks(&mut operator).await?["names"][0].clone();
        Ok(seen["waiterCount"].as_u64() > Some(0))
    })
    .await?;
    let name = json!({"namespace": ["m", "files"], "name": "s"});
    ensure!(seen["kind"] == "schema" && seen["identifier"] == name, "{seen}");
    ensure!(seen["holderCount"] == 1, "{seen}");
    for claim in [&seen["holders"][0], &seen["waiters"][0]] {
        let by = claim["by"].as_str().unwrap_or_default();
        ensure!(
            claim["mode"] == "write" && by.starts_with("alter, request "),
            "{seen}"
        );
        ensure!(claim["ageMs"].is_u64(), "{seen}");
    }

    drop(held);
    let count = requests.len();
    let mut versions = Vec::new();
    while let Some(version) = requests.join_next().await {
        versions.push(version??);
    }
    versions.sort_unstable();
    let expected: Vec<u64> = (2..).take(count).collect();
    ensure!(
        versions == expected,
        "each write has a version of its own: {versions:?}"
    );
    let free = locks(&mut operator).await?;
    ensure!(free["nameCount"] == 0, "{free}");
    let metrics = operator.get("/metrics").await?.text;
    for shown in [
        "treeline_local_locks_total{outcome=\"free\"}",
        "treeline_local_lock_wait_seconds",
    ] {
        ensure!(
            metrics.contains(shown),
            "`{shown}` is not among the metrics:\n{metrics}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn a_server_says_that_its_writes_take_no_turns() -> Result<()> {
    let bed = Bed::new()?;
    let server = bed.start_with(&["--local-locks", "off"]).await?;
    let mut operator = server.client();
    Tree::plant(&bed, &mut operator).await?;
    let off = locks(&mut operator).await?;
    ensure!(
        off == json!({"enabled": false, "nameCount": 0, "names": []}),
        "{off}"
    );
    let metrics = operator.get("/metrics").await?.text;
    ensure!(!metrics.contains("treeline_local_lock"), "{metrics}");
    Ok(())
}

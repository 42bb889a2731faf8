//! Many writers of one row.

use anyhow::{Result, ensure};
use serde_json::json;
use tokio::task::JoinSet;
use treeline_tests::{Bed, Tree};

const WRITERS: usize = 64;

/// 64 clients on two servers each set a property of their own on one schema, all at once. Each reads what the others
/// write, so each must apply its change to what is there then: none is lost, none is refused, and the version tells
/// how many there were (INV-3).
#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_writers_of_one_schema_on_two_servers_lose_nothing() -> Result<()> {
    let bed = Bed::new()?;
    let (one, two) = (bed.start().await?, bed.start().await?);
    Tree::plant(&bed, &mut one.client()).await?;
    let path = format!("{}/s", Tree::SCHEMAS);
    let created = one.client().get(&path).await?.ok()?.tag()?;
    ensure!(
        created.version.get() == 1,
        "a new schema has version {}",
        created.version
    );

    let mut writers = JoinSet::new();
    for (writer, mut client) in Bed::clients(&[&one, &two], WRITERS).into_iter().enumerate() {
        let path = path.clone();
        writers.spawn(async move {
            let update =
                json!({"@type": "setProperty", "property": format!("writer{writer}"), "value": writer.to_string()});
            client.put(&path, &json!({"updates": [update]})).await?.ok()?.tag()
        });
    }
    let mut versions = Vec::new();
    while let Some(tag) = writers.join_next().await {
        versions.push(tag??.version.get());
    }
    versions.sort_unstable();
    let expected: Vec<i64> = (2..).take(WRITERS).collect();
    ensure!(
        versions == expected,
        "each write has a version of its own: {versions:?}"
    );

    for server in [&one, &two] {
        let answer = server.client().get(&path).await?.ok()?;
        ensure!(
            answer.tag()?.version.get() == versions[WRITERS - 1],
            "{}",
            answer.tag()?
        );
        for writer in 0..WRITERS {
            let value = &answer.json["schema"]["properties"][format!("writer{writer}")];
            ensure!(
                *value == json!(writer.to_string()),
                "the property of writer {writer} is {value}"
            );
        }
    }
    bed.check_is_clean().await
}

//! Clients that go away in the middle.

use anyhow::{Result, ensure};
use serde_json::json;
use treeline_tests::{Bed, Connection, Tree, head};

use crate::stand::Stand;

/// Cut off at every place: in the request line, in the headers, after them, in the body, one byte before its end.
#[tokio::test]
async fn a_client_that_disconnects_before_the_end_of_its_request_writes_nothing() -> Result<()> {
    let stand = Stand::new().await?;
    for (method, path, body) in [
        ("POST", "/api/metalakes".to_owned(), json!({"name": "x"})),
        ("POST", Tree::FILESETS.to_owned(), stand.tree.fileset("x")),
        ("POST", Tree::MODELS.to_owned(), json!({"name": "x"})),
        ("PATCH", "/api/metalakes/m".to_owned(), json!({"inUse": false})),
    ] {
        let body = body.to_string();
        let request = head(method, &path, body.len()) + &body;
        for cut in (1..request.len())
            .step_by(7)
            .chain([request.len() - body.len(), request.len() - 1])
        {
            let mut connection = Connection::open(stand.server.address()).await?;
            connection.write(&request[..cut]).await?;
        }
    }
    stand.stands_unharmed().await
}

/// The server may have begun already, so the write may be there or not; but it is there whole or not at all.
#[tokio::test]
async fn a_client_that_disconnects_before_the_answer_leaves_a_whole_write_or_none() -> Result<()> {
    const CLIENTS: usize = 200;
    let bed = Bed::new()?;
    let mut server = bed.start().await?;
    let tree = Tree::plant(&bed, &mut server.client()).await?;
    for client in 0..CLIENTS {
        let body = tree.fileset(&format!("f{client}")).to_string();
        let mut connection = Connection::open(server.address()).await?;
        connection
            .write(head("POST", Tree::FILESETS, body.len()) + &body)
            .await?;
    }
    server.client().get(Tree::FILESETS).await?.ok()?;
    server.stop().await?;
    // What a request that was given up had left to do, the next server's sweep does.
    let mut server = bed.start().await?;
    treeline_tests::eventually("no work is left over", async || {
        Ok(bed.rows().await?.of("reconcile_tasks").next().is_none())
    })
    .await?;
    server.stop().await?;
    bed.check_is_clean().await?;
    let rows = bed.rows().await?;
    let mut live: Vec<String> = rows
        .live("fileset")
        .filter_map(|row| row["name"].as_str())
        .map(str::to_owned)
        .collect();
    live.sort_unstable();
    ensure!(
        live == tree.directories()?,
        "filesets {live:?}, directories {:?}",
        tree.directories()?
    );
    Ok(())
}

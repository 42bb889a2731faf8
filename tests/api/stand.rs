//! A server that is told nonsense, and must be as it was afterwards.

use anyhow::{Context as _, Result, ensure};
use hyper::Method;
use serde_json::json;
use treeline_tests::{Answer, Bed, Client, Rows, Server, Tree};

/// A server with the usual tree and a model `model` in it, and what the database held before the nonsense.
#[derive(Debug)]
pub(crate) struct Stand {
    pub(crate) bed: Bed,
    pub(crate) server: Server,
    pub(crate) client: Client,
    pub(crate) tree: Tree,
    before: Rows,
}

impl Stand {
    pub(crate) async fn new() -> Result<Stand> {
        Stand::on(Bed::new()?, &[]).await
    }

    /// With more arguments for the server.
    pub(crate) async fn on(bed: Bed, arguments: &[&str]) -> Result<Stand> {
        let server = bed.start_with(arguments).await?;
        let mut client = server.client();
        let tree = Tree::plant(&bed, &mut client).await?;
        client.post(Tree::MODELS, &json!({"name": "model"})).await?.ok()?;
        let before = bed.rows().await?;
        Ok(Stand {
            bed,
            server,
            client,
            tree,
            before,
        })
    }

    /// Sends a request whose body is taken as it is.
    pub(crate) async fn send(&mut self, method: &str, path: &str, body: &str) -> Result<Answer> {
        let method = Method::from_bytes(method.as_bytes())?;
        self.client
            .send(method, path, &[], body)
            .await
            .with_context(|| shown(path, body))
    }

    /// Fails unless the request is refused as the client's mistake.
    pub(crate) async fn is_invalid(&mut self, method: &str, path: &str, body: &str) -> Result<()> {
        let answer = self.send(method, path, body).await?;
        answer
            .refused(400, 1001)
            .with_context(|| format!("{method} {}", shown(path, body)))
    }

    /// Fails unless the server still answers, ends cleanly, and the database and the directories are as before.
    pub(crate) async fn stands_unharmed(mut self) -> Result<()> {
        let log = self.server.log_tail();
        ensure!(self.server.is_alive(), "the server is gone:\n{log}");
        self.server.client().get("/api/health").await?.ok()?;
        self.server.stop().await?;
        self.bed.check_is_clean().await?;
        let after = self.bed.rows().await?;
        for table in [
            "entities",
            "feed",
            "locations",
            "version_aliases",
            "reconcile_tasks",
        ] {
            let (before, after): (Vec<_>, Vec<_>) =
                (self.before.of(table).collect(), after.of(table).collect());
            ensure!(
                before == after,
                "the rows of `{table}` changed:\n{before:?}\n{after:?}"
            );
        }
        let directories = self.tree.directories()?;
        ensure!(directories.is_empty(), "directories were made: {directories:?}");
        Ok(())
    }
}

fn shown(path: &str, body: &str) -> String {
    let start = |text: &str| text.chars().take(200).collect::<String>();
    format!("{} {}", start(path), start(body))
}

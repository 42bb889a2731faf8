//! Two servers on one database.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, bail, ensure};
use treeline_tests::{Bed, Hooks, Rows, Server, eventually};

use crate::lab::Backend;
use crate::rows::NotBegun;

/// Long bounds, so that what is held is not given up while a busy machine is slow; and no sweep of its own accord,
/// so that only the row moves anything.
const PATIENT: [&str; 10] = [
    "--operation-ms-max",
    "40000",
    "--request-ms-max",
    "55000",
    "--database-connections-max",
    "6",
    "--database-acquire-ms-max",
    "20000",
    "--sweep-interval-ms",
    "3600000",
];

/// One server of a test build.
pub(crate) struct Node {
    pub(crate) server: Server,
    pub(crate) hooks: Hooks,
}

impl Node {
    /// How often it has run a transaction again so far, after a deadlock most often.
    pub(crate) async fn retries(&self) -> Result<u64> {
        self.count("treeline_transaction_retries_total").await
    }

    /// What a counter has come to, all its labels together; with a label, that one.
    pub(crate) async fn count(&self, metric: &str) -> Result<u64> {
        self.server.count(metric).await
    }

    /// Starts one with this number and more arguments; the last one given counts.
    pub(crate) async fn start(bed: &Bed, number: usize, arguments: &[&str]) -> Result<Node> {
        let (server, hooks) = bed
            .start_with_hooks(&Node::arguments(bed, number, arguments))
            .await?;
        Node::of(server, hooks).await
    }

    /// Starts one and holds it at a point on its way to serve.
    async fn start_held(bed: &Bed, number: usize, point: &str) -> Result<(Server, Hooks)> {
        bed.start_held(point, &Node::arguments(bed, number, &[])).await
    }

    /// Lets it go on, and waits until it can be used.
    async fn let_go((mut server, hooks): (Server, Hooks), point: &str) -> Result<Node> {
        hooks.release(point, Hooks::ANY_NAME).await?;
        server.wait_until_ready().await?;
        Node::of(server, hooks).await
    }

    fn arguments<'a>(bed: &'a Bed, number: usize, arguments: &[&'a str]) -> Vec<&'a str> {
        let mut all = Vec::new();
        if !arguments.contains(&"--database") {
            all.extend(["--database", bed.database_url(number)]);
        }
        let given = |option: &&str| arguments.contains(option);
        for pair in PATIENT.chunks(2).filter(|pair| !given(&pair[0])) {
            all.extend(pair);
        }
        all.extend(arguments);
        all
    }

    /// Waits until a server that serves can be used.
    async fn of(mut server: Server, hooks: Hooks) -> Result<Node> {
        server.hush();
        let node = Node { server, hooks };
        // Every server sweeps once as it starts, and would take the work of a row for what another has left.
        eventually("its first sweep is over", async || {
            Ok(node.count("treeline_sweeps_total").await? > 0)
        })
        .await?;
        Ok(node)
    }
}

/// Two servers, the database that they share, and what was found wrong with it so far.
pub(crate) struct Pair {
    pub(crate) backend: Backend,
    pub(crate) bed: Bed,
    pub(crate) nodes: [Node; 2],
    findings: BTreeSet<String>,
}

impl Pair {
    pub(crate) async fn start(bed: Bed, backend: Backend) -> Result<Pair> {
        // Both find an empty database and make its tables.
        let (first, second) = tokio::try_join!(Node::start(&bed, 0, &[]), Node::start(&bed, 1, &[]))?;
        Ok(Pair::of(bed, backend, [first, second]))
    }

    /// The same in a set order: the first server is about to make the tables, the second comes and has to wait for it.
    pub(crate) async fn start_in_turn(bed: Bed, backend: Backend) -> Result<Pair> {
        let first = Node::start_held(&bed, 0, "migrate.begun")
            .await
            .context(NotBegun)?;
        let second = Node::start_held(&bed, 1, "migrate.waits").await?;
        let first = Node::let_go(first, "migrate.begun").await?;
        let second = Node::let_go(second, "migrate.waits").await?;
        Ok(Pair::of(bed, backend, [first, second]))
    }

    fn of(bed: Bed, backend: Backend, nodes: [Node; 2]) -> Pair {
        Pair {
            backend,
            bed,
            nodes,
            findings: BTreeSet::new(),
        }
    }

    /// Starts again what the row before has killed.
    pub(crate) async fn revive(&mut self) -> Result<()> {
        for (number, node) in self.nodes.iter_mut().enumerate() {
            if !node.server.is_alive() {
                *node = Node::start(&self.bed, number, &[]).await?;
            }
        }
        Ok(())
    }

    /// Ends both, with whatever they are in the middle of.
    pub(crate) async fn kill(&mut self) -> Result<()> {
        for node in &mut self.nodes {
            if node.server.is_alive() {
                node.server.kill().await?;
            }
        }
        Ok(())
    }

    /// Every row of the database.
    pub(crate) async fn rows(&self) -> Result<Rows> {
        self.bed.rows().await
    }

    /// Fails if the audit finds anything that it had not found before, or if the nodes of a cluster hold different rows.
    pub(crate) async fn check(&mut self) -> Result<()> {
        if let Some(rows) = self.bed.difference_of_nodes().await? {
            bail!("the nodes hold different rows:\n{rows}");
        }
        let outcome = self.bed.run(&["check"]).await?;
        if outcome.code == Some(0) {
            return Ok(());
        }
        let findings = outcome.text().lines().map(str::to_owned).collect();
        let new: Vec<String> = (&findings - &self.findings).into_iter().collect();
        self.findings = findings;
        ensure!(
            new.is_empty(),
            "`treeline check` found something:\n{}",
            new.join("\n")
        );
        Ok(())
    }

    /// The ends of both logs.
    pub(crate) fn logs(&self) -> String {
        let tails = self
            .nodes
            .iter()
            .map(|node| format!("log of {}:\n{}", node.server.address(), node.server.log_tail()));
        tails.collect::<Vec<_>>().join("\n")
    }
}

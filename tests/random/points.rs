//! The fault that is a hundred: a server dies at every sync point in turn, in the middle of all the others' requests.
//!
//! The random clients come to the points of creates, updates, renames, drops and removals of directories by themselves.
//! Beside them one more client links versions to a model of its own, each under an idempotency key, and repeats each
//! request on the other server until it is answered: in the end there must be as many versions as keys.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use hyper::Method;
use serde_json::json;
use treeline_tests::{Action, Server, eventually};

use crate::fault::Fault;
use crate::fleet::{Addresses, Fleet};
use crate::log::Log;

/// Every point that ordinary requests come to. Few ever meet a removal that is somebody else's
/// (`purge.waits`), and none a directory that cannot be made (`undo.begun`) or one that a repeat waits for (`create.waits`).
const POINTS: [&str; 23] = [
    "create.resolved",
    "create.parent_locked",
    "create.inserted",
    "create.committed",
    "update.read",
    "update.row_written",
    "update.written",
    "update.reread",
    "rename.resolved",
    "rename.parents_locked",
    "rename.written",
    "drop.resolved",
    "drop.locked",
    "drop.allowed",
    "drop.children_checked",
    "drop.written",
    "drop.committed",
    "purge.claimed",
    "purge.removed",
    "idempotency.looked_up",
    "link.resolved",
    "link.model_locked",
    "link.written",
];

/// Whatever has the point.
const ANY_NAME: &str = "*";

/// Somebody comes to every point within this, or the fault could not be made.
const REACHED_WITHIN: Duration = Duration::from_secs(20);

/// Kills the servers at one point after the other. Clients of one that has died go on with the other, so that is the
/// next to die. Each successor has to write in time; what has not is answered by a name, for the summary.
pub(crate) async fn die_at_each(fleet: &mut Fleet<'_>, log: &Log) -> Result<Vec<&'static str>> {
    let linker = Linker::begin(fleet).await?;
    let mut amiss = Vec::new();
    for (number, point) in POINTS.into_iter().enumerate() {
        let (victim, from) = (number % fleet.count(), log.now());
        // Somebody may come to the point before the answer is out, and then there is none.
        let armed = fleet.hooks(victim)?.arm(point, ANY_NAME, Action::Exit).await;
        let addresses = fleet.addresses();
        let dying = async { tokio::time::timeout(REACHED_WITHIN, fleet.has_died(victim)).await };
        let (died, linked) = tokio::join!(dying, linker.link(&addresses, victim, number));
        let Ok(died) = died else {
            armed?;
            bail!("nobody came to {point}");
        };
        died?;
        linked.with_context(|| format!("a link while a server died at {point}"))?;
        fleet.revive(victim, from).await?;
        if !linker.sets(fleet.server(victim), point).await? {
            amiss.push("late-successor");
        }
    }
    linker.has_linked(&fleet.addresses(), POINTS.len()).await?;
    amiss.dedup();
    Ok(amiss)
}

/// Links versions to one model, each once.
struct Linker {
    versions: String,
}

impl Linker {
    /// Makes the model, in a metalake that is nobody else's.
    async fn begin(fleet: &Fleet<'_>) -> Result<Linker> {
        let (_, mut client) = fleet.addresses().client(0);
        let mut path = "/api/metalakes".to_owned();
        for (below, body) in [
            ("catalogs", json!({"name": "links"})),
            ("schemas", json!({"name": "links", "type": "model"})),
            ("models", json!({"name": "links"})),
            ("versions", json!({"name": "links"})),
        ] {
            client.post(&path, &body).await?.ok()?;
            path = format!("{path}/links/{below}");
        }
        Ok(Linker { versions: path })
    }

    /// Asks one server and then the other, under one key, until one of them answers.
    async fn link(&self, addresses: &Addresses, first: usize, number: usize) -> Result<()> {
        let key = format!("link {number}");
        let body = json!({"uri": format!("s3://bucket/{number}"), "aliases": []}).to_string();
        let mut server = first;
        eventually("the link is answered", async || {
            let (_, mut client) = addresses.client(server);
            server += 1;
            let headers = [("idempotency-key", key.as_str())];
            match client.send(Method::POST, &self.versions, &headers, &body).await {
                Ok(answer) if answer.status == 200 => Ok(true),
                // It is not up yet, or waits for what a dead one has left.
                Ok(answer) if matches!(answer.status, 409 | 503) => Ok(false),
                Ok(answer) => bail!("answered {}: {}", answer.status, answer.text),
                Err(_) => Ok(false),
            }
        })
        .await
    }

    /// Whether a server sets a property of the model in the time that it has after a fault.
    async fn sets(&self, server: &Server, point: &str) -> Result<bool> {
        let within = Duration::from_millis(Fault::ServerDiesAtPoints.recovered_ms_max());
        let model = self.versions.trim_end_matches("/versions");
        let change = json!({"@type": "setProperty", "property": "died at", "value": point});
        let updates = json!({ "updates": [change] });
        let mut client = server.client();
        let written = eventually("a successor writes", async || {
            Ok(client.put(model, &updates).await?.status == 200)
        });
        let written = tokio::time::timeout(within, written).await;
        written.map_or(Ok(false), |written| written.map(|()| true))
    }

    /// There is a version for each key, and no other.
    async fn has_linked(&self, addresses: &Addresses, keys: usize) -> Result<()> {
        let (_, mut client) = addresses.client(0);
        let listed = client.get(&self.versions).await?.ok()?;
        let expected: Vec<usize> = (0..keys).collect();
        ensure!(
            listed.json["versions"] == json!(expected),
            "{keys} keys have linked {}",
            listed.json["versions"]
        );
        Ok(())
    }
}

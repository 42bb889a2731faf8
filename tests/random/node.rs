//! Faults of one node of a cluster: it dies, or it loses the others. Its server has to say "not now" meanwhile, and the
//! other node has to go on alone.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use tokio::time::sleep;
use treeline_tests::{Server, eventually};

use crate::fault::{SILENCE, address, container, docker, start_at};
use crate::fleet::Fleet;

/// Names the network in which the nodes replicate.
const NETWORK_VARIABLE: &str = "TREELINE_TEST_CLUSTER_NETWORK";

/// The server whose node the faults befall, and one at the other node.
pub(crate) const STRUCK: usize = 1;
const OTHER: usize = 0;

/// The node's process dies, and is started again after a while; what it has missed it gets from the other.
pub(crate) async fn kill(fleet: &Fleet<'_>) -> Result<()> {
    let node = container()?;
    let before = address(&node).await?;
    docker(&["kill", &node]).await?;
    sleep(SILENCE).await;
    let outcome = is_one_short(fleet, "killed").await;
    start_at(&before, &node).await?;
    is_synced(&node).await?;
    outcome
}

/// The node is alone, and the lighter half: it must not write, and not answer from what it had.
pub(crate) async fn cut_off(fleet: &Fleet<'_>) -> Result<()> {
    let network = std::env::var(NETWORK_VARIABLE).with_context(|| {
        format!("{NETWORK_VARIABLE} names no network; `cargo xtask itest --faults` sets it")
    })?;
    let node = container()?;
    let format = format!("{{{{(index .NetworkSettings.Networks \"{network}\").IPAddress}}}}");
    let address = docker(&["inspect", "--format", &format, &node]).await?;
    docker(&["network", "disconnect", &network, &node]).await?;
    // The nodes need some seconds to miss each other, and are one database until then.
    sleep(SILENCE).await;
    let outcome = is_one_short(fleet, "cut_off").await;
    sleep(SILENCE).await;
    docker(&["network", "connect", "--ip", &address, &network, &node]).await?;
    is_synced(&node).await?;
    outcome
}

/// The server at the node that is away refuses to read and to write, and the other does both.
async fn is_one_short(fleet: &Fleet<'_>, name: &str) -> Result<()> {
    refuses(fleet.server(STRUCK)).await?;
    let mut other = fleet.server(OTHER).client();
    // It may have lost a connection as well, or wait for the node to be given up.
    eventually("the other node goes on", async || {
        let metalake = json!({"name": format!("while_{name}_{:08x}", fastrand::u32(..))});
        Ok(other.post("/api/metalakes", &metalake).await?.status == 200)
    })
    .await
}

/// A write that was on its way when the node lost the others may still be told to come again (409). None succeeds.
async fn refuses(server: &Server) -> Result<()> {
    let mut client = server.client();
    eventually("the server says that it cannot serve", async || {
        let ready = client.get("/api/health/ready").await?;
        let read = client.get("/api/metalakes").await?;
        let written = client.post("/api/metalakes", &json!({"name": "never"})).await?;
        for answer in [&ready, &read, &written] {
            ensure!(
                answer.status != 200,
                "a server without its node answers {}",
                answer.text
            );
        }
        let waits = read.headers.contains_key("retry-after") && written.headers.contains_key("retry-after");
        Ok(waits && [ready, read, written].iter().all(|answer| answer.status == 503))
    })
    .await
}

async fn is_synced(node: &str) -> Result<()> {
    const STATE: &str = "-eSHOW STATUS LIKE 'wsrep_local_state_comment'";
    let ask = [
        "exec",
        node,
        "mariadb",
        "-h127.0.0.1",
        "-utreeline",
        "-ptreeline",
        STATE,
    ];
    eventually("the node has caught up", async || {
        Ok(docker(&ask).await.is_ok_and(|said| said.contains("Synced")))
    })
    .await
}

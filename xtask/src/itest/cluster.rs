//! A cluster of two MariaDB nodes that both accept writes (Galera), each in a container of its own.
//!
//! They stand in two networks: in the one in which servers reach their node, and in one of their own, in which they
//! replicate. So a node can be cut off from the other while its server still reaches it. The first has the greater weight:
//! it goes on alone, and the second without it is a minority.

use anyhow::{Result, ensure};

use super::node::Node;
use super::{GALERA, Plan};
use crate::containers::{Network, USUAL_NETWORK};
use crate::images;

/// What every node is told. Row images and interleaved numbers are what Galera needs. The wait is that of its appliers,
/// for which the whole cluster waits; each session of a server sets its own.
const SETTINGS: [&str; 7] = [
    "--wsrep-on=ON",
    "--wsrep-provider=/usr/lib/galera/libgalera_smm.so",
    "--wsrep-cluster-name=treeline",
    "--wsrep-sst-method=rsync",
    "--binlog-format=ROW",
    "--innodb-autoinc-lock-mode=2",
    "--innodb-lock-wait-timeout=2",
];

/// The last part of the nodes' addresses in their own network.
const NODES: [u8; 2] = [11, 12];

/// Starts both, the second when the first can be joined. `inner` is their own network, `outer` that of the servers.
pub(super) fn start(image: &str, inner: &Network, outer: Option<&Network>, plan: &Plan) -> Result<Vec<Node>> {
    ensure!(
        image.starts_with(images::REPOSITORY),
        "{GALERA} runs in the image of this repository only: leave out {}",
        images::SOURCE_VARIABLE
    );
    let outer = outer.map_or(USUAL_NETWORK, |network| &network.name);
    let mut nodes: Vec<Node> = Vec::new();
    for last in NODES {
        let address = inner.address(last)?;
        let mut own: Vec<String> = SETTINGS.iter().map(|setting| (*setting).to_owned()).collect();
        own.push(format!("--wsrep-node-name=node{last}"));
        own.push(format!("--wsrep-node-address={address}"));
        if nodes.is_empty() {
            own.push("--wsrep-cluster-address=gcomm://".to_owned());
            own.push("--wsrep-new-cluster".to_owned());
            own.push("--wsrep-provider-options=pc.weight=2".to_owned());
        } else {
            own.push(format!(
                "--wsrep-cluster-address=gcomm://{}",
                inner.address(NODES[0])?
            ));
        }
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        let options = ["--network", &inner.name, "--ip", &address];
        let container = Node::container(GALERA, image, &options, &own, plan)?;
        container.join(outer)?;
        let node = Node::of(GALERA, image, container, outer)?;
        node.wait_until_ready()?;
        nodes.push(node);
    }
    Ok(nodes)
}

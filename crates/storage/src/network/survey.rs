//! What is found out about a database server before anything rests on it.

use std::sync::Arc;

use super::{Connection, Connector, Flavour, Network, NetworkOptions};
use crate::failure::Failure;
use crate::sql::check::PROBE_WRITE;
use crate::sql::render;

/// Refuses a pooler that gives each transaction another session: prepared statements, settings and the lock of a
/// migration would go astray. Two sessions that are open at once show it, since there they can be one.
pub(crate) async fn refuse_pooler(network: &Network, first: &mut dyn Connection) -> Result<(), Failure> {
    if !matches!(network.options().connector, Connector::Postgres(_)) {
        return Ok(());
    }
    let backend: Arc<str> = Arc::from("SELECT pg_backend_pid()");
    let ours = number(first, &backend).await?;
    let mut second = network.look().await?;
    let theirs = number(&mut second, &backend).await?;
    if ours == theirs {
        return Err(Failure::Refused(
            "a pooler in transaction mode stands before it; it must pool sessions".to_owned(),
        ));
    }
    Ok(())
}

/// Tries to write and changes nothing, so that a standby or an account that may only read is found out at start.
pub(crate) async fn require_writable(
    options: &NetworkOptions,
    connection: &mut dyn Connection,
) -> Result<(), Failure> {
    let probe = Arc::from(render(PROBE_WRITE.text, options.connector.dialect()));
    connection.session().run(&probe, &[]).await.map(drop)
}

/// Logs what an operator may want to know of the server. MySQL checks foreign keys in its storage engine or above it;
/// above it they are no help against a drop that waits, and the row locks hold alone (design §4.1).
pub(crate) async fn log(options: &NetworkOptions, connection: &mut dyn Connection) -> Result<(), Failure> {
    let session = connection.session();
    let version = session.rows(&Arc::from("SELECT VERSION()"), &[]).await?.pop();
    let version = version
        .map(|mut row| row.text(0))
        .transpose()?
        .unwrap_or_default();
    if matches!(options.connector, Connector::Postgres(_)) {
        tracing::info!(version, "the database server");
        return Ok(());
    }
    let variable = Arc::from("SHOW VARIABLES LIKE 'innodb_native_foreign_keys'");
    let native = session.rows(&variable, &[]).await?.pop();
    let native = native.map(|mut row| row.text(1)).transpose()?;
    // Servers without the variable have only ever had the engine's own.
    let native_foreign_keys = native.as_deref().unwrap_or("ON");
    let cluster_node = cluster_node(options, connection).await?;
    if cluster_node.is_some() {
        warn_of_its_settings(connection).await?;
    }
    tracing::info!(version, native_foreign_keys, cluster_node, "the database server");
    Ok(())
}

/// Appliers that work side by side meet at foreign keys: the insert of a child fails while its parent is being changed,
/// and the node leaves the cluster. And now and then MariaDB fails to end a transaction that is in an applier's way; it
/// tries again when the applier's wait for the row is over, and the whole cluster stands still until then (MDEV-24966).
async fn warn_of_its_settings(connection: &mut dyn Connection) -> Result<(), Failure> {
    const LOCK_WAIT_SECONDS_MAX: i64 = 5;
    let variable = Arc::from("SELECT CAST(@@wsrep_slave_threads AS SIGNED)");
    if number(connection, &variable).await? > 1 {
        tracing::warn!(
            "the node may fail to apply changes of others and leave: set its wsrep_slave_threads to 1"
        );
    }
    let variable = Arc::from("SELECT CAST(@@GLOBAL.innodb_lock_wait_timeout AS SIGNED)");
    let seconds = number(connection, &variable).await?;
    if seconds > LOCK_WAIT_SECONDS_MAX {
        tracing::warn!(
            seconds,
            "the cluster may stand still for the node's innodb_lock_wait_timeout: set it to {LOCK_WAIT_SECONDS_MAX} s or less"
        );
    }
    Ok(())
}

/// What the cluster knows this node by, where the database is one of several that all accept writes. `None` elsewhere.
pub(crate) async fn cluster_node(
    options: &NetworkOptions,
    connection: &mut dyn Connection,
) -> Result<Option<String>, Failure> {
    let session = connection.session();
    if matches!(options.connector, Connector::Postgres(_)) || Flavour::of(session).await? != Flavour::Galera {
        return Ok(None);
    }
    let node = Arc::from("SELECT LEFT(CONCAT(@@wsrep_node_name, ' (', @@hostname, ':', @@port, ')'), 256)");
    let rows = session.rows(&node, &[]).await?.pop();
    rows.map(|mut row| row.text(0)).transpose()
}

async fn number(connection: &mut dyn Connection, sql: &Arc<str>) -> Result<i64, Failure> {
    let rows = connection.session().rows(sql, &[]).await?;
    rows.first()
        .map(|row| row.int(0))
        .transpose()
        .map(Option::unwrap_or_default)
}

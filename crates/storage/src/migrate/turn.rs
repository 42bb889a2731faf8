//! Whose turn it is to migrate a cluster of database servers that all accept writes.
//!
//! A lock that a session holds is known at its own node only, and the statements of a migration commit one by one. So
//! who migrates a cluster also leaves a row, with the name of its node in it, by a strict insert: two nodes that insert
//! it at once meet at certification, and one is refused. The row does not go with a process that dies. But whoever comes
//! next at the same node has that node's session lock, so the one before it is gone, and the row with it is taken over;
//! at any other node nobody can know, and an operator is asked.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::dialect::mysql::MYSQL;
use crate::failure::Failure;
use crate::hooks::{mutant, sync_point};
use crate::network::Connection;
use crate::sql::check::{FIND_MIGRATING_NODE, FORGET_MIGRATING_NODE, RECORD_MIGRATION};
use crate::sql::render;

/// No migration has this version, so a row with it says no more than who migrates.
const NO_VERSION: i64 = 0;

/// As long as others wait for the lock of a session.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(60);

const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// Waits until this node may migrate. The caller holds the node's own lock, and looks again at what is left to do.
pub(crate) async fn claim(connection: &mut dyn Connection, node: &str) -> Result<(), Failure> {
    claim_within(connection, node, WAIT_MAX).await
}

async fn claim_within(
    connection: &mut dyn Connection,
    node: &str,
    wait_max: Duration,
) -> Result<(), Failure> {
    if mutant("m-migration-claim") {
        return Ok(());
    }
    let claim = Arc::from(render(RECORD_MIGRATION.text, &MYSQL));
    let look = Arc::from(render(FIND_MIGRATING_NODE.text, &MYSQL));
    let begun = Instant::now();
    let mut told = false;
    loop {
        let refused = match connection
            .session()
            .run(&claim, &[NO_VERSION.into(), node.into()])
            .await
        {
            Ok(_) => return Ok(()),
            // Another node's row, or another node that was committing its own.
            Err(refused @ (Failure::Unique(_) | Failure::Transient(..))) => refused,
            Err(failure) => return Err(failure),
        };
        let found = connection.session().rows(&look, &[]).await?.pop();
        let holder = found.map(|mut row| row.text(0)).transpose()?;
        if holder.as_deref() == Some(node) {
            return Ok(());
        }
        if begun.elapsed() > wait_max {
            return Err(waited_in_vain(holder, &refused));
        }
        if let Some(holder) = holder {
            if !told {
                tracing::info!(holder, "waiting for another node to migrate the database");
                told = true;
            }
            sync_point!("migrate.waits", node);
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}

fn waited_in_vain(holder: Option<String>, refused: &Failure) -> Failure {
    Failure::Unavailable(match holder {
        Some(holder) => format!(
            "it is being migrated at its node {holder}, or a process that did so has died; if it has, run `treeline \
             migrate` at that node, or delete the row of version {NO_VERSION} from schema_migrations"
        ),
        None => {
            format!("it does not let this node say that it migrates ({refused:?}); start this process again")
        }
    })
}

/// Lets the next one migrate. If that fails, the next process at this node takes the claim over.
pub(crate) async fn release(connection: &mut dyn Connection, node: &str) {
    let release = Arc::from(render(FORGET_MIGRATING_NODE.text, &MYSQL));
    if let Err(failure) = connection.session().run(&release, &[node.into()]).await {
        tracing::warn!(
            ?failure,
            "the row that says who migrates stays; the next process at this node removes it"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Cause;
    use crate::network::fake::Fake;

    /// Others that are in the way and leave no row: a stranger's lock on the table, a node that is far behind.
    #[tokio::test]
    async fn a_claim_that_is_refused_without_a_holder_waits_between_looks_and_not_for_ever() {
        const WAIT: Duration = Duration::from_millis(250);
        let mut node = Fake {
            refuses: Some(Failure::Transient(
                Cause::LockTimeout,
                "Lock wait timeout exceeded".to_owned(),
            )),
            ..Fake::default()
        };
        let told = claim_within(&mut node, "node", WAIT).await.unwrap_err();
        assert!(
            matches!(&told, Failure::Unavailable(reason) if reason.contains("Lock wait timeout")),
            "{told:?}"
        );
        // A claim and a look each time.
        let rounds = node.asked.len().div_ceil(2);
        assert!(rounds <= 4, "{rounds} rounds");
    }
}

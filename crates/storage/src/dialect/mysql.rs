//! MySQL and MariaDB, which understand the same statements.
//!
//! Every locking select and every update by id goes through the primary key by force: MariaDB would otherwise lock
//! the `(id, tombstone)` key first and deadlock, and a lock through a covering secondary index does not conflict with
//! a drop's. MariaDB has no `FOR SHARE`, so the shared lock has its older name.

use sqlx::mysql::MySqlDatabaseError;

use super::{Dialect, Placeholder};
use crate::failure::{Cause, Clash, Failure};

pub(crate) static MYSQL: Dialect = Dialect {
    name: "mysql",
    placeholder: Placeholder::Question,
    // SYSDATE and not NOW: the moment of the row, not of the statement's begin.
    now_ms: "CAST(UNIX_TIMESTAMP(SYSDATE(3)) * 1000 AS SIGNED)",
    statement_ms: "CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)",
    lock_shared: "LOCK IN SHARE MODE",
    lock_alter: "FOR UPDATE",
    lock_drop: "FOR UPDATE",
    by_id: "FORCE INDEX (PRIMARY)",
    fuses: false,
    begin_write: "START TRANSACTION",
    begin_snapshot: "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; \
                     START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
    count_blocked: "SELECT COUNT(*) FROM information_schema.innodb_trx t \
                    JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id AND p.db = DATABASE() \
                    WHERE t.trx_state = 'LOCK WAIT'",
};

/// Which rule an error of the server stands for.
pub(crate) fn classify(error: &sqlx::Error) -> Failure {
    let sqlx::Error::Database(database) = error else {
        return super::classify_driver(error);
    };
    let text = error.to_string();
    let Some(server) = database.try_downcast_ref::<MySqlDatabaseError>() else {
        return Failure::Broken(text);
    };
    match server.number() {
        1062 => Failure::Unique(clash(server.message())),
        1451 | 1452 => Failure::Liveness,
        // On a cluster: refused by certification.
        1213 => Failure::counted(Cause::Deadlock, text),
        1205 => Failure::counted(Cause::LockTimeout, text),
        1969 | 3024 => Failure::counted(Cause::StatementTimeout, text),
        // A savepoint that is gone has gone with its transaction (1305, `GALERA_FRAME`). A table was changed by a migration,
        // or read anew by a node that has come back (1412, 1615).
        1020 | 1305 | 1412 | 1615 => Failure::counted(Cause::Serialization, text),
        // The server goes down, has ended this session, cannot talk to it, or has too many of them at this moment, in all or
        // of this account (1226). Or it was asked to commit and failed (1180) or was interrupted (1317), as a node of a
        // cluster does that has just lost the others: they may have got the change.
        1040 | 1053 | 1077 | 1080 | 1158..=1161 | 1180 | 1203 | 1226 | 1317 | 1927 | 3169 | 4031 => {
            Failure::Disconnected(text)
        }
        // By an account that may only read.
        1142 => Failure::Unavailable(read_only(&text)),
        // By a primary that was made a replica and keeps its sessions, as before a planned switchover.
        1290 | 1792 | 1836 => Failure::ReadOnly(read_only(&text)),
        // Among them a node of a cluster that is without the others, or has not caught up with them (1047).
        // A disk is full where the engine could not say so itself (3, 1026, 1030).
        3 | 1021 | 1026 | 1030 | 1037 | 1041 | 1047 | 1114 => Failure::Unavailable(text),
        _ => Failure::Broken(text),
    }
}

fn read_only(text: &str) -> String {
    format!("it is read-only ({text}); name its primary, or let this account write")
}

/// The text ends with `for key 'entities_name'`, on MySQL with the table in front of the key; what stands before is
/// the user's value, so it is read from the right.
fn clash(text: &str) -> Clash {
    let key = text
        .trim_end_matches('\'')
        .rsplit('\'')
        .next()
        .unwrap_or_default();
    match key.rsplit('.').next().unwrap_or_default() {
        "entities_name" => Clash::Name,
        "PRIMARY" | "entities_alive" => Clash::Id,
        "version_aliases_alias" => Clash::Alias,
        "idempotency_key" => Clash::Key,
        _ => Clash::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clash_is_read_from_the_right_whatever_the_value_says() {
        let mysql = "Duplicate entry '1-schema-x' for key 'PRIMARY'-0' for key 'entities.entities_name'";
        let mariadb = "Duplicate entry '12' for key 'PRIMARY'";
        assert_eq!(clash(mysql), Clash::Name);
        assert_eq!(clash(mariadb), Clash::Id);
        assert_eq!(
            clash("Duplicate entry '1-a' for key 'version_aliases_alias'"),
            Clash::Alias
        );
    }
}

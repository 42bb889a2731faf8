//! How a transaction that writes begins and ends, on each kind of database server.

use crate::dialect::{Dialect, mysql, postgres};

/// What stands around the statements of a transaction that writes.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) begin: &'static str,
    /// Fails if the transaction that was begun is there no more, in whatever way it has ended.
    pub(crate) require_intact: Option<&'static str>,
    pub(crate) commit: &'static str,
    pub(crate) roll_back: &'static str,
    /// Names the last transaction of this session that the database has taken, where it must be asked.
    pub(crate) last_written: Option<&'static str>,
}

impl Frame {
    const fn plain(dialect: &Dialect) -> Frame {
        Frame {
            begin: dialect.begin_write,
            require_intact: None,
            commit: "COMMIT",
            roll_back: "ROLLBACK",
            last_written: None,
        }
    }
}

pub(super) static POSTGRES_FRAME: Frame = Frame::plain(&postgres::POSTGRES);
pub(super) static MYSQL_FRAME: Frame = Frame::plain(&mysql::MYSQL);

/// A node of a cluster that ends a transaction in favour of another node's does not always say so to the statement that
/// comes next, which then runs as if it were the first; nor to a COMMIT, which then commits nothing and says that it has
/// (ADR 0013). So what comes next must not be committed by itself; a savepoint, which lives as long as its
/// transaction, must still be there before the commit; and after it the session must have written something new.
pub(super) static GALERA_FRAME: Frame = Frame {
    begin: "SET autocommit = 0; START TRANSACTION; SAVEPOINT begun",
    require_intact: Some("RELEASE SAVEPOINT begun"),
    commit: "COMMIT; SET autocommit = 1",
    roll_back: "ROLLBACK; SET autocommit = 1",
    // It is about this session alone, so it need not wait for what other nodes have written.
    last_written: Some(
        "SET STATEMENT wsrep_sync_wait = 0 FOR SELECT CONVERT(WSREP_LAST_WRITTEN_GTID() USING utf8mb4)",
    ),
};

//! The narrow waist between the protocols and the drivers: run a statement, read rows. Nothing else.

use std::sync::Arc;

use async_trait::async_trait;

use crate::failure::Failure;
use crate::value::{Row, Value};

/// One connection inside one transaction (or one read). The SQLite session's futures are ready at once.
#[async_trait]
pub(crate) trait Session: Send {
    /// Runs a rendered statement and answers how many rows it matched.
    async fn run(&mut self, sql: &Arc<str>, values: &[Value]) -> Result<u64, Failure>;

    /// Runs a rendered statement and answers its rows.
    async fn rows(&mut self, sql: &Arc<str>, values: &[Value]) -> Result<Vec<Row>, Failure>;
}

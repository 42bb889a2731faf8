//! The feed's writing half: one row for each committed change of an entity, in the change's own transaction (P12).

use treeline_core::{EntityId, Kind, Operation, Path, Version};

use crate::context::WriteContext;
use crate::failure::Failure;
use crate::sql;
use crate::transaction::Transaction;

/// What a feed row says.
pub(crate) struct Entry<'a> {
    pub(crate) id: EntityId,
    pub(crate) kind: Kind,
    pub(crate) names: &'a [&'a str],
    pub(crate) operation: Operation,
    pub(crate) version: Version,
}

/// Appends a row. Called after the row locks, so that the order of `seq` is the order of commits for each entity.
pub(crate) async fn append(
    transaction: &mut Transaction<'_>,
    context: &WriteContext,
    entry: Entry<'_>,
) -> Result<(), Failure> {
    let path = path_text(entry.names)?;
    let values = [
        entry.id.into(),
        entry.kind.as_str().into(),
        path.into(),
        entry.operation.as_str().into(),
        entry.version.into(),
        context.principal.as_str().into(),
        context.feed_id().into(),
    ];
    #[cfg(feature = "test-hooks")]
    if crate::hooks::mutant("m-feed-tx") {
        return transaction.run_beside(&sql::feed::INSERT_FEED, &values).await;
    }
    transaction.run_one(&sql::feed::INSERT_FEED, &values).await
}

/// A path, as the feed keeps it.
pub(crate) fn path_text(names: &[&str]) -> Result<String, Failure> {
    serde_json::to_string(names).map_err(|error| Failure::Broken(format!("a path for the feed: {error}")))
}

/// The names of a path.
pub(crate) fn names(path: &Path) -> Vec<&str> {
    path.names().iter().map(treeline_core::Name::as_str).collect()
}

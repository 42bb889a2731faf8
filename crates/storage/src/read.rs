//! Reads of what hangs under a row, and the purge of what is past retention.

use async_trait::async_trait;
use treeline_core::{EntityId, Kind, Name};

use crate::failure::Failure;
use crate::record::{self, Record};
use crate::sql::{self, entity, side};
use crate::transaction::{Transaction, Work};
use crate::value::Value;

/// The names of one kind under a row; no payload is read.
pub(crate) struct ListNames {
    pub(crate) parent: EntityId,
    pub(crate) kind: Kind,
}

#[async_trait]
impl Work for ListNames {
    type Output = Vec<Name>;
    const NAME: &'static str = "list_names";

    async fn run(&self, transaction: &mut Transaction<'_>) -> Result<Vec<Name>, Failure> {
        let values = [self.parent.into(), self.kind.as_str().into()];
        let rows = transaction.rows(&entity::LIST_NAMES, &values).await?;
        rows.into_iter()
            .map(|mut row| record::name(row.text(0)?))
            .collect()
    }
}

/// The rows of one kind under a row.
pub(crate) struct ListRecords {
    pub(crate) parent: EntityId,
    pub(crate) kind: Kind,
}

#[async_trait]
impl Work for ListRecords {
    type Output = Vec<Record>;
    const NAME: &'static str = "list";

    async fn run(&self, transaction: &mut Transaction<'_>) -> Result<Vec<Record>, Failure> {
        let values = [self.parent.into(), self.kind.as_str().into()];
        let rows = transaction.rows(&entity::LIST_ENTITIES, &values).await?;
        rows.into_iter().map(Record::decode).collect()
    }
}

/// The number of the version that an alias names now.
pub(crate) struct FindAlias {
    pub(crate) model: EntityId,
    pub(crate) alias: treeline_core::Alias,
}

#[async_trait]
impl Work for FindAlias {
    type Output = Option<Name>;
    const NAME: &'static str = "find_alias";

    async fn run(&self, transaction: &mut Transaction<'_>) -> Result<Option<Name>, Failure> {
        let values = [self.model.into(), self.alias.as_str().into()];
        let row = transaction.row(&side::FIND_ALIAS, &values).await?;
        row.map(|mut row| record::name(row.text(0)?)).transpose()
    }
}

/// Purges one bounded batch of rows that were dropped longer ago than the retention. Their ids are never used again.
pub(crate) struct Purge {
    pub(crate) retention_ms: i64,
}

#[async_trait]
impl Work for Purge {
    type Output = u64;
    const NAME: &'static str = "purge";

    async fn run(&self, transaction: &mut Transaction<'_>) -> Result<u64, Failure> {
        let rows = transaction
            .rows(&entity::FIND_PURGEABLE, &[self.retention_ms.into()])
            .await?;
        let ids = rows
            .iter()
            .map(|row| record::entity_id(row.int(0)?))
            .collect::<Result<Vec<_>, Failure>>()?;
        if ids.is_empty() {
            return Ok(0);
        }
        let values: Vec<Value> = sql::ids(&ids).collect();
        transaction.run(&entity::PURGE_ENTITIES, &values).await
    }
}

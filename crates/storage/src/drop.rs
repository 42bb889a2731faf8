//! P3, drop.
//!
//! 1. The row was resolved before; the drop acts on that id under that name, never on a successor of the name.
//! 2. Lock the row exclusively by id, re-check its parent and its name, check what the client pinned and its flag.
//! 3. Only then look for children, in a statement of its own. Any child of any kind refuses a drop without cascade.
//! 4. Cascade: level by level from the top, a plain select of the ids, then their locks by id. A create below waits
//!    for the lock of its parent, or was there before it and is found.
//! 5. From the bottom up: detach side rows, mark the level with one statement, and compare the counts; any
//!    difference rolls back and runs again.
//! 6. One feed row for each entity; tasks for the directories that go along.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use treeline_core::{EntityId, EntityTag, Error, Kind, Operation, Version};

use crate::context::{Precondition, WriteContext};
use crate::failure::Failure;
use crate::feed::{self, Entry};
use crate::hooks::{mutant, sync_point};
use crate::ids::Ids;
use crate::lock::{self, LockedRow};
use crate::record;
use crate::resolve::Resolved;
use crate::side;
use crate::sql::{self, IDS_MAX, entity};
use crate::tasks::{self, NewTask};
use crate::transaction::{Proof, Transaction, Work};
use crate::value::Value;

/// What must hold for a drop, and what goes along.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DropRule {
    /// Drops everything below too; otherwise a live child refuses.
    pub cascade: bool,
    /// Refuses what is enabled.
    pub require_disabled: bool,
    /// Directories to remove afterwards, if they are empty by then.
    pub prune: Vec<String>,
}

/// One drop.
pub(crate) struct Drop {
    pub(crate) context: WriteContext,
    pub(crate) ids: Arc<Ids>,
    pub(crate) resolved: Arc<Resolved>,
    pub(crate) rule: DropRule,
}

/// One entity that is about to be dropped.
struct Doomed {
    id: EntityId,
    kind: Kind,
    version: Version,
    names: Vec<String>,
}

#[async_trait]
impl Work for Drop {
    /// The version that the dropped row was given; none if there was nothing to drop.
    type Output = Option<Version>;
    const NAME: &'static str = "drop";

    async fn run(&self, transaction: &mut Transaction<'_>) -> Result<Option<Version>, Failure> {
        let resolved = &*self.resolved;
        let (kind, path) = (resolved.path().kind(), resolved.path().to_string());
        let Some(row) = lock::row_drop(transaction, resolved).await? else {
            return self.gone();
        };
        sync_point!("drop.locked", resolved.path().name().as_str());
        let tag = EntityTag {
            id: resolved.id(),
            version: row.version,
        };
        self.context.precondition.check(kind, &path, tag)?;
        if self.rule.require_disabled && row.in_use {
            return Err(Failure::Answer(Error::InUse { kind, path }));
        }
        if !self.rule.cascade && self.has_child(transaction, &row).await? {
            return Err(Failure::Answer(Error::NotEmpty { kind, path }));
        }
        sync_point!("drop.allowed", resolved.path().name().as_str());
        let names = resolved
            .path()
            .names()
            .iter()
            .map(|name| name.as_str().to_owned())
            .collect();
        let top = Doomed {
            id: resolved.id(),
            kind,
            version: row.version,
            names,
        };
        let mut levels = vec![vec![top]];
        // A plain drop does not look again: a child that another node of a cluster has committed since the first look would
        // be taken along. The key refuses it instead (INV-1).
        let takes_all = self.rule.cascade || mutant("m-plain-drop-below");
        while takes_all
            && let Some(below) = self
                .lock_below(transaction, levels.last().map_or(&[], Vec::as_slice))
                .await?
        {
            levels.push(below);
        }
        sync_point!("drop.children_checked", resolved.path().name().as_str());
        for level in levels.iter().rev() {
            self.drop_level(transaction, level).await?;
        }
        for location in &self.rule.prune {
            let task = NewTask::remove_empty_directory(resolved.id(), location.clone());
            tasks::insert_free(transaction, &self.ids, task).await?;
        }
        sync_point!("drop.written", resolved.path().name().as_str());
        Ok(Some(row.version.next()))
    }

    fn proof(&self, output: &Option<Version>) -> Option<Proof> {
        output.map(|version| self.context.proof(self.resolved.id(), version))
    }
}

impl Drop {
    async fn has_child(&self, transaction: &mut Transaction<'_>, row: &LockedRow) -> Result<bool, Failure> {
        match row.has_child {
            Some(seen_with_the_lock) => Ok(seen_with_the_lock),
            None => {
                let child = transaction
                    .row(&entity::FIND_CHILD, &[self.resolved.id().into()])
                    .await?;
                Ok(child.is_some())
            }
        }
    }

    /// Somebody else dropped or renamed it between the look and the lock.
    fn gone(&self) -> Result<Option<Version>, Failure> {
        match &self.context.precondition {
            Precondition::None => Ok(None),
            Precondition::Exists => Err(lock::gone(&self.resolved)),
            pinned @ Precondition::Tags(_) => {
                let path = self.resolved.path();
                Err(Failure::Answer(pinned.failed(path.kind(), path, None)))
            }
        }
    }

    /// Finds and locks the children of one level. `None` where there are none.
    async fn lock_below(
        &self,
        transaction: &mut Transaction<'_>,
        level: &[Doomed],
    ) -> Result<Option<Vec<Doomed>>, Failure> {
        let parents: HashMap<EntityId, &Doomed> = level.iter().map(|parent| (parent.id, parent)).collect();
        let parent_ids: Vec<EntityId> = level.iter().map(|parent| parent.id).collect();
        let mut ids = Vec::new();
        for batch in parent_ids.chunks(IDS_MAX) {
            let values: Vec<Value> = sql::ids(batch).collect();
            for row in transaction.rows(&entity::FIND_CHILDREN, &values).await? {
                ids.push(record::entity_id(row.int(0)?)?);
            }
        }
        ids.sort_unstable();
        let mut below = Vec::with_capacity(ids.len());
        for batch in ids.chunks(IDS_MAX) {
            let values: Vec<Value> = sql::ids(batch).collect();
            for mut row in transaction.rows(&entity::LOCK_ROWS_DROP, &values).await? {
                let parent_id = record::entity_id(row.int(2)?)?;
                let Some(parent) = parents.get(&parent_id) else {
                    return Err(Failure::raced("a child moved away during a cascade"));
                };
                let mut names = parent.names.clone();
                names.push(row.text(3)?);
                below.push(Doomed {
                    id: record::entity_id(row.int(0)?)?,
                    kind: record::kind(&row.text(1)?)?,
                    version: record::version(row.int(4)?)?,
                    names,
                });
            }
        }
        Ok(if below.is_empty() { None } else { Some(below) })
    }

    async fn drop_level(&self, transaction: &mut Transaction<'_>, level: &[Doomed]) -> Result<(), Failure> {
        let ids: Vec<EntityId> = level.iter().map(|doomed| doomed.id).collect();
        let removable = side::detach_all(transaction, &ids).await?;
        for batch in ids.chunks(IDS_MAX) {
            let principal = Value::from(self.context.principal.as_str());
            let values: Vec<Value> = [principal].into_iter().chain(sql::ids(batch)).collect();
            match transaction.run(&entity::DROP_ENTITIES, &values).await {
                Ok(count) if count == batch.len() as u64 => {}
                Ok(count) => {
                    let difference = format!("{count} of {} rows to drop were there", batch.len());
                    return Err(Failure::raced(difference));
                }
                // A child was committed under a row of this level after we looked: look again (INV-1).
                Err(Failure::Liveness) => {
                    return Err(Failure::raced("a child appeared under what is dropped"));
                }
                Err(failure) => return Err(failure),
            }
        }
        for removable in removable {
            let task = NewTask::remove_tree(removable.entity_id, self.resolved.id(), removable.location);
            tasks::insert_free(transaction, &self.ids, task).await?;
        }
        for doomed in level {
            let names: Vec<&str> = doomed.names.iter().map(String::as_str).collect();
            let entry = Entry {
                id: doomed.id,
                kind: doomed.kind,
                names: &names,
                operation: Operation::Drop,
                version: doomed.version.next(),
            };
            feed::append(transaction, &self.context, entry).await?;
        }
        Ok(())
    }
}

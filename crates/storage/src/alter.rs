//! P2 and P4, update and rename.
//!
//! 1. The row was read before, outside any transaction; the change is applied to what was read.
//! 2. A change that changes nothing writes nothing and keeps the version (INV-3).
//! 3. Compare-and-set under the version that was read, with side rows and feed row, in one transaction (INV-4). For
//!    another name (P4) or another alias, the parent is locked first and re-checked (INV-10).
//! 4. If the check is lost: a client that has named no state but that one is refused. Else the next attempt locks the
//!    row, reads it, looks whether what the client pinned holds of it, and applies the change again, all inside its
//!    transaction, so that each attempt makes progress instead of joining a herd of losers. Attempts are bounded, and share
//!    one deadline.

use std::sync::Arc;

use async_trait::async_trait;
use treeline_core::{EntityTag, Error, Kind, Name, Operation, Path};

use crate::context::WriteContext;
use crate::failure::{Clash, Failure};
use crate::feed::{self, Entry};
use crate::hooks::{self, mutant, sync_point};
use crate::idempotency;
use crate::lock::{self, Parent};
use crate::record::{self, Record};
use crate::resolve::Resolved;
use crate::side::{self, AliasChange};
use crate::sql::entity;
use crate::sql::fused::FUSED_UPDATE;
use crate::transaction::{Backend, Fused, Proof, Transaction, Work};
use crate::value::Value;

/// A change without its kind's types: from a row to what it shall be. Pure, since it may run again on a newer row.
pub(crate) type Change = Arc<dyn Fn(&Record) -> Result<Next, Error> + Send + Sync>;

/// What a row shall be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Next {
    pub(crate) name: Name,
    pub(crate) in_use: bool,
    pub(crate) payload: String,
    pub(crate) aliases: AliasChange,
}

impl Next {
    fn changes(&self, record: &Record) -> bool {
        self.name != record.name || self.in_use != record.in_use || self.payload != record.payload
    }

    /// An alias is a row below its model, whose row PostgreSQL locks for the liveness key; who drops the model has that lock
    /// first.
    fn hold(&self, record: &Record) -> Hold {
        if self.name != record.name {
            Hold::Alter
        } else if self.aliases.attach.is_empty() || mutant("m-alias-parent") {
            Hold::Nothing
        } else {
            Hold::Shared
        }
    }
}

/// What a change holds of its row's parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Hold {
    Nothing,
    /// It stays where it is.
    Shared,
    /// And nothing else below it gets another name (P4).
    Alter,
}

/// Runs the attempts of one update.
pub(crate) async fn alter(
    backend: &Backend,
    retries_max: u32,
    context: &WriteContext,
    resolved: &Arc<Resolved>,
    change: Change,
) -> Result<Record, Failure> {
    let backend = &backend.operation();
    let path = resolved.path().to_string();
    context
        .precondition
        .check(resolved.leaf.kind, &path, resolved.tag())?;
    let next = change(&resolved.leaf)?;
    let renames = next.name != resolved.leaf.name;
    sync_point!(
        if renames { "rename.resolved" } else { "update.read" },
        resolved.leaf.name.as_str()
    );
    if !next.changes(&resolved.leaf) {
        return idempotency::settle(backend, context, resolved.leaf.clone()).await;
    }
    let stale = next.clone();
    let first = CompareAndSet {
        context: context.clone(),
        resolved: Arc::clone(resolved),
        next,
    };
    match idempotency::write(backend, context, first).await {
        Err(Failure::Lost) => {}
        settled => return settled,
    }
    count_conflict(resolved.leaf.kind);
    if context.precondition.expected() == Some(resolved.tag()) {
        let actual = probe(backend, resolved).await?;
        let failed = context
            .precondition
            .failed(resolved.leaf.kind, path, Some(actual));
        return Err(Failure::Answer(failed));
    }
    for _ in 0..retries_max {
        if backend.is_out_of_time() {
            break;
        }
        let again = LockAndSet {
            context: context.clone(),
            resolved: Arc::clone(resolved),
            change: Arc::clone(&change),
            stale: stale.clone(),
        };
        match idempotency::write(backend, context, again).await {
            Err(Failure::Lost) => count_conflict(resolved.leaf.kind),
            settled => return settled,
        }
    }
    metrics::counter!("treeline_update_retries_exhausted_total").increment(1);
    let actual = probe(backend, resolved).await?;
    Err(Failure::Answer(Error::Conflict {
        kind: resolved.leaf.kind,
        path,
        expected: Some(resolved.tag()),
        actual: Some(actual),
    }))
}

fn count_conflict(kind: Kind) {
    metrics::counter!("treeline_update_conflicts_total", "kind" => kind.as_str()).increment(1);
}

/// The first attempt: under the version that was read before.
struct CompareAndSet {
    context: WriteContext,
    resolved: Arc<Resolved>,
    next: Next,
}

#[async_trait]
impl Work for CompareAndSet {
    type Output = Record;
    const NAME: &'static str = "update";

    async fn run(&self, transaction: &mut Transaction<'_>) -> Result<Record, Failure> {
        let leaf = &self.resolved.leaf;
        lock_parent(transaction, &self.resolved, self.next.hold(leaf)).await?;
        set(transaction, &self.context, &self.resolved, leaf, &self.next).await
    }

    /// Only a change of neither the name nor side rows.
    fn fuse(&self) -> Option<Fused<Record>> {
        let record = &self.resolved.leaf;
        let plain = self.next.name == record.name && self.next.aliases == AliasChange::default();
        if !plain || hooks::is_armed_inside(record.name.as_str()) {
            return None;
        }
        let values = vec![
            self.next.in_use.into(),
            self.next.payload.as_str().into(),
            self.context.principal.as_str().into(),
            record.id.into(),
            record.version.into(),
            feed::path_text(&feed::names(self.resolved.path())).ok()?.into(),
            self.context.feed_id().into(),
        ];
        let (record, next, principal) = (record.clone(), self.next.clone(), self.context.principal.clone());
        let answer = move |updated_at_ms| written(&record, &next, principal, Some(updated_at_ms));
        Some(Fused {
            statement: &FUSED_UPDATE,
            values,
            answer: Box::new(answer),
            nothing: Some(Failure::Lost),
        })
    }

    fn proof(&self, output: &Record) -> Option<Proof> {
        Some(self.context.proof(output.id, output.version))
    }
}

/// A later attempt: under the row's lock, on what the row is then.
struct LockAndSet {
    context: WriteContext,
    resolved: Arc<Resolved>,
    change: Change,
    /// What the first attempt had computed. It says how the parent is to be locked; the rest is for a mutant only.
    stale: Next,
}

#[async_trait]
impl Work for LockAndSet {
    type Output = Record;
    const NAME: &'static str = "update_again";

    async fn run(&self, transaction: &mut Transaction<'_>) -> Result<Record, Failure> {
        let held = self.stale.hold(&self.resolved.leaf);
        lock_parent(transaction, &self.resolved, held).await?;
        let record = lock::row_alter(transaction, &self.resolved).await?;
        sync_point!("update.reread", record.name.as_str());
        let path = self.resolved.path().to_string();
        self.context
            .precondition
            .check(record.kind, &path, record.tag())?;
        let next = if mutant("m-delta") {
            self.stale.clone()
        } else {
            (self.change)(&record)?
        };
        if !next.changes(&record) {
            return Ok(record);
        }
        // A change may answer another name for a newer row than it did for the first.
        let hold = next.hold(&record);
        if hold > held {
            lock_parent(transaction, &self.resolved, hold).await?;
        }
        set(transaction, &self.context, &self.resolved, &record, &next).await
    }

    fn proof(&self, output: &Record) -> Option<Proof> {
        Some(self.context.proof(output.id, output.version))
    }
}

async fn lock_parent(
    transaction: &mut Transaction<'_>,
    resolved: &Resolved,
    hold: Hold,
) -> Result<(), Failure> {
    let parent = Parent::above(resolved);
    match hold {
        Hold::Nothing => {}
        Hold::Shared => drop(lock::parent_shared(transaction, &parent).await?),
        Hold::Alter => {
            lock::parent_alter(transaction, &parent).await?;
            sync_point!("rename.parents_locked", resolved.leaf.name.as_str());
        }
    }
    Ok(())
}

/// Writes the row under the version that `record` has, or fails with [`Failure::Lost`]. The parent is locked by now, where
/// it is to be.
async fn set(
    transaction: &mut Transaction<'_>,
    context: &WriteContext,
    resolved: &Resolved,
    record: &Record,
    next: &Next,
) -> Result<Record, Failure> {
    let renames = next.name != record.name;
    let path = resolved.path().renamed(next.name.clone());
    compare_and_set(transaction, context, record, next, &path).await?;
    sync_point!("update.row_written", record.name.as_str());
    if next.aliases != AliasChange::default() {
        let model_path = path.parent().unwrap_or_else(|| path.clone());
        side::change_aliases(
            transaction,
            resolved.parent_id(),
            record.id,
            &model_path,
            &next.aliases,
        )
        .await?;
    }
    let row = transaction.row(&entity::UPDATED_AT, &[record.id.into()]).await?;
    let updated_at = row.map(|row| row.maybe_int(0)).transpose()?.flatten();
    let version = record.version.next();
    let operation = if renames {
        Operation::Rename
    } else {
        Operation::Alter
    };
    let names = feed::names(&path);
    feed::append(
        transaction,
        context,
        Entry {
            id: record.id,
            kind: record.kind,
            names: &names,
            operation,
            version,
        },
    )
    .await?;
    sync_point!(
        if renames {
            "rename.written"
        } else {
            "update.written"
        },
        record.name.as_str()
    );
    Ok(written(record, next, context.principal.clone(), updated_at))
}

/// The row as it is after the update.
fn written(record: &Record, next: &Next, principal: String, updated_at_ms: Option<i64>) -> Record {
    let mut written = record.clone();
    written.version = record.version.next();
    written.name = next.name.clone();
    written.in_use = next.in_use;
    written.payload.clone_from(&next.payload);
    written.audit.last_modifier = Some(principal);
    written.audit.last_modified_at_ms = updated_at_ms;
    written
}

/// The one statement that decides who wins (INV-4).
async fn compare_and_set(
    transaction: &mut Transaction<'_>,
    context: &WriteContext,
    record: &Record,
    next: &Next,
    path: &Path,
) -> Result<(), Failure> {
    let mut values: Vec<Value> = vec![
        next.in_use.into(),
        next.payload.as_str().into(),
        context.principal.as_str().into(),
        record.id.into(),
        record.version.into(),
    ];
    let statement = if next.name == record.name {
        &entity::UPDATE_ENTITY
    } else {
        values.insert(0, next.name.as_str().into());
        &entity::RENAME_ENTITY
    };
    match transaction.run(statement, &values).await {
        Ok(1) => Ok(()),
        Ok(0) => Err(Failure::Lost),
        Ok(count) => Err(Failure::Broken(format!("an update by id matched {count} rows"))),
        Err(Failure::Unique(Clash::Name)) => Err(Failure::Answer(Error::already_exists(
            record.kind,
            path.to_string(),
        ))),
        Err(failure) => Err(failure),
    }
}

/// What became of a row whose update matched nothing: the state that it has now, or [`Error::NotFound`] of the name
/// under which it was resolved.
async fn probe(backend: &Backend, resolved: &Arc<Resolved>) -> Result<EntityTag, Failure> {
    backend
        .read(
            crate::transaction::Reading::Point,
            Probe {
                resolved: Arc::clone(resolved),
            },
        )
        .await
}

struct Probe {
    resolved: Arc<Resolved>,
}

#[async_trait]
impl Work for Probe {
    type Output = EntityTag;
    const NAME: &'static str = "probe";

    async fn run(&self, transaction: &mut Transaction<'_>) -> Result<EntityTag, Failure> {
        let id = self.resolved.id();
        let Some(mut row) = transaction.row(&entity::PROBE_ROW, &[id.into()]).await? else {
            return Err(lock::gone(&self.resolved));
        };
        if row.text(0)? != self.resolved.path().name().as_str() {
            return Err(lock::gone(&self.resolved));
        }
        Ok(EntityTag {
            id,
            version: record::version(row.int(1)?)?,
        })
    }
}

#[cfg(test)]
mod tests;

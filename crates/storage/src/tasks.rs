//! Work that outlives the request that asked for it: directories to make and to remove (P13 c, design §7.1).
//!
//! A task is a row of the transaction that made it necessary. Whoever does it claims it first, by compare-and-set
//! and for a while; a claim that runs out is free again, so a killed server's work is done by another. Nothing rests
//! on the claim but the order between making and removing (INV-15):
//!
//! * A tree, or a directory that is empty, is removed only while no live fileset keeps files in it; the claim looks in
//!   its own transaction.
//! * A create at or around a tree that is still to be removed writes nothing until the removal is done. One that
//!   committed after a removal was claimed looks again, before it makes its directories. An empty directory matters only
//!   to a fileset at that very place, and only once it is claimed: until then its removal finds the fileset.
//! * A tree is not removed while somebody still makes a directory in it.

mod around;
mod places;

use std::sync::Arc;

use async_trait::async_trait;
use treeline_core::EntityId;

pub use around::Removal;
use around::find_removals_around;
pub(crate) use around::{RemovalAround, removal_overlaps};
pub(crate) use places::inside;

use crate::failure::{Clash, Failure};
use crate::hooks::mutant;
use crate::ids::Ids;
use crate::record;
use crate::sql::{Statement, side, task};
use crate::transaction::{Transaction, Work};
use crate::value::{Row, Value};

/// How long a sweep passes over work that waits for other work, where a whole batch of it does: it must not hide what could
/// be done.
const LATER_MS: i64 = 5_000;

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskKind {
    /// Make the directory of a live fileset.
    MakeDirectory,
    /// Remove the tree of a dropped fileset.
    RemoveTree,
    /// Remove the directory of a dropped schema, if nothing is left in it.
    RemoveEmptyDirectory,
}

impl TaskKind {
    const fn as_str(self) -> &'static str {
        match self {
            TaskKind::MakeDirectory => "make_directory",
            TaskKind::RemoveTree => "remove_tree",
            TaskKind::RemoveEmptyDirectory => "remove_empty_directory",
        }
    }

    fn parse(word: &str) -> Result<TaskKind, Failure> {
        match word {
            "make_directory" => Ok(TaskKind::MakeDirectory),
            "remove_tree" => Ok(TaskKind::RemoveTree),
            "remove_empty_directory" => Ok(TaskKind::RemoveEmptyDirectory),
            _ => Err(Failure::Broken(format!(
                "the database holds the task kind `{word}`"
            ))),
        }
    }
}

/// A claimed task. Whoever holds it does the work and then settles or releases it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// What is to be done.
    pub kind: TaskKind,
    /// Where.
    pub location: String,
    /// How often it was claimed, this time included.
    pub attempts: i64,
    pub(crate) id: i64,
    pub(crate) holder: String,
}

/// Which tasks a worker wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskFilter {
    /// Those whose time has come, whoever left them.
    Due,
    /// Those that the create or the drop of this entity asked for.
    CausedBy(EntityId),
    /// Removals that a fileset at this location has to wait for: at it, above or below.
    RemovalsAround(String),
}

/// In whose name tasks are claimed, and for how long.
#[derive(Clone, Debug, Default)]
pub(crate) struct Claim {
    pub(crate) holder: String,
    pub(crate) lease_ms: i64,
}

/// A task that is not there yet.
pub(crate) struct NewTask {
    kind: TaskKind,
    entity_id: EntityId,
    cause_id: EntityId,
    location: String,
}

impl NewTask {
    pub(crate) fn make_directory(entity_id: EntityId, location: String) -> NewTask {
        NewTask {
            kind: TaskKind::MakeDirectory,
            entity_id,
            cause_id: entity_id,
            location,
        }
    }

    pub(crate) fn remove_tree(entity_id: EntityId, cause_id: EntityId, location: String) -> NewTask {
        NewTask {
            kind: TaskKind::RemoveTree,
            entity_id,
            cause_id,
            location,
        }
    }

    pub(crate) fn remove_empty_directory(entity_id: EntityId, location: String) -> NewTask {
        NewTask {
            kind: TaskKind::RemoveEmptyDirectory,
            entity_id,
            cause_id: entity_id,
            location,
        }
    }
}

/// Leaves a task for whoever comes.
pub(crate) async fn insert_free(
    transaction: &mut Transaction<'_>,
    ids: &Ids,
    new: NewTask,
) -> Result<(), Failure> {
    // A lease that ended just now: free from the next millisecond on.
    insert(transaction, ids.next()?.get(), &new, None, -1).await
}

/// Leaves a task that the caller is about to do.
pub(crate) async fn insert_claimed(
    transaction: &mut Transaction<'_>,
    ids: &Ids,
    new: NewTask,
    claim: &Claim,
) -> Result<Task, Failure> {
    let id = ids.next()?.get();
    insert(transaction, id, &new, Some(&claim.holder), claim.lease_ms).await?;
    Ok(Task {
        kind: new.kind,
        location: new.location,
        attempts: 1,
        id,
        holder: claim.holder.clone(),
    })
}

async fn insert(
    transaction: &mut Transaction<'_>,
    id: i64,
    new: &NewTask,
    holder: Option<&str>,
    lease_ms: i64,
) -> Result<(), Failure> {
    let values = [
        id.into(),
        new.kind.as_str().into(),
        new.entity_id.into(),
        new.cause_id.into(),
        new.location.as_str().into(),
        holder.into(),
        lease_ms.into(),
    ];
    match transaction.run_one(&task::INSERT_TASK, &values).await {
        // Two processes gave one id: another is given when the transaction runs again.
        Err(Failure::Unique(Clash::Id)) => Err(Failure::raced("a clash of ids")),
        inserted => inserted,
    }
}

/// Claims tasks, and settles those on the way that there is nothing left to do for.
pub(crate) struct ClaimTasks {
    pub(crate) filter: TaskFilter,
    pub(crate) limit: i64,
    pub(crate) claim: Claim,
}

struct Candidate {
    task: Task,
    entity_id: EntityId,
}

/// What a worker may do with a task that it has just claimed.
enum Verdict {
    Do,
    Later,
    Needless,
}

#[async_trait]
impl Work for ClaimTasks {
    type Output = Vec<Task>;
    const NAME: &'static str = "claim_tasks";

    async fn run(&self, transaction: &mut Transaction<'_>) -> Result<Vec<Task>, Failure> {
        let rows = match &self.filter {
            TaskFilter::Due => transaction.rows(&task::FIND_DUE, &[self.limit.into()]).await?,
            TaskFilter::CausedBy(cause) => {
                transaction
                    .rows(&task::FIND_CAUSED, &[(*cause).into(), self.limit.into()])
                    .await?
            }
            TaskFilter::RemovalsAround(location) => find_removals_around(transaction, location).await?,
        };
        let batch_len = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let (mut claimed, mut later) = (Vec::new(), Vec::new());
        for row in rows {
            let candidate = self.candidate(row)?;
            let verdict = judge(transaction, &candidate).await?;
            if matches!(verdict, Verdict::Later) {
                later.push(candidate.task.id);
                continue;
            }
            let values = [
                self.claim.holder.as_str().into(),
                self.claim.lease_ms.into(),
                candidate.task.id.into(),
            ];
            if transaction.run(&task::CLAIM_TASK, &values).await? == 0 {
                continue;
            }
            match verdict {
                Verdict::Needless => settle(transaction, &candidate.task).await.map(drop)?,
                Verdict::Do | Verdict::Later => claimed.push(candidate.task),
            }
        }
        if self.filter == TaskFilter::Due && later.len() == batch_len {
            for id in later {
                transaction
                    .run(&task::POSTPONE_TASK, &[LATER_MS.into(), id.into()])
                    .await?;
            }
        }
        Ok(claimed)
    }
}

impl ClaimTasks {
    fn candidate(&self, mut row: Row) -> Result<Candidate, Failure> {
        let task = Task {
            id: row.int(0)?,
            kind: TaskKind::parse(&row.text(1)?)?,
            location: row.text(4)?,
            attempts: row.int(5)? + 1,
            holder: self.claim.holder.clone(),
        };
        Ok(Candidate {
            task,
            entity_id: record::entity_id(row.int(2)?)?,
        })
    }
}

/// Whether the work is still wanted, and whether now.
async fn judge(transaction: &mut Transaction<'_>, candidate: &Candidate) -> Result<Verdict, Failure> {
    let location = &candidate.task.location;
    let finds = async |transaction: &mut Transaction<'_>, statement: &Statement| {
        transaction
            .row(statement, &inside(location))
            .await
            .map(|row| row.is_some())
    };
    if mutant("m-purge-claim") {
        return Ok(Verdict::Do);
    }
    match candidate.task.kind {
        TaskKind::MakeDirectory => {
            let live = transaction
                .row(&task::TASK_ENTITY_LIVE, &[candidate.entity_id.into()])
                .await?
                .is_some();
            Ok(if live { Verdict::Do } else { Verdict::Needless })
        }
        TaskKind::RemoveTree | TaskKind::RemoveEmptyDirectory
            if finds(transaction, &side::FIND_LOCATION_INSIDE).await? =>
        {
            Ok(Verdict::Needless)
        }
        TaskKind::RemoveTree if finds(transaction, &task::FIND_MAKING_INSIDE).await? => Ok(Verdict::Later),
        TaskKind::RemoveTree => Ok(Verdict::Do),
        TaskKind::RemoveEmptyDirectory if finds(transaction, &task::FIND_REMOVAL_INSIDE).await? => {
            Ok(Verdict::Later)
        }
        TaskKind::RemoveEmptyDirectory => Ok(Verdict::Do),
    }
}

/// Ends a task. `false` if the claim had run out and somebody else has, or has had, the task.
pub(crate) async fn settle(transaction: &mut Transaction<'_>, settled: &Task) -> Result<bool, Failure> {
    let values = [settled.id.into(), settled.holder.as_str().into()];
    Ok(transaction.run(&task::SETTLE_TASK, &values).await? == 1)
}

/// What becomes of a claimed task.
pub(crate) enum Ending {
    /// It is done.
    Settled,
    /// It goes on; keep the claim that much longer.
    Extended { lease_ms: i64 },
    /// It failed; free again after a while.
    Released { wait_ms: i64, error: String },
}

/// Ends or keeps a claim.
pub(crate) struct EndTask {
    pub(crate) task: Arc<Task>,
    pub(crate) ending: Ending,
}

#[async_trait]
impl Work for EndTask {
    /// Whether the claim was still ours.
    type Output = bool;
    const NAME: &'static str = "end_task";

    async fn run(&self, transaction: &mut Transaction<'_>) -> Result<bool, Failure> {
        let (id, holder) = (Value::from(self.task.id), Value::from(self.task.holder.as_str()));
        let matched = match &self.ending {
            Ending::Settled => return settle(transaction, &self.task).await,
            Ending::Extended { lease_ms } => {
                transaction
                    .run(&task::EXTEND_TASK, &[(*lease_ms).into(), id, holder])
                    .await?
            }
            Ending::Released { wait_ms, error } => {
                let values = [(*wait_ms).into(), error.as_str().into(), id, holder];
                transaction.run(&task::RELEASE_TASK, &values).await?
            }
        };
        Ok(matched == 1)
    }
}

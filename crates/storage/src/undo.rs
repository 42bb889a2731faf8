//! Between the commit of a create that keeps files and the last of its directories. One that cannot be made undoes the
//! create; and no repeat under its key may have been told by then that it was done (INV-17).
//!
//! 1. A task stands for each directory that is still to be made. Whoever ends the last of them lets the create stand.
//! 2. The undo drops the row and forgets the key in one transaction, under the locks of the row and of the tasks that are
//!    left. If none is left, there is nothing to undo any more.
//! 3. A repeat that finds an answer kept asks in one statement whether it is kept still, and which tasks are left. It is
//!    answered once none is.
//!
//! So the database decides between the end of the last task and the undo, and a repeat sees one of them. What is created
//! under a key without a task stands from its commit on.

use std::sync::Arc;

use async_trait::async_trait;
use treeline_core::{EntityId, Error, Path, Result, Version};

use crate::context::WriteContext;
use crate::drop::{Drop, DropRule};
use crate::failure::Failure;
use crate::hooks::{mutant, sync_point};
use crate::idempotency::{ForgetKey, Outcome};
use crate::lock;
use crate::record::Record;
use crate::sql::idempotency::FIND_KEPT_CREATE;
use crate::sql::{self, entity, task};
use crate::store::Store;
use crate::tasks::{self, Task};
use crate::transaction::{Proof, Reading, Transaction, Work};

/// What became of a create that was to be undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undone {
    /// Its row is dropped and its key forgotten, so that a repeat does it anew.
    Done,
    /// Others have made the directories meanwhile, and a repeat may have been answered. It stands.
    Settled,
    /// Somebody else has dropped the row. The create took effect, as that drop shows, and lacks nothing any more: it
    /// stands, and its key keeps it. Were the key forgotten, a repeat would bring back what was dropped.
    Dropped,
    /// Somebody else has given the row another name, or what it lies in. It is theirs now and stays, and its directories
    /// are still to be made. Its key keeps it: were that forgotten, a repeat would create a second one.
    Renamed,
}

/// What has become of a create that a key was found to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptCreate {
    /// Its directories are made, and it is not undone any more.
    Stands,
    /// Some directories are being made, or have failed and wait to be tried again. It may be undone yet.
    Making,
    /// A directory is due that nobody makes, since whoever had claimed it has died.
    Left,
    /// The key does not keep it any more.
    Undone,
}

impl Store {
    /// Undoes a create that left these tasks to its caller, who makes none of their directories any more. The key is that
    /// of the context.
    ///
    /// # Errors
    /// Of the database only. Then the create is as it was, and so is its key; what directories it lacks, whoever looks for
    /// tasks goes on making.
    pub async fn undo_create(
        &self,
        context: &WriteContext,
        path: &Path,
        id: EntityId,
        tasks: Vec<Task>,
    ) -> Result<Undone> {
        let forget = ForgetKey::of(context);
        if mutant("m-idempotency-undo")
            && let Some(forget) = ForgetKey::of(context)
        {
            self.write(forget).await?;
        }
        let resolved = match self.resolve(path).await {
            Ok(resolved) if resolved.id() == id => Some(resolved),
            Ok(_) | Err(Error::NotFound { .. }) => None,
            Err(error) => return Err(error),
        };
        sync_point!("undo.begun", path.name().as_str());
        let drop = resolved.map(|resolved| Drop {
            context: WriteContext::new("treeline", "undo-create"),
            ids: Arc::clone(&self.shared.ids),
            resolved: Arc::new(resolved),
            rule: DropRule::default(),
        });
        let undo = UndoCreate {
            id,
            tasks,
            drop,
            forget,
        };
        self.write(undo).await.map(|(undone, _)| undone)
    }

    /// What has become of the create of this entity, which the key of the context was found to keep: one read of a few
    /// rows.
    pub async fn kept_create(&self, context: &WriteContext, id: EntityId) -> Result<KeptCreate> {
        let Some(idempotency) = &context.idempotency else {
            return Ok(KeptCreate::Undone);
        };
        let look = LookAtKept {
            principal: context.principal.clone(),
            key: idempotency.key.clone(),
            id,
        };
        self.read(Reading::Point, look).await
    }
}

/// One undo.
struct UndoCreate {
    id: EntityId,
    /// What the create left to whoever undoes it.
    tasks: Vec<Task>,
    /// The drop of the row; none where the path did not lead to it any more.
    drop: Option<Drop>,
    forget: Option<ForgetKey>,
}

#[async_trait]
impl Work for UndoCreate {
    /// And the version that the dropped row was given.
    type Output = (Undone, Option<Version>);
    const NAME: &'static str = "undo_create";

    async fn run(&self, transaction: &mut Transaction<'_>) -> std::result::Result<Self::Output, Failure> {
        let Some(drop) = &self.drop else {
            return self.taken(transaction).await;
        };
        if lock::row_drop(transaction, &drop.resolved).await?.is_none() {
            return self.taken(transaction).await;
        }
        // Without a key nobody can have been answered but the one who asks for the undo.
        if self.forget.is_some() && !self.lacks_directories(transaction).await? {
            return Ok((Undone::Settled, None));
        }
        self.leave_tasks(transaction).await?;
        let Some(version) = drop.run(transaction).await? else {
            return Err(Failure::Broken("a locked row could not be dropped".to_owned()));
        };
        if let Some(forget) = &self.forget {
            forget.run(transaction).await?;
        }
        Ok((Undone::Done, Some(version)))
    }

    fn proof(&self, (_, version): &Self::Output) -> Option<Proof> {
        self.drop.as_ref()?.proof(version)
    }
}

impl UndoCreate {
    /// Somebody else has dropped the row or given it another name.
    async fn taken(
        &self,
        transaction: &mut Transaction<'_>,
    ) -> std::result::Result<(Undone, Option<Version>), Failure> {
        if transaction
            .row(&entity::PROBE_ROW, &[self.id.into()])
            .await?
            .is_some()
        {
            return Ok((Undone::Renamed, None));
        }
        // Its drop has left alone what was claimed, and nobody needs that any more.
        self.leave_tasks(transaction).await?;
        let values: Vec<_> = sql::ids(&[self.id]).collect();
        transaction.run(&task::FORGET_MAKING, &values).await?;
        Ok((Undone::Dropped, None))
    }

    /// Whether a directory is still to be made, as long as this transaction lasts: until then nobody ends its task.
    async fn lacks_directories(
        &self,
        transaction: &mut Transaction<'_>,
    ) -> std::result::Result<bool, Failure> {
        let mut lacks = false;
        for row in transaction
            .rows(&task::FIND_MAKING_FOR, &[self.id.into()])
            .await?
        {
            let locked = transaction.row(&task::LOCK_TASK, &[row.int(0)?.into()]).await?;
            lacks |= locked.is_some();
        }
        Ok(lacks)
    }

    /// Ends what the caller holds and does not do, so that no removal waits for it. What others make is theirs to end.
    async fn leave_tasks(&self, transaction: &mut Transaction<'_>) -> std::result::Result<(), Failure> {
        for task in &self.tasks {
            tasks::settle(transaction, task).await?;
        }
        Ok(())
    }
}

/// Looks at what a key keeps, and at what tasks are left of it.
struct LookAtKept {
    principal: String,
    key: String,
    id: EntityId,
}

#[async_trait]
impl Work for LookAtKept {
    type Output = KeptCreate;
    const NAME: &'static str = "kept_create";

    async fn run(&self, transaction: &mut Transaction<'_>) -> std::result::Result<KeptCreate, Failure> {
        let values = [
            self.id.into(),
            self.principal.as_str().into(),
            self.key.as_str().into(),
        ];
        let Some(mut row) = transaction.row(&FIND_KEPT_CREATE, &values).await? else {
            return Ok(KeptCreate::Undone);
        };
        // After an undo the same request may have created another under the key, or another request anything at all.
        let kept = row.text(0)?;
        if !<Record as Outcome>::decode(&kept).is_ok_and(|record| record.id == self.id) {
            return Ok(KeptCreate::Undone);
        }
        Ok(match row.maybe_int(1)? {
            None => KeptCreate::Stands,
            Some(0) => KeptCreate::Left,
            Some(_) => KeptCreate::Making,
        })
    }
}

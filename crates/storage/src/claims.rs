//! The calls by which whoever does file work looks for tasks, claims them, and ends them.

use std::sync::Arc;

use async_trait::async_trait;
use treeline_core::Result;

use crate::failure::Failure;
use crate::sql::side::FIND_LOCATION_INSIDE;
use crate::store::Store;
use crate::tasks::{self, ClaimTasks, EndTask, Ending, Removal, RemovalAround, Task, TaskFilter};
use crate::transaction::{Reading, Transaction, Work};

impl Store {
    /// What is still to be removed that a fileset at this location has to wait for.
    pub async fn removal_around(&self, location: &str) -> Result<Removal> {
        let around = RemovalAround {
            location: location.to_owned(),
        };
        self.read(Reading::Point, around).await
    }

    /// Whether a live fileset keeps files at or below this location.
    pub async fn location_in_use(&self, location: &str) -> Result<bool> {
        self.read(
            Reading::Point,
            LocationInUse {
                location: location.to_owned(),
            },
        )
        .await
    }

    /// Claims up to `limit` tasks. The claim lasts [`Store::task_lease_ms`]; extend it for longer work.
    pub async fn claim_tasks(&self, filter: TaskFilter, limit: u16) -> Result<Vec<Task>> {
        self.write(ClaimTasks {
            filter,
            limit: i64::from(limit),
            claim: self.claim()?,
        })
        .await
    }

    /// The task is done. `false` if its claim had run out, so that somebody else may have done it too.
    pub async fn settle_task(&self, task: &Task) -> Result<bool> {
        self.end_task(task, Ending::Settled).await
    }

    /// The task goes on. `false` if its claim has run out.
    pub async fn extend_task(&self, task: &Task) -> Result<bool> {
        self.end_task(
            task,
            Ending::Extended {
                lease_ms: self.task_lease_ms(),
            },
        )
        .await
    }

    /// The task failed, and is free again after `wait_ms`.
    pub async fn release_task(&self, task: &Task, wait_ms: i64, error: &str) -> Result<bool> {
        self.end_task(
            task,
            Ending::Released {
                wait_ms,
                error: error.to_owned(),
            },
        )
        .await
    }

    /// How long a claim lasts, in milliseconds.
    pub fn task_lease_ms(&self) -> i64 {
        self.shared.options.task_lease_ms
    }

    async fn end_task(&self, task: &Task, ending: Ending) -> Result<bool> {
        self.write(EndTask {
            task: Arc::new(task.clone()),
            ending,
        })
        .await
    }
}

/// Looks for a live fileset at or below a location.
struct LocationInUse {
    location: String,
}

#[async_trait]
impl Work for LocationInUse {
    type Output = bool;
    const NAME: &'static str = "location_in_use";

    async fn run(&self, transaction: &mut Transaction<'_>) -> std::result::Result<bool, Failure> {
        let values = tasks::inside(&self.location);
        let found = transaction.row(&FIND_LOCATION_INSIDE, &values).await?;
        Ok(found.is_some())
    }
}

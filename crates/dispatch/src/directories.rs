//! Making and removing directories: the one place where tasks are done, by requests and by the sweep alike.
//!
//! File work holds no transaction and no row lock. A task is claimed, done and settled; a failure releases it, to be
//! tried again later, by whoever comes. Everything here may run twice.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use treeline_connectors::{FileStat, Locations, Made, Stat};
use treeline_core::{EntityId, Error, Result};
use treeline_storage::{Removal, Store, Task, TaskFilter, TaskKind};

/// Tasks that are claimed at once.
const BATCH: u16 = 64;

/// A failed task waits twice as long each time, from one second to an hour.
const RETRY_WAIT_MIN: Duration = Duration::from_secs(1);
const RETRY_WAIT_MAX: Duration = Duration::from_secs(60 * 60);

/// How often a create looks whether somebody else's removal is done.
const POLL: Duration = Duration::from_millis(20);

/// What came of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ran {
    /// There was nothing to claim.
    Nothing,
    /// Some of it was done, so that looking for more is worth it.
    Done,
    /// All of it failed.
    Failed,
}

/// How long what has failed so often waits.
fn retry_wait(attempts: i64) -> Duration {
    let doublings = u32::try_from(attempts.clamp(1, 16) - 1).unwrap_or(0);
    (RETRY_WAIT_MIN * (1 << doublings)).min(RETRY_WAIT_MAX)
}

/// Does the file work of one server. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Directories {
    store: Store,
    places: Locations,
    tracker: TaskTracker,
    wait: Duration,
}

impl Directories {
    pub(crate) fn new(store: Store, places: Locations, tracker: TaskTracker, wait: Duration) -> Directories {
        Directories {
            store,
            places,
            tracker,
            wait,
        }
    }

    /// Whether this server has a file system for that location.
    pub(crate) fn reaches(&self, location: &str) -> bool {
        self.places.get(location).is_some()
    }

    /// What is there now. Refuses a location that no fileset may have.
    pub(crate) async fn stat(&self, location: &str) -> Result<Stat> {
        let place = self.places.require(location)?;
        place.check(location).await?;
        place.stat(location).await
    }

    /// One level of files.
    pub(crate) async fn list(&self, location: &str, entries_max: usize) -> Result<Vec<FileStat>> {
        self.places.require(location)?.list(location, entries_max).await
    }

    /// Makes the directories of a fileset that was just created. Goes on if the client goes away.
    pub(crate) async fn make(&self, tasks: Vec<Task>) -> Result<()> {
        if tasks.is_empty() {
            return Ok(());
        }
        let directories = self.clone();
        let making = async move {
            for task in &tasks {
                directories.run(task).await?;
            }
            Ok(())
        };
        self.tracker
            .spawn(making)
            .await
            .unwrap_or_else(|panic| Err(Error::internal(panic.to_string())))
    }

    /// Removes the directories that a drop left behind, as far as that is done in time; the sweep does the rest. The
    /// drop stands whatever happens here.
    pub(crate) async fn remove_caused_by(&self, dropped: EntityId) {
        let directories = self.clone();
        let removing =
            async move { while directories.run_some(TaskFilter::CausedBy(dropped)).await == Ran::Done {} };
        let removal = self.tracker.spawn(removing);
        if tokio::time::timeout(self.wait, removal).await.is_err() {
            tracing::info!(%dropped, "directories of a drop are still being removed");
        }
    }

    /// Makes a directory that a live fileset keeps its files in, if it is not there.
    pub(crate) async fn require(&self, location: &str) -> Result<()> {
        self.places.require(location)?.make_dir(location).await.map(drop)
    }

    /// Sees to it that nothing is left to be removed at or around a location, by doing it or by waiting for others.
    /// What fails here is tried again more and more seldom.
    pub(crate) async fn finish_removals_around(&self, location: &str, deadline: Instant) -> Result<()> {
        let (mut failures, mut next_try) = (0, Instant::now());
        while self.store.removal_around(location).await? != Removal::None {
            give_up_after(deadline)?;
            let filter = TaskFilter::RemovalsAround(location.to_owned());
            let ran = if Instant::now() < next_try {
                Ran::Nothing
            } else {
                self.run_some(filter).await
            };
            match ran {
                Ran::Done => {}
                Ran::Nothing => rest(location).await?,
                Ran::Failed => {
                    failures += 1;
                    next_try = Instant::now() + retry_wait(failures);
                }
            }
        }
        Ok(())
    }

    /// Lets those removals end at or around the location of a fileset, just committed, that were claimed before anybody
    /// could see it. One that is not claimed finds the fileset when it is, or waits until its directory is made.
    pub(crate) async fn outlast_removals_around(&self, location: &str, deadline: Instant) -> Result<()> {
        let mut removal = self.store.removal_around(location).await?;
        while removal != Removal::None {
            // A claim that has run out is taken over, so that whoever had it does not begin after all.
            self.run_some(TaskFilter::RemovalsAround(location.to_owned()))
                .await;
            removal = self.store.removal_around(location).await?;
            if removal != Removal::Claimed {
                break;
            }
            give_up_after(deadline)?;
            rest(location).await?;
        }
        Ok(())
    }

    /// Does whatever is due, whoever left it.
    pub(crate) async fn sweep(&self) {
        while self.run_some(TaskFilter::Due).await == Ran::Done {}
    }

    /// Waits for the work that requests have begun.
    pub(crate) async fn settle(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }

    /// Claims a batch and does it.
    async fn run_some(&self, filter: TaskFilter) -> Ran {
        let tasks = match self.store.claim_tasks(filter, BATCH).await {
            Ok(tasks) => tasks,
            Err(error) => {
                tracing::warn!(%error, "could not claim tasks");
                return Ran::Nothing;
            }
        };
        let mut ran = Ran::Nothing;
        for task in &tasks {
            match self.run(task).await {
                Ok(()) => ran = Ran::Done,
                Err(_) if ran == Ran::Nothing => ran = Ran::Failed,
                Err(_) => {}
            }
        }
        ran
    }

    /// Does one claimed task and settles or releases it.
    async fn run(&self, task: &Task) -> Result<()> {
        #[cfg(feature = "test-hooks")]
        hold("purge.claimed", task).await?;
        let removes = task.kind != TaskKind::MakeDirectory;
        if removes && !self.store.extend_task(task).await? {
            // It stood behind others of its batch for too long. Somebody else has it, or has had it, and the directory
            // may be that of a successor by now (INV-15).
            return Ok(());
        }
        let outcome = self.work(task).await;
        #[cfg(feature = "test-hooks")]
        hold("purge.removed", task).await?;
        metrics::counter!("treeline_directory_tasks_total", "outcome" => if outcome.is_ok() { "done" } else { "failed" })
            .increment(1);
        match outcome {
            Ok(made) => {
                let ours = match self.store.settle_task(task).await {
                    Ok(ours) => ours,
                    // The work is done, and a create must not be undone because the database cannot be told now: once
                    // the claim has run out, a sweep does it again, which changes nothing, and settles it.
                    Err(error) => {
                        tracing::warn!(location = task.location, %error, "a directory task is done and not settled");
                        return Ok(());
                    }
                };
                // Our claim had run out. If the fileset is gone, whoever removed its tree was before us; if it lives,
                // or nobody can say, whoever settled the task has found the directory that we made.
                if !ours && made && !self.store.location_in_use(&task.location).await.unwrap_or(true) {
                    self.places
                        .require(&task.location)?
                        .remove_empty_dir(&task.location)
                        .await?;
                }
                Ok(())
            }
            Err(error) => {
                tracing::warn!(location = task.location, kind = ?task.kind, %error, "a directory task failed");
                let wait_ms = i64::try_from(retry_wait(task.attempts).as_millis()).unwrap_or(i64::MAX);
                self.store.release_task(task, wait_ms, &error.to_string()).await?;
                Err(error)
            }
        }
    }

    /// The file work itself, with the claim kept for as long as it takes. Whether a directory was made.
    async fn work(&self, task: &Task) -> Result<bool> {
        let place = self.places.require(&task.location)?;
        let work = async {
            match task.kind {
                TaskKind::MakeDirectory => Ok(place.make_dir(&task.location).await? == Made::Created),
                TaskKind::RemoveTree => place.remove_tree(&task.location).await.map(|()| false),
                TaskKind::RemoveEmptyDirectory => place.remove_empty_dir(&task.location).await.map(|_| false),
            }
        };
        tokio::pin!(work);
        let third = Duration::from_millis(u64::try_from(self.store.task_lease_ms() / 3).unwrap_or(1).max(1));
        loop {
            tokio::select! {
                outcome = &mut work => return outcome,
                () = tokio::time::sleep(third) => {
                    // The work goes on whatever is said: it sits in a thread that nobody can stop, and knows the
                    // directory that it began with from one that was made since.
                    if let Err(error) = self.store.extend_task(task).await {
                        tracing::warn!(location = task.location, %error, "a directory task's claim was not kept");
                    }
                }
            }
        }
    }
}

/// Ends the wait of a create past its time.
pub(crate) fn give_up_after(deadline: Instant) -> Result<()> {
    if Instant::now() < deadline {
        return Ok(());
    }
    Err(Error::Contended {
        operation: "create".to_owned(),
    })
}

/// Somebody else removes a tree that a create at this location waits for.
async fn rest(location: &str) -> Result<()> {
    #[cfg(feature = "test-hooks")]
    treeline_storage::hooks::reach("purge.waits", name_of(location)).await?;
    let _ = location;
    tokio::time::sleep(POLL).await;
    Ok(())
}

/// The sync points of directory work are armed by the directory's own name, and stand in removals only.
#[cfg(feature = "test-hooks")]
async fn hold(point: &str, task: &Task) -> Result<()> {
    match task.kind {
        TaskKind::RemoveTree => treeline_storage::hooks::reach(point, name_of(&task.location)).await,
        TaskKind::MakeDirectory | TaskKind::RemoveEmptyDirectory => Ok(()),
    }
}

#[cfg(feature = "test-hooks")]
fn name_of(location: &str) -> &str {
    location.rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests;

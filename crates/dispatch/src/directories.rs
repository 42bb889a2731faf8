//! Making and removing directories: the one place where tasks are done, by requests and by the sweep alike.
//!
//! File work holds no transaction and no row lock. A task is claimed, done and settled; a failure releases it, to be
//! tried again later, by whoever comes. Everything here may run twice.
//!
//! Nobody waits without a bound for what keeps files: a call has a deadline ([`Places`]), and work runs on the tracker,
//! where whoever asked for it leaves it at its own.

mod places;
mod waits;

use std::sync::Arc;
use std::time::Duration;

use places::Places;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};
use tokio_util::task::TaskTracker;
use treeline_connectors::{FileStat, Locations, Made, Removed, Stat};
use treeline_core::{EntityId, Error, Result};
use treeline_storage::{Removal, Store, Task, TaskFilter, TaskKind};
pub(crate) use waits::{give_up_after, rest};
use waits::{left_behind, name_of, still_to_be_removed};

/// Tasks that a request claims at once.
const BATCH: u16 = 64;

/// Tasks that a server's sweeps do at a time. A quarter of the calls that the local file system lets in.
const HANDS: u16 = 16;

/// A failed task waits twice as long each time, from one second to an hour.
const RETRY_WAIT_MIN: Duration = Duration::from_secs(1);
const RETRY_WAIT_MAX: Duration = Duration::from_secs(60 * 60);

/// What came of a batch.
#[derive(Debug)]
enum Ran {
    /// There was nothing to claim.
    Nothing,
    /// Some of it was done, so that looking for more is worth it.
    Done,
    /// All of it failed, first of all here and for this.
    Failed(String, Error),
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
    places: Places,
    tracker: TaskTracker,
    hands: Arc<Semaphore>,
    wait: Duration,
}

impl Directories {
    /// A request waits for removals for `wait`, and anybody for one call for `call_max`.
    pub(crate) fn new(store: Store, places: Locations, wait: Duration, call_max: Duration) -> Directories {
        Directories {
            store,
            places: Places::new(places, call_max),
            tracker: TaskTracker::new(),
            hands: Arc::new(Semaphore::new(HANDS.into())),
            wait,
        }
    }

    /// Whether this server has a file system for that location.
    pub(crate) fn reaches(&self, location: &str) -> bool {
        self.places.reach(location)
    }

    /// What is there now. Refuses a location that no fileset may have.
    pub(crate) async fn stat(&self, location: &str) -> Result<Stat> {
        self.places
            .call("stat", location, |place| place.stat(location))
            .await
    }

    /// One level of files.
    pub(crate) async fn list(&self, location: &str, entries_max: usize) -> Result<Vec<FileStat>> {
        self.places
            .call("list", location, |place| place.list(location, entries_max))
            .await
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
            async move { while let Ran::Done = directories.run_some(TaskFilter::CausedBy(dropped)).await {} };
        let removal = self.tracker.spawn(removing);
        if tokio::time::timeout(self.wait, removal).await.is_err() {
            tracing::info!(%dropped, "directories of a drop are still being removed");
        }
    }

    /// Makes a directory that a live fileset keeps its files in, if it is not there.
    pub(crate) async fn require(&self, location: &str) -> Result<()> {
        self.places
            .call("make_dir", location, |place| place.make_dir(location))
            .await
            .map(drop)
    }

    /// Sees to it that nothing is left to be removed at or around a location, by doing it or by waiting for others.
    /// What fails here is tried again more and more seldom, and said in the end.
    pub(crate) async fn finish_removals_around(&self, location: &str, deadline: Instant) -> Result<()> {
        let (mut failures, mut next_try, mut last) = (0, Instant::now(), None);
        while self.store.removal_around(location).await? != Removal::None {
            give_up_after(deadline).map_err(|contended| last.take().unwrap_or(contended))?;
            let ran = if Instant::now() < next_try {
                Ran::Nothing
            } else {
                self.run_around(location, deadline).await?
            };
            match ran {
                Ran::Done => {}
                Ran::Nothing => rest("purge.waits", name_of(location)).await?,
                Ran::Failed(place, error) => {
                    failures += 1;
                    next_try = Instant::now() + retry_wait(failures);
                    last = Some(still_to_be_removed(location, &place, &error));
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
            let ran = self.run_around(location, deadline).await;
            removal = self.store.removal_around(location).await?;
            if removal != Removal::Claimed {
                break;
            }
            ran?;
            give_up_after(deadline)?;
            rest("purge.waits", name_of(location)).await?;
        }
        Ok(())
    }

    /// Makes those directories of a fileset that are to be made and that nobody makes. Others make the rest.
    pub(crate) async fn make_left(&self, created: EntityId, deadline: Instant) -> Result<()> {
        match self.run_until(TaskFilter::CausedBy(created), deadline).await? {
            Some(Ran::Failed(_, error)) => Err(error),
            Some(Ran::Nothing | Ran::Done) | None => Ok(()),
        }
    }

    /// Does removals at or around a location.
    async fn run_around(&self, location: &str, deadline: Instant) -> Result<Ran> {
        let removals = TaskFilter::RemovalsAround(location.to_owned());
        let ran = self.run_until(removals, deadline).await?;
        ran.ok_or_else(|| left_behind(location, "still being removed"))
    }

    /// Does a batch on the tracker, where it goes on if there is no time to wait for it. `None`: there was not.
    async fn run_until(&self, filter: TaskFilter, deadline: Instant) -> Result<Option<Ran>> {
        let directories = self.clone();
        let running = self
            .tracker
            .spawn(async move { directories.run_some(filter).await });
        match timeout_at(deadline, running).await {
            Ok(Ok(ran)) => Ok(Some(ran)),
            Ok(Err(panic)) => Err(Error::internal(panic.to_string())),
            Err(_) => Ok(None),
        }
    }

    /// Sets to work on whatever is due, whoever left it, as many hands as are free, and waits for none of them: one that
    /// meets a file system that hangs holds up nobody else.
    pub(crate) async fn sweep(&self) {
        let free = std::iter::from_fn(|| Arc::clone(&self.hands).try_acquire_owned().ok());
        let hands: Vec<OwnedSemaphorePermit> = free.collect();
        if hands.is_empty() {
            return;
        }
        let limit = u16::try_from(hands.len()).unwrap_or(HANDS);
        for (task, hand) in self.claim(TaskFilter::Due, limit).await.into_iter().zip(hands) {
            self.hand_over(task, hand);
        }
    }

    /// Does one task on the tracker, and then looks for more.
    fn hand_over(&self, task: Task, hand: OwnedSemaphorePermit) {
        let directories = self.clone();
        self.tracker.spawn(async move {
            let done = directories.run(&task).await.is_ok();
            drop(hand);
            if done && !directories.tracker.is_closed() {
                directories.sweep().await;
            }
        });
    }

    /// Waits for the work that requests have begun.
    pub(crate) async fn settle(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }

    /// Claims up to so many tasks; none where the database does not let it.
    async fn claim(&self, filter: TaskFilter, limit: u16) -> Vec<Task> {
        let claimed = self.store.claim_tasks(filter, limit).await;
        claimed.unwrap_or_else(|error| {
            tracing::warn!(%error, "could not claim tasks");
            Vec::new()
        })
    }

    /// Claims a batch and does it.
    async fn run_some(&self, filter: TaskFilter) -> Ran {
        let mut ran = Ran::Nothing;
        for task in self.claim(filter, BATCH).await {
            ran = match (self.run(&task).await, ran) {
                (Ok(()), _) => Ran::Done,
                (Err(error), Ran::Nothing) => Ran::Failed(task.location, error),
                (Err(_), before) => before,
            };
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
                    self.remove_empty(&task.location).await?;
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
        let location = task.location.as_str();
        let work = async {
            match task.kind {
                TaskKind::MakeDirectory => self
                    .places
                    .call("make_dir", location, |place| place.make_dir(location))
                    .await
                    .map(|made| made == Made::Created),
                TaskKind::RemoveTree => self.remove_tree(location).await.map(|()| false),
                TaskKind::RemoveEmptyDirectory => self.remove_empty(location).await.map(|_| false),
            }
        };
        tokio::pin!(work);
        let third = Duration::from_millis(u64::try_from(self.store.task_lease_ms() / 3).unwrap_or(1).max(1));
        loop {
            tokio::select! {
                outcome = &mut work => return outcome,
                () = tokio::time::sleep(third) => {
                    // The work goes on whatever is said: a call sits in a thread that nobody can stop, and a removal
                    // knows the directory that it began with from one that was made since.
                    if let Err(error) = self.store.extend_task(task).await {
                        tracing::warn!(location = task.location, %error, "a directory task's claim was not kept");
                    }
                }
            }
        }
    }

    /// A call a step: a big tree takes as long as it needs, and one that hangs no longer than a call may.
    async fn remove_tree(&self, location: &str) -> Result<()> {
        let mut begun = None;
        loop {
            let step = self.places.call("remove_tree", location, |place| {
                place.remove_tree(location, begun)
            });
            match step.await? {
                Removed::All => return Ok(()),
                Removed::Some(left) => begun = Some(left),
            }
        }
    }

    async fn remove_empty(&self, location: &str) -> Result<bool> {
        self.places
            .call("remove_empty_dir", location, |place| {
                place.remove_empty_dir(location)
            })
            .await
    }
}

/// The sync points of directory work are armed by the directory's own name, and stand in removals only.
#[cfg(feature = "test-hooks")]
async fn hold(point: &str, task: &Task) -> Result<()> {
    match task.kind {
        TaskKind::RemoveTree => treeline_storage::hooks::reach(point, name_of(&task.location)).await,
        TaskKind::MakeDirectory | TaskKind::RemoveEmptyDirectory => Ok(()),
    }
}

#[cfg(test)]
mod tests;

//! Files of this machine.
//!
//! Each call is one closure on tokio's threads for blocking work, from its first check to its last step: a caller
//! that goes away leaves no half-done call behind, and nothing awaits between a check and what it is for. A file system
//! that never answers keeps the thread; so calls are counted, and those past the bound are refused.

mod tree;

use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, UNIX_EPOCH};

use async_trait::async_trait;
use tokio::sync::Semaphore;
use treeline_core::{Error, Result};

use crate::failure::explain;
use crate::location::{local_path, refused};
use crate::{AllowedRoots, DirectoryId, FileStat, LocationStore, Made, Removed, Stat};

/// How many calls are in the file system at a time: an eighth of tokio's threads for blocking work.
const CALLS_MAX: usize = 64;

/// How long a call waits for others to end before it is refused.
const TURN_MAX: Duration = Duration::from_secs(2);

/// How long one step of the removal of a tree takes.
const STEP: Duration = Duration::from_millis(500);

/// How often a call starts again because somebody else made or removed something under it.
const ATTEMPTS_MAX: u32 = 5;

/// The store of `file:` locations, inside the [`AllowedRoots`]. Cheap to clone.
///
/// Directories are not synced to the disk: after a power cut one may be missing although its fileset is there, and
/// comes back with the first file that is written to it.
#[derive(Clone, Debug)]
pub struct LocalFiles {
    roots: Arc<AllowedRoots>,
    calls: Arc<Semaphore>,
}

impl LocalFiles {
    /// A store that touches nothing outside `roots`.
    pub fn new(roots: AllowedRoots) -> LocalFiles {
        LocalFiles {
            roots: Arc::new(roots),
            calls: Arc::new(Semaphore::new(CALLS_MAX)),
        }
    }

    /// Runs one call on a thread that may block, once the roots let its location in.
    async fn run<T: Send + 'static>(
        &self,
        location: &str,
        call: impl FnOnce(&AllowedRoots, &str, &Path) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.run_unchecked(location, |roots, location, path| {
            roots.check(path)?;
            call(roots, location, path)
        })
        .await
    }

    /// Runs one call that asks the roots itself.
    async fn run_unchecked<T: Send + 'static>(
        &self,
        location: &str,
        call: impl FnOnce(&AllowedRoots, &str, &Path) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let turn = tokio::time::timeout(TURN_MAX, Arc::clone(&self.calls).acquire_owned());
        let Ok(Ok(turn)) = turn.await else {
            return Err(Error::Unavailable {
                reason: format!("{CALLS_MAX} calls to the file system have not ended yet"),
            });
        };
        let roots = Arc::clone(&self.roots);
        let location = location.to_owned();
        let work = move || {
            // Ends with the call, not with whoever waits for it.
            let _turn = turn;
            let path = local_path(&location).ok_or_else(|| refused(&location, "is not on this machine"))?;
            call(&roots, &location, &path)
        };
        match tokio::task::spawn_blocking(work).await {
            Ok(outcome) => outcome,
            Err(error) => Err(Error::internal(format!(
                "a call to the file system died: {error}"
            ))),
        }
    }
}

#[async_trait]
impl LocationStore for LocalFiles {
    async fn stat(&self, location: &str) -> Result<Stat> {
        self.run(location, |_, location, path| stat(location, path)).await
    }

    async fn make_dir(&self, location: &str) -> Result<Made> {
        self.run(location, |_, location, path| make_dir(location, path))
            .await
    }

    async fn remove_tree(&self, location: &str, begun: Option<DirectoryId>) -> Result<Removed> {
        self.run(location, move |_, location, path| {
            tree::remove(location, path, begun, Instant::now() + STEP)
        })
        .await
    }

    async fn remove_empty_dir(&self, location: &str) -> Result<bool> {
        self.run_unchecked(location, |roots, location, path| {
            // Nothing of ours can be where nothing of ours may be.
            if matches!(roots.check(path), Err(Error::Invalid { .. })) {
                return Ok(false);
            }
            remove_empty_dir(location, path)
        })
        .await
    }

    async fn list(&self, location: &str, entries_max: usize) -> Result<Vec<FileStat>> {
        self.run(location, move |_, location, path| {
            list(location, path, entries_max)
        })
        .await
    }
}

fn stat(location: &str, path: &Path) -> Result<Stat> {
    Ok(match look(location, path)? {
        Some(found) if found.is_dir() => Stat::Directory,
        Some(_) => Stat::File,
        None => Stat::Absent,
    })
}

/// What is there, itself and not what it may lead to; nothing is no error.
fn look(location: &str, path: &Path) -> Result<Option<Metadata>> {
    match path.symlink_metadata() {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(explain("look at", location, &error)),
    }
}

/// The last step is a plain `mkdir`, so that of two callers at once exactly one is told that it made the directory.
fn make_dir(location: &str, path: &Path) -> Result<Made> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let made = match path.parent() {
            Some(parent) => fs::create_dir_all(parent).and_then(|()| fs::create_dir(path)),
            None => fs::create_dir(path),
        };
        match made {
            Ok(()) => return Ok(Made::Created),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => match stat(location, path)? {
                Stat::Directory => return Ok(Made::Existed),
                Stat::File => return Err(refused(location, "is a file, not a directory")),
                // A drop removed it since; so it is ours to make.
                Stat::Absent if attempt < ATTEMPTS_MAX => {}
                Stat::Absent => return Err(explain("make", location, &ErrorKind::ResourceBusy.into())),
            },
            // A drop removed the directory above between the two steps.
            Err(error) if error.kind() == ErrorKind::NotFound && attempt < ATTEMPTS_MAX => {}
            Err(error) => return Err(explain("make", location, &error)),
        }
    }
}

fn remove_empty_dir(location: &str, path: &Path) -> Result<bool> {
    match fs::remove_dir(path) {
        Ok(()) => Ok(true),
        Err(error) => match error.kind() {
            // Some systems say that it exists where others say that it is not empty.
            ErrorKind::NotFound
            | ErrorKind::NotADirectory
            | ErrorKind::DirectoryNotEmpty
            | ErrorKind::AlreadyExists => Ok(false),
            _ => Err(explain("remove", location, &error)),
        },
    }
}

fn list(location: &str, path: &Path, entries_max: usize) -> Result<Vec<FileStat>> {
    let failed = |error| explain("list", location, &error);
    match stat(location, path)? {
        Stat::Absent => return Err(refused(location, "is not there")),
        Stat::File => {
            let metadata = path.symlink_metadata().map_err(failed)?;
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            return Ok(vec![described(name, &metadata)]);
        }
        Stat::Directory => {}
    }
    let mut entries = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let metadata = match entry.metadata() {
            Ok(metadata) => metadata,
            // Removed since its name was read.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(failed(error)),
        };
        if entries.len() == entries_max {
            return Err(refused(
                location,
                &format!("holds more than the {entries_max} entries that a listing may have"),
            ));
        }
        entries.push(described(
            entry.file_name().to_string_lossy().into_owned(),
            &metadata,
        ));
    }
    entries.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    Ok(entries)
}

fn described(name: String, metadata: &Metadata) -> FileStat {
    let modified_at_ms = match metadata.modified().map(|time| time.duration_since(UNIX_EPOCH)) {
        Ok(Ok(since)) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        Ok(Err(before)) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |ms| -ms),
        // A file system that keeps no times.
        Err(_) => 0,
    };
    let is_dir = metadata.is_dir();
    FileStat {
        name,
        is_dir,
        size: if is_dir { 0 } else { metadata.len() },
        modified_at_ms,
    }
}

#[cfg(test)]
mod tests;

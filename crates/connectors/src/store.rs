//! What a catalog may do to a place that keeps files, whatever stands behind it.

use std::fmt;
use std::fs::Metadata;
#[cfg(unix)]
use std::os::unix::fs::MetadataExt;
use std::time::SystemTime;

use async_trait::async_trait;
use treeline_core::Result;

/// Where filesets keep their files: one implementation a scheme.
///
/// Locations are qualified ([`crate::qualify`]). Every call may be repeated: a task that made or removed a directory
/// and died before it could say so is simply run again.
#[async_trait]
pub trait LocationStore: fmt::Debug + Send + Sync {
    /// What is at the location now. Refuses one that this store would never touch.
    async fn stat(&self, location: &str) -> Result<Stat>;

    /// Makes the directory and what is missing above it; says whether it was there already. A file there is an error.
    async fn make_dir(&self, location: &str) -> Result<Made>;

    /// Removes the tree, or as much of it as a moment allows: then the next step is told what the first began with.
    /// Follows no symbolic link. Absent is no error; what is not a directory stays, and so does a directory that
    /// somebody has put in the place of the one that was being removed.
    async fn remove_tree(&self, location: &str, begun: Option<DirectoryId>) -> Result<Removed>;

    /// Removes the directory only if it is empty. Absent, non-empty, or at a place that this store never touches is no
    /// error: it tidies up where it can. Says whether it removed it.
    async fn remove_empty_dir(&self, location: &str) -> Result<bool>;

    /// One level, in byte order of the names. More than `entries_max` entries is an error that says so. A file is
    /// listed as itself; a location where there is nothing is an error.
    async fn list(&self, location: &str, entries_max: usize) -> Result<Vec<FileStat>>;
}

/// What is at a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stat {
    /// Nothing.
    Absent,
    /// A directory, empty or not.
    Directory,
    /// Anything that is not a directory.
    File,
}

/// What [`LocationStore::make_dir`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// There was none before.
    Created,
    /// Somebody had made it before us.
    Existed,
}

/// How far [`LocationStore::remove_tree`] has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removed {
    /// Nothing of it is left.
    All,
    /// Some of this directory is left.
    Some(DirectoryId),
}

/// One directory among all that are ever at a place: the number of one that is gone may be given again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectoryId {
    #[cfg(unix)]
    number: (u64, u64),
    made_at: Option<SystemTime>,
}

impl DirectoryId {
    /// The directory that this was said of.
    pub fn of(metadata: &Metadata) -> DirectoryId {
        DirectoryId {
            #[cfg(unix)]
            number: (metadata.dev(), metadata.ino()),
            made_at: metadata.created().ok(),
        }
    }
}

/// One entry of a directory. A symbolic link is described itself, not what it leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStat {
    /// Its last segment.
    pub name: String,
    /// Whether it is a directory.
    pub is_dir: bool,
    /// In bytes; 0 for a directory.
    pub size: u64,
    /// Milliseconds since 1970, on the file system's clock.
    pub modified_at_ms: i64,
}

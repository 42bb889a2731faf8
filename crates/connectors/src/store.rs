//! What a catalog may do to a place that keeps files, whatever stands behind it.

use std::fmt;

use async_trait::async_trait;
use treeline_core::Result;

/// Where filesets keep their files: one implementation a scheme.
///
/// Locations are qualified ([`crate::qualify`]). Every call may be repeated: a task that made or removed a directory
/// and died before it could say so is simply run again.
#[async_trait]
pub trait LocationStore: fmt::Debug + Send + Sync {
    /// Whether this store would ever touch the location. Asked before anything is written about it.
    async fn check(&self, location: &str) -> Result<()>;

    /// What is at the location now.
    async fn stat(&self, location: &str) -> Result<Stat>;

    /// Makes the directory and what is missing above it; says whether it was there already. A file there is an error.
    async fn make_dir(&self, location: &str) -> Result<Made>;

    /// Removes the tree. Follows no symbolic link. Absent is no error; what is not a directory stays, and so does a
    /// directory that somebody has put in the place of the one that was being removed.
    async fn remove_tree(&self, location: &str) -> Result<()>;

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

//! Removing a tree, step by step.
//!
//! Below the location this goes from one open directory to the next and unlinks links instead of following them, so
//! nobody can lead it elsewhere meanwhile. A directory that has come in the place of the one that it began with is
//! somebody else's, and stays; so does what is no directory.

use std::fs;
use std::io::{Error as IoError, ErrorKind};
use std::path::Path;
use std::time::Instant;

use treeline_core::Result;

use super::{ATTEMPTS_MAX, look};
use crate::failure::explain;
use crate::{DirectoryId, Removed};

/// Removes the tree, or what can be removed of it until then: at least one entry.
pub(super) fn remove(
    location: &str,
    path: &Path,
    mut begun: Option<DirectoryId>,
    until: Instant,
) -> Result<Removed> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let Some(found) = look(location, path)?.filter(fs::Metadata::is_dir) else {
            return Ok(Removed::All);
        };
        let found = DirectoryId::of(&found);
        if *begun.get_or_insert(found) != found {
            return Ok(Removed::All);
        }
        match remove_this(path, found, until) {
            Ok(true) => return Ok(Removed::All),
            Ok(false) => return Ok(Removed::Some(found)),
            // Somebody removes the same tree, or still writes to it, or has put something else there: look again.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty | ErrorKind::NotADirectory
                ) && attempt < ATTEMPTS_MAX => {}
            Err(error) => return Err(explain("remove", location, &error)),
        }
    }
}

/// Removes this one directory and what is in it. `false`: there was no time for all of it.
#[cfg(unix)]
fn remove_this(path: &Path, this: DirectoryId, until: Instant) -> std::result::Result<bool, IoError> {
    let opened = fs::File::from(rustix::fs::open(
        path,
        walk::DIRECTORY,
        rustix::fs::Mode::empty(),
    )?);
    if DirectoryId::of(&opened.metadata()?) != this {
        return Err(ErrorKind::NotFound.into());
    }
    if !walk::empty(opened.into(), until)? {
        return Ok(false);
    }
    // By its name, so once more: it may have been removed by others, and made anew.
    if DirectoryId::of(&path.symlink_metadata()?) != this {
        return Err(ErrorKind::NotFound.into());
    }
    fs::remove_dir(path).map(|()| true)
}

/// The standard library's removal is as safe, and has no steps.
#[cfg(not(unix))]
fn remove_this(path: &Path, _this: DirectoryId, _until: Instant) -> std::result::Result<bool, IoError> {
    fs::remove_dir_all(path).map(|()| true)
}

#[cfg(unix)]
mod walk {
    use std::os::fd::OwnedFd;
    use std::time::Instant;

    use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, unlinkat};
    use rustix::io::{Errno, Result};

    /// Opens directories themselves, and nothing else.
    pub(super) const DIRECTORY: OFlags = OFlags::RDONLY
        .union(OFlags::DIRECTORY)
        .union(OFlags::NOFOLLOW)
        .union(OFlags::CLOEXEC);

    /// Removes what is in a directory. `false`: there was no time for all of it.
    pub(super) fn empty(directory: OwnedFd, until: Instant) -> Result<bool> {
        let mut entries = Dir::new(directory)?;
        while let Some(entry) = entries.read() {
            let entry = entry?;
            let (name, directory) = (entry.file_name(), entries.fd()?);
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let inside = match entry.file_type() {
                // Unknown: the file system keeps no types in its directories.
                FileType::Directory | FileType::Unknown => openat(directory, name, DIRECTORY, Mode::empty()),
                _ => Err(Errno::NOTDIR),
            };
            let removed = match inside {
                Ok(inside) => {
                    if !empty(inside, until)? {
                        return Ok(false);
                    }
                    unlinkat(directory, name, AtFlags::REMOVEDIR)
                }
                // A link is one or the other, by the system.
                Err(Errno::NOTDIR | Errno::LOOP) => unlinkat(directory, name, AtFlags::empty()),
                Err(error) => Err(error),
            };
            match removed {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(error),
            }
            if Instant::now() >= until {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tempfile::tempdir;

    use super::*;

    fn later() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    /// As if the tree had been removed by somebody else between two steps, and made anew.
    #[test]
    fn a_directory_in_the_place_of_the_one_that_was_being_removed_stays() {
        let holder = tempdir().unwrap();
        let (old, new) = (holder.path().join("old"), holder.path().join("new"));
        fs::create_dir(&old).unwrap();
        fs::create_dir(&new).unwrap();
        fs::write(new.join("file"), "kept").unwrap();
        let begun = Some(DirectoryId::of(&old.symlink_metadata().unwrap()));
        assert_eq!(remove("file:/new", &new, begun, later()), Ok(Removed::All));
        assert_eq!(fs::read_to_string(new.join("file")).unwrap(), "kept");
        assert_eq!(remove("file:/old", &old, begun, later()), Ok(Removed::All));
        assert!(!old.exists());
    }

    #[test]
    fn a_step_without_time_removes_something_and_the_last_one_the_rest() {
        let holder = tempdir().unwrap();
        let tree = holder.path().join("tree");
        for directory in ["a/b/c", "a/d", "e"] {
            fs::create_dir_all(tree.join(directory)).unwrap();
            fs::write(tree.join(directory).join("file"), "x").unwrap();
        }
        let (mut begun, mut steps) = (None, 0);
        while let Removed::Some(directory) = remove("file:/tree", &tree, begun, Instant::now()).unwrap() {
            assert_eq!(*begun.get_or_insert(directory), directory);
            steps += 1;
            assert!(steps <= 8, "a step has removed nothing");
        }
        assert!(!tree.exists());
    }
}

//! Which directories of this machine a client may choose.
//!
//! A path is checked three times: its text, then what its nearest existing ancestor really is, then the text of that.
//! Between the check and the use somebody with an account on the machine could still swap a directory for a link;
//! nothing here guards against people who can write to the disk themselves.

use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

use treeline_core::Result;

use crate::failure::explain;
use crate::location::refused;

/// Refused with all that is below: a machine does not survive their loss, and nobody's data lives there.
const SYSTEM_TREES: &[&str] = &[
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/libexec",
    "/libx32",
    "/proc",
    "/run",
    "/sbin",
    "/sys",
    "/usr",
    "/Applications",
    "/Library",
    "/System",
];

/// Refused themselves: many share them, so that no fileset may own one of them. Below them is free.
const SHARED_DIRECTORIES: &[&str] = &[
    "/home",
    "/media",
    "/mnt",
    "/nix",
    "/opt",
    "/private",
    "/private/tmp",
    "/private/var",
    "/root",
    "/snap",
    "/srv",
    "/tmp",
    "/Users",
    "/var",
    "/var/backups",
    "/var/cache",
    "/var/lib",
    "/var/local",
    "/var/lock",
    "/var/log",
    "/var/mail",
    "/var/opt",
    "/var/run",
    "/var/spool",
    "/var/tmp",
    "/Volumes",
];

/// The directories in which filesets may keep their files.
#[derive(Clone, Debug)]
pub struct AllowedRoots {
    /// None: any absolute path but the system's.
    roots: Option<Vec<PathBuf>>,
    /// The server's own, as given and as it really is.
    data_dirs: [PathBuf; 2],
}

impl AllowedRoots {
    /// With `roots`, locations are below one of them (not a root itself: a drop would remove it); without, anywhere but in the system's directories. Never
    /// above, at or below `data_dir`, whatever the roots say: the catalog's own database is there.
    ///
    /// Looks at the disk once, so it belongs to the start of a program.
    pub fn new(roots: Option<Vec<PathBuf>>, data_dir: &Path) -> AllowedRoots {
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let data_dir = absolute(data_dir);
        let real_data_dir = real_path(&data_dir).unwrap_or_else(|_| data_dir.clone());
        AllowedRoots {
            roots: roots.map(|roots| roots.iter().map(|root| absolute(root)).collect()),
            data_dirs: [data_dir, real_data_dir],
        }
    }

    /// [`treeline_core::Error::Invalid`] unless files may be kept at this path. Reads the disk, and blocks for it.
    pub fn check(&self, path: &Path) -> Result<()> {
        let shown = path.display().to_string();
        self.check_text(path).map_err(|reason| refused(&shown, &reason))?;
        let real = real_path(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => refused(&shown, "goes through a symbolic link that leads nowhere"),
            _ => explain("look at", &shown, &error),
        })?;
        let base = self.base_of(path);
        let real_base = real_path(&base).map_err(|error| explain("look at", &shown, &error))?;
        let rest = path.strip_prefix(&base).unwrap_or(path);
        if real != join(&real_base, rest) {
            let reason = format!(
                "goes through a symbolic link; what it leads to is `{}`",
                real.display()
            );
            return Err(refused(&shown, &reason));
        }
        if real == path {
            return Ok(());
        }
        // The root is a link itself, which its operator may want; where it leads obeys the same rules, but for being
        // under a root by its text.
        self.check_real(&real).map_err(|reason| refused(&shown, &reason))
    }

    fn check_text(&self, path: &Path) -> std::result::Result<(), String> {
        if !path.is_absolute()
            || path
                .components()
                .any(|component| component == Component::ParentDir)
        {
            return Err("is not an absolute path without `..`".to_owned());
        }
        self.check_data_dir(path)?;
        let Some(roots) = &self.roots else {
            return system_flaw(path).map_or(Ok(()), |flaw| Err(flaw.to_owned()));
        };
        if roots.iter().any(|root| grants(root, path)) {
            return Ok(());
        }
        let roots: Vec<String> = roots.iter().map(|root| root.display().to_string()).collect();
        Err(format!(
            "is not below a root that this server allows: {}",
            roots.join(", ")
        ))
    }

    fn check_real(&self, real: &Path) -> std::result::Result<(), String> {
        self.check_data_dir(real)?;
        match system_flaw(real) {
            Some(flaw) if self.roots.is_none() => Err(format!("leads to `{}`, which {flaw}", real.display())),
            Some(_) | None => Ok(()),
        }
    }

    fn check_data_dir(&self, path: &Path) -> std::result::Result<(), String> {
        if self
            .data_dirs
            .iter()
            .any(|data_dir| path.starts_with(data_dir) || data_dir.starts_with(path))
        {
            return Err("would hold, or lie in, the server's own data directory".to_owned());
        }
        Ok(())
    }

    /// The part of the path whose links are the operator's: the root, or the entry of `/`, where only the owner of
    /// the machine can put a link.
    fn base_of(&self, path: &Path) -> PathBuf {
        let roots = self.roots.iter().flatten().filter(|root| grants(root, path));
        match roots.max_by_key(|root| root.components().count()) {
            Some(root) => root.clone(),
            None => path.components().take(2).collect(),
        }
    }
}

/// Whether a root lets the path in. A root that is itself in the system's part of the machine was meant so; one that
/// merely holds it, as `/` does, was not.
fn grants(root: &Path, path: &Path) -> bool {
    path != root
        && path.starts_with(root)
        && (system_flaw(path).is_none() || (system_flaw(root).is_some() && root.parent().is_some()))
}

fn system_flaw(path: &Path) -> Option<&'static str> {
    if path.parent().is_none() {
        Some("is the root of the file system")
    } else if SYSTEM_TREES.iter().any(|tree| path.starts_with(tree)) {
        Some("is in a directory of the system")
    } else if SHARED_DIRECTORIES.iter().any(|shared| path == Path::new(shared)) {
        Some("is a directory that others share; take one below it")
    } else {
        None
    }
}

/// The canonical form of the nearest ancestor that exists (the path itself, perhaps), and the rest below it.
/// [`ErrorKind::NotFound`] where that ancestor is a link that leads nowhere.
fn real_path(path: &Path) -> io::Result<PathBuf> {
    for ancestor in path.ancestors() {
        if let Some(real) = real_if_there(ancestor)? {
            let rest = path.strip_prefix(ancestor).unwrap_or(Path::new(""));
            return Ok(join(&real, rest));
        }
    }
    Ok(path.to_owned())
}

/// The canonical form of a path; none where nothing is. A directory that goes away between the two looks must not
/// pass for a link that leads nowhere, therefore it is looked for again.
fn real_if_there(path: &Path) -> io::Result<Option<PathBuf>> {
    const LOOKS_MAX: u32 = 10;
    for _ in 0..LOOKS_MAX {
        let is_link = match path.symlink_metadata() {
            Ok(metadata) => metadata.is_symlink(),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        match path.canonicalize() {
            Ok(real) => return Ok(Some(real)),
            Err(error) if error.kind() == ErrorKind::NotFound && !is_link => {}
            Err(error) => return Err(error),
        }
    }
    Err(ErrorKind::ResourceBusy.into())
}

/// Joins without the slash that an empty rest would leave at the end.
fn join(base: &Path, rest: &Path) -> PathBuf {
    if rest.as_os_str().is_empty() {
        base.to_owned()
    } else {
        base.join(rest)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use tempfile::{TempDir, tempdir};
    use treeline_core::Error;

    use super::*;

    /// A directory of this test alone, by its real name.
    fn directory() -> (TempDir, PathBuf) {
        let holder = tempdir().unwrap();
        let path = holder.path().canonicalize().unwrap();
        (holder, path)
    }

    fn reason(roots: &AllowedRoots, path: impl AsRef<Path>) -> String {
        match roots.check(path.as_ref()) {
            Err(Error::Invalid { field, reason }) if field == "storageLocations" => reason,
            other => panic!("{}: {other:?}", path.as_ref().display()),
        }
    }

    #[test]
    fn by_default_any_path_will_do_but_the_systems() {
        let (_data, data) = directory();
        let (_files, files) = directory();
        let roots = AllowedRoots::new(None, &data);
        for path in [
            files.join("a"),
            files.join("a/b/c"),
            files.clone(),
            PathBuf::from("/srv/a"),
            "/tmp/a".into(),
        ] {
            assert_eq!(roots.check(&path), Ok(()), "{}", path.display());
        }
        for path in [
            "/",
            "/etc",
            "/etc/treeline",
            "/usr/share/a",
            "/usr/local/a",
            "/proc/1/cwd/a",
            "/dev/shm/a",
            "/run/a",
            "/boot/a",
            "/sys/a",
            "/bin/a",
            "/lib64/a",
            "/home",
            "/tmp",
            "/var",
            "/var/lib",
            "/root",
            "/srv",
            "/opt",
            "/mnt",
            "/media",
            "relative",
            "/tmp/../etc",
        ] {
            reason(&roots, path);
        }
    }

    #[test]
    fn the_servers_own_directory_is_never_allowed_whatever_the_roots_say() {
        let (_data, data) = directory();
        let data_dir = data.join("treeline-data");
        std::fs::create_dir(&data_dir).unwrap();
        symlink(&data_dir, data.join("link")).unwrap();
        for configured in [None, Some(vec![data.clone()])] {
            let roots = AllowedRoots::new(configured, &data.join("link"));
            for path in [&data, &data_dir, &data_dir.join("a"), &data.join("link/a")] {
                assert!(
                    reason(&roots, path).contains("data directory"),
                    "{}",
                    path.display()
                );
            }
            assert_eq!(roots.check(&data.join("treeline-data-2")), Ok(()));
        }
    }

    #[test]
    fn with_roots_only_what_is_below_one_of_them_is_allowed() {
        let (_data, data) = directory();
        let (_files, files) = directory();
        let roots = AllowedRoots::new(Some(vec![files.join("one"), files.join("two")]), &data);
        assert_eq!(roots.check(&files.join("one/a")), Ok(()));
        assert_eq!(roots.check(&files.join("two/a/b")), Ok(()));
        assert!(reason(&roots, files.join("one")).contains("not below a root"));
        assert!(reason(&roots, files.join("three")).contains("not below a root"));
        assert!(reason(&roots, files.join("one-more")).contains("not below a root"));
        assert!(reason(&roots, &files).contains("not below a root"));
        assert!(reason(&roots, "/etc/a").contains("not below a root"));
    }

    #[test]
    fn a_root_in_the_systems_part_was_meant_and_the_root_of_all_was_not() {
        let (_data, data) = directory();
        assert_eq!(
            AllowedRoots::new(Some(vec!["/usr/share/files".into()]), &data)
                .check(Path::new("/usr/share/files/a")),
            Ok(())
        );
        let everything = AllowedRoots::new(Some(vec!["/".into()]), &data);
        assert_eq!(everything.check(Path::new("/srv/a")), Ok(()));
        reason(&everything, "/");
        reason(&everything, "/etc/a");
        reason(&AllowedRoots::new(Some(Vec::new()), &data), "/srv/a");
    }

    #[test]
    fn a_link_on_the_way_is_refused_and_the_answer_says_where_it_leads() {
        let (_data, data) = directory();
        let (_files, files) = directory();
        std::fs::create_dir(files.join("real")).unwrap();
        symlink(files.join("real"), files.join("link")).unwrap();
        symlink("/etc", files.join("system")).unwrap();
        symlink(files.join("nowhere"), files.join("dangling")).unwrap();
        symlink("circle", files.join("circle")).unwrap();
        for configured in [None, Some(vec![files.clone()])] {
            let roots = AllowedRoots::new(configured, &data);
            assert_eq!(roots.check(&files.join("real/a")), Ok(()));
            assert!(reason(&roots, files.join("link")).contains("real"));
            assert!(reason(&roots, files.join("link/a/b")).contains("real/a/b"));
            assert!(reason(&roots, files.join("system/a")).contains("/etc/a"));
            assert!(reason(&roots, files.join("dangling")).contains("nowhere"));
            assert!(reason(&roots, files.join("dangling/a")).contains("nowhere"));
            reason(&roots, files.join("circle/a"));
        }
    }

    #[test]
    fn a_root_may_be_a_link_because_its_operator_made_it() {
        let (_data, data) = directory();
        let (_files, files) = directory();
        std::fs::create_dir(files.join("real")).unwrap();
        symlink(files.join("real"), files.join("root")).unwrap();
        symlink(&data, files.join("trap")).unwrap();
        let roots = AllowedRoots::new(Some(vec![files.join("root"), files.join("trap")]), &data);
        assert_eq!(roots.check(&files.join("root/a")), Ok(()));
        assert!(reason(&roots, files.join("trap/a")).contains("data directory"));
        std::fs::create_dir(files.join("real/b")).unwrap();
        symlink(files.join("real/b"), files.join("real/c")).unwrap();
        assert!(reason(&roots, files.join("root/c")).contains("symbolic link"));
    }
}

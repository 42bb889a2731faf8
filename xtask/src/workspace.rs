//! Where things are: the sources, and the directory that cargo builds into.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::command;

/// The two directories that every command starts from.
#[derive(Debug)]
pub(crate) struct Workspace {
    /// The checkout.
    pub(crate) root: PathBuf,
    /// What cargo builds into, wherever the developer's settings put it.
    pub(crate) target: PathBuf,
}

impl Workspace {
    /// Asks cargo, because the target directory may be set by the environment or by a configuration file.
    pub(crate) fn find() -> Result<Workspace> {
        let root = root();
        let metadata = command::metadata(&root, &["--no-deps"])?;
        let target = metadata["target_directory"]
            .as_str()
            .context("cargo metadata names no target directory")?;
        Ok(Workspace {
            target: PathBuf::from(target),
            root,
        })
    }
}

/// The checkout that this xtask was built from.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

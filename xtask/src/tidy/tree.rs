//! The files that the rules look at, and what a rule answers.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use anyhow::{Context as _, Result};

/// Directories that hold nothing of ours.
const SKIPPED: &[&str] = &[".git", "target", "treeline-data", "__pycache__", ".pytest_cache"];

/// What is read; of all other files only the path is known.
const READ: &[&str] = &["rs", "toml", "md", "py", "sql", "sh", "txt", "yml"];

/// What is wrong, where, and how to mend it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Complaint {
    path: String,
    line: usize,
    message: String,
}

impl Complaint {
    /// At a line, counted from 1.
    pub(super) fn new(path: &str, line: usize, message: impl Into<String>) -> Complaint {
        Complaint {
            path: path.to_owned(),
            line,
            message: message.into(),
        }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// One file that was read.
#[derive(Debug)]
pub(super) struct SourceFile {
    /// From the root of the repository, with `/` on every system.
    pub(super) path: String,
    /// All of it.
    pub(super) text: String,
}

impl SourceFile {
    /// Each line with its number, counted from 1.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line))
    }

    /// The part of the name after the last dot.
    pub(super) fn extension(&self) -> &str {
        extension(&self.path)
    }

    /// The first line that only tests run: 1 in a file of tests, the line of the unit tests elsewhere.
    pub(super) fn tests_begin(&self) -> Option<usize> {
        let mut segments = self.path.split('/');
        if segments.any(|segment| matches!(segment, "tests" | "benches" | "tests.rs")) {
            return Some(1);
        }
        let lines: Vec<&str> = self.text.lines().collect();
        let module = |pair: &[&str]| {
            pair[0].trim() == "#[cfg(test)]" && pair[1].starts_with("mod ") && pair[1].ends_with('{')
        };
        lines.windows(2).position(module).map(|index| index + 1)
    }

    /// Whether only tests run this line.
    pub(super) fn in_tests(&self, line: usize) -> bool {
        self.tests_begin().is_some_and(|first| line >= first)
    }
}

/// The repository as the rules see it.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// What was read, in order of the paths.
    pub(super) files: Vec<SourceFile>,
    /// Every file and every directory.
    pub(super) paths: BTreeSet<String>,
}

impl Tree {
    /// Reads what lies under `root`.
    pub(super) fn read(root: &Path) -> Result<Tree> {
        let mut tree = Tree::default();
        tree.walk(root, "")?;
        tree.files.sort_by(|left, right| left.path.cmp(&right.path));
        Ok(tree)
    }

    /// The file at this path, if it was read.
    pub(super) fn file(&self, path: &str) -> Option<&SourceFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The files with this ending.
    pub(super) fn with_extension<'a>(&'a self, wanted: &'a str) -> impl Iterator<Item = &'a SourceFile> {
        self.files.iter().filter(move |file| file.extension() == wanted)
    }

    fn walk(&mut self, directory: &Path, prefix: &str) -> Result<()> {
        let entries = directory
            .read_dir()
            .with_context(|| format!("cannot list {}", directory.display()))?;
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{prefix}{name}");
            if SKIPPED.contains(&name.as_str()) {
                continue;
            }
            if entry.file_type()?.is_dir() {
                self.walk(&entry.path(), &format!("{path}/"))?;
            } else if READ.contains(&extension(&path)) || path == ".ci/run" {
                let text =
                    std::fs::read_to_string(entry.path()).with_context(|| format!("cannot read {path}"))?;
                self.files.push(SourceFile {
                    path: path.clone(),
                    text,
                });
            }
            self.paths.insert(path);
        }
        Ok(())
    }

    /// A repository made up for a test of a rule.
    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Tree {
        let mut tree = Tree::default();
        for (path, text) in files {
            tree.files.push(SourceFile {
                path: (*path).to_owned(),
                text: (*text).to_owned(),
            });
            for (end, _) in path.match_indices('/').chain([(path.len(), "")]) {
                tree.paths.insert(path[..end].to_owned());
            }
        }
        tree
    }
}

fn extension(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map_or("", |(_, extension)| extension)
}

/// The lines that a rule complains of in a made-up repository.
#[cfg(test)]
pub(super) fn complaints_of(rule: fn(&Tree) -> Vec<Complaint>, files: &[(&str, &str)]) -> Vec<String> {
    rule(&Tree::of(files))
        .iter()
        .map(|complaint| format!("{}:{}", complaint.path, complaint.line))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unit_tests_begin_at_their_module_and_files_of_tests_at_their_first_line() {
        let file = |path: &str, text: &str| SourceFile {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let unit = "//! x\nfn f() {}\n#[cfg(test)]\nmod tests {\n}\n";
        assert_eq!(file("crates/core/src/x.rs", unit).tests_begin(), Some(3));
        assert_eq!(
            file("crates/core/src/x.rs", "//! x\n#[cfg(test)]\nmod tests;\n").tests_begin(),
            None
        );
        assert_eq!(
            file("crates/core/src/x/tests.rs", "//! x\n").tests_begin(),
            Some(1)
        );
        assert_eq!(file("crates/core/tests/x.rs", "//! x\n").tests_begin(), Some(1));
    }
}

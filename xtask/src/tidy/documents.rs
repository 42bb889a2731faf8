//! Rules about the documents: what they name must be there.

use super::tree::{Complaint, SourceFile, Tree};

/// Endings by which a word in backticks is taken for the name of a file, with or without its directory.
const ENDINGS: &[&str] = &["rs", "toml", "md", "py", "sql", "tsv", "json", "txt"];

/// Files that documents name and that are not ours: users write them, or other programs have them.
const NOT_OURS: &[&str] = &["treeline.toml", "gravitino.conf"];

/// A document that names a file which has moved sends its reader nowhere.
pub(super) fn named_paths_exist(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for document in tree.files.iter().filter(|file| is_checked(&file.path)) {
        for (line, word) in words_in_backticks(document) {
            if names_a_path(tree, word) && !exists(tree, word) {
                complaints.push(Complaint::new(
                    &document.path,
                    line,
                    format!("there is no `{word}`; name what is there"),
                ));
            }
        }
    }
    complaints
}

/// Releases are cut from it.
pub(super) fn the_changelog_has_a_heading(tree: &Tree) -> Vec<Complaint> {
    const PATH: &str = "CHANGELOG.md";
    let Some(file) = tree.file(PATH) else {
        return vec![Complaint::new(
            PATH,
            1,
            "write a CHANGELOG.md for the users of the server",
        )];
    };
    let heading = |line: &str| {
        let title = line
            .strip_prefix("## ")
            .map(|title| title.trim_start_matches('['));
        title.is_some_and(|title| {
            title.starts_with("Unreleased") || title.starts_with(|c: char| c.is_ascii_digit())
        })
    };
    if file.lines().any(|(_, line)| heading(line)) {
        Vec::new()
    } else {
        vec![Complaint::new(
            PATH,
            1,
            "add a heading `## [Unreleased]` or `## [x.y.z] - date`",
        )]
    }
}

/// All documents must stay true, but those that are history and may name what was: decision records and changes.
fn is_checked(path: &str) -> bool {
    path.ends_with(".md") && path != "CHANGELOG.md" && !path.starts_with("docs/adr/")
}

/// What stands in single backticks, outside of fenced blocks, with its line.
pub(super) fn words_in_backticks(file: &SourceFile) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    let mut fenced = false;
    for (number, line) in file.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            words.extend(line.split('`').skip(1).step_by(2).map(|word| (number, word)));
        }
    }
    words
}

/// Whether the word means a file or a directory of this repository: `crates/core`, `docs/invariants.md`, `deny.toml`,
/// but neither `/api/version` nor `application/json`.
fn names_a_path(tree: &Tree, word: &str) -> bool {
    let plain = |character: char| character.is_ascii_alphanumeric() || "._-/".contains(character);
    if word.is_empty() || word.starts_with('/') || word.starts_with('.') && !word.starts_with(".c") {
        return false;
    }
    if !word.chars().all(plain) || NOT_OURS.contains(&word) {
        return false;
    }
    let first = word.split('/').next().unwrap_or(word);
    let from_the_root = word.contains('/') && tree.paths.contains(first);
    let ending = word.rsplit_once('.').map(|(_, ending)| ending);
    from_the_root || ending.is_some_and(|ending| ENDINGS.contains(&ending))
}

fn exists(tree: &Tree, word: &str) -> bool {
    let word = word.trim_end_matches('/');
    let inside = format!("/{word}");
    tree.paths
        .iter()
        .any(|path| path == word || path.ends_with(&inside))
}

#[cfg(test)]
mod tests {
    use super::super::tree::complaints_of;
    use super::*;

    #[test]
    fn a_path_that_is_not_there_is_found() {
        let text = "see `crates/core/src/gone.rs`\n`crates/core/src/name.rs`, `crates/core/` and `name.rs`\n`gone.md`\n\
            ```\n`also/gone.rs`\n```\n`/api/gone.json` `application/json` `a b.rs` `v{n}.rs` `treeline.toml`\n";
        for document in [
            "ARCHITECTURE.md",
            "docs/servers.md",
            "docs/operations/faults.md",
            "crates/core/README.md",
            "tests/history/README.md",
        ] {
            let found = complaints_of(
                named_paths_exist,
                &[("crates/core/src/name.rs", ""), (document, text)],
            );
            assert_eq!(found, [format!("{document}:1"), format!("{document}:3")]);
        }
        for history in ["docs/adr/0001-old.md", "CHANGELOG.md"] {
            assert!(complaints_of(named_paths_exist, &[(history, text)]).is_empty());
        }
    }

    #[test]
    fn a_changelog_without_a_heading_is_found() {
        let of = |text: &str| complaints_of(the_changelog_has_a_heading, &[("CHANGELOG.md", text)]).len();
        assert_eq!(of("# Changelog\n"), 1);
        assert_eq!(of("# Changelog\n## [Unreleased]\n"), 0);
        assert_eq!(of("# Changelog\n## 0.1.0 - 2026-08-22\n"), 0);
        assert_eq!(complaints_of(the_changelog_has_a_heading, &[]).len(), 1);
    }
}

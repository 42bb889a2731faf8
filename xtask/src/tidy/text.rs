//! Rules about single lines and whole files: the header, the length, what must not be left over.

use super::tree::{Complaint, SourceFile, Tree};

/// Files below this many lines need no explanation.
const LINES_MAX: usize = 400;

/// Longer files, each with the reason why splitting it would not help its reader.
const LONG_FILES: &[(&str, &str)] = &[];

/// Words that mean "later". Written in two parts, or this file would be the first to be found.
const MARKS: &[&str] = &[
    concat!("FIX", "ME"),
    concat!("TO", "DO"),
    concat!("X", "XX"),
    concat!("to", "do!("),
    concat!("unimple", "mented!("),
];

/// A reader must learn from the first lines what lives in a file and why it is apart.
pub(super) fn every_file_opens_with_its_header(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for file in tree.with_extension("rs") {
        let included = file.path.ends_with("/lib.rs") && file.text.starts_with("#![doc = include_str!(");
        if !file.text.starts_with("//!") && !included {
            complaints.push(Complaint::new(
                &file.path,
                1,
                "open the file with `//!`: what lives here, and why",
            ));
        }
    }
    for file in tree.with_extension("py") {
        if !file.text.starts_with("\"\"\"") {
            complaints.push(Complaint::new(&file.path, 1, "open the file with its docstring"));
        }
    }
    complaints
}

/// White space at the end of a line shows up in later diffs as somebody else's change.
pub(super) fn no_line_ends_in_white_space(tree: &Tree) -> Vec<Complaint> {
    lines_where(
        tree,
        |line| line.ends_with([' ', '\t', '\r']),
        "remove the white space at the end of the line",
    )
}

/// So that appending a line to a file changes one line.
pub(super) fn every_file_ends_with_one_newline(tree: &Tree) -> Vec<Complaint> {
    let wrong = |file: &&SourceFile| {
        !file.text.is_empty() && (!file.text.ends_with('\n') || file.text.ends_with("\n\n"))
    };
    let complain = |file: &SourceFile| {
        Complaint::new(
            &file.path,
            file.text.lines().count(),
            "end the file with exactly one newline",
        )
    };
    tree.files.iter().filter(wrong).map(complain).collect()
}

/// A file that outgrows one screenful of attention usually has two reasons to change.
pub(super) fn files_are_short(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for file in tree
        .files
        .iter()
        .filter(|file| matches!(file.extension(), "rs" | "py"))
    {
        let lines = file.text.lines().count();
        let excused = LONG_FILES.iter().any(|(path, _)| *path == file.path);
        if lines >= LINES_MAX && !excused {
            let message =
                format!("{lines} lines; split it below {LINES_MAX}, or say in xtask's LONG_FILES why not");
            complaints.push(Complaint::new(&file.path, LINES_MAX, message));
        } else if lines < LINES_MAX && excused {
            complaints.push(Complaint::new(
                &file.path,
                1,
                "short enough again: take it out of xtask's LONG_FILES",
            ));
        }
    }
    complaints
}

/// What is not done belongs in an issue, where somebody looks for it.
pub(super) fn nothing_is_left_for_later(tree: &Tree) -> Vec<Complaint> {
    let marked = |line: &str| MARKS.iter().any(|mark| has_word(line, mark));
    lines_where(tree, marked, "do it now, or open an issue and remove the mark")
}

/// One word per concept: entities are dropped, rows are purged, relations are detached.
pub(super) fn entities_are_dropped(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for file in tree
        .with_extension("rs")
        .filter(|file| file.path.starts_with("crates/"))
    {
        for (number, line) in file.lines() {
            let code = line.trim_start();
            let public = code.starts_with("pub fn ") || code.starts_with("pub async fn ");
            if public && code.contains("fn delete") {
                complaints.push(Complaint::new(
                    &file.path,
                    number,
                    "call it drop, purge or detach: see ARCHITECTURE.md",
                ));
            }
        }
    }
    complaints
}

fn lines_where(tree: &Tree, wrong: impl Fn(&str) -> bool, message: &str) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for file in &tree.files {
        // Not `lines()`, which takes a carriage return for part of the line's end.
        for (index, line) in file.text.split('\n').enumerate() {
            if wrong(line) {
                complaints.push(Complaint::new(&file.path, index + 1, message));
            }
        }
    }
    complaints
}

/// Whether the word stands there and is not a part of another.
fn has_word(line: &str, word: &str) -> bool {
    let part_of_word = |character: char| character.is_alphanumeric() || character == '_';
    line.match_indices(word).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + word.len()..].chars().next();
        let open_ended = word.ends_with('(');
        !before.is_some_and(part_of_word) && (open_ended || !after.is_some_and(part_of_word))
    })
}

#[cfg(test)]
mod tests {
    use super::super::tree::complaints_of;
    use super::*;

    #[test]
    fn a_file_without_its_header_is_found() {
        let files = [
            ("crates/core/src/a.rs", "use std::fmt;\n"),
            ("crates/core/src/b.rs", "//! Fine.\n"),
            (
                "crates/core/src/lib.rs",
                "#![doc = include_str!(\"../README.md\")]\n",
            ),
            (
                "crates/core/src/c.rs",
                "#![doc = include_str!(\"../README.md\")]\n",
            ),
            ("tests/python/a.py", "import os\n"),
        ];
        let found = complaints_of(every_file_opens_with_its_header, &files);
        assert_eq!(
            found,
            [
                "crates/core/src/a.rs:1",
                "crates/core/src/c.rs:1",
                "tests/python/a.py:1"
            ]
        );
    }

    #[test]
    fn white_space_at_the_end_of_a_line_is_found() {
        let files = [
            ("a.md", "fine\nnot fine \n"),
            ("b.rs", "//! x\r\n"),
            ("c.rs", "//! x\n\t\n"),
        ];
        assert_eq!(
            complaints_of(no_line_ends_in_white_space, &files),
            ["a.md:2", "b.rs:1", "c.rs:2"]
        );
    }

    #[test]
    fn a_missing_and_a_doubled_newline_at_the_end_are_found() {
        let files = [("a.md", "x"), ("b.md", "x\n\n"), ("c.md", "x\n"), ("d.md", "")];
        assert_eq!(
            complaints_of(every_file_ends_with_one_newline, &files),
            ["a.md:1", "b.md:2"]
        );
    }

    #[test]
    fn a_long_file_is_found_and_a_file_just_below_is_not() {
        let long = "//! x\n".repeat(LINES_MAX);
        let short = "//! x\n".repeat(LINES_MAX - 1);
        let files = [
            ("crates/a.rs", long.as_str()),
            ("crates/b.rs", short.as_str()),
            ("docs/a.md", long.as_str()),
        ];
        assert_eq!(complaints_of(files_are_short, &files), ["crates/a.rs:400"]);
    }

    #[test]
    fn a_mark_for_later_is_found_and_a_longer_word_is_not() {
        let text = format!(
            "//! x\n// {}: later\n// {}S\n{}\"x\")\n",
            MARKS[1], MARKS[1], MARKS[3]
        );
        assert_eq!(
            complaints_of(nothing_is_left_for_later, &[("a.rs", &text)]),
            ["a.rs:2", "a.rs:4"]
        );
    }

    #[test]
    fn a_public_delete_is_found_and_the_http_verb_is_not() {
        let text = "//! x\n    pub async fn delete_schema(&self) {}\n    router.delete(drop_schema)\nfn delete() {}\n";
        assert_eq!(
            complaints_of(entities_are_dropped, &[("crates/a.rs", text)]),
            ["crates/a.rs:2"]
        );
        assert!(complaints_of(entities_are_dropped, &[("tests/a.rs", text)]).is_empty());
    }
}

//! The rule that every statement stands once, under a name, where its rendered form is snapshotted.

use super::tree::{Complaint, Tree};

/// Where statements stand. What differs by dialect is data of the dialect, and is seen in the rendered snapshots.
const HOMES: &[&str] = &[
    "crates/storage/src/sql/",
    "crates/storage/src/dialect/",
    "crates/storage/migrations/",
];

/// Where else a statement may be written, and why.
const EXCEPTIONS: &[(&str, &str)] = &[
    (
        "crates/storage/src/migrate.rs",
        "it works on a database that has none of our tables yet",
    ),
    (
        "crates/storage/src/network/connection.rs",
        "it asks the server what it is, before a dialect is known",
    ),
    (
        "crates/storage/src/network/frame.rs",
        "what stands around every transaction, and is no part of any",
    ),
    (
        "crates/storage/src/network/survey.rs",
        "it asks one sort of server what that alone has",
    ),
    (
        "tests/random/failover.rs",
        "it asks PostgreSQL what it does for its standby, and promotes that, which no protocol does",
    ),
    (
        "tests/api/damage.rs",
        "it damages a database by hand, which takes statements that no protocol has",
    ),
];

/// Beginnings of statements: a word, and what may follow it (anything where nothing is named).
const BEGINNINGS: &[(&str, &[&str])] = &[
    ("SELECT", &[]),
    ("INSERT", &["INTO", "OR", "IGNORE"]),
    ("UPDATE", &[]),
    ("DELETE", &["FROM"]),
    ("CREATE", &["TABLE", "INDEX", "UNIQUE", "VIEW", "TRIGGER"]),
    ("ALTER", &["TABLE"]),
    ("DROP", &["TABLE", "INDEX"]),
];

/// A reviewer must find all SQL in one place, and see what each dialect makes of it. Tests of the storage crate are
/// excepted: damaging a database by hand takes statements that no protocol has.
pub(super) fn statements_stand_in_one_place(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for file in tree.with_extension("rs") {
        let at_home = HOMES.iter().any(|home| file.path.starts_with(home));
        let excepted = EXCEPTIONS.iter().any(|(path, _)| *path == file.path);
        if at_home || excepted {
            continue;
        }
        for (number, line) in file.lines() {
            let storage_test = file.path.starts_with("crates/storage/") && file.in_tests(number);
            let inside_a_longer_literal = begins_a_statement(line);
            if !storage_test && (inside_a_longer_literal || literals(line).any(begins_a_statement)) {
                let message = "move the statement to crates/storage/src/sql, give it a name and snapshot it";
                complaints.push(Complaint::new(&file.path, number, message));
            }
        }
    }
    complaints
}

/// What follows each quotation mark of a line; that the closing ones are among them does no harm.
fn literals(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices('"').map(|(start, _)| &line[start + 1..])
}

fn begins_a_statement(text: &str) -> bool {
    let text = text.trim_start_matches([' ', '\\', '(']);
    BEGINNINGS.iter().any(|(word, followers)| {
        let rest = text.strip_prefix(word).and_then(|rest| rest.strip_prefix(' '));
        rest.is_some_and(|rest| {
            followers.is_empty() || followers.iter().any(|follower| rest.starts_with(follower))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::tree::complaints_of;
    use super::*;

    fn planted(word: &str, follower: &str) -> String {
        format!("//! x\nlet text = \"{word} {follower} things\";\n")
    }

    #[test]
    fn a_statement_outside_its_home_is_found() {
        for (word, followers) in BEGINNINGS {
            let text = planted(word, followers.first().copied().unwrap_or("*"));
            assert_eq!(
                complaints_of(
                    statements_stand_in_one_place,
                    &[("crates/dispatch/src/a.rs", &text)]
                ),
                ["crates/dispatch/src/a.rs:2"],
                "{word}"
            );
            assert_eq!(
                complaints_of(
                    statements_stand_in_one_place,
                    &[("crates/storage/src/read.rs", &text)]
                ),
                ["crates/storage/src/read.rs:2"],
                "{word}"
            );
        }
    }

    #[test]
    fn a_statement_that_begins_on_the_second_line_of_a_literal_is_found() {
        let text = format!("//! x\nlet text = r#\"\n    {} id FROM things\"#;\n", "SELECT");
        let found = complaints_of(
            statements_stand_in_one_place,
            &[("crates/dispatch/src/a.rs", &text)],
        );
        assert_eq!(found, ["crates/dispatch/src/a.rs:3"]);
    }

    #[test]
    fn statements_at_home_in_tests_of_the_storage_and_in_prose_are_let_pass() {
        let text = planted("SELECT", "*");
        for path in [
            "crates/storage/src/sql/entity.rs",
            "crates/storage/tests/damage.rs",
        ] {
            assert!(
                complaints_of(statements_stand_in_one_place, &[(path, &text)]).is_empty(),
                "{path}"
            );
        }
        let prose =
            "//! x\n// SELECT is a word here\nlet method = \"DELETE\";\nlet text = \"CREATE a schema\";\n";
        assert!(complaints_of(statements_stand_in_one_place, &[("crates/a.rs", prose)]).is_empty());
    }
}

//! Rules about tests that do not run, and about tests that wait for luck.

use super::tree::{Complaint, SourceFile, Tree};

/// Written in two parts each, or this file would be the first to be found.
const SWITCHED_OFF: &[&str] = &[
    concat!("#[ign", "ore"),
    concat!("should_", "panic"),
    concat!("pytest.sk", "ip"),
    concat!("mark.sk", "ip"),
    concat!("mark.xf", "ail"),
    concat!("pytest.xf", "ail"),
    concat!("importor", "skip"),
];

/// Whatever it is a function of.
const REST: &str = concat!("sl", "eep(");

/// Where a test may rest, and why that is no synchronisation. One place for each language is meant to be enough.
const MAY_REST: &[(&str, &str)] = &[
    (
        "crates/locks/tests/suite/cell_failures.rs",
        "its clock is tokio's, paused: a rest takes no time",
    ),
    (
        "tests/python/harness.py",
        "`poll`, the one loop that asks again until a deadline",
    ),
    (
        "tests/harness/server.rs",
        "waits for a process: asks again until a deadline",
    ),
    (
        "tests/random/failover.rs",
        "so long nobody notices that a primary is gone; nothing is taken for done because of it",
    ),
    (
        "tests/random/fault.rs",
        "a fault begins after a while and lasts a while; nothing is taken for done because of it",
    ),
    (
        "tests/random/node.rs",
        "a node is away for a while; nothing is taken for done because of it",
    ),
];

/// A test that does not run passes for one that does.
pub(super) fn no_test_is_switched_off(tree: &Tree) -> Vec<Complaint> {
    let everywhere = |_: &SourceFile, _: usize| true;
    lines_with(
        tree,
        |line| SWITCHED_OFF.iter().any(|word| line.contains(word)),
        everywhere,
        "run the test or remove it; assert what is answered, not that it panics",
    )
}

/// A rest is too short on a loaded machine and too long on every other.
pub(super) fn no_test_rests(tree: &Tree) -> Vec<Complaint> {
    let not_excused = |file: &SourceFile, line: usize| {
        file.in_tests(line) && !MAY_REST.iter().any(|(path, _)| *path == file.path)
    };
    let message =
        "poll with a deadline (the harness has a function for it), or use a barrier or a sync point";
    lines_with(tree, rests, not_excused, message)
}

/// Whether the word stands there by itself, and not as the end of another.
fn rests(line: &str) -> bool {
    let is_of_a_name = |before: char| before.is_alphanumeric() || before == '_';
    line.match_indices(REST)
        .any(|(at, _)| !line[..at].ends_with(is_of_a_name))
}

fn lines_with(
    tree: &Tree,
    is_found: impl Fn(&str) -> bool,
    counts: impl Fn(&SourceFile, usize) -> bool,
    message: &str,
) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for file in tree
        .files
        .iter()
        .filter(|file| matches!(file.extension(), "rs" | "py"))
    {
        for (number, line) in file.lines() {
            if is_found(line) && counts(file, number) {
                complaints.push(Complaint::new(&file.path, number, message));
            }
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::super::tree::complaints_of;
    use super::*;

    #[test]
    fn a_test_that_is_switched_off_is_found() {
        for word in SWITCHED_OFF {
            let text = format!("//! x\n{word}\n");
            assert_eq!(
                complaints_of(no_test_is_switched_off, &[("a.rs", &text)]),
                ["a.rs:2"],
                "{word}"
            );
        }
    }

    #[test]
    fn a_rest_is_found_in_tests_and_let_pass_where_it_is_explained() {
        for of in ["", "thread::", "tokio::time::", "time."] {
            let rest = format!("{of}{REST}a)");
            let unit = format!("//! x\nfn f() {{ {rest} }}\n#[cfg(test)]\nmod tests {{\n{rest}\n}}\n");
            assert_eq!(
                complaints_of(no_test_rests, &[("crates/a.rs", &unit)]),
                ["crates/a.rs:5"],
                "{rest}"
            );
            assert_eq!(
                complaints_of(no_test_rests, &[("tests/a.rs", &unit)]),
                ["tests/a.rs:2", "tests/a.rs:5"]
            );
            assert!(complaints_of(no_test_rests, &[("tests/harness/server.rs", &unit)]).is_empty());
        }
        let other = format!("//! x\nfn never_{REST}) {{}}\n");
        assert!(complaints_of(no_test_rests, &[("tests/a.rs", &other)]).is_empty());
    }
}

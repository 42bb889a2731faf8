//! The rule that pairs the lists of faults: what `cargo xtask itest --faults` runs, what the random clients can suffer, and
//! what the page tells operators of.

use std::collections::BTreeMap;

use super::tree::{Complaint, SourceFile, Tree};

/// What is run, and where that means anything.
const RUN: &str = "xtask/src/itest/faults.rs";
const RUN_BEGINS: &str = "const FAULTS: ";

/// What can be suffered.
const SUFFERED: &str = "tests/random/fault.rs";
const SUFFERED_BEGINS: &str = "const ALL: ";

/// A table whose first cells end with the name.
const TOLD: &str = "docs/operations/faults.md";

/// A fault that is on one of the lists is on all.
pub(super) fn each_is_run_suffered_and_told(tree: &Tree) -> Vec<Complaint> {
    let files = [RUN, SUFFERED, TOLD].map(|path| tree.file(path));
    let [Some(run), Some(suffered), Some(told)] = files else {
        return Vec::new();
    };
    let lists = [
        (RUN, listed(run, RUN_BEGINS)),
        (SUFFERED, listed(suffered, SUFFERED_BEGINS)),
        (TOLD, rows(told)),
    ];
    let mut complaints = Vec::new();
    for (path, names) in &lists {
        if names.is_empty() {
            complaints.push(Complaint::new(path, 1, "the rule of tidy finds no fault here"));
        }
        for (other, others) in &lists {
            let lost = names.iter().filter(|(name, _)| !others.contains_key(*name));
            complaints.extend(lost.map(|(name, line)| {
                Complaint::new(
                    path,
                    *line,
                    format!("{other} has no fault `{name}`; add it there"),
                )
            }));
        }
    }
    complaints
}

/// The names that a constant lists, each the first of a pair, with their lines.
fn listed(file: &SourceFile, begins: &str) -> BTreeMap<String, usize> {
    let from = file.lines().skip_while(|(_, text)| !text.contains(begins));
    from.take_while(|(_, text)| text.trim() != "];")
        .filter_map(|(line, text)| {
            let (name, _) = text.trim().strip_prefix("(\"")?.split_once('"')?;
            Some((name.to_owned(), line))
        })
        .collect()
}

/// The names of the page: `| what goes wrong (`name`) | … |`.
fn rows(file: &SourceFile) -> BTreeMap<String, usize> {
    file.lines()
        .filter_map(|(line, text)| {
            let (cell, _) = text.strip_prefix("| ")?.split_once(" |")?;
            let (_, name) = cell.strip_suffix("`)")?.rsplit_once("(`")?;
            Some((name.to_owned(), line))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tree::complaints_of;
    use super::*;

    fn complaints(run: &[&str], suffered: &[&str], told: &[&str]) -> Vec<String> {
        let lines = |names: &[&str], line: fn(&str) -> String| -> String {
            names.iter().map(|name| line(name)).collect()
        };
        let run = lines(run, |name| format!("    (\"{name}\", &BACKENDS),\n"));
        let run = format!("//! x\n{RUN_BEGINS}[(&str, &[&str]); 2] = [\n{run}];\n(\"no-fault\", 1)\n");
        let suffered = lines(suffered, |name| format!("        (\"{name}\", Fault::X),\n"));
        let suffered = format!("//! x\n    {SUFFERED_BEGINS}[(&str, Fault); 2] = [\n{suffered}    ];\n");
        let told = lines(told, |name| {
            format!("| it dies (`kill -9`) (`{name}`) | nothing |\n")
        });
        let told = format!("# Faults\n\n| the log is full | nothing |\n{told}");
        complaints_of(
            each_is_run_suffered_and_told,
            &[(RUN, &run), (SUFFERED, &suffered), (TOLD, &told)],
        )
    }

    #[test]
    fn three_lists_of_the_same_faults_are_in_order() {
        let both = ["server-killed", "disk-full"];
        assert!(complaints(&both, &both, &both).is_empty());
    }

    #[test]
    fn a_fault_that_is_on_one_list_alone_is_found_against_both_others() {
        let (one, both) = (["server-killed"], ["server-killed", "disk-full"]);
        let (run, suffered, told) = (format!("{RUN}:4"), format!("{SUFFERED}:4"), format!("{TOLD}:5"));
        assert_eq!(complaints(&both, &one, &one), [run.as_str(), run.as_str()]);
        assert_eq!(
            complaints(&one, &both, &one),
            [suffered.as_str(), suffered.as_str()]
        );
        assert_eq!(complaints(&one, &one, &both), [told.as_str(), told.as_str()]);
        assert_eq!(complaints(&both, &both, &one), [run, suffered]);
    }

    #[test]
    fn a_list_that_cannot_be_read_is_found() {
        let one = ["server-killed"];
        assert_eq!(complaints(&one, &one, &[]).last(), Some(&format!("{TOLD}:1")));
    }
}

//! The rules of this repository that no compiler checks, as small functions over its files.
//!
//! `cargo xtask tidy` and `cargo test -p xtask` run the same rules. Each rule says what is wrong at which line, and
//! how to mend it; the tests of each show it a planted violation.

mod documents;
mod faults;
mod invariants;
mod licences;
mod manifests;
mod patience;
mod races;
mod spdx;
mod sql;
mod text;
mod tree;

use anyhow::{Result, bail};

use crate::workspace::Workspace;
use tree::{Complaint, Tree};

type Rule = fn(&Tree) -> Vec<Complaint>;

const RULES: &[Rule] = &[
    text::every_file_opens_with_its_header,
    text::no_line_ends_in_white_space,
    text::every_file_ends_with_one_newline,
    text::files_are_short,
    text::nothing_is_left_for_later,
    text::entities_are_dropped,
    patience::no_test_is_switched_off,
    patience::no_test_rests,
    sql::statements_stand_in_one_place,
    manifests::members_inherit,
    manifests::shared_dependencies_are_used,
    manifests::layers_hold,
    documents::named_paths_exist,
    documents::the_changelog_has_a_heading,
    invariants::each_is_enforced_and_tested,
    invariants::no_other_is_named,
    races::each_row_has_its_test,
    races::each_test_shows_a_row,
    faults::each_is_run_suffered_and_told,
];

/// Prints every complaint, and fails if there is one.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let complaints = complaints(workspace)?;
    for complaint in &complaints {
        println!("{complaint}");
    }
    match complaints.len() {
        0 => Ok(()),
        1 => bail!("tidy has 1 complaint"),
        several => bail!("tidy has {several} complaints"),
    }
}

fn complaints(workspace: &Workspace) -> Result<Vec<Complaint>> {
    let tree = Tree::read(&workspace.root)?;
    let mut complaints: Vec<Complaint> = RULES.iter().flat_map(|rule| rule(&tree)).collect();
    complaints.extend(licences::check(&workspace.root)?);
    complaints.sort();
    Ok(complaints)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_tidy() {
        let workspace = Workspace::find().unwrap();
        let complaints: Vec<String> = complaints(&workspace)
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
    }
}

//! The rules that pair `docs/races.md` with the suite of two servers: every row is shown by a test that is named after
//! it, and every test there shows a row.

use std::collections::BTreeMap;

use super::tree::{Complaint, Tree};

/// Tables whose lines begin with an id.
const LIST: &str = "docs/races.md";

/// Where the tests are.
const SUITE: &str = "tests/two_servers/";

/// In two parts, or the ids that the tests below make up would count.
const PREFIX: &str = concat!("R", "-");

/// What a line says whose row waits for something that is not there; the reason follows.
const NOT_YET: &str = "Not yet:";

/// Every row has its test, unless the line says what it waits for; then it has none.
pub(super) fn each_row_has_its_test(tree: &Tree) -> Vec<Complaint> {
    let tests = tests(tree);
    let mut complaints = Vec::new();
    for (id, line, waits) in rows(tree) {
        let message = match (tests.contains_key(&id), waits) {
            (true, false) | (false, true) => continue,
            (false, false) => {
                let function = id.to_lowercase().replace('-', "_");
                format!("no test in {SUITE} is called `{function}_…`; write it, or say `{NOT_YET}` and why")
            }
            (true, true) => format!("there is a test for it; take out `{NOT_YET}`"),
        };
        complaints.push(Complaint::new(LIST, line, format!("{id}: {message}")));
    }
    complaints
}

/// A test under a name that no row has shows nothing that anybody asked for.
pub(super) fn each_test_shows_a_row(tree: &Tree) -> Vec<Complaint> {
    let known: Vec<String> = rows(tree).into_iter().map(|(id, _, _)| id).collect();
    let tests = tests(tree).into_iter();
    tests
        .filter(|(id, _)| !known.contains(id))
        .map(|(id, (path, line))| {
            Complaint::new(&path, line, format!("{LIST} has no row {id}; add it there"))
        })
        .collect()
}

/// The ids of the list, the line of each, and whether it waits for something.
fn rows(tree: &Tree) -> Vec<(String, usize, bool)> {
    let Some(list) = tree.file(LIST) else {
        return Vec::new();
    };
    list.lines()
        .filter_map(|(line, text)| {
            let id = text.strip_prefix("| ")?.split(' ').next()?;
            let is_row = id.starts_with(PREFIX) && text.matches('|').count() > 2;
            is_row.then(|| (id.to_owned(), line, text.contains(NOT_YET)))
        })
        .collect()
}

/// The ids that functions of the suite are named after, each with the first such function's place.
fn tests(tree: &Tree) -> BTreeMap<String, (String, usize)> {
    let mut tests = BTreeMap::new();
    for file in tree.files.iter().filter(|file| file.path.starts_with(SUITE)) {
        for (line, text) in file.lines() {
            let Some((_, name)) = text.split_once("fn r_") else {
                continue;
            };
            let words: Vec<&str> = name.split('_').take(2).collect();
            let id = format!("{PREFIX}{}", words.join("-").to_uppercase());
            tests.entry(id).or_insert((file.path.clone(), line));
        }
    }
    tests
}

#[cfg(test)]
mod tests {
    use super::super::tree::complaints_of;
    use super::*;

    const TEST: &str = "tests/two_servers/create.rs";

    fn complaints(line: &str, test: &str) -> (usize, Vec<String>) {
        let list = format!("# Races\n\n| id | holds |\n|---|---|\n{line}\n");
        let files = [(LIST, list.as_str()), (TEST, test)];
        (
            complaints_of(each_row_has_its_test, &files).len(),
            complaints_of(each_test_shows_a_row, &files),
        )
    }

    #[test]
    fn a_row_and_a_test_of_one_id_belong_together() {
        let row = format!("| {PREFIX}CREATE-1 | one x |");
        let test = "//! x\nasync fn r_create_1_the_first_wins(race: &mut Race) {}\n";
        assert_eq!(complaints(&row, test), (0, Vec::new()));
    }

    #[test]
    fn a_row_without_a_test_is_found_unless_it_says_what_it_waits_for() {
        let row = format!("| {PREFIX}CREATE-1 | one x |");
        let waiting = format!("| {PREFIX}CREATE-1 | {NOT_YET} tables |");
        let other = "//! x\nasync fn r_create_10_the_first_wins(race: &mut Race) {}\n";
        let test = "//! x\nasync fn r_create_1_the_first_wins(race: &mut Race) {}\n";
        assert_eq!(complaints(&row, other), (1, vec![format!("{TEST}:2")]));
        assert_eq!(complaints(&waiting, "//! x\n"), (0, Vec::new()));
        assert_eq!(complaints(&waiting, test), (1, Vec::new()));
    }
}

//! The rules that pair `docs/invariants.md` with the code: every invariant is enforced at a line that names it and
//! shown by a test, whose name is the claim; and no other invariant is named anywhere.

use super::tree::{Complaint, SourceFile, Tree};

/// A table: id, statement, the files that enforce it, the tests that show it; files and tests in backticks.
const LIST: &str = "docs/invariants.md";

/// In two parts, or the ids that the tests below make up would count.
const PREFIX: &str = concat!("IN", "V-");

/// Every line of the list names files that enforce the invariant, and name it, and tests that show it.
pub(super) fn each_is_enforced_and_tested(tree: &Tree) -> Vec<Complaint> {
    let Some(list) = tree.file(LIST) else {
        return vec![Complaint::new(
            LIST,
            1,
            "write the table of invariants: id, statement, enforced in, shown by",
        )];
    };
    let rows = rows(list);
    if rows.is_empty() {
        return vec![Complaint::new(
            LIST,
            1,
            "the table has no line that begins with an id",
        )];
    }
    let flaws = |row: &Row<'_>| {
        let flaws = row.flaws(tree);
        let complain = |flaw: String| Complaint::new(LIST, row.line, format!("{}: {flaw}", row.id));
        flaws.into_iter().map(complain).collect::<Vec<_>>()
    };
    rows.iter().flat_map(flaws).collect()
}

/// An id that the list does not know says nothing to a reader. Decision records are history and may name what was.
pub(super) fn no_other_is_named(tree: &Tree) -> Vec<Complaint> {
    let Some(listed) = tree.file(LIST).map(rows) else {
        return Vec::new();
    };
    let written = |file: &&SourceFile| matches!(file.extension(), "rs" | "py" | "sql" | "md");
    let current = |file: &&SourceFile| !file.path.starts_with("docs/adr/");
    let mut complaints = Vec::new();
    for file in tree.files.iter().filter(written).filter(current) {
        for (number, line) in file.lines() {
            for id in ids(line).filter(|id| !listed.iter().any(|row| row.id == *id)) {
                let message = format!("{id} is not in {LIST}; add it there");
                complaints.push(Complaint::new(&file.path, number, message));
            }
        }
    }
    complaints
}

/// One line of the table.
struct Row<'a> {
    line: usize,
    id: &'a str,
    files: Vec<&'a str>,
    tests: Vec<&'a str>,
}

impl Row<'_> {
    fn flaws(&self, tree: &Tree) -> Vec<String> {
        let mut flaws = Vec::new();
        if self.files.is_empty() {
            flaws.push("name the file that enforces it, in backticks, in the third column".to_owned());
        }
        for path in &self.files {
            match tree.file(path) {
                None => flaws.push(format!("there is no file `{path}`")),
                Some(file) if !self.is_named_in(file) => {
                    flaws.push(format!(
                        "name it in a comment of `{path}`, at the line that enforces it"
                    ));
                }
                Some(_) => {}
            }
        }
        if self.tests.is_empty() {
            flaws.push("name the test that shows it, in backticks, in the last column".to_owned());
        }
        for test in &self.tests {
            if !tree.files.iter().any(|file| defines(file, test)) {
                flaws.push(format!("there is no test `{test}`"));
            }
        }
        flaws
    }

    fn is_named_in(&self, file: &SourceFile) -> bool {
        ids(&file.text).any(|id| id == self.id)
    }
}

fn rows(list: &SourceFile) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    for (line, text) in list.lines() {
        let cells: Vec<&str> = text.trim().trim_matches('|').split('|').map(str::trim).collect();
        let [id, _, files, .., tests] = cells.as_slice() else {
            continue;
        };
        if let Some(id) = ids(id).next() {
            rows.push(Row {
                line,
                id,
                files: in_backticks(files),
                tests: in_backticks(tests),
            });
        }
    }
    rows
}

/// The words between backticks; of a path of modules, the last part.
fn in_backticks(cell: &str) -> Vec<&str> {
    let words = cell.split('`').skip(1).step_by(2);
    words
        .map(|word| word.rsplit("::").next().unwrap_or(word))
        .collect()
}

fn defines(file: &SourceFile, test: &str) -> bool {
    let definitions: &[&str] = match file.extension() {
        "rs" => &["fn "],
        "py" => &["def "],
        _ => &[],
    };
    definitions
        .iter()
        .any(|keyword| file.text.contains(&format!("{keyword}{test}(")))
}

/// Every id that a text names, digits and all, so that the tenth is not taken for the first.
fn ids(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices(PREFIX).filter_map(|(start, prefix)| {
        let rest = &text[start + prefix.len()..];
        let digits = rest.len()
            - rest
                .trim_start_matches(|character: char| character.is_ascii_digit())
                .len();
        (digits > 0).then(|| &text[start..start + prefix.len() + digits])
    })
}

#[cfg(test)]
mod tests {
    use super::super::tree::complaints_of;
    use super::*;

    const CODE: &str = "crates/storage/src/lock.rs";
    const TEST: &str = "crates/storage/tests/suite.rs";

    fn id(number: u32) -> String {
        format!("{PREFIX}{number}")
    }

    fn table(row: &str) -> String {
        format!("# Invariants\n\n| id | statement | enforced in | shown by |\n|---|---|---|---|\n{row}\n")
    }

    fn complaints(row: &str, code: &str, test: &str) -> (usize, Vec<String>) {
        let table = table(row);
        let files = [(CODE, code), (TEST, test), (LIST, table.as_str())];
        (
            complaints_of(each_is_enforced_and_tested, &files).len(),
            complaints_of(no_other_is_named, &files),
        )
    }

    #[test]
    fn an_invariant_with_its_line_and_its_test_is_let_pass() {
        let row = format!("| {} | a parent lives | `{CODE}` | `suite::it_holds` |", id(1));
        let code = format!("//! x\n// {}\n", id(1));
        let test = format!("//! x\n/// {}\nfn it_holds() {{}}\n", id(1));
        assert_eq!(complaints(&row, &code, &test), (0, Vec::new()));
    }

    #[test]
    fn a_missing_test_and_a_file_that_does_not_name_the_invariant_are_found() {
        let row = format!("| {} | a parent lives | `{CODE}` | `it_holds` |", id(1));
        let code = format!("//! x\n// {}\n", id(1));
        let test = format!("//! x\n/// {}\nfn it_holds() {{}}\n", id(1));
        assert_eq!(complaints(&row, "//! x\n", &test).0, 1, "the code is silent");
        assert_eq!(
            complaints(&row, &code, &test.replace("it_holds", "it_is")).0,
            1,
            "no such test"
        );
        assert_eq!(
            complaints(&row.replace(CODE, "crates/gone.rs"), &code, &test).0,
            1,
            "no such file"
        );
        assert_eq!(
            complaints(&format!("| {} | a parent lives | | |", id(1)), &code, &test).0,
            2,
            "nothing named"
        );
        assert_eq!(complaints("", &code, &test).0, 1, "an empty table");
        assert_eq!(
            complaints_of(each_is_enforced_and_tested, &[]).len(),
            1,
            "no table"
        );
    }

    #[test]
    fn an_id_that_the_table_does_not_know_is_found_even_where_it_begins_like_another() {
        let row = format!("| {} | a parent lives | `{CODE}` | `it_holds` |", id(1));
        let code = format!("//! x\n// {}\n// {}\n", id(1), id(10));
        let test = format!("//! x\n/// {}\nfn it_holds() {{}}\n", id(1));
        assert_eq!(complaints(&row, &code, &test), (0, vec![format!("{CODE}:3")]));
    }
}

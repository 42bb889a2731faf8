//! How the rows ended, as a table: a line a row and order, a column a backend.

use std::collections::BTreeSet;
use std::fmt;

use anyhow::{Context as _, Result};
use serde_json::Value;

/// One case of one row.
#[derive(Clone, Debug)]
pub(super) struct Ending {
    pub(super) row: String,
    pub(super) backend: String,
    pub(super) order: String,
    /// Why its servers were not there.
    pub(super) not_begun: Option<String>,
    pub(super) passed: bool,
    seconds: f64,
}

/// One row on one backend.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) row: String,
    pub(super) backend: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.row, self.backend)
    }
}

impl Ending {
    fn place(&self) -> Place {
        Place {
            row: self.row.clone(),
            backend: self.backend.clone(),
        }
    }
}

/// Every case that ran.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    backends: Vec<&'static str>,
    pub(super) endings: Vec<Ending>,
}

impl Table {
    /// Reads the report of the suite, a JSON object a line.
    pub(super) fn read(report: &str, backends: &[&'static str]) -> Result<Table> {
        let endings = report.lines().map(ending).collect::<Result<Vec<Ending>>>()?;
        Ok(Table {
            backends: backends.to_vec(),
            endings,
        })
    }

    /// Those of the places that no case has ended at.
    pub(super) fn missing(&self, expected: &BTreeSet<Place>) -> String {
        let ended: BTreeSet<Place> = self.endings.iter().map(Ending::place).collect();
        let missing: Vec<String> = expected.difference(&ended).map(Place::to_string).collect();
        missing.join(", ")
    }

    fn cell(&self, row: &str, order: &str, backend: &str) -> String {
        let cases = self
            .endings
            .iter()
            .filter(|ending| ending.row == row && ending.order == order && ending.backend == backend);
        let (mut count, mut failed, mut seconds) = (0, 0, 0.0);
        for case in cases {
            count += 1;
            failed += usize::from(!case.passed);
            seconds += case.seconds;
        }
        match (count, failed) {
            (0, _) => "—".to_owned(),
            (_, 0) => format!("pass {count:>2} {seconds:>6.1} s"),
            _ => format!("FAIL {failed}/{count} {seconds:>5.1} s"),
        }
    }
}

fn ending(line: &str) -> Result<Ending> {
    let value: Value = serde_json::from_str(line).with_context(|| format!("the report has `{line}`"))?;
    let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
    Ok(Ending {
        row: text("row"),
        backend: text("backend"),
        order: text("order"),
        not_begun: value["not_begun"].as_str().map(str::to_owned),
        passed: value["passed"] == true,
        seconds: value["seconds"].as_f64().unwrap_or_default(),
    })
}

/// Section by section, and by number in each.
fn sort_key(row: &str) -> (String, u32) {
    let (section, number) = row.rsplit_once('-').unwrap_or((row, "0"));
    (section.to_owned(), number.parse().unwrap_or(0))
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heads: String = self
            .backends
            .iter()
            .map(|backend| format!("{backend:<18}"))
            .collect();
        writeln!(f, "{:<14}{:<8}{}", "row", "order", heads.trim_end())?;
        let lines: BTreeSet<((String, u32), &str, &str)> = self
            .endings
            .iter()
            .map(|ending| (sort_key(&ending.row), ending.row.as_str(), ending.order.as_str()))
            .collect();
        for (_, row, order) in lines {
            let cells: String = self
                .backends
                .iter()
                .map(|backend| format!("{:<18}", self.cell(row, order, backend)))
                .collect();
            writeln!(f, "{row:<14}{order:<8}{}", cells.trim_end())?;
        }
        let failed = self.endings.iter().filter(|ending| !ending.passed).count();
        writeln!(f, "{} cases, {failed} failed", self.endings.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_of_a_row_are_added_up_and_rows_sorted_by_number() {
        let line = |row: &str, backend: &str, passed: bool| {
            format!(
                "{{\"row\":\"{row}\",\"case\":\"x\",\"backend\":\"{backend}\",\"order\":\"1 is A\",\
                 \"passed\":{passed},\"seconds\":0.5}}\n"
            )
        };
        let report = [
            line("R-DROP-10", "sqlite", true),
            line("R-DROP-2", "sqlite", true),
            line("R-DROP-2", "sqlite", false),
        ]
        .concat();
        let table = Table::read(&report, &["sqlite", "mysql"]).unwrap();
        let text = table.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[1].starts_with("R-DROP-2 ") && lines[1].contains("FAIL 1/2"),
            "{text}"
        );
        assert!(
            lines[2].starts_with("R-DROP-10") && lines[2].ends_with('—'),
            "{text}"
        );
        assert_eq!(lines[3], "3 cases, 1 failed");
        assert!(table.endings.iter().all(|ending| ending.not_begun.is_none()));
        let place = |row: &str, backend: &str| Place {
            row: row.to_owned(),
            backend: backend.to_owned(),
        };
        let expected = [
            place("R-DROP-2", "sqlite"),
            place("R-DROP-2", "mysql"),
            place("R-DROP-3", "sqlite"),
        ];
        assert_eq!(
            table.missing(&BTreeSet::from(expected)),
            "R-DROP-2 on mysql, R-DROP-3 on sqlite"
        );
    }
}

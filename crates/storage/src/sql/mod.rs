//! Every statement that the store runs, once, named, and rendered per dialect when the store opens.
//!
//! A text has `?` for its parameters and a few `{fragments}` that a [`Dialect`] fills in. Lists of ids are `{ids}`:
//! [`IDS_MAX`] parameters, of which the unused ones repeat the last id, so that a statement has one text. `{places}`
//! does the same for locations.

pub(crate) mod check;
pub(crate) mod entity;
pub(crate) mod feed;
pub(crate) mod fused;
pub(crate) mod idempotency;
pub(crate) mod resolve;
pub(crate) mod side;
pub(crate) mod task;

use std::collections::HashMap;
use std::sync::Arc;

use treeline_core::EntityId;

use crate::dialect::{Dialect, Placeholder};
use crate::value::Value;

/// How many ids one statement takes.
pub(crate) const IDS_MAX: usize = 64;

/// How many places above another one statement takes; unused ones repeat the place itself.
pub(crate) const PLACES_MAX: usize = 16;

/// One statement.
#[derive(Debug)]
pub(crate) struct Statement {
    /// Unique; for logs, metrics and snapshots.
    pub(crate) name: &'static str,
    /// With `?` and `{fragments}`.
    pub(crate) text: &'static str,
}

/// Declares statements and the list of them.
macro_rules! statements {
    ($($(#[$doc:meta])* $constant:ident = $name:literal, $text:literal;)+) => {
        $($(#[$doc])* pub(crate) static $constant: crate::sql::Statement =
            crate::sql::Statement { name: $name, text: $text };)+
        /// Every statement of this file.
        pub(crate) static ALL: &[&crate::sql::Statement] = &[$(&$constant),+];
    };
}
pub(crate) use statements;

/// Every statement that a dialect runs.
pub(crate) fn all(dialect: &Dialect) -> impl Iterator<Item = &'static Statement> + use<> {
    let portable = [
        entity::ALL,
        side::ALL,
        task::ALL,
        feed::ALL,
        idempotency::ALL,
        resolve::ALL,
        check::ALL,
    ];
    let fused = if dialect.fuses { fused::ALL } else { &[] };
    portable.into_iter().chain([fused]).flatten().copied()
}

/// The texts that a dialect runs.
#[derive(Debug)]
pub(crate) struct Rendered {
    texts: HashMap<&'static str, Arc<str>>,
}

impl Rendered {
    pub(crate) fn new(dialect: &Dialect) -> Rendered {
        #[cfg(feature = "test-hooks")]
        let text = crate::mutants::mutate;
        #[cfg(not(feature = "test-hooks"))]
        let text = |statement: &Statement| statement.text.to_owned();
        let rendered =
            |statement: &'static Statement| (statement.name, Arc::from(render(&text(statement), dialect)));
        Rendered {
            texts: all(dialect).map(rendered).collect(),
        }
    }

    /// The text of a statement.
    ///
    /// # Panics
    /// If the statement is in no file's list, which the macro rules out.
    pub(crate) fn text(&self, statement: &Statement) -> &Arc<str> {
        &self.texts[statement.name]
    }
}

/// Fills in a dialect's fragments and placeholders.
pub(crate) fn render(text: &str, dialect: &Dialect) -> String {
    let ids = vec!["?"; IDS_MAX].join(", ");
    let filled = text
        .replace("{ids}", &ids)
        .replace("{places}", &vec!["?"; PLACES_MAX].join(", "))
        .replace("{now_ms}", dialect.now_ms)
        .replace("{statement_ms}", dialect.statement_ms)
        .replace("{lock_shared}", dialect.lock_shared)
        .replace("{lock_alter}", dialect.lock_alter)
        .replace("{lock_drop}", dialect.lock_drop)
        .replace("{by_id}", dialect.by_id)
        .replace("{count_blocked}", dialect.count_blocked);
    let text = filled.split_whitespace().collect::<Vec<_>>().join(" ");
    match dialect.placeholder {
        Placeholder::Question => text,
        Placeholder::Numbered => numbered(&text),
    }
}

/// No statement has a literal `?`, so every one is a parameter.
fn numbered(text: &str) -> String {
    let mut parts = text.split('?');
    let first = parts.next().unwrap_or_default().to_owned();
    parts
        .zip(1..)
        .fold(first, |text, (part, number)| format!("{text}${number}{part}"))
}

/// The parameters of an `{ids}` fragment.
///
/// # Panics
/// If there are no ids, or more than [`IDS_MAX`]: callers go through them in chunks.
pub(crate) fn ids(ids: &[EntityId]) -> impl Iterator<Item = Value> {
    assert!(
        !ids.is_empty() && ids.len() <= IDS_MAX,
        "{} ids for a list of {IDS_MAX}",
        ids.len()
    );
    (0..IDS_MAX).map(|place| Value::from(ids[place.min(ids.len() - 1)]))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::dialect::mysql::MYSQL;
    use crate::dialect::postgres::POSTGRES;
    use crate::dialect::sqlite::SQLITE;

    #[test]
    fn names_are_unique_and_every_fragment_is_filled() {
        let mut names = HashSet::new();
        for statement in all(&POSTGRES) {
            assert!(names.insert(statement.name), "{} stands twice", statement.name);
            let rendered = render(statement.text, &SQLITE);
            assert!(
                !rendered.contains('{') && !rendered.contains('}'),
                "{}: {rendered}",
                statement.name
            );
        }
    }

    #[test]
    fn rendered_statements_are_what_was_reviewed() {
        for dialect in [&SQLITE, &POSTGRES, &MYSQL] {
            let rendered: Vec<String> = all(dialect)
                .map(|statement| {
                    format!(
                        "{}\n  {}",
                        statement.name,
                        shown(&render(statement.text, dialect))
                    )
                })
                .collect();
            insta::assert_snapshot!(format!("statements_{}", dialect.name), rendered.join("\n"));
        }
    }

    /// Shortens lists of parameters, which say nothing to a reader.
    fn shown(sql: &str) -> String {
        match (sql.find("IN ("), sql.rfind(')')) {
            (Some(start), Some(_)) if sql[start..].len() > 40 => {
                let end = start + sql[start..].find(')').unwrap_or(0);
                format!("{}IN (…{}", &sql[..start], &sql[end..])
            }
            _ => sql.to_owned(),
        }
    }

    /// Every look-up goes through an index, whatever the size of the estate. Scans are named here, with the reason.
    #[test]
    fn no_statement_scans_a_table_unless_it_reads_all_of_it() {
        let whole = |name: &str| {
            name.starts_with("check_")
                || name.starts_with("dump_")
                || name == "schema_version"
                || name == "count_blocked"
        };
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("treeline.db");
        crate::migrate::migrate_sqlite(&file).unwrap();
        let mut session = crate::sqlite::SqliteSession::open(&file).unwrap();
        for statement in all(&SQLITE).filter(|statement| !whole(statement.name)) {
            for step in session.explain(&render(statement.text, &SQLITE)).unwrap() {
                assert!(!step.starts_with("SCAN"), "{}: {step}", statement.name);
            }
        }
    }
}

//! How the database servers go about the statements: through an index, and on InnoDB, for a lock, through
//! the primary key.
//!
//! The texts are the reviewed ones, out of the snapshots. SQLite's plans are looked at beside the statements.

use sqlx::{AssertSqlSafe, Connection, Executor, Row};
use treeline_core::kinds::{Model, ModelVersion};
use treeline_core::{NewEntity, Payload};

use crate::harness::{Bed, context, name, tests};

tests! { no_statement_scans_a_table_and_innodb_locks_by_the_primary_key }

/// Enough for a planner to see that an index pays.
const ROWS: usize = 300;

/// Reads all of a table, on purpose.
fn reads_everything(statement: &str) -> bool {
    statement.starts_with("check_")
        || statement.starts_with("dump_")
        || statement == "schema_version"
        || statement == "count_blocked"
}

async fn no_statement_scans_a_table_and_innodb_locks_by_the_primary_key(bed: Bed) {
    let model = bed.model().await;
    let schema = bed.resolve(&model.parent().unwrap()).await;
    for number in 0..ROWS {
        let new = NewEntity {
            name: name(&format!("m{number}")),
            payload: Model::default(),
        };
        bed.store.create(&context(), Some(&schema), new).await.unwrap();
    }
    let version = ModelVersion {
        aliases: Default::default(),
        ..ModelVersion::sample()
    };
    bed.store
        .link(&context(), bed.resolve(&model).await, &version)
        .await
        .unwrap();
    let looked_at = if bed.fuses() {
        postgres_plans(&bed).await
    } else {
        innodb_plans(&bed).await
    };
    assert!(looked_at > 40, "only {looked_at} statements were looked at");
}

async fn postgres_plans(bed: &Bed) -> usize {
    let mut connection = sqlx::PgConnection::connect(&bed.options.url).await.unwrap();
    // On tables this small a scan is cheap, so only what has no index at all is still planned as one.
    connection
        .execute("SET enable_seqscan = off; SET jit = off")
        .await
        .unwrap();
    let statements = statements(include_str!(
        "../../src/sql/snapshots/treeline_storage__sql__tests__statements_postgres.snap"
    ));
    for (statement, text) in &statements {
        let plan = sqlx::raw_sql(AssertSqlSafe(format!("EXPLAIN {text}")))
            .fetch_all(&mut connection)
            .await
            .unwrap_or_else(|error| panic!("{statement}: {error}\n{text}"));
        let lines: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
        let plan = lines.join("\n");
        assert!(!plan.contains("Seq Scan"), "{statement}:\n{plan}");
    }
    statements.len()
}

async fn innodb_plans(bed: &Bed) -> usize {
    let url = bed.options.url.replacen("mariadb:", "mysql:", 1);
    let mut connection = sqlx::MySqlConnection::connect(&url).await.unwrap();
    // Without a format, MySQL prints no plan of an update; MariaDB has no name for this one.
    let explain = if bed.options.url.starts_with("mariadb") {
        "EXPLAIN"
    } else {
        "EXPLAIN FORMAT=TRADITIONAL"
    };
    connection
        .execute("ANALYZE TABLE entities, version_aliases, locations, reconcile_tasks, feed, idempotency")
        .await
        .unwrap();
    let statements = statements(include_str!(
        "../../src/sql/snapshots/treeline_storage__sql__tests__statements_mysql.snap"
    ));
    let statements: Vec<_> = statements
        .iter()
        .filter(|(_, text)| !text.starts_with("INSERT"))
        .collect();
    for (statement, text) in &statements {
        let plan = sqlx::raw_sql(AssertSqlSafe(format!("{explain} {text}")))
            .fetch_all(&mut connection)
            .await
            .unwrap_or_else(|error| panic!("{statement}: {error}\n{text}"));
        for step in plan {
            let column = |name: &str| step.get::<Option<String>, _>(name).unwrap_or_default();
            let (access, key) = (column("type"), column("key"));
            assert_ne!(access, "ALL", "{statement}: {text}");
            if text.contains("FORCE INDEX (PRIMARY)") && !access.is_empty() {
                assert_eq!(key, "PRIMARY", "{statement}: {text}");
            }
        }
    }
    statements.len()
}

/// The name and the text of each statement of a snapshot, but for those that read everything. Parameters are given a
/// value, since a planner knows nothing of an open one.
fn statements(snapshot: &'static str) -> Vec<(&'static str, String)> {
    let body = snapshot.rsplit("---\n").next().unwrap();
    let lines: Vec<&str> = body.lines().collect();
    lines
        .chunks(2)
        .map(|pair| (pair[0], filled(pair[1].trim())))
        .filter(|(statement, _)| !reads_everything(statement))
        .collect()
}

/// `'7'` is a number and a text, as the column wants it; a limit wants a number.
fn filled(text: &str) -> String {
    let text = text
        .replace("IN (…)", "IN ('7', '8')")
        .replace("LIMIT ?", "LIMIT 7")
        .replace('?', "'7'");
    let mut parts = text.split('$');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |filled, part| {
        format!(
            "{filled}'7'{}",
            part.trim_start_matches(|digit: char| digit.is_ascii_digit())
        )
    })
}

//! Runs a script of `pgbench` through the store's own driver, for machines that do not have `pgbench`.
//!
//! It understands as much as the scripts of the benchmark use: comments, statements that end with `;` or with
//! `\gset`, and `:variables`. What their `\set` lines compute, it computes by itself.

use std::collections::HashMap;
use std::str::FromStr as _;

use sqlx::postgres::{PgArguments, PgConnectOptions, PgRow};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, Column, ConnectOptions, Connection as _, Postgres, Row as _, TypeInfo as _};
use tokio::task::JoinSet;

use crate::{Options, Result, Window};

/// One statement with numbered parameters.
#[derive(Clone, Debug)]
struct Step {
    text: String,
    /// The variable of each parameter.
    parameters: Vec<String>,
    /// The columns of its only row become variables.
    keeps_row: bool,
}

#[derive(Clone, Debug)]
enum Value {
    Int(i64),
    Text(String),
}

type Variables = HashMap<String, Value>;

/// Runs the script for the time that was asked for, and answers how often.
pub(crate) fn run(options: &Options) -> Result<u32> {
    let steps = steps(&std::fs::read_to_string(&options.script)?);
    let connect = PgConnectOptions::from_str(&options.database)?.disable_statement_logging();
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let window = Window::new(options.duration);
        let mut clients = JoinSet::new();
        for client in 0..options.clients {
            let mut variables = variables(options, client)?;
            let (steps, connect) = (steps.clone(), connect.clone());
            let (clients_all, rows) = (options.clients, options.rows);
            clients.spawn(async move {
                let mut connection = connect.connect().await?;
                let mut counted = 0;
                for count in 1_i64.. {
                    // A row of this client's own, so that nobody else writes it.
                    let row = client + clients_all * fastrand::usize(0..rows / clients_all);
                    variables.insert("counter".to_owned(), Value::Int(count));
                    variables.insert("row".to_owned(), Value::Int(i64::try_from(row)?));
                    for step in &steps {
                        step.run(&mut connection, &mut variables).await?;
                    }
                    match window.count() {
                        Some(one) => counted += one,
                        None => break,
                    }
                }
                connection.close().await?;
                Ok(counted)
            });
        }
        let mut counted = 0;
        while let Some(ended) = clients.join_next().await {
            let of_one: Result<u32> = ended?;
            counted += of_one?;
        }
        Ok(counted)
    })
}

fn variables(options: &Options, client: usize) -> Result<Variables> {
    let text = |name: &str, value: &str| (name.to_owned(), Value::Text(value.to_owned()));
    let client = Value::Int(i64::try_from(client)?);
    Ok(HashMap::from([
        text("metalake", &options.metalake),
        text("tag", &options.tag),
        text("payload", &options.payload),
        ("client_id".to_owned(), client),
    ]))
}

/// The statements of a script.
fn steps(script: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut text = String::new();
    for line in script.lines().map(str::trim) {
        if line.starts_with("--") || line.starts_with("\\set ") || line.is_empty() {
            continue;
        }
        text.push_str(line);
        let keeps_row = text.ends_with("\\gset");
        let Some(whole) = text.strip_suffix(';').or_else(|| text.strip_suffix("\\gset")) else {
            text.push(' ');
            continue;
        };
        steps.push(step(whole, keeps_row));
        text.clear();
    }
    steps
}

/// Each mention of a variable is a parameter of its own, as `pgbench` has it.
fn step(script: &str, keeps_row: bool) -> Step {
    let mut pieces = script.split(':');
    let mut text = pieces.next().unwrap_or_default().to_owned();
    let mut parameters = Vec::new();
    for piece in pieces {
        let end = piece.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let (name, rest) = piece.split_at(end.unwrap_or(piece.len()));
        parameters.push(name.to_owned());
        text.push_str(&format!("${}{rest}", parameters.len()));
    }
    Step {
        text,
        parameters,
        keeps_row,
    }
}

impl Step {
    async fn run(&self, connection: &mut sqlx::PgConnection, variables: &mut Variables) -> Result<()> {
        let mut query: Query<'_, Postgres, PgArguments> = sqlx::query(AssertSqlSafe(self.text.clone()));
        for name in &self.parameters {
            let value = variables.get(name);
            query = match value.ok_or_else(|| format!("the script has no `{name}`"))? {
                Value::Int(number) => query.bind(*number),
                Value::Text(text) => query.bind(text.clone()),
            };
        }
        if self.keeps_row {
            let row = query.fetch_one(connection).await?;
            for column in row.columns() {
                variables.insert(column.name().to_owned(), value(&row, column.ordinal())?);
            }
        } else {
            query.execute(connection).await?;
        }
        Ok(())
    }
}

fn value(row: &PgRow, column: usize) -> Result<Value> {
    Ok(match row.column(column).type_info().name() {
        "INT8" => Value::Int(row.try_get::<Option<i64>, _>(column)?.unwrap_or_default()),
        _ => Value::Text(row.try_get::<Option<String>, _>(column)?.unwrap_or_default()),
    })
}

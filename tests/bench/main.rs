//! The load generator of `cargo xtask bench`: as many clients as asked for, each sending its next request when its
//! last is answered, for a fixed time.
//!
//! It shares the machine with the server that it measures, so it is as light as it can be: one thread, one
//! connection a client, requests written by hand, and of the answers only the status and the length are looked at.
//! Any answer but 200 ends the run. The one line that it prints has the rate, then the time in milliseconds within which
//! 99 of 100 requests were answered.
#![expect(
    clippy::print_stdout,
    reason = "the line on the standard output is its result"
)]

mod answer;
mod connection;
mod options;
mod requests;

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use connection::Connection;
use options::{Options, Work};
use requests::{CATALOG, HOT_MODEL, MODEL, Requests, SCHEMA, row_name, writer_property};

/// What is answered before this is not counted: connections are opened, statements prepared, caches filled.
const WARM_UP: Duration = Duration::from_millis(500);

fn main() -> Result<()> {
    let options = Options::parse(std::env::args().skip(1))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        if options.work == Work::Plant {
            return plant(&options).await;
        }
        let (rate, p99) = measure(&options).await?;
        println!("{rate:.1} {:.3}", p99.as_secs_f64() * 1_000.0);
        Ok(())
    })
}

/// Runs the clients and answers how many requests a second were answered once they were warm, and within which time
/// 99 of 100 were.
async fn measure(options: &Options) -> Result<(f64, Duration)> {
    let begin = Instant::now() + WARM_UP;
    let end = begin + options.duration;
    let mut clients = JoinSet::new();
    for client in 0..options.clients {
        let address = options.servers[client % options.servers.len()];
        let requests = Requests::new(options, client);
        clients.spawn(async move {
            let connection = Connection::open(address).await?;
            time_answers(connection, requests, begin, end).await
        });
    }
    let mut times = Vec::new();
    while let Some(ended) = clients.join_next().await {
        times.append(&mut ended??);
    }
    let count = u32::try_from(times.len())?;
    Ok((f64::from(count) / options.duration.as_secs_f64(), p99(times)))
}

/// The time that one in a hundred takes at least; none at all where nothing was answered.
fn p99(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() * 99 / 100).copied().unwrap_or_default()
}

/// How long each answer took that came once the clients were warm.
async fn time_answers(
    mut connection: Connection,
    mut requests: Requests,
    begin: Instant,
    end: Instant,
) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    let mut sent = Instant::now();
    loop {
        connection.exchange(requests.next()).await?;
        let now = Instant::now();
        if now >= end {
            return Ok(times);
        }
        if now >= begin {
            times.push(now - sent);
        }
        sent = now;
    }
}

/// Makes the tree that the other works need: one schema with as many models as rows were asked for, and a model
/// with one property for each client that may contend for it.
async fn plant(options: &Options) -> Result<()> {
    const PLANTERS: usize = 8;
    let address = options.servers[0];
    let catalogs = format!("/api/metalakes/{}/catalogs", options.metalake);
    let schemas = format!("{catalogs}/{CATALOG}/schemas");
    let models = format!("{schemas}/{SCHEMA}/models");
    let mut connection = Connection::open(address).await?;
    let properties: serde_json::Map<String, Value> = (0..options.clients)
        .map(|client| (writer_property(client), json!("000000000000")))
        .collect();
    for (collection, entity) in [
        ("/api/metalakes", json!({"name": options.metalake})),
        (&catalogs, json!({"name": CATALOG, "type": "model"})),
        (&schemas, json!({"name": SCHEMA})),
        (&models, json!({"name": HOT_MODEL, "properties": properties})),
    ] {
        create(&mut connection, collection, &entity).await?;
    }
    let kept: Value = serde_json::from_str(MODEL)?;
    let mut planters = JoinSet::new();
    for planter in 0..PLANTERS {
        let rows = (planter..options.rows).step_by(PLANTERS);
        let (models, kept) = (models.clone(), kept.clone());
        planters.spawn(async move {
            let mut connection = Connection::open(address).await?;
            for row in rows {
                let name = row_name(row);
                let model =
                    json!({"name": name, "comment": kept["comment"], "properties": kept["properties"]});
                create(&mut connection, &models, &model).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(ended) = planters.join_next().await {
        ended??;
    }
    Ok(())
}

async fn create(connection: &mut Connection, collection: &str, entity: &Value) -> Result<()> {
    let request = requests::post(collection, &entity.to_string());
    let created = connection.exchange(&request).await;
    created.with_context(|| format!("cannot create {entity}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_a_hundred_takes_longer() {
        let times = |count: u64| (1..=count).rev().map(Duration::from_millis).collect();
        assert_eq!(p99(times(1_000)), Duration::from_millis(991));
        assert_eq!(p99(times(1)), Duration::from_millis(1));
        assert_eq!(p99(Vec::new()), Duration::ZERO);
    }
}

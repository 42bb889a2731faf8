//! The load generator of `cargo xtask bench`: as many clients as asked for, each sending its next request when its
//! last is answered, for a fixed time.
//!
//! It shares the machine with the server that it measures, so it is as light as it can be: one thread, one
//! connection a client, requests written by hand, and of the answers only the status and the length are looked at.
//! Any answer but 200 ends the run. The one line that it prints is the rate.
#![expect(
    clippy::print_stdout,
    reason = "the rate on the standard output is its result"
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
        println!("{:.1}", rate(&options).await?);
        Ok(())
    })
}

/// Runs the clients and answers how many requests a second were answered once they were warm.
async fn rate(options: &Options) -> Result<f64> {
    let begin = Instant::now() + WARM_UP;
    let end = begin + options.duration;
    let mut clients = JoinSet::new();
    for client in 0..options.clients {
        let address = options.servers[client % options.servers.len()];
        let requests = Requests::new(options, client);
        clients.spawn(async move {
            let connection = Connection::open(address).await?;
            count_answers(connection, requests, begin, end).await
        });
    }
    let mut answers = 0;
    while let Some(ended) = clients.join_next().await {
        answers += ended??;
    }
    Ok(f64::from(answers) / options.duration.as_secs_f64())
}

async fn count_answers(
    mut connection: Connection,
    mut requests: Requests,
    begin: Instant,
    end: Instant,
) -> Result<u32> {
    let mut answers = 0;
    loop {
        connection.exchange(requests.next()).await?;
        let now = Instant::now();
        if now >= end {
            return Ok(answers);
        }
        answers += u32::from(now >= begin);
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

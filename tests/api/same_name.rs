//! A hundred clients create one name at once, fifty times, for each kind: one of them wins, and nothing tells of the
//! others (INV-2).

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use treeline_tests::{Answer, Bed, Client, Rows, Server, Tree};

const CREATORS: usize = 100;
const ROUNDS: usize = 50;

/// How one kind is created.
struct Case {
    kind: &'static str,
    collection: &'static str,
    body: fn(&Tree, round: usize, creator: usize) -> Value,
}

const METALAKE: Case = Case {
    kind: "metalake",
    collection: "/api/metalakes",
    body: |_, round, _| named(round),
};
const CATALOG: Case = Case {
    kind: "catalog",
    collection: Tree::CATALOGS,
    body: |_, round, _| json!({"name": name(round), "type": "fileset"}),
};
const SCHEMA: Case = Case {
    kind: "schema",
    collection: Tree::SCHEMAS,
    body: |_, round, _| named(round),
};
const MODEL: Case = Case {
    kind: "model",
    collection: Tree::MODELS,
    body: |_, round, _| named(round),
};
/// In even rounds all mean one directory; in odd rounds each its own, of which only the winner's may be made.
const FILESET: Case = Case {
    kind: "fileset",
    collection: Tree::FILESETS,
    body: |tree, round, creator| {
        let directory = if round.is_multiple_of(2) {
            name(round)
        } else {
            format!("{}-{creator}", name(round))
        };
        json!({"name": name(round), "storageLocation": tree.location(&directory)})
    },
};

#[tokio::test(flavor = "multi_thread")]
async fn one_of_a_hundred_creators_of_a_metalake_wins() -> Result<()> {
    race(&METALAKE, 1).await
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_a_hundred_creators_of_a_metalake_wins_on_two_servers() -> Result<()> {
    race(&METALAKE, 2).await
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_a_hundred_creators_of_a_catalog_wins() -> Result<()> {
    race(&CATALOG, 1).await
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_a_hundred_creators_of_a_catalog_wins_on_two_servers() -> Result<()> {
    race(&CATALOG, 2).await
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_a_hundred_creators_of_a_schema_wins() -> Result<()> {
    race(&SCHEMA, 1).await
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_a_hundred_creators_of_a_schema_wins_on_two_servers() -> Result<()> {
    race(&SCHEMA, 2).await
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_a_hundred_creators_of_a_fileset_wins() -> Result<()> {
    race(&FILESET, 1).await
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_a_hundred_creators_of_a_fileset_wins_on_two_servers() -> Result<()> {
    race(&FILESET, 2).await
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_a_hundred_creators_of_a_model_wins() -> Result<()> {
    race(&MODEL, 1).await
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_a_hundred_creators_of_a_model_wins_on_two_servers() -> Result<()> {
    race(&MODEL, 2).await
}

async fn race(case: &Case, server_count: usize) -> Result<()> {
    let bed = Bed::new()?;
    let mut servers = Vec::new();
    for _ in 0..server_count {
        servers.push(bed.start().await?);
    }
    let tree = Tree::plant(&bed, &mut servers[0].client()).await?;
    let before = bed.rows().await?;
    let mut clients = Bed::clients(&servers.iter().collect::<Vec<&Server>>(), CREATORS);
    let mut directories = BTreeSet::new();
    for round in 0..ROUNDS {
        let bodies: Vec<Value> = (0..CREATORS)
            .map(|creator| (case.body)(&tree, round, creator))
            .collect();
        let (back, answers) = create_at_once(clients, case.collection, &bodies).await?;
        clients = back;
        let winner = only_winner(&answers).with_context(|| format!("round {round}"))?;
        directories.extend(directory_of(&bodies[winner]));
    }
    nothing_tells_of_the_losers(case, &before, &bed.rows().await?)?;
    let mut conflicts = 0;
    for server in &servers {
        conflicts += server.count("treeline_create_conflicts_total").await?;
    }
    let losers = u64::try_from(ROUNDS * (CREATORS - 1))?;
    ensure!(
        conflicts == losers,
        "{conflicts} of {losers} conflicts are counted"
    );
    let made: BTreeSet<String> = tree.directories()?.into_iter().collect();
    ensure!(
        made == directories,
        "the winners have {directories:?}, but there are {made:?}"
    );
    bed.check_is_clean().await
}

/// Sends every body at the same moment, each on a connection that is open already.
async fn create_at_once(
    clients: Vec<Client>,
    collection: &'static str,
    bodies: &[Value],
) -> Result<(Vec<Client>, Vec<Answer>)> {
    let start = Arc::new(Barrier::new(clients.len()));
    let mut creators = JoinSet::new();
    for (creator, (mut client, body)) in clients.into_iter().zip(bodies.to_vec()).enumerate() {
        let start = Arc::clone(&start);
        creators.spawn(async move {
            start.wait().await;
            let answer = client.post(collection, &body).await;
            (creator, client, answer)
        });
    }
    let mut finished = creators.join_all().await;
    finished.sort_unstable_by_key(|(creator, ..)| *creator);
    let mut back = Vec::new();
    let mut answers = Vec::new();
    for (_, client, answer) in finished {
        back.push(client);
        answers.push(answer?);
    }
    Ok((back, answers))
}

/// The one creator that was told of success, if all others were told that the name is taken.
fn only_winner(answers: &[Answer]) -> Result<usize> {
    let mut winners = Vec::new();
    for (creator, answer) in answers.iter().enumerate() {
        match answer.status {
            200 => winners.push(creator),
            _ => answer.refused(409, 1004)?,
        }
    }
    ensure!(winners.len() == 1, "{} creators won: {winners:?}", winners.len());
    Ok(winners[0])
}

/// One row ever a name and one feed row each; no row of any table names an id that lost.
fn nothing_tells_of_the_losers(case: &Case, before: &Rows, after: &Rows) -> Result<()> {
    for round in 0..ROUNDS {
        let name = name(round);
        let rows = after.named(case.kind, &name);
        ensure!(rows.len() == 1, "{} rows for `{name}`", rows.len());
        ensure!(
            rows[0]["tombstone"] == 0 && rows[0]["version"] == 1,
            "{}",
            rows[0]
        );
        let feed = after.feed_of(rows[0]);
        ensure!(feed.len() == 1, "{} feed rows for `{name}`", feed.len());
    }
    for table in ["entities", "feed"] {
        let new = after.of(table).count() - before.of(table).count();
        ensure!(new == ROUNDS, "{new} rows in `{table}` for {ROUNDS} names");
    }
    let locations = if case.kind == "fileset" { ROUNDS } else { 0 };
    ensure!(
        after.of("locations").count() == locations,
        "{} locations",
        after.of("locations").count()
    );
    let tasks: Vec<&Value> = after.of("reconcile_tasks").collect();
    ensure!(tasks.is_empty(), "unfinished work: {tasks:?}");
    Ok(())
}

fn directory_of(body: &Value) -> Option<String> {
    let location = body.get("storageLocation")?.as_str()?;
    Some(location.rsplit('/').next().unwrap_or_default().to_owned())
}

fn name(round: usize) -> String {
    format!("round{round}")
}

fn named(round: usize) -> Value {
    json!({"name": name(round)})
}

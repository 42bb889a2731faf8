//! Servers that are killed while they write.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, ensure};
use hyper::Method;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use treeline_tests::{Bed, Client, Rows, Server, Tree, eventually};

use crate::ledger::{Ledger, registers_in};

const KILLS: usize = 50;
const WRITERS: usize = 8;
const IN_FLIGHT_MIN: usize = 6;
/// Of all kills together: some of the requests are answered between the look and the kill.
const CUT_MIN: usize = KILLS * IN_FLIGHT_MIN / 4;
const ACKNOWLEDGED_MIN: usize = 20;

/// What the writers and the killer share.
#[derive(Debug, Default)]
struct Board {
    ledger: Mutex<Ledger>,
    in_flight: AtomicUsize,
    acknowledged: AtomicUsize,
    /// From then on a request may come too late to meet the server at all.
    is_dying: AtomicBool,
    /// Requests that were on their way then and were never answered.
    cut: AtomicUsize,
    progress: Notify,
}

/// Eight writers create, alter and drop filesets, set properties of one schema and link versions of models, each
/// sure of what it was told. The server is killed in the middle, fifty times. Whatever it had acknowledged must be
/// there when it is back, what it had not may be there whole or not at all, and once its sweep has run there is
/// exactly one directory for each fileset.
#[tokio::test(flavor = "multi_thread")]
async fn fifty_kills_lose_no_acknowledged_write_and_leave_no_stray_directory() -> Result<()> {
    let bed = Bed::new()?;
    let board = Arc::new(Board::default());
    let mut server = bed.start_with(SWEEP_SOON).await?;
    let tree = Tree::plant(&bed, &mut server.client()).await?;
    plant_models(&board, &server).await?;
    for kill in 0..KILLS {
        write_until_killed(&board, &tree, &mut server, kill)
            .await
            .with_context(|| format!("kill {kill}"))?;
        server = bed.start_with(SWEEP_SOON).await?;
        bed.check_is_clean()
            .await
            .with_context(|| format!("after kill {kill}"))?;
        let rows = bed.rows().await?;
        let registers = registers_in(&rows)?;
        note(&board, |ledger| ledger.reconcile(&registers)).with_context(|| format!("after kill {kill}"))?;
        directories_match(&bed, &tree)
            .await
            .with_context(|| format!("after kill {kill}"))?;
    }
    let cut = board.cut.load(Ordering::SeqCst);
    ensure!(
        cut >= CUT_MIN,
        "{KILLS} kills cut {cut} requests off, which proves little"
    );
    server.stop().await?;
    bed.check_is_clean().await
}

/// A task whose node was killed may be claimed again soon, so that a test need not wait for it.
const SWEEP_SOON: &[&str] = &["--task-lease-ms", "300", "--sweep-interval-ms", "50"];

async fn plant_models(board: &Board, server: &Server) -> Result<()> {
    let mut client = server.client();
    for writer in 0..WRITERS {
        let key = format!("model w{writer}");
        note(board, |ledger| ledger.begin(&key, Some("0".to_owned())));
        client
            .post(Tree::MODELS, &json!({"name": format!("w{writer}")}))
            .await?
            .ok()?;
        note(board, |ledger| ledger.acknowledge(&key));
    }
    Ok(())
}

/// Lets the writers write, and kills the server once enough has been acknowledged and enough is on its way.
async fn write_until_killed(board: &Arc<Board>, tree: &Tree, server: &mut Server, kill: usize) -> Result<()> {
    board.acknowledged.store(0, Ordering::SeqCst);
    board.is_dying.store(false, Ordering::SeqCst);
    let enough = ACKNOWLEDGED_MIN + fastrand::usize(0..2 * WRITERS);
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let (board, tree, client) = (Arc::clone(board), tree.clone(), server.client());
        writers.spawn(async move {
            Writer {
                board: &board,
                tree: &tree,
                client,
                writer,
                kill,
            }
            .run()
            .await
        });
    }
    loop {
        let progress = board.progress.notified();
        let in_flight = board.in_flight.load(Ordering::SeqCst);
        if board.acknowledged.load(Ordering::SeqCst) >= enough && in_flight >= IN_FLIGHT_MIN {
            break;
        }
        tokio::select! {
            () = progress => {}
            Some(ended) = writers.join_next() => {
                ended??;
                anyhow::bail!("a writer ended before the kill");
            }
        }
    }
    board.is_dying.store(true, Ordering::SeqCst);
    server.kill().await?;
    while let Some(ended) = writers.join_next().await {
        ended??;
    }
    ensure!(
        board.in_flight.load(Ordering::SeqCst) == 0,
        "a writer forgot its request"
    );
    Ok(())
}

fn note<T>(board: &Board, change: impl FnOnce(&mut Ledger) -> T) -> T {
    change(&mut board.ledger.lock().unwrap_or_else(PoisonError::into_inner))
}

/// One client that writes until its server is gone. No two writers share a register.
struct Writer<'a> {
    board: &'a Board,
    tree: &'a Tree,
    client: Client,
    writer: usize,
    kill: usize,
}

/// One request, and the register that it writes.
struct Write {
    key: String,
    value: Option<String>,
    method: Method,
    path: String,
    body: Value,
}

impl Writer<'_> {
    async fn run(mut self) -> Result<()> {
        for step in 0.. {
            for write in self.round(step)? {
                if !self.send(write).await? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Creates a fileset and alters it, alters the schema that all share, links a version, and drops every second of
    /// the filesets.
    fn round(&self, step: usize) -> Result<Vec<Write>> {
        let (writer, kill) = (self.writer, self.kill);
        let name = format!("f{writer}-{kill}-{step}");
        let fileset = format!("{}/{name}", Tree::FILESETS);
        let value = format!("{kill}-{step}");
        let model = format!("w{writer}");
        let known = note(self.board, |ledger| {
            ledger.known(&format!("model {model}")).map(str::to_owned)
        });
        let versions: usize = known.context("no model is dropped here")?.parse()?;
        let set = |key: &str| json!({"updates": [{"@type": "setProperty", "property": key, "value": value.clone()}]});
        let write = |key: String, value: Option<String>, method: Method, path: &str, body: Value| Write {
            key,
            value,
            method,
            path: path.to_owned(),
            body,
        };
        let key = format!("fileset {name}");
        let mut round = vec![
            write(
                key.clone(),
                Some("none".into()),
                Method::POST,
                Tree::FILESETS,
                self.tree.fileset(&name),
            ),
            write(key.clone(), Some(value.clone()), Method::PUT, &fileset, set("p")),
            write(
                format!("schema w{writer}"),
                Some(value.clone()),
                Method::PUT,
                &format!("{}/s", Tree::SCHEMAS),
                set(&format!("w{writer}")),
            ),
            write(
                format!("model {model}"),
                Some((versions + 1).to_string()),
                Method::POST,
                &format!("{}/{model}/versions", Tree::MODELS),
                json!({"uri": "s3://bucket/model", "aliases": [format!("a{versions}")]}),
            ),
        ];
        if step.is_multiple_of(2) {
            round.push(write(key, None, Method::DELETE, &fileset, Value::Null));
        }
        Ok(round)
    }

    /// Sends one write and notes what it was told; false once the server is gone.
    async fn send(&mut self, write: Write) -> Result<bool> {
        let board = self.board;
        note(board, |ledger| ledger.begin(&write.key, write.value));
        let body = if write.body.is_null() {
            String::new()
        } else {
            write.body.to_string()
        };
        let is_in_time = !board.is_dying.load(Ordering::SeqCst);
        board.in_flight.fetch_add(1, Ordering::SeqCst);
        board.progress.notify_one();
        let answer = self.client.send(write.method, &write.path, &[], &body).await;
        board.in_flight.fetch_sub(1, Ordering::SeqCst);
        let Ok(answer) = answer else {
            board.cut.fetch_add(usize::from(is_in_time), Ordering::SeqCst);
            return Ok(false);
        };
        answer.ok().with_context(|| format!("writing `{}`", write.key))?;
        note(board, |ledger| ledger.acknowledge(&write.key));
        board.acknowledged.fetch_add(1, Ordering::SeqCst);
        board.progress.notify_one();
        Ok(true)
    }
}

/// Waits until no work is left over, then compares directories and filesets.
async fn directories_match(bed: &Bed, tree: &Tree) -> Result<()> {
    eventually("the sweep has finished what the dead server left", async || {
        Ok(bed.rows().await?.of("reconcile_tasks").next().is_none())
    })
    .await?;
    let expected = live_filesets(&bed.rows().await?);
    let found: BTreeSet<String> = tree.directories()?.into_iter().collect();
    let missing: Vec<_> = expected.difference(&found).collect();
    let stray: Vec<_> = found.difference(&expected).collect();
    ensure!(
        missing.is_empty() && stray.is_empty(),
        "missing directories: {missing:?}, stray ones: {stray:?}"
    );
    Ok(())
}

fn live_filesets(rows: &Rows) -> BTreeSet<String> {
    rows.live("fileset")
        .filter_map(|row| row["name"].as_str())
        .map(str::to_owned)
        .collect()
}

//! What the server answers in a second, beside what the database and HTTP allow: `cargo xtask bench`.
//!
//! 1. Builds the server, the load generator (`tests/bench`) and the raw forms; starts the database and the servers.
//! 2. For each work and each number of clients, three rounds: the raw form, `/health`, the server, right after each
//!    other, so that what disturbs the machine disturbs all three. What is printed is the median.
//! 3. Measures the start, the memory at rest and the size of the binary.
//! 4. Has the server's own audit look at what all of this has left behind: a raw form that skipped a part of the work
//!    would show there.
//!
//! `docs/benchmarks.md` says what each column means.

mod contention;
mod database;
mod load;
mod options;
mod rates;
mod raw;
mod start;

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::server;
use crate::workspace::Workspace;
use database::Database;
use load::Load;
use options::{Backend, Options};
use rates::{Line, Sample};
use raw::Raw;

const ROUNDS: usize = 3;

/// Rows to read and to update: more than the largest number of clients, few enough to stay in every cache, since
/// it is the server that is measured and not the disk.
const ROWS: usize = 1_000;

/// Writers of the one hot row, and properties that it has.
const HOT_WRITERS: usize = 64;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Read,
    Update,
    Create,
    Hot,
}

impl Work {
    /// The word for it on the command lines of the load generator and of the raw forms.
    const fn word(self) -> &'static str {
        match self {
            Work::Read => "read",
            Work::Update => "update",
            Work::Create => "create",
            Work::Hot => "hot",
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Work::Read => "reads by path",
            Work::Update => "updates of distinct rows",
            Work::Create => "creates under one parent",
            Work::Hot => "updates of one row",
        }
    }
}

/// One measurement, for whoever carries it out.
#[derive(Clone, Debug)]
struct Task {
    work: Work,
    clients: usize,
    seconds: u64,
    metalake: String,
    /// Part of every name that it creates: no other task has it.
    tag: String,
}

/// Runs the benchmark and prints its tables.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let options = Options::parse(arguments)?;
    let binary = server::build(workspace)?;
    let directory = fresh_directory(workspace)?;
    let database = Database::provide(workspace, &options, &directory)?;
    if options.contention {
        contention::run(workspace, &options, &binary, &directory, &database)?;
        return database.check(&binary);
    }
    let raw = Raw::prepare(workspace, &options, &database)?;
    let load = Load::start(workspace, &options, &binary, &directory, &database, &[])?;
    let metalake = fresh_metalake();
    load.plant(&metalake)?;

    raw.print(&works(&options))?;
    println!(
        "\n{}, servers: {}, seconds a measurement: {}, rounds: {ROUNDS}, cores: {}\n",
        options.backend,
        options.servers,
        options.seconds,
        std::thread::available_parallelism()?
    );
    println!("{}", Line::heading());
    let mut count = 0;
    for (work, clients) in works(&options) {
        let mut samples = Vec::with_capacity(ROUNDS);
        for _ in 0..ROUNDS {
            count += 1;
            let task = Task {
                work,
                clients,
                seconds: options.seconds,
                metalake: metalake.clone(),
                tag: format!("r{count}"),
            };
            samples.push(sample(&raw, &load, &task).with_context(|| format!("{work:?}, {clients} clients"))?);
        }
        println!("{}", Line::of(work.title(), clients, &samples));
    }
    drop(load);
    println!();
    for line in start::report(&binary, &directory)? {
        println!("{line}");
    }
    database.check(&binary)
}

/// A database that was named may hold the metalakes of other runs.
fn fresh_metalake() -> String {
    format!("bench_{:08x}", RandomState::new().build_hasher().finish() >> 32)
}

fn sample(raw: &Raw, load: &Load, task: &Task) -> Result<Sample> {
    Ok(Sample {
        raw: raw.rate(task).context("the raw form")?,
        health: load.health(task).context("/health")?,
        server: load.rate(task).context("the server")?,
    })
}

/// Reads come first and creates last, so that each work meets the same tree in every run.
fn works(options: &Options) -> Vec<(Work, usize)> {
    let mut works = Vec::new();
    for work in [Work::Read, Work::Update, Work::Create] {
        works.extend(options.clients.iter().map(|clients| (work, *clients)));
    }
    match options.backend {
        Backend::Postgres => works.push((Work::Hot, HOT_WRITERS)),
        // One writer at a time, so one row is like any other there.
        Backend::Sqlite | Backend::MariaDb | Backend::MySql => {}
    }
    works
}

/// Emptied at the start and not at the end, so that what a failed run left can be looked at.
fn fresh_directory(workspace: &Workspace) -> Result<PathBuf> {
    let directory = workspace.target.join("bench");
    remove(&directory)?;
    std::fs::create_dir_all(&directory)?;
    Ok(directory)
}

fn remove(directory: &Path) -> Result<()> {
    if directory.exists() {
        std::fs::remove_dir_all(directory).with_context(|| {
            format!(
                "cannot remove what an earlier run left in {}",
                directory.display()
            )
        })?;
    }
    Ok(())
}

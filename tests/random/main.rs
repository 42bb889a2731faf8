//! Random clients on several servers of one database, for a time; then what they saw is judged.
//!
//! Few names and many clients, so that nearly everything is a race. What a client asks for depends on the seed and its
//! number alone; how it meets the others is up to the machine. They play no model versions, no idempotency keys, and nothing
//! is enabled or disabled; metalakes and catalogs stay. With `--kills` servers die in the middle of it, and their
//! clients go on with another. When the time is over and all have ended, one more
//! client reads everything, `treeline check` audits the database, and the checker of `tests/history` reads the log.
//!
//! One JSON object on the standard output says what came of it. Exit code 0: every rule holds; 1: one is broken, or
//! the audit has found something; 2: it could not be run.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the result is printed for whoever started it"
)]

mod client;
mod deck;
mod due;
mod failover;
mod fault;
mod fleet;
mod log;
mod node;
mod options;
mod points;
mod summary;
mod tally;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use tokio::task::JoinSet;
use treeline_tests::Bed;

use crate::client::RandomClient;
use crate::deck::{Deck, Shape};
use crate::fault::Fault;
use crate::fleet::Fleet;
use crate::log::Log;
use crate::options::Options;
use crate::summary::{Aftermath, Summary};

/// Names the test build of the server.
const BINARY_VARIABLE: &str = "TREELINE_TEST_BIN";

/// Rules that the servers are to leave out.
const MUTANTS_VARIABLE: &str = "TREELINE_TEST_MUTANTS";

/// How long the servers run until one of them is killed, and then the next.
const KILL_AFTER: Duration = Duration::from_secs(2);

/// When each server must serve at the end, after everything is over.
const SERVES_WITHIN: Duration = Duration::from_secs(5);

/// Tells the clients that the time is over.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    fn now(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_now(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("treeline-random: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<ExitCode> {
    let options = Options::parse(std::env::args().skip(1))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let summary = runtime.block_on(told(&options))?;
    if let Some(text) = summary.complaint() {
        eprintln!("{text}");
    }
    println!("{}", summary.json());
    Ok(if summary.holds() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The whole run.
async fn told(options: &Options) -> Result<Summary> {
    let bed = bed(options)?;
    let fault = options.fault.as_ref().map(|(_, fault)| *fault);
    // Before the servers, which are to be gone by the time that it goes.
    let _disk = match fault {
        Some(Fault::DiskFull) => Some(fault::make_disk(bed.root()).await?),
        _ => None,
    };
    std::fs::create_dir_all(bed.files())?;
    let log = Log::create(&options.history)?;
    let mut fleet = Fleet::start(&bed, options.servers, fault, &log).await?;
    let shape = Shape::new(options.seed, bed.files());
    let addresses = fleet.addresses();
    let client = |number: u32| RandomClient::new(number, &addresses, &shape, &log);
    // As many more clients as there are servers, one for each.
    let one_each = |round: u32| {
        let servers = u32::try_from(options.servers).unwrap_or(u32::MAX);
        let first = options.clients + 1 + round * servers;
        (first..first + servers).map(client)
    };

    client(0).plant().await?;
    let (mut clients, stop) = (JoinSet::new(), Stop::default());
    for number in 1..=options.clients {
        let deck = Deck::new(&shape, options.seed, number);
        let (mut client, stop) = (client(number), stop.clone());
        clients.spawn(async move { client.play(deck, &stop).await });
    }
    let seconds = Duration::from_secs(options.seconds);
    let mut end = Instant::now() + seconds;
    let mut over = None;
    if let Some(fault) = fault {
        over = Some(
            fault
                .strike(seconds / 3, &mut fleet, &options.backend, &log)
                .await?,
        );
        // Where a server has died, its clients have left it; so somebody else asks each for its first write.
        all_write_again(one_each(0), Duration::from_millis(fault.recovered_ms_max())).await?;
        // However long it took, there is a time after it.
        end = end.max(Instant::now() + seconds / 3);
    }
    let killed = wait_until(end, &mut clients, &mut fleet, options.kills).await?;
    stop.now();
    while let Some(ended) = clients.join_next().await {
        ended??;
    }
    // Each server has to serve again, whatever it has gone through; it was not started again for that.
    let mut silent = Vec::new();
    for mut client in one_each(1) {
        let server = client.server();
        if !client.writes_again(SERVES_WITHIN).await? {
            silent.push(server);
        }
    }
    client(options.clients + 1).read_everything().await?;
    let oddities = log.finish()?;

    fleet.all_are_alive().await?;
    if let Some(over) = &mut over {
        over.amiss.extend(fleet.has_passed_over().await?);
    }
    let aftermath = Aftermath {
        audit: audit(&bed).await?,
        over,
        deaths: fleet.deaths().to_vec(),
        killed,
        silent,
        oddities,
        log_errors: fleet.log_errors(),
    };
    Summary::of(options, aftermath)
}

/// Lets the clients play until the time is over, and kills one server after the other if that is asked for. Answers how many.
async fn wait_until(
    end: Instant,
    clients: &mut JoinSet<Result<()>>,
    fleet: &mut Fleet<'_>,
    kills: bool,
) -> Result<usize> {
    let mut killed = 0;
    loop {
        // A client ends by itself only if it cannot go on.
        let left = end.saturating_duration_since(Instant::now());
        match tokio::time::timeout(left.min(KILL_AFTER), clients.join_next()).await {
            Ok(ended) => ended.context("there are no clients")???,
            Err(_) if left <= KILL_AFTER => return Ok(killed),
            Err(_) if kills => {
                fleet.replace(killed).await?;
                killed += 1;
            }
            Err(_) => {}
        }
    }
}

/// Lets each of these write at the same time. When the first write was through, the log says.
async fn all_write_again(clients: impl Iterator<Item = RandomClient>, within: Duration) -> Result<()> {
    let mut asked = JoinSet::new();
    for mut client in clients {
        asked.spawn(async move { client.writes_again(within).await });
    }
    while let Some(answered) = asked.join_next().await {
        answered??;
    }
    Ok(())
}

/// What is wrong with the database, at any of its nodes, or between them.
async fn audit(bed: &Bed) -> Result<Option<String>> {
    for node in 0..bed.nodes() {
        let audit = bed.run(&["check", "--database", bed.database_url(node)]).await?;
        if audit.code != Some(0) {
            let text = audit.text();
            // An audit that could not be made ends in the same code as one that has found something.
            ensure!(
                audit.code == Some(1) && text.lines().any(|line| line.starts_with("INV-")),
                "`treeline check` has ended ({:?}) without a finding: {text}",
                audit.code
            );
            return Ok(Some(text));
        }
    }
    let difference = bed.difference_of_nodes().await?;
    Ok(difference.map(|rows| format!("the nodes hold different rows:\n{rows}\n")))
}

fn bed(options: &Options) -> Result<Bed> {
    let binary = std::env::var_os(BINARY_VARIABLE).with_context(|| {
        format!("{BINARY_VARIABLE} names no server; `cargo xtask itest --history` sets it")
    })?;
    let mut bed = Bed::of(std::path::absolute(binary)?, options.database_urls()?)?;
    if let Ok(mutants) = std::env::var(MUTANTS_VARIABLE)
        && !mutants.is_empty()
    {
        bed.set_variable("TREELINE_MUTANTS", &mutants);
    }
    Ok(bed)
}

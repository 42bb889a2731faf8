//! What local locks do for writers of one row: `cargo xtask bench --contention`.
//!
//! Four servers run on one database, two with local locks and two without. 64 writers each set a property of their own
//! on one model, on one server and on two, with and without, right after each other, three times over. What is printed
//! is the median of the three rounds; a ratio is the median of each round's own.

use std::path::Path;

use anyhow::{Context as _, Result};

use super::database::Database;
use super::load::Load;
use super::options::Options;
use super::rates::median;
use super::{HOT_WRITERS, ROUNDS, Task, Work, fresh_metalake};
use crate::workspace::Workspace;

/// What is read from the servers before and after, and what it is called in the table.
const COUNTERS: [(&str, &str, &str); 4] = [
    ("lost/w", "treeline_update_conflicts_total", ""),
    ("rerun/w", "treeline_transaction_retries_total", ""),
    ("waited/w", "treeline_local_locks_total", "outcome=\"waited\""),
    ("without/w", "treeline_local_locks_total", "outcome=\"timed_out\""),
];

const WRITES: (&str, &str) = ("treeline_http_requests_total", "operation=\"alter-model\"");

/// One measurement.
#[derive(Clone, Copy, Debug)]
struct Sample {
    wins: f64,
    p99_ms: f64,
    /// For each counter, how often it counted a write.
    per_write: [f64; COUNTERS.len()],
}

pub(super) fn run(
    workspace: &Workspace,
    options: &Options,
    binary: &Path,
    directory: &Path,
    database: &Database,
) -> Result<()> {
    let start = |word: &str| {
        let own = directory.join(word);
        Load::start(
            workspace,
            options,
            binary,
            &own,
            database,
            &["--local-locks", word],
        )
    };
    let (on, off) = (start("on")?, start("off")?);
    let metalake = fresh_metalake();
    on.plant(&metalake)?;

    println!(
        "\n{}, {HOT_WRITERS} writers of one row, seconds a measurement: {}, rounds: {ROUNDS}, cores: {}\n",
        options.backend,
        options.seconds,
        std::thread::available_parallelism()?
    );
    println!("{}", heading());
    for servers in [1, 2] {
        let (mut with, mut without) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let task = Task {
                work: Work::Hot,
                clients: HOT_WRITERS,
                seconds: options.seconds,
                metalake: metalake.clone(),
                tag: "hot".to_owned(),
            };
            let samples = [(&mut with, &on, "on"), (&mut without, &off, "off")];
            for (samples, load, word) in samples {
                let sample = sample(load, &task, servers);
                samples.push(sample.with_context(|| format!("{servers} servers, local locks {word}"))?);
            }
        }
        println!("{}", line(servers, "on", &with));
        println!("{}", line(servers, "off", &without));
        let rounds = || with.iter().zip(&without);
        println!(
            "{servers:>7}  on / off {:>12.2}{:>10.2}",
            median(rounds().map(|(with, without)| with.wins / without.wins)),
            median(rounds().map(|(with, without)| with.p99_ms / without.p99_ms)),
        );
    }
    println!();
    Ok(())
}

fn sample(load: &Load, task: &Task, servers: usize) -> Result<Sample> {
    let read = || -> Result<Vec<f64>> {
        let counters = COUNTERS.iter().map(|(_, name, labels)| (*name, *labels));
        let all = counters.chain([WRITES]);
        all.map(|(name, labels)| load.counter(name, labels, servers))
            .collect()
    };
    let before = read()?;
    let (wins, p99_ms) = load.rate_and_p99(task, servers)?;
    let after = read()?;
    let grown: Vec<f64> = after
        .iter()
        .zip(&before)
        .map(|(after, before)| after - before)
        .collect();
    let writes = grown[COUNTERS.len()].max(1.0);
    Ok(Sample {
        wins,
        p99_ms,
        per_write: std::array::from_fn(|counter| grown[counter] / writes),
    })
}

fn heading() -> String {
    let mut titles = format!(
        "{:>7}{:>13}{:>9}{:>10}",
        "servers", "local locks", "wins/s", "p99 ms"
    );
    for (title, _, _) in COUNTERS {
        titles.push_str(&format!("{title:>11}"));
    }
    format!("{titles}\n{}", "-".repeat(titles.len()))
}

fn line(servers: usize, word: &str, rounds: &[Sample]) -> String {
    let over = |value: fn(&Sample) -> f64| median(rounds.iter().map(value));
    let mut line = format!(
        "{servers:>7}{word:>13}{:>9.0}{:>10.1}",
        over(|round| round.wins),
        over(|round| round.p99_ms)
    );
    for counter in 0..COUNTERS.len() {
        let per_write = median(rounds.iter().map(|round| round.per_write[counter]));
        line.push_str(&format!("{per_write:>11.3}"));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_medians_under_their_titles() {
        let round = |wins: f64| Sample {
            wins,
            p99_ms: 2.0 * wins,
            per_write: [0.5, 0.0, 1.0, 0.25],
        };
        let line = line(2, "on", &[round(100.0), round(1.0), round(300.0)]);
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(
            words,
            ["2", "on", "100", "200.0", "0.500", "0.000", "1.000", "0.250"]
        );
        assert_eq!(line.len(), heading().lines().next().unwrap().len());
    }
}

//! What came of a run.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::ops::RangeInclusive;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use treeline_history::{End, Outcome, Verb, Verdict};

use crate::fault::{Fault, Over};
use crate::fleet::Death;
use crate::log::Oddities;
use crate::options::Options;
use crate::tally::{Tally, operations};

/// What a run leaves beside its history.
#[derive(Debug)]
pub(crate) struct Aftermath {
    /// What `treeline check` has found.
    pub(crate) audit: Option<String>,
    pub(crate) over: Option<Over>,
    /// Which servers were dead, and when.
    pub(crate) deaths: Vec<Death>,
    /// How many servers were killed on the way.
    pub(crate) killed: usize,
    /// Servers that did not serve again.
    pub(crate) silent: Vec<usize>,
    pub(crate) oddities: Oddities,
    /// What the servers have logged as failures of their own.
    pub(crate) log_errors: String,
}

/// The verdict, and what the audit and the answers say beside it.
#[derive(Debug)]
pub(crate) struct Summary {
    backend: String,
    seed: u64,
    history: String,
    verdict: Verdict,
    tally: Tally,
    audit: Option<String>,
    fault: Option<(String, Fault)>,
    killed: usize,
    unanswered: usize,
    /// What was seen and must not be.
    amiss: Vec<&'static str>,
    /// From the end of the fault to the first write that was answered with success, in milliseconds; of the slowest server
    /// if it is owed by each.
    recovered_ms: Option<u64>,
    silent: Vec<usize>,
    log_errors: String,
}

impl Summary {
    /// Reads the log and judges it.
    pub(crate) fn of(options: &Options, aftermath: Aftermath) -> Result<Summary> {
        let open = || {
            let file = File::open(&options.history).context("cannot read the history")?;
            anyhow::Ok(BufReader::new(file))
        };
        let fault = options.fault.as_ref().map(|(_, fault)| *fault);
        let over = aftermath.over.unwrap_or_default();
        let tally = Tally::of(open()?, options, &over)?;
        // Whatever is left out of it, the log itself must be whole.
        let mut verdict = treeline_history::check(open()?)?;
        if let Some(stale) = &over.stale {
            verdict = treeline_history::check(without_reads(open()?, stale)?.as_bytes())?;
        }
        let first_write = fault.and_then(|fault| fault.owed().settled_at(&tally.first_writes));
        let mut amiss = over.amiss;
        amiss.extend(tally.amiss(options));
        let Oddities { unanswered, bare } = aftermath.oddities;
        if bare > 0 {
            amiss.push("bare-503");
        }
        // A server that dies takes along what it had been asked. Nobody else may leave a client without an answer.
        let deaths = &aftermath.deaths;
        let is_of_the_dead = |request| deaths.iter().any(|death| death.explains(request));
        if !unanswered.iter().all(is_of_the_dead) {
            amiss.push("unanswered");
        }
        if options.kills && aftermath.killed == 0 {
            amiss.push("none-killed");
        }
        Ok(Summary {
            backend: options.backend.clone(),
            seed: options.seed,
            history: options.history.display().to_string(),
            verdict,
            audit: aftermath.audit,
            fault: options.fault.clone(),
            killed: aftermath.killed,
            unanswered: unanswered.len(),
            amiss,
            recovered_ms: first_write.map(|first| (first - over.at) / 1_000),
            silent: aftermath.silent,
            log_errors: aftermath.log_errors,
            tally,
        })
    }

    pub(crate) fn holds(&self) -> bool {
        let is_amiss = !self.amiss.is_empty();
        self.verdict.holds() && self.audit.is_none() && self.tally.failed == 0 && !is_amiss && !self.is_late()
    }

    /// Whether the servers took too long to serve again.
    fn is_late(&self) -> bool {
        let is_late = |fault: Fault| {
            self.recovered_ms
                .is_none_or(|took| took > fault.recovered_ms_max())
        };
        self.fault.as_ref().is_some_and(|(_, fault)| is_late(*fault)) || !self.silent.is_empty()
    }

    /// What is wrong, for people.
    pub(crate) fn complaint(&self) -> Option<String> {
        if self.holds() {
            return None;
        }
        let audit = self.audit.as_deref().map_or(String::new(), |text| {
            format!("`treeline check` found something:\n{text}")
        });
        let failed = match self.tally.failed {
            0 => String::new(),
            failed => format!("{failed} answers were a 5xx; logged:\n{}\n", self.log_errors),
        };
        let amiss = match self.amiss.as_slice() {
            [] => String::new(),
            amiss => format!("amiss: {}\n", amiss.join(", ")),
        };
        Some(format!(
            "{}{amiss}{failed}{audit}in {}",
            self.verdict, self.history
        ))
    }

    /// All of it, for programs, on one line.
    pub(crate) fn json(&self) -> Value {
        let rules: Vec<String> = self
            .verdict
            .violations
            .iter()
            .map(|violation| violation.rule.to_string())
            .collect();
        json!({
            "backend": self.backend,
            "seed": self.seed,
            "history": self.history,
            "operations": self.verdict.operations,
            "succeeded": self.verdict.succeeded,
            "refused": self.verdict.refused,
            "unknown": self.verdict.unknown,
            "entities": self.verdict.entities,
            "answers": self.tally.answers,
            "unanswered": self.unanswered,
            "slowest_ms": self.tally.slowest / 1_000,
            "killed": self.killed,
            "failed": self.tally.failed,
            "rules": rules,
            "audit": self.audit,
            "fault": self.fault.as_ref().map(|(name, _)| name),
            "recovered_ms": self.recovered_ms,
            "recovered_ms_max": self.fault.as_ref().map(|(_, fault)| fault.recovered_ms_max()),
            "amiss": self.amiss,
            "late": self.is_late(),
            "silent": self.silent,
        })
    }
}

/// The log without what was only read in a time, which a refusal and the drop of nothing are as well.
fn without_reads(log: impl BufRead, time: &RangeInclusive<u64>) -> Result<String> {
    let (mut kept, mut end) = (String::new(), End { end: 0 });
    for operation in operations(log) {
        let mut operation = operation?;
        if operation.ended >= *time.start() && operation.begun <= *time.end() {
            let is_read = matches!(operation.operation, Verb::Load | Verb::List);
            if is_read || operation.dropped == Some(false) {
                continue;
            }
            if operation.outcome == Outcome::Refused {
                operation.outcome = Outcome::Unknown;
            }
        }
        end.end += 1;
        kept.push_str(&serde_json::to_string(&operation)?);
        kept.push('\n');
    }
    kept.push_str(&serde_json::to_string(&end)?);
    Ok(kept)
}

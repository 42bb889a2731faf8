//! What came of a run.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::ops::RangeInclusive;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use treeline_history::{Operation, Outcome, Verb, Verdict};

use crate::fault::{Fault, Over, Owed};
use crate::options::Options;

/// The verdict, and what the audit and the answers say beside it.
#[derive(Debug)]
pub(crate) struct Summary {
    backend: String,
    seed: u64,
    history: String,
    verdict: Verdict,
    /// How often each status was answered; 0 stands for no answer.
    answers: BTreeMap<u16, usize>,
    /// What `treeline check` has found.
    audit: Option<String>,
    fault: Option<(String, Fault)>,
    /// What was seen during the fault and must not be.
    amiss: Vec<&'static str>,
    /// From the end of the fault to the first write that was answered with success, in milliseconds; of the slowest server
    /// if it is owed by each.
    recovered_ms: Option<u64>,
    /// Servers that did not serve again.
    silent: Vec<usize>,
    /// What the servers have logged as failures of their own.
    log_errors: String,
}

impl Summary {
    /// Reads the log and judges it.
    pub(crate) fn of(
        options: &Options,
        audit: Option<String>,
        over: Option<Over>,
        silent: Vec<usize>,
        log_errors: String,
    ) -> Result<Summary> {
        let open = || {
            let file = File::open(&options.history).context("cannot read the history")?;
            anyhow::Ok(BufReader::new(file))
        };
        let mut answers = BTreeMap::new();
        // Of each server, after the fault.
        let mut first_writes = vec![None::<u64>; options.servers];
        let owed = options.fault.as_ref().map(|(_, fault)| fault.owed());
        let Over { at, amiss, stale } = over.unwrap_or_default();
        for line in open()?.lines() {
            let operation: Operation = serde_json::from_str(&line?)?;
            if operation.outcome == Outcome::Ok
                && operation.ended >= at
                && !matches!(operation.operation, Verb::Load | Verb::List)
                && let Some(first) = first_writes.get_mut(operation.server as usize)
            {
                *first = Some(first.map_or(operation.ended, |first| first.min(operation.ended)));
            }
            let status = match operation.outcome {
                Outcome::Unknown => None,
                Outcome::Ok | Outcome::Refused => operation.status,
            };
            *answers.entry(status.unwrap_or(0)).or_default() += 1;
        }
        let first_write = owed.and_then(|owed| match owed {
            Owed::Any => first_writes.iter().flatten().copied().min(),
            Owed::Of(server) => first_writes.get(server).copied().flatten(),
            Owed::Each => first_writes
                .iter()
                .copied()
                .collect::<Option<Vec<u64>>>()?
                .into_iter()
                .max(),
        });
        Ok(Summary {
            backend: options.backend.clone(),
            seed: options.seed,
            history: options.history.display().to_string(),
            verdict: match stale {
                Some(stale) => treeline_history::check(without_reads(open()?, &stale)?.as_bytes())?,
                None => treeline_history::check(open()?)?,
            },
            answers,
            audit,
            fault: options.fault.clone(),
            silent,
            log_errors,
            amiss,
            recovered_ms: first_write.map(|first| (first - at) / 1_000),
        })
    }

    pub(crate) fn holds(&self) -> bool {
        let is_amiss = !self.amiss.is_empty();
        self.verdict.holds() && self.audit.is_none() && self.failed() == 0 && !is_amiss && !self.is_late()
    }

    /// Whether the servers took too long to serve again.
    fn is_late(&self) -> bool {
        let is_late = |fault: Fault| {
            self.recovered_ms
                .is_none_or(|took| took > fault.recovered_ms_max())
        };
        self.fault.as_ref().is_some_and(|(_, fault)| is_late(*fault)) || !self.silent.is_empty()
    }

    /// How often a server answered that it had failed. Only a fault gives it a reason to say that it cannot serve now.
    fn failed(&self) -> usize {
        let is_told = |status: u16| status == 503 && self.fault.is_some();
        let failures = self
            .answers
            .iter()
            .filter(|(status, _)| **status >= 500 && !is_told(**status));
        failures.map(|(_, count)| count).sum()
    }

    /// What is wrong, for people.
    pub(crate) fn complaint(&self) -> Option<String> {
        if self.holds() {
            return None;
        }
        let audit = self.audit.as_deref().map_or(String::new(), |text| {
            format!("`treeline check` found something:\n{text}")
        });
        let failed = match self.failed() {
            0 => String::new(),
            failed => format!("{failed} answers were a 5xx; logged:\n{}\n", self.log_errors),
        };
        Some(format!("{}{failed}{audit}in {}", self.verdict, self.history))
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
            "answers": self.answers,
            "failed": self.failed(),
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
    let mut kept = String::new();
    for line in log.lines() {
        let mut line = line?;
        let mut operation: Operation = serde_json::from_str(&line)?;
        if operation.ended >= *time.start() && operation.begun <= *time.end() {
            let is_read = matches!(operation.operation, Verb::Load | Verb::List);
            if is_read || operation.dropped == Some(false) {
                continue;
            }
            if operation.outcome == Outcome::Refused {
                operation.outcome = Outcome::Unknown;
                line = serde_json::to_string(&operation)?;
            }
        }
        kept.push_str(&line);
        kept.push('\n');
    }
    Ok(kept)
}

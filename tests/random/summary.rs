//! What came of a run.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use treeline_history::{Operation, Outcome, Verdict};

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
}

impl Summary {
    /// Reads the log and judges it.
    pub(crate) fn of(options: &Options, audit: Option<String>) -> Result<Summary> {
        let open = || {
            let file = File::open(&options.history).context("cannot read the history")?;
            anyhow::Ok(BufReader::new(file))
        };
        let mut answers = BTreeMap::new();
        for line in open()?.lines() {
            let operation: Operation = serde_json::from_str(&line?)?;
            let status = match operation.outcome {
                Outcome::Unknown => None,
                Outcome::Ok | Outcome::Refused => operation.status,
            };
            *answers.entry(status.unwrap_or(0)).or_default() += 1;
        }
        Ok(Summary {
            backend: options.backend.clone(),
            seed: options.seed,
            history: options.history.display().to_string(),
            verdict: treeline_history::check(open()?)?,
            answers,
            audit,
        })
    }

    pub(crate) fn holds(&self) -> bool {
        self.verdict.holds() && self.audit.is_none() && self.failed() == 0
    }

    /// How often a server answered that it had failed. Nothing in a run gives it a reason to.
    fn failed(&self) -> usize {
        let failures = self.answers.iter().filter(|(status, _)| **status >= 500);
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
            failed => format!("{failed} answers were a 5xx\n"),
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
        })
    }
}

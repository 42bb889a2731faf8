//! What the answers of a run add up to, whatever they say of entities.

use std::collections::{BTreeMap, HashMap};
use std::io::BufRead;

use anyhow::Result;
use treeline_history::{End, Operation, Outcome, Verb};

use crate::due::Bounds;
use crate::fault::Over;
use crate::options::Options;

/// A server that refuses nearly everything breaks no rule. Runs on a machine that is overloaded have twenty times as many.
const SUCCESSES_A_SECOND_MIN: u64 = 5;

const VERBS: [Verb; 6] = [
    Verb::Create,
    Verb::Load,
    Verb::List,
    Verb::Set,
    Verb::Rename,
    Verb::Drop,
];

/// Counts over all operations of a log.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    /// How often each status was answered; 0 stands for no answer.
    pub(crate) answers: BTreeMap<u16, usize>,
    /// How often a server answered that it had failed. A fault gives it a reason to say that it cannot serve now, as long as
    /// it lasts and until it must have been got over.
    pub(crate) failed: usize,
    /// How many operations took longer than they may (`due`), answered or not.
    slow: usize,
    /// How long the slowest operation took, in microseconds.
    pub(crate) slowest: u64,
    /// Of each server, when its first write after the fault was answered with success.
    pub(crate) first_writes: Vec<Option<u64>>,
    succeeded: HashMap<Verb, u64>,
}

impl Tally {
    pub(crate) fn of(log: impl BufRead, options: &Options, over: &Over) -> Result<Tally> {
        let mut tally = Tally {
            first_writes: vec![None; options.servers],
            ..Tally::default()
        };
        let fault = options.fault.as_ref().map(|(_, fault)| *fault);
        let bounds = Bounds { fault, over };
        for operation in operations(log) {
            tally.add(&operation?, bounds);
        }
        Ok(tally)
    }

    fn add(&mut self, operation: &Operation, bounds: Bounds<'_>) {
        let (server, begun, ended) = (operation.server as usize, operation.begun, operation.ended);
        self.slowest = self.slowest.max(ended - begun);
        self.slow += usize::from(bounds.is_slow(server, begun, ended));
        let status = match operation.outcome {
            Outcome::Unknown => 0,
            Outcome::Ok | Outcome::Refused => operation.status.unwrap_or(0),
        };
        *self.answers.entry(status).or_default() += 1;
        if status >= 500 && !(status == 503 && bounds.excuses(begun, ended)) {
            self.failed += 1;
        }
        if operation.outcome != Outcome::Ok {
            return;
        }
        *self.succeeded.entry(operation.operation).or_default() += 1;
        let is_write = !matches!(operation.operation, Verb::Load | Verb::List);
        if is_write
            && ended >= bounds.over.at
            && let Some(first) = self.first_writes.get_mut(server)
        {
            *first = Some(first.map_or(ended, |first| first.min(ended)));
        }
    }

    /// What must not be, whatever the checker says.
    pub(crate) fn amiss(&self, options: &Options) -> Vec<&'static str> {
        let mut amiss = Vec::new();
        if self.slow > 0 {
            amiss.push("slow");
        }
        let has_each = VERBS.iter().all(|verb| self.succeeded.contains_key(verb));
        let successes: u64 = self.succeeded.values().sum();
        if !has_each || successes < SUCCESSES_A_SECOND_MIN * options.seconds {
            amiss.push("idle");
        }
        amiss
    }
}

/// The operations of a log, up to its end line.
pub(crate) fn operations(log: impl BufRead) -> impl Iterator<Item = Result<Operation>> {
    let is_end = |line: &str| serde_json::from_str::<End>(line).is_ok();
    log.lines()
        .take_while(move |line| !line.as_ref().is_ok_and(|line| is_end(line)))
        .map(|line| Ok(serde_json::from_str(&line?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OVER: Over = Over {
        from: 1_000_000,
        at: 2_000_000,
        amiss: Vec::new(),
        stale: None,
    };

    fn options(words: &str) -> Options {
        let words = format!("--history h --seconds 1 {words}");
        Options::parse(words.split_whitespace().map(str::to_owned)).unwrap()
    }

    fn operation(verb: Verb, status: u16, begun: u64, ended: u64) -> Operation {
        let mut operation = Operation::new(verb, "schema", vec!["s".to_owned()]);
        (operation.begun, operation.ended) = (begun, ended);
        operation.status = Some(status);
        operation.outcome = if status == 200 {
            Outcome::Ok
        } else {
            Outcome::Refused
        };
        operation
    }

    fn tally(operations: &[Operation], options: &Options) -> Tally {
        let lines: Vec<String> = operations
            .iter()
            .map(|operation| serde_json::to_string(operation).unwrap())
            .chain([r#"{"end":0}"#.to_owned()])
            .collect();
        Tally::of(lines.join("\n").as_bytes(), options, &OVER).unwrap()
    }

    #[test]
    fn a_503_is_a_failure_unless_a_fault_excuses_it() {
        let failed = |fault: &str, begun, ended| {
            let refused = operation(Verb::Set, 503, begun, ended);
            tally(&[refused], &options(fault)).failed
        };
        let killed = "--fault database-killed";
        assert_eq!(failed(killed, 900_000, 1_000_000), 0);
        assert_eq!(failed(killed, 900_000, 999_999), 1);
        assert_eq!(failed(killed, 7_000_001, 7_100_000), 1);
        // It began in time, and hung.
        assert_eq!(failed(killed, 1_900_000, 40_000_000), 1);
        assert_eq!(failed("", 1_500_000, 1_600_000), 1);
    }

    #[test]
    fn no_other_5xx_is_excused() {
        let refused = operation(Verb::Set, 500, 1_500_000, 1_600_000);
        assert_eq!(tally(&[refused], &options("--fault database-killed")).failed, 1);
    }

    #[test]
    fn a_run_in_which_a_verb_never_succeeds_or_too_little_does_is_idle() {
        let each: Vec<Operation> = VERBS.map(|verb| operation(verb, 200, 1, 2)).into();
        assert!(tally(&each, &options("")).amiss(&options("")).is_empty());
        assert_eq!(tally(&each[1..], &options("")).amiss(&options("")), ["idle"]);
        assert_eq!(
            tally(&each, &options("--seconds 2")).amiss(&options("--seconds 2")),
            ["idle"]
        );
    }

    #[test]
    fn an_answer_that_hangs_is_slow_whatever_goes_wrong_and_so_is_none_at_all() {
        for words in [
            "",
            "--fault database-frozen",
            "--fault server-cut-off",
            "--fault node-killed",
        ] {
            let mut each: Vec<Operation> = VERBS.map(|verb| operation(verb, 200, 1, 2)).into();
            assert!(tally(&each, &options(words)).amiss(&options(words)).is_empty());
            each.push(operation(Verb::Set, 200, 1_500_000, 31_500_000));
            assert_eq!(tally(&each, &options(words)).amiss(&options(words)), ["slow"]);
            each[6].outcome = Outcome::Unknown;
            assert_eq!(tally(&each, &options(words)).amiss(&options(words)), ["slow"]);
        }
    }

    #[test]
    fn the_first_write_after_a_fault_is_counted_server_by_server() {
        let mut writes = [
            operation(Verb::Set, 200, 1_900_000, 1_999_999),
            operation(Verb::Load, 200, 2_000_000, 2_100_000),
            operation(Verb::Set, 200, 1_900_000, 2_200_000),
            operation(Verb::Set, 503, 2_000_000, 2_300_000),
        ];
        writes[3].server = 1;
        let tally = tally(&writes, &options("--fault database-killed"));
        assert_eq!(tally.first_writes, [Some(2_200_000), None]);
    }
}

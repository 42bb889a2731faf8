//! What all rules share: the history, the verdict as it grows, and how an operation is shown.

use std::fmt::Write as _;

use crate::history::{Answer, History, NEVER, PlaceId};
use crate::operation::Verb;
use crate::verdict::{Concerned, Rule, Verdict, Violation};

/// One history being judged.
pub(crate) struct Judge<'h> {
    pub(crate) history: &'h History,
    pub(crate) verdict: Verdict,
}

impl Judge<'_> {
    /// A rule is broken by these operations.
    pub(crate) fn report(
        &mut self,
        rule: Rule,
        entity: String,
        what: impl Into<String>,
        operations: &[usize],
    ) {
        let operations = operations.iter().map(|op| Concerned {
            line: self.history.operations[*op].line as usize,
            text: self.show(*op),
        });
        let violation = Violation {
            rule,
            entity,
            what: what.into(),
            operations: operations.collect(),
        };
        self.verdict.add(violation);
    }

    /// An entity, by its id and a place where it was.
    pub(crate) fn entity(&self, id: i64, place: PlaceId) -> String {
        format!("{} (id {id})", self.history.describe_place(place))
    }

    fn show(&self, op: usize) -> String {
        let op = &self.history.operations[op];
        let verb = match op.verb {
            Verb::Create => "create",
            Verb::Load => "load",
            Verb::List => "list",
            Verb::Set => "set",
            Verb::Rename => "rename",
            Verb::Drop => "drop",
        };
        let mut text = format!("client {} at server {}: {verb}", op.process, op.server);
        let place = self.history.describe_place(op.place);
        let _ = write!(text, " {}", place.trim_start());
        if let Some(target) = op.target {
            let _ = write!(text, " to {}", self.history.describe_place(target));
        }
        for (key, value) in &op.sets {
            let _ = write!(text, " {}={}", self.history.text(*key), self.history.text(*value));
        }
        if let Some(tag) = op.if_match {
            let _ = write!(text, " if {tag}");
        }
        let answer = match &op.answer {
            Answer::State(tag) => tag.to_string(),
            Answer::Dropped(true) => "dropped".to_owned(),
            Answer::Dropped(false) => "nothing to drop".to_owned(),
            Answer::Names(names) => format!("{} names", names.len()),
            Answer::Missing => "missing".to_owned(),
            Answer::Taken => "taken".to_owned(),
            Answer::Refused => "refused".to_owned(),
            Answer::Unknown => "unknown".to_owned(),
        };
        let _ = write!(text, " -> {answer}, from {} to ", op.begun);
        if op.ended == NEVER {
            text.push_str("nobody knows when");
        } else {
            let _ = write!(text, "{}", op.ended);
        }
        text
    }
}

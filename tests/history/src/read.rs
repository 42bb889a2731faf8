//! Reads a history line by line, and refuses what cannot be judged, with the line.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io::{BufRead, Read as _};

use crate::history::{Answer, History, NEVER, Op, PlaceId, Symbol};
use crate::operation::{End, Operation, Outcome, Tag, Verb};

/// The longest history that is read. A line takes about 400 bytes of memory, so this many take 1.6 GB.
pub const LINES_MAX: usize = 4_000_000;

/// The largest history that is read, since every text in it is kept once.
pub const BYTES_MAX: u64 = 4 << 30;

/// The longest line that is read.
pub const LINE_BYTES_MAX: usize = 1 << 20;

/// Why a history cannot be judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

impl std::error::Error for Unreadable {}

/// Whether a history must have its end line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Demanded,
    Optional,
}

/// Reads all lines. Blank ones are passed over.
pub(crate) fn read(mut input: impl BufRead, ending: Ending) -> Result<History, Unreadable> {
    let (mut history, mut is_ended) = (History::default(), false);
    let (mut line, mut number, mut total) = (Vec::new(), 0, 0);
    loop {
        line.clear();
        number += 1;
        let refuse = |reason: String| Unreadable { line: number, reason };
        let limit = u64::try_from(LINE_BYTES_MAX).unwrap_or(u64::MAX);
        let bytes = input.by_ref().take(limit).read_until(b'\n', &mut line);
        let bytes = bytes.map_err(|error| refuse(format!("cannot be read: {error}")))?;
        if bytes == 0 {
            break;
        }
        let is_whole = line.last() == Some(&b'\n');
        if !is_whole && bytes == LINE_BYTES_MAX {
            return Err(refuse(format!("longer than {LINE_BYTES_MAX} bytes")));
        }
        total += u64::try_from(bytes).unwrap_or(u64::MAX);
        if total > BYTES_MAX {
            return Err(refuse(format!("more than {BYTES_MAX} bytes")));
        }
        if number > LINES_MAX {
            return Err(refuse(format!("more than {LINES_MAX} lines")));
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        if is_ended {
            return Err(refuse("comes after the end line".to_owned()));
        }
        match serde_json::from_slice(&line) {
            Ok(operation) => add(&mut history, number, operation).map_err(refuse)?,
            Err(error) => {
                let cut = if is_whole {
                    ""
                } else {
                    "cut off in the middle of a line: "
                };
                let end = serde_json::from_slice(&line);
                let End { end } = end.map_err(|_| refuse(format!("{cut}{error}")))?;
                let count = history.operations.len();
                if end != count {
                    return Err(refuse(format!("ends {end} operations, but there are {count}")));
                }
                is_ended = true;
            }
        }
    }
    let refuse = |reason| Unreadable {
        // Nothing is on the line at which the file ends.
        line: (number - 1).max(1),
        reason,
    };
    if history.operations.is_empty() {
        return Err(refuse("has no operation".to_owned()));
    }
    if !is_ended && ending == Ending::Demanded {
        let reason = "is the last, and no end line; what came after it is not known";
        return Err(refuse(reason.to_owned()));
    }
    one_at_a_time(&history)?;
    no_parent_is_renamed(&history)?;
    Ok(history)
}

fn add(history: &mut History, line: usize, operation: Operation) -> Result<(), String> {
    if operation.ended < operation.begun {
        return Err(format!(
            "ended at {}, before it began at {}",
            operation.ended, operation.begun
        ));
    }
    if operation.ended == NEVER {
        return Err("an end so late means never".to_owned());
    }
    if operation.path.is_empty() && operation.operation != Verb::List {
        return Err("the path is empty".to_owned());
    }
    let answer = answer(history, &operation)?;
    let kind = history.symbol(&operation.kind);
    let names: Vec<Symbol> = operation.path.iter().map(|name| history.symbol(name)).collect();
    let (place, listed) = if operation.operation == Verb::List {
        // The parent's kind is not told; `parents` finds the place by its names.
        let nameless = history.symbol("");
        (history.place(nameless, &names), Some(kind))
    } else {
        (history.place(kind, &names), None)
    };
    let target = target(history, &operation, kind, &names)?;
    let sets = pairs(history, &operation.sets);
    if !sets.is_empty() && !matches!(operation.operation, Verb::Create | Verb::Set) {
        return Err("only a create or a set sets properties".to_owned());
    }
    if sets.is_empty() && operation.operation == Verb::Set {
        return Err("a set sets nothing".to_owned());
    }
    let index = history.operations.len();
    for pair in &sets {
        if let Some(first) = history.writers.insert(*pair, index) {
            return Err(format!(
                "`{}` was asked for as `{}` on line {} already; reads of it belong to neither",
                history.text(pair.1),
                history.text(pair.0),
                history.operations[first].line
            ));
        }
    }
    let seen = operation
        .properties
        .as_ref()
        .map(|properties| pairs(history, properties));
    let is_write = !matches!(operation.operation, Verb::Load | Verb::List);
    let ended = if answer == Answer::Unknown && is_write {
        NEVER
    } else {
        operation.ended
    };
    history.operations.push(Op {
        line: u32::try_from(line).unwrap_or(u32::MAX),
        process: operation.process,
        server: operation.server,
        verb: operation.operation,
        place,
        listed,
        begun: operation.begun,
        ended,
        sets,
        target,
        if_match: operation.if_match,
        answer,
        seen,
    });
    Ok(())
}

fn answer(history: &mut History, operation: &Operation) -> Result<Answer, String> {
    match operation.outcome {
        Outcome::Unknown => Ok(Answer::Unknown),
        Outcome::Refused => match (operation.status, operation.code) {
            // Whatever it was in the middle of is not known.
            (Some(500..), _) => Ok(Answer::Unknown),
            (Some(404), _) => Ok(Answer::Missing),
            (Some(409), Some(1004)) => Ok(Answer::Taken),
            (Some(_), _) => Ok(Answer::Refused),
            (None, _) => Err("refused without a status".to_owned()),
        },
        Outcome::Ok => match operation.operation {
            Verb::List => {
                let names = operation.names.as_ref().ok_or("a list answered no names")?;
                let mut names: Vec<Symbol> = names.iter().map(|name| history.symbol(name)).collect();
                names.sort_unstable();
                Ok(Answer::Names(names.into_boxed_slice()))
            }
            Verb::Drop => {
                let dropped = operation
                    .dropped
                    .ok_or("a drop does not say whether it dropped")?;
                Ok(Answer::Dropped(dropped))
            }
            Verb::Create | Verb::Load | Verb::Set | Verb::Rename => {
                let id = operation.id.ok_or("a success without an id")?;
                let version = operation.version.ok_or("a success without a version")?;
                Ok(Answer::State(Tag { id, version }))
            }
        },
    }
}

fn target(
    history: &mut History,
    operation: &Operation,
    kind: Symbol,
    names: &[Symbol],
) -> Result<Option<PlaceId>, String> {
    match (&operation.new_name, operation.operation) {
        (None, Verb::Rename) => Err("a rename without a new name".to_owned()),
        (Some(_), verb) if verb != Verb::Rename => Err("only a rename has a new name".to_owned()),
        (None, _) => Ok(None),
        (Some(new), _) => {
            let mut names = names.to_vec();
            let new = history.symbol(new);
            let old = names.pop();
            if old == Some(new) {
                return Err("renamed to the name that it has".to_owned());
            }
            names.push(new);
            Ok(Some(history.place(kind, &names)))
        }
    }
}

fn pairs(history: &mut History, properties: &BTreeMap<String, String>) -> Box<[(Symbol, Symbol)]> {
    let pairs = properties
        .iter()
        .map(|(key, value)| (history.symbol(key), history.symbol(value)));
    let mut pairs: Vec<(Symbol, Symbol)> = pairs.collect();
    pairs.sort_unstable();
    pairs.into_boxed_slice()
}

/// A client has one operation at a time; otherwise two clients were logged as one, or the clock went back.
fn one_at_a_time(history: &History) -> Result<(), Unreadable> {
    let mut order: Vec<&Op> = history.operations.iter().collect();
    order.sort_by_key(|op| (op.process, op.begun, op.line));
    for pair in order.windows(2) {
        let (first, second) = (pair[0], pair[1]);
        if first.process == second.process && first.ended != NEVER && second.begun < first.ended {
            return Err(Unreadable {
                line: second.line as usize,
                reason: format!(
                    "client {} began it at {}, before its line {} had ended at {}",
                    second.process, second.begun, first.line, first.ended
                ),
            });
        }
    }
    Ok(())
}

/// A rename of something that has children moves their paths along, which the rules do not follow.
fn no_parent_is_renamed(history: &History) -> Result<(), Unreadable> {
    let mut renamed: HashMap<&[Symbol], u32> = HashMap::new();
    for op in history.operations.iter().filter(|op| op.verb == Verb::Rename) {
        let line = renamed
            .entry(&history.place_name(op.place).names)
            .or_insert(op.line);
        *line = op.line.min(*line);
    }
    for (place, name) in history.places() {
        let parents = (1..name.names.len()).filter_map(|length| renamed.get(&name.names[..length]));
        if let Some(line) = parents.min() {
            return Err(Unreadable {
                line: *line as usize,
                reason: format!(
                    "renames what has children, such as {}; their paths cannot be followed",
                    history.describe_place(place)
                ),
            });
        }
    }
    Ok(())
}

//! What the checker says of a history.

use std::fmt;

/// What must hold. The README says what each proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// The effective writes of an entity take the versions 1, 2, 3, …, each exactly once.
    Versions,
    /// A write under `If-Match` is done on the state that it names.
    Match,
    /// What was acknowledged is there.
    Lost,
    /// What is read was written.
    Invented,
    /// One live entity of a name.
    Unique,
    /// What was dropped stays dropped.
    Dropped,
    /// Nothing lives below what was dropped.
    Parent,
    /// What ended before something else began comes before it.
    Realtime,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Rule::Versions => "H-VERSIONS",
            Rule::Match => "H-MATCH",
            Rule::Lost => "H-LOST",
            Rule::Invented => "H-INVENTED",
            Rule::Unique => "H-UNIQUE",
            Rule::Dropped => "H-DROPPED",
            Rule::Parent => "H-PARENT",
            Rule::Realtime => "H-REALTIME",
        };
        f.pad(name)
    }
}

/// One rule, broken once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which rule.
    pub rule: Rule,
    /// The entity or the place in the tree.
    pub entity: String,
    /// What happened.
    pub what: String,
    /// The operations concerned, each with its line.
    pub operations: Vec<Concerned>,
}

/// An operation that a violation is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Concerned {
    /// Its line, counted from 1.
    pub line: usize,
    /// It, in words.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<11} {}: {}", self.rule, self.entity, self.what)?;
        for operation in &self.operations {
            write!(f, "\n    line {}: {}", operation.line, operation.text)?;
        }
        Ok(())
    }
}

/// What was found in one history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Operations read.
    pub operations: usize,
    /// Those that were answered with success.
    pub succeeded: usize,
    /// Those that were answered with an error, and had no effect.
    pub refused: usize,
    /// Those of which nothing is known.
    pub unknown: usize,
    /// Entities whose id somebody was told.
    pub entities: usize,
    /// How often each rule was broken, up to a bound.
    pub violations: Vec<Violation>,
    /// Whether there were more of them than are kept.
    pub has_more: bool,
}

/// How many violations are kept: the first few are looked at, and the rest most often follow from them.
pub const VIOLATIONS_MAX: usize = 100;

impl Verdict {
    /// Whether no rule was broken.
    pub fn holds(&self) -> bool {
        self.violations.is_empty()
    }

    pub(crate) fn add(&mut self, violation: Violation) {
        if self.violations.len() < VIOLATIONS_MAX {
            self.violations.push(violation);
        } else {
            self.has_more = true;
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for violation in &self.violations {
            writeln!(f, "{violation}")?;
        }
        writeln!(
            f,
            "{} operations: {} succeeded, {} refused, {} unknown; {} entities; {}{} violations",
            self.operations,
            self.succeeded,
            self.refused,
            self.unknown,
            self.entities,
            self.violations.len(),
            if self.has_more { " and more" } else { "" }
        )
    }
}

//! Histories written by hand: one operation after the other, each taking ten microseconds, unless a test says otherwise.

use std::collections::{BTreeMap, BTreeSet};

use treeline_history::{End, Operation, Outcome, Rule, Tag, Unreadable, Verb, Verdict, check};

/// A history in the making.
#[derive(Clone, Debug, Default)]
pub(crate) struct Book {
    pub(crate) operations: Vec<Operation>,
    now: u64,
}

/// `s` is a schema, `s/f` a fileset.
fn path(name: &str) -> Vec<String> {
    ["m", "c"]
        .into_iter()
        .chain(name.split('/'))
        .map(str::to_owned)
        .collect()
}

fn pairs(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

impl Book {
    /// The next operation, of the first client. What it answers is up to the caller.
    pub(crate) fn add(&mut self, verb: Verb, name: &str) -> &mut Operation {
        let kind = if name.contains('/') { "fileset" } else { "schema" };
        let mut operation = Operation::new(verb, kind, path(name));
        self.now += 10;
        operation.begun = self.now;
        self.now += 10;
        operation.ended = self.now;
        self.operations.push(operation);
        self.operations.last_mut().unwrap()
    }

    fn ok(&mut self, verb: Verb, name: &str, tag: &str) -> &mut Operation {
        let operation = self.add(verb, name);
        let tag: Tag = tag.parse().unwrap();
        operation.outcome = Outcome::Ok;
        (operation.id, operation.version) = (Some(tag.id), Some(tag.version));
        operation
    }

    pub(crate) fn create(&mut self, name: &str, tag: &str, sets: &[(&str, &str)]) -> &mut Operation {
        let operation = self.ok(Verb::Create, name, tag);
        operation.sets = pairs(sets);
        operation
    }

    pub(crate) fn load(&mut self, name: &str, tag: &str, seen: &[(&str, &str)]) -> &mut Operation {
        let operation = self.ok(Verb::Load, name, tag);
        operation.properties = Some(pairs(seen));
        operation
    }

    pub(crate) fn set(&mut self, name: &str, tag: &str, key: &str, value: &str) -> &mut Operation {
        let operation = self.ok(Verb::Set, name, tag);
        operation.sets = pairs(&[(key, value)]);
        operation
    }

    pub(crate) fn rename(&mut self, name: &str, tag: &str, new: &str) -> &mut Operation {
        let operation = self.ok(Verb::Rename, name, tag);
        operation.new_name = Some(new.to_owned());
        operation
    }

    pub(crate) fn list(&mut self, name: &str, names: &[&str]) -> &mut Operation {
        let operation = self.add(Verb::List, name);
        operation.kind = "fileset".to_owned();
        operation.outcome = Outcome::Ok;
        operation.names = Some(names.iter().map(|name| (*name).to_owned()).collect());
        operation
    }

    pub(crate) fn drop(&mut self, name: &str, dropped: bool) -> &mut Operation {
        let operation = self.add(Verb::Drop, name);
        operation.outcome = Outcome::Ok;
        operation.dropped = Some(dropped);
        operation.cascade = true;
        operation
    }

    pub(crate) fn refused(&mut self, verb: Verb, name: &str, status: u16, code: i64) -> &mut Operation {
        let operation = self.add(verb, name);
        operation.outcome = Outcome::Refused;
        (operation.status, operation.code) = (Some(status), Some(code));
        operation
    }

    pub(crate) fn missing(&mut self, name: &str) -> &mut Operation {
        self.refused(Verb::Load, name, 404, 1003)
    }

    /// What the checker says.
    pub(crate) fn verdict(&self) -> Result<Verdict, Unreadable> {
        check(lines(&self.operations).as_bytes())
    }

    /// Fails unless every rule holds.
    #[track_caller]
    pub(crate) fn holds(&self) {
        let verdict = self.verdict().unwrap();
        assert!(verdict.holds(), "{verdict}");
    }

    /// Fails unless exactly this rule is broken, and these lines are named, counted from 1.
    #[track_caller]
    pub(crate) fn breaks(&self, rule: Rule, lines: &[usize]) {
        let verdict = self.verdict().unwrap();
        let rules: BTreeSet<Rule> = verdict
            .violations
            .iter()
            .map(|violation| violation.rule)
            .collect();
        assert_eq!(rules, BTreeSet::from([rule]), "{verdict}");
        let named = verdict
            .violations
            .iter()
            .flat_map(|violation| &violation.operations);
        let named: BTreeSet<usize> = named.map(|operation| operation.line).collect();
        assert!(
            lines.iter().all(|line| named.contains(line)),
            "{lines:?} in\n{verdict}"
        );
    }
}

impl Book {
    /// How many lines there are, which is the number of the last.
    pub(crate) fn line(&self) -> usize {
        self.operations.len()
    }

    /// The operation on that line.
    pub(crate) fn at(&mut self, line: usize) -> &mut Operation {
        &mut self.operations[line - 1]
    }
}

/// By another client, from that moment to this.
pub(crate) fn during(operation: &mut Operation, process: u32, begun: u64, ended: u64) {
    (operation.process, operation.begun, operation.ended) = (process, begun, ended);
}

/// A whole history.
pub(crate) fn lines(operations: &[Operation]) -> String {
    let line = |operation| serde_json::to_string(operation).unwrap() + "\n";
    let lines: String = operations.iter().map(line).collect();
    lines + &end(operations.len())
}

/// The end line of so many operations.
pub(crate) fn end(operations: usize) -> String {
    serde_json::to_string(&End { end: operations }).unwrap() + "\n"
}

/// A history that is right and has something of everything. The line of each operation stands beside it.
pub(crate) fn good() -> Book {
    let mut book = Book::default();
    book.create("s", "3-1", &[]); // 1
    book.create("s/f", "4-1", &[("a", "1")]); // 2
    book.set("s/f", "4-2", "b", "2"); // 3
    book.load("s/f", "4-2", &[("a", "1"), ("b", "2")]); // 4
    book.set("s/f", "4-3", "a", "3").if_match = Some("4-2".parse().unwrap()); // 5
    book.load("s/f", "4-3", &[("a", "3"), ("b", "2")]); // 6
    book.rename("s/f", "4-4", "g"); // 7
    book.load("s/g", "4-4", &[("a", "3"), ("b", "2")]); // 8
    book.missing("s/f"); // 9
    book.list("s", &["g"]); // 10
    book.drop("s/g", true); // 11
    book.missing("s/g"); // 12
    book.create("s/g", "5-1", &[]); // 13
    book.refused(Verb::Create, "s/g", 409, 1004).sets = pairs(&[("a", "4")]); // 14
    book.load("s/g", "5-1", &[]); // 15
    book.drop("s", true); // 16
    book.missing("s/g"); // 17
    book.drop("s", false); // 18
    book.create("s", "6-1", &[]); // 19
    book.list("s", &[]); // 20
    book.create("s/g", "7-1", &[]); // 21
    book.load("s/g", "7-1", &[]); // 22
    book
}

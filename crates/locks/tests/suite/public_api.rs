//! The public API as a person reads it, so that no change of it goes unseen.
//!
//! A tool that compares with the last release needs a release to compare with; until there is one, this is the check.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use treeline_locks::{Guard, Loader, NameLocks, Report, TimedOut, VersionedCell};

use crate::cell::Source;

const SOURCES: [(&str, &str); 5] = [
    ("ask", include_str!("../../src/ask.rs")),
    ("names", include_str!("../../src/names.rs")),
    ("guard", include_str!("../../src/guard.rs")),
    ("report", include_str!("../../src/report.rs")),
    ("cell", include_str!("../../src/cell.rs")),
];

#[test]
fn the_public_api_is_the_reviewed_one() {
    let mut text = String::new();
    for line in include_str!("../../src/lib.rs")
        .lines()
        .filter(|line| line.starts_with("pub use"))
    {
        text.push_str(line);
        text.push('\n');
    }
    for (module, source) in SOURCES {
        let items = public_items(source);
        let lines: Vec<&str> = items.lines().collect();
        let _ = writeln!(text, "\n// {module}");
        for (at, line) in lines.iter().enumerate() {
            // A block of inherent methods none of which is public.
            let bare = line.starts_with("impl") && !line.contains(" for ");
            if !bare || lines.get(at + 1).is_some_and(|next| next.starts_with(' ')) {
                let _ = writeln!(text, "{line}");
            }
        }
    }
    insta::assert_snapshot!(text);
}

/// Every public signature on one line, with its derives, the variants of an enum and the items of a trait.
fn public_items(source: &str) -> String {
    let (mut text, mut item, mut whole) = (String::new(), String::new(), false);
    for line in source.lines() {
        let code = line.trim();
        let outer = !line.starts_with(' ');
        if code.starts_with("//") || code.is_empty() {
            continue;
        }
        let opens = code.starts_with("pub ") || code.starts_with("#[derive") || code == "#[non_exhaustive]";
        let is_impl = outer && code.starts_with("impl");
        let inside = whole && !outer && code != "}" && code != "},";
        if item.is_empty() && !opens && !is_impl && !inside {
            whole &= !(outer && code == "}");
            continue;
        }
        item = format!("{item}{}{code}", if item.is_empty() { "" } else { " " });
        if code.ends_with(['{', ';', ',', ']', '}']) && item.matches('(').count() == item.matches(')').count()
        {
            whole |= item.starts_with("pub enum") || item.starts_with("pub trait");
            let indent = if outer { "" } else { "    " };
            let _ = writeln!(
                text,
                "{indent}{}",
                item.trim_end_matches(['{', '}', ',', ';', ' '])
            );
            item.clear();
        }
    }
    text
}

/// What no declaration shows: guards and waits cross threads, as do errors and reports.
#[test]
fn everything_may_cross_threads() {
    fn crosses<T: Send + Sync>() {}
    fn is_sent<T: Send>(_: &T) {}
    crosses::<NameLocks<String>>();
    crosses::<Guard<'static, String>>();
    crosses::<TimedOut<String>>();
    crosses::<Report<String>>();
    fn cells_of<L: Loader<String>>() {
        crosses::<VersionedCell<String, L>>();
    }
    let _: fn() = cells_of::<Arc<Source>>;
    let locks = NameLocks::<String>::new();
    is_sent(&locks.write(&"x".to_owned(), Duration::ZERO));
    is_sent(&locks.many([], Duration::ZERO));
}

//! The table of the README, in Markdown, from the medians that criterion wrote.

use std::fmt::Write as _;
use std::path::Path;

use crate::clock;
use crate::memory::Churn;
use crate::scenario::ALL;
use crate::writer_wait::Waits;

pub(crate) fn render(home: &Path, names: &[&str], churn: &[Churn], waits: &[Waits]) -> String {
    let clock = if clock::is_cpu() {
        "processor time"
    } else {
        "wall time"
    };
    let mut text = format!("\nns per acquire + release, {clock}, median\n\n|");
    for scenario in ALL {
        let _ = write!(text, " | {}", scenario.title);
    }
    text.push_str(" | churn of 1,000,000 keys | grown by | writer waits p50 / p99 / p99.9 / most |\n|---|");
    text.push_str(&"---|".repeat(ALL.len() + 3));
    for (index, name) in names.iter().enumerate() {
        let _ = write!(text, "\n| {name}");
        for scenario in ALL {
            let _ = write!(text, " | {:.0}", median(home, scenario.id, name));
        }
        let (Churn { ns_each, grown_kib }, Waits { p50, p99, p999, max }) = (&churn[index], &waits[index]);
        let _ = write!(
            text,
            " | {ns_each} | {grown_kib} KiB | {p50:.1?} / {p99:.1?} / {p999:.1?} / {max:.1?} |"
        );
    }
    text.push_str("\n\nhow many times faster than\n\n| ");
    for scenario in ALL {
        let _ = write!(text, "| {} ", scenario.title);
    }
    text.push_str("|\n|---|");
    text.push_str(&"---|".repeat(ALL.len()));
    for peer in &names[1..] {
        let _ = write!(text, "\n| {peer} |");
        for scenario in ALL {
            let ratio = median(home, scenario.id, peer) / median(home, scenario.id, names[0]);
            let _ = write!(text, " {ratio:.2} |");
        }
    }
    text
}

fn median(home: &Path, scenario: &str, contender: &str) -> f64 {
    let path = home.join(scenario).join(contender).join("new/estimates.json");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let estimates: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    estimates["median"]["point_estimate"].as_f64().unwrap_or(f64::NAN)
}

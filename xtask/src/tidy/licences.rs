//! What `deny.toml` says of all that is linked in: licences, sources, and crates of which there may be none or one.
//!
//! The file is in the form of cargo-deny, which takes minutes to build; this reads the part of it that needs no
//! database of advisories, from what cargo knows anyway.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::Value as Json;
use toml::{Table, Value};

use super::spdx;
use super::tree::Complaint;
use crate::command;

const FILE: &str = "deny.toml";

/// Checks every package of the lock file.
pub(super) fn check(root: &Path) -> Result<Vec<Complaint>> {
    let text = std::fs::read_to_string(root.join(FILE)).with_context(|| format!("cannot read {FILE}"))?;
    let rules: Table = text.parse().with_context(|| format!("cannot parse {FILE}"))?;
    let metadata = command::metadata(root, &["--locked"])?;
    Ok(complaints(&rules, &metadata))
}

fn complaints(rules: &Table, metadata: &Json) -> Vec<Complaint> {
    let no_packages = Vec::new();
    let packages = metadata["packages"].as_array().unwrap_or(&no_packages);
    let mut complaints = Vec::new();
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        let text = |key: &str| package[key].as_str().unwrap_or_default();
        versions.entry(text("name")).or_default().push(text("version"));
        let mut complain = |message: String| {
            let message = format!("{} {}: {message}", text("name"), text("version"));
            complaints.push(Complaint::new(FILE, 1, message));
        };
        if !spdx::is_covered(text("license"), &words(rules, "licenses", "allow")) {
            complain(format!(
                "its licence `{}` is not among those allowed",
                text("license")
            ));
        }
        let source = package["source"].as_str();
        let known = |source: &str| {
            let address = source.split_once('+').map_or(source, |(_, address)| address);
            words(rules, "sources", "allow-registry").contains(&address)
        };
        if source.is_some_and(|source| !known(source)) {
            complain(format!(
                "it comes from {}, which is not allowed",
                source.unwrap_or_default()
            ));
        }
    }
    complaints.extend(bans(rules, &versions));
    complaints
}

/// Crates that must not be there, or not in two versions.
fn bans(rules: &Table, versions: &BTreeMap<&str, Vec<&str>>) -> Vec<Complaint> {
    let entries = rules
        .get("bans")
        .and_then(|bans| bans.get("deny"))
        .and_then(Value::as_array);
    let mut complaints = Vec::new();
    for entry in entries.into_iter().flatten() {
        let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
        let found = versions.get(text("crate")).map_or(&[][..], Vec::as_slice);
        let once = entry.get("deny-multiple-versions").and_then(Value::as_bool) == Some(true);
        let allowed = usize::from(once);
        if found.len() > allowed {
            let message = format!(
                "{} is there as {}: {}",
                text("crate"),
                found.join(" and "),
                text("reason")
            );
            complaints.push(Complaint::new(FILE, 1, message));
        }
    }
    complaints
}

fn words<'a>(rules: &'a Table, section: &str, key: &str) -> Vec<&'a str> {
    let list = rules
        .get(section)
        .and_then(|section| section.get(key))
        .and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = "[licenses]\nallow = [\"MIT\"]\n[sources]\nallow-registry = [\"https://registry\"]\n\
        [bans]\ndeny = [{ crate = \"second-tls\", reason = \"one is enough\" },\n\
        { crate = \"runtime\", deny-multiple-versions = true, reason = \"its parts must meet\" }]\n";

    fn found(packages: &[(&str, &str, &str, Option<&str>)]) -> usize {
        let package = |(name, version, license, source): &(&str, &str, &str, Option<&str>)| serde_json::json!({ "name": name, "version": version, "license": license, "source": source });
        let metadata = serde_json::json!({ "packages": packages.iter().map(package).collect::<Vec<_>>() });
        complaints(&RULES.parse().unwrap(), &metadata).len()
    }

    #[test]
    fn a_licence_a_source_a_ban_and_a_second_version_are_found() {
        let registry = Some("registry+https://registry");
        assert_eq!(
            found(&[
                ("ours", "0.1.0", "MIT", None),
                ("runtime", "1.0.0", "MIT", registry)
            ]),
            0
        );
        assert_eq!(found(&[("a", "1.0.0", "GPL-3.0", registry)]), 1);
        assert_eq!(
            found(&[("a", "1.0.0", "MIT", Some("git+https://elsewhere#1"))]),
            1
        );
        assert_eq!(found(&[("second-tls", "1.0.0", "MIT", registry)]), 1);
        assert_eq!(
            found(&[
                ("runtime", "1.0.0", "MIT", registry),
                ("runtime", "2.0.0", "MIT", registry)
            ]),
            1
        );
    }
}

//! Rules about `Cargo.toml` files: one manifest decides, and the layers hold.

use toml::{Table, Value};

use super::tree::{Complaint, SourceFile, Tree};

/// What every member takes from the workspace.
const INHERITED: &[&str] = &["version", "edition", "rust-version", "license"];

/// The crates of ours that each crate may build on: the picture in ARCHITECTURE.md as data.
const LAYERS: &[(&str, &[&str])] = &[
    ("treeline-core", &[]),
    ("treeline-storage", &["treeline-core"]),
    ("treeline-connectors", &["treeline-core"]),
    ("treeline-locks", &["treeline-core"]),
    (
        "treeline-dispatch",
        &[
            "treeline-core",
            "treeline-storage",
            "treeline-connectors",
            "treeline-locks",
        ],
    ),
    // It opens, migrates and checks the database; reading and writing go through the dispatcher.
    (
        "treeline-server",
        &["treeline-core", "treeline-dispatch", "treeline-storage"],
    ),
    // They know the server as its users do: through HTTP and `treeline check`.
    ("treeline-tests", &["treeline-core", "treeline-history"]),
    // It judges what clients saw, of whichever server.
    ("treeline-history", &[]),
    ("xtask", &[]),
];

/// Dependencies that one crate alone may name, and why.
const RESERVED: &[(&str, &str, &str)] = &[
    (
        "rusqlite",
        "treeline-storage",
        "no other crate may hold a transaction",
    ),
    (
        "sqlx",
        "treeline-storage",
        "no other crate may hold a transaction",
    ),
    ("axum", "treeline-server", "no other crate knows of HTTP"),
    ("tower", "treeline-server", "no other crate knows of HTTP"),
    ("tower-http", "treeline-server", "no other crate knows of HTTP"),
];

/// All that the pure crate may use: a new entry must have neither I/O nor async.
const PURE: (&str, &[&str]) = ("treeline-core", &["serde", "thiserror"]);

const KINDS_OF_DEPENDENCIES: &[&str] = &["dependencies", "dev-dependencies", "build-dependencies"];

/// Versions and lints are decided once, in the root manifest.
pub(super) fn members_inherit(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for member in members(tree) {
        for key in INHERITED {
            if !from_workspace(member.table.get("package").and_then(|package| package.get(key))) {
                complaints.push(member.complaint(key, format!("write `{key}.workspace = true`")));
            }
        }
        if !from_workspace(member.table.get("lints")) {
            complaints.push(member.complaint("[lints]", "write `[lints]` and `workspace = true`"));
        }
        for (_, name, value) in member.dependencies() {
            if !from_workspace(Some(value)) {
                let message = format!(
                    "write `{name}.workspace = true`, and its version into the root's `workspace.dependencies`"
                );
                complaints.push(member.complaint(name, message));
            }
        }
    }
    complaints
}

/// A shared dependency that nobody names is only a line to keep up to date.
pub(super) fn shared_dependencies_are_used(tree: &Tree) -> Vec<Complaint> {
    let Some(root) = tree.file("Cargo.toml") else {
        return Vec::new();
    };
    let shared = parsed(root);
    let shared = shared
        .get("workspace")
        .and_then(|workspace| workspace.get("dependencies"));
    let Some(shared) = shared.and_then(Value::as_table) else {
        return Vec::new();
    };
    let members = members(tree);
    let used = |name: &str| {
        members.iter().any(|member| {
            member
                .dependencies()
                .iter()
                .any(|(_, dependency, _)| *dependency == name)
        })
    };
    let message = "no member uses it; remove it from `workspace.dependencies`";
    let unused = shared.keys().filter(|name| !used(name));
    unused
        .map(|name| Complaint::new(&root.path, line_of(root, name), format!("`{name}`: {message}")))
        .collect()
}

/// Who may build on whom, and who alone may name what.
pub(super) fn layers_hold(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for member in members(tree) {
        let layer = LAYERS.iter().find(|(package, _)| *package == member.name());
        let Some((_, allowed)) = layer else {
            complaints.push(member.complaint("name", "give the crate a line in the LAYERS of xtask's tidy"));
            continue;
        };
        for (kind, name, _) in member.dependencies() {
            let ours = LAYERS.iter().any(|(package, _)| *package == name);
            if ours && kind == "dependencies" && !allowed.contains(&name) {
                complaints.push(member.complaint(name, format!("{} may not build on {name}", member.name())));
            }
            if let Some((_, owner, why)) = RESERVED.iter().find(|(reserved, ..)| *reserved == name)
                && *owner != member.name()
            {
                complaints.push(member.complaint(name, format!("only {owner} may name {name}: {why}")));
            }
            if member.name() == PURE.0 && kind == "dependencies" && !PURE.1.contains(&name) {
                complaints.push(member.complaint(name, format!("{} is pure; it cannot need {name}", PURE.0)));
            }
        }
    }
    complaints
}

/// The manifest of one member.
struct Member<'a> {
    file: &'a SourceFile,
    table: Table,
}

impl Member<'_> {
    fn name(&self) -> &str {
        self.table
            .get("package")
            .and_then(|package| package.get("name"))
            .and_then(Value::as_str)
            .unwrap_or("")
    }

    /// Kind, name and what is said of each dependency, those of single platforms included.
    fn dependencies(&self) -> Vec<(&str, &str, &Value)> {
        let targets = self.table.get("target").and_then(Value::as_table);
        let platforms = targets
            .into_iter()
            .flat_map(Table::values)
            .filter_map(Value::as_table);
        let mut dependencies = Vec::new();
        for table in std::iter::once(&self.table).chain(platforms) {
            for kind in KINDS_OF_DEPENDENCIES {
                let entries = table.get(*kind).and_then(Value::as_table);
                dependencies.extend(
                    entries
                        .into_iter()
                        .flatten()
                        .map(|(name, value)| (*kind, name.as_str(), value)),
                );
            }
        }
        dependencies
    }

    fn complaint(&self, at: &str, message: impl Into<String>) -> Complaint {
        Complaint::new(&self.file.path, line_of(self.file, at), message)
    }
}

fn members(tree: &Tree) -> Vec<Member<'_>> {
    let manifests = tree
        .files
        .iter()
        .filter(|file| file.path.ends_with("/Cargo.toml"));
    manifests
        .map(|file| Member {
            file,
            table: parsed(file),
        })
        .collect()
}

/// One that does not parse is cargo's to complain of.
fn parsed(file: &SourceFile) -> Table {
    file.text.parse().unwrap_or_default()
}

fn from_workspace(value: Option<&Value>) -> bool {
    value
        .and_then(|value| value.get("workspace"))
        .and_then(Value::as_bool)
        == Some(true)
}

/// The first line that begins with this key, or the first line.
fn line_of(file: &SourceFile, key: &str) -> usize {
    let begins = |line: &str| {
        let rest = line.strip_prefix(key);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', ' ', '=']))
    };
    file.lines()
        .find(|(_, line)| begins(line))
        .map_or(1, |(number, _)| number)
}

#[cfg(test)]
mod tests {
    use super::super::tree::complaints_of;
    use super::*;

    const GOOD: &str = "[package]\nname = \"treeline-storage\"\nversion.workspace = true\nedition.workspace = true\n\
        rust-version.workspace = true\nlicense.workspace = true\n[dependencies]\ntreeline-core.workspace = true\n\
        serde = { workspace = true, features = [\"rc\"] }\n[lints]\nworkspace = true\n";
    const PATH: &str = "crates/storage/Cargo.toml";

    #[test]
    fn a_member_that_inherits_everything_is_let_pass() {
        for rule in [members_inherit, layers_hold] {
            assert!(complaints_of(rule, &[(PATH, GOOD)]).is_empty());
        }
    }

    #[test]
    fn an_own_version_edition_lint_table_or_dependency_is_found() {
        let plants = [
            ("\nversion.workspace = true", "\nversion = \"0.2.0\"", "3"),
            ("edition.workspace = true", "edition = \"2021\"", "4"),
            ("[lints]\nworkspace = true\n", "", "1"),
            (
                "serde = { workspace = true, features = [\"rc\"] }",
                "serde = \"1\"",
                "9",
            ),
            (
                "treeline-core.workspace = true",
                "treeline-core = { path = \"../core\" }",
                "8",
            ),
        ];
        for (good, bad, line) in plants {
            let text = GOOD.replace(good, bad);
            assert_eq!(
                complaints_of(members_inherit, &[(PATH, &text)]),
                [format!("{PATH}:{line}")],
                "{bad}"
            );
        }
    }

    #[test]
    fn dependencies_of_tests_and_of_platforms_are_looked_at_too() {
        for table in [
            "dev-dependencies",
            "build-dependencies",
            "target.'cfg(unix)'.dependencies",
        ] {
            let text = format!("{GOOD}[{table}]\naxum = \"0.8\"\n");
            assert_eq!(
                complaints_of(members_inherit, &[(PATH, &text)]),
                [format!("{PATH}:13")],
                "{table}"
            );
            assert_eq!(
                complaints_of(layers_hold, &[(PATH, &text)]),
                [format!("{PATH}:13")],
                "{table}"
            );
        }
    }

    #[test]
    fn a_crate_that_builds_on_the_wrong_layer_is_found() {
        let upward = GOOD.replace("treeline-core.workspace", "treeline-dispatch.workspace");
        assert_eq!(
            complaints_of(layers_hold, &[(PATH, &upward)]),
            [format!("{PATH}:8")]
        );
        let impure = GOOD
            .replace("treeline-core.workspace = true", "")
            .replace("treeline-storage", "treeline-core");
        let impure = impure.replace("serde =", "tokio =");
        assert_eq!(
            complaints_of(layers_hold, &[(PATH, &impure)]),
            [format!("{PATH}:9")]
        );
        let unknown = GOOD.replace("treeline-storage", "treeline-surprise");
        assert_eq!(
            complaints_of(layers_hold, &[(PATH, &unknown)]),
            [format!("{PATH}:2")]
        );
    }

    #[test]
    fn a_shared_dependency_without_a_user_is_found() {
        let root = "[workspace.dependencies]\nserde = \"1\"\nforgotten = \"1\"\n";
        let found = complaints_of(
            shared_dependencies_are_used,
            &[("Cargo.toml", root), (PATH, GOOD)],
        );
        assert_eq!(found, ["Cargo.toml:3"]);
    }
}

//! Says which commit this build is of, for `/api/version` and `treeline --version`.
//!
//! The date is that of the commit, so that two builds of one commit are equal; no clock is asked. Both can be given
//! in the environment, where there is no repository to ask.

use std::path::Path;
use std::process::Command;

fn main() {
    let commit = given("TREELINE_GIT_COMMIT").or_else(|| git(&["rev-parse", "HEAD"]));
    let date =
        given("TREELINE_COMPILE_DATE").or_else(|| git(&["show", "--no-patch", "--format=%cI", "HEAD"]));
    let directives = [
        format!(
            "cargo::rustc-env=TREELINE_GIT_COMMIT={}",
            commit.as_deref().unwrap_or("unknown")
        ),
        format!(
            "cargo::rustc-env=TREELINE_COMPILE_DATE={}",
            date.as_deref().unwrap_or("unknown")
        ),
        "cargo::rerun-if-changed=build.rs".to_owned(),
    ];
    // The log of the head moves with every commit; its absence must not make every build run this again.
    let watched = git(&["rev-parse", "--git-path", "logs/HEAD"]).filter(|path| Path::new(path).exists());
    let watched = watched.map(|path| format!("cargo::rerun-if-changed={path}"));
    say(directives.into_iter().chain(watched));
}

fn say(directives: impl Iterator<Item = String>) {
    for directive in directives {
        println!("{directive}");
    }
}

fn given(variable: &str) -> Option<String> {
    say([format!("cargo::rerun-if-env-changed={variable}")].into_iter());
    std::env::var(variable)
        .ok()
        .filter(|value| !value.trim().is_empty())
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}

//! Running other programs, with errors that say what was run.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};

/// `cargo`, the same one that runs xtask.
pub(crate) fn cargo(root: &Path) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(root);
    command
}

/// `cargo test` of one suite of one package, with nothing said of those that pass.
pub(crate) fn suite(root: &Path, package: &str, name: &str) -> Command {
    let mut command = cargo(root);
    command.args(["test", "--quiet", "--locked", "-p", package, "--test", name]);
    command
}

/// Runs to the end with this terminal's output.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let line = line(command);
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot start `{line}`"))?;
    ensure!(status.success(), "`{line}` failed ({status})");
    Ok(())
}

/// Runs to the end and answers what it printed.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let line = line(command);
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start `{line}`"))?;
    if !output.status.success() {
        bail!(
            "`{line}` failed ({}):\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim_end()
        );
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{line}` printed something that is no text"))
}

/// Whether it starts and succeeds; what it prints is of no interest.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    let quiet = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// What cargo knows of the workspace, as the lock file has it.
pub(crate) fn metadata(root: &Path, arguments: &[&str]) -> Result<serde_json::Value> {
    let text = output(
        cargo(root)
            .args(["metadata", "--format-version", "1"])
            .args(arguments),
    )?;
    serde_json::from_str(&text).context("cargo metadata printed something that is no JSON")
}

fn line(command: &Command) -> String {
    let program = Path::new(command.get_program())
        .file_name()
        .unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

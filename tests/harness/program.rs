//! Running other programs, with errors that say what was run.

use anyhow::{Context as _, Result, ensure};
use tokio::process::Command;

/// Runs to the end and answers what it printed, without the white space around it.
pub async fn output(mut command: Command) -> Result<String> {
    // No more of the line than names the command: the rest may hold the URL of somebody's database.
    let words = command.as_std();
    let words = std::iter::once(words.get_program()).chain(words.get_args().next());
    let line = words
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ");
    let output = command
        .output()
        .await
        .with_context(|| format!("cannot start `{line}`"))?;
    ensure!(
        output.status.success(),
        "`{line}` failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

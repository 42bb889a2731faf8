//! Running other programs, with errors that say what was run.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tokio::process::Command;

/// Far more than a command of Docker takes on a busy machine; one that takes longer hangs.
const WITHIN: Duration = Duration::from_secs(60);

/// Runs to the end and answers what it printed, without the white space around it. Past a bound it is killed.
pub async fn output(command: Command) -> Result<String> {
    output_within(WITHIN, command).await
}

async fn output_within(within: Duration, mut command: Command) -> Result<String> {
    // No more of the line than names the command: the rest may hold the URL of somebody's database.
    let words = command.as_std();
    let words = std::iter::once(words.get_program()).chain(words.get_args().next());
    let line = words
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ");
    let output = tokio::time::timeout(within, command.kill_on_drop(true).output())
        .await
        .with_context(|| format!("`{line}` did not end within {within:?}"))?
        .with_context(|| format!("cannot start `{line}`"))?;
    ensure!(
        output.status.success(),
        "`{line}` failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[tokio::test]
    async fn what_a_program_printed_is_answered_and_its_failure_is_an_error() {
        assert_eq!(output(shell("echo ' yes '")).await.unwrap(), "yes");
        let error = output(shell("echo why >&2; exit 3")).await.unwrap_err();
        assert!(error.to_string().ends_with("why"), "{error}");
    }

    #[tokio::test]
    async fn a_program_that_hangs_is_given_up() {
        let mut hangs = Command::new("tail");
        hangs.args(["-f", "/dev/null"]);
        let error = output_within(Duration::from_millis(50), hangs).await.unwrap_err();
        assert!(
            error.to_string().contains("`tail -f` did not end within"),
            "{error}"
        );
    }
}

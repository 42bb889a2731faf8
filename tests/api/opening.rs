//! Databases that a server must not serve: it says which key is to be mended, ends with code 1, and changes nothing.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use treeline_tests::{Bed, binary};

const SERVE: [&str; 3] = ["serve", "--listen", "127.0.0.1:0"];

/// An account that owns nothing.
const NOBODY: &str = "65534";

/// A bed whose database has its tables, and no server any more.
async fn migrated() -> Result<Bed> {
    let bed = Bed::new()?;
    bed.start().await?.stop().await?;
    Ok(bed)
}

fn permit(path: &Path, mode: u32) -> Result<()> {
    fs::set_permissions(path, Permissions::from_mode(mode)).with_context(|| path.display().to_string())
}

/// Root may write everything, so there the server runs as somebody else.
#[tokio::test]
async fn a_file_that_may_only_be_read_is_not_served() -> Result<()> {
    let bed = migrated().await?;
    let (root, data) = (bed.path(""), bed.path("data"));
    let binary = {
        let copy = bed.path("treeline");
        fs::copy(binary()?, &copy)?;
        copy
    };
    permit(&data, 0o777)?;
    permit(&bed.database(), 0o444)?;
    permit(&root, 0o555)?;
    let mut command = if fs::metadata(&root)?.uid() == 0 {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]);
        command.arg(&binary);
        command
    } else {
        Command::new(&binary)
    };
    command
        .args(SERVE)
        .env("TREELINE_DATABASE", bed.database_url(0))
        .env("TREELINE_DATA_DIR", &data);
    let mut command = tokio::process::Command::from(command);
    let ended = tokio::time::timeout(Duration::from_secs(60), command.kill_on_drop(true).output()).await;
    permit(&root, 0o755)?;
    let ended = ended.context("it is served")??;
    let text = String::from_utf8_lossy(&ended.stderr);
    ensure!(ended.status.code() == Some(1), "{}: {text}", ended.status);
    ensure!(
        text.contains("`database`") && text.contains("only read"),
        "{text}"
    );
    Ok(())
}

/// None of these takes a database: what is wrong shows in the URL, or in that nobody is there.
#[tokio::test]
async fn a_list_of_hosts_that_cannot_be_used_ends_the_start_with_the_key_and_the_mend() -> Result<()> {
    for (url, mend) in [
        (
            "postgres://u:s3cret@127.0.0.1:1,127.0.0.1:2/d",
            "start it, or name where it is",
        ),
        (
            "postgres://u:s3cret@127.0.0.1:1,/d",
            "host 2 of the URL has no name",
        ),
        ("postgres://u:s3cret@h1,h1:5432/d", "names h1:5432 twice"),
        ("postgres://u:s3cret@h1,h2/d?port=5433", "before the database"),
        ("mysql://u:s3cret@h1,h2/d", "names one host"),
        ("mariadb://u:s3cret@h1,h2/d", "names one host"),
    ] {
        let bed = Bed::of(binary()?, vec![url.to_owned()])?;
        let ended = bed.run(&SERVE).await?;
        let text = ended.text();
        ensure!(ended.code == Some(1), "{url}: {:?}: {text}", ended.code);
        ensure!(
            text.contains("`database`") && text.contains(mend),
            "{url}: {text}"
        );
        ensure!(!text.contains("s3cret"), "{url}: {text}");
    }
    Ok(())
}

//! How a create waits for what others do to its directories, and what it is told in the end.

use std::time::Duration;

use tokio::time::Instant;
use treeline_connectors::contains;
use treeline_core::{Error, Result};

/// How often a create looks whether somebody else's removal is done, or, under a key, somebody else's directories.
const POLL: Duration = Duration::from_millis(20);

/// What a create has waited for in vain.
pub(super) fn left_behind(location: &str, state: &str) -> Error {
    Error::Unavailable {
        reason: format!("what a dropped fileset has left at or around `{location}` is {state}"),
    }
}

/// Why a removal has failed, as a client at this location may know it. What lies below is somebody else's, and only the
/// log names it.
pub(super) fn still_to_be_removed(location: &str, failed_at: &str, error: &Error) -> Error {
    let reason = match error {
        _ if !contains(failed_at, location) => "the server's log says more",
        Error::Invalid { reason, .. } | Error::Unavailable { reason } => reason,
        _ => &error.to_string(),
    };
    left_behind(location, &format!("still to be removed: {reason}"))
}

/// Ends the wait of a create past its time.
pub(crate) fn give_up_after(deadline: Instant) -> Result<()> {
    if Instant::now() < deadline {
        return Ok(());
    }
    Err(Error::Contended {
        operation: "create".to_owned(),
    })
}

/// Somebody else is at work on what a create waits for: a moment between two looks, at a sync point of this name.
pub(crate) async fn rest(point: &str, name: &str) -> Result<()> {
    #[cfg(feature = "test-hooks")]
    treeline_storage::hooks::reach(point, name).await?;
    #[cfg(not(feature = "test-hooks"))]
    let _ = (point, name);
    tokio::time::sleep(POLL).await;
    Ok(())
}

/// What a sync point of directory work is armed by.
pub(super) fn name_of(location: &str) -> &str {
    location.rsplit('/').next().unwrap_or_default()
}

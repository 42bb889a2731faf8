//! What an error of the file system means to the client that chose the place.
//!
//! What the client can mend by another location is [`Error::Invalid`], what passes by itself is
//! [`Error::Unavailable`], and only what is left is [`Error::Internal`].

use std::io::{Error as IoError, ErrorKind};

use treeline_core::Error;

use crate::location::refused;

// The two conditions that `ErrorKind` has no stable name for; the numbers are the same on Linux and macOS but for the
// loop, which macOS numbers 62.
const OUT_OF_FILE_HANDLES: [i32; 2] = [23, 24];
const LOOP: i32 = if cfg!(target_os = "linux") { 40 } else { 62 };

/// Says of `location` what the file system said when it was asked to `action` it.
pub(crate) fn explain(action: &str, location: &str, error: &IoError) -> Error {
    if let Some(number) = error.raw_os_error() {
        if OUT_OF_FILE_HANDLES.contains(&number) {
            return unavailable(action, location, error);
        }
        if number == LOOP {
            return refused(location, "goes through symbolic links in a circle");
        }
    }
    let reason = match error.kind() {
        ErrorKind::PermissionDenied => "is a place that the server has no permission for",
        ErrorKind::ReadOnlyFilesystem => "is on a file system that is read-only",
        ErrorKind::NotADirectory => "lies below a file, or is one",
        ErrorKind::AlreadyExists | ErrorKind::IsADirectory => "is taken by something else",
        ErrorKind::InvalidFilename | ErrorKind::InvalidInput => "is no name that the file system takes",
        ErrorKind::TooManyLinks => "lies in a directory that holds too many others",
        ErrorKind::NotFound
        | ErrorKind::DirectoryNotEmpty
        | ErrorKind::ResourceBusy
        | ErrorKind::StorageFull
        | ErrorKind::QuotaExceeded
        | ErrorKind::OutOfMemory
        | ErrorKind::Interrupted
        | ErrorKind::WouldBlock
        | ErrorKind::TimedOut
        | ErrorKind::StaleNetworkFileHandle
        | ErrorKind::NotConnected
        | ErrorKind::ConnectionAborted
        | ErrorKind::ConnectionReset
        | ErrorKind::HostUnreachable
        | ErrorKind::NetworkDown
        | ErrorKind::NetworkUnreachable => return unavailable(action, location, error),
        _ => return Error::internal(format!("cannot {action} `{location}`: {error}")),
    };
    refused(location, reason)
}

fn unavailable(action: &str, location: &str, error: &IoError) -> Error {
    Error::Unavailable {
        reason: format!("cannot {action} `{location}` just now: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(kind: ErrorKind) -> Error {
        explain("make", "file:/a", &IoError::from(kind))
    }

    #[test]
    fn what_another_location_would_mend_is_the_clients() {
        for kind in [
            ErrorKind::PermissionDenied,
            ErrorKind::ReadOnlyFilesystem,
            ErrorKind::NotADirectory,
            ErrorKind::AlreadyExists,
            ErrorKind::InvalidFilename,
            ErrorKind::InvalidInput,
        ] {
            assert!(matches!(explained(kind), Error::Invalid { .. }), "{kind:?}");
        }
        assert!(matches!(
            explain("make", "file:/a", &IoError::from_raw_os_error(LOOP)),
            Error::Invalid { .. }
        ));
    }

    #[test]
    fn what_passes_by_itself_is_unavailable() {
        for kind in [
            ErrorKind::StorageFull,
            ErrorKind::QuotaExceeded,
            ErrorKind::ResourceBusy,
            ErrorKind::TimedOut,
        ] {
            assert!(matches!(explained(kind), Error::Unavailable { .. }), "{kind:?}");
        }
        for number in OUT_OF_FILE_HANDLES {
            let error = IoError::from_raw_os_error(number);
            assert!(
                matches!(explain("list", "file:/a", &error), Error::Unavailable { .. }),
                "{number}"
            );
        }
    }

    #[test]
    fn what_nobody_expects_is_internal_and_keeps_its_detail() {
        let error = explain("list", "file:/a", &IoError::other("odd"));
        assert!(
            matches!(error, Error::Internal { detail } if detail.contains("odd") && detail.contains("file:/a"))
        );
    }
}

//! What a caller asks for, and how it is shown while it holds or waits.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How a key is locked. The stronger mode is the greater one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// Shared with other readers.
    Read,
    /// Alone.
    Write,
}

/// A deadline, and optionally a name that reports and errors show. A plain [`Duration`] is an `Ask` too.
#[derive(Clone, Debug)]
pub struct Ask {
    pub(crate) wait: Duration,
    pub(crate) who: Option<Arc<str>>,
    /// The locks inside a cell are never held by a caller's own code, so one task may poll several askers.
    pub(crate) may_share_task: bool,
}

impl Ask {
    /// Waits no longer than this. Zero asks once, never joins the queue and never waits.
    #[must_use]
    pub fn within(wait: Duration) -> Self {
        Self {
            wait,
            who: None,
            may_share_task: false,
        }
    }

    /// Names the asker (an operation, a request id). An `Arc<str>` that is at hand costs no allocation.
    #[must_use]
    pub fn by(self, who: impl Into<Arc<str>>) -> Self {
        Self {
            who: Some(who.into()),
            ..self
        }
    }

    /// The same, with what is left of the deadline.
    pub(crate) fn rest(&self, since: Instant) -> Self {
        Self {
            wait: self.wait.saturating_sub(since.elapsed()),
            ..self.clone()
        }
    }
}

impl From<Duration> for Ask {
    fn from(wait: Duration) -> Self {
        Self::within(wait)
    }
}

/// One holder or waiter.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Claimant {
    /// What it asked for.
    pub mode: Mode,
    /// The name it gave, if any.
    pub who: Option<Arc<str>>,
    /// The line of code that asked.
    pub site: &'static Location<'static>,
    /// Since when it has held the key, or waited for it.
    pub since: Instant,
}

impl fmt::Display for Claimant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = self.who.as_deref().unwrap_or("somebody");
        write!(
            f,
            "{who} ({:?} at {}, for {:?})",
            self.mode,
            self.site,
            self.since.elapsed()
        )
    }
}

//! What a caller asks for.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::sync::now;

/// How a key is locked. The stronger mode is the greater one.
///
/// ```
/// use treeline_locks::Mode;
///
/// assert_eq!(Mode::Read.max(Mode::Write), Mode::Write);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// Shared with other readers.
    Read,
    /// Alone.
    Write,
}

/// A deadline, and optionally a name that reports and errors show. A plain [`Duration`] is an `Ask` too.
///
/// ```
/// # use std::time::Duration;
/// use treeline_locks::{Ask, NameLocks};
///
/// async fn drop_schema(locks: &NameLocks<String>, name: &String, request: &str) -> bool {
///     let ask = Ask::within(Duration::from_secs(1)).by(format!("drop, request {request}"));
///     locks.write(name, ask).await.is_ok()
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Ask {
    pub(crate) wait: Duration,
    pub(crate) who: Option<Arc<str>>,
}

impl Ask {
    /// Waits no longer than this. Zero asks once, never joins the queue and never waits.
    #[must_use]
    pub fn within(wait: Duration) -> Self {
        Self { wait, who: None }
    }

    /// Names the asker (an operation, a request id). An `Arc<str>` that is at hand costs no allocation.
    #[must_use]
    pub fn by(mut self, who: impl Into<Arc<str>>) -> Self {
        self.who = Some(who.into());
        self
    }

    /// The same, with what is left of the deadline.
    pub(crate) fn rest(&self, since: Instant) -> Self {
        Self {
            wait: self.wait.saturating_sub(now() - since),
            who: self.who.clone(),
        }
    }
}

impl From<Duration> for Ask {
    fn from(wait: Duration) -> Self {
        Self::within(wait)
    }
}

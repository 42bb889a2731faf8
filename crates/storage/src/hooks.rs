//! Sync points and mutants, in test builds only (feature `test-hooks`).
//!
//! A sync point is a named place in a protocol where a test can hold an operation on one entity, make it fail, or make
//! the process die. A mutant is a rule switched off, to show that the test of the rule can fail. Release builds hold
//! neither: without the feature, [`sync_point!`] is nothing and [`mutant`] is a constant.

/// Marks a place where a test can hold the operation on the entity of that name. The operation fails if a test says so.
macro_rules! sync_point {
    ($point:expr, $name:expr) => {{
        let (point, name): (&str, &str) = ($point, $name);
        #[cfg(feature = "test-hooks")]
        $crate::hooks::reach(point, name).await?;
        #[cfg(not(feature = "test-hooks"))]
        let _ = (point, name);
    }};
}
pub(crate) use sync_point;

/// Whether a rule is switched off.
#[cfg(not(feature = "test-hooks"))]
pub(crate) const fn mutant(_name: &str) -> bool {
    false
}

/// Whether a point inside the transaction of an entity of that name is armed: a fused statement has no inside.
#[cfg(not(feature = "test-hooks"))]
pub(crate) const fn is_armed_inside(_name: &str) -> bool {
    false
}

/// The same, or the point between the parent's resolution and the transaction, which a create in one step has not either.
#[cfg(not(feature = "test-hooks"))]
pub(crate) const fn is_armed_on_the_way(_name: &str) -> bool {
    false
}

#[cfg(feature = "test-hooks")]
pub use active::*;

#[cfg(feature = "test-hooks")]
mod active {
    use std::collections::HashMap;
    use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
    use std::sync::{Arc, LazyLock, Mutex, PoisonError};
    use std::time::Duration;

    use tokio::sync::Notify;
    use treeline_core::Error;

    /// What happens to an operation that reaches an armed point.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Action {
        /// It waits until it is released.
        Pause,
        /// It fails, and its transaction is rolled back.
        Fail,
        /// The process dies on the spot.
        Exit,
    }

    #[derive(Debug)]
    struct Armed {
        action: Action,
        reached: Notify,
        released: Notify,
        arrivals: AtomicUsize,
    }

    type Key = (String, String);

    /// Arms a point for whatever comes to it; no entity can be called so.
    pub const ANY_NAME: &str = "*";

    static POINTS: LazyLock<Mutex<HashMap<Key, Arc<Armed>>>> = LazyLock::new(Mutex::default);

    /// How far this machine's clock is off, as far as the store can tell.
    pub static CLOCK_SKEW_MS: AtomicI64 = AtomicI64::new(0);

    /// Whether this process's SQLite writer waits for another process's transaction.
    pub(crate) static WRITER_WAITS: AtomicBool = AtomicBool::new(false);

    static MUTANTS: LazyLock<Vec<String>> = LazyLock::new(|| {
        let names = std::env::var("TREELINE_MUTANTS").unwrap_or_default();
        names
            .split(',')
            .map(|name| name.trim().to_owned())
            .filter(|name| !name.is_empty())
            .collect()
    });

    /// Whether a rule is switched off (`TREELINE_MUTANTS`).
    pub fn mutant(name: &str) -> bool {
        MUTANTS.iter().any(|mutant| mutant == name)
    }

    fn armed(point: &str, name: &str) -> Option<Arc<Armed>> {
        let points = POINTS.lock().unwrap_or_else(PoisonError::into_inner);
        let armed = |name: &str| points.get(&(point.to_owned(), name.to_owned()));
        armed(name).or_else(|| armed(ANY_NAME)).cloned()
    }

    /// Mutants that the fused statements have too; the others are of the portable form alone.
    const FUSED: &[&str] = &[
        "m-parent-lock",
        "m-liveness-key",
        "m-version-predicate",
        "m-live-predicate",
        "m-bump",
    ];

    /// Whether a point inside the transaction of an entity of that name is armed, or the fused form would have a rule that
    /// a mutant has not.
    pub(crate) fn is_armed_inside(name: &str) -> bool {
        const INSIDE: &[&str] = &[
            "create.parent_locked",
            "create.inserted",
            "update.row_written",
            "update.written",
            "rename.written",
        ];
        MUTANTS.iter().any(|mutant| !FUSED.contains(&mutant.as_str()))
            || INSIDE.iter().any(|point| armed(point, name).is_some())
    }

    /// The same, or the point between the parent's resolution and the transaction.
    pub(crate) fn is_armed_on_the_way(name: &str) -> bool {
        is_armed_inside(name) || armed("create.resolved", name).is_some()
    }

    /// Arms a point for operations on entities of that name.
    pub fn arm(point: &str, name: &str, action: Action) {
        let armed = Armed {
            action,
            reached: Notify::new(),
            released: Notify::new(),
            arrivals: AtomicUsize::new(0),
        };
        let mut points = POINTS.lock().unwrap_or_else(PoisonError::into_inner);
        points.insert((point.to_owned(), name.to_owned()), Arc::new(armed));
    }

    /// Waits until an operation is held at a point. `false` past the bound, or if the point is not armed.
    pub async fn wait_until_reached(point: &str, name: &str, bound: Duration) -> bool {
        let Some(armed) = armed(point, name) else {
            return false;
        };
        let reached = armed.reached.notified();
        tokio::pin!(reached);
        reached.as_mut().enable();
        armed.arrivals.load(Ordering::SeqCst) > 0 || tokio::time::timeout(bound, reached).await.is_ok()
    }

    /// Lets go of what is held at a point, and disarms it.
    pub fn release(point: &str, name: &str) {
        let mut points = POINTS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(armed) = points.remove(&(point.to_owned(), name.to_owned())) {
            armed.released.notify_waiters();
            armed.released.notify_one();
        }
    }

    /// Called by [`sync_point!`](crate::hooks::sync_point).
    pub async fn reach(point: &str, name: &str) -> Result<(), Error> {
        let Some(armed) = armed(point, name) else {
            return Ok(());
        };
        let released = armed.released.notified();
        tokio::pin!(released);
        released.as_mut().enable();
        armed.arrivals.fetch_add(1, Ordering::SeqCst);
        armed.reached.notify_waiters();
        armed.reached.notify_one();
        match armed.action {
            Action::Pause => {
                released.await;
                Ok(())
            }
            Action::Fail => Err(Error::internal(format!("a test made {point} of {name} fail"))),
            Action::Exit => std::process::abort(),
        }
    }
}

//! `VersionedCell`: a cached value that knows its version and how to become newer.
//!
//! Readers take snapshots and no guard, so no reader can hold up a writer. Probes and loads fly one at a time
//! (*flights*); whoever asks while one is under way waits for the next and shares its outcome, so what it gets is
//! never older than its question. A writer takes the permit first and probes under it. Only a newer version is
//! ever installed, whoever brings it.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use crate::ask::{Ask, Mode};
use crate::guard::Guard;
use crate::names::NameLocks;
use crate::report::TimedOut;
use crate::sync::{Mutex, lock, now, within};

/// A snapshot, or why there is no newer one.
pub type Refreshed<T, L> = Result<Arc<Versioned<T>>, RefreshError<<L as Loader<T>>::Error>>;

/// A value and its version. Versions rise; they need not be contiguous.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned<T> {
    /// The version of the value.
    pub version: u64,
    /// The value.
    pub value: T,
}

/// Where a cell's values come from.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use treeline_locks::{Loader, Versioned};
///
/// struct Counter(AtomicU64);
///
/// impl Loader<u64> for Counter {
///     type Error = std::convert::Infallible;
///
///     async fn probe(&self) -> Result<u64, Self::Error> {
///         Ok(self.0.load(Ordering::Acquire))
///     }
///
///     async fn load(&self) -> Result<Versioned<u64>, Self::Error> {
///         let version = self.0.load(Ordering::Acquire);
///         Ok(Versioned { version, value: version })
///     }
/// }
/// ```
pub trait Loader<T>: Send + Sync {
    /// What a probe or a load fails with.
    type Error: Send + Sync;

    /// The newest version there is. Ask for the newest, not whether the next one exists: versions may have gaps.
    fn probe(&self) -> impl Future<Output = Result<u64, Self::Error>> + Send;

    /// The newest value, with the version that it really has.
    fn load(&self) -> impl Future<Output = Result<Versioned<T>, Self::Error>> + Send;
}

impl<T, L: Loader<T>> Loader<T> for Arc<L> {
    type Error = L::Error;

    fn probe(&self) -> impl Future<Output = Result<u64, Self::Error>> + Send {
        L::probe(self)
    }

    fn load(&self) -> impl Future<Output = Result<Versioned<T>, Self::Error>> + Send {
        L::load(self)
    }
}

/// A cached value (a connector handle, an authorization snapshot) with a version.
///
/// ```
/// # use std::{convert::Infallible, time::Duration};
/// # use tokio_time as tokio;
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use treeline_locks::{Loader, Versioned, VersionedCell};
///
/// struct Rules; // a table of rules somewhere
/// impl Loader<String> for Rules {
///     type Error = Infallible;
///     async fn probe(&self) -> Result<u64, Infallible> { Ok(2) }
///     async fn load(&self) -> Result<Versioned<String>, Infallible> {
///         Ok(Versioned { version: 2, value: "deny".into() })
///     }
/// }
///
/// let wait = Duration::from_secs(1);
/// let cell = VersionedCell::new(Rules, Versioned { version: 1, value: "allow".to_owned() });
/// assert_eq!(cell.get().value, "allow");                  // a snapshot: no wait, no guard
/// assert_eq!(cell.get_refreshed(wait).await?.value, "deny");
///
/// let writer = cell.get_mut(wait).await?;                 // other writers wait, readers don't
/// let next = Versioned { version: writer.version + 1, value: format!("{}, log", writer.value) };
/// writer.commit(next)?;
/// assert_eq!(cell.get().value, "deny, log");
/// # Ok(()) }
/// ```
pub struct VersionedCell<T, L: Loader<T>> {
    loader: L,
    current: Mutex<Arc<Versioned<T>>>,
    flights: Mutex<Flights<L::Error>>,
    /// The permit of the writer, and the turn of whoever probes. They stay locks in a `disabled` build.
    writers: NameLocks<&'static str>,
    turns: NameLocks<&'static str>,
}

struct Flights<E> {
    begun: u64,
    /// The last flight that came to an answer, and the answer.
    landed: u64,
    outcome: Result<(), Arc<E>>,
}

impl<T, L: Loader<T>> VersionedCell<T, L> {
    /// A cell that holds this value until something newer is seen.
    #[must_use]
    pub fn new(loader: L, value: Versioned<T>) -> Self {
        Self {
            loader,
            current: Mutex::new(Arc::new(value)),
            flights: Mutex::new(Flights {
                begun: 0,
                landed: 0,
                outcome: Ok(()),
            }),
            writers: NameLocks::internal(true),
            turns: NameLocks::internal(false),
        }
    }

    /// What the cell holds now. Never waits, and holds up nobody however long it is kept.
    #[must_use]
    pub fn get(&self) -> Arc<Versioned<T>> {
        Arc::clone(&lock(&self.current))
    }

    /// What the cell holds once a probe has answered that began after this call.
    ///
    /// # Errors
    /// [`RefreshError`]; the cell keeps what it holds.
    #[track_caller]
    pub fn get_refreshed(&self, ask: impl Into<Ask>) -> impl Future<Output = Refreshed<T, L>> {
        self.refresh(ask.into(), Location::caller())
    }

    /// The right to write: waits for its turn, and only then probes and loads, all under one deadline.
    ///
    /// # Errors
    /// [`RefreshError`]; the cell keeps what it holds, and the next writer is served.
    #[track_caller]
    pub fn get_mut(
        &self,
        ask: impl Into<Ask>,
    ) -> impl Future<Output = Result<CellWriter<'_, T, L>, RefreshError<L::Error>>> {
        let (ask, site, since) = (ask.into(), Location::caller(), now());
        async move {
            let permit = self
                .writers
                .acquire(&"writer", Mode::Write, ask.clone(), site)
                .await;
            let permit = permit.map_err(RefreshError::Busy)?;
            let base = self.refresh(ask.rest(since), site).await?;
            Ok(CellWriter {
                cell: self,
                base,
                _permit: permit,
            })
        }
    }

    async fn refresh(&self, ask: Ask, site: &'static Location<'static>) -> Refreshed<T, L> {
        let since = now();
        let noted = lock(&self.flights).begun;
        let turn = self
            .turns
            .acquire(&"refresh", Mode::Write, ask.clone(), site)
            .await;
        let _turn = turn.map_err(RefreshError::Busy)?;
        let number = {
            let mut flights = lock(&self.flights);
            if flights.landed > noted {
                return flights
                    .outcome
                    .clone()
                    .map(|()| self.get())
                    .map_err(RefreshError::Failed);
            }
            flights.begun += 1;
            flights.begun
        };
        // A flight that is cut short, by its own deadline or by a cancellation, says nothing about the next one.
        let outcome = within(since, ask.wait, self.reload()).await;
        let outcome = outcome
            .ok_or(RefreshError::Hung { wait: ask.wait })?
            .map_err(Arc::new);
        {
            let mut flights = lock(&self.flights);
            flights.landed = number;
            flights.outcome = outcome.clone();
        }
        outcome.map(|()| self.get()).map_err(RefreshError::Failed)
    }

    async fn reload(&self) -> Result<(), L::Error> {
        if self.loader.probe().await? > self.get().version {
            // Refused when a writer has committed something newer meanwhile, which is as good.
            let _ = self.install(self.loader.load().await?);
        }
        Ok(())
    }

    fn install(&self, new: Versioned<T>) -> Result<Arc<Versioned<T>>, NotNewer> {
        let new = Arc::new(new);
        let mut current = lock(&self.current);
        if new.version <= current.version {
            return Err(NotNewer {
                held: current.version,
                offered: new.version,
            });
        }
        let old = std::mem::replace(&mut *current, Arc::clone(&new));
        drop(current);
        drop(old);
        Ok(new)
    }
}

/// The only writer of a cell, until it is dropped. Reads like what the cell held when its turn came.
///
/// ```
/// use treeline_locks::{CellWriter, Loader, NotNewer, Versioned};
///
/// fn add<L: Loader<u64>>(writer: CellWriter<'_, u64, L>, amount: u64) -> Result<u64, NotNewer> {
///     let next = Versioned { version: writer.version + 1, value: writer.value + amount };
///     writer.commit(next).map(|held| held.value)
/// }
/// ```
#[must_use = "the next writer is served as soon as this one is dropped"]
pub struct CellWriter<'a, T, L: Loader<T>> {
    cell: &'a VersionedCell<T, L>,
    base: Arc<Versioned<T>>,
    _permit: Guard<'a, &'static str>,
}

impl<T, L: Loader<T>> CellWriter<'_, T, L> {
    /// Installs a newer value and lets the next writer in.
    ///
    /// # Errors
    /// [`NotNewer`] when the cell holds this version or a later one: a refresh has seen it meanwhile.
    pub fn commit(self, new: Versioned<T>) -> Result<Arc<Versioned<T>>, NotNewer> {
        self.cell.install(new)
    }
}

impl<T, L: Loader<T>> Deref for CellWriter<'_, T, L> {
    type Target = Versioned<T>;

    fn deref(&self) -> &Versioned<T> {
        &self.base
    }
}

/// Why a cell could not be refreshed. It still holds what it held.
///
/// ```
/// use treeline_locks::RefreshError;
///
/// fn is_worth_a_retry<E>(error: &RefreshError<E>) -> bool {
///     matches!(error, RefreshError::Busy(_) | RefreshError::Hung { .. })
/// }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum RefreshError<E> {
    /// The deadline passed in the queue, behind another writer or another refresh.
    Busy(Box<TimedOut<&'static str>>),
    /// The loader did not answer within the deadline.
    Hung {
        /// The deadline that passed.
        wait: Duration,
    },
    /// The loader failed; shared by all who waited for this one answer.
    Failed(Arc<E>),
}

impl<E: fmt::Display> fmt::Display for RefreshError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy(timed_out) => write!(f, "the cell is busy: {timed_out}"),
            Self::Hung { wait } => write!(f, "the loader did not answer within {wait:?}"),
            Self::Failed(error) => write!(f, "the loader failed: {error}"),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> Error for RefreshError<E> {}

/// A commit that would have taken the cell back in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotNewer {
    /// The version that the cell holds.
    pub held: u64,
    /// The version that was offered.
    pub offered: u64,
}

impl fmt::Display for NotNewer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "version {} is not newer than {}, which the cell holds",
            self.offered, self.held
        )
    }
}

impl Error for NotNewer {}

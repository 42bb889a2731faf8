//! Seeded defects: each switches one rule off, in test builds only, so that the proof can be shown to notice.
//!
//! `seeded!(owner, Name)` is the constant `false` in every other build.

/// The rules that can be switched off. Each must be caught by at least one schedule in `proof`.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// The look-up and the claim are two critical sections.
    LookUpThenClaim,
    /// The ticket is born after the await: a cancelled waiter stays in the queue.
    TicketAfterAwait,
    /// A waiter that is dropped after its hand-off, before its next poll, keeps the lock.
    HandOffForgotten,
    /// The entry is removed in a second critical section, without looking again.
    RemoveWithoutRecheck,
    /// A reader passes the writers that wait.
    ReaderBarges,
    /// A writer asks as a reader first and as a writer after that.
    ReadThenWrite,
    /// A waiter that gives up does not let those behind it move up.
    FollowersForgotten,
    /// Of several readers that are admitted together only the first is woken.
    OnlyFirstWoken,
    /// A waiter that is polled by another task keeps the waker of the first.
    StaleWaker,
    /// A deadline of zero joins the queue.
    ZeroWaits,
    /// Several keys are taken in the order in which they were given.
    UnsortedKeys,
    /// A key that is asked for twice takes the weaker of the two modes.
    WeakerMode,
    /// The writer of a cell probes first and takes the permit after that.
    ProbeThenPermit,
    /// A cell installs whatever it is given.
    InstallOlder,
    /// Everyone probes and loads for themselves.
    NoSingleFlight,
    /// A refresh is content with a probe that began before it was asked.
    JoinOldFlight,
    /// A failed load is remembered as a success.
    FailureForgotten,
    /// The deadline covers the wait for the permit, not the loader.
    LoaderUnbounded,
}

#[cfg(test)]
macro_rules! seeded {
    ($owner:expr, $mutant:ident) => {
        $owner.mutant == Some(crate::seeded::Mutant::$mutant)
    };
}

#[cfg(not(test))]
macro_rules! seeded {
    ($owner:expr, $mutant:ident) => {
        false
    };
}

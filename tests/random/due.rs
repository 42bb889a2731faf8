//! What each fault excuses, and what servers owe when it is over: who writes first, what they have told of it, and by
//! when everything is answered.

use crate::fault::{Fault, Over};
use crate::node;

/// What servers are told where faults are suffered (`--operation-ms-max`): no wait is longer than the fault itself.
pub(crate) const OPERATION_MS_MAX: u64 = 5_000;

/// The same where nothing goes wrong: the default.
const OPERATION_MS_MAX_BY_DEFAULT: u64 = 10_000;

/// What a database may be silent for beyond that, a statement or a commit (`SILENCE_MAX` in `network/queue.rs` of the storage
/// crate).
const SILENCE_MS_MAX: u64 = 3_000;

/// The time to look whether a commit took effect whose answer was lost (`PROOF_MAX` in `transaction.rs` there).
const PROOF_MS_MAX: u64 = 3_000;

/// For a machine that is busy, on which every process waits for its turn.
const BUSY_MS: u64 = 2_000;

/// No answer takes longer where nothing goes wrong.
const ANSWERED_MS_MAX: u64 = OPERATION_MS_MAX_BY_DEFAULT + SILENCE_MS_MAX + BUSY_MS;

/// No answer takes longer where faults are suffered, counted from the end of the fault if it held up the server. What was sent in
/// its last moment may stay silent, as on a connection that was cut, and if it was a commit it is looked up then.
const ANSWERED_AFTER_MS_MAX: u64 = OPERATION_MS_MAX + SILENCE_MS_MAX + PROOF_MS_MAX + BUSY_MS;

/// No answer takes longer, however long a fault lasts. An operation may send its last statement at its bound, which is then silent;
/// and so may be the look for its commit.
const ANSWERED_AMID_MS_MAX: u64 = OPERATION_MS_MAX
    + (OPERATION_MS_MAX + SILENCE_MS_MAX)
    + PROOF_MS_MAX
    + (OPERATION_MS_MAX + SILENCE_MS_MAX)
    + BUSY_MS;

/// Whose first write is owed after the end of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owed {
    /// Of the server with this number.
    Of(usize),
    /// Of each.
    Each,
}

impl Owed {
    /// Whether those that owe it have done it, if these have, server by server.
    pub(crate) fn is_settled(self, mut done: impl Iterator<Item = bool>) -> bool {
        match self {
            Owed::Of(server) => done.nth(server) == Some(true),
            Owed::Each => done.all(|done| done),
        }
    }

    /// When the last of those that owe it had done it, if all have.
    pub(crate) fn settled_at(self, first_writes: &[Option<u64>]) -> Option<u64> {
        match self {
            Owed::Of(server) => first_writes.get(server).copied().flatten(),
            Owed::Each => {
                let all: Option<Vec<u64>> = first_writes.iter().copied().collect();
                all?.into_iter().max()
            }
        }
    }
}

impl Fault {
    /// Whose first write is owed after it is over. Where a server has died, it is that of the one in its place.
    pub(crate) fn owed(self) -> Owed {
        match self {
            Fault::ServerKilled | Fault::ServerFrozen | Fault::ServerCutOff => Owed::Of(0),
            Fault::NodeKilled | Fault::NodeCutOff => Owed::Of(node::STRUCK),
            Fault::ServerDiesAtPoints
            | Fault::DatabaseKilled
            | Fault::DatabaseFrozen
            | Fault::PrimaryFailedOver
            | Fault::PrimaryFrozen
            | Fault::PrimaryLeftBehind
            | Fault::StandbyKilled
            | Fault::DiskFull
            | Fault::ClocksApart => Owed::Each,
        }
    }

    /// What counts it at the servers whose first write is owed, where they can tell.
    pub(crate) fn metric(self) -> Option<&'static str> {
        match self {
            Fault::PrimaryFailedOver | Fault::PrimaryFrozen | Fault::PrimaryLeftBehind => {
                Some("treeline_database_failovers_total")
            }
            Fault::ServerCutOff | Fault::DatabaseKilled | Fault::NodeKilled => {
                Some("treeline_database_errors_total{error=\"connection_lost\"")
            }
            Fault::ServerKilled
            | Fault::ServerDiesAtPoints
            | Fault::ServerFrozen
            | Fault::DatabaseFrozen
            | Fault::StandbyKilled
            | Fault::DiskFull
            | Fault::ClocksApart
            | Fault::NodeCutOff => None,
        }
    }

    /// What their logs say of it, where it cannot pass unsaid.
    pub(crate) fn log_line(self) -> Option<&'static str> {
        match self {
            Fault::PrimaryFailedOver | Fault::PrimaryFrozen | Fault::PrimaryLeftBehind => {
                Some("another host of the database is the primary now")
            }
            Fault::ServerCutOff | Fault::NodeKilled => Some("the database is not available"),
            Fault::NodeCutOff => Some("WSREP has not yet prepared node for application use"),
            Fault::DiskFull => Some("database or disk is full"),
            Fault::ServerKilled
            | Fault::ServerDiesAtPoints
            | Fault::ServerFrozen
            | Fault::DatabaseKilled
            | Fault::DatabaseFrozen
            | Fault::StandbyKilled
            | Fault::ClocksApart => None,
        }
    }

    /// When the first write must be through again, after it is over. That a connection was cut is known only when an
    /// operation on it has reached its bound.
    pub(crate) fn recovered_ms_max(self) -> u64 {
        match self {
            Fault::ServerCutOff => 7_000,
            _ => 5_000,
        }
    }

    /// Whether requests at a server may have to wait for its end: the server stands still, or its database does not answer. Where
    /// that is another server alone, or nothing is silent, each request has its own bound.
    fn holds_up(self, server: usize) -> bool {
        match self {
            Fault::ServerFrozen | Fault::ServerCutOff => server == 0,
            Fault::DatabaseKilled
            | Fault::DatabaseFrozen
            | Fault::PrimaryFailedOver
            | Fault::PrimaryFrozen
            | Fault::PrimaryLeftBehind
            | Fault::StandbyKilled
            | Fault::NodeKilled
            | Fault::NodeCutOff => true,
            Fault::ServerKilled | Fault::ServerDiesAtPoints | Fault::DiskFull | Fault::ClocksApart => false,
        }
    }
}

/// What the operations of a run are held to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds<'o> {
    pub(crate) fault: Option<Fault>,
    pub(crate) over: &'o Over,
}

impl Bounds<'_> {
    /// Whether an operation took longer than it may, by the clock of the log.
    pub(crate) fn is_slow(&self, server: usize, begun: u64, ended: u64) -> bool {
        let Some(fault) = self.fault else {
            return ended > begun + us(ANSWERED_MS_MAX);
        };
        let is_held_up = fault.holds_up(server) && ended >= self.over.from;
        let waits_from = if is_held_up {
            begun.max(self.over.at)
        } else {
            begun
        };
        let ends_by = waits_from + us(ANSWERED_AFTER_MS_MAX);
        ended > ends_by.min(begun + us(ANSWERED_AMID_MS_MAX))
    }

    /// Whether servers had a reason to answer 503: asked from the beginning of the fault until the first write must be through, and
    /// answered when everything must have been.
    pub(crate) fn excuses(&self, begun: u64, ended: u64) -> bool {
        // Neither takes the database away from a server.
        let leaves_the_database = |fault: &Fault| matches!(fault, Fault::ServerKilled | Fault::ClocksApart);
        let Some(fault) = self.fault.filter(|fault| !leaves_the_database(fault)) else {
            return false;
        };
        let Over { from, at, .. } = *self.over;
        ended >= from && begun <= at + us(fault.recovered_ms_max()) && ended <= at + us(ANSWERED_AFTER_MS_MAX)
    }
}

fn us(ms: u64) -> u64 {
    ms * 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000;

    fn over() -> Over {
        Over {
            from: 10 * S,
            at: 40 * S,
            ..Over::default()
        }
    }

    #[test]
    fn an_answer_is_due_within_its_bound_or_that_after_the_end_of_a_fault_that_held_it_up() {
        let over = over();
        let last = |fault: Option<Fault>, server, begun: u64| {
            let bounds = Bounds { fault, over: &over };
            (begun..)
                .step_by(500_000)
                .find(|ended| bounds.is_slow(server, begun, *ended))
                .unwrap()
                - 500_000
        };
        assert_eq!(last(None, 0, 20 * S), 35 * S);
        let killed = Some(Fault::ServerKilled);
        assert_eq!(last(killed, 0, 38 * S), 51 * S);
        let frozen = Some(Fault::DatabaseFrozen);
        // Long before, long before its end, shortly before, and after it.
        for (begun, ended) in [(0, 26), (20, 46), (38, 53), (42, 55)] {
            assert_eq!(last(frozen, 1, begun * S), ended * S, "{begun}");
        }
        let cut_off = Some(Fault::ServerCutOff);
        assert_eq!(last(cut_off, 0, 38 * S), 53 * S);
        assert_eq!(last(cut_off, 1, 38 * S), 51 * S);
    }

    #[test]
    fn what_ended_before_a_fault_was_not_held_up_by_it() {
        let (over, fault) = (
            Over {
                from: 14 * S,
                ..over()
            },
            Some(Fault::DatabaseFrozen),
        );
        let bounds = Bounds { fault, over: &over };
        assert!(bounds.is_slow(0, 0, 13 * S + 1));
        assert!(!bounds.is_slow(0, 0, 14 * S));
    }

    #[test]
    fn a_503_is_excused_while_a_fault_takes_the_database_away_and_not_long_after() {
        let over = over();
        let excuses = |fault, begun: u64, ended: u64| Bounds { fault, over: &over }.excuses(begun, ended);
        let killed = Some(Fault::DatabaseKilled);
        assert!(excuses(killed, 9 * S, 10 * S) && !excuses(killed, 9 * S, 10 * S - 1));
        assert!(excuses(killed, 45 * S, 46 * S) && !excuses(killed, 45 * S + 1, 46 * S));
        assert!(excuses(killed, 39 * S, 53 * S) && !excuses(killed, 39 * S, 53 * S + 1));
        assert!(excuses(Some(Fault::ServerCutOff), 47 * S, 48 * S));
        assert!(!excuses(Some(Fault::ServerKilled), 20 * S, 21 * S));
        assert!(!excuses(Some(Fault::ClocksApart), 20 * S, 21 * S));
        assert!(!excuses(None, 20 * S, 21 * S));
    }

    #[test]
    fn what_each_owes_is_settled_by_the_slowest_and_by_nobody_else() {
        let writes = [Some(5), Some(9), None];
        assert_eq!(Owed::Of(0).settled_at(&writes), Some(5));
        assert_eq!(Owed::Of(2).settled_at(&writes), None);
        assert_eq!(Owed::Each.settled_at(&writes), None);
        assert_eq!(Owed::Each.settled_at(&writes[..2]), Some(9));
        assert!(Owed::Of(1).is_settled([false, true].into_iter()));
        assert!(!Owed::Of(0).is_settled([false, true].into_iter()));
        assert!(!Owed::Each.is_settled([false, true].into_iter()));
    }
}

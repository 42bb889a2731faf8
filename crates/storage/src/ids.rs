//! Ids: 63 bits, made by the server that creates the row, in the order of time.
//!
//! 41 bits of milliseconds since 2024 (until 2093), 10 bits drawn once per process, 12 bits of a counter. Two
//! processes that drew the same node part clash at worst on the primary key, and the insert is retried with a new id.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{SystemTime, UNIX_EPOCH};

use treeline_core::EntityId;

use crate::failure::Failure;

const EPOCH_MS: i64 = 1_704_067_200_000;
const NODE_BITS: u32 = 10;
const COUNTER_BITS: u32 = 12;

/// Makes ids for one process.
#[derive(Debug)]
pub(crate) struct Ids {
    node: u64,
    last: Mutex<u64>,
}

impl Ids {
    pub(crate) fn new() -> Ids {
        Ids {
            node: fastrand::u64(0..1 << NODE_BITS),
            last: Mutex::new(0),
        }
    }

    /// A new id, greater than every other that this process made.
    pub(crate) fn next(&self) -> Result<EntityId, Failure> {
        // Milliseconds and counter are one number, so a burst of more than 4,096 in a millisecond borrows from the next.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let since_epoch = u64::try_from(now_ms() - EPOCH_MS).unwrap_or(0);
        let tick = (since_epoch << COUNTER_BITS).max(*last + 1);
        *last = tick;
        let milliseconds = tick >> COUNTER_BITS;
        let counter = tick & ((1 << COUNTER_BITS) - 1);
        let id = (milliseconds << (NODE_BITS + COUNTER_BITS)) | (self.node << COUNTER_BITS) | counter;
        i64::try_from(id)
            .ok()
            .and_then(|id| EntityId::new(id).ok())
            .ok_or_else(|| Failure::Broken("this machine's clock is past the last id".to_owned()))
    }
}

/// Milliseconds since 1970 on this machine's clock, which orders nothing.
#[expect(
    clippy::disallowed_methods,
    reason = "ids only need to be unique; nothing is ordered by them"
)]
pub(crate) fn now_ms() -> i64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now_ms = i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX);
    #[cfg(feature = "test-hooks")]
    let now_ms = now_ms + crate::hooks::CLOCK_SKEW_MS.load(std::sync::atomic::Ordering::Relaxed);
    now_ms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_rise_and_never_repeat() {
        let ids = Ids::new();
        let mut last = EntityId::ROOT;
        for _ in 0..20_000 {
            let id = ids.next().unwrap();
            assert!(id > last);
            last = id;
        }
    }
}

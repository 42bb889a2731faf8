//! Which time is measured: that of the wall, or, on a machine that others use too, the processor time of this process.

use std::fs;
use std::time::{Duration, Instant};

/// `TREELINE_LOCKS_CLOCK=cpu` counts the time for which this process had a processor (Linux).
pub(crate) fn is_cpu() -> bool {
    std::env::var("TREELINE_LOCKS_CLOCK").is_ok_and(|clock| clock == "cpu")
}

pub(crate) enum Clock {
    Wall(Instant),
    Cpu(Duration),
}

impl Clock {
    pub(crate) fn start() -> Self {
        if is_cpu() {
            Self::Cpu(cpu())
        } else {
            Self::Wall(Instant::now())
        }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        match self {
            Self::Wall(from) => from.elapsed(),
            Self::Cpu(from) => cpu() - *from,
        }
    }
}

/// The sum over the threads, each of which says how many nanoseconds it has run.
fn cpu() -> Duration {
    let threads = fs::read_dir("/proc/self/task").unwrap().map(Result::unwrap);
    let ran = threads.map(|thread| {
        let text = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
        text.split(' ')
            .next()
            .and_then(|ran| ran.parse().ok())
            .unwrap_or(0)
    });
    Duration::from_nanos(ran.sum())
}

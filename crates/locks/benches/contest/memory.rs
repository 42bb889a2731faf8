//! A million keys, each locked once, in a process of its own: time, and what the process has grown by afterwards.

use std::process::Command;
use std::sync::Arc;

use crate::clock::Clock;
use crate::contenders::Contender;
use crate::scenario::{key, runtime};

/// Names the contender that this process is to churn.
pub(crate) const CHILD: &str = "TREELINE_LOCKS_CHURN";

const KEYS: usize = 1_000_000;
const TASKS: usize = 8;

pub(crate) struct Churn {
    pub(crate) ns_each: u64,
    pub(crate) grown_kib: u64,
}

pub(crate) fn in_child(contender: &str) -> Churn {
    let program = std::env::current_exe().unwrap();
    let output = Command::new(program).env(CHILD, contender).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut numbers = text.split_whitespace().map(|number| number.parse().unwrap());
    Churn {
        ns_each: numbers.next().unwrap(),
        grown_kib: numbers.next().unwrap(),
    }
}

pub(crate) fn churn<C: Contender>() {
    let runtime = runtime();
    let locks = Arc::new(C::default());
    let round = |from: usize, keys: usize| {
        let tasks: Vec<_> = (0..TASKS)
            .map(|task| {
                let locks = Arc::clone(&locks);
                runtime.spawn(async move {
                    for number in (from + task..from + keys).step_by(TASKS) {
                        drop(locks.write(&key(number)).await);
                    }
                })
            })
            .collect();
        runtime.block_on(async {
            for task in tasks {
                task.await.unwrap();
            }
        });
    };
    // The allocator and the runtime take their share before the measurement.
    round(KEYS, 10_000);
    let (base, from) = (resident_kib(), Clock::start());
    round(0, KEYS);
    let each = from.elapsed().as_nanos() / u128::try_from(KEYS).unwrap();
    println!("{each} {}", resident_kib().saturating_sub(base));
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0)
}

//! What is timed: some tasks on two threads acquire and release, each on keys of its own or all on the same ones.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion};
use tokio::runtime::Runtime;
use tokio_time as tokio;

use crate::clock::Clock;
use crate::contenders::Contender;

pub(crate) struct Scenario {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    tasks: usize,
    /// How many keys the tasks share, or `None` when each has its own 1,250.
    shared_keys: Option<usize>,
    /// Every n-th acquisition is a write.
    write_every: usize,
}

pub(crate) const ALL: &[Scenario] = &[
    Scenario {
        id: "distinct-1",
        title: "1 task",
        tasks: 1,
        shared_keys: None,
        write_every: 1,
    },
    Scenario {
        id: "distinct-2",
        title: "2 tasks",
        tasks: 2,
        shared_keys: None,
        write_every: 1,
    },
    Scenario {
        id: "distinct-8",
        title: "8 tasks",
        tasks: 8,
        shared_keys: None,
        write_every: 1,
    },
    Scenario {
        id: "hot-write",
        title: "hot key, 8 writers",
        tasks: 8,
        shared_keys: Some(1),
        write_every: 1,
    },
    Scenario {
        id: "hot-95",
        title: "hot key, 95 % reads",
        tasks: 8,
        shared_keys: Some(1),
        write_every: 20,
    },
    Scenario {
        id: "warm-95",
        title: "100 keys, 95 % reads",
        tasks: 8,
        shared_keys: Some(100),
        write_every: 20,
    },
];

const KEYS_OF_A_TASK: usize = 1_250;

pub(crate) fn time<C: Contender>(criterion: &mut Criterion, scenario: &Scenario) {
    let runtime = runtime();
    let locks = Arc::new(C::default());
    let mut group = criterion.benchmark_group(scenario.id);
    group.bench_function(BenchmarkId::from_parameter(C::NAME), |bencher| {
        bencher.iter_custom(|times| run(&runtime, &locks, scenario, usize::try_from(times).unwrap()));
    });
    group.finish();
}

pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap()
}

/// A name as the server would lock it.
pub(crate) fn key(number: usize) -> String {
    format!("metalake.catalog.schema.fileset_{number:07}")
}

fn run<C: Contender>(runtime: &Runtime, locks: &Arc<C>, scenario: &Scenario, times: usize) -> Duration {
    let tasks: Vec<_> = (0..scenario.tasks)
        .map(|task| {
            let keys = scenario.shared_keys.unwrap_or(KEYS_OF_A_TASK);
            let first = if scenario.shared_keys.is_some() {
                0
            } else {
                task * KEYS_OF_A_TASK
            };
            let keys: Vec<String> = (first..first + keys).map(key).collect();
            (Arc::clone(locks), keys, times / scenario.tasks + 1)
        })
        .collect();
    let write_every = scenario.write_every;
    let from = Clock::start();
    let running: Vec<_> = tasks
        .into_iter()
        .enumerate()
        .map(|(task, (locks, keys, times))| {
            runtime.spawn(async move {
                for time in 0..times {
                    // Tasks that share keys start at different ones.
                    let key = &keys[(time + 13 * task) % keys.len()];
                    if (time + task) % write_every == 0 {
                        drop(black_box(locks.write(key).await));
                    } else {
                        drop(black_box(locks.read(key).await));
                    }
                }
            })
        })
        .collect();
    runtime.block_on(async {
        for task in running {
            task.await.unwrap();
        }
    });
    from.elapsed()
}

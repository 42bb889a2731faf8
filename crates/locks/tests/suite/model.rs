//! Random operations beside a reference that is too simple to be wrong: a list per key.

use std::collections::BTreeMap;
use std::task::Poll;
use std::time::Duration;

use proptest::prelude::*;
use tokio_time::runtime::Builder;
use treeline_locks::Mode::{self, Read, Write};
use treeline_locks::{Guard, Locked, NameLocks};

use crate::kit::{LONG, Polled};

type Key = u8;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// A new request joins.
    Ask(Key, Mode),
    /// A new request that will not wait.
    AskAtOnce(Key, Mode),
    /// A request that was woken looks again, so that it has a guard.
    Look(usize),
    /// A request goes, wherever it is: waiting, served but not aware of it, or holding.
    Drop(usize),
}

enum State<'a> {
    Asked(Polled<'a, Locked<'a, Key>>),
    Holds { _guard: Guard<'a, Key> },
}

struct Request<'a> {
    id: usize,
    key: Key,
    state: State<'a>,
}

/// Who asked, in their order.
#[derive(Default)]
struct Reference(BTreeMap<Key, Vec<(usize, Mode)>>);

impl Reference {
    /// The first, and if it reads, those right behind it that read too.
    fn holders(&self, key: Key) -> Vec<usize> {
        let queue = self.0.get(&key).map_or(&[][..], Vec::as_slice);
        let readers = queue.iter().take_while(|(_, mode)| *mode == Read).count();
        queue.iter().take(readers.max(1)).map(|(id, _)| *id).collect()
    }

    fn leave(&mut self, key: Key, id: usize) {
        let queue = self.0.entry(key).or_default();
        queue.retain(|(known, _)| *known != id);
        self.0.retain(|_, queue| !queue.is_empty());
    }
}

fn step() -> impl Strategy<Value = Step> {
    let (key, mode) = (0..3_u8, prop_oneof![3 => Just(Read), 2 => Just(Write)]);
    let ask = (key, mode);
    prop_oneof![
        4 => ask.clone().prop_map(|(key, mode)| Step::Ask(key, mode)),
        1 => ask.prop_map(|(key, mode)| Step::AskAtOnce(key, mode)),
        3 => any::<prop::sample::Index>().prop_map(|at| Step::Look(at.index(1 << 16))),
        4 => any::<prop::sample::Index>().prop_map(|at| Step::Drop(at.index(1 << 16))),
    ]
}

fn run(steps: &[Step]) {
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    let _entered = runtime.enter();
    let locks = NameLocks::new();
    let mut reference = Reference::default();
    let mut requests: Vec<Request<'_>> = Vec::new();
    for (id, step) in steps.iter().enumerate() {
        match *step {
            Step::Ask(key, mode) => {
                reference.0.entry(key).or_default().push((id, mode));
                let mut future = Polled::new(request(&locks, key, mode, LONG));
                let state = match future.poll() {
                    Poll::Ready(guard) => State::Holds {
                        _guard: guard.unwrap(),
                    },
                    Poll::Pending => State::Asked(future),
                };
                let holds = matches!(state, State::Holds { .. });
                assert_eq!(holds, reference.holders(key).contains(&id), "{step:?}");
                requests.push(Request { id, key, state });
            }
            Step::AskAtOnce(key, mode) => {
                reference.0.entry(key).or_default().push((id, mode));
                let holds = reference.holders(key).contains(&id);
                let Poll::Ready(answer) = Polled::new(request(&locks, key, mode, Duration::ZERO)).poll()
                else {
                    panic!("{step:?} waits")
                };
                assert_eq!(answer.is_ok(), holds, "{step:?}");
                reference.leave(key, id);
            }
            Step::Look(at) if !requests.is_empty() => {
                let at = at % requests.len();
                let Request { id, key, state } = &mut requests[at];
                if let State::Asked(future) = state {
                    let served = reference.holders(*key).contains(id);
                    assert_eq!(
                        future.is_woken(),
                        served,
                        "a wake-up for each who is served, and for nobody else"
                    );
                    match future.poll() {
                        Poll::Ready(guard) => {
                            *state = State::Holds {
                                _guard: guard.unwrap(),
                            }
                        }
                        Poll::Pending => assert!(!served, "it was served"),
                    }
                }
            }
            Step::Drop(at) if !requests.is_empty() => {
                let gone = requests.swap_remove(at % requests.len());
                reference.leave(gone.key, gone.id);
            }
            Step::Look(_) | Step::Drop(_) => {}
        }
        agree(&locks, &reference, &requests);
    }
    drop(requests);
    assert!(locks.is_empty());
}

async fn request(locks: &NameLocks<Key>, key: Key, mode: Mode, wait: Duration) -> Locked<'_, Key> {
    match mode {
        Read => locks.read(&key, wait).await,
        Write => locks.write(&key, wait).await,
    }
}

fn agree(locks: &NameLocks<Key>, reference: &Reference, requests: &[Request<'_>]) {
    let mut seen: Vec<_> = locks
        .snapshot()
        .iter()
        .map(|report| {
            (
                report.key,
                report.holder_count,
                report.holder_count + report.waiter_count,
            )
        })
        .collect();
    seen.sort_unstable();
    let expected: Vec<_> = reference
        .0
        .iter()
        .map(|(key, queue)| (*key, reference.holders(*key).len(), queue.len()))
        .collect();
    assert_eq!(seen, expected);
    for Request { id, key, state } in requests {
        if let State::Asked(future) = state {
            assert_eq!(future.is_woken(), reference.holders(*key).contains(id));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases()) })]

    #[test]
    fn every_operation_agrees_with_the_reference(steps in prop::collection::vec(step(), 1..80)) {
        run(&steps);
    }
}

/// `PROPTEST_CASES=10000` for the long run.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(1_000)
}

//! Generated histories of a store that is right hold, and with one thing changed they do not.

use std::collections::HashMap;

use treeline_history::{Operation, Outcome, Rule, Simulation, Verb, check, simulate};

use crate::book::lines;

const SEEDS: u64 = 20;

fn history(seed: u64, operations: usize, unknown_percent: u64) -> Vec<Operation> {
    let mut history = Vec::new();
    let simulation = Simulation {
        seed,
        operations,
        clients: 2 + u32::try_from(seed % 15).unwrap(),
        unknown_percent,
    };
    simulate(&simulation, |operation| history.push(operation));
    history
}

/// The acknowledged sets of each entity, by version.
fn sets(history: &[Operation]) -> HashMap<i64, Vec<usize>> {
    let mut sets: HashMap<i64, Vec<usize>> = HashMap::new();
    for (index, operation) in history.iter().enumerate() {
        if let (Outcome::Ok, Verb::Set, Some(id)) = (operation.outcome, operation.operation, operation.id) {
            sets.entry(id).or_default().push(index);
        }
    }
    for sets in sets.values_mut() {
        sets.sort_by_key(|index| history[*index].version);
    }
    sets
}

fn rules(history: &[Operation]) -> Vec<Rule> {
    let verdict = check(lines(history).as_bytes()).unwrap();
    verdict
        .violations
        .iter()
        .map(|violation| violation.rule)
        .collect()
}

#[test]
fn histories_of_a_right_store_hold_whatever_is_unknown() {
    for seed in 0..SEEDS {
        for unknown_percent in [0, 2, 30] {
            let history = history(seed, 1_000, unknown_percent);
            let verdict = check(lines(&history).as_bytes()).unwrap();
            assert!(verdict.holds(), "seed {seed}, {unknown_percent} %:\n{verdict}");
        }
    }
}

#[test]
fn a_history_without_one_of_its_acknowledged_writes_is_rejected() {
    let mut mutated = 0;
    for seed in 0..SEEDS {
        let history = history(seed, 300, 0);
        for sets in sets(&history).values() {
            // Somebody has seen a later version, so the gap shows.
            for pair in sets.windows(2).take(1) {
                let mut mutant = history.clone();
                mutant.remove(pair[0]);
                assert!(
                    rules(&mutant).contains(&Rule::Versions),
                    "seed {seed}, line {}",
                    pair[0] + 1
                );
                mutated += 1;
            }
        }
    }
    assert!(mutated > 50, "{mutated}");
}

#[test]
fn a_history_with_two_versions_swapped_is_rejected() {
    let mut mutated = 0;
    for seed in 0..SEEDS {
        let history = history(seed, 300, 2);
        for sets in sets(&history).values() {
            for pair in sets.windows(2).take(1) {
                let (first, second) = (&history[pair[0]], &history[pair[1]]);
                if first.ended >= second.begun {
                    // They overlap: without their values, the other order would be as good.
                    continue;
                }
                let mut mutant = history.clone();
                (mutant[pair[0]].version, mutant[pair[1]].version) = (second.version, first.version);
                assert!(!rules(&mutant).is_empty(), "seed {seed}, lines {pair:?}");
                mutated += 1;
            }
        }
    }
    assert!(mutated > 50, "{mutated}");
}

#[test]
fn a_history_in_which_a_read_shows_an_overwritten_value_is_rejected() {
    let mut mutated = 0;
    for seed in 0..SEEDS {
        let history = history(seed, 300, 2);
        for sets in sets(&history).values() {
            for index in sets {
                let set = &history[*index];
                let (key, _) = set.sets.first_key_value().unwrap();
                let older = history.iter().find(|other| {
                    other.id == set.id && other.version < set.version && other.sets.contains_key(key)
                });
                let Some(older) = older else {
                    continue;
                };
                let mut mutant = history.clone();
                let seen = mutant[*index].properties.as_mut().unwrap();
                seen.insert(key.clone(), older.sets[key].clone());
                assert_eq!(rules(&mutant)[0], Rule::Lost, "seed {seed}, line {}", index + 1);
                mutated += 1;
            }
        }
    }
    assert!(mutated > 50, "{mutated}");
}

#[test]
fn a_drop_acknowledged_without_having_been_done_is_found() {
    let mut mutated = 0;
    for seed in 0..SEEDS {
        let history = history(seed, 300, 0);
        for (index, drop) in history.iter().enumerate() {
            let refused = drop.operation == Verb::Drop && drop.status == Some(409);
            // The entity was there before, stays, nothing else comes there, and in the end it is read.
            let answered = || history.iter().filter(|other| other.outcome == Outcome::Ok);
            let loads = || answered().filter(|load| load.path == drop.path && load.operation == Verb::Load);
            let lives = loads().any(|load| load.begun > drop.ended);
            let lived = loads().any(|load| load.ended < drop.begun);
            let comes = answered().filter(|other| other.ended >= drop.begun).any(|other| {
                let creates = other.path == drop.path && other.operation == Verb::Create;
                creates || other.new_name.as_ref() == drop.path.last()
            });
            if !refused || !lives || !lived || comes {
                continue;
            }
            let mut mutant = history.clone();
            let drop = &mut mutant[index];
            (drop.outcome, drop.status, drop.dropped) = (Outcome::Ok, Some(200), Some(true));
            assert!(!rules(&mutant).is_empty(), "seed {seed}, line {}", index + 1);
            mutated += 1;
        }
    }
    assert!(mutated > 2, "{mutated}");
}

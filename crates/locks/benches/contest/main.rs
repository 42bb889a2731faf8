//! The crate beside its peers, in one run on one machine: `cargo bench -p treeline-locks`.
//!
//! Criterion times acquire + release; a child process per contender churns a million keys and reports its memory;
//! a last run measures how long a writer waits behind readers. It ends with the table of the README.
//! `TREELINE_LOCKS_CLOCK=cpu` measures processor time, for a machine that others use too.

#![expect(clippy::print_stdout, reason = "a benchmark reports to the terminal")]
#![expect(clippy::unwrap_used, reason = "a benchmark that fails should stop")]

mod clock;
mod contenders;
mod memory;
mod scenario;
mod table;
mod writer_wait;

use std::path::Path;
use std::time::Duration;

use contenders::{Cleaned, Contender, KeyedLock, Lockable, Treeline, Uncleaned};
use criterion::Criterion;

/// Runs the same code for each contender, which are types.
macro_rules! each {
    ($run:ident $(, $argument:expr)*) => {
        vec![
            $run::<Treeline>($($argument),*),
            $run::<Lockable>($($argument),*),
            $run::<KeyedLock>($($argument),*),
            $run::<Uncleaned>($($argument),*),
            $run::<Cleaned>($($argument),*),
        ]
    };
}

fn main() {
    if let Ok(contender) = std::env::var(memory::CHILD) {
        let all: Vec<Option<()>> = each!(churn_as, &contender);
        assert!(
            all.iter().any(Option::is_some),
            "no contender is called {contender}"
        );
        return;
    }
    // `cargo test --benches` runs every bench once, to see that it works; this one has nothing short to show.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("contest");
    let mut criterion = Criterion::default()
        .output_directory(&home)
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .without_plots();
    for scenario in scenario::ALL {
        each!(time, &mut criterion, scenario);
    }
    criterion.final_summary();
    let names: Vec<&str> = each!(name);
    let memory: Vec<_> = names.iter().map(|name| memory::in_child(name)).collect();
    let waits: Vec<_> = each!(writer_wait);
    println!("{}", table::render(&home, &names, &memory, &waits));
}

fn time<C: Contender>(criterion: &mut Criterion, scenario: &scenario::Scenario) {
    scenario::time::<C>(criterion, scenario);
}

fn name<C: Contender>() -> &'static str {
    C::NAME
}

fn churn_as<C: Contender>(contender: &str) -> Option<()> {
    (C::NAME == contender).then(memory::churn::<C>)
}

fn writer_wait<C: Contender>() -> writer_wait::Waits {
    writer_wait::measure::<C>()
}

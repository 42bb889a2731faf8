//! The rules in their order: entities by their versions first, then places by their names. What builds on a rule is
//! not looked at where that rule is broken, so that a fault is called by its name and not by all that follows.

use std::io::BufRead;

use crate::components::Components;
use crate::history::{Answer, History};
use crate::index::Index;
use crate::judge::Judge;
use crate::read::{self, Ending, Unreadable};
use crate::sighting::sightings;
use crate::verdict::Verdict;
use crate::{evidence, gaps, names, realtime, stays, values, versions};

/// Judges a history: one [`crate::Operation`] a line, and the [`crate::End`].
pub fn check(input: impl BufRead) -> Result<Verdict, Unreadable> {
    Ok(judge(&read::read(input, Ending::Demanded)?))
}

/// The same of one that may lack its end line. What came after its last line is then not known.
pub fn check_unended(input: impl BufRead) -> Result<Verdict, Unreadable> {
    Ok(judge(&read::read(input, Ending::Optional)?))
}

fn judge(history: &History) -> Verdict {
    let mut judge = Judge {
        history,
        verdict: Verdict::default(),
    };
    judge.verdict.operations = history.operations.len();
    for op in &history.operations {
        match op.answer {
            Answer::State(_) | Answer::Dropped(_) | Answer::Names(_) => judge.verdict.succeeded += 1,
            Answer::Missing | Answer::Taken | Answer::Refused => judge.verdict.refused += 1,
            Answer::Unknown => judge.verdict.unknown += 1,
        }
    }
    let components = Components::of_history(history);
    let sightings = sightings(history);
    let versions::Ordered { entities, mut broken } = versions::check(&mut judge, &sightings, &components);
    let replayed = values::check(&mut judge, &entities, &components);
    gaps::check(&mut judge, &entities, &components, &replayed);
    realtime::check(&mut judge, &entities);
    let index = Index::of(history);
    let stays = stays::stays(&mut judge, &entities, &index, &mut broken);
    let mut holders = names::check(&mut judge, &stays, &entities, &index, broken);
    evidence::check(&mut judge, &index, &mut holders);
    names::count(&mut judge, &index, &holders);
    judge.verdict.violations.sort_by_key(|violation| violation.rule);
    judge.verdict
}

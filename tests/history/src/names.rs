//! H-UNIQUE, H-DROPPED and H-PARENT at each place: who lived there, one after the other, and how many came and went.

use std::collections::HashSet;

use crate::history::{NEVER, PlaceId};
use crate::index::{Index, Place};
use crate::judge::Judge;
use crate::ranges::{Range, Ranges};
use crate::sighting::Entity;
use crate::stays::Stay;
use crate::verdict::Rule;

/// A time during which one entity surely lived at a place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) from: u64,
    /// [`NEVER`] if nothing may have ended it.
    pub(crate) until: u64,
    pub(crate) stay: Stay,
}

/// For each place, the times during which it surely had somebody, one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Holders {
    places: Vec<Vec<Held>>,
    broken: HashSet<PlaceId>,
}

impl Holders {
    /// Who surely had the place from before this time until after it.
    pub(crate) fn throughout(&self, place: PlaceId, begun: u64, ended: u64) -> Option<&Held> {
        let held = &self.places[place.index()];
        let before = held.partition_point(|held| held.from < begun);
        held.get(before.checked_sub(1)?).filter(|held| held.until > ended)
    }

    /// A rule is broken here.
    pub(crate) fn breaks(&mut self, place: PlaceId) {
        self.broken.insert(place);
    }

    /// Whether a rule is broken here, so that what follows from it need not be said.
    pub(crate) fn is_broken(&self, place: PlaceId) -> bool {
        self.broken.contains(&place)
    }
}

/// Looks at each place but those where a rule is broken already.
pub(crate) fn check(
    judge: &mut Judge<'_>,
    stays: &[Stay],
    entities: &[Entity<'_>],
    index: &Index,
    broken: HashSet<PlaceId>,
) -> Holders {
    let count = judge.history.places().count();
    let mut holders = Holders {
        places: vec![Vec::new(); count],
        broken,
    };
    for entity in entities {
        if outlives_an_ancestor(judge, entity, index) {
            let places = entity.sightings.iter().filter_map(|sighting| sighting.place);
            holders.broken.extend(places);
        }
    }
    for stay in stays {
        let place = index.at(stay.place);
        if let Some(drop) = survived(place, stay) {
            let name = judge.entity(stay.id, stay.place);
            let what = "it was there after a drop of whatever had its name";
            judge.report(Rule::Dropped, name, what, &[stay.first, drop.op, stay.last]);
            holders.broken.insert(stay.place);
        }
        holders.places[stay.place.index()].push(Held {
            from: stay.surely_from,
            until: surely_until(index, stay),
            stay: *stay,
        });
    }
    for (number, (place, _)) in judge.history.places().enumerate() {
        let held = &mut holders.places[number];
        held.retain(|held| held.from < held.until);
        held.sort_unstable_by_key(|held| (held.from, held.stay.first));
        if holders.broken.contains(&place) {
            continue;
        }
        if let Some((first, second)) = overlap(held) {
            let what = format!("ids {} and {} lived there at once", first.id, second.id);
            let name = judge.history.describe_place(place);
            judge.report(Rule::Unique, name, what, &[first.first, second.first]);
            holders.broken.insert(place);
        }
    }
    holders
}

/// Two entities that surely lived at one place at once. One entity may have two stays that nothing tells apart.
fn overlap(held: &[Held]) -> Option<(Stay, Stay)> {
    let mut longest = held.first()?;
    for next in held {
        if next.from < longest.until && next.stay.id != longest.stay.id {
            return Some((longest.stay, next.stay));
        }
        if next.until > longest.until {
            longest = next;
        }
    }
    None
}

/// Counts at each place that nothing is wrong with otherwise.
pub(crate) fn count(judge: &mut Judge<'_>, index: &Index, holders: &Holders) {
    for (place, _) in judge.history.places() {
        if !holders.is_broken(place) {
            count_there(judge, index, place);
        }
    }
}

/// What was there before a drop of something above began was dropped along, and is not seen once that has ended.
fn outlives_an_ancestor(judge: &mut Judge<'_>, entity: &Entity<'_>, index: &Index) -> bool {
    let born = entity.sightings.iter().min_by_key(|sighting| sighting.ended);
    let here = entity
        .sightings
        .iter()
        .filter(|sighting| sighting.place.is_some());
    let last = here.max_by_key(|sighting| sighting.begun);
    let (Some(born), Some(last)) = (born, last) else {
        return false;
    };
    for ancestor in &index.at(entity.place).ancestors {
        let drop = index.at(*ancestor).drops.first_done_after(born.ended);
        if let Some(drop) = drop.filter(|drop| drop.ended < last.begun) {
            let name = judge.entity(entity.id, entity.place);
            let what = format!("it outlived {}", judge.history.describe_place(*ancestor));
            judge.report(Rule::Parent, name, what, &[born.op, drop.op, last.op]);
            return true;
        }
    }
    false
}

/// A drop that came between two sightings at one place took what was there, and that does not come back.
fn survived(place: &Place, stay: &Stay) -> Option<Range> {
    let drop = place.drops.first_done_after(stay.surely_from)?;
    (drop.ended < stay.last_seen).then_some(drop)
}

/// The first moment at which something may have ended the stay.
fn surely_until(index: &Index, stay: &Stay) -> u64 {
    if let Some(left) = stay.left {
        return left.max(stay.last_seen);
    }
    let place = index.at(stay.place);
    let own = place.removals.first_ended_from(stay.last_seen);
    let above = place.ancestors.iter().map(|ancestor| index.at(*ancestor));
    let above = above.filter_map(|above| above.gone.first_ended_from(stay.last_seen));
    let first = own.into_iter().chain(above).map(|range| range.begun).min();
    first.map_or(NEVER, |first| first.max(stay.last_seen))
}

/// Where writes overlap, their order is not known, but their numbers are: each but the last of those that came must
/// have gone, and each that went must have come.
fn count_there(judge: &mut Judge<'_>, index: &Index, id: PlaceId) {
    let place = index.at(id);
    let removals_between = |from: u64, until: u64| {
        let above = place.ancestors.iter().map(|ancestor| &index.at(*ancestor).gone);
        let counts = above
            .chain([&place.gone])
            .map(|gone| gone.count_overlapping(from, until));
        counts.sum::<usize>()
    };
    let too_many_came = clusters(&place.arrived).into_iter().find_map(|cluster| {
        let mut came = (1..).zip(&cluster.by_ended);
        let is_too_many = |came: usize, last: &Range| came > 1 + removals_between(cluster.begun, last.ended);
        let (count, _) = came.find(|(came, last)| is_too_many(*came, last))?;
        let what = "more entities came than can have gone in between";
        Some((Rule::Unique, what, cluster.first(count)))
    });
    let too_many_went = clusters(&place.removed).into_iter().find_map(|cluster| {
        let since = place
            .vacant
            .last_ended_before(cluster.begun)
            .map(|since| since.begun);
        let mut went = (1..).zip(&cluster.by_ended);
        let is_too_many = |went: usize, last: &Range| went > place.arrivals_between(since, last.ended);
        let (count, _) = went.find(|(went, last)| is_too_many(*went, last))?;
        let what = "more entities went than can have come";
        Some((Rule::Dropped, what, cluster.first(count)))
    });
    if let Some((rule, what, operations)) = too_many_came.or(too_many_went) {
        let name = judge.history.describe_place(id);
        judge.report(rule, name, what, &operations);
    }
}

/// Operations of which each overlaps another.
struct Cluster {
    begun: u64,
    by_ended: Vec<Range>,
}

impl Cluster {
    /// Of those that ended first, the last few: enough to look at.
    fn first(&self, count: usize) -> Vec<usize> {
        const SHOWN_MAX: usize = 4;
        let first = &self.by_ended[..count];
        let shown = &first[count.saturating_sub(SHOWN_MAX)..];
        shown.iter().map(|range| range.op).collect()
    }
}

fn clusters(ranges: &Ranges) -> Vec<Cluster> {
    let mut clusters: Vec<Cluster> = Vec::new();
    let mut until = 0;
    for range in ranges.iter() {
        match clusters.last_mut() {
            Some(cluster) if range.begun <= until => cluster.by_ended.push(*range),
            _ => clusters.push(Cluster {
                begun: range.begun,
                by_ended: vec![*range],
            }),
        }
        until = until.max(range.ended);
    }
    for cluster in &mut clusters {
        cluster.by_ended.sort_unstable_by_key(|range| range.ended);
    }
    clusters
}

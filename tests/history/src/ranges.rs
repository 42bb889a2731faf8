//! Operations on one place as ranges of time, with the questions that the rules ask of them, each in O(log n).
//!
//! An operation has its effect at one unknown moment of its range, so two of them are in a known order only where one
//! ended before the other began.

/// From when an operation was sent to when it was answered, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) begun: u64,
    pub(crate) ended: u64,
    /// Its index in the history.
    pub(crate) op: usize,
}

/// Many ranges. Add all, then seal, then ask.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges {
    by_begun: Vec<Range>,
    by_ended: Vec<Range>,
    /// For each place in `by_ended`, the one that began first among it and the later ones.
    first_from: Vec<Range>,
    /// For each place in `by_ended`, the one that began last among it and the earlier ones.
    last_until: Vec<Range>,
    /// For each place in `by_begun`, the one that ended first among it and the later ones.
    done_from: Vec<Range>,
}

impl Ranges {
    pub(crate) fn add(&mut self, range: Range) {
        self.by_begun.push(range);
    }

    pub(crate) fn seal(&mut self) {
        self.by_begun
            .sort_unstable_by_key(|range| (range.begun, range.op));
        self.by_ended.clone_from(&self.by_begun);
        self.by_ended
            .sort_unstable_by_key(|range| (range.ended, range.op));
        let earlier = |a: &Range, b: &Range| a.begun <= b.begun;
        self.first_from = running(self.by_ended.iter().rev(), earlier);
        self.first_from.reverse();
        self.last_until = running(self.by_ended.iter(), |a, b| a.begun >= b.begun);
        self.done_from = running(self.by_begun.iter().rev(), |a, b| a.ended <= b.ended);
        self.done_from.reverse();
    }

    /// In the order in which they began.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Range> {
        self.by_begun.iter()
    }

    pub(crate) fn count_begun_before(&self, time: u64) -> usize {
        self.by_begun.partition_point(|range| range.begun < time)
    }

    pub(crate) fn count_ended_by(&self, time: u64) -> usize {
        self.by_ended.partition_point(|range| range.ended <= time)
    }

    /// How many have a moment in common with this time, both ends included.
    pub(crate) fn count_overlapping(&self, begun: u64, ended: u64) -> usize {
        let settled = self.by_ended.partition_point(|range| range.ended < begun);
        let begun = self.by_begun.partition_point(|range| range.begun <= ended);
        begun.saturating_sub(settled)
    }

    /// Of those that had not ended before that time, the one that began first.
    pub(crate) fn first_ended_from(&self, time: u64) -> Option<Range> {
        let at = self.by_ended.partition_point(|range| range.ended < time);
        self.first_from.get(at).copied()
    }

    /// Of those that had ended before that time, the one that began last.
    pub(crate) fn last_ended_before(&self, time: u64) -> Option<Range> {
        let count = self.by_ended.partition_point(|range| range.ended < time);
        self.last_until.get(count.checked_sub(1)?).copied()
    }

    /// Of those that began after that time, the one that ended first.
    pub(crate) fn first_done_after(&self, time: u64) -> Option<Range> {
        let at = self.by_begun.partition_point(|range| range.begun <= time);
        self.done_from.get(at).copied()
    }
}

/// The best so far at each step.
fn running<'a>(
    ranges: impl Iterator<Item = &'a Range>,
    is_better: impl Fn(&Range, &Range) -> bool,
) -> Vec<Range> {
    let mut best: Option<Range> = None;
    let step = |range: &Range| {
        let kept = best.filter(|best| is_better(best, range)).unwrap_or(*range);
        best = Some(kept);
        kept
    };
    ranges.map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_questions_are_answered_as_a_look_at_all_of_them_would() {
        let spans = [(5, 9), (1, 4), (3, 20), (7, 8), (10, 12), (2, 2)];
        let mut ranges = Ranges::default();
        for (op, (begun, ended)) in spans.into_iter().enumerate() {
            ranges.add(Range { begun, ended, op });
        }
        ranges.seal();
        for time in 0..25 {
            let of = |keep: fn(u64, u64, u64) -> bool| {
                spans
                    .into_iter()
                    .filter(move |(begun, ended)| keep(*begun, *ended, time))
            };
            assert_eq!(ranges.count_begun_before(time), of(|b, _, t| b < t).count());
            assert_eq!(ranges.count_ended_by(time), of(|_, e, t| e <= t).count());
            assert_eq!(
                ranges.count_overlapping(time, time + 3),
                of(|b, e, t| e >= t && b <= t + 3).count()
            );
            let begun = |range: Option<Range>| range.map(|range| range.begun);
            assert_eq!(
                begun(ranges.first_ended_from(time)),
                of(|_, e, t| e >= t).map(|(b, _)| b).min()
            );
            assert_eq!(
                begun(ranges.last_ended_before(time)),
                of(|_, e, t| e < t).map(|(b, _)| b).max()
            );
            assert_eq!(
                ranges.first_done_after(time).map(|range| range.ended),
                of(|b, _, t| b > t).map(|(_, e)| e).min()
            );
        }
    }
}

//! What is made of the measured rates: the composite limit, the medians, and the lines of the table.

use std::fmt;

/// The rates of one round, each in requests or transactions a second, measured right after each other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// The same work without the server.
    pub(super) raw: f64,
    /// The server without the work.
    pub(super) health: f64,
    /// The server with the work.
    pub(super) server: f64,
}

impl Sample {
    fn limit(&self) -> f64 {
        limit(self.raw, self.health)
    }
}

/// What a server can reach whose every request costs one raw piece of work and one empty request, on the same cores.
fn limit(raw: f64, health: f64) -> f64 {
    1.0 / (1.0 / raw + 1.0 / health)
}

/// The one in the middle; the mean of two where there are two. Not a number where there is none.
pub(super) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

/// One line of the table. The ratios are medians of each round's own ratio, and so need not be exactly the ratio of
/// the medians beside them.
#[derive(Clone, Debug)]
pub(super) struct Line {
    title: &'static str,
    clients: usize,
    server: f64,
    raw: f64,
    health: f64,
    limit: f64,
    of_limit: f64,
    of_raw: f64,
}

impl Line {
    pub(super) fn of(title: &'static str, clients: usize, rounds: &[Sample]) -> Line {
        let over = |value: fn(&Sample) -> f64| median(rounds.iter().map(value));
        Line {
            title,
            clients,
            server: over(|round| round.server),
            raw: over(|round| round.raw),
            health: over(|round| round.health),
            limit: over(Sample::limit),
            of_limit: over(|round| round.server / round.limit()),
            of_raw: over(|round| round.server / round.raw),
        }
    }

    pub(super) fn heading() -> String {
        let titles = format!(
            "{:<26}{:>8}{:>11}{:>11}{:>11}{:>11}{:>10}{:>9}",
            "work", "clients", "server/s", "raw/s", "/health/s", "limit/s", "of limit", "of raw"
        );
        format!("{titles}\n{}", "-".repeat(titles.len()))
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<26}{:>8}{:>11.0}{:>11.0}{:>11.0}{:>11.0}{:>10.2}{:>9.2}",
            self.title,
            self.clients,
            self.server,
            self.raw,
            self.health,
            self.limit,
            self.of_limit,
            self.of_raw
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-9
    }

    #[test]
    fn the_limit_of_two_equal_halves_is_half_of_each() {
        assert!(close(limit(100.0, 100.0), 50.0));
        assert!(close(limit(300.0, 600.0), 200.0));
        assert!(limit(100.0, 1e12) < 100.0);
    }

    #[test]
    fn the_median_is_not_moved_by_one_bad_round() {
        assert!(close(median([3.0, 1.0, 1_000.0]), 3.0));
        assert!(close(median([4.0, 1.0, 2.0, 3.0]), 2.5));
        assert!(close(median([7.0]), 7.0));
        assert!(median([]).is_nan());
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        // The machine was half as fast in the second round and twice as fast in the third: no ratio has moved.
        let round = |speed: f64| Sample {
            raw: 300.0 * speed,
            health: 600.0 * speed,
            server: 100.0 * speed,
        };
        let line = Line::of("work", 8, &[round(1.0), round(0.5), round(2.0)]);
        assert!(close(line.of_limit, 0.5) && close(line.of_raw, 1.0 / 3.0));
        assert!(close(line.limit, 200.0) && close(line.server, 100.0));
        let shown = line.to_string();
        let words: Vec<&str> = shown.split_whitespace().collect();
        assert_eq!(words, ["work", "8", "100", "300", "600", "200", "0.50", "0.33"]);
        assert_eq!(shown.len(), Line::heading().lines().next().unwrap().len());
    }
}

//! Which places are at, below or above another: whole segments of their paths.

use crate::value::Value;

/// The three parameters of "at this location, or below it".
pub(crate) fn inside(location: &str) -> [Value; 3] {
    [
        location.into(),
        format!("{location}/").into(),
        format!("{location}0").into(),
    ]
}

/// The locations above one, nearest last. At least one entry, so that a look-up always runs.
pub(super) fn places_above(location: &str) -> Vec<&str> {
    let above: Vec<&str> = location
        .match_indices('/')
        .map(|(end, _)| &location[..end])
        .collect();
    if above.is_empty() { vec![location] } else { above }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_above_stop_at_whole_segments() {
        assert_eq!(places_above("file:/a/bc/d"), ["file:", "file:/a", "file:/a/bc"]);
        assert_eq!(places_above("x"), ["x"]);
    }
}

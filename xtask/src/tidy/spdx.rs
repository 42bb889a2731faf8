//! Licence expressions of packages, read far enough to say whether a list of licences covers them.

/// Whether one may use the package under licences of the list alone. `/` is the old spelling of `OR`. What cannot be
/// read is not covered.
pub(super) fn is_covered(expression: &str, allowed: &[&str]) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    let covered = alternatives(&mut rest, allowed);
    covered == Some(true) && rest.is_empty()
}

fn alternatives(rest: &mut &[&str], allowed: &[&str]) -> Option<bool> {
    let mut covered = conjunction(rest, allowed)?;
    while let Some(("OR", after)) = first(rest) {
        *rest = after;
        covered |= conjunction(rest, allowed)?;
    }
    Some(covered)
}

fn conjunction(rest: &mut &[&str], allowed: &[&str]) -> Option<bool> {
    let mut covered = single(rest, allowed)?;
    while let Some(("AND", after)) = first(rest) {
        *rest = after;
        covered &= single(rest, allowed)?;
    }
    Some(covered)
}

fn single(rest: &mut &[&str], allowed: &[&str]) -> Option<bool> {
    let (word, after) = first(rest)?;
    *rest = after;
    if word == "(" {
        let covered = alternatives(rest, allowed)?;
        let (")", after) = first(rest)? else { return None };
        *rest = after;
        return Some(covered);
    }
    let mut licence = word.to_owned();
    if let Some(("WITH", after)) = first(rest) {
        let (exception, after) = first(after)?;
        *rest = after;
        licence = format!("{licence} WITH {exception}");
    }
    Some(allowed.contains(&licence.as_str()))
}

fn first<'a, 'w>(words: &'a [&'w str]) -> Option<(&'w str, &'a [&'w str])> {
    words.split_first().map(|(word, rest)| (*word, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_is_covered_where_one_alternative_is() {
        let allowed = [
            "MIT",
            "Apache-2.0",
            "Apache-2.0 WITH LLVM-exception",
            "Unicode-3.0",
        ];
        for covered in [
            "MIT",
            "MIT OR GPL-3.0",
            "GPL-3.0/MIT",
            "(MIT OR GPL-3.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR GPL-3.0",
        ] {
            assert!(is_covered(covered, &allowed), "{covered}");
        }
        for uncovered in [
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "(MIT",
            "MIT MIT",
            "",
            "MIT WITH",
            "MIT OR",
        ] {
            assert!(!is_covered(uncovered, &allowed), "{uncovered}");
        }
    }
}

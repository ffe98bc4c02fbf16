//! Phrases of messages: numbers with their noun, and suggestions for misspelled names.

/// The number with its noun, whose plural ends in `s`, or in `ies` for `y`: `1 storage`, `3 storages`, `2 copies`.
pub fn count(number: usize, noun: &str) -> String {
    match (number, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{number} {stem}ies"),
        (_, None) => format!("{number} {noun}s"),
    }
}

/// The end of a message about an unknown name: the name that was probably meant, or else the known names, of which `many` is the
/// plural.
pub fn instead<'a>(name: &str, there_are: impl IntoIterator<Item = &'a str>, many: &str) -> String {
    const SHOWN: usize = 10;
    let there_are: Vec<&str> = there_are.into_iter().collect();
    if let Some(meant) = nearest(name, there_are.iter().copied()) {
        return format!("did you mean `{meant}`?");
    }
    match there_are.len() {
        0 => format!("there are no {many}"),
        1 => format!("there is only {}", there_are[0]),
        n if n <= SHOWN => format!("the {many} are {}", there_are.join(", ")),
        n => format!("the {many} are {} and {} more", there_are[..SHOWN].join(", "), n - SHOWN),
    }
}

/// A cycle of names, from the first back to the first: `a -> b -> a`; of a long one, only the first names.
pub fn chain(length: usize, name: impl Fn(usize) -> String) -> String {
    const SHOWN: usize = 8;
    let mut shown: Vec<String> = (0..length.min(SHOWN)).map(&name).collect();
    shown.extend((length > SHOWN).then(|| format!("… {} more …", length - SHOWN)));
    shown.push(name(0));
    shown.join(" -> ")
}

/// The nearest of the names that differs from `name` by few edits: a letter inserted, deleted or replaced, or two exchanged.
pub fn nearest<'a>(name: &str, there_are: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // The time of a comparison is the product of the lengths.
    const LONGEST: usize = 100;
    let length = name.chars().count();
    let comparable = |other: &&str| length <= LONGEST && other.len() <= 4 * LONGEST;
    let distance = |other: &'a str| (strsim::osa_distance(name, other), other);
    let near = there_are.into_iter().filter(comparable).map(distance);
    near.filter(|(distance, _)| *distance <= 1.max(length / 3)).min_by_key(|(d, _)| *d).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular() {
        assert_eq!([count(0, "swap-in"), count(1, "swap-in")], ["0 swap-ins", "1 swap-in"]);
        assert_eq!([count(1, "copy"), count(2, "copy")], ["1 copy", "2 copies"]);
    }

    #[test]
    fn a_chain_closes() {
        let numbers = |length| chain(length, |i| i.to_string());
        assert_eq!(numbers(2), "0 -> 1 -> 0");
        assert_eq!(numbers(100), "0 -> 1 -> 2 -> 3 -> 4 -> 5 -> 6 -> 7 -> … 92 more … -> 0");
    }

    #[test]
    fn what_is_near_was_meant() {
        let names = ["hoist-shapes", "reorder", "swap"];
        let meant = |name| nearest(name, names);
        assert_eq!(
            (meant("swop"), meant("recorder"), meant("hoist_shape")),
            (Some("swap"), Some("reorder"), Some("hoist-shapes"))
        );
        assert_eq!((meant("split"), meant(""), meant(&"swap".repeat(100))), (None, None, None));
        assert_eq!(instead("swpa", names, "passes"), "did you mean `swap`?");
        assert_eq!(instead("split", names, "passes"), "the passes are hoist-shapes, reorder, swap");
        assert_eq!(instead("x", [], "passes"), "there are no passes");
        assert_eq!(instead("x", ["swap"], "passes"), "there is only swap");
        let digits: Vec<String> = (0..12).map(|i| i.to_string()).collect();
        let there_are = instead("batch", digits.iter().map(|d| &**d), "dimensions");
        assert_eq!(there_are, "the dimensions are 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more");
    }
}

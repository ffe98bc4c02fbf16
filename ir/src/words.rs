//! Phrases of messages: numbers with their noun, and suggestions for misspelled names.

use std::borrow::Cow;

/// The number with its noun, whose plural ends in `s`, or in `ies` for `y`: `1 storage`, `3 storages`, `2 copies`.
pub fn count(number: usize, noun: &str) -> String {
    match (number, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{number} {stem}ies"),
        (_, None) => format!("{number} {noun}s"),
    }
}

/// The text as it is shown: a character that moves the cursor, changes colours or the direction of writing is written as
/// `\u001b`, which is an escape in JSON, too. Line ends stay.
///
/// All text for a terminal goes through here, so that names in a stranger's model cannot forge a report.
pub fn shown(text: &str) -> Cow<'_, str> {
    let is_escaped = |c: char| is_hidden(c) && c != '\n';
    if !text.contains(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_escaped(c) {
            shown += &format!("\\u{:04x}", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// Whether the character controls a terminal, or the direction or the lines of a text.
pub(crate) fn is_hidden(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The end of a message about an unknown name: the names that hold it or are spelt like it, or else the known names, of which `many`
/// is the plural.
pub fn instead<'a>(name: &str, there_are: impl IntoIterator<Item = &'a str>, many: &str) -> String {
    const SHOWN: usize = 10;
    let there_are: Vec<&str> = there_are.into_iter().collect();
    let holding = holding(name, &there_are);
    match holding[..] {
        [] => {}
        [meant] => return format!("did you mean `{meant}`?"),
        [ref first @ .., last] if holding.len() <= SHOWN => {
            return format!("did you mean `{}` or `{last}`?", first.join("`, `"));
        }
        _ => {
            let more = holding.len() - SHOWN;
            return format!("{many} with it in their name: {} and {more} more", holding[..SHOWN].join(", "));
        }
    }
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

/// The names that contain `name`, ignoring case.
fn holding<'a>(name: &str, there_are: &[&'a str]) -> Vec<&'a str> {
    /// Shorter parts are in too many names, and longer ones cost too much to look for.
    const LENGTHS: std::ops::RangeInclusive<usize> = 3..=100;
    if !LENGTHS.contains(&name.len()) {
        return Vec::new();
    }
    let part = name.to_lowercase();
    there_are.iter().copied().filter(|other| other.to_lowercase().contains(&part)).collect()
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
    fn control_characters_are_shown_as_text() {
        assert_eq!(shown("a\u{1b}[31m\rb\u{9b}\n\u{202e}é"), "a\\u001b[31m\\u000db\\u009b\n\\u202eé");
        assert!(matches!(shown("é: 1\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_chain_closes() {
        let numbers = |length| chain(length, |i| i.to_string());
        assert_eq!(numbers(2), "0 -> 1 -> 0");
        assert_eq!(numbers(100), "0 -> 1 -> 2 -> 3 -> 4 -> 5 -> 6 -> 7 -> … 92 more … -> 0");
    }

    #[test]
    fn the_nearest_name_is_suggested() {
        let names = ["hoist-shapes", "reorder", "swap"];
        let meant = |name| nearest(name, names);
        assert_eq!(
            (meant("swop"), meant("recorder"), meant("hoist_shape")),
            (Some("swap"), Some("reorder"), Some("hoist-shapes"))
        );
        assert_eq!((meant("split"), meant(""), meant(&"swap".repeat(100))), (None, None, None));
        assert_eq!(instead("swpa", names, "passes"), "did you mean `swap`?");
        assert_eq!(instead("split", names, "passes"), "the passes are hoist-shapes, reorder, swap");
        assert_eq!(instead("Shape", names, "passes"), "did you mean `hoist-shapes`?");
        assert_eq!(
            instead("h100", ["a100", "h100-sxm", "h100-pcie5"], "targets"),
            "did you mean `h100-sxm` or `h100-pcie5`?"
        );
        let layers: Vec<String> = (0..12).map(|layer| format!("relu{layer}")).collect();
        assert_eq!(
            instead("relu", layers.iter().map(|name| &**name), "tensors"),
            "tensors with it in their name: relu0, relu1, relu2, relu3, relu4, relu5, relu6, relu7, relu8, relu9 and 2 more"
        );
        assert_eq!(instead("x", [], "passes"), "there are no passes");
        assert_eq!(instead("x", ["swap"], "passes"), "there is only swap");
        let digits: Vec<String> = (0..12).map(|i| i.to_string()).collect();
        let there_are = instead("batch", digits.iter().map(|d| &**d), "dimensions");
        assert_eq!(there_are, "the dimensions are 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more");
    }
}

//! Options in braces behind a name, as in `window{bytes=1GiB}`: a planner or a pass declares them, a call sets them.

use std::collections::BTreeMap;
use std::fmt;

use lmsc_ir::{Bytes, words};

/// An option of a planner or a pass, which lists it and reads it by this declaration.
///
/// ```
/// use lmsc_planners::call::{CallOption, CallOptions};
///
/// const LIMIT: CallOption = CallOption::count("limit", "number of nodes that are changed at most", 8);
/// let declared = &[LIMIT];
/// let given = CallOptions::of("pass", "mine", declared, &[("limit", "3")]).expect("it is declared");
/// assert_eq!(given.count(&LIMIT), 3);
/// // The value where the call does not set the option:
/// assert_eq!(CallOptions::default().count(&LIMIT), 8);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallOption {
    /// Kebab-case.
    pub name: &'static str,
    /// A phrase without a full stop, for `lmsc passes` and `--help-planner`.
    pub summary: &'static str,
    /// The value where the call does not set the option. Other values are of the same kind.
    pub default: OptionValue,
}

/// The value of an option that a call does not set. Its `Display` is read back as the same value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionValue {
    /// Yes or no.
    Flag(bool),
    /// A whole number.
    Count(u64),
    /// A size.
    Bytes(Bytes),
    /// The first of these words.
    Word(&'static [&'static str]),
    /// No number: the planner chooses one, or there is no limit.
    NoCount,
    /// No size: the planner chooses one.
    NoBytes,
    /// No names. A call may set the option several times, a name each.
    NoNames,
}

impl fmt::Display for OptionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionValue::Flag(flag) => flag.fmt(f),
            OptionValue::Count(count) => count.fmt(f),
            OptionValue::Bytes(bytes) => f.write_str(&bytes.to_string().replace(' ', "")),
            OptionValue::Word(words) => f.write_str(words[0]),
            OptionValue::NoCount | OptionValue::NoBytes | OptionValue::NoNames => f.write_str("…"),
        }
    }
}

impl CallOption {
    /// An option that is on or off.
    pub const fn flag(name: &'static str, summary: &'static str, default: bool) -> CallOption {
        CallOption { name, summary, default: OptionValue::Flag(default) }
    }

    /// An option that is a whole number.
    pub const fn count(name: &'static str, summary: &'static str, default: u64) -> CallOption {
        CallOption { name, summary, default: OptionValue::Count(default) }
    }

    /// An option that is a size.
    pub const fn bytes(name: &'static str, summary: &'static str, default: Bytes) -> CallOption {
        CallOption { name, summary, default: OptionValue::Bytes(default) }
    }

    /// An option that is one of several words, by default the first.
    pub const fn word(
        name: &'static str,
        summary: &'static str,
        words: &'static [&'static str],
    ) -> CallOption {
        CallOption { name, summary, default: OptionValue::Word(words) }
    }

    /// An option that has no value unless a call sets it, of the kind [`OptionValue::NoCount`], [`OptionValue::NoBytes`] or
    /// [`OptionValue::NoNames`].
    pub const fn open(name: &'static str, summary: &'static str, none: OptionValue) -> CallOption {
        CallOption { name, summary, default: none }
    }

    /// The values that the option takes, in words.
    pub fn takes(&self) -> String {
        match self.default {
            OptionValue::Flag(_) => "true or false".to_owned(),
            OptionValue::Count(_) | OptionValue::NoCount => "a whole number".to_owned(),
            OptionValue::Bytes(_) | OptionValue::NoBytes => "a size, such as 64KiB".to_owned(),
            OptionValue::Word(words) => words.join(" or "),
            OptionValue::NoNames => "a name; give the option once for each".to_owned(),
        }
    }

    /// The lines that list it, with its default.
    pub fn in_list(&self) -> String {
        let set = format!("{}={}", self.name, self.default);
        format!("  {set:<26} {}\n", self.summary)
    }

    fn accepts(&self, text: &str) -> bool {
        match self.default {
            OptionValue::Flag(_) => text.parse::<bool>().is_ok(),
            OptionValue::Count(_) | OptionValue::NoCount => text.parse::<u64>().is_ok(),
            OptionValue::Bytes(_) | OptionValue::NoBytes => text.parse::<Bytes>().is_ok(),
            OptionValue::Word(words) => words.contains(&text),
            OptionValue::NoNames => !text.is_empty(),
        }
    }
}

/// The options that a call sets; options without an entry have their defaults.
///
/// Reading an option by a declaration of another kind is a mistake of the program and panics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallOptions(BTreeMap<&'static str, Vec<String>>);

impl CallOptions {
    /// These options of the pass or planner with this name, each a name and a value.
    ///
    /// # Errors
    /// A sentence that names the option that is not declared, is given twice, or does not take its value.
    pub fn of(
        kind: &str,
        called: &str,
        declared: &[CallOption],
        given: &[(&str, &str)],
    ) -> Result<CallOptions, String> {
        let mut options = CallOptions::default();
        for &(name, text) in given {
            let option = declared.iter().find(|option| option.name == name).ok_or_else(|| {
                let instead = match declared {
                    [] => "it has none".to_owned(),
                    _ => words::instead(name, declared.iter().map(|option| option.name), "options"),
                };
                format!("{kind} {called} has no option `{name}`; {instead}")
            })?;
            if !option.accepts(text) {
                return Err(format!(
                    "{kind} {called}: option `{name}` is `{text}`; it takes {}",
                    option.takes()
                ));
            }
            let values = options.0.entry(option.name).or_default();
            if !values.is_empty() && option.default != OptionValue::NoNames {
                return Err(format!("{kind} {called}: option `{name}` is given twice"));
            }
            values.push(text.to_owned());
        }
        Ok(options)
    }

    /// Whether the call sets no option.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names of the options that the call sets, in alphabetical order.
    pub fn names_given(&self) -> impl Iterator<Item = &'static str> {
        self.0.keys().copied()
    }

    /// The call without the options for which the predicate is false.
    #[must_use]
    pub fn only(&self, keep: impl Fn(&str) -> bool) -> CallOptions {
        CallOptions(self.0.iter().filter(|(name, _)| keep(name)).map(|(&n, v)| (n, v.clone())).collect())
    }

    fn text(&self, option: &CallOption) -> Option<&str> {
        self.0.get(option.name).map(|values| &*values[0])
    }

    /// Whether the option is on.
    pub fn flag(&self, option: &CallOption) -> bool {
        match (self.text(option), option.default) {
            (None, OptionValue::Flag(default)) => default,
            (Some(text), OptionValue::Flag(_)) => text == "true",
            (_, other) => panic!("option `{}` is {other:?}, not a flag", option.name),
        }
    }

    /// The value of the option, a number.
    pub fn count(&self, option: &CallOption) -> u64 {
        match option.default {
            OptionValue::Count(default) => self.parsed(option).unwrap_or(default),
            other => panic!("option `{}` is {other:?}, not a number", option.name),
        }
    }

    /// The value of the option, a size.
    pub fn bytes(&self, option: &CallOption) -> Bytes {
        match option.default {
            OptionValue::Bytes(default) => self.parsed(option).unwrap_or(default),
            other => panic!("option `{}` is {other:?}, not a size", option.name),
        }
    }

    /// The word that the option is.
    pub fn word(&self, option: &CallOption) -> &str {
        match option.default {
            OptionValue::Word(words) => self.text(option).unwrap_or(words[0]),
            other => panic!("option `{}` is {other:?}, not a word", option.name),
        }
    }

    /// The number, if the call sets the option.
    pub fn count_if_given(&self, option: &CallOption) -> Option<u64> {
        match option.default {
            OptionValue::NoCount => self.parsed(option),
            other => panic!("option `{}` is {other:?}, and always has a value", option.name),
        }
    }

    /// The size, if the call sets the option.
    pub fn bytes_if_given(&self, option: &CallOption) -> Option<Bytes> {
        match option.default {
            OptionValue::NoBytes => self.parsed(option),
            other => panic!("option `{}` is {other:?}, and always has a value", option.name),
        }
    }

    /// The names that the call gives for the option.
    pub fn names(&self, option: &CallOption) -> &[String] {
        match option.default {
            OptionValue::NoNames => self.0.get(option.name).map_or(&[], |names| names),
            other => panic!("option `{}` is {other:?}, not names", option.name),
        }
    }

    fn parsed<T: std::str::FromStr>(&self, option: &CallOption) -> Option<T> {
        self.text(option).map(|text| text.parse().ok().expect("it was accepted"))
    }
}

/// The options as a call gives them: `name=value,name=value`.
impl fmt::Display for CallOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs = self.0.iter().flat_map(|(name, values)| values.iter().map(move |value| (name, value)));
        for (index, (name, value)) in pairs.enumerate() {
            write!(f, "{}{name}={value}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

/// The calls in the text, which commas outside of braces separate.
pub fn calls(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_u32;
    text.split(move |c| {
        depth = match c {
            '{' => depth + 1,
            '}' => depth.saturating_sub(1),
            _ => depth,
        };
        c == ',' && depth == 0
    })
}

/// A name, and options as pairs of name and value.
pub type Parsed<'t> = (&'t str, Vec<(&'t str, &'t str)>);

/// The name in `name{option=value,option=value}`, and the options; nothing if the text has another form.
pub fn parsed(call: &str) -> Option<Parsed<'_>> {
    let Some((name, rest)) = call.split_once('{') else { return Some((call.trim(), Vec::new())) };
    let pairs = rest.trim_end().strip_suffix('}')?.split(',').map(|pair| pair.split_once('='));
    let pairs = pairs.collect::<Option<Vec<_>>>()?;
    Some((name.trim(), pairs.into_iter().map(|(name, value)| (name.trim(), value.trim())).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comma_within_braces_belongs_to_the_options() {
        let found: Vec<&str> = calls("a{x=1,y=2},b,c{z=3}").collect();
        assert_eq!(found, ["a{x=1,y=2}", "b", "c{z=3}"]);
        assert_eq!(parsed(found[0]).unwrap(), ("a", vec![("x", "1"), ("y", "2")]));
        for text in ["a{", "a{x}", "a{}", "a{x=1"] {
            assert!(parsed(text).is_none(), "{text}");
        }
    }

    #[test]
    fn names_may_be_given_several_times_and_numbers_once() {
        const NAMES: CallOption = CallOption::open("only", "names", OptionValue::NoNames);
        const LIMIT: CallOption = CallOption::open("limit", "a limit", OptionValue::NoCount);
        const RULE: CallOption = CallOption::word("rule", "the rule", &["first", "last"]);
        let of = |given: &[(&str, &str)]| CallOptions::of("planner", "x", &[NAMES, LIMIT, RULE], given);
        let given = of(&[("only", "a"), ("only", "b"), ("rule", "last")]).unwrap();
        assert_eq!(given.names(&NAMES), ["a", "b"]);
        assert_eq!((given.count_if_given(&LIMIT), given.word(&RULE)), (None, "last"));
        assert_eq!(
            of(&[("limit", "1"), ("limit", "2")]).unwrap_err(),
            "planner x: option `limit` is given twice"
        );
        let unknown = of(&[("rule", "middle")]).unwrap_err();
        assert_eq!(unknown, "planner x: option `rule` is `middle`; it takes first or last");
        assert_eq!(
            of(&[("lmit", "1")]).unwrap_err(),
            "planner x has no option `lmit`; did you mean `limit`?"
        );
    }
}

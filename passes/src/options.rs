//! Options of single passes: a pass declares them, a call sets them, and the pass reads them from its [`PassCx`].

use std::collections::BTreeMap;
use std::fmt;

use lmsc_ir::{Bytes, words};

use crate::{Pass, PassCx, PassError};

/// An option of a pass. The pass lists it in [`Pass::options`] and reads it from [`PassCx`] by this declaration.
///
/// ```
/// use lmsc_passes::{PassCx, PassOption};
///
/// const LIMIT: PassOption = PassOption::count("limit", "number of nodes that are changed at most", 8);
/// // The value where the call does not set the option:
/// assert_eq!(PassCx::default().count(&LIMIT), 8);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassOption {
    /// Kebab-case.
    pub name: &'static str,
    /// A phrase without a full stop, for `lmsc passes`.
    pub summary: &'static str,
    /// The value where the call does not set the option. Other values are of the same kind.
    pub default: OptionValue,
}

/// The value of an option. Its `Display` is read back as the same value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionValue {
    /// Yes or no.
    Flag(bool),
    /// A whole number.
    Count(u64),
    /// A size.
    Bytes(Bytes),
}

impl fmt::Display for OptionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionValue::Flag(flag) => flag.fmt(f),
            OptionValue::Count(count) => count.fmt(f),
            OptionValue::Bytes(bytes) => f.write_str(&bytes.to_string().replace(' ', "")),
        }
    }
}

impl PassOption {
    /// An option that is on or off.
    pub(crate) const fn flag(name: &'static str, summary: &'static str, default: bool) -> PassOption {
        PassOption { name, summary, default: OptionValue::Flag(default) }
    }

    /// An option that is a whole number.
    pub const fn count(name: &'static str, summary: &'static str, default: u64) -> PassOption {
        PassOption { name, summary, default: OptionValue::Count(default) }
    }

    /// An option that is a size.
    pub const fn bytes(name: &'static str, summary: &'static str, default: Bytes) -> PassOption {
        PassOption { name, summary, default: OptionValue::Bytes(default) }
    }

    /// The values that the option takes, in words.
    pub fn takes(&self) -> &'static str {
        match self.default {
            OptionValue::Flag(_) => "true or false",
            OptionValue::Count(_) => "a whole number",
            OptionValue::Bytes(_) => "a size, such as 64KiB",
        }
    }

    fn parse(&self, text: &str) -> Option<OptionValue> {
        match self.default {
            OptionValue::Flag(_) => text.parse().ok().map(OptionValue::Flag),
            OptionValue::Count(_) => text.parse().ok().map(OptionValue::Count),
            OptionValue::Bytes(_) => text.parse().ok().map(OptionValue::Bytes),
        }
    }
}

/// The options that a call sets for one pass; options without an entry have their defaults.
#[derive(Clone, Debug, Default)]
pub struct PassOptions(BTreeMap<&'static str, OptionValue>);

impl PassOptions {
    /// These options of the pass, each a name and a value.
    pub(crate) fn of(pass: &dyn Pass, given: &[(&str, &str)]) -> Result<PassOptions, PassError> {
        let mut options = PassOptions::default();
        let (called, declared) = (pass.name(), pass.options());
        for (name, text) in given {
            let refuse = |what: String| PassError::Call(format!("pass {called}{what}").into());
            let option = declared.iter().find(|option| option.name == *name).ok_or_else(|| {
                let instead = match declared {
                    [] => "it has none".to_owned(),
                    _ => words::instead(name, declared.iter().map(|option| option.name), "options"),
                };
                refuse(format!(" has no option `{name}`; {instead}"))
            })?;
            let value = option.parse(text).ok_or_else(|| {
                refuse(format!(": option `{name}` is `{text}`; it takes {}", option.takes()))
            })?;
            if options.0.insert(option.name, value).is_some() {
                return Err(refuse(format!(": option `{name}` is given twice")));
            }
        }
        Ok(options)
    }
}

/// Access to the options of the pass that runs.
impl PassCx {
    fn value(&self, option: &PassOption) -> OptionValue {
        self.pass_options.0.get(option.name).copied().unwrap_or(option.default)
    }

    /// Whether the option of the pass is on.
    ///
    /// # Panics
    /// If the option is not declared as a flag. `count` and `bytes` panic likewise for options of other kinds.
    pub(crate) fn flag(&self, option: &PassOption) -> bool {
        match self.value(option) {
            OptionValue::Flag(flag) => flag,
            other => panic!("option `{}` is {other:?}, not a flag", option.name),
        }
    }

    /// The value of the option, a number.
    pub fn count(&self, option: &PassOption) -> u64 {
        match self.value(option) {
            OptionValue::Count(count) => count,
            other => panic!("option `{}` is {other:?}, not a number", option.name),
        }
    }

    /// The value of the option, a size.
    pub fn bytes(&self, option: &PassOption) -> Bytes {
        match self.value(option) {
            OptionValue::Bytes(bytes) => bytes,
            other => panic!("option `{}` is {other:?}, not a size", option.name),
        }
    }
}

//! The planner that a call names, with its options in braces: `window{bytes=1GiB}`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use lmsc_ir::words;
use lmsc_passes::AnyPlanner;
use lmsc_plan::planners::Planner;
use lmsc_plan::planners::call::{CallOption, CallOptions, calls, parsed};

use crate::known::{PLANNERS, planners};
use crate::{Code, DEFAULT_PLANNER, Error};

/// A planner and the options that the call gives it. The default is the planner of calls that name none.
#[derive(Clone, Debug)]
pub struct PlannerCall {
    /// The planner.
    pub planner: AnyPlanner,
    /// The options.
    pub options: CallOptions,
}

impl Default for PlannerCall {
    fn default() -> PlannerCall {
        DEFAULT_PLANNER.parse().expect("it is registered")
    }
}

impl PlannerCall {
    /// The planner's name.
    pub fn name(&self) -> &'static str {
        self.planner.name()
    }

    /// The planner of plans without a graph.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind) for TFLMS, which needs one.
    pub(crate) fn of_problems(&self) -> Result<&'static Planner, Error> {
        self.planner.of_problems().ok_or_else(|| {
            let name = self.name();
            let message = format!("{name} rewrites a graph, and has no plan for its problem alone");
            Error::new(Code::Option, message).with_help(format!(
                "give --planner {name} to `lmsc MODEL`, or to `lmsc explain`; {name}-chain is the same rule for operators in a row",
            ))
        })
    }
}

/// `name{option=value,option=value}`, as the call has it.
impl fmt::Display for PlannerCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        if self.options.is_empty() { Ok(()) } else { write!(f, "{{{}}}", self.options) }
    }
}

impl FromStr for PlannerCall {
    type Err = String;

    fn from_str(text: &str) -> Result<PlannerCall, String> {
        let (name, given) = parsed(text).ok_or_else(|| {
            format!("`{text}` is not of the form PLANNER{{OPTION=VALUE,…}}, as in 'tflms{{lb=3,ub=40}}'")
        })?;
        let Some(planner) = PLANNERS.named(name) else {
            let names: Vec<&str> = planners().map(AnyPlanner::name).collect();
            let instead = match words::nearest(name, names.iter().copied()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("the planners are {}", names.join(", ")),
            };
            return Err(format!("there is no planner `{name}`; {instead}"));
        };
        let options = CallOptions::of("planner", planner.name(), planner.options(), &given)?;
        Ok(PlannerCall { planner, options })
    }
}

/// The planner that the text names, with its options.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind) for an unknown planner or option, and for a value that the option does not take.
pub(crate) fn called(text: &str) -> Result<PlannerCall, Error> {
    text.parse().map_err(|fault: String| Error::new(Code::Option, fault))
}

/// The planners of a list, separated by commas; `all` means all of plans without a graph but those that learn.
///
/// # Errors
/// As [`called`].
pub(crate) fn listed(texts: &[String]) -> Result<Vec<PlannerCall>, Error> {
    let mut found = Vec::new();
    for text in texts.iter().flat_map(|text| calls(text)) {
        match text.trim() {
            "all" => {
                let of_problems = planners().filter_map(AnyPlanner::of_problems);
                let all = of_problems.filter(|planner| !planner.learns);
                found.extend(all.map(|planner| called(planner.name).expect("it is registered")));
            }
            text => found.push(called(text)?),
        }
    }
    Ok(found)
}

/// A plan beside another one.
pub(crate) enum Other {
    /// That of a planner.
    Planner(PlannerCall),
    /// The one in a file.
    File(PathBuf),
}

/// The planners of a list, as [`listed`] has them, and files of plans, whose names have a slash or the ending `.json`.
///
/// # Errors
/// As [`called`].
pub(crate) fn others(texts: &[String]) -> Result<Vec<Other>, Error> {
    let mut found = Vec::new();
    for text in texts.iter().flat_map(|text| calls(text)).map(str::trim) {
        if text.contains('/') || text.ends_with(".json") {
            found.push(Other::File(text.into()));
        } else {
            found.extend(listed(&[text.to_owned()])?.into_iter().map(Other::Planner));
        }
    }
    Ok(found)
}

/// The description of the planner, and its own options; for `all`, a line for each planner.
///
/// # Errors
/// As [`called`].
pub(crate) fn described(name: &str) -> Result<String, Error> {
    if name == "all" {
        let line = |planner: AnyPlanner| format!("{:<11} {}\n", planner.name(), planner.summary());
        return Ok(planners().map(line).collect());
    }
    let planner = called(name)?.planner;
    let (name, options) = (planner.name(), planner.options());
    let mut text = format!("{name}: {}\n", planner.summary());
    let Some(first) = options.first() else {
        text += "\nIt has no options of its own; --effort sets its search effort.\n";
        return Ok(text);
    };
    text += &format!(
        "\nOptions, separated by commas, as in --planner '{name}{{{}={}}}':\n",
        first.name,
        example(first)
    );
    for option in options {
        text += &option.in_list();
    }
    if let Some(planner) = planner.of_graphs() {
        text += &format!("\n{}\n", planner.remark);
    }
    Ok(text)
}

/// A value that the option takes.
fn example(option: &CallOption) -> &'static str {
    if option.takes().starts_with("a size") { "1GiB" } else { "3" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_read_as_it_is_shown() {
        for text in
            ["auto", "tflms{incl-types=Relu,incl-types=Conv,lb=3}", "window{bytes=1GiB}", "dqn{seed=2}"]
        {
            assert_eq!(called(text).unwrap().to_string(), text);
        }
        assert_eq!(called("optimal").unwrap().name(), "swap-only");
        assert_eq!(PlannerCall::default().name(), DEFAULT_PLANNER);
    }

    #[test]
    fn wrong_calls_say_how_they_are_wrong() {
        for (text, said) in [
            ("tfmls", "did you mean `tflms`?"),
            ("auto{lb=3}", "planner auto has no option `lb`; it has none"),
            ("tflms{lb=x}", "planner tflms: option `lb` is `x`; it takes a whole number"),
            ("dqn{episodes}", "is not of the form PLANNER{OPTION=VALUE,…}"),
        ] {
            let error = called(text).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn planners_tell_their_options() {
        assert!(described("tflms").unwrap().contains("lb=…"));
        assert!(described("dqn").unwrap().contains("episodes=40"));
        assert!(described("auto").unwrap().contains("no options of its own"));
        assert_eq!(described("all").unwrap().lines().count(), planners().count());
        assert!(described("tfmls").unwrap_err().to_string().contains("did you mean `tflms`?"));
    }
}

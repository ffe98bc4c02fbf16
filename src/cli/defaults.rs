//! `lmsc.toml`: defaults of options, read from the current folder.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;

use clap::builder::{ArgPredicate, Resettable};
use lmsc_ir::words;
use toml::{Table, Value};

use crate::{Code, Error};

/// The name of the file.
pub(crate) const FILE: &str = "lmsc.toml";

/// The largest file that is read, in bytes. A larger one holds no defaults.
const LARGEST: u64 = 1 << 20;

/// The options that the file may set: they choose the machine and how to plan. Inputs and outputs belong to each
/// call.
const OPTIONS: [&str; 11] = [
    "addresses",
    "budget",
    "color",
    "deny",
    "device",
    "effort",
    "gpu",
    "host-budget",
    "planner",
    "profile",
    "target",
];

/// The option for a plan from a file.
const GIVEN_PLAN: &str = "plan";

/// Defaults of options, for all commands and for single commands.
#[derive(Debug, Default)]
pub(crate) struct Defaults(Table);

impl Defaults {
    /// The defaults of the file in the current folder; none if there is no file.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind) for a file that cannot be read, or that sets an option outside [`OPTIONS`].
    pub(crate) fn read(command: &clap::Command) -> Result<Defaults, Error> {
        let path = Path::new(FILE);
        // Before it is opened: opening a pipe waits.
        match path.metadata() {
            Ok(metadata) if !metadata.is_file() => {
                let help = "give it another name, or run lmsc in another folder";
                return Err(Error::in_file(Code::Malformed, path, "it is no regular file").with_help(help));
            }
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Defaults::default()),
            Err(error) => return Err(Error::reading(path, &error)),
        }
        let reading = |error| Error::reading(path, &error);
        let mut text = String::new();
        let file = std::fs::File::open(path).map_err(reading)?;
        file.take(LARGEST + 1).read_to_string(&mut text).map_err(reading)?;
        if text.len() as u64 > LARGEST {
            return Err(Error::in_file(Code::Malformed, path, format!("it has more than {LARGEST} bytes")));
        }
        Defaults::parse(&text, command)
    }

    fn parse(text: &str, command: &clap::Command) -> Result<Defaults, Error> {
        let wrong = |message: String| Error::in_file(Code::Malformed, Path::new(FILE), message);
        let table: Table = toml::from_str(text).map_err(|error| wrong(error.message().to_owned()))?;
        for (key, value) in &table {
            match value {
                Value::Table(of_command) => {
                    let Some(of) = command.find_subcommand(key) else {
                        let commands = command.get_subcommands().map(clap::Command::get_name);
                        let instead = words::instead(key, commands, "commands");
                        return Err(wrong(format!("there is no command `{key}`; {instead}")));
                    };
                    for (option, value) in of_command {
                        check(option, value).map_err(wrong)?;
                        if !of.get_arguments().any(|arg| names(arg).any(|name| name == option)) {
                            return Err(wrong(format!("the command `{key}` has no option `{option}`")));
                        }
                    }
                }
                value => check(key, value).map_err(wrong)?,
            }
        }
        Ok(Defaults(table))
    }

    /// A note that lists the options set for the named command, or for the main command; `None` if none is set.
    pub(crate) fn told(&self, command: Option<&str>) -> Option<String> {
        let of_command = command.and_then(|name| self.0.get(name)?.as_table());
        let all =
            self.0.iter().filter(|(_, value)| !value.is_table()).chain(of_command.into_iter().flatten());
        let keys: BTreeSet<&str> = all.map(|(key, _)| &**key).collect();
        (!keys.is_empty()).then(|| format!("{FILE} sets {}", Vec::from_iter(keys).join(", ")))
    }

    /// The clap command with these defaults.
    pub(crate) fn applied(&self, command: clap::Command) -> clap::Command {
        if self.0.is_empty() {
            return command;
        }
        let with = |command: clap::Command, of_command: Option<&Table>| {
            // A given plan has its own budget and planner.
            let has_plan = command.get_arguments().any(|arg| arg.get_id() == GIVEN_PLAN);
            command.mut_args(|arg| {
                let set = |name: &str| of_command.and_then(|of| of.get(name)).or_else(|| self.0.get(name));
                let value = names(&arg).find_map(set).and_then(text);
                match value {
                    Some(value) => {
                        let arg = arg.required(false).required_unless_present(Resettable::Reset);
                        if has_plan && arg.get_default_values().is_empty() {
                            arg.default_value_if(GIVEN_PLAN, ArgPredicate::IsPresent, None)
                                .default_value(value)
                        } else {
                            arg.default_value(value)
                        }
                    }
                    None => arg,
                }
            })
        };
        let names: Vec<String> = command.get_subcommands().map(|it| it.get_name().to_owned()).collect();
        let command = with(command, None);
        names.iter().fold(command, |command, name| {
            command.mut_subcommand(name, |it| with(it, self.0.get(name).and_then(Value::as_table)))
        })
    }
}

/// The names of an option.
fn names(arg: &clap::Arg) -> impl Iterator<Item = &str> {
    arg.get_long().into_iter().chain(arg.get_all_aliases().into_iter().flatten())
}

/// Checks that the file may set the option, and to a value of this type.
fn check(key: &str, value: &Value) -> Result<(), String> {
    if !OPTIONS.contains(&key) {
        let instead = words::instead(key, OPTIONS, "options that it may set");
        return Err(format!("it cannot set `{key}`; {instead}"));
    }
    match text(value) {
        Some(_) => Ok(()),
        None => Err(format!("`{key}` is {}; expected a text, a number or true", value.type_str())),
    }
}

/// The value as text, as in a call.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Boolean(flag) => Some(flag.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, FromArgMatches};

    use super::*;
    use crate::cli::args::{Cli, CliCommand};

    fn parsed(toml: &str, call: &str) -> Cli {
        let defaults = Defaults::parse(toml, &Cli::command()).unwrap();
        let mut matches = defaults.applied(Cli::command()).try_get_matches_from(call.split(' ')).unwrap();
        Cli::from_arg_matches_mut(&mut matches).unwrap()
    }

    #[test]
    fn defaults_hold_where_a_call_says_nothing_else() {
        let toml = "target = \"host\"\nbudget = \"1MiB\"\n[plan]\nbudget = \"2MiB\"\neffort = 7\n";
        let main = parsed(toml, "lmsc x.onnx").compile;
        assert_eq!(main.plan.machine.target.as_deref(), Some("host"));
        let Some(CliCommand::Plan(given)) = parsed(toml, "lmsc plan x.onnx --plan p.json").command else {
            panic!()
        };
        assert!(given.memory.is_none());
        assert_eq!(main.plan.search.planner.effort, None);
        let main = parsed(toml, "lmsc x.onnx --target t4").compile;
        assert_eq!(main.plan.machine.target.as_deref(), Some("t4"));
        let Some(CliCommand::Plan(plan)) = parsed(toml, "lmsc plan x.onnx").command else { panic!() };
        assert_eq!(
            (plan.search.planner.effort, plan.memory.map(|memory| memory.to_string())),
            (Some(7), Some("2 MiB".to_owned()))
        );
    }

    #[test]
    fn options_that_are_set_are_told() {
        let message = |toml, command| Defaults::parse(toml, &Cli::command()).unwrap().told(command);
        let toml = "target = \"host\"\n[plan]\nbudget = 1\n";
        assert_eq!(message(toml, None).as_deref(), Some("lmsc.toml sets target"));
        assert_eq!(message(toml, Some("plan")).as_deref(), Some("lmsc.toml sets budget, target"));
        assert_eq!(message("", Some("plan")), None);
    }

    #[test]
    fn an_option_that_defaults_may_not_set_is_named() {
        let message = |toml| Defaults::parse(toml, &Cli::command()).unwrap_err().to_string();
        assert!(message("output = \"x.onnx\"").contains("lmsc.toml: it cannot set `output`"));
        assert!(message("targt = \"host\"").contains("did you mean `target`?"));
        assert!(message("[plann]\neffort = 1").contains("did you mean `plan`?"));
        assert!(message("[verify]\nbudget = 1").contains("the command `verify` has no option `budget`"));
        assert!(message("budget = [1]").contains("`budget` is array"));
        assert!(message("budget = ").contains("lmsc.toml: "));
    }
}

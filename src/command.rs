//! The command `lmsc`: from words on a command line to what is printed and the exit code.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};
use lmsc_ir::words;

use crate::cli::{Cli, Command};
use crate::{Code, Error, run};

/// Runs the command with these arguments, of which the first is the program's name, and returns the exit code. Results go to
/// standard output, errors to standard error.
pub fn execute(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    lmsc_onnx::file::exit_on_truncation();
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let wants_json = arguments.iter().take_while(|word| *word != "--").any(|word| word == "--json");
    let cli = match parse(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // A closed standard error is nothing to die of.
            _ = error.print();
            if wants_json && error.use_stderr() {
                _ = writeln!(io::stdout(), "{}", misused(&error).to_json());
            }
            return u8::try_from(error.exit_code()).unwrap_or(2);
        }
    };
    // These compute as much as the model needs, once they know it; others only what is known before a step.
    if !matches!(cli.command, None | Some(Command::Run(_) | Command::Calibrate(_))) {
        lmsc_runtime::compute_here(1);
    }
    let mut out = io::stdout().lock();
    let result = answer(&cli, &mut out).and_then(|text| {
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            // Who reads us may have seen enough.
            Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(Error::writing(Path::new("-"), &e)),
            _ => Ok(()),
        }
    });
    match result {
        Ok(()) => 0,
        Err(error) => {
            match error.answer() {
                Some(answer) => _ = writeln!(out, "{answer}"),
                None => {
                    _ = writeln!(io::stderr(), "{}", said(&error));
                    if wants_json {
                        _ = writeln!(out, "{}", error.to_json());
                    }
                }
            }
            error.exit_code()
        }
    }
}

/// What standard error says of an error.
fn said(error: &Error) -> String {
    format!("lmsc: error[{}]: {error}", error.code().number())
}

/// What clap says of a call.
fn misused(error: &clap::Error) -> Error {
    let text = error.to_string();
    Error::new(Code::Option, text.strip_prefix("error: ").unwrap_or(&text).trim_end())
}

/// What the command with these arguments, of which the first is the program's name, would print to standard output. Warnings go
/// to standard error.
///
/// # Errors
/// [`Kind::Input`](crate::Kind) where there is no such command; else those of the command.
pub fn output_of(arguments: impl IntoIterator<Item = OsString>) -> Result<String, Error> {
    let cli = parse(arguments).map_err(|error| misused(&error))?;
    let mut out = Vec::new();
    let text = answer(&cli, &mut out)?;
    Ok(String::from_utf8_lossy(&out).into_owned() + &text)
}

/// The command line, or what is wrong with it, or the help that it asks for.
///
/// The first word is a model unless it is a command; so what follows a misspelt command is a second model, of which
/// clap says that it is a command that conflicts with the first.
fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let commands: Vec<String> =
        Cli::command().get_subcommands().map(|command| command.get_name().to_owned()).collect();
    let error = match Cli::try_parse_from(&arguments) {
        Ok(cli) => return if_command(cli, &commands),
        Err(error) => error,
    };
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(message) = negative(&arguments, &error)
    {
        return Err(Cli::command().error(ErrorKind::InvalidValue, message));
    }
    let Some(ContextValue::String(extra)) = error.get(ContextKind::InvalidSubcommand) else {
        return Err(error);
    };
    if error.kind() != ErrorKind::ArgumentConflict || commands.contains(extra) {
        return Err(error);
    }
    let first = arguments.get(1).map(|first| first.to_string_lossy().into_owned()).unwrap_or_default();
    let message = match words::nearest(&first, commands.iter().map(|c| &**c)) {
        Some(command) => format!("there is no command `{first}`; did you mean `{command}`?"),
        None => format!("unexpected argument '{extra}' found; one model is compiled at a time"),
    };
    Err(Cli::command().error(ErrorKind::UnknownArgument, message))
}

/// The command line, unless its model is a misspelt command: a plain word that is no file.
fn if_command(cli: Cli, commands: &[String]) -> Result<Cli, clap::Error> {
    if cli.command.is_some() {
        return Ok(cli);
    }
    let path = cli.compile.input.path();
    let word = path.to_str().filter(|word| word.bytes().all(|b| b.is_ascii_alphabetic() || b == b'-'));
    let Some(word) = word.filter(|_| path != Path::new("-") && !path.exists()) else { return Ok(cli) };
    let message = match words::nearest(word, commands.iter().map(|c| &**c)) {
        Some(command) => format!("there is no command `{word}`; did you mean `{command}`?"),
        None => format!("there is no command and no file `{word}`"),
    };
    Err(Cli::command().error(ErrorKind::UnknownArgument, message))
}

/// What is said of a negative number after an option, which clap takes for another option.
fn negative(arguments: &[OsString], error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(found)) = error.get(ContextKind::InvalidArg) else { return None };
    let is_found = |argument: &str| {
        argument.starts_with(&**found) && argument[1..].starts_with(|c: char| c.is_ascii_digit())
    };
    let arguments: Vec<&str> = arguments.iter().filter_map(|argument| argument.to_str()).collect();
    let at = arguments.iter().position(|argument| argument.starts_with('-') && is_found(argument))?;
    let option = arguments.get(at.checked_sub(1)?).filter(|before| before.starts_with("--"))?;
    Some(format!(
        "invalid value '{}' for '{option}': it is negative; sizes and counts are at least 0",
        arguments[at]
    ))
}

/// Does what the command line asks and returns what to print.
fn answer(cli: &Cli, out: &mut dyn Write) -> Result<String, Error> {
    match &cli.command {
        Some(Command::Check(args)) => crate::check_file(args),
        Some(Command::Env(args)) => crate::env(args, out).map(|()| String::new()),
        Some(Command::Explain(args)) => crate::explain(args),
        Some(Command::ExplainError { code }) => crate::explain_error(code.as_deref()),
        Some(Command::Fit(args)) => crate::fit(args),
        Some(Command::Inspect(args)) => crate::inspect(args),
        Some(Command::Launches(args)) => run::launches(args),
        Some(Command::Offsets(args)) => crate::offsets(args),
        Some(Command::Opt(args)) => crate::opt(args),
        Some(Command::Plan(args)) => crate::plan(args),
        Some(Command::Sweep(args)) => crate::sweep(args),
        Some(Command::Calibrate(args)) => run::calibrate(args),
        Some(Command::Run(args)) => run::run(args, out).map(|()| String::new()),
        Some(Command::Passes { json: false }) => Ok(crate::list_passes()),
        Some(Command::Passes { json: true }) => Ok(crate::passes_as_json()),
        Some(Command::Targets { name: None, json: false }) => Ok(crate::list_targets()),
        Some(Command::Targets { name, json: true }) => crate::targets_as_json(name.as_deref()),
        Some(Command::Targets { name: Some(name), json: false }) => crate::target(name),
        Some(Command::Verify(args)) => crate::verify(args),
        Some(Command::Completions { shell }) => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "lmsc", &mut script);
            Ok(String::from_utf8_lossy(&script).into_owned())
        }
        None => {
            let args = &cli.compile.for_run();
            let compiled = crate::compile(args, out)?;
            if args.run {
                run::run_compiled(args, &compiled, out)?;
                return Ok(String::new());
            }
            let report = &compiled.report;
            let model_on_stdout = args.output.as_deref() == Some(Path::new("-"));
            let text = match (model_on_stdout, args.json) {
                (true, _) => {
                    _ = io::stderr().write_all(report.to_text(args.verbose).as_bytes());
                    String::new()
                }
                (false, true) => serde_json::to_string_pretty(&report).expect("a report is JSON") + "\n",
                (false, false) => report.to_text(args.verbose),
            };
            // The process ends: the system takes the memory back faster than we could give it.
            std::mem::forget(compiled);
            Ok(text)
        }
    }
}

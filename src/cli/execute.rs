//! From the arguments to the output and the exit code.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ColorChoice, CommandFactory, FromArgMatches};
use lmsc_ir::words;

use super::args::{Cli, CliCommand};
use super::defaults::Defaults;
use super::files::CallFiles;
use super::help;
use crate::error::note;
use crate::{Code, Error, commands, term};

/// The exit code of the command with these arguments, of which the first is the program's name. Runs the command; results
/// go to standard output, errors to standard error.
pub fn execute(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    lmsc_onnx::file::exit_on_truncation();
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let wants_json = arguments.iter().take_while(|word| *word != "--").any(|word| word == "--json");
    if arguments.len() < 2 {
        _ = io::stderr().write_all(help::BRIEF.as_bytes());
        return 2;
    }
    if let Some(text) = help::planner_asked(&arguments).map(crate::planner::described) {
        return finish(text, &mut io::stdout().lock(), wants_json);
    }
    let command = Cli::command();
    let defaults = match Defaults::read(&command) {
        Ok(defaults) => defaults,
        Err(error) => return finish(Err(error), &mut io::stdout().lock(), wants_json),
    };
    let is_called = |name: &&str| arguments.iter().any(|argument| argument == name);
    let called = command.get_subcommands().map(clap::Command::get_name).find(is_called);
    let (cli, files) = match parse(arguments.clone(), &defaults) {
        Ok(parsed) => parsed,
        Err(error) => {
            // A closed standard error does not stop the command.
            _ = error.print();
            if wants_json && error.use_stderr() {
                _ = writeln!(io::stdout(), "{}", misused(&error).to_json());
            }
            return u8::try_from(error.exit_code()).unwrap_or(2);
        }
    };
    term::set(&cli.term.settings());
    if let Some(message) = defaults.told(called.filter(|_| cli.command.is_some())) {
        note(&message);
    }
    // These commands start threads for kernels once the model is read; the others evaluate only constants, on one
    // thread.
    if !matches!(
        cli.command,
        None | Some(CliCommand::Run(_) | CliCommand::Calibrate(_) | CliCommand::Compare(_))
    ) {
        lmsc_kernels::compute_here(1);
    }
    let mut out = io::stdout().lock();
    let result = files.check().and_then(|()| answer(&cli, &mut out));
    // The text of a graph is written as it is, unless a person reads it.
    let is_text = matches!(cli.command, Some(CliCommand::Opt(_) | CliCommand::Completions { .. }));
    let is_raw = is_text && !io::stdout().is_terminal();
    let result = result.map(|text| if is_raw { text } else { words::shown(&text).into_owned() });
    finish(result, &mut out, wants_json)
}

/// Prints the answer or the error, and returns the exit code. With `wants_json`, an error is also printed to standard
/// output, as JSON.
fn finish(result: Result<String, Error>, out: &mut dyn Write, wants_json: bool) -> u8 {
    let result = result.and_then(|text| {
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            // The reader of a pipe may have closed it.
            Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(Error::writing(Path::new("-"), &e)),
            _ => Ok(()),
        }
    });
    match result {
        Ok(()) => 0,
        Err(error) => {
            match error.answer() {
                Some(answer) => _ = writeln!(out, "{}", words::shown(answer)),
                None => {
                    _ = writeln!(io::stderr(), "{} {error}", term::error(error.code().number()));
                    if wants_json {
                        _ = writeln!(out, "{}", words::shown(&error.to_json()));
                    }
                }
            }
            error.exit_code()
        }
    }
}

/// The error of a call that clap rejects.
fn misused(error: &clap::Error) -> Error {
    let text = error.to_string();
    Error::new(Code::Option, text.strip_prefix("error: ").unwrap_or(&text).trim_end())
}

/// The text that the command with these arguments (the first is the program's name) prints to standard output.
/// Warnings go to standard error.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind) for an unknown command or option; otherwise the command's error.
pub fn output_of(arguments: impl IntoIterator<Item = OsString>) -> Result<String, Error> {
    // The result of a library call does not depend on the current folder.
    let (cli, files) = parse(arguments, &Defaults::default()).map_err(|error| misused(&error))?;
    files.check()?;
    let mut out = Vec::new();
    let text = answer(&cli, &mut out)?;
    Ok(String::from_utf8_lossy(&out).into_owned() + &text)
}

/// The parsed command line, and the files that it names; the error is a message for the user or the help text.
///
/// The first word is a model unless it is a command. The word after a misspelt command is therefore a second model,
/// which clap reports as a command that conflicts with the first.
fn parse(
    arguments: impl IntoIterator<Item = OsString>,
    defaults: &Defaults,
) -> Result<(Cli, CallFiles), clap::Error> {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    let commands: Vec<String> =
        Cli::command().get_subcommands().map(|command| command.get_name().to_owned()).collect();
    behind_command(&mut arguments, &commands);
    let parsed = defaults.applied(shaped(&arguments)).try_get_matches_from_mut(&arguments);
    let both = |mut matches: clap::ArgMatches| {
        let files = CallFiles::of(&matches);
        Ok((Cli::from_arg_matches_mut(&mut matches)?, files))
    };
    let error = match parsed.and_then(both) {
        Ok((cli, files)) => return Ok((if_command(cli, &commands)?, files)),
        Err(error) => without_value_tip(error),
    };
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(message) = negative(&arguments, &error)
    {
        return Err(shaped(&arguments).error(ErrorKind::InvalidValue, message));
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
    Err(shaped(&arguments).error(ErrorKind::UnknownArgument, message))
}

/// The error without the tip that an unknown option may be meant as a value, as a model's name; other tips stay.
fn without_value_tip(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::StyledStrs(mut tips)) = error.remove(ContextKind::Suggested) {
        tips.retain(|tip| !tip.to_string().contains("as a value"));
        if !tips.is_empty() {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
        }
    }
    error
}

/// The clap command for these arguments.
fn shaped(arguments: &[OsString]) -> clap::Command {
    let words = || arguments.iter().filter_map(|argument| argument.to_str());
    let color = match words().position(|word| word == "--color").and_then(|at| arguments.get(at + 1)) {
        Some(when) => when.to_str(),
        None => words().find_map(|word| word.strip_prefix("--color=")),
    };
    let color = match color {
        Some("always") => ColorChoice::Always,
        Some("never") => ColorChoice::Never,
        _ => ColorChoice::Auto,
    };
    help::command(words().any(|word| word == "-h"), color)
}

/// Moves options about messages from before a command to behind it, where clap accepts them: `lmsc -q plan`.
fn behind_command(arguments: &mut [OsString], commands: &[String]) {
    let is_of_messages = |argument: &OsString| {
        let word = argument.to_str().unwrap_or_default();
        ["-q", "-v", "-vv", "--quiet", "--verbose"].contains(&word) || word.starts_with("--color=")
    };
    let first = arguments.iter().skip(1).take_while(|argument| is_of_messages(argument)).count();
    let is_command =
        |argument: &OsString| argument.to_str().is_some_and(|it| commands.iter().any(|c| c == it));
    if arguments.get(1 + first).is_some_and(is_command) {
        arguments[1..=1 + first].rotate_right(1);
    }
}

/// The command line, unless its model looks like a misspelt command: a plain word that is not a file.
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
    Err(help::command(true, ColorChoice::Auto).error(ErrorKind::UnknownArgument, message))
}

/// The message for a negative number after an option, which clap takes for another option.
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

/// Runs the command and returns the text to print.
fn answer(cli: &Cli, out: &mut dyn Write) -> Result<String, Error> {
    match &cli.command {
        Some(CliCommand::Bench(args)) => commands::bench(args),
        Some(CliCommand::Check(args)) => commands::check_file(args),
        Some(CliCommand::Compare(args)) => commands::compare(args),
        #[cfg(feature = "papers")]
        Some(CliCommand::Env(args)) => commands::env(args, out).map(|()| String::new()),
        Some(CliCommand::Explain(args)) => commands::explain(args),
        Some(CliCommand::ExplainError { code }) => commands::explain_error(code.as_deref()),
        Some(CliCommand::Fit(args)) => commands::fit(args),
        Some(CliCommand::Inspect(args)) => commands::inspect(args),
        Some(CliCommand::Launches(args)) => commands::launches(args),
        Some(CliCommand::Offsets(args)) => commands::offsets(args),
        Some(CliCommand::Opt(args)) => commands::opt(args),
        Some(CliCommand::Reduce(args)) => commands::reduce(args),
        Some(CliCommand::Plan(args)) => commands::plan(args),
        Some(CliCommand::Sweep(args)) => commands::sweep(args),
        Some(CliCommand::Calibrate(args)) => commands::calibrate(args),
        Some(CliCommand::Run(args)) => commands::run(args, out).map(|()| String::new()),
        Some(CliCommand::Passes { json: false }) => Ok(commands::list_passes()),
        Some(CliCommand::Passes { json: true }) => Ok(commands::passes_as_json()),
        Some(CliCommand::Targets { name: None, json: false }) => Ok(crate::list_targets()),
        Some(CliCommand::Targets { name, json: true }) => crate::targets_as_json(name.as_deref()),
        Some(CliCommand::Targets { name: Some(name), json: false }) => crate::target(name),
        Some(CliCommand::Verify(args)) => commands::verify(args),
        Some(CliCommand::Man { folder }) => help::manual(folder),
        Some(CliCommand::Completions { shell }) => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "lmsc", &mut script);
            Ok(String::from_utf8_lossy(&script).into_owned())
        }
        None => {
            let args = &cli.compile.for_run();
            let compiled = commands::compile(args, out)?;
            if args.run {
                commands::run_compiled(args, &compiled, out)?;
                return Ok(String::new());
            }
            let report = &compiled.report;
            let model_on_stdout = args.output.as_deref() == Some(Path::new("-"));
            let text = match (model_on_stdout, args.json) {
                (true, _) => {
                    if !term::is_quiet() {
                        let text = report.to_text(term::verbosity() > 0);
                        _ = io::stderr().write_all(text.as_bytes());
                    }
                    String::new()
                }
                (false, true) => serde_json::to_string_pretty(&report).expect("a report is JSON") + "\n",
                (false, false) if term::is_quiet() => String::new(),
                (false, false) => report.to_text(term::verbosity() > 0),
            };
            // The process ends next, and the system frees the memory faster than drops do.
            std::mem::forget(compiled);
            Ok(text)
        }
    }
}

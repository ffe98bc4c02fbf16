//! `lmsc`, the Large Model Support compiler.

#![forbid(unsafe_code)]

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};
use lmsc::Error;
use lmsc::cli::{Cli, Command};
use lmsc_ir::words;

fn main() -> ExitCode {
    lmsc_onnx::file::exit_on_truncation();
    let cli = Cli::try_parse().unwrap_or_else(|error| exit_with(&error));
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
        Ok(()) => ExitCode::SUCCESS,
        Err(error @ Error::NoAsJson(_)) => {
            _ = writeln!(out, "{error}");
            ExitCode::from(error.exit_code())
        }
        Err(error) => {
            _ = writeln!(io::stderr(), "lmsc: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

/// Ends the process with what is wrong with the command line, or with the help that it asks for.
///
/// The first word is a model unless it is a command; so what follows a misspelt command is a second model, of which
/// clap says that it is a command that conflicts with the first.
fn exit_with(error: &clap::Error) -> ! {
    let Some(ContextValue::String(extra)) = error.get(ContextKind::InvalidSubcommand) else { error.exit() };
    let commands = || Cli::command().get_subcommands().map(|c| c.get_name().to_owned()).collect::<Vec<_>>();
    if error.kind() != ErrorKind::ArgumentConflict || commands().contains(extra) {
        error.exit();
    }
    let first = std::env::args().nth(1).unwrap_or_default();
    let commands = commands();
    let message = match words::nearest(&first, commands.iter().map(|c| &**c)) {
        Some(command) => format!("there is no command `{first}`; did you mean `{command}`?"),
        None => format!("unexpected argument '{extra}' found; one model is compiled at a time"),
    };
    Cli::command().error(ErrorKind::UnknownArgument, message).exit()
}

/// Does what the command line asks and returns what to print.
fn answer(cli: &Cli, out: &mut dyn Write) -> Result<String, Error> {
    match &cli.command {
        Some(Command::Check(args)) => lmsc::check_file(args),
        Some(Command::Env(args)) => lmsc::env(args, out).map(|()| String::new()),
        Some(Command::Explain(args)) => lmsc::explain(args),
        Some(Command::Inspect(args)) => lmsc::inspect(args),
        Some(Command::Launches(args)) => lmsc::run::launches(args),
        Some(Command::Offsets(args)) => lmsc::offsets(args),
        Some(Command::Opt(args)) => lmsc::opt(args),
        Some(Command::Plan(args)) => lmsc::plan(args),
        Some(Command::Sweep(args)) => lmsc::sweep(args),
        Some(Command::Calibrate(args)) => lmsc::run::calibrate(args),
        Some(Command::Run(args)) => lmsc::run::run(args, out).map(|()| String::new()),
        Some(Command::Passes) => Ok(lmsc::list_passes()),
        Some(Command::Targets { name: None }) => Ok(lmsc::list_targets()),
        Some(Command::Targets { name: Some(name) }) => lmsc::target(name),
        Some(Command::Verify(args)) => lmsc::verify(args),
        Some(Command::Completions { shell }) => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "lmsc", &mut script);
            Ok(String::from_utf8_lossy(&script).into_owned())
        }
        None => {
            let args = &cli.compile.for_run();
            let compiled = lmsc::compile(args, out)?;
            if args.run {
                lmsc::run::run_compiled(args, &compiled, out)?;
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

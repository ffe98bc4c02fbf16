//! `lmsc`, the Large Model Support compiler.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use lmsc::Error;
use lmsc::cli::{Cli, Command};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut out = io::stdout().lock();
    let result = answer(&cli, &mut out).and_then(|text| {
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            // Who reads us may have seen enough.
            Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
                Err(Error::Input(format!("standard output: {e}")))
            }
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

/// Does what the command line asks and returns what to print.
fn answer(cli: &Cli, out: &mut dyn Write) -> Result<String, Error> {
    match &cli.command {
        Some(Command::Inspect(args)) => lmsc::inspect(args),
        Some(Command::Opt(args)) => {
            let text = lmsc::opt(args)?;
            match &args.output {
                None => Ok(text),
                Some(path) => {
                    lmsc::write_atomically(path, |w| w.write_all(text.as_bytes())).map(|()| String::new())
                }
            }
        }
        Some(Command::Passes) => Ok(lmsc::list_passes()),
        Some(Command::Verify(args)) => lmsc::verify(args),
        Some(Command::Completions { shell }) => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "lmsc", &mut script);
            Ok(String::from_utf8_lossy(&script).into_owned())
        }
        None => {
            let args = &cli.compile;
            let compiled = lmsc::compile(args, out)?;
            let report = &compiled.report;
            let model_on_stdout = args.output.as_deref() == Some(std::path::Path::new("-"));
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

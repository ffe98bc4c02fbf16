//! The project's own chores: `cargo xtask ci` runs the steps of CI, `cargo xtask tidy` checks the rules that no
//! compiler checks.
//!
//! Depends on the standard library only, so that it builds in seconds on a fresh clone.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool prints")]

mod ci;
mod lex;
mod manifest;
mod tidy;

use std::path::Path;
use std::process::ExitCode;

/// The subcommands of `cargo xtask`.
const COMMANDS: &[&str] = &["ci", "tidy"];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.split_first() {
        Some((&"ci", arguments)) => ci_command(arguments),
        Some((&"tidy", [])) => tidy_command(),
        _ => {
            eprintln!("usage: cargo xtask <command>\n");
            eprintln!("  ci [--keep-going] [--jobs N] [--since REVISION] [STEP...]");
            eprintln!(
                "        run the steps of CI in their order, or only the named ones; print a table of their times"
            );
            eprintln!("        --keep-going  run the steps after a failed one, too");
            eprintln!(
                "        --since       run the long forms of steps whose folders have changed since, in place of the gate"
            );
            eprintln!(
                "        --jobs N      run up to N steps at a time and print the output of each when it ends"
            );
            eprintln!(
                "  tidy  check crate arrows, unsafe code, names of types, passes' tests and docs, files, wording"
            );
            eprintln!("\nsteps: {}", ci::STEPS.each_ref().map(|step| step.name).join(", "));
            ExitCode::from(2)
        }
    }
}

fn ci_command(arguments: &[&str]) -> ExitCode {
    match ci::Options::parse(arguments) {
        Ok(options) => ci::run(root(), &options),
        Err(message) => {
            eprintln!("ci: {message}");
            ExitCode::from(2)
        }
    }
}

fn tidy_command() -> ExitCode {
    let messages = tidy::check(&tidy::Tree::read(root()));
    for message in &messages {
        eprintln!("{message}");
    }
    if messages.is_empty() {
        println!("tidy: {} rules hold", tidy::RULES.len());
        ExitCode::SUCCESS
    } else {
        eprintln!("tidy: {} violations", messages.len());
        ExitCode::FAILURE
    }
}

/// The workspace's root folder.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace's root")
}

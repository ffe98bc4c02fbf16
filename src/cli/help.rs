//! The texts of `-h`, `--help`, `--help-planner` and the manual pages.

use std::ffi::OsString;
use std::path::Path;

use clap::{Args, ColorChoice, CommandFactory};

use crate::Error;
use crate::cli::args::{Cli, RunOptionArgs};
use crate::files::write_atomically;

/// The text for a call without arguments.
pub(crate) const BRIEF: &str = "\
lmsc fits the training step of an ONNX model into a device-memory budget.

  lmsc MODEL --budget 16GiB -o OUT.onnx        rewrite the model so that it needs no more memory
  lmsc fit MODEL                               find the GPUs and batch sizes that it fits
  lmsc inspect MODEL                           show its memory: peak, largest storages, curve
  lmsc sweep MODEL --budget 4GiB..16GiB        show its time as a function of memory
  lmsc explain MODEL --budget 8GiB --tensor T  explain one tensor's plan
  lmsc run OUT.onnx                            run steps of it on this machine
  lmsc verify MODEL OUT.onnx                   check that the two compute the same

An ONNX model with a symbolic batch needs its size: --dim batch=32.
More: lmsc -h, lmsc COMMAND -h, lmsc --help
";

/// The commands in groups, each with a short description.
const GROUPS: [(&str, &[(&str, &str)]); 4] = [
    (
        "Plan a training step",
        &[
            ("fit", "Find the GPUs and batch sizes that a model fits"),
            ("inspect", "Show phases, variables, the peak and the memory curve"),
            ("plan", "Show the plan of a model, and compare planners"),
            ("sweep", "Show time as a function of memory, over sizes and budgets"),
            ("explain", "Explain one tensor's plan: when, and why"),
            ("verify", "Check that two models compute the same"),
            ("check", "Check a plan, a schedule or a certificate"),
        ],
    ),
    (
        "Run it",
        &[
            ("run", "Run training steps on this machine, within the budget"),
            ("calibrate", "Measure operators and copies on this machine"),
            ("compare", "Find the first operator that computes something else"),
            ("launches", "List the calls of a step on a GPU, with their least times"),
        ],
    ),
    (
        "Work on passes and planners",
        &[
            ("opt", "Run passes, print the graph as text, or convert it"),
            ("passes", "List the passes"),
            ("reduce", "Reduce a graph to a small one for which a command fails"),
            ("targets", "List the built-in machines, or print one"),
            ("bench", "Rank planners, also programs of your own, on many instances"),
            ("offsets", "Give buffers with known lifetimes addresses"),
            #[cfg(feature = "papers")]
            ("env", "Let a program choose the swaps, in JSON lines"),
        ],
    ),
    (
        "Other",
        &[
            ("explain-error", "Explain an error's code, or list the codes"),
            ("completions", "Print a completion script for a shell"),
            ("man", "Write the manual pages to a folder"),
        ],
    ),
];

/// The options of the main command that `-h` shows, each with a short description.
const SHORT: [(&str, &str); 11] = [
    ("budget", "Device memory of the step: 16GiB, 90% of the card, 0.7x the peak"),
    ("output", "The output: .onnx, .lms (text), .mlir, or - for standard output"),
    ("optimizer", "The optimizer graph of onnxruntime-training, linked to the model"),
    ("dims", "The value of a symbolic dimension, such as batch=32"),
    ("target", "The machine that runs it, such as rtx4090 [default: a100-pcie4]"),
    ("planner", "The planner [default: auto]"),
    ("effort", "Search effort, in percent of the usual [default: 100]"),
    ("host_budget", "Host memory for swapped tensors"),
    ("report", "Write the report to this file, as .json"),
    ("json", "Print the report as JSON"),
    ("run", "Run steps of the result, too"),
];

/// The clap command, with commands in groups.
pub(crate) fn command(is_short: bool, color: ColorChoice) -> clap::Command {
    let commands: String =
        GROUPS.iter().map(|(group, commands)| format!("{group}:\n{}\n", lines(commands))).collect();
    let rest = if is_short { "Arguments:\n{positionals}\n\nOptions:\n{options}" } else { "{all-args}" };
    let template =
        format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{commands}{rest}{{after-help}}");
    let mut command = Cli::command()
        .color(color)
        .help_template(template)
        .override_usage("lmsc [OPTIONS] <MODEL>\n       lmsc <COMMAND>");
    let all: Vec<String> = command.get_arguments().map(|arg| arg.get_id().to_string()).collect();
    let of_run = options_of_run();
    // Options shared by all commands stay unchanged: a change here would change them for every command.
    for id in all.iter().filter(|id| !["model", "quiet", "verbose", "color"].contains(&id.as_str())) {
        let short = SHORT.iter().enumerate().find(|(_, (name, _))| name == id);
        command = command.mut_arg(id, |arg| match short {
            _ if of_run.contains(id) => arg.hide(true),
            Some((place, (_, words))) => {
                let long = arg.get_long_help().or(arg.get_help()).cloned().unwrap_or_default();
                let arg = arg.help(*words).long_help(long);
                if is_short { arg.display_order(place) } else { arg }
            }
            None => arg.hide_short_help(true),
        });
    }
    // The groups above list the commands.
    let names: Vec<String> = command.get_subcommands().map(|it| it.get_name().to_owned()).collect();
    for name in names {
        command = command.mut_subcommand(name, |it| it.hide(true));
    }
    command
}

/// The options of `lmsc run` that its own help explains, and the help of the main command does not.
fn options_of_run() -> Vec<String> {
    let all = RunOptionArgs::augment_args(clap::Command::new("run"));
    all.get_arguments().map(|arg| arg.get_id().to_string()).filter(|id| id != "steps").collect()
}

fn lines(commands: &[(&str, &str)]) -> String {
    commands.iter().map(|(name, words)| format!("  {name:<13} {words}\n")).collect()
}

/// The planner in `--help-planner`, if the call has that option.
pub(crate) fn planner_asked(arguments: &[OsString]) -> Option<&str> {
    const OPTION: &str = "--help-planner";
    let at =
        arguments.iter().position(|argument| argument.to_str().is_some_and(|it| it.starts_with(OPTION)))?;
    let rest = arguments[at].to_str()?.strip_prefix(OPTION)?;
    match rest.strip_prefix('=') {
        Some(name) => Some(name),
        None if rest.is_empty() => arguments.get(at + 1)?.to_str(),
        None => None,
    }
}

/// Writes the manual pages to a folder: one for the main command, and one for each other command.
///
/// # Errors
/// [`Kind::Input`](crate::Kind) if a file cannot be written.
pub(crate) fn manual(folder: &Path) -> Result<String, Error> {
    let pages = |command: clap::Command, name: String| {
        let mut page = Vec::new();
        let written = clap_mangen::Man::new(command).title(name.to_uppercase()).render(&mut page);
        written.map(|()| (format!("{name}.1"), page))
    };
    let mut root = Cli::command();
    root.build();
    let mut all = vec![pages(root.clone(), "lmsc".to_owned())];
    for command in root.get_subcommands().filter(|it| it.get_name() != "help" && !it.is_hide_set()) {
        let name = format!("lmsc-{}", command.get_name());
        all.push(pages(command.clone(), name));
    }
    std::fs::create_dir_all(folder).map_err(|e| Error::writing(folder, &e))?;
    let mut text = String::new();
    for page in all {
        let (name, page) = page.map_err(|e| Error::writing(folder, &e))?;
        let path = folder.join(name);
        write_atomically(&path, |w| w.write_all(&page))?;
        text += &format!("{}\n", path.display());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_stands_in_a_group() {
        let mut grouped: Vec<&str> =
            GROUPS.iter().flat_map(|(_, commands)| *commands).map(|(name, _)| *name).collect();
        grouped.sort_unstable();
        let command = Cli::command();
        let mut all: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        all.sort_unstable();
        assert_eq!(grouped, all);
    }

    #[test]
    fn options_are_those_that_there_are() {
        let command = Cli::command();
        let ids: Vec<&str> = command.get_arguments().map(|arg| arg.get_id().as_str()).collect();
        for (id, _) in &SHORT {
            assert!(ids.contains(id), "{id}");
        }
        command.debug_assert();
    }
}

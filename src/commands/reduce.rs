//! `lmsc reduce`: the smallest part of a graph for which a command fails in the same way.
//!
//! Parts are removed in halves, quarters and so on down to single ones, as in Zeller's delta debugging: nodes,
//! outputs, control edges, and inputs without readers; then extents are reduced. This is repeated until nothing
//! more can be removed. The order is fixed, so the result depends only on the graph and the command.

mod parts;

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lmsc_ir::{Graph, words};
use parts::Parts;

use crate::cli::args::ReduceArgs;
use crate::files::{check_not_read, check_target, write_atomically};
use crate::job::Binding;
use crate::load::{self, Purpose};
use crate::progress::Stage;
use crate::shell::{Ended, Folder, quoted, run};
use crate::{Code, Error, interrupt};

/// Reduces the graph and returns a summary; after each success, the file at `--output` has the smallest graph so
/// far.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind) if the command does not fail on the original graph;
/// [`ErrorKind::Interrupted`](crate::ErrorKind) if a signal ended the reduction.
pub fn reduce(args: &ReduceArgs) -> Result<String, Error> {
    let input = args.input.path();
    let output = args.output.clone().unwrap_or_else(|| input.with_extension("reduced.lms"));
    if output.extension().is_none_or(|extension| extension != "lms") {
        let message = format!("{}: graphs are reduced as text", output.display());
        return Err(Error::new(Code::Option, message).with_help("end the name of the output in .lms"));
    }
    check_not_read(&output, &args.input.input())?;
    check_target(&output)?;
    let whole = load::load(input, &args.input.binding.binding())?.graph;
    let folder = Folder::new("reduce")?;
    let candidate = folder.0.join("candidate.lms");
    let mut trial = Trial {
        whole: &whole,
        command: with_path(&args.failing, &candidate),
        candidate,
        wanted: None,
        limit: Duration::from_secs_f64(args.timeout),
        output: &output,
        stop: interrupt::listen(),
        stage: Stage::new(),
        runs: 0,
    };
    let mut parts = Parts::all(&whole);
    trial.start(&parts, input)?;
    let fewest = reduced(&mut parts, &mut trial)?;
    let count = |graph: &Graph| words::count(graph.order().len(), "node");
    let (was, is, runs) = (count(&whole), count(&fewest), words::count(trial.runs, "run"));
    trial.stage.done();
    Ok(format!("{was} -> {is}, in {runs} of the command\nwrote {}\n", output.display()))
}

/// Removes parts until nothing more can be removed; returns the remaining graph.
fn reduced(parts: &mut Parts, trial: &mut Trial<'_>) -> Result<Graph, Error> {
    loop {
        let nodes = without(parts, |parts| &mut parts.nodes, trial)?;
        let outputs = without(parts, |parts| &mut parts.outputs, trial)?;
        let edges = without(parts, |parts| &mut parts.edges, trial)?;
        let given = without(parts, |parts| &mut parts.given, trial)?;
        if !(nodes | outputs | edges | given | smaller_extents(parts, trial)?) {
            return Ok(parts.graph(trial.whole));
        }
    }
}

/// Removes items from one list of the parts, from its end on, in ever shorter runs. Returns whether any were
/// removed.
fn without<T>(
    parts: &mut Parts,
    list: fn(&mut Parts) -> &mut Vec<T>,
    trial: &mut Trial<'_>,
) -> Result<bool, Error> {
    let mut changed = false;
    let mut stretch = list(parts).len();
    while stretch > 0 {
        let mut end = list(parts).len();
        while end > 0 {
            let begin = end.saturating_sub(stretch);
            let mut fewer = parts.clone();
            list(&mut fewer).drain(begin..end);
            if trial.fails(&fewer)? {
                *parts = fewer;
                changed = true;
            }
            end = begin;
        }
        stretch /= 2;
    }
    Ok(changed)
}

/// Reduces extents wherever they occur, the largest first. Returns whether any were reduced.
fn smaller_extents(parts: &mut Parts, trial: &mut Trial<'_>) -> Result<bool, Error> {
    let mut changed = false;
    for (extent, now) in parts.extents(trial.whole) {
        let smaller = [1, 2, now / 4, now / 2];
        for to in smaller.into_iter().filter(|&to| 0 < to && to < now) {
            let mut other = parts.clone();
            other.resized.insert(extent, to);
            if trial.fails(&other)? {
                *parts = other;
                changed = true;
                break;
            }
        }
    }
    Ok(changed)
}

/// The command with the path in place of `{}`, or appended.
fn with_path(command: &str, path: &Path) -> String {
    let quoted = quoted(path);
    if command.contains("{}") { command.replace("{}", &quoted) } else { format!("{command} {quoted}") }
}

/// Runs the command on candidates.
struct Trial<'a> {
    whole: &'a Graph,
    /// A line of shell.
    command: String,
    /// The file that the command reads.
    candidate: PathBuf,
    /// The exit status of the command on the whole graph.
    wanted: Option<ExitStatus>,
    limit: Duration,
    output: &'a Path,
    /// Set by a signal.
    stop: Arc<AtomicBool>,
    stage: Stage,
    /// Number of runs of the command.
    runs: usize,
}

impl Trial<'_> {
    /// Records how the command fails on the whole graph.
    fn start(&mut self, parts: &Parts, input: &Path) -> Result<(), Error> {
        let text = parts.graph(self.whole).to_text();
        write_atomically(&self.candidate, |to| to.write_all(text.as_bytes()))?;
        let refuse = |why: String, help: &str| {
            Err(Error::new(Code::Option, format!("--failing: on {} {why}", input.display())).with_help(help))
        };
        match self.run()? {
            None => refuse(
                format!("the command ran for more than {} s", self.limit.as_secs_f64()),
                "give a longer --timeout, or a command that ends",
            ),
            Some(status) if status.success() => refuse(
                "the command succeeds, so there is no failure to keep".to_owned(),
                "give a command that fails there; it gets the path in place of {}, or at its end",
            ),
            Some(status) if matches!(status.code(), Some(126 | 127)) => refuse(
                "the command is not found, or cannot be run".to_owned(),
                "give a line of shell, for example --failing 'lmsc opt {} -p swap'",
            ),
            Some(status) => {
                self.wanted = Some(status);
                write_atomically(self.output, |to| to.write_all(text.as_bytes()))
            }
        }
    }

    /// Whether the command fails on these parts as on the whole graph; if so, they are written as the smallest
    /// graph so far.
    fn fails(&mut self, parts: &Parts) -> Result<bool, Error> {
        let graph = parts.graph(self.whole);
        let text = graph.to_text();
        write_atomically(&self.candidate, |to| to.write_all(text.as_bytes()))?;
        let is_valid = load::step(&self.candidate, None, &Binding::default(), Purpose::Rewrite).is_ok();
        let fails = is_valid && self.run()? == self.wanted;
        if fails {
            write_atomically(self.output, |to| to.write_all(text.as_bytes()))?;
            let (nodes, runs) = (words::count(graph.order().len(), "node"), words::count(self.runs, "run"));
            self.stage.show(format!("reducing: {nodes} after {runs}"));
        }
        Ok(fails)
    }

    /// The exit status of the command; `None` if it runs longer than the limit.
    fn run(&mut self) -> Result<Option<ExitStatus>, Error> {
        self.runs += 1;
        let failed = |e: std::io::Error| Error::new(Code::Option, format!("--failing: cannot run sh: {e}"));
        match run(&self.command, self.limit, &self.stop, Stdio::null()).map_err(failed)? {
            Ended::Exited(status) => Ok(Some(status)),
            Ended::Late => Ok(None),
            Ended::Stopped => Err(self.interrupted()),
        }
    }

    fn interrupted(&self) -> Error {
        let message = format!("reducing was ended after {}", words::count(self.runs, "run"));
        match self.wanted {
            Some(_) => Error::new(
                Code::Interrupted,
                format!("{message}; {} has the smallest graph so far", self.output.display()),
            ),
            None => Error::new(Code::Interrupted, message),
        }
    }
}

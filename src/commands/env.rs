//! `lmsc env`: planning as a learning environment for other programs, in JSON lines.

use std::io::{BufRead, Write};
use std::path::Path;

use lmsc_papers::env::{ActionKind, Env, State};
use lmsc_passes::PassCx;
use lmsc_plan::planners::trace::{self, Operation};
use lmsc_plan::planners::{DoesNotFit, Granularity, Request};
use lmsc_plan::saved::schedule;
use lmsc_plan::{Reach, Smallest};
use serde::{Deserialize, Serialize};

use super::plan::{Task, scheduler, too_much};
use crate::cli::args::EnvArgs;
use crate::files::write_atomically;
use crate::planner::PlannerCall;
use crate::{Code, Error};

/// A request of the program.
#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "lowercase", deny_unknown_fields)]
enum Ask {
    /// Starts another episode.
    Reset,
    /// Takes the node's action.
    Step { node: u32 },
    /// Returns the plan of the episode.
    Plan,
}

/// The first line: the problem.
#[derive(Serialize)]
struct Hello<'a> {
    format: &'static str,
    name: &'a str,
    memory_bytes: u64,
    compute_ns: u64,
    nodes: Vec<NodeFacts>,
    /// Edges as source, target and the time lag between them in nanoseconds.
    edges: Vec<(u32, u32, u64)>,
}

#[derive(Serialize)]
struct NodeFacts {
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    operation: Option<OperationFacts>,
    time_ns: u64,
    transfer_ns: u64,
    recompute_ns: u64,
    revisit_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<&'static str>,
}

#[derive(Serialize)]
struct OperationFacts {
    op: trace::Verb,
    variable: u32,
    bytes: u64,
}

/// The agent's current node and the cost of its last action.
#[derive(Serialize)]
struct Answer {
    current: u32,
    valid: Vec<u32>,
    reward_ns: i64,
    overhead_ns: u64,
    terminal: bool,
}

#[derive(Serialize)]
struct Complaint {
    error: String,
}

/// The error of an environment whose limit is too low.
fn does_not_fit(task: &Task, refused: &DoesNotFit) -> Error {
    let mut refusal = too_much(task, refused);
    let bytes = refusal.needed.unwrap_or_default();
    refusal.smallest.push(Smallest { bytes, reach: Reach::Tried });
    let help = format!("give --budget {}, the least with which everything can be swapped", bytes.0);
    refusal.with_help(help).into()
}

/// Answers JSON lines until the input ends; with `--trace`, writes the trace.
///
/// # Errors
/// [`ErrorKind::Refusal`](crate::ErrorKind) if the limit is too low; [`ErrorKind::Input`](crate::ErrorKind) for a faulty file.
pub fn env(args: &EnvArgs, out: &mut dyn Write) -> Result<(), Error> {
    let task = Task::of(&args.task, Some(args.memory), PassCx::default(), None)?;
    let problem = task.problem();
    if problem.has_lanes() {
        let message = format!(
            "{}: its operators run on several lanes, which episodes and traces do not know",
            task.name()
        );
        return Err(Error::new(Code::Option, message).with_help("plan it with `lmsc plan`"));
    }
    if let Some(path) = &args.trace {
        let lines = trace::to_lines(problem, task.name());
        if path == Path::new("-") {
            return write_line(out, lines.trim_end());
        }
        return write_atomically(path, |w| w.write_all(lines.as_bytes()));
    }
    let asked = task.question(PlannerCall::default().of_problems()?, true, args.recompute).request;
    let request = Request { granularity: Granularity::Whole, scheduler: scheduler(args.scheduler), ..asked };
    let mut env = Env::new(&request).map_err(|refused| does_not_fit(&task, &refused))?;
    write_json(out, &hello(&env, &request, task.name()))?;
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|e| Error::reading(Path::new("-"), &e))?;
        if line.trim().is_empty() {
            continue;
        }
        match answer(&mut env, &line) {
            Ok(answer) => write_line(out, &answer)?,
            Err(error) => write_json(out, &Complaint { error })?,
        }
    }
    Ok(())
}

/// The answer to a line, or the fault of the line.
fn answer(env: &mut Env, line: &str) -> Result<String, String> {
    let ask: Ask = serde_json::from_str(line).map_err(|why| why.to_string())?;
    let reward_ns = match ask {
        Ask::Reset => {
            env.reset();
            0
        }
        Ask::Step { node } => env.step(node).map_err(|why| why.to_string())?,
        Ask::Plan => {
            let plan = env.plan().ok_or("the episode is not over: something exceeds the limit still")?;
            return Ok(schedule::to_json(&plan, None).to_string());
        }
    };
    let state = env.state();
    let terminal = state.is_terminal();
    let State { current, valid } = state;
    let answer = Answer { current, valid, reward_ns, overhead_ns: env.overhead_nanos(), terminal };
    Ok(serde_json::to_string(&answer).expect("an answer is JSON"))
}

fn hello<'a>(env: &Env, request: &Request, name: &'a str) -> Hello<'a> {
    let nodes = env.nodes().iter().map(|node| NodeFacts {
        operation: node.operation.map(|Operation { verb, variable, bytes, .. }| OperationFacts {
            op: verb,
            variable,
            bytes,
        }),
        time_ns: node.nanos,
        transfer_ns: node.transfer_nanos,
        recompute_ns: node.recompute_nanos,
        revisit_ns: node.revisit_nanos,
        action: node.action.map(|action| match action.kind {
            ActionKind::Offload => "offload",
            ActionKind::Remove => "remove",
        }),
    });
    Hello {
        format: "lmsc-env-1",
        name,
        memory_bytes: request.budget,
        compute_ns: request.problem.compute_nanos(),
        nodes: nodes.collect(),
        edges: env.lags().iter().map(|lag| (lag.from, lag.to, lag.nanos)).collect(),
    }
}

fn write_json(out: &mut dyn Write, line: &impl Serialize) -> Result<(), Error> {
    write_line(out, &serde_json::to_string(line).expect("an answer is JSON"))
}

/// Writes a line and flushes it.
fn write_line(out: &mut dyn Write, line: &str) -> Result<(), Error> {
    match writeln!(out, "{line}").and_then(|()| out.flush()) {
        // The reader of a pipe may have closed it.
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(Error::writing(Path::new("-"), &e)),
        _ => Ok(()),
    }
}

//! The page that shows a step as simulated and as measured.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use lmsc_ir::program::{Action, Memory, Program, Stream, Until, residencies};
use lmsc_ir::{Graph, Name, NodeId, Phases};
use lmsc_runtime::{Event, Measurements};
use serde_json::{Value, json};

use super::report::{Prediction, Report};
use super::runner::Runner;
use super::trace::cause_name;

/// Start and end, in nanoseconds.
type Span = (u64, u64);

/// The data of the page: two timelines, the bytes in use in both, and the time of each node.
pub(crate) fn data(
    path: &Path,
    graph: &Graph,
    session: &Runner,
    measured: &Measurements,
    report: &Report,
    prediction: &Prediction,
) -> Value {
    let program = session.program();
    let window = typical(program, measured);
    let in_window = measured.events.iter().filter(|event| event.ended > window.0 && event.begun < window.1);
    let looked: Vec<&Event> = in_window.collect();
    let nanos = |time: Duration| time.saturating_sub(window.0).as_nanos() as u64;
    let phases = Phases::of(graph, |_| None);
    let node = |name: &str| graph.node_named(name);
    let phase = |name: &str| node(name).map_or_else(String::new, |id| phases.phase(id).to_string());
    let again = |name: &str| node(name).is_some_and(|id| graph.node(id).recomputes.is_some());

    let mut steps = Vec::new();
    let mut add = |lane: u32, action: &Action, (start, end): Span| {
        let Some(name) = action.node() else { return };
        let mut step = json!({ "lane": lane, "start": ms(start), "end": ms(end), "name": &**name });
        match action {
            Action::Copy(copy) => step["bytes"] = copy.bytes.into(),
            _ => (step["phase"], step["again"]) = (phase(name).into(), again(name).into()),
        }
        steps.push(step);
    };
    let simulated = |name: &Name| node(name).map(|id| span(prediction, id));
    for stream in Stream::ALL {
        for command in program.stream(stream) {
            if let Some(span) = command.action.node().and_then(simulated) {
                add(stream as u32, &command.action, span);
            }
        }
    }
    for event in &looked {
        let action = &program.stream(event.stream)[event.command as usize].action;
        add(4 + event.stream as u32, action, (nanos(event.begun), nanos(event.ended)));
    }
    steps.extend(simulated_stalls(graph, program, prediction));
    for event in looked.iter().filter(|event| event.stream == Stream::Compute) {
        let Some(cause) = event.cause else { continue };
        let action = &program.stream(event.stream)[event.command as usize].action;
        let who = action.node().map_or("the caller's turn", |name| name);
        let kind = match cause.stream {
            Stream::In => "copy_in",
            Stream::Out => "copy_out",
            Stream::Compute => "memory",
        };
        steps.push(json!({
            "lane": 7, "start": ms(nanos(event.waited)), "end": ms(nanos(event.begun)), "cause": kind,
            "name": format!("{who} waits for {}", cause_name(program, &cause)),
        }));
    }

    let mut live: Vec<(Duration, u64)> = looked.iter().map(|event| (event.begun, event.live)).collect();
    live.sort_unstable();
    let after = live.iter().map(|&(at, bytes)| json!([ms(nanos(at)), 0, bytes, 0, 0]));
    json!({
        "title": format!("{}: simulated and measured", path.display()),
        "subtitle": format!("the step of median length of {}", measured.steps.len()),
        "facts": report.facts(),
        "timelines": ["simulated", "measured"],
        "makespan_ms": ms(prediction.execution.makespan.max(nanos(window.1))),
        "budget_bytes": report.budget().map(|budget| budget.0),
        "memory": {
            "peak": measured.peak,
            "before": simulated_memory(graph, program, prediction),
            "after": after.collect::<Vec<_>>(),
        },
        "steps": steps,
        "nodes": nodes(graph, program, measured, prediction),
    })
}

/// Start and end of the step with the median time, from the start of the run.
fn typical(program: &Program, measured: &Measurements) -> (Duration, Duration) {
    let is_turn = |event: &&Event| {
        event.stream == Stream::Compute
            && program.stream(event.stream)[event.command as usize].action.is_turn()
    };
    let turns: Vec<Duration> = measured.events.iter().filter(is_turn).map(|event| event.begun).collect();
    let last = measured.events.iter().map(|event| event.ended).max().unwrap_or_default();
    let ends = turns.iter().skip(1).copied().chain([last]);
    let mut steps: Vec<(Duration, Duration)> = turns.iter().copied().zip(ends).collect();
    // The first step runs with cold memory and caches.
    if steps.len() > 1 {
        steps.remove(0);
    }
    steps.sort_by_key(|(start, end)| end.saturating_sub(*start));
    steps.get(steps.len() / 2).copied().unwrap_or_default()
}

fn span(prediction: &Prediction, id: NodeId) -> Span {
    let (index, execution) = (id.as_u32() as usize, &prediction.execution);
    (execution.start[index], execution.end[index])
}

/// The times at which nothing computes in the simulation, with the cause of each wait.
fn simulated_stalls(graph: &Graph, program: &Program, prediction: &Prediction) -> Vec<Value> {
    let mut stalls = Vec::new();
    let mut free = 0;
    for (_, launch) in program.launches() {
        let Some(id) = graph.node_named(&launch.node) else { continue };
        let (start, end) = span(prediction, id);
        let last = graph.predecessors(id).max_by_key(|&before| (span(prediction, before).1, before));
        if let Some(last) = last.filter(|_| start > free) {
            let op = &graph.node(last).op;
            let cause = match (op.is_swap_in(), op.is_swap_out()) {
                (true, _) => "copy_in",
                (_, true) => "copy_out",
                _ => "memory",
            };
            stalls.push(json!({
                "lane": 3, "start": ms(free), "end": ms(start), "cause": cause,
                "name": format!("{} waits for {}", launch.node, graph.node(last).name),
            }));
        }
        free = free.max(end);
    }
    stalls
}

/// The bytes in use in the simulation, where they change.
fn simulated_memory(graph: &Graph, program: &Program, prediction: &Prediction) -> Vec<Value> {
    let of = |stream: Stream, command: u32| {
        let action = &program.stream(stream)[command as usize].action;
        action.node().and_then(|name| graph.node_named(name)).map(|id| span(prediction, id))
    };
    let mut changes: BTreeMap<u64, i64> = BTreeMap::new();
    for residency in residencies(program).iter().filter(|residency| residency.memory == Memory::Arena) {
        let bytes = residency.bytes() as i64;
        let from = residency.from.and_then(|(stream, command)| of(stream, command));
        *changes.entry(from.map_or(0, |span| span.0)).or_default() += bytes;
        if residency.until == Until::Used {
            let users = Stream::ALL.into_iter().zip(&residency.last);
            let users = users.flat_map(|(stream, last)| last.iter().map(move |&command| (stream, command)));
            if let Some(end) = users.filter_map(|(stream, command)| of(stream, command)).map(|s| s.1).max() {
                *changes.entry(end).or_default() -= bytes;
            }
        }
    }
    let mut now = 0;
    changes
        .into_iter()
        .map(|(at, change)| {
            now += change;
            json!([ms(at), now])
        })
        .collect()
}

/// The time of each node, simulated and as the measured median, those with the largest difference first.
fn nodes(graph: &Graph, program: &Program, measured: &Measurements, prediction: &Prediction) -> Vec<Value> {
    let mut times: BTreeMap<(Stream, u32), Vec<Duration>> = BTreeMap::new();
    for event in &measured.events {
        let time = event.ended.saturating_sub(event.begun);
        times.entry((event.stream, event.command)).or_default().push(time);
    }
    let mut nodes = Vec::new();
    for ((stream, command), mut times) in times {
        let action = &program.stream(stream)[command as usize].action;
        let Some(id) = action.node().and_then(|name| graph.node_named(name)) else { continue };
        times.sort_unstable();
        let ((start, end), took) = (span(prediction, id), times[times.len() / 2].as_nanos() as u64);
        nodes.push(((end - start).abs_diff(took), id, end - start, took));
    }
    nodes.sort_by_key(|&(difference, id, ..)| (std::cmp::Reverse(difference), id));
    let row = |(_, id, simulated, took): (u64, NodeId, u64, u64)| {
        let node = graph.node(id);
        let (name, op) = (&*node.name, node.op.to_string());
        json!({ "name": name, "op": op, "simulated_ms": ms(simulated), "measured_ms": ms(took) })
    };
    nodes.into_iter().map(row).collect()
}

fn ms(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

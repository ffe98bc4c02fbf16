//! Shows a plan: as a self-contained HTML page, or as a trace for Perfetto.

mod picture;
mod stalls;
mod tensors;

use std::collections::BTreeMap;

use lmsc_ir::{Graph, Phase};
use lmsc_plan::Bridge;
use lmsc_plan::planners::Plan;
use lmsc_plan::problem::{COMPUTE, Problem, TensorId};
use lmsc_plan::schedule::{self, Flaw, Instruction};
use serde_json::{Map, Value, json};

pub(crate) use picture::picture;
pub(crate) use stalls::hiding_rate;
use stalls::{Cause, Stall, Waits};
pub(crate) use tensors::{Ladder, touched};

/// The names of operators and tensors.
pub(crate) trait Names {
    /// The name of the operator of a tick.
    fn op(&self, tick: u32) -> String;
    /// The name of the tensor.
    fn tensor(&self, tensor: TensorId) -> String;
    /// The reason why the tensor may not be swapped, if it may not.
    fn stays(&self, tensor: TensorId) -> Option<String>;
}

/// Names for a problem without names: kind and number.
pub(crate) struct Numbers<'a>(pub(crate) &'a Problem);

impl Names for Numbers<'_> {
    fn op(&self, tick: u32) -> String {
        let kind = self.0.ops[tick as usize].kind as usize;
        format!("{} {tick}", self.0.kinds.get(kind).map_or("operator", String::as_str))
    }

    fn tensor(&self, tensor: TensorId) -> String {
        tensor.to_string()
    }

    fn stays(&self, tensor: TensorId) -> Option<String> {
        (!self.0.tensors[tensor].swappable).then(|| "may not leave".to_owned())
    }
}

/// The names of a model's nodes and values.
pub(crate) struct OfModel {
    pub(crate) graph: Graph,
    pub(crate) bridge: Bridge,
}

impl Names for OfModel {
    fn op(&self, tick: u32) -> String {
        self.graph.node(self.bridge.nodes[tick as usize]).name.to_string()
    }

    fn tensor(&self, tensor: TensorId) -> String {
        self.graph.value(self.bridge.root(tensor)).name.to_string()
    }

    fn stays(&self, tensor: TensorId) -> Option<String> {
        self.bridge.stays[tensor].map(|stays| stays.describe(&self.graph))
    }
}

/// The page for these data, with the version and the call of this program at its foot. `report.html` reads the
/// data.
pub(crate) fn page(data: &Value) -> String {
    let mut data = data.clone();
    data["made_by"] = format!("lmsc {}", env!("CARGO_PKG_VERSION")).into();
    let call: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let is_ours = call.first().is_some_and(|program| program.rsplit('/').next() == Some("lmsc"));
    if is_ours {
        data["command"] = format!("lmsc {}", call[1..].join(" ")).into();
    }
    // The data are in a script element, which `</` would end, and in which `<!--<script` would hide its end.
    let text = data.to_string().replace('<', "\\u003c");
    include_str!("report.html").replacen("/*DATA*/", &text, 1)
}

/// The data of the page and the trace for a plan: times in milliseconds from the start of the step.
///
/// # Errors
/// A [`Flaw`], if the plan is not valid.
pub(crate) fn plan_data(
    problem: &Problem,
    plan: &Plan,
    names: &dyn Names,
    ladder: Option<&Ladder>,
) -> Result<Value, Flaw> {
    let held = schedule::held(&plan.problem, &plan.schedule)?;
    let stalls = stalls::stalls(plan);
    let waits = Waits::of(&stalls);
    let mut data = json!({
        "makespan_ms": ms(plan.schedule.makespan()),
        "memory": {
            "peak": schedule::check(&plan.problem, &plan.schedule, u64::MAX)?,
            "before": before(problem, plan),
            "after": after(plan, &held),
        },
        "waits": { "copy_in_ms": ms(waits.copy_in), "copy_out_ms": ms(waits.copy_out), "memory_ms": ms(waits.memory) },
        "steps": steps(plan, names, &stalls),
        "tensors": tensors::tensors(problem, plan, names, &stalls, ladder),
    });
    if plan.problem.has_lanes() {
        data["lanes"] = plan.problem.lanes[1..].iter().map(|lane| lane.name.as_str()).collect();
    }
    Ok(data)
}

/// The page's data for several planners' plans, one below the other: the memory over time, and the work of each
/// engine.
///
/// `names` has each name once. A step is `[lane, start, end, colour, name]`: times in milliseconds, the colour by
/// its name on the page, and the index of the name in `names`.
///
/// # Errors
/// A [`Flaw`], if a plan is not valid.
pub(crate) fn side_by_side(plans: &[(&str, &Plan)], names: &dyn Names) -> Result<Value, Flaw> {
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut rows = Vec::with_capacity(plans.len());
    for &(planner, plan) in plans {
        let held = schedule::held(&plan.problem, &plan.schedule)?;
        let total = |point: &Value| -> i64 { (1..=4).filter_map(|class| point[class].as_i64()).sum() };
        let memory: Vec<Value> =
            after(plan, &held).iter().map(|point| json!([point[0], total(point)])).collect();
        let mut compact = |step: &Value| {
            let next = places.len();
            let name = *places.entry(step["name"].as_str().unwrap_or_default().to_owned()).or_insert(next);
            let lane = step["lane"].as_u64().unwrap_or_default();
            let color = match lane {
                0 if step["again"] == true => &json!("again"),
                0 => &step["phase"],
                1 => &json!("out"),
                _ => &json!("in"),
            };
            json!([lane, step["start"], step["end"], color, name])
        };
        let all = steps(plan, names, &[]);
        let shown = all.iter().filter(|step| step["lane"].as_u64().is_some_and(|lane| lane < 3));
        let steps: Vec<Value> = shown.map(&mut compact).collect();
        rows.push(json!({
            "planner": planner, "makespan_ms": ms(plan.schedule.makespan()), "memory": memory, "steps": steps,
        }));
    }
    let mut names = vec![String::new(); places.len()];
    places.into_iter().for_each(|(name, place)| names[place] = name);
    Ok(json!({ "names": names, "plans": rows }))
}

/// A Chrome trace of [`plan_data`]: one thread per engine, the memory as a counter for each class of bytes, and an
/// arrow from each swap-out to the swap-ins of its copy.
pub(crate) fn trace(data: &Value) -> String {
    let mut lanes = vec![
        ("compute", "operator"),
        ("copies out", "swap-out"),
        ("copies in", "swap-in"),
        ("stalls", "stall"),
    ];
    let further = data["lanes"].as_array().into_iter().flatten();
    lanes.extend(further.filter_map(|name| Some((name.as_str()?, "operator"))));
    let micros = |v: &Value| v.as_f64().unwrap_or(0.0) * 1e3;
    let named = |kind: &str, tid: usize, name: &str| json!({"ph": "M", "pid": 0, "tid": tid, "name": kind, "args": {"name": name}});
    let mut events = vec![named("process_name", 0, "a training step, as planned")];
    for (lane, (name, _)) in lanes.iter().enumerate() {
        events.push(named("thread_name", lane, name));
        events.push(json!({"ph": "M", "pid": 0, "tid": lane, "name": "thread_sort_index", "args": {"sort_index": lane}}));
    }
    let steps = || data["steps"].as_array().into_iter().flatten();
    for step in steps() {
        let (start, end) = (micros(&step["start"]), micros(&step["end"]));
        let category = step["lane"].as_u64().and_then(|lane| lanes.get(lane as usize)).map(|lane| lane.1);
        let facts = ["bytes", "phase", "again", "cause"].map(|key| (key.to_owned(), step[key].clone()));
        let facts: Map<String, Value> = facts.into_iter().filter(|(_, fact)| !fact.is_null()).collect();
        events.push(json!({
            "ph": "X", "pid": 0, "tid": step["lane"], "ts": start, "dur": end - start, "cat": category,
            "name": step["name"], "args": facts,
        }));
    }
    let mut copies: Vec<&Value> = steps().filter(|step| step["lane"] == 1 || step["lane"] == 2).collect();
    copies.sort_by(|a, b| micros(&a["start"]).total_cmp(&micros(&b["start"])));
    let mut last_out = BTreeMap::new();
    let mut flow = |id: usize, out: &Value, back: &Value| {
        for (phase, step) in [("s", out), ("f", back)] {
            let at = (micros(&step["start"]) + micros(&step["end"])) / 2.0;
            events.push(json!({
                "ph": phase, "bp": "e", "pid": 0, "tid": step["lane"], "ts": at, "id": id, "cat": "swap", "name": "swap",
            }));
        }
    };
    for (id, step) in copies.into_iter().enumerate() {
        let name = step["name"].as_str().unwrap_or_default();
        if step["lane"] == 1 {
            last_out.insert(name, step);
        } else if let Some(out) = last_out.get(name) {
            flow(id, out, step);
        }
    }
    for point in data["memory"]["after"].as_array().into_iter().flatten() {
        events.push(json!({
            "ph": "C", "pid": 0, "ts": micros(&point[0]), "name": "device bytes",
            "args": {"variables": point[1], "activations": point[2], "gradients": point[3], "workspace": point[4]},
        }));
    }
    json!({ "displayTimeUnit": "ms", "traceEvents": events }).to_string()
}

/// The memory without swaps, at the times at which the plan runs the operators.
fn before(problem: &Problem, plan: &Plan) -> Vec<Value> {
    let live = problem.live_bytes();
    let mut ran = vec![false; live.len()];
    let mut points = Vec::new();
    for step in &plan.schedule.steps {
        if let Instruction::Op(tick) = step.instruction {
            let origin = plan.op_origin[tick as usize] as usize;
            if !std::mem::replace(&mut ran[origin], true) {
                points.push(json!([ms(step.start), live[origin]]));
            }
        }
    }
    points
}

/// The memory by class, where it changes: variables, activations, gradients, workspace.
fn after(plan: &Plan, held: &[schedule::Held]) -> Vec<Value> {
    let problem = &plan.problem;
    let mut class = vec![2usize; problem.tensors.len()];
    for (tensor, facts) in &problem.tensors {
        if facts.given {
            class[tensor.as_u32() as usize] = 0;
        }
    }
    for op in problem.ops.iter().filter(|op| op.phase == Phase::Forward) {
        op.produces.iter().for_each(|t| class[t.as_u32() as usize] = 1);
    }
    let mut changes: Vec<(schedule::EventTime, usize, i64)> = Vec::with_capacity(2 * held.len());
    for held in held.iter().filter(|held| held.bytes > 0) {
        let class = held.tensor.map_or(3, |t| class[t.as_u32() as usize]);
        changes.push((held.start, class, held.bytes as i64));
        changes.push((held.end, class, -(held.bytes as i64)));
    }
    changes.sort_unstable();
    let mut now = [0i64; 4];
    let mut points: Vec<Value> = Vec::new();
    for same in changes.chunk_by(|a, b| a.0.0 == b.0.0) {
        same.iter().for_each(|&(_, class, bytes)| now[class] += bytes);
        points.push(json!([ms(same[0].0.0), now[0], now[1], now[2], now[3]]));
    }
    points
}

/// The steps of each engine; the waits of the compute engine have their own lane.
fn steps(plan: &Plan, names: &dyn Names, stalls: &[Stall]) -> Vec<Value> {
    let mut ran = vec![false; plan.op_origin.iter().max().map_or(0, |&m| m as usize + 1)];
    let mut steps = Vec::with_capacity(plan.schedule.steps.len() + stalls.len());
    for step in &plan.schedule.steps {
        let (start, end) = (ms(step.start), ms(step.end));
        let piece = |lane: u32, piece| {
            let piece: &schedule::Piece = &plan.schedule.pieces[piece];
            let name = names.tensor(plan.tensor_origin[piece.tensor]);
            json!({"lane": lane, "start": start, "end": end, "name": name, "bytes": piece.len()})
        };
        match step.instruction {
            Instruction::Op(tick) => {
                let op = &plan.problem.ops[tick as usize];
                let origin = plan.op_origin[tick as usize];
                let name = names.op(origin);
                let again = std::mem::replace(&mut ran[origin as usize], true);
                let phase = op.phase.to_string();
                // Behind the stalls, further lanes of operators.
                let lane = if op.lane == COMPUTE { 0 } else { 3 + op.lane };
                steps.push(
                    json!({"lane": lane, "start": start, "end": end, "name": name, "phase": phase, "again": again}),
                );
            }
            Instruction::Out(p) => steps.push(piece(1, p)),
            Instruction::In(p) => steps.push(piece(2, p)),
        }
    }
    for stall in stalls {
        let who =
            stall.tick.map_or_else(|| "the end".to_owned(), |tick| names.op(plan.op_origin[tick as usize]));
        let what = match stall.cause {
            Cause::CopyIn => "a copy in",
            Cause::CopyOut => "a copy out",
            Cause::OtherLane => "another lane",
            Cause::Memory => "memory",
        };
        let name = format!("{who} waits for {what}");
        steps.push(json!({
            "lane": 3, "start": ms(stall.start), "end": ms(stall.end), "name": name, "cause": stall.cause,
        }));
    }
    steps
}

fn ms(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

//! A plan as one looks at it: a self-contained HTML page, or a trace for Perfetto.

use lmsc_ir::{Graph, Phase};
use lmsc_plan::Bridge;
use lmsc_plan::planners::Plan;
use lmsc_plan::problem::{Problem, TensorId};
use lmsc_plan::schedule::{self, Flaw, Instruction};
use serde_json::{Value, json};

/// What operators and tensors are called.
pub(crate) trait Names {
    /// The operator of a tick.
    fn op(&self, tick: u32) -> String;
    /// The tensor.
    fn tensor(&self, tensor: TensorId) -> String;
    /// Why the tensor may not leave, if it may not.
    fn stays(&self, tensor: TensorId) -> Option<String>;
}

/// Names for a problem that knows none: kind and number.
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

/// The page that shows these data: see `report.html` for what it reads.
pub(crate) fn page(data: &Value) -> String {
    // The data stand in a script element, which a `</` would end.
    let text = data.to_string().replace("</", "<\\/");
    include_str!("report.html").replacen("/*DATA*/", &text, 1)
}

/// What the page and the trace show of a plan: times in milliseconds from the start of the step.
///
/// # Errors
/// A [`Flaw`], if the plan is not valid.
pub(crate) fn plan_data(problem: &Problem, plan: &Plan, names: &dyn Names) -> Result<Value, Flaw> {
    let held = schedule::held(&plan.problem, &plan.schedule)?;
    Ok(json!({
        "makespan_ms": ms(plan.schedule.makespan()),
        "memory": {
            "peak": schedule::check(&plan.problem, &plan.schedule, u64::MAX)?,
            "before": before(problem, plan),
            "after": after(plan, &held),
        },
        "steps": steps(plan, names),
        "tensors": tensors(problem, plan, names),
    }))
}

/// A Chrome trace of [`plan_data`]: one lane an engine, and the memory as a counter.
pub(crate) fn trace(data: &Value) -> String {
    let lanes = ["compute", "out", "in", "stalls"];
    let micros = |v: &Value| v.as_f64().unwrap_or(0.0) * 1e3;
    let mut events: Vec<Value> = lanes
        .iter()
        .enumerate()
        .map(|(lane, name)| json!({"ph": "M", "pid": 0, "tid": lane, "name": "thread_name", "args": {"name": name}}))
        .collect();
    for step in data["steps"].as_array().into_iter().flatten() {
        let (start, end) = (micros(&step["start"]), micros(&step["end"]));
        events.push(json!({
            "ph": "X", "pid": 0, "tid": step["lane"], "ts": start, "dur": end - start,
            "name": step["name"], "args": {"bytes": step["bytes"]},
        }));
    }
    for point in data["memory"]["after"].as_array().into_iter().flatten() {
        events.push(json!({
            "ph": "C", "pid": 0, "ts": micros(&point[0]), "name": "device bytes",
            "args": {"variables": point[1], "activations": point[2], "gradients": point[3], "workspace": point[4]},
        }));
    }
    json!({ "displayTimeUnit": "ms", "traceEvents": events }).to_string()
}

/// The memory if nothing left, at the times at which the plan runs the operators.
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
    let mut changes: Vec<(schedule::At, usize, i64)> = Vec::with_capacity(2 * held.len());
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

/// What each engine does when; where the compute engine waits is a lane of its own.
fn steps(plan: &Plan, names: &dyn Names) -> Vec<Value> {
    let mut ran = vec![false; plan.op_origin.iter().max().map_or(0, |&m| m as usize + 1)];
    let mut free = 0;
    let mut steps = Vec::with_capacity(plan.schedule.steps.len());
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
                if step.start > free {
                    let name = format!("{name} waits");
                    steps.push(json!({"lane": 3, "start": ms(free), "end": start, "name": name}));
                }
                free = step.end;
                let again = std::mem::replace(&mut ran[origin as usize], true);
                let phase = op.phase.to_string();
                steps.push(
                    json!({"lane": 0, "start": start, "end": end, "name": name, "phase": phase, "again": again}),
                );
            }
            Instruction::Out(p) => steps.push(piece(1, p)),
            Instruction::In(p) => steps.push(piece(2, p)),
        }
    }
    steps
}

/// A row for every tensor: what happens to it, when, and why.
fn tensors(problem: &Problem, plan: &Plan, names: &dyn Names) -> Vec<Value> {
    #[derive(Default, Clone)]
    struct Row {
        out: Option<u64>,
        back: Option<u64>,
        slack: Option<u64>,
        moved: u64,
        times: u32,
        again: u32,
    }
    let mut rows = vec![Row::default(); problem.tensors.len()];
    let of = |tensor: TensorId| plan.tensor_origin[tensor].as_u32() as usize;
    let uses = plan.problem.uses();
    let mut starts = vec![0; plan.problem.ops.len()];
    for step in &plan.schedule.steps {
        if let Instruction::Op(tick) = step.instruction {
            starts[tick as usize] = step.start;
        }
    }
    for step in &plan.schedule.steps {
        match step.instruction {
            Instruction::Op(_) => {}
            Instruction::Out(piece) => {
                let piece = &plan.schedule.pieces[piece];
                let row = &mut rows[of(piece.tensor)];
                row.out = Some(row.out.map_or(step.start, |out| out.min(step.start)));
                row.moved += piece.len();
            }
            Instruction::In(piece) => {
                let tensor = plan.schedule.pieces[piece].tensor;
                let row = &mut rows[of(tensor)];
                row.times += 1;
                row.back = Some(row.back.map_or(step.end, |back| back.max(step.end)));
                let used = uses.of(tensor).iter().map(|&t| starts[t as usize]).find(|&s| s >= step.end);
                let slack = used.map(|used| used - step.end);
                row.slack = [row.slack, slack].into_iter().flatten().min();
            }
        }
    }
    let mut seen = vec![false; problem.tensors.len()];
    for op in &plan.problem.ops {
        for &tensor in &op.produces {
            if std::mem::replace(&mut seen[of(tensor)], true) {
                rows[of(tensor)].again += 1;
            }
        }
    }
    let windows = problem.windows(&problem.uses());
    let mut widest = vec![0; problem.tensors.len()];
    windows.iter().for_each(|w| widest[w.tensor.as_u32() as usize] += 1);
    let described =
        problem.tensors.iter().zip(&rows).zip(&widest).map(|(((tensor, facts), row), windows)| {
            let (decision, reason) = match row {
                Row { moved: 0, again: 0, times: 0, .. } => {
                    let reason = names.stays(tensor).unwrap_or_else(|| match windows {
                        0 => "used by the next operator throughout".to_owned(),
                        _ => "the budget holds without".to_owned(),
                    });
                    ("kept".to_owned(), reason)
                }
                Row { moved, again: 0, .. } if *moved >= facts.bytes => {
                    ("swapped".to_owned(), "the step does not fit without".to_owned())
                }
                Row { moved, again: 0, .. } => {
                    let share = 100.0 * *moved as f64 / facts.bytes as f64;
                    (format!("swapped {share:.0} %"), "the rest of it fits".to_owned())
                }
                Row { again, moved: 0, .. } => {
                    (format!("computed {} times", again + 1), "cheaper than copying it".to_owned())
                }
                Row { again, .. } => {
                    (format!("computed {} times, swapped", again + 1), "both, at different times".to_owned())
                }
            };
            json!({
                "name": names.tensor(tensor), "bytes": facts.bytes, "decision": decision, "reason": reason,
                "out_ms": row.out.map(ms), "in_ms": row.back.map(ms), "slack_ms": row.slack.map(ms),
            })
        });
    described.collect()
}

fn ms(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

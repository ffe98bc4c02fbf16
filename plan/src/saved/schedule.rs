//! Schedules as files: the instructions of a plan in their order, with their times, in JSON of the format `lmsc-schedule-1`.
//!
//! Operators and tensors have their numbers in the problem. Only a plan that recomputes operators needs more: then the file
//! has the plan's own tensors (`tensors`, each with its number in the problem) and the tensors that each run touches (`ops`),
//! as in a saved plan, and copies and addresses name a `version`, the plan's own tensor.

use std::collections::BTreeMap;

use lmsc_address::{Allocation, Spot};
use lmsc_schedule::problem::{Problem, TensorId};
use lmsc_schedule::{Edge, Instruction, Plan, Request};
use serde::{Deserialize, Serialize};

use super::file::{Does, OpFile, PlanFile, SpotFile, StepFile, known};
use super::{Durations, Head, SavedError, checked, format, json};
use crate::service::{Planned, Space};

/// The name of the format.
pub const FORMAT: &str = "lmsc-schedule-1";

#[derive(Serialize, Deserialize)]
struct File {
    format: String,
    steps: Vec<StepFacts>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    spots: Option<Vec<SpotFacts>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    edges: Option<Vec<(usize, usize)>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tensors: Option<Vec<u32>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ops: Option<Vec<OpFile>>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Verb {
    Op,
    Out,
    In,
}

#[derive(Serialize, Deserialize)]
#[serde(expecting = "a step with `do`, `start_ns` and `end_ns`")]
struct StepFacts {
    #[serde(rename = "do")]
    what: Verb,
    /// Number in the original problem: an operator that is recomputed keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    op: Option<u32>,
    #[serde(flatten)]
    copied: RangeFacts,
    start_ns: u64,
    end_ns: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(expecting = "a range or workspace with its `address`")]
struct SpotFacts {
    /// The index of the step; none for ranges that are resident at the start.
    from_step: Option<usize>,
    /// Empty for the workspace of the step.
    #[serde(flatten)]
    of: RangeFacts,
    address: u64,
}

/// A range of a tensor's bytes; no fields where there is none.
#[derive(Default, Serialize, Deserialize)]
struct RangeFacts {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tensor: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes: Option<[u64; 2]>,
}

/// The plan's instructions in its order with their times, as JSON; with addresses, if it has been placed, for each range from
/// the step on that allocates it, and the dependences of steps.
pub fn to_json(plan: &Plan, placed: Option<(&[Spot], &[Edge])>) -> serde_json::Value {
    let repeats = plan.tensor_origin.iter().any(|(tensor, origin)| tensor != *origin)
        || plan.op_origin.iter().zip(0..).any(|(op, tick)| *op != tick);
    let range = |tensor: TensorId, begin: u64, end: u64| {
        let origin = plan.tensor_origin[tensor];
        let version = (origin != tensor).then(|| tensor.as_u32());
        RangeFacts { tensor: Some(origin.as_u32()), version, bytes: Some([begin, end]) }
    };
    let steps = plan.schedule.steps.iter().map(|step| {
        let (what, op, piece) = match step.instruction {
            Instruction::Op(tick) => (Verb::Op, Some(plan.op_origin[tick as usize]), None),
            Instruction::Out(piece) => (Verb::Out, None, Some(piece)),
            Instruction::In(piece) => (Verb::In, None, Some(piece)),
        };
        let piece = piece.map(|p| &plan.schedule.pieces[p]);
        let copied = piece.map(|p| range(p.tensor, p.bytes.start, p.bytes.end)).unwrap_or_default();
        StepFacts { what, op, copied, start_ns: step.start, end_ns: step.end }
    });
    let spot = |spot: &Spot| {
        let of = match spot.run {
            Allocation::Workspace(_) => RangeFacts::default(),
            Allocation::Bytes { tensor, begin, end } => range(tensor, begin, end),
        };
        SpotFacts { from_step: spot.from, of, address: spot.address }
    };
    let ops = || plan.op_origin.iter().zip(&plan.problem.ops).map(|(&op, run)| OpFile::of(op, run)).collect();
    let file = File {
        format: FORMAT.to_owned(),
        steps: steps.collect(),
        spots: placed.map(|(spots, _)| spots.iter().map(spot).collect()),
        edges: placed.map(|(_, edges)| edges.iter().map(|edge| (edge.step, edge.before)).collect()),
        tensors: repeats.then(|| plan.tensor_origin.values().map(|t| t.as_u32()).collect()),
        ops: repeats.then(ops),
    };
    serde_json::to_value(&file).expect("a schedule is JSON")
}

/// Whether the text says that it is a schedule.
pub(super) fn is_schedule(text: &str) -> bool {
    format(text, "schedule", FORMAT).is_ok()
}

/// The question that the schedule in the text answers, by its own head.
pub(super) fn head(text: &str) -> Result<Head, SavedError> {
    #[derive(Deserialize)]
    struct HeadFile {
        #[serde(default)]
        spots: Option<serde::de::IgnoredAny>,
        /// Of a model: the names of its nodes in the planned order.
        #[serde(default)]
        nodes: Vec<String>,
    }
    let HeadFile { spots, nodes } = json(text, "schedule")?;
    let space = if spots.is_some() { Space::Arena } else { Space::Counted };
    Ok(Head { planner: String::new(), target: None, budget: None, space, nodes })
}

/// The plan of the schedule in the text, for the request's problem, if it is valid within the request's budget: with its
/// addresses, if it has them, or by counted bytes. Edges that do not keep it within the budget in every timing are completed.
///
/// # Errors
/// [`SavedError`].
pub fn parse(text: &str, request: &Request) -> Result<Planned, SavedError> {
    parse_timed(text, request, Durations::AsSaved).map(|(planned, _)| planned)
}

/// As [`parse`]; with the makespan in the text.
pub(super) fn parse_timed(
    text: &str,
    request: &Request,
    times: Durations,
) -> Result<(Planned, u64), SavedError> {
    format(text, "schedule", FORMAT)?;
    let file: File = json(text, "schedule")?;
    let space = if file.spots.is_some() { Space::Arena } else { Space::Counted };
    let (plan, edges, spots) = file.plan(request.problem)?.parts(request.problem)?;
    let saved_nanos = plan.schedule.makespan();
    Ok((checked(plan, edges, spots, space, request, times)?, saved_nanos))
}

impl File {
    /// The file with the numbers of a plan.
    fn plan(self, problem: &Problem) -> Result<PlanFile, SavedError> {
        let ops = match self.ops {
            Some(ops) => ops,
            None => {
                let runs = || self.steps.iter().filter_map(|step| step.op);
                if let Some((again, _)) = runs().zip(0..).find(|(op, tick)| op < tick) {
                    return Err(SavedError::Versions(again));
                }
                problem.ops.iter().zip(0..).map(|(op, tick)| OpFile::of(tick, op)).collect()
            }
        };
        let tensors = self.tensors.unwrap_or_else(|| (0..problem.tensors.len() as u32).collect());
        // The plan's own tensor, and the range of its bytes.
        let of_plan = |range: &RangeFacts| {
            let origin = range.tensor.ok_or(SavedError::Unknown { what: "tensor", number: u64::MAX })?;
            let tensor = range.version.unwrap_or(origin);
            let [begin, end] = range.bytes.unwrap_or_default();
            match tensors.get(tensor as usize) {
                Some(of) if *of == origin => Ok((tensor, begin, end)),
                _ => Err(SavedError::Unknown { what: "tensor", number: tensor.into() }),
            }
        };
        let mut numbers: BTreeMap<(u32, u64, u64), u32> = BTreeMap::new();
        let mut pieces: Vec<(u32, u64, u64)> = Vec::new();
        let mut steps = Vec::with_capacity(self.steps.len());
        // For each step, its operator.
        let mut ticks: Vec<Option<u32>> = Vec::with_capacity(self.steps.len());
        let mut next = 0;
        for step in &self.steps {
            let mut piece = || {
                let bytes = of_plan(&step.copied)?;
                Ok(*numbers.entry(bytes).or_insert_with(|| {
                    pieces.push(bytes);
                    pieces.len() as u32 - 1
                }))
            };
            let does = match step.what {
                Verb::Op => Does::Op(next),
                Verb::Out => Does::Out(piece()?),
                Verb::In => Does::In(piece()?),
            };
            let tick = matches!(step.what, Verb::Op).then_some(next);
            if let Some(tick) = tick {
                known("operator", tick.into(), ops.len())?;
                match step.op {
                    Some(op) if op == ops[tick as usize].op => {}
                    other => return Err(SavedError::Order(other.unwrap_or(tick))),
                }
                next += 1;
            }
            ticks.push(tick);
            steps.push(StepFile { does, start_ns: step.start_ns, end_ns: step.end_ns });
        }
        let spot = |spot: SpotFacts| {
            let nothing =
                SavedError::Unknown { what: "workspace of step", number: spot.from_step.unwrap_or(0) as u64 };
            let (workspace_of, bytes) = match (spot.of.tensor, spot.of.bytes) {
                (None, None) => {
                    let tick = spot.from_step.and_then(|step| ticks.get(step).copied().flatten());
                    (Some(tick.ok_or(nothing)?), None)
                }
                _ => (None, Some(of_plan(&spot.of)?)),
            };
            Ok(SpotFile { from_step: spot.from_step, workspace_of, bytes, address: spot.address })
        };
        let spots =
            self.spots.unwrap_or_default().into_iter().map(spot).collect::<Result<_, SavedError>>()?;
        Ok(PlanFile { ops, pieces, steps, edges: self.edges.unwrap_or_default(), spots, tensors })
    }
}

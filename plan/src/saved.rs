//! Plans as files: JSON of the format `lmsc-plan-1`, which holds all that carrying out a plan needs besides its problem.

use cranelift_entity::{EntityRef, PrimaryMap};
use serde::{Deserialize, Serialize};

use crate::address::{self, Arena, Placed, Run, Spot};
use crate::planners::{Plan, Request};
use crate::problem::{Problem, TensorId};
use crate::schedule::{self, Edge, Instruction, Noise, Piece, PieceId, Replay, Room, Schedule, Step};
use crate::service::{Planned, Space};

/// The name of the format.
const FORMAT: &str = "lmsc-plan-1";

/// A plan with the question that it answers.
#[derive(Clone, Debug)]
pub struct Saved {
    /// The name of the planner that made it.
    pub planner: String,
    /// The device bytes that it was made for.
    pub budget: u64,
    /// The plan.
    pub planned: Planned,
}

/// Why a file is not a plan of the problem.
#[derive(Debug, thiserror::Error)]
pub enum SavedError {
    /// It is not JSON of the format.
    #[error("it is not a plan: {0}")]
    Json(#[from] serde_json::Error),
    /// It is of another format.
    #[error("it is of the format `{0}`, and not {FORMAT}")]
    Format(String),
    /// A number in it names nothing.
    #[error("{what} {number} is not there")]
    Unknown {
        /// The kind of thing that is named.
        what: &'static str,
        /// Its number.
        number: u64,
    },
    /// The plan is of another problem.
    #[error(
        "operator {op} touches other tensors than in the model: it is the plan of another model, of other sizes or of another order"
    )]
    Other {
        /// The operator, by its place in the problem.
        op: u32,
    },
    /// It runs not every operator.
    #[error("operator {0} does not run")]
    Missing(u32),
    /// It is not valid within its budget.
    #[error("it is not valid: {0}")]
    Flaw(String),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: String,
    planner: String,
    budget_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    page_bytes: Option<u64>,
    counted_ns: u64,
    ops: Vec<OpFile>,
    tensors: Vec<u32>,
    pieces: Vec<(u32, u64, u64)>,
    steps: Vec<StepFile>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    edges: Vec<(usize, usize)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    spots: Vec<SpotFile>,
}

/// An operator that runs: its place in the problem, and the plan's tensors that this run touches.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OpFile {
    op: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    reads: Vec<u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    produces: Vec<u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    changes: Vec<u32>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum Does {
    Op(u32),
    Out(u32),
    In(u32),
}

#[derive(Serialize, Deserialize)]
struct StepFile {
    #[serde(flatten)]
    does: Does,
    start_ns: u64,
    end_ns: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SpotFile {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from_step: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    workspace_of: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes: Option<(u32, u64, u64)>,
    address: u64,
}

impl Saved {
    /// The file.
    pub fn to_json(&self) -> String {
        let Planned { plan, edges, spots, space, counted_nanos, .. } = &self.planned;
        let numbers = |tensors: &[TensorId]| tensors.iter().map(|t| t.as_u32()).collect();
        let op = |(&op, run): (&u32, &crate::problem::Op)| OpFile {
            op,
            reads: numbers(&run.reads),
            produces: numbers(&run.produces),
            changes: numbers(&run.changes),
        };
        let step = |step: &Step| StepFile {
            does: match step.instruction {
                Instruction::Op(tick) => Does::Op(tick),
                Instruction::Out(piece) => Does::Out(piece.as_u32()),
                Instruction::In(piece) => Does::In(piece.as_u32()),
            },
            start_ns: step.start,
            end_ns: step.end,
        };
        let spot = |spot: &Spot| {
            let (workspace_of, bytes) = match spot.run {
                Run::Workspace(tick) => (Some(tick), None),
                Run::Bytes { tensor, begin, end } => (None, Some((tensor.as_u32(), begin, end))),
            };
            SpotFile { from_step: spot.from, workspace_of, bytes, address: spot.address }
        };
        let file = File {
            format: FORMAT.to_owned(),
            planner: self.planner.clone(),
            budget_bytes: self.budget,
            page_bytes: if let Space::Pages(page) = space { Some(*page) } else { None },
            counted_ns: *counted_nanos,
            ops: plan.op_origin.iter().zip(&plan.problem.ops).map(op).collect(),
            tensors: plan.tensor_origin.values().map(|t| t.as_u32()).collect(),
            pieces: plan
                .schedule
                .pieces
                .values()
                .map(|p| (p.tensor.as_u32(), p.bytes.start, p.bytes.end))
                .collect(),
            steps: plan.schedule.steps.iter().map(step).collect(),
            edges: edges.iter().map(|edge| (edge.step, edge.before)).collect(),
            spots: spots.iter().map(spot).collect(),
        };
        serde_json::to_string(&file).expect("a plan is JSON") + "\n"
    }

    /// The plan that the text holds, of this problem, checked; `alignment` is that of addresses.
    ///
    /// Where the problem's times are not those that the plan was made for, its steps get the times that they have now.
    ///
    /// # Errors
    /// [`SavedError`] where the text is no plan of the problem, or a plan that is not valid within its budget.
    pub fn parse(text: &str, problem: &Problem, alignment: u64) -> Result<Saved, SavedError> {
        #[derive(Deserialize)]
        struct Header {
            format: Option<String>,
        }
        let header: Header = serde_json::from_str(text)?;
        match header.format {
            Some(format) if format == FORMAT => {}
            other => return Err(SavedError::Format(other.unwrap_or_default())),
        }
        let file: File = serde_json::from_str(text)?;
        let plan = file.plan(problem)?;
        let edges = file.edges(plan.schedule.steps.len())?;
        let spots = file.spots.iter().map(|spot| file.spot(spot)).collect::<Result<Vec<Spot>, _>>()?;
        let flaw = |flaw: &dyn std::fmt::Display| SavedError::Flaw(flaw.to_string());
        let budget = file.budget_bytes;
        // Nothing below is asked of steps that make no sense.
        schedule::check_however_long(&plan.problem, &plan.schedule, u64::MAX).map_err(|e| flaw(&e))?;
        let edges = match edges.is_empty() && spots.is_empty() {
            true => {
                schedule::edges(&plan.problem, &plan.schedule, Room::Counted(budget)).map_err(|e| flaw(&e))?
            }
            false => edges,
        };
        let plan = match schedule::check(&plan.problem, &plan.schedule, budget) {
            Ok(_) => plan,
            Err(_) => {
                let schedule = Replay::new(&plan.problem, &plan.schedule, &edges).run(Noise::default(), 0);
                Plan { schedule, ..plan }
            }
        };
        let space = match (file.page_bytes, spots.is_empty()) {
            (Some(page), _) => Space::Pages(page),
            (None, true) => Space::Counted,
            (None, false) => Space::Arena,
        };
        let peak = schedule::check(&plan.problem, &plan.schedule, budget).map_err(|e| flaw(&e))?;
        let (plan, spots, edges) = match space {
            Space::Arena => {
                let placed = Placed { plan, spots, edges };
                let request = Request { alignment, ..Request::new(problem, budget) };
                address::check(&placed, Arena::of(&request)).map_err(|e| flaw(&e))?;
                (placed.plan, placed.spots, placed.edges)
            }
            Space::Counted | Space::Pages(_) => (plan, spots, edges),
        };
        let planned = Planned { plan, edges, spots, space, peak, counted_nanos: file.counted_ns };
        Ok(Saved { planner: file.planner, budget, planned })
    }
}

/// Whether `number` is the index of one of so many.
fn known(what: &'static str, number: u64, count: usize) -> Result<(), SavedError> {
    if (number as usize) < count { Ok(()) } else { Err(SavedError::Unknown { what, number }) }
}

impl File {
    fn plan(&self, problem: &Problem) -> Result<Plan, SavedError> {
        let mut tensors = PrimaryMap::new();
        let mut tensor_origin: PrimaryMap<TensorId, TensorId> = PrimaryMap::new();
        for &origin in &self.tensors {
            known("tensor", origin.into(), problem.tensors.len())?;
            let origin = TensorId::from_u32(origin);
            tensors.push(problem.tensors[origin]);
            tensor_origin.push(origin);
        }
        let mut ops = Vec::with_capacity(self.ops.len());
        let mut runs = vec![false; problem.ops.len()];
        for run in &self.ops {
            known("operator", run.op.into(), problem.ops.len())?;
            let source = &problem.ops[run.op as usize];
            let first = !std::mem::replace(&mut runs[run.op as usize], true);
            let of = |numbers: &[u32], source: &[TensorId]| {
                let mut list = Vec::with_capacity(numbers.len());
                for &number in numbers {
                    known("tensor", number.into(), self.tensors.len())?;
                    list.push(TensorId::from_u32(number));
                }
                let mut origins: Vec<TensorId> = list.iter().map(|&t| tensor_origin[t]).collect();
                let mut source = source.to_vec();
                origins.sort_unstable();
                source.sort_unstable();
                // An operator that runs again may read and produce less than in its first run: running statistics are updated once.
                let is_known =
                    if first { origins == source } else { origins.iter().all(|t| source.contains(t)) };
                if is_known { Ok(list) } else { Err(SavedError::Other { op: run.op }) }
            };
            let (reads, produces) = (of(&run.reads, &source.reads)?, of(&run.produces, &source.produces)?);
            let changes = of(&run.changes, &source.changes)?;
            ops.push(crate::problem::Op { reads, produces, changes, ..source.clone() });
        }
        if let Some(missing) = runs.iter().position(|runs| !runs) {
            return Err(SavedError::Missing(missing as u32));
        }
        let executed = Problem { ops, tensors, ..problem.clone() };
        let op_origin = self.ops.iter().map(|run| run.op).collect();
        Ok(Plan { schedule: self.schedule()?, problem: executed, op_origin, tensor_origin })
    }

    fn schedule(&self) -> Result<Schedule, SavedError> {
        let mut pieces: PrimaryMap<PieceId, Piece> = PrimaryMap::new();
        for &(tensor, start, end) in &self.pieces {
            known("tensor", tensor.into(), self.tensors.len())?;
            if start >= end {
                return Err(SavedError::Unknown { what: "byte", number: start });
            }
            pieces.push(Piece { tensor: TensorId::from_u32(tensor), bytes: start..end });
        }
        let mut steps = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let piece = |number: u32| {
                known("piece", number.into(), pieces.len()).map(|()| PieceId::new(number as usize))
            };
            let instruction = match step.does {
                Does::Op(tick) => {
                    known("operator", tick.into(), self.ops.len())?;
                    Instruction::Op(tick)
                }
                Does::Out(number) => Instruction::Out(piece(number)?),
                Does::In(number) => Instruction::In(piece(number)?),
            };
            steps.push(Step { instruction, start: step.start_ns, end: step.end_ns });
        }
        Ok(Schedule { pieces, steps })
    }

    fn edges(&self, steps: usize) -> Result<Vec<Edge>, SavedError> {
        let edge = |&(step, before): &(usize, usize)| {
            known("step", step as u64, steps)?;
            known("step before", before as u64, step)?;
            Ok(Edge { step, before })
        };
        let mut edges = self.edges.iter().map(edge).collect::<Result<Vec<Edge>, SavedError>>()?;
        edges.sort_unstable();
        Ok(edges)
    }

    fn spot(&self, spot: &SpotFile) -> Result<Spot, SavedError> {
        if let Some(from) = spot.from_step {
            known("step", from as u64, self.steps.len())?;
        }
        let run = match (spot.workspace_of, spot.bytes) {
            (Some(tick), None) => {
                known("operator", tick.into(), self.ops.len())?;
                Run::Workspace(tick)
            }
            (None, Some((tensor, begin, end))) => {
                known("tensor", tensor.into(), self.tensors.len())?;
                Run::Bytes { tensor: TensorId::from_u32(tensor), begin, end }
            }
            _ => {
                return Err(SavedError::Flaw(
                    "an address is of a workspace or of bytes, one of both".to_owned(),
                ));
            }
        };
        Ok(Spot { run, from: spot.from_step, address: spot.address })
    }
}

#[cfg(test)]
mod tests {
    use lmsc_ir::random::Source;

    use super::*;
    use crate::planners::planner;
    use crate::random::problem;
    use crate::service::{self, Question};

    fn saved(seed: u64, space: Space) -> Option<(Problem, Saved)> {
        let problem = problem(&mut lmsc_ir::random::Rng::new(seed), 12);
        let budget = (problem.floor().1 + problem.live_bytes().into_iter().max().unwrap()) / 2;
        let request = Request { recompute: true, effort: 5, ..Request::new(&problem, budget) };
        let question = Question { planner: planner("auto").unwrap(), request, space, host_bytes: u64::MAX };
        let planned = service::plan(&question).ok()?;
        Some((problem.clone(), Saved { planner: "auto".to_owned(), budget, planned }))
    }

    #[test]
    fn what_is_written_is_read() {
        let mut read = 0;
        for seed in 0..40 {
            for space in [Space::Counted, Space::Arena] {
                let Some((problem, saved)) = saved(seed, space) else { continue };
                let text = saved.to_json();
                let again = Saved::parse(&text, &problem, 256).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
                assert_eq!(again.to_json(), text, "seed {seed}");
                assert_eq!(again.planned.peak, saved.planned.peak, "seed {seed}");
                read += 1;
            }
        }
        assert!(read > 25, "only {read} plans");
    }

    #[test]
    fn a_plan_of_another_problem_is_refused() {
        let (_, saved) = (0..).find_map(|seed| saved(seed, Space::Arena)).unwrap();
        let text = saved.to_json();
        let mut refused = 0;
        for seed in 1000..1100 {
            let other = problem(&mut lmsc_ir::random::Rng::new(seed), 12);
            refused += usize::from(Saved::parse(&text, &other, 256).is_err());
        }
        assert_eq!(refused, 100);
    }

    /// Reading a damaged plan never panics: it is refused, or the checkers accept the plan that was read.
    #[test]
    fn damaged_plans_are_refused_or_valid() {
        let mut random = lmsc_ir::random::Rng::new(7);
        let (mut refused, mut read) = (0, 0);
        for seed in 0..40 {
            let Some((problem, saved)) = saved(seed, Space::Arena) else { continue };
            let text = saved.to_json();
            let digits: Vec<usize> =
                text.char_indices().filter(|(_, c)| c.is_ascii_digit()).map(|(at, _)| at).collect();
            for _ in 0..20 {
                let mut damaged = text.clone().into_bytes();
                damaged[digits[random.below(digits.len())]] = b'0' + random.below(10) as u8;
                match Saved::parse(&String::from_utf8(damaged).unwrap(), &problem, 256) {
                    Ok(saved) => {
                        let Planned { plan, .. } = &saved.planned;
                        schedule::check(&plan.problem, &plan.schedule, saved.budget).unwrap();
                        read += 1;
                    }
                    Err(_) => refused += 1,
                }
            }
        }
        assert!(refused > 80 && read > 8, "{refused} refused, {read} read");
    }
}

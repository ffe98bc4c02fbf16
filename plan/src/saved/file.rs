//! The JSON fields of a saved plan, and the checks that they name operators and tensors of the problem.

use cranelift_entity::{EntityRef, PrimaryMap};
use lmsc_address::{Allocation, Spot};
use lmsc_schedule::problem::{Operator, Problem, TensorId};
use lmsc_schedule::{Edge, Instruction, Piece, PieceId, Plan, Schedule, Step};
use serde::{Deserialize, Serialize};

use super::{About, FORMAT, Head, Saved, SavedError};
use crate::service::{Planned, Space};

/// The latest time of a step, so that sums of a few fit in 64 signed bits.
const LATEST: u64 = 1 << 61;

/// The question, as the first fields of the file.
#[derive(Serialize, Deserialize)]
pub(super) struct HeadFile {
    planner: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    budget_bytes: u64,
    /// `counted`, `arena`, or the bytes of a page.
    space: SpaceFile,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    nodes: Vec<String>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SpaceFile {
    Counted,
    Arena,
    PageBytes(u64),
}

#[derive(Serialize, Deserialize)]
pub(super) struct File {
    format: String,
    #[serde(flatten)]
    pub(super) head: HeadFile,
    pub(super) about: About,
    pub(super) counted_ns: u64,
    #[serde(flatten)]
    pub(super) plan: PlanFile,
}

/// The plan itself.
#[derive(Serialize, Deserialize)]
pub(super) struct PlanFile {
    pub(super) ops: Vec<OpFile>,
    pub(super) tensors: Vec<u32>,
    pub(super) pieces: Vec<(u32, u64, u64)>,
    pub(super) steps: Vec<StepFile>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) edges: Vec<(usize, usize)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) spots: Vec<SpotFile>,
}

/// An operator that runs: its position in the problem, and the plan's tensors that this run touches.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an operator with its number `op`")]
pub(super) struct OpFile {
    pub(super) op: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    reads: Vec<u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    produces: Vec<u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    changes: Vec<u32>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Does {
    Op(u32),
    Out(u32),
    In(u32),
}

#[derive(Serialize, Deserialize)]
#[serde(expecting = "a step with `op`, `out` or `in`, `start_ns` and `end_ns`")]
pub(super) struct StepFile {
    #[serde(flatten)]
    pub(super) does: Does,
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a range or workspace with its `address`")]
pub(super) struct SpotFile {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) from_step: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) workspace_of: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) bytes: Option<(u32, u64, u64)>,
    pub(super) address: u64,
}

impl HeadFile {
    fn of(head: &Head) -> HeadFile {
        let Head { planner, target, budget, space, nodes } = head.clone();
        let space = match space {
            Space::Counted => SpaceFile::Counted,
            Space::Arena => SpaceFile::Arena,
            Space::Pages(page) => SpaceFile::PageBytes(page),
        };
        HeadFile { planner, target, budget_bytes: budget.unwrap_or_default(), space, nodes }
    }

    pub(super) fn head(&self) -> Head {
        let space = match self.space {
            SpaceFile::Counted => Space::Counted,
            SpaceFile::Arena => Space::Arena,
            SpaceFile::PageBytes(page) => Space::Pages(page),
        };
        Head {
            planner: self.planner.clone(),
            target: self.target.clone(),
            budget: Some(self.budget_bytes),
            space,
            nodes: self.nodes.clone(),
        }
    }
}

impl OpFile {
    /// The operator of the position, touching these tensors.
    pub(super) fn of(op: u32, run: &Operator) -> OpFile {
        let numbers = |tensors: &[TensorId]| tensors.iter().map(|t| t.as_u32()).collect();
        OpFile {
            op,
            reads: numbers(&run.reads),
            produces: numbers(&run.produces),
            changes: numbers(&run.changes),
        }
    }
}

impl File {
    pub(super) fn of(saved: &Saved) -> File {
        File {
            format: FORMAT.to_owned(),
            head: HeadFile::of(&saved.head),
            about: saved.about,
            counted_ns: saved.planned.counted_nanos,
            plan: PlanFile::of(&saved.planned),
        }
    }

    /// See [`PlanFile::parts`].
    pub(super) fn parts(&self, problem: &Problem) -> Result<(Plan, Vec<Edge>, Vec<Spot>), SavedError> {
        self.plan.parts(problem)
    }
}

impl PlanFile {
    fn of(planned: &Planned) -> PlanFile {
        let Planned { plan, edges, spots, .. } = planned;
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
                Allocation::Workspace(tick) => (Some(tick), None),
                Allocation::Bytes { tensor, begin, end } => (None, Some((tensor.as_u32(), begin, end))),
            };
            SpotFile { from_step: spot.from, workspace_of, bytes, address: spot.address }
        };
        let pieces = plan.schedule.pieces.values();
        PlanFile {
            ops: plan.op_origin.iter().zip(&plan.problem.ops).map(|(&op, run)| OpFile::of(op, run)).collect(),
            tensors: plan.tensor_origin.values().map(|t| t.as_u32()).collect(),
            pieces: pieces.map(|p| (p.tensor.as_u32(), p.bytes.start, p.bytes.end)).collect(),
            steps: plan.schedule.steps.iter().map(step).collect(),
            edges: edges.iter().map(|edge| (edge.step, edge.before)).collect(),
            spots: spots.iter().map(spot).collect(),
        }
    }

    /// The plan of the problem with its edges and addresses, which all name existing items. The checkers decide whether it is
    /// valid.
    ///
    /// # Errors
    /// [`SavedError`].
    pub(super) fn parts(&self, problem: &Problem) -> Result<(Plan, Vec<Edge>, Vec<Spot>), SavedError> {
        let plan = self.plan(problem)?;
        let edges = self.edges(plan.schedule.steps.len())?;
        let spots = self.spots.iter().map(|spot| self.spot(spot)).collect::<Result<Vec<Spot>, _>>()?;
        Ok((plan, edges, spots))
    }

    fn plan(&self, problem: &Problem) -> Result<Plan, SavedError> {
        let mut tensors = PrimaryMap::with_capacity(self.tensors.len());
        let mut tensor_origin: PrimaryMap<TensorId, TensorId> = PrimaryMap::with_capacity(self.tensors.len());
        let mut is_named = vec![false; problem.tensors.len()];
        for &number in &self.tensors {
            known("tensor", number.into(), problem.tensors.len())?;
            let origin = TensorId::from_u32(number);
            let again = std::mem::replace(&mut is_named[number as usize], true);
            if again && problem.tensors[origin].given {
                return Err(SavedError::Flaw(format!("tensor {number}, which is given, is there twice")));
            }
            tensors.push(problem.tensors[origin]);
            tensor_origin.push(origin);
        }
        let mut runs = Runs::new(problem, &tensor_origin);
        for run in &self.ops {
            runs.add(run)?;
        }
        let ops = runs.end()?;
        let (kinds, lanes) = (problem.kinds.clone(), problem.lanes.clone());
        let executed = Problem { ops, tensors, link: problem.link, kinds, lanes, ..*problem };
        let op_origin = self.ops.iter().map(|run| run.op).collect();
        Ok(Plan { schedule: self.schedule()?, problem: executed, op_origin, tensor_origin })
    }

    fn schedule(&self) -> Result<Schedule, SavedError> {
        let mut pieces: PrimaryMap<PieceId, Piece> = PrimaryMap::with_capacity(self.pieces.len());
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
            let latest = step.start_ns.max(step.end_ns);
            if latest > LATEST {
                return Err(SavedError::Unknown { what: "time", number: latest });
            }
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
        edges.dedup();
        Ok(edges)
    }

    fn spot(&self, spot: &SpotFile) -> Result<Spot, SavedError> {
        if let Some(from) = spot.from_step {
            known("step", from as u64, self.steps.len())?;
        }
        let run = match (spot.workspace_of, spot.bytes) {
            (Some(tick), None) => {
                known("operator", tick.into(), self.ops.len())?;
                Allocation::Workspace(tick)
            }
            (None, Some((tensor, begin, end))) => {
                known("tensor", tensor.into(), self.tensors.len())?;
                Allocation::Bytes { tensor: TensorId::from_u32(tensor), begin, end }
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

/// The operators that run, in their order, each compared with that of the problem.
struct Runs<'a> {
    problem: &'a Problem,
    tensor_origin: &'a PrimaryMap<TensorId, TensorId>,
    ops: Vec<Operator>,
    /// The operator whose first run is next.
    next: u32,
    /// By tensor of the problem, the number of changes by the first runs of operators.
    changed: Vec<u32>,
    /// By tensor of the plan, the number of its changes.
    content: Vec<u32>,
    /// By operator that has run, the tensors that it read, each with the number of its earlier changes.
    read: Vec<Vec<(TensorId, u32)>>,
}

impl<'a> Runs<'a> {
    fn new(problem: &'a Problem, tensor_origin: &'a PrimaryMap<TensorId, TensorId>) -> Runs<'a> {
        Runs {
            problem,
            tensor_origin,
            ops: Vec::with_capacity(problem.ops.len()),
            next: 0,
            changed: vec![0; problem.tensors.len()],
            content: vec![0; tensor_origin.len()],
            read: Vec::with_capacity(problem.ops.len()),
        }
    }

    fn add(&mut self, run: &OpFile) -> Result<(), SavedError> {
        known("operator", run.op.into(), self.problem.ops.len())?;
        let source = &self.problem.ops[run.op as usize];
        if run.op > self.next {
            return Err(SavedError::Order(run.op));
        }
        let first = run.op == self.next;
        if !first && (!source.recomputable || !run.changes.is_empty()) {
            return Err(SavedError::Again(run.op));
        }
        if first {
            let version = |&tensor: &TensorId| (tensor, self.changed[tensor.as_u32() as usize]);
            let mut read: Vec<_> = source.reads.iter().map(version).collect();
            read.sort_unstable();
            self.read.push(read);
            self.next += 1;
        }
        let reads = self.of(&run.reads, &source.reads, first, run.op)?;
        let produces = self.of(&run.produces, &source.produces, first, run.op)?;
        let changes = self.of(&run.changes, &source.changes, first, run.op)?;
        let known_reads = &self.read[run.op as usize];
        for &tensor in &reads {
            let origin = self.tensor_origin[tensor];
            let at = known_reads.partition_point(|(t, _)| *t < origin);
            let version = known_reads.get(at).filter(|(t, _)| *t == origin).map(|(_, version)| *version);
            if version != Some(self.content[tensor.as_u32() as usize]) {
                return Err(SavedError::Stale { op: run.op, tensor: tensor.as_u32() });
            }
        }
        for &tensor in &changes {
            self.content[tensor.as_u32() as usize] += 1;
            self.changed[self.tensor_origin[tensor].as_u32() as usize] += 1;
        }
        self.ops.push(Operator { reads, produces, changes, ..*source });
        Ok(())
    }

    /// The tensors with these numbers, which must be those of the source. An operator that runs again may touch fewer:
    /// running statistics are updated once.
    fn of(
        &self,
        numbers: &[u32],
        source: &[TensorId],
        first: bool,
        op: u32,
    ) -> Result<Vec<TensorId>, SavedError> {
        if numbers.len() > source.len() {
            return Err(SavedError::Other { op });
        }
        let mut list = Vec::with_capacity(numbers.len());
        for &number in numbers {
            known("tensor", number.into(), self.tensor_origin.len())?;
            list.push(TensorId::from_u32(number));
        }
        let mut origins: Vec<TensorId> = list.iter().map(|&t| self.tensor_origin[t]).collect();
        let mut source = source.to_vec();
        origins.sort_unstable();
        source.sort_unstable();
        let is_known =
            if first { origins == source } else { origins.iter().all(|t| source.binary_search(t).is_ok()) };
        if is_known { Ok(list) } else { Err(SavedError::Other { op }) }
    }

    /// All operators.
    fn end(self) -> Result<Vec<Operator>, SavedError> {
        if (self.next as usize) < self.problem.ops.len() {
            Err(SavedError::Missing(self.next))
        } else {
            Ok(self.ops)
        }
    }
}

/// Checks that `number` is a valid index for `count` items.
pub(super) fn known(what: &'static str, number: u64, count: usize) -> Result<(), SavedError> {
    if number < count as u64 { Ok(()) } else { Err(SavedError::Unknown { what, number }) }
}

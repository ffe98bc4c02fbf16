//! The interface between planners and everything else: a request, and the plan or the refusal that answers it.

use cranelift_entity::PrimaryMap;

use crate::problem::{Operator, Problem, TensorId};
use crate::{Instruction, Schedule, Step, Watch};

/// The input of a planner.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The operators in their order.
    pub problem: &'a Problem,
    /// Bytes that may be allocated at once.
    pub budget: u64,
    /// Whether tensors are copied whole or in ranges of bytes.
    pub granularity: Granularity,
    /// Whether operators may be recomputed.
    pub recompute: bool,
    /// Search effort: a factor on the number of evaluations, in percent.
    pub effort: u32,
    /// The rule that orders the copies.
    pub scheduler: Scheduler,
    /// Alignment of addresses, as far as the arena is large enough for it.
    pub alignment: u64,
    /// The observer of the search, which may end it.
    pub watch: Option<&'a Watch>,
}

/// The alignment of CUDA's allocator.
const ALIGNMENT: u64 = 256;

impl<'a> Request<'a> {
    /// The request with the settings that suit most problems.
    pub fn new(problem: &'a Problem, budget: u64) -> Request<'a> {
        Request {
            problem,
            budget,
            granularity: Granularity::Ranges,
            recompute: false,
            effort: 100,
            scheduler: Scheduler::Justified,
            alignment: ALIGNMENT,
            watch: None,
        }
    }

    /// Whether the search is to end with the best plan found so far.
    pub fn is_ended(&self) -> bool {
        self.watch.is_some_and(Watch::is_ended)
    }
}

/// The unit of copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granularity {
    /// Whole tensors.
    Whole,
    /// Ranges of a tensor's bytes, each copied separately.
    Ranges,
}

/// The rule that orders the copies of a swap set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheduler {
    /// The rule of the paper that the planner comes from.
    Paper,
    /// [`justify`](crate::justify()).
    #[default]
    Justified,
}

/// A plan: operators and copies with their times, valid within the requested budget.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The problem that is executed: the requested one with the recomputed operators in their places.
    pub problem: Problem,
    /// By tick of [`Plan::problem`], the tick of the requested problem that it is or repeats.
    pub op_origin: Vec<u32>,
    /// By tensor of [`Plan::problem`], the tensor of the requested problem that it is or repeats.
    pub tensor_origin: PrimaryMap<TensorId, TensorId>,
    /// The times of all operators and copies.
    pub schedule: Schedule,
}

impl Plan {
    /// The plan that runs every operator of the problem once.
    pub fn without_recomputation(problem: &Problem, schedule: Schedule) -> Plan {
        Plan {
            problem: problem.clone(),
            op_origin: (0..problem.ticks()).collect(),
            tensor_origin: problem.tensors.keys().collect(),
            schedule,
        }
    }

    /// The plan that runs the operators of the problem one after the other and copies nothing.
    pub fn without_copies(problem: &Problem) -> Plan {
        let mut now = 0;
        let step = |(op, tick): (&Operator, u32)| {
            let start = now;
            now += op.nanos;
            Step { instruction: Instruction::Op(tick), start, end: now }
        };
        let steps = problem.ops.iter().zip(0..).map(step).collect();
        Plan::without_recomputation(problem, Schedule { steps, ..Schedule::default() })
    }

    /// Total time of recomputed operators, in nanoseconds.
    pub fn recompute_nanos(&self) -> u64 {
        let mut ran = vec![false; self.op_origin.iter().max().map_or(0, |&m| m as usize + 1)];
        let again = self.op_origin.iter().zip(&self.problem.ops);
        again
            .filter(|(origin, _)| std::mem::replace(&mut ran[**origin as usize], true))
            .map(|(_, op)| op.nanos)
            .sum()
    }
}

/// The reason why there is no plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("operator {tick} needs {needed} bytes at once; the budget is {budget}")]
pub struct DoesNotFit {
    /// The operator that needs the most bytes of those that do not fit.
    pub tick: u32,
    /// The bytes that the operator needs under any plan of this planner.
    pub needed: u64,
    /// The requested budget.
    pub budget: u64,
}

impl DoesNotFit {
    /// Checks that swapping can make every operator fit the budget of the request.
    ///
    /// # Errors
    /// The refusal names the tick that needs the most bytes of those that no window can make fit.
    pub fn unless_floor_fits(request: &Request) -> Result<(), DoesNotFit> {
        let (tick, needed) = request.problem.floor();
        let refusal = DoesNotFit { tick, needed, budget: request.budget };
        if needed > request.budget { Err(refusal) } else { Ok(()) }
    }
}

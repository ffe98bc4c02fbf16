//! Every planner, by name.
//!
//! A planner is a function from a [`Request`] to a [`Plan`], or to the reason why there is none. Planners differ in which
//! tensors they swap out or recompute, and in how they order the copies.

mod annealing;
pub mod auto;
pub mod autoswap;
pub(crate) mod cover;
pub mod dqn;
pub mod dynprog;
#[cfg(test)]
pub(crate) mod exact;
pub mod greedy;
pub mod lru;
pub mod memonger;
mod nudge;
mod offload;
pub mod optimal;
mod policy;
mod split;
#[cfg(test)]
pub(crate) mod testing;
pub mod tflms;
mod variables;
pub mod vdnn;
mod whole;
pub mod window;

use crate::problem::{Op, Problem, TensorId};
use crate::schedule::{Instruction, Schedule, Step};
use cranelift_entity::PrimaryMap;
pub(crate) use offload::refuse_below_floor;

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
    /// Parameters of individual planners.
    pub options: Options,
    /// Alignment of addresses, as far as the arena is large enough for it.
    pub alignment: u64,
    /// `dqn`: settings of the training.
    pub learning: dqn::Learning<'a>,
}

/// Parameters of planners; a planner searches for those that are not given, or uses the defaults of its paper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// `window`: lookahead, in bytes of the tensors of the next uses.
    pub window: Option<u64>,
    /// `tflms`: maximum number of swapped tensors, those produced first.
    pub n_tensors: Option<u32>,
    /// `tflms`: number of operators before its use at which a tensor's swap-in begins, at least 1.
    pub ahead: Option<u32>,
    /// `tflms`: a tensor is swapped between a forward and a later use that are at least this many operators apart (α).
    pub threshold: Option<u32>,
    /// `tflms`: a tensor is also swapped between forward uses that are at least this many operators apart.
    pub branch_threshold: Option<u32>,
    /// `tflms`: after a swap-in, a tensor stays resident for uses that are at most this many operators apart.
    pub fuse_swapins: Option<u32>,
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
            options: Options::default(),
            alignment: ALIGNMENT,
            learning: dqn::Learning::default(),
        }
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
    /// [`crate::schedule::justify`].
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
        let step = |(op, tick): (&Op, u32)| {
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

/// A planner: name, description and function.
#[derive(Clone, Copy, Debug)]
pub struct Planner {
    /// Kebab-case; the value of `--planner`.
    pub name: &'static str,
    /// A noun phrase without a full stop.
    pub summary: &'static str,
    /// Whether its plans can copy ranges of a tensor separately; otherwise it copies whole tensors, if any.
    pub ranges: bool,
    /// Whether the swap set may be chosen anew for its recomputed operators without changing the planner's decision.
    pub ours: bool,
    /// Whether it trains a network, which takes minutes where other planners take seconds.
    pub learns: bool,
    /// Cheap upper bound on the makespan of its plan, used to rank operator orders; nothing if it finds no plan. None for
    /// planners that do not reorder operators.
    pub glance: Option<fn(&Request) -> Option<u64>>,
    /// The planner itself.
    pub run: fn(&Request) -> Result<Plan, DoesNotFit>,
}

/// Every planner. The only registration point.
pub static PLANNERS: &[Planner] = &[
    Planner {
        name: "auto",
        summary: "swapping and recomputation together (ours)",
        ranges: true,
        ours: true,
        learns: false,
        glance: Some(auto::glance),
        run: auto::plan,
    },
    Planner {
        name: "optimal",
        summary: "swapping only, near the bound (ours)",
        ranges: true,
        ours: true,
        learns: false,
        glance: Some(optimal::glance),
        run: optimal::plan,
    },
    Planner {
        name: "greedy",
        summary: "swapping the first activations (OPT §4)",
        ranges: true,
        ours: false,
        learns: false,
        glance: None,
        run: greedy::plan,
    },
    Planner {
        name: "dynprog",
        summary: "swapping what is best if copies could stop (OPT §5)",
        ranges: true,
        ours: false,
        learns: false,
        glance: None,
        run: dynprog::plan,
    },
    Planner {
        name: "vdnn",
        summary: "swapping what overlaps best, or half of it (OPT §6.1)",
        ranges: true,
        ours: false,
        learns: false,
        glance: None,
        run: vdnn::plan,
    },
    Planner {
        name: "autoswap",
        summary: "swapping by four scores, weighted best (AutoSwap)",
        ranges: true,
        ours: false,
        learns: false,
        glance: None,
        run: autoswap::plan,
    },
    Planner {
        name: "memonger",
        summary: "recomputation between kept tensors (Memonger)",
        ranges: false,
        ours: false,
        learns: false,
        glance: None,
        run: memonger::plan,
    },
    Planner {
        name: "window",
        summary: "an adaptive window over the next uses (OOC)",
        ranges: false,
        ours: false,
        learns: false,
        glance: None,
        run: window::plan,
    },
    Planner {
        name: "lru",
        summary: "eviction of what was used longest ago (SuperNeurons)",
        ranges: false,
        ours: false,
        learns: false,
        glance: None,
        run: lru::plan,
    },
    Planner {
        name: "tflms",
        summary: "swapping from the forward to the backward phase, by parameters (TFLMS)",
        ranges: false,
        ours: false,
        learns: false,
        glance: None,
        run: tflms::plan,
    },
    Planner {
        name: "tflms-best",
        summary: "the same, with the parameters that fit and take the least time",
        ranges: false,
        ours: false,
        learns: false,
        glance: None,
        run: tflms::plan_best,
    },
    // If the planner's own plan has no addresses, its choice of recomputed operators is used: to train again for a slightly
    // smaller budget takes too long.
    Planner {
        name: "dqn",
        summary: "swapping and recomputation as a network learns them (DQN)",
        ranges: false,
        ours: true,
        learns: true,
        glance: None,
        run: dqn::plan,
    },
];

/// The planner with this name.
pub fn planner(name: &str) -> Option<&'static Planner> {
    PLANNERS.iter().find(|planner| planner.name == name)
}

//! Every planner, by name.
//!
//! A planner is a function from a [`Request`] to a [`Plan`], or to the reason why there is none. Planners differ in
//! what they choose to be away or to be computed twice, and in how they order the copies.

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

/// What is asked of a planner.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The operators in their order.
    pub problem: &'a Problem,
    /// Bytes that may be allocated at once.
    pub budget: u64,
    /// Whether tensors travel whole or in ranges of bytes.
    pub granularity: Granularity,
    /// Whether operators may run twice.
    pub recompute: bool,
    /// How much to search: a factor on the number of evaluations, in percent.
    pub effort: u32,
    /// Who orders the copies.
    pub scheduler: Scheduler,
    /// Parameters of planners that have some.
    pub options: Options,
    /// What addresses are multiples of, as far as the arena is large enough for that.
    pub alignment: u64,
    /// `dqn`: how to learn.
    pub learning: dqn::Learning<'a>,
}

/// Parameters of planners; those that are not given are searched for, or have the defaults of their paper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// `window`: the bytes of the uses that it looks ahead.
    pub window: Option<u64>,
    /// `tflms`: how many tensors are swapped at most, those produced first.
    pub n_tensors: Option<u32>,
    /// `tflms`: how many operators before its use a tensor begins to come back, at least 1.
    pub ahead: Option<u32>,
    /// `tflms`: a tensor is away between a forward and a later use that are at least so many operators apart (α).
    pub threshold: Option<u32>,
    /// `tflms`: a tensor is also away between forward uses that are at least so many operators apart.
    pub branch_threshold: Option<u32>,
    /// `tflms`: a tensor that came back stays for uses that are at most so many operators apart.
    pub fuse_swapins: Option<u32>,
}

/// The alignment of CUDA's allocator.
const ALIGNMENT: u64 = 256;

impl<'a> Request<'a> {
    /// The request with the settings that are best for most.
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

/// What travels at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granularity {
    /// Whole tensors.
    Whole,
    /// Ranges of a tensor's bytes, each by itself.
    Ranges,
}

/// Who orders the copies of a choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheduler {
    /// The rule of the paper that the planner comes from.
    Paper,
    /// [`crate::schedule::justify`].
    #[default]
    Justified,
}

/// What to do and when, valid within the budget asked for.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The problem that is executed: the one asked about, with the recomputed operators in their places.
    pub problem: Problem,
    /// By tick of [`Plan::problem`], the tick that it had, or repeats, in the problem asked about.
    pub op_origin: Vec<u32>,
    /// By tensor of [`Plan::problem`], the tensor that it is, or repeats, in the problem asked about.
    pub tensor_origin: PrimaryMap<TensorId, TensorId>,
    /// When what is executed and copied.
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

    /// The plan that runs the problem's operators one after the other and copies nothing.
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

    /// The time of operators that run again, in nanoseconds.
    pub fn recompute_nanos(&self) -> u64 {
        let mut ran = vec![false; self.op_origin.iter().max().map_or(0, |&m| m as usize + 1)];
        let again = self.op_origin.iter().zip(&self.problem.ops);
        again
            .filter(|(origin, _)| std::mem::replace(&mut ran[**origin as usize], true))
            .map(|(_, op)| op.nanos)
            .sum()
    }
}

/// Why there is no plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("operator {tick} needs {needed} bytes at once; the budget is {budget}")]
pub struct DoesNotFit {
    /// The operator that needs most of those that do not fit.
    pub tick: u32,
    /// The bytes that it needs whatever this planner does.
    pub needed: u64,
    /// The budget asked for.
    pub budget: u64,
}

/// A planner: its name, what it does, and the function that does it.
#[derive(Clone, Copy, Debug)]
pub struct Planner {
    /// Kebab-case; what `--planner` takes.
    pub name: &'static str,
    /// A noun phrase without a full stop.
    pub summary: &'static str,
    /// Whether ranges of a tensor can travel each by itself in its plans; otherwise it copies whole tensors, if any.
    pub ranges: bool,
    /// Whether its swaps are the best for what it chose to run again, so that others, chosen anew, are its plans too.
    pub ours: bool,
    /// Whether it learns, for minutes where the others take seconds.
    pub learns: bool,
    /// A quick look at what its plan takes at most, by which orders of operators are told apart; nothing where that finds no
    /// plan. None for planners that take the order as it is.
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
    // Where its own plan has no addresses, what it lets run again is what counts: to learn anew for a little less takes
    // too long.
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

/// The planner of this name.
pub fn planner(name: &str) -> Option<&'static Planner> {
    PLANNERS.iter().find(|planner| planner.name == name)
}

//! Every planner, by name.
//!
//! A planner is a function from a [`Request`] to a [`Plan`], or to the reason why there is none. Planners differ in which
//! tensors they swap out or recompute, and in how they order the copies.
//!
//! | module | is |
//! |---|---|
//! | [`ours`] | `auto` and `swap-only`, and their parts |
//! | `papers` | the planners of the papers, as their authors describe them |
//! | [`dqn`], [`mod@env`] | the planner that learns, and planning as a game |
//! | [`instance`] | planning problems as files |
//! | [`call`] | options in braces behind a planner's name |
//!
//! Planners need no graph:
//!
//! ```
//! use lmsc_planners::{Request, planner};
//!
//! let text = r#"{"format": "lmsc-planner-chain-1", "name": "two", "beta": 1e9, "uF": [1000, 1000], "uB": [2000, 2000],
//!     "x": [0, 4000000, 4000000], "y": [0, 0, 0], "exF": [0, 0], "exB": [0, 0]}"#;
//! let instance = lmsc_planners::instance::Instance::parse(text)?;
//! let request = Request::new(&instance.problem, 8_000_000);
//! let plan = planner("auto").expect("it is registered").plan(&request).expect("all of it fits");
//! assert_eq!(plan.schedule.makespan(), 6_000_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

pub mod call;
pub mod dqn;
pub mod env;
pub mod instance;
pub mod ours;
mod papers;
#[cfg(test)]
mod testing;

use call::{CallOption, CallOptions, OptionValue};
use ours::{auto, lanes, swap_only};
use papers::{autoswap, dynprog, greedy, lru, memonger, tflms, vdnn, window};

pub use lmsc_schedule::{DoesNotFit, Granularity, Plan, Request, Scheduler};

/// Parameters of single planners.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parameters<'a> {
    /// Numbers.
    pub options: Options,
    /// `dqn`: settings of the training.
    pub learning: dqn::Learning<'a>,
}

/// Parameters of planners; a planner searches for those that are not given, or uses the defaults of its paper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// `window`: lookahead, in bytes of the tensors of the next uses.
    pub window: Option<u64>,
    /// `tflms-chain`: maximum number of swapped tensors, those produced first.
    pub n_tensors: Option<u32>,
    /// `tflms-chain`: number of operators before its use at which a tensor's swap-in begins, at least 1.
    pub ahead: Option<u32>,
    /// `tflms-chain`: a tensor is swapped between a forward and a later use that are at least this many operators apart (α).
    pub threshold: Option<u32>,
    /// `tflms-chain`: a tensor is also swapped between forward uses that are at least this many operators apart.
    pub branch_threshold: Option<u32>,
    /// `tflms-chain`: after a swap-in, a tensor stays resident for uses that are at most this many operators apart.
    pub fuse_swapins: Option<u32>,
}

const WINDOW: CallOption = CallOption::open(
    "bytes",
    "size of the look-ahead window, in bytes used; the best of several",
    OptionValue::NoBytes,
);
const N_TENSORS: CallOption = CallOption::open(
    "n-tensors",
    "swap at most this many tensors, in the order in which they are produced; all",
    OptionValue::NoCount,
);
const AHEAD: CallOption =
    CallOption::open("ahead", "start swap-ins this many operators before the use; 1", OptionValue::NoCount);
const THRESHOLD: CallOption = CallOption::open(
    "threshold",
    "swap between forward and backward uses at least this many operators apart (α); 2",
    OptionValue::NoCount,
);
const BRANCH_THRESHOLD: CallOption = CallOption::open(
    "branch-threshold",
    "swap between forward uses at least this many operators apart; none",
    OptionValue::NoCount,
);
const FUSE_SWAPINS: CallOption = CallOption::open(
    "fuse-swapins",
    "backward uses at most this many operators apart share a swap-in; none",
    OptionValue::NoCount,
);
const EPISODES: CallOption = CallOption::count("episodes", "learn from this many episodes", dqn::EPISODES);
const SEED: CallOption = CallOption::count("seed", "seed of random choices", 0);

/// The options of the two planners of TFLMS.
const OF_TFLMS: &[CallOption] = &[N_TENSORS, AHEAD, THRESHOLD, BRANCH_THRESHOLD, FUSE_SWAPINS];

impl<'a> Parameters<'a> {
    /// The parameters that a call of the planner sets.
    pub fn of(planner: &Planner, call: &CallOptions) -> Parameters<'a> {
        let mut parameters = Parameters::default();
        let has = |option: &CallOption| planner.options.contains(option);
        // No plan has as many operators or tensors as 32 bits count.
        let count = |option: &CallOption| {
            let given = has(option).then(|| call.count_if_given(option)).flatten();
            given.map(|count| u32::try_from(count).unwrap_or(u32::MAX))
        };
        parameters.options = Options {
            window: has(&WINDOW).then(|| call.bytes_if_given(&WINDOW)).flatten().map(|bytes| bytes.0),
            n_tensors: count(&N_TENSORS),
            ahead: count(&AHEAD),
            threshold: count(&THRESHOLD),
            branch_threshold: count(&BRANCH_THRESHOLD),
            fuse_swapins: count(&FUSE_SWAPINS),
        };
        if has(&EPISODES) {
            // Without an episode there is no plan.
            parameters.learning.episodes = u32::try_from(call.count(&EPISODES)).unwrap_or(u32::MAX).max(1);
            parameters.learning.seed = call.count(&SEED);
        }
        parameters
    }
}

/// A planner: name, description and function.
#[derive(Clone, Copy, Debug)]
pub struct Planner {
    /// Kebab-case; the value of `--planner`.
    pub name: &'static str,
    /// A noun phrase without a full stop.
    pub summary: &'static str,
    /// The planner's own options, which `--planner 'name{option=value}'` sets.
    pub options: &'static [CallOption],
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
    pub run: fn(&Request, &Parameters) -> Result<Plan, DoesNotFit>,
}

impl Planner {
    /// The plan for the request with the default parameters.
    ///
    /// # Errors
    /// [`DoesNotFit`] if the planner has no plan within the budget.
    pub fn plan(&self, request: &Request) -> Result<Plan, DoesNotFit> {
        self.plan_with(request, &Parameters::default())
    }

    fn plan_with(&self, request: &Request, parameters: &Parameters) -> Result<Plan, DoesNotFit> {
        if !request.problem.has_lanes() {
            return (self.run)(request, parameters);
        }
        lanes::plan(request, self.glance.is_some(), |request| (self.run)(request, parameters))
    }

    /// The planner with these parameters.
    pub fn with<'a>(&'static self, parameters: Parameters<'a>) -> Configured<'a> {
        Configured { planner: self, parameters }
    }
}

/// A planner with its parameters.
#[derive(Clone, Copy, Debug)]
pub struct Configured<'a> {
    /// The planner.
    pub planner: &'static Planner,
    /// Its parameters.
    pub parameters: Parameters<'a>,
}

impl Configured<'_> {
    /// The plan for the request.
    ///
    /// # Errors
    /// [`DoesNotFit`] if the planner has no plan within the budget.
    pub fn plan(&self, request: &Request) -> Result<Plan, DoesNotFit> {
        self.planner.plan_with(request, &self.parameters)
    }
}

/// Every planner. The only registration point.
pub static PLANNERS: &[Planner] = &[
    Planner {
        name: "auto",
        summary: "swapping and recomputation together (ours)",
        options: &[],
        ranges: true,
        ours: true,
        learns: false,
        glance: Some(auto::glance),
        run: |request, _| auto::plan(request),
    },
    Planner {
        name: "swap-only",
        summary: "swapping only, near the bound (ours)",
        options: &[],
        ranges: true,
        ours: true,
        learns: false,
        glance: Some(swap_only::glance),
        run: |request, _| swap_only::plan(request),
    },
    Planner {
        name: "greedy",
        summary: "swapping the first activations (OPT §4)",
        options: &[],
        ranges: true,
        ours: false,
        learns: false,
        glance: None,
        run: |request, _| greedy::plan(request),
    },
    Planner {
        name: "dynprog",
        summary: "swapping what is best if copies could stop (OPT §5)",
        options: &[],
        ranges: true,
        ours: false,
        learns: false,
        glance: None,
        run: |request, _| dynprog::plan(request),
    },
    Planner {
        name: "vdnn",
        summary: "swapping what overlaps best, or half of it (OPT §6.1)",
        options: &[],
        ranges: true,
        ours: false,
        learns: false,
        glance: None,
        run: |request, _| vdnn::plan(request),
    },
    Planner {
        name: "autoswap",
        summary: "swapping by four scores, weighted best (AutoSwap)",
        options: &[],
        ranges: true,
        ours: false,
        learns: false,
        glance: None,
        run: |request, _| autoswap::plan(request),
    },
    Planner {
        name: "memonger",
        summary: "recomputation between kept tensors (Memonger)",
        options: &[],
        ranges: false,
        ours: false,
        learns: false,
        glance: None,
        run: |request, _| memonger::plan(request),
    },
    Planner {
        name: "window",
        summary: "an adaptive window over the next uses (OOC)",
        options: &[WINDOW],
        ranges: false,
        ours: false,
        learns: false,
        glance: None,
        run: |request, parameters| window::plan(request, &parameters.options),
    },
    Planner {
        name: "lru",
        summary: "eviction of what was used longest ago (SuperNeurons)",
        options: &[],
        ranges: false,
        ours: false,
        learns: false,
        glance: None,
        run: |request, _| lru::plan(request),
    },
    Planner {
        name: "tflms-chain",
        summary: "swapping from the forward to the backward phase, by operators in a row (TFLMS)",
        options: OF_TFLMS,
        ranges: false,
        ours: false,
        learns: false,
        glance: None,
        run: |request, parameters| tflms::plan(request, &parameters.options),
    },
    Planner {
        name: "tflms-best",
        summary: "the same, with the parameters that fit and take the least time",
        options: OF_TFLMS,
        ranges: false,
        ours: false,
        learns: false,
        glance: None,
        run: |request, parameters| tflms::plan_best(request, &parameters.options),
    },
    // If the planner's own plan has no addresses, its choice of recomputed operators is used: to train again for a slightly
    // smaller budget takes too long.
    Planner {
        name: "dqn",
        summary: "swapping and recomputation as a network learns them (DQN)",
        options: &[EPISODES, SEED],
        ranges: false,
        ours: true,
        learns: true,
        glance: None,
        run: |request, parameters| dqn::plan(request, &parameters.learning),
    },
];

/// The planner of plans that another program made. Where one of them must be planned anew, as for another budget, `auto` does.
pub static FOREIGN: Planner = Planner {
    name: "foreign",
    summary: "another program",
    options: &[],
    ranges: true,
    ours: true,
    learns: false,
    glance: Some(auto::glance),
    run: |request, _| auto::plan(request),
};

/// The planner with this name, or with a name that it had in an earlier version.
pub fn planner(name: &str) -> Option<&'static Planner> {
    let name = if name == "optimal" { "swap-only" } else { name };
    PLANNERS.iter().find(|planner| planner.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_an_old_one_still_finds_its_planner() {
        for known in PLANNERS {
            assert!(std::ptr::eq(planner(known.name).unwrap(), known), "{}", known.name);
        }
        assert_eq!(planner("optimal").unwrap().name, "swap-only");
        assert!(planner("best").is_none());
    }
}

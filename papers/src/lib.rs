//! The planners of the papers, each as its authors describe it: to compare with, and to reproduce.
//!
//! Nothing that plans depends on this crate. A program that wants these planners hands [`PLANNERS`], [`TFLMS`] and [`PASSES`]
//! over to the code that finds planners and passes by name; the command `lmsc` does, unless it is built without the feature `papers`.
//!
//! | module | is |
//! |---|---|
//! | [`dqn`], [`mod@env`] | the planner that learns, and planning as a game |
//! | [`tflms`] | TFLMS on graphs, whose pass is `swap` |
//! | `tflms_chain` | TFLMS on operators in a row |
//! | `greedy`, `dynprog`, `vdnn`, `autoswap` | the heuristics of OPT, and those that it compares with |
//! | `window`, `lru`, `memonger` | out-of-core by a window, by least recent use; recomputation |
//!
//! ```
//! use lmsc_planners::Request;
//!
//! let text = r#"{"format": "lmsc-planner-chain-1", "name": "two", "beta": 1e9, "uF": [1000, 1000], "uB": [2000, 2000],
//!     "x": [0, 4000000, 4000000], "y": [0, 0, 0], "exF": [0, 0], "exB": [0, 0]}"#;
//! let instance = lmsc_planners::instance::Instance::parse(text)?;
//! let greedy = lmsc_papers::planner("greedy").expect("it is one of them");
//! let plan = greedy.plan(&Request::new(&instance.problem, 8_000_000)).expect("all of it fits");
//! assert_eq!(plan.schedule.makespan(), 6_000_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod autoswap;
pub mod dqn;
mod dynprog;
pub mod env;
mod extract;
mod greedy;
mod lru;
mod memonger;
mod offload;
mod options;
mod policy;
mod swap;
#[cfg(test)]
mod testing;
pub mod tflms;
mod tflms_chain;
mod vdnn;
mod window;

use lmsc_passes::{AnyPlanner, GraphPlanner, Pass, Pipeline, Planners};
use lmsc_planners::Planner;
use options::Options;

/// The planners of problems.
pub static PLANNERS: &[Planner] = &[
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
        options: &[options::WINDOW],
        ranges: false,
        ours: false,
        learns: false,
        glance: None,
        run: |request, parameters| window::plan(request, &Options::of(parameters)),
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
        options: options::OF_TFLMS,
        ranges: false,
        ours: false,
        learns: false,
        glance: None,
        run: |request, parameters| tflms_chain::plan(request, &Options::of(parameters)),
    },
    Planner {
        name: "tflms-best",
        summary: "the same, with the parameters that fit and take the least time",
        options: options::OF_TFLMS,
        ranges: false,
        ours: false,
        learns: false,
        glance: None,
        run: |request, parameters| tflms_chain::plan_best(request, &Options::of(parameters)),
    },
    // If the planner's own plan has no addresses, its choice of recomputed operators is used: to train again for a slightly
    // smaller budget takes too long.
    Planner {
        name: "dqn",
        summary: "swapping and recomputation as a network learns them (DQN)",
        options: &[dqn::EPISODES, dqn::SEED],
        ranges: false,
        ours: true,
        learns: true,
        glance: None,
        run: dqn::plan_with,
    },
];

/// TFLMS, which rewrites the graph itself.
pub static TFLMS: GraphPlanner = GraphPlanner {
    name: tflms::NAME,
    summary: "swapping from the forward to the backward phase, by levels of the graph, with triggers (TFLMS)",
    options: &tflms::OPTIONS,
    remark: "With a budget, the first eight are tuned for it unless the call sets one of them.",
    pipeline: || {
        Pipeline::parse_with("hoist-shapes,reorder,swap,place", &passes()).expect("they are registered")
    },
    is_tuned: tflms::is_tuned,
    bends: tflms::bends,
};

/// The passes of [`TFLMS`] that no other planner needs.
pub static PASSES: &[&dyn Pass] = &[&swap::Swap];

/// The planners of this project and those of the papers.
pub static ALL: Planners =
    Planners { of_problems: &[&lmsc_planners::PLANNERS, &PLANNERS], of_graphs: &[&TFLMS] };

/// The passes of this project and those of the papers.
pub fn passes() -> Vec<&'static dyn Pass> {
    lmsc_passes::with_passes(PASSES)
}

/// The planner of problems of [`ALL`] with this name.
pub fn planner(name: &str) -> Option<&'static Planner> {
    ALL.named(name).and_then(AnyPlanner::of_problems)
}

/// The pipeline of the planner of [`ALL`] with this name.
///
/// # Panics
/// If there is none.
pub fn pipeline(planner: &str) -> Pipeline<'static> {
    ALL.named(planner).expect("there is such a planner").pipeline()
}

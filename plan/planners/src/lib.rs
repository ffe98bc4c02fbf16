//! Planners, by name: functions from a planning problem to a plan.
//!
//! A planner is a function from a [`Request`] to a [`Plan`], or to the reason why there is none. Planners differ in which
//! tensors they swap out or recompute, and in how they order the copies.
//!
//! | module | is |
//! |---|---|
//! | [`ours`] | `auto` and `swap-only`, and their parts |
//! | [`chain`], [`instance`], [`trace`] | planning problems as files |
//! | [`call`] | options in braces behind a planner's name |
//!
//! The planners of the papers are a crate of their own, `lmsc-papers`, which offers them as [`Planner`]s. A program that wants
//! them names that crate; nothing here does.
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
pub mod chain;
pub mod instance;
pub mod ours;
pub mod trace;

use std::fmt;

use call::{CallOption, CallOptions};
use ours::{auto, lanes, swap_only};

pub use lmsc_schedule::{DoesNotFit, Granularity, Plan, Request, Scheduler};

/// Parameters of a planner.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parameters<'a> {
    /// The options that a call sets; a planner reads those that it declares. Without them, all have their defaults.
    pub options: Option<&'a CallOptions>,
    /// For planners that learn: initial weights and an observer.
    pub training: Training<'a>,
}

impl<'a> Parameters<'a> {
    /// The parameters of a call with these options.
    pub fn of(options: &'a CallOptions) -> Parameters<'a> {
        Parameters { options: Some(options), training: Training::default() }
    }
}

/// The training of a planner that learns, as far as options do not describe it.
#[derive(Clone, Copy, Default)]
pub struct Training<'a> {
    /// The initial weights of its network, as many as the network has; random if there are none.
    pub weights: Option<&'a [f64]>,
    /// Callback after each episode.
    pub watch: Option<&'a (dyn Fn(&Episode) + Sync)>,
}

impl fmt::Debug for Training<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Training { weights, watch } = self;
        write!(f, "Training {{ weights: {}, watch: {} }}", weights.is_some(), watch.is_some())
    }
}

/// A finished episode of a training.
#[derive(Clone, Copy, Debug)]
pub struct Episode<'a> {
    /// Its number, from 1.
    pub number: u32,
    /// The number of episodes planned.
    pub of: u32,
    /// The time of its plan beyond that of the operators alone, in nanoseconds.
    pub overhead_nanos: u64,
    /// The same of the best plan so far.
    pub best_nanos: u64,
    /// The weights after it.
    pub weights: &'a [f64],
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

/// The planners of this project.
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

/// The planner of [`PLANNERS`] with this name, or with a name that it had in an earlier version.
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

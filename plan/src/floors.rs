//! The smallest feasible budgets, by the means that plans may use.

use std::fmt;

use lmsc_address as address;
use lmsc_ir::Bytes;
use lmsc_planners::{Planner, planner};
use lmsc_schedule::problem::Problem;
use lmsc_schedule::{Granularity, Request};
use serde::Serialize;

use crate::placing;

/// The smallest budgets for which a plan was found; for one byte less there was none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Floors {
    /// If plans only swap whole tensors.
    pub whole_tensors: u64,
    /// If operators may also be recomputed.
    pub recomputation: u64,
    /// If ranges of tensors may also be copied separately.
    pub ranges: u64,
}

impl Floors {
    /// The floors of the problem, found by planning: with `swap-only` for plans that only swap, else with `auto`.
    ///
    /// Each kind of plan includes the previous kind, so no floor is above the one before.
    pub fn of(problem: &Problem) -> Floors {
        let of = |name| planner(name).expect("both are there");
        let asks = |planner: &'static Planner, granularity, recompute| {
            // The existence of a plan does not depend on the effort of the search.
            let request = Request { granularity, recompute, effort: 0, ..Request::new(problem, 0) };
            move |budget| planner.plan(&Request { budget, ..request }).map(drop).map_err(|no| no.needed)
        };
        let all = problem.live_by_moment(&problem.uses()).into_iter().max().unwrap_or(0);
        let whole_tensors = smallest(all, asks(of("swap-only"), Granularity::Whole, false));
        let recomputation = smallest(whole_tensors, asks(of("auto"), Granularity::Whole, true));
        let ranges = smallest(recomputation, asks(of("auto"), Granularity::Ranges, true));
        Floors { whole_tensors, recomputation, ranges }
    }

    /// The floors of the problem in one arena, where every address is a multiple of `alignment`, as far as arenas are large
    /// enough for that. For each of them a plan with addresses was made.
    pub fn in_arena(problem: &Problem, alignment: u64) -> Floors {
        let counted = Floors::of(problem);
        let plans = placing::Counted::of(problem, counted);
        let whole_tensors = address::least(problem, alignment);
        let recomputation = plans.recomputation(whole_tensors, alignment);
        let ranges = plans.ranges(recomputation, alignment);
        Floors { whole_tensors, recomputation, ranges: ranges.map_or(recomputation, |(bytes, _)| bytes) }
    }

    /// One floor for all kinds of plans.
    pub fn all(bytes: u64) -> Floors {
        Floors { whole_tensors: bytes, recomputation: bytes, ranges: bytes }
    }

    /// Of each kind, the smaller floor.
    pub fn min(self, other: Floors) -> Floors {
        Floors {
            whole_tensors: self.whole_tensors.min(other.whole_tensors),
            recomputation: self.recomputation.min(other.recomputation),
            ranges: self.ranges.min(other.ranges),
        }
    }

    /// These floors plus `others`, the bytes of the budget that are taken by other uses.
    pub fn beside(&self, others: Bytes) -> Floors {
        let add = |bytes: u64| bytes.saturating_add(others.0);
        Floors {
            whole_tensors: add(self.whole_tensors),
            recomputation: add(self.recomputation),
            ranges: add(self.ranges),
        }
    }

    /// The planner that fits the budget, if one does, as options of a call: the one that needs the fewest means.
    pub fn fitting(&self, budget: u64) -> Option<&'static str> {
        let kinds = [
            (self.whole_tensors, "--planner swap-only"),
            (self.recomputation, "--planner auto"),
            (self.ranges, "--planner auto --ranges"),
        ];
        kinds.into_iter().find(|(floor, _)| *floor <= budget).map(|(_, options)| options)
    }
}

impl fmt::Display for Floors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = [
            ("swapping whole tensors only", self.whole_tensors),
            ("with recomputation", self.recomputation),
            ("with ranges of tensors, too", self.ranges),
        ];
        write!(f, "The smallest budgets for which there is a plan:")?;
        kinds.iter().try_for_each(|(kind, bytes)| {
            write!(f, "\n  {kind}: {} ({bytes} bytes)", Bytes(*bytes).rounded_up())
        })
    }
}

/// The smallest number that `asks` grants, which grants `most`; a refusal returns an estimate of that number.
fn smallest(most: u64, asks: impl Fn(u64) -> Result<(), u64>) -> u64 {
    // The most frequent results are tried first: nothing below `most`, then the estimate from the refusal of 0.
    let Some(Ok(())) = most.checked_sub(1).map(&asks) else { return most };
    let (mut refused, mut granted) = match asks(0) {
        Ok(()) => return 0,
        Err(needed) if 0 < needed && needed < most && asks(needed).is_ok() => match asks(needed - 1) {
            Err(_) => return needed,
            Ok(()) => (0, needed - 1),
        },
        Err(_) => (0, most - 1),
    };
    while granted - refused > 1 {
        let middle = refused.midpoint(granted);
        match asks(middle) {
            Ok(()) => granted = middle,
            Err(_) => refused = middle,
        }
    }
    granted
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use lmsc_planners::instance::Instance;

    use super::*;

    #[test]
    fn a_plan_is_found_at_the_floor_and_none_a_byte_below() {
        for name in ["dag_resnet50_224_b64", "chain_vgg16_224_b32", "tiny_rand6_0"] {
            let path = format!("{}/../testdata/instances/{name}.json", env!("CARGO_MANIFEST_DIR"));
            let problem = Instance::parse(&std::fs::read_to_string(path).unwrap()).unwrap().problem;
            let floors = Floors::of(&problem);
            let fits = |name: &str, recompute, granularity, budget| {
                let request = Request { recompute, granularity, effort: 1, ..Request::new(&problem, budget) };
                planner(name).unwrap().plan(&request).is_ok()
            };
            for (name, recompute, granularity, floor) in [
                ("swap-only", false, Granularity::Whole, floors.whole_tensors),
                ("auto", true, Granularity::Whole, floors.recomputation),
                ("auto", true, Granularity::Ranges, floors.ranges),
            ] {
                assert!(fits(name, recompute, granularity, floor), "{name}");
                assert!(!fits(name, recompute, granularity, floor - 1), "{name}");
            }
            assert!(floors.ranges <= floors.recomputation && floors.recomputation <= floors.whole_tensors);
            assert_eq!(floors.fitting(floors.whole_tensors), Some("--planner swap-only"));
            assert_eq!(floors.fitting(floors.ranges - 1), None);
        }
    }

    #[test]
    fn the_smallest_is_found_whatever_refusals_say() {
        for (most, floor) in [(0, 0), (1, 0), (1, 1), (100, 100), (100, 99), (100, 1), (1 << 40, 12_345_678)]
        {
            for claim in [0, floor, floor + 1, floor / 2, u64::MAX] {
                let asked = Cell::new(0);
                let asks = |n: u64| {
                    asked.set(asked.get() + 1);
                    if n >= floor { Ok(()) } else { Err(claim) }
                };
                assert_eq!(smallest(most, asks), floor);
                assert!(asked.get() <= if claim == floor { 4 } else { 44 });
            }
        }
    }
}

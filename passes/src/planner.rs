//! The planners that a program knows, and the pipeline of each.

use lmsc_plan::planners::call::CallOption;
use lmsc_plan::planners::{self, Planner};

use crate::Pipeline;

/// A planner that rewrites the graph by passes of its own. It is no planner of problems, and makes no plan to save.
#[derive(Debug)]
pub struct GraphPlanner {
    /// Kebab-case; the value of `--planner`.
    pub name: &'static str,
    /// A noun phrase without a full stop.
    pub summary: &'static str,
    /// The planner's own options, which `--planner 'name{option=value}'` sets.
    pub options: &'static [CallOption],
    /// A sentence about the options.
    pub remark: &'static str,
    /// The passes of the main command with this planner.
    pub pipeline: fn() -> Pipeline<'static>,
    /// Whether a call that sets the option of this name takes it as it is, instead of having it tuned for the budget.
    pub is_tuned: fn(&str) -> bool,
    /// Whether a call that sets the option of this name may make a plan that does not keep within the budget.
    pub bends: fn(&str) -> bool,
}

/// A planner of any kind.
#[derive(Clone, Copy, Debug)]
pub enum AnyPlanner {
    /// It plans the problem of a graph, and the pass `plan` carries out its plan.
    OfProblems(&'static Planner),
    /// It rewrites the graph itself.
    OfGraphs(&'static GraphPlanner),
}

impl From<&'static Planner> for AnyPlanner {
    fn from(planner: &'static Planner) -> AnyPlanner {
        AnyPlanner::OfProblems(planner)
    }
}

impl AnyPlanner {
    /// Its name, the value of `--planner`.
    pub fn name(self) -> &'static str {
        match self {
            AnyPlanner::OfProblems(planner) => planner.name,
            AnyPlanner::OfGraphs(planner) => planner.name,
        }
    }

    /// Its description, a noun phrase without a full stop.
    pub fn summary(self) -> &'static str {
        match self {
            AnyPlanner::OfProblems(planner) => planner.summary,
            AnyPlanner::OfGraphs(planner) => planner.summary,
        }
    }

    /// The options that it declares.
    pub fn options(self) -> &'static [CallOption] {
        match self {
            AnyPlanner::OfProblems(planner) => planner.options,
            AnyPlanner::OfGraphs(planner) => planner.options,
        }
    }

    /// The passes of the main command with this planner.
    pub fn pipeline(self) -> Pipeline<'static> {
        match self {
            AnyPlanner::OfProblems(_) => Pipeline::planned(),
            AnyPlanner::OfGraphs(planner) => (planner.pipeline)(),
        }
    }

    /// The planner, if it is one of problems.
    pub fn of_problems(self) -> Option<&'static Planner> {
        match self {
            AnyPlanner::OfProblems(planner) => Some(planner),
            AnyPlanner::OfGraphs(_) => None,
        }
    }

    /// The planner, if it is one of graphs.
    pub fn of_graphs(self) -> Option<&'static GraphPlanner> {
        match self {
            AnyPlanner::OfProblems(_) => None,
            AnyPlanner::OfGraphs(planner) => Some(planner),
        }
    }
}

/// The planners that a program knows, found by name. A program that has more than [`OURS`] lists them in a static of its own.
#[derive(Clone, Copy, Debug)]
pub struct Planners {
    /// Planners of problems, in sets.
    pub of_problems: &'static [&'static &'static [Planner]],
    /// Planners of graphs.
    pub of_graphs: &'static [&'static GraphPlanner],
}

/// The planners of this project.
pub static OURS: Planners = Planners { of_problems: &[&planners::PLANNERS], of_graphs: &[] };

impl Planners {
    /// All planners, in their order.
    pub fn iter(self) -> impl Iterator<Item = AnyPlanner> {
        let of_problems = self.of_problems.iter().copied().copied().flatten().map(AnyPlanner::OfProblems);
        of_problems.chain(self.of_graphs.iter().copied().map(AnyPlanner::OfGraphs))
    }

    /// The planner with this name, or with a name that it had in an earlier version.
    pub fn named(self, name: &str) -> Option<AnyPlanner> {
        let earlier = || planners::planner(name).map(AnyPlanner::OfProblems);
        self.iter().find(|planner| planner.name() == name).or_else(earlier)
    }
}

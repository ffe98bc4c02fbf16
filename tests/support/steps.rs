//! Runs rewritten steps and keeps their results.

use std::collections::BTreeMap;

use lmsc::run::synthetic;
use lmsc_ir::program::{Checked, Program, Role};
use lmsc_ir::{Bytes, Graph};
use lmsc_passes::{Lowering, PassCx, PassError, Pipeline, Workspaces, lower};
use lmsc_plan::planners::planner;
use lmsc_runtime::{DeviceSession, HostLink, HostSession, Rehearsal, StepObserver, Turn, workspaces};

/// How many steps are run.
pub(crate) const STEPS: u64 = 3;

/// Kept data of values, by name.
pub(crate) type Values<V> = BTreeMap<String, V>;

/// Results of a run: the outputs of every step, and all given contents at the end.
#[derive(PartialEq)]
pub(crate) struct Left<V> {
    pub(crate) outputs: Vec<Values<V>>,
    pub(crate) given: Values<V>,
}

impl<V: PartialEq> Left<V> {
    /// The first value that is another one.
    pub(crate) fn difference(&self, other: &Left<V>) -> Option<String> {
        let steps = self.outputs.iter().chain([&self.given]).zip(other.outputs.iter().chain([&other.given]));
        for (step, (ours, theirs)) in steps.enumerate() {
            if let Some((name, _)) = ours.iter().find(|(name, value)| theirs.get(*name) != Some(value)) {
                return Some(format!("{name} after step {step}"));
            }
        }
        None
    }
}

/// The program of the graph, with the workspaces that kernels of the host need.
pub(crate) fn lowered(graph: &Graph, budget: Option<Bytes>) -> Program {
    let needed = workspaces(graph);
    let workspace = |node| needed.get(&node).copied().unwrap_or_default();
    lower(graph, &Lowering { arena: budget.filter(|_| graph.has_addresses()), workspace: &workspace })
        .unwrap_or_else(|e| panic!("{e}\n{}", graph.to_text()))
}

/// The names of the caller's outputs and of the given tensors.
fn names(program: &Program) -> (Vec<String>, Vec<String>) {
    let outputs = program.outputs.iter().map(|output| output.tensor.name.to_string()).collect();
    // Inputs may be overwritten once they have been used.
    let given = program.given.iter().map(|given| given.tensor.name.to_string()).collect();
    (outputs, given)
}

pub(crate) fn start(program: &Program, mut set: impl FnMut(&str, &[u8]) -> bool) {
    for given in program.given.iter().filter(|given| given.data.is_none()) {
        let name = &*given.tensor.name;
        assert!(set(name, &synthetic(name, &given.tensor.ty, 1)), "{name}");
    }
}

/// Runs the program in bad orders, and returns the most bytes in use, too. With `skips`, closed gates skip the
/// operators that they multiply. `keep` extracts the kept data from a value's bytes.
pub(crate) fn rehearse<V>(
    program: &Program,
    seed: u64,
    skips: bool,
    keep: impl Fn(&[u8]) -> V,
) -> (Left<V>, u64) {
    let mut rehearsal = Rehearsal::new(program.clone(), seed).unwrap_or_else(|e| panic!("{e}"));
    rehearsal.skip_closed(skips);
    let (outputs, given) = names(program);
    start(program, |name, bytes| rehearsal.set(name, bytes));
    let of = |rehearsal: &Rehearsal, names: &[String]| -> Values<V> {
        names.iter().map(|name| (name.clone(), keep(rehearsal.get(name).unwrap()))).collect()
    };
    let mut steps = Vec::new();
    rehearsal.run(STEPS, 5, |rehearsal, number| {
        if number > 0 {
            steps.push(of(rehearsal, &outputs));
        }
        for input in program.given.iter().filter(|g| g.role == Role::Input && g.data.is_none()) {
            let bytes = synthetic(&input.tensor.name, &input.tensor.ty, 1 + number);
            assert!(rehearsal.set(&input.tensor.name, &bytes));
        }
    });
    steps.push(of(&rehearsal, &outputs));
    (Left { outputs: steps, given: of(&rehearsal, &given) }, rehearsal.peak())
}

/// Feeds inputs and keeps outputs, reduced by `keep`.
pub(crate) struct Feeder<'a, V, K> {
    program: &'a Program,
    keep: &'a K,
    /// The outputs of each step that has one behind it.
    pub(crate) steps: Vec<Values<V>>,
}

impl<'a, V, K: Fn(&[u8]) -> V> Feeder<'a, V, K> {
    pub(crate) fn new(program: &'a Program, keep: &'a K) -> Feeder<'a, V, K> {
        Feeder { program, keep, steps: Vec::new() }
    }
}

impl<V, K: Fn(&[u8]) -> V> StepObserver for Feeder<'_, V, K> {
    fn turn(&mut self, turn: &mut Turn<'_>) -> Result<(), String> {
        if turn.has_outputs {
            let names = self.program.outputs.iter().map(|output| output.tensor.name.to_string());
            let value = |name: String| (name.clone(), (self.keep)(&turn.output(&name).unwrap()));
            self.steps.push(names.map(value).collect());
        }
        for input in self.program.given.iter().filter(|g| g.role == Role::Input && g.data.is_none()) {
            let bytes = synthetic(&input.tensor.name, &input.tensor.ty, 1 + turn.number);
            assert!(turn.set(&input.tensor.name, &bytes));
        }
        Ok(())
    }
}

/// Runs the program on three threads, as [`rehearse`] does in one.
pub(crate) fn execute<V>(program: Program, skips: bool, keep: impl Fn(&[u8]) -> V) -> (Left<V>, u64) {
    let (outputs, given) = names(&program);
    let mut session = HostSession::new(Checked::new(program.clone()).unwrap(), HostLink::default())
        .unwrap_or_else(|e| panic!("{e}"));
    session.set_seed(5);
    session.skip_closed(skips);
    start(&program, |name, bytes| session.set(name, bytes).unwrap());
    let mut feeder = Feeder::new(&program, &keep);
    let measured = session.run(STEPS, &mut feeder).unwrap();
    let mut steps = feeder.steps;
    let mut of = |names: &[String]| -> Values<V> {
        names.iter().map(|name| (name.clone(), keep(&session.get(name).unwrap().unwrap()))).collect()
    };
    steps.push(of(&outputs));
    (Left { outputs: steps, given: of(&given) }, measured.peak)
}

/// The graph rewritten for the budget, or for a little more where addresses need that; with the budget. By `swap-only`, large
/// tensors travel in ranges.
pub(crate) fn rewritten(
    graph: &Graph,
    name: &str,
    addresses: bool,
    mut budget: u64,
) -> Option<(Graph, Bytes)> {
    for _ in 0..8 {
        let cx = PassCx {
            budget: Some(Bytes(budget)),
            planner: planner(name),
            ranges: name == "swap-only",
            effort: Some(1),
            addresses,
            workspaces: Some(Workspaces::new(workspaces)),
            target: Some(lmsc_plan::Target::built_in("host").unwrap().clone()),
            ..PassCx::default()
        };
        let passes = Pipeline::of_planner(name);
        let mut rewritten = graph.clone();
        match passes.run(&mut rewritten, &cx) {
            Ok(_) => return Some((rewritten, Bytes(budget))),
            Err(PassError::Refused(_)) => budget += budget / 12,
            Err(error) => panic!("{name} at {budget}: {error}"),
        }
    }
    None
}

/// The smallest budget of any plan, and the peak of the unchanged step.
pub(crate) fn range(graph: &Graph) -> (u64, u64) {
    let cx = PassCx { workspaces: Some(Workspaces::new(workspaces)), ..PassCx::default() };
    let needed = lmsc_passes::bridge(graph, &cx).unwrap().problem.needed_bytes();
    (needed.into_iter().max().unwrap_or(0), cx.memory(graph).peak().0)
}

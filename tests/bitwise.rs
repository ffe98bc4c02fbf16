//! A rewritten step computes the same bits as the original, whatever the budget and the planner, in bad orders of its
//! streams and with everything overwritten that is not in use any more.
//!
//! Each model is run at five budgets by planners in turn, but for large ones, which `LMSC_REPORT=1` lists. `LMSC_BITWISE=all`
//! runs all of them by every planner that finds a plan.

mod support;

use std::collections::BTreeMap;

use lmsc::run::synthetic;
use lmsc_ir::program::{Checked, Flaw, Program, Role, Stream, check};
use lmsc_ir::{Bytes, Graph};
use lmsc_passes::{Lowering, PassCx, PassError, lower, pass_named, pipeline, run_pipeline};
use lmsc_plan::planners::planner;
use lmsc_runtime::{Link, Rehearsal, Session, Turn, Watch, workspaces};
use support::models::{load, models};

const STEPS: u64 = 3;

/// Values by name.
type Values = BTreeMap<String, Vec<u8>>;

/// What a run leaves: the outputs of every step, and everything that is given at the end.
#[derive(PartialEq)]
struct Left {
    outputs: Vec<Values>,
    given: Values,
}

impl Left {
    /// The first value that is another one.
    fn difference(&self, other: &Left) -> Option<String> {
        let steps = self.outputs.iter().chain([&self.given]).zip(other.outputs.iter().chain([&other.given]));
        for (step, (ours, theirs)) in steps.enumerate() {
            if let Some((name, _)) = ours.iter().find(|(name, bytes)| theirs.get(*name) != Some(bytes)) {
                return Some(format!("{name} after step {step}"));
            }
        }
        None
    }
}

fn lowered(graph: &Graph, budget: Option<Bytes>) -> Program {
    let needed = workspaces(graph);
    let workspace = |node| needed.get(&node).copied().unwrap_or_default();
    lower(graph, &Lowering { arena: budget.filter(|_| graph.has_addresses()), workspace: &workspace })
        .unwrap_or_else(|e| panic!("{e}\n{}", graph.to_text()))
}

/// The names of what the caller gets and of what is given.
fn names(program: &Program) -> (Vec<String>, Vec<String>) {
    let outputs = program.outputs.iter().map(|output| output.tensor.name.to_string()).collect();
    // Inputs may be overwritten once they have been used.
    let given = program.given.iter().map(|given| given.tensor.name.to_string()).collect();
    (outputs, given)
}

fn start(program: &Program, mut set: impl FnMut(&str, &[u8]) -> bool) {
    for given in program.given.iter().filter(|given| given.data.is_none()) {
        let name = &*given.tensor.name;
        assert!(set(name, &synthetic(name, &given.tensor.ty, 1)), "{name}");
    }
}

/// Runs the program in bad orders.
fn rehearse(program: &Program, seed: u64) -> (Left, u64) {
    let mut rehearsal = Rehearsal::new(program.clone(), seed).unwrap_or_else(|e| panic!("{e}"));
    let (outputs, given) = names(program);
    start(program, |name, bytes| rehearsal.set(name, bytes));
    let of = |rehearsal: &Rehearsal, names: &[String]| -> Values {
        names.iter().map(|name| (name.clone(), rehearsal.get(name).unwrap().to_vec())).collect()
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

/// Gives inputs and keeps outputs.
struct Feeder<'a> {
    program: &'a Program,
    outputs: &'a [String],
    steps: Vec<Values>,
}

impl Watch for Feeder<'_> {
    fn turn(&mut self, turn: &mut Turn<'_>) -> Result<(), String> {
        if turn.has_outputs {
            let value = |name: &String| (name.clone(), turn.output(name).unwrap().into_owned());
            self.steps.push(self.outputs.iter().map(value).collect());
        }
        for input in self.program.given.iter().filter(|g| g.role == Role::Input && g.data.is_none()) {
            let bytes = synthetic(&input.tensor.name, &input.tensor.ty, 1 + turn.number);
            assert!(turn.set(&input.tensor.name, &bytes));
        }
        Ok(())
    }
}

/// Runs the program on three threads.
fn execute(program: Program) -> (Left, u64) {
    let (outputs, given) = names(&program);
    let mut session = Session::new(Checked::new(program.clone()).unwrap(), Link::default())
        .unwrap_or_else(|e| panic!("{e}"));
    session.seed = 5;
    start(&program, |name, bytes| session.set(name, bytes));
    let mut feeder = Feeder { program: &program, outputs: &outputs, steps: Vec::new() };
    let measured = session.run(STEPS, &mut feeder).unwrap();
    let mut steps = feeder.steps;
    let mut of = |names: &[String]| -> Values {
        names.iter().map(|name| (name.clone(), session.get(name).unwrap())).collect()
    };
    steps.push(of(&outputs));
    (Left { outputs: steps, given: of(&given) }, measured.peak)
}

/// The graph rewritten for the budget, or for a little more where addresses need that; with the budget.
fn rewritten(graph: &Graph, name: &str, addresses: bool, mut budget: u64) -> Option<(Graph, Bytes)> {
    for _ in 0..8 {
        let cx = PassCx {
            budget: Some(Bytes(budget)),
            planner: planner(name).filter(|_| name != "tflms"),
            effort: Some(1),
            addresses,
            workspaces: Some(workspaces),
            target: Some(lmsc_plan::Target::built_in("host").unwrap().clone()),
            ..PassCx::default()
        };
        let passes: Vec<_> = pipeline(name).iter().map(|name| pass_named(name).unwrap()).collect();
        let mut rewritten = graph.clone();
        match run_pipeline(&mut rewritten, &passes, &cx, &mut |_, _, _| {}) {
            Ok(_) => return Some((rewritten, Bytes(budget))),
            Err(PassError::DoesNotFit(_)) => budget += budget / 12,
            Err(error) => panic!("{name} at {budget}: {error}"),
        }
    }
    None
}

/// The least that any plan needs, and what the step needs as it is.
fn range(graph: &Graph) -> (u64, u64) {
    let cx = PassCx { workspaces: Some(workspaces), ..PassCx::default() };
    let needed = lmsc_passes::bridge(graph, &cx).unwrap().problem.needed_bytes();
    (needed.into_iter().max().unwrap_or(0), cx.memory(graph).peak().0)
}

/// By name, and whether with addresses.
const PLANNERS: [(&str, bool); 6] =
    [("auto", true), ("tflms", true), ("window", true), ("lru", true), ("optimal", true), ("auto", false)];

/// Those that have no turn.
const OTHERS: [(&str, bool); 7] = [
    ("greedy", true),
    ("dynprog", true),
    ("vdnn", true),
    ("autoswap", true),
    ("memonger", true),
    ("tflms-best", true),
    ("dqn", true),
];

#[test]
fn rewritten_steps_compute_the_same_bits() {
    let all = std::env::var_os("LMSC_BITWISE").is_some_and(|value| value == "all");
    let report = std::env::var_os("LMSC_REPORT").is_some();
    let (mut runs, mut copies) = (0, 0);
    for (number, path) in models().into_iter().enumerate() {
        let graph = load(&path);
        let (floor, peak) = range(&graph);
        let name = path.strip_prefix(support::models::MODELS).unwrap().display().to_string();
        if peak > 2 << 20 && !all {
            if report {
                println!("{name}: left out, it needs {}", Bytes(peak));
            }
            continue;
        }
        let began = std::time::Instant::now();
        let original = lowered(&graph, None);
        check(&original).unwrap_or_else(|e| panic!("{name}: {e}\n{original}"));
        let (expected, needed) = rehearse(&original, 0);
        assert!(needed <= peak, "{name}");
        let (executed, _) = execute(original);
        assert_eq!(expected.difference(&executed), None, "{name}, as it is");
        for (step, share) in [0, 15, 35, 65, 100].into_iter().enumerate() {
            let turn = (number + step) % PLANNERS.len();
            let planners = match all {
                true => [&PLANNERS[..], &OTHERS].concat(),
                false => vec![PLANNERS[turn]],
            };
            for (planner, addresses) in planners {
                let budget = floor + (peak - floor) * share / 100;
                let Some((graph, budget)) = rewritten(&graph, planner, addresses, budget) else { continue };
                let program = lowered(&graph, Some(budget));
                let what = format!("{name}, {planner}, {budget}, addresses {addresses}");
                check(&program).unwrap_or_else(|e| panic!("{what}: {e}\n{program}"));
                assert!(!graph.has_addresses() || program.arena <= budget, "{what}");
                let (found, needed) = rehearse(&program, step as u64);
                assert!(needed <= program.arena.0, "{what}");
                assert_eq!(expected.difference(&found), None, "{what}");
                copies += program.stream(Stream::Out).len() + program.stream(Stream::In).len();
                let (executed, measured) = execute(program);
                assert_eq!(expected.difference(&executed), None, "{what}, executed");
                assert!(measured <= budget.0 || !addresses, "{what}: {}", Bytes(measured));
                runs += 1;
            }
        }
        if report {
            println!("{name}: {:.1} s", began.elapsed().as_secs_f64());
        }
    }
    assert!(runs > 100 && copies > 1000, "{runs} runs, {copies} copies");
}

#[test]
fn a_missing_wait_is_refused_and_shows_in_bad_orders() {
    let programs = models().into_iter().map(|path| {
        let graph = load(&path);
        let (floor, peak) = range(&graph);
        let (graph, budget) = rewritten(&graph, "lru", true, floor)?;
        let program = lowered(&graph, Some(budget));
        let waits = program.streams.iter().flatten().map(|command| command.waits.len()).sum::<usize>();
        (peak < 4 << 20 && (6..40).contains(&waits)).then_some(program)
    });
    let program = programs.flatten().next().expect("some model is swapped");
    let (expected, _) = rehearse(&program, 0);
    let (mut noticed, mut waits) = (0, 0);
    for stream in Stream::ALL {
        for index in 0..program.stream(stream).len() {
            for wait in 0..program.stream(stream)[index].waits.len() {
                let mut wrong = program.clone();
                wrong.streams[stream as usize][index].waits.remove(wait);
                let flaw = check(&wrong).expect_err("a wait is missing");
                assert!(matches!(flaw, Flaw::Race { .. } | Flaw::Stale { .. }), "{flaw}");
                noticed += usize::from((0..6).any(|seed| rehearse(&wrong, seed).0 != expected));
                waits += 1;
            }
        }
    }
    assert!(2 * noticed > waits, "{noticed} of {waits} missing waits show");
}

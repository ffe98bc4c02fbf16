//! Runs passes, prints the graph between them, and the time of each.

use std::collections::BTreeSet;
use std::io::Write;
use std::time::{Duration, Instant};

use lmsc_ir::{Graph, words};
use lmsc_passes::{CallOptions, Pass, PassCx, Pipeline, REGISTRY, Ran, pass_named};
use lmsc_plan::tflms::{self, Scope};
use similar::TextDiff;

use crate::job::Look;
use crate::{Code, Error};

/// Runs the passes, and prints to standard error the graphs that the options select.
///
/// # Errors
/// The errors of the passes, or an unknown pass name.
pub(crate) fn run(
    graph: &mut Graph,
    passes: &Pipeline<'_>,
    cx: &PassCx,
    look: &Look,
) -> Result<Vec<Ran>, Error> {
    for name in &look.print_after {
        if pass_named(name).is_none() {
            let instead = words::instead(name, REGISTRY.iter().map(|pass| pass.name()), "passes");
            return Err(Error::new(Code::Option, format!("there is no pass `{name}`; {instead}")));
        }
    }
    for options in passes.options_of("swap").chain([&cx.planner_options]) {
        known_names(graph, options, &cx.optimizer_scopes)?;
    }
    let mut before = look.print_changed.then(|| graph.to_text());
    let mut observer = |number: usize, pass: &dyn Pass, graph: &Graph| {
        let name = pass.name();
        if look.print_after_all || look.print_after.iter().any(|n| n == name) {
            print(&format!("// after {number}. {name}\n{}", graph.to_text()));
        }
        if let Some(before) = &mut before {
            let after = graph.to_text();
            print(&difference(before, &after, &format!("{number}. {name}")));
            *before = after;
        }
    };
    Ok(passes.run_observed(graph, cx, &mut observer)?)
}

/// Refuses scopes without a node.
pub(crate) fn known_scopes(graph: &Graph, option: &str, scopes: &[Scope]) -> Result<(), Error> {
    let names = || graph.order().iter().map(|&id| &*graph.node(id).name);
    match scopes.iter().find(|scope| !names().any(|name| scope.contains(name))) {
        None => Ok(()),
        Some(scope) => {
            let scope = scope.to_string();
            let instead = words::instead(&scope, names(), "nodes");
            let message = format!("{option} {scope}: the graph has no node in this scope; {instead}");
            Err(Error::new(Code::Option, message))
        }
    }
}

/// Refuses names of operators and nodes that are not in the graph, in options that select swaps.
fn known_names(graph: &Graph, call: &CallOptions, optimizer_scopes: &[Scope]) -> Result<(), Error> {
    let nodes = || graph.order().iter().map(|&id| graph.node(id));
    let refuse = |option: &str, name: &str, there_are: Vec<String>, many: &str| {
        let instead = words::instead(name, there_are.iter().map(|n| &**n), many);
        Err(Error::new(Code::Option, format!("{option} {name}: the graph has none of this name; {instead}")))
    };
    let tflms = tflms::Params::of(call);
    for (option, names) in [("incl-types", &tflms.incl_types), ("excl-types", &tflms.excl_types)] {
        for name in names {
            if !nodes().any(|n| *name == *n.op.name() || *name == n.op.to_string()) {
                let ops: BTreeSet<String> = nodes().map(|n| n.op.to_string()).collect();
                return refuse(option, name, ops.into_iter().collect(), "operators");
            }
        }
    }
    let scopes = [
        ("incl-scopes", &tflms.incl_scopes[..]),
        ("excl-scopes", &tflms.excl_scopes),
        ("starting-scopes", &tflms.starting_scopes),
        ("--optimizer-scopes", optimizer_scopes),
    ];
    scopes.into_iter().try_for_each(|(option, scopes)| known_scopes(graph, option, scopes))?;
    for name in &tflms.starting_op_names {
        if !nodes().any(|n| *name == *n.name) {
            let there_are = nodes().map(|n| n.name.to_string()).collect();
            return refuse("starting-op-names", name, there_are, "nodes");
        }
    }
    Ok(())
}

/// The changes of the pass as a unified diff; empty if there are none.
fn difference(before: &str, after: &str, pass: &str) -> String {
    let diff = TextDiff::from_lines(before, after);
    diff.unified_diff().header(&format!("before {pass}"), &format!("after {pass}")).to_string()
}

/// The result, and the elapsed time.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let started = Instant::now();
    (work(), started.elapsed())
}

/// With `--timing`, prints the times of the passes, of the verifier after each, and of the equivalence check.
pub(crate) fn print_times(look: &Look, ran: &[Ran], proven_in: Duration) {
    if look.timing {
        print(&times(ran, proven_in));
    }
}

fn times(ran: &[Ran], proven_in: Duration) -> String {
    let row = |name: &str, took: &str, verified: &str| {
        let row = format!("{name:<31} {took:>12} {verified:>12}");
        format!("{}\n", row.trim_end())
    };
    let in_words = |time: Duration| format!("{:.3} ms", time.as_secs_f64() * 1e3);
    let of_verifier =
        |ran: &Ran| if ran.outcome.changed { in_words(ran.verified_in) } else { "-".to_owned() };
    let mut table = row("pass", "time", "verifier");
    for (index, ran) in ran.iter().enumerate() {
        table += &row(&format!("{}. {}", index + 1, ran.pass), &in_words(ran.took), &of_verifier(ran));
    }
    let passes: Duration = ran.iter().map(|ran| ran.took).sum();
    let verifier: Duration = ran.iter().map(|ran| ran.verified_in).sum();
    table += &row("all passes", &in_words(passes), &in_words(verifier));
    table + &row("equivalence check", &in_words(proven_in), "")
}

fn print(text: &str) {
    // A closed standard error does not stop the command.
    _ = std::io::stderr().lock().write_all(words::shown(text).as_bytes());
}

//! Runs passes, prints the graph between them, and the time of each.

use std::io::Write;
use std::time::{Duration, Instant};

use lmsc_ir::{Graph, words};
use lmsc_passes::{Pass, PassCx, Pipeline, Ran};
use lmsc_plan::Scope;
use similar::TextDiff;

use crate::job::Look;
use crate::known::passes;
use crate::{Code, Error};

/// Runs the passes, and prints to standard error the graphs that the options select.
///
/// # Errors
/// The errors of the passes, or an unknown pass name.
pub(crate) fn run(
    graph: &mut Graph,
    pipeline: &Pipeline<'_>,
    cx: &PassCx,
    look: &Look,
) -> Result<Vec<Ran>, Error> {
    for name in &look.print_after {
        let known = passes();
        if !known.iter().any(|pass| pass.name() == name) {
            let instead = words::instead(name, known.iter().map(|pass| pass.name()), "passes");
            return Err(Error::new(Code::Option, format!("there is no pass `{name}`; {instead}")));
        }
    }
    known_scopes(graph, "--optimizer-scopes", &cx.optimizer_scopes)?;
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
    Ok(pipeline.run_observed(graph, cx, &mut observer)?)
}

/// Refuses scopes without a node.
pub(crate) fn known_scopes(graph: &Graph, option: &str, scopes: &[Scope]) -> Result<(), Error> {
    Scope::all_have_nodes(graph, option, scopes).map_err(|fault| Error::new(Code::Option, fault))
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

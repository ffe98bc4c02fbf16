//! `lmsc reduce`: the reduced graph is small, fails in the same way, and is the same on every run.

use crate::support::{Bench, Outcome, snapshot};
use lmsc_ir::Graph;

const FOUR_LAYERS: &str = include_str!("../testdata/passes/swap/fewest-bytes-for-a-budget.lms");

/// `lmsc reduce @/case.lms` with these words besides, and with this command.
fn reduce(bench: &Bench, more: &[&str], failing: &str) -> Outcome {
    let case = bench.path("case.lms");
    let failing = failing.replace("lmsc ", concat!(env!("CARGO_BIN_EXE_lmsc"), " "));
    let words = ["reduce", case.to_str().unwrap(), "--failing", &failing];
    bench.call(words.iter().chain(more), b"")
}

fn reduced(bench: &Bench) -> Graph {
    let text = std::fs::read_to_string(bench.path("case.reduced.lms")).unwrap();
    let graph = Graph::parse(&text).unwrap();
    lmsc_ir::verify(&graph).unwrap();
    graph
}

#[test]
fn nodes_that_the_command_needs_are_kept() {
    let bench = Bench::new();
    bench.write("case.lms", FOUR_LAYERS);
    let outcome = reduce(&bench, &[], "! grep -q MeanGrad {}");
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert_eq!(bench.files(), ["case.lms", "case.reduced.lms"]);
    let graph = reduced(&bench);
    snapshot("reduce", "one-operator", &graph.to_text());

    let again = reduce(&bench, &["-o", bench.path("again.lms").to_str().unwrap()], "! grep -q MeanGrad {}");
    let told = |outcome: &Outcome| {
        String::from_utf8(outcome.stdout.clone()).unwrap().lines().next().map(str::to_owned)
    };
    assert_eq!(told(&again), told(&outcome));
    assert_eq!(std::fs::read_to_string(bench.path("again.lms")).unwrap(), graph.to_text());
}

/// A refusal is kept: with the exit status 1 of lmsc, not with the 2 of a graph that it does not read.
#[test]
fn the_status_is_that_of_the_beginning() {
    let bench = Bench::new();
    bench.write("case.lms", FOUR_LAYERS);
    let outcome = reduce(&bench, &[], "lmsc {} --budget 1MiB --planner lru -q");
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let graph = reduced(&bench);
    assert!(graph.order().len() <= 2, "{}", graph.to_text());
    let still = bench.run("@/case.reduced.lms --budget 1MiB --planner lru -q");
    assert_eq!(still.code, 1, "{still:?}");
}

#[test]
fn edges_updates_and_recomputed_nodes_stay_as_long_as_they_matter() {
    let bench = Bench::new();
    let text = "g (float[4] x, float[4] w, float[] lr) => (float[4] y, float[4] z) {
        [a] float[4] a = Relu(x)
        [b] float[4] b = Tanh(a)
        [c] float[4] y = Mul(b, w)
        [again] float[4] a2 = Relu(x) recomputes [a]
        [d] float[4] z = Mul(a2, a2)
        [sgd] float[4] w_new = ai.lmsc.SGDOptimizer(lr, w, y) updates (w as w_new) after [again]
    }";
    bench.write("case.lms", text);
    let kept = "grep -q recomputes {} && grep -q updates {} && grep -q after {}";
    let outcome = reduce(&bench, &[], &format!("! ({kept})"));
    assert_eq!(outcome.code, 0, "{outcome:?}");
    snapshot("reduce", "edges", &reduced(&bench).to_text());
}

#[test]
fn calls_that_cannot_be_reduced_are_refused() {
    let bench = Bench::new();
    bench.write("case.lms", FOUR_LAYERS);
    for (name, more, failing) in [
        ("succeeds", &[][..], "true"),
        ("no-such-command", &[], "lmsk"),
        ("takes-too-long", &["--timeout", "0"], "sleep 1000; true"),
        ("timeout-is-no-number", &["--timeout", "soon"], "false"),
        ("output-is-onnx", &["-o", "x.onnx"], "false"),
    ] {
        let outcome = reduce(&bench, more, failing);
        snapshot("reduce", name, &bench.anonymous(&outcome.stderr));
        assert_eq!(outcome.code, 2, "{outcome:?}");
        assert_eq!(bench.files(), ["case.lms"]);
    }
}

/// The command sends the signal when it runs for the second time, and would then take long.
#[cfg(unix)]
#[test]
// SIGTERM, since SIGINT may be ignored where the tests run in the background.
fn a_signal_ends_it_and_leaves_the_smallest_graph_so_far() {
    let bench = Bench::new();
    bench.write("case.lms", FOUR_LAYERS);
    let ran = bench.path("ran");
    let ran = ran.display();
    let failing =
        format!("if test -e {ran}; then kill -TERM $PPID; sleep 1000; fi; touch {ran}; test ! -e {{}}");
    let outcome = reduce(&bench, &[], &failing);
    assert_eq!(outcome.code, 130, "{outcome:?}");
    snapshot("reduce", "ended-by-a-signal", &bench.anonymous(&outcome.stderr));
    assert_eq!(reduced(&bench).to_text(), Graph::parse(FOUR_LAYERS).unwrap().to_text());
}

//! A rewritten step computes the same bits as the original for every budget and planner, in bad orders of its
//! streams and with all unused memory overwritten.
//!
//! Each model is run at five budgets by planners in turn, but for large ones, which `LMSC_REPORT=1` lists; outside of CI, one in
//! eight models. `LMSC_BITWISE=WORD` runs those whose path contains the word, or `all`, by every planner that finds a plan at
//! every budget: hours of two cores for all.

use crate::support::models::{load, models};
use crate::support::one_in;
use crate::support::steps::{execute, lowered, range, rehearse, rewritten};
use lmsc_ir::program::{Program, ProgramFlaw, Stream, check};
use lmsc_ir::{Bytes, Graph};
use xxhash_rust::xxh3::xxh3_128;

/// Names of planners, each with or without addresses.
const PLANNERS: [(&str, bool); 6] =
    [("auto", true), ("tflms", true), ("window", true), ("lru", true), ("swap-only", true), ("auto", false)];

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
    let word = std::env::var("LMSC_BITWISE").ok();
    let all = word.is_some();
    let report = std::env::var_os("LMSC_REPORT").is_some();
    let (mut runs, mut copies) = (0, 0);
    let every = if all { 1 } else { one_in() };
    for (number, path) in models().into_iter().enumerate().step_by(every) {
        let graph = load(&path);
        let (floor, peak) = range(&graph);
        let name = path.strip_prefix(crate::support::models::MODELS).unwrap().display().to_string();
        if word.as_ref().is_some_and(|word| word != "all" && !name.contains(&**word)) {
            continue;
        }
        if peak > 2 << 20 && !all {
            if report {
                println!("{name}: left out, it needs {}", Bytes(peak));
            }
            continue;
        }
        let began = std::time::Instant::now();
        let (runs_before, mut without) = (runs, Vec::new());
        let original = lowered(&graph, None);
        check(&original).unwrap_or_else(|e| panic!("{name}: {e}\n{original}"));
        let (expected, needed) = rehearse(&original, 0, false, xxh3_128);
        assert!(needed <= peak, "{name}");
        let (executed, _) = execute(original, false, xxh3_128);
        assert_eq!(expected.difference(&executed), None, "{name}, as it is");
        for (step, share) in [0, 15, 35, 65, 100].into_iter().enumerate() {
            let turn = (number + step) % PLANNERS.len();
            let planners = if all { [&PLANNERS[..], &OTHERS].concat() } else { vec![PLANNERS[turn]] };
            for (planner, addresses) in planners {
                let budget = floor + (peak - floor) * share / 100;
                let Some((graph, budget)) = rewritten(&graph, planner, addresses, budget) else {
                    without.push(format!("{planner} at {share} %"));
                    continue;
                };
                let program = lowered(&graph, Some(budget));
                let what = format!("{name}, {planner}, {budget}, addresses {addresses}");
                check(&program).unwrap_or_else(|e| panic!("{what}: {e}\n{program}"));
                assert!(!graph.has_addresses() || program.arena <= budget, "{what}");
                let (found, needed) = rehearse(&program, step as u64, false, xxh3_128);
                assert!(needed <= program.arena.0, "{what}");
                assert_eq!(expected.difference(&found), None, "{what}");
                copies += program.stream(Stream::Out).len() + program.stream(Stream::In).len();
                let (executed, measured) = execute(program, false, xxh3_128);
                assert_eq!(expected.difference(&executed), None, "{what}, executed");
                assert!(measured <= budget.0 || !addresses, "{what}: {}", Bytes(measured));
                runs += 1;
                if report && word.is_some() {
                    println!("{what}: {:.1} s", began.elapsed().as_secs_f64());
                }
            }
        }
        if report {
            let (runs, seconds) = (runs - runs_before, began.elapsed().as_secs_f64());
            println!("{name}: {runs} runs in {seconds:.1} s; no plan by {}", without.join(", "));
        }
    }
    let some = word.is_none_or(|word| word == "all");
    assert!(
        runs > 0 && (!some || runs > 100 / every && copies > 1000 / every),
        "{runs} runs, {copies} copies"
    );
}

/// The program without one of its waits, each in turn.
fn without_a_wait(program: &Program) -> impl Iterator<Item = Program> {
    let places = Stream::ALL.into_iter().flat_map(|stream| {
        let commands = program.stream(stream).iter().enumerate();
        commands.flat_map(move |(index, command)| {
            (0..command.waits.len()).map(move |wait| (stream as usize, index, wait))
        })
    });
    places.map(|(stream, index, wait)| {
        let mut wrong = program.clone();
        wrong.streams[stream][index].waits.remove(wait);
        wrong
    })
}

/// A network of layers of 4 MiB each, trained by gradient descent.
fn large_layers() -> Graph {
    const LAYERS: usize = 3;
    let (mut inputs, mut outputs, mut nodes) = (String::new(), String::new(), String::new());
    for layer in 0..LAYERS {
        inputs += &format!(", float[1024,1024] w{layer}");
        outputs += &format!("{}float[1024,1024] v{layer}", if layer > 0 { ", " } else { "" });
        nodes += &format!("[up{layer}] float[4,1024] x{} = MatMul(x{layer}, w{layer})\n", layer + 1);
    }
    nodes += &format!("[loss] float[4,1024] d{LAYERS} = Tanh(x{LAYERS})\n");
    for layer in (0..LAYERS).rev() {
        let next = layer + 1;
        nodes += &format!(
            "[down{layer}] float[4,1024] d{layer} = Gemm<transB = 1>(d{next}, w{layer})
             [g{layer}] float[1024,1024] g{layer} = Gemm<transA = 1>(x{layer}, d{next})
             [sgd{layer}] float[1024,1024] v{layer} = ai.lmsc.SGDOptimizer(lr, w{layer}, g{layer})
                 updates (w{layer} as v{layer}) after [down{layer}]\n"
        );
    }
    let text = format!("g (float[4,1024] x0, float[] lr{inputs}) => ({outputs}) {{ {nodes} }}");
    Graph::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

#[test]
fn variables_in_ranges_compute_the_same_bits() {
    let graph = large_layers();
    lmsc_ir::verify(&graph).unwrap();
    let (floor, peak) = range(&graph);
    let (expected, _) = rehearse(&lowered(&graph, None), 0, false, xxh3_128);
    let mut homes = 0;
    for (seed, share) in [0, 5, 20, 50].into_iter().enumerate() {
        for addresses in [true, false] {
            let budget = floor + (peak - floor) * share / 100;
            let (written, budget) = rewritten(&graph, "swap-only", addresses, budget).unwrap();
            lmsc_ir::equiv::check(&graph, &written).unwrap();
            let program = lowered(&written, Some(budget));
            let what = format!("{budget}, addresses {addresses}");
            check(&program).unwrap_or_else(|e| panic!("{what}: {e}\n{program}"));
            for wrong in without_a_wait(&program) {
                let flaw = check(&wrong).expect_err("a wait is missing");
                assert!(
                    matches!(flaw, ProgramFlaw::Race { .. } | ProgramFlaw::Stale { .. }),
                    "{what}: {flaw}"
                );
            }
            let (found, needed) = rehearse(&program, seed as u64, false, xxh3_128);
            assert!(needed <= program.arena.0, "{what}");
            assert_eq!(expected.difference(&found), None, "{what}");
            let (executed, measured) = execute(program, false, xxh3_128);
            assert_eq!(expected.difference(&executed), None, "{what}, executed");
            assert!(measured <= budget.0 || !addresses, "{what}: {}", Bytes(measured));
            let nodes = written.order().iter().map(|&id| written.node(id));
            homes += nodes.filter(|node| node.op.is_join() && !node.updates.is_empty()).count();
        }
    }
    assert!(homes > 4, "only {homes} variables went back in ranges");
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
    let (expected, _) = rehearse(&program, 0, false, xxh3_128);
    let (mut noticed, mut waits) = (0, 0);
    for wrong in without_a_wait(&program) {
        let flaw = check(&wrong).expect_err("a wait is missing");
        assert!(matches!(flaw, ProgramFlaw::Race { .. } | ProgramFlaw::Stale { .. }), "{flaw}");
        noticed += usize::from((0..6).any(|seed| rehearse(&wrong, seed, false, xxh3_128).0 != expected));
        waits += 1;
    }
    assert!(2 * noticed > waits, "{noticed} of {waits} missing waits show");
}

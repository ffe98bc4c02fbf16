//! After any rewriting with any parameters, the graph keeps its invariants, computes the same, and needs no more
//! memory; within a budget, it needs no more than that.

use lmsc_ir::{Bytes, Graph, equiv};
use lmsc_papers::tflms::{Analysis, OPTIONS, Params, Strategy, tune};
use lmsc_passes::{CallOptions, PassCx, PassError, Pipeline, PlanRequest};
use lmsc_plan::Scope;
use lmsc_testing::{Rng, Size, Source, training_graph};

fn passes() -> Pipeline<'static> {
    Pipeline::parse_with("hoist-shapes,swap", &lmsc_papers::passes()).unwrap()
}

fn run(graph: &Graph, cx: &PassCx) -> Result<Graph, PassError> {
    let mut rewritten = graph.clone();
    passes().run(&mut rewritten, cx)?;
    Ok(rewritten)
}

fn params(rng: &mut Rng, graph: &Graph) -> Params {
    let mut below = |n: u64| rng.word() % n;
    let mut params = Params {
        threshold: below(8) as u32,
        lb: below(5) as u32,
        ub: [1, 3, 10_000][below(3) as usize],
        n_tensors: [None, Some(below(12) as usize)][below(2) as usize],
        ctrld_strategy: [Strategy::ChainRule, Strategy::DirectOrder][below(2) as usize],
        fuse_swapins: [0, 0, 2, 10, 100][below(5) as usize],
        swap_branches: below(2) == 0,
        branch_threshold: below(6) as u32,
        encode: below(2) == 0,
        ..Params::default()
    };
    let node = graph.order()[below(graph.order().len() as u64) as usize];
    let node = graph.node(node);
    match below(6) {
        0 => params.excl_types.push(node.op.name().to_string()),
        1 => params.incl_types.push(node.op.to_string()),
        2 => params.starting_op_names.push(node.name.to_string()),
        3 => params.excl_scopes.push(Scope::new(&format!("*{}*", &node.name[..1]))),
        4 => params.optimizer_scopes.push(Scope::new(&node.name)),
        _ => {}
    }
    params
}

/// Checks the invariants of every rewriting. The pipeline has run the verifier already.
fn check(seed: u64, graph: &Graph, rewritten: &Graph) {
    let explain = || format!("seed {seed}\n{}\n{}", graph.to_text(), rewritten.to_text());
    if let Err(difference) = equiv::check(graph, rewritten) {
        panic!("{difference}\n{}", explain());
    }
    let (before, after) = (PassCx::default().memory(graph), PassCx::default().memory(rewritten));
    assert!(after.peak() <= before.peak(), "{} > {}, {}", after.peak(), before.peak(), explain());
    assert_eq!(after.resident, before.resident, "{}", explain());
}

/// Number of nodes that encode swapped tensors.
fn encodings(graph: &Graph) -> usize {
    let outs = graph.order().iter().map(|&n| graph.node(n)).filter(|n| n.op.is_swap_out());
    let producers = outs.filter_map(|out| graph.producer(out.operands[0]?));
    producers.filter(|&n| graph.node(n).op.key() == ("", "Cast")).count()
}

#[test]
fn any_parameters_keep_meaning_and_never_raise_the_peak() {
    let (mut swapped, mut encoded) = (0, 0);
    for seed in 0..1500 {
        let mut rng = Rng::new(seed);
        let nodes = 5 + (rng.word() % if seed % 10 == 0 { 400 } else { 80 }) as usize;
        let graph = training_graph(&mut rng, Size::nodes(nodes));
        let cx = PassCx {
            question: PlanRequest {
                planner_options: (&params(&mut rng, &graph)).into(),
                ..PlanRequest::default()
            },
            ..PassCx::default()
        };
        let rewritten = run(&graph, &cx).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{}", graph.to_text()));
        check(seed, &graph, &rewritten);
        swapped += usize::from(rewritten.order().len() > graph.order().len());
        encoded += encodings(&rewritten);
    }
    assert!(swapped > 500, "only {swapped} graphs were rewritten at all");
    assert!(encoded > 100, "only {encoded} storages were encoded");
}

#[test]
fn a_budget_holds_or_is_refused_with_the_smallest_that_would() {
    let (mut held, mut refused) = (0, 0);
    for seed in 0..600 {
        let mut rng = Rng::new(seed ^ 0x5eed);
        let graph = training_graph(&mut rng, Size::nodes(10 + (seed % 90) as usize));
        let memory = PassCx::default().memory(&graph);
        let share = 40 + rng.word() % 61;
        let budget = Bytes(memory.resident.0 + memory.transient_peak().0 / 100 * share);
        let at = |budget| PassCx {
            question: PlanRequest { budget: Some(budget), ..PlanRequest::default() },
            ..PassCx::default()
        };
        match run(&graph, &at(budget)) {
            Ok(rewritten) => {
                held += 1;
                check(seed, &graph, &rewritten);
                assert!(
                    PassCx::default().memory(&rewritten).peak() <= budget,
                    "seed {seed}: {}",
                    rewritten.to_text()
                );
                let again = run(&rewritten, &at(budget)).expect("what fits needs nothing");
                assert_eq!(again.to_text(), rewritten.to_text(), "seed {seed}: a second run changes nothing");
            }
            Err(PassError::Refused(_)) => {
                refused += 1;
                let mut hoisted = graph.clone();
                passes().first(1).run(&mut hoisted, &at(budget)).unwrap();
                let params = Params::default();
                let smallest =
                    tune(&Analysis::new(&hoisted, &params, at(budget).workspace(&hoisted)), &params, budget)
                        .unwrap_err()
                        .needed
                        .unwrap();
                assert!(smallest > budget, "seed {seed}");
                let fitting = run(&graph, &at(smallest)).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
                assert!(PassCx::default().memory(&fitting).peak() <= smallest, "seed {seed}");
            }
            Err(error) => panic!("seed {seed}: {error}\n{}", graph.to_text()),
        }
    }
    assert!(held > 100 && refused > 100, "{held} held, {refused} refused");
}

/// TFLMS §4.2.1: an encoding is within the same budget, and sends no more bytes than plain copies do.
#[test]
fn encoding_holds_the_budget_and_never_costs_bytes() {
    let (mut fewer, mut encoded) = (0, 0);
    for seed in 0..1200 {
        let mut rng = Rng::new(seed ^ 0xe6c0de);
        let graph = training_graph(&mut rng, Size::nodes(20 + (seed % 120) as usize));
        let memory = PassCx::default().memory(&graph);
        let share = 60 + rng.word() % 41;
        let budget = Bytes(memory.resident.0 + memory.transient_peak().0 / 100 * share);
        let compile = |encode| {
            let encode = [("encode", if encode { "true" } else { "false" })];
            let planner_options = CallOptions::of("planner", "tflms", &OPTIONS, &encode).unwrap();
            let mut rewritten = graph.clone();
            let cx = PassCx {
                question: PlanRequest { budget: Some(budget), planner_options, ..PlanRequest::default() },
                ..PassCx::default()
            };
            let ran = passes().run(&mut rewritten, &cx).ok()?;
            let swaps = ran.iter().flat_map(|r| &r.outcome.swaps);
            Some((rewritten, swaps.map(|s| s.bytes_out + s.bytes_in).sum::<Bytes>()))
        };
        let (plain, encoding) = (compile(false), compile(true));
        assert_eq!(plain.is_some(), encoding.is_some(), "seed {seed}: the same budgets can be met");
        let (Some((plain, plain_bytes)), Some((rewritten, bytes))) = (plain, encoding) else { continue };
        assert_eq!(encodings(&plain), 0, "seed {seed}");
        check(seed, &graph, &rewritten);
        assert!(
            PassCx::default().memory(&rewritten).peak() <= budget,
            "seed {seed}: {}",
            rewritten.to_text()
        );
        assert!(bytes <= plain_bytes, "seed {seed}: {bytes} > {plain_bytes}");
        fewer += usize::from(bytes < plain_bytes);
        encoded += encodings(&rewritten);
    }
    assert!(fewer > 30 && encoded > 30, "{fewer} with fewer bytes, {encoded} encoded");
}

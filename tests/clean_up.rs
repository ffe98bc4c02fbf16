//! Passes that clean up, judged by the graphs' results: folded values are those of the kernels, and random
//! steps compute the same bits after the passes.

use crate::support::interpreter::Interpreter;
use lmsc_ir::{Graph, equiv};
use lmsc_kernels::StepContext;
use lmsc_passes::{PassCx, Pipeline, PlanRequest};
use lmsc_testing::{Damage, Rng, Size, damage, training_graph};

const ALL: &str = "fold-constants,merge-common-subexpressions{across-phases=true},remove-dead-nodes";

/// Calls on the constants `l` (a list of five), `m`, `i` (indices), `s`, `z` (lists of one), `n` (32 bits) and on the input `x`.
const FOLDED: &[(&str, &str)] = &[
    ("int64[3]", "Shape(x)"),
    ("int64[2]", "Shape<start = 1>(x)"),
    ("int64[1]", "Shape<start = -3, end = -2>(x)"),
    ("int64[]", "Size(x)"),
    ("int64[5]", "Add(l, m)"),
    ("int64[5]", "Sub(s, m)"),
    ("int64[5]", "Mul(l, m)"),
    ("int64[5]", "Div(l, m)"),
    ("int64[5]", "Min(l, m)"),
    ("int64[5]", "Max(l, m)"),
    ("int64[5]", "Neg(l)"),
    ("int64[3]", "Gather(l, i)"),
    ("int64[6]", "Concat<axis = 0>(l, s)"),
    ("int64[3]", "Slice(l, s, z)"),
    ("int64[5,1]", "Unsqueeze(l, s)"),
    ("int64[1,5]", "Flatten<axis = 0>(l)"),
    ("int64[5]", "Identity(l)"),
    ("int32[5]", "Cast<to = 6>(l)"),
    ("int64[2]", "Cast<to = 7>(n)"),
    ("int64[2]", "Constant<value_ints = [3, -4]>()"),
];

/// Calls that stay: something in them has no value, or none that both would compute alike.
const NOT_FOLDED: &[(&str, &str)] = &[
    ("int64[5]", "Div(l, o)"),
    ("int64[5]", "Add(l, h)"),
    ("int32[5]", "Cast<to = 6>(h)"),
    ("float[5]", "Cast<to = 1>(l)"),
    ("int64[3]", "Gather(l, far)"),
];

fn graph((ty, call): &(&str, &str)) -> Graph {
    let constants = "int64[5] l = {7, -7, 3, 0, -9}, int64[5] m = {2, 2, -2, 5, 4}, int64[3] i = {0, -1, 2}, \
                     int64[1] s = {1}, int64[1] z = {-1}, int32[2] n = {-1, 2}, int64[5] o = {0, 1, 1, 1, 1}, \
                     int64[5] h = {9223372036854775807, 1, 1, 1, -9223372036854775808}, int64[3] far = {0, 1, 5}";
    let text = format!(
        "<opset: \"\" = 17>\ng (float[2,3,4] x) => ({ty} r)\n< {constants} >\n{{ [n] {ty} r = {call} }}"
    );
    Graph::parse(&text).unwrap_or_else(|e| panic!("{e} in {text}"))
}

/// The outputs after a step, bit by bit.
fn run(graph: &Graph) -> Vec<Vec<u8>> {
    let mut interpreter = Interpreter::new(graph.clone()).unwrap();
    for value in interpreter.inputs() {
        let bytes = interpreter.value_mut(value);
        bytes.iter_mut().enumerate().for_each(|(i, byte)| *byte = [0, 0, 0x80, 0x3f][i % 4]);
    }
    interpreter.run(StepContext { number: 1, seed: 0 }, |_, _| {});
    interpreter.graph.outputs.clone().into_iter().map(|output| interpreter.value(output).to_vec()).collect()
}

#[test]
fn folded_constants_equal_the_results_of_kernels() {
    let fold = Pipeline::parse("fold-constants").unwrap();
    for case in FOLDED {
        let original = graph(case);
        let mut folded = original.clone();
        fold.run(&mut folded, &PassCx::default()).unwrap();
        let is_constant = |graph: &Graph| graph.node(graph.order()[0]).op.name() == "Constant";
        assert!(is_constant(&folded), "{}", case.1);
        assert_eq!(run(&folded), run(&original), "{}", case.1);
        fold.prove(&original, &folded).unwrap_or_else(|e| panic!("{}: {e}", case.1));
    }
    for case in NOT_FOLDED {
        let mut graph = graph(case);
        assert!(!fold.run(&mut graph, &PassCx::default()).unwrap()[0].outcome.changed, "{}", case.1);
    }
}

/// Superfluous nodes are added to random graphs; the passes remove them, and the original graphs remain.
#[test]
fn random_steps_are_proven_and_lose_what_is_superfluous() {
    let clean_up = Pipeline::parse(ALL).unwrap();
    let (mut removed, mut planned) = (0, 0);
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let original = training_graph(&mut rng, Size::nodes(10 + (seed % 90) as usize));
        let more = (0..3).try_fold(original, |graph, _| damage(&graph, Damage::AddNode, &mut rng));
        let Some(original) = more else { continue };
        if lmsc_ir::verify(&original).is_err() {
            continue;
        }
        let mut cleaned = original.clone();
        clean_up.run(&mut cleaned, &PassCx::default()).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        equiv::check_cleaned(&original, &cleaned).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        removed += original.order().len() - cleaned.order().len();
        let again = clean_up.run(&mut cleaned, &PassCx::default()).unwrap();
        assert!(again.iter().all(|ran| !ran.outcome.changed), "seed {seed}: a second run changes something");

        let budget = PassCx::default().memory(&cleaned).peak().0 * 9 / 10;
        let cx = PassCx {
            question: PlanRequest { budget: Some(lmsc_ir::Bytes(budget)), ..PlanRequest::default() },
            ..PassCx::default()
        };
        if Pipeline::parse_with("hoist-shapes,swap", &lmsc_papers::passes())
            .unwrap()
            .run(&mut cleaned, &cx)
            .is_ok()
        {
            equiv::check_cleaned(&original, &cleaned).unwrap_or_else(|e| panic!("seed {seed}, planned: {e}"));
            planned += 1;
        }
    }
    assert!(removed > 200 && planned > 20, "{removed} nodes removed, {planned} graphs planned");
}

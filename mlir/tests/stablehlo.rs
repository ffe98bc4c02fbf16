//! Every `testdata/stablehlo/<case>.lms` in the forms for XLA and IREE, compared with the `.snap` beside it;
//! and the refused graphs.

use std::path::Path;

use crate::clock::processor_time;
use lmsc_ir::Graph;

type Print = fn(&Graph) -> Result<String, lmsc_mlir::StablehloError>;

const FORMS: [(&str, Print); 2] = [("xla", lmsc_mlir::xla), ("iree", lmsc_mlir::iree)];
const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/stablehlo");

#[test]
fn cases_print_as_their_snapshots_say() {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.set_snapshot_path(Path::new(CASES));
    let files = std::fs::read_dir(CASES).unwrap().map(|entry| entry.unwrap().path());
    let mut cases: Vec<_> = files.filter(|path| path.extension().is_some_and(|e| e == "lms")).collect();
    cases.sort();
    assert!(cases.len() >= 5, "the cases are under {CASES}");
    for case in cases {
        let graph = Graph::parse(&std::fs::read_to_string(&case).unwrap()).unwrap();
        lmsc_ir::verify(&graph).unwrap_or_else(|e| panic!("{}: {e}", case.display()));
        let stem = case.file_stem().unwrap().to_str().unwrap();
        settings.set_input_file(&case);
        let forms = FORMS.map(|(form, print)| {
            let text = print(&graph).unwrap_or_else(|e| panic!("{}: {e}", case.display()));
            assert_eq!(print(&graph).unwrap(), text, "the same graph, the same text");
            format!("// {form}\n{text}")
        });
        settings.bind(|| insta::assert_snapshot!(stem, forms.concat()));
    }
}

/// Operators are written alike for every compiler where nothing is copied and nothing waits.
#[test]
fn forms_share_the_rules() {
    let text = "g (float[4,4] x) => (float[4,4] z)\n{\n   [a] float[4,4] y = Gelu(x)\n   [b] float[4,4] z = MatMul(y, x)\n}\n";
    let graph = Graph::parse(text).unwrap();
    let body = |print: Print| {
        let text = print(&graph).unwrap();
        let lines = text.lines().filter(|line| line.starts_with("    ")).map(str::to_owned);
        lines.collect::<Vec<_>>()
    };
    let [xla, iree] = FORMS.map(|(_, print)| body(print));
    assert!(xla.len() > 5);
    assert_eq!(xla, iree);
}

/// The refusal of a graph of these inputs and nodes.
fn refusal(inputs: &str, output: &str, nodes: &str) -> String {
    let text = format!("<opset: \"\" = 17>\ng ({inputs}) => ({output})\n{{\n{nodes}\n}}\n");
    let graph = Graph::parse(&text).unwrap();
    let [xla, iree] = FORMS.map(|(_, print)| print(&graph).unwrap_err());
    assert_eq!(xla, iree);
    xla.to_string()
}

#[test]
fn an_operator_without_rule_is_refused_by_node_and_operator() {
    let refusals = [
        refusal(
            "float[4] x",
            "float[4] z",
            "   [a] float[4] y = Foo(x)\n   [b] float[4] w = com.microsoft.Bar(y)\n   [c] float[4] z = Foo(w)",
        ),
        refusal("float[4] x, int64[1] n", "float[2] y", "   [cut] float[2] y = Slice(x, n, n)"),
        refusal(
            "float[4] x, bool[] train",
            "float[4] y",
            "   [drop] float[4] y = Dropout<seed = 7>(x, _, train)",
        ),
        refusal(
            "float[3,1,2] x, float[1,8,2] w, float[1,8,2] r, int32[1] n",
            "float[3,1,1,2] y",
            "   [lstm] float[3,1,1,2] y = LSTM<hidden_size = 2>(x, w, r, _, n)",
        ),
        refusal(
            "float[3,1,2] x, float[1,7,2] w, float[1,8,2] r",
            "float[3,1,1,2] y",
            "   [gates] float[3,1,1,2] y = LSTM<hidden_size = 2>(x, w, r)",
        ),
        refusal(
            "float[3,1,2] x, float[1,6,2] w, float[1,6,2] r",
            "float[3,1,1,2] y",
            "   [gru] float[3,1,1,2] y = GRU<hidden_size = 2>(x, w, r)",
        ),
        refusal(
            "float[1,1,4,4] x, float[1,1,3,3] w",
            "float[1,1,2,2] y",
            "   [pads] float[1,1,2,2] y = Conv<pads = [0]>(x, w)",
        ),
        refusal("string[4] x", "string[4] y", "   [same] string[4] y = Identity(x)"),
        refusal(
            "float[1,1,4,4] x, float[1,1,3,3] w",
            "float[1,1,4,4] y",
            "   [conv] float[1,1,4,4] y = Conv<auto_pad = \"SAME_UPPER\">(x, w)",
        ),
    ];
    insta::assert_snapshot!(refusals.join("\n"), @r"
    StableHLO has no rule for `a` (Foo), `b` (com.microsoft.Bar)
    `cut` (Slice) cannot be written in StableHLO: its operand 1 does not follow from extents and constants; StableHLO wants numbers there
    `drop` (Dropout) cannot be written in StableHLO: its attribute `seed` is no float
    `lstm` (LSTM) cannot be written in StableHLO: there is no rule for lengths of sequences
    `gates` (LSTM) cannot be written in StableHLO: its weights are not those of 4 gates
    `gru` (GRU) cannot be written in StableHLO: there is no rule for a GRU that resets the state before its product
    `pads` (Conv) cannot be written in StableHLO: its attribute `pads` has not 4 elements
    `x`: StableHLO has no string[4]
    `conv` (Conv) cannot be written in StableHLO: there is no rule for its `auto_pad`
    ");
}

/// A recomputed node draws the same numbers. Its key goes through a barrier, so that no compiler merges it with
/// the original.
#[test]
fn random_numbers_follow_from_run_and_step() {
    let text = "g (float[6] x, bool[] train) => (float[6] y, float[6] z)\n{\n   [drop] float[6] y = Dropout(x, _, train)\n   [again] float[6] z = Dropout(x, _, train) recomputes [drop]\n}\n";
    let graph = Graph::parse(text).unwrap();
    for (form, print) in FORMS {
        let text = print(&graph).unwrap();
        assert!(text.contains("%arg2: tensor<i64> {lms.seed"), "{form}: {text}");
        assert!(text.contains("%arg3: tensor<i64> {lms.step"), "{form}: {text}");
        let seed = format!("dense<{}> : tensor<ui64>", graph.seed(graph.order()[0]));
        assert_eq!(text.matches(&seed).count(), 2, "{form}: both draw alike");
        let barriers = |node: &str| {
            text.lines().filter(|line| line.contains("optimization_barrier") && line.ends_with(node)).count()
        };
        // XLA may schedule a node without dependences at any time, so there the first one has a barrier, too.
        assert_eq!(barriers("loc(\"drop\")"), usize::from(form == "xla"), "{form}: {text}");
        assert!(barriers("loc(\"again\")") > 0, "{form}: {text}");
    }
    let still = "g (float[6] x) => (float[6] y)\n{\n   [drop] float[6] y = Dropout(x)\n}\n";
    assert!(!lmsc_mlir::xla(&Graph::parse(still).unwrap()).unwrap().contains("lms.seed"));
}

/// A step of `count` layers; one activation in `every` is swapped.
fn layers(count: usize, every: usize) -> Graph {
    let mut nodes = String::new();
    for i in 0..count {
        nodes += &format!("   [n{i}] float[64] v{} = Tanh(v{i})\n", i + 1);
        if i % every == 0 {
            nodes += &format!("   [out{i}] float[64]@host h{i} = ai.lmsc.SwapOut(v{})\n", i + 1);
        }
    }
    for i in (0..count).rev() {
        let mut activation = format!("v{}", i + 1);
        if i % every == 0 {
            nodes += &format!("   [in{i}] float[64] b{i} = ai.lmsc.SwapIn(h{i})\n");
            activation = format!("b{i}");
        }
        nodes += &format!("   [g{i}] float[64] d{i} = com.microsoft.TanhGrad(d{}, {activation})\n", i + 1);
    }
    let opsets = "<opset: \"\" = 17, \"com.microsoft\" = 1>";
    let text = format!("{opsets}\ng (float[64] v0, float[64] d{count}) => (float[64] d0)\n{{\n{nodes}}}\n");
    Graph::parse(&text).unwrap()
}

#[test]
fn a_hundred_thousand_nodes_take_linear_time() {
    let graph = layers(50_000, 50);
    for (form, print) in FORMS {
        let started = processor_time();
        let text = print(&graph).unwrap();
        let took = processor_time() - started;
        // The operands of barriers are the values that are read next, not all live ones.
        assert!(text.len() < 400 * graph.order().len(), "{form} has {} bytes", text.len());
        assert!(took.as_secs() < 30, "{form} takes {took:?}");
    }
}

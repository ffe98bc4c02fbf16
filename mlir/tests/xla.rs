//! Every `testdata/xla/<case>.lms` as XLA takes it, compared with the `.snap` beside it; and what is refused.

use std::path::Path;

use lmsc_ir::Graph;

const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/xla");

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
        let text = lmsc_mlir::xla(&graph).unwrap_or_else(|e| panic!("{}: {e}", case.display()));
        assert_eq!(lmsc_mlir::xla(&graph).unwrap(), text, "the same graph, the same text");
        settings.set_input_file(&case);
        settings.bind(|| insta::assert_snapshot!(case.file_stem().unwrap().to_str().unwrap(), text));
    }
}

/// What is said of a graph of these inputs and nodes.
fn refusal(inputs: &str, output: &str, nodes: &str) -> String {
    let text = format!("<opset: \"\" = 17>\ng ({inputs}) => ({output})\n{{\n{nodes}\n}}\n");
    lmsc_mlir::xla(&Graph::parse(&text).unwrap()).unwrap_err().to_string()
}

#[test]
fn what_has_no_rule_is_refused_by_node_and_operator() {
    let refusals = [
        refusal(
            "float[4] x",
            "float[4] z",
            "   [a] float[4] y = Foo(x)\n   [b] float[4] w = com.microsoft.Bar(y)\n   [c] float[4] z = Foo(w)",
        ),
        refusal("float[4] x, int64[1] n", "float[2] y", "   [cut] float[2] y = Slice(x, n, n)"),
        refusal("float[4] x, bool[] train", "float[4] y", "   [drop] float[4] y = Dropout(x, _, train)"),
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
    `drop` (Dropout) cannot be written in StableHLO: it has a flag `training_mode`, and draws at random where that is set, for which there is no rule
    `x`: StableHLO has no string[4]
    `conv` (Conv) cannot be written in StableHLO: there is no rule for its `auto_pad`
    ");
}

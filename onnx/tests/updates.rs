//! The node that updates a variable is found again from the file, for all names of its results.

use std::collections::BTreeMap;

use lmsc_ir::{Graph, equiv};
use lmsc_onnx::file::encode_to;
use lmsc_onnx::{Dims, Model, Stated, SwapForm, export, import, settle};

const STEP: &str = "<opset: \"\" = 17>
g (float[4] w, float[4] x) => (float[4] w_new, float[4] y) {
    [update] float[4] w_new = Sub(w, x) updates (w as w_new)
    [y] float[4] y = Exp(x)
}";

/// `w` is updated early and away while `y` is computed: the output is the copy that comes back.
const REWRITTEN: &str = "<opset: \"\" = 17>
g (float[4] w, float[4] x) => (float[4] w_new, float[4] y) {
    [update] float[4] w_left = Sub(w, x) updates (w as w_left)
    [out] float[4]@host w_host = ai.lmsc.SwapOut(w_left)
    [y] float[4] y = Exp(x) after [out]
    [in] float[4] w_new = ai.lmsc.SwapIn(w_host) updates (w as w_new) after [y]
}";

/// The graph of the model, its updates settled.
fn read(model: &Model) -> Graph {
    let mut graph = import(model, &Dims::none()).unwrap();
    settle(&mut graph, &Stated::of(model).unwrap()).unwrap();
    lmsc_ir::verify(&graph).unwrap();
    graph
}

/// The text without its first line, which lists the imports.
fn body(graph: &Graph) -> String {
    graph.to_text().split_once('\n').unwrap().1.to_owned()
}

#[test]
fn an_update_whose_result_leaves_is_read_as_one() {
    let step = Graph::parse(STEP).unwrap();
    let rewritten = Graph::parse(REWRITTEN).unwrap();
    lmsc_ir::verify(&rewritten).unwrap();
    equiv::check(&step, &rewritten).unwrap();
    for form in [SwapForm::Function, SwapForm::Ort] {
        let proto = export(None, &rewritten, form, &BTreeMap::new()).unwrap();
        let mut bytes = Vec::new();
        encode_to(&proto, &mut bytes).unwrap();
        let back = read(&Model::from_bytes(bytes.into(), "written").unwrap());
        equiv::check(&step, &back).unwrap_or_else(|difference| panic!("{form:?}: {difference}"));
        assert_eq!(body(&back), body(&rewritten), "{form:?}");
    }
}

#[test]
fn state_that_names_imply_is_not_written_twice() {
    let proto = export(None, &Graph::parse(STEP).unwrap(), SwapForm::Function, &BTreeMap::new()).unwrap();
    assert!(proto.graph.unwrap().node.iter().all(|node| node.metadata_props.is_empty()));
}

const ADAM: &str = "<opset: \"\" = 17, \"com.microsoft\" = 1>
g (float[] lr, int64[1] n, float[4] w, float[4] d, float[4] m, float[4] v, float[4] x)
    => (int64[1] n_new, float[4] w_new, float[4] m_new, float[4] v_new, float[4] y) {
    [u] int64[1] n_new, float[4] m_new, float[4] v_new, float[4] w_left
        = com.microsoft.AdamOptimizer(lr, n, w, d, m, v) updates (n as n_new, m as m_new, v as v_new, w as w_left)
    [out] float[4]@host w_host = ai.lmsc.SwapOut(w_left)
    [y] float[4] y = Exp(x) after [out]
    [in] float[4] w_new = ai.lmsc.SwapIn(w_host) updates (w as w_new) after [y]
}";

#[test]
fn an_update_in_place_overwrites_no_more_than_it_did() {
    let graph = Graph::parse(ADAM).unwrap();
    lmsc_ir::verify(&graph).unwrap();
    let write = |form: SwapForm| {
        let proto = export(None, &graph, form, &BTreeMap::new()).unwrap();
        let nodes = &proto.graph.as_ref().unwrap().node;
        let at = nodes.iter().position(|n| n.op_type() == "AdamOptimizer").unwrap();
        let before = nodes[..at].iter().map(|n| (n.op_type().to_owned(), n.input.clone(), n.output.clone()));
        (before.collect::<Vec<_>>(), nodes[at].input.clone(), proto.clone())
    };
    // As functions copies are nothing to a runtime without them: the result is the output.
    let (before, operands, _) = write(SwapForm::Function);
    assert!(before.is_empty());
    assert_eq!(operands, ["lr", "n", "w", "d", "m", "v"]);
    let (before, operands, proto) = write(SwapForm::Ort);
    assert_eq!(before, [("Mean".to_owned(), vec!["w".to_owned()], vec!["u.kept.2".to_owned()])]);
    assert_eq!(operands, ["lr", "n", "u.kept.2", "d", "m", "v"]);

    let model = |proto| Model { proto, name: "written".to_owned(), folder: None, mapped: Vec::new() };
    let mut written = model(proto.clone());
    assert!(lmsc_onnx::gather(&mut written));
    assert_eq!(body(&read(&written)), body(&graph));

    // A node that is not a copy of a variable, or that others read, is read unchanged.
    let mut scaled = model(proto.clone());
    scaled.proto.graph.as_mut().unwrap().node[0].op_type = Some("Relu".to_owned());
    assert!(!lmsc_onnx::gather(&mut scaled));
    let mut shared = model(proto);
    shared.proto.graph.as_mut().unwrap().node[2].input = vec!["u.kept.2".to_owned()];
    assert!(!lmsc_onnx::gather(&mut shared));
}

//! Which node updates a variable: told by the file again, whatever the names of its results.

use std::collections::BTreeMap;

use lmsc_ir::{Graph, equiv};
use lmsc_onnx::file::encode_to;
use lmsc_onnx::{Dims, Form, Model, export, import, settle, state_pairs};

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

#[test]
fn an_update_whose_result_leaves_is_read_as_one() {
    let step = Graph::parse(STEP).unwrap();
    let rewritten = Graph::parse(REWRITTEN).unwrap();
    lmsc_ir::verify(&rewritten).unwrap();
    equiv::check(&step, &rewritten).unwrap();
    for form in [Form::Function, Form::Ort] {
        let proto = export(None, &rewritten, form, &BTreeMap::new()).unwrap();
        let mut bytes = Vec::new();
        encode_to(&proto, &mut bytes).unwrap();
        let model = Model::from_bytes(bytes.into(), "written").unwrap();
        let mut back = import(&model, &Dims::none()).unwrap();
        settle(&mut back, &state_pairs(&model, &[])).unwrap();
        lmsc_ir::verify(&back).unwrap();
        equiv::check(&step, &back).unwrap_or_else(|difference| panic!("{form:?}: {difference}"));
        let body = |graph: &Graph| graph.to_text().split_once('\n').unwrap().1.to_owned();
        assert_eq!(body(&back), body(&rewritten), "{form:?}");
    }
}

#[test]
fn what_a_name_tells_is_not_written_twice() {
    let proto = export(None, &Graph::parse(STEP).unwrap(), Form::Function, &BTreeMap::new()).unwrap();
    assert!(proto.graph.unwrap().node.iter().all(|node| node.metadata_props.is_empty()));
}

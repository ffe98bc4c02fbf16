//! Tensors that travel in ranges: written in both forms, read back, and believed only as they are written.

use std::collections::BTreeMap;

use lmsc_ir::{Graph, equiv};
use lmsc_onnx::file::encode_to;
use lmsc_onnx::import::import;
use lmsc_onnx::proto::{ModelProto, NodeProto};
use lmsc_onnx::{Dims, Model, SwapForm, export, survival};

const TEXT: &str = "<opset: \"\" = 17>
g (float[2,3] x) => (float[2,3] y)
{
   [a] float[2,3] h = Relu(x)
   [b] float[2,3] k = Exp(h)
   [o1] float[2]@host h1 = ai.lmsc.SwapOut<begin = 0, end = 2>(h)
   [o2] float[2]@host h2 = ai.lmsc.SwapOut<begin = 4, end = 6>(h) after [o1]
   [o3] float[5]@host k1 = ai.lmsc.SwapOut<begin = 0, end = 5>(k)
   [o4] float[1]@host k2 = ai.lmsc.SwapOut<begin = 5, end = 6>(k)
   [c] float[2,3] z = Tanh(x) after [o2, o4]
   [i1] float[2] h3 = ai.lmsc.SwapIn(h1) after [c]
   [i2] float[2] h4 = ai.lmsc.SwapIn(h2)
   [i3] float[5] k3 = ai.lmsc.SwapIn(k1)
   [i4] float[1] k4 = ai.lmsc.SwapIn(k2)
   [j1] float[2,3] h5 = ai.lmsc.Join<begins = [0, 4]>(h, h3, h4)
   [j2] float[2,3] k5 = ai.lmsc.Join<begins = [0, 5], dims = [2, 3]>(_, k3, k4)
   [d] float[2,3] y = Sum(z, h5, k5)
}
";

/// A variable that is on the host between steps, of which one range comes in four times.
const VARIABLE: &str = "<opset: \"\" = 17>
g (float[4]@host w) => (float[4]@host w_new, float[1] y)
{
   [i1] float[3] k1 = ai.lmsc.SwapIn<begin = 0, end = 3>(w)
   [i2] float[1] k2 = ai.lmsc.SwapIn<begin = 3, end = 4>(w)
   [j] float[4] w_in = ai.lmsc.Join<begins = [0, 3], dims = [4]>(_, k1, k2)
   [i3] float[1] k3 = ai.lmsc.SwapIn<begin = 3, end = 4>(w) after [i2]
   [i4] float[1] k4 = ai.lmsc.SwapIn<begin = 3, end = 4>(w) after [i3]
   [i5] float[1] k5 = ai.lmsc.SwapIn<begin = 3, end = 4>(w) after [i4]
   [use] float[1] y = Sum(k3, k4, k5)
   [add] float[4] w_dev = Add(w_in, w_in) updates (w_in as w_dev) after [i5]
   [o1] float[3]@host h1 = ai.lmsc.SwapOut<begin = 0, end = 3>(w_dev)
   [o2] float[1]@host h2 = ai.lmsc.SwapOut<begin = 3, end = 4>(w_dev)
   [home] float[4]@host w_new = ai.lmsc.Join<begins = [0, 3], dims = [4]>(_, h1, h2) updates (w as w_new)
}
";

#[test]
fn variables_in_ranges_are_read_as_they_were_written() {
    let graph = Graph::parse(VARIABLE).unwrap();
    lmsc_ir::verify(&graph).unwrap();
    for form in [SwapForm::Function, SwapForm::Ort] {
        let proto = export(None, &graph, form, &BTreeMap::new()).unwrap();
        let functions: Vec<&str> = proto.functions.iter().map(|f| f.name()).collect();
        let ranges = ["SwapInRange", "SwapInRange1", "SwapInRange2", "SwapInRange3"];
        // An optimizer that makes equal nodes one must not make these one.
        let (first, last) = if form == SwapForm::Ort { (4, 3) } else { (1, 0) };
        let copy_of = |name: &str| proto.functions.iter().find(|f| f.name() == name)?.node.last().cloned();
        let copies: Vec<_> = ranges[..first].iter().map(|name| copy_of(name).unwrap()).collect();
        assert!(copies.iter().enumerate().all(|(i, copy)| !copies[..i].contains(copy)), "{copies:?}");
        assert_eq!(functions, [&["SwapOutRange"], &ranges[..=last], &["JoinAll2"]].concat(), "{form:?}");
        let back = read(&proto).unwrap();
        lmsc_ir::verify(&back).unwrap();
        let without_opsets = |text: String| text.split_once('\n').unwrap().1.to_owned();
        assert_eq!(without_opsets(back.to_text()), without_opsets(VARIABLE.to_owned()), "{form:?}");
        let survived = survival(&proto, &proto);
        assert!(survived.is_whole() && (survived.swap_ins, survived.swap_outs) == (5, 2), "{survived:?}");
    }
}

fn written(form: SwapForm) -> ModelProto {
    let graph = Graph::parse(TEXT).unwrap();
    lmsc_ir::verify(&graph).unwrap();
    export(None, &graph, form, &BTreeMap::new()).unwrap()
}

/// The graph of the model, or why it is refused.
fn read(proto: &ModelProto) -> Result<Graph, String> {
    let mut bytes = Vec::new();
    encode_to(proto, &mut bytes).unwrap();
    let model = Model::from_bytes(bytes.into(), "test").unwrap();
    import(&model, &Dims::none()).map_err(|errors| errors.to_string())
}

fn nodes(proto: &mut ModelProto) -> &mut Vec<NodeProto> {
    &mut proto.graph.as_mut().unwrap().node
}

#[test]
fn ranges_are_read_as_they_were_written() {
    let graph = Graph::parse(TEXT).unwrap();
    for form in [SwapForm::Function, SwapForm::Ort] {
        let proto = written(form);
        let functions: Vec<&str> = proto.functions.iter().map(|f| f.name()).collect();
        let all = ["SwapIn", "SwapOutRange", "JoinAll2", "Join2"];
        assert_eq!(functions, all[usize::from(form == SwapForm::Ort)..], "{form:?}");
        let back = read(&proto).unwrap();
        lmsc_ir::verify(&back).unwrap();
        assert_eq!(equiv::check(&graph, &back).unwrap().swaps, 10);
        let without_opsets = |text: String| text.split_once('\n').unwrap().1.to_owned();
        assert_eq!(without_opsets(back.to_text()), without_opsets(TEXT.to_owned()), "{form:?}");
        let again = |form| {
            let mut bytes = Vec::new();
            encode_to(&proto, &mut bytes).unwrap();
            let model = Model::from_bytes(bytes.into(), "test").unwrap();
            export(Some(model), &back, form, &BTreeMap::new()).unwrap()
        };
        assert_eq!(again(form), proto, "{form:?}");
        for other in [SwapForm::Function, SwapForm::Ort] {
            let text = read(&again(other)).unwrap().to_text();
            assert_eq!(without_opsets(text), without_opsets(TEXT.to_owned()), "{form:?}, then {other:?}");
        }
    }
}

#[test]
fn functions_that_compute_something_else_are_refused() {
    for form in [SwapForm::Function, SwapForm::Ort] {
        let proto = written(form);
        for (index, function) in proto.functions.iter().enumerate() {
            for node in 0..function.node.len() {
                let refused = |damage: &dyn Fn(&mut NodeProto)| {
                    let mut proto = proto.clone();
                    damage(&mut proto.functions[index].node[node]);
                    let why = read(&proto).expect_err(function.name());
                    let expected = format!(
                        "`ai.lmsc::{}` does not compute what lmsc means by this name",
                        function.name()
                    );
                    assert!(why.contains(&expected), "{why}");
                };
                refused(&|node| node.op_type = Some("Relu".to_owned()));
                refused(&|node| node.output[0] += "_other");
                if function.node[node].attribute.is_empty() {
                    refused(&|node| node.input[0] += "_other");
                } else {
                    refused(&|node| node.attribute[0].name = Some("other".to_owned()));
                }
            }
        }
    }
}

#[test]
fn operators_that_are_called_otherwise_are_refused() {
    let refused = |damage: &dyn Fn(&mut NodeProto), name: &str| {
        let mut proto = written(SwapForm::Function);
        damage(nodes(&mut proto).iter_mut().find(|n| n.name() == name).unwrap());
        read(&proto).unwrap_err()
    };
    let why = refused(&|node| _ = node.input.pop(), "j2");
    assert!(
        why.contains("node `j2` (ai.lmsc.JoinAll2): the operator takes 2 operands and `begins` and `dims`"),
        "{why}"
    );
    let why = refused(&|node| _ = node.attribute.pop(), "o1");
    assert!(why.contains("the operator takes 1 operand and `begin` and `end`"), "{why}");
    let why = refused(&|node| node.op_type = Some("SwapOut".to_owned()), "o1");
    assert!(why.contains("the operator takes 1 operand and no attributes"), "{why}");
    // A node whose operator has none of our names is an operator like any other.
    let mut proto = written(SwapForm::Function);
    nodes(&mut proto).iter_mut().find(|n| n.name() == "j1").unwrap().op_type = Some("Join02".to_owned());
    let graph = read(&proto).unwrap();
    assert!(!graph.node(graph.node_named("j1").unwrap()).op.is_join());
}

#[test]
fn ranges_that_an_optimizer_inlined_are_left_if_something_copies() {
    let original = written(SwapForm::Ort);
    // The rest of the call: the last node of the function, under the name of its result.
    let inlined = |op: &str| {
        let mut proto = original.clone();
        for node in nodes(&mut proto).iter_mut().filter(|n| n.op_type() == "SwapOutRange") {
            (node.op_type, node.domain) = (Some(op.to_owned()), None);
            node.input[0] = format!("{}_part", node.name());
        }
        survival(&original, &proto)
    };
    let (copied, sliced) = (inlined("Concat"), inlined("Slice"));
    assert!(copied.is_whole() && copied.swap_outs == 4, "{copied:?}");
    assert_eq!(
        (sliced.swap_outs_left, sliced.gone),
        (0, ["o1", "o2", "o3", "o4"].map(str::to_owned).to_vec())
    );
}

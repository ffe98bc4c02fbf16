//! What import makes of nodes, names, edges and metadata, and what it says about models that are no graphs.

use bytes::Bytes;
use lmsc_ir::{Attr, Data, Graph, Op, Place, Update};
use lmsc_onnx::file::Model;
use lmsc_onnx::import::{Dims, ImportErrors, import};
use lmsc_onnx::key;
use lmsc_onnx::proto::*;

/// `float[2,batch]` as a declaration of `name`.
fn info(name: &str, ty: &str) -> ValueInfoProto {
    let (element, dims) = ty.strip_suffix(']').unwrap().split_once('[').unwrap();
    let code = match element {
        "float" => DataType::Float,
        "int64" => DataType::Int64,
        "bool" => DataType::Bool,
        other => panic!("{other}"),
    };
    let dim = |d: &str| match d.parse() {
        Ok(extent) => Dimension { dim_value: Some(extent), ..Dimension::default() },
        Err(_) if d == "?" => Dimension::default(),
        Err(_) => Dimension { dim_param: Some(d.to_owned()), ..Dimension::default() },
    };
    let dim = dims.split(',').filter(|d| !d.is_empty()).map(dim).collect();
    let tensor = TensorType { elem_type: Some(code as i32), shape: Some(TensorShapeProto { dim }) };
    let ty = TypeProto { tensor_type: Some(tensor), ..TypeProto::default() };
    ValueInfoProto { name: Some(name.to_owned()), r#type: Some(ty), ..ValueInfoProto::default() }
}

/// `name: domain.Operator(a, b) -> c, d`.
fn node(text: &str) -> NodeProto {
    let (name, rest) = text.split_once(": ").unwrap();
    let (call, results) = rest.split_once(" -> ").unwrap();
    let (op, operands) = call.strip_suffix(')').unwrap().split_once('(').unwrap();
    let (domain, op) = op.rsplit_once('.').unwrap_or(("", op));
    let list = |t: &str| -> Vec<String> {
        let part = |p: &str| if p.trim() == "_" { String::new() } else { p.trim().to_owned() };
        t.split(',').map(part).filter(|_| !t.is_empty()).collect()
    };
    NodeProto {
        name: Some(name.to_owned()),
        op_type: Some(op.to_owned()),
        domain: Some(domain.to_owned()),
        input: list(operands),
        output: list(results),
        ..NodeProto::default()
    }
}

fn with(mut node: NodeProto, key: &str, value: &str) -> NodeProto {
    let entry = StringStringEntryProto { key: Some(key.to_owned()), value: Some(value.to_owned()) };
    node.metadata_props.push(entry);
    node
}

fn graph(inputs: &[(&str, &str)], nodes: &[&str], outputs: &[&str]) -> GraphProto {
    GraphProto {
        name: Some("g".to_owned()),
        input: inputs.iter().map(|(name, ty)| info(name, ty)).collect(),
        node: nodes.iter().map(|n| node(n)).collect(),
        output: outputs
            .iter()
            .map(|o| ValueInfoProto { name: Some((*o).to_owned()), ..Default::default() })
            .collect(),
        ..GraphProto::default()
    }
}

fn model(graph: GraphProto) -> Model {
    let opset = |domain: &str, version| OperatorSetIdProto {
        domain: Some(domain.to_owned()),
        version: Some(version),
    };
    let proto = ModelProto {
        ir_version: Some(10),
        graph: Some(graph),
        opset_import: vec![opset("", 17), opset("com.microsoft", 1), opset("ai.lmsc", 1)],
        ..ModelProto::default()
    };
    Model { proto, name: "m.onnx".to_owned(), folder: None, mapped: Vec::new() }
}

fn imported(graph: GraphProto) -> Graph {
    import(&model(graph), &Dims::none()).unwrap_or_else(|e| panic!("{e}"))
}

fn refused(graph: GraphProto, dims: &[(&str, u64)]) -> ImportErrors {
    let dims = Dims::from_iter(dims.iter().copied());
    import(&model(graph), &dims).expect_err("the model is not refused")
}

fn int_tensor(name: &str, values: &[i64]) -> TensorProto {
    TensorProto {
        name: Some(name.to_owned()),
        data_type: Some(DataType::Int64 as i32),
        dims: vec![values.len() as i64],
        int64_data: vec![pack_int64s(values)],
        ..TensorProto::default()
    }
}

fn names(graph: &Graph) -> Vec<&str> {
    graph.order().iter().map(|&n| &*graph.node(n).name).collect()
}

#[test]
fn symbols_are_bound_from_the_command_line() {
    let proto =
        || graph(&[("x", "float[batch,seq,4]"), ("y", "float[batch,?]")], &["a: Relu(x) -> z"], &["z"]);
    let errors = refused(proto(), &[("batch", 2)]).to_string();
    let seq = "dimension `seq` has no value: input `x` float[batch,seq,4]\n";
    assert!(errors.contains(seq) && errors.contains("example --dim seq=32"), "{errors}");
    assert!(errors.contains("input `y`: its extent 1 has neither a number nor a name"), "{errors}");
    let errors = refused(proto(), &[("batch", 2), ("sequence", 3)]).to_string();
    assert!(errors.contains("--dim sequence") && errors.contains("dimensions are batch, seq"), "{errors}");
}

#[test]
fn symbols_that_no_input_has_declare_nothing() {
    let mut proto = graph(&[("x", "float[batch,4]")], &["a: Relu(x) -> y", "b: my.Op(y) -> z"], &["z"]);
    proto.value_info = vec![info("y", "float[unk__7,4]"), info("z", "float[batch,9]")];
    let graph = import(&model(proto.clone()), &Dims::from_iter([("batch", 3)])).unwrap();
    assert_eq!(graph.value(graph.value_named("y").unwrap()).ty.to_string(), "float[3,4]");
    assert_eq!(graph.value(graph.value_named("z").unwrap()).ty.to_string(), "float[3,9]");
    proto.value_info = vec![info("y", "float[unk__7,5]"), info("z", "float[unk__8,9]")];
    let errors = refused(proto, &[("batch", 3)]);
    assert_eq!(errors.errors.len(), 1, "what follows from an error is not another one: {errors}");
    assert!(errors.to_string().contains("result 0 `y` is float[3,4]"), "{errors}");
}

#[test]
fn operators_without_rule_need_value_info() {
    let errors = refused(graph(&[("x", "float[4]")], &["a: my.Op(x) -> y"], &["y"]), &[]).to_string();
    assert!(
        errors.contains("node `a` (my.Op): the type of result 0 `y`")
            && errors.contains("add a value_info entry"),
        "{errors}"
    );
}

#[test]
fn every_value_has_one_definition() {
    let errors = refused(
        graph(&[("x", "float[4]")], &["a: Relu(x) -> y", "b: Relu(x) -> y", "c: Add(y, q) -> x"], &["p"]),
        &[],
    )
    .to_string();
    assert!(
        errors.contains("value `y` is defined twice, by node `a` (Relu) and by node `b` (Relu)"),
        "{errors}"
    );
    assert!(
        errors.contains("value `x` is defined twice, by a graph input and by node `c` (Add)"),
        "{errors}"
    );
    assert!(errors.contains("value `q`, which node `c` (Add) reads"), "{errors}");
    assert!(errors.contains("value `p`, which the graph's list of outputs reads"), "{errors}");
}

#[test]
fn cycles_are_named() {
    let errors = refused(
        graph(
            &[("x", "float[4]")],
            &["a: Add(x, r) -> p", "b: Relu(p) -> q", "c: Neg(q) -> r", "d: Abs(r) -> s"],
            &["s"],
        ),
        &[],
    )
    .to_string();
    let cycle = errors.lines().find(|l| l.contains("cycle")).unwrap();
    for node in ["`a` (Add)", "`b` (Relu)", "`c` (Neg)"] {
        assert!(cycle.contains(node), "{cycle}");
    }
    assert!(!cycle.contains("`d`"), "{cycle}");
}

#[test]
fn the_order_of_the_file_is_kept_as_far_as_it_can_be() {
    let g = imported(graph(
        &[("x", "float[4]")],
        &["a: Relu(x) -> p", "b: Relu(s) -> t", "c: Relu(p) -> q", "d: Relu(q) -> s", "e: Relu(x) -> u"],
        &["t"],
    ));
    assert_eq!(names(&g), ["a", "c", "d", "b", "e"]);
    let b = g.node_named("b").unwrap();
    assert_eq!(g.node(b).source, Some(1));
}

#[test]
fn node_names_are_made_unique() {
    let g = imported(graph(
        &[("x", "float[4]")],
        &[
            ": Relu(x) -> a",
            "n: Relu(x) -> b",
            "n: Relu(x) -> c",
            ": Neg(x) -> d",
            "n_2: Neg(x) -> e",
            "Relu_0: Neg(x) -> f",
        ],
        &[],
    ));
    assert_eq!(names(&g), ["Relu_0_2", "n", "n_3", "Neg_3", "n_2", "Relu_0"]);
}

#[test]
fn control_edges_and_origins_come_from_metadata() {
    let mut proto = graph(
        &[("x", "float[4]")],
        &["a: Relu(x) -> p", "b: Neg(x) -> q", "c: Relu(x) -> r"],
        &["p", "q", "r"],
    );
    proto.node[0] = with(proto.node[0].clone(), key::AFTER, r#"["c"]"#);
    proto.node[2] = with(with(proto.node[2].clone(), key::AFTER, r#"["b", "b"]"#), key::RECOMPUTES, "a");
    let g = imported(proto.clone());
    assert_eq!(names(&g), ["b", "c", "a"]);
    let id = |name| g.node_named(name).unwrap();
    assert_eq!(g.node(id("a")).after[..], [id("c")]);
    assert_eq!(g.node(id("c")).after[..], [id("b")]);
    assert_eq!(g.node(id("c")).recomputes, Some(id("a")));

    proto.node[1] = with(proto.node[1].clone(), key::AFTER, r#"["c"]"#);
    assert!(refused(proto.clone(), &[]).to_string().contains("cycle"));
    proto.node[1] = with(with(node("b: Neg(x) -> q"), key::AFTER, "c"), key::RECOMPUTES, "nobody");
    let errors = refused(proto, &[]).to_string();
    assert!(errors.contains("is no JSON array") && errors.contains("there is no node `nobody`"), "{errors}");
}

#[test]
fn copies_are_copies_in_both_forms() {
    let mut proto = graph(
        &[("x", "float[4]")],
        &[
            "a: Relu(x) -> p",
            "out: ai.lmsc.SwapOut(p) -> h",
            "b: Neg(x) -> q",
            "in: ai.lmsc.SwapIn(h, q) -> p2",
            "out2: Max(p2) -> h2",
            "in2: Max(h2) -> p3",
        ],
        &["p3"],
    );
    proto.node[4] = with(proto.node[4].clone(), key::KIND, "swap_out");
    proto.node[5] = with(proto.node[5].clone(), key::KIND, "swap_in");
    let g = imported(proto.clone());
    let (swap_in, b) = (g.node_named("in").unwrap(), g.node_named("b").unwrap());
    assert_eq!(g.node(swap_in).operands.len(), 1);
    assert_eq!(g.node(swap_in).after[..], [b]);
    assert_eq!(g.node(g.node_named("out2").unwrap()).op, Op::new("ai.lmsc", "SwapOut"));
    for (name, place) in
        [("h", Place::Host), ("p2", Place::Device), ("h2", Place::Host), ("p3", Place::Device)]
    {
        let value = g.value(g.value_named(name).unwrap());
        assert_eq!((value.place, value.ty.to_string()), (place, "float[4]".to_owned()), "{name}");
    }
    let fifth = |text: &str, kind: &str| {
        let mut proto = proto.clone();
        proto.node[5] = with(node(text), key::KIND, kind);
        proto
    };
    let errors = refused(fifth("in2: Max(h2) -> p3", "sideways"), &[]).to_string();
    assert!(errors.contains("neither `swap_out` nor `swap_in`"));
    // What is said to be a copy is one.
    for computes in
        ["Relu(h2)", "Sum(h2, h2)", "Max(h2, q)", "ai.lmsc.AdamWOptimizer(h2)", "my.domain.Max(h2)"]
    {
        let errors = refused(fifth(&format!("in2: {computes} -> p3"), "swap_in"), &[]).to_string();
        assert!(errors.contains("`in2`") && errors.contains("computes more than a copy"), "{errors}");
    }
}

#[test]
fn a_bool_scalar_is_copied_by_or_without_an_edge_more() {
    let mut proto = graph(
        &[("x", "bool[]")],
        &["a: Not(x) -> p", "out: Or(p, p) -> h", "in: Or(h, h) -> q", "b: Not(q) -> y"],
        &["y"],
    );
    for (node, kind) in [(1, "swap_out"), (2, "swap_in")] {
        proto.node[node] = with(proto.node[node].clone(), key::KIND, kind);
    }
    let g = imported(proto);
    for name in ["out", "in"] {
        let swap = g.node(g.node_named(name).unwrap());
        assert!(swap.op.is_swap() && swap.operands.len() == 1 && swap.after.is_empty(), "{name}");
    }
}

#[test]
fn functions_of_ours_are_what_they_say() {
    let swapped = graph(
        &[("x", "float[4]")],
        &["a: Relu(x) -> p", "out: ai.lmsc.SwapOut(p) -> h", "in: ai.lmsc.SwapIn(h) -> q", "b: Neg(q) -> y"],
        &["y"],
    );
    let body = |text: &str, input: &str| FunctionProto {
        name: Some("SwapIn".to_owned()),
        domain: Some("ai.lmsc".to_owned()),
        input: vec![input.to_owned(), "c".to_owned()],
        output: vec!["y".to_owned()],
        node: vec![node(text)],
        ..FunctionProto::default()
    };
    let with_function = |function| {
        let mut model = model(swapped.clone());
        model.proto.functions = vec![function];
        import(&model, &Dims::none())
    };
    with_function(body("n: Identity(x) -> y", "x")).unwrap();
    for other in
        [body("n: Relu(x) -> y", "x"), body("n: Identity(c) -> y", "x"), body("n: Identity(x) -> z", "x")]
    {
        let errors = with_function(other).unwrap_err().to_string();
        assert!(errors.contains("`ai.lmsc::SwapIn` does not compute what lmsc means"), "{errors}");
    }
}

#[test]
fn the_extents_of_pooling_are_found_behind_copies() {
    let mut proto = graph(
        &[("x", "float[1,1,8,8]"), ("dy", "float[1,1,4,4]")],
        &[
            "pool: MaxPool(x) -> y, i",
            "out: ai.lmsc.SwapOut(i) -> h",
            "in: ai.lmsc.SwapIn(h) -> i2",
            "grad: MaxPoolGrad(dy, i2) -> dx",
        ],
        &["dx"],
    );
    let ints = |name: &str, ints: &[i64]| AttributeProto {
        name: Some(name.to_owned()),
        r#type: Some(AttributeType::Ints as i32),
        ints: ints.to_vec(),
        ..AttributeProto::default()
    };
    for node in [0, 3] {
        proto.node[node].attribute = vec![ints("kernel_shape", &[2, 2]), ints("strides", &[2, 2])];
    }
    let g = imported(proto);
    assert_eq!(g.value(g.outputs[0]).ty.to_string(), "float[1,1,8,8]");
    assert_eq!(g.node(g.node_named("pool").unwrap()).attribute("strides"), Some(&Attr::Ints(vec![2, 2])));
}

#[test]
fn what_is_written_in_place_is_an_update() {
    let g = imported(graph(
        &[("buffer", "float[4]"), ("x", "float[4]"), ("flag", "bool[1]")],
        &[
            "a: com.microsoft.InPlaceAccumulatorV2(buffer, x, flag) -> f, b2",
            "b: com.microsoft.InPlaceAccumulatorV2(b2, x, flag) -> f2",
            "c: Relu(x) -> y",
            "d: com.microsoft.InPlaceAccumulatorV2(y, x, flag) -> f3",
        ],
        &["f2", "f3"],
    ));
    let buffer = g.value_named("buffer").unwrap();
    let updates = |name| g.node(g.node_named(name).unwrap()).updates.clone();
    assert_eq!(updates("a"), [Update { variable: buffer, result: Some(1) }]);
    assert_eq!(updates("b"), [Update { variable: buffer, result: None }]);
    assert_eq!(updates("d"), [], "the root is no variable");
    assert_eq!(g.variables(), [buffer]);
}

#[test]
fn initializers_are_slices_of_the_file() {
    let raw = Bytes::from(vec![0u8; 16]);
    let mut proto = graph(
        &[("x", "float[4]"), ("w", "float[4]")],
        &["a: Add(x, w) -> y", "b: Reshape(y, s) -> z"],
        &["z"],
    );
    proto.initializer = vec![
        TensorProto {
            name: Some("w".to_owned()),
            data_type: Some(DataType::Float as i32),
            dims: vec![4],
            raw_data: Some(raw.clone()),
            ..TensorProto::default()
        },
        int_tensor("s", &[2, -1]),
    ];
    let g = imported(proto.clone());
    assert_eq!(g.inputs.len(), 1, "an input with a default value is that initializer");
    let Data::Inline(bytes) = &g.initializers[0].data else { panic!() };
    assert_eq!(bytes.as_ptr(), raw.as_ptr());
    assert_eq!(g.value(g.outputs[0]).ty.to_string(), "float[2,2]");
    proto.initializer[0].dims = vec![5];
    let errors = refused(proto.clone(), &[]).to_string();
    assert!(errors.contains("initializer `w`: it holds 16 bytes, but float[5] has 20"), "{errors}");
    proto.initializer[0].dims = vec![i64::MAX, i64::MAX];
    assert!(refused(proto.clone(), &[]).to_string().contains("2^60"));
    proto.initializer[0].dims = vec![-4];
    assert!(refused(proto, &[]).to_string().contains("its extent 0 is -4"));
}

#[test]
fn a_variable_that_is_an_initializer_is_no_constant() {
    // The legacy optimizer advances its step in place: shapes must not follow from the step of the file.
    let mut proto = graph(
        &[("lr", "float[1]"), ("w", "float[2]"), ("g", "float[2]"), ("m", "float[2]"), ("v", "float[2]")],
        &["a: com.microsoft.AdamOptimizer(lr, step, w, g, m, v) -> step2", "b: ConstantOfShape(step) -> z"],
        &["z"],
    );
    proto.initializer = vec![int_tensor("step", &[1])];
    assert!(refused(proto, &[]).to_string().contains("no constants"));
}

#[test]
fn sequences_of_unknown_length_need_the_training_graph() {
    let mut proto = graph(&[("x", "float[4]")], &[], &[]);
    let ty = TypeProto { sequence_type: Some(Box::default()), ..TypeProto::default() };
    proto.input[0].r#type = Some(ty);
    assert!(refused(proto, &[]).to_string().contains("--optimizer"));
}

fn branch(name: &str, graph: GraphProto) -> AttributeProto {
    AttributeProto {
        name: Some(name.to_owned()),
        r#type: Some(AttributeType::Graph as i32),
        g: Some(Box::new(graph)),
        ..AttributeProto::default()
    }
}

#[test]
fn subgraphs_capture_outer_values() {
    let mut proto = graph(
        &[("c", "bool[]"), ("x", "float[4]"), ("y", "float[4]")],
        &["n: Neg(x) -> p", "i: If(c) -> z"],
        &["z"],
    );
    proto.node[1].attribute = vec![
        branch("then_branch", graph(&[], &["t: Add(p, y) -> r"], &["r"])),
        branch("else_branch", graph(&[], &["e: Relu(x) -> p", "f: Neg(p) -> s"], &["s"])),
    ];
    let g = imported(proto.clone());
    let node = g.node(g.node_named("i").unwrap());
    let captured: Vec<&str> = node.captures.iter().map(|&v| &*g.value(v).name).collect();
    assert_eq!(captured, ["p", "y", "x"]);
    assert_eq!(g.value(g.outputs[0]).ty.to_string(), "float[4]");
    assert!(matches!(node.attribute("then_branch"), Some(Attr::Opaque(_))));

    proto.node[1].attribute[1] = branch("else_branch", graph(&[], &["e: Shape(x) -> s"], &["s"]));
    assert!(refused(proto.clone(), &[]).to_string().contains("the type of result 0 `z` is not known"));
    proto.node[1].attribute[1] = branch("else_branch", graph(&[], &["e: Relu(nowhere) -> s"], &["s"]));
    assert!(refused(proto.clone(), &[]).to_string().contains("value `nowhere`"));

    let mut deep = graph(&[], &["e: Relu(x) -> s"], &["s"]);
    for _ in 0..40 {
        let mut outer = graph(&[], &["i: If(c) -> s"], &["s"]);
        outer.node[0].attribute = vec![branch("then_branch", deep.clone()), branch("else_branch", deep)];
        outer.node[0].attribute.truncate(1);
        deep = outer;
    }
    proto.node[1].attribute[1] = branch("else_branch", deep);
    assert!(refused(proto, &[]).to_string().contains("deep"));
}

#[test]
fn functions_are_looked_into() {
    let mut proto = model(graph(&[("x", "float[4,6]")], &["a: my.F(x) -> y"], &["y"]));
    let mut body = vec![node("r: Softmax(p) -> q"), node("s: Flatten(q) -> r"), node("t: my.G(r) -> s")];
    let reference = |name: &str, of: &str| AttributeProto {
        name: Some(name.to_owned()),
        ref_attr_name: Some(of.to_owned()),
        r#type: Some(AttributeType::Int as i32),
        ..AttributeProto::default()
    };
    body[1].attribute = vec![reference("axis", "at")];
    let function = |name: &str, input: &str, output: &str, node| FunctionProto {
        name: Some(name.to_owned()),
        domain: Some("my".to_owned()),
        input: vec![input.to_owned()],
        output: vec![output.to_owned()],
        node,
        opset_import: vec![OperatorSetIdProto { domain: Some(String::new()), version: Some(17) }],
        ..FunctionProto::default()
    };
    proto.proto.functions =
        vec![function("F", "p", "s", body), function("G", "u", "v", vec![node("n: Neg(u) -> v")])];
    let int = |value| AttributeProto {
        name: Some("at".to_owned()),
        i: Some(value),
        r#type: Some(AttributeType::Int as i32),
        ..AttributeProto::default()
    };
    proto.proto.graph.as_mut().unwrap().node[0].attribute = vec![int(2)];
    let g = import(&proto, &Dims::none()).unwrap();
    assert_eq!(g.value(g.outputs[0]).ty.to_string(), "float[24,1]");
    // Without the attribute the operator's own default holds.
    proto.proto.graph.as_mut().unwrap().node[0].attribute.clear();
    let g = import(&proto, &Dims::none()).unwrap();
    assert_eq!(g.value(g.outputs[0]).ty.to_string(), "float[4,6]");
    // Functions that call themselves are refused, in bounded time.
    proto.proto.functions[1].node = vec![node("n: my.F(u) -> w"), node("m: my.F(w) -> v")];
    let errors = import(&proto, &Dims::none()).unwrap_err().to_string();
    assert!(errors.contains("function my.F calls itself (my.F -> my.G -> my.F)"), "{errors}");
}

#[test]
fn no_more_than_twenty_errors_are_told() {
    let of = |op: &dyn Fn(usize) -> String| {
        let nodes: Vec<String> = (0..50).map(|i| format!("n{i}: {}(x) -> y{i}", op(i))).collect();
        let nodes: Vec<&str> = nodes.iter().map(|n| &**n).collect();
        refused(graph(&[("x", "float[4]")], &nodes, &[]), &[])
    };
    let errors = of(&|i| format!("my.Op{i}"));
    assert_eq!((errors.errors.len(), errors.more), (ImportErrors::MOST, 30));
    assert!(errors.to_string().contains("\n  and 30 more\nhelp: "), "{errors}");
    let errors = of(&|_| "my.Op".to_owned());
    assert_eq!((errors.errors.len(), errors.more), (1, 0));
    assert!(errors.to_string().contains("(and so of 49 more nodes of this operator)"), "{errors}");
}

/// A chain of `count` nodes with a shape computation beside every fourth.
fn large(count: usize) -> GraphProto {
    let mut nodes = Vec::with_capacity(count);
    for i in 0..count / 4 {
        let x = if i == 0 { "x".to_owned() } else { format!("r{}", i - 1) };
        nodes.push(node(&format!("a{i}: Add({x}, w) -> a{i}")));
        nodes.push(node(&format!("s{i}: Shape(a{i}) -> s{i}")));
        nodes.push(node(&format!("m{i}: Relu(a{i}) -> m{i}")));
        nodes.push(node(&format!("r{i}: Reshape(m{i}, s{i}) -> r{i}")));
    }
    let mut graph = graph(&[("x", "float[8,16]"), ("w", "float[16]")], &[], &[]);
    graph.value_info = nodes.iter().step_by(4).map(|n| info(&n.output[0], "float[8,16]")).collect();
    graph.node = nodes;
    graph
}

#[test]
fn a_hundred_thousand_nodes_are_imported_in_no_time() {
    let (small, large) = (model(large(10_000)), model(large(100_000)));
    let time = |model: &Model| {
        let begin = std::time::Instant::now();
        let graph = import(model, &Dims::none()).unwrap();
        (begin.elapsed().as_secs_f64(), graph.order().len())
    };
    let ((a, _), (b, count)) = (time(&small), time(&large));
    println!("10^4 nodes {a:.4} s, {count} nodes {b:.4} s");
    assert_eq!(count, 100_000);
    // Wide bounds: tests run on busy machines. Quadratic work would take a hundred times as long.
    assert!(b < 10.0 && b < 60.0 * a.max(0.01), "10^4 nodes took {a} s, 10^5 nodes {b} s");
}

#[test]
fn order_names_and_cycles_stay_linear() {
    // Backwards, all of one name, and without names.
    for name in ["same", ""] {
        let mut proto = large(40_000);
        proto.node.iter_mut().for_each(|n| n.name = Some(name.to_owned()));
        proto.node.reverse();
        let begin = std::time::Instant::now();
        assert_eq!(imported(proto).order().len(), 40_000);
        assert!(begin.elapsed().as_secs() < 10, "{:?}", begin.elapsed());
    }
}

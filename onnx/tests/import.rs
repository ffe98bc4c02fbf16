//! Import of nodes, names, edges and metadata, and the messages about models that are not graphs.

use std::collections::BTreeMap;

use crate::clock::processor_time;
use bytes::Bytes;
use lmsc_ir::{Advice, Attr, Data, Graph, Op, Place, Update};
use lmsc_onnx::file::Model;
use lmsc_onnx::import::{Dims, ImportErrors, Imported, import, import_warned};
use lmsc_onnx::proto::*;
use lmsc_onnx::{SwapForm, export, key};

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

fn warned(graph: GraphProto, dims: &[(&str, u64)]) -> Imported {
    let dims = Dims::from_iter(dims.iter().copied());
    import_warned(&model(graph), &dims).unwrap_or_else(|e| panic!("{e}"))
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
    let errors = refused(proto(), &[("batch", 2)]).message().to_string();
    let seq = "dimension `seq` has no value: input `x` float[batch,seq,4]\n";
    assert!(errors.contains(seq) && errors.contains("example --dim seq=32"), "{errors}");
    assert!(errors.contains("input `y`: its extent 1 has neither a number nor a name"), "{errors}");
    let errors = refused(proto(), &[("batch", 2), ("sequence", 3)]).message().to_string();
    assert!(errors.contains("--dim sequence") && errors.contains("dimensions are batch, seq"), "{errors}");
}

#[test]
fn an_extent_of_minus_one_is_open() {
    let errors = refused(graph(&[("x", "float[-1,4]")], &["a: Relu(x) -> y"], &["y"]), &[]);
    let message = errors.message().to_string();
    assert!(message.contains("input `x`: its extent 0 has neither a number nor a name"), "{message}");
    let mut proto = graph(&[("x", "float[3,4]")], &["a: Relu(x) -> y", "b: my.Op(y) -> z"], &["z"]);
    proto.value_info = vec![info("y", "float[-1,4]"), info("z", "float[-1,4]")];
    let errors = refused(proto.clone(), &[]).message().to_string();
    assert!(errors.contains('z') && !errors.contains("-1"), "{errors}");
    proto.value_info[1] = info("z", "float[9,4]");
    import(&model(proto), &Dims::default()).unwrap();
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
    assert_eq!(errors.errors.len(), 1, "{errors}");
    assert!(errors.message().to_string().contains("the type of result 0 `z`"), "{errors}");
}

#[test]
fn declarations_that_are_wrong_are_warnings() {
    let mut proto = graph(&[("x", "float[3,4]")], &["a: Relu(x) -> y", "b: Neg(y) -> z"], &["z", "x"]);
    proto.value_info = vec![info("y", "float[12]")];
    proto.output = vec![info("z", "int64[3,4]"), info("x", "float[3,5]")];
    let Imported { graph: g, warnings } = warned(proto, &[]);
    assert_eq!(g.value(g.outputs[0]).ty.to_string(), "float[3,4]");
    let expected = [
        "node `a` (Relu) computes `y` as float[3,4], but the file declares float[12]; the declaration is not used",
        "node `b` (Neg) computes `z` as float[3,4], but the file declares int64[3,4]; the declaration is not used",
        "output `x` is float[3,4], but the file declares float[3,5]; the declaration is not used",
    ];
    assert_eq!(warnings, expected);
}

#[test]
fn contradicting_declarations_say_nothing() {
    let mut proto = graph(&[("x", "float[4]")], &["a: my.Op(x) -> y"], &[]);
    proto.value_info = vec![info("y", "float[4]")];
    proto.output = vec![info("y", "float[5]")];
    assert!(refused(proto.clone(), &[]).message().to_string().contains("the type of result 0 `y`"));
    proto.output = vec![info("y", "float[?]")];
    assert_eq!(warned(proto, &[]).warnings, [""; 0]);
}

#[test]
fn metadata_that_does_not_fit_leaves_no_edge_and_no_address() {
    let nodes = ["a: Relu(x) -> p", "b: Neg(x) -> q", "c: Relu(x) -> r"];
    let mut proto = graph(&[("x", "float[4]")], &nodes, &["p", "q", "r"]);
    let set = |proto: &mut GraphProto, node: usize, key: &str, value: &str| {
        proto.node[node] = with(proto.node[node].clone(), key, value);
    };
    set(&mut proto, 1, key::AFTER, r#"["a"]"#);
    set(&mut proto, 2, key::RECOMPUTES, "a");
    let addresses = r#"{"values": {"x": 0, "p": 16, "q": 32, "r": 48}, "workspaces": {}}"#;
    let read = |proto: GraphProto, addresses: &str| {
        let mut model = model(proto);
        let entry = |key: &str, value: &str| StringStringEntryProto {
            key: Some(key.to_owned()),
            value: Some(value.to_owned()),
        };
        model.proto.metadata_props = vec![entry(key::ADDRESSES, addresses)];
        import_warned(&model, &Dims::none()).unwrap_or_else(|e| panic!("{e}"))
    };
    let edges = |g: &Graph| g.order().iter().map(|&n| g.node(n).after.len()).sum::<usize>();
    let whole = read(proto.clone(), addresses);
    assert_eq!((edges(&whole.graph), whole.graph.has_addresses()), (1, true));
    assert_eq!(whole.warnings, [""; 0]);
    let stale = |proto: GraphProto, addresses: &str, reason: &str| {
        let Imported { graph: g, warnings } = read(proto, addresses);
        assert_eq!((edges(&g), g.has_addresses()), (0, false), "{warnings:?}");
        assert!(warnings.len() == 1 && warnings[0].contains(reason), "{warnings:?}");
        assert!(warnings[0].contains("control edges and addresses are not used"), "{warnings:?}");
    };
    let mut renamed = proto.clone();
    renamed.node[0].name = Some("a_renamed".to_owned());
    stale(
        renamed,
        addresses,
        "node `b` (Neg), metadata `ai.lmsc.after`: there is no node `a` (and 1 more entry like it)",
    );
    let mut twice = proto.clone();
    twice.node.push(node("a: Abs(x) -> s"));
    stale(twice, addresses, "several nodes have the name `a`");
    stale(
        proto.clone(),
        r#"{"values": {"old": 0}, "workspaces": {}}"#,
        "of the model: there is no value `old`",
    );
    stale(proto.clone(), "{", "it is no JSON");
    let mut cycle = proto.clone();
    set(&mut cycle, 0, key::AFTER, r#"["b"]"#);
    stale(cycle, addresses, "wait for one another in a cycle: `a` (Relu) -> `b` (Neg)");
    let mut kind = proto;
    set(&mut kind, 0, key::KIND, "swap_out");
    stale(kind, addresses, "the operator computes more than a copy");
}

#[test]
fn sizes_follow_from_one_another() {
    let nodes = ["a: Relu(x) -> p", "b: Relu(y) -> q"];
    let proto = |x: &str, y: &str| graph(&[("x", x), ("y", y)], &nodes, &["p", "q"]);
    let shapes = |proto: GraphProto, dims: &Dims| {
        let Imported { graph: g, warnings } =
            import_warned(&model(proto), dims).map_err(|e| e.message().to_string())?;
        let shown = g.outputs.iter().map(|&o| g.value(o).ty.to_string()).collect::<Vec<_>>().join(" ");
        Ok::<_, String>((shown, warnings.join("; ")))
    };
    let sized = |symbols: &[(&str, u64)], given: &[(&str, &[u64])]| {
        let mut dims = Dims::from_iter(symbols.iter().copied());
        given.iter().for_each(|(input, extents)| _ = dims.bind_shape(*input, extents.to_vec()));
        dims
    };
    let right = |x: &str, y: &str, dims: &Dims, expected: &str| {
        assert_eq!(shapes(proto(x, y), dims), Ok((expected.to_owned(), String::new())));
    };
    let wrong = |x: &str, y: &str, dims: &Dims, expected: &str| {
        let errors = shapes(proto(x, y), dims).unwrap_err();
        assert!(errors.contains(expected), "{errors}");
    };
    right("float[n,8]", "float[2*n]", &sized(&[("n", 3)], &[]), "float[3,8] float[6]");
    right("float[n]", "float[floor(n/2)]", &sized(&[("n", 5)], &[]), "float[5] float[2]");
    right("float[n]", "float[2*n]", &sized(&[("n", 3), ("2*n", 6)], &[]), "float[3] float[6]");
    right("float[n]", "float[n + m]", &sized(&[("m", 4)], &[("x", &[3])]), "float[3] float[7]");
    right("float[batch-size]", "float[1]", &sized(&[("batch-size", 4)], &[]), "float[4] float[1]");
    right("float[?,3]", "float[-1]", &sized(&[], &[("x", &[2, 3]), ("y", &[5])]), "float[2,3] float[5]");
    let both = sized(&[("n", 3), ("2*n", 7)], &[]);
    wrong("float[n]", "float[2*n]", &both, "--dim n=3, by which `2*n` is 6, contradicts --dim 2*n=7");
    let both = sized(&[("n", 3)], &[("x", &[4])]);
    wrong("float[n]", "float[2*n]", &both, "--dim n=3 contradicts --shape x=4");
    let both = sized(&[], &[("x", &[4]), ("y", &[9])]);
    wrong("float[n]", "float[2*n]", &both, "--shape x=4, by which `2*n` is 8, contradicts --shape y=9");
    wrong(
        "float[n]",
        "float[2,8]",
        &sized(&[("n", 1)], &[("y", &[2, 9])]),
        "`y` float[2,8] contradicts --shape y=2x9",
    );
    wrong(
        "float[n]",
        "float[2]",
        &sized(&[("n", 1)], &[("y", &[2, 1])]),
        "float[2] contradicts --shape y=2x1",
    );
    wrong("float[2]", "float[2*n]", &Dims::none(), "dimension `n` has no value: input `y` float[2*n]");
    wrong("float[batch-size]", "float[1]", &Dims::none(), "dimension `batch-size` has no value");
    wrong("float[?,3]", "float[1]", &Dims::none(), "for example --shape x=32x3");
    wrong(
        "float[n]",
        "float[1]",
        &sized(&[("n", 1)], &[("z", &[1])]),
        "--shape z: there is no input of this name",
    );
    // One name for two sizes, each of which is stated.
    let both = sized(&[], &[("x", &[2]), ("y", &[3])]);
    let (shown, warning) = shapes(proto("float[n]", "float[n]"), &both).unwrap();
    assert_eq!(shown, "float[2] float[3]");
    assert!(warning.contains("the name `n`, which are 2 in --shape x=2 and 3 in --shape y=3"), "{warning}");
    // Nothing may be left to compute; a state may be empty.
    wrong("float[n,8]", "float[2]", &sized(&[("n", 0)], &[]), "the step is empty");
    right("float[n,8]", "float[past]", &sized(&[("n", 1), ("past", 0)], &[]), "float[1,8] float[0]");
}

/// A node with this graph in an attribute.
fn with_graph(mut node: NodeProto, attribute: &str, graph: GraphProto) -> NodeProto {
    node.attribute.push(AttributeProto {
        name: Some(attribute.to_owned()),
        g: Some(Box::new(graph)),
        r#type: Some(AttributeType::Graph as i32),
        ..AttributeProto::default()
    });
    node
}

/// The graph with its decided conditions replaced, as text.
fn inlined(graph: GraphProto, values: &[(&str, &str)]) -> String {
    let mut model = model(graph);
    let values: Vec<_> = values.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
    lmsc_onnx::set_values(&mut model, &values, &Dims::none()).unwrap_or_else(|e| panic!("{e}"));
    lmsc_onnx::inline_decided(&mut model, &Dims::none());
    let g = import(&model, &Dims::none()).unwrap_or_else(|e| panic!("{e}"));
    lmsc_ir::verify(&g).unwrap_or_else(|e| panic!("{e}"));
    g.to_text()
}

fn branches() -> GraphProto {
    let mut proto =
        graph(&[("x", "float[2,3]"), ("sr", "int64[]")], &["c: Equal(sr, k) -> c", "e: Neg(x) -> e"], &["y"]);
    proto.initializer.push(TensorProto { dims: vec![], ..int_tensor("k", &[16000]) });
    let mut dead = graph(&[], &["r: Reshape(x, sh) -> e2"], &["e2"]);
    dead.initializer.push(int_tensor("sh", &[2, 4]));
    let taken = graph(&[], &["n: Abs(x) -> t", "m: Add(t, e) -> t2"], &["t2"]);
    let node = with_graph(node("if: If(c) -> y"), "else_branch", dead);
    proto.node.push(with_graph(node, "then_branch", taken));
    proto
}

#[test]
fn a_decided_if_is_its_branch() {
    let text = inlined(branches(), &[("sr", "16000")]);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|l| l.starts_with('[')).collect();
    let expected = ["[if.n] float[2,3] if.t = Abs(x)", "[if.m] float[2,3] y = Add(if.t, e)"];
    assert_eq!(lines[2..], expected, "{text}");
    // An input that a caller may feed decides nothing, even if the file has a default for it.
    let mut fed = branches();
    fed.initializer.push(TensorProto { dims: vec![], ..int_tensor("sr", &[16000]) });
    fed.output = vec![info("y", "float[2,3]")];
    assert!(inlined(fed, &[]).contains("= If"));
    let refused = |value: &str, reason: &str| {
        let error = lmsc_onnx::set_values(
            &mut model(branches()),
            &[("sr".to_owned(), value.to_owned())],
            &Dims::none(),
        );
        assert!(error.unwrap_err().to_string().contains(reason), "{value}");
    };
    refused("fast", "--value sr=fast: it is not a value of type int64");
    refused("1,2", "the value has 2 elements, but the input has extents []");
}

fn body(inputs: &[(&str, &str)], nodes: &[&str], outputs: &[&str]) -> GraphProto {
    graph(inputs, nodes, outputs)
}

fn counted(trips: i64, nodes: &[&str], outputs: &[&str]) -> GraphProto {
    let inside = body(&[("i", "int64[]"), ("go", "bool[]"), ("s", "float[2]")], nodes, outputs);
    let mut proto = graph(&[("x", "float[2]")], &[], &["y", "z"]);
    proto.initializer.push(TensorProto { dims: vec![], ..int_tensor("n", &[trips]) });
    proto.node.push(with_graph(node("loop: Loop(n, _, x) -> y, z"), "body", inside));
    proto
}

#[test]
fn a_counted_loop_is_its_iterations() {
    let nodes = ["c: Identity(go) -> go2", "a: Add(s, x) -> s2", "b: Neg(s2) -> r"];
    let text = inlined(counted(2, &nodes, &["go2", "s2", "r"]), &[]);
    let has = |line: &str| assert!(text.contains(line), "{line}\n{text}");
    has("[loop.0.a] float[2] loop.0.s2 = Add(x, x)");
    has("[loop.1.a] float[2] loop.1.s2 = Add(loop.0.s2, x)");
    has("float[2] y = Identity(loop.1.s2)");
    has("float[2,2] z = Concat<axis = 0>(z.row.0, z.row.1)");
    assert!(!text.contains("= Loop"), "{text}");
    // One that ends by itself.
    let nodes = ["c: Less(i, n) -> go2", "a: Add(s, x) -> s2", "b: Neg(s2) -> r"];
    let mut ends = counted(1, &nodes, &["go2", "s2", "r"]);
    ends.node[0].input[0] = String::new();
    let text = inlined(ends, &[]);
    assert!(text.contains("loop.1.s2") && !text.contains("loop.2.s2"), "{text}");
    // One that is too long has the types of its body.
    let nodes = ["c: Identity(go) -> go2", "a: Add(s, x) -> s2", "b: Neg(s2) -> r"];
    let text = inlined(counted(1 << 40, &nodes, &["go2", "s2", "r"]), &[]);
    assert!(text.contains("float[2] y, float[1099511627776,2] z = Loop"), "{text}");
    // A value that grows with every iteration has no type then.
    let grows = ["c: Identity(go) -> go2", "a: Concat(s, x) -> s2", "b: Neg(x) -> r"];
    let mut grows = counted(1 << 40, &grows, &["go2", "s2", "r"]);
    let axis = AttributeProto {
        name: Some("axis".to_owned()),
        i: Some(0),
        r#type: Some(AttributeType::Int as i32),
        ..AttributeProto::default()
    };
    grows.node[0].attribute[0].g.as_mut().unwrap().node[1].attribute.push(axis);
    let errors = refused(grows, &[]).message().to_string();
    assert!(errors.contains("an iteration makes carried value 0, which is float[2], float[4]"), "{errors}");
}

#[test]
fn names_of_what_is_inlined_are_new_in_every_scope() {
    let mut proto =
        counted(2, &["c: Identity(go) -> go2", "a: Add(s, x) -> s2", "b: Neg(s2) -> r"], &["go2", "s2", "r"]);
    proto.node.push(node("loop.0.a: Neg(x) -> loop.0.s2"));
    // A branch reads a value of the loop's body under the name that it has there.
    let inner = graph(&[], &["n: Mul(s, loop.1.s2) -> t"], &["t"]);
    let inner = with_graph(node("if: If(q) -> s2"), "then_branch", inner.clone());
    let inner = with_graph(inner, "else_branch", graph(&[], &["n: Neg(s) -> t"], &["t"]));
    proto.input.push(info("q", "bool[]"));
    proto.node.push(node("loop.1.a: Neg(x) -> loop.1.s2"));
    proto.node[0].attribute[0].g.as_mut().unwrap().node[1] = inner;
    let mut read = model(proto);
    assert!(lmsc_onnx::inline_decided(&mut read, &Dims::none()));
    let g = import(&read, &Dims::none()).unwrap_or_else(|e| panic!("{e}"));
    lmsc_ir::verify(&g).unwrap();
    let nodes = &read.proto.graph.as_ref().unwrap().node;
    let ifs: Vec<&NodeProto> = nodes.iter().filter(|n| n.op_type() == "If").collect();
    assert_eq!(ifs.len(), 2);
    let reads = |node: &NodeProto| node.attribute[0].g.as_ref().unwrap().node[0].input.clone();
    assert_eq!(reads(ifs[0]), ["x", "loop.1.s2"]);
    assert_eq!(reads(ifs[1])[0], ifs[0].output[0]);
    assert_ne!(ifs[0].output[0], "loop.0.s2");
}

#[test]
fn the_ir_version_is_raised_for_what_lmsc_adds_only() {
    let mut read = model(graph(&[("x", "float[4]")], &["a: Relu(x) -> y"], &["y"]));
    read.proto.ir_version = Some(7);
    let entry = StringStringEntryProto { key: Some("pkg.note".to_owned()), value: Some("theirs".to_owned()) };
    read.proto.graph.as_mut().unwrap().node[0].metadata_props.push(entry);
    read.proto.functions.push(FunctionProto { name: Some("F".to_owned()), ..FunctionProto::default() });
    let written = |graph: &Graph| {
        let form = lmsc_onnx::SwapForm::Function;
        lmsc_onnx::export(Some(read.clone()), graph, form, &Default::default()).unwrap().ir_version()
    };
    let mut g = import(&read, &Dims::none()).unwrap();
    assert_eq!(written(&g), 7);
    g.set_workspace(g.order()[0], lmsc_ir::Workspace { address: 0, bytes: lmsc_ir::Bytes(1) });
    assert_eq!(written(&g), 7);
    let a = g.order()[0];
    g.set_recomputes(a, a);
    assert_eq!(written(&g), 10);
}

#[test]
fn a_scan_has_the_types_of_its_body() {
    let inside = body(
        &[("s", "float[3]"), ("e", "float[3]")],
        &["a: Add(s, e) -> s2", "b: ReduceSum(s2) -> r"],
        &["s2", "r"],
    );
    let mut proto = graph(&[("x", "float[3]"), ("xs", "float[5,3]")], &[], &["y", "z"]);
    let mut scan = with_graph(node("scan: Scan(x, xs) -> y, z"), "body", inside);
    scan.attribute.push(AttributeProto {
        name: Some("num_scan_inputs".to_owned()),
        i: Some(1),
        r#type: Some(AttributeType::Int as i32),
        ..AttributeProto::default()
    });
    proto.node.push(scan);
    let g = imported(proto.clone());
    let types: Vec<String> = g.outputs.iter().map(|&o| g.value(o).ty.to_string()).collect();
    assert_eq!(types, ["float[3]", "float[5,1]"]);
    // Its length is known.
    let text = inlined(proto, &[]);
    assert!(text.contains("scan.4.xs = Gather<axis = 0>(xs, scan.4.number)"), "{text}");
    assert!(text.contains("scan.4.s2 = Add(scan.3.s2, scan.4.xs)") && !text.contains("= Scan"), "{text}");
}

#[test]
fn operators_without_rule_need_value_info() {
    let errors =
        refused(graph(&[("x", "float[4]")], &["a: my.Op(x) -> y"], &["y"]), &[]).message().to_string();
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

/// The graph of the model, the graph of the file written from it in this order, and the file.
fn written(model: &Model, order: impl FnOnce(&Graph) -> Vec<lmsc_ir::NodeId>) -> (Graph, Graph, ModelProto) {
    let source = import(model, &Dims::none()).unwrap();
    let mut moved = source.clone();
    moved.set_order(order(&source));
    let proto = export(Some(model.clone()), &moved, SwapForm::Function, &BTreeMap::new()).unwrap();
    let again =
        Model { proto: proto.clone(), name: "again.onnx".to_owned(), folder: None, mapped: Vec::new() };
    (source, import(&again, &Dims::none()).unwrap(), proto)
}

#[test]
fn random_nodes_keep_their_seed_under_other_names_and_positions() {
    let nodes = [
        ": Bernoulli(x) -> a",
        "n: Bernoulli(x) -> b",
        "n: Dropout(x) -> c",
        ": Dropout(x) -> d",
        "relu: Relu(x) -> e",
        ": If(t) -> f",
    ];
    let inputs = [("x", "float[4]"), ("t", "bool[]")];
    let mut proto = graph(&inputs, &nodes, &["a", "b", "c", "d", "e", "f"]);
    let drawing = |result: &str| graph(&[], &[&format!(": Bernoulli(x) -> {result}")], &[result]);
    proto.node[5].attribute = vec![branch("then_branch", drawing("p")), branch("else_branch", drawing("q"))];
    let reversed = |g: &Graph| g.order().iter().rev().copied().collect();
    let (source, again, file) = written(&model(proto), reversed);
    let seed = |g: &Graph, result: &str| g.seed(g.producer(g.value_named(result).unwrap()).unwrap());
    for result in ["a", "b", "c", "d", "f"] {
        assert_eq!(seed(&source, result), seed(&again, result), "{result}");
    }
    lmsc_ir::equiv::check(&source, &again).unwrap();
    // The text form holds seeds, too.
    lmsc_ir::equiv::check(&source, &Graph::parse(&again.to_text()).unwrap()).unwrap();

    // Another program gives the nodes names of its own.
    let mut renamed = file.clone();
    let nodes = &mut renamed.graph.as_mut().unwrap().node;
    nodes.iter_mut().enumerate().for_each(|(i, node)| node.name = Some(format!("other/{i}")));
    let renamed = Model { proto: renamed, name: "renamed.onnx".to_owned(), folder: None, mapped: Vec::new() };
    lmsc_ir::equiv::check(&source, &import(&renamed, &Dims::none()).unwrap()).unwrap();

    let seeds = |node: &NodeProto| node.metadata_props.iter().filter(|p| p.key() == key::SEED).count();
    let counts: Vec<usize> = file.graph.unwrap().node.iter().map(seeds).collect();
    assert_eq!(counts, [1, 0, 1, 1, 1, 1], "what draws nothing has none");
    let mut wrong = graph(&inputs[..1], &[": Bernoulli(x) -> a"], &["a"]);
    wrong.node[0] = with(wrong.node[0].clone(), key::SEED, "-1");
    assert!(refused(wrong, &[]).message().to_string().contains("`-1` is no number of 64 bits"));
}

#[test]
fn edges_refer_to_one_of_two_nodes_with_the_same_name() {
    let nodes = ["n: Relu(x) -> a", "n: Neg(x) -> b", "m: Exp(x) -> c"];
    let mut proto = graph(&[("x", "float[4]")], &nodes, &["a", "b", "c"]);
    let file = model(proto.clone());
    let mut source = import(&file, &Dims::none()).unwrap();
    let [relu, neg, exp] = source.order()[..] else { panic!("three nodes") };
    source.add_after(exp, relu);
    source.set_order(vec![neg, relu, exp]);
    let written = export(Some(file), &source, SwapForm::Function, &BTreeMap::new()).unwrap();
    let again = import(&model(written.graph.unwrap()), &Dims::none()).unwrap();
    // Where a file refers to either of them, neither is meant.
    proto.node[2] = with(proto.node[2].clone(), key::AFTER, r#"["n"]"#);
    assert!(warned(proto, &[]).warnings[0].contains("several nodes have the name `n`"));
    let before = |g: &Graph| {
        let node = g.node(g.producer(g.value_named("c").unwrap()).unwrap());
        node.after.iter().map(|&n| g.node(n).op.to_string()).collect::<Vec<_>>()
    };
    assert_eq!((before(&source), before(&again)), (vec!["Relu".to_owned()], vec!["Relu".to_owned()]));
}

#[test]
fn new_names_are_none_of_subgraphs() {
    let mut proto = graph(&[("c", "bool[]"), ("x", "float[4]")], &["i: If(c) -> z"], &["z"]);
    let mut inner = graph(&[], &["x_in: If(c) -> x_host"], &["x_host"]);
    inner.node[0].attribute = vec![
        branch("then_branch", graph(&[], &["deep: Neg(x) -> x_host_2"], &["x_host_2"])),
        branch("else_branch", graph(&[], &["deep: Relu(x) -> r"], &["r"])),
    ];
    proto.node[0].attribute =
        vec![branch("then_branch", inner), branch("else_branch", graph(&[], &["e: Relu(x) -> s"], &["s"]))];
    proto.value_info = vec![info("nothing_defines_it", "float[3]")];
    let g = imported(proto);
    assert_eq!(&*g.fresh_value_name("x_host"), "x_host_3");
    assert_eq!(&*g.fresh_node_name("x_in"), "x_in_2");
    assert_eq!(&*g.clone().fresh_value_name("r"), "r_2");
    assert_eq!(&*g.fresh_value_name("nothing_defines_it"), "nothing_defines_it_2");
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
    assert!(warned(proto.clone(), &[]).warnings[0].contains("cycle"));
    proto.node[1] = with(with(node("b: Neg(x) -> q"), key::AFTER, "c"), key::RECOMPUTES, "nobody");
    let warnings = warned(proto, &[]).warnings;
    assert!(warnings[0].contains("is no JSON array") && warnings[0].contains("1 more entry"), "{warnings:?}");
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
    let warnings = warned(fifth("in2: Max(h2) -> p3", "sideways"), &[]).warnings;
    assert!(warnings[0].contains("neither `swap_out`, `swap_in` nor `copy`"), "{warnings:?}");
    // A node that claims to be a copy must be one.
    for computes in ["Relu(h2)", "Sum(h2, h2)", "Max(h2, q)", "my.domain.Max(h2)"] {
        let mut proto = fifth(&format!("in2: {computes} -> p3"), "swap_in");
        proto.value_info = vec![info("p3", "float[4]")];
        let warnings = warned(proto, &[]).warnings;
        assert!(warnings[0].contains("`in2`") && warnings[0].contains("more than a copy"), "{warnings:?}");
    }
    refused(fifth("in2: ai.lmsc.AdamWOptimizer(h2) -> p3", "swap_in"), &[]);
}

#[test]
fn half_of_a_swap_is_no_swap() {
    let nodes = [
        "a: Relu(x) -> p",
        "out: Max(p) -> h",
        "in: Max(h) -> q",
        "b: Neg(q) -> r",
        "c: Abs(h) -> s",
        "out2: ai.lmsc.SwapOut(r) -> k",
        "in2: ai.lmsc.SwapIn(k) -> t",
    ];
    let mut proto = graph(&[("x", "float[4]")], &nodes, &["s", "t"]);
    proto.node[1] = with(proto.node[1].clone(), key::KIND, "swap_out");
    proto.node[2] = with(with(proto.node[2].clone(), key::KIND, "swap_in"), key::AFTER, r#"["a"]"#);
    let mut read = model(proto);
    let warning = lmsc_onnx::drop_half_swaps(&mut read).unwrap();
    assert!(
        warning.contains("the copy of `p` to the host") && warning.contains("(2 such in all)"),
        "{warning}"
    );
    let Imported { graph: g, warnings } = import_warned(&read, &Dims::none()).unwrap();
    assert_eq!((names(&g), warnings), (vec!["a", "b", "c", "out2", "in2"], vec![]));
    let reads = |node: &str| {
        let operand = g.node(g.node_named(node).unwrap()).operands[0].unwrap();
        g.value(operand).name.to_string()
    };
    assert_eq!((reads("b"), reads("c")), ("p".to_owned(), "p".to_owned()));
    lmsc_ir::verify(&g).unwrap();
    assert_eq!(lmsc_onnx::drop_half_swaps(&mut read), None);
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
fn in_place_writes_are_updates() {
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
    assert_eq!(g.inputs.len(), 2, "an input with a default value is an input");
    let Data::Inline(bytes) = &g.initializers[0].data else { panic!() };
    assert_eq!(bytes.as_ptr(), raw.as_ptr());
    assert_eq!(g.value(g.outputs[0]).ty.to_string(), "float[2,2]");
    proto.initializer[0].dims = vec![5];
    let errors = refused(proto.clone(), &[]).message().to_string();
    assert!(errors.contains("initializer `w`: it holds 16 bytes, but float[5] has 20"), "{errors}");
    proto.initializer[0].dims = vec![i64::MAX, i64::MAX];
    assert!(refused(proto.clone(), &[]).message().to_string().contains("2^60"));
    proto.initializer[0].dims = vec![-4];
    assert!(refused(proto, &[]).message().to_string().contains("its extent 0 is -4"));
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
    assert!(refused(proto, &[]).message().to_string().contains("no constants"));
}

#[test]
fn sequences_of_unknown_length_need_the_training_graph() {
    let mut proto = graph(&[("x", "float[4]")], &[], &[]);
    let ty = TypeProto { sequence_type: Some(Box::default()), ..TypeProto::default() };
    proto.input[0].r#type = Some(ty);
    assert!(refused(proto, &[]).message().to_string().contains("--optimizer"));
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
    assert!(
        refused(proto.clone(), &[]).message().to_string().contains("the type of result 0 `z` is not known")
    );
    proto.node[1].attribute[1] = branch("else_branch", graph(&[], &["e: Relu(nowhere) -> s"], &["s"]));
    assert!(refused(proto.clone(), &[]).message().to_string().contains("value `nowhere`"));

    let mut deep = graph(&[], &["e: Relu(x) -> s"], &["s"]);
    for _ in 0..40 {
        let mut outer = graph(&[], &["i: If(c) -> s"], &["s"]);
        outer.node[0].attribute = vec![branch("then_branch", deep.clone()), branch("else_branch", deep)];
        outer.node[0].attribute.truncate(1);
        deep = outer;
    }
    proto.node[1].attribute[1] = branch("else_branch", deep);
    assert!(refused(proto, &[]).message().to_string().contains("deep"));
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
    assert!(errors.message().to_string().contains("\n  and 30 more\nhelp: "), "{errors}");
    let errors = of(&|_| "my.Op".to_owned());
    assert_eq!((errors.errors.len(), errors.more), (1, 0));
    assert!(errors.message().to_string().contains("(and so of 49 more nodes of this operator)"), "{errors}");
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
        let begin = processor_time();
        let graph = import(model, &Dims::none()).unwrap();
        ((processor_time() - begin).as_secs_f64(), graph.order().len())
    };
    let ((a, _), (b, count)) = (time(&small), time(&large));
    println!("10^4 nodes {a:.4} s, {count} nodes {b:.4} s");
    assert_eq!(count, 100_000);
    // Wide bounds: tests run on slow machines. Quadratic work would take a hundred times as long.
    assert!(b < 10.0 && b < 60.0 * a.max(0.01), "10^4 nodes took {a} s, 10^5 nodes {b} s");
}

#[test]
fn order_names_and_cycles_stay_linear() {
    // Backwards, all of one name, and without names.
    for name in ["same", ""] {
        let mut proto = large(40_000);
        proto.node.iter_mut().for_each(|n| n.name = Some(name.to_owned()));
        proto.node.reverse();
        let begin = processor_time();
        assert_eq!(imported(proto).order().len(), 40_000);
        let took = processor_time() - begin;
        assert!(took.as_secs() < 10, "{took:?}");
    }
}

/// A function of the domain `my`, if it has no other before its name.
fn function(name: &str, inputs: &[&str], nodes: &[&str], output: &str) -> FunctionProto {
    let (domain, name) = name.rsplit_once('.').unwrap_or(("my", name));
    let version = |domain: &str, version| OperatorSetIdProto {
        domain: Some(domain.to_owned()),
        version: Some(version),
    };
    FunctionProto {
        name: Some(name.to_owned()),
        domain: Some(domain.to_owned()),
        input: inputs.iter().map(|&name| name.to_owned()).collect(),
        output: vec![output.to_owned()],
        node: nodes.iter().map(|text| node(text)).collect(),
        opset_import: vec![version("", 17), version("my", 1)],
        ..FunctionProto::default()
    }
}

#[test]
fn calls_that_do_not_go_with_their_functions_are_refused() {
    let relu = || function("F", &["a"], &["n: Relu(a) -> b"], "b");
    let refused = |call: &str, functions: Vec<FunctionProto>, attributes: usize, why: &str| {
        let mut model = model(graph(&[("x", "float[4]")], &["t: Neg(x) -> t", call], &["y"]));
        let twice = AttributeProto {
            name: Some("at".to_owned()),
            i: Some(1),
            r#type: Some(AttributeType::Int as i32),
            ..AttributeProto::default()
        };
        model.proto.graph.as_mut().unwrap().node[1].attribute = vec![twice; attributes];
        model.proto.functions = functions;
        assert!(!lmsc_onnx::inline_functions(&mut model), "{why}");
        let said = import(&model, &Dims::none()).unwrap_err().message().to_string();
        assert!(said.contains(why), "{said}");
    };
    refused("c: my.F(x) -> y", vec![relu(), relu()], 0, "function my.F is defined twice");
    refused("c: my.F(x, x) -> y", vec![relu()], 0, "node `c` (my.F) has 2 operands, and its function has 1");
    refused("c: my.F(x) -> y, z", vec![relu()], 0, "node `c` (my.F) has 2 results, and its function has 1");
    refused("c: my.F(x) -> y", vec![relu()], 2, "node `c` (my.F) gives its function attribute `at` twice");
    let outer = function("F", &["a"], &["n: Add(a, t) -> b"], "b");
    refused("c: my.F(x) -> y", vec![outer], 0, "function my.F reads `t`, which is none of its inputs");
    let standard = function(".Relu", &["a"], &["n: Neg(a) -> b"], "b");
    refused("c: Relu(x) -> y", vec![standard], 0, "function Relu has the name of an operator of ONNX");
}

/// If the outer calls alone were replaced, the file that is written would be expanded further where it is read.
#[test]
fn calls_stay_where_one_is_nested_too_deep() {
    let mut model = model(graph(&[("x", "float[4]")], &["c: my.F40(x) -> y"], &["y"]));
    model.proto.functions = vec![function("F0", &["a"], &["n: Relu(a) -> b"], "b")];
    for level in 1..=40 {
        let call = format!("n: my.F{}(a) -> b", level - 1);
        model.proto.functions.push(function(&format!("F{level}"), &["a"], &[&call], "b"));
    }
    let before = model.proto.clone();
    assert!(!lmsc_onnx::inline_functions(&mut model));
    assert_eq!(model.proto, before);
    model.proto.graph.as_mut().unwrap().node[0].op_type = Some("F20".to_owned());
    assert!(lmsc_onnx::inline_functions(&mut model));
    assert_eq!(model.proto.graph.unwrap().node[0].op_type(), "Relu");
}

//! The checks of every input, and mutations of inputs.
//!
//! Shared by `cargo test` and by `fuzz/`: both say `use … as arbitrary` and `mod steps` in their root. A body
//! returns how far its input came; it reports a fault by panicking.

use std::collections::BTreeMap;

use lmsc_ir::program::Program;
use lmsc_ir::{Bytes, Graph};
use lmsc_onnx::proto::*;
use lmsc_onnx::{Dims, Model, Stated, SwapForm};
use lmsc_papers::tflms;
use lmsc_passes::{CallOptions, Lowering, PassCx, PassError};
use lmsc_plan::Floors;
use lmsc_plan::cost::Profile;
use lmsc_plan::offsets::{self, Effort, Table};
use lmsc_plan::planners::Request;
use lmsc_runtime::Rehearsal;

use crate::arbitrary::{Result, Unstructured};
use crate::steps;

/// How far an input came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reached {
    /// The bytes or the text were refused.
    Refused,
    /// They were read, but are no valid graph.
    Read,
    /// A valid graph that the passes could not help.
    Valid,
    /// The whole way.
    Done,
}

/// ONNX bytes, with nothing but the default options.
pub(crate) fn onnx(bytes: &[u8]) -> Reached {
    let Ok(mut model) = Model::from_bytes(bytes.to_vec().into(), "fuzz") else { return Reached::Refused };
    lmsc_onnx::gather(&mut model);
    match graph(&model, &Dims::none()) {
        Some(graph) => {
            round_trip(&graph);
            Reached::Done
        }
        None => Reached::Read,
    }
}

/// A text, and then the pipeline if it describes a valid graph.
pub(crate) fn text(text: &str, u: &mut Unstructured<'_>) -> Result<Reached> {
    let Ok(graph) = Graph::parse(text) else { return Ok(Reached::Refused) };
    round_trip(&graph);
    if lmsc::check(&graph).is_err() {
        return Ok(Reached::Read);
    }
    let Some(rewritten) = pipeline(&graph, u)? else { return Ok(Reached::Valid) };
    exported(None, &graph, &rewritten, &Dims::none());
    Ok(Reached::Done)
}

/// A module of StableHLO: read, settled, and printed where it is valid.
pub(crate) fn stablehlo(text: &str) -> Reached {
    let Ok(lmsc_mlir::HloStep { mut graph, state, .. }) = lmsc_mlir::step(text) else {
        return Reached::Refused;
    };
    let stated = Stated { pairs: state, not: Vec::new(), by_name: false };
    if lmsc_onnx::settle(&mut graph, &stated).is_err() {
        return Reached::Read;
    }
    round_trip(&graph);
    if lmsc::check(&graph).is_err() || lmsc_onnx::shapes::check(&graph).is_err() {
        return Reached::Valid;
    }
    Reached::Done
}

/// A model, all the way.
pub(crate) fn model(model: &Model, u: &mut Unstructured<'_>) -> Result<Reached> {
    let mut dims = Dims::none();
    for symbol in symbols(&model.proto) {
        dims.bind(symbol, *u.choose(&[1, 2, 3, 4, 4, 4, 4, 0, 1 << 20, 1 << 40, i64::MAX as u64])?);
    }
    let mut model = model.clone();
    lmsc_onnx::gather(&mut model);
    let Some(graph) = graph(&model, &dims) else { return Ok(Reached::Read) };
    round_trip(&graph);
    let Some(rewritten) = pipeline(&graph, u)? else { return Ok(Reached::Valid) };
    exported(Some(&model), &graph, &rewritten, &dims);
    Ok(Reached::Done)
}

/// A model that is run, as it is and planned: both compute the same bits.
pub(crate) fn run(model: &Model, u: &mut Unstructured<'_>) -> Result<Reached> {
    let mut model = model.clone();
    lmsc_onnx::gather(&mut model);
    let Some(graph) = graph(&model, &small(&model, u)?) else { return Ok(Reached::Read) };
    let Some(program) = program(&graph) else { return Ok(Reached::Valid) };
    let Some(rewritten) = pipeline(&graph, u)? else { return Ok(Reached::Valid) };
    // A plan may give a kernel less than it needs, which is refused.
    let Some(planned) = self::program(&rewritten) else { return Ok(Reached::Valid) };
    let what = || format!("{}became\n{}", graph.to_text(), rewritten.to_text());
    same_bits(&program, &planned, u.arbitrary()?, &what);
    Ok(Reached::Done)
}

/// A planned file that was damaged: where it is said to be equal, it computes the same bits.
pub(crate) fn altered(model: &Model, u: &mut Unstructured<'_>) -> Result<Reached> {
    let mut model = model.clone();
    lmsc_onnx::gather(&mut model);
    let dims = small(&model, u)?;
    let Some(original) = graph(&model, &dims) else { return Ok(Reached::Refused) };
    let Some(rewritten) = pipeline(&original, u)? else { return Ok(Reached::Refused) };
    let form = *u.choose(&[SwapForm::Function, SwapForm::Ort])?;
    let Ok(mut proto) = lmsc_onnx::export(Some(model), &rewritten, form, &BTreeMap::new()) else {
        return Ok(Reached::Refused);
    };
    mutate_model(&mut proto, u)?;
    let mut altered = Model { proto, name: "altered".to_owned(), folder: None, mapped: Vec::new() };
    lmsc_onnx::gather(&mut altered);
    let Some(altered) = graph(&altered, &dims) else { return Ok(Reached::Read) };
    if let Err(difference) = lmsc_ir::equiv::check(&original, &altered) {
        assert!(!difference.to_string().is_empty());
        return Ok(Reached::Valid);
    }
    if let (Some(a), Some(b)) = (program(&original), program(&altered)) {
        let what = || format!("{}is said to be equal to\n{}", original.to_text(), altered.to_text());
        same_bits(&a, &b, u.arbitrary()?, &what);
    }
    Ok(Reached::Done)
}

/// A measured profile, as it is read and written.
pub(crate) fn profile(text: &str) -> Reached {
    match Profile::parse(text, "fuzz") {
        Ok(profile) => {
            let json = profile.to_json();
            let again = Profile::parse(&json, "what was written");
            assert_eq!(again.unwrap_or_else(|e| panic!("{e}, in\n{json}")).to_json(), json);
            Reached::Done
        }
        Err(error) => refused(&error),
    }
}

/// A planning problem, and a plan of it where it is small.
pub(crate) fn instance(text: &str) -> Reached {
    let problem = match lmsc_plan::instance::Instance::parse(text) {
        Ok(instance) => instance.problem,
        Err(error) => return refused(&error),
    };
    if problem.ops.len() > 40 {
        return Reached::Read;
    }
    assert!(!Floors::of(&problem).to_string().is_empty());
    let live = problem.live_bytes().into_iter().max().unwrap_or(0);
    let budget = live / 4 * 3;
    let greedy = lmsc_papers::planner("greedy").expect("there is a planner of this name");
    match greedy.plan(&Request::new(&problem, budget)) {
        Ok(plan) => {
            if let Err(flaw) = lmsc_plan::schedule::check(&problem, &plan.schedule, budget) {
                panic!("{flaw}, of\n{text}");
            }
            Reached::Done
        }
        Err(_) => Reached::Valid,
    }
}

/// Buffers with their lifetimes, placed.
pub(crate) fn csv(text: &str) -> Reached {
    let table = match Table::parse(text) {
        Ok(table) => table,
        Err(error) => return refused(&error),
    };
    if table.buffers.len() > 64 {
        return Reached::Read;
    }
    let capacity = offsets::load(&table.buffers).0;
    match offsets::place(&table.buffers, capacity, Effort::percent(1)) {
        Ok(layout) => {
            offsets::check(&table.buffers, &layout, capacity)
                .unwrap_or_else(|flaw| panic!("{flaw}, of\n{text}"));
            let written = table.with_offsets(&layout);
            Table::parse(&written).unwrap_or_else(|e| panic!("{e}, in\n{written}"));
            Reached::Done
        }
        Err(_) => Reached::Valid,
    }
}

/// A file of the format safetensors.
pub(crate) fn tensors(bytes: &[u8]) -> Reached {
    match lmsc::run::tensors_in(bytes, std::path::Path::new("fuzz.safetensors")) {
        Ok(_) => Reached::Done,
        Err(error) => refused(&error),
    }
}

fn refused(error: &dyn std::fmt::Display) -> Reached {
    assert!(!error.to_string().is_empty());
    Reached::Refused
}

/// Small values for the model's symbolic dimensions.
fn small(model: &Model, u: &mut Unstructured<'_>) -> Result<Dims> {
    let mut dims = Dims::none();
    for symbol in symbols(&model.proto) {
        dims.bind(symbol, u.int_in_range(1..=4)?);
    }
    Ok(dims)
}

/// The program of a graph that is small and whose kernels are all here.
fn program(graph: &Graph) -> Option<Program> {
    const MOST_NODES: usize = 300;
    const MOST_BYTES: u64 = 1 << 20;
    if graph.order().len() > MOST_NODES || PassCx::default().memory(graph).peak().0 > MOST_BYTES {
        return None;
    }
    let needed = lmsc_runtime::workspaces(graph);
    let workspace = |node| needed.get(&node).copied().unwrap_or_default();
    let program = lmsc_passes::lower(graph, &Lowering { arena: None, workspace: &workspace }).ok()?;
    if program.arena.0 > 8 * MOST_BYTES {
        return None;
    }
    Rehearsal::new(program.clone(), 0).is_ok().then_some(program)
}

fn same_bits(a: &Program, b: &Program, seed: u64, what: &dyn Fn() -> String) {
    let rehearsed = |program: &Program, seed| {
        lmsc_ir::program::check(program).unwrap_or_else(|e| panic!("{e}: {}", what()));
        steps::rehearse(program, seed, false, |bytes| bytes.to_vec()).0
    };
    if let Some(difference) = rehearsed(a, 0).difference(&rehearsed(b, seed)) {
        panic!("{difference} differs: {}", what());
    }
}

/// The verified graph of the model, if it is one.
fn graph(model: &Model, dims: &Dims) -> Option<Graph> {
    let mut graph = match lmsc_onnx::import(model, dims) {
        Ok(graph) => graph,
        Err(errors) => {
            assert!(!errors.to_string().is_empty());
            return None;
        }
    };
    lmsc_onnx::settle(&mut graph, &lmsc_onnx::Stated::of(model).ok()?).ok()?;
    lmsc::check(&graph).ok()?;
    Some(graph)
}

/// print ∘ parse ∘ print = print.
fn round_trip(graph: &Graph) {
    let text = graph.to_text();
    let parsed = Graph::parse(&text).unwrap_or_else(|e| panic!("{e}, in\n{text}"));
    assert_eq!(parsed.to_text(), text);
    if let Ok(mlir) = lmsc_mlir::print(graph) {
        let parsed = lmsc_mlir::parse(&mlir).unwrap_or_else(|e| panic!("{e}, in\n{mlir}"));
        assert_eq!(parsed.to_text(), text);
    }
}

/// The graph after the passes, with parameters and a budget of `u`'s choice; `None` where it does not fit.
fn pipeline(graph: &Graph, u: &mut Unstructured<'_>) -> Result<Option<Graph>> {
    let before = PassCx::default().memory(graph);
    let levels = [0, 1, 2, 3, 10, 1000, u32::MAX];
    let (is_fixed, mut cx) = (u.arbitrary()?, PassCx::default());
    if u.ratio(3, 4)? {
        let peak = before.peak().0;
        cx.question.budget = Some(Bytes(match u.int_in_range(0..=7u8)? {
            0 => u.arbitrary()?,
            1 => 0,
            2 => peak.saturating_add(1),
            eighths => (u128::from(peak) * u128::from(eighths + 1) / 8) as u64,
        }));
    }
    let mut options: Vec<(&str, String)> = Vec::new();
    if is_fixed {
        let levels = |u: &mut Unstructured<'_>| Ok(u.choose(&levels)?.to_string());
        for option in ["threshold", "lb", "ub", "fuse-swapins", "branch-threshold"] {
            options.push((option, levels(u)?));
        }
        let tensors = *u.choose(&[None, None, None, Some(0), Some(1), Some(7)])?;
        options.extend(tensors.map(|n: u32| ("n-tensors", n.to_string())));
        options.push(("ctrld-strategy", (*u.choose(&["chain-rule", "direct-order"])?).to_owned()));
        options.push(("swap-branches", u.arbitrary::<bool>()?.to_string()));
    }
    options.push(("encode", u.arbitrary::<bool>()?.to_string()));
    let swaps = *u.choose(&[None, None, None, Some(0), Some(1), Some(3)])?;
    options.extend(swaps.map(|n: u32| ("swap-limit", n.to_string())));
    let options: Vec<(&str, &str)> = options.iter().map(|(name, value)| (*name, &**value)).collect();
    cx.question.planner_options =
        CallOptions::of("planner", tflms::NAME, &tflms::OPTIONS, &options).expect("they are declared");
    if u.ratio(1, 3)? {
        let all: Vec<_> = lmsc_papers::ALL.iter().filter(|planner| planner.of_problems().is_some()).collect();
        (cx.question.planner, cx.question.ranges) = (Some(*u.choose(&all)?), u.arbitrary()?);
        // Learning takes long, and the plan of its first episode is as much of a plan.
        cx.question.effort = cx.question.planner.filter(|planner| planner.name() == "dqn").map(|_| 1);
    }

    let mut rewritten = graph.clone();
    let planner = cx.question.planner.map_or(tflms::NAME, |planner| planner.name());
    let passes = lmsc_papers::pipeline(planner);
    match passes.run(&mut rewritten, &cx) {
        Ok(_) => {}
        Err(PassError::Refused(_) | PassError::Call(_)) => return Ok(None),
        Err(broke) => panic!("{broke}\nof\n{}with {cx:?}", graph.to_text()),
    }
    let after = cx.memory(&rewritten);
    let what = || format!("{}became\n{}with {cx:?}", graph.to_text(), rewritten.to_text());
    let (peak, limit) = (after.peak(), before.peak());
    assert!(peak <= limit, "the peak rose from {limit} to {peak}: {}", what());
    let limited = planner == tflms::NAME && (is_fixed || swaps.is_some());
    if let Some(budget) = cx.question.budget.filter(|_| !limited) {
        assert!(after.peak() <= budget, "{} is over the budget: {}", after.peak(), what());
    }
    equal(graph, &rewritten, &what);
    round_trip(&rewritten);
    Ok(Some(rewritten))
}

fn equal(a: &Graph, b: &Graph, what: &dyn Fn() -> String) {
    if let Err(difference) = lmsc_ir::equiv::check(a, b) {
        panic!("{difference}: {}", what());
    }
}

/// Writes the graph in both forms and reads it again.
fn exported(model: Option<&Model>, original: &Graph, rewritten: &Graph, dims: &Dims) {
    for form in [SwapForm::Function, SwapForm::Ort] {
        let proto = match lmsc_onnx::export(model.cloned(), rewritten, form, &BTreeMap::new()) {
            Ok(proto) => proto,
            // The text form holds no bytes, and sequences have no ONNX tensor type.
            Err(_) if model.is_none() => return,
            Err(e) => panic!("{e}"),
        };
        let mut bytes = Vec::new();
        lmsc_onnx::file::encode_to(&proto, &mut bytes).unwrap();
        let mut again =
            Model::from_bytes(bytes.into(), "what was exported").unwrap_or_else(|e| panic!("{e}"));
        lmsc_onnx::gather(&mut again);
        let what = || format!("exported as {form:?}\n{}", rewritten.to_text());
        let mut read = match lmsc_onnx::import(&again, dims) {
            Ok(read) => read,
            // A text may declare types that the operator's shape rule contradicts.
            Err(_) if model.is_none() => return,
            Err(e) => panic!("{e}\n{}", what()),
        };
        let pairs = lmsc_onnx::Stated::of(&again).unwrap();
        match lmsc_onnx::settle(&mut read, &pairs) {
            Err(_) if model.is_none() => return,
            settled => _ = settled.unwrap_or_else(|e| panic!("{e}\n{}", what())),
        }
        match lmsc::check(&read) {
            Err(_) if model.is_none() => return,
            verified => verified.unwrap_or_else(|e| panic!("{e}\n{}", what())),
        }
        if model.is_some() {
            equal(rewritten, &read, &what);
            equal(original, &read, &what);
        }
    }
}

/// The symbolic dimensions of the model's inputs.
fn symbols(proto: &ModelProto) -> Vec<String> {
    let inputs =
        proto.graph.iter().flat_map(|g| &g.input).filter_map(|i| i.r#type.as_ref()?.tensor_type.as_ref());
    let dims = inputs.flat_map(|t| &t.shape).flat_map(|s| &s.dim);
    let mut symbols: Vec<String> =
        dims.filter_map(|d| d.dim_param.clone()).filter(|s| !s.is_empty()).collect();
    symbols.sort();
    symbols.dedup();
    symbols
}

/// Changes some bytes.
pub(crate) fn mutate_bytes(bytes: &mut Vec<u8>, u: &mut Unstructured<'_>) -> Result<()> {
    for _ in 0..u.int_in_range(1..=4)? {
        if bytes.is_empty() {
            return Ok(());
        }
        let at = u.choose_index(bytes.len())?;
        match u.int_in_range(0..=5)? {
            0 => bytes[at] = u.arbitrary()?,
            1 => bytes[at] ^= 1 << u.int_in_range(0..=7)?,
            2 => bytes.insert(at, u.arbitrary()?),
            3 => _ = bytes.remove(at),
            4 => bytes.truncate(at),
            _ => {
                let to = (at + u.int_in_range(0..=200)?).min(bytes.len());
                let part = bytes[at..to].to_vec();
                let into = u.choose_index(bytes.len())?;
                bytes.splice(into..into, part);
            }
        }
    }
    Ok(())
}

/// Numbers that are a size too large, or none.
const ODD: &[i64] = &[0, 1, 2, 3, 4, 7, 16, -1, -2, -9, 1 << 31, 1 << 40, 1 << 60, i64::MAX, i64::MIN];

/// Changes nodes, names, types and attributes, so that most of the model stays sound.
pub(crate) fn mutate_model(proto: &mut ModelProto, u: &mut Unstructured<'_>) -> Result<()> {
    let Some(graph) = &mut proto.graph else { return Ok(()) };
    let mut names: Vec<String> = graph.node.iter().flat_map(|n| n.output.iter().cloned()).collect();
    names.extend(graph.input.iter().map(|i| i.name().to_owned()));
    names.extend(graph.initializer.iter().map(|i| i.name().to_owned()));
    names.push(String::new());
    for _ in 0..u.int_in_range(1..=5)? {
        if graph.node.is_empty() {
            return Ok(());
        }
        let at = u.choose_index(graph.node.len())?;
        let name = u.choose(&names)?.clone();
        match u.int_in_range(0..=19)? {
            0 => _ = graph.node.remove(at),
            1 => {
                let mut twin = graph.node[at].clone();
                for output in twin.output.iter_mut().filter(|o| !o.is_empty()) {
                    *output = format!("{output}_twin");
                }
                let into = u.choose_index(graph.node.len())?;
                names.extend(twin.output.iter().cloned());
                graph.node.insert(into, twin);
            }
            2 => graph.node.swap(at, 0),
            3 => graph.node[at].input.reverse(),
            4 | 5 => {
                let count = graph.node[at].input.len();
                if count > 0 {
                    graph.node[at].input[u.choose_index(count)?] = name;
                }
            }
            6 => graph.node[at].input.push(name),
            7 => _ = graph.node[at].input.pop(),
            8 => graph.node[at].output.push(format!("more_{}", u.int_in_range(0..=9)?)),
            9 => _ = graph.node[at].output.pop(),
            10 => {
                let &(domain, op) = u.choose(&lmsc_onnx::shapes::operators())?;
                (graph.node[at].domain, graph.node[at].op_type) = (Some(domain.into()), Some(op.into()));
            }
            11 | 12 => {
                let count = graph.node[at].attribute.len();
                if count > 0 {
                    let which = u.choose_index(count)?;
                    mutate_attribute(&mut graph.node[at].attribute, which, u)?;
                }
            }
            13 => {
                let infos = match u.int_in_range(0..=2)? {
                    0 => &mut graph.input,
                    1 => &mut graph.output,
                    _ => &mut graph.value_info,
                };
                mutate_infos(infos, u)?;
            }
            14 => {
                let count = graph.initializer.len();
                if count > 0 {
                    mutate_tensor(&mut graph.initializer[u.choose_index(count)?], u)?;
                }
            }
            15 => graph.output.push(ValueInfoProto { name: Some(name), ..ValueInfoProto::default() }),
            16 => {
                let other = graph.node[u.choose_index(graph.node.len())?].name().to_owned();
                let (key, value) = match u.int_in_range(0..=3)? {
                    0 | 1 => ("ai.lmsc.after", format!("[{other:?}]")),
                    2 => ("ai.lmsc.recomputes", other),
                    _ => ("ai.lmsc.kind", (*u.choose(&["swap_out", "swap_in"])?).to_owned()),
                };
                graph.node[at]
                    .metadata_props
                    .push(StringStringEntryProto { key: Some(key.to_owned()), value: Some(value) });
            }
            17 => graph.node[at].name = Some(u.choose(&graph.node)?.name().to_owned()),
            18 => {
                // An input and an output that look like a variable and its next value.
                let input = graph.input.first().map(|i| i.name().to_owned()).unwrap_or_default();
                let node = &mut graph.node[at];
                if let Some(output) = node.output.first_mut().filter(|o| !o.is_empty()) {
                    let old = std::mem::replace(output, format!("{input}_new"));
                    let renamed = output.clone();
                    let reads = graph.node.iter_mut().flat_map(|n| &mut n.input);
                    reads.filter(|i| **i == old).for_each(|i| i.clone_from(&renamed));
                    graph.output.push(ValueInfoProto { name: Some(renamed), ..ValueInfoProto::default() });
                }
            }
            _ => {
                let view =
                    *u.choose(&["Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Shape", "If"])?;
                graph.node[at].op_type = Some(view.to_owned());
                graph.node[at].domain = None;
            }
        }
    }
    if u.ratio(1, 10)? && !proto.opset_import.is_empty() {
        let at = u.choose_index(proto.opset_import.len())?;
        proto.opset_import[at].version = Some(*u.choose(ODD)?);
    }
    Ok(())
}

fn mutate_attribute(attributes: &mut Vec<AttributeProto>, at: usize, u: &mut Unstructured<'_>) -> Result<()> {
    let attribute = &mut attributes[at];
    match u.int_in_range(0..=4)? {
        0 => _ = attributes.remove(at),
        1 => attribute.i = Some(*u.choose(ODD)?),
        2 => {
            attribute.ints =
                (0..u.int_in_range(0..=8)?).map(|_| u.choose(ODD).copied()).collect::<Result<_>>()?
        }
        3 => attribute.f = Some(*u.choose(&[0.0, -1.0, f32::NAN, f32::INFINITY, f32::MIN, 1e30])?),
        _ => {
            if let Some(tensor) = &mut attribute.t {
                mutate_tensor(tensor, u)?;
            } else {
                attribute.r#type = Some(u.int_in_range(0..=15)?);
            }
        }
    }
    Ok(())
}

fn mutate_tensor(tensor: &mut TensorProto, u: &mut Unstructured<'_>) -> Result<()> {
    match u.int_in_range(0..=3)? {
        0 => tensor.dims.push(*u.choose(ODD)?),
        1 => tensor.dims = vec![*u.choose(ODD)?],
        2 => tensor.data_type = Some(u.int_in_range(0..=30)?),
        _ => {
            let values: Vec<i64> =
                (0..u.int_in_range(0..=6)?).map(|_| u.choose(ODD).copied()).collect::<Result<_>>()?;
            *tensor = TensorProto {
                name: tensor.name.take(),
                dims: vec![values.len() as i64],
                data_type: Some(DataType::Int64 as i32),
                raw_data: Some(values.iter().flat_map(|v| v.to_le_bytes()).collect()),
                ..TensorProto::default()
            };
        }
    }
    Ok(())
}

fn mutate_infos(infos: &mut Vec<ValueInfoProto>, u: &mut Unstructured<'_>) -> Result<()> {
    if infos.is_empty() {
        return Ok(());
    }
    let at = u.choose_index(infos.len())?;
    if u.ratio(1, 4)? {
        infos.remove(at);
        return Ok(());
    }
    let Some(tensor) = infos[at].r#type.as_mut().and_then(|t| t.tensor_type.as_mut()) else { return Ok(()) };
    match u.int_in_range(0..=2)? {
        0 => tensor.elem_type = Some(u.int_in_range(0..=30)?),
        1 => tensor.shape = None,
        _ => {
            let dims = &mut tensor.shape.get_or_insert_default().dim;
            let extent = Dimension { dim_value: Some(*u.choose(ODD)?), ..Dimension::default() };
            if dims.is_empty() {
                dims.push(extent);
            } else {
                let at = u.choose_index(dims.len())?;
                dims[at] = extent;
            }
        }
    }
    Ok(())
}

/// Words of the text form, and some that are none.
const WORDS: &[&str] = &[
    "[",
    "]",
    "(",
    ")",
    "{",
    "}",
    "<",
    ">",
    ",",
    "=",
    "=>",
    ":",
    "@",
    "_",
    "\"",
    "\\",
    "//",
    "@host",
    "@device:0",
    "@device:18446744073709551615",
    "after",
    "captures",
    "recomputes",
    "updates",
    "as",
    "seq",
    "bytes",
    "external",
    "opaque",
    "ints []",
    "float[]",
    "float[0]",
    "float[4611686018427387904]",
    "int4[3]",
    "string[2]",
    "seq()",
    "ai.lmsc.SwapOut",
    "ai.lmsc.SwapIn",
    "Identity",
    "Reshape",
    "Shape",
    "ai.lmsc.SGDOptimizer",
    "nan",
    "inf",
    "-inf",
    "nan:7fc00001",
    "0x0",
    "-1",
    "0",
    "99999999999999999999",
    "1e400",
    "\"\"",
    "\"\\x00\"",
    "é",
    "\u{0}",
    "\n",
    "com.microsoft.InPlaceAccumulatorV2",
];

/// Changes lines, words and characters.
pub(crate) fn mutate_text(text: &mut String, u: &mut Unstructured<'_>) -> Result<()> {
    for _ in 0..u.int_in_range(1..=4)? {
        let mut lines: Vec<&str> = text.lines().collect();
        if lines.len() < 2 {
            return Ok(());
        }
        let (a, b) = (u.choose_index(lines.len())?, u.choose_index(lines.len())?);
        let changed = match u.int_in_range(0..=6)? {
            0 => {
                lines.remove(a);
                None
            }
            1 => {
                lines.swap(a, b);
                None
            }
            2 => {
                lines.insert(b, lines[a]);
                None
            }
            kind => {
                let separators = |c: char| " (),<>[]=@".contains(c);
                let mut words: Vec<&str> = lines[a].split_inclusive(separators).collect();
                let others: Vec<&str> = lines[b].split_inclusive(separators).collect();
                let new = match (kind, others.is_empty()) {
                    (3 | 4, false) => *u.choose(&others)?,
                    _ => *u.choose(WORDS)?,
                };
                if words.is_empty() {
                    words.push(new);
                } else {
                    let at = u.choose_index(words.len())?;
                    match u.int_in_range(0..=2)? {
                        0 => words[at] = new,
                        1 => words.insert(at, new),
                        _ => _ = words.remove(at),
                    }
                }
                Some(words.concat())
            }
        };
        if let Some(line) = &changed {
            lines[a] = line;
        }
        *text = lines.join("\n") + "\n";
    }
    Ok(())
}

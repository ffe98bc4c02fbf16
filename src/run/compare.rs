//! Finds the first operator whose results differ from the host's for the same operands.
//!
//! Each operator is looked at alone: its operands are those that were seen, wrong ones included. So an error is found where it is
//! made, and not where it shows.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bytes::Bytes;
use half::{bf16, f16};
use lmsc_cuda::Precision;
use lmsc_ir::program::{Checked, Launch, PlacedTensor};
use lmsc_ir::{
    Constants, Data, ElementType, Graph, Node, NodeId, Place, TensorType, ValueId, copied_elements,
};
use lmsc_runtime::{HostLink, StepObserver, Turn, Unobserved};

use super::watch::Watcher;
use super::{Job, Prepared, RunOptions, Runner, STEPS, not_ready, prepare, program};
use crate::Error;
use crate::job::Device;

/// The bytes of values, by name.
pub(crate) type Values = BTreeMap<String, Bytes>;

/// Operands of at most this many bytes are constants where an operator is computed alone: kernels may need to know them.
const CONSTANT: usize = 1 << 10;

/// Operators that were looked at, in the order of the step.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    /// Number of operators whose results are those of the host.
    pub(crate) equal: usize,
    /// Operators that could not be looked at, each with the reason.
    pub(crate) left_out: Vec<(String, String)>,
    /// Operators with other results.
    pub(crate) wrong: Vec<Wrong>,
}

/// An operator whose result differs from the host's.
#[derive(Debug)]
pub(crate) struct Wrong {
    pub(crate) node: NodeId,
    /// The name of the result.
    pub(crate) result: String,
    /// The index of the element that is off by most.
    pub(crate) element: usize,
    /// That element, as it was seen and as it should be.
    pub(crate) values: [f64; 2],
    /// Its error divided by the error that rounding explains.
    pub(crate) times: f64,
    /// Operands for which there was no recorded value, so that they are those of the run.
    pub(crate) of_run: Vec<String>,
}

/// All values of the last step of the job: those that the step was given, and those that its operators computed.
///
/// # Errors
/// As a run.
pub(crate) fn values_of(mut job: Job<'_>) -> Result<(Graph, Values), Error> {
    let graph = job.graph.clone();
    let checked = job.program()?;
    let (mut session, open, _) = job.open(checked, None)?;
    let Prepared { feed, counter, .. } = prepare(job.options, &graph, &mut session, &open)?;
    let steps = job.options.steps.unwrap_or(STEPS);
    let mut values = Values::new();
    let known = Constants::of(&graph);
    for (value, facts) in graph.values() {
        // Integers that are known without running, such as shapes, have no memory.
        if let Some(Data::Inline(bytes)) = known.get(value) {
            values.insert(facts.name.to_string(), bytes.clone());
        }
    }
    let signal = Arc::new(AtomicBool::new(false));
    let with = (feed, counter);
    let before = Watcher::new(&RunOptions::default(), steps, &graph, session.program(), with, signal, None)?;
    let mut observer = Seeing { watcher: before, sees: false, given: Vec::new(), values };
    let subject = job.subject();
    session.run(steps - 1, &mut observer).map_err(|e| not_ready(&subject, e))?;
    observer.given = session.program().given.iter().map(|g| g.tensor.name.to_string()).collect();
    observer.sees = true;
    session.run(1, &mut observer).map_err(|e| not_ready(&subject, e))?;
    Ok((graph, observer.values))
}

/// Keeps the results of all operators of a step.
struct Seeing<'a> {
    watcher: Watcher<'a>,
    sees: bool,
    /// The names of the inputs, initializers and variables of the step.
    given: Vec<String>,
    values: Values,
}

impl StepObserver for Seeing<'_> {
    fn turn(&mut self, turn: &mut Turn<'_>) -> Result<(), String> {
        self.watcher.turn(turn)?;
        for name in self.given.iter().filter(|_| self.sees) {
            if let Some(bytes) = turn.given(name) {
                self.values.insert(name.clone(), bytes.into_owned().into());
            }
        }
        Ok(())
    }

    fn launched(
        &mut self,
        launch: &Launch,
        bytes: &dyn Fn(&PlacedTensor) -> Result<Vec<u8>, String>,
    ) -> Result<(), String> {
        for tensor in launch.results.iter().flatten().filter(|_| self.sees) {
            self.values.insert(tensor.name.to_string(), bytes(tensor)?.into());
        }
        Ok(())
    }

    fn looks(&self) -> bool {
        self.sees
    }
}

/// Compares every operator of the graph with the host's kernels. `seen` has the values that are in question; operands that it
/// lacks are taken from `run`.
pub(crate) fn compare(graph: &Graph, seen: &Values, run: &Values, precision: Precision) -> Comparison {
    let mut comparison = Comparison::default();
    for &id in graph.order() {
        let node = graph.node(id);
        if node.op.is_swap() || node.op.is_join() || node.op.effects().view {
            continue;
        }
        match looked_at(graph, id, [seen, run], precision) {
            Ok(None) => comparison.equal += 1,
            Ok(Some(wrong)) => comparison.wrong.push(wrong),
            Err(reason) => comparison.left_out.push((node.name.to_string(), reason)),
        }
    }
    comparison
}

/// The bytes of the value: its own, or those of the value of which it is a view or a whole copy.
fn found(graph: &Graph, mut value: ValueId, values: &Values) -> Option<Bytes> {
    loop {
        if let Some(bytes) = values.get(&*graph.value(value).name) {
            return Some(bytes.clone());
        }
        let node = graph.node(graph.producer(value)?);
        let is_copy = node.op.is_swap() && copied_elements(node).is_none();
        let is_view = node.op.effects().view && node.results.first() == Some(&Some(value));
        value = (is_copy || is_view).then(|| node.operands[0])??;
    }
}

/// The operator compared with the host; `Err` says why it cannot be.
fn looked_at(
    graph: &Graph,
    id: NodeId,
    [seen, run]: [&Values; 2],
    precision: Precision,
) -> Result<Option<Wrong>, String> {
    let node = graph.node(id);
    if node.op.effects().random {
        return Err("it draws random numbers".to_owned());
    }
    if !node.captures.is_empty() {
        return Err("it has a body".to_owned());
    }
    let results: Vec<(usize, &str, Bytes)> = (node.results.iter().enumerate())
        .filter_map(|(at, &result)| {
            let name = &*graph.value(result?).name;
            Some((at, name, seen.get(name)?.clone()))
        })
        .collect();
    if results.is_empty() {
        return Err("none of its results was seen".to_owned());
    }
    let (mut operands, mut of_run) = (Vec::new(), Vec::new());
    for &operand in &node.operands {
        let Some(value) = operand else {
            operands.push(None);
            continue;
        };
        let name = &graph.value(value).name;
        let bytes = found(graph, value, seen).or_else(|| {
            of_run.push(name.to_string());
            found(graph, value, run)
        });
        operands.push(Some(bytes.ok_or_else(|| format!("its operand `{name}` was not seen"))?));
    }
    let exact = alone(graph, node, &operands)?;
    // Two runs with operands that are rounded otherwise differ as far as rounding explains.
    let step = rounding(precision);
    let moved = [1.0, -1.0].map(|sign| {
        let moved = (node.operands.iter().zip(&operands)).enumerate().map(|(at, (&value, bytes))| {
            let ty = graph.value(value?).ty.as_tensor()?;
            Some(nudged(ty.element, bytes.as_ref()?, step * sign, at))
        });
        alone(graph, node, &moved.collect::<Vec<_>>())
    });
    let moved: Vec<_> = moved.into_iter().collect::<Result<_, _>>()?;
    let mut worst: Option<Wrong> = None;
    for (at, name, bytes) in results {
        let Some(ty) = node.results[at].and_then(|value| graph.value(value).ty.as_tensor()) else { continue };
        let of = |run: &[Option<Bytes>]| run[at].clone().unwrap_or_default();
        let others = moved.iter().map(|run| of(run)).collect::<Vec<_>>();
        if let Some((element, values, times)) = difference(ty, &bytes, &of(&exact), &others, step)
            && worst.as_ref().is_none_or(|worst| worst.times < times)
        {
            let (result, of_run) = (name.to_owned(), of_run.clone());
            worst = Some(Wrong { node: id, result, element, values, times, of_run });
        }
    }
    Ok(worst)
}

/// The node as a graph of its own; small operands are constants, the others inputs.
pub(crate) fn case(graph: &Graph, node: &Node, operands: &[Option<Bytes>]) -> Graph {
    let mut case = Graph::new("case");
    case.opsets.clone_from(&graph.opsets);
    let mut alone = Node::new(node.name.clone(), node.op.clone());
    alone.attributes.clone_from(&node.attributes);
    alone.seed = node.seed;
    for (&operand, bytes) in node.operands.iter().zip(operands) {
        let value = operand.map(|operand| {
            let value = graph.value(operand);
            case.value_named(&value.name).unwrap_or_else(|| match bytes {
                Some(bytes) if bytes.len() <= CONSTANT => {
                    case.add_initializer(value.name.clone(), value.ty.clone(), Data::Inline(bytes.clone()))
                }
                _ => case.add_input(value.name.clone(), value.ty.clone(), Place::Device),
            })
        });
        alone.operands.push(value);
    }
    let result = |result: &Option<ValueId>| {
        let value = graph.value((*result)?);
        Some((value.name.clone(), value.ty.clone(), Place::Device))
    };
    let id = case.add_node(alone, node.results.iter().map(result).collect::<Vec<_>>());
    case.outputs = case.node(id).defines().collect();
    case
}

/// The results of the node on the host, with these operands.
fn alone(graph: &Graph, node: &Node, operands: &[Option<Bytes>]) -> Result<Vec<Option<Bytes>>, String> {
    let case = case(graph, node, operands);
    let lowered = program(&case, None, Device::Host).map_err(|e| e.to_string())?;
    let checked = Checked::new(lowered).map_err(|e| e.to_string())?;
    let session = Runner::new(checked, Device::Host, &RunOptions::default(), HostLink::default(), None);
    let mut session = session.map_err(|e| e.to_string())?;
    for (&operand, bytes) in node.operands.iter().zip(operands) {
        if let (Some(value), Some(bytes)) = (operand, bytes)
            && bytes.len() > CONSTANT
        {
            let name = &graph.value(value).name;
            if !session.set(name, bytes).map_err(|e| e.to_string())? {
                return Err(format!("`{name}` has another size"));
            }
        }
    }
    session.run(1, &mut Unobserved).map_err(|e| e.to_string())?;
    let mut results = Vec::new();
    for result in &node.results {
        let name = result.map(|value| graph.value(value).name.to_string());
        let bytes = name.map(|name| session.get(&name)).transpose().map_err(|e| e.to_string())?;
        results.push(bytes.flatten().map(Bytes::from));
    }
    Ok(results)
}

/// The relative change of operands that counts as rounding: four units in the last place of `f32`, or one unit of the digits that
/// products keep of their operands.
fn rounding(precision: Precision) -> f64 {
    match precision {
        Precision::F32 => 2f64.powi(-22),
        Precision::Tf32 | Precision::F16 => 2f64.powi(-10),
        Precision::Bf16 => 2f64.powi(-7),
    }
}

/// One unit in the last place of the type, relative to its value.
fn unit(element: ElementType) -> f64 {
    match element {
        ElementType::Bfloat16 => 2f64.powi(-7),
        ElementType::Float16 => 2f64.powi(-10),
        _ => 0.0,
    }
}

/// The elements as numbers; `None` for types that are no floats.
fn numbers(element: ElementType, bytes: &[u8]) -> Option<Vec<f64>> {
    Some(match element {
        ElementType::Float => bytes.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b).into()).collect(),
        ElementType::Double => bytes.as_chunks().0.iter().map(|&b| f64::from_le_bytes(b)).collect(),
        ElementType::Float16 => bytes.as_chunks().0.iter().map(|&b| f16::from_le_bytes(b).into()).collect(),
        ElementType::Bfloat16 => bytes.as_chunks().0.iter().map(|&b| bf16::from_le_bytes(b).into()).collect(),
        _ => return None,
    })
}

/// The floats, each changed by the share `by` of itself, up or down by turns that differ between operands; other types stay.
fn nudged(element: ElementType, bytes: &Bytes, by: f64, operand: usize) -> Bytes {
    if element != ElementType::Float {
        return bytes.clone();
    }
    let nudge = |(at, &b): (usize, &[u8; 4])| {
        let up = (at.wrapping_mul(0x9e37_79b9) >> 7 ^ operand) & 1 == 0;
        let value = f32::from_le_bytes(b);
        (value + (f64::from(value) * if up { by } else { -by }) as f32).to_le_bytes()
    };
    bytes.as_chunks().0.iter().enumerate().flat_map(nudge).collect::<Vec<u8>>().into()
}

/// The element with the largest error beyond the one that rounding explains: its index, its seen and its expected value, and the
/// quotient of the two errors.
fn difference(
    ty: &TensorType,
    seen: &[u8],
    exact: &[u8],
    moved: &[Bytes],
    step: f64,
) -> Option<(usize, [f64; 2], f64)> {
    if seen == exact {
        return None;
    }
    let all = (numbers(ty.element, seen), numbers(ty.element, exact));
    let (Some(seen), Some(exact)) = all else {
        let at =
            seen.iter().zip(exact).position(|(a, b)| a != b).unwrap_or_else(|| seen.len().min(exact.len()));
        let byte = |bytes: &[u8]| bytes.get(at).copied().map_or(f64::NAN, f64::from);
        return Some((at, [byte(seen), byte(exact)], f64::INFINITY));
    };
    if seen.len() != exact.len() {
        return Some((0, [f64::NAN, f64::NAN], f64::INFINITY));
    }
    let moved: Vec<Vec<f64>> = moved.iter().filter_map(|bytes| numbers(ty.element, bytes)).collect();
    let change = |at: usize| {
        let changes =
            moved.iter().map(|moved| (moved[at] - exact[at]).abs()).filter(|change| change.is_finite());
        changes.fold(0.0, f64::max)
    };
    // Changes of single elements may cancel, so that each counts with the mean of all.
    let mean =
        (0..exact.len()).map(change).map(|change| change * change).sum::<f64>() / exact.len().max(1) as f64;
    let mean = mean.sqrt();
    let mut worst: Option<(usize, [f64; 2], f64)> = None;
    for at in 0..exact.len() {
        let (a, b) = (seen[at], exact[at]);
        if a == b || a.is_nan() && b.is_nan() {
            continue;
        }
        let own = (4.0 * step + 2.0 * unit(ty.element)) * b.abs().max(f64::from(f32::MIN_POSITIVE));
        let explained = own + 8.0 * (change(at) + mean);
        let times = if (a - b).is_finite() { (a - b).abs() / explained } else { f64::INFINITY };
        if times > 1.0 && worst.is_none_or(|worst| worst.2 < times) {
            worst = Some((at, [a, b], times));
        }
    }
    worst
}

//! The scale of a loss: gradients stay within the range of `float16`, and a step whose gradients overflow is skipped.
//!
//! The pass multiplies a seed of the backward phase, a 1 in which it begins, by the scale. Gradients are linear in it, so the pass
//! follows the factor from operator to operator and divides by the scale where a value stops being linear: where an update, a norm or
//! a caller reads it. Each value that is read there is what it was before but for rounding, whichever seed was chosen.

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};
use lmsc_ir::domains::{MS, ONNX};
use lmsc_ir::{
    Attr, Data, Def, ElementType, Graph, Node, NodeId, Op, Phase, Phases, Place, TensorType, Type, Update,
    ValueId, words,
};

use super::roles::{Role, row};
use super::{constant, element, floats, is_float};
use crate::clean_up::captured;
use crate::fold_constants::order_readers;
use crate::{PassCx, PassError};

/// The first scale, and the bounds of those that follow.
const FIRST: f32 = 65_536.0;
const LEAST: f32 = 1.0 / 16_777_216.0;
const MOST: f32 = 16_777_216.0;

/// The number of steps with finite gradients after which the scale doubles; it halves after each other step.
const STEPS: i64 = 2_000;

/// The most places in which a backward phase may begin that are tried.
const SEEDS: usize = 64;

/// What the pass added.
#[derive(Default)]
pub(super) struct Scale {
    /// Nodes that compute on `float`: they hold the scale.
    pub(super) wide: HashSet<NodeId>,
    /// Nodes that read a scaled seed.
    pub(super) seeded: HashSet<NodeId>,
    /// Nodes that find the largest and the smallest element of a gradient, in its type.
    pub(super) checks: HashSet<NodeId>,
    pub(super) remark: Option<String>,
}

/// An operand of a node.
type Read = (NodeId, usize);

/// Scales the loss of a step that computes gradients by products.
///
/// # Errors
/// If the graph has such gradients, and none of them depends on a 1 with which the backward phase begins.
pub(super) fn scale(graph: &mut Graph, cx: &PassCx) -> Result<Scale, PassError> {
    let phases = Phases::of(graph, |node| cx.scope(node));
    let is_gradient = |id: &NodeId| phases.phase(*id) == Phase::Backward && is_product(graph.node(*id));
    if !graph.order().iter().any(is_gradient) {
        return Ok(Scale::default());
    }
    let factors = chosen(graph, &phases).ok_or_else(|| {
        PassError::Call(
            "mixed-precision{type=f16}: no gradient of the loss is found that could be scaled: none is computed from a constant of \
             ones; give type=bf16, which needs no scale"
                .into(),
        )
    })?;
    Writer::new(graph, phases).write(&factors)
}

fn is_product(node: &Node) -> bool {
    row(&node.op).is_some_and(|row| row.role == Role::Product)
}

/// The seeds from which the most products of the backward phase are scaled.
fn chosen(graph: &Graph, phases: &Phases) -> Option<Factors> {
    let is_one = |value: ValueId| {
        let ones = constant(graph, value).is_some_and(|bytes| floats(bytes).all(|x| x == 1.0));
        is_float(graph, value) && ones && !graph.inputs.contains(&value)
    };
    let mut seeds: Vec<Read> = Vec::new();
    for &id in graph.order().iter().filter(|&&id| phases.phase(id) == Phase::Backward) {
        let operands = graph.node(id).operands.iter().enumerate();
        seeds.extend(operands.filter(|(_, v)| v.is_some_and(is_one)).map(|(index, _)| (id, index)));
    }
    seeds.truncate(SEEDS);
    let captured = captured(graph);
    let mut best: Option<Factors> = None;
    for seed in seeds {
        // A step with several losses may begin in several places.
        let mut trial = best.as_ref().map(|best| best.seeds.clone()).unwrap_or_default();
        trial.push(seed);
        let trial = Factors::of(graph, phases, &captured, trial);
        if trial.products > best.as_ref().map_or(0, |best| best.products) {
            best = Some(trial);
        }
    }
    best
}

/// The values that the scale is a factor of, for some seeds.
struct Factors {
    seeds: Vec<Read>,
    scaled: HashSet<ValueId>,
    /// Reads of scaled values by nodes that are not linear in them.
    ends: Vec<Read>,
    /// The number of products whose results are scaled.
    products: usize,
}

impl Factors {
    fn of(graph: &Graph, phases: &Phases, captured: &HashSet<ValueId>, seeds: Vec<Read>) -> Factors {
        let mut found = Factors { seeds, scaled: HashSet::new(), ends: Vec::new(), products: 0 };
        for &id in graph.order() {
            let node = graph.node(id);
            let reads = (node.operands.iter().enumerate())
                .filter(|&(index, v)| {
                    v.is_some_and(|v| found.scaled.contains(&v)) || found.seeds.contains(&(id, index))
                })
                .map(|(index, _)| index);
            let reads: Vec<usize> = reads.collect();
            if reads.is_empty() {
                continue;
            }
            let results = || node.defines().filter(|&value| is_float(graph, value));
            let stays = phases.phase(id) == Phase::Backward
                && !results().any(|value| captured.contains(&value))
                && is_linear(graph, node, &reads);
            if stays {
                found.scaled.extend(results());
                found.products += usize::from(is_product(node));
            } else {
                found.ends.extend(reads.into_iter().map(|index| (id, index)));
            }
        }
        found
    }
}

/// Operators that are linear in these operands together: all of them, or those that are not 0, have the factor.
#[rustfmt::skip]
const SUMS: &[(&str, &[&str], &[usize])] = &[
    (ONNX, &["Add", "Sub"], &[0, 1]),
    (ONNX, &["Where"], &[1, 2]),
    (ONNX, &["ScatterElements", "ScatterND"], &[0, 2]),
    (ONNX, &["Pad"], &[0, 2]),
    (ONNX, &[
        "Cast", "DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "Neg", "ReduceMean", "ReduceSum",
        "Reshape", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Trilu", "Unsqueeze",
    ], &[0]),
    (MS, &["ReduceSumTraining", "Scale", "SplitTraining", "Trilu"], &[0]),
];

/// Operators that are linear in each of these operands alone.
#[rustfmt::skip]
const PRODUCTS: &[(&str, &[&str], &[usize])] = &[
    (ONNX, &["Mul", "MatMul", "Einsum", "Gemm", "Conv", "ConvTranspose"], &[0, 1]),
    (ONNX, &["Div"], &[0]),
    (MS, &["FusedMatMul", "TransposeMatMul"], &[0, 1]),
];

/// Operators that are linear in all operands together.
const LISTS: &[(&str, &str)] = &[(ONNX, "Concat"), (ONNX, "Mean"), (ONNX, "Sum"), (MS, "ConcatTraining")];

/// Whether the results have the factor of these operands.
fn is_linear(graph: &Graph, node: &Node, scaled: &[usize]) -> bool {
    let key = node.op.key();
    let places = |table: &'static [(&str, &[&str], &[usize])]| {
        let found = table.iter().find(|(domain, names, _)| *domain == key.0 && names.contains(&key.1));
        found.map(|(_, _, places)| *places)
    };
    let given = |index: usize| node.operands.get(index).copied().flatten();
    // A sum with a number that is not scaled has no factor, but if the number is 0.
    let together = |places: &mut dyn Iterator<Item = usize>| {
        places
            .filter(|&index| given(index).is_some_and(|v| !is_zero(graph, v)))
            .all(|index| scaled.contains(&index))
    };
    // A scatter may multiply, and a product of three operands has no addend.
    let is_scatter = matches!(key, (ONNX, "ScatterElements" | "ScatterND"));
    let multiplies = is_scatter && graph.attribute(node, "reduction") == Some(&"mul".into());
    if multiplies || key.1 == "Einsum" && node.operands.len() > 2 {
        return false;
    }
    if let Some(places) = places(SUMS) {
        let keeps = node.defines().all(|value| is_float(graph, value));
        return keeps
            && scaled.iter().all(|index| places.contains(index))
            && together(&mut places.iter().copied());
    }
    if let Some(places) = places(PRODUCTS) {
        let factors: Vec<usize> = scaled.iter().copied().filter(|index| places.contains(index)).collect();
        let rest = scaled.iter().all(|index| places.contains(index) || *index == 2);
        let added =
            given(2).is_none_or(|v| is_zero(graph, v) || scaled.contains(&2)) || adds_nothing(graph, node);
        return factors.len() == 1 && rest && added;
    }
    if LISTS.contains(&key) {
        return together(&mut (0..node.operands.len()));
    }
    let Some(contract) = node.op.contract().filter(|_| node.op.effects().phase == Some(Phase::Backward))
    else {
        return false;
    };
    // The contracts of gradient operators name the gradients that they read.
    let is_gradient =
        |index: usize| contract.operands.get(index).is_some_and(|operand| operand.name.starts_with("dY"));
    let biased = contract.operands.iter().position(|operand| operand.name == "bias");
    let adds = node.op.name().starts_with("SoftmaxCrossEntropyLoss")
        && biased.is_some_and(|index| given(index).is_some());
    scaled.iter().all(|&index| is_gradient(index))
        && together(&mut (0..node.operands.len()).filter(|&index| is_gradient(index)))
        && !adds
}

/// Whether a product multiplies what it adds by 0.
fn adds_nothing(graph: &Graph, node: &Node) -> bool {
    node.op.name() == "Gemm"
        && matches!(graph.attribute(node, "beta"), Some(Attr::Float(beta)) if beta.0 == 0.0)
}

fn is_zero(graph: &Graph, value: ValueId) -> bool {
    if let Def::Result(id, 0) = graph.def(value) {
        let node = graph.node(id);
        if node.op.key() == (ONNX, "ConstantOfShape") {
            return match node.attribute("value") {
                Some(Attr::Tensor(_, Data::Inline(bytes))) => bytes.iter().all(|&byte| byte == 0),
                Some(_) => false,
                None => true,
            };
        }
        if node.op.key() == (ONNX, "Expand") {
            return node.operands[0].is_some_and(|operand| is_zero(graph, operand));
        }
    }
    let is_given = graph.inputs.contains(&value);
    !is_given
        && constant(graph, value)
            .is_some_and(|bytes| is_float(graph, value) && floats(bytes).all(|x| x == 0.0))
}

/// Writes the scale into the graph.
struct Writer<'g> {
    graph: &'g mut Graph,
    phases: Phases,
    /// The nodes before the updates, and the updates.
    order: [Vec<NodeId>; 2],
    scale: Scale,
}

fn scalar(element: ElementType) -> TensorType {
    TensorType::new(element, [])
}

impl<'g> Writer<'g> {
    fn new(graph: &'g mut Graph, phases: Phases) -> Writer<'g> {
        Writer { graph, phases, order: Default::default(), scale: Scale::default() }
    }

    fn write(mut self, factors: &Factors) -> Result<Scale, PassError> {
        let number = |x: f32| Data::Inline(x.to_le_bytes().to_vec().into());
        let name = self.graph.fresh_value_name("loss_scale");
        let scale = self.graph.add_default(name, scalar(ElementType::Float), number(FIRST));
        let name = self.graph.fresh_value_name("loss_scale.steps");
        let zero = Data::Inline(0i64.to_le_bytes().to_vec().into());
        let steps = self.graph.add_default(name, scalar(ElementType::Int64), zero);

        let ends: HashSet<Read> = factors.ends.iter().copied().collect();
        let outputs: Vec<ValueId> =
            self.graph.outputs.iter().copied().filter(|value| factors.scaled.contains(value)).collect();
        let read = |&(id, index): &Read| self.graph.node(id).operands[index].expect("it is read");
        let checked: HashSet<ValueId> = factors
            .ends
            .iter()
            .map(read)
            .chain(outputs.iter().copied())
            .filter(|value| factors.scaled.contains(value))
            .collect();
        let mut spans: Vec<ValueId> = Vec::new();
        let mut updates: Vec<NodeId> = Vec::new();
        for id in self.graph.order().to_vec() {
            if self.phases.phase(id) == Phase::Update {
                updates.push(id);
                continue;
            }
            for index in 0..self.graph.node(id).operands.len() {
                if factors.seeds.contains(&(id, index)) {
                    let one = self.graph.node(id).operands[index].expect("a seed is read");
                    let seed = self.scaled("Mul", one, scale, "scaled", 0);
                    self.graph.set_operand(id, index, seed);
                    self.scale.seeded.insert(id);
                }
            }
            self.unscale_operands(id, &ends, scale, 0);
            self.order[0].push(id);
            for value in self.graph.node(id).defines().collect::<Vec<_>>() {
                if checked.contains(&value) {
                    spans.push(self.span(value));
                }
                if outputs.contains(&value) {
                    self.unscale_output(value, scale);
                }
            }
        }
        let Some(&first) = spans.first() else {
            return Err(PassError::Call(
                "mixed-precision{type=f16}: no update and no output reads a gradient; give type=bf16".into(),
            ));
        };
        let total = spans[1..].iter().fold(first, |sum, &span| {
            self.wide("Add", &[sum, span], ElementType::Float, "loss_scale.span", 0)
        });
        let infinity = self.number(f32::INFINITY, "loss_scale.infinity");
        let finite = self.wide("Less", &[total, infinity], ElementType::Bool, "loss_scale.finite", 0);
        let mut gates = 0;
        for id in updates {
            self.unscale_operands(id, &ends, scale, 1);
            self.order[1].push(id);
            gates += self.gate(id, finite)?;
        }
        self.adapt(scale, steps, finite);
        let [mut order, updates] = std::mem::take(&mut self.order);
        order.extend(updates);
        self.graph.set_order(order);
        order_readers(self.graph);
        self.scale.remark = Some(format!(
            "the loss is scaled by `{}`, which is halved in a step with a gradient that is not finite, and doubled after {STEPS} others in \
             turn; such a step skips {}",
            self.graph.value(scale).name,
            words::count(gates, "update")
        ));
        Ok(self.scale)
    }

    /// A node that stays on `float`; `late` for a place among the updates.
    fn node(
        &mut self,
        op: &str,
        operands: &[ValueId],
        ty: TensorType,
        base: &str,
        late: usize,
    ) -> (NodeId, ValueId) {
        let mut node = Node::new(self.graph.fresh_node_name(&format!("{base}/{op}")), Op::new("", op));
        node.operands = operands.iter().copied().map(Some).collect();
        let name = self.graph.fresh_value_name(base);
        let id = self.graph.add_node(node, [Some((name, Type::Tensor(ty), Place::Device))]);
        self.order[late].push(id);
        self.scale.wide.insert(id);
        (id, self.graph.node(id).results[0].expect("it has one result"))
    }

    /// As [`Writer::node`], of one element.
    fn wide(
        &mut self,
        op: &str,
        operands: &[ValueId],
        element: ElementType,
        base: &str,
        late: usize,
    ) -> ValueId {
        self.node(op, operands, scalar(element), base, late).1
    }

    fn number(&mut self, x: f32, base: &str) -> ValueId {
        let name = self.graph.fresh_value_name(base);
        self.graph.add_initializer(
            name,
            scalar(ElementType::Float),
            Data::Inline(x.to_le_bytes().to_vec().into()),
        )
    }

    fn whole(&mut self, x: i64, base: &str) -> ValueId {
        let name = self.graph.fresh_value_name(base);
        self.graph.add_initializer(
            name,
            scalar(ElementType::Int64),
            Data::Inline(x.to_le_bytes().to_vec().into()),
        )
    }

    /// The value, multiplied or divided by the scale.
    fn scaled(&mut self, op: &str, value: ValueId, scale: ValueId, suffix: &str, late: usize) -> ValueId {
        let ty = self.graph.value(value).ty.as_tensor().cloned().expect("gradients are tensors");
        let base = format!("{}_{suffix}", self.graph.value(value).name);
        self.node(op, &[value, scale], ty, &base, late).1
    }

    /// Makes the node read gradients without the scale.
    fn unscale_operands(&mut self, id: NodeId, ends: &HashSet<Read>, scale: ValueId, late: usize) {
        let mut known: HashMap<ValueId, ValueId> = HashMap::new();
        for index in 0..self.graph.node(id).operands.len() {
            let (true, Some(value)) = (ends.contains(&(id, index)), self.graph.node(id).operands[index])
            else {
                continue;
            };
            let plain = match known.get(&value) {
                Some(&plain) => plain,
                None => self.scaled("Div", value, scale, "unscaled", late),
            };
            known.insert(value, plain);
            self.graph.set_operand(id, index, plain);
        }
    }

    /// Gives the caller a gradient without the scale, under its name.
    fn unscale_output(&mut self, value: ValueId, scale: ValueId) {
        let name = self.graph.value(value).name.clone();
        let other = self.graph.fresh_value_name(&format!("{name}_scaled"));
        self.graph.rename(value, other);
        let ty = self.graph.value(value).ty.as_tensor().cloned().expect("gradients are tensors");
        let (_, plain) = self.node("Div", &[value, scale], ty, &name, 0);
        self.graph.outputs.iter_mut().filter(|output| **output == value).for_each(|output| *output = plain);
    }

    /// The difference of the largest and the smallest element of a gradient: finite if all elements are.
    fn span(&mut self, value: ValueId) -> ValueId {
        let base = self.graph.value(value).name.to_string();
        let [most, least] = ["ReduceMax", "ReduceMin"].map(|op| {
            let (id, result) =
                self.node(op, &[value], scalar(ElementType::Float), &format!("{base}_range"), 0);
            self.graph.set_attribute(id, "keepdims", 0.into());
            self.scale.wide.remove(&id);
            self.scale.checks.insert(id);
            result
        });
        self.wide("Sub", &[most, least], ElementType::Float, &format!("{base}_span"), 0)
    }

    /// Keeps the old values of the variables that the node writes where a gradient is not finite, and returns their number.
    fn gate(&mut self, id: NodeId, finite: ValueId) -> Result<usize, PassError> {
        let updates = self.graph.take_updates(id);
        for update in &updates {
            let result = update.result.and_then(|index| self.graph.node(id).results[index]);
            let ty = self.graph.value(update.variable).ty.as_tensor().cloned();
            let (Some(new), Some(ty)) = (result, ty) else {
                return Err(PassError::Call(
                    format!(
                        "mixed-precision{{type=f16}}: [{}] {} writes `{}` and does not return it, so that the update cannot be skipped; give \
                         type=bf16",
                        self.graph.node(id).name,
                        self.graph.node(id).op,
                        self.graph.value(update.variable).name
                    )
                    .into(),
                ));
            };
            let name = self.graph.value(new).name.clone();
            let other = self.graph.fresh_value_name(&format!("{name}_unless_skipped"));
            self.graph.rename(new, other);
            let (gate, kept) = self.node("Where", &[finite, new, update.variable], ty, &name, 1);
            self.graph.add_update(gate, Update { variable: update.variable, result: Some(0) });
            self.graph.outputs.iter_mut().filter(|output| **output == new).for_each(|output| *output = kept);
        }
        Ok(updates.len())
    }

    /// Computes the next scale.
    fn adapt(&mut self, scale: ValueId, steps: ValueId, finite: ValueId) {
        let (float, int64, bool) = (ElementType::Float, ElementType::Int64, ElementType::Bool);
        let name = |of: &str| format!("loss_scale.{of}");
        let [two, half] = [(2.0, "two"), (0.5, "half")].map(|(x, of)| self.number(x, &name(of)));
        let [most, least] = [(MOST, "most"), (LEAST, "least")].map(|(x, of)| self.number(x, &name(of)));
        let [zero, one, last] =
            [(0, "zero"), (1, "one"), (STEPS, "last")].map(|(x, of)| self.whole(x, &name(of)));
        let next = self.wide("Add", &[steps, one], int64, &name("next"), 1);
        let full = self.wide("Equal", &[next, last], bool, &name("full"), 1);
        let doubled = self.wide("Mul", &[scale, two], float, &name("doubled"), 1);
        let doubled = self.wide("Min", &[doubled, most], float, &name("bounded"), 1);
        let kept = self.wide("Where", &[full, doubled, scale], float, &name("kept"), 1);
        let halved = self.wide("Mul", &[scale, half], float, &name("halved"), 1);
        let halved = self.wide("Max", &[halved, least], float, &name("at_least"), 1);
        let counted = self.wide("Where", &[full, zero, next], int64, &name("counted"), 1);
        for (variable, good, bad) in [(scale, kept, halved), (steps, counted, zero)] {
            let ty = scalar(element(self.graph, variable).expect("it is a number"));
            let base = format!("{}_new", self.graph.value(variable).name);
            let (id, new) = self.node("Where", &[finite, good, bad], ty, &base, 1);
            self.graph.add_update(id, Update { variable, result: Some(0) });
            self.graph.outputs.push(new);
        }
    }
}

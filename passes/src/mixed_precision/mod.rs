//! Computes products, activations and gradients in a short float, and keeps variables, statistics, sums and losses in `float`.

mod roles;
mod scale;

use std::collections::BTreeMap;
use std::fmt;

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};
use half::{bf16, f16};
use lmsc_ir::{
    Attr, Data, Def, ElementType, Graph, Name, Node, NodeId, Op, Phase, Phases, Place, TensorType, Type,
    ValueId, ops, words,
};

use crate::clean_up::{captured, not_older, not_planned};
use crate::{CallOption, Outcome, Pass, PassCx, PassError, PassKind};
use roles::{Role, Row, has_narrow_range, row};
use scale::Scale;

/// The first version of ONNX whose operators take `bfloat16`.
const OPSET: i64 = 13;

/// The largest number of elements of a constant that is written again as a short float instead of being cast in each step.
const SMALL: u64 = 64;

const TYPE: CallOption = CallOption::word(
    "type",
    "the short float; with f16, the loss is scaled by a number that adapts itself, and a step whose gradients overflow is skipped",
    &["bf16", "f16"],
);

/// Computes products, convolutions, activations and their gradients in a short float, and casts where the precision changes.
///
/// Inputs, outputs and variables keep their types, so parameters and moments are `float` masters; each phase casts a parameter
/// by itself, shortly before it is used, so that no copy lives from the forward to the backward phase. A `float` tensor that is
/// computed is cast at once, and a short one that a `float` operator reads is widened shortly before it: the tensors that live from
/// the forward to the backward phase are short.
///
/// Gradients in `float16` would vanish: there the pass scales the loss, and skips updates by gradients that are not finite
/// (Micikevicius et al., arXiv:1710.03740, section 3.2). The scale is a variable of the step.
///
/// The graph computes other bits than before. The remarks say which operators stay in `float`, and why.
pub(crate) struct MixedPrecision;

impl Pass for MixedPrecision {
    fn name(&self) -> &'static str {
        "mixed-precision"
    }

    fn summary(&self) -> &'static str {
        "products, activations and gradients in bfloat16 or float16, with float variables, statistics and losses; values change"
    }

    fn kind(&self) -> PassKind {
        PassKind::Precision
    }

    fn options(&self) -> &[CallOption] {
        &[TYPE]
    }

    fn run(&self, graph: &mut Graph, cx: &PassCx) -> Result<Outcome, PassError> {
        not_older(self.name(), graph, OPSET)?;
        not_planned(self.name(), graph)?;
        let to = if cx.word(&TYPE) == "f16" { Short::F16 } else { Short::Bf16 };
        let scale = match to {
            Short::F16 => scale::scale(graph, cx)?,
            Short::Bf16 => Scale::default(),
        };
        let mut narrowing = Narrowing::new(graph, cx, to, scale);
        for id in narrowing.graph.order().to_vec() {
            narrowing.node(id);
        }
        Ok(narrowing.finish())
    }
}

/// The short float that a graph gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Short {
    Bf16,
    F16,
}

impl Short {
    fn element(self) -> ElementType {
        match self {
            Short::Bf16 => ElementType::Bfloat16,
            Short::F16 => ElementType::Float16,
        }
    }

    /// The end of names of short values.
    fn suffix(self) -> &'static str {
        match self {
            Short::Bf16 => "bf16",
            Short::F16 => "f16",
        }
    }

    /// The largest finite number.
    fn most(self) -> f32 {
        match self {
            Short::Bf16 => bf16::MAX.to_f32(),
            Short::F16 => f16::MAX.to_f32(),
        }
    }

    /// The bytes of the nearest short float; finite if the number is.
    fn rounded(self, x: f32) -> [u8; 2] {
        let x = if x.is_finite() { x.clamp(-self.most(), self.most()) } else { x };
        match self {
            Short::Bf16 => bf16::from_f32(x).to_le_bytes(),
            Short::F16 => f16::from_f32(x).to_le_bytes(),
        }
    }
}

/// Why a node with `float` operands or results stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    /// The pass knows no short form of the operator.
    Operator,
    /// It computes a new value of a variable.
    Update,
    /// It holds a subgraph.
    Subgraph,
    /// It sums activations.
    Statistics,
    /// It computes the loss.
    Loss,
    /// Its results have one element each.
    OneElement,
    /// None of its operands is short.
    Operands,
    /// Its results may be too large or too small for `float16`.
    Range,
    /// It scales the loss, or takes the scale out of a gradient.
    Scale,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Operator => "the operator has no short form here",
            Reason::Update => "they update variables",
            Reason::Subgraph => "they hold subgraphs",
            Reason::Statistics => "they sum activations",
            Reason::Loss => "they compute the loss",
            Reason::OneElement => "their results have one element",
            Reason::Operands => "no operand depends on a product",
            Reason::Range => "float16 has too small a range for their results",
            Reason::Scale => "they scale the loss or unscale gradients",
        })
    }
}

/// The graph while its nodes are visited, in order.
struct Narrowing<'g> {
    graph: &'g mut Graph,
    to: Short,
    scale: Scale,
    phases: Phases,
    captured: HashSet<ValueId>,
    /// Nodes on which a product or a convolution of the forward phase depends.
    leads_to_product: HashSet<NodeId>,
    /// Inputs and variables: their bytes may differ in the next step.
    given: HashSet<ValueId>,
    /// `float` values that depend on the caller's data alone, such as the targets of a loss.
    data: HashSet<ValueId>,
    /// Values that are short.
    short: HashSet<ValueId>,
    /// `float` values that are activations, though not computed of short ones.
    activations: HashSet<ValueId>,
    /// Short copies, by value; those of a parameter by phase.
    copies: HashMap<(ValueId, Option<Phase>), ValueId>,
    /// Replacements of values that are computed in another way.
    instead: HashMap<ValueId, ValueId>,
    /// Nodes to be added right after a node.
    behind: HashMap<NodeId, Vec<NodeId>>,
    order: Vec<NodeId>,
    /// Whether a constant is finite but too large for a short float: the values that are computed from it are clipped before they are cast.
    clips: bool,
    narrowed: BTreeMap<String, usize>,
    kept: BTreeMap<Reason, BTreeMap<String, usize>>,
    losses: usize,
}

fn element(graph: &Graph, value: ValueId) -> Option<ElementType> {
    Some(graph.value(value).ty.as_tensor()?.element)
}

fn is_float(graph: &Graph, value: ValueId) -> bool {
    element(graph, value) == Some(ElementType::Float)
}

/// The bytes of a constant of the file or of a node `Constant`.
fn constant(graph: &Graph, value: ValueId) -> Option<&bytes::Bytes> {
    let data = match graph.def(value) {
        Def::Initializer(index) => &graph.initializers[index].data,
        Def::Result(node, 0) if graph.node(node).op.key() == ("", "Constant") => {
            match graph.node(node).attribute("value")? {
                Attr::Tensor(_, data) => data,
                _ => return None,
            }
        }
        _ => return None,
    };
    match data {
        Data::Inline(bytes) => Some(bytes),
        _ => None,
    }
}

fn floats(bytes: &[u8]) -> impl Iterator<Item = f32> + '_ {
    bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes))
}

impl<'g> Narrowing<'g> {
    fn new(graph: &'g mut Graph, cx: &PassCx, to: Short, scale: Scale) -> Narrowing<'g> {
        let phases = Phases::of(graph, |node| cx.scope(node));
        let is_large = |x: f32| x.is_finite() && x.abs() > to.most();
        let has_large = |value| {
            let count = graph.value(value).ty.as_tensor().and_then(TensorType::element_count);
            let bytes = constant(graph, value).filter(|_| count.is_some_and(|count| count <= SMALL));
            is_float(graph, value) && bytes.is_some_and(|bytes| floats(bytes).any(is_large))
        };
        let clips = graph.values().any(|(value, _)| has_large(value));
        Narrowing {
            to,
            scale,
            clips,
            captured: captured(graph),
            leads_to_product: leads_to_product(graph, &phases),
            given: graph.variables().into_iter().chain(graph.inputs.iter().copied()).collect(),
            data: of_data(graph),
            short: HashSet::new(),
            activations: HashSet::new(),
            copies: HashMap::new(),
            instead: HashMap::new(),
            behind: HashMap::new(),
            order: Vec::with_capacity(graph.order().len()),
            narrowed: BTreeMap::new(),
            kept: BTreeMap::new(),
            losses: 0,
            phases,
            graph,
        }
    }

    fn node(&mut self, id: NodeId) {
        for index in 0..self.graph.node(id).operands.len() {
            let operand = self.graph.node(id).operands[index];
            if let Some(&new) = operand.and_then(|old| self.instead.get(&old)) {
                self.graph.set_operand(id, index, new);
            }
        }
        if self.scale.wide.contains(&id) {
            self.keep(id, None, Reason::Scale);
            return;
        }
        let op = self.graph.node(id).op.clone();
        match (self.sequence(id), row(&op)) {
            (true, _) => self.narrow(
                id,
                Row { role: Role::Follows, operands: roles::Positions::All, results: roles::Positions::All },
            ),
            (false, Some(row)) if row.role == Role::Update => {
                self.keep(id, Some(row), Reason::Update);
            }
            (false, Some(row)) => match self.reason(id, row) {
                None if row.role == Role::Loss => self.loss(id, row),
                None if row.role == Role::LossGradient => {
                    self.divide(id);
                    self.narrow(id, row);
                }
                None => self.narrow(id, row),
                Some(reason) => {
                    if reason == Reason::Range {
                        let results: Vec<ValueId> = self.graph.node(id).defines().collect();
                        self.activations.extend(results);
                    }
                    self.keep(id, None, reason);
                }
            },
            (false, None) => self.keep(
                id,
                None,
                if ops::has_subgraph(self.graph.node(id)) { Reason::Subgraph } else { Reason::Operator },
            ),
        }
    }

    /// Why the node stays in `float`, if it does.
    fn reason(&self, id: NodeId, row: Row) -> Option<Reason> {
        let (node, phase) = (self.graph.node(id), self.phases.phase(id));
        let operands = || {
            (node.operands.iter().enumerate())
                .filter(|(i, _)| row.operands.contain(*i))
                .filter_map(|(_, v)| *v)
        };
        let is_short = |value| self.short.contains(&value) || self.activations.contains(&value);
        let written = |index: usize| node.updates.iter().any(|update| update.result == Some(index));
        let mut results =
            (node.results.iter().enumerate()).filter(|(i, v)| v.is_some() && row.results.contain(*i));
        let is_one = |value: ValueId| {
            is_float(self.graph, value)
                && self.graph.value(value).ty.as_tensor().and_then(TensorType::element_count) == Some(1)
        };
        if ops::has_subgraph(node) {
            return Some(Reason::Subgraph);
        }
        if phase == Phase::Update || results.clone().any(|(i, _)| written(i)) {
            return Some(Reason::Update);
        }
        let is_parameter =
            |value| !matches!(self.graph.def(value), Def::Result(..)) && !self.data.contains(&value);
        let follows = match row.role {
            Role::Product => operands().any(|v| is_short(v) || is_float(self.graph, v)),
            Role::Table => operands().any(|v| is_short(v) || is_float(self.graph, v) && is_parameter(v)),
            _ => operands().any(is_short),
        };
        if !follows {
            return Some(Reason::Operands);
        }
        if row.role == Role::Sum && phase == Phase::Forward {
            return Some(Reason::Statistics);
        }
        if row.role == Role::Loss {
            let weights = node.operands.get(2).copied().flatten().is_some();
            let captured = node.defines().any(|value| self.captured.contains(&value));
            return (weights || captured).then_some(Reason::Loss);
        }
        if row.role != Role::Product
            && !self.scale.checks.contains(&id)
            && results.any(|(_, v)| v.is_some_and(is_one))
        {
            return Some(Reason::OneElement);
        }
        let is_seeded = self.scale.seeded.contains(&id) && row.role == Role::Follows;
        if self.to == Short::F16 && (is_seeded || has_narrow_range(node)) {
            return Some(Reason::Range);
        }
        let ends =
            phase == Phase::Forward && !self.leads_to_product.contains(&id) && row.role == Role::Follows;
        (ends && operands().any(|v| self.data.contains(&v))).then_some(Reason::Loss)
    }

    /// Whether the node collects gradients for an optimizer that takes short ones, and one of them is short.
    fn sequence(&self, id: NodeId) -> bool {
        let node = self.graph.node(id);
        let (("", "SequenceConstruct"), [Some(result)]) = (node.op.key(), &node.results[..]) else {
            return false;
        };
        let takes = |reader: &NodeId| {
            let node = self.graph.node(*reader);
            let at = |(i, v): (usize, &Option<ValueId>)| (*v == Some(*result)).then_some(i);
            let mut places = node.operands.iter().enumerate().filter_map(at);
            let row = row(&node.op).filter(|row| row.role == Role::Update);
            places.all(|i| row.is_some_and(|row| row.operands.contain(i)))
        };
        let is_read_as_gradient = self.graph.order().iter().all(takes);
        let free = !self.graph.outputs.contains(result) && !self.captured.contains(result);
        free && is_read_as_gradient && node.reads().any(|value| self.short.contains(&value))
    }

    /// Leaves the node in `float`: short operands are widened, but for those that its row takes.
    fn keep(&mut self, id: NodeId, row: Option<Row>, reason: Reason) {
        let node = self.graph.node(id);
        let has_floats = node
            .reads()
            .chain(node.defines())
            .any(|value| is_float(self.graph, value) || self.short.contains(&value));
        // Views of a parameter and constants are no computation.
        if has_floats && node.op.key() != ("", "Constant") {
            *self.kept.entry(reason).or_default().entry(node.op.to_string()).or_default() += 1;
        }
        self.widen_operands(id, |index| row.is_some_and(|row| row.operands.contain(index)));
        self.order.push(id);
    }

    /// Widens the short operands, but for those that the node takes, shortly before the node.
    fn widen_operands(&mut self, id: NodeId, takes: impl Fn(usize) -> bool) {
        let mut widened: Vec<(ValueId, ValueId)> = Vec::new();
        for index in 0..self.graph.node(id).operands.len() {
            let Some(value) = self.graph.node(id).operands[index] else { continue };
            if !self.short.contains(&value)
                || takes(index)
                || self.graph.value(value).ty.as_tensor().is_none()
            {
                continue;
            }
            let known = widened.iter().find(|pair| pair.0 == value).map(|pair| pair.1);
            let wide = known.unwrap_or_else(|| {
                let base = format!("{}_float", self.graph.value(value).name);
                let (node, wide) = self.cast(value, ElementType::Float, &base);
                self.order.push(node);
                wide
            });
            widened.push((value, wide));
            self.graph.set_operand(id, index, wide);
        }
    }

    /// Makes the node compute on short floats.
    fn narrow(&mut self, id: NodeId, row: Row) {
        let table = row.role == Role::Table
            && !self.graph.node(id).operands[0]
                .is_some_and(|v| self.short.contains(&v) || self.activations.contains(&v));
        *self.narrowed.entry(self.graph.node(id).op.to_string()).or_default() += 1;
        if table {
            let results: Vec<ValueId> = self.graph.node(id).defines().collect();
            self.activations.extend(results);
            self.order.push(id);
            return;
        }
        self.shorten_operands(id, row);
        self.order.push(id);
        for index in 0..self.graph.node(id).results.len() {
            let Some(result) = self.graph.node(id).results[index].filter(|_| row.results.contain(index))
            else {
                continue;
            };
            self.shorten_result(id, result);
        }
    }

    fn shorten_operands(&mut self, id: NodeId, row: Row) {
        self.widen_operands(id, |index| row.operands.contain(index));
        // Results have the type of the operands.
        self.graph.remove_attribute(id, "output_type");
        let phase = self.phases.phase(id);
        for index in 0..self.graph.node(id).operands.len() {
            let Some(value) = self.graph.node(id).operands[index].filter(|_| row.operands.contain(index))
            else {
                continue;
            };
            if is_float(self.graph, value) {
                let copy = self.short_copy(value, phase);
                self.graph.set_operand(id, index, copy);
            }
        }
    }

    /// Makes the result short. Callers and subgraphs read a `float` copy under its name.
    fn shorten_result(&mut self, id: NodeId, result: ValueId) {
        let ty = match self.graph.value(result).ty.clone() {
            Type::Tensor(tensor) if tensor.element == ElementType::Float => {
                TensorType::new(self.to.element(), tensor.dims).into()
            }
            Type::Sequence(list) => {
                Type::Sequence(list.into_iter().map(|t| TensorType::new(self.to.element(), t.dims)).collect())
            }
            Type::Tensor(_) => return,
        };
        self.graph.set_type(result, ty);
        self.short.insert(result);
        if !self.graph.outputs.contains(&result) && !self.captured.contains(&result) {
            return;
        }
        let name = self.graph.value(result).name.clone();
        let other = self.graph.fresh_value_name(&format!("{name}_{}", self.to.suffix()));
        self.graph.rename(result, other);
        let (node, wide) = self.cast(result, ElementType::Float, &name);
        self.behind.entry(id).or_default().push(node);
        self.graph.outputs.iter_mut().filter(|output| **output == result).for_each(|output| *output = wide);
        if !self.captured.contains(&result) {
            return;
        }
        self.graph.redirect_captures(result, wide);
    }

    /// The short copy of a `float` value for a node of the phase.
    fn short_copy(&mut self, value: ValueId, phase: Phase) -> ValueId {
        let count = self.graph.value(value).ty.as_tensor().and_then(TensorType::element_count);
        let small = constant(self.graph, value).filter(|_| count.is_some_and(|count| count <= SMALL));
        let producer = self.graph.producer(value);
        let constant = small.filter(|_| producer.is_some() || !self.given.contains(&value)).cloned();
        let key = (value, (producer.is_none() && constant.is_none()).then_some(phase));
        if let Some(&copy) = self.copies.get(&key) {
            return copy;
        }
        let base = format!("{}_{}", self.graph.value(value).name, self.to.suffix());
        let copy = match (constant, producer) {
            (Some(bytes), _) => self.constant(value, &bytes, &base),
            (None, None) => {
                let (node, copy) = self.cast(value, self.to.element(), &base);
                self.order.push(node);
                copy
            }
            (None, Some(producer)) => {
                let clips = self.clips && !self.activations.contains(&value);
                let clipped = if clips { self.clipped(value, producer) } else { value };
                let (node, copy) = self.cast(clipped, self.to.element(), &base);
                self.behind.entry(producer).or_default().push(node);
                copy
            }
        };
        self.short.insert(copy);
        self.copies.insert(key, copy);
        copy
    }

    /// The small constant, rounded.
    fn constant(&mut self, value: ValueId, bytes: &[u8], base: &str) -> ValueId {
        let dims = self.graph.value(value).ty.as_tensor().map(|ty| ty.dims.clone()).unwrap_or_default();
        let data: Vec<u8> = floats(bytes).flat_map(|x| self.to.rounded(x)).collect();
        self.literal(TensorType::new(self.to.element(), dims), data, base)
    }

    /// A constant, defined here.
    fn literal(&mut self, ty: TensorType, data: Vec<u8>, base: &str) -> ValueId {
        let attribute = ("value".into(), Attr::Tensor(ty.clone(), Data::Inline(data.into())));
        let (node, value) = self.add("Constant", vec![attribute], &[], ty, base);
        self.order.push(node);
        value
    }

    /// The value within the range of the short float, computed right after it.
    fn clipped(&mut self, value: ValueId, producer: NodeId) -> ValueId {
        let ty = self.graph.value(value).ty.as_tensor().cloned().expect("it is a tensor of floats");
        let most = self.to.most();
        let base = format!("{}_bound", self.to.suffix());
        let bounds = [-most, most].map(|bound| {
            let data = Attr::Tensor(
                TensorType::new(ElementType::Float, []),
                Data::Inline(bound.to_le_bytes().to_vec().into()),
            );
            let scalar = TensorType::new(ElementType::Float, []);
            let (node, bound) = self.add("Constant", vec![("value".into(), data)], &[], scalar, &base);
            self.behind.entry(producer).or_default().push(node);
            bound
        });
        let base = format!("{}_clipped", self.graph.value(value).name);
        let (node, clipped) = self.add("Clip", Vec::new(), &[value, bounds[0], bounds[1]], ty, &base);
        self.behind.entry(producer).or_default().push(node);
        clipped
    }

    fn cast(&mut self, value: ValueId, to: ElementType, base: &str) -> (NodeId, ValueId) {
        let dims = self.graph.value(value).ty.as_tensor().map(|ty| ty.dims.clone()).unwrap_or_default();
        // The numbers are those of ONNX's `TensorProto.DataType`.
        let code: i64 = match to {
            ElementType::Bfloat16 => 16,
            ElementType::Float16 => 10,
            _ => 1,
        };
        self.add("Cast", vec![("to".into(), code.into())], &[value], TensorType::new(to, dims), base)
    }

    /// A node with one result; the caller gives it its place in the order.
    fn add(
        &mut self,
        op: &str,
        attributes: Vec<(Name, Attr)>,
        operands: &[ValueId],
        ty: TensorType,
        base: &str,
    ) -> (NodeId, ValueId) {
        let mut node = Node::new(self.graph.fresh_node_name(&format!("{base}/{op}")), Op::new("", op));
        node.attributes = attributes;
        node.operands = operands.iter().copied().map(Some).collect();
        let name = self.graph.fresh_value_name(base);
        let id = self.graph.add_node(node, [Some((name, Type::Tensor(ty), Place::Device))]);
        (id, self.graph.node(id).results[0].expect("it has one result"))
    }

    /// As [`Narrowing::add`], at this place of the order.
    fn here(
        &mut self,
        op: &str,
        attributes: Vec<(Name, Attr)>,
        operands: &[ValueId],
        ty: TensorType,
        base: &str,
    ) -> ValueId {
        let (node, value) = self.add(op, attributes, operands, ty, base);
        self.order.push(node);
        value
    }

    /// Takes the scores of a loss as short floats: the losses of the labels are rounded, and summed in `float`.
    fn loss(&mut self, id: NodeId, row: Row) {
        self.losses += 1;
        *self.narrowed.entry(self.graph.node(id).op.to_string()).or_default() += 1;
        self.shorten_operands(id, row);
        self.order.push(id);
        for index in 1..self.graph.node(id).results.len() {
            if let Some(result) = self.graph.node(id).results[index] {
                self.shorten_result(id, result);
            }
        }
        let node = self.graph.node(id);
        let Some(loss) = node.results.first().copied().flatten() else { return };
        let labels = node.operands[1].expect("a loss has labels");
        let Some(labels_ty) = self.graph.value(labels).ty.as_tensor().cloned() else { return };
        let total = match self.graph.attribute(node, "reduction") {
            Some(Attr::String(text)) => text.to_vec(),
            _ => return,
        };
        let ignored = self.ignored(id, labels, 3);
        let name = self.graph.value(loss).name.clone();
        let base = self.graph.fresh_value_name(&format!("{name}_was"));
        self.graph.rename(loss, base);
        let each = self.graph.fresh_value_name(&format!("{name}_each"));
        let ty = TensorType::new(self.to.element(), &*labels_ty.dims);
        let each = self.graph.replace_result(id, 0, each, ty);
        self.graph.remove_attribute(id, "output_type");
        self.graph.set_attribute(id, "reduction", "none".into());
        let base = if total == b"none" { name.to_string() } else { format!("{name}_float") };
        let (cast, wide) = self.cast(each, ElementType::Float, &base);
        self.order.push(cast);
        let new = match (&total[..], ignored) {
            (b"none", _) => wide,
            (b"mean", None) => self.total("ReduceMean", wide, &name),
            (b"mean", Some(ignored)) => {
                let count = self.counted(labels, ignored, &name);
                let sum = self.total("ReduceSum", wide, &format!("{name}_sum"));
                self.here("Div", Vec::new(), &[sum, count], TensorType::new(ElementType::Float, []), &name)
            }
            _ => self.total("ReduceSum", wide, &name),
        };
        self.instead.insert(loss, new);
        self.graph.outputs.iter_mut().filter(|output| **output == loss).for_each(|output| *output = new);
    }

    /// The number of labels that count.
    fn counted(&mut self, labels: ValueId, ignored: ValueId, base: &str) -> ValueId {
        let dims = self.graph.value(labels).ty.as_tensor().map(|ty| ty.dims.clone()).unwrap_or_default();
        let of = |element| TensorType::new(element, &*dims);
        let base = |what: &str| format!("{base}_{what}");
        let operands = [labels, ignored];
        let is_ignored = self.here("Equal", Vec::new(), &operands, of(ElementType::Bool), &base("ignored"));
        let counts = self.here("Not", Vec::new(), &[is_ignored], of(ElementType::Bool), &base("counts"));
        let to = vec![("to".into(), 1.into())];
        let counts = self.here("Cast", to, &[counts], of(ElementType::Float), &base("weights"));
        self.total("ReduceSum", counts, &base("weight"))
    }

    /// Divides the gradient of a mean by the number of labels that count, and makes the node sum.
    fn divide(&mut self, id: NodeId) {
        let node = self.graph.node(id);
        let is_mean = self.graph.attribute(node, "reduction") == Some(&"mean".into());
        let has_weights = node.operands.get(3).copied().flatten().is_some();
        let (&[Some(dy), _, Some(labels), ..], true) = (&node.operands[..], is_mean && !has_weights) else {
            return;
        };
        let place = if node.op.name().contains("Internal") { 4 } else { usize::MAX };
        let name = node.name.to_string();
        let count = match self.ignored(id, labels, place) {
            Some(ignored) => self.counted(labels, ignored, &name),
            None => {
                let count = self.graph.value(labels).ty.as_tensor().and_then(TensorType::element_count);
                let bytes = (count.unwrap_or(1) as f32).to_le_bytes().to_vec();
                self.literal(TensorType::new(ElementType::Float, []), bytes, &format!("{name}_weight"))
            }
        };
        self.widen_operands(id, |index| index != 0);
        let dy = self.graph.node(id).operands[0].unwrap_or(dy);
        let Some(ty) = self.graph.value(dy).ty.as_tensor().cloned() else { return };
        let share = self.here("Div", Vec::new(), &[dy, count], ty, &format!("{name}_share"));
        self.graph.set_operand(id, 0, share);
        self.graph.set_attribute(id, "reduction", "sum".into());
    }

    /// The sum, or the mean, of all elements.
    fn total(&mut self, op: &str, value: ValueId, base: &str) -> ValueId {
        let attributes = vec![("keepdims".into(), 0.into())];
        self.here(op, attributes, &[value], TensorType::new(ElementType::Float, []), base)
    }

    /// The label that does not count, of the labels' type.
    fn ignored(&mut self, id: NodeId, labels: ValueId, operand: usize) -> Option<ValueId> {
        let node = self.graph.node(id);
        let element = element(self.graph, labels)?;
        let given = node.operands.get(operand).copied().flatten();
        let attribute = match node.attribute("ignore_index") {
            Some(&Attr::Int(label)) => Some(label),
            _ => None,
        };
        let base = format!("{}_ignored_label", node.name);
        match (given, attribute) {
            (Some(given), _) if element == ElementType::Int64 => Some(given),
            (Some(given), _) => {
                let dims = self.graph.value(given).ty.as_tensor()?.dims.clone();
                let to = vec![("to".into(), 6.into())];
                Some(self.here("Cast", to, &[given], TensorType::new(element, dims), &base))
            }
            (None, Some(label)) => {
                let data = match element {
                    ElementType::Int64 => label.to_le_bytes().to_vec(),
                    _ => i32::try_from(label).ok()?.to_le_bytes().to_vec(),
                };
                Some(self.literal(TensorType::new(element, []), data, &base))
            }
            (None, None) => None,
        }
    }

    fn finish(self) -> Outcome {
        if self.short.is_empty() {
            let remarks = vec!["no product computes on float: nothing is changed".to_owned()];
            return Outcome { remarks, ..Outcome::default() };
        }
        let mut order = Vec::with_capacity(self.order.len());
        let mut behind = self.behind;
        for id in self.order {
            order.push(id);
            order.extend(behind.remove(&id).into_iter().flatten());
        }
        self.graph.set_order(order);
        let list = |counts: &BTreeMap<String, usize>| {
            let list: Vec<String> = counts.iter().map(|(op, count)| format!("{count} {op}")).collect();
            format!("{}: {}", words::count(counts.values().sum(), "node"), list.join(", "))
        };
        let to = self.to.element();
        let mut remarks = vec![
            format!(
                "values are rounded to {to}: the step computes other bits, and no check compares it with the original"
            ),
            format!("computed in {to}: {}", list(&self.narrowed)),
        ];
        remarks.extend(
            self.kept.iter().map(|(reason, counts)| format!("stayed float, {reason}: {}", list(counts))),
        );
        if self.losses > 0 {
            remarks.push(format!(
                "losses of labels are computed in float of {to} scores, rounded, and summed in float"
            ));
        }
        remarks.extend(self.scale.remark);
        Outcome { changed: true, remarks, ..Outcome::default() }
    }
}

/// Nodes of the forward phase on which a product or a convolution of that phase depends.
fn leads_to_product(graph: &Graph, phases: &Phases) -> HashSet<NodeId> {
    let mut leads = HashSet::new();
    for &id in graph.order().iter().rev().filter(|&&id| phases.phase(id) == Phase::Forward) {
        let node = graph.node(id);
        let is_product = row(&node.op).is_some_and(|row| row.role == Role::Product);
        if is_product || leads.contains(&id) {
            leads.extend(graph.predecessors(id));
        }
    }
    leads
}

/// `float` values that depend on inputs which are no parameters, and on no parameter.
fn of_data(graph: &Graph) -> HashSet<ValueId> {
    let variables: HashSet<ValueId> = graph.variables().into_iter().collect();
    let outputs: HashSet<&Type> = graph.outputs.iter().map(|&output| &graph.value(output).ty).collect();
    let is_parameter =
        |value: &ValueId| variables.contains(value) || outputs.contains(&graph.value(*value).ty);
    let inputs = graph.inputs.iter().copied();
    let mut data: HashSet<ValueId> =
        inputs.filter(|value| is_float(graph, *value) && !is_parameter(value)).collect();
    let is_constant = |value: ValueId| match graph.def(value) {
        Def::Initializer(_) => !is_parameter(&value),
        Def::Result(node, _) => graph.node(node).op.key() == ("", "Constant"),
        _ => false,
    };
    for &id in graph.order() {
        let node = graph.node(id);
        let plain = |value: ValueId| data.contains(&value) || is_constant(value) || !is_float(graph, value);
        if node.reads().any(|value| data.contains(&value)) && node.reads().all(plain) {
            data.extend(node.defines().filter(|&value| is_float(graph, value)));
        }
    }
    data
}

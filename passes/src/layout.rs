//! Stores images with channels last, from the first convolution to the last.

use std::collections::BTreeMap;

use foldhash::{HashMap, HashMapExt, HashSet};
use lmsc_ir::domains::{MS, ONNX};
use lmsc_ir::nhwc::{self, permuted, to_first, to_last};
use lmsc_ir::{
    Attr, Constants, Data, ElementType, Graph, Node, NodeId, Op, Place, StorageId, Storages, TensorType,
    Type, ValueId, words,
};

use crate::clean_up::{captured, not_older, not_planned};
use crate::{Outcome, Pass, PassCx, PassError, PassKind};

/// The pass writes axes of sums as operands, which ONNX's operators take since this version.
const OPSET: i64 = 13;

/// The version of ONNX since which `ReduceMean` takes its axes as an operand.
const AXES_OF_MEANS: i64 = 18;

/// Elementwise operators: each element of the result depends on the elements of the operands at its own place.
const ELEMENTWISE: &[(&str, &[&str])] = &[
    (
        ONNX,
        &[
            "Abs",
            "Add",
            "And",
            "Cast",
            "Ceil",
            "Celu",
            "Clip",
            "Div",
            "Elu",
            "Equal",
            "Erf",
            "Exp",
            "Floor",
            "Gelu",
            "Greater",
            "GreaterOrEqual",
            "HardSigmoid",
            "HardSwish",
            "Identity",
            "LeakyRelu",
            "Less",
            "LessOrEqual",
            "Log",
            "Max",
            "Mean",
            "Min",
            "Mish",
            "Mul",
            "Neg",
            "Not",
            "Or",
            "PRelu",
            "Pow",
            "Reciprocal",
            "Relu",
            "Round",
            "Selu",
            "Sigmoid",
            "Sign",
            "Softplus",
            "Softsign",
            "Sqrt",
            "Sub",
            "Sum",
            "Swish",
            "Tanh",
            "ThresholdedRelu",
            "Where",
            "Xor",
        ],
    ),
    (
        MS,
        &[
            "GeluGrad",
            "LeakyReluGrad",
            "QuickGelu",
            "QuickGeluGrad",
            "ReluGrad",
            "Scale",
            "SigmoidGrad",
            "TanhGrad",
        ],
    ),
];

/// Sums, means and extremes over axes.
const REDUCTIONS: &[(&str, &str)] = &[
    (ONNX, "ReduceMax"),
    (ONNX, "ReduceMean"),
    (ONNX, "ReduceMin"),
    (ONNX, "ReduceSum"),
    (MS, "ReduceSumTraining"),
];

/// Stores images as `[N, …, C]` instead of `[N, C, …]`.
///
/// Convolutions, poolings and their gradients become `ai.lmsc.NhwcConv` and those like it. Batch normalization computes on
/// `[N · …, C]`, a view. Elementwise operators, sums, concatenations and splits that read an image with channels last go on in that
/// order. All other nodes read transposed images, and weights and variables stay as they are.
pub(crate) struct Layout;

impl Pass for Layout {
    fn name(&self) -> &'static str {
        "layout"
    }

    fn summary(&self) -> &'static str {
        "images with channels last, from the first convolution to the last; sums may round differently"
    }

    fn kind(&self) -> PassKind {
        PassKind::Operators
    }

    fn run(&self, graph: &mut Graph, _: &PassCx) -> Result<Outcome, PassError> {
        not_older(self.name(), graph, OPSET)?;
        not_planned(self.name(), graph)?;
        let mut walk = Walk::new(graph);
        for id in walk.graph.order().to_vec() {
            walk.node(id);
        }
        Ok(walk.finish())
    }
}

/// The graph while its nodes are visited, in order.
struct Walk<'g> {
    graph: &'g mut Graph,
    constants: Constants,
    captured: HashSet<ValueId>,
    storages: Storages,
    /// Storages of variables: their bytes change in a step, so no copy of one is made for several nodes.
    written: HashSet<StorageId>,
    /// Images that are computed with channels last: the value with channels last. Often that is the value itself, whose type is another.
    native: HashMap<ValueId, ValueId>,
    /// The extents of those, with channels first.
    extents: HashMap<ValueId, Vec<u64>>,
    /// Copies with channels last of other values, by the number of axes.
    last: HashMap<(ValueId, usize), ValueId>,
    /// Copies with channels first of native values.
    first: HashMap<ValueId, ValueId>,
    /// Views `[N · …, C]`.
    flat: HashMap<ValueId, ValueId>,
    lists: HashMap<Vec<i64>, ValueId>,
    /// Constants, which stand before all other nodes.
    lead: Vec<NodeId>,
    order: Vec<NodeId>,
    turned: BTreeMap<String, usize>,
    transposes: usize,
    views: usize,
}

impl<'g> Walk<'g> {
    fn new(graph: &'g mut Graph) -> Walk<'g> {
        let storages = Storages::of(graph);
        Walk {
            constants: Constants::of(graph),
            captured: captured(graph),
            written: graph.variables().into_iter().map(|variable| storages.storage(variable)).collect(),
            storages,
            native: HashMap::new(),
            extents: HashMap::new(),
            last: HashMap::new(),
            first: HashMap::new(),
            flat: HashMap::new(),
            lists: HashMap::new(),
            lead: Vec::new(),
            order: Vec::new(),
            turned: BTreeMap::new(),
            transposes: 0,
            views: 0,
            graph,
        }
    }

    fn tensor(&self, value: ValueId) -> Option<&TensorType> {
        self.graph.value(value).ty.as_tensor()
    }

    /// The extents with channels first; none of a sequence.
    fn dims(&self, value: ValueId) -> Option<Vec<u64>> {
        match self.extents.get(&value) {
            Some(dims) => Some(dims.clone()),
            None => Some(self.tensor(value)?.dims.clone()),
        }
    }

    fn is_native(&self, value: ValueId) -> bool {
        self.native.contains_key(&value)
    }

    /// Whether the value is an image: a tensor with elements, a batch, channels and more axes, in memory of its own.
    fn is_image(&self, value: ValueId) -> bool {
        self.dims(value).is_some_and(|dims| dims.len() > 2 && !dims.contains(&0))
            && (self.is_native(value) || self.may_move(value))
            && self.graph.value(value).place == Place::Device
    }

    /// Whether a copy of the value is the value wherever it is read.
    fn may_move(&self, value: ValueId) -> bool {
        !self.captured.contains(&value) && !self.written.contains(&self.storages.storage(value))
    }

    fn add(
        &mut self,
        op: &str,
        attributes: &[(&str, Attr)],
        operands: &[ValueId],
        ty: TensorType,
        base: &str,
    ) -> (NodeId, ValueId) {
        let mut node = Node::new(self.graph.fresh_node_name(base), Op::new(ONNX, op));
        node.attributes = attributes.iter().map(|(name, attr)| ((*name).into(), attr.clone())).collect();
        node.operands = operands.iter().copied().map(Some).collect();
        let name = self.graph.fresh_value_name(base);
        let id = self.graph.add_node(node, [Some((name, Type::Tensor(ty), Place::Device))]);
        (id, self.graph.node(id).results[0].expect("it has one result"))
    }

    /// A list of integers; equal lists are added once.
    fn list(&mut self, values: &[i64]) -> ValueId {
        if let Some(&known) = self.lists.get(values) {
            return known;
        }
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let ty = TensorType::new(ElementType::Int64, [values.len() as u64]);
        let value = Attr::Tensor(ty.clone(), Data::Inline(bytes.into()));
        let (node, list) = self.add("Constant", &[("value", value)], &[], ty, "layout_list");
        self.lead.push(node);
        self.lists.insert(values.to_vec(), list);
        list
    }

    /// The value in these extents.
    fn view(&mut self, value: ValueId, dims: &[u64], base: &str) -> ValueId {
        let Some(element) = self.tensor(value).map(|ty| ty.element) else { return value };
        let shape = self.list(&dims.iter().map(|&dim| dim as i64).collect::<Vec<_>>());
        let (node, view) = self.add("Reshape", &[], &[value, shape], TensorType::new(element, dims), base);
        self.order.push(node);
        self.views += 1;
        view
    }

    /// The value of these extents with its axes in another order: a view where only axes of one element change places.
    fn moved(&mut self, value: ValueId, dims: &[u64], permutation: &[usize], base: &str) -> ValueId {
        let to = permuted(dims, permutation);
        let long: Vec<usize> = permutation.iter().copied().filter(|&axis| dims[axis] != 1).collect();
        if long.is_sorted() {
            return self.view(value, &to, base);
        }
        let Some(element) = self.tensor(value).map(|ty| ty.element) else { return value };
        let order: Vec<i64> = permutation.iter().map(|&axis| axis as i64).collect();
        let perm = [("perm", order.into())];
        let (node, moved) = self.add("Transpose", &perm, &[value], TensorType::new(element, to), base);
        self.order.push(node);
        self.transposes += 1;
        moved
    }

    /// The value with channels last, among `rank` axes: an operand with fewer is broadcast along the first.
    fn last(&mut self, value: ValueId, rank: usize) -> ValueId {
        if let Some(&native) = self.native.get(&value) {
            return native;
        }
        if let Some(&known) = self.last.get(&(value, rank)) {
            return known;
        }
        let mut dims = self.dims(value).unwrap_or_default();
        let base = format!("{}_nhwc", self.graph.value(value).name);
        let missing = rank.saturating_sub(dims.len());
        dims.splice(0..0, vec![1; missing]);
        // A transposition has the axes that its operand has.
        let long: Vec<usize> = to_last(rank).into_iter().filter(|&axis| dims[axis] != 1).collect();
        let whole = if missing > 0 && !long.is_sorted() { self.view(value, &dims, &base) } else { value };
        let moved = self.moved(whole, &dims, &to_last(rank), &base);
        self.last.insert((value, rank), moved);
        moved
    }

    /// The value with channels first.
    fn first(&mut self, value: ValueId) -> ValueId {
        let Some(&native) = self.native.get(&value) else { return value };
        if let Some(&known) = self.first.get(&value) {
            return known;
        }
        let dims = self.extents[&value].clone();
        let base = format!("{}_nchw", self.graph.value(value).name);
        let (last, rank) = (permuted(&dims, &to_last(dims.len())), dims.len());
        let moved = self.moved(native, &last, &to_first(rank), &base);
        self.first.insert(value, moved);
        moved
    }

    /// The value as `[N · …, C]`.
    fn flat(&mut self, value: ValueId) -> ValueId {
        if let Some(&known) = self.flat.get(&value) {
            return known;
        }
        let dims = self.dims(value).unwrap_or_default();
        let last = self.last(value, dims.len());
        let base = format!("{}_rows", self.graph.value(value).name);
        let flat = self.view(last, &rows(&dims), &base);
        self.flat.insert(value, flat);
        flat
    }

    /// Gives the result the type with channels last.
    fn set_native(&mut self, value: ValueId) {
        let Some(ty) = self.tensor(value).cloned() else { return };
        let last = permuted(&ty.dims, &to_last(ty.dims.len()));
        self.graph.set_type(value, TensorType::new(ty.element, last));
        self.extents.insert(value, ty.dims);
        self.native.insert(value, value);
    }

    fn node(&mut self, id: NodeId) {
        let op = self.graph.node(id).op.clone();
        if self.turn(id, &op).is_some() {
            *self.turned.entry(op.name().to_owned()).or_default() += 1;
        } else {
            for index in 0..self.graph.node(id).operands.len() {
                if let Some(operand) = self.graph.node(id).operands[index].filter(|&v| self.is_native(v)) {
                    let first = self.first(operand);
                    self.graph.set_operand(id, index, first);
                }
            }
            self.order.push(id);
        }
    }

    fn operand(&self, id: NodeId, index: usize) -> Option<ValueId> {
        self.graph.node(id).operands.get(index).copied().flatten()
    }

    fn result(&self, id: NodeId, index: usize) -> Option<ValueId> {
        self.graph.node(id).results.get(index).copied().flatten()
    }

    /// Computes the node with channels last, if its operator is known here and reads such images.
    fn turn(&mut self, id: NodeId, op: &Op) -> Option<()> {
        let node = self.graph.node(id);
        let is_held = |value: ValueId| !self.may_move(value);
        let updates = |index: usize| node.updates.iter().any(|update| update.result == Some(index));
        if self.graph.runs_on_host(id) || !node.captures.is_empty() {
            return None;
        }
        if let Some(form) = nhwc::last(op) {
            let results = form.results.iter().filter_map(|&index| Some((index, self.result(id, index)?)));
            if results.into_iter().any(|(index, value)| is_held(value) || updates(index)) {
                return None;
            }
            return self.sliding(id, form);
        }
        if !node.operands.iter().flatten().any(|&value| self.is_native(value)) {
            return None;
        }
        let is_normalization = matches!(
            op.key(),
            (ONNX, "BatchNormalization") | (MS, "BatchNormInternal" | "BatchNormalizationGrad")
        );
        let mut written = node.results.iter().flatten().take(if is_normalization { 1 } else { usize::MAX });
        if written.any(|&value| is_held(value)) || (!node.updates.is_empty() && !is_normalization) {
            return None;
        }
        match op.key() {
            (ONNX, "BatchNormalization") | (MS, "BatchNormInternal") => self.normalization(id, &[0]),
            (MS, "BatchNormalizationGrad") => self.normalization(id, &[0, 1]),
            (ONNX, "GlobalAveragePool") => self.global(id),
            (ONNX, "Concat" | "Split") | (MS, "ConcatTraining" | "SplitTraining") => self.joined(id),
            key if REDUCTIONS.contains(&key) => self.reduction(id),
            (domain, name)
                if ELEMENTWISE.iter().any(|(of, names)| *of == domain && names.contains(&name)) =>
            {
                self.elementwise(id)
            }
            _ => None,
        }
    }

    /// A convolution, a pooling, or the gradient of one. Poolings follow their operands.
    fn sliding(&mut self, id: NodeId, form: &nhwc::Nhwc) -> Option<()> {
        let images: Vec<(usize, ValueId)> =
            form.operands.iter().filter_map(|&index| Some((index, self.operand(id, index)?))).collect();
        let is_convolution = form.first.1.starts_with("Conv");
        let follows = images.iter().any(|&(_, image)| self.is_native(image));
        let results: Vec<ValueId> = form.results.iter().filter_map(|&index| self.result(id, index)).collect();
        let mut all = images.iter().map(|&(_, image)| image).chain(results.iter().copied());
        if !(is_convolution || follows) || !all.all(|image| self.is_image(image)) {
            return None;
        }
        for (index, image) in images {
            let rank = self.dims(image)?.len();
            let last = self.last(image, rank);
            self.graph.set_operand(id, index, last);
        }
        self.graph.set_op(id, form.op());
        self.order.push(id);
        results.into_iter().for_each(|result| self.set_native(result));
        Some(())
    }

    /// Batch normalization, or its gradient: each column of `[N · …, C]` is a channel.
    fn normalization(&mut self, id: NodeId, images: &[usize]) -> Option<()> {
        let result = self.result(id, 0)?;
        let operands: Vec<ValueId> =
            images.iter().map(|&index| self.operand(id, index)).collect::<Option<_>>()?;
        if !operands.iter().chain([&result]).all(|&image| self.is_image(image)) {
            return None;
        }
        for (&index, operand) in images.iter().zip(operands) {
            let flat = self.flat(operand);
            self.graph.set_operand(id, index, flat);
        }
        self.order.push(id);
        let ty = self.tensor(result)?.clone();
        let base = format!("{}_nhwc", self.graph.value(result).name);
        self.graph.set_type(result, TensorType::new(ty.element, rows(&ty.dims)));
        let last = self.view(result, &permuted(&ty.dims, &to_last(ty.dims.len())), &base);
        self.flat.insert(result, result);
        self.extents.insert(result, ty.dims);
        self.native.insert(result, last);
        Some(())
    }

    /// The mean of each channel.
    fn global(&mut self, id: NodeId) -> Option<()> {
        let (x, y) = (self.operand(id, 0)?, self.result(id, 0)?);
        let rank = self.dims(x)?.len();
        if !self.is_image(y) {
            return None;
        }
        let last = self.last(x, rank);
        self.graph.set_op(id, Op::new(ONNX, "ReduceMean"));
        self.graph.set_operand(id, 0, last);
        self.set_axes(id, &(1..rank as i64 - 1).collect::<Vec<_>>());
        self.order.push(id);
        self.set_native(y);
        Some(())
    }

    /// Makes the node reduce these axes.
    fn set_axes(&mut self, id: NodeId, axes: &[i64]) {
        let version = self.graph.opsets.get(ONNX).copied().unwrap_or_default();
        let op = &self.graph.node(id).op;
        let is_operand =
            version >= AXES_OF_MEANS || matches!(op.key(), (ONNX, "ReduceSum") | (MS, "ReduceSumTraining"));
        if is_operand {
            let list = self.list(axes);
            self.graph.set_operand(id, 1, list);
        } else {
            self.graph.set_attribute(id, "axes", axes.to_vec().into());
        }
    }

    /// A sum, mean or extreme over constant axes that leaves the others in their order.
    fn reduction(&mut self, id: NodeId) -> Option<()> {
        let (x, y) = (self.operand(id, 0)?, self.result(id, 0)?);
        let rank = self.dims(x)?.len();
        let node = self.graph.node(id);
        let given = match self.operand(id, 1) {
            Some(axes) => match self.constants.get(axes)? {
                Data::Inline(bytes) => {
                    bytes.as_chunks().0.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect()
                }
                _ => return None,
            },
            None => match node.attribute("axes")? {
                Attr::Ints(axes) => axes.clone(),
                _ => return None,
            },
        };
        let keeps = matches!(self.graph.attribute(node, "keepdims"), Some(Attr::Int(1)));
        let axes: Vec<usize> = (given.iter())
            .map(|&axis| usize::try_from(if axis < 0 { axis + rank as i64 } else { axis }).ok())
            .collect::<Option<Vec<_>>>()?
            .into_iter()
            .filter(|&axis| axis < rank)
            .collect();
        let kept: Vec<usize> = to_last(rank).into_iter().filter(|axis| !axes.contains(axis)).collect();
        if axes.is_empty() || axes.len() != given.len() || !(keeps || kept.is_sorted()) {
            return None;
        }
        if keeps && !self.is_image(y) {
            return None;
        }
        let last = self.last(x, rank);
        self.graph.set_operand(id, 0, last);
        let order = to_last(rank);
        let moved: Vec<i64> =
            (0..rank).filter(|&place| axes.contains(&order[place])).map(|place| place as i64).collect();
        self.set_axes(id, &moved);
        self.order.push(id);
        if keeps {
            self.set_native(y);
        }
        Some(())
    }

    /// A concatenation or a split along an axis.
    fn joined(&mut self, id: NodeId) -> Option<()> {
        let node = self.graph.node(id);
        let is_split = node.op.name().starts_with("Split");
        let operands: Vec<ValueId> = node.operands.iter().flatten().copied().collect();
        let images = if is_split { operands.get(..1)? } else { &operands[..] }.to_vec();
        // `ConcatTraining` has the extents along the axis as its second result.
        let count = if is_split { node.results.len() } else { 1 };
        let results: Vec<ValueId> = node.results.iter().take(count).flatten().copied().collect();
        let rank = self.dims(*images.first()?)?.len();
        let Some(&Attr::Int(axis)) = self.graph.attribute(node, "axis") else { return None };
        let axis = usize::try_from(if axis < 0 { axis + rank as i64 } else { axis }).ok()?;
        let place = to_last(rank).iter().position(|&of| of == axis)?;
        let fits = |&value: &ValueId| {
            self.is_image(value) && self.dims(value).is_some_and(|dims| dims.len() == rank)
        };
        if !images.iter().chain(&results).all(fits) {
            return None;
        }
        for (index, image) in images.into_iter().enumerate() {
            let last = self.last(image, rank);
            self.graph.set_operand(id, index, last);
        }
        self.graph.set_attribute(id, "axis", (place as i64).into());
        self.order.push(id);
        results.into_iter().for_each(|result| self.set_native(result));
        Some(())
    }

    /// An operator of each element, whose smaller operands are broadcast.
    fn elementwise(&mut self, id: NodeId) -> Option<()> {
        let node = self.graph.node(id);
        let operands: Vec<(usize, ValueId)> =
            node.operands.iter().enumerate().filter_map(|(i, value)| Some((i, (*value)?))).collect();
        let results: Vec<ValueId> = node.results.iter().flatten().copied().collect();
        let rank = self.dims(*results.first()?)?.len();
        if !results.iter().all(|&result| self.is_image(result)) {
            return None;
        }
        let mut moves = Vec::new();
        for (index, operand) in operands {
            let dims = self.dims(operand)?;
            let is_native = self.is_native(operand);
            if is_native && dims.len() != rank || dims.len() > rank {
                return None;
            }
            if dims.iter().any(|&dim| dim != 1) || is_native {
                if !is_native && !self.may_move(operand) {
                    return None;
                }
                moves.push((index, operand));
            }
        }
        for (index, operand) in moves {
            let last = self.last(operand, rank);
            self.graph.set_operand(id, index, last);
        }
        self.order.push(id);
        results.into_iter().for_each(|result| self.set_native(result));
        Some(())
    }

    fn finish(mut self) -> Outcome {
        for index in 0..self.graph.outputs.len() {
            let output = self.graph.outputs[index];
            if !self.is_native(output) {
                continue;
            }
            let first = self.first(output);
            if !self.graph.outputs.contains(&first) {
                let name = self.graph.value(output).name.clone();
                let was = self.graph.fresh_value_name(&format!("{name}_nhwc"));
                self.graph.rename(output, was);
                self.graph.rename(first, name);
            }
            self.graph.outputs[index] = first;
        }
        if self.turned.is_empty() {
            return Outcome::default();
        }
        if self.turned.keys().any(|name| nhwc_name(name)) {
            self.graph.opsets.entry(lmsc_ir::LMSC_DOMAIN.to_owned()).or_insert(1);
        }
        let order = [self.lead, self.order].concat();
        self.graph.set_order(order);
        let list: Vec<String> = self.turned.iter().map(|(name, count)| format!("{count} {name}")).collect();
        let all = words::count(self.turned.values().sum(), "node");
        let ends = words::count(self.transposes, "transposition");
        let views = words::count(self.views, "view");
        let remark = format!("channels last in {all}, with {ends} and {views}: {}", list.join(", "));
        Outcome { changed: true, remarks: vec![remark], ..Outcome::default() }
    }
}

/// Whether operators of this name have a form with channels last of their own.
fn nhwc_name(name: &str) -> bool {
    [ONNX, MS].iter().any(|domain| nhwc::last(&Op::new(domain, name)).is_some())
}

/// The extents of `[N, C, …]` as `[N · …, C]`.
fn rows(dims: &[u64]) -> [u64; 2] {
    let channels = dims.get(1).copied().unwrap_or(1);
    let others = dims.iter().enumerate().filter(|&(axis, _)| axis != 1).map(|(_, &dim)| dim);
    [others.fold(1, u64::saturating_mul), channels]
}

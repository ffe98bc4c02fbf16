//! Computes a loss over classes, from its scores to their gradients, by chunks of rows.

mod rows;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};
use lmsc_ir::domains::ONNX;
use lmsc_ir::{
    Attr, Constants, Data, ElementType, Graph, Name, Node, NodeId, Op, Place, TensorType, Type, ValueId,
    words,
};

use crate::clean_up::{captured, is_function, not_older, not_planned};
use crate::fold_constants::order_readers;
use crate::{CallOption, Outcome, Pass, PassCx, PassError, PassKind};
use rows::{Axis, Cut, NoCut, Rows, is_loss, is_loss_gradient};

/// The pass writes axes of reductions and bounds of slices as operands, which ONNX's operators take since this version.
const OPSET: i64 = 13;

const ROWS: CallOption =
    CallOption::count("rows", "rows of scores that are computed at a time, at most", 1024);

/// Cuts the scores of a loss over classes into chunks of rows: product, loss, its gradient, and the products with that gradient are
/// computed for one chunk after the other, so that scores and their gradients are never in memory as a whole.
///
/// A loss is a `LogSoftmax` or a `SoftmaxCrossEntropyLoss`. Its region are all nodes that compute scores from a product, or read
/// tensors of the size of the scores, such as probabilities. Each of them must compute every row by itself, or sum over rows; sums of
/// chunks are added in the order of rows. A mean over labels is a sum that is divided by the number of labels that count.
pub(crate) struct ChunkLoss;

impl Pass for ChunkLoss {
    fn name(&self) -> &'static str {
        "chunk-loss"
    }

    fn summary(&self) -> &'static str {
        "losses over classes by chunks of rows, from the product that makes scores to the gradients; sums may round differently"
    }

    fn kind(&self) -> PassKind {
        PassKind::Operators
    }

    fn options(&self) -> &[CallOption] {
        &[ROWS]
    }

    fn run(&self, graph: &mut Graph, cx: &PassCx) -> Result<Outcome, PassError> {
        not_older(self.name(), graph, OPSET)?;
        let most = cx.count(&ROWS);
        if most == 0 {
            return Err(PassError::Call("chunk-loss{rows=0}: a chunk has at least one row".into()));
        }
        not_planned(self.name(), graph)?;
        let mut outcome = Outcome::default();
        let losses = |id: &NodeId| {
            let op = &graph.node(*id).op;
            is_loss(op) || op.key() == (ONNX, "LogSoftmax")
        };
        for loss in graph.order().iter().copied().filter(losses).collect::<Vec<_>>() {
            let Some((scores, axis, _)) = scores(graph, loss).filter(|&(_, _, count)| count > most) else {
                continue;
            };
            let name = graph.node(loss).name.clone();
            let mut trial = graph.clone();
            match chunked(&mut trial, loss, scores, axis, most) {
                Ok(remark) => {
                    *graph = trial;
                    outcome.changed = true;
                    outcome.remarks.push(format!("[{name}] {remark}"));
                }
                Err(whole) => outcome.remarks.push(format!("[{name}] stays whole: {whole}")),
            }
        }
        Ok(outcome)
    }
}

/// Why a loss stays whole.
#[derive(Clone, Debug)]
enum Whole {
    /// The scores are an input, or computed without a product.
    NoProduct,
    /// A tensor of the size of the scores is an output, or is read by a subgraph.
    Kept(Name),
    /// A node mixes rows, or its operator is not known here.
    Mixes(Name, Op),
    /// A gradient depends on a sum over all rows.
    Sum(Name),
    /// The loss weighs classes, or has types or operands that are not known here.
    Weights(Name),
    /// Rows cannot be cut into equal parts.
    OneUnit,
}

impl fmt::Display for Whole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Whole::NoProduct => f.write_str("no product computes its scores"),
            Whole::Kept(value) => write!(f, "`{value}` is an output, or a subgraph reads it"),
            Whole::Mixes(node, op) => write!(f, "[{node}] {op} does not compute each row by itself"),
            Whole::Sum(node) => write!(f, "[{node}] reads a sum over all rows, and gradients depend on it"),
            Whole::Weights(node) => {
                write!(f, "[{node}] is a mean with weights, or of types that are not divided here")
            }
            Whole::OneUnit => {
                f.write_str("its rows cannot be cut into equal parts, as a reshape or a slice reads them")
            }
        }
    }
}

fn tensor(graph: &Graph, value: ValueId) -> Option<&TensorType> {
    graph.value(value).ty.as_tensor()
}

fn elements(graph: &Graph, value: ValueId) -> u64 {
    tensor(graph, value).and_then(TensorType::element_count).unwrap_or(0)
}

/// The scores of the loss, the axis of their rows, and the number of rows.
fn scores(graph: &Graph, loss: NodeId) -> Option<(ValueId, usize, u64)> {
    let node = graph.node(loss);
    let scores = node.operands.first().copied().flatten()?;
    let dims = &tensor(graph, scores)?.dims;
    let classes = if is_loss(&node.op) {
        1
    } else {
        match graph.attribute(node, "axis")? {
            Attr::Int(axis) => {
                usize::try_from(if *axis < 0 { axis + dims.len() as i64 } else { *axis }).ok()?
            }
            _ => return None,
        }
    };
    let count = elements(graph, scores).checked_div(*dims.get(classes)?)?;
    let axis = (0..dims.len()).find(|&axis| axis != classes && dims[axis] > 1)?;
    Some((scores, axis, count))
}

/// Rewrites the loss and returns the remark about it.
fn chunked(
    graph: &mut Graph,
    loss: NodeId,
    scores: ValueId,
    axis: usize,
    most: u64,
) -> Result<String, Whole> {
    sums_of_means(graph, loss)?;
    let count = elements(graph, scores) / classes(graph, loss, scores);
    let constants = Constants::of(graph);
    let mut units = tensor(graph, scores).map_or(0, |ty| ty.dims[axis]);
    let region = loop {
        if units < 2 {
            return Err(Whole::OneUnit);
        }
        let rows = Rows { graph, constants: &constants, units };
        match Region::of(&rows, scores, axis) {
            Ok(region) => break region,
            Err(Fault::Units(fewer)) => units = fewer,
            Err(Fault::Whole(whole)) => return Err(whole),
        }
    };
    let each = ((u128::from(most) * u128::from(units) / u128::from(count)) as u64).max(1);
    let chunks = units.div_ceil(each);
    let rows = count / units * each;
    let sums = region.write(graph, &constants, units, each);
    Ok(format!(
        "{} of {}, {}{}",
        words::count(chunks as usize, "chunk"),
        words::count(rows as usize, "row"),
        words::count(region.cuts.len(), "node"),
        if sums == 0 { String::new() } else { format!(", {} over rows", words::count(sums, "sum")) }
    ))
}

/// The number of classes.
fn classes(graph: &Graph, loss: NodeId, scores: ValueId) -> u64 {
    self::scores(graph, loss).map_or(1, |(_, _, count)| elements(graph, scores) / count.max(1)).max(1)
}

/// Adds nodes, and keeps their order.
struct Writer<'g> {
    graph: &'g mut Graph,
    made: Vec<NodeId>,
    constants: BTreeMap<Vec<i64>, ValueId>,
}

impl<'g> Writer<'g> {
    fn new(graph: &'g mut Graph) -> Writer<'g> {
        Writer { graph, made: Vec::new(), constants: BTreeMap::new() }
    }

    fn add(
        &mut self,
        op: &str,
        attributes: Vec<(Name, Attr)>,
        operands: &[ValueId],
        ty: TensorType,
        base: &str,
    ) -> ValueId {
        let mut node = Node::new(self.graph.fresh_node_name(base), Op::new(ONNX, op));
        node.attributes = attributes;
        node.operands = operands.iter().copied().map(Some).collect();
        let name = self.graph.fresh_value_name(base);
        let id = self.graph.add_node(node, [Some((name, Type::Tensor(ty), Place::Device))]);
        self.made.push(id);
        self.graph.node(id).results[0].expect("it has one result")
    }

    fn literal(&mut self, ty: TensorType, data: Data, base: &str) -> ValueId {
        let value = Attr::Tensor(ty.clone(), data);
        self.add("Constant", vec![("value".into(), value)], &[], ty, base)
    }

    /// A list of integers; equal lists are added once.
    fn list(&mut self, values: &[i64]) -> ValueId {
        if let Some(&known) = self.constants.get(values) {
            return known;
        }
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let ty = TensorType::new(ElementType::Int64, [values.len() as u64]);
        let list = self.literal(ty, Data::Inline(bytes.into()), "rows_extents");
        self.constants.insert(values.to_vec(), list);
        list
    }

    fn cast(&mut self, value: ValueId, to: ElementType, base: &str) -> ValueId {
        // The numbers are those of ONNX's `TensorProto.DataType`.
        let code: i64 = match to {
            ElementType::Float => 1,
            ElementType::Int32 => 6,
            ElementType::Int64 => 7,
            ElementType::Float16 => 10,
            ElementType::Bfloat16 => 16,
            _ => return value,
        };
        let dims = tensor(self.graph, value).map(|ty| ty.dims.clone()).unwrap_or_default();
        self.add("Cast", vec![("to".into(), code.into())], &[value], TensorType::new(to, dims), base)
    }

    /// The sum of all elements, in `float`.
    fn total(&mut self, value: ValueId, base: &str) -> ValueId {
        let keepdims = vec![("keepdims".into(), 0.into())];
        self.add("ReduceSum", keepdims, &[value], TensorType::new(ElementType::Float, []), base)
    }

    /// Gives `new` the name of `old`, which no node computes any more, and its place among the outputs.
    fn replace(&mut self, old: ValueId, new: ValueId) {
        let name = self.graph.value(old).name.clone();
        let other = self.graph.fresh_value_name(&format!("{name}_was"));
        self.graph.rename(old, other);
        self.graph.rename(new, name);
        self.graph.outputs.iter_mut().filter(|output| **output == old).for_each(|output| *output = new);
    }
}

/// Makes all nodes of the order read the replacement of a value, where it has one.
fn redirect(graph: &mut Graph, instead: &HashMap<ValueId, ValueId>) {
    for id in graph.order().to_vec() {
        for index in 0..graph.node(id).operands.len() {
            let operand = graph.node(id).operands[index];
            if let Some(&new) = operand.and_then(|old| instead.get(&old)) {
                graph.set_operand(id, index, new);
            }
        }
    }
}

/// Writes the loss, and the gradients that read its probabilities, as sums that are divided by the number of labels that count.
fn sums_of_means(graph: &mut Graph, loss: NodeId) -> Result<(), Whole> {
    let order = graph.order().to_vec();
    let mut before: BTreeMap<NodeId, Vec<NodeId>> = BTreeMap::new();
    let mut behind: BTreeMap<NodeId, Vec<NodeId>> = BTreeMap::new();
    let mut instead = HashMap::new();
    let log = graph.node(loss).results.get(usize::from(is_loss(&graph.node(loss).op))).copied().flatten();
    let mut logs: HashSet<ValueId> = log.into_iter().collect();
    for &id in &order {
        let node = graph.node(id);
        if matches!(node.op.key(), (ONNX, "Cast" | "Identity")) && node.reads().any(|v| logs.contains(&v)) {
            logs.extend(node.defines());
        }
    }
    for &id in &order {
        let node = graph.node(id);
        let is_gradient = is_loss_gradient(&node.op)
            && node.operands.get(1).copied().flatten().is_some_and(|v| logs.contains(&v));
        let is_this = id == loss && is_loss(&node.op);
        if !is_this && !is_gradient {
            continue;
        }
        let whole = || Whole::Weights(graph.node(id).name.clone());
        let reduction = match graph.attribute(node, "reduction") {
            Some(Attr::String(text)) => text.to_vec(),
            _ => continue,
        };
        let is_mean = reduction == b"mean";
        if reduction == b"none" || (is_gradient && !is_mean) {
            continue;
        }
        let scores = usize::from(is_gradient);
        let weights = node.operands.get(scores + 2).copied().flatten();
        if is_mean && weights.is_some() || node.attribute("output_type").is_some() {
            return Err(whole());
        }
        let labels = node.operands.get(scores + 1).copied().flatten().ok_or_else(whole)?;
        let base = node.name.to_string();
        if is_gradient {
            let dy = node.operands[0].ok_or_else(whole)?;
            let ty =
                tensor(graph, dy).filter(|ty| ty.element == ElementType::Float).cloned().ok_or_else(whole)?;
            let mut writer = Writer::new(graph);
            let count =
                counted(&mut writer, id, labels, scores + 3).ok_or(Whole::Weights(base.as_str().into()))?;
            let share = writer.add("Div", Vec::new(), &[dy, count], ty, &format!("{base}_share"));
            before.insert(id, writer.made);
            graph.set_operand(id, 0, share);
            graph.set_attribute(id, "reduction", "sum".into());
            continue;
        }
        let Some(old) = node.results[0] else {
            graph.set_attribute(id, "reduction", "none".into());
            continue;
        };
        let element = tensor(graph, old).map(|ty| ty.element).ok_or_else(whole)?;
        let dims = tensor(graph, labels).map(|ty| ty.dims.clone()).ok_or_else(whole)?;
        let each = graph.fresh_value_name(&format!("{base}_each"));
        let each = graph.replace_result(id, 0, each, TensorType::new(element, dims));
        graph.set_attribute(id, "reduction", "none".into());
        let mut writer = Writer::new(graph);
        let is_float = element == ElementType::Float;
        let float =
            if is_float { each } else { writer.cast(each, ElementType::Float, &format!("{base}_float")) };
        let mut total = writer.total(float, &format!("{base}_sum"));
        if is_mean {
            let count = counted(&mut writer, id, labels, 3).ok_or(Whole::Weights(base.as_str().into()))?;
            let ty = TensorType::new(ElementType::Float, []);
            total = writer.add("Div", Vec::new(), &[total, count], ty, &format!("{base}_mean"));
        }
        if !is_float {
            total = writer.cast(total, element, &base);
        }
        writer.replace(old, total);
        behind.insert(id, writer.made);
        instead.insert(old, total);
    }
    let mut new = Vec::with_capacity(order.len());
    for id in order {
        new.extend(before.remove(&id).into_iter().flatten());
        new.push(id);
        new.extend(behind.remove(&id).into_iter().flatten());
    }
    graph.set_order(new);
    redirect(graph, &instead);
    Ok(())
}

/// The number of labels that count, where operand `place` may hold the label that does not.
fn counted(writer: &mut Writer<'_>, id: NodeId, labels: ValueId, place: usize) -> Option<ValueId> {
    let node = writer.graph.node(id);
    let base = node.name.to_string();
    let is_internal = node.op.name().contains("Internal");
    let given = node.operands.get(place).copied().flatten().filter(|_| is_internal);
    let attribute = match node.attribute("ignore_index") {
        Some(&Attr::Int(label)) => Some(label),
        Some(_) => return None,
        None => None,
    };
    let ty = tensor(writer.graph, labels)?.clone();
    let named = |part: &str| format!("{base}_{part}");
    let ignored = match (given, attribute) {
        (Some(given), _) if ty.element == ElementType::Int64 => given,
        (Some(given), _) => writer.cast(given, ty.element, &named("ignored")),
        (None, Some(label)) => {
            let bytes = match ty.element {
                ElementType::Int64 => label.to_le_bytes().to_vec(),
                _ => i32::try_from(label).ok()?.to_le_bytes().to_vec(),
            };
            writer.literal(TensorType::new(ty.element, []), Data::Inline(bytes.into()), &named("ignored"))
        }
        (None, None) => {
            let count = ty.element_count()? as f32;
            let float = TensorType::new(ElementType::Float, []);
            return Some(writer.literal(
                float,
                Data::Inline(count.to_le_bytes().to_vec().into()),
                &named("count"),
            ));
        }
    };
    let of = |element| TensorType::new(element, &*ty.dims);
    let is = writer.add("Equal", Vec::new(), &[labels, ignored], of(ElementType::Bool), &named("is_ignored"));
    let counts = writer.add("Not", Vec::new(), &[is], of(ElementType::Bool), &named("counts"));
    let ones = writer.cast(counts, ElementType::Float, &named("ones"));
    Some(writer.total(ones, &named("count")))
}

/// Why there is no region.
enum Fault {
    /// Rows have this many equal parts only.
    Units(u64),
    Whole(Whole),
}

impl From<Whole> for Fault {
    fn from(whole: Whole) -> Fault {
        Fault::Whole(whole)
    }
}

/// The nodes that are computed by chunks.
#[derive(Default)]
struct Region {
    cuts: BTreeMap<NodeId, Cut>,
    /// The axes of the values that these nodes compute by chunks.
    axes: HashMap<ValueId, usize>,
    /// Nodes that read nothing but the extents of such a value.
    shapes: BTreeSet<NodeId>,
}

/// The region while it is found.
struct Search<'r, 'g> {
    rows: &'r Rows<'g>,
    readers: HashMap<ValueId, Vec<NodeId>>,
    /// A cut value with at least this many elements is computed by chunks for all its readers.
    wide: u64,
    region: Region,
    /// Wide values whose readers are not part of the region yet.
    open: Vec<ValueId>,
    /// Wide values whose readers are all part of the region in the end.
    inner: HashSet<ValueId>,
    has_product: bool,
}

impl Region {
    fn of(rows: &Rows<'_>, scores: ValueId, axis: usize) -> Result<Region, Fault> {
        let graph = rows.graph;
        let mut readers: HashMap<ValueId, Vec<NodeId>> = HashMap::new();
        for &id in graph.order() {
            graph.node(id).reads().for_each(|value| readers.entry(value).or_default().push(id));
        }
        // A slice leaves out a row of two at most.
        let wide = elements(graph, scores).div_ceil(2);
        let mut search = Search {
            rows,
            readers,
            wide,
            region: Region::default(),
            open: Vec::new(),
            inner: HashSet::new(),
            has_product: false,
        };
        search.demand(scores, axis)?;
        if !search.has_product {
            return Err(Whole::NoProduct.into());
        }
        loop {
            while let Some(value) = search.open.pop() {
                for reader in search.readers.get(&value).cloned().unwrap_or_default() {
                    search.follow(reader)?;
                }
            }
            let between = search.between();
            if between.is_empty() {
                break;
            }
            between.into_iter().try_for_each(|id| search.follow(id))?;
        }
        search.check()?;
        Ok(search.region)
    }
}

impl Search<'_, '_> {
    /// Takes in the producers of a value that is cut along an axis, as far back as a product.
    fn demand(&mut self, value: ValueId, axis: usize) -> Result<(), Fault> {
        let graph = self.rows.graph;
        let mut open = vec![(value, axis)];
        while let Some((value, axis)) = open.pop() {
            let Some(producer) = graph.producer(value).filter(|id| !self.region.cuts.contains_key(id)) else {
                continue;
            };
            let node = graph.node(producer);
            let at = node.results.iter().position(|&result| result == Some(value)).unwrap_or(0);
            let cut = match self.rows.backward(producer, at, axis) {
                Ok(cut) if is_function(node) => cut,
                Err(NoCut::Units(units)) => return Err(Fault::Units(units)),
                // Its rows are copied from the whole tensor.
                _ => continue,
            };
            self.has_product |= cut.is_product;
            if !cut.is_product {
                let wide =
                    node.operands.iter().zip(&cut.operands).filter_map(|(v, axis)| Some(((*v)?, (*axis)?)));
                open.extend(wide.filter(|&(value, _)| elements(graph, value) >= self.wide));
            }
            self.take(producer, cut, true);
        }
        Ok(())
    }

    /// Takes in a node that reads a cut value, and the producers of its other wide operands.
    fn follow(&mut self, id: NodeId) -> Result<(), Fault> {
        if self.region.cuts.contains_key(&id) {
            return Ok(());
        }
        let graph = self.rows.graph;
        let node = graph.node(id);
        if node.op.effects().shape_only {
            self.region.shapes.insert(id);
            return Ok(());
        }
        let axis = |value: &Option<ValueId>| value.and_then(|value| self.region.axes.get(&value)).copied();
        let known: Vec<Axis> = node.operands.iter().map(axis).collect();
        if known.iter().all(Option::is_none) {
            return Err(Whole::Sum(node.name.clone()).into());
        }
        let cut = match self.rows.forward(id, &known) {
            Ok(cut) if is_function(node) => cut,
            Err(NoCut::Units(units)) => return Err(Fault::Units(units)),
            _ => return Err(Whole::Mixes(node.name.clone(), node.op.clone()).into()),
        };
        let operands: Vec<(ValueId, usize)> =
            node.operands.iter().zip(&cut.operands).filter_map(|(v, axis)| Some(((*v)?, (*axis)?))).collect();
        let is_product = cut.is_product;
        self.take(id, cut, !is_product);
        for (value, axis) in operands {
            if !is_product && elements(graph, value) >= self.wide {
                self.demand(value, axis)?;
            }
        }
        Ok(())
    }

    fn take(&mut self, id: NodeId, cut: Cut, extends: bool) {
        let graph = self.rows.graph;
        for (result, axis) in graph.node(id).results.iter().zip(&cut.results) {
            if let (Some(value), Some(axis)) = (*result, *axis) {
                self.region.axes.insert(value, axis);
                if extends && elements(graph, value) >= self.wide {
                    self.open.push(value);
                    self.inner.insert(value);
                }
            }
        }
        self.region.cuts.insert(id, cut);
    }

    /// Nodes outside the region that depend on it and on which it depends.
    fn between(&self) -> Vec<NodeId> {
        let graph = self.rows.graph;
        let is_in = |id: &NodeId| self.region.cuts.contains_key(id);
        let index = |id: NodeId| id.as_u32() as usize;
        let mut below = vec![false; graph.node_capacity()];
        for &id in graph.order().iter().filter(|id| !is_in(id) && !self.region.shapes.contains(id)) {
            below[index(id)] = graph.predecessors(id).any(|before| is_in(&before) || below[index(before)]);
        }
        let above = above(graph, &self.region.cuts);
        graph
            .order()
            .iter()
            .copied()
            .filter(|&id| !is_in(&id) && below[index(id)] && above[index(id)])
            .collect()
    }

    /// Whether all nodes of the region agree on the axes of their values, and everything else can do without whole ones.
    fn check(&self) -> Result<(), Fault> {
        let graph = self.rows.graph;
        let captured = captured(graph);
        for &id in &self.region.shapes {
            let node = graph.node(id);
            if node
                .defines()
                .any(|value| self.rows.constants.get(value).is_none() || captured.contains(&value))
            {
                return Err(Whole::Mixes(node.name.clone(), node.op.clone()).into());
            }
        }
        for (&id, cut) in &self.region.cuts {
            let node = graph.node(id);
            for (index, (operand, axis)) in node.operands.iter().zip(&cut.operands).enumerate() {
                let Some(value) = operand.filter(|_| cut.shape != Some(index)) else { continue };
                let by_region = graph.producer(value).is_some_and(|id| self.region.cuts.contains_key(&id));
                if by_region && !self.region.axes.contains_key(&value) {
                    return Err(Whole::Sum(node.name.clone()).into());
                }
                if by_region && self.region.axes.get(&value) != axis.as_ref() {
                    return Err(Whole::Mixes(node.name.clone(), node.op.clone()).into());
                }
            }
            for value in node.defines() {
                let is_inner = self.inner.contains(&value);
                if captured.contains(&value) || is_inner && graph.outputs.contains(&value) {
                    return Err(Whole::Kept(graph.value(value).name.clone()).into());
                }
            }
        }
        Ok(())
    }
}

/// For each node, whether a node of the region depends on it.
fn above(graph: &Graph, region: &BTreeMap<NodeId, Cut>) -> Vec<bool> {
    let mut above = vec![false; graph.node_capacity()];
    for &id in graph.order().iter().rev() {
        if above[id.as_u32() as usize] || region.contains_key(&id) {
            graph.predecessors(id).for_each(|before| above[before.as_u32() as usize] = true);
        }
    }
    above
}

impl Region {
    /// Replaces the nodes by those of chunks of `each` of `units` parts; returns the number of sums over rows.
    fn write(&self, graph: &mut Graph, known: &Constants, units: u64, each: u64) -> usize {
        let order = graph.order().to_vec();
        let above = above(graph, &self.cuts);
        let is_in = |id: &NodeId| self.cuts.contains_key(id);
        let members: Vec<NodeId> = order.iter().copied().filter(is_in).collect();
        let outside = order.iter().filter(|id| !is_in(id) && !self.shapes.contains(id));
        let mut needed: HashSet<ValueId> = outside.flat_map(|&id| graph.node(id).reads()).collect();
        needed.extend(&graph.outputs);
        let mut writer = Writer::new(graph);
        let mut instead: HashMap<ValueId, ValueId> = HashMap::new();
        // Constants in place of the nodes that read extents alone.
        let mut constants: HashMap<NodeId, NodeId> = HashMap::new();
        for &id in &self.shapes {
            let result = writer.graph.node(id).results.first().copied().flatten();
            let Some((result, data)) = result.and_then(|value| Some((value, known.get(value)?))) else {
                continue;
            };
            let Some(ty) = tensor(writer.graph, result).cloned() else { continue };
            let name = writer.graph.node(id).name.to_string();
            let new = writer.literal(ty, data.clone(), &name);
            writer.replace(result, new);
            instead.insert(result, new);
            constants.extend(writer.made.last().map(|&made| (id, made)));
        }
        let extents = std::mem::take(&mut writer.made);
        let mut clones: HashMap<NodeId, Vec<NodeId>> = HashMap::new();
        let mut parts: BTreeMap<ValueId, Vec<ValueId>> = BTreeMap::new();
        let mut sums: BTreeMap<ValueId, ValueId> = BTreeMap::new();
        let mut start = 0;
        while start < units {
            let mut chunk = Chunk {
                region: self,
                range: [start, units.min(start.saturating_add(each)), units],
                here: BTreeMap::new(),
                slices: BTreeMap::new(),
            };
            for &id in &members {
                let made = chunk.add(&mut writer, id, &clones, &mut sums);
                clones.entry(id).or_default().push(made);
            }
            for (old, new) in chunk.here {
                if needed.contains(&old) {
                    parts.entry(old).or_default().push(new);
                }
            }
            start = chunk.range[1];
        }
        for (&old, parts) in &parts {
            let Some(ty) = tensor(writer.graph, old).cloned() else { continue };
            let name = writer.graph.value(old).name.clone();
            let axis = vec![("axis".into(), (self.axes[&old] as i64).into())];
            let new = writer.add("Concat", axis, parts, ty, &name);
            writer.replace(old, new);
            instead.insert(old, new);
        }
        for (&old, &sum) in &sums {
            let element = tensor(writer.graph, old).map_or(ElementType::Float, |ty| ty.element);
            let name = writer.graph.value(old).name.clone();
            let is_short = tensor(writer.graph, sum).is_some_and(|ty| ty.element != element);
            let new = if is_short { writer.cast(sum, element, &name) } else { sum };
            writer.replace(old, new);
            instead.insert(old, new);
        }
        let made = writer.made;
        let first = order.iter().position(is_in).unwrap_or(order.len());
        let stays = |id: &NodeId| !is_in(id) && !self.shapes.contains(id);
        let (head, tail) = order.split_at(first);
        let (hoisted, tail): (Vec<NodeId>, Vec<NodeId>) =
            tail.iter().copied().filter(stays).partition(|id| above[id.as_u32() as usize]);
        let outside: Vec<NodeId> = head.iter().copied().filter(stays).chain(hoisted).collect();
        for &id in outside.iter().chain(&tail) {
            for before in graph.node(id).after.clone() {
                if let Some(new) = clones.get(&before) {
                    graph.redirect_after(id, before, new);
                } else if let Some(&new) = constants.get(&before) {
                    graph.redirect_after(id, before, &[new]);
                }
            }
        }
        graph.set_order(extents.into_iter().chain(outside).chain(made).chain(tail).collect());
        redirect(graph, &instead);
        order_readers(graph);
        sums.len()
    }
}

/// One chunk while it is written.
struct Chunk<'r> {
    region: &'r Region,
    /// The first part, the part behind the last, and the number of parts of all rows.
    range: [u64; 3],
    /// The values of the chunk, by those of all rows.
    here: BTreeMap<ValueId, ValueId>,
    /// Rows of values from outside the region, by axis.
    slices: BTreeMap<(ValueId, usize), ValueId>,
}

impl Chunk<'_> {
    /// The type of the chunk's rows.
    fn ty(&self, ty: &TensorType, axis: usize) -> TensorType {
        let [start, end, units] = self.range;
        let mut ty = ty.clone();
        ty.dims[axis] = ty.dims[axis] / units * (end - start);
        ty
    }

    /// The chunk's rows of a value.
    fn rows(&mut self, writer: &mut Writer<'_>, value: ValueId, axis: usize) -> ValueId {
        if let Some(&here) = self.here.get(&value).or_else(|| self.slices.get(&(value, axis))) {
            return here;
        }
        let Some(whole) = tensor(writer.graph, value).cloned() else { return value };
        let [start, end, units] = self.range;
        let unit = whole.dims[axis] / units;
        let ends = [start * unit, end * unit, axis as u64].map(|at| writer.list(&[at as i64]));
        let base = format!("{}_rows", writer.graph.value(value).name);
        let slice =
            writer.add("Slice", Vec::new(), &[&[value], &ends[..]].concat(), self.ty(&whole, axis), &base);
        self.slices.insert((value, axis), slice);
        slice
    }

    /// Adds the node for this chunk, and the sum with the chunks before if it sums over rows. Returns the last node that was added.
    fn add(
        &mut self,
        writer: &mut Writer<'_>,
        id: NodeId,
        clones: &HashMap<NodeId, Vec<NodeId>>,
        sums: &mut BTreeMap<ValueId, ValueId>,
    ) -> NodeId {
        let cut = &self.region.cuts[&id];
        let mut node = writer.graph.node(id).clone();
        for (index, axis) in cut.operands.iter().enumerate() {
            if let (Some(value), Some(axis)) = (node.operands[index], *axis) {
                node.operands[index] = Some(self.rows(writer, value, axis));
            }
        }
        let results = std::mem::take(&mut node.results);
        if let (Some(at), Some(Some(result)), Some(Some(axis))) =
            (cut.shape, results.first(), cut.results.first())
        {
            let whole = tensor(writer.graph, *result).cloned();
            let dims = whole.map(|ty| self.ty(&ty, *axis).dims).unwrap_or_default();
            let dims: Vec<i64> = dims.into_iter().map(|dim| dim as i64).collect();
            node.operands[at] = Some(writer.list(&dims));
        }
        node.name = writer.graph.fresh_node_name(&format!("{}_rows", node.name));
        // Nodes of the region wait for those of their own chunk.
        for before in node.after.iter_mut() {
            *before = clones.get(before).and_then(|clones| clones.last()).copied().unwrap_or(*before);
        }
        (node.source, node.seed) = (None, None);
        let sum = results.first().copied().flatten().filter(|_| cut.results.iter().all(Option::is_none));
        let before = sum.and_then(|sum| sums.get(&sum)).copied();
        let is_gemm = cut.is_product && self.adds_to_gemm(writer.graph, &node);
        if let (Some(before), true) = (before, is_gemm) {
            // The product begins with the sum of the chunks before, and adds to it in the order of rows.
            node.op = Op::new(ONNX, "Gemm");
            node.attributes.retain(|(name, _)| ["alpha", "transA", "transB"].contains(&&**name));
            node.operands.truncate(2);
            node.operands.push(Some(before));
        }
        let mut types = Vec::with_capacity(results.len());
        for (result, axis) in results.iter().zip(&cut.results) {
            let of = |value: ValueId| {
                let whole = tensor(writer.graph, value)?;
                let ty = axis.map_or_else(|| whole.clone(), |axis| self.ty(whole, axis));
                let name = writer.graph.fresh_value_name(&format!("{}_rows", writer.graph.value(value).name));
                Some((name, Type::Tensor(ty), Place::Device))
            };
            types.push(result.and_then(of));
        }
        let made = writer.graph.add_node(node, types);
        writer.made.push(made);
        let new: Vec<Option<ValueId>> = writer.graph.node(made).results.to_vec();
        for ((old, new), axis) in results.iter().zip(new).zip(&cut.results) {
            let (Some(old), Some(mut new)) = (*old, new) else { continue };
            if axis.is_some() {
                self.here.insert(old, new);
                continue;
            }
            if !is_gemm {
                let Some(ty) = tensor(writer.graph, new).cloned() else { continue };
                let base = format!("{}_sum", writer.graph.value(old).name);
                let is_short = matches!(ty.element, ElementType::Float16 | ElementType::Bfloat16);
                if is_short {
                    new = writer.cast(new, ElementType::Float, &base);
                }
                if let Some(before) = before {
                    let element = if is_short { ElementType::Float } else { ty.element };
                    let ty = TensorType::new(element, ty.dims);
                    new = writer.add("Add", Vec::new(), &[before, new], ty, &base);
                }
            }
            sums.insert(old, new);
        }
        writer.made.last().copied().unwrap_or(made)
    }

    /// Whether the node is a product of two matrices of `float`, to which `Gemm` can add.
    fn adds_to_gemm(&self, graph: &Graph, node: &Node) -> bool {
        node.operands.iter().take(2).flatten().all(|&value| {
            tensor(graph, value).is_some_and(|ty| ty.dims.len() == 2 && ty.element == ElementType::Float)
        })
    }
}

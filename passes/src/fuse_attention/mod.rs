//! Puts attention that is written in products and a softmax together again.

mod find;
mod known;

use std::collections::{BTreeMap, BTreeSet};

use foldhash::{HashMap, HashMapExt};
use lmsc_ir::domains::ONNX;
use lmsc_ir::{
    Attr, Data, ElementType, Graph, LMSC_DOMAIN, Name, Node, NodeId, Op, Place, TensorType, Type, ValueId,
    words,
};

use crate::clean_up::{captured, is_function, not_older, not_planned};
use crate::{Outcome, Pass, PassCx, PassError, PassKind};
use find::{Finder, Found, Left, Made, Side};

/// The first version of ONNX whose softmax is along one axis.
const OPSET: i64 = 13;

/// Replaces products with a softmax between them, and their gradients, by `ai.lmsc.Attention` and `ai.lmsc.AttentionGrad`, which
/// keep no scores.
///
/// Attention is found by its operators and constants: `softmax(scale · Q Kᵀ + mask) V` with factors and masks in any order that computes it,
/// and every node that reads scores, weights or their gradients. It is left as it is where any other node reads one of them, and
/// where a row may have no key that counts, whose weights the operator defines otherwise.
pub(crate) struct FuseAttention;

impl Pass for FuseAttention {
    fn name(&self) -> &'static str {
        "fuse-attention"
    }

    fn summary(&self) -> &'static str {
        "attention that is written in products and a softmax as one operator, its gradient as another; sums may round differently"
    }

    fn kind(&self) -> PassKind {
        PassKind::Operators
    }

    fn run(&self, graph: &mut Graph, _cx: &PassCx) -> Result<Outcome, PassError> {
        not_older(self.name(), graph, OPSET)?;
        not_planned(self.name(), graph)?;
        let mut finder = Finder::of(graph);
        let (mut all, mut taken, mut left) = (Vec::new(), BTreeSet::new(), BTreeMap::<Left, usize>::new());
        for &id in graph.order() {
            if !finder.is_softmax(id) {
                continue;
            }
            match finder.find(id) {
                Ok(found) if found.nodes.is_disjoint(&taken) => {
                    taken.extend(found.nodes.iter().copied());
                    all.push(found);
                }
                Ok(_) => *left.entry(Left::Readers).or_default() += 1,
                Err(why) => *left.entry(why).or_default() += 1,
            }
        }
        let mut remarks: Vec<String> = Vec::new();
        if !all.is_empty() {
            let trained = all.iter().filter(|found| found.backward.is_some()).count();
            remarks.push(format!("fused {}, {trained} with gradients", words::count(all.len(), "attention")));
        }
        remarks.extend(left.iter().map(|(why, &count)| format!("left {}: {why}", softmaxes(count))));
        let changed = !all.is_empty();
        if changed {
            rewrite(graph, &all);
        }
        Ok(Outcome { changed, remarks, ..Outcome::default() })
    }
}

fn softmaxes(count: usize) -> String {
    if count == 1 { "1 softmax".to_owned() } else { format!("{count} softmaxes") }
}

/// Adds the operators of one attention.
struct Writer<'g> {
    graph: &'g mut Graph,
    made: Vec<NodeId>,
    instead: &'g mut HashMap<ValueId, ValueId>,
}

impl Writer<'_> {
    fn dims(&self, value: ValueId) -> Vec<u64> {
        self.graph.value(value).ty.as_tensor().map(|ty| ty.dims.clone()).unwrap_or_default()
    }

    fn many(
        &mut self,
        op: Op,
        attributes: Vec<(Name, Attr)>,
        operands: &[Option<ValueId>],
        results: Vec<Option<TensorType>>,
        base: &str,
    ) -> Vec<Option<ValueId>> {
        let mut node = Node::new(self.graph.fresh_node_name(base), op);
        node.attributes = attributes;
        node.operands = operands.iter().copied().collect();
        let mut types = Vec::with_capacity(results.len());
        for (index, ty) in results.into_iter().enumerate() {
            let name = self.graph.fresh_value_name(&format!("{base}_{index}"));
            types.push(ty.map(|ty| (name, Type::Tensor(ty), Place::Device)));
        }
        let id = self.graph.add_node(node, types);
        self.made.push(id);
        self.graph.node(id).results.to_vec()
    }

    fn one(
        &mut self,
        op: &str,
        attributes: Vec<(Name, Attr)>,
        operands: &[ValueId],
        ty: TensorType,
        base: &str,
    ) -> ValueId {
        let operands: Vec<Option<ValueId>> = operands.iter().copied().map(Some).collect();
        self.many(Op::new(ONNX, op), attributes, &operands, vec![Some(ty)], base)[0]
            .expect("it has one result")
    }

    fn constant(&mut self, ty: TensorType, bytes: Vec<u8>, base: &str) -> ValueId {
        let value = Attr::Tensor(ty.clone(), Data::Inline(bytes.into()));
        self.one("Constant", vec![("value".into(), value)], &[], ty, base)
    }

    fn reshaped(&mut self, value: ValueId, dims: &[u64], base: &str) -> ValueId {
        let ty = self.graph.value(value).ty.as_tensor().map_or(ElementType::Float, |ty| ty.element);
        if self.dims(value) == dims {
            return value;
        }
        let bytes = dims.iter().flat_map(|&dim| (dim as i64).to_le_bytes()).collect();
        let shape = TensorType::new(ElementType::Int64, [dims.len() as u64]);
        let shape = self.constant(shape, bytes, &format!("{base}_shape"));
        self.one("Reshape", Vec::new(), &[value, shape], TensorType::new(ty, dims), base)
    }

    /// The tensor with its last two axes exchanged.
    fn turned(&mut self, value: ValueId, base: &str) -> ValueId {
        let mut dims = self.dims(value);
        let rank = dims.len();
        let mut order: Vec<i64> = (0..rank as i64).collect();
        dims.swap(rank - 2, rank - 1);
        order.swap(rank - 2, rank - 1);
        let ty = TensorType::new(ElementType::Float, dims);
        self.one("Transpose", vec![("perm".into(), order.into())], &[value], ty, base)
    }

    /// An operand of the operator.
    fn operand(&mut self, side: Side, dims: [u64; 4], base: &str) -> ValueId {
        let value = if side.is_turned { self.turned(side.value, base) } else { side.value };
        self.reshaped(value, &dims, base)
    }

    /// Replaces the result of a product by that of the operator.
    fn give(&mut self, made: Made, result: ValueId) {
        let old = made.result.value;
        let (name, dims) = (self.graph.value(old).name.to_string(), self.dims(old));
        let mut new = result;
        if made.factor != 1.0 {
            let ty = TensorType::new(ElementType::Float, []);
            let factor = self.constant(ty, made.factor.to_le_bytes().to_vec(), &format!("{name}_factor"));
            let ty = TensorType::new(ElementType::Float, self.dims(new));
            new = self.one("Mul", Vec::new(), &[new, factor], ty, &name);
        }
        if made.result.is_turned {
            new = self.turned(new, &name);
        }
        new = self.reshaped(new, &dims, &name);
        let was = self.graph.fresh_value_name(&format!("{name}_was"));
        self.graph.rename(old, was);
        self.graph.rename(new, name);
        self.graph.outputs.iter_mut().filter(|output| **output == old).for_each(|output| *output = new);
        self.instead.insert(old, new);
    }

    /// The mask with axes of samples and heads.
    fn mask(&mut self, found: &Found, base: &str) -> Option<ValueId> {
        let mut mask = match found.mask.counts {
            None => None,
            Some((counts, true)) => Some(counts),
            Some((hidden, false)) => {
                let ty = TensorType::new(ElementType::Bool, self.dims(hidden));
                Some(self.one("Not", Vec::new(), &[hidden], ty, &format!("{base}_counts")))
            }
        };
        for &added in &found.mask.added {
            mask = Some(match mask {
                None => added,
                Some(before) => {
                    let dims = find::broadcast(&self.dims(before), &self.dims(added));
                    let ty = TensorType::new(ElementType::Float, dims);
                    self.one("Add", Vec::new(), &[before, added], ty, &format!("{base}_mask"))
                }
            });
        }
        let mask = mask?;
        let dims = found.mask_dims(&self.dims(mask))?;
        Some(self.reshaped(mask, &dims, &format!("{base}_mask")))
    }
}

/// Replaces the nodes of each attention.
fn rewrite(graph: &mut Graph, all: &[Found]) {
    graph.opsets.entry(LMSC_DOMAIN.to_owned()).or_insert(1);
    let order = graph.order().to_vec();
    let ticks = graph.ticks();
    let was_read = read(graph, &order);
    let mut before: BTreeMap<NodeId, Vec<NodeId>> = BTreeMap::new();
    let mut instead: HashMap<ValueId, ValueId> = HashMap::new();
    for found in all {
        let [batch, heads, rows, keys, width, value_width] = found.extents;
        let base = format!("{}_attention", graph.node(found.y.node).name);
        let mut writer = Writer { graph: &mut *graph, made: Vec::new(), instead: &mut instead };
        let q = writer.operand(found.q, [batch, heads, rows, width], &format!("{base}_q"));
        let k = writer.operand(found.k, [batch, heads, keys, width], &format!("{base}_k"));
        let v = writer.operand(found.v, [batch, heads, keys, value_width], &format!("{base}_v"));
        let mask = writer.mask(found, &base);
        let float = |dims: &[u64]| Some(TensorType::new(ElementType::Float, dims));
        let mut types = vec![float(&[batch, heads, rows, value_width])];
        if found.backward.is_some() {
            types.extend([float(&[batch, heads, rows]), float(&[batch, heads, rows])]);
        }
        let attributes = || {
            let mut attributes: Vec<(Name, Attr)> = vec![("scale".into(), found.scale.into())];
            if found.mask.is_causal {
                attributes.push(("is_causal".into(), 1.into()));
            }
            attributes
        };
        let operands: Vec<Option<ValueId>> = [q, k, v].map(Some).into_iter().chain(mask.map(Some)).collect();
        let op = Op::new(LMSC_DOMAIN, "Attention");
        let results = writer.many(op, attributes(), &operands, types, &base);
        let y = results[0].expect("it has a result");
        writer.give(found.y, y);
        before.entry(found.y.node).or_default().extend(writer.made);
        let (Some(backward), [_, maxima, sums]) = (&found.backward, &results[..]) else { continue };
        let first = backward.readers.iter().min_by_key(|(id, _)| ticks[id.as_u32() as usize]).copied();
        let Some((first, dy)) = first else { continue };
        let base = format!("{base}_grad");
        let mut writer = Writer { graph: &mut *graph, made: Vec::new(), instead: &mut instead };
        let dy = writer.operand(dy, [batch, heads, rows, value_width], &format!("{base}_dy"));
        let operands: Vec<Option<ValueId>> = [Some(dy), Some(q), Some(k), Some(v), Some(y), *maxima, *sums]
            .into_iter()
            .chain(mask.map(Some))
            .collect();
        let types = vec![
            backward.dq.and_then(|_| float(&[batch, heads, rows, width])),
            backward.dk.and_then(|_| float(&[batch, heads, keys, width])),
            backward.dv.and_then(|_| float(&[batch, heads, keys, value_width])),
        ];
        let op = Op::new(LMSC_DOMAIN, "AttentionGrad");
        let results = writer.many(op, attributes(), &operands, types, &base);
        for (made, result) in [backward.dq, backward.dk, backward.dv].into_iter().zip(results) {
            if let (Some(made), Some(result)) = (made, result) {
                writer.give(made, result);
            }
        }
        before.entry(first).or_default().extend(writer.made);
    }
    let gone: BTreeSet<NodeId> = all.iter().flat_map(|found| found.nodes.iter().copied()).collect();
    let mut new = Vec::with_capacity(order.len());
    for id in order {
        new.extend(before.remove(&id).into_iter().flatten());
        if !gone.contains(&id) {
            new.push(id);
        }
    }
    for &id in &new {
        for index in 0..graph.node(id).operands.len() {
            let operand = graph.node(id).operands[index];
            if let Some(&value) = operand.and_then(|old| instead.get(&old)) {
                graph.set_operand(id, index, value);
            }
        }
    }
    remove_unread(graph, &mut new, &was_read);
    graph.set_order(new);
}

/// For each value, whether a node of the order or the caller reads it.
fn read(graph: &Graph, order: &[NodeId]) -> Vec<bool> {
    let mut read = vec![false; graph.value_capacity()];
    let values = order.iter().flat_map(|&id| graph.node(id).reads()).chain(graph.outputs.iter().copied());
    values.for_each(|value| read[value.as_u32() as usize] = true);
    read
}

/// Removes nodes, such as transpositions of values, whose results were read before and are not any more.
fn remove_unread(graph: &Graph, order: &mut Vec<NodeId>, was_read: &[bool]) {
    let captured = captured(graph);
    let awaited: BTreeSet<NodeId> =
        order.iter().flat_map(|&id| graph.node(id).after.iter().copied()).collect();
    let mut read = read(graph, &[]);
    let mut kept = vec![false; graph.node_capacity()];
    for &id in order.iter().rev() {
        let node = graph.node(id);
        let is_needed = |value: ValueId| {
            let index = value.as_u32() as usize;
            read[index] || captured.contains(&value) || !was_read.get(index).copied().unwrap_or(false)
        };
        if !is_function(node) || awaited.contains(&id) || node.defines().any(is_needed) {
            kept[id.as_u32() as usize] = true;
            node.reads().for_each(|value| read[value.as_u32() as usize] = true);
        }
    }
    order.retain(|id| kept[id.as_u32() as usize]);
}

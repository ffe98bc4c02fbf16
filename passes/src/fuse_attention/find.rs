//! Finds attention that is written in products and a softmax, forward and backward.

use std::collections::BTreeSet;
use std::fmt;

use foldhash::{HashMap, HashMapExt, HashSet};
use lmsc_ir::domains::{MS, ONNX};
use lmsc_ir::{Attr, ElementType, Graph, Node, NodeId, ValueId};

use super::known::Known;
use crate::clean_up::{captured, is_function};

/// Scores of keys that do not count are at most this: a score that is added to it is lost in rounding.
const NEVER: f32 = -1e30;

/// Why a softmax is left as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Left {
    /// Its operand is not a product of queries and keys, scaled and masked, or its result is not multiplied by values.
    Form,
    /// Its types or extents are none of the operator's.
    Types,
    /// A score, a weight or a gradient of one has a reader of another kind.
    Readers,
    /// A row may have no key that counts: its weights would be others.
    Rows,
    /// The backward phase is not that of attention.
    Gradient,
    /// Nodes with effects or control edges.
    Edges,
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Left::Form => "not a softmax of products, scaled and masked, that is multiplied",
            Left::Types => "types or extents that the operator does not have",
            Left::Readers => "scores or weights have other readers",
            Left::Rows => "a row may have no key that counts",
            Left::Gradient => "gradients of another form",
            Left::Edges => "nodes with control edges or effects",
        })
    }
}

/// A matrix in the last two axes of a tensor, or its transpose.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side {
    pub(super) value: ValueId,
    pub(super) is_turned: bool,
}

/// A product that makes a result: `result = factor · …`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Made {
    pub(super) node: NodeId,
    pub(super) result: Side,
    /// Relative to the result of the operator.
    pub(super) factor: f32,
}

/// The keys that count.
#[derive(Clone, Debug, Default)]
pub(super) struct Mask {
    /// Query `i` sees the keys up to `i`.
    pub(super) is_causal: bool,
    /// Added to scores.
    pub(super) added: Vec<ValueId>,
    /// Truth values of the keys that count, or of those that do not.
    pub(super) counts: Option<(ValueId, bool)>,
}

/// An attention.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) q: Side,
    pub(super) k: Side,
    pub(super) v: Side,
    pub(super) scale: f32,
    pub(super) mask: Mask,
    /// Samples, heads, queries of a head, keys of a head, elements of a query, elements of a value.
    pub(super) extents: [u64; 6],
    /// Number of axes of the scores.
    rank: usize,
    pub(super) y: Made,
    pub(super) backward: Option<Backward>,
    /// The nodes that the operators replace.
    pub(super) nodes: BTreeSet<NodeId>,
}

/// The gradients of an attention.
#[derive(Clone, Debug)]
pub(super) struct Backward {
    pub(super) dq: Option<Made>,
    pub(super) dk: Option<Made>,
    pub(super) dv: Option<Made>,
    /// The products that read the result's gradient, each with it as the product reads it.
    pub(super) readers: Vec<(NodeId, Side)>,
}

/// A product of matrices with a given operand: `result = alpha · given · other`, each perhaps turned.
struct Product {
    is_given_turned: bool,
    other: Side,
    result: Side,
    alpha: f32,
}

/// A tensor without the transpositions and reshapes that made it: two with equal ones are the same matrix, or one is the other, turned.
#[derive(PartialEq, Eq)]
struct Origin {
    value: ValueId,
    /// The order of the axes, without that of the last two.
    axes: Vec<usize>,
}

pub(super) struct Finder<'g> {
    graph: &'g Graph,
    pub(super) known: Known<'g>,
    readers: HashMap<ValueId, Vec<NodeId>>,
    captured: HashSet<ValueId>,
    outputs: HashSet<ValueId>,
    /// Nodes that others wait for.
    awaited: HashSet<NodeId>,
    ticks: Vec<u32>,
}

fn close(a: f32, b: f32) -> bool {
    (a - b).abs() <= 1e-6 * b.abs()
}

impl<'g> Finder<'g> {
    pub(super) fn of(graph: &'g Graph) -> Finder<'g> {
        let mut readers: HashMap<ValueId, Vec<NodeId>> = HashMap::new();
        for &id in graph.order() {
            for value in graph.node(id).reads() {
                let list = readers.entry(value).or_default();
                if list.last() != Some(&id) {
                    list.push(id);
                }
            }
        }
        Finder {
            graph,
            known: Known::of(graph),
            readers,
            ticks: graph.ticks(),
            captured: captured(graph),
            outputs: graph.outputs.iter().copied().collect(),
            awaited: graph.order().iter().flat_map(|&id| graph.node(id).after.iter().copied()).collect(),
        }
    }

    fn dims(&self, value: ValueId) -> &'g [u64] {
        self.graph.value(value).ty.as_tensor().map_or(&[], |ty| &ty.dims)
    }

    fn readers(&self, value: ValueId) -> &[NodeId] {
        self.readers.get(&value).map_or(&[], |list| list)
    }

    fn operand(&self, id: NodeId, at: usize) -> Option<ValueId> {
        self.graph.node(id).operands.get(at).copied().flatten()
    }

    fn result(&self, id: NodeId) -> Option<ValueId> {
        match self.graph.node(id).results[..] {
            [result] => result,
            _ => None,
        }
    }

    /// Whether the node is a softmax along the last axis.
    pub(super) fn is_softmax(&self, id: NodeId) -> bool {
        let node = self.graph.node(id);
        node.op.key() == (ONNX, "Softmax") && self.is_last_axis(node)
    }

    fn is_last_axis(&self, node: &Node) -> bool {
        let rank = node.operands.first().copied().flatten().map_or(0, |value| self.dims(value).len());
        match self.graph.attribute(node, "axis") {
            Some(&Attr::Int(axis)) => rank >= 2 && (axis == -1 || axis == rank as i64 - 1),
            _ => false,
        }
    }

    /// The operand of a node that moves or names a tensor without changing its matrices.
    fn renamed(&self, id: NodeId) -> Option<ValueId> {
        let node = self.graph.node(id);
        let (from, to) = (self.operand(id, 0)?, self.result(id)?);
        match node.op.key() {
            (ONNX, "Identity") => Some(from),
            (ONNX, "Reshape" | "Squeeze" | "Unsqueeze" | "Flatten") => {
                let last = |value: ValueId| self.dims(value).rchunks(2).next().filter(|last| last.len() == 2);
                (last(from)? == last(to)?).then_some(from)
            }
            _ => None,
        }
    }

    /// The operand of a transposition, if it exchanges the last two axes alone.
    fn turned(&self, id: NodeId) -> Option<ValueId> {
        let order = self.order(id)?;
        let rank = order.len();
        let is = order.iter().enumerate().all(|(i, &axis)| {
            axis == if i + 1 == rank {
                i - 1
            } else if i + 2 == rank {
                i + 1
            } else {
                i
            }
        });
        (is && rank >= 2).then(|| self.operand(id, 0)).flatten()
    }

    /// The order of axes of a transposition.
    fn order(&self, id: NodeId) -> Option<Vec<usize>> {
        let node = self.graph.node(id);
        if node.op.key() != (ONNX, "Transpose") {
            return None;
        }
        let rank = self.dims(self.operand(id, 0)?).len();
        match node.attribute("perm") {
            None => Some((0..rank).rev().collect()),
            Some(Attr::Ints(order)) if order.len() == rank => {
                order.iter().map(|&axis| usize::try_from(axis).ok().filter(|&axis| axis < rank)).collect()
            }
            Some(_) => None,
        }
    }

    /// The origin of a matrix, and whether it is turned.
    fn origin(&self, side: Side) -> (Origin, bool) {
        let (mut value, mut is_turned) = (side.value, side.is_turned);
        // Reshapes of the leading axes and turns, then any transpositions.
        while let Some(producer) = self.graph.producer(value) {
            if let Some(from) = self.renamed(producer) {
                value = from;
            } else if let Some(from) = self.turned(producer) {
                (value, is_turned) = (from, !is_turned);
            } else {
                break;
            }
        }
        let mut axes: Vec<usize> = (0..self.dims(value).len()).collect();
        while let Some(producer) = self.graph.producer(value) {
            let Some(order) = self.order(producer) else { break };
            axes = axes.iter().map(|&axis| order[axis]).collect();
            value = self.operand(producer, 0).unwrap_or(value);
        }
        let rank = axes.len();
        if rank >= 2 && axes[rank - 2] > axes[rank - 1] {
            axes.swap(rank - 2, rank - 1);
            is_turned = !is_turned;
        }
        (Origin { value, axes }, is_turned)
    }

    fn is_same(&self, a: Side, b: Side) -> bool {
        self.origin(a) == self.origin(b)
    }

    /// The node as a product with `given`.
    fn product(&self, id: NodeId, given: ValueId) -> Option<Product> {
        let node = self.graph.node(id);
        let flag = |name: &str| matches!(self.graph.attribute(node, name), Some(Attr::Int(1)));
        let (alpha, turns) = match node.op.key() {
            (ONNX, "MatMul") => (1.0, [false; 2]),
            (MS, "FusedMatMul") if !flag("transBatchA") && !flag("transBatchB") => {
                let Some(Attr::Float(alpha)) = self.graph.attribute(node, "alpha") else { return None };
                (alpha.0, [flag("transA"), flag("transB")])
            }
            _ => return None,
        };
        let (a, b, result) = (self.operand(id, 0)?, self.operand(id, 1)?, self.result(id)?);
        if self.dims(a).len() < 2 || self.dims(b).len() < 2 || a == b {
            return None;
        }
        let side = |value, is_turned| Side { value, is_turned };
        Some(if a == given {
            Product {
                is_given_turned: turns[0],
                other: side(b, turns[1]),
                result: side(result, false),
                alpha,
            }
        } else if b == given {
            // The transpose of the product is that of the transposes, in the other order.
            Product {
                is_given_turned: !turns[1],
                other: side(a, !turns[0]),
                result: side(result, true),
                alpha,
            }
        } else {
            return None;
        })
    }

    /// The tensor times a number, if the node multiplies or divides by one.
    fn scaled(&mut self, id: NodeId) -> Option<(ValueId, f32)> {
        let (a, b, result) = (self.operand(id, 0)?, self.operand(id, 1)?, self.result(id)?);
        let dims = self.dims(result);
        let (of_a, of_b) = (self.dims(a) == dims, self.dims(b) == dims);
        match self.graph.node(id).op.key() {
            (ONNX, "Mul") => {
                let by_b = if of_a { self.known.number(b).map(|by| (a, by)) } else { None };
                by_b.or_else(|| of_b.then(|| self.known.number(a)).flatten().map(|by| (b, by)))
            }
            (ONNX, "Div") if of_a => Some((a, 1.0 / self.known.number(b)?)),
            _ => None,
        }
    }

    /// The attention of the softmax.
    pub(super) fn find(&mut self, softmax: NodeId) -> Result<Found, Left> {
        let (scores, weights) =
            (self.operand(softmax, 0).ok_or(Left::Form)?, self.result(softmax).ok_or(Left::Form)?);
        let mut nodes = BTreeSet::from([softmax]);
        let (q, k, scale, mask) = self.scores(scores, &mut nodes)?;
        let ty = self.graph.value(scores).ty.as_tensor().ok_or(Left::Types)?;
        let is_float = |value: ValueId| {
            self.graph.value(value).ty.as_tensor().is_some_and(|ty| ty.element == ElementType::Float)
        };
        if !is_float(scores) || ty.dims.contains(&0) || !scale.is_finite() || scale == 0.0 {
            return Err(Left::Types);
        }
        let (aliases, readers) = self.spread(weights, &mut nodes);
        let (mut y, mut v, mut dv) = (None, None, None);
        let mut rest = Vec::new();
        for (id, alias) in readers {
            let product = self.product(id, alias.value);
            let Some(product) = product else {
                rest.push(id);
                continue;
            };
            let made = Made { node: id, result: product.result, factor: product.alpha };
            let slot = if product.is_given_turned == alias.is_turned { &mut y } else { &mut dv };
            if slot.is_some() || product.alpha != 1.0 {
                return Err(Left::Form);
            }
            *slot = Some((made, product.other));
            if product.is_given_turned == alias.is_turned {
                v = Some(product.other);
            }
            nodes.insert(id);
        }
        let ((y, _), v) = (y.ok_or(Left::Form)?, v.ok_or(Left::Form)?);
        let backward = if rest.is_empty() && dv.is_none() {
            None
        } else {
            Some(self.backward(&aliases, rest, dv, v, [q, k], scale, &mask, &mut nodes)?)
        };
        let extents = self.extents(&ty.dims, [q, k, v])?;
        let readers = backward.iter().flat_map(|backward| &backward.readers);
        if readers
            .copied()
            .any(|(id, _)| self.ticks[id.as_u32() as usize] < self.ticks[y.node.as_u32() as usize])
        {
            return Err(Left::Gradient);
        }
        let mut found = Found { q, k, v, scale, mask, extents, rank: ty.dims.len(), y, backward, nodes };
        self.check(&found)?;
        found.mask = self.mask(&found)?;
        Ok(found)
    }

    /// The product of queries and keys behind scores, with the factor and the masks that were applied to it.
    fn scores(
        &mut self,
        scores: ValueId,
        nodes: &mut BTreeSet<NodeId>,
    ) -> Result<(Side, Side, f32, Mask), Left> {
        let (mut value, mut scale, mut mask, mut is_turned) = (scores, 1.0f32, Mask::default(), false);
        loop {
            let id = self.graph.producer(value).ok_or(Left::Form)?;
            let node = self.graph.node(id);
            nodes.insert(id);
            if let Some(from) = self.renamed(id) {
                value = from;
                continue;
            }
            if let Some(from) = self.turned(id) {
                (value, is_turned) = (from, !is_turned);
                continue;
            }
            if let Some((from, factor)) = self.scaled(id) {
                scale *= factor;
                value = from;
                continue;
            }
            let (a, b) = (self.operand(id, 0), self.operand(id, 1));
            match node.op.key() {
                // A factor behind a mask would scale the mask.
                (ONNX, "Add" | "Where")
                    if scale != 1.0 || is_turned || self.dims(value) != self.dims(scores) =>
                {
                    return Err(Left::Form);
                }
                (ONNX, "Add") => {
                    let (a, b) = (a.ok_or(Left::Form)?, b.ok_or(Left::Form)?);
                    let leads = |it: ValueId| self.dims(it) == self.dims(scores) && self.leads_to_product(it);
                    let (from, added) = if leads(a) { (a, b) } else { (b, a) };
                    if !leads(from) {
                        return Err(Left::Form);
                    }
                    mask.added.push(added);
                    value = from;
                }
                (ONNX, "Where") => {
                    let (counts, a, b) =
                        (a.ok_or(Left::Form)?, b.ok_or(Left::Form)?, self.operand(id, 2).ok_or(Left::Form)?);
                    let fill =
                        |known: &mut Known<'_>, it: ValueId| known.number(it).is_some_and(|x| x <= NEVER);
                    let (from, is_kept) = if fill(&mut self.known, b) {
                        (a, true)
                    } else if fill(&mut self.known, a) {
                        (b, false)
                    } else {
                        return Err(Left::Form);
                    };
                    if mask.counts.is_some() || self.dims(from) != self.dims(scores) {
                        return Err(Left::Form);
                    }
                    mask.counts = Some((counts, is_kept));
                    value = from;
                }
                _ => {
                    let given = if is_turned { b } else { a }.ok_or(Left::Form)?;
                    let product = self.product(id, given).ok_or(Left::Form)?;
                    let q = Side { value: given, is_turned: product.is_given_turned };
                    let k = Side { is_turned: !product.other.is_turned, ..product.other };
                    return Ok((q, k, scale * product.alpha, mask));
                }
            }
        }
    }

    /// Whether scores come from a product, through nodes that are taken apart here.
    fn leads_to_product(&self, value: ValueId) -> bool {
        let mut value = value;
        loop {
            let Some(id) = self.graph.producer(value) else { return false };
            let node = self.graph.node(id);
            let at = match node.op.key() {
                (ONNX, "MatMul") | (MS, "FusedMatMul") => return true,
                (ONNX, "Mul" | "Div" | "Add") => {
                    let whole = |at| self.operand(id, at).is_some_and(|it| self.dims(it) == self.dims(value));
                    usize::from(!whole(0) && whole(1))
                }
                (ONNX, "Where") => {
                    let whole = |at| self.operand(id, at).is_some_and(|it| self.dims(it) == self.dims(value));
                    if whole(1) { 1 } else { 2 }
                }
                _ if self.renamed(id).is_some() || self.turned(id).is_some() => 0,
                _ => return false,
            };
            match self.operand(id, at) {
                Some(from) => value = from,
                None => return false,
            }
        }
    }

    /// The names of a matrix, with those of its transpose, and the nodes that read them otherwise.
    fn spread(&self, value: ValueId, nodes: &mut BTreeSet<NodeId>) -> (Vec<Side>, Vec<(NodeId, Side)>) {
        let mut aliases = vec![Side { value, is_turned: false }];
        let mut readers = Vec::new();
        let mut next = 0;
        while let Some(&alias) = aliases.get(next) {
            next += 1;
            for &id in self.readers(alias.value) {
                let is_turned = if self.renamed(id) == Some(alias.value) {
                    alias.is_turned
                } else if self.turned(id) == Some(alias.value) {
                    !alias.is_turned
                } else {
                    readers.push((id, alias));
                    continue;
                };
                let Some(value) = self.result(id) else { continue };
                nodes.insert(id);
                aliases.push(Side { value, is_turned });
            }
        }
        (aliases, readers)
    }

    /// The gradients, from the nodes that read weights besides the products with values and with the result's gradient.
    #[expect(clippy::too_many_arguments, reason = "the parts of one attention")]
    fn backward(
        &mut self,
        weights: &[Side],
        rest: Vec<NodeId>,
        dv: Option<(Made, Side)>,
        v: Side,
        [q, k]: [Side; 2],
        scale: f32,
        mask: &Mask,
        nodes: &mut BTreeSet<NodeId>,
    ) -> Result<Backward, Left> {
        let mut backward = Backward { dq: None, dk: None, dv: dv.map(|(made, _)| made), readers: Vec::new() };
        backward.readers.extend(dv.map(|(made, dy)| (made.node, dy)));
        if rest.is_empty() {
            return Ok(backward);
        }
        let is_weights =
            |value: ValueId| weights.iter().any(|alias| alias.value == value && !alias.is_turned);
        let (slope, mut value) = self.softmax_gradient(&rest, &is_weights, nodes).ok_or(Left::Gradient)?;
        // The gradient of weights is a product of the result's gradient with values.
        let (mut from, mut is_turned) = (slope, false);
        let product = loop {
            let id = self.graph.producer(from).ok_or(Left::Gradient)?;
            nodes.insert(id);
            if let Some(operand) = self.renamed(id) {
                from = operand;
            } else if let Some(operand) = self.turned(id) {
                (from, is_turned) = (operand, !is_turned);
            } else {
                break id;
            }
        };
        let found = self
            .operand(product, usize::from(is_turned))
            .and_then(|it| Some((it, self.product(product, it)?)));
        let (given, found) = found.filter(|(_, it)| it.alpha == 1.0).ok_or(Left::Gradient)?;
        let dy = Side { value: given, is_turned: found.is_given_turned };
        let values = Side { is_turned: !found.other.is_turned, ..found.other };
        if !self.is_same(values, v) || dv.is_some_and(|(_, other)| !self.is_same(other, dy)) {
            return Err(Left::Gradient);
        }
        backward.readers.push((product, dy));
        // From the gradient of masked scores to that of the product.
        let mut factor = 1.0f32;
        let readers = loop {
            let (_, readers) = self.spread(value, &mut BTreeSet::new());
            let is_product = |(id, alias): &(NodeId, Side)| self.product(*id, alias.value).is_some();
            if readers.iter().all(is_product) {
                break self.spread(value, nodes).1;
            }
            let &[id] = self.readers(value) else { return Err(Left::Gradient) };
            nodes.insert(id);
            if let Some((_, by)) = self.scaled(id).filter(|(of, _)| *of == value) {
                (value, factor) = (self.result(id).ok_or(Left::Gradient)?, factor * by);
                continue;
            }
            if self.renamed(id).is_none() && !self.masks(id, value, mask) {
                return Err(Left::Gradient);
            }
            value = self.result(id).ok_or(Left::Gradient)?;
        };
        for (id, alias) in readers {
            let product = self.product(id, alias.value).ok_or(Left::Gradient)?;
            let is_turned = product.is_given_turned != alias.is_turned;
            let (slot, other) = if is_turned { (&mut backward.dk, q) } else { (&mut backward.dq, k) };
            let factor = factor * product.alpha / scale;
            let is_free = slot.is_none() && factor.is_finite();
            let made = Made {
                node: id,
                result: product.result,
                factor: if close(factor, 1.0) { 1.0 } else { factor },
            };
            *slot = Some(made);
            if !is_free || !self.is_same(product.other, other) {
                return Err(Left::Gradient);
            }
            nodes.insert(id);
        }
        Ok(backward)
    }

    /// The gradient of weights, and the gradient of masked scores that these nodes compute of it.
    fn softmax_gradient(
        &self,
        rest: &[NodeId],
        is_weights: &dyn Fn(ValueId) -> bool,
        nodes: &mut BTreeSet<NodeId>,
    ) -> Option<(ValueId, ValueId)> {
        let key = |id: NodeId| self.graph.node(id).op.key();
        // The operand that is not the given one.
        let other = |id: NodeId, is: &dyn Fn(ValueId) -> bool| {
            let (a, b) = (self.operand(id, 0)?, self.operand(id, 1)?);
            match (is(a), is(b)) {
                (true, false) => Some(b),
                (false, true) => Some(a),
                _ => None,
            }
        };
        let row_sum = |value: ValueId| {
            let id = self.graph.producer(value).filter(|&id| key(id) == (ONNX, "ReduceSum"))?;
            let node = self.graph.node(id);
            let keeps = matches!(self.graph.attribute(node, "keepdims"), Some(Attr::Int(1)));
            let of = self.operand(id, 0)?;
            let rank = self.dims(of).len();
            let mut expected = self.dims(of).to_vec();
            *expected.last_mut()? = 1;
            let is = keeps && rank >= 2 && self.dims(value) == expected;
            is.then_some((id, of))
        };
        match *rest {
            [id] if key(id) == (MS, "SoftmaxGrad_13") => {
                let node = self.graph.node(id);
                nodes.insert(id);
                let slope = self.operand(id, 0)?;
                (self.is_last_axis(node) && is_weights(self.operand(id, 1)?) && !is_weights(slope))
                    .then_some((slope, self.result(id)?))
            }
            // P ∘ dP, and P ∘ (sum of its rows), which is subtracted from it.
            [first, second] if key(first) == (ONNX, "Mul") && key(second) == (ONNX, "Mul") => {
                [(first, second), (second, first)].into_iter().find_map(|(each, mean)| {
                    let (slope, product) = (other(each, is_weights)?, self.result(each)?);
                    let (sums, shared) = (other(mean, is_weights)?, self.result(mean)?);
                    let (sum, of) = row_sum(sums)?;
                    let mut readers: Vec<NodeId> = self.readers(product).to_vec();
                    readers.retain(|&id| id != sum);
                    let &[difference] = &readers[..] else { return None };
                    let is = of == product
                        && key(difference) == (ONNX, "Sub")
                        && self.operand(difference, 0) == Some(product)
                        && self.operand(difference, 1) == Some(shared)
                        && self.dims(slope) == self.dims(product);
                    nodes.extend([each, mean, sum, difference]);
                    is.then(|| self.result(difference).map(|result| (slope, result))).flatten()
                })
            }
            _ => None,
        }
    }

    /// Whether the node makes gradients zero of the keys that do not count.
    fn masks(&mut self, id: NodeId, value: ValueId, mask: &Mask) -> bool {
        let Some((counts, is_kept)) = mask.counts else { return false };
        let (kept, zero) = if is_kept { (1, 2) } else { (2, 1) };
        self.graph.node(id).op.key() == (ONNX, "Where")
            && self.operand(id, 0) == Some(counts)
            && self.operand(id, kept) == Some(value)
            && self.operand(id, zero).is_some_and(|it| self.known.number(it) == Some(0.0))
    }

    /// Whether the operators read and others read no values that go, and no node that goes has an effect.
    fn check(&self, found: &Found) -> Result<(), Left> {
        let backward = found.backward.as_ref();
        let slopes = backward.into_iter().flat_map(|backward| &backward.readers).map(|(_, slope)| *slope);
        let sides = [found.q, found.k, found.v].into_iter().chain(slopes);
        let mask = found.mask.added.iter().copied().chain(found.mask.counts.map(|(counts, _)| counts));
        let goes = |value| self.graph.producer(value).is_some_and(|id| found.nodes.contains(&id));
        if sides.map(|side| side.value).chain(mask).any(goes) {
            return Err(Left::Form);
        }
        let gradients = backward.into_iter().flat_map(|b| [b.dq, b.dk, b.dv]).flatten();
        let kept: Vec<ValueId> = gradients.chain([found.y]).map(|made| made.result.value).collect();
        for &id in &found.nodes {
            let node = self.graph.node(id);
            if !is_function(node) || !node.after.is_empty() || self.awaited.contains(&id) {
                return Err(Left::Edges);
            }
            for value in node.defines().filter(|value| !kept.contains(value)) {
                let is_read = self.readers(value).iter().any(|reader| !found.nodes.contains(reader));
                if is_read || self.outputs.contains(&value) || self.captured.contains(&value) {
                    return Err(Left::Readers);
                }
            }
        }
        Ok(())
    }

    /// The extents of the operator, if queries, keys and values have one matrix for each of the scores.
    fn extents(&self, scores: &[u64], sides: [Side; 3]) -> Result<[u64; 6], Left> {
        let (lead, [rows, keys]) = scores.split_last_chunk::<2>().ok_or(Left::Types)?;
        let (batch, heads) = match lead {
            [] => (1, 1),
            [batch] => (*batch, 1),
            [batch @ .., heads] => (batch.iter().product(), *heads),
        };
        let matrix = |side: Side| {
            let (lead, &[a, b]) = self.dims(side.value).split_last_chunk::<2>()?;
            let is_one_each = lead.iter().product::<u64>() == batch * heads;
            is_one_each.then_some(if side.is_turned { [b, a] } else { [a, b] })
        };
        let [q, k, v] = sides.map(matrix);
        let (q, k, v) = (q.ok_or(Left::Types)?, k.ok_or(Left::Types)?, v.ok_or(Left::Types)?);
        let fits = q[0] == *rows && k[0] == *keys && v[0] == *keys && q[1] == k[1];
        if fits { Ok([batch, heads, *rows, *keys, q[1], v[1]]) } else { Err(Left::Types) }
    }

    /// The mask as the operator takes it, if every row is known to have a key that counts, or has weights that are no numbers otherwise.
    fn mask(&mut self, found: &Found) -> Result<Mask, Left> {
        let [_, _, rows, keys, ..] = found.extents.map(|extent| extent as usize);
        let mut mask = found.mask.clone();
        let is_square = |dims: &[u64]| {
            let [lead @ .., r, k] = dims else { return false };
            lead.iter().all(|&extent| extent == 1) && (*r as usize, *k as usize) == (rows, keys)
        };
        if let Some((counts, is_kept)) = mask.counts {
            let elements = self.known.elements(counts).ok_or(Left::Rows)?;
            let width = self.dims(counts).last().map_or(1, |&width| width as usize).max(1);
            let is_counted = |&x: &f32| (x != 0.0) == is_kept;
            if !elements.chunks(width).all(|row| row.iter().any(is_counted)) {
                return Err(Left::Rows);
            }
            let is_causal = is_square(self.dims(counts))
                && elements.iter().enumerate().all(|(at, x)| is_counted(x) == (at % keys <= at / keys));
            if is_causal {
                (mask.is_causal, mask.counts) = (true, None);
            } else if !mask.added.is_empty() {
                return Err(Left::Rows);
            }
        }
        // The numbers that a mask adds to the scores of keys up to the query, and to those of later keys.
        let all = std::mem::take(&mut mask.added);
        let mut leaves_seen = Vec::new();
        for &value in &all {
            let dims = self.dims(value);
            let elements = self.known.elements(value).filter(|_| dims.ends_with(&[rows as u64, keys as u64]));
            let is_seen = |at: usize| at % keys <= at / keys % rows;
            let leaves = elements
                .as_ref()
                .is_some_and(|all| all.iter().enumerate().all(|(at, &x)| !is_seen(at) || x == 0.0));
            let hides =
                elements.is_some_and(|all| all.iter().enumerate().all(|(at, &x)| is_seen(at) || x <= NEVER));
            mask.is_causal |= leaves && hides;
            leaves_seen.push(leaves);
        }
        for (value, leaves_seen) in all.into_iter().zip(leaves_seen) {
            if mask.is_causal && leaves_seen {
                continue;
            }
            // A causal row of weights is the same only if its first key counts.
            let width = self.dims(value).last().map_or(1, |&width| width as usize).max(1);
            let counts = |all: super::known::Elements| all.chunks(width).all(|row| row[0] > NEVER);
            if mask.is_causal && !self.known.elements(value).is_some_and(counts) {
                return Err(Left::Rows);
            }
            mask.added.push(value);
        }
        let dims =
            mask.added.iter().chain(mask.counts.iter().map(|(counts, _)| counts)).map(|&it| self.dims(it));
        let dims = dims.fold(Vec::new(), |all, dims| broadcast(&all, dims));
        let is_float = |&it: &ValueId| {
            self.graph.value(it).ty.as_tensor().is_some_and(|ty| ty.element == ElementType::Float)
        };
        if found.mask_dims(&dims).is_none() || !mask.added.iter().all(is_float) {
            return Err(Left::Types);
        }
        Ok(mask)
    }
}

impl Found {
    /// The mask's extents as the operator takes them, if it has one matrix for each of the scores, or is broadcast to them.
    pub(super) fn mask_dims(&self, dims: &[u64]) -> Option<Vec<u64>> {
        let [batch, heads, rows, keys, ..] = self.extents;
        let (lead, &[r, k]) = match dims.split_last_chunk::<2>() {
            Some(parts) => parts,
            None => return Some(dims.to_vec()),
        };
        let lead: Vec<u64> = match (lead, self.rank) {
            ([], _) => Vec::new(),
            // Scores without heads.
            (&[batch], 3) => vec![batch, 1],
            (&[heads], _) => vec![heads],
            (&[batch, heads], 4) => vec![batch, heads],
            ([ones @ .., heads], _) if ones.iter().all(|&one| one == 1) => vec![*heads],
            (all, _) if all.iter().product::<u64>() == batch * heads => vec![batch, heads],
            _ => return None,
        };
        ([1, rows].contains(&r) && [1, keys].contains(&k)).then(|| [&lead[..], &[r, k]].concat())
    }
}

/// The extents of the sum of two tensors that broadcast.
pub(super) fn broadcast(a: &[u64], b: &[u64]) -> Vec<u64> {
    let rank = a.len().max(b.len());
    let extent = |dims: &[u64], i: usize| (i + dims.len()).checked_sub(rank).map_or(1, |i| dims[i]);
    (0..rank).map(|i| extent(a, i).max(extent(b, i))).collect()
}

//! Operators that compute each row by itself, and those that sum over rows: the axis of rows of each operand and result.

use lmsc_ir::domains::{MS, ONNX};
use lmsc_ir::{Attr, Constants, Data, Graph, Node, NodeId, Op, ValueId};

/// The axis along which a value is cut; `None` if it stays whole.
pub(super) type Axis = Option<usize>;

/// How a node computes a chunk of rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Cut {
    pub(super) operands: Vec<Axis>,
    /// Of a node that sums over rows, all whole: the parts are added.
    pub(super) results: Vec<Axis>,
    /// The operand that holds the extents of result 0.
    pub(super) shape: Option<usize>,
    /// Whether the node multiplies matrices.
    pub(super) is_product: bool,
}

/// Why a node does not compute a chunk of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoCut {
    /// Its rows are not independent, or the operator is not known here.
    Rows,
    /// An axis has this many equal parts only.
    Units(u64),
}

/// Operators that compute each element by itself, with broadcasting.
#[rustfmt::skip]
const ELEMENTWISE: &[(&str, &str)] = &[
    (ONNX, "Abs"), (ONNX, "Add"), (ONNX, "And"), (ONNX, "Cast"), (ONNX, "Clip"), (ONNX, "Cos"), (ONNX, "Div"), (ONNX, "Equal"),
    (ONNX, "Erf"), (ONNX, "Exp"), (ONNX, "Expand"), (ONNX, "Greater"), (ONNX, "GreaterOrEqual"), (ONNX, "Identity"), (ONNX, "IsInf"),
    (ONNX, "IsNaN"), (ONNX, "Less"), (ONNX, "LessOrEqual"), (ONNX, "Log"), (ONNX, "Max"), (ONNX, "Min"), (ONNX, "Mul"), (ONNX, "Neg"),
    (ONNX, "Not"), (ONNX, "Or"), (ONNX, "Pow"), (ONNX, "Reciprocal"), (ONNX, "Relu"), (ONNX, "Sigmoid"), (ONNX, "Sign"), (ONNX, "Sin"),
    (ONNX, "Softplus"), (ONNX, "Sqrt"), (ONNX, "Sub"), (ONNX, "Sum"), (ONNX, "Tanh"), (ONNX, "Where"), (ONNX, "Xor"),
    (MS, "ReluGrad"), (MS, "SigmoidGrad"), (MS, "TanhGrad"),
];

/// The graph, and the number of equal parts into which rows can be cut.
pub(super) struct Rows<'g> {
    pub(super) graph: &'g Graph,
    pub(super) constants: &'g Constants,
    pub(super) units: u64,
}

fn flag(node: &Node, graph: &Graph, name: &str) -> Option<bool> {
    match graph.attribute(node, name)? {
        Attr::Int(value) => Some(*value != 0),
        _ => None,
    }
}

/// The index of an axis that may count from the end.
fn index(axis: i64, rank: usize) -> Option<usize> {
    usize::try_from(if axis < 0 { axis + rank as i64 } else { axis }).ok().filter(|&axis| axis < rank)
}

pub(super) fn is_loss(op: &Op) -> bool {
    matches!(op.key(), (ONNX, "SoftmaxCrossEntropyLoss") | (MS, "SoftmaxCrossEntropyLossInternal"))
}

pub(super) fn is_loss_gradient(op: &Op) -> bool {
    matches!(op.key(), (MS, "SoftmaxCrossEntropyLossGrad" | "SoftmaxCrossEntropyLossInternalGrad"))
}

impl Rows<'_> {
    fn dims(&self, value: ValueId) -> &[u64] {
        self.graph.value(value).ty.as_tensor().map_or(&[], |ty| &ty.dims)
    }

    fn operand(&self, node: &Node, at: usize) -> Option<ValueId> {
        node.operands.get(at).copied().flatten()
    }

    fn operand_dims(&self, node: &Node, at: usize) -> &[u64] {
        self.operand(node, at).map_or(&[], |value| self.dims(value))
    }

    fn result_dims(&self, node: &Node) -> Option<&[u64]> {
        Some(self.dims(node.results.first().copied().flatten()?))
    }

    /// The integers of an operand, if they are known.
    fn ints(&self, node: &Node, at: usize) -> Option<Vec<i64>> {
        let value = self.operand(node, at)?;
        let Data::Inline(bytes) = self.constants.get(value)? else { return None };
        let ty = self.graph.value(value).ty.as_tensor()?;
        Some(match ty.element.bits() {
            64 => bytes.as_chunks().0.iter().map(|&b| i64::from_le_bytes(b)).collect(),
            _ => bytes.as_chunks().0.iter().map(|&b| i64::from(i32::from_le_bytes(b))).collect(),
        })
    }

    /// How the node computes its chunk, where the axis of rows of each operand is known or free (`None`).
    pub(super) fn forward(&self, id: NodeId, known: &[Axis]) -> Result<Cut, NoCut> {
        let node = self.graph.node(id);
        let agrees = |cut: &Cut| known.iter().zip(&cut.operands).all(|(k, o)| k.is_none() || k == o);
        let rank = self.result_dims(node).map_or(0, <[u64]>::len);
        let mut fault = NoCut::Rows;
        for rows in (0..rank).map(Some).chain([None]) {
            match self.cut(id, rows, known) {
                Ok(cut) if agrees(&cut) => return Ok(cut),
                Err(NoCut::Units(units)) if fault == NoCut::Rows => fault = NoCut::Units(units),
                _ => {}
            }
        }
        Err(fault)
    }

    /// How the node computes its chunk, where result `at` is cut along this axis.
    pub(super) fn backward(&self, id: NodeId, at: usize, axis: usize) -> Result<Cut, NoCut> {
        let rank = self.result_dims(self.graph.node(id)).map_or(0, <[u64]>::len);
        let cuts = [axis].into_iter().chain(0..rank).map(|rows| self.cut(id, Some(rows), &[]));
        let mut fault = NoCut::Rows;
        for cut in cuts {
            match cut {
                Ok(cut) if cut.results.get(at) == Some(&Some(axis)) => return Ok(cut),
                Err(NoCut::Units(units)) if fault == NoCut::Rows => fault = NoCut::Units(units),
                _ => {}
            }
        }
        Err(fault)
    }

    /// How the node computes a chunk of which result 0 has rows along this axis; without an axis, how it sums over rows.
    fn cut(&self, id: NodeId, rows: Axis, known: &[Axis]) -> Result<Cut, NoCut> {
        let node = self.graph.node(id);
        let Some(dims) = self.result_dims(node) else { return Err(NoCut::Rows) };
        if rows.is_some_and(|axis| axis >= dims.len()) {
            return Err(NoCut::Rows);
        }
        let mut cut = match rows {
            Some(axis) => self.each(node, axis)?,
            None => self.summed(node, known).ok_or(NoCut::Rows)?,
        };
        cut.operands.resize(node.operands.len(), None);
        cut.results.resize(node.results.len(), None);
        let parts = |value: Option<ValueId>, axis: Axis| match (value, axis) {
            (Some(value), Some(axis)) => self.dims(value).get(axis).is_some_and(|d| d % self.units == 0),
            (None, Some(_)) => true,
            (_, None) => true,
        };
        let operands = node.operands.iter().zip(&cut.operands);
        let results = node.results.iter().zip(&cut.results);
        if operands.chain(results).all(|(value, axis)| parts(*value, *axis)) {
            Ok(cut)
        } else {
            Err(NoCut::Rows)
        }
    }

    /// The axis of an operand that is broadcast to the result, whose rows are on this axis.
    fn broadcast(&self, node: &Node, at: usize, axis: usize) -> Axis {
        let (from, to) = (self.operand_dims(node, at), self.result_dims(node)?);
        let own = (axis + from.len()).checked_sub(to.len())?;
        (from.get(own)? == to.get(axis)? && self.operand(node, at).is_some()).then_some(own)
    }

    /// The attribute `axis`.
    fn axis(&self, node: &Node, rank: usize) -> Option<usize> {
        match self.graph.attribute(node, "axis")? {
            Attr::Int(axis) => index(*axis, rank),
            _ => None,
        }
    }

    /// Axes that a reduction reduces.
    fn reduced(&self, node: &Node) -> Option<Vec<usize>> {
        let rank = self.operand_dims(node, 0).len();
        let axes = match node.attribute("axes") {
            Some(Attr::Ints(axes)) => axes.clone(),
            Some(_) => return None,
            None if self.operand(node, 1).is_some() => self.ints(node, 1)?,
            None => Vec::new(),
        };
        if axes.is_empty() {
            let knows = node.op.contract().is_some_and(|contract| contract.knows("noop_with_empty_axes"));
            let nothing = knows && flag(node, self.graph, "noop_with_empty_axes") == Some(true);
            return (!nothing).then(|| (0..rank).collect());
        }
        axes.into_iter().map(|axis| index(axis, rank)).collect()
    }

    /// The axis of the operand of a reduction that is this axis of its result.
    fn unreduced(&self, reduced: &[usize], keeps: bool, rank: usize, axis: usize) -> Axis {
        let own = if keeps { axis } else { (0..rank).filter(|i| !reduced.contains(i)).nth(axis)? };
        (!reduced.contains(&own)).then_some(own)
    }

    /// How the node computes each row, with rows along this axis of result 0.
    fn each(&self, node: &Node, axis: usize) -> Result<Cut, NoCut> {
        let one = |operands: Vec<Axis>| Cut { operands, results: vec![Some(axis)], ..Cut::default() };
        let is = |condition: bool, cut: Cut| if condition { Ok(cut) } else { Err(NoCut::Rows) };
        let rank = self.operand_dims(node, 0).len();
        if ELEMENTWISE.contains(&node.op.key()) {
            // Forms before version 7 state their broadcasting in attributes.
            if node.attribute("broadcast").is_some() || node.attribute("axis").is_some() {
                return Err(NoCut::Rows);
            }
            let mut operands: Vec<Axis> =
                (0..node.operands.len()).map(|at| self.broadcast(node, at, axis)).collect();
            let is_expanded = node.op.name() == "Expand";
            if is_expanded {
                operands.truncate(1);
            }
            return Ok(Cut { shape: is_expanded.then_some(1), ..one(operands) });
        }
        let (domain, name) = node.op.key();
        match (domain, name) {
            (ONNX, "Softmax" | "LogSoftmax") => {
                let along = self.axis(node, rank).ok_or(NoCut::Rows)?;
                // Before version 13, all axes from this one on are one.
                let is_row = if self.graph.version_of(&node.op) < 13 { axis < along } else { axis != along };
                is(is_row, one(vec![Some(axis)]))
            }
            (MS, "SoftmaxGrad" | "LogSoftmaxGrad") => {
                let along = self.axis(node, rank).ok_or(NoCut::Rows)?;
                is(axis < along, one(vec![Some(axis); 2]))
            }
            (MS, "SoftmaxGrad_13" | "LogSoftmaxGrad_13") => {
                let along = self.axis(node, rank).ok_or(NoCut::Rows)?;
                is(axis != along, one(vec![Some(axis); 2]))
            }
            (ONNX, "GatherElements" | "ScatterElements") => {
                let along = self.axis(node, rank).ok_or(NoCut::Rows)?;
                let extents = (0..node.operands.len()).map(|at| self.operand_dims(node, at).get(axis));
                let alike = extents.clone().all(|extent| extent == extents.clone().next().flatten());
                is(axis != along && alike, one(vec![Some(axis); node.operands.len()]))
            }
            (MS, "GatherElementsGrad") => {
                let along = self.axis(node, rank).ok_or(NoCut::Rows)?;
                let dims = self.result_dims(node).and_then(|dims| dims.get(axis));
                let alike = [0, 2].iter().all(|&at| self.operand_dims(node, at).get(axis) == dims);
                let operands = vec![Some(axis), None, Some(axis)];
                is(axis != along && alike, Cut { shape: Some(1), ..one(operands) })
            }
            (ONNX, "OneHot") => {
                let along = self.axis(node, rank + 1).ok_or(NoCut::Rows)?;
                is(axis != along, one(vec![Some(axis - usize::from(axis > along))]))
            }
            (ONNX, "ConstantOfShape") => Ok(Cut { shape: Some(0), ..one(Vec::new()) }),
            (ONNX, "Concat") => {
                let along = self.axis(node, rank).ok_or(NoCut::Rows)?;
                is(axis != along, one(vec![Some(axis); node.operands.len()]))
            }
            (ONNX, "TopK" | "Split") => {
                let along = self.axis(node, rank).ok_or(NoCut::Rows)?;
                let results = vec![Some(axis); node.results.len()];
                is(axis != along, Cut { results, ..one(vec![Some(axis)]) })
            }
            (ONNX, "ArgMax" | "ArgMin") => {
                let along = self.axis(node, rank).ok_or(NoCut::Rows)?;
                let keeps = flag(node, self.graph, "keepdims").ok_or(NoCut::Rows)?;
                let own = self.unreduced(&[along], keeps, rank, axis).ok_or(NoCut::Rows)?;
                Ok(one(vec![Some(own)]))
            }
            (ONNX, _) if name.starts_with("Reduce") => {
                let reduced = self.reduced(node).ok_or(NoCut::Rows)?;
                let keeps = flag(node, self.graph, "keepdims").ok_or(NoCut::Rows)?;
                let own = self.unreduced(&reduced, keeps, rank, axis).ok_or(NoCut::Rows)?;
                Ok(one(vec![Some(own)]))
            }
            _ => self.rearranged(node, axis),
        }
    }

    /// The same for operators that move elements, multiply matrices or compute a loss.
    fn rearranged(&self, node: &Node, axis: usize) -> Result<Cut, NoCut> {
        let one = |operands: Vec<Axis>| Cut { operands, results: vec![Some(axis)], ..Cut::default() };
        let is = |condition: bool, cut: Cut| if condition { Ok(cut) } else { Err(NoCut::Rows) };
        let rank = self.operand_dims(node, 0).len();
        let (domain, name) = node.op.key();
        match (domain, name) {
            (ONNX, "Transpose") => {
                let own = match node.attribute("perm") {
                    Some(Attr::Ints(order)) => order.get(axis).and_then(|&own| index(own, rank)),
                    Some(_) => None,
                    None => Some(rank - 1 - axis),
                };
                is(own.is_some(), one(vec![own]))
            }
            // The extents of a chunk may be 1, which a squeeze of all such axes would remove.
            (ONNX, "Squeeze") if node.attribute("axes").is_none() && self.operand(node, 1).is_none() => {
                Err(NoCut::Rows)
            }
            (ONNX, "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze") => {
                let own = self.reshaped(node, axis)?;
                Ok(Cut { shape: (name == "Reshape").then_some(1), ..one(vec![Some(own)]) })
            }
            (ONNX, "Slice") => {
                let axes = self.sliced(node, 1, 3).ok_or(NoCut::Rows)?;
                is(!axes.contains(&axis), one(vec![Some(axis)]))
            }
            (MS, "SliceGrad") => {
                let axes = self.sliced(node, 2, 4).ok_or(NoCut::Rows)?;
                is(!axes.contains(&axis), Cut { shape: Some(1), ..one(vec![Some(axis)]) })
            }
            (ONNX, "Gemm" | "MatMul") | (MS, "FusedMatMul") => {
                let product = self.product(node).ok_or(NoCut::Rows)?;
                let rank = self.result_dims(node).map_or(0, <[u64]>::len);
                let mut operands = match rank - 1 - axis {
                    0 => vec![None, Some(product.right.1)],
                    1 => vec![Some(product.left.0), None],
                    _ => vec![self.broadcast(node, 0, axis), self.broadcast(node, 1, axis)],
                };
                if self.operand(node, 2).is_some() {
                    operands.push(self.broadcast(node, 2, axis));
                }
                Ok(Cut { is_product: true, ..one(operands) })
            }
            _ if is_loss(&node.op) => {
                // Result 0 has the axes of the labels: those of the scores but for axis 1, that of classes.
                let of_scores = if axis == 0 { 0 } else { axis + 1 };
                let is_each = self.graph.attribute(node, "reduction") == Some(&"none".into());
                let cut = Cut {
                    operands: vec![Some(of_scores), Some(axis)],
                    results: vec![Some(axis), Some(of_scores)],
                    ..Cut::default()
                };
                is(is_each, cut)
            }
            _ if is_loss_gradient(&node.op) => {
                let labels = match axis {
                    0 => 0,
                    1 => return Err(NoCut::Rows),
                    axis => axis - 1,
                };
                let dy = match self.graph.attribute(node, "reduction") {
                    Some(reduction) if *reduction == "none".into() => Some(labels),
                    Some(reduction) if *reduction == "sum".into() => None,
                    _ => return Err(NoCut::Rows),
                };
                let has_bias = self.operand(node, 5).is_some();
                is(!has_bias, one(vec![dy, Some(axis), Some(labels)]))
            }
            _ => Err(NoCut::Rows),
        }
    }

    /// The axes of a `Slice` whose starts and axes are these operands.
    fn sliced(&self, node: &Node, starts: usize, axes: usize) -> Option<Vec<usize>> {
        let rank = self.operand_dims(node, 0).len();
        match node.attribute("starts") {
            Some(_) => None,
            None if self.operand(node, axes).is_some() => {
                self.ints(node, axes)?.into_iter().map(|axis| index(axis, rank)).collect()
            }
            None => Some((0..*self.operand_dims(node, starts).first()? as usize).collect()),
        }
    }

    /// The axis of the operand that holds the same rows as this axis of the result: as many elements stand before both.
    fn reshaped(&self, node: &Node, axis: usize) -> Result<usize, NoCut> {
        let (from, to) = (self.operand_dims(node, 0), self.result_dims(node).unwrap_or(&[]));
        let before = |dims: &[u64], axis: usize| dims[..axis].iter().product::<u64>();
        let target = before(to, axis);
        let own =
            (0..from.len()).find(|&own| before(from, own) == target && from[own] > 1).ok_or(NoCut::Rows)?;
        let units = gcd(gcd(from[own], to[axis]), self.units);
        if units == self.units { Ok(own) } else { Err(NoCut::Units(units)) }
    }

    /// Axes of a product of matrices.
    fn product(&self, node: &Node) -> Option<Product> {
        let (a, b) = (self.operand_dims(node, 0).len(), self.operand_dims(node, 1).len());
        let turned = |name: &str| match node.op.name() {
            "MatMul" => Some(false),
            _ => flag(node, self.graph, name),
        };
        let in_batch = node.op.name() == "FusedMatMul" && (turned("transBatchA")? || turned("transBatchB")?);
        if a < 2 || b < 2 || in_batch || node.attribute("broadcast").is_some() {
            return None;
        }
        let order =
            |rank: usize, turned: bool| if turned { (rank - 1, rank - 2) } else { (rank - 2, rank - 1) };
        Some(Product { left: order(a, turned("transA")?), right: order(b, turned("transB")?) })
    }

    /// How the node sums over rows. Known axes of operands tell them apart where a node sums over several axes.
    fn summed(&self, node: &Node, known: &[Axis]) -> Option<Cut> {
        let whole = |operands: Vec<Axis>| Cut { operands, ..Cut::default() };
        match node.op.key() {
            (ONNX, "ReduceSum") => {
                let own = known.first().copied().flatten()?;
                self.reduced(node)?.contains(&own).then(|| whole(vec![Some(own)]))
            }
            (ONNX, "Gemm" | "MatMul") | (MS, "FusedMatMul") if self.operand(node, 2).is_none() => {
                let product = self.product(node)?;
                Some(Cut { is_product: true, ..whole(vec![Some(product.left.1), Some(product.right.0)]) })
            }
            _ => None,
        }
    }
}

/// The axes of rows and columns of both operands of a product.
struct Product {
    left: (usize, usize),
    right: (usize, usize),
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

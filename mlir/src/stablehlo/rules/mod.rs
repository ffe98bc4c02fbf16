//! A rule for each operator: its computation in operations of StableHLO.

mod attention;
mod index;
mod math;
mod random;
mod rnn;
mod space;
mod train;

use lmsc_ir::domains::MS;
use lmsc_ir::{Attr, ElementType, Float, LMSC_DOMAIN, Node, TensorType};

use super::int;
use super::writer::{Val, Writer};

/// The context of a rule: a node, the names of its operands, and the text.
pub(super) struct Cx<'a> {
    pub(super) node: &'a Node,
    /// The version of ONNX's operators.
    pub(super) version: i64,
    pub(super) w: &'a mut Writer,
    pub(super) operands: Vec<Option<Val>>,
    /// For each operand, its elements if they follow from extents and constants.
    pub(super) known: Vec<Option<Vec<i64>>>,
    /// For each result, its type if it is used.
    pub(super) types: Vec<Option<TensorType>>,
    /// The sources of a random node: its seed, and the function's arguments with the run's seed and the number of the step.
    pub(super) seed: u64,
    pub(super) draws: Option<[Val; 2]>,
    /// The rule's results, with their indices.
    pub(super) given: Vec<(usize, Val)>,
}

/// Why a node cannot be written.
#[derive(Debug)]
pub(super) struct Why(pub(super) String);

impl From<&str> for Why {
    fn from(why: &str) -> Why {
        Why(why.to_owned())
    }
}

/// Writes the operations of a node and gives its results.
pub(super) type Rule = fn(&mut Cx<'_>) -> Result<(), Why>;

/// One row per operator.
#[rustfmt::skip]
const RULES: &[(&str, &str, Rule)] = &[
    ("", "Abs", math::unary),
    ("", "Add", math::binary),
    ("", "And", math::binary),
    ("", "AveragePool", space::average_pool),
    ("", "AveragePoolGrad", space::average_pool_grad),
    ("", "BatchNormalization", math::batch_norm),
    ("", "Cast", math::cast),
    ("", "Ceil", math::unary),
    ("", "Clip", math::clip),
    ("", "Concat", index::concat),
    ("", "Constant", index::constant),
    ("", "ConstantOfShape", index::constant_of_shape),
    ("", "Conv", space::conv),
    ("", "ConvTranspose", space::conv_transpose),
    ("", "Cos", math::unary),
    ("", "Div", math::binary),
    ("", "Dropout", random::dropout),
    ("", "Equal", math::compare),
    ("", "Erf", math::erf),
    ("", "Exp", math::unary),
    ("", "Expand", index::expand),
    ("", "Flatten", index::view),
    ("", "Floor", math::unary),
    ("", "GRU", rnn::gru),
    ("", "Gather", index::gather),
    ("", "GatherElements", index::gather_elements),
    ("", "GatherND", index::gather_nd),
    ("", "Gelu", math::gelu),
    ("", "Gemm", math::gemm),
    ("", "GlobalAveragePool", space::global_average_pool),
    ("", "GlobalMaxPool", space::global_max_pool),
    ("", "Greater", math::compare),
    ("", "GreaterOrEqual", math::compare),
    ("", "HardSigmoid", math::hard_sigmoid),
    ("", "Identity", index::view),
    ("", "IsNaN", math::is_nan),
    ("", "LSTM", rnn::lstm),
    ("", "LayerNormalization", math::layer_norm),
    ("", "Less", math::compare),
    ("", "LessOrEqual", math::compare),
    ("", "Log", math::unary),
    ("", "LogSoftmax", math::log_softmax),
    ("", "MatMul", math::matmul),
    ("", "Max", math::variadic),
    ("", "MaxPool", space::max_pool),
    ("", "MaxPoolGrad", space::max_pool_grad),
    ("", "Mean", math::variadic),
    ("", "Min", math::variadic),
    ("", "Mul", math::binary),
    ("", "Neg", math::unary),
    ("", "Not", math::unary),
    ("", "OneHot", index::one_hot),
    ("", "Or", math::binary),
    ("", "Pad", index::pad),
    ("", "Pow", math::pow),
    ("", "Range", index::range),
    ("", "Reciprocal", math::reciprocal),
    ("", "ReduceMax", math::reduce),
    ("", "ReduceMean", math::reduce),
    ("", "ReduceMin", math::reduce),
    ("", "ReduceProd", math::reduce),
    ("", "ReduceSum", math::reduce),
    ("", "ReduceSumSquare", math::reduce),
    ("", "Relu", math::relu),
    ("", "Reshape", index::view),
    ("", "Round", math::unary),
    ("", "ScatterElements", index::scatter_elements),
    ("", "ScatterND", index::scatter_nd),
    ("", "Shape", index::shape),
    ("", "Sigmoid", math::unary),
    ("", "Sign", math::unary),
    ("", "Sin", math::unary),
    ("", "Size", index::size),
    ("", "Slice", index::slice),
    ("", "Softmax", math::softmax),
    ("", "SoftmaxCrossEntropyLoss", math::cross_entropy),
    ("", "Split", index::split),
    ("", "Sqrt", math::unary),
    ("", "Squeeze", index::view),
    ("", "Sub", math::binary),
    ("", "Sum", math::variadic),
    ("", "Tanh", math::unary),
    ("", "Tile", index::tile),
    ("", "TopK", index::top_k),
    ("", "Transpose", index::transpose),
    ("", "Unsqueeze", index::view),
    ("", "Where", math::select),
    ("", "Xor", math::binary),
    (MS, "BatchNormInternal", train::batch_norm),
    (MS, "BatchNormalizationGrad", train::batch_norm_grad),
    (MS, "ConcatTraining", train::concat),
    (MS, "ConvGrad", space::conv_grad),
    (MS, "ConvTransposeGrad", space::conv_transpose_grad),
    (MS, "DropoutGrad", random::dropout_grad),
    (MS, "FastGelu", train::fast_gelu),
    (MS, "FastGeluGrad", train::fast_gelu_grad),
    (MS, "FusedMatMul", train::fused_matmul),
    (MS, "GRUGrad", rnn::gru_grad),
    (MS, "GRUTraining", rnn::gru),
    (MS, "GatherGrad", train::gather_grad),
    (MS, "Gelu", math::gelu),
    (MS, "GeluGrad", train::gelu_grad),
    (MS, "InPlaceAccumulatorV2", train::accumulate),
    (MS, "LSTMGrad", rnn::lstm_grad),
    (MS, "LSTMTraining", rnn::lstm),
    (MS, "LayerNormalizationGrad", train::layer_norm_grad),
    (MS, "LogSoftmaxGrad_13", train::log_softmax_grad),
    (MS, "ReluGrad", train::relu_grad),
    (MS, "Scale", train::scale),
    (MS, "SigmoidGrad", train::sigmoid_grad),
    (MS, "SliceGrad", index::slice_grad),
    (MS, "SoftmaxCrossEntropyLossGrad", train::cross_entropy_grad),
    (MS, "SoftmaxGrad_13", train::softmax_grad),
    (MS, "SplitTraining", index::split),
    (MS, "TanhGrad", train::tanh_grad),
    (LMSC_DOMAIN, "AdamWOptimizer", train::adamw),
    (LMSC_DOMAIN, "Attention", attention::attention),
    (LMSC_DOMAIN, "AttentionGrad", attention::attention_grad),
    (LMSC_DOMAIN, "Copy", index::view),
    (LMSC_DOMAIN, "Join", index::join),
    (LMSC_DOMAIN, "SGDOptimizer", train::sgd),
];

/// The domains and names of the operators that have a rule, and of the copies over the link.
pub(crate) fn operators() -> impl Iterator<Item = (&'static str, &'static str)> {
    let copies = ["SwapIn", "SwapOut"].map(|name| (LMSC_DOMAIN, name));
    RULES.iter().map(|&(domain, name, _)| (domain, name)).chain(copies)
}

/// The rule of the operator, if it has one.
pub(super) fn rule((domain, name): (&str, &str)) -> Option<Rule> {
    RULES.iter().find(|row| (row.0, row.1) == (domain, name)).map(|row| row.2)
}

/// Copies a tensor, or a range of its elements, to host memory, or back to the device.
pub(super) fn copy(cx: &mut Cx<'_>, out: bool) -> Result<(), Why> {
    let mut x = cx.operand(0)?;
    if let (Some(begin), Some(end)) = (int(cx.node, "begin"), int(cx.node, "end")) {
        x = index::range_of(cx, &x, begin as u64..end as u64)?;
    }
    let y = cx.w.placed(&x, out);
    cx.give(0, y)
}

impl Cx<'_> {
    fn operand(&self, index: usize) -> Result<Val, Why> {
        self.optional(index).ok_or_else(|| Why(format!("it has no operand {index}")))
    }

    fn optional(&self, index: usize) -> Option<Val> {
        self.operands.get(index).cloned().flatten()
    }

    /// Every operand; none may be left out.
    fn all(&self) -> Result<Vec<Val>, Why> {
        (0..self.operands.len()).map(|index| self.operand(index)).collect()
    }

    /// The elements of an operand that StableHLO needs as constants.
    fn list(&self, index: usize) -> Result<Vec<i64>, Why> {
        self.known.get(index).cloned().flatten().ok_or_else(|| {
            Why(format!("its operand {index} does not follow from extents and constants; StableHLO wants numbers there"))
        })
    }

    /// The given attribute, or else the default of the operator's contract.
    fn attribute(&self, name: &str) -> Option<&Attr> {
        self.node.op.attribute(self.version, &self.node.attributes, name)
    }

    /// Whether the operator has an attribute of this name: a rule that several operators share may only read those that it has.
    fn knows(&self, name: &str) -> bool {
        self.node.op.contract().is_some_and(|contract| contract.knows(name))
    }

    fn int(&self, name: &str) -> Result<i64, Why> {
        match self.attribute(name) {
            Some(&Attr::Int(value)) => Ok(value),
            _ => Err(Why(format!("its attribute `{name}` is no integer"))),
        }
    }

    fn flag(&self, name: &str) -> Result<bool, Why> {
        Ok(self.int(name)? != 0)
    }

    fn float(&self, name: &str) -> Result<f64, Why> {
        match self.attribute(name) {
            Some(&Attr::Float(Float(value))) => Ok(value.into()),
            _ => Err(Why(format!("its attribute `{name}` is no float"))),
        }
    }

    fn ints(&self, name: &str) -> Option<&[i64]> {
        match self.attribute(name) {
            Some(Attr::Ints(ints)) => Some(ints),
            _ => None,
        }
    }

    fn text(&self, name: &str) -> Option<&[u8]> {
        match self.attribute(name) {
            Some(Attr::String(text)) => Some(text),
            _ => None,
        }
    }

    /// The type of a result, which the graph knows.
    fn ty(&self, index: usize) -> Result<TensorType, Why> {
        self.wanted(index).ok_or_else(|| Why(format!("its result {index} is left out")))
    }

    fn wanted(&self, index: usize) -> Option<TensorType> {
        self.types.get(index).cloned().flatten()
    }

    fn give(&mut self, index: usize, val: Val) -> Result<(), Why> {
        self.given.push((index, val));
        Ok(())
    }

    /// Gives a result with the graph's extents, if it is used.
    fn give_if_wanted(&mut self, index: usize, val: &Val) -> Result<(), Why> {
        let Some(ty) = self.wanted(index) else { return Ok(()) };
        let val = self.w.reshape(val, &ty.dims);
        self.give(index, val)
    }

    /// The axis, counted from the front.
    fn axis(&self, axis: i64, rank: usize) -> Result<usize, Why> {
        let found = if axis < 0 { axis + rank as i64 } else { axis };
        let found = usize::try_from(found).ok().filter(|&axis| axis <= rank);
        found.ok_or_else(|| Why(format!("there is no axis {axis} of {rank}")))
    }

    /// One number in all elements of a tensor of this type.
    fn splat(&mut self, value: f64, ty: &TensorType) -> Val {
        self.w.splat(value, ty)
    }

    fn scalar(&mut self, value: f64, element: ElementType) -> Val {
        self.w.splat(value, &TensorType::new(element, []))
    }

    /// Zeros as a start of sums, which are not created before `x` is available.
    fn zeros_beside(&mut self, x: &Val, ty: &TensorType) -> (Val, Val) {
        let zero = self.scalar(0.0, ty.element);
        if !self.w.form.hoists() {
            return (self.w.broadcast(&zero, &ty.dims), x.clone());
        }
        let mut both = self.w.barrier(&[&zero, x]);
        let (x, zero) = (both.pop().expect("two go in"), both.pop().expect("two go in"));
        (self.w.broadcast(&zero, &ty.dims), x)
    }

    /// Both tensors, broadcast to their common extents.
    fn alike(&mut self, a: &Val, b: &Val) -> [Val; 2] {
        let dims = common(a.dims(), b.dims());
        [self.w.broadcast(a, &dims), self.w.broadcast(b, &dims)]
    }

    /// An operation on two tensors, broadcast to their common extents.
    fn op(&mut self, name: &str, a: &Val, b: &Val) -> Val {
        let [a, b] = self.alike(a, b);
        self.w.elementwise(name, &[&a, &b])
    }

    /// An operation on a tensor and a number.
    fn with(&mut self, name: &str, x: &Val, number: f64) -> Val {
        let number = self.splat(number, &x.ty);
        self.w.elementwise(name, &[x, &number])
    }

    /// The sum along some dimensions, which are kept with extent 1.
    fn sum_kept(&mut self, x: &Val, axes: &[usize]) -> Val {
        let sum = self.w.sum(x, axes);
        self.kept(&sum, x.dims(), axes)
    }

    /// A tensor reduced along some dimensions of these extents, with these dimensions as extent 1.
    fn kept(&mut self, reduced: &Val, dims: &[u64], axes: &[usize]) -> Val {
        let extent = |(axis, &dim)| if axes.contains(&axis) { 1 } else { dim };
        let dims: Vec<u64> = dims.iter().enumerate().map(extent).collect();
        self.w.reshape(reduced, &dims)
    }

    /// Whether each element of `ty` is at the position along the axis that `indices` (without that axis) gives.
    fn hot(&mut self, indices: &Val, ty: &TensorType, axis: usize) -> Val {
        let counted = self.w.iota(&TensorType::new(indices.element(), &ty.dims[..]), axis);
        let along: Vec<usize> = (0..ty.dims.len()).filter(|&at| at != axis).collect();
        let indices = self.w.broadcast_along(indices, &along, &ty.dims);
        self.w.compare("EQ", &counted, &indices)
    }

    /// Indices, with negative ones counted from the end.
    fn wrapped(&mut self, indices: &Val, extent: u64) -> Val {
        let zero = self.splat(0.0, &indices.ty);
        let negative = self.w.compare("LT", indices, &zero);
        let moved = self.with("add", indices, extent as f64);
        self.w.select(&negative, &moved, indices)
    }
}

/// The common extents of two tensors by ONNX's broadcasting rule.
fn common(a: &[u64], b: &[u64]) -> Vec<u64> {
    let rank = a.len().max(b.len());
    let at = |dims: &[u64], i: usize| (i + dims.len()).checked_sub(rank).map_or(1, |i| dims[i]);
    (0..rank).map(|i| if at(a, i) == 1 { at(b, i) } else { at(a, i) }).collect()
}

//! One rule for each operator, which rebuilds it from operators of ONNX. A rule returns `None` if it does not
//! apply.

use std::f32::consts::{FRAC_1_SQRT_2, PI};

use lmsc_ir::domains::{LMSC, MS};
use lmsc_ir::{Attr, ElementType, Graph, NodeId, TensorType, ValueId};

use super::builder::Builder;
use super::{attention, recurrent};

pub(super) type Rule = fn(&mut Builder<'_>) -> Option<()>;

/// One row per operator.
#[rustfmt::skip]
const RULES: &[(&str, &str, Rule)] = &[
    ("", "AveragePoolGrad", average_pool_grad),
    ("", "MaxPoolGrad", max_pool_grad),
    (MS, "AveragePoolGrad", average_pool_grad),
    (MS, "BatchNormInternal", batch_norm),
    (MS, "BatchNormalizationGrad", batch_norm_grad),
    (MS, "ConcatTraining", concat),
    (MS, "ConvGrad", conv_grad),
    (MS, "ConvTransposeGrad", conv_transpose_grad),
    (MS, "DropoutGrad", dropout_grad),
    (MS, "FastGelu", fast_gelu),
    (MS, "FastGeluGrad", fast_gelu_grad),
    (MS, "FusedMatMul", matmul),
    (MS, "GatherGrad", gather_grad),
    (MS, "Gelu", gelu),
    (MS, "GeluGrad", gelu_grad),
    (MS, "InPlaceAccumulatorV2", accumulate),
    (MS, "LSTMGrad", recurrent::lstm_grad),
    (MS, "LSTMTraining", recurrent::lstm),
    (MS, "LayerNormalizationGrad", layer_norm_grad),
    (MS, "LogSoftmaxGrad_13", log_softmax_grad),
    (MS, "ReluGrad", relu_grad),
    (MS, "Scale", scale),
    (MS, "SigmoidGrad", sigmoid_grad),
    (MS, "SliceGrad", slice_grad),
    (MS, "SoftmaxCrossEntropyLossGrad", cross_entropy_grad),
    (MS, "SoftmaxGrad_13", softmax_grad),
    (MS, "SplitTraining", split),
    (MS, "TanhGrad", tanh_grad),
    (LMSC, "AdamWOptimizer", adamw),
    (LMSC, "Attention", attention::attention),
    (LMSC, "AttentionGrad", attention::attention_grad),
    (LMSC, "NhwcAveragePool", channels_first),
    (LMSC, "NhwcAveragePoolGrad", channels_first),
    (LMSC, "NhwcConv", channels_first),
    (LMSC, "NhwcConvGrad", channels_first),
    (LMSC, "NhwcConvTranspose", channels_first),
    (LMSC, "NhwcConvTransposeGrad", channels_first),
    (LMSC, "NhwcMaxPool", channels_first),
    (LMSC, "NhwcMaxPoolGrad", channels_first),
    (LMSC, "SGDOptimizer", sgd),
];

/// The rule of the operator, if it has one.
pub(super) fn rule((domain, name): (&str, &str)) -> Option<Rule> {
    RULES.iter().find(|row| (row.0, row.1) == (domain, name)).map(|row| row.2)
}

/// An operator on images with channels last: that with channels first, between transpositions. A gradient of it is expanded after.
fn channels_first(b: &mut Builder<'_>) -> Option<()> {
    b.channels_first()
}

/// The index of the result that is the variable's new value.
pub(super) fn written(graph: &Graph, id: NodeId, variable: ValueId) -> Option<usize> {
    let node = graph.node(id);
    let writes = node.op.effects().writes.iter();
    writes.filter(|(operand, _)| node.operands.get(*operand) == Some(&Some(variable))).map(|(_, r)| *r).next()
}

/// `dY` where `Y` is positive, else 0.
fn relu_grad(b: &mut Builder<'_>) -> Option<()> {
    let (dy, y) = (b.floats(0)?, b.floats(1)?);
    let zero = b.scalar(0.0);
    let positive = b.binary("Greater", y, zero)?;
    let ty = b.ty(dy)?;
    let dx = b.add("Where", [], &[positive, dy, zero], ty);
    b.give(0, dx)
}

/// `dY · (1 - Y²)`.
fn tanh_grad(b: &mut Builder<'_>) -> Option<()> {
    let (dy, y) = (b.floats(0)?, b.floats(1)?);
    let slope = one_minus_square(b, y)?;
    let dx = b.binary("Mul", dy, slope)?;
    b.give(0, dx)
}

fn one_minus_square(b: &mut Builder<'_>, y: ValueId) -> Option<ValueId> {
    let one = b.scalar(1.0);
    let square = b.binary("Mul", y, y)?;
    b.binary("Sub", one, square)
}

/// `dY · Y · (1 - Y)`.
fn sigmoid_grad(b: &mut Builder<'_>) -> Option<()> {
    let (dy, y) = (b.floats(0)?, b.floats(1)?);
    let one = b.scalar(1.0);
    let rest = b.binary("Sub", one, y)?;
    let slope = b.binary("Mul", y, rest)?;
    let dx = b.binary("Mul", dy, slope)?;
    b.give(0, dx)
}

/// The share of a normal distribution below `x`: `½ · (1 + erf(x / √2))`.
fn normal(b: &mut Builder<'_>, x: ValueId) -> Option<ValueId> {
    let scaled = b.scaled(x, FRAC_1_SQRT_2)?;
    let erf = b.unary("Erf", scaled)?;
    let one = b.scalar(1.0);
    let sum = b.binary("Add", erf, one)?;
    b.scaled(sum, 0.5)
}

/// `X · Φ(X)`.
fn gelu(b: &mut Builder<'_>) -> Option<()> {
    let x = b.floats(0)?;
    let share = normal(b, x)?;
    let y = b.binary("Mul", x, share)?;
    b.give(0, y)
}

/// `dY · (Φ(X) + X · φ(X))`.
fn gelu_grad(b: &mut Builder<'_>) -> Option<()> {
    let (dy, x) = (b.floats(0)?, b.floats(1)?);
    let share = normal(b, x)?;
    let square = b.binary("Mul", x, x)?;
    let exponent = b.scaled(square, -0.5)?;
    let bell = b.unary("Exp", exponent)?;
    let bell = b.scaled(bell, 1.0 / (2.0 * PI).sqrt())?;
    let rest = b.binary("Mul", x, bell)?;
    let slope = b.binary("Add", share, rest)?;
    let dx = b.binary("Mul", dy, slope)?;
    b.give(0, dx)
}

/// √(2/π), and that times the factor of the cube, in the tanh approximation of Gelu.
fn fast_gelu_factors() -> (f32, f32) {
    let root = (2.0 / PI).sqrt();
    (root, root * 0.044_715)
}

/// `X`, its square, and `tanh(√(2/π) · (X + 0.044715 · X³))`, where `X` is the operand `index` plus the operand
/// `index + 1`, if the node has that.
fn fast_gelu_parts(b: &mut Builder<'_>, index: usize) -> Option<[ValueId; 3]> {
    let mut x = b.floats(index)?;
    if b.operand(index + 1).is_some() {
        let bias = b.floats(index + 1)?;
        x = b.binary("Add", x, bias)?;
    }
    let (linear, cubic) = fast_gelu_factors();
    let square = b.binary("Mul", x, x)?;
    let factor = b.scaled(square, cubic)?;
    let linear = b.scalar(linear);
    let factor = b.binary("Add", factor, linear)?;
    let inner = b.binary("Mul", x, factor)?;
    Some([x, square, b.unary("Tanh", inner)?])
}

fn fast_gelu(b: &mut Builder<'_>) -> Option<()> {
    let [x, _, tanh] = fast_gelu_parts(b, 0)?;
    let one = b.scalar(1.0);
    let share = b.binary("Add", tanh, one)?;
    let half = b.scaled(x, 0.5)?;
    let y = b.binary("Mul", half, share)?;
    b.give(0, y)
}

/// `dY · ½ · (1 + t + X · (1 - t²) · (√(2/π) + 3 · c · X²))` with t and c of the approximation.
fn fast_gelu_grad(b: &mut Builder<'_>) -> Option<()> {
    let dy = b.floats(0)?;
    let [x, square, tanh] = fast_gelu_parts(b, 1)?;
    let (linear, cubic) = fast_gelu_factors();
    let inner = b.scaled(square, 3.0 * cubic)?;
    let linear = b.scalar(linear);
    let inner = b.binary("Add", inner, linear)?;
    let slope = one_minus_square(b, tanh)?;
    let rest = b.binary("Mul", x, slope)?;
    let rest = b.binary("Mul", rest, inner)?;
    let one = b.scalar(1.0);
    let sum = b.binary("Add", tanh, one)?;
    let sum = b.binary("Add", sum, rest)?;
    let half = b.scaled(sum, 0.5)?;
    let dx = b.binary("Mul", dy, half)?;
    b.give(0, dx)
}

/// `Y · (dY - Σ dY · Y)`.
fn softmax_grad(b: &mut Builder<'_>) -> Option<()> {
    let (dy, y) = (b.floats(0)?, b.floats(1)?);
    let axis = b.axis(b.dims(y).len())?;
    let product = b.binary("Mul", dy, y)?;
    let sum = b.sum(product, &[axis], true)?;
    let rest = b.binary("Sub", dy, sum)?;
    let dx = b.binary("Mul", y, rest)?;
    b.give(0, dx)
}

/// `dY - exp(Y) · Σ dY`.
fn log_softmax_grad(b: &mut Builder<'_>) -> Option<()> {
    let (dy, y) = (b.floats(0)?, b.floats(1)?);
    let axis = b.axis(b.dims(y).len())?;
    let sum = b.sum(dy, &[axis], true)?;
    let probability = b.unary("Exp", y)?;
    let share = b.binary("Mul", probability, sum)?;
    let dx = b.binary("Sub", dy, share)?;
    b.give(0, dx)
}

/// `alpha · A · B`, with the last two dimensions of A or B exchanged before.
fn matmul(b: &mut Builder<'_>) -> Option<()> {
    if b.flag("transBatchA")? || b.flag("transBatchB")? {
        return None;
    }
    let mut operands = [b.floats(0)?, b.floats(1)?];
    for (operand, name) in operands.iter_mut().zip(["transA", "transB"]) {
        let rank = b.dims(*operand).len();
        if b.flag(name)? {
            let mut permutation: Vec<usize> = (0..rank).collect();
            permutation.swap(rank.checked_sub(2)?, rank - 1);
            *operand = b.transpose(*operand, &permutation)?;
        }
    }
    let ty = b.wanted(0)?;
    let alpha = b.float("alpha")?;
    let mut y = b.add("MatMul", [], &operands, ty);
    if alpha != 1.0 {
        y = b.scaled(y, alpha)?;
    }
    b.give(0, y)
}

/// Since version 13, the standard operator takes the extents as an operand.
fn split(b: &mut Builder<'_>) -> Option<()> {
    let (x, extents) = (b.operand(0)?, b.operand(1)?);
    let axis = b.int("axis")?;
    let types: Vec<Option<TensorType>> = (0..count_results(b)).map(|i| b.wanted(i)).collect();
    let parts = b.many("Split", [("axis", axis.into())], &[x, extents], types);
    parts.into_iter().enumerate().try_for_each(|(i, part)| part.map_or(Some(()), |part| b.give(i, part)))
}

fn count_results(b: &Builder<'_>) -> usize {
    (0..).take_while(|&i| b.has_result(i)).count()
}

/// The second result is the extents of the parts.
fn concat(b: &mut Builder<'_>) -> Option<()> {
    let parts: Vec<ValueId> = (0..).map_while(|i| b.operand(i)).collect();
    let axis = b.axis(b.dims(*parts.first()?).len())?;
    if let Some(ty) = b.wanted(0) {
        let whole = b.add("Concat", [("axis", (axis as i64).into())], &parts, ty);
        b.give(0, whole)?;
    }
    if b.wants(1) {
        let extents: Vec<i64> = parts.iter().map(|&part| b.dims(part)[axis] as i64).collect();
        let extents = b.list(&extents);
        b.give(1, extents)?;
    }
    Some(())
}

/// The attributes of a convolution or of a pooling window.
struct Window {
    strides: Vec<i64>,
    dilations: Vec<i64>,
    /// First the padding before each axis, then the padding after each.
    pads: Vec<i64>,
    group: u64,
}

impl Window {
    /// The window of a node whose tensors have `axes` spatial dimensions.
    fn of(b: &Builder<'_>, axes: usize) -> Option<Window> {
        let padded = b.text("auto_pad") == Some(b"NOTSET");
        (axes > 0 && padded).then_some(())?;
        // Pooling has no groups.
        let group = if b.knows("group") { b.int("group")? } else { 1 };
        Some(Window {
            strides: b.repeated("strides", 1, axes)?,
            dilations: b.repeated("dilations", 1, axes)?,
            pads: b.repeated("pads", 0, 2 * axes)?,
            group: u64::try_from(group).ok().filter(|&group| group > 0)?,
        })
    }

    fn attributes(&self) -> [(&'static str, Attr); 4] {
        [
            ("dilations", self.dilations.clone().into()),
            ("group", (self.group as i64).into()),
            ("pads", self.pads.clone().into()),
            ("strides", self.strides.clone().into()),
        ]
    }

    /// The gradient of an image from that of its positions: a transposed convolution.
    fn image(&self, b: &mut Builder<'_>, positions: ValueId, w: ValueId, ty: TensorType) -> Option<ValueId> {
        let (axes, extents, kernel) = (self.strides.len(), b.dims(positions), b.dims(w));
        let missing = |i: usize| {
            let reached = self.strides[i] * (extents[2 + i] as i64 - 1)
                + self.dilations[i] * (kernel[2 + i] as i64 - 1)
                + 1;
            ty.dims[2 + i] as i64 - (reached - self.pads[i] - self.pads[axes + i])
        };
        let missing: Vec<i64> = (0..axes).map(missing).collect();
        if missing.iter().zip(&self.strides).any(|(m, s)| !(0..*s).contains(m)) {
            return None;
        }
        let [dilations, group, pads, strides] = self.attributes();
        let attributes = [dilations, group, ("output_padding", missing.into()), pads, strides];
        Some(b.add("ConvTranspose", attributes, &[positions, w], ty))
    }

    /// The gradient of weights of these extents, between an image and positions: a convolution of the image with
    /// the positions, both with batch and channels exchanged, and with strides as dilations.
    fn weights(
        &self,
        b: &mut Builder<'_>,
        image: ValueId,
        positions: ValueId,
        w_dims: &[u64],
    ) -> Option<ValueId> {
        let &Window { ref strides, ref dilations, ref pads, group } = self;
        let (axes, x_dims, y_dims) = (strides.len(), b.dims(image), b.dims(positions));
        let (batch, channels, features) = (x_dims[0], x_dims[1], w_dims[0]);
        if channels % group != 0 || w_dims[1] != channels / group {
            return None;
        }
        let space: Vec<usize> = (2..2 + axes).collect();
        let exchanged = [&[1, 0][..], &space].concat();
        let samples = if group == 1 {
            b.transpose(image, &exchanged)?
        } else {
            let split = [&[batch, group, channels / group][..], &x_dims[2..]].concat();
            let grouped = b.reshape(image, &split)?;
            let permutation: Vec<usize> = [2, 1, 0].into_iter().chain(3..3 + axes).collect();
            let grouped = b.transpose(grouped, &permutation)?;
            b.reshape(grouped, &[&[channels / group, group * batch][..], &x_dims[2..]].concat())?
        };
        let kernels = b.transpose(positions, &exchanged)?;
        let mut dims = vec![channels / group, features];
        for i in 0..axes {
            let covered = strides[i] * (y_dims[2 + i] as i64 - 1) + 1;
            let room = x_dims[2 + i] as i64 + pads[i] + pads[axes + i] - covered;
            dims.push(u64::try_from(room).ok()? / dilations[i] as u64 + 1);
        }
        let attributes = [
            ("dilations", strides.clone().into()),
            ("group", (group as i64).into()),
            ("pads", pads.clone().into()),
            ("strides", dilations.clone().into()),
        ];
        let element = b.ty(image)?.element;
        let mut dw = b.add("Conv", attributes, &[samples, kernels], TensorType::new(element, dims.clone()));
        if dims[2..] != w_dims[2..] {
            if dims[2..].iter().zip(&w_dims[2..]).any(|(have, want)| have < want) {
                return None;
            }
            dims[2..].copy_from_slice(&w_dims[2..]);
            let from = b.list(&vec![0; axes]);
            let to = b.list(&w_dims[2..].iter().map(|&k| k as i64).collect::<Vec<_>>());
            let along = b.list(&space.iter().map(|&axis| axis as i64).collect::<Vec<_>>());
            dw = b.add("Slice", [], &[dw, from, to, along], TensorType::new(element, dims));
        }
        b.transpose(dw, &exchanged)
    }
}

/// The number of spatial dimensions of tensors of one rank.
fn space(b: &Builder<'_>, tensors: &[ValueId]) -> Option<usize> {
    let rank = b.dims(*tensors.first()?).len();
    let same = tensors.iter().all(|&tensor| b.dims(tensor).len() == rank);
    rank.checked_sub(2).filter(|_| same)
}

/// The sum over all axes but channels.
fn bias_grad(b: &mut Builder<'_>, dy: ValueId) -> Option<()> {
    if b.wants(2) {
        let others = all_but_channels(b.dims(dy).len());
        let db = b.sum(dy, &others, false)?;
        b.give(2, db)?;
    }
    Some(())
}

/// dX is a transposed convolution of dY with W.
fn conv_grad(b: &mut Builder<'_>) -> Option<()> {
    let (dy, x, w) = (b.floats(0)?, b.floats(1)?, b.floats(2)?);
    let window = Window::of(b, space(b, &[dy, x, w])?)?;
    if let Some(ty) = b.wanted(0) {
        let dx = window.image(b, dy, w, ty)?;
        b.give(0, dx)?;
    }
    if let Some(ty) = b.wanted(1) {
        let dw = window.weights(b, x, dy, &ty.dims)?;
        b.give(1, dw)?;
    }
    bias_grad(b, dy)
}

/// dX is a convolution of dY with W.
fn conv_transpose_grad(b: &mut Builder<'_>) -> Option<()> {
    let (dy, x, w) = (b.floats(0)?, b.floats(1)?, b.floats(2)?);
    let window = Window::of(b, space(b, &[dy, x, w])?)?;
    if b.has("output_shape") {
        return None;
    }
    if let Some(ty) = b.wanted(0) {
        let dx = b.add("Conv", window.attributes(), &[dy, w], ty);
        b.give(0, dx)?;
    }
    if let Some(ty) = b.wanted(1) {
        let dw = window.weights(b, dy, x, &ty.dims)?;
        b.give(1, dw)?;
    }
    bias_grad(b, dy)
}

/// dY divided by the number of elements of each average, then a transposed convolution with ones.
fn average_pool_grad(b: &mut Builder<'_>) -> Option<()> {
    let (dy, ty) = (b.floats(0)?, b.wanted(0)?);
    let positions = b.dims(dy);
    let axes = space(b, &[dy]).filter(|axes| ty.dims.len() == axes + 2)?;
    let channels = ty.dims[1];
    let window = Window { group: channels, ..Window::of(b, axes)? };
    b.has("kernel_shape").then_some(())?;
    let kernel = b.repeated("kernel_shape", 1, axes)?;
    let with_padding = b.flag("count_include_pad")?;
    // By position along the axis, the number of elements in its average.
    let counted = |axis: usize| {
        let (before, after) =
            if with_padding { (window.pads[axis], window.pads[axes + axis]) } else { (0, 0) };
        let counts = -before..ty.dims[2 + axis] as i64 + after;
        let (stride, pad, dilation) = (window.strides[axis], window.pads[axis], window.dilations[axis]);
        let size = kernel[axis];
        let of = move |position: u64| {
            let first = position as i64 * stride - pad;
            (0..size).filter(|i| counts.contains(&(first + i * dilation))).count()
        };
        (0..positions[2 + axis]).map(of).collect::<Vec<_>>()
    };
    let counts = (0..axes).map(counted).fold(vec![1], |counts: Vec<usize>, along| {
        counts.iter().flat_map(|count| along.iter().map(move |more| count * more)).collect()
    });
    let share = counts.iter().flat_map(|&count| (1.0 / count as f32).to_le_bytes()).collect();
    let share = b.constant(TensorType::new(ElementType::Float, [&[1, 1], &positions[2..]].concat()), share);
    let shares = b.binary("Mul", dy, share)?;
    let dims: Vec<u64> = [channels, 1].into_iter().chain(kernel.iter().map(|&k| k as u64)).collect();
    let ones = vec![1.0f32; dims.iter().product::<u64>() as usize];
    let ones = ones.into_iter().flat_map(f32::to_le_bytes).collect();
    let ones = b.constant(TensorType::new(ElementType::Float, dims), ones);
    let dx = window.image(b, shares, ones, ty)?;
    b.give(0, dx)
}

/// dY at the positions of the slice, else 0. The same slice of all indices gives the positions.
fn slice_grad(b: &mut Builder<'_>) -> Option<()> {
    let (dy, ty) = (b.floats(0)?, b.wanted(0)?);
    let (all, part) = (ty.element_count()?, b.dims(dy));
    let bounds: Vec<ValueId> = (2..6).map_while(|index| b.operand(index)).collect();
    if bounds.len() < 2 || (bounds.len()..4).any(|index| b.operand(2 + index).is_some()) {
        return None;
    }
    let ends = [0, all as i64, 1].map(|end| b.integer(end));
    let places = b.add("Range", [], &ends, TensorType::new(ElementType::Int64, [all]));
    let places = b.reshape(places, &ty.dims)?;
    let slice = [&[places][..], &bounds].concat();
    let places = b.add("Slice", [], &slice, TensorType::new(ElementType::Int64, &part[..]));
    let count = part.iter().product::<u64>();
    let places = b.reshape(places, &[count, 1])?;
    let flat = b.reshape(dy, &[count])?;
    let zeros = b.zeros(&[all]);
    let dx = b.add("ScatterND", [], &[zeros, places, flat], TensorType::new(ElementType::Float, [all]));
    let dx = b.reshape(dx, &ty.dims)?;
    b.give(0, dx)
}

/// `(X - mean) · 1/σ`.
fn normalized(b: &mut Builder<'_>, x: ValueId, mean: ValueId, inverse: ValueId) -> Option<ValueId> {
    let centred = b.binary("Sub", x, mean)?;
    b.binary("Mul", centred, inverse)
}

/// `1/σ · (g - mean(g) - x̂ · mean(g · x̂))` with `g = dY · scale`; dscale and dbias are sums over rows.
fn layer_norm_grad(b: &mut Builder<'_>) -> Option<()> {
    let [dy, x, scale, mean, inverse] = [0, 1, 2, 3, 4].map(|i| b.floats(i));
    let (dy, x, scale, mean, inverse) = (dy?, x?, scale?, mean?, inverse?);
    let dims = b.dims(x);
    let axis = b.axis(dims.len())?;
    if [mean, inverse].iter().any(|&value| b.dims(value).len() != dims.len()) {
        return None;
    }
    let across: Vec<usize> = (axis..dims.len()).collect();
    let rows: Vec<usize> = (0..axis).collect();
    let share = 1.0 / dims[axis..].iter().product::<u64>() as f32;
    let x = normalized(b, x, mean, inverse)?;
    if b.wants(0) {
        let g = b.binary("Mul", dy, scale)?;
        let level = b.sum(g, &across, true)?;
        let level = b.scaled(level, share)?;
        let product = b.binary("Mul", g, x)?;
        let about = b.sum(product, &across, true)?;
        let about = b.scaled(about, share)?;
        let lean = b.binary("Mul", x, about)?;
        let rest = b.binary("Sub", g, level)?;
        let rest = b.binary("Sub", rest, lean)?;
        let dx = b.binary("Mul", rest, inverse)?;
        b.give(0, dx)?;
    }
    for index in [1, 2] {
        let Some(ty) = b.wanted(index) else { continue };
        let each = if index == 1 { b.binary("Mul", dy, x)? } else { dy };
        let sum = if rows.is_empty() { each } else { b.sum(each, &rows, false)? };
        let sum = if b.dims(sum) == ty.dims { sum } else { b.reshape(sum, &ty.dims)? };
        b.give(index, sum)?;
    }
    Some(())
}

/// A value per channel, reshaped to broadcast against tensors of this rank.
fn beside(b: &mut Builder<'_>, value: ValueId, rank: usize) -> Option<ValueId> {
    let mut dims = vec![1; rank];
    *dims.get_mut(1)? = *b.dims(value).first()?;
    b.reshape(value, &dims)
}

fn all_but_channels(rank: usize) -> Vec<usize> {
    (0..rank).filter(|&axis| axis != 1).collect()
}

/// In training: normalizes by the statistics of the batch and updates the running ones.
fn batch_norm(b: &mut Builder<'_>) -> Option<()> {
    if !b.flag("training_mode")? {
        return None;
    }
    let [x, scale, bias, mean, variance] = [0, 1, 2, 3, 4].map(|i| b.floats(i));
    let (x, scale, bias, mean, variance) = (x?, scale?, bias?, mean?, variance?);
    let (momentum, epsilon) = (b.float("momentum")?, b.float("epsilon")?);
    let dims = b.dims(x);
    let channels = *dims.get(1)?;
    let others = all_but_channels(dims.len());
    let share = 1.0 / others.iter().map(|&axis| dims[axis]).product::<u64>() as f32;
    let level = b.sum(x, &others, true)?;
    let level = b.scaled(level, share)?;
    let centred = b.binary("Sub", x, level)?;
    let square = b.binary("Mul", centred, centred)?;
    let spread = b.sum(square, &others, true)?;
    let spread = b.scaled(spread, share)?;
    let smallest = b.scalar(epsilon);
    let inverse = b.binary("Add", spread, smallest)?;
    let inverse = b.unary("Sqrt", inverse)?;
    let inverse = b.unary("Reciprocal", inverse)?;
    if b.wants(0) {
        let (scale, bias) = (beside(b, scale, dims.len())?, beside(b, bias, dims.len())?);
        let factor = b.binary("Mul", inverse, scale)?;
        let y = b.binary("Mul", centred, factor)?;
        let y = b.binary("Add", y, bias)?;
        b.give(0, y)?;
    }
    for (index, running, now) in [(1, mean, level), (2, variance, spread)] {
        let kept = b.scaled(running, momentum)?;
        let now = b.reshape(now, &[channels])?;
        let now = b.scaled(now, 1.0 - momentum)?;
        let new = b.binary("Add", kept, now)?;
        b.give_written(index, new)?;
    }
    for (index, saved) in [(3, level), (4, inverse)] {
        if b.wants(index) {
            let saved = b.reshape(saved, &[channels])?;
            b.give(index, saved)?;
        }
    }
    Some(())
}

/// `scale/σ · (dY - mean(dY) - x̂ · mean(dY · x̂))`.
fn batch_norm_grad(b: &mut Builder<'_>) -> Option<()> {
    let [dy, x, scale, mean, inverse] = [0, 1, 2, 3, 4].map(|i| b.floats(i));
    let (dy, x, scale, mean, inverse) = (dy?, x?, scale?, mean?, inverse?);
    let dims = b.dims(x);
    let others = all_but_channels(dims.len());
    let share = 1.0 / others.iter().map(|&axis| dims[axis]).product::<u64>() as f32;
    let [mean, inverse, scale] = [mean, inverse, scale].map(|value| beside(b, value, dims.len()));
    let (inverse, scale) = (inverse?, scale?);
    let x = normalized(b, x, mean?, inverse)?;
    let product = b.binary("Mul", dy, x)?;
    let dscale = b.sum(product, &others, true)?;
    let dbias = b.sum(dy, &others, true)?;
    if b.wants(0) {
        let about = b.scaled(dscale, share)?;
        let level = b.scaled(dbias, share)?;
        let lean = b.binary("Mul", x, about)?;
        let rest = b.binary("Sub", dy, level)?;
        let rest = b.binary("Sub", rest, lean)?;
        let factor = b.binary("Mul", scale, inverse)?;
        let dx = b.binary("Mul", rest, factor)?;
        b.give(0, dx)?;
    }
    for (index, sum) in [(1, dscale), (2, dbias)] {
        if let Some(ty) = b.wanted(index) {
            let sum = b.reshape(sum, &ty.dims)?;
            b.give(index, sum)?;
        }
    }
    Some(())
}

/// `dY / (1 - ratio)` where the mask is set, else 0.
fn dropout_grad(b: &mut Builder<'_>) -> Option<()> {
    let (dy, mask) = (b.floats(0)?, b.operand(1)?);
    let dropped = if b.operand(2).is_some() { number(b, 2)? } else { b.scalar(0.5) };
    let (zero, one) = (b.scalar(0.0), b.scalar(1.0));
    let kept = b.binary("Sub", one, dropped)?;
    let scaled = b.binary("Div", dy, kept)?;
    let ty = b.ty(dy)?;
    let dx = b.add("Where", [], &[mask, scaled, zero], ty);
    b.give(0, dx)
}

/// `X · scale`, or `X / scale` with `scale_down`.
fn scale(b: &mut Builder<'_>) -> Option<()> {
    let (x, mut scale) = (b.floats(0)?, b.operand(1)?);
    let of = b.ty(scale)?;
    if of.element != ElementType::Float {
        scale = b.cast(scale, ElementType::Float)?;
    }
    if !of.dims.is_empty() {
        scale = b.reshape(scale, &[])?;
    }
    let op = if b.flag("scale_down")? { "Div" } else { "Mul" };
    let y = b.binary(op, x, scale)?;
    b.give(0, y)
}

/// dY, added at the positions of the largest elements; the second operand has their flat indices in X.
fn max_pool_grad(b: &mut Builder<'_>) -> Option<()> {
    let (dy, places, ty) = (b.floats(0)?, b.operand(1)?, b.wanted(0)?);
    if !adds(b) || b.flag("storage_order")? {
        return None;
    }
    let count = b.ty(dy)?.element_count()?;
    let flat = b.reshape(dy, &[count])?;
    let places = b.reshape(places, &[count, 1])?;
    let zeros = b.zeros(&[ty.element_count()?]);
    let sums = TensorType::new(ElementType::Float, [ty.element_count()?]);
    let sums = b.add("ScatterND", [("reduction", "add".into())], &[zeros, places, flat], sums);
    let dx = b.reshape(sums, &ty.dims)?;
    b.give(0, dx)
}

/// Whether ScatterND can add, as it does since version 16.
fn adds(b: &Builder<'_>) -> bool {
    b.graph().opsets.get("").is_some_and(|&version| version >= 16)
}

/// For the first axis: rows of dY, added at the indices.
fn gather_grad(b: &mut Builder<'_>) -> Option<()> {
    let (mut indices, dy, ty) = (b.operand(1)?, b.floats(2)?, b.wanted(0)?);
    if b.axis(ty.dims.len())? != 0 || !adds(b) {
        return None;
    }
    let of = b.ty(indices)?;
    if of.element != ElementType::Int64 {
        indices = b.cast(indices, ElementType::Int64)?;
    }
    let rows = b.reshape(indices, &[&of.dims[..], &[1]].concat())?;
    let zeros = b.zeros(&ty.dims);
    let dx = b.add("ScatterND", [("reduction", "add".into())], &[zeros, rows, dy], ty);
    b.give(0, dx)
}

/// `(exp(log-probabilities) - one-hot(labels)) · dloss` for labels that are not ignored, else 0; divided by their
/// number if the loss is a mean.
fn cross_entropy_grad(b: &mut Builder<'_>) -> Option<()> {
    let (dloss, log, labels) = (b.floats(0)?, b.floats(1)?, b.operand(2)?);
    if b.operand(3).is_some() {
        return None;
    }
    let dims = b.dims(log);
    let classes = *dims.get(1)?;
    let positions = [&dims[..1], &dims[2..]].concat();
    if b.dims(labels) != positions {
        return None;
    }
    let beside = [&dims[..1], &[1], &dims[2..]].concat();
    let counts = if b.has("ignore_index") {
        let ignored = b.int("ignore_index")?;
        let of = b.ty(labels)?.element;
        let ignored = match of {
            ElementType::Int64 => ignored.to_le_bytes().to_vec(),
            ElementType::Int32 => i32::try_from(ignored).ok()?.to_le_bytes().to_vec(),
            _ => return None,
        };
        let ignored = b.constant(TensorType::new(of, []), ignored);
        let equal = b.binary("Equal", labels, ignored)?;
        let counts = b.unary("Not", equal)?;
        Some(b.cast(counts, ElementType::Float)?)
    } else {
        None
    };
    let factor = match b.text("reduction")? {
        b"mean" => match counts {
            None => b.scaled(dloss, 1.0 / positions.iter().product::<u64>() as f32)?,
            Some(counts) => {
                let all: Vec<usize> = (0..positions.len()).collect();
                let count = b.sum(counts, &all, false)?;
                // If all labels are ignored, every gradient is 0.
                let one = b.scalar(1.0);
                let count = b.binary("Max", count, one)?;
                b.binary("Div", dloss, count)?
            }
        },
        b"sum" => dloss,
        b"none" => b.reshape(dloss, &beside)?,
        _ => return None,
    };
    let probability = b.unary("Exp", log)?;
    let depth = b.list(&[classes as i64]);
    let values = [0.0f32, 1.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    let values = b.constant(TensorType::new(ElementType::Float, [2]), values);
    let ty = b.ty(log)?;
    let hot = b.add("OneHot", [("axis", 1.into())], &[labels, depth, values], ty);
    let mut rest = b.binary("Sub", probability, hot)?;
    if let Some(counts) = counts {
        let counts = b.reshape(counts, &beside)?;
        rest = b.binary("Mul", rest, counts)?;
    }
    let dx = b.binary("Mul", rest, factor)?;
    b.give(0, dx)
}

/// The sum of buffer and gradient, or the gradient if the flag is set; and a flag that says so.
fn accumulate(b: &mut Builder<'_>) -> Option<()> {
    let (buffer, gradient) = (b.floats(0)?, b.floats(1)?);
    let mut sum = b.binary("Add", buffer, gradient)?;
    if let Some(reset) = b.operand(2) {
        let ty = b.ty(sum)?;
        let reset = if b.dims(reset).len() <= ty.dims.len() { reset } else { b.reshape(reset, &[])? };
        sum = b.add("Where", [], &[reset, gradient, sum], ty);
    }
    b.give_written(1, sum)?;
    if let Some(ty) = b.wanted(0) {
        let bytes = vec![1; ty.element_count()? as usize];
        let flag = b.constant(ty, bytes);
        b.give(0, flag)?;
    }
    Some(())
}

/// The number in a tensor of one element.
fn number(b: &mut Builder<'_>, index: usize) -> Option<ValueId> {
    let value = b.floats(index)?;
    if b.dims(value).is_empty() { Some(value) } else { b.reshape(value, &[]) }
}

/// `w - rate · g`.
fn sgd(b: &mut Builder<'_>) -> Option<()> {
    let (rate, w, g) = (number(b, 0)?, b.floats(1)?, b.floats(2)?);
    let change = b.binary("Mul", g, rate)?;
    let new = b.binary("Sub", w, change)?;
    b.give_written(0, new)
}

/// `1 - base^step`, or 1 without bias correction.
fn correction(b: &mut Builder<'_>, base: f32, step: ValueId, corrects: bool) -> Option<ValueId> {
    let one = b.scalar(1.0);
    if !corrects {
        return Some(one);
    }
    let base = b.scalar(base);
    let power = b.binary("Pow", base, step)?;
    b.binary("Sub", one, power)
}

/// AdamW of one parameter: both moments, and a step divided by the root of the second moment.
fn adamw(b: &mut Builder<'_>) -> Option<()> {
    let (rate, step) = (number(b, 0)?, b.operand(1)?);
    let (w, g, m, v) = (b.floats(2)?, b.floats(3)?, b.floats(4)?, b.floats(5)?);
    if b.operand(6).is_some() {
        return None;
    }
    let (alpha, beta) = (b.float("alpha")?, b.float("beta")?);
    let (epsilon, decay) = (b.float("epsilon")?, b.float("weight_decay")?);
    let corrects = b.flag("correct_bias")?;
    let decays_first = !b.flag("adam_mode")?;
    let step = b.reshape(step, &[])?;
    let step = b.cast(step, ElementType::Float)?;
    let first = correction(b, alpha, step, corrects)?;
    let second = correction(b, beta, step, corrects)?;
    let root = b.unary("Sqrt", second)?;

    let kept = b.scaled(m, alpha)?;
    let now = b.scaled(g, 1.0 - alpha)?;
    let m = b.binary("Add", kept, now)?;
    let kept = b.scaled(v, beta)?;
    let square = b.binary("Mul", g, g)?;
    let now = b.scaled(square, 1.0 - beta)?;
    let v = b.binary("Add", kept, now)?;

    let size = b.unary("Sqrt", v)?;
    let smallest = b.scalar(epsilon);
    let fading = b.scaled(rate, decay)?;
    let one = b.scalar(1.0);
    let fading = b.binary("Sub", one, fading)?;
    let new = if decays_first {
        let rate = b.binary("Div", rate, first)?;
        let size = b.binary("Div", size, root)?;
        let size = b.binary("Add", size, smallest)?;
        let change = b.binary("Div", m, size)?;
        let change = b.binary("Mul", change, rate)?;
        let faded = b.binary("Mul", w, fading)?;
        b.binary("Sub", faded, change)?
    } else {
        let rate = b.binary("Mul", rate, root)?;
        let rate = b.binary("Div", rate, first)?;
        let size = b.binary("Add", size, smallest)?;
        let change = b.binary("Div", m, size)?;
        let change = b.binary("Mul", change, rate)?;
        let changed = b.binary("Sub", w, change)?;
        b.binary("Mul", changed, fading)?
    };
    b.give_written(0, new)?;
    b.give_written(1, m)?;
    b.give_written(2, v)
}

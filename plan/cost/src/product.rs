//! Matrix products, and operations computed like them: convolutions, attention, contractions.
//!
//! A multiply-add counts as two operations. A convolution counts as the matrix product that it is after its windows
//! have been laid out as rows (Chellapilla, Puri, Simard, *High performance convolutional neural networks for document
//! processing*, 2006), without laying them out: each tensor is moved once (Chetlur et al., *cuDNN: efficient primitives
//! for deep learning*, arXiv:1410.0759, §3).

use lmsc_ir::TensorType;

use super::kernel::{Form, Kernel, Product};
use super::rules::{Cost, Cx, count};

/// The share of the peak that one large product reaches, in parts per thousand (assumed, as all of these).
const ONE: u64 = 750;
/// The share that many smaller products in one kernel reach.
const BATCHED: u64 = 600;
/// The shares that convolutions reach: with few input channels, with windows of one element, all others.
const FEW_CHANNELS: u64 = 250;
const POINTWISE: u64 = 550;
const WINDOWED: u64 = 700;
/// Fewer input channels than this are few.
const FEW: u64 = 16;
/// The time of gradients relative to the convolution itself, in percent: of the input and of the weights.
const INPUT_GRADIENT: u64 = 105;
const WEIGHT_GRADIENT: u64 = 110;

/// `Gemm(A, B, C)`.
pub(super) fn gemm(cx: &Cx<'_>) -> Option<Cost> {
    let (a, y) = (cx.tensor(0)?, cx.result_tensor(0)?);
    let (&[m, n], &[rows, columns]) = (&*y.dims, &*a.dims) else { return None };
    let k = if cx.is_set("transA") { rows } else { columns };
    Some(Kernel::product(Product { batch: 1, m, n, k, share: ONE }, cx.moved()).into())
}

/// `MatMul` of operands `a` and `b`, also with the transpositions of `FusedMatMul`.
pub(super) fn matmul(cx: &Cx<'_>, a: usize, b: usize) -> Option<Cost> {
    let (a, b) = (cx.tensor(a)?, cx.tensor(b)?);
    let rank = a.dims.len();
    let inner = match (cx.is_set("transA"), cx.is_set("transBatchA")) {
        (false, _) => rank.checked_sub(1)?,
        (true, false) => rank.saturating_sub(2),
        (true, true) => 0,
    };
    multiply(cx, a, b, *a.dims.get(inner)?)
}

/// `MatMulNBits(A, B)`, whose second operand is packed: attributes `K` and `N` give its extents.
pub(super) fn matmul_bits(cx: &Cx<'_>) -> Option<Cost> {
    let a = cx.tensor(0)?;
    multiply(cx, a, &TensorType::new(a.element, [0, 0]), *a.dims.last()?)
}

/// The product of two tensors over an inner extent `k`. A matrix on the right multiplies all rows of the left at once.
fn multiply(cx: &Cx<'_>, a: &TensorType, b: &TensorType, k: u64) -> Option<Cost> {
    let y = &cx.result_tensor(0)?.dims;
    let product = match (a.dims.len(), b.dims.len(), &**y) {
        (_, 0 | 1, _) => Product { batch: 1, m: count(y), n: 1, k, share: ONE },
        (1, _, [batch @ .., n]) => Product { batch: count(batch), m: 1, n: *n, k, share: ONE },
        (_, 2, [rows @ .., n]) => Product { batch: 1, m: count(rows), n: *n, k, share: ONE },
        (_, _, [batch @ .., m, n]) => Product { batch: count(batch), m: *m, n: *n, k, share: BATCHED },
        _ => return None,
    };
    Some(Kernel::product(product, cx.moved()).into())
}

/// `Attention(Q, K, V)`, in one kernel: products of Q with K and of the result with V, which never leave the chip (Dao
/// et al., *FlashAttention*, arXiv:2205.14135).
pub(super) fn attention(cx: &Cx<'_>) -> Option<Cost> {
    let (q, k) = (cx.tensor(0)?, cx.tensor(1)?);
    let [batch @ .., m, _] = &*q.dims else { return None };
    let n = *k.dims.get(k.dims.len().checked_sub(2)?)?;
    let lanes = count(&q.dims).saturating_add(count(&cx.result_tensor(0)?.dims));
    let product = Product { batch: count(batch), m: *m, n, k: 1, share: BATCHED };
    let flops = lanes.saturating_mul(n).saturating_mul(2);
    Some(Kernel { flops, bytes: cx.moved(), times: 1, form: Form::Product(product) }.into())
}

/// `ai.lmsc.Attention` and `ai.lmsc.AttentionGrad`, whose queries, keys and values are operands `first` to `first + 2`; of the
/// products of a tile, `by_width` sum over the width of queries and keys, and `by_value` over that of values. Tiles in which no
/// score counts are left out where scores are causal.
pub(super) fn tiled_attention(cx: &Cx<'_>, first: usize, by_width: u64, by_value: u64) -> Option<Cost> {
    let (q, k, v) = (cx.tensor(first)?, cx.tensor(first + 1)?, cx.tensor(first + 2)?);
    let (&[batch, heads, m, width], &[_, _, n, _]) = (&*q.dims, &*k.dims) else { return None };
    let terms = width.saturating_mul(by_width).saturating_add(v.dims.last()?.saturating_mul(by_value));
    let product = Product { batch: batch.saturating_mul(heads), m, n, k: terms, share: BATCHED };
    let scores = count(&[m, n]);
    // Query i sees i + 1 keys, at most all of them.
    let square = m.min(n);
    let unseen = if cx.is_set("is_causal") {
        n.saturating_mul(square).saturating_sub(square.saturating_mul(square.saturating_add(1)) / 2)
    } else {
        0
    };
    let seen = u128::from(scores.saturating_sub(unseen));
    let flops = u128::from(product.flops()).saturating_mul(seen) / u128::from(scores.max(1));
    let flops = u64::try_from(flops).unwrap_or(u64::MAX);
    Some(Kernel { flops, bytes: cx.moved(), times: 1, form: Form::Product(product) }.into())
}

/// `Einsum` of two operands, without ellipsis.
pub(super) fn einsum(cx: &Cx<'_>) -> Option<Cost> {
    let equation = cx.text("equation")?.replace(' ', "");
    let (terms, result) = equation.split_once("->")?;
    let (left, right) = terms.split_once(',')?;
    let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
    let as_labelled = left.len() == a.dims.len() && right.len() == b.dims.len() && cx.operand(2).is_none();
    if !as_labelled {
        return None;
    }
    let mut product = Product { batch: 1, m: 1, n: 1, k: 1, share: BATCHED };
    let labels = left.chars().zip(&a.dims).chain(right.chars().zip(&b.dims));
    for (i, (label, &extent)) in labels.enumerate() {
        let extents = match (left.contains(label), right.contains(label), result.contains(label)) {
            // Counted at its first occurrence.
            (true, true, _) if i >= a.dims.len() => continue,
            (true, true, true) => &mut product.batch,
            (true, true, false) => &mut product.k,
            (true, false, _) => &mut product.m,
            _ => &mut product.n,
        };
        *extents = extents.saturating_mul(extent);
    }
    Some(Kernel::product(product, cx.moved()).into())
}

/// The extents of a convolution from `x` to `y`, or of a transposed one from `y` to `x`.
struct Convolution {
    /// Positions of the input and of the output, over all images.
    positions: [u64; 2],
    /// Channels of the input and of the output, in one group.
    channels: [u64; 2],
    groups: u64,
    /// Elements of a window.
    window: u64,
    /// Multiply-adds.
    macs: u64,
    /// Device memory needed while it runs.
    workspace: u64,
}

impl Convolution {
    /// `x: [N, C, …]`, `w: [M, C / groups, …]`, `y: [N, M, …]`.
    fn new(x: &TensorType, w: &TensorType, y: &TensorType) -> Option<Convolution> {
        let ([images, c, x_space @ ..], [_, m, y_space @ ..]) = (&*x.dims, &*y.dims) else { return None };
        let [_, in_group, window @ ..] = &*w.dims else { return None };
        let groups = c.checked_div(*in_group).filter(|&groups| groups > 0)?;
        let (window, largest) = (count(window), x.byte_size()?.max(y.byte_size()?).0);
        Some(Convolution {
            positions: [x_space, y_space].map(|space| count(space).saturating_mul(*images)),
            channels: [*in_group, m / groups],
            groups,
            window,
            macs: count(&y.dims).saturating_mul(*in_group).saturating_mul(window),
            // An assumption: algorithms that trade memory for speed (cuDNN's with precomputed indices or transformed
            // tiles) need a quarter of the larger tensor; a window of one element needs none.
            workspace: if window > 1 { largest / 4 } else { 0 },
        })
    }

    fn share(&self, slower_by_percent: u64) -> u64 {
        let share = match (self.channels[0] < FEW, self.window) {
            (true, _) => FEW_CHANNELS,
            (false, 1) => POINTWISE,
            (false, _) => WINDOWED,
        };
        share * 100 / slower_by_percent
    }

    fn kernel(&self, [m, n]: [u64; 2], slower_by_percent: u64, bytes: u64) -> Kernel {
        // A strided convolution reads only some of its input, so the inner extent is an average.
        let results = self.groups.saturating_mul(m).saturating_mul(n);
        let k = self.macs.checked_div(results).unwrap_or_default();
        let product = Product { batch: self.groups, m, n, k, share: self.share(slower_by_percent) };
        Kernel { flops: self.macs.saturating_mul(2), bytes, times: 1, form: Form::Product(product) }
    }

    /// From the input to the output.
    fn forward(&self, slower_by_percent: u64, bytes: u64) -> Kernel {
        self.kernel([self.positions[1], self.channels[1]], slower_by_percent, bytes)
    }

    /// From the output to the input.
    fn backward(&self, slower_by_percent: u64, bytes: u64) -> Kernel {
        self.kernel([self.positions[0], self.channels[0]], slower_by_percent, bytes)
    }

    /// From both to the weights.
    fn weights(&self, bytes: u64) -> Kernel {
        let [inputs, outputs] = self.channels;
        self.kernel([inputs.saturating_mul(self.window), outputs], WEIGHT_GRADIENT, bytes)
    }
}

/// `Conv` of operand 0 with the weights `w`.
pub(super) fn conv(cx: &Cx<'_>, w: usize) -> Option<Cost> {
    let conv = Convolution::new(cx.tensor(0)?, cx.tensor(w)?, cx.result_tensor(0)?)?;
    Some(Cost { kernels: vec![conv.forward(100, cx.moved())], workspace: conv.workspace })
}

/// `ConvTranspose(X, W)`: the operation of a convolution with these weights on the gradient of its output.
pub(super) fn conv_transpose(cx: &Cx<'_>) -> Option<Cost> {
    let conv = Convolution::new(cx.result_tensor(0)?, cx.tensor(1)?, cx.tensor(0)?)?;
    Some(Cost { kernels: vec![conv.backward(INPUT_GRADIENT, cx.moved())], workspace: conv.workspace })
}

/// `ConvGrad(dY, X, W)`: one kernel for each requested result of dX, dW and dB.
pub(super) fn conv_gradient(cx: &Cx<'_>) -> Option<Cost> {
    let conv = Convolution::new(cx.tensor(1)?, cx.tensor(2)?, cx.tensor(0)?)?;
    Some(gradients(cx, &conv, conv.backward(INPUT_GRADIENT, sum([cx.read(0), cx.read(2), cx.written(0)]))))
}

/// `ConvTransposeGrad(dY, X, W)`: the same, dX being a convolution of dY.
pub(super) fn conv_transpose_gradient(cx: &Cx<'_>) -> Option<Cost> {
    let conv = Convolution::new(cx.tensor(0)?, cx.tensor(2)?, cx.tensor(1)?)?;
    Some(gradients(cx, &conv, conv.forward(100, sum([cx.read(0), cx.read(2), cx.written(0)]))))
}

fn gradients(cx: &Cx<'_>, conv: &Convolution, input: Kernel) -> Cost {
    let weights = conv.weights(sum([cx.read(0), cx.read(1), cx.written(1)]));
    let bias = Kernel::stream(cx.read(0) / 4, sum([cx.read(0), cx.written(2)]));
    let asked_for = [(0, input), (1, weights), (2, bias)].into_iter();
    let kernels = asked_for.filter(|(index, _)| cx.result(*index).is_some()).map(|(_, kernel)| kernel);
    Cost { kernels: kernels.collect(), workspace: conv.workspace }
}

fn sum<const N: usize>(bytes: [u64; N]) -> u64 {
    bytes.into_iter().fold(0, u64::saturating_add)
}

/// A product of one large matrix with another, of elements of `width` bytes, for layers made of several.
pub(super) fn plain(batch: u64, m: u64, n: u64, k: u64, width: u64) -> Kernel {
    let product = Product { batch, m, n, k, share: ONE };
    let area = |a: u64, b: u64| a.saturating_mul(b).saturating_mul(batch).saturating_mul(width);
    Kernel::product(product, sum([area(m, k), area(k, n), area(m, n)]))
}

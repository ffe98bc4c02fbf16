//! Convolutions and pooling.

use lmsc_ir::{ElementType, TensorType};

use super::{Cx, Why};
use crate::stablehlo::writer::{Val, Window};

/// The attributes of convolutions and pooling for each spatial dimension.
struct Space {
    kernel: Vec<i64>,
    strides: Vec<i64>,
    dilations: Vec<i64>,
    low: Vec<i64>,
    high: Vec<i64>,
}

impl Space {
    /// From the attributes; the extents of a convolution's kernel are those of its weights.
    fn of(cx: &Cx<'_>, kernel: &[u64]) -> Result<Space, Why> {
        let count = kernel.len();
        match cx.text("auto_pad") {
            Some(b"NOTSET" | b"VALID") => {}
            _ => return Err("there is no rule for its `auto_pad`".into()),
        }
        let list = |name: &str, count: usize, default: i64| {
            cx.ints(name).map_or_else(|| vec![default; count], <[i64]>::to_vec)
        };
        for (name, expected) in [("pads", 2 * count), ("strides", count), ("dilations", count)] {
            if cx.ints(name).is_some_and(|list| list.len() != expected) {
                return Err(Why(format!("its attribute `{name}` has not {expected} elements")));
            }
        }
        if cx.knows("output_shape") && cx.ints("output_shape").is_some() {
            return Err("there is no rule for its `output_shape`".into());
        }
        // `VALID` means no padding, and `pads` is ignored.
        let is_valid = cx.text("auto_pad") == Some(b"VALID");
        let mut low = if is_valid { vec![0; 2 * count] } else { list("pads", 2 * count, 0) };
        let high = low.split_off(count);
        Ok(Space {
            kernel: kernel.iter().map(|&extent| extent as i64).collect(),
            strides: list("strides", count, 1),
            dilations: list("dilations", count, 1),
            low,
            high,
        })
    }

    /// From the attributes of pooling, which include the kernel.
    fn of_pool(cx: &Cx<'_>) -> Result<Space, Why> {
        let kernel: Vec<u64> =
            cx.ints("kernel_shape").unwrap_or_default().iter().map(|&k| k as u64).collect();
        Space::of(cx, &kernel)
    }

    fn count(&self) -> usize {
        self.kernel.len()
    }

    /// The reach of a kernel beyond its first element.
    fn reach(&self, axis: usize) -> i64 {
        self.dilations[axis] * (self.kernel[axis] - 1)
    }

    /// The padding behind `extent` elements with which a window has `places` positions.
    fn behind(&self, axis: usize, extent: i64, places: i64) -> i64 {
        (places - 1) * self.strides[axis] + self.reach(axis) + 1 - extent - self.low[axis]
    }

    /// The padding around a result, its elements spread by the strides, for every position of a window over `ty`.
    fn around(&self, axis: usize, result: &Val, ty: &TensorType) -> (i64, i64) {
        let low = self.reach(axis) - self.low[axis];
        let spread = (result.dims()[2 + axis] as i64 - 1) * self.strides[axis] + 1;
        (low, ty.dims[2 + axis] as i64 + self.reach(axis) - spread - low)
    }
}

/// `[b, f, 0, 1]`, with these names of the first two dimensions.
fn names(first: [&str; 2], count: usize) -> String {
    let space = (0..count).map(|axis| format!(", {axis}")).collect::<String>();
    format!("[{}, {}{space}]", first[0], first[1])
}

fn conv_names(x: [&str; 2], w: [&str; 2], y: [&str; 2], count: usize) -> String {
    format!("{}x{}->{}", names(x, count), names(w, count), names(y, count))
}

/// Adds a bias for each channel, if there is one.
fn biased(cx: &mut Cx<'_>, y: Val, index: usize) -> Val {
    match cx.optional(index) {
        Some(bias) => {
            let bias = cx.w.broadcast_along(&bias, &[1], &y.ty.dims);
            cx.op("add", &y, &bias)
        }
        None => y,
    }
}

pub(super) fn conv(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (x, w, ty) = (cx.operand(0)?, cx.operand(1)?, cx.ty(0)?);
    let space = Space::of(cx, &w.dims()[2..])?;
    let count = space.count();
    // If the window has one position, IREE fails on padding that the window does not read; otherwise equal padding is faster.
    let high = |axis: usize| match ty.dims[2 + axis] {
        1 => space.high[axis].min(space.behind(axis, x.dims()[2 + axis] as i64, 1).max(0)),
        _ => space.high[axis],
    };
    let padding: Vec<(i64, i64)> = (0..count).map(|axis| (space.low[axis], high(axis))).collect();
    let ones = vec![1; count];
    let window =
        Window { strides: &space.strides, padding: &padding, base: &ones, dilations: &space.dilations };
    let names = conv_names(["b", "f"], ["o", "i"], ["b", "f"], count);
    let groups = cx.int("group")?;
    let y = cx.w.convolution([&x, &w], &names, [groups, 1], &window, &ty.dims);
    let y = biased(cx, y, 2);
    cx.give(0, y)
}

/// The gradient of a convolution: a convolution over X with its elements spread, with a reversed kernel.
pub(super) fn conv_transpose(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (x, w, ty) = (cx.operand(0)?, cx.operand(1)?, cx.ty(0)?);
    let space = Space::of(cx, &w.dims()[2..])?;
    let y = transposed(cx, [&x, &w], &space, &ty)?;
    let y = biased(cx, y, 2);
    cx.give(0, y)
}

fn transposed(cx: &mut Cx<'_>, [x, w]: [&Val; 2], space: &Space, ty: &TensorType) -> Result<Val, Why> {
    let count = space.count();
    let groups = cx.int("group")?;
    let mut w = w.clone();
    if groups > 1 {
        // The groups are in the dimension of input channels; StableHLO expects them in that of output channels.
        let (into, out) = (w.dims()[0], w.dims()[1]);
        let each = into / groups as u64;
        let rest = w.dims()[2..].to_vec();
        w = cx.w.reshape(&w, &[&[groups as u64, each, out], &rest[..]].concat());
        let permutation: Vec<usize> = [1, 0, 2].into_iter().chain(3..3 + count).collect();
        w = cx.w.transpose(&w, &permutation);
        w = cx.w.reshape(&w, &[&[each, groups as u64 * out], &rest[..]].concat());
    }
    let axes: Vec<usize> = (2..2 + count).collect();
    let w = cx.w.reverse(&w, &axes);
    let padding: Vec<(i64, i64)> = (0..count).map(|axis| space.around(axis, x, ty)).collect();
    let ones = vec![1; count];
    let window =
        Window { strides: &ones, padding: &padding, base: &space.strides, dilations: &space.dilations };
    let names = conv_names(["b", "f"], ["i", "o"], ["b", "f"], count);
    Ok(cx.w.convolution([x, &w], &names, [groups, 1], &window, &ty.dims))
}

/// The gradients of X, W and the bias: a transposed convolution of dY, a convolution of X by dY, and a sum.
pub(super) fn conv_grad(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (dy, x, w) = (cx.operand(0)?, cx.operand(1)?, cx.operand(2)?);
    let space = Space::of(cx, &w.dims()[2..])?;
    let count = space.count();
    if let Some(ty) = cx.wanted(0) {
        let dx = transposed(cx, [&dy, &w], &space, &ty)?;
        cx.give(0, dx)?;
    }
    if let Some(ty) = cx.wanted(1) {
        // The batch is the summed dimension; dY, its elements spread, is the kernel.
        let extent = |v: &Val, axis: usize| v.dims()[2 + axis] as i64;
        let padding: Vec<(i64, i64)> = (0..count)
            .map(|axis| (space.low[axis], space.behind(axis, extent(&x, axis), extent(&dy, axis))))
            .collect();
        let ones = vec![1; count];
        let window =
            Window { strides: &space.dilations, padding: &padding, base: &ones, dilations: &space.strides };
        let names = conv_names(["f", "b"], ["i", "o"], ["f", "b"], count);
        let groups = cx.int("group")?;
        let dw = cx.w.convolution([&x, &dy], &names, [1, groups], &window, &ty.dims);
        cx.give(1, dw)?;
    }
    bias_grad(cx, &dy, count)
}

/// The sum of dY for each channel.
fn bias_grad(cx: &mut Cx<'_>, dy: &Val, count: usize) -> Result<(), Why> {
    if cx.wanted(2).is_some() {
        let axes: Vec<usize> = (0..2 + count).filter(|&axis| axis != 1).collect();
        let db = cx.w.sum(dy, &axes);
        cx.give(2, db)?;
    }
    Ok(())
}

/// The gradients of X, W and the bias: a convolution of dY by W, one of dY by X, and a sum.
pub(super) fn conv_transpose_grad(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (dy, x, w) = (cx.operand(0)?, cx.operand(1)?, cx.operand(2)?);
    if cx.int("group")? != 1 {
        return Err("there is no rule for groups".into());
    }
    let space = Space::of(cx, &w.dims()[2..])?;
    let count = space.count();
    let ones = vec![1; count];
    let extent = |v: &Val, axis: usize| v.dims()[2 + axis] as i64;
    let padding: Vec<(i64, i64)> = (0..count)
        .map(|axis| (space.low[axis], space.behind(axis, extent(&dy, axis), extent(&x, axis))))
        .collect();
    if let Some(ty) = cx.wanted(0) {
        let window =
            Window { strides: &space.strides, padding: &padding, base: &ones, dilations: &space.dilations };
        let names = conv_names(["b", "f"], ["o", "i"], ["b", "f"], count);
        let dx = cx.w.convolution([&dy, &w], &names, [1, 1], &window, &ty.dims);
        cx.give(0, dx)?;
    }
    if let Some(ty) = cx.wanted(1) {
        // The batch is the summed dimension; X, its elements spread, is the kernel.
        let window =
            Window { strides: &space.dilations, padding: &padding, base: &ones, dilations: &space.strides };
        let names = conv_names(["f", "b"], ["i", "o"], ["f", "b"], count);
        let dw = cx.w.convolution([&dy, &x], &names, [1, 1], &window, &ty.dims);
        cx.give(1, dw)?;
    }
    bias_grad(cx, &dy, count)
}

/// The list preceded by an entry for each of the first two dimensions, batch and channels.
fn all<T: Copy>(first: T, space: &[T]) -> Vec<T> {
    [&[first, first], space].concat()
}

/// The padding of a pooling window over `extents`; the padding at the end follows from the result's extents.
fn padding_of(space: &Space, x: &TensorType, y: &TensorType) -> Vec<(i64, i64)> {
    let extent = |ty: &TensorType, axis: usize| ty.dims[2 + axis] as i64;
    let along = |axis| (space.low[axis], space.behind(axis, extent(x, axis), extent(y, axis)));
    all((0, 0), &(0..space.count()).map(along).collect::<Vec<_>>())
}

pub(super) fn max_pool(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (x, ty) = (cx.operand(0)?, cx.ty(0)?);
    let space = Space::of_pool(cx)?;
    let padding = padding_of(&space, &x.ty, &ty);
    let (kernel, strides, dilations) =
        (all(1, &space.kernel), all(1, &space.strides), all(1, &space.dilations));
    let ones = vec![1; x.rank()];
    let window = Window { strides: &strides, padding: &padding, base: &ones, dilations: &dilations };
    let Some(places) = cx.wanted(1) else {
        let lowest = cx.w.extreme(x.element(), true);
        let y = cx.w.reduce_window("maximum", &x, &lowest, &kernel, &window, &ty.dims);
        return cx.give(0, y);
    };
    if cx.flag("storage_order")? {
        return Err("its indices count columns first".into());
    }
    let count = x.ty.element_count().ok_or("it has too many elements")?;
    let small = count <= i32::MAX as u64;
    let element = if small { ElementType::Int32 } else { ElementType::Int64 };
    let numbers = cx.w.iota(&TensorType::new(element, [count]), 0);
    let numbers = cx.w.reshape(&numbers, &x.ty.dims);
    let [mut y, mut number] = cx.w.largest_in_window((&x, &numbers), &kernel, &window, &ty.dims);
    if cx.w.form.splits_windows() {
        let mut passed = cx.w.barrier(&[&y, &number]).into_iter();
        (y, number) = passed.next().zip(passed.next()).expect("a barrier gives what goes in");
    }
    let number = cx.w.convert(&number, places.element);
    cx.give(0, y)?;
    cx.give(1, number)
}

/// The divisor of the mean of a window.
fn counted(cx: &Cx<'_>, space: &Space) -> Result<f64, Why> {
    let pads = space.low.iter().chain(&space.high).any(|&pad| pad != 0);
    if cx.flag("ceil_mode")? || (pads && !cx.flag("count_include_pad")?) {
        return Err("its windows hold unequal numbers of elements".into());
    }
    Ok(space.kernel.iter().product::<i64>() as f64)
}

pub(super) fn average_pool(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (x, ty) = (cx.operand(0)?, cx.ty(0)?);
    let space = Space::of_pool(cx)?;
    let count = counted(cx, &space)?;
    let padding = padding_of(&space, &x.ty, &ty);
    let (kernel, strides, dilations) =
        (all(1, &space.kernel), all(1, &space.strides), all(1, &space.dilations));
    let ones = vec![1; x.rank()];
    let window = Window { strides: &strides, padding: &padding, base: &ones, dilations: &dilations };
    let zero = cx.scalar(0.0, x.element());
    let sum = cx.w.reduce_window("add", &x, &zero, &kernel, &window, &ty.dims);
    let y = cx.with("divide", &sum, count);
    cx.give(0, y)
}

/// Distributes dY equally over the elements of its windows.
pub(super) fn average_pool_grad(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (dy, ty) = (cx.operand(0)?, cx.ty(0)?);
    let space = Space::of_pool(cx)?;
    let count = counted(cx, &space)?;
    let share = cx.with("divide", &dy, count);
    let mut padding = vec![(0, 0); 2];
    for axis in 0..space.count() {
        padding.push(space.around(axis, &dy, &ty));
    }
    // Spread by padding: not every compiler supports a spread operand of a window.
    let zero = cx.scalar(0.0, dy.element());
    let between = all(0, &space.strides.iter().map(|stride| stride - 1).collect::<Vec<_>>());
    let edges: Vec<(i64, i64, i64)> =
        padding.iter().zip(between).map(|(&(low, high), between)| (low, high, between)).collect();
    let spread = cx.w.pad(&share, &zero, &edges);
    let ones = vec![1; dy.rank()];
    let none = vec![(0, 0); dy.rank()];
    let (kernel, dilations) = (all(1, &space.kernel), all(1, &space.dilations));
    let window = Window { strides: &ones, padding: &none, base: &ones, dilations: &dilations };
    let dx = cx.w.reduce_window("add", &spread, &zero, &kernel, &window, &ty.dims);
    cx.give(0, dx)
}

pub(super) fn global_average_pool(cx: &mut Cx<'_>) -> Result<(), Why> {
    let x = cx.operand(0)?;
    let axes: Vec<usize> = (2..x.rank()).collect();
    let count: u64 = x.dims()[2..].iter().product();
    let sum = cx.sum_kept(&x, &axes);
    let y = cx.with("divide", &sum, count as f64);
    cx.give(0, y)
}

pub(super) fn global_max_pool(cx: &mut Cx<'_>) -> Result<(), Why> {
    let x = cx.operand(0)?;
    let axes: Vec<usize> = (2..x.rank()).collect();
    let lowest = cx.w.extreme(x.element(), true);
    let largest = cx.w.reduce("maximum", &x, &lowest, &axes);
    let y = cx.kept(&largest, x.dims(), &axes);
    cx.give(0, y)
}

/// dY, added at the positions of the largest elements: the second operand has indices into all of X.
pub(super) fn max_pool_grad(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (dy, places, ty) = (cx.operand(0)?, cx.operand(1)?, cx.ty(0)?);
    if cx.flag("storage_order")? {
        return Err("its indices count columns first".into());
    }
    let (count, all) = (dy.ty.element_count(), ty.element_count());
    let (count, all) = count.zip(all).ok_or("it has too many elements")?;
    let flat = cx.w.reshape(&dy, &[count]);
    let places = cx.w.reshape(&places, &[count, 1]);
    let (zeros, flat) = cx.zeros_beside(&flat, &TensorType::new(dy.element(), [all]));
    let numbers = "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1";
    let sums = cx.w.scatter([&zeros, &places, &flat], numbers, Some("add"));
    let dx = cx.w.reshape(&sums, &ty.dims);
    cx.give(0, dx)
}

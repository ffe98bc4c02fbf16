//! Convolutions and pooling: sliding windows.

use lmsc_ir::words::count;
use lmsc_ir::{ElementType, TensorType};

use super::{Answer, Cx, Refusal, one, product, result_extent, show, unknown, wrong};

/// The attributes of a window that slides over the spatial axes.
struct Window<'a> {
    kernel: Vec<u64>,
    strides: Option<&'a [i64]>,
    dilations: Option<&'a [i64]>,
    pads: Option<&'a [i64]>,
    auto_pad: &'a str,
}

impl<'a> Window<'a> {
    /// The window of the node; its kernel from the attribute, or else `default`.
    fn new(cx: &Cx<'a>, rank: usize, default: Option<&[u64]>) -> Result<Window<'a>, Refusal> {
        let kernel = match (cx.int_list("kernel_shape")?, default) {
            (Some(kernel), _) => super::extents(kernel, || "attribute `kernel_shape`".to_owned())?,
            (None, Some(default)) => default.to_vec(),
            (None, None) => return wrong("attribute `kernel_shape` is missing"),
        };
        let auto_pad = if cx.knows("auto_pad") { cx.string("auto_pad")? } else { "NOTSET" };
        if !["", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"].contains(&auto_pad) {
            return wrong(format!(
                "attribute `auto_pad` is `{auto_pad}`; it is NOTSET, VALID, SAME_UPPER or SAME_LOWER"
            ));
        }
        let list = |name| Ok::<_, Refusal>(cx.int_list(name)?.filter(|l| !l.is_empty()));
        let window = Window {
            kernel,
            strides: list("strides")?,
            dilations: if cx.knows("dilations") { list("dilations")? } else { None },
            pads: list("pads")?,
            auto_pad,
        };
        let lengths = [
            (window.kernel.len(), "kernel_shape", rank),
            (window.strides.map_or(rank, <[i64]>::len), "strides", rank),
            (window.dilations.map_or(rank, <[i64]>::len), "dilations", rank),
            (window.pads.map_or(2 * rank, <[i64]>::len), "pads", 2 * rank),
        ];
        if let Some((found, name, expected)) = lengths.into_iter().find(|(n, _, e)| n != e) {
            let entries = count(found, "entry");
            let axes = if rank == 1 { "axis" } else { "axes" };
            return wrong(format!(
                "attribute `{name}` has {entries}, not {expected}: operand 0 has {rank} spatial {axes}"
            ));
        }
        Ok(window)
    }

    fn stride(&self, i: usize) -> Result<i128, Refusal> {
        match self.strides.map_or(1, |s| s[i]) {
            stride @ 1.. => Ok(stride.into()),
            _ => wrong(format!(
                "attribute `strides` is {}; strides are at least 1",
                show(self.strides.unwrap_or(&[]))
            )),
        }
    }

    /// The extent of the dilated window along the axis.
    fn reach(&self, i: usize) -> Result<i128, Refusal> {
        let dilation = self.dilations.map_or(1, |d| d[i]);
        if dilation < 1 {
            let dilations = show(self.dilations.unwrap_or(&[]));
            return wrong(format!("attribute `dilations` is {dilations}; dilations are at least 1"));
        }
        if self.kernel[i] == 0 {
            return wrong(format!("the kernel is {}; its extents are at least 1", show(&self.kernel)));
        }
        Ok((i128::from(self.kernel[i]) - 1) * i128::from(dilation) + 1)
    }

    fn padding(&self, i: usize) -> (i128, i128) {
        match (self.auto_pad, self.pads) {
            ("" | "NOTSET", Some(pads)) => (pads[i].into(), pads[i + pads.len() / 2].into()),
            _ => (0, 0),
        }
    }

    /// Number of positions of the window along an axis, with a `ceil_mode` that counts a last window which begins in the padding
    /// behind the data (`loose`), or one that does not.
    fn places(&self, i: usize, extent: u64, ceil: bool, loose: bool) -> Result<u64, Refusal> {
        let (stride, reach, extent) = (self.stride(i)?, self.reach(i)?, i128::from(extent));
        if self.auto_pad.starts_with("SAME") {
            return result_extent(i + 2, (extent + stride - 1) / stride);
        }
        let (before, after) = self.padding(i);
        let room = extent + before + after - reach;
        if room < 0 {
            return wrong(format!(
                "the window spans {reach} on axis {}, more than operand 0's extent of {extent} with pads {before} and \
                 {after}",
                i + 2
            ));
        }
        let mut places = room / stride + 1;
        if ceil && room % stride != 0 {
            places += 1;
            if !loose && (places - 1) * stride >= extent + before {
                places -= 1;
            }
        }
        result_extent(i + 2, places)
    }

    fn all_places(&self, spatial: &[u64], ceil: bool, loose: bool) -> Result<Vec<u64>, Refusal> {
        spatial.iter().enumerate().map(|(i, &extent)| self.places(i, extent, ceil, loose)).collect()
    }
}

/// The extents of the operand behind batch and channels.
fn spatial<'a>(cx: &Cx<'a>, index: usize) -> Result<&'a [u64], Refusal> {
    match cx.dims(index)?.get(2..) {
        Some(spatial) => Ok(spatial),
        None => wrong(format!("{} has no spatial axes; expected [batch, channels, …]", cx.typed(index))),
    }
}

fn group(cx: &Cx<'_>) -> Result<u64, Refusal> {
    match cx.int("group")? {
        group @ 1.. => Ok(group as u64),
        group => wrong(format!("attribute `group` is {group}; it is at least 1")),
    }
}

/// The extents of a convolution of operand `of` with the kernel in operand `kernel`.
fn convolved(cx: &Cx<'_>, of: usize, kernel: usize) -> Result<Vec<u64>, Refusal> {
    let (x, w) = (cx.tensor(of)?, cx.tensor(kernel)?);
    let group = group(cx)?;
    let spatial = spatial(cx, of)?;
    if w.dims.len() != x.dims.len()
        || w.dims[1].checked_mul(group) != Some(x.dims[1])
        || !w.dims[0].is_multiple_of(group)
    {
        return no_kernel(cx, of, kernel, group, "[group * filters, channels / group, …]");
    }
    let window = Window::new(cx, spatial.len(), Some(&w.dims[2..]))?;
    if window.kernel != w.dims[2..] {
        let said = show(&window.kernel);
        return wrong(format!("attribute `kernel_shape` is {said}, but the kernel is {}", cx.typed(kernel)));
    }
    let mut dims = vec![x.dims[0], w.dims[0]];
    dims.extend(window.all_places(spatial, false, false)?);
    Ok(dims)
}

fn no_kernel<T>(cx: &Cx<'_>, of: usize, kernel: usize, group: u64, expected: &str) -> Result<T, Refusal> {
    let (x, w, groups) = (cx.typed(of), cx.typed(kernel), count(group as usize, "group"));
    wrong(format!("{w} is no kernel for {x} with {groups}; expected {expected}"))
}

/// `Conv`, and `FusedConv` with the operand that is added to its result.
pub(super) fn conv(cx: &Cx<'_>) -> Answer {
    let dims = convolved(cx, 0, 1)?;
    cx.expect(2, &dims[1..2])?;
    if cx.query.op.name() == "FusedConv" {
        cx.expect(3, &dims)?;
    }
    one(cx.tensor(0)?.element, dims)
}

/// `ConvInteger`.
pub(super) fn conv_integer(cx: &Cx<'_>) -> Answer {
    one(ElementType::Int32, convolved(cx, 0, 1)?)
}

/// `QLinearConv(x, scale, zero, w, scale, zero, y scale, y zero, B)`.
pub(super) fn qlinear_conv(cx: &Cx<'_>) -> Answer {
    let dims = convolved(cx, 0, 3)?;
    cx.expect(8, &dims[1..2])?;
    one(cx.tensor(7)?.element, dims)
}

/// Gradients of X, of W and of the bias, from `(dY, X, W)` and the extents of the result.
fn gradients(cx: &Cx<'_>, forward: Vec<u64>) -> Answer {
    let (dy, x, w) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
    if dy.dims != forward {
        let (dy, x, w) = (cx.typed(0), cx.typed(1), cx.typed(2));
        return wrong(format!("dY, {dy}, is no gradient of a convolution of X, {x}, with W, {w}"));
    }
    let bias = TensorType::new(w.element, &forward[1..2]);
    Ok(vec![Some(x.clone().into()), Some(w.clone().into()), Some(bias.into())])
}

/// `ConvGrad`.
pub(super) fn conv_gradient(cx: &Cx<'_>) -> Answer {
    gradients(cx, convolved(cx, 1, 2)?)
}

/// `ConvTransposeGrad`.
pub(super) fn conv_transpose_gradient(cx: &Cx<'_>) -> Answer {
    gradients(cx, transposed(cx, 1)?)
}

/// `ConvTranspose`.
pub(super) fn conv_transpose(cx: &Cx<'_>) -> Answer {
    let dims = transposed(cx, 0)?;
    cx.expect(2, &dims[1..2])?;
    one(cx.tensor(0)?.element, dims)
}

/// The extents of a transposed convolution of operand `of` with the kernel in the operand behind it.
fn transposed(cx: &Cx<'_>, of: usize) -> Result<Vec<u64>, Refusal> {
    let (x, w) = (cx.tensor(of)?, cx.tensor(of + 1)?);
    let group = group(cx)?;
    let spatial = spatial(cx, of)?;
    if w.dims.len() != x.dims.len() || w.dims[0] != x.dims[1] || !x.dims[1].is_multiple_of(group) {
        return no_kernel(cx, of, of + 1, group, "[channels, filters / group, …]");
    }
    let window = Window::new(cx, spatial.len(), Some(&w.dims[2..]))?;
    let list = |name| match cx.int_list(name)?.filter(|l| !l.is_empty()) {
        Some(list) if list.len() != spatial.len() && list.len() != x.dims.len() => {
            wrong(format!("attribute `{name}` has {}, not {}", count(list.len(), "entry"), spatial.len()))
        }
        // Some writers include batch and channels.
        Some(list) => Ok(Some(&list[list.len() - spatial.len()..])),
        None => Ok(None),
    };
    let (shape, extra) = (list("output_shape")?, list("output_padding")?);
    let mut dims = vec![x.dims[0], result_extent(1, i128::from(w.dims[1]) * i128::from(group))?];
    for (i, &extent) in spatial.iter().enumerate() {
        let (stride, (before, after)) = (window.stride(i)?, window.padding(i));
        let extra = i128::from(extra.map_or(0, |e| e[i]));
        let full = (i128::from(extent) - 1) * stride + window.reach(i)?;
        dims.push(match shape {
            Some(shape) => super::extent(shape[i], || "attribute `output_shape`".to_owned())?,
            None if window.auto_pad.starts_with("SAME") => result_extent(i + 2, i128::from(extent) * stride)?,
            None => result_extent(i + 2, full + extra - before - after)?,
        });
    }
    Ok(dims)
}

/// `DeformConv(X, W, offset, B, …)`: a convolution's extents.
pub(super) fn deform_conv(cx: &Cx<'_>) -> Answer {
    let dims = convolved(cx, 0, 1)?;
    cx.expect(3, &dims[1..2])?;
    one(cx.tensor(0)?.element, dims)
}

/// `MaxPool`, `AveragePool`, `LpPool`: results, and for `MaxPool` the indices.
pub(super) fn pool(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    let spatial = spatial(cx, 0)?;
    let window = Window::new(cx, spatial.len(), None)?;
    let ceil = cx.flag("ceil_mode")?;
    let extents = |loose| {
        let places = window.all_places(spatial, ceil, loose)?;
        Ok::<_, Refusal>([&x.dims[..2], &*places].concat())
    };
    let mut ty = TensorType::new(x.element, extents(false)?);
    // Before version 22 ONNX also counted a last window that begins behind the data, and some runtimes still do.
    if ceil && let Some(declared) = cx.declared(0) {
        let loose = TensorType::new(x.element, extents(true)?);
        if !declared.agrees(&ty.clone().into()) && declared.agrees(&loose.clone().into()) {
            ty = loose;
        }
    }
    let indices = TensorType::new(ElementType::Int64, &*ty.dims);
    Ok(vec![Some(ty.into()), Some(indices.into())])
}

/// `GlobalAveragePool` and similar operators.
pub(super) fn global_pool(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    spatial(cx, 0)?;
    let extent = |(i, &d): (usize, &u64)| if i < 2 { d } else { 1 };
    one(x.element, x.dims.iter().enumerate().map(extent).collect::<Vec<_>>())
}

/// The type of a pooling gradient, as far as it is known without the forward pass: the batch and the channels of dY, and the
/// spatial extents that the file declares.
fn pooled_from(cx: &Cx<'_>) -> Answer {
    let dy = cx.tensor(0)?;
    let dy_spatial = spatial(cx, 0)?;
    if let Some(dims) = cx.declared(0).and_then(|d| d.dims.as_ref()) {
        if dims.len() != dy.dims.len() {
            return unknown("the declared rank is not dY's");
        }
        let spatial = dims[2..].iter().copied().collect::<Option<Vec<u64>>>();
        if let Some(spatial) = spatial {
            return one(dy.element, [&dy.dims[..2], &*spatial].concat());
        }
    }
    let window = Window::new(cx, dy_spatial.len(), None)?;
    let mut dims = dy.dims[..2].to_vec();
    for (i, &places) in dy_spatial.iter().enumerate() {
        let stride = window.stride(i)?;
        if window.auto_pad.starts_with("SAME") && stride == 1 {
            dims.push(places);
            continue;
        }
        if stride != 1 {
            return unknown(
                "strided pooling of different extents gives the same extents, and no node is found that pooled",
            );
        }
        let (before, after) = window.padding(i);
        dims.push(result_extent(i + 2, i128::from(places) - 1 + window.reach(i)? - before - after)?);
    }
    one(dy.element, dims)
}

/// `MaxPoolGrad(dY, Indices)`: the type of the operand of the `MaxPool` that computed the indices.
pub(super) fn max_pool_gradient(cx: &Cx<'_>) -> Answer {
    let dy = cx.tensor(0)?;
    match cx.producer(1) {
        Some(pool) if pool.op.key() == ("", "MaxPool") && pool.result == 1 => {
            let indices = cx.tensor(1)?;
            if indices.dims != dy.dims {
                return wrong(format!("dY is {}, but the indices are {}", cx.typed(0), cx.typed(1)));
            }
            match pool.operand.and_then(|t| t.as_tensor()) {
                Some(x) => one(dy.element, &*x.dims),
                None => unknown("the MaxPool that computed its indices has no operand"),
            }
        }
        _ => pooled_from(cx),
    }
}

/// `AveragePoolGrad(dY)`.
pub(super) fn average_pool_gradient(cx: &Cx<'_>) -> Answer {
    pooled_from(cx)
}

/// Operators like `GlobalAveragePoolGrad` whose dX has the type of operand 1.
pub(super) fn like_second(cx: &Cx<'_>) -> Answer {
    cx.like(&[1])
}

/// `MaxUnpool(X, I, output_shape)`.
pub(super) fn max_unpool(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    if cx.operand(2).is_some() {
        return one(x.element, cx.extents(2)?);
    }
    let spatial = spatial(cx, 0)?;
    let window = Window::new(cx, spatial.len(), None)?;
    let mut dims = x.dims[..2].to_vec();
    for (i, &extent) in spatial.iter().enumerate() {
        let (before, after) = window.padding(i);
        let full = (i128::from(extent) - 1) * window.stride(i)? + window.reach(i)?;
        dims.push(result_extent(i + 2, full - before - after)?);
    }
    product(&dims)?;
    one(x.element, dims)
}

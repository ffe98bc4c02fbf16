//! Convolutions, and their gradients as JAX writes them: convolutions with dilated operands, and with batch and channels
//! exchanged.

use lmsc_ir::{Attr, TensorType};

use crate::hlo::import::{Got, Importer};
use crate::hlo::parse::{Attribute, Attributes, Operation, find};
use crate::hlo::term::Term;

/// The order of axes of a tensor: the two that are not spatial, then the spatial ones.
type Layout = Vec<usize>;

/// The window's numbers for each spatial axis.
struct Window {
    strides: Vec<i64>,
    low: Vec<i64>,
    high: Vec<i64>,
    /// Of the image.
    dilation: Vec<i64>,
    /// Of the kernel.
    kernel_dilation: Vec<i64>,
    reversed: Vec<usize>,
}

impl<'m> Importer<'m> {
    pub(super) fn convolution(&mut self, op: &'m Operation<'m>, terms: &[Term]) -> Got<Term> {
        let ([x, kernel], ty) = (self.operands(op, terms)?, self.result(op)?);
        self.same(&TensorType::new(x.ty.element, kernel.dims()), &kernel.ty)?;
        let [image, weights, result] = self.layouts(op, x.dims().len())?;
        if kernel.dims().len() != x.dims().len() || ty.dims.len() != x.dims().len() {
            return self.wrong("operands and result of a convolution have equally many axes");
        }
        let spatial = x.dims().len() - 2;
        let window = self.window(op, spatial)?;
        let count = |name| match op.attribute(name) {
            None => Some(1),
            Some(&Attribute::Int(count)) => u64::try_from(count).ok().filter(|&count| count > 0),
            Some(_) => None,
        };
        let (Some(groups), Some(batch_groups)) = (count("feature_group_count"), count("batch_group_count"))
        else {
            return self.wrong("the number of groups is no positive integer");
        };
        if spatial == 0 {
            return self.refuse("a convolution without spatial axes; write it as a product");
        }
        if groups > 1 && batch_groups > 1 {
            return self.wrong("a convolution has groups of features or groups of the batch, not both");
        }
        let (x, kernel) = (self.permuted(x, &image)?, self.permuted(kernel, &weights)?);
        let (x, groups) = match batch_groups {
            1 => (x, groups),
            // The result's features of a group see the group's part of the batch alone: a convolution of groups of channels.
            _ => (self.batch_as_channels(&x, batch_groups)?, batch_groups),
        };
        let (features, channels) = (kernel.dims()[0], kernel.dims()[1]);
        if x.dims()[1] != channels.saturating_mul(groups) || features % groups != 0 {
            return self.wrong(format!(
                "{} channels are not convolved by {} in {groups} groups",
                x.dims()[1],
                kernel.ty
            ));
        }
        let convolved = self.convolved(&x, &kernel, &window, groups)?;
        let mut back = vec![0; result.len()];
        result.iter().enumerate().for_each(|(place, &axis)| back[axis] = place);
        let term = self.permuted(&convolved, &back)?;
        self.gives(ty, ty.element, term.dims())?;
        self.cast(&term, ty.element)
    }

    /// The layouts of image, kernel and result.
    fn layouts(&self, op: &Operation<'m>, rank: usize) -> Got<[Layout; 3]> {
        let numbers = op.attribute("dim_numbers").or(op.attribute("dimension_numbers"));
        let Some(Attribute::List(lists)) = numbers else {
            return self.wrong("the dimension numbers are missing");
        };
        let [image, kernel, result] = &lists[..] else {
            return self.wrong("there are three lists of dimensions");
        };
        Ok([
            self.layout(image, ["b", "f"], rank)?,
            self.layout(kernel, ["o", "i"], rank)?,
            self.layout(result, ["b", "f"], rank)?,
        ])
    }

    fn layout(&self, list: &Attribute, names: [&str; 2], rank: usize) -> Got<Layout> {
        let Attribute::List(items) = list else { return self.wrong("dimension numbers are a list") };
        let spatial = rank.saturating_sub(2) as i64;
        let place = |wanted: &Attribute| items.iter().position(|item| item == wanted);
        let named = names.map(|name| place(&Attribute::Word(name.to_owned())));
        let all: Option<Layout> =
            named.into_iter().chain((0..spatial).map(|axis| place(&Attribute::Int(axis)))).collect();
        match all {
            Some(layout) if items.len() == rank && rank >= 2 => Ok(layout),
            _ => self.wrong(format!("the dimension numbers do not name each of {rank} axes")),
        }
    }

    fn window(&self, op: &Operation<'m>, spatial: usize) -> Got<Window> {
        let empty = Attributes::new();
        let inner = match op.attribute("window") {
            Some(Attribute::Map(map)) => map,
            _ => &empty,
        };
        let list = |short: &str, long: &str, default: i64| -> Got<Vec<i64>> {
            let Some(attribute) = find(inner, short).or(op.attribute(long)) else {
                return Ok(vec![default; spatial]);
            };
            match attribute.ints().filter(|list| list.len() == spatial) {
                Some(list) => Ok(list),
                None => self.wrong(format!("`{short}` has not a number for each of {spatial} axes")),
            }
        };
        let at_least_one = |list: Vec<i64>| {
            if list.iter().all(|&n| n >= 1) {
                Ok(list)
            } else {
                self.wrong("strides and dilations are at least 1")
            }
        };
        let (low, high) = self.paddings(find(inner, "pad").or(op.attribute("padding")), spatial)?;
        let reversed = list("reverse", "window_reversal", 0)?;
        Ok(Window {
            strides: at_least_one(list("stride", "window_strides", 1)?)?,
            low,
            high,
            dilation: at_least_one(list("lhs_dilate", "lhs_dilation", 1)?)?,
            kernel_dilation: at_least_one(list("rhs_dilate", "rhs_dilation", 1)?)?,
            reversed: (0..spatial).filter(|&axis| reversed[axis] != 0).collect(),
        })
    }

    /// The two lists of `[[low, high], …]`, or of a tensor of these pairs.
    pub(super) fn paddings(&self, pads: Option<&Attribute>, axes: usize) -> Got<(Vec<i64>, Vec<i64>)> {
        let flat = match pads {
            None => Some(vec![0; 2 * axes]),
            Some(Attribute::List(pairs)) if pairs.iter().all(|pair| matches!(pair, Attribute::List(_))) => {
                let pairs: Option<Vec<Vec<i64>>> = pairs.iter().map(Attribute::ints).collect();
                pairs.map(|pairs| pairs.concat())
            }
            Some(other) => other.ints(),
        };
        match flat.filter(|flat| flat.len() == 2 * axes) {
            Some(flat) => {
                let side = |first: usize| flat.iter().skip(first).step_by(2).copied().collect();
                Ok((side(0), side(1)))
            }
            None => self.wrong(format!("the padding has not two numbers for each of {axes} axes")),
        }
    }

    /// `[groups × n, c, …]` as `[n, groups × c, …]`.
    fn batch_as_channels(&mut self, x: &Term, groups: u64) -> Got<Term> {
        let (batch, channels) = (x.dims()[0], x.dims()[1]);
        if batch % groups != 0 {
            return self.wrong(format!("a batch of {batch} is not {groups} groups"));
        }
        let rest = &x.dims()[2..];
        let apart = self.as_dims(x, &[&[groups, batch / groups, channels], rest].concat())?;
        let order: Vec<usize> = [1, 0].into_iter().chain(2..rest.len() + 3).collect();
        let apart = self.permuted(&apart, &order)?;
        let Some(all) = groups.checked_mul(channels) else {
            return self.wrong("there are too many channels");
        };
        self.as_dims(&apart, &[&[batch / groups, all], rest].concat())
    }

    /// The convolution of `[batch, channels, …]` by `[features, channels, …]`.
    fn convolved(&mut self, x: &Term, kernel: &Term, window: &Window, groups: u64) -> Got<Term> {
        let spatial = window.strides.len();
        let mut dims = vec![x.dims()[0], kernel.dims()[0]];
        for axis in 0..spatial {
            match window.extent(axis, x.dims()[axis + 2], kernel.dims()[axis + 2]) {
                Some(extent) => dims.push(extent),
                None => return self.wrong("the extents of this convolution are too large"),
            }
        }
        let ty = TensorType::new(x.ty.element, dims);
        if ty.element_count() == Some(0) || kernel.ty.element_count() == Some(0) {
            let zero = self.integer_like(&Term { ty, is: x.is.clone() }, 0)?;
            return Ok(zero);
        }
        if let Some(pads) = window.transposed(x, kernel, &ty) {
            return self.transposed(x, kernel, window, groups, &pads, ty);
        }
        let reversed: Vec<usize> = window.reversed.iter().map(|axis| axis + 2).collect();
        let kernel = self.reversed(kernel, &reversed)?;
        // A convolution of ONNX has neither of these, so they are done before it: zeros between elements, and negative padding.
        let outside = |pads: &[i64], is_plain: bool| -> Vec<i64> {
            let pads = pads.iter().map(|&pad| if is_plain { pad.min(0) } else { pad });
            [0, 0].into_iter().chain(pads).collect()
        };
        let is_plain = window.dilation.iter().all(|&d| d == 1);
        let between: Vec<i64> = [0, 0].into_iter().chain(window.dilation.iter().map(|d| d - 1)).collect();
        let zero = Term { ty: TensorType::new(x.ty.element, []), is: x.is.clone() };
        let zero = self.integer_like(&zero, 0)?;
        let (low, high) = (outside(&window.low, is_plain), outside(&window.high, is_plain));
        let image = self.widened(x, &low, &high, &between, &zero)?;
        let inside =
            |pads: &[i64]| pads.iter().map(|&p| if is_plain { p.max(0) } else { 0 }).collect::<Vec<i64>>();
        let pads = [inside(&window.low), inside(&window.high)].concat();
        let attributes = vec![
            ("dilations", window.kernel_dilation.clone().into()),
            ("group", Attr::Int(groups as i64)),
            ("pads", pads.into()),
            ("strides", window.strides.clone().into()),
        ];
        let operands = [self.whole(&image)?, self.whole(&kernel)?];
        let value = self.node("Conv", &operands, attributes, ty.clone())?;
        Ok(Term::value(ty, value))
    }

    /// A convolution of a dilated image, which is the gradient of a convolution by its image: `ConvTranspose` with the kernel
    /// reversed, and its features and channels exchanged.
    fn transposed(
        &mut self,
        x: &Term,
        kernel: &Term,
        window: &Window,
        groups: u64,
        pads: &[i64],
        ty: TensorType,
    ) -> Got<Term> {
        let spatial = window.strides.len();
        let straight: Vec<usize> =
            (0..spatial).filter(|axis| !window.reversed.contains(axis)).map(|axis| axis + 2).collect();
        let kernel = self.reversed(kernel, &straight)?;
        let (features, channels) = (kernel.dims()[0], kernel.dims()[1]);
        let rest = &kernel.dims()[2..].to_vec();
        let apart = self.as_dims(&kernel, &[&[groups, features / groups, channels], &rest[..]].concat())?;
        let order: Vec<usize> = [0, 2, 1].into_iter().chain(3..spatial + 3).collect();
        let apart = self.permuted(&apart, &order)?;
        let kernel = self.as_dims(&apart, &[&[groups * channels, features / groups], &rest[..]].concat())?;
        let attributes = vec![
            ("dilations", window.kernel_dilation.clone().into()),
            ("group", Attr::Int(groups as i64)),
            ("pads", pads.to_vec().into()),
            ("strides", window.dilation.clone().into()),
        ];
        let operands = [self.whole(x)?, self.whole(&kernel)?];
        let value = self.node("ConvTranspose", &operands, attributes, ty.clone())?;
        Ok(Term::value(ty, value))
    }
}

impl Window {
    /// The extent of a kernel of `size` elements with its dilation.
    fn reach(&self, axis: usize, size: u64) -> Option<i64> {
        let steps = i64::try_from(size).ok()?.checked_sub(1)?.checked_mul(self.kernel_dilation[axis])?;
        steps.checked_add(1)
    }

    /// The extent of the dilated image.
    fn dilated(&self, axis: usize, extent: u64) -> Option<i64> {
        match extent {
            0 => Some(0),
            _ => i64::try_from(extent - 1).ok()?.checked_mul(self.dilation[axis])?.checked_add(1),
        }
    }

    /// The extent of the result.
    fn extent(&self, axis: usize, extent: u64, size: u64) -> Option<u64> {
        if size == 0 {
            return None;
        }
        let image = self.dilated(axis, extent)?.checked_add(self.low[axis])?.checked_add(self.high[axis])?;
        let room = image.checked_sub(self.reach(axis, size)?)?;
        if room < 0 || image < 0 {
            return Some(0);
        }
        u64::try_from(room / self.strides[axis] + 1).ok()
    }

    /// The pads of the `ConvTranspose` that computes the same; `None` if none does.
    fn transposed(&self, x: &Term, kernel: &Term, ty: &TensorType) -> Option<Vec<i64>> {
        if self.dilation.iter().all(|&d| d == 1) || self.strides.iter().any(|&s| s != 1) {
            return None;
        }
        let mut pads = [Vec::new(), Vec::new()];
        for axis in 0..self.strides.len() {
            let reach = self.reach(axis, kernel.dims()[axis + 2])?;
            let before = reach.checked_sub(1)?.checked_sub(self.low[axis])?;
            let full = self.dilated(axis, x.dims()[axis + 2])?.checked_add(reach)?.checked_sub(1)?;
            let after = full.checked_sub(before)?.checked_sub(i64::try_from(ty.dims[axis + 2]).ok()?)?;
            if before < 0 || after < 0 {
                return None;
            }
            pads[0].push(before);
            pads[1].push(after);
        }
        Some(pads.concat())
    }
}

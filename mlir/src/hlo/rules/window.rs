//! Windows that slide: pooling, running sums, and the gradient of the pooling that picks the largest.

use lmsc_ir::{Attr, ElementType, NodeId, TensorType, ValueId};

use super::reduce::Combination;
use crate::hlo::import::{Got, Importer};
use crate::hlo::parse::{Block, Operation};
use crate::hlo::term::Term;

/// A window for every axis of a tensor.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::hlo) struct Window {
    sizes: Vec<i64>,
    strides: Vec<i64>,
    dilations: Vec<i64>,
    low: Vec<i64>,
    high: Vec<i64>,
}

/// A tensor as images of one channel: the axes along which windows slide come last.
struct Images {
    value: ValueId,
    /// The axes of the tensor, the sliding ones last.
    order: Vec<usize>,
    /// The sliding axes.
    spatial: Vec<usize>,
}

impl Window {
    /// The extents of the result.
    fn extents(&self, dims: &[u64]) -> Option<Vec<u64>> {
        let extent = |axis: usize| {
            let reach = self.reach(axis)?;
            let image = i64::try_from(dims[axis]).ok()?.checked_add(self.low[axis])?;
            let room = image.checked_add(self.high[axis])?.checked_sub(reach)?;
            if room < 0 { Some(0) } else { u64::try_from(room / self.strides[axis] + 1).ok() }
        };
        (0..dims.len()).map(extent).collect()
    }

    /// The extent of the window with its gaps.
    fn reach(&self, axis: usize) -> Option<i64> {
        self.sizes[axis].checked_sub(1)?.checked_mul(self.dilations[axis])?.checked_add(1)
    }

    /// Whether windows along the axis are single elements, all of them.
    fn is_still(&self, axis: usize) -> bool {
        self.sizes[axis] == 1 && self.strides[axis] == 1 && self.low[axis] == 0 && self.high[axis] == 0
    }
}

impl<'m> Importer<'m> {
    /// The windows of the operator, and the gaps between the elements of its operand.
    fn windows(&self, op: &Operation<'m>, rank: usize) -> Got<(Window, Vec<i64>)> {
        let list = |name: &str| -> Got<Vec<i64>> {
            let list = self.list(op, &[name])?.unwrap_or_else(|| vec![1; rank]);
            if list.len() == rank && list.iter().all(|&n| n >= 1) {
                Ok(list)
            } else {
                self.wrong(format!("`{name}` has not a positive number for each of {rank} axes"))
            }
        };
        let (low, high) = self.paddings(op.attribute("padding"), rank)?;
        let window = Window {
            sizes: list("window_dimensions")?,
            strides: list("window_strides")?,
            dilations: list("window_dilations")?,
            low,
            high,
        };
        Ok((window, list("base_dilations")?))
    }

    pub(super) fn reduce_window(&mut self, op: &'m Operation<'m>, terms: &[Term]) -> Got<Term> {
        let [x, init] = terms else {
            return self.refuse("windows over several tensors at once are not translated");
        };
        let ty = self.result(op)?;
        self.same(&TensorType::new(x.ty.element, []), &init.ty)?;
        let rank = x.dims().len();
        let (mut window, base) = self.windows(op, rank)?;
        let how = match &op.regions[..] {
            [region] => self.combination(region, x.ty.element)?,
            _ => return self.wrong("the windows' region is missing"),
        };
        if let Some(running) = self.running(x, init, &window, &base, how)? {
            self.same(ty, &running.ty)?;
            return Ok(running);
        }
        // Gaps between elements, elements that are cut, and windows of padding alone are made before.
        let mut x = x.clone();
        let reach = |axis: usize| window.reach(axis).unwrap_or(i64::MAX);
        let outside = |axis: usize| window.low[axis] >= reach(axis) || window.high[axis] >= reach(axis);
        let negative = window.low.iter().chain(&window.high).any(|&pad| pad < 0);
        if base.iter().any(|&d| d > 1) || negative || (0..rank).any(outside) || !self.is_neutral(init, how) {
            let between: Vec<i64> = base.iter().map(|d| d - 1).collect();
            x = self.widened(&x, &window.low, &window.high, &between, init)?;
            (window.low, window.high) = (vec![0; rank], vec![0; rank]);
        }
        let Some(dims) = window.extents(x.dims()) else { return self.wrong("the windows are too large") };
        self.gives(ty, x.ty.element, &dims)?;
        let pooled = match how {
            _ if ty.element_count() == Some(0) => return self.integer_like(&Term { ty: ty.clone(), ..x }, 0),
            Combination::Largest => self.largest_in(&x, &window, &dims)?,
            Combination::Smallest => {
                let negative = self.each("Neg", &[&x], x.ty.element, &[])?;
                let largest = self.largest_in(&negative, &window, &dims)?;
                self.each("Neg", &[&largest], x.ty.element, &[])?
            }
            Combination::Sum => self.sums_in(&x, &window, &dims)?,
            Combination::Product | Combination::Second => {
                return self.refuse("windows are summed, or reduced to their largest or smallest element");
            }
        };
        self.combined(pooled, init, how)
    }

    /// A running sum: windows that reach from one end of an axis up to each element.
    fn running(
        &mut self,
        x: &Term,
        init: &Term,
        window: &Window,
        base: &[i64],
        how: Combination,
    ) -> Got<Option<Term>> {
        let moving: Vec<usize> = (0..x.dims().len()).filter(|&axis| !window.is_still(axis)).collect();
        let [axis] = moving[..] else { return Ok(None) };
        let size = window.sizes[axis];
        let all = u64::try_from(size) == Ok(x.dims()[axis]) && size > 1;
        let single = window.strides[axis] == 1 && window.dilations[axis] == 1 && base[axis] == 1;
        let reverse = match (window.low[axis], window.high[axis]) {
            (low, 0) if low == size - 1 => 0,
            (0, high) if high == size - 1 => 1,
            _ => return Ok(None),
        };
        if !all || !single || how != Combination::Sum || !self.is_neutral(init, how) {
            return Ok(None);
        }
        let value = self.whole(x)?;
        let place = self.constant(TensorType::new(ElementType::Int64, []), &(axis as i64).to_le_bytes());
        let attributes = vec![("reverse", Attr::Int(reverse))];
        let value = self.node("CumSum", &[value, place], attributes, x.ty.clone())?;
        Ok(Some(Term::value(x.ty.clone(), value)))
    }

    /// The tensor as images of one channel.
    fn images(&mut self, x: &Term, window: &Window) -> Got<Images> {
        let rank = x.dims().len();
        let mut spatial: Vec<usize> = (0..rank).filter(|&axis| !window.is_still(axis)).collect();
        if spatial.is_empty() {
            spatial.extend(rank.checked_sub(1));
        }
        if spatial.len() > 3 || spatial.is_empty() || !x.ty.element.is_float() {
            return self.refuse(format!("windows over {} axes of {}", spatial.len(), x.ty.element));
        }
        let order: Vec<usize> =
            (0..rank).filter(|axis| !spatial.contains(axis)).chain(spatial.iter().copied()).collect();
        let term = self.permuted(x, &order)?;
        let images: u64 = term.dims()[..rank - spatial.len()].iter().product();
        let dims = [&[images, 1], &term.dims()[rank - spatial.len()..]].concat();
        let value = self.whole(&term)?;
        let value = self.reshaped(value, &dims)?;
        Ok(Images { value, order, spatial })
    }

    /// The result of pooling as a tensor of these extents.
    fn out_of_images(&mut self, value: ValueId, images: &Images, dims: &[u64]) -> Got<Term> {
        let ordered: Vec<u64> = images.order.iter().map(|&axis| dims[axis]).collect();
        let value = self.reshaped(value, &ordered)?;
        let mut back = vec![0; dims.len()];
        images.order.iter().enumerate().for_each(|(place, &axis)| back[axis] = place);
        let term = Term::value(TensorType::new(self.element_of(value), ordered), value);
        self.permuted(&term, &back)
    }

    /// The type of the pooled images.
    fn pooled(&self, images: &Images, dims: &[u64]) -> TensorType {
        let mut all = self.dims_of(images.value)[..2].to_vec();
        all.extend(images.spatial.iter().map(|&axis| dims[axis]));
        TensorType::new(self.element_of(images.value), all)
    }

    /// The window as attributes of pooling.
    fn pooling(images: &Images, window: &Window) -> Vec<(&'static str, Attr)> {
        let list = |of: &[i64]| images.spatial.iter().map(|&axis| of[axis]).collect::<Vec<i64>>();
        vec![
            ("dilations", list(&window.dilations).into()),
            ("kernel_shape", list(&window.sizes).into()),
            ("pads", [list(&window.low), list(&window.high)].concat().into()),
            ("strides", list(&window.strides).into()),
        ]
    }

    fn largest_in(&mut self, x: &Term, window: &Window, dims: &[u64]) -> Got<Term> {
        let images = self.images(x, window)?;
        let ty = self.pooled(&images, dims);
        let attributes = Self::pooling(&images, window);
        let value = self.node("MaxPool", &[images.value], attributes, ty)?;
        if let Some(node) = self.graph.producer(value) {
            let whole = self.whole(x)?;
            self.pools.insert((whole, window.clone()), node);
        }
        self.out_of_images(value, &images, dims)
    }

    fn sums_in(&mut self, x: &Term, window: &Window, dims: &[u64]) -> Got<Term> {
        let images = self.images(x, window)?;
        let ty = self.pooled(&images, dims);
        let mut attributes = Self::pooling(&images, window);
        attributes.push(("count_include_pad", Attr::Int(1)));
        let value = self.node("AveragePool", &[images.value], attributes, ty.clone())?;
        let count: f64 = images.spatial.iter().map(|&axis| window.sizes[axis] as f64).product();
        let average = Term::value(ty, value);
        let count = self.float_like(&average, count)?;
        let sum = self.each("Mul", &[&average, &count], average.ty.element, &[])?;
        let value = self.whole(&sum)?;
        self.out_of_images(value, &images, dims)
    }

    pub(super) fn select_and_scatter(&mut self, op: &'m Operation<'m>, terms: &[Term]) -> Got<Term> {
        let ([x, source, init], ty) = (self.operands(op, terms)?, self.result(op)?);
        self.same(ty, &x.ty)?;
        self.same(&TensorType::new(x.ty.element, []), &init.ty)?;
        let (window, _) = self.windows(op, x.dims().len())?;
        let [select, scatter] = &op.regions[..] else { return self.wrong("two regions are expected") };
        let sums = self.combination(scatter, x.ty.element)? == Combination::Sum;
        let is_largest = match (self.keeps_first(select, x, true), self.keeps_first(select, x, false)) {
            (true, _) => true,
            (_, true) => false,
            _ => {
                return self
                    .refuse("windows of which something else than the first largest element is selected");
            }
        };
        if !sums || !self.is_neutral(init, Combination::Sum) {
            return self
                .refuse("selected elements to which something else is done than to be added to zeros");
        }
        let pads = window.low.iter().chain(&window.high);
        let Some(dims) = window.extents(x.dims()).filter(|_| pads.clone().all(|&pad| pad >= 0)) else {
            return self.refuse("windows with negative padding");
        };
        self.gives(&source.ty, x.ty.element, &dims)?;
        if source.ty.element_count() == Some(0) || ty.element_count() == Some(0) {
            return self.integer_like(x, 0);
        }
        let x = if is_largest { x.clone() } else { self.each("Neg", &[x], x.ty.element, &[])? };
        let images = self.images(&x, &window)?;
        let pool = self.pool_with_places(&x, &window, &images, &dims)?;
        let places = self.places_of(pool)?;
        let gradient = self.images(source, &window)?;
        let image = TensorType::new(x.ty.element, self.dims_of(images.value));
        let of_positions = self.pooled(&images, &dims);
        let dy = self.reshaped(gradient.value, &of_positions.dims)?;
        let list = |of: &[i64]| images.spatial.iter().map(|&axis| of[axis]).collect::<Vec<i64>>();
        let attributes = vec![("kernel_shape", list(&window.sizes).into())];
        let value = self.node("com.microsoft.MaxPoolGrad", &[dy, places], attributes, image)?;
        self.out_of_images(value, &images, x.dims())
    }

    /// The `MaxPool` over these windows: that of the forward pass, or a new one.
    fn pool_with_places(&mut self, x: &Term, window: &Window, images: &Images, dims: &[u64]) -> Got<NodeId> {
        let whole = self.whole(x)?;
        if let Some(&node) = self.pools.get(&(whole, window.clone())) {
            return Ok(node);
        }
        let ty = self.pooled(images, dims);
        let value = self.node("MaxPool", &[images.value], Self::pooling(images, window), ty)?;
        match self.graph.producer(value) {
            Some(node) => Ok(node),
            None => self.wrong("a node has no result"),
        }
    }

    /// The places of the largest elements, the second result of the `MaxPool`.
    fn places_of(&mut self, pool: NodeId) -> Got<ValueId> {
        let results = &self.graph.node(pool).results;
        if let Some(&Some(places)) = results.get(1) {
            return Ok(places);
        }
        let Some(&Some(pooled)) = results.first() else { return self.wrong("a pooling has no result") };
        let ty = TensorType::new(ElementType::Int64, self.dims_of(pooled));
        let name = self.graph.fresh_value_name(&format!("{}.places", self.graph.value(pooled).name));
        Ok(self.graph.replace_result(pool, 1, name, ty))
    }

    /// Whether the region keeps the first of two elements where it is the larger, or the smaller, or equal.
    fn keeps_first(&mut self, region: &'m Block<'m>, x: &Term, largest: bool) -> bool {
        const TRIED: [(i64, i64); 3] = [(1, 2), (2, 1), (1, 1)];
        TRIED.iter().all(|&(a, b)| {
            let scalar = Term { ty: TensorType::new(x.ty.element, []), is: x.is.clone() };
            let (Ok(first), Ok(second)) = (self.integer_like(&scalar, a), self.integer_like(&scalar, b))
            else {
                return false;
            };
            let wanted = if largest { a >= b } else { a <= b };
            let results = self.known_results(region, &[first, second]);
            matches!(results.as_deref(), Some([keeps]) if keeps.integer() == Some(i64::from(wanted)))
        })
    }
}

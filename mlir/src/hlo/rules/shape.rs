//! Operators that move elements.

use std::rc::Rc;

use lmsc_ir::{Attr, ElementType, TensorType, ValueId};

use crate::hlo::fold;
use crate::hlo::import::{Got, Importer};
use crate::hlo::parse::{Attribute, Operation};
use crate::hlo::term::{Is, Term, stripped};

impl<'m> Importer<'m> {
    pub(super) fn literal(&mut self, op: &'m Operation<'m>) -> Got<Term> {
        let Some(Attribute::Dense(elements)) = op.attribute("value") else {
            return self.refuse("the elements of the constant are not in the text");
        };
        self.same(self.result(op)?, &elements.ty)?;
        let one = elements.is_splat || elements.ty.element_count() == Some(1);
        let scalar = one.then(|| elements.bytes.as_slice().into());
        Ok(self.elements(elements.ty.clone(), scalar, &elements.bytes))
    }

    pub(super) fn reshape(&mut self, op: &'m Operation<'m>, terms: &[Term]) -> Got<Term> {
        let ([x], ty) = (self.operands(op, terms)?, self.result(op)?);
        self.gives(ty, x.ty.element, &ty.dims)?;
        if x.ty.element_count() != ty.element_count() {
            return self.wrong(format!("{} has not as many elements as {ty}", x.ty));
        }
        self.as_dims(x, &ty.dims)
    }

    /// The term with these extents, which have as many elements.
    pub(super) fn as_dims(&mut self, x: &Term, dims: &[u64]) -> Got<Term> {
        let ty = TensorType::new(x.ty.element, dims);
        if x.dims() == dims {
            return Ok(x.clone());
        }
        let value = match &x.is {
            Is::Splat(scalar) => return Ok(Term::splat(ty, scalar.clone())),
            Is::Value(value) => *value,
            Is::Rows(_) => self.whole(x)?,
        };
        // Where only extents of 1 come and go, a value that is repeated stays small.
        let small = self.padded(value, x);
        let not_one = |dims: &[u64]| dims.iter().copied().filter(|&d| d != 1).collect::<Vec<u64>>();
        if small != x.dims() && not_one(x.dims()) == not_one(dims) {
            let mut kept = x.dims().iter().zip(&small).filter(|(d, _)| **d != 1).map(|(_, small)| *small);
            let new: Vec<u64> =
                dims.iter().map(|&d| if d == 1 { 1 } else { kept.next().unwrap_or(1) }).collect();
            let value = self.aligned(value, &new)?;
            return Ok(Term::value(ty, value));
        }
        let value = self.whole(x)?;
        let value = self.reshaped(value, dims)?;
        Ok(Term::value(ty, value))
    }

    /// The value with extents that broadcast as these do.
    fn aligned(&mut self, value: ValueId, dims: &[u64]) -> Got<ValueId> {
        if stripped(self.dims_of(value)) == stripped(dims) && self.dims_of(value).len() <= dims.len() {
            return Ok(value);
        }
        self.reshaped(value, dims)
    }

    pub(super) fn transpose(&mut self, op: &'m Operation<'m>, terms: &[Term]) -> Got<Term> {
        let [x] = self.operands(op, terms)?;
        let order = self.listed(op, &["dims", "permutation"])?;
        let order = self.axes(&order, x.dims().len())?;
        if order.len() != x.dims().len() {
            return self.wrong("the permutation does not name every axis");
        }
        self.permuted(x, &order)
    }

    /// The term with its axes in this order.
    pub(super) fn permuted(&mut self, x: &Term, order: &[usize]) -> Got<Term> {
        let of = |dims: &[u64]| -> Vec<u64> { order.iter().map(|&axis| dims[axis]).collect() };
        let ty = TensorType::new(x.ty.element, of(x.dims()));
        let value = match &x.is {
            Is::Splat(scalar) => return Ok(Term::splat(ty, scalar.clone())),
            Is::Value(value) => *value,
            Is::Rows(_) => self.whole(x)?,
        };
        // The axes of a reversed tensor move before it is reversed, so that the reverse of the reverse is the tensor.
        if let Some((source, axes)) = self.mirrors.get(&value).cloned()
            && source.ty == x.ty
        {
            let source = self.permuted(&source, order)?;
            let place = |axis: &usize| order.iter().position(|other| other == axis);
            let mut axes: Vec<usize> = axes.iter().filter_map(place).collect();
            axes.sort_unstable();
            return self.reversed(&source, &axes);
        }
        // Of a transposed tensor, the axes of the tensor itself.
        if let Some((source, perm)) = self.turned(value).filter(|_| self.dims_of(value) == x.dims()) {
            let order: Vec<usize> = order.iter().map(|&axis| perm[axis]).collect();
            let source = Term::value(TensorType::new(x.ty.element, self.dims_of(source)), source);
            return self.permuted(&source, &order);
        }
        let small = self.padded(value, x);
        let moved: Vec<usize> = order.iter().copied().filter(|&axis| small[axis] != 1).collect();
        if moved.is_sorted() {
            let value = self.aligned(value, &of(&small))?;
            return Ok(Term::value(ty, value));
        }
        let value = self.reshaped(value, &small)?;
        let perm = order.iter().map(|&axis| axis as i64).collect::<Vec<i64>>();
        let small = TensorType::new(x.ty.element, of(&small));
        let value = self.node("Transpose", &[value], vec![("perm", perm.into())], small)?;
        Ok(Term::value(ty, value))
    }

    /// The operand of the `Transpose` that computes the value, and the order of its axes.
    fn turned(&self, value: ValueId) -> Option<(ValueId, Vec<usize>)> {
        let node = self.graph.node(self.graph.producer(value)?);
        let Some(Attr::Ints(perm)) = node.attribute("perm").filter(|_| node.op.key() == ("", "Transpose"))
        else {
            return None;
        };
        let source = node.operands.first().copied().flatten()?;
        Some((source, perm.iter().map(|&axis| axis as usize).collect()))
    }

    pub(super) fn broadcast(&mut self, op: &'m Operation<'m>, terms: &[Term]) -> Got<Term> {
        let ([x], ty) = (self.operands(op, terms)?, self.result(op)?);
        let places = self.listed(op, &["dims", "broadcast_dimensions"])?;
        let places = self.axes(&places, ty.dims.len())?;
        let fits = |(&axis, &extent): (&usize, &u64)| extent == 1 || extent == ty.dims[axis];
        if places.len() != x.dims().len() || !places.iter().zip(x.dims()).all(fits) {
            return self.wrong(format!("{} does not broadcast to {ty} along {places:?}", x.ty));
        }
        self.gives(ty, x.ty.element, &ty.dims)?;
        let mut order: Vec<usize> = (0..places.len()).collect();
        order.sort_by_key(|&axis| places[axis]);
        let x = self.permuted(x, &order)?;
        let value = match &x.is {
            Is::Splat(scalar) => return Ok(Term::splat(ty.clone(), scalar.clone())),
            Is::Value(value) => *value,
            Is::Rows(_) => self.whole(&x)?,
        };
        let small = self.padded(value, &x);
        let mut dims = vec![1; ty.dims.len()];
        for (&axis, extent) in order.iter().map(|&axis| &places[axis]).zip(small) {
            dims[axis] = extent;
        }
        let value = self.aligned(value, &dims)?;
        Ok(Term::value(ty.clone(), value))
    }

    pub(super) fn iota(&mut self, op: &'m Operation<'m>) -> Got<Term> {
        let ty = self.result(op)?;
        let axis = match op.attribute("dim").or(op.attribute("iota_dimension")) {
            Some(Attribute::Int(axis)) => *axis,
            _ => return self.wrong("the dimension along which it counts is missing"),
        };
        let axis = self.axes(&[axis], ty.dims.len())?[0];
        self.counted(ty, axis)
    }

    /// Each element is its index along the axis.
    pub(super) fn counted(&mut self, ty: &TensorType, axis: usize) -> Got<Term> {
        // Longer lists are computed.
        const MOST: u64 = 1 << 16;
        let (extent, element) = (ty.dims[axis], ty.element);
        let flat = TensorType::new(element, [extent]);
        let bytes = |i: u64| fold::scalar(element, i as i64).or_else(|| fold::float(element, i as f64));
        let value = if extent <= MOST {
            match (0..extent).map(bytes).collect::<Option<Vec<_>>>() {
                Some(list) => self.constant(flat, &list.concat()),
                None => return self.refuse(format!("lmsc does not count in {element}")),
            }
        } else {
            let scalar = TensorType::new(ElementType::Int64, []);
            let mut bound = |value: u64| self.constant(scalar.clone(), &value.to_le_bytes());
            let bounds = [bound(0), bound(extent), bound(1)];
            let long = TensorType::new(ElementType::Int64, [extent]);
            let value = self.node("Range", &bounds, Vec::new(), long.clone())?;
            let counted = self.cast(&Term::value(long, value), element)?;
            self.whole(&counted)?
        };
        let mut dims = vec![1; ty.dims.len()];
        dims[axis] = extent;
        let value = self.aligned(value, &dims)?;
        Ok(Term::value(ty.clone(), value))
    }

    pub(super) fn reverse(&mut self, op: &'m Operation<'m>, terms: &[Term]) -> Got<Term> {
        let [x] = self.operands(op, terms)?;
        let axes = self.listed(op, &["dims", "dimensions"])?;
        let axes = self.axes(&axes, x.dims().len())?;
        self.reversed(x, &axes)
    }

    /// The term with these axes reversed.
    pub(super) fn reversed(&mut self, x: &Term, axes: &[usize]) -> Got<Term> {
        let axes: Vec<usize> = axes.iter().copied().filter(|&axis| x.dims()[axis] > 1).collect();
        if axes.is_empty() || x.known().is_some() {
            return Ok(x.clone());
        }
        let value = self.whole(x)?;
        if let Some((source, others)) = self.mirrors.get(&value)
            && *others == axes
        {
            return Ok(source.clone());
        }
        let list = |value: i64| vec![value; axes.len()];
        let named: Vec<i64> = axes.iter().map(|&axis| axis as i64).collect();
        let operands = [list(-1), list(i64::MIN), named, list(-1)].map(|list| self.integers(&list));
        let operands = [value, operands[0], operands[1], operands[2], operands[3]];
        let mirror = self.node("Slice", &operands, Vec::new(), x.ty.clone())?;
        self.mirrors.insert(mirror, (Term::value(x.ty.clone(), value), axes));
        Ok(Term::value(x.ty.clone(), mirror))
    }

    pub(super) fn concatenate(&mut self, op: &'m Operation<'m>, terms: &[Term]) -> Got<Term> {
        let ty = self.result(op)?;
        let axis = match op.attribute("dim").or(op.attribute("dimension")) {
            Some(Attribute::Int(axis)) => self.axes(&[*axis], ty.dims.len())?[0],
            _ => return self.wrong("the dimension along which it joins is missing"),
        };
        let mut dims = ty.dims.clone();
        dims[axis] = 0;
        for term in terms {
            let mut own = term.dims().to_vec();
            let extent = own.get_mut(axis).map(std::mem::take);
            let sum = extent.and_then(|extent| dims[axis].checked_add(extent));
            let others = ty.dims.iter().enumerate().map(|(i, &d)| if i == axis { 0 } else { d });
            let (Some(sum), true) = (sum, others.eq(own.iter().copied())) else {
                return self.wrong(format!("{} is no part of {ty}", term.ty));
            };
            dims[axis] = sum;
        }
        self.gives(ty, terms.first().map_or(ty.element, |term| term.ty.element), &dims)?;
        self.joined(terms, axis, ty)
    }

    /// The terms one after another along the axis.
    pub(super) fn joined(&mut self, terms: &[Term], axis: usize, ty: &TensorType) -> Got<Term> {
        let parts: Vec<&Term> = terms.iter().filter(|term| term.dims()[axis] > 0).collect();
        match &parts[..] {
            [] if !terms.is_empty() => return Ok(terms[0].clone()),
            [only] => return Ok((*only).clone()),
            _ => {}
        }
        let values = parts.into_iter().map(|term| self.whole(term)).collect::<Got<Vec<_>>>()?;
        let value = self.node("Concat", &values, vec![("axis", Attr::Int(axis as i64))], ty.clone())?;
        Ok(Term::value(ty.clone(), value))
    }

    pub(super) fn slice(&mut self, op: &'m Operation<'m>, terms: &[Term]) -> Got<Term> {
        let ([x], ty) = (self.operands(op, terms)?, self.result(op)?);
        let starts = self.listed(op, &["start_indices"])?;
        let limits = self.listed(op, &["limit_indices"])?;
        let steps = self.listed(op, &["strides"])?;
        let rank = x.dims().len();
        if [&starts, &limits, &steps].iter().any(|list| list.len() != rank) {
            return self.wrong("the slice does not name every axis");
        }
        let mut dims = Vec::new();
        for (axis, &extent) in x.dims().iter().enumerate() {
            let (start, limit, step) = (starts[axis], limits[axis], steps[axis]);
            if start < 0 || limit < start || limit as u64 > extent || step < 1 {
                return self.wrong(format!("[{start}:{limit}:{step}] is no slice of {extent} elements"));
            }
            dims.push(((limit - start) as u64).div_ceil(step as u64));
        }
        self.gives(ty, x.ty.element, &dims)?;
        self.sliced(x, &starts, &limits, &steps, ty)
    }

    /// The slice, whose bounds are checked.
    fn sliced(
        &mut self,
        x: &Term,
        starts: &[i64],
        limits: &[i64],
        steps: &[i64],
        ty: &TensorType,
    ) -> Got<Term> {
        if x.ty == *ty {
            return Ok(x.clone());
        }
        let value = match &x.is {
            Is::Splat(scalar) => return Ok(Term::splat(ty.clone(), scalar.clone())),
            Is::Rows(rows) => {
                if let (1, true) = (ty.dims[0], ty.dims[1..] == x.dims()[1..]) {
                    return Ok(rows[starts[0] as usize].clone());
                }
                self.whole(x)?
            }
            Is::Value(value) => *value,
        };
        // Along an axis where the value is repeated, there is nothing to cut.
        let mut small = self.padded(value, x);
        let cut: Vec<usize> =
            (0..small.len()).filter(|&a| small[a] == x.dims()[a] && small[a] != ty.dims[a]).collect();
        if cut.is_empty() {
            return Ok(Term::value(ty.clone(), value));
        }
        let value = self.reshaped(value, &small)?;
        cut.iter().for_each(|&axis| small[axis] = ty.dims[axis]);
        let list = |of: &[i64]| cut.iter().map(|&axis| of[axis]).collect::<Vec<i64>>();
        let axes: Vec<i64> = cut.iter().map(|&axis| axis as i64).collect();
        let lists = [list(starts), list(limits), axes, list(steps)].map(|list| self.integers(&list));
        let operands = [value, lists[0], lists[1], lists[2], lists[3]];
        let value = self.node("Slice", &operands, Vec::new(), TensorType::new(x.ty.element, small))?;
        Ok(Term::value(ty.clone(), value))
    }

    pub(super) fn pad(&mut self, op: &'m Operation<'m>, terms: &[Term]) -> Got<Term> {
        let ([x, filler], ty) = (self.operands(op, terms)?, self.result(op)?);
        let rank = x.dims().len();
        let low = self.listed(op, &["low", "edge_padding_low"])?;
        let high = self.listed(op, &["high", "edge_padding_high"])?;
        let interior = self.listed(op, &["interior", "interior_padding"])?;
        if [&low, &high, &interior].iter().any(|list| list.len() != rank) || !filler.dims().is_empty() {
            return self.wrong("the padding does not name every axis, or its filler is no scalar");
        }
        let padded = self.widened(x, &low, &high, &interior, filler)?;
        self.same(ty, &padded.ty)?;
        Ok(padded)
    }

    /// The term with `interior` fillers between its elements, and `low` and `high` ones around them; negative numbers cut.
    pub(super) fn widened(
        &mut self,
        x: &Term,
        low: &[i64],
        high: &[i64],
        interior: &[i64],
        filler: &Term,
    ) -> Got<Term> {
        let dilated = self.dilated(x, interior, filler)?;
        let mut dims = Vec::new();
        for (axis, &extent) in dilated.dims().iter().enumerate() {
            let new = i128::from(extent) + i128::from(low[axis]) + i128::from(high[axis]);
            // A cut from one end must not reach beyond the other.
            let fits = -i128::from(low[axis]) <= extent.into() && -i128::from(high[axis]) <= extent.into();
            match u64::try_from(new) {
                Ok(new) if fits => dims.push(new),
                _ => return self.wrong(format!("{} is padded to less than nothing", x.ty)),
            }
        }
        let cut = |list: &[i64]| list.iter().map(|&pad| pad.min(0).saturating_neg()).collect::<Vec<i64>>();
        let (before, after) = (cut(low), cut(high));
        let kept: Vec<u64> = (0..dims.len())
            .map(|a| dilated.dims()[a].saturating_sub(before[a] as u64).saturating_sub(after[a] as u64))
            .collect();
        let limits: Vec<i64> = (0..dims.len()).map(|a| before[a] + kept[a] as i64).collect();
        let ones = vec![1; dims.len()];
        let kept = TensorType::new(x.ty.element, kept);
        let inner = self.sliced(&dilated, &before, &limits, &ones, &kept)?;
        let ty = TensorType::new(x.ty.element, dims);
        if inner.ty == ty {
            return Ok(inner);
        }
        if inner.ty.element_count() == Some(0) {
            return Ok(match filler.known() {
                Some(scalar) => Term::splat(ty, scalar.clone()),
                None => Term::value(ty, self.small(filler)?),
            });
        }
        let (value, filler) = (self.whole(&inner)?, self.small(filler)?);
        let grown = |list: &[i64]| list.iter().map(|&pad| pad.max(0)).collect::<Vec<i64>>();
        let pads = self.integers(&[grown(low), grown(high)].concat());
        let value = self.node("Pad", &[value, pads, filler], Vec::new(), ty.clone())?;
        Ok(Term::value(ty, value))
    }

    /// The term with `interior` fillers between its elements.
    fn dilated(&mut self, x: &Term, interior: &[i64], filler: &Term) -> Got<Term> {
        self.same(&TensorType::new(x.ty.element, []), &filler.ty)?;
        let mut term = x.clone();
        for (axis, &between) in interior.iter().enumerate() {
            let extent = term.dims()[axis];
            if between < 0 {
                return self.wrong("a padding between elements is negative");
            }
            if between == 0 || extent <= 1 {
                continue;
            }
            // Each element gets an axis of its own, which is padded behind it; the last one's fillers are cut.
            let Some(step) = (between as u64).checked_add(1) else {
                return self.wrong("a padding between elements is too large");
            };
            let mut apart = term.dims().to_vec();
            apart.insert(axis + 1, 1);
            let single = self.as_dims(&term, &apart)?;
            apart[axis + 1] = step;
            let wide = TensorType::new(x.ty.element, apart.clone());
            let (value, filler) = (self.whole(&single)?, self.small(filler)?);
            let mut pads = vec![0; 2 * apart.len()];
            pads[apart.len() + axis + 1] = between;
            let pads = self.integers(&pads);
            let value = self.node("Pad", &[value, pads, filler], Vec::new(), wide.clone())?;
            apart.remove(axis + 1);
            let Some(long) = extent.checked_mul(step) else { return self.wrong("the result is too large") };
            apart[axis] = long;
            let joined = self.as_dims(&Term::value(wide, value), &apart)?;
            let mut limits: Vec<i64> = apart.iter().map(|&d| d as i64).collect();
            limits[axis] -= between;
            apart[axis] -= between as u64;
            let (zeros, ones) = (vec![0; apart.len()], vec![1; apart.len()]);
            term = self.sliced(&joined, &zeros, &limits, &ones, &TensorType::new(x.ty.element, apart))?;
        }
        Ok(term)
    }

    /// The starts that are known, each within the range in which the slice lies in the tensor.
    fn known_starts(&self, starts: &[Term], dims: &[u64], sizes: &[u64]) -> Option<Vec<i64>> {
        let start = |((start, &extent), &size): ((&Term, &u64), &u64)| {
            if extent == size {
                return Some(0);
            }
            Some(start.integer()?.clamp(0, (extent - size) as i64))
        };
        starts.iter().zip(dims).zip(sizes).map(start).collect()
    }

    /// Checks the starts of a slice of `sizes` in `x`.
    fn check_starts(&self, x: &Term, starts: &[Term], sizes: &[u64]) -> Got<()> {
        let scalar = |start: &Term| start.dims().is_empty() && code_of_integer(start.ty.element);
        if starts.len() != x.dims().len() || sizes.len() != starts.len() || !starts.iter().all(scalar) {
            return self.wrong("the slice has not one integer for every axis");
        }
        if sizes.iter().zip(x.dims()).any(|(size, extent)| size > extent) {
            return self.wrong(format!("a slice of extents {sizes:?} does not fit {}", x.ty));
        }
        Ok(())
    }

    pub(super) fn dynamic_slice(&mut self, op: &'m Operation<'m>, terms: &[Term]) -> Got<Term> {
        let ty = self.result(op)?;
        let Some((x, starts)) = terms.split_first() else { return self.wrong("the operand is missing") };
        self.gives(ty, x.ty.element, &ty.dims)?;
        self.check_starts(x, starts, &ty.dims)?;
        if let Some(starts) = self.known_starts(starts, x.dims(), &ty.dims) {
            let limits: Vec<i64> = starts.iter().zip(&ty.dims).map(|(s, &d)| s + d as i64).collect();
            let ones = vec![1; starts.len()];
            return self.sliced(x, &starts, &limits, &ones, ty);
        }
        let mut term = x.clone();
        for (axis, start) in starts.iter().enumerate() {
            let (extent, size) = (x.dims()[axis], ty.dims[axis]);
            if extent == size {
                continue;
            }
            let start = self.within(start, extent - size)?;
            let start = self.as_dims(&start, &[1])?;
            let start = Term::value(TensorType::new(ElementType::Int64, [size]), self.small(&start)?);
            let count = self.counted(&start.ty, 0)?;
            let places = self.each("Add", &[&start, &count], ElementType::Int64, &[])?;
            term = self.taken(&term, &places, axis)?;
        }
        Ok(term)
    }

    /// The integers as ones of 64 bits, from 0 to this one.
    pub(super) fn within(&mut self, x: &Term, last: u64) -> Got<Term> {
        let x = self.cast(x, ElementType::Int64)?;
        let (zero, last) = (self.integer_like(&x, 0)?, self.integer_like(&x, last as i64)?);
        if let Some(known) = x.integer() {
            return self.integer_like(&x, known.clamp(0, last.integer().unwrap_or(0)));
        }
        let raised = self.each("Max", &[&x, &zero], ElementType::Int64, &[])?;
        self.each("Min", &[&raised, &last], ElementType::Int64, &[])
    }

    /// Along the axis the elements at these places, a list.
    pub(super) fn taken(&mut self, x: &Term, places: &Term, axis: usize) -> Got<Term> {
        let mut dims = x.dims().to_vec();
        dims.splice(axis..=axis, places.dims().iter().copied());
        let ty = TensorType::new(x.ty.element, dims);
        let (value, places) = (self.whole(x)?, self.whole(places)?);
        let attributes = vec![("axis", Attr::Int(axis as i64))];
        let value = self.node("Gather", &[value, places], attributes, ty.clone())?;
        Ok(Term::value(ty, value))
    }

    pub(super) fn dynamic_update_slice(&mut self, op: &'m Operation<'m>, terms: &[Term]) -> Got<Term> {
        let [x, update, starts @ ..] = terms else { return self.wrong("an operand is missing") };
        self.gives(self.result(op)?, x.ty.element, x.dims())?;
        self.gives(&update.ty, x.ty.element, update.dims())?;
        self.check_starts(x, starts, update.dims())?;
        if update.ty == x.ty {
            return Ok(update.clone());
        }
        match self.known_starts(starts, x.dims(), update.dims()) {
            Some(starts) => self.updated(x, update, &starts),
            None => self.updated_somewhere(x, update, starts),
        }
    }

    /// `x` with `update` at these places.
    fn updated(&mut self, x: &Term, update: &Term, starts: &[i64]) -> Got<Term> {
        // A buffer of more rows than a loop has turns is one tensor.
        const MOST: u64 = 1 << 14;
        if update.dims()[0] == 1 && update.dims()[1..] == x.dims()[1..] && (2..=MOST).contains(&x.dims()[0]) {
            let row = TensorType::new(x.ty.element, update.dims());
            let rows = match &x.is {
                Is::Rows(rows) => Some(Rc::clone(rows)),
                Is::Splat(scalar) => {
                    self.charge(x.dims()[0])?;
                    let row = Term::splat(row, scalar.clone());
                    Some(Rc::new(vec![row; x.dims()[0] as usize]))
                }
                Is::Value(_) => None,
            };
            if let Some(mut rows) = rows {
                self.charge(x.dims()[0] / 16)?;
                Rc::make_mut(&mut rows)[starts[0] as usize] = update.clone();
                return Ok(Term { ty: x.ty.clone(), is: Is::Rows(rows) });
            }
        }
        let Some(axis) = (0..starts.len()).find(|&a| update.dims()[a] != x.dims()[a]) else {
            return Ok(update.clone());
        };
        // Along the first axis that is not replaced whole: the part before, the part that changes, and the part behind.
        let part = |importer: &mut Self, from: i64, to: i64| {
            let mut limits: Vec<i64> = x.dims().iter().map(|&d| d as i64).collect();
            let (mut from_all, ones) = (vec![0; limits.len()], vec![1; limits.len()]);
            (from_all[axis], limits[axis]) = (from, to);
            let mut dims = x.dims().to_vec();
            dims[axis] = (to - from) as u64;
            importer.sliced(x, &from_all, &limits, &ones, &TensorType::new(x.ty.element, dims))
        };
        let (from, to) = (starts[axis], starts[axis] + update.dims()[axis] as i64);
        let before = part(self, 0, from)?;
        let changing = part(self, from, to)?;
        let behind = part(self, to, x.dims()[axis] as i64)?;
        let mut inner = starts.to_vec();
        inner[axis] = 0;
        let changed = self.updated_if_not_whole(&changing, update, &inner)?;
        self.joined(&[before, changed, behind], axis, &x.ty)
    }

    fn updated_if_not_whole(&mut self, x: &Term, update: &Term, starts: &[i64]) -> Got<Term> {
        if x.ty == update.ty { Ok(update.clone()) } else { self.updated(x, update, starts) }
    }

    /// `x` with `update` at places that the step computes: along each axis the update is spread to the extent of `x`, and taken
    /// where the place lies in it.
    fn updated_somewhere(&mut self, x: &Term, update: &Term, starts: &[Term]) -> Got<Term> {
        let mut spread = update.clone();
        let mut inside: Option<Term> = None;
        for (axis, start) in starts.iter().enumerate() {
            let (extent, size) = (x.dims()[axis], update.dims()[axis]);
            if extent == size {
                continue;
            }
            let Some(last) = size.checked_sub(1) else { return Ok(x.clone()) };
            let list = TensorType::new(ElementType::Int64, [extent]);
            let start = self.within(start, extent - size)?;
            let start = match &start.is {
                Is::Splat(scalar) => Term::splat(list.clone(), scalar.clone()),
                _ => Term::value(list.clone(), self.small(&start)?),
            };
            let count = self.counted(&list, 0)?;
            let offset = self.each("Sub", &[&count, &start], ElementType::Int64, &[])?;
            let place = self.within(&offset, last)?;
            spread = self.taken(&spread, &place, axis)?;
            let is_in = self.each("Equal", &[&offset, &place], ElementType::Bool, &[])?;
            let mut dims = vec![1; x.dims().len()];
            dims[axis] = extent;
            let value = self.whole(&is_in)?;
            let value = self.aligned(value, &dims)?;
            let is_in = Term::value(TensorType::new(ElementType::Bool, x.dims()), value);
            inside = Some(match inside {
                Some(other) => self.each("And", &[&other, &is_in], ElementType::Bool, &[])?,
                None => is_in,
            });
        }
        match inside {
            Some(inside) => self.choose(&inside, &spread, x),
            None => Ok(update.clone()),
        }
    }
}

/// Whether indices may have this type.
pub(super) fn code_of_integer(element: ElementType) -> bool {
    !element.is_float() && element.bits() <= 64 && element.bits() >= 8 && element != ElementType::Bool
}

//! Gathering and scattering by computed indices.
//!
//! Where one axis is indexed, that is `Gather`. Else the tensor is seen as a list of rows, and the number of each row is computed
//! from its coordinates.

use lmsc_ir::{Attr, ElementType, TensorType, ValueId};

use super::reduce::Combination;
use super::shape::code_of_integer;
use crate::hlo::import::{Got, Importer};
use crate::hlo::parse::{Attribute, Attributes, Operation, find};
use crate::hlo::term::{Is, Term};

/// How indices address windows of a tensor.
struct Addresses {
    /// Axes of the tensor that a window does not have.
    without: Vec<usize>,
    /// Axes of the tensor and of the indices that go together.
    batching: Vec<(usize, usize)>,
    /// The axis of the tensor to which each index of a vector belongs.
    map: Vec<usize>,
    /// The axis of the indices along which a vector lies.
    vector: usize,
}

/// The numbers of the rows that a window of each index vector covers.
struct Rows {
    numbers: Term,
    /// Whether the window of a vector lies within the tensor, for each number; `None` if all do.
    valid: Option<Term>,
    /// Number of axes of the tensor before those of a row.
    head: usize,
    count: u64,
}

impl<'m> Importer<'m> {
    fn addresses(
        &self,
        map: &Attributes,
        [without, batching, batching_of_indices, to]: [&str; 4],
        (x, indices): (&Term, &Term),
    ) -> Got<Addresses> {
        let list = |name: &str| match find(map, name) {
            None => Ok(Vec::new()),
            Some(attribute) => match attribute.ints() {
                Some(list) => Ok(list),
                None => self.wrong(format!("`{name}` is no list of integers")),
            },
        };
        let vector = match find(map, "index_vector_dim") {
            None => 0,
            Some(&Attribute::Int(axis)) => usize::try_from(axis).unwrap_or(usize::MAX),
            Some(_) => return self.wrong("`index_vector_dim` is no integer"),
        };
        let (rank, of_indices) = (x.dims().len(), indices.dims().len());
        if vector > of_indices || !code_of_integer(indices.ty.element) {
            return self.wrong(format!("{} has no vectors of integers along axis {vector}", indices.ty));
        }
        let (a, b) =
            (self.axes(&list(batching)?, rank)?, self.axes(&list(batching_of_indices)?, of_indices)?);
        let fits = |(&a, &b): (&usize, &usize)| b != vector && x.dims()[a] == indices.dims()[b];
        if a.len() != b.len() || !a.iter().zip(&b).all(fits) {
            return self.wrong("the batching axes of tensor and indices do not go together");
        }
        let map = self.axes(&list(to)?, rank)?;
        let size = indices.dims().get(vector).copied().unwrap_or(1);
        if map.len() as u64 != size {
            return self.wrong(format!("vectors of {size} indices are mapped to {} axes", map.len()));
        }
        let without = self.axes(&list(without)?, rank)?;
        if without.iter().chain(&map).any(|axis| a.contains(axis)) {
            return self.wrong("a batching axis is indexed, too");
        }
        Ok(Addresses { without, batching: a.into_iter().zip(b).collect(), map, vector })
    }

    pub(super) fn gather(&mut self, op: &'m Operation<'m>, terms: &[Term]) -> Got<Term> {
        let ([x, indices], ty) = (self.operands(op, terms)?, self.result(op)?);
        let Some(Attribute::Map(map)) = op.attribute("dimension_numbers") else {
            return self.wrong("the dimension numbers are missing");
        };
        let names = [
            "collapsed_slice_dims",
            "operand_batching_dims",
            "start_indices_batching_dims",
            "start_index_map",
        ];
        let addresses = self.addresses(map, names, (x, indices))?;
        let sizes = self.listed(op, &["slice_sizes"])?;
        let sizes: Vec<u64> = sizes.iter().map(|&size| u64::try_from(size).unwrap_or(u64::MAX)).collect();
        let fits = sizes.iter().zip(x.dims()).all(|(size, extent)| size <= extent);
        let single = |axis: usize| sizes[axis] == 1;
        if sizes.len() != x.dims().len()
            || !fits
            || !addresses.without.iter().chain(addresses.batching.iter().map(|(a, _)| a)).all(|&a| single(a))
        {
            return self.wrong(format!("slices of extents {sizes:?} do not fit {}", x.ty));
        }
        self.gives(ty, x.ty.element, &ty.dims)?;
        let offsets = match find(map, "offset_dims").map(Attribute::ints) {
            None => Vec::new(),
            Some(Some(list)) => self.axes(&list, ty.dims.len())?,
            Some(None) => return self.wrong("`offset_dims` is no list of integers"),
        };
        let gathered = match self.gathered_along_one(x, indices, &addresses, &sizes)? {
            Some(gathered) => gathered,
            None => self.gathered_rows(x, indices, &addresses, &sizes)?,
        };
        // The axes of the indices come first; here they take the places that are no offsets.
        let batch = gathered.dims().len().saturating_sub(offsets.len());
        let mut order = Vec::new();
        let (mut next_batch, mut next_offset) = (0..batch, batch..gathered.dims().len());
        for axis in 0..ty.dims.len() {
            let next = if offsets.contains(&axis) { next_offset.next() } else { next_batch.next() };
            order.extend(next);
        }
        if order.len() != ty.dims.len() || gathered.dims().len() != ty.dims.len() || !offsets.is_sorted() {
            return self.wrong(format!("the gathered slices are not {ty}"));
        }
        let result = self.permuted(&gathered, &order)?;
        self.same(ty, &result.ty)?;
        Ok(result)
    }

    /// The slices where one axis is indexed and the others are taken whole: the axes of the indices, then those of the slices.
    fn gathered_along_one(
        &mut self,
        x: &Term,
        indices: &Term,
        addresses: &Addresses,
        sizes: &[u64],
    ) -> Got<Option<Term>> {
        let [axis] = addresses.map[..] else { return Ok(None) };
        let others = (0..sizes.len()).all(|other| other == axis || sizes[other] == x.dims()[other]);
        if !others || !addresses.batching.is_empty() || addresses.without.iter().any(|&other| other != axis) {
            return Ok(None);
        }
        let mut batch = indices.dims().to_vec();
        if addresses.vector < batch.len() {
            batch.remove(addresses.vector);
        }
        let starts = self.as_dims(indices, &batch)?;
        let mut places = self.within(&starts, x.dims()[axis] - sizes[axis])?;
        let rank = batch.len();
        let mut count = rank;
        if !addresses.without.contains(&axis) {
            let apart = [&batch[..], &[1]].concat();
            let window = TensorType::new(ElementType::Int64, [&batch[..], &[sizes[axis]]].concat());
            let start = self.as_dims(&places, &apart)?;
            let start = match &start.is {
                Is::Splat(scalar) => Term::splat(window.clone(), scalar.clone()),
                _ => Term::value(window.clone(), self.whole(&start)?),
            };
            let offset = self.counted(&window, rank)?;
            places = self.each("Add", &[&start, &offset], ElementType::Int64, &[])?;
            count += 1;
        }
        let taken = self.taken(x, &places, axis)?;
        // Before the axes of the indices are the slice's axes before the indexed one.
        let order: Vec<usize> = (axis..axis + rank)
            .chain(0..axis)
            .chain(axis + rank..axis + count)
            .chain(axis + count..taken.dims().len())
            .collect();
        self.permuted(&taken, &order).map(Some)
    }

    /// The slices of any shape: the axes of the indices, then those of the slices.
    fn gathered_rows(&mut self, x: &Term, indices: &Term, addresses: &Addresses, sizes: &[u64]) -> Got<Term> {
        // A slice that is taken whole begins at 0.
        let is_whole = |axis: usize| sizes[axis] == x.dims()[axis];
        let rows = self.rows(x, indices, addresses, sizes, is_whole, false)?;
        let dims = [&[rows.count], &x.dims()[rows.head..]].concat();
        let list = self.as_dims(x, &dims)?;
        self.taken(&list, &rows.numbers, 0)
    }

    /// The rows that the windows cover: those of the axes from the first on after which windows are whole.
    fn rows(
        &mut self,
        x: &Term,
        indices: &Term,
        addresses: &Addresses,
        sizes: &[u64],
        is_row: impl Fn(usize) -> bool,
        checked: bool,
    ) -> Got<Rows> {
        let rank = x.dims().len();
        let is_batching = |axis: usize| addresses.batching.iter().any(|&(a, _)| a == axis);
        let in_window = |axis: usize| !addresses.without.contains(&axis) && !is_batching(axis);
        let behind = (0..rank).rev().take_while(|&axis| is_row(axis) && in_window(axis)).count();
        let head = rank - behind;
        let mut batch = indices.dims().to_vec();
        if addresses.vector < batch.len() {
            batch.remove(addresses.vector);
        }
        let windows: Vec<usize> = (0..head).filter(|&axis| in_window(axis)).collect();
        let mut grid = batch.clone();
        grid.extend(windows.iter().map(|&axis| sizes[axis]));
        let ty = TensorType::new(ElementType::Int64, grid);
        let mut numbers = self.integer(&ty, 0)?;
        let mut valid: Option<Term> = None;
        let mut stride: u64 = 1;
        for axis in (0..head).rev() {
            let extent = x.dims()[axis];
            let mut place = self.integer(&ty, 0)?;
            if let Some(part) = addresses.map.iter().position(|&mapped| mapped == axis) {
                let start = self.part(indices, addresses.vector, part, &batch)?;
                let start = self.on_grid(&start, &ty)?;
                let start = self.cast(&start, ElementType::Int64)?;
                let clamped = self.within(&start, extent.saturating_sub(sizes[axis]))?;
                place = clamped.clone();
                if checked {
                    let is_valid = self.equal(&start, &clamped)?;
                    valid = Some(match valid {
                        Some(other) => self.both(&other, &is_valid)?,
                        None => is_valid,
                    });
                }
            }
            let counted = match addresses.batching.iter().find(|&&(a, _)| a == axis) {
                Some(&(_, of_indices)) => Some(of_indices - usize::from(of_indices > addresses.vector)),
                None => windows.iter().position(|&w| w == axis).map(|place| batch.len() + place),
            };
            if let Some(counted) = counted.filter(|&counted| ty.dims[counted] > 1) {
                let count = self.counted(&ty, counted)?;
                place = self.sum(&place, &count)?;
            }
            let factor = match i64::try_from(stride) {
                Ok(factor) => self.integer(&ty, factor)?,
                Err(_) => return self.wrong(format!("{} is too large", x.ty)),
            };
            let part = match (place.integer(), stride) {
                (Some(0), _) | (_, 1) => place,
                _ => self.each("Mul", &[&place, &factor], ElementType::Int64, &[])?,
            };
            numbers = self.sum(&numbers, &part)?;
            stride = match stride.checked_mul(extent) {
                Some(stride) => stride,
                None => return self.wrong(format!("{} is too large", x.ty)),
            };
        }
        let valid = valid.filter(|valid| valid.integer() != Some(1));
        Ok(Rows { numbers, valid, head, count: stride })
    }

    fn sum(&mut self, a: &Term, b: &Term) -> Got<Term> {
        match (a.integer(), b.integer()) {
            (Some(0), _) => Ok(b.clone()),
            (_, Some(0)) => Ok(a.clone()),
            _ => self.each("Add", &[a, b], ElementType::Int64, &[]),
        }
    }

    fn equal(&mut self, a: &Term, b: &Term) -> Got<Term> {
        let ty = TensorType::new(ElementType::Bool, a.dims());
        match (a.integer(), b.integer()) {
            (Some(a), Some(b)) => self.integer(&ty, i64::from(a == b)),
            _ => self.each("Equal", &[a, b], ElementType::Bool, &[]),
        }
    }

    fn both(&mut self, a: &Term, b: &Term) -> Got<Term> {
        match (a.integer(), b.integer()) {
            (Some(1), _) | (_, Some(0)) => Ok(b.clone()),
            (_, Some(1)) | (Some(0), _) => Ok(a.clone()),
            _ => self.each("And", &[a, b], ElementType::Bool, &[]),
        }
    }

    /// The index of this number of each vector.
    fn part(&mut self, indices: &Term, vector: usize, part: usize, batch: &[u64]) -> Got<Term> {
        let Some(&size) = indices.dims().get(vector) else { return Ok(indices.clone()) };
        if size == 1 {
            return self.as_dims(indices, batch);
        }
        let place = self.integers(&[part as i64]);
        let place = Term::value(TensorType::new(ElementType::Int64, [1]), place);
        if let Is::Splat(scalar) = &indices.is {
            return Ok(Term::splat(TensorType::new(indices.ty.element, batch), scalar.clone()));
        }
        let taken = self.taken(indices, &place, vector)?;
        self.as_dims(&taken, batch)
    }

    /// A tensor of the indices' axes, repeated along the windows'.
    fn on_grid(&mut self, x: &Term, ty: &TensorType) -> Got<Term> {
        let ty = TensorType::new(x.ty.element, ty.dims.clone());
        if let Is::Splat(scalar) = &x.is {
            return Ok(Term::splat(ty, scalar.clone()));
        }
        let mut dims = x.dims().to_vec();
        dims.resize(ty.dims.len(), 1);
        let apart = self.as_dims(x, &dims)?;
        let value = self.small(&apart)?;
        Ok(Term::value(ty, value))
    }

    pub(super) fn scatter(&mut self, op: &'m Operation<'m>, terms: &[Term]) -> Got<Term> {
        let [x, indices, updates] = terms else {
            return self.refuse("a scatter into several tensors at once is not translated");
        };
        let ty = self.result(op)?;
        self.same(ty, &x.ty)?;
        self.gives(&updates.ty, x.ty.element, updates.dims())?;
        let Some(Attribute::Map(map)) = op.attribute("scatter_dimension_numbers") else {
            return self.wrong("the dimension numbers are missing");
        };
        let names = [
            "inserted_window_dims",
            "input_batching_dims",
            "scatter_indices_batching_dims",
            "scatter_dims_to_operand_dims",
        ];
        let addresses = self.addresses(map, names, (x, indices))?;
        let [region] = &op.regions[..] else { return self.wrong("a scatter has a region") };
        let how = self.combination(region, x.ty.element)?;
        let windows = match find(map, "update_window_dims").map(Attribute::ints) {
            None => Vec::new(),
            Some(Some(list)) => self.axes(&list, updates.dims().len())?,
            Some(None) => return self.wrong("`update_window_dims` is no list of integers"),
        };
        let (updates, sizes) = self.windows_last(x, indices, updates, &addresses, &windows)?;
        let is_row = |axis: usize| sizes[axis] == x.dims()[axis] && !addresses.map.contains(&axis);
        let rows = self.rows(x, indices, &addresses, &sizes, is_row, true)?;
        self.scattered(x, &updates, rows, how)
    }

    /// The updates with the axes of the indices first, and the extents of their windows along every axis of `x`.
    fn windows_last(
        &mut self,
        x: &Term,
        indices: &Term,
        updates: &Term,
        addresses: &Addresses,
        windows: &[usize],
    ) -> Got<(Term, Vec<u64>)> {
        let is_batching = |axis: usize| addresses.batching.iter().any(|&(a, _)| a == axis);
        let own: Vec<usize> =
            (0..x.dims().len()).filter(|&a| !addresses.without.contains(&a) && !is_batching(a)).collect();
        let others: Vec<usize> = (0..updates.dims().len()).filter(|axis| !windows.contains(axis)).collect();
        let mut batch = indices.dims().to_vec();
        if addresses.vector < batch.len() {
            batch.remove(addresses.vector);
        }
        let mut sizes = vec![1; x.dims().len()];
        for (&axis, &window) in own.iter().zip(windows) {
            sizes[axis] = updates.dims()[window];
        }
        let fits = own.len() == windows.len()
            && windows.is_sorted()
            && others.iter().map(|&axis| updates.dims()[axis]).eq(batch)
            && sizes.iter().zip(x.dims()).all(|(size, extent)| size <= extent);
        if !fits {
            return self.wrong(format!("the updates {} do not fit {} and {}", updates.ty, x.ty, indices.ty));
        }
        let order = [&others[..], windows].concat();
        Ok((self.permuted(updates, &order)?, sizes))
    }

    /// `x` with the updates in these rows. Windows that do not lie within the tensor change nothing.
    fn scattered(&mut self, x: &Term, updates: &Term, rows: Rows, how: Combination) -> Got<Term> {
        let Rows { mut numbers, valid, head, count } = rows;
        let (row, element) = (x.dims()[head..].to_vec(), x.ty.element);
        let mut updates = updates.clone();
        if updates.ty.element_count() == Some(0) {
            return Ok(x.clone());
        }
        let mut total = count;
        if let Some(valid) = valid {
            if how == Combination::Sum {
                let mut dims = valid.dims().to_vec();
                dims.resize(updates.dims().len(), 1);
                let value = self.whole(&valid)?;
                let value = self.reshaped(value, &dims)?;
                let valid = Term::value(TensorType::new(ElementType::Bool, updates.dims()), value);
                let nothing = self.integer_like(&updates, 0)?;
                updates = self.choose(&valid, &updates, &nothing)?;
            } else {
                // They go to a row of their own, which is cut off again.
                let beyond = self.integer(&numbers.ty, count as i64)?;
                numbers = self.choose(&valid, &numbers, &beyond)?;
                total += 1;
            }
        }
        let flat = [&[total], &row[..]].concat();
        let flat = TensorType::new(element, flat);
        let is_zero = x.known().is_some()
            && self
                .is_neutral(&Term { ty: TensorType::new(element, []), is: x.is.clone() }, Combination::Sum);
        let (places, changes) = (self.whole(&numbers)?, self.whole(&updates)?);
        let value = if how == Combination::Sum && is_zero && element.is_float() {
            // The gradient of a lookup.
            let shape: Vec<i64> = flat.dims.iter().map(|&d| d as i64).collect();
            let shape = self.integers(&shape);
            let attributes = vec![("axis", Attr::Int(0))];
            self.node("com.microsoft.GatherGrad", &[shape, places, changes], attributes, flat.clone())?
        } else {
            self.scattered_into(x, &flat, places, changes, count, how)?
        };
        let term = Term::value(flat, value);
        let kept = [&[count], &row[..]].concat();
        let term = if total == count { term } else { self.first_rows(&term, &kept)? };
        self.as_dims(&term, x.dims())
    }

    fn scattered_into(
        &mut self,
        x: &Term,
        flat: &TensorType,
        places: ValueId,
        changes: ValueId,
        count: u64,
        how: Combination,
    ) -> Got<ValueId> {
        let list = [&[count], &flat.dims[1..]].concat();
        let mut data = self.as_dims(x, &list)?;
        if flat.dims[0] > count {
            let spare = TensorType::new(flat.element, [&[1], &flat.dims[1..]].concat());
            let spare = match &data.is {
                Is::Splat(scalar) => Term::splat(spare, scalar.clone()),
                _ => self.integer_like(&Term { ty: spare, is: data.is.clone() }, 0)?,
            };
            data = match data.known() {
                Some(scalar) => Term::splat(flat.clone(), scalar.clone()),
                None => self.joined(&[data, spare], 0, flat)?,
            };
        }
        let reduction = match how {
            Combination::Sum => "add",
            Combination::Product => "mul",
            Combination::Largest => "max",
            Combination::Smallest => "min",
            Combination::Second => "none",
        };
        if flat.element == ElementType::Bool && how != Combination::Second {
            return self.refuse("a scatter of truth values that combines them is not translated");
        }
        let vectors = [self.dims_of(places), &[1]].concat();
        let vectors = self.reshaped(places, &vectors)?;
        let data = self.whole(&data)?;
        let attributes = vec![("reduction", Attr::from(reduction))];
        self.node("ScatterND", &[data, vectors, changes], attributes, flat.clone())
    }

    fn first_rows(&mut self, x: &Term, dims: &[u64]) -> Got<Term> {
        let value = self.whole(x)?;
        let bounds = [vec![0], vec![dims[0] as i64], vec![0], vec![1]].map(|list| self.integers(&list));
        let operands = [value, bounds[0], bounds[1], bounds[2], bounds[3]];
        let ty = TensorType::new(x.ty.element, dims);
        let value = self.node("Slice", &operands, Vec::new(), ty.clone())?;
        Ok(Term::value(ty, value))
    }
}

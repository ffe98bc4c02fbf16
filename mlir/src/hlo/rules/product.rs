//! Products: `dot_general` as a matrix product of the tensors' axes, put together in three groups.

use lmsc_ir::{Attr, ElementType, TensorType, ValueId};

use crate::hlo::import::{Got, Importer};
use crate::hlo::parse::{Attribute, Operation};
use crate::hlo::term::Term;

/// Axes of an operand of a product.
struct Axes {
    batch: Vec<usize>,
    contracting: Vec<usize>,
    /// The others.
    free: Vec<usize>,
}

impl<'m> Importer<'m> {
    pub(super) fn dot_general(&mut self, op: &'m Operation<'m>, terms: &[Term]) -> Got<Term> {
        let [a, b] = self.operands(op, terms)?;
        let [mut left, mut right] = [(Vec::new(), Vec::new()), (Vec::new(), Vec::new())];
        if let Some(Attribute::Map(map)) = op.attribute("dot_dimension_numbers") {
            for (name, value) in map {
                let Some(list) = value.ints() else { continue };
                match name.as_str() {
                    "lhs_batching_dimensions" => left.0 = list,
                    "rhs_batching_dimensions" => right.0 = list,
                    "lhs_contracting_dimensions" => left.1 = list,
                    "rhs_contracting_dimensions" => right.1 = list,
                    _ => {}
                }
            }
        } else {
            (left.0, right.0) = self.pair(op, "batching_dims")?;
            (left.1, right.1) = self.pair(op, "contracting_dims")?;
        }
        let left = self.axes_of(a, &left.0, &left.1)?;
        let right = self.axes_of(b, &right.0, &right.1)?;
        self.product(op, (a, left), (b, right))
    }

    /// `dot`: a product of vectors and matrices.
    pub(super) fn dot(&mut self, op: &'m Operation<'m>, terms: &[Term]) -> Got<Term> {
        let [a, b] = self.operands(op, terms)?;
        let Some(last) = a.dims().len().checked_sub(1) else { return self.wrong("a scalar has no product") };
        let (left, right) = (self.axes_of(a, &[], &[last as i64])?, self.axes_of(b, &[], &[0])?);
        self.product(op, (a, left), (b, right))
    }

    /// The two lists of `name = [0] x [1]`.
    fn pair(&self, op: &Operation<'m>, name: &str) -> Got<(Vec<i64>, Vec<i64>)> {
        let Some(attribute) = op.attribute(name) else { return Ok((Vec::new(), Vec::new())) };
        if let Attribute::List(lists) = attribute
            && let [a, b] = &lists[..]
            && let (Some(a), Some(b)) = (a.ints(), b.ints())
        {
            return Ok((a, b));
        }
        self.wrong(format!("the attribute `{name}` is not of the form [0] x [1]"))
    }

    fn axes_of(&self, x: &Term, batch: &[i64], contracting: &[i64]) -> Got<Axes> {
        let both = [batch, contracting].concat();
        let named = self.axes(&both, x.dims().len())?;
        let free = (0..x.dims().len()).filter(|axis| !named.contains(axis)).collect();
        let (batch, contracting) = named.split_at(batch.len());
        Ok(Axes { batch: batch.to_vec(), contracting: contracting.to_vec(), free })
    }

    fn product(
        &mut self,
        op: &'m Operation<'m>,
        (a, left): (&Term, Axes),
        (b, right): (&Term, Axes),
    ) -> Got<Term> {
        let ty = self.result(op)?;
        let of = |x: &Term, axes: &[usize]| axes.iter().map(|&axis| x.dims()[axis]).collect::<Vec<u64>>();
        if of(a, &left.batch) != of(b, &right.batch) || of(a, &left.contracting) != of(b, &right.contracting)
        {
            return self.wrong(format!("{} and {} do not multiply along these axes", a.ty, b.ty));
        }
        let dims = [of(a, &left.batch), of(a, &left.free), of(b, &right.free)].concat();
        self.gives(ty, ty.element, &dims)?;
        // Sums are kept in the wider type.
        let wider = |x: ElementType, y: ElementType| if x.bits() < y.bits() { y } else { x };
        let mut element = wider(a.ty.element, b.ty.element);
        if element.is_float() == ty.element.is_float() {
            element = wider(element, ty.element);
        }
        let (a, b) = (self.cast(a, element)?, self.cast(b, element)?);
        let value = match element {
            ElementType::Float | ElementType::Float16 | ElementType::Bfloat16 => {
                self.matrices((&a, left), (&b, right))?
            }
            _ => self.by_letters((&a, left), (&b, right), TensorType::new(element, dims.clone()))?,
        };
        let value = self.reshaped(value, &dims)?;
        self.cast(&Term::value(TensorType::new(element, dims), value), ty.element)
    }

    /// The product as one of matrices.
    fn matrices(&mut self, (a, left): (&Term, Axes), (b, right): (&Term, Axes)) -> Got<ValueId> {
        let (mut x, turned_x) = self.matrix(a, &left, true)?;
        let (y, turned_y) = self.matrix(b, &right, false)?;
        let rows: u64 = left.free.iter().map(|&axis| a.dims()[axis]).product();
        let columns: u64 = right.free.iter().map(|&axis| b.dims()[axis]).product();
        let mut dims: Vec<u64> = left.batch.iter().map(|&axis| a.dims()[axis]).collect();
        // A matrix is multiplied with every row of the other operand, which may have any number of axes.
        if !turned_x && left.batch.is_empty() && left.free.len() > 1 && left.contracting.len() == 1 {
            let order: Vec<usize> = left.free.iter().chain(&left.contracting).copied().collect();
            let rows = self.permuted(a, &order)?;
            x = self.whole(&rows)?;
            dims.extend(left.free.iter().map(|&axis| a.dims()[axis]));
            dims.push(columns);
        } else {
            dims.extend([rows, columns]);
        }
        let ty = TensorType::new(a.ty.element, dims);
        if !turned_x && !turned_y {
            return self.node("MatMul", &[x, y], Vec::new(), ty);
        }
        let attributes = vec![("transA", Attr::Int(turned_x.into())), ("transB", Attr::Int(turned_y.into()))];
        self.node("com.microsoft.FusedMatMul", &[x, y], attributes, ty)
    }

    /// An operand with its batch axes first, then a matrix; and whether that matrix is transposed, because the tensor lies so.
    fn matrix(&mut self, x: &Term, axes: &Axes, is_left: bool) -> Got<(ValueId, bool)> {
        let (first, second) =
            if is_left { (&axes.free, &axes.contracting) } else { (&axes.contracting, &axes.free) };
        let order = |a: &[usize], b: &[usize]| [&axes.batch, a, b].concat();
        let turned = order(second, first).is_sorted() && !order(first, second).is_sorted();
        let (first, second) = if turned { (second, first) } else { (first, second) };
        let x = self.permuted(x, &order(first, second))?;
        let product = |axes: usize, from: usize| x.dims()[from..from + axes].iter().product::<u64>();
        let batch = axes.batch.len();
        let mut dims = x.dims()[..batch].to_vec();
        dims.extend([product(first.len(), batch), product(second.len(), batch + first.len())]);
        let value = self.whole(&x)?;
        Ok((self.reshaped(value, &dims)?, turned))
    }

    /// The product of integers and of long floats, by an equation of letters.
    fn by_letters(
        &mut self,
        (a, left): (&Term, Axes),
        (b, right): (&Term, Axes),
        ty: TensorType,
    ) -> Got<ValueId> {
        let mut letters = ('a'..='z').chain('A'..='Z');
        let mut next = || letters.next();
        let mut of_a = vec![None; a.dims().len()];
        let mut of_b = vec![None; b.dims().len()];
        for (&i, &j) in
            left.batch.iter().zip(&right.batch).chain(left.contracting.iter().zip(&right.contracting))
        {
            let letter = next();
            (of_a[i], of_b[j]) = (letter, letter);
        }
        left.free.iter().for_each(|&i| of_a[i] = next());
        right.free.iter().for_each(|&j| of_b[j] = next());
        let text = |letters: &[Option<char>]| letters.iter().copied().collect::<Option<String>>();
        let result: Vec<Option<char>> = left
            .batch
            .iter()
            .chain(&left.free)
            .map(|&i| of_a[i])
            .chain(right.free.iter().map(|&j| of_b[j]))
            .collect();
        let (Some(x), Some(y), Some(z)) = (text(&of_a), text(&of_b), text(&result)) else {
            return self.refuse("a product of tensors with more than 52 axes");
        };
        let operands = [self.whole(a)?, self.whole(b)?];
        let equation = format!("{x},{y}->{z}");
        self.node("Einsum", &operands, vec![("equation", Attr::from(equation.as_str()))], ty)
    }
}

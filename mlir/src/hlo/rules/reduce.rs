//! Reductions.

use lmsc_ir::{Attr, ElementType, TensorType};

use crate::hlo::fold;
use crate::hlo::import::{Got, Importer};
use crate::hlo::parse::{Attribute, Block, Operation};
use crate::hlo::term::Term;

/// The result of a region of two scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Combination {
    Sum,
    Product,
    Largest,
    Smallest,
    /// The second one.
    Second,
}

impl<'m> Importer<'m> {
    /// The result that the region computes of its two arguments, elements of this type.
    pub(super) fn combination(&self, block: &Block<'_>, element: ElementType) -> Got<Combination> {
        let names: Vec<&str> = block.arguments.iter().map(|(name, _)| *name).collect();
        if let ([a, b], [first, .., last]) = (&names[..], &block.operations[..]) {
            let reads = |op: &Operation<'_>, names: &[&str]| {
                op.operands.iter().map(|reference| reference.name).eq(names.iter().copied())
            };
            let of_both = |op: &Operation<'_>| reads(op, &[a, b]) || reads(op, &[b, a]);
            let returns = |name: &str| last.name == "stablehlo.return" && reads(last, &[name]);
            if let ([(result, 1)], true) = (&first.results[..], block.operations.len() == 2)
                && of_both(first)
                && returns(result)
            {
                return self.combination_named(&first.name, element);
            }
        }
        if let ([_, b], [only]) = (&names[..], &block.operations[..])
            && only.operands.iter().map(|reference| reference.name).eq([*b])
        {
            return Ok(Combination::Second);
        }
        self.refuse(
            "the region computes something else than a sum, a product, a maximum, a minimum, `and` or `or` of two \
             elements; write this reduction with those of jax.numpy",
        )
    }

    pub(super) fn combination_named(&self, name: &str, element: ElementType) -> Got<Combination> {
        let name = name.split('.').next_back().unwrap_or_default();
        Ok(match (name, element == ElementType::Bool) {
            ("add", false) => Combination::Sum,
            ("multiply", false) => Combination::Product,
            ("maximum", _) | ("or" | "add", true) => Combination::Largest,
            ("minimum", _) | ("and" | "multiply", true) => Combination::Smallest,
            _ => return self.refuse(format!("a reduction by `{name}` of {element} is not translated")),
        })
    }

    pub(super) fn reduce(&mut self, op: &'m Operation<'m>, terms: &[Term]) -> Got<Vec<Term>> {
        let axes = self.listed(op, &["dimensions"])?;
        if terms.len() == 4 {
            return self.place_of_largest(op, terms, &axes);
        }
        let [x, init] = self.operands(op, terms)?;
        let ty = self.result(op)?;
        let mut axes = self.axes(&axes, x.dims().len())?;
        axes.sort_unstable();
        self.same(&TensorType::new(x.ty.element, []), &init.ty)?;
        let how = match (op.attribute("applies"), &op.regions[..]) {
            (Some(Attribute::Word(name)), _) => self.combination_named(name, x.ty.element)?,
            (_, [region]) => self.combination(region, x.ty.element)?,
            _ => return self.wrong("the reduction does not say what it computes"),
        };
        let reduced = self.reduced(x, &axes, how)?;
        self.same(ty, &reduced.ty)?;
        Ok(vec![self.combined(reduced, init, how)?])
    }

    /// The reduction along these axes.
    pub(super) fn reduced(&mut self, x: &Term, axes: &[usize], how: Combination) -> Got<Term> {
        let kept = |axis: &usize| !axes.contains(axis);
        let dims: Vec<u64> = (0..x.dims().len()).filter(kept).map(|axis| x.dims()[axis]).collect();
        if axes.iter().all(|&axis| x.dims()[axis] == 1) {
            return self.as_dims(x, &dims);
        }
        let element = x.ty.element;
        if element == ElementType::Bool {
            let bytes = self.cast(x, ElementType::Uint8)?;
            let reduced = self.reduced(&bytes, axes, how)?;
            return self.cast(&reduced, element);
        }
        let operator = match how {
            Combination::Sum => "ReduceSum",
            Combination::Product => "ReduceProd",
            Combination::Largest => "ReduceMax",
            Combination::Smallest => "ReduceMin",
            Combination::Second => return self.refuse("a reduction to the last element is not translated"),
        };
        let ty = TensorType::new(element, dims);
        let list: Vec<i64> = axes.iter().map(|&axis| axis as i64).collect();
        let (value, list) = (self.whole(x)?, self.integers(&list));
        let value = self.node(operator, &[value, list], vec![("keepdims", Attr::Int(0))], ty.clone())?;
        Ok(Term::value(ty, value))
    }

    /// The reduction with the first value, unless that changes nothing.
    pub(super) fn combined(&mut self, reduced: Term, init: &Term, how: Combination) -> Got<Term> {
        if self.is_neutral(init, how) {
            return Ok(reduced);
        }
        let init = match init.known() {
            Some(scalar) => Term::splat(reduced.ty.clone(), scalar.clone()),
            None => Term::value(reduced.ty.clone(), self.small(init)?),
        };
        let element = reduced.ty.element;
        let operator = match (how, element) {
            (Combination::Largest, ElementType::Bool) => "Or",
            (Combination::Smallest, ElementType::Bool) => "And",
            (Combination::Sum, _) => "Add",
            (Combination::Product, _) => "Mul",
            (Combination::Largest, _) => "Max",
            (Combination::Smallest, _) => "Min",
            (Combination::Second, _) => return Ok(reduced),
        };
        self.each(operator, &[&reduced, &init], element, &[])
    }

    /// Whether a reduction that begins with this value is the one of the elements alone.
    pub(super) fn is_neutral(&self, init: &Term, how: Combination) -> bool {
        let (element, Some(scalar)) = (init.ty.element, init.known()) else { return false };
        let float = fold::as_float(element, scalar);
        let bits = element.bits().min(63) as u32;
        let integer = || init.integer();
        let is_unsigned = matches!(
            element,
            ElementType::Uint8
                | ElementType::Uint16
                | ElementType::Uint32
                | ElementType::Uint64
                | ElementType::Bool
        );
        match how {
            Combination::Sum => float == Some(0.0) || integer() == Some(0),
            Combination::Product => float == Some(1.0) || integer() == Some(1),
            Combination::Largest => {
                let least =
                    if is_unsigned { 0 } else { i64::MIN >> (64 - element.bits().clamp(1, 64) as u32) };
                float == Some(f64::NEG_INFINITY) || integer() == Some(least)
            }
            Combination::Smallest => match element {
                ElementType::Bool => integer() == Some(1),
                _ if is_unsigned => scalar.iter().all(|&byte| byte == 0xff),
                _ if element.bits() == 64 => integer() == Some(i64::MAX),
                _ => float == Some(f64::INFINITY) || integer() == Some((1 << (bits - 1)) - 1),
            },
            Combination::Second => true,
        }
    }

    /// A reduction of numbers together with their indices: the largest or smallest one and its place. The region is tried on
    /// numbers that tell these from all others.
    fn place_of_largest(&mut self, op: &'m Operation<'m>, terms: &[Term], axes: &[i64]) -> Got<Vec<Term>> {
        let [x, places, init, _] = self.operands(op, terms)?;
        let ([value_ty, place_ty], [region]) = (&op.types[..], &op.regions[..]) else {
            return self.wrong("a reduction of two tensors has two results and a region");
        };
        let axes = self.axes(axes, x.dims().len())?;
        let [axis] = axes[..] else { return self.refuse("a reduction of two tensors along several axes") };
        let is_largest = match (self.finds(region, x, places, true), self.finds(region, x, places, false)) {
            (true, _) => true,
            (_, true) => false,
            _ => {
                return self.refuse(
                    "a reduction of two tensors other than jnp.argmax and jnp.argmin is not translated",
                );
            }
        };
        let how = if is_largest { Combination::Largest } else { Combination::Smallest };
        let counted = TensorType::new(places.ty.element, x.dims());
        self.same(&counted, &places.ty)?;
        if !self.counts(places, axis)? || !self.is_neutral(init, how) {
            return self
                .refuse("a reduction of two tensors of which the second does not count along the axis");
        }
        let best = self.reduced(x, &axes, how)?;
        self.same(value_ty, &best.ty)?;
        let list = TensorType::new(ElementType::Int64, best.dims());
        let value = self.whole(x)?;
        let attributes = vec![("axis", Attr::Int(axis as i64)), ("keepdims", Attr::Int(0))];
        let operator = if is_largest { "ArgMax" } else { "ArgMin" };
        let place = self.node(operator, &[value], attributes, list.clone())?;
        let place = self.cast(&Term::value(list, place), place_ty.element)?;
        self.same(place_ty, &place.ty)?;
        Ok(vec![best, place])
    }

    /// Whether the region picks the larger number, or the smaller one, and of equal ones that with the smaller index.
    fn finds(&mut self, region: &'m Block<'m>, x: &Term, places: &Term, largest: bool) -> bool {
        const TRIED: [(f64, i64, f64, i64); 6] = [
            (1.0, 3, 2.0, 1),
            (2.0, 1, 1.0, 3),
            (2.0, 3, 1.0, 1),
            (1.0, 1, 2.0, 3),
            (1.0, 3, 1.0, 1),
            (1.0, 1, 1.0, 3),
        ];
        TRIED.iter().all(|&(a, i, b, j)| {
            let number = |value: f64| {
                let scalar =
                    fold::float(x.ty.element, value).or_else(|| fold::scalar(x.ty.element, value as i64));
                Some(Term::splat(TensorType::new(x.ty.element, []), scalar?))
            };
            let place = |value: i64| {
                let scalar = fold::scalar(places.ty.element, value);
                Some(Term::splat(TensorType::new(places.ty.element, []), scalar?))
            };
            let (Some(a_term), Some(b_term), Some(i_term), Some(j_term)) =
                (number(a), number(b), place(i), place(j))
            else {
                return false;
            };
            let first = if a == b { i < j } else { (a > b) == largest };
            let wanted = if first { (&a_term, i) } else { (&b_term, j) };
            let arguments = [a_term.clone(), i_term, b_term.clone(), j_term];
            let results = self.known_results(region, &arguments);
            matches!(results.as_deref(), Some([best, place])
                if best.known() == wanted.0.known() && place.integer() == Some(wanted.1))
        })
    }

    /// Whether the term counts along the axis.
    fn counts(&mut self, term: &Term, axis: usize) -> Got<bool> {
        let counted = self.counted(&term.ty, axis)?;
        let (a, b) = (self.small(term)?, self.small(&counted)?);
        // Constants of one type and one content are one value.
        Ok(a == b && self.padded(a, term) == self.padded(b, &counted))
    }
}

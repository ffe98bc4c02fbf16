//! Sorting.

use lmsc_ir::{Attr, ElementType, TensorType, ValueId};

use crate::hlo::fold;
use crate::hlo::import::{Got, Importer};
use crate::hlo::parse::{Attribute, Block, Operation, find};
use crate::hlo::term::Term;

impl<'m> Importer<'m> {
    pub(super) fn sort(&mut self, op: &'m Operation<'m>, terms: &[Term]) -> Got<Vec<Term>> {
        let Some((key, others)) = terms.split_first() else { return self.wrong("there is nothing to sort") };
        let axis = match op.attribute("dimension") {
            Some(Attribute::Int(axis)) => *axis,
            None => -1,
            Some(_) => return self.wrong("the dimension is no integer"),
        };
        let rank = key.dims().len() as i64;
        let axis =
            self.axes(&[if axis < 0 { axis.saturating_add(rank) } else { axis }], key.dims().len())?[0];
        let [region] = &op.regions[..] else { return self.wrong("a sort has a region that compares") };
        let descending = match (self.sorts(region, terms, false), self.sorts(region, terms, true)) {
            (true, _) => false,
            (_, true) => true,
            _ => return self.refuse("a sort by something else than its first operand"),
        };
        if others.iter().any(|other| other.dims() != key.dims()) {
            return self.wrong("the sorted tensors have not the same extents");
        }
        if key.dims()[axis] <= 1 || key.ty.element_count() == Some(0) {
            return Ok(terms.to_vec());
        }
        let (sorted, places) = self.chosen(key, axis, key.dims()[axis], descending)?;
        let mut results = vec![Term::value(key.ty.clone(), sorted)];
        for other in others {
            let value = self.whole(other)?;
            let attributes = vec![("axis", Attr::Int(axis as i64))];
            let value = self.node("GatherElements", &[value, places], attributes, other.ty.clone())?;
            results.push(Term::value(other.ty.clone(), value));
        }
        Ok(results)
    }

    pub(super) fn top_k(&mut self, op: &'m Operation<'m>, terms: &[Term]) -> Got<Vec<Term>> {
        let [x] = self.operands(op, terms)?;
        // Of a composite, the attributes stand together.
        let inner = match op.attribute("composite_attributes") {
            Some(Attribute::Map(map)) => find(map, "k"),
            _ => None,
        };
        let (Some(&Attribute::Int(k)), [_, places_ty]) = (op.attribute("k").or(inner), &op.types[..]) else {
            return self.wrong("the number of elements to choose is missing");
        };
        let Some(axis) = x.dims().len().checked_sub(1) else { return self.wrong("a scalar is not sorted") };
        let Some(k) = u64::try_from(k).ok().filter(|&k| k > 0 && k <= x.dims()[axis]) else {
            return self.wrong(format!("{k} of {} elements are chosen", x.dims()[axis]));
        };
        let (chosen, places) = self.chosen(x, axis, k, true)?;
        let mut dims = x.dims().to_vec();
        dims[axis] = k;
        let places = Term::value(TensorType::new(ElementType::Int64, dims.clone()), places);
        let places = self.cast(&places, places_ty.element)?;
        Ok(vec![Term::value(TensorType::new(x.ty.element, dims), chosen), places])
    }

    /// The `k` first elements along the axis in the order of their size, and their places.
    fn chosen(&mut self, x: &Term, axis: usize, k: u64, descending: bool) -> Got<(ValueId, ValueId)> {
        let mut dims = x.dims().to_vec();
        dims[axis] = k;
        let types =
            vec![TensorType::new(x.ty.element, dims.clone()), TensorType::new(ElementType::Int64, dims)];
        let attributes = vec![("axis", Attr::Int(axis as i64)), ("largest", Attr::Int(descending.into()))];
        let operands = [self.whole(x)?, self.integers(&[k as i64])];
        let results = self.nodes("TopK", &operands, attributes, types)?;
        Ok((results[0], results[1]))
    }

    /// Whether the region compares the first pair of elements alone.
    fn sorts(&mut self, region: &'m Block<'m>, terms: &[Term], descending: bool) -> bool {
        const TRIED: [(i64, i64); 4] = [(1, 2), (2, 1), (1, 1), (-1, 1)];
        let number = |term: &Term, value: i64| {
            let element = term.ty.element;
            let scalar = fold::float(element, value as f64).or_else(|| fold::scalar(element, value));
            Some(Term::splat(TensorType::new(element, []), scalar?))
        };
        TRIED.iter().all(|&(a, b)| {
            // The other pairs must not matter.
            [(0, 1), (1, 0)].iter().all(|&(c, d)| {
                let mut arguments = Vec::new();
                for (index, term) in terms.iter().enumerate() {
                    let (left, right) = if index == 0 { (a, b) } else { (c, d) };
                    let (Some(left), Some(right)) = (number(term, left), number(term, right)) else {
                        return false;
                    };
                    arguments.extend([left, right]);
                }
                // An unsigned −1 is the largest number.
                let unsigned = matches!(
                    terms[0].ty.element,
                    ElementType::Uint8 | ElementType::Uint32 | ElementType::Uint64
                );
                if unsigned && a < 0 {
                    return true;
                }
                let wanted = if descending { a > b } else { a < b };
                let results = self.known_results(region, &arguments);
                matches!(results.as_deref(), Some([holds]) if holds.integer() == Some(i64::from(wanted)))
            })
        })
    }
}

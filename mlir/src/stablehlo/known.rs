//! Integers that follow from extents and constants alone, as in the shape computations of graphs.

use std::ops::Range;

use lmsc_ir::contract::ANY_VERSION;
use lmsc_ir::{Attr, Data, ElementType, Graph, Node, NodeId, TensorType, ValueId};

/// Maximum length: longer lists do not occur in shape computations.
const MOST: u64 = 64;

/// The elements of values, by value, if they are known.
pub(super) struct Known(Vec<Option<Vec<i64>>>);

impl Known {
    pub(super) fn of(graph: &Graph) -> Known {
        let mut known = Known(vec![None; graph.value_capacity()]);
        for initializer in &graph.initializers {
            let ty = graph.value(initializer.value).ty.as_tensor();
            known.0[index(initializer.value)] = ty.and_then(|ty| integers(ty, &initializer.data));
        }
        for &changing in graph.variables().iter().chain(&graph.inputs) {
            known.0[index(changing)] = None;
        }
        for &id in graph.order() {
            if let [Some(result)] = *graph.node(id).results
                && graph.value(result).ty.as_tensor().is_some_and(is_short)
            {
                known.0[index(result)] = known.computed(graph, id);
            }
        }
        known
    }

    /// The elements of the value, in row-major order.
    pub(super) fn get(&self, value: ValueId) -> Option<&[i64]> {
        self.0[index(value)].as_deref()
    }

    /// The elements of the node's only result.
    fn computed(&self, graph: &Graph, id: NodeId) -> Option<Vec<i64>> {
        let node = graph.node(id);
        if !node.op.domain().is_empty() || !node.updates.is_empty() {
            return None;
        }
        let dims = |index: usize| {
            let value = node.operands.get(index).copied().flatten()?;
            graph.value(value).ty.as_tensor().map(|ty| &ty.dims)
        };
        let list = |index: usize| self.get(node.operands.get(index).copied().flatten()?);
        let pairs = |compute: fn(i64, i64) -> Option<i64>| -> Option<Vec<i64>> {
            let (a, b) = (list(0)?, list(1)?);
            let count = if a.is_empty() || b.is_empty() { 0 } else { a.len().max(b.len()) };
            let fits = |list: &[i64]| list.len() == 1 || list.len() == count;
            if !fits(a) || !fits(b) {
                return None;
            }
            (0..count).map(|i| compute(a[i % a.len()], b[i % b.len()])).collect()
        };
        match node.op.name() {
            "Constant" => constant(node),
            "Shape" => {
                let dims = dims(0)?;
                dims[shape_range(node, dims.len())].iter().map(|&dim| i64::try_from(dim).ok()).collect()
            }
            "Size" => Some(vec![dims(0)?.iter().try_fold(1i64, |n, &d| n.checked_mul(d.try_into().ok()?))?]),
            "Identity" | "Cast" | "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze" => {
                list(0).map(<[i64]>::to_vec)
            }
            "Concat" => {
                let parts: Option<Vec<&[i64]>> = (0..node.operands.len()).map(list).collect();
                // Along the only dimension.
                (dims(0)?.len() == 1).then_some(parts?.concat())
            }
            "Slice" if dims(0)?.len() == 1 => {
                // One dimension, from its first operand to its second.
                let bounds = |index| Some(list(index)?.first().copied());
                let [Some(start), Some(end)] = [bounds(1)?, bounds(2)?] else { return None };
                let step = if node.operands.len() > 4 { *list(4)?.first()? } else { 1 };
                let count = list(0)?.len() as i64;
                let place =
                    |at: i64| if at < 0 { at.saturating_add(count) } else { at }.clamp(0, count) as usize;
                let step = usize::try_from(step).ok().filter(|&step| step > 0)?;
                let end = place(end).max(place(start));
                Some(list(0)?[place(start)..end].iter().step_by(step).copied().collect())
            }
            "Gather" if dims(0)?.len() == 1 => {
                let (from, at) = (list(0)?, list(1)?);
                let wrapped = |&i: &i64| if i < 0 { i + from.len() as i64 } else { i };
                at.iter().map(|i| from.get(usize::try_from(wrapped(i)).ok()?).copied()).collect()
            }
            "Add" => pairs(i64::checked_add),
            "Sub" => pairs(i64::checked_sub),
            "Mul" => pairs(i64::checked_mul),
            "Div" => pairs(i64::checked_div),
            _ => None,
        }
    }
}

/// The range of extents, out of `rank`, that a `Shape` returns.
pub(super) fn shape_range(node: &Node, rank: usize) -> Range<usize> {
    let last = rank as i64;
    // All versions have the same defaults.
    let bound = |name| {
        let place = match node.op.attribute(ANY_VERSION, &node.attributes, name) {
            Some(&Attr::Int(place)) => place,
            _ => last,
        };
        (if place < 0 { place.saturating_add(last) } else { place }).clamp(0, last) as usize
    };
    let start = bound("start");
    start..bound("end").max(start)
}

/// The elements of a `Constant`.
fn constant(node: &Node) -> Option<Vec<i64>> {
    match (node.attribute("value"), node.attribute("value_int"), node.attribute("value_ints")) {
        (Some(Attr::Tensor(ty, data)), ..) => integers(ty, data),
        (_, Some(&Attr::Int(int)), _) => Some(vec![int]),
        (.., Some(Attr::Ints(ints))) => Some(ints.clone()),
        _ => None,
    }
}

fn integers(ty: &TensorType, data: &Data) -> Option<Vec<i64>> {
    let Data::Inline(bytes) = data else { return None };
    if !is_short(ty) {
        return None;
    }
    match ty.element {
        ElementType::Int64 => Some(bytes.as_chunks().0.iter().map(|&b| i64::from_le_bytes(b)).collect()),
        ElementType::Int32 => {
            Some(bytes.as_chunks().0.iter().map(|&b| i32::from_le_bytes(b).into()).collect())
        }
        _ => None,
    }
}

/// Whether it is an integer, or a short list of integers.
fn is_short(ty: &TensorType) -> bool {
    matches!(ty.element, ElementType::Int64 | ElementType::Int32)
        && ty.element_count().is_some_and(|count| count <= MOST)
}

fn index(value: ValueId) -> usize {
    value.as_u32() as usize
}

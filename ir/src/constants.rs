//! Integers that nodes compute from constants and from shapes alone, as the arithmetic on shapes in ONNX's files does.

use std::iter::zip;

use foldhash::HashSet;

use crate::contract::ANY_VERSION;
use crate::{Attr, Bytes, Data, ElementType, Graph, Node, NodeId, TensorType, ValueId, ops};

/// The values of a graph that are integers known without running it: the rule by which constants are folded.
///
/// These values are known: initializers that no input and no update replaces; results of `Constant`; results of `Shape` and `Size` of
/// values whose extents depend on no default of an input (`Variability`); and results of
/// `Identity`, `Reshape`, `Flatten`, `Squeeze`, `Unsqueeze`, `Cast`, `Neg`, `Add`, `Sub`, `Mul`, `Div`, `Min`, `Max`, `Concat`, `Gather` and
/// `Slice` whose operands are known. They are integers of 32 or 64 bits, computed without overflow, of at most
/// [`Constants::LARGEST`] bytes, and of [`Constants::MOST_COMPUTED`] bytes in all. Operands of `Concat`, `Gather` and `Slice` have one dimension. No other value is known.
#[derive(Clone, Debug, Default)]
pub struct Constants {
    /// By value.
    known: Vec<Option<Data>>,
}

/// The values of a graph that change with the defaults of its inputs, which a caller may replace.
///
/// The elements of a value change if it is such an input, or if a node computes it from elements or extents that change. Its extents
/// may change if a node computes it from a value whose extents may change; or from a value whose elements change, and the node's
/// operator is one that may make extents of them: all but those of ONNX that read floats as numbers to compute with.
struct Variability {
    /// For each value, whether its elements change, and whether its extents may.
    of: Vec<(bool, bool)>,
}

impl Variability {
    fn of(graph: &Graph) -> Variability {
        let mut found = Variability { of: vec![(false, false); graph.value_capacity()] };
        graph.defaults().for_each(|value| found.of[value.as_u32() as usize].0 = true);
        if graph.defaults().next().is_none() {
            return found;
        }
        for &id in graph.order() {
            let node = graph.node(id);
            let (mut elements, mut extents) = (false, false);
            for value in node.reads() {
                let (of_elements, of_extents) = found.of[value.as_u32() as usize];
                elements |= of_extents || of_elements && !node.op.effects().shape_only;
                let is_float = graph.value(value).ty.as_tensor().is_some_and(|ty| ty.element.is_float());
                let computes = is_float && !ops::makes_extents_of_floats(node);
                extents |= of_extents || of_elements && !node.op.effects().shape_only && !computes;
            }
            node.defines().for_each(|value| found.of[value.as_u32() as usize] = (elements, extents));
        }
        found
    }

    fn has_open_extents(&self, value: ValueId) -> bool {
        self.of[value.as_u32() as usize].1
    }
}

impl Constants {
    /// Larger values are not known: shapes and indices are small, and the work is bounded by the number of nodes.
    pub const LARGEST: Bytes = Bytes(1 << 16);

    /// The most bytes that are computed for a graph; the values of further nodes are not known. Arithmetic on shapes of a hundred
    /// thousand nodes computes about a tenth of it.
    pub const MOST_COMPUTED: Bytes = Bytes(1 << 24);

    /// The known values of the graph.
    pub fn of(graph: &Graph) -> Constants {
        let mut constants = Constants { known: vec![None; graph.value_capacity()] };
        let variability = Variability::of(graph);
        let mut changing: HashSet<ValueId> = graph.inputs.iter().copied().collect();
        changing.extend(graph.order().iter().flat_map(|&id| &graph.node(id).updates).map(|u| u.variable));
        for initializer in &graph.initializers {
            let value = initializer.value;
            if !changing.contains(&value)
                && integers(&graph.value(value).ty.as_tensor(), &initializer.data).is_some()
            {
                constants.known[value.as_u32() as usize] = Some(initializer.data.clone());
            }
        }
        let mut room = Constants::MOST_COMPUTED;
        for &id in graph.order() {
            let node = graph.node(id);
            let varies = node.operands.iter().flatten().any(|&operand| variability.has_open_extents(operand));
            if let (&[Some(result)], Some(data), false) =
                (&node.results[..], constants.folded(graph, id, room), varies)
            {
                room = Bytes(room.0 - data.len());
                constants.known[result.as_u32() as usize] = Some(data);
            }
        }
        constants
    }

    /// The bytes of the value, if it is known.
    pub fn get(&self, value: ValueId) -> Option<&Data> {
        self.known.get(value.as_u32() as usize)?.as_ref()
    }

    /// The bytes of the node's only result, if they are known and there is room for them.
    fn folded(&self, graph: &Graph, id: NodeId, room: Bytes) -> Option<Data> {
        let node = graph.node(id);
        let &[Some(result)] = &node.results[..] else { return None };
        let ty = graph.value(result).ty.as_tensor()?;
        let is_small = ty.byte_size().is_some_and(|bytes| bytes <= Constants::LARGEST.min(room));
        if !is_small || !ops::is_pure(node) || ops::has_subgraph(node) {
            return None;
        }
        let known = |value: ValueId| integers(&graph.value(value).ty.as_tensor(), self.get(value)?);
        let elements = computed(graph, node, &known)?;
        (ty.element_count() == Some(elements.len() as u64)).then_some(())?;
        bytes_of(ty, &elements)
    }
}

/// The elements of integers whose bytes are at hand.
fn integers(ty: &Option<&TensorType>, data: &Data) -> Option<Vec<i64>> {
    let (ty, Data::Inline(bytes)) = ((*ty)?, data) else { return None };
    if ty.byte_size()?.0 != bytes.len() as u64 || ty.byte_size()? > Constants::LARGEST {
        return None;
    }
    match ty.element {
        ElementType::Int64 => Some(bytes.as_chunks().0.iter().map(|&b| i64::from_le_bytes(b)).collect()),
        ElementType::Int32 => {
            Some(bytes.as_chunks().0.iter().map(|&b| i64::from(i32::from_le_bytes(b))).collect())
        }
        _ => None,
    }
}

/// The bytes of these elements, if the type has room for them.
fn bytes_of(ty: &TensorType, elements: &[i64]) -> Option<Data> {
    let bytes: Vec<u8> = match ty.element {
        ElementType::Int64 => elements.iter().flat_map(|e| e.to_le_bytes()).collect(),
        ElementType::Int32 => {
            let narrow: Option<Vec<i32>> = elements.iter().map(|&e| i32::try_from(e).ok()).collect();
            narrow?.iter().flat_map(|e| e.to_le_bytes()).collect()
        }
        _ => return None,
    };
    Some(Data::Inline(bytes.into()))
}

/// The elements of the node's result, if they are known.
fn computed(graph: &Graph, node: &Node, known: &dyn Fn(ValueId) -> Option<Vec<i64>>) -> Option<Vec<i64>> {
    let value = |index: usize| node.operands.get(index).copied().flatten();
    let dims = |index: usize| Some(&graph.value(value(index)?).ty.as_tensor()?.dims);
    let operand = |index: usize| known(value(index)?);
    let is_list = |index: usize| dims(index).is_some_and(|dims| dims.len() == 1);
    let ("", name) = node.op.key() else { return None };
    match name {
        "Constant" => constant(node),
        "Shape" => shape(node, dims(0)?),
        "Size" => Some(vec![i64::try_from(dims(0)?.iter().try_fold(1u64, |n, &d| n.checked_mul(d))?).ok()?]),
        "Identity" | "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze" | "Cast" => operand(0),
        "Neg" => operand(0)?.into_iter().map(i64::checked_neg).collect(),
        "Add" | "Sub" | "Mul" | "Div" | "Min" | "Max" if node.operands.len() == 2 => {
            let (a, b) = (operand(0)?, operand(1)?);
            match (a.len(), b.len()) {
                _ if dims(0)? == dims(1)? => zip(a, b).map(|(a, b)| arithmetic(name, a, b)).collect(),
                (_, 1) => a.into_iter().map(|a| arithmetic(name, a, b[0])).collect(),
                (1, _) => b.into_iter().map(|b| arithmetic(name, a[0], b)).collect(),
                _ => None,
            }
        }
        "Concat" => {
            let mut elements = Vec::new();
            for index in 0..node.operands.len() {
                elements.extend(operand(index).filter(|_| is_list(index))?);
                (elements.len() as u64 <= Constants::LARGEST.0).then_some(())?;
            }
            Some(elements)
        }
        "Gather" if is_list(0) => {
            let (list, indices) = (operand(0)?, operand(1)?);
            indices.into_iter().map(|index| element(&list, index)).collect()
        }
        "Slice" if is_list(0) && node.operands.len() >= 3 => slice(&operand, &value),
        _ => None,
    }
}

/// The attribute of a `Constant`.
fn constant(node: &Node) -> Option<Vec<i64>> {
    match &node.attributes[..] {
        [(name, Attr::Tensor(ty, data))] if &**name == "value" => integers(&Some(ty), data),
        [(name, Attr::Int(value))] if &**name == "value_int" => Some(vec![*value]),
        [(name, Attr::Ints(values))] if &**name == "value_ints" => Some(values.clone()),
        _ => None,
    }
}

/// The extents from the attribute `start` to the attribute `end`.
fn shape(node: &Node, dims: &[u64]) -> Option<Vec<i64>> {
    // All versions have the same defaults.
    let bound = |name: &str| match node.op.attribute(ANY_VERSION, &node.attributes, name) {
        Some(Attr::Int(value)) => Some(within(*value, dims.len())),
        None => Some(dims.len()),
        Some(_) => None,
    };
    let (start, end) = (bound("start")?, bound("end")?);
    let dims = dims.get(start..end.max(start))?;
    dims.iter().map(|&dim| i64::try_from(dim).ok()).collect()
}

/// The operator on two elements; none where the result does not fit 64 bits, or does not exist.
fn arithmetic(name: &str, a: i64, b: i64) -> Option<i64> {
    match name {
        "Add" => a.checked_add(b),
        "Sub" => a.checked_sub(b),
        "Mul" => a.checked_mul(b),
        "Div" => a.checked_div(b),
        "Min" => Some(a.min(b)),
        "Max" => Some(a.max(b)),
        _ => None,
    }
}

/// The element at the index, which counts from the end where it is negative.
fn element(list: &[i64], index: i64) -> Option<i64> {
    let index = if index < 0 { index.checked_add(list.len() as i64)? } else { index };
    list.get(usize::try_from(index).ok()?).copied()
}

/// Elements of a list from a start to an end, in steps of one.
fn slice(
    operand: &dyn Fn(usize) -> Option<Vec<i64>>,
    value: &dyn Fn(usize) -> Option<ValueId>,
) -> Option<Vec<i64>> {
    let list = operand(0)?;
    let (&[start], &[end]) = (&operand(1)?[..], &operand(2)?[..]) else { return None };
    let is = |index: usize, allowed: &[i64]| match value(index) {
        Some(_) => operand(index).is_some_and(|found| matches!(found[..], [one] if allowed.contains(&one))),
        None => true,
    };
    (is(3, &[0, -1]) && is(4, &[1])).then_some(())?;
    let (start, end) = (within(start, list.len()), within(end, list.len()));
    Some(list.get(start..end.max(start))?.to_vec())
}

/// A bound of a range of a list, which counts from the end where it is negative, as an index of the list or its length.
fn within(bound: i64, length: usize) -> usize {
    let length = length as i64;
    let bound = if bound < 0 { bound.saturating_add(length) } else { bound };
    bound.clamp(0, length) as usize
}

//! The integers of a graph that follow from constants and shapes alone, for the check of a clean-up.
//!
//! The pass that folds constants decides by [`crate::Constants`]. Nothing of that is used here: this evaluator computes whole tensors,
//! with their extents, by ONNX's definitions of the operators, in 128 bits. A wrong constant of the pass differs from the one that is
//! computed here. Types, [`crate::ops::Effects`] and the graph itself are shared.

use crate::{Attr, Data, Def, ElementType, Graph, Node, TensorType, ValueId};

/// Larger tensors are not evaluated. No constant that is folded is larger.
const MOST_BYTES: usize = 1 << 16;

/// The most bytes that are computed for a graph: a limit on the memory for files in which each of many nodes computes a large tensor.
/// Twice that of [`crate::Constants`], since more operators are evaluated here.
const MOST_COMPUTED: u64 = 2 * crate::Constants::MOST_COMPUTED.0;

/// The values that are known, by value.
#[derive(Default)]
pub(super) struct Known {
    tensors: Vec<Option<Stored>>,
}

/// A tensor that is known, as the bytes of its type: all of a graph are in memory at once.
struct Stored {
    dims: Vec<usize>,
    /// The bytes of an element.
    width: usize,
    data: Data,
}

/// The tensor that a node computes, in the numbers that are computed with.
struct Integers {
    dims: Vec<usize>,
    elements: Vec<i128>,
}

impl Stored {
    fn bytes(&self) -> &[u8] {
        match &self.data {
            Data::Inline(bytes) => bytes,
            _ => &[],
        }
    }

    fn len(&self) -> usize {
        self.bytes().len() / self.width
    }

    fn at(&self, index: usize) -> i128 {
        number(&self.bytes()[index * self.width..][..self.width])
    }

    fn elements(&self) -> impl Iterator<Item = i128> {
        self.bytes().chunks_exact(self.width).map(number)
    }

    fn to_integers(&self) -> Integers {
        Integers { dims: self.dims.clone(), elements: self.elements().collect() }
    }
}

impl Known {
    pub(super) fn of(graph: &Graph) -> Known {
        let shapes_vary = shapes_that_vary(graph);
        let mut tensors: Vec<Option<Stored>> = Vec::new();
        tensors.resize_with(graph.value_capacity(), || None);
        let updated = graph.variables();
        let mut is_input = vec![false; graph.value_capacity()];
        graph.inputs.iter().for_each(|input| is_input[input.as_u32() as usize] = true);
        for stored in &graph.initializers {
            let is_fixed =
                updated.binary_search(&stored.value).is_err() && !is_input[stored.value.as_u32() as usize];
            if is_fixed && let Some(ty) = graph.value(stored.value).ty.as_tensor() {
                tensors[stored.value.as_u32() as usize] = stored_as(ty, &stored.data);
            }
        }
        let mut room = MOST_COMPUTED;
        for &id in graph.order() {
            let node = graph.node(id);
            let (&[Some(result)], true) = (&node.results[..], node.updates.is_empty()) else { continue };
            let Some(ty) = graph.value(result).ty.as_tensor() else { continue };
            let is_small = |bytes: &crate::Bytes| bytes.0 <= room.min(MOST_BYTES as u64);
            let Some(bytes) = ty.byte_size().filter(is_small) else { continue };
            let evaluation = Evaluation { graph, node, tensors: &tensors, shapes_vary: &shapes_vary };
            let found = evaluation.result().filter(|found| fits(ty, found));
            room -= found.as_ref().map_or(0, |_| bytes.0);
            tensors[result.as_u32() as usize] = found.map(|found| encoded(ty, found));
        }
        Known { tensors }
    }

    pub(super) fn get(&self, value: ValueId) -> Option<&Data> {
        Some(&self.tensors.get(value.as_u32() as usize)?.as_ref()?.data)
    }

    /// Whether a node computes the value, and it is known.
    pub(super) fn is_folded(&self, graph: &Graph, value: ValueId) -> bool {
        matches!(graph.def(value), Def::Result(..)) && self.get(value).is_some()
    }
}

/// For each value, whether its extents may change when a caller replaces the default of an input.
///
/// Found backward from the definition of operators: floats are only computed with, except by the operators that are listed here.
fn shapes_that_vary(graph: &Graph) -> Vec<bool> {
    let size = graph.value_capacity();
    let (mut elements_vary, mut shapes_vary) = (vec![false; size], vec![false; size]);
    for value in graph.defaults() {
        elements_vary[value.as_u32() as usize] = true;
    }
    for &id in graph.order() {
        let node = graph.node(id);
        let only_looks = node.op.effects().shape_only;
        let counts_by_floats = match (node.op.domain(), node.op.name()) {
            ("", "Range" | "Resize" | "Upsample" | "NonZero" | "Unique" | "NonMaxSuppression") => true,
            ("", _) => {
                !node.captures.is_empty()
                    || node.attributes.iter().any(|(_, it)| matches!(it, Attr::Opaque(_)))
            }
            _ => true,
        };
        let varies = |value: ValueId| {
            let at = value.as_u32() as usize;
            let element = graph.value(value).ty.as_tensor().map(|ty| ty.element);
            let by_elements = elements_vary[at] && !only_looks;
            let is_counted = counts_by_floats || element.is_none_or(|element| !element.is_float());
            (by_elements || shapes_vary[at], shapes_vary[at] || by_elements && is_counted)
        };
        let of_reads: Vec<(bool, bool)> = node.reads().map(varies).collect();
        for result in node.defines() {
            elements_vary[result.as_u32() as usize] = of_reads.iter().any(|it| it.0);
            shapes_vary[result.as_u32() as usize] = of_reads.iter().any(|it| it.1);
        }
    }
    shapes_vary
}

/// One node, with the tensors that are known so far.
struct Evaluation<'a> {
    graph: &'a Graph,
    node: &'a Node,
    tensors: &'a [Option<Stored>],
    shapes_vary: &'a [bool],
}

impl Evaluation<'_> {
    fn result(&self) -> Option<Integers> {
        if !self.node.op.domain().is_empty() {
            return None;
        }
        match self.node.op.name() {
            "Constant" => self.constant(),
            "Shape" => self.shape(),
            "Size" => {
                let mut extents = self.extents(0)?.into_iter();
                Some(scalar(extents.try_fold(1i128, i128::checked_mul)?))
            }
            "Identity" | "Cast" => Some(self.tensor(0)?.to_integers()),
            // The elements keep their order: the declared extents are those of the result.
            "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze" => self.reshaped(),
            "Neg" => self.each(|a| -a),
            "Add" => self.pairs(|a, b| Some(a + b)),
            "Sub" => self.pairs(|a, b| Some(a - b)),
            "Mul" => self.pairs(|a, b| a.checked_mul(b)),
            "Div" => self.pairs(|a, b| (b != 0).then(|| a / b)),
            "Min" => self.pairs(|a, b| Some(if a < b { a } else { b })),
            "Max" => self.pairs(|a, b| Some(if a > b { a } else { b })),
            "Concat" => self.concatenated(),
            "Gather" => self.gathered(),
            "Slice" => self.sliced(),
            _ => None,
        }
    }

    fn value(&self, index: usize) -> Option<ValueId> {
        self.node.operands.get(index).copied().flatten()
    }

    fn tensor(&self, index: usize) -> Option<&Stored> {
        self.tensors[self.value(index)?.as_u32() as usize].as_ref()
    }

    /// The only element of the operand.
    fn number(&self, index: usize) -> Option<i128> {
        let tensor = self.tensor(index)?;
        (tensor.len() == 1).then(|| tensor.at(0))
    }

    /// The extents of the operand, if they are the same in every step.
    fn extents(&self, index: usize) -> Option<Vec<i128>> {
        let value = self.value(index)?;
        if self.shapes_vary[value.as_u32() as usize] {
            return None;
        }
        Some(self.graph.value(value).ty.as_tensor()?.dims.iter().map(|&extent| i128::from(extent)).collect())
    }

    fn constant(&self) -> Option<Integers> {
        let [(name, attribute)] = &self.node.attributes[..] else { return None };
        match (&**name, attribute) {
            ("value", Attr::Tensor(ty, data)) => Some(stored_as(ty, data)?.to_integers()),
            ("value_int", &Attr::Int(value)) => Some(scalar(value.into())),
            ("value_ints", Attr::Ints(values)) => Some(list(values.iter().map(|&v| v.into()).collect())),
            _ => None,
        }
    }

    fn shape(&self) -> Option<Integers> {
        let extents = self.extents(0)?;
        let rank = extents.len() as i128;
        let bound = |name: &str| match self.graph.attribute(self.node, name) {
            Some(&Attr::Int(at)) if at < 0 => Some((i128::from(at) + rank).max(0)),
            Some(&Attr::Int(at)) => Some(i128::from(at).min(rank)),
            Some(_) => None,
            None => Some(rank),
        };
        let (start, end) = (bound("start")?, bound("end")?);
        let within = |at: &i128| start <= *at && *at < end;
        Some(list((0..rank).filter(within).map(|at| extents[at as usize]).collect()))
    }

    fn reshaped(&self) -> Option<Integers> {
        let &[Some(result)] = &self.node.results[..] else { return None };
        let dims = usizes(&self.graph.value(result).ty.as_tensor()?.dims)?;
        Some(Integers { dims, elements: self.tensor(0)?.elements().collect() })
    }

    fn each(&self, compute: impl Fn(i128) -> i128) -> Option<Integers> {
        let operand = self.tensor(0)?;
        Some(Integers { dims: operand.dims.clone(), elements: operand.elements().map(compute).collect() })
    }

    /// The operator on each pair of elements, with extents of 1 repeated.
    fn pairs(&self, compute: impl Fn(i128, i128) -> Option<i128>) -> Option<Integers> {
        let ([a, b], 2) = ([self.tensor(0)?, self.tensor(1)?], self.node.operands.len()) else { return None };
        let rank = a.dims.len().max(b.dims.len());
        let extent =
            |of: &Stored, axis: usize| (axis + of.dims.len()).checked_sub(rank).map_or(1, |i| of.dims[i]);
        let mut dims = Vec::with_capacity(rank);
        for axis in 0..rank {
            dims.push(match (extent(a, axis), extent(b, axis)) {
                (one, other) if one == other => one,
                (1, other) | (other, 1) => other,
                _ => return None,
            });
        }
        let count = dims.iter().try_fold(1usize, |n, &d| n.checked_mul(d)).filter(|&n| n <= MOST_BYTES)?;
        let place = |of: &Stored, at: usize| {
            let (mut rest, mut stride, mut place) = (at, 1, 0);
            for axis in (0..rank).rev() {
                let (coordinate, own) = (rest % dims[axis], extent(of, axis));
                rest /= dims[axis];
                place += stride * if own == 1 { 0 } else { coordinate };
                stride *= own;
            }
            place
        };
        let element = |at: usize| compute(a.at(place(a, at)), b.at(place(b, at)));
        let elements = (0..count).map(element).collect::<Option<Vec<_>>>()?;
        Some(Integers { dims, elements })
    }

    fn concatenated(&self) -> Option<Integers> {
        let mut elements = Vec::new();
        for index in 0..self.node.operands.len() {
            let part = self.tensor(index).filter(|part| part.dims.len() == 1)?;
            if elements.len() + part.len() > MOST_BYTES {
                return None;
            }
            elements.extend(part.elements());
        }
        Some(list(elements))
    }

    fn gathered(&self) -> Option<Integers> {
        let (from, at) = (self.tensor(0).filter(|from| from.dims.len() == 1)?, self.tensor(1)?);
        let length = from.len() as i128;
        let element = |at: i128| {
            let at = if at < 0 { at + length } else { at };
            (0..length).contains(&at).then(|| from.at(at as usize))
        };
        let elements = at.elements().map(element).collect::<Option<Vec<_>>>()?;
        Some(Integers { dims: at.dims.clone(), elements })
    }

    fn sliced(&self) -> Option<Integers> {
        let from = self.tensor(0).filter(|from| from.dims.len() == 1)?;
        let length = from.len() as i128;
        let given = |index: usize, otherwise: i128| match self.value(index) {
            Some(_) => self.number(index),
            None => Some(otherwise),
        };
        if !matches!(given(3, 0)?, 0 | -1) || given(4, 1)? != 1 {
            return None;
        }
        let clamped = |at: i128| if at < 0 { (at + length).max(0) } else { at.min(length) };
        let (start, end) = (clamped(self.number(1)?), clamped(self.number(2)?));
        Some(list((start..end).map(|at| from.at(at as usize)).collect()))
    }
}

fn scalar(element: i128) -> Integers {
    Integers { dims: Vec::new(), elements: vec![element] }
}

fn list(elements: Vec<i128>) -> Integers {
    Integers { dims: vec![elements.len()], elements }
}

fn usizes(dims: &[u64]) -> Option<Vec<usize>> {
    dims.iter().map(|&extent| usize::try_from(extent).ok()).collect()
}

/// The integer in little-endian bytes.
fn number(bytes: &[u8]) -> i128 {
    let sign = if bytes.last().is_some_and(|&last| last >= 0x80) { -1 } else { 0i128 };
    bytes.iter().rev().fold(sign, |number, &byte| number << 8 | i128::from(byte))
}

/// The bytes as a tensor of integers, if they are one.
fn stored_as(ty: &TensorType, data: &Data) -> Option<Stored> {
    let Data::Inline(bytes) = data else { return None };
    let width = match ty.element {
        ElementType::Int64 => 8,
        ElementType::Int32 => 4,
        _ => return None,
    };
    if bytes.len() > MOST_BYTES || ty.byte_size().map(|size| size.0) != Some(bytes.len() as u64) {
        return None;
    }
    Some(Stored { dims: usizes(&ty.dims)?, width, data: data.clone() })
}

/// Whether the type is that of the tensor, and holds each of its elements.
fn fits(ty: &TensorType, found: &Integers) -> bool {
    let range = match ty.element {
        ElementType::Int64 => i128::from(i64::MIN)..=i128::from(i64::MAX),
        ElementType::Int32 => i128::from(i32::MIN)..=i128::from(i32::MAX),
        _ => return false,
    };
    let is_small = ty.byte_size().is_some_and(|size| size.0 <= MOST_BYTES as u64);
    // Graphs in text may lack extents of 1, as in an operand that is repeated.
    let count = ty.element_count() == Some(found.elements.len() as u64);
    let long = |dims: Vec<usize>| dims.into_iter().filter(|&extent| extent != 1).collect::<Vec<_>>();
    is_small
        && count
        && usizes(&ty.dims).is_some_and(|dims| long(dims) == long(found.dims.clone()))
        && found.elements.iter().all(|element| range.contains(element))
}

fn encoded(ty: &TensorType, found: Integers) -> Stored {
    let width = if ty.element == ElementType::Int64 { 8 } else { 4 };
    let bytes: Vec<u8> =
        found.elements.iter().flat_map(|element| element.to_le_bytes().into_iter().take(width)).collect();
    Stored { dims: found.dims, width, data: Data::Inline(bytes.into()) }
}

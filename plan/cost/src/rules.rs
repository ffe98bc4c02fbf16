//! The view of a node that rules have, and their result.

use lmsc_ir::{Attr, Graph, Node, TensorType, Type, ValueId};

use super::kernel::Kernel;

/// A node, as seen by a rule.
pub(super) struct Cx<'a> {
    pub(super) graph: &'a Graph,
    pub(super) node: &'a Node,
}

/// The kernels of a node, and the device memory that it needs while it runs beside operands and results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cost {
    pub(super) kernels: Vec<Kernel>,
    pub(super) workspace: u64,
}

impl From<Kernel> for Cost {
    fn from(kernel: Kernel) -> Cost {
        Cost { kernels: vec![kernel], workspace: 0 }
    }
}

impl From<Vec<Kernel>> for Cost {
    fn from(kernels: Vec<Kernel>) -> Cost {
        Cost { kernels, workspace: 0 }
    }
}

/// The cost of an operator's nodes; `None` if the operands do not match the operator.
pub(super) type Rule = fn(&Cx<'_>) -> Option<Cost>;

impl<'a> Cx<'a> {
    fn ty(&self, value: Option<&Option<ValueId>>) -> Option<&'a Type> {
        Some(&self.graph.value(value.copied().flatten()?).ty)
    }

    /// The type of an operand.
    pub(super) fn operand(&self, index: usize) -> Option<&'a Type> {
        self.ty(self.node.operands.get(index))
    }

    /// The type of a result.
    pub(super) fn result(&self, index: usize) -> Option<&'a Type> {
        self.ty(self.node.results.get(index))
    }

    /// The operand, if it is a tensor.
    pub(super) fn tensor(&self, index: usize) -> Option<&'a TensorType> {
        self.operand(index)?.as_tensor()
    }

    /// The result, if it is a tensor.
    pub(super) fn result_tensor(&self, index: usize) -> Option<&'a TensorType> {
        self.result(index)?.as_tensor()
    }

    /// The bytes of an operand; 0 if it is omitted.
    pub(super) fn read(&self, index: usize) -> u64 {
        self.operand(index).map_or(0, bytes)
    }

    /// The bytes of a result; 0 if it is omitted.
    pub(super) fn written(&self, index: usize) -> u64 {
        self.result(index).map_or(0, bytes)
    }

    /// The bytes of all operands, of the captures of subgraphs, and of all results.
    pub(super) fn moved(&self) -> u64 {
        let values = self.node.reads().chain(self.node.defines());
        values.map(|value| bytes(&self.graph.value(value).ty)).fold(0, u64::saturating_add)
    }

    /// The elements of the largest operand or result.
    pub(super) fn largest(&self) -> u64 {
        let values = self.node.reads().chain(self.node.defines());
        values.map(|value| elements(&self.graph.value(value).ty)).max().unwrap_or_default()
    }

    /// Whether the operator has an attribute of this name: a rule that several operators share may only read those that it has.
    pub(super) fn knows(&self, name: &str) -> bool {
        self.node.op.contract().is_some_and(|contract| contract.knows(name))
    }

    /// The integer attribute, or its default.
    pub(super) fn int(&self, name: &str) -> Option<i64> {
        match self.graph.attribute(self.node, name) {
            Some(Attr::Int(value)) => Some(*value),
            _ => None,
        }
    }

    /// Whether the operator has the integer attribute, and it or its default is not zero.
    pub(super) fn is_set(&self, name: &str) -> bool {
        self.knows(name) && self.int(name).is_some_and(|value| value != 0)
    }

    /// The product of the integers of an attribute; one if it is missing.
    pub(super) fn volume(&self, name: &str) -> u64 {
        match self.graph.attribute(self.node, name) {
            Some(Attr::Ints(list)) => list.iter().fold(1, |n: u64, &v| n.saturating_mul(v.unsigned_abs())),
            _ => 1,
        }
    }

    /// The text attribute.
    pub(super) fn text(&self, name: &str) -> Option<&'a str> {
        match self.graph.attribute(self.node, name) {
            Some(Attr::String(bytes)) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }
}

/// The bytes of a value; sizes that do not fit are the largest number.
pub(super) fn bytes(ty: &Type) -> u64 {
    ty.byte_size().map_or(u64::MAX, |bytes| bytes.0)
}

/// The elements of a value, those of a sequence together.
pub(super) fn elements(ty: &Type) -> u64 {
    match ty {
        Type::Tensor(tensor) => count(&tensor.dims),
        Type::Sequence(list) => list.iter().map(|t| count(&t.dims)).fold(0, u64::saturating_add),
    }
}

/// The product of extents; the largest number where it does not fit.
pub(super) fn count(dims: &[u64]) -> u64 {
    if dims.contains(&0) { 0 } else { dims.iter().copied().fold(1, u64::saturating_mul) }
}

/// The index of the extent that an axis names, counted from the end if it is negative.
pub(super) fn axis(dims: &[u64], axis: i64) -> Option<usize> {
    let from_end = if axis < 0 { dims.len() as i64 } else { 0 };
    usize::try_from(axis.checked_add(from_end)?).ok().filter(|&axis| axis < dims.len())
}

//! Rules applied to the nodes of a [`Graph`].

use std::collections::HashSet;

use lmsc_ir::{Def, Graph, ValueId};

use super::{Const, Operand, Producer, Query, Wanted, infer};

/// How many elements all constants together have; further ones are kept only if they are tiny.
const MOST_ELEMENTS: u64 = 1 << 24;

/// The elements of every value of `graph` that shapes may be computed from, by value.
pub fn constants(graph: &Graph) -> Vec<Option<Const>> {
    let mut known = Constants::new(graph.value_capacity());
    let written: HashSet<ValueId> = graph.variables().into_iter().collect();
    for initializer in &graph.initializers {
        if let (Some(ty), false) =
            (graph.value(initializer.value).ty.as_tensor(), written.contains(&initializer.value))
        {
            known.keep(initializer.value, Const::decode(ty, &initializer.data));
        }
    }
    for &id in graph.order() {
        let node = graph.node(id);
        let operands = operands(graph, &known, &node.operands);
        let result = |r: &Option<ValueId>| r.map(|v| Wanted { name: &graph.value(v).name, declared: None });
        let results: Vec<_> = node.results.iter().map(result).collect();
        let producer = |index| producer(graph, &node.operands, index);
        let query = Query {
            node: &node.name,
            op: &node.op,
            version: graph.opsets.get(node.op.domain()).copied().unwrap_or(1),
            operands: &operands,
            attributes: &node.attributes,
            results: &results,
            producer: &producer,
        };
        let Ok(facts) = infer(&query) else { continue };
        for (result, fact) in node.results.iter().zip(facts) {
            if let (Some(value), Some(fact)) = (result, fact) {
                known.keep(*value, fact.value);
            }
        }
    }
    known.values
}

/// The values of constants, by value, within a bound on all of them together.
pub(crate) struct Constants {
    pub(crate) values: Vec<Option<Const>>,
    elements: u64,
}

impl Constants {
    pub(crate) fn new(capacity: usize) -> Constants {
        Constants { values: vec![None; capacity], elements: 0 }
    }

    pub(crate) fn get(&self, value: ValueId) -> Option<&Const> {
        self.values.get(value.as_u32() as usize)?.as_ref()
    }

    pub(crate) fn keep(&mut self, value: ValueId, constant: Option<Const>) {
        let Some(constant) = constant else { return };
        let count = constant.len() as u64;
        if count > 16 && self.elements.saturating_add(count) > MOST_ELEMENTS {
            return;
        }
        self.elements += count;
        let index = value.as_u32() as usize;
        if index >= self.values.len() {
            self.values.resize(index + 1, None);
        }
        self.values[index] = Some(constant);
    }
}

pub(crate) fn operands<'a>(
    graph: &'a Graph,
    known: &'a Constants,
    ids: &[Option<ValueId>],
) -> Vec<Option<Operand<'a>>> {
    let operand = |&id: &Option<ValueId>| {
        let id = id?;
        let value = graph.value(id);
        Some(Operand { name: &value.name, ty: &value.ty, value: known.get(id) })
    };
    ids.iter().map(operand).collect()
}

/// Through how many copies the producer of an operand is looked for.
const MOST_COPIES: usize = 64;

/// The node that computes the operand, seen through copies, joins and `Identity`.
pub(crate) fn producer<'a>(
    graph: &'a Graph,
    operands: &[Option<ValueId>],
    index: usize,
) -> Option<Producer<'a>> {
    let mut value = operands.get(index).copied().flatten()?;
    for _ in 0..MOST_COPIES {
        let Def::Result(node, result) = graph.def(value) else { return None };
        let node = graph.node(node);
        let first = node.operands.first().copied().flatten();
        if node.op.is_join() {
            value = node.operands.iter().flatten().copied().next()?;
            continue;
        }
        if !node.op.is_swap() && node.op.key() != ("", "Identity") {
            return Some(Producer { op: &node.op, result, operand: first.map(|v| &graph.value(v).ty) });
        }
        value = first?;
    }
    None
}

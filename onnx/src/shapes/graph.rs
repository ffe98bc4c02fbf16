//! Rules applied to the nodes of a [`Graph`].

use std::collections::{BTreeSet, HashMap, HashSet};

use lmsc_ir::{Def, Graph, ValueId};

use super::{
    ANY_VERSION, Const, Declared, Fact, Operand, Producer, Query, ShapeError, Wanted, adheres, infer,
};

/// Maximum number of elements of all constants together, which take 32 MiB; beyond it, only tiny ones are kept. Arithmetic on
/// shapes of a hundred thousand nodes has about a tenth of it.
const MOST_ELEMENTS: u64 = 1 << 22;

/// The elements of every value of `graph` that shapes may be computed from, by value.
pub fn constants(graph: &Graph) -> Vec<Option<Const>> {
    each_node(graph, |query| infer(query).ok())
}

/// Refuses nodes that are not valid: nodes that violate the contract of their operator, whose operands do not match, or whose
/// results differ from the graph's.
///
/// # Errors
/// An error for each such node, in the graph's order.
pub fn check(graph: &Graph) -> Result<(), Vec<ShapeError>> {
    let mut errors = Vec::new();
    each_node(graph, |query| match adheres(query).and_then(|()| infer(query)) {
        Ok(facts) => {
            errors.extend(contradictions(query, &facts));
            Some(facts)
        }
        Err(ShapeError::Unknown { .. }) => None,
        Err(error) => {
            errors.push(error);
            None
        }
    });
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Results whose type differs from the graph's. Extents of 1 do not change the bytes, and hand-written graphs are often not exact
/// there.
fn contradictions(query: &Query<'_>, facts: &[Option<Fact>]) -> Vec<ShapeError> {
    let contradiction = |(index, (wanted, fact)): (usize, (&Option<Wanted<'_>>, &Option<Fact>))| {
        let (wanted, fact) = (wanted.as_ref()?, fact.as_ref()?);
        let declared = wanted.declared.filter(|d| !d.agrees(&fact.ty) && !d.agrees_but_for_ones(&fact.ty))?;
        let reason = format!("result {index} `{}` is {}, not {declared}", wanted.name, fact.ty).into();
        Some(ShapeError::Invalid { node: query.node.into(), op: query.op.to_string().into(), reason })
    };
    query.results.iter().zip(facts).enumerate().filter_map(contradiction).collect()
}

/// The inputs with a default whose value is part of the graph: extents depend on it, or it is an argument, such as an axis, that
/// kernels take before a step runs. Another value in its place needs another graph.
///
/// Integers of at most `MOST_OF_ARGUMENT` elements count as arguments, and so do floats that lead to an operator that takes floats
/// as such. A variable is none: its default is the value of the first step alone.
pub fn deciding(graph: &Graph) -> Vec<ValueId> {
    let variables: HashSet<ValueId> = graph.variables().into_iter().collect();
    let defaults: Vec<ValueId> = graph.defaults().filter(|value| !variables.contains(value)).collect();
    let small = |value: ValueId| {
        let ty = graph.value(value).ty.as_tensor();
        ty.filter(|ty| ty.element_count().is_some_and(|count| count <= MOST_OF_ARGUMENT))
    };
    // For each value, the defaults that it is computed from, all of it small.
    let mut from: HashMap<ValueId, BTreeSet<ValueId>> = HashMap::new();
    let mut found = BTreeSet::new();
    for &value in &defaults {
        match small(value) {
            Some(ty) if ty.element.is_float() => _ = from.insert(value, BTreeSet::from([value])),
            Some(_) => _ = found.insert(value),
            None => {}
        }
    }
    for &id in graph.order() {
        let node = graph.node(id);
        let takes_floats =
            matches!(node.op.name(), "Clip" | "Dropout" | "Pad" | "Pow" | "Range" | "Resize" | "Upsample")
                || !node.captures.is_empty()
                || node.op.name().contains("Dropout");
        let sources: BTreeSet<ValueId> =
            node.reads().filter_map(|v| from.get(&v)).flatten().copied().collect();
        if takes_floats {
            found.extend(&sources);
        }
        for result in node.defines().filter(|&result| !sources.is_empty() && small(result).is_some()) {
            from.insert(result, sources.clone());
        }
    }
    // Large integers are tensors to compute with, unless the extents of a result follow from them.
    let known = constants(graph);
    let is_known = |value: ValueId| known.get(value.as_u32() as usize).is_some_and(Option::is_some);
    let large = |value: &ValueId| small(*value).is_none() && is_known(*value);
    found.extend(defaults.into_iter().filter(large).filter(|&value| {
        let is_float = graph.value(value).ty.as_tensor().is_some_and(|ty| ty.element.is_float());
        !is_float
    }));
    found.into_iter().collect()
}

/// Maximum number of elements of an argument of an operator: axes, bounds and sizes, one for each dimension.
const MOST_OF_ARGUMENT: u64 = 64;

/// Calls `answer` for every node in order, and returns the elements that it finds, by value.
fn each_node(
    graph: &Graph,
    mut answer: impl for<'q> FnMut(&'q Query<'q>) -> Option<Vec<Option<Fact>>>,
) -> Vec<Option<Const>> {
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
        let declared: Vec<Option<Declared>> = node
            .results
            .iter()
            .map(|r| r.and_then(|v| graph.value(v).ty.as_tensor()).map(Declared::of))
            .collect();
        let results: Vec<_> = (node.results.iter().zip(&declared))
            .map(|(r, declared)| {
                r.map(|v| Wanted { name: &graph.value(v).name, declared: declared.as_ref() })
            })
            .collect();
        let producer = |index| producer(graph, &node.operands, index);
        let query = Query {
            node: &node.name,
            op: &node.op,
            version: graph.opsets.get(node.op.domain()).copied().unwrap_or(ANY_VERSION),
            operands: &operands,
            attributes: &node.attributes,
            results: &results,
            producer: &producer,
        };
        let Some(facts) = answer(&query) else { continue };
        for (result, fact) in node.results.iter().zip(facts) {
            if let (Some(value), Some(fact)) = (result, fact) {
                known.keep(*value, fact.value);
            }
        }
    }
    known.values
}

/// The values of constants, by value, with a limit on all of them together.
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

/// Maximum number of copies that are followed to the producer of an operand.
const MOST_COPIES: usize = 64;

/// The node that computes the operand, with copies, joins and `Identity` skipped.
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

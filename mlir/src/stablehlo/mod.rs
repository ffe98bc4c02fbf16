//! The graph as a module of StableHLO, for XLA and IREE.
//!
//! Each operator has a rule (`rules`). The placement of tensors and the order of copies are expressed in a form per compiler
//! (`xla`, `iree`). A compiler orders operations by their operands only, and otherwise freely, so the result might not fit the
//! planned memory. Therefore there is a barrier where a tensor is swapped in, where a node waits for a swap-out, and where a node
//! is recomputed: all values that have been computed and are still needed go through it, together with the values that are waited
//! for. Later readers use the barrier's results, because a compiler drops an unused result of a barrier, and the edge with it.
//! The compiler then computes everything before the barrier that the plan computes before it. Between barriers the compiler
//! chooses the order: more barriers would prevent fusion. A recomputed node reads its operands through the barrier, otherwise the
//! compiler would merge it with its origin.

mod iree;
mod known;
mod rules;
mod writer;
mod xla;

use std::collections::{BTreeMap, BTreeSet};

use lmsc_ir::{Attr, Data, ElementType, Graph, Node, NodeId, TensorType, Type, ValueId};

use crate::key;
use crate::print::{MAX_PRINTED_ELEMENTS, Ssa, print_ssa};
use crate::types::{push, quoted, separated, tensor};
use known::Known;
pub(crate) use rules::operators;
use rules::{Cx, Rule, Why, rule};
use writer::{Val, Writer};

pub(crate) use iree::Iree;
pub(crate) use xla::Xla;

/// The constructs of a compiler for facts that StableHLO cannot express.
pub(crate) trait Form: Sync {
    /// The operation that returns its operands, none before all of them are available.
    fn barrier(&self) -> &'static str;

    /// Name and attributes of the operation that copies a tensor to host memory, or back to the device.
    fn transfer(&self, host: bool) -> (&'static str, String);

    /// Appends the attributes of an argument or a result besides its name: whether it is on the host, and for an argument, the
    /// result that reuses its buffer.
    fn place(&self, out: &mut String, host: bool, returns_as: Option<usize>);

    /// The attributes of the function.
    fn function(&self) -> &'static str;

    /// Whether the first operand of every barrier must be an argument of the function.
    fn anchors(&self) -> bool;

    /// Whether the compiler may compute values without operands at any time, so that they occupy memory for long.
    fn hoists(&self) -> bool;

    /// Whether the compiler fails when it fuses a window of two results with its readers.
    fn splits_windows(&self) -> bool;
}

/// Why a graph cannot be written in StableHLO.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StablehloError {
    /// Operators without a rule, each with one of its nodes.
    #[error("StableHLO has no rule for {}", places.join(", "))]
    NoRule {
        /// The nodes.
        places: Vec<String>,
    },
    /// An operator in a form that its rule does not support.
    #[error("{place} cannot be written in StableHLO: {why}")]
    Refused {
        /// The node.
        place: String,
        /// The reason.
        why: String,
    },
    /// A type that StableHLO does not have.
    #[error("{place}: StableHLO has no {ty}")]
    Type {
        /// The node, the graph input or the initializer.
        place: String,
        /// The type.
        ty: Type,
    },
}

pub(crate) fn module(graph: &Graph, form: &'static dyn Form) -> Result<String, StablehloError> {
    let rules = rules_of(graph)?;
    let mut lowering = Lowering::new(graph, form);
    let head = lowering.arguments()?;
    for (tick, (&id, rule)) in graph.order().iter().zip(rules).enumerate() {
        lowering.node(tick as u32, id, rule)?;
    }
    lowering.finish(head)
}

/// The rule of every node; copies and joins have none, as they are not operators.
fn rules_of(graph: &Graph) -> Result<Vec<Option<Rule>>, StablehloError> {
    let mut rules = Vec::with_capacity(graph.order().len());
    let mut missing: BTreeMap<String, String> = BTreeMap::new();
    for &id in graph.order() {
        let op = &graph.node(id).op;
        let found = if op.is_swap() { None } else { rule(op.key()) };
        if found.is_none() && !op.is_swap() {
            missing.entry(op.to_string()).or_insert_with(|| place(graph, id));
        }
        rules.push(found);
    }
    if missing.is_empty() {
        Ok(rules)
    } else {
        Err(StablehloError::NoRule { places: missing.into_values().collect() })
    }
}

/// For each value, the tick of its last reader; outputs are read at the end.
struct LastUse(Vec<u32>);

impl LastUse {
    fn of(graph: &Graph, results: &[Output], known: &Known) -> LastUse {
        let mut last = LastUse(vec![0; graph.value_capacity()]);
        let mut lives = vec![false; graph.value_capacity()];
        for value in results.iter().map(|output| output.value()) {
            (lives[index(value)], last.0[index(value)]) = (true, u32::MAX);
        }
        for (tick, &id) in graph.order().iter().enumerate().rev() {
            let node = graph.node(id);
            let used = !node.updates.is_empty() || node.defines().any(|value| lives[index(value)]);
            if !used || node.op.effects().shape_only {
                continue;
            }
            for value in node.reads().filter(|&value| known.get(value).is_none()) {
                lives[index(value)] = true;
                last.0[index(value)] = last.0[index(value)].max(tick as u32);
            }
        }
        last
    }

    /// Whether the value is read at this tick or later.
    fn is_from(&self, value: ValueId, tick: u32) -> bool {
        self.0[index(value)] >= tick
    }
}

/// One result of the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Output {
    /// A value, and the variable whose next value it is, if any.
    Value(ValueId, Option<ValueId>),
    /// The final contents of a variable, which have no name of their own.
    State(ValueId),
}

impl Output {
    /// The variable whose next value it is.
    fn variable(self) -> Option<ValueId> {
        match self {
            Output::Value(_, variable) => variable,
            Output::State(variable) => Some(variable),
        }
    }

    /// The value that names it.
    fn value(self) -> ValueId {
        match self {
            Output::Value(value, _) | Output::State(value) => value,
        }
    }
}

struct Lowering<'g> {
    graph: &'g Graph,
    writer: Writer,
    /// For each value, its current name: a barrier gives new names.
    values: Vec<Option<Val>>,
    known: Known,
    results: Vec<Output>,
    last_use: LastUse,
    /// The ticks with a barrier that are still to come, the next one last.
    places: Vec<u32>,
    /// Values that have been computed, on the device, since the last barrier.
    computed: Vec<ValueId>,
    /// For each value, whether it went through a barrier.
    passed: Vec<bool>,
    /// Of the values that went through a barrier, the one that is needed longest.
    link: Option<ValueId>,
    /// SwapOuts that no node has waited for yet.
    leaving: BTreeSet<NodeId>,
    /// The run's seed and the number of the step, if the graph draws random numbers.
    draws: Option<[Val; 2]>,
}

impl<'g> Lowering<'g> {
    fn new(graph: &'g Graph, form: &'static dyn Form) -> Lowering<'g> {
        let known = Known::of(graph);
        let results = results_of(graph);
        let last_use = LastUse::of(graph, &results, &known);
        let mut places = Lowering::places(graph, &known);
        places.reverse();
        Lowering {
            graph,
            writer: Writer::new(form, 512 * (graph.order().len() + 1)),
            values: vec![None; graph.value_capacity()],
            known,
            results,
            last_use,
            places,
            computed: Vec::new(),
            passed: vec![false; graph.value_capacity()],
            link: None,
            leaving: BTreeSet::new(),
            draws: None,
        }
    }

    /// The arguments of the function: inputs, variables, and constants of many elements.
    fn arguments(&mut self) -> Result<String, StablehloError> {
        let graph = self.graph;
        let mut written: BTreeMap<ValueId, usize> = BTreeMap::new();
        for (i, &result) in self.results.iter().enumerate() {
            written.extend(result.variable().map(|variable| (variable, i)));
        }
        let given = graph.inputs.iter().map(|&value| (value, None));
        let constants = graph.initializers.iter().filter(|it| !graph.inputs.contains(&it.value));
        let stored = constants.map(|i| (i.value, Some(&i.data)));
        let mut out = String::new();
        let mut number = 0;
        for (value, data) in given.chain(stored) {
            let name = &graph.value(value).name;
            let ty = self.tensor_type(value, || format!("`{name}`"))?;
            let updated = written.get(&value);
            let short = ty.element_count().is_some_and(|count| count <= MAX_PRINTED_ELEMENTS);
            if data.is_some() && self.known.get(value).is_some() {
                continue;
            }
            if let (Some(Data::Inline(bytes)), true, None) = (data, short, updated)
                && let Some(constant) = self.writer.constant(&ty, bytes)
            {
                self.values[index(value)] = Some(constant);
                continue;
            }
            push(&mut out, format_args!("{}%arg{number}: ", if number > 0 { ", " } else { "" }));
            tensor(&mut out, &ty);
            push(
                &mut out,
                format_args!(" {{{} = ", if data.is_some() { key::INITIALIZER } else { key::NAME }),
            );
            quoted(&mut out, name.as_bytes());
            self.writer.form.place(&mut out, graph.value(value).place.is_host(), updated.copied());
            out.push('}');
            let val = Val { ssa: Ssa::Argument(number), ty, fixed: false };
            self.anchor(&val);
            self.values[index(value)] = Some(val);
            number += 1;
        }
        let draws = |&id: &NodeId| {
            let node = graph.node(id);
            node.op.effects().random && node.operands.get(2).is_some_and(Option::is_some)
        };
        if graph.order().iter().any(draws) {
            let ty = TensorType::new(ElementType::Int64, []);
            let draws = [key::SEED, key::STEP].map(|name| {
                push(
                    &mut out,
                    format_args!("{}%arg{number}: tensor<i64> {{{name}", if number > 0 { ", " } else { "" }),
                );
                self.writer.form.place(&mut out, false, None);
                out.push('}');
                number += 1;
                Val { ssa: Ssa::Argument(number - 1), ty: ty.clone(), fixed: false }
            });
            self.draws = Some(draws);
        }
        Ok(out)
    }

    /// Makes barriers begin with the argument, if it is the smallest so far and the form needs such an anchor.
    fn anchor(&mut self, argument: &Val) {
        let smaller = |other: &Val| argument.ty.byte_size() < other.ty.byte_size();
        if self.writer.form.anchors() && self.writer.anchor.as_ref().is_none_or(smaller) {
            self.writer.anchor = Some(argument.clone());
        }
    }

    fn node(&mut self, tick: u32, id: NodeId, rule: Option<Rule>) -> Result<(), StablehloError> {
        let node = self.graph.node(id);
        if node.defines().all(|value| self.known.get(value).is_some()) {
            return Ok(());
        }
        self.writer.locate(&node.name);
        self.wait(tick, id);
        let place = || place(self.graph, id);
        let types: Vec<Option<TensorType>> = node
            .results
            .iter()
            .map(|result| result.map(|value| self.tensor_type(value, place)).transpose())
            .collect::<Result<_, _>>()?;
        let operands = node.operands.iter().map(|operand| operand.map(|value| self.value(value)));
        let mut operands: Vec<Option<Val>> = operands.collect();
        // A Join on the host updates the old contents of the variable.
        if let (true, Some(update)) = (node.op.is_join(), node.updates.first()) {
            operands[0] = Some(self.value(update.variable));
        }
        let known = node.operands.iter().map(|&operand| Some(self.known.get(operand?)?.to_vec())).collect();
        let version = self.graph.opsets.get("").copied().unwrap_or_default();
        let draws = self.draws.clone();
        let seed = self.graph.seed(id);
        let w = &mut self.writer;
        let mut cx = Cx { node, version, w, operands, known, types, seed, draws, given: Vec::new() };
        let done = match rule {
            Some(rule) => rule(&mut cx),
            None => rules::copy(&mut cx, node.op.is_swap_out()),
        };
        let given = cx.given;
        done.map_err(|Why(why)| StablehloError::Refused { place: place(), why })?;
        for update in &node.updates {
            let written = node.op.effects().writes.iter();
            let written = written.filter(|(i, _)| node.operands.get(*i) == Some(&Some(update.variable)));
            let result = update.result.or_else(|| written.map(|(_, result)| *result).next());
            if let Some((_, val)) = given.iter().find(|(i, _)| Some(*i) == result) {
                // Later readers of the variable read its new contents; a variable on the host changes only when they are copied
                // there.
                let is_host = |value: ValueId| self.graph.value(value).place.is_host();
                let variable = brought(self.graph, update.variable);
                self.values[index(update.variable)] = Some(val.clone());
                if is_host(variable) == is_host(update.variable) {
                    self.values[index(variable)] = Some(val.clone());
                }
            }
        }
        for (i, val) in given {
            let Some(value) = node.results.get(i).copied().flatten() else { continue };
            debug_assert_eq!(self.graph.value(value).ty.as_tensor(), Some(&val.ty), "{} {i}", place());
            self.values[index(value)] = Some(val);
        }
        if node.op.is_swap_out() {
            self.leaving.insert(id);
        } else if node.reads().any(|value| self.known.get(value).is_none()) {
            self.computed.extend(computed(node));
        }
        match node.defines().find(|&value| self.values[index(value)].is_none()) {
            None => Ok(()),
            Some(value) => {
                let why = format!("its rule does not give `{}`", self.graph.value(value).name);
                Err(StablehloError::Refused { place: place(), why })
            }
        }
    }

    /// The current name of the value.
    fn value(&mut self, value: ValueId) -> Val {
        if let Some(val) = &self.values[index(value)] {
            return val.clone();
        }
        let list = self.known.get(value).expect("values stand before their readers");
        let ty = self.graph.value(value).ty.as_tensor().expect("it is a tensor of integers");
        let val = self.writer.integers(ty, list);
        self.values[index(value)] = Some(val.clone());
        val
    }

    /// Adds a barrier before the node, if the plan needs one there, so that the node and all later ones wait for everything that
    /// the plan computes before.
    ///
    /// Values that were computed since the last barrier go through it if they are still needed, and so do values that are read
    /// before the next one. The other values went through an earlier barrier, and will go through the one before their next
    /// reader.
    fn wait(&mut self, tick: u32, id: NodeId) {
        if self.places.last() != Some(&tick) {
            return;
        }
        self.places.pop();
        let end = self.places.last().map_or(self.graph.order().len(), |&next| next as usize);
        let graph = self.graph;
        let node = graph.node(id);
        let left: Vec<NodeId> =
            node.after.iter().copied().filter(|before| self.leaving.remove(before)).collect();
        let mut through: Vec<ValueId> = left.iter().flat_map(|&out| graph.node(out).defines()).collect();
        let readers = graph.order()[tick as usize..end].iter().map(|&id| graph.node(id));
        let read = readers.filter(|node| !node.op.effects().shape_only).flat_map(Node::reads);
        let here = |value: &ValueId| self.passed[index(*value)] && self.last_use.is_from(*value, tick);
        let here: Vec<ValueId> = read.filter(here).collect();
        // One value goes through all barriers, as long as it is needed, so that the barriers are ordered.
        self.link = self.link.filter(|&link| self.last_use.is_from(link, tick));
        through.extend(self.link);
        through.extend(here);
        for value in std::mem::take(&mut self.computed) {
            if self.last_use.is_from(value, tick) {
                self.passed[index(value)] = true;
                let longer = |link: &ValueId| self.last_use.0[index(value)] > self.last_use.0[index(*link)];
                if self.link.as_ref().is_none_or(longer) {
                    self.link = Some(value);
                }
                through.push(value);
            }
        }
        if node.op.is_swap_in() || runs_again(graph, &self.known, node) {
            through.extend(operands(&self.known, node));
        }
        through.sort();
        through.dedup();
        if through.len() < 2 {
            return;
        }
        let vals: Vec<Val> = through.iter().map(|&value| self.value(value)).collect();
        let passed = self.writer.barrier(&vals.iter().collect::<Vec<_>>());
        for (value, val) in through.into_iter().zip(passed) {
            self.values[index(value)] = Some(val);
        }
    }

    /// The ticks that need a barrier: where a tensor is swapped in, where a node waits for a swap-out, and where a node is
    /// recomputed.
    fn places(graph: &Graph, known: &Known) -> Vec<u32> {
        let mut leaving: BTreeSet<NodeId> = BTreeSet::new();
        let mut places = Vec::new();
        for (tick, &id) in graph.order().iter().enumerate() {
            let node = graph.node(id);
            if node.defines().all(|value| known.get(value).is_some()) {
                continue;
            }
            let again = runs_again(graph, known, node);
            let comes =
                node.op.is_swap_in() || node.after.iter().any(|&before| graph.node(before).op.is_swap_in());
            let left = node.after.iter().filter(|before| leaving.remove(before)).count();
            if again || comes || left > 0 {
                places.push(tick as u32);
            }
            if node.op.is_swap_out() {
                leaving.insert(id);
            }
        }
        places
    }

    fn finish(mut self, arguments: String) -> Result<String, StablehloError> {
        let graph = self.graph;
        let results: Vec<Val> = self.results.clone().into_iter().map(|o| self.value(o.value())).collect();
        let mut out = String::with_capacity(self.writer.out.len() + arguments.len() + 4096);
        push(&mut out, format_args!("module {{\n  func.func public @main({arguments})"));
        out.push_str(" -> (");
        let named = results.iter().zip(&self.results);
        separated(&mut out, named, |out, (val, output)| {
            let value = output.value();
            tensor(out, &val.ty);
            push(out, format_args!(" {{{} = ", key::NAME));
            quoted(out, graph.value(value).name.as_bytes());
            if let Some(variable) = output.variable() {
                push(out, format_args!(", {} = ", key::NEW_VALUE_OF));
                quoted(out, graph.value(variable).name.as_bytes());
            }
            self.writer.form.place(out, graph.value(value).place.is_host(), None);
            out.push('}');
        });
        push(&mut out, format_args!("){} {{\n", self.writer.form.function()));
        out.push_str(&self.writer.out);
        out.push_str("    \"func.return\"(");
        separated(&mut out, &results, |out, val| print_ssa(out, val.ssa));
        out.push_str(") : (");
        separated(&mut out, &results, |out, val| tensor(out, &val.ty));
        out.push_str(") -> ()\n  }\n}\n");
        Ok(out)
    }

    /// The type of a value, if StableHLO has it.
    fn tensor_type(&self, value: ValueId, place: impl Fn() -> String) -> Result<TensorType, StablehloError> {
        let ty = &self.graph.value(value).ty;
        let fits = |ty: &&TensorType| {
            has_element(ty.element) && ty.dims.iter().all(|&dim| i64::try_from(dim).is_ok())
        };
        let found = ty.as_tensor().filter(fits).cloned();
        found.ok_or_else(|| StablehloError::Type { place: place(), ty: ty.clone() })
    }
}

/// Operands except known integers.
fn operands<'a>(known: &'a Known, node: &'a Node) -> impl Iterator<Item = ValueId> + 'a {
    node.operands.iter().flatten().copied().filter(|&value| known.get(value).is_none())
}

/// Whether a compiler would merge the recomputed node with its origin.
fn runs_again(graph: &Graph, known: &Known, node: &Node) -> bool {
    node.recomputes.is_some() && !operands(known, node).any(|value| is_fresh(graph, value))
}

/// Whether no compiler can merge the value with another one: it was swapped in, or its operands went through a barrier.
fn is_fresh(graph: &Graph, value: ValueId) -> bool {
    let producer = graph.producer(value).map(|id| graph.node(id));
    producer.is_some_and(|node| node.op.is_swap_in() || node.recomputes.is_some())
}

/// The values that exist only after the node has run: its results, or the variable that it writes, if that has no other name. The
/// flag of an accumulator is constant.
fn computed(node: &Node) -> impl Iterator<Item = ValueId> + '_ {
    let unnamed = node.updates.iter().filter(|update| update.result.is_none());
    let results = node.defines().filter(|_| node.updates.iter().all(|update| update.result.is_some()));
    unnamed.map(|update| update.variable).chain(results)
}

/// The results of the function: the graph's outputs, then the final contents of variables that are not outputs.
fn results_of(graph: &Graph) -> Vec<Output> {
    let mut states: BTreeMap<ValueId, Output> = BTreeMap::new();
    for &id in graph.order() {
        let node = graph.node(id);
        // A variable that was only swapped out and in is a result, too: otherwise its argument would be resident all the time.
        for update in &node.updates {
            let variable = brought(graph, update.variable);
            let result = update.result.and_then(|index| node.results.get(index).copied().flatten());
            states.insert(
                variable,
                result.map_or(Output::State(variable), |v| Output::Value(v, Some(variable))),
            );
        }
    }
    let output = |&value: &ValueId| {
        let found = states.values().find(|state| state.value() == value && **state != Output::State(value));
        found.copied().unwrap_or(Output::Value(value, None))
    };
    let mut results: Vec<Output> = graph.outputs.iter().map(output).collect();
    let rest: Vec<Output> = states.into_values().filter(|state| !results.contains(state)).collect();
    results.extend(rest);
    results
}

/// The variable of which the value is a copy, by any number of SwapIns; or the value itself.
fn brought(graph: &Graph, value: ValueId) -> ValueId {
    let names = |node: &&Node| node.op.is_swap() || node.op.is_join();
    let copied = graph.producer(value).map(|id| graph.node(id)).filter(names);
    match copied.and_then(|node| node.reads().next()) {
        Some(source) => brought(graph, source),
        None => value,
    }
}

/// Whether StableHLO has tensors of the element type, and the rules support them.
fn has_element(element: ElementType) -> bool {
    use ElementType::*;
    matches!(
        element,
        Float
            | Double
            | Float16
            | Bfloat16
            | Int8
            | Int16
            | Int32
            | Int64
            | Uint8
            | Uint16
            | Uint32
            | Uint64
            | Bool
    )
}

/// The integer attribute of a copy of a range, or of a node.
fn int(node: &Node, name: &str) -> Option<i64> {
    match node.attribute(name) {
        Some(&Attr::Int(int)) => Some(int),
        _ => None,
    }
}

fn place(graph: &Graph, id: NodeId) -> String {
    let node = graph.node(id);
    format!("`{}` ({})", node.name, node.op)
}

fn index(value: ValueId) -> usize {
    value.as_u32() as usize
}

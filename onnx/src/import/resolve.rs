//! Resolves the names of the file, and finds an order of its nodes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::hash_map::Entry;

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};
use lmsc_ir::{Name, words};

use super::bodies::{Bodies, Breaches};
use super::error::Errors;
use super::names::{Extra, free_names, metadata, unique_names};
use super::read::{declaration, merge, sparse_name};
use super::sizes::Sizes;
use super::{Dims, ImportError, Plan};
use crate::file::Model;
use crate::functions::Ours;
use crate::proto::GraphProto;
use crate::shapes::Declared;
use crate::spelling::op_name;
use crate::state::{STRONG, Stated};
use crate::{copy, key};

/// The definition of a value of the file.
#[derive(Clone, Copy)]
pub(super) enum Source {
    Input(usize),
    Initializer(usize),
    Sparse(usize),
    Node(usize),
}

/// The file's graph with its names resolved.
pub(super) struct Resolved<'m> {
    pub(super) model: &'m Model,
    pub(super) proto: &'m GraphProto,
    pub(super) sizes: Sizes<'m>,
    /// The number of every value name of the file. The hasher's seed differs in every process: no file can be made whose names
    /// collide.
    pub(super) numbers: HashMap<&'m str, u32>,
    /// The definition of each value, by number.
    pub(super) sources: Vec<Source>,
    /// The file's declaration, by number.
    pub(super) declared: Vec<Option<Declared>>,
    /// For every node its operands' numbers, one after another; `u32::MAX` if one is left out.
    reads: Vec<u32>,
    /// The begin of each node's operands in `reads`.
    begins: Vec<u32>,
    /// For every node its results' numbers, one after another; `u32::MAX` if one is left out.
    defines: Vec<u32>,
    /// The begin of each node's results in `defines`.
    define_begins: Vec<u32>,
    /// Facts that only few nodes have.
    pub(super) extras: HashMap<usize, Extra<'m>>,
    pub(super) names: Vec<Name>,
    pub(super) bodies: Bodies<'m>,
}

/// The number of an operand that is left out.
pub(super) const NONE: u32 = u32::MAX;
/// The number of an operand that nothing defines.
pub(super) const LOST: u32 = u32::MAX - 1;

impl<'m> Resolved<'m> {
    /// The graph with its names resolved; undefined names are marked as [`LOST`].
    pub(super) fn new(
        model: &'m Model,
        proto: &'m GraphProto,
        dims: &'m Dims,
        (plan, breaches): (Plan, Option<&'m Breaches>),
        errors: &mut Errors,
    ) -> Resolved<'m> {
        let mut resolved = Resolved {
            model,
            proto,
            sizes: Sizes::of(proto, dims, errors),
            numbers: HashMap::with_capacity(proto.node.len() * 2 + proto.input.len()),
            sources: Vec::new(),
            declared: Vec::new(),
            reads: Vec::new(),
            begins: Vec::with_capacity(proto.node.len() + 1),
            defines: Vec::with_capacity(proto.node.len() * 2),
            define_begins: Vec::with_capacity(proto.node.len() + 1),
            extras: HashMap::new(),
            names: unique_names(&proto.node),
            bodies: Bodies::new(model, breaches),
        };
        resolved.define_all(errors);
        resolved.declare_all();
        resolved.read_all(errors);
        if plan == Plan::Ignored {
            resolved.extras.values_mut().for_each(|extra| extra.after.clear());
        }
        resolved
    }

    fn describe(&self, source: Source) -> String {
        match source {
            Source::Input(_) => "a graph input".to_owned(),
            Source::Initializer(_) | Source::Sparse(_) => "an initializer".to_owned(),
            Source::Node(i) => format!("node `{}` ({})", self.names[i], op_name(&self.proto.node[i])),
        }
    }

    /// Numbers the name and returns its number.
    fn define(&mut self, name: &'m str, source: Source, errors: &mut Errors) -> u32 {
        match self.numbers.entry(name) {
            Entry::Vacant(vacant) => {
                let number = self.sources.len() as u32;
                self.sources.push(source);
                *vacant.insert(number)
            }
            Entry::Occupied(taken) => {
                let number = *taken.get();
                let first = self.sources[number as usize];
                let (first, second) = (self.describe(first), self.describe(source));
                errors.push(ImportError::DefinedTwice { value: name.to_owned(), first, second });
                number
            }
        }
    }

    fn define_all(&mut self, errors: &mut Errors) {
        let proto = self.proto;
        for (i, tensor) in proto.initializer.iter().enumerate() {
            self.define(tensor.name(), Source::Initializer(i), errors);
        }
        for (i, sparse) in proto.sparse_initializer.iter().enumerate() {
            self.define(sparse_name(sparse), Source::Sparse(i), errors);
        }
        let constants = self.sources.len() as u32;
        for (i, input) in proto.input.iter().enumerate() {
            // An input with a default value is that initializer.
            if self.numbers.get(input.name()).is_none_or(|&n| n >= constants) {
                self.define(input.name(), Source::Input(i), errors);
            }
        }
        for (i, node) in proto.node.iter().enumerate() {
            self.define_begins.push(self.defines.len() as u32);
            for result in &node.output {
                let number =
                    if result.is_empty() { NONE } else { self.define(result, Source::Node(i), errors) };
                self.defines.push(number);
            }
        }
        self.define_begins.push(self.defines.len() as u32);
    }

    fn declare_all(&mut self) {
        self.declared = vec![None; self.sources.len()];
        for info in self.proto.value_info.iter().chain(&self.proto.output) {
            let Some(&number) = self.numbers.get(info.name()) else { continue };
            if let Some(declared) = declaration(info, &|name| self.sizes.get(name)) {
                self.declared[number as usize] = match self.declared[number as usize].take() {
                    Some(before) => merge(before, declared),
                    None => Some(declared),
                };
            }
        }
    }

    fn read_all(&mut self, errors: &mut Errors) {
        let proto = self.proto;
        let mut by_name: Option<HashMap<&str, Option<usize>>> = None;
        for (i, node) in proto.node.iter().enumerate() {
            self.begins.push(self.reads.len() as u32);
            for name in &node.input {
                let number = if name.is_empty() { Some(NONE) } else { self.numbers.get(&**name).copied() };
                self.reads.push(number.unwrap_or(LOST));
                if number.is_none() {
                    self.undefined(i, name, errors);
                }
            }
            if node.op_type().is_empty() {
                errors.push(ImportError::NoOperator { node: self.names[i].to_string() });
            }
            let mut extra = Extra::default();
            let mut special = false;
            if node.attribute.iter().any(|a| a.g.is_some() || !a.graphs.is_empty()) {
                special = true;
                self.capture(i, &mut extra, errors);
            }
            let ours = Ours::of_node(node);
            if let Some(ours) = ours {
                special = true;
                self.called_as_it_is_written(i, ours, errors);
                match ours {
                    Ours::Join { stayed, .. } => extra.join = Some(stayed),
                    _ => extra.copy = Some(ours.in_graph()),
                }
            }
            for entry in node.metadata_props.iter().filter(|e| e.key().starts_with("ai.lmsc.")) {
                special = true;
                let by_name = by_name.get_or_insert_with(|| {
                    let mut by_name = HashMap::new();
                    for (i, node) in proto.node.iter().enumerate() {
                        by_name.entry(node.name()).and_modify(|taken| *taken = None).or_insert(Some(i));
                    }
                    by_name
                });
                if let Err((key, reason)) =
                    metadata(entry.key(), entry.value(), by_name, &self.numbers, &mut extra)
                {
                    let (name, op) = (&self.names[i], op_name(node));
                    // With another seed the node would draw other numbers.
                    if key == key::SEED {
                        errors.push(ImportError::Seed { node: name.to_string(), op, reason })
                    } else {
                        errors.stale.push_of_node(name, &op, key, &reason)
                    }
                }
            }
            let own = self.bodies.function(("", node.op_type(), node.overload())).is_some();
            let copies = extra.join.is_none() && (ours.is_some() || copy::is_copy(node) && !own);
            if extra.copy.is_some() && !copies {
                let reason = "the operator computes more than a copy of its operand";
                errors.stale.push_of_node(&self.names[i], &op_name(node), key::KIND, reason);
                extra.copy = None;
            }
            if special {
                self.extras.insert(i, extra);
            }
        }
        self.begins.push(self.reads.len() as u32);
        for output in &proto.output {
            if !self.numbers.contains_key(output.name()) {
                let (value, reader) = (output.name().to_owned(), "the graph's list of outputs".to_owned());
                errors.push(ImportError::Undefined { value, reader });
            }
        }
    }

    fn called_as_it_is_written(&self, node: usize, ours: Ours, errors: &mut Errors) {
        let proto = &self.proto.node[node];
        let (least, most) = ours.operands();
        let attributes = ours.attributes();
        let has = |name: &&str| proto.attribute.iter().any(|attribute| attribute.name() == *name);
        let as_written = (least..=most).contains(&proto.input.len())
            && proto.attribute.len() == attributes.len()
            && attributes.iter().all(has);
        if !as_written {
            let (node, op) = (self.names[node].to_string(), op_name(proto));
            errors.push(ImportError::Call { node, op, operands: most, attributes });
        }
    }

    fn undefined(&self, node: usize, value: &str, errors: &mut Errors) {
        let reader = self.describe(Source::Node(node));
        errors.push(ImportError::Undefined { value: value.to_owned(), reader });
    }

    /// Finds the values that the node's subgraphs read from this graph.
    fn capture(&self, node: usize, extra: &mut Extra<'m>, errors: &mut Errors) {
        let proto = &self.proto.node[node];
        let mut free = Vec::new();
        for attribute in &proto.attribute {
            for graph in attribute.g.as_deref().into_iter().chain(&attribute.graphs) {
                if free_names(graph, 0, &mut free).is_err() {
                    let (node, op) = (self.names[node].to_string(), op_name(proto));
                    errors.push(ImportError::TooDeep { node, op });
                    return;
                }
            }
        }
        let mut seen = HashSet::new();
        for name in free {
            match self.numbers.get(name) {
                Some(&number) if seen.insert(number) => extra.captures.push(number),
                Some(_) => {}
                None => {
                    extra.captures.push(LOST);
                    self.undefined(node, name, errors);
                }
            }
        }
    }

    /// The numbers of values that an output's name, or the file, declares as state: the value in the file is only that of the
    /// first step.
    pub(super) fn state(&self) -> impl Iterator<Item = u32> + '_ {
        let stated = Stated::of(self.model).unwrap_or_default().pairs.into_iter().map(|(input, _)| input);
        let stated = stated.filter_map(|input| self.numbers.get(&*input).copied());
        let named = self.proto.output.iter().flat_map(|output| {
            STRONG.iter().filter_map(|suffix| self.numbers.get(output.name().strip_suffix(suffix)?).copied())
        });
        stated.chain(named)
    }

    /// The name of the value of this number.
    pub(super) fn name_of(&self, number: u32) -> &'m str {
        match self.sources[number as usize] {
            Source::Input(i) => self.proto.input[i].name(),
            Source::Initializer(i) => self.proto.initializer[i].name(),
            Source::Sparse(i) => sparse_name(&self.proto.sparse_initializer[i]),
            Source::Node(i) => {
                let at = self.results(i).iter().position(|&n| n == number);
                at.map_or("", |at| &self.proto.node[i].output[at])
            }
        }
    }

    /// The numbers of the node's operands.
    pub(super) fn operands(&self, node: usize) -> &[u32] {
        &self.reads[self.begins[node] as usize..self.begins[node + 1] as usize]
    }

    /// The numbers of the node's results.
    pub(super) fn results(&self, node: usize) -> &[u32] {
        &self.defines[self.define_begins[node] as usize..self.define_begins[node + 1] as usize]
    }

    /// The nodes that must complete before this one starts.
    fn before(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let extra = self.extras.get(&node);
        let captures = extra.map_or(&[][..], |e| &e.captures);
        let after = extra.map_or(&[][..], |e| &e.after);
        let reads = self.operands(node).iter().chain(captures);
        let producer = |&n: &u32| match self.sources.get(n as usize) {
            Some(&Source::Node(i)) => Some(i),
            _ => None,
        };
        reads.filter_map(producer).chain(after.iter().copied())
    }

    /// A topological order: the file's order, or the nearest one.
    pub(super) fn order(&self, errors: &mut Errors) -> Option<Vec<usize>> {
        let count = self.proto.node.len();
        if (0..count).all(|i| self.before(i).all(|b| b < i)) {
            return Some((0..count).collect());
        }
        let mut waiting = vec![0u32; count];
        let mut next: Vec<Vec<u32>> = vec![Vec::new(); count];
        for (i, waiting) in waiting.iter_mut().enumerate() {
            for b in self.before(i) {
                next[b].push(i as u32);
                *waiting += 1;
            }
        }
        let mut ready: BinaryHeap<Reverse<u32>> =
            (0..count as u32).filter(|&i| waiting[i as usize] == 0).map(Reverse).collect();
        let mut order = Vec::with_capacity(count);
        while let Some(Reverse(i)) = ready.pop() {
            order.push(i as usize);
            for &n in &next[i as usize] {
                waiting[n as usize] -= 1;
                if waiting[n as usize] == 0 {
                    ready.push(Reverse(n));
                }
            }
        }
        if order.len() == count {
            return Some(order);
        }
        // Every node that still waits has such a predecessor: walking back must reach a node twice.
        let mut at = waiting.iter().position(|&w| w > 0)?;
        let mut seen = vec![false; count];
        while !std::mem::replace(&mut seen[at], true) {
            at = self.before(at).find(|&b| waiting[b] > 0)?;
        }
        let mut nodes = vec![at];
        loop {
            at = self.before(at).find(|&b| waiting[b] > 0)?;
            nodes.push(at);
            if at == nodes[0] {
                break;
            }
        }
        nodes.reverse();
        nodes.pop();
        let name = |i: usize| format!("`{}` ({})", self.names[nodes[i]], op_name(&self.proto.node[nodes[i]]));
        if self.extras.values().any(|extra| !extra.after.is_empty()) {
            // Without these edges there may be no cycle.
            let reason = format!(
                "with the edges of metadata `{}`, nodes wait for one another in a cycle: ",
                key::AFTER
            );
            errors.stale.push(reason + &words::chain(nodes.len(), name));
            return None;
        }
        errors.push(ImportError::Cycle { nodes: words::chain(nodes.len(), name) });
        None
    }
}

//! The invariants I1 to I8 of a graph, checked after every pass.

mod addresses;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::ops::Range;

use crate::ranges::{copied_elements, joined_elements, range_type};
use crate::{
    Advice, Attr, Def, Graph, Name, Node, NodeId, Op, StorageId, Storages, Update, ValueId, ops, reaches,
    words,
};

/// The invariant that a graph breaks. The texts are those of the architecture page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Invariant {
    /// Every value has exactly one definition: a graph input, an initializer or one node.
    I1 = 1,
    /// Data and control edges together have no cycle, and the order follows them.
    I2,
    /// A device node reads device values, a host node host values; only SwapOut and SwapIn cross.
    I3,
    /// Outputs and updated variables are where the caller's signature says; readers of a variable's old value are ordered
    /// before the update.
    I4,
    /// Every size is known.
    I5,
    /// A recomputed node is pure and computes the results of its origin.
    I6,
    /// Where two storages overlap in space, every use of one reaches the definition of the other.
    I7,
    /// A SwapIn reads the unchanged result of a SwapOut or a host node; a Join names ranges as one whole.
    I8,
}

impl Invariant {
    /// The invariant in a sentence, for messages.
    pub fn rule(self) -> &'static str {
        match self {
            Invariant::I1 => {
                "every value has one definition (a graph input, an initializer or one node), and every node a name of \
                 its own"
            }
            Invariant::I2 => "edges make no cycle, and the nodes stand in an order that follows the edges",
            Invariant::I3 => {
                "a node on the device reads and defines device values, a node on the host host values; only \
                 ai.lmsc.SwapOut and ai.lmsc.SwapIn cross"
            }
            Invariant::I4 => {
                "only inputs, initializers and what a SwapIn brought of one are updated, each with a value of its type, \
                 and edges order what reads the old value before the node that overwrites it"
            }
            Invariant::I5 => "every size is known, and all values together have less than 2^60 bytes",
            Invariant::I6 => "a recomputed node computes what its origin computes, and writes nothing",
            Invariant::I7 => {
                "where two values have bytes in common, edges order every use of the earlier one before the \
                 definition of the later one"
            }
            Invariant::I8 => {
                "a copy has one operand and one result, of one type unless it copies a range; a SwapIn reads what a SwapOut \
                 or a host node wrote, or what is on the host from the start; and a Join names whole what SwapIns \
                 brought, or on the host what SwapOuts did"
            }
        }
    }
}

/// One broken invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The broken invariant.
    pub invariant: Invariant,
    /// The place and the error, with names of nodes and values.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.invariant, self.message)
    }
}

/// All violations of a graph, in the order of the invariants.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Violations(pub Vec<Violation>);

/// One violation a line.
impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 20;
        let mut lines: Vec<String> = self.0.iter().take(SHOWN).map(|found| format!("  {found}")).collect();
        if let more @ 1.. = self.0.len().saturating_sub(SHOWN) {
            lines.push(format!("  and {more} more"));
        }
        f.write_str(&lines.join("\n"))
    }
}

/// The rules that are broken.
impl Advice for Violations {
    fn helps(&self) -> Vec<String> {
        let broken: BTreeSet<Invariant> = self.0.iter().map(|v| v.invariant).collect();
        let rules = broken.into_iter().map(|invariant| format!("\n  {invariant:?}: {}", invariant.rule()));
        vec![format!("invariants of every graph:{}", rules.collect::<String>())]
    }
}

/// Succeeds if the graph keeps every invariant.
///
/// Near-linear in nodes and edges.
///
/// # Errors
/// Every violation that is not a consequence of earlier ones: if a graph has undefined values (I1) or cycles (I2), the later
/// invariants are not checked.
pub fn verify(graph: &Graph) -> Result<(), Violations> {
    let mut checker = Checker { graph, found: Vec::new() };
    checker.definitions();
    if checker.found.is_empty() {
        checker.order();
    }
    if checker.found.is_empty() {
        checker.sizes();
        checker.places();
        checker.swaps();
        checker.recomputed();
        let storages = Storages::of(graph);
        checker.signature(&storages);
        checker.addresses(&storages);
    }
    let mut found = checker.found;
    found.sort_by_key(|v| v.invariant);
    if found.is_empty() { Ok(()) } else { Err(Violations(found)) }
}

struct Checker<'a> {
    graph: &'a Graph,
    found: Vec<Violation>,
}

impl Checker<'_> {
    fn report(&mut self, invariant: Invariant, message: String) {
        self.found.push(Violation { invariant, message });
    }

    fn value(&self, value: ValueId) -> &Name {
        &self.graph.value(value).name
    }

    fn node(&self, node: NodeId) -> String {
        let node = self.graph.node(node);
        format!("`{}` ({})", node.name, node.op)
    }

    /// I1.
    fn definitions(&mut self) {
        let graph = self.graph;
        let mut seen = vec![false; graph.node_capacity()];
        for &id in graph.order() {
            if std::mem::replace(&mut seen[id.as_u32() as usize], true) {
                self.report(Invariant::I1, format!("the order runs {} twice", self.node(id)));
            }
        }
        let alive = |node: NodeId| seen[node.as_u32() as usize];
        for &id in graph.namesakes().nodes.iter().filter(|&&id| alive(id)) {
            let name = &graph.node(id).name;
            let other = graph.node_named(name).filter(|&other| alive(other));
            if let Some(other) = other {
                let ops = format!("{} and {}", graph.node(other).op, graph.node(id).op);
                self.report(Invariant::I1, format!("two nodes are named `{name}`: {ops}"));
            }
        }
        let defined = |id: &ValueId| match graph.def(*id) {
            Def::Result(node, _) => alive(node),
            _ => true,
        };
        for &id in graph.namesakes().values.iter().filter(|&id| defined(id)) {
            let name = &graph.value(id).name;
            if let Some(other) = graph.value_named(name).filter(|other| defined(other)) {
                let definitions = format!("{} and {}", self.definition(other), self.definition(id));
                self.report(Invariant::I1, format!("`{name}` is defined twice: {definitions}"));
            }
        }
        // Undefined values and their readers first; the caller is not a node.
        let mut undefined: BTreeMap<ValueId, Option<NodeId>> = BTreeMap::new();
        let mut check = |value: ValueId, user: Option<NodeId>| {
            let dangling = match graph.def(value) {
                Def::Nothing => true,
                Def::Result(node, index) => {
                    !seen[node.as_u32() as usize] || graph.node(node).results.get(index) != Some(&Some(value))
                }
                Def::Input | Def::Initializer(_) => false,
            };
            if dangling {
                undefined.entry(value).or_insert(user);
            }
        };
        for &id in graph.order() {
            let node = graph.node(id);
            for value in node.reads().chain(node.updates.iter().map(|update| update.variable)) {
                check(value, Some(id));
            }
        }
        for &value in &graph.outputs {
            check(value, None);
        }
        // A misspelt name has one like it.
        let mut names: Vec<&str> = Vec::new();
        if !undefined.is_empty() {
            let defined = self.graph.values().filter(|(value, _)| self.graph.def(*value) != Def::Nothing);
            names.extend(defined.map(|(_, value)| &*value.name));
        }
        for (value, user) in undefined {
            // Every name of one letter is like every other.
            let name = self.value(value);
            let meant = if name.len() > 1 { words::nearest(name, names.iter().copied()) } else { None };
            let meant = meant.map_or(String::new(), |name| format!("; did you mean `{name}`?"));
            let user = user.map_or_else(|| "the caller, as an output,".to_owned(), |id| self.node(id));
            let message = format!("{user} reads `{}`, which nothing defines{meant}", self.value(value));
            self.report(Invariant::I1, message);
        }
    }

    fn definition(&self, value: ValueId) -> String {
        match self.graph.def(value) {
            Def::Input => "as a graph input".to_owned(),
            Def::Initializer(_) => "as an initializer".to_owned(),
            Def::Result(node, _) => format!("by {}", self.node(node)),
            Def::Nothing => "by nothing".to_owned(),
        }
    }

    /// I2.
    fn order(&mut self) {
        let graph = self.graph;
        let ticks = graph.ticks();
        let tick = |n: NodeId| ticks[n.as_u32() as usize];
        let mut wrong = Vec::new();
        for &id in graph.order() {
            wrong.extend(graph.predecessors(id).filter(|&p| tick(p) >= tick(id)).map(|p| (p, id)));
        }
        if wrong.is_empty() {
            return;
        }
        if let Some(cycle) = self.cycle() {
            let names = words::chain(cycle.len(), |i| self.node(cycle[i]));
            let message = format!("a cycle of data and control edges: {names}");
            return self.report(Invariant::I2, message);
        }
        for (before, id) in wrong {
            let why =
                if tick(before) == u32::MAX { "which is not in the graph" } else { "which comes later" };
            self.report(Invariant::I2, format!("{} needs {}, {why}", self.node(id), self.node(before)));
        }
    }

    /// A cycle, in the direction of execution, if there is one.
    fn cycle(&self) -> Option<Vec<NodeId>> {
        #[derive(Clone, Copy, PartialEq)]
        enum Mark {
            New,
            Open,
            Done,
        }
        let graph = self.graph;
        let mut marks = vec![Mark::New; graph.node_capacity()];
        for &root in graph.order() {
            if marks[root.as_u32() as usize] != Mark::New {
                continue;
            }
            marks[root.as_u32() as usize] = Mark::Open;
            let mut path = vec![(root, graph.predecessors(root).collect::<Vec<_>>())];
            while let Some((node, rest)) = path.last_mut() {
                match rest.pop() {
                    None => {
                        marks[node.as_u32() as usize] = Mark::Done;
                        path.pop();
                    }
                    Some(before) => match marks[before.as_u32() as usize] {
                        Mark::Done => {}
                        Mark::Open => {
                            let from = path.iter().position(|(n, _)| *n == before)?;
                            return Some(path[from..].iter().rev().map(|(n, _)| *n).collect());
                        }
                        Mark::New => {
                            marks[before.as_u32() as usize] = Mark::Open;
                            path.push((before, graph.predecessors(before).collect()));
                        }
                    },
                }
            }
        }
        None
    }

    /// I5. Copies over the link, joins and recomputed values do not count, so a graph stays valid however often a pass swaps a
    /// value in or recomputes it.
    fn sizes(&mut self) {
        let graph = self.graph;
        let mut total = 0u64;
        for (id, value) in graph.values() {
            let Some(bytes) = value.ty.byte_size() else {
                let message = format!("`{}` ({}) has 2^60 bytes or more", value.name, value.ty);
                return self.report(Invariant::I5, message);
            };
            let again = |node: &Node| node.op.is_swap() || node.op.is_join() || node.recomputes.is_some();
            let copy = graph.producer(id).is_some_and(|node| again(graph.node(node)));
            total = total.saturating_add(if copy { 0 } else { bytes.0 });
        }
        if total >= 1 << 60 {
            self.report(Invariant::I5, "all values together have 2^60 bytes or more".to_owned());
        }
    }

    /// I3.
    fn places(&mut self) {
        let graph = self.graph;
        for &id in graph.order() {
            let node = graph.node(id);
            let (reads_host, writes_host) = match (node.op.is_swap_out(), node.op.is_swap_in()) {
                (true, _) => (false, true),
                (_, true) => (true, false),
                _ => {
                    let on_host = graph.runs_on_host(id);
                    (on_host, on_host)
                }
            };
            let place = |host| if host { "host" } else { "device" };
            for value in graph.uses(id).filter(|&v| graph.value(v).place.is_host() != reads_host) {
                let message = format!(
                    "{} reads `{}` from the {}; it reads {} values only",
                    self.node(id),
                    self.value(value),
                    place(!reads_host),
                    place(reads_host)
                );
                self.report(Invariant::I3, message);
            }
            for value in node.defines().filter(|&v| graph.value(v).place.is_host() != writes_host) {
                let message = format!(
                    "{} defines `{}` on the {}",
                    self.node(id),
                    self.value(value),
                    place(!writes_host)
                );
                self.report(Invariant::I3, message);
            }
        }
    }

    /// I8.
    fn swaps(&mut self) {
        let graph = self.graph;
        for &id in graph.order() {
            let node = graph.node(id);
            if node.op.is_join() {
                if let Some(what) = self.join(id, node) {
                    self.report(Invariant::I8, format!("{} {what}", self.node(id)));
                }
                continue;
            }
            if !node.op.is_swap() {
                continue;
            }
            let ([Some(operand)], [Some(result)]) = (&node.operands[..], &node.results[..]) else {
                self.report(Invariant::I8, format!("{} has one operand and one result", self.node(id)));
                continue;
            };
            let (from, to) = (&graph.value(*operand).ty, &graph.value(*result).ty);
            if !node.attributes.is_empty() {
                let copied =
                    copied_elements(node).zip(from.as_tensor()).filter(|_| node.attributes.len() == 2);
                let ty = copied.and_then(|(range, whole)| range_type(whole, &range));
                if ty.is_none() {
                    let message = format!("{} copies no range of elements of {from}", self.node(id));
                    self.report(Invariant::I8, message);
                } else if ty.as_ref() != Some(to) {
                    let ty = ty.map_or_else(String::new, |ty| ty.to_string());
                    let message = format!("{} defines {to}, but what it copies is {ty}", self.node(id));
                    self.report(Invariant::I8, message);
                }
            } else if from != to {
                self.report(
                    Invariant::I8,
                    format!("{} turns {from} into {to}; a copy keeps the type", self.node(id)),
                );
            }
            let comes_from_host = match graph.producer(*operand) {
                Some(writer) => graph.node(writer).op.is_swap_out() || graph.runs_on_host(writer),
                None => graph.value(*operand).place.is_host(),
            };
            if node.op.is_swap_in() && !comes_from_host {
                let message = format!(
                    "{} reads `{}`, which no SwapOut or host node wrote",
                    self.node(id),
                    self.value(*operand)
                );
                self.report(Invariant::I8, message);
            }
        }
    }

    /// The error in a Join, if there is one.
    fn join(&self, id: NodeId, join: &Node) -> Option<String> {
        let graph = self.graph;
        let on_host = graph.runs_on_host(id);
        let (Some((base, pieces)), [Some(result)]) = (join.operands.split_first(), &join.results[..]) else {
            return Some("has what stayed, pieces, and one result".to_owned());
        };
        let ty = &graph.value(*result).ty;
        let Some(whole) = ty.as_tensor() else { return Some(format!("joins {ty}, which is no tensor")) };
        let joined = joined_elements(graph, join);
        if joined.len() != pieces.len() || pieces.is_empty() {
            return Some(format!("says of {} of its {} pieces where they begin", joined.len(), pieces.len()));
        }
        let mut at = 0;
        let mut gaps = false;
        for (piece, range) in &joined {
            let name = self.value(*piece);
            if range_type(whole, range).as_ref() != Some(&graph.value(*piece).ty) || range.start < at {
                return Some(format!("has `{name}` at {}..{}, where none can be", range.start, range.end));
            }
            let is_copy = |op: &Op| if on_host { op.is_swap_out() } else { op.is_swap_in() };
            if !graph.producer(*piece).is_some_and(|n| is_copy(&graph.node(n).op)) {
                let copy = if on_host { "SwapOut" } else { "SwapIn" };
                return Some(format!("joins `{name}`, which no {copy} brought"));
            }
            gaps |= at < range.start;
            at = range.end;
        }
        gaps |= Some(at) != whole.element_count();
        let dims: Vec<i64> = whole.dims.iter().map(|&dim| dim as i64).collect();
        match base {
            Some(base) if graph.value(*base).ty != *ty => {
                Some(format!("turns `{}` ({}) into {ty}", self.value(*base), graph.value(*base).ty))
            }
            None if gaps => Some("leaves elements out".to_owned()),
            None if join.attribute("dims") != Some(&Attr::Ints(dims)) => {
                Some(format!("does not say that it joins to {ty}"))
            }
            _ => None,
        }
    }

    /// I6. It follows from I1 and I2 that a recomputed node's operands are live at its position, since reading keeps them alive.
    fn recomputed(&mut self) {
        let graph = self.graph;
        let ticks = graph.ticks();
        // For each node, the node whose chain of origins last passed through it; a node that meets its own mark is in a cycle.
        let mut followed_from: Vec<Option<NodeId>> = vec![None; graph.node_capacity()];
        for &id in graph.order() {
            let mut at = id;
            while let Some(origin) = graph.node(at).recomputes {
                match followed_from[at.as_u32() as usize].replace(id) {
                    None => at = origin,
                    Some(from) => {
                        if from == id {
                            self.report(Invariant::I6, format!("{} recomputes itself", self.node(id)));
                        }
                        break;
                    }
                }
            }
        }
        for &id in graph.order() {
            let node = graph.node(id);
            let Some(origin) = node.recomputes else { continue };
            if ticks[origin.as_u32() as usize] == u32::MAX {
                let message =
                    format!("{} recomputes {}, which is not in the graph", self.node(id), self.node(origin));
                self.report(Invariant::I6, message);
                continue;
            }
            let origin = graph.node(origin);
            if node.op != origin.op || node.attributes != origin.attributes {
                let message = format!(
                    "{} recomputes `{}` ({}) with another operator or attributes",
                    self.node(id),
                    origin.name,
                    origin.op
                );
                self.report(Invariant::I6, message);
            } else if !ops::is_pure(node) && !node.op.effects().random {
                self.report(
                    Invariant::I6,
                    format!("{} writes variables or holds subgraphs and cannot be recomputed", self.node(id)),
                );
            }
        }
    }

    /// The error in an update edge, if there is one.
    fn misplaced_update(&self, id: NodeId, update: &Update) -> Option<&'static str> {
        let graph = self.graph;
        let node = graph.node(id);
        let variable = update.variable;
        let on_host = graph.value(variable).place.is_host();
        let result = update.result.and_then(|r| node.results.get(r).copied().flatten());
        match graph.def(variable) {
            Def::Result(writer, _) => {
                // Copies may be updated by the nodes that compute the variables' new values.
                let names = |op: &Op| op.is_swap() || op.is_join();
                let copied = names(&graph.node(writer).op) && !on_host && !names(&node.op);
                (!copied).then_some("which is neither an input nor an initializer, nor what a SwapIn brought")
            }
            _ if node.op.is_swap() && (result.is_none() || !node.attributes.is_empty()) => {
                Some("but a copy updates a variable whole, as its result")
            }
            _ if node.op.is_join() && (result.is_none() || node.operands.first() != Some(&None)) => {
                Some("but a join updates a variable whole, as its result")
            }
            _ if node.op.is_join() && !on_host => Some("which is on the device, where a join only names"),
            _ if node.op.is_swap_in() => on_host.then_some("which is on the host"),
            _ if node.op.is_swap_out() => (!on_host).then_some("which is on the device"),
            _ => (on_host != graph.runs_on_host(id)).then_some("which is in the other memory"),
        }
    }

    /// The SwapOuts that write elements of a variable on the host that a Join updates; with `elements`, only those that write
    /// some of them.
    fn writing(&self, join: NodeId, elements: Option<Range<u64>>) -> impl Iterator<Item = NodeId> {
        let graph = self.graph;
        let meant = move |range: &Range<u64>| {
            elements.as_ref().is_none_or(|e| e.start < range.end && range.start < e.end)
        };
        let pieces = joined_elements(graph, graph.node(join)).into_iter();
        pieces.filter(move |(_, range)| meant(range)).filter_map(|(piece, _)| graph.producer(piece))
    }

    /// I4.
    fn signature(&mut self, storages: &Storages) {
        let graph = self.graph;
        let mut writers: BTreeMap<StorageId, Vec<(NodeId, Option<ValueId>)>> = BTreeMap::new();
        let mut is_written = vec![false; storages.len()];
        for &id in graph.order() {
            let node = graph.node(id);
            for update in &node.updates {
                let variable = graph.value(update.variable);
                if let Some(what) = self.misplaced_update(id, update) {
                    let message = format!("{} updates `{}`, {what}", self.node(id), variable.name);
                    self.report(Invariant::I4, message);
                    continue;
                }
                let result = update.result.and_then(|r| node.results.get(r).copied().flatten());
                if let Some(new) = result.map(|r| graph.value(r)).filter(|new| new.ty != variable.ty) {
                    let message = format!(
                        "{} updates `{}` ({}) with `{}` ({})",
                        self.node(id),
                        variable.name,
                        variable.ty,
                        new.name,
                        new.ty
                    );
                    self.report(Invariant::I4, message);
                }
                let storage = storages.storage(update.variable);
                is_written[storage.as_u32() as usize] = true;
                writers.entry(storage).or_default().push((id, result));
            }
        }
        // A version of a variable is the value that one update wrote; views belong to the version of their operand.
        let mut version: HashMap<ValueId, usize> = HashMap::new();
        let mut last_version: HashMap<StorageId, usize> = HashMap::new();
        for (&storage, writers) in &writers {
            for (i, (_, result)) in writers.iter().enumerate() {
                version.extend(result.map(|r| (r, i + 1)));
            }
            last_version.insert(storage, writers.len());
        }
        let mut pairs: Vec<(NodeId, NodeId)> = Vec::new();
        let mut values: Vec<ValueId> = Vec::new();
        for &id in graph.order() {
            let node = graph.node(id);
            for value in graph.uses(id) {
                let storage = storages.storage(value);
                // Most storages are decided here.
                if !is_written[storage.as_u32() as usize] {
                    continue;
                }
                let of_storage = &writers[&storage];
                let old = version.get(&value).copied().unwrap_or(0);
                if node.op.effects().view
                    && let Some(view) = node.results.first().copied().flatten()
                    && storages.storage(view) == storage
                {
                    version.entry(view).or_insert(old);
                }
                if let Some(&(writer, _)) = of_storage.get(old)
                    && writer != id
                {
                    let before = pairs.len();
                    if graph.node(writer).op.is_join() {
                        // The copies that the Join combines write before it.
                        pairs.extend(self.writing(writer, copied_elements(node)).map(|out| (id, out)))
                    } else {
                        pairs.push((id, writer))
                    }
                    values.extend((before..pairs.len()).map(|_| value));
                }
            }
        }
        for of_storage in writers.values() {
            for window in of_storage.windows(2) {
                pairs.push((window[0].0, window[1].0));
                values.extend(window[1].1.or_else(|| graph.node(window[1].0).reads().next()));
            }
        }
        for ((&(reader, writer), &value), ordered) in pairs.iter().zip(&values).zip(reaches(graph, &pairs)) {
            if !ordered {
                let message = format!(
                    "{} uses `{}` but no edge orders it before {}, which overwrites it",
                    self.node(reader),
                    self.value(value),
                    self.node(writer)
                );
                self.report(Invariant::I4, message);
            }
        }
        for &value in &graph.outputs {
            let storage = storages.storage(value);
            if last_version
                .get(&storage)
                .is_some_and(|&last| version.get(&value).copied().unwrap_or(0) < last)
            {
                let message = format!(
                    "the output `{}` is a value from before an update, which overwrites its bytes; leave out the output, or the update",
                    self.value(value)
                );
                self.report(Invariant::I4, message);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violations(text: &str) -> String {
        let graph = Graph::parse(text).unwrap_or_else(|e| panic!("{e}"));
        let lines = |v: Violations| v.0.iter().map(|v| v.to_string()).collect::<Vec<_>>().join("\n");
        verify(&graph).map_or_else(lines, |()| "none".to_owned())
    }

    #[test]
    fn a_good_graph_has_none() {
        let text = "g (float[4] x, float[4] w, float[] lr) => (float[4] w_new) {
            [a] float[4] h = Relu(x)
            [out] float[4]@host h_host = ai.lmsc.SwapOut(h)
            [b] float[4] g = Mul(w, x) after [out]
            [in] float[4] h_in = ai.lmsc.SwapIn(h_host) after [b]
            [c] float[4] d = Mul(h_in, g)
            [a2] float[4] h2 = Relu(x) recomputes [a]
            [sgd] float[4] w_new = ai.lmsc.SGDOptimizer(lr, w, d) updates (w as w_new)
        }";
        assert_eq!(violations(text), "none");
    }

    #[test]
    fn i1_every_value_is_defined_once() {
        let text = "g (float[4] x) => (float[4] z) { [a] float[4] x = Relu(y) [a] float[4] y2 = Relu(x) }";
        assert_eq!(
            violations(text),
            "I1: two nodes are named `a`: Relu and Relu\n\
             I1: `x` is defined twice: as a graph input and by `a` (Relu)\n\
             I1: the caller, as an output, reads `z`, which nothing defines\n\
             I1: `a` (Relu) reads `y`, which nothing defines"
        );
    }

    #[test]
    fn i2_no_cycle_and_an_order_that_follows_the_edges() {
        let cyclic = "g (float[4] x) => (float[4] y) { [a] float[4] y = Add(x, z) [b] float[4] z = Relu(y) }";
        assert_eq!(
            violations(cyclic),
            "I2: a cycle of data and control edges: `b` (Relu) -> `a` (Add) -> `b` (Relu)"
        );
        let control =
            "g (float[4] x) => (float[4] z) { [a] float[4] y = Relu(x) after [b] [b] float[4] z = Relu(y) }";
        assert_eq!(
            violations(control),
            "I2: a cycle of data and control edges: `b` (Relu) -> `a` (Relu) -> `b` (Relu)"
        );
        let late = "g (float[4] x) => (float[4] z) { [b] float[4] z = Relu(y) [a] float[4] y = Relu(x) }";
        assert_eq!(violations(late), "I2: `b` (Relu) needs `a` (Relu), which comes later");
    }

    #[test]
    fn i3_only_swaps_cross() {
        let text = "g (float[4] x, float[4]@host p) => (float[4] z) {
            [a] float[4]@host y = Relu(x)
            [b] float[4] z = Add(x, p)
            [c] float[4] u = ai.lmsc.SwapOut(x)
        }";
        assert_eq!(
            violations(text),
            "I3: `a` (Relu) reads `x` from the device; it reads host values only\n\
             I3: `b` (Add) reads `p` from the host; it reads device values only\n\
             I3: `c` (ai.lmsc.SwapOut) defines `u` on the device"
        );
    }

    #[test]
    fn i4_old_values_are_read_before_the_update() {
        let text = "g (float[4] w, float[] lr) => (float[4] w_new, float[2,2] v) <int64[2] s = {2, 2}> {
            [a] float[4] g = Relu(w)
            [view] float[2,2] v = Reshape(w, s)
            [late] float[2,2] h = Relu(v)
            [sgd] float[4] w_new = ai.lmsc.SGDOptimizer(lr, w, g) updates (w as w_new)
            [fine] float[4] n = Relu(w_new)
        }";
        assert_eq!(
            violations(text),
            "I4: `view` (Reshape) uses `w` but no edge orders it before `sgd` (ai.lmsc.SGDOptimizer), which overwrites it\n\
             I4: `late` (Relu) uses `v` but no edge orders it before `sgd` (ai.lmsc.SGDOptimizer), which overwrites it\n\
             I4: the output `v` is a value from before an update, which overwrites its bytes; leave out the output, or the update"
        );
        let ordered = text.replace("updates (w as w_new)", "updates (w as w_new) after [late]");
        let ordered = ordered.replace(", float[2,2] v)", ")");
        assert_eq!(violations(&ordered), "none");
    }

    #[test]
    fn i4_variables_are_inputs_and_keep_their_type() {
        let text = "g (float[4] w) => (float[2] n) {
            [a] float[4] h = Relu(w)
            [b] float[2] n = F(h) updates (h, w as n)
        }";
        assert_eq!(
            violations(text),
            "I4: `b` (F) updates `h`, which is neither an input nor an initializer, nor what a SwapIn brought\n\
             I4: `b` (F) updates `w` (float[4]) with `n` (float[2])"
        );
    }

    /// `w` is on the host between steps; `v` is swapped out and in again.
    const VARIABLES: &str = "g (float[4] x, float[4]@host w, float[4]@device:0 v, float[] lr)
            => (float[4]@host w_new, float[4] v_new) {
        [in_w] float[4] w_in = ai.lmsc.SwapIn(w)
        [out_v] float[4]@host v_host = ai.lmsc.SwapOut(v)
        [mul] float[4] h = Mul(x, w_in)
        [add] float[4]@device:0 d = Add(h, h) after [out_v]
        [neg] float[4] e = Neg(d)
        [in_v] float[4]@device:0 v_in = ai.lmsc.SwapIn(v_host) updates (v as v_in) after [neg]
        [in_w2] float[4] w_in2 = ai.lmsc.SwapIn(w) after [mul]
        [sgd_w] float[4] w_dev = ai.lmsc.SGDOptimizer(lr, w_in2, e) updates (w_in2 as w_dev)
        [out_w] float[4]@host w_new = ai.lmsc.SwapOut(w_dev) updates (w as w_new)
        [sgd_v] float[4] v_new = ai.lmsc.SGDOptimizer(lr, v_in, e) updates (v_in as v_new)
    }";

    #[test]
    fn variables_live_on_the_host_or_leave_and_return() {
        assert_eq!(violations(VARIABLES), "none");
        let of = |from: &str, to: &str| {
            assert!(VARIABLES.contains(from));
            violations(&VARIABLES.replacen(from, to, 1)).lines().next().unwrap().to_owned()
        };
        assert_eq!(
            of("   [sgd_w]", "   [late] float[4] w_late = ai.lmsc.SwapIn(w)\n   [sgd_w]"),
            "I4: `late` (ai.lmsc.SwapIn) uses `w` but no edge orders it before `out_w` (ai.lmsc.SwapOut), which \
             overwrites it"
        );
        assert_eq!(
            of("updates (w as w_new)", "updates (v as w_new)"),
            "I4: `out_w` (ai.lmsc.SwapOut) updates `v`, which is on the device"
        );
        assert_eq!(
            of("updates (w as w_new)", "updates (w)"),
            "I4: `out_w` (ai.lmsc.SwapOut) updates `w`, but a copy updates a variable whole, as its result"
        );
        assert_eq!(
            of("updates (w_in2 as w_dev)", "updates (w as w_dev)"),
            "I4: `sgd_w` (ai.lmsc.SGDOptimizer) updates `w`, which is in the other memory"
        );
        assert_eq!(
            of("float[4]@device:0 v_in", "float[4]@device:64 v_in"),
            "I7: `v` returns as `v_in` to another place"
        );
        assert_eq!(
            of(" after [neg]", ""),
            "I7: `d` and `v_in` overlap, but no edge orders `add` (Add) before `in_v` (ai.lmsc.SwapIn)"
        );
        assert_eq!(of(" updates (v as v_in)", ""), "I7: `d` overwrites `v`, which the caller keeps");
    }

    #[test]
    fn variables_travel_in_ranges_if_they_live_on_the_host() {
        let text = crate::ranges::tests::VARIABLE;
        assert_eq!(violations(text), "none");
        let of = |from: &str, to: &str| {
            assert!(text.contains(from));
            violations(&text.replacen(from, to, 1)).lines().next().unwrap().to_owned()
        };
        // The new copy goes where the second range goes, not where the first does.
        assert_eq!(
            of(
                "        [home]",
                "        [late] float[1] k3 = ai.lmsc.SwapIn<begin = 3, end = 4>(w)\n[home]"
            ),
            "I4: `late` (ai.lmsc.SwapIn) uses `w` but no edge orders it before `o2` (ai.lmsc.SwapOut), which \
             overwrites it"
        );
        assert_eq!(
            of("updates (w as w_new)", "updates (w)"),
            "I4: `home` (ai.lmsc.Join) updates `w`, but a join updates a variable whole, as its result"
        );
        assert_eq!(
            of("(_, h1, h2)", "(w, h1, h2)"),
            "I4: `home` (ai.lmsc.Join) updates `w`, but a join updates a variable whole, as its result"
        );
        assert_eq!(
            of("(_, h1, h2)", "(_, h1, w)"),
            "I8: `home` (ai.lmsc.Join) has `w` at 3..7, where none can be"
        );
        assert_eq!(
            of(
                "float[4] w_in = ai.lmsc.Join<begins = [0, 3], dims = [4]>(_, k1, k2)",
                "float[4] w_in = ai.lmsc.Join<begins = [0, 3], dims = [4]>(_, k1, k2) updates (w as w_in)"
            ),
            "I4: `join` (ai.lmsc.Join) updates `w`, which is in the other memory"
        );
    }

    #[test]
    fn i5_sizes_fit() {
        let text = "g (float[4000000000,4000000000] x) => (float[4000000000,4000000000] x) {}";
        assert_eq!(violations(text), "I5: `x` (float[4000000000,4000000000]) has 2^60 bytes or more");
        let half = "float[144115188075855871]";
        let text = format!("g ({half} x) => ({half} x) {{ [a] {half} y = Relu(x) [b] {half} z = Relu(x) }}");
        assert_eq!(violations(&text), "I5: all values together have 2^60 bytes or more");
    }

    #[test]
    fn i6_a_recomputed_node_equals_its_origin_and_writes_nothing() {
        let text = "g (float[4] x, float[4] b, bool[1] r) => (float[4] y) {
            [a] float[4] y = Relu(x)
            [a2] float[4] y2 = Tanh(x) recomputes [a]
            [acc] bool[1] f = com.microsoft.InPlaceAccumulatorV2(b, y, r) updates (b)
            [acc2] bool[1] f2 = com.microsoft.InPlaceAccumulatorV2(b, y, r) updates (b) recomputes [acc] after [acc]
        }";
        let found = violations(text);
        assert!(
            found.contains("I6: `a2` (Tanh) recomputes `a` (Relu) with another operator or attributes"),
            "{found}"
        );
        assert!(
            found.contains("I6: `acc2` (com.microsoft.InPlaceAccumulatorV2) writes variables"),
            "{found}"
        );
    }

    #[test]
    fn i6_a_recomputed_node_has_an_origin() {
        let text = "g (float[4] x) => (float[4] y) {
            [a] float[4] y = Relu(x) recomputes [b]
            [b] float[4] y2 = Relu(x) recomputes [c]
            [c] float[4] y3 = Relu(x) recomputes [b]
            [d] float[4] y4 = Relu(x) recomputes [d]
            [e] float[4] y5 = Relu(x) recomputes [f]
            [f] float[4] y6 = Relu(x)
        }";
        assert_eq!(violations(text), "I6: `a` (Relu) recomputes itself\nI6: `d` (Relu) recomputes itself");
    }

    #[test]
    fn i7_shared_addresses_are_ordered_by_edges() {
        let text = |edge: &str| {
            format!(
                "g (float[4]@device:0 x) => (float[4]@device:32 z) {{
                [a] float[4]@device:16 y = Relu(x)
                [b] float[4]@device:48 u = Relu(y)
                [c] float[4]@device:16 v = Relu(x) {edge}
                [d] float[4]@device:32 z = Add(u, v)
            }}"
            )
        };
        assert_eq!(violations(&text("after [b]")), "none");
        assert_eq!(
            violations(&text("")),
            "I7: `y` and `v` overlap, but no edge orders `a` (Relu) before `c` (Relu)"
        );
        assert_eq!(
            violations(&text("after [a]")),
            "I7: `y` and `v` overlap, but no edge orders `b` (Relu) before `c` (Relu)"
        );
        let caller = text("after [b]").replace("device:16 v", "device:8 v");
        assert!(violations(&caller).starts_with("I7: `v` overwrites `x`, which the caller keeps"));
    }

    #[test]
    fn i7_a_workspace_is_used_by_its_node_alone() {
        let text = |address: u64, edge: &str| {
            format!(
                "g (float[4]@device:0 x) => (float[4]@device:32 z) {{
                [a] float[4]@device:16 y = Relu(x) workspace 16@device:{address}
                [b] float[4]@device:48 u = Relu(x) {edge}
                [c] float[4]@device:32 z = Add(u, y) workspace 64@device:64
            }}"
            )
        };
        assert_eq!(violations(&text(48, "after [a]")), "none");
        assert_eq!(
            violations(&text(48, "")),
            "I7: the workspace of `a` (Relu) and `u` overlap, but no edge orders `a` (Relu) before `b` (Relu)"
        );
        assert_eq!(
            violations(&text(24, "after [a]")),
            "I7: `y` and the workspace of `a` (Relu) overlap, but no edge orders `a` (Relu) before `a` (Relu)"
        );
        assert_eq!(
            violations(&text(8, "after [a]")).lines().next(),
            Some("I7: the workspace of `a` (Relu) overwrites `x`, which the caller keeps")
        );
    }

    #[test]
    fn i8_a_swap_in_reads_what_a_swap_out_wrote() {
        let text = "g (float[4] p, float[4] x) => (float[4] y) {
            [in] float[4] y = ai.lmsc.SwapIn(p)
            [out] float[2]@host q = ai.lmsc.SwapOut(x)
        }";
        assert_eq!(
            violations(text),
            "I3: `in` (ai.lmsc.SwapIn) reads `p` from the device; it reads host values only\n\
             I8: `in` (ai.lmsc.SwapIn) reads `p`, which no SwapOut or host node wrote\n\
             I8: `out` (ai.lmsc.SwapOut) turns float[4] into float[2]; a copy keeps the type"
        );
    }

    #[test]
    fn i8_ranges_are_of_whole_elements_and_join_to_the_whole() {
        let text = |range: &str, join: &str| {
            format!(
                "g (float[2,3] x) => (float[2,3] y) {{
                [a] float[2,3] h = Relu(x)
                [o1] float[4]@host h1 = ai.lmsc.SwapOut<{range}>(h)
                [o2] float[2]@host h2 = ai.lmsc.SwapOut<begin = 4, end = 6>(h)
                [i1] float[4] k1 = ai.lmsc.SwapIn(h1)
                [i2] float[2] k2 = ai.lmsc.SwapIn(h2)
                [join] float[2,3] w = ai.lmsc.Join<{join}
                [b] float[2,3] y = Relu(w)
            }}"
            )
        };
        let (range, join) = ("begin = 0, end = 4", "begins = [0, 4], dims = [2, 3]>(_, k1, k2)");
        assert_eq!(violations(&text(range, join)), "none");
        assert_eq!(violations(&text(range, "begins = [4]>(h, k2)")), "none");
        assert_eq!(
            violations(&text("begin = 2, end = 7", join)),
            "I8: `o1` (ai.lmsc.SwapOut) copies no range of elements of float[2,3]"
        );
        assert_eq!(
            violations(&text("begin = 0, end = 3", join)),
            "I8: `o1` (ai.lmsc.SwapOut) defines float[4], but what it copies is float[3]"
        );
        let wrong = |join: &str| violations(&text(range, join)).replace("I8: `join` (ai.lmsc.Join) ", "");
        assert_eq!(wrong("begins = [4]>(_, k2)"), "leaves elements out");
        assert_eq!(wrong("begins = [0, 4]>(_, k1, k2)"), "does not say that it joins to float[2,3]");
        assert_eq!(wrong("begins = [0, 2]>(h, k1, k2)"), "has `k2` at 2..4, where none can be");
        assert_eq!(wrong("begins = [0]>(h, k1, k2)"), "says of 1 of its 2 pieces where they begin");
        assert_eq!(wrong("begins = [4]>(k1, k2)"), "turns `k1` (float[4]) into float[2,3]");
        let computed = text(range, "begins = [0]>(h, z)").replace("[join]", "[z] float[4] z = F(k1) [join]");
        assert_eq!(violations(&computed), "I8: `join` (ai.lmsc.Join) joins `z`, which no SwapIn brought");
    }

    #[test]
    fn i7_pieces_lie_where_they_belong_and_wait_for_what_was_there() {
        let text = |k1: u64, w: &str, edge: &str| {
            format!(
                "g (float[4]@device:64 x) => (float[4]@device:128 z) {{
                [a] float[4]@device:0 h = Relu(x)
                [o1] float[2]@host h1 = ai.lmsc.SwapOut<begin = 0, end = 2>(h)
                [b] float[2]@device:0 u = F(x) {edge}
                [c] float[2]@device:200 v = F(u)
                [i1] float[2]@device:{k1} k1 = ai.lmsc.SwapIn(h1) after [c]
                [join] float[4]{w} w = ai.lmsc.Join<begins = [0]>(h, k1)
                [d] float[4]@device:128 z = F(w, v)
            }}"
            )
        };
        assert_eq!(violations(&text(0, "@device:0", "after [o1]")), "none");
        assert_eq!(
            violations(&text(0, "@device:0", "")),
            "I7: `h` and `u` overlap, but no edge orders `a` (Relu) before `b` (F)"
        );
        assert_eq!(
            violations(&text(16, "@device:0", "after [o1]")),
            "I7: `w` joins `k1`, which does not lie where it belongs"
        );
        assert_eq!(
            violations(&text(0, "", "after [o1]")),
            "I7: `w` joins `k1`, which does not lie where it belongs\n\
             I7: `w` joins `h`, which does not lie where it belongs"
        );
    }
}

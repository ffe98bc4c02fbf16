use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};
use lmsc_ir::{Bytes, Graph, NodeId, ValueId};
use lmsc_passes::rewrite::{Coding, CopyWay, add_again, add_cast, add_copy};
use lmsc_passes::{CallOption, KeptRecord, Outcome, Pass, PassCx, PassError, SwapRecord};
use lmsc_plan::service::Space;

use crate::tflms::{self, SwapPlan};

/// Number of plans with a smaller budget that are tried until the addresses of one fit the budget. Each lowers its budget
/// by the bytes that the addresses of the one before exceeded the real budget.
const ATTEMPTS: usize = 8;
/// Each attempt lowers its budget by at least one part in this number of the real budget.
const SMALLEST_PART: u64 = 500;

/// Swaps storages out after their producer and in before their late uses (TFLMS §4).
pub(crate) struct Swap;

impl Pass for Swap {
    fn name(&self) -> &'static str {
        "swap"
    }

    fn summary(&self) -> &'static str {
        "swap-outs and swap-ins with triggers and releases, as TFLMS decides"
    }

    fn options(&self) -> &[CallOption] {
        &tflms::OPTIONS
    }

    fn run(&self, graph: &mut Graph, cx: &PassCx) -> Result<Outcome, PassError> {
        // As the planner `tflms`, or with options of its own.
        let is_planner =
            cx.pass_options.is_empty() && cx.question.planner.is_none_or(|it| it.name() == tflms::NAME);
        let call = if is_planner { &cx.question.planner_options } else { &cx.pass_options };
        let given =
            tflms::Params { optimizer_scopes: cx.optimizer_scopes.clone(), ..tflms::Params::of(call) };
        given.names_are_in(graph).map_err(|fault| PassError::Call(fault.into()))?;
        let (is_tuned, limit) = (!call.names_given().any(tflms::is_tuned), tflms::swap_limit(call));
        let analysis = tflms::Analysis::new(graph, &given, cx.workspace(graph));
        let decide = |budget| match budget {
            Some(budget) if is_tuned => {
                let tuned = tflms::tune(&analysis, &given, budget);
                let tuned = tuned.map_err(|no| cx.refused(*no, tflms::NAME))?;
                Ok((limited(tuned.plan, limit), tuned.params))
            }
            budget => {
                let plan = tflms::plan(&analysis, &given, budget);
                Ok((limited(plan, limit), given.clone()))
            }
        };
        let (mut plan, mut params) = decide(cx.question.budget)?;
        if let Some(budget) = cx.question.budget.filter(|_| cx.question.space == Space::Arena) {
            let mut aim = budget;
            for _ in 0..ATTEMPTS {
                let over = extent(graph, &plan, budget, cx).0.saturating_sub(budget.0);
                if over == 0 {
                    break;
                }
                aim = Bytes(aim.0.saturating_sub(over.max(budget.0 / SMALLEST_PART)));
                match decide(Some(aim)) {
                    Ok(tighter) => (plan, params) = tighter,
                    Err(_) => break,
                }
            }
        }

        let mut outcome = Outcome { changed: !plan.swaps.is_empty(), ..Outcome::default() };
        let root_bytes = |value| graph.value(value).ty.byte_size().unwrap_or_default();
        outcome.kept.extend(plan.kept.iter().map(|(value, why)| KeptRecord {
            value: graph.value(*value).name.to_string(),
            bytes: root_bytes(*value),
            reason: why.describe(graph),
        }));
        outcome.swaps.extend(plan.swaps.iter().map(|swap| SwapRecord {
            value: graph.value(swap.root).name.to_string(),
            bytes: swap.bytes,
            link_bytes: swap.link_bytes(),
            bytes_out: swap.link_bytes(),
            bytes_in: Bytes(swap.link_bytes().0.saturating_mul(swap.ins.len() as u64)),
            swap_ins: swap.ins.len(),
        }));
        if outcome.changed {
            outcome.remarks.push(format!(
                "{} lb={} ub={} threshold={} n_tensors={} fuse_swapins={} swap_branches={}{}",
                params.ctrld_strategy,
                params.lb,
                params.ub,
                params.threshold,
                plan.swaps.len(),
                params.fuse_swapins,
                params.swap_branches,
                if params.encode { " encode=true" } else { "" },
            ));
            Rewriter::new(graph).apply(&plan);
        }
        Ok(outcome)
    }
}

/// The size of the arena once the plan is applied, by a short search for addresses.
fn extent(graph: &Graph, plan: &SwapPlan, budget: Bytes, cx: &PassCx) -> Bytes {
    let mut rewritten = graph.clone();
    Rewriter::new(&mut rewritten).apply(plan);
    lmsc_passes::extent(&rewritten, budget, cx)
}

/// The plan with only its first `limit` swaps.
fn limited(mut plan: SwapPlan, limit: Option<usize>) -> SwapPlan {
    if let Some(limit) = limit.filter(|&limit| limit < plan.swaps.len()) {
        plan.swaps.truncate(limit);
        plan.releases.retain(|(swap, _)| *swap < limit);
        for swap in &mut plan.swaps {
            swap.encoding.iter_mut().for_each(|e| e.releases.retain(|swap| *swap < limit));
            for swap_in in &mut swap.ins {
                swap_in.releases.retain(|swap| *swap < limit);
                swap_in.decode_releases.retain(|swap| *swap < limit);
            }
        }
    }
    plan
}

/// The position of a node in the new order: a tick, the slot at that tick, and a running number.
type Key = (u32, Slot, usize);

/// The slots at one tick, in order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Slot {
    /// Decodes a copy that was swapped in, before the first node that reads it.
    Decode,
    /// A view of a copy that was swapped in, right before the node that reads it.
    View,
    /// The node that has this tick in the original order.
    Node,
    /// Swaps out a result of the node.
    Out,
    /// Encodes a storage after its last use for now, and swaps it out.
    Encode,
    /// A swap-in that the node triggers.
    In,
}

struct Rewriter<'a> {
    graph: &'a mut Graph,
    ticks: Vec<u32>,
    /// By node index.
    keys: Vec<Key>,
    nodes: Vec<NodeId>,
    /// For each node, the views that were placed right before it.
    views: HashMap<NodeId, Vec<NodeId>>,
    /// The number of nodes that were placed so far.
    placed: usize,
    /// For each view, the nodes and operand positions that read it.
    reads: HashMap<ValueId, Vec<(NodeId, usize)>>,
    /// Nodes for which other nodes wait by control edges; they are not moved.
    awaited: HashSet<NodeId>,
    outputs: HashSet<ValueId>,
}

impl<'a> Rewriter<'a> {
    fn new(graph: &'a mut Graph) -> Rewriter<'a> {
        let ticks = graph.ticks();
        let keys = ticks.iter().map(|&tick| (tick, Slot::Node, 0)).collect();
        let nodes = graph.order().to_vec();
        let mut reads: HashMap<ValueId, Vec<(NodeId, usize)>> = HashMap::new();
        let mut awaited = HashSet::new();
        for &id in graph.order() {
            let node = graph.node(id);
            // A view comes before its readers in the order, so its list exists when the first reader is found.
            let mut read =
                |value: &ValueId, index| _ = reads.get_mut(value).map(|list| list.push((id, index)));
            for (index, operand) in node.operands.iter().enumerate() {
                operand.iter().for_each(|value| read(value, index));
            }
            node.captures.iter().for_each(|value| read(value, usize::MAX));
            awaited.extend(node.after.iter().copied());
            if node.op.effects().view {
                reads.extend(node.defines().map(|view| (view, Vec::new())));
            }
        }
        let outputs = graph.outputs.iter().copied().collect();
        Rewriter { graph, ticks, keys, nodes, views: HashMap::new(), placed: 0, reads, awaited, outputs }
    }

    fn apply(mut self, plan: &SwapPlan) {
        let mut outs = Vec::with_capacity(plan.swaps.len());
        let mut hosts = Vec::with_capacity(plan.swaps.len());
        let mut encodings = Vec::new();
        for swap in &plan.swaps {
            let mut leaving = swap.root;
            let mut place =
                (self.graph.producer(swap.root).expect("only results of nodes are swapped"), Slot::Out);
            if let Some(encoding) = &swap.encoding {
                place = (encoding.after, Slot::Encode);
                let node;
                (node, leaving) = add_cast(self.graph, Coding::Encode, leaving, swap.root);
                self.place(node, place);
                encodings.push((node, &encoding.releases));
            }
            let (out, host) = add_copy(self.graph, CopyWay::Out, leaving, swap.root, None);
            self.place(out, place);
            outs.push(out);
            hosts.push(host);
        }
        for (swap, &host) in plan.swaps.iter().zip(&hosts) {
            let mut uses = HashSet::new();
            for swap_in in &swap.ins {
                let (node, mut copy) = add_copy(self.graph, CopyWay::In, host, swap.root, None);
                self.place(node, (swap_in.trigger, Slot::In));
                self.graph.add_after(node, swap_in.trigger);
                swap_in.releases.iter().for_each(|&out| self.graph.add_after(node, outs[out]));
                if swap.encoding.is_some() {
                    let node;
                    (node, copy) = add_cast(self.graph, Coding::Decode, copy, swap.root);
                    self.place(node, (swap_in.uses[0].0, Slot::Decode));
                    swap_in.decode_releases.iter().for_each(|&out| self.graph.add_after(node, outs[out]));
                }
                uses.extend(swap_in.uses.iter().copied());
                let views =
                    Views { rewriter: &mut self, root: swap.root, copy, uses: &uses, made: HashMap::new() };
                views.rewire(&swap_in.uses);
            }
        }
        for (node, releases) in encodings {
            releases.iter().for_each(|&out| self.graph.add_after(node, outs[out]));
        }
        for &(swap, node) in &plan.releases {
            // Views right before the node wait like the node itself, as they may read a copy that waits for the
            // same swap-out.
            for &waiting in self.views.get(&node).into_iter().flatten().chain([&node]) {
                self.graph.add_after(waiting, outs[swap]);
            }
        }
        let keys = self.keys;
        self.nodes.sort_by_key(|id| keys[id.as_u32() as usize]);
        self.graph.set_order(self.nodes);
    }

    /// Places a new node, or one that moves, after all nodes that were placed into the same slot of `at` before.
    fn place(&mut self, node: NodeId, (at, slot): (NodeId, Slot)) {
        let (index, tick) = (node.as_u32() as usize, self.ticks[at.as_u32() as usize]);
        if index >= self.keys.len() {
            self.keys.resize(index + 1, (u32::MAX, Slot::Node, 0));
            self.nodes.push(node);
        }
        if slot == Slot::View {
            self.views.entry(at).or_default().push(node);
        }
        self.placed += 1;
        self.keys[index] = (tick, slot, self.placed);
    }
}

/// The reads of one swapped-in copy, and the views through which they read it.
struct Views<'a, 'g> {
    rewriter: &'a mut Rewriter<'g>,
    root: ValueId,
    copy: ValueId,
    /// The uses that read this copy or an earlier one.
    uses: &'a HashSet<(NodeId, usize)>,
    /// By view of the root, the corresponding view of the copy.
    made: HashMap<ValueId, ValueId>,
}

impl Views<'_, '_> {
    /// Makes the uses, in execution order, read the copy.
    fn rewire(mut self, uses: &[(NodeId, usize)]) {
        for &(node, index) in uses {
            let operand = self.rewriter.graph.node(node).operands[index].expect("a use reads something");
            let value = self.of_copy(operand, node);
            if value != operand {
                self.rewriter.graph.set_operand(node, index, value);
            }
        }
    }

    /// The value that corresponds, in the copy, to `value`: the root or a view of it. `at` is the first use.
    fn of_copy(&mut self, value: ValueId, at: NodeId) -> ValueId {
        if value == self.root {
            return self.copy;
        }
        if let Some(&made) = self.made.get(&value) {
            return made;
        }
        let view = self.rewriter.graph.producer(value).expect("a view is the result of a node");
        let operand = self.rewriter.graph.node(view).operands[0].expect("a view has an operand");
        let made = if self.is_read_by_uses_only(value, 0) {
            // Every use reads this copy, or has a view of an earlier copy: the view itself moves and keeps its
            // name. In its old place it would keep the original on the device.
            let base = self.of_copy(operand, at);
            self.rewriter.graph.set_operand(view, 0, base);
            self.rewriter.place(view, (at, Slot::View));
            value
        } else {
            let base = self.of_copy(operand, at);
            let graph = &mut *self.rewriter.graph;
            let mut operands = graph.node(view).operands.clone();
            operands[0] = Some(base);
            let again = add_again(graph, view, operands, |result| result == value);
            let value = graph.node(again).defines().next().expect("one result was asked for");
            self.rewriter.place(again, (at, Slot::View));
            value
        };
        self.made.insert(value, made);
        made
    }

    /// Whether only the uses of this copy and of earlier ones read the view, directly or through other views.
    fn is_read_by_uses_only(&self, value: ValueId, depth: usize) -> bool {
        let rewriter = &self.rewriter;
        let view = rewriter.graph.producer(value).expect("a view is the result of a node");
        depth < tflms::MAX_VIEWS
            && !rewriter.outputs.contains(&value)
            && !rewriter.awaited.contains(&view)
            && rewriter.graph.node(view).results.iter().flatten().count() == 1
            && rewriter.reads.get(&value).is_some_and(|reads| {
                reads.iter().all(|&(node, index)| {
                    let passes_on = index == 0 && rewriter.graph.node(node).op.effects().view;
                    self.uses.contains(&(node, index))
                        || passes_on
                            && rewriter
                                .graph
                                .node(node)
                                .defines()
                                .next()
                                .is_some_and(|v| self.is_read_by_uses_only(v, depth + 1))
                })
            })
    }
}

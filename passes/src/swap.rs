use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};
use lmsc_ir::{Bytes, Graph, LMSC_DOMAIN, Node, NodeId, Op, Place, ValueId};
use lmsc_plan::tflms::{self, SwapPlan};

use crate::{KeptRecord, Outcome, Pass, PassCx, PassError, SwapRecord};

/// Swaps storages out after their producer and in before their late uses (TFLMS §4).
pub(crate) struct Swap;

impl Pass for Swap {
    fn name(&self) -> &'static str {
        "swap"
    }

    fn summary(&self) -> &'static str {
        "swap-outs and swap-ins with triggers and releases, as TFLMS decides"
    }

    fn run(&self, graph: &mut Graph, cx: &PassCx) -> Result<Outcome, PassError> {
        let analysis = tflms::Analysis::new(graph, &cx.tflms);
        let (plan, params) = match cx.budget {
            Some(budget) if !cx.tflms_fixed => {
                let tuned = tflms::tune(&analysis, &cx.tflms, budget);
                let tuned = tuned.map_err(|no| PassError::DoesNotFit(no.describe(graph)))?;
                (tuned.plan, tuned.params)
            }
            budget => (tflms::plan(&analysis, &cx.tflms, budget), cx.tflms.clone()),
        };
        let plan = limited(plan, cx.swap_limit);

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
            swap_ins: swap.ins.len(),
        }));
        if outcome.changed {
            outcome.remarks.push(format!(
                "{} lb={} ub={} threshold={} n_tensors={} fuse_swapins={} swap_branches={}",
                params.ctrld_strategy,
                params.lb,
                params.ub,
                params.threshold,
                plan.swaps.len(),
                params.fuse_swapins,
                params.swap_branches
            ));
            Rewriter::new(graph).apply(&plan);
        }
        Ok(outcome)
    }
}

/// The plan with its first swaps only.
fn limited(mut plan: SwapPlan, limit: Option<usize>) -> SwapPlan {
    if let Some(limit) = limit.filter(|&limit| limit < plan.swaps.len()) {
        plan.swaps.truncate(limit);
        plan.releases.retain(|(swap, _)| *swap < limit);
        for swap_in in plan.swaps.iter_mut().flat_map(|s| &mut s.ins) {
            swap_in.releases.retain(|swap| *swap < limit);
        }
    }
    plan
}

/// Where a node stands in the new order: the tick it had or belongs to, then what comes first at that tick.
type Key = (u32, Slot, usize);

/// What stands at one tick, in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Slot {
    /// A view of a copy that came back, right before the node that reads it.
    View,
    /// The node that was there.
    Node,
    /// The swap-out of what the node produced.
    Out,
    /// A swap-in that the node triggers.
    In,
}

struct Rewriter<'a> {
    graph: &'a mut Graph,
    ticks: Vec<u32>,
    /// By node index.
    keys: Vec<Key>,
    nodes: Vec<NodeId>,
    /// How many nodes were put somewhere.
    placed: usize,
    /// By view, the nodes and operand positions that read it.
    reads: HashMap<ValueId, Vec<(NodeId, usize)>>,
    /// Nodes that others wait for; they are not moved.
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
            // Nothing reads a view before it is made: it has its list by then.
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
        Rewriter { graph, ticks, keys, nodes, placed: 0, reads, awaited, outputs }
    }

    fn apply(mut self, plan: &SwapPlan) {
        let (out_op, in_op) = (Op::new(LMSC_DOMAIN, "SwapOut"), Op::new(LMSC_DOMAIN, "SwapIn"));
        let mut outs = Vec::with_capacity(plan.swaps.len());
        let mut hosts = Vec::with_capacity(plan.swaps.len());
        for swap in &plan.swaps {
            let (out, host) = self.copy(swap.root, &out_op, "out", "_host", swap.root);
            let producer = self.graph.producer(swap.root).expect("only results of nodes are swapped");
            self.place(out, self.ticks[producer.as_u32() as usize], Slot::Out);
            outs.push(out);
            hosts.push(host);
        }
        for (swap, &host) in plan.swaps.iter().zip(&hosts) {
            for swap_in in &swap.ins {
                let (node, copy) = self.copy(host, &in_op, "in", "_in", swap.root);
                self.place(node, self.ticks[swap_in.trigger.as_u32() as usize], Slot::In);
                self.graph.add_after(node, swap_in.trigger);
                swap_in.releases.iter().for_each(|&out| self.graph.add_after(node, outs[out]));
                let uses = swap_in.uses.iter().copied().collect();
                let views = Views { rewriter: &mut self, root: swap.root, copy, uses, made: HashMap::new() };
                views.rewire(&swap_in.uses);
            }
        }
        for &(swap, node) in &plan.releases {
            self.graph.add_after(node, outs[swap]);
        }
        let keys = self.keys;
        self.nodes.sort_by_key(|id| keys[id.as_u32() as usize]);
        self.graph.set_order(self.nodes);
    }

    /// Adds a copy of `operand` over the link, named after `root`.
    fn copy(
        &mut self,
        operand: ValueId,
        op: &Op,
        prefix: &str,
        suffix: &str,
        root: ValueId,
    ) -> (NodeId, ValueId) {
        let root = self.graph.value(root);
        let (name, ty) = (root.name.clone(), root.ty.clone());
        let place = if op.is_swap_out() { Place::Host } else { Place::Device };
        let mut node = Node::new(self.graph.fresh_node_name(&format!("{prefix}_{name}")), op.clone());
        node.operands.push(Some(operand));
        let result = self.graph.fresh_value_name(&format!("{name}{suffix}"));
        let node = self.graph.add_node(node, [Some((result, ty, place))]);
        (node, self.graph.node(node).results[0].expect("it was just given"))
    }

    /// Puts a new node, or one that moves, behind all that was put into the same slot before.
    fn place(&mut self, node: NodeId, tick: u32, slot: Slot) {
        let index = node.as_u32() as usize;
        if index >= self.keys.len() {
            self.keys.resize(index + 1, (u32::MAX, Slot::Node, 0));
            self.nodes.push(node);
        }
        self.placed += 1;
        self.keys[index] = (tick, slot, self.placed);
    }
}

/// The reads of one copy that came back, and the views through which they read it.
struct Views<'a, 'g> {
    rewriter: &'a mut Rewriter<'g>,
    root: ValueId,
    copy: ValueId,
    uses: HashSet<(NodeId, usize)>,
    /// By view of the root, the same view of the copy.
    made: HashMap<ValueId, ValueId>,
}

impl Views<'_, '_> {
    /// Makes the uses, in execution order, read the copy.
    fn rewire(mut self, uses: &[(NodeId, usize)]) {
        for &(node, index) in uses {
            let tick = self.rewriter.ticks[node.as_u32() as usize];
            let operand = self.rewriter.graph.node(node).operands[index].expect("a use reads something");
            let value = self.of_copy(operand, tick);
            if value != operand {
                self.rewriter.graph.set_operand(node, index, value);
            }
        }
    }

    /// What `value`, a view of the root or the root itself, is of the copy. `tick` is that of its first use.
    fn of_copy(&mut self, value: ValueId, tick: u32) -> ValueId {
        if value == self.root {
            return self.copy;
        }
        if let Some(&made) = self.made.get(&value) {
            return made;
        }
        let view = self.rewriter.graph.producer(value).expect("a view is the result of a node");
        let operand = self.rewriter.graph.node(view).operands[0].expect("a view has an operand");
        let made = if self.is_ours(value, 0) {
            // Every use reads the copy: the view itself moves, and keeps its name.
            let base = self.of_copy(operand, tick);
            self.rewriter.graph.set_operand(view, 0, base);
            self.rewriter.place(view, tick, Slot::View);
            value
        } else {
            let base = self.of_copy(operand, tick);
            let graph = &mut *self.rewriter.graph;
            let mut node = graph.node(view).clone();
            let original = graph.value(value).clone();
            node.name = graph.fresh_node_name(&format!("{}_again", node.name));
            node.operands[0] = Some(base);
            (node.recomputes, node.source) = (Some(view), None);
            let result = graph.fresh_value_name(&format!("{}_again", original.name));
            let again = graph.add_node(node, [Some((result, original.ty, original.place))]);
            let value = graph.node(again).results[0].expect("it was just given");
            self.rewriter.place(again, tick, Slot::View);
            value
        };
        self.made.insert(value, made);
        made
    }

    /// Whether nothing but the uses of this copy reads the view, directly or through other views.
    fn is_ours(&self, value: ValueId, depth: usize) -> bool {
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
                                .is_some_and(|v| self.is_ours(v, depth + 1))
                })
            })
    }
}

/// Bytes over the link, for reports.
impl SwapRecord {
    /// Bytes from the device to the host.
    pub fn bytes_out(&self) -> Bytes {
        self.bytes
    }

    /// Bytes from the host to the device.
    pub fn bytes_in(&self) -> Bytes {
        Bytes(self.bytes.0 * self.swap_ins as u64)
    }
}

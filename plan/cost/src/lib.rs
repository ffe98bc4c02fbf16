//! The cost of every node of a graph on a target: time, workspace, and the work behind them.
//!
//! A measured [`Profile`] has precedence; otherwise there is a model: `table.rs` has one row per operator, whose rule gives
//! the kernels that run (operations, bytes, form), and `kernel.rs` gives the time of a kernel.

#![forbid(unsafe_code)]

pub mod comm;
mod kernel;
mod product;
mod profile;
mod recurrent;
mod rules;
mod signature;
mod stream;
mod table;
pub mod target;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use lmsc_ir::{Bytes, ElementType, Graph, Node, NodeId, Op, Type, ops};

use crate::target::{Compute, Target};
pub use profile::{FORMAT, MeasuredCost, Profile, ProfileError};
pub use signature::signature;

/// The cost of running a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Duration in nanoseconds.
    pub nanos: u64,
    /// Bytes that it needs besides its values while it runs.
    pub workspace: u64,
}

/// The costs of a graph's nodes on one target.
///
/// Only kernels cost time: views, nodes that only look at a shape, nodes that follow from shapes and small constants alone,
/// nodes on the host and the copies of swaps take no time of the device's processor.
///
/// ```
/// use lmsc_ir::Graph;
/// use lmsc_cost::{Costs, target::Target};
/// let graph = Graph::parse("g (float[1024] x) => (float[1024] y) { [a] float[1024] y = Relu(x) }").unwrap();
/// let costs = Costs::of(&graph, Target::built_in("v100-pcie").unwrap(), None);
/// // 8 KiB at 0.8 · 900 GB/s are 12 ns; starting the kernel takes 5 µs.
/// assert_eq!(costs.nanos(graph.order()[0]), 5_012);
/// ```
#[derive(Clone, Debug)]
pub struct Costs {
    by_node: Vec<NodeCost>,
    guessed: BTreeMap<Op, usize>,
    coverage: Coverage,
}

/// The cost of one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct NodeCost {
    nanos: u64,
    workspace: Bytes,
    work: Work,
    /// Whether it comes from a profile.
    is_measured: bool,
}

/// The work of a node's kernels, by the model, whether or not their time was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Useful floating-point operations; a multiply-add is two.
    pub flops: u64,
    /// Bytes moved between the device's processor and its memory.
    pub moved: Bytes,
}

/// The measured part of a graph's cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Nodes that run kernels.
    pub nodes: usize,
    /// Those of them whose time was measured.
    pub measured_nodes: usize,
    /// The nanoseconds of all nodes.
    pub nanos: u64,
    /// The nanoseconds of the measured ones.
    pub measured_nanos: u64,
}

impl Costs {
    /// The costs of the graph's nodes: as measured if the profile contains the node, else by the model.
    ///
    /// An operator without a row in the table is guessed: its operands and results are moved once.
    pub fn of(graph: &Graph, target: &Target, profile: Option<&Profile>) -> Costs {
        let mut costs = Costs {
            by_node: vec![NodeCost::default(); graph.node_capacity()],
            guessed: BTreeMap::new(),
            coverage: Coverage::default(),
        };
        let idle = needs_no_device(graph);
        for &id in graph.order().iter().filter(|&&id| !idle[id.as_u32() as usize]) {
            let node = graph.node(id);
            let modelled = model(graph, node);
            if modelled.guessed {
                *costs.guessed.entry(node.op.clone()).or_default() += 1;
            }
            if modelled.cost.kernels.is_empty() {
                continue;
            }
            let measured = profile.and_then(|profile| profile.get(&signature(graph, node)));
            let cost = match measured {
                Some(measured) => NodeCost {
                    nanos: measured.nanos,
                    workspace: Bytes(measured.workspace),
                    work: modelled.work(),
                    is_measured: true,
                },
                None => modelled.node_cost(&target.compute, element(graph, node)),
            };
            costs.coverage.add(cost.nanos, measured.is_some());
            costs.by_node[id.as_u32() as usize] = cost;
        }
        costs
    }

    /// These costs with the given workspaces of nodes.
    pub fn with_workspaces(mut self, workspaces: BTreeMap<NodeId, Bytes>) -> Costs {
        for (node, bytes) in workspaces {
            self.by_node[node.as_u32() as usize].workspace = bytes;
        }
        self
    }

    /// These costs with other workspaces: a node whose time was measured needs its own workspace or that of `least`, whichever
    /// is larger; any other node needs that of `others`, or of `least` where it is not in `others`.
    pub fn with_least_workspaces(
        mut self,
        least: BTreeMap<NodeId, Bytes>,
        others: &BTreeMap<NodeId, Bytes>,
    ) -> Costs {
        for (node, bytes) in least {
            let cost = &mut self.by_node[node.as_u32() as usize];
            cost.workspace = if cost.is_measured {
                cost.workspace.max(bytes)
            } else {
                others.get(&node).copied().unwrap_or(bytes)
            };
        }
        self
    }

    /// Whether the node's cost was measured.
    ///
    /// # Panics
    /// If the node is younger than the costs.
    pub fn is_measured(&self, node: NodeId) -> bool {
        self.by_node[node.as_u32() as usize].is_measured
    }

    /// The time that the node keeps the device's processor busy, in nanoseconds; zero if it runs no kernel.
    ///
    /// # Panics
    /// If the node is younger than the costs.
    pub fn nanos(&self, node: NodeId) -> u64 {
        self.by_node[node.as_u32() as usize].nanos
    }

    /// The cost of running the node.
    ///
    /// # Panics
    /// If the node is younger than the costs.
    pub fn cost(&self, node: NodeId) -> Cost {
        Cost { nanos: self.nanos(node), workspace: self.workspace(node).0 }
    }

    /// The device memory that the node needs while it runs, beside its operands and results; zero where unknown.
    ///
    /// # Panics
    /// If the node is younger than the costs.
    pub fn workspace(&self, node: NodeId) -> Bytes {
        self.by_node[node.as_u32() as usize].workspace
    }

    /// The operations and the traffic of the node.
    ///
    /// # Panics
    /// If the node is younger than the costs.
    pub fn work(&self, node: NodeId) -> Work {
        self.by_node[node.as_u32() as usize].work
    }

    /// Total nanoseconds of all nodes: the duration of a step that never waits for a copy.
    pub fn total_nanos(&self) -> u64 {
        self.coverage.nanos
    }

    /// The operators that the model guessed, with the number of nodes of each.
    pub fn guessed(&self) -> &BTreeMap<Op, usize> {
        &self.guessed
    }

    /// The measured part of the cost.
    pub fn coverage(&self) -> Coverage {
        self.coverage
    }
}

impl Coverage {
    fn add(&mut self, nanos: u64, measured: bool) {
        self.nodes += 1;
        self.nanos = self.nanos.saturating_add(nanos);
        if measured {
            self.measured_nodes += 1;
            self.measured_nanos = self.measured_nanos.saturating_add(nanos);
        }
    }
}

/// The modelled time, in nanoseconds, of one kernel that reads or writes `bytes` bytes at consecutive addresses.
pub fn stream_nanos(compute: &Compute, bytes: Bytes) -> u64 {
    kernel::Kernel::stream(0, bytes.0).nanos(compute, ElementType::Float)
}

/// Whether the operator has a row in the table of costs.
pub fn is_known(op: &Op) -> bool {
    table::rule(op).is_some()
}

/// A node's kernels, and whether its operator is missing from the table.
struct Modelled {
    cost: rules::Cost,
    guessed: bool,
}

fn model(graph: &Graph, node: &Node) -> Modelled {
    let cx = rules::Cx { graph, node };
    match table::rule(&node.op).and_then(|rule| rule(&cx)) {
        Some(cost) => Modelled { cost, guessed: false },
        None => Modelled { cost: stream::moved(&cx).unwrap_or_default(), guessed: true },
    }
}

impl Modelled {
    fn work(&self) -> Work {
        let sum = |of: fn(&kernel::Kernel) -> u64| {
            let all = self.cost.kernels.iter().map(|kernel| of(kernel).saturating_mul(kernel.times));
            all.fold(0, u64::saturating_add)
        };
        Work { flops: sum(|kernel| kernel.flops), moved: Bytes(sum(|kernel| kernel.bytes)) }
    }

    fn node_cost(&self, compute: &Compute, element: ElementType) -> NodeCost {
        let nanos = self.cost.kernels.iter().map(|kernel| kernel.nanos(compute, element));
        NodeCost {
            nanos: nanos.fold(0, u64::saturating_add),
            workspace: Bytes(self.cost.workspace),
            work: self.work(),
            is_measured: false,
        }
    }
}

/// The precision of the node's arithmetic: that of its first float result, else of its first float operand.
fn element(graph: &Graph, node: &Node) -> ElementType {
    let first = |ty: &Type| match ty {
        Type::Tensor(tensor) => Some(tensor.element),
        Type::Sequence(list) => list.first().map(|tensor| tensor.element),
    };
    let elements = node.defines().chain(node.reads()).filter_map(|value| first(&graph.value(value).ty));
    elements.into_iter().find(|element| element.is_float()).unwrap_or(ElementType::Float)
}

/// A tensor of at most this number of elements can be computed before the step, or by the host beside it.
const SMALL: u64 = 1024;

/// For each node, whether it does not use the device's processor: because it runs on the host, is a copy, or because its results
/// are small and follow from shapes, initializers and constants, so that they are known before the step.
fn needs_no_device(graph: &Graph) -> Vec<bool> {
    let mut known = vec![false; graph.value_capacity()];
    for initializer in &graph.initializers {
        known[initializer.value.as_u32() as usize] = true;
    }
    // A variable has another value in each step.
    for variable in graph.variables() {
        known[variable.as_u32() as usize] = false;
    }
    let mut idle = vec![false; graph.node_capacity()];
    for &id in graph.order() {
        let node = graph.node(id);
        let small = node.defines().all(|value| rules::elements(&graph.value(value).ty) <= SMALL);
        let from_known = node.reads().all(|value| known[value.as_u32() as usize]);
        let follows = node.op.effects().shape_only || (from_known && ops::is_pure(node));
        if small && follows {
            node.defines().for_each(|value| known[value.as_u32() as usize] = true);
        }
        idle[id.as_u32() as usize] = node.op.is_swap()
            || node.op.is_join()
            || graph.runs_on_host(id)
            || (small && follows)
            || node.op.effects().view;
    }
    idle
}

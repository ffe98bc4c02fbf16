//! Reads the plan back from a rewritten graph, for planners that rewrite graphs themselves.

use cranelift_entity::PrimaryMap;
use foldhash::{HashMap, HashMapExt};
use lmsc_ir::{Graph, NodeId, Storages};
use lmsc_plan::bridge::is_view;
use lmsc_plan::cost::Cost;
use lmsc_plan::planners::Plan;
use lmsc_plan::problem::TensorId;
use lmsc_plan::schedule::{Edge, Instruction, Piece, PieceId, Schedule, Step};
use lmsc_plan::service::{Planned, Space};
use lmsc_plan::{Bridge, Execution};

use crate::PassCx;

/// The plan that the rewritten graph carries out under its edges: copies of whole tensors between the operators of
/// the bridge's graph. `rewritten` is a rewritten clone of that graph. Steps have the times of [`Execution`].
///
/// `None` if the graph has other computing nodes than those operators, such as encodings of tensors for the link.
pub fn observe(graph: &Graph, rewritten: &Graph, bridge: &Bridge, cx: &PassCx) -> Option<Planned> {
    let costs = cx.costs(graph);
    let ticks: HashMap<NodeId, u32> = bridge.nodes.iter().copied().zip(0..).collect();
    let cost = |node| if ticks.contains_key(&node) { costs.cost(node) } else { Cost::default() };
    let execution = Execution::of(rewritten, &bridge.problem.link, cost);
    let storages = Storages::of(rewritten);
    let mut problem = bridge.problem.clone();
    problem.ops.clear();
    let (mut pieces, mut op_origin): (PrimaryMap<PieceId, Piece>, Vec<u32>) = Default::default();
    let mut piece_of: HashMap<TensorId, PieceId> = HashMap::new();
    let mut steps: Vec<Step> = Vec::with_capacity(rewritten.order().len());
    let mut edges: Vec<Edge> = Vec::new();
    // For each node, the steps for which its successors wait: its own step, or, for a view that was made again, the steps
    // for which the view waits.
    let mut ended: HashMap<NodeId, Vec<usize>> = HashMap::new();
    for &id in rewritten.order() {
        let op = &rewritten.node(id).op;
        let waits: Vec<usize> = rewritten
            .predecessors(id)
            .flat_map(|before| ended.get(&before).cloned().unwrap_or_default())
            .collect();
        let instruction = if let Some(&tick) = ticks.get(&id) {
            problem.ops.push(bridge.problem.ops[tick as usize].clone());
            op_origin.push(tick);
            Instruction::Op(problem.ops.len() as u32 - 1)
        } else if op.is_swap_out() {
            let tensor = bridge.tensor(rewritten.node(id).reads().next()?)?;
            problem.tensors[tensor].swappable = true;
            let bytes = 0..problem.tensors[tensor].bytes;
            let piece = *piece_of.entry(tensor).or_insert_with(|| pieces.push(Piece { tensor, bytes }));
            Instruction::Out(piece)
        } else if op.is_swap_in() {
            let out = rewritten.producer(rewritten.node(id).reads().next()?)?;
            let tensor = bridge.tensor(rewritten.node(out).reads().next()?)?;
            Instruction::In(*piece_of.get(&tensor)?)
        } else if is_view(rewritten, &storages, id) {
            ended.insert(id, waits);
            continue;
        } else {
            return None;
        };
        let index = id.as_u32() as usize;
        edges.extend(waits.into_iter().map(|before| Edge { step: steps.len(), before }));
        ended.insert(id, vec![steps.len()]);
        steps.push(Step { instruction, start: execution.start[index], end: execution.end[index] });
    }
    edges.sort_unstable();
    edges.dedup();
    let tensor_origin = problem.tensors.keys().collect();
    let plan = Plan { problem, op_origin, tensor_origin, schedule: Schedule { pieces, steps } };
    let counted_nanos = execution.makespan;
    Some(Planned {
        plan,
        edges,
        spots: Vec::new(),
        space: Space::Counted,
        peak: execution.peak,
        counted_nanos,
    })
}

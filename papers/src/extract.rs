//! Extracts the chain of a problem, through its articulation points.

use std::ops::Range;

use cranelift_entity::SecondaryMap;
use lmsc_ir::Phase;
use lmsc_schedule::problem::{Problem, TensorId, Uses, Window};

use lmsc_planners::chain::Chain;

/// A chain and the tensors that it represents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Extracted {
    /// The chain.
    pub chain: Chain,
    /// By `i`, the tensors that `x_i` represents, by id.
    pub tensors: Vec<Vec<TensorId>>,
}

/// The chain of virtual stages that the problem is, if it has at least two.
///
/// A stage ends where at most one swappable tensor goes on to later forward operators, and the stage produced it. `x_{i+1}`
/// represents the swappable tensors that stage `i` produces and that the backward pass reads; `x_0` those given and read in
/// stage 0 alone. `B_i` begins with the first operator that reads a tensor of `x_i`. All other tensors, including variables
/// and small ones, count as workspace of the stages during which they are live, so a choice that fits the chain fits the
/// problem.
///
/// A connection makes its span one stage; if there is one from the first operators to the last, there is no chain.
///
/// The chain extracted from [`Chain::problem`] is the original chain, if all its activations have bytes.
///
/// # Source
/// OPT §6.1: "grouping each non-linear part of the graph in a virtual layer".
pub(crate) fn extract(problem: &Problem) -> Option<Extracted> {
    let uses = problem.uses();
    let turn = turn(problem)?;
    let forward = forward_stages(problem, &uses, turn);
    let n = forward.len();
    if n < 2 {
        return None;
    }
    let mut tensors: Vec<Vec<TensorId>> = vec![Vec::new(); n + 1];
    // For each tensor, the `i` of its `x_i`.
    let mut index: SecondaryMap<TensorId, Option<usize>> = SecondaryMap::with_capacity(problem.tensors.len());
    for (tensor, facts) in problem.tensors.iter().filter(|(_, facts)| facts.swappable) {
        let uses = uses.of(tensor);
        let (Some(&first), Some(&last)) = (uses.first(), uses.last()) else { continue };
        if first >= turn || last < turn {
            continue;
        }
        let i = match (facts.given, facts.kept) {
            (true, true) => None,
            (true, false) => {
                let last_forward = uses[uses.partition_point(|&t| t < turn) - 1];
                forward[0].contains(&last_forward).then_some(0)
            }
            (false, _) => Some(forward.partition_point(|stage| stage.end <= first) + 1),
        };
        index[tensor] = i;
        if let Some(i) = i {
            tensors[i].push(tensor);
        }
    }
    let backward = backward_stages(problem, &index, turn, n);
    let chain = costs(problem, &uses, &tensors, &index, &forward, &backward);
    Some(Extracted { chain, tensors })
}

/// The first tick after the forward pass, if there are ticks on both sides of it.
pub(crate) fn turn(problem: &Problem) -> Option<u32> {
    problem.ops.iter().position(|op| op.phase != Phase::Forward).filter(|&t| t > 0).map(|t| t as u32)
}

/// The window of the tensor between its last use before the turn and its first use after it.
pub(crate) fn window_at_the_turn(uses: &Uses, tensor: TensorId, turn: u32) -> Option<Window> {
    let uses = uses.of(tensor);
    let next = uses.partition_point(|&t| t < turn);
    let (from, until) = (uses.get(next.checked_sub(1)?)? + 1, *uses.get(next)?);
    (from < until).then_some(Window { tensor, from, until })
}

impl Extracted {
    /// The windows during which the tensors of these `x_i` can be swapped out: each from its last use before the turn to its
    /// first after it.
    pub(crate) fn windows(&self, problem: &Problem, offloaded: &[bool]) -> Vec<Window> {
        let uses = problem.uses();
        let turn = turn(problem).unwrap_or(0);
        let chosen = self.tensors.iter().zip(offloaded).filter(|(_, offloaded)| **offloaded);
        chosen.flat_map(|(tensors, _)| tensors).filter_map(|&t| window_at_the_turn(&uses, t, turn)).collect()
    }
}

/// The ticks of the forward stages.
fn forward_stages(problem: &Problem, uses: &Uses, turn: u32) -> Vec<Range<u32>> {
    // For each tick, the number of tensors that cross the border before it; the sum of their ids, which is the id of a single one.
    let mut count = vec![0i64; turn as usize + 1];
    let mut sum = vec![0i64; turn as usize + 1];
    for (tensor, _) in problem.tensors.iter().filter(|(_, facts)| facts.swappable && !facts.given) {
        let uses = uses.of(tensor);
        let forward = &uses[..uses.partition_point(|&t| t < turn)];
        if let (Some(&first), Some(&last)) = (forward.first(), forward.last()) {
            for (at, sign) in [(first, 1), (last, -1)] {
                count[at as usize + 1] += sign;
                sum[at as usize + 1] += sign * i64::from(tensor.as_u32());
            }
        }
    }
    let mut stages = Vec::new();
    let (mut begin, mut crossing, mut which) = (0, 0, 0);
    for tick in 1..turn {
        crossing += count[tick as usize];
        which += sum[tick as usize];
        let made_here = || uses.of(TensorId::from_u32(which as u32)).first().is_some_and(|&t| t >= begin);
        if crossing == 0 || (crossing == 1 && made_here()) {
            stages.push(begin..tick);
            begin = tick;
        }
    }
    stages.push(begin..turn);
    stages
}

/// For each stage, the ticks of its backward operators: from the first that reads tensors of its input, or later ones'.
fn backward_stages(
    problem: &Problem,
    index: &SecondaryMap<TensorId, Option<usize>>,
    turn: u32,
    n: usize,
) -> Vec<Range<u32>> {
    let mut stages = vec![0..0; n];
    let (mut stage, mut begin) = (n - 1, turn);
    for tick in turn..problem.ticks() {
        let reads = problem.ops[tick as usize].touches().filter_map(|t| index[t]);
        let lowest = reads.min().unwrap_or(n);
        if lowest < stage {
            stages[stage] = begin..tick;
            stages[lowest + 1..stage].iter_mut().for_each(|s| *s = tick..tick);
            (stage, begin) = (lowest, tick);
        }
    }
    stages[stage] = begin..problem.ticks();
    stages[..stage].iter_mut().for_each(|s| *s = problem.ticks()..problem.ticks());
    stages
}

/// The chain with the times and the memory of these ticks.
fn costs(
    problem: &Problem,
    uses: &Uses,
    tensors: &[Vec<TensorId>],
    index: &SecondaryMap<TensorId, Option<usize>>,
    forward: &[Range<u32>],
    backward: &[Range<u32>],
) -> Chain {
    let n = forward.len();
    let bytes = |tensors: &Vec<TensorId>| tensors.iter().map(|&t| problem.tensors[t].bytes).sum::<u64>();
    let x: Vec<u64> = tensors.iter().map(bytes).collect();
    let mut y = vec![0; n + 1];
    let made_by = |stage: &Range<u32>, until: &Range<u32>| -> u64 {
        let made = problem.ops[stage.start as usize..stage.end as usize].iter().flat_map(|op| &op.produces);
        let gradients = made.filter(|&&t| index[t].is_none() && !problem.tensors[t].kept);
        let handed_on = gradients.filter(|&&t| uses.of(t).last().is_some_and(|last| until.contains(last)));
        handed_on.map(|&t| problem.tensors[t].bytes).sum()
    };
    y[n] = made_by(&forward[n - 1], &backward[n - 1]);
    (1..n).for_each(|i| y[i] = made_by(&backward[i], &backward[i - 1]));
    let last = problem.ticks().saturating_sub(1);
    y[0] = made_by(&(last..problem.ticks()), &(last..problem.ticks()));
    let live = problem.live_bytes();
    let most = |ticks: &Range<u32>| live[ticks.start as usize..ticks.end as usize].iter().copied().max();
    let nanos = |ticks: &Range<u32>| -> u64 {
        problem.ops[ticks.start as usize..ticks.end as usize].iter().map(|op| op.nanos).sum()
    };
    let mut chain = Chain {
        forward_nanos: forward.iter().map(nanos).collect(),
        backward_nanos: backward.iter().map(nanos).collect(),
        activation_bytes: Vec::new(),
        gradient_bytes: Vec::new(),
        forward_workspace: Vec::new(),
        backward_workspace: Vec::new(),
        bytes_per_second: problem.link.out_bytes_per_second.min(problem.link.in_bytes_per_second),
    };
    let mut kept = x[0];
    for i in 0..n {
        kept += x[i + 1];
        let loss = if i + 1 == n { y[n] } else { 0 };
        let workspace = most(&forward[i]).map_or(0, |m| m.saturating_sub(kept + loss));
        chain.forward_workspace.push(workspace);
        let workspace = most(&backward[i]).map_or(0, |m| m.saturating_sub(kept + y[i] + y[i + 1]));
        chain.backward_workspace.push(workspace);
    }
    (chain.activation_bytes, chain.gradient_bytes) = (x, y);
    chain
}

#[cfg(test)]
mod tests {
    use lmsc_schedule::problem::{Operator, Tensor};

    use super::*;

    /// Every operator runs for 10 ns per operand. Tensors that no operator produces are given, those of fewer than 10 bytes
    /// are not swappable.
    fn problem(bytes: &[u64], forward: usize, ops: &[(&[u32], &[u32])]) -> Problem {
        let mut problem = Problem::default();
        for (tensor, &bytes) in bytes.iter().enumerate() {
            let given = !ops.iter().any(|(_, produces)| produces.contains(&(tensor as u32)));
            problem.tensors.push(Tensor { bytes, swappable: bytes >= 10, given, kept: false });
        }
        let ids = |ids: &[u32]| ids.iter().map(|&id| TensorId::from_u32(id)).collect::<Vec<_>>();
        problem.ops = ops
            .iter()
            .enumerate()
            .map(|(tick, (reads, produces))| Operator {
                kind: 0,
                phase: if tick < forward { Phase::Forward } else { Phase::Backward },
                nanos: 10 * reads.len() as u64,
                workspace: 0,
                reads: ids(reads),
                produces: ids(produces),
                changes: Vec::new(),
                recomputable: true,
                lane: 0,
            })
            .collect();
        problem.check().unwrap();
        problem
    }

    fn ids(found: &Extracted) -> Vec<Vec<u32>> {
        found.tensors.iter().map(|x| x.iter().map(|t| t.as_u32()).collect()).collect()
    }

    #[test]
    fn a_chain_is_the_chain_of_its_problem() {
        let chain = Chain {
            forward_nanos: vec![5, 6, 7],
            backward_nanos: vec![8, 9, 10],
            activation_bytes: vec![100, 200, 300, 50],
            gradient_bytes: vec![1, 20, 30, 40],
            forward_workspace: vec![0, 3, 0],
            backward_workspace: vec![4, 0, 5],
            bytes_per_second: 1 << 30,
        };
        let found = extract(&chain.problem()).unwrap();
        assert_eq!(found.chain, chain);
        assert_eq!(ids(&found), [[0], [1], [2], [3]]);
    }

    /// t0 is the input, t9 a variable, t1 → (t2 → t3) + t1 = t4 a block with a skip connection, t5 the loss's.
    fn with_a_skip() -> Problem {
        problem(
            &[100, 200, 30, 40, 210, 12, 70, 80, 90, 5],
            5,
            &[
                (&[0, 9], &[1]),
                (&[1], &[2]),
                (&[2], &[3]),
                (&[1, 3], &[4]),
                (&[4], &[5]),
                (&[4, 5], &[6]),
                (&[6, 3], &[7]),
                (&[7, 2, 1], &[8]),
                (&[8, 0, 9], &[]),
            ],
        )
    }

    #[test]
    fn a_stage_spans_a_skip_connection() {
        let found = extract(&with_a_skip()).unwrap();
        let chain = &found.chain;
        // F_1 keeps t2, t3 and its output t4.
        assert_eq!(ids(&found), [vec![0], vec![1], vec![2, 3, 4], vec![5]]);
        assert_eq!(chain.forward_nanos, [20, 10 + 10 + 20, 10]);
        // B_2 is all before the first use of t1, which is x_1; B_0 begins with the use of t0.
        assert_eq!(chain.backward_nanos, [30, 30, 20 + 20]);
        assert_eq!(chain.activation_bytes, [100, 200, 30 + 40 + 210, 12]);
        // t6 dies in the stage that produces it; t7 goes from B_2 to B_1, t8 from B_1 to B_0.
        assert_eq!(chain.gradient_bytes, [0, 90, 80, 0]);
        // The variable is always live. In the backward stages less is live than the chain counts.
        assert_eq!(chain.forward_workspace, [5, 5, 5]);
        assert_eq!(chain.backward_workspace, [0, 0, 0]);
    }

    #[test]
    fn a_plan_that_fits_the_chain_fits_the_problem() {
        let problem = with_a_skip();
        let found = extract(&problem).unwrap();
        let (chain, x) = (&found.chain, &found.chain.activation_bytes);
        let uses = problem.uses();
        for choice in 0..1u32 << x.len() {
            let offloaded: Vec<bool> = (0..x.len()).map(|i| choice >> i & 1 == 1).collect();
            let windows = found.windows(&problem, &offloaded);
            let away = |tick: u32| -> u64 {
                windows.iter().filter(|w| w.covers(tick)).map(|w| problem.tensors[w.tensor].bytes).sum()
            };
            let most = (0..problem.ticks()).map(|t| problem.live_bytes()[t as usize] - away(t)).max();
            let needed = (0..chain.stages()).map(|i| {
                let stay: u64 = (0..i).filter(|&j| !offloaded[j]).map(|j| x[j]).sum();
                stay + x[i] + x[i + 1] + chain.forward_extra(i).max(chain.backward_extra(i))
            });
            assert!(most <= needed.max(), "{offloaded:?}");
        }
        assert_eq!(
            window_at_the_turn(&uses, TensorId::from_u32(5), 5),
            None,
            "nothing runs between its uses"
        );
    }

    #[test]
    fn a_network_with_a_connection_over_all_stages_is_no_chain() {
        // t5 goes from the first to the last forward operator.
        let bytes = [100, 100, 100, 100, 100, 100];
        let forward: [(&[u32], &[u32]); 4] = [(&[0], &[1, 5]), (&[1], &[2]), (&[2], &[3]), (&[5, 3], &[4])];
        let backward: [(&[u32], &[u32]); 2] = [(&[4, 3], &[]), (&[5, 2, 1], &[])];
        assert_eq!(extract(&problem(&bytes, 4, &[&forward[..], &backward[..]].concat())), None);
        assert_eq!(extract(&Problem::default()), None);
    }
}

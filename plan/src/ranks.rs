//! The step of one of several ranks that share the parameters: each has a part of every variable.
//!
//! The problem of a step on one device becomes that of a rank. Parameters, which a phase before the update reads, are gathered
//! in buckets before their first use; gradients are reduced in buckets once they are complete, each rank keeping its part; updates
//! work on that part. Collectives run on the lane `comm`. Whether a bucket is gathered once more for the backward phase is the
//! planner's choice. Gathered parameters never leave for the host, where their parts are.

use std::collections::{BTreeMap, BTreeSet};

use cranelift_entity::SecondaryMap;
use lmsc_cost::comm::{COMM, Network, comm_lane};
use lmsc_ir::Phase;
use lmsc_schedule::problem::{COMPUTE, Operator, Problem, ProblemError, Tensor, TensorId};

/// A network and the number of ranks on it.
#[derive(Clone, Copy, Debug)]
pub struct Ranks<'a> {
    /// The network.
    pub network: &'a Network,
    /// The number of ranks, at least 1.
    pub count: u64,
}

/// Gradients of fewer bytes are updated everywhere: to reduce them is not worth a bucket.
const SMALLEST_GRADIENT: u64 = 1 << 10;

/// The problem of one of these ranks.
///
/// A bucket holds parameters in the order of their first uses, or gradients in the order in which they are complete; it ends once
/// α is at most a tenth of its time. The wait for a reduction stands where the next one starts, so that at most two buckets of
/// gradients are held; updates follow the waits for their gradients. Variables that a phase before the update changes, as running
/// statistics, stay whole on every rank.
///
/// # Errors
/// [`ProblemError`] if the parts together exceed the limits of problems.
pub fn sharded(problem: &Problem, ranks: Ranks<'_>) -> Result<Problem, ProblemError> {
    let sharded = Sharding::new(problem, ranks).run();
    sharded.check().map(|()| sharded)
}

struct Sharding<'a> {
    problem: &'a Problem,
    ranks: Ranks<'a>,
    bucket_bytes: u64,
    result: Problem,
    /// For each gathered parameter, the tensor that operators before the update read.
    gathered: SecondaryMap<TensorId, Option<TensorId>>,
    /// For each reduced gradient, the tensor that updates read, once the wait for it has run.
    reduced: BTreeMap<TensorId, TensorId>,
    /// By tick, the gathers that stand before the operator: the parameters of each bucket.
    gathers: BTreeMap<usize, Vec<Vec<TensorId>>>,
    /// By tick, the buckets of gradients that are complete after the operator.
    reductions: BTreeMap<usize, Vec<Vec<TensorId>>>,
    /// The reduction whose wait has not run: its gradients, and its result.
    open: Option<(Vec<TensorId>, TensorId)>,
    /// For each tick, whether its operator is an update that no operator before the update needs.
    is_update: Vec<bool>,
    /// Updates that have not run, by tick.
    updates: Vec<usize>,
    /// Whether the tensor has a value so far, as far as updates need one.
    is_there: SecondaryMap<TensorId, bool>,
    /// The last tick at which an operator that is no update reads the tensor.
    last_read: SecondaryMap<TensorId, usize>,
    kinds: [u32; 3],
}

impl<'a> Sharding<'a> {
    fn new(problem: &'a Problem, ranks: Ranks<'a>) -> Sharding<'a> {
        let mut result = Problem { ops: Vec::new(), ..problem.clone() };
        let next = result.kinds.len() as u32;
        result.kinds.extend(["all-gather", "reduce-scatter", "wait"].map(str::to_owned));
        if !result.has_lanes() {
            result.lanes.push(comm_lane());
        }
        let mut sharding = Sharding {
            problem,
            ranks,
            bucket_bytes: ranks.network.bucket_bytes(ranks.count),
            result,
            gathered: SecondaryMap::new(),
            reduced: BTreeMap::new(),
            gathers: BTreeMap::new(),
            reductions: BTreeMap::new(),
            open: None,
            is_update: updates(problem),
            updates: Vec::new(),
            is_there: SecondaryMap::new(),
            last_read: SecondaryMap::new(),
            kinds: [next, next + 1, next + 2],
        };
        sharding.divide();
        sharding
    }

    /// The bytes of a rank's part.
    fn part(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.ranks.count.max(1)).max(1)
    }

    /// Decides which tensors are divided among the ranks, and the buckets.
    fn divide(&mut self) {
        let problem = self.problem;
        let mut first_read: SecondaryMap<TensorId, Option<usize>> = SecondaryMap::new();
        let mut first_update: SecondaryMap<TensorId, usize> = SecondaryMap::with_default(usize::MAX);
        let mut stays: SecondaryMap<TensorId, bool> = SecondaryMap::new();
        let (mut of_updates, mut complete) =
            (BTreeSet::new(), SecondaryMap::<TensorId, Option<usize>>::new());
        for (tick, op) in problem.ops.iter().enumerate() {
            if self.is_update[tick] {
                op.reads
                    .iter()
                    .filter(|&&t| !problem.tensors[t].given)
                    .for_each(|&t| _ = of_updates.insert(t));
                op.changes.iter().for_each(|&t| first_update[t] = first_update[t].min(tick));
                continue;
            }
            for &tensor in &op.reads {
                first_read[tensor] = first_read[tensor].or(Some(tick));
                self.last_read[tensor] = tick;
                stays[tensor] |= first_update[tensor] < tick;
            }
            op.changes.iter().for_each(|&t| stays[t] = true);
            op.touches().for_each(|t| complete[t] = Some(tick));
        }
        for (tensor, facts) in &problem.tensors {
            let part = self.part(facts.bytes);
            if facts.is_variable() && !stays[tensor] {
                self.result.tensors[tensor].bytes = part;
            }
        }
        // Tensors that updates make for themselves are parts, too.
        for (_, op) in problem.ops.iter().enumerate().filter(|(tick, _)| self.is_update[*tick]) {
            for &tensor in &op.produces {
                self.result.tensors[tensor].bytes = self.part(problem.tensors[tensor].bytes);
            }
        }
        let parameters = problem.tensors.iter().filter(|(t, facts)| facts.is_variable() && !stays[*t]);
        let mut parameters: Vec<(usize, TensorId)> =
            parameters.filter_map(|(tensor, _)| Some((first_read[tensor]?, tensor))).collect();
        parameters.sort_unstable();
        self.gathers = self.buckets(&parameters, |tick, _| tick);
        let reduces = |t: &TensorId| {
            let facts = &problem.tensors[*t];
            !facts.kept && facts.bytes >= SMALLEST_GRADIENT
        };
        let gradients = of_updates.into_iter().filter(reduces);
        let mut gradients: Vec<(usize, TensorId)> =
            gradients.filter_map(|tensor| Some((complete[tensor]?, tensor))).collect();
        gradients.sort_unstable();
        self.reductions = self.buckets(&gradients, |_, last| last);
    }

    /// The buckets of these tensors, each at the place that `at` chooses of the ticks of its first and its last tensor.
    fn buckets(
        &self,
        tensors: &[(usize, TensorId)],
        at: impl Fn(usize, usize) -> usize,
    ) -> BTreeMap<usize, Vec<Vec<TensorId>>> {
        let mut buckets: BTreeMap<usize, Vec<Vec<TensorId>>> = BTreeMap::new();
        let (mut bucket, mut bytes) = (Vec::new(), 0u64);
        for (index, &(tick, tensor)) in tensors.iter().enumerate() {
            bucket.push((tick, tensor));
            bytes = bytes.saturating_add(self.problem.tensors[tensor].bytes);
            if bytes >= self.bucket_bytes || index + 1 == tensors.len() {
                let place = at(bucket[0].0, tick);
                buckets.entry(place).or_default().push(bucket.drain(..).map(|(_, tensor)| tensor).collect());
                bytes = 0;
            }
        }
        buckets
    }

    fn run(mut self) -> Problem {
        for (tick, op) in self.problem.ops.iter().enumerate() {
            for bucket in self.gathers.remove(&tick).unwrap_or_default() {
                self.gather(&bucket, op.phase);
            }
            if self.is_update[tick] {
                self.updates.push(tick);
            } else {
                let reads = self.renamed(&op.reads);
                op.produces.iter().for_each(|&t| self.is_there[t] = true);
                self.result.ops.push(Operator { reads, ..op.clone() });
            }
            // They stay in the map until all have begun, so that no update takes their gradients as they are.
            let complete = self.reductions.get(&tick).cloned().unwrap_or_default();
            for bucket in complete {
                self.wait();
                self.reduce(bucket);
            }
            if self.reductions.remove(&tick).is_some() || self.is_update[tick] {
                self.run_updates(tick);
            }
        }
        self.wait();
        self.run_updates(self.problem.ops.len());
        self.result
    }

    /// The tensors that an operator before the update reads.
    fn renamed(&self, reads: &[TensorId]) -> Vec<TensorId> {
        let mut seen = BTreeSet::new();
        reads.iter().map(|&t| self.gathered[t].unwrap_or(t)).filter(|&t| seen.insert(t)).collect()
    }

    fn tensor(&mut self, bytes: u64) -> TensorId {
        self.result.tensors.push(Tensor { bytes, swappable: false, given: false, kept: false })
    }

    fn bytes(&self, tensors: &[TensorId]) -> u64 {
        tensors.iter().map(|&t| self.problem.tensors[t].bytes).fold(0, u64::saturating_add)
    }

    fn gather(&mut self, bucket: &[TensorId], phase: Phase) {
        let bytes = self.bytes(bucket);
        let whole = self.tensor(bytes);
        bucket.iter().for_each(|&tensor| self.gathered[tensor] = Some(whole));
        self.result.ops.push(Operator {
            kind: self.kinds[0],
            phase,
            nanos: self.ranks.network.nanos(bytes, self.ranks.count),
            workspace: 0,
            reads: bucket.to_vec(),
            produces: vec![whole],
            changes: Vec::new(),
            recomputable: true,
            lane: COMM,
        });
    }

    fn reduce(&mut self, bucket: Vec<TensorId>) {
        let bytes = self.bytes(&bucket);
        let part = self.tensor(self.part(bytes));
        bucket.iter().for_each(|&tensor| self.result.tensors[tensor].swappable = false);
        self.result.ops.push(Operator {
            kind: self.kinds[1],
            phase: Phase::Backward,
            nanos: self.ranks.network.nanos(bytes, self.ranks.count),
            workspace: 0,
            reads: bucket.clone(),
            produces: vec![part],
            changes: Vec::new(),
            recomputable: false,
            lane: COMM,
        });
        self.open = Some((bucket, part));
    }

    /// Waits for the last reduction, which lets its operands go.
    fn wait(&mut self) {
        let Some((bucket, part)) = self.open.take() else { return };
        self.reduced.extend(bucket.iter().map(|&tensor| (tensor, part)));
        self.result.ops.push(Operator {
            kind: self.kinds[2],
            phase: Phase::Backward,
            nanos: 0,
            workspace: 0,
            reads: bucket.into_iter().chain([part]).collect(),
            produces: Vec::new(),
            changes: Vec::new(),
            recomputable: false,
            lane: COMPUTE,
        });
    }

    /// Runs the updates, in their order, that have all their operands after the operator of the tick.
    fn run_updates(&mut self, now: usize) {
        let ends = now == self.problem.ops.len();
        let mut left = Vec::new();
        // Tensors that updates which wait read or change.
        let mut awaited: BTreeSet<TensorId> = BTreeSet::new();
        for tick in std::mem::take(&mut self.updates) {
            let op = &self.problem.ops[tick];
            let has = |&t: &TensorId| {
                let is_gradient = self.reduced.contains_key(&t);
                self.problem.tensors[t].given || is_gradient || self.is_there[t] && !self.is_to_be_reduced(t)
            };
            let is_free = op.changes.iter().all(|&t| self.last_read[t] <= now);
            let is_next = !op.touches().any(|t| awaited.contains(&t));
            if ends || op.reads.iter().all(has) && is_free && is_next {
                self.update(op);
            } else {
                awaited.extend(op.touches());
                left.push(tick);
            }
        }
        self.updates = left;
    }

    /// Whether the gradient is in a bucket whose reduction has not begun, or has not been waited for.
    fn is_to_be_reduced(&self, tensor: TensorId) -> bool {
        let mut waiting = self.reductions.values().flatten().flatten();
        let in_flight = self.open.as_ref().is_some_and(|(bucket, _)| bucket.contains(&tensor));
        in_flight || waiting.any(|&other| other == tensor)
    }

    fn update(&mut self, op: &Operator) {
        let mut seen = BTreeSet::new();
        let reads = op.reads.iter().map(|t| self.reduced.get(t).copied().unwrap_or(*t));
        let reads: Vec<TensorId> = reads.filter(|&t| seen.insert(t)).collect();
        op.produces.iter().for_each(|&t| self.is_there[t] = true);
        let (nanos, workspace) =
            (op.nanos.div_ceil(self.ranks.count.max(1)), op.workspace.div_ceil(self.ranks.count.max(1)));
        let changes = op.changes.iter().map(|t| self.reduced.get(t).copied().unwrap_or(*t));
        let mut seen = BTreeSet::new();
        let changes = changes.filter(|&t| seen.insert(t)).collect();
        self.result.ops.push(Operator { reads, changes, nanos, workspace, ..op.clone() });
    }
}

/// For each tick, whether its operator belongs to the update, and no other operator needs a tensor that it makes or changes.
fn updates(problem: &Problem) -> Vec<bool> {
    let mut is_update = vec![false; problem.ops.len()];
    let mut needed: SecondaryMap<TensorId, bool> = SecondaryMap::new();
    for (op, is_update) in problem.ops.iter().zip(&mut is_update).rev() {
        *is_update = op.phase == Phase::Update && !op.produces.iter().chain(&op.changes).any(|&t| needed[t]);
        if !*is_update {
            op.reads.iter().for_each(|&t| needed[t] = true);
        }
    }
    is_update
}

#[cfg(test)]
mod tests {
    use lmsc_cost::comm::NETWORKS;
    use lmsc_testing::small::{op, problem, produced, variable};

    use super::*;

    /// Two layers of a weight each: forward, backward, and an update right after each gradient.
    fn step() -> Problem {
        let mib = 1 << 20;
        let [w, x, g] = [64 * mib, 16 * mib, 64 * mib];
        let input = Tensor { given: true, ..produced(x) };
        let tensors = [
            variable(w),
            variable(w),
            input,
            produced(x),
            produced(x),
            produced(g),
            produced(x),
            produced(g),
            variable(2 * w),
            variable(2 * w),
        ];
        let update = |reads: &[u32], changes: &[u32]| Operator {
            changes: changes.iter().map(|&t| TensorId::from_u32(t)).collect(),
            ..op(Phase::Update, 800, reads, &[])
        };
        let ops = [
            op(Phase::Forward, 1000, &[0, 2], &[3]),
            op(Phase::Forward, 1000, &[1, 3], &[4]),
            op(Phase::Backward, 2000, &[1, 3, 4], &[5, 6]),
            update(&[1, 5, 9], &[1, 9]),
            op(Phase::Backward, 2000, &[0, 2, 6], &[7]),
            update(&[0, 7, 8], &[0, 8]),
        ];
        problem(&tensors, &ops)
    }

    /// The kind of each operator with the tensors that it reads and produces.
    fn text(problem: &Problem) -> String {
        let of = |op: &Operator| {
            let numbers = |tensors: &[TensorId]| {
                tensors.iter().map(|t| t.as_u32().to_string()).collect::<Vec<_>>().join(",")
            };
            format!("{} {} -> {}", problem.kinds[op.kind as usize], numbers(&op.reads), numbers(&op.produces))
        };
        problem.ops.iter().map(of).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn parameters_are_gathered_and_gradients_reduced_on_a_lane_of_their_own() {
        let one = step();
        let rank = sharded(&one, Ranks { network: &NETWORKS[0], count: 64 }).unwrap();
        assert_eq!(
            text(&rank),
            "all-gather 0 -> 10; op 10,2 -> 3; all-gather 1 -> 11; op 11,3 -> 4; op 11,3,4 -> 5,6; \
             reduce-scatter 5 -> 12; op 10,2,6 -> 7; wait 5,12 -> ; reduce-scatter 7 -> 13; op 1,12,9 -> ; \
             wait 7,13 -> ; op 0,13,8 -> "
        );
        let bytes = |t: u32| rank.tensors[TensorId::from_u32(t)].bytes >> 20;
        assert_eq!([0, 8, 5, 10, 12].map(bytes), [1, 2, 64, 64, 1]);
        let update = rank.ops.last().unwrap();
        assert_eq!((update.nanos, update.lane), (13, COMPUTE));
        assert_eq!(rank.compute_nanos(), 6000 + 26);
        let gather = &rank.ops[0];
        assert_eq!((gather.nanos, gather.lane), (NETWORKS[0].nanos(64 << 20, 64), COMM));
    }

    #[test]
    fn updates_of_random_problems_keep_what_others_need() {
        use lmsc_testing::{Rng, Source, random};
        let mut collectives = 0;
        for seed in 0..500 {
            let mut u = Rng::new(seed);
            let ops = 1 + u.below(30);
            let mut one = random::problem(&mut u, ops);
            // Updates anywhere in the backward phase, and large gradients.
            one.tensors.values_mut().for_each(|tensor| tensor.bytes = (tensor.bytes << 12).min(1 << 40));
            one.ops.iter_mut().filter(|op| op.phase == Phase::Backward).for_each(|op| {
                if u.chance(40) {
                    op.phase = Phase::Update;
                }
            });
            assert_eq!(one.check(), Ok(()));
            let ranks = Ranks { network: &NETWORKS[seed as usize % 2], count: 2 + u.below(70) as u64 };
            let rank = sharded(&one, ranks).unwrap_or_else(|flaw| panic!("seed {seed}: {flaw}"));
            let own = rank.ops.iter().filter(|op| (op.kind as usize) < one.kinds.len()).count();
            assert_eq!(own, one.ops.len(), "seed {seed}");
            collectives += rank.ops.iter().filter(|op| op.lane == COMM).count();
        }
        assert!(collectives > 200, "{collectives}");
    }

    #[test]
    fn small_tensors_share_a_bucket() {
        let rank = sharded(&step(), Ranks { network: &NETWORKS[0], count: 1024 }).unwrap();
        let gathers = rank.ops.iter().filter(|op| op.lane == COMM && op.recomputable).count();
        let reductions = rank.ops.iter().filter(|op| op.is_reduction()).count();
        // At 1,024 ranks a bucket ends at 45 MB: each weight of 64 MiB has its own.
        assert_eq!((gathers, reductions), (2, 2));
        let mut small = step();
        small.tensors.values_mut().for_each(|tensor| tensor.bytes >>= 2);
        let rank = sharded(&small, Ranks { network: &NETWORKS[0], count: 1024 }).unwrap();
        assert_eq!(
            text(&rank),
            "all-gather 0,1 -> 10; op 10,2 -> 3; op 10,3 -> 4; op 10,3,4 -> 5,6; op 10,2,6 -> 7; \
             reduce-scatter 5,7 -> 11; wait 5,7,11 -> ; op 1,11,9 -> ; op 0,11,8 -> "
        );
    }
}

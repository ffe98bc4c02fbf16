//! Exact swapping of whole tensors: every choice of windows, every order of the copies.
//!
//! For each set of windows that fits at every moment, operators and copies are appended to an order one by one. A state is
//! the set of activities that have run; different orders reach it with different times, of which only those are kept that no
//! other dominates in every respect that later activities can see. Under all rules of the simulator an earlier time can only
//! help, so no optimum is lost. A state is pruned if the remaining activities cannot end before the best plan found.

use std::collections::BTreeMap;

use cranelift_entity::{EntityRef, SecondaryMap};
use lmsc_schedule::problem::{Link, Problem, Window};
use lmsc_schedule::{
    Absences, Act, ActId, Acts, BlockId, Direction, DoesNotFit, Granularity, Instruction, Piece, Plan,
    Request, Simulator,
};

use lmsc_planners::ours::swap_only;

/// Maximum number of windows of a problem; the number of sets is two to this power.
pub const MOST_WINDOWS: usize = 12;

/// The fastest plan that only swaps whole tensors.
///
/// # Errors
/// As for [`swap_only::plan`].
///
/// # Panics
/// On a problem with more than [`MOST_WINDOWS`] windows.
pub fn plan(request: &Request) -> Result<Plan, DoesNotFit> {
    let Request { problem, budget, .. } = *request;
    let windows = problem.windows(&problem.uses());
    assert!(windows.len() <= MOST_WINDOWS, "too many windows to try every set of them");
    let whole = Request { granularity: Granularity::Whole, effort: 0, ..*request };
    let mut best = swap_only::plan(&whole)?;
    let live: Vec<i128> = problem.live_by_moment(&problem.uses()).into_iter().map(i128::from).collect();
    for set in 0..1u32 << windows.len() {
        let chosen: Vec<Window> =
            (0..).zip(&windows).filter(|(i, _)| set >> i & 1 == 1).map(|(_, w)| *w).collect();
        let mut live = live.clone();
        for window in &chosen {
            for moment in window.moments(problem.ticks()).into_iter().flatten() {
                live[moment as usize] -= i128::from(problem.tensors[window.tensor].bytes);
            }
        }
        if live.iter().all(|&live| live <= i128::from(budget)) {
            let absences = absences(problem, &chosen);
            let search = Search::new(problem, &chosen, &absences, &live, budget);
            if let Some(order) = search.best_below(best.schedule.makespan()) {
                let times = Simulator::default().run(&search.acts, &order, budget, Direction::Forward);
                let schedule = times.map(|times| search.acts.schedule(&absences, &order, &times));
                best = Plan::without_recomputation(problem, schedule.unwrap_or(best.schedule));
            }
        }
    }
    Ok(best)
}

/// The absences of whole tensors during these windows, which are sorted by tensor and tick.
fn absences(problem: &Problem, windows: &[Window]) -> Absences {
    let mut absences = Absences::default();
    for of_one in windows.chunk_by(|a, b| a.tensor == b.tensor) {
        let tensor = of_one[0].tensor;
        let piece = absences.pieces.push(Piece { tensor, bytes: 0..problem.tensors[tensor].bytes });
        absences.windows[piece] = of_one.to_vec();
        absences.windows[piece].sort_by_key(|window| window.until);
    }
    absences
}

/// The search for the best order of one choice of windows.
struct Search {
    acts: Acts,
    budget: u64,
    /// The copies; each is a bit of a state's set.
    copies: Vec<ActId>,
    /// For each block, the activities that need it.
    users: SecondaryMap<BlockId, Vec<ActId>>,
    /// For each tick, facts about its operator that hold in every order.
    ticks: Vec<Tick>,
    link: Link,
}

/// Facts about an operator that hold in every order.
struct Tick {
    nanos: u64,
    /// Lower bound on the time from the end of the operator to the end of the step.
    after: u64,
    /// The swapped-out bytes that would fit nonetheless while it runs.
    fits: u64,
    /// The copies out of tensors that are swapped out while it runs: the bit and the bytes of each.
    outs: Vec<(usize, u64)>,
}

/// The activities that have run: the number of operators, and the set of copies.
type State = (u32, u32);

/// A partial order that reaches a state.
#[derive(Clone)]
struct Way {
    /// Index of the partial order that it extends, and the activity that it appends.
    from: usize,
    act: ActId,
    end: SecondaryMap<ActId, u64>,
    engines: [u64; 3],
    last_allocation: u64,
    /// For each block, the number of its activities that have run, the time of its allocation, and their largest end.
    blocks: SecondaryMap<BlockId, (u32, u64, u64)>,
}

impl Search {
    fn new(problem: &Problem, windows: &[Window], absences: &Absences, live: &[i128], budget: u64) -> Search {
        let acts = Acts::of(problem, absences);
        let is_copy =
            |act: &ActId| matches!(acts.what[*act], Act::Do(Instruction::Out(_) | Instruction::In(_)));
        let copies: Vec<ActId> = acts.what.keys().filter(is_copy).collect();
        let mut users: SecondaryMap<BlockId, Vec<ActId>> = SecondaryMap::new();
        for act in acts.what.keys() {
            acts.blocks.of(act).iter().for_each(|&block| users[block].push(act));
        }
        let after = after(problem, windows, live, budget);
        let mut ticks: Vec<Tick> = Vec::with_capacity(problem.ops.len());
        for ((op, &after), &live) in problem.ops.iter().zip(&after).zip(&live[1..]) {
            let fits = u64::try_from(i128::from(budget) - live).unwrap_or(u64::MAX);
            ticks.push(Tick { nanos: op.nanos, after, fits, outs: Vec::new() });
        }
        // In the default order, a copy out precedes the first operator of its window.
        let mut next = 0;
        for &act in &acts.order {
            match acts.what[act] {
                Act::Do(Instruction::Op(tick)) => next = tick + 1,
                Act::Do(Instruction::Out(piece)) => {
                    let bit = copies.iter().position(|&copy| copy == act).unwrap_or(0);
                    let window = absences.windows[piece].iter().find(|window| window.from == next);
                    for tick in window.into_iter().flat_map(|w| w.from..w.ranges(problem.ticks())[0].end) {
                        ticks[tick as usize].outs.push((bit, absences.pieces[piece].len()));
                    }
                }
                _ => {}
            }
        }
        Search { acts, budget, copies, users, ticks, link: problem.link }
    }

    /// The order with the smallest makespan, if that is less than `makespan`.
    fn best_below(&self, mut makespan: u64) -> Option<Vec<ActId>> {
        let start = Way {
            from: 0,
            act: self.acts.what.keys().next()?,
            end: SecondaryMap::new(),
            engines: [0; 3],
            last_allocation: 0,
            blocks: SecondaryMap::new(),
        };
        let mut ways = vec![self.then(&start, 0, start.act)?];
        let mut best = None;
        // For each state, for each partial order, the values that later activities can see. Every activity leads to the next layer.
        let mut layer: BTreeMap<State, Vec<(Vec<u64>, usize)>> =
            BTreeMap::from([((0, 0), vec![(Vec::new(), 0)])]);
        while !layer.is_empty() {
            let mut next: BTreeMap<State, Vec<(Vec<u64>, usize)>> = BTreeMap::new();
            for ((ops, copied), from) in layer.iter().flat_map(|(s, ways)| ways.iter().map(|w| (*s, w.1))) {
                for (state, act) in self.choices((ops, copied), ways[from].act) {
                    let Some(way) = self.then(&ways[from], from, act) else { continue };
                    if self.at_least(state, &way) >= makespan {
                        continue;
                    }
                    let seen = self.seen(state, &way);
                    let others = next.entry(state).or_default();
                    let beats = |a: &[u64], b: &[u64]| a.iter().zip(b).all(|(a, b)| a <= b);
                    if others.iter().any(|(other, _)| beats(other, &seen)) {
                        continue;
                    }
                    others.retain(|(other, _)| !beats(&seen, other));
                    others.push((seen, ways.len()));
                    if (state.0 as usize, state.1.count_ones() as usize)
                        == (self.ticks.len(), self.copies.len())
                    {
                        makespan = way.engines.into_iter().max()?;
                        best = Some(ways.len());
                    }
                    ways.push(way);
                }
            }
            layer = next;
        }
        let mut order = vec![self.acts.what.keys().next_back()?];
        let mut at = best?;
        while at > 0 {
            order.push(ways[at].act);
            at = ways[at].from;
        }
        order.push(ways[0].act);
        order.reverse();
        Some(order)
    }

    /// Whether the activity has run in the state.
    fn done(&self, (ops, copied): State, act: ActId) -> bool {
        match self.acts.what[act] {
            Act::Do(Instruction::Op(tick)) => tick < ops,
            Act::Start => true,
            _ => self.copies.iter().position(|&copy| copy == act).is_some_and(|bit| copied >> bit & 1 == 1),
        }
    }

    /// The activities that can run next, and the states that they lead to.
    ///
    /// A copy out allocates no memory: it directly follows an activity that it waits for or an earlier one on its engine.
    fn choices(&self, (ops, copied): State, last: ActId) -> Vec<(State, ActId)> {
        let ready = |act: ActId| {
            let before = self.acts.before.of(act);
            let is_out = matches!(self.acts.what[act], Act::Do(Instruction::Out(_)));
            let late = is_out
                && !before.contains(&last)
                && self.acts.what[last] != Act::Start
                && self.acts.engine[last.index()] != self.acts.engine[act.index()];
            !late && before.iter().all(|&before| self.done((ops, copied), before))
        };
        let op = (ops < self.ticks.len() as u32).then(|| ActId::new(ops as usize + 1));
        let op = op.filter(|&op| ready(op)).map(|op| ((ops + 1, copied), op));
        let copies = (0..).zip(&self.copies).filter(|(bit, copy)| copied >> bit & 1 == 0 && ready(**copy));
        op.into_iter().chain(copies.map(|(bit, &copy)| ((ops, copied | 1 << bit), copy))).collect()
    }

    /// The partial order extended by one activity, with the rules of the simulator; none if its memory never becomes free.
    fn then(&self, way: &Way, from: usize, act: ActId) -> Option<Way> {
        let mut way = Way { from, act, ..way.clone() };
        let acts = &self.acts;
        let engine = acts.engine[act.index()] as usize;
        let mut at = way.engines[engine];
        for &before in acts.before.of(act) {
            at = at.max(way.end[before]);
        }
        let mut need = 0;
        for &block in acts.blocks.of(act) {
            match way.blocks[block] {
                (0, ..) => need += acts.block_bytes[block],
                (_, allocated, _) => at = at.max(allocated),
            }
        }
        if need > 0 {
            at = at.max(way.last_allocation);
            let (mut used, mut frees) = (0, Vec::new());
            for (block, &bytes) in &acts.block_bytes {
                match way.blocks[block] {
                    (0, ..) => {}
                    (ran, _, end) if ran == acts.block_acts[block] => {
                        used += bytes;
                        frees.push((end, bytes));
                    }
                    _ => used += bytes,
                }
            }
            frees.sort_unstable();
            for (end, bytes) in frees {
                if end > at && used + need <= self.budget {
                    break;
                }
                at = at.max(end);
                used -= bytes;
            }
            if used + need > self.budget {
                return None;
            }
            way.last_allocation = at;
        }
        let end = at + acts.nanos[act.index()];
        way.engines[engine] = end;
        way.end[act] = end;
        for &block in acts.blocks.of(act) {
            let (ran, allocated, last) = &mut way.blocks[block];
            if *ran == 0 {
                *allocated = at;
            }
            (*ran, *last) = (*ran + 1, (*last).max(end));
        }
        Some(way)
    }

    /// All values of the partial order that later activities can see, in a fixed order for each state.
    ///
    /// A time before which those activities cannot start anyway is rounded up to that limit.
    fn seen(&self, state: State, way: &Way) -> Vec<u64> {
        let free = |act: ActId| way.engines[self.acts.engine[act.index()] as usize];
        let to_come = |acts: &[ActId]| -> Vec<ActId> {
            acts.iter().copied().filter(|&act| !self.done(state, act)).collect()
        };
        let mut seen = way.engines.to_vec();
        seen.push(way.last_allocation);
        for act in self.acts.what.keys().filter(|&act| self.done(state, act)) {
            let waiting = to_come(self.acts.after.of(act));
            seen.extend(waiting.into_iter().map(free).min().map(|free| free.max(way.end[act])));
        }
        for (block, &(ran, _, end)) in way.blocks.iter().filter(|(_, (ran, ..))| *ran > 0) {
            if ran == self.acts.block_acts[block] {
                seen.push(end.max(way.last_allocation));
            } else {
                let ends = to_come(&self.users[block]).into_iter();
                let ends = ends.map(|act| free(act) + self.acts.nanos[act.index()]);
                seen.push(ends.max().map_or(end, |last| last.max(end)));
            }
        }
        seen
    }

    /// Lower bound on the makespan of every completion of this partial order.
    fn at_least(&self, (ops, copied): State, way: &Way) -> u64 {
        let left = (0..).zip(&self.copies).filter(|(bit, _)| copied >> bit & 1 == 0).map(|(_, &copy)| copy);
        let mut engines = way.engines;
        left.for_each(|copy| {
            engines[self.acts.engine[copy.index()] as usize] += self.acts.nanos[copy.index()]
        });
        let last = (ops as usize).checked_sub(1).map_or(0, |last| self.ticks[last].after);
        let mut least = engines[1].max(engines[2]).max(engines[0] + last);
        // An operator starts only after the tensors that must be swapped out by then have been copied out.
        let mut starts = way.engines[0];
        for tick in &self.ticks[ops as usize..] {
            let stays = tick.outs.iter().filter(|(bit, _)| copied >> bit & 1 == 0).map(|&(_, bytes)| bytes);
            let moves = moves(stays, tick.fits);
            if moves > 0 {
                starts = starts.max(way.engines[1] + self.link.out_nanos(moves));
            }
            starts += tick.nanos;
            least = least.max(starts + tick.after);
        }
        least
    }
}

/// For each tick, a lower bound on the time from the end of its operator to the end of the step.
///
/// The remaining operators take their time. And of the bytes swapped out in this choice, all that do not fit must be swapped
/// in, the last of them before the latest next use, after which the operators from that use on run.
fn after(problem: &Problem, windows: &[Window], live: &[i128], budget: u64) -> Vec<u64> {
    let ticks = problem.ops.len();
    let mut run_from = vec![0; ticks + 1];
    for tick in (0..ticks).rev() {
        run_from[tick] = run_from[tick + 1] + problem.ops[tick].nanos;
    }
    let mut after = vec![0; ticks];
    for tick in (0..ticks).rev() {
        let next = if tick + 1 < ticks { problem.ops[tick + 1].nanos + after[tick + 1] } else { 0 };
        let comes =
            |window: &&Window| window.covers(tick as u32) && !(window.wraps() && tick as u32 >= window.from);
        let back = windows.iter().filter(comes);
        let fits = u64::try_from(i128::from(budget) - live[tick + 1]).unwrap_or(u64::MAX);
        let moves = moves(back.clone().map(|window| problem.tensors[window.tensor].bytes), fits);
        let back = match back.map(|window| window.until).max() {
            Some(latest) if moves > 0 => problem.link.in_nanos(moves) + run_from[latest as usize],
            _ => 0,
        };
        after[tick] = next.max(back);
    }
    after
}

/// Lower bound on the bytes of tensors of these sizes that cannot be resident if `fits` bytes fit.
///
/// A tensor larger than that cannot be resident at all.
fn moves(sizes: impl Iterator<Item = u64>, fits: u64) -> u64 {
    let (all, alone) = sizes
        .fold((0u64, 0), |(all, alone), size| (all + size, if size > fits { alone + size } else { alone }));
    all.saturating_sub(fits).max(alone)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use lmsc_schedule::check;
    use lmsc_schedule::problem::Duplex;
    use serde_json::Value;

    use super::*;
    use lmsc_planners::instance::Instance;

    #[test]
    fn the_known_optimum_of_the_tiny_instances_is_found() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/instances");
        let read = |name: &str| std::fs::read_to_string(format!("{folder}/{name}")).unwrap();
        let results: Value = serde_json::from_str(&read("results.json")).unwrap();
        let mut instances = BTreeSet::new();
        // A third of the rows, from all instances: each has equally many budgets for both kinds of link.
        for row in results["rows"].as_array().unwrap().iter().step_by(3) {
            let name = row["instance"].as_str().unwrap();
            if !name.starts_with("tiny") || row["optimal_whole"] != true {
                continue;
            }
            let mut problem = Instance::parse(&read(name)).unwrap().problem;
            problem.link.duplex = if row["duplex"] == "half" { Duplex::Half } else { Duplex::Full };
            let budget = row["M"].as_u64().unwrap();
            let plan = plan(&Request::new(&problem, budget)).unwrap();
            check(&plan.problem, &plan.schedule, budget).unwrap();
            let (found, known) =
                (plan.schedule.makespan() as f64 / 1e6, row["best_whole_ms"].as_f64().unwrap());
            assert!((found - known).abs() < 5e-6, "{found} ms: {row}");
            instances.insert(name);
        }
        assert_eq!(instances.len(), 24);
    }
}

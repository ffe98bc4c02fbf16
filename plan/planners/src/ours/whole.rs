//! Local search for plans that swap whole tensors only.
//!
//! A choice is a set of windows that makes every moment fit. Simulated annealing starts from constructed choices. A move
//! removes one or two windows and adds others until everything fits again, or adds one or two and may remove those no longer
//! needed, or moves a copy in the order. The search counts evaluations, never time, and stops at the lower bound on all plans
//! that only swap.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use cranelift_entity::{EntityRef, SecondaryMap};
use lmsc_bound as bound;
use lmsc_ir::rng::{Rng, Source};
use lmsc_schedule::problem::{Problem, Window};
use lmsc_schedule::segment_tree::SegmentTree;
use lmsc_schedule::threads::each;
use lmsc_schedule::tuned::Tunable;
use lmsc_schedule::{
    Absences, Act, ActId, Acts, Instruction, JUSTIFICATION_ROUNDS, Piece, Request, Schedule, Simulator,
    Times, Watch, justify, justify_in_order,
};

use crate::ours::annealing::{TEMPERATURES, cooled, uphill};
use crate::ours::mechanisms::WHOLE_WALKS;

/// Evaluations times operators at an effort of 100.
const EVALUATIONS: Tunable<usize> = Tunable::new(3_000_000);

/// Maximum number of evaluations at an effort of 100.
const MOST_EVALUATIONS: Tunable<usize> = Tunable::new(16_000);

/// The schedule found by the search within the request's budget, at least as good as `eager`, whose absences must make everything
/// of `problem` fit.
pub(super) fn schedule(problem: &Problem, request: &Request<'_>, eager: Schedule) -> Schedule {
    let Request { budget, effort, watch, .. } = *request;
    let evaluations =
        (EVALUATIONS.get() / problem.ops.len().max(1)).min(MOST_EVALUATIONS.get()) * effort as usize / 100;
    // Swaps alone leave less to decide, so that the highest temperature would be wasted.
    let [_, temperatures @ ..] = TEMPERATURES.get();
    let share = evaluations / temperatures.len();
    if share == 0 || !WHOLE_WALKS.is_on() || request.is_ended() {
        return eager;
    }
    let enough = bound::swap(problem, budget).nanos;
    if eager.makespan() <= enough {
        return eager;
    }
    let search = Search { watch, ..Search::new(problem, budget, enough) };
    let mut starts = search.starts();
    starts.truncate(temperatures.len());
    let walks = each(starts.into_iter().zip(temperatures), |(start, heat)| search.walk(start, share, heat));
    let found = walks.into_iter().min_by_key(|state| state.times.makespan);
    match found.filter(|state| state.times.makespan <= eager.makespan()) {
        Some(State { absences, acts, order, times, .. }) => {
            let justified = justify(&mut Simulator::default(), &acts, &order, budget, JUSTIFICATION_ROUNDS);
            let (order, times) = justified.unwrap_or((order, times));
            acts.schedule(&absences, &order, &times)
        }
        None => eager,
    }
}

/// A choice and the best order known for it.
#[derive(Clone)]
struct State {
    chosen: Vec<bool>,
    absences: Absences,
    acts: Acts,
    order: Vec<ActId>,
    times: Times,
}

struct Search<'a> {
    problem: &'a Problem,
    budget: u64,
    /// Lower bound on the makespan.
    enough: u64,
    watch: Option<&'a Watch>,
    windows: Vec<Window>,
    /// For each moment, the bytes over the budget if nothing is swapped out.
    excess: SegmentTree,
    /// Indices of windows in several orders: windows are taken in an order, and removed in its reverse.
    ranks: Vec<Vec<u32>>,
}

impl<'a> Search<'a> {
    fn new(problem: &'a Problem, budget: u64, enough: u64) -> Search<'a> {
        let uses = problem.uses();
        let windows = problem.windows(&uses);
        let live = problem.live_by_moment(&uses);
        let excess = SegmentTree::new(live.iter().map(|&bytes| bytes as i64 - budget as i64));
        let bytes = |w: &Window| problem.tensors[w.tensor].bytes;
        let length =
            |w: &Window| w.moments(problem.ticks()).map(|range| range.len() as u64).iter().sum::<u64>();
        let early = |w: &Window| (if w.wraps() { 0 } else { w.from }, Reverse(w.until));
        let is_variable = |w: &Window| problem.tensors[w.tensor].is_variable();
        let orders = if windows.iter().any(is_variable) { 4 } else { 3 };
        let mut ranks = vec![(0..windows.len() as u32).collect::<Vec<u32>>(); orders];
        ranks[0].sort_by_key(|&i| early(&windows[i as usize]));
        ranks[1].sort_by_key(|&i| (Reverse(bytes(&windows[i as usize])), early(&windows[i as usize])));
        ranks[2].sort_by_key(|&i| {
            let window = &windows[i as usize];
            (Reverse(u128::from(bytes(window)) * u128::from(length(window))), early(window))
        });
        if let Some(variables_last) = ranks.get_mut(3) {
            variables_last.sort_by_key(|&i| {
                let window = &windows[i as usize];
                (is_variable(window), early(window))
            });
        }
        Search { problem, budget, enough, watch: None, windows, excess, ranks }
    }

    /// The choices from taking windows in one order and removing them in another, for all pairs of orders, the best first.
    fn starts(&self) -> Vec<State> {
        let mut chosen = BTreeSet::new();
        for take in &self.ranks {
            for give in &self.ranks {
                let mut choice =
                    Choice { chosen: vec![false; self.windows.len()], excess: self.excess.clone() };
                for &window in take {
                    if self.over(&choice.excess, window) > 0 {
                        self.turn(&mut choice, window);
                    }
                }
                self.give_back(&mut choice, give.iter().rev().copied());
                chosen.insert(choice.chosen);
            }
        }
        let mut simulator = Simulator::default();
        let mut states: Vec<State> =
            chosen.into_iter().filter_map(|chosen| self.evaluate(&mut simulator, chosen)).collect();
        states.sort_by(|a, b| (a.times.makespan, &a.chosen).cmp(&(b.times.makespan, &b.chosen)));
        states
    }

    /// The largest excess over the budget at the moments of the window.
    fn over(&self, excess: &SegmentTree, window: u32) -> i64 {
        let [one, other] = self.windows[window as usize].moments(self.problem.ticks());
        excess.max(one).max(excess.max(other))
    }

    fn bytes(&self, window: u32) -> i64 {
        self.problem.tensors[self.windows[window as usize].tensor].bytes as i64
    }

    /// Takes the window, or removes it if it is taken.
    fn turn(&self, choice: &mut Choice, window: u32) {
        let chosen = &mut choice.chosen[window as usize];
        *chosen = !*chosen;
        let bytes = if *chosen { -self.bytes(window) } else { self.bytes(window) };
        let moments = self.windows[window as usize].moments(self.problem.ticks());
        moments.into_iter().for_each(|range| choice.excess.add(range, bytes));
    }

    /// Removes, in this order, windows without which everything still fits.
    fn give_back(&self, choice: &mut Choice, windows: impl Iterator<Item = u32>) {
        for window in windows {
            if choice.chosen[window as usize] && self.over(&choice.excess, window) + self.bytes(window) <= 0 {
                self.turn(choice, window);
            }
        }
    }

    /// Takes windows until everything fits: mostly the first in a random order, sometimes the one whose size fits best.
    fn fill(&self, choice: &mut Choice, but: &[u32], rng: &mut Rng) -> bool {
        let rank = &self.ranks[rng.below(self.ranks.len())];
        let closest = rng.chance(40);
        while choice.excess.max_of_all() > 0 {
            let useful: Vec<(i64, u32)> = rank
                .iter()
                .filter(|&&w| !choice.chosen[w as usize] && !but.contains(&w))
                .map(|&w| (self.over(&choice.excess, w), w))
                .filter(|&(over, _)| over > 0)
                .collect();
            let fit = |&(over, w): &(i64, u32)| {
                let spare = self.bytes(w) - over;
                if spare >= 0 { (false, spare) } else { (true, -spare) }
            };
            let window = match useful.is_empty() {
                true => return false,
                false if closest => useful.iter().copied().min_by_key(fit).map(|(_, w)| w),
                // The first useful one; each further one is skipped to with a chance of about a third.
                false => {
                    let skipped = (rng.word().trailing_zeros() / 2) as usize;
                    Some(useful[skipped.min(useful.len() - 1)].1)
                }
            };
            window.into_iter().for_each(|window| self.turn(choice, window));
        }
        true
    }

    /// A neighbour of this choice.
    fn near(&self, chosen: &[bool], rng: &mut Rng) -> Option<Vec<bool>> {
        let mut choice = Choice { chosen: chosen.to_vec(), excess: self.excess.clone() };
        let (taken, free): (Vec<u32>, Vec<u32>) =
            (0..chosen.len() as u32).partition(|&window| chosen[window as usize]);
        for &window in &taken {
            let moments = self.windows[window as usize].moments(self.problem.ticks());
            moments.into_iter().for_each(|range| choice.excess.add(range, -self.bytes(window)));
        }
        let (remove, from) = if free.is_empty() || rng.chance(60) { (true, taken) } else { (false, free) };
        if from.is_empty() {
            return None;
        }
        let mut changed: Vec<u32> = (0..1 + rng.below(2)).map(|_| from[rng.below(from.len())]).collect();
        changed.sort_unstable();
        changed.dedup();
        changed.iter().for_each(|&window| self.turn(&mut choice, window));
        if remove && !self.fill(&mut choice, &changed, rng) {
            return None;
        }
        // More windows than necessary may be swapped out: later swap-ins then find memory sooner.
        if rng.chance(60) {
            let give = &self.ranks[rng.below(self.ranks.len())];
            let others = give.iter().rev().copied().filter(|window| !changed.contains(window));
            self.give_back(&mut choice, others);
        }
        if remove && rng.chance(60) {
            self.give_back(&mut choice, changed.iter().copied());
        }
        Some(choice.chosen)
    }

    fn evaluate(&self, simulator: &mut Simulator, chosen: Vec<bool>) -> Option<State> {
        let absences = self.absences(&chosen);
        let acts = Acts::of(self.problem, &absences);
        let (order, times) =
            justify_in_order(simulator, &acts, &acts.order, self.budget, JUSTIFICATION_ROUNDS).ok()?;
        Some(State { chosen, absences, acts, order, times })
    }

    fn absences(&self, chosen: &[bool]) -> Absences {
        // Windows are sorted by tensor, and those of one tensor by tick except one that wraps.
        let mut taken: Vec<Window> = self
            .windows
            .iter()
            .zip(chosen)
            .filter(|(_, chosen)| **chosen)
            .map(|(window, _)| *window)
            .collect();
        taken.sort_by_key(|window| (window.tensor, window.until));
        let mut absences = Absences { windows: SecondaryMap::new(), ..Absences::default() };
        for same in taken.chunk_by(|one, other| one.tensor == other.tensor) {
            let bytes = 0..self.problem.tensors[same[0].tensor].bytes;
            let piece = absences.pieces.push(Piece { tensor: same[0].tensor, bytes });
            absences.windows[piece] = same.to_vec();
        }
        absences
    }

    /// The best state of a simulated annealing walk.
    fn walk(&self, start: State, evaluations: usize, heat: u64) -> State {
        let mut rng = Rng::new(heat);
        let mut simulator = Simulator::default();
        // Makespans of choices evaluated so far, in their initial order.
        let mut known: BTreeMap<Vec<bool>, u64> = BTreeMap::new();
        let mut here = start.clone();
        let mut best = start;
        let hottest = best.times.makespan / heat;
        for step in 0..evaluations {
            if best.times.makespan <= self.enough || self.watch.is_some_and(Watch::is_ended) {
                break;
            }
            let limit = here.times.makespan + uphill(cooled(hottest, step, evaluations), &mut rng);
            if rng.chance(30) {
                let Some(order) = moved(&here, &mut rng) else { continue };
                let Ok((order, times)) =
                    justify_in_order(&mut simulator, &here.acts, &order, self.budget, JUSTIFICATION_ROUNDS)
                else {
                    continue;
                };
                if times.makespan <= limit {
                    (here.order, here.times) = (order, times);
                }
            } else {
                let Some(chosen) = self.near(&here.chosen, &mut rng) else { continue };
                if chosen == here.chosen || known.get(&chosen).is_some_and(|&makespan| makespan > limit) {
                    continue;
                }
                let Some(next) = self.evaluate(&mut simulator, chosen) else { continue };
                known.insert(next.chosen.clone(), next.times.makespan);
                if next.times.makespan <= limit {
                    here = next;
                }
            }
            if here.times.makespan < best.times.makespan {
                best.clone_from(&here);
            }
        }
        best
    }
}

/// A set of windows, and by moment the bytes over the budget with it.
struct Choice {
    chosen: Vec<bool>,
    excess: SegmentTree,
}

/// The order with one copy moved, between the activities that it waits for and those that wait for it.
fn moved(state: &State, rng: &mut Rng) -> Option<Vec<ActId>> {
    let State { acts, order, .. } = state;
    let is_copy = |act: ActId| matches!(acts.what[act], Act::Do(Instruction::Out(_) | Instruction::In(_)));
    let copies: Vec<usize> = (0..order.len()).filter(|&at| is_copy(order[at])).collect();
    if copies.is_empty() {
        return None;
    }
    let at = copies[rng.below(copies.len())];
    let act = order[at];
    let mut place = vec![0; order.len()];
    order.iter().enumerate().for_each(|(at, act)| place[act.index()] = at);
    let first = acts.before.of(act).iter().map(|before| place[before.index()] + 1).max().unwrap_or(1);
    let last = acts.after.of(act).iter().map(|after| place[after.index()]).min().unwrap_or(order.len() - 1);
    if first >= last {
        return None;
    }
    let to = first + rng.below(last - first);
    let mut order = order.clone();
    if to <= at {
        order[to..=at].rotate_right(1);
    } else {
        order[at..=to].rotate_left(1);
    }
    (to != at).then_some(order)
}

#[cfg(test)]
mod tests {
    use lmsc_schedule::{Granularity, Request, check};
    use lmsc_testing::{exact, random};

    use super::*;
    use crate::ours::swap_only;

    #[test]
    fn small_problems_are_mostly_solved() {
        let (mut solved, mut better, mut cases) = (0, 0, 0);
        for seed in 0..1500 {
            let mut u = Rng::new(seed);
            let ops = 1 + u.below(10);
            let problem = random::problem(&mut u, ops);
            if !(2..=6).contains(&problem.windows(&problem.uses()).len()) {
                continue;
            }
            let (floor, peak) =
                (problem.floor().1, *problem.live_by_moment(&problem.uses()).iter().max().unwrap());
            let budget = floor + (peak - floor) * u.below(4) as u64 / 4;
            let request = Request { granularity: Granularity::Whole, ..Request::new(&problem, budget) };
            let found = |effort: u32| {
                let plan = swap_only::plan(&Request { effort, ..request }).unwrap();
                check(&problem, &plan.schedule, budget).unwrap();
                plan.schedule.makespan()
            };
            let (eager, searched) = (found(0), found(5));
            let best = exact::plan(&request).unwrap().schedule.makespan();
            assert!(best <= searched && searched <= eager, "seed {seed}: {best} {searched} {eager}");
            cases += 1;
            solved += usize::from(best == searched);
            better += usize::from(searched < eager);
        }
        assert!(
            cases > 300 && better > 20 && solved * 100 > cases * 98,
            "{solved} of {cases}, {better} better"
        );
    }
}

//! The dynamic program.

use std::collections::BTreeMap;

use super::slots::Slots;
use lmsc_planners::chain::Chain;

/// States kept of a layer: those with the least idle time.
const WIDEST: usize = 150_000;

/// Choices that are returned, at most.
const CHOICES: usize = 64;

/// A partial choice among `x_0 … x_{i-1}`, with all times in slots that the link transfers.
#[derive(Clone, Copy)]
struct State {
    /// The idle time so far: in the forward pass before `F_i`, in the backward pass after `B_i`.
    idle: i64,
    /// `Δ_F`: the slots yet to be copied out when `F_{i-1}` ends; if none, minus the time since then.
    out: i64,
    /// `Δ_B`: the slots to be copied in before `B_{i-1}` starts; if none, minus the time until a copy in is needed.
    back: i64,
    /// The resident slots of `x_0 … x_{i-1}`, and `x_i`: `M_F - Δ_F⁺`.
    kept: i64,
    /// Bytes that are swapped.
    bytes: u64,
    /// Twice the index of the previous state, plus one if `x_{i-1}` is swapped.
    from: u32,
}

/// Choices with the least idle time if copies can be interrupted, the best first; of equal ones, those that copy less, and
/// then those of which more is swapped early.
///
/// A state is dropped if another with the same resident slots is at least as good in every respect. `left` counts down the
/// states; at zero there are no more choices.
///
/// # Source
/// OPT §5.2 and Algorithm 1, with corrections:
/// - The definitions of `M_B` (§5.2.1) omit that only bytes yet to be copied count, `Δ⁺`.
/// - The feasibility tests of Algorithm 1 print `Δ` where §5.2.1 has `Δ⁺`, which is too strict where `Δ < 0`.
/// - Equation (6) prints `ex^F` where the operator is `B_i`.
/// - In §5.2.2, the bounds on `ε_G` are lower bounds, not "upper"; the denominator 2 in the first is `β`; `R_j^B`
///   prints `|y_{j-1}|` where `B_j` reads `|y_{j+1}|` (§3.1); `R_j^F` forgets that `M_B` contains `y_{L+1}`.
/// - Equations (9) and (10) must consider `j = L` also where `Av` is 0 and `U_L < Av` does not hold.
/// - The program has many optima, between which the text does not choose. Those that copy less have shorter
///   schedules when copies cannot be interrupted.
pub(super) fn best(slots: &Slots, chain: &Chain, left: &mut u64) -> Vec<Vec<bool>> {
    let n = chain.stages();
    let bounds = Bounds::new(slots);
    let mut layer = vec![State::start(slots)];
    let mut froms: Vec<Vec<u32>> = Vec::with_capacity(n);
    for i in 0..n {
        let mut next = Vec::with_capacity(2 * layer.len());
        for (index, state) in layer.iter().enumerate() {
            let Some(waits) = slots.waits(i, state) else { continue };
            let from = 2 * index as u32;
            next.push(State { from, ..slots.keep(i, state, waits) });
            if i + 1 < n {
                let bytes = state.bytes + chain.activation_bytes[i];
                next.push(State { bytes, from: from + 1, ..slots.offload(i, state, waits) });
            }
        }
        next.retain(|state| bounds.admits(i + 1, state));
        layer = pareto(next);
        let widest = WIDEST.min(usize::try_from(*left).unwrap_or(WIDEST));
        if layer.len() > widest {
            layer.sort_by_key(|s| (s.idle, s.bytes, s.out, s.back));
            layer.truncate(widest);
        }
        *left -= layer.len() as u64;
        froms.push(layer.iter().map(|state| state.from).collect());
    }
    let mut last: Vec<usize> = (0..layer.len()).collect();
    last.sort_by_cached_key(|&s| (layer[s].idle + slots.turn(&layer[s]), layer[s].bytes));
    last.truncate(CHOICES);
    let choices = last.into_iter().map(|last| {
        let mut offloaded = vec![false; n + 1];
        let mut at = last;
        for i in (0..n).rev() {
            let from = froms[i][at];
            offloaded[i] = from % 2 == 1;
            at = (from / 2) as usize;
        }
        offloaded
    });
    choices.collect()
}

impl State {
    /// Before `F_0`.
    fn start(slots: &Slots) -> State {
        State { idle: 0, out: 0, back: 0, kept: slots.x[0], bytes: 0, from: 0 }
    }
}

impl Slots {
    /// `ε_F` and `ε_B`: the waits of `F_i` and of the operators after `B_i`, if they can ever run.
    fn waits(&self, i: usize, state: &State) -> Option<(i64, i64)> {
        let lacks = |extra: i64| state.kept + self.x[i + 1] + extra - self.budget;
        let (forward, backward) = (lacks(self.forward_extra[i]), lacks(self.backward_extra[i]));
        let fits = forward <= 0 && backward <= 0;
        fits.then(|| ((forward + state.out.max(0)).max(0), (backward + state.back.max(0)).max(0)))
    }

    /// After stage `i`, if `x_i` stays resident.
    fn keep(&self, i: usize, state: &State, (forward, backward): (i64, i64)) -> State {
        State {
            idle: state.idle + forward + backward,
            out: state.out - forward - self.forward[i],
            back: state.back - backward - self.backward[i],
            kept: state.kept + self.x[i + 1],
            ..*state
        }
    }

    /// After stage `i`, if `x_i` is swapped.
    fn offload(&self, i: usize, state: &State, (forward, backward): (i64, i64)) -> State {
        State {
            idle: state.idle + forward + backward,
            out: state.out.max(0) + self.x[i] - forward - self.forward[i],
            back: self.x[i] + (state.back - backward - self.backward[i]).max(0),
            kept: state.kept - self.x[i] + self.x[i + 1],
            ..*state
        }
    }

    /// The idle time of a choice, if it fits.
    fn idle(&self, mut leaves: impl FnMut(usize) -> bool) -> Option<i64> {
        let mut state = State::start(self);
        for i in 0..self.forward.len() {
            let waits = self.waits(i, &state)?;
            state = if leaves(i) { self.offload(i, &state, waits) } else { self.keep(i, &state, waits) };
        }
        Some(state.idle + self.turn(&state))
    }

    /// `ε_G`: the wait of the first backward operator after the last forward one.
    fn turn(&self, state: &State) -> i64 {
        match (state.out > 0, state.back > 0) {
            (false, false) => 0,
            (true, true) => state.out + state.back,
            (true, false) => {
                let memory = state.kept + state.out - self.budget;
                self.one_way(state.out, -state.back, &self.backward, |j| memory + self.backward_extra[j])
            }
            (false, true) => {
                let memory = state.kept + state.back - self.budget;
                self.one_way(state.back, -state.out, &self.forward, |j| memory + self.forward_extra[j])
            }
        }
    }

    /// The wait if only one direction is busy at the turn, with `left` to copy and `free` time on the other side, whose
    /// operators take `nanos`. `excess` is the excess of operator `j` over the budget before any of that is copied, with all
    /// activations resident.
    fn one_way(&self, left: i64, free: i64, nanos: &[i64], excess: impl Fn(usize) -> i64) -> i64 {
        let n = nanos.len();
        let mut wait = (left - free).max(0);
        let (mut gone, mut time) = (0, 0);
        for j in (0..n).rev() {
            if j + 1 < n && time >= free {
                break;
            }
            wait = wait.max(excess(j) - gone - time);
            gone += self.x[j + 1];
            time += nanos[j];
        }
        wait
    }
}

/// Bounds that exclude states that cannot lead to the best choice.
struct Bounds {
    budget: i64,
    /// By `i`, `|x_i|`.
    x: Vec<i64>,
    /// By `i`, the largest need of an operator of stage `i` or later if all activations from `x_i` on are swapped.
    least_needed: Vec<i64>,
    /// The same if none of them is swapped.
    most_needed: Vec<i64>,
    /// By `i`, the total time of the operators of stage `i` and later.
    nanos: Vec<i64>,
    /// The idle time of a choice that fits.
    idle: i64,
}

impl Bounds {
    fn new(slots: &Slots) -> Bounds {
        let n = slots.x.len() - 1;
        let mut bounds = Bounds {
            budget: slots.budget,
            x: slots.x.clone(),
            least_needed: vec![0; n + 1],
            most_needed: vec![0; n + 1],
            nanos: vec![0; n + 1],
            idle: i64::MAX,
        };
        for i in (0..n).rev() {
            let extra = slots.forward_extra[i].max(slots.backward_extra[i]);
            bounds.least_needed[i] = bounds.least_needed[i + 1].max(slots.x[i] + slots.x[i + 1] + extra);
            let later = slots.x[i] + bounds.most_needed[i + 1];
            bounds.most_needed[i] = later.max(slots.x[i] + slots.x[i + 1] + extra);
            bounds.nanos[i] = bounds.nanos[i + 1] + slots.forward[i] + slots.backward[i];
        }
        let mut excess = bounds.most_needed[0] - slots.budget;
        let greedy = slots.idle(|i| {
            let leaves = excess > 0 && i + 1 < n;
            excess -= slots.x[i];
            leaves
        });
        bounds.idle = greedy.unwrap_or(i64::MAX);
        bounds
    }

    /// Whether the state, before stage `i`, can lead to a choice that fits and is as good as any known.
    ///
    /// Between `F_{i-1}` and `B_{i-1}`, everything yet to be copied, and everything that must still be offloaded, crosses the
    /// link in both directions.
    fn admits(&self, i: usize, state: &State) -> bool {
        let stays = state.kept - self.x[i];
        let must = (stays + self.most_needed[i] - self.budget).max(0);
        let copies = match must {
            0 => state.out + state.back,
            _ => state.out.max(0) + state.back.max(0) + 2 * must,
        };
        stays + self.least_needed[i] <= self.budget
            && state.idle + (copies - self.nanos[i]).max(0) <= self.idle
    }
}

/// The states that no other state with the same resident slots dominates.
fn pareto(mut states: Vec<State>) -> Vec<State> {
    states.sort_unstable_by_key(|s| (s.kept, s.idle, s.out, s.back, s.bytes, s.from));
    let mut best = Vec::with_capacity(states.len());
    for same in states.chunk_by(|one, other| one.kept == other.kept) {
        // Ascending in `out`, descending in `back`: the frontier of the states seen, all of which have no more idle time.
        let mut seen: BTreeMap<i64, i64> = BTreeMap::new();
        for state in same {
            if seen.range(..=state.out).next_back().is_some_and(|(_, &back)| back <= state.back) {
                continue;
            }
            let worse = seen.range(state.out..).take_while(|(_, back)| **back >= state.back);
            let worse: Vec<i64> = worse.map(|(&out, _)| out).collect();
            for out in worse {
                seen.remove(&out);
            }
            seen.insert(state.out, state.back);
            best.push(*state);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use lmsc_schedule::problem::Problem;
    use lmsc_schedule::{Absences, Acts, Piece, Simulator, no_wait};
    use lmsc_testing::{Rng, Source};

    use super::*;

    /// A chain of `stages` stages with random numbers.
    fn chain(stages: usize, seed: u64) -> Chain {
        let mut u = Rng::new(seed);
        let mut several = |count: usize, least: u64, most: usize| -> Vec<u64> {
            (0..count).map(|_| least + u.below(most) as u64).collect()
        };
        Chain {
            forward_nanos: several(stages, 0, 300_000),
            backward_nanos: several(stages, 0, 600_000),
            activation_bytes: several(stages + 1, 100_000, 900_000),
            gradient_bytes: several(stages + 1, 0, 300_000),
            forward_workspace: several(stages, 0, 200_000),
            backward_workspace: several(stages, 0, 200_000),
            bytes_per_second: 1_500_000_000,
        }
    }

    /// The makespan if these tensors are swapped whole, by copies that can be interrupted 300 times, and that free and take
    /// memory piece by piece.
    fn interruptible(problem: &Problem, leaves: u32, budget: u64) -> Option<u64> {
        let mut absences = Absences::default();
        for (index, window) in problem.windows(&problem.uses()).into_iter().enumerate() {
            let bytes = problem.tensors[window.tensor].bytes;
            for part in (0..300).filter(|_| leaves >> index & 1 == 1) {
                let bytes = bytes * part / 300..bytes * (part + 1) / 300;
                let piece = absences.pieces.push(Piece { tensor: window.tensor, bytes });
                absences.windows[piece].push(window);
            }
        }
        let acts = Acts::of(problem, &absences);
        let (_, times) = no_wait(&mut Simulator::default(), problem, &absences, &acts, budget).ok()?;
        Some(times.makespan)
    }

    // The program allows x_i to be swapped in while F_i still reads it, which no schedule can; so it may promise a little too
    // much: 0.14 % at most in 300 such cases, of which 199 have idle time.
    #[test]
    fn the_choice_is_the_best_of_all_if_copies_can_be_interrupted() {
        let mut idle_cases = 0;
        for seed in 0..16 {
            let stages = 5 + seed as usize % 3;
            let chain = chain(stages, seed);
            let problem = chain.problem();
            let least = problem.needed_bytes().into_iter().max().unwrap();
            let budget = least + (chain.peak() - least) * (seed % 4 + 1) / 6;
            let slots = Slots::new(&chain, budget, 4000);
            let best = best(&slots, &chain, &mut 1_000_000).swap_remove(0);
            let choice: u32 = (0..stages).map(|i| u32::from(best[i]) << i).sum();
            // x_0 … x_{n-2}, in this order, have windows.
            assert_eq!(problem.windows(&problem.uses()).len(), stages - 1);
            let all: Vec<Option<u64>> =
                (0..1 << (stages - 1)).map(|c| interruptible(&problem, c, budget)).collect();
            let found = all[choice as usize].unwrap();
            let optimum = all.iter().flatten().min().unwrap();
            let idle = slots.idle(|i| best[i]).unwrap();
            let byte_nanos =
                |slots: i64| slots as f64 * budget as f64 / 4000.0 * 1e9 / chain.bytes_per_second as f64;
            let predicted = problem.compute_nanos() as f64 + byte_nanos(idle);
            assert!(found as f64 <= *optimum as f64 * 1.0005, "{seed}: {found} {optimum}");
            assert!((predicted / *optimum as f64 - 1.0).abs() < 0.0012, "{seed}: {predicted} {optimum}");
            idle_cases += u32::from(idle > 0);
        }
        assert!(idle_cases >= 9, "{idle_cases}");
    }
}

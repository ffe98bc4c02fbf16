//! The outcome of a choice: from the chosen windows to a plan, by the rules of DQN §4.5.

use std::ops::Range;

use cranelift_entity::{PrimaryMap, SecondaryMap};
use lmsc_schedule::problem::{Problem, TensorId, Window};
use lmsc_schedule::{
    Absences, Act, ActId, Acts, Direction, Instruction, JUSTIFICATION_ROUNDS, Piece, PieceId, Plan,
    Scheduler, Simulator, Stuck, Times, justify,
};

use lmsc_planners::ours::remat::{Dead, Dropped, Rematerializer, Rewritten};

/// The problem after the choice, and the windows in which tensors are absent.
pub(super) struct Outcome {
    rewritten: Rewritten,
    /// By tensor, then by the end of the window.
    away: Vec<Window>,
    /// For each moment, the bytes that are live.
    live: Vec<u64>,
    /// For each moment, its slot in the source.
    slots: Vec<u32>,
}

/// The slots of a step, ascending: its start, then for every tick the recomputed operators before its operator and the
/// operator, then the recomputed operators after all and the end.
///
/// A window contains the recomputed operators right before the operator that ends it, but not that operator.
pub(super) fn slots(window: &Window, ticks: u32) -> [Range<u32>; 2] {
    let (from, until) = (1 + 2 * window.from, 2 + 2 * window.until);
    if window.wraps() { [from..3 + 2 * ticks, 0..until] } else { [from..until, 0..0] }
}

/// The tick of the operator of a slot, or of the next operator.
pub(super) fn tick_of(slot: u32) -> u32 {
    slot.saturating_sub(1) / 2
}

impl Outcome {
    /// The outcome of offloading and removing tensors for these windows; none if too many operators would be recomputed.
    ///
    /// If a tensor is needed in the middle of its window for a recomputed operator, it is absent before that and after it.
    /// The tensors that replace a recomputed one are offloaded in its place.
    pub(super) fn of(remat: &Rematerializer, offloaded: &[Window], removed: &[Window]) -> Option<Outcome> {
        let mut dropped: Vec<Dropped> = removed.iter().map(|&window| Dropped::new(window)).collect();
        dropped.sort_unstable();
        let rewritten = remat.rewrite(&dropped, Dead::default())?;
        let places = places(&rewritten);
        let uses = rewritten.problem.uses();
        let ticks = places[rewritten.op_origin.len()];
        let mut by_tensor: SecondaryMap<TensorId, Vec<Window>> = SecondaryMap::new();
        offloaded.iter().for_each(|window| by_tensor[window.tensor].push(*window));
        let is_away = |window: &Window| {
            let low = window.from.checked_sub(1).map_or(0, |before| places[before as usize] + 1);
            let high = places[window.until as usize];
            let within = |chosen: &Window| {
                if window.wraps() {
                    chosen.wraps()
                } else {
                    !chosen.wraps() && chosen.from <= low && low <= high && high <= chosen.until
                }
            };
            by_tensor[rewritten.tensor_origin[window.tensor]].iter().any(within)
        };
        let mut away = rewritten.problem.windows(&uses);
        away.retain(is_away);
        away.sort_unstable_by_key(|window| (window.tensor, window.until));
        let live = live(&rewritten.problem, &away);
        let origins = rewritten.op_origin.iter().zip(&places);
        let own = origins.map(|(origin, place)| 1 + 2 * place + u32::from(origin == place));
        let slots = [0].into_iter().chain(own).chain([2 + 2 * ticks]).collect();
        Some(Outcome { rewritten, away, live, slots })
    }

    /// The most bytes that are live at once.
    pub(super) fn peak(&self) -> u64 {
        self.live.iter().copied().max().unwrap_or(0)
    }

    /// The bytes over the budget, summed over all moments.
    pub(super) fn excess(&self, budget: u64) -> u64 {
        self.live.iter().map(|live| live.saturating_sub(budget)).fold(0, u64::saturating_add)
    }

    /// The slots that need more than the budget, ascending.
    pub(super) fn over(&self, budget: u64) -> Vec<u32> {
        let over = self.live.iter().zip(&self.slots).filter(|(live, _)| **live > budget);
        let mut over: Vec<u32> = over.map(|(_, &slot)| slot).collect();
        over.dedup();
        over
    }

    /// The plan within the budget, which is at least [`Outcome::peak`].
    ///
    /// Tensors are swapped in in the order of their next uses, each as soon as nothing then exceeds the budget until the end
    /// of the step (§4.5); tensors that could be swapped in at once are not swapped out. [`Scheduler::Justified`] improves on
    /// that order.
    ///
    /// # Errors
    /// [`Stuck`] if the budget is less than the peak.
    pub(super) fn plan(
        self,
        simulator: &mut Simulator,
        budget: u64,
        scheduler: Scheduler,
    ) -> Result<Plan, Stuck> {
        let Rewritten { problem, op_origin, tensor_origin } = self.rewritten;
        let fetched = fetched(&problem, self.live, self.away, budget);
        let mut pieces: PrimaryMap<PieceId, Piece> = PrimaryMap::new();
        let mut windows: SecondaryMap<PieceId, Vec<Window>> = SecondaryMap::new();
        let mut begins: SecondaryMap<PieceId, Vec<u32>> = SecondaryMap::new();
        for same in fetched.chunk_by(|(one, _), (other, _)| one.tensor == other.tensor) {
            let tensor = same[0].0.tensor;
            let piece = pieces.push(Piece { tensor, bytes: 0..problem.tensors[tensor].bytes });
            windows[piece] = same.iter().map(|(window, _)| *window).collect();
            begins[piece] = same.iter().map(|(_, begin)| *begin).collect();
        }
        let absences = Absences { pieces, windows };
        let acts = Acts::of(&problem, &absences);
        let order = order(&acts, &absences, &begins);
        let (order, times): (Vec<ActId>, Times) = match scheduler {
            Scheduler::Paper => {
                let times = simulator.run(&acts, &order, budget, Direction::Forward)?;
                (order, times)
            }
            Scheduler::Justified => justify(simulator, &acts, &order, budget, JUSTIFICATION_ROUNDS)?,
        };
        let schedule = acts.schedule(&absences, &order, &times);
        Ok(Plan { problem, op_origin, tensor_origin, schedule })
    }
}

/// By tick of the rewritten problem, and once more for its end, its tick in the source: recomputed operators belong to the
/// next operator that runs for the first time.
fn places(rewritten: &Rewritten) -> Vec<u32> {
    let mut next = 0;
    let first = rewritten.op_origin.iter().map(|&origin| {
        let first = origin == next;
        next += u32::from(first);
        first
    });
    let first: Vec<bool> = first.collect();
    let mut places = vec![next; rewritten.op_origin.len() + 1];
    for tick in (0..first.len()).rev() {
        next -= u32::from(first[tick]);
        places[tick] = next;
    }
    places
}

/// For each moment, the bytes that are live if tensors are absent in these windows.
fn live(problem: &Problem, away: &[Window]) -> Vec<u64> {
    problem.needed_by_moment(&problem.live_by_moment(&problem.uses()), away)
}

/// The windows, by tensor and end, each with the tick before which its copy in is placed: the first from which on the bytes
/// fit until the window ends. Without windows that would end where they begin.
fn fetched(problem: &Problem, mut live: Vec<u64>, mut away: Vec<Window>, budget: u64) -> Vec<(Window, u32)> {
    away.sort_unstable_by_key(|window| (window.until, window.tensor));
    let mut fetched = Vec::with_capacity(away.len());
    for window in away {
        let bytes = problem.tensors[window.tensor].bytes;
        let fits = |live: &[u64], range: &Range<u32>| {
            live[range.start as usize..range.end as usize].iter().all(|live| live + bytes <= budget)
        };
        let moments = window.moments(problem.ticks());
        if moments.iter().all(|range| fits(&live, range)) {
            let all = moments.into_iter().flatten();
            all.for_each(|moment| live[moment as usize] += bytes);
            continue;
        }
        let first = if window.wraps() { 0 } else { window.from };
        let mut begin = window.until;
        // The operator of tick `begin - 1` runs at moment `begin`.
        while begin > first && live[begin as usize] + bytes <= budget {
            live[begin as usize] += bytes;
            begin -= 1;
        }
        fetched.push((window, begin));
    }
    fetched.sort_unstable_by_key(|(window, _)| (window.tensor, window.until));
    fetched
}

/// The activities in the order of the ticks before which they are placed: copies out first, then copies in by their next
/// uses, then the operator.
fn order(acts: &Acts, absences: &Absences, begins: &SecondaryMap<PieceId, Vec<u32>>) -> Vec<ActId> {
    let mut back: SecondaryMap<PieceId, usize> = SecondaryMap::new();
    let mut tick = 0;
    let mut keys: SecondaryMap<ActId, (u32, u32, u32)> = SecondaryMap::with_capacity(acts.len());
    for &act in &acts.order {
        keys[act] = match acts.what[act] {
            Act::Start => (0, 0, 0),
            Act::End => (u32::MAX, 0, 0),
            Act::Do(Instruction::Op(at)) => {
                tick = at + 1;
                (at, 3, 0)
            }
            Act::Do(Instruction::Out(_)) => (tick, 1, 0),
            Act::Do(Instruction::In(_)) => continue,
        };
    }
    // Copies in of a piece are in the order of its windows.
    for (act, what) in &acts.what {
        if let Act::Do(Instruction::In(piece)) = *what {
            let at = back[piece];
            back[piece] += 1;
            keys[act] = (begins[piece][at], 2, absences.windows[piece][at].until);
        }
    }
    let mut order = acts.order.clone();
    order.sort_by_key(|&act| keys[act]);
    order
}

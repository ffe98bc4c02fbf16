//! Swapping only, as well as it can be done: an eager cover of the ticks that do not fit, and justification. Where
//! tensors travel whole, that is where `whole.rs` begins to search.

use cranelift_entity::SecondaryMap;

use super::variables::staying_or_leaving;
use super::{DoesNotFit, Granularity, Plan, Request, whole};
use crate::problem::{Problem, Tensor, Window};
use crate::schedule::{
    Absences, ActId, Acts, Piece, PieceId, ROUNDS, Schedule, Simulator, Stuck, Times, justify,
};
use crate::segment_tree::SegmentTree;

/// A piece is at least this large, so that a copy's latency is small beside it.
const SMALLEST_PIECE: u64 = 1 << 20;

/// So many pieces make the peak.
pub const PIECES: u64 = 1500;

/// Of pieces so many times as large, too, there is a plan, and the best is taken: over a link with latency few large copies
/// may beat many small ones.
const COARSER: [u64; 3] = [1, 4, 16];

/// The plan that swaps and does nothing else.
///
/// # Errors
/// [`DoesNotFit`] if an operator's own tensors, with what may not leave, exceed the budget.
pub fn plan(request: &Request) -> Result<Plan, DoesNotFit> {
    staying_or_leaving(request, swapping)
}

fn swapping(request: &Request) -> Result<Plan, DoesNotFit> {
    let Request { problem, budget, effort, .. } = *request;
    let schedule = match request.granularity {
        Granularity::Whole => whole::schedule(problem, budget, effort, swaps(problem, budget, u64::MAX)?),
        Granularity::Ranges => {
            let smallest = piece_bytes(problem, PIECES);
            let found = COARSER.map(|factor| swaps(problem, budget, smallest.saturating_mul(factor)));
            let makespan = |found: &Result<Schedule, _>| found.as_ref().map_or(u64::MAX, Schedule::makespan);
            found.into_iter().min_by_key(makespan).expect("there are some")?
        }
    };
    Ok(Plan::without_recomputation(problem, schedule))
}

/// The justified schedule of the [`cover`].
///
/// # Errors
/// [`DoesNotFit`] as of the cover.
pub fn swaps(problem: &Problem, budget: u64, piece: u64) -> Result<Schedule, DoesNotFit> {
    let absences = cover(problem, budget, piece)?;
    let acts = Acts::of(problem, &absences);
    let (order, times) = schedule(problem, &acts, budget)?;
    Ok(acts.schedule(&absences, &order, &times))
}

/// The size of pieces of which so many make the peak.
pub fn piece_bytes(problem: &Problem, count: u64) -> u64 {
    let peak = problem.live_bytes().into_iter().max().unwrap_or(0);
    (peak / count).max(SMALLEST_PIECE)
}

/// What fits at every moment can be executed one after the other, so a cover's activities are never stuck.
fn schedule(problem: &Problem, acts: &Acts, budget: u64) -> Result<(Vec<ActId>, Times), DoesNotFit> {
    let (tick, needed) = problem.floor();
    justify(&mut Simulator::default(), acts, &acts.order, budget, ROUNDS).map_err(|_: Stuck| DoesNotFit {
        tick,
        needed,
        budget,
    })
}

/// The absences that make every moment fit, those that start early first and no more than needed.
///
/// Tensors travel in ranges of at most `piece` bytes. Windows are taken by their start, the longest first, if they
/// cover a tick that does not fit yet, as many pieces of each as that needs; then, the last first, given back
/// where the others suffice.
///
/// # Errors
/// [`DoesNotFit`] names the tick that needs most of those that no absence can make fit.
pub fn cover(problem: &Problem, budget: u64, piece: u64) -> Result<Absences, DoesNotFit> {
    let uses = problem.uses();
    let live = problem.live_by_moment(&uses);
    let mut windows = problem.windows(&uses);
    let (tick, needed) = problem.floor_of(&live, &windows);
    if needed > budget {
        return Err(DoesNotFit { tick, needed, budget });
    }
    if live.iter().all(|&l| l <= budget) {
        return Ok(Absences::default());
    }
    let ticks = problem.ticks();
    windows.sort_unstable_by_key(|w| {
        let from = if w.wraps() { 0 } else { w.from };
        (from, std::cmp::Reverse(w.until), w.tensor)
    });
    let mut excess = SegmentTree::new(live.iter().map(|&l| l as i64 - budget as i64));
    let covered = |excess: &SegmentTree, window: &Window| {
        let [one, other] = window.moments(ticks);
        if other.is_empty() { excess.max(one) } else { excess.max(one).max(excess.max(other)) }
    };
    // By chosen window, in the order chosen, how many pieces of its tensor, and their bytes together.
    let mut chosen: Vec<(Window, u32, i64)> = Vec::new();
    for window in windows {
        let over = covered(&excess, &window);
        if over > 0 {
            let bytes = problem.tensors[window.tensor].bytes;
            let (count, size) = pieces_of(&problem.tensors[window.tensor], piece);
            let count = (over as u64).div_ceil(size).min(u64::from(count)) as u32;
            let bytes = (u64::from(count) * size).min(bytes) as i64;
            window.moments(ticks).into_iter().for_each(|range| excess.add(range, -bytes));
            chosen.push((window, count, bytes));
            if excess.max_of_all() <= 0 {
                break;
            }
        }
    }
    let mut kept = Vec::with_capacity(chosen.len());
    for &(window, mut count, bytes) in chosen.iter().rev() {
        let spare = -covered(&excess, &window);
        let size = pieces_of(&problem.tensors[window.tensor], piece).1;
        let mut given_back = 0;
        while count > 0 && bytes - (i64::from(count) - 1) * size as i64 - given_back <= spare - given_back {
            given_back = bytes - (i64::from(count) - 1) * size as i64;
            count -= 1;
        }
        if given_back > 0 {
            window.moments(ticks).into_iter().for_each(|range| excess.add(range, given_back));
        }
        kept.extend((0..count).map(|index| (window, index)));
    }
    Ok(absences(problem, piece, &mut kept))
}

/// Pieces begin at multiples of this many bytes, and so at an element.
const ALIGNMENT: u64 = 256;

/// Into how many pieces the tensor falls, and the size of all but the last. A variable travels whole.
fn pieces_of(tensor: &Tensor, piece: u64) -> (u32, u64) {
    let bytes = tensor.bytes;
    if tensor.is_variable() {
        return (1, bytes);
    }
    let size = bytes.div_ceil(bytes.div_ceil(piece)).next_multiple_of(ALIGNMENT);
    (bytes.div_ceil(size) as u32, size)
}

/// The absences of chosen windows, each of one piece of its tensor.
fn absences(problem: &Problem, piece: u64, chosen: &mut [(Window, u32)]) -> Absences {
    chosen.sort_unstable_by_key(|(window, index)| (window.tensor, *index, window.until));
    let mut absences = Absences { windows: SecondaryMap::new(), ..Absences::default() };
    let mut last: Option<(Window, u32, PieceId)> = None;
    for &mut (window, index) in chosen {
        let id = match last {
            Some((w, i, id)) if (w.tensor, i) == (window.tensor, index) => id,
            _ => {
                let bytes = problem.tensors[window.tensor].bytes;
                let size = pieces_of(&problem.tensors[window.tensor], piece).1;
                let begin = u64::from(index) * size;
                absences.pieces.push(Piece { tensor: window.tensor, bytes: begin..(begin + size).min(bytes) })
            }
        };
        absences.windows[id].push(window);
        last = Some((window, index, id));
    }
    absences
}

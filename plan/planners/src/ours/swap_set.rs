//! Eviction sets: chooses the pieces that are swapped out in each window so that every moment fits the budget.
//!
//! Windows are taken in an order, as many pieces of each as the moments need; then pieces that turn out not to be needed are
//! returned. An *eager* eviction set only counts bytes: a tensor must be resident only at the moments of its uses. A
//! *time-aware* one accounts for copy times: a piece is swapped out from the end of its copy out to the start of its copy in,
//! on engines that make one copy after the other beside operators of known durations. So it makes room for a swap-in before
//! its use, where an eager one makes the operator wait.

use std::cell::Cell;
use std::cmp::Reverse;
use std::ops::Range;

use cranelift_entity::SecondaryMap;
use lmsc_schedule::problem::{Duplex, MOST, Problem, Tensor, TensorId, Uses, Window};
use lmsc_schedule::segment_tree::SegmentTree;
use lmsc_schedule::{Absences, DoesNotFit, Lists, Piece, PieceId, last_before, tuned};

/// The order in which windows are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Manner {
    /// Eager; by the start of the window, when the tensor can be gone.
    Gone,
    /// Eager; by the time from which the tensor can be copied, perhaps concurrently with operators that read it.
    Ready,
    /// Time-aware; by the start of the window, when the tensor can be gone.
    InTime,
    /// Time-aware; variables whose host copy is still valid come first.
    Clean,
}

impl Manner {
    /// All orders, those first that suit most steps whose variables leave.
    pub(super) const ALL: [Manner; 4] = [Manner::InTime, Manner::Ready, Manner::Gone, Manner::Clean];

    /// Whether windows are taken with regard to copy times.
    pub(super) fn is_in_time(self) -> bool {
        matches!(self, Manner::InTime | Manner::Clean)
    }
}

/// The absences that make every moment fit; windows that start early come first, and no more than needed are taken.
///
/// Tensors are copied in ranges of at most `piece` bytes. Windows are taken by their start, the longest first, if they
/// contain a moment that does not fit yet; of each, as many pieces as that moment needs or as there is copy time for. Then
/// pieces are returned, the last taken first, where the others suffice.
///
/// # Errors
/// [`DoesNotFit`] names the tick that needs the most bytes of those that no absence can make fit.
pub(crate) fn cover(
    problem: &Problem,
    uses: &Uses,
    budget: u64,
    piece: u64,
    manner: Manner,
) -> Result<Absences, DoesNotFit> {
    Ok(Cover::new(problem, uses, budget, Sizes::of(piece), manner)?.absences(1))
}

/// The sizes of copied ranges, and of tensors that are taken last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Maximum size of a range.
    pub(super) piece: u64,
    /// Windows of tensors with fewer bytes are taken after all others.
    pub(super) small: u64,
}

impl Sizes {
    /// Ranges of at most `piece` bytes; small tensors are not taken last.
    pub(super) fn of(piece: u64) -> Sizes {
        Sizes { piece, small: 0 }
    }
}

/// A choice of pieces for windows.
pub(super) struct Cover<'a> {
    problem: &'a Problem,
    piece: u64,
    /// In the order in which they are taken.
    windows: Vec<Choice>,
    /// For each moment, the bytes over the budget.
    excess: SegmentTree,
    /// The same with regard to copy times, for pieces taken in time; none for eager sets.
    in_time: Option<SegmentTree>,
    /// In the order taken.
    taken: Vec<Taken>,
}

/// A window, and the number of pieces of its tensor that are swapped out in it, the first ones.
struct Choice {
    window: Window,
    count: u32,
    /// Whether the window ends with the step: the variable is swapped in before the step ends, not only when the next step
    /// uses it.
    returns: bool,
    /// Index of the window of the same variable that wraps around the end of the step.
    around: Option<usize>,
    /// Whether the variable must stay swapped out in that window: it is copied in pieces, or the window saves its copy out.
    keeps_around: bool,
}

struct Taken {
    /// Index of the window.
    window: usize,
    portion: Portion,
    /// The moments at which it is swapped out, if it was taken in time.
    away: Option<[Range<u32>; 2]>,
}

/// The bytes taken at once.
#[derive(Clone, Copy)]
struct Portion {
    pieces: u32,
    bytes: i64,
}

impl<'a> Cover<'a> {
    /// The eviction set that takes windows in this order; a time-aware one assumes operators that never wait.
    ///
    /// # Errors
    /// [`DoesNotFit`], as for [`cover`].
    pub(super) fn new(
        problem: &'a Problem,
        uses: &Uses,
        budget: u64,
        sizes: Sizes,
        manner: Manner,
    ) -> Result<Cover<'a>, DoesNotFit> {
        let mut cover = match manner {
            Manner::Gone => {
                let start = |w: &Window| if w.wraps() { 0 } else { w.from };
                Cover::empty(problem, uses, budget, sizes, true, start)?
            }
            Manner::Ready => {
                let changes = Lists::of_changes(problem);
                let ready = |w: &Window| last_before(changes.of(w.tensor), w.from).map_or(0, |tick| tick + 1);
                let start = |w: &Window| if w.wraps() { 0 } else { ready(w) };
                Cover::empty(problem, uses, budget, sizes, true, start)?
            }
            Manner::InTime | Manner::Clean => {
                return Cover::in_time(problem, uses, budget, sizes, manner, &problem.computing_nanos());
            }
        };
        cover.pair_variables();
        cover.take();
        cover.give_back();
        Ok(cover)
    }

    /// The time-aware eviction set in this order, where `pace` gives the time from the start of each operator to the next;
    /// completed eagerly where time does not suffice.
    ///
    /// A variable may be swapped in before the end of the step if the next step would otherwise wait for it.
    ///
    /// # Errors
    /// [`DoesNotFit`], as for [`cover`].
    pub(super) fn in_time(
        problem: &'a Problem,
        uses: &Uses,
        budget: u64,
        sizes: Sizes,
        manner: Manner,
        pace: &[u64],
    ) -> Result<Cover<'a>, DoesNotFit> {
        let mut engines = Engines::new(problem, pace);
        let is_first = |w: &Window| w.wraps() || manner == Manner::Clean && engines.is_clean(w);
        let start = |w: &Window| if is_first(w) { 0 } else { w.from };
        let mut cover = Cover::empty(problem, uses, budget, sizes, false, start)?;
        cover.in_time = Some(cover.excess.clone());
        cover.add_returns();
        cover.take_in_time(&mut engines);
        cover.take();
        cover.give_back();
        Ok(cover)
    }

    /// The empty eviction set, with all windows or only `useful` ones, which contain a moment that does not fit.
    fn empty(
        problem: &'a Problem,
        uses: &Uses,
        budget: u64,
        sizes: Sizes,
        useful: bool,
        start: impl Fn(&Window) -> u32,
    ) -> Result<Cover<'a>, DoesNotFit> {
        let live = problem.live_by_moment(uses);
        let mut windows = problem.windows(uses);
        tuned::work(windows.len());
        let (tick, needed) = problem.floor_of(&live, &windows);
        if needed > budget {
            return Err(DoesNotFit { tick, needed, budget });
        }
        if useful {
            // For each moment, the number of earlier moments that do not fit.
            let mut before = Vec::with_capacity(live.len() + 1);
            before.push(0u32);
            before.extend(live.iter().scan(0, |sum, &live| {
                *sum += u32::from(live > budget);
                Some(*sum)
            }));
            let helps = |moments: Range<u32>| before[moments.start as usize] < before[moments.end as usize];
            windows.retain(|w| w.moments(problem.ticks()).into_iter().any(helps));
        }
        let mut windows: Vec<(u32, Window)> = windows.into_iter().map(|w| (start(&w), w)).collect();
        // No two are equal: windows of one tensor end at different ticks.
        let is_small = |w: &Window| problem.tensors[w.tensor].bytes < sizes.small;
        windows.sort_unstable_by_key(|(start, w)| (is_small(w), *start, Reverse(w.until), w.tensor));
        // A budget beyond [`MOST`] makes no difference.
        let budget = budget.min(MOST) as i64;
        let excess = SegmentTree::new(live.iter().map(|&live| live as i64 - budget));
        let choice =
            |(_, window)| Choice { window, count: 0, returns: false, around: None, keeps_around: false };
        let windows = windows.into_iter().map(choice).collect();
        Ok(Cover { problem, piece: sizes.piece, windows, in_time: None, excess, taken: Vec::new() })
    }

    /// Links each window of a variable to the one that wraps around the end of the step.
    fn pair_variables(&mut self) {
        let mut around: SecondaryMap<TensorId, Option<usize>> = SecondaryMap::new();
        for (index, choice) in self.windows.iter().enumerate().filter(|(_, c)| c.window.wraps()) {
            around[choice.window.tensor] = Some(index);
        }
        let others = self.windows.iter_mut().filter(|c| !c.window.wraps());
        others.for_each(|c| c.around = around[c.window.tensor]);
    }

    /// Adds windows of variables that end with the step, each after the one that wraps around the end.
    fn add_returns(&mut self) {
        let ticks = self.problem.ticks();
        let mut windows = Vec::with_capacity(self.windows.len());
        for choice in self.windows.drain(..) {
            let window = choice.window;
            windows.push(choice);
            if window.wraps() && window.from < ticks {
                let window = Window { until: ticks, ..window };
                windows.push(Choice { window, count: 0, returns: true, around: None, keeps_around: false });
            }
        }
        self.windows = windows;
        self.pair_variables();
    }

    /// The next portion that can be swapped out in the window: a piece, or all of a variable that is resident between steps
    /// or that the window itself puts on the host between steps.
    fn next(&self, index: usize) -> Option<Portion> {
        self.next_beside(index, self.is_taken_around(index))
    }

    /// The same, for a variable that is on the host between steps or not.
    fn next_beside(&self, index: usize, is_around: bool) -> Option<Portion> {
        let Choice { window, count, returns, around, .. } = self.windows[index];
        let tensor = &self.problem.tensors[window.tensor];
        let (pieces, size) = pieces_of(tensor, self.piece, self.problem.grain);
        let other = if window.wraps() { self.windows.get(index + 1).filter(|c| c.returns) } else { None };
        let other = other.or_else(|| around.filter(|_| returns).map(|around| &self.windows[around]));
        let is_left = count < pieces && other.is_none_or(|other| other.count == 0);
        is_left.then(|| {
            let pieces = if tensor.is_variable() && !is_around { pieces - count } else { 1 };
            let left = tensor.bytes - u64::from(count) * size;
            Portion { pieces, bytes: left.min(u64::from(pieces) * size) as i64 }
        })
    }

    /// Whether the window's tensor is a variable that is on the host between steps.
    fn is_taken_around(&self, index: usize) -> bool {
        let Choice { around, returns, .. } = self.windows[index];
        !returns && around.is_some_and(|around| self.windows[around].count > 0)
    }

    fn choose(&mut self, index: usize, portion: Portion, away: Option<[Range<u32>; 2]>) {
        let moments = self.moments(index);
        let choice = &mut self.windows[index];
        let pieces = pieces_of(&self.problem.tensors[choice.window.tensor], self.piece, self.problem.grain).0;
        choice.count += portion.pieces;
        choice.keeps_around |= portion.pieces < pieces;
        add(&mut self.excess, &moments, -portion.bytes);
        self.add_in_time(away.as_ref(), -portion.bytes);
        self.taken.push(Taken { window: index, portion, away });
    }

    fn add_in_time(&mut self, away: Option<&[Range<u32>; 2]>, bytes: i64) {
        self.in_time.iter_mut().zip(away).for_each(|(excess, away)| add(excess, away, bytes));
    }

    /// The largest excess over the budget at these moments with regard to copy times; `i64::MIN` for eager sets.
    fn over_in_time(&self, moments: &[Range<u32>; 2]) -> i64 {
        self.in_time.as_ref().map_or(i64::MIN, |excess| over(excess, moments))
    }

    fn moments(&self, index: usize) -> [Range<u32>; 2] {
        self.windows[index].window.moments(self.problem.ticks())
    }

    /// Takes windows that reduce the excess in bytes, regardless of copy times.
    fn take(&mut self) {
        for index in 0..self.windows.len() {
            if self.excess.max_of_all() <= 0 {
                break;
            }
            if self.windows[index].returns {
                continue;
            }
            let moments = self.moments(index);
            if self.windows.get(index + 1).is_some_and(|c| c.returns) {
                // These moments only become free if the variable is swapped out around the end of the step.
                let between = [self.problem.ticks() + 1..self.problem.ticks() + 2, moments[1].clone()];
                if over(&self.excess, &between) > 0 {
                    self.give_back_all(index + 1);
                }
            }
            while over(&self.excess, &moments) > 0 {
                let Some(portion) = self.next(index) else { break };
                self.choose(index, portion, None);
            }
        }
    }

    /// Returns the pieces of the window.
    fn give_back_all(&mut self, index: usize) {
        let moments = self.moments(index);
        let given: Vec<Taken> = self.taken.extract_if(.., |taken| taken.window == index).collect();
        for taken in given {
            add(&mut self.excess, &moments, taken.portion.bytes);
            self.add_in_time(taken.away.as_ref(), taken.portion.bytes);
            self.windows[index].count -= taken.portion.pieces;
        }
    }

    /// Takes windows that reduce the excess and have time for both copies.
    fn take_in_time(&mut self, engines: &mut Engines) {
        for index in 0..self.windows.len() {
            let Choice { window, returns, around, .. } = self.windows[index];
            let moments = self.moments(index);
            while self.over_in_time(&moments) > 0 {
                // A variable that begins the step on the host need not be copied out before it changes.
                let is_clean = !returns && engines.is_clean(&window);
                let first = around.filter(|_| is_clean).and_then(|around| {
                    let portion = self.next(around)?;
                    let window = &self.windows[around].window;
                    Some((around, portion, engines.away(window, portion.bytes as u64, true)?))
                });
                let is_around = first.is_some() || self.is_taken_around(index);
                let Some(portion) = self.next_beside(index, is_around) else { break };
                let on_host = is_clean && (window.wraps() || is_around);
                let Some((away, used)) = engines.away(&window, portion.bytes as u64, on_host) else { break };
                if self.over_in_time(&away) <= 0 {
                    break;
                }
                engines.occupy(&used);
                if let Some((around, portion, (away, used))) = first {
                    engines.occupy(&used);
                    self.choose(around, portion, Some(away));
                }
                self.choose(index, portion, Some(away));
                self.windows[index].keeps_around |= is_clean;
            }
        }
    }

    /// Returns the pieces that are not needed, the last taken first.
    fn give_back(&mut self) {
        let mut kept = vec![0u32; self.windows.len()];
        let keeping = self.windows.iter().filter(|c| c.count > 0 && c.keeps_around && !c.returns);
        keeping.filter_map(|c| c.around).for_each(|around| kept[around] += 1);
        for Taken { window: index, portion, away } in std::mem::take(&mut self.taken).into_iter().rev() {
            let (moments, bytes) = (self.moments(index), portion.bytes);
            let is_needed = kept[index] > 0
                || over(&self.excess, &moments) + bytes > 0
                || away.as_ref().is_some_and(|away| self.over_in_time(away) + bytes > 0);
            if is_needed {
                continue;
            }
            add(&mut self.excess, &moments, bytes);
            self.add_in_time(away.as_ref(), bytes);
            let choice = &mut self.windows[index];
            choice.count -= portion.pieces;
            let keeps = choice.keeps_around && choice.count == 0 && !choice.returns;
            if let Some(around) = choice.around.filter(|_| keeps) {
                kept[around] -= 1;
            }
        }
    }

    /// The windows in which pieces are swapped out, with the number of pieces: by tensor, the largest number first.
    pub(super) fn chosen(&self) -> Vec<(Window, u32)> {
        let away = self.windows.iter().filter(|c| c.count > 0);
        let mut chosen: Vec<(Window, u32)> = away.map(|c| (c.window, c.count)).collect();
        chosen.sort_unstable_by_key(|(window, count)| (window.tensor, Reverse(*count), window.until));
        chosen
    }

    /// The absences; up to `together` adjacent pieces that are swapped out at the same time are merged into one.
    pub(super) fn absences(&self, together: u32) -> Absences {
        let kept = self.chosen();
        let mut absences = Absences { windows: SecondaryMap::new(), ..Absences::default() };
        for same in kept.chunk_by(|(one, _), (other, _)| one.tensor == other.tensor) {
            let tensor = same[0].0.tensor;
            let bytes = self.problem.tensors[tensor].bytes;
            let size = pieces_of(&self.problem.tensors[tensor], self.piece, self.problem.grain).1;
            let is_whole = travels_whole(self.problem, tensor, same.iter().map(|(window, _)| window));
            let together = if is_whole { u32::MAX } else { together };
            let mut first = 0;
            while first < same[0].1 {
                let away = same.iter().take_while(|(_, count)| *count > first);
                let end = away
                    .clone()
                    .map(|(_, count)| *count)
                    .min()
                    .unwrap_or(first)
                    .min(first.saturating_add(together));
                let range = u64::from(first) * size..(u64::from(end) * size).min(bytes);
                let piece: PieceId = absences.pieces.push(Piece { tensor, bytes: range });
                let mut windows: Vec<Window> = away.map(|(window, _)| *window).collect();
                windows.sort_unstable_by_key(|window| window.until);
                absences.windows[piece] = windows;
                first = end;
            }
        }
        absences
    }
}

/// The number of pieces of the tensor, and the size of all but the last, a multiple of the grain.
pub fn pieces_of(tensor: &Tensor, piece: u64, grain: u64) -> (u32, u64) {
    let bytes = tensor.bytes;
    let size = bytes.div_ceil(bytes.div_ceil(piece)).next_multiple_of(grain);
    (bytes.div_ceil(size) as u32, size)
}

/// Whether the tensor, swapped in these windows, is a variable that is resident between steps and must be copied whole.
pub fn travels_whole<'a>(
    problem: &Problem,
    tensor: TensorId,
    mut windows: impl Iterator<Item = &'a Window>,
) -> bool {
    problem.tensors[tensor].is_variable() && !windows.any(Window::wraps)
}

/// The largest excess over the budget at these moments.
fn over(excess: &SegmentTree, moments: &[Range<u32>; 2]) -> i64 {
    moments.iter().map(|range| excess.max(range.clone())).max().unwrap_or(i64::MIN)
}

fn add(excess: &mut SegmentTree, moments: &[Range<u32>; 2], bytes: i64) {
    moments.iter().for_each(|range| excess.add(range.clone(), bytes));
}

/// The free times of the copy engines beside operators of known durations.
struct Engines<'a> {
    problem: &'a Problem,
    /// For each tensor, the ticks that produce or change it, ascending.
    changes: Lists<TensorId, u32>,
    out: Engine,
    /// None if copies in both directions share one engine.
    back: Option<Engine>,
}

/// The times of the copies of one piece: by tick of the copy out, then of the copy in, the nanoseconds used.
type Used = [Vec<(u32, u64)>; 2];

impl<'a> Engines<'a> {
    fn new(problem: &'a Problem, pace: &[u64]) -> Engines<'a> {
        let changes = Lists::of_changes(problem);
        let back = (problem.link.duplex == Duplex::Full).then(|| Engine::new(pace));
        Engines { problem, changes, out: Engine::new(pace), back }
    }

    /// The last tick that changes the window's tensor before it can be swapped out.
    fn changed(&self, window: &Window) -> Option<u32> {
        last_before(self.changes.of(window.tensor), window.from)
    }

    /// Whether the variable is unchanged from the start of the step until it can be swapped out.
    fn is_clean(&self, window: &Window) -> bool {
        self.problem.tensors[window.tensor].is_variable() && self.changed(window).is_none()
    }

    /// The moments at which `bytes` bytes are swapped out in the window, and the times of their copies; none if there is no
    /// time for these.
    fn away(&self, window: &Window, bytes: u64, on_host: bool) -> Option<([Range<u32>; 2], Used)> {
        let (ticks, link) = (self.problem.ticks(), self.problem.link);
        let last = if window.wraps() { ticks } else { window.until };
        let (gone, out) = if on_host {
            (window.from, Vec::new())
        } else {
            let ready = self.changed(window).map_or(0, |tick| tick + 1);
            let (end, used) = self.out.earliest(ready..last, link.out_nanos(bytes))?;
            (end.max(window.from), used)
        };
        let first = if window.wraps() { 0 } else { gone };
        let engine = self.back.as_ref().unwrap_or(&self.out);
        let (comes, back) = engine.latest(first..window.until, link.in_nanos(bytes))?;
        let away =
            if window.wraps() { [gone + 1..ticks + 2, 0..comes + 1] } else { [gone + 1..comes + 1, 0..0] };
        Some((away, [out, back]))
    }

    fn occupy(&mut self, [out, back]: &Used) {
        self.out.occupy(out);
        self.back.as_mut().unwrap_or(&mut self.out).occupy(back);
    }
}

/// The remaining time of an engine.
#[derive(Clone)]
struct Engine {
    /// For each tick, the nanoseconds in which no copy runs yet.
    idle: Vec<u64>,
    /// For each tick, itself, or if it is busy a later one before which all are busy; and the reverse, plus one. [`end_of`] follows
    /// and shortens the chains.
    later: Vec<Cell<u32>>,
    earlier: Vec<Cell<u32>>,
}

/// The last link of the chain that begins at `at`.
fn end_of(links: &[Cell<u32>], mut at: u32) -> u32 {
    loop {
        let next = links[at as usize].get();
        let after = links[next as usize].get();
        if next == after {
            return next;
        }
        links[at as usize].set(after);
        at = after;
    }
}

impl Engine {
    fn new(pace: &[u64]) -> Engine {
        let ticks = pace.len() as u32;
        let links = || (0..=ticks).map(Cell::new).collect();
        Engine { idle: pace.to_vec(), later: links(), earlier: links() }
    }

    /// For a copy that starts as early as possible: the tick after the one in which it ends, and the time that it uses in
    /// each tick.
    fn earliest(&self, ticks: Range<u32>, mut nanos: u64) -> Option<(u32, Vec<(u32, u64)>)> {
        let mut used = Vec::new();
        let mut tick = end_of(&self.later, ticks.start);
        while tick < ticks.end {
            let taken = self.idle[tick as usize].min(nanos);
            used.push((tick, taken));
            nanos -= taken;
            if nanos == 0 {
                return Some((tick + 1, used));
            }
            tick = end_of(&self.later, tick + 1);
        }
        None
    }

    /// For a copy that starts as late as possible: the tick in which it starts, and the time that it uses in each tick.
    fn latest(&self, ticks: Range<u32>, mut nanos: u64) -> Option<(u32, Vec<(u32, u64)>)> {
        let mut used = Vec::new();
        let mut end = end_of(&self.earlier, ticks.end);
        while end > ticks.start {
            let tick = end - 1;
            let taken = self.idle[tick as usize].min(nanos);
            used.push((tick, taken));
            nanos -= taken;
            if nanos == 0 {
                return Some((tick, used));
            }
            end = end_of(&self.earlier, tick);
        }
        None
    }

    fn occupy(&mut self, used: &[(u32, u64)]) {
        for &(tick, nanos) in used {
            let t = tick as usize;
            // If both directions share one engine, the two copies of one piece may have been given the same time.
            self.idle[t] = self.idle[t].saturating_sub(nanos);
            if self.idle[t] == 0 {
                self.later[t].set(tick + 1);
                self.earlier[t + 1].set(tick);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use lmsc_schedule::check;
    use lmsc_testing::{Rng, Source, random};

    use super::*;
    use crate::ours::swap_only;

    #[test]
    fn covers_make_every_moment_fit_at_any_pace() {
        for seed in 0..2000 {
            let mut u = Rng::new(seed);
            let ops = 1 + u.below(20);
            let problem = random::problem(&mut u, ops);
            let (floor, live) = (problem.floor().1, problem.live_by_moment(&problem.uses()));
            let peak = live.into_iter().max().unwrap();
            let budget = floor + (peak - floor) * u.below(4) as u64 / 4;
            let piece = if u.chance(50) { u64::MAX } else { 1 + peak / (1 + u.below(40) as u64) };
            let pace: Vec<u64> = (0..ops).map(|_| u.below(200) as u64).collect();
            let uses = problem.uses();
            let small = if u.chance(50) { 0 } else { peak / (1 + u.below(40) as u64) };
            let sizes = Sizes { piece, small };
            let by_manner = [Manner::Gone, Manner::Ready]
                .map(|manner| Cover::new(&problem, &uses, budget, sizes, manner).unwrap());
            let in_time = [Manner::InTime, Manner::Clean]
                .map(|manner| Cover::in_time(&problem, &uses, budget, sizes, manner, &pace).unwrap());
            for cover in in_time.into_iter().chain(by_manner) {
                let absences = cover.absences(1 + u.below(5) as u32);
                let most = absences.live_by_moment(&problem).into_iter().max().unwrap();
                assert!(most <= budget, "seed {seed}: {most} of {budget}");
            }
        }
    }

    #[test]
    fn time_to_come_back_is_worth_room() {
        let (mut cases, mut faster) = (0, 0);
        for seed in 0..150 {
            let mut u = Rng::new(seed);
            let problem = random::problem(&mut u, 12);
            let (floor, live) = (problem.floor().1, problem.live_by_moment(&problem.uses()));
            let peak = live.into_iter().max().unwrap();
            let budget = floor.midpoint(peak);
            let eager = swap_only::covered(&problem, budget, 1 + peak / 30, Manner::Gone).unwrap().makespan();
            let best = swap_only::swaps(&problem, budget, 1 + peak / 30).unwrap();
            check(&problem, &best, budget).unwrap();
            assert!(best.makespan() <= eager, "seed {seed}");
            cases += usize::from(eager > problem.compute_nanos());
            faster += usize::from(best.makespan() < eager);
        }
        assert!(cases > 100 && faster * 10 > cases, "{faster} of {cases}");
    }

    #[test]
    fn an_engine_gives_each_nanosecond_once() {
        let mut engine = Engine::new(&[5, 0, 5, 5]);
        let (end, used) = engine.earliest(0..4, 7).unwrap();
        assert_eq!((end, used.as_slice()), (3, [(0, 5), (1, 0), (2, 2)].as_slice()));
        engine.occupy(&used);
        assert_eq!(engine.latest(0..3, 3).map(|(start, _)| start), Some(2));
        assert_eq!(engine.latest(0..3, 4), None);
        assert_eq!(engine.earliest(0..4, 8).map(|(end, _)| end), Some(4));
        assert_eq!(engine.earliest(0..4, 9), None);
    }
}

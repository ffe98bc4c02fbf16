//! Repeated layers of the forward phase, found without names: runs of a period in the sequence of operators.
//!
//! Two operators are equal if their kinds, the sizes of their operands and results, and their workspaces are. Where nearly all
//! operators of a range equal those one period later, the range repeats. The run that saves the most decisions is taken, then
//! the search goes on in the rest; first with sizes, then by kinds alone (the stages of a convolutional network). Cuts are
//! where few bytes cross.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use lmsc_schedule::problem::{Problem, Uses};

use crate::ours::remat::Rematerializer;

/// A layer equals the next one if at most one in this many of its operators differ.
const DIFFERING: usize = 8;

/// Number of the commonest distances between equal operators that are tried as periods.
const PERIODS: usize = 48;

/// The shortest layer, in operators.
const SHORTEST: usize = 3;

/// A run that covers less than one part in this many of the operators and of the time is not worth decisions of its own.
const SMALL_RUN: u64 = 32;

/// The most runs that are looked for.
const MOST_RUNS: usize = 64;

/// Hundredths of the operators of a layer that another stretch has in common with it if it counts as a copy of it.
const ALIKE_PERCENT: usize = 70;

/// A layer of the forward phase, or a stretch of about a layer between runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layer {
    /// The ticks of its operators.
    pub(super) ticks: Range<usize>,
    /// Layers of one class are copies of each other.
    pub(super) class: usize,
    /// Its number among these.
    pub(super) copy: usize,
    /// Whether sizes are equal in all copies.
    pub(super) is_exact: bool,
}

/// Consecutive copies of a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Run {
    start: usize,
    period: usize,
    copies: usize,
    is_exact: bool,
}

impl Run {
    fn ticks(&self) -> Range<usize> {
        self.start..self.start + self.period * self.copies
    }

    fn layers(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.ticks().step_by(self.period).map(|start| start..start + self.period)
    }

    /// The number of operators that need no decision of their own.
    fn saved(&self) -> usize {
        self.period * (self.copies - 1)
    }
}

/// The forward phase as a sequence of equal and different operators.
pub(super) struct Forward<'a> {
    problem: &'a Problem,
    /// By tick of the forward phase, a number that equal operators share: of one kind, and of the same sizes.
    alike: [Vec<u32>; 2],
    /// For each tick, the bytes that were made before it and are used at it or later in the forward phase.
    crossing: Vec<u64>,
}

impl<'a> Forward<'a> {
    /// The operators before the tick `turn`.
    pub(super) fn new(problem: &'a Problem, remat: &Rematerializer, uses: &Uses, turn: usize) -> Forward<'a> {
        let alike = [false, true].map(|is_exact| numbers(problem, turn, is_exact));
        let mut change = vec![0i64; turn + 2];
        for (tensor, facts) in &problem.tensors {
            let made = remat.producer(tensor).map_or(turn, |tick| tick as usize);
            let last = last_before(uses.of(tensor), turn);
            if let Some(last) = last.filter(|&last| last > made) {
                change[made + 1] += facts.bytes as i64;
                change[last + 1] -= facts.bytes as i64;
            }
        }
        let mut now = 0;
        let crossing = change[..=turn].iter().map(|change| {
            now += change;
            now as u64
        });
        Forward { problem, alike, crossing: crossing.collect() }
    }

    fn turn(&self) -> usize {
        self.alike[0].len()
    }

    /// The number that operators share which are equal, with sizes or without.
    pub(super) fn alike(&self, tick: usize, is_exact: bool) -> u32 {
        self.alike[usize::from(is_exact)][tick]
    }

    /// The layers, in their order; they contain all operators.
    pub(super) fn layers(&self) -> Vec<Layer> {
        let runs = self.runs();
        let usual = runs.iter().max_by_key(|run| run.ticks().len()).map(|run| run.period);
        let usual = usual.unwrap_or((self.turn() / 16).max(SHORTEST));
        let mut stretches: Vec<(Range<usize>, Option<bool>)> = Vec::new();
        let mut at = 0;
        for run in &runs {
            stretches.extend(self.cut(at..run.start, usual).into_iter().map(|ticks| (ticks, None)));
            stretches.extend(run.layers().map(|ticks| (ticks, Some(run.is_exact))));
            at = run.ticks().end;
        }
        stretches.extend(self.cut(at..self.turn(), usual).into_iter().map(|ticks| (ticks, None)));
        self.classified(&stretches)
    }

    /// The runs that are worth decisions of their own, in their order.
    fn runs(&self) -> Vec<Run> {
        let mut found = Vec::new();
        let mut open: Vec<_> = std::iter::once(0..self.turn()).collect();
        for is_exact in [true, false] {
            let mut left = Vec::new();
            while let Some(range) = open.pop() {
                match self.best_run(range.clone(), is_exact) {
                    Some(run) if found.len() < MOST_RUNS => {
                        open.extend([range.start..run.start, run.ticks().end..range.end]);
                        found.push(run);
                    }
                    _ => left.push(range),
                }
            }
            open = left;
        }
        let nanos = |ticks: Range<usize>| self.problem.ops[ticks].iter().map(|op| op.nanos).sum::<u64>();
        let all = nanos(0..self.turn());
        found.retain(|run| {
            let is_large = |part: u64, all: u64| part >= all / SMALL_RUN;
            is_large(run.ticks().len() as u64, self.turn() as u64) || is_large(nanos(run.ticks()), all)
        });
        found.sort_by_key(|run| run.start);
        found
    }

    /// The run within the range that saves the most decisions; of nearly equal ones the one of the shortest period.
    fn best_run(&self, range: Range<usize>, is_exact: bool) -> Option<Run> {
        let alike = &self.alike[usize::from(is_exact)];
        let mut best: Option<Run> = None;
        for period in periods(&alike[range.clone()]) {
            for starts in starts(alike, range.clone(), period) {
                let run = self.placed(starts, period, is_exact);
                let is_better = best.as_ref().is_none_or(|best| {
                    let (saved, most) = (run.saved() * 50, best.saved() * 50);
                    saved > most + best.saved() || saved + best.saved() > most && period < best.period
                });
                if is_better {
                    best = Some(run);
                }
            }
        }
        best
    }

    /// The run whose windows may start at these ticks, cut where the fewest bytes cross.
    fn placed(&self, starts: Range<usize>, period: usize, is_exact: bool) -> Run {
        let (begin, end) = (starts.start, starts.end - 1 + 2 * period);
        let copies = (end - begin) / period;
        let crossing = |start: usize, copies: usize| -> u64 {
            (0..copies).map(|copy| self.crossing[start + copy * period]).sum()
        };
        let best = |copies: usize| {
            let least = (begin..=end - copies * period).min_by_key(|&start| crossing(start, copies));
            least.unwrap_or(begin)
        };
        let mut run = Run { start: best(copies), period, copies, is_exact };
        // One copy less may allow a much better cut.
        if copies > 2 {
            let other = best(copies - 1);
            if crossing(other, copies - 1) * 10 < crossing(run.start, copies - 1) * 9 {
                (run.start, run.copies) = (other, copies - 1);
            }
        }
        run
    }

    /// Stretches of about `usual` operators, cut where few bytes cross.
    fn cut(&self, range: Range<usize>, usual: usize) -> Vec<Range<usize>> {
        let pieces = (range.len() + usual / 2) / usual;
        let half = range.len() / pieces.max(1) / 2;
        let (mut stretches, mut at) = (Vec::new(), range.start);
        for piece in 1..pieces {
            let mark = range.start + range.len() * piece / pieces;
            let near = mark.saturating_sub(half).max(at + 1)..(mark + half).min(range.end);
            if let Some(cut) = near.min_by_key(|&tick| (self.crossing[tick], tick.abs_diff(mark))) {
                stretches.push(at..cut);
                at = cut;
            }
        }
        stretches.push(at..range.end);
        stretches.retain(|stretch| !stretch.is_empty());
        stretches
    }

    /// The stretches as layers: those of runs come first, and others join a class if they are much like its first.
    fn classified(&self, stretches: &[(Range<usize>, Option<bool>)]) -> Vec<Layer> {
        let bag = |ticks: &Range<usize>, is_exact: bool| {
            let mut bag = self.alike[usize::from(is_exact)][ticks.clone()].to_vec();
            bag.sort_unstable();
            bag
        };
        let mut order: Vec<usize> = (0..stretches.len()).collect();
        order.sort_by_key(|&i| stretches[i].1.is_none());
        let mut classes: Vec<(bool, Vec<u32>)> = Vec::new();
        let mut of = vec![0; stretches.len()];
        for i in order {
            let (ticks, run) = &stretches[i];
            let bags = [bag(ticks, false), bag(ticks, true)];
            let found = classes.iter().position(|(is_exact, first)| {
                let own = &bags[usize::from(*is_exact)];
                common(first, own) * 100 >= first.len().max(own.len()) * ALIKE_PERCENT
            });
            of[i] = found.unwrap_or_else(|| {
                let is_exact = run.unwrap_or(true);
                classes.push((is_exact, bags[usize::from(is_exact)].clone()));
                classes.len() - 1
            });
        }
        let mut copies = vec![0; classes.len()];
        let layers = stretches.iter().zip(of).map(|((ticks, _), class)| {
            copies[class] += 1;
            Layer { ticks: ticks.clone(), class, copy: copies[class] - 1, is_exact: classes[class].0 }
        });
        layers.collect()
    }
}

/// The last of the ticks before the turn.
pub(super) fn last_before(ticks: &[u32], turn: usize) -> Option<usize> {
    let at = ticks.partition_point(|&tick| (tick as usize) < turn);
    at.checked_sub(1).map(|at| ticks[at] as usize)
}

/// By tick before the turn, a number that equal operators share.
fn numbers(problem: &Problem, turn: usize, is_exact: bool) -> Vec<u32> {
    let mut known: BTreeMap<(u32, bool, usize, Vec<u64>), u32> = BTreeMap::new();
    let number = |op: &lmsc_schedule::problem::Operator| {
        let mut sizes: Vec<u64> = Vec::new();
        if is_exact {
            sizes.extend(op.reads.iter().map(|&tensor| problem.tensors[tensor].bytes));
            sizes.sort_unstable();
            sizes.extend(op.produces.iter().map(|&tensor| problem.tensors[tensor].bytes));
            sizes.push(op.workspace);
        }
        let next = known.len() as u32;
        let counts = op.reads.len() << 32 | op.produces.len();
        *known.entry((op.kind, op.recomputable, counts, sizes)).or_insert(next)
    };
    problem.ops[..turn].iter().map(number).collect()
}

/// The commonest distances between equal operators, of each to the last three before it.
fn periods(alike: &[u32]) -> Vec<usize> {
    let mut last: BTreeMap<u32, [Option<usize>; 3]> = BTreeMap::new();
    let mut often: BTreeMap<usize, usize> = BTreeMap::new();
    for (tick, &number) in alike.iter().enumerate() {
        let seen = last.entry(number).or_default();
        seen.iter().flatten().for_each(|&at| *often.entry(tick - at).or_default() += 1);
        *seen = [Some(tick), seen[0], seen[1]];
    }
    let is_period = |&(period, count): &(usize, usize)| {
        period >= SHORTEST && count + 1 >= period / 2 && 2 * period <= alike.len()
    };
    let mut periods: Vec<(usize, usize)> = often.into_iter().filter(is_period).collect();
    periods.sort_by_key(|&(period, count)| (Reverse(count), period));
    periods.into_iter().take(PERIODS).map(|(period, _)| period).collect()
}

/// The ranges of ticks at which a window of one period starts that nearly equals the next one.
fn starts(alike: &[u32], range: Range<usize>, period: usize) -> Vec<Range<usize>> {
    let is_equal = |tick: usize| usize::from(alike[tick] == alike[tick + period]);
    let needed = period - period / DIFFERING;
    let mut equal: usize = (range.start..range.start + period).map(is_equal).sum();
    let mut found: Vec<Range<usize>> = Vec::new();
    for tick in range.start..=range.end - 2 * period {
        if equal >= needed {
            match found.last_mut().filter(|last| last.end == tick) {
                Some(last) => last.end += 1,
                None => found.push(tick..tick + 1),
            }
        }
        if tick + 2 * period < range.end {
            equal = equal + is_equal(tick + period) - is_equal(tick);
        }
    }
    found
}

/// The number of elements that two sorted lists have in common.
fn common(one: &[u32], other: &[u32]) -> usize {
    let (mut i, mut j, mut both) = (0, 0, 0);
    while i < one.len() && j < other.len() {
        match one[i].cmp(&other[j]) {
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
            std::cmp::Ordering::Equal => (i, j, both) = (i + 1, j + 1, both + 1),
        }
    }
    both
}

#[cfg(test)]
mod tests {
    use lmsc_ir::Phase;
    use lmsc_schedule::problem::Operator;
    use lmsc_testing::small::{op, problem, produced};

    use super::*;

    /// A chain of operators of these kinds, each of which reads the result before it, and one of the backward phase.
    fn chain(kinds: &[u32]) -> Problem {
        let tensors = vec![produced(8); kinds.len() + 1];
        let mut ops: Vec<Operator> = Vec::new();
        for (tick, &kind) in (0u32..).zip(kinds) {
            let reads = tick.checked_sub(1);
            ops.push(Operator { kind, ..op(Phase::Forward, 1, reads.as_slice(), &[tick]) });
        }
        let last = kinds.len() as u32;
        ops.push(op(Phase::Backward, 1, &[last - 1], &[last]));
        Problem { kinds: (0..10).map(|kind| kind.to_string()).collect(), ..problem(&tensors, &ops) }
    }

    fn layers(kinds: &[u32]) -> Vec<(Range<usize>, usize, usize)> {
        let problem = chain(kinds);
        let remat = Rematerializer::new(&problem);
        let layers = Forward::new(&problem, &remat, &problem.uses(), kinds.len()).layers();
        layers.into_iter().map(|layer| (layer.ticks, layer.class, layer.copy)).collect()
    }

    #[test]
    fn repeated_layers_are_copies_of_one_class() {
        let layer = [1, 2, 3, 4, 5];
        let kinds = [&[7, 8][..], &layer, &layer, &layer, &layer, &[9]].concat();
        let found = layers(&kinds);
        let copies = found.iter().filter(|(ticks, class, _)| *class == 0 && ticks.len() == 5).count();
        assert!(copies >= 3, "{found:?}");
        let covered: Vec<usize> = found.iter().flat_map(|(ticks, ..)| ticks.clone()).collect();
        assert_eq!(covered, (0..kinds.len()).collect::<Vec<usize>>());
    }

    #[test]
    fn operators_that_do_not_repeat_are_cut_into_stretches() {
        let found = layers(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        let covered: Vec<usize> = found.iter().flat_map(|(ticks, ..)| ticks.clone()).collect();
        assert_eq!(covered, (0..10).collect::<Vec<usize>>());
        assert!(layers(&[1]).len() == 1);
    }
}

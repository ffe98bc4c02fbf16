//! A step as a line of moments, for the searches of this module.

use std::ops::Range;

use cranelift_entity::SecondaryMap;
use lmsc_schedule::problem::{Problem, TensorId};

use super::StepPlace;

/// A step as a sequence of moments, and the tensors that can be absent at each.
///
/// Steps follow each other: the places of one, its start, its operators and its end, then those of the next. A line is a part
/// of that sequence. The line of one step goes from the end of the previous step to the start of the next, because a variable
/// is at the end where it was at the start; seen from its end it is a line again. Others go from an operator to the same
/// operator of the next step, which takes no time there.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// The place of moment 0, counted from the start of the step.
    first: i64,
    /// For each moment, its duration.
    pub(super) nanos: Vec<u64>,
    /// For each moment, the bytes among those that can be absent that fit on the device nonetheless.
    pub(super) slack: Vec<u64>,
    /// The tensors that can be absent.
    pub(super) spans: Vec<Span>,
    /// The rates of copies out and in; seen from the end they are exchanged.
    pub(super) rates: [Rate; 2],
    /// Whether the line is seen from its end.
    pub(super) mirrored: bool,
}

/// Moments at which a tensor can be absent.
#[derive(Clone, Debug)]
pub(super) struct Span {
    pub(super) tensor: TensorId,
    pub(super) moments: Range<u32>,
    pub(super) bytes: u64,
    /// The moment whose end a copy out must not precede, if one is needed.
    pub(super) release: Option<u32>,
    /// The moment before whose start a copy in must have ended, if one is needed.
    pub(super) due: Option<u32>,
}

/// The duration of copies in one direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    bytes_per_second: u64,
    latency: u64,
}

impl Rate {
    /// The least time in which this number of bytes can be copied, each copy of at most `largest`.
    pub(super) fn nanos(self, bytes: u64, largest: u64) -> u64 {
        let copying = (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(self.bytes_per_second));
        let starting = u128::from(bytes.div_ceil(largest.max(1))) * u128::from(self.latency);
        u64::try_from(copying + starting).unwrap_or(u64::MAX)
    }

    /// An approximation of [`Rate::nanos`] that is faster to compute.
    pub(super) fn about(self, bytes: f64, largest: f64) -> f64 {
        let starting = if self.latency == 0 { 0.0 } else { (bytes / largest).ceil() * self.latency as f64 };
        bytes * 1e9 / self.bytes_per_second as f64 + starting
    }
}

impl Line {
    /// The line of a step, for plans that only swap.
    pub(super) fn of(problem: &Problem, budget: u64) -> Line {
        Line::new(problem, budget, false, None)
    }

    /// The line of a step, for plans that also recompute: recomputable tensors may be absent at no cost.
    pub(super) fn recomputing(problem: &Problem, budget: u64) -> Line {
        Line::new(problem, budget, true, None)
    }

    /// The line from the operator of a tick to that of the next step, for plans that only swap.
    pub(super) fn around(problem: &Problem, budget: u64, tick: u32) -> Line {
        Line::new(problem, budget, false, Some(tick))
    }

    fn new(problem: &Problem, budget: u64, recompute: bool, cut: Option<u32>) -> Line {
        let uses = problem.uses();
        let live = problem.live_by_moment(&uses);
        let period = live.len() as i64;
        let (first, last) =
            cut.map_or((-1, period), |tick| (i64::from(tick) + 1, i64::from(tick) + 1 + period));
        let moments = first..last + 1;
        let index = |place: i64| place.rem_euclid(period) as usize;
        let mut nanos = vec![0];
        nanos.extend(problem.ops.iter().map(|op| op.nanos));
        nanos.push(0);
        let mut nanos: Vec<u64> = moments.clone().map(|place| nanos[index(place)]).collect();
        nanos.last_mut().into_iter().for_each(|last| *last = 0);

        let mut changes: SecondaryMap<TensorId, Vec<u32>> = SecondaryMap::new();
        let mut again: SecondaryMap<TensorId, bool> = SecondaryMap::new();
        for (tick, op) in problem.ops.iter().enumerate() {
            op.produces.iter().chain(&op.changes).for_each(|&t| changes[t].push(tick as u32));
            op.produces.iter().for_each(|&t| again[t] = recompute && op.recomputable);
        }
        let op = |tick: u32| i64::from(tick) + 1;
        let mut spans = Vec::new();
        let may_leave = problem.tensors.keys().filter(|&t| problem.tensors[t].swappable || again[t]);
        let mut windows = Vec::new();
        may_leave.for_each(|tensor| problem.add_windows_of(tensor, &uses, &mut windows));
        for window in windows {
            let (facts, changes) = (problem.tensors[window.tensor], &changes[window.tensor]);
            let earlier = changes.iter().filter(|&&t| t < window.from);
            let changed = earlier.clone().next_back().map(|&t| op(t));
            let before = changes.last().filter(|_| facts.is_variable()).map(|&t| op(t) - period);
            let given = (facts.given && !facts.kept).then_some(0);
            let next = op(window.until) + if window.wraps() { period } else { 0 };
            let (release, due) = match window.wraps() {
                false if again[window.tensor] && earlier.count() == 1 => (None, None),
                false if !facts.swappable => continue,
                _ => (changed.or(given).or(before), Some(next)),
            };
            // In the previous step, in this one and in the next.
            for shift in [-period, 0, period] {
                let moment =
                    |place: i64| (moments.contains(&(place + shift))).then(|| (place + shift - first) as u32);
                let from = (op(window.from) + shift).max(first);
                let until = (next + shift).min(last + 1);
                if from < until {
                    spans.push(Span {
                        tensor: window.tensor,
                        moments: (from - first) as u32..(until - first) as u32,
                        bytes: facts.bytes,
                        release: release.and_then(moment),
                        due: due.and_then(moment),
                    });
                }
            }
        }
        let mut away = vec![0i64; nanos.len() + 1];
        for span in &spans {
            away[span.moments.start as usize] += span.bytes as i64;
            away[span.moments.end as usize] -= span.bytes as i64;
        }
        let stays = moments.clone().zip(away).scan(0, |now, (place, change)| {
            *now += change;
            Some(live[index(place)] - *now as u64)
        });
        let slack = stays.map(|stays| budget.saturating_sub(stays)).collect();
        let link = problem.link;
        let rates = [link.out_bytes_per_second, link.in_bytes_per_second]
            .map(|rate| Rate { bytes_per_second: rate.max(1), latency: link.latency_nanos });
        Line { first, nanos, slack, spans, rates, mirrored: false }
    }

    /// The number of moments.
    pub(super) fn len(&self) -> u32 {
        self.nanos.len() as u32
    }

    /// The line seen from its end.
    pub(super) fn mirrored(&self) -> Line {
        let last = self.len() - 1;
        let spans = self.spans.iter().map(|span| Span {
            tensor: span.tensor,
            moments: last + 1 - span.moments.end..last + 1 - span.moments.start,
            bytes: span.bytes,
            release: span.due.map(|due| last - due),
            due: span.release.map(|release| last - release),
        });
        Line {
            first: self.first,
            nanos: self.nanos.iter().rev().copied().collect(),
            slack: self.slack.iter().rev().copied().collect(),
            spans: spans.collect(),
            rates: [self.rates[1], self.rates[0]],
            mirrored: !self.mirrored,
        }
    }

    /// The place of a moment in the problem.
    pub(super) fn place(&self, moment: u32) -> StepPlace {
        // A line of one step has one moment before it and one after.
        let period = i64::from(self.len()) - if self.is_of_a_step() { 2 } else { 1 };
        match (self.first + i64::from(self.unmirrored(moment))).rem_euclid(period) {
            0 => StepPlace::Start,
            place if place == period - 1 => StepPlace::End,
            place => StepPlace::Op(place as u32 - 1),
        }
    }

    /// The place of a moment, as [`Line::place`], except that nothing precedes the start or follows the end of a step.
    pub(super) fn when(&self, moment: u32) -> StepPlace {
        match self.unmirrored(moment) {
            0 if self.is_of_a_step() => StepPlace::Start,
            m if self.is_of_a_step() && m == self.len() - 1 => StepPlace::End,
            _ => self.place(moment),
        }
    }

    fn is_of_a_step(&self) -> bool {
        self.first < 0
    }

    fn unmirrored(&self, moment: u32) -> u32 {
        if self.mirrored { self.len() - 1 - moment } else { moment }
    }
}

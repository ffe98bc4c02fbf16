//! A step as a line of moments, for the searches of this module.

use std::ops::Range;

use cranelift_entity::SecondaryMap;

use super::Place;
use crate::problem::{Problem, TensorId};

/// A step as moments in a row, and what can be away at each.
///
/// Moment 1 is the start, moment `t + 2` the operator of tick `t`, the last but one the end. A variable is at the
/// end where it was at the start, so the end is seen once more before the start, as moment 0, and the start once
/// more after the end: then a line seen from its end is a line again.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// By moment, how long it lasts.
    pub(super) nanos: Vec<u64>,
    /// By moment, the bytes of what can be away that fit on the device nonetheless.
    pub(super) slack: Vec<u64>,
    /// What can be away.
    pub(super) spans: Vec<Span>,
    /// How copies out and in go; seen from the end they trade places.
    pub(super) rates: [Rate; 2],
    /// Whether it is seen from its end.
    pub(super) mirrored: bool,
}

/// Moments at which a tensor can be away.
#[derive(Clone, Debug)]
pub(super) struct Span {
    pub(super) tensor: TensorId,
    pub(super) moments: Range<u32>,
    pub(super) bytes: u64,
    /// The moment whose end a copy out must not start before, if there has to be one.
    pub(super) release: Option<u32>,
    /// The moment before whose start a copy in must have ended, if there has to be one.
    pub(super) due: Option<u32>,
}

/// How long copies in one direction take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    bytes_per_second: u64,
    latency: u64,
}

impl Rate {
    /// The least time in which so many bytes can be copied, each copy of at most `largest`.
    pub(super) fn nanos(self, bytes: u64, largest: u64) -> u64 {
        let copying = (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(self.bytes_per_second));
        let starting = u128::from(bytes.div_ceil(largest.max(1))) * u128::from(self.latency);
        u64::try_from(copying + starting).unwrap_or(u64::MAX)
    }

    /// About what [`Rate::nanos`] gives, faster.
    pub(super) fn about(self, bytes: f64, largest: f64) -> f64 {
        let starting = if self.latency == 0 { 0.0 } else { (bytes / largest).ceil() * self.latency as f64 };
        bytes * 1e9 / self.bytes_per_second as f64 + starting
    }
}

impl Line {
    /// The line for plans that only swap.
    pub(super) fn of(problem: &Problem, budget: u64) -> Line {
        Line::new(problem, budget, false)
    }

    /// The line for plans that recompute too: what can be computed again is away for nothing.
    pub(super) fn recomputing(problem: &Problem, budget: u64) -> Line {
        Line::new(problem, budget, true)
    }

    fn new(problem: &Problem, budget: u64, recompute: bool) -> Line {
        let ticks = problem.ticks();
        let mut nanos = vec![0, 0];
        nanos.extend(problem.ops.iter().map(|op| op.nanos));
        nanos.extend([0, 0]);
        let uses = problem.uses();
        let mut live = problem.live_by_moment(&uses);
        live.extend(live.first().copied());
        live.insert(0, live[live.len() - 2]);

        let mut changes: SecondaryMap<TensorId, Vec<u32>> = SecondaryMap::new();
        let mut again: SecondaryMap<TensorId, bool> = SecondaryMap::new();
        for (tick, op) in problem.ops.iter().enumerate() {
            op.produces.iter().chain(&op.changes).for_each(|&t| changes[t].push(tick as u32));
            op.produces.iter().for_each(|&t| again[t] = recompute && op.recomputable);
        }
        let mut spans = Vec::new();
        let may_leave = problem.tensors.keys().filter(|&t| problem.tensors[t].swappable || again[t]);
        for window in may_leave.flat_map(|tensor| problem.windows_of(tensor, &uses)) {
            let facts = problem.tensors[window.tensor];
            let earlier = changes[window.tensor].iter().filter(|&&t| t < window.from);
            let changed = earlier.clone().next_back().map(|&t| t + 2);
            let mut add = |moments: Range<u32>, release, due| {
                spans.push(Span { tensor: window.tensor, moments, bytes: facts.bytes, release, due });
            };
            let given = (facts.given && !facts.kept).then_some(1);
            if window.wraps() {
                add(window.from + 2..ticks + 4, changed, None);
                add(0..window.until + 2, None, Some(window.until + 2));
            } else if again[window.tensor] && earlier.count() == 1 {
                add(window.from + 2..window.until + 2, None, None);
            } else if facts.swappable {
                add(window.from + 2..window.until + 2, changed.or(given), Some(window.until + 2));
            }
        }
        let mut away = vec![0i64; nanos.len() + 1];
        for span in &spans {
            away[span.moments.start as usize] += span.bytes as i64;
            away[span.moments.end as usize] -= span.bytes as i64;
        }
        let stays = live.into_iter().zip(away).scan(0, |now, (live, change)| {
            *now += change;
            Some(live - *now as u64)
        });
        let slack = stays.map(|stays| budget.saturating_sub(stays)).collect();
        let link = problem.link;
        let rates = [link.out_bytes_per_second, link.in_bytes_per_second]
            .map(|rate| Rate { bytes_per_second: rate.max(1), latency: link.latency_nanos });
        Line { nanos, slack, spans, rates, mirrored: false }
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
            nanos: self.nanos.iter().rev().copied().collect(),
            slack: self.slack.iter().rev().copied().collect(),
            spans: spans.collect(),
            rates: [self.rates[1], self.rates[0]],
            mirrored: !self.mirrored,
        }
    }

    /// What a moment is in the problem.
    pub(super) fn place(&self, moment: u32) -> Place {
        let ticks = self.len() - 4;
        match self.unmirrored(moment) {
            1 => Place::Start,
            0 => Place::End,
            m if m < ticks + 2 => Place::Op(m - 2),
            m if m == ticks + 2 => Place::End,
            _ => Place::Start,
        }
    }

    /// When a moment is: as [`Line::place`], except that nothing is before the start or after the end.
    pub(super) fn when(&self, moment: u32) -> Place {
        match self.unmirrored(moment) {
            0 => Place::Start,
            m if m == self.len() - 1 => Place::End,
            _ => self.place(moment),
        }
    }

    fn unmirrored(&self, moment: u32) -> u32 {
        if self.mirrored { self.len() - 1 - moment } else { moment }
    }
}

//! The bound for plans that only swap, whole tensors or ranges of bytes.
//!
//! At a moment `i` the tensors that can be swapped out have more bytes than the `slack(i)` that fit: the others are swapped
//! out.
//!
//! - Each byte that is swapped out at the start `S(i)` was copied out after its last change, at `j` say, and before `S(i)`.
//!   Of the tensors that changed last at `j` or later, all bytes but `slack(i)` are swapped out, so that these were copied
//!   out between the end `C(j)` and `S(i)`, one after the other.
//! - Each byte that is swapped out at the end `C(i)` is copied in after that and before the tensor's next use, at `b` say. Of
//!   the tensors used next at `b` or earlier, all bytes but `slack(i)` are copied in between `C(i)` and `S(b)`.
//!
//! Tensors that need no copy (a variable at the end, after its last use, or one that did not change before it was swapped
//! out) may be swapped out at no cost and count in neither direction. A variable that is swapped out at the start is copied
//! out after its last change and before the end, one that is swapped out at the end was copied in before its first use:
//! [`Line`] contains start and end a second time for these.
//!
//! Steps follow each other, each like the last. So the same holds from an operator to itself in the next step, later by the
//! makespan of a step: there a variable that is swapped out before the end is copied in before its first use in the next
//! step, or else before the end.
//!
//! Each of these facts bounds `S(y)` from below by `C(x)` plus a time, with `x` before `y`; so does the order of the
//! operators. The bound is the longest path. It assumes nothing about the pieces except that a copy is of one tensor, so it
//! holds for every choice of pieces. Copies in one direction never overlap, on both kinds of link; on a half-duplex link the
//! copies of one path cannot either, because its parts follow one another.
//!
//! # Source
//! OPT §4 (the fractional relaxation) for chains; generalised here to any order of operators.

use std::cmp::Reverse;

use lmsc_schedule::problem::Problem;

use super::line::{Line, Span};
use super::present::{Node, Present};
use super::{Certificate, CopyInterval, Fact, Proof, StepPlace, Way, certify};

/// A bound on the makespan of every plan that only swaps.
///
/// Its time is proportional to the operators times the windows that contain one; 5,000 operators take some 100 ms.
pub(super) fn swap(problem: &Problem, budget: u64) -> Certificate {
    let line = Line::of(problem, budget);
    let table = Table::of(&line, |_, _| None);
    let last = line.len() - 1;
    let proof = Proof::Swap { facts: table.facts(&line, [last]) };
    let step = certificate(problem, budget, table.start[last as usize], proof);
    match table.middle(&line, last).map(|moment| line.place(moment)) {
        Some(StepPlace::Op(tick)) => {
            let around = around(problem, budget, tick);
            if around.nanos > step.nanos { around } else { step }
        }
        _ => step,
    }
}

/// The bound from the operator of a tick to itself in the next step.
pub(super) fn around(problem: &Problem, budget: u64, tick: u32) -> Certificate {
    let line = Line::around(problem, budget, tick);
    let table = Table::of(&line, |_, _| None);
    let last = line.len() - 1;
    let proof = Proof::Around { tick, facts: table.facts(&line, [last]) };
    certificate(problem, budget, table.start[last as usize], proof)
}

/// The certificate with the full bound of the proof: a table counts every copy as one of the largest tensor; the chosen facts
/// may prove more.
fn certificate(problem: &Problem, budget: u64, found: u64, proof: Proof) -> Certificate {
    let shown = certify::proven(problem, budget, &proof).ok().and_then(|nanos| nanos.try_into().ok());
    Certificate { nanos: found.max(shown.unwrap_or(0)), proof }
}

/// By moment of a line, a lower bound on its start.
pub(super) struct Table {
    pub(super) start: Vec<u64>,
    /// For each moment, the reason for the bound, unless it is the end of the previous moment.
    pub(super) why: Vec<Option<Why>>,
}

/// The spans of a line in the order of a key of theirs, and which of them contain the moment.
struct Sorted<K> {
    /// The keys in order.
    keys: Vec<K>,
    /// By span of the line, its place in the order, unless it has no key.
    places: Vec<Option<u32>>,
    present: Present,
    /// Number of keys of a moment of which none is left out.
    nearest: usize,
}

impl<K: Copy + Ord> Sorted<K> {
    fn of(line: &Line, key: impl Fn(&Span) -> Option<K>) -> Sorted<K> {
        let keyed = line.spans.iter().enumerate();
        let mut keyed: Vec<(K, usize)> =
            keyed.filter_map(|(index, span)| Some((key(span)?, index))).collect();
        keyed.sort_unstable();
        let mut places = vec![None; line.spans.len()];
        for (place, &(_, index)) in keyed.iter().enumerate() {
            places[index] = Some(place as u32);
        }
        let present = Present::none_of(keyed.len());
        let nearest = (NEAREST_LINKS / line.len().max(1) as usize).max(1);
        Sorted { nearest, keys: keyed.into_iter().map(|(key, _)| key).collect(), places, present }
    }

    /// Sets the bytes of a span: 0 if it does not contain the moment.
    fn set(&mut self, span: usize, bytes: u64) {
        if let Some(place) = self.places[span] {
            self.present.set(place as usize, bytes);
        }
    }

    /// Keys at which the spans up to it have more than this number of bytes, with these spans: the nearest of them; then the spans
    /// of each have an eighth more bytes beyond that number than those of the last.
    fn above(&self, bytes: u64) -> impl Iterator<Item = (K, Node)> {
        let (mut above, mut count) = (bytes, 0);
        std::iter::from_fn(move || {
            let place = self.present.first_above(above)?;
            let key = self.keys[place];
            let end = place + self.keys[place..].partition_point(|&other| other == key);
            let upto = self.present.before(end);
            count += 1;
            let over = upto.bytes - bytes;
            above = upto.bytes + if count < self.nearest { 0 } else { over / 8 };
            Some((key, upto))
        })
    }
}

/// Number of links of all moments together, the nearest of each, that are all looked at. With some 2,000 operators or fewer, these
/// are all; with 100,000, all took a third of the time of planning.
const NEAREST_LINKS: usize = 2_000_000;

/// The reason for the lower bound on the start of a moment.
#[derive(Clone, Copy, Debug)]
pub(super) enum Why {
    /// The link from one moment to this one, at one of the two.
    Link { at: u32, after: u32 },
    /// Whole tensors must be copied out before it, found at this resolution.
    Whole { quantum: u64 },
}

impl Table {
    /// The table of the line. `whole` may give a better bound on the start of a moment, given the table up to it.
    pub(super) fn of(line: &Line, mut whole: impl FnMut(u32, &[u64]) -> Option<(u64, Why)>) -> Table {
        let count = line.len() as usize;
        let mut table = Table { start: vec![0; count], why: vec![None; count] };
        let [mut opens, mut closes] = [vec![Vec::new(); count + 1], vec![Vec::new(); count + 1]];
        for (index, span) in line.spans.iter().enumerate() {
            opens[span.moments.start as usize].push(index);
            closes[span.moments.end as usize].push(index);
        }
        // The latest release first, and the earliest due first.
        let mut released = Sorted::of(line, |span| span.release.map(Reverse));
        let mut due = Sorted::of(line, |span| span.due);
        // For each moment, the time of the operators before it.
        let mut computed = vec![0];
        computed.extend(line.nanos.iter().scan(0, |sum, nanos| {
            *sum += nanos;
            Some(*sum)
        }));
        let mut all = 0;
        for moment in 0..line.len() {
            let m = moment as usize;
            for &index in &closes[m] {
                all -= line.spans[index].bytes;
                released.set(index, 0);
                due.set(index, 0);
            }
            for &index in &opens[m] {
                let bytes = line.spans[index].bytes;
                all += bytes;
                released.set(index, bytes);
                due.set(index, bytes);
            }
            if m > 0 && table.start[m] <= table.end(line, moment - 1) {
                (table.start[m], table.why[m]) = (table.end(line, moment - 1), None);
            }
            if all > line.slack[m] {
                table.copies_before(line, moment, &released);
                if let Some((start, why)) = whole(moment, &table.start).filter(|(s, _)| *s > table.start[m]) {
                    (table.start[m], table.why[m]) = (start, Some(why));
                }
                table.copies_after(line, moment, &due, &computed);
            }
        }
        table
    }

    /// A lower bound on the end of the moment.
    pub(super) fn end(&self, line: &Line, moment: u32) -> u64 {
        self.start[moment as usize] + line.nanos[moment as usize]
    }

    /// Links of copies out, from some release to this moment.
    fn copies_before(&mut self, line: &Line, moment: u32, released: &Sorted<Reverse<u32>>) {
        let slack = line.slack[moment as usize];
        let all = released.present.all();
        let most = line.rates[0].about(all.bytes.saturating_sub(slack) as f64, all.largest as f64);
        let mut best = (self.start[moment as usize] as f64, None);
        for (Reverse(release), Node { bytes, largest }) in released.above(slack) {
            let from = self.end(line, release) as f64;
            if from + most <= best.0 {
                break;
            }
            let at = from + line.rates[0].about((bytes - slack) as f64, largest as f64);
            if at > best.0 {
                best = (at, Some((release, bytes - slack, largest)));
            }
        }
        if let Some((after, bytes, largest)) = best.1 {
            let start = self.end(line, after).saturating_add(line.rates[0].nanos(bytes, largest));
            self.improve(moment, start, Why::Link { at: moment, after });
        }
    }

    /// Links of copies in, from this moment to some due one.
    fn copies_after(&mut self, line: &Line, moment: u32, due: &Sorted<u32>, computed: &[u64]) {
        let slack = line.slack[moment as usize];
        let from = self.end(line, moment);
        let mut most = None;
        for (by, Node { bytes, largest }) in due.above(slack) {
            // No link is longer: the later ones have the same or a larger tensor, so as many copies at most.
            let most =
                *most.get_or_insert_with(|| line.rates[1].nanos(due.present.all().bytes - slack, largest));
            // The operators between take as long as all copies, so neither this nor a later link shows anything.
            if computed[by as usize] - computed[moment as usize + 1] >= most {
                break;
            }
            let about = from as f64 + line.rates[1].about((bytes - slack) as f64, largest as f64);
            if about >= self.start[by as usize] as f64 {
                let start = from.saturating_add(line.rates[1].nanos(bytes - slack, largest));
                self.improve(by, start, Why::Link { at: moment, after: moment });
            }
        }
    }

    fn improve(&mut self, moment: u32, start: u64, why: Why) {
        let m = moment as usize;
        if start > self.start[m] {
            (self.start[m], self.why[m]) = (start, Some(why));
        }
    }

    /// The moment halfway in time among those on which the bound of the moment depends.
    fn middle(&self, line: &Line, of: u32) -> Option<u32> {
        let mut moment = of;
        while moment > 0 && 2 * self.start[moment as usize] > self.start[of as usize] {
            moment = match self.why[moment as usize] {
                Some(Why::Link { after, .. }) => after,
                _ => moment - 1,
            };
        }
        let is_op = |moment: u32| matches!(line.place(moment), StepPlace::Op(_));
        (moment..of).find(|&moment| is_op(moment))
    }

    /// The facts on which the bounds of these moments depend, by the moment of each fact.
    pub(super) fn facts(&self, line: &Line, moments: impl IntoIterator<Item = u32>) -> Vec<Fact> {
        let mut needed = vec![false; line.nanos.len()];
        moments.into_iter().for_each(|moment| needed[moment as usize] = true);
        let mut facts = Vec::new();
        for moment in (1..line.len()).rev() {
            if !needed[moment as usize] {
                continue;
            }
            match self.why[moment as usize] {
                None => needed[moment as usize - 1] = true,
                Some(Why::Link { at, after }) => {
                    facts.push(Fact::Link(link(line, at, after, moment)));
                    needed[after as usize] = true;
                }
                Some(Why::Whole { quantum }) => {
                    facts.push(Fact::Whole { at: line.place(moment), quantum });
                    let spans = line.spans.iter().filter(|span| span.moments.contains(&moment));
                    spans.filter_map(|span| span.release).for_each(|release| needed[release as usize] = true);
                }
            }
        }
        facts.reverse();
        facts
    }
}

/// The link from one moment to another, at one of the two.
pub(super) fn link(line: &Line, at: u32, after: u32, before: u32) -> CopyInterval {
    let (way, whens) = if line.mirrored {
        (if at == before { Way::In } else { Way::Out }, [before, after])
    } else {
        (if at == before { Way::Out } else { Way::In }, [after, before])
    };
    let [after, before] = whens.map(|moment| line.when(moment));
    CopyInterval { way, at: line.place(at), after, before }
}

//! OPT's own bound: operators one after the other, and copies one after the other.
//!
//! What does not fit at a place leaves before it and comes back after it. On a half-duplex link both take their time
//! one after the other, on a full-duplex one only the longer counts.
//!
//! # Source
//! OPT §3.2, Propositions 2 and 3. The paper's link is half duplex and all that does not fit moves twice.

use super::line::Line;
use super::{Certificate, Proof};
use crate::problem::{Duplex, Problem};

/// The larger of the time of all operators and that of the copies that cannot be avoided, as in the paper.
///
/// Valid for every plan that only swaps, and weaker than [`super::swap`].
pub fn paper(problem: &Problem, budget: u64) -> Certificate {
    let line = Line::of(problem, budget);
    let [mut out, mut back] = [0, 1].map(|way| copies(&line, way));
    // What leaves and comes back at the start and at the end is seen at either side of the line.
    let last = out.len() - 1;
    (out[0], out[1]) = (out[last - 1], out[last]);
    (back[last - 1], back[last]) = (back[0], back[1]);
    let both = out.iter().zip(&back).map(|(&out, &back)| match problem.link.duplex {
        Duplex::Half => out.saturating_add(back),
        Duplex::Full => out.max(back),
    });
    let compute = problem.compute_nanos();
    let most = both.zip(0..).max_by_key(|&(nanos, moment)| (nanos, std::cmp::Reverse(moment)));
    match most.filter(|&(nanos, _)| nanos > compute) {
        Some((nanos, moment)) => Certificate { nanos, proof: Proof::Paper { at: Some(line.place(moment)) } },
        None => Certificate { nanos: compute, proof: Proof::Paper { at: None } },
    }
}

/// By moment, how long the copies in one direction take at least.
fn copies(line: &Line, way: usize) -> Vec<u64> {
    let mut bytes = vec![0i64; line.nanos.len() + 1];
    let moves = line.spans.iter().filter(|span| [span.release, span.due][way].is_some());
    for span in moves.clone() {
        bytes[span.moments.start as usize] += span.bytes as i64;
        bytes[span.moments.end as usize] -= span.bytes as i64;
    }
    let largest = moves.map(|span| span.bytes).max().unwrap_or(0);
    let sums = line.slack.iter().zip(bytes).scan(0, |now, (slack, change)| {
        *now += change;
        Some((*now as u64).saturating_sub(*slack))
    });
    sums.map(|bytes| line.rates[way].nanos(bytes, largest)).collect()
}

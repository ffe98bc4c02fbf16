//! OPT's own bound: operators run one after the other, and so do copies.
//!
//! The bytes that do not fit at a place are copied out before it and in after it. On a half-duplex link both copies count,
//! one after the other; on a full-duplex link only the longer one counts.
//!
//! # Source
//! OPT §3.2, Propositions 2 and 3. The paper's link is half duplex, and all bytes that do not fit are copied in both
//! directions.

use lmsc_schedule::problem::{Duplex, Problem};

use super::line::Line;
use super::{Certificate, Proof};

/// The larger of the total time of all operators and that of the unavoidable copies, as in the paper.
///
/// Valid for every plan that only swaps, and weaker than [`super::swap`].
pub(super) fn paper(problem: &Problem, budget: u64) -> Certificate {
    let line = Line::of(problem, budget);
    let [mut out, mut back] = [0, 1].map(|way| copies(&line, way));
    // Copies at the start and at the end are counted at the other side of the line, too.
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

/// For each moment, the least time of the copies in one direction.
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

//! The bound for plans that only swap, from prices.
//!
//! Memory on the device has a price at every edge, where an operator starts or ends, and time on the link has one in every
//! stretch, a pause or an operator. In every plan,
//!
//! - at an edge at least the bytes over the budget are swapped out,
//! - in a stretch each direction copies no longer than it lasts, and an operator's stretch lasts as long as the operator.
//!
//! So with prices of at most one for both directions of a pause together, the pauses last at least
//!
//! `Σ price(edge)·(live(edge) - budget) - Σ price(operator)·nanos(operator) - Σ profit(tensor)`,
//!
//! where the profit of a tensor is the most that its bytes can gain, over all ways to be swapped out and in: the prices of
//! the edges at which they are swapped out, less those of the time in which they are copied. A copy out lies after the tensor
//! last changed and before the first edge at which it is swapped out, a copy in after the last such edge and before the next
//! use. A tensor that has been copied out and has not changed since may be swapped out again at no cost. A variable begins
//! and ends the step on the same side. Unused tensors are not swapped. A copy is of at most one tensor, so a byte takes at
//! least its share of the copy of the whole tensor, latency included.
//!
//! This is Lagrange's relaxation of the fluid problem, in which any part of a tensor may be swapped independently; the best
//! prices prove the full optimum of that problem. A link of [`mod@super::swap`] corresponds to prices of one between two
//! places, and a memory price of the copy time of a byte at one of them: chains of links are the prices that are 0 or 1.
//!
//! The search considers prices that change only at some edges: those of the links that prove most, and some evenly spaced
//! ones. On these it makes the bound smooth (`smooth.rs`), climbs by Newton's method (`ascent.rs`), and reduces the
//! smoothing. Twice it drops edges at which prices do not change and refines the stretches beside those at which they do.
//!
//! # Source
//! Nesterov, *Smooth minimization of non-smooth functions*, Math. Program. 103, 2005, for the smoothing by entropy.

mod ascent;
mod grid;
mod smooth;

use ascent::Ascent;
use grid::{Fluid, Grid};
use lmsc_schedule::problem::Problem;
use lmsc_schedule::tuned::Tunable;

use super::{Certificate, Fact, Price, Proof, StepPlace, certify, swap};

/// Number of evenly spaced edges at first, besides those of links, of which there are at most twice as many.
const EVENLY: Tunable<usize> = Tunable::new(48);

/// Smoothness of the bound at the end of each round, relative to the time of a byte.
const SMOOTHNESS: Tunable<[f64; 3]> = Tunable::new([0.02, 0.005, 0.000_6]);

/// Factor on the smoothness after a step.
const SHARPENING: Tunable<f64> = Tunable::new(0.35);

/// Change of prices at an edge above which the stretches beside it are refined; an edge with a smaller change is
/// dropped.
const REFINED_CHANGE: Tunable<f64> = Tunable::new(0.05);

/// Number of edges that are added within a refined stretch.
const REFINED_PARTS: Tunable<usize> = Tunable::new(3);

/// Distances from its limit at which a price is rounded to it: nearly none, and so that few prices are left
/// between.
const ROUNDED: [f64; 2] = [1e-6, 0.002];

/// Maximum number of edges in a round: a limit on the time for large steps.
const MOST_EDGES: usize = 256;

/// Maximum number of steps of inner loops: a limit on the time for large steps.
const WORK: u64 = 600_000_000;

/// The units of a price of one.
const ONE: f64 = (1u64 << 32) as f64;

/// A bound on the makespan of every plan that only swaps, at least that of [`swap()`].
///
/// Takes up to about a second for 2,000 operators if the budget makes any operator wait for the link, and a few for 5,000.
pub(super) fn prices(problem: &Problem, budget: u64) -> Certificate {
    let links = swap(problem, budget);
    // If links prove no more than the time of the operators, prices could, but on no graph known to us do they.
    if links.nanos <= problem.compute_nanos() {
        return links;
    }
    let found = search(problem, budget, &links.proof);
    if found.nanos > links.nanos { found } else { links }
}

/// The best bound found with prices, starting with the edges of these links.
pub(super) fn search(problem: &Problem, budget: u64, links: &Proof) -> Certificate {
    let fluid = Fluid::of(problem, budget);
    if fluid.excess.iter().all(|excess| *excess <= 0.0) {
        return proof(problem, budget, &fluid, &[], &[]);
    }
    let mut of_links = edges_of(problem, links);
    let every = of_links.len().div_ceil(2 * EVENLY.get()).max(1);
    of_links = of_links.into_iter().step_by(every).collect();
    let beside = |mut edges: Vec<usize>| {
        edges.extend(&of_links);
        edges.sort_unstable();
        edges.dedup();
        edges
    };
    let mut grid = Grid::of(&fluid, beside(fluid.evenly(EVENLY.get())));
    let mut prices = vec![0.3; grid.len()];
    prices[..grid.edges.len()].fill(0.1);
    // The first round takes three values of smoothness.
    let (mut tau, mut work) = (SMOOTHNESS.get()[0] / SHARPENING.get() / SHARPENING.get(), 0);
    let mut best: Option<Certificate> = None;
    for (round, end) in SMOOTHNESS.get().into_iter().enumerate() {
        if round > 0 {
            let finer = Grid::of(&fluid, beside(closer(&grid, &prices, fluid.excess.len())));
            if finer.edges.len() > MOST_EDGES {
                break;
            }
            prices = carried(&grid, &prices, &finer);
            grid = finer;
        }
        let mut ascent = Ascent::new(&grid, prices, work);
        loop {
            ascent.climb(tau, WORK);
            if tau <= end {
                break;
            }
            tau = (tau * SHARPENING.get()).max(end);
        }
        (prices, work) = (ascent.prices, ascent.work);
        let found =
            ROUNDED.map(|next| proof(problem, budget, &fluid, &grid.edges, &shares(&grid, &prices, next)));
        best = best.into_iter().chain(found).max_by_key(|proof| proof.nanos);
    }
    best.expect("a round at least")
}

/// The edges of the places of links.
fn edges_of(problem: &Problem, links: &Proof) -> Vec<usize> {
    let (tick, facts) = match links {
        Proof::Swap { facts } => (None, facts),
        Proof::Around { tick, facts } => (Some(StepPlace::Op(*tick)), facts),
        _ => return Vec::new(),
    };
    let links = facts.iter().flat_map(|fact| match fact {
        Fact::Link(link) => vec![link.at, link.after, link.before],
        Fact::Whole { at, .. } => vec![*at],
    });
    let edges = links.chain(tick).flat_map(|place| match place {
        StepPlace::Start => [0; 2],
        StepPlace::Op(tick) => [2 * tick as usize + 1, 2 * tick as usize + 2],
        StepPlace::End => [2 * problem.ops.len() + 1; 2],
    });
    edges.collect()
}

/// The edges of a grid at which prices change, and some in the stretches beside them.
fn closer(grid: &Grid, prices: &[f64], edges: usize) -> Vec<usize> {
    let change = |edge: usize| {
        let [out, back] =
            [Grid::out, Grid::back].map(|of| (prices[of(grid, edge)] - prices[of(grid, edge + 1)]).abs());
        prices[edge] + out + back
    };
    let changes: Vec<f64> = (0..grid.edges.len()).map(change).collect();
    let mut chosen = Vec::new();
    for stretch in 0..grid.nanos.len() {
        let from = stretch.checked_sub(1).map(|edge| (grid.edges[edge], changes[edge]));
        let to = grid.edges.get(stretch).map(|&edge| (edge, changes[stretch]));
        let most = from.into_iter().chain(to).map(|(_, change)| change).fold(0.0, f64::max);
        let (first, last) = (from.map_or(0, |(edge, _)| edge), to.map_or(edges - 1, |(edge, _)| edge));
        if most > REFINED_CHANGE.get() {
            chosen.extend(
                (1..REFINED_PARTS.get() + 1)
                    .map(|part| first + part * (last - first) / (REFINED_PARTS.get() + 1)),
            );
        }
        chosen.extend(to.filter(|(_, change)| *change > REFINED_CHANGE.get()).map(|(edge, _)| edge));
    }
    chosen
}

/// The prices of one grid on another, off their limits.
fn carried(from: &Grid, prices: &[f64], to: &Grid) -> Vec<f64> {
    const OFF: f64 = 1e-4;
    let mut carried = vec![0.003; to.len()];
    for (place, edge) in to.edges.iter().enumerate() {
        if let Ok(known) = from.edges.binary_search(edge) {
            carried[place] = prices[known];
        }
    }
    for stretch in 0..to.nanos.len() {
        let start = stretch.checked_sub(1).map(|edge| to.edges[edge]);
        let known = start.map_or(0, |start| from.edges.partition_point(|&edge| edge <= start));
        let [out, back] =
            [Grid::out, Grid::back].map(|of| prices[of(from, known)].clamp(OFF, 1.0 - 2.0 * OFF));
        let less = if to.paused[stretch] && !to.half { ((1.0 - OFF) / (out + back)).min(1.0) } else { 1.0 };
        (carried[to.out(stretch)], carried[to.back(stretch)]) = (out * less, back * less);
    }
    carried
}

/// The prices by stretch, of edges, of copies out and of copies in; prices closer than `next` to their limits are rounded to
/// them.
fn shares(grid: &Grid, prices: &[f64], next: f64) -> Vec<[f64; 3]> {
    let settled = |price: f64| match price {
        price if price < next => 0.0,
        price if price > 1.0 - next => 1.0,
        price => price,
    };
    let mut shares: Vec<[f64; 3]> = Vec::new();
    for stretch in 0..grid.nanos.len() {
        let room = stretch.checked_sub(1).map_or(0.0, |edge| prices[edge]);
        let out = settled(prices[grid.out(stretch)]);
        let back =
            settled(prices[grid.back(stretch)]).min(if grid.paused[stretch] { 1.0 - out } else { 1.0 });
        shares.push([if room < next { 0.0 } else { room }, out, if grid.half { 0.0 } else { back }]);
    }
    shares
}

/// The certificate of prices given by stretch of a grid: of the edge before it, and of the link in it.
fn proof(problem: &Problem, budget: u64, fluid: &Fluid, edges: &[usize], shares: &[[f64; 3]]) -> Certificate {
    let starts: Vec<usize> = [0].into_iter().chain(edges.iter().copied()).collect();
    // Nothing precedes the start.
    let empty = usize::from(edges.first() == Some(&0));
    let (starts, shares) = (&starts[empty..], &shares[empty.min(shares.len())..]);
    let of = |which: usize, scale: f64| {
        let mut now = 0;
        let prices = starts.iter().zip(shares).filter_map(|(&at, shares)| {
            let price = Price { at: at as u32, price: (shares[which] * scale) as u64 };
            let changes = price.price != std::mem::replace(&mut now, price.price);
            (if which == 0 { price.price > 0 } else { changes }).then_some(price)
        });
        prices.collect::<Vec<Price>>()
    };
    let stretches = 2 * problem.ops.len() as u32 + 1;
    let mut ways = [of(1, ONE), of(2, ONE)];
    ways.iter_mut().for_each(|way| way.retain(|price| price.at < stretches));
    let [out, back] = ways;
    let proof = Proof::Prices { memory: of(0, fluid.byte * ONE), out, back };
    let shown = certify::proven(problem, budget, &proof).ok().and_then(|nanos| nanos.try_into().ok());
    Certificate { nanos: shown.unwrap_or(0), proof }
}

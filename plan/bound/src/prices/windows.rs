//! The gains of windows at prices of memory and link time.

use std::collections::BTreeSet;

use lmsc_schedule::problem::{Duplex, Problem, TensorId, Window};
use lmsc_schedule::{CLOSE_GAP, Lists, last_before};

use super::ONE;
use crate::{Price, Proof};

/// The windows in which the copies cost more link time than the freed memory is worth, at the prices of the proof; none if it
/// is of another kind.
///
/// If the prices are those that prove most, a fluid plan whose makespan equals that bound swaps hardly anything in these
/// windows.
///
/// # Source
/// Complementary slackness of the linear program that [`prices`](fn@crate::prices) describes.
pub fn losing(problem: &Problem, proof: &Proof, windows: &[Window]) -> BTreeSet<Window> {
    let Proof::Prices { memory, out, back } = proof else { return BTreeSet::new() };
    let stretches = 2 * problem.ops.len() + 1;
    let mut room = vec![0.0; stretches + 1];
    memory.iter().for_each(|price| room[price.at as usize] = price.price as f64 / ONE);
    let out = by_stretch(out, stretches);
    let back = match problem.link.duplex {
        Duplex::Half => out.clone(),
        Duplex::Full => by_stretch(back, stretches),
    };
    let prices = Prices { problem, room, out, back, changes: Lists::of_changes(problem) };
    // Prices are as good as bounds have to be.
    let least = -2.0 / CLOSE_GAP.get() as f64;
    windows.iter().filter(|window| prices.gain(window) < least).copied().collect()
}

/// The price in each stretch.
fn by_stretch(prices: &[Price], stretches: usize) -> Vec<f64> {
    let mut by_stretch = vec![0.0; stretches];
    for price in prices {
        by_stretch[price.at as usize..].fill(price.price as f64 / ONE);
    }
    by_stretch
}

struct Prices<'a> {
    problem: &'a Problem,
    /// For each edge, the price of a byte.
    room: Vec<f64>,
    /// For each stretch, the price of a nanosecond of copying.
    out: Vec<f64>,
    back: Vec<f64>,
    /// For each tensor, the ticks that produce or change it, ascending.
    changes: Lists<TensorId, u32>,
}

impl Prices<'_> {
    /// The largest gain of a byte that is swapped out in the window, relative to the time of its copy in.
    fn gain(&self, window: &Window) -> f64 {
        let Prices { problem, room, out, back, changes } = self;
        let (facts, link) = (&problem.tensors[window.tensor], &problem.link);
        let per_byte = |nanos: u64| nanos as f64 / facts.bytes.max(1) as f64;
        let (leave, come) = (per_byte(link.out_nanos(facts.bytes)), per_byte(link.in_nanos(facts.bytes)));
        let (from, until) = (2 * window.from as usize + 1, 2 * window.until as usize);
        let changed = last_before(changes.of(window.tensor), window.from);
        // The host copy of a variable at the start of the step is valid until it changes.
        let is_on_host = facts.is_variable() && changed.is_none() && !window.wraps();
        let ready = changed.map_or(0, |tick| 2 * tick as usize + 2);
        let mut cheapest = out[ready..from].iter().copied().fold(f64::INFINITY, f64::min);
        let (mut away, mut gain) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
        // The stretch after each edge: in a window that wraps, copies out lie before the end of the step, and copies in after
        // it.
        let last = if window.wraps() { out.len() } else { until };
        for edge in from..=last {
            away = away.max(if is_on_host { 0.0 } else { -cheapest * leave }) + room[edge];
            cheapest = cheapest.min(out.get(edge).copied().unwrap_or(f64::INFINITY));
            if !window.wraps() {
                gain = gain.max(away - back[edge] * come);
            }
        }
        if window.wraps() {
            for edge in 0..=until {
                away += room[edge];
                gain = gain.max(away - back[edge] * come);
            }
        }
        gain / come
    }
}

#[cfg(test)]
mod tests {
    use lmsc_ir::Phase::{Backward, Forward, Update};
    use lmsc_testing::small::{op, problem, produced, variable};

    use super::*;

    fn price(at: u32, percent: u64) -> Price {
        Price { at, price: (ONE as u64) / 100 * percent }
    }

    #[test]
    fn absent_tensors_make_room_and_cost_copies() {
        let tensors = [produced(100), produced(100), variable(100)];
        let ops = [
            op(Forward, 100, &[], &[0]),
            op(Forward, 100, &[0], &[1]),
            op(Backward, 100, &[1], &[]),
            op(Update, 100, &[0, 2], &[]),
        ];
        let mut problem = problem(&tensors, &ops);
        (problem.link.out_bytes_per_second, problem.link.in_bytes_per_second) =
            (1_000_000_000, 1_000_000_000);
        let windows = problem.windows(&problem.uses());
        let losing = |room: u64, back: u64| {
            // Memory is expensive while the third operator runs; copying out is until it starts, and copying in is always.
            let memory = vec![price(5, room), price(6, room)];
            let proof =
                Proof::Prices { memory, out: vec![price(0, 50), price(5, 0)], back: vec![price(0, back)] };
            losing(&problem, &proof, &windows).into_iter().map(|w| w.tensor.as_u32()).collect::<Vec<_>>()
        };
        // The variable is swapped out around the end of the step, at no cost, and frees memory at both edges.
        assert_eq!(losing(10, 70), [0, 2]);
        assert_eq!(losing(40, 70), [0]);
        // A tensor copied out while the operator runs frees memory at its end.
        assert_eq!(losing(40, 0), [0_u32; 0]);
        assert!(super::losing(&problem, &Proof::Paper { at: None }, &windows).is_empty());
    }
}

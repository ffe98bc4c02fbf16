//! The best prices on a grid, by Newton's method.

use lmsc_schedule::tuned::{self, Tunable};

use super::grid::Grid;
use super::smooth::{Smooth, Symmetric};

/// Weight of the barrier that keeps prices off their limits, and precision of a climb, relative to the smoothness.
const BARRIER: f64 = 0.003;

/// Maximum number of Newton steps for one smoothness.
const STEPS: Tunable<usize> = Tunable::new(8);

/// Prices on a grid, all of them off their limits.
pub(super) struct Ascent<'a> {
    grid: &'a Grid,
    pub(super) prices: Vec<f64>,
    slope: Vec<f64>,
    bend: Symmetric,
    /// The work done so far, in steps of inner loops.
    pub(super) work: u64,
}

/// Prices whose sum must be below one: both directions of a stretch, or one.
type Together = (usize, Option<usize>);

impl<'a> Ascent<'a> {
    /// Prices of edges at which everything fits are 0.
    pub(super) fn new(grid: &'a Grid, mut prices: Vec<f64>, work: u64) -> Ascent<'a> {
        for (price, excess) in prices.iter_mut().zip(&grid.excess) {
            *price = if *excess > 0.0 { price.max(1e-4) } else { 0.0 };
        }
        let (slope, bend) = (vec![0.0; prices.len()], Symmetric::new(prices.len()));
        Ascent { grid, prices, slope, bend, work }
    }

    /// Climbs to nearly the best prices for this smoothness, unless the work limit is reached.
    pub(super) fn climb(&mut self, tau: f64, most_work: u64) {
        let barrier = BARRIER * tau;
        let len = self.prices.len() as u64;
        for _ in 0..STEPS.get() {
            if self.work >= most_work {
                return;
            }
            // Steps for the derivatives, and for the solution of the equations.
            let steps = 4 * self.grid.pairs() + len.pow(3) / 6;
            self.work += steps;
            tuned::work(steps as usize / 100);
            let smooth = Smooth::of(self.grid, &self.prices, tau);
            smooth.derive(&self.prices, &mut self.slope, &mut self.bend);
            self.add_barrier(barrier);
            let mut step = self.slope.clone();
            solve(&mut self.bend, &mut step);
            let gain: f64 = step.iter().zip(&self.slope).map(|(step, slope)| step * slope).sum();
            let value = smooth.value(&self.prices) + barrier * self.logarithms(&self.prices);
            let mut part = self.most(&step);
            let better = (0..12).find_map(|_| {
                let prices: Vec<f64> =
                    self.prices.iter().zip(&step).map(|(p, step)| p + part * step).collect();
                let found = Smooth::of(self.grid, &prices, tau).value(&prices);
                let enough = found + barrier * self.logarithms(&prices) >= value + 0.1 * part * gain;
                part /= 2.0;
                enough.then_some(prices)
            });
            let Some(prices) = better else { return };
            self.prices = prices;
            if gain < barrier {
                return;
            }
        }
    }

    /// Whether the price may be above 0.
    fn is_free(&self, price: usize) -> bool {
        self.grid.excess.get(price).is_none_or(|excess| *excess > 0.0)
    }

    /// The groups of prices whose sum must be below one.
    fn together(&self) -> impl Iterator<Item = Together> + '_ {
        let grid = self.grid;
        (0..grid.nanos.len())
            .flat_map(move |stretch| {
                let (out, back) = (grid.out(stretch), grid.back(stretch));
                match (grid.half, grid.paused[stretch]) {
                    (true, _) => [Some((out, None)), None],
                    (false, true) => [Some((out, Some(back))), None],
                    (false, false) => [Some((out, None)), Some((back, None))],
                }
            })
            .flatten()
    }

    fn add_barrier(&mut self, barrier: f64) {
        let together: Vec<Together> = self.together().collect();
        for (price, &at) in self.prices.iter().enumerate() {
            if self.is_free(price) {
                self.slope[price] += barrier / at;
                self.bend.add(price, price, barrier / (at * at));
            }
        }
        for (one, other) in together {
            let rest = 1.0 - self.prices[one] - other.map_or(0.0, |other| self.prices[other]);
            let bend = barrier / (rest * rest);
            for price in other.into_iter().chain([one]) {
                self.slope[price] -= barrier / rest;
                self.bend.add(price, price, bend);
            }
            other.into_iter().for_each(|other| self.bend.add(one, other, bend));
        }
        let len = self.bend.len;
        for price in 0..len {
            if !self.is_free(price) {
                self.slope[price] = 0.0;
                (0..len).for_each(|other| {
                    self.bend.rows[price.max(other) * len + price.min(other)] = 0.0;
                });
                self.bend.rows[price * len + price] = 1.0;
            }
            self.bend.rows[price * len + price] *= 1.0 + 1e-9;
        }
    }

    /// The sum of the logarithms of the distances of prices from their limits.
    fn logarithms(&self, prices: &[f64]) -> f64 {
        let low =
            prices.iter().enumerate().filter(|(price, _)| self.is_free(*price)).map(|(_, at)| libm::log(*at));
        let high = self
            .together()
            .map(|(one, other)| libm::log(1.0 - prices[one] - other.map_or(0.0, |other| prices[other])));
        low.chain(high).sum()
    }

    /// The part of the step that can be made.
    fn most(&self, step: &[f64]) -> f64 {
        let low = self.prices.iter().zip(step).filter(|(_, step)| **step < 0.0).map(|(at, step)| -at / step);
        let high = self.together().filter_map(|(one, other)| {
            let sum = |of: &[f64]| of[one] + other.map_or(0.0, |other| of[other]);
            (sum(step) > 0.0).then(|| (1.0 - sum(&self.prices)) / sum(step))
        });
        // As in most interior-point methods, a twentieth of the way to the boundary is left.
        low.chain(high).map(|most| 0.95 * most).fold(1.0, f64::min)
    }
}

/// Solves the equations with a positive matrix in place of the right-hand side, by Cholesky's method; the matrix is
/// overwritten.
fn solve(matrix: &mut Symmetric, x: &mut [f64]) {
    let len = matrix.len;
    for row in 0..len {
        let (above, rest) = matrix.rows.split_at_mut(row * len);
        let values = &mut rest[..=row];
        for column in 0..row {
            let other = &above[column * len..=column * len + column];
            values[column] = (values[column] - dot(&values[..column], &other[..column])) / other[column];
        }
        values[row] = (values[row] - dot(&values[..row], &values[..row])).max(1e-14).sqrt();
        x[row] = (x[row] - dot(&values[..row], &x[..row])) / values[row];
    }
    for row in (0..len).rev() {
        let values = &matrix.rows[row * len..=row * len + row];
        x[row] /= values[row];
        let at = x[row];
        x[..row].iter_mut().zip(values).for_each(|(x, value)| *x -= value * at);
    }
}

/// The dot product in a fixed order of additions, four at a time.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (a, b) = (a.chunks_exact(4), b.chunks_exact(4));
    let rest: f64 = a.remainder().iter().zip(b.remainder()).map(|(a, b)| a * b).sum();
    let mut sums = [0.0; 4];
    for (a, b) in a.zip(b) {
        (0..4).for_each(|i| sums[i] += a[i] * b[i]);
    }
    sums.iter().sum::<f64>() + rest
}

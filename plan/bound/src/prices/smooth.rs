//! A smooth version of the bound from prices, with its derivatives.
//!
//! A tensor takes the most profitable of many ways to be swapped out and in. The maximum is replaced by `τ·ln Σ exp(profit /
//! τ)` over all ways, which is slightly more, and less so the smaller `τ` is. Its first derivatives are means over the ways,
//! weighted by their terms of the sum, and its second derivatives are their covariances.
//!
//! A way goes from use to use, and is at each in one of two states: on the device alone (*here*), or on both sides (*both*).
//! Sums over ways are products of sums over gaps, forward and backward, all as logarithms. Exponentials are those of `libm`,
//! with the same bits on every machine.

use libm::exp;

use super::grid::{Gap, Grid, Lot, Then};

/// The logarithm that stands for an impossible way.
const NEVER: f64 = -1e300;

/// The precision of sums: `exp` of less than this, about 1e-12, is not added to one, and less likely ways are omitted.
const NEGLIGIBLE_LOG: f64 = -27.6;

/// Parts smaller than this are omitted.
const NEGLIGIBLE: f64 = 1e-12;

/// The logarithm of the sum of two numbers, given by their logarithms.
fn add(a: f64, b: f64) -> f64 {
    let (more, less) = if a > b { (a, b - a) } else { (b, a - b) };
    if less < NEGLIGIBLE_LOG { more } else { more + libm::log1p(exp(less)) }
}

/// A symmetric matrix, stored as its lower triangle.
pub(super) struct Symmetric {
    pub(super) len: usize,
    pub(super) rows: Vec<f64>,
}

impl Symmetric {
    pub(super) fn new(len: usize) -> Symmetric {
        Symmetric { len, rows: vec![0.0; len * len] }
    }

    /// Adds to the element of the row and the column, in whichever triangle.
    pub(super) fn add(&mut self, row: usize, column: usize, value: f64) {
        self.rows[row.max(column) * self.len + row.min(column)] += value;
    }

    /// Adds `scale·(x·yᵀ + y·xᵀ)`.
    fn cross(&mut self, scale: f64, x: &[f64], y: &Sparse) {
        for (row, &value) in x.iter().enumerate().filter(|(_, value)| **value != 0.0) {
            for &column in &y.places {
                let twice = if row == column { 2.0 } else { 1.0 };
                self.add(row, column, twice * scale * value * y.values[column]);
            }
        }
    }
}

/// A vector with few nonzero elements.
struct Sparse {
    values: Vec<f64>,
    places: Vec<usize>,
}

impl Sparse {
    fn new(len: usize) -> Sparse {
        Sparse { values: vec![0.0; len], places: Vec::new() }
    }

    fn add(&mut self, place: usize, value: f64) {
        if self.values[place] == 0.0 && value != 0.0 {
            self.places.push(place);
        }
        self.values[place] += value;
    }

    fn clear(&mut self) {
        self.places.drain(..).for_each(|place| self.values[place] = 0.0);
    }

    fn add_to(&self, dense: &mut [f64]) {
        self.places.iter().for_each(|&place| dense[place] += self.values[place]);
    }
}

/// The logarithms of the sums over the possible actions in a gap.
#[derive(Clone, Copy)]
struct Sums {
    /// From here to both: copied out, and then kept on the device or not.
    leaves: f64,
    /// From both to both.
    leaves_again: f64,
    /// From the host, where the step begins, to both.
    comes: f64,
    /// From here, or from both, to the host, where the step ends.
    ends: [f64; 2],
}

/// For each gap, the logarithms of the sums over the parts before it, and over the parts after it.
#[derive(Default)]
struct Reach {
    before: Vec<[f64; 2]>,
    after: Vec<[f64; 2]>,
}

/// The data of a lot for a pass over its ways.
struct Walk<'a> {
    lot: &'a Lot,
    /// Whether these are the ways that begin on the host.
    comes: bool,
    sums: &'a [Sums],
    reach: &'a Reach,
    /// The logarithm of the sum over all ways, including those that begin on the other side.
    all: f64,
}

/// A stretch in which a tensor is swapped out or in: the logarithm of its factor in a product, and the index of its price, if
/// it has one.
#[derive(Clone, Copy)]
struct Turn {
    stretch: usize,
    log: f64,
    price: Option<usize>,
}

/// The actions in a gap: swap-outs and swap-ins, and by pair the likelihood.
#[derive(Default)]
struct Turns {
    leave: Vec<Turn>,
    come: Vec<Turn>,
    likely: Vec<f64>,
    sums: Vec<f64>,
    tails: Vec<f64>,
}

/// The smooth value of prices on a grid.
pub(super) struct Smooth<'a> {
    grid: &'a Grid,
    tau: f64,
    /// For each stretch, the sum of the prices of the edges before it.
    rooms: Vec<f64>,
}

impl Smooth<'_> {
    pub(super) fn of<'a>(grid: &'a Grid, prices: &[f64], tau: f64) -> Smooth<'a> {
        let mut rooms = vec![0.0];
        let mut sum = 0.0;
        rooms.extend(prices[..grid.edges.len()].iter().map(|price| {
            sum += price;
            sum
        }));
        Smooth { grid, tau, rooms }
    }

    /// The bound that the prices prove, in units of the time of all operators.
    pub(super) fn value(&self, prices: &[f64]) -> f64 {
        let (mut sums, mut reach) = (Vec::new(), Reach::default());
        let lots = self.grid.lots.iter().map(|lot| {
            self.sums(lot, prices, &mut sums);
            let [stays, comes] = self.both_begin(lot, prices, &sums, &mut reach);
            lot.weight * self.tau * add(stays, comes)
        });
        self.without_lots(prices) - lots.sum::<f64>()
    }

    /// The bound that the prices would prove if nothing could be swapped.
    fn without_lots(&self, prices: &[f64]) -> f64 {
        let grid = self.grid;
        let room: f64 = grid.excess.iter().zip(prices).map(|(excess, price)| excess * price).sum();
        let link = grid.nanos.iter().enumerate().map(|(stretch, nanos)| {
            let back = if grid.half { 0.0 } else { prices[grid.back(stretch)] };
            nanos * (1.0 - prices[grid.out(stretch)] - back)
        });
        room + link.sum::<f64>()
    }

    /// By gap of the lot, its sums.
    fn sums(&self, lot: &Lot, prices: &[f64], sums: &mut Vec<Sums>) {
        sums.clear();
        let (grid, all) = (self.grid, self.rooms.len() - 1);
        for (index, gap) in lot.gaps.iter().enumerate() {
            let [mut left, mut pairs, mut returns, mut comes, mut copied] = [NEVER; 5];
            for stretch in gap.first..=gap.last {
                let back = (self.rooms[stretch] - lot.copy[1] * prices[grid.back(stretch)]) / self.tau;
                if stretch > gap.first {
                    pairs = add(pairs, left + back);
                    returns = add(returns, back);
                }
                if index == 0 && lot.variable {
                    comes = add(comes, back);
                }
                let out = lot.copy[0] * prices[grid.out(stretch)] / self.tau;
                left = add(left, -out - self.rooms[stretch] / self.tau);
                copied = add(copied, -out);
            }
            let from = self.rooms[gap.first];
            let ends = match gap.then {
                Then::Ends if lot.variable => {
                    [left, -from / self.tau].map(|l| l + self.rooms[all] / self.tau)
                }
                _ => [NEVER; 2],
            };
            let leaves_again = add(0.0, returns - from / self.tau);
            sums.push(Sums { leaves: add(pairs, copied), leaves_again, comes, ends });
        }
    }

    /// The logarithms of the sums over all ways that begin on the device, and over those that begin on the host. `reach` is
    /// that of the latter if there are any.
    fn both_begin(&self, lot: &Lot, prices: &[f64], sums: &[Sums], reach: &mut Reach) -> [f64; 2] {
        let stays = self.forward(lot, false, prices, sums, reach);
        let comes = if lot.variable { self.forward(lot, true, prices, sums, reach) } else { NEVER };
        [stays, comes]
    }

    /// The logarithm of the sum over all ways; `reach` gets the sums over the parts before each gap.
    fn forward(&self, lot: &Lot, comes: bool, prices: &[f64], sums: &[Sums], reach: &mut Reach) -> f64 {
        let [mut here, mut both] = [if comes { NEVER } else { 0.0 }, NEVER];
        reach.before.clear();
        for (index, (gap, sums)) in lot.gaps.iter().zip(sums).enumerate() {
            reach.before.push([here, both]);
            if comes && gap.then == Then::Ends {
                return add(here + sums.ends[0], both + sums.ends[1]);
            }
            [here, both] = if comes && index == 0 {
                [NEVER, sums.comes]
            } else {
                [here, add(here + sums.leaves, both + sums.leaves_again)]
            };
            [here, both] = match gap.then {
                Then::Changes => [add(here, both), NEVER],
                Then::Reads(stretch) => [here, add(both, here - self.out(lot, prices, stretch))],
                Then::Ends => [here, both],
            };
        }
        add(here, both)
    }

    /// The cost of copying out in the stretch, in the unit of logarithms.
    fn out(&self, lot: &Lot, prices: &[f64], stretch: usize) -> f64 {
        lot.copy[0] * prices[self.grid.out(stretch)] / self.tau
    }

    /// The logarithms of the sums over the parts after each gap.
    fn backward(&self, lot: &Lot, comes: bool, prices: &[f64], sums: &[Sums], reach: &mut Reach) {
        let [mut here, mut both] = [0.0; 2];
        reach.after.clear();
        for (gap, sums) in lot.gaps.iter().zip(sums).rev() {
            [here, both] = match gap.then {
                Then::Changes => [here; 2],
                Then::Reads(stretch) => [add(here, both - self.out(lot, prices, stretch)), both],
                Then::Ends => [here, both],
            };
            reach.after.push([here, both]);
            [here, both] = if comes && gap.then == Then::Ends {
                sums.ends
            } else {
                [add(here, sums.leaves + both), sums.leaves_again + both]
            };
        }
        reach.after.reverse();
    }

    /// Sets the first derivatives, and the negative second derivatives.
    pub(super) fn derive(&self, prices: &[f64], slope: &mut [f64], bend: &mut Symmetric) {
        let grid = self.grid;
        bend.rows.fill(0.0);
        slope.fill(0.0);
        slope[..grid.excess.len()].copy_from_slice(&grid.excess);
        for (stretch, nanos) in grid.nanos.iter().enumerate() {
            slope[grid.out(stretch)] = -nanos;
            slope[grid.back(stretch)] = -nanos;
        }
        let (mut sums, mut reach) = (Vec::new(), Reach::default());
        let mut means = Means::new(prices.len());
        for lot in &grid.lots {
            self.sums(lot, prices, &mut sums);
            let begin = self.both_begin(lot, prices, &sums, &mut reach);
            let all = add(begin[0], begin[1]);
            means.of_lot.fill(0.0);
            for (comes, begins) in [(false, begin[0]), (true, begin[1])] {
                if begins - all > NEGLIGIBLE_LOG {
                    self.forward(lot, comes, prices, &sums, &mut reach);
                    self.backward(lot, comes, prices, &sums, &mut reach);
                    let walk = Walk { lot, comes, sums: &sums, reach: &reach, all };
                    self.ways(&walk, prices, &mut means, bend);
                }
            }
            let places: Vec<usize> = (0..prices.len()).filter(|&i| means.of_lot[i] != 0.0).collect();
            for (index, &row) in places.iter().enumerate() {
                slope[row] -= lot.weight * means.of_lot[row];
                let scale = means.of_lot[row] * lot.weight / self.tau;
                let values = &mut bend.rows[row * bend.len..];
                places[..=index].iter().for_each(|&column| values[column] -= scale * means.of_lot[column]);
            }
        }
    }

    /// Adds the means over the lot's ways, and the means of products of two parts to `bend`.
    fn ways(&self, walk: &Walk, prices: &[f64], means: &mut Means, bend: &mut Symmetric) {
        let &Walk { lot, comes, sums, reach, all } = walk;
        let weight = lot.weight / self.tau;
        means.here.fill(0.0);
        means.both.fill(0.0);
        for (index, gap) in lot.gaps.iter().enumerate() {
            let ([here, both], [here_after, both_after]) = (reach.before[index], reach.after[index]);
            let (begins, ends) = (comes && index == 0, comes && gap.then == Then::Ends);
            means.from_here.clear();
            means.from_both.clear();
            self.turns(lot, *gap, [begins, ends], prices, [here, both, both_after - all], &mut means.turns);
            means.pairs(lot, weight, bend);
            if here > NEVER / 2.0 && !begins && !ends {
                for stretch in gap.first..=gap.last {
                    let likely = exp(here - self.out(lot, prices, stretch) + both_after - all);
                    means.copies(lot, self.grid.out(stretch), likely, weight, bend);
                }
            }
            // The likelihood of each state before the gap, and of staying here.
            let stays = if ends { 0.0 } else { exp(here + here_after - all) };
            let [from_here, from_both] = if ends {
                [here + sums[index].ends[0], both + sums[index].ends[1]]
            } else {
                [here + sums[index].leaves + both_after, both + sums[index].leaves_again + both_after]
            };
            let [from_here, from_both] = [stays + exp(from_here - all), exp(from_both - all)];
            if from_here > NEGLIGIBLE {
                bend.cross(weight / from_here, &means.here, &means.from_here);
            }
            if from_both > NEGLIGIBLE {
                bend.cross(weight / from_both, &means.both, &means.from_both);
            }
            means.pass(if from_here > NEGLIGIBLE { stays / from_here } else { 1.0 });
            match gap.then {
                Then::Changes => means.changes(),
                Then::Reads(stretch) if stays > NEGLIGIBLE => {
                    // Copied out while it is read.
                    let likely = exp(here - self.out(lot, prices, stretch) + both_after - all);
                    means.from_here.clear();
                    means.from_both.clear();
                    means.copies(lot, self.grid.out(stretch), likely, weight, bend);
                    bend.cross(weight / stays, &means.here, &means.from_here);
                    means.pass(1.0 - likely / stays);
                }
                _ => {}
            }
        }
    }

    /// The possible actions in the gap, and the likelihood of each. `reach` holds the logarithms of the sums over the parts
    /// before, here and both, and over the parts after, divided by the total.
    fn turns(
        &self,
        lot: &Lot,
        gap: Gap,
        [begins, ends]: [bool; 2],
        prices: &[f64],
        [here, both, after]: [f64; 3],
        turns: &mut Turns,
    ) {
        let (grid, all) = (self.grid, self.rooms.len() - 1);
        let room = |stretch: usize| self.rooms[stretch] / self.tau;
        turns.leave.clear();
        turns.come.clear();
        if begins {
            turns.leave.push(Turn { stretch: 0, log: 0.0, price: None });
        } else {
            if both > NEVER / 2.0 {
                turns.leave.push(Turn { stretch: gap.first, log: both - room(gap.first), price: None });
            }
            if here > NEVER / 2.0 {
                turns.leave.extend((gap.first..=gap.last).map(|stretch| Turn {
                    stretch,
                    log: here - room(stretch) - self.out(lot, prices, stretch),
                    price: Some(grid.out(stretch)),
                }));
            }
        }
        if ends {
            turns.come.push(Turn { stretch: all, log: room(all) + after, price: None });
        } else {
            turns.come.extend((gap.first..=gap.last).map(|stretch| Turn {
                stretch,
                log: room(stretch) - lot.copy[1] * prices[grid.back(stretch)] / self.tau + after,
                price: Some(grid.back(stretch)),
            }));
        }
        turns.likely.clear();
        for leave in &turns.leave {
            turns.likely.extend(turns.come.iter().map(|come| {
                let apart = leave.stretch < come.stretch || begins;
                let log = leave.log + come.log;
                if apart && log > NEGLIGIBLE_LOG { exp(log) } else { 0.0 }
            }));
        }
    }
}

/// Means of the gains and costs of ways, by price.
struct Means {
    /// Of a lot's ways.
    of_lot: Vec<f64>,
    /// Of the actions of ways so far, for those in either state.
    here: Vec<f64>,
    both: Vec<f64>,
    /// Of the next actions of ways, from either state.
    from_here: Sparse,
    from_both: Sparse,
    turns: Turns,
}

impl Means {
    fn new(len: usize) -> Means {
        Means {
            of_lot: vec![0.0; len],
            here: vec![0.0; len],
            both: vec![0.0; len],
            from_here: Sparse::new(len),
            from_both: Sparse::new(len),
            turns: Turns::default(),
        }
    }

    /// Completes the next actions: of the ways in state here, this part stays.
    fn pass(&mut self, stays: f64) {
        for next in [&self.from_here, &self.from_both] {
            next.add_to(&mut self.of_lot);
            next.add_to(&mut self.both);
        }
        for (here, both) in self.here.iter_mut().zip(&mut self.both) {
            *both += *here * (1.0 - stays);
            *here *= stays;
        }
    }

    /// The host copy is no longer valid.
    fn changes(&mut self) {
        for (here, both) in self.here.iter_mut().zip(&mut self.both) {
            *here += std::mem::take(both);
        }
    }

    /// A copy out after which the tensor stays on the device.
    fn copies(&mut self, lot: &Lot, price: usize, likely: f64, weight: f64, bend: &mut Symmetric) {
        if likely > NEGLIGIBLE {
            self.from_here.add(price, -lot.copy[0] * likely);
            bend.add(price, price, weight * lot.copy[0] * lot.copy[0] * likely);
        }
    }

    /// Adds the pairs of turns, and products of their parts.
    fn pairs(&mut self, lot: &Lot, weight: f64, bend: &mut Symmetric) {
        let Turns { leave, come, likely, sums, tails } = &mut self.turns;
        let (Some(first), Some(last)) = (leave.first(), come.last()) else { return };
        let (edges, free, [out, back]) = (first.stretch..last.stretch, first.price.is_none(), lot.copy);
        sums.clear();
        sums.resize(come.len(), 0.0);
        tails.resize(come.len(), 0.0);
        // By edge: tensors absent at an edge have been copied out before; `sums` holds them by their swap-in.
        let mut left = 0;
        let mut next = 0;
        for edge in edges.clone() {
            while leave.get(left).is_some_and(|turn| turn.stretch <= edge) {
                let row = &likely[left * come.len()..(left + 1) * come.len()];
                sums.iter_mut().zip(row).for_each(|(sum, likely)| *sum += likely);
                left += 1;
            }
            while come[next].stretch <= edge {
                next += 1;
            }
            let mut tail = 0.0;
            for index in (next..come.len()).rev() {
                tail += sums[index];
                tails[index] = tail;
            }
            if tail < NEGLIGIBLE {
                continue;
            }
            let from_both: f64 = if free { likely[next..come.len()].iter().sum() } else { 0.0 };
            self.from_both.add(edge, from_both);
            self.from_here.add(edge, tail - from_both);
            let mut returns = next;
            for other in edge..edges.end {
                while come[returns].stretch <= other {
                    returns += 1;
                }
                if tails[returns] < NEGLIGIBLE {
                    break;
                }
                bend.add(edge, other, weight * tails[returns]);
            }
            for (turn, sum) in come.iter().zip(&*sums).skip(next) {
                if let Some(price) = turn.price {
                    bend.add(price, edge, -weight * back * sum);
                }
            }
        }
        for (turn, row) in leave.iter().zip(likely.chunks(come.len())) {
            let (Some(price), mut all) = (turn.price, row.iter().sum::<f64>()) else { continue };
            if all < NEGLIGIBLE {
                continue;
            }
            self.from_here.add(price, -out * all);
            bend.add(price, price, weight * out * out * all);
            for (turn, likely) in come.iter().zip(row).filter(|(_, likely)| **likely > 0.0) {
                if let Some(other) = turn.price {
                    let twice = if other == price { 2.0 } else { 1.0 };
                    bend.add(price, other, twice * weight * out * back * likely);
                }
            }
            let mut returns = 0;
            for edge in turn.stretch..edges.end {
                while come[returns].stretch <= edge {
                    all -= row[returns];
                    returns += 1;
                }
                if all < NEGLIGIBLE {
                    break;
                }
                bend.add(price, edge, -weight * out * all);
            }
        }
        for (index, turn) in come.iter().enumerate() {
            let Some(price) = turn.price else { continue };
            let all: f64 = likely[index..].iter().step_by(come.len()).sum();
            if all > NEGLIGIBLE {
                let from_both = if free { likely[index] } else { 0.0 };
                self.from_both.add(price, -back * from_both);
                self.from_here.add(price, -back * (all - from_both));
                bend.add(price, price, weight * back * back * all);
            }
        }
    }
}

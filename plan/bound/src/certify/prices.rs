//! The bound that prices of memory and of link time prove, derived from the operators.

use cranelift_entity::SecondaryMap;
use lmsc_schedule::problem::{Duplex, Problem, Tensor, TensorId};

use super::NotProven;
use crate::Price;

/// A price of one for a nanosecond of the link: a pause as long as a copy pays for it.
const ONE: u64 = 1 << 32;

/// More than any sum of prices times quantities; less than overflows.
const MOST: i128 = 1 << 120;

/// Stands for an impossible way. The sum with any possible value stays far below all possible values.
const NEVER: i128 = i128::MIN / 4;

/// Prices by edge and by stretch; times in 2^-32 ns.
struct Prices<'a> {
    problem: &'a Problem,
    /// For each edge, the price of a byte.
    memory: Vec<u64>,
    /// For each stretch, the price of a nanosecond of copying out, and in.
    out: Vec<u64>,
    back: Vec<u64>,
    /// For each stretch, the first one from it on at which prices differ from those just before, or with a memory price beside it.
    differs: Vec<usize>,
}

/// The least nanoseconds of any plan that only swaps: the time of the operators, plus the price of the bytes over the budget,
/// less the price of the link time beside operators, and less the largest profit of each tensor.
pub(super) fn proven(
    problem: &Problem,
    budget: u64,
    memory: &[Price],
    out: &[Price],
    back: &[Price],
) -> Result<u128, NotProven> {
    let edges = 2 * problem.ops.len() + 2;
    let half = problem.link.duplex == Duplex::Half;
    if half && !back.is_empty() {
        return Err(NotProven::Prices(back[0].at));
    }
    let out = by_stretch(edges - 1, out)?;
    let back = if half { out.clone() } else { by_stretch(edges - 1, back)? };
    let memory = by_edge(edges, memory)?;
    let mut differs: Vec<usize> = (0..edges - 1).collect();
    for stretch in (1..edges - 1).rev() {
        let same = out[stretch] == out[stretch - 1] && back[stretch] == back[stretch - 1];
        if same && memory[stretch] == 0 && memory[stretch + 1] == 0 {
            differs[stretch] = differs.get(stretch + 1).copied().unwrap_or(edges - 1);
        }
    }
    let prices = Prices { problem, memory, out, back, differs };
    // In a pause, the prices must not exceed the time that passes.
    let pauses = (0..edges - 1).step_by(2);
    if let Some(dear) = pauses.clone().find(|&s| !half && prices.out[s] + prices.back[s] > ONE) {
        return Err(NotProven::Prices(dear as u32));
    }
    let uses = uses(problem);
    let mut sum = 0i128;
    for (op, stretch) in problem.ops.iter().zip((1..).step_by(2)) {
        let paid = prices.out[stretch] + if half { 0 } else { prices.back[stretch] };
        sum += i128::from(op.nanos) * (i128::from(ONE) - i128::from(paid));
    }
    let total: i128 = problem.tensors.values().map(|facts| i128::from(facts.bytes)).sum();
    let dear: i128 = prices.memory.iter().map(|&price| i128::from(price)).sum();
    if dear.checked_mul(total + i128::from(budget)).is_none_or(|most| most > MOST) {
        return Err(NotProven::Prices(0));
    }
    for (live, price) in live(problem, &uses).into_iter().zip(&prices.memory) {
        sum += (live - i128::from(budget)) * i128::from(*price);
    }
    for (tensor, facts) in problem.tensors.iter().filter(|(_, facts)| facts.swappable) {
        if !uses[tensor].is_empty() {
            let stays = prices.most(facts, &uses[tensor], false);
            let comes = if facts.is_variable() { prices.most(facts, &uses[tensor], true) } else { 0 };
            sum -= stays.max(comes).max(0);
        }
    }
    Ok((sum >> 32).try_into().unwrap_or(0))
}

/// Prices by edge, 0 where none is given.
fn by_edge(count: usize, prices: &[Price]) -> Result<Vec<u64>, NotProven> {
    let mut all = vec![0; count];
    let mut next = 0;
    for price in prices {
        let known = (price.at as usize) < count && price.at >= next;
        *all.get_mut(price.at as usize).filter(|_| known).ok_or(NotProven::Prices(price.at))? = price.price;
        next = price.at + 1;
    }
    Ok(all)
}

/// Prices by stretch, each until the next.
fn by_stretch(count: usize, prices: &[Price]) -> Result<Vec<u64>, NotProven> {
    let mut all = vec![0; count];
    let mut next = 0;
    for price in prices {
        let from = price.at as usize;
        if from >= count || price.at < next || price.price > ONE {
            return Err(NotProven::Prices(price.at));
        }
        all[from..].fill(price.price);
        next = price.at + 1;
    }
    Ok(all)
}

/// For each tensor, the ticks at which it is used, ascending, and whether it changes then.
fn uses(problem: &Problem) -> SecondaryMap<TensorId, Vec<(usize, bool)>> {
    let mut uses: SecondaryMap<TensorId, Vec<(usize, bool)>> =
        SecondaryMap::with_capacity(problem.tensors.len());
    for (tick, op) in problem.ops.iter().enumerate() {
        op.reads.iter().for_each(|&t| uses[t].push((tick, op.changes.contains(&t))));
        op.produces.iter().for_each(|&t| uses[t].push((tick, true)));
    }
    uses
}

/// For each edge, the bytes that are on the device if nothing is swapped out.
fn live(problem: &Problem, uses: &SecondaryMap<TensorId, Vec<(usize, bool)>>) -> Vec<i128> {
    let edges = 2 * problem.ops.len() + 2;
    let mut changes = vec![0i128; edges + 1];
    let mut add = |from: usize, until: usize, bytes: u64| {
        changes[from] += i128::from(bytes);
        changes[until] -= i128::from(bytes);
    };
    for (tick, op) in problem.ops.iter().enumerate() {
        add(2 * tick + 1, 2 * tick + 3, op.workspace);
    }
    for (tensor, facts) in &problem.tensors {
        let (first, last) = (uses[tensor].first(), uses[tensor].last());
        let begins = if facts.given { Some(0) } else { first.map(|(tick, _)| 2 * tick + 1) };
        let ends = match last {
            _ if facts.kept => edges,
            Some((tick, _)) => 2 * tick + 3,
            None => 1,
        };
        begins.into_iter().for_each(|begins| add(begins, ends, facts.bytes));
    }
    let sums = changes[..edges].iter().scan(0, |now, change| {
        *now += change;
        Some(*now)
    });
    sums.collect()
}

impl Prices<'_> {
    /// The largest profit of a tensor: the price of the memory that it frees, less the cost of its copies.
    ///
    /// `comes` means that it begins the step on the host, where its value must be at the end.
    fn most(&self, facts: &Tensor, uses: &[(usize, bool)], comes: bool) -> i128 {
        let (first, last) = (uses[0].0, uses[uses.len() - 1].0);
        let end = 2 * self.problem.ops.len() + 1;
        let from = if facts.given { 0 } else { 2 * first + 2 };
        let until = if facts.kept { end } else { 2 * last + 1 };
        let room = |edge: usize| i128::from(self.memory[edge]) * i128::from(facts.bytes);
        // By location: on the device alone, on both sides, on the host alone.
        let [mut here, mut both, mut away] = if comes { [NEVER, NEVER, room(0)] } else { [0, NEVER, NEVER] };
        let mut uses = uses.iter().skip_while(|&&(tick, _)| 2 * tick + 1 < from).peekable();
        let (mut known, mut out, mut back) = (None, 0, 0);
        let mut next = from;
        while next < until {
            let stretch = next;
            next += 1;
            let prices = (self.out[stretch], self.back[stretch]);
            if known != Some(prices) {
                let link = self.problem.link;
                out = self.cost(prices.0, facts.bytes, link.out_bytes_per_second);
                back = self.cost(prices.1, facts.bytes, link.in_bytes_per_second);
                known = Some(prices);
            }
            if let Some(&(_, changes)) = uses.next_if(|&&(tick, _)| 2 * tick + 1 == stretch) {
                [here, both] = if changes { [here.max(both), NEVER] } else { [here, both.max(here - out)] };
                continue;
            }
            both = both.max(here - out).max(away - back);
            let edge = stretch + 1;
            let is_used = uses.peek().is_some_and(|&&(tick, _)| 2 * tick + 1 == edge);
            let stays = is_used || edge == end && !comes;
            away = if stays { NEVER } else { away.max(both) + room(edge) };
            // If no price differs until the next use, no more can be gained.
            if next < until {
                let used = uses.peek().map_or(until, |&&(tick, _)| 2 * tick);
                next = next.max(self.differs[next].min(used).min(until - 1));
            }
        }
        if comes { both.max(away) } else { here.max(both) }
    }

    /// The least cost of a copy of this number of bytes.
    fn cost(&self, price: u64, bytes: u64, bytes_per_second: u64) -> i128 {
        let copying =
            i128::from(price) * i128::from(bytes) * 1_000_000_000 / i128::from(bytes_per_second.max(1));
        copying + i128::from(price) * i128::from(self.problem.link.latency_nanos)
    }
}

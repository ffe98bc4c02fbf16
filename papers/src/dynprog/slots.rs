//! A chain measured in slots, fractions of the budget.

use lmsc_planners::chain::Chain;

/// A chain whose bytes, and the bytes that the link transfers during its operators, are whole numbers of slots.
///
/// # Source
/// OPT §5.3.2.
pub(super) struct Slots {
    /// The budget: the number of slots.
    pub(super) budget: i64,
    /// The slots that `F_i` needs besides `x_0 … x_{i+1}`.
    pub(super) forward_extra: Vec<i64>,
    /// The slots that `B_i` needs besides `x_0 … x_{i+1}`, with `y_i` and `y_{i+1}`.
    pub(super) backward_extra: Vec<i64>,
    /// `|x_i|`.
    pub(super) x: Vec<i64>,
    /// `β·u_{F_i}`, the slots that the link transfers during `F_i`.
    pub(super) forward: Vec<i64>,
    /// `β·u_{B_i}`.
    pub(super) backward: Vec<i64>,
    /// By `i`, `|x_i|` in bytes times the slots of the budget, over the budget in bytes.
    exact: Vec<(u128, u128)>,
}

impl Slots {
    /// The chain with the budget divided into `slots` slots.
    pub(super) fn new(chain: &Chain, budget: u64, slots: u64) -> Slots {
        let (slots, budget) = (u128::from(slots), u128::from(budget.max(1)));
        let up = |bytes: u64| (u128::from(bytes) * slots).div_ceil(budget) as i64;
        // Sums are rounded, so that errors do not add up.
        let sums = |values: &mut dyn Iterator<Item = u128>, round: &dyn Fn(u128) -> i64| -> Vec<i64> {
            let (mut sum, mut before) = (0, 0);
            let each = values.map(|value| {
                sum += value;
                let rounded = round(sum);
                rounded - std::mem::replace(&mut before, rounded)
            });
            each.collect()
        };
        let carried = |nanos: &[u64]| {
            let byte_nanos = |&n: &u64| u128::from(n) * u128::from(chain.bytes_per_second);
            // Saturating: values far beyond all activations need not be exact.
            let down =
                |sum: u128| sum.saturating_mul(slots).div_euclid(budget * 1_000_000_000).min(1 << 40) as i64;
            sums(&mut nanos.iter().map(byte_nanos), &down)
        };
        let n = chain.stages();
        let y: Vec<i64> = chain.gradient_bytes.iter().map(|&y| up(y)).collect();
        let loss = |i: usize| if i + 1 == n { y[n] } else { 0 };
        Slots {
            budget: slots as i64,
            forward_extra: (0..n).map(|i| up(chain.forward_workspace[i]) + loss(i)).collect(),
            backward_extra: (0..n).map(|i| up(chain.backward_workspace[i]) + y[i] + y[i + 1]).collect(),
            x: sums(&mut chain.activation_bytes.iter().map(|&x| u128::from(x)), &|sum| {
                (sum * slots).div_ceil(budget) as i64
            }),
            forward: carried(&chain.forward_nanos),
            backward: carried(&chain.backward_nanos),
            exact: chain.activation_bytes.iter().map(|&x| (u128::from(x) * slots, budget)).collect(),
        }
    }

    /// Adds a slot to the activation that is rounded down by the least; false if none is rounded down.
    pub(super) fn add_one(&mut self) -> bool {
        let lacks = self.x.iter().zip(&self.exact).enumerate().filter_map(|(i, (&x, &(exact, budget)))| {
            exact.checked_sub(x as u128 * budget).filter(|&lack| lack > 0).map(|lack| (lack, i))
        });
        let least = lacks.min();
        least.into_iter().for_each(|(_, i)| self.x[i] += 1);
        least.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain() -> Chain {
        Chain {
            forward_nanos: vec![15, 15, 15],
            backward_nanos: vec![9, 1, 1],
            activation_bytes: vec![14, 14, 14, 10],
            gradient_bytes: vec![0, 11, 20, 1],
            forward_workspace: vec![0, 1, 10],
            backward_workspace: vec![0, 5, 10],
            bytes_per_second: 1_000_000_000,
        }
    }

    #[test]
    fn bytes_and_times_are_rounded_up() {
        // Slots of 10 bytes.
        let slots = Slots::new(&chain(), 100, 10);
        // The last stage also holds y_3.
        assert_eq!(slots.forward_extra, [0, 1, 1 + 1]);
        assert_eq!(slots.backward_extra, [2, 1 + 2 + 2, 1 + 2 + 1]);
        // 14, 28, 42 and 52 bytes are rounded up, and then the differences taken.
        assert_eq!(slots.x, [2, 1, 2, 1]);
        // 15, 30 and 45 bytes are rounded down; so are 9, 10 and 11.
        assert_eq!((slots.forward, slots.backward), (vec![1, 2, 1], vec![0, 1, 0]));
    }

    #[test]
    fn the_activation_rounded_down_least_becomes_larger() {
        let mut slots = Slots::new(&Chain { activation_bytes: vec![11, 12, 11, 0], ..chain() }, 100, 10);
        assert_eq!(slots.x, [2, 1, 1, 0]);
        assert!(slots.add_one());
        assert_eq!(slots.x, [2, 1, 2, 0]);
        assert!(slots.add_one());
        assert_eq!(slots.x, [2, 2, 2, 0]);
        assert!(!slots.add_one(), "all are rounded up");
    }
}

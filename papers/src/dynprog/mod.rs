//! OPT's DynProg: swaps the activations that would be best if copies could be interrupted.

mod slots;
mod table;

use std::collections::BTreeSet;

use lmsc_schedule::{DoesNotFit, Plan, Request};
use slots::Slots;

use lmsc_planners::chain::Chain;

use crate::extract::extract;
use crate::{greedy, offload};

/// Number of slots into which the budget is divided at an effort of 100.
const SLOTS: u64 = 2000;

/// Maximum number of divisions tried, each twice as fine as the previous one, until two are done and a choice is found.
const DIVISIONS: u32 = 4;

/// Maximum number of states of the dynamic program, at an effort of 100.
const STATES: u64 = 5_000_000;

/// The best plan that offloads one of the `choices` for the problem's chain.
///
/// Where the chain is too coarse for the budget, or the problem is no chain, further windows are added by their
/// start.
///
/// # Errors
/// [`DoesNotFit`] if the tensors of an operator together with the unswappable ones exceed the budget.
///
/// # Source
/// OPT §5.3. The paper schedules the one choice that its program returns, of many that it has no reason to prefer (see
/// `table.rs`); here all choices that the table holds at the end are scheduled. The paper uses 500 slots; with bounds and
/// dominance, four times as many are cheaper.
pub(crate) fn plan(request: &Request) -> Result<Plan, DoesNotFit> {
    DoesNotFit::unless_floor_fits(request)?;
    let problem = request.problem;
    let Some(found) = extract(problem) else { return offload::plan(request, Vec::new()) };
    let choices = choices(&found.chain, request.budget, request.effort);
    let plans = choices.iter().map(|choice| offload::plan(request, found.windows(problem, choice)));
    let best = plans.min_by_key(|plan| plan.as_ref().map_or(u64::MAX, |plan| plan.schedule.makespan()));
    best.unwrap_or_else(|| offload::plan(request, Vec::new()))
}

/// Choices that fit; each gives, by `i`, whether `x_i` is swapped.
///
/// If rounding leaves none, finer divisions are tried, and then Greedy's choice is taken.
///
/// # Source
/// OPT §5.3.2. Activations are rounded so that their sums are rounded up. If no choice fits in bytes, the activation that was
/// rounded down least becomes a slot larger, until a choice fits.
fn choices(chain: &Chain, budget: u64, effort: u32) -> Vec<Vec<bool>> {
    if chain.peak() <= budget {
        return vec![vec![false; chain.stages() + 1]];
    }
    let slots = (SLOTS * u64::from(effort) / 100).max(100);
    let mut left = STATES * u64::from(effort) / 100;
    let mut choices: BTreeSet<Vec<bool>> = BTreeSet::new();
    for division in 0..DIVISIONS {
        let mut slots = Slots::new(chain, budget, slots << division);
        loop {
            let found = table::best(&slots, chain, &mut left);
            let stuck = found.is_empty();
            let fitting: Vec<_> = found.into_iter().filter(|choice| fits(chain, budget, choice)).collect();
            let done = !fitting.is_empty();
            choices.extend(fitting);
            if done || stuck || !slots.add_one() {
                break;
            }
        }
        if division > 0 && !choices.is_empty() {
            return choices.into_iter().collect();
        }
    }
    vec![greedy::offloaded(chain, budget)]
}

/// Whether every operator fits beside the resident activations, in bytes.
fn fits(chain: &Chain, budget: u64, offloaded: &[bool]) -> bool {
    let x = &chain.activation_bytes;
    let mut stay = 0;
    (0..chain.stages()).all(|i| {
        let needed = stay + x[i] + x[i + 1] + chain.forward_extra(i).max(chain.backward_extra(i));
        stay += if offloaded[i] { 0 } else { x[i] };
        needed <= budget
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(stages: usize) -> Chain {
        Chain {
            forward_nanos: vec![10; stages],
            backward_nanos: vec![20; stages],
            activation_bytes: (0..=stages as u64).map(|i| 100 + 7 * (i % 4)).collect(),
            gradient_bytes: vec![10; stages + 1],
            forward_workspace: vec![0; stages],
            backward_workspace: vec![5; stages],
            bytes_per_second: 4_000_000_000,
        }
    }

    #[test]
    fn every_choice_fits_in_bytes() {
        let chain = chain(12);
        for budget in (300..chain.peak()).step_by(60) {
            for choice in choices(&chain, budget, 100) {
                assert!(fits(&chain, budget, &choice), "{budget}");
            }
        }
    }

    #[test]
    fn nothing_leaves_a_chain_that_fits() {
        let chain = chain(5);
        assert_eq!(choices(&chain, chain.peak(), 100), [vec![false; 6]]);
    }

    #[test]
    fn without_states_the_choice_is_that_of_greedy() {
        let chain = chain(12);
        assert_eq!(choices(&chain, 700, 0), [greedy::offloaded(&chain, 700)]);
    }
}

//! OPT's Greedy: swaps the first activations, as many as necessary.

use lmsc_schedule::{DoesNotFit, Plan, Request};

use lmsc_planners::chain::Chain;

use crate::extract::extract;
use crate::offload;

/// The plan that offloads the first activations of the problem's chain.
///
/// Where the chain is too coarse for the budget, or the problem is no chain, further windows are added by their start.
///
/// # Errors
/// [`DoesNotFit`] if the tensors of an operator together with the unswappable ones exceed the budget.
///
/// # Source
/// OPT §4.2, after Theorem 2.
pub(crate) fn plan(request: &Request) -> Result<Plan, DoesNotFit> {
    let problem = request.problem;
    let windows = extract(problem)
        .map(|found| found.windows(problem, &offloaded(&found.chain, request.budget)))
        .unwrap_or_default();
    offload::plan(request, windows)
}

/// By `i`, whether `x_i` is among the first activations whose bytes make up for the excess of the peak over the budget.
pub(super) fn offloaded(chain: &Chain, budget: u64) -> Vec<bool> {
    let mut excess = chain.peak().saturating_sub(budget);
    let choice = chain.activation_bytes.iter().map(|&bytes| {
        let leaves = excess > 0;
        excess = excess.saturating_sub(bytes);
        leaves
    });
    choice.collect()
}

#[cfg(test)]
mod tests {
    use lmsc_schedule::problem::Duplex;

    use super::*;

    fn chain() -> Chain {
        Chain {
            forward_nanos: vec![10; 4],
            backward_nanos: vec![10; 4],
            activation_bytes: vec![10, 20, 30, 40, 50],
            gradient_bytes: vec![0, 5, 5, 5, 0],
            forward_workspace: vec![0; 4],
            backward_workspace: vec![0, 0, 0, 5],
            bytes_per_second: 1_000_000_000,
        }
    }

    #[test]
    fn the_first_activations_leave_as_few_as_make_up_for_the_peak() {
        // The peak is in B_3: all activations, y_3 and the workspace.
        assert_eq!(chain().peak(), 160);
        let count = |budget| offloaded(&chain(), budget).iter().filter(|leaves| **leaves).count();
        assert_eq!([160, 159, 150, 149, 130, 129, 100].map(count), [0, 1, 1, 2, 2, 3, 3]);
        assert_eq!(offloaded(&chain(), 130), [true, true, false, false, false]);
    }

    #[test]
    fn copies_out_go_up_and_copies_in_down() {
        let problem = chain().problem();
        assert_eq!(problem.link.duplex, Duplex::Half);
        let plan = plan(&Request::new(&problem, 110)).unwrap();
        let copies = plan.schedule.steps.iter().filter_map(|step| match step.instruction {
            lmsc_schedule::Instruction::Out(piece) => {
                Some((true, plan.schedule.pieces[piece].tensor.as_u32()))
            }
            lmsc_schedule::Instruction::In(piece) => {
                Some((false, plan.schedule.pieces[piece].tensor.as_u32()))
            }
            lmsc_schedule::Instruction::Op(_) => None,
        });
        let copies: Vec<_> = copies.collect();
        assert_eq!(copies, [(true, 0), (true, 1), (true, 2), (false, 2), (false, 1), (false, 0)]);
    }

    #[test]
    fn an_operator_that_cannot_fit_is_named() {
        // B_3 needs x_3, x_4, y_3 and its workspace.
        let refusal = plan(&Request::new(&chain().problem(), 99)).unwrap_err();
        assert_eq!(refusal, DoesNotFit { tick: 4, needed: 100, budget: 99 });
    }
}

//! The options of the planners of problems.

use lmsc_planners::Parameters;
use lmsc_planners::call::{CallOption, OptionValue};

pub(crate) const WINDOW: CallOption = CallOption::open(
    "bytes",
    "size of the look-ahead window, in bytes used; the best of several",
    OptionValue::NoBytes,
);
const N_TENSORS: CallOption = CallOption::open(
    "n-tensors",
    "swap at most this many tensors, in the order in which they are produced; all",
    OptionValue::NoCount,
);
const AHEAD: CallOption =
    CallOption::open("ahead", "start swap-ins this many operators before the use; 1", OptionValue::NoCount);
const THRESHOLD: CallOption = CallOption::open(
    "threshold",
    "swap between forward and backward uses at least this many operators apart (α); 2",
    OptionValue::NoCount,
);
const BRANCH_THRESHOLD: CallOption = CallOption::open(
    "branch-threshold",
    "swap between forward uses at least this many operators apart; none",
    OptionValue::NoCount,
);
const FUSE_SWAPINS: CallOption = CallOption::open(
    "fuse-swapins",
    "backward uses at most this many operators apart share a swap-in; none",
    OptionValue::NoCount,
);

/// The options of the two planners of TFLMS.
pub(crate) const OF_TFLMS: &[CallOption] = &[N_TENSORS, AHEAD, THRESHOLD, BRANCH_THRESHOLD, FUSE_SWAPINS];

/// Parameters that are numbers; a planner searches for those that are not given, or uses the defaults of its paper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// `window`: lookahead, in bytes of the tensors of the next uses.
    pub(crate) window: Option<u64>,
    /// `tflms-chain`: maximum number of swapped tensors, those produced first.
    pub(crate) n_tensors: Option<u32>,
    /// `tflms-chain`: number of operators before its use at which a tensor's swap-in begins, at least 1.
    pub(crate) ahead: Option<u32>,
    /// `tflms-chain`: a tensor is swapped between a forward and a later use that are at least this many operators apart (α).
    pub(crate) threshold: Option<u32>,
    /// `tflms-chain`: a tensor is also swapped between forward uses that are at least this many operators apart.
    pub(crate) branch_threshold: Option<u32>,
    /// `tflms-chain`: after a swap-in, a tensor stays resident for uses that are at most this many operators apart.
    pub(crate) fuse_swapins: Option<u32>,
}

impl Options {
    /// The options that a call sets.
    pub(crate) fn of(parameters: &Parameters) -> Options {
        let Some(call) = parameters.options else { return Options::default() };
        // No plan has as many operators or tensors as 32 bits count.
        let count = |option: &CallOption| {
            call.count_if_given(option).map(|count| u32::try_from(count).unwrap_or(u32::MAX))
        };
        Options {
            window: call.bytes_if_given(&WINDOW).map(|bytes| bytes.0),
            n_tensors: count(&N_TENSORS),
            ahead: count(&AHEAD),
            threshold: count(&THRESHOLD),
            branch_threshold: count(&BRANCH_THRESHOLD),
            fuse_swapins: count(&FUSE_SWAPINS),
        }
    }
}

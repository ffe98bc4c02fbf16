//! The options of the planner `tflms`, which are those of the pass `swap`.

use std::collections::BTreeSet;

use lmsc_ir::{Graph, words};
use lmsc_plan::Scope;
use lmsc_planners::call::{CallOption, CallOptions, OptionValue};

use super::{NAME, Params, Strategy};

const THRESHOLD: CallOption = CallOption::open(
    "threshold",
    "rewrite edges into the backward phase that span at least this many levels (α); 2",
    NO_COUNT,
);
const LB: CallOption =
    CallOption::open("lb", "trigger swap-ins at least this many levels before the use; 1", NO_COUNT);
const UB: CallOption =
    CallOption::open("ub", "trigger swap-ins at most this many levels before the use; 10000", NO_COUNT);
const N_TENSORS: CallOption = CallOption::open(
    "n-tensors",
    "swap at most this many tensors, counted from the start of the graph; all",
    NO_COUNT,
);
const CTRLD_STRATEGY: CallOption = CallOption::word(
    "ctrld-strategy",
    "the algorithm that finds triggers (TFLMS Algorithms 2 and 1)",
    &["chain-rule", "direct-order"],
);
const FUSE_SWAPINS: CallOption = CallOption::open(
    "fuse-swapins",
    "uses of one tensor at most this many levels apart share a swap-in; none",
    NO_COUNT,
);
const SWAP_BRANCHES: CallOption =
    CallOption::flag("swap-branches", "swap tensors in branches of the forward phase as well", false);
const BRANCH_THRESHOLD: CallOption =
    CallOption::open("branch-threshold", "minimum number of levels that such a branch spans; 0", NO_COUNT);
const ENCODE: CallOption = CallOption::flag(
    "encode",
    "copy 64-bit integers that fit 32 bits by their definition, such as indices of MaxPool, in 32 bits (TFLMS §4.2.1)",
    false,
);
const INCL_SCOPES: CallOption = CallOption::open(
    "incl-scopes",
    "swap only results of nodes in this scope: a prefix of their names, or a pattern with `*`",
    NO_NAMES,
);
const EXCL_SCOPES: CallOption =
    CallOption::open("excl-scopes", "do not swap results of nodes in this scope", NO_NAMES);
const INCL_TYPES: CallOption = CallOption::open("incl-types", "swap only results of this operator", NO_NAMES);
const EXCL_TYPES: CallOption =
    CallOption::open("excl-types", "do not swap results of this operator", NO_NAMES);
const STARTING_SCOPES: CallOption =
    CallOption::open("starting-scopes", "swap only results that depend on nodes in this scope", NO_NAMES);
const STARTING_OP_NAMES: CallOption =
    CallOption::open("starting-op-names", "swap only results that depend on this node", NO_NAMES);
const SWAP_LIMIT: CallOption = CallOption::open(
    "swap-limit",
    "apply only this many swaps, the first ones, to bisect a fault; all",
    NO_COUNT,
);

const NO_COUNT: OptionValue = OptionValue::NoCount;
const NO_NAMES: OptionValue = OptionValue::NoNames;

/// The options of the planner.
pub const OPTIONS: [CallOption; 16] = [
    THRESHOLD,
    LB,
    UB,
    N_TENSORS,
    CTRLD_STRATEGY,
    FUSE_SWAPINS,
    SWAP_BRANCHES,
    BRANCH_THRESHOLD,
    ENCODE,
    INCL_SCOPES,
    EXCL_SCOPES,
    INCL_TYPES,
    EXCL_TYPES,
    STARTING_SCOPES,
    STARTING_OP_NAMES,
    SWAP_LIMIT,
];

/// The options that the planner tunes for a budget unless a call sets one of them.
const TUNED: [CallOption; 8] =
    [THRESHOLD, LB, UB, N_TENSORS, CTRLD_STRATEGY, FUSE_SWAPINS, SWAP_BRANCHES, BRANCH_THRESHOLD];

/// Whether a call that sets the option of this name may make a plan that does not keep within the budget.
pub fn bends(name: &str) -> bool {
    is_tuned(name) || name == SWAP_LIMIT.name
}

/// Whether a call that sets the option of this name takes it as it is, instead of having it tuned for the budget.
pub fn is_tuned(name: &str) -> bool {
    TUNED.iter().any(|option| option.name == name)
}

/// The number of swaps that are applied, where a call limits it.
pub fn swap_limit(call: &CallOptions) -> Option<usize> {
    call.count_if_given(&SWAP_LIMIT).map(|limit| usize::try_from(limit).unwrap_or(usize::MAX))
}

impl Params {
    /// The parameters of a call; those without a value have their defaults. Numbers beyond 32 bits have no other effect than the
    /// largest of 32 bits: no graph has as many levels.
    pub fn of(call: &CallOptions) -> Params {
        let default = Params::default();
        let number = |option, default| {
            call.count_if_given(option).map_or(default, |count| u32::try_from(count).unwrap_or(u32::MAX))
        };
        let scopes = |option| call.names(option).iter().map(|scope| Scope::new(scope)).collect();
        Params {
            threshold: number(&THRESHOLD, default.threshold),
            lb: number(&LB, default.lb),
            ub: number(&UB, default.ub),
            n_tensors: call.count_if_given(&N_TENSORS).map(|n| usize::try_from(n).unwrap_or(usize::MAX)),
            ctrld_strategy: match call.word(&CTRLD_STRATEGY) {
                "direct-order" => Strategy::DirectOrder,
                _ => Strategy::ChainRule,
            },
            fuse_swapins: number(&FUSE_SWAPINS, default.fuse_swapins),
            swap_branches: call.flag(&SWAP_BRANCHES),
            branch_threshold: number(&BRANCH_THRESHOLD, default.branch_threshold),
            encode: call.flag(&ENCODE),
            incl_scopes: scopes(&INCL_SCOPES),
            excl_scopes: scopes(&EXCL_SCOPES),
            incl_types: call.names(&INCL_TYPES).to_vec(),
            excl_types: call.names(&EXCL_TYPES).to_vec(),
            starting_scopes: scopes(&STARTING_SCOPES),
            starting_op_names: call.names(&STARTING_OP_NAMES).to_vec(),
            optimizer_scopes: Vec::new(),
        }
    }
}

impl Params {
    /// Checks that the graph has the operators, nodes and scopes that these parameters name.
    ///
    /// # Errors
    /// A sentence that names the first one that it has not.
    pub fn names_are_in(&self, graph: &Graph) -> Result<(), String> {
        let nodes = || graph.order().iter().map(|&id| graph.node(id));
        let refuse = |option: &CallOption, name: &str, there_are: Vec<String>, many: &str| {
            let instead = words::instead(name, there_are.iter().map(|n| &**n), many);
            Err(format!("{} {name}: the graph has none of this name; {instead}", option.name))
        };
        for (option, names) in [(INCL_TYPES, &self.incl_types), (EXCL_TYPES, &self.excl_types)] {
            for name in names {
                if !nodes().any(|n| *name == *n.op.name() || *name == n.op.to_string()) {
                    let ops: BTreeSet<String> = nodes().map(|n| n.op.to_string()).collect();
                    return refuse(&option, name, ops.into_iter().collect(), "operators");
                }
            }
        }
        let scopes = [
            (INCL_SCOPES, &self.incl_scopes),
            (EXCL_SCOPES, &self.excl_scopes),
            (STARTING_SCOPES, &self.starting_scopes),
        ];
        for (option, scopes) in scopes {
            Scope::all_have_nodes(graph, option.name, scopes)?;
        }
        for name in &self.starting_op_names {
            if !nodes().any(|n| *name == *n.name) {
                let there_are = nodes().map(|n| n.name.to_string()).collect();
                return refuse(&STARTING_OP_NAMES, name, there_are, "nodes");
            }
        }
        Ok(())
    }
}

/// The call that sets each parameter as it is here, so that none is tuned.
impl From<&Params> for CallOptions {
    fn from(params: &Params) -> CallOptions {
        let mut given: Vec<(&str, String)> = vec![
            (THRESHOLD.name, params.threshold.to_string()),
            (LB.name, params.lb.to_string()),
            (UB.name, params.ub.to_string()),
            (CTRLD_STRATEGY.name, params.ctrld_strategy.to_string()),
            (FUSE_SWAPINS.name, params.fuse_swapins.to_string()),
            (SWAP_BRANCHES.name, params.swap_branches.to_string()),
            (BRANCH_THRESHOLD.name, params.branch_threshold.to_string()),
            (ENCODE.name, params.encode.to_string()),
        ];
        given.extend(params.n_tensors.map(|n| (N_TENSORS.name, n.to_string())));
        let scopes = [
            (INCL_SCOPES, &params.incl_scopes),
            (EXCL_SCOPES, &params.excl_scopes),
            (STARTING_SCOPES, &params.starting_scopes),
        ];
        let names = [
            (INCL_TYPES, &params.incl_types),
            (EXCL_TYPES, &params.excl_types),
            (STARTING_OP_NAMES, &params.starting_op_names),
        ];
        for (option, scopes) in scopes {
            given.extend(scopes.iter().map(|scope| (option.name, scope.to_string())));
        }
        for (option, names) in names {
            given.extend(names.iter().map(|name| (option.name, name.clone())));
        }
        let given: Vec<(&str, &str)> = given.iter().map(|(name, value)| (*name, &**value)).collect();
        CallOptions::of("planner", NAME, &OPTIONS, &given).expect("each option takes its own value")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_of_parameters_has_these_parameters() {
        let params = Params {
            threshold: 6,
            n_tensors: Some(3),
            ctrld_strategy: Strategy::DirectOrder,
            swap_branches: true,
            encode: true,
            incl_scopes: vec![Scope::new("a/*"), Scope::new("b")],
            excl_types: vec!["Relu".to_owned(), "my.Op".to_owned()],
            ..Params::default()
        };
        for params in [params, Params::default()] {
            assert_eq!(format!("{:?}", Params::of(&(&params).into())), format!("{params:?}"));
        }
        // Options that a call omits have the documented defaults.
        assert_eq!(format!("{:?}", Params::of(&CallOptions::default())), format!("{:?}", Params::default()));
        let told = |option: &CallOption| option.summary.rsplit_once("; ").unwrap().1.to_owned();
        let Params { threshold, lb, ub, branch_threshold, .. } = Params::default();
        let defaults = [(THRESHOLD, threshold), (LB, lb), (UB, ub), (BRANCH_THRESHOLD, branch_threshold)];
        for (option, default) in defaults {
            assert_eq!(told(&option), default.to_string(), "{}", option.name);
        }
    }
}

//! Graph-to-graph transformations, and the pipeline that runs and checks them.
//!
//! A pass applies what a planner of `lmsc-plan` decided; it decides nothing itself. One file a pass.
//!
//! A [`Pass`] is any type with that trait, also outside this crate; [`REGISTRY`] has those that the command line knows.
//! A [`Pipeline`] runs passes and the verifier after each. [`lower`](lower()) makes a program of the result.
//!
//! ```
//! use lmsc_ir::Graph;
//! use lmsc_passes::{PassCx, Pipeline};
//!
//! // The shape is read late, which keeps `h` alive.
//! let mut graph = Graph::parse(
//!     "late (float[64] x) => (float[64] y, int64[1] s) {
//!         [relu] float[64] h = Relu(x)
//!         [exp] float[64] e = Exp(h)
//!         [tanh] float[64] y = Tanh(e)
//!         [shape] int64[1] s = Shape(h)
//!     }",
//! )?;
//! let ran = Pipeline::parse("hoist-shapes").and_then(|it| it.run(&mut graph, &PassCx::default())).expect("it fits");
//! assert!(ran[0].outcome.changed);
//! assert_eq!(&*graph.node(graph.order()[1]).name, "shape");
//! # Ok::<(), lmsc_ir::ParseError>(())
//! ```

#![forbid(unsafe_code)]

mod apply;
mod clean_up;
mod expand;
mod fold_constants;
mod given;
mod hoist_shapes;
mod lower;
mod merge_common_subexpressions;
mod observe;
mod options;
mod pipeline;
mod place;
mod plan;
mod remove_dead_nodes;
mod reorder;
mod rewrite;
mod swap;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use lmsc_ir::{Bytes, Graph, Message, Node, NodeId, Phase};
use lmsc_plan::cost::{Costs, Profile};
use lmsc_plan::planners::{Options, Planner, Scheduler};
use lmsc_plan::saved::Saved;
use lmsc_plan::schedule::Watch;
use lmsc_plan::target::Kernels;
use lmsc_plan::{Cause, MemoryTimeline, Reach, Refusal, Target, pages, tflms};

pub use apply::{Mismatch, apply};
pub use given::{GivenOrder, GivenPlan};
pub use lower::{LowerError, Lowering, lower};
pub use observe::observe;
pub use options::{OptionValue, PassOption, PassOptions};
pub use pipeline::{Observer, Pipeline, Ran, TFLMS, TFLMS_SUMMARY};
pub use plan::{bridge, carry_out, question, saved};

/// A named graph-to-graph transformation. Stateless: all that a call asks for comes in [`PassCx`].
pub trait Pass: Sync {
    /// Kebab-case; what `-p` and `--print-after` take, and the folder under `testdata/passes/`.
    fn name(&self) -> &'static str;

    /// A noun phrase without a full stop, for `lmsc passes`.
    fn summary(&self) -> &'static str;

    /// What the pass may change, and so the check that proves its result.
    fn kind(&self) -> PassKind {
        PassKind::Memory
    }

    /// The options that are the pass's own, which `-p 'name{option=value}'` sets and [`PassCx`] gives to the pass.
    fn options(&self) -> &[PassOption] {
        &[]
    }

    /// Transforms the graph.
    fn run(&self, graph: &mut Graph, cx: &PassCx) -> Result<Outcome, PassError>;
}

/// What a pass may change, and so the check that proves its result ([`Pipeline::prove`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PassKind {
    /// When values are computed, how often, and where they are: [`lmsc_ir::equiv::check`] proves it.
    Memory,
    /// Which nodes there are, too: none that nothing needs, one for several, a constant in place of one.
    /// [`lmsc_ir::equiv::check_cleaned`] proves it.
    CleanUp,
    /// The operators that compute a value. No check proves it.
    Operators,
}

/// Every pass. The only registration point.
pub static REGISTRY: &[&dyn Pass] = &[
    &fold_constants::FoldConstants,
    &merge_common_subexpressions::MergeCommonSubexpressions,
    &remove_dead_nodes::RemoveDeadNodes,
    &expand::ExpandTrainingOps,
    &hoist_shapes::HoistShapes,
    &reorder::Reorder,
    &swap::Swap,
    &place::GiveAddresses,
    &plan::Plan,
];

/// The pass of this name.
pub fn pass_named(name: &str) -> Option<&'static dyn Pass> {
    REGISTRY.iter().copied().find(|pass| pass.name() == name)
}

/// Tells what nodes of a graph need besides their values while they run.
pub type Workspaces = fn(&Graph) -> BTreeMap<NodeId, Bytes>;

/// What the passes are asked for.
#[derive(Clone, Debug, Default)]
pub struct PassCx {
    /// The device bytes that the step's values and workspaces may use, if there is a limit.
    pub budget: Option<Bytes>,
    /// The device bytes that the constants of kernels take beside them: with the budget, all that the step may use.
    pub constants: Bytes,
    /// The host bytes that swapped tensors may occupy; those of the target where none are given.
    pub host_budget: Option<Bytes>,
    /// The planner that the pass `plan` asks; none for TFLMS, which the pass `swap` is.
    pub planner: Option<&'static Planner>,
    /// Whether that pass lets ranges of a tensor travel each by itself.
    pub ranges: bool,
    /// How much that pass searches, in percent of the usual number of evaluations, which is taken where none is given.
    pub effort: Option<u32>,
    /// Who orders the copies that planners of papers choose.
    pub scheduler: Scheduler,
    /// Parameters of planners.
    pub options: Options,
    /// Whether everything gets an address, in an arena of the budget's size.
    pub addresses: bool,
    /// Whether memory may be mapped in pages instead, where addresses cost much.
    pub or_pages: bool,
    /// Where memory is mapped in pages of so many bytes instead, that many: the pass `plan` then counts whole pages.
    pub pages: Option<Bytes>,
    /// Whether constants of the file stay on the device, for a runtime that computes copies of constants away.
    pub weights_stay: bool,
    /// Whether small tensors stay on the device however small the budget is, for a compiler that computes copies of them away.
    pub small_stay: bool,
    /// The machine for which the step is planned; [`DEFAULT_TARGET`] where none is given.
    pub target: Option<Target>,
    /// What was measured on that machine, if anything was.
    pub profile: Option<Arc<Profile>>,
    /// What nodes of a graph need besides their values while they run, where that is known for certain, in place of what
    /// the target's model or the profile says.
    pub workspaces: Option<Workspaces>,
    /// What nodes need at least, where they may need more to do their best: then nodes that the profile knows need what it
    /// says, and no less than this.
    pub least_workspaces: Option<Workspaces>,
    /// What the call sets of the options of the pass that runs; a [`Pipeline`] puts it here.
    pub pass_options: PassOptions,
    /// Parameters of TFLMS.
    pub tflms: tflms::Params,
    /// Whether the user set parameters of TFLMS; then they are taken as they are instead of tuned.
    pub tflms_fixed: bool,
    /// Apply only this many swaps, the first in execution order; for bisecting.
    pub swap_limit: Option<usize>,
    /// The order into which the pass `reorder` brings the nodes, instead of finding one.
    pub order: Option<Arc<GivenOrder>>,
    /// A plan that the pass `plan` carries out instead of asking the planner.
    pub given: Option<Arc<GivenPlan>>,
    /// Whether the pass `plan` tells the plan in its [`Outcome`], to be saved.
    pub keep_plan: bool,
    /// Follows the search of the pass `plan`, and may end it.
    pub watch: Option<Arc<Watch>>,
}

/// The machine for which plans are made where the user does not say.
pub const DEFAULT_TARGET: &str = "a100-pcie4";

impl PassCx {
    /// The machine for which plans are made, with its link as it was measured, if it was.
    pub fn target(&self) -> Target {
        let default = || Target::built_in(DEFAULT_TARGET).expect("the default target is built in").clone();
        let mut target = self.target.clone().unwrap_or_else(default);
        target.link = self.profile.as_ref().and_then(|profile| profile.link).unwrap_or(target.link);
        target
    }

    /// What every address is to be a multiple of.
    pub fn alignment(&self) -> Bytes {
        self.target().alignment_bytes
    }

    /// The bytes of a page of the machine's memory, where plans for memory that is mapped in pages hold their budget and cost nothing
    /// else: on the host. On a GPU pages are mapped once, before the first step, which may take more of them than are planned.
    pub fn page(&self) -> Option<Bytes> {
        match self.target().kernels {
            Kernels::Host => Some(Bytes(pages::SMALLEST)),
            Kernels::Cuda | Kernels::None => None,
        }
    }

    /// The same, with memory as the peak of a step counts it: everything gets an address in an arena.
    #[must_use]
    pub fn in_arena(&self) -> PassCx {
        PassCx { addresses: true, pages: None, ..self.clone() }
    }

    /// The sum of `bytes` and the constants of kernels.
    pub(crate) fn with_constants(&self, bytes: Bytes) -> Bytes {
        Bytes(bytes.0.saturating_add(self.constants.0))
    }

    /// The refusal of the planner's plan, with the constants of kernels in its numbers and the kind of plan that was asked for.
    pub(crate) fn refused(&self, refusal: Refusal, planner: &'static str) -> PassError {
        let reach = Reach::of(planner, self.ranges);
        let is_reached = matches!(refusal.cause, Cause::Operator(_) | Cause::Resident);
        let refusal = if is_reached && !self.addresses && self.pages.is_none() {
            refusal.reached(reach)
        } else {
            // With addresses or in pages it needs more.
            refusal
        };
        PassError::Refused(Box::new(Refusal { asked: Some(reach), ..refusal.beside(self.constants) }))
    }

    /// All device bytes that the step may use, constants of kernels included, if there is a limit.
    pub fn whole_budget(&self) -> Option<Bytes> {
        self.budget.map(|budget| self.with_constants(budget))
    }

    /// The host bytes that swapped tensors may occupy.
    pub fn host_budget(&self) -> Bytes {
        self.host_budget.unwrap_or_else(|| self.target().host_bytes)
    }

    /// What each node of the graph costs: as measured, else by the model of the target.
    pub fn costs(&self, graph: &Graph) -> Costs {
        let costs = Costs::of(graph, &self.target(), self.profile.as_deref());
        match (self.workspaces, self.least_workspaces) {
            (Some(workspaces), Some(least)) if self.profile.is_some() => {
                costs.with_least_workspaces(least(graph), &workspaces(graph))
            }
            (Some(workspaces), _) => costs.with_workspaces(workspaces(graph)),
            (None, _) => costs,
        }
    }

    /// What each node of the graph needs on the target while it runs, besides its values.
    pub fn workspace(&self, graph: &Graph) -> impl Fn(NodeId) -> Bytes + use<> {
        let costs = self.costs(graph);
        move |node| costs.workspace(node)
    }

    /// The memory that the graph needs on the target, workspaces included.
    pub fn memory(&self, graph: &Graph) -> MemoryTimeline {
        MemoryTimeline::with_workspace(graph, self.workspace(graph))
    }

    /// The phase that the user says the node belongs to.
    pub fn scope(&self, node: &Node) -> Option<Phase> {
        let named = self.tflms.optimizer_scopes.iter().any(|scope| scope.contains(&node.name));
        named.then_some(Phase::Backward)
    }
}

/// What a pass did.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Whether the graph is another one now.
    pub changed: bool,
    /// What there is to tell, a line each.
    pub remarks: Vec<String>,
    /// Storages that were swapped, for the report.
    pub swaps: Vec<SwapRecord>,
    /// Storages that stay, with the reason.
    pub kept: Vec<KeptRecord>,
    /// The bytes of a page, where the plan is for memory that is mapped in pages.
    pub pages: Option<Bytes>,
    /// The plan that was carried out; or where the graph fits as it is, the plan that moves nothing.
    pub plan: Option<Box<Saved>>,
}

/// A storage that was swapped.
#[derive(Clone, Debug)]
pub struct SwapRecord {
    /// The name of the value that is its root.
    pub value: String,
    /// Its size.
    pub bytes: Bytes,
    /// Its size where it crosses the link: smaller if it is encoded.
    pub link_bytes: Bytes,
    /// Bytes from the device to the host.
    pub bytes_out: Bytes,
    /// Bytes from the host to the device.
    pub bytes_in: Bytes,
    /// How often it comes back, whole or a range of it.
    pub swap_ins: usize,
}

/// A storage that stays.
#[derive(Clone, Debug)]
pub struct KeptRecord {
    /// The name of the value that is its root.
    pub value: String,
    /// Its size.
    pub bytes: Bytes,
    /// Why.
    pub reason: Cow<'static, str>,
}

/// Why a pass could not do what was asked for.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PassError {
    /// The budget cannot be met: the answer is "no".
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// The pass was not called as it must be, or the graph is none that it takes.
    #[error("{0}")]
    Call(Message),
    /// A plan that was given cannot be read, does not belong to the graph, or is not valid.
    #[error("{}", .0.message)]
    Given(Box<NotGiven>),
    /// A plan and a pass contradict each other: a bug of ours.
    #[error("pass {pass}: {what}")]
    Ours {
        /// The pass that noticed.
        pass: &'static str,
        /// What is wrong.
        what: String,
    },
    /// The graph broke an invariant: a bug of the pass named.
    #[error("after pass {pass} the graph is not valid any more:\n{violations}")]
    Broke {
        /// The pass after which the verifier objected.
        pass: String,
        /// What it found.
        violations: lmsc_ir::Violations,
    },
}

/// Why a plan that was given is not carried out.
#[derive(Clone, Debug)]
pub struct NotGiven {
    /// Whether the file is no plan at all.
    pub is_unreadable: bool,
    /// What is wrong with the plan, without the file's name.
    pub fault: String,
    /// The message with the file's name and advice.
    pub message: Message,
}

impl fmt::Debug for dyn Pass + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

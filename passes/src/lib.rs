//! Graph-to-graph transformations, and the pipeline that runs and checks them.
//!
//! A pass applies the decisions of a planner of `lmsc-plan` and makes none of its own. Each pass has one file.
//!
//! A [`Pass`] is any type that implements the trait, in this crate or outside it; [`REGISTRY`] lists the passes of
//! the command line. A [`Pipeline`] runs passes and the verifier after each. [`lower`](lower()) makes a program of
//! the result.
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
mod chunk_loss;
mod clean_up;
mod expand;
mod fold_constants;
mod fuse_attention;
mod given;
mod hoist_shapes;
mod layout;
mod lower;
mod merge_common_subexpressions;
mod mixed_precision;
mod observe;
mod pipeline;
mod place;
mod plan;
mod planner;
mod remove_dead_nodes;
mod reorder;
pub mod rewrite;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use lmsc_ir::{Bytes, Graph, Message, Node, NodeId, Phase};
use lmsc_plan::cost::{Costs, Profile};
use lmsc_plan::planners::Scheduler;
use lmsc_plan::saved::Saved;
use lmsc_plan::schedule::Watch;
use lmsc_plan::service::Space;
use lmsc_plan::target::Kernels;
use lmsc_plan::{Cause, MemoryTimeline, Reach, Refusal, Scope, Target, pages};

pub use apply::{Mismatch, apply};
pub use given::{GivenOrder, GivenPlan};
pub use lmsc_plan::planners::call::{CallOption, CallOptions, OptionValue};
pub use lower::{LowerError, Lowering, lower};
pub use observe::observe;
pub use pipeline::{Observer, Pipeline, Ran};
pub use place::extent;
pub use plan::{bridge, carry_out, question, saved};
pub use planner::{AnyPlanner, GraphPlanner, OURS, Planners};

/// A named graph-to-graph transformation. Stateless: all options of a call come in [`PassCx`].
pub trait Pass: Sync {
    /// Kebab-case; the name that `-p` and `--print-after` take, and the name of the folder under
    /// `testdata/passes/`.
    fn name(&self) -> &'static str;

    /// A noun phrase without a full stop, for `lmsc passes`.
    fn summary(&self) -> &'static str;

    /// The kind of changes that the pass may make; it selects the check that proves the result.
    fn kind(&self) -> PassKind {
        PassKind::Memory
    }

    /// The pass's own options. `-p 'name{option=value}'` sets them, and [`PassCx`] hands them to the pass.
    fn options(&self) -> &[CallOption] {
        &[]
    }

    /// Transforms the graph.
    fn run(&self, graph: &mut Graph, cx: &PassCx) -> Result<Outcome, PassError>;
}

/// The kind of changes that a pass may make; it selects the check that proves the result ([`Pipeline::prove`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PassKind {
    /// The order of nodes, how often they run, and the places of values: [`lmsc_ir::equiv::check`] proves the
    /// result.
    Memory,
    /// The set of nodes, too: the pass may remove nodes without users, merge equal ones and replace a node by a
    /// constant. [`lmsc_ir::equiv::check_cleaned`] proves it.
    CleanUp,
    /// The operators that compute a value. No check proves it.
    Operators,
    /// The types of values, and so their bits. No check proves it, and none could: the result computes something else.
    Precision,
}

/// The passes of this crate. The only registration point.
pub static REGISTRY: &[&dyn Pass] = &[
    &fold_constants::FoldConstants,
    &merge_common_subexpressions::MergeCommonSubexpressions,
    &remove_dead_nodes::RemoveDeadNodes,
    &expand::ExpandTrainingOps,
    &mixed_precision::MixedPrecision,
    &chunk_loss::ChunkLoss,
    &fuse_attention::FuseAttention,
    &layout::Layout,
    &hoist_shapes::HoistShapes,
    &reorder::Reorder,
    &place::GiveAddresses,
    &plan::Plan,
];

/// The pass of this name.
pub fn pass_named(name: &str) -> Option<&'static dyn Pass> {
    REGISTRY.iter().copied().find(|pass| pass.name() == name)
}

/// The passes of [`REGISTRY`] and `more`, in the order in which pipelines run them: these passes stand where planners do, before
/// the one that gives addresses.
pub fn with_passes(more: &[&'static dyn Pass]) -> Vec<&'static dyn Pass> {
    let (before, after) = REGISTRY.split_at(REGISTRY.len() - AFTER_PLANNERS);
    [before, more, after].concat()
}

/// The number of passes of [`REGISTRY`] after those of planners: `place`, and `plan`, which is a planner itself.
const AFTER_PLANNERS: usize = 2;

/// Computes the bytes that nodes of a graph need while they run, besides their values.
#[derive(Clone)]
pub struct Workspaces(Arc<BytesOfNodes>);

type BytesOfNodes = dyn Fn(&Graph) -> BTreeMap<NodeId, Bytes> + Send + Sync;

impl Workspaces {
    /// The workspaces that the function computes.
    pub fn new(function: impl Fn(&Graph) -> BTreeMap<NodeId, Bytes> + Send + Sync + 'static) -> Workspaces {
        Workspaces(Arc::new(function))
    }

    /// The bytes of each node of the graph.
    pub fn of(&self, graph: &Graph) -> BTreeMap<NodeId, Bytes> {
        (self.0)(graph)
    }
}

impl fmt::Debug for Workspaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Workspaces")
    }
}

/// The context of the passes of a call.
#[derive(Clone, Debug, Default)]
pub struct PassCx {
    /// The machine for which the step is planned.
    pub machine: MachineModel,
    /// The plan that is asked for.
    pub question: PlanRequest,
    /// The reader of the result.
    pub consumer: Consumer,
    /// Nodes of these scopes belong to the backward phase, regardless of the graph.
    pub optimizer_scopes: Vec<Scope>,
    /// The options that the call sets for the pass that runs; a [`Pipeline`] fills them in.
    pub pass_options: CallOptions,
}

/// The machine for which a step is planned.
#[derive(Clone, Debug, Default)]
pub struct MachineModel {
    /// Its description; without a value, [`DEFAULT_TARGET`].
    pub target: Option<Target>,
    /// The costs that were measured on it, if there are any.
    pub profile: Option<Arc<Profile>>,
    /// The bytes that nodes need while they run, besides their values, where these are known exactly. They replace
    /// those of the target's model and of the profile.
    pub workspaces: Option<Workspaces>,
    /// The least bytes that nodes need, where more bytes make them faster: a node that the profile has needs the
    /// profile's bytes, and at least these.
    pub least_workspaces: Option<Workspaces>,
}

/// The plan that a call asks for.
#[derive(Clone, Debug, Default)]
pub struct PlanRequest {
    /// The device bytes that the step's values and workspaces may use, if there is a limit.
    pub budget: Option<Bytes>,
    /// The device bytes of the kernels' constants. The step may use the sum of these bytes and the budget.
    pub constants: Bytes,
    /// The host bytes that swapped tensors may occupy; without a value, those of the target.
    pub host_budget: Option<Bytes>,
    /// The planner: one of problems, which the pass `plan` calls, or one of graphs, which is passes of its own.
    pub planner: Option<AnyPlanner>,
    /// The options of the planner, as in `--planner 'window{bytes=1GiB}'`.
    pub planner_options: CallOptions,
    /// Whether the pass `plan` may copy ranges of a tensor separately.
    pub ranges: bool,
    /// How much the pass `plan` searches, in percent of the usual number of evaluations; 100 without a value.
    pub effort: Option<u32>,
    /// The pass `plan` takes a plan that loses little where operators or copies are off by this many percent.
    pub robust: Option<u32>,
    /// The algorithm that orders the copies which the planners of papers choose.
    pub scheduler: Scheduler,
    /// How the plan keeps within the budget.
    pub space: Space,
    /// Whether memory may be mapped in pages instead of an arena, where addresses cost much time.
    pub or_pages: bool,
    /// The order into which the pass `reorder` brings the nodes, instead of finding one.
    pub order: Option<Arc<GivenOrder>>,
    /// A plan that the pass `plan` carries out instead of calling the planner.
    pub given: Option<Arc<GivenPlan>>,
}

/// The reader of the result: a runtime or a compiler that reads the written file, and the caller of the passes.
#[derive(Clone, Debug, Default)]
pub struct Consumer {
    /// Whether constants of the file stay on the device, for a runtime that folds copies of constants away.
    pub weights_stay: bool,
    /// Whether small tensors stay on the device for every budget, for a compiler that folds copies of them away.
    pub small_stay: bool,
    /// Whether the pass `plan` returns the plan in its [`Outcome`], to be saved.
    pub keep_plan: bool,
    /// Reports the progress of the search of the pass `plan`, and may end the search.
    pub watch: Option<Arc<Watch>>,
}

/// The target of plans where the user names none.
pub const DEFAULT_TARGET: &str = "a100-pcie4";

impl MachineModel {
    /// The target of the plans; its link is the measured one where the profile has it.
    pub fn target(&self) -> Target {
        let default = || Target::built_in(DEFAULT_TARGET).expect("the default target is built in").clone();
        let mut target = self.target.clone().unwrap_or_else(default);
        target.link = self.profile.as_ref().and_then(|profile| profile.link).unwrap_or(target.link);
        target
    }
}

impl PassCx {
    /// The target of the plans.
    pub fn target(&self) -> Target {
        self.machine.target()
    }

    /// The alignment of every address, in bytes.
    pub fn alignment(&self) -> Bytes {
        self.target().alignment_bytes
    }

    /// The bytes of a page, on targets where a plan in pages keeps the budget and costs nothing else: on the host.
    /// On a GPU, pages are mapped once, before the first step, and that may take more of them than are planned.
    pub fn page(&self) -> Option<Bytes> {
        match self.target().kernels {
            Kernels::Host => Some(Bytes(pages::SMALLEST)),
            Kernels::Cuda | Kernels::None => None,
        }
    }

    /// The same context for an arena: everything gets an address, as the peak of a step assumes.
    #[must_use]
    pub fn in_arena(&self) -> PassCx {
        let mut cx = self.clone();
        cx.question.space = Space::Arena;
        cx
    }

    /// The sum of `bytes` and the constants of kernels.
    pub(crate) fn with_constants(&self, bytes: Bytes) -> Bytes {
        Bytes(bytes.0.saturating_add(self.question.constants.0))
    }

    /// The refusal of the planner's plan, with the constants of kernels added to its numbers and the kind of plan
    /// that the call requested.
    pub fn refused(&self, refusal: Refusal, planner: &'static str) -> PassError {
        let reach = Reach::of(planner, self.question.ranges);
        let is_reached = matches!(refusal.cause, Cause::Operator(_) | Cause::Resident);
        let refusal = if is_reached && self.question.space == Space::Counted {
            refusal.reached(reach)
        } else {
            // Plans with addresses or in pages need more memory.
            refusal
        };
        PassError::Refused(Box::new(Refusal {
            asked: Some(reach),
            ..refusal.beside(self.question.constants)
        }))
    }

    /// All device bytes that the step may use, constants of kernels included, if there is a limit.
    pub fn whole_budget(&self) -> Option<Bytes> {
        self.question.budget.map(|budget| self.with_constants(budget))
    }

    /// The host bytes that swapped tensors may occupy.
    pub fn host_budget(&self) -> Bytes {
        self.question.host_budget.unwrap_or_else(|| self.target().host_bytes)
    }

    /// The cost of each node of the graph: measured where the profile has it, else from the target's model.
    pub fn costs(&self, graph: &Graph) -> Costs {
        let MachineModel { profile, workspaces, least_workspaces, .. } = &self.machine;
        let costs = Costs::of(graph, &self.target(), profile.as_deref());
        match (workspaces, least_workspaces) {
            (Some(workspaces), Some(least)) if profile.is_some() => {
                costs.with_least_workspaces(least.of(graph), &workspaces.of(graph))
            }
            (Some(workspaces), _) => costs.with_workspaces(workspaces.of(graph)),
            (None, _) => costs,
        }
    }

    /// The bytes that each node of the graph needs on the target while it runs, besides its values.
    pub fn workspace(&self, graph: &Graph) -> impl Fn(NodeId) -> Bytes + use<> {
        let costs = self.costs(graph);
        move |node| costs.workspace(node)
    }

    /// The memory that the graph needs on the target, workspaces included.
    pub fn memory(&self, graph: &Graph) -> MemoryTimeline {
        MemoryTimeline::with_workspace(graph, self.workspace(graph))
    }

    /// Whether the option of the pass that runs is on.
    ///
    /// # Panics
    /// If the option is not declared as a flag. `count` and `bytes` panic likewise for options of other kinds.
    pub(crate) fn flag(&self, option: &CallOption) -> bool {
        self.pass_options.flag(option)
    }

    /// The value of the option of the pass that runs, a number.
    pub fn count(&self, option: &CallOption) -> u64 {
        self.pass_options.count(option)
    }

    /// The value of the option of the pass that runs, one of its words.
    pub(crate) fn word(&self, option: &CallOption) -> &str {
        self.pass_options.word(option)
    }

    /// The value of the option of the pass that runs, a size.
    pub fn bytes(&self, option: &CallOption) -> Bytes {
        self.pass_options.bytes(option)
    }

    /// The phase that the user's options give the node.
    pub fn scope(&self, node: &Node) -> Option<Phase> {
        let named = self.optimizer_scopes.iter().any(|scope| scope.contains(&node.name));
        named.then_some(Phase::Backward)
    }
}

/// The result of a pass.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Whether the pass changed the graph.
    pub changed: bool,
    /// Remarks for the user, one line each.
    pub remarks: Vec<String>,
    /// Storages that were swapped, for the report.
    pub swaps: Vec<SwapRecord>,
    /// Storages that are not swapped, with the reason.
    pub kept: Vec<KeptRecord>,
    /// The bytes of a page, where the plan is for memory that is mapped in pages.
    pub pages: Option<Bytes>,
    /// The plan that was carried out; where the graph fits without a rewrite, the plan without copies.
    pub plan: Option<Box<Saved>>,
}

/// A storage that was swapped.
#[derive(Clone, Debug)]
pub struct SwapRecord {
    /// The name of the storage's root value.
    pub value: String,
    /// The size of the storage.
    pub bytes: Bytes,
    /// The bytes of one copy over the link: fewer than `bytes` if the storage is encoded.
    pub link_bytes: Bytes,
    /// Bytes that are copied from the device to the host.
    pub bytes_out: Bytes,
    /// Bytes that are copied from the host to the device.
    pub bytes_in: Bytes,
    /// Number of swap-ins, of the whole storage or of a range.
    pub swap_ins: usize,
}

/// A storage that is not swapped.
#[derive(Clone, Debug)]
pub struct KeptRecord {
    /// The name of the storage's root value.
    pub value: String,
    /// The size of the storage.
    pub bytes: Bytes,
    /// The reason, for the report.
    pub reason: Cow<'static, str>,
}

/// Why a pass did not do its work.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PassError {
    /// The budget cannot be met: the answer is "no".
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// The pass was called with wrong options, or does not take this graph.
    #[error("{0}")]
    Call(Message),
    /// A plan from a file cannot be read, does not belong to the graph, or is not valid.
    #[error("{}", .0.message)]
    Given(Box<NotGiven>),
    /// A plan and a pass contradict each other: a bug of lmsc.
    #[error("pass {pass}: {what}")]
    Ours {
        /// The pass that found it.
        pass: &'static str,
        /// The contradiction.
        what: String,
    },
    /// The graph broke an invariant: a bug of the named pass.
    #[error("after pass {pass} the graph is not valid any more:\n{violations}")]
    Broke {
        /// The pass after which the verifier objected.
        pass: String,
        /// The violations that the verifier found.
        violations: lmsc_ir::Violations,
    },
}

/// Why a plan from a file is not carried out.
#[derive(Clone, Debug)]
pub struct NotGiven {
    /// Whether the file does not contain a plan.
    pub is_unreadable: bool,
    /// The fault of the plan, without the file's name.
    pub fault: String,
    /// The message with the file's name and advice.
    pub message: Message,
}

impl fmt::Debug for dyn Pass + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

//! The options of a compilation as plain data. The command line, [`Compiler`](crate::Compiler) and Python fill the same structs.

use std::path::{Path, PathBuf};

use lmsc_cuda::Precision;
use lmsc_ir::Bytes;
use lmsc_passes::{PassCx, Pipeline, PlanRequest};
use lmsc_plan::Scope;
use lmsc_plan::service::Space;

use crate::budget::{Budget, Goal};
use crate::planner::PlannerCall;

/// A model, and how it is read.
#[derive(Debug, Clone, Default)]
pub struct Input {
    /// The path of the model, or `-` for standard input.
    pub path: PathBuf,
    /// Sizes and state.
    pub binding: Binding,
}

/// Sizes and state of the step in a file.
#[derive(Debug, Clone, Default)]
pub struct Binding {
    /// Values of symbolic dimensions, by name.
    pub dims: Vec<(String, u64)>,
    /// The optimizer graph that onnxruntime-training wrote beside the training graph.
    pub optimizer: Option<PathBuf>,
    /// Extents of inputs whose dimensions the file leaves open.
    pub shapes: Vec<(String, Vec<u64>)>,
    /// Values of inputs that are constant in all steps, with commas between elements.
    pub values: Vec<(String, String)>,
    /// State that is kept from step to step.
    pub state: Vec<StateOption>,
    /// Inputs and outputs that are not state, independently of their names.
    pub no_state: Vec<String>,
}

impl Binding {
    /// The binding of a step that has its optimizer within.
    pub(crate) fn without_optimizer(&self) -> Binding {
        Binding { optimizer: None, ..self.clone() }
    }
}

/// One statement about state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateOption {
    /// An input and the output that is its next value.
    Pair(String, String),
    /// A JSON file of pairs.
    File(PathBuf),
    /// Names pair nothing.
    None,
}

/// The machine that runs a step.
#[derive(Debug, Clone, Default)]
pub struct Machine {
    /// The name of a target, a TOML file of that form, or `auto`.
    pub target: Option<String>,
    /// A profile measured on that machine.
    pub profile: Option<PathBuf>,
    /// Host memory for swapped tensors.
    pub host_budget: Option<Budget>,
    /// The precision to which products and convolutions may round their operands on a GPU.
    pub precision: Precision,
}

/// The planner, how much it searches, and how the plan keeps within the memory.
#[derive(Debug, Clone, Default)]
pub struct Search {
    /// The planner; `None` for the default one.
    pub planner: Option<PlannerCall>,
    /// Search effort in percent.
    pub effort: Option<u32>,
    /// Whether ranges of a tensor may be swapped separately.
    pub ranges: bool,
    /// The way in which the step keeps its budget.
    pub addresses: Addresses,
    /// The bytes of a page, for memory that is mapped in pages instead of addresses.
    pub pages: Option<Bytes>,
    /// The plan loses little where operators or copies are off by this many percent.
    pub robust: Option<u32>,
}

/// How a plan keeps within the memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Addresses {
    /// By addresses in an arena, or by pages where addresses cost much.
    #[default]
    Auto,
    /// By addresses in an arena.
    On,
    /// By counting bytes.
    Off,
}

impl Search {
    /// The planner, with its options.
    pub(crate) fn called(&self) -> PlannerCall {
        self.planner.clone().unwrap_or_default()
    }

    /// The options as options of passes.
    pub(crate) fn pass_cx(&self) -> PassCx {
        let PlannerCall { planner, options } = self.called();
        let question = PlanRequest {
            planner: Some(planner),
            planner_options: options,
            ranges: self.ranges,
            effort: self.effort,
            space: match (self.pages, self.addresses) {
                (Some(page), _) => Space::Pages(page.0),
                (None, Addresses::Off) => Space::Counted,
                (None, Addresses::Auto | Addresses::On) => Space::Arena,
            },
            or_pages: self.addresses == Addresses::Auto,
            robust: self.robust,
            ..PlanRequest::default()
        };
        PassCx { question, ..PassCx::default() }
    }
}

/// Planning a step.
#[derive(Debug, Clone, Default)]
pub struct Planning {
    /// Device memory of the whole step, or a bound on its time; without one nothing is planned.
    pub budget: Option<Goal>,
    /// The machine.
    pub machine: Machine,
    /// The search.
    pub search: Search,
    /// Prefixes of names of nodes, or patterns with `*`, that belong to the backward phase.
    pub optimizer_scopes: Vec<String>,
    /// A plan or a schedule to carry out instead of planning.
    pub given: Option<PathBuf>,
}

impl Planning {
    /// The options of a planner of graphs that the call takes as they are, as it gives them; nothing if all are tuned for the budget.
    pub(crate) fn fixed(&self) -> Option<PlannerCall> {
        let call = self.search.planner.clone()?;
        let options = call.options.only(call.planner.of_graphs()?.bends);
        (!options.is_empty()).then_some(PlannerCall { options, ..call })
    }

    /// The call without those options.
    pub(crate) fn without_fixed(&self) -> Planning {
        let mut planning = self.clone();
        if let Some(call) = &mut planning.search.planner
            && let Some(planner) = call.planner.of_graphs()
        {
            call.options = call.options.only(|name| !(planner.bends)(name));
        }
        planning
    }

    /// Whether nothing limits the step's memory, so that nothing is planned.
    pub(crate) fn plans_nothing(&self) -> bool {
        let without_budget = |call: PlannerCall| {
            let planner = call.planner.of_graphs();
            planner.is_some_and(|planner| call.options.names_given().any(planner.is_tuned))
        };
        self.budget.is_none() && self.given.is_none() && !self.fixed().is_some_and(without_budget)
    }

    /// The options as options of passes, without budgets, target and profile.
    pub(crate) fn pass_cx(&self) -> PassCx {
        let optimizer_scopes = self.optimizer_scopes.iter().map(|scope| Scope::new(scope)).collect();
        PassCx { optimizer_scopes, ..self.search.pass_cx() }
    }
}

/// Looking at the graph between passes, on standard error.
#[derive(Debug, Clone, Default)]
pub struct Look {
    /// The passes after which the graph is printed.
    pub print_after: Vec<String>,
    /// Whether the graph is printed after every pass.
    pub print_after_all: bool,
    /// Whether the changes of each pass are printed.
    pub print_changed: bool,
    /// Whether times are printed.
    pub timing: bool,
    /// The number of passes that run.
    pub pass_limit: Option<usize>,
}

impl Look {
    /// The first passes, as many as the limit allows.
    pub(crate) fn limited<'p>(&self, passes: Pipeline<'p>) -> Pipeline<'p> {
        passes.first(self.pass_limit.unwrap_or(usize::MAX))
    }
}

/// One compilation: a model, a plan for it, and the files that it writes.
#[derive(Debug, Clone, Default)]
pub struct Job {
    /// The model.
    pub input: Input,
    /// Planning.
    pub planning: Planning,
    /// Output between passes.
    pub look: Look,
    /// The file of the compiled model, or `-` for standard output.
    pub output: Option<PathBuf>,
    /// The format of that file; without one, by its name.
    pub emit: Option<Emit>,
    /// The form of swaps in ONNX.
    pub form: Form,
    /// Whether files with the model's weights are copied into the output's folder.
    pub copy_data: bool,
    /// The file of the report, as JSON.
    pub report: Option<PathBuf>,
    /// The file of the plan.
    pub save_plan: Option<PathBuf>,
    /// The file of the search's decisions.
    pub trace_plan: Option<PathBuf>,
}

impl Job {
    /// The form of the output at this path.
    pub(crate) fn emit(&self, output: &Path) -> Emit {
        self.emit.unwrap_or_else(|| Emit::named(output))
    }
}

/// The form of swaps in ONNX.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Model-local functions `ai.lmsc::SwapOut` and `SwapIn` with an identity body: valid everywhere.
    #[default]
    Function,
    /// Operators that the optimizer of stock ONNX Runtime leaves alone, with placement annotations.
    Ort,
}

/// A kind of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emit {
    /// An ONNX model.
    Onnx,
    /// The text form.
    Lms,
    /// MLIR: generic operations of ONNX and the dialect `lms`, which `lmsc` reads back.
    Mlir,
    /// MLIR that XLA compiles: StableHLO, with swaps as annotations of where tensors are.
    MlirXla,
    /// MLIR that IREE compiles: StableHLO, with swaps as transfers between the devices `dev` and `host`.
    MlirIree,
}

impl Emit {
    /// The form of a file with this name.
    pub fn named(path: &Path) -> Emit {
        match path.extension().and_then(|e| e.to_str()) {
            Some("lms") => Emit::Lms,
            Some("mlir") => Emit::Mlir,
            _ => Emit::Onnx,
        }
    }
}

/// The device that runs a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Device {
    /// The processor.
    Host,
    /// A GPU.
    Cuda {
        /// Its number, from 0.
        ordinal: u32,
        /// Whether the commands of a step are captured once and replayed.
        graph: bool,
        /// The precision to which products and convolutions may round their operands.
        precision: Precision,
        /// Whether kernels of lmsc replace library calls.
        own_kernels: bool,
    },
}

impl Device {
    /// The precision to which products and convolutions may round their operands.
    pub(crate) fn precision(&self) -> Precision {
        match self {
            Device::Host => Precision::F32,
            Device::Cuda { precision, .. } => *precision,
        }
    }

    /// The GPU of this number.
    pub(crate) fn cuda(ordinal: u32) -> Device {
        Device::Cuda { ordinal, graph: false, precision: Precision::F32, own_kernels: false }
    }
}

impl std::str::FromStr for Device {
    type Err = String;

    fn from_str(text: &str) -> Result<Device, String> {
        if text == "host" {
            return Ok(Device::Host);
        }
        let (name, graph) = text.strip_suffix("+graph").map_or((text, false), |name| (name, true));
        let ordinal = match name.strip_prefix("cuda") {
            Some("") => Some(0),
            Some(rest) => rest.strip_prefix(':').and_then(|number| number.parse().ok()),
            None => None,
        };
        let unknown =
            || "expected `host`, `cuda` or `cuda:N`, the latter two perhaps with `+graph`".to_owned();
        Ok(Device::Cuda {
            ordinal: ordinal.ok_or_else(unknown)?,
            graph,
            precision: Precision::F32,
            own_kernels: false,
        })
    }
}

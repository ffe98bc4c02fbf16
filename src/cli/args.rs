//! The arguments of the command line, and their plain form for the library.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use lmsc_cuda::Precision;
use lmsc_ir::Bytes;
use lmsc_passes::AnyPlanner;
use lmsc_plan::pages::{LARGEST, SMALLEST, is_size};
use lmsc_plan::target::BUILT_IN;

use crate::budget::{Budget, BudgetRange, Goal};
use crate::device::{self, needs_gpu};
use crate::job::{
    Addresses, Binding, Device, Emit, Form, Input, Job, Look, Machine, Planning, Search, StateOption,
};
use crate::known::planners;
use crate::planner::PlannerCall;
use crate::run::RunOptions;
use crate::term::{Coloured, Settings};
use crate::{DEFAULT_PLANNER, Error};

/// Fits the training step of an ONNX model into a device-memory budget.
///
/// Decides which tensors are swapped to host memory or recomputed between their forward and their backward uses. Writes a
/// model with the swap-out and swap-in operations, and with the control edges that make them safe. Proves that the result
/// computes the same values within the budget.
///
/// Exit codes: 0 done; 1 the answer is no (does not fit, differs); 2 the input or the call is at fault; 101 a bug
/// of lmsc; 130 a signal ended it between two steps.
#[derive(Debug, Parser)]
#[command(version, long_version = version(), args_conflicts_with_subcommands = true)]
#[command(subcommand_negates_reqs = true)]
#[command(after_help = "Examples:
  lmsc inspect training_model.onnx --dim batch=256
  lmsc training_model.onnx --optimizer optimizer_model.onnx --dim batch=256 \\
       --budget 16GiB -o step.onnx
  lmsc verify training_model.onnx step.onnx --optimizer optimizer_model.onnx --dim batch=256")]
pub struct Cli {
    /// The command; without one, MODEL is compiled.
    #[command(subcommand)]
    pub command: Option<CliCommand>,
    /// Verbosity and colours.
    #[command(flatten)]
    pub term: TermArgs,
    /// The main job.
    #[command(flatten)]
    pub compile: CompileArgs,
}

/// Verbosity and colours of standard error.
#[derive(Debug, Args, Clone)]
pub struct TermArgs {
    /// Print errors and answers only.
    ///
    /// Warnings, notes, progress and the report of the main job are left out.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// More detail; -vv also prints when each stage began.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Colours in messages: auto, always or never. [default: auto]
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t = clap::ColorChoice::Auto)]
    #[arg(hide_possible_values = true, hide_default_value = true)]
    pub color: clap::ColorChoice,
    /// Make warnings errors, with exit code 2: `--deny warnings`.
    #[arg(long, global = true, value_name = "WHAT", value_enum, hide_possible_values = true)]
    pub deny: Option<Deny>,
}

impl TermArgs {
    /// The settings of standard error.
    pub(super) fn settings(&self) -> Settings {
        let coloured = match self.color {
            clap::ColorChoice::Auto => Coloured::Auto,
            clap::ColorChoice::Always => Coloured::Always,
            clap::ColorChoice::Never => Coloured::Never,
        };
        let deny_warnings = self.deny == Some(Deny::Warnings);
        Settings { quiet: self.quiet, verbose: self.verbose, deny_warnings, coloured }
    }
}

/// The messages that are errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Deny {
    /// Warnings.
    Warnings,
}

/// Everything but the main job.
#[derive(Debug, Subcommand)]
pub enum CliCommand {
    /// Rank planners on many instances, also programs of your own.
    ///
    /// A planner of your own is a command, in any language. For each instance and budget it is called with `{}` replaced by a file
    /// with the problem (JSON of the format lmsc-planner-dag-1, as `lmsc plan --emit-instance` writes it), `{memory}` by the
    /// bytes that a plan may hold on the device at once, and `{out}` by the file to write: a schedule (lmsc-schedule-1) or a plan
    /// (lmsc-plan-1), as `lmsc plan` writes them with --schedule and --save-plan. docs/formats.md describes all of these.
    ///
    /// Each plan is checked as `lmsc check` does. One that is not valid counts as none, as does a command that fails, writes nothing
    /// or takes longer than --timeout; the answer says which and why. The score of a planner is the mean, over the
    /// instances and budgets for which one of them has a plan, of the best makespan divided by its own, with 0 where it has no plan: 1 is
    /// the best in every case.
    ///
    /// Exit codes: 0 ranked; 2 a file or the call is at fault; 130 a signal ended it.
    Bench(Box<BenchArgs>),
    /// Check a plan, a schedule or a certificate that `lmsc plan` has written, with code that shares nothing with planners.
    ///
    /// The file names its own kind. A plan (`--save-plan`) is valid if it belongs to the model or the instance, if no step uses
    /// absent bytes, if no two tensors lie at one address at once, and if no timing of its steps needs more memory than its
    /// budget. A schedule (`--schedule`) is valid if the same holds within --budget. A certificate (`--certificate`) is valid if
    /// it proves that no plan within --budget is faster than it states.
    ///
    /// Exit codes: 0 valid; 1 not valid, with the first fault; 2 the file cannot be read as any of these.
    Check(Box<CheckArgs>),
    /// Measure the times of a model's operators and copies on this machine, and write the profile that planners read.
    Calibrate(CalibrateArgs),
    /// Let a program choose the tensors to swap or recompute, in JSON lines: the environment of the planner `dqn`.
    #[cfg(feature = "papers")]
    Env(Box<EnvArgs>),
    /// Find the first operator of a step that computes something else than the host does from the same operands.
    ///
    /// The step runs on the device that --device names, and the results of each operator are compared with those of the host's
    /// kernels for the very operands that the operator had: an error is found where it is made, not where it shows. With --with,
    /// the results are those of a file, such as values that another program recorded. A result differs if it is off by more
    /// than the rounding of its operands explains. Operators that draw random numbers, and bodies of loops, are left out.
    ///
    /// Exit codes: 0 all operators compute what the host computes; 1 one does not; 2 the input or the call is at fault.
    Compare(Box<CompareArgs>),
    /// Explain one tensor's plan within a budget: when it is swapped out and in or recomputed, and why.
    Explain(Box<ExplainArgs>),
    /// Explain an error by its code, such as `LMS0101`; without a code, list the codes.
    ExplainError {
        /// The code, which messages begin with.
        code: Option<String>,
    },
    /// Show phases, variables, the peak, the largest storages and the memory curve of a model.
    Inspect(InspectArgs),
    /// List the calls of a step on a GPU, with the least time that each takes there; no GPU is needed.
    ///
    /// MODEL is any training step, or one that `lmsc` wrote for a budget. Each line is a call: a kernel of lmsc (elementwise
    /// operators that follow each other are one, as they run), a product of matrices by cuBLAS, a convolution by cuDNN, or
    /// a copy. Its floor is the time in which the target moves its bytes or does its operations at full speed, whichever
    /// is longer; each tensor counts once. Totals by kind come last.
    ///
    /// A real call takes longer. Where the floors of a step are far below the time that `lmsc run` measures, its kernels are
    /// slow; where they are near, only a smaller step is faster. Floors do not count launches, which the last line does, nor
    /// waits for copies, which `lmsc plan` shows.
    Launches(LaunchesArgs),
    /// Give buffers with known lifetimes addresses, without a model.
    Offsets(OffsetsArgs),
    /// Run passes on a `.lms`, `.mlir` or `.onnx` file and print the graph in the text form, or write it as MLIR or ONNX.
    Opt(Box<OptArgs>),
    /// Reduce a graph for which a command fails to a small one for which it fails in the same way.
    ///
    /// Nodes, outputs, control edges and inputs are taken away, and extents made smaller, as long as the graph is valid and the
    /// command exits with the same status as at first. Results of removed nodes become inputs. Ctrl-C ends it; the output has the
    /// smallest graph so far at any time.
    ///
    /// Exit codes: 0 reduced; 2 the command does not fail, or the input or the call is at fault; 130 a signal ended it.
    Reduce(Box<ReduceArgs>),
    /// Show the plan of a model, or of an instance without one, and compare planners.
    Plan(Box<PlanCommandArgs>),
    /// Show the time of a step as a function of memory, over sizes and budgets.
    Sweep(Box<SweepArgs>),
    /// Find the GPUs and batch sizes that a model fits, with and without a plan, and the time of a step there.
    ///
    /// Batches are doubled from 1 while they fit; then the largest one is found to within a sixteenth. A step fits as it is if its
    /// peak is within the card's memory; it fits with a plan if swapping and recomputation bring the peak within it. Times are
    /// modelled for the card (`lmsc targets NAME`), not measured.
    ///
    /// Exit codes: 0 something fits; 1 nothing does; 2 the input or the call is at fault.
    Fit(Box<FitArgs>),
    /// Run training steps on this machine's processor or GPU, within the budget, and print losses and times.
    Run(Box<RunArgs>),
    /// List the passes.
    Passes {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// List the built-in targets, or print one as TOML, to copy and change; `auto` is a GPU of this machine.
    Targets {
        /// The target to print.
        #[arg(value_parser = target(), hide_possible_values = true)]
        name: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Check that two models compute the same.
    Verify(VerifyArgs),
    /// Write the manual pages, of `lmsc` and of each command, to a folder.
    Man {
        /// The folder; it is created if needed.
        folder: PathBuf,
    },
    /// Print a completion script for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// The model.
#[derive(Debug, Args, Clone, Default)]
pub struct ModelArgs {
    /// The model: `.onnx`, `.lms`, `.mlir`, or `-` for standard input.
    // Optional for the derived parser only: a command takes the place of the main job's model.
    #[arg(required = true)]
    model: Option<PathBuf>,
    /// Sizes and state.
    #[command(flatten)]
    pub binding: BindingArgs,
}

impl ModelArgs {
    /// The path of the model.
    pub fn path(&self) -> &Path {
        self.model.as_deref().expect("the argument is required")
    }

    /// The model and how it is read, as the library has them.
    pub fn input(&self) -> Input {
        Input { path: self.path().to_owned(), binding: self.binding.binding() }
    }
}

/// Sizes and state of the step in a file.
#[derive(Debug, Args, Clone, Default)]
#[command(next_help_heading = "Reading")]
pub struct BindingArgs {
    /// The value of a symbolic dimension, such as `batch=32`; expressions of it, such as `2*batch`, follow. Repeatable.
    #[arg(long = "dim", value_name = "NAME=VALUE", value_parser = dim)]
    pub dims: Vec<(String, u64)>,
    /// All but the sizes.
    #[command(flatten)]
    pub step: StepArgs,
}

impl BindingArgs {
    /// Sizes and state, as the library has them.
    pub fn binding(&self) -> Binding {
        self.step.binding(self.dims.clone())
    }
}

/// How the step in a file is read, but for the values of its symbolic dimensions.
#[derive(Debug, Args, Clone, Default)]
#[command(next_help_heading = "Reading")]
pub struct StepArgs {
    /// The optimizer graph that onnxruntime-training wrote beside the training graph; the two become one step.
    #[arg(long, value_name = "FILE")]
    pub optimizer: Option<PathBuf>,
    /// The extents of an input whose dimensions the file leaves open, such as `image=2x3x224x224`. Repeatable.
    #[arg(long = "shape", value_name = "INPUT=EXTENTS", value_parser = shape)]
    pub shapes: Vec<(String, Vec<u64>)>,
    /// The value of an input that is constant in all steps, such as `rate=16000`, with commas between elements. An `If` that it
    /// decides is replaced by the branch taken. Repeatable.
    #[arg(long = "value", value_name = "INPUT=VALUE", value_parser = value)]
    pub values: Vec<(String, String)>,
    /// State: values kept from step to step.
    #[command(flatten)]
    pub state: StateArgs,
}

impl StepArgs {
    /// Sizes and state, as the library has them, with these values of symbolic dimensions.
    pub(crate) fn binding(&self, dims: Vec<(String, u64)>) -> Binding {
        let StepArgs { optimizer, shapes, values, state } = self.clone();
        let StateArgs { state, no_state } = state;
        Binding { dims, optimizer, shapes, values, state, no_state }
    }
}

/// State: values kept from step to step.
#[derive(Debug, Args, Clone, Default)]
pub struct StateArgs {
    /// An input and the output that is its next value; or a JSON file of such pairs; or `none`, for a step without state.
    /// Repeatable. An output named like an input with the suffix `_new` is found without this option.
    #[arg(long, value_name = "INPUT=OUTPUT", value_parser = state)]
    pub state: Vec<StateOption>,
    /// An input or an output that is no state, whatever its name. Repeatable.
    #[arg(long, value_name = "NAME")]
    pub no_state: Vec<String>,
}

/// The machine that runs a step.
#[derive(Debug, Args, Clone, Default)]
#[command(next_help_heading = "Machine")]
pub struct MachineArgs {
    /// The machine that runs the step; it determines the times and workspaces of operators. A name that `lmsc targets` lists; a
    /// TOML file of that form; or `auto` (`auto:1` and so on), which queries a GPU of this machine and measures its link.
    /// [default: a100-pcie4]
    #[arg(long, value_name = "TARGET", value_parser = target(), hide_possible_values = true)]
    pub target: Option<String>,
    /// A profile measured on that machine, as JSON: times and workspaces indexed by node signature, and the link's rates. The
    /// target's model stands in for missing entries.
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
    /// Host memory for swapped tensors, including variables kept there between steps: bytes, or a share of the target's host
    /// memory, such as 50%. [default: the host memory of the target]
    #[arg(long, value_name = "BUDGET")]
    pub host_budget: Option<Budget>,
}

impl MachineArgs {
    /// The machine, as the library has it.
    pub(crate) fn machine(&self) -> Machine {
        let MachineArgs { target, profile, host_budget } = self.clone();
        Machine { target, profile, host_budget, precision: Precision::F32 }
    }
}

/// The planner, and how much it searches.
#[derive(Debug, Args, Clone, Default)]
#[command(next_help_heading = "Planning")]
pub struct PlannerArgs {
    /// The planner, with its own options in braces if it has any, as in 'tflms{lb=3,ub=40}'.
    #[arg(long, value_name = "PLANNER", value_parser = PlannerParser, hide_possible_values = true)]
    #[arg(help = planner_help(), long_help = planners_help())]
    pub planner: Option<PlannerCall>,
    /// Describe a planner and its own options; `all` lists the planners.
    #[arg(long, value_name = "PLANNER")]
    pub help_planner: Option<String>,
    /// Search effort for plan and addresses, in percent of the usual number of evaluations. Up to 100, the search ends early
    /// where little can be gained; the report states the gap to the lower bound. [default: 100; of `lmsc fit` 10]
    #[arg(long, value_name = "PERCENT")]
    pub effort: Option<u32>,
}

impl PlannerArgs {
    /// The planner, with its options.
    pub(crate) fn called(&self) -> PlannerCall {
        self.planner.clone().unwrap_or_default()
    }
}

/// What a plan may do, and how it keeps within the memory.
#[derive(Debug, Args, Clone, Default)]
#[command(next_help_heading = "Planning")]
pub struct SearchArgs {
    /// The planner.
    #[command(flatten)]
    pub planner: PlannerArgs,
    /// Swap ranges of a tensor separately. For few and huge tensors; planners that decide by whole tensors refuse it.
    #[arg(long)]
    pub ranges: bool,
    /// How the step keeps within its budget: `on` gives each tensor an address in an arena of the budget's size. `auto` does the same,
    /// unless addresses are expensive on the host and a plan in pages of 64 KiB is faster, or unless the step fits as it is and no
    /// addresses are found. `off` counts bytes.
    #[arg(long, value_enum, default_value_t, hide_possible_values = true)]
    pub addresses: Addresses,
    /// Plan for memory that is mapped in pages of this size, as `lmsc run --virtual` maps it, instead of addresses in an arena.
    /// With a tight budget, less memory is lost.
    #[arg(long, value_name = "BYTES", value_parser = page, conflicts_with = "addresses")]
    pub pages: Option<Bytes>,
    /// Choose, of five plans, the one that loses least in the worst case where all operators or the link are slower or faster by this
    /// much, such as 20%. Planning takes five times as long; `lmsc plan` says what the choice costs.
    #[arg(long, value_name = "PERCENT", value_parser = off_by)]
    pub robust: Option<u32>,
}

/// The options that only affect planning, so that `--plan` excludes them.
const STEERING: [&str; 6] = ["planner", "ranges", "effort", "addresses", "pages", "robust"];

impl SearchArgs {
    /// The search, as the library has it.
    pub(crate) fn search(&self) -> Search {
        let SearchArgs { planner: PlannerArgs { planner, effort, .. }, ranges, addresses, pages, robust } =
            self.clone();
        Search { planner, effort, ranges, addresses, pages, robust }
    }
}

/// Planning a step.
#[derive(Debug, Args, Clone, Default)]
#[command(next_help_heading = "Planning")]
pub struct PlanArgs {
    /// Device memory of the whole step: inputs, parameters, state, activations, gradients, and on a GPU constants of kernels. Bytes,
    /// such as 16GiB; a share of the target's memory, such as 90% (with --target auto: of the free memory); or a share of the step's
    /// own peak, such as 0.7x. The other way round: `smallest`, or `3% slower` for the smallest memory whose plan takes at most that
    /// much longer than the step without a limit (several budgets are tried).
    #[arg(long, value_name = "BUDGET")]
    pub budget: Option<Goal>,
    /// The machine.
    #[command(flatten)]
    pub machine: MachineArgs,
    /// The search.
    #[command(flatten)]
    pub search: SearchArgs,
    /// Assign nodes in these scopes, prefixes of names or patterns with `*`, to the backward phase.
    #[arg(long, value_name = "SCOPE", value_delimiter = ',')]
    pub optimizer_scopes: Vec<String>,
    /// Apply the plan or the schedule in this file, which --save-plan or another program has written, instead of planning. It is
    /// checked against the model: same sizes, same --target, same --profile. --budget, if given, must be the budget of the plan.
    #[arg(long = "plan", id = "plan", value_name = "FILE", conflicts_with_all = STEERING)]
    pub given: Option<PathBuf>,
}

impl PlanArgs {
    /// Planning, as the library has it.
    pub(crate) fn planning(&self) -> Planning {
        Planning {
            budget: self.budget,
            machine: self.machine.machine(),
            search: self.search.search(),
            optimizer_scopes: self.optimizer_scopes.clone(),
            given: self.given.clone(),
        }
    }
}

/// Looking at the graph between passes.
#[derive(Debug, Args, Clone, Default)]
#[command(next_help_heading = "Looking inside")]
pub struct LookArgs {
    /// Print the graph to standard error after this pass.
    #[arg(long, value_name = "PASS", value_delimiter = ',')]
    pub print_after: Vec<String>,
    /// Print the graph to standard error after every pass.
    #[arg(long)]
    pub print_after_all: bool,
    /// Print the changes of each pass to standard error, as a unified diff of the text form.
    #[arg(long)]
    pub print_changed: bool,
    /// Print the time of each pass, of the verifier after it, and of the equivalence check to standard error.
    #[arg(long)]
    pub timing: bool,
    /// Run only the first COUNT passes.
    #[arg(long, value_name = "COUNT")]
    pub pass_limit: Option<usize>,
}

impl LookArgs {
    /// The output between passes, as the library has it.
    pub(crate) fn look(&self) -> Look {
        let LookArgs { print_after, print_after_all, print_changed, timing, pass_limit } = self.clone();
        Look { print_after, print_after_all, print_changed, timing, pass_limit }
    }
}

/// The main job.
#[derive(Debug, Args, Clone, Default)]
pub struct CompileArgs {
    /// The model.
    #[command(flatten)]
    pub input: ModelArgs,
    /// The output: `.onnx`, `.lms` (text), `.mlir`, or `-` for standard output. Without it nothing is written. Without --budget,
    /// the model is written as it is.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Other files that may be written.
    #[command(flatten)]
    pub writing: WritingArgs,
    /// The form of swaps in ONNX: `function`, calls of functions of the model, which are valid everywhere; or `ort`, operators
    /// that the optimizer of stock ONNX Runtime leaves alone. [default: function]
    #[arg(long, value_enum, default_value_t = Form::Function, hide_possible_values = true, hide_default_value = true)]
    pub form: Form,
    /// The format of the output: `onnx`, `lms` (text), `mlir` (which `lmsc` reads back), or StableHLO for XLA (`mlir-xla`) or IREE
    /// (`mlir-iree`). [default: by the name of the output]
    #[arg(long, value_name = "FORMAT", value_enum, hide_possible_values = true)]
    pub emit: Option<Emit>,
    /// Print the report as JSON.
    #[arg(long)]
    pub json: bool,
    /// Also write the report to this file, as JSON; or, with --run and a name that ends in `.html`, a page with the simulated and
    /// the measured step.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Write the plan to this file, as JSON, for --plan of this command, of `lmsc plan` and of `lmsc explain`, and for `lmsc check`.
    #[arg(long, value_name = "FILE")]
    pub save_plan: Option<PathBuf>,
    /// Write the decisions of the planner's search to this file, as JSON lines.
    #[arg(long, value_name = "FILE")]
    pub trace_plan: Option<PathBuf>,
    /// Planning.
    #[command(flatten)]
    pub plan: PlanArgs,
    /// Output between passes.
    #[command(flatten)]
    pub look: LookArgs,
    /// Run steps of the result on this machine's processor, or on the GPU that --device names. All options of `lmsc run` work
    /// here, too; its help explains them. Without --target, the plan is made for that device.
    #[arg(long, help_heading = "Running")]
    pub run: bool,
    /// The device.
    #[command(flatten)]
    pub on: DeviceArgs,
    /// Running.
    #[command(flatten)]
    pub options: RunOptionArgs,
}

impl CompileArgs {
    /// The compilation, as the library has it.
    pub fn job(&self) -> Job {
        Job {
            input: self.input.input(),
            planning: Planning { machine: self.machine(), ..self.plan.planning() },
            look: self.look.look(),
            output: self.output.clone(),
            emit: self.emit,
            form: self.form,
            copy_data: self.writing.copy_data,
            report: self.report.clone(),
            save_plan: self.save_plan.clone(),
            trace_plan: self.trace_plan.clone(),
        }
    }

    /// The machine, whose products and convolutions have the precision of the run.
    fn machine(&self) -> Machine {
        Machine { precision: self.on.precision.unwrap_or_default(), ..self.plan.machine.machine() }
    }

    /// The call with a target for the device that runs the step, if it is run and no target is given.
    pub fn for_run(&self) -> CompileArgs {
        let mut args = self.clone();
        if args.run {
            let device = args.on.device.unwrap_or(Device::Host);
            args.plan.machine.target.get_or_insert_with(|| device::target_of(device));
        }
        args
    }
}

/// Files that may be written besides the output.
#[derive(Debug, Args, Clone, Default)]
pub struct WritingArgs {
    /// Copy files with the model's weights into the output's folder. Without it, they stay where they are, within that
    /// folder.
    #[arg(long)]
    pub copy_data: bool,
    /// Let the output replace a file that is read.
    #[arg(long)]
    pub force: bool,
}

/// Let a program choose the tensors to swap or recompute, in JSON lines: the environment of the planner `dqn`.
///
/// The first line lists nodes and edges of the graph. Then each line of standard input, {"do":"reset"},
/// {"do":"step","node":N} or {"do":"plan"}, is answered by one line: the agent's node, the nodes that can be
/// chosen, the reward of the last choice, whether the episode is over; or its plan. docs/formats.md explains the fields.
#[cfg(feature = "papers")]
#[derive(Debug, Args, Clone)]
pub struct EnvArgs {
    /// The planning task.
    #[command(flatten)]
    pub task: TaskArgs,
    /// Device memory of the whole step: bytes, such as 16GiB; a share of the target's memory, such as 90%; or of the step's own
    /// peak, such as 0.7x.
    #[arg(long = "budget", alias = "memory", value_name = "BUDGET")]
    pub memory: Budget,
    /// Allow operators of an instance to be recomputed, as those of a model always may be.
    #[arg(long)]
    pub recompute: bool,
    /// The rule that orders the chosen copies.
    #[arg(long, value_enum, default_value_t = SchedulerArg::Justified)]
    pub scheduler: SchedulerArg,
    /// Instead, write the operations of a step to this file, as a trace in JSON lines; `-` for standard output.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
}

/// `lmsc explain`.
#[derive(Debug, Args, Clone)]
pub struct ExplainArgs {
    /// The model.
    #[command(flatten)]
    pub input: ModelArgs,
    /// The tensor's name.
    #[arg(long, value_name = "NAME")]
    pub tensor: String,
    /// Planning.
    #[command(flatten)]
    pub plan: PlanArgs,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `lmsc inspect`.
#[derive(Debug, Args, Clone)]
pub struct InspectArgs {
    /// The model.
    #[command(flatten)]
    pub input: ModelArgs,
    /// Assign nodes in these scopes to the backward phase.
    #[arg(long, value_name = "SCOPE", value_delimiter = ',')]
    pub optimizer_scopes: Vec<String>,
    /// The machine that runs the step; it determines the workspaces of operators.
    /// [default: a100-pcie4]
    #[arg(long, value_name = "TARGET", value_parser = target(), hide_possible_values = true)]
    pub target: Option<String>,
    /// Number of the largest storages to list.
    #[arg(long, value_name = "COUNT", default_value_t = 12)]
    pub largest: usize,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `lmsc launches`.
#[derive(Debug, Args, Clone)]
#[command(after_help = "Examples:
  lmsc launches training_model.onnx --dim batch=64 --summary
  lmsc training_model.onnx --dim batch=256 --budget 16GiB -o step.onnx
  lmsc launches step.onnx --target a100-pcie4
  lmsc launches training_model.onnx --dim batch=64 --json | jq '.totals'")]
pub struct LaunchesArgs {
    /// The model.
    #[command(flatten)]
    pub input: ModelArgs,
    /// The machine whose memory and processor set the floors; `lmsc targets` lists them. [default: h100-pcie5]
    #[arg(long, value_name = "TARGET", value_parser = target(), hide_possible_values = true)]
    pub target: Option<String>,
    /// Precision of the operands of matrix products and convolutions, as for `lmsc run`; it decides which engines of cuDNN
    /// convolve. [default: f32]
    #[arg(long, value_name = "FLOAT", value_parser = PossibleValuesParser::new(Precision::NAMES)
        .try_map(|name| name.parse::<Precision>()))]
    pub precision: Option<Precision>,
    /// List the kernels that run without cuBLAS and cuDNN.
    #[arg(long, conflicts_with = "precision")]
    pub own_kernels: bool,
    /// Print only the totals.
    #[arg(long, conflicts_with = "json")]
    pub summary: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Give buffers with known lifetimes addresses, without a model.
///
/// FILE is MiniMalloc's CSV. Its first line names the columns `id,lower,upper,size` and, if they are there, `alignment`
/// and `offset`; each other line is a buffer of `size` bytes, live from `lower` until before `upper`. A buffer with an
/// `offset` lies there. Lines of one id that follow one another are ranges of one buffer, one above the other, each
/// with a lifetime of its own.
///
/// No two buffers that are live at once share bytes. Heuristics are tried first, then an exact search: where that has
/// looked at everything, the answer no is a proof. No layout is smaller than the most bytes that are live at once.
#[derive(Debug, Args, Clone)]
#[command(after_help = "Examples:
  lmsc offsets buffers.csv --capacity 1MiB -o placed.csv
  lmsc offsets buffers.csv --capacity 0      says how many bytes it takes")]
pub struct OffsetsArgs {
    /// The buffers, as CSV; `-` for standard input.
    pub file: PathBuf,
    /// Size of the memory, from address 0.
    #[arg(long, value_name = "BYTES")]
    pub capacity: Bytes,
    /// Write the lines with their offsets to this file; `-` for standard output, in place of the summary.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Search effort, in percent of the usual number of steps.
    #[arg(long, value_name = "PERCENT", default_value_t = 100)]
    pub effort: u32,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `lmsc opt`.
#[derive(Debug, Args, Clone)]
pub struct OptArgs {
    /// The model.
    #[command(flatten)]
    pub input: ModelArgs,
    /// The passes, in order, separated by commas; without any, the graph is only read, checked and printed. A pass's own options
    /// stand in braces behind its name, such as 'expand-training-ops{optimizers=false}'; `lmsc passes` lists them. Repeatable.
    #[arg(short, long, value_name = "PASS")]
    pub passes: Vec<String>,
    /// The output instead of standard output; MLIR or ONNX if the name ends in `.mlir` or `.onnx`, else text.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print at most this many items of each list, then the number of the others. The text cannot be read again.
    #[arg(long, value_name = "COUNT", conflicts_with = "output")]
    pub elide: Option<usize>,
    /// Add phases, ticks and the bytes of results as comments of the text.
    #[arg(long)]
    pub notes: bool,
    /// Other files that may be written.
    #[command(flatten)]
    pub writing: WritingArgs,
    /// Planning.
    #[command(flatten)]
    pub plan: PlanArgs,
    /// Output between passes.
    #[command(flatten)]
    pub look: LookArgs,
}

/// `lmsc bench`.
#[derive(Debug, Args, Clone)]
#[command(after_help = "Examples:
  lmsc bench --planner 'python3 mine.py {} {memory} {out}'
  lmsc bench testdata/instances/dag_gpt2s_b8_s1024.json --budget 0.5x,0.3x --recompute --compare all
  lmsc bench my_instances --planner './mine {} {memory} {out}' --timeout 10 --csv results.csv")]
pub struct BenchArgs {
    /// Instances, or folders whose instances are taken. [default: testdata/instances]
    #[arg(value_name = "INSTANCE")]
    pub instance: Vec<PathBuf>,
    /// The planner to rank: a command with `{}`, `{memory}` and `{out}`, named by its program; or a planner of lmsc. Repeatable.
    #[arg(long, value_name = "COMMAND")]
    pub planner: Vec<String>,
    /// The planners of lmsc beside it, separated by commas, each with its own options in braces if need be; `all` means all but `dqn`.
    #[arg(long, value_name = "PLANNER", default_value = "auto,swap-only")]
    pub compare: Vec<String>,
    /// Device memory, separated by commas: bytes, such as 16GiB, or a share of each instance's own peak, such as 0.7x.
    #[arg(
        long = "budget",
        alias = "memory",
        value_name = "BUDGET",
        value_delimiter = ',',
        default_value = "0.8x,0.6x,0.4x"
    )]
    pub memory: Vec<Budget>,
    /// Time limit of the command for each plan.
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = seconds)]
    pub timeout: f64,
    /// Allow operators to be recomputed.
    #[arg(long)]
    pub recompute: bool,
    /// Swap tensors whole, not in ranges of bytes.
    #[arg(long)]
    pub whole: bool,
    /// Search effort of the planners of lmsc, in percent of the usual number of evaluations.
    #[arg(long, value_name = "PERCENT", default_value_t = 10)]
    pub effort: u32,
    /// Write a line for each planner, instance and budget to this file, as CSV.
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `lmsc reduce`.
#[derive(Debug, Args, Clone)]
pub struct ReduceArgs {
    /// The model.
    #[command(flatten)]
    pub input: ModelArgs,
    /// A shell command that fails on the graph. The path of a `.lms` file replaces `{}`, or is appended, as in
    /// 'lmsc opt {} -p swap'. The command's output is not shown.
    #[arg(long, value_name = "COMMAND", required = true, help_heading = "Reducing")]
    pub failing: String,
    /// The output, as `.lms`. [default: MODEL with the extension `.reduced.lms`]
    #[arg(short, long, value_name = "FILE", help_heading = "Reducing")]
    pub output: Option<PathBuf>,
    /// Time limit of the command; a graph for which it takes longer is rejected.
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = seconds, help_heading = "Reducing")]
    pub timeout: f64,
}

/// What is planned without a model being written: a step or an instance, and for which machine.
#[derive(Debug, Args, Clone)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["model", "instance"])))]
pub struct TaskArgs {
    /// The model: `.onnx`, `.lms`, `.mlir`, or `-` for standard input.
    pub model: Option<PathBuf>,
    /// Sizes and state.
    #[command(flatten)]
    pub binding: BindingArgs,
    /// An instance instead of a model: JSON of the formats lmsc-planner-chain-1, lmsc-planner-dag-1 and -2, or a trace of the
    /// operations of a step, as JSON lines of the format lmsc-trace-1.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["target", "profile", "host_budget"])]
    pub instance: Option<PathBuf>,
    /// The machine that runs a model.
    #[command(flatten)]
    pub machine: MachineArgs,
}

/// `lmsc plan`.
#[derive(Debug, Args, Clone)]
pub struct PlanCommandArgs {
    /// The planning task.
    #[command(flatten)]
    pub task: TaskArgs,
    /// Device memory of the whole step: bytes, such as 16GiB; a share of the target's memory, such as 90%; or of the step's own
    /// peak, such as 0.7x. With --plan, the budget of that plan.
    #[arg(long = "budget", alias = "memory", value_name = "BUDGET", required_unless_present = "plan")]
    pub memory: Option<Budget>,
    /// Show the plan in this file, which --save-plan or another program has written, instead of planning; or the schedule in it,
    /// within --budget. It is checked against the model or the instance.
    #[arg(long = "plan", id = "plan", value_name = "FILE")]
    #[arg(conflicts_with_all = STEERING.into_iter().chain(["scheduler"]))]
    pub given: Option<PathBuf>,
    /// Write the plan to this file, as JSON, for --plan of this command, of `lmsc MODEL` and of `lmsc explain`, and for `lmsc check`.
    #[arg(long, value_name = "FILE")]
    pub save_plan: Option<PathBuf>,
    /// Write the decisions of the planner's search to this file, as JSON lines.
    #[arg(long, value_name = "FILE")]
    pub trace_plan: Option<PathBuf>,
    /// Write the model's planning problem to this file, as an instance that `lmsc plan --instance` reads: sizes and times without
    /// names, so it can be shared where the model cannot.
    #[arg(long, value_name = "FILE")]
    pub emit_instance: Option<PathBuf>,
    /// Let each update of an instance run as soon as its gradient is complete, if the plan is shorter then. This is another instance,
    /// whose operators have other numbers: --emit-instance writes it. Updates of a model always may move.
    #[arg(long, requires = "instance", conflicts_with = "plan")]
    pub early_updates: bool,
    /// The search.
    #[command(flatten)]
    pub search: SearchArgs,
    /// Other planners to compare with, separated by commas, each with its own options in braces if need be; `all` means all but
    /// `dqn`, which learns for minutes. A file with a plan or a schedule, named with a slash or the ending `.json`, is checked and
    /// compared, too.
    #[arg(long, value_name = "PLANNER")]
    pub compare: Vec<String>,
    /// Whether copies in the two directions overlap. [default: as in the instance or the target]
    #[arg(long, value_enum)]
    pub duplex: Option<DuplexArg>,
    /// Allow operators of an instance to be recomputed, as those of a model always may be.
    #[arg(long)]
    pub recompute: bool,
    /// Swap tensors of an instance whole, as those of a model, not in ranges of bytes.
    #[arg(long, conflicts_with = "ranges")]
    pub whole: bool,
    /// The rule that orders the copies chosen by planners of papers.
    #[arg(long, value_enum, default_value_t = SchedulerArg::Justified)]
    pub scheduler: SchedulerArg,
    /// Replay the plan with operators that take up to this many percent more or less, and print the cost.
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(..=100))]
    pub noise: Option<u32>,
    /// Replay the plan with copies that are this many percent slower while copies run in both directions.
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(..=99))]
    pub contention: Option<u32>,
    /// Write the plan's instructions with their times and addresses to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    pub schedule: Option<PathBuf>,
    /// Write the proof of the lower bound to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    pub certificate: Option<PathBuf>,
    /// Write a page of the plan to this file, as HTML; if it ends in `.svg`, a picture of memory over time; if it ends in `.json`, the
    /// data of the page.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Write a trace of the plan for Perfetto or chrome://tracing to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Weights of a planner that learns.
    #[command(flatten)]
    pub weights: WeightArgs,
}

/// `lmsc check`.
#[derive(Debug, Args, Clone)]
#[command(override_usage = "lmsc check [OPTIONS] <FILE> <MODEL|--instance <FILE>>")]
#[command(after_help = "Examples:
  lmsc training_model.onnx --dim batch=64 --budget 8GiB --save-plan p.json
  lmsc check p.json training_model.onnx --dim batch=64
  lmsc plan --instance dag.json --budget 8GiB --certificate c.json
  lmsc check c.json --instance dag.json --budget 8GiB")]
pub struct CheckArgs {
    /// The plan, the schedule or the certificate.
    pub file: PathBuf,
    /// The model or instance that it belongs to.
    #[command(flatten)]
    pub task: TaskArgs,
    /// The budget that `lmsc plan` was given. A plan states its own.
    #[arg(long = "budget", alias = "memory", value_name = "BUDGET")]
    pub memory: Option<Budget>,
    /// Whether copies in the two directions overlap, as given to `lmsc plan`.
    #[arg(long, value_enum)]
    pub duplex: Option<DuplexArg>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Weights of the planner `dqn`.
#[derive(Debug, Args, Clone, Default)]
#[command(next_help_heading = "Planning")]
pub struct WeightArgs {
    /// dqn: initial weights, as --save-weights writes them. [default: random]
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,
    /// dqn: write the weights after the last episode to this file, as safetensors.
    #[arg(long, value_name = "FILE")]
    pub save_weights: Option<PathBuf>,
}

impl WeightArgs {
    /// The name of a given option.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let all = [("--weights", &self.weights), ("--save-weights", &self.save_weights)];
        all.into_iter().find(|(_, file)| file.is_some()).map(|(name, _)| name)
    }
}

/// The rule that orders copies.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum SchedulerArg {
    /// The rule of the planner's paper.
    Paper,
    /// Shifts all activities late, then early, while that shortens the step.
    Justified,
}

/// `lmsc sweep`.
#[derive(Debug, Args, Clone)]
pub struct SweepArgs {
    /// The model: `.onnx`, `.lms`, `.mlir`, or `-` for standard input.
    pub model: PathBuf,
    /// The value of a symbolic dimension, such as `batch=32`, or a range, such as `batch=64..1024`, which is tried in powers of
    /// two from its start. Repeatable.
    #[arg(long = "dim", value_name = "NAME=VALUE", value_parser = dim_range)]
    pub dims: Vec<(String, RangeInclusive<u64>)>,
    /// All but the sizes.
    #[command(flatten)]
    pub step: StepArgs,
    /// Device memory of the whole step: a range such as `2GiB..32GiB`, `20%..90%` of the target's memory or `0.3x..1x` of the
    /// step's own peak; or one value.
    #[arg(long, value_name = "BUDGET")]
    pub budget: BudgetRange,
    /// Number of budgets, in a geometric sequence.
    #[arg(long, value_name = "COUNT", default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub steps: u32,
    /// The machine.
    #[command(flatten)]
    pub machine: MachineArgs,
    /// The search.
    #[command(flatten)]
    pub search: SearchArgs,
    /// Write a page with the curves to this file, as HTML; or, if it ends in `.json`, the output of `--json`.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `lmsc fit`.
#[derive(Debug, Args, Clone)]
#[command(after_help = "Examples:
  lmsc fit training_model.onnx --optimizer optimizer_model.onnx
  lmsc fit training_model.onnx --gpu rtx4090,h100-sxm --dim batch --dim sequence=512
  lmsc fit training_model.onnx --gpu h100-sxm --ranks 8,64
  lmsc fit training_model.onnx --gpu auto --batch 32,64 --json")]
pub struct FitArgs {
    /// The model: `.onnx`, `.lms` or `.mlir`.
    pub model: PathBuf,
    /// The cards: names that `lmsc targets` lists, such as rtx4090; TOML files of that form; or `auto` for a GPU of this machine.
    /// [default: t4, rtx4090, l40s, h100-sxm]
    #[arg(long = "gpu", visible_alias = "target", value_name = "NAME", value_delimiter = ',', value_parser = target(), hide_possible_values = true)]
    pub gpus: Vec<String>,
    /// Try only these batch sizes, without a search for the largest.
    #[arg(long = "batch", value_name = "SIZE", value_delimiter = ',', value_parser = batch)]
    pub batches: Vec<u64>,
    /// Also plan the step of a rank where this number of ranks share the parameters, with the largest batch that one card holds.
    /// Collectives run beside the operators, on the networks dgx and ethernet; their times are modelled.
    #[arg(long = "ranks", value_name = "COUNT", value_delimiter = ',', value_parser = ranks)]
    pub ranks: Vec<u64>,
    /// The name of the symbolic dimension that is the batch; or the value of another one, such as `sequence=512`. Repeatable.
    /// [default: `batch`, or the only one without a value]
    #[arg(long = "dim", value_name = "NAME[=VALUE]", value_parser = fit_dim)]
    pub dims: Vec<FitDim>,
    /// All but the sizes.
    #[command(flatten)]
    pub step: StepArgs,
    /// Device memory of the whole step: a share of each card's memory, such as 90%, or bytes.
    #[arg(long, value_name = "BUDGET", default_value = "100%", value_parser = budget_of_card)]
    pub budget: Budget,
    /// Host memory for swapped tensors: bytes, or a share of the target's host memory, such as 50%.
    /// [default: the host memory of the target]
    #[arg(long, value_name = "BUDGET")]
    pub host_budget: Option<Budget>,
    /// The planner.
    #[command(flatten)]
    pub planner: PlannerArgs,
    /// Write a page with the curves to this file, as HTML; or, if it ends in `.json`, the output of `--json`.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// A symbolic dimension of `lmsc fit`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FitDim {
    /// The one that is the batch.
    Varied(String),
    /// One that has a value.
    Fixed(String, u64),
}

fn fit_dim(text: &str) -> Result<FitDim, String> {
    match text.contains('=') {
        true => dim(text).map(|(name, value)| FitDim::Fixed(name, value)),
        false if text.is_empty() => Err("a dimension has a name".to_owned()),
        false => Ok(FitDim::Varied(text.to_owned())),
    }
}

/// A budget that depends on the card alone.
fn budget_of_card(text: &str) -> Result<Budget, String> {
    match text.parse()? {
        Budget::OfPeak(_) => Err(format!(
            "`{text}` is a share of the step's own peak; write bytes (16GiB) or a share of the card's memory (90%)"
        )),
        budget => Ok(budget),
    }
}

/// Whether copies in the two directions overlap.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum DuplexArg {
    /// One copy at a time.
    Half,
    /// One copy at a time in each direction.
    Full,
}

/// `lmsc calibrate`.
#[derive(Debug, Args, Clone)]
pub struct CalibrateArgs {
    /// The model.
    #[command(flatten)]
    pub input: ModelArgs,
    /// The device: `host`, or `cuda`, `cuda:1` and so on for a GPU.
    #[arg(long, value_name = "DEVICE", default_value = "host")]
    pub device: Device,
    /// Device memory: bytes, such as 16GiB; a share of the device's free memory, such as 90%; or of the step's own peak, such as
    /// 0.7x. A step that needs more is planned for it before it is measured. [default: the step's peak, or 90% of a GPU that has
    /// less]
    #[arg(long, value_name = "BUDGET")]
    pub budget: Option<Budget>,
    /// Number of steps to measure, after one warm-up step.
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    pub steps: u64,
    /// Refuse to measure on a GPU without cuBLAS and cuDNN, where own kernels would replace them. Otherwise that is a warning.
    #[arg(long)]
    pub require_libraries: bool,
    /// The profile to write, as JSON.
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

/// `lmsc compare`.
#[derive(Debug, Args, Clone)]
#[command(after_help = "Examples:
  lmsc compare step.onnx --device cuda
  lmsc run step.onnx --steps 1 --params p.safetensors --fetch all --out values.safetensors
  lmsc compare step.onnx --params p.safetensors --steps 1 --with values.safetensors --case wrong.lms")]
pub struct CompareArgs {
    /// The model: as `lmsc` wrote it for a budget, or any other.
    #[command(flatten)]
    pub input: ModelArgs,
    /// Compare the values in this safetensors file instead, by their names in the model. Operands that it lacks are those of a run
    /// on the device.
    #[arg(long, value_name = "FILE")]
    pub with: Option<PathBuf>,
    /// Write the first operator that differs to this file, as `.lms`, and its operands beside it, as `.safetensors`.
    #[arg(long, value_name = "FILE")]
    pub case: Option<PathBuf>,
    /// The device.
    #[command(flatten)]
    pub on: DeviceArgs,
    /// Running.
    #[command(flatten)]
    pub start: StartArgs,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `lmsc run`.
#[derive(Debug, Args, Clone)]
pub struct RunArgs {
    /// The model: as `lmsc` wrote it for a budget, or any other.
    #[command(flatten)]
    pub input: ModelArgs,
    /// Device memory: bytes, a share of the device's memory, such as 90%, or of the step's own peak, such as 0.7x.
    /// [default: the budget that the model was written for, else the step's peak]
    #[arg(long, value_name = "BUDGET")]
    pub budget: Option<Budget>,
    /// A profile that `lmsc calibrate` measured on this machine: it predicts the time of a step, in place of the model of the
    /// target `host` or of the GPU.
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
    /// Write a page with the simulated and the measured step to this file, as HTML; or, if it ends in `.json`, the data of the page.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// The device.
    #[command(flatten)]
    pub on: DeviceArgs,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Running.
    #[command(flatten)]
    pub options: RunOptionArgs,
}

/// The device, and the precision of its products.
#[derive(Debug, Args, Clone, Default)]
#[command(next_help_heading = "Running")]
pub struct DeviceArgs {
    /// The device: `host`, or `cuda`, `cuda:1` and so on for a GPU, whose libraries are loaded at run time; with `+graph`, the
    /// launches of a step are captured once and replayed. [default: host]
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<Device>,
    /// Precision of the operands of matrix products and convolutions on a GPU: `tf32` keeps 11 of 24 bits; `bf16` keeps 8, and
    /// convolutions run as with `tf32`; `f16` keeps 11, and values above 65504 become infinite. Storage and sums stay in 32 bits.
    /// Without cuBLAS and cuDNN nothing is rounded. A plan gives convolutions the memory that they need in this precision.
    /// [default: f32]
    #[arg(long, value_name = "FLOAT", value_parser = PossibleValuesParser::new(Precision::NAMES)
        .try_map(|name| name.parse::<Precision>()))]
    pub precision: Option<Precision>,
    /// Use lmsc's own kernels on a GPU instead of cuBLAS and cuDNN.
    #[arg(long, conflicts_with = "precision")]
    pub own_kernels: bool,
}

impl DeviceArgs {
    /// The device that runs the step, with its settings.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind) if an option does not apply to the device.
    pub(crate) fn device(&self, options: &RunOptions) -> Result<Device, Error> {
        let device = self.device.unwrap_or(Device::Host);
        options.suits(device)?;
        let precision = self.precision.unwrap_or_default();
        match device {
            Device::Host if precision != Precision::F32 => Err(needs_gpu("--precision")),
            Device::Host if self.own_kernels => Err(needs_gpu("--own-kernels")),
            Device::Host => Ok(Device::Host),
            Device::Cuda { ordinal, graph, .. } => {
                Ok(Device::Cuda { ordinal, graph, precision, own_kernels: self.own_kernels })
            }
        }
    }

    /// The names of the given options.
    pub fn given(&self) -> Vec<&'static str> {
        let all = [
            ("--device", self.device.is_some()),
            ("--precision", self.precision.is_some()),
            ("--own-kernels", self.own_kernels),
        ];
        all.into_iter().filter(|(_, given)| *given).map(|(name, _)| name).collect()
    }
}

/// How many steps run, and with which values.
#[derive(Debug, Args, Clone, Default)]
#[command(next_help_heading = "Running")]
pub struct StartArgs {
    /// Number of steps. [default: 10]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub steps: Option<u64>,
    /// Initial parameters and other inputs by name: a safetensors file, or the initializers of an ONNX model, such as
    /// the forward model. Inputs without a value get small random numbers.
    #[arg(long, value_name = "FILE")]
    pub params: Option<PathBuf>,
    /// Batches by input, as a safetensors file: tensors of the inputs' shapes, or with one more dimension in front,
    /// whose indices are taken in turn, again from the first after the last; or `synthetic`: one batch of random numbers.
    /// [default: synthetic]
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,
    /// Seed of random numbers. [default: 0, or the seed of the resumed run]
    #[arg(long, value_name = "SEED")]
    pub seed: Option<u64>,
    /// Continue from a checkpoint of --save, with the same bits as without the interruption. --data and inputs too large for the
    /// checkpoint are given again; missing or changed ones are named.
    #[arg(long, value_name = "FILE")]
    pub resume: Option<PathBuf>,
    /// Values of inputs and initializers by name, the same at every step, as a safetensors file.
    #[arg(long, value_name = "FILE")]
    pub feeds: Option<PathBuf>,
}

impl StartArgs {
    /// The options, as the library has them.
    pub fn options(&self) -> RunOptions {
        let StartArgs { steps, params, data, seed, resume, feeds } = self.clone();
        RunOptions { steps, params, data, seed, resume, feeds, ..RunOptions::default() }
    }
}

/// Running.
#[derive(Debug, Args, Clone, Default)]
#[command(next_help_heading = "Running")]
pub struct RunOptionArgs {
    /// With which values the steps run.
    #[command(flatten)]
    pub start: StartArgs,
    /// Map chunks of this size to each tensor while it is in use (OOC's virtual addressing), instead of one arena, and print the
    /// bytes lost in them. A multiple of 64 KiB; on a GPU rounded up to its granularity, such as 2 MiB, and mapped once, before
    /// the first step.
    #[arg(long = "virtual", value_name = "BYTES")]
    pub chunk: Option<Bytes>,
    /// Write a checkpoint to this safetensors file after the last step, or after the step during which Ctrl-C was pressed: the
    /// variables, and the given inputs (of large ones a digest).
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Also write that file every COUNT steps.
    #[arg(long, value_name = "COUNT", requires = "save", value_parser = clap::value_parser!(u64).range(1..))]
    pub save_every: Option<u64>,
    /// Number of generations of that file to keep: before a new one takes its name, the last one becomes FILE.1, and that FILE.2.
    /// [default: 1]
    #[arg(long, value_name = "COUNT", requires = "save", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub keep: Option<u64>,
    /// Names of values of the last step to write to the file of --out, or `all`.
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "out")]
    pub fetch: Option<Vec<String>>,
    /// The file for the fetched values, as safetensors.
    #[arg(long, value_name = "FILE", requires = "fetch")]
    pub out: Option<PathBuf>,
    /// Stop at the first result that is NaN or infinite, and name its operator.
    #[arg(long)]
    pub check_numerics: bool,
    /// Skip the layers of stochastic depth whose random gate is 0 in a step. Their running statistics do not change; all other
    /// results are the same.
    #[arg(long, conflicts_with = "fetch")]
    pub skip_closed: bool,
    /// Write a trace of the run for Perfetto or chrome://tracing to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Bandwidth of the link in bytes per second, each way, such as 9GB. [default: unlimited]
    #[arg(long, value_name = "BYTES")]
    pub copy_bandwidth: Option<Bytes>,
    /// Refuse to run on a GPU without cuBLAS and cuDNN, where own kernels would replace them. Otherwise that is a warning: such a
    /// step is several times slower.
    #[arg(long, conflicts_with = "own_kernels")]
    pub require_libraries: bool,
    /// Wait for each launch on a GPU before the next, so that an error names the kernel and the node that failed. The step is slower.
    #[arg(long)]
    pub synchronous: bool,
    /// Ignore the waits of a GPU's compute stream for this many of the largest swap-ins. The result is then wrong:
    /// `scripts/gpu-check` uses it to show that the waits are needed.
    #[arg(long, value_name = "COUNT", hide = true)]
    pub without_waits: Option<usize>,
}

impl RunOptionArgs {
    /// The options, as the library has them.
    pub fn options(&self) -> RunOptions {
        let args = self.clone();
        RunOptions {
            chunk: args.chunk,
            save: args.save,
            save_every: args.save_every,
            keep: args.keep,
            fetch: args.fetch,
            out: args.out,
            check_numerics: args.check_numerics,
            skip_closed: args.skip_closed,
            trace: args.trace,
            copy_bandwidth: args.copy_bandwidth,
            require_libraries: args.require_libraries,
            synchronous: args.synchronous,
            without_waits: args.without_waits,
            ..args.start.options()
        }
    }
}

/// `lmsc verify`.
#[derive(Debug, Args, Clone)]
pub struct VerifyArgs {
    /// The original model.
    pub original: PathBuf,
    /// The rewritten model.
    pub rewritten: PathBuf,
    /// Count the swaps of ORIGINAL that a consumer's optimizer has left in REWRITTEN.
    #[arg(long)]
    pub survives: bool,
    /// Allow the changes of clean-up passes: REWRITTEN may lack dead nodes, and integers that are known without running the step
    /// may be constants.
    #[arg(long, conflicts_with = "survives")]
    pub cleaned: bool,
    /// Sizes and state.
    #[command(flatten)]
    pub binding: BindingArgs,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Accepts any text; shells complete it to these names.
#[derive(Clone)]
struct AnyOf(Vec<&'static str>);

impl TypedValueParser for AnyOf {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<String, clap::Error> {
        clap::builder::StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().copied().map(PossibleValue::new)))
    }
}

/// A target: a name, a file, or a GPU of this machine.
fn target() -> AnyOf {
    AnyOf(BUILT_IN.iter().map(|(name, _)| *name).chain([device::AUTO]).collect())
}

/// A planner with its options; shells complete it to the names.
#[derive(Clone)]
struct PlannerParser;

impl TypedValueParser for PlannerParser {
    type Value = PlannerCall;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<PlannerCall, clap::Error> {
        let parse = |text: &str| text.parse::<PlannerCall>();
        parse.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(planners().map(|planner| PossibleValue::new(planner.name()))))
    }
}

fn planners_help() -> String {
    let names: Vec<&str> = planners().map(AnyPlanner::name).collect();
    format!(
        "{} The planners are {}. A planner's own options stand in braces: 'tflms{{lb=3,ub=40}}'.",
        planner_help(),
        names.join(", ")
    )
}

fn planner_help() -> String {
    format!("Who decides what leaves the device and when. [default: {DEFAULT_PLANNER}]")
}

/// A duration in seconds.
fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.0..=1e6).contains(seconds));
    seconds.ok_or_else(|| format!("`{text}` is not a number of seconds, such as 60 or 0.5"))
}

/// By how many percent times are off.
fn off_by(text: &str) -> Result<u32, String> {
    let percent = text.trim_end_matches('%').parse().ok().filter(|percent| (1..=90).contains(percent));
    percent.ok_or_else(|| format!("`{text}` is no share from 1% to 90%"))
}

/// The size of a page.
fn page(text: &str) -> Result<Bytes, String> {
    let page: Bytes = text.parse().map_err(|e| format!("{e}"))?;
    if is_size(page.0) {
        Ok(page)
    } else {
        Err(format!("a page is a multiple of {}, at most {}", Bytes(SMALLEST), Bytes(LARGEST)))
    }
}

fn dim(text: &str) -> Result<(String, u64), String> {
    let form = || format!("`{text}` is not of the form NAME=VALUE");
    let (name, value) = pair(text).ok_or_else(form)?;
    let value = value
        .parse()
        .map_err(|_| format!("`{value}` is not an extent; write a whole number, for example batch=32"))?;
    Ok((name.to_owned(), value))
}

/// `INPUT=2x3x224`; for a scalar, `INPUT=`.
fn shape(text: &str) -> Result<(String, Vec<u64>), String> {
    let form = || format!("`{text}` is not of the form INPUT=EXTENTS, for example image=2x3x224x224");
    let (name, extents) = text.rsplit_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(form)?;
    let extents = extents.split(['x', ',']).filter(|_| !extents.is_empty());
    let extents =
        extents.map(|extent| extent.trim().parse().map_err(|_| form())).collect::<Result<_, _>>()?;
    Ok((name.to_owned(), extents))
}

/// `INPUT=VALUE`.
fn value(text: &str) -> Result<(String, String), String> {
    let (input, value) = pair(text)
        .ok_or_else(|| format!("`{text}` is not of the form INPUT=VALUE, for example rate=16000"))?;
    Ok((input.to_owned(), value.to_owned()))
}

/// A number of ranks for `lmsc fit`.
fn ranks(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(count @ 2..=65_536) => Ok(count),
        _ => Err("write a number of ranks from 2 to 65536".to_owned()),
    }
}

/// A batch that `lmsc fit` tries.
fn batch(text: &str) -> Result<u64, String> {
    let size = text.parse().ok().filter(|&size| size > 0);
    size.ok_or_else(|| {
        format!("`{text}` is no size of a batch; sizes are separated by commas, such as 8,16,32")
    })
}

/// `NAME=VALUE` or `NAME=FIRST..LAST`.
fn dim_range(text: &str) -> Result<(String, RangeInclusive<u64>), String> {
    let Some((first, last)) = text.split_once("..") else {
        return dim(text).map(|(name, value)| (name, value..=value));
    };
    let (name, first) = dim(first)?;
    let (_, last) = dim(&format!("{name}={last}"))?;
    if first <= last && first > 0 {
        Ok((name, first..=last))
    } else {
        Err(format!("`{text}` is no range: the first value is above the last, or zero"))
    }
}

/// `A=B`.
fn pair(text: &str) -> Option<(&str, &str)> {
    text.split_once('=').filter(|(a, b)| !a.is_empty() && !b.is_empty())
}

fn state(text: &str) -> Result<StateOption, String> {
    match pair(text) {
        Some((input, output)) => Ok(StateOption::Pair(input.to_owned(), output.to_owned())),
        None if text == "none" => Ok(StateOption::None),
        None if text.ends_with(".json") => Ok(StateOption::File(text.into())),
        _ => {
            Err(format!("`{text}` is not of the form INPUT=OUTPUT, nor the name of a .json file, nor `none`"))
        }
    }
}

/// The version, with the commit of a release build and the features.
fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(long_version);
    &VERSION
}

fn long_version() -> String {
    let commit = match env!("LMSC_COMMIT") {
        "" => "a development build".to_owned(),
        commit => format!("commit {commit}"),
    };
    let features = if cfg!(feature = "melior") { "melior" } else { "none" };
    format!("{} ({commit}; features: {features})", env!("CARGO_PKG_VERSION"))
}

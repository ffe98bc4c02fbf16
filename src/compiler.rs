//! Compiles a step through the library, like the command: with the same options, passes and proof.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::budget::{Budget, Goal};
use crate::compile::{Caller, Compiled, Source, compile_for};
use crate::emit::{Emitted, Says};
use crate::files::{check_not_read, check_target};
use crate::job::{Addresses, Device, Form, Input, Job, StateOption};
use crate::planner::called;
use crate::proof::Written;
use crate::{Error, Session, Watch, external, load};

/// The name of a model that is given as bytes, in messages and reports.
const UNNAMED: &str = "<bytes>";

/// Compiles a training step so that it fits into a budget of device memory.
///
/// Without a [budget](Compiler::budget) nothing is planned and the step stays as it was read. Nothing is printed.
///
/// ```
/// use lmsc::{Compiler, Device};
///
/// let step = "step (float[2] x, float[2] w) => (float[] loss, float[2] w_new) {
///     [product] float[2] y = Mul(x, w)
///     [square] float[2] s = Mul(y, y)
///     [loss] float[] loss = ReduceSum<keepdims = 0>(s)
///     [two] float[2] d = Add(y, y)
///     [gradient] float[2] g = Mul(d, x)
///     [update] float[2] w_new = Sub(w, g) updates (w as w_new)
/// }";
/// let compiled = Compiler::from_bytes(step).target("host").budget("1KiB".parse()?).compile()?;
/// assert!(compiled.report.after.peak <= 1024);
///
/// let mut session = compiled.session(Device::Host)?;
/// let floats = |numbers: [f32; 2]| numbers.map(f32::to_le_bytes).concat();
/// session.set("w", None, &floats([1.0, 0.5]))?;
/// let outputs = session.step([("x", None, &floats([0.25, 0.5])[..])])?;
/// assert_eq!(outputs["loss"].bytes, 0.125_f32.to_le_bytes());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Compiler {
    job: Job,
    planner: Option<String>,
    bytes: Option<bytes::Bytes>,
    watch: Option<Arc<Watch>>,
}

impl Compiler {
    /// A compiler of the model at this path: `.onnx`, `.lms` or `.mlir`.
    pub fn new(path: impl Into<PathBuf>) -> Compiler {
        let input = Input { path: path.into(), ..Input::default() };
        Compiler { job: Job { input, ..Job::default() }, planner: None, bytes: None, watch: None }
    }

    /// A compiler of the model in these bytes: an ONNX model without files beside it, or text.
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Compiler {
        Compiler { bytes: Some(bytes.into().into()), ..Compiler::new(UNNAMED) }
    }

    /// Reports the progress of the search to another thread, which may end the search with the best plan so far.
    pub fn watch(mut self, watch: Arc<Watch>) -> Compiler {
        self.watch = Some(watch);
        self
    }

    /// The optimizer graph that onnxruntime-training wrote beside the training graph; the two become one step.
    pub fn optimizer(mut self, path: impl Into<PathBuf>) -> Compiler {
        self.job.input.binding.optimizer = Some(path.into());
        self
    }

    /// The value of a symbolic dimension.
    pub fn dim(mut self, name: impl Into<String>, value: u64) -> Compiler {
        self.job.input.binding.dims.push((name.into(), value));
        self
    }

    /// The extents of an input, where the file leaves some open.
    pub fn shape(mut self, input: impl Into<String>, extents: impl Into<Vec<u64>>) -> Compiler {
        self.job.input.binding.shapes.push((input.into(), extents.into()));
        self
    }

    /// The value of an input that is a constant of the step, with commas between elements.
    pub fn value(mut self, input: impl Into<String>, value: impl Into<String>) -> Compiler {
        self.job.input.binding.values.push((input.into(), value.into()));
        self
    }

    /// Declares an input as kept from step to step, with the output that is its next value. Outputs named after an
    /// input with the suffix `_new` are found without a declaration.
    pub fn state(mut self, input: impl Into<String>, output: impl Into<String>) -> Compiler {
        self.job.input.binding.state.push(StateOption::Pair(input.into(), output.into()));
        self
    }

    /// Declares an input, or an output, as not kept from step to step, independently of its name.
    pub fn no_state(mut self, name: impl Into<String>) -> Compiler {
        self.job.input.binding.no_state.push(name.into());
        self
    }

    /// Device memory that the whole step may use, or the smallest with which it keeps to a bound on time.
    pub fn budget(mut self, budget: Goal) -> Compiler {
        self.job.planning.budget = Some(budget);
        self
    }

    /// Host memory that swapped tensors may use.
    pub fn host_budget(mut self, budget: Budget) -> Compiler {
        self.job.planning.machine.host_budget = Some(budget);
        self
    }

    /// The machine that runs the step: a name from `lmsc targets`, the path of a TOML file of that form, or `auto`
    /// for a GPU of this machine. [default: a100-pcie4]
    pub fn target(mut self, target: impl Into<String>) -> Compiler {
        self.job.planning.machine.target = Some(target.into());
        self
    }

    /// The profile of that machine, measured by `lmsc calibrate`.
    pub fn profile(mut self, path: impl Into<PathBuf>) -> Compiler {
        self.job.planning.machine.profile = Some(path.into());
        self
    }

    /// The planner of this name, with its own options in braces if need be, as in `tflms{lb=3}`. [default: auto]
    pub fn planner(mut self, name: impl Into<String>) -> Compiler {
        self.planner = Some(name.into());
        self
    }

    /// How much to search for a plan and for addresses, in percent of the usual number of evaluations.
    pub fn effort(mut self, percent: u32) -> Compiler {
        self.job.planning.search.effort = Some(percent);
        self
    }

    /// Whether ranges of a tensor may be copied separately.
    pub fn ranges(mut self, ranges: bool) -> Compiler {
        self.job.planning.search.ranges = ranges;
        self
    }

    /// The way in which the step keeps its budget. [default: auto]
    pub fn addresses(mut self, addresses: Addresses) -> Compiler {
        self.job.planning.search.addresses = addresses;
        self
    }

    /// The file of a plan to carry out instead of planning; `--save-plan` and [`Compiled::plan`] make such files.
    pub fn plan(mut self, path: impl Into<PathBuf>) -> Compiler {
        self.job.planning.given = Some(path.into());
        self
    }

    /// The form of swaps in ONNX.
    pub fn form(mut self, form: Form) -> Compiler {
        self.job.form = form;
        self
    }

    /// The compiled step, proven to compute the model's results within the budget.
    ///
    /// # Errors
    /// [`ErrorKind::Refusal`](crate::ErrorKind) if the budget cannot be met; [`ErrorKind::Input`](crate::ErrorKind) if an option or the
    /// model is at fault.
    pub fn compile(mut self) -> Result<Compiled, Error> {
        if let Some(planner) = &self.planner {
            self.job.planning.search.planner = Some(called(planner)?);
        }
        compile_for(&self.job, Caller::Library { bytes: self.bytes, watch: self.watch })
    }
}

impl Compiled {
    /// Writes the step to this file, completely or not at all: as ONNX, or as text or MLIR if the name ends in
    /// `.lms` or `.mlir`. The file is read back and proven to equal the compiled step.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind) if the file cannot be written, or is one from which the model was read.
    ///
    /// # Panics
    /// If the step was not compiled by a [`Compiler`].
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        let source = self.source.as_ref().expect("a `Compiler` keeps it");
        let job = &source.job;
        check_target(path)?;
        check_not_read(path, &job.input)?;
        source.model.iter().try_for_each(|model| external::check_not_data(model, path))?;
        let [original, result] = &self.graphs;
        let peak = self.cx.memory(result).peak();
        let memory = (peak, self.pages);
        let precision = (!job.planning.plans_nothing()).then_some(job.planning.machine.precision);
        let says = Says::of(result, &self.cx, memory, &self.report.hash, precision);
        let Source { model, dims, changed, .. } = source;
        let emitted = Emitted::new(job, model.clone(), result, *changed, dims, says, path)?;
        emitted.write(path)?;
        let written = Written {
            path,
            emit: job.emit(path),
            binding: &job.input.binding,
            original,
            result,
            folder: self.folder.as_deref(),
            cx: &self.cx,
            of_text: model.is_none(),
        };
        written.read_back()
    }

    /// Proves again that the compiled step computes the model's results, and that its memory is within the budget.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`](crate::ErrorKind) with the difference.
    pub fn verify(&self) -> Result<(), Error> {
        let [original, result] = &self.graphs;
        load::check(result).map_err(|e| Error::ours(format!("the compiled step is not valid:\n{e}")))?;
        lmsc_ir::equiv::check(original, result)
            .map_err(|difference| Error::ours(format!("the compiled step differs: {difference}")))?;
        let peak = self.cx.memory(result).peak();
        match self.cx.budget.filter(|&budget| peak > budget) {
            Some(budget) => Err(Error::ours(format!("the peak is {peak}, above the budget of {budget}"))),
            None => Ok(()),
        }
    }

    /// The plan as the JSON of `--save-plan`; `None` if nothing was planned, and for the planner `tflms`.
    pub fn plan(&self) -> Option<&str> {
        self.plan.as_deref()
    }

    /// The step on a device, ready to run.
    ///
    /// # Errors
    /// [`ErrorKind::Refusal`](crate::ErrorKind) if there is no such device, or it has too little memory;
    /// [`ErrorKind::Input`](crate::ErrorKind) if the step was planned for a device of another kind, whose kernels need less
    /// memory.
    pub fn session(&self, device: Device) -> Result<Session, Error> {
        Session::of(self, device)
    }
}

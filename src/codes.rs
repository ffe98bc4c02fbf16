//! The families and the stable codes of errors, each with its explanation.

use lmsc_plan::Cause;

/// A family of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The answer is no: the step does not fit, two models differ, or a device fails or is missing.
    Refusal,
    /// The model, a file or the call is at fault.
    Input,
    /// A signal ended it, between two steps.
    Interrupted,
    /// lmsc is at fault.
    Internal,
}

impl ErrorKind {
    /// The family's name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::Refusal => "refusal",
            ErrorKind::Input => "input",
            ErrorKind::Interrupted => "interrupted",
            ErrorKind::Internal => "internal",
        }
    }
}

/// A kind of error, with a number that does not change between versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// An operator needs more device memory at once than the budget.
    Operator,
    /// Inputs, parameters and state need more than the budget.
    Resident,
    /// The planner finds no plan.
    NoPlan,
    /// No addresses are found for a plan.
    NoAddresses,
    /// Tensors that leave the device do not fit the host's budget.
    HostIsFull,
    /// Parameters fix a plan that needs more than the budget.
    Parameters,
    /// The machine has less memory than a plan takes.
    MachineMemory,
    /// None of the budgets of a sweep suffices.
    NothingFits,
    /// Buffers do not fit a capacity.
    Buffers,
    /// A device, a library or a thread is missing.
    Missing,
    /// A device failed during a run.
    Failed,
    /// A run stopped at a condition that the call set.
    Stopped,
    /// Two models differ.
    Different,
    /// A file has lost its plan.
    Lost,
    /// A plan, schedule or certificate is not valid.
    NotValid,
    /// A file cannot be read or written.
    File,
    /// A file is not a model.
    NotAModel,
    /// A model is damaged, or not a valid graph.
    Model,
    /// A model has an operator, a version or a type that lmsc does not support.
    Unsupported,
    /// A dimension or an extent is not given, or contradicts another.
    Dimension,
    /// An option is wrong, or contradicts another.
    Option,
    /// The state of the step is contradictory.
    State,
    /// A given plan belongs to another model, or is not valid.
    GivenPlan,
    /// A file beside the model is malformed.
    Malformed,
    /// Values given to a step are not those that it takes.
    Values,
    /// A graph cannot be written in a form.
    Form,
    /// A step of PyTorch cannot be written as one graph.
    Capture,
    /// An operator of PyTorch has no translation.
    Translation,
    /// Objects of PyTorch were changed where the step has newer values.
    Stale,
    /// A signal ended a run.
    Interrupted,
    /// A graph computes forward alone.
    Inference,
    /// A step trains nothing.
    Idle,
    /// A model has a fault that can be done without.
    Fault,
    /// Another program has rewritten a file, and its plan is gone.
    Rewritten,
    /// Another program has left half of a swap.
    HalfSwaps,
    /// State was paired by names.
    Paired,
    /// An operator is called nearly like one of ONNX.
    Misspelt,
    /// Own kernels stand in for a library.
    OwnKernels,
    /// A checkpoint has no digests.
    OldCheckpoint,
    /// Convolutions run by other engines than the file states.
    OtherEngines,
    /// lmsc is at fault.
    Bug,
}

/// The explanation of a code.
pub(crate) struct Explained {
    pub(crate) code: Code,
    pub(crate) number: &'static str,
    pub(crate) title: &'static str,
    pub(crate) text: &'static str,
}

/// Every code, in the order of the numbers. A number never changes its code and is never removed.
#[rustfmt::skip]
pub(crate) static CODES: &[Explained] = &[
    Explained { code: Code::Operator, number: "LMS0101", title: "an operator needs more device memory than the budget", text: "\
While an operator runs, its operands, its results and its workspace are on the device, and so are
inputs, parameters and state that may not leave. If these bytes exceed the budget, no plan helps.
The message names the operator that needs most, and what each part of its bytes is for.

    $ lmsc model.onnx --budget 400KiB
    lmsc: error[LMS0101]: does not fit 400 KiB: `dec/ConvGrad_0` (com.microsoft.ConvGrad) needs 643.53 KiB at once

What to do:
- Give one of the smallest budgets that the message lists, with the option that its plan needs. They hold
  as they are printed.
- Make the step smaller, for example with a smaller batch: --dim batch=16.
- Where the workspace is large, another --target or --profile may state a smaller one.
"},
    Explained { code: Code::Resident, number: "LMS0102", title: "inputs, parameters and state need more than the budget", text: "\
The step has no operator, or none that needs more than the rest; what is on the device throughout
already exceeds the budget.

    $ lmsc empty.onnx --budget 1KiB
    lmsc: error[LMS0102]: does not fit 1 KiB: inputs, parameters and state, which are there throughout, need 4 KiB

What to do:
- Give a larger --budget: `lmsc inspect MODEL` shows the bytes of each kind.
- Make the inputs smaller, with --dim.
"},
    Explained { code: Code::NoPlan, number: "LMS0103", title: "the planner finds no plan for the budget", text: "\
No single operator needs more than the budget, but this planner does not find a plan that keeps within
it. Planners of papers choose what leaves by rules of their own, and may fail where another succeeds.

    $ lmsc model.onnx --budget 2GiB --planner vdnn
    lmsc: error[LMS0103]: the planner `vdnn` finds no plan for 2 GiB

What to do:
- Use --planner auto, the default, which swaps and computes again.
- Give a larger --budget. The message lists the smallest ones.
"},
    Explained { code: Code::NoAddresses, number: "LMS0104", title: "no addresses are found for the plan", text: "\
The bytes that are live at once fit the budget, but they cannot be laid out in one arena of that size:
between tensors there are gaps that no other tensor fits.

    $ lmsc model.onnx --budget 30400 --planner lru
    lmsc: error[LMS0104]: the plan of `lru` fits 29.69 KiB by its bytes, but no addresses were found in it

What to do:
- Give a slightly larger --budget, or another --planner.
- Give --addresses off, which counts bytes, if the runtime has an allocator of its own; or --pages, if it
  maps memory in pages.
"},
    Explained { code: Code::HostIsFull, number: "LMS0105", title: "tensors that leave the device do not fit the host's budget", text: "\
There are plans for the device's budget, but they move more bytes to the host than --host-budget allows;
without the option, more than the host memory of the target.

    $ lmsc model.onnx --budget 26MiB --host-budget 2MiB
    lmsc: error[LMS0105]: does not fit 26 MiB: `dx4` (FusedMatMul) needs 33.25 MiB at once

What to do:
- Give a larger --host-budget, or a larger --budget, so that less has to leave.
- Use --planner auto, which computes again what has no room on the host.
"},
    Explained { code: Code::Parameters, number: "LMS0106", title: "parameters of the call fix a plan that exceeds the budget", text: "\
Options of the planner tflms, such as n-tensors, threshold or swap-limit, and --pass-limit say which tensors are
swapped. They are carried out as they are, and the result needs more than the budget.

    $ lmsc model.onnx --budget 500KiB --planner 'tflms{n-tensors=1}'
    lmsc: error[LMS0106]: the peak is 1.43 MiB with tflms{n-tensors=1}, above the budget of 500 KiB

What to do:
- Leave the parameters out, and lmsc chooses; the message says whether there is a plan then.
"},
    Explained { code: Code::MachineMemory, number: "LMS0107", title: "the machine does not have the memory that the plan takes", text: "\
A run takes the memory of the plan before the first step: the arena on the device, and on the host the
memory for what leaves. The machine does not give it, or what was planned takes more than the run may use.

    $ lmsc run out.onnx --device cuda
    lmsc: error[LMS0107]: out.onnx cannot run here: the device has 9.8 GiB free, and the step needs 12 GiB

What to do:
- Plan the original model again, for less: --budget 90% with --target auto asks what is free.
- Free memory that other programs use; on the host, give a smaller --host-budget.
"},
    Explained { code: Code::NothingFits, number: "LMS0108", title: "no size fits any of the budgets", text: "\
`lmsc sweep` plans each size for each budget, and there is no plan for any of them.

    $ lmsc sweep model.onnx --dim batch=64 --budget 1KiB..2KiB
    lmsc: error[LMS0108]: no size fits any of the budgets

What to do:
- Give a larger upper end of --budget: the table says for each size the smallest budgets.
- Give smaller sizes.
"},
    Explained { code: Code::Buffers, number: "LMS0109", title: "buffers do not lie in the capacity", text: "\
`lmsc offsets` found no layout of the buffers within --capacity. \"cannot lie in\" says that it is proven:
more bytes are live at once, or buffers with given offsets overlap. \"were not placed in\" says that the
search found none.

    $ lmsc offsets buffers.csv --capacity 1000
    lmsc: error[LMS0109]: 3 buffers cannot lie in 1000 bytes; at most 1200 bytes are live at once, at 2

What to do:
- Give the capacity that the message names, or search more, with --effort.
- Leave out an offset that is given.
"},
    Explained { code: Code::Missing, number: "LMS0110", title: "a device, a library or a thread is missing", text: "\
The call asks for a GPU, for NVIDIA's libraries or for threads, and this machine has none to give.

    $ lmsc run out.onnx --device cuda
    lmsc: error[LMS0110]: there is no GPU to ask: the driver libcuda.so.1 is not installed

What to do:
- Make the device visible (CUDA_VISIBLE_DEVICES, the container's devices), or install the driver.
- Name the machine by its target, such as --target h100-sxm: planning needs no GPU.
- Leave out --device and --require-libraries to run on the processor.
"},
    Explained { code: Code::Failed, number: "LMS0111", title: "a device or a step failed", text: "\
The device reported an error while a step ran, or a copy between device and host failed. What was computed
since the last checkpoint is lost; files that were written before are whole.

    lmsc: error[LMS0111]: out.onnx fails on the CUDA device: an illegal memory access was encountered

What to do:
- Run again from the last checkpoint: --resume.
- If it fails again at the same step, run with --synchronous, which names the kernel and the node, and report it with the
  model.
"},
    Explained { code: Code::Stopped, number: "LMS0112", title: "a run stopped at what it was to stop at", text: "\
The run was asked to stop where a value is no number, or infinite, and it has found one.

What to do:
- Resume from a checkpoint before that step, with other values or a smaller learning rate.
- Leave the option out to go on in spite of it.
"},
    Explained { code: Code::Different, number: "LMS0113", title: "two models compute different values", text: "\
`lmsc verify` found the first place where the models differ. It compares what they compute, not how they are
written, so another order of nodes or other names of inner values make no difference.

    $ lmsc verify model.onnx out.onnx
    lmsc: error[LMS0113]: different: output `loss` is Add(a, b) in the one and Add(a, c) in the other

What to do:
- Compare the model from which the file was made, with the same --dim and --optimizer.
- If lmsc wrote the file just so, report it: it is a bug.
"},
    Explained { code: Code::Lost, number: "LMS0114", title: "a file has lost what was planned", text: "\
The file computes the same as the original, but another program has changed it: its edges do not keep the
memory bound any more, or swaps are gone.

    $ lmsc verify model.onnx out.optimized.onnx
    lmsc: error[LMS0114]: equal … memory: the edges allow 3.1 GiB, above the 2 GiB that the file states

What to do:
- Take the file as lmsc wrote it, or plan the original again.
- For ONNX Runtime, compile with --form ort, whose swaps its optimizer keeps.
"},
    Explained { code: Code::NotValid, number: "LMS0115", title: "a plan, a schedule or a certificate is not valid", text: "\
`lmsc check` reads what a planner has written, and checks it with code that shares nothing with planners. The
message says the first fault.

    $ lmsc check p.json model.onnx
    lmsc: error[LMS0115]: p.json: not valid: step 12 exceeds the budget

What to do:
- Give the model, --dim, --budget and --target for which the file was written.
- Plan anew, if the file was changed since.
"},
    Explained { code: Code::File, number: "LMS0201", title: "a file cannot be read or written", text: "\
The system refuses the file: it does not exist, is a folder, permission is missing, or the disk is full. Or the
call would write over a file that it reads.

    $ lmsc nosuch.onnx
    lmsc: error[LMS0201]: cannot read nosuch.onnx: no such file

What to do:
- Correct the path or the permissions. An output never replaces a file that is read, unless --force is given.
"},
    Explained { code: Code::NotAModel, number: "LMS0202", title: "a file is not a model", text: "\
The bytes are not an ONNX model, not lmsc's text form and not MLIR of lmsc. If they are known as something
else, such as a ZIP archive or a PyTorch checkpoint, the message says so.

    $ lmsc model.pt
    lmsc: error[LMS0202]: model.pt is not an ONNX model: it looks like a ZIP archive

What to do:
- Export the training step as ONNX; docs/pytorch.md shows how.
"},
    Explained { code: Code::Model, number: "LMS0203", title: "a model is damaged, or not a valid graph", text: "\
The file is a model, but cannot be read without loss, or breaks a rule of every graph: a value without a
definition, a cycle, an operand of another type than its operator takes, weights whose file is missing.
The message lists all faults, up to a limit.

    $ lmsc model.onnx
    lmsc: error[LMS0203]: model.onnx is cut short: it has 1000 bytes and needs 25678 or more

What to do:
- Export or copy the model again; keep files with weights beside it.
- Of a text (`.lms`, `.mlir`), correct the line that the message shows.
"},
    Explained { code: Code::Unsupported, number: "LMS0204", title: "a model has what lmsc does not support", text: "\
An operator, a version of an operator set, an attribute or a type is not in lmsc's tables, or there is no
kernel that runs it. docs/operators.md lists what there is.

    $ lmsc model.onnx
    lmsc: error[LMS0204]: model.onnx cannot be imported: it imports version 99 of ONNX

What to do:
- Convert the model to a version that is known, for example with onnx.version_converter.
- For an unknown operator, add value_info entries for its results: then it can be planned, though not run.
"},
    Explained { code: Code::Dimension, number: "LMS0205", title: "a dimension is not given, or contradicts another", text: "\
Plans are made for tensors of known size. A symbolic dimension, such as the batch, needs a value; sizes that
are given must go together.

    $ lmsc model.onnx --budget 8GiB
    lmsc: error[LMS0205]: model.onnx cannot be imported: dimension `batch` has no value

What to do:
- Give each dimension a value: --dim batch=32. Where the file has no name for it, give the whole input:
  --shape image=32x3x224x224.
- `lmsc inspect MODEL` names the dimensions.
"},
    Explained { code: Code::Option, number: "LMS0206", title: "an option is wrong, or contradicts another", text: "\
An option is misspelt, has a value that it does not take, names something that does not exist, or does not go
together with another.

    $ lmsc model.onnx --budget 8GiB --planner lru --ranges
    lmsc: error[LMS0206]: --ranges: the planner lru copies whole tensors
    help: leave it out, or choose a --planner that does not, for example --planner swap-only

What to do:
- The message says what is meant or possible; `lmsc COMMAND --help` lists options with their values.
"},
    Explained { code: Code::State, number: "LMS0207", title: "the state of the step is contradictory", text: "\
State is an input and the output that is its next value. A pair that --state or the file names does not exist,
or something reads a variable after it was overwritten.

    $ lmsc model.onnx --state w=w_next
    lmsc: error[LMS0207]: model.onnx: the state w=w_next (--state, or metadata `ai.lmsc.state`): there is no output `w_next`

What to do:
- Name inputs and outputs of the step: `lmsc inspect MODEL` lists them.
- Leave a pair out with --no-state NAME.
"},
    Explained { code: Code::GivenPlan, number: "LMS0208", title: "a plan that was given belongs to something else", text: "\
A plan of --plan is carried out only if it is one of this model, for this budget, and valid. One for another target or profile keeps its
order and takes the times of this one; it must fit with the workspaces of this one.

    $ lmsc other.onnx --plan p.json
    lmsc: error[LMS0208]: p.json: it belongs to another model: the model has no node `conv1`

What to do:
- Give the model, --dim, --target and --profile with which the plan was saved.
- Plan anew, without --plan.
"},
    Explained { code: Code::Malformed, number: "LMS0209", title: "a file beside the model is not what it should be", text: "\
A profile, a target, an instance, a plan, a checkpoint or a file of tensors is not of its format.

    $ lmsc model.onnx --budget 8GiB --profile p.json
    lmsc: error[LMS0209]: p.json: expected value at line 1 column 1

What to do:
- Let lmsc write the file again, or correct it: docs/formats.md describes every format.
"},
    Explained { code: Code::Values, number: "LMS0210", title: "values are not those that the step takes", text: "\
A run or a session was given a value under a name that the step does not have, of another type or shape, or
without a value that it needs. Or an index or a label of a step is out of range: the step fails. On the host it ends
there, and its variables keep their values if none had been written or moved; on a CUDA device the rest of the step
runs without that element, and the values of the variables are lost.

    lmsc: error[LMS0210]: `x` is float[8,2]; expected float[4,2]

What to do:
- `lmsc inspect MODEL` lists the inputs and variables with their types.
"},
    Explained { code: Code::Form, number: "LMS0211", title: "the graph cannot be written in this form", text: "\
ONNX, MLIR and StableHLO do not hold everything: a text of lmsc may have only the digests of weights, and not
every operator has an expansion in StableHLO.

    $ lmsc model.lms -o out.onnx
    lmsc: error[LMS0211]: model.lms: the text form holds only the digest of `w`, not its bytes, which the ONNX file needs

What to do:
- Start from the .onnx file, or write text: -o out.lms.
"},
    Explained { code: Code::Capture, number: "LMS0220", title: "a step of PyTorch cannot be written as one graph", text: "\
`lmsc.torch` runs the module, the loss and the optimizer once, without elements, and writes down what was run. A
graph holds tensors and operators only. It cannot hold a decision that depends on the value of a tensor, a size that
does, a number that Python counts or draws in each step, or what a list or a global variable keeps from step to step.
The message names the line and the remedy.

    net.py:12: the step draws random numbers from `numpy.random`, which would be the same in all steps

What to do:
- Keep what changes from step to step in a tensor: register_buffer in the module, or an element of the batch.
- Take decisions outside of the step, or with torch.where.
- A first step that is another one than the rest: run it in PyTorch before.
"},
    Explained { code: Code::Translation, number: "LMS0221", title: "an operator of PyTorch has no translation", text: "\
Each operator that PyTorch runs in a step is written with operators of ONNX. The message names the operator, and the
line that runs it.

    net.py:12: there is no translation to ONNX for `linalg_eigh`; write this part with other operators

What to do:
- Write this part with other operators, or take it out of the step: what needs no gradient can be computed before,
  and given as a part of the batch.
"},
    Explained { code: Code::Stale, number: "LMS0222", title: "tensors were written in PyTorch where the step has newer values", text: "\
A TrainStep keeps parameters, buffers and the optimizer's state, and copies them back when `sync()` is called, or when
the module is called, saved or copied. A tensor that is written in PyTorch in between would mix old values and new
ones.

    `head.weight` was written in PyTorch after step 10, whose values are in the step

What to do:
- Call `sync()` before tensors are written. The next step takes them over.
- Call `load()` after it where all of them were written, as by load_state_dict.
"},
    Explained { code: Code::Interrupted, number: "LMS0301", title: "a signal ended the run", text: "\
Ctrl-C or another signal ended the run between two steps. With --save, what was computed until then is saved.

    lmsc: error[LMS0301]: interrupted after 12 of 100 steps

What to do:
- Go on from there: --resume, with the file of --save.
"},
    Explained { code: Code::Inference, number: "LMS0401", title: "a warning: the graph is inference, not a training step", text: "\
No node computes a gradient or changes a parameter. It is planned all the same; training needs more memory.

    lmsc: warning[LMS0401]: model.onnx: it is inference: no node trains

What to do:
- Export the step with its loss, gradients and optimizer: docs/pytorch.md.
- Nothing, if inference is meant.
"},
    Explained { code: Code::Idle, number: "LMS0402", title: "a warning: the step learns nothing", text: "\
There are gradients, but no output is the next value of a parameter, so each step begins with the same
parameters.

What to do:
- Give the optimizer with --optimizer, or say which outputs are next values: --state INPUT=OUTPUT.
"},
    Explained { code: Code::Fault, number: "LMS0403", title: "a warning: a fault of the model that can be done without", text: "\
The model contradicts ONNX's rules in a place that does not change what it computes, or says something that
lmsc has to pass over. The message names the node or the tensor.

What to do:
- Export the model again, with a later version of the exporter.
"},
    Explained { code: Code::Rewritten, number: "LMS0404", title: "a warning: another program has rewritten the file, and its addresses are not used", text: "\
The file was planned by lmsc and changed afterwards, so that its addresses do not hold. It computes the same, but
holds no memory bound until it is planned again.

What to do:
- Plan the original model again, or take the file as lmsc wrote it.
"},
    Explained { code: Code::HalfSwaps, number: "LMS0405", title: "a warning: half of a swap is left in the file", text: "\
Another program has removed one half of a swap. The other half does nothing, and is left out.

What to do:
- Plan the original model again; for ONNX Runtime with --form ort, whose swaps its optimizer keeps.
"},
    Explained { code: Code::Paired, number: "LMS0406", title: "a warning: state that was found by names", text: "\
The model does not say which output is the next value of which input, and lmsc has inferred it, or has left a pair
out. The message names the pair.

What to do:
- Say it: --state INPUT=OUTPUT, --no-state INPUT, or --state none.
"},
    Explained { code: Code::Misspelt, number: "LMS0407", title: "a warning: an operator is called nearly like one of ONNX", text: "\
The text has an operator of ONNX's own domain that lmsc does not know. It is planned as an operator of unknown cost.

What to do:
- Correct the name, or give the operator a domain of its own.
"},
    Explained { code: Code::OwnKernels, number: "LMS0408", title: "a warning: own kernels stand in for a library", text: "\
cuBLAS or cuDNN is not found, or does not take an operator as it is. The result is right; the step is slower.

What to do:
- Install the library, and name its folder in LMSC_CUDA_PATH. --require-libraries refuses instead.
"},
    Explained { code: Code::OldCheckpoint, number: "LMS0409", title: "a warning: the checkpoint has no digests", text: "\
An earlier version of lmsc saved it. The run goes on from it, but damage to the file, or another constant of the
model, would not be noticed.

What to do:
- Nothing; the next --save writes digests.
"},
    Explained { code: Code::OtherEngines, number: "LMS0410", title: "a warning: convolutions run by other engines than planned", text: "\
The file states the version of cuDNN and the engine of each convolution for which it was planned. This GPU's library
has another version, or the call another precision, so that some convolutions run by other engines. Each is right;
the last bits of results may differ from those of other runs of the plan, and the step may be slower.

    lmsc: warning[LMS0410]: 3 of 92 convolutions run by other engines than planned: cuDNN 9.26.0 in place of 9.19.0

What to do:
- Plan on this machine, with --target auto and the --precision of the run, or install the version of the plan.
"},
    Explained { code: Code::Bug, number: "LMS0901", title: "lmsc is at fault", text: "\
A planner or a pass broke a rule, and a check of lmsc found it. Nothing was written, or the message says what.

    lmsc: error[LMS0901]: after pass swap the graph is not valid any more
    This is a bug of lmsc.

What to do:
- Report it with the model or, smaller, with the text of `lmsc opt MODEL`, and the call.
- Another --planner may do meanwhile.
"},
];

impl Code {
    fn explained(self) -> &'static Explained {
        CODES.iter().find(|explained| explained.code == self).expect("every code is in the table")
    }

    /// The number, such as `LMS0101`.
    pub fn number(self) -> &'static str {
        self.explained().number
    }

    /// A short title.
    pub fn title(self) -> &'static str {
        self.explained().title
    }

    /// The kind of the error, given by the first digits of the number.
    pub fn kind(self) -> ErrorKind {
        match &self.number()[..5] {
            "LMS01" => ErrorKind::Refusal,
            // With --deny warnings, a warning is an error of the input.
            "LMS02" | "LMS04" => ErrorKind::Input,
            "LMS03" => ErrorKind::Interrupted,
            _ => ErrorKind::Internal,
        }
    }

    /// The code of a refusal with this cause.
    pub fn of(cause: &Cause) -> Code {
        match cause {
            Cause::Operator(_) => Code::Operator,
            Cause::Resident => Code::Resident,
            Cause::NoPlan { .. } => Code::NoPlan,
            Cause::NoAddresses { .. } | Cause::Arena => Code::NoAddresses,
            Cause::HostIsFull { .. } | Cause::HostPeak { .. } => Code::HostIsFull,
            Cause::Parameters { .. } => Code::Parameters,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_in_order_and_each_once() {
        assert!(CODES.windows(2).all(|pair| pair[0].number < pair[1].number));
        for explained in CODES {
            assert_eq!(explained.code.number(), explained.number, "{:?}", explained.code);
            assert!(explained.text.contains("What to do:\n- "), "{}", explained.number);
        }
    }
}

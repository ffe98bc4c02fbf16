//! Runs a compiled step from other programs, one step at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use bytes::Bytes;
use lmsc_ir::program::{ContentId, Role};
use lmsc_ir::{TensorType, Type, words};
use lmsc_runtime::{DeviceBytes, RunError};

use super::RunOptions;
use super::checkpoint::{self, Checkpoint};
use super::fixed::Fixed;
use super::tensors::{self, Files, Tensors};
use super::watch::steps_input;
use super::{Job, Names, Runner, Subject, fits, is_planned, lacks, not_ready};
use crate::compile::Compiled;
use crate::job::Device;
use crate::{Code, Error, device};

/// The elements of a tensor, with their type and extents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorData {
    /// The element type and the extents.
    pub ty: TensorType,
    /// The elements in row-major order, little-endian.
    pub bytes: Vec<u8>,
}

/// The elements of a value for a step, in row-major order, little-endian: on the host, or in the memory of the step's GPU.
#[derive(Clone, Copy, Debug)]
pub enum InputBytes<'a> {
    /// On the host.
    Host(&'a [u8]),
    /// On the GPU that runs the step. The copy waits for the work that CUDA's default stream already has.
    Gpu(DeviceBytes),
}

impl<'a> From<&'a [u8]> for InputBytes<'a> {
    fn from(bytes: &'a [u8]) -> InputBytes<'a> {
        InputBytes::Host(bytes)
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for InputBytes<'a> {
    fn from(bytes: &'a [u8; N]) -> InputBytes<'a> {
        InputBytes::Host(bytes)
    }
}

impl<'a> From<&'a Vec<u8>> for InputBytes<'a> {
    fn from(bytes: &'a Vec<u8>) -> InputBytes<'a> {
        InputBytes::Host(bytes)
    }
}

impl InputBytes<'_> {
    /// Number of bytes.
    fn count(self) -> u64 {
        match self {
            InputBytes::Host(bytes) => bytes.len() as u64,
            InputBytes::Gpu(at) => at.bytes,
        }
    }
}

/// A compiled step on a device. Its state stays on the device between steps.
///
/// Inputs and variables are set by name and keep their values until they are set again. Bytes are elements in
/// row-major order, little-endian; their number is checked, and so is the type if it is given.
pub struct Session {
    runner: Runner,
    fixed: Fixed,
    /// The name of the step in messages.
    name: String,
    device: Device,
    planned_for: Option<String>,
    /// The tensors that can be set.
    settable: BTreeMap<String, TensorType>,
    /// The inputs that the caller may set before each step.
    inputs: BTreeMap<String, TensorType>,
    variables: BTreeMap<String, TensorType>,
    outputs: BTreeMap<String, TensorType>,
    /// Outputs that are next values of variables.
    next_values: BTreeSet<String>,
    /// The tensors that have no value yet.
    unset: BTreeSet<String>,
    /// The input that counts steps, unless the caller sets it.
    counter: Option<String>,
    checkpoint: Checkpoint,
    seed: u64,
    /// Whether a step failed before its end, so that the state belongs to no step.
    is_broken: bool,
}

/// The tensors among the values; lists of tensors cannot be set by a caller.
fn tensors_of(values: &BTreeMap<String, Type>) -> BTreeMap<String, TensorType> {
    values.iter().filter_map(|(name, ty)| Some((name.clone(), ty.as_tensor()?.clone()))).collect()
}

impl Session {
    /// The compiled step on the device.
    pub(crate) fn of(compiled: &Compiled, device: Device) -> Result<Session, Error> {
        device::check(device)?;
        let cx = compiled.asked();
        let name = compiled.report.model.clone();
        let (mut graph, mut files) = (compiled.graph().clone(), Files::new(compiled.folder.clone()));
        tensors::inline_small(&mut graph, &mut files)?;
        let options = RunOptions { chunk: compiled.pages(), ..RunOptions::default() };
        let planned_for = Some(cx.target().name);
        let mapped = &compiled.mapped[..];
        let (path, options, verbose) = (Path::new(&name), &options, false);
        let of_job = planned_for.clone();
        let is_planned = is_planned(compiled.original());
        let mut job = Job {
            path,
            graph,
            is_planned,
            files,
            mapped,
            cx,
            options,
            device,
            planned_for: of_job,
            engines: None,
            verbose,
        };
        let program = job.program()?;
        let (runner, open, _) = job.open(program, None)?;
        let names = Names::of(runner.program());
        let program = runner.program();
        let contents: BTreeSet<ContentId> = program
            .given
            .iter()
            .filter_map(|given| match given.role {
                Role::Variable(content) => Some(content),
                Role::Input | Role::Constant => None,
            })
            .collect();
        let outputs = program.outputs.iter().filter(|output| !output.tensor.name.is_empty());
        let (mut all, mut next_values) = (BTreeMap::new(), BTreeSet::new());
        for output in outputs {
            let name = output.tensor.name.to_string();
            if contents.contains(&output.tensor.content) {
                next_values.insert(name.clone());
            }
            if let Some(ty) = output.tensor.ty.as_tensor() {
                all.insert(name, ty.clone());
            }
        }
        let mut checkpoint = Checkpoint::new(0, runner.device(), false);
        checkpoint.add_constants(&job.graph, &names.variables);
        let counter = steps_input(program);
        let unset = open.into_keys().filter(|name| counter.as_ref() != Some(name)).collect();
        let [settable, inputs, variables] =
            [&names.settable, &names.inputs, &names.variables].map(tensors_of);
        Ok(Session {
            fixed: Fixed::of(&job.graph),
            runner,
            name,
            device,
            planned_for,
            settable,
            inputs,
            variables,
            outputs: all,
            next_values,
            unset,
            counter,
            checkpoint,
            seed: 0,
            is_broken: false,
        })
    }

    /// The inputs that the caller may set before each step, by name.
    pub fn inputs(&self) -> &BTreeMap<String, TensorType> {
        &self.inputs
    }

    /// The variables, which the step changes and keeps, by name.
    pub fn variables(&self) -> &BTreeMap<String, TensorType> {
        &self.variables
    }

    /// The outputs of a step, by name, without the next values of variables.
    pub fn outputs(&self) -> impl Iterator<Item = (&str, &TensorType)> {
        let mine = self.outputs.iter().filter(|(name, _)| !self.next_values.contains(*name));
        mine.map(|(name, ty)| (&**name, ty))
    }

    /// The device: `host`, or the vendor's name of a GPU.
    pub fn device(&self) -> String {
        self.runner.device()
    }

    /// The number of the GPU that runs it; none on the host.
    pub fn gpu(&self) -> Option<u32> {
        match self.device {
            Device::Host => None,
            Device::Cuda { ordinal, .. } => Some(ordinal),
        }
    }

    /// The number of steps that have run.
    pub fn steps(&self) -> u64 {
        self.runner.steps()
    }

    /// Sets the number of steps that have run, from which random operators and step counters continue.
    pub fn set_steps(&mut self, steps: u64) {
        self.runner.session().set_steps(steps);
    }

    /// Sets the seed of random operators; they also depend on their node and the number of the step.
    pub fn set_seed(&mut self, seed: u64) {
        self.seed = seed;
        self.runner.session().set_seed(seed);
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Sets an input, a variable or a parameter that no step changes.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind) with the name, if the step does not have it or the value has another type.
    pub fn set<'a>(
        &mut self,
        name: &str,
        ty: Option<&TensorType>,
        bytes: impl Into<InputBytes<'a>>,
    ) -> Result<(), Error> {
        let bytes = bytes.into();
        self.put(name, ty, bytes)?;
        // The session does not count the steps if their number is given.
        self.counter = self.counter.take().filter(|counter| counter != name);
        if !self.variables.contains_key(name) {
            let bytes = match bytes {
                InputBytes::Host(bytes) => bytes.to_vec(),
                InputBytes::Gpu(_) => self.runner.get(name)?.unwrap_or_default(),
            };
            self.checkpoint.give(name, &self.settable[name], &Bytes::from(bytes));
        }
        Ok(())
    }

    /// Refuses a value that cannot be set.
    fn check(&self, name: &str, ty: Option<&TensorType>, bytes: InputBytes<'_>) -> Result<(), Error> {
        let Some(expected) = self.settable.get(name) else {
            let instead =
                words::instead(name, self.settable.keys().map(|name| &**name), "inputs and variables");
            return Err(Error::new(Code::Values, format!("the step takes no `{name}`; {instead}")));
        };
        if let Some(ty) = ty.filter(|ty| *ty != expected) {
            return Err(Error::new(Code::Values, format!("`{name}` is {ty}; expected {expected}")));
        }
        if expected.byte_size().map(|size| size.0) != Some(bytes.count()) {
            let count = words::count(bytes.count() as usize, "byte");
            return Err(Error::new(Code::Values, format!("`{name}` has {count}; expected {expected}")));
        }
        Ok(())
    }

    /// Sets the value without a record in the checkpoint.
    fn put(&mut self, name: &str, ty: Option<&TensorType>, bytes: InputBytes<'_>) -> Result<(), Error> {
        self.check(name, ty, bytes)?;
        match bytes {
            InputBytes::Host(bytes) => self.fixed.check(name, bytes)?,
            InputBytes::Gpu(_) => self.fixed.check(name, &[])?,
        }
        match bytes {
            InputBytes::Host(bytes) => self.runner.set(name, bytes)?,
            InputBytes::Gpu(at) => self.runner.set_within(name, at)?,
        };
        self.unset.remove(name);
        Ok(())
    }

    /// The type of the value that [`Session::get`] returns for this name.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind) for an unknown name.
    pub fn type_of(&self, name: &str) -> Result<&TensorType, Error> {
        self.settable.get(name).or_else(|| self.outputs.get(name)).ok_or_else(|| {
            let names = self.settable.keys().chain(self.outputs.keys()).map(|name| &**name);
            let instead = words::instead(name, names, "values");
            Error::new(Code::Values, format!("the step has no `{name}`; {instead}"))
        })
    }

    /// The value of an input, a variable, a constant or an output of the last step.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind) for an unknown name.
    pub fn get(&mut self, name: &str) -> Result<TensorData, Error> {
        let ty = self.type_of(name)?.clone();
        let bytes = self.runner.get(name)?.unwrap_or_default();
        Ok(TensorData { ty, bytes })
    }

    /// Runs one step with these inputs: name, type if it is to be checked, bytes. Returns the outputs, without the
    /// next values of variables.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind) if an input has the wrong name, type or size, or has no value;
    /// [`ErrorKind::Refusal`](crate::ErrorKind) if the device fails. Where an input is refused, nothing has been set.
    pub fn step<'a, T: Into<Option<&'a TensorType>>>(
        &mut self,
        inputs: impl IntoIterator<Item = (&'a str, T, &'a [u8])>,
    ) -> Result<BTreeMap<String, TensorData>, Error> {
        self.advance(inputs)?;
        let names: Vec<String> = self.outputs().map(|(name, _)| name.to_owned()).collect();
        names.into_iter().map(|name| Ok((name.clone(), self.get(&name)?))).collect()
    }

    /// Runs one step with these inputs, without copying outputs.
    ///
    /// # Errors
    /// As [`Session::step`].
    pub fn advance<'a, T: Into<Option<&'a TensorType>>, B: Into<InputBytes<'a>>>(
        &mut self,
        inputs: impl IntoIterator<Item = (&'a str, T, B)>,
    ) -> Result<(), Error> {
        self.is_whole()?;
        let given: Vec<(&str, Option<&TensorType>, InputBytes<'_>)> =
            inputs.into_iter().map(|(name, ty, bytes)| (name, ty.into(), bytes.into())).collect();
        given.iter().try_for_each(|&(name, ty, bytes)| self.check(name, ty, bytes))?;
        self.lacks_nothing(&given.iter().map(|&(name, ..)| name).collect())?;
        let mut counter = self.counter.clone();
        for (name, ty, bytes) in given {
            self.put(name, ty, bytes)?;
            self.checkpoint.forget(name);
            counter = counter.filter(|counter| counter != name);
        }
        if let Some(counter) = counter {
            self.runner.set(&counter, &(self.runner.steps() as i64 + 1).to_le_bytes())?;
        }
        self.is_broken = true;
        match self.runner.step() {
            Ok(()) => {
                self.is_broken = false;
                Ok(())
            }
            Err(RunError::Stopped(why)) => Err(Error::new(Code::Stopped, why)),
            Err(other) => {
                self.is_broken = !matches!(other, RunError::Value { keeps_state: true, .. });
                let (path, planned_for) = (Path::new(&self.name), self.planned_for.as_deref());
                Err(not_ready(&Subject { path, device: self.device, planned_for }, other))
            }
        }
    }

    /// Refuses a step before which a value is neither set nor given.
    fn lacks_nothing(&self, given: &BTreeSet<&str>) -> Result<(), Error> {
        let mut missing = self.unset.iter().filter(|name| !given.contains(&***name));
        let Some(first) = missing.next() else { return Ok(()) };
        let count = words::count(1 + missing.count(), "value");
        let kind = if self.variables.contains_key(first) { "variable" } else { "input" };
        let message = format!("the step lacks {count}, the {kind} `{first}` first");
        Err(Error::new(Code::Values, message).with_help("set it before the step"))
    }

    fn is_whole(&self) -> Result<(), Error> {
        if self.is_broken {
            let message = "a step has failed in the middle, and its state is lost".to_owned();
            Err(Error::new(Code::Failed, message).with_help("open another session, and resume a checkpoint"))
        } else {
            Ok(())
        }
    }

    /// The values of all variables.
    ///
    /// # Errors
    /// [`ErrorKind::Refusal`](crate::ErrorKind) after a failed step.
    pub fn state(&mut self) -> Result<BTreeMap<String, TensorData>, Error> {
        self.is_whole()?;
        let names: Vec<String> = self.variables.keys().cloned().collect();
        names.into_iter().map(|name| Ok((name.clone(), self.get(&name)?))).collect()
    }

    /// Sets variables, and parameters that no step changes, by name.
    ///
    /// # Errors
    /// As [`Session::set`]; nothing is set then.
    pub fn load_state<'a, B: Into<InputBytes<'a>>>(
        &mut self,
        state: impl IntoIterator<Item = (&'a str, Option<&'a TensorType>, B)>,
    ) -> Result<(), Error> {
        let given: Vec<(&str, Option<&TensorType>, InputBytes<'_>)> =
            state.into_iter().map(|(name, ty, bytes)| (name, ty, bytes.into())).collect();
        given.iter().try_for_each(|&(name, ty, bytes)| self.check(name, ty, bytes))?;
        given.into_iter().try_for_each(|(name, ty, bytes)| self.set(name, ty, bytes))
    }

    /// Writes a safetensors file with everything that determines the next step, except the inputs of each step, as
    /// `lmsc run --save` does.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind) if the file cannot be written, or cannot hold a variable's type.
    pub fn save(&mut self, path: impl AsRef<Path>) -> Result<(), Error> {
        self.is_whole()?;
        let path = path.as_ref();
        let variables: BTreeMap<String, Type> =
            self.variables.iter().map(|(name, ty)| (name.clone(), Type::Tensor(ty.clone()))).collect();
        tensors::check_types(path, variables.iter().map(|(name, ty)| (&**name, ty)))?;
        self.checkpoint.says.seed = self.seed;
        self.checkpoint.save(path, 1, &variables, &mut self.runner)
    }

    /// Continues from a file of [`Session::save`] or `lmsc run --save`: variables, seed, number of steps, and small
    /// inputs that were set once. The caller sets the inputs of each step again.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind) if the file belongs to another step, or if a constant of the model is
    /// different.
    pub fn resume(&mut self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        let tensors = Tensors::read(path)?;
        let mut before = checkpoint::says(path, &tensors)?;
        let settable: BTreeMap<String, Type> =
            self.settable.iter().map(|(name, ty)| (name.clone(), Type::Tensor(ty.clone()))).collect();
        fits(path, &tensors, &settable, "variables and inputs", false)?;
        let missing = self.variables.keys().filter(|name| !tensors.contains(name));
        lacks(path, &missing.collect::<Vec<_>>())?;
        // Values in the file replace values that were set.
        before.values.retain(|name, _| !tensors.contains(name));
        self.checkpoint.says.follows_constants(&before, path)?;
        tensors.check()?;
        // The file may change meanwhile, and the device may fail: then the state belongs to no step.
        self.is_broken = true;
        let names: Vec<String> = tensors.types().map(|(name, _)| name.to_owned()).collect();
        for name in names {
            let bytes = tensors.bytes(&name)?;
            self.set(&name, None, &bytes[..])?;
        }
        self.set_seed(before.seed);
        self.runner.session().set_steps(before.steps);
        self.is_broken = false;
        Ok(())
    }
}

//! A step on a device, with its state.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use lmsc::{Device, DeviceBytes, Error, InputBytes};
use lmsc_ir::{ElementType, TensorType};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyByteArray;

use crate::errors::{InputError, raised};
use crate::worker::Worker;

/// A value from Python: its name, the name of its element type, its extents and its bytes.
type Given = (String, String, Vec<u64>, GivenBytes);

/// Bytes from Python: a buffer, or those of a `_dlpack.OnGpu`, which stay where they are until the call returns.
#[derive(FromPyObject)]
enum GivenBytes {
    Host(PyBuffer<u8>),
    Gpu { address: u64, bytes: u64 },
}

/// A value for Python, which may change its bytes.
type Got<'py> = (String, &'static str, Vec<u64>, Bound<'py, PyByteArray>);

/// The type of a value, for Python.
type Described = (String, &'static str, Vec<u64>);

/// A value that has been copied out of Python.
struct Taken {
    name: String,
    ty: TensorType,
    bytes: TakenBytes,
}

enum TakenBytes {
    Host(Vec<u8>),
    Gpu(DeviceBytes),
}

impl TakenBytes {
    fn input(&self) -> InputBytes<'_> {
        match self {
            TakenBytes::Host(bytes) => InputBytes::Host(bytes),
            TakenBytes::Gpu(at) => InputBytes::Gpu(*at),
        }
    }
}

/// Constant facts of a session.
struct Facts {
    inputs: Vec<Described>,
    variables: Vec<Described>,
    outputs: Vec<Described>,
    device: String,
    gpu: Option<u32>,
}

/// A compiled step on a device. It lives in a thread of its own, since a GPU's state belongs to a thread.
#[pyclass(module = "lmsc._lmsc", frozen)]
pub(crate) struct Session {
    worker: Worker<lmsc::Session>,
    facts: Facts,
}

fn described<'a>(types: impl IntoIterator<Item = (&'a str, &'a TensorType)>) -> Vec<Described> {
    let one = |(name, ty): (&str, &TensorType)| (name.to_owned(), ty.element.name(), ty.dims.clone());
    types.into_iter().map(one).collect()
}

fn of_map(types: &BTreeMap<String, TensorType>) -> Vec<Described> {
    described(types.iter().map(|(name, ty)| (name.as_str(), ty)))
}

fn taken(py: Python<'_>, given: Vec<Given>) -> PyResult<Vec<Taken>> {
    let one = |(name, element, dims, bytes): Given| {
        let known = ElementType::ALL.iter().find(|known| known.name() == element);
        let Some(&element) = known else {
            return Err(InputError::new_err(format!("`{name}`: there is no element type `{element}`")));
        };
        let bytes = match bytes {
            GivenBytes::Host(buffer) => TakenBytes::Host(buffer.to_vec(py)?),
            GivenBytes::Gpu { address, bytes } => TakenBytes::Gpu(DeviceBytes { address, bytes }),
        };
        Ok(Taken { name, ty: TensorType::new(element, dims), bytes })
    };
    given.into_iter().map(one).collect()
}

fn got<'py>(py: Python<'py>, name: String, tensor: &lmsc::TensorData) -> Got<'py> {
    (name, tensor.ty.element.name(), tensor.ty.dims.clone(), PyByteArray::new(py, &tensor.bytes))
}

impl Session {
    /// The compiled step on the device.
    pub(crate) fn new(py: Python<'_>, compiled: Arc<lmsc::Compiled>, device: Device) -> PyResult<Session> {
        let told = |session: &mut lmsc::Session| Facts {
            inputs: of_map(session.inputs()),
            variables: of_map(session.variables()),
            outputs: described(session.outputs()),
            device: session.device(),
            gpu: session.gpu(),
        };
        let made = Worker::new(py, move || compiled.session(device), told)?;
        let (worker, facts) = made.map_err(|error| raised(&error))?;
        Ok(Session { worker, facts })
    }

    fn call<R: Send + 'static>(
        &self,
        py: Python<'_>,
        run: impl FnOnce(&mut lmsc::Session) -> Result<R, Error> + Send + 'static,
    ) -> PyResult<R> {
        self.worker.call(py, run)?.map_err(|error| raised(&error))
    }
}

#[pymethods]
impl Session {
    /// Names, element types and extents of the inputs that may be set before each step.
    fn inputs(&self) -> Vec<Described> {
        self.facts.inputs.clone()
    }

    /// The same of the variables that are kept from step to step.
    fn variables(&self) -> Vec<Described> {
        self.facts.variables.clone()
    }

    /// The same of the results.
    fn outputs(&self) -> Vec<Described> {
        self.facts.outputs.clone()
    }

    /// The device that runs it.
    fn device(&self) -> &str {
        &self.facts.device
    }

    /// The number of the GPU that runs it; none on the host.
    fn gpu(&self) -> Option<u32> {
        self.facts.gpu
    }

    /// Runs one step, and returns the outputs of these names.
    fn step<'py>(&self, py: Python<'py>, given: Vec<Given>, fetch: Vec<String>) -> PyResult<Vec<Got<'py>>> {
        let taken = taken(py, given)?;
        let outputs = self.call(py, move |session| {
            fetch.iter().try_for_each(|name| session.type_of(name).map(drop))?;
            session.advance(taken.iter().map(|one| (&*one.name, &one.ty, one.bytes.input())))?;
            let get = |name: String| Ok((name.clone(), session.get(&name)?));
            fetch.into_iter().map(get).collect::<Result<Vec<_>, Error>>()
        })?;
        Ok(outputs.into_iter().map(|(name, tensor)| got(py, name, &tensor)).collect())
    }

    /// Sets values until they are set again.
    fn set(&self, py: Python<'_>, given: Vec<Given>) -> PyResult<()> {
        let taken = taken(py, given)?;
        self.call(py, move |session| {
            session.load_state(taken.iter().map(|one| (&*one.name, Some(&one.ty), one.bytes.input())))
        })
    }

    /// The values of these names.
    fn get<'py>(&self, py: Python<'py>, names: Vec<String>) -> PyResult<Vec<Got<'py>>> {
        let values = self.call(py, move |session| {
            let get = |name: String| Ok((name.clone(), session.get(&name)?));
            names.into_iter().map(get).collect::<Result<Vec<_>, Error>>()
        })?;
        Ok(values.into_iter().map(|(name, tensor)| got(py, name, &tensor)).collect())
    }

    /// How many steps have been run.
    fn steps(&self, py: Python<'_>) -> PyResult<u64> {
        self.call(py, |session| Ok(session.steps()))
    }

    /// Says how many steps have been run.
    fn set_steps(&self, py: Python<'_>, steps: u64) -> PyResult<()> {
        self.call(py, move |session| {
            session.set_steps(steps);
            Ok(())
        })
    }

    /// The seed of random operators.
    fn seed(&self, py: Python<'_>) -> PyResult<u64> {
        self.call(py, |session| Ok(session.seed()))
    }

    /// Sets the seed of random operators.
    fn set_seed(&self, py: Python<'_>, seed: u64) -> PyResult<()> {
        self.call(py, move |session| {
            session.set_seed(seed);
            Ok(())
        })
    }

    /// Writes a checkpoint.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.call(py, move |session| session.save(path))
    }

    /// Goes on from a checkpoint.
    fn resume(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.call(py, move |session| session.resume(path))
    }
}

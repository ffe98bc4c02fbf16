//! `lmsc._lmsc.compile` and its results.

use std::path::PathBuf;
use std::sync::Arc;

use lmsc::budget::Goal;
use lmsc::{Addresses, Compiler, Watch};
use pyo3::prelude::*;

use crate::errors::{InputError, raised};
use crate::session::Session;
use crate::worker::{without_lock, without_lock_but};

/// Where a model is.
#[derive(FromPyObject)]
pub(crate) enum Model {
    /// The bytes of it. Before the path, which bytes could be, too.
    Bytes(Vec<u8>),
    /// The path of it.
    Path(PathBuf),
}

/// The caller's options, by name. The Python side has given every option.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Options {
    optimizer: Option<PathBuf>,
    dims: Vec<(String, u64)>,
    shapes: Vec<(String, Vec<u64>)>,
    values: Vec<(String, String)>,
    state: Vec<(String, String)>,
    no_state: Vec<String>,
    budget: Option<String>,
    host_budget: Option<String>,
    target: Option<String>,
    profile: Option<PathBuf>,
    planner: Option<String>,
    effort: Option<u32>,
    ranges: bool,
    addresses: String,
    plan: Option<PathBuf>,
    form: String,
}

impl Options {
    /// The compiler with these options.
    fn apply(self, mut compiler: Compiler) -> PyResult<Compiler> {
        let budget = |text: &str| text.parse().map_err(InputError::new_err::<String>);
        if let Some(optimizer) = self.optimizer {
            compiler = compiler.optimizer(optimizer);
        }
        for (name, value) in self.dims {
            compiler = compiler.dim(name, value);
        }
        for (input, extents) in self.shapes {
            compiler = compiler.shape(input, extents);
        }
        for (input, value) in self.values {
            compiler = compiler.value(input, value);
        }
        for (input, output) in self.state {
            compiler = compiler.state(input, output);
        }
        for name in self.no_state {
            compiler = compiler.no_state(name);
        }
        if let Some(text) = self.budget {
            compiler = compiler.budget(text.parse::<Goal>().map_err(InputError::new_err::<String>)?);
        }
        if let Some(text) = self.host_budget {
            compiler = compiler.host_budget(budget(&text)?);
        }
        if let Some(target) = self.target {
            compiler = compiler.target(target);
        }
        if let Some(profile) = self.profile {
            compiler = compiler.profile(profile);
        }
        if let Some(planner) = self.planner {
            compiler = compiler.planner(planner);
        }
        if let Some(effort) = self.effort {
            compiler = compiler.effort(effort);
        }
        if let Some(plan) = self.plan {
            compiler = compiler.plan(plan);
        }
        let form = match self.form.as_str() {
            "function" => lmsc::Form::Function,
            "ort" => lmsc::Form::Ort,
            other => {
                return Err(InputError::new_err(format!(
                    "form={other:?}: a form is \"function\" or \"ort\""
                )));
            }
        };
        let addresses = match self.addresses.as_str() {
            "auto" => Addresses::Auto,
            "on" => Addresses::On,
            "off" => Addresses::Off,
            other => {
                return Err(InputError::new_err(format!(
                    "addresses={other:?}: expected \"auto\", \"on\" or \"off\""
                )));
            }
        };
        Ok(compiler.ranges(self.ranges).addresses(addresses).form(form))
    }
}

/// The compiled step. `tell` is called with the part of the search for a plan that is done, each time it has grown.
#[pyfunction]
#[pyo3(signature = (model, options, tell = None))]
pub(crate) fn compile(
    py: Python<'_>,
    model: Model,
    options: Options,
    tell: Option<Bound<'_, PyAny>>,
) -> PyResult<Compiled> {
    let compiler = match model {
        Model::Bytes(bytes) => Compiler::from_bytes(bytes),
        Model::Path(path) => Compiler::new(path),
    };
    let watch = Arc::new(Watch::default());
    let compiler = options.apply(compiler)?.watch(Arc::clone(&watch));
    let mut told = 0.0;
    let look = |_: Python<'_>| {
        let done = watch.progress().done;
        match &tell {
            Some(tell) if done > told => {
                told = done;
                tell.call1((done,)).map(drop)
            }
            _ => Ok(()),
        }
    };
    let compiled = without_lock_but(py, move || compiler.compile(), look);
    // After Ctrl-C nobody waits for the plan: the thread is to end soon.
    watch.end();
    Ok(Compiled { compiled: Arc::new(compiled?.map_err(|error| raised(&error))?) })
}

/// A compiled step.
#[pyclass(module = "lmsc._lmsc", frozen)]
pub(crate) struct Compiled {
    compiled: Arc<lmsc::Compiled>,
}

#[pymethods]
impl Compiled {
    /// The report as JSON.
    fn report(&self) -> String {
        serde_json::to_string(&self.compiled.report).expect("a report is JSON")
    }

    /// The report as text.
    fn text(&self) -> String {
        self.compiled.report.to_text(false)
    }

    /// The plan as JSON, if there is one.
    fn plan(&self) -> Option<String> {
        self.compiled.plan().map(str::to_owned)
    }

    /// Writes the step to a file.
    fn write(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let compiled = Arc::clone(&self.compiled);
        without_lock(py, move || compiled.write(path))?.map_err(|error| raised(&error))
    }

    /// Proves it again.
    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        let compiled = Arc::clone(&self.compiled);
        without_lock(py, move || compiled.verify())?.map_err(|error| raised(&error))
    }

    /// The step on a device.
    fn session(&self, py: Python<'_>, device: &str) -> PyResult<Session> {
        let device =
            device.parse().map_err(|why| InputError::new_err(format!("device={device:?}: {why}")))?;
        Session::new(py, Arc::clone(&self.compiled), device)
    }
}

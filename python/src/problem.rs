//! `lmsc._lmsc.plan_problem`: plans of graphs that PyTorch's compiler gives.

use std::sync::Arc;

use lmsc::{ProblemQuestion, Watch};
use lmsc_ir::Bytes;
use pyo3::prelude::*;

use crate::errors::{InputError, raised};
use crate::worker::without_lock;

/// The question, by name.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Asked {
    budget: String,
    as_it_is: Option<u64>,
    resident: u64,
    device: u64,
    host: u64,
    effort: u32,
}

/// The plan of the problem in the instance, as JSON.
#[pyfunction]
pub(crate) fn plan_problem(py: Python<'_>, instance: String, asked: Asked) -> PyResult<String> {
    let goal = asked.budget.parse().map_err(InputError::new_err::<String>)?;
    let question = ProblemQuestion {
        goal,
        as_it_is: asked.as_it_is.map(Bytes),
        resident: Bytes(asked.resident),
        device: Bytes(asked.device),
        host: Bytes(asked.host),
        effort: asked.effort,
    };
    let watch = Arc::new(Watch::default());
    let watched = Arc::clone(&watch);
    let planned = without_lock(py, move || lmsc::plan_problem(&instance, &question, &watched));
    // After Ctrl-C the search is to end soon.
    watch.end();
    let planned = planned?.map_err(|error| raised(&error))?;
    Ok(serde_json::to_string(&planned).expect("a plan is JSON"))
}

//! Running passes one after the other, with the verifier in between.

use lmsc_ir::{Graph, verify};

use crate::{Outcome, Pass, PassCx, PassError};

/// The planner that the pass `swap` is. All others are planners of `lmsc-plan`, which the pass `plan` asks.
pub const TFLMS: &str = "tflms";

/// The passes of the main job with the planner of this name, in order.
pub fn pipeline(planner: &str) -> &'static [&'static str] {
    // First, so that a shape that is read late does not look like a use of the tensor; then what need not wait, so
    // that it holds no memory, which costs nothing; then what decides, with the live ranges that are left.
    if planner == TFLMS {
        &["hoist-shapes", "reorder", "swap", "place"]
    } else {
        &["hoist-shapes", "reorder", "plan"]
    }
}

/// Called after every pass with its number from 1, itself and the graph.
pub type Observer<'a> = &'a mut dyn FnMut(usize, &dyn Pass, &Graph);

/// A pass that ran and what it did.
#[derive(Debug)]
pub struct Ran {
    /// The pass.
    pub pass: &'static dyn Pass,
    /// What it did.
    pub outcome: Outcome,
}

/// Runs the passes in this order and returns what each did.
///
/// The verifier runs after every pass that changed the graph, in every build; in debug builds, a pass that claims
/// to have changed nothing is checked to have told the truth.
///
/// # Errors
/// What a pass answers, or [`PassError::Broke`] for a pass that broke an invariant.
pub fn run_pipeline(
    graph: &mut Graph,
    passes: &[&'static dyn Pass],
    cx: &PassCx,
    observer: Observer<'_>,
) -> Result<Vec<Ran>, PassError> {
    let mut ran = Vec::with_capacity(passes.len());
    for (index, &pass) in passes.iter().enumerate() {
        let before = cfg!(debug_assertions).then(|| graph.to_text());
        let outcome = pass.run(graph, cx)?;
        if outcome.changed {
            verify(graph)
                .map_err(|violations| PassError::Broke { pass: pass.name().to_owned(), violations })?;
        } else if let Some(before) = before {
            debug_assert_eq!(before, graph.to_text(), "{} says that it changed nothing", pass.name());
        }
        observer(index + 1, pass, graph);
        ran.push(Ran { pass, outcome });
    }
    Ok(ran)
}

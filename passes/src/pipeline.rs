//! Runs passes one after the other, with the verifier after each.

use std::time::{Duration, Instant};

use lmsc_ir::equiv::{self, Difference, Equivalence};
use lmsc_ir::{Graph, Message, verify, words};
use lmsc_plan::planners::call::{CallOptions, Parsed, calls, parsed};

use crate::{Outcome, Pass, PassCx, PassError, PassKind, REGISTRY};

/// Passes in the order in which they run, each with its options.
///
/// ```
/// use lmsc_passes::{Pipeline, pass_named};
///
/// let named = Pipeline::parse("hoist-shapes,expand-training-ops{optimizers=false}")?;
/// let expand = pass_named("expand-training-ops").expect("it is registered");
/// let built = Pipeline::new()
///     .pass(pass_named("hoist-shapes").expect("it is registered"))
///     .pass_with(expand, &[("optimizers", "false")])?;
/// assert!(named.passes().map(|pass| pass.name()).eq(built.passes().map(|pass| pass.name())));
/// # Ok::<(), lmsc_passes::PassError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Pipeline<'p> {
    steps: Vec<Step<'p>>,
}

#[derive(Clone, Debug)]
struct Step<'p> {
    pass: &'p dyn Pass,
    options: CallOptions,
}

/// A pass that ran, and its result.
#[derive(Debug)]
pub struct Ran {
    /// The name of the pass.
    pub pass: &'static str,
    /// The result of the pass.
    pub outcome: Outcome,
    /// The time that the pass took.
    pub took: Duration,
    /// The time that the verifier took after it; zero where the pass changed nothing.
    pub verified_in: Duration,
}

/// Called after every pass with its number from 1, itself and the graph.
pub type Observer<'a> = &'a mut dyn FnMut(usize, &dyn Pass, &Graph);

impl<'p> Pipeline<'p> {
    /// A pipeline without passes.
    pub fn new() -> Pipeline<'p> {
        Pipeline::default()
    }

    /// The pipeline of the main command with a planner of problems.
    pub fn planned() -> Pipeline<'static> {
        Pipeline::before_planning().then(Pipeline::parse("plan").expect("it is registered"))
    }

    /// The passes of the main command before those of any planner.
    pub fn before_planning() -> Pipeline<'static> {
        // `hoist-shapes` first, so that a late shape query does not look like a use of the tensor; then `reorder`,
        // which shortens live ranges and costs nothing; then the planner, with the live ranges that are left.
        Pipeline::parse("hoist-shapes,reorder").expect("they are registered")
    }

    /// The registered passes that the text names, separated by commas, each with its options in braces if it has
    /// any: for example `hoist-shapes,plan` and `expand-training-ops{optimizers=false}`.
    ///
    /// # Errors
    /// [`PassError::Call`] for an unknown pass or option, and for a value that the option does not take.
    pub fn parse(text: &str) -> Result<Pipeline<'static>, PassError> {
        Pipeline::parse_with(text, REGISTRY)
    }

    /// As [`Pipeline::parse`], but looks the names up in `passes` instead of the registry.
    ///
    /// # Errors
    /// As [`Pipeline::parse`].
    pub fn parse_with(text: &str, passes: &[&'p dyn Pass]) -> Result<Pipeline<'p>, PassError> {
        let mut pipeline = Pipeline::new();
        for call in calls(text) {
            let (name, options) = parsed_call(call)?;
            let pass = passes.iter().find(|pass| pass.name() == name).ok_or_else(|| {
                let instead = words::instead(name, passes.iter().map(|pass| pass.name()), "passes");
                PassError::Call(format!("there is no pass `{name}`; {instead}").into())
            })?;
            pipeline = pipeline.pass_with(*pass, &options)?;
        }
        Ok(pipeline)
    }

    /// The pipeline with this pass at its end.
    #[must_use]
    pub fn pass(mut self, pass: &'p dyn Pass) -> Pipeline<'p> {
        self.steps.push(Step { pass, options: CallOptions::default() });
        self
    }

    /// The pipeline with this pass at its end, with these options as pairs of name and value; the other options
    /// have their defaults.
    ///
    /// # Errors
    /// [`PassError::Call`] for an option that the pass does not have, and for a value that the option does not take.
    pub fn pass_with(
        mut self,
        pass: &'p dyn Pass,
        options: &[(&str, &str)],
    ) -> Result<Pipeline<'p>, PassError> {
        let options = CallOptions::of("pass", pass.name(), pass.options(), options)
            .map_err(|fault| PassError::Call(fault.into()))?;
        self.steps.push(Step { pass, options });
        Ok(self)
    }

    /// The pipeline with the passes of the other one at its end.
    #[must_use]
    pub fn then(mut self, other: Pipeline<'p>) -> Pipeline<'p> {
        self.steps.extend(other.steps);
        self
    }

    /// The first `count` passes.
    #[must_use]
    pub fn first(mut self, count: usize) -> Pipeline<'p> {
        self.steps.truncate(count);
        self
    }

    /// The passes, in order.
    pub fn passes(&self) -> impl ExactSizeIterator<Item = &'p dyn Pass> {
        self.steps.iter().map(|step| step.pass)
    }

    /// The options that the calls of the pass of this name set.
    pub fn options_of(&self, pass: &str) -> impl Iterator<Item = &CallOptions> {
        self.steps.iter().filter(move |step| step.pass.name() == pass).map(|step| &step.options)
    }

    /// The broadest kind among the passes.
    pub fn kind(&self) -> PassKind {
        self.passes().map(|pass| pass.kind()).max().unwrap_or(PassKind::Memory)
    }

    /// Proves that the graph computes the same after the passes as before, with the check for the passes' kind.
    /// `None` if one of the passes may change operators or types.
    ///
    /// # Errors
    /// The first difference.
    pub fn prove(&self, before: &Graph, after: &Graph) -> Result<Option<Equivalence>, Difference> {
        match self.kind() {
            PassKind::Memory => equiv::check(before, after).map(Some),
            PassKind::CleanUp => equiv::check_cleaned(before, after).map(Some),
            PassKind::Operators | PassKind::Precision => Ok(None),
        }
    }

    /// Runs the passes on the graph and returns the result of each.
    ///
    /// The verifier runs after every pass that changed the graph, in every build. Debug builds also check that the
    /// graph is the same after a pass that reports no change.
    ///
    /// # Errors
    /// The error of a pass, or [`PassError::Broke`] for a pass that broke an invariant.
    pub fn run(&self, graph: &mut Graph, cx: &PassCx) -> Result<Vec<Ran>, PassError> {
        self.run_observed(graph, cx, &mut |_, _, _| ())
    }

    /// As [`Pipeline::run`], and calls the observer with the graph after each pass.
    ///
    /// # Errors
    /// As [`Pipeline::run`].
    pub fn run_observed(
        &self,
        graph: &mut Graph,
        cx: &PassCx,
        observer: Observer<'_>,
    ) -> Result<Vec<Ran>, PassError> {
        let mut ran = Vec::with_capacity(self.steps.len());
        for (index, Step { pass, options }) in self.steps.iter().enumerate() {
            let before = cfg!(debug_assertions).then(|| graph.to_text());
            let started = Instant::now();
            let cx = PassCx { pass_options: options.clone(), ..cx.clone() };
            let outcome = pass.run(graph, &cx)?;
            let took = started.elapsed();
            let mut verified_in = Duration::ZERO;
            if outcome.changed {
                verify(graph)
                    .map_err(|violations| PassError::Broke { pass: pass.name().to_owned(), violations })?;
                verified_in = started.elapsed() - took;
            } else if let Some(before) = before {
                debug_assert_eq!(before, graph.to_text(), "{} says that it changed nothing", pass.name());
            }
            observer(index + 1, *pass, graph);
            ran.push(Ran { pass: pass.name(), outcome, took, verified_in });
        }
        Ok(ran)
    }
}

/// The name of the pass in `name{option=value,option=value}`, and its options.
fn parsed_call(call: &str) -> Result<Parsed<'_>, PassError> {
    parsed(call).ok_or_else(|| {
        let message = Message::new(format!("`{call}` is not of the form PASS{{OPTION=VALUE,…}}"));
        PassError::Call(message.with_help("`lmsc passes` lists the passes with their options"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_calls_say_what_is_wrong() {
        let wrong = |text: &str| Pipeline::parse(text).unwrap_err().to_string();
        assert!(wrong("plam").starts_with("there is no pass `plam`; did you mean `plan`?"));
        for text in ["plan{", "plan{x}", "plan{}", "plan{x=1"] {
            assert!(wrong(text).starts_with(&format!("`{text}` is not of the form")), "{}", wrong(text));
        }
        assert!(wrong("reorder{x=1}").starts_with("pass reorder has no option `x`; it has none"));
        assert!(wrong("fold-constants{limits=1B}").ends_with("did you mean `limit`?"));
        let expand = |option: &str| wrong(&format!("expand-training-ops{{{option}}}"));
        assert!(
            expand("optimisers=false").ends_with("has no option `optimisers`; did you mean `optimizers`?")
        );
        assert!(expand("optimizers=3").ends_with("option `optimizers` is `3`; it takes true or false"));
        assert!(expand("optimizers=true,optimizers=false").ends_with("option `optimizers` is given twice"));
    }
}

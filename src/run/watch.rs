//! Observes the steps of a run.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::iter::successors;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::ProgressBar;
use lmsc_ir::program::{Launch, PlacedTensor, Program, Role};
use lmsc_ir::{ElementType, Graph, Name, Phases, Storages, Type, ValueId, copied_elements, words};
use lmsc_runtime::{Recent, StepObserver, Turn};

use super::Feed;
use super::RunOptions;
use super::runner::Runner;
use crate::{Code, Error};

/// The values to fetch: by the name under which the program computes a value, the requested names and types.
pub(crate) type Fetches = BTreeMap<Name, Vec<(String, lmsc_ir::TensorType)>>;

/// A tensor and its bytes.
pub(crate) struct Stored {
    pub(crate) ty: lmsc_ir::TensorType,
    pub(crate) bytes: bytes::Bytes,
}

/// The observer of a run: it sets data, keeps losses, looks for values that are not numbers, and fetches values of
/// the last step.
pub(crate) struct Watcher<'a> {
    /// The output for losses, if they are printed.
    out: Option<&'a mut dyn Write>,
    /// Whether a signal asks to stop after this step.
    signal: Arc<AtomicBool>,
    feed: Feed,
    steps_input: Option<String>,
    pub(crate) loss: Option<Name>,
    pub(crate) losses: Recent<f32>,
    checks: bool,
    pub(crate) fetches: Option<Fetches>,
    pub(crate) fetched: BTreeMap<String, Stored>,
    /// The number of steps, and the number of steps that have begun.
    steps: u64,
    begun: u64,
    pub(crate) bar: ProgressBar,
}

impl<'a> Watcher<'a> {
    pub(crate) fn new(
        args: &RunOptions,
        steps: u64,
        graph: &Graph,
        program: &Program,
        (feed, counter): (Feed, Option<String>),
        signal: Arc<AtomicBool>,
        out: Option<&'a mut dyn Write>,
    ) -> Result<Watcher<'a>, Error> {
        let loss = Phases::of(graph, |_| None).loss.map(|loss| graph.value(loss).name.clone());
        let hidden = out.is_none() || !std::io::IsTerminal::is_terminal(&std::io::stderr());
        Ok(Watcher {
            out,
            signal,
            steps_input: counter,
            feed,
            loss,
            losses: Recent::default(),
            checks: args.check_numerics,
            fetches: args.fetch.as_deref().map(|names| fetches(names, graph, program)).transpose()?,
            fetched: BTreeMap::new(),
            steps,
            begun: 0,
            bar: if hidden { ProgressBar::hidden() } else { ProgressBar::new(steps) },
        })
    }

    /// Keeps the loss of the last step.
    ///
    /// # Errors
    /// [`Code::Failed`](crate::Code) if the device fails.
    pub(crate) fn ended(&mut self, session: &mut Runner) -> Result<(), Error> {
        if let Some(loss) = &self.loss {
            let bytes = session.get(loss)?;
            if let Some(loss) = bytes.as_deref().and_then(float) {
                self.losses.push(loss);
            }
        }
        Ok(())
    }

    /// Prints the loss of the last step, with this number.
    pub(crate) fn tell_last(&mut self, number: u64) {
        if let (Some(out), Some(_), Some(loss)) = (&mut self.out, &self.loss, self.losses.last()) {
            // The reader of a pipe may have closed it.
            _ = writeln!(out, "step {number}: loss {loss}");
        }
    }
}

/// The input that counts the steps, if there is one: `step`, of one integer.
pub(crate) fn steps_input(program: &Program) -> Option<String> {
    let is_count = |given: &&lmsc_ir::program::Given| {
        let tensor = given.tensor.ty.as_tensor();
        given.role == Role::Input
            && &*given.tensor.name == "step"
            && tensor.is_some_and(|t| t.element == ElementType::Int64 && t.element_count() == Some(1))
    };
    program.given.iter().find(is_count).map(|given| given.tensor.name.to_string())
}

impl StepObserver for Watcher<'_> {
    fn turn(&mut self, turn: &mut Turn<'_>) -> Result<(), String> {
        if self.signal.load(Ordering::Relaxed) {
            turn.end();
            return Ok(());
        }
        let loss = self.loss.as_ref().and_then(|loss| turn.output(loss)).and_then(|bytes| float(&bytes));
        if let Some(loss) = loss {
            self.losses.push(loss);
            if let Some(out) = &mut self.out {
                // The reader of a pipe may have closed it.
                _ = writeln!(out, "step {}: loss {loss}", turn.number);
            }
        }
        for (name, batches) in &self.feed {
            turn.set(name, &batches[(turn.number % batches.len() as u64) as usize]);
        }
        if let Some(name) = &self.steps_input {
            turn.set(name, &(turn.number as i64 + 1).to_le_bytes());
        }
        self.bar.set_position(self.begun);
        self.begun += 1;
        if let (Some(fetches), true) = (&self.fetches, self.begun == self.steps) {
            // Before the step: it may overwrite them.
            for (computed, names) in fetches {
                let Some(bytes) = turn.given(computed).map(Cow::into_owned).map(bytes::Bytes::from) else {
                    continue;
                };
                for (name, ty) in names {
                    self.fetched.insert(name.clone(), Stored { ty: ty.clone(), bytes: bytes.clone() });
                }
            }
        }
        Ok(())
    }

    fn launched(
        &mut self,
        launch: &Launch,
        bytes: &dyn Fn(&PlacedTensor) -> Result<Vec<u8>, String>,
    ) -> Result<(), String> {
        if self.checks {
            for tensor in launch.results.iter().flatten() {
                if let Some(index) = no_number(&tensor.ty, &bytes(tensor)?) {
                    return Err(format!(
                        "node `{}` ({}): element {index} of `{}` is no number, the first in step {}",
                        launch.node, launch.op, tensor.name, self.begun
                    ));
                }
            }
        }
        if let (Some(fetches), true) = (&self.fetches, self.begun == self.steps) {
            for tensor in launch.results.iter().flatten() {
                for (name, ty) in fetches.get(&tensor.name).into_iter().flatten() {
                    let stored = Stored { ty: ty.clone(), bytes: bytes(tensor)?.into() };
                    self.fetched.insert(name.clone(), stored);
                }
            }
        }
        Ok(())
    }

    fn looks(&self) -> bool {
        self.checks || self.fetches.is_some()
    }
}

/// The index of the first element that is NaN or infinite.
fn no_number(ty: &Type, bytes: &[u8]) -> Option<usize> {
    match ty.as_tensor()?.element {
        ElementType::Float => bytes.as_chunks().0.iter().position(|&b| !f32::from_le_bytes(b).is_finite()),
        ElementType::Double => bytes.as_chunks().0.iter().position(|&b| !f64::from_le_bytes(b).is_finite()),
        ElementType::Bfloat16 => {
            bytes.as_chunks().0.iter().position(|&b| u16::from_le_bytes(b) & 0x7f80 == 0x7f80)
        }
        ElementType::Float16 => {
            bytes.as_chunks().0.iter().position(|&b| u16::from_le_bytes(b) & 0x7c00 == 0x7c00)
        }
        _ => None,
    }
}

fn float(bytes: &[u8]) -> Option<f32> {
    bytes.first_chunk().map(|&bytes| f32::from_le_bytes(bytes))
}

/// The value of which this is a complete copy.
fn copied_from(graph: &Graph, value: ValueId) -> Option<ValueId> {
    let copy = graph.node(graph.producer(value)?);
    (copy.op.is_swap() && copied_elements(copy).is_none()).then(|| copy.operands[0])?
}

/// The names of the values that the step had before it was planned: without copies, joined pieces and repeated results,
/// and with an output in place of the value of which it is a copy.
fn originals(graph: &Graph) -> Vec<Name> {
    let outputs: BTreeSet<ValueId> = graph.outputs.iter().copied().collect();
    let copied: BTreeSet<ValueId> = outputs
        .iter()
        .filter_map(|&output| copied_from(graph, output))
        .filter(|v| !outputs.contains(v))
        .collect();
    let is_made = |value| {
        graph.producer(value).is_some_and(|node| {
            let node = graph.node(node);
            node.op.is_swap() || node.op.is_join() || node.recomputes.is_some()
        })
    };
    let is_original =
        |&value: &ValueId| outputs.contains(&value) || !is_made(value) && !copied.contains(&value);
    let results = graph.order().iter().flat_map(|&node| graph.node(node).defines());
    let initializers = graph.initializers.iter().map(|initializer| initializer.value);
    let all = graph.inputs.iter().copied().chain(initializers).chain(results);
    all.filter(is_original).map(|value| graph.value(value).name.clone()).collect()
}

/// The values to fetch, by the name under which the program computes them. `names` are values, their views or
/// copies, or `all`.
fn fetches(names: &[String], graph: &Graph, program: &Program) -> Result<Fetches, Error> {
    let storages = Storages::of(graph);
    let launches = program.launches().map(|(_, launch)| launch).chain(&program.prelude);
    let results = launches.flat_map(|launch| launch.results.iter().flatten());
    let given = program.given.iter().map(|given| &given.tensor);
    let computed_names: BTreeSet<&Name> = results.chain(given).map(|tensor| &tensor.name).collect();
    let mut found = Fetches::new();
    let mut add = |name: &str| {
        let value = graph.value_named(name)?;
        let ty = graph.value(value).ty.as_tensor()?.clone();
        let root = |value| storages.get(storages.storage(value)).root;
        let computed = successors(Some(value), |&value| copied_from(graph, root(value)))
            .flat_map(|value| [value, root(value)])
            .map(|value| &graph.value(value).name)
            .find(|name| computed_names.contains(name))?;
        found.entry(computed.clone()).or_default().push((name.to_owned(), ty));
        Some(())
    };
    if names.iter().any(|name| name == "all") {
        originals(graph).iter().for_each(|name| _ = add(name));
        return Ok(found);
    }
    let wrong: Vec<String> = names
        .iter()
        .filter(|name| add(name).is_none())
        .map(|name| {
            let instead = words::instead(name, computed_names.iter().map(|name| &***name), "values");
            format!("--fetch {name}: no node computes this value on the device; {instead}")
        })
        .collect();
    if wrong.is_empty() { Ok(found) } else { Err(Error::new(Code::Option, wrong.join("\n"))) }
}

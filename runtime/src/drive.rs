//! Runs a program step after step: one thread for each stream, each with a short loop.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use lmsc_ir::program::{Action, GateEffect, Memory, PlacedTensor, Program, Stream, Wait};
use lmsc_kernels::kernel::StepContext;

use super::device::Device;
use super::meter::Meter;
use super::progress::{Progress, StopOnPanic, Stopped};
use super::turn::{RunError, StepObserver, Turn, Unobserved};
use super::{Event, Measurements};

/// The steps to run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drive {
    /// Maximum number of steps.
    pub(super) steps: u64,
    /// The first of them.
    pub(super) start: StepContext,
    /// Whether an earlier run has left outputs.
    pub(super) has_left: bool,
    /// Whether to record the times of each command.
    pub(super) traces: bool,
}

impl Drive {
    /// The step of this number in this run, from 0.
    fn step(&self, number: u64) -> StepContext {
        StepContext { number: self.start.number + number, ..self.start }
    }
}

/// Runs the steps of the program on the device; returns the measurements.
///
/// # Errors
/// [`RunError::Stopped`], with the message of the watch; [`RunError::Copy`]; [`RunError::Value`]; [`RunError::NoThread`]. No stream runs any more
/// then.
pub(super) fn drive<D: Device + Sync>(
    device: &D,
    program: &Program,
    what: Drive,
    watch: &mut dyn StepObserver,
) -> Result<Measurements, RunError> {
    let (progress, meter, start) = (Progress::new(what.steps), Meter::new(program), Instant::now());
    let lane = |stream: Stream| Lane {
        device,
        program,
        meter: &meter,
        progress: &progress,
        start,
        stream,
        what,
        measured: Measurements::default(),
    };
    let lanes = std::thread::scope(|scope| {
        let mut copying = Vec::new();
        for stream in [Stream::Out, Stream::In].into_iter().filter(|&s| !program.stream(s).is_empty()) {
            let thread = std::thread::Builder::new().name(format!("copy {stream}"));
            match thread.spawn_scoped(scope, move || lane(stream).run(&mut Unobserved)) {
                Ok(thread) => copying.push(thread),
                Err(error) => {
                    progress.stop();
                    return Err(RunError::NoThread { stream, why: error.to_string() });
                }
            }
        }
        let computing = lane(Stream::Compute).run(watch);
        let copying = copying
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        [computing].into_iter().chain(copying).collect::<Result<Vec<Measurements>, RunError>>()
    })?;
    let add = |mut all: Measurements, one: Measurements| {
        all.events.extend(one.events);
        all.busy.iter_mut().zip(one.busy).for_each(|(all, one)| *all += one);
        all
    };
    let measured = lanes.into_iter().reduce(add).unwrap_or_default();
    Ok(Measurements { peak: meter.peak(), ..measured })
}

/// A stream and the thread that runs it.
struct Lane<'a, D> {
    device: &'a D,
    program: &'a Program,
    meter: &'a Meter,
    progress: &'a Progress,
    start: Instant,
    stream: Stream,
    what: Drive,
    measured: Measurements,
}

/// Why a stream ended before the last step.
enum Ended {
    /// There are no more steps, or another stream has failed.
    Elsewhere,
    /// This stream failed.
    Failed(RunError),
}

impl From<Stopped> for Ended {
    fn from(_: Stopped) -> Ended {
        Ended::Elsewhere
    }
}

impl<D: Device + Sync> Lane<'_, D> {
    /// Runs the stream's commands to the end, or stops the others if it fails.
    fn run(mut self, watch: &mut dyn StepObserver) -> Result<Measurements, RunError> {
        let _guard = StopOnPanic(self.progress);
        match self.steps(watch) {
            Ok(()) | Err(Ended::Elsewhere) => Ok(self.measured),
            Err(Ended::Failed(error)) => {
                self.progress.stop();
                Err(error)
            }
        }
    }

    fn steps(&mut self, watch: &mut dyn StepObserver) -> Result<(), Ended> {
        let (program, stream) = (self.program, self.stream);
        let commands = program.stream(stream);
        let mut turned = self.start.elapsed();
        for step in (0..).take_while(|&step| step < self.progress.end()) {
            let parts = self.device.parts(self.what.step(step));
            for (index, command) in (0..).zip(commands) {
                let waited = self.start.elapsed();
                let cause = self.wait(&command.waits, step)?;
                let begun = self.start.elapsed();
                if command.action.is_turn() {
                    if step > 0 {
                        self.measured.step_ended(begun.saturating_sub(turned));
                    }
                    turned = begun;
                }
                let is_over = || self.progress.is_stopped() || step >= self.progress.end();
                if !self.device.arrive(stream, index, &is_over) {
                    return Err(Ended::Elsewhere);
                }
                self.meter.begin(stream, index);
                let live = self.meter.live();
                match parts.as_ref().map_or(GateEffect::Runs, |parts| parts.of(stream, index)) {
                    GateEffect::Runs => self.act(&command.action, index, step, watch)?,
                    GateEffect::Zero => {
                        self.clear(&command.action).map_err(|why| Ended::Failed(RunError::Device(why)))?
                    }
                    GateEffect::Rests => {}
                }
                let ended = self.start.elapsed();
                self.measured.busy[stream as usize] += ended.saturating_sub(begun);
                self.measured.stalled += begun.saturating_sub(waited);
                if self.what.traces {
                    let event = Event { stream, command: index, step, waited, begun, ended, cause, live };
                    self.measured.events.push(event);
                }
                self.meter.end(stream, index, |residency| self.device.leave(residency));
                self.progress.complete(stream, step * commands.len() as u64 + u64::from(index) + 1);
            }
        }
        let last = self.start.elapsed().saturating_sub(turned);
        if stream == Stream::Compute {
            self.measured.step_ended(last);
        }
        Ok(())
    }

    /// Writes zeros in place of the launch's results.
    fn clear(&self, action: &Action) -> Result<(), String> {
        let Action::Launch(launch) = action else { return Ok(()) };
        for result in launch.results.iter().flatten() {
            self.device.poke(Memory::Arena, result, &vec![0; result.bytes() as usize])?;
        }
        Ok(())
    }

    fn act(&self, action: &Action, index: u32, step: u64, watch: &mut dyn StepObserver) -> Result<(), Ended> {
        let StepContext { number, .. } = self.what.step(step);
        match action {
            Action::Turn => self.turn(step, watch)?,
            Action::Launch(launch) => {
                self.device.launch(index, self.what.step(step)).map_err(|why| {
                    let (node, op) = (launch.node.to_string(), launch.op.to_string());
                    let step = number + 1;
                    Ended::Failed(RunError::Value {
                        node,
                        op,
                        step,
                        why,
                        keeps_state: self.program.keeps_variables_before(index),
                    })
                })?;
                let bytes =
                    |tensor: &PlacedTensor| self.device.peek(Memory::Arena, tensor).map(Cow::into_owned);
                watch.launched(launch, &bytes).map_err(|why| Ended::Failed(RunError::Stopped(why)))?;
            }
            Action::Copy(copy) => self.device.copy(self.stream, copy).map_err(|why| {
                let (node, stream) = (copy.node.to_string(), self.stream);
                Ended::Failed(RunError::Copy { node, stream, step: number + 1, why })
            })?,
        }
        Ok(())
    }

    /// Waits for all of these; returns the one that took longest, if one took any time.
    fn wait(&self, waits: &[Wait], step: u64) -> Result<Option<Wait>, Stopped> {
        let mut longest = (Duration::ZERO, None);
        for &wait in waits {
            let Some(of) = step.checked_sub(u64::from(wait.before)) else { continue };
            let since = Instant::now();
            let length = self.program.stream(wait.stream).len() as u64;
            if self.progress.wait(wait.stream, of * length + u64::from(wait.command) + 1, step)? {
                longest = longest.max((since.elapsed(), Some(wait)));
            }
        }
        if self.progress.is_stopped() { Err(Stopped) } else { Ok(longest.1) }
    }

    fn turn(&self, step: u64, watch: &mut dyn StepObserver) -> Result<(), Ended> {
        let number = self.what.start.number + step;
        let turn = Turn::new(self.device, self.program, number, step > 0);
        if turn.taken_by(watch).map_err(Ended::Failed)? {
            self.progress.end_at(step);
            return Err(Ended::Elsewhere);
        }
        if step > 0 || self.what.has_left {
            self.meter.turn(step > 0, |residency| self.device.leave(residency));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

//! Measures the launches of a step as they run: fused, and without an event between them.

use std::time::Duration;

use lmsc_ir::program::{Action, Stream};
use lmsc_runtime::TimedLaunch;

use super::{CudaSession, Event, RunError};

/// Repetitions between two events take this long together, at most a hundred times the cost of one event, so that the events do
/// not count. With half as long, the events show in kernels of a few microseconds; twice as long only takes longer.
const TOGETHER: Duration = Duration::from_micros(500);

/// Maximum number of repetitions of one launch: 100 of the shortest kernels fill the time above.
const MOST_REPETITIONS: u32 = 100;

impl CudaSession {
    /// Duration of each launch of a step, the median over `steps` steps.
    ///
    /// A step is run command by command. When a launch is next, and nothing else runs, it is repeated between two events.
    /// Repetitions read and write the same memory as the launch itself, so an operator that writes in place computes something
    /// else: afterwards the values of variables are meaningless.
    ///
    /// # Errors
    /// [`RunError::Device`], with the driver's message.
    pub(super) fn time(&mut self, steps: u64) -> Result<Vec<TimedLaunch>, RunError> {
        let timed = self.time_steps(steps);
        // Even after an error, nothing goes on running when this returns.
        let ended = self.wait_for_all();
        let timed = timed.map_err(RunError::Device)?;
        ended.map_err(RunError::Device)?;
        self.steps += steps;
        Ok(timed)
    }

    fn wait_for_all(&self) -> Result<(), String> {
        Stream::ALL.iter().try_for_each(|&stream| self.gpu.wait_for(stream))
    }

    fn time_steps(&mut self, steps: u64) -> Result<Vec<TimedLaunch>, String> {
        self.gpu.enter()?;
        self.begin()?;
        self.is_single = false;
        let events = [Event::new(true)?, Event::new(true)?];
        let mut times: Vec<Vec<Duration>> = vec![Vec::new(); self.program.stream(Stream::Compute).len()];
        for step in 0..steps {
            for at in 0..self.order.len() {
                let (stream, index) = self.order[at];
                let is_launch =
                    matches!(self.program.stream(stream)[index as usize].action, Action::Launch(_));
                if is_launch && self.launches_something(index) {
                    times[index as usize].push(self.time_launch(index, &events)?);
                }
                self.issue(stream, index, step, None, false)?;
            }
            self.wait_for_all()?;
        }
        let median = |times: &mut Vec<Duration>| {
            times.sort_unstable();
            times[times.len() / 2]
        };
        let commands = times.iter_mut().enumerate().filter(|(_, times)| !times.is_empty());
        Ok(commands
            .map(|(index, times)| {
                let first = index as u32;
                let others =
                    (first + 1..).take_while(|other| matches!(self.fusion.kernels.get(other), Some(None)));
                let last = match self.fusion.kernels.get(&first) {
                    Some(Some(_)) => others.last().unwrap_or(first),
                    _ => first,
                };
                TimedLaunch { commands: [first, last], time: median(times) }
            })
            .collect())
    }

    /// Whether the command launches anything itself; a command whose launches are fused into another one does not.
    fn launches_something(&self, index: u32) -> bool {
        match self.fusion.kernels.get(&index) {
            Some(ready) => ready.is_some(),
            None => !self.calls.by_command[index as usize].is_empty(),
        }
    }

    /// Time of one launch of the command, repeated. All commands that it waits for have been done, and nothing else runs.
    fn time_launch(&self, index: u32, events: &[Event; 2]) -> Result<Duration, String> {
        self.wait_for_all()?;
        let repeated = |times: u32| {
            self.gpu.record(&events[0], Stream::Compute)?;
            (0..times).try_for_each(|_| self.compute(Stream::Compute, index))?;
            self.gpu.record(&events[1], Stream::Compute)?;
            self.gpu.wait_for(Stream::Compute)?;
            let seconds = events[1].seconds_since(&events[0])?.max(0.0);
            Ok::<_, String>(Duration::from_secs_f64(seconds / f64::from(times)))
        };
        let once = repeated(1)?;
        let fill = TOGETHER.as_nanos() / once.as_nanos().max(1);
        match u32::try_from(fill).unwrap_or(u32::MAX).min(MOST_REPETITIONS) {
            0 | 1 => Ok(once),
            times => repeated(times),
        }
    }
}

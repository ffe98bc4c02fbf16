//! How long the launches of a step take, as they run: fused, and without an event between them.

use std::time::Duration;

use lmsc_ir::program::{Action, Stream};

use super::{Event, RunError, Session};

/// What one launch takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timed {
    /// The first and the last command of what computes whose kernels the launch is; mostly one and the same.
    pub commands: [u32; 2],
    /// How long one launch takes.
    pub time: Duration,
}

/// Repetitions between two events take this long together, so that what the events cost does not count: a hundred times of
/// what one costs at most. Half as long shows in kernels of a few microseconds; twice as long only takes longer.
const TOGETHER: Duration = Duration::from_micros(500);

/// The most repetitions of one launch: 100 of the shortest kernels fill the time above.
const MOST_REPETITIONS: u32 = 100;

impl Session {
    /// How long the launches of a step take, each the median of so many steps: by the last command, those of all commands
    /// that compute.
    ///
    /// A step is run command by command. Where a launch has come to its turn, and nothing else runs, it is repeated between
    /// two events. Repetitions read and write what the launch itself does, so what writes in place computes something else:
    /// afterwards variables are of no use.
    ///
    /// # Errors
    /// [`RunError::Device`], with what the driver says.
    pub fn time(&mut self, steps: u64) -> Result<Vec<Timed>, RunError> {
        let timed = self.time_steps(steps);
        // Whatever has happened, nothing goes on behind the caller's back.
        let ended = self.wait_for_all();
        let timed = timed.map_err(RunError::Device)?;
        ended.map_err(RunError::Device)?;
        self.steps += steps;
        Ok(timed)
    }

    fn wait_for_all(&self) -> Result<(), String> {
        Stream::ALL.iter().try_for_each(|&stream| self.gpu.wait_for(stream))
    }

    fn time_steps(&mut self, steps: u64) -> Result<Vec<Timed>, String> {
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
                let others = (first + 1..).take_while(|other| matches!(self.fused.get(other), Some(None)));
                let last = match self.fused.get(&first) {
                    Some(Some(_)) => others.last().unwrap_or(first),
                    _ => first,
                };
                Timed { commands: [first, last], time: median(times) }
            })
            .collect())
    }

    /// Whether the command launches anything that no other one launches.
    fn launches_something(&self, index: u32) -> bool {
        match self.fused.get(&index) {
            Some(ready) => ready.is_some(),
            None => !self.calls[index as usize].is_empty(),
        }
    }

    /// One launch of the command, repeated. All that it waits for has been done, and nothing else runs.
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

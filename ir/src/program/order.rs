//! Computes the waits of each command from the commands that it must follow.

use super::{Command, Program, Stream, Wait};

/// For each stream, the number of its commands that have completed, both steps together.
pub type Clock = [u32; 3];

/// The waits of the commands of a step, and the commands that have certainly completed when each starts.
#[derive(Debug, Default)]
pub struct Order {
    /// By stream and command.
    pub waits: [Vec<Vec<Wait>>; 3],
    /// For each stream and command, for the second of two steps.
    pub starts: [Vec<Clock>; 3],
}

impl Order {
    /// The order in which each command follows the clock that `after` returns; it is called for two steps in the program's order.
    /// Of the commands that a command must follow, those implied by others are dropped, so that no wait is redundant.
    pub fn new(program: &Program, after: &mut dyn FnMut(Stream, u32, &Command, usize) -> Clock) -> Order {
        let lengths = Stream::ALL.map(|stream| program.stream(stream).len() as u32);
        // For each stream and command, both steps together, the commands that have certainly completed when it has.
        let mut ends: [Vec<Clock>; 3] = lengths.map(|length| Vec::with_capacity(2 * length as usize));
        let mut ordered = Order::default();
        let in_order = program.in_order();
        for step in 0..2 {
            for &(stream, index, command) in &in_order {
                let after = after(stream, index, command, step);
                let before = ends[stream as usize].last().copied().unwrap_or_default();
                let others =
                    Stream::ALL.into_iter().filter(|&other| other != stream && after[other as usize] > 0);
                let end = |other: Stream| ends[other as usize][after[other as usize] as usize - 1];
                let needed: Vec<Stream> = others
                    .clone()
                    .filter(|&other| {
                        let at = other as usize;
                        let implied = |clock: Clock| clock[at] >= after[at];
                        !implied(before) && !others.clone().any(|third| third != other && implied(end(third)))
                    })
                    .collect();
                let mut clock = before;
                for &other in &needed {
                    clock.iter_mut().zip(end(other)).for_each(|(mine, theirs)| *mine = (*mine).max(theirs));
                }
                if step > 0 {
                    let wait = |other: Stream| {
                        let (at, length) = (after[other as usize] - 1, lengths[other as usize]);
                        Wait { stream: other, command: at % length, before: at < length }
                    };
                    ordered.waits[stream as usize].push(needed.iter().map(|&other| wait(other)).collect());
                    ordered.starts[stream as usize].push(clock);
                }
                clock[stream as usize] = step as u32 * lengths[stream as usize] + index + 1;
                ends[stream as usize].push(clock);
            }
        }
        ordered
    }

    /// Sets these waits in the program's commands.
    pub fn apply(self, program: &mut Program) {
        for (commands, waits) in program.streams.iter_mut().zip(self.waits) {
            for (command, waits) in commands.iter_mut().zip(waits) {
                command.waits = waits;
            }
        }
    }
}

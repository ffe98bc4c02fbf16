//! The waits of each command, from the owners of its addresses: a command waits for the writers of the bytes that
//! it reads, and for the users of the bytes that it overwrites.
//!
//! Two steps are simulated in the program's order; the waits of the second hold for every later step.

use std::collections::BTreeMap;
use std::ops::Range;

use lmsc_ir::Bytes;
use lmsc_ir::program::{
    Action, Clock, Command, Memory, Order, PlacedTensor, Program, Role, Spans, Stream, Transfer,
};

/// The last writer of a range of addresses, if there is one, and by stream the last reader since. Commands are
/// numbered per stream from 1.
#[derive(Clone, Default)]
struct Held {
    writer: Option<(Stream, u32)>,
    readers: Clock,
}

/// Adds the waits of all commands to the program.
pub(super) fn add(program: &mut Program) {
    order(program).apply(program);
}

/// Lets values share a slot on the host one after the other, if the swap-out of the later one already waits for the
/// last use of the earlier one.
pub(super) fn share_slots(program: &mut Program) {
    let Order { starts, .. } = order(program);
    // By address on the host, the number of the last command that copies in from it.
    let mut last_in: BTreeMap<u64, u32> = BTreeMap::new();
    for (index, command) in (1..).zip(program.stream(Stream::In)) {
        if let Action::Copy(copy) = &command.action {
            last_in.insert(copy.host, index);
        }
    }
    // Graph inputs and outputs on the host have slots of their own; ranges of them are within these slots.
    let given = program.given.iter().map(|given| (given.memory, given.tensor.span()));
    let outputs = program.outputs.iter().map(|output| (output.memory, output.tensor.span()));
    // By old address of a slot, its new address and its old end.
    let (mut moved, mut end): (BTreeMap<u64, (u64, u64)>, u64) = Default::default();
    for (_, span) in given.chain(outputs).filter(|(memory, _)| *memory == Memory::Slab) {
        let Some(span) = span else { continue };
        moved.entry(span.start).or_insert_with(|| {
            end += aligned(span.end - span.start);
            (end - aligned(span.end - span.start), span.end)
        });
    }
    let to = |moved: &BTreeMap<u64, (u64, u64)>, at: u64| {
        let (&start, &(now, end)) = moved.range(..=at).next_back()?;
        (at < end).then_some(now + at - start)
    };
    // Slots as size, address and the last command of the stream In that reads the slot; `None` if no command reads
    // it, and then the slot is not shared.
    let mut slots: Vec<(u64, u64, Option<u32>)> = Vec::new();
    let first_of_step = program.stream(Stream::In).len() as u32;
    for (index, command) in program.stream(Stream::Out).iter().enumerate() {
        let Action::Copy(copy) = &command.action else { continue };
        if to(&moved, copy.host).is_some() {
            continue;
        }
        let done = starts[Stream::Out as usize][index][Stream::In as usize];
        let bytes = aligned(copy.bytes);
        let is_free = |slot: &&mut (u64, u64, Option<u32>)| {
            slot.0 >= bytes && slot.2.is_some_and(|last| done >= first_of_step + last)
        };
        let best = slots.iter_mut().filter(is_free).min_by_key(|slot| (slot.0, slot.1));
        let last = last_in.get(&copy.host).copied();
        let at = match best {
            Some(slot) => {
                slot.2 = last;
                slot.1
            }
            None => {
                slots.push((bytes, end, last));
                end += bytes;
                end - bytes
            }
        };
        moved.insert(copy.host, (at, copy.host + copy.bytes));
    }
    let to = |at: u64| to(&moved, at).unwrap_or(at);
    for command in program.streams.iter_mut().flatten() {
        if let Action::Copy(copy) = &mut command.action {
            copy.host = to(copy.host);
        }
    }
    let given = program.given.iter_mut().filter(|g| g.memory == Memory::Slab).map(|g| &mut g.tensor);
    let outputs = program.outputs.iter_mut().filter(|o| o.memory == Memory::Slab).map(|o| &mut o.tensor);
    given.chain(outputs).for_each(|tensor: &mut PlacedTensor| tensor.at = tensor.at.map(to));
    program.slab = Bytes(end);
}

/// The size of a slot for this number of bytes.
fn aligned(bytes: u64) -> u64 {
    super::aligned(Bytes(bytes)).0
}

/// The waits of the commands in every step but the first.
fn order(program: &Program) -> Order {
    let mut memories: [Spans<Held>; 2] = Default::default();
    for given in &program.given {
        if let Some(span) = given.tensor.span() {
            memories[given.memory as usize].put(span, Held::default());
        }
    }
    Order::new(program, &mut |stream, index, command, step| {
        let own = step as u32 * program.stream(stream).len() as u32 + index + 1;
        let mut found = Found { memories: &mut memories, stream, own, after: [0; 3] };
        found.command(program, command, step > 0);
        found.after
    })
}

/// Collects the commands for which one command must wait.
struct Found<'a> {
    memories: &'a mut [Spans<Held>; 2],
    stream: Stream,
    /// The number of commands of its stream up to and including it.
    own: u32,
    /// For each stream, the number of commands that must have completed.
    after: Clock,
}

impl Found<'_> {
    fn command(&mut self, program: &Program, command: &Command, not_first: bool) {
        match &command.action {
            Action::Turn => {
                for output in program.outputs.iter().filter(|_| not_first) {
                    self.read(output.memory, output.tensor.span());
                }
                for given in program.given.iter().filter(|given| given.role == Role::Input) {
                    self.write(given.memory, given.tensor.span());
                }
            }
            Action::Launch(launch) => {
                let tensors = launch.operands.iter().flatten();
                tensors.for_each(|tensor| self.read(Memory::Arena, tensor.span()));
                self.write(Memory::Arena, Some(launch.workspace.clone()));
                let tensors = launch.results.iter().flatten();
                tensors.for_each(|tensor| self.write(Memory::Arena, tensor.span()));
            }
            Action::Copy(copy) => {
                let (from, to) = Transfer::direction(self.stream);
                self.read(from, Some(copy.span(from)));
                self.write(to, Some(copy.span(to)));
            }
        }
    }

    fn read(&mut self, memory: Memory, span: Option<Range<u64>>) {
        for (_, held) in self.memories[memory as usize].over(span.unwrap_or_default()) {
            if let Some((stream, count)) = held.writer {
                let after = &mut self.after[stream as usize];
                *after = count.max(*after);
            }
            held.readers[self.stream as usize] = self.own;
        }
    }

    fn write(&mut self, memory: Memory, span: Option<Range<u64>>) {
        let span = span.unwrap_or_default();
        for (_, held) in self.memories[memory as usize].over(span.clone()) {
            let mut users = held.readers;
            if let Some((stream, count)) = held.writer {
                users[stream as usize] = users[stream as usize].max(count);
            }
            self.after.iter_mut().zip(users).for_each(|(after, user)| *after = (*after).max(user));
        }
        let held = Held { writer: Some((self.stream, self.own)), readers: [0; 3] };
        self.memories[memory as usize].put(span, held);
    }
}

//! The lowered step: the commands of three streams, in order, with addresses, and the waits of each.
//!
//! A [`Program`] leaves no decision to run time. It knows no planner, and the code that runs it knows no graph. Its commands run
//! step after step without a pause between them: a wait may name a command of the step before. [`check()`] proves that no timing
//! of the streams makes the program read or overwrite wrong bytes.

mod check;
mod gates;
mod mapping;
mod order;
mod residency;
mod spans;
mod text;

use std::fmt;
use std::ops::Range;

use cranelift_entity::{PrimaryMap, entity_impl};

use crate::{Attr, Bytes, Data, Name, Op, Type};

pub use check::{Checked, ProgramFlaw, check};
pub use gates::{GateEffect, GateEffects, Gates};
pub use mapping::Mapping;
pub use order::{Clock, Order};
pub use residency::{Residency, Until, peak_in_order, residencies};
pub use spans::Spans;

/// Some bytes that a step computes or is given. Copies and views of them are the same content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentId(u32);
entity_impl!(ContentId, "c");

/// Facts about a content.
#[derive(Clone, Debug)]
pub struct Content {
    /// The name of the first value with this content.
    pub name: Name,
    /// Size in bytes.
    pub bytes: Bytes,
}

/// A queue of commands that run one after the other, concurrently with the other streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stream {
    /// The device's processor.
    Compute,
    /// Copies to the host.
    Out,
    /// Copies to the device.
    In,
}

impl Stream {
    /// Every stream, in the order of its number.
    pub const ALL: [Stream; 3] = [Stream::Compute, Stream::Out, Stream::In];
}

impl fmt::Display for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Stream::Compute => "compute",
            Stream::Out => "out",
            Stream::In => "in",
        })
    }
}

/// One of the two memories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Memory {
    /// The device's.
    Arena,
    /// The host's.
    Slab,
}

/// A step, lowered.
#[derive(Clone, Debug)]
pub struct Program {
    /// The graph's name.
    pub name: String,
    /// Size of the device's memory: every address in it is below.
    pub arena: Bytes,
    /// Size of the host's memory.
    pub slab: Bytes,
    /// All contents that are ever at an address.
    pub contents: PrimaryMap<ContentId, Content>,
    /// Launches that run once, before the first step, because their results depend on types alone. These results have no address.
    pub prelude: Vec<Launch>,
    /// The tensors that are in memory when a step starts.
    pub given: Vec<Given>,
    /// The tensors that the caller gets when a step ends.
    pub outputs: Vec<Output>,
    /// The commands of the streams, in the order of [`Stream::ALL`]. The first of the compute stream is [`Action::Turn`].
    pub streams: [Vec<Command>; 3],
}

/// A tensor that is in memory when a step starts.
#[derive(Clone, Debug)]
pub struct Given {
    /// The tensor with its address.
    pub tensor: PlacedTensor,
    /// The memory that holds it.
    pub memory: Memory,
    /// Its bytes before the first step, if the model has them.
    pub data: Option<Data>,
    /// Whether and when it may change.
    pub role: Role,
}

/// A tensor that the caller gets when a step ends.
#[derive(Clone, Debug)]
pub struct Output {
    /// The tensor with its address.
    pub tensor: PlacedTensor,
    /// The memory that holds it.
    pub memory: Memory,
}

/// How a given tensor changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The caller may write it before each step.
    Input,
    /// It never changes.
    Constant,
    /// The step writes it: when the step ends, it holds this content.
    Variable(ContentId),
}

/// An operand, a result, or a given tensor: a content at an address.
#[derive(Clone, Debug)]
pub struct PlacedTensor {
    /// The value's name; empty for a variable's new value that the graph does not name.
    pub name: Name,
    /// Its type.
    pub ty: Type,
    /// Its content.
    pub content: ContentId,
    /// Offset of its first byte in the content.
    pub begin: u64,
    /// Its address; none for a tensor that is computed before the first step.
    pub at: Option<u64>,
}

impl PlacedTensor {
    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.ty.byte_size().unwrap_or_default().0
    }

    /// Its addresses; none if it has no address, or no bytes.
    pub fn span(&self) -> Option<Range<u64>> {
        let bytes = self.bytes();
        self.at.filter(|_| bytes > 0).map(|at| at..at.saturating_add(bytes))
    }
}

/// A command of a stream.
#[derive(Clone, Debug)]
pub struct Command {
    /// The action.
    pub action: Action,
    /// The commands that must have completed before it starts, besides those before it in its stream. None of these waits is
    /// implied by the others.
    pub waits: Vec<Wait>,
    /// Its position in the order in which a single thread may run the commands of all streams.
    pub tick: u32,
}

/// A command of a stream that must have completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wait {
    /// The stream.
    pub stream: Stream,
    /// The command's position in it.
    pub command: u32,
    /// Whether it is the command of the step before. The first step does not wait for it.
    pub before: bool,
}

/// The action of a command.
#[derive(Clone, Debug)]
pub enum Action {
    /// The caller's turn: it reads the outputs of the step before, and writes the inputs of this one.
    Turn,
    /// Runs a kernel.
    Launch(Box<Launch>),
    /// Copies bytes over the link, in the direction of the stream.
    Copy(Transfer),
}

impl Action {
    /// Whether it is the caller's turn.
    pub fn is_turn(&self) -> bool {
        matches!(self, Action::Turn)
    }

    /// The node that the action belongs to; none for the caller's turn.
    pub fn node(&self) -> Option<&Name> {
        match self {
            Action::Turn => None,
            Action::Launch(launch) => Some(&launch.node),
            Action::Copy(copy) => Some(&copy.node),
        }
    }
}

/// A kernel and its arguments.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The node's name.
    pub node: Name,
    /// The operator.
    pub op: Op,
    /// The version of the operator's domain.
    pub opset: i64,
    /// Attributes in the file's order.
    pub attributes: Vec<(Name, Attr)>,
    /// Seed of a random operator, used together with step and run.
    pub seed: u64,
    /// Operands by position; `None` if an optional one is left out.
    pub operands: Vec<Option<PlacedTensor>>,
    /// Results by position, including variables whose new value has no name; `None` if nothing is written.
    pub results: Vec<Option<PlacedTensor>>,
    /// `(operand, result)`: the operand's bytes are the result's, and are overwritten.
    pub in_place: Vec<(usize, usize)>,
    /// Addresses of its workspace.
    pub workspace: Range<u64>,
}

/// A copy over the link.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// The node's name.
    pub node: Name,
    /// The content that is copied.
    pub content: ContentId,
    /// Offset in the content of the first copied byte.
    pub begin: u64,
    /// Number of copied bytes.
    pub bytes: u64,
    /// Their address in the arena.
    pub device: u64,
    /// Their address in the slab.
    pub host: u64,
}

impl Transfer {
    /// Its addresses in the arena, or in the slab.
    pub fn span(&self, memory: Memory) -> Range<u64> {
        let start = match memory {
            Memory::Arena => self.device,
            Memory::Slab => self.host,
        };
        start..start.saturating_add(self.bytes)
    }

    /// The memory that it reads and the one that it writes, in this stream.
    pub fn direction(stream: Stream) -> (Memory, Memory) {
        if stream == Stream::In { (Memory::Slab, Memory::Arena) } else { (Memory::Arena, Memory::Slab) }
    }
}

impl Program {
    /// Whether all variables are where they were when the step began, with the same bytes, before the command at this position of the
    /// compute stream: there are no copies, and nothing before it writes to their addresses.
    pub fn keeps_variables_before(&self, index: u32) -> bool {
        let variables: Vec<Range<u64>> = (self.given.iter())
            .filter(|given| matches!(given.role, Role::Variable(_)))
            .filter_map(|given| given.tensor.span())
            .collect();
        let keeps = |span: &Range<u64>| variables.iter().all(|v| v.end <= span.start || span.end <= v.start);
        let before = self.launches().take_while(|(at, _)| *at < index);
        let mut written = before.flat_map(|(_, launch)| {
            let results = launch.results.iter().flatten().filter_map(PlacedTensor::span);
            results.chain([launch.workspace.clone()].into_iter().filter(|span| !span.is_empty()))
        });
        [Stream::Out, Stream::In].into_iter().all(|stream| self.stream(stream).is_empty())
            && written.all(|span| keeps(&span))
    }

    /// The commands of the stream.
    pub fn stream(&self, stream: Stream) -> &[Command] {
        &self.streams[stream as usize]
    }

    /// Every command, in the order in which a single thread may run them.
    pub fn in_order(&self) -> Vec<(Stream, u32, &Command)> {
        let of = |stream: Stream| {
            (0..).zip(self.stream(stream)).map(move |(index, command)| (stream, index, command))
        };
        let mut all: Vec<_> = Stream::ALL.into_iter().flat_map(of).collect();
        all.sort_by_key(|(stream, index, command)| (command.tick, *stream, *index));
        all
    }

    /// The launches of the compute stream, with their positions in it.
    pub fn launches(&self) -> impl Iterator<Item = (u32, &Launch)> {
        (0..).zip(self.stream(Stream::Compute)).filter_map(|(index, command)| match &command.action {
            Action::Launch(launch) => Some((index, &**launch)),
            _ => None,
        })
    }

    /// Number of bytes that a step copies in the stream.
    pub fn copied(&self, stream: Stream) -> Bytes {
        let bytes = |command: &Command| match &command.action {
            Action::Copy(transfer) => Bytes(transfer.bytes),
            _ => Bytes::ZERO,
        };
        self.stream(stream).iter().map(bytes).sum()
    }

    /// The end of the last used addresses of the arena: the size of memory that a device must have.
    pub fn extent(&self) -> Bytes {
        Bytes(self.spans(Memory::Arena).map(|span| span.end).max().unwrap_or(0))
    }

    /// The ranges of the memory's addresses that tensors and workspaces have, in no order; none is empty.
    pub fn spans(&self, memory: Memory) -> impl Iterator<Item = Range<u64>> + '_ {
        let given = self.given.iter().filter(move |given| given.memory == memory);
        let of_command = move |command: &Command| -> Vec<Range<u64>> {
            match &command.action {
                Action::Launch(launch) if memory == Memory::Arena => {
                    let tensors = launch.operands.iter().chain(&launch.results).flatten();
                    tensors.filter_map(PlacedTensor::span).chain([launch.workspace.clone()]).collect()
                }
                Action::Launch(_) | Action::Turn => Vec::new(),
                Action::Copy(transfer) => vec![transfer.span(memory)],
            }
        };
        let of_commands = self.streams.iter().flatten().flat_map(of_command);
        given.filter_map(|given| given.tensor.span()).chain(of_commands).filter(|span| !span.is_empty())
    }
}

//! What a planner works on: operators in their order, tensors, and the link to the host.
//!
//! A [`Problem`] knows no graph: it comes from one, or from an instance file. Operators are named by their *tick*,
//! the position in the order. Times are nanoseconds and sizes bytes, all integers.

use std::fmt;
use std::ops::Range;

use cranelift_entity::{PrimaryMap, SecondaryMap, entity_impl};
use lmsc_ir::Phase;
use lmsc_ir::program::Part;

/// A tensor of a [`Problem`]: what occupies memory, a storage of the graph.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TensorId(u32);
entity_impl!(TensorId, "t");

/// Operators in execution order, the tensors between them, and the link over which tensors can leave.
#[derive(Clone, Debug)]
pub struct Problem {
    /// In execution order: the index is the tick.
    pub ops: Vec<Op>,
    /// What the operators read and write.
    pub tensors: PrimaryMap<TensorId, Tensor>,
    /// How tensors travel.
    pub link: Link,
    /// Names of the operators' kinds, which [`Op::kind`] indexes.
    pub kinds: Vec<String>,
    /// Ranges that travel begin at multiples of this many bytes.
    pub grain: u64,
}

/// A multiple of the size of any element, and what CUDA aligns to.
const GRAIN: u64 = 256;

impl Default for Problem {
    fn default() -> Problem {
        Problem {
            ops: Vec::new(),
            tensors: PrimaryMap::new(),
            link: Link::default(),
            kinds: Vec::new(),
            grain: GRAIN,
        }
    }
}

/// One operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Op {
    /// Index into [`Problem::kinds`].
    pub kind: u32,
    /// The part of the step that it belongs to.
    pub phase: Phase,
    /// How long it runs.
    pub nanos: u64,
    /// Bytes that it needs besides its tensors while it runs.
    pub workspace: u64,
    /// Tensors that are there before it and that it needs, each once.
    pub reads: Vec<TensorId>,
    /// Tensors that it brings into being.
    pub produces: Vec<TensorId>,
    /// Those of its reads that it changes in place.
    pub changes: Vec<TensorId>,
    /// Whether running it again gives the same results and changes nothing else.
    pub recomputable: bool,
}

/// One tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// How many bytes, at least 1.
    pub bytes: u64,
    /// Whether it may leave the device.
    pub swappable: bool,
    /// Whether it is there before the first operator.
    pub given: bool,
    /// Whether it is there after the last operator. One that is given and kept is a variable: where it is at the
    /// end of a step is where the next step finds it.
    pub kept: bool,
}

impl Tensor {
    /// Whether it is there between steps: a variable, or an input that each step finds in one place.
    pub fn is_variable(&self) -> bool {
        self.given && self.kept
    }

    /// Whether it is a variable that may leave.
    pub fn is_variable_that_leaves(&self) -> bool {
        self.is_variable() && self.swappable
    }
}

/// The link between device and host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// From the device to the host.
    pub out_bytes_per_second: u64,
    /// From the host to the device.
    pub in_bytes_per_second: u64,
    /// What each copy takes beyond its bytes.
    pub latency_nanos: u64,
    /// Whether both directions go at once.
    pub duplex: Duplex,
}

/// Whether copies in the two directions overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplex {
    /// One copy at a time, as in OPT §3.
    Half,
    /// One copy at a time in each direction.
    Full,
}

impl Default for Link {
    fn default() -> Link {
        Link {
            out_bytes_per_second: 1_000_000_000,
            in_bytes_per_second: 1_000_000_000,
            latency_nanos: 0,
            duplex: Duplex::Full,
        }
    }
}

impl Link {
    /// How long a copy of so many bytes to the host takes.
    pub fn out_nanos(&self, bytes: u64) -> u64 {
        self.latency_nanos.saturating_add(copy_nanos(bytes, self.out_bytes_per_second))
    }

    /// The bytes that could be copied to the host in the time that a copy takes beyond its bytes.
    pub(crate) fn latency_bytes(&self) -> u64 {
        let bytes = u128::from(self.latency_nanos) * u128::from(self.out_bytes_per_second) / 1_000_000_000;
        bytes.min(u128::from(MOST)) as u64
    }

    /// How long a copy of so many bytes from the host takes.
    pub fn in_nanos(&self, bytes: u64) -> u64 {
        self.latency_nanos.saturating_add(copy_nanos(bytes, self.in_bytes_per_second))
    }
}

/// Bytes over bytes per second in nanoseconds, rounded up.
fn copy_nanos(bytes: u64, bytes_per_second: u64) -> u64 {
    let nanos = (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(bytes_per_second.max(1)));
    nanos.min(u128::from(MOST)) as u64
}

/// All bytes of a problem together, and all its nanoseconds, are at most this, so that sums fit in 64 signed bits.
pub(crate) const MOST: u64 = 1 << 60;

/// A range of the cycle of ticks during which a tensor is not used: a chance to be away.
///
/// It covers the ticks from `from` up to and excluding `until`, the tick of the next use. Where `from > until` it
/// goes round the end of the step: what is given and kept is then away at the end, and at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Window {
    /// What is away.
    pub tensor: TensorId,
    /// The first tick at which it may be away.
    pub from: u32,
    /// The tick of the next use; the number of ticks where nothing uses it again but the end of the step does.
    pub until: u32,
}

impl Window {
    /// Whether it goes round the end of the step.
    pub fn wraps(&self) -> bool {
        self.from > self.until
    }

    /// Whether the tick is one of those at which the tensor can be away.
    pub fn covers(&self, tick: u32) -> bool {
        if self.wraps() {
            tick >= self.from || tick < self.until
        } else {
            self.from <= tick && tick < self.until
        }
    }

    /// The covered ticks of a step of so many, as at most two ranges that do not wrap.
    pub fn ranges(&self, ticks: u32) -> [Range<u32>; 2] {
        if self.wraps() { [self.from..ticks, 0..self.until] } else { [self.from..self.until, 0..0] }
    }

    /// The covered moments of a step of so many ticks, as at most two ranges: see [`Problem::live_by_moment`].
    pub fn moments(&self, ticks: u32) -> [Range<u32>; 2] {
        match self.wraps() {
            true => [self.from + 1..ticks + 2, 0..self.until + 1],
            false => [self.from + 1..self.until + 1, 0..0],
        }
    }
}

/// The ticks at which each tensor is used, ascending.
#[derive(Clone, Debug)]
pub struct Uses {
    starts: Vec<u32>,
    ticks: Vec<u32>,
}

impl Uses {
    /// The ticks at which an operator reads or produces the tensor, ascending, each once.
    pub fn of(&self, tensor: TensorId) -> &[u32] {
        let index = tensor.as_u32() as usize;
        &self.ticks[self.starts[index] as usize..self.starts[index + 1] as usize]
    }
}

impl Op {
    /// The tensors that it touches: what it reads, then what it produces.
    pub fn touches(&self) -> impl Iterator<Item = TensorId> + '_ {
        self.reads.iter().chain(&self.produces).copied()
    }

    /// What it reads if it runs again: not what it changes, on which its results do not depend.
    pub fn reads_again(&self) -> impl Iterator<Item = TensorId> + '_ {
        self.reads.iter().copied().filter(|tensor| !self.changes.contains(tensor))
    }
}

impl Problem {
    /// Whether there is a variable that may leave.
    pub fn any_variable_leaves(&self) -> bool {
        self.tensors.values().any(Tensor::is_variable_that_leaves)
    }

    /// The number of ticks.
    pub fn ticks(&self) -> u32 {
        self.ops.len() as u32
    }

    /// The time of all operators together: what a step takes where memory is no limit.
    pub fn compute_nanos(&self) -> u64 {
        self.ops.iter().map(|op| op.nanos).sum()
    }

    /// What is left of the problem in a step in which layers of stochastic depth are left out: by tick, what becomes of
    /// the operator. One that rests touches and allocates nothing, one whose results are zero only allocates them; neither
    /// takes time.
    pub fn without(&self, parts: &[Part]) -> Problem {
        let mut problem = self.clone();
        for (op, part) in problem.ops.iter_mut().zip(parts).filter(|(_, part)| **part != Part::Runs) {
            op.reads.clear();
            op.changes.clear();
            (op.nanos, op.workspace) = (0, 0);
            if *part == Part::Rests {
                op.produces.clear();
            }
        }
        problem
    }

    /// When each tensor is used.
    pub fn uses(&self) -> Uses {
        let index = |tensor: TensorId| tensor.as_u32() as usize;
        let mut starts = vec![0u32; self.tensors.len() + 1];
        self.ops.iter().for_each(|op| op.touches().for_each(|tensor| starts[index(tensor) + 1] += 1));
        (0..self.tensors.len()).for_each(|t| starts[t + 1] += starts[t]);
        let mut ticks = vec![0; starts[self.tensors.len()] as usize];
        let mut next = starts.clone();
        for (tick, op) in self.ops.iter().enumerate() {
            op.touches().for_each(|tensor| {
                let place = &mut next[index(tensor)];
                ticks[*place as usize] = tick as u32;
                *place += 1;
            });
        }
        Uses { starts, ticks }
    }

    /// The ticks at which the tensor is live if it never leaves: half-open, from its definition to its last use.
    pub fn live_range(&self, tensor: TensorId, uses: &Uses) -> Range<u32> {
        let facts = &self.tensors[tensor];
        let uses = uses.of(tensor);
        let first = if facts.given { 0 } else { uses.first().copied().unwrap_or(0) };
        let end = if facts.kept { self.ticks() } else { uses.last().map_or(first, |&last| last + 1) };
        first..end
    }

    /// By tick, the bytes that are live while its operator runs if nothing leaves: tensors and workspace.
    pub fn live_bytes(&self) -> Vec<u64> {
        self.live_bytes_of(&self.uses())
    }

    /// [`Problem::live_bytes`] where the uses are at hand.
    pub fn live_bytes_of(&self, uses: &Uses) -> Vec<u64> {
        let mut deltas = vec![0i64; self.ops.len() + 1];
        for (tensor, facts) in &self.tensors {
            let live = self.live_range(tensor, uses);
            deltas[live.start as usize] += facts.bytes as i64;
            deltas[live.end as usize] -= facts.bytes as i64;
        }
        let mut live = 0;
        let sums = self.ops.iter().zip(&deltas).map(|(op, delta)| {
            live += delta;
            live as u64 + op.workspace
        });
        sums.collect()
    }

    /// By moment, the bytes that are live if nothing leaves.
    ///
    /// Moment 0 is before the first operator, with all that is given there; moment `t + 1` is while the operator of
    /// tick `t` runs; the last is after all, with all that is kept there.
    pub fn live_by_moment(&self, uses: &Uses) -> Vec<u64> {
        let sum = |there: fn(&Tensor) -> bool| -> u64 {
            self.tensors.values().filter(|t| there(t)).map(|t| t.bytes).sum()
        };
        let (start, end) = (sum(|t| t.given), sum(|t| t.kept));
        [start].into_iter().chain(self.live_bytes_of(uses)).chain([end]).collect()
    }

    /// By tick, the bytes that its operator cannot do without: what no window covers, and its workspace.
    ///
    /// What must be there before the first operator counts with it, what must be there after the last with that.
    pub fn needed_bytes(&self) -> Vec<u64> {
        let uses = self.uses();
        let mut needed = self.needed_by_moment(&self.live_by_moment(&uses), &self.windows(&uses));
        let (start, end) = (needed.remove(0), needed.pop().unwrap_or_default());
        needed.first_mut().into_iter().for_each(|first| *first = start.max(*first));
        needed.last_mut().into_iter().for_each(|last| *last = end.max(*last));
        needed
    }

    /// The smallest budget of any plan that only swaps, and the first tick that needs it.
    pub fn floor(&self) -> (u32, u64) {
        let uses = self.uses();
        self.floor_of(&self.live_by_moment(&uses), &self.windows(&uses))
    }

    /// [`Problem::floor`] where the live bytes by moment and the windows are at hand.
    pub fn floor_of(&self, live: &[u64], windows: &[Window]) -> (u32, u64) {
        let needed = self.needed_by_moment(live, windows);
        let most = (0..needed.len()).max_by_key(|&m| (needed[m], std::cmp::Reverse(m))).unwrap_or(0);
        let tick = most.saturating_sub(1).min(self.ops.len().saturating_sub(1));
        (tick as u32, needed[most])
    }

    /// By moment, the bytes that no window covers.
    pub(crate) fn needed_by_moment(&self, live: &[u64], windows: &[Window]) -> Vec<u64> {
        let mut needed = live.to_vec();
        let mut covered = vec![0i64; needed.len() + 1];
        for window in windows {
            let bytes = self.tensors[window.tensor].bytes as i64;
            for range in window.moments(self.ticks()) {
                covered[range.start as usize] += bytes;
                covered[range.end as usize] -= bytes;
            }
        }
        let mut now = 0;
        for (needed, covered) in needed.iter_mut().zip(covered) {
            now += covered;
            *needed -= now as u64;
        }
        needed
    }

    /// Every window of every tensor that may leave, by tensor, then by tick.
    ///
    /// A tensor that is given and not kept (the network's input) can be away before its first use; one that is
    /// kept and not given (a result) after its last; a variable around the end of the step. What nothing uses stays
    /// where it is.
    pub fn windows(&self, uses: &Uses) -> Vec<Window> {
        let mut windows = Vec::with_capacity(self.tensors.len());
        for (tensor, _) in self.tensors.iter().filter(|(_, facts)| facts.swappable) {
            self.add_windows_of(tensor, uses, &mut windows);
        }
        windows
    }

    /// Adds the windows that the tensor would have if it may leave, by tick.
    pub(crate) fn add_windows_of(&self, tensor: TensorId, uses: &Uses, windows: &mut Vec<Window>) {
        let facts = &self.tensors[tensor];
        let ticks = self.ticks();
        let uses = uses.of(tensor);
        let (Some(&first), Some(&last)) = (uses.first(), uses.last()) else { return };
        let mut add = |from: u32, until: u32| {
            if from != until {
                windows.push(Window { tensor, from, until });
            }
        };
        if facts.given && !facts.kept {
            add(0, first);
        }
        uses.windows(2).for_each(|pair| add(pair[0] + 1, pair[1]));
        match (facts.given, facts.kept) {
            (true, true) if last + 1 < ticks || first > 0 => add(last + 1, first),
            (false, true) => add(last + 1, ticks),
            _ => {}
        }
    }

    /// Nothing, if the problem makes sense; otherwise the first thing that does not.
    ///
    /// # Errors
    /// [`ProblemError`] names the operator or the tensor.
    pub fn check(&self) -> Result<(), ProblemError> {
        let mut there: SecondaryMap<TensorId, bool> = SecondaryMap::with_capacity(self.tensors.len());
        let mut read_by: SecondaryMap<TensorId, usize> = SecondaryMap::with_default(usize::MAX);
        let (mut bytes, mut nanos) = (0u64, 0u64);
        for (id, tensor) in &self.tensors {
            there[id] = tensor.given;
            bytes = bytes.saturating_add(tensor.bytes);
            if tensor.bytes == 0 {
                return Err(ProblemError::Empty(id));
            }
        }
        for (tick, op) in self.ops.iter().enumerate() {
            bytes = bytes.saturating_add(op.workspace);
            nanos = nanos.saturating_add(op.nanos);
            for &tensor in op.reads.iter().chain(&op.produces).chain(&op.changes) {
                if !self.tensors.is_valid(tensor) {
                    return Err(ProblemError::NoTensor { tick, tensor });
                }
            }
            for &tensor in &op.reads {
                if !there[tensor] {
                    return Err(ProblemError::Undefined { tick, tensor });
                }
                if std::mem::replace(&mut read_by[tensor], tick) == tick {
                    return Err(ProblemError::Twice { tick, tensor });
                }
            }
            if let Some(&tensor) = op.changes.iter().find(|&&t| read_by[t] != tick) {
                return Err(ProblemError::Unread { tick, tensor });
            }
            for &tensor in &op.produces {
                if std::mem::replace(&mut there[tensor], true) {
                    return Err(ProblemError::Redefined { tick, tensor });
                }
            }
        }
        let link = [self.link.out_nanos(bytes), self.link.in_nanos(bytes)];
        if let Some((tensor, _)) = self.tensors.iter().find(|(id, tensor)| tensor.kept && !there[*id]) {
            return Err(ProblemError::NeverThere(tensor));
        }
        if bytes > MOST || nanos > MOST || link.iter().any(|&n| n >= MOST) {
            return Err(ProblemError::TooLarge);
        }
        Ok(())
    }
}

/// Why a problem makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum ProblemError {
    #[error("tensor {0} has 0 bytes; leave such tensors out")]
    Empty(TensorId),
    #[error("operator {tick} names tensor {tensor}, which there is not")]
    NoTensor { tick: usize, tensor: TensorId },
    #[error("operator {tick} reads tensor {tensor} before any operator produces it")]
    Undefined { tick: usize, tensor: TensorId },
    #[error("operator {tick} reads tensor {tensor} twice; name it once")]
    Twice { tick: usize, tensor: TensorId },
    #[error("operator {tick} produces tensor {tensor}, which is there already")]
    Redefined { tick: usize, tensor: TensorId },
    #[error("operator {tick} changes tensor {tensor} without reading it")]
    Unread { tick: usize, tensor: TensorId },
    #[error("tensor {0} is to be kept, but it is not given and no operator produces it")]
    NeverThere(TensorId),
    #[error("all bytes, or all times, together exceed 2^60")]
    TooLarge,
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}..{}", self.tensor, self.from, self.until)
    }
}

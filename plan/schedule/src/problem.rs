//! The input of a planner: operators in their order, tensors, and the link to the host.
//!
//! A [`Problem`] is independent of graphs: it is derived from one, or read from an instance file. Operators are named by
//! their *tick*, the position in the order. Times are in nanoseconds and sizes in bytes, all integers.

use std::fmt;
use std::ops::Range;

use cranelift_entity::{PrimaryMap, SecondaryMap, entity_impl};
use lmsc_ir::Phase;
use lmsc_ir::program::GateEffect;
use serde::{Deserialize, Serialize};

/// A tensor of a [`Problem`]: the unit that occupies memory; a storage of the graph.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TensorId(u32);
entity_impl!(TensorId, "t");

/// Operators in execution order, the tensors between them, and the link over which tensors can be swapped.
#[derive(Clone, Debug)]
pub struct Problem {
    /// In execution order: the index is the tick.
    pub ops: Vec<Operator>,
    /// The tensors that the operators read and write.
    pub tensors: PrimaryMap<TensorId, Tensor>,
    /// The link between device and host.
    pub link: Link,
    /// Names of the operator kinds, indexed by [`Operator::kind`].
    pub kinds: Vec<String>,
    /// Ranges that are copied begin at multiples of this number of bytes.
    pub grain: u64,
    /// The lanes of operators, indexed by [`Operator::lane`]; the first is [`COMPUTE`]. Lanes run beside each other
    /// and beside the copies, each its operators in their order. An operator waits for operators of other lanes only where
    /// it needs their results, or replaces bytes that they read.
    pub lanes: Vec<Lane>,
}

/// A lane of operators: an engine of the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// Its name.
    pub name: String,
    /// Whether those of its operators may run again of which [`Operator::recomputable`] says so.
    pub repeats: bool,
}

impl Lane {
    /// The lane of this name, whose operators may run again.
    pub fn new(name: &str) -> Lane {
        Lane { name: name.to_owned(), repeats: true }
    }
}

/// The lane of operators that compute, which every problem has.
pub const COMPUTE: u8 = 0;

/// Maximum number of lanes of operators.
pub const MOST_LANES: usize = 4;

/// A multiple of the size of any element, and the alignment of CUDA.
const GRAIN: u64 = 256;

impl Default for Problem {
    fn default() -> Problem {
        Problem {
            ops: Vec::new(),
            tensors: PrimaryMap::new(),
            link: Link::default(),
            kinds: Vec::new(),
            grain: GRAIN,
            lanes: vec![Lane::new("compute")],
        }
    }
}

/// One operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operator {
    /// Index into [`Problem::kinds`].
    pub kind: u32,
    /// The phase of the step that it belongs to.
    pub phase: Phase,
    /// Duration in nanoseconds.
    pub nanos: u64,
    /// Bytes that it needs beside its tensors while it runs.
    pub workspace: u64,
    /// Tensors that exist before it runs and that it needs, each once.
    pub reads: Vec<TensorId>,
    /// Tensors that it creates.
    pub produces: Vec<TensorId>,
    /// The tensors among its reads that it changes in place.
    pub changes: Vec<TensorId>,
    /// Whether running it again gives the same results and changes nothing else.
    pub recomputable: bool,
    /// The lane on which it runs: an index into [`Problem::lanes`].
    pub lane: u8,
}

/// One tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Size in bytes, at least 1.
    pub bytes: u64,
    /// Whether it may be swapped out.
    pub swappable: bool,
    /// Whether it exists before the first operator.
    pub given: bool,
    /// Whether it must exist when the step ends. A tensor that is given and kept is a variable: the next step finds it where
    /// this step leaves it.
    pub kept: bool,
}

impl Tensor {
    /// Whether it persists between steps: a variable, or an input that each step finds in the same place.
    pub fn is_variable(&self) -> bool {
        self.given && self.kept
    }

    /// Whether it is a variable that may be swapped out.
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
    /// Time of each copy beyond the transfer of its bytes.
    pub latency_nanos: u64,
    /// Whether copies in both directions can run at once.
    pub duplex: Duplex,
}

/// Whether copies in the two directions overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
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
    /// Duration of a copy of `bytes` bytes to the host.
    pub fn out_nanos(&self, bytes: u64) -> u64 {
        self.latency_nanos.saturating_add(copy_nanos(bytes, self.out_bytes_per_second))
    }

    /// The bytes that could be copied to the host during the latency of a copy.
    pub fn latency_bytes(&self) -> u64 {
        let bytes = u128::from(self.latency_nanos) * u128::from(self.out_bytes_per_second) / 1_000_000_000;
        bytes.min(u128::from(MOST)) as u64
    }

    /// Duration of a copy of `bytes` bytes from the host.
    pub fn in_nanos(&self, bytes: u64) -> u64 {
        self.latency_nanos.saturating_add(copy_nanos(bytes, self.in_bytes_per_second))
    }
}

/// Bytes over bytes per second in nanoseconds, rounded up.
fn copy_nanos(bytes: u64, bytes_per_second: u64) -> u64 {
    let nanos = (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(bytes_per_second.max(1)));
    nanos.min(u128::from(MOST)) as u64
}

/// Upper limit of the total bytes and of the total nanoseconds of a problem, so that sums fit in 64 signed bits.
pub const MOST: u64 = 1 << 60;

/// A range of the cycle of ticks during which a tensor is not used and can be swapped out.
///
/// It contains the ticks from `from` up to and excluding `until`, the tick of the next use. If `from > until`, the window
/// wraps around the end of the step: a tensor that is given and kept is then swapped out at the end and at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Window {
    /// The tensor.
    pub tensor: TensorId,
    /// The first tick at which the tensor may be swapped out.
    pub from: u32,
    /// The tick of the next use; the number of ticks if no operator uses it again but it must exist when the step ends.
    pub until: u32,
}

impl Window {
    /// Whether the window wraps around the end of the step.
    pub fn wraps(&self) -> bool {
        self.from > self.until
    }

    /// Whether the tensor can be swapped out at the tick.
    pub fn covers(&self, tick: u32) -> bool {
        if self.wraps() {
            tick >= self.from || tick < self.until
        } else {
            self.from <= tick && tick < self.until
        }
    }

    /// The ticks of the window in a step of `ticks` ticks, as at most two ranges that do not wrap.
    pub fn ranges(&self, ticks: u32) -> [Range<u32>; 2] {
        if self.wraps() { [self.from..ticks, 0..self.until] } else { [self.from..self.until, 0..0] }
    }

    /// The moments of the window in a step of `ticks` ticks, as at most two ranges: see [`Problem::live_by_moment`].
    pub fn moments(&self, ticks: u32) -> [Range<u32>; 2] {
        if self.wraps() {
            [self.from + 1..ticks + 2, 0..self.until + 1]
        } else {
            [self.from + 1..self.until + 1, 0..0]
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

impl Operator {
    /// The tensors that it reads, then those that it produces.
    pub fn touches(&self) -> impl Iterator<Item = TensorId> + '_ {
        self.reads.iter().chain(&self.produces).copied()
    }

    /// The tensors that it reads if it runs again: without those that it changes, on which its results do not depend.
    pub fn reads_again(&self) -> impl Iterator<Item = TensorId> + '_ {
        self.reads.iter().copied().filter(|tensor| !self.changes.contains(tensor))
    }
}

impl Problem {
    /// Whether a variable may be swapped out.
    pub fn any_variable_leaves(&self) -> bool {
        self.tensors.values().any(Tensor::is_variable_that_leaves)
    }

    /// For each tick, the time that the operator takes of those that compute.
    pub fn computing_nanos(&self) -> Vec<u64> {
        self.ops.iter().map(|op| if op.lane == COMPUTE { op.nanos } else { 0 }).collect()
    }

    /// Whether the operator may run again: by itself, and on its lane.
    pub fn may_repeat(&self, op: &Operator) -> bool {
        op.recomputable && self.lanes[usize::from(op.lane)].repeats
    }

    /// The number of ticks.
    pub fn ticks(&self) -> u32 {
        self.ops.len() as u32
    }

    /// The total time of the operators that compute: without other lanes, the duration of a step without a memory limit.
    pub fn compute_nanos(&self) -> u64 {
        self.ops.iter().filter(|op| op.lane == COMPUTE).map(|op| op.nanos).sum()
    }

    /// The problem of a step that skips layers of stochastic depth; `parts` gives, by tick, the state of each operator. An
    /// operator that rests touches and allocates nothing; one whose results are zero only allocates them; neither takes time.
    pub fn without(&self, parts: &[GateEffect]) -> Problem {
        let mut problem = self.clone();
        for (op, part) in problem.ops.iter_mut().zip(parts).filter(|(_, part)| **part != GateEffect::Runs) {
            op.reads.clear();
            op.changes.clear();
            (op.nanos, op.workspace) = (0, 0);
            if *part == GateEffect::Rests {
                op.produces.clear();
            }
        }
        problem
    }

    /// The ticks at which each tensor is used.
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

    /// The ticks at which the tensor is live if it is never swapped out: half-open, from its definition to its last use.
    pub fn live_range(&self, tensor: TensorId, uses: &Uses) -> Range<u32> {
        let facts = &self.tensors[tensor];
        let uses = uses.of(tensor);
        let first = if facts.given { 0 } else { uses.first().copied().unwrap_or(0) };
        let end = if facts.kept { self.ticks() } else { uses.last().map_or(first, |&last| last + 1) };
        first..end
    }

    /// For each tick, the bytes that are live while its operator runs if nothing is swapped out: tensors and workspace.
    pub fn live_bytes(&self) -> Vec<u64> {
        self.live_bytes_of(&self.uses())
    }

    /// [`Problem::live_bytes`] for known uses.
    pub(crate) fn live_bytes_of(&self, uses: &Uses) -> Vec<u64> {
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

    /// For each moment, the bytes that are live if nothing is swapped out.
    ///
    /// Moment 0 is before the first operator, with all given tensors; moment `t + 1` is while the operator of tick `t` runs;
    /// the last moment is after all operators, with all kept tensors.
    pub fn live_by_moment(&self, uses: &Uses) -> Vec<u64> {
        let sum = |there: fn(&Tensor) -> bool| -> u64 {
            self.tensors.values().filter(|t| there(t)).map(|t| t.bytes).sum()
        };
        let (start, end) = (sum(|t| t.given), sum(|t| t.kept));
        [start].into_iter().chain(self.live_bytes_of(uses)).chain([end]).collect()
    }

    /// For each tick, the bytes that its operator cannot do without: the bytes outside all windows, and its workspace.
    ///
    /// The bytes needed before the first operator count at the first tick, those needed after the last one at the last tick.
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

    /// [`Problem::floor`] for known live bytes by moment and windows.
    pub fn floor_of(&self, live: &[u64], windows: &[Window]) -> (u32, u64) {
        let needed = self.needed_by_moment(live, windows);
        let most = (0..needed.len()).max_by_key(|&m| (needed[m], std::cmp::Reverse(m))).unwrap_or(0);
        let tick = most.saturating_sub(1).min(self.ops.len().saturating_sub(1));
        (tick as u32, needed[most])
    }

    /// For each moment, the live bytes outside all windows.
    pub fn needed_by_moment(&self, live: &[u64], windows: &[Window]) -> Vec<u64> {
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

    /// Every window of every swappable tensor, by tensor, then by tick.
    ///
    /// A tensor that is given and not kept (the network's input) can be swapped out before its first use; one that is kept
    /// and not given (a result) after its last; a variable around the end of the step. A tensor without uses has no window.
    pub fn windows(&self, uses: &Uses) -> Vec<Window> {
        let mut windows = Vec::with_capacity(self.tensors.len());
        for (tensor, _) in self.tensors.iter().filter(|(_, facts)| facts.swappable) {
            self.add_windows_of(tensor, uses, &mut windows);
        }
        windows
    }

    /// Adds the windows that the tensor would have if it were swappable, by tick.
    pub fn add_windows_of(&self, tensor: TensorId, uses: &Uses, windows: &mut Vec<Window>) {
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

    /// Returns the first inconsistency of the problem.
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
        if self.lanes.is_empty() || self.lanes.len() > MOST_LANES {
            return Err(ProblemError::Lanes(self.lanes.len()));
        }
        for (tick, op) in self.ops.iter().enumerate() {
            if usize::from(op.lane) >= self.lanes.len() {
                return Err(ProblemError::NoLane { tick, lane: op.lane });
            }
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
        self.check_reductions()
    }
}

/// An inconsistency of a problem.
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
    #[error("there are {0} lanes; write 1 to 4, the first for the operators that compute")]
    Lanes(usize),
    #[error("operator {tick} runs on lane {lane}, which there is not")]
    NoLane { tick: usize, lane: u8 },
    #[error(
        "tensor {tensor} is the operand of the reduction of operator {tick} and could leave before its wait; let it be not \
         swappable"
    )]
    Leaves { tick: usize, tensor: TensorId },
    #[error(
        "operator {wait} waits for the reduction of operator {tick} without reading its operand {tensor}, which the reduction \
         holds until then"
    )]
    NotHeld { tick: usize, wait: usize, tensor: TensorId },
    #[error("all bytes, or all times, together exceed 2^60")]
    TooLarge,
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}..{}", self.tensor, self.from, self.until)
    }
}

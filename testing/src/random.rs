//! Random planning problems, and random absences from them.

use lmsc_ir::Phase;
use lmsc_ir::rng::Source;

use lmsc_schedule::problem::{COMPUTE, Duplex, Lane, Link, Operator, Problem, Tensor, TensorId, Window};
use lmsc_schedule::{Absences, Piece, PieceId};

/// A random problem of `ops` operators that [`Problem::check`] accepts.
///
/// Given, kept and unused tensors, variables changed in place, tensors of a byte and of most of the memory, operators of no
/// duration, workspace, latency and both kinds of link occur. The later half reads the results of the mirrored operator of
/// the earlier half, as a backward pass does.
pub fn problem(u: &mut impl Source, ops: usize) -> Problem {
    let mut b = Builder::new(u);
    for _ in 0..b.u.below(4) {
        let kept = b.u.chance(60);
        b.tensor(true, kept);
    }
    for tick in 0..ops {
        b.op(tick, ops);
    }
    debug_assert_eq!(b.problem.check(), Ok(()));
    b.problem
}

/// A random problem of `ops` operators on up to three lanes that [`Problem::check`] accepts.
///
/// Those outside the first lane that may not run again are reductions: their operands stay, and their waits read them.
pub fn problem_with_lanes(u: &mut impl Source, ops: usize) -> Problem {
    let mut problem = problem(u, ops);
    problem.lanes.extend(["comm", "other"].map(Lane::new).into_iter().take(1 + u.below(2)));
    for op in &mut problem.ops {
        if u.chance(40) {
            op.lane = (1 + u.below(problem.lanes.len() - 1)) as u8;
        }
    }
    for op in problem.ops.iter().filter(|op| op.is_reduction()) {
        op.reads.iter().for_each(|&tensor| problem.tensors[tensor].swappable = false);
    }
    // A wait that reads one more operand may be the wait of another reduction then.
    loop {
        let mut is_held = true;
        for (reduction, wait) in problem.reductions() {
            let Some(wait) = wait else { continue };
            for tensor in problem.ops[reduction as usize].reads.clone() {
                let wait = &mut problem.ops[wait as usize];
                if !wait.reads.contains(&tensor) {
                    wait.reads.push(tensor);
                    is_held = false;
                    if wait.is_reduction() {
                        problem.tensors[tensor].swappable = false;
                    }
                }
            }
        }
        if is_held {
            break;
        }
    }
    debug_assert_eq!(problem.check(), Ok(()));
    problem
}

/// Random absences of pieces of at most `piece` bytes with which every moment fits the budget, and without any of which one does
/// not. The budget is at least the problem's floor.
pub fn absences(u: &mut impl Source, problem: &Problem, budget: u64, piece: u64) -> Absences {
    let mut absences = Absences::default();
    let mut left: Vec<(PieceId, Window)> = Vec::new();
    for window in problem.windows(&problem.uses()) {
        let bytes = problem.tensors[window.tensor].bytes;
        // A variable is in one place between steps.
        let piece = if problem.tensors[window.tensor].is_variable() { u64::MAX } else { piece };
        let size = piece.clamp(bytes.div_ceil(50), bytes.max(1)).next_multiple_of(problem.grain);
        let mut pieces = absences.pieces.iter().filter(|(_, piece)| piece.tensor == window.tensor).peekable();
        if pieces.peek().is_some() {
            left.extend(pieces.map(|(piece, _)| (piece, window)));
            continue;
        }
        for start in (0..bytes).step_by(usize::try_from(size).unwrap_or(usize::MAX)) {
            let bytes = start..start.saturating_add(size).min(bytes);
            left.push((absences.pieces.push(Piece { tensor: window.tensor, bytes }), window));
        }
    }
    let mut live: Vec<i128> = problem.live_by_moment(&problem.uses()).into_iter().map(i128::from).collect();
    let ranges = |window: &Window| {
        window.moments(problem.ticks()).into_iter().map(|r| r.start as usize..r.end as usize)
    };
    let mut taken = Vec::new();
    while live.iter().any(|&live| live > i128::from(budget)) && !left.is_empty() {
        let (piece, window) = left.swap_remove(u.below(left.len()));
        let bytes = i128::from(absences.pieces[piece].len());
        ranges(&window).for_each(|range| live[range].iter_mut().for_each(|live| *live -= bytes));
        taken.push((piece, window));
    }
    for (piece, window) in taken {
        let bytes = i128::from(absences.pieces[piece].len());
        let fits = |live: &[i128]| live.iter().all(|live| live + bytes <= i128::from(budget));
        if ranges(&window).all(|range| fits(&live[range])) {
            ranges(&window).for_each(|range| live[range].iter_mut().for_each(|live| *live += bytes));
        } else {
            absences.windows[piece].push(window);
        }
    }
    absences.windows.values_mut().for_each(|windows| windows.sort_by_key(|window| window.until));
    absences
}

struct Builder<'u, S> {
    u: &'u mut S,
    problem: Problem,
    /// The unit of sizes, in bytes.
    unit: u64,
    /// For each tick, the tensors that the operator has produced.
    produced: Vec<Vec<TensorId>>,
}

impl<'u, S: Source> Builder<'u, S> {
    fn new(u: &'u mut S) -> Builder<'u, S> {
        let unit = [1, 1 << 10, 1 << 20, 1 << 30][u.below(4)];
        // Nanoseconds per unit; operators take up to about a thousand.
        let mut bytes_per_second = || (unit * 1_000_000_000 / [300, 100, 30, 1000][u.below(4)]).max(1);
        let out_bytes_per_second = bytes_per_second();
        let in_bytes_per_second = bytes_per_second();
        let link = Link {
            out_bytes_per_second,
            in_bytes_per_second: if u.chance(60) { out_bytes_per_second } else { in_bytes_per_second },
            latency_nanos: if u.chance(25) { u.below(500) as u64 } else { 0 },
            duplex: if u.chance(50) { Duplex::Half } else { Duplex::Full },
        };
        let kinds = ["F", "B"].map(str::to_owned).to_vec();
        let problem = Problem { link, kinds, ..Problem::default() };
        Builder { u, problem, unit, produced: Vec::new() }
    }

    fn tensor(&mut self, given: bool, kept: bool) -> TensorId {
        let units = match self.u.below(10) {
            0 => 0,
            1 => 24 + self.u.below(16) as u64,
            _ => 1 + self.u.below(8) as u64,
        };
        let bytes = (units * self.unit + self.u.below(3) as u64).max(1);
        let swappable = !self.u.chance(15);
        self.problem.tensors.push(Tensor { bytes, swappable, given, kept })
    }

    fn op(&mut self, tick: usize, ops: usize) {
        let backward = 2 * tick >= ops;
        let mut reads = self.reads(tick, ops);
        reads.sort_unstable();
        reads.dedup();
        let mut changes = reads.clone();
        changes.retain(|&t| {
            let variable = self.problem.tensors[t].given && self.problem.tensors[t].kept;
            self.u.chance(if variable && backward { 60 } else { 5 })
        });
        let produces = (0..[1, 1, 0, 2][self.u.below(4)])
            .map(|_| {
                let kept = self.u.chance(10);
                self.tensor(false, kept)
            })
            .collect::<Vec<_>>();
        self.produced.push(produces.clone());
        self.problem.ops.push(Operator {
            kind: backward.into(),
            phase: if backward { Phase::Backward } else { Phase::Forward },
            nanos: [0, 1, 10, 100, 1000][self.u.below(5)] * (1 + self.u.below(20) as u64) / 10,
            workspace: if self.u.chance(25) { self.u.below(4) as u64 * self.unit } else { 0 },
            recomputable: !self.u.chance(30),
            reads,
            produces,
            changes,
            lane: COMPUTE,
        });
    }

    /// Of the existing tensors: the latest, the mirrored operator's, any.
    fn reads(&mut self, tick: usize, ops: usize) -> Vec<TensorId> {
        let mut reads = Vec::new();
        let latest = self.produced.last().and_then(|p| p.last().copied());
        let mirrored = self.produced.get(ops - 1 - tick).and_then(|p| p.first().copied());
        reads.extend(latest.filter(|_| self.u.chance(80)));
        reads.extend(mirrored.filter(|_| self.u.chance(80)));
        for _ in 0..self.u.below(3) {
            let any = self.u.below(self.problem.tensors.len());
            reads.extend(self.problem.tensors.keys().nth(any));
        }
        reads
    }
}

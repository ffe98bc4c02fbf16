//! Checks that a placement is safe, from its steps, edges and addresses alone.

use std::collections::BTreeMap;

use cranelift_entity::{EntityRef, SecondaryMap};
use lmsc_schedule::problem::{Duplex, TensorId};
use lmsc_schedule::{self as schedule, Edge, Flaw, Instruction};

use super::{Allocation, Arena, Placed};

/// A defect of a placement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misplaced {
    /// The plan itself is not valid.
    #[error("{0}")]
    Schedule(Flaw),
    /// An edge points backwards.
    #[error("step {} waits for step {}, which ends later or comes after it", .0.step, .0.before)]
    Edge(Edge),
    /// A range of bytes that is allocated has no address.
    #[error("{run}, on the device from {} on, has no address", since(*.from))]
    Nowhere {
        /// The bytes.
        run: Allocation,
        /// The step that allocates them; none for given bytes.
        from: Option<usize>,
    },
    /// A range of bytes has an address but is not allocated then.
    #[error("{run}: an address from {} on, but it does not come to the device then", since(*.from))]
    Unknown {
        /// The bytes.
        run: Allocation,
        /// The step named as the one that allocates them; none for given bytes.
        from: Option<usize>,
    },
    /// Bytes lie beyond the arena.
    #[error("{run} at address {address} is not inside the arena")]
    Outside {
        /// The bytes.
        run: Allocation,
        /// The address of the first byte.
        address: u64,
    },
    /// An address is no multiple of the alignment.
    #[error("{run} at address {address} is not aligned")]
    Unaligned {
        /// The bytes.
        run: Allocation,
        /// The address of the first byte.
        address: u64,
    },
    /// The ranges of a tensor are not contiguous where it is used.
    #[error("operator {tick} uses {tensor}, whose bytes do not lie one after the other")]
    Torn {
        /// The operator.
        tick: u32,
        /// The tensor.
        tensor: TensorId,
    },
    /// The order of addresses is decided for one lane of operators.
    #[error("its operators run on several lanes, whose plans have no addresses")]
    Lanes,
    /// A variable ends the step at another address than it began.
    #[error("{0} is not where the next step looks for it")]
    Moved(TensorId),
    /// Two ranges may occupy one address at the same time.
    #[error("{one} and {other} share address {address}, and no edge says which is first")]
    Overlap {
        /// One range.
        one: Allocation,
        /// The other range.
        other: Allocation,
        /// The first address that they share.
        address: u64,
    },
}

/// The step from which on bytes are on the device, in words.
fn since(step: Option<usize>) -> String {
    step.map_or("the start".to_owned(), |step| format!("step {step}"))
}

/// The size of the used part of the arena, if the placement is safe in any timing.
///
/// Independent of how placements are made: the presence of each range on the device follows from the steps. Two ranges may
/// share an address if all steps that touch one have certainly ended when the other is allocated.
///
/// # Errors
/// The first [`Misplaced`] found.
pub fn check(placed: &Placed, arena: Arena) -> Result<u64, Misplaced> {
    let plan = &placed.plan;
    if plan.problem.has_lanes() {
        return Err(Misplaced::Lanes);
    }
    schedule::check(&plan.problem, &plan.schedule, arena.bytes).map_err(Misplaced::Schedule)?;
    let mut walk = Walk::new(placed)?;
    for step in 0..plan.schedule.steps.len() {
        walk.step(step)?;
    }
    walk.end()?;
    if let Some(((from, run), _)) = walk.spots.pop_first() {
        return Err(Misplaced::Unknown { run, from });
    }
    let mut presences = walk.presences;
    presences.iter().try_for_each(|presence| presence.lies_in(arena))?;
    presences.sort_by_key(|presence| presence.address);
    for (index, one) in presences.iter().enumerate() {
        for other in presences[index + 1..].iter().take_while(|other| other.address < one.end()) {
            if !walk.clocks.ordered(one, other) && !walk.clocks.ordered(other, one) {
                let (one, other, address) = (one.run.clone(), other.run.clone(), other.address);
                return Err(Misplaced::Overlap { one, other, address });
            }
        }
    }
    Ok(presences.iter().map(Presence::end).max().unwrap_or(0))
}

/// A range of bytes while it is on the device.
struct Presence {
    run: Allocation,
    bytes: u64,
    address: u64,
    from: Option<usize>,
    /// The last operator that uses it, if any.
    used: Option<usize>,
    /// Other steps that touch it: copies, and the step that allocates it.
    touched: Vec<usize>,
    /// Whether it stays allocated after the last step.
    stays: bool,
}

impl Presence {
    fn end(&self) -> u64 {
        self.address.saturating_add(self.bytes)
    }

    /// The address at which the whole tensor begins.
    fn base(&self) -> Option<u64> {
        match self.run {
            Allocation::Workspace(_) => Some(self.address),
            Allocation::Bytes { begin, .. } => self.address.checked_sub(begin),
        }
    }

    fn lies_in(&self, arena: Arena) -> Result<(), Misplaced> {
        let (run, address) = (self.run.clone(), self.address);
        match self.base() {
            Some(base) if self.end() <= arena.bytes => match base % arena.alignment {
                0 => Ok(()),
                _ => Err(Misplaced::Unaligned { run, address }),
            },
            _ => Err(Misplaced::Outside { run, address }),
        }
    }
}

/// The steps that have certainly ended when each step starts.
struct Clocks {
    /// For each step, its engine and its position in that engine's order.
    place: Vec<(usize, u32)>,
    /// For each step, the number of steps of each engine that have certainly ended when it starts.
    ended: Vec<[u32; 3]>,
    /// For each engine, its last step so far.
    last: [Option<usize>; 3],
}

impl Clocks {
    /// Adds the next step, which waits for `waits` and for the previous one of its engine.
    fn push(&mut self, engine: usize, waits: impl Iterator<Item = usize>) {
        let position = self.last[engine].map_or(0, |last| self.place[last].1 + 1);
        let mut ended = [0; 3];
        for before in waits.chain(self.last[engine]) {
            let (engine, position) = self.place[before];
            ended.iter_mut().zip(self.ended[before]).for_each(|(now, then)| *now = then.max(*now));
            ended[engine] = ended[engine].max(position + 1);
        }
        self.last[engine] = Some(self.place.len());
        self.place.push((engine, position));
        self.ended.push(ended);
    }

    /// Whether all steps that touch `one` have certainly ended when `other` is allocated.
    fn ordered(&self, one: &Presence, other: &Presence) -> bool {
        let Some(comes) = other.from else { return false };
        let has_ended = |&step: &usize| {
            let (engine, position) = self.place[step];
            self.ended[comes][engine] > position
        };
        !one.stays && one.used.iter().chain(&one.touched).all(has_ended)
    }
}

/// The state of a range of a tensor's bytes as the steps are processed.
struct Bytes {
    tensor: TensorId,
    begin: u64,
    end: u64,
    /// Whether it is on the host at the start and at the end of the step.
    wraps: bool,
    /// Its current or latest presence.
    here: Option<usize>,
    came: Option<usize>,
    written: Option<usize>,
    left: Option<usize>,
}

struct Walk<'a> {
    placed: &'a Placed,
    spots: BTreeMap<(Option<usize>, Allocation), u64>,
    /// The ranges of pieces first, then the bytes in no piece.
    bytes: Vec<Bytes>,
    of_tensor: SecondaryMap<TensorId, Vec<usize>>,
    presences: Vec<Presence>,
    clocks: Clocks,
    /// The edges of the placement from the next step on.
    edges: &'a [Edge],
}

impl<'a> Walk<'a> {
    /// The state before the first step, with the given tensors.
    fn new(placed: &'a Placed) -> Result<Walk<'a>, Misplaced> {
        let schedule = &placed.plan.schedule;
        let mut spots = BTreeMap::new();
        for spot in &placed.spots {
            if spots.insert((spot.from, spot.run.clone()), spot.address).is_some() {
                return Err(Misplaced::Unknown { run: spot.run.clone(), from: spot.from });
            }
        }
        let clocks = Clocks { place: Vec::new(), ended: Vec::new(), last: [None; 3] };
        let mut walk = Walk {
            placed,
            spots,
            bytes: Vec::new(),
            of_tensor: SecondaryMap::new(),
            presences: Vec::new(),
            clocks,
            edges: &placed.edges,
        };
        let mut comes_first: Vec<Option<bool>> = vec![None; schedule.pieces.len()];
        for step in &schedule.steps {
            match step.instruction {
                Instruction::Op(_) => {}
                Instruction::Out(piece) => _ = comes_first[piece.index()].get_or_insert(false),
                Instruction::In(piece) => _ = comes_first[piece.index()].get_or_insert(true),
            }
        }
        for (piece, comes_first) in schedule.pieces.values().zip(comes_first) {
            walk.add(piece.tensor, (piece.bytes.start, piece.bytes.end), comes_first == Some(true));
        }
        for (tensor, facts) in &placed.plan.problem.tensors {
            let mut pieces: Vec<(u64, u64)> =
                walk.of_tensor[tensor].iter().map(|&i| (walk.bytes[i].begin, walk.bytes[i].end)).collect();
            pieces.sort_unstable();
            pieces.push((facts.bytes, facts.bytes));
            let mut covered = 0;
            for (begin, end) in pieces {
                if covered < begin {
                    walk.add(tensor, (covered, begin), false);
                }
                covered = end;
            }
        }
        for index in 0..walk.bytes.len() {
            let Bytes { tensor, wraps, .. } = walk.bytes[index];
            if placed.plan.problem.tensors[tensor].given && !wraps {
                walk.come(index, None)?;
            }
        }
        Ok(walk)
    }

    fn add(&mut self, tensor: TensorId, (begin, end): (u64, u64), comes_first: bool) {
        let facts = self.placed.plan.problem.tensors[tensor];
        let wraps = comes_first && facts.given && facts.kept;
        self.of_tensor[tensor].push(self.bytes.len());
        let (here, came, written, left) = (None, None, None, None);
        self.bytes.push(Bytes { tensor, begin, end, wraps, here, came, written, left });
    }

    /// Records that the bytes are on the device from the step on.
    fn come(&mut self, index: usize, from: Option<usize>) -> Result<(), Misplaced> {
        let Bytes { tensor, begin, end, .. } = self.bytes[index];
        self.bytes[index].here = Some(self.presences.len());
        self.appear(Allocation::Bytes { tensor, begin, end }, end - begin, from)
    }

    fn appear(&mut self, run: Allocation, bytes: u64, from: Option<usize>) -> Result<(), Misplaced> {
        let Some(address) = self.spots.remove(&(from, run.clone())) else {
            return Err(Misplaced::Nowhere { run, from });
        };
        let touched = from.into_iter().collect();
        self.presences.push(Presence { run, bytes, address, from, used: None, touched, stays: false });
        Ok(())
    }

    fn step(&mut self, step: usize) -> Result<(), Misplaced> {
        let plan = &self.placed.plan;
        let mut waits = self.edges_of(step)?;
        let engine = match plan.schedule.steps[step].instruction {
            Instruction::Op(tick) => {
                self.op(step, tick, &mut waits)?;
                0
            }
            Instruction::Out(piece) => {
                let bytes = &mut self.bytes[piece.index()];
                waits.extend(bytes.written.into_iter().chain(bytes.came));
                bytes.left = Some(step);
                if let Some(here) = bytes.here {
                    self.presences[here].touched.push(step);
                }
                1
            }
            Instruction::In(piece) => {
                let bytes = &mut self.bytes[piece.index()];
                waits.extend(bytes.left);
                bytes.came = Some(step);
                self.come(piece.index(), Some(step))?;
                if plan.problem.link.duplex == Duplex::Full { 2 } else { 1 }
            }
        };
        self.clocks.push(engine, waits.into_iter());
        Ok(())
    }

    /// The steps that the edges make the step wait for.
    fn edges_of(&mut self, step: usize) -> Result<Vec<usize>, Misplaced> {
        let steps = &self.placed.plan.schedule.steps;
        let mut waits = Vec::new();
        while let Some((&edge, rest)) = self.edges.split_first().filter(|(edge, _)| edge.step <= step) {
            let late = edge.before >= edge.step || steps[edge.before].end > steps[edge.step].start;
            if edge.step < step || late {
                return Err(Misplaced::Edge(edge));
            }
            waits.push(edge.before);
            self.edges = rest;
        }
        Ok(waits)
    }

    fn op(&mut self, step: usize, tick: u32, waits: &mut Vec<usize>) -> Result<(), Misplaced> {
        let op = &self.placed.plan.problem.ops[tick as usize];
        if op.workspace > 0 {
            self.appear(Allocation::Workspace(tick), op.workspace, Some(step))?;
        }
        for tensor in op.touches() {
            let produced = op.produces.contains(&tensor);
            let mut base = None;
            for index in self.of_tensor[tensor].clone() {
                if produced {
                    self.come(index, Some(step))?;
                }
                let bytes = &mut self.bytes[index];
                waits.extend(bytes.came);
                if produced || op.changes.contains(&tensor) {
                    bytes.written = Some(step);
                }
                let Some(here) = bytes.here else { continue };
                let here = &mut self.presences[here];
                here.used = Some(step);
                if *base.get_or_insert(here.base()) != here.base() {
                    return Err(Misplaced::Torn { tick, tensor });
                }
            }
        }
        Ok(())
    }

    /// Marks kept tensors as allocated at the end, and checks that variables end at the address of their start.
    fn end(&mut self) -> Result<(), Misplaced> {
        if let Some(&edge) = self.edges.first() {
            return Err(Misplaced::Edge(edge));
        }
        let first: BTreeMap<Allocation, u64> =
            self.presences.iter().filter(|p| p.from.is_none()).map(|p| (p.run.clone(), p.address)).collect();
        for bytes in self.bytes.iter().filter(|bytes| !bytes.wraps) {
            let facts = self.placed.plan.problem.tensors[bytes.tensor];
            let Some(here) = bytes.here.filter(|_| facts.kept) else { continue };
            let here = &mut self.presences[here];
            here.stays = true;
            if facts.given && first.get(&here.run) != Some(&here.address) {
                return Err(Misplaced::Moved(bytes.tensor));
            }
        }
        Ok(())
    }
}

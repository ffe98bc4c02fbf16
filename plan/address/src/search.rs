//! The search for a placement: many plans are placed in several ways, and the best placements are improved.

use cranelift_entity::{EntityRef, SecondaryMap};
use lmsc_schedule::problem::TensorId;
use lmsc_schedule::tuned::{self, Tunable};
use lmsc_schedule::{
    self as schedule, Act, ActId, Edge, IDLE_ROUNDS, LITTLE_GAIN, Plan, Room, Schedule, Step,
};

use super::construct::{RULES, Rivals, construct};
use super::frame::Frame;
use super::improve::{Placement, improve};
use super::objects::Owner;
use super::quick::quick;
use super::repair::repair;
use super::seek::Seeker;
use super::tight::tight;
use super::timing::Timing;
use super::{Allocation, Arena, Placed, Spot};

/// Maximum number of budgets below the arena for which plans are made: a limit on the time, since half and double gave the same
/// addresses.
const BUDGETS: u64 = 30;

/// Step between these budgets, in thousandths of the arena.
const BUDGET_STEP: Tunable<u64> = Tunable::new(5);

/// A plan is skipped if its makespan exceeds the best one for the whole arena by more than this many percent,
/// unless nothing else has a placement.
const MOST_LOSS: Tunable<u64> = Tunable::new(5);

/// Work limit for placing plans once a placement is found, in units of about a nanosecond, at effort 100.
const CONSTRUCTION_WORK: Tunable<u64> = Tunable::new(4_000_000_000);

/// Work charged for making a plan, for each of its activities, in the same units.
const PLANNING_WORK: Tunable<u64> = Tunable::new(4_000);

/// The search ends after this number of consecutive budgets that gain little.
const STAGNANT_BUDGETS: u32 = 5;

/// Number of placements improved in the first round, an eighth of them of one plan; each further round improves half as many for
/// twice as long.
const IMPROVED: Tunable<usize> = Tunable::new(16);

/// Above this number of objects, objects are not compared with one another, and the first plan that has a placement
/// is taken.
pub const MOST_COMPARED: Tunable<usize> = Tunable::new(3000);

/// Number of moves that make room for objects without a place.
const REPAIR_MOVES: Tunable<u32> = Tunable::new(200);

/// Work limit for the improvement of one placement in the first round, in units of about a nanosecond, at effort
/// 100.
const IMPROVEMENT_WORK: Tunable<u64> = Tunable::new(12_000_000);

/// The plans that are tried.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Plans with a small loss.
    Near,
    /// All plans, as long as nothing has a placement.
    Far,
    /// All plans shorter than the best one placed, if that has a large loss.
    Between,
}

/// The budgets for plans, in thousandths of the arena, and which of their plans are tried: first those that take little longer
/// than the best one for the whole arena; if none of these has a placement, those for far smaller budgets, which differ ten times
/// as much; and then those with makespans between the two.
fn budgets() -> impl Iterator<Item = (u64, Kind)> {
    let shares = |less: u64, count: u64, kind: Kind| (0..count).map(move |i| (1000 - i * less, kind));
    let near = shares(BUDGET_STEP.get(), BUDGETS, Kind::Near);
    let far = shares(10 * BUDGET_STEP.get(), 100 / BUDGET_STEP.get(), Kind::Far);
    near.chain(far).chain(shares(BUDGET_STEP.get(), BUDGETS, Kind::Between))
}

/// The development of the best makespan.
#[derive(Default)]
struct Progress {
    /// The last makespan that was shorter by enough.
    best: Option<u64>,
    /// Number of consecutive makespans since then that were not.
    idle: u32,
}

impl Progress {
    /// Records a makespan, and returns whether the search ends: after `idle` consecutive makespans that were not shorter than
    /// the best one by 1/[`LITTLE_GAIN`]. Makespans before the first plan is found do not count.
    fn ends(&mut self, makespan: u64, idle: u32) -> bool {
        match self.best {
            _ if makespan == u64::MAX => return false,
            Some(best) if makespan + best / LITTLE_GAIN.get() > best => self.idle += 1,
            _ => (self.best, self.idle) = (Some(makespan), 0),
        }
        self.idle >= idle
    }
}

/// The plan with addresses in the arena that has the smallest makespan found; none if none is found.
///
/// `plans` makes plans whose live bytes fit a budget.
pub fn place(arena: Arena, effort: u32, plans: impl FnMut(u64) -> Vec<Plan>) -> Option<Placed> {
    AddressSearch::new(arena, plans).run(effort)
}

/// A search for a placement in an arena, which more effort continues.
pub struct AddressSearch<Plans> {
    arena: Arena,
    /// Makes plans whose live bytes fit a budget.
    plans: Plans,
    /// The index of the next budget for plans.
    next: usize,
    /// The longest makespan of plans with a small loss.
    longest: Option<u64>,
    progress: Progress,
    /// Work for construction so far, and the shortest makespan that it came to, if that was the best at the time.
    constructed: u64,
    shortest: Option<u64>,
    seeker: Seeker,
    cases: Vec<(Plan, Frame)>,
    /// Placements to improve, each with the index of its case.
    tries: Vec<(usize, Placement)>,
    /// The best placement of all objects.
    best: Option<(usize, Placement)>,
    /// Whether there are too many objects to compare them with one another.
    many: bool,
}

impl<Plans: FnMut(u64) -> Vec<Plan>> AddressSearch<Plans> {
    /// A search among the plans that `plans` makes, whose live bytes fit a budget.
    pub fn new(arena: Arena, plans: Plans) -> AddressSearch<Plans> {
        AddressSearch {
            arena,
            plans,
            next: 0,
            longest: None,
            progress: Progress::default(),
            constructed: 0,
            shortest: None,
            seeker: Seeker::default(),
            cases: Vec::new(),
            tries: Vec::new(),
            best: None,
            many: false,
        }
    }

    /// [`AddressSearch::new`], starting from the operators of `plan` with swaps and addresses chosen together, where the arena has
    /// room for that.
    pub fn starting_from(arena: Arena, plan: &Plan, plans: Plans) -> AddressSearch<Plans> {
        let mut search = AddressSearch::new(arena, plans);
        if let Ok((plan, frame, placement)) = tight(plan, arena) {
            search.many = frame.movable.len() > MOST_COMPARED.get();
            search.cases.push((plan, frame));
            search.note(0, &placement);
            if !search.many {
                search.tries.push((0, placement));
            }
        }
        search
    }

    /// Goes on with this effort, in percent of the usual one, and returns the best plan with addresses so far; none if none is
    /// found.
    pub fn run(&mut self, effort: u32) -> Option<Placed> {
        let before = self.seeker.work;
        self.construct(CONSTRUCTION_WORK.get() / 100 * u64::from(effort));
        self.constructed += self.seeker.work - before;
        self.improve(u64::from(effort) * IMPROVEMENT_WORK.get() / 100);
        tuned::work((self.seeker.work - before) as usize / 10);
        let (case, placement) = self.best.as_ref()?;
        let (plan, frame) = &self.cases[*case];
        emit(plan.clone(), frame, placement)
    }

    /// The makespan that a placement must be below.
    fn limit(&self) -> u64 {
        self.best.as_ref().map_or(u64::MAX, |(_, placement)| placement.makespan)
    }

    fn note(&mut self, case: usize, placement: &Placement) {
        if placement.left.is_empty() && placement.makespan < self.limit() {
            self.best = Some((case, placement.clone()));
        }
    }

    /// Makes plans and places each by every rule, until the budgets end or the work for construction has reached its limit.
    fn construct(&mut self, most_work: u64) {
        let before = self.seeker.work - self.constructed;
        for (share, kind) in budgets().skip(self.next) {
            // Neither plans from the start of the search nor improvements count as progress of construction.
            let any = self.shortest.is_some();
            if any && kind != Kind::Far && self.seeker.work - before > most_work {
                return;
            }
            let is_done = match kind {
                Kind::Near => any && self.many,
                Kind::Far => false,
                Kind::Between => {
                    let is_near = self.longest.is_none_or(|longest| self.limit() <= longest);
                    !any || is_near || self.many
                }
            };
            let shortest = self.shortest.unwrap_or(u64::MAX);
            if is_done || kind != Kind::Far && self.progress.ends(shortest, STAGNANT_BUDGETS) {
                break;
            }
            self.next += 1;
            let is_found = kind == Kind::Far && any;
            if is_found || self.many && !(1000 - share).is_multiple_of(5 * BUDGET_STEP.get()) {
                continue;
            }
            let budget = (u128::from(self.arena.bytes) * u128::from(share) / 1000) as u64;
            if !self.try_plans(budget, kind) {
                break;
            }
        }
        self.next = usize::MAX;
    }

    /// Places plans for the budget; false if none of them can be shorter than the best placement.
    fn try_plans(&mut self, budget: u64, kind: Kind) -> bool {
        let plans = (self.plans)(budget);
        let shortest = plans.iter().map(|plan| plan.schedule.makespan()).min().unwrap_or(0);
        let longest = *self.longest.get_or_insert(shortest + shortest / 100 * MOST_LOSS.get());
        if self.limit() <= shortest {
            return false;
        }
        for plan in plans {
            self.seeker.work += PLANNING_WORK.get() * plan.schedule.steps.len() as u64;
            let makespan = plan.schedule.makespan();
            let same = |(case, _): &(Plan, Frame)| case.schedule.steps == plan.schedule.steps;
            let is_long = kind == Kind::Near && makespan > longest;
            if is_long || makespan >= self.limit() || self.cases.iter().any(same) {
                continue;
            }
            if let Some(frame) = Frame::new(&plan, budget, self.arena) {
                self.many = frame.movable.len() > MOST_COMPARED.get();
                self.construct_one(&frame);
                let is_of_use = !self.many || self.best.as_ref().is_some_and(|b| b.0 == self.cases.len());
                if is_of_use {
                    self.cases.push((plan, frame));
                }
            }
        }
        true
    }

    /// Places one plan by every rule.
    ///
    /// A placement without a loss needs no further rule; if there are too many objects to compare them all, only the quick
    /// rule is used.
    fn construct_one(&mut self, frame: &Frame) {
        let guess = Timing::nominal(frame);
        let mut timing = guess.clone();
        let mut found = vec![Placement::of(frame, &mut timing, quick(frame, &guess))];
        let mut rivals = Rivals::new(frame);
        let rules = if self.many { &[] } else { &RULES[..] };
        for &rule in rules {
            let best = found.iter().filter(|p| p.left.is_empty()).map(|p| p.makespan).min();
            if best.is_some_and(|best| best <= frame.nominal()) {
                break;
            }
            let places = construct(frame, &guess, &mut rivals, &mut self.seeker, rule);
            found.push(Placement::of(frame, &mut timing, places));
        }
        found.sort_by_key(Placement::rank);
        let case = self.cases.len();
        found.iter().for_each(|placement| self.note(case, placement));
        if self.best.as_ref().is_some_and(|best| best.0 == case) {
            self.shortest = Some(self.limit());
        }
        if self.many {
            return;
        }
        self.tries.extend(found.into_iter().take(IMPROVED.get() / 8).map(|placement| (case, placement)));
    }

    /// Improves the best placements with little work, the better half of them with twice as much, and so on.
    ///
    /// Every run starts from the placements as they were constructed. Starting from those that an earlier run improved gave
    /// longer plans.
    fn improve(&mut self, mut work: u64) {
        let (mut count, mut seed) = (IMPROVED.get(), 0);
        let (mut progress, mut tries) = (Progress::default(), self.tries.clone());
        while count > 0 && !progress.ends(self.limit(), IDLE_ROUNDS.get()) {
            tries.retain(|(case, _)| self.cases[*case].1.nominal() < self.limit());
            tries.sort_by_key(|(_, placement)| placement.rank());
            tries.truncate(count);
            for (case, placement) in &mut tries {
                if self.cases[*case].1.nominal() < self.limit() {
                    seed += 1;
                    self.improve_one(*case, placement, (work, seed));
                    self.note(*case, placement);
                }
            }
            count /= 2;
            work *= 2;
        }
    }

    fn improve_one(&mut self, case: usize, placement: &mut Placement, (work, seed): (u64, u64)) {
        let frame = &self.cases[case].1;
        let mut timing = Timing::nominal(frame);
        if !placement.left.is_empty() {
            let limit = frame.nominal() + frame.nominal() / 100;
            timing.run(frame, &placement.places);
            repair(
                frame,
                &timing,
                &mut self.seeker,
                &mut placement.places,
                (limit, REPAIR_MOVES.get(), seed),
            );
            *placement = Placement::of(frame, &mut timing, placement.places.clone());
        }
        improve(frame, &mut timing, &mut self.seeker, placement, (work, seed));
    }
}

/// The placement as a plan with times, addresses and edges.
pub(super) fn emit(plan: Plan, frame: &Frame, placement: &Placement) -> Option<Placed> {
    let mut timing = Timing::nominal(frame);
    timing.run(frame, &placement.places);
    let mirrored = mirrored(frame, placement);
    let mut pieces = frame.absences.pieces.clone();
    for piece in pieces.values_mut().filter(|piece| mirrored[piece.tensor]) {
        let bytes = plan.problem.tensors[piece.tensor].bytes;
        piece.bytes = bytes - piece.bytes.end..bytes - piece.bytes.start;
    }
    let mut index: SecondaryMap<ActId, Option<usize>> = SecondaryMap::new();
    let mut steps: Vec<Step> = Vec::with_capacity(frame.order.len());
    let mut given = Vec::new();
    for (&act, &(begin, end)) in frame.order.iter().zip(&timing.owner_ranges) {
        let Act::Do(instruction) = frame.acts.what[act] else { continue };
        index[act] = Some(steps.len());
        let owners = &timing.owners[begin as usize..end as usize];
        let before = owners.iter().flat_map(|&owner| frame.objects.spans[owner].last);
        given.extend(before.filter_map(|before| Some(Edge { step: steps.len(), before: index[before]? })));
        let ends = timing.end[act];
        steps.push(Step { instruction, start: ends - frame.acts.nanos[act.index()], end: ends });
    }
    let schedule = Schedule { pieces, steps };
    given.sort_unstable();
    given.dedup();
    let edges = schedule::edges(&plan.problem, &schedule, Room::Given(&given)).ok()?;
    let mut spots = Vec::new();
    for (block, span) in &frame.objects.spans {
        let place = placement.places[span.object]?;
        let object = &frame.objects.all[span.object];
        for &range in frame.objects.ranges(block) {
            let (address, end) = frame.lies(span.object, place, range);
            let run = match object.owner {
                Owner::Workspace(tick) => Allocation::Workspace(tick),
                Owner::Tensor(tensor) => {
                    Allocation::Bytes { tensor, begin: address - place.base, end: end - place.base }
                }
            };
            spots.push(Spot { run, from: index[span.first], address });
        }
    }
    spots.sort_unstable_by(|a, b| (a.from, &a.run).cmp(&(b.from, &b.run)));
    Some(Placed { plan: Plan { schedule, ..plan }, spots, edges })
}

/// For each tensor, whether its bytes count from the other end.
fn mirrored(frame: &Frame, placement: &Placement) -> SecondaryMap<TensorId, bool> {
    let mut mirrored: SecondaryMap<TensorId, bool> = SecondaryMap::new();
    for (object, facts) in &frame.objects.all {
        if let (Some(tensor), Some(place)) = (facts.tensor(), placement.places[object]) {
            mirrored[tensor] |= place.mirrored;
        }
    }
    mirrored
}

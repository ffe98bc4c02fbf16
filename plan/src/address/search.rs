//! The search for a placement: many plans, each placed in several ways, the best of them improved.

use std::borrow::Cow;

use cranelift_entity::{EntityRef, SecondaryMap};

use super::construct::{RULES, construct};
use super::frame::Frame;
use super::improve::{Placement, improve};
use super::objects::Owner;
use super::quick::quick;
use super::repair::repair;
use super::seek::Seeker;
use super::tight::tight;
use super::timing::Timing;
use super::{Arena, Placed, Run, Spot};
use crate::planners::cover::Manner;
use crate::planners::{Granularity, Plan, Planner, Request, optimal};
use crate::problem::TensorId;
use crate::schedule::{self, Act, ActId, Edge, Room, Schedule, Step};

/// So many plans are tried, for as many thousandths less of the arena one after the other.
const SHARES: u64 = 30;
const SHARE: u64 = 5;

/// If none of those has a place, by so many thousandths, however long the plans take.
const LARGE_SHARE: u64 = 50;

/// A plan is not tried if it takes more than so many percent longer than the best for the whole arena, but where nothing else
/// has a place.
const MOST_LOSS: u64 = 5;

/// Once something has a place, plans are placed until that has cost so much, in steps of about a nanosecond, at effort
/// 100.
const CONSTRUCTED: u64 = 4_000_000_000;

/// What it costs to make a plan, for each of its activities, in the same steps.
const MADE: u64 = 4_000;

/// The search for a plan with addresses ends after this number of shares, or of rounds of improvement, that do not make the best one
/// shorter by 1/`LITTLE_GAIN`.
const STAGNANT: u32 = 5;
const STAGNANT_ROUNDS: u32 = 2;
const LITTLE_GAIN: u64 = 1000;

/// So many placements are improved at first, half as many each twice as long after that.
const IMPROVED: usize = 16;

/// More objects are not compared with one another; the first plan that has a place is taken, of those for so many
/// thousandths less one after the other.
const MOST_COMPARED: usize = 3000;
const COARSE_SHARE: u64 = 25;

/// How many placements of one plan are improved.
const OF_ONE_PLAN: usize = 2;

/// How often objects are moved to make room for those without a place.
const ATTEMPTS: u32 = 200;

/// How much the improvement of one placement may cost at first, in steps of about a nanosecond, at effort 100.
const WORK: u64 = 12_000_000;

/// Plans are made of whole tensors, and of pieces of which so many make the peak.
const PIECES: [u64; 5] = [50, 100, 200, 300, 600];

/// By how many thousandths addresses may make a plan longer before other choices of what runs again are placed, too:
/// those for so many thousandths less memory.
const MOST_SATISFYING_LOSS: u64 = 5;
const LESS: [u64; 5] = [20, 40, 60, 90, 120];

/// Plans for less memory are made with 1/`QUICKER` of the effort, and each plan is placed with 1/`QUICK` of it at first. If addresses
/// still cost more than `MOST_SATISFYING_LOSS`, the `THOROUGHLY` best plans are placed again with the whole effort.
const QUICKER: u32 = 30;
const QUICK: u32 = 10;
const THOROUGHLY: usize = 2;

/// The plan with the least makespan found that lies in the arena; none if none is found.
///
/// `plans` makes plans that fit so many bytes by their sum.
pub fn place(arena: Arena, effort: u32, plans: impl FnMut(u64) -> Vec<Plan>) -> Option<Placed> {
    Search::default().placed(arena, effort, plans)
}

impl Search {
    fn placed(mut self, arena: Arena, effort: u32, plans: impl FnMut(u64) -> Vec<Plan>) -> Option<Placed> {
        self.construct(arena, plans, CONSTRUCTED / 100 * u64::from(effort));
        self.improve(u64::from(effort) * WORK / 100);
        let (case, placement) = self.best?;
        let (plan, frame) = self.cases.swap_remove(case);
        emit(plan, &frame, &placement)
    }

    /// A search that knows the plan's operators with swaps chosen together with addresses, where the arena has room for that.
    fn from_tight(arena: Arena, plan: &Plan) -> Search {
        let mut search = Search::default();
        if let Ok((plan, frame, placement)) = tight(plan, arena) {
            search.many = frame.movable.len() > MOST_COMPARED;
            search.cases.push((plan, frame));
            search.note(0, &placement);
            if !search.many {
                search.tries.push((0, placement));
            }
        }
        search
    }
}

/// Which plans are tried.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Those that lose little.
    Near,
    /// All, as long as nothing has a place.
    Far,
    /// All that are shorter than what has one, if that loses much.
    Between,
}

/// How the best makespan develops.
#[derive(Default)]
struct Progress {
    /// The makespan that was last shorter by enough.
    best: Option<u64>,
    /// How often since then it was not.
    idle: u32,
}

impl Progress {
    /// Notes a makespan, and returns whether the search ends: after `idle` makespans in a row that were not shorter than the best
    /// one by 1/[`LITTLE_GAIN`]. Until the first plan is found, none is counted.
    fn ends(&mut self, makespan: u64, idle: u32) -> bool {
        match self.best {
            _ if makespan == u64::MAX => return false,
            Some(best) if makespan + best / LITTLE_GAIN > best => self.idle += 1,
            _ => (self.best, self.idle) = (Some(makespan), 0),
        }
        self.idle >= idle
    }
}

#[derive(Default)]
struct Search {
    seeker: Seeker,
    cases: Vec<(Plan, Frame)>,
    /// Placements to improve, each with the index of its case.
    tries: Vec<(usize, Placement)>,
    /// The best that leaves nothing out.
    best: Option<(usize, Placement)>,
    /// Whether there are too many objects to compare them with one another.
    many: bool,
}

impl Search {
    /// The makespan that a placement has to undercut.
    fn limit(&self) -> u64 {
        self.best.as_ref().map_or(u64::MAX, |(_, placement)| placement.makespan)
    }

    fn note(&mut self, case: usize, placement: &Placement) {
        if placement.left.is_empty() && placement.makespan < self.limit() {
            self.best = Some((case, placement.clone()));
        }
    }

    /// Makes plans and places each by every rule, until that has cost so much: those that take little longer than the best
    /// for the whole arena; if none of these has a place, those for far less; and then what takes longer than the former and
    /// less than the latter.
    fn construct(&mut self, arena: Arena, mut plans: impl FnMut(u64) -> Vec<Plan>, most_work: u64) {
        let mut longest = None;
        let shares = |less: u64, count: u64, kind: Kind| (0..count).map(move |i| (1000 - i * less, kind));
        let near = shares(SHARE, SHARES, Kind::Near);
        let far = shares(LARGE_SHARE, 1000 / LARGE_SHARE, Kind::Far);
        let between = shares(SHARE, SHARES, Kind::Between);
        // Plans that the search began with say nothing about those that it makes.
        let (mut progress, known) = (Progress::default(), self.cases.len());
        for (share, kind) in near.chain(far).chain(between) {
            let constructed = self.best.as_ref().filter(|(case, _)| *case >= known);
            let shortest = constructed.map_or(u64::MAX, |(_, placement)| placement.makespan);
            let any = constructed.is_some();
            if kind != Kind::Far && progress.ends(shortest, STAGNANT) {
                return;
            }
            let is_done = match kind {
                Kind::Near => any && (self.many || self.seeker.work > most_work),
                Kind::Far => false,
                Kind::Between => {
                    let is_near = longest.is_none_or(|longest| self.limit() <= longest);
                    !any || is_near || self.many || self.seeker.work > most_work
                }
            };
            if is_done {
                return;
            }
            let is_found = kind == Kind::Far && any;
            if is_found || self.many && !(1000 - share).is_multiple_of(COARSE_SHARE) {
                continue;
            }
            let budget = (u128::from(arena.bytes) * u128::from(share) / 1000) as u64;
            let plans = plans(budget);
            let shortest = plans.iter().map(|plan| plan.schedule.makespan()).min().unwrap_or(0);
            let longest = *longest.get_or_insert(shortest + shortest / 100 * MOST_LOSS);
            if self.limit() <= shortest {
                return;
            }
            for plan in plans {
                self.seeker.work += MADE * plan.schedule.steps.len() as u64;
                let makespan = plan.schedule.makespan();
                let same = |(case, _): &(Plan, Frame)| case.schedule.steps == plan.schedule.steps;
                let is_long = kind == Kind::Near && makespan > longest;
                if is_long || makespan >= self.limit() || self.cases.iter().any(same) {
                    continue;
                }
                if let Some(frame) = Frame::new(&plan, budget, arena) {
                    self.many = frame.movable.len() > MOST_COMPARED;
                    self.construct_one(&frame);
                    let is_of_use = !self.many || self.best.as_ref().is_some_and(|b| b.0 == self.cases.len());
                    if is_of_use {
                        self.cases.push((plan, frame));
                    }
                }
            }
        }
    }

    /// The placements of one plan by every rule.
    ///
    /// What costs nothing needs no other rule; and where objects are too many to compare them all, there is only the
    /// quick one.
    fn construct_one(&mut self, frame: &Frame) {
        let guess = Timing::nominal(frame);
        let mut timing = guess.clone();
        let mut found = vec![Placement::of(frame, &mut timing, quick(frame, &guess))];
        let rules = if self.many { &[] } else { &RULES[..] };
        for &rule in rules {
            let best = found.iter().filter(|p| p.left.is_empty()).map(|p| p.makespan).min();
            if best.is_some_and(|best| best <= frame.nominal()) {
                break;
            }
            let places = construct(frame, &guess, &mut self.seeker, rule);
            found.push(Placement::of(frame, &mut timing, places));
        }
        found.sort_by_key(Placement::rank);
        let case = self.cases.len();
        found.iter().for_each(|placement| self.note(case, placement));
        if self.many {
            return;
        }
        self.tries.extend(found.into_iter().take(OF_ONE_PLAN).map(|placement| (case, placement)));
    }

    /// Improves the best placements with little work, the better half of them with twice as much, and so on.
    fn improve(&mut self, mut work: u64) {
        let (mut count, mut seed) = (IMPROVED, 0);
        let mut progress = Progress::default();
        while count > 0 && !progress.ends(self.limit(), STAGNANT_ROUNDS) {
            let mut tries = std::mem::take(&mut self.tries);
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
            self.tries = tries;
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
            repair(frame, &timing, &mut self.seeker, &mut placement.places, (limit, ATTEMPTS, seed));
            *placement = Placement::of(frame, &mut timing, placement.places.clone());
        }
        improve(frame, &mut timing, &mut self.seeker, placement, (work, seed));
    }
}

/// The planner's plan with addresses: of its plans for the arena and for less, the one with the least makespan found
/// that lies in it; none if none is found.
///
/// Where the planner is ours, swaps are chosen anew for what `plan` runs again.
pub fn place_plan(planner: &Planner, request: &Request, plan: &Plan) -> Option<Placed> {
    place_plan_unless(planner, request, plan, |_| false)
}

/// [`place_plan`] without its thorough part, if what the quick part found, and its makespan, are `enough` although addresses cost more
/// than they may.
pub(crate) fn place_plan_unless(
    planner: &Planner,
    request: &Request,
    plan: &Plan,
    enough: impl FnOnce(u64) -> bool,
) -> Option<Placed> {
    let arena = Arena::of(request);
    let again = |budget, effort| (planner.run)(&Request { budget, effort, ..*request });
    let nominal = plan.schedule.makespan();
    let satisfying = nominal + nominal / 1000 * MOST_SATISFYING_LOSS;
    let makespan = |placed: &Option<Placed>| placed.as_ref().map_or(u64::MAX, |p| p.plan.schedule.makespan());
    if !planner.ours {
        let placed =
            place(arena, request.effort, |budget| again(budget, request.effort).into_iter().collect());
        if makespan(&placed) > satisfying {
            enough(makespan(&placed));
        }
        return placed;
    }
    let placed = |plan: &Plan, effort: u32| {
        Search::from_tight(arena, plan).placed(arena, effort, covers(plan, request.granularity))
    };
    // With little work first: which of the plans lies best shows soon.
    let quick = (request.effort / QUICK).max(1);
    let mut found = vec![(placed(plan, quick), Cow::Borrowed(plan))];
    let others = if request.recompute && plan.problem.ops.len() <= MOST_COMPARED { &LESS[..] } else { &[] };
    for less in others {
        let best = found.iter().map(|(placed, _)| makespan(placed)).min().unwrap_or(u64::MAX);
        if best <= satisfying {
            break;
        }
        let budget = (u128::from(request.budget) * u128::from(1000 - less) / 1000) as u64;
        let plan = again(budget, (request.effort / QUICKER).max(1)).ok();
        let Some(plan) = plan.filter(|plan| plan.schedule.makespan() < best) else { break };
        found.push((placed(&plan, quick), Cow::Owned(plan)));
    }
    found.sort_by_key(|(placed, _)| makespan(placed));
    let mut best = found.first().and_then(|(placed, _)| placed.clone());
    if makespan(&best) > satisfying && enough(makespan(&best)) {
        return best;
    }
    for (_, plan) in found.iter().take(THOROUGHLY) {
        if plan.schedule.makespan() < makespan(&best) && makespan(&best) > satisfying {
            best = [best, placed(plan, request.effort)].into_iter().min_by_key(makespan).flatten();
        }
    }
    best
}

/// Plans for [`place`]: the plan itself for the whole arena, and for any budget the operators of the plan with swaps
/// chosen anew, of whole tensors and, unless tensors travel whole, of ranges.
pub fn covers(plan: &Plan, granularity: Granularity) -> impl FnMut(u64) -> Vec<Plan> + '_ {
    let mut own = Some(plan.clone());
    let ranges = PIECES.into_iter().map(|pieces| optimal::piece_bytes(&plan.problem, pieces));
    let mut sizes = vec![u64::MAX];
    sizes.extend(ranges.filter(|_| granularity == Granularity::Ranges));
    move |budget| {
        let schedules = sizes
            .iter()
            .filter_map(|&piece| optimal::covered(&plan.problem, budget, piece, Manner::Gone).ok());
        let anew = schedules.map(|schedule| Plan { schedule, ..plan.clone() });
        anew.chain(own.take()).collect()
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
                Owner::Workspace(tick) => Run::Workspace(tick),
                Owner::Tensor(tensor) => {
                    Run::Bytes { tensor, begin: address - place.base, end: end - place.base }
                }
            };
            spots.push(Spot { run, from: index[span.first], address });
        }
    }
    spots.sort_unstable_by(|a, b| (a.from, &a.run).cmp(&(b.from, &b.run)));
    Some(Placed { plan: Plan { schedule, ..plan }, spots, edges })
}

/// By tensor, whether its bytes count from the other end.
fn mirrored(frame: &Frame, placement: &Placement) -> SecondaryMap<TensorId, bool> {
    let mut mirrored: SecondaryMap<TensorId, bool> = SecondaryMap::new();
    for (object, facts) in &frame.objects.all {
        if let (Some(tensor), Some(place)) = (facts.tensor(), placement.places[object]) {
            mirrored[tensor] |= place.mirrored;
        }
    }
    mirrored
}

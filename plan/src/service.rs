//! The planning service: one question, one answer. Every command and the pass `plan` call it, so that the same question has the
//! same answer everywhere.

use lmsc_address::pages::{self, Paged, Unpaged};
use lmsc_address::{self as address, Arena, Placed, Spot};
use lmsc_planners::{Configured, Parameters, Planner, Training};
use lmsc_schedule::problem::Problem;
use lmsc_schedule::{self as schedule, Decision, DoesNotFit, Edge, Plan, Request, Room};

use crate::{Floors, host, placing, robust};

/// A question: a plan of the request's problem within the request's budget.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The planner that decides.
    pub planner: &'static Planner,
    /// Its parameters.
    pub parameters: Parameters<'a>,
    /// The problem, the budget, and how to search.
    pub request: Request<'a>,
    /// How the budget is held.
    pub space: Space,
    /// Where addresses in an arena cost much, memory may be mapped in pages of this many bytes instead.
    pub or_pages: Option<u64>,
    /// Whether a step that fits as it is may stay so without addresses, where none are found.
    pub or_as_it_is: bool,
    /// Host memory for swapped tensors.
    pub host_bytes: u64,
    /// The plan loses little where operators or copies are off by this many percent ([`robust`]).
    pub robust: Option<u32>,
}

/// How a plan keeps within the bytes of the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Space {
    /// Bytes are counted; where they lie is the runtime's affair.
    #[default]
    Counted,
    /// Everything has an address in an arena of the budget's size.
    Arena,
    /// Memory is mapped in pages of this many bytes.
    Pages(u64),
}

/// A checked plan, with the edges and addresses that make its memory safe.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The plan, its steps at times that the edges allow.
    pub plan: Plan,
    /// Waits of steps, besides those for data and for the steps before them on their engine.
    pub edges: Vec<Edge>,
    /// Where everything lies; empty unless the question asks for addresses.
    pub spots: Vec<Spot>,
    /// How it keeps within the budget.
    pub space: Space,
    /// The most bytes of the device in use at once; of whole pages, in pages.
    pub peak: u64,
    /// The makespan, in nanoseconds, of the planner's plan where bytes are counted only.
    pub counted_nanos: u64,
}

impl Planned {
    /// The makespan in nanoseconds.
    pub fn nanos(&self) -> u64 {
        self.plan.schedule.makespan()
    }
}

/// Why a question has no plan for an answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Unplanned {
    /// The planner has no plan within the budget.
    #[error(transparent)]
    DoesNotFit(DoesNotFit),
    /// The planner has plans within the budget, but none that moves no more than the host has room for, the second number. The third
    /// are the bytes that its plan without this limit moves.
    #[error("{0}; no more than {1} bytes may leave the device, and the plan without this limit moves {2}")]
    HostIsFull(DoesNotFit, u64, u64),
    /// The bytes of the plan fit the budget, but no addresses were found for them.
    #[error("the plan fits {0} bytes if they are counted, but no addresses were found in them")]
    NoAddresses(u64),
    /// The planner or the address search made a mistake.
    #[error("planner {planner}: {flaw}")]
    Ours {
        /// The name of the planner.
        planner: &'static str,
        /// The mistake.
        flaw: String,
    },
}

/// The plan that answers the question, with addresses where the question asks for them. A checker that shares no code with
/// planners has found it valid. If bytes or pages are counted and the problem fits as it is, the plan of every planner copies
/// nothing.
///
/// # Errors
/// [`Unplanned`].
///
/// # Examples
/// ```
/// use lmsc_plan::planners::{Parameters, Request, planner};
/// use lmsc_plan::problem::{Operator, Problem, Tensor};
/// use lmsc_plan::service::{Question, Space, plan};
/// # use lmsc_ir::Phase;
///
/// let mut problem = Problem::default();
/// let tensor = |bytes| Tensor { bytes, swappable: true, given: false, kept: false };
/// let (a, b) = (problem.tensors.push(tensor(1000)), problem.tensors.push(tensor(500)));
/// let op = |reads, produces| Operator {
///     kind: 0, phase: Phase::Forward, nanos: 5000, workspace: 0, reads, produces, changes: vec![], recomputable: false, lane: 0,
/// };
/// problem.ops = vec![op(vec![], vec![a]), op(vec![], vec![b]), op(vec![b], vec![]), op(vec![a], vec![])];
/// let question = Question {
///     planner: planner("auto").unwrap(),
///     parameters: Parameters::default(),
///     request: Request::new(&problem, 1200),
///     space: Space::Arena,
///     or_pages: None,
///     or_as_it_is: false,
///     host_bytes: u64::MAX,
///     robust: None,
/// };
/// let planned = plan(&question)?;
/// assert!(planned.peak <= 1200 && planned.nanos() >= 20_000);
/// # Ok::<(), lmsc_plan::service::Unplanned>(())
/// ```
pub fn plan(question: &Question<'_>) -> Result<Planned, Unplanned> {
    if let Some(planned) = nothing_moves(question) {
        return Ok(planned);
    }
    if let Some(percent) = question.robust {
        return robust::plan(question, percent).map(|(planned, _)| planned);
    }
    let Question { request, host_bytes, .. } = *question;
    let request = Request { effort: worthwhile(question), ..request };
    // The bytes that the plan without a limit moves, once there is one.
    let mut moved = None;
    let run = |problem: &Problem| match (
        held(&Question { request: Request { problem, ..request }, ..*question }),
        moved,
    ) {
        (Err(Unplanned::DoesNotFit(no)), Some(moved)) => Err(Unplanned::HostIsFull(no, host_bytes, moved)),
        (found, _) => {
            moved = moved.or_else(|| Some(host::bytes(&found.as_ref().ok()?.plan.schedule)));
            found
        }
    };
    host::within(request.problem, host_bytes, |planned: &Planned| &planned.plan, run)
}

/// The plan that runs the operators one after the other and moves nothing, if that answers the question where bytes or pages are
/// counted. It has no addresses.
pub fn nothing_moves(question: &Question<'_>) -> Option<Planned> {
    let Request { problem, budget, .. } = question.request;
    if problem.has_lanes() {
        // One after the other is not how they run.
        return None;
    }
    let plan = Plan::without_copies(problem);
    let counted_nanos = plan.schedule.makespan();
    let (plan, peak) = match question.space {
        Space::Arena => return None,
        Space::Counted => {
            let peak = schedule::check(&plan.problem, &plan.schedule, budget).ok()?;
            (plan, peak)
        }
        Space::Pages(page) => {
            let paged = Paged { plan, edges: Vec::new(), page };
            let peak = pages::check(&paged, budget).ok()?;
            (paged.plan, peak)
        }
    };
    let (edges, spots, space) = (Vec::new(), Vec::new(), question.space);
    Some(Planned { plan, edges, spots, space, peak, counted_nanos })
}

/// The smallest budget for which the problem of the question is known to have a plan that swaps whole tensors.
pub fn least(question: &Question<'_>) -> u64 {
    let Request { problem, alignment, .. } = question.request;
    in_any_space(question, u64::min, |space| match space {
        Space::Counted => problem.floor().1,
        Space::Arena => address::least(problem, alignment),
        Space::Pages(page) => pages::in_pages(problem, page).floor().1,
    })
}

/// The smallest budget for which the problem of the question is known to have a plan that moves nothing.
pub fn peak(question: &Question<'_>) -> u64 {
    let Request { problem, alignment, .. } = question.request;
    in_any_space(question, u64::min, |space| match space {
        Space::Counted => live(problem),
        Space::Arena => address::peak(problem, alignment),
        Space::Pages(page) => live(&pages::in_pages(problem, page)),
    })
}

/// The smallest budgets for which there are plans, for each kind of plan.
pub fn floors(question: &Question<'_>) -> Floors {
    let Request { problem, alignment, .. } = question.request;
    let floors = in_any_space(question, Floors::min, |space| match space {
        Space::Counted => Floors::of(problem),
        Space::Arena => Floors::in_arena(problem, alignment),
        Space::Pages(page) => Floors::of(&pages::in_pages(problem, page)),
    });
    if question.or_as_it_is { floors.min(Floors::all(live(problem))) } else { floors }
}

/// The result for the space of the question, or the smaller of it and the result for its pages.
fn in_any_space<T>(question: &Question<'_>, smaller: fn(T, T) -> T, of: impl Fn(Space) -> T) -> T {
    let first = of(question.space);
    match question.or_pages {
        Some(page) => smaller(first, of(Space::Pages(page))),
        None => first,
    }
}

/// The most bytes that are live at once if nothing leaves.
fn live(problem: &Problem) -> u64 {
    problem.live_by_moment(&problem.uses()).into_iter().max().unwrap_or(0)
}

/// The whole effort is spent on a step that computes for this many nanoseconds, and less in proportion on a shorter
/// one.
const FULL_EFFORT_NANOS: u64 = 20_000_000;

/// At least one part in this many of the effort is spent on any step.
const LEAST_EFFORT_SHARE: u32 = 20;

/// The effort of the request, or for a step that computes for less than [`FULL_EFFORT_NANOS`] nanoseconds less of it, in
/// proportion: half a minute of planning is not worth a millisecond of a step. Counted by the model's times, so the same on
/// every machine.
///
/// Planners of the papers follow their papers, and for one that learns the effort is the number of episodes.
fn worthwhile(question: &Question<'_>) -> u32 {
    let request = &question.request;
    if question.planner.learns || !question.planner.ours {
        return request.effort;
    }
    let nanos = request.problem.compute_nanos().min(FULL_EFFORT_NANOS);
    let part = (u64::from(request.effort) * nanos / FULL_EFFORT_NANOS) as u32;
    part.max(request.effort / LEAST_EFFORT_SHARE).max(request.effort.min(1))
}

/// The planner's plan of the request, held as the space says.
fn held(question: &Question<'_>) -> Result<Planned, Unplanned> {
    let Question { ref request, space, .. } = *question;
    let planner = &question.planner.with(question.parameters);
    match space {
        Space::Counted => in_bytes(planner, request),
        Space::Arena if request.problem.has_lanes() => Err(Unplanned::NoAddresses(request.budget)),
        Space::Pages(page) => in_pages(planner, request, page),
        Space::Arena => match in_arena_or(planner, request, question.or_pages) {
            Err(refusal) if question.or_as_it_is => {
                nothing_moves(&Question { space: Space::Counted, ..*question }).ok_or(refusal)
            }
            found => found,
        },
    }
}

/// The planner's plan, and the bytes that it needs at once where bytes are counted.
fn counted(planner: &Configured<'_>, request: &Request<'_>) -> Result<(Plan, u64), Unplanned> {
    let plan = planner.plan(request).map_err(Unplanned::DoesNotFit)?;
    let peak = schedule::check(&plan.problem, &plan.schedule, request.budget)
        .map_err(|flaw| Unplanned::Ours { planner: planner.planner.name, flaw: flaw.to_string() })?;
    Ok((plan, peak))
}

fn in_bytes(planner: &Configured<'_>, request: &Request<'_>) -> Result<Planned, Unplanned> {
    let (plan, peak) = counted(planner, request)?;
    let edges = schedule::edges(&plan.problem, &plan.schedule, Room::Counted(request.budget))
        .map_err(|flaw| Unplanned::Ours { planner: planner.planner.name, flaw: flaw.to_string() })?;
    let counted_nanos = plan.schedule.makespan();
    Ok(Planned { plan, edges, spots: Vec::new(), space: Space::Counted, peak, counted_nanos })
}

fn in_pages(planner: &Configured<'_>, request: &Request<'_>, page: u64) -> Result<Planned, Unplanned> {
    let ours = |flaw: String| Unplanned::Ours { planner: planner.planner.name, flaw };
    let paged = pages::plan(|request| planner.plan(request), request, page).map_err(|why| match why {
        Unpaged::DoesNotFit(no) => Unplanned::DoesNotFit(no),
        Unpaged::NotInOrder(_) => ours(why.to_string()),
    })?;
    let peak = pages::check(&paged, request.budget).map_err(|flaw| ours(flaw.to_string()))?;
    let counted_nanos = paged.plan.schedule.makespan();
    let (plan, edges) = (paged.plan, paged.edges);
    Ok(Planned { plan, edges, spots: Vec::new(), space: Space::Pages(page), peak, counted_nanos })
}

/// The plan in an arena; or in pages of this size, where its makespan is shorter than that of a quick search for addresses.
fn in_arena_or(
    planner: &Configured<'_>,
    request: &Request<'_>,
    page: Option<u64>,
) -> Result<Planned, Unplanned> {
    let ours = |flaw: String| Unplanned::Ours { planner: planner.planner.name, flaw };
    if live(request.problem) <= request.budget
        && let Some((placed, arena)) = address::at_peak(request)
    {
        let counted_nanos = placed.plan.schedule.makespan();
        return in_arena(request, (placed, arena), counted_nanos).map_err(ours);
    }
    // The observer of a planner that learns sees the plan's episodes, and none of those for other budgets.
    let training = Training { watch: None, ..planner.parameters.training };
    let again = &planner.planner.with(Parameters { training, ..planner.parameters });
    let (plan, _) = match counted(planner, request) {
        Ok(found) => found,
        // In pages less may stay side by side than counts together, so there may be a plan.
        Err(refusal) => return page.and_then(|page| in_pages(again, request, page).ok()).ok_or(refusal),
    };
    let counted_nanos = plan.schedule.makespan();
    let mut paged = None;
    let is_longer_than_paged = |nanos: u64| {
        paged = page.and_then(|page| in_pages(again, request, page).ok());
        if let (Some(page), Some(watch)) = (page, request.watch) {
            watch.decided(|| Decision::Pages { page, nanos: paged.as_ref().map(Planned::nanos) });
        }
        paged.as_ref().is_some_and(|paged| paged.nanos() < nanos)
    };
    let placed = placing::place_plan_unless(again, request, &plan, is_longer_than_paged);
    let placed = placed.map(|placed| (placed, Arena::of(request)));
    if let Some(paged) = paged {
        let placed_nanos = placed.as_ref().map_or(u64::MAX, |(placed, _)| placed.plan.schedule.makespan());
        if paged.nanos() < placed_nanos {
            return Ok(Planned { counted_nanos, ..paged });
        }
    }
    let placed =
        placed.or_else(|| planner.planner.ours.then(|| placing::at_floor(planner.planner, request))?);
    let placed = placed.ok_or(Unplanned::NoAddresses(request.budget))?;
    in_arena(request, placed, counted_nanos).map_err(ours)
}

/// The plan that lies in the arena, if the checkers accept it; the flaw otherwise.
fn in_arena(
    request: &Request<'_>,
    (placed, arena): (Placed, Arena),
    counted_nanos: u64,
) -> Result<Planned, String> {
    address::check(&placed, arena).map_err(|flaw| flaw.to_string())?;
    let Placed { plan, spots, edges } = placed;
    let peak =
        schedule::check(&plan.problem, &plan.schedule, request.budget).map_err(|flaw| flaw.to_string())?;
    Ok(Planned { plan, edges, spots, space: Space::Arena, peak, counted_nanos })
}

use lmsc_ir::{Advice, Bytes, Graph, NodeId, Phase, Phases, words};
use lmsc_plan::bound;
use lmsc_plan::bridge::{Bridge, Stays, Terms};
use lmsc_plan::planners::{self, DoesNotFit, Granularity, Parameters, Planner, Request, planner};
use lmsc_plan::problem::{Problem, TensorId};
use lmsc_plan::saved::{Durations, Saved};
use lmsc_plan::schedule::Instruction;
use lmsc_plan::service::{self, Planned, Question, Space, Unplanned};
use lmsc_plan::{Cause, MemoryTimeline, Refusal};

use crate::apply::apply;
use crate::{AnyPlanner, KeptRecord, Outcome, Pass, PassCx, PassError, SwapRecord};

/// The graph as planners see it, with the costs of the target and its profile.
///
/// Small tensors stay on the device unless the budget is so small that the plan may need their memory.
///
/// # Errors
/// [`PassError::Call`] if the graph already has swaps, or if its sizes and times overflow together.
pub fn bridge(graph: &Graph, cx: &PassCx) -> Result<Bridge, PassError> {
    let costs = cx.costs(graph);
    let phases = Phases::of(graph, |node| cx.scope(node));
    let with = |terms: &Terms| {
        let bridge = Bridge::of(graph, &phases, terms, |node| costs.cost(node));
        bridge.map_err(|why| PassError::Call(why.message()))
    };
    let terms = Terms::new(cx.target().link.for_planning(), MemoryTimeline::of(graph).peak());
    let terms = Terms { weights_stay: cx.consumer.weights_stay, ..terms };
    let coarse = with(&terms)?;
    let has_small = || coarse.stays.values().any(|stays| *stays == Some(Stays::Small));
    let auto = planner("auto").expect("it is registered");
    let least = |budget| service::least(&question(&coarse.problem, auto, budget, cx));
    match cx.question.budget {
        Some(budget) if !cx.consumer.small_stay && has_small() && budget.0 / 9 < least(budget) / 8 => {
            with(&Terms { smallest: Bytes::ZERO, ..terms })
        }
        _ => Ok(coarse),
    }
}

/// Plans in pages are made only for budgets of at least this number of pages.
const LEAST_PAGES: u64 = 64;

/// The question to a planner about `problem`, with the options of `cx`: whether tensors may be split into ranges,
/// how the budget is counted, and how much the planner searches. The pass `plan` and all commands that plan ask
/// this question.
pub fn question<'a>(
    problem: &'a Problem,
    planner: &'static Planner,
    budget: Bytes,
    cx: &'a PassCx,
) -> Question<'a> {
    let space = cx.question.space;
    // With few pages, rounding up to whole pages would waste too much of the budget.
    let page = cx.page().filter(|page| cx.question.or_pages && budget.0 / page.0 >= LEAST_PAGES);
    let or_pages = page.filter(|_| space == Space::Arena).map(|page| page.0);
    let request = Request {
        granularity: if cx.question.ranges { Granularity::Ranges } else { Granularity::Whole },
        recompute: true,
        effort: cx.question.effort.unwrap_or(100),
        scheduler: cx.question.scheduler,
        alignment: cx.alignment().0,
        watch: cx.consumer.watch.as_deref(),
        ..Request::new(problem, budget.0)
    };
    let or_as_it_is = cx.question.or_pages && space == Space::Arena;
    let parameters = Parameters::of(&cx.question.planner_options);
    let (host_bytes, robust) = (cx.host_budget().0, cx.question.robust);
    Question { planner, parameters, request, space, or_pages, or_as_it_is, host_bytes, robust }
}

/// Rewrites the graph as the planner decides: it adds swap-outs, swap-ins, recomputed nodes and edges.
pub(crate) struct Plan;

impl Pass for Plan {
    fn name(&self) -> &'static str {
        "plan"
    }

    fn summary(&self) -> &'static str {
        "copies, repeated nodes and the edges that keep them within the budget, as the planner decides"
    }

    fn run(&self, graph: &mut Graph, cx: &PassCx) -> Result<Outcome, PassError> {
        let call = |what: &str| PassError::Call(what.into());
        let planner = cx.question.planner.and_then(AnyPlanner::of_problems).ok_or_else(|| {
            call("the pass `plan` needs a planner; give one, for example --planner swap-only")
        })?;
        let budget = cx
            .question
            .budget
            .ok_or_else(|| call("the pass `plan` needs a budget; give one, for example --budget 16GiB"))?;
        let fits = cx.memory(graph).peak() <= budget;
        let is_rewritten =
            |&node: &NodeId| graph.node(node).op.is_swap() || graph.node(node).recomputes.is_some();
        let may_be_left = cx.question.space == Space::Counted || graph.has_addresses();
        let is_planned = graph.order().iter().any(is_rewritten);
        if let Some(given) = &cx.question.given {
            let bridge = bridge(graph, cx)?;
            let question = question(&bridge.problem, planner, budget, cx);
            cx.question.order.as_ref().map_or(Ok(()), |order| order.check(graph))?;
            let Saved { planned, saved_nanos, .. } = given.answer(&question, Durations::Anew)?;
            let outcome = carry_out(graph, &bridge, &question, &planned, cx);
            let mut outcome = given.carried_out(outcome)?;
            if planned.nanos() != saved_nanos {
                outcome
                    .remarks
                    .push(format!("it took {} in the times for which it was made", millis(saved_nanos)));
            }
            return Ok(outcome);
        }
        if fits && is_planned {
            return Ok(Outcome::default());
        }
        if fits && may_be_left {
            return unmoved(graph, planner, budget, cx);
        }
        let bridge = bridge(graph, cx)?;
        let question = question(&bridge.problem, planner, budget, cx);
        if service::nothing_moves(&question).is_some() {
            return unmoved(graph, planner, budget, cx);
        }
        let planned =
            service::plan(&question).map_err(|why| unplanned(graph, &bridge, &question, why, cx))?;
        let mut outcome = carry_out(graph, &bridge, &question, &planned, cx)?;
        outcome.remarks.extend(gap(&question, &planned));
        if question.request.is_ended() {
            outcome.remarks.push("the search was ended: the whole search may find less".to_owned());
        }
        Ok(outcome)
    }
}

/// The result for a graph that fits without a rewrite: with `keep_plan`, the plan without copies.
fn unmoved(
    graph: &Graph,
    planner: &'static Planner,
    budget: Bytes,
    cx: &PassCx,
) -> Result<Outcome, PassError> {
    let pages = match cx.question.space {
        Space::Pages(page) => Some(Bytes(page)),
        Space::Counted | Space::Arena => None,
    };
    if !cx.consumer.keep_plan {
        return Ok(Outcome { pages, ..Outcome::default() });
    }
    let bridge = bridge(graph, cx)?;
    let question = question(&bridge.problem, planner, budget, cx);
    let planned = service::nothing_moves(&question);
    let plan = planned.map(|planned| Box::new(saved(graph, &bridge, &question, planned, cx)));
    Ok(Outcome { plan, pages, ..Outcome::default() })
}

/// The plan for the problem of the graph and its question, ready to be written to a file.
pub fn saved(
    graph: &Graph,
    bridge: &Bridge,
    question: &Question<'_>,
    planned: Planned,
    cx: &PassCx,
) -> Saved {
    let names = bridge.nodes.iter().map(|&node| graph.node(node).name.to_string()).collect();
    Saved::of(question, planned, names, Some(cx.target().name))
}

/// Rewrites the graph so that it carries out the plan for its problem.
///
/// # Errors
/// [`PassError::Ours`] if the plan does not belong to the graph, or its edges allow more memory than the budget.
pub fn carry_out(
    graph: &mut Graph,
    bridge: &Bridge,
    question: &Question<'_>,
    planned: &Planned,
    cx: &PassCx,
) -> Result<Outcome, PassError> {
    let ours = |what: String| PassError::Ours { pass: Plan.name(), what };
    let Planned { plan, edges, spots, .. } = planned;
    let budget = Bytes(question.request.budget);
    let phases = Phases::of(graph, |node| cx.scope(node));
    let mut outcome = outcome_of(graph, bridge, question.planner, plan, &phases);
    outcome.plan =
        cx.consumer.keep_plan.then(|| Box::new(saved(graph, bridge, question, planned.clone(), cx)));
    apply(graph, bridge, plan, edges, spots).map_err(|e| ours(e.to_string()))?;
    let peak = cx.memory(graph).peak();
    if peak > budget {
        return Err(ours(format!("the edges allow {peak}, above the budget of {budget}")));
    }
    match planned.space {
        Space::Counted => {}
        Space::Arena => {
            let longer = planned.nanos().saturating_sub(planned.counted_nanos);
            let arena = cx.with_constants(budget);
            outcome.remarks.push(format!("addresses in an arena of {arena} cost {}", millis(longer)));
        }
        Space::Pages(page) => {
            outcome.remarks.push(format!("for memory that is mapped in pages of {}", Bytes(page)));
            outcome.pages = Some(Bytes(page));
        }
    }
    // A plan without copies may still set addresses.
    outcome.changed =
        !edges.is_empty() || !spots.is_empty() || plan.schedule.steps.len() > bridge.nodes.len();
    Ok(outcome)
}

/// The gap between a plan of `auto` and the bound on all plans of its kind, and whether more effort may shorten the
/// plan.
fn gap(question: &Question<'_>, planned: &Planned) -> Option<String> {
    let Request { effort, .. } = question.request;
    if question.planner.name != "auto" {
        return None;
    }
    let least = bound::quick(&question.request);
    let above = planned.nanos().saturating_sub(least.nanos) as f64;
    let gap = format!("{:.1} % above the bound", above * 100.0 / least.nanos.max(1) as f64);
    let more = || format!("{gap}; --effort {} may find less", effort.max(1).saturating_mul(4));
    Some(if least.is_close(planned.nanos()) { gap } else { more() })
}

/// The error of the pass for a planner's failure.
fn unplanned(
    graph: &Graph,
    bridge: &Bridge,
    question: &Question<'_>,
    why: Unplanned,
    cx: &PassCx,
) -> PassError {
    let planner = question.planner.name;
    let refusal = match why {
        Unplanned::Ours { flaw, .. } => return PassError::Ours { pass: Plan.name(), what: flaw },
        Unplanned::DoesNotFit(no) => refusal(graph, bridge, question, no),
        Unplanned::HostIsFull(no, host, moved) => {
            refusal(graph, bridge, question, no).of_host(Bytes(host), Bytes(moved))
        }
        Unplanned::NoAddresses(budget) => {
            Refusal::new(Cause::NoAddresses { planner: Some(planner) }, Bytes(budget), None)
                .with_help("plan with --addresses off, which counts bytes")
        }
    };
    cx.refused(refusal, planner)
}

/// The refusal of a plan that does not fit.
fn refusal(graph: &Graph, bridge: &Bridge, question: &Question<'_>, no: DoesNotFit) -> Refusal {
    let planner = question.planner;
    if no.needed <= no.budget {
        return Refusal::new(Cause::NoPlan { planner: planner.name }, Bytes(no.budget), None)
            .with_help("give a larger --budget, or another --planner");
    }
    let stays = |tensor: TensorId| {
        let facts = &bridge.problem.tensors[tensor];
        facts.given && !facts.swappable
    };
    let staying = bridge.problem.tensors.iter().filter(|&(tensor, _)| stays(tensor));
    let resident = Bytes(staying.map(|(_, facts)| facts.bytes).sum());
    let stays = |storage| bridge.tensor_of(storage).is_none_or(stays);
    let op = bridge.problem.ops.get(no.tick as usize);
    let workspace = Bytes(op.map_or(0, |op| op.workspace));
    let node = bridge.nodes.get(no.tick as usize).copied();
    let budgets = (Bytes(no.budget), Bytes(no.needed));
    Refusal::of_node(graph, &bridge.table, (resident, stays), workspace, budgets, node)
}

fn millis(nanos: u64) -> String {
    format!("{}.{:03} ms", nanos / 1_000_000, nanos / 1_000 % 1_000)
}

/// The outcome for the report: the copies of each storage, the kept storages with their reasons, and a remark with
/// the predicted times.
fn outcome_of(
    graph: &Graph,
    bridge: &Bridge,
    planner: &Planner,
    plan: &planners::Plan,
    phases: &Phases,
) -> Outcome {
    let mut copied = vec![(Bytes::ZERO, Bytes::ZERO, 0usize); bridge.problem.tensors.len()];
    for step in &plan.schedule.steps {
        let (Instruction::Out(piece) | Instruction::In(piece)) = step.instruction else { continue };
        let piece = &plan.schedule.pieces[piece];
        let (out, back, swap_ins) = &mut copied[plan.tensor_origin[piece.tensor].as_u32() as usize];
        if matches!(step.instruction, Instruction::Out(_)) {
            *out += Bytes(piece.len());
        } else {
            *back += Bytes(piece.len());
            *swap_ins += 1;
        }
    }
    let mut repeats = vec![0usize; bridge.problem.tensors.len()];
    plan.tensor_origin.values().for_each(|origin| repeats[origin.as_u32() as usize] += 1);
    let mut outcome = Outcome::default();
    for (tensor, facts) in &bridge.problem.tensors {
        let value = graph.value(bridge.root(tensor)).name.to_string();
        let bytes = Bytes(facts.bytes);
        let (index, root) = (tensor.as_u32() as usize, graph.producer(bridge.root(tensor)));
        let (bytes_out, bytes_in, swap_ins) = copied[index];
        if bytes_out + bytes_in > Bytes::ZERO {
            let link_bytes = bytes;
            outcome.swaps.push(SwapRecord { value, bytes, link_bytes, bytes_out, bytes_in, swap_ins });
        } else if repeats[index] == 1 && root.is_some_and(|n| phases.phase(n) == Phase::Forward) {
            let reason = match bridge.stays[tensor] {
                Some(stays) => stays.describe(graph).into(),
                None => "the plan fits without swapping it".into(),
            };
            outcome.kept.push(KeptRecord { value, bytes, reason });
        }
    }
    outcome.remarks.push(format!(
        "{}: {}, {} run again, predicted {}, of which {} compute and {} compute again",
        planner.name,
        words::count(plan.schedule.steps.len() - plan.problem.ops.len(), "copy"),
        words::count(plan.problem.ops.len() - bridge.problem.ops.len(), "node"),
        millis(plan.schedule.makespan()),
        millis(bridge.problem.compute_nanos()),
        millis(plan.recompute_nanos()),
    ));
    outcome
}

//! `lmsc sweep`: the time of a step over sizes and budgets.

use std::fmt::Write;
use std::ops::RangeInclusive;

use lmsc_ir::{Bytes, Graph};
use lmsc_passes::{PassCx, carry_out, question};
use lmsc_plan::service::{self, Planned, Question, Unplanned};
use lmsc_plan::{Bridge, Floors, bound};
use serde::Serialize;

use crate::budget::{Budget, BudgetRange};
use crate::cli::args::SweepArgs;
use crate::context::{before_planning, knows_ranges, machine, with_budgets};
use crate::files::{PAGES, check_report, write_atomically};
use crate::load::load_quietly;
use crate::progress::Stage;
use crate::report::ProfileFacts;
use crate::{Code, Error, Warning, view, warning};

/// The results. Times are milliseconds.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Sweep {
    /// Version of this format.
    format: u32,
    model: String,
    planner: &'static str,
    target: String,
    sizes: Vec<Size>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<Warning>,
}

/// The plans for one choice of sizes.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Size {
    /// The values of the symbolic dimensions.
    dims: Vec<(String, u64)>,
    /// The share of the times that was measured, if there is a profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<ProfileFacts>,
    /// The time of the step without a memory limit.
    compute_ms: f64,
    /// The smallest budgets for which there is a plan, if one of the budgets has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<super::schemas::FloorFacts>"))]
    smallest_budgets: Option<Floors>,
    points: Vec<Point>,
}

/// The plan for one budget, or none.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Point {
    budget_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<Found>,
    /// The bytes that a step without a plan needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    needed_bytes: Option<u64>,
}

/// A plan that fits.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Found {
    makespan_ms: f64,
    /// No plan within the budget is faster than this.
    lower_bound_ms: f64,
    peak_bytes: u64,
    swapped_bytes: u64,
    returned_bytes: u64,
    recompute_ms: f64,
    /// A hash of the model after the plan rewrote it: the hash that `lmsc MODEL` prints for the same question.
    hash: String,
}

/// Plans the model for every size and budget; returns the results as text or JSON.
///
/// A plan for less memory is also a plan for more: if a larger budget did not lead to a faster plan, the plan of
/// the smaller budget is used, so that the time never rises with memory.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind) for a faulty file or name; [`ErrorKind::Refusal`](crate::ErrorKind) if no size fits any
/// budget.
pub fn sweep(args: &SweepArgs) -> Result<String, Error> {
    args.report.iter().try_for_each(|file| check_report(file, &PAGES))?;
    let planner = args.search.planner.called().of_problems()?;
    if args.search.ranges {
        knows_ranges(planner.into())?;
    }
    let cx = PassCx { machine: machine(&args.machine.machine())?, ..args.search.search().pass_cx() };
    let stage = Stage::new();
    let mut sizes = Vec::new();
    let mut warnings: Vec<Warning> = Vec::new();
    for dims in combinations(&args.dims) {
        let binding = args.step.binding(dims.clone());
        let loaded = load_quietly(&args.model, &binding)?;
        // Each warning is printed once, not for every size.
        let new: Vec<Warning> = loaded.warnings.into_iter().filter(|w| !warnings.contains(w)).collect();
        warning::warn(&new)?;
        warnings.extend(new);
        let original = loaded.graph;
        let budgets = between(&budgets_of(&args.budget, &cx, &original)?, args.steps);
        let mut points: Vec<Point> = Vec::new();
        let mut smallest_budgets = None;
        let mut compute_ms = 0.0;
        for &budget in &budgets {
            stage.show(format!("{} {}", words(&dims), Bytes(budget)));
            let whole = Some(Budget::Bytes(Bytes(budget)));
            let cx = with_budgets(cx.clone(), &original, whole, args.machine.host_budget)?;
            let mut graph = original.clone();
            let bridge = before_planning(&mut graph, &cx)?;
            compute_ms = millis(bridge.problem.compute_nanos());
            let question = question(&bridge.problem, planner, cx.question.budget.unwrap_or_default(), &cx);
            let before = points.last().and_then(|point| point.plan.clone());
            let point = match service::plan(&question) {
                Err(Unplanned::Ours { planner, flaw }) => {
                    return Err(Error::ours(format!("planner {planner}: {flaw}")));
                }
                Err(why) => {
                    smallest_budgets = smallest_budgets
                        .or_else(|| Some(service::floors(&question).beside(cx.question.constants)));
                    let needed = match why {
                        Unplanned::DoesNotFit(no) | Unplanned::HostIsFull(no, ..) => no.needed,
                        _ => 0,
                    };
                    let needed_bytes =
                        before.is_none().then(|| needed.saturating_add(cx.question.constants.0));
                    Point { budget_bytes: budget, plan: before, needed_bytes }
                }
                Ok(planned) => {
                    let found = Found::of(&mut graph, &bridge, &question, &planned, &cx)?;
                    let best = before.filter(|before| before.makespan_ms < found.makespan_ms);
                    let best = best.map(|best| Found { lower_bound_ms: found.lower_bound_ms, ..best });
                    Point { budget_bytes: budget, plan: Some(best.unwrap_or(found)), needed_bytes: None }
                }
            };
            points.push(point);
        }
        sizes.push(Size {
            dims,
            profile: ProfileFacts::of(&cx, &original),
            compute_ms,
            smallest_budgets,
            points,
        });
    }
    stage.done();
    let model = args.model.display().to_string();
    let sweep = Sweep { format: 1, model, planner: planner.name, target: cx.target().name, sizes, warnings };
    if let Some(file) = &args.report {
        let text = if file.extension().is_some_and(|e| e == "json") { sweep.to_json() } else { sweep.page() };
        write_atomically(file, |w| w.write_all(text.as_bytes()))?;
    }
    let text = if args.json { sweep.to_json() } else { sweep.to_text() };
    if sweep.sizes.iter().flat_map(|size| &size.points).any(|point| point.plan.is_some()) {
        Ok(text)
    } else {
        let table = sweep.to_text();
        let message = format!("no size fits any of the budgets\n{}", table.trim_end());
        let error = Error::new(Code::NothingFits, message);
        Err(if args.json { error.with_answer(text) } else { error })
    }
}

impl Found {
    /// The times and memory of the plan, with its bound. The graph is rewritten to carry out the plan.
    fn of(
        graph: &mut Graph,
        bridge: &Bridge,
        question: &Question<'_>,
        planned: &Planned,
        cx: &PassCx,
    ) -> Result<Found, Error> {
        let request = &question.request;
        let bound = bound::best(request);
        bound::certify(request.problem, request.budget, &bound)
            .map_err(|flaw| Error::ours(format!("bound: {flaw}")))?;
        carry_out(graph, bridge, question, planned, cx)?;
        let (swapped_bytes, returned_bytes) = planned.plan.schedule.copied_bytes();
        Ok(Found {
            makespan_ms: millis(planned.nanos()),
            lower_bound_ms: millis(bound.nanos),
            peak_bytes: planned.peak,
            swapped_bytes,
            returned_bytes,
            recompute_ms: millis(planned.plan.recompute_nanos()),
            hash: crate::compile::hash(graph),
        })
    }
}

/// The first and the last budget for a step, in bytes.
fn budgets_of(range: &BudgetRange, cx: &PassCx, graph: &Graph) -> Result<RangeInclusive<u64>, Error> {
    let bytes = |budget: Budget| {
        let cx = with_budgets(cx.clone(), graph, Some(budget), None)?;
        // A budget in bytes is used as given, even if it is below the constants of kernels.
        let least = match budget {
            Budget::Bytes(bytes) => bytes,
            _ => cx.whole_budget().unwrap_or_default(),
        };
        Ok::<_, Error>(least.0)
    };
    let (first, last) = (bytes(range.first)?, bytes(range.last)?);
    if first <= last && first > 0 {
        Ok(first..=last)
    } else {
        Err(Error::new(
            Code::Option,
            format!(
                "--budget: the first budget, {} ({}), is above the last, {} ({}), or zero",
                range.first,
                Bytes(first),
                range.last,
                Bytes(last)
            ),
        ))
    }
}

/// The number of samples of a step with these sizes: the dimension `batch`, or else the only one.
pub(crate) fn samples(dims: &[(String, u64)]) -> Option<u64> {
    let named = dims.iter().find(|(name, _)| name == "batch");
    let only = dims.first().filter(|_| dims.len() == 1);
    named.or(only).map(|&(_, value)| value)
}

/// Every combination of one value per dimension.
fn combinations(dims: &[(String, RangeInclusive<u64>)]) -> Vec<Vec<(String, u64)>> {
    let mut all = vec![Vec::new()];
    for (name, range) in dims {
        let doubled = |value: &u64| value.checked_mul(2).filter(|next| next <= range.end());
        let values: Vec<u64> = std::iter::successors(Some(*range.start()), doubled).collect();
        let with = |before: &Vec<(String, u64)>, value: u64| {
            before.iter().cloned().chain([(name.clone(), value)]).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(|before| values.iter().map(|&value| with(before, value))).collect();
    }
    all
}

/// Budgets from the first to the last of the range, `steps` of them, in geometric progression.
fn between(range: &RangeInclusive<u64>, steps: u32) -> Vec<u64> {
    let (first, last) = (*range.start(), *range.end());
    if first == last || steps == 1 {
        return vec![last];
    }
    let factor = last as f64 / first as f64;
    let at = |step: u32| match step {
        0 => first,
        step if step + 1 == steps => last,
        step => (first as f64 * factor.powf(f64::from(step) / f64::from(steps - 1))) as u64,
    };
    let mut budgets: Vec<u64> = (0..steps).map(at).collect();
    budgets.dedup();
    budgets
}

fn words(dims: &[(String, u64)]) -> String {
    dims.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

impl Sweep {
    fn to_text(&self) -> String {
        let mut text = format!("model     {}\nplanner   {} for {}\n", self.model, self.planner, self.target);
        for size in &self.sizes {
            let dims = words(&size.dims);
            let of = if dims.is_empty() { String::new() } else { format!("{dims}: ") };
            _ = writeln!(text, "\n{of}{:.3} ms if memory were no limit", size.compute_ms);
            _ = size.profile.as_ref().map(|profile| writeln!(text, "{}", profile.to_text()));
            _ = writeln!(
                text,
                "{:>12} {:>12} {:>12} {:>9} {:>12} {:>12} {:>12} {:>14}",
                "budget", "makespan ms", "bound ms", "× compute", "peak", "out", "in", "recomputed ms"
            );
            for point in &size.points {
                let budget = Bytes(point.budget_bytes).to_string();
                _ = match (&point.plan, point.needed_bytes) {
                    (Some(plan), _) => writeln!(
                        text,
                        "{budget:>12} {:>12.3} {:>12.3} {:>9.4} {:>12} {:>12} {:>12} {:>14.3}",
                        plan.makespan_ms,
                        plan.lower_bound_ms,
                        plan.makespan_ms / size.compute_ms,
                        Bytes(plan.peak_bytes).to_string(),
                        Bytes(plan.swapped_bytes).to_string(),
                        Bytes(plan.returned_bytes).to_string(),
                        plan.recompute_ms,
                    ),
                    (None, Some(needed)) if needed > point.budget_bytes => {
                        let needed = Bytes(needed);
                        writeln!(
                            text,
                            "{budget:>12} does not fit: tensors and workspaces of one operator take {needed}"
                        )
                    }
                    (None, _) => writeln!(text, "{budget:>12} does not fit: the planner finds no plan"),
                };
            }
            _ = size.smallest_budgets.map(|floors| writeln!(text, "{floors}"));
        }
        text
    }

    fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a sweep is JSON") + "\n"
    }

    /// A line for each choice of sizes, of samples per second, or steps where nothing says how many samples a step has.
    fn page(&self) -> String {
        let curve = |size: &Size, bound: bool| {
            let plans = size.points.iter().filter_map(|point| Some((point, point.plan.as_ref()?)));
            let time = |plan: &Found| if bound { plan.lower_bound_ms } else { plan.makespan_ms };
            let samples = samples(&size.dims).unwrap_or(1) as f64;
            let rate = |plan: &Found| samples * 1e3 / time(plan).max(f64::MIN_POSITIVE);
            let point = |(point, plan): (&Point, &Found)| {
                serde_json::json!([point.budget_bytes, rate(plan), time(plan), time(plan) / size.compute_ms])
            };
            let points: Vec<_> = plans.map(point).collect();
            let of = if size.dims.is_empty() { self.planner.to_owned() } else { words(&size.dims) };
            let name = if bound { format!("{of}: no plan is faster") } else { of };
            let refused = size.points.iter().filter(|point| !bound && point.plan.is_none());
            let refused: Vec<u64> = refused.map(|point| point.budget_bytes).collect();
            serde_json::json!({ "name": name, "bound": bound, "points": points, "refused": refused })
        };
        let curves = |size| [curve(size, false), curve(size, true)];
        let rate =
            if self.sizes.iter().all(|size| samples(&size.dims).is_some()) { "samples/s" } else { "steps/s" };
        view::page(&serde_json::json!({
            "title": format!("{}: speed over memory", self.model),
            "subtitle": format!("planner {}, target {}; times as modelled", self.planner, self.target),
            "facts": [],
            "sweep": self.sizes.iter().flat_map(curves).collect::<Vec<_>>(),
            "sweep_title": format!("{rate} over the budget"),
            "sweep_x": "budget",
            "sweep_y": rate,
        }))
    }
}

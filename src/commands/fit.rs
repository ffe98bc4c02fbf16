//! `lmsc fit`: the cards that a step fits, the batches with which it fits, and its time there.

use std::collections::BTreeMap;
use std::fmt::Write;

use lmsc_ir::{Bytes, Graph};
use lmsc_passes::{MachineModel, PassCx, PlanRequest, carry_out, question};
use lmsc_plan::bound;
use lmsc_plan::cost::comm::{COMM, NETWORKS};
use lmsc_plan::planners::Planner;
use lmsc_plan::planners::ours::lanes::{never, repeating};
use lmsc_plan::problem::Problem;
use lmsc_plan::ranks::{Ranks, sharded};
use lmsc_plan::service::{self, Planned, Question, Space, Unplanned};
use serde::Serialize;

use crate::cli::args::{FitArgs, FitDim};
use crate::context::{before_planning, machine, step_peak, with_budgets};
use crate::files::{PAGES, check_report, write_atomically};
use crate::job::Machine;
use crate::load::{self, noted_if_idle, noted_if_inference};
use crate::progress::Stage;
use crate::{Code, Error, Warning, view, warning};

/// The cards that are tried if the call names none: one of each common memory size.
const CARDS: [&str; 4] = ["t4", "rtx4090", "l40s", "h100-sxm"];

/// The dimension that is varied if several have no value.
const BATCH: &str = "batch";

/// The largest batch that is tried. A doubled limit costs one more doubling for models that fit everywhere.
const LARGEST: u64 = 1 << 16;

/// The largest batch is found up to this fraction of it: at most four plans after the doubling. A doubled value
/// costs one more plan per card.
const FINENESS: u64 = 16;

/// The search effort of calls that name none, in percent: many plans are made.
const EFFORT: u32 = 10;

/// The results. Times are milliseconds.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Fit {
    /// Version of this format.
    format: u32,
    model: String,
    /// The symbolic dimension that is varied, if there is one.
    dimension: Option<String>,
    planner: &'static str,
    effort: u32,
    cards: Vec<Card>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<Warning>,
}

/// The results for one card.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Card {
    target: String,
    description: String,
    /// The memory that the step may use.
    budget_bytes: u64,
    /// The largest batch that was found to fit without a plan.
    largest_as_it_is: Option<u64>,
    /// The largest batch that was found to fit, with or without a plan.
    largest: Option<u64>,
    /// The smallest batch that was found not to fit.
    refused: Option<u64>,
    points: Vec<Point>,
    /// The steps of one of several ranks that share the parameters, with `--ranks`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ranks: Vec<OnRanks>,
}

/// Whether a step fits a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
enum Fits {
    AsItIs,
    WithAPlan,
    No,
}

/// The result for one batch.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Point {
    batch: Option<u64>,
    fits: Fits,
    /// The memory that the step needs without a plan.
    needed_bytes: u64,
    /// The time of all operators, each run once.
    compute_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<Step>,
}

/// The memory and time of a step that fits.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Step {
    peak_bytes: u64,
    step_ms: f64,
    /// No plan within the memory is faster than this.
    lower_bound_ms: f64,
    /// Steps per second, times the batch if there is one.
    samples_per_second: f64,
}

/// The step of one of several ranks that share the parameters. A time is none where no plan fits. All times are modelled.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct OnRanks {
    /// The batch of a rank.
    batch: Option<u64>,
    ranks: u64,
    network: &'static str,
    /// If parameters are gathered once and stay.
    never_again_ms: Option<f64>,
    /// If all parameters are gathered again for the backward phase.
    always_again_ms: Option<f64>,
    /// If the planner chooses.
    planned_ms: Option<f64>,
    /// No plan within the memory is faster than this.
    lower_bound_ms: f64,
    /// The memory of the plan of the planner's choice.
    peak_bytes: Option<u64>,
    /// The buckets of parameters that are gathered again in it, of those that both phases read.
    gathered_again: usize,
    gathers: usize,
}

/// The cards that the model fits, with batches and times, as text or JSON.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind) for a faulty file or name; [`ErrorKind::Refusal`](crate::ErrorKind) if the model fits no
/// card.
pub fn fit(args: &FitArgs) -> Result<String, Error> {
    args.report.iter().try_for_each(|file| check_report(file, &PAGES))?;
    let call = args.planner.called();
    let planner = call.of_problems()?;
    let effort = args.planner.effort.unwrap_or(EFFORT);
    let names: Vec<&str> =
        if args.gpus.is_empty() { CARDS.to_vec() } else { args.gpus.iter().map(|name| &**name).collect() };
    let machines = names
        .into_iter()
        .map(|name| machine(&Machine { target: Some(name.to_owned()), ..Machine::default() }));
    let machines = machines.collect::<Result<Vec<MachineModel>, Error>>()?;
    let mut steps = Steps::new(args)?;
    if steps.dimension.is_none() && !args.batches.is_empty() {
        let message = "--batch: no dimension of the model is open".to_owned();
        return Err(Error::new(Code::Option, message)
            .with_help("leave it out, or give the model with a symbolic batch"));
    }
    let stage = Stage::new();
    let mut cards: Vec<Card> = Vec::new();
    for machine in machines {
        let question = PlanRequest {
            planner: Some(planner.into()),
            planner_options: call.options.clone(),
            effort: Some(effort),
            space: Space::Arena,
            or_pages: true,
            ..PlanRequest::default()
        };
        let cx = PassCx { machine, question, ..PassCx::default() };
        cards.push(Search { args, planner, cx, stage: &stage, steps: &mut steps }.card()?);
    }
    stage.done();
    let fit = Fit {
        format: 1,
        model: args.model.display().to_string(),
        dimension: steps.dimension,
        planner: planner.name,
        effort,
        cards,
        warnings: steps.warnings,
    };
    if let Some(file) = &args.report {
        let text = if file.extension().is_some_and(|e| e == "json") { fit.to_json() } else { fit.page() };
        write_atomically(file, |w| w.write_all(text.as_bytes()))?;
    }
    let fits = fit.cards.iter().any(|card| {
        let alone = card.points.iter().any(|point| point.fits != Fits::No);
        alone || card.ranks.iter().any(|on| on.planned_ms.is_some())
    });
    match (fits, args.json) {
        (true, true) => Ok(fit.to_json()),
        (true, false) => Ok(fit.to_text()),
        (false, json) => {
            let message = format!("the model fits none of the cards\n{}", fit.to_text().trim_end());
            let error = Error::new(Code::NothingFits, message);
            Err(if json { error.with_answer(fit.to_json()) } else { error })
        }
    }
}

/// The training steps of one model, by batch.
struct Steps<'a> {
    args: &'a FitArgs,
    fixed: Vec<(String, u64)>,
    dimension: Option<String>,
    graphs: BTreeMap<Option<u64>, Graph>,
    warnings: Vec<Warning>,
}

impl<'a> Steps<'a> {
    fn new(args: &'a FitArgs) -> Result<Steps<'a>, Error> {
        let mut fixed = Vec::new();
        let mut asked: Vec<&str> = Vec::new();
        for dim in &args.dims {
            match dim {
                FitDim::Fixed(name, value) => fixed.push((name.clone(), *value)),
                FitDim::Varied(name) => asked.push(name),
            }
        }
        let dimension = match asked[..] {
            [] => varied(load::symbolic(&args.model)?, &fixed)?,
            [name] => Some(name.to_owned()),
            [first, second, ..] => {
                let message = format!("--dim {first}, --dim {second}: one dimension is varied at a time");
                return Err(Error::new(Code::Option, message)
                    .with_help(format!("give --dim {second} a value, such as {second}=128")));
            }
        };
        Ok(Steps { args, fixed, dimension, graphs: BTreeMap::new(), warnings: Vec::new() })
    }

    /// The step with this batch. Each of its warnings is printed once.
    fn step(&mut self, batch: Option<u64>) -> Result<&Graph, Error> {
        if !self.graphs.contains_key(&batch) {
            let mut dims = self.fixed.clone();
            dims.extend(self.dimension.clone().zip(batch));
            let args = self.args;
            let binding = args.step.binding(dims);
            let loaded = load::load_quietly(&args.model, &binding)?;
            let loaded = noted_if_idle(&args.model, noted_if_inference(&args.model, loaded));
            let new = loaded.warnings.into_iter().filter(|warning| !self.warnings.contains(warning));
            let new: Vec<Warning> = new.collect();
            warning::warn(&new)?;
            self.warnings.extend(new);
            self.graphs.insert(batch, loaded.graph);
        }
        Ok(&self.graphs[&batch])
    }
}

/// The dimension to vary, among those without a value.
fn varied(symbolic: Vec<String>, fixed: &[(String, u64)]) -> Result<Option<String>, Error> {
    let mut open: Vec<String> =
        symbolic.into_iter().filter(|name| !fixed.iter().any(|(fixed, _)| fixed == name)).collect();
    if let Some(at) = open.iter().position(|name| name == BATCH) {
        return Ok(Some(open.swap_remove(at)));
    }
    match open.len() {
        0 | 1 => Ok(open.pop()),
        _ => {
            let message =
                format!("the dimensions {} have no value, and none of them is `{BATCH}`", open.join(", "));
            let (batch, other) = (&open[0], &open[1]);
            Err(Error::new(Code::Option, message).with_help(format!(
                "name the one that is the batch, and give the others values: --dim {batch} --dim {other}=128"
            )))
        }
    }
}

/// The search for the batches of one card.
struct Search<'a, 'b> {
    args: &'a FitArgs,
    planner: &'static Planner,
    cx: PassCx,
    stage: &'a Stage,
    steps: &'a mut Steps<'b>,
}

impl Search<'_, '_> {
    fn card(mut self) -> Result<Card, Error> {
        let mut points = BTreeMap::new();
        let mut refused = None;
        if self.steps.dimension.is_none() {
            points.insert(None, self.point(None)?);
        } else if !self.args.batches.is_empty() {
            for &batch in &self.args.batches {
                points.insert(Some(batch), self.point(Some(batch))?);
            }
        } else {
            let mut ask = |points: &mut BTreeMap<_, Point>, batch: u64| {
                let point = self.point(Some(batch))?;
                let fits = point.fits;
                points.insert(Some(batch), point);
                Ok::<_, Error>(fits)
            };
            let (mut as_it_is, mut fits, mut batch) = (0, 0, 1);
            while batch <= LARGEST {
                match ask(&mut points, batch)? {
                    Fits::No => {
                        refused = Some(batch);
                        break;
                    }
                    Fits::WithAPlan => fits = batch,
                    Fits::AsItIs => (as_it_is, fits) = (batch, batch),
                }
                batch *= 2;
            }
            // The first doubled batch that does not fit without a plan.
            let mut above =
                points.iter().find(|(_, point)| point.fits != Fits::AsItIs).and_then(|(&batch, _)| batch);
            while let Some(batch) = above.and_then(|above| between(as_it_is, above)) {
                let point = self.as_it_is(Some(batch))?;
                match point.fits {
                    Fits::AsItIs => {
                        as_it_is = batch;
                        points.insert(Some(batch), point);
                    }
                    _ => above = Some(batch),
                }
            }
            fits = fits.max(as_it_is);
            while let Some(batch) = refused.and_then(|refused| between(fits, refused)) {
                let point = self.point(Some(batch))?;
                match point.fits {
                    Fits::No => refused = Some(batch),
                    _ => {
                        fits = batch;
                        points.insert(Some(batch), point);
                    }
                }
            }
            // Of the batches that do not fit, only the smallest is kept.
            points.retain(|batch, point| point.fits != Fits::No || *batch == refused);
            if let Some(batch) = refused.filter(|batch| !points.contains_key(&Some(*batch))) {
                points.insert(Some(batch), self.point(Some(batch))?);
            }
        }
        let largest = |ok: fn(Fits) -> bool| {
            let batches = points.iter().filter(|(_, point)| ok(point.fits)).map(|(&batch, _)| batch);
            batches.max().flatten()
        };
        let not = points.iter().find(|(_, point)| point.fits == Fits::No).and_then(|(&batch, _)| batch);
        let largest_batch = largest(|fits| fits != Fits::No);
        let asked = match (&self.args.batches[..], largest_batch) {
            ([], Some(batch)) => vec![Some(batch)],
            _ => points
                .keys()
                .copied()
                .take(if self.args.batches.is_empty() { 1 } else { usize::MAX })
                .collect(),
        };
        let mut ranks = Vec::new();
        for &count in &self.args.ranks {
            for &batch in &asked {
                for network in &NETWORKS {
                    ranks.push(self.on_ranks(batch, Ranks { network, count })?);
                }
            }
        }
        let target = self.cx.target();
        Ok(Card {
            target: target.name,
            description: target.description,
            budget_bytes: self.args.budget.bytes(target.device_bytes, || Bytes::ZERO).0,
            largest_as_it_is: largest(|fits| fits == Fits::AsItIs),
            largest: largest_batch,
            refused: not,
            points: points.into_values().collect(),
            ranks,
        })
    }

    /// The options of the machine with the budgets for a step, and the memory that the step needs without a plan.
    fn asked(&mut self, batch: Option<u64>) -> Result<(PassCx, Bytes), Error> {
        let graph = self.steps.step(batch)?;
        let cx = with_budgets(self.cx.clone(), graph, Some(self.args.budget), self.args.host_budget)?;
        let needed = Bytes(step_peak(graph, &cx).0.saturating_add(cx.question.constants.0));
        Ok((cx, needed))
    }

    /// The result for a batch without planning.
    fn as_it_is(&mut self, batch: Option<u64>) -> Result<Point, Error> {
        let (cx, needed) = self.asked(batch)?;
        let mut graph = self.steps.step(batch)?.clone();
        let compute = before_planning(&mut graph, &cx)?.problem.compute_nanos();
        let fits = cx.whole_budget().is_some_and(|budget| needed <= budget);
        let step = fits.then(|| Step::new(needed.0, (compute, compute), batch));
        let fits = if fits { Fits::AsItIs } else { Fits::No };
        Ok(Point { batch, fits, needed_bytes: needed.0, compute_ms: millis(compute), step })
    }

    /// The result for one of several ranks with this batch each.
    fn on_ranks(&mut self, batch: Option<u64>, ranks: Ranks<'_>) -> Result<OnRanks, Error> {
        let (network, count) = (ranks.network.name, ranks.count);
        self.stage.show(format!("{}, {count} ranks, {network}", self.cx.target().name));
        let (cx, _) = self.asked(batch)?;
        let mut graph = self.steps.step(batch)?.clone();
        let bridge = before_planning(&mut graph, &cx)?;
        let problem = sharded(&bridge.problem, ranks)
            .map_err(|flaw| Error::ours(format!("the step of {count} ranks: {flaw}")))?;
        let plan = |problem: &Problem| {
            let asked = question(problem, self.planner, cx.question.budget.unwrap_or_default(), &cx);
            // Plans on several lanes have no addresses.
            let asked = Question { space: Space::Counted, or_pages: None, or_as_it_is: false, ..asked };
            match service::plan(&asked) {
                Ok(planned) => Ok(Some(planned)),
                Err(Unplanned::Ours { planner, flaw }) => {
                    Err(Error::ours(format!("planner {planner}: {flaw}")))
                }
                Err(_) => Ok(None),
            }
        };
        let time = |planned: Option<Planned>| planned.map(|planned| millis(planned.nanos()));
        let always = repeating(&problem, |_| true);
        let (planned, never_again, always_again) = (plan(&problem)?, plan(&never(&problem))?, plan(&always)?);
        let request = question(&problem, self.planner, cx.question.budget.unwrap_or_default(), &cx).request;
        let bound = bound::best(&request);
        bound::certify(&problem, request.budget, &bound)
            .map_err(|flaw| Error::ours(format!("bound: {flaw}")))?;
        let gathers =
            |problem: &Problem| problem.ops.iter().filter(|op| op.lane == COMM && op.recomputable).count();
        let once = gathers(&problem);
        let again = planned.as_ref().map_or(0, |planned| gathers(&planned.plan.problem) - once);
        Ok(OnRanks {
            batch,
            ranks: count,
            network,
            never_again_ms: time(never_again),
            always_again_ms: time(always_again),
            lower_bound_ms: millis(bound.nanos),
            peak_bytes: planned.as_ref().map(|planned| planned.peak.saturating_add(cx.question.constants.0)),
            planned_ms: time(planned),
            gathered_again: again,
            gathers: gathers(&always) - once,
        })
    }

    /// The result for a batch, planned if needed.
    fn point(&mut self, batch: Option<u64>) -> Result<Point, Error> {
        let of = batch.map(|batch| format!(", batch {batch}")).unwrap_or_default();
        self.stage.show(format!("{}{of}", self.cx.target().name));
        let point = self.as_it_is(batch)?;
        if point.fits == Fits::AsItIs {
            return Ok(point);
        }
        let (cx, _) = self.asked(batch)?;
        let mut graph = self.steps.step(batch)?.clone();
        let bridge = before_planning(&mut graph, &cx)?;
        let question = question(&bridge.problem, self.planner, cx.question.budget.unwrap_or_default(), &cx);
        let planned = match service::plan(&question) {
            Ok(planned) => planned,
            Err(Unplanned::Ours { planner, flaw }) => {
                return Err(Error::ours(format!("planner {planner}: {flaw}")));
            }
            Err(_) => return Ok(point),
        };
        let bound = bound::best(&question.request);
        bound::certify(question.request.problem, question.request.budget, &bound)
            .map_err(|flaw| Error::ours(format!("bound: {flaw}")))?;
        carry_out(&mut graph, &bridge, &question, &planned, &cx)?;
        let peak = planned.peak.saturating_add(cx.question.constants.0);
        let step = Step::new(peak, (planned.nanos(), bound.nanos), batch);
        Ok(Point { fits: Fits::WithAPlan, step: Some(step), ..point })
    }
}

/// The midpoint, unless the two are closer than the precision of the search.
fn between(fits: u64, refused: u64) -> Option<u64> {
    let gap = refused.saturating_sub(fits);
    (gap > (refused / FINENESS).max(1)).then_some(fits + gap / 2)
}

impl Step {
    fn new(peak_bytes: u64, (nanos, bound): (u64, u64), batch: Option<u64>) -> Step {
        let seconds = (nanos as f64 / 1e9).max(f64::MIN_POSITIVE);
        Step {
            peak_bytes,
            step_ms: millis(nanos),
            lower_bound_ms: millis(bound),
            samples_per_second: batch.unwrap_or(1) as f64 / seconds,
        }
    }
}

fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

fn percent(of: f64, by: f64) -> String {
    format!("{:.1} %", (of / by.max(f64::MIN_POSITIVE) - 1.0) * 100.0)
}

impl Fit {
    fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("an answer is JSON") + "\n"
    }

    fn to_text(&self) -> String {
        let mut text = format!("model     {}\n", self.model);
        let varied = self.dimension.as_deref().map(|name| format!(", batch is `{name}`")).unwrap_or_default();
        _ = writeln!(text, "planner   {} with {} % of its search{varied}", self.planner, self.effort);
        _ = writeln!(text, "times     as modelled for each card, not measured");
        let rate = self.rate();
        for card in &self.cards {
            _ = writeln!(text, "\n{}, {}: {}", card.target, Bytes(card.budget_bytes), card.description);
            _ = writeln!(
                text,
                "{:>8}  {:<11} {:>12} {:>12} {:>12} {:>12} {:>9} {:>9}",
                "batch", "fits", "needs", "peak", "step ms", rate, "overhead", "gap"
            );
            card.points.iter().for_each(|point| text += &point.to_text());
            text += &card.summary();
            if !card.ranks.is_empty() {
                _ = writeln!(
                    text,
                    "{:>8}  {:>6}  {:<9} {:>12} {:>12} {:>12} {:>12} {:>9}  gathered again",
                    "batch", "ranks", "network", "never ms", "always ms", "planned ms", "peak", "gap"
                );
                card.ranks.iter().for_each(|on| text += &on.to_text());
            }
        }
        text
    }

    fn rate(&self) -> &'static str {
        if self.dimension.is_some() { "samples/s" } else { "steps/s" }
    }

    fn page(&self) -> String {
        let facts = self.cards.iter().map(|card| {
            let largest = match (card.largest, card.largest_as_it_is) {
                (Some(largest), as_it_is) => format!("{largest} ({} without a plan)", as_it_is.unwrap_or(0)),
                (None, _) if card.points.iter().any(|point| point.fits != Fits::No) => "fits".to_owned(),
                (None, _) => "does not fit".to_owned(),
            };
            serde_json::json!([format!("{}: largest batch", card.target), largest])
        });
        let curves = self.cards.iter().map(|card| {
            let steps = card.points.iter().filter_map(|point| Some((point, point.step.as_ref()?)));
            let each = |batch: Option<u64>| batch.unwrap_or(1) as f64;
            let points: Vec<_> = steps
                .map(|(point, step)| {
                    let rate = each(point.batch) * 1e3 / step.step_ms.max(f64::MIN_POSITIVE);
                    let multiple = step.step_ms / point.compute_ms.max(f64::MIN_POSITIVE);
                    serde_json::json!([point.needed_bytes, rate, step.step_ms, multiple, point.batch])
                })
                .collect();
            serde_json::json!({ "name": card.target, "bound": false, "points": points })
        });
        view::page(&serde_json::json!({
            "title": format!("{}: the cards that it fits", self.model),
            "subtitle": format!("planner {}; times as modelled for each card, not measured", self.planner),
            "facts": facts.collect::<Vec<_>>(),
            "sweep": curves.collect::<Vec<_>>(),
            "sweep_title": format!("{} over the memory that the step needs as it is", self.rate()),
            "sweep_x": "memory of the step as it is",
            "sweep_y": self.rate(),
        }))
    }
}

impl Point {
    fn to_text(&self) -> String {
        let batch = self.batch.map_or_else(|| "-".to_owned(), |batch| batch.to_string());
        let fits = match self.fits {
            Fits::AsItIs => "as it is",
            Fits::WithAPlan => "with a plan",
            Fits::No => "no",
        };
        let needs = Bytes(self.needed_bytes).to_string();
        let Some(step) = &self.step else { return format!("{batch:>8}  {fits:<11} {needs:>12}\n") };
        format!(
            "{batch:>8}  {fits:<11} {needs:>12} {:>12} {:>12.3} {:>12.1} {:>9} {:>9}\n",
            Bytes(step.peak_bytes).to_string(),
            step.step_ms,
            step.samples_per_second,
            percent(step.step_ms, self.compute_ms),
            percent(step.step_ms, step.lower_bound_ms),
        )
    }
}

impl OnRanks {
    fn to_text(&self) -> String {
        let batch = self.batch.map_or_else(|| "-".to_owned(), |batch| batch.to_string());
        let ms = |time: Option<f64>| time.map_or_else(|| "-".to_owned(), |time| format!("{time:.3}"));
        let gap = self.planned_ms.map_or_else(|| "-".to_owned(), |time| percent(time, self.lower_bound_ms));
        format!(
            "{batch:>8}  {:>6}  {:<9} {:>12} {:>12} {:>12} {:>12} {gap:>9}  {} of {}\n",
            self.ranks,
            self.network,
            ms(self.never_again_ms),
            ms(self.always_again_ms),
            ms(self.planned_ms),
            self.peak_bytes.map_or_else(|| "-".to_owned(), |peak| Bytes(peak).to_string()),
            self.gathered_again,
            self.gathers,
        )
    }
}

impl Card {
    fn summary(&self) -> String {
        let Some(largest) = self.largest else { return String::new() };
        let of = match (self.largest_as_it_is, self.refused) {
            (Some(as_it_is), _) if as_it_is == largest => "as it is".to_owned(),
            (Some(as_it_is), _) => format!("with a plan, {as_it_is} as it is"),
            (None, _) => "with a plan, none as it is".to_owned(),
        };
        let refused = self.refused.map(|batch| format!("; {batch} does not fit")).unwrap_or_default();
        format!("largest batch found: {largest} {of}{refused}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_is_found_to_a_sixteenth() {
        assert_eq!(between(0, 1), None);
        assert_eq!(between(2, 4), Some(3));
        assert_eq!(between(64, 128), Some(96));
        assert_eq!(between(120, 128), None);
        let fits = |most: u64| {
            let (mut fits, mut refused, mut asked) = (64, 128, 0);
            while let Some(batch) = between(fits, refused) {
                asked += 1;
                if batch <= most { fits = batch } else { refused = batch }
            }
            (fits, asked)
        };
        assert_eq!([fits(64), fits(100), fits(127)], [(64, 4), (100, 4), (120, 3)]);
    }

    #[test]
    fn the_batch_is_varied() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(varied(names(&["batch", "sequence"]), &[]).unwrap().as_deref(), Some("batch"));
        assert_eq!(varied(names(&["n", "t"]), &[("t".to_owned(), 8)]).unwrap().as_deref(), Some("n"));
        assert_eq!(varied(names(&[]), &[]).unwrap(), None);
        assert!(varied(names(&["n", "t"]), &[]).unwrap_err().to_string().contains("--dim n --dim t=128"));
    }
}

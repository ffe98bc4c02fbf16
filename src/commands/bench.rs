//! `lmsc bench`: planners, also those of other programs, on many instances, ranked.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use lmsc_ir::{Bytes, words};
use lmsc_plan::bound::{self, Certificate};
use lmsc_plan::instance::{self, Instance};
use lmsc_plan::planners::{FOREIGN, Granularity, Parameters, Plan, Request};
use lmsc_plan::saved::{Durations, Saved};
use lmsc_plan::service::{self, Planned, Question, Space, Unplanned};
use serde::Serialize;

use super::plan::{has_ranges, of_instance};
use crate::budget::Budget;
use crate::cli::args::BenchArgs;
use crate::files::{check_target, write_atomically};
use crate::planner::{PlannerCall, listed};
use crate::progress::Stage;
use crate::shell::{Ended, Folder, quoted, run};
use crate::{Code, Error, interrupt};

/// The folder whose instances are taken if a call names none.
const INSTANCES: &str = "testdata/instances";

/// At most this many cases without a plan are listed for each planner; the files have all.
const LISTED: usize = 8;

/// A planner of this program, or a command.
struct Contestant {
    name: String,
    kind: Kind,
}

enum Kind {
    Known(PlannerCall),
    /// A line of shell with `{}`, `{memory}` and `{out}`.
    Foreign(String),
}

/// The result, as JSON. Times are milliseconds.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Ranking {
    /// Version of this format.
    format: u32,
    /// The budgets, as the call has them.
    budgets: Vec<String>,
    /// Search effort of the planners of lmsc, in percent.
    effort: u32,
    /// Whether operators may run again.
    recompute: bool,
    /// Whether tensors are copied whole.
    whole: bool,
    /// The planners, the best first.
    planners: Vec<Rank>,
    cases: Vec<Case>,
}

/// A planner over all cases.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Rank {
    planner: String,
    /// The command, of a planner that is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    /// The mean, over the cases in which a planner has a plan, of the best makespan divided by this planner's, 0 where it has none: 1 is
    /// the best in all.
    score: f64,
    /// Number of cases with a valid plan.
    plans: usize,
    /// Number of cases in which no planner is faster.
    best: usize,
    /// The makespan divided by the best one: the geometric mean over the planner's plans, and the most.
    over_best: Option<f64>,
    most_over_best: Option<f64>,
    /// The makespan divided by the bound: the geometric mean over the planner's plans.
    over_bound: Option<f64>,
    /// The time of planning, of all cases together.
    took_ms: f64,
}

/// An instance within a budget.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Case {
    /// The path of the instance.
    instance: String,
    budget: String,
    memory_bytes: u64,
    /// The time of all operators, each run once.
    compute_ms: f64,
    /// No plan that the call allows is faster.
    lower_bound_ms: f64,
    /// The results, in the order of the call.
    results: Vec<Outcome>,
}

/// The plan of one planner in one case, or the reason why there is none.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Outcome {
    planner: String,
    #[serde(flatten)]
    found: Option<Numbers>,
    /// Why there is no plan, or why it does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    none: Option<String>,
    took_ms: f64,
}

/// A valid plan.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Numbers {
    makespan_ms: f64,
    /// The makespan divided by the best of the case.
    over_best: f64,
    over_bound: f64,
    peak_bytes: u64,
    recompute_ms: f64,
    swapped_bytes: u64,
    returned_bytes: u64,
}

/// Plans each instance within each budget with each planner, and ranks them; returns the result as text or JSON.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind) for a file that is no instance and for a command that cannot be run;
/// [`ErrorKind::Interrupted`](crate::ErrorKind) if a signal ended it.
pub fn bench(args: &BenchArgs) -> Result<String, Error> {
    args.csv.iter().try_for_each(|file| check_target(file))?;
    let contestants = contestants(args)?;
    let instances = instances(&args.instance)?;
    let folder = Folder::new("bench")?;
    let bench = Bench { args, folder, stop: interrupt::listen() };
    let stage = Stage::new();
    let mut cases = Vec::new();
    for (path, instance) in &instances {
        let text = instance::to_json(&instance.problem, &instance.name);
        let problem = bench.folder.0.join("instance.json");
        fs::write(&problem, text).map_err(|e| Error::writing(&problem, &e))?;
        for budget in &args.memory {
            cases.push(bench.case(path, instance, *budget, &contestants, &stage)?);
        }
    }
    stage.done();
    let planners = ranked(&contestants, &cases);
    let budgets = args.memory.iter().map(Budget::to_string).collect();
    let &BenchArgs { recompute, whole, effort, .. } = args;
    let ranking = Ranking { format: 1, budgets, effort, recompute, whole, planners, cases };
    if let Some(file) = &args.csv {
        write_atomically(file, |w| w.write_all(ranking.to_csv().as_bytes()))?;
    }
    Ok(if args.json { ranking.to_json() } else { ranking.to_text() })
}

/// The planners of the call, commands first, each with a name of its own.
fn contestants(args: &BenchArgs) -> Result<Vec<Contestant>, Error> {
    let (lines, names): (Vec<String>, Vec<String>) =
        args.planner.iter().cloned().partition(|text| text.contains("{}"));
    let mut known: Vec<Contestant> = Vec::new();
    for call in listed(&names)?.into_iter().chain(listed(&args.compare)?) {
        call.of_problems()?;
        let name = call.to_string();
        if known.iter().all(|other| other.name != name) {
            known.push(Contestant { name, kind: Kind::Known(call) });
        }
    }
    let mut taken: BTreeMap<String, u32> = known.iter().map(|it| (it.name.clone(), 1)).collect();
    let mut contestants = lines.iter().map(|line| foreign(line)).collect::<Result<Vec<_>, Error>>()?;
    for contestant in &mut contestants {
        let times = taken.entry(contestant.name.clone()).or_default();
        *times += 1;
        if *times > 1 {
            contestant.name += &format!(" ({times})");
        }
    }
    contestants.extend(known);
    Ok(contestants)
}

/// The command, named by the word before its first place holder: `mine` of `python3 mine.py {} {memory} {out}`.
fn foreign(line: &str) -> Result<Contestant, Error> {
    if !line.contains("{out}") {
        let message = format!("--planner: `{line}` does not say where its plan is to be written");
        return Err(Error::new(Code::Option, message)
            .with_help("give a command such as 'python3 mine.py {} {memory} {out}'"));
    }
    let before = line.split(['{', '<', '>']).next().unwrap_or_default();
    let program = before.split_whitespace().rfind(|word| !word.starts_with('-'));
    let name = program.and_then(|word| Path::new(word).file_stem()?.to_str()).unwrap_or("command");
    Ok(Contestant { name: name.to_owned(), kind: Kind::Foreign(line.to_owned()) })
}

/// The instances of the paths, in the order of the call; those of a folder in the order of their names.
fn instances(paths: &[PathBuf]) -> Result<Vec<(PathBuf, Instance)>, Error> {
    let standard = [PathBuf::from(INSTANCES)];
    let paths = if paths.is_empty() { &standard[..] } else { paths };
    let mut found = Vec::new();
    for path in paths {
        let help = "name instances, or folders of them; `lmsc plan MODEL --emit-instance` writes one";
        if path.is_dir() {
            let entries = fs::read_dir(path).and_then(|entries| {
                entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<PathBuf>>>()
            });
            let mut files = entries.map_err(|e| Error::reading(path, &e))?;
            files.sort();
            let before = found.len();
            for file in files {
                // Other JSON may lie beside instances.
                let text =
                    fs::read_to_string(&file).ok().filter(|_| file.extension().is_some_and(|e| e == "json"));
                found.extend(text.and_then(|text| Some((file, Instance::parse(&text).ok()?))));
            }
            if found.len() == before {
                return Err(Error::in_file(Code::Malformed, path, "it has no instance").with_help(help));
            }
            continue;
        }
        let text = fs::read_to_string(path).map_err(|e| Error::reading(path, &e).with_help(help))?;
        let instance = Instance::parse(&text).map_err(|e| Error::in_file(Code::Malformed, path, e))?;
        found.push((path.clone(), instance));
    }
    Ok(found)
}

struct Bench<'a> {
    args: &'a BenchArgs,
    /// Has the instance for the commands, and their plans and messages.
    folder: Folder,
    stop: Arc<AtomicBool>,
}

impl Bench<'_> {
    fn case(
        &self,
        path: &Path,
        instance: &Instance,
        budget: Budget,
        contestants: &[Contestant],
        stage: &Stage,
    ) -> Result<Case, Error> {
        let problem = &instance.problem;
        let memory = of_instance(budget, problem)?;
        let granularity = if self.args.whole { Granularity::Whole } else { Granularity::Ranges };
        let request = Request {
            granularity,
            recompute: self.args.recompute,
            effort: self.args.effort,
            ..Request::new(problem, memory.0)
        };
        let bound = OnceCell::new();
        let bound = || -> Result<&Certificate, Error> {
            let bound = bound.get_or_init(|| bound::best(&request));
            bound::certify(problem, memory.0, bound).map_err(|flaw| Error::ours(format!("bound: {flaw}")))?;
            Ok(bound)
        };
        let mut results = Vec::new();
        for contestant in contestants {
            stage.show(format!("{} within {memory}: {}", instance.name, contestant.name));
            let began = Instant::now();
            let found = match &contestant.kind {
                Kind::Known(call) => known(call, &request)?,
                Kind::Foreign(line) => self.foreign(line, &request)?,
            };
            let found = found.and_then(|planned| self.allowed(&planned.plan).map(|()| planned));
            results.push((found, began.elapsed().as_secs_f64() * 1e3));
        }
        let bound = bound()?.nanos;
        let nanos = |found: &Result<Planned, String>| found.as_ref().ok().map(Planned::nanos);
        let best = results.iter().filter_map(|(found, _)| nanos(found)).min().unwrap_or(1).max(1);
        let results = results.into_iter().zip(contestants).map(|((found, took_ms), contestant)| {
            let planner = contestant.name.clone();
            let (found, none) = match found {
                Ok(planned) if planned.nanos() < bound => {
                    let nanos = planned.nanos();
                    return Err(Error::ours(format!(
                        "planner {planner}: {nanos} ns, below the bound {bound}"
                    )));
                }
                Ok(planned) => (Some(Numbers::of(&planned, best, bound)), None),
                Err(none) => (None, Some(none)),
            };
            Ok(Outcome { planner, found, none, took_ms: (took_ms * 1e3).round() / 1e3 })
        });
        Ok(Case {
            results: results.collect::<Result<_, Error>>()?,
            instance: path.display().to_string(),
            budget: budget.to_string(),
            memory_bytes: memory.0,
            compute_ms: millis(problem.compute_nanos()),
            lower_bound_ms: millis(bound),
        })
    }

    /// The plan that the command writes for the instance in the folder, checked; the inner `Err` says why there is none.
    fn foreign(&self, line: &str, request: &Request<'_>) -> Result<Result<Planned, String>, Error> {
        let file = |name: &str| self.folder.0.join(name);
        let (out, messages) = (file("plan.json"), file("messages.txt"));
        // A plan of the case before must not be taken for one of this.
        _ = fs::remove_file(&out);
        let told = File::create(&messages).map_err(|e| Error::writing(&messages, &e))?;
        let words = [
            ("{}", quoted(&file("instance.json"))),
            ("{memory}", request.budget.to_string()),
            ("{out}", quoted(&out)),
        ];
        let command = words.iter().fold(line.to_owned(), |line, (holder, word)| line.replace(holder, word));
        let limit = Duration::from_secs_f64(self.args.timeout);
        let ended = run(&command, limit, &self.stop, Stdio::from(told));
        let wrong = |why: String| Error::new(Code::Option, format!("--planner: `{line}` {why}"));
        match ended.map_err(|e| wrong(format!("cannot be run: {e}")))? {
            Ended::Stopped => return Err(Error::new(Code::Interrupted, "ranking was ended by a signal")),
            Ended::Late => return Ok(Err(format!("it ran for more than {} s", self.args.timeout))),
            Ended::Exited(status) if matches!(status.code(), Some(126 | 127)) => {
                let help = "give a line of shell that runs it in this folder";
                return Err(wrong("is not found, or cannot be run".to_owned()).with_help(help));
            }
            Ended::Exited(status) if !status.success() => {
                let messages = fs::read(&messages).unwrap_or_default();
                let messages = String::from_utf8_lossy(&messages);
                let last = messages.lines().rev().map(str::trim).find(|line| !line.is_empty());
                let last = last.map(|line| format!(": {line}")).unwrap_or_default();
                return Ok(Err(format!("{status}{last}")));
            }
            Ended::Exited(_) => {}
        }
        let Ok(text) = fs::read_to_string(&out) else {
            return Ok(Err("it wrote no plan".to_owned()));
        };
        let question = Question { planner: &FOREIGN, ..question(request) };
        Ok(match Saved::answer(&text, &question, Durations::AsSaved) {
            Ok(saved) => Ok(saved.planned),
            Err(why) => Err(format!("not valid: {}", why.fault())),
        })
    }

    /// Whether the plan is of the kind that is ranked.
    fn allowed(&self, plan: &Plan) -> Result<(), String> {
        if !self.args.recompute
            && plan.op_origin.len() > plan.op_origin.iter().max().map_or(0, |&op| op as usize + 1)
        {
            return Err("it runs operators again, which --recompute would allow".to_owned());
        }
        if self.args.whole && has_ranges(plan) {
            return Err("it copies ranges of tensors, which --whole does not allow".to_owned());
        }
        Ok(())
    }
}

fn question<'a>(request: &Request<'a>) -> Question<'a> {
    Question {
        planner: &FOREIGN,
        parameters: Parameters::default(),
        request: *request,
        space: Space::Counted,
        or_pages: None,
        or_as_it_is: false,
        robust: None,
        host_bytes: u64::MAX,
    }
}

/// The plan of a planner of this program; the inner `Err` says why there is none.
fn known(call: &PlannerCall, request: &Request<'_>) -> Result<Result<Planned, String>, Error> {
    let (planner, parameters) = (call.of_problems()?, Parameters::of(&call.options));
    match service::plan(&Question { planner, parameters, ..question(request) }) {
        Ok(planned) => Ok(Ok(planned)),
        Err(Unplanned::Ours { planner, flaw }) => Err(Error::ours(format!("planner {planner}: {flaw}"))),
        Err(why) => Ok(Err(why.to_string())),
    }
}

impl Numbers {
    fn of(planned: &Planned, best: u64, bound: u64) -> Numbers {
        let over = |nanos: u64| (planned.nanos() as f64 / nanos.max(1) as f64 * 1e6).round() / 1e6;
        let (swapped_bytes, returned_bytes) = planned.plan.schedule.copied_bytes();
        Numbers {
            makespan_ms: millis(planned.nanos()),
            over_best: over(best),
            over_bound: over(bound),
            peak_bytes: planned.peak,
            recompute_ms: millis(planned.plan.recompute_nanos()),
            swapped_bytes,
            returned_bytes,
        }
    }
}

/// The planners by their scores; of equal ones the first of the call comes first.
fn ranked(contestants: &[Contestant], cases: &[Case]) -> Vec<Rank> {
    // A case in which no planner has a plan ranks nobody.
    let planned =
        cases.iter().filter(|case| case.results.iter().any(|result| result.found.is_some())).count();
    let rank = |(place, contestant): (usize, &Contestant)| {
        let results = || cases.iter().map(|case| &case.results[place]);
        let plans: Vec<Numbers> = results().filter_map(|result| result.found).collect();
        let score = plans.iter().fold(0.0, |sum, plan| sum + 1.0 / plan.over_best) / planned.max(1) as f64;
        let mean = |of: fn(&Numbers) -> f64| {
            let logs: f64 = plans.iter().map(|plan| of(plan).ln()).sum();
            (!plans.is_empty()).then(|| rounded((logs / plans.len() as f64).exp()))
        };
        Rank {
            planner: contestant.name.clone(),
            command: if let Kind::Foreign(line) = &contestant.kind { Some(line.clone()) } else { None },
            score: rounded(score),
            plans: plans.len(),
            best: plans.iter().filter(|plan| plan.over_best <= 1.0).count(),
            over_best: mean(|plan| plan.over_best),
            most_over_best: plans.iter().map(|plan| plan.over_best).max_by(f64::total_cmp),
            over_bound: mean(|plan| plan.over_bound),
            took_ms: results().map(|result| result.took_ms).sum::<f64>().round(),
        }
    };
    let mut ranks: Vec<Rank> = contestants.iter().enumerate().map(rank).collect();
    ranks.sort_by(|a, b| b.score.total_cmp(&a.score));
    ranks
}

fn rounded(ratio: f64) -> f64 {
    (ratio * 1e6).round() / 1e6
}

fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

impl Ranking {
    fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a ranking is JSON") + "\n"
    }

    fn to_text(&self) -> String {
        let of = match (self.whole, self.recompute) {
            (true, true) => "whole tensors are copied, operators may run again",
            (true, false) => "whole tensors are copied, no operator runs again",
            (false, true) => "ranges of tensors are copied, operators may run again",
            (false, false) => "ranges of tensors are copied, no operator runs again",
        };
        let mut text = format!(
            "cases     {}, budgets {}\nplans     {of}\neffort    {} % of the search\n\n",
            self.cases.len(),
            self.budgets.join(" "),
            self.effort
        );
        let width = self.planners.iter().map(|rank| rank.planner.len()).max().unwrap_or(0).max(12);
        _ = writeln!(
            text,
            "{:<width$} {:>7} {:>6} {:>6} {:>8} {:>8} {:>8} {:>10}",
            "planner", "score", "plans", "best", "× best", "at most", "× bound", "took ms"
        );
        for rank in &self.planners {
            let ratio = |ratio: Option<f64>| ratio.map_or_else(|| "-".to_owned(), |it| format!("{it:.4}"));
            _ = writeln!(
                text,
                "{:<width$} {:>7.4} {:>6} {:>6} {:>8} {:>8} {:>8} {:>10.0}",
                rank.planner,
                rank.score,
                rank.plans,
                rank.best,
                ratio(rank.over_best),
                ratio(rank.most_over_best),
                ratio(rank.over_bound),
                rank.took_ms
            );
        }
        for rank in &self.planners {
            let of = |case: &Case| {
                case.results.iter().find(|it| it.planner == rank.planner).and_then(|it| it.none.clone())
            };
            let none: Vec<(&Case, String)> =
                self.cases.iter().filter_map(|case| Some((case, of(case)?))).collect();
            if none.is_empty() {
                continue;
            }
            _ = writeln!(text, "\n{} has no plan in {}:", rank.planner, words::count(none.len(), "case"));
            for (case, why) in none.iter().take(LISTED) {
                _ = writeln!(text, "  {} within {}: {why}", case.instance, Bytes(case.memory_bytes));
            }
            if none.len() > LISTED {
                _ = writeln!(text, "  and {} more, which --json and --csv list", none.len() - LISTED);
            }
        }
        text
    }

    /// A line for each planner and case.
    fn to_csv(&self) -> String {
        let mut text = "instance,budget,memory_bytes,compute_ms,lower_bound_ms,planner,makespan_ms,over_best,over_bound,\
                        peak_bytes,recompute_ms,swapped_bytes,returned_bytes,took_ms,none\n"
            .to_owned();
        for case in &self.cases {
            for result in &case.results {
                let Case { instance, budget, memory_bytes, compute_ms, lower_bound_ms, .. } = case;
                let found = match &result.found {
                    Some(plan) => format!(
                        "{},{},{},{},{},{},{}",
                        plan.makespan_ms,
                        plan.over_best,
                        plan.over_bound,
                        plan.peak_bytes,
                        plan.recompute_ms,
                        plan.swapped_bytes,
                        plan.returned_bytes
                    ),
                    None => ",,,,,,".to_owned(),
                };
                _ = writeln!(
                    text,
                    "{},{budget},{memory_bytes},{compute_ms},{lower_bound_ms},{},{found},{},{}",
                    field(instance),
                    field(&result.planner),
                    result.took_ms,
                    field(result.none.as_deref().unwrap_or_default()),
                );
            }
        }
        text
    }
}

/// The text as a field of CSV, as RFC 4180 has it.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

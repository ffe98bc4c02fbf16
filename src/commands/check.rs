//! `lmsc check`: checks a plan, a schedule or a certificate with code that shares nothing with the planners.

use std::path::Path;

use lmsc_ir::Bytes;
use lmsc_passes::{GivenOrder, GivenPlan, PassCx, PassError, PlanRequest};
use lmsc_plan::bound::{self, Certificate, Proof};
use lmsc_plan::planners::Request;
use lmsc_plan::saved::{self, Durations, schedule};
use lmsc_plan::service::{Planned, Space};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::plan::Task;
use crate::cli::args::CheckArgs;
use crate::known::PLANNERS;
use crate::planner::PlannerCall;
use crate::{Code, Error};

/// The file and the result of the check, as JSON.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Verdict {
    /// Version of this format.
    format: u32,
    file: String,
    /// `plan`, `schedule` or `certificate`.
    kind: &'static str,
    valid: bool,
    /// The path of the model or the instance.
    of: String,
    /// The first fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
    #[serde(flatten)]
    facts: Option<Facts>,
}

/// The numbers of a valid file.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Facts {
    memory_bytes: u64,
    /// The planner that made a plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    planner: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    makespan_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    peak_bytes: Option<u64>,
    /// The lower bound of a certificate: no plan of its kind is faster.
    #[serde(skip_serializing_if = "Option::is_none")]
    lower_bound_ms: Option<f64>,
    /// The hash of the model after a plan rewrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<String>,
    /// The checks, in words.
    checked: String,
}

/// The fields that tell the kinds of files apart.
#[derive(Deserialize)]
struct Outline {
    #[serde(default)]
    format: Value,
    #[serde(default)]
    nanos: Value,
    #[serde(default)]
    proof: Value,
    /// The names of a model's nodes in the planned order.
    #[serde(default)]
    nodes: Vec<String>,
}

const WRITTEN_BY: &str = "give a file that --save-plan, --schedule or --certificate has written";

enum Kind {
    Plan(Box<GivenPlan>),
    Schedule,
    Certificate(Box<Certificate>),
}

impl Kind {
    fn name(&self) -> &'static str {
        match self {
            Kind::Plan(_) => "plan",
            Kind::Schedule => "schedule",
            Kind::Certificate(_) => "certificate",
        }
    }
}

/// Checks the file and returns the result as text or JSON.
///
/// # Errors
/// [`ErrorKind::Refusal`](crate::ErrorKind) if the file is not valid; [`ErrorKind::Input`](crate::ErrorKind) if it is not a plan, a
/// schedule or a certificate.
pub fn check_file(args: &CheckArgs) -> Result<String, Error> {
    let path = &args.file;
    let text = std::fs::read_to_string(path).map_err(|e| Error::reading(path, &e).with_help(WRITTEN_BY))?;
    let (kind, nodes) = kind(path, &text)?;
    if args.memory.is_none() && !matches!(kind, Kind::Plan(_)) {
        let message = format!("a {} is checked within some memory, and nothing says how much", kind.name());
        return Err(
            Error::new(Code::Option, message).with_help("give --budget, as it was given to `lmsc plan`")
        );
    }
    let found = checked(args, &text, &kind, nodes);
    let (of, file) = (named_by(args), path.display().to_string());
    let verdict =
        |valid, fault, facts| Verdict { format: 1, file, kind: kind.name(), valid, of, fault, facts };
    match found {
        Ok(facts) => {
            let verdict = verdict(true, None, Some(facts));
            Ok(if args.json { verdict.to_json() + "\n" } else { verdict.to_text() })
        }
        Err(Unchecked::NotValid(fault)) => {
            let error = Error::new(Code::NotValid, format!("{}: not valid: {fault}", path.display()));
            Err(if args.json {
                error.with_answer(verdict(false, Some(fault), None).to_json())
            } else {
                error
            })
        }
        Err(Unchecked::Error(error)) => Err(error),
    }
}

/// The reason why a file has no facts.
enum Unchecked {
    /// The file is not valid, for this reason.
    NotValid(String),
    /// The file could not be checked.
    Error(Error),
}

impl From<Error> for Unchecked {
    fn from(error: Error) -> Unchecked {
        match error.fault() {
            Some(fault) => Unchecked::NotValid(fault.to_owned()),
            None => Unchecked::Error(error),
        }
    }
}

impl From<PassError> for Unchecked {
    fn from(error: PassError) -> Unchecked {
        Unchecked::from(Error::from(error))
    }
}

/// The kind of the file, and the order of the model's nodes if the file has it.
fn kind(path: &Path, text: &str) -> Result<(Kind, Vec<String>), Error> {
    let unknown = |what: String| Error::in_file(Code::Malformed, path, what).with_help(WRITTEN_BY);
    let outline: Outline =
        serde_json::from_str(text).map_err(|why| unknown(format!("it is not JSON of lmsc: {why}")))?;
    let kind = match (&outline.format, &outline.nanos, &outline.proof) {
        (Value::String(format), ..) if format == saved::FORMAT => {
            Kind::Plan(Box::new(GivenPlan::new(path.display().to_string(), text.to_owned(), PLANNERS)?))
        }
        (Value::String(format), ..) if format == schedule::FORMAT => Kind::Schedule,
        (Value::String(format), ..) => {
            return Err(unknown(format!("its format is `{format}`, which is no plan and no schedule")));
        }
        (_, nanos, proof) if !nanos.is_null() && !proof.is_null() => {
            let certificate = serde_json::json!({ "nanos": nanos, "proof": proof });
            let certificate = serde_json::from_value(certificate);
            Kind::Certificate(certificate.map_err(|why| unknown(format!("it is not a certificate: {why}")))?)
        }
        _ => return Err(unknown("it is no plan, no schedule and no certificate".to_owned())),
    };
    Ok((kind, outline.nodes))
}

/// The facts of a valid file.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind) if the file is not valid.
fn checked(args: &CheckArgs, text: &str, kind: &Kind, nodes: Vec<String>) -> Result<Facts, Unchecked> {
    let file = &args.file;
    let given = if let Kind::Plan(given) = kind { Some((**given).clone()) } else { None };
    let order = GivenOrder { name: file.display().to_string(), nodes };
    let order = (!order.nodes.is_empty()).then(|| order.into());
    let planner =
        given.as_ref().map_or_else(|| PlannerCall::default().of_problems(), |given| Ok(given.planner))?;
    let asked = PassCx {
        question: PlanRequest { planner: Some(planner.into()), order, ..PlanRequest::default() },
        ..PassCx::default()
    };
    let mut task = Task::of(&args.task, args.memory, asked, given)?;
    if let Some(duplex) = args.duplex {
        task.set_duplex(duplex);
    }
    let question = task.question(planner, false, true);
    let memory_bytes = task.memory().0;
    let facts = Facts { memory_bytes, ..Facts::default() };
    let of_plan = |planned: &Planned, facts: Facts| Facts {
        makespan_ms: Some(millis(planned.nanos())),
        peak_bytes: Some(planned.peak),
        ..facts
    };
    match kind {
        Kind::Plan(given) => {
            let planned = given.answer(&question, Durations::AsSaved)?.planned;
            let hash = task.rewritten(&question, &planned)?.map(|rewritten| rewritten.hash);
            let space = match planned.space {
                Space::Counted => "bytes are counted",
                Space::Arena => "addresses do not overlap",
                Space::Pages(_) => "pages are counted",
            };
            let checked = format!("{space}, in any timing");
            Ok(of_plan(&planned, Facts { planner: Some(given.head.planner.clone()), hash, checked, ..facts }))
        }
        Kind::Schedule => {
            let planned = schedule::parse(text, &question.request);
            let planned = planned.map_err(|why| {
                if why.is_unreadable() {
                    Unchecked::Error(
                        Error::in_file(Code::Malformed, file, &why)
                            .with_help("write it again, with `lmsc plan --schedule`"),
                    )
                } else {
                    Unchecked::NotValid(why.fault())
                }
            })?;
            let checked = match planned.space {
                Space::Arena => "addresses do not overlap, in any timing",
                _ => "bytes are counted, at the times of its steps",
            };
            Ok(of_plan(&planned, Facts { checked: checked.to_owned(), ..facts }))
        }
        Kind::Certificate(certificate) => {
            let Request { problem, budget, .. } = question.request;
            let nanos = bound::certify(problem, budget, certificate)
                .map_err(|why| Unchecked::NotValid(why.to_string()))?;
            let checked = kind_of(&certificate.proof).to_owned();
            Ok(Facts { lower_bound_ms: Some(millis(nanos)), checked, ..facts })
        }
    }
}

/// The plans to which a proof applies.
fn kind_of(proof: &Proof) -> &'static str {
    match proof {
        Proof::Paper { .. } | Proof::Swap { .. } | Proof::Around { .. } | Proof::Prices { .. } => {
            "all plans that only swap"
        }
        Proof::Whole { .. } => "all plans that only swap, and whole tensors",
        Proof::Chain { .. } | Proof::Joint { .. } => "all plans that swap and recompute",
    }
}

/// The name of the model or the instance.
fn named_by(args: &CheckArgs) -> String {
    let task = args.task.model.iter().chain(&args.task.instance).next();
    task.map(|path| path.display().to_string()).unwrap_or_default()
}

impl Verdict {
    fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a verdict is JSON")
    }

    fn to_text(&self) -> String {
        let Verdict { file, kind, of, facts, .. } = self;
        let Some(facts) = facts else { return String::new() };
        let (within, checked) = (Bytes(facts.memory_bytes), &facts.checked);
        let by =
            facts.planner.as_ref().map(|planner| format!(" by the planner {planner}")).unwrap_or_default();
        let numbers = match (facts.makespan_ms, facts.peak_bytes, facts.lower_bound_ms) {
            (Some(makespan), Some(peak), _) => format!("makespan {makespan:.3} ms, peak {}", Bytes(peak)),
            (.., Some(bound)) => format!("bound {bound:.3} ms"),
            _ => String::new(),
        };
        format!("valid: {file} is a {kind}{by} for {of} within {within}: {numbers} ({checked})\n")
    }
}

fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

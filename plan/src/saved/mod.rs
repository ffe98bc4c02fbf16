//! Plans and schedules as files: JSON of the formats `lmsc-plan-1`, which holds everything that executing a plan needs
//! besides its problem, and `lmsc-schedule-1`, which is for other programs to read.
//!
//! Files are not trusted: a file becomes a plan of the problem only if the checkers of [`lmsc_schedule`],
//! [`lmsc_address`] and [`lmsc_address::pages`] accept it.

mod file;
pub mod schedule;
#[cfg(test)]
mod tests;

use file::File;
use lmsc_address::pages::{self, Paged, Unordered};
use lmsc_address::{self as address, Arena, Placed, Spot};
use lmsc_schedule::problem::Problem;
use lmsc_schedule::{Edge, Flaw, Plan, Replay, Request, Room, check, check_however_long, edges};
use serde::{Deserialize, Serialize};

use crate::service::{Planned, Question, Space};

/// The name of the format.
pub const FORMAT: &str = "lmsc-plan-1";

/// A plan with the question that it answers.
#[derive(Clone, Debug)]
pub struct Saved {
    /// The question.
    pub head: Head,
    /// The problem, in numbers.
    about: About,
    /// The plan.
    pub planned: Planned,
    /// The makespan in the file, in nanoseconds; the plan has another if it was given other times.
    pub saved_nanos: u64,
}

/// The handling of a plan whose steps take other times than those of the problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durations {
    /// It is refused.
    AsSaved,
    /// Its steps take the times of the problem. They keep their order and their edges.
    Anew,
}

/// The question that a saved plan answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The name of the planner that made it.
    pub planner: String,
    /// The target for which it was made; none for an instance.
    pub target: Option<String>,
    /// The budget in device bytes; none for a schedule, which does not say it.
    pub budget: Option<u64>,
    /// The way in which it keeps within the budget.
    pub space: Space,
    /// The names of the model's nodes in the planned order; empty for an instance.
    pub nodes: Vec<String>,
}

/// A problem in a few numbers, which explain why a plan belongs to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct About {
    operators: u64,
    tensors: u64,
    tensor_bytes: u64,
    workspace_bytes: u64,
    compute_ns: u64,
}

/// The reason why a file is not a plan of the problem.
#[derive(Debug, thiserror::Error)]
pub enum SavedError {
    /// It is not JSON of the format.
    #[error("it is not a {kind}: {why}")]
    Json {
        /// The kind of file expected.
        kind: &'static str,
        /// The defect, with its position.
        why: serde_json::Error,
    },
    /// It has another format.
    #[error("its format is `{found}`, and not {expected}")]
    Format {
        /// The format in the file.
        found: String,
        /// The expected format.
        expected: &'static str,
    },
    /// A number in it does not exist.
    #[error("it names {what} {number}, which does not exist")]
    Unknown {
        /// The kind of the item.
        what: &'static str,
        /// Its number.
        number: u64,
    },
    /// The plan belongs to another problem.
    #[error("it belongs to {whose}: {saved} {what}, not {here}")]
    Differs {
        /// The problem that it belongs to.
        whose: String,
        /// The counted items.
        what: &'static str,
        /// Their number in the file.
        saved: u64,
        /// Their number in the problem.
        here: u64,
    },
    /// An operator touches other tensors than in the problem.
    #[error(
        "it belongs to another model, or to other sizes: its operator {op} touches other tensors than the model's"
    )]
    Other {
        /// The operator, by its position in the problem.
        op: u32,
    },
    /// It does not run every operator.
    #[error("operator {0} does not run")]
    Missing(u32),
    /// It runs operators in another order.
    #[error("operator {0} runs before one that comes first in the model")]
    Order(u32),
    /// It repeats an operator that is not recomputable.
    #[error("operator {0} runs again, which would not give the same results")]
    Again(u32),
    /// An operator reads a tensor before a change that should precede it, or after one that should follow.
    #[error("operator {op} reads tensor {tensor} as it is before or after a change on the wrong side")]
    Stale {
        /// The operator, by its position in the problem.
        op: u32,
        /// The tensor, by its number in the plan.
        tensor: u32,
    },
    /// A schedule repeats operators without naming the tensors that they touch.
    #[error("operator {0} runs again, and the file has no `ops` that say which tensors that run touches")]
    Versions(u32),
    /// Its times are those of another target.
    #[error("it was made for other times{made_for}: {what}")]
    Times {
        /// The target with a space and in brackets, if the file names it.
        made_for: String,
        /// The first step that differs.
        what: String,
    },
    /// It was made for another budget.
    #[error("it was made for {saved} bytes of values and workspaces, and the budget leaves {asked}")]
    Budget {
        /// The budget of the plan.
        saved: u64,
        /// The budget of the question.
        asked: u64,
    },
    /// The plan needs more host memory than allowed.
    #[error("it moves {moved} bytes to the host, which has room for {room}")]
    Host {
        /// The bytes that are swapped out.
        moved: u64,
        /// The allowed bytes.
        room: u64,
    },
    /// It is not valid within its budget.
    #[error("it is not valid: {0}")]
    Flaw(String),
}

impl SavedError {
    /// Whether the text is not a file of the format at all, regardless of the problem.
    pub fn is_unreadable(&self) -> bool {
        matches!(self, SavedError::Json { .. } | SavedError::Format { .. } | SavedError::Versions(_))
    }

    /// The fault, for a message that already says that the file is not valid.
    pub fn fault(&self) -> String {
        match self {
            SavedError::Flaw(flaw) => flaw.clone(),
            other => other.to_string(),
        }
    }

    /// The remedy.
    pub fn help(&self) -> &'static str {
        match self {
            SavedError::Json { .. } | SavedError::Format { .. } => "give a file that --save-plan has written",
            SavedError::Versions(_) => "write the schedule again, with `lmsc plan --schedule`",
            SavedError::Budget { .. } => "give the budget for which it was saved, or plan anew for this one",
            SavedError::Host { .. } => "give a larger --host-budget, or plan anew for this one",
            SavedError::Differs { .. }
            | SavedError::Other { .. }
            | SavedError::Missing(_)
            | SavedError::Times { .. } => {
                "give the model, --dim, --target and --profile with which it was saved, or plan anew"
            }
            SavedError::Unknown { .. }
            | SavedError::Order(_)
            | SavedError::Again(_)
            | SavedError::Stale { .. }
            | SavedError::Flaw(_) => "correct the file, or plan anew",
        }
    }

    fn flaw(flaw: impl std::fmt::Display) -> SavedError {
        SavedError::Flaw(flaw.to_string())
    }
}

impl About {
    fn of(problem: &Problem) -> About {
        About {
            operators: problem.ops.len() as u64,
            tensors: problem.tensors.len() as u64,
            tensor_bytes: problem.tensors.values().map(|tensor| tensor.bytes).sum(),
            workspace_bytes: problem.ops.iter().map(|op| op.workspace).sum(),
            compute_ns: problem.compute_nanos(),
        }
    }

    /// # Errors
    /// [`SavedError::Differs`] with the first number that differs.
    fn is(self, here: About, target: Option<&str>, times: Durations) -> Result<(), SavedError> {
        let model = "another model";
        let target = &format!("another target or profile{}", made_for(target));
        let numbers = [
            (model, "operators", self.operators, here.operators),
            (model, "tensors", self.tensors, here.tensors),
            ("other sizes of the model", "bytes of tensors", self.tensor_bytes, here.tensor_bytes),
            (target, "bytes of workspaces", self.workspace_bytes, here.workspace_bytes),
            (target, "ns of computing", self.compute_ns, here.compute_ns),
        ];
        let numbers =
            numbers.into_iter().filter(|(whose, ..)| times == Durations::AsSaved || *whose != target);
        let differs = numbers.into_iter().find(|(_, _, saved, here)| saved != here);
        differs.map_or(Ok(()), |(whose, what, saved, here)| {
            Err(SavedError::Differs { whose: whose.to_owned(), what, saved, here })
        })
    }
}

impl Head {
    /// The question that the saved plan or the schedule in the text answers. The plan itself is not read. Who made a schedule is
    /// not known: the planner's name is empty.
    ///
    /// # Errors
    /// [`SavedError::Json`], [`SavedError::Format`], and [`SavedError::Unknown`] for pages of an unsupported size.
    pub fn parse(text: &str) -> Result<Head, SavedError> {
        if schedule::is_schedule(text) {
            return schedule::head(text);
        }
        format(text, "plan", FORMAT)?;
        let head = json::<file::HeadFile>(text, "plan")?.head();
        match head.space {
            Space::Pages(page) if !pages::is_size(page) => {
                Err(SavedError::Unknown { what: "page size", number: page })
            }
            _ => Ok(head),
        }
    }
}

impl Saved {
    /// The plan as an answer to the question. `nodes` are the model's, by tick; an instance has none, and no target.
    pub fn of(
        question: &Question<'_>,
        planned: Planned,
        nodes: Vec<String>,
        target: Option<String>,
    ) -> Saved {
        let planner = question.planner.name.to_owned();
        let budget = Some(question.request.budget);
        let head = Head { planner, target, budget, space: planned.space, nodes };
        let saved_nanos = planned.nanos();
        Saved { head, about: About::of(question.request.problem), planned, saved_nanos }
    }

    /// The file.
    pub fn to_json(&self) -> String {
        serde_json::to_string(&File::of(self)).expect("a plan is JSON") + "\n"
    }

    /// The plan in the text, of this problem, checked; `alignment` is that of addresses.
    ///
    /// Edges that do not keep the plan within its budget in every timing are completed.
    ///
    /// # Errors
    /// [`SavedError`] if the text is no plan of the problem, or a plan that is not valid within its budget.
    pub fn parse(
        text: &str,
        problem: &Problem,
        alignment: u64,
        times: Durations,
    ) -> Result<Saved, SavedError> {
        format(text, "plan", FORMAT)?;
        let file: File = json(text, "plan")?;
        let about = About::of(problem);
        let head = file.head.head();
        file.about.is(about, head.target.as_deref(), times)?;
        let (plan, edges, spots) = file.parts(problem)?;
        let saved_nanos = plan.schedule.makespan();
        let request = Request { alignment, ..Request::new(problem, head.budget.unwrap_or_default()) };
        let planned = checked(plan, edges, spots, head.space, &request, times);
        let planned = planned.map_err(|why| match why {
            SavedError::Times { what, .. } => {
                SavedError::Times { made_for: made_for(head.target.as_deref()), what }
            }
            other => other,
        })?;
        // In other times nobody knows the cost of the addresses.
        let is_as_saved = planned.nanos() == saved_nanos;
        let counted_nanos = if is_as_saved { file.counted_ns } else { planned.nanos() };
        Ok(Saved { head, about, planned: Planned { counted_nanos, ..planned }, saved_nanos })
    }

    /// The plan in the text, or that of the schedule in it, if it answers the question: of its problem, for its budget, and within
    /// its host memory.
    ///
    /// # Errors
    /// [`SavedError`].
    pub fn answer(text: &str, question: &Question<'_>, times: Durations) -> Result<Saved, SavedError> {
        let Question { request, host_bytes, .. } = *question;
        let saved = if schedule::is_schedule(text) {
            let (planned, saved_nanos) = schedule::parse_timed(text, &request, times)?;
            Saved { saved_nanos, ..Saved::of(question, planned, Vec::new(), None) }
        } else {
            Saved::parse(text, request.problem, request.alignment, times)?
        };
        if let Some(saved) = saved.head.budget.filter(|&budget| budget != request.budget) {
            return Err(SavedError::Budget { saved, asked: request.budget });
        }
        let moved = crate::host::bytes(&saved.planned.plan.schedule);
        if moved > host_bytes {
            return Err(SavedError::Host { moved, room: host_bytes });
        }
        Ok(saved)
    }
}

fn made_for(target: Option<&str>) -> String {
    target.map(|target| format!(" (target `{target}`)")).unwrap_or_default()
}

/// The plan in the given space, if the checkers accept it.
pub(crate) fn checked(
    plan: Plan,
    given: Vec<Edge>,
    spots: Vec<Spot>,
    space: Space,
    request: &Request,
    times: Durations,
) -> Result<Planned, SavedError> {
    let budget = request.budget;
    plan.problem.check().map_err(SavedError::flaw)?;
    let is_other = || matches!(check(&plan.problem, &plan.schedule, budget), Err(Flaw::Duration { .. }));
    let (plan, given) = if times == Durations::Anew && is_other() {
        retimed(plan, given, space, budget)?
    } else {
        (plan, given)
    };
    let peak = check(&plan.problem, &plan.schedule, budget).map_err(|flaw| match flaw {
        Flaw::Duration { .. } => SavedError::Times { made_for: String::new(), what: flaw.to_string() },
        other => SavedError::flaw(other),
    })?;
    let counted_nanos = plan.schedule.makespan();
    let (plan, spots, edges, peak) = match space {
        Space::Counted => {
            let edges = edges(&plan.problem, &plan.schedule, Room::Within(&given, budget));
            (plan, Vec::new(), edges.map_err(SavedError::flaw)?, peak)
        }
        Space::Arena => {
            let placed = Placed { plan, spots, edges: given };
            address::check(&placed, Arena::aligned_least(budget)).map_err(SavedError::flaw)?;
            (placed.plan, placed.spots, placed.edges, peak)
        }
        Space::Pages(page) => {
            if !pages::is_size(page) {
                return Err(SavedError::Unknown { what: "page size", number: page });
            }
            let edges = pages::edges(&plan, &given, page, budget);
            let edges = edges.map_err(|why: Unordered| SavedError::flaw(why))?;
            let paged = Paged { plan, edges, page };
            let peak = pages::check(&paged, budget).map_err(SavedError::flaw)?;
            (paged.plan, Vec::new(), paged.edges, peak)
        }
    };
    Ok(Planned { plan, edges, spots, space, peak, counted_nanos })
}

/// The plan with the times of its problem, and its edges, which keep it within the budget in every timing.
fn retimed(plan: Plan, given: Vec<Edge>, space: Space, budget: u64) -> Result<(Plan, Vec<Edge>), SavedError> {
    check_however_long(&plan.problem, &plan.schedule, budget).map_err(SavedError::flaw)?;
    let edges = match space {
        Space::Counted => {
            edges(&plan.problem, &plan.schedule, Room::Within(&given, budget)).map_err(SavedError::flaw)?
        }
        Space::Arena => given,
        Space::Pages(page) if pages::is_size(page) => {
            pages::edges(&plan, &given, page, budget).map_err(SavedError::flaw)?
        }
        Space::Pages(page) => return Err(SavedError::Unknown { what: "page size", number: page }),
    };
    let schedule = Replay::new(&plan.problem, &plan.schedule, &edges).retimed();
    Ok((Plan { schedule, ..plan }, edges))
}

/// Checks that the text is a JSON object of this format.
fn format(text: &str, kind: &'static str, expected: &'static str) -> Result<(), SavedError> {
    #[derive(Deserialize)]
    struct Named {
        #[serde(default)]
        format: serde_json::Value,
    }
    match json::<Named>(text, kind)?.format {
        serde_json::Value::String(format) if format == expected => Ok(()),
        serde_json::Value::String(found) => Err(SavedError::Format { found, expected }),
        other => Err(SavedError::Format { found: other.to_string(), expected }),
    }
}

fn json<'a, T: Deserialize<'a>>(text: &'a str, kind: &'static str) -> Result<T, SavedError> {
    serde_json::from_str(text).map_err(|why| SavedError::Json { kind, why })
}

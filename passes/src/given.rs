//! Carries out a plan from a file instead of planning.

use std::collections::BTreeMap;

use lmsc_ir::{Advice, Bytes, Graph, Message, NodeId, verify};
use lmsc_plan::planners::{FOREIGN, Planner};
use lmsc_plan::saved::{Durations, Head, Saved, SavedError};
use lmsc_plan::service::Question;

use crate::{AnyPlanner, NotGiven, Outcome, PassCx, PassError, PlanRequest, Planners};

/// A saved plan, or a schedule, whose header was parsed. The plan is checked against the graph when it is carried out.
#[derive(Clone, Debug)]
pub struct GivenPlan {
    /// The file's name in messages.
    pub name: String,
    /// The question that the plan answers.
    pub head: Head,
    /// The planner that made it, or [`FOREIGN`].
    pub planner: &'static Planner,
    text: String,
}

/// The order of a model's nodes, read from a file.
#[derive(Clone, Debug)]
pub struct GivenOrder {
    /// The file's name in messages.
    pub name: String,
    /// The names of the nodes.
    pub nodes: Vec<String>,
}

impl GivenPlan {
    /// The plan, or that of the schedule, in the text of a file of this name. Its planner is one of `planners`, if they have it.
    ///
    /// # Errors
    /// [`PassError::Given`] if the text is neither.
    pub fn new(name: String, text: String, planners: Planners) -> Result<GivenPlan, PassError> {
        let head = Head::parse(&text).map_err(|why| refused(&name, &why))?;
        let planner = planners.named(&head.planner).and_then(AnyPlanner::of_problems).unwrap_or(&FOREIGN);
        Ok(GivenPlan { name, head, planner, text })
    }

    /// The context for carrying the plan out: the plan's planner and its memory model (bytes, arena or pages), and
    /// its budget unless `cx` has one.
    pub fn applied(self, cx: PassCx) -> PassCx {
        let order = GivenOrder { name: self.name.clone(), nodes: self.head.nodes.clone() };
        let question = PlanRequest {
            order: (!order.nodes.is_empty()).then(|| order.into()),
            planner: Some(self.planner.into()),
            budget: cx.question.budget.or(self.head.budget.map(Bytes)),
            space: self.head.space,
            or_pages: false,
            given: Some(self.into()),
            ..cx.question
        };
        PassCx { question, ..cx }
    }

    /// The plan, if it answers `question`; with the times of the question's problem, or only if it was made for these.
    ///
    /// # Errors
    /// [`PassError::Given`]: the message names the file, the first fault and a remedy.
    pub fn answer(&self, question: &Question<'_>, times: Durations) -> Result<Saved, PassError> {
        Saved::answer(&self.text, question, times).map_err(|why| refused(&self.name, &why))
    }

    /// The outcome of carrying the plan out; if the graph cannot carry it out, the fault is the file's.
    ///
    /// # Errors
    /// [`PassError::Given`] in place of [`PassError::Ours`].
    pub fn carried_out(&self, outcome: Result<Outcome, PassError>) -> Result<Outcome, PassError> {
        match outcome {
            Ok(mut outcome) => {
                outcome.remarks.push(format!("the plan is that of {}", self.name));
                Ok(outcome)
            }
            Err(PassError::Ours { what, .. }) => {
                let said = format!("it is not valid: {what}");
                Err(NotGiven::new(&self.name, &said, what).with_help("plan anew, without --plan").error())
            }
            Err(other) => Err(other),
        }
    }
}

impl GivenOrder {
    /// Brings the nodes into the planned order.
    pub(crate) fn reorder(&self, graph: &mut Graph) -> Result<Outcome, PassError> {
        let by_name: BTreeMap<&str, NodeId> =
            graph.order().iter().map(|&id| (&*graph.node(id).name, id)).collect();
        let node = |name: &String| {
            let missing = || self.of_another(&format!("the model has no node `{name}`"));
            by_name.get(&**name).copied().ok_or_else(missing)
        };
        let order = self.nodes.iter().map(node).collect::<Result<Vec<NodeId>, PassError>>()?;
        let mut each = order.clone();
        each.sort_unstable();
        each.dedup();
        if each.len() != graph.order().len() || order.len() != each.len() {
            let what = format!("it has {} nodes, and the model {}", order.len(), graph.order().len());
            return Err(self.of_another(&what));
        }
        let moved = order.iter().zip(graph.order()).filter(|(new, old)| new != old).count();
        if moved == 0 {
            return Ok(Outcome::default());
        }
        graph.set_order(order);
        verify(graph).map_err(|violations| {
            let help = "the file was changed after --save-plan wrote it; plan anew";
            let fault = format!("its nodes stand in an order that the model does not allow:\n{violations}");
            let mut not_given = NotGiven::new(&self.name, &fault, fault.clone());
            not_given.message.helps = violations.helps();
            not_given.with_help(help).error()
        })?;
        let remarks = vec![format!("moved {moved} of {} nodes, as in {}", graph.order().len(), self.name)];
        Ok(Outcome { changed: true, remarks, ..Outcome::default() })
    }

    /// Checks that the graph's nodes are in the planned order.
    ///
    /// # Errors
    /// [`PassError::Given`] with the first node that is not.
    pub(crate) fn check(&self, graph: &Graph) -> Result<(), PassError> {
        let names = graph.order().iter().map(|&node| &*graph.node(node).name);
        match self.nodes.iter().zip(names).find(|(saved, here)| *saved != here) {
            None => Ok(()),
            Some((saved, here)) => {
                Err(self.of_another(&format!("node `{saved}` stands where the model has `{here}`")))
            }
        }
    }

    fn of_another(&self, what: &str) -> PassError {
        let help = "give the model for which it was saved, or plan anew";
        let fault = format!("it belongs to another model: {what}");
        NotGiven::new(&self.name, &fault, fault.clone()).with_help(help).error()
    }
}

impl NotGiven {
    /// The error for the file of this name, whose plan is not carried out.
    fn new(name: &str, said: &str, fault: String) -> NotGiven {
        NotGiven { is_unreadable: false, fault, message: Message::new(format!("{name}: {said}")) }
    }

    fn with_help(mut self, help: &str) -> NotGiven {
        self.message = self.message.with_help(help);
        self
    }

    fn error(self) -> PassError {
        PassError::Given(Box::new(self))
    }
}

fn refused(name: &str, why: &SavedError) -> PassError {
    let is_unreadable = why.is_unreadable();
    let not_given = NotGiven::new(name, &why.to_string(), why.fault()).with_help(why.help());
    NotGiven { is_unreadable, ..not_given }.error()
}

//! Why a step cannot run in the memory that it was given: typed where it is found, and put in words in one place.

use std::collections::HashSet;
use std::fmt;

use lmsc_ir::{Bytes, Graph, Message, NodeId, StorageId, Storages, ValueId};

use crate::Floors;

/// Why no plan keeps within a budget. [`Refusal::message`] puts it in words.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The reason.
    pub cause: Cause,
    /// The device memory that was asked for, constants of kernels included.
    pub budget: Bytes,
    /// The needed bytes of the memory that is too small, where they are known.
    pub needed: Option<Bytes>,
    /// The node that needs it, or the operator of an instance.
    pub node: Option<String>,
    /// Where memory is mapped in pages, the bytes of a page.
    pub pages: Option<Bytes>,
    /// Budgets for which there is a plan, each with the kind of plan.
    pub smallest: Vec<Smallest>,
    /// The kind of plan that was asked for, where its smallest budget may be known.
    pub asked: Option<Reach>,
    /// Further facts, whole sentences.
    pub facts: Vec<String>,
    /// The remedies, each for itself.
    pub helps: Vec<String>,
}

/// The reason of a refusal.
#[derive(Clone, Debug)]
pub enum Cause {
    /// An operator needs more at once than the budget.
    Operator(Box<Needs>),
    /// Inputs, parameters and state of a step without nodes need more than the budget.
    Resident,
    /// The planner found no plan, though no operator needs more than the budget.
    NoPlan {
        /// The name of the planner.
        planner: &'static str,
    },
    /// The bytes fit if they are counted, but no addresses were found for them.
    NoAddresses {
        /// The name of the planner, where messages name it.
        planner: Option<&'static str>,
    },
    /// With addresses for everything, the step needs a larger arena than the budget.
    Arena,
    /// There are plans for the budget, but the swapped tensors do not fit the host's.
    HostIsFull {
        /// Host memory for swapped tensors.
        host_budget: Bytes,
        /// Why no plan swaps at most these bytes.
        cause: Box<Cause>,
    },
    /// The swapped tensors need more of the host than the host's budget.
    HostPeak {
        /// Host memory for swapped tensors.
        host_budget: Bytes,
    },
    /// Parameters of the call fix a plan that needs more than the budget.
    Parameters {
        /// The parameters, as options.
        given: String,
        /// Why there would be no other plan, either.
        otherwise: Option<Box<Otherwise>>,
    },
}

/// Why there would be no plan without parameters that fix one.
#[derive(Clone, Debug)]
pub struct Otherwise {
    /// The reason.
    pub cause: Cause,
    /// The bytes needed then.
    pub needed: Bytes,
}

/// An operator that needs more at once than the budget.
#[derive(Clone, Debug)]
pub struct Needs {
    /// The node with its operator, as messages name it.
    pub subject: String,
    /// The composition of the bytes, where it is known; otherwise messages say their exact number.
    pub parts: Option<MemoryBreakdown>,
}

/// Composition of the bytes that are live while an operator runs.
#[derive(Clone, Debug)]
pub struct MemoryBreakdown {
    /// Inputs and initializers that are there throughout.
    pub resident: Bytes,
    /// Storages that the node reads, beyond resident ones; each once.
    pub operands: Vec<(String, Bytes)>,
    /// Storages that the node defines; each once.
    pub results: Vec<(String, Bytes)>,
    /// Workspace of the operator.
    pub workspace: Bytes,
    /// Other bytes that are live while the node runs.
    pub others: Bytes,
}

/// A budget for which there is a plan of a kind. It holds as it is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Smallest {
    /// The budget, constants of kernels included.
    pub bytes: Bytes,
    /// The kind of plan.
    pub reach: Reach,
}

/// A kind of plan, of which the smallest budget is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Any plan of this planner that counts bytes.
    Planner(&'static str),
    /// Whole tensors are swapped and nothing else is done.
    WholeTensors,
    /// Operators may also run again.
    Recomputation,
    /// Ranges of tensors may also be copied each by itself.
    Ranges,
    /// Nothing leaves the device.
    AsItIs,
    /// Any plan for the request: larger budgets were tried until one had a plan.
    Tried,
}

impl Reach {
    /// The options of a call that makes such a plan, where it needs any.
    pub fn options(self) -> Option<String> {
        match self {
            Reach::Planner(name) => Some(format!("--planner {name}")),
            Reach::WholeTensors => Some("--planner swap-only".to_owned()),
            Reach::Recomputation => Some("--planner auto".to_owned()),
            Reach::Ranges => Some("--planner auto --ranges".to_owned()),
            Reach::AsItIs | Reach::Tried => None,
        }
    }

    /// The kind of plan that a planner makes, as far as its smallest budget may be known.
    pub fn of(planner: &'static str, ranges: bool) -> Reach {
        match (planner, ranges) {
            ("swap-only", _) => Reach::WholeTensors,
            ("auto", false) => Reach::Recomputation,
            ("auto", true) => Reach::Ranges,
            (other, _) => Reach::Planner(other),
        }
    }
}

impl Cause {
    /// Adds resident bytes to those that an operator needs.
    fn add(&mut self, constants: Bytes) {
        match self {
            Cause::Operator(needs) => {
                needs.parts.iter_mut().for_each(|parts| parts.resident += constants);
            }
            Cause::HostIsFull { cause, .. } => cause.add(constants),
            _ => {}
        }
    }
}

impl Refusal {
    /// The refusal of a budget.
    pub fn new(cause: Cause, budget: Bytes, needed: Option<Bytes>) -> Refusal {
        Refusal {
            cause,
            budget,
            needed,
            node: None,
            pages: None,
            smallest: Vec::new(),
            asked: None,
            facts: Vec::new(),
            helps: Vec::new(),
        }
    }

    /// The refusal of a budget that is smaller than the need of one node; without a node, smaller than the resident storages.
    /// `stays` says which storages are resident.
    pub fn of_node(
        graph: &Graph,
        storages: &Storages,
        (resident, stays): (Bytes, impl Fn(StorageId) -> bool),
        workspace: Bytes,
        (budget, needed): (Bytes, Bytes),
        node: Option<NodeId>,
    ) -> Refusal {
        let Some(id) = node else {
            return Refusal::new(Cause::Resident, budget, Some(needed));
        };
        let mut seen = HashSet::new();
        let mut list = |values: &mut dyn Iterator<Item = ValueId>| {
            let mut listed = Vec::new();
            for value in values {
                let storage = storages.storage(value);
                let facts = storages.get(storage);
                if !stays(storage) && !facts.on_host && seen.insert(storage) {
                    listed.push((graph.value(value).name.to_string(), facts.bytes));
                }
            }
            listed
        };
        let node = graph.node(id);
        let operands = list(&mut node.reads());
        let results = list(&mut node.defines());
        let own: Bytes = operands.iter().chain(&results).map(|(_, bytes)| *bytes).sum();
        let others = needed.saturating_sub(resident).saturating_sub(workspace).saturating_sub(own);
        let parts = MemoryBreakdown { resident, operands, results, workspace, others };
        let subject = format!("`{}` ({})", node.name, node.op);
        let needs = Needs { subject, parts: Some(parts) };
        Refusal {
            node: Some(node.name.to_string()),
            ..Refusal::new(Cause::Operator(Box::new(needs)), budget, Some(needed))
        }
    }

    /// The refusal because no more than this may leave for the host, where the plan without the limit moves `moved`.
    #[must_use]
    pub fn of_host(mut self, host_budget: Bytes, moved: Bytes) -> Refusal {
        self.cause = Cause::HostIsFull { host_budget, cause: Box::new(self.cause) };
        let moved = format!("{} ({} bytes)", moved.rounded_up(), moved.0);
        self.with_help(format!(
            "no more than {host_budget} may leave the device, and the plan without this limit moves {moved}; see --host-budget"
        ))
    }

    /// The same, with bytes that the budget has for something else: constants of kernels, which are resident.
    #[must_use]
    pub fn beside(mut self, constants: Bytes) -> Refusal {
        self.budget += constants;
        self.cause.add(constants);
        self.needed = self.needed.map(|needed| needed + constants);
        self.smallest.iter_mut().for_each(|smallest| smallest.bytes += constants);
        self
    }

    /// The refusal with its `needed` bytes as the smallest budget of the requested kind of plan, where budgets count bytes.
    #[must_use]
    pub fn reached(mut self, reach: Reach) -> Refusal {
        self.smallest.extend(self.needed.map(|bytes| Smallest { bytes, reach }));
        self
    }

    /// The same, with the budgets in which there would be a plan.
    #[must_use]
    pub fn with_floors(mut self, floors: &Floors) -> Refusal {
        let kinds = [
            (floors.whole_tensors, Reach::WholeTensors),
            (floors.recomputation, Reach::Recomputation),
            (floors.ranges, Reach::Ranges),
        ];
        self.smallest.retain(|smallest| !kinds.iter().any(|&(_, reach)| reach == smallest.reach));
        self.smallest.extend(kinds.map(|(bytes, reach)| Smallest { bytes: Bytes(bytes), reach }));
        self
    }

    /// The same with a further fact.
    #[must_use]
    pub fn with_fact(mut self, fact: impl fmt::Display) -> Refusal {
        self.facts.push(fact.to_string());
        self
    }

    /// The same with an advice, after those that it has.
    #[must_use]
    pub fn with_help(mut self, help: impl fmt::Display) -> Refusal {
        self.helps.push(help.to_string());
        self
    }

    /// The smallest budget for which there is a plan of the kind that was asked for; where that is not known, of any kind.
    pub fn smallest_budget(&self) -> Option<Smallest> {
        let of_kind = |kind| self.smallest.iter().copied().find(|smallest| smallest.reach == kind);
        let asked = of_kind(Reach::Tried).or_else(|| of_kind(self.asked?));
        asked.or_else(|| self.smallest.iter().copied().min_by_key(|smallest| smallest.bytes))
    }

    /// The refusal in words.
    pub fn message(&self) -> Message {
        let said = self.said(&self.cause, self.needed.unwrap_or_default());
        let text = match self.pages {
            Some(page) => format!("in pages of {page}: {said}"),
            None => said,
        };
        let mut message = Message::new(text);
        let exact = |bytes: Bytes| format!("{} ({} bytes)", bytes.rounded_up(), bytes.0);
        let find =
            |kind| self.smallest.iter().find(|smallest| smallest.reach == kind).map(|found| found.bytes);
        let floors = match [Reach::WholeTensors, Reach::Recomputation, Reach::Ranges].map(find) {
            [Some(Bytes(whole_tensors)), Some(Bytes(recomputation)), Some(Bytes(ranges))] => {
                Some(Floors { whole_tensors, recomputation, ranges })
            }
            _ => None,
        };
        for &Smallest { bytes, reach } in &self.smallest {
            let planner = match reach {
                Reach::Planner(name) => name,
                Reach::WholeTensors if floors.is_none() => "swap-only",
                Reach::Recomputation | Reach::Ranges if floors.is_none() => "auto",
                _ => continue,
            };
            let bytes = exact(bytes);
            message = message
                .with_fact(format!("The smallest budget that the planner `{planner}` reaches is {bytes}."));
        }
        message.facts.extend(self.facts.iter().cloned());
        if let Some(floors) = floors {
            message = message.with_fact(floors);
        }
        if let Some(bytes) = find(Reach::AsItIs) {
            message = message.with_fact(format!("With {} nothing has to leave the device.", exact(bytes)));
        }
        message.helps.extend(self.helps.iter().cloned());
        message
    }

    fn said(&self, cause: &Cause, needed: Bytes) -> String {
        let budget = self.budget;
        match cause {
            Cause::Operator(needs) => {
                let first = format!("does not fit {budget}: {} needs {needed} at once", needs.subject);
                match &needs.parts {
                    Some(parts) => format!("{first}\n{parts}"),
                    None => format!("{first} ({} bytes)", needed.0),
                }
            }
            Cause::Resident => format!(
                "does not fit {budget}: inputs, parameters and state, which are there throughout, need {needed}"
            ),
            Cause::NoPlan { planner } => format!("the planner `{planner}` finds no plan for {budget}"),
            Cause::NoAddresses { planner } => {
                let of = planner.map(|planner| format!(" of `{planner}`")).unwrap_or_default();
                format!("the plan{of} fits {budget} by its bytes, but no addresses were found in it")
            }
            Cause::Arena => {
                format!("with addresses for everything, the step needs an arena of {needed}, above {budget}")
            }
            Cause::HostIsFull { cause, .. } => self.said(cause, needed),
            Cause::HostPeak { host_budget } => {
                format!("what leaves the device needs {needed} of host memory, above {host_budget}")
            }
            Cause::Parameters { given, otherwise } => {
                let peak = format!("the peak is {needed} with {given}, above the budget of {budget}");
                match otherwise {
                    Some(other) => {
                        let other = self.said(&other.cause, other.needed);
                        format!("{peak}\nnor would any other plan do: it {other}")
                    }
                    None => peak,
                }
            }
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.message().fmt(f)
    }
}

impl fmt::Display for MemoryBreakdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |values: &[(String, Bytes)]| {
            let total: Bytes = values.iter().map(|(_, b)| *b).sum();
            let mut text = format!("{total}");
            for (i, (value, bytes)) in values.iter().take(4).enumerate() {
                text += &format!("{}`{value}` {bytes}", if i == 0 { " (" } else { ", " });
            }
            match values.len() {
                0 => text,
                n if n > 4 => text + ", …)",
                _ => text + ")",
            }
        };
        write!(
            f,
            "  resident (inputs, parameters, state): {}\n  \
             its operands: {}\n  \
             its results: {}\n  \
             its workspace: {}\n  \
             live beside it: {}",
            self.resident,
            list(&self.operands),
            list(&self.results),
            self.workspace,
            self.others,
        )
    }
}

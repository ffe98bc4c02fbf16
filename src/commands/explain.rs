//! `lmsc explain`: the events of one tensor in a step, with reasons.

use std::collections::BTreeSet;
use std::fmt::Write;

use lmsc_ir::words::{count, instead};
use lmsc_ir::{Bytes, Graph, NodeId, Phase, Phases, StorageId, Storages, ValueId, copied_elements};
use lmsc_passes::{PassCx, Pipeline, Ran};
use lmsc_plan::Execution;
use serde::Serialize;

use crate::cli::args::ExplainArgs;
use crate::context::{machine, pass_cx};
use crate::job::Look;
use crate::refusals::{floors_of, smaller};
use crate::report::ProfileFacts;
use crate::view::hiding_rate;
use crate::{Code, Error, ErrorKind, load, look};

/// The events of one tensor. Times are milliseconds from the start of the step.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Story {
    /// Version of this format.
    format: u32,
    tensor: String,
    r#type: String,
    /// The tensors that share its memory: its views, or the tensor of which it is a view.
    same_memory: Vec<String>,
    bytes: u64,
    planner: String,
    target: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<ProfileFacts>,
    budget: u64,
    /// `stays`, `swapped`, `computed again` or `swapped and computed again`.
    decision: &'static str,
    /// The reason why it stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    events: Vec<Event>,
    /// The conditions that would change the decision, unless the tensor always stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<Changes>,
}

/// The conditions that would change the decision.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Changes {
    /// A budget for which the tensor stays, found by planning; `None` if fixed parameters move it for every budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    stays_with: Option<u64>,
    /// A slightly smaller budget, or that of the call, for which it does not stay; `None` for a given plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    leaves_with: Option<u64>,
    /// The time that operators wait for its copies.
    waits_ms: f64,
    /// The link bandwidth that hides its copies, if nothing else changes; `None` if no operator waits, or no
    /// bandwidth would help.
    #[serde(skip_serializing_if = "Option::is_none")]
    hidden_at_bytes_per_second: Option<u64>,
    /// The least slack between its copies and their readers.
    #[serde(skip_serializing_if = "Option::is_none")]
    slack_ms: Option<f64>,
}

/// An event of the tensor.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Event {
    /// `computed`, `encoded`, `leaves`, `returns`, `joined`, `computed again` or `read`.
    what: &'static str,
    /// For the copy of a range: the first element and the one after the last, in row-major order.
    #[serde(skip_serializing_if = "Option::is_none")]
    elements: Option<[u64; 2]>,
    /// The node of the event.
    node: String,
    op: String,
    /// The phase of a computing node.
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<&'static str>,
    start_ms: f64,
    end_ms: f64,
    /// The nodes for which control edges make it wait.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    after: Vec<String>,
    /// For a copy: the nodes that wait for it, through its result or a control edge.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waiting: Vec<String>,
    /// For a copy: the time between its end and the start of the first waiting node.
    #[serde(skip_serializing_if = "Option::is_none")]
    slack_ms: Option<f64>,
    /// For a copy for which operators wait: their waiting time.
    #[serde(skip_serializing_if = "Option::is_none")]
    waits_ms: Option<f64>,
    /// For such a copy: the link bandwidth that would hide it, if nothing else changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    hidden_at_bytes_per_second: Option<u64>,
}

/// The events of the tensor that the call names.
///
/// # Errors
/// [`ErrorKind::Refusal`](crate::ErrorKind) if the budget cannot be met; [`ErrorKind::Input`](crate::ErrorKind) for a name that is not
/// in the model.
pub fn explain(args: &ExplainArgs) -> Result<String, Error> {
    let (binding, planning) = (args.input.binding.binding(), args.plan.planning());
    let original = load(args.input.path(), &binding)?.graph;
    let Some(value) = original.value_named(&args.tensor) else {
        let names = original.values().map(|(_, value)| &*value.name);
        let instead = instead(&args.tensor, names, "tensors");
        return Err(Error::new(
            Code::Option,
            format!("the model has no tensor `{}`; {instead}", args.tensor),
        ));
    };
    if args.plan.budget.is_none() && args.plan.given.is_none() {
        let message = "nothing says how much device memory the step may use".to_owned();
        return Err(Error::new(Code::Option, message).with_help("give --budget, for example --budget 16GiB"));
    }
    let machine = machine(&planning.machine)?;
    let cx = pass_cx(&planning, machine, &original)?;
    let call = args.plan.search.planner.called();
    let planner = cx.question.given.as_ref().map_or(call.name(), |given| given.planner.name);
    let passes = call.planner.pipeline();
    let mut graph = original.clone();
    let ran = look::run(&mut graph, &passes, &cx, &Look::default());
    let ran = ran.map_err(|e| smaller(floors_of(e, &original, &cx), &binding))?;

    let storages = Storages::of(&original);
    let storage = storages.get(storages.storage(value));
    let target = cx.target();
    let phases = Phases::of(&original, |node| cx.scope(node));
    let rewritten = Rewritten::of(&original, &graph, &phases, &cx);
    let root = storage.root;
    let producer = original.producer(root);
    let (events, decision) = rewritten.events(producer, root);
    let reason = (decision == "stays").then(|| reason(&original, root, &ran));
    let changes = match decision {
        "stays" => None,
        _ => {
            // A given plan replaces planning here, too.
            let budgets = match cx.question.given {
                Some(_) => None,
                None => Some(budgets(&original, (producer, root), &cx, &passes)?),
            };
            Some(changes(budgets, &events))
        }
    };
    let others = storage.values.iter().filter(|&&other| other != value);
    let story = Story {
        format: 1,
        tensor: args.tensor.clone(),
        r#type: original.value(value).ty.to_string(),
        same_memory: others.map(|&other| original.value(other).name.to_string()).collect(),
        bytes: storage.bytes.0,
        planner: planner.to_owned(),
        target: target.name.clone(),
        profile: ProfileFacts::of(&cx, &original),
        budget: cx.whole_budget().unwrap_or_default().0,
        decision,
        reason,
        events,
        changes,
    };
    Ok(if args.json {
        serde_json::to_string_pretty(&story).expect("a story is JSON") + "\n"
    } else {
        story.to_text()
    })
}

/// The reason why the storage of this root stays.
fn reason(original: &Graph, root: ValueId, ran: &[Ran]) -> String {
    let name = &*original.value(root).name;
    let kept = ran.iter().flat_map(|r| &r.outcome.kept).find(|kept| kept.value == name);
    match (kept, original.producer(root)) {
        (Some(kept), _) => kept.reason.to_string(),
        (None, None) => "the caller or the file provides it, and it is there throughout".to_owned(),
        (None, Some(_)) if ran.iter().all(|r| r.outcome.swaps.is_empty()) => {
            "the budget is met without swapping it".to_owned()
        }
        (None, Some(_)) => "the plan fits without swapping it".to_owned(),
    }
}

/// The search for budgets ends when two are closer than this fraction of the gap between the budget and the peak.
const PRECISION: u64 = 64;

/// A budget for which the storage of `root` stays, if there is one, and one for which it does not; found by
/// planning with the same planner.
fn budgets(
    original: &Graph,
    (producer, root): (Option<NodeId>, ValueId),
    cx: &PassCx,
    passes: &Pipeline<'_>,
) -> Result<(Option<u64>, u64), Error> {
    let phases = Phases::of(original, |node| cx.scope(node));
    let stays = |budget: u64| -> Result<bool, Error> {
        let mut cx = cx.clone();
        cx.question.budget = Some(Bytes(budget));
        let mut graph = original.clone();
        match look::run(&mut graph, passes, &cx, &Look::default()) {
            Ok(_) => {
                let rewritten = Rewritten::of(original, &graph, &phases, &cx);
                Ok(rewritten.events(producer, root).1 == "stays")
            }
            // A planner of a paper may have a plan for a budget but none for a larger one.
            Err(error) if error.kind() == ErrorKind::Refusal => Ok(false),
            Err(other) => Err(other),
        }
    };
    let mut leaves_with = cx.question.budget.unwrap_or_default().0;
    // With the peak of the original step and the bytes for alignment, nothing is swapped.
    let memory = cx.memory(original);
    let padding = cx.target().alignment_bytes.0 * (memory.storages.len() + original.order().len()) as u64;
    let peak = memory.peak().0.saturating_add(padding).max(leaves_with);
    let mut stays_with = stays(peak)?.then_some(peak);
    let tolerance = ((peak - leaves_with) / PRECISION).max(1);
    while let Some(most) = stays_with.filter(|most| most - leaves_with > tolerance) {
        let middle = most.midpoint(leaves_with);
        if stays(middle)? { stays_with = Some(middle) } else { leaves_with = middle }
    }
    let whole = |bytes: u64| bytes.saturating_add(cx.question.constants.0);
    Ok((stays_with.map(whole), whole(leaves_with)))
}

/// The conditions that would change the decision: the budgets, if they were searched, and the link.
fn changes(budgets: Option<(Option<u64>, u64)>, events: &[Event]) -> Changes {
    let waits = || events.iter().filter(|event| event.waits_ms.is_some());
    let rates: Option<Vec<u64>> = waits().map(|event| event.hidden_at_bytes_per_second).collect();
    Changes {
        stays_with: budgets.and_then(|(stays, _)| stays),
        leaves_with: budgets.map(|(_, leaves)| leaves),
        waits_ms: (waits().filter_map(|event| event.waits_ms).sum::<f64>() * 1e6).round() / 1e6,
        hidden_at_bytes_per_second: rates.and_then(|rates| rates.into_iter().max()),
        slack_ms: events.iter().filter_map(|event| event.slack_ms).min_by(f64::total_cmp),
    }
}

/// The rewritten graph and the times of its nodes.
struct Rewritten<'a> {
    original: &'a Graph,
    graph: &'a Graph,
    storages: Storages,
    /// The phases of the original graph.
    phases: &'a Phases,
    execution: Execution,
    /// The latency of a copy, in nanoseconds.
    latency: u64,
}

impl<'a> Rewritten<'a> {
    fn of(original: &'a Graph, graph: &'a Graph, phases: &'a Phases, cx: &PassCx) -> Rewritten<'a> {
        let costs = cx.costs(graph);
        let cost = |node| costs.cost(node);
        let link = cx.target().link.for_planning();
        Rewritten {
            latency: link.latency_nanos,
            original,
            graph,
            storages: Storages::of(graph),
            phases,
            execution: Execution::of(graph, &link, cost),
        }
    }

    /// The events of the storage of `root`, in the order of their starts, and the decision in a few words.
    fn events(&self, producer: Option<NodeId>, root: ValueId) -> (Vec<Event>, &'static str) {
        let storage = |value| self.storages.storage(value);
        // All storages with the tensor's content: the first, host copies, swapped-in copies, and those of
        // recomputed nodes.
        let mut places = BTreeSet::from([storage(root)]);
        let mut events = Vec::new();
        let (mut swapped, mut again) = (false, false);
        for &id in self.graph.order() {
            let node = self.graph.node(id);
            let repeats = node.recomputes.is_some() && node.recomputes == producer;
            let result = producer
                .map(|producer| self.graph.node(producer))
                .and_then(|producer| producer.results.iter().position(|&result| result == Some(root)));
            let repeated = result.and_then(|result| node.results.get(result).copied().flatten());
            if Some(id) == producer {
                events.push(self.event("computed", id));
            } else if let Some(value) = repeated.filter(|_| repeats) {
                again = true;
                places.insert(storage(value));
                events.push(self.event("computed again", id));
            } else if node.reads().any(|value| places.contains(&storage(value))) {
                let what = match (node.op.is_swap_out(), node.op.is_swap_in()) {
                    (true, _) => "leaves",
                    (_, true) => "returns",
                    _ if node.op.is_join() => "joined",
                    _ if self.is_view(id, &places) => continue,
                    _ if self.is_encoding(id) => "encoded",
                    _ => "read",
                };
                swapped |= what == "leaves";
                if what == "encoded" || self.copies(id) {
                    places.extend(node.defines().map(storage));
                }
                events.push(self.event(what, id));
            }
        }
        events.sort_by(|a, b| a.start_ms.total_cmp(&b.start_ms));
        let decision = match (swapped, again) {
            _ if self.graph.value(root).place.is_host() => "on the host between steps",
            (true, true) => "swapped and computed again",
            (true, false) => "swapped",
            (false, true) => "computed again",
            (false, false) => "stays",
        };
        (events, decision)
    }

    /// Whether the node copies, or joins copied ranges.
    fn copies(&self, id: NodeId) -> bool {
        let op = &self.graph.node(id).op;
        op.is_swap() || op.is_join()
    }

    /// The elements of the copy, if it is a range: those of its swap-out.
    fn elements(&self, id: NodeId) -> Option<[u64; 2]> {
        let node = self.graph.node(id);
        let from = node.operands.first().copied().flatten().filter(|_| node.op.is_swap_in());
        let out = from.and_then(|host| self.graph.producer(host)).unwrap_or(id);
        copied_elements(self.graph.node(out)).map(|elements| [elements.start, elements.end])
    }

    fn is_view(&self, id: NodeId, places: &BTreeSet<StorageId>) -> bool {
        self.graph.node(id).defines().all(|value| places.contains(&self.storages.storage(value)))
    }

    /// Whether the node was added to encode a swapped tensor or to decode it (TFLMS §4.2.1).
    fn is_encoding(&self, id: NodeId) -> bool {
        let node = self.graph.node(id);
        node.op.key() == ("", "Cast")
            && self.original.node_named(&node.name).is_none()
            && node.recomputes.is_none()
    }

    fn event(&self, what: &'static str, id: NodeId) -> Event {
        let node = self.graph.node(id);
        let name = |id: NodeId| self.graph.node(id).name.to_string();
        let (start, end) = (self.start(id), ms(self.execution.end[id.as_u32() as usize]));
        let mut waiting: Vec<NodeId> = if node.op.is_swap() {
            self.graph.order().iter().copied().filter(|&other| self.waits(other, id)).collect()
        } else {
            Vec::new()
        };
        // Copies wait for each other to keep their order; computing nodes are more informative.
        let computes = |id: &NodeId| !self.copies(*id);
        if waiting.iter().any(computes) {
            waiting.retain(computes);
        }
        let starts = |&other: &NodeId| self.execution.start[other.as_u32() as usize];
        let delayed = waiting.iter().copied().min_by_key(|other| (starts(other), *other));
        let delay = delayed.filter(computes).and_then(|other| self.delay(id, other));
        let first = delayed.map(|other| self.start(other));
        Event {
            what,
            elements: self.elements(id),
            node: name(id),
            op: node.op.to_string(),
            phase: (!self.copies(id)).then(|| match self.phases.phase(node.recomputes.unwrap_or(id)) {
                Phase::Forward => "forward",
                Phase::Backward => "backward",
                Phase::Update => "update",
            }),
            start_ms: start,
            end_ms: end,
            after: node.after.iter().map(|&before| name(before)).collect(),
            waiting: waiting.iter().map(|&other| name(other)).collect(),
            slack_ms: first.map(|first| ms((1e6 * (first - end).max(0.0)).round() as u64)),
            waits_ms: delay.map(|(nanos, _)| ms(nanos)),
            hidden_at_bytes_per_second: delay.and_then(|(_, rate)| rate),
        }
    }

    /// The time for which the computing node waits for the copy, if it starts at the copy's end and could have
    /// started earlier; and the link bandwidth that would hide the copy.
    fn delay(&self, copy: NodeId, waiting: NodeId) -> Option<(u64, Option<u64>)> {
        let at = |id: NodeId| id.as_u32() as usize;
        let (start, end) = (&self.execution.start, &self.execution.end);
        let order = self.graph.order();
        let before = order.iter().take_while(|&&id| id != waiting).filter(|&&id| !self.copies(id));
        let free = before.map(|&id| end[at(id)]).max().unwrap_or(0);
        if start[at(waiting)] != end[at(copy)] || start[at(waiting)] <= free {
            return None;
        }
        let copied = self.graph.node(copy).defines().next();
        let bytes = copied.and_then(|value| self.graph.value(value).ty.byte_size()).unwrap_or_default();
        let rate = hiding_rate(bytes.0, start[at(copy)], free, self.latency);
        Some((start[at(waiting)] - free, rate))
    }

    fn waits(&self, other: NodeId, copy: NodeId) -> bool {
        let node = self.graph.node(other);
        node.after.contains(&copy)
            || node.reads().any(|value| self.brings(copy, value)) && !self.copies(other)
    }

    /// Whether the value is the result of the copy, or a Join of it.
    fn brings(&self, copy: NodeId, value: ValueId) -> bool {
        let Some(producer) = self.graph.producer(value) else { return false };
        let node = self.graph.node(producer);
        producer == copy || node.op.is_join() && node.reads().any(|part| self.brings(copy, part))
    }

    fn start(&self, id: NodeId) -> f64 {
        ms(self.execution.start[id.as_u32() as usize])
    }
}

fn ms(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

impl Story {
    fn to_text(&self) -> String {
        let mut text = String::new();
        let mut line = |label: &str, what: String| _ = writeln!(text, "{label:<9} {what}");
        line("tensor", format!("{}: {}, {}", self.tensor, self.r#type, Bytes(self.bytes)));
        if !self.same_memory.is_empty() {
            let shown =
                self.same_memory.iter().take(4).map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
            let more = if self.same_memory.len() > 4 { ", …" } else { "" };
            line("memory", format!("shared with {shown}{more}"));
        }
        let reason = self.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        line("decision", format!("{}{reason}", self.decision));
        line("asked", format!("planner {}, {} on {}", self.planner, Bytes(self.budget), self.target));
        if let Some(profile) = &self.profile {
            _ = writeln!(text, "{:<9} {}", "profile", profile.to_text());
        }
        text.push('\n');
        for event in &self.events {
            let when = format!("{:>10.3} ms  {:<14}", event.start_ms, event.what);
            let who = match event.what {
                "leaves" | "returns" => {
                    let range = event.elements.map(|[begin, end]| format!("elements {begin}..{end}, "));
                    format!("{}until {:.3} ms, by `{}`", range.unwrap_or_default(), event.end_ms, event.node)
                }
                "joined" => format!("by `{}`, without a copy", event.node),
                _ => format!("by `{}` ({}, {})", event.node, event.op, event.phase.unwrap_or("copy")),
            };
            _ = writeln!(text, "{when} {who}");
            let names = |names: &[String]| match names {
                [one] => format!("`{one}`"),
                [first, rest @ ..] => format!("`{first}` and {}", count(rest.len(), "other node")),
                [] => "nothing".to_owned(),
            };
            let slack = event.slack_ms.map(|ms| format!(", {ms:.3} ms later")).unwrap_or_default();
            let indent = " ".repeat(31);
            match event.what {
                "leaves" => {
                    _ = writeln!(text, "{indent}its memory is free for {}{slack}", names(&event.waiting))
                }
                "returns" => {
                    _ = writeln!(text, "{indent}triggered by {}", names(&event.after));
                    _ = writeln!(text, "{indent}needed by {}{slack}", names(&event.waiting));
                }
                _ => {}
            }
        }
        if let Some(changes) = &self.changes {
            text.push('\n');
            changes.to_text(&mut text);
        }
        text
    }
}

impl Changes {
    fn to_text(&self, text: &mut String) {
        _ = match (self.stays_with.map(Bytes), self.leaves_with.map(Bytes)) {
            (_, None) => Ok(()),
            (Some(stays), Some(leaves)) => {
                writeln!(text, "budget    with {stays} it would stay; with {leaves} it does not")
            }
            (None, Some(_)) => {
                writeln!(text, "budget    with any it would not stay: the parameters given move it")
            }
        };
        _ = match (self.waits_ms > 0.0, self.hidden_at_bytes_per_second, self.slack_ms) {
            (true, Some(rate), _) => writeln!(
                text,
                "link      operators wait {:.3} ms for its copies; {:.2} GB/s would hide them",
                self.waits_ms,
                rate as f64 / 1e9
            ),
            (true, None, _) => writeln!(
                text,
                "link      operators wait {:.3} ms for its copies, which begin too late for any link",
                self.waits_ms
            ),
            (false, _, Some(slack)) => {
                writeln!(text, "link      its copies are hidden, with {slack:.3} ms to spare")
            }
            (false, _, None) => Ok(()),
        };
    }
}

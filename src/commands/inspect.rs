//! `lmsc inspect`: the phases, variables and memory of a model.

use std::fmt::Write;

use lmsc_ir::{Bytes, Def, Graph, Phase, Phases};
use lmsc_passes::PassCx;
use lmsc_plan::{MemoryTimeline, Scope};
use serde::Serialize;

use crate::cli::args::InspectArgs;
use crate::context::{machine, step_peak, with_budgets};
use crate::job::Machine;
use crate::load::look;
use crate::look::known_scopes;
use crate::report::{GraphFacts, MemoryFacts};
use crate::state::{self, StateFacts};
use crate::{Error, Loaded, Warning};

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Inspection {
    format: u32,
    model: String,
    graph: GraphFacts,
    /// The peak here is the smallest budget for which the step is known to need no copies.
    memory: MemoryFacts,
    /// The bytes of the peak that are alignment and gaps between addresses.
    addresses: u64,
    /// The bytes of the peak that are constants of kernels.
    constants: u64,
    inputs: Vec<NamedBytes>,
    variables: Vec<NamedBytes>,
    state: Vec<StateFacts>,
    largest: Vec<StorageFacts>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<Warning>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct NamedBytes {
    name: String,
    #[serde(rename = "type")]
    ty: String,
    bytes: u64,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct StorageFacts {
    name: String,
    #[serde(rename = "type")]
    ty: String,
    bytes: u64,
    /// Half-open range of ticks.
    live: [u32; 2],
    producer: String,
    at_peak: bool,
}

/// The inspection of a model, as text or JSON.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind) for a faulty file.
pub fn inspect(args: &InspectArgs) -> Result<String, Error> {
    let Loaded { graph, warnings, .. } = look(args.input.path(), &args.input.binding.binding())?;
    let scopes: Vec<Scope> = args.optimizer_scopes.iter().map(|s| Scope::new(s)).collect();
    known_scopes(&graph, "--optimizer-scopes", &scopes)?;
    let phases =
        Phases::of(&graph, |n| scopes.iter().any(|s| s.contains(&n.name)).then_some(Phase::Backward));
    let machine = machine(&Machine { target: args.target.clone(), ..Machine::default() })?;
    let cx = PassCx { machine, ..PassCx::default() }.in_arena();
    let memory = cx.memory(&graph);
    let cx = with_budgets(cx, &graph, None, None)?;
    let addressed = step_peak(&graph, &cx);
    let named = |value| {
        let value: &lmsc_ir::Value = graph.value(value);
        let bytes = value.ty.byte_size().unwrap_or_default().0;
        NamedBytes { name: value.name.to_string(), ty: value.ty.to_string(), bytes }
    };
    let inspection = Inspection {
        format: 1,
        model: args.input.path().display().to_string(),
        graph: GraphFacts::of(&graph, &phases, &memory),
        memory: MemoryFacts {
            peak: addressed.0.saturating_add(cx.question.constants.0),
            ..MemoryFacts::of(&graph, &memory)
        },
        addresses: addressed.saturating_sub(memory.peak()).0,
        constants: cx.question.constants.0,
        inputs: graph.inputs.iter().map(|&v| named(v)).collect(),
        variables: graph.variables().into_iter().map(named).collect(),
        state: StateFacts::of(&graph),
        largest: largest(&graph, &memory, args.largest),
        warnings,
    };
    if args.json {
        return Ok(serde_json::to_string_pretty(&inspection).expect("an inspection is JSON") + "\n");
    }
    Ok(text(&graph, &phases, &memory, &inspection))
}

fn largest(graph: &Graph, memory: &MemoryTimeline, count: usize) -> Vec<StorageFacts> {
    let peak = memory.peak_tick().unwrap_or(0) as u32;
    let mut storages: Vec<_> = memory.storages.iter().filter(|(_, s)| !s.on_host).collect();
    storages.sort_by_key(|(id, s)| (std::cmp::Reverse(s.bytes), *id));
    storages.truncate(count);
    let facts = |(id, storage): (lmsc_ir::StorageId, &lmsc_ir::Storage)| {
        let live = &memory.live[id.as_u32() as usize];
        let value = graph.value(storage.root);
        StorageFacts {
            name: value.name.to_string(),
            ty: value.ty.to_string(),
            bytes: storage.bytes.0,
            live: [live.start, live.end],
            producer: match graph.def(storage.root) {
                Def::Result(node, _) => graph.node(node).op.to_string(),
                Def::Initializer(_) => "initializer".to_owned(),
                _ => "input".to_owned(),
            },
            at_peak: live.contains(&peak),
        }
    };
    storages.into_iter().map(facts).collect()
}

fn text(graph: &Graph, phases: &Phases, memory: &MemoryTimeline, facts: &Inspection) -> String {
    let mut out = String::new();
    let mut line = |text: String| writeln!(out, "{text}").expect("a String takes everything");
    let g = &facts.graph;
    line(facts.model.clone());
    line(String::new());
    line(format!("nodes      {}", g.nodes));
    for phase in [Phase::Forward, Phase::Backward, Phase::Update] {
        let of_phase = || graph.order().iter().enumerate().filter(|(_, n)| phases.phase(**n) == phase);
        if let (Some((first, _)), Some((last, _))) = (of_phase().next(), of_phase().next_back()) {
            line(format!("  {phase:<9}{:>6}  between ticks {first} and {last}", of_phase().count()));
        }
    }
    if g.backward == 0 {
        line("  no backward pass: this is inference, not a training step".to_owned());
    }
    if let Some(loss) = &g.loss {
        line(format!("loss       {loss}"));
    }
    let inputs: Bytes = facts.inputs.iter().map(|i| Bytes(i.bytes)).sum();
    line(format!("inputs     {} of {inputs}", facts.inputs.len()));
    line(format!("variables  {}", state::summary(&facts.state)));
    let m = &facts.memory;
    line(format!(
        "peak       {} ({} bytes): resident {} + transient {} at tick {} [{}]",
        Bytes(m.peak),
        m.peak,
        Bytes(m.resident),
        Bytes(m.transient_peak),
        memory.peak_tick().unwrap_or(0),
        m.peak_node.as_deref().unwrap_or("-"),
    ));
    for (bytes, what) in [(facts.addresses, "alignment and gaps"), (facts.constants, "constants of kernels")]
    {
        if bytes > 0 {
            line(format!("           with {} for {what}", Bytes(bytes)));
        }
    }
    if !facts.state.is_empty() {
        line(String::new());
        line("state: each input, and how it gets its next value".to_owned());
        state::table(&facts.state).into_iter().for_each(|row| line(format!("   {row}")));
    }
    line(String::new());
    line("largest storages (* live at the peak)".to_owned());
    for s in &facts.largest {
        line(format!(
            " {} {:>10}  ticks {:>5}..{:<5} {:<24} {} {}",
            if s.at_peak { "*" } else { " " },
            Bytes(s.bytes).to_string(),
            s.live[0],
            s.live[1],
            s.producer,
            s.ty,
            s.name
        ));
    }
    line(String::new());
    out + &curve(memory)
}

/// Width and height of the memory curve, in characters.
const CURVE: (usize, usize) = (72, 12);

/// A chart of the transient bytes over the ticks.
fn curve(memory: &MemoryTimeline) -> String {
    let (width, height) = CURVE;
    let ticks = memory.transient.len();
    let peak = memory.transient_peak();
    let mut out = format!("transient memory over {ticks} ticks, beside {} resident\n", memory.resident);
    if peak == Bytes::ZERO {
        return out;
    }
    let columns = width.min(ticks);
    let column = |c: usize| {
        let (from, to) = (c * ticks / columns, (c + 1) * ticks / columns);
        memory.transient[from..to.max(from + 1)].iter().copied().max().unwrap_or_default()
    };
    // Heights in eighths of a line.
    let level = |b: Bytes| (b.0 as f64 / peak.0 as f64 * (8 * height) as f64).round() as usize;
    let levels: Vec<usize> = (0..columns).map(|c| level(column(c))).collect();
    const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    for row in (0..height).rev() {
        let label = match row {
            r if r + 1 == height => peak.to_string(),
            r if r == height / 2 => {
                Bytes((u128::from(peak.0) * (height / 2 + 1) as u128 / height as u128) as u64).to_string()
            }
            _ => String::new(),
        };
        let bars: String = levels.iter().map(|l| BLOCKS[l.saturating_sub(8 * row).min(8)]).collect();
        writeln!(out, "{label:>11} │{}", bars.trim_end()).expect("a String takes everything");
    }
    writeln!(out, "{:>11} └{}", "0 B", "─".repeat(columns)).expect("a String takes everything");
    out
}

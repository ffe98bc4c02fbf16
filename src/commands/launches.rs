//! `lmsc launches`: the calls of a step on a GPU, with the least time of each on a target. It needs no GPU.

use std::collections::BTreeMap;
use std::fmt::Write;

use lmsc_cuda::engines::EngineChoice;
use lmsc_cuda::{self as cuda, CallKind, FloatType, Found, Listed};
use lmsc_ir::program::Stream;
use lmsc_ir::{Bytes, ElementType, Graph, words};
use lmsc_plan::{Costs, Target};
use serde::Serialize;

use crate::cli::args::LaunchesArgs;
use crate::job::Device;
use crate::run::{
    Files, Subject, checked, inline_small, is_planned, lowered, not_ready, planned_budget, refused,
};
use crate::{Error, device, load, targets};

/// The target if the call names none.
const TARGET: &str = "h100-sxm";

/// Number of kernels that are listed by name.
const NAMES: usize = 12;

/// A call, with the least time that it takes on the target.
struct Floored {
    call: Listed,
    /// Seconds for the bytes, and seconds for the operations.
    seconds: [f64; 2],
}

impl Floored {
    fn new(call: Listed, target: &Target) -> Floored {
        let rate = match call.stream {
            Stream::Compute => target.compute.memory_bytes_per_second,
            Stream::Out => target.link.out_bytes_per_second,
            Stream::In => target.link.in_bytes_per_second,
        };
        let element = match call.factors {
            FloatType::F32 => ElementType::Float,
            FloatType::F16 => ElementType::Float16,
            FloatType::Bf16 => ElementType::Bfloat16,
        };
        // Calls other than products count as single precision.
        let flops = target.compute.flops_per_second.of(element);
        let seconds = [call.bytes as f64 / rate as f64, call.operations as f64 / flops as f64];
        Floored { call, seconds }
    }

    fn floor(&self) -> f64 {
        self.seconds[0].max(self.seconds[1])
    }

    /// The resource that limits the call.
    fn bound(&self) -> &'static str {
        if self.seconds[1] > self.seconds[0] { "operations" } else { "bytes" }
    }

    fn kind(&self) -> &'static str {
        match (&self.call.kind, self.call.stream) {
            (CallKind::Kernel { .. }, _) => "kernel",
            (CallKind::Product { .. }, _) => "product",
            (CallKind::Convolution { .. }, _) => "convolution",
            (CallKind::Copy, Stream::In) => "copy in",
            (CallKind::Copy, _) => "copy out",
        }
    }

    /// A short description.
    fn text(&self) -> String {
        let dims = |extents: &[i32]| extents.iter().map(i32::to_string).collect::<Vec<_>>().join("x");
        match &self.call.kind {
            CallKind::Kernel { name, operators: 1, .. } => name.clone(),
            CallKind::Kernel { operators, .. } => format!("fused, {operators} operators"),
            CallKind::Product { batch: 1, extents: [m, n, k] } => format!("{m} x {n}, sums of {k}"),
            CallKind::Product { batch, extents: [m, n, k] } => format!("{batch} of {m} x {n}, sums of {k}"),
            CallKind::Convolution { found, extents: [image, weights, _], .. } => {
                let what = match found {
                    Found::Positions => "",
                    Found::Image => "image gradient, ",
                    Found::Weights => "weight gradient, ",
                };
                format!("{what}{} by {}", dims(image), dims(weights))
            }
            CallKind::Copy => String::new(),
        }
    }

    /// The engine of a convolution, or why it is an own kernel.
    fn by(&self) -> String {
        match (&self.call.kind, &self.call.instead) {
            (CallKind::Convolution { layout, engine: Some(engine), .. }, _) => {
                let cores = if engine.tensor_cores { ", tensor cores" } else { "" };
                let (number, workspace) = (engine.engine, Bytes(engine.workspace));
                format!("  (engine {number}, {}{cores}, workspace {workspace})", layout.name())
            }
            (_, Some(why)) => format!("  (own kernel: {why})"),
            _ => String::new(),
        }
    }

    fn facts(&self) -> CallFacts<'_> {
        let Listed { stream, command, node, bytes, operations, .. } = &self.call;
        let mut facts = CallFacts {
            kind: self.kind(),
            stream: stream.to_string(),
            command: *command,
            node,
            bytes: *bytes,
            operations: *operations,
            floor_seconds: self.floor(),
            bound: self.bound(),
            instead: self.call.instead.as_deref(),
            ..CallFacts::default()
        };
        match &self.call.kind {
            CallKind::Kernel { name, blocks, operators } => {
                (facts.kernel, facts.blocks, facts.operators) =
                    (Some(&**name), Some(*blocks), Some(*operators));
            }
            CallKind::Product { batch, extents } => {
                (facts.batch, facts.extents) = (Some(*batch), Some(*extents));
            }
            CallKind::Convolution { found, extents: [image, weights, positions], layout, engine } => {
                facts.computes = Some(match found {
                    Found::Positions => "positions",
                    Found::Image => "image",
                    Found::Weights => "weights",
                });
                [facts.image, facts.weights, facts.positions] =
                    [image, weights, positions].map(|it| Some(&**it));
                facts.layout = Some(layout.name());
                facts.engine = engine.as_ref().map(EngineFacts::of);
            }
            CallKind::Copy => {}
        }
        facts
    }
}

/// The calls of a step, as JSON.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Calls<'a> {
    /// Version of this format.
    format: u32,
    model: &'a str,
    target: &'a str,
    calls: Vec<CallFacts<'a>>,
    totals: Vec<TotalFacts>,
    /// The least time of all calls that compute.
    compute_floor_seconds: f64,
    /// The time that their launches take in addition.
    launch_seconds: f64,
}

/// A call. The fields of another kind are absent.
#[derive(Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CallFacts<'a> {
    /// `kernel`, `product`, `convolution`, `copy out` or `copy in`.
    kind: &'static str,
    stream: String,
    /// The index of its command in the stream.
    command: u32,
    node: &'a str,
    /// The least bytes that it moves.
    bytes: u64,
    /// The least operations; a multiplication and an addition are two.
    operations: u64,
    /// The least time.
    floor_seconds: f64,
    /// `bytes` or `operations`: the one that bounds the time.
    bound: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocks: Option<u32>,
    /// Number of operators that a kernel computes.
    #[serde(skip_serializing_if = "Option::is_none")]
    operators: Option<usize>,
    /// Number of products of one call.
    #[serde(skip_serializing_if = "Option::is_none")]
    batch: Option<i32>,
    /// Rows and columns of a product, and the length of its sums.
    #[serde(skip_serializing_if = "Option::is_none")]
    extents: Option<[i32; 3]>,
    /// `positions`, `image` or `weights`: the tensor of a convolution that is computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    computes: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<&'a [i32]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    weights: Option<&'a [i32]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    positions: Option<&'a [i32]>,
    /// The order of the dimensions of a convolution's tensors.
    #[serde(skip_serializing_if = "Option::is_none")]
    layout: Option<&'static str>,
    /// The engine of cuDNN; absent where those of the card are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    engine: Option<EngineFacts>,
    /// Why an own kernel convolves in place of cuDNN.
    #[serde(skip_serializing_if = "Option::is_none")]
    instead: Option<&'a str>,
}

/// An engine of cuDNN.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct EngineFacts {
    /// The library's number of it.
    number: i64,
    /// Its parameters by the library's numbers.
    knobs: BTreeMap<String, i64>,
    /// Whether it multiplies on tensor cores.
    tensor_cores: bool,
    workspace_bytes: u64,
}

impl EngineFacts {
    fn of(engine: &EngineChoice) -> EngineFacts {
        EngineFacts {
            number: engine.engine,
            knobs: engine.knobs.iter().map(|(knob, value)| (knob.to_string(), *value)).collect(),
            tensor_cores: engine.tensor_cores,
            workspace_bytes: engine.workspace,
        }
    }
}

/// The sum of the calls of one kind.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct TotalFacts {
    kind: &'static str,
    calls: usize,
    bytes: u64,
    operations: u64,
    floor_seconds: f64,
}

/// The sum of several calls.
#[derive(Clone, Copy, Default)]
struct Total {
    calls: usize,
    bytes: u64,
    operations: u64,
    floor: f64,
}

impl Total {
    fn add(&mut self, one: &Floored) {
        self.calls += 1;
        self.bytes += one.call.bytes;
        self.operations += one.call.operations;
        self.floor += one.floor();
    }
}

/// The calls of a step on a GPU, as text or JSON.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind) for a faulty file or target; [`ErrorKind::Refusal`](crate::ErrorKind) if the step does not
/// fit.
pub fn launches(args: &LaunchesArgs) -> Result<String, Error> {
    let path = args.input.path();
    let target = targets::named_target(args.target.as_deref().unwrap_or(TARGET))?;
    let load::Loaded { mut graph, model, .. } = load::load(path, &args.input.binding.binding())?;
    let budget = model.as_ref().filter(|_| graph.has_addresses()).and_then(planned_budget);
    let mut files = Files::new(model.and_then(|model| model.folder));
    inline_small(&mut graph, &mut files)?;
    let (precision, own_kernels) = (args.precision.unwrap_or_default(), args.own_kernels);
    let device = Device::Cuda { ordinal: 0, graph: false, precision, own_kernels };
    let card = target.card.as_deref().filter(|_| !own_kernels);
    let engines = device::engines_of(card, precision);
    let subject = Subject { path, device, planned_for: None };
    let needed = engines.workspaces(&graph);
    let program = lowered(&graph, budget, &needed).map_err(|e| refused(&subject, &graph, e))?;
    let program = checked(program, path, is_planned(&graph))?;
    let mut calls = cuda::launches(&program, &engines, own_kernels).map_err(|e| not_ready(&subject, e))?;
    count_convolutions(&graph, &target, &mut calls);
    let calls: Vec<Floored> = calls.into_iter().map(|call| Floored::new(call, &target)).collect();
    let model = path.display().to_string();
    Ok(if args.json { to_json(&model, &target, &calls) } else { to_text(&model, &target, &calls, args) })
}

/// Adds the operations of convolutions that no library runs; their kernels do not report them.
fn count_convolutions(graph: &Graph, target: &Target, calls: &mut [Listed]) {
    let costs = Costs::of(graph, target, None);
    for call in calls {
        let CallKind::Kernel { name, .. } = &call.kind else { continue };
        if let Some(node) = graph.node_named(&call.node).filter(|_| name.starts_with("convolve")) {
            call.operations = call.operations.max(costs.work(node).flops);
        }
    }
}

/// The kinds of calls, in the order of the totals.
const KINDS: [&str; 5] = ["kernel", "product", "convolution", "copy out", "copy in"];

fn totals(calls: &[Floored]) -> Vec<(&'static str, Total)> {
    let total = |kind| {
        let mut total = Total::default();
        calls.iter().filter(|call| call.kind() == kind).for_each(|call| total.add(call));
        (kind, total)
    };
    KINDS.into_iter().map(total).filter(|(_, total)| total.calls > 0).collect()
}

/// The least seconds of all computing calls, and the seconds that their launches take in addition.
fn computing(calls: &[Floored], target: &Target) -> [f64; 2] {
    let computes = || calls.iter().filter(|call| call.call.stream == Stream::Compute);
    let launches = computes().count() as f64 * target.compute.launch_nanos as f64 * 1e-9;
    [computes().map(Floored::floor).sum(), launches]
}

fn to_json(model: &str, target: &Target, calls: &[Floored]) -> String {
    let [floor, launches] = computing(calls, target);
    let total = |(kind, it): (&'static str, Total)| {
        let Total { calls, bytes, operations, floor, .. } = it;
        TotalFacts { kind, calls, bytes, operations, floor_seconds: floor }
    };
    let calls = Calls {
        format: 1,
        model,
        target: &target.name,
        calls: calls.iter().map(Floored::facts).collect(),
        totals: totals(calls).into_iter().map(total).collect(),
        compute_floor_seconds: floor,
        launch_seconds: launches,
    };
    serde_json::to_string_pretty(&calls).expect("an answer is JSON") + "\n"
}

/// A number of operations, with three digits.
fn in_units(operations: u64) -> String {
    let units = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    match units.into_iter().find(|(unit, _)| operations as f64 >= *unit) {
        Some((unit, name)) => format!("{:.2} {name}", operations as f64 / unit),
        None => operations.to_string(),
    }
}

fn row(out: &mut String, first: &str, second: &str, total: &Total, unit: f64) {
    let Total { bytes, operations, floor, .. } = *total;
    let (bytes, operations) = (Bytes(bytes).to_string(), in_units(operations));
    writeln!(out, "{first:<12} {second:<52} {bytes:>12} {operations:>12} {:>12.3}", floor * unit)
        .expect("a String takes everything");
}

fn to_text(model: &str, target: &Target, calls: &[Floored], args: &LaunchesArgs) -> String {
    let mut out = String::new();
    let rate = |bytes: u64| format!("{} GB/s", bytes as f64 / 1e9);
    let (compute, link) = (&target.compute, &target.link);
    // The closure captures nothing: rustc 1.95 and 1.96 free one buffer twice if two empty strings are moved into a
    // closure that appends to them.
    let line = |out: &mut String, text: &str| {
        out.push_str(text);
        out.push('\n');
    };
    line(&mut out, &format!("{model} on {}: {} a step", target.name, words::count(calls.len(), "call")));
    line(
        &mut out,
        &format!(
            "floors at {} of memory, {} TFLOP/s in float32, copies at {} out and {} in",
            rate(compute.memory_bytes_per_second),
            compute.flops_per_second.float32 as f64 / 1e12,
            rate(link.out_bytes_per_second),
            rate(link.in_bytes_per_second)
        ),
    );
    if !args.summary {
        out.push('\n');
        line(
            &mut out,
            &format!("{:<12} {:<52} {:>12} {:>12} {:>12}  node", "kind", "call", "bytes", "operations", "us"),
        );
        for call in calls {
            let mut total = Total::default();
            total.add(call);
            row(&mut out, call.kind(), &call.text(), &total, 1e6);
            out.pop();
            out += &format!("  {}{}", call.call.node, call.by());
            out.truncate(out.trim_end().len());
            out += "\n";
        }
    }
    out.push('\n');
    line(
        &mut out,
        &format!("{:<12} {:<52} {:>12} {:>12} {:>12}", "by kind", "calls", "bytes", "operations", "ms"),
    );
    for (kind, total) in totals(calls) {
        row(&mut out, kind, &total.calls.to_string(), &total, 1e3);
    }
    let mut by_name: BTreeMap<&str, Total> = BTreeMap::new();
    for call in calls {
        if let CallKind::Kernel { name, operators, .. } = &call.call.kind {
            let name = if *operators > 1 { "fused" } else { &**name };
            by_name.entry(name).or_default().add(call);
        }
    }
    let mut by_name: Vec<_> = by_name.into_iter().collect();
    by_name.sort_by(|(_, a), (_, b)| b.floor.total_cmp(&a.floor));
    out.push('\n');
    line(
        &mut out,
        &format!(
            "{:<65} {:>12} {:>12} {:>12}",
            "kernels with the highest floors", "bytes", "operations", "ms"
        ),
    );
    for (name, total) in by_name.iter().take(NAMES) {
        row(&mut out, &total.calls.to_string(), name, total, 1e3);
    }
    let [floor, launches] = computing(calls, target);
    out += &format!(
        "\ncomputing takes at least {:.3} ms, and {:.3} ms for the launches at {} us each; copies run beside it\n",
        floor * 1e3,
        launches * 1e3,
        target.compute.launch_nanos as f64 / 1e3
    );
    out
}

//! `lmsc calibrate`: measures operators and copies on the host or a device.

use std::collections::BTreeMap;
use std::time::Duration;

use lmsc_cuda as cuda;
use lmsc_ir::program::Program;
use lmsc_ir::{Bytes, Graph, words};
use lmsc_onnx::key;
use lmsc_passes::{PassCx, Pipeline};
use lmsc_plan::cost::{MeasuredCost, Profile, signature};
use lmsc_plan::target::TargetLink;
use lmsc_plan::{Costs, planners};
use lmsc_runtime::{RunError, TimedLaunch};

use crate::budget::Budget;
use crate::cli::args::CalibrateArgs;
use crate::context::{of_machine, with_budgets};
use crate::device::needs_gpu;
use crate::files::{check_target, write_atomically};
use crate::job::{Binding, Device, Look};
use crate::link::{LEAST, MOST, Spread, measured_link, median};
use crate::refusals::{floors_of, smaller};
use crate::run::{
    Files, RunOptions, Runner, Subject, checked, compute_here, inline_small, is_planned, let_go, metadata,
    not_ready, open_inputs, planned_budget, predicted_by, program, refused, synthetic,
};
use crate::{Code, DEFAULT_PLANNER, Error, load, look};

/// Measures the model's operators within the budget and writes the profile that planners read. Returns a summary.
///
/// # Errors
/// As [`super::run()`].
pub fn calibrate(args: &CalibrateArgs) -> Result<String, Error> {
    check_target(&args.output)?;
    let (path, device) = (args.input.path(), args.device);
    if matches!(device, Device::Cuda { graph: true, .. }) {
        let message = "calibrate looks into a step, which is replayed as a whole; leave out `+graph`";
        return Err(Error::new(Code::Option, message.to_owned()));
    }
    if args.require_libraries && device == Device::Host {
        return Err(needs_gpu("--require-libraries"));
    }
    let binding = args.input.binding.binding();
    let load::Loaded { mut graph, model, .. } = load::load_to_run(path, &binding)?;
    let is_planned = is_planned(&graph);
    compute_here(&graph);
    let planned = model.as_ref().filter(|_| graph.has_addresses()).and_then(planned_budget);
    let planned_for = model.as_ref().and_then(|model| metadata(model, key::TARGET)).map(str::to_owned);
    let subject = Subject { path, device, planned_for: planned_for.as_deref() };
    let mut files = Files::new(model.and_then(|model| model.folder));
    inline_small(&mut graph, &mut files)?;
    let cx = fitted(&mut graph, args, &binding, planned)?;
    let budget = cx.whole_budget();
    let program = program(&graph, budget, device).map_err(|e| refused(&subject, &graph, e))?;
    let program = checked(program, path, is_planned)?;
    // Before the step allocates its memory: a device may not have enough for both.
    let most = budget.map_or(MOST, |budget| (budget.0 / 4).clamp(LEAST, MOST));
    let (link, copies) = measured_link(device, most).map_err(|e| not_ready(&subject, e))?;
    let costs = if budget.is_none_or(|budget| budget.0 >= 2 * cuda::Overheads::BYTES) {
        costs_of(device).map_err(|e| not_ready(&subject, e))?
    } else {
        None
    };
    let open = open_inputs(&program);
    let options = RunOptions { require_libraries: args.require_libraries, ..RunOptions::default() };
    let unlimited = lmsc_runtime::HostLink::default();
    let session = Runner::new(program, device, &options, unlimited, budget.map(|budget| budget.0));
    let mut session = session.map_err(|e| not_ready(&subject, e))?;
    for (name, ty) in &open {
        session.set(name, &synthetic(name, ty, 0))?;
    }
    let_go(&mut graph, &mut files, |name, bytes| session.set(name, bytes))?;
    let timed = session.session().time_launches(args.steps);
    let (timed, steps) = timed.map_err(|e| not_ready(&subject, e))?;
    let mut times = shares(session.program(), &graph, &cx, &timed);

    // Nodes of one signature may find their operands in caches or not; the mean is correct for their sum.
    let mut by_signature: BTreeMap<String, (Vec<Duration>, u64)> = BTreeMap::new();
    for (index, launch) in session.program().launches() {
        let Some(node) = graph.node_named(&launch.node) else { continue };
        let entry = by_signature.entry(signature(&graph, graph.node(node))).or_default();
        entry.0.push(times.remove(&index).unwrap_or_default());
        // Workspace that the kernel does not use need not be planned.
        entry.1 = entry.1.max(session.workspace(index));
    }
    let mut profile = Profile::new(session.device(), Some(link));
    let count = by_signature.len();
    for (signature, (times, workspace)) in by_signature {
        let nanos = times.iter().sum::<Duration>().as_nanos() as u64 / times.len().max(1) as u64;
        profile.insert(signature, MeasuredCost { nanos, workspace });
    }
    let text = profile.to_json();
    write_atomically(&args.output, |w| w.write_all(text.as_bytes()))?;
    let within = budget.map(|budget| format!(", within {budget}")).unwrap_or_default();
    let spread = Spread::of(&steps).max(copies);
    let text = format!(
        "{}: {} measured in {}, {:.3} ms each{within}\n{}",
        session.device(),
        words::count(count, "kind") + " of nodes",
        words::count(steps.len(), "step"),
        median(steps).as_secs_f64() * 1e3,
        link_text(&link)
    );
    Ok(text + &costs.map(costs_text).unwrap_or_default() + &spread.text())
}

/// The share of a GPU's free memory for which a step is planned that needs more; the rest is for libraries and
/// kernels.
const OF_FREE: &str = "90%";

/// The options of the machine, with the budget of the call or the file. On a GPU that the step does not fit, the
/// budget is most of the free memory. Plans the graph for it, unless the graph is already planned.
fn fitted(
    graph: &mut Graph,
    args: &CalibrateArgs,
    binding: &Binding,
    planned: Option<Bytes>,
) -> Result<PassCx, Error> {
    let cx = PassCx { target: predicted_by(args.device), ..PassCx::default() };
    let cx = PassCx {
        planner: planners::planner(DEFAULT_PLANNER),
        addresses: true,
        ..of_machine(cx, args.device.precision())
    };
    let given = args.budget.or(planned.map(Budget::Bytes));
    let cx = with_budgets(cx, graph, given, None)?;
    let memory = cx.target().device_bytes;
    let needed = || cx.memory(graph).peak().0.saturating_add(cx.constants.0);
    let most: Budget = OF_FREE.parse().expect("it is a share");
    let cx = match given {
        None if args.device == Device::Host || needed() <= most.bytes(memory, || Bytes::ZERO).0 => {
            return Ok(cx);
        }
        None => with_budgets(cx, graph, Some(most), None)?,
        Some(_) => cx,
    };
    if !graph.has_addresses() {
        let original = graph.clone();
        let passes = Pipeline::of_planner(DEFAULT_PLANNER);
        look::run(graph, &passes, &cx, &Look::default())
            .map_err(|e| smaller(floors_of(e, &original, &cx), binding))?;
    }
    Ok(cx)
}

/// The time of each command. A launch that fuses several commands is divided among them in proportion to their
/// times in the target's model, so that their sum is the measured time.
fn shares(program: &Program, graph: &Graph, cx: &PassCx, timed: &[TimedLaunch]) -> BTreeMap<u32, Duration> {
    let costs = Costs::of(graph, &cx.target(), None);
    let weights: BTreeMap<u32, u64> = program
        .launches()
        .filter_map(|(index, launch)| Some((index, costs.nanos(graph.node_named(&launch.node)?).max(1))))
        .collect();
    let mut times = BTreeMap::new();
    for TimedLaunch { commands: [first, last], time } in timed {
        let all: u64 = weights.range(first..=last).map(|(_, &weight)| weight).fold(0, u64::saturating_add);
        for (&command, &weight) in weights.range(first..=last) {
            times.insert(command, time.mul_f64(weight as f64 / all.max(1) as f64));
        }
    }
    times
}

fn link_text(link: &TargetLink) -> String {
    let rate = |bytes: u64| format!("{:.2} GB/s", bytes as f64 / 1e9);
    let beside = |bytes: Option<u64>| bytes.map(rate).unwrap_or_default();
    format!(
        "copies: {} out, {} in; at once {} and {}; {:.1} µs besides\n",
        rate(link.out_bytes_per_second),
        rate(link.in_bytes_per_second),
        beside(link.out_beside_in_bytes_per_second),
        beside(link.in_beside_out_bytes_per_second),
        link.latency_nanos as f64 / 1e3
    )
}

fn costs_text(costs: cuda::Overheads) -> String {
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    format!(
        "besides: {:.2} µs a launch, {:.2} µs a wait for another stream; {:.3} ms a GiB of memory, {:.3} ms pinned\n",
        micros(costs.launch),
        micros(costs.wait),
        micros(costs.device_memory) / 1e3,
        micros(costs.pinned_memory) / 1e3
    )
}

/// The costs of a GPU other than operators and copies: launches, waits and allocations; `None` on the host.
fn costs_of(device: Device) -> Result<Option<cuda::Overheads>, RunError> {
    let Device::Cuda { ordinal, .. } = device else { return Ok(None) };
    let compiler = cuda::KernelCompiler::new().map_err(|missing| RunError::NoDevice(missing.to_string()))?;
    cuda::Overheads::measure(ordinal, &compiler).map(Some)
}

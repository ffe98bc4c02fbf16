//! `lmsc calibrate`: measures operators and copies on the host or a device.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Scope;
use std::time::{Duration, Instant};

use lmsc_cuda as cuda;
use lmsc_ir::program::{Program, Stream};
use lmsc_ir::{Bytes, Graph, words};
use lmsc_onnx::key;
use lmsc_passes::{PassCx, Pipeline};
use lmsc_plan::cost::{MeasuredCost, Profile, signature};
use lmsc_plan::problem::Duplex;
use lmsc_plan::target::TargetLink;
use lmsc_plan::{Costs, planners};
use lmsc_runtime::{RunError, TimedLaunch};

use super::runner::Runner;
use super::tensors::{self, Files};
use super::{
    Subject, checked, compute_here, is_planned, metadata, not_ready, open_inputs, planned_budget,
    predicted_by, program, refused, synthetic,
};
use crate::budget::Budget;
use crate::cli::{CalibrateArgs, Device, LookArgs, RunOptions, needs_gpu};
use crate::{Code, DEFAULT_PLANNER, Error, emit, load};

/// Measures the model's operators within the budget and writes the profile that planners read. Returns a summary.
///
/// # Errors
/// As [`super::run()`].
pub fn calibrate(args: &CalibrateArgs) -> Result<String, Error> {
    emit::check_target(&args.output)?;
    let (path, device) = (args.input.path(), args.device);
    if matches!(device, Device::Cuda { graph: true, .. }) {
        let message = "calibrate looks into a step, which is replayed as a whole; leave out `+graph`";
        return Err(Error::new(Code::Option, message.to_owned()));
    }
    if args.require_libraries && device == Device::Host {
        return Err(needs_gpu("--require-libraries"));
    }
    let load::Loaded { mut graph, model, .. } = load::load_to_run(path, &args.input.binding)?;
    let is_planned = is_planned(&graph);
    compute_here(&graph);
    let planned = model.as_ref().filter(|_| graph.has_addresses()).and_then(planned_budget);
    let planned_for = model.as_ref().and_then(|model| metadata(model, key::TARGET)).map(str::to_owned);
    let subject = Subject { path, device, planned_for: planned_for.as_deref() };
    let mut files = Files::new(model.and_then(|model| model.folder));
    tensors::inline_small(&mut graph, &mut files)?;
    let cx = fitted(&mut graph, args, planned)?;
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
    tensors::let_go(&mut graph, &mut files, |name, bytes| session.set(name, bytes))?;
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
    crate::write_atomically(&args.output, |w| w.write_all(text.as_bytes()))?;
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

/// How much repeated measurements differ: the time at the third quartile divided by the time at the first quartile.
#[derive(Clone, Copy)]
struct Spread(f64);

impl Spread {
    /// Above this, something else ran on the machine.
    const LARGE: f64 = 1.25;

    /// 1 for fewer than four measurements: they say nothing about their spread.
    fn of(times: &[Duration]) -> Spread {
        let mut times = times.to_vec();
        times.sort_unstable();
        let quartile = |part: usize| times[part * (times.len() - 1) / 4].as_secs_f64().max(1e-9);
        Spread(if times.len() < 4 { 1.0 } else { quartile(3) / quartile(1) })
    }

    fn max(self, other: Spread) -> Spread {
        Spread(self.0.max(other.0))
    }

    /// A line that says what to do where the spread is large; else nothing.
    fn text(self) -> String {
        if self.0 < Spread::LARGE {
            return String::new();
        }
        let percent = (self.0 - 1.0) * 100.0;
        format!(
            "Repeated measurements differ by {percent:.0} % (third quartile to first): measure again when nothing else runs.\n"
        )
    }
}

/// The share of a GPU's free memory for which a step is planned that needs more; the rest is for libraries and
/// kernels.
const OF_FREE: &str = "90%";

/// The options of the machine, with the budget of the call or the file. On a GPU that the step does not fit, the
/// budget is most of the free memory. Plans the graph for it, unless the graph is already planned.
fn fitted(graph: &mut Graph, args: &CalibrateArgs, planned: Option<Bytes>) -> Result<PassCx, Error> {
    let cx = PassCx { target: predicted_by(args.device), ..PassCx::default() };
    let cx = PassCx { planner: planners::planner(DEFAULT_PLANNER), addresses: true, ..crate::of_machine(cx) };
    let given = args.budget.or(planned.map(Budget::Bytes));
    let cx = crate::with_budgets(cx, graph, given, None)?;
    let memory = cx.target().device_bytes;
    let needed = || cx.memory(graph).peak().0.saturating_add(cx.constants.0);
    let most: Budget = OF_FREE.parse().expect("it is a share");
    let cx = match given {
        None if args.device == Device::Host || needed() <= most.bytes(memory, || Bytes::ZERO).0 => {
            return Ok(cx);
        }
        None => crate::with_budgets(cx, graph, Some(most), None)?,
        Some(_) => cx,
    };
    if !graph.has_addresses() {
        let original = graph.clone();
        let passes = Pipeline::of_planner(DEFAULT_PLANNER);
        crate::look::run(graph, &passes, &cx, &LookArgs::default())
            .map_err(|e| crate::smaller(crate::floors_of(e, &original, &cx), &args.input.binding))?;
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

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// The costs of a GPU other than operators and copies: launches, waits and allocations; `None` on the host.
fn costs_of(device: Device) -> Result<Option<cuda::Overheads>, RunError> {
    let Device::Cuda { ordinal, .. } = device else { return Ok(None) };
    let compiler = cuda::KernelCompiler::new().map_err(|missing| RunError::NoDevice(missing.to_string()))?;
    cuda::Overheads::measure(ordinal, &compiler).map(Some)
}

/// The bandwidths and latency between the device and the host, measured with copies of at most `most` bytes.
pub(crate) fn link_of(device: Device, most: u64) -> Result<TargetLink, RunError> {
    measured_link(device, most).map(|(link, _)| link)
}

/// The link, and by how much copies of the same size differ.
fn measured_link(device: Device, most: u64) -> Result<(TargetLink, Spread), RunError> {
    match device {
        Device::Host => std::thread::scope(|scope| {
            let threads = [Copier::new(scope, Stream::Out)?, Copier::new(scope, Stream::In)?];
            link(most, |way, bytes, beside| Ok(Copier::time(&threads, way, bytes, beside)))
        }),
        Device::Cuda { ordinal, .. } => {
            let copies = cuda::Copies::new(ordinal, most)?;
            link(most, |way, bytes, beside| copies.time(way, bytes, beside))
        }
    }
}

/// The size of a copy whose time is the latency, in bytes.
pub(crate) const LEAST: u64 = 256;

/// The largest copy that is measured, if there is memory for it.
pub(crate) const MOST: u64 = 32 << 20;

/// The link that fits the copy times of `time`, which gets the direction, the bytes, and whether the other
/// direction is busy; and by how much its times for the largest copies differ.
fn link(
    most: u64,
    mut time: impl FnMut(Stream, u64, bool) -> Result<Duration, RunError>,
) -> Result<(TargetLink, Spread), RunError> {
    let spread = Cell::new(Spread(1.0));
    let mut typical = |way, bytes, beside, times: usize| {
        // The first copy runs with cold memory and caches.
        let all = (0..=times).map(|_| time(way, bytes, beside)).collect::<Result<Vec<_>, _>>()?;
        if bytes == most {
            spread.set(spread.get().max(Spread::of(&all[1..])));
        }
        Ok::<_, RunError>(median(all[1..].to_vec()))
    };
    // A higher latency of one direction is counted with the bytes.
    let latency = typical(Stream::Out, LEAST, false, 25)?.min(typical(Stream::In, LEAST, false, 25)?);
    let mut rate = |way, beside| {
        let (mut bytes, mut seconds) = (0, 0.0);
        for size in [most / 16, most / 4, most] {
            bytes += size;
            seconds += typical(way, size, beside, 5)?.saturating_sub(latency).as_secs_f64();
        }
        Ok::<_, RunError>(((bytes as f64 / seconds.max(1e-9)) as u64).max(1))
    };
    let [out, into] = [rate(Stream::Out, false)?, rate(Stream::In, false)?];
    let link = TargetLink {
        duplex: Duplex::Full,
        out_bytes_per_second: out,
        in_bytes_per_second: into,
        // A copy is not faster while the other direction is busy.
        out_beside_in_bytes_per_second: Some(rate(Stream::Out, true)?.min(out)),
        in_beside_out_bytes_per_second: Some(rate(Stream::In, true)?.min(into)),
        latency_nanos: latency.as_nanos() as u64,
    };
    Ok((link, spread.get()))
}

/// A thread that runs copies, as the copy threads of a session do.
struct Copier {
    requests: Sender<(Instant, u64)>,
    took: Receiver<Duration>,
}

impl Copier {
    fn new<'scope>(scope: &'scope Scope<'scope, '_>, stream: Stream) -> Result<Copier, RunError> {
        let ((requests, requested), (done, took)) = (channel::<(Instant, u64)>(), channel());
        let copy = move || {
            let (from, mut to) = (vec![1u8; MOST as usize], vec![2u8; MOST as usize]);
            for (since, bytes) in requested {
                to[..bytes as usize].copy_from_slice(std::hint::black_box(&from[..bytes as usize]));
                std::hint::black_box(&mut to);
                _ = done.send(since.elapsed());
            }
        };
        let started = std::thread::Builder::new().spawn_scoped(scope, copy);
        started.map_err(|error| RunError::NoThread { stream, why: error.to_string() })?;
        Ok(Copier { requests, took })
    }

    fn copy(&self, bytes: u64) {
        _ = self.requests.send((Instant::now(), bytes));
    }

    /// The time from the request of a copy until its end. `threads` are the one for copies out and the one for
    /// copies in.
    fn time(threads: &[Copier; 2], way: Stream, bytes: u64, beside: bool) -> Duration {
        let [out, into] = threads;
        let (this, other) = if way == Stream::In { (into, out) } else { (out, into) };
        // The other direction is busy from before this copy begins until after it ends.
        let [before, behind] = if beside { [1, 2] } else { [0, 0] };
        (0..before).for_each(|_| other.copy(bytes));
        this.copy(bytes);
        (0..behind).for_each(|_| other.copy(bytes));
        (0..before + behind).for_each(|_| _ = other.took.recv());
        this.took.recv().expect("copying does not panic")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measurements_that_differ_are_told() {
        let spread = |millis: &[u64]| {
            Spread::of(&millis.iter().map(|&m| Duration::from_millis(m)).collect::<Vec<_>>())
        };
        assert_eq!(spread(&[10, 11, 10, 10, 30]).text(), "");
        assert_eq!(spread(&[10, 90]).text(), "");
        assert!(spread(&[20, 10, 10, 20, 20]).text().contains("by 100 %"));
        assert!(spread(&[10; 5]).max(spread(&[10, 10, 15, 15])).text().contains("by 50 %"));
    }
}

//! `lmsc calibrate`: how long operators and copies take on the host or a device.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Scope;
use std::time::{Duration, Instant};

use lmsc_ir::program::{Checked, Stream};
use lmsc_ir::words;
use lmsc_plan::cost::{Measured, Profile, signature};
use lmsc_plan::target::{Duplex, Link};
use lmsc_runtime::{RunError, Turn, Watch, cuda};

use super::runner::Runner;
use super::tensors::{self, Files};
use super::{compute_here, not_ready, open_inputs, program, refused, synthetic};
use crate::cli::{CalibrateArgs, Device, RunOptions, needs_gpu};
use crate::{Error, emit, load};

/// Runs the model's steps, measures its operators, and writes the profile that planners read; what there is to tell comes
/// back.
///
/// # Errors
/// As [`super::run()`].
pub fn calibrate(args: &CalibrateArgs) -> Result<String, Error> {
    emit::check_target(&args.output)?;
    emit::check_not_read(&args.output, &args.input, false)?;
    let (path, device) = (args.input.path(), args.device);
    if matches!(device, Device::Cuda { graph: true, .. }) {
        let message = "calibrate looks into a step, which is replayed as a whole; leave out `+graph`";
        return Err(Error::Input(message.to_owned()));
    }
    if args.require_libraries && device == Device::Host {
        return Err(needs_gpu("--require-libraries"));
    }
    let load::Loaded { mut graph, model, .. } = load::load_to_run(path, &args.input.binding)?;
    compute_here(&graph);
    let mut files = Files::new(model.and_then(|model| model.folder));
    tensors::inline_small(&mut graph, &mut files)?;
    let program = program(&graph, None, device).map_err(|e| refused(path, &graph, e))?;
    let program =
        Checked::new(program).map_err(|flaw| Error::Ours(format!("the lowered step is not safe: {flaw}")))?;
    // Before the step has its memory: on a device both need not fit.
    let link = link_of(device).map_err(|e| not_ready(path, e))?;
    let costs = costs_of(device).map_err(|e| not_ready(path, e))?;
    let open = open_inputs(&program);
    let options = RunOptions { require_libraries: args.require_libraries, ..RunOptions::default() };
    let unlimited = lmsc_runtime::Link::default();
    let session = Runner::new(program, device, &options, unlimited, None);
    let mut session = session.map_err(|e| not_ready(path, e))?;
    for (name, ty) in &open {
        session.set(name, &synthetic(name, ty, 0));
    }
    tensors::let_go(&mut graph, &mut files, |name, bytes| _ = session.set(name, bytes))?;
    session.set_traces(true);
    // The first step finds memory and caches cold.
    let measured = session.run(1 + args.steps, &mut Nobody).map_err(|e| not_ready(path, e))?;

    // From the end of the command before: what it costs to get from one to the next is the operators' time, too. What copies
    // keep it waiting is not.
    let mut times: BTreeMap<u32, Vec<Duration>> = BTreeMap::new();
    let mut before = Duration::ZERO;
    for event in measured.events.iter().filter(|e| e.stream == Stream::Compute) {
        if event.step > 0 {
            let stalled = event.begun.saturating_sub(event.waited);
            times.entry(event.command).or_default().push(event.ended.saturating_sub(before + stalled));
        }
        before = event.ended;
    }
    // Nodes of a signature find their operands near or far; their mean is what they take together.
    let mut by_signature: BTreeMap<String, (Vec<Duration>, u64)> = BTreeMap::new();
    for (index, launch) in session.program().launches() {
        let Some(node) = graph.node_named(&launch.node) else { continue };
        let entry = by_signature.entry(signature(&graph, graph.node(node))).or_default();
        entry.0.push(median(times.remove(&index).unwrap_or_default()));
        // More than it makes use of need not be planned.
        entry.1 = entry.1.max(session.workspace(index, launch));
    }
    let mut profile = Profile::new(session.device(), Some(link));
    let count = by_signature.len();
    for (signature, (times, workspace)) in by_signature {
        let nanos = times.iter().sum::<Duration>().as_nanos() as u64 / times.len().max(1) as u64;
        profile.insert(signature, Measured { nanos, workspace });
    }
    let text = profile.to_json();
    crate::write_atomically(&args.output, |w| w.write_all(text.as_bytes()))?;
    let steps: Vec<Duration> = measured.steps[1..].to_vec();
    let rate = |bytes: u64| format!("{:.2} GB/s", bytes as f64 / 1e9);
    let beside = |bytes: Option<u64>| bytes.map(rate).unwrap_or_default();
    let told = format!(
        "{}: {} measured in {}, {:.3} ms each\ncopies: {} out, {} in; at once {} and {}; {:.1} µs besides\n",
        session.device(),
        words::count(count, "kind") + " of nodes",
        words::count(steps.len(), "step"),
        median(steps).as_secs_f64() * 1e3,
        rate(link.out_bytes_per_second),
        rate(link.in_bytes_per_second),
        beside(link.out_beside_in_bytes_per_second),
        beside(link.in_beside_out_bytes_per_second),
        link.latency_nanos as f64 / 1e3
    );
    Ok(told + &costs.map(costs_told).unwrap_or_default())
}

fn costs_told(costs: cuda::Costs) -> String {
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    format!(
        "besides: {:.2} µs a launch, {:.2} µs a wait for another stream; {:.3} ms a GiB of memory, {:.3} ms pinned\n",
        micros(costs.launch),
        micros(costs.wait),
        micros(costs.device_memory) / 1e3,
        micros(costs.pinned_memory) / 1e3
    )
}

/// Nobody watches.
struct Nobody;

impl Watch for Nobody {
    fn turn(&mut self, _: &mut Turn<'_>) -> Result<(), String> {
        Ok(())
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// What a GPU asks for besides.
fn costs_of(device: Device) -> Result<Option<cuda::Costs>, RunError> {
    let Device::Cuda { ordinal, .. } = device else { return Ok(None) };
    let compiler = cuda::Compiler::new().map_err(|missing| RunError::NoDevice(missing.to_string()))?;
    cuda::Costs::measure(ordinal, &compiler).map(Some)
}

/// How fast the device and the host's memory exchange bytes.
fn link_of(device: Device) -> Result<Link, RunError> {
    match device {
        Device::Host => std::thread::scope(|scope| {
            let threads = [Copier::new(scope, Stream::Out)?, Copier::new(scope, Stream::In)?];
            link(|way, bytes, beside| Ok(Copier::time(&threads, way, bytes, beside)))
        }),
        Device::Cuda { ordinal, .. } => {
            let copies = cuda::Copies::new(ordinal, MOST)?;
            link(|way, bytes, beside| copies.time(way, bytes, beside))
        }
    }
}

/// A copy of so few bytes takes as long as one of none.
const LEAST: u64 = 256;

/// The largest copy that is measured.
const MOST: u64 = 32 << 20;

/// The link on which a copy takes as long as `time` says: in the direction of the stream, of so many bytes, and perhaps while
/// the other direction is busy.
fn link(mut time: impl FnMut(Stream, u64, bool) -> Result<Duration, RunError>) -> Result<Link, RunError> {
    let mut typical = |way, bytes, beside, times: usize| {
        // The first finds memory and caches cold.
        let all = (0..=times).map(|_| time(way, bytes, beside)).collect::<Result<Vec<_>, _>>()?;
        Ok::<_, RunError>(median(all[1..].to_vec()))
    };
    // What copies of one direction take longer is counted with their bytes.
    let latency = typical(Stream::Out, LEAST, false, 25)?.min(typical(Stream::In, LEAST, false, 25)?);
    let mut rate = |way, beside| {
        let (mut bytes, mut seconds) = (0, 0.0);
        for size in [MOST / 16, MOST / 4, MOST] {
            bytes += size;
            seconds += typical(way, size, beside, 5)?.saturating_sub(latency).as_secs_f64();
        }
        Ok::<_, RunError>(((bytes as f64 / seconds.max(1e-9)) as u64).max(1))
    };
    let [out, into] = [rate(Stream::Out, false)?, rate(Stream::In, false)?];
    Ok(Link {
        duplex: Duplex::Full,
        out_bytes_per_second: out,
        in_bytes_per_second: into,
        // Company makes no copy faster.
        out_beside_in_bytes_per_second: Some(rate(Stream::Out, true)?.min(out)),
        in_beside_out_bytes_per_second: Some(rate(Stream::In, true)?.min(into)),
        latency_nanos: latency.as_nanos() as u64,
    })
}

/// A thread that copies what it is told to, as those of a session do.
struct Copier {
    tell: Sender<(Instant, u64)>,
    took: Receiver<Duration>,
}

impl Copier {
    fn new<'scope>(scope: &'scope Scope<'scope, '_>, stream: Stream) -> Result<Copier, RunError> {
        let ((tell, told), (done, took)) = (channel::<(Instant, u64)>(), channel());
        let copy = move || {
            let (from, mut to) = (vec![1u8; MOST as usize], vec![2u8; MOST as usize]);
            for (since, bytes) in told {
                to[..bytes as usize].copy_from_slice(std::hint::black_box(&from[..bytes as usize]));
                std::hint::black_box(&mut to);
                _ = done.send(since.elapsed());
            }
        };
        let started = std::thread::Builder::new().spawn_scoped(scope, copy);
        started.map_err(|error| RunError::NoThread { stream, why: error.to_string() })?;
        Ok(Copier { tell, took })
    }

    fn copy(&self, bytes: u64) {
        _ = self.tell.send((Instant::now(), bytes));
    }

    /// How long a copy takes from when one of the threads is told until it has copied; one is for what leaves, the other
    /// for what comes.
    fn time(threads: &[Copier; 2], way: Stream, bytes: u64, beside: bool) -> Duration {
        let [out, into] = threads;
        let (this, other) = if way == Stream::In { (into, out) } else { (out, into) };
        // The other way is busy before this begins, and until it has ended.
        let [before, behind] = if beside { [1, 2] } else { [0, 0] };
        (0..before).for_each(|_| other.copy(bytes));
        this.copy(bytes);
        (0..behind).for_each(|_| other.copy(bytes));
        (0..before + behind).for_each(|_| _ = other.took.recv());
        this.took.recv().expect("copying does not panic")
    }
}

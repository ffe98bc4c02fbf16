//! `lmsc calibrate`: how long operators and copies take on this machine.

use std::collections::BTreeMap;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use lmsc_ir::program::{Checked, Role, Stream};
use lmsc_ir::words;
use lmsc_plan::cost::{Measured, Profile, signature};
use lmsc_plan::target::{Duplex, Link};
use lmsc_runtime::{Session, Turn, Watch};

use super::{not_ready, program, refused, synthetic, tensors};
use crate::cli::{CalibrateArgs, Device};
use crate::{Error, emit, load};

/// Runs the model's steps, measures its operators, and writes the profile that planners read; what there is to tell comes
/// back.
///
/// # Errors
/// As [`super::run()`].
pub fn calibrate(args: &CalibrateArgs) -> Result<String, Error> {
    emit::check_target(&args.output)?;
    let path = args.input.path();
    let load::Loaded { mut graph, model, .. } = load(path, &args.input.binding)?;
    tensors::inline(&mut graph, model.as_ref().and_then(|model| model.folder.as_deref()))?;
    let program = program(&graph, None, Device::Host).map_err(|e| refused(path, &graph, e))?;
    let program =
        Checked::new(program).map_err(|flaw| Error::Ours(format!("the lowered step is not safe: {flaw}")))?;
    let mut session = Session::new(program, lmsc_runtime::Link::default()).map_err(|e| not_ready(path, e))?;
    let open = session.program().given.iter().filter(|given| given.role != Role::Constant);
    let open: Vec<_> = open.filter(|g| g.data.is_none()).map(|g| g.tensor.clone()).collect();
    for tensor in open {
        session.set(&tensor.name, &synthetic(&tensor.name, &tensor.ty, 0));
    }
    session.traces = true;
    // The first step finds memory and caches cold.
    let measured = session.run(1 + args.steps, &mut Nobody).map_err(|e| not_ready(path, e))?;

    // From the end of the command before: what it costs to get from one to the next is the operators' time, too.
    let mut times: BTreeMap<u32, Vec<Duration>> = BTreeMap::new();
    let mut before = Duration::ZERO;
    for event in measured.events.iter().filter(|e| e.stream == Stream::Compute) {
        if event.step > 0 {
            times.entry(event.command).or_default().push(event.ended.saturating_sub(before));
        }
        before = event.ended;
    }
    // Nodes of a signature find their operands near or far; their mean is what they take together.
    let mut by_signature: BTreeMap<String, (Vec<Duration>, u64)> = BTreeMap::new();
    for (index, launch) in session.program().launches() {
        let Some(node) = graph.node_named(&launch.node) else { continue };
        let entry = by_signature.entry(signature(&graph, graph.node(node))).or_default();
        entry.0.push(median(times.remove(&index).unwrap_or_default()));
        entry.1 = entry.1.max(launch.workspace.end - launch.workspace.start);
    }
    let mut profile = Profile::new("host", Some(link()));
    let count = by_signature.len();
    for (signature, (times, workspace)) in by_signature {
        let nanos = times.iter().sum::<Duration>().as_nanos() as u64 / times.len().max(1) as u64;
        profile.insert(signature, Measured { nanos, workspace });
    }
    let text = profile.to_json();
    crate::write_atomically(&args.output, |w| w.write_all(text.as_bytes()))?;
    let steps: Vec<Duration> = measured.steps[1..].to_vec();
    Ok(format!(
        "{} measured in {}, {:.3} ms each\n",
        words::count(count, "kind") + " of nodes",
        words::count(steps.len(), "step"),
        median(steps).as_secs_f64() * 1e3
    ))
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

/// How fast this machine copies in one thread, alone and beside another one.
fn link() -> Link {
    let alone = copies(1);
    let beside = copies(2).min(alone);
    Link {
        duplex: Duplex::Full,
        out_bytes_per_second: alone,
        in_bytes_per_second: alone,
        out_beside_in_bytes_per_second: Some(beside),
        in_beside_out_bytes_per_second: Some(beside),
        latency_nanos: waking().as_nanos() as u64,
    }
}

/// How long it takes until a thread that waits for another one runs.
fn waking() -> Duration {
    const TIMES: usize = 100;
    let ((to, there), (back, here)) = (channel(), channel());
    std::thread::scope(|scope| {
        scope.spawn(move || there.iter().try_for_each(|()| back.send(())));
        let both_ways = (0..TIMES).map(|_| {
            let start = Instant::now();
            _ = to.send(());
            _ = here.recv();
            start.elapsed()
        });
        let time = median(both_ways.collect()) / 2;
        drop(to);
        time
    })
}

/// How many bytes each of so many threads copies in a second.
fn copies(threads: usize) -> u64 {
    const BYTES: usize = 32 << 20;
    let copy = || {
        let (from, mut to) = (vec![1u8; BYTES], vec![2u8; BYTES]);
        let mut times = Vec::new();
        for _ in 0..5 {
            let start = Instant::now();
            to.copy_from_slice(std::hint::black_box(&from));
            std::hint::black_box(&mut to);
            times.push(start.elapsed());
        }
        (BYTES as f64 / median(times).as_secs_f64().max(1e-9)) as u64
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(copy)).collect();
        let speeds = running.into_iter().map(|thread| thread.join().expect("copying does not panic"));
        speeds.min().unwrap_or(1).max(1)
    })
}

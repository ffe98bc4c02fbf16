//! The report of a run, measured and predicted.

use std::collections::BTreeMap;
use std::time::Duration;

use lmsc_cuda::{Group, LibraryFacts};
use lmsc_ir::program::{Action, Command, Stream, peak_in_order};
use lmsc_ir::{Bytes, Graph, NodeId, words};
use lmsc_passes::PassCx;
use lmsc_plan::cost::{Cost, stream_nanos};
use lmsc_plan::{Costs, Execution, Target};
use lmsc_runtime::{Fragmentation, Measurements, Recent};
use serde::Serialize;

use super::runner::{Gpu, Runner};
use crate::Warning;

/// The predicted step.
pub(crate) struct Prediction {
    pub(crate) execution: Execution,
    /// The peak that the plan allows, over all timings.
    peak: Bytes,
    /// The share of the operators' time that was measured for the profile, in percent; `None` without a profile.
    measured_percent: Option<f64>,
    target: String,
}

impl Prediction {
    /// The execution of a step by its edges, with the target's or the profile's costs, and with this link bandwidth
    /// if it is given. The nodes of a group are one launch; its time is that of the bytes that it moves, unless all
    /// nodes were measured.
    pub(crate) fn new(graph: &Graph, cx: &PassCx, bandwidth: Option<u64>, groups: &[Group]) -> Prediction {
        let (costs, target) = (cx.costs(graph), cx.target());
        let mut link = target.link.for_planning();
        if let Some(bandwidth) = bandwidth {
            // Copies are not faster than this machine's link.
            link.out_bytes_per_second = bandwidth.min(link.out_bytes_per_second);
            link.in_bytes_per_second = bandwidth.min(link.in_bytes_per_second);
        }
        let fused = fused(graph, &costs, groups, &target);
        let nanos = |node| fused.get(&node).copied().unwrap_or_else(|| costs.nanos(node));
        let cost = |node| Cost { nanos: nanos(node), workspace: costs.workspace(node).0 };
        let coverage = costs.coverage();
        let share =
            || 100.0 * coverage.measured_nanos as f64 / (coverage.nanos as f64).max(f64::MIN_POSITIVE);
        Prediction {
            execution: Execution::of(graph, &link, cost),
            peak: cx.memory(graph).peak(),
            measured_percent: cx.machine.profile.is_some().then(share),
            target: target.name,
        }
    }

    pub(crate) fn step(&self) -> Duration {
        Duration::from_nanos(self.execution.makespan)
    }

    /// The source of the prediction, in words.
    fn source(&self) -> String {
        match self.measured_percent {
            Some(percent) => format!("{percent:.0} % of it from a profile"),
            None => format!("the model of the target {}", self.target),
        }
    }
}

/// The nanoseconds of nodes with fused kernels: the first node of a group has the time of all.
fn fused(graph: &Graph, costs: &Costs, groups: &[Group], target: &Target) -> BTreeMap<NodeId, u64> {
    let mut nanos = BTreeMap::new();
    for group in groups {
        let nodes: Vec<NodeId> = group.nodes.iter().filter_map(|name| graph.node_named(name)).collect();
        if nodes.iter().all(|&node| costs.is_measured(node)) {
            continue;
        }
        let single: u64 = nodes.iter().map(|&node| costs.nanos(node)).fold(0, u64::saturating_add);
        let all = stream_nanos(&target.compute, group.moved).min(single);
        nanos.extend(nodes.iter().map(|&node| (node, 0)));
        nanos.extend(nodes.first().map(|&node| (node, all)));
    }
    nanos
}

/// The report of a run, as JSON. Bytes are plain numbers.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RunFacts {
    /// Version of this format.
    format: u32,
    /// The number of the first step of this run.
    first_step: u64,
    /// The losses of the last steps; `null` is no finite number.
    #[cfg_attr(test, schemars(with = "Vec<Option<f32>>"))]
    losses: Vec<f32>,
    /// The times of the last steps.
    step_seconds: Vec<f64>,
    predicted_step_seconds: f64,
    /// The source of the prediction, in words.
    prediction: String,
    /// The most bytes of the device in use at once, as measured.
    peak: u64,
    /// The most bytes that the plan allows.
    predicted_peak: u64,
    /// The most bytes in the order of the commands.
    peak_in_order: u64,
    /// Bytes of the device's arena.
    arena: u64,
    /// The bytes of the arena up to its last address.
    last_address: u64,
    /// Bytes of the host's memory for swapped tensors.
    slab: u64,
    budget: Option<u64>,
    /// Bytes that a step copies to the host.
    copied_out: u64,
    /// Bytes that a step copies to the device.
    copied_in: u64,
    copies_out: usize,
    copies_in: usize,
    /// The mean time of a step in which operators waited for copies.
    stalled_seconds: f64,
    /// The share of the copies' time that operators hid.
    hidden_percent: Option<f64>,
    gpu: Option<GpuFacts>,
    /// The chunks of memory that is mapped in chunks.
    #[serde(rename = "virtual")]
    chunks: Option<ChunkFacts>,
    /// Inputs and initializers whose values lmsc chose.
    drawn: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<Warning>,
}

/// The GPU of a run.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct GpuFacts {
    name: String,
    /// The implementation of matrix products.
    products: String,
    /// The implementation of convolutions, if the step has some.
    convolutions: Option<String>,
    libraries: Vec<Library>,
}

/// A library of the GPU.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Library {
    name: String,
    version: String,
    path: String,
}

/// Memory that is mapped in chunks.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ChunkFacts {
    /// Bytes of a chunk.
    chunk: u64,
    /// The most chunks in use at once.
    chunks: u64,
    /// Number of chunks that are needed.
    mapped: u64,
    /// The most bytes that are lost at once.
    lost: u64,
    /// The bound of the lost bytes (OOC, eq. 2).
    lost_below: u64,
    /// The bytes that an arena would lose.
    lost_in_arena: u64,
}

impl GpuFacts {
    fn of(gpu: &Gpu) -> GpuFacts {
        let library = |it: &LibraryFacts| Library {
            name: it.name.to_string(),
            version: it.version.to_string(),
            path: it.path.display().to_string(),
        };
        GpuFacts {
            name: gpu.name.clone(),
            products: gpu.products.clone(),
            convolutions: gpu.convolutions.clone(),
            libraries: gpu.libraries.iter().map(library).collect(),
        }
    }
}

/// The report of a run.
pub(crate) struct Report {
    losses: Recent<f32>,
    first: u64,
    steps: Recent<Duration>,
    /// The predicted time of a step, and the source of the prediction.
    step: Duration,
    source: String,
    /// The measured peak of the device; the peak that the plan allows; and the peak of the program's order.
    peak: Bytes,
    predicted: Bytes,
    in_order: Bytes,
    pub(crate) arena: Bytes,
    pub(crate) extent: Bytes,
    slab: Bytes,
    budget: Option<Bytes>,
    /// The chunks of the session, if it has some.
    virtual_: Option<Fragmentation>,
    /// Bytes that a step copies to the host and back.
    copied: [Bytes; 2],
    copies: [usize; 2],
    /// The mean time per step that computation waited for copies.
    stalled: Duration,
    /// The share of the copies' time that overlapped computation, in percent.
    hidden: Option<f64>,
    /// The GPU of the run.
    gpu: Option<Gpu>,
    /// Inputs and initializers whose values lmsc chose.
    pub(crate) drawn: Vec<String>,
}

impl Report {
    pub(crate) fn new(
        cx: &PassCx,
        session: &Runner,
        measured: &Measurements,
        first: u64,
        losses: Recent<f32>,
        prediction: &Prediction,
    ) -> Report {
        let program = session.program();
        let copying = measured.busy[Stream::Out as usize] + measured.busy[Stream::In as usize];
        let exposed = measured.stalled.as_secs_f64() / copying.as_secs_f64();
        let copies = |stream| {
            let is_copy = |command: &&Command| matches!(command.action, Action::Copy(_));
            program.stream(stream).iter().filter(is_copy).count()
        };
        Report {
            losses,
            first,
            steps: measured.steps.clone(),
            step: prediction.step(),
            source: prediction.source(),
            peak: Bytes(measured.peak),
            predicted: prediction.peak,
            in_order: Bytes(peak_in_order(program)),
            arena: program.arena,
            extent: program.extent(),
            slab: program.slab,
            budget: cx.whole_budget(),
            virtual_: session.fragmentation(),
            copied: [program.copied(Stream::Out), program.copied(Stream::In)],
            copies: [copies(Stream::Out), copies(Stream::In)],
            stalled: measured.stalled.div_f64(measured.steps.len().max(1) as f64),
            hidden: (copying > Duration::ZERO).then(|| 100.0 * (1.0 - exposed).clamp(0.0, 1.0)),
            gpu: session.gpu(),
            drawn: Vec::new(),
        }
    }

    /// The median of the step times without the first, whose memory is cold.
    pub(crate) fn step_time(&self) -> Option<Duration> {
        let mut times: Vec<Duration> = self.steps.after_first().copied().collect();
        if times.is_empty() {
            times.extend(self.steps.iter());
        }
        times.sort_unstable();
        times.get(times.len() / 2).copied()
    }

    pub(crate) fn budget(&self) -> Option<Bytes> {
        self.budget
    }

    /// The facts at the head of a page: pairs of a label and a value.
    pub(crate) fn facts(&self) -> Vec<[String; 2]> {
        let ms = |time: Duration| format!("{:.3} ms", time.as_secs_f64() * 1e3);
        let fact = |label: &str, value: String| [label.to_owned(), value];
        let mut facts = vec![
            fact("simulated step", ms(self.step)),
            fact("measured step", self.step_time().map_or_else(String::new, ms)),
            fact("in use at most", self.peak.to_string()),
            fact("predicted", self.predicted.to_string()),
            fact("out", self.copied[0].to_string()),
            fact("in", self.copied[1].to_string()),
        ];
        facts.extend(self.hidden.map(|hidden| fact("of the copying hidden", format!("{hidden:.0} %"))));
        facts
    }

    /// Bytes of the arena below its last address that are unused at the peak of the program's order.
    fn lost_in_arena(&self) -> Bytes {
        Bytes(self.extent.0.saturating_sub(self.in_order.0))
    }

    /// The report as it is in JSON, with the warnings of the files that were read.
    pub(crate) fn answer(&self, warnings: &[Warning]) -> RunFacts {
        RunFacts {
            format: 1,
            first_step: self.first + 1,
            losses: self.losses.iter().copied().collect(),
            step_seconds: self.steps.iter().map(Duration::as_secs_f64).collect(),
            predicted_step_seconds: self.step.as_secs_f64(),
            prediction: self.source.clone(),
            peak: self.peak.0,
            predicted_peak: self.predicted.0,
            peak_in_order: self.in_order.0,
            arena: self.arena.0,
            last_address: self.extent.0,
            slab: self.slab.0,
            budget: self.budget.map(|budget| budget.0),
            copied_out: self.copied[0].0,
            copied_in: self.copied[1].0,
            copies_out: self.copies[0],
            copies_in: self.copies[1],
            stalled_seconds: self.stalled.as_secs_f64(),
            hidden_percent: self.hidden,
            gpu: self.gpu.as_ref().map(GpuFacts::of),
            chunks: self.virtual_.map(|it| ChunkFacts {
                chunk: it.chunk,
                chunks: it.chunks,
                mapped: it.mapped,
                lost: it.lost,
                lost_below: it.bound(),
                lost_in_arena: self.lost_in_arena().0,
            }),
            drawn: self.drawn.clone(),
            warnings: warnings.to_vec(),
        }
    }

    /// The report; with `verbose`, the libraries of a GPU as well.
    pub(crate) fn to_text(&self, verbose: bool) -> String {
        let mut text = String::new();
        if let Some(loss) =
            self.losses.last().filter(|_| !self.steps.is_empty() && self.losses.len() == self.steps.len())
        {
            text += &format!("step {}: loss {loss}\n", self.first + self.steps.len());
        }
        if let Some(time) = self.step_time() {
            let ms = |time: Duration| time.as_secs_f64() * 1e3;
            let (predicted, source) = (ms(self.step), &self.source);
            text += &format!("{:.3} ms a step, predicted {predicted:.3} ms ({source})\n", ms(time));
        }
        if let Some(Gpu { name, products, convolutions, libraries, .. }) = &self.gpu {
            let convolutions = convolutions.as_ref().map(|by| format!(", convolutions by {by}"));
            text += &format!("on {name}, products by {products}{}\n", convolutions.unwrap_or_default());
            for LibraryFacts { name, version, path } in libraries.iter().filter(|_| verbose) {
                text += &format!("{name} {version}: {}\n", path.display());
            }
        }
        let of = self.budget.map(|budget| format!(" of {budget}")).unwrap_or_default();
        text += &format!(
            "device: at most {} ({} bytes) in use, predicted {}; addresses up to {}{of}\n",
            self.peak, self.peak.0, self.predicted, self.extent
        );
        if let Some(it) = self.virtual_ {
            let (chunk, all) = (Bytes(it.chunk), Bytes(it.chunk.saturating_mul(it.chunks)));
            text += &format!(
                "chunks of {chunk}: at most {} in use, {all}, of which at most {} are lost, below {} (OOC eq. 2); \
                 an arena loses {}\n",
                it.chunks,
                Bytes(it.lost),
                Bytes(it.bound()),
                self.lost_in_arena(),
            );
            if it.mapped > it.chunks {
                text +=
                    &format!("{} chunks are mapped: addresses keep theirs from step to step\n", it.mapped);
            }
        }
        if self.copies == [0, 0] {
            return text + "nothing was copied\n";
        }
        text += &format!(
            "a step copies {} out in {} and {} in in {}, through {} of the host\n",
            self.copied[0],
            words::count(self.copies[0], "copy"),
            self.copied[1],
            words::count(self.copies[1], "copy"),
            self.slab
        );
        if let Some(hidden) = self.hidden {
            text += &format!("{hidden:.0} % of the copying was hidden\n");
        }
        text
    }
}

//! The report of a compilation: one structure, printed as text or as JSON.

use std::borrow::Cow;
use std::fmt::Write;
use std::path::Path;

use lmsc_ir::equiv::Equivalence;
use lmsc_ir::words::{count, shown};
use lmsc_ir::{Bytes, Graph, Phase, Phases};
use lmsc_passes::{KeptRecord, PassCx, Ran, SwapRecord};
use lmsc_plan::MemoryTimeline;
use serde::Serialize;

use crate::Warning;
use crate::state::{self, StateFacts};

/// The report of the main command. Bytes are plain numbers.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Report {
    /// Version of this format.
    pub format: u32,
    /// The model's path, as given.
    pub model: String,
    /// Facts about the graph that was read.
    pub graph: GraphFacts,
    /// The share of the times that was measured, if there is a profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileFacts>,
    /// The device memory budget, if there is one.
    pub budget: Option<u64>,
    /// The bytes of the budget that constants of kernels take.
    #[serde(skip_serializing_if = "is_zero")]
    pub constants: u64,
    /// The variables, which are kept from step to step.
    pub state: Vec<StateFacts>,
    /// The memory of the graph that was read.
    pub before: MemoryFacts,
    /// The memory of the compiled graph.
    pub after: MemoryFacts,
    /// Bytes copied from the device to the host in a step.
    pub bytes_out: u64,
    /// Bytes copied from the host to the device in a step.
    pub bytes_in: u64,
    /// Storages that are swapped.
    pub swapped: Vec<SwappedFacts>,
    /// Results of forward nodes that are not swapped.
    pub kept: Vec<KeptFacts>,
    /// Passes in the order in which they ran, with their remarks.
    pub passes: Vec<PassFacts>,
    /// The numbers of the equivalence check.
    pub proof: ProofFacts,
    /// A hash of the plan; equal inputs and calls give equal hashes on every machine.
    pub hash: String,
    /// The model that was written to a file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub written: Vec<WrittenFacts>,
    /// Faults of the file that do not prevent its use.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
}

fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

/// A file that was written.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WrittenFacts {
    /// The path, as given.
    pub path: String,
    /// The size of the file.
    pub bytes: u64,
}

impl WrittenFacts {
    /// The file at this path, if it is a regular file.
    pub fn of(path: &Path) -> Option<WrittenFacts> {
        let bytes = path.metadata().ok().filter(|it| it.is_file())?.len();
        Some(WrittenFacts { path: path.display().to_string(), bytes })
    }
}

/// Facts about a graph.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GraphFacts {
    /// Number of nodes.
    pub nodes: usize,
    /// Nodes of the forward phase.
    pub forward: usize,
    /// Nodes of the backward phase.
    pub backward: usize,
    /// Nodes of the update phase.
    pub update: usize,
    /// Storages that an update edge writes.
    pub variables: usize,
    /// The bytes of these storages.
    pub variable_bytes: u64,
    /// The loss's name, for a graph that trains.
    pub loss: Option<String>,
}

/// The share of a graph's times that a profile measured. Times are milliseconds.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProfileFacts {
    /// The device that was measured.
    pub device: String,
    /// Number of nodes that keep the device busy.
    pub nodes: usize,
    /// Number of these nodes that were measured; the others have the times of the target's model.
    pub measured_nodes: usize,
    /// The time of all nodes.
    pub compute_ms: f64,
    /// The time of the measured nodes.
    pub measured_ms: f64,
}

/// Memory of a graph in its order.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MemoryFacts {
    /// Device bytes of resident storages.
    pub resident: u64,
    /// The most device bytes of transient storages at once.
    pub transient_peak: u64,
    /// The sum of both: the device memory that the step needs.
    pub peak: u64,
    /// The first node at which the peak is reached.
    pub peak_node: Option<String>,
    /// The most host bytes of swapped tensors at once.
    pub host_peak: u64,
}

/// A storage that is swapped.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SwappedFacts {
    /// The name of the storage's root value.
    pub value: String,
    /// The size of the storage.
    pub bytes: u64,
    /// The bytes of one copy over the link: half of `bytes` if the storage is encoded.
    pub link_bytes: u64,
    /// Bytes that are copied from the device to the host.
    pub bytes_out: u64,
    /// Bytes that are copied from the host to the device.
    pub bytes_in: u64,
    /// Number of swap-ins, of the whole storage or of a range.
    pub swap_ins: usize,
}

/// A storage that is not swapped.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KeptFacts {
    /// The name of the storage's root value.
    pub value: String,
    /// The size of the storage.
    pub bytes: u64,
    /// The reason.
    pub reason: Cow<'static, str>,
}

/// A pass that ran.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PassFacts {
    /// The pass's name.
    pub name: String,
    /// Whether it changed the graph.
    pub changed: bool,
    /// The pass's remarks.
    pub remarks: Vec<String>,
}

/// The numbers of the equivalence check.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProofFacts {
    /// Corresponding nodes.
    pub nodes: usize,
    /// Swaps that the check looked through.
    pub swaps: usize,
    /// Recomputed nodes that were merged with their origins.
    pub twins: usize,
    /// Casts that encode a swapped value or decode it.
    pub casts: usize,
}

impl GraphFacts {
    /// The facts of the graph.
    pub fn of(graph: &Graph, phases: &Phases, memory: &MemoryTimeline) -> GraphFacts {
        let variables = graph.variables();
        GraphFacts {
            nodes: graph.order().len(),
            forward: phases.count(graph, Phase::Forward),
            backward: phases.count(graph, Phase::Backward),
            update: phases.count(graph, Phase::Update),
            variables: variables.len(),
            variable_bytes: variables
                .iter()
                .map(|&v| memory.storages.get(memory.storages.storage(v)).bytes.0)
                .sum(),
            loss: phases.loss.map(|v| graph.value(v).name.to_string()),
        }
    }
}

impl GraphFacts {
    /// The numbers of nodes by phase, in a line.
    fn to_text(&self) -> String {
        let nodes = count(self.nodes, "node");
        match self.backward {
            0 => format!("{nodes}, no backward pass: inference, not a training step"),
            _ => {
                format!(
                    "{nodes}: {} forward, {} backward, {} update",
                    self.forward, self.backward, self.update
                )
            }
        }
    }
}

/// The facts that are known before planning, as text.
pub(crate) fn first_facts(path: &Path, graph: &GraphFacts, before: &MemoryFacts) -> String {
    format!(
        "model     {}\ngraph     {}\nbefore    {}\n",
        path.display(),
        graph.to_text(),
        memory_line(before)
    )
}

impl MemoryFacts {
    /// The facts of the memory.
    pub fn of(graph: &Graph, memory: &MemoryTimeline) -> MemoryFacts {
        MemoryFacts {
            resident: memory.resident.0,
            transient_peak: memory.transient_peak().0,
            peak: memory.peak().0,
            peak_node: memory.peak_tick().map(|t| graph.node(graph.order()[t]).name.to_string()),
            host_peak: memory.host_peak.0,
        }
    }
}

impl ProfileFacts {
    /// The facts of the graph, if there is a profile.
    pub fn of(cx: &PassCx, graph: &Graph) -> Option<ProfileFacts> {
        let profile = cx.machine.profile.as_ref()?;
        let coverage = cx.costs(graph).coverage();
        Some(ProfileFacts {
            device: profile.device.clone(),
            nodes: coverage.nodes,
            measured_nodes: coverage.measured_nodes,
            compute_ms: coverage.nanos as f64 / 1e6,
            measured_ms: coverage.measured_nanos as f64 / 1e6,
        })
    }

    /// The share of the times that was measured, in a line.
    pub fn to_text(&self) -> String {
        let share = 100.0 * self.measured_ms / self.compute_ms.max(f64::MIN_POSITIVE);
        let nodes = count(self.nodes, "node");
        format!(
            "{share:.1} % of the time was measured, {} of {nodes} ({}); the rest is the target's model",
            self.measured_nodes, self.device
        )
    }
}

impl From<&SwapRecord> for SwappedFacts {
    fn from(record: &SwapRecord) -> SwappedFacts {
        SwappedFacts {
            value: record.value.clone(),
            bytes: record.bytes.0,
            link_bytes: record.link_bytes.0,
            bytes_out: record.bytes_out.0,
            bytes_in: record.bytes_in.0,
            swap_ins: record.swap_ins,
        }
    }
}

impl From<KeptRecord> for KeptFacts {
    fn from(record: KeptRecord) -> KeptFacts {
        KeptFacts { value: record.value, bytes: record.bytes.0, reason: record.reason }
    }
}

impl ProofFacts {
    /// The numbers of the check, in a line.
    pub fn to_text(&self) -> String {
        let (nodes, swaps, twins) =
            (count(self.nodes, "node"), count(self.swaps, "swap"), count(self.twins, "twin"));
        let correspond = if self.nodes == 1 { "corresponds" } else { "correspond" };
        let undone = match self.casts {
            0 => String::new(),
            casts => format!(", {} undone", count(casts, "cast")),
        };
        format!("equal: {nodes} {correspond}, {swaps} erased, {twins} merged{undone}")
    }
}

impl From<&Equivalence> for ProofFacts {
    fn from(proof: &Equivalence) -> ProofFacts {
        let &Equivalence { nodes, twins, swaps, casts } = proof;
        ProofFacts { nodes, swaps, twins, casts }
    }
}

impl From<&Ran> for PassFacts {
    fn from(ran: &Ran) -> PassFacts {
        let remarks = ran.outcome.remarks.clone();
        PassFacts { name: ran.pass.to_owned(), changed: ran.outcome.changed, remarks }
    }
}

impl Report {
    /// The report as text; `verbose` lists every storage that is not swapped.
    pub fn to_text(&self, verbose: bool) -> String {
        shown(&self.lines(verbose)).into_owned()
    }

    fn lines(&self, verbose: bool) -> String {
        let mut out = String::new();
        let mut line = |label: &str, text: String| {
            writeln!(out, "{label:<9} {text}").expect("a String takes everything");
        };
        let g = &self.graph;
        line("model", self.model.clone());
        line("graph", g.to_text());
        line("variables", state::summary(&self.state));
        if let Some(profile) = &self.profile {
            line("profile", profile.to_text());
        }
        line("before", memory_line(&self.before));
        line("after", memory_line(&self.after));
        if let Some(budget) = self.budget {
            let taken = Bytes(self.after.peak.saturating_add(self.constants));
            let spare = Bytes(budget).saturating_sub(taken);
            let constants = match self.constants {
                0 => String::new(),
                bytes => format!(", {} for constants of kernels", Bytes(bytes)),
            };
            line("budget", format!("{}{constants}, {spare} to spare", Bytes(budget)));
        }
        if self.passes.is_empty() && self.budget.is_none() {
            line("plan", "none: without --budget the model is written as it is".to_owned());
        } else if self.swapped.is_empty() {
            let changed = self.passes.iter().any(|pass| pass.changed);
            let text = if changed { "nothing" } else { "nothing; the graph is unchanged" };
            line("swapped", text.to_owned());
        } else {
            let ins: usize = self.swapped.iter().map(|s| s.swap_ins).sum();
            let encoded = self.swapped.iter().filter(|s| s.link_bytes < s.bytes).count();
            let text = format!(
                "{} of {}{}: {} out, {} in by {}, {} of host memory",
                self.swapped.len(),
                count(self.swapped.len() + self.kept.len(), "storage"),
                if encoded > 0 { format!(", {encoded} of them encoded") } else { String::new() },
                Bytes(self.bytes_out),
                Bytes(self.bytes_in),
                count(ins, "swap-in"),
                Bytes(self.after.host_peak)
            );
            line("swapped", text);
        }
        for pass in self.passes.iter().filter(|p| p.changed) {
            line(&pass.name, pass.remarks.join("; "));
        }
        for (reason, storages, bytes) in self.kept_by_reason() {
            line("kept", format!("{} of {bytes}: {reason}", count(storages, "storage")));
        }
        if verbose {
            for kept in &self.kept {
                line("", format!("kept `{}` ({}): {}", kept.value, Bytes(kept.bytes), kept.reason));
            }
        }
        line("proof", self.proof.to_text());
        line("hash", self.hash.clone());
        for written in &self.written {
            line("wrote", format!("{}, {}", written.path, Bytes(written.bytes)));
        }
        out
    }

    /// The reasons for which storages are not swapped, without names, with the number and bytes of the storages,
    /// largest first.
    fn kept_by_reason(&self) -> Vec<(String, usize, Bytes)> {
        let mut groups: Vec<(String, usize, Bytes)> = Vec::new();
        for kept in &self.kept {
            // Names and numbers of a case follow the reason in brackets.
            let reason = kept.reason.split(" (").next().unwrap_or_default();
            match groups.iter_mut().find(|(r, ..)| *r == reason) {
                Some((_, count, bytes)) => {
                    *count += 1;
                    *bytes += Bytes(kept.bytes);
                }
                None => groups.push((reason.to_owned(), 1, Bytes(kept.bytes))),
            }
        }
        groups.sort_by(|a, b| (b.2, &a.0).cmp(&(a.2, &b.0)));
        groups
    }
}

fn memory_line(memory: &MemoryFacts) -> String {
    let node = memory.peak_node.as_ref().map(|n| format!(" at [{n}]")).unwrap_or_default();
    format!(
        "peak {}: resident {} + transient {}{node}",
        Bytes(memory.peak),
        Bytes(memory.resident),
        Bytes(memory.transient_peak)
    )
}

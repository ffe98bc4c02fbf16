//! Proves of a file that it computes the same as the original, within the memory that it states.

use std::collections::BTreeMap;
use std::path::Path;

use lmsc_ir::equiv::{self, Equivalence};
use lmsc_ir::{Attr, Bytes, Data, Graph, NodeId, Place};
use lmsc_onnx::file::Opened;
use lmsc_onnx::{Dims, Model, key};
use lmsc_passes::PassCx;
use lmsc_plan::MemoryTimeline;
use serde_json::json;

use crate::cli::{BindingArgs, Emit, StepArgs, VerifyArgs};
use crate::load::{self, Loaded, check};
use crate::report::ProofFacts;
use crate::{Code, Error, Warning, side_by_side, survival};

/// Whether two models compute the same, with the compared facts or the first difference, and whether the second one
/// keeps its stated memory bound; with `--survives`, the swaps that are left.
///
/// # Errors
/// [`ErrorKind::Refusal`](crate::ErrorKind) with the first difference, or with the lost memory bound.
pub fn verify(args: &VerifyArgs) -> Result<String, Error> {
    if args.survives {
        return survival::survival(&args.original, &args.rewritten, args.json);
    }
    let original = load::load(&args.original, &args.binding)?;
    let mut rewritten = load::load(&args.rewritten, &of_written(&args.rewritten, &args.binding))?;
    for (loaded, path) in [(&original, &args.original), (&rewritten, &args.rewritten)] {
        if let Some(name) = unproven(&loaded.graph) {
            let message = format!(
                "`{name}` has a digest of an earlier version of lmsc, which does not prove its bytes"
            );
            return Err(Error::in_file(Code::Malformed, path, message)
                .with_help("write the text again from the model: lmsc opt MODEL -o FILE"));
        }
    }
    let folder = |loaded: &Loaded| loaded.model.as_ref().and_then(|model| model.folder.clone());
    let (from, to) = (folder(&original), folder(&rewritten));
    align_weights(&original.graph, from.as_deref(), &mut rewritten.graph, to.as_deref());
    let other = match (&original.model, &rewritten.model) {
        (Some(a), Some(b)) => lmsc_onnx::other_function(&a.proto, &b.proto),
        _ => None,
    };
    let proof = match other {
        Some(function) => Err(format!("the models' functions `{function}` are not the same")),
        None => {
            let check = if args.cleaned { equiv::check_cleaned } else { equiv::check };
            check(&original.graph, &rewritten.graph).map_err(|d| d.to_string())
        }
    };
    match proof {
        Ok(proof) => {
            let guarantee = match guarantee(&original, &rewritten) {
                Guarantee::None if rewritten.model.is_some() && proof.swaps > 0 => Guarantee::Unstated,
                guarantee => guarantee,
            };
            verdict(args, &proof, &guarantee, &[original.warnings, rewritten.warnings].concat())
        }
        Err(difference) => {
            let error = Error::new(Code::Different, format!("different: {difference}"));
            let answer = || json!({ "format": 1, "equal": false, "difference": difference }).to_string();
            Err(if args.json { error.with_answer(answer()) } else { error })
        }
    }
}

/// The name of an initializer, or of a node with an attribute, of which the text has a digest that proves nothing.
fn unproven(graph: &Graph) -> Option<&str> {
    let is_old = |data: &Data| matches!(data, Data::Digest { digest, .. } if !digest.is_proof());
    let of_node = |&&id: &&NodeId| {
        graph.node(id).attributes.iter().any(|(_, attribute)| match attribute {
            Attr::Tensor(_, data) | Attr::Opaque(data) => is_old(data),
            _ => false,
        })
    };
    let initializer = graph.initializers.iter().find(|initializer| is_old(&initializer.data));
    let node = || graph.order().iter().find(of_node);
    match initializer {
        Some(initializer) => Some(&graph.value(initializer.value).name),
        None => node().map(|&id| &*graph.node(id).name),
    }
}

/// The options for reading a rewritten file: it contains its optimizer and, as text, its sizes and its state.
fn of_written(path: &Path, binding: &BindingArgs) -> BindingArgs {
    if load::is_text(path) { BindingArgs::default() } else { without_optimizer(binding) }
}

/// The binding of a step that has its optimizer within.
fn without_optimizer(binding: &BindingArgs) -> BindingArgs {
    let step = StepArgs { optimizer: None, ..binding.step.clone() };
    BindingArgs { step, ..binding.clone() }
}

/// The message for models that compute the same.
fn verdict(
    args: &VerifyArgs,
    proof: &Equivalence,
    guarantee: &Guarantee,
    warnings: &[Warning],
) -> Result<String, Error> {
    let facts = ProofFacts::from(proof);
    if args.json {
        let mut answer = json!({ "format": 1, "equal": true, "proof": facts });
        if !warnings.is_empty() {
            answer["warnings"] = json!(warnings);
        }
        match guarantee {
            Guarantee::None => {}
            Guarantee::Unstated => answer["memory"] = json!(null),
            Guarantee::Holds(peak) => answer["memory"] = json!({ "holds": true, "peak": peak.0 }),
            Guarantee::Lost(why) => {
                answer["memory"] = json!({ "holds": false, "why": why });
                return Err(lost(&facts.to_text(), why).with_answer(answer.to_string()));
            }
        }
        return Ok(answer.to_string() + "\n");
    }
    let equal = facts.to_text();
    match guarantee {
        Guarantee::None => Ok(equal + "\n"),
        Guarantee::Unstated => Ok(format!("{equal}\nmemory: no bound is stated\n")),
        Guarantee::Holds(peak) => Ok(format!("{equal}\nmemory: at most {peak} in any timing, as stated\n")),
        Guarantee::Lost(why) => Err(lost(&equal, why)),
    }
}

/// The error for a file that does not keep its memory bound.
fn lost(equal: &str, why: &str) -> Error {
    Error::new(Code::Lost, format!("{equal}\nmemory: {why}"))
        .with_help("take the file as lmsc wrote it, or plan the original again")
}

/// The state of the memory bound that a file states.
enum Guarantee {
    /// Nothing was planned.
    None,
    /// Neither file states a bound.
    Unstated,
    /// The step needs at most this many bytes, in any timing that the edges of the file allow.
    Holds(Bytes),
    /// Another program changed the file, and the bound does not hold any more.
    Lost(String),
}

fn guarantee(original: &Loaded, rewritten: &Loaded) -> Guarantee {
    let states = |key: &str| rewritten.model.as_ref().is_some_and(|model| metadata(model, key).is_some());
    // Another program may have dropped all metadata; then the original's metadata say what is lost.
    let Some(bound) = Bound::of(rewritten).or_else(|| Bound::of(original)) else { return Guarantee::None };
    match bound.lost(&rewritten.graph) {
        Some(why) => Guarantee::Lost(why),
        None if states(key::ADDRESSES) && !rewritten.graph.has_addresses() => Guarantee::Lost(
            "the addresses do not hold: they are not of the file's values and nodes".to_owned(),
        ),
        None => Guarantee::Holds(bound.peak(&rewritten.graph).peak()),
    }
}

fn metadata<'m>(model: &'m Model, key: &str) -> Option<&'m str> {
    model.proto.metadata_props.iter().find(|p| p.key() == key).map(|p| p.value())
}

/// The memory bound that a file states.
struct Bound {
    peak: Bytes,
    budget: Option<Bytes>,
    /// By the name of a node's first result, the bytes that the node needs while it runs, besides its values.
    workspaces: BTreeMap<String, u64>,
}

impl Bound {
    /// The bound of the file, if it was read with the sizes for which the bound holds.
    fn of(loaded: &Loaded) -> Option<Bound> {
        let model = loaded.model.as_ref()?;
        let bytes = |key: &str| metadata(model, key)?.parse().ok().map(Bytes);
        let same = |(name, value): (&str, u64)| loaded.dims.get(name) == Some(value);
        if !Dims::written(model).iter().all(same) {
            return None;
        }
        let workspaces = metadata(model, key::WORKSPACES).and_then(|json| serde_json::from_str(json).ok());
        let (peak, budget) = (bytes(key::PEAK)?, bytes(key::BUDGET));
        Some(Bound { peak, budget, workspaces: workspaces.unwrap_or_default() })
    }

    /// The memory of the graph with the stated workspaces.
    fn peak(&self, graph: &Graph) -> MemoryTimeline {
        MemoryTimeline::with_workspace(graph, |id| match graph.node(id).workspace {
            Some(workspace) => workspace.bytes,
            None => first_result(graph, id)
                .and_then(|name| self.workspaces.get(name))
                .map_or(Bytes::ZERO, |&b| Bytes(b)),
        })
    }

    /// The reason why the graph does not keep the bound, if it does not.
    fn lost(&self, graph: &Graph) -> Option<String> {
        let memory = self.peak(graph);
        let peak = memory.peak();
        if peak <= self.peak {
            return None;
        }
        let at =
            memory.peak_tick().map(|tick| format!(" at node `{}`", graph.node(graph.order()[tick]).name));
        let budget = self.budget.filter(|&budget| budget < peak);
        let above = budget.map(|budget| format!(", above the budget of {budget}"));
        let (at, above) = (at.unwrap_or_default(), above.unwrap_or_default());
        let stated = self.peak;
        Some(format!(
            "the bound of {stated} does not hold: as its edges and its order are now, the step may need {peak}{at}{above}"
        ))
    }
}

fn first_result(graph: &Graph, id: NodeId) -> Option<&str> {
    graph.node(id).defines().next().map(|value| &*graph.value(value).name)
}

/// The workspaces of the nodes as metadata; `None` if the graph has addresses, which include them.
pub(crate) fn workspaces(graph: &Graph, workspace: impl Fn(NodeId) -> Bytes) -> Option<String> {
    if graph.has_addresses() {
        return None;
    }
    let of = |&id: &NodeId| Some((first_result(graph, id)?, workspace(id).0)).filter(|&(_, bytes)| bytes > 0);
    let all: BTreeMap<&str, u64> = graph.order().iter().filter_map(of).collect();
    (!all.is_empty()).then(|| json!(all).to_string())
}

/// Replaces the second model's references to weights by those of the first where both refer to equal bytes: the
/// models may be in different folders, and weights may have been copied.
fn align_weights(first: &Graph, from: Option<&Path>, second: &mut Graph, to: Option<&Path>) {
    let (Some(from), Some(to)) = (from, to) else { return };
    for index in 0..second.initializers.len() {
        let initializer = &second.initializers[index];
        let other = first.value_named(&second.value(initializer.value).name);
        let other = other.and_then(|value| first.initializers.iter().find(|i| i.value == value));
        if let Some(other) = other
            && other.data != initializer.data
            && same_weights((from, &other.data), (to, &initializer.data)).is_some_and(|same| same)
        {
            second.initializers[index].data = other.data.clone();
        }
    }
}

/// Whether two references are to equal bytes: the same part of one file, or parts of two files with the same
/// contents.
fn same_weights((from, a): (&Path, &Data), (to, b): (&Path, &Data)) -> Option<bool> {
    let (
        Data::External { location: a, offset: a_at, length },
        Data::External { location: b, offset: b_at, length: other },
    ) = (a, b)
    else {
        return None;
    };
    let (a, b) = (from.join(a).canonicalize().ok()?, to.join(b).canonicalize().ok()?);
    if length != other || a == b {
        return Some(length == other && a_at == b_at);
    }
    const PART: u64 = 1 << 22;
    let (a, b) = (Opened::new(&a).ok()??, Opened::new(&b).ok()??);
    for begin in (0..*length).step_by(PART as usize) {
        let end = (*length).min(begin + PART);
        let part = |file: &Opened, at: u64| file.read(at + begin..at + end).ok();
        if part(&a, *a_at)? != part(&b, *b_at)? {
            return Some(false);
        }
    }
    Some(true)
}

/// A written file, and the graphs that it must equal.
pub(crate) struct Written<'a> {
    /// The path of the file.
    pub(crate) path: &'a Path,
    /// The form of the file.
    pub(crate) emit: Emit,
    /// The options with which the model was read.
    pub(crate) binding: &'a BindingArgs,
    /// The graph that computes the same values.
    pub(crate) original: &'a Graph,
    /// The graph that was written, with its order, edges and addresses.
    pub(crate) result: &'a Graph,
    /// The folder of the model's files, if it has some.
    pub(crate) folder: Option<&'a Path>,
    /// The options for counting its memory.
    pub(crate) cx: &'a PassCx,
    /// Whether the graph was read from text, which may declare operators in ways that ONNX's rules reject.
    pub(crate) of_text: bool,
}

impl Written<'_> {
    /// Reads the file back and proves for it what was proven for the graph: equal values, the same peak in any
    /// timing, the same addresses. A file that fails is removed. Pipes, and forms that lmsc does not read, are
    /// skipped.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`](crate::ErrorKind) with the difference.
    pub(crate) fn read_back(&self) -> Result<(), Error> {
        let is_read = matches!(self.emit, Emit::Onnx | Emit::Lms | Emit::Mlir);
        if !is_read || !self.path.is_file() {
            return Ok(());
        }
        let found = self.read(None).and_then(|written| self.check(written));
        found.map_err(|why| {
            // If the file cannot be removed, the error is returned all the same.
            _ = std::fs::remove_file(self.path);
            self.refused(&why, "\nIt was removed.")
        })
    }

    /// Reads the bytes for standard output, and proves for them what [`Written::read_back`] proves for a file.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`](crate::ErrorKind) with the difference.
    pub(crate) fn check_bytes(&self, bytes: &[u8]) -> Result<(), Error> {
        if !matches!(self.emit, Emit::Onnx | Emit::Lms | Emit::Mlir) {
            return Ok(());
        }
        let found = self.read(Some(bytes)).and_then(|written| self.check(written));
        found.map_err(|why| self.refused(&why, "\nNothing was written."))
    }

    fn refused(&self, why: &str, done: &str) -> Error {
        if self.of_text && self.emit == Emit::Onnx {
            let message = format!("the text does not describe an ONNX model: {why}");
            return Error::new(Code::Form, message).with_help("correct the text, or write text (-o x.lms)");
        }
        let path =
            if self.path == Path::new("-") { "the model".into() } else { self.path.display().to_string() };
        Error::ours(format!("{path}, read back after it was written, is not what was proven: {why}{done}"))
    }

    fn check(&self, mut written: Loaded) -> Result<(), String> {
        let folder = written.model.as_ref().and_then(|model| model.folder.clone());
        align_weights(self.original, self.folder, &mut written.graph, folder.as_deref());
        check(&written.graph).map_err(|e| format!("the graph is not valid:\n{e}"))?;
        let (proof, memory) = side_by_side(
            || equiv::check(self.original, &written.graph),
            || (self.cx.memory(self.result), self.cx.memory(&written.graph)),
        );
        proof.map_err(|difference| difference.to_string())?;
        let (expected, found) = memory;
        let peaks = |memory: &MemoryTimeline| [memory.peak(), memory.host_peak];
        if peaks(&expected) != peaks(&found) {
            let ([peak, host], [was, host_was]) = (peaks(&found), peaks(&expected));
            return Err(format!(
                "the step may need {peak} of the device and {host} of the host, was {was} and {host_was}"
            ));
        }
        if let Some(why) = Bound::of(&written).and_then(|bound| bound.lost(&written.graph)) {
            return Err(why);
        }
        self.same_addresses(&written.graph)
    }

    /// The graph in `bytes`, or else in the file.
    fn read(&self, bytes: Option<&[u8]>) -> Result<Loaded, String> {
        let text = || match bytes {
            Some(bytes) => Ok(String::from_utf8_lossy(bytes).into_owned()),
            None => std::fs::read_to_string(self.path).map_err(|e| e.to_string()),
        };
        let graph = match self.emit {
            Emit::Lms => Graph::parse(&text()?).map_err(|e| e.to_string())?,
            Emit::Mlir => lmsc_mlir::parse(&text()?).map_err(|e| e.to_string())?,
            _ => {
                let binding = without_optimizer(self.binding);
                let bytes = bytes.map(bytes::Bytes::copy_from_slice);
                return load::onnx(self.path, bytes, &binding, load::Purpose::Rewrite)
                    .map_err(|e| e.to_string());
            }
        };
        Ok(Loaded { graph, model: None, dims: Dims::none(), edited: false, warnings: Vec::new() })
    }

    fn same_addresses(&self, written: &Graph) -> Result<(), String> {
        for (_, value) in self.result.values().filter(|(_, value)| matches!(value.place, Place::DeviceAt(_)))
        {
            let found = written.value_named(&value.name).map(|id| written.value(id).place);
            if found.is_some_and(|place| place != value.place) {
                return Err(format!("`{}` has another address", value.name));
            }
        }
        let workspace = |graph: &Graph, id: NodeId| graph.node(id).workspace;
        for &id in self.result.order().iter().filter(|&&id| workspace(self.result, id).is_some()) {
            let name = &self.result.node(id).name;
            let found = written.node_named(name).and_then(|id| workspace(written, id));
            if found != workspace(self.result, id) {
                return Err(format!("the workspace of `{name}` has another address"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: &str = "g (float[4] x) => (float[4]@device:16 y) {
        [a] float[4]@device:0 h = Relu(x)
        [b] float[4]@device:16 y = Tanh(h)
    }";

    /// The result of reading back a file with this text, which should compute the same as the step.
    fn read_back(text: &str) -> Result<(), String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("written.lms");
        std::fs::write(&path, text).unwrap();
        let step = Graph::parse(STEP).unwrap();
        let (binding, cx) = (BindingArgs::default(), PassCx::default());
        let written = Written {
            path: &path,
            emit: Emit::Lms,
            binding: &binding,
            original: &step,
            result: &step,
            folder: None,
            cx: &cx,
            of_text: true,
        };
        let answer = written.read_back().map_err(|error| {
            assert_eq!(error.exit_code(), 101);
            error.to_string().replace(&*folder.path().to_string_lossy(), "@")
        });
        assert_eq!(path.exists(), answer.is_ok(), "what is wrong is removed");
        answer
    }

    #[test]
    fn the_written_graph_is_the_proven_graph() {
        assert_eq!(read_back(STEP), Ok(()));
        let said = |from: &str, to: &str| {
            let error = read_back(&STEP.replace(from, to)).unwrap_err();
            let why = error.split_once("is not what was proven: ").unwrap().1;
            why.split_once('\n').unwrap().0.to_owned()
        };
        assert_eq!(said("Tanh(h)", "Exp(h)"), "node `b` (Tanh): the operator is Exp now");
        assert_eq!(said("@device:16", "@device:32"), "`y` has another address");
        assert_eq!(said("@device:16", "@device:4"), "the graph is not valid:");
        let last = "[b] float[4]@device:16 y = Tanh(h)";
        let again = "[c] float[4]@device:32 q = Relu(x)
            [b] float[4]@device:16 y = Tanh(h)
            [d] float[4]@device:48 r = Tanh(q)";
        assert!(said(last, again).starts_with("the step may need "), "{}", said(last, again));
        assert!(said("}", "").contains("expected"), "{}", said("}", ""));
    }
}

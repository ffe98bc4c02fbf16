//! Proves of a written file that it computes the same as the original, within the memory that it states.

use std::collections::BTreeMap;
use std::path::Path;

use lmsc_ir::equiv;
use lmsc_ir::{Bytes, Data, Graph, NodeId, Place};
use lmsc_onnx::file::Opened;
use lmsc_onnx::{Dims, Model, key};
use lmsc_passes::PassCx;
use lmsc_plan::MemoryTimeline;
use lmsc_plan::threads::both;

use crate::emit::first_result;
use crate::job::{Binding, Emit};
use crate::load::{self, Loaded, check};
use crate::{Code, Error};

pub(crate) fn metadata<'m>(model: &'m Model, key: &str) -> Option<&'m str> {
    model.proto.metadata_props.iter().find(|p| p.key() == key).map(|p| p.value())
}

/// The memory bound that a file states.
pub(crate) struct Bound {
    peak: Bytes,
    budget: Option<Bytes>,
    /// By the name of a node's first result, the bytes that the node needs while it runs, besides its values.
    workspaces: BTreeMap<String, u64>,
}

impl Bound {
    /// The bound of the file, if it was read with the sizes for which the bound holds.
    pub(crate) fn of(loaded: &Loaded) -> Option<Bound> {
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
    pub(crate) fn peak(&self, graph: &Graph) -> MemoryTimeline {
        MemoryTimeline::with_workspace(graph, |id| match graph.node(id).workspace {
            Some(workspace) => workspace.bytes,
            None => first_result(graph, id)
                .and_then(|name| self.workspaces.get(name))
                .map_or(Bytes::ZERO, |&b| Bytes(b)),
        })
    }

    /// The reason why the graph does not keep the bound, if it does not.
    pub(crate) fn lost(&self, graph: &Graph) -> Option<String> {
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

/// Replaces the second model's references to weights by those of the first where both refer to equal bytes: the
/// models may be in different folders, and weights may have been copied.
pub(crate) fn align_weights(first: &Graph, from: Option<&Path>, second: &mut Graph, to: Option<&Path>) {
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
    pub(crate) binding: &'a Binding,
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
    /// Reads the file back and repeats the proofs of the graph for it: equal values, the same peak in any
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

    /// Reads the bytes for standard output, and repeats the proofs of [`Written::read_back`] for them.
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
                let binding = self.binding.without_optimizer();
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

/// Both results; `a` runs on its own thread if kernels may use several threads.
pub(crate) fn side_by_side<A: Send, B>(a: impl FnOnce() -> A + Send, b: impl FnOnce() -> B) -> (A, B) {
    if lmsc_kernels::threads() == 1 { (a(), b()) } else { both(a, b) }
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
        let (binding, cx) = (Binding::default(), PassCx::default());
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

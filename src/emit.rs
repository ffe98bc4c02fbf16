//! Writes results, completely or not at all.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use lmsc_cuda::Precision;
use lmsc_cuda::engines::StepEngines;
use lmsc_ir::{Bytes, Graph, NodeId, PrintOptions};
use lmsc_onnx::file::{Opened, encode_to};
use lmsc_onnx::proto::ModelProto;
use lmsc_onnx::{Dims, Model, key};
use lmsc_passes::PassCx;
use lmsc_plan::target::Kernels;

use crate::external::{FileCopy, relocate};
use crate::files::write_atomically;
use crate::job::{Emit, Form, Job};
use crate::{Code, Error, device};

/// The content of an output file.
pub(crate) enum Emitted {
    Text(String),
    /// A model, the data files to copy beside it, and the files to whose mapped bytes it refers.
    Onnx(Box<ModelProto>, Vec<FileCopy>, Vec<Arc<Opened>>),
}

/// Refuses to write a graph in a text form if it calls functions of the model.
pub(crate) fn check_calls(model: Option<&Model>, graph: &Graph, input: &Path) -> Result<(), Error> {
    let Some(call) = model.and_then(|model| lmsc_onnx::call_of_function(model, graph)) else { return Ok(()) };
    Err(Error::in_file(Code::Form, input, format!("{call}, and the text forms have no functions"))
        .with_help("write .onnx, or inline the function, for example with onnx.inliner"))
}

impl Emitted {
    /// The compiled graph in the form that the arguments choose. `model` is the file that was read; `changed` says
    /// whether the graph differs from it.
    pub(crate) fn new(
        job: &Job,
        model: Option<Model>,
        graph: &Graph,
        changed: bool,
        dims: &Dims,
        says: Says<'_>,
        output: &Path,
    ) -> Result<Emitted, Error> {
        match job.emit(output) {
            Emit::Onnx => {}
            Emit::Lms => {
                check_calls(model.as_ref(), graph, &job.input.path)?;
                return Ok(Emitted::Text(graph.to_readable(&PrintOptions::default())));
            }
            Emit::Mlir => {
                check_calls(model.as_ref(), graph, &job.input.path)?;
                return Ok(Emitted::Text(mlir(graph, &job.input.path)?));
            }
            form @ (Emit::MlirXla | Emit::MlirIree) => {
                let write = if form == Emit::MlirXla { lmsc_mlir::xla } else { lmsc_mlir::iree };
                return Ok(Emitted::Text(
                    write(graph).map_err(|e| Error::in_file(Code::Form, &job.input.path, e))?,
                ));
            }
        }
        let form = match job.form {
            Form::Function => lmsc_onnx::SwapForm::Function,
            Form::Ort => lmsc_onnx::SwapForm::Ort,
        };
        match model {
            // A model that no pass changed is written as it was read.
            Some(model) if !changed => Emitted::read(model, output, job.copy_data),
            model => Emitted::onnx(
                model,
                graph,
                form,
                &metadata(job, dims, says),
                (&job.input.path, output),
                job.copy_data,
            ),
        }
    }

    /// The model as it was read.
    fn read(model: Model, output: &Path, copy_data: bool) -> Result<Emitted, Error> {
        let Model { mut proto, folder, mapped, .. } = model;
        let copies = relocate(&mut proto, folder.as_deref(), output, copy_data)?;
        Ok(Emitted::Onnx(Box::new(proto), copies, mapped))
    }

    /// The graph as ONNX, for a file at `output`; `model` is the file at `input` that was read.
    pub(crate) fn onnx(
        model: Option<Model>,
        graph: &Graph,
        form: lmsc_onnx::SwapForm,
        metadata: &BTreeMap<String, String>,
        (input, output): (&Path, &Path),
        copy_data: bool,
    ) -> Result<Emitted, Error> {
        let folder = model.as_ref().and_then(|m| m.folder.clone());
        let mapped = model.as_ref().map_or_else(Vec::new, |m| m.mapped.clone());
        let mut proto = lmsc_onnx::export(model, graph, form, metadata)
            .map_err(|e| Error::of_file(Code::Form, input, &e))?;
        let copies = relocate(&mut proto, folder.as_deref(), output, copy_data)?;
        Ok(Emitted::Onnx(Box::new(proto), copies, mapped))
    }

    /// Writes the content to the file at `output`, completely or not at all.
    pub(crate) fn write(&self, output: &Path) -> Result<(), Error> {
        if let Emitted::Onnx(_, copies, _) = self {
            copies.iter().try_for_each(FileCopy::write)?;
        }
        write_atomically(output, |to| self.encode(to))
    }

    /// The content as bytes.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        self.encode(&mut bytes).map_err(|e| Error::writing(Path::new("-"), &e))?;
        Ok(bytes)
    }

    fn encode(&self, to: &mut dyn Write) -> io::Result<()> {
        match self {
            Emitted::Text(text) => to.write_all(text.as_bytes()),
            Emitted::Onnx(proto, _, mapped) => {
                let check = || mapped.iter().try_for_each(|file| file.check());
                check()?;
                encode_to(proto, to)?;
                check()
            }
        }
    }
}

/// The graph of the file at `path`, changed or not, as MLIR.
pub(crate) fn mlir(graph: &Graph, path: &Path) -> Result<String, Error> {
    let text = lmsc_mlir::print(graph).map_err(|e| Error::in_file(Code::Form, path, e))?;
    lmsc_mlir::check(&text).map_err(|found| refused_by_llvm(&text, &found))?;
    Ok(text)
}

/// The error for our MLIR text that LLVM does not accept.
fn refused_by_llvm(text: &str, found: &[lmsc_ir::ParseError]) -> Error {
    let faults = found.iter().map(|e| match e.line {
        0 => format!("\n{}", e.message),
        line => format!("\n{e}\n{}", crate::excerpt::excerpt(text, line, e.column)),
    });
    Error::ours(format!("LLVM refuses the MLIR that is to be written:{}", faults.collect::<String>()))
}

/// The facts about the plan that a model states in its metadata.
pub(crate) struct Says<'a> {
    /// The device bytes that the step needs in any timing.
    pub(crate) peak: Bytes,
    /// A hash of the plan.
    pub(crate) hash: &'a str,
    /// The workspaces of nodes; `None` if the graph has addresses.
    pub(crate) workspaces: Option<String>,
    /// The device bytes that the step may use.
    pub(crate) budget: Option<Bytes>,
    /// The bytes of a page, if memory in pages keeps the budget.
    pub(crate) pages: Option<Bytes>,
    /// The machine for which it is planned.
    pub(crate) target: Option<String>,
    /// The engines of its convolutions, if it is planned for a GPU whose engines are known.
    pub(crate) engines: Option<StepEngines>,
}

impl<'a> Says<'a> {
    /// The facts of the compiled graph, with its peak, the bytes of a page and the hash of its plan; and, if it is planned, the
    /// precision of its convolutions.
    pub(crate) fn of(
        graph: &Graph,
        cx: &PassCx,
        (peak, pages): (Bytes, Option<Bytes>),
        hash: &'a str,
        precision: Option<Precision>,
    ) -> Says<'a> {
        let target = precision.map(|precision| (cx.target(), precision));
        Says {
            peak,
            hash,
            workspaces: workspaces(graph, cx.workspace(graph)),
            budget: cx.whole_budget(),
            pages,
            engines: target.as_ref().and_then(|(target, precision)| {
                let card = target.card.as_deref().filter(|_| target.kernels == Kernels::Cuda);
                device::engines_of(Some(card?), *precision).of_step(graph)
            }),
            target: target.map(|(target, _)| target.name),
        }
    }
}

pub(crate) fn first_result(graph: &Graph, id: NodeId) -> Option<&str> {
    graph.node(id).defines().next().map(|value| &*graph.value(value).name)
}

/// The workspaces of the nodes as metadata; `None` if the graph has addresses, which include them.
fn workspaces(graph: &Graph, workspace: impl Fn(NodeId) -> Bytes) -> Option<String> {
    if graph.has_addresses() {
        return None;
    }
    let of = |&id: &NodeId| Some((first_result(graph, id)?, workspace(id).0)).filter(|&(_, bytes)| bytes > 0);
    let all: BTreeMap<&str, u64> = graph.order().iter().filter_map(of).collect();
    (!all.is_empty()).then(|| serde_json::json!(all).to_string())
}

/// The metadata of the model.
fn metadata(job: &Job, dims: &Dims, says: Says<'_>) -> BTreeMap<String, String> {
    let mut metadata = origin(dims);
    let mut say = |key: &str, value: String| _ = metadata.insert(key.to_owned(), value);
    say(key::PEAK, says.peak.0.to_string());
    say(key::HASH, says.hash.to_owned());
    if let Some(budget) = says.budget {
        say(key::BUDGET, budget.0.to_string());
    }
    if let Some(page) = says.pages {
        say(key::PAGES, page.0.to_string());
    }
    if let Some(target) = says.target {
        say(key::TARGET, target);
    }
    if let Some(StepEngines { version, precision, by_node }) = says.engines {
        let engines = serde_json::json!({ "cudnn": version, "precision": precision, "engines": by_node });
        say(key::ENGINES, engines.to_string());
    }
    if let Some(workspaces) = says.workspaces {
        say(key::WORKSPACES, workspaces);
    }
    if job.form == Form::Ort {
        say(key::ORT, ORT_SESSION.to_owned());
    }
    metadata
}

/// The metadata of every model: the version that wrote it, and the sizes.
pub(crate) fn origin(dims: &Dims) -> BTreeMap<String, String> {
    let mut metadata = BTreeMap::from([("ai.lmsc.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned())]);
    let names: BTreeMap<_, _> = dims.iter().collect();
    if !names.is_empty() {
        metadata.insert(key::DIMS.to_owned(), serde_json::json!(names).to_string());
    }
    let shapes: BTreeMap<_, _> = dims.shapes().collect();
    if !shapes.is_empty() {
        metadata.insert(key::SHAPES.to_owned(), serde_json::json!(shapes).to_string());
    }
    metadata
}

/// Settings under which ONNX Runtime runs the nodes in the file's order and places swap-outs on the host.
pub(crate) const ORT_SESSION: &str =
    "execution_order=PRIORITY_BASED; session.layer_assignment_settings=cpu(=lms_host)";

/// Refuses a file whose form neither its name nor `--emit` states. Pipes and devices have no such names.
pub(crate) fn check_form(output: &Path, emit: Option<Emit>, known: &[&str]) -> Result<(), Error> {
    let extension = output.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let is_special = output == Path::new("-") || output.metadata().is_ok_and(|it| !it.is_file());
    if emit.is_some() || known.contains(&extension) || is_special {
        return Ok(());
    }
    let message = format!("{}: its name does not say what to write", output.display());
    Err(Error::new(Code::Option, message)
        .with_help("end it in .onnx, .lms or .mlir, or add --emit, for example --emit onnx"))
}

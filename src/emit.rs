//! Writes results, completely or not at all.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use lmsc_ir::{Bytes, Graph, PrintOptions};
use lmsc_onnx::file::{Opened, encode_to};
use lmsc_onnx::proto::ModelProto;
use lmsc_onnx::{Dims, Model, key};
use lmsc_passes::PassCx;

use crate::cli::{CompileArgs, Emit, Form, ModelArgs};
use crate::external::{FileCopy, relocate};
use crate::files::replaces;
use crate::{Code, Error};

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
        args: &CompileArgs,
        model: Option<Model>,
        graph: &Graph,
        changed: bool,
        dims: &Dims,
        says: Says<'_>,
        output: &Path,
    ) -> Result<Emitted, Error> {
        match args.emit(output) {
            Emit::Onnx => {}
            Emit::Lms => {
                check_calls(model.as_ref(), graph, args.input.path())?;
                return Ok(Emitted::Text(graph.to_readable(&PrintOptions::default())));
            }
            Emit::Mlir => {
                check_calls(model.as_ref(), graph, args.input.path())?;
                return Ok(Emitted::Text(mlir(graph, args.input.path())?));
            }
            form @ (Emit::MlirXla | Emit::MlirIree) => {
                let write = if form == Emit::MlirXla { lmsc_mlir::xla } else { lmsc_mlir::iree };
                return Ok(Emitted::Text(
                    write(graph).map_err(|e| Error::in_file(Code::Form, args.input.path(), e))?,
                ));
            }
        }
        let form = match args.form {
            Form::Function => lmsc_onnx::SwapForm::Function,
            Form::Ort => lmsc_onnx::SwapForm::Ort,
        };
        match model {
            // A model that no pass changed is written as it was read.
            Some(model) if !changed => Emitted::read(model, output, args.writing.copy_data),
            model => Emitted::onnx(
                model,
                graph,
                form,
                &metadata(args, dims, says),
                (args.input.path(), output),
                args.writing.copy_data,
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
}

impl<'a> Says<'a> {
    /// The facts of the compiled graph, with its peak, the bytes of a page and the hash of its plan.
    pub(crate) fn of(
        graph: &Graph,
        cx: &PassCx,
        (peak, pages): (Bytes, Option<Bytes>),
        hash: &'a str,
        nothing_planned: bool,
    ) -> Says<'a> {
        Says {
            peak,
            hash,
            workspaces: crate::proof::workspaces(graph, cx.workspace(graph)),
            budget: cx.whole_budget(),
            pages,
            target: (!nothing_planned).then(|| cx.target().name),
        }
    }
}

/// The metadata of the model.
fn metadata(args: &CompileArgs, dims: &Dims, says: Says<'_>) -> BTreeMap<String, String> {
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
    if let Some(workspaces) = says.workspaces {
        say(key::WORKSPACES, workspaces);
    }
    if args.form == Form::Ort {
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

/// Writes a file through a temporary file beside it, so that it is complete or absent.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind) with the path.
pub fn write_atomically(
    path: &Path,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Error> {
    lmsc_onnx::file::write_whole(path, |file| {
        let mut writer = BufWriter::new(file);
        content(&mut writer)?;
        writer.flush()
    })
    .map_err(|e| Error::writing(path, &e))
}

/// Whether both paths refer to one file, also through links.
pub(crate) fn same_file(a: &Path, b: &Path) -> bool {
    if matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b) {
        return true;
    }
    #[cfg(unix)]
    if let (Ok(a), Ok(b)) = (a.metadata(), b.metadata()) {
        use std::os::unix::fs::MetadataExt;
        return a.is_file() && (a.dev(), a.ino()) == (b.dev(), b.ino());
    }
    false
}

/// Refuses to overwrite a file that is an input, for outputs that no argument of a call names.
pub(crate) fn check_not_read(output: &Path, input: &ModelArgs) -> Result<(), Error> {
    let mut read = [Some(input.path()), input.binding.step.optimizer.as_deref()].into_iter().flatten();
    match read.find(|path| output != Path::new("-") && same_file(path, output)) {
        None => Ok(()),
        Some(path) => Err(replaces(output, path, false)),
    }
}

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

/// The endings of a report's name: an HTML page, or the data of the page as JSON.
pub(crate) const PAGES: [&str; 2] = ["html", "json"];

/// Refuses a report that is neither a page nor JSON, or that cannot be written, before the long work starts.
pub(crate) fn check_report(report: &Path, known: &[&str]) -> Result<(), Error> {
    let extension = report.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    if !known.contains(&extension) {
        let message = format!("{}: its name does not say what the report is to be", report.display());
        let known: Vec<String> = known.iter().map(|extension| format!(".{extension}")).collect();
        return Err(Error::new(Code::Option, message).with_help(format!("end it in {}", known.join(" or "))));
    }
    check_target(report)
}

/// Refuses a path that cannot be written, before the long work starts.
pub(crate) fn check_target(path: &Path) -> Result<(), Error> {
    if path == Path::new("-") {
        Ok(())
    } else {
        lmsc_onnx::file::check_target(path).map_err(|e| Error::writing(path, &e))
    }
}

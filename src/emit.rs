//! Writing results: whole or not at all.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use lmsc_ir::{Bytes, Graph};
use lmsc_onnx::Model;
use lmsc_onnx::file::{Opened, encode_to, has_external_data};
use lmsc_onnx::proto::ModelProto;

use crate::Error;
use crate::cli::{BindingArgs, CompileArgs, Emit, Form};

/// What is to be written.
pub(crate) enum Emitted {
    Text(String),
    /// With the files to whose mapped bytes it refers.
    Onnx(Box<ModelProto>, Vec<Arc<Opened>>),
}

impl Emitted {
    /// The compiled graph in the form that the arguments ask for; `model` is the file that it came from, `changed`
    /// whether it is that file no more.
    pub(crate) fn new(
        args: &CompileArgs,
        model: Option<Model>,
        graph: &Graph,
        changed: bool,
        (peak, hash): (Bytes, &str),
        output: &Path,
    ) -> Result<Emitted, Error> {
        match args.emit.unwrap_or_else(|| Emit::named(output)) {
            Emit::Onnx => {}
            Emit::Lms => return Ok(Emitted::Text(graph.to_text())),
            Emit::Mlir => return Ok(Emitted::Text(mlir(graph, args.input.path())?)),
            form @ (Emit::MlirXla | Emit::MlirIree) => {
                let write = if form == Emit::MlirXla { lmsc_mlir::xla } else { lmsc_mlir::iree };
                return Ok(Emitted::Text(write(graph).map_err(|e| Error::in_file(args.input.path(), e))?));
            }
        }
        let form = match args.form {
            Form::Function => lmsc_onnx::Form::Function,
            Form::Ort => lmsc_onnx::Form::Ort,
        };
        match model {
            // What no pass has touched is written as it was read.
            Some(model) if !changed => Emitted::read(model, output),
            model => {
                Emitted::onnx(model, graph, form, &metadata(args, peak, hash), args.input.path(), output)
            }
        }
    }

    /// The model as it was read.
    fn read(model: Model, output: &Path) -> Result<Emitted, Error> {
        check_references(model.folder.as_deref(), &model.proto, output)?;
        Ok(Emitted::Onnx(Box::new(model.proto), model.mapped))
    }

    /// The graph as ONNX, for a file at `output`; `model` is the file at `input` that it came from.
    pub(crate) fn onnx(
        model: Option<Model>,
        graph: &Graph,
        form: lmsc_onnx::Form,
        metadata: &BTreeMap<String, String>,
        input: &Path,
        output: &Path,
    ) -> Result<Emitted, Error> {
        let folder = model.as_ref().and_then(|m| m.folder.clone());
        let mapped = model.as_ref().map_or_else(Vec::new, |m| m.mapped.clone());
        let proto = lmsc_onnx::export(model, graph, form, metadata).map_err(|e| Error::in_file(input, e))?;
        check_references(folder.as_deref(), &proto, output)?;
        Ok(Emitted::Onnx(Box::new(proto), mapped))
    }

    /// Writes it to `output`, or to `out` where that is `-`.
    pub(crate) fn write(&self, output: &Path, out: &mut dyn Write) -> Result<(), Error> {
        let content = |w: &mut dyn Write| match self {
            Emitted::Text(text) => w.write_all(text.as_bytes()),
            Emitted::Onnx(proto, mapped) => {
                let check = || mapped.iter().try_for_each(|file| file.check());
                check()?;
                encode_to(proto, w)?;
                check()
            }
        };
        match output == Path::new("-") {
            true => content(out).and_then(|()| out.flush()).map_err(|e| Error::writing(output, &e)),
            false => write_atomically(output, content),
        }
    }
}

/// The graph of the file at `path`, changed or not, as MLIR.
pub(crate) fn mlir(graph: &Graph, path: &Path) -> Result<String, Error> {
    let text = lmsc_mlir::print(graph).map_err(|e| Error::in_file(path, e))?;
    lmsc_mlir::check(&text).map_err(|found| refused_by_llvm(&text, &found))?;
    Ok(text)
}

/// What is said of a text of ours that LLVM does not accept.
fn refused_by_llvm(text: &str, found: &[lmsc_ir::ParseError]) -> Error {
    let told = found.iter().map(|e| match e.line {
        0 => format!("\n{}", e.message),
        line => format!("\n{e}\n{}", crate::excerpt::excerpt(text, line, e.column)),
    });
    Error::Ours(format!("LLVM refuses the MLIR that is to be written:{}", told.collect::<String>()))
}

/// What the model says about itself.
fn metadata(args: &CompileArgs, peak: Bytes, hash: &str) -> BTreeMap<String, String> {
    let mut metadata = origin(&args.input.binding);
    let mut say = |key: &str, value: String| _ = metadata.insert(format!("ai.lmsc.{key}"), value);
    say("peak", peak.0.to_string());
    say("hash", hash.to_owned());
    if let Some(budget) = args.plan.budget {
        say("budget", budget.0.to_string());
    }
    if args.form == Form::Ort {
        say("ort", ORT_SESSION.to_owned());
    }
    metadata
}

/// What every model says: who wrote it, and for which sizes.
pub(crate) fn origin(binding: &BindingArgs) -> BTreeMap<String, String> {
    let mut metadata = BTreeMap::from([("ai.lmsc.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned())]);
    if !binding.dims.is_empty() {
        let dims: BTreeMap<_, _> = binding.dims.iter().cloned().collect();
        let dims = serde_json::to_string(&dims).expect("names and numbers are JSON");
        metadata.insert("ai.lmsc.dims".to_owned(), dims);
    }
    metadata
}

/// Settings under which ONNX Runtime runs the nodes in the file's order and places swap-outs on the host.
pub(crate) const ORT_SESSION: &str =
    "execution_order=PRIORITY_BASED; session.layer_assignment_settings=cpu(=lms_host)";

/// References to external data hold in the folder of the model only.
fn check_references(folder: Option<&Path>, proto: &ModelProto, output: &Path) -> Result<(), Error> {
    let Some(folder) = folder else { return Ok(()) };
    if !has_external_data(proto) {
        return Ok(());
    }
    let there = match output.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let same = output == Path::new("-") || same_folder(folder, there);
    if same {
        return Ok(());
    }
    let (output, folder) = (output.display(), folder.display());
    let message = format!("cannot write {output}: the model's weights are in files beside it, in {folder}");
    Err(Error::Input(message).with_help(format!("write the result into {folder}, too")))
}

fn same_folder(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// Writes a file through a temporary one beside it, so that it is there whole or not at all.
///
/// # Errors
/// [`Error::Input`] naming the path.
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

/// Refuses a path that nothing can be written to, before the work is done.
pub(crate) fn check_target(path: &Path) -> Result<(), Error> {
    match path == Path::new("-") {
        true => Ok(()),
        false => lmsc_onnx::file::check_target(path).map_err(|e| Error::writing(path, &e)),
    }
}

//! `lmsc opt`: runs single passes; also writes a graph that other programs changed through the library.

use std::path::Path;

use lmsc_ir::PrintOptions;
use lmsc_passes::{PassCx, PassKind, Pipeline};

use crate::cli::{BindingArgs, Emit, OptArgs};
use crate::emit::{self, Emitted};
use crate::error::note;
use crate::proof::Written;
use crate::{Error, Loaded, differs, external, load, look, machine, pass_cx, smaller};

/// Runs passes on a graph and returns its text. If the call names an output file, the text is empty and the file
/// gets text, MLIR or ONNX, by its name.
///
/// # Errors
/// As [`compile`](crate::compile).
pub fn opt(args: &OptArgs) -> Result<String, Error> {
    let (input, binding) = (args.input.path(), &args.input.binding);
    let mut loaded = load(input, binding)?;
    if let (Some(model), Some(output)) = (&loaded.model, &args.output) {
        external::check_not_data(model, output)?;
    }
    if let Some(output) = &args.output {
        emit::check_form(output, None, &FORMS)?;
    }
    let passes = args.look.limited(pipeline(&args.passes)?);
    let machine = machine(args.plan.machine.target.as_deref(), args.plan.machine.profile.as_deref())?;
    let cx = pass_cx(&args.plan, machine, &loaded.graph)?;
    let original = loaded.graph.clone();
    let ran = look::run(&mut loaded.graph, &passes, &cx, &args.look).map_err(|e| smaller(e, binding))?;
    let (proof, proven_in) = look::timed(|| passes.prove(&original, &loaded.graph));
    look::print_times(&args.look, &ran, proven_in);
    proof.map_err(differs)?;
    // A pass that changes values says so, and no check does.
    for (pass, ran) in passes.passes().zip(&ran) {
        if pass.kind() == PassKind::Precision {
            ran.outcome.remarks.iter().for_each(|remark| note(format!("{}: {remark}", pass.name())));
        }
    }
    let Some(output) = args.output.as_deref().filter(|&path| path != Path::new("-")) else {
        emit::check_calls(loaded.model.as_ref(), &loaded.graph, input)?;
        return Ok(loaded.graph.to_readable(&PrintOptions { elide: args.elide, notes: args.notes }));
    };
    let is_changed = ran.iter().any(|ran| ran.outcome.changed);
    let layout = &PrintOptions { elide: None, notes: args.notes };
    write(&loaded, is_changed, (input, output), binding, &cx, (layout, args.writing.copy_data))?;
    Ok(String::new())
}

/// The endings of output names.
const FORMS: [&str; 4] = ["onnx", "lms", "mlir", "txt"];

/// The passes of all `-p` options, in order.
fn pipeline(named: &[String]) -> Result<Pipeline<'static>, Error> {
    let parsed: Result<Vec<_>, _> = named.iter().map(|text| Pipeline::parse(text)).collect();
    Ok(parsed?.into_iter().fold(Pipeline::new(), Pipeline::then))
}

impl Loaded {
    /// Writes the graph to this file, completely or not at all: as ONNX, text or MLIR, by the ending of its name.
    /// The file is read back with the options of `binding`, with which the graph was read, and proven to equal the
    /// graph.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind) if the file cannot be written; [`ErrorKind::Internal`](crate::ErrorKind) if the graph is
    /// not valid, or if the graph that was read back differs.
    pub fn write(&self, path: impl AsRef<Path>, binding: &BindingArgs) -> Result<(), Error> {
        let path = path.as_ref();
        emit::check_form(path, None, &FORMS)?;
        emit::check_target(path)?;
        self.model.iter().try_for_each(|model| external::check_not_data(model, path))?;
        load::check(&self.graph).map_err(|e| Error::ours(format!("the graph is not valid:\n{e}")))?;
        write(self, true, (path, path), binding, &PassCx::default(), (&PrintOptions::default(), false))
    }
}

/// Writes the graph to the file at `output` and reads it back; `is_changed` says whether it differs from the file
/// at `input`.
fn write(
    loaded: &Loaded,
    is_changed: bool,
    (input, output): (&Path, &Path),
    binding: &BindingArgs,
    cx: &PassCx,
    (layout, copy_data): (&PrintOptions, bool),
) -> Result<(), Error> {
    let Loaded { graph, model, dims, .. } = loaded;
    let extension = output.extension().and_then(|extension| extension.to_str());
    if extension != Some("onnx") {
        emit::check_calls(model.as_ref(), graph, input)?;
    }
    let (emit, emitted) = match extension {
        Some("mlir") => (Emit::Mlir, Emitted::Text(emit::mlir(graph, input)?)),
        Some("onnx") => {
            let mut says = emit::origin(dims);
            if let Some(model) = model.as_ref().filter(|_| !is_changed) {
                says.extend(lmsc_onnx::of_plan(model));
            }
            let (form, paths) = (lmsc_onnx::SwapForm::Function, (input, output));
            (Emit::Onnx, Emitted::onnx(model.clone(), graph, form, &says, paths, copy_data)?)
        }
        _ => (Emit::Lms, Emitted::Text(graph.to_readable(layout))),
    };
    emitted.write(output)?;
    let folder = model.as_ref().and_then(|model| model.folder.as_deref());
    let of_text = model.is_none();
    Written { path: output, emit, binding, original: graph, result: graph, folder, cx, of_text }.read_back()
}

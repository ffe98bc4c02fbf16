//! Writes a graph that was read and perhaps changed, and reads it back.

use std::path::Path;

use lmsc_ir::PrintOptions;
use lmsc_passes::PassCx;

use crate::emit::{self, Emitted};
use crate::files::check_target;
use crate::job::{Binding, Emit};
use crate::proof::Written;
use crate::{Error, Loaded, external, load};

/// The endings of output names.
pub(crate) const FORMS: [&str; 4] = ["onnx", "lms", "mlir", "txt"];

impl Loaded {
    /// Writes the graph to this file, completely or not at all: as ONNX, text or MLIR, by the ending of its name.
    /// The file is read back with the options of `binding`, with which the graph was read, and proven to equal the
    /// graph.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind) if the file cannot be written; [`ErrorKind::Internal`](crate::ErrorKind) if the graph is
    /// not valid, or if the graph that was read back differs.
    pub fn write(&self, path: impl AsRef<Path>, binding: &Binding) -> Result<(), Error> {
        let path = path.as_ref();
        emit::check_form(path, None, &FORMS)?;
        check_target(path)?;
        self.model.iter().try_for_each(|model| external::check_not_data(model, path))?;
        load::check(&self.graph).map_err(|e| Error::ours(format!("the graph is not valid:\n{e}")))?;
        write(self, true, (path, path), binding, &PassCx::default(), (&PrintOptions::default(), false))
    }
}

/// Writes the graph to the file at `output` and reads it back; `is_changed` says whether it differs from the file
/// at `input`.
pub(crate) fn write(
    loaded: &Loaded,
    is_changed: bool,
    (input, output): (&Path, &Path),
    binding: &Binding,
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

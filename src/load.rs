//! From a path to a verified graph.

use std::io::Read;
use std::path::Path;

use lmsc_ir::Graph;
use lmsc_onnx::{Dims, Model};

use crate::Error;
use crate::cli::BindingArgs;

/// A graph and the file that it came from.
pub struct Loaded {
    /// The graph, verified.
    pub graph: Graph,
    /// The ONNX file, with the optimizer linked; `None` for text.
    pub model: Option<Model>,
    /// Whether the model is not the file any more: the optimizer was linked, or updates of variables that the file
    /// spells out were gathered.
    pub edited: bool,
}

/// The graph in the file at `path`, or on standard input for `-`.
///
/// # Errors
/// [`Error::Input`], always: whatever is wrong here is wrong with the file or the call.
pub fn load(path: &Path, binding: &BindingArgs) -> Result<Loaded, Error> {
    let bytes = match path == Path::new("-") {
        true => Some(standard_input().map_err(|e| Error::in_file(path, e))?),
        false => None,
    };
    let is_text = match &bytes {
        // An ONNX file begins with the tag of its first field, never with a letter or a bracket.
        Some(bytes) => {
            bytes.first().is_some_and(|b| b.is_ascii_alphabetic() || b"</\"".contains(b))
                && !bytes.contains(&0)
        }
        None => path.extension().is_some_and(|e| e == "lms"),
    };
    let loaded = if is_text { text(path, bytes, binding)? } else { onnx(path, bytes, binding)? };
    check(&loaded.graph).map_err(|e| Error::in_file(path, e))?;
    Ok(loaded)
}

/// What must hold of a graph from outside: the invariants, and that recomputed nodes compute what they say.
///
/// # Errors
/// The violations, or the first recomputed node that differs from its origin.
pub fn check(graph: &Graph) -> Result<(), String> {
    lmsc_ir::verify(graph).map_err(|violations| violations.to_string())?;
    if graph.order().iter().any(|&n| graph.node(n).recomputes.is_some()) {
        lmsc_ir::equiv::check(graph, graph).map_err(|difference| difference.to_string())?;
    }
    Ok(())
}

fn standard_input() -> std::io::Result<bytes::Bytes> {
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(bytes.into())
}

fn text(path: &Path, bytes: Option<bytes::Bytes>, binding: &BindingArgs) -> Result<Loaded, Error> {
    let bytes = match bytes {
        Some(bytes) => bytes.to_vec(),
        None => std::fs::read(path).map_err(|e| Error::in_file(path, e))?,
    };
    let text =
        String::from_utf8(bytes).map_err(|_| Error::in_file(path, "the text form is UTF-8; this is not"))?;
    if binding.optimizer.is_some() {
        return Err(Error::in_file(path, "--optimizer links ONNX files; this is text"));
    }
    if let Some((name, _)) = binding.dims.first() {
        return Err(Error::in_file(
            path,
            format!("--dim {name}: every size in the text form is a number already"),
        ));
    }
    let graph = Graph::parse(&text).map_err(|e| Error::Input(format!("{}:{e}", path.display())))?;
    Ok(Loaded { graph, model: None, edited: false })
}

fn onnx(path: &Path, bytes: Option<bytes::Bytes>, binding: &BindingArgs) -> Result<Loaded, Error> {
    let open = |path: &Path| {
        let model = Model::open(path).map_err(|e| Error::Input(e.to_string()))?;
        lmsc_onnx::file::check_external_data(&model).map_err(|e| Error::Input(e.to_string()))?;
        Ok::<Model, Error>(model)
    };
    let mut model = match bytes {
        Some(bytes) => Model::from_bytes(bytes, "standard input").map_err(|e| Error::Input(e.to_string()))?,
        None => open(path)?,
    };
    if let Some(optimizer) = &binding.optimizer {
        let optimizer = open(optimizer)?;
        model = lmsc_onnx::link(&model, &optimizer).map_err(|e| Error::Input(e.to_string()))?;
    }
    let gathered = lmsc_onnx::gather(&mut model);
    let mut dims = Dims::none();
    for (name, value) in &binding.dims {
        if dims.bind(name.clone(), *value).is_some_and(|old| old != *value) {
            return Err(Error::Input(format!("--dim {name} is given twice, with different values")));
        }
    }
    let mut graph = lmsc_onnx::import(&model, &dims).map_err(|e| Error::Input(e.to_string()))?;
    lmsc_onnx::settle(&mut graph, &lmsc_onnx::state_pairs(&model, &binding.state))
        .map_err(|e| Error::in_file(path, e))?;
    Ok(Loaded { graph, model: Some(model), edited: gathered || binding.optimizer.is_some() })
}

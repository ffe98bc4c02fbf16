//! From a path to a verified graph.

use std::io::Read;
use std::path::Path;
use std::string::FromUtf8Error;

use lmsc_ir::equiv::Difference;
use lmsc_ir::{Graph, Invariant, Node, Violation, Violations};
use lmsc_onnx::file::FileError;
use lmsc_onnx::{Dims, Foreign, Model, key};

use crate::Error;
use crate::cli::{BindingArgs, Emit};
use crate::error::called;
use crate::excerpt::excerpt;

/// A graph and the file that it came from.
pub struct Loaded {
    /// The graph, verified.
    pub graph: Graph,
    /// The ONNX file, with the optimizer linked; `None` for text.
    pub model: Option<Model>,
    /// What its symbolic dimensions are bound to: as was asked for, else as the file was rewritten for.
    pub dims: Dims,
    /// Whether the model is not the file any more: the optimizer was linked, or updates of variables that the file
    /// spells out were gathered.
    pub edited: bool,
}

/// The graph in the file at `path`, or on standard input for `-`.
///
/// # Errors
/// [`Error::Input`], always: whatever is wrong here is wrong with the file or the call.
pub fn load(path: &Path, binding: &BindingArgs) -> Result<Loaded, Error> {
    load_or_look(path, binding, None)
}

/// The same, for who only looks at the graph, with what is wrong with a model that only [`load`] refuses.
///
/// # Errors
/// [`Error::Input`], as [`load`] has it.
pub fn look(path: &Path, binding: &BindingArgs) -> Result<(Loaded, Vec<String>), Error> {
    let mut warnings = Vec::new();
    let loaded = load_or_look(path, binding, Some(&mut warnings))?;
    Ok((loaded, warnings))
}

fn load_or_look(
    path: &Path,
    binding: &BindingArgs,
    warnings: Option<&mut Vec<String>>,
) -> Result<Loaded, Error> {
    let bytes = match path == Path::new("-") {
        true => Some(standard_input().map_err(|e| Error::reading(path, &e))?),
        false => None,
    };
    let is_text = match &bytes {
        // An ONNX file begins with the tag of its first field, never with a blank, a letter or a bracket.
        Some(bytes) => match bytes.trim_ascii_start().first() {
            Some(b) => (b.is_ascii_alphabetic() || b"</\"".contains(b)) && !bytes.contains(&0),
            None => {
                let empty = Error::Input("standard input is empty".to_owned());
                return Err(empty.with_help("pipe an ONNX model, or a text in lmsc's form, into it"));
            }
        },
        None => is_text(path),
    };
    let loaded = if is_text { text(path, bytes, binding)? } else { onnx(path, bytes, binding, warnings)? };
    check(&loaded.graph).map_err(|e| invalid(path, &e))?;
    Ok(loaded)
}

fn invalid(path: &Path, violations: &Violations) -> Error {
    Error::Input(format!("{} is not a valid graph:\n{violations}", called(path)))
}

/// Whether the file is named as the text of a graph.
pub(crate) fn is_text(path: &Path) -> bool {
    matches!(Emit::named(path), Emit::Lms | Emit::Mlir)
}

/// What must hold of a graph from outside: the invariants, and that recomputed nodes compute what they say.
///
/// # Errors
/// The violations; the first recomputed node that differs from its origin is one of I6, the first Join of what is not one
/// tensor one of I8.
pub fn check(graph: &Graph) -> Result<(), Violations> {
    lmsc_ir::verify(graph)?;
    let claims = |node: &Node| node.recomputes.is_some() || node.op.is_join();
    if graph.order().iter().any(|&id| claims(graph.node(id))) {
        let violation = |difference: Difference| match difference {
            // Of what could not be numbered, only joins are still unchecked.
            Difference::Malformed { place, why, .. } => {
                Violation { invariant: Invariant::I8, message: format!("{place}: {why}") }
            }
            other => Violation { invariant: Invariant::I6, message: other.to_string() },
        };
        lmsc_ir::equiv::check(graph, graph).map_err(|difference| Violations(vec![violation(difference)]))?;
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
        None => std::fs::read(path).map_err(|e| Error::reading(path, &e))?,
    };
    let text = String::from_utf8(bytes).map_err(|e| no_text(path, &e))?;
    let is_mlir = match path == Path::new("-") {
        true => lmsc_mlir::looks_like(&text),
        false => Emit::named(path) == Emit::Mlir,
    };
    let (kind, updates) = if is_mlir { ("mlir", "lms.updates") } else { ("lms", "updates") };
    if text.trim_ascii().is_empty() {
        let empty = Error::Input(format!("{} is empty", called(path)));
        let help = format!("lmsc writes the text of a model: lmsc opt model.onnx -o model.{kind}");
        return Err(empty.with_help(help));
    }
    let refused = |option: &str, why: &str| {
        let message = format!("{option} does not apply to {}: {why}", called(path));
        Err(Error::Input(message).with_help(format!("leave {option} out, or give the .onnx file")))
    };
    if binding.optimizer.is_some() {
        return refused("--optimizer", "it links ONNX files, and this is text");
    }
    if let Some((name, _)) = binding.dims.first() {
        return refused(&format!("--dim {name}"), "every size in the text form is a number already");
    }
    if let Some((input, output)) = binding.state.first() {
        return refused(
            &format!("--state {input}={output}"),
            &format!("the text form says `{updates}` where state is written"),
        );
    }
    let graph = if is_mlir { lmsc_mlir::parse(&text) } else { Graph::parse(&text) };
    let graph = graph.map_err(|e| {
        let excerpt = excerpt(&text, e.line, e.column);
        Error::Input(format!("{}:{e}\n{excerpt}", called(path)))
    })?;
    lmsc_ir::verify(&graph).map_err(|e| invalid(path, &e))?;
    // An ONNX file was held to versions and to the operators' contracts when it was imported.
    for (domain, newest) in lmsc_onnx::shapes::NEWEST {
        if let Some(found) = graph.opsets.get(*domain).filter(|found| *found > newest) {
            let message = format!(
                "{} states version {found} of \"{domain}\", and lmsc knows versions up to {newest}",
                called(path)
            );
            return Err(Error::Input(message).with_help("write the version whose operators the graph has"));
        }
    }
    lmsc_onnx::shapes::check(&graph).map_err(|errors| {
        const SHOWN: usize = 20;
        let shown: Vec<String> = errors.iter().take(SHOWN).map(|e| format!("  {e}")).collect();
        let more = errors.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
        Error::Input(format!("{} is not a valid graph:\n{}{more}", called(path), shown.join("\n")))
            .with_help("correct these nodes")
    })?;
    Ok(Loaded { graph, model: None, dims: Dims::none(), edited: false })
}

/// What is said of bytes that are no UTF-8.
fn no_text(path: &Path, error: &FromUtf8Error) -> Error {
    let (bytes, at) = (error.as_bytes(), error.utf8_error().valid_up_to());
    if let Some(Foreign { what, help }) = lmsc_onnx::looks_like(bytes) {
        return Error::Input(format!("{} is not text: it looks like {what}", called(path))).with_help(help);
    }
    if Model::from_bytes(bytes.to_vec().into(), "").is_ok() {
        return Error::Input(format!("{} is an ONNX model, not text", called(path)))
            .with_help("give it a name that ends in .onnx");
    }
    let line = 1 + bytes[..at].iter().filter(|&&b| b == b'\n').count();
    let column = 1 + bytes[..at].iter().rev().take_while(|&&b| b != b'\n').count();
    let message = format!("{}:{line}:{column}: the byte 0x{:02x} is not UTF-8", called(path), bytes[at]);
    Error::Input(message).with_help("save the text as UTF-8")
}

fn onnx(
    path: &Path,
    bytes: Option<bytes::Bytes>,
    binding: &BindingArgs,
    warnings: Option<&mut Vec<String>>,
) -> Result<Loaded, Error> {
    let open = |path: &Path| {
        let model = Model::open(path).map_err(|e| Error::Input(e.to_string()))?;
        lmsc_onnx::file::check_external_data(&model).map_err(|e| Error::Input(e.to_string()))?;
        Ok::<Model, Error>(model)
    };
    let mut model = match bytes {
        Some(bytes) => Model::from_bytes(bytes, called(path)).map_err(|error| match error {
            FileError::NotAModel { looks_like, .. } => neither(looks_like),
            error => Error::Input(error.to_string()),
        })?,
        None => open(path)?,
    };
    if let Some(optimizer) = &binding.optimizer {
        let optimizer = open(optimizer)?;
        model = lmsc_onnx::link(&model, &optimizer).map_err(|e| Error::Input(e.to_string()))?;
    }
    let gathered = lmsc_onnx::gather(&mut model);
    let dims = dims(path, &model, &binding.dims)?;
    let imported = match warnings {
        None => lmsc_onnx::import(&model, &dims),
        Some(warnings) => lmsc_onnx::look(&model, &dims).map(|(graph, found)| {
            warnings.extend(found.iter().map(ToString::to_string));
            graph
        }),
    };
    let mut graph = imported.map_err(|e| Error::Input(e.to_string()))?;
    lmsc_onnx::settle(&mut graph, &lmsc_onnx::state_pairs(&model, &binding.state))
        .map_err(|e| Error::in_file(path, e))?;
    Ok(Loaded { graph, model: Some(model), dims, edited: gathered || binding.optimizer.is_some() })
}

/// What is asked for, and besides that what the file was rewritten for.
fn dims(path: &Path, model: &Model, asked: &[(String, u64)]) -> Result<Dims, Error> {
    let mut dims = Dims::none();
    for (name, value) in asked {
        if let Some(other) = dims.bind(name.clone(), *value).filter(|other| other != value) {
            let message = format!("--dim {name} is given twice, as {other} and as {value}; give it once");
            return Err(Error::Input(message));
        }
    }
    let has_addresses = model.proto.metadata_props.iter().any(|p| p.key() == key::ADDRESSES);
    for (name, value) in Dims::written(model).iter() {
        match dims.get(name) {
            None => _ = dims.bind(name, value),
            Some(other) if has_addresses && other != value => {
                let problem =
                    format!("its addresses are those for {name}={value}, and --dim {name}={other} is given");
                let help = format!("leave --dim out, or rewrite the original model for {name}={other}");
                return Err(Error::in_file(path, problem).with_help(help));
            }
            Some(_) => {}
        }
    }
    Ok(dims)
}

/// What is said of standard input that is none of what lmsc reads.
fn neither(looks_like: Option<Foreign>) -> Error {
    let message = "standard input is neither an ONNX model nor a text in lmsc's form";
    match looks_like.filter(|like| like.what != "text") {
        Some(Foreign { what, help }) => {
            Error::Input(format!("{message}: it looks like {what}")).with_help(help)
        }
        None => Error::Input(message.to_owned()).with_help("pipe the .onnx or the .lms file into it"),
    }
}

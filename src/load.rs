//! Reads a file into a verified graph.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use std::string::FromUtf8Error;

use lmsc_ir::equiv::Difference;
use lmsc_ir::{
    Advice, Bytes, Graph, Invariant, Message, Node, Place, Storage, Storages, Violation, Violations, words,
};
use lmsc_onnx::file::FileError;
use lmsc_onnx::import::ImportError;
use lmsc_onnx::shapes::ShapeError;
use lmsc_onnx::{Dims, Foreign, ImportErrors, Imported, Model, Notice, Stated, key};

use crate::error::called;
use crate::excerpt::excerpt;
use crate::job::{Binding, Emit, StateOption};
use crate::warning::warn;
use crate::{Code, Error, Warning};

/// A graph and the file from which it was read.
pub struct Loaded {
    /// The graph, verified.
    pub graph: Graph,
    /// The ONNX file, with the optimizer linked; `None` for text.
    pub model: Option<Model>,
    /// The values of its symbolic dimensions: those of the call, else those for which the file was rewritten.
    pub dims: Dims,
    /// Whether the model differs from the file: the optimizer was linked, or explicit updates of variables were
    /// merged into nodes.
    pub edited: bool,
    /// Faults of the file that do not prevent its use, one sentence each.
    pub warnings: Vec<Warning>,
}

/// The graph in the file at `path`, or on standard input for `-`; its warnings are printed to standard error.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind), always: every fault here is one of the file or the call.
pub fn load(path: &Path, binding: &Binding) -> Result<Loaded, Error> {
    let loaded = read(path, binding, Purpose::Rewrite)?;
    warn(&loaded.warnings)?;
    Ok(loaded)
}

/// The training step in the file at `path`, or in `bytes`, which messages call by that path. Nothing is printed. A
/// step that learns nothing gets a warning.
///
/// # Errors
/// As [`load`].
pub(crate) fn step(
    path: &Path,
    bytes: Option<bytes::Bytes>,
    binding: &Binding,
    purpose: Purpose,
) -> Result<Loaded, Error> {
    let loaded = match bytes {
        Some(bytes) => take(path, Some(bytes), binding, purpose)?,
        None => read(path, binding, purpose)?,
    };
    Ok(noted_if_idle(path, noted_if_inference(path, loaded)))
}

/// The graph, for a caller that only reads it: violations of operators' contracts are warnings.
///
/// # Errors
/// As [`load`].
pub(crate) fn look(path: &Path, binding: &Binding) -> Result<Loaded, Error> {
    let loaded = noted_if_inference(path, read(path, binding, Purpose::Look)?);
    let loaded = noted_if_idle(path, loaded);
    warn(&loaded.warnings)?;
    Ok(loaded)
}

/// Prints the graph's warnings, with one more if it does not train, and returns it.
///
/// # Errors
/// With `--deny warnings`, the warnings.
pub(crate) fn told_if_inference(path: &Path, loaded: Loaded) -> Result<Loaded, Error> {
    let loaded = noted_if_inference(path, loaded);
    warn(&loaded.warnings)?;
    Ok(loaded)
}

/// The graph, with a warning if it does not train.
pub(crate) fn noted_if_inference(path: &Path, mut loaded: Loaded) -> Loaded {
    if let Some(inference) = crate::state::is_inference(&loaded.graph) {
        let help = match &loaded.model {
            Some(_) => {
                "; training needs more memory. Export the step with its loss, gradients and optimizer \
                 (docs/pytorch.md; or artifacts.generate_artifacts of onnxruntime-training)"
            }
            None => "; training needs more memory",
        };
        let message = format!("{}: {inference}{help}", called(path));
        loaded.warnings.insert(0, Warning::new(Code::Inference, message));
    }
    loaded
}

/// The graph, with a warning if it trains but learns nothing.
pub(crate) fn noted_if_idle(path: &Path, mut loaded: Loaded) -> Loaded {
    if let Some(idle) = crate::state::learns_nothing(&loaded.graph) {
        let help = match &loaded.model {
            Some(_) => {
                "; give the optimizer with --optimizer, or say with --state INPUT=OUTPUT which outputs are next values"
            }
            None => "",
        };
        let message = format!("{}: {idle}{help}", called(path));
        loaded.warnings.push(Warning::new(Code::Idle, message));
    }
    loaded
}

/// The names of the symbolic dimensions of the model at `path`; none for text.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind) if the file is not a model.
pub(crate) fn symbolic(path: &Path) -> Result<Vec<String>, Error> {
    if path == Path::new("-") {
        let message = "standard input is read once, and the model more often".to_owned();
        return Err(
            Error::new(Code::Option, message).with_help("give a file, or name the dimension with --dim NAME")
        );
    }
    if is_text(path) {
        return Ok(Vec::new());
    }
    let model = Model::open(path).map_err(|e| not_read(&e))?;
    let written = Dims::written(&model);
    let names = model.proto.graph.iter().flat_map(lmsc_onnx::symbolic);
    Ok(names.filter(|name| written.get(name).is_none()).collect())
}

/// The graph in the file at `path`; its warnings are not printed.
///
/// # Errors
/// As [`load`].
pub(crate) fn load_quietly(path: &Path, binding: &Binding) -> Result<Loaded, Error> {
    read(path, binding, Purpose::Rewrite)
}

/// The training step in the file at `path`, read into memory: later changes of the file have no effect. Warnings are printed.
///
/// # Errors
/// As [`load`].
pub(crate) fn load_to_run(path: &Path, binding: &Binding) -> Result<Loaded, Error> {
    let loaded = noted_if_idle(path, read(path, binding, Purpose::Run)?);
    warn(&loaded.warnings)?;
    Ok(loaded)
}

/// The purpose for which a graph is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The graph is rewritten: files are mapped.
    Rewrite,
    /// The graph runs: files are read into memory.
    Run,
    /// The graph is only shown: violations of operators' contracts are warnings.
    Look,
}

impl Purpose {
    fn open(self, path: &Path) -> Result<Model, FileError> {
        match self {
            Purpose::Run => Model::read(path),
            Purpose::Rewrite | Purpose::Look => Model::open(path),
        }
    }
}

fn read(path: &Path, binding: &Binding, purpose: Purpose) -> Result<Loaded, Error> {
    let bytes = if path == Path::new("-") {
        Some(standard_input().map_err(|e| Error::reading(path, &e))?)
    } else {
        None
    };
    take(path, bytes, binding, purpose)
}

fn take(
    path: &Path,
    bytes: Option<bytes::Bytes>,
    binding: &Binding,
    purpose: Purpose,
) -> Result<Loaded, Error> {
    let is_text = match &bytes {
        // An ONNX file begins with the tag of its first field, never with white space, a letter or a bracket.
        Some(bytes) => match bytes.trim_ascii_start().first() {
            Some(b) => (b.is_ascii_alphabetic() || b"</\"#".contains(b)) && !bytes.contains(&0),
            None => {
                let empty = Error::new(Code::NotAModel, format!("{} is empty", called(path)));
                return Err(if path == Path::new("-") {
                    empty.with_help("pipe an ONNX model, or a text in lmsc's form, into it")
                } else {
                    empty.with_help("give the bytes of an ONNX model, or a text in lmsc's form")
                });
            }
        },
        None => is_text(path),
    };
    if is_text { text(path, bytes, binding) } else { onnx(path, bytes, binding, purpose) }
}

/// Checks the graph of a file. Another program may have rewritten the file; then addresses and recompute marks that
/// do not hold are removed, and a warning is returned.
///
/// # Errors
/// The violations that remain without them.
fn check_without_stale(graph: &mut Graph) -> Result<Option<String>, Violations> {
    let mut reason = None;
    if graph.has_addresses()
        && let Some(value) = unplaced(graph)
    {
        graph.clear_addresses();
        reason = Some(format!("`{value}` has no address, and other tensors have one"));
    }
    if let Err(violations) = check(graph) {
        let claims = graph.order().iter().any(|&id| graph.node(id).recomputes.is_some());
        if !claims && !graph.has_addresses() {
            return Err(violations);
        }
        graph.clear_addresses();
        if check(graph).is_err() {
            graph.clear_recomputes();
            check(graph)?;
        }
        let first = violations.0.first().map(|v| v.message.clone());
        reason = reason.or(first);
    }
    Ok(reason.map(|reason| {
        format!(
            "{reason}; another program has rewritten the file, so its addresses are not used: it holds no memory bound \
             until it is planned again"
        )
    }))
}

/// The name of a tensor on the device that has bytes but no address.
fn unplaced(graph: &Graph) -> Option<String> {
    let storages = Storages::of(graph);
    let needs_address =
        |storage: &Storage| graph.value(storage.root).place == Place::Device && storage.bytes > Bytes::ZERO;
    let found = storages.iter().find(|(_, storage)| !storage.on_host && needs_address(storage));
    found.map(|(_, storage)| graph.value(storage.root).name.to_string())
}

fn invalid(path: &Path, violations: &Violations) -> Error {
    let message = Message::new(format!("{} is not a valid graph:\n{violations}", called(path)));
    Error::new(Code::Model, Message { helps: violations.helps(), ..message })
}

/// The error of a model file that cannot be read.
pub(crate) fn not_read(error: &FileError) -> Error {
    let code = match error {
        FileError::Read { .. } | FileError::Write { .. } => Code::File,
        FileError::Empty { .. } | FileError::NotAModel { .. } => Code::NotAModel,
        FileError::Wire { .. } | FileError::Decode { .. } => Code::Model,
    };
    Error::new(code, error.message())
}

/// The code of a failed import: that of its first error.
fn code_of(errors: &ImportErrors) -> Code {
    match errors.errors.first() {
        Some(
            ImportError::UnboundDim { .. }
            | ImportError::UnknownDim { .. }
            | ImportError::NoSuchDim { .. }
            | ImportError::NoSuchInput { .. }
            | ImportError::ContradictingSizes { .. }
            | ImportError::EmptyStep { .. },
        ) => Code::Dimension,
        Some(
            ImportError::Opset { .. }
            | ImportError::Ir { .. }
            | ImportError::NoOperator { .. }
            | ImportError::Shape(ShapeError::Contract { .. } | ShapeError::Unknown { .. }),
        ) => Code::Unsupported,
        _ => Code::Model,
    }
}

/// Whether the file's name is that of a graph in text form.
pub(crate) fn is_text(path: &Path) -> bool {
    matches!(Emit::named(path), Emit::Lms | Emit::Mlir)
}

/// Checks a graph from outside: the invariants, and that recomputed nodes compute the same as their origins.
///
/// # Errors
/// The violations. The first recomputed node that differs from its origin violates I6; the first Join of pieces of
/// different tensors violates I8.
pub fn check(graph: &Graph) -> Result<(), Violations> {
    lmsc_ir::verify(graph)?;
    let claims = |node: &Node| node.recomputes.is_some() || node.op.is_join();
    if graph.order().iter().any(|&id| claims(graph.node(id))) {
        let violation = |difference: Difference| match difference {
            // The verifier ran above, so that only a Join can still be malformed.
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

fn text(path: &Path, bytes: Option<bytes::Bytes>, binding: &Binding) -> Result<Loaded, Error> {
    let is_unnamed = bytes.is_some();
    let bytes = match bytes {
        Some(bytes) => bytes.to_vec(),
        None => std::fs::read(path).map_err(|e| Error::reading(path, &e))?,
    };
    let text = String::from_utf8(bytes).map_err(|e| no_text(path, &e))?;
    let is_mlir = if is_unnamed { lmsc_mlir::looks_like(&text) } else { Emit::named(path) == Emit::Mlir };
    let (kind, updates) = if is_mlir { ("mlir", "lms.updates") } else { ("lms", "updates") };
    if text.trim_ascii().is_empty() {
        let empty = Error::new(Code::NotAModel, format!("{} is empty", called(path)));
        let help = format!("lmsc writes the text of a model: lmsc opt model.onnx -o model.{kind}");
        return Err(empty.with_help(help));
    }
    let refused = |option: &str, why: &str| {
        let message = format!("{option} does not apply to {}: {why}", called(path));
        Err(Error::new(Code::Option, message)
            .with_help(format!("leave {option} out, or give the .onnx file")))
    };
    if binding.optimizer.is_some() {
        return refused("--optimizer", "it links ONNX files, and this is text");
    }
    if let Some((name, _)) = binding.dims.first() {
        return refused(&format!("--dim {name}"), "every size in the text form is a number already");
    }
    if let Some((input, _)) = binding.shapes.first() {
        return refused(&format!("--shape {input}"), "every size in the text form is a number already");
    }
    if let Some((input, _)) = binding.values.first() {
        return refused(
            &format!("--value {input}"),
            "it makes constants of inputs of ONNX files, and this is text",
        );
    }
    if is_mlir && lmsc_mlir::is_stablehlo(&text) {
        return stablehlo(path, &text, binding);
    }
    if let Some(option) = state_option(binding) {
        return refused(&option, &format!("the text form says `{updates}` where state is written"));
    }
    let graph = if is_mlir { lmsc_mlir::parse(&text) } else { Graph::parse(&text) };
    let graph = graph.map_err(|e| {
        let excerpt = excerpt(&text, e.line, e.column);
        Error::new(Code::Model, format!("{}:{e}\n{excerpt}", called(path)))
    })?;
    check(&graph).map_err(|e| invalid(path, &e))?;
    check_of_text(path, &graph)?;
    let warning = |message| Warning::new(Code::Misspelt, format!("{}: {message}", called(path)));
    let warnings = misspelt(&graph).into_iter().map(warning).collect();
    Ok(Loaded { graph, model: None, dims: Dims::none(), edited: false, warnings })
}

/// A step in StableHLO, with the state that the module and the call declare.
fn stablehlo(path: &Path, text: &str, binding: &Binding) -> Result<Loaded, Error> {
    let lmsc_mlir::HloStep { mut graph, state, notices } = lmsc_mlir::step(text).map_err(|e| {
        let code = match e {
            lmsc_mlir::HloError::Malformed(_) => Code::Model,
            lmsc_mlir::HloError::Unsupported(_) => Code::Unsupported,
        };
        let excerpt = excerpt(text, e.place().line, e.place().column);
        Error::new(code, format!("{}:{e}\n{excerpt}", called(path)))
    })?;
    let state_is_empty = state.is_empty();
    let stated = Stated { pairs: state, not: Vec::new(), by_name: false };
    let stated = stated_by_call(stated, binding)?;
    let paired = lmsc_onnx::settle(&mut graph, &stated).map_err(|e| Error::of_file(Code::State, path, &e))?;
    check(&graph).map_err(|e| invalid(path, &e))?;
    check_of_text(path, &graph)?;
    let undonated = (state_is_empty && binding.state.is_empty()).then(|| {
        "no argument is donated, so nothing is kept from step to step; donate what is, with jax.jit(step, \
         donate_argnums=(0, 1)), or say with --state INPUT=OUTPUT which outputs are next values"
            .to_owned()
    });
    let notices = notices.into_iter().chain(undonated).chain(paired.iter().map(Notice::to_string));
    let warnings =
        notices.map(|message| Warning::new(Code::Paired, format!("{}: {message}", called(path)))).collect();
    Ok(Loaded { graph, model: None, dims: Dims::none(), edited: false, warnings })
}

/// Checks of a graph from text that were made on import of an ONNX file.
fn check_of_text(path: &Path, graph: &Graph) -> Result<(), Error> {
    for (domain, newest) in lmsc_ir::contract::NEWEST {
        if let Some(found) = graph.opsets.get(*domain).filter(|found| *found > newest) {
            let message = format!(
                "{} states version {found} of \"{domain}\", and lmsc knows versions up to {newest}",
                called(path)
            );
            return Err(Error::new(Code::Unsupported, message)
                .with_help("write the version whose operators the graph has"));
        }
    }
    if let Some(name) = line_end(graph) {
        let message = format!("{}: the name {name:?} has a line end, which no name has", called(path));
        return Err(Error::new(Code::Model, message).with_help("give it a name of one line"));
    }
    lmsc_onnx::shapes::check(graph).map_err(|errors| {
        const SHOWN: usize = 20;
        let shown: Vec<String> = errors.iter().take(SHOWN).map(|e| format!("  {e}")).collect();
        let more = errors.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
        Error::new(Code::Model, format!("{} is not a valid graph:\n{}{more}", called(path), shown.join("\n")))
            .with_help("correct these nodes")
    })
}

/// A name with a line end. Reports and messages have a line for each name, so that such a name could forge one.
fn line_end(graph: &Graph) -> Option<&str> {
    fn of_node<'g>(graph: &'g Graph, node: &'g Node) -> impl Iterator<Item = &'g str> {
        let values =
            node.operands.iter().chain(&node.results).flatten().map(|&value| &*graph.value(value).name);
        [&*node.name, node.op.domain(), node.op.name()].into_iter().chain(values)
    }
    let of_nodes = graph.order().iter().flat_map(|&id| of_node(graph, graph.node(id)));
    let initializers = graph.initializers.iter().map(|initializer| initializer.value);
    let others = graph.inputs.iter().copied().chain(initializers).map(|value| &*graph.value(value).name);
    of_nodes.chain(others).chain([&*graph.name]).find(|name| name.contains('\n'))
}

/// A sentence for each operator of ONNX's own domain that lmsc does not know and that is nearly called like one it knows.
fn misspelt(graph: &Graph) -> Vec<String> {
    let known: Vec<&str> = lmsc_onnx::shapes::operators()
        .into_iter()
        .filter(|(domain, _)| domain.is_empty())
        .map(|it| it.1)
        .collect();
    let mut told = BTreeSet::new();
    let nodes = graph.order().iter().map(|&id| graph.node(id)).filter(|node| node.op.domain().is_empty());
    let unknown =
        nodes.filter(|node| !known.contains(&node.op.name()) && told.insert(node.op.name().to_owned()));
    let sentence = |node: &Node| {
        let nearest = words::nearest(node.op.name(), known.iter().copied())?;
        let (node, op) = (&node.name, node.op.name());
        Some(format!("`{node}`: lmsc knows no operator `{op}` of ONNX; did you mean `{nearest}`?"))
    };
    unknown.filter_map(sentence).collect()
}

/// The error for bytes that are not UTF-8.
fn no_text(path: &Path, error: &FromUtf8Error) -> Error {
    let (bytes, at) = (error.as_bytes(), error.utf8_error().valid_up_to());
    if let Some(Foreign { what, help }) = lmsc_onnx::looks_like(bytes) {
        return Error::new(Code::NotAModel, format!("{} is not text: it looks like {what}", called(path)))
            .with_help(help);
    }
    if Model::from_bytes(bytes.to_vec().into(), "").is_ok() {
        return Error::new(Code::NotAModel, format!("{} is an ONNX model, not text", called(path)))
            .with_help("give it a name that ends in .onnx");
    }
    let line = 1 + bytes[..at].iter().filter(|&&b| b == b'\n').count();
    let column = 1 + bytes[..at].iter().rev().take_while(|&&b| b != b'\n').count();
    let message = format!("{}:{line}:{column}: the byte 0x{:02x} is not UTF-8", called(path), bytes[at]);
    Error::new(Code::Model, message).with_help("save the text as UTF-8")
}

pub(crate) fn onnx(
    path: &Path,
    bytes: Option<bytes::Bytes>,
    binding: &Binding,
    purpose: Purpose,
) -> Result<Loaded, Error> {
    let open = |path: &Path| {
        let model = purpose.open(path).map_err(|e| not_read(&e))?;
        lmsc_onnx::file::check_external_data(&model).map_err(|e| Error::new(Code::Model, e.message()))?;
        Ok::<Model, Error>(model)
    };
    let mut model = match bytes {
        Some(bytes) => Model::from_bytes(bytes, called(path)).map_err(|error| match error {
            FileError::NotAModel { looks_like, .. } => neither(path, looks_like),
            error => not_read(&error),
        })?,
        None => open(path)?,
    };
    if let Some(optimizer) = &binding.optimizer {
        let optimizer = open(optimizer)?;
        model = lmsc_onnx::link(&model, &optimizer).map_err(|e| Error::new(Code::Model, e.message()))?;
    }
    let has_calls = lmsc_onnx::inline_functions(&mut model);
    let gathered = lmsc_onnx::gather(&mut model);
    let half_swaps = lmsc_onnx::drop_half_swaps(&mut model);
    let dims = dims(path, &model, binding)?;
    lmsc_onnx::set_values(&mut model, &binding.values, &dims)
        .map_err(|e| Error::in_file(Code::Values, path, e))?;
    let inlined = lmsc_onnx::inline_decided(&mut model, &dims);
    let imported = match purpose {
        Purpose::Look => lmsc_onnx::look(&model, &dims),
        Purpose::Rewrite | Purpose::Run => lmsc_onnx::import_warned(&model, &dims),
    };
    let imported = imported.map_err(|e| Error::new(code_of(&e), e.message()))?;
    let Imported { mut graph, warnings: faults } = imported;
    let of = |code| move |message: String| Warning::new(code, format!("{}: {message}", called(path)));
    let mut warnings: Vec<Warning> = faults.into_iter().map(of(Code::Fault)).collect();
    let stated = stated(path, &model, binding)?;
    let notices =
        lmsc_onnx::settle(&mut graph, &stated).map_err(|e| Error::of_file(Code::State, path, &e))?;
    warnings.extend(check_without_stale(&mut graph).map_err(|e| invalid(path, &e))?.map(of(Code::Rewritten)));
    warnings.extend(half_swaps.into_iter().map(of(Code::HalfSwaps)));
    // The written file has no known faults, and lists the state and the values that the call sets.
    let edited = gathered
        || has_calls
        || inlined
        || state_option(binding).is_some()
        || !warnings.is_empty()
        || !binding.values.is_empty()
        || binding.optimizer.is_some();
    warnings.extend(notices.iter().map(Notice::to_string).map(of(Code::Paired)));
    Ok(Loaded { graph, model: Some(model), dims, edited, warnings })
}

/// The state that the file and the call declare.
fn stated(path: &Path, model: &Model, binding: &Binding) -> Result<Stated, Error> {
    let stated = Stated::of(model).map_err(|e| Error::of_file(Code::State, path, &e))?;
    stated_by_call(stated, binding)
}

/// The same with the state that the call declares.
fn stated_by_call(mut stated: Stated, binding: &Binding) -> Result<Stated, Error> {
    if binding.state.contains(&StateOption::None) {
        stated = Stated { pairs: Vec::new(), by_name: false, ..stated };
    }
    for arg in &binding.state {
        let pairs = match arg {
            StateOption::None => Vec::new(),
            StateOption::Pair(input, output) => vec![(input.clone(), output.clone())],
            StateOption::File(file) => {
                let text = std::fs::read_to_string(file).map_err(|e| Error::reading(file, &e))?;
                lmsc_onnx::parse_pairs(&text).map_err(|e| Error::in_file(Code::State, file, e))?
            }
        };
        stated.pairs.extend(pairs);
    }
    stated.not.clone_from(&binding.no_state);
    Ok(stated)
}

/// The first option about state, as it was given.
fn state_option(binding: &Binding) -> Option<String> {
    let state = binding.state.first().map(|arg| match arg {
        StateOption::Pair(input, output) => format!("--state {input}={output}"),
        StateOption::File(file) => format!("--state {}", file.display()),
        StateOption::None => "--state none".to_owned(),
    });
    state.or_else(|| binding.no_state.first().map(|name| format!("--no-state {name}")))
}

/// The dimensions of the call, and for the others those for which the file was rewritten.
fn dims(path: &Path, model: &Model, asked: &Binding) -> Result<Dims, Error> {
    let mut dims = Dims::none();
    for (input, extents) in &asked.shapes {
        if let Some(other) = dims.bind_shape(input.clone(), extents.clone()).filter(|other| other != extents)
        {
            let message =
                format!("--shape {input} is given twice, as {other:?} and as {extents:?}; give it once");
            return Err(Error::new(Code::Dimension, message));
        }
    }
    for (name, value) in &asked.dims {
        if let Some(other) = dims.bind(name.clone(), *value).filter(|other| other != value) {
            let message = format!("--dim {name} is given twice, as {other} and as {value}; give it once");
            return Err(Error::new(Code::Dimension, message));
        }
    }
    let has_addresses = model.proto.metadata_props.iter().any(|p| p.key() == key::ADDRESSES);
    let written = Dims::written(model);
    for (input, extents) in written.shapes() {
        match dims.shape(input) {
            None => _ = dims.bind_shape(input, extents.to_vec()),
            Some(other) if has_addresses && other != extents => {
                let problem =
                    format!("its addresses are those for extents {extents:?} of `{input}`, not {other:?}");
                let help = "leave --shape out, or rewrite the original model for these extents";
                return Err(Error::in_file(Code::Dimension, path, problem).with_help(help));
            }
            Some(_) => {}
        }
    }
    for (name, value) in written.iter() {
        match dims.get(name) {
            None => _ = dims.bind(name, value),
            Some(other) if has_addresses && other != value => {
                let problem =
                    format!("its addresses are those for {name}={value}, and --dim {name}={other} is given");
                let help = format!("leave --dim out, or rewrite the original model for {name}={other}");
                return Err(Error::in_file(Code::Dimension, path, problem).with_help(help));
            }
            Some(_) => {}
        }
    }
    Ok(dims)
}

/// The error for bytes in no form that lmsc reads.
fn neither(path: &Path, looks_like: Option<Foreign>) -> Error {
    let message = format!("{} is neither an ONNX model nor a text in lmsc's form", called(path));
    match looks_like.filter(|like| like.what != "text") {
        Some(Foreign { what, help }) => {
            Error::new(Code::NotAModel, format!("{message}: it looks like {what}")).with_help(help)
        }
        None if path == Path::new("-") => {
            Error::new(Code::NotAModel, message).with_help("pipe the .onnx or the .lms file into it")
        }
        None => Error::new(Code::NotAModel, message).with_help("give the bytes of an .onnx or an .lms file"),
    }
}

//! `lmsc opt`: runs single passes.

use std::path::Path;

use lmsc_ir::PrintOptions;
use lmsc_passes::{PassKind, Pipeline};

use crate::cli::args::OptArgs;
use crate::compile::differs;
use crate::context::{machine, pass_cx};
use crate::emit;
use crate::error::note;
use crate::known::passes;
use crate::refusals::smaller;
use crate::write::{FORMS, write};
use crate::{Error, external, load, look};

/// Runs passes on a graph and returns its text. If the call names an output file, the text is empty and the file
/// gets text, MLIR or ONNX, by its name.
///
/// # Errors
/// As [`compile`](super::compile).
pub fn opt(args: &OptArgs) -> Result<String, Error> {
    let (input, binding) = (args.input.path(), &args.input.binding.binding());
    let (planning, look) = (args.plan.planning(), &args.look.look());
    let mut loaded = load::load(input, binding)?;
    if let (Some(model), Some(output)) = (&loaded.model, &args.output) {
        external::check_not_data(model, output)?;
    }
    if let Some(output) = &args.output {
        emit::check_form(output, None, &FORMS)?;
    }
    let passes = look.limited(pipeline(&args.passes)?);
    let machine = machine(&planning.machine)?;
    let cx = pass_cx(&planning, machine, &loaded.graph)?;
    let original = loaded.graph.clone();
    let ran = look::run(&mut loaded.graph, &passes, &cx, look).map_err(|e| smaller(e, binding))?;
    let (proof, proven_in) = look::timed(|| passes.prove(&original, &loaded.graph));
    look::print_times(look, &ran, proven_in);
    proof.map_err(differs)?;
    // A pass that rewrites operators or changes values says what it did, since no check does.
    for (pass, ran) in passes.passes().zip(&ran) {
        if matches!(pass.kind(), PassKind::Operators | PassKind::Precision) {
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

/// The passes of all `-p` options, in order.
fn pipeline(named: &[String]) -> Result<Pipeline<'static>, Error> {
    let known = passes();
    let parsed: Result<Vec<_>, _> = named.iter().map(|text| Pipeline::parse_with(text, &known)).collect();
    Ok(parsed?.into_iter().fold(Pipeline::new(), Pipeline::then))
}

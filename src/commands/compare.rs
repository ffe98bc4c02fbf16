//! `lmsc compare`: from a wrong result to the operator that made it.

use std::path::Path;

use lmsc_ir::{Graph, words};
use lmsc_passes::PassCx;
use serde::Serialize;

use crate::cli::args::CompareArgs;
use crate::context::of_machine;
use crate::files::{check_target, write_atomically};
use crate::run::{
    Comparison, Files, Job, Tensors, Values, Wrong, case, compare as compared, compute_here, inline_small,
    is_planned, predicted_by, values_of, write,
};
use crate::{Code, Error, load};

/// Compares each operator of a step with the host's kernels, and tells the first that differs.
///
/// # Errors
/// [`ErrorKind::Refusal`](crate::ErrorKind) if an operator differs; others as those of a run.
pub fn compare(args: &CompareArgs) -> Result<String, Error> {
    args.case.iter().try_for_each(|file| check_target(file))?;
    let options = args.start.options();
    let device = args.on.device(&options)?;
    let path = args.input.path();
    let recorded = args.with.as_deref().map(recorded).transpose()?;
    let load::Loaded { mut graph, model, .. } = load::load_to_run(path, &args.input.binding.binding())?;
    compute_here(&graph);
    let mut files = Files::new(model.and_then(|model| model.folder));
    inline_small(&mut graph, &mut files)?;
    let cx = of_machine(PassCx { target: predicted_by(device), ..PassCx::default() }, device.precision());
    let is_planned = is_planned(&graph);
    let (planned_for, verbose) = (None, false);
    let job = Job {
        path,
        graph,
        is_planned,
        files,
        mapped: &[],
        cx: &cx,
        options: &options,
        device,
        planned_for,
        engines: None,
        verbose,
    };
    let (graph, of_run) = values_of(job)?;
    let seen = recorded.as_ref().unwrap_or(&of_run);
    let is_result =
        |name: &String| graph.value_named(name).is_some_and(|value| graph.producer(value).is_some());
    if let Some(file) = args.with.as_deref().filter(|_| !seen.keys().any(is_result)) {
        return Err(Error::in_file(Code::Values, file, "it has no result of an operator of this model")
            .with_help(
                "give values by their names in the model, as `lmsc run --fetch all --out FILE` writes them",
            ));
    }
    let comparison = compared(&graph, seen, &of_run, args.on.precision.unwrap_or_default());
    answer(args, &graph, &comparison, [seen, &of_run])
}

/// The tensors of a file.
fn recorded(path: &Path) -> Result<Values, Error> {
    let tensors = Tensors::read(path)?;
    let names: Vec<String> = tensors.types().map(|(name, _)| name.to_owned()).collect();
    names.into_iter().map(|name| Ok((name.clone(), tensors.bytes(&name)?))).collect()
}

/// The answer as JSON.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Compared {
    /// Version of this format.
    format: u32,
    /// Number of operators with the host's results.
    equal: usize,
    left_out: Vec<LeftOut>,
    /// The others, in the order of the graph.
    wrong: Vec<WrongOperator>,
}

/// An operator that is not compared.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct LeftOut {
    node: String,
    why: String,
}

/// An operator whose result differs by more than rounding explains.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct WrongOperator {
    node: String,
    operator: String,
    result: String,
    /// The element that differs most, in row-major order.
    element: usize,
    seen: f64,
    expected: f64,
    /// The difference, in units of the difference that rounding explains.
    times_rounding: f64,
    /// Operands that were not recorded, so that they are those of a run here.
    operands_of_run: Vec<String>,
}

/// The answer as text or JSON; an error if an operator differs.
fn answer(
    args: &CompareArgs,
    graph: &Graph,
    comparison: &Comparison,
    values: [&Values; 2],
) -> Result<String, Error> {
    let Comparison { equal, left_out, wrong } = comparison;
    let operator = |wrong: &Wrong| {
        let node = graph.node(wrong.node);
        WrongOperator {
            node: node.name.to_string(),
            operator: node.op.to_string(),
            result: wrong.result.clone(),
            element: wrong.element,
            seen: wrong.values[0],
            expected: wrong.values[1],
            times_rounding: wrong.times,
            operands_of_run: wrong.of_run.clone(),
        }
    };
    let left = |(node, why): &(String, String)| LeftOut { node: node.clone(), why: why.clone() };
    let compared = Compared {
        format: 1,
        equal: *equal,
        left_out: left_out.iter().map(left).collect(),
        wrong: wrong.iter().map(operator).collect(),
    };
    let json = serde_json::to_string_pretty(&compared).expect("an answer is JSON");
    let counted = format!(
        "{} {} what the host computes from the same operands",
        words::count(*equal, "operator"),
        if *equal == 1 { "computes" } else { "compute" }
    );
    let Some(first) = wrong.first() else {
        if args.json {
            return Ok(json + "\n");
        }
        let reasons = left_out.iter().map(|(node, why)| format!("left out `{node}`: {why}\n"));
        return Ok(format!("{counted}\n{}", reasons.collect::<String>()));
    };
    if let Some(file) = &args.case {
        write_case(file, graph, first, values)?;
    }
    let node = graph.node(first.node);
    let (result, [seen, expected]) = (&first.result, first.values);
    let mut message = format!(
        "`{}` ({}) is the first of {} with other results than the host computes from the same operands: element {} of `{result}` \
         is {seen}, not {expected}",
        node.name,
        node.op,
        words::count(wrong.len(), "operator"),
        first.element
    );
    if first.times.is_finite() {
        message += &format!(", {:.1} times the error that rounding explains", first.times);
    }
    if !first.of_run.is_empty() {
        message += &format!("; the file lacks its operands {}", first.of_run.join(", "));
    }
    let error = Error::new(Code::Different, format!("{message}\n{counted}"));
    let error = match &args.case {
        Some(file) => error.with_help(format!("{} is the operator alone", file.display())),
        None => error.with_help("--case FILE.lms writes the operator alone, with its operands"),
    };
    Err(if args.json { error.with_answer(format!("{json:#}")) } else { error })
}

/// Writes the operator as a graph of its own, and its operands beside it.
fn write_case(file: &Path, graph: &Graph, wrong: &Wrong, [seen, of_run]: [&Values; 2]) -> Result<(), Error> {
    let node = graph.node(wrong.node);
    let found = |value: lmsc_ir::ValueId| {
        let name = &*graph.value(value).name;
        seen.get(name).or_else(|| of_run.get(name)).cloned()
    };
    let operands: Vec<_> = node.operands.iter().map(|operand| operand.and_then(found)).collect();
    let alone = case(graph, node, &operands);
    let text = alone.to_text();
    write_atomically(file, |w| w.write_all(text.as_bytes()))?;
    let types = alone.inputs.iter().filter_map(|&input| {
        let value = alone.value(input);
        Some((value.name.to_string(), value.ty.as_tensor()?.clone()))
    });
    let bytes = |name: &str| {
        let of = |values: &Values| values.get(name).cloned();
        Ok(of(seen).or_else(|| of(of_run)).unwrap_or_default())
    };
    write(&file.with_extension("safetensors"), &types.collect(), None, 1, bytes)
}

//! The main command: `lmsc MODEL`.

use std::io::Write;
use std::path::Path;

use lmsc_passes::TFLMS;

use crate::cli::args::CompileArgs;
use crate::compile::{Caller, Compiled, compile_for};
use crate::files::{PAGES, check_report, check_target, is_page};
use crate::{Code, Error, device, emit, run};

/// Compiles a model: the main command. Prints the model if the output is standard output, and nothing else.
///
/// # Errors
/// [`ErrorKind::Refusal`](crate::ErrorKind) if the budget cannot be met; other kinds as their documentation says.
pub fn compile(args: &CompileArgs, out: &mut dyn Write) -> Result<Compiled, Error> {
    check_call(args)?;
    compile_for(&args.job(), Caller::Command { out, runs: args.run })
}

/// Refuses contradictory options, and output files that cannot be written.
fn check_call(args: &CompileArgs) -> Result<(), Error> {
    let planner = args.plan.search.planner.called().name;
    let nothing_planned = args.plan.planning().plans_nothing();
    if args.save_plan.is_some() && nothing_planned {
        let message = "--save-plan: nothing is planned that could be saved".to_owned();
        return Err(Error::new(Code::Option, message).with_help("give --budget, or leave it out"));
    }
    if args.save_plan.is_some() && planner == TFLMS {
        let message = format!("--save-plan: {TFLMS} rewrites the model itself and makes no plan to save");
        return Err(Error::new(Code::Option, message).with_help(
            "leave it out, or choose another --planner; of `lmsc plan`, the planner of that name has plans to save",
        ));
    }
    // A precision is one of the plan, too.
    let mut given = [args.on.given(), args.options.options().given()].concat();
    given.retain(|option| *option != "--precision");
    if !given.is_empty() && !args.run {
        let message = format!("nothing is run, but how is said: {}", given.join(", "));
        return Err(Error::new(Code::Option, message).with_help("add --run, or leave these out"));
    }
    if args.run && args.output.as_deref() == Some(Path::new("-")) {
        let message = "the model and what a run prints cannot both go to standard output".to_owned();
        return Err(Error::new(Code::Option, message)
            .with_help("write the model to a file, or run it with `lmsc run -`"));
    }
    for output in args.output.iter() {
        emit::check_form(output, args.emit, &["onnx", "lms", "mlir"])?;
    }
    for target in args.output.iter().chain(&args.save_plan).chain(&args.trace_plan) {
        check_target(target)?;
    }
    args.report.iter().try_for_each(|report| check_report(report, &PAGES))?;
    if let Some(page) = args.report.as_deref().filter(|file| is_page(file) && !args.run) {
        let message = format!("{} is to be a page, and nothing is run that it could show", page.display());
        return Err(Error::new(Code::Option, message).with_help(
            "add --run, draw the plan with `lmsc plan MODEL --report FILE.html`, or name a .json file",
        ));
    }
    run::check_targets(&args.options.options(), None)?;
    if args.run {
        device::check(args.on.device(&args.options.options())?)?;
    }
    Ok(())
}

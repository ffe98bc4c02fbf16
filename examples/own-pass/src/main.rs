//! Runs a pass that is not lmsc's on a graph that is read from a file, proves the result, and writes it as ONNX.
//!
//! ```console
//! $ cargo run -- step.lms out.onnx 'widen-again{apart=4}'
//! ```

mod widen_again;

use std::error::Error;
use std::path::Path;

use lmsc::Binding;
use lmsc_passes::{Pass, PassCx, Pipeline, REGISTRY};
use widen_again::WidenAgain;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (model, output, passes) = match &arguments[..] {
        [model, output] => (model, output, "widen-again"),
        [model, output, passes] => (model, output, passes.as_str()),
        _ => return Err("usage: own-pass MODEL OUTPUT [PASSES]".into()),
    };
    print!("{}", run(model.as_ref(), output.as_ref(), passes)?);
    Ok(())
}

/// Reads the model, runs the passes, proves the result, and writes it. Returns a summary.
fn run(model: &Path, output: &Path, passes: &str) -> Result<String, Box<dyn Error>> {
    let binding = Binding::default();
    let mut loaded = lmsc::load(model, &binding)?;
    let before = loaded.graph.clone();

    // Its own pass beside those of lmsc: `widen-again{apart=2},hoist-shapes` is such a pipeline.
    let own = WidenAgain;
    let mut known: Vec<&dyn Pass> = vec![&own];
    known.extend(REGISTRY);
    let pipeline = Pipeline::parse_with(passes, &known)?;

    // The verifier runs after each pass, the equivalence check at the end.
    let cx = PassCx::default();
    let ran = pipeline.run(&mut loaded.graph, &cx)?;
    pipeline.prove(&before, &loaded.graph)?;
    loaded.write(output, &binding)?;

    let mut told: String =
        ran.iter().map(|ran| format!("{}: {}\n", ran.pass, ran.outcome.remarks.join(", "))).collect();
    let (was, is) = (cx.memory(&before).peak(), cx.memory(&loaded.graph).peak());
    told += &format!("peak {was} -> {is}\nwrote {}\n", output.display());
    Ok(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pass_saves_memory_and_is_written_as_onnx() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("out.onnx");
        let step = Path::new(env!("CARGO_MANIFEST_DIR")).join("step.lms");
        let told = run(&step, &output, "widen-again{apart=4}").unwrap();
        assert!(told.starts_with("widen-again: repeated 1 cast\npeak 28 MiB -> 24 MiB\n"), "{told}");
        assert!(output.exists());

        let told = run(&step, &output, "widen-again{apart=100},hoist-shapes").unwrap();
        assert!(told.starts_with("widen-again: \nhoist-shapes: \n"), "{told}");
        let wrong = run(&step, &output, "widen-again{apart=far}").unwrap_err().to_string();
        assert_eq!(wrong, "pass widen-again: option `apart` is `far`; it takes a whole number");
    }
}

//! The work of each target on the bytes of one input: the bodies that `cargo test --test fuzz` runs on inputs of its own.

use libfuzzer_sys::arbitrary;
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use lmsc_onnx::Model;

#[expect(dead_code, reason = "`cargo test --test fuzz` damages inputs with it; libFuzzer does that itself")]
#[path = "../../tests/fuzz/bodies.rs"]
mod bodies;
#[expect(dead_code, reason = "other tests run steps with it, too")]
#[path = "../../tests/support/steps.rs"]
mod steps;

/// ONNX bytes that are planned and then damaged: where the file is said to be equal, it computes the same bits.
pub fn altered(bytes: &[u8]) {
    on_model(bytes, bodies::altered);
}

/// Buffers with their lifetimes: read, placed, written, read again.
pub fn csv(bytes: &[u8]) {
    on_text(bytes, bodies::csv);
}

/// Planning problems: read, and planned where they are small.
pub fn instance(bytes: &[u8]) {
    on_text(bytes, bodies::instance);
}

/// ONNX bytes: read, imported, printed, parsed.
pub fn onnx(bytes: &[u8]) {
    bodies::onnx(bytes);
}

/// ONNX bytes all the way: import, swap, verify, prove, export, import again.
pub fn pipeline(bytes: &[u8]) {
    on_model(bytes, bodies::model);
}

/// Profiles: read, written, read again.
pub fn profile(bytes: &[u8]) {
    on_text(bytes, bodies::profile);
}

/// ONNX bytes that run, as they are and planned.
pub fn run(bytes: &[u8]) {
    on_model(bytes, bodies::run);
}

/// Files of the format safetensors.
pub fn safetensors(bytes: &[u8]) {
    bodies::tensors(bytes);
}

/// Modules of StableHLO: read, settled, printed.
pub fn stablehlo(bytes: &[u8]) {
    on_text(bytes, bodies::stablehlo);
}

/// The text form: parsed, printed, and through the pipeline where it is valid.
pub fn text(bytes: &[u8]) {
    let (bytes, choices) = with_choices(bytes);
    on_text(bytes, |text| bodies::text(text, &mut Unstructured::new(choices)));
}

fn on_text<T>(bytes: &[u8], body: impl FnOnce(&str) -> T) {
    _ = std::str::from_utf8(bytes).map(body);
}

fn on_model<T>(bytes: &[u8], body: impl FnOnce(&Model, &mut Unstructured<'_>) -> Result<T>) {
    let (bytes, choices) = with_choices(bytes);
    if let Ok(model) = Model::from_bytes(bytes.to_vec().into(), "fuzz") {
        _ = body(&model, &mut Unstructured::new(choices));
    }
}

/// The input, and the bytes at its end from which choices are taken.
fn with_choices(bytes: &[u8]) -> (&[u8], &[u8]) {
    bytes.split_at(bytes.len().saturating_sub(64))
}

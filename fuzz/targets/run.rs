//! ONNX bytes that run, as they are and planned. Choices are taken from the end of the input.
#![no_main]

#[allow(dead_code, reason = "each target uses a part")]
#[path = "../../tests/fuzz/bodies.rs"]
mod bodies;
#[allow(dead_code, reason = "each target uses a part")]
#[path = "../../tests/support/steps.rs"]
mod steps;

use libfuzzer_sys::{arbitrary, fuzz_target};

fuzz_target!(|bytes: &[u8]| {
    let (bytes, choices) = bytes.split_at(bytes.len().saturating_sub(64));
    if let Ok(model) = lmsc_onnx::Model::from_bytes(bytes.to_vec().into(), "fuzz") {
        _ = bodies::run(&model, &mut arbitrary::Unstructured::new(choices));
    }
});

//! ONNX bytes: read, import, print, parse.
#![no_main]

#[allow(dead_code, reason = "each target uses a part")]
#[path = "../../tests/fuzz/bodies.rs"]
mod bodies;
#[allow(dead_code, reason = "each target uses a part")]
#[path = "../../tests/support/steps.rs"]
mod steps;

use libfuzzer_sys::{arbitrary, fuzz_target};

fuzz_target!(|bytes: &[u8]| {
    bodies::onnx(bytes);
});

//! ONNX bytes: read, import, print, parse.
#![no_main]

#[allow(dead_code, reason = "each target uses a part")]
#[path = "../../tests/fuzz/bodies.rs"]
mod bodies;

use libfuzzer_sys::{arbitrary, fuzz_target};

fuzz_target!(|bytes: &[u8]| {
    bodies::onnx(bytes);
});

//! The text form: parse, print, and the pipeline on what is valid. Choices are taken from the end of the input.
#![no_main]

#[allow(dead_code, reason = "each target uses a part")]
#[path = "../../tests/fuzz/bodies.rs"]
mod bodies;
#[allow(dead_code, reason = "each target uses a part")]
#[path = "../../tests/support/steps.rs"]
mod steps;

use libfuzzer_sys::{arbitrary, fuzz_target};

fuzz_target!(|bytes: &[u8]| {
    let (text, choices) = bytes.split_at(bytes.len().saturating_sub(64));
    if let Ok(text) = std::str::from_utf8(text) {
        _ = bodies::text(text, &mut arbitrary::Unstructured::new(choices));
    }
});

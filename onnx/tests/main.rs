//! Tests of reading and writing ONNX: one program, since each of its own would be linked with everything below it.

#[path = "../../tests/support/clock.rs"]
mod clock;
mod external;
mod hostile;
mod import;
mod lossless;
mod models;
mod onnx_cases;
mod ranges;
mod updates;

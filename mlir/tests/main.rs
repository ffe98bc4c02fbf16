//! Tests of reading and writing MLIR: one program, since each of its own would be linked with everything below it.

mod cases;
#[path = "../../tests/support/clock.rs"]
mod clock;
mod hlo;
mod reading;
mod stablehlo;

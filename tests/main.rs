//! Tests of the library and of the command: one program, since each of its own would be linked with everything below it.

mod bad_input;
mod bitwise;
mod clean_up;
mod cli;
mod contracts;
mod costs;
mod defaults;
mod expand;
mod kernels;
mod learning;
mod library;
mod mixed_precision;
mod mlir;
mod mutations;
mod offsets;
mod passes;
mod plan;
mod plans;
mod profiles;
mod reduce;
mod run;
mod saved_plans;
mod state;
mod stochastic_depth;
mod suite;
mod support;

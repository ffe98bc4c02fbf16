//! Tests of the passes on random graphs: one program, since each of its own would be linked with everything below it.

mod lower;
mod plans;

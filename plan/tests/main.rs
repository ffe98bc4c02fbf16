//! Tests of planning on instances and random problems: one program, since each of its own would be linked with everything below it.

mod addresses;
mod bounds;
mod memory;
mod replay;

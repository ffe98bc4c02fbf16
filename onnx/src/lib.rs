//! Placeholder.

pub mod file;
pub mod proto;
pub mod wire;

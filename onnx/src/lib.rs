//! ONNX bytes to and from the graph of `lmsc`.

pub mod file;
pub mod import;
pub mod proto;
pub mod shapes;
pub mod wire;

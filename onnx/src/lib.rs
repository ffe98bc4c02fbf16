//! ONNX bytes to and from the graph of `lmsc`.

pub mod shapes;

//! The domains of the operators that lmsc knows.

/// ONNX's own operators.
pub const ONNX: &str = "";
/// Operators of ONNX Runtime, among them the gradients of its training.
pub const MS: &str = "com.microsoft";
/// ONNX's optimizers.
pub const PREVIEW: &str = "ai.onnx.preview.training";
/// Operators that lmsc defines.
pub const LMSC: &str = "ai.lmsc";

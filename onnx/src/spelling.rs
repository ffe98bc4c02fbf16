//! Names of domains and operators: ONNX's own domain has two names.

use crate::proto::NodeProto;

/// The domain, of whose two names ONNX's own has the empty one here.
pub(crate) fn spelled(domain: &str) -> &str {
    if domain == "ai.onnx" { "" } else { domain }
}

/// The domain of the node's operator.
pub(crate) fn domain(node: &NodeProto) -> &str {
    spelled(node.domain())
}

/// The operator's name, with its domain unless that is ONNX's own.
pub(crate) fn op_name(node: &NodeProto) -> String {
    match domain(node) {
        "" => node.op_type().to_owned(),
        domain => format!("{domain}.{}", node.op_type()),
    }
}

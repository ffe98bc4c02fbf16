//! ONNX bytes to and from the graph of `lmsc`.

mod export;
pub mod file;
mod link;
pub mod proto;
mod survival;
mod variables;
pub mod wire;

pub use export::{ExportError, Form, export};
pub use file::Model;
pub use link::{LinkError, link};
pub use lmsc_ir::LMSC_DOMAIN;
pub use survival::{Survival, survival};
pub use variables::{StateError, settle, state_pairs};

use export::onnx_type as data_type;
use proto::{ModelProto, OperatorSetIdProto};

/// The first IR version with model-local functions.
const IR_WITH_FUNCTIONS: i64 = 8;

/// The first IR version with metadata on nodes.
const IR_WITH_NODE_METADATA: i64 = 10;

/// Makes the model import an operator set, unless it imports one of the domain.
fn import_opset(model: &mut ModelProto, domain: &str, version: i64) {
    if !model.opset_import.iter().any(|o| o.domain.as_deref().unwrap_or_default() == domain) {
        model
            .opset_import
            .push(OperatorSetIdProto { domain: Some(domain.to_owned()), version: Some(version) });
    }
}

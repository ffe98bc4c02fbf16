//! ONNX bytes to and from the graph of `lmsc`.
//!
//! [`Model`] is a file, mapped: weights are ranges of it and are never copied. [`import`](import()) makes a graph of it, with the
//! given sizes of symbolic dimensions and with the type of every result inferred by rules of this crate; an unknown field, attribute
//! or operator is an error that names it. [`export`](export()) writes a graph back as changes of the model that was read: nodes and
//! tensors that no pass has changed keep their bytes.

mod addresses;
mod aside;
mod calls;
mod constants;
mod copy;
mod export;
pub mod file;
mod foreign;
mod functions;
mod halves;
pub mod import;
mod inline;
mod kept;
mod link;
mod new_names;
pub mod proto;
pub mod shapes;
mod spelling;
mod state;
mod survival;
mod update;
mod values;
pub mod wire;

pub use calls::{call_of_function, inline_functions};
pub use export::{ExportError, export};
pub use file::Model;
pub use foreign::{Foreign, looks_like};
pub use functions::{SwapForm, other_function};
pub use halves::drop_half_swaps;
pub use import::{Dims, ImportErrors, Imported, import, import_warned, initializers, look, symbolic};
pub use inline::inline_decided;
pub use link::{LinkError, link};
pub use lmsc_ir::LMSC_DOMAIN;
pub use state::{Carried, How, Notice, StateError, Stated, carried, parse_pairs, settle};
pub use survival::{Survival, survival};
pub use values::{ValueError, fixed_values, set_values};

use proto::{ModelProto, OperatorSetIdProto, StringStringEntryProto};

/// Keys of the metadata for facts that ONNX cannot express.
pub mod key {
    /// On a node: names of nodes after whose completion it starts, as a JSON array.
    pub const AFTER: &str = "ai.lmsc.after";
    /// On a node: the name of the node that it recomputes.
    pub const RECOMPUTES: &str = "ai.lmsc.recomputes";
    /// On a node that may draw random numbers: its seed, a decimal number of 64 bits. It does not depend on the node's name.
    pub const SEED: &str = "ai.lmsc.seed";
    /// On a node of any operator: that it is a copy, `swap_out`, `swap_in`, or `copy` within the device.
    pub const KIND: &str = "ai.lmsc.kind";
    /// On a node: which of its results are new values of which variables, as a JSON array of pairs of a result's index and a
    /// variable's name, if they follow neither from the operator nor from an output with the variable's name.
    pub const UPDATES: &str = "ai.lmsc.updates";
    /// On an optimizer's node: that it updates one variable, and the operator of ours that it represents.
    pub const UPDATE: &str = "ai.lmsc.update";
    /// On a recomputed node: that the operands that it writes aside are scratch memory without readers.
    pub const ASIDE: &str = "ai.lmsc.aside";
    /// On a copy of a variable: that an operator overwrites it in place of the variable: `copy` where the variable has its new value
    /// later, `apart` where it stays as it is.
    pub const KEPT: &str = "ai.lmsc.kept";
    /// On a node, only while a file is read: that it leaves the operands as they are that its operator overwrites.
    pub(crate) const APART: &str = "ai.lmsc.apart";
    /// On the model: the inputs that are kept from step to step and the outputs that are their next values, all of them, as
    /// a JSON array of pairs.
    pub const STATE: &str = "ai.lmsc.state";
    /// On the model: the values of symbolic dimensions for which it was rewritten, as a JSON object.
    pub const DIMS: &str = "ai.lmsc.dims";
    /// On the model: the extents of inputs for which it was rewritten, as a JSON object of lists.
    pub const SHAPES: &str = "ai.lmsc.shapes";
    /// On the model: the values of inputs for which it was rewritten, as a JSON object of texts.
    pub const VALUES: &str = "ai.lmsc.values";
    /// On the model: the addresses in the arena of all values, as JSON.
    pub const ADDRESSES: &str = "ai.lmsc.addresses";
    /// On the model: the device memory in bytes that the step needs, in any timing of its nodes.
    pub const PEAK: &str = "ai.lmsc.peak";
    /// On the model: the device memory in bytes that the step may use.
    pub const BUDGET: &str = "ai.lmsc.budget";
    /// On the model: the size of a page in bytes, if the budget is met by memory mapped in pages.
    pub const PAGES: &str = "ai.lmsc.pages";
    /// On the model: the version of cuDNN and the engines by node for which it was planned, as JSON.
    pub const ENGINES: &str = "ai.lmsc.engines";
    /// On the model: the name of the target for which it was planned.
    pub const TARGET: &str = "ai.lmsc.target";
    /// On the model: the workspaces of nodes in bytes, if they have no addresses, as a JSON object by the names of their first
    /// results.
    pub const WORKSPACES: &str = "ai.lmsc.workspaces";
    /// On the model: a hash of its plan.
    pub const HASH: &str = "ai.lmsc.hash";
    /// On the model: the settings of ONNX Runtime under which it executes the plan.
    pub const ORT: &str = "ai.lmsc.ort";
    /// Entries that describe one plan: a new plan does not inherit them.
    pub(crate) const OF_PLAN: [&str; 7] = [PEAK, BUDGET, PAGES, TARGET, WORKSPACES, HASH, ORT];
    /// On a node, of ONNX Runtime: the layer that it is assigned to.
    pub const LAYER: &str = "layer_ann";
}

/// Undoes the forms that a file has for other runtimes: updates of single variables, scratch operands of recomputed nodes, and
/// copies for updates to overwrite; and makes initializers of weights in `Constant` nodes. Returns whether there were any.
pub fn gather(model: &mut Model) -> bool {
    let constants = constants::gather(model);
    let updates = update::gather(model) || constants;
    let Some(graph) = &mut model.proto.graph else { return updates };
    let aside = aside::gather(graph);
    let kept = kept::gather(graph);
    updates || aside || kept
}

/// The entries of the model's metadata that describe the plan of the file.
pub fn of_plan(model: &Model) -> impl Iterator<Item = (String, String)> + '_ {
    let entries = model.proto.metadata_props.iter().filter(|entry| key::OF_PLAN.contains(&entry.key()));
    entries.map(|entry| (entry.key().to_owned(), entry.value().to_owned()))
}

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

/// The value of an entry.
fn metadata_of<'m>(props: &'m [StringStringEntryProto], key: &str) -> Option<&'m str> {
    props.iter().find(|entry| entry.key() == key).map(|entry| entry.value())
}

/// Adds, changes or removes an entry; of several with the key the first one is kept, if any.
fn set_metadata(props: &mut Vec<StringStringEntryProto>, key: &str, value: Option<String>) {
    let at = props.iter().position(|p| p.key.as_deref() == Some(key));
    let mut index = 0;
    props.retain(|p| {
        index += 1;
        p.key.as_deref() != Some(key) || value.is_some() && Some(index - 1) == at
    });
    match (at, value) {
        (Some(at), value @ Some(_)) => props[at].value = value,
        (None, value @ Some(_)) => props.push(StringStringEntryProto { key: Some(key.to_owned()), value }),
        (_, None) => {}
    }
}

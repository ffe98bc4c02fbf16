//! Operands that recomputed nodes write aside ([`lmsc_ir::ops::aside`]): in a graph, none; in a file, scratch memory without
//! readers.
//!
//! ONNX Runtime's kernels of batch normalization write the running statistics over operands, whether or not the results are used.
//! A recomputed node must not overwrite the variables, so it gets zeros of its own to write over.

use std::collections::{BTreeMap, HashSet};

use lmsc_ir::{Graph, NodeId, Op, TensorType, ops};

use crate::new_names::NewNames;
use crate::proto::{GraphProto, NodeProto, TensorProto};
use crate::shapes::data_type;
use crate::{key, set_metadata};

/// The zeros that the nodes of a file write over: nodes share those of one type.
#[derive(Default)]
pub(crate) struct Scratch {
    /// By a key that distinguishes them, the name and the type.
    tensors: BTreeMap<String, (String, TensorType)>,
}

impl Scratch {
    /// Gives the recomputed node scratch operands.
    pub(crate) fn spell_out(
        &mut self,
        graph: &Graph,
        id: NodeId,
        proto: &mut NodeProto,
        names: &mut NewNames<'_>,
    ) {
        let node = graph.node(id);
        let Some(origin) = node.recomputes.filter(|_| ops::is_pure(node)) else { return };
        for (index, &(operand, result)) in ops::aside(node).into_iter().flatten().enumerate() {
            let written = graph.node(origin).operands.get(operand).copied().flatten();
            let Some(ty) = written.and_then(|value| graph.value(value).ty.as_tensor()) else { return };
            let base = format!("ai.lmsc.scratch.{index}.{ty}");
            let (name, _) =
                self.tensors.entry(base).or_insert_with_key(|base| (names.value(base), ty.clone()));
            put(&mut proto.input, operand, name.clone());
            put(&mut proto.output, result, names.value(&format!("{}.aside.{index}", node.name)));
            set_metadata(&mut proto.metadata_props, key::ASIDE, Some("scratch".to_owned()));
        }
    }

    /// The zeros themselves.
    pub(crate) fn initializers(self) -> impl Iterator<Item = TensorProto> {
        self.tensors.into_values().map(|(name, ty)| TensorProto {
            name: Some(name),
            dims: ty.dims.iter().map(|&dim| dim as i64).collect(),
            data_type: Some(data_type(ty.element)),
            raw_data: Some(vec![0; ty.byte_size().map_or(0, |bytes| bytes.0 as usize)].into()),
            ..TensorProto::default()
        })
    }
}

fn put(names: &mut Vec<String>, index: usize, name: String) {
    if names.len() <= index {
        names.resize(index + 1, String::new());
    }
    names[index] = name;
}

/// Removes the scratch operands of recomputed nodes again; returns whether there were any.
///
/// If something reads them after all, the node stays as it is, and is read literally.
pub(crate) fn gather(graph: &mut GraphProto) -> bool {
    let is_ours = |n: &NodeProto| n.metadata_props.iter().any(|p| p.key() == key::ASIDE);
    if !graph.node.iter().any(is_ours) {
        return false;
    }
    let reads = |graph: &GraphProto| -> HashSet<String> {
        let inputs = graph.node.iter().flat_map(|n| n.input.iter().cloned());
        inputs.chain(graph.output.iter().map(|output| output.name().to_owned())).collect()
    };
    let read = reads(graph);
    let mut scratch = HashSet::new();
    for node in graph.node.iter_mut().filter(|n| is_ours(n)) {
        let op = Op::new(node.domain(), node.op_type());
        let effects = op.effects();
        let results = effects.writes.iter().filter_map(|&(_, result)| node.output.get(result));
        if !effects.aside || results.into_iter().any(|name| read.contains(name)) {
            continue;
        }
        for &(operand, result) in effects.writes {
            scratch.extend(node.input.get_mut(operand).map(std::mem::take));
            node.output.get_mut(result).map(std::mem::take);
        }
        set_metadata(&mut node.metadata_props, key::ASIDE, None);
    }
    let still = reads(graph);
    graph.initializer.retain(|tensor| !scratch.contains(tensor.name()) || still.contains(tensor.name()));
    !scratch.is_empty()
}

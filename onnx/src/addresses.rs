//! The addresses in the arena: one entry of the model's metadata, as JSON.
//!
//! `{"values": {"h": 4096, …}, "workspaces": {"n1": [8192, 512], …}}`: offsets of values, by name, in bytes from the begin of the
//! arena; and the offset and size of the workspaces of nodes. Views have no entries: they are at the addresses of the viewed
//! values.

use lmsc_ir::{Bytes, Graph, Place, Workspace};
use serde_json::{Map, Value};

/// The entry, if anything in the graph has an address.
pub(crate) fn entry(graph: &Graph) -> Option<String> {
    let mut values = Map::new();
    for (_, value) in graph.values() {
        if let Place::DeviceAt(address) = value.place {
            values.insert(value.name.to_string(), address.into());
        }
    }
    let mut workspaces = Map::new();
    for &id in graph.order() {
        if let Some(Workspace { address, bytes }) = graph.node(id).workspace {
            workspaces.insert(graph.node(id).name.to_string(), vec![address, bytes.0].into());
        }
    }
    let any = !values.is_empty() || !workspaces.is_empty();
    any.then(|| serde_json::json!({ "values": values, "workspaces": workspaces }).to_string())
}

/// Sets the addresses of the entry in the graph.
///
/// # Errors
/// The error in the entry, in words.
pub(crate) fn read(entry: &str, graph: &mut Graph) -> Result<(), String> {
    let entry: Value = serde_json::from_str(entry).map_err(|e| format!("it is no JSON: {e}"))?;
    let part = |name: &str| match entry.get(name) {
        Some(Value::Object(part)) => Ok(part),
        _ => Err(format!("it has no object `{name}`")),
    };
    for (name, address) in part("values")? {
        let value = graph.value_named(name).ok_or_else(|| format!("there is no value `{name}`"))?;
        let address = address.as_u64().ok_or_else(|| format!("the address of `{name}` is no offset"))?;
        if graph.value(value).place.is_host() {
            return Err(format!("`{name}` is on the host and has an address on the device"));
        }
        graph.set_place(value, Place::DeviceAt(address));
    }
    for (name, workspace) in part("workspaces")? {
        let node = graph.node_named(name).ok_or_else(|| format!("there is no node `{name}`"))?;
        let numbers = workspace.as_array().map(|list| list.iter().filter_map(Value::as_u64));
        match numbers.map(Iterator::collect::<Vec<_>>).as_deref() {
            Some(&[address, bytes]) => {
                graph.set_workspace(node, Workspace { address, bytes: Bytes(bytes) });
            }
            _ => return Err(format!("the workspace of `{name}` is no offset and size")),
        }
    }
    Ok(())
}

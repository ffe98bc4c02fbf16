//! Tensors by name in files: parameters, state and batches.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Write;
use std::path::Path;

use lmsc_ir::{Data, ElementType, TensorType, Type, words};
use lmsc_onnx::Dims;
use safetensors::tensor::{Dtype, Metadata, SafeTensors, TensorView};

use crate::Error;

/// A tensor and its bytes.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub(super) ty: TensorType,
    pub(super) bytes: Vec<u8>,
}

/// What a file holds.
pub(super) struct Tensors {
    pub(super) by_name: BTreeMap<String, Stored>,
    /// What it says besides, if it was saved by `lmsc`: how many steps were run, with which seed.
    pub(super) state: Option<(u64, u64)>,
}

/// The key of what a file says besides.
const STATE: &str = "lmsc";

const TYPES: [(Dtype, ElementType); 13] = [
    (Dtype::F32, ElementType::Float),
    (Dtype::F64, ElementType::Double),
    (Dtype::F16, ElementType::Float16),
    (Dtype::BF16, ElementType::Bfloat16),
    (Dtype::I8, ElementType::Int8),
    (Dtype::I16, ElementType::Int16),
    (Dtype::I32, ElementType::Int32),
    (Dtype::I64, ElementType::Int64),
    (Dtype::U8, ElementType::Uint8),
    (Dtype::U16, ElementType::Uint16),
    (Dtype::U32, ElementType::Uint32),
    (Dtype::U64, ElementType::Uint64),
    (Dtype::BOOL, ElementType::Bool),
];

impl Tensors {
    /// What the safetensors file at the path holds.
    pub(super) fn read(path: &Path) -> Result<Tensors, Error> {
        Tensors::of_bytes(&std::fs::read(path).map_err(|e| Error::reading(path, &e))?, path)
    }

    /// What these bytes, of a safetensors file at the path, hold.
    pub(super) fn of_bytes(bytes: &[u8], path: &Path) -> Result<Tensors, Error> {
        let wrong = |e: &dyn std::fmt::Display| {
            Error::in_file(path, format!("no file of the format safetensors: {e}"))
        };
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(|e| wrong(&e))?;
        let file = SafeTensors::deserialize(bytes).map_err(|e| wrong(&e))?;
        let mut by_name = BTreeMap::new();
        for (name, view) in file.tensors() {
            let Some((_, element)) = TYPES.iter().find(|(dtype, _)| *dtype == view.dtype()) else {
                let message =
                    format!("`{name}` has elements of {:?}, which ONNX does not have", view.dtype());
                return Err(Error::in_file(path, message));
            };
            let dims: Vec<u64> = view.shape().iter().map(|&dim| dim as u64).collect();
            let ty = TensorType::new(*element, dims);
            by_name.insert(name, Stored { ty, bytes: view.data().to_vec() });
        }
        Ok(Tensors { by_name, state: state(&header) })
    }

    /// The initializers of the ONNX model at the path.
    pub(super) fn of_model(path: &Path, dims: &Dims) -> Result<Tensors, Error> {
        let model = lmsc_onnx::Model::open(path).map_err(|e| Error::Input(e.to_string()))?;
        let mut graph = lmsc_onnx::import(&model, dims).map_err(|e| Error::Input(e.to_string()))?;
        inline(&mut graph, model.folder.as_deref())?;
        let mut by_name = BTreeMap::new();
        for initializer in &graph.initializers {
            let value = graph.value(initializer.value);
            if let (Type::Tensor(ty), Data::Inline(bytes)) = (&value.ty, &initializer.data) {
                by_name.insert(value.name.to_string(), Stored { ty: ty.clone(), bytes: bytes.to_vec() });
            }
        }
        Ok(Tensors { by_name, state: None })
    }

    /// Writes the tensors, and what is said besides, into the file: whole or not at all.
    pub(super) fn write(
        path: &Path,
        tensors: &BTreeMap<String, Stored>,
        state: Option<(u64, u64)>,
    ) -> Result<(), Error> {
        let mut views = Vec::with_capacity(tensors.len());
        for (name, stored) in tensors {
            let dtype =
                TYPES.iter().find(|(_, element)| *element == stored.ty.element).map(|(dtype, _)| *dtype);
            let shape = stored.ty.dims.iter().map(|&dim| dim as usize).collect();
            let view = dtype.and_then(|dtype| TensorView::new(dtype, shape, &stored.bytes).ok());
            let Some(view) = view else {
                let message =
                    format!("`{name}` is {}, which the format safetensors does not have", stored.ty);
                return Err(Error::in_file(path, message));
            };
            views.push((name, view));
        }
        let says = state.map(|(steps, seed)| {
            HashMap::from([(
                STATE.to_owned(),
                serde_json::json!({ "steps": steps, "seed": seed }).to_string(),
            )])
        });
        let bytes = safetensors::serialize(views, says).map_err(|e| Error::in_file(path, e))?;
        let write = |file: &mut File| {
            file.write_all(&bytes)?;
            // Before it takes the place of another file, and hours of training with it, it is on the disk.
            if file.metadata()?.is_file() { file.sync_all() } else { Ok(()) }
        };
        lmsc_onnx::file::write_whole(path, write).map_err(|e| Error::writing(path, &e))
    }
}

fn state(header: &Metadata) -> Option<(u64, u64)> {
    let text = header.metadata().as_ref()?.get(STATE)?;
    let state: serde_json::Value = serde_json::from_str(text).ok()?;
    Some((state["steps"].as_u64()?, state["seed"].as_u64()?))
}

/// Brings the bytes of initializers that lie in files beside the model into the graph.
pub(super) fn inline(graph: &mut lmsc_ir::Graph, folder: Option<&Path>) -> Result<(), Error> {
    for index in 0..graph.initializers.len() {
        let name = graph.value(graph.initializers[index].value).name.clone();
        match &graph.initializers[index].data {
            Data::Inline(_) => {}
            Data::Digest { .. } => {
                let message = format!("the text has no bytes of the initializer `{name}`");
                return Err(Error::Input(message).with_help("run the .onnx file"));
            }
            Data::External { location, offset, length } => {
                let path = folder.unwrap_or(Path::new(".")).join(location);
                let bytes = lmsc_onnx::file::map(&path).map_err(|e| Error::reading(&path, &e))?;
                let end = offset.checked_add(*length).filter(|&end| end <= bytes.len() as u64);
                let Some(end) = end else {
                    return Err(Error::in_file(&path, format!("it ends before the bytes of `{name}`")));
                };
                let bytes = bytes.slice(*offset as usize..end as usize);
                graph.initializers[index].data = Data::Inline(bytes);
            }
        }
    }
    Ok(())
}

/// What is wrong with tensors for values of these names and types, all of it; nothing if they fit.
///
/// With `batches`, a tensor may have one more dimension in front.
pub(super) fn mismatches(
    tensors: &BTreeMap<String, Stored>,
    expected: &BTreeMap<String, Type>,
    many: &str,
    batches: bool,
) -> Vec<String> {
    let fits = |stored: &TensorType, ty: &TensorType| {
        let more = batches && stored.dims.len() == ty.dims.len() + 1 && stored.dims[1..] == ty.dims;
        stored.element == ty.element && (stored.dims == ty.dims || more && stored.dims[0] > 0)
    };
    let wrong = |(name, stored): (&String, &Stored)| match expected.get(name) {
        None => {
            let names = expected.keys().map(|name| &**name);
            Some(format!("there is no `{name}`; {}", words::instead(name, names, many)))
        }
        Some(Type::Tensor(ty)) if fits(&stored.ty, ty) => None,
        Some(ty) => Some(format!("`{name}` is {}; expected {ty}", stored.ty)),
    };
    tensors.iter().filter_map(wrong).collect()
}

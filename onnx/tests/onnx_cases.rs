//! ONNX's own test cases, one operator each: the inferred types are those of the case's data.
//!
//! The cases are part of the `onnx` Python package up to 1.16 (`onnx/backend/test/data/node`), and are made by
//! `python -m onnx.backend.test.cmd_tools generate-data` later. `LMSC_ONNX_CASES` names the folder; without it
//! there is nothing to test here.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use lmsc_ir::{Data, TensorType, Type};
use lmsc_onnx::file::Model;
use lmsc_onnx::import::{Dims, ImportError, import};
use lmsc_onnx::proto::{Dimension, TensorProto, TensorShapeProto, TypeValue};
use lmsc_onnx::shapes::{Const, ShapeError, constants, element_type};
use prost::Message;

fn tensor(path: &Path) -> Option<TensorProto> {
    TensorProto::decode(Bytes::from(std::fs::read(path).ok()?)).ok().filter(|t| t.data_type.is_some())
}

fn type_of(tensor: &TensorProto) -> Option<TensorType> {
    let dims: Option<Vec<u64>> = tensor.dims.iter().map(|&d| u64::try_from(d).ok()).collect();
    Some(TensorType::new(element_type(tensor.data_type().into())?, dims?))
}

#[test]
fn inference_agrees_with_the_data() {
    let Some(root) = std::env::var_os("LMSC_ONNX_CASES").map(PathBuf::from) else { return };
    let (mut right, mut unknown, mut folded) = (0, Vec::new(), 0);
    let mut faults = Vec::new();
    let mut cases: Vec<PathBuf> = std::fs::read_dir(root).unwrap().map(|e| e.unwrap().path()).collect();
    cases.sort();
    for case in cases {
        let Ok(mut model) = Model::open(case.join("model.onnx")) else { continue };
        let name = case.file_name().unwrap().to_str().unwrap().to_owned();
        let graph = model.proto.graph.as_mut().unwrap();
        // Inputs are as they are fed; those that are small are constants.
        let mut constant_inputs = Vec::new();
        for (i, input) in graph.input.iter_mut().enumerate() {
            let Some(mut fed) = tensor(&case.join(format!("test_data_set_0/input_{i}.pb"))) else { continue };
            fed.name = input.name.clone();
            let said = input.r#type.as_ref().and_then(|t| t.tensor_type.as_ref()).and_then(|t| t.elem_type);
            // A sequence reads as some tensor; and old cases hold bfloat16 as uint16.
            if said != fed.data_type {
                continue;
            }
            if let Some(TypeValue::Tensor(_)) = input.r#type.as_ref().and_then(|t| t.value()) {
                let ty = input.r#type.as_mut().unwrap().tensor_type.as_mut().unwrap();
                let dim = |&d: &i64| Dimension { dim_value: Some(d), ..Dimension::default() };
                ty.shape = Some(TensorShapeProto { dim: fed.dims.iter().map(dim).collect() });
            }
            if type_of(&fed).is_some_and(|t| Const::may_be(&t)) {
                constant_inputs.push(fed);
            }
        }
        graph.initializer.extend(constant_inputs);
        graph.value_info.clear();
        let said: Vec<Option<i32>> = graph
            .output
            .iter()
            .map(|o| o.r#type.as_ref().and_then(|t| t.tensor_type.as_ref()).and_then(|t| t.elem_type))
            .collect();
        graph.output.iter_mut().for_each(|o| o.r#type = None);
        let graph = match import(&model, &Dims::none()) {
            Ok(graph) => graph,
            Err(errors) => {
                let told = errors.errors.iter().all(|e| {
                    matches!(e, ImportError::Shape(ShapeError::Unknown { .. }) | ImportError::Input { .. })
                });
                if told {
                    unknown.push(name)
                } else {
                    faults.push(format!("{name}: {errors}"))
                }
                continue;
            }
        };
        let constants = constants(&graph);
        for (i, &output) in graph.outputs.iter().enumerate() {
            let Some(seen) = tensor(&case.join(format!("test_data_set_0/output_{i}.pb"))) else { continue };
            let Some(seen_type) = type_of(&seen).filter(|_| said[i] == seen.data_type) else { continue };
            match &graph.value(output).ty {
                Type::Tensor(ty) if *ty == seen_type => right += 1,
                ty => faults.push(format!("{name}: output {i} is {ty}, but {seen_type} in the data")),
            }
            let bytes = seen.raw_data.clone().unwrap_or_default();
            let (ours, truth) =
                (&constants[output.as_u32() as usize], Const::decode(&seen_type, &Data::Inline(bytes)));
            match (ours, truth) {
                (Some(Const::Ints(a)), Some(Const::Ints(b))) if a != &b => {
                    faults.push(format!("{name}: output {i} holds {a:?}, but {b:?} in the data"));
                }
                (Some(Const::Floats(a)), Some(Const::Floats(b)))
                    if !a.iter().zip(b.iter()).all(|(a, b)| {
                        (a - b).abs() <= 1e-5 * b.abs() || (a.is_nan() && b.is_nan()) || a == b
                    }) =>
                {
                    faults.push(format!("{name}: output {i} holds {a:?}, but {b:?} in the data"));
                }
                (Some(_), Some(_)) => folded += 1,
                _ => {}
            }
        }
    }
    println!("{right} types right, {folded} of them constant; {} not told: {unknown:?}", unknown.len());
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

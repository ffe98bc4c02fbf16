//! Reading and writing again gives the same bytes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use lmsc_onnx::file::{Model, encode_to, save};
use lmsc_onnx::proto::*;
use lmsc_onnx::wire::{self, Described, FieldKind, Label, Schema};
use prost::Message;

const EVERY_FIELD: &[u8] = include_bytes!("data/every_field.onnx");

fn encode(proto: &ModelProto) -> Vec<u8> {
    let mut out = Vec::new();
    encode_to(proto, &mut out).unwrap();
    out
}

fn onnx_files(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            onnx_files(&path, found);
        } else if path.extension().is_some_and(|e| e == "onnx") {
            found.push(path);
        }
    }
}

/// Every model in `testdata/models`, and in the folder that `LMSC_CORPUS` names if it is set.
#[test]
fn every_model_of_the_corpus_is_written_back_byte_for_byte() {
    let mut files = Vec::new();
    onnx_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/models"), &mut files);
    if let Some(corpus) = std::env::var_os("LMSC_CORPUS") {
        let before = files.len();
        onnx_files(Path::new(&corpus), &mut files);
        assert!(files.len() > before, "no .onnx file in {}", corpus.display());
    }
    files.sort();
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.onnx");
    for path in &files {
        let model = Model::open(path).unwrap_or_else(|e| panic!("{e}"));
        let bytes = fs::read(path).unwrap();
        assert!(encode(&model.proto) == bytes, "{}: encoded bytes differ", path.display());
        save(&model.proto, &copy).unwrap();
        assert!(fs::read(&copy).unwrap() == bytes, "{}: saved bytes differ", path.display());
    }
}

#[test]
fn every_field_of_every_message_is_written_back_byte_for_byte() {
    let model = Model::from_bytes(EVERY_FIELD.into(), "every_field.onnx").unwrap();
    assert!(encode(&model.proto) == EVERY_FIELD);
    assert!(model.proto.encode_to_vec() == EVERY_FIELD);
}

/// The file was made by the reference implementation from its own tables and holds names as text, so this compares
/// names, numbers and wire types with it.
#[test]
fn every_declared_field_occurs_in_the_reference_file_under_its_name() {
    let mut seen = BTreeSet::new();
    occurrences(ModelProto::schema(), EVERY_FIELD, &mut seen);
    let mut declared = BTreeSet::new();
    declarations(ModelProto::schema(), &mut declared);
    assert_eq!(declared, seen);
    assert_eq!(declared.len(), 134);
}

fn declarations(schema: &'static Schema, into: &mut BTreeSet<(&'static str, &'static str)>) {
    for field in schema.fields {
        if into.insert((schema.name, field.name()))
            && let FieldKind::Message(inner) = field.kind
        {
            declarations(inner(), into);
        }
    }
}

fn occurrences(schema: &'static Schema, mut bytes: &[u8], into: &mut BTreeSet<(&'static str, &'static str)>) {
    while !bytes.is_empty() {
        let key = prost::encoding::decode_varint(&mut bytes).unwrap();
        let field = schema.fields.iter().find(|f| u64::from(f.number) == key >> 3).unwrap();
        into.insert((schema.name, field.name()));
        let width = match key & 7 {
            0 => {
                prost::encoding::decode_varint(&mut bytes).unwrap();
                0
            }
            1 => 8,
            5 => 4,
            _ => prost::encoding::decode_varint(&mut bytes).unwrap() as usize,
        };
        let (content, rest) = bytes.split_at(width);
        bytes = rest;
        match field.kind {
            FieldKind::Message(inner) => occurrences(inner(), content, into),
            FieldKind::Text | FieldKind::Bytes => assert_eq!(content, field.name().as_bytes()),
            _ => {}
        }
    }
}

#[test]
fn packed_numbers_of_the_reference_file_are_read() {
    let model = ModelProto::decode(EVERY_FIELD).unwrap();
    let tensor = &model.graph.unwrap().initializer[0];
    assert_eq!(tensor.floats().unwrap(), [4000.0 / 7.0, 4000.0 / 7.0]);
    assert_eq!(tensor.int32s().unwrap(), [-5, -5]);
    assert_eq!(tensor.int64s().unwrap(), [-7, -7]);
    assert_eq!(tensor.doubles().unwrap(), [10000.0 / 7.0, 10000.0 / 7.0]);
    assert_eq!(tensor.uint64s().unwrap(), [11 << 40, 11 << 40]);
    assert_eq!(tensor.float_data, [pack_floats(&tensor.floats().unwrap())]);
    assert_eq!(tensor.int32_data, [pack_int32s(&tensor.int32s().unwrap())]);
    assert_eq!(tensor.int64_data, [pack_int64s(&tensor.int64s().unwrap())]);
    assert_eq!(tensor.double_data, [pack_doubles(&tensor.doubles().unwrap())]);
    assert_eq!(tensor.uint64_data, [pack_uint64s(&tensor.uint64s().unwrap())]);
}

#[test]
fn a_chunk_that_ends_inside_an_element_is_refused() {
    let tensor = TensorProto {
        name: Some("w".into()),
        float_data: vec![Bytes::from_static(&[0; 7])],
        int64_data: vec![Bytes::from_static(&[0x80])],
        ..TensorProto::default()
    };
    assert_eq!(tensor.floats().unwrap_err().to_string(), "`float_data` of tensor `w` ends inside an element");
    assert_eq!(tensor.int64s().unwrap_err().field, "int64_data");
}

#[test]
fn packed_data_in_several_chunks_and_empty_chunks_are_kept() {
    let tensor = TensorProto {
        float_data: vec![pack_floats(&[1.0]), Bytes::new(), pack_floats(&[2.0, 3.0])],
        raw_data: Some(Bytes::new()),
        ..TensorProto::default()
    };
    let model = ModelProto {
        graph: Some(GraphProto { initializer: vec![tensor], ..Default::default() }),
        ..Default::default()
    };
    let read = Model::from_bytes(encode(&model).into(), "m").unwrap().proto;
    assert_eq!(read, model);
    assert_eq!(read.graph.unwrap().initializer[0].floats().unwrap(), [1.0, 2.0, 3.0]);
}

/// `repeated` numbers outside tensors may be packed (the proto3 spelling of ONNX is) or not; both are read.
#[test]
fn attribute_numbers_are_read_packed_too() {
    let ints = [8 << 3 | 2, 3, 1, 0xac, 2];
    wire::check::<AttributeProto>(&ints).unwrap();
    assert_eq!(AttributeProto::decode(&ints[..]).unwrap().ints, [1, 300]);
}

#[test]
fn bytes_of_tensors_are_slices_of_the_input() {
    let bytes = Bytes::from(EVERY_FIELD);
    let range = bytes.as_ptr_range();
    let model = Model::from_bytes(bytes, "m").unwrap().proto;
    let tensor = &model.graph.unwrap().initializer[0];
    for part in [tensor.raw_data.as_ref().unwrap(), &tensor.float_data[0], &tensor.string_data[0]] {
        assert!(range.contains(&part.as_ptr()));
    }
}

#[test]
fn schemas_fit_the_walk() {
    fn visit(schema: &'static Schema, done: &mut BTreeSet<&'static str>) {
        if !done.insert(schema.name) {
            return;
        }
        assert!(schema.fields.len() <= 32);
        assert!(schema.fields.is_sorted_by(|a, b| a.number < b.number), "{}", schema.name);
        for field in schema.fields {
            if let FieldKind::Message(inner) = field.kind {
                assert_ne!(field.label, Label::Packed);
                visit(inner(), done);
            }
        }
    }
    visit(ModelProto::schema(), &mut BTreeSet::new());
}

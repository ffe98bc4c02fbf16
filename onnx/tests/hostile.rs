//! Bytes that would be read with loss, or not at all, are refused with their place; nothing panics.

use arbtest::arbitrary;
use lmsc_ir::Advice;
use lmsc_onnx::file::{Model, encode_to};
use lmsc_onnx::proto::*;
use lmsc_onnx::wire::{self, Described, FieldError, FieldKind, Label, MAX_NESTING, Schema};
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint};

const EVERY_FIELD: &[u8] = include_bytes!("data/every_field.onnx");

/// The bytes of a length-delimited field.
fn field(number: u32, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_key(number, WireType::LengthDelimited, &mut out);
    encode_varint(content.len() as u64, &mut out);
    out.extend_from_slice(content);
    out
}

/// The first fault of the bytes.
fn error(bytes: &[u8]) -> String {
    wire::check::<ModelProto>(bytes).unwrap_err().faults[0].to_string()
}

fn small_model() -> ModelProto {
    let node = |i: usize| NodeProto {
        input: vec![format!("x{i}"), String::new()],
        output: vec![format!("x{}", i + 1)],
        op_type: Some("Clip".into()),
        attribute: vec![
            AttributeProto { name: Some("a".into()), f: Some(0.5), ..Default::default() },
            AttributeProto { name: Some("b".into()), ints: vec![1, -1], ..Default::default() },
            AttributeProto {
                t: Some(Box::new(TensorProto {
                    dims: vec![2],
                    data_type: Some(DataType::Float as i32),
                    float_data: vec![pack_floats(&[1.0, 2.0])],
                    ..Default::default()
                })),
                ..Default::default()
            },
        ],
        ..Default::default()
    };
    let dim = Dimension { dim_param: Some("batch".into()), ..Default::default() };
    let tensor = TensorType { elem_type: Some(1), shape: Some(TensorShapeProto { dim: vec![dim] }) };
    ModelProto {
        ir_version: Some(8),
        graph: Some(GraphProto {
            node: (0..4).map(node).collect(),
            input: vec![ValueInfoProto {
                name: Some("x0".into()),
                r#type: Some(TypeProto { tensor_type: Some(tensor), ..Default::default() }),
                ..Default::default()
            }],
            initializer: vec![TensorProto { raw_data: Some(vec![7; 40].into()), ..Default::default() }],
            ..Default::default()
        }),
        opset_import: vec![OperatorSetIdProto { domain: Some(String::new()), version: Some(17) }],
        ..Default::default()
    }
}

#[test]
fn an_unknown_field_is_refused_at_any_depth() {
    let unknown = [0x98, 6, 1]; // field 99, varint 1
    let attribute = field(5, &unknown);
    let node = [field(1, b"x"), field(5, &field(1, b"a")), field(5, &[]), attribute].concat();
    let graph = [field(1, &[]).repeat(17), field(1, &node)].concat();
    assert_eq!(
        error(&field(7, &graph)),
        "graph.node[17].attribute[2]: field 99 is not known to lmsc, and would be lost [byte 50]"
    );
    assert!(error(&unknown).starts_with("model: field 99 is not known"));
    assert!(error(&field(7, &field(1, &unknown))).starts_with("graph.node[0]: field 99 is not known"));
    assert!(error(&field(25, &field(14, &unknown))).starts_with("functions[0].metadata_props[0]: field 99"));
    let r#type = field(11, &field(2, &field(1, &field(2, &field(1, &unknown)))));
    assert!(error(&field(7, &r#type)).starts_with("graph.input[0].type.tensor_type.shape.dim[0]: field 99"));
}

#[test]
fn every_fault_is_told_and_equal_ones_once() {
    let node = field(1, &[0x98, 6, 1]);
    let model = [field(7, &node.repeat(1000)), vec![0x98, 6, 1]].concat();
    let faults = wire::check::<ModelProto>(&model).unwrap_err().faults;
    assert_eq!(faults.len(), 2);
    assert_eq!((faults[0].place.as_str(), faults[0].more), ("graph.node[0]", 999));
    assert_eq!((faults[1].place.as_str(), faults[1].offset), ("", model.len() - 3));
}

#[test]
fn faults_name_field_place_and_remedy() {
    let tensor = |content: &[u8]| field(7, &field(5, content));
    let cases: &[(Vec<u8>, &str)] = &[
        (
            tensor(&[4 << 3 | 5, 0, 0, 0, 0]),
            "graph.initializer[0]: `float_data` is written element by element",
        ),
        (tensor(&[7 << 3, 0]), "graph.initializer[0]: `int64_data` is written element by element"),
        (tensor(&field(4, &[0; 6])), "graph.initializer[0]: `float_data` does not hold a whole number of"),
        (tensor(&field(10, &[0; 12])), "graph.initializer[0]: `double_data` does not hold a whole number of"),
        (tensor(&[4 << 3, 0]), "graph.initializer[0]: `float_data` has wire type 0 where 2 is expected"),
        (tensor(&field(8, &[0xff])), "graph.initializer[0]: `name` is not UTF-8 text"),
        (
            tensor(&[9 << 3 | 2, 200, 1]),
            "graph.initializer[0]: `raw_data` is 200 bytes long, but what holds it ends after 0",
        ),
        (field(7, &[]).repeat(2), "model: `graph` occurs twice"),
        (vec![8, 7, 8, 7], "model: `ir_version` occurs twice"),
        (
            tensor(&[2 << 3, 0x80, 0x80, 0x80, 0x80, 0x10]),
            "graph.initializer[0]: `data_type` is longer than 32 bits",
        ),
        (vec![1 << 3 | 2, 0], "model: `ir_version` has wire type 2 where 0 is expected"),
        (vec![8], "model: the bytes end inside a number"),
        (vec![8, 0xff, 0xff], "model: the bytes end inside a number"),
        ([vec![8], vec![0xff; 10]].concat(), "model: a number is longer than 64 bits"),
        ([vec![8], vec![0xff; 9], vec![2]].concat(), "model: a number is longer than 64 bits"),
        (vec![0, 0], "model: this is not the beginning of a field"),
        (vec![1 << 3 | 4], "model: this is not the beginning of a field"),
        (vec![0xff, 0xff, 0xff, 0xff, 0x7f], "model: this is not the beginning of a field"),
        (vec![0xf3, 1, 0xf4, 1], "model: field 30 is not known to lmsc"),
        (vec![0xf5, 1, 0], "model: the bytes end inside a number"),
        (b"#!/bin/sh\n".to_vec(), "model: `domain` has wire type 3 where 2 is expected"),
    ];
    for (bytes, expected) in cases {
        let found = error(bytes);
        assert!(found.starts_with(expected), "expected {expected}\nfound    {found}");
    }
}

#[test]
fn two_members_of_a_oneof_are_refused() {
    let dim = Dimension { dim_value: Some(1), dim_param: Some("n".into()), denotation: None };
    let found = wire::check::<Dimension>(&dim.encode_to_vec()).unwrap_err();
    assert_eq!(found.faults[0].problem, FieldError::Exclusive { first: "dim_value", second: "dim_param" });
}

/// A type of a value nested so that its innermost message lies `depth` below the model.
fn nested(depth: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    // graph, input, type; then sequence_type and elem_type in turn.
    for level in (3..depth).rev() {
        bytes = field(if level % 2 == 1 { 4 } else { 1 }, &bytes);
    }
    field(7, &field(11, &field(2, &bytes)))
}

#[test]
fn nesting_is_followed_as_deep_as_prost_does_and_no_deeper() {
    let deepest = nested(MAX_NESTING);
    let model = Model::from_bytes(deepest.clone().into(), "m").unwrap();
    assert_eq!(model.proto.encode_to_vec(), deepest);
    let deeper = nested(MAX_NESTING + 1);
    assert!(ModelProto::decode(&deeper[..]).is_err());
    let found = error(&deeper);
    assert!(found.contains("lies more than 100 messages deep"), "{found}");
    let place =
        "graph.input[0].type.sequence_type … (92 more) … .elem_type.sequence_type.elem_type.sequence_type: ";
    assert!(found.starts_with(place), "{found}");
}

#[test]
fn a_hundred_thousand_nested_subgraphs_are_an_error_not_a_stack_overflow() {
    // Inside out would copy quadratically: write the lengths first, from the outermost in.
    let mut lengths = vec![0usize];
    for _ in 0..300_000 {
        let inner = lengths[lengths.len() - 1];
        lengths.push(1 + prost::length_delimiter_len(inner) + inner);
    }
    let mut bytes = Vec::new();
    let keys = [7u32, 1, 5, 6];
    for (level, &length) in lengths.iter().rev().skip(1).enumerate() {
        let number = if level == 0 { keys[0] } else { keys[1 + (level - 1) % 3] };
        encode_key(number, WireType::LengthDelimited, &mut bytes);
        encode_varint(length as u64, &mut bytes);
    }
    let found = error(&bytes);
    assert!(found.starts_with("graph.node[0].attribute[0].g … ("), "{found}");
    assert!(found.contains("subgraphs may stand about 32 deep in one another"), "{found}");
}

#[test]
fn lengths_beyond_the_end_allocate_nothing() {
    for length in [41u64, 1 << 20, u64::from(u32::MAX), 1 << 40, i64::MAX as u64, u64::MAX] {
        for number in [1u32, 2, 5, 7, 8, 20, 25, 26] {
            let mut bytes = Vec::new();
            encode_key(number, WireType::LengthDelimited, &mut bytes);
            encode_varint(length, &mut bytes);
            bytes.extend_from_slice(&[0; 20]);
            assert!(wire::check::<ModelProto>(&bytes).is_err());
        }
    }
}

/// `prost` decodes every message that the walk accepts; written again, it is accepted by the walk and reads as
/// the same model.
fn walk_and_decoder_agree(bytes: &[u8]) -> bool {
    let Ok(()) = wire::check::<ModelProto>(bytes) else { return false };
    let model = ModelProto::decode(bytes).expect("passed the walk");
    let mut written = Vec::new();
    encode_to(&model, &mut written).unwrap();
    wire::check::<ModelProto>(&written).expect("just written");
    let again = ModelProto::decode(&written[..]).unwrap();
    assert_eq!(format!("{model:?}"), format!("{again:?}"));
    true
}

#[test]
fn a_model_cut_anywhere_never_panics() {
    let bytes = small_model().encode_to_vec();
    let whole = (0..=bytes.len()).filter(|&n| walk_and_decoder_agree(&bytes[..n])).count();
    // Only between the fields of the outermost message.
    assert_eq!(whole, 4);
    // Every seventh: the walk over all of them is quadratic.
    for n in (0..EVERY_FIELD.len()).step_by(7) {
        let _ = wire::check::<ModelProto>(&EVERY_FIELD[..n]);
    }
}

/// Tries `property` on `cases` cases of 32 bytes to 64 KiB, the same on every run.
fn try_cases(
    cases: usize,
    mut property: impl FnMut(&mut arbitrary::Unstructured<'_>) -> arbitrary::Result<()>,
) {
    let mut random = 0x0badu64;
    for number in 0..cases {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        // The low half of a seed is the size of the case.
        let seed = (random >> 32 << 32) | (32 << (number % 12));
        let case = |u: &mut arbitrary::Unstructured<'_>| {
            // A case of too few bytes ends early, which is no failure.
            _ = property(u);
            Ok(())
        };
        arbtest::arbtest(case).seed(seed).run();
    }
}

#[test]
fn mutated_models_never_panic_and_what_passes_is_kept() {
    let small = small_model().encode_to_vec();
    let mut passed = 0u32;
    try_cases(80_000, |u| {
        let mut bytes = small.clone();
        for _ in 0..u.int_in_range(1..=6)? {
            let at = u.choose_index(bytes.len())?;
            match u.int_in_range(0..=4)? {
                0 => bytes[at] = u.arbitrary()?,
                1 => bytes[at] ^= 1 << u.int_in_range(0..=7)?,
                2 => bytes.insert(at, u.arbitrary()?),
                3 if bytes.len() > 1 => drop(bytes.remove(at)),
                _ => {
                    let to = at + u.choose_index(bytes.len() - at)?;
                    let part = bytes[at..to].to_vec();
                    let into = u.choose_index(bytes.len())?;
                    bytes.splice(into..into, part);
                }
            }
        }
        passed += u32::from(walk_and_decoder_agree(&bytes));
        Ok(())
    });
    assert!(passed > 0, "no case passed the walk");
}

/// Bytes of a message with arbitrary fields: most of them well-formed, some mistaken.
fn message(
    u: &mut arbitrary::Unstructured<'_>,
    schema: &'static Schema,
    depth: u32,
    out: &mut Vec<u8>,
) -> arbitrary::Result<()> {
    for field in schema.fields {
        let times = if matches!(field.label, Label::Repeated | Label::Packed) { 3 } else { 1 };
        for _ in 0..u.int_in_range(0..=times)? {
            if u.ratio(1, 200)? {
                out.extend_from_slice(u.bytes(1)?);
            }
            let many = matches!(field.label, Label::Packed) || times > 1 && u.ratio(1, 4)?;
            let mut content = Vec::new();
            let count = if many { u.int_in_range(0..=3)? } else { 1 };
            let wire = match field.kind {
                FieldKind::Varint | FieldKind::Int32 => {
                    for _ in 0..count {
                        let value = u.arbitrary::<i64>()? >> u.int_in_range(0..=63)?;
                        encode_varint(value as u64, &mut content);
                    }
                    WireType::Varint
                }
                FieldKind::Fixed32 => {
                    content.extend_from_slice(u.bytes(4 * count)?);
                    WireType::ThirtyTwoBit
                }
                FieldKind::Fixed64 => {
                    content.extend_from_slice(u.bytes(8 * count)?);
                    WireType::SixtyFourBit
                }
                FieldKind::Text => {
                    content.extend_from_slice(u.arbitrary::<&str>()?.as_bytes());
                    WireType::LengthDelimited
                }
                FieldKind::Bytes => {
                    content.extend_from_slice(u.arbitrary()?);
                    WireType::LengthDelimited
                }
                FieldKind::Message(_) if depth == 0 => continue,
                FieldKind::Message(inner) => {
                    message(u, inner(), depth - 1, &mut content)?;
                    WireType::LengthDelimited
                }
            };
            let wire = if many { WireType::LengthDelimited } else { wire };
            encode_key(field.number, wire, out);
            if wire == WireType::LengthDelimited {
                encode_varint(content.len() as u64, out);
            }
            out.extend_from_slice(&content);
        }
    }
    Ok(())
}

#[test]
fn bytes_that_pass_the_walk_are_decoded() {
    let mut passed = 0u32;
    try_cases(60_000, |u| {
        let mut bytes = Vec::new();
        let depth = u.int_in_range(0..=6)?;
        message(u, ModelProto::schema(), depth, &mut bytes)?;
        passed += u32::from(walk_and_decoder_agree(&bytes));
        Ok(())
    });
    assert!(passed > 0);
}

#[test]
fn a_remedy_stands_once_behind_all_faults() {
    let unknown = field(7, &field(1, &[0x98, 6, 1]));
    let text = field(7, &[field(2, &[0xff]), field(1, &[])].concat());
    let found = wire::check::<ModelProto>(&unknown).unwrap_err().message().to_string();
    assert_eq!((found.lines().count(), found.matches("\nhelp: ").count()), (2, 1), "{found}");
    let found = wire::check::<ModelProto>(&text).unwrap_err().message().to_string();
    assert!(found.ends_with("\nhelp: export the model again, with names in UTF-8"), "{found}");
}

#[test]
fn an_empty_input_is_refused() {
    let found = Model::from_bytes(Default::default(), "standard input").unwrap_err().message().to_string();
    assert_eq!(found, "standard input is empty\nhelp: export the model again");
}

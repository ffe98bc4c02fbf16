use std::collections::BTreeMap;

use super::*;
use crate::Graph;

#[test]
fn no_operator_has_two_rows_and_every_contract_can_be_read() {
    for row in table::ROWS {
        assert!(Contract::parse(row).is_some(), "{}.{}: {}", row.0, row.1, row.3);
    }
    let has_two = all().windows(2).any(|pair| pair[0].key() == pair[1].key());
    assert!(!has_two);
}

/// An attribute with one default for some versions and another for others; so that each version has one form, ranges do not overlap.
#[test]
fn forms_of_an_attribute_have_different_versions() {
    for contract in all() {
        for (i, a) in contract.attributes.iter().enumerate() {
            for b in contract.attributes[i + 1..].iter().filter(|b| b.name == a.name) {
                let (a, b, op) = (a.versions, b.versions, contract.name);
                assert!(a.1 < b.0, "{op}: {a} and {b}");
            }
        }
    }
}

#[test]
fn a_default_is_that_of_the_version() {
    let softmax = |opset: &str| {
        let text = format!("{opset} g (float[2,3] x) => (float[2,3] y) {{ [n] float[2,3] y = Softmax(x) }}");
        let graph = Graph::parse(&text).unwrap();
        graph.attribute(graph.node(graph.order()[0]), "axis").cloned()
    };
    assert_eq!(softmax("<opset: \"\" = 12>"), Some(Attr::Int(1)));
    assert_eq!(softmax("<opset: \"\" = 13>"), Some(Attr::Int(-1)));
    assert_eq!(softmax(""), Some(Attr::Int(-1)), "a graph without versions has the newest");
}

#[test]
fn a_given_attribute_hides_the_default() {
    let gemm = Op::new(domains::ONNX, "Gemm");
    let given: Vec<(Name, Attr)> = vec![("alpha".into(), 2.0.into())];
    assert_eq!(gemm.attribute(13, &given, "alpha"), Some(&Attr::Float(Float(2.0))));
    assert_eq!(gemm.attribute(13, &given, "beta"), Some(&Attr::Float(Float(1.0))));
    assert_eq!(gemm.attribute(13, &given, "broadcast"), Some(&Attr::Int(0)), "it came to an end");
    assert_eq!(Op::new("other", "Gemm").attribute(1, &given, "beta"), None);
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "the contract of Relu has no attribute `alpha`")]
fn an_attribute_that_the_contract_does_not_know_is_found() {
    _ = Op::new(domains::ONNX, "Relu").attribute(13, &[], "alpha");
}

/// A line of `testdata/schemas.txt`.
struct Schema {
    since: i64,
    operands: (usize, usize),
    results: (usize, usize),
    attributes: Vec<Attribute>,
}

/// `2`, `1..3`, `1..`.
fn numbers(text: &str) -> (usize, usize) {
    let (low, high) = text.split_once("..").unwrap_or((text, text));
    (low.parse().unwrap(), high.parse().unwrap_or(usize::MAX))
}

/// Every schema of every operator that has a contract, older ones first.
fn schemas() -> BTreeMap<(&'static str, &'static str), Vec<Schema>> {
    let mut schemas = BTreeMap::<_, Vec<Schema>>::new();
    let lines = include_str!("../../../testdata/schemas.txt").lines();
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (head, attributes) = line.split_once(" | ").unwrap_or((line, ""));
        let [domain, name, since, operands, "->", results] = head.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let domain = if domain == "ai.onnx" { domains::ONNX } else { domain };
        if of(domain, name).is_none() {
            continue;
        }
        let attribute = |word| Attribute::parse(word).unwrap_or_else(|| panic!("{word} of {line}"));
        schemas.entry((domain, name)).or_default().push(Schema {
            since: since.parse().unwrap(),
            operands: numbers(operands),
            results: numbers(results),
            attributes: attributes.split(' ').filter(|word| !word.is_empty()).map(attribute).collect(),
        });
    }
    schemas
}

/// Differences that are meant: operator, its part, and the reason.
#[rustfmt::skip]
const MEANT: &[(&str, &str, &str)] = &[
    ("BiasSoftmax", "broadcast_axis", "an older form has it"),
    ("BiasSoftmax", "is_inner_broadcast", "an older form has other attributes instead"),
    ("BiasSoftmax", "softmax_axis", "an older form has it"),
    ("Concat", "axis", "1 by default in the text of version 1, which its schema leaves out"),
    ("Constant", "value", "one of several attributes since version 11"),
    ("DequantizeLinear", "axis", "the kernel of ONNX Runtime takes 1"),
    ("DequantizeLinear", "block_size", "the kernel of ONNX Runtime reads it"),
    ("Gemm", "operands", "C may be left out since version 11; lmsc takes its absence before, too"),
    ("OptionalHasElement", "operands", "the operand may be left out since version 18"),
    ("QuantizeLinear", "axis", "the kernel of ONNX Runtime takes 1"),
    ("QuantizeLinear", "block_size", "the kernel of ONNX Runtime reads it"),
    ("QuantizeLinear", "saturate", "the kernel of ONNX Runtime reads it"),
    ("Resize", "operands", "scales may be left out beside sizes since version 13; a rule asks for one of them"),
    ("RotaryEmbedding", "interleaved", "the schema has the default in its text alone"),
    ("RotaryEmbedding", "is_packed_batching", "the schema has the default in its text alone"),
    ("RotaryEmbedding", "rotary_embedding_dim", "the schema has the default in its text alone"),
    ("RotaryEmbedding", "scale", "the schema has the default in its text alone"),
];

/// The faults of a contract against the schema of this version.
fn faults(contract: &Contract, schema: &Schema, version: i64) -> Vec<(String, String)> {
    let mut faults = Vec::new();
    let mut fault = |part: &str, text: String| faults.push((part.to_owned(), text));
    for theirs in &schema.attributes {
        match contract.attribute(theirs.name, version) {
            // It was a hint about memory, without other meaning.
            None if theirs.name == "consumed_inputs" => {}
            None => fault(theirs.name, "is missing".to_owned()),
            Some(ours) => {
                let [a, b] = [ours, theirs].map(|a| (a.kind, a.needed, &a.default));
                if a != b {
                    fault(theirs.name, format!("is {a:?}, in the schema {b:?}"));
                }
            }
        }
    }
    for ours in contract.attributes.iter().filter(|a| a.versions.hold(version)) {
        if schema.attributes.iter().all(|theirs| theirs.name != ours.name) {
            fault(ours.name, "is not in the schema".to_owned());
        }
    }
    let number = |list: &[Parameter]| {
        let there = || list.iter().filter(|p| p.versions.hold(version));
        let least = there().filter(|p| p.needed).count();
        (least, if there().any(|p| p.many) { usize::MAX } else { there().count() })
    };
    for (part, ours, theirs) in [
        ("operands", number(&contract.operands), schema.operands),
        ("results", number(&contract.results), schema.results),
    ] {
        if ours != theirs {
            fault(part, format!("are {ours:?}, in the schema {theirs:?}"));
        }
    }
    faults
}

/// The attributes, kinds, defaults and numbers of operands and results of each version are those of the packages `onnx` and
/// `onnxruntime`, except where [`MEANT`] has a reason.
#[test]
fn contracts_are_those_of_the_schemas() {
    let schemas = schemas();
    let (mut found, mut used) = (Vec::new(), vec![false; MEANT.len()]);
    let mut compared = 0;
    for contract in all() {
        let list = schemas.get(&contract.key()).map_or(&[][..], |list| list);
        for (i, schema) in list.iter().enumerate() {
            let last = list.get(i + 1).map_or(i64::MAX - 1, |next| next.since - 1);
            let first = contract.first.max(schema.since);
            if first > last {
                continue;
            }
            compared += 1;
            let both = [first, last].into_iter().flat_map(|version| faults(contract, schema, version));
            for (part, text) in both {
                let meant = |row: &(&str, &str, &str)| row.0 == contract.name && row.1 == part;
                match MEANT.iter().position(meant) {
                    Some(row) => used[row] = true,
                    None => {
                        found.push(format!("{}.{} {first}: {part} {text}", contract.domain, contract.name))
                    }
                }
            }
        }
    }
    assert!(found.is_empty(), "{} faults:\n{}", found.len(), found.join("\n"));
    let idle = MEANT.iter().zip(used).filter(|(_, used)| !used).map(|(row, _)| row);
    assert_eq!(idle.collect::<Vec<_>>(), [] as [&(&str, &str, &str); 0], "these rows are not needed");
    assert!(compared > 400, "{compared} schemas were compared");
}

//! The operators that represent a copy over the link: those that are written, and those that are recognized.

use lmsc_ir::{ElementType, Type};

use crate::proto::{AttributeProto, AttributeType, NodeProto};

/// The first opsets with `Max` and `Min` of integers, with `BitwiseOr` and `BitwiseAnd`, with `Einsum`, and with axes that count
/// from the end.
const INTEGERS: i64 = 12;
const BITWISE: i64 = 18;
const EINSUM: i64 = 12;
const FROM_THE_END: i64 = 11;

/// An operator that copies its operand.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Copy {
    /// An operator that copies a tensor that it reads once or, see [`reads_twice`], twice.
    Plain(&'static str),
    /// A `Concat` of one tensor along this axis.
    Concat(i64),
    /// An `Einsum` whose letters begin with this one of the alphabet.
    Einsum(u8),
}

/// Turns the node, which has its operand, into an operator that copies the operand and that optimizers do not remove: first
/// operators that no program of docs/survival.md removes, then operators that ONNX Runtime does not remove. Swap-ins of one host
/// copy must differ, or common-subexpression elimination merges them: `sibling` counts them. Behind a transposition it is an
/// `Einsum` if possible: the runtime moves the transposition across every other operator to one that cancels it, and the copy
/// would then be of the transposed tensor instead of the one to be swapped out.
///
/// For scalars of a few types the runtime has no such operator on the CPU before opset 18. They become `Identity`, which it
/// removes: a swap of one or two bytes is lost then, and nothing else. For types that only `Concat` copies there are two
/// different swap-ins per axis before they repeat.
pub(crate) fn spell(proto: &mut NodeProto, ty: &Type, opset: i64, sibling: usize, transposed: bool) {
    let tensor = ty.as_tensor();
    let element = tensor.map_or(ElementType::Float, |t| t.element);
    let rank = tensor.map_or(0, |t| t.dims.len());
    let mut copies = copies(element, rank, opset);
    if transposed && copies.iter().any(|c| matches!(c, Copy::Einsum(_))) {
        copies.retain(|c| matches!(c, Copy::Einsum(_)));
    }
    write(proto, copies.get(sibling % copies.len().max(1)).copied(), rank);
}

/// Number of operators that [`spell_list`] has for a list of this type.
pub(crate) fn of_lists(element: ElementType, opset: i64) -> usize {
    let copies = copies(element, 1, opset);
    copies.iter().filter(|copy| LIST.contains(copy) || matches!(copy, Copy::Einsum(_))).count().max(1)
}

/// Operators that copy a list of almost any type.
const LIST: [Copy; 2] = [Copy::Concat(0), Copy::Concat(-1)];

/// Turns the node, which has its operand, a list, into an operator that copies it. The first ones copy almost all types, the
/// others the types that an `Einsum` copies.
pub(crate) fn spell_list(proto: &mut NodeProto, sibling: usize) {
    let letter = |number: usize| Copy::Einsum((number % 26) as u8);
    write(proto, Some(LIST.get(sibling).copied().unwrap_or_else(|| letter(sibling - LIST.len()))), 1);
}

/// Turns the node, which has its operand, into this operator.
fn write(proto: &mut NodeProto, copy: Option<Copy>, rank: usize) {
    let (op, attribute) = match copy {
        None => ("Identity", None),
        Some(Copy::Plain(op)) => (op, None),
        Some(Copy::Concat(axis)) => {
            let axis = AttributeProto {
                name: Some("axis".to_owned()),
                i: Some(axis),
                r#type: Some(AttributeType::Int as i32),
                ..AttributeProto::default()
            };
            ("Concat", Some(axis))
        }
        Some(Copy::Einsum(first)) => {
            let letters: String = (b'a' + first..).take(rank).map(char::from).collect();
            let equation = AttributeProto {
                name: Some("equation".to_owned()),
                s: Some(format!("{letters}->{letters}").into()),
                r#type: Some(AttributeType::String as i32),
                ..AttributeProto::default()
            };
            ("Einsum", Some(equation))
        }
    };
    if reads_twice(op) {
        proto.input.extend(proto.input.first().cloned());
    }
    proto.op_type = Some(op.to_owned());
    proto.attribute.extend(attribute);
}

/// The operators that copy a tensor of this type and that onnxruntime 1.19.2 implements on the CPU.
fn copies(element: ElementType, rank: usize, opset: i64) -> Vec<Copy> {
    use ElementType::*;
    let plain: &[&str] = match element {
        // The layout of a Sum behind a pooling is changed along with the pooling.
        Float => &["Mean", "Sum"],
        Double => &["Sum"],
        Bool => &["Or", "And"],
        Int8 | Int16 | Int32 | Int64 | Uint8 | Uint16 | Uint32 | Uint64 if opset >= BITWISE => {
            &["BitwiseOr", "BitwiseAnd"]
        }
        _ => &[],
    };
    // The optimizer of onnxscript fails on these, and others remove a Concat of one tensor.
    let least: &[&str] = match element {
        Float | Double => &["Max", "Min"],
        Float16 | Int32 | Int64 | Uint32 | Uint64 if opset >= INTEGERS => &["Max", "Min"],
        _ => &[],
    };
    let axes = if is_concatenated(element) { rank as i64 } else { 0 };
    let from_the_end = if opset >= FROM_THE_END { axes } else { 0 };
    let contracted = matches!(element, Float | Double | Int32 | Int64) && opset >= EINSUM;
    let beginnings = match rank {
        _ if !contracted => 0,
        0 => 1,
        rank => 27_usize.saturating_sub(rank) as u8,
    };
    let [plain, least] = [plain, least].map(|ops| ops.iter().map(|&op| Copy::Plain(op)));
    let concats = (0..axes).chain((1..=from_the_end).map(|axis| -axis)).map(Copy::Concat);
    plain.chain((0..beginnings).map(Copy::Einsum)).chain(concats).chain(least).collect()
}

/// Whether `Concat` takes elements of this type.
fn is_concatenated(element: ElementType) -> bool {
    use ElementType::*;
    match element {
        Float | Double | Float16 | Bfloat16 | Int8 | Int16 | Int32 | Int64 | Uint8 | Uint16 | Uint32
        | Uint64 | Bool | String | Complex64 | Complex128 => true,
        Float8e4m3fn | Float8e4m3fnuz | Float8e5m2 | Float8e5m2fnuz | Float8e8m0 | Float4e2m1 | Int4
        | Uint4 | Int2 | Uint2 => false,
    }
}

fn reads_twice(op: &str) -> bool {
    matches!(op, "Or" | "And" | "BitwiseOr" | "BitwiseAnd")
}

/// Whether the equation, such as `ab->ab`, is the identity: a repeated letter would take a diagonal.
fn keeps_its_operand(equation: &[u8]) -> bool {
    let Some((from, to)) = str::from_utf8(equation).ok().and_then(|text| text.split_once("->")) else {
        return false;
    };
    let distinct = from.bytes().enumerate().all(|(i, letter)| !from.as_bytes()[..i].contains(&letter));
    from == to && distinct && from.bytes().all(|letter| letter.is_ascii_lowercase())
}

/// Whether the node, of one of ONNX's operators, is the identity of its first operand, for any operand.
pub(crate) fn is_copy(proto: &NodeProto) -> bool {
    let once = proto.input.len() == 1;
    let twice = matches!(&proto.input[..], [a, b] if a == b);
    let copies = match (proto.op_type(), &proto.attribute[..]) {
        ("Identity" | "Max" | "Min" | "Sum" | "Mean", []) => once,
        ("Concat", [axis]) => axis.name() == "axis" && once,
        ("Einsum", [equation]) => equation.name() == "equation" && once && keeps_its_operand(equation.s()),
        (op, []) => reads_twice(op) && twice,
        _ => false,
    };
    copies && matches!(proto.domain(), "" | "ai.onnx") && proto.output.len() == 1
}

#[cfg(test)]
mod tests {
    use lmsc_ir::TensorType;

    use super::*;

    fn spelled(element: ElementType, dims: &[u64], opset: i64, sibling: usize, transposed: bool) -> String {
        let ty = Type::Tensor(TensorType { element, dims: dims.to_vec() });
        let (input, output) = (vec!["x".to_owned()], vec!["y".to_owned()]);
        let mut proto = NodeProto { input, output, ..NodeProto::default() };
        spell(&mut proto, &ty, opset, sibling, transposed);
        assert!(is_copy(&proto), "{proto:?}");
        let detail = proto.attribute.first().map(|a| match a.name() {
            "axis" => a.i().to_string(),
            _ => format!(" {} ", a.s().escape_ascii()),
        });
        format!("{}{}({})", proto.op_type(), detail.unwrap_or_default(), proto.input.join(", "))
    }

    fn five(element: ElementType, dims: &[u64]) -> Vec<String> {
        (0..5).map(|sibling| spelled(element, dims, 14, sibling, false)).collect()
    }

    #[test]
    fn copies_of_one_tensor_differ_and_are_of_operators_that_take_its_type() {
        use ElementType::*;
        let einsums = ["Einsum ab->ab (x)", "Einsum bc->bc (x)", "Einsum cd->cd (x)"];
        assert_eq!(five(Float, &[2, 3]), ["Mean(x)", "Sum(x)", einsums[0], einsums[1], einsums[2]]);
        assert_eq!(five(Double, &[2, 3])[..3], ["Sum(x)", einsums[0], einsums[1]]);
        assert_eq!(five(Int64, &[4, 2])[..2], einsums[..2]);
        assert_eq!(five(Float16, &[4])[..4], ["Concat0(x)", "Concat-1(x)", "Max(x)", "Min(x)"]);
        assert_eq!(five(Uint64, &[4])[..4], ["Concat0(x)", "Concat-1(x)", "Max(x)", "Min(x)"]);
        for element in [Int8, Int64, Uint16, Uint64] {
            let two = [0, 1].map(|sibling| spelled(element, &[2], 18, sibling, false));
            assert_eq!(two, ["BitwiseOr(x, x)", "BitwiseAnd(x, x)"]);
        }
        assert_eq!(five(Bool, &[4])[..4], ["Or(x, x)", "And(x, x)", "Concat0(x)", "Concat-1(x)"]);
        for element in [Bfloat16, Int8, Uint16, String, Complex64] {
            let copies = ["Concat0(x)", "Concat1(x)", "Concat-1(x)", "Concat-2(x)", "Concat0(x)"];
            assert_eq!(five(element, &[2, 3]), copies);
        }
        let all: std::collections::BTreeSet<_> =
            (0..36).map(|i| spelled(Float, &[2, 3, 4], 14, i, false)).collect();
        assert_eq!(all.len(), 4 + 6 + 24);
        let old = |element| (0..3).map(|i| spelled(element, &[2], 10, i, false)).collect::<Vec<_>>();
        assert_eq!(old(Int64), ["Concat0(x)", "Concat0(x)", "Concat0(x)"], "what opset 10 has");
    }

    #[test]
    fn copies_of_a_scalar_are_of_operators_that_take_its_type() {
        use ElementType::*;
        assert_eq!(five(Float, &[])[..4], ["Mean(x)", "Sum(x)", "Einsum -> (x)", "Max(x)"]);
        assert_eq!(five(Float16, &[])[..2], ["Max(x)", "Min(x)"]);
        for element in [Int32, Int64, Uint32, Uint64] {
            let first = if matches!(element, Int32 | Int64) { "Einsum -> (x)" } else { "Max(x)" };
            assert_eq!(five(element, &[])[0], first);
            assert_eq!(spelled(element, &[], 11, 0, false), "Identity(x)", "there was neither of it");
        }
        assert_eq!(five(Bool, &[])[..3], ["Or(x, x)", "And(x, x)", "Or(x, x)"]);
        for element in [Bfloat16, Int8, Int16, Uint8, Uint16] {
            assert_eq!(five(element, &[])[..2], ["Identity(x)", "Identity(x)"]);
        }
        assert_eq!(five(Float8e5m2, &[2])[..2], ["Identity(x)", "Identity(x)"], "Concat takes none of it");
    }

    #[test]
    fn a_node_that_computes_is_no_copy() {
        let names = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        let is_copy_of = |op: &str, input: &[&str]| {
            let (op_type, input, output) = (Some(op.to_owned()), names(input), names(&["y"]));
            is_copy(&NodeProto { op_type, input, output, ..NodeProto::default() })
        };
        assert!(is_copy_of("Sum", &["x"]) && is_copy_of("Or", &["x", "x"]) && is_copy_of("Identity", &["x"]));
        assert!(!is_copy_of("Relu", &["x"]));
        assert!(!is_copy_of("Sum", &["x", "x"]) && !is_copy_of("Sum", &[]));
        assert!(!is_copy_of("Or", &["x", "y"]) && !is_copy_of("Xor", &["x", "x"]));
        assert!(!is_copy_of("Concat", &["x"]), "the axis is missing");
    }

    #[test]
    fn a_transposed_tensor_is_copied_by_an_einsum_of_its_rank() {
        use ElementType::*;
        let transposed = |element, dims: &[u64], opset| spelled(element, dims, opset, 0, true);
        assert_eq!(transposed(Float, &[2, 3, 4], 14), "Einsum abc->abc (x)");
        assert_eq!(transposed(Int64, &[7], 12), "Einsum a->a (x)");
        assert_eq!(transposed(Float, &[2, 3], 11), "Mean(x)", "there was no Einsum");
        assert_eq!(transposed(Bool, &[2, 3], 14), "Or(x, x)");
        assert_eq!(transposed(Float, &[1; 27], 14), "Mean(x)", "there are not so many letters");
    }

    #[test]
    fn an_einsum_that_moves_or_drops_elements_is_no_copy() {
        for equation in [&b"ab->ba"[..], b"aa->aa", b"ab->a", b"ab", b"...->...", b"\xff->\xff"] {
            assert!(!keeps_its_operand(equation), "{}", equation.escape_ascii());
        }
        assert!(keeps_its_operand(b"ab->ab"));
    }
}

//! The operators that stand for a copy over the link: which ones are written, and which ones are believed.

use lmsc_ir::{ElementType, Type};

use crate::proto::{AttributeProto, AttributeType, NodeProto};

/// Makes the node, which has its operand, one of the operators that copy it and that ONNX Runtime's optimizer leaves
/// alone. Swap-ins of one host copy must differ, or common-subexpression elimination merges them: `sibling` counts
/// them.
///
/// For scalars of a few types there is no such operator that the runtime has on the CPU. They become `Identity`, which
/// it removes: a swap of one or two bytes is lost then, and nothing else.
pub(crate) fn spell(proto: &mut NodeProto, ty: &Type, sibling: usize) {
    let tensor = ty.as_tensor();
    let element = tensor.map_or(ElementType::Float, |t| t.element);
    let rank = tensor.map_or(0, |t| t.dims.len());
    let elementwise = elementwise(element, rank);
    let concat = if is_concatenated(element) { rank } else { 0 };
    let (op, axis) = match elementwise.get(sibling) {
        Some(&op) => (op, None),
        None if concat > 0 => ("Concat", Some((sibling - elementwise.len()) % concat)),
        None if elementwise.is_empty() => ("Identity", None),
        None => (elementwise[sibling % elementwise.len()], None),
    };
    if reads_twice(op) {
        proto.input.extend(proto.input.first().cloned());
    }
    proto.op_type = Some(op.to_owned());
    proto.attribute.extend(axis.map(|axis| AttributeProto {
        name: Some("axis".to_owned()),
        i: Some(axis as i64),
        r#type: Some(AttributeType::Int as i32),
        ..AttributeProto::default()
    }));
}

/// Makes the node, which has its operand, an `Einsum` that copies it; false, and nothing, where there is none for its
/// type.
///
/// ONNX Runtime moves a transposition across every operator of [`spell`] to where another one cancels it. The copy would
/// be of what is transposed then, not of what is to leave.
pub(crate) fn spell_behind_transpose(proto: &mut NodeProto, ty: &Type, opset: i64) -> bool {
    use ElementType::{Double, Float, Int32, Int64};
    let Some(tensor) = ty.as_tensor() else { return false };
    let letters: String = ('a'..='z').take(tensor.dims.len()).collect();
    let taken = matches!(tensor.element, Float | Double | Int32 | Int64);
    if !taken || opset < 12 || letters.is_empty() || letters.len() < tensor.dims.len() {
        return false;
    }
    proto.op_type = Some("Einsum".to_owned());
    proto.attribute = vec![AttributeProto {
        name: Some("equation".to_owned()),
        s: Some(format!("{letters}->{letters}").into()),
        r#type: Some(AttributeType::String as i32),
        ..AttributeProto::default()
    }];
    true
}

/// Operators that copy when they read one tensor of this type, once or twice, and that onnxruntime 1.19.2 has on the
/// CPU.
fn elementwise(element: ElementType, rank: usize) -> &'static [&'static str] {
    use ElementType::*;
    match (element, rank) {
        (Float, _) => &["Max", "Sum", "Min", "Mean"],
        (Double, _) => &["Max", "Sum", "Min"],
        (Float16 | Int32 | Int64 | Uint32 | Uint64, 0) => &["Max", "Min"],
        (Bool, 0) => &["Or", "And"],
        _ => &[],
    }
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
    matches!(op, "Or" | "And")
}

/// Whether the equation, such as `ab->ab`, gives its operand: a letter that stood twice would give a diagonal.
fn keeps_its_operand(equation: &[u8]) -> bool {
    let Some((from, to)) = str::from_utf8(equation).ok().and_then(|text| text.split_once("->")) else {
        return false;
    };
    let distinct = from.bytes().enumerate().all(|(i, letter)| !from.as_bytes()[..i].contains(&letter));
    from == to && distinct && from.bytes().all(|letter| letter.is_ascii_lowercase())
}

/// Whether the node, of one of ONNX's operators, computes its first operand, whatever that is.
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

    fn copies(element: ElementType, dims: &[u64]) -> Vec<String> {
        let ty = Type::Tensor(TensorType { element, dims: dims.to_vec() });
        let one = |sibling| {
            let (input, output) = (vec!["x".to_owned()], vec!["y".to_owned()]);
            let mut proto = NodeProto { input, output, ..NodeProto::default() };
            spell(&mut proto, &ty, sibling);
            assert!(is_copy(&proto), "{proto:?}");
            let axis = proto.attribute.first().map(|a| a.i().to_string()).unwrap_or_default();
            format!("{}{axis}({})", proto.op_type(), proto.input.join(", "))
        };
        (0..5).map(one).collect()
    }

    #[test]
    fn copies_of_one_tensor_differ_and_are_of_operators_that_take_its_type() {
        use ElementType::*;
        assert_eq!(copies(Float, &[2, 3]), ["Max(x)", "Sum(x)", "Min(x)", "Mean(x)", "Concat0(x)"]);
        assert_eq!(copies(Double, &[2, 3]), ["Max(x)", "Sum(x)", "Min(x)", "Concat0(x)", "Concat1(x)"]);
        for element in [Float16, Bfloat16, Int8, Int64, Uint16, Bool, String, Complex64] {
            assert_eq!(copies(element, &[2, 3])[..3], ["Concat0(x)", "Concat1(x)", "Concat0(x)"]);
        }
    }

    #[test]
    fn copies_of_a_scalar_are_of_operators_that_take_its_type() {
        use ElementType::*;
        assert_eq!(copies(Float, &[])[..4], ["Max(x)", "Sum(x)", "Min(x)", "Mean(x)"]);
        for element in [Float16, Int32, Int64, Uint32, Uint64] {
            assert_eq!(copies(element, &[])[..3], ["Max(x)", "Min(x)", "Max(x)"]);
        }
        assert_eq!(copies(Bool, &[])[..3], ["Or(x, x)", "And(x, x)", "Or(x, x)"]);
        for element in [Bfloat16, Int8, Int16, Uint8, Uint16] {
            assert_eq!(copies(element, &[])[..2], ["Identity(x)", "Identity(x)"]);
        }
        assert_eq!(copies(Float8e5m2, &[2])[..2], ["Identity(x)", "Identity(x)"], "Concat takes none of it");
    }

    #[test]
    fn what_computes_something_else_is_no_copy() {
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
    fn what_was_transposed_is_copied_by_an_einsum_of_its_rank() {
        let spelled = |element, dims: &[u64], opset| {
            let ty = Type::Tensor(TensorType { element, dims: dims.to_vec() });
            let (input, output) = (vec!["x".to_owned()], vec!["y".to_owned()]);
            let mut proto = NodeProto { input, output, ..NodeProto::default() };
            let done = spell_behind_transpose(&mut proto, &ty, opset);
            assert_eq!(done, is_copy(&proto));
            done.then(|| String::from_utf8(proto.attribute[0].s().to_vec()).unwrap())
        };
        assert_eq!(spelled(ElementType::Float, &[2, 3, 4], 14).as_deref(), Some("abc->abc"));
        assert_eq!(spelled(ElementType::Int64, &[7], 12).as_deref(), Some("a->a"));
        assert_eq!(spelled(ElementType::Float, &[2, 3], 11), None, "there was no Einsum");
        assert_eq!(spelled(ElementType::Bool, &[2, 3], 14), None);
        assert_eq!(spelled(ElementType::Float, &[], 14), None);
        assert_eq!(spelled(ElementType::Float, &[1; 27], 14), None, "there are not so many letters");
    }

    #[test]
    fn an_einsum_that_moves_or_drops_elements_is_no_copy() {
        for equation in [&b"ab->ba"[..], b"aa->aa", b"ab->a", b"ab", b"...->...", b"\xff->\xff"] {
            assert!(!keeps_its_operand(equation), "{}", equation.escape_ascii());
        }
        assert!(keeps_its_operand(b"ab->ab"));
    }
}

//! Functions of the model itself.

use std::collections::BTreeMap;

use crate::proto::{FunctionProto, ModelProto};
use crate::{LMSC_DOMAIN, copy};

/// Whether the function is the body of one of our own operators.
pub(crate) fn is_swap_function(function: &FunctionProto) -> bool {
    function.domain() == LMSC_DOMAIN && ["SwapOut", "SwapIn"].contains(&function.name())
}

/// A function that the two models do not have alike, by its domain and name: what calls it is one operator in a graph,
/// whatever the function computes. Those of our own operators are left out: they are known to copy.
pub fn other_function(a: &ModelProto, b: &ModelProto) -> Option<String> {
    let table = |model: &'_ ModelProto| -> BTreeMap<_, _> {
        let functions = model.functions.iter().filter(|f| !is_swap_function(f)).cloned();
        functions
            .map(|f| ((f.domain().to_owned(), f.name().to_owned(), f.overload().to_owned()), f))
            .collect()
    };
    let (a, b) = (table(a), table(b));
    let other = a.keys().chain(b.keys()).find(|key| a.get(*key) != b.get(*key));
    other.map(|(domain, name, _)| format!("{domain}::{name}"))
}

/// Whether the function computes its first operand, whatever that is.
pub(crate) fn is_identity(function: &FunctionProto) -> bool {
    let [node] = &function.node[..] else { return false };
    let same = |names: &[String], of: &[String]| names.len() == 1 && names.first() == of.first();
    function.output.len() == 1
        && copy::is_copy(node)
        && same(&node.input, &function.input)
        && same(&node.output, &function.output)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::NodeProto;

    #[test]
    fn functions_of_one_name_are_told_apart() {
        let model = |op: &str, domain: &str| {
            let (name, domain) = (Some("F".to_owned()), Some(domain.to_owned()));
            let node = vec![NodeProto { op_type: Some(op.to_owned()), ..NodeProto::default() }];
            let functions = vec![FunctionProto { name, domain, node, ..FunctionProto::default() }];
            ModelProto { functions, ..ModelProto::default() }
        };
        assert_eq!(other_function(&model("Relu", "my"), &model("Relu", "my")), None);
        assert_eq!(other_function(&model("Relu", "my"), &model("Tanh", "my")), Some("my::F".to_owned()));
        assert_eq!(other_function(&model("Relu", "a"), &model("Relu", "b")), Some("a::F".to_owned()));
        assert_eq!(other_function(&ModelProto::default(), &model("Relu", "my")), Some("my::F".to_owned()));
    }
}

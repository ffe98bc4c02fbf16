//! Functions of the model itself: those of our own operators, and others.

use std::collections::BTreeMap;

use crate::proto::{
    AttributeProto, AttributeType, FunctionProto, ModelProto, NodeProto, OperatorSetIdProto,
    StringStringEntryProto,
};
use crate::{LMSC_DOMAIN, copy, key};

/// The form in which swaps are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SwapForm {
    /// As calls of model-local functions `ai.lmsc::SwapOut` and `ai.lmsc::SwapIn` whose body is `Identity`: every runtime
    /// computes the same result, and one that knows the domain can execute them as copies.
    #[default]
    Function,
    /// As operators that copy their operand and that ONNX Runtime's optimizer does not remove, with the placement in `layer_ann`.
    Ort,
}

/// The layer of ONNX Runtime that copies to the host are assigned to.
pub(crate) const HOST_LAYER: &str = "lms_host";

/// Number of control operands of `ai.lmsc::SwapIn`, in addition to its tensor.
pub(crate) const CONTROL_OPERANDS: usize = 8;

/// An operator of our own: a model-local function, which defines the computation of a runtime without the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ours {
    SwapOut,
    SwapIn,
    /// The copy of a range of elements to the host.
    SwapOutRange,
    /// The copy of a range of elements from the host. Several copies of one range must differ in the form for ONNX Runtime, which
    /// would otherwise merge them: `sibling` is the number of those before this one.
    SwapInRange {
        sibling: usize,
    },
    /// Combines `pieces` pieces and, if `stayed` is set, the base tensor into the whole.
    Join {
        pieces: usize,
        stayed: bool,
    },
}

impl Ours {
    /// The operator of this name.
    pub(crate) fn of_name(name: &str) -> Option<Ours> {
        let ours = match name {
            "SwapOut" => Ours::SwapOut,
            "SwapIn" => Ours::SwapIn,
            "SwapOutRange" => Ours::SwapOutRange,
            "SwapInRange" => Ours::SwapInRange { sibling: 0 },
            _ if name.starts_with("SwapInRange") => {
                Ours::SwapInRange { sibling: name["SwapInRange".len()..].parse().ok()? }
            }
            _ => {
                let rest = name.strip_prefix("Join")?;
                let (stayed, pieces) =
                    rest.strip_prefix("All").map_or((true, rest), |pieces| (false, pieces));
                Ours::Join { pieces: pieces.parse().ok().filter(|&pieces| pieces > 0)?, stayed }
            }
        };
        (ours.name() == name).then_some(ours)
    }

    /// The operator of the node.
    pub(crate) fn of_node(node: &NodeProto) -> Option<Ours> {
        Ours::of_name(node.op_type()).filter(|_| node.domain() == LMSC_DOMAIN)
    }

    /// The operator whose body the function is.
    pub(crate) fn of_function(function: &FunctionProto) -> Option<Ours> {
        Ours::of_name(function.name()).filter(|_| function.domain() == LMSC_DOMAIN)
    }

    pub(crate) fn name(self) -> String {
        match self {
            Ours::SwapOut => "SwapOut".to_owned(),
            Ours::SwapIn => "SwapIn".to_owned(),
            Ours::SwapOutRange => "SwapOutRange".to_owned(),
            Ours::SwapInRange { sibling: 0 } => "SwapInRange".to_owned(),
            Ours::SwapInRange { sibling } => format!("SwapInRange{sibling}"),
            Ours::Join { pieces, stayed: true } => format!("Join{pieces}"),
            Ours::Join { pieces, stayed: false } => format!("JoinAll{pieces}"),
        }
    }

    /// The operator's name in the graph, where ranges are distinguished by attributes.
    pub(crate) fn in_graph(self) -> &'static str {
        match self {
            Ours::SwapOut | Ours::SwapOutRange => "SwapOut",
            Ours::SwapIn | Ours::SwapInRange { .. } => "SwapIn",
            Ours::Join { .. } => "Join",
        }
    }

    pub(crate) fn attributes(self) -> &'static [&'static str] {
        match self {
            Ours::SwapOut | Ours::SwapIn => &[],
            Ours::SwapOutRange | Ours::SwapInRange { .. } => &["begin", "end"],
            Ours::Join { stayed: true, .. } => &["begins"],
            Ours::Join { stayed: false, .. } => &["begins", "dims"],
        }
    }

    /// Minimum and maximum number of operands.
    pub(crate) fn operands(self) -> (usize, usize) {
        match self {
            Ours::SwapOut | Ours::SwapOutRange | Ours::SwapInRange { .. } => (1, 1),
            Ours::SwapIn => (1, 1 + CONTROL_OPERANDS),
            Ours::Join { pieces, stayed } => {
                let all = pieces.saturating_add(usize::from(stayed));
                (all, all)
            }
        }
    }

    /// The function in the form in which it is written.
    pub(crate) fn function(self, form: SwapForm, model: &ModelProto) -> FunctionProto {
        match self {
            Ours::SwapOut => identity(self, 0, model),
            Ours::SwapIn => identity(self, CONTROL_OPERANDS, model),
            Ours::SwapOutRange | Ours::SwapInRange { .. } => range(self, form, model),
            Ours::Join { pieces, stayed } => join(pieces, stayed, model),
        }
    }

    /// Whether the function, which has the name of this operator, computes the operator.
    pub(crate) fn is_computed_by(self, function: &FunctionProto) -> bool {
        if matches!(self, Ours::SwapOut | Ours::SwapIn) {
            return is_identity(function);
        }
        // The size of a function that is accepted must not be unbounded.
        self.operands().1 == function.input.len()
            && [SwapForm::Function, SwapForm::Ort].into_iter().any(|form| {
                let written = self.function(form, &ModelProto::default());
                written.input == function.input
                    && written.output == function.output
                    && written.attribute == function.attribute
                    && written.attribute_proto == function.attribute_proto
                    && written.node == function.node
            })
    }
}

/// A function, by its domain and name, that differs between the two models: a call of it is a single operator in a graph.
/// Functions of our own operators are ignored: they are known to be copies.
pub fn other_function(a: &ModelProto, b: &ModelProto) -> Option<String> {
    let table = |model: &'_ ModelProto| -> BTreeMap<_, _> {
        let functions = model.functions.iter().filter(|f| Ours::of_function(f).is_none()).cloned();
        functions
            .map(|f| ((f.domain().to_owned(), f.name().to_owned(), f.overload().to_owned()), f))
            .collect()
    };
    let (a, b) = (table(a), table(b));
    let other = a.keys().chain(b.keys()).find(|key| a.get(*key) != b.get(*key));
    other.map(|(domain, name, _)| format!("{domain}::{name}"))
}

/// Whether the function is the identity of its first operand, for any operand.
fn is_identity(function: &FunctionProto) -> bool {
    let [node] = &function.node[..] else { return false };
    let same = |names: &[String], of: &[String]| names.len() == 1 && names.first() == of.first();
    function.output.len() == 1
        && copy::is_copy(node)
        && same(&node.input, &function.input)
        && same(&node.output, &function.output)
}

/// The identity function, with operands that only add order.
fn identity(ours: Ours, controls: usize, model: &ModelProto) -> FunctionProto {
    let mut body = Body::default();
    body.node("Identity", &["x"], "y");
    let inputs = std::iter::once("x".to_owned()).chain((0..controls).map(|i| format!("c{i}")));
    body.function(ours, inputs, model)
}

/// The function that copies the range from `begin` to `end` of the elements of `x`.
///
/// In the form for ONNX Runtime the last node is a copying operator that its optimizer does not remove.
fn range(ours: Ours, form: SwapForm, model: &ModelProto) -> FunctionProto {
    let mut body = Body::default();
    body.ints("all", &[-1]);
    body.node("Reshape", &["x", "all"], "flat");
    for bound in ["begin", "end"] {
        body.attribute(&format!("{bound}_scalar"), "value_int", bound, AttributeType::Int);
        body.node("Reshape", &[&format!("{bound}_scalar"), "all"], bound);
    }
    match form {
        SwapForm::Function => body.node("Slice", &["flat", "begin", "end"], "y"),
        SwapForm::Ort => {
            body.node("Slice", &["flat", "begin", "end"], "range");
            let mut copy = NodeProto {
                input: vec!["range".to_owned()],
                output: vec!["y".to_owned()],
                ..NodeProto::default()
            };
            match ours {
                Ours::SwapInRange { sibling } => copy::spell_list(&mut copy, sibling),
                _ => {
                    copy::spell_list(&mut copy, 0);
                    copy.metadata_props.push(StringStringEntryProto {
                        key: Some(key::LAYER.to_owned()),
                        value: Some(HOST_LAYER.to_owned()),
                    });
                }
            }
            body.nodes.push(copy);
        }
    }
    body.function(ours, ["x".to_owned()], model)
}

/// The function that combines pieces that begin at the elements `begins`; the other elements are those of `base`, if there is
/// one; otherwise the whole has the extents `dims`.
fn join(pieces: usize, stayed: bool, model: &ModelProto) -> FunctionProto {
    let mut body = Body::default();
    let mut parts = Vec::with_capacity(2 * pieces + 1);
    if stayed {
        body.ints("all", &[-1]);
        body.ints("at_0", &[0]);
        body.ints("last", &[i64::MAX]);
        body.attribute("begins", "value_ints", "begins", AttributeType::Ints);
        body.node("Shape", &["base"], "shape");
        body.node("Reshape", &["base", "all"], "flat");
    } else {
        body.attribute("shape", "value_ints", "dims", AttributeType::Ints);
    }
    for i in 0..pieces {
        let named = |name: &str| format!("{name}_{i}");
        if stayed {
            body.ints(&named("index"), &[i as i64]);
            body.ints(&named("next"), &[i as i64 + 1]);
            body.node("Slice", &["begins", &named("index"), &named("next")], &named("begin"));
            body.node("Slice", &["flat", &named("at"), &named("begin")], &named("stayed"));
            body.node("Shape", &[&named("p")], &named("count"));
            body.node("Add", &[&named("begin"), &named("count")], &format!("at_{}", i + 1));
            parts.push(named("stayed"));
        }
        parts.push(named("p"));
    }
    if stayed {
        body.node("Slice", &["flat", &format!("at_{pieces}"), "last"], "rest");
        parts.push("rest".to_owned());
    }
    body.concat(&parts, "elements");
    body.node("Reshape", &["elements", "shape"], "y");
    let base = stayed.then(|| "base".to_owned());
    let inputs = base.into_iter().chain((0..pieces).map(|i| format!("p_{i}")));
    body.function(Ours::Join { pieces, stayed }, inputs, model)
}

/// Nodes of a function, of ONNX's own operators.
#[derive(Default)]
struct Body {
    nodes: Vec<NodeProto>,
}

impl Body {
    fn node(&mut self, op: &str, inputs: &[&str], output: &str) {
        self.nodes.push(NodeProto {
            op_type: Some(op.to_owned()),
            input: inputs.iter().map(|&name| name.to_owned()).collect(),
            output: vec![output.to_owned()],
            ..NodeProto::default()
        });
    }

    /// Concatenates tensors of one dimension.
    fn concat(&mut self, inputs: &[String], output: &str) {
        let inputs: Vec<&str> = inputs.iter().map(|name| &**name).collect();
        self.node("Concat", &inputs, output);
        let axis = AttributeProto { i: Some(0), ..named("axis", AttributeType::Int) };
        self.nodes.last_mut().expect("it was just added").attribute.push(axis);
    }

    fn ints(&mut self, output: &str, values: &[i64]) {
        self.node("Constant", &[], output);
        let value = AttributeProto { ints: values.to_vec(), ..named("value_ints", AttributeType::Ints) };
        self.nodes.last_mut().expect("it was just added").attribute.push(value);
    }

    /// A constant that is an attribute of the call.
    fn attribute(&mut self, output: &str, value: &str, attribute: &str, kind: AttributeType) {
        self.node("Constant", &[], output);
        let value = AttributeProto { ref_attr_name: Some(attribute.to_owned()), ..named(value, kind) };
        self.nodes.last_mut().expect("it was just added").attribute.push(value);
    }

    fn function(
        self,
        ours: Ours,
        inputs: impl IntoIterator<Item = String>,
        model: &ModelProto,
    ) -> FunctionProto {
        // Slice takes its bounds as operands since version 10, Constant its integers since 12.
        const LEAST: i64 = 13;
        let version = model.opset_import.iter().find(|o| o.domain().is_empty()).map(|o| o.version());
        let needed = if self.nodes.len() > 1 { LEAST } else { 1 };
        FunctionProto {
            name: Some(ours.name()),
            domain: Some(LMSC_DOMAIN.to_owned()),
            input: inputs.into_iter().collect(),
            output: vec!["y".to_owned()],
            attribute: ours.attributes().iter().map(|&name| name.to_owned()).collect(),
            node: self.nodes,
            opset_import: vec![OperatorSetIdProto {
                domain: Some(String::new()),
                version: Some(version.unwrap_or(LEAST).max(needed)),
            }],
            ..FunctionProto::default()
        }
    }
}

fn named(name: &str, kind: AttributeType) -> AttributeProto {
    AttributeProto { name: Some(name.to_owned()), r#type: Some(kind as i32), ..AttributeProto::default() }
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

//! The update of one variable by an optimizer that works on sequences.
//!
//! In the graph it is one node of the domain `ai.lmsc`, whose operands are the optimizer's scalars, the variable, its gradient
//! and its state. In a file it is written with the operators of onnxruntime-training: sequences of one element around its
//! optimizer. A model-local function cannot express it: ONNX Runtime's type inference, which is strict inside functions, takes
//! the flag of `AdamWOptimizer` for int64 there and refuses the model.

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};

use crate::file::Model;
use crate::proto::{AttributeProto, AttributeType, GraphProto, NodeProto};
use crate::{LMSC_DOMAIN, key, set_metadata};

const SOURCE_DOMAIN: &str = lmsc_ir::domains::MS;

/// The differences between the optimizers.
pub(crate) struct Optimizer {
    /// The operator of the domain `ai.lmsc` that updates one variable.
    pub(crate) op: &'static str,
    /// The operator over sequences.
    pub(crate) source_op: &'static str,
    /// Operands before the first sequence.
    pub(crate) scalars: &'static [&'static str],
    /// Suffixes of the state of each parameter.
    pub(crate) moments: &'static [&'static str],
}

impl Optimizer {
    /// The optimizer whose operator over sequences the node is.
    pub(crate) fn over_sequences(node: &NodeProto) -> Option<&'static Optimizer> {
        OPTIMIZERS.iter().find(|o| node.domain() == SOURCE_DOMAIN && node.op_type() == o.source_op)
    }

    /// The optimizer whose operator on one variable the node is, with the right number of operands. (A text may contain
    /// anything.)
    fn on_one_variable(node: &NodeProto) -> Option<&'static Optimizer> {
        OPTIMIZERS.iter().find(|o| {
            node.domain() == LMSC_DOMAIN
                && node.op_type() == o.op
                && node.input.len() == o.scalars.len() + o.moments.len() + 2
                && node.output.len() <= o.moments.len() + 1
        })
    }
}

const OPTIMIZERS: &[Optimizer] = &[
    Optimizer {
        op: "AdamWOptimizer",
        source_op: "AdamWOptimizer",
        scalars: &["lr", "step"],
        moments: &[".exp_avg", ".exp_avg_sq"],
    },
    Optimizer { op: "SGDOptimizer", source_op: "SGDOptimizerV2", scalars: &["lr"], moments: &[] },
];

/// Whether the node gets metadata when it is spelled out.
pub(crate) fn gets_metadata(node: &NodeProto) -> bool {
    Optimizer::on_one_variable(node).is_some()
}

/// The nodes with every update of one variable spelled out. `claim` gives names that are not taken.
pub(crate) fn spell_out(nodes: Vec<NodeProto>, claim: &mut dyn FnMut(&str) -> String) -> Vec<NodeProto> {
    let mut out = Vec::with_capacity(nodes.len());
    for node in nodes {
        match Optimizer::on_one_variable(&node) {
            Some(optimizer) => spell_out_one(node, optimizer, claim, &mut out),
            None => out.push(node),
        }
    }
    out
}

fn spell_out_one(
    node: NodeProto,
    optimizer: &Optimizer,
    claim: &mut dyn FnMut(&str) -> String,
    out: &mut Vec<NodeProto>,
) {
    let name = node.name().to_owned();
    let call = |op: &str, input: Vec<String>, output: &str| NodeProto {
        op_type: Some(op.to_owned()),
        input,
        output: vec![output.to_owned()],
        ..NodeProto::default()
    };
    let (scalars, tensors) = node.input.split_at(optimizer.scalars.len());
    let mut operands = scalars.to_vec();
    for (tensor, letter) in tensors.iter().zip(["w", "g", "m", "v"]) {
        let list = claim(&format!("{name}.{letter}"));
        out.push(call("SequenceConstruct", vec![tensor.clone()], &list));
        operands.push(list);
    }
    let mut results = vec![claim(&format!("{name}.flag"))];
    let states = ["w", "m", "v"].into_iter().take(1 + optimizer.moments.len());
    results.extend(states.map(|l| claim(&format!("{name}.{l}_new"))));
    let zero = claim(&format!("{name}.zero"));
    let mut constant = call("Constant", Vec::new(), &zero);
    constant.attribute.push(AttributeProto {
        name: Some("value_int".to_owned()),
        i: Some(0),
        r#type: Some(AttributeType::Int as i32),
        ..AttributeProto::default()
    });
    let elements: Vec<NodeProto> = results[1..]
        .iter()
        .zip(&node.output)
        .filter(|(_, element)| !element.is_empty())
        .map(|(list, element)| call("SequenceAt", vec![list.clone(), zero.clone()], element))
        .collect();
    let mut update = NodeProto {
        op_type: Some(optimizer.source_op.to_owned()),
        domain: Some(SOURCE_DOMAIN.to_owned()),
        input: operands,
        output: results,
        ..node
    };
    set_metadata(&mut update.metadata_props, key::UPDATE, Some(optimizer.op.to_owned()));
    out.extend([update, constant]);
    out.extend(elements);
}

/// Turns every update of one variable that was spelled out into one node again; returns whether there were any.
///
/// The metadata of the optimizer's node marks it, and the operators around it must match: any other pattern is left as it is, and
/// is read literally.
pub(crate) fn gather(model: &mut Model) -> bool {
    let Some(graph) = &mut model.proto.graph else { return false };
    let is_ours = |n: &NodeProto| n.metadata_props.iter().any(|p| p.key() == key::UPDATE);
    let nodes = &graph.node;
    if !nodes.iter().any(is_ours) {
        return false;
    }
    let uses = Uses::of(graph);
    let mut gone: HashSet<usize> = HashSet::new();
    let mut gathered: HashMap<usize, NodeProto> = HashMap::new();
    for (index, node) in nodes.iter().enumerate().filter(|(_, n)| is_ours(n)) {
        if let Some((update, parts)) = gather_one(nodes, node, &uses) {
            gathered.insert(index, update);
            gone.extend(parts);
        }
    }
    if gathered.is_empty() {
        return false;
    }
    let old = std::mem::take(&mut graph.node).into_iter().enumerate();
    let kept = old.filter(|(index, _)| !gone.contains(index));
    graph.node = kept.map(|(index, node)| gathered.remove(&index).unwrap_or(node)).collect();
    crate::import_opset(&mut model.proto, LMSC_DOMAIN, 1);
    true
}

/// The update, and the positions of the nodes around the optimizer's node that it replaces.
fn gather_one(nodes: &[NodeProto], node: &NodeProto, uses: &Uses<'_>) -> Option<(NodeProto, Vec<usize>)> {
    let optimizer = Optimizer::over_sequences(node)?;
    let tensors = 2 + optimizer.moments.len();
    let states = 1 + optimizer.moments.len();
    if node.input.len() != optimizer.scalars.len() + tensors || node.output.len() != 1 + states {
        return None;
    }
    let standard = |index: usize, op: &str| nodes[index].domain().is_empty() && nodes[index].op_type() == op;
    let mut parts = Vec::new();
    let (scalars, lists) = node.input.split_at(optimizer.scalars.len());
    let mut input = scalars.to_vec();
    for list in lists {
        let &maker = uses.producer.get(list.as_str())?;
        let [element] = &nodes[maker].input[..] else { return None };
        if !standard(maker, "SequenceConstruct") || uses.readers(list).len() != 1 {
            return None;
        }
        input.push(element.clone());
        parts.push(maker);
    }
    if !uses.readers(&node.output[0]).is_empty() {
        return None;
    }
    let mut output = Vec::new();
    for list in &node.output[1..] {
        let element = match *uses.readers(list) {
            [] => String::new(),
            [Some(reader)] if standard(reader, "SequenceAt") && nodes[reader].input.len() == 2 => {
                let &zero = uses.producer.get(nodes[reader].input[1].as_str())?;
                if !standard(zero, "Constant") || !is_zero(&nodes[zero]) {
                    return None;
                }
                parts.push(reader);
                // A constant that other nodes also read is kept, but not read by the update.
                let ours = |r: &Option<usize>| {
                    r.is_some_and(|r| nodes[r].input.first().is_some_and(|l| node.output.contains(l)))
                };
                if uses.readers(&nodes[reader].input[1]).iter().all(ours) {
                    parts.push(zero);
                }
                nodes[reader].output.first().cloned().unwrap_or_default()
            }
            _ => return None,
        };
        output.push(element);
    }
    let mut update = NodeProto {
        op_type: Some(optimizer.op.to_owned()),
        domain: Some(LMSC_DOMAIN.to_owned()),
        input,
        output,
        ..node.clone()
    };
    set_metadata(&mut update.metadata_props, key::UPDATE, None);
    Some((update, parts))
}

fn is_zero(constant: &NodeProto) -> bool {
    let [value] = &constant.attribute[..] else { return false };
    value.name() == "value_int" && value.i == Some(0)
}

/// The producers and the readers of the values of a graph.
pub(crate) struct Uses<'g> {
    producer: HashMap<&'g str, usize>,
    /// Nodes, or `None` for the graph's outputs.
    readers: HashMap<&'g str, Vec<Option<usize>>>,
}

impl<'g> Uses<'g> {
    pub(crate) fn of(graph: &'g GraphProto) -> Uses<'g> {
        let mut uses = Uses { producer: HashMap::new(), readers: HashMap::new() };
        for (index, node) in graph.node.iter().enumerate() {
            uses.producer.extend(node.output.iter().map(|o| (o.as_str(), index)));
            for input in &node.input {
                uses.readers.entry(input).or_default().push(Some(index));
            }
        }
        for output in &graph.output {
            uses.readers.entry(output.name()).or_default().push(None);
        }
        uses
    }

    pub(crate) fn readers(&self, value: &str) -> &[Option<usize>] {
        self.readers.get(value).map_or(&[], |r| r)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{ModelProto, ValueInfoProto};

    /// Two updates of one variable each, as the linker makes them, and their model.
    fn model() -> Model {
        let value =
            |name: &&str| ValueInfoProto { name: Some((*name).to_owned()), ..ValueInfoProto::default() };
        let node = |op: &str, name: &str, input: &str, output: &str| NodeProto {
            op_type: Some(op.to_owned()),
            domain: Some(LMSC_DOMAIN.to_owned()),
            name: Some(name.to_owned()),
            input: input.split(' ').map(str::to_owned).collect(),
            output: output.split(' ').map(str::to_owned).collect(),
            ..NodeProto::default()
        };
        let mut proto = ModelProto::default();
        crate::import_opset(&mut proto, LMSC_DOMAIN, 1);
        proto.graph = Some(GraphProto {
            // The second is a name that spelling out would take.
            input: ["lr", "a.update.w", "a", "a_grad"].iter().map(value).collect(),
            output: ["a_new", "b_new", "m_new", "v_new"].iter().map(value).collect(),
            node: vec![
                node("SGDOptimizer", "a.update", "lr a a_grad", "a_new"),
                node("AdamWOptimizer", "b.update", "lr t b b_grad m v", "b_new m_new v_new"),
            ],
            ..GraphProto::default()
        });
        Model { proto, name: "step.onnx".to_owned(), folder: None, mapped: Vec::new() }
    }

    fn spelled(mut model: Model) -> Model {
        let graph = model.proto.graph.as_mut().unwrap();
        let nodes = std::mem::take(&mut graph.node);
        let given: HashSet<String> = graph.input.iter().map(|i| i.name().to_owned()).collect();
        let made: HashSet<String> = nodes.iter().flat_map(|n| n.output.iter().cloned()).collect();
        let free = |name: &String| !given.contains(name) && !made.contains(name);
        let numbered = |base: &str| (2..).map(|i| format!("{base}_{i}")).find(&free).unwrap();
        graph.node = spell_out(nodes, &mut |base| {
            Some(base.to_owned()).filter(&free).unwrap_or_else(|| numbered(base))
        });
        model
    }

    #[test]
    fn expanded_updates_are_gathered_again() {
        let mut back = spelled(model());
        let graph = back.proto.graph.as_ref().unwrap();
        assert!(graph.node.iter().all(|n| n.domain() != LMSC_DOMAIN));
        assert_eq!(graph.node[0].output, ["a.update.w_2"]);
        assert!(gather(&mut back));
        assert_eq!(back.proto, model().proto);
        assert!(!gather(&mut back));
    }

    #[test]
    fn updates_without_a_request_are_not_gathered() {
        let mut step = model();
        let nodes = &mut step.proto.graph.as_mut().unwrap().node;
        // No moments, and no results at all.
        nodes[1].output.truncate(1);
        let mut back = spelled(step.clone());
        assert!(gather(&mut back));
        let node = &back.proto.graph.as_ref().unwrap().node[1];
        assert_eq!(node.output, ["b_new", "", ""]);
        // Missing or superfluous operands are not corrected.
        for count in [0, 1, 5, 7] {
            let mut odd = model();
            let nodes = &mut odd.proto.graph.as_mut().unwrap().node;
            nodes[1].input.resize(count, "m".to_owned());
            let before = nodes[1].clone();
            assert_eq!(spelled(odd).proto.graph.unwrap().node.last(), Some(&before));
        }
    }

    #[test]
    fn other_expressions_are_left_unchanged() {
        let damages: [fn(&mut Vec<NodeProto>); 4] = [
            |nodes| {
                nodes
                    .iter_mut()
                    .filter(|n| n.op_type() == "Constant")
                    .for_each(|n| n.attribute[0].i = Some(1))
            },
            |nodes| {
                let lists = nodes.iter_mut().filter(|n| n.op_type() == "SequenceConstruct");
                lists.for_each(|n| n.input.push("a".to_owned()));
            },
            |nodes| {
                let elements = nodes.iter_mut().filter(|n| n.op_type() == "SequenceAt");
                elements.for_each(|n| n.op_type = Some("SequenceErase".to_owned()));
            },
            |nodes| {
                let flags: Vec<String> = nodes.iter().flat_map(|n| n.output.iter().cloned()).collect();
                let flags = flags.into_iter().filter(|f| f.ends_with(".flag")).collect();
                nodes.push(NodeProto { input: flags, ..NodeProto::default() });
            },
        ];
        for damage in damages {
            let mut model = spelled(model());
            damage(&mut model.proto.graph.as_mut().unwrap().node);
            let before = model.proto.clone();
            assert!(!gather(&mut model));
            assert_eq!(model.proto, before);
        }
    }
}

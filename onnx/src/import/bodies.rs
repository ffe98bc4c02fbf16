//! Types of results of nodes that have nodes inside: calls of the model's functions, and branches.

use std::cell::Cell;
use std::collections::BTreeMap;

use foldhash::{HashMap, HashMapExt, HashSet};
use lmsc_ir::{Attr, LMSC_DOMAIN, Name, Op};
use prost::Message;

use super::read::{declaration, read_attribute, read_tensor};
use super::{Dims, domain};
use crate::file::Model;
use crate::proto::{FunctionProto, NodeProto, OperatorSetIdProto, ValueInfoProto};
use crate::shapes::{self, Const, Declared, Fact, Operand, Query, ShapeError, Wanted};

/// How deep subgraphs and functions are followed.
pub(super) const MOST_DEPTH: usize = 32;
/// How many nodes of function bodies and branches are looked at, each as often as it is; what is large counts for more.
const MOST_STEPS: u64 = 1_000_000;
/// Constants of a body are read again with every call: so many bytes count as a node.
const BYTES_A_STEP: usize = 256;

/// Nodes inside of nodes: functions of the model, and branches.
pub(super) struct Bodies<'m> {
    functions: HashMap<(&'m str, &'m str, &'m str), &'m FunctionProto>,
    opsets: BTreeMap<&'m str, i64>,
    steps: Cell<u64>,
}

/// The attributes of the call that a body belongs to, by name.
pub(super) type Caller<'a> = HashMap<&'a str, &'a Attr>;
/// The types of values that nodes outside define.
pub(super) type Outer<'a> = &'a dyn Fn(&str) -> Option<Fact>;

impl<'m> Bodies<'m> {
    pub(super) fn new(model: &'m Model) -> Bodies<'m> {
        let key = |f: &'m FunctionProto| ((f.domain(), f.name(), f.overload()), f);
        let opset = |o: &'m OperatorSetIdProto| (o.domain(), o.version());
        Bodies {
            functions: model.proto.functions.iter().map(key).collect(),
            opsets: model.proto.opset_import.iter().map(opset).collect(),
            steps: Cell::new(0),
        }
    }

    /// The function of this domain, name and overload. Those of our own domain have rules instead.
    pub(super) fn function(&self, key: (&str, &str, &str)) -> Option<&'m FunctionProto> {
        self.functions.get(&key).copied().filter(|_| key.0 != LMSC_DOMAIN)
    }

    /// What is known about the results of `node`, a call, a branch or an operator.
    pub(super) fn infer<'a>(
        &self,
        node: &NodeProto,
        function: Option<&'m FunctionProto>,
        query: &'a Query<'a>,
        outer: Outer<'_>,
        caller: &Caller<'_>,
        depth: usize,
    ) -> Result<Vec<Option<Fact>>, ShapeError> {
        let branches = query.op.key() == ("", "If");
        if function.is_none() && !branches {
            return shapes::infer(query);
        }
        let said =
            |w: &Option<Wanted<'_>>| w.is_none_or(|w| w.declared.is_some_and(|d| d.complete().is_some()));
        if query.results.iter().all(said) {
            return shapes::settle(query, Vec::new(), "");
        }
        let inside = match function {
            Some(function) => self.call(function, query, depth),
            None => self.branch(node, query, outer, caller, depth),
        };
        match inside {
            Ok(facts) => shapes::settle(query, facts, "its body does not say"),
            Err(reason) => shapes::settle(query, Vec::new(), &format!("{OF_ITS_BODY}{reason}")),
        }
    }

    fn call(
        &self,
        function: &'m FunctionProto,
        query: &Query<'_>,
        depth: usize,
    ) -> Result<Vec<Option<Fact>>, String> {
        let mut facts: HashMap<&str, Fact> = HashMap::new();
        for (name, operand) in function.input.iter().zip(query.operands) {
            if let Some(operand) = operand {
                facts.insert(name, Fact { ty: operand.ty.clone(), value: operand.value.cloned() });
            }
        }
        let defaults = function.attribute_proto.iter();
        let defaults = defaults.map(|default| Ok((default.name(), read_attribute(default)?)));
        let defaults = defaults.collect::<Result<Vec<(&str, Attr)>, String>>()?;
        let mut caller: Caller<'_> = defaults.iter().map(|(name, attr)| (*name, attr)).collect();
        caller.extend(query.attributes.iter().map(|(name, attr)| (&**name, attr)));
        let opsets = function.opset_import.iter().map(|o| (o.domain(), o.version())).collect();
        let nothing = |_: &str| None;
        let body =
            Body { nodes: &function.node, declared: &function.value_info, opsets: &opsets, caller: &caller };
        self.walk(&body, &mut facts, &nothing, depth)?;
        Ok(function.output.iter().map(|name| facts.get(&**name).cloned()).collect())
    }

    fn branch(
        &self,
        node: &NodeProto,
        query: &Query<'_>,
        outer: Outer<'_>,
        caller: &Caller<'_>,
        depth: usize,
    ) -> Result<Vec<Option<Fact>>, String> {
        let taken =
            query.operands.first().copied().flatten().and_then(|o| o.value?.as_ints()?.first().copied());
        let mut both: Option<Vec<Option<Fact>>> = None;
        for (name, value) in [("then_branch", 1), ("else_branch", 0)] {
            if taken.is_some_and(|t| t != value) {
                continue;
            }
            let graph = node.attribute.iter().find(|a| a.name() == name).and_then(|a| a.g.as_deref());
            let Some(graph) = graph else { return Err(format!("attribute `{name}` is missing")) };
            let mut facts: HashMap<&str, Fact> = HashMap::new();
            for tensor in &graph.initializer {
                self.step(1 + tensor.encoded_len() / BYTES_A_STEP)?;
                let (ty, data) = read_tensor(tensor, "initializer").map_err(|e| e.to_string())?;
                let value = Const::decode(&ty, &data);
                facts.insert(tensor.name(), Fact { ty: ty.into(), value });
            }
            let body = Body { nodes: &graph.node, declared: &graph.value_info, opsets: &self.opsets, caller };
            self.walk(&body, &mut facts, outer, depth)?;
            let results =
                graph.output.iter().map(|o| facts.get(o.name()).cloned().or_else(|| outer(o.name())));
            let results: Vec<Option<Fact>> = results.collect();
            both = Some(match both {
                None => results,
                Some(first) => first
                    .into_iter()
                    .zip(results)
                    .map(|(a, b)| match (a, b) {
                        (Some(a), Some(b)) if a.ty == b.ty => {
                            Some(Fact { value: a.value.filter(|v| b.value.as_ref() == Some(v)), ty: a.ty })
                        }
                        _ => None,
                    })
                    .collect(),
            });
        }
        both.ok_or_else(|| "no branch is taken".to_owned())
    }

    /// Counts what is looked at.
    fn step(&self, count: usize) -> Result<(), String> {
        self.steps.set(self.steps.get().saturating_add(count as u64));
        if self.steps.get() > MOST_STEPS {
            return Err(format!("all bodies together have more than {MOST_STEPS} nodes"));
        }
        Ok(())
    }

    /// Adds what is known about every value of the body to `facts`.
    fn walk<'b>(
        &self,
        body: &Body<'b, '_>,
        facts: &mut HashMap<&'b str, Fact>,
        outer: Outer<'_>,
        depth: usize,
    ) -> Result<(), String> {
        if depth >= MOST_DEPTH {
            return Err(format!("it calls itself, or stands more than {MOST_DEPTH} deep"));
        }
        self.step(body.nodes.len() + body.declared.len() + 1)?;
        let declared: HashMap<&str, Declared> =
            body.declared.iter().filter_map(|i| Some((i.name(), declaration(i, &Dims::none())?))).collect();
        let defined: HashSet<&str> = body.nodes.iter().flat_map(|n| &n.output).map(|o| &**o).collect();
        for node in body.nodes {
            self.step(node.encoded_len() / BYTES_A_STEP)?;
            let mut attributes: Vec<(Name, Attr)> = Vec::with_capacity(node.attribute.len());
            for attribute in &node.attribute {
                match attribute.ref_attr_name() {
                    "" => attributes.push((attribute.name().into(), read_attribute(attribute)?)),
                    // What the caller leaves out, the node leaves out.
                    name => {
                        let given = body.caller.get(name);
                        attributes.extend(given.map(|&attr| (attribute.name().into(), attr.clone())));
                    }
                }
            }
            let found = node
                .input
                .iter()
                .map(|name| match &**name {
                    "" => Ok(None),
                    name => match facts.get(name).cloned().or_else(|| outer(name)) {
                        Some(fact) => Ok(Some((name, fact))),
                        // An operand of a function that its caller left out.
                        None if !defined.contains(name) => Ok(None),
                        None => Err(format!("value `{name}` is read before it is defined")),
                    },
                })
                .collect::<Result<Vec<_>, String>>()?;
            let operands: Vec<Option<Operand<'_>>> = found
                .iter()
                .map(|f| {
                    f.as_ref().map(|(name, fact)| Operand { name, ty: &fact.ty, value: fact.value.as_ref() })
                })
                .collect();
            let wanted = |name: &'b String| {
                (!name.is_empty()).then(|| Wanted { name, declared: declared.get(&**name) })
            };
            let results: Vec<_> = node.output.iter().map(wanted).collect();
            let op = Op::new(node.domain(), node.op_type());
            let version = body.opsets.get(node.domain()).copied().unwrap_or(1);
            let producer = |_| None;
            let query = Query {
                node: node.name(),
                op: &op,
                version,
                operands: &operands,
                attributes: &attributes,
                results: &results,
                producer: &producer,
            };
            let function = self.function((domain(node), node.op_type(), node.overload()));
            let here = |name: &str| facts.get(name).cloned().or_else(|| outer(name));
            let inferred =
                self.infer(node, function, &query, &here, body.caller, depth + 1).map_err(innermost)?;
            for (name, fact) in node.output.iter().zip(inferred) {
                facts.extend(fact.map(|fact| (&**name, fact)));
            }
        }
        Ok(())
    }
}

/// The error in words; of an error in a body in a body, only the innermost: where bodies nest deeply, the others say
/// the same once more.
fn innermost(error: ShapeError) -> String {
    match error {
        ShapeError::Unknown { reason, .. } if reason.starts_with(OF_ITS_BODY) => {
            reason[OF_ITS_BODY.len()..].to_owned()
        }
        error => error.to_string(),
    }
}

const OF_ITS_BODY: &str = "of its body, ";

/// The nodes of a function or a branch, and what they refer to.
struct Body<'b, 'c> {
    nodes: &'b [NodeProto],
    declared: &'b [ValueInfoProto],
    opsets: &'c BTreeMap<&'c str, i64>,
    caller: &'c Caller<'c>,
}

//! Result types of nodes with bodies: calls of the model's functions, branches and loops.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};
use lmsc_ir::{Attr, LMSC_DOMAIN, Name, Op, Type};
use prost::Message;

use super::error::Errors;
use super::limits::MOST_DEPTH;
use super::read::{declaration, read_attribute, read_tensor, sparse_name, sparse_type};
use crate::file::Model;
use crate::proto::{FunctionProto, GraphProto, NodeProto, OperatorSetIdProto, ValueInfoProto};
use crate::shapes::{self, Const, Declared, Fact, Operand, Query, Refusal, ShapeError, Wanted};
use crate::spelling::{domain, op_name};

/// Maximum number of nodes of function bodies and branches that are visited, repeated visits included; large items count more.
const MOST_STEPS: u64 = 1_000_000;
/// Constants of a body are read again with every call: this number of bytes counts as a node.
const BYTES_A_STEP: usize = 256;

/// The bodies of nodes: functions of the model, and branches.
pub(super) struct Bodies<'m> {
    functions: HashMap<Key<'m>, &'m FunctionProto>,
    /// For every cycle of functions that call one another, at least one of them, with the calls of the cycle.
    recursive: HashMap<Key<'m>, String>,
    opsets: BTreeMap<&'m str, i64>,
    steps: Cell<u64>,
    /// Collects nodes that violate their contracts; if it is absent, such nodes are refused.
    breaches: Option<&'m Breaches>,
}

/// The errors of a model that is only inspected.
pub(super) type Breaches = RefCell<Errors>;

/// The domain, name and overload of a function.
type Key<'m> = (&'m str, &'m str, &'m str);
/// The attributes of the call that a body belongs to, by name.
pub(super) type Caller<'a> = HashMap<&'a str, &'a Attr>;
/// The types of values defined outside of the body.
pub(super) type Outer<'a> = &'a dyn Fn(&str) -> Option<Fact>;

/// The context of a node in the graph or in a body.
#[derive(Clone, Copy)]
pub(super) struct Around<'a> {
    pub(super) outer: Outer<'a>,
    pub(super) caller: &'a Caller<'a>,
    /// The number of bodies around the node.
    pub(super) depth: usize,
}

impl<'m> Bodies<'m> {
    pub(super) fn new(model: &'m Model, breaches: Option<&'m Breaches>) -> Bodies<'m> {
        let key = |f: &'m FunctionProto| ((f.domain(), f.name(), f.overload()), f);
        let opset = |o: &'m OperatorSetIdProto| (o.domain(), o.version());
        let functions = model.proto.functions.iter().map(key).collect();
        Bodies {
            recursive: recursive(&model.proto.functions, &functions),
            functions,
            opsets: model.proto.opset_import.iter().map(opset).collect(),
            steps: Cell::new(0),
            breaches,
        }
    }

    /// The function of this domain, name and overload. Those of our own domain have rules instead.
    pub(super) fn function(&self, key: (&str, &str, &str)) -> Option<&'m FunctionProto> {
        self.functions.get(&key).copied().filter(|_| key.0 != LMSC_DOMAIN)
    }

    /// The facts about the results of `node`, a call, a branch or an operator.
    pub(super) fn infer<'a>(
        &self,
        node: &NodeProto,
        function: Option<&'m FunctionProto>,
        query: &'a Query<'a>,
        around: Around<'_>,
    ) -> Result<Vec<Option<Fact>>, ShapeError> {
        let key = query.op.key();
        if function.is_none()
            && let Err(breach) = shapes::adheres(query)
        {
            let Some(breaches) = self.breaches else { return Err(breach) };
            breaches.borrow_mut().push(breach);
            // The rule may not understand the node; then the file's declaration decides.
            if let Err(ShapeError::Invalid { reason, .. }) = shapes::infer(query) {
                return shapes::settle(query, Vec::new(), &reason);
            }
        }
        if function.is_none() && !matches!(key, ("", "If" | "Loop" | "Scan")) {
            return shapes::infer(query);
        }
        let said =
            |w: &Option<Wanted<'_>>| w.is_none_or(|w| w.declared.is_some_and(|d| d.complete().is_some()));
        if query.results.iter().all(said) && key != ("", "Loop") {
            return shapes::settle(query, Vec::new(), "");
        }
        let inside = match (function, key.1) {
            (Some(function), _) => self.call(function, query, around.depth),
            (None, "If") => self.branch(node, query, around),
            (None, "Loop") => self.repeat(node, query, around),
            (None, _) => self.scan(node, query, around),
        };
        match inside {
            Ok(facts) => shapes::settle(query, facts, "its body does not say"),
            Err(Refusal::Unknown(reason)) => shapes::settle(query, Vec::new(), &reason),
            Err(Refusal::Wrong(reason)) => Err(shapes::invalid(query, reason)),
        }
    }

    fn call(
        &self,
        function: &'m FunctionProto,
        query: &Query<'_>,
        depth: usize,
    ) -> Result<Vec<Option<Fact>>, Refusal> {
        if let Some(how) = self.recursive.get(&(function.domain(), function.name(), function.overload())) {
            return Err(Refusal::Wrong(how.clone().into()));
        }
        let mut facts: HashMap<&str, Fact> = HashMap::new();
        for (name, operand) in function.input.iter().zip(query.operands) {
            if let Some(operand) = operand {
                facts.insert(name, Fact { ty: operand.ty.clone(), value: operand.value.cloned() });
            }
        }
        let defaults = function.attribute_proto.iter();
        let defaults = defaults.map(|default| Ok((default.name(), read_attribute(default)?)));
        let defaults = defaults.collect::<Result<Vec<(&str, Attr)>, String>>();
        let defaults = defaults.map_err(|reason| wrong(format!("a default of its function: {reason}")))?;
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
        around: Around<'_>,
    ) -> Result<Vec<Option<Fact>>, Refusal> {
        let taken =
            query.operands.first().copied().flatten().and_then(|o| o.value?.as_ints()?.first().copied());
        let mut both: Option<Vec<Option<Fact>>> = None;
        for (name, value) in [("then_branch", 1), ("else_branch", 0)] {
            if taken.is_some_and(|t| t != value) {
                continue;
            }
            let graph = node.attribute.iter().find(|a| a.name() == name).and_then(|a| a.g.as_deref());
            let Some(graph) = graph else { return Err(wrong(format!("attribute `{name}` is missing"))) };
            let results = self.results(graph, Vec::new(), around)?;
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
        both.ok_or_else(|| wrong("its condition is neither true nor false".to_owned()))
    }

    /// The facts about the outputs of a subgraph whose inputs are `given`.
    pub(super) fn results(
        &self,
        graph: &GraphProto,
        given: Vec<Option<Fact>>,
        around: Around<'_>,
    ) -> Result<Vec<Option<Fact>>, Refusal> {
        let mut facts: HashMap<&str, Fact> = HashMap::new();
        for (input, fact) in graph.input.iter().zip(given) {
            facts.extend(fact.map(|fact| (input.name(), fact)));
        }
        for tensor in &graph.initializer {
            self.step(1 + tensor.encoded_len() / BYTES_A_STEP)?;
            let (ty, data) =
                read_tensor(tensor, "initializer").map_err(|e| wrong(format!("{IN_ITS_BODY}{e}")))?;
            let value = Const::decode(&ty, &data);
            facts.insert(tensor.name(), Fact { ty: ty.into(), value });
        }
        for sparse in &graph.sparse_initializer {
            self.step(1 + sparse.encoded_len() / BYTES_A_STEP)?;
            let ty =
                sparse_type(sparse).map_err(|e| wrong(format!("{IN_ITS_BODY}a sparse initializer: {e}")))?;
            facts.insert(sparse_name(sparse), Type::from(ty).into());
        }
        let body = Body {
            nodes: &graph.node,
            declared: &graph.value_info,
            opsets: &self.opsets,
            caller: around.caller,
        };
        self.walk(&body, &mut facts, around.outer, around.depth)?;
        Ok(graph
            .output
            .iter()
            .map(|o| facts.get(o.name()).cloned().or_else(|| (around.outer)(o.name())))
            .collect())
    }

    /// Counts visited nodes.
    fn step(&self, count: usize) -> Result<(), Refusal> {
        self.steps.set(self.steps.get().saturating_add(count as u64));
        if self.steps.get() > MOST_STEPS {
            return Err(Refusal::Unknown(TOO_MANY.into()));
        }
        Ok(())
    }

    /// Adds the facts about every value of the body to `facts`.
    fn walk<'b>(
        &self,
        body: &Body<'b, '_>,
        facts: &mut HashMap<&'b str, Fact>,
        outer: Outer<'_>,
        depth: usize,
    ) -> Result<(), Refusal> {
        if depth >= MOST_DEPTH {
            let reason = format!("functions and branches stand more than {MOST_DEPTH} deep in one another");
            return Err(Refusal::Unknown(reason.into()));
        }
        self.step(body.nodes.len() + body.declared.len() + 1)?;
        let declared: HashMap<&str, Declared> =
            body.declared.iter().filter_map(|i| Some((i.name(), declaration(i, &|_| None)?))).collect();
        let defined: HashSet<&str> = body.nodes.iter().flat_map(|n| &n.output).map(|o| &**o).collect();
        for (i, node) in body.nodes.iter().enumerate() {
            self.step(node.encoded_len() / BYTES_A_STEP)?;
            let name = match node.name() {
                "" => Cow::from(format!("{}_{i}", node.op_type())),
                name => name.into(),
            };
            let inside = |reason| format!("{IN_ITS_BODY}node `{name}` ({}): {reason}", op_name(node));
            let mut attributes: Vec<(Name, Attr)> = Vec::with_capacity(node.attribute.len());
            for attribute in &node.attribute {
                match attribute.ref_attr_name() {
                    "" => {
                        let read = read_attribute(attribute).map_err(|reason| {
                            wrong(inside(format!("attribute `{}`: {reason}", attribute.name())))
                        })?;
                        attributes.push((attribute.name().into(), read));
                    }
                    // An attribute that the caller leaves out is left out of the node.
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
                        None => Err(wrong(inside(format!("it reads value `{name}` before it is defined")))),
                    },
                })
                .collect::<Result<Vec<_>, Refusal>>()?;
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
            let version =
                body.opsets.get(domain(node)).or_else(|| body.opsets.get(shapes::spelled(domain(node))));
            let version = version.copied().unwrap_or(1);
            let producer = |_| None;
            let query = Query {
                node: &name,
                op: &op,
                version,
                operands: &operands,
                attributes: &attributes,
                results: &results,
                producer: &producer,
            };
            let function = self.function((domain(node), node.op_type(), node.overload()));
            let here = |name: &str| facts.get(name).cloned().or_else(|| outer(name));
            let inferred = self
                .infer(node, function, &query, Around { outer: &here, caller: body.caller, depth: depth + 1 })
                .map_err(innermost)?;
            for (name, fact) in node.output.iter().zip(inferred) {
                facts.extend(fact.map(|fact| (&**name, fact)));
            }
        }
        Ok(())
    }
}

/// The error of a node whose body has an error; for nested bodies only the innermost error: with deep nesting, the outer ones
/// would repeat it.
fn innermost(error: ShapeError) -> Refusal {
    match error {
        ShapeError::Unknown { reason, .. } if reason.starts_with(IN_ITS_BODY) || &*reason == TOO_MANY => {
            Refusal::Unknown(reason.into_string().into())
        }
        ShapeError::Invalid { reason, .. } if reason.starts_with(IN_ITS_BODY) => wrong(reason.into()),
        ShapeError::Unknown { .. } => Refusal::Unknown(format!("{IN_ITS_BODY}{error}").into()),
        error => wrong(format!("{IN_ITS_BODY}{error}")),
    }
}

pub(super) fn wrong(reason: String) -> Refusal {
    Refusal::Wrong(reason.into())
}

const IN_ITS_BODY: &str = "in its body, ";

/// The message once [`MOST_STEPS`] is exceeded, at any depth.
const TOO_MANY: &str = "the functions and branches of the graph expand to more than 1,000,000 nodes";

/// The cycles of functions that call one another, in words.
pub(crate) fn recursions(all: &[FunctionProto]) -> Vec<String> {
    let functions = all.iter().map(|f| ((f.domain(), f.name(), f.overload()), f)).collect();
    let mut found: Vec<String> = recursive(all, &functions).into_values().collect();
    found.sort_unstable();
    found
}

/// A function of every cycle of calls, with the calls that lead from it back to itself.
fn recursive<'m>(
    all: &'m [FunctionProto],
    functions: &HashMap<Key<'m>, &'m FunctionProto>,
) -> HashMap<Key<'m>, String> {
    let key = |f: &'m FunctionProto| (f.domain(), f.name(), f.overload());
    let show =
        |key: &Key<'_>| if key.0.is_empty() { key.1.to_owned() } else { format!("{}.{}", key.0, key.1) };
    let callees = |f: &'m FunctionProto| {
        let mut found = Vec::new();
        let mut nodes: Vec<&NodeProto> = f.node.iter().collect();
        while let Some(node) = nodes.pop() {
            found.push((domain(node), node.op_type(), node.overload()));
            let graphs = node.attribute.iter().flat_map(|a| a.g.as_deref().into_iter().chain(&a.graphs));
            nodes.extend(graphs.flat_map(|g| &g.node));
        }
        found.retain(|callee| functions.contains_key(callee));
        found
    };
    let mut recursive = HashMap::new();
    let mut seen: HashSet<Key<'m>> = HashSet::new();
    // By function on the path, its position.
    let mut depths: HashMap<Key<'m>, usize> = HashMap::new();
    for root in all.iter().map(key) {
        let mut path = Vec::new();
        if seen.insert(root) {
            depths.insert(root, 0);
            path.push((root, callees(functions[&root])));
        }
        while let Some((called, rest)) = path.last_mut() {
            let Some(next) = rest.pop() else {
                depths.remove(called);
                path.pop();
                continue;
            };
            if let Some(&from) = depths.get(&next) {
                recursive.entry(next).or_insert_with(|| {
                    let calls = lmsc_ir::words::chain(path.len() - from, |i| show(&path[from + i].0));
                    format!("function {} calls itself ({calls})", show(&next))
                });
            } else if seen.insert(next) {
                depths.insert(next, path.len());
                path.push((next, callees(functions[&next])));
            }
        }
    }
    recursive
}

/// The nodes of a function or a branch, and their context.
struct Body<'b, 'c> {
    nodes: &'b [NodeProto],
    declared: &'b [ValueInfoProto],
    opsets: &'c BTreeMap<&'c str, i64>,
    caller: &'c Caller<'c>,
}

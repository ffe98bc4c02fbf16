//! The graph, built node by node in topological order.

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};
use lmsc_ir::{
    Data, Def, Graph, LMSC_DOMAIN, Name, Node, NodeId, Op, Place, TensorType, Type, Update, ValueId,
};
use smallvec::SmallVec;

use super::bodies::Around;
use super::error::Errors;
use super::limits::MOST_SEQUENCE_ELEMENTS;
use super::names::Extra;
use super::names::inner_names;
use super::read::{
    declaration, dense, no_tensor, read_attribute, read_tensor, sparse_name, typed_input, unknown_element,
};
use super::resolve::{NONE, Resolved, Source};
use super::sizes::Found;
use super::{Constancy, Decided, ImportError};
use crate::key;
use crate::proto::{FunctionProto, TypeProto, TypeValue};
use crate::shapes::{self, Const, Constants, Fact, Query, ShapeError, Wanted, operands, producer};
use crate::spelling::{domain, op_name};
use crate::values::fixed_values;

/// An operator of the file, with the facts that do not change from node to node.
#[derive(Clone)]
struct KnownOp<'m> {
    op: Op,
    version: i64,
    function: Option<&'m FunctionProto>,
}

/// The graph so far.
pub(super) struct Build<'a, 'm> {
    file: &'a Resolved<'m>,
    graph: Graph,
    /// The value of every number of the file; `None` if it does not exist, or has an error.
    values: Vec<Option<ValueId>>,
    known: Constants,
    /// The node of every index of the file.
    nodes: Vec<Option<NodeId>>,
    /// For each value, the variable whose new value it is.
    variables: HashMap<ValueId, ValueId>,
    ops: HashMap<(&'m str, &'m str, &'m str), KnownOp<'m>>,
    attribute_names: HashMap<&'m str, Name>,
    sequence_elements: usize,
    constancy: Constancy,
    decided: Vec<(usize, Decided)>,
}

impl<'a, 'm> Build<'a, 'm> {
    /// The graph of the file, its nodes in this order, and the control flow that is known.
    pub(super) fn graph(
        file: &'a Resolved<'m>,
        order: Vec<usize>,
        constancy: Constancy,
        errors: &mut Errors,
    ) -> (Graph, Vec<(usize, Decided)>) {
        let mut build = Build {
            file,
            graph: Graph::new(file.proto.name()),
            values: vec![None; file.sources.len()],
            known: Constants::new(file.sources.len()),
            nodes: vec![None; file.proto.node.len()],
            variables: HashMap::new(),
            ops: HashMap::new(),
            attribute_names: HashMap::new(),
            sequence_elements: 0,
            constancy,
            decided: Vec::new(),
        };
        for import in &file.model.proto.opset_import {
            build.graph.opsets.insert(import.domain().to_owned(), import.version());
        }
        let copies = || file.extras.values().any(|extra| extra.copy == Some("Copy"));
        if file.proto.node.iter().any(|n| domain(n) == LMSC_DOMAIN) || copies() {
            build.graph.opsets.entry(LMSC_DOMAIN.to_owned()).or_insert(1);
        }
        build.graph.reserve(order.len(), file.sources.len());
        build.add_inputs(errors);
        build.add_initializers(errors);
        build.add_defaults(errors);
        for &i in &order {
            build.add_node(i, errors);
        }
        // Last, because an origin may come after its recomputed node.
        for &i in &order {
            let (Some(node), Some(extra)) = (build.nodes[i], file.extras.get(&i)) else { continue };
            if let Some(origin) = extra.recomputes.and_then(|o| build.nodes[o]) {
                build.graph.set_recomputes(node, origin);
            } else if let Some(seed) = extra.seed {
                build.graph.set_seed(node, seed);
            }
        }
        build.add_outputs(errors);
        build.place_what_travels();
        build.keep_names_free();
        (build.graph, build.decided)
    }

    /// Adds the node at an index of the file, unless something that it needs has an error, which has then been reported.
    fn add_node(&mut self, i: usize, errors: &mut Errors) {
        let none = Extra::default();
        let extra = self.file.extras.get(&i).unwrap_or(&none);
        if self.file.proto.node[i].op_type().is_empty() {
            return;
        }
        let known_op = self.known_op(i, extra);
        let Some(node) = self.read_node(i, extra, &known_op.op, errors) else { return };
        let (facts, decided) = self.infer(i, &node, &known_op);
        self.decided.extend(decided.map(|decided| (i, decided)));
        match facts {
            Ok(facts) => {
                let writes = if extra.is_apart { &[] } else { known_op.op.effects().writes };
                self.define(i, node, facts, writes, errors);
                self.add_stated_updates(i, extra, errors);
            }
            Err(error) => errors.push(error),
        }
    }

    fn known_op(&mut self, i: usize, extra: &Extra<'m>) -> KnownOp<'m> {
        let proto = &self.file.proto.node[i];
        let key = match (extra.copy, extra.join) {
            (Some(copy), _) => (LMSC_DOMAIN, copy, ""),
            (_, Some(_)) => (LMSC_DOMAIN, "Join", ""),
            _ => (domain(proto), proto.op_type(), proto.overload()),
        };
        let known = self.ops.entry(key).or_insert_with(|| {
            let op = Op::new(key.0, key.1);
            let spelled = if key.0.is_empty() { "ai.onnx" } else { key.0 };
            let version = self.graph.opsets.get(key.0).or_else(|| self.graph.opsets.get(spelled)).copied();
            let function = self.file.bodies.function(key);
            KnownOp { op, version: version.unwrap_or(1), function }
        });
        known.clone()
    }

    /// The node with its operands, attributes and control edges.
    fn read_node(&mut self, i: usize, extra: &Extra<'m>, op: &Op, errors: &mut Errors) -> Option<Node> {
        let proto = &self.file.proto.node[i];
        let mut node = Node::new(self.file.names[i].clone(), op.clone());
        node.source = Some(i as u32);
        let mut lost = false;
        // The operator that represents a copy is not part of the graph.
        let stands_for_copy = extra.copy.is_some() && domain(proto) != LMSC_DOMAIN;
        let attributes = if stands_for_copy { &[][..] } else { &proto.attribute };
        node.attributes.reserve_exact(attributes.len());
        for attribute in attributes {
            match read_attribute(attribute) {
                Ok(attr) => {
                    let name = attribute.name();
                    let name = self.attribute_names.entry(name).or_insert_with(|| name.into());
                    node.attributes.push((name.clone(), attr));
                }
                Err(reason) => {
                    lost = true;
                    let (node, op) = (self.file.names[i].to_string(), op_name(proto));
                    let attribute = attribute.name().to_owned();
                    errors.push(ImportError::Attribute { node, op, attribute, reason });
                }
            }
        }
        let reads = self.file.operands(i);
        let (data, control) =
            reads.split_at(if extra.copy.is_some() { reads.len().min(1) } else { reads.len() });
        let mut resolve = |&number: &u32| {
            let value = self.values.get(number as usize).copied().flatten();
            lost |= number != NONE && value.is_none();
            value
        };
        // The function for a join without a base has no operand for it.
        let nothing_stayed = (extra.join == Some(false)).then_some(None);
        node.operands = nothing_stayed.into_iter().chain(data.iter().map(&mut resolve)).collect();
        node.captures = extra.captures.iter().filter_map(&mut resolve).collect();
        let control = if stands_for_copy { &[] } else { control };
        let producers = control.iter().filter_map(|&number| match self.file.sources.get(number as usize) {
            Some(&Source::Node(i)) => Some(i),
            _ => None,
        });
        let before = extra.after.iter().copied().chain(producers);
        let mut seen = HashSet::new();
        node.after = before.filter_map(|b| self.nodes[b]).filter(|&id| seen.insert(id)).collect();
        (!lost).then_some(node)
    }

    fn infer(
        &self,
        i: usize,
        node: &Node,
        known_op: &KnownOp<'m>,
    ) -> (Result<Vec<Option<Fact>>, ShapeError>, Option<Decided>) {
        let (proto, file) = (&self.file.proto.node[i], self.file);
        let operands = operands(&self.graph, &self.known, &node.operands);
        let wanted = |(name, &number): (&'m String, &u32)| {
            (number != NONE).then(|| Wanted { name, declared: file.declared[number as usize].as_ref() })
        };
        let results: SmallVec<[Option<Wanted<'_>>; 4]> =
            proto.output.iter().zip(file.results(i)).map(wanted).collect();
        let producer = |index| producer(&self.graph, &node.operands, index);
        let query = Query {
            node: &node.name,
            op: &node.op,
            version: known_op.version,
            operands: &operands,
            attributes: &node.attributes,
            results: &results,
            producer: &producer,
        };
        let outer = |name: &str| {
            let id = self.values[*file.numbers.get(name)? as usize]?;
            Some(Fact { ty: self.graph.value(id).ty.clone(), value: self.known.get(id).cloned() })
        };
        let no_caller = HashMap::new();
        let around = Around { outer: &outer, caller: &no_caller, depth: 0 };
        let facts = file.bodies.infer(proto, known_op.function, &query, around);
        let decided = match self.constancy {
            Constancy::OfConstants if known_op.function.is_none() => {
                file.bodies.decided(proto, &query, around)
            }
            _ => None,
        };
        (facts, decided)
    }

    /// Adds the node with its results and update edges.
    fn define(
        &mut self,
        i: usize,
        node: Node,
        facts: Vec<Option<Fact>>,
        writes: &[(usize, usize)],
        errors: &mut Errors,
    ) {
        let proto = &self.file.proto.node[i];
        for fact in facts.iter().flatten() {
            if let Type::Sequence(elements) = &fact.ty {
                self.sequence_elements += elements.len();
            }
        }
        if self.sequence_elements > MOST_SEQUENCE_ELEMENTS {
            let (node, op) = (node.name.to_string(), node.op.to_string());
            errors.push(ImportError::TooManyElements { node, op });
            return;
        }
        for (number, fact) in self.file.results(i).iter().zip(&facts) {
            let declared = self.file.declared.get(*number as usize).and_then(Option::as_ref);
            if let (Some(fact), Some(declared)) = (fact, declared)
                && !declared.agrees(&fact.ty)
            {
                let result = self.file.name_of(*number);
                errors.warnings.push(format!(
                    "node `{}` ({}) computes `{result}` as {}, but the file declares {declared}; the declaration is not used",
                    node.name, node.op, fact.ty
                ));
            }
        }
        // A joined tensor is in the memory of its pieces.
        let is_host = |value: ValueId| self.graph.value(value).place.is_host();
        let on_host = node.op.is_swap_out() || node.op.is_join() && node.reads().all(is_host);
        let place = if on_host { Place::Host } else { Place::Device };
        let mut constants: SmallVec<[Option<Const>; 2]> = SmallVec::new();
        let named = proto.output.iter().zip(facts).map(|(name, fact)| {
            let (ty, constant) = fact.map(|fact| (fact.ty, fact.value)).unzip();
            constants.push(constant.flatten());
            Some((&**name, ty?, place))
        });
        let id = self.graph.add_node(node, named);
        self.nodes[i] = Some(id);
        for (index, constant) in constants.into_iter().enumerate() {
            let Some(value) = self.graph.node(id).results[index] else { continue };
            self.values[self.file.results(i)[index] as usize] = Some(value);
            self.known.keep(value, constant);
        }
        for &(operand, result) in writes {
            let node = self.graph.node(id);
            let Some(value) = node.operands.get(operand).copied().flatten() else { continue };
            let after = node.results.get(result).copied().flatten();
            let variable = match self.graph.def(value) {
                Def::Input | Def::Initializer(_) => Some(value),
                _ => self.variables.get(&value).copied(),
            };
            let Some(variable) = variable else { continue };
            self.graph.add_update(id, Update { variable, result: after.map(|_| result) });
            self.variables.extend(after.map(|after| (after, variable)));
        }
    }

    /// Adds the update edges that the node's metadata states.
    fn add_stated_updates(&mut self, i: usize, extra: &Extra<'m>, errors: &mut Errors) {
        let Some(id) = self.nodes[i] else { return };
        for &(result, variable) in &extra.updates {
            let variable = self.values.get(variable as usize).copied().flatten();
            let new = self.graph.node(id).results.get(result).copied().flatten();
            match (variable, new) {
                (Some(variable), Some(_)) => {
                    self.graph.add_update(id, Update { variable, result: Some(result) });
                }
                _ => {
                    let op = op_name(&self.file.proto.node[i]);
                    let reason = format!("there is no result {result}, or no variable yet");
                    errors.stale.push_of_node(&self.file.names[i], &op, key::UPDATES, &reason);
                }
            }
        }
    }

    /// Moves inputs and initializers to the host if only copies from the host read them.
    fn place_what_travels(&mut self) {
        // For each value, whether a copy from the host reads it, and whether another node does.
        let mut readers = vec![(false, false); self.graph.value_capacity()];
        for &id in self.graph.order() {
            let node = self.graph.node(id);
            for value in self.graph.uses(id) {
                let (by_copy, by_others) = &mut readers[value.as_u32() as usize];
                *by_copy |= node.op.is_swap_in();
                *by_others |= !node.op.is_swap_in();
            }
        }
        let given = self.graph.inputs.iter().copied().chain(self.graph.initializers.iter().map(|i| i.value));
        for value in given.collect::<Vec<_>>() {
            if readers[value.as_u32() as usize] == (true, false) {
                self.graph.set_place(value, Place::Host);
            }
        }
    }

    /// Reserves the names that subgraphs define, and those that the file declares but does not define.
    fn keep_names_free(&mut self) {
        let declared = self.file.proto.value_info.iter().map(|info| info.name());
        let declared = declared.filter(|name| !self.file.numbers.contains_key(name));
        let names: Vec<Name> =
            inner_names(&self.file.proto.node).into_iter().chain(declared).map(Name::from).collect();
        self.graph.set_inner_names(names);
    }

    fn add_inputs(&mut self, errors: &mut Errors) {
        // Names without a value, in the order of the file, and the inputs that have them.
        let mut unbound: Vec<(&str, Vec<usize>)> = Vec::new();
        let mut index_of: HashMap<&str, usize> = HashMap::new();
        for (i, input) in self.file.proto.input.iter().enumerate() {
            let Some(&number) = self.file.numbers.get(input.name()) else { continue };
            if !matches!(self.file.sources[number as usize], Source::Input(index) if index == i) {
                continue;
            }
            let refused = |what: String, help: &'static str| {
                let input = input.name().to_owned();
                ImportError::Input { input, what, help }
            };
            let Some(TypeValue::Tensor(tensor)) = input.r#type.as_ref().and_then(TypeProto::value) else {
                let (what, help) = no_tensor(input.r#type.as_ref().and_then(TypeProto::value));
                errors.push(refused(what.to_owned(), help));
                continue;
            };
            let Some(element) = shapes::element_type(tensor.elem_type().into()) else {
                errors.push(refused(
                    unknown_element(tensor.elem_type()),
                    "export the model again, with elements of a type that ONNX knows",
                ));
                continue;
            };
            let given = self.file.sizes.given_shape(input.name());
            let Some(dims) = given.or_else(|| {
                let Some(shape) = &tensor.shape else {
                    let help = "give its extents, for example --shape INPUT=2x3";
                    errors.push(refused("its number of axes is not known".to_owned(), help));
                    return None;
                };
                let mut dims = Vec::with_capacity(shape.dim.len());
                for (axis, dim) in shape.dim.iter().enumerate() {
                    match self.file.sizes.find(dim) {
                        Found::Value(extent) => dims.push(extent),
                        Found::Missing(names) => names.into_iter().for_each(|name| {
                            let index = *index_of.entry(name).or_insert(unbound.len());
                            if index == unbound.len() {
                                unbound.push((name, Vec::new()));
                            }
                            let inputs = &mut unbound[index].1;
                            if inputs.last() != Some(&i) {
                                inputs.push(i);
                            }
                        }),
                        Found::Unnamed(found) => {
                            let extent = |dim| match self.file.sizes.find(dim) {
                                Found::Value(extent) => Some(extent),
                                Found::Missing(_) | Found::Unnamed(_) => None,
                            };
                            let (name, extents) =
                                (input.name().to_owned(), shape.dim.iter().map(extent).collect());
                            errors.push(ImportError::UnknownDim { input: name, axis, extents, found });
                        }
                    }
                }
                (dims.len() == shape.dim.len()).then_some(dims)
            }) else {
                continue;
            };
            let ty = Type::from(TensorType::new(element, dims));
            if let Some(why) = shapes::impossible(&ty) {
                let help = "give smaller values with --dim or --shape, or export the model with the extents of its inputs";
                errors.push(refused(format!("it is {ty}, which {why}"), help));
                continue;
            }
            self.values[number as usize] = Some(self.graph.add_input(input.name(), ty, Place::Device));
        }
        for (symbol, inputs) in unbound {
            const SHOWN: usize = 3;
            let shown = inputs.iter().take(SHOWN).map(|&i| typed_input(&self.file.proto.input[i])).collect();
            let more = inputs.len().saturating_sub(SHOWN);
            errors.push(ImportError::UnboundDim { symbol: symbol.to_owned(), inputs: shown, more });
        }
        self.file.sizes.check_not_empty(self.file.proto, errors);
    }

    fn add_initializers(&mut self, errors: &mut Errors) {
        // An initializer that the step writes is a variable: its value in the file is only that of the first step.
        let mut written: HashSet<u32> = HashSet::new();
        let mut writes: HashMap<(&str, &str), &[(usize, usize)]> = HashMap::new();
        for (i, node) in self.file.proto.node.iter().enumerate() {
            let key = (domain(node), node.op_type());
            let writes = writes.entry(key).or_insert_with(|| Op::new(key.0, key.1).effects().writes);
            written.extend(writes.iter().filter_map(|&(operand, _)| self.file.operands(i).get(operand)));
        }
        written.extend(self.file.state());
        let stated = self.file.extras.values().flat_map(|extra| &extra.updates);
        written.extend(stated.map(|&(_, variable)| variable));
        // Inputs for which a caller may give another value than the file's. Before IR version 4 every initializer was an input.
        let mut fed: HashSet<&str> = HashSet::new();
        if self.file.model.proto.ir_version() >= 4 {
            fed.extend(self.file.proto.input.iter().map(|input| input.name()));
            fixed_values(self.file.model).iter().for_each(|name| _ = fed.remove(name.as_str()));
        }
        for (i, tensor) in self.file.proto.initializer.iter().enumerate() {
            let Some(&number) = self.file.numbers.get(tensor.name()) else { continue };
            if !matches!(self.file.sources[number as usize], Source::Initializer(index) if index == i) {
                continue;
            }
            let fed = self.constancy == Constancy::OfConstants && fed.contains(tensor.name());
            match read_tensor(tensor, "initializer") {
                Ok((ty, data)) => {
                    let constant = Const::decode(&ty, &data).filter(|_| !fed && !written.contains(&number));
                    let value = self.graph.add_initializer(tensor.name(), ty, data);
                    self.known.keep(value, constant);
                    self.values[number as usize] = Some(value);
                }
                Err(error) => errors.push(error),
            }
        }
        for (i, sparse) in self.file.proto.sparse_initializer.iter().enumerate() {
            let Some(&number) = self.file.numbers.get(sparse_name(sparse)) else { continue };
            if !matches!(self.file.sources[number as usize], Source::Sparse(index) if index == i) {
                continue;
            }
            match dense(sparse) {
                Ok((ty, bytes)) => {
                    let data = Data::Inline(bytes);
                    self.values[number as usize] =
                        Some(self.graph.add_initializer(sparse_name(sparse), ty, data));
                }
                Err(reason) => errors.push(ImportError::Tensor {
                    place: "sparse initializer".to_owned(),
                    tensor: sparse_name(sparse).to_owned(),
                    reason,
                }),
            }
        }
    }

    /// Makes inputs of the initializers that a caller may replace, at their places among the inputs.
    fn add_defaults(&mut self, errors: &mut Errors) {
        if self.file.model.proto.ir_version() < 4 {
            return;
        }
        let fixed: HashSet<String> = fixed_values(self.file.model).into_iter().collect();
        let mut inputs = Vec::with_capacity(self.file.proto.input.len());
        let mut seen = HashSet::new();
        for input in &self.file.proto.input {
            let number = self.file.numbers.get(input.name()).copied();
            let Some(value) = number.and_then(|number| self.values[number as usize]) else { continue };
            if !seen.insert(value) {
                continue;
            }
            if self.graph.def(value) == Def::Input {
                inputs.push(value);
                continue;
            }
            let ty = &self.graph.value(value).ty;
            let declared = declaration(input, &|name| self.file.sizes.get(name));
            if let Some(declared) = declared.filter(|declared| !declared.agrees(ty)) {
                errors.push(ImportError::Input {
                    input: input.name().to_owned(),
                    what: format!(
                        "it is declared as {declared}, but its default, the initializer of its name, is {ty}"
                    ),
                    help: "give the input a default of its type, or none",
                });
            }
            if matches!(self.graph.def(value), Def::Initializer(_)) && !fixed.contains(input.name()) {
                inputs.push(value);
            }
        }
        self.graph.inputs = inputs;
    }

    fn add_outputs(&mut self, errors: &mut Errors) {
        for output in &self.file.proto.output {
            let Some(&number) = self.file.numbers.get(output.name()) else { continue };
            let Some(value) = self.values[number as usize] else { continue };
            let ty = &self.graph.value(value).ty;
            // Results of nodes were checked when they were inferred.
            if let (None, Some(declared)) = (self.graph.producer(value), &self.file.declared[number as usize])
                && !declared.agrees(ty)
            {
                errors.warnings.push(format!(
                    "output `{}` is {ty}, but the file declares {declared}; the declaration is not used",
                    output.name()
                ));
            }
            self.graph.outputs.push(value);
        }
    }
}

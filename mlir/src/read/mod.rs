//! Reads the text into the graph.

pub(crate) mod lex;
pub(crate) mod syntax;

use foldhash::HashMap;
use foldhash::HashMapExt;
use lex::Token;
use lmsc_ir::{
    Attr, Bytes, Data, Float, Graph, LMSC_DOMAIN, Name, Node, NodeId, Op, ParseError, Place, TensorType,
    Type, Update, ValueId, Workspace,
};
use smallvec::SmallVec;
use syntax::{Dictionary, Entry, Kind, Literal, Parsed, Syntax, hexadecimal};

use crate::print::new_values_of;
use crate::{VERSION, key};

pub(crate) fn module(text: &str) -> Parsed<Graph> {
    let mut reader = Reader {
        syntax: Syntax::new(text)?,
        graph: Graph::new(""),
        names: HashMap::new(),
        node_references: Vec::new(),
        updates: Vec::new(),
        variables: Vec::new(),
        new_values: Vec::new(),
    };
    reader.module()?;
    Ok(reader.graph)
}

pub(crate) fn looks_like(text: &str) -> bool {
    if text.trim_start().starts_with("#loc") {
        return true;
    }
    let Ok(mut syntax) = Syntax::new(text) else { return false };
    // A graph of the text form may have the same name: its inputs follow in parentheses.
    syntax.eat_bare("module").is_ok_and(|found| found)
        && matches!(&syntax.token, Token::Bare("attributes") | Token::Punct("{") | Token::Marked(_))
}

/// The binding of a name.
#[derive(Clone, Debug)]
enum Bound {
    Value(ValueId),
    /// The completion of a node.
    Token(NodeId),
    /// An operand or a result that is left out.
    Nothing,
    /// A value for nodes that start after these nodes.
    Waiting(ValueId, SmallVec<[NodeId; 4]>),
}

/// The facts that an operation's attributes state about its node, some with their places.
#[derive(Default)]
struct NodeFacts {
    name: Option<String>,
    domain: Option<String>,
    function: Option<String>,
    /// The names of its results.
    names: Option<(usize, Vec<Entry>)>,
    /// The addresses of its results.
    addresses: Option<(usize, Vec<Entry>)>,
    /// The names of its attributes, in their order.
    sequence: Option<(usize, Vec<Entry>)>,
    /// How many of its last operands its subgraphs read.
    captures: usize,
    updates: Vec<Entry>,
    /// The node that it recomputes.
    origin: Option<(usize, String)>,
}

struct Reader<'a> {
    syntax: Syntax<'a>,
    graph: Graph,
    names: HashMap<&'a str, SmallVec<[Bound; 2]>>,
    /// Recomputed nodes and the names of their origins, with their places.
    node_references: Vec<(NodeId, Name, usize)>,
    /// Updates whose variables are known by name.
    updates: Vec<(NodeId, Name, Option<usize>, usize)>,
    /// Arguments that are marked as variables, with their places.
    variables: Vec<(ValueId, usize)>,
    /// For each output, the variables of which it is the new value, according to the signature.
    new_values: Vec<(Vec<Name>, usize)>,
}

impl<'a> Reader<'a> {
    fn module(&mut self) -> Parsed<()> {
        self.syntax.expect_bare("module")?;
        if self.syntax.eat_bare("attributes")? {
            for (name, entry) in self.syntax.dictionary()? {
                match &*name {
                    key::VERSION => {
                        let version = self.integer::<i64>(&entry, key::VERSION)?;
                        if version != VERSION {
                            let message = format!("version {version} of the form; lmsc reads {VERSION}");
                            return Err(self.syntax.error(entry.at, message));
                        }
                    }
                    key::OPSETS => self.opsets(entry)?,
                    _ => return Err(self.unknown(&name, &entry)),
                }
            }
        }
        self.syntax.expect("{")?;
        self.function()?;
        self.syntax.expect("}")?;
        if self.syntax.token != Token::End {
            return Err(self.syntax.unexpected("the end of the text after `}`"));
        }
        self.resolve()
    }

    fn opsets(&mut self, entry: Entry) -> Parsed<()> {
        for entry in self.items(entry, key::OPSETS)? {
            let at = entry.at;
            let Literal::Dictionary(fields) = entry.value else {
                return Err(self
                    .syntax
                    .error(at, "an operator set is `{domain = \"\", version = 17 : i64}`"));
            };
            let [domain, version] = self.fields(fields, ["domain", "version"], at)?;
            let domain = self.text(domain, "domain")?;
            let version = self.integer(&version, "version")?;
            self.graph.opsets.insert(domain, version);
        }
        Ok(())
    }

    fn function(&mut self) -> Parsed<()> {
        if !matches!(self.syntax.token, Token::Bare("func.func")) {
            return Err(self.syntax.unexpected("`func.func`: the module holds one function"));
        }
        self.syntax.advance()?;
        self.graph.name = match std::mem::replace(&mut self.syntax.token, Token::End) {
            Token::Marked(name) if name.starts_with('@') => name[1..].to_owned(),
            Token::Symbol(bytes) => self.syntax.utf8(bytes)?,
            token => {
                self.syntax.token = token;
                return Err(self.syntax.unexpected("the name of the function, such as `@step`"));
            }
        };
        self.syntax.advance()?;
        self.arguments()?;
        let mut outputs: Vec<(Kind, Option<Name>)> = Vec::new();
        if self.syntax.eat("->")? {
            self.results(&mut outputs)?;
        }
        if self.syntax.eat_bare("attributes")? {
            for (name, entry) in self.syntax.dictionary()? {
                match &*name {
                    key::GRAPH => self.graph.name = self.text(entry, key::GRAPH)?,
                    _ => return Err(self.unknown(&name, &entry)),
                }
            }
        }
        self.syntax.expect("{")?;
        loop {
            let at = self.syntax.at;
            match &self.syntax.token {
                Token::Bare("return" | "func.return") => {
                    self.syntax.advance()?;
                    self.returned(outputs, at)?;
                    return self.syntax.expect("}");
                }
                _ => self.operation()?,
            }
        }
    }

    fn arguments(&mut self) -> Parsed<()> {
        self.syntax.expect("(")?;
        if self.syntax.eat(")")? {
            return Ok(());
        }
        loop {
            let (name, at) = self.percent()?;
            self.syntax.expect(":")?;
            let kind = self.syntax.kind()?;
            let attributes = if self.syntax.peek("{") { self.syntax.dictionary()? } else { Vec::new() };
            let value = self.argument(kind, attributes, at)?;
            self.bind(name, at, SmallVec::from_iter([Bound::Value(value)]))?;
            if !self.syntax.eat(",")? {
                return self.syntax.expect(")");
            }
        }
    }

    /// An argument of the function: a graph input or an initializer.
    fn argument(&mut self, kind: Kind, attributes: Dictionary, at: usize) -> Parsed<ValueId> {
        let Kind::Value(ty, host) = kind else {
            return Err(self.syntax.error(at, "an argument is a tensor, or a tuple of tensors"));
        };
        let (mut input, mut initializer, mut data, mut address, mut variable) =
            (None, None, None, None, None);
        for (name, entry) in attributes {
            match &*name {
                key::NAME => input = Some(self.text(entry, key::NAME)?),
                key::INITIALIZER => initializer = Some(self.text(entry, key::INITIALIZER)?),
                key::DATA => data = Some(entry),
                key::ADDRESS => address = Some(self.integer(&entry, key::ADDRESS)?),
                key::VARIABLE => variable = Some(entry.at),
                _ => return Err(self.unknown(&name, &entry)),
            }
        }
        let value = match (input, initializer, data) {
            (Some(name), None, None) => self.graph.add_input(name, ty, Place::Device),
            (input, initializer, Some(data)) if input.is_some() != initializer.is_some() => {
                let Type::Tensor(ty) = ty else {
                    return Err(self.syntax.error(at, "an initializer is a tensor, not a tuple"));
                };
                let data = self.data(data, Some(&ty))?.1;
                match (input, initializer) {
                    (Some(name), _) => self.graph.add_default(name, ty, data),
                    (None, name) => self.graph.add_initializer(name.unwrap_or_default(), ty, data),
                }
            }
            _ => {
                let message = "an argument has either `onnx.name`, and `lms.data` if it has a default, or `lms.initializer` and `lms.data`";
                return Err(self.syntax.error(at, message));
            }
        };
        self.graph.set_place(value, self.place(host, address, at)?);
        self.variables.extend(variable.map(|at| (value, at)));
        Ok(value)
    }

    fn results(&mut self, outputs: &mut Vec<(Kind, Option<Name>)>) -> Parsed<()> {
        if !self.syntax.peek("(") {
            let kind = self.syntax.kind()?;
            outputs.push((kind, None));
            self.new_values.push((Vec::new(), self.syntax.at));
            return Ok(());
        }
        self.syntax.advance()?;
        if self.syntax.eat(")")? {
            return Ok(());
        }
        loop {
            let at = self.syntax.at;
            let kind = self.syntax.kind()?;
            let attributes = if self.syntax.peek("{") { self.syntax.dictionary()? } else { Vec::new() };
            let (mut output, mut variables) = (None, Vec::new());
            for (name, entry) in attributes {
                match &*name {
                    key::NAME => output = Some(self.text(entry, key::NAME)?.into()),
                    key::NEW_VALUE_OF => {
                        for item in self.items(entry, key::NEW_VALUE_OF)? {
                            variables.push(self.text(item, key::NEW_VALUE_OF)?.into());
                        }
                    }
                    _ => return Err(self.unknown(&name, &entry)),
                }
            }
            outputs.push((kind, output));
            self.new_values.push((variables, at));
            if !self.syntax.eat(",")? {
                return self.syntax.expect(")");
            }
        }
    }

    fn returned(&mut self, outputs: Vec<(Kind, Option<Name>)>, at: usize) -> Parsed<()> {
        let mut operands = Vec::new();
        while matches!(self.syntax.token, Token::Marked(name) if name.starts_with('%')) {
            operands.push(self.operand()?);
            if !self.syntax.eat(",")? {
                break;
            }
        }
        if operands.len() != outputs.len() {
            let message = format!("{} returned, {} in the signature", operands.len(), outputs.len());
            return Err(self.syntax.error(at, message));
        }
        if !operands.is_empty() {
            self.syntax.expect(":")?;
        }
        for (i, ((bound, name, at), (kind, output))) in operands.into_iter().zip(outputs).enumerate() {
            if i > 0 {
                self.syntax.expect(",")?;
            }
            let stated = self.syntax.kind()?;
            let Bound::Value(value) = bound else {
                return Err(self.syntax.error(at, format!("`{name}` is no value that can be an output")));
            };
            self.agree(&Bound::Value(value), &stated, &name, at)?;
            self.agree(&Bound::Value(value), &kind, &name, at)?;
            let called = &self.graph.value(value).name;
            if let Some(output) = output.filter(|output| output != called) {
                let message =
                    format!("the output is `{output}` in the signature, but `{called}` is returned");
                return Err(self.syntax.error(at, message));
            }
            self.graph.outputs.push(value);
        }
        Ok(())
    }

    fn operation(&mut self) -> Parsed<()> {
        let at = self.syntax.at;
        // Names of results, each with the number of results.
        let mut names: SmallVec<[(&'a str, usize, usize); 2]> = SmallVec::new();
        if matches!(self.syntax.token, Token::Marked(name) if name.starts_with('%')) {
            loop {
                let (name, at) = self.percent()?;
                let mut count = 1;
                if self.syntax.eat(":")? {
                    let number = match self.syntax.token {
                        Token::Integer(digits) => digits.parse().ok().filter(|n| (1..=1 << 20).contains(n)),
                        _ => None,
                    };
                    count = number.ok_or_else(|| self.syntax.unexpected("how many results there are"))?;
                    self.syntax.advance()?;
                }
                names.push((name, count, at));
                if !self.syntax.eat(",")? {
                    break;
                }
            }
            self.syntax.expect("=")?;
        }
        let name = match &self.syntax.token {
            Token::Quoted(_) => {
                let bytes = self.syntax.string()?;
                self.syntax.utf8(bytes)?
            }
            _ => return Err(self.syntax.unexpected("an operation, its name in quotes, or `return`")),
        };
        let mut operands: SmallVec<[(Bound, String, usize); 4]> = SmallVec::new();
        self.syntax.expect("(")?;
        if !self.syntax.eat(")")? {
            loop {
                operands.push(self.operand()?);
                if !self.syntax.eat(",")? {
                    self.syntax.expect(")")?;
                    break;
                }
            }
        }
        let mut attributes = Vec::new();
        if self.syntax.eat("<")? {
            attributes = self.syntax.dictionary()?;
            self.syntax.expect(">")?;
        }
        if self.syntax.peek("{") {
            attributes.extend(self.syntax.dictionary()?);
        }
        self.syntax.expect(":")?;
        let mut stated: SmallVec<[Kind; 4]> = SmallVec::new();
        self.syntax.list("(", ")", |s| {
            stated.push(s.kind()?);
            Ok(())
        })?;
        self.syntax.expect("->")?;
        let mut results: SmallVec<[Kind; 2]> = SmallVec::new();
        if self.syntax.peek("(") {
            self.syntax.list("(", ")", |s| {
                results.push(s.kind()?);
                Ok(())
            })?;
        } else {
            results.push(self.syntax.kind()?);
        }
        if operands.len() != stated.len() {
            let message = format!("{} operands, but {} types of operands", operands.len(), stated.len());
            return Err(self.syntax.error(at, message));
        }
        for ((bound, name, at), kind) in operands.iter().zip(&stated) {
            self.agree(bound, kind, name, *at)?;
        }
        let named: usize = names.iter().map(|(_, count, _)| count).sum();
        if named != results.len() && !names.is_empty() {
            let message = format!("{named} names of results, but {} types of results", results.len());
            return Err(self.syntax.error(at, message));
        }
        let bound = match &*name {
            "onnx.NoValue" => SmallVec::from_iter([Bound::Nothing]),
            "lms.trigger" => SmallVec::from_iter([self.trigger(&operands, at)?]),
            "lms.wait" => SmallVec::from_iter([self.wait(&operands, at)?]),
            _ => self.node(&name, at, operands, attributes, &results)?,
        };
        if bound.len() != results.len() {
            return Err(self.syntax.error(at, format!("`{name}` has another number of results")));
        }
        for (bound, kind) in bound.iter().zip(&results) {
            self.agree(bound, kind, "the result", at)?;
        }
        let mut bound = bound.into_iter();
        for (name, count, at) in names {
            let part = bound.by_ref().take(count).collect();
            self.bind(name, at, part)?;
        }
        Ok(())
    }

    fn trigger(&self, operands: &[(Bound, String, usize)], at: usize) -> Parsed<Bound> {
        let [(Bound::Value(value), ..)] = operands else {
            return Err(self.syntax.error(at, "`lms.trigger` takes one value that an operation computes"));
        };
        let node = self.graph.producer(*value);
        let message = "nothing computes the operand of `lms.trigger`: it is there from the start";
        node.map(Bound::Token).ok_or_else(|| self.syntax.error(at, message))
    }

    fn wait(&self, operands: &[(Bound, String, usize)], at: usize) -> Parsed<Bound> {
        let (value, mut after) = match operands.first() {
            Some((Bound::Value(value), ..)) => (*value, SmallVec::new()),
            Some((Bound::Waiting(value, after), ..)) => (*value, after.clone()),
            _ => return Err(self.syntax.error(at, "`lms.wait` takes a value, and then tokens")),
        };
        for (bound, name, at) in &operands[1..] {
            let Bound::Token(node) = bound else {
                return Err(self.syntax.error(*at, format!("`{name}` is no token")));
            };
            after.push(*node);
        }
        Ok(Bound::Waiting(value, after))
    }

    /// Adds the node of the operation; returns the bindings of its results.
    fn node(
        &mut self,
        operation: &str,
        at: usize,
        operands: SmallVec<[(Bound, String, usize); 4]>,
        attributes: Dictionary,
        kinds: &[Kind],
    ) -> Parsed<SmallVec<[Bound; 2]>> {
        let mut node = Node::new("", Op::new("", ""));
        let facts = self.node_facts(&mut node, attributes)?;
        node.op = self.op(operation, at, facts.domain, facts.function)?;
        let Some(name) = facts.name else {
            return Err(self.syntax.error(at, format!("`{operation}` has no `{}`", key::NODE)));
        };
        node.name = name.into();
        if let Some((at, sequence)) = facts.sequence {
            self.reorder(&mut node, sequence, at)?;
        }
        self.reads(&mut node, operation, at, operands, facts.captures)?;

        let count = kinds.iter().filter(|kind| **kind != Kind::Token).count();
        if kinds[..count].contains(&Kind::Token) || kinds.len() > count + 1 {
            return Err(self.syntax.error(at, "an operation has one token at most, as its last result"));
        }
        let names = facts.names.unwrap_or((at, Vec::new()));
        let addresses = facts.addresses.unwrap_or((at, Vec::new()));
        let results = self.node_results(&kinds[..count], names, addresses)?;
        let id = self.graph.add_node(node, results);
        for update in facts.updates {
            self.update(id, update)?;
        }
        if let Some((at, origin)) = facts.origin {
            self.node_references.push((id, origin.into(), at));
        }
        let node = self.graph.node(id);
        let values = node.results.iter().map(|result| result.map_or(Bound::Nothing, Bound::Value));
        let token = (kinds.len() > count).then_some(Bound::Token(id));
        Ok(values.chain(token).collect())
    }

    /// The facts that the attributes of an operation state about its node; the other attributes go to the node.
    fn node_facts(&mut self, node: &mut Node, attributes: Dictionary) -> Parsed<NodeFacts> {
        let mut facts = NodeFacts::default();
        for (key, entry) in attributes {
            match &*key {
                key::NODE => facts.name = Some(self.text(entry, key::NODE)?),
                key::DOMAIN => facts.domain = Some(self.text(entry, key::DOMAIN)?),
                key::FUNCTION => facts.function = Some(self.text(entry, key::FUNCTION)?),
                key::RESULTS => facts.names = Some((entry.at, self.items(entry, key::RESULTS)?)),
                key::ADDRESSES => facts.addresses = Some((entry.at, self.items(entry, key::ADDRESSES)?)),
                key::ATTRIBUTES => facts.sequence = Some((entry.at, self.items(entry, key::ATTRIBUTES)?)),
                key::CAPTURES => facts.captures = self.integer(&entry, key::CAPTURES)?,
                key::UPDATES => facts.updates = self.items(entry, key::UPDATES)?,
                key::RECOMPUTES => facts.origin = Some((entry.at, self.text(entry, key::RECOMPUTES)?)),
                key::WORKSPACE => node.workspace = Some(self.workspace(entry)?),
                key::DRAWS_FROM => node.seed = Some(self.integer(&entry, key::DRAWS_FROM)?),
                _ if key.starts_with("lms.") => return Err(self.unknown(&key, &entry)),
                _ => {
                    let attr = self.attribute(&key, entry)?;
                    node.attributes.push((key.into(), attr));
                }
            }
        }
        Ok(facts)
    }

    /// Sets the node's operands and its control edges. The last operands are the values that its subgraphs read.
    fn reads(
        &self,
        node: &mut Node,
        operation: &str,
        at: usize,
        operands: SmallVec<[(Bound, String, usize); 4]>,
        captures: usize,
    ) -> Parsed<()> {
        let mut values: Vec<Option<ValueId>> = Vec::with_capacity(operands.len());
        for (bound, name, at) in operands {
            match bound {
                Bound::Token(before) => node.after.push(before),
                _ if !node.after.is_empty() && operation.starts_with("lms.") => {
                    return Err(self.syntax.error(at, format!("`{name}` is no token")));
                }
                Bound::Value(value) => values.push(Some(value)),
                Bound::Nothing => values.push(None),
                Bound::Waiting(value, after) => {
                    values.push(Some(value));
                    node.after.extend(after);
                }
            }
        }
        let Some(operand_count) = values.len().checked_sub(captures) else {
            return Err(self
                .syntax
                .error(at, format!("`{}` is more than the operands that there are", key::CAPTURES)));
        };
        for capture in values.split_off(operand_count) {
            let Some(value) = capture else {
                return Err(self.syntax.error(at, "what a subgraph reads cannot be left out"));
            };
            node.captures.push(value);
        }
        node.operands = values.into();
        Ok(())
    }

    /// The results of a node, by the kinds of those that are no token.
    fn node_results(
        &self,
        kinds: &[Kind],
        (names_at, names): (usize, Vec<Entry>),
        (addresses_at, addresses): (usize, Vec<Entry>),
    ) -> Parsed<Vec<Option<(String, Type, Place)>>> {
        let count = kinds.len();
        if names.len() != count {
            let message = format!("`{}` names {} of {count} results", key::RESULTS, names.len());
            return Err(self.syntax.error(names_at, message));
        }
        if !addresses.is_empty() && addresses.len() != count {
            let message = format!("`{}` places {} of {count} results", key::ADDRESSES, addresses.len());
            return Err(self.syntax.error(addresses_at, message));
        }
        let mut addresses = addresses.into_iter();
        let mut results = Vec::with_capacity(count);
        for (kind, name) in kinds.iter().zip(names) {
            let at = name.at;
            let name = self.text(name, key::RESULTS)?;
            let address = match addresses.next() {
                None | Some(Entry { value: Literal::Unit, .. }) => None,
                Some(entry) => Some(self.integer(&entry, key::ADDRESSES)?),
            };
            results.push(match kind {
                Kind::Value(ty, host) => Some((name, ty.clone(), self.place(*host, address, at)?)),
                _ => None,
            });
        }
        Ok(results)
    }

    /// Notes an update that a node states.
    fn update(&mut self, id: NodeId, update: Entry) -> Parsed<()> {
        let at = update.at;
        let Literal::Dictionary(mut fields) = update.value else {
            return Err(self.syntax.error(at, "an update is `{result = 0 : i64, variable = \"w\"}`"));
        };
        let result = fields.iter().position(|(name, _)| name == "result").map(|i| fields.remove(i).1);
        let result = result.map(|entry| self.integer::<usize>(&entry, "result")).transpose()?;
        let [variable] = self.fields(fields, ["variable"], at)?;
        let variable = self.text(variable, "variable")?;
        let is_there = |index: &usize| self.graph.node(id).results.get(*index).is_some_and(Option::is_some);
        if let Some(missing) = result.filter(|index| !is_there(index)) {
            return Err(self.syntax.error(at, format!("there is no result {missing}")));
        }
        self.updates.push((id, variable.into(), result, at));
        Ok(())
    }

    fn op(&self, operation: &str, at: usize, domain: Option<String>, function: Option<String>) -> Parsed<Op> {
        let given = domain.is_some() || function.is_some();
        let op = match (operation, operation.strip_prefix("onnx.")) {
            ("lms.swap_out" | "lms.swap_out_range", _) => Some(Op::new(LMSC_DOMAIN, "SwapOut")),
            ("lms.swap_in" | "lms.swap_in_range", _) => Some(Op::new(LMSC_DOMAIN, "SwapIn")),
            (_, Some("Custom")) => {
                let (Some(domain), Some(function)) = (domain, function) else {
                    let message = format!("`onnx.Custom` has `{}` and `{}`", key::DOMAIN, key::FUNCTION);
                    return Err(self.syntax.error(at, message));
                };
                return Ok(Op::new(&domain, &function));
            }
            (_, Some(name)) => Some(Op::new("", name)),
            _ => None,
        };
        match op {
            Some(op) if !given => Ok(op),
            Some(_) => Err(self.syntax.error(at, format!("only `onnx.Custom` has a `{}`", key::DOMAIN))),
            None => {
                let message = format!("`{operation}` is no operation of ONNX or of the dialect `lms`");
                Err(self.syntax.error(at, message))
            }
        }
    }

    /// Restores the order of the node's attributes in the file.
    fn reorder(&self, node: &mut Node, sequence: Vec<Entry>, at: usize) -> Parsed<()> {
        let mut left: HashMap<Name, Attr> = node.attributes.drain(..).collect();
        for entry in sequence {
            let at = entry.at;
            let name = self.text(entry, key::ATTRIBUTES)?;
            let Some(attr) = left.remove(&*name) else {
                return Err(self.syntax.error(at, format!("there is no attribute `{name}`")));
            };
            node.attributes.push((name.into(), attr));
        }
        match left.keys().min() {
            None => Ok(()),
            Some(name) => Err(self.syntax.error(at, format!("`{}` does not name `{name}`", key::ATTRIBUTES))),
        }
    }

    /// An attribute of ONNX.
    fn attribute(&self, name: &str, entry: Entry) -> Parsed<Attr> {
        let at = entry.at;
        let wrong = |s: &Syntax<'_>| s.error(at, format!("`{name}` is no attribute that ONNX has"));
        Ok(match entry.value {
            Literal::Int(int) => Attr::Int(i64::try_from(int).map_err(|_| wrong(&self.syntax))?),
            Literal::Float(bits) => Attr::Float(Float(f32::from_bits(bits))),
            Literal::String(bytes) => Attr::String(bytes.into()),
            Literal::NoFloats => Attr::Floats(Vec::new()),
            Literal::Dense(ty, bytes) => Attr::Tensor(ty, Data::Inline(bytes.into())),
            Literal::List(items) => {
                let (mut ints, mut floats, mut strings) = (Vec::new(), Vec::new(), Vec::new());
                let count = items.len();
                for item in items {
                    match item.value {
                        Literal::Int(int) => ints.push(i64::try_from(int).map_err(|_| wrong(&self.syntax))?),
                        Literal::Float(bits) => floats.push(Float(f32::from_bits(bits))),
                        Literal::String(bytes) => strings.push(bytes.into()),
                        _ => return Err(wrong(&self.syntax)),
                    }
                }
                match count {
                    n if n == ints.len() => Attr::Ints(ints),
                    n if n == floats.len() => Attr::Floats(floats),
                    n if n == strings.len() => Attr::Strings(strings),
                    _ => {
                        let message = "a list holds integers, floats or strings, of one kind";
                        return Err(self.syntax.error(at, message));
                    }
                }
            }
            Literal::Dictionary(fields) => match &*fields {
                [(key, Entry { value: Literal::List(items), .. })]
                    if key == "strings" && items.is_empty() =>
                {
                    Attr::Strings(Vec::new())
                }
                _ => match self.data(Entry { at, value: Literal::Dictionary(fields) }, None)? {
                    (Some(ty), data) => Attr::Tensor(ty, data),
                    (None, data) => Attr::Opaque(data),
                },
            },
            Literal::Unit | Literal::Bool(_) | Literal::Type(_) => return Err(wrong(&self.syntax)),
        })
    }

    /// Bytes, with the type if it is given. The elements must be of the known type.
    fn data(&self, entry: Entry, known: Option<&TensorType>) -> Parsed<(Option<TensorType>, Data)> {
        let at = entry.at;
        let wrong = |message: &str| Err(self.syntax.error(at, message));
        let fields = match entry.value {
            Literal::Dense(ty, bytes) => {
                if known.is_some_and(|known| *known != ty) {
                    return wrong("the elements are not of the argument's type");
                }
                return Ok((Some(ty), Data::Inline(bytes.into())));
            }
            Literal::Dictionary(fields) => fields,
            _ => return wrong("expected `dense<…>`, or `{bytes = …, digest = …}`"),
        };
        let (mut bytes, mut digest, mut hex, mut location, mut offset, mut ty) =
            (None, None, None, None, None, None);
        for (name, entry) in fields {
            match &*name {
                "bytes" => bytes = Some(self.integer::<u64>(&entry, "bytes")?),
                "offset" => offset = Some(self.integer::<u64>(&entry, "offset")?),
                "digest" => digest = Some(self.text(entry, "digest")?),
                "hex" => hex = Some(self.text(entry, "hex")?),
                "location" => location = Some(self.text(entry, "location")?),
                "type" => match entry.value {
                    Literal::Type(tensor) => ty = Some(tensor),
                    _ => return Err(self.syntax.error(entry.at, "expected a type of a tensor")),
                },
                _ => return Err(self.unknown(&name, &entry)),
            }
        }
        let data = match (bytes, digest, hex, location, offset) {
            (Some(length), Some(digest), None, None, None) => {
                let Ok(digest) = digest.parse() else { return wrong("a digest is a number in hexadecimal") };
                Data::Digest { length, digest }
            }
            (Some(length), None, None, Some(location), Some(offset)) => {
                Data::External { location, offset, length }
            }
            (None, None, Some(hex), None, None) => match hexadecimal(hex.as_bytes()) {
                Some(bytes) => Data::Inline(bytes.into()),
                None => return wrong("`hex` is two hexadecimal digits a byte"),
            },
            _ => {
                return wrong(
                    "bytes are told by `bytes` and `digest`, or by `bytes`, `location` and `offset`, or by `hex`",
                );
            }
        };
        Ok((ty, data))
    }

    fn workspace(&self, entry: Entry) -> Parsed<Workspace> {
        let at = entry.at;
        let Literal::Dictionary(fields) = entry.value else {
            return Err(self
                .syntax
                .error(at, "a workspace is `{address = 512 : ui64, bytes = 1024 : ui64}`"));
        };
        let [address, bytes] = self.fields(fields, ["address", "bytes"], at)?;
        let (address, bytes) = (self.integer(&address, "address")?, self.integer(&bytes, "bytes")?);
        Ok(Workspace { address, bytes: Bytes(bytes) })
    }

    fn place(&self, host: bool, address: Option<u64>, at: usize) -> Parsed<Place> {
        match (host, address) {
            (false, None) => Ok(Place::Device),
            (false, Some(address)) => Ok(Place::DeviceAt(address)),
            (true, None) => Ok(Place::Host),
            (true, Some(_)) => Err(self.syntax.error(at, "a value on the host has no address in the arena")),
        }
    }

    /// Resolves names to ids, now that everything has been read, and checks the signature.
    fn resolve(&mut self) -> Parsed<()> {
        for (id, name, at) in std::mem::take(&mut self.node_references) {
            let Some(origin) = self.graph.node_named(&name) else {
                return Err(self.syntax.error(at, format!("there is no node named `{name}`")));
            };
            self.graph.set_recomputes(id, origin);
        }
        for (id, name, result, at) in std::mem::take(&mut self.updates) {
            let Some(variable) = self.graph.value_named(&name) else {
                return Err(self.syntax.error(at, format!("there is no value named `{name}`")));
            };
            self.graph.add_update(id, Update { variable, result });
        }
        let variables = self.graph.variables();
        for &(value, at) in &self.variables {
            if variables.binary_search(&value).is_err() {
                let name = &self.graph.value(value).name;
                let message = format!(
                    "`{name}` is marked as a variable, but no operation has it in `{}`",
                    key::UPDATES
                );
                return Err(self.syntax.error(at, message));
            }
        }
        let mut written: HashMap<ValueId, Vec<Name>> = HashMap::new();
        for (value, variable) in new_values_of(&self.graph) {
            written.entry(value).or_default().push(self.graph.value(variable).name.clone());
        }
        for (&value, (stated, at)) in self.graph.outputs.iter().zip(&self.new_values) {
            let known = written.get(&value).map_or(&[][..], |names| names);
            if let Some(name) = stated.iter().find(|name| !known.contains(name)) {
                let output = &self.graph.value(value).name;
                let message =
                    format!("`{output}` is said to be the new value of `{name}`, which no operation says");
                return Err(self.syntax.error(*at, message));
            }
        }
        Ok(())
    }

    /// A name with `%`, and its place.
    fn percent(&mut self) -> Parsed<(&'a str, usize)> {
        let at = self.syntax.at;
        match self.syntax.token {
            Token::Marked(name) if name.starts_with('%') => {
                self.syntax.advance()?;
                Ok((name, at))
            }
            _ => Err(self.syntax.unexpected("a name such as `%0`")),
        }
    }

    /// The binding of `%0` or `%0#1`, its spelling, and its place.
    fn operand(&mut self) -> Parsed<(Bound, String, usize)> {
        let (name, at) = self.percent()?;
        let mut written = name.to_owned();
        let mut part = None;
        if let Token::Marked(number) = self.syntax.token
            && let Some(digits) = number.strip_prefix('#')
        {
            part = Some(digits.parse::<usize>().unwrap_or(usize::MAX));
            written.push_str(number);
            self.syntax.advance()?;
        }
        let Some(bound) = self.names.get(name) else {
            return Err(self.syntax.error(at, format!("`{name}` is not defined before this")));
        };
        match (part, &**bound) {
            (None, [bound]) => Ok((bound.clone(), written, at)),
            (None, all) => {
                let message = format!("`{name}` stands for {} results; say which: `{name}#0`", all.len());
                Err(self.syntax.error(at, message))
            }
            (Some(part), all) => match all.get(part) {
                Some(bound) => Ok((bound.clone(), written, at)),
                None => {
                    let count = lmsc_ir::words::count(all.len(), "result");
                    Err(self.syntax.error(at, format!("`{name}` stands for {count}")))
                }
            },
        }
    }

    fn bind(&mut self, name: &'a str, at: usize, bound: SmallVec<[Bound; 2]>) -> Parsed<()> {
        match self.names.insert(name, bound) {
            None => Ok(()),
            Some(_) => Err(self.syntax.error(at, format!("`{name}` is defined twice"))),
        }
    }

    /// Refuses a type that differs from that of the binding.
    fn agree(&self, bound: &Bound, stated: &Kind, name: &str, at: usize) -> Parsed<()> {
        let same = match (bound, stated) {
            (Bound::Value(value) | Bound::Waiting(value, _), Kind::Value(ty, host)) => {
                let value = self.graph.value(*value);
                value.ty == *ty && value.place.is_host() == *host
            }
            (Bound::Token(_), Kind::Token) | (Bound::Nothing, Kind::Nothing) => true,
            _ => false,
        };
        let is = || match bound {
            Bound::Value(value) | Bound::Waiting(value, _) => {
                let mut text = String::new();
                let value = self.graph.value(*value);
                crate::types::value(&mut text, &value.ty, value.place.is_host());
                text
            }
            Bound::Token(_) => "!lms.token".to_owned(),
            Bound::Nothing => "none".to_owned(),
        };
        if same {
            Ok(())
        } else {
            Err(self.syntax.error(at, format!("`{name}` is of type {}, not the one stated", is())))
        }
    }

    fn unknown(&self, name: &str, entry: &Entry) -> ParseError {
        self.syntax.error(entry.at, format!("there is no attribute `{name}` here"))
    }

    fn items(&self, entry: Entry, name: &str) -> Parsed<Vec<Entry>> {
        match entry.value {
            Literal::List(items) => Ok(items),
            _ => Err(self.syntax.error(entry.at, format!("`{name}` is a list"))),
        }
    }

    fn text(&self, entry: Entry, name: &str) -> Parsed<String> {
        let text = match entry.value {
            Literal::String(bytes) => String::from_utf8(bytes).ok(),
            _ => None,
        };
        text.ok_or_else(|| self.syntax.error(entry.at, format!("`{name}` is a string in UTF-8")))
    }

    fn integer<T: TryFrom<i128>>(&self, entry: &Entry, name: &str) -> Parsed<T> {
        let number = match entry.value {
            Literal::Int(int) => T::try_from(int).ok(),
            _ => None,
        };
        number.ok_or_else(|| self.syntax.error(entry.at, format!("`{name}` is another kind of number")))
    }

    /// The fields of these names; all of them, and no others, must be present.
    fn fields<const N: usize>(&self, fields: Dictionary, names: [&str; N], at: usize) -> Parsed<[Entry; N]> {
        let mut found: [Option<Entry>; N] = std::array::from_fn(|_| None);
        for (name, entry) in fields {
            match names.iter().position(|known| *known == name) {
                Some(i) => found[i] = Some(entry),
                None => return Err(self.unknown(&name, &entry)),
            }
        }
        match names.iter().zip(&found).find(|(_, entry)| entry.is_none()) {
            Some((name, _)) => Err(self.syntax.error(at, format!("`{name}` is missing"))),
            None => Ok(found.map(|entry| entry.expect("all are there"))),
        }
    }
}

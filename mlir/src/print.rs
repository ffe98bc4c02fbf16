use lmsc_ir::{
    Attr, Data, Def, ElementType, Float, Graph, Node, NodeId, Place, TensorType, Type, ValueId, Workspace,
};

use crate::types::{comma, double, float, half_float, push, quoted, separated, tensor, value};
use crate::{VERSION, key};

/// Tensors of more elements are written as size and digest, as in the text form.
pub(crate) const MAX_PRINTED_ELEMENTS: u64 = 16;

/// A construct that MLIR cannot express. Each names the node, or the graph input or initializer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrintError {
    /// An extent that is not a signed 64-bit number.
    #[error("{place}: {ty} has the extent {extent}; MLIR's end at 2^63 - 1")]
    Extent {
        /// The place.
        place: String,
        /// The type.
        ty: TensorType,
        /// The extent.
        extent: u64,
    },
    /// A name that an attribute in MLIR cannot have, or that the form reserves.
    #[error("{place}: the attribute `{name}` cannot be written in MLIR: {why}")]
    AttributeName {
        /// The node.
        place: String,
        /// The attribute.
        name: String,
        /// The reason.
        why: &'static str,
    },
    /// A value or a completion is used before its definition.
    #[error("{place} needs {what}, which comes later or not at all; MLIR takes what comes before")]
    Order {
        /// The node.
        place: String,
        /// The value or the node.
        what: String,
    },
    /// A copy that does not have exactly one operand and one result.
    #[error("{place} is a copy with other than one operand and one result")]
    Copy {
        /// The node.
        place: String,
    },
}

pub(crate) fn module(graph: &Graph) -> Result<String, PrintError> {
    let mut waited_for = vec![false; graph.node_capacity()];
    for &node in graph.order() {
        graph.node(node).after.iter().for_each(|before| waited_for[before.as_u32() as usize] = true);
    }
    let mut printer = Printer {
        graph,
        out: String::with_capacity(256 * (graph.order().len() + 1)),
        values: vec![None; graph.value_capacity()],
        tokens: vec![None; graph.node_capacity()],
        waited_for,
        nothing: None,
        next: 0,
    };
    printer.module()?;
    Ok(printer.out)
}

/// The name of a value or a token.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ssa {
    Argument(u32),
    /// The number of an operation with one result.
    Single(u32),
    /// The number of an operation, and the index of its result.
    Part(u32, u32),
}

struct Printer<'g> {
    graph: &'g Graph,
    out: String,
    /// By value.
    values: Vec<Option<Ssa>>,
    /// For each node, its completion.
    tokens: Vec<Option<Ssa>>,
    waited_for: Vec<bool>,
    /// The name of an omitted operand.
    nothing: Option<Ssa>,
    /// The number of the next operation with results.
    next: u32,
}

/// One operand or result in a signature.
#[derive(Clone, Copy)]
enum Item {
    Value(ValueId),
    Nothing,
    Token,
}

impl Printer<'_> {
    fn module(&mut self) -> Result<(), PrintError> {
        let graph = self.graph;
        self.out.push_str("module attributes {");
        if !graph.opsets.is_empty() {
            self.key(key::OPSETS);
            self.out.push('[');
            separated(&mut self.out, &graph.opsets, |out, (domain, version)| {
                out.push_str("{domain = ");
                quoted(out, domain.as_bytes());
                push(out, format_args!(", version = {version} : i64}}"));
            });
            self.out.push_str("], ");
        }
        self.key(key::VERSION);
        push(&mut self.out, format_args!("{VERSION} : i64}} {{\n  func.func "));
        symbol(&mut self.out, if graph.name.is_empty() { "main" } else { &graph.name });
        self.signature()?;
        if graph.name.is_empty() {
            push(&mut self.out, format_args!(" attributes {{{} = \"\"}}", key::GRAPH));
        }
        self.out.push_str(" {\n");
        if graph.order().iter().any(|&node| graph.node(node).operands.contains(&None)) {
            let nothing = self.number(1);
            self.nothing = Some(nothing(0));
            self.out.push_str("\"onnx.NoValue\"() {value} : () -> none\n");
        }
        for &node in graph.order() {
            self.node(node)?;
        }
        self.out.push_str("    return");
        let outputs = graph.outputs.iter().map(|&value| (Item::Value(value), self.values[index(value)]));
        let outputs: Vec<_> = outputs.collect();
        for (i, &(item, ssa)) in outputs.iter().enumerate() {
            match i {
                0 => self.out.push(' '),
                _ => comma(&mut self.out),
            }
            let Some(ssa) = ssa else {
                let what = self.called(item);
                return Err(PrintError::Order { place: "the graph".to_owned(), what });
            };
            print_ssa(&mut self.out, ssa);
        }
        if !outputs.is_empty() {
            self.out.push_str(" : ");
            self.types(outputs.iter().map(|(item, _)| *item));
        }
        self.out.push_str("\n  }\n}\n");
        Ok(())
    }

    /// Arguments and results of the function.
    fn signature(&mut self) -> Result<(), PrintError> {
        let graph = self.graph;
        let mut variables = vec![false; graph.value_capacity()];
        graph.variables().iter().for_each(|&variable| variables[index(variable)] = true);
        let mut is_input = vec![false; graph.value_capacity()];
        graph.inputs.iter().for_each(|&input| is_input[index(input)] = true);
        let default = |value: ValueId| match graph.def(value) {
            Def::Initializer(at) => Some(&graph.initializers[at].data),
            _ => None,
        };
        let given = graph.inputs.iter().map(|&value| (value, default(value)));
        let constants = graph.initializers.iter().filter(|it| !is_input[index(it.value)]);
        let stored = constants.map(|initializer| (initializer.value, Some(&initializer.data)));
        self.out.push('(');
        for (number, (value, data)) in (0..).zip(given.chain(stored)) {
            let is_input = is_input[index(value)];
            if number > 0 {
                comma(&mut self.out);
            }
            self.values[index(value)] = Some(Ssa::Argument(number));
            let name = &graph.value(value).name;
            self.extents(&graph.value(value).ty, || format!("`{name}`"))?;
            push(&mut self.out, format_args!("%arg{number}: "));
            self.types([Item::Value(value)]);
            self.out.push_str(" {");
            if let Place::DeviceAt(address) = graph.value(value).place {
                self.key(key::ADDRESS);
                push(&mut self.out, format_args!("{address} : ui64, "));
            }
            if let Some(data) = data {
                self.key(key::DATA);
                tensor_data(&mut self.out, graph.value(value).ty.as_tensor(), data, false);
                self.out.push_str(", ");
                if !is_input {
                    self.key(key::INITIALIZER);
                    quoted(&mut self.out, name.as_bytes());
                }
            }
            if variables[index(value)] {
                self.out.push_str(if is_input { "" } else { ", " });
                self.out.push_str(key::VARIABLE);
                self.out.push_str(if is_input { ", " } else { "" });
            }
            if is_input {
                self.key(key::NAME);
                quoted(&mut self.out, name.as_bytes());
            }
            self.out.push('}');
        }
        self.out.push(')');
        let mut new_values =
            vec![Vec::new(); if graph.outputs.is_empty() { 0 } else { graph.value_capacity() }];
        for (value, variable) in new_values_of(graph).filter(|_| !graph.outputs.is_empty()) {
            new_values[index(value)].push(variable);
        }
        for (i, &value) in graph.outputs.iter().enumerate() {
            match i {
                0 => self.out.push_str(" -> ("),
                _ => comma(&mut self.out),
            }
            self.types([Item::Value(value)]);
            self.out.push_str(" {");
            if !new_values[index(value)].is_empty() {
                self.key(key::NEW_VALUE_OF);
                self.out.push('[');
                separated(&mut self.out, &new_values[index(value)], |out, &variable| {
                    quoted(out, graph.value(variable).name.as_bytes());
                });
                self.out.push_str("], ");
            }
            self.key(key::NAME);
            quoted(&mut self.out, graph.value(value).name.as_bytes());
            self.out.push('}');
        }
        if !graph.outputs.is_empty() {
            self.out.push(')');
        }
        Ok(())
    }

    fn node(&mut self, id: NodeId) -> Result<(), PrintError> {
        let node = self.graph.node(id);
        for &value in node.results.iter().flatten() {
            self.extents(&self.graph.value(value).ty, || self.place(id))?;
        }
        let mut operands = Vec::with_capacity(node.operands.len() + node.captures.len() + node.after.len());
        for operand in node.operands.iter().copied().chain(node.captures.iter().copied().map(Some)) {
            operands.push(match operand {
                Some(value) => (Item::Value(value), self.value(id, value)?),
                None => (Item::Nothing, self.nothing.expect("it is printed where an operand is left out")),
            });
        }
        let tokens = node.after.iter().map(|&before| {
            let token = self.tokens[before.as_u32() as usize];
            token.ok_or_else(|| PrintError::Order { place: self.place(id), what: self.place(before) })
        });
        let tokens: Vec<Ssa> = tokens.collect::<Result<_, _>>()?;
        let copies = node.op.is_swap();
        if copies && !(matches!(*node.operands, [Some(_)]) && matches!(*node.results, [Some(_)])) {
            return Err(PrintError::Copy { place: self.place(id) });
        }
        let first = operands.iter().position(|(item, _)| matches!(item, Item::Value(_)));
        match first.filter(|_| !copies && !tokens.is_empty()) {
            Some(first) => self.wait(&mut operands[first], &tokens),
            None => operands.extend(tokens.iter().map(|&token| (Item::Token, token))),
        }

        let mut results: Vec<Item> =
            node.results.iter().map(|result| result.map_or(Item::Nothing, Item::Value)).collect();
        let triggers = !copies && self.waited_for[id.as_u32() as usize];
        let source = results.iter().position(|item| matches!(item, Item::Value(_)));
        if copies || (triggers && source.is_none()) {
            results.push(Item::Token);
        }
        let ssa = self.number(results.len());
        for (i, item) in results.iter().enumerate() {
            match item {
                Item::Value(value) => self.values[index(*value)] = Some(ssa(i)),
                Item::Token => self.tokens[id.as_u32() as usize] = Some(ssa(i)),
                Item::Nothing => {}
            }
        }
        let custom = self.operation(id);
        self.out.push('(');
        separated(&mut self.out, &operands, |out, (_, ssa)| print_ssa(out, *ssa));
        self.out.push_str(") ");
        self.attributes(id, custom)?;
        self.out.push_str(" : (");
        self.types(operands.iter().map(|(item, _)| *item));
        self.out.push_str(") -> ");
        match *results {
            [item] => self.types([item]),
            _ => {
                self.out.push('(');
                self.types(results.iter().copied());
                self.out.push(')');
            }
        }
        self.out.push('\n');
        if let (true, Some(source)) = (triggers, source) {
            let token = self.number(1);
            self.tokens[id.as_u32() as usize] = Some(token(0));
            self.out.push_str("\"lms.trigger\"(");
            print_ssa(&mut self.out, ssa(source));
            self.out.push_str(") : (");
            self.types([results[source]]);
            self.out.push_str(") -> !lms.token\n");
        }
        Ok(())
    }

    /// Makes the operand wait for the tokens.
    fn wait(&mut self, operand: &mut (Item, Ssa), tokens: &[Ssa]) {
        let (item, source) = *operand;
        let waiting = self.number(1);
        self.out.push_str("\"lms.wait\"(");
        separated(&mut self.out, [source].iter().chain(tokens), |out, &ssa| print_ssa(out, ssa));
        self.out.push_str(") : (");
        self.types([item].into_iter().chain(tokens.iter().map(|_| Item::Token)));
        self.out.push_str(") -> ");
        self.types([item]);
        self.out.push('\n');
        operand.1 = waiting(0);
    }

    /// Begins the line of an operation with `results` results; returns their names.
    fn number(&mut self, results: usize) -> impl Fn(usize) -> Ssa + use<> {
        let number = self.next;
        self.out.push_str("    ");
        match results {
            0 => {}
            1 => push(&mut self.out, format_args!("%{number} = ")),
            _ => push(&mut self.out, format_args!("%{number}:{results} = ")),
        }
        self.next += u32::from(results > 0);
        move |i| if results == 1 { Ssa::Single(number) } else { Ssa::Part(number, i as u32) }
    }

    /// Prints the name of the operation; returns whether domain and operator are attributes.
    fn operation(&mut self, id: NodeId) -> bool {
        let node = self.graph.node(id);
        let op = &node.op;
        let lms = match () {
            () if op.is_swap_in() && is_range(node) => "swap_in_range",
            () if op.is_swap_in() => "swap_in",
            () if op.is_swap_out() && is_range(node) => "swap_out_range",
            () if op.is_swap_out() => "swap_out",
            () => {
                let custom = !op.domain().is_empty() || !is_plain(op.name());
                let name = if custom { "Custom" } else { op.name() };
                push(&mut self.out, format_args!("\"onnx.{name}\""));
                return custom;
            }
        };
        push(&mut self.out, format_args!("\"lms.{lms}\""));
        false
    }

    /// Prints the attribute dictionary, in MLIR's order.
    fn attributes(&mut self, id: NodeId, custom: bool) -> Result<(), PrintError> {
        let graph = self.graph;
        let node = graph.node(id);
        let mut entries: Vec<(&str, String)> = Vec::with_capacity(node.attributes.len() + 4);
        let mut add = |name, print: &mut dyn FnMut(&mut String)| {
            let mut text = String::new();
            print(&mut text);
            entries.push((name, text));
        };
        add(key::NODE, &mut |out| quoted(out, node.name.as_bytes()));
        if custom {
            add(key::DOMAIN, &mut |out| quoted(out, node.op.domain().as_bytes()));
            add(key::FUNCTION, &mut |out| quoted(out, node.op.name().as_bytes()));
        }
        if !node.results.is_empty() {
            add(key::RESULTS, &mut |out| {
                list(out, &node.results, |out, result| {
                    quoted(out, result.map_or("", |value| &graph.value(value).name).as_bytes());
                });
            });
        }
        let address = |result: &Option<ValueId>| match result.map(|value| graph.value(value).place) {
            Some(Place::DeviceAt(address)) => Some(address),
            _ => None,
        };
        if node.results.iter().any(|result| address(result).is_some()) {
            add(key::ADDRESSES, &mut |out| {
                list(out, &node.results, |out, result| match address(result) {
                    Some(address) => push(out, format_args!("{address} : ui64")),
                    None => out.push_str("unit"),
                });
            });
        }
        if !node.captures.is_empty() {
            add(key::CAPTURES, &mut |out| push(out, format_args!("{} : i64", node.captures.len())));
        }
        if !node.updates.is_empty() {
            add(key::UPDATES, &mut |out| {
                list(out, &node.updates, |out, update| {
                    out.push('{');
                    if let Some(result) = update.result {
                        push(out, format_args!("result = {result} : i64, "));
                    }
                    out.push_str("variable = ");
                    quoted(out, graph.value(update.variable).name.as_bytes());
                    out.push('}');
                });
            });
        }
        if let Some(origin) = node.recomputes {
            add(key::RECOMPUTES, &mut |out| quoted(out, graph.node(origin).name.as_bytes()));
        }
        if let Some(Workspace { address, bytes }) = node.workspace {
            add(key::WORKSPACE, &mut |out| {
                push(out, format_args!("{{address = {address} : ui64, bytes = {} : ui64}}", bytes.0));
            });
        }
        if let Some(seed) = node.seed {
            add(key::DRAWS_FROM, &mut |out| push(out, format_args!("{seed} : ui64")));
        }
        if !node.attributes.is_sorted_by(|(a, _), (b, _)| a < b) {
            add(key::ATTRIBUTES, &mut |out| {
                list(out, &node.attributes, |out, (name, _)| quoted(out, name.as_bytes()));
            });
        }
        for (name, attr) in &node.attributes {
            if let Some(why) = unfit(name) {
                return Err(PrintError::AttributeName { place: self.place(id), name: name.to_string(), why });
            }
            if let Attr::Tensor(ty, _) = attr {
                self.extents(&Type::Tensor(ty.clone()), || self.place(id))?;
            }
            add(name, &mut |out| attribute(out, attr));
        }
        entries.sort_by_key(|(name, _)| *name);
        if let Some(twice) = entries.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            let (place, name) = (self.place(id), twice[0].0.to_owned());
            return Err(PrintError::AttributeName { place, name, why: "the node has two of this name" });
        }
        self.out.push('{');
        separated(&mut self.out, &entries, |out, (name, text)| {
            attribute_name(out, name);
            out.push_str(" = ");
            out.push_str(text);
        });
        self.out.push('}');
        Ok(())
    }

    fn types(&mut self, items: impl IntoIterator<Item = Item>) {
        let graph = self.graph;
        separated(&mut self.out, items, |out, item| match item {
            Item::Value(id) => value(out, &graph.value(id).ty, graph.value(id).place.is_host()),
            Item::Nothing => out.push_str("none"),
            Item::Token => out.push_str("!lms.token"),
        });
    }

    fn key(&mut self, name: &str) {
        push(&mut self.out, format_args!("{name} = "));
    }

    /// The name of the value, which the node reads.
    fn value(&self, node: NodeId, value: ValueId) -> Result<Ssa, PrintError> {
        self.values[index(value)].ok_or_else(|| PrintError::Order {
            place: self.place(node),
            what: self.called(Item::Value(value)),
        })
    }

    fn extents(&self, ty: &Type, place: impl Fn() -> String) -> Result<(), PrintError> {
        let tensors = match ty {
            Type::Tensor(ty) => std::slice::from_ref(ty),
            Type::Sequence(elements) => elements,
        };
        for ty in tensors {
            if let Some(&extent) = ty.dims.iter().find(|&&dim| dim > i64::MAX as u64) {
                return Err(PrintError::Extent { place: place(), ty: ty.clone(), extent });
            }
        }
        Ok(())
    }

    fn called(&self, item: Item) -> String {
        match item {
            Item::Value(value) => format!("`{}`", self.graph.value(value).name),
            Item::Nothing | Item::Token => String::new(),
        }
    }

    fn place(&self, node: NodeId) -> String {
        let node = self.graph.node(node);
        format!("`{}` ({})", node.name, node.op)
    }
}

/// Values and the variables whose new values they are, in the order of the nodes.
pub(crate) fn new_values_of(graph: &Graph) -> impl Iterator<Item = (ValueId, ValueId)> + '_ {
    graph.order().iter().flat_map(|&id| {
        let node = graph.node(id);
        node.updates.iter().filter_map(|update| {
            let value = node.results.get(update.result?).copied().flatten()?;
            (!matches!(graph.def(update.variable), Def::Result(..))).then_some((value, update.variable))
        })
    })
}

/// Whether the copy names a range of elements.
fn is_range(node: &Node) -> bool {
    let is_int = |name| matches!(node.attribute(name), Some(Attr::Int(_)));
    is_int("begin") && is_int("end")
}

/// Whether an operator of ONNX may have this name in the name of an operation.
fn is_plain(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && !["Custom", "NoValue"].contains(&name)
}

/// Why an attribute of ONNX cannot have this name.
fn unfit(name: &str) -> Option<&'static str> {
    match name {
        "" => Some("it has no name"),
        key::NODE | key::DOMAIN | key::FUNCTION => Some("the form uses this name itself"),
        _ if name.starts_with("lms.") => Some("names that begin with `lms.` are the form's own"),
        _ => None,
    }
}

fn index(value: ValueId) -> usize {
    value.as_u32() as usize
}

pub(crate) fn print_ssa(out: &mut String, ssa: Ssa) {
    match ssa {
        Ssa::Argument(number) => push(out, format_args!("%arg{number}")),
        Ssa::Single(number) => push(out, format_args!("%{number}")),
        Ssa::Part(number, part) => push(out, format_args!("%{number}#{part}")),
    }
}

/// Whether the name needs no quotes.
fn is_bare(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_$.".contains(&b))
}

fn attribute_name(out: &mut String, name: &str) {
    if is_bare(name) { out.push_str(name) } else { quoted(out, name.as_bytes()) }
}

fn symbol(out: &mut String, name: &str) {
    out.push('@');
    attribute_name(out, name);
}

fn list<T>(out: &mut String, items: impl IntoIterator<Item = T>, print: impl FnMut(&mut String, T)) {
    out.push('[');
    separated(out, items, print);
    out.push(']');
}

fn attribute(out: &mut String, attr: &Attr) {
    match attr {
        Attr::Int(int) => push(out, format_args!("{int} : si64")),
        Attr::Float(Float(value)) => {
            float(out, *value);
            out.push_str(" : f32");
        }
        Attr::String(bytes) => quoted(out, bytes),
        Attr::Ints(ints) => list(out, ints, push),
        Attr::Floats(floats) if floats.is_empty() => out.push_str("array<f32>"),
        Attr::Floats(floats) => list(out, floats, |out, Float(value)| {
            float(out, *value);
            out.push_str(" : f32");
        }),
        Attr::Strings(strings) if strings.is_empty() => out.push_str("{strings = []}"),
        Attr::Strings(strings) => list(out, strings, |out, bytes| quoted(out, bytes)),
        Attr::Tensor(ty, data) => tensor_data(out, Some(ty), data, true),
        Attr::Opaque(data) => tensor_data(out, None, data, false),
    }
}

/// Bytes, as elements if they are few and the type has literals; otherwise as their size and digest, or as a reference to a file.
/// With `typed` the type is included, unless the elements include it.
fn tensor_data(out: &mut String, ty: Option<&TensorType>, data: &Data, typed: bool) {
    let inline = match (ty, data) {
        (Some(ty), Data::Inline(bytes))
            if ty.element_count().is_some_and(|n| n <= MAX_PRINTED_ELEMENTS)
                && ty.byte_size().is_some_and(|size| size.0 == bytes.len() as u64) =>
        {
            if dense(out, ty, bytes) {
                return;
            }
            Some(bytes)
        }
        _ => None,
    };
    out.push('{');
    match data {
        Data::External { location, offset, length } => {
            push(out, format_args!("bytes = {length} : ui64, location = "));
            quoted(out, location.as_bytes());
            push(out, format_args!(", offset = {offset} : ui64"));
        }
        // A Boolean that is neither 0 nor 1.
        Data::Inline(bytes) if inline.is_some() && ty.is_some_and(|ty| ty.element == ElementType::Bool) => {
            out.push_str("hex = \"");
            bytes.iter().for_each(|byte| push(out, format_args!("{byte:02x}")));
            out.push('"');
        }
        _ => {
            let digest = data.digest().expect("only a range of another file has no digest");
            push(out, format_args!("bytes = {} : ui64, digest = \"{digest}\"", data.len()));
        }
    }
    if let (Some(ty), true) = (ty, typed) {
        out.push_str(", type = ");
        tensor(out, ty);
    }
    out.push('}');
}

/// Prints `dense<…> : tensor<…>`, if the type has literals for all elements.
pub(crate) fn dense(out: &mut String, ty: &TensorType, bytes: &[u8]) -> bool {
    macro_rules! literals {
        ($ty:ty, $print:expr) => {{
            let (chunks, _) = bytes.as_chunks::<{ size_of::<$ty>() }>();
            let print: fn(&mut String, $ty) = $print;
            nested(out, &ty.dims, &mut chunks.iter().map(|c| <$ty>::from_le_bytes(*c)), print);
        }};
    }
    let start = out.len();
    out.push_str("dense<");
    match ty.element {
        ElementType::Float => literals!(f32, float),
        ElementType::Double => literals!(f64, double),
        ElementType::Float16 => {
            literals!(u16, |out, bits| half_float(out, bits, half::f16::from_bits(bits).to_f64()))
        }
        ElementType::Bfloat16 => {
            literals!(u16, |out, bits| half_float(out, bits, half::bf16::from_bits(bits).to_f64()))
        }
        ElementType::Int8 => literals!(i8, push),
        ElementType::Int16 => literals!(i16, push),
        ElementType::Int32 => literals!(i32, push),
        ElementType::Int64 => literals!(i64, push),
        ElementType::Uint8 => literals!(u8, push),
        ElementType::Uint16 => literals!(u16, push),
        ElementType::Uint32 => literals!(u32, push),
        ElementType::Uint64 => literals!(u64, push),
        ElementType::Bool if bytes.iter().all(|&byte| byte <= 1) => {
            literals!(u8, |out, byte| push(out, byte == 1));
        }
        _ => {
            out.truncate(start);
            return false;
        }
    }
    push(out, format_args!("> : "));
    tensor(out, ty);
    true
}

/// Elements in brackets, one pair for each dimension; nothing if there are none.
fn nested<T>(
    out: &mut String,
    dims: &[u64],
    elements: &mut impl ExactSizeIterator<Item = T>,
    print: fn(&mut String, T),
) {
    let total = elements.len();
    for (i, element) in elements.enumerate() {
        // Number of dimensions that begin or end at an element: those whose block of elements it is the first or last of.
        let blocks = || {
            dims.iter().rev().scan(1, |block, &dim| {
                *block *= dim as usize;
                Some(*block)
            })
        };
        let begin = blocks().filter(|block| i % block == 0).count();
        let end = blocks().filter(|block| (i + 1) % block == 0).count();
        out.extend(std::iter::repeat_n('[', begin));
        print(out, element);
        out.extend(std::iter::repeat_n(']', end));
        if i + 1 < total {
            out.push_str(", ");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_nested_by_the_dimensions() {
        let text = |dims: &[u64], count: i64| {
            let mut out = String::new();
            nested(&mut out, dims, &mut (0..count).collect::<Vec<_>>().into_iter(), push);
            out
        };
        assert_eq!(text(&[], 1), "0");
        assert_eq!(text(&[1], 1), "[0]");
        assert_eq!(text(&[3], 3), "[0, 1, 2]");
        assert_eq!(text(&[2, 1, 2], 4), "[[[0, 1]], [[2, 3]]]");
        assert_eq!(text(&[0, 3], 0), "");
    }
}

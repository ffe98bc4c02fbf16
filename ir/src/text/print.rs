use std::fmt::{self, Write};

use foldhash::HashSet;
use half::{bf16, f16};

use super::is_bare;
use crate::{
    Attr, Bytes, Data, Def, ElementType, Float, Graph, NodeId, Op, Phase, Phases, TensorType, ValueId,
    Workspace,
};

/// Tensors of more elements are printed as size and digest.
const MAX_PRINTED_ELEMENTS: u64 = 16;

/// Columns of a line; a longer signature has a line for each value.
const COLUMNS: usize = 132;

/// How a graph is printed for people to read.
///
/// ```
/// use lmsc_ir::{Graph, PrintOptions};
///
/// let graph = Graph::parse("g (float[2] x) => (float[2] y) { [a] float[2] y = Relu(x) }")?;
/// let layout = PrintOptions { notes: true, ..PrintOptions::default() };
/// assert_eq!(graph.to_readable(&layout), "\
/// g (float[2] x) => (float[2] y)
/// {
///    // forward: 1 node
///    [a] float[2] y = Relu(x)  // tick 0, 8 B
/// }
/// ");
/// # Ok::<(), lmsc_ir::ParseError>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct PrintOptions {
    /// Maximum number of items of each list that are printed; the number of the others follows. A text with elided items cannot be
    /// parsed.
    pub elide: Option<usize>,
    /// Whether comments state the phases, and the tick and the bytes of the results of each node.
    pub notes: bool,
}

pub(super) fn graph(graph: &Graph) -> String {
    printed(graph, None)
}

pub(super) fn readable(graph: &Graph, layout: &PrintOptions) -> String {
    printed(graph, Some(layout))
}

fn printed(graph: &Graph, layout: Option<&PrintOptions>) -> String {
    let out = String::with_capacity(128 * graph.order().len());
    let mut p = Printer {
        graph,
        out,
        wraps: layout.is_some(),
        most: layout.and_then(|layout| layout.elide).unwrap_or(usize::MAX),
        phases: layout.filter(|layout| layout.notes).map(|_| Phases::of(graph, |_| None)),
    };
    p.graph();
    p.out
}

struct Printer<'a> {
    graph: &'a Graph,
    out: String,
    /// Whether a long signature has a line for each value.
    wraps: bool,
    /// Maximum number of items of a list.
    most: usize,
    /// The phases, if comments tell them.
    phases: Option<Phases>,
}

impl Printer<'_> {
    fn graph(&mut self) {
        let graph = self.graph;
        if !graph.opsets.is_empty() {
            self.out.push_str("<opset: ");
            for (i, (domain, version)) in graph.opsets.iter().enumerate() {
                self.comma(i);
                quoted(&mut self.out, domain.as_bytes());
                self.fmt(format_args!(" = {version}"));
            }
            self.out.push_str(">\n");
        }
        self.name(&graph.name);
        self.signature();
        let inputs: HashSet<ValueId> = graph.inputs.iter().copied().collect();
        let constants = || graph.initializers.iter().filter(|it| !inputs.contains(&it.value));
        for (i, initializer) in constants().enumerate().take(self.most) {
            self.out.push_str(if i == 0 { "<\n   " } else { ",\n   " });
            self.typed(&[initializer.value]);
            self.out.push_str(" = ");
            data(&mut self.out, graph.value(initializer.value).ty.as_tensor(), &initializer.data);
        }
        let count = constants().count();
        self.elided(count, "\n   ");
        if count > 0 {
            self.out.push_str("\n>\n");
        }
        self.out.push_str("{\n");
        let mut last = None;
        for (&node, tick) in graph.order().iter().zip(0..) {
            self.section(node, tick, &mut last);
            self.out.push_str("   ");
            self.node(node);
            self.note(node, tick);
            self.out.push('\n');
        }
        self.out.push_str("}\n");
    }

    /// Inputs and outputs: on one line, or a line for each value if that is long.
    fn signature(&mut self) {
        let (graph, start) = (self.graph, self.out.rfind('\n').map_or(0, |at| at + 1));
        let end = self.out.len();
        self.out.push_str(" (");
        for (i, &value) in graph.inputs.iter().enumerate().take(self.most) {
            self.comma(i);
            self.port(value, true);
        }
        self.elided(graph.inputs.len(), ", ");
        self.out.push_str(") => (");
        self.typed(&graph.outputs);
        self.out.push_str(")\n");
        if !self.wraps || self.out.len() - start <= COLUMNS {
            return;
        }
        self.out.truncate(end);
        let ports = [(&graph.inputs, true, [" (", "\n) => ("]), (&graph.outputs, false, ["", "\n)\n"])];
        for (values, are_inputs, [open, close]) in ports {
            self.out.push_str(open);
            for (i, &value) in values.iter().enumerate().take(self.most) {
                self.out.push_str(if i == 0 { "\n   " } else { ",\n   " });
                self.port(value, are_inputs);
            }
            self.elided(values.len(), "\n   ");
            self.out.push_str(close);
        }
    }

    /// An input, with its default if it has one, or an output.
    fn port(&mut self, value: ValueId, is_input: bool) {
        self.typed(&[value]);
        if let (true, Def::Initializer(index)) = (is_input, self.graph.def(value)) {
            self.out.push_str(" = ");
            let default = &self.graph.initializers[index].data;
            data(&mut self.out, self.graph.value(value).ty.as_tensor(), default);
        }
    }

    /// Tells after the items of a list how many are left out.
    fn elided(&mut self, count: usize, before: &str) {
        if let Some(more @ 1..) = count.checked_sub(self.most) {
            self.fmt(format_args!("{before}... {more} more"));
        }
    }

    /// The comment in front of the nodes of a phase.
    fn section(&mut self, node: NodeId, tick: usize, last: &mut Option<Phase>) {
        let Some(phases) = &self.phases else { return };
        let phase = phases.phase(node);
        if last.replace(phase) == Some(phase) {
            return;
        }
        let nodes = self.graph.order()[tick..].iter().take_while(|&&node| phases.phase(node) == phase);
        let count = crate::words::count(nodes.count(), "node");
        self.fmt(format_args!("   // {phase}: {count}\n"));
    }

    /// The comment at the end of a node's line.
    fn note(&mut self, node: NodeId, tick: usize) {
        if self.phases.is_some() {
            let results = self.graph.node(node).results.iter().flatten();
            let bytes: u64 = results.filter_map(|&v| self.graph.value(v).ty.byte_size()).map(|b| b.0).sum();
            self.fmt(format_args!("  // tick {tick}, {}", Bytes(bytes)));
        }
    }

    fn node(&mut self, id: NodeId) {
        let graph = self.graph;
        let node = graph.node(id);
        self.nodes(&[id]);
        for (i, result) in node.results.iter().enumerate() {
            self.out.push_str(if i == 0 { " " } else { ", " });
            match result {
                Some(value) => self.typed(&[*value]),
                None => self.out.push('_'),
            }
        }
        self.out.push_str(" = ");
        self.op(&node.op);
        for (i, (name, attr)) in node.attributes.iter().enumerate() {
            self.out.push_str(if i == 0 { "<" } else { ", " });
            self.name(name);
            self.out.push_str(" = ");
            attribute(&mut self.out, attr);
        }
        self.out.push_str(if node.attributes.is_empty() { "(" } else { ">(" });
        for (i, operand) in node.operands.iter().enumerate().take(self.most) {
            self.comma(i);
            match operand {
                Some(value) => self.name(&graph.value(*value).name),
                None => self.out.push('_'),
            }
        }
        self.elided(node.operands.len(), ", ");
        self.out.push(')');
        if !node.captures.is_empty() {
            self.out.push_str(" captures (");
            for (i, &value) in node.captures.iter().enumerate().take(self.most) {
                self.comma(i);
                self.name(&graph.value(value).name);
            }
            self.elided(node.captures.len(), ", ");
            self.out.push(')');
        }
        if !node.updates.is_empty() {
            self.out.push_str(" updates (");
            for (i, update) in node.updates.iter().enumerate() {
                self.comma(i);
                self.name(&graph.value(update.variable).name);
                if let Some(value) = update.result.and_then(|r| node.results.get(r).copied().flatten()) {
                    self.out.push_str(" as ");
                    self.name(&graph.value(value).name);
                }
            }
            self.out.push(')');
        }
        if let Some(origin) = node.recomputes {
            self.out.push_str(" recomputes ");
            self.nodes(&[origin]);
        }
        if let Some(Workspace { address, bytes }) = node.workspace {
            self.fmt(format_args!(" workspace {}@device:{address}", bytes.0));
        }
        if let Some(seed) = node.seed {
            self.fmt(format_args!(" seed {seed}"));
        }
        if !node.after.is_empty() {
            self.out.push_str(" after ");
            self.nodes(&node.after);
        }
    }

    fn nodes(&mut self, nodes: &[NodeId]) {
        self.out.push('[');
        for (i, &node) in nodes.iter().enumerate().take(self.most) {
            self.comma(i);
            self.name(&self.graph.node(node).name);
        }
        self.elided(nodes.len(), ", ");
        self.out.push(']');
    }

    fn typed(&mut self, values: &[ValueId]) {
        for (i, &value) in values.iter().enumerate().take(self.most) {
            self.comma(i);
            let value = self.graph.value(value);
            self.fmt(format_args!("{}{} ", value.ty, value.place));
            self.name(&value.name);
        }
        self.elided(values.len(), ", ");
    }

    fn op(&mut self, op: &Op) {
        let plain = |s: &str| !s.is_empty() && s.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_');
        let domain = op.domain().is_empty() || op.domain().split('.').all(plain);
        if domain && plain(op.name()) && !op.name().as_bytes()[0].is_ascii_digit() && is_bare(&op.to_string())
        {
            self.fmt(format_args!("{op}"));
        } else {
            quoted(&mut self.out, op.domain().as_bytes());
            quoted(&mut self.out, op.name().as_bytes());
        }
    }

    fn name(&mut self, name: &str) {
        if is_bare(name) {
            self.out.push_str(name);
        } else {
            quoted(&mut self.out, name.as_bytes());
        }
    }

    fn comma(&mut self, index: usize) {
        if index > 0 {
            self.out.push_str(", ");
        }
    }

    fn fmt(&mut self, args: fmt::Arguments<'_>) {
        self.out.write_fmt(args).expect("a String takes everything");
    }
}

/// As in the text form.
impl fmt::Display for Attr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        attribute(&mut text, self);
        f.pad(&text)
    }
}

fn attribute(out: &mut String, attr: &Attr) {
    match attr {
        Attr::Int(value) => push(out, value),
        Attr::Float(value) => float(out, *value),
        Attr::String(bytes) => quoted(out, bytes),
        Attr::Ints(list) => bracketed(out, "ints", list, |out, v| push(out, v)),
        Attr::Floats(list) => bracketed(out, "floats", list, |out, v| float(out, *v)),
        Attr::Strings(list) => bracketed(out, "strings", list, |out, v| quoted(out, v)),
        Attr::Tensor(ty, bytes) => {
            push(out, ty);
            out.push(' ');
            data(out, Some(ty), bytes);
        }
        Attr::Opaque(bytes) => {
            out.push_str("opaque ");
            data(out, None, bytes);
        }
    }
}

fn bracketed<T>(out: &mut String, kind: &str, list: &[T], print: impl Fn(&mut String, &T)) {
    if list.is_empty() {
        out.push_str(kind);
        out.push(' ');
    }
    separated(out, ['[', ']'], list, print);
}

fn separated<T>(
    out: &mut String,
    [open, close]: [char; 2],
    items: impl IntoIterator<Item = T>,
    print: impl Fn(&mut String, T),
) {
    out.push(open);
    for (i, item) in items.into_iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        print(out, item);
    }
    out.push(close);
}

fn push(out: &mut String, value: impl std::fmt::Display) {
    write!(out, "{value}").expect("a String takes everything");
}

/// The shortest text that reads back as the same bits.
fn float(out: &mut String, Float(value): Float) {
    match value {
        v if v.is_nan() && v.to_bits() != f32::NAN.to_bits() => {
            write!(out, "nan:{:08x}", v.to_bits()).expect("a String takes everything");
        }
        v if v.is_nan() => out.push_str("nan"),
        v => write!(out, "{v:?}").expect("a String takes everything"),
    }
}

fn data(out: &mut String, ty: Option<&TensorType>, data: &Data) {
    if let Data::External { location, offset, length } = data {
        out.push_str("external(");
        quoted(out, location.as_bytes());
        return push(out, format_args!(", {offset}, {length})"));
    }
    if let (Some(ty), Data::Inline(bytes)) = (ty, data)
        && ty.element_count().is_some_and(|n| n <= MAX_PRINTED_ELEMENTS)
        && ty.byte_size().is_some_and(|b| b.0 == bytes.len() as u64)
        && elements(out, ty.element, bytes)
    {
        return;
    }
    let digest = data.digest().expect("only a range of another file has no digest");
    push(out, format_args!("bytes({}, 0x{digest})", data.len()));
}

/// Prints the elements in braces, if the text form has literals for their type.
fn elements(out: &mut String, element: ElementType, bytes: &[u8]) -> bool {
    macro_rules! list {
        ($ty:ty, $print:expr) => {{
            let (chunks, _) = bytes.as_chunks::<{ size_of::<$ty>() }>();
            separated(out, ['{', '}'], chunks.iter().map(|c| <$ty>::from_le_bytes(*c)), $print);
        }};
    }
    match element {
        ElementType::Float => list!(f32, |out, v| float(out, Float(v))),
        ElementType::Double => list!(f64, |out, v| if v.is_nan() {
            push(out, format_args!("nan:{:016x}", v.to_bits()))
        } else {
            push(out, format_args!("{v:?}"))
        }),
        ElementType::Float16 => list!(u16, |out, bits| short_float(out, f16::from_bits(bits).to_f32(), bits)),
        ElementType::Bfloat16 => {
            list!(u16, |out, bits| short_float(out, bf16::from_bits(bits).to_f32(), bits))
        }
        ElementType::Int8 => list!(i8, push),
        ElementType::Int16 => list!(i16, push),
        ElementType::Int32 => list!(i32, push),
        ElementType::Int64 => list!(i64, push),
        ElementType::Uint8 | ElementType::Bool => list!(u8, push),
        ElementType::Uint16 => list!(u16, push),
        ElementType::Uint32 => list!(u32, push),
        ElementType::Uint64 => list!(u64, push),
        _ => return false,
    }
    true
}

/// A float of 16 bits, as the number that it is; its bits, if it is none.
fn short_float(out: &mut String, value: f32, bits: u16) {
    if value.is_nan() {
        push(out, format_args!("nan:{bits:04x}"));
    } else {
        push(out, format_args!("{value:?}"));
    }
}

/// A string in quotes: printable text as it is, everything else as `\xNN`.
fn quoted(out: &mut String, bytes: &[u8]) {
    out.push('"');
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                c if crate::words::is_hidden(c) => {
                    let mut buffer = [0; 4];
                    c.encode_utf8(&mut buffer).bytes().for_each(|b| push(out, format_args!("\\x{b:02x}")));
                }
                c => out.push(c),
            }
        }
        chunk.invalid().iter().for_each(|b| push(out, format_args!("\\x{b:02x}")));
    }
    out.push('"');
}

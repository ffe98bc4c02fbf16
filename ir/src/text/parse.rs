use std::str::FromStr;

use half::{bf16, f16};
use smallvec::SmallVec;

use super::lex::{Lexer, ParseError, Token};
use crate::{
    Attr, Bytes, Data, Def, Digest, ElementType, Float, Graph, Name, Node, NodeId, Op, Place, TensorType,
    Type, Update, Value, ValueId, Workspace,
};

type Parsed<T> = Result<T, ParseError>;

pub(super) fn graph(text: &str) -> Parsed<Graph> {
    let mut lexer = Lexer::new(text);
    let (token, at) = lexer.next()?;
    let mut parser = Parser {
        lexer,
        token,
        at,
        graph: Graph::new(""),
        node_references: Vec::new(),
        variables: Vec::new(),
        output_types: Vec::new(),
    };
    parser.graph()?;
    Ok(parser.graph)
}

/// The kind of edge that a node's name was read for; resolved when all nodes are known.
enum Reference {
    After,
    Recomputes,
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    token: Token<'a>,
    at: usize,
    graph: Graph,
    node_references: Vec<(NodeId, Reference, Name, usize)>,
    /// Updated variables, with their positions in the text.
    variables: Vec<(ValueId, usize)>,
    output_types: Vec<(ValueId, Type, Place, usize)>,
}

impl<'a> Parser<'a> {
    fn graph(&mut self) -> Parsed<()> {
        if self.peek("<") {
            self.opsets()?;
        }
        self.graph.name = self.name()?.to_string();
        self.list("(", ")", |p| {
            let (ty, place) = p.typed()?;
            let at = p.at;
            let name = p.name()?;
            let value = if p.peek("=") {
                p.stored(name, (ty, place), at)?
            } else {
                p.define(name, ty, place, Def::Input)?
            };
            p.graph.inputs.push(value);
            Ok(())
        })?;
        self.expect("=>")?;
        self.list("(", ")", |p| {
            let (ty, place) = p.typed()?;
            let at = p.at;
            let value = p.value()?;
            p.output_types.push((value, ty, place, at));
            p.graph.outputs.push(value);
            Ok(())
        })?;
        if self.peek("<") {
            self.list("<", ">", Self::initializer)?;
        }
        self.expect("{")?;
        while !self.peek("}") {
            self.node()?;
        }
        self.advance()?;
        if self.token != Token::End {
            return Err(self.unexpected("the end of the text after `}`"));
        }
        self.resolve()
    }

    fn opsets(&mut self) -> Parsed<()> {
        self.expect("<")?;
        if !matches!(self.token, Token::Bare("opset:")) {
            return Err(self.unexpected("`opset:`"));
        }
        self.advance()?;
        loop {
            let domain = self.name()?;
            self.expect("=")?;
            let version = self.number("a version")?;
            self.graph.opsets.insert(domain.to_string(), version);
            if !self.eat(",")? {
                return self.expect(">");
            }
        }
    }

    fn initializer(&mut self) -> Parsed<()> {
        let (ty, place) = self.typed()?;
        let at = self.at;
        let name = self.name()?;
        self.stored(name, (ty, place), at)?;
        Ok(())
    }

    /// The bytes of a constant, or the default of an input.
    fn stored(&mut self, name: Name, (ty, place): (Type, Place), at: usize) -> Parsed<ValueId> {
        self.expect("=")?;
        let Type::Tensor(tensor) = &ty else {
            return Err(self.lexer.error(at, "an initializer is a tensor, not a sequence"));
        };
        let data = self.data(Some(tensor))?;
        let index = self.graph.initializers.len();
        let value = self.define(name, ty, place, Def::Initializer(index))?;
        self.graph.initializers.push(crate::Initializer { value, data });
        Ok(value)
    }

    fn node(&mut self) -> Parsed<()> {
        self.expect("[")?;
        let name = self.name()?;
        self.expect("]")?;
        let id =
            self.graph.add_node(Node::new(name, Op::new("", "")), std::iter::empty::<Option<(Name, _, _)>>());
        let mut results = SmallVec::new();
        while !self.peek("=") {
            results.push(if self.eat_bare("_")? {
                None
            } else {
                let (ty, place) = self.typed()?;
                let name = self.name()?;
                Some(self.define(name, ty, place, Def::Result(id, results.len()))?)
            });
            if !self.eat(",")? {
                break;
            }
        }
        self.expect("=")?;
        let op = self.op()?;
        let mut attributes = Vec::new();
        if self.peek("<") {
            self.list("<", ">", |p| {
                let name = p.name()?;
                p.expect("=")?;
                attributes.push((name, p.attribute()?));
                Ok(())
            })?;
        }
        let mut operands = SmallVec::new();
        self.list("(", ")", |p| {
            operands.push(if p.eat_bare("_")? { None } else { Some(p.value()?) });
            Ok(())
        })?;
        let node = self.graph.node_mut(id);
        (node.op, node.attributes, node.operands, node.results) = (op, attributes, operands, results);
        self.edges(id)
    }

    fn edges(&mut self, id: NodeId) -> Parsed<()> {
        loop {
            if self.eat_bare("captures")? {
                let mut captures = SmallVec::new();
                self.list("(", ")", |p| {
                    captures.push(p.value()?);
                    Ok(())
                })?;
                self.graph.node_mut(id).captures = captures;
            } else if self.eat_bare("updates")? {
                self.list("(", ")", |p| {
                    let at = p.at;
                    let variable = p.value()?;
                    p.variables.push((variable, at));
                    let mut result = None;
                    if p.eat_bare("as")? {
                        let at = p.at;
                        let value = p.value()?;
                        result = p.graph.node(id).results.iter().position(|r| *r == Some(value));
                        if result.is_none() {
                            return Err(p.lexer.error(at, "`as` takes one of the node's own results"));
                        }
                    }
                    p.graph.add_update(id, Update { variable, result });
                    Ok(())
                })?;
            } else if self.eat_bare("recomputes")? {
                self.references(id, || Reference::Recomputes)?;
            } else if self.eat_bare("workspace")? {
                let bytes = Bytes(self.number("the size of a workspace, in bytes")?);
                let Place::DeviceAt(address) = self.place()? else {
                    return Err(self.unexpected("`@device:OFFSET` before"));
                };
                self.graph.node_mut(id).workspace = Some(Workspace { address, bytes });
            } else if self.eat_bare("seed")? {
                let seed = self.number("a seed")?;
                self.graph.set_seed(id, seed);
            } else if self.eat_bare("after")? {
                self.references(id, || Reference::After)?;
            } else {
                return Ok(());
            }
        }
    }

    fn references(&mut self, id: NodeId, kind: impl Fn() -> Reference) -> Parsed<()> {
        self.list("[", "]", |p| {
            let at = p.at;
            let name = p.name()?;
            p.node_references.push((id, kind(), name, at));
            Ok(())
        })
    }

    /// Turns names of nodes into ids, now that every node has been seen.
    fn resolve(&mut self) -> Parsed<()> {
        for (id, kind, name, at) in std::mem::take(&mut self.node_references) {
            let Some(target) = self.graph.node_named(&name) else {
                return Err(self.lexer.error(at, format!("there is no node named `{name}`")));
            };
            match kind {
                Reference::After => self.graph.node_mut(id).after.push(target),
                Reference::Recomputes => self.graph.set_recomputes(id, target),
            }
        }
        for &(variable, at) in &self.variables {
            if self.graph.def(variable) == Def::Nothing {
                let name = &self.graph.value(variable).name;
                return Err(self.lexer.error(at, format!("there is no value named `{name}`")));
            }
        }
        for (value, ty, place, at) in std::mem::take(&mut self.output_types) {
            let def = self.graph.def(value);
            let value = self.graph.value_mut(value);
            if def == Def::Nothing {
                (value.ty, value.place) = (ty, place);
            } else if value.ty != ty || value.place != place {
                let defined = format!("{}{}", value.ty, value.place);
                let name = value.name.clone();
                let message = format!("the output `{name}` is {ty}{place} here, but defined as {defined}");
                return Err(self.lexer.error(at, message));
            }
        }
        Ok(())
    }

    fn typed(&mut self) -> Parsed<(Type, Place)> {
        let ty = if self.eat_bare("seq")? {
            let mut elements = Vec::new();
            self.list("(", ")", |p| {
                elements.push(p.tensor_type()?);
                Ok(())
            })?;
            Type::Sequence(elements)
        } else {
            Type::Tensor(self.tensor_type()?)
        };
        Ok((ty, self.place()?))
    }

    fn place(&mut self) -> Parsed<Place> {
        if !self.eat("@")? {
            return Ok(Place::Device);
        }
        let place = match &self.token {
            Token::Bare("host") => Some(Place::Host),
            Token::Bare(text) => {
                text.strip_prefix("device:").and_then(|offset| offset.parse().ok()).map(Place::DeviceAt)
            }
            _ => None,
        };
        let Some(place) = place else { return Err(self.unexpected("`host` or `device:OFFSET`")) };
        self.advance()?;
        Ok(place)
    }

    fn tensor_type(&mut self) -> Parsed<TensorType> {
        let element = match &self.token {
            Token::Bare(name) => ElementType::from_str(name).ok(),
            _ => None,
        };
        let Some(element) = element else { return Err(self.unexpected("a type such as `float[4,256]`")) };
        self.advance()?;
        let mut dims = Vec::new();
        self.list("[", "]", |p| {
            if let Token::Bare(symbol) = p.token {
                let message = format!("the extent `{symbol}` is not a number; the text form has sizes only");
                return Err(p.lexer.error(p.at, message));
            }
            dims.push(p.number("an extent")?);
            Ok(())
        })?;
        Ok(TensorType { element, dims })
    }

    fn op(&mut self) -> Parsed<Op> {
        match std::mem::replace(&mut self.token, Token::End) {
            Token::Bare(text) => {
                self.advance()?;
                let (domain, name) = text.rsplit_once('.').unwrap_or(("", text));
                Ok(Op::new(domain, name))
            }
            Token::Quoted(domain) => {
                self.advance()?;
                let domain = self.text(domain)?;
                let name = self.name()?;
                Ok(Op::new(&domain, &name))
            }
            token => {
                self.token = token;
                Err(self.unexpected("an operator"))
            }
        }
    }

    fn attribute(&mut self) -> Parsed<Attr> {
        match &self.token {
            Token::Number(text) => {
                let text = *text;
                let attr = match text.parse::<i64>() {
                    Ok(int) => Attr::Int(int),
                    Err(_) => Attr::Float(self.float(text)?),
                };
                self.advance()?;
                Ok(attr)
            }
            Token::Quoted(_) => Ok(Attr::String(self.string()?)),
            Token::Punct("[") => self.bracketed(),
            Token::Bare("ints") => self.empty_list(Attr::Ints(Vec::new())),
            Token::Bare("floats") => self.empty_list(Attr::Floats(Vec::new())),
            Token::Bare("strings") => self.empty_list(Attr::Strings(Vec::new())),
            Token::Bare("opaque") => {
                self.advance()?;
                Ok(Attr::Opaque(self.data(None)?))
            }
            Token::Bare(text) if is_float_word(text) => {
                let value = self.float(text)?;
                self.advance()?;
                Ok(Attr::Float(value))
            }
            Token::Bare(_) => {
                let ty = self.tensor_type()?;
                let data = self.data(Some(&ty))?;
                Ok(Attr::Tensor(ty, data))
            }
            _ => Err(self.unexpected("an attribute's value")),
        }
    }

    fn empty_list(&mut self, list: Attr) -> Parsed<Attr> {
        self.advance()?;
        self.expect("[")?;
        self.expect("]")?;
        Ok(list)
    }

    /// A list whose kind is that of its first element.
    fn bracketed(&mut self) -> Parsed<Attr> {
        let mut list: Option<Attr> = None;
        self.list("[", "]", |p| {
            let at = p.at;
            let mixed = "a list holds integers, floats or strings, of one kind";
            // Checked before the element is read: nested lists would be parsed recursively to any depth.
            if p.peek("[") {
                return Err(p.lexer.error(at, mixed));
            }
            let element = p.attribute()?;
            list = Some(match (list.take(), element) {
                (None, Attr::Int(v)) => Attr::Ints(vec![v]),
                (None, Attr::Float(v)) => Attr::Floats(vec![v]),
                (None, Attr::String(v)) => Attr::Strings(vec![v]),
                (Some(Attr::Ints(mut list)), Attr::Int(v)) => {
                    list.push(v);
                    Attr::Ints(list)
                }
                (Some(Attr::Floats(mut list)), Attr::Float(v)) => {
                    list.push(v);
                    Attr::Floats(list)
                }
                (Some(Attr::Strings(mut list)), Attr::String(v)) => {
                    list.push(v);
                    Attr::Strings(list)
                }
                _ => return Err(p.lexer.error(at, mixed)),
            });
            Ok(())
        })?;
        list.ok_or_else(|| {
            self.lexer.error(self.at, "an empty list needs its kind: `ints []`, `floats []`, `strings []`")
        })
    }

    fn data(&mut self, ty: Option<&TensorType>) -> Parsed<Data> {
        if self.eat_bare("external")? {
            self.expect("(")?;
            let location = self.string()?;
            let location = self.text(location.into())?;
            self.expect(",")?;
            let offset = self.number("an offset")?;
            self.expect(",")?;
            let length = self.number("a length")?;
            self.expect(")")?;
            return Ok(Data::External { location, offset, length });
        }
        if self.eat_bare("bytes")? {
            self.expect("(")?;
            let length = self.number("a length")?;
            self.expect(",")?;
            let digest = match &self.token {
                Token::Number(text) => {
                    text.strip_prefix("0x").and_then(|digits| digits.parse::<Digest>().ok())
                }
                _ => None,
            };
            let Some(digest) = digest else { return Err(self.unexpected("a digest such as 0x00ff…")) };
            self.advance()?;
            self.expect(")")?;
            return Ok(Data::Digest { length, digest });
        }
        match ty {
            Some(ty) => self.elements(ty),
            None => Err(self.unexpected("`bytes(length, digest)`")),
        }
    }

    fn elements(&mut self, ty: &TensorType) -> Parsed<Data> {
        let at = self.at;
        let mut bytes = Vec::new();
        macro_rules! number {
            ($p:ident, $ty:ty) => {{
                let value: $ty = $p.number(concat!("a value of type ", stringify!($ty)))?;
                bytes.extend_from_slice(&value.to_le_bytes());
            }};
        }
        let mut count = 0u64;
        self.list("{", "}", |p| {
            count += 1;
            match ty.element {
                ElementType::Float => {
                    let (Token::Number(text) | Token::Bare(text)) = p.token else {
                        return Err(p.unexpected("a number"));
                    };
                    bytes.extend_from_slice(&p.float(text)?.0.to_le_bytes());
                    p.advance()?;
                }
                ElementType::Double => match p.nan_bits(16)? {
                    Some(bits) => bytes.extend_from_slice(&bits.to_le_bytes()),
                    None if p.eat_bare("inf")? => bytes.extend_from_slice(&f64::INFINITY.to_le_bytes()),
                    None => number!(p, f64),
                },
                ElementType::Float16 | ElementType::Bfloat16 => {
                    bytes.extend_from_slice(&p.short_float(ty.element)?.to_le_bytes());
                }
                ElementType::Bool => {
                    let value: u8 = p.number("a value of type bool: 0 or 1")?;
                    bytes.push(u8::from(value != 0));
                }
                ElementType::Int8 => number!(p, i8),
                ElementType::Int16 => number!(p, i16),
                ElementType::Int32 => number!(p, i32),
                ElementType::Int64 => number!(p, i64),
                ElementType::Uint8 => number!(p, u8),
                ElementType::Uint16 => number!(p, u16),
                ElementType::Uint32 => number!(p, u32),
                ElementType::Uint64 => number!(p, u64),
                other => return Err(p.lexer.error(p.at, format!("{other} has no literals; use bytes(…)"))),
            }
            Ok(())
        })?;
        if ty.element_count() != Some(count) {
            return Err(self.lexer.error(
                at,
                format!("{ty} does not hold {}", crate::words::count(count as usize, "element")),
            ));
        }
        Ok(Data::Inline(bytes.into()))
    }

    /// The bits of a number that is none, `nan:` and hexadecimal digits, if one comes next.
    fn nan_bits(&mut self, digits: usize) -> Parsed<Option<u64>> {
        let Token::Bare(text) = self.token else { return Ok(None) };
        let hex = text.strip_prefix("nan:").filter(|hex| hex.len() == digits);
        let bits = hex.and_then(|hex| u64::from_str_radix(hex, 16).ok());
        if bits.is_some() {
            self.advance()?;
        }
        Ok(bits)
    }

    /// The bits of a float of 16 bits. An integer is none: texts of older versions have the bits in its place.
    fn short_float(&mut self, element: ElementType) -> Parsed<u16> {
        if let Some(bits) = self.nan_bits(4)? {
            return Ok(bits as u16);
        }
        let text = match self.token {
            Token::Number(text) if text.contains(['.', 'e', 'i']) => text,
            Token::Bare("inf") => "inf",
            _ => return Err(self.unexpected("a number with a point, such as 1.0, or inf, or nan:7e00")),
        };
        let Float(value) = self.float(text)?;
        let (bits, fits) = match element {
            ElementType::Float16 => (f16::from_f32(value).to_bits(), f16::from_f32(value).is_finite()),
            _ => (bf16::from_f32(value).to_bits(), bf16::from_f32(value).is_finite()),
        };
        if value.is_finite() && !fits {
            return Err(self.lexer.error(self.at, format!("`{text}` is too large for {element}")));
        }
        self.advance()?;
        Ok(bits)
    }

    fn float(&self, text: &str) -> Parsed<Float> {
        let bits = text.strip_prefix("nan:").and_then(|hex| u32::from_str_radix(hex, 16).ok());
        let value = match (text, bits) {
            (_, Some(bits)) => Some(f32::from_bits(bits)),
            ("nan", _) => Some(f32::NAN),
            _ => text.parse().ok(),
        };
        value.map(Float).ok_or_else(|| self.lexer.error(self.at, format!("`{text}` is not a number")))
    }

    /// Reads a value's name; a name not met before is a value that nothing defines yet.
    fn value(&mut self) -> Parsed<ValueId> {
        let name = self.name()?;
        if let Some(value) = self.graph.value_named(&name) {
            return Ok(value);
        }
        let ty = Type::Tensor(TensorType::new(ElementType::Float, []));
        Ok(self.graph.add_value(Value { name, ty, place: Place::Device }, Def::Nothing))
    }

    /// Defines a value; a second definition becomes a second value of that name, which the verifier reports.
    fn define(&mut self, name: Name, ty: Type, place: Place, def: Def) -> Parsed<ValueId> {
        let value = Value { name: name.clone(), ty, place };
        match self.graph.value_named(&name) {
            Some(known) if self.graph.def(known) == Def::Nothing => {
                *self.graph.value_mut(known) = value;
                self.graph.set_def(known, def);
                Ok(known)
            }
            _ => Ok(self.graph.add_value(value, def)),
        }
    }

    fn name(&mut self) -> Parsed<Name> {
        match std::mem::replace(&mut self.token, Token::End) {
            Token::Bare(name) => {
                self.advance()?;
                Ok(name.into())
            }
            Token::Quoted(bytes) => {
                self.advance()?;
                Ok(self.text(bytes)?.into())
            }
            token => {
                self.token = token;
                Err(self.unexpected("a name"))
            }
        }
    }

    fn text(&self, bytes: Vec<u8>) -> Parsed<String> {
        String::from_utf8(bytes).map_err(|_| self.lexer.error(self.at, "a name must be UTF-8"))
    }

    fn string(&mut self) -> Parsed<bytes::Bytes> {
        match std::mem::replace(&mut self.token, Token::End) {
            Token::Quoted(bytes) => {
                self.advance()?;
                Ok(bytes.into())
            }
            token => {
                self.token = token;
                Err(self.unexpected("a string in quotes"))
            }
        }
    }

    fn number<T: FromStr>(&mut self, what: &str) -> Parsed<T> {
        let parsed = match &self.token {
            Token::Number(text) => text.parse().ok(),
            _ => None,
        };
        let Some(value) = parsed else { return Err(self.unexpected(what)) };
        self.advance()?;
        Ok(value)
    }

    fn list(
        &mut self,
        open: &'static str,
        close: &'static str,
        mut item: impl FnMut(&mut Parser<'a>) -> Parsed<()>,
    ) -> Parsed<()> {
        self.expect(open)?;
        if self.eat(close)? {
            return Ok(());
        }
        loop {
            item(self)?;
            if !self.eat(",")? {
                return self.expect(close);
            }
        }
    }

    fn peek(&self, punctuation: &'static str) -> bool {
        self.token == Token::Punct(punctuation)
    }

    fn eat(&mut self, punctuation: &'static str) -> Parsed<bool> {
        let found = self.peek(punctuation);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn eat_bare(&mut self, word: &'static str) -> Parsed<bool> {
        let found = self.token == Token::Bare(word);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expect(&mut self, punctuation: &'static str) -> Parsed<()> {
        if self.eat(punctuation)? { Ok(()) } else { Err(self.unexpected(&format!("`{punctuation}`"))) }
    }

    fn unexpected(&self, wanted: &str) -> ParseError {
        self.lexer.error(self.at, format!("expected {wanted}, found {}", self.token.describe()))
    }

    fn advance(&mut self) -> Parsed<()> {
        (self.token, self.at) = self.lexer.next()?;
        Ok(())
    }
}

fn is_float_word(text: &str) -> bool {
    matches!(text, "inf" | "nan") || text.starts_with("nan:")
}

//! StableHLO's text as operations, in the pretty form and in the generic one: syntax, nothing of the operators' meaning.

use std::collections::BTreeMap;

use lmsc_ir::{ElementType, ParseError, TensorType};

use crate::read::lex::Token;
use crate::read::syntax::{Elements, Syntax};

pub(super) type Parsed<T> = Result<T, ParseError>;

/// Maximum nesting of regions, attributes and places.
const DEEPEST: u32 = 32;

/// An attribute, as far as an operator of StableHLO has one.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Attribute {
    Unit,
    Int(i64),
    Bool(bool),
    Text(String),
    /// A function.
    Symbol(String),
    /// A name of a choice, such as `GT`.
    Word(String),
    /// A list, or two with `x` between them.
    List(Vec<Attribute>),
    Map(Attributes),
    Dense(Elements),
    /// Accepted and without use here: types, floats, attributes of other dialects.
    Other,
}

/// Attributes by name, in their order.
pub(super) type Attributes = Vec<(String, Attribute)>;

/// The place of an operation in the program that wrote the text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Loc<'a> {
    Nowhere,
    Name(String),
    Alias(&'a str),
}

/// `%name` or `%name#index`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reference<'a> {
    pub(super) name: &'a str,
    pub(super) index: usize,
    pub(super) at: usize,
}

#[derive(Debug)]
pub(super) struct Operation<'a> {
    pub(super) at: usize,
    /// With its dialect: `stablehlo.add`.
    pub(super) name: String,
    /// Names of the results, and how many each stands for.
    pub(super) results: Vec<(&'a str, usize)>,
    pub(super) operands: Vec<Reference<'a>>,
    pub(super) attributes: Attributes,
    pub(super) regions: Vec<Block<'a>>,
    /// Types of the results; of a `return`, those of the operands.
    pub(super) types: Vec<TensorType>,
    pub(super) loc: Loc<'a>,
}

#[derive(Debug, Default)]
pub(super) struct Block<'a> {
    pub(super) arguments: Vec<(&'a str, TensorType)>,
    pub(super) operations: Vec<Operation<'a>>,
}

#[derive(Debug)]
pub(super) struct Argument<'a> {
    pub(super) name: &'a str,
    pub(super) at: usize,
    pub(super) ty: TensorType,
    pub(super) attributes: Attributes,
    pub(super) loc: Loc<'a>,
}

#[derive(Debug)]
pub(super) struct Function<'a> {
    pub(super) name: String,
    pub(super) at: usize,
    pub(super) arguments: Vec<Argument<'a>>,
    pub(super) results: Vec<(TensorType, Attributes)>,
    pub(super) body: Block<'a>,
}

/// A module, and the names of places.
#[derive(Debug, Default)]
pub(super) struct Module<'a> {
    pub(super) name: Option<String>,
    pub(super) attributes: Attributes,
    pub(super) functions: Vec<Function<'a>>,
    pub(super) places: BTreeMap<&'a str, Loc<'a>>,
}

impl Operation<'_> {
    pub(super) fn attribute(&self, name: &str) -> Option<&Attribute> {
        find(&self.attributes, name)
    }
}

/// The attribute of this name.
pub(super) fn find<'m>(attributes: &'m Attributes, name: &str) -> Option<&'m Attribute> {
    attributes.iter().find(|(n, _)| n == name).map(|(_, value)| value)
}

/// The module of the text.
pub(super) fn module(text: &str) -> Parsed<Module<'_>> {
    let mut parser = Parser { s: Syntax::new(text)?, places: BTreeMap::new() };
    let mut module = Module::default();
    parser.aliases()?;
    parser.s.eat_bare("builtin.module")?;
    if module_starts(&parser.s) {
        parser.s.eat_bare("module")?;
    }
    if let Token::Marked(name) = parser.s.token
        && let Some(name) = name.strip_prefix('@')
    {
        module.name = Some(name.to_owned());
        parser.s.advance()?;
    } else if let Token::Symbol(name) = &parser.s.token {
        module.name = Some(String::from_utf8_lossy(name).into_owned());
        parser.s.advance()?;
    }
    if parser.s.eat_bare("attributes")? {
        module.attributes = parser.dictionary(0)?;
    }
    parser.s.expect("{")?;
    while !parser.s.eat("}")? {
        match parser.s.token {
            Token::Bare("func.func") => module.functions.push(parser.function()?),
            // A mesh of devices says nothing that a step on one device needs; operators that use one are refused.
            Token::Bare("sdy.mesh") => parser.mesh()?,
            _ => return Err(parser.s.unexpected("`func.func`")),
        }
    }
    parser.loc()?;
    parser.aliases()?;
    if parser.s.token != Token::End {
        return Err(parser.s.unexpected("the end of the text after the module"));
    }
    module.places = parser.places;
    Ok(module)
}

fn module_starts(s: &Syntax<'_>) -> bool {
    s.token == Token::Bare("module")
}

struct Parser<'a> {
    s: Syntax<'a>,
    places: BTreeMap<&'a str, Loc<'a>>,
}

impl<'a> Parser<'a> {
    /// Definitions such as `#loc1 = loc("x")`.
    fn aliases(&mut self) -> Parsed<()> {
        while let Token::Marked(name) = self.s.token
            && name.starts_with('#')
        {
            self.s.advance()?;
            self.s.expect("=")?;
            if self.s.token == Token::Bare("loc") {
                let loc = self.loc()?;
                self.places.insert(name, loc);
            } else {
                self.attribute(0)?;
            }
        }
        Ok(())
    }

    /// An optional `loc(…)`.
    fn loc(&mut self) -> Parsed<Loc<'a>> {
        if !self.s.eat_bare("loc")? {
            return Ok(Loc::Nowhere);
        }
        if !self.s.peek("(") {
            return Err(self.s.unexpected("`(`"));
        }
        self.s.advance()?;
        let loc = match &self.s.token {
            Token::Marked(alias) if alias.starts_with('#') => {
                let loc = Loc::Alias(alias);
                self.s.advance()?;
                loc
            }
            Token::Quoted(text) => {
                let name = String::from_utf8_lossy(text).into_owned();
                self.s.advance()?;
                // `"file.py":7:6` is a place in a file.
                if self.s.peek(":") { Loc::Nowhere } else { Loc::Name(name) }
            }
            _ => Loc::Nowhere,
        };
        self.skip_to(")")?;
        self.s.expect(")")?;
        Ok(loc)
    }

    /// Skips up to the closing bracket that belongs to one that was read.
    fn skip_to(&mut self, close: &'static str) -> Parsed<()> {
        let mut open: Vec<&'static str> = vec![close];
        loop {
            match &self.s.token {
                Token::Punct("(") => open.push(")"),
                Token::Punct("[") => open.push("]"),
                Token::Punct("{") => open.push("}"),
                Token::Punct("<") => open.push(">"),
                Token::Punct(close @ (")" | "]" | "}" | ">")) => {
                    if open.last() != Some(close) {
                        return Err(self.s.unexpected(&format!("`{}`", open[open.len() - 1])));
                    }
                    if open.len() == 1 {
                        return Ok(());
                    }
                    open.pop();
                }
                Token::End => return Err(self.s.unexpected(&format!("`{close}`"))),
                _ => {}
            }
            self.s.advance()?;
        }
    }

    fn mesh(&mut self) -> Parsed<()> {
        self.s.advance()?;
        self.s.advance()?;
        self.s.expect("=")?;
        self.s.expect("<")?;
        self.skip_to(">")?;
        self.s.expect(">")?;
        self.loc().map(|_| ())
    }

    fn function(&mut self) -> Parsed<Function<'a>> {
        let at = self.s.at;
        self.s.advance()?;
        for visibility in ["public", "private", "nested"] {
            self.s.eat_bare(visibility)?;
        }
        let name = self.symbol()?;
        let mut arguments = Vec::new();
        self.list("(", ")", |p| {
            let (name, at) = p.percent()?;
            p.s.expect(":")?;
            let ty = p.s.tensor_type()?;
            let attributes = if p.s.peek("{") { p.dictionary(0)? } else { Vec::new() };
            arguments.push(Argument { name, at, ty, attributes, loc: p.loc()? });
            Ok(())
        })?;
        let mut results = Vec::new();
        if self.s.eat("->")? {
            if self.s.peek("(") {
                self.list("(", ")", |p| {
                    let ty = p.s.tensor_type()?;
                    let attributes = if p.s.peek("{") { p.dictionary(0)? } else { Vec::new() };
                    results.push((ty, attributes));
                    Ok(())
                })?;
            } else {
                results.push((self.s.tensor_type()?, Vec::new()));
            }
        }
        if self.s.eat_bare("attributes")? {
            self.dictionary(0)?;
        }
        let body = self.region(0)?;
        self.loc()?;
        Ok(Function { name, at, arguments, results, body })
    }

    fn symbol(&mut self) -> Parsed<String> {
        let name = match &self.s.token {
            Token::Marked(name) if name.starts_with('@') => name[1..].to_owned(),
            Token::Symbol(name) => String::from_utf8_lossy(name).into_owned(),
            _ => return Err(self.s.unexpected("the name of a function, such as `@main`")),
        };
        self.s.advance()?;
        Ok(name)
    }

    fn percent(&mut self) -> Parsed<(&'a str, usize)> {
        let at = self.s.at;
        match self.s.token {
            Token::Marked(name) if name.starts_with('%') => {
                self.s.advance()?;
                Ok((name, at))
            }
            _ => Err(self.s.unexpected("a value such as `%0`")),
        }
    }

    fn reference(&mut self) -> Parsed<Reference<'a>> {
        let (name, at) = self.percent()?;
        let index = match self.s.token {
            Token::Marked(index) if index.starts_with('#') => {
                let Ok(index) = index[1..].parse() else {
                    return Err(self.s.unexpected("the number of a result, such as `#0`"));
                };
                self.s.advance()?;
                index
            }
            _ => 0,
        };
        Ok(Reference { name, index, at })
    }

    /// `{ operations }`, with or without a head `^bb0(…):`.
    fn region(&mut self, depth: u32) -> Parsed<Block<'a>> {
        if depth > DEEPEST {
            return Err(self.s.error(self.s.at, "regions are nested too deep"));
        }
        self.s.expect("{")?;
        let mut block = Block::default();
        if matches!(self.s.token, Token::Marked(name) if name.starts_with('^')) {
            self.s.advance()?;
            if self.s.peek("(") {
                self.list("(", ")", |p| {
                    let (name, _) = p.percent()?;
                    p.s.expect(":")?;
                    block.arguments.push((name, p.s.tensor_type()?));
                    p.loc().map(|_| ())
                })?;
            }
            self.s.expect(":")?;
        }
        while !self.s.eat("}")? {
            if matches!(self.s.token, Token::Marked(name) if name.starts_with('^')) {
                return Err(self.s.error(self.s.at, "a region of several blocks; lmsc reads regions of one"));
            }
            block.operations.push(self.operation(depth)?);
        }
        Ok(block)
    }

    fn operation(&mut self, depth: u32) -> Parsed<Operation<'a>> {
        let mut results = Vec::new();
        if matches!(self.s.token, Token::Marked(name) if name.starts_with('%')) {
            loop {
                let (name, _) = self.percent()?;
                let mut count = 1;
                if self.s.eat(":")? {
                    count = match self.s.token {
                        Token::Integer(digits) => digits.parse().ok().filter(|&n| n <= 1 << 16),
                        _ => None,
                    }
                    .ok_or_else(|| self.s.unexpected("a number of results"))?;
                    self.s.advance()?;
                }
                results.push((name, count));
                if !self.s.eat(",")? {
                    break;
                }
            }
            self.s.expect("=")?;
        }
        let at = self.s.at;
        let mut op = Operation {
            at,
            name: String::new(),
            results,
            operands: Vec::new(),
            attributes: Vec::new(),
            regions: Vec::new(),
            types: Vec::new(),
            loc: Loc::Nowhere,
        };
        match std::mem::replace(&mut self.s.token, Token::End) {
            Token::Quoted(name) => {
                op.name = String::from_utf8_lossy(&name).into_owned();
                self.s.advance()?;
                self.generic(&mut op, depth)?;
            }
            Token::Bare(name) => {
                op.name = name.to_owned();
                self.s.advance()?;
                match name {
                    "stablehlo.constant" => self.constant(&mut op)?,
                    "stablehlo.while" => self.whiles(&mut op, depth)?,
                    "stablehlo.reduce" => self.reduce(&mut op, depth)?,
                    "stablehlo.slice" => self.slice(&mut op)?,
                    _ => self.pretty(&mut op, depth)?,
                }
            }
            token => {
                self.s.token = token;
                return Err(self.s.unexpected("an operation"));
            }
        }
        op.loc = self.loc()?;
        if op.name == "call" {
            op.name = "func.call".to_owned();
        }
        if op.name == "return" || op.name == "func.return" {
            op.name = "stablehlo.return".to_owned();
        }
        Ok(op)
    }

    /// `(operands) <{properties}> ({regions}) {attributes} : (types) -> types`.
    fn generic(&mut self, op: &mut Operation<'a>, depth: u32) -> Parsed<()> {
        self.list("(", ")", |p| {
            let reference = p.reference()?;
            op.operands.push(reference);
            Ok(())
        })?;
        if self.s.eat("<")? {
            op.attributes = self.dictionary(0)?;
            self.s.expect(">")?;
        }
        if self.s.peek("(") {
            self.list("(", ")", |p| {
                let region = p.region(depth + 1)?;
                op.regions.push(region);
                Ok(())
            })?;
        }
        if self.s.peek("{") {
            op.attributes.extend(self.dictionary(0)?);
        }
        self.s.expect(":")?;
        self.types(op)
    }

    /// Operands, words and named attributes in any order, then types.
    fn pretty(&mut self, op: &mut Operation<'a>, depth: u32) -> Parsed<()> {
        loop {
            match &self.s.token {
                Token::Marked(name) if name.starts_with('%') => {
                    let reference = self.reference()?;
                    op.operands.push(reference);
                }
                Token::Marked(name) if name.starts_with('@') => {
                    let name = self.symbol()?;
                    op.attributes.push(("callee".to_owned(), Attribute::Symbol(name)));
                }
                Token::Symbol(_) => {
                    let name = self.symbol()?;
                    op.attributes.push(("callee".to_owned(), Attribute::Symbol(name)));
                }
                Token::Quoted(text) => {
                    let text = String::from_utf8_lossy(text).into_owned();
                    op.attributes.push(("name".to_owned(), Attribute::Text(text)));
                    self.s.advance()?;
                }
                // The end of an operation without types.
                Token::Bare("loc") | Token::Punct("}") => return Ok(()),
                Token::Bare(word) => {
                    let word = *word;
                    self.s.advance()?;
                    if self.s.eat("=")? {
                        let value = match word {
                            "dim_numbers" => self.convolved()?,
                            _ => self.pair_or_one()?,
                        };
                        op.attributes.push((word.to_owned(), value));
                    } else {
                        let index = op.attributes.iter().filter(|(n, _)| n.starts_with('#')).count();
                        op.attributes.push((format!("#{index}"), Attribute::Word(word.to_owned())));
                    }
                }
                Token::Punct("{") => op.attributes.extend(self.dictionary(0)?),
                Token::Punct("[") => {
                    let value = self.attribute(0)?;
                    op.attributes.push(("[]".to_owned(), value));
                }
                Token::Punct("<") => {
                    self.s.advance()?;
                    self.skip_to(">")?;
                    self.s.expect(">")?;
                }
                Token::Punct("(" | ")" | ",") => self.s.advance()?,
                Token::Punct(":") => {
                    self.s.advance()?;
                    self.types(op)?;
                    // `stablehlo.if`, `stablehlo.case` and others have their regions elsewhere, in the generic form.
                    if self.s.peek("{") {
                        let region = self.region(depth + 1)?;
                        op.regions.push(region);
                    }
                    return Ok(());
                }
                _ => return Err(self.s.unexpected("an operand, an attribute or `:`")),
            }
        }
    }

    /// A value, or two lists with `x` between them.
    fn pair_or_one(&mut self) -> Parsed<Attribute> {
        let first = self.attribute(0)?;
        if !self.s.eat_bare("x")? {
            return Ok(first);
        }
        Ok(Attribute::List(vec![first, self.attribute(0)?]))
    }

    /// `(T, U) -> V`, `(T) -> (U, V)`, or a list of types, of which the results have the last ones.
    fn types(&mut self, op: &mut Operation<'a>) -> Parsed<()> {
        let mut listed = Vec::new();
        let functional = self.s.peek("(");
        if functional {
            self.list("(", ")", |p| p.s.tensor_type().map(|_| ()))?;
            self.s.expect("->")?;
            listed = self.result_types()?;
        } else {
            loop {
                listed.push(self.s.tensor_type()?);
                if !self.s.eat(",")? {
                    break;
                }
            }
            // `chlo.erf %0 : tensor<4xf32> -> tensor<4xf32>`.
            if self.s.eat("->")? {
                listed = self.result_types()?;
            } else {
                // Of `select`, the type of the condition precedes.
                let count: usize = op.results.iter().map(|(_, count)| count).sum();
                listed.drain(..listed.len().saturating_sub(count));
            }
        }
        op.types = listed;
        Ok(())
    }

    /// `V`, or `(U, V)`.
    fn result_types(&mut self) -> Parsed<Vec<TensorType>> {
        if !self.s.peek("(") {
            return Ok(vec![self.s.tensor_type()?]);
        }
        let mut types = Vec::new();
        self.list("(", ")", |p| {
            types.push(p.s.tensor_type()?);
            Ok(())
        })?;
        Ok(types)
    }

    fn constant(&mut self, op: &mut Operation<'a>) -> Parsed<()> {
        if self.s.peek("{") {
            self.dictionary(0)?;
        }
        let at = self.s.at;
        if self.s.token == Token::Bare("dense_resource") {
            let message = "the elements of this constant are not in the text; print the module with its constants, or \
                           give this tensor to the step as an argument";
            return Err(self.s.error(at, message));
        }
        let elements = self.s.elements()?;
        op.types = vec![elements.ty.clone()];
        op.attributes.push(("value".to_owned(), Attribute::Dense(elements)));
        Ok(())
    }

    /// `[0:8:1, 0:4] : types`, after the operand.
    fn slice(&mut self, op: &mut Operation<'a>) -> Parsed<()> {
        op.operands.push(self.reference()?);
        let [mut starts, mut limits, mut strides] = [const { Vec::new() }; 3];
        self.list("[", "]", |p| {
            starts.push(Attribute::Int(p.integer()?));
            p.s.expect(":")?;
            limits.push(Attribute::Int(p.integer()?));
            strides.push(Attribute::Int(if p.s.eat(":")? { p.integer()? } else { 1 }));
            Ok(())
        })?;
        for (name, list) in [("start_indices", starts), ("limit_indices", limits), ("strides", strides)] {
            op.attributes.push((name.to_owned(), Attribute::List(list)));
        }
        if self.s.peek("{") {
            self.dictionary(0)?;
        }
        self.s.expect(":")?;
        self.types(op)
    }

    /// `(%i = %a, %j = %b) : types attributes {…} cond {…} do {…}`.
    fn whiles(&mut self, op: &mut Operation<'a>, depth: u32) -> Parsed<()> {
        let mut names = Vec::new();
        self.list("(", ")", |p| {
            names.push(p.percent()?.0);
            p.s.expect("=")?;
            let reference = p.reference()?;
            op.operands.push(reference);
            Ok(())
        })?;
        if self.s.eat(":")? {
            loop {
                op.types.push(self.s.tensor_type()?);
                if !self.s.eat(",")? {
                    break;
                }
            }
        }
        if names.len() != op.types.len() {
            return Err(self.s.error(op.at, "there are not as many types as values that the loop carries"));
        }
        if self.s.eat_bare("attributes")? {
            self.dictionary(0)?;
        }
        for word in ["cond", "do"] {
            self.s.expect_bare(word)?;
            let mut region = self.region(depth + 1)?;
            region.arguments = names.iter().copied().zip(op.types.iter().cloned()).collect();
            op.regions.push(region);
        }
        Ok(())
    }

    /// `(%a init: %b), (%c init: %d) applies stablehlo.add across dimensions = [1] : types`, or with a `reducer` behind the types.
    fn reduce(&mut self, op: &mut Operation<'a>, depth: u32) -> Parsed<()> {
        let mut inits = Vec::new();
        loop {
            self.s.expect("(")?;
            op.operands.push(self.reference()?);
            self.s.expect_bare("init")?;
            self.s.expect(":")?;
            inits.push(self.reference()?);
            self.s.expect(")")?;
            if !self.s.eat(",")? {
                break;
            }
        }
        let pairs = inits.len();
        op.operands.extend(inits);
        if self.s.eat_bare("applies")? {
            let Token::Bare(name) = self.s.token else { return Err(self.s.unexpected("an operator")) };
            op.attributes.push(("applies".to_owned(), Attribute::Word(name.to_owned())));
            self.s.advance()?;
        }
        self.s.expect_bare("across")?;
        self.s.expect_bare("dimensions")?;
        self.s.expect("=")?;
        let dimensions = self.attribute(0)?;
        op.attributes.push(("dimensions".to_owned(), dimensions));
        if self.s.peek("{") {
            self.dictionary(0)?;
        }
        self.s.expect(":")?;
        self.types(op)?;
        if !self.s.eat_bare("reducer")? {
            return Ok(());
        }
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for _ in 0..pairs {
            let mut both = Vec::new();
            self.list("(", ")", |p| {
                let (name, _) = p.percent()?;
                p.s.expect(":")?;
                both.push((name, p.s.tensor_type()?));
                p.loc().map(|_| ())
            })?;
            let Ok([a, b]) = <[_; 2]>::try_from(both) else {
                return Err(self.s.error(op.at, "a reducer takes its arguments in pairs"));
            };
            left.push(a);
            right.push(b);
        }
        let mut region = self.region(depth + 1)?;
        region.arguments = left.into_iter().chain(right).collect();
        op.regions.push(region);
        Ok(())
    }

    fn integer(&mut self) -> Parsed<i64> {
        let negative = self.s.eat("-")?;
        let Token::Integer(digits) = self.s.token else { return Err(self.s.unexpected("an integer")) };
        let sign = if negative { "-" } else { "" };
        let Ok(value) = format!("{sign}{digits}").parse() else {
            return Err(self.s.unexpected("an integer of 64 bits"));
        };
        self.s.advance()?;
        Ok(value)
    }

    fn dictionary(&mut self, depth: u32) -> Parsed<Attributes> {
        self.map("{", "}", depth)
    }

    /// `{a = 1, b}`, or the same between other brackets.
    fn map(&mut self, open: &'static str, close: &'static str, depth: u32) -> Parsed<Attributes> {
        let mut entries = Attributes::new();
        self.list(open, close, |p| {
            let name = match &p.s.token {
                Token::Bare(name) => (*name).to_owned(),
                Token::Quoted(name) => String::from_utf8_lossy(name).into_owned(),
                _ => return Err(p.s.unexpected("the name of an attribute")),
            };
            p.s.advance()?;
            let value = if p.s.eat("=")? { p.attribute(depth + 1)? } else { Attribute::Unit };
            entries.push((name, value));
            Ok(())
        })?;
        Ok(entries)
    }

    fn attribute(&mut self, depth: u32) -> Parsed<Attribute> {
        if depth > DEEPEST {
            return Err(self.s.error(self.s.at, "attributes are nested too deep"));
        }
        let value = match &self.s.token {
            Token::Punct("[") => {
                let mut items = Vec::new();
                self.list("[", "]", |p| {
                    items.push(p.attribute(depth + 1)?);
                    Ok(())
                })?;
                Attribute::List(items)
            }
            Token::Punct("{") => Attribute::Map(self.dictionary(depth)?),
            Token::Punct("<") => {
                self.s.advance()?;
                self.skip_to(">")?;
                self.s.expect(">")?;
                Attribute::Other
            }
            Token::Integer(_) | Token::Float(_) | Token::Hexadecimal(_) | Token::Punct("-") => {
                let value = self.number()?;
                self.typed(depth)?;
                value
            }
            Token::Quoted(text) => {
                let text = String::from_utf8_lossy(text).into_owned();
                self.s.advance()?;
                self.typed(depth)?;
                Attribute::Text(text)
            }
            Token::Symbol(_) => Attribute::Symbol(self.symbol()?),
            Token::Marked(name) if name.starts_with('@') => Attribute::Symbol(self.symbol()?),
            Token::Marked(name) if name.starts_with('#') => {
                let name = *name;
                self.s.advance()?;
                self.of_dialect(name, depth)?
            }
            Token::Bare("dense") => Attribute::Dense(self.s.elements()?),
            Token::Bare("array") => self.array()?,
            Token::Bare("tensor") => {
                self.s.tensor_type()?;
                Attribute::Other
            }
            Token::Bare("true") => self.word(Attribute::Bool(true))?,
            Token::Bare("false") => self.word(Attribute::Bool(false))?,
            Token::Bare("unit") => self.word(Attribute::Unit)?,
            Token::Bare(word) => {
                let word = Attribute::Word((*word).to_owned());
                self.word(word)?
            }
            _ => return Err(self.s.unexpected("the value of an attribute")),
        };
        Ok(value)
    }

    fn word(&mut self, value: Attribute) -> Parsed<Attribute> {
        self.s.advance()?;
        Ok(value)
    }

    /// A type behind a number or a string. Outside of brackets, the types of the operation follow.
    fn typed(&mut self, depth: u32) -> Parsed<()> {
        if depth > 0 && self.s.eat(":")? {
            let Token::Bare(_) = self.s.token else { return Err(self.s.unexpected("a type")) };
            self.s.advance()?;
        }
        Ok(())
    }

    fn number(&mut self) -> Parsed<Attribute> {
        let negative = self.s.eat("-")?;
        let value = match self.s.token {
            Token::Integer(digits) => {
                let sign = if negative { "-" } else { "" };
                format!("{sign}{digits}").parse().map_or(Attribute::Other, Attribute::Int)
            }
            Token::Float(_) | Token::Hexadecimal(_) => Attribute::Other,
            _ => return Err(self.s.unexpected("a number")),
        };
        self.s.advance()?;
        Ok(value)
    }

    /// `array<i64: 1, 2>`.
    fn array(&mut self) -> Parsed<Attribute> {
        self.s.advance()?;
        self.s.expect("<")?;
        let Token::Bare(_) = self.s.token else { return Err(self.s.unexpected("a type such as `i64`")) };
        self.s.advance()?;
        let mut items = Vec::new();
        if self.s.eat(":")? {
            loop {
                items.push(self.attribute(DEEPEST)?);
                if !self.s.eat(",")? {
                    break;
                }
            }
        }
        self.s.expect(">")?;
        Ok(Attribute::List(items))
    }

    /// `#stablehlo<precision DEFAULT>`, `#stablehlo.gather<offset_dims = [0]>`, or an attribute of another dialect.
    fn of_dialect(&mut self, name: &str, depth: u32) -> Parsed<Attribute> {
        if !self.s.peek("<") {
            return Ok(Attribute::Other);
        }
        match name {
            "#stablehlo" | "#chlo" => {
                self.s.advance()?;
                let mut last = Attribute::Other;
                while let Token::Bare(word) = self.s.token {
                    last = Attribute::Word(word.to_owned());
                    self.s.advance()?;
                }
                self.skip_to(">")?;
                self.s.expect(">")?;
                Ok(last)
            }
            "#stablehlo.conv" => {
                self.s.advance()?;
                let value = self.convolved()?;
                self.s.expect(">")?;
                Ok(value)
            }
            "#stablehlo.gather" | "#stablehlo.scatter" | "#stablehlo.dot" => {
                Ok(Attribute::Map(self.map("<", ">", depth)?))
            }
            _ => {
                self.s.advance()?;
                self.skip_to(">")?;
                self.s.expect(">")?;
                Ok(Attribute::Other)
            }
        }
    }

    /// `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`.
    fn convolved(&mut self) -> Parsed<Attribute> {
        let mut lists = vec![self.attribute(0)?];
        self.s.expect_bare("x")?;
        lists.push(self.attribute(0)?);
        self.s.expect("->")?;
        lists.push(self.attribute(0)?);
        Ok(Attribute::List(lists))
    }

    /// The items between the brackets, with commas between them.
    fn list(
        &mut self,
        open: &'static str,
        close: &'static str,
        mut item: impl FnMut(&mut Parser<'a>) -> Parsed<()>,
    ) -> Parsed<()> {
        self.s.expect(open)?;
        if self.s.eat(close)? {
            return Ok(());
        }
        loop {
            item(self)?;
            if !self.s.eat(",")? {
                return self.s.expect(close);
            }
        }
    }
}

impl Attribute {
    /// The integers of a list, an array or a tensor of integers.
    pub(super) fn ints(&self) -> Option<Vec<i64>> {
        match self {
            Attribute::List(items) => items
                .iter()
                .map(|item| match item {
                    Attribute::Int(value) => Some(*value),
                    Attribute::Bool(value) => Some(i64::from(*value)),
                    _ => None,
                })
                .collect(),
            Attribute::Dense(elements) => {
                const MOST: u64 = 1 << 10;
                let count = elements.ty.element_count().filter(|&count| count <= MOST)?;
                let at = |i: u64| elements.at(if elements.is_splat { 0 } else { i });
                (0..count).map(at).collect()
            }
            _ => None,
        }
    }
}

impl Elements {
    /// The integer or truth value at this place.
    pub(super) fn at(&self, index: u64) -> Option<i64> {
        let width = (self.ty.element.bits() / 8) as usize;
        let bytes = self.bytes.chunks_exact(width.max(1)).nth(usize::try_from(index).ok()?)?;
        integer(self.ty.element, bytes)
    }
}

/// The integer or truth value of the bytes.
pub(super) fn integer(element: ElementType, bytes: &[u8]) -> Option<i64> {
    macro_rules! read {
        ($t:ty) => {
            <$t>::from_le_bytes(bytes.try_into().ok()?).try_into().ok()
        };
    }
    match element {
        ElementType::Bool | ElementType::Uint8 => read!(u8),
        ElementType::Int8 => read!(i8),
        ElementType::Int16 => read!(i16),
        ElementType::Uint16 => read!(u16),
        ElementType::Int32 => read!(i32),
        ElementType::Uint32 => read!(u32),
        ElementType::Int64 => read!(i64),
        ElementType::Uint64 => read!(u64),
        _ => None,
    }
}

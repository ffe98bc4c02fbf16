//! MLIR's grammar: types, attributes, operations; nothing of their meaning.

use lmsc_ir::{ElementType, ParseError, TensorType, Type};

use super::lex::{Lexer, Token};
use crate::types::{element_named, float_bytes};

pub(crate) type Parsed<T> = Result<T, ParseError>;

/// Maximum nesting of lists: the form itself has two levels.
const DEEPEST: u32 = 16;

/// A type of the form.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// A value, and whether it is on the host.
    Value(Type, bool),
    Token,
    Nothing,
}

/// An attribute.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
    Unit,
    Bool(bool),
    Int(i128),
    /// The bits of an `f32`.
    Float(u32),
    String(Vec<u8>),
    List(Vec<Entry>),
    Dictionary(Vec<(String, Entry)>),
    /// Elements of a tensor, least significant byte first.
    Dense(TensorType, Vec<u8>),
    /// `array<f32>`, without elements.
    NoFloats,
    Type(TensorType),
}

/// An attribute and its position.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) at: usize,
    pub(crate) value: Literal,
}

/// The elements of a constant tensor, least significant byte first.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Elements {
    pub(crate) ty: TensorType,
    /// All elements, or one if all are equal.
    pub(crate) bytes: Vec<u8>,
    pub(crate) is_splat: bool,
}

/// Attributes by name.
pub(crate) type Dictionary = Vec<(String, Entry)>;

pub(crate) struct Syntax<'a> {
    lexer: Lexer<'a>,
    pub(crate) token: Token<'a>,
    /// The position of the token.
    pub(crate) at: usize,
}

impl<'a> Syntax<'a> {
    pub(crate) fn new(text: &'a str) -> Parsed<Syntax<'a>> {
        let mut lexer = Lexer::new(text);
        let (token, at) = lexer.next()?;
        Ok(Syntax { lexer, token, at })
    }

    /// `tensor<…>`, `tuple<…>`, `!lms.host<…>`, `!lms.token` or `none`.
    pub(crate) fn kind(&mut self) -> Parsed<Kind> {
        if self.eat_bare("none")? {
            return Ok(Kind::Nothing);
        }
        if self.eat_marked("!lms.token")? {
            return Ok(Kind::Token);
        }
        if self.eat_marked("!lms.host")? {
            self.expect("<")?;
            let ty = self.value_type()?;
            self.expect(">")?;
            return Ok(Kind::Value(ty, true));
        }
        Ok(Kind::Value(self.value_type()?, false))
    }

    fn value_type(&mut self) -> Parsed<Type> {
        if self.eat_bare("tuple")? {
            let mut elements = Vec::new();
            self.list("<", ">", |s| {
                elements.push(s.tensor_type()?);
                Ok(())
            })?;
            return Ok(Type::Sequence(elements));
        }
        Ok(Type::Tensor(self.tensor_type()?))
    }

    pub(crate) fn tensor_type(&mut self) -> Parsed<TensorType> {
        if self.token != Token::Bare("tensor") {
            return Err(self.unexpected("a type such as `tensor<4x256xf32>`"));
        }
        self.advance()?;
        if !self.peek("<") {
            return Err(self.unexpected("`<`"));
        }
        // The token after `<` is not read yet.
        let dims = self.lexer.dims()?;
        self.advance()?;
        let element = self.element()?;
        self.expect(">")?;
        Ok(TensorType { element, dims })
    }

    fn element(&mut self) -> Parsed<ElementType> {
        let at = self.at;
        let name = match &self.token {
            Token::Bare("complex") => {
                self.advance()?;
                self.expect("<")?;
                let Token::Bare(part) = self.token else { return Err(self.unexpected("`f32` or `f64`")) };
                self.advance()?;
                // Its closing bracket is read below.
                if !self.peek(">") {
                    return Err(self.unexpected("`>`"));
                }
                format!("complex<{part}>")
            }
            Token::Bare(name) | Token::Marked(name) => (*name).to_owned(),
            _ => return Err(self.unexpected("an element type such as `f32`")),
        };
        let Some(element) = element_named(&name) else {
            return Err(self.error(at, format!("`{name}` is no element type of ONNX")));
        };
        self.advance()?;
        Ok(element)
    }

    /// `{a, b = …}`.
    pub(crate) fn dictionary(&mut self) -> Parsed<Dictionary> {
        self.dictionary_at(0)
    }

    fn dictionary_at(&mut self, depth: u32) -> Parsed<Dictionary> {
        let mut entries: Dictionary = Vec::new();
        self.list("{", "}", |s| {
            let at = s.at;
            let name = match std::mem::replace(&mut s.token, Token::End) {
                Token::Bare(name) => name.to_owned(),
                Token::Quoted(bytes) => s.utf8(bytes)?,
                token => {
                    s.token = token;
                    return Err(s.unexpected("the name of an attribute"));
                }
            };
            s.advance()?;
            let value =
                if s.eat("=")? { s.attribute(depth + 1)? } else { Entry { at, value: Literal::Unit } };
            entries.push((name, value));
            Ok(())
        })?;
        let mut names: Vec<&str> = entries.iter().map(|(name, _)| &**name).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            let (_, entry) = entries.iter().rfind(|(name, _)| name == twice[0]).expect("it is there twice");
            return Err(self.error(entry.at, format!("the attribute `{}` is given twice", twice[0])));
        }
        Ok(entries)
    }

    fn attribute(&mut self, depth: u32) -> Parsed<Entry> {
        let at = self.at;
        if depth > DEEPEST {
            return Err(self.error(at, "attributes are nested too deep"));
        }
        let value = match &self.token {
            Token::Quoted(_) => Literal::String(self.string()?),
            Token::Bare("unit") => self.word(Literal::Unit)?,
            Token::Bare("true") => self.word(Literal::Bool(true))?,
            Token::Bare("false") => self.word(Literal::Bool(false))?,
            Token::Bare("dense") => self.dense()?,
            Token::Bare("array") => {
                self.advance()?;
                self.expect("<")?;
                if !self.eat_bare("f32")? {
                    return Err(self.unexpected("`f32`"));
                }
                self.expect(">")?;
                Literal::NoFloats
            }
            Token::Bare("tensor") => Literal::Type(self.tensor_type()?),
            Token::Punct("{") => Literal::Dictionary(self.dictionary_at(depth)?),
            Token::Punct("[") => {
                let mut items = Vec::new();
                self.list("[", "]", |s| {
                    items.push(s.attribute(depth + 1)?);
                    Ok(())
                })?;
                Literal::List(items)
            }
            Token::Integer(_) | Token::Hexadecimal(_) | Token::Float(_) | Token::Punct("-") => {
                self.number()?
            }
            _ => return Err(self.unexpected("an attribute's value")),
        };
        Ok(Entry { at, value })
    }

    fn word(&mut self, literal: Literal) -> Parsed<Literal> {
        self.advance()?;
        Ok(literal)
    }

    /// `-1`, `1 : si64`, `1.0 : f32`, `0x7FC00000 : f32`.
    fn number(&mut self) -> Parsed<Literal> {
        let at = self.at;
        let negative = self.eat("-")?;
        let token = std::mem::replace(&mut self.token, Token::End);
        self.advance()?;
        let ty = if self.eat(":")? {
            let Token::Bare(ty) = self.token else { return Err(self.unexpected("a type such as `f32`")) };
            self.advance()?;
            Some(ty)
        } else {
            None
        };
        let sign = if negative { "-" } else { "" };
        let integer = |ty: Option<&str>| {
            let width = |ty: &str| ty.trim_start_matches(['s', 'u']).strip_prefix('i').map(str::to_owned);
            ty.is_none_or(|ty| ty == "index" || width(ty).is_some_and(|w| w.parse::<u32>().is_ok()))
        };
        let value = match token {
            Token::Integer(digits) if integer(ty) => format!("{sign}{digits}").parse().ok().map(Literal::Int),
            Token::Float(text) if ty == Some("f32") => {
                format!("{sign}{text}").parse().ok().map(f32::to_bits).map(Literal::Float)
            }
            Token::Hexadecimal(digits) if ty == Some("f32") && !negative => {
                u32::from_str_radix(digits, 16).ok().map(Literal::Float)
            }
            _ => None,
        };
        value.ok_or_else(|| self.error(at, "expected an integer, or a number of type `f32`"))
    }

    /// `dense<[[1, 2], [3, 4]]> : tensor<2x2xi64>`, or one number for all elements.
    fn dense(&mut self) -> Parsed<Literal> {
        let at = self.at;
        let Elements { ty, bytes, is_splat } = self.elements()?;
        if !is_splat {
            return Ok(Literal::Dense(ty, bytes));
        }
        // Constants in this syntax were small when they were written.
        const MOST: u64 = 1 << 20;
        match ty.element_count().filter(|&count| count <= MOST) {
            Some(count) => Ok(Literal::Dense(ty, bytes.repeat(count as usize))),
            None => Err(self.error(at, format!("`{ty}` is too large to be filled"))),
        }
    }

    /// The elements of `dense<…> : tensor<…>`.
    pub(crate) fn elements(&mut self) -> Parsed<Elements> {
        let at = self.at;
        self.expect_bare("dense")?;
        self.expect("<")?;
        let mut elements: Vec<(bool, Token<'a>, usize)> = Vec::new();
        let listed = self.peek("[");
        // Number of open brackets: they are counted without recursion.
        let mut depth = 0u32;
        while depth > 0 || !self.peek(">") {
            if self.eat("[")? {
                depth += 1;
                continue;
            }
            if depth > 0 && self.eat("]")? {
                depth -= 1;
            } else {
                let at = self.at;
                let negative = self.eat("-")?;
                match &self.token {
                    Token::Integer(_)
                    | Token::Hexadecimal(_)
                    | Token::Float(_)
                    | Token::Quoted(_)
                    | Token::Bare("true" | "false") => {}
                    _ => return Err(self.unexpected("a number")),
                }
                elements.push((negative, std::mem::replace(&mut self.token, Token::End), at));
                self.advance()?;
            }
            match depth {
                0 => break,
                _ if self.peek("]") => {}
                _ => self.expect(",")?,
            }
        }
        self.expect(">")?;
        self.expect(":")?;
        let ty = self.tensor_type()?;
        let wrong = |s: &Syntax<'_>| Err(s.error(at, format!("these are not the elements of `{ty}`")));
        let (Some(count), Some(size)) = (ty.element_count(), ty.byte_size()) else { return wrong(self) };
        if let [(false, Token::Quoted(text), _)] = &*elements {
            let Some(bytes) = hexadecimal(text.strip_prefix(b"0x").unwrap_or_default()) else {
                return wrong(self);
            };
            let length = bytes.len() as u64;
            let one = ty.element.bits() / 8;
            return match ty.element {
                // Truth values are bits.
                ElementType::Bool if length == count.div_ceil(8) && count > 1 => {
                    let bit = |i: u64| bytes[(i / 8) as usize] >> (i % 8) & 1;
                    Ok(Elements { bytes: (0..count).map(bit).collect(), ty, is_splat: false })
                }
                ElementType::Bool if length == 1 => {
                    Ok(Elements { bytes: vec![u8::from(bytes[0] != 0)], ty, is_splat: true })
                }
                ElementType::Bool => wrong(self),
                _ if length == size.0 => Ok(Elements { ty, bytes, is_splat: false }),
                _ if length == one && count > 1 => Ok(Elements { ty, bytes, is_splat: true }),
                _ => wrong(self),
            };
        }
        let mut bytes = Vec::new();
        for (negative, token, at) in &elements {
            let Some(element) = element_bytes(ty.element, *negative, token) else {
                let sign = if *negative { "-" } else { "" };
                return Err(self.error(*at, format!("{sign}{} is no element of `{ty}`", token.describe())));
            };
            bytes.extend_from_slice(&element);
        }
        if !listed && elements.len() == 1 {
            return Ok(Elements { ty, bytes, is_splat: true });
        }
        if count != elements.len() as u64 {
            return wrong(self);
        }
        Ok(Elements { ty, bytes, is_splat: false })
    }

    /// The items between the brackets, with commas between them.
    pub(crate) fn list(
        &mut self,
        open: &'static str,
        close: &'static str,
        mut item: impl FnMut(&mut Syntax<'a>) -> Parsed<()>,
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

    pub(crate) fn string(&mut self) -> Parsed<Vec<u8>> {
        match std::mem::replace(&mut self.token, Token::End) {
            Token::Quoted(bytes) => {
                self.advance()?;
                Ok(bytes)
            }
            token => {
                self.token = token;
                Err(self.unexpected("a string in quotes"))
            }
        }
    }

    pub(crate) fn utf8(&self, bytes: Vec<u8>) -> Parsed<String> {
        String::from_utf8(bytes).map_err(|_| self.error(self.at, "a name must be UTF-8"))
    }

    pub(crate) fn peek(&self, punctuation: &'static str) -> bool {
        self.token == Token::Punct(punctuation)
    }

    pub(crate) fn eat(&mut self, punctuation: &'static str) -> Parsed<bool> {
        let found = self.peek(punctuation);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    pub(crate) fn eat_bare(&mut self, word: &'static str) -> Parsed<bool> {
        let found = self.token == Token::Bare(word);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn eat_marked(&mut self, word: &'static str) -> Parsed<bool> {
        let found = self.token == Token::Marked(word);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    pub(crate) fn expect(&mut self, punctuation: &'static str) -> Parsed<()> {
        if self.eat(punctuation)? { Ok(()) } else { Err(self.unexpected(&format!("`{punctuation}`"))) }
    }

    pub(crate) fn expect_bare(&mut self, word: &'static str) -> Parsed<()> {
        if self.eat_bare(word)? { Ok(()) } else { Err(self.unexpected(&format!("`{word}`"))) }
    }

    pub(crate) fn unexpected(&self, wanted: &str) -> ParseError {
        self.error(self.at, format!("expected {wanted}, found {}", self.token.describe()))
    }

    pub(crate) fn error(&self, at: usize, message: impl Into<String>) -> ParseError {
        self.lexer.error(at, message)
    }

    pub(crate) fn advance(&mut self) -> Parsed<()> {
        (self.token, self.at) = self.lexer.next()?;
        Ok(())
    }
}

/// Two digits per byte.
pub(crate) fn hexadecimal(digits: &[u8]) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_chunks::<2>();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let plain = digits.iter().all(u8::is_ascii_hexdigit);
    if plain && rest.is_empty() { pairs.iter().map(byte).collect() } else { None }
}

/// One element, least significant byte first.
fn element_bytes(element: ElementType, negative: bool, token: &Token<'_>) -> Option<Vec<u8>> {
    let sign = if negative { "-" } else { "" };
    macro_rules! integer {
        ($digits:expr, $ty:ty) => {
            format!("{sign}{}", $digits).parse::<$ty>().ok()?.to_le_bytes().to_vec()
        };
    }
    Some(match (token, element) {
        (Token::Bare(word), ElementType::Bool) if !negative => vec![u8::from(*word == "true")],
        (Token::Float(text), _) => float_bytes(element, &format!("{sign}{text}"))?,
        (Token::Hexadecimal(digits), _) if !negative => match element {
            ElementType::Float => u32::from_str_radix(digits, 16).ok()?.to_le_bytes().to_vec(),
            ElementType::Double => u64::from_str_radix(digits, 16).ok()?.to_le_bytes().to_vec(),
            ElementType::Float16 | ElementType::Bfloat16 => {
                u16::from_str_radix(digits, 16).ok()?.to_le_bytes().to_vec()
            }
            _ => return None,
        },
        (Token::Integer(digits), _) => match element {
            ElementType::Int8 => integer!(digits, i8),
            ElementType::Int16 => integer!(digits, i16),
            ElementType::Int32 => integer!(digits, i32),
            ElementType::Int64 => integer!(digits, i64),
            ElementType::Uint8 => integer!(digits, u8),
            ElementType::Uint16 => integer!(digits, u16),
            ElementType::Uint32 => integer!(digits, u32),
            ElementType::Uint64 => integer!(digits, u64),
            _ => return None,
        },
        _ => return None,
    })
}

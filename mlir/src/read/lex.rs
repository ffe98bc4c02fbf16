use lmsc_ir::ParseError;

/// One token of MLIR.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token<'a> {
    /// A keyword or a name without a mark.
    Bare(&'a str),
    /// `%name`, `@name`, `!name`, `#name` or `^name`, with its mark.
    Marked(&'a str),
    /// `@"name"`.
    Symbol(Vec<u8>),
    Quoted(Vec<u8>),
    Integer(&'a str),
    /// In hexadecimal, without `0x`.
    Hexadecimal(&'a str),
    Float(&'a str),
    Punct(&'static str),
    End,
}

impl Token<'_> {
    pub(crate) fn describe(&self) -> String {
        match self {
            Token::Bare(text) | Token::Marked(text) | Token::Integer(text) | Token::Float(text) => {
                format!("`{text}`")
            }
            Token::Hexadecimal(text) => format!("`0x{text}`"),
            Token::Quoted(bytes) => format!("\"{}\"", String::from_utf8_lossy(bytes)),
            Token::Symbol(bytes) => format!("@\"{}\"", String::from_utf8_lossy(bytes)),
            Token::Punct(text) => format!("`{text}`"),
            Token::End => "the end of the text".to_owned(),
        }
    }
}

const PUNCTUATION: &[&str] = &["->", "(", ")", "[", "]", "{", "}", "<", ">", ",", "=", ":", "-", "?", "*"];

pub(crate) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str) -> Lexer<'a> {
        Lexer { text, at: 0 }
    }

    /// The next token and the offset at which it starts.
    pub(crate) fn next(&mut self) -> Result<(Token<'a>, usize), ParseError> {
        self.skip_blanks();
        let start = self.at;
        let rest = &self.text[start..];
        let Some(first) = rest.bytes().next() else { return Ok((Token::End, start)) };
        if first.is_ascii_digit() {
            return Ok((self.number(), start));
        }
        if first.is_ascii_alphabetic() || first == b'_' {
            return Ok((Token::Bare(self.take(|b| b.is_ascii_alphanumeric() || b"_$.".contains(&b))), start));
        }
        if b"%@!#^".contains(&first) {
            if rest.as_bytes().get(1) == Some(&b'"') && first == b'@' {
                self.at += 1;
                return Ok((Token::Symbol(self.quoted()?), start));
            }
            let is_name = |b: u8| b.is_ascii_alphanumeric() || b"_$.-".contains(&b);
            let length = 1 + rest[1..].bytes().take_while(|&b| is_name(b)).count();
            // `!dialect.type->`: an arrow ends a name.
            let length = rest[..length].find("->").unwrap_or(length);
            if length == 1 {
                return Err(self.error(start, format!("`{}` without a name", first as char)));
            }
            self.at += length;
            return Ok((Token::Marked(&rest[..length]), start));
        }
        if first == b'"' {
            return Ok((Token::Quoted(self.quoted()?), start));
        }
        match PUNCTUATION.iter().find(|p| rest.starts_with(**p)) {
            Some(punctuation) => {
                self.at += punctuation.len();
                Ok((Token::Punct(punctuation), start))
            }
            None => {
                let odd = rest.chars().next().unwrap_or_default();
                Err(self.error(start, format!("the character {odd:?} has no meaning here")))
            }
        }
    }

    /// The extents of a tensor's type, up to its element type: `4x8x` of `4x8xf32`. They are not tokens.
    pub(crate) fn dims(&mut self) -> Result<Vec<u64>, ParseError> {
        let mut dims = Vec::new();
        loop {
            self.skip_blanks();
            let start = self.at;
            if self.text[start..].starts_with(['?', '*']) {
                return Err(self.error(start, "an extent that is not known; lmsc works on sizes"));
            }
            let digits = self.take(|b| b.is_ascii_digit());
            if digits.is_empty() {
                return Ok(dims);
            }
            let extent = digits.parse::<i64>().ok().and_then(|extent| u64::try_from(extent).ok());
            dims.push(extent.ok_or_else(|| self.error(start, format!("`{digits}` is too large an extent")))?);
            self.skip_blanks();
            if !self.text[self.at..].starts_with('x') {
                return Err(self.error(self.at, "expected `x` after an extent"));
            }
            self.at += 1;
        }
    }

    pub(crate) fn error(&self, offset: usize, message: impl Into<String>) -> ParseError {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        let line = 1 + before.iter().filter(|&&c| c == b'\n').count();
        let column = 1 + before.iter().rev().take_while(|&&c| c != b'\n').count();
        ParseError { line, column, message: message.into() }
    }

    fn take(&mut self, is_part: impl Fn(u8) -> bool) -> &'a str {
        let rest = &self.text[self.at..];
        let length = rest.bytes().take_while(|&b| is_part(b)).count();
        self.at += length;
        &rest[..length]
    }

    fn number(&mut self) -> Token<'a> {
        let start = self.at;
        let rest = &self.text[start..];
        if let Some(digits) = rest.strip_prefix("0x")
            && digits.starts_with(|c: char| c.is_ascii_hexdigit())
        {
            self.at += 2;
            return Token::Hexadecimal(self.take(|b| b.is_ascii_hexdigit()));
        }
        self.take(|b| b.is_ascii_digit());
        if !self.text[self.at..].starts_with('.') {
            return Token::Integer(&self.text[start..self.at]);
        }
        self.at += 1;
        self.take(|b| b.is_ascii_digit());
        let exponent = self.text[self.at..].strip_prefix(['e', 'E']);
        let unsigned = exponent.map(|e| e.strip_prefix(['+', '-']).unwrap_or(e));
        if let (Some(exponent), Some(unsigned)) = (exponent, unsigned)
            && unsigned.starts_with(|c: char| c.is_ascii_digit())
        {
            self.at += 1 + exponent.len() - unsigned.len();
            self.take(|b| b.is_ascii_digit());
        }
        Token::Float(&self.text[start..self.at])
    }

    fn skip_blanks(&mut self) {
        loop {
            let rest = &self.text[self.at..];
            self.at += rest.len() - rest.trim_start().len();
            let rest = &self.text[self.at..];
            if !rest.starts_with("//") {
                return;
            }
            self.at += rest.find('\n').unwrap_or(rest.len());
        }
    }

    /// A string; the lexer is at its opening quote.
    fn quoted(&mut self) -> Result<Vec<u8>, ParseError> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut content = Vec::new();
        let mut at = start + 1;
        loop {
            match bytes.get(at) {
                None | Some(b'\n') => return Err(self.error(start, "the closing quote is missing")),
                Some(b'"') => break,
                Some(b'\\') => {
                    let hex = || u8::from_str_radix(self.text.get(at + 1..at + 3)?, 16).ok();
                    let (byte, length) = match bytes.get(at + 1) {
                        Some(b'n') => (b'\n', 2),
                        Some(b't') => (b'\t', 2),
                        Some(&c @ (b'"' | b'\\')) => (c, 2),
                        Some(c) if c.is_ascii_hexdigit() => (
                            hex().ok_or_else(|| self.error(at, "an escape takes two hexadecimal digits"))?,
                            3,
                        ),
                        _ => {
                            let message = "unknown escape; there are \\\\, \\\", \\n, \\t and \\NN";
                            return Err(self.error(at, message));
                        }
                    };
                    content.push(byte);
                    at += length;
                }
                Some(&c) => {
                    content.push(c);
                    at += 1;
                }
            }
        }
        self.at = at + 1;
        Ok(content)
    }
}

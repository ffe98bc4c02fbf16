use super::is_name_char;

/// The place and the reason of a syntax error in the text form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {message}")]
pub struct ParseError {
    /// Line, from 1.
    pub line: usize,
    /// Column in bytes, from 1.
    pub column: usize,
    /// The error and the correct form.
    pub message: String,
}

/// One token. A name may be bare or quoted; only a bare one can be a keyword.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'a> {
    Bare(&'a str),
    Quoted(Vec<u8>),
    Number(&'a str),
    Punct(&'static str),
    End,
}

impl Token<'_> {
    pub(super) fn describe(&self) -> String {
        match self {
            Token::Bare(text) | Token::Number(text) => format!("`{text}`"),
            Token::Quoted(bytes) => format!("\"{}\"", String::from_utf8_lossy(bytes)),
            Token::Punct(text) => format!("`{text}`"),
            Token::End => "the end of the text".to_owned(),
        }
    }
}

const PUNCTUATION: &[&str] = &["=>", "(", ")", "[", "]", "{", "}", "<", ">", ",", "=", ":", "@"];

pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Lexer<'a> {
        Lexer { text, at: 0 }
    }

    /// The next token and the offset at which it starts.
    pub(super) fn next(&mut self) -> Result<(Token<'a>, usize), ParseError> {
        self.skip_blanks();
        let start = self.at;
        let rest = &self.text[start..];
        let Some(first) = rest.bytes().next() else { return Ok((Token::End, start)) };
        let signed =
            first == b'-' && rest.as_bytes().get(1).is_some_and(|c| c.is_ascii_digit() || *c == b'i');
        if first.is_ascii_digit() || signed {
            let end = rest.find(|c: char| !is_number_char(c)).unwrap_or(rest.len());
            self.at += end;
            return Ok((Token::Number(&rest[..end]), start));
        }
        if first.is_ascii_alphabetic() || matches!(first, b'_' | b'/') {
            let bytes = rest.as_bytes();
            let end = (0..bytes.len()).find(|&i| !is_name_char(bytes[i]) || bytes[i..].starts_with(b"//"));
            let end = end.unwrap_or(bytes.len());
            self.at += end;
            return Ok((Token::Bare(&rest[..end]), start));
        }
        if first == b'"' {
            return Ok((Token::Quoted(self.quoted(start)?), start));
        }
        match PUNCTUATION.iter().find(|p| rest.starts_with(**p)) {
            Some(punctuation) => {
                self.at += punctuation.len();
                Ok((Token::Punct(punctuation), start))
            }
            None => {
                let odd = rest.chars().next().unwrap_or_default();
                Err(self.error(
                    start,
                    format!("the character {odd:?} has no meaning here; quote names that hold it"),
                ))
            }
        }
    }

    pub(super) fn error(&self, offset: usize, message: impl Into<String>) -> ParseError {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        let line = 1 + before.iter().filter(|&&c| c == b'\n').count();
        let column = 1 + before.iter().rev().take_while(|&&c| c != b'\n').count();
        ParseError { line, column, message: message.into() }
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

    fn quoted(&mut self, start: usize) -> Result<Vec<u8>, ParseError> {
        let bytes = self.text.as_bytes();
        let mut content = Vec::new();
        let mut at = start + 1;
        loop {
            match bytes.get(at) {
                None => return Err(self.error(start, "the closing quote is missing")),
                Some(b'"') => break,
                Some(b'\\') => {
                    let (byte, length) = match bytes.get(at + 1) {
                        Some(b'n') => (b'\n', 2),
                        Some(&c @ (b'"' | b'\\')) => (c, 2),
                        Some(b'x') => {
                            let hex =
                                self.text.get(at + 2..at + 4).and_then(|h| u8::from_str_radix(h, 16).ok());
                            (hex.ok_or_else(|| self.error(at, "`\\x` takes two hexadecimal digits"))?, 4)
                        }
                        _ => {
                            return Err(self.error(at, "unknown escape; there are \\\\, \\\", \\n and \\xNN"));
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

fn is_number_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+')
}

//! Just enough of Rust's lexer to tell code from comments and literals.

/// `source` with every comment, string and character literal blanked out. Byte offsets and lines are those of
/// `source`.
pub(crate) fn code(source: &str) -> String {
    let bytes = source.as_bytes();
    let mut out = bytes.to_vec();
    let mut i = 0;
    while i < bytes.len() {
        let end = literal_end(source, i);
        if end == i {
            i += 1;
        } else {
            for byte in &mut out[i..end] {
                if *byte != b'\n' {
                    *byte = b' ';
                }
            }
            i = end;
        }
    }
    // Comments and literals begin and end at character boundaries, so whole characters are blanked.
    String::from_utf8(out).expect("whole characters are blanked")
}

/// The end of the comment or literal that begins at `i`; `i` itself when none does.
fn literal_end(source: &str, i: usize) -> usize {
    let bytes = source.as_bytes();
    let rest = &bytes[i..];
    let to_end = bytes.len();
    match rest[0] {
        b'/' if rest.starts_with(b"//") => source[i..].find('\n').map_or(to_end, |n| i + n),
        b'/' if rest.starts_with(b"/*") => block_comment_end(bytes, i),
        b'"' => string_end(bytes, i),
        b'r' if i == 0 || !is_ident(bytes[i - 1]) || bytes[i - 1] == b'b' || bytes[i - 1] == b'c' => {
            let hashes = rest[1..].iter().take_while(|b| **b == b'#').count();
            if rest.get(1 + hashes) != Some(&b'"') {
                return i;
            }
            let close = format!("\"{}", "#".repeat(hashes));
            let body = i + hashes + 2;
            source[body..].find(&close).map_or(to_end, |n| body + n + close.len())
        }
        b'\'' if rest.get(1) == Some(&b'\\') => {
            // The escaped character itself may be a quote.
            rest.iter().skip(3).position(|b| *b == b'\'').map_or(to_end, |n| i + n + 4)
        }
        b'\'' => match source[i + 1..].chars().next() {
            Some(c) if bytes.get(i + 1 + c.len_utf8()) == Some(&b'\'') => i + c.len_utf8() + 2,
            _ => i, // A lifetime.
        },
        _ => i,
    }
}

fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut i = start + 1;
    while i < bytes.len() {
        match bytes[i] {
            b'\\' => i += 2,
            b'"' => return i + 1,
            _ => i += 1,
        }
    }
    bytes.len()
}

fn block_comment_end(bytes: &[u8], start: usize) -> usize {
    let mut depth = 0;
    let mut i = start;
    while i < bytes.len() {
        if bytes[i..].starts_with(b"/*") {
            (depth, i) = (depth + 1, i + 2);
        } else if bytes[i..].starts_with(b"*/") {
            (depth, i) = (depth - 1, i + 2);
            if depth == 0 {
                return i;
            }
        } else {
            i += 1;
        }
    }
    bytes.len()
}

fn is_ident(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Byte offsets at which `word` stands in `text` as a whole identifier.
pub(crate) fn words(text: &str, word: &str) -> Vec<usize> {
    whole(text, word, is_ident)
}

/// Whether `name`, kebab-case, stands in `text` as a whole name.
pub(crate) fn has_name(text: &str, name: &str) -> bool {
    !whole(text, name, |byte| is_ident(byte) || byte == b'-').is_empty()
}

fn whole(text: &str, word: &str, inside: impl Fn(u8) -> bool) -> Vec<usize> {
    let bytes = text.as_bytes();
    text.match_indices(word)
        .map(|(at, _)| at)
        .filter(|at| *at == 0 || !inside(bytes[at - 1]))
        .filter(|at| bytes.get(at + word.len()).is_none_or(|byte| !inside(*byte)))
        .collect()
}

/// The identifier at the beginning of `text`.
pub(crate) fn ident(text: &str) -> &str {
    let end = text.bytes().position(|byte| !is_ident(byte)).unwrap_or(text.len());
    &text[..end]
}

/// The line, counted from 1, of a byte offset.
pub(crate) fn line(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_is_left() {
        let cases = [
            ("a // b\nc", "a     \nc"),
            ("a /* b /* c */ d */ e", "a                   e"),
            (r#"f("x\"y", z)"#, "f(      , z)"),
            ("r#\"x\"y\"# z", "r#\"x\"y\"# z".replace("r#\"x\"y\"#", "        ").as_str()),
            ("r#type", "r#type"),
            (r"('\'', 'é', &'a b)", "(    ,     , &'a b)"),
        ]
        .map(|(source, code)| (source.to_owned(), code.to_owned()));
        for (source, expected) in cases {
            assert_eq!(code(&source), expected);
        }
    }

    #[test]
    fn words_are_whole() {
        assert_eq!(words("unsafe_code unsafe", "unsafe"), [12]);
        assert!(has_name("the `swap` pass", "swap"));
        assert!(!has_name("swap-out", "swap"));
        assert_eq!(line("a\nb\nc", 4), 3);
    }
}

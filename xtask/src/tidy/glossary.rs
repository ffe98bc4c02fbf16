//! The rule that the glossary's words are those of the code.

use std::collections::BTreeMap;

use super::Tree;
use crate::lex;

const GLOSSARY: &str = "docs/glossary.md";

/// The heading of the words that Rust files do not use.
const UNUSED: &str = "## Words that are not used";

/// The glossary is sorted, each of its words occurs elsewhere, and the words that it rules out occur in no Rust file.
pub(super) fn words_are_those_of_the_glossary(tree: &Tree) -> Vec<String> {
    let Some(text) = tree.text(GLOSSARY) else { return Vec::new() };
    let split = text.find(UNUSED).unwrap_or(text.len());
    let used = entries(text, 0..split);
    let unused = entries(text, split..text.len());
    [unsorted(&used), unsorted(&unused), unknown(tree, &used), ruled_out(tree, &unused)].concat()
}

/// A row of a table of the glossary.
struct Entry<'a> {
    line: usize,
    /// Its first cell: a word, or several separated by commas.
    cell: &'a str,
}

impl<'a> Entry<'a> {
    fn words(&self) -> impl Iterator<Item = &'a str> {
        self.cell.split(',').map(str::trim)
    }
}

/// The rows of the tables in this part of the text, without their heads.
fn entries(text: &str, part: std::ops::Range<usize>) -> Vec<Entry<'_>> {
    let first = lex::line(text, part.start);
    let rows = (first..).zip(text[part].lines());
    let cells = rows.filter_map(|(line, row)| Some((line, row.strip_prefix('|')?.split('|').next()?.trim())));
    cells
        .map(|(line, cell)| Entry { line, cell })
        .skip_while(|entry| !entry.cell.starts_with('-'))
        .skip(1)
        .collect()
}

fn unsorted(entries: &[Entry<'_>]) -> Vec<String> {
    let pairs = entries.windows(2).filter(|pair| pair[1].cell < pair[0].cell);
    let message = |pair: &[Entry<'_>]| {
        let [before, entry] = pair else { unreachable!("a window has two entries") };
        format!(
            "{GLOSSARY}:{}: `{}` stands behind `{}`, sort the entries",
            entry.line, entry.cell, before.cell
        )
    };
    pairs.map(message).collect()
}

/// Words of the glossary that no Rust file and no other document has.
fn unknown(tree: &Tree, entries: &[Entry<'_>]) -> Vec<String> {
    let is_read = |path: &str| path != GLOSSARY && (path.ends_with(".rs") || path.ends_with(".md"));
    let texts: Vec<String> =
        tree.texts().filter(|(path, _)| is_read(path)).map(|(_, text)| running(text)).collect();
    let occurs = |word: &str| {
        let plural = format!("{word}s");
        texts.iter().any(|text| [word, &plural].iter().any(|form| !lex::words(text, form).is_empty()))
    };
    let mut messages = Vec::new();
    for entry in entries {
        for word in entry.words().filter(|word| !occurs(&word.to_lowercase())) {
            messages.push(format!(
                "{GLOSSARY}:{}: `{word}` occurs nowhere else, remove it or use it",
                entry.line
            ));
        }
    }
    messages
}

/// The text in small letters on one line, without the marks of comments.
fn running(text: &str) -> String {
    let lines =
        text.lines().map(|line| line.trim_start().trim_start_matches("//").trim_start_matches(['/', '!']));
    let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    words.join(" ").to_lowercase()
}

/// Words in identifiers, comments and literals of Rust files that the glossary rules out.
fn ruled_out(tree: &Tree, entries: &[Entry<'_>]) -> Vec<String> {
    let lines: BTreeMap<&str, usize> =
        entries.iter().flat_map(|entry| entry.words().map(|word| (word, entry.line))).collect();
    let mut messages = Vec::new();
    for (path, text) in tree.rust("") {
        for (number, line) in (1..).zip(text.lines()) {
            for word in parts(line) {
                if let Some(reason) = lines.get(&*word) {
                    messages.push(format!(
                        "{path}:{number}: `{word}` is a word that is not used, write what {GLOSSARY}:{reason} says"
                    ));
                }
            }
        }
    }
    messages
}

/// The words of a line in small letters, and those of which its identifiers consist: `isRuledOut` and `is_ruled_out` have three.
fn parts(line: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut was_small = false;
    for c in line.chars() {
        if !c.is_alphabetic() || was_small && c.is_uppercase() {
            parts.push(String::new());
        }
        if c.is_alphabetic() {
            parts.last_mut().expect("there is a first part").extend(c.to_lowercase());
        }
        was_small = c.is_lowercase();
    }
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rows: &str, unused: &str, code: &str) -> Vec<String> {
        let head = "|---|---|\n";
        let text =
            format!("# Glossary\n\n| word | is |\n{head}{rows}\n{UNUSED}\n\n| not | but |\n{head}{unused}");
        words_are_those_of_the_glossary(&Tree::of([(GLOSSARY, &text), ("src/a.rs", code)]))
    }

    #[test]
    fn words_that_occur_hold() {
        let rows = "| arena | a |\n| data edge | b |\n| operand, result | c |\n";
        let code = "/// Arena of operands. A data\n/// edge leads to a result.\nfn f() {}\n";
        assert_eq!(of(rows, "| frob | x |\n| quux | y |\n", code), [""; 0]);
    }

    #[test]
    fn an_unsorted_glossary_fails() {
        assert_eq!(
            of("| result | a |\n| arena | b |\n", "", "// arena, result"),
            ["docs/glossary.md:6: `arena` stands behind `result`, sort the entries"]
        );
    }

    #[test]
    fn a_word_that_occurs_nowhere_else_fails() {
        assert_eq!(
            of("| arena, result | a |\n", "", "struct Arena2; // the result"),
            ["docs/glossary.md:5: `arena` occurs nowhere else, remove it or use it"]
        );
    }

    #[test]
    fn a_word_that_is_ruled_out_fails() {
        let unused = "| frob, frobs | x |\n";
        assert_eq!(of("", unused, "// frobnicate"), [""; 0]);
        for code in [
            "fn is_frob() {}",
            "struct IsFrobbed; fn f(isFrob: u8) {}",
            "// Frobs",
            "const FROB: &str = \"\";",
        ] {
            let messages = of("", unused, &format!("\n{code}"));
            assert_eq!(messages.len(), 1, "{code}: {messages:?}");
            assert!(messages[0].starts_with("src/a.rs:2: `frob"), "{messages:?}");
            assert!(messages[0].ends_with("write what docs/glossary.md:10 says"), "{messages:?}");
        }
    }
}

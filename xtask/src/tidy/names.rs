//! The rule that a name stands for one public type.

use std::collections::BTreeMap;

use super::Tree;
use crate::lex;

/// The words that declare a type or a trait.
const KINDS: &[&str] = &["struct", "enum", "union", "trait", "type"];

/// Public type names are unique across crates, so that a name says which type it is without its path.
///
/// Types that macros declare are not seen.
pub(super) fn public_type_names_are_unique(tree: &Tree) -> Vec<String> {
    let mut places: BTreeMap<String, String> = BTreeMap::new();
    let mut messages = Vec::new();
    for (manifest, _) in tree.members() {
        let folder = manifest.strip_suffix("Cargo.toml").unwrap_or_default();
        for (path, text) in tree.rust(&format!("{folder}src/")) {
            let code = lex::code(text);
            for (at, name) in public_types(&code) {
                let place = format!("{path}:{}", lex::line(text, at));
                if let Some(first) = places.get(name) {
                    messages.push(format!(
                        "{place}: `{name}` is the name of a public type at {first}, too; rename one, or make one `pub(crate)`"
                    ));
                } else {
                    places.insert(name.to_owned(), place);
                }
            }
        }
    }
    messages
}

/// The names of the types that are declared with `pub`, each with the byte offset of its declaration.
fn public_types(code: &str) -> impl Iterator<Item = (usize, &str)> {
    lex::words(code, "pub").into_iter().filter_map(|at| {
        let item = code[at + "pub".len()..].trim_start();
        let item = item.strip_prefix("unsafe ").unwrap_or(item).trim_start();
        let kind = lex::ident(item);
        let name = lex::ident(item[kind.len()..].trim_start());
        (KINDS.contains(&kind) && !name.is_empty()).then_some((at, name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(root: &str, a: &str, b: &str) -> Vec<String> {
        public_type_names_are_unique(&Tree::of([
            ("Cargo.toml", "[workspace]\nmembers = [\"a\", \"a/b\"]\n"),
            ("a/Cargo.toml", ""),
            ("a/b/Cargo.toml", ""),
            ("src/lib.rs", root),
            ("a/src/lib.rs", a),
            ("a/b/src/lib.rs", b),
            ("a/b/tests/t.rs", "pub struct Graph;"),
        ]))
    }

    #[test]
    fn names_that_differ_hold() {
        let none = [""; 0];
        assert_eq!(of("pub struct Graph;", "pub enum GraphKind {}", "pub trait Graphs {}"), none);
        assert_eq!(of("pub struct Graph;", "pub(crate) struct Graph;", "struct Graph;"), none);
        assert_eq!(of("pub struct Graph;", "// pub struct Graph;", "pub fn graph() -> Graph {}"), none);
        assert_eq!(of("pub struct $name;", "pub struct $name;", "pub use a::Graph;"), none);
    }

    #[test]
    fn a_name_that_is_used_twice_fails() {
        let expected = [
            "a/src/lib.rs:2: `Graph` is the name of a public type at src/lib.rs:1, too; rename one, or make one `pub(crate)`",
        ];
        for code in [
            "\npub struct Graph<T>(T);",
            "\npub enum Graph {}",
            "\npub unsafe trait Graph {}",
            "\npub type Graph = u8;",
            "mod m {\n    pub struct Graph;\n}",
        ] {
            assert_eq!(of("pub struct Graph;", code, ""), expected, "{code}");
        }
        let within = of("", "", "pub struct Kind;\nmod m { pub enum Kind {} }");
        assert!(within[0].starts_with("a/b/src/lib.rs:2: `Kind` is the name"), "{within:?}");
    }
}

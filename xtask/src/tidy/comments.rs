//! The rule that comments name their nouns: `the ranges that are copied`, not `what is copied`.

use super::Tree;
use crate::lex;

/// Pronouns that begin a clause without a noun. Questions have them, too, so a few may stand.
const HEADLESS: [&str; 3] = ["what", "whatever", "whoever"];

/// Maximum number of such comment lines per 1,000 in tests, benches and examples, measured at 0 and rounded up.
const IN_TESTS: usize = 1;

/// The same for all other Rust files, measured at 0.4 and rounded up.
const IN_PRODUCT: usize = 1;

/// Comments of Rust files have few clauses without a noun.
pub(super) fn comments_name_their_nouns(tree: &Tree) -> Vec<String> {
    let kinds = [("tests, benches and examples", true, IN_TESTS), ("product code", false, IN_PRODUCT)];
    kinds.iter().flat_map(|&(kind, tests, limit)| above(tree, kind, tests, limit)).collect()
}

/// The headless comment lines of one kind of file, if there are more than the limit allows.
fn above(tree: &Tree, kind: &str, tests: bool, limit: usize) -> Vec<String> {
    let (mut comments, mut found) = (0, Vec::new());
    for (path, text) in tree.rust("").filter(|(path, _)| is_test(path) == tests) {
        let lines = (1..).zip(text.lines().map(str::trim_start));
        for (number, line) in lines.filter(|(_, line)| line.starts_with("//")) {
            comments += 1;
            let words = prose(line).to_lowercase();
            if let Some(word) = HEADLESS.iter().find(|word| !lex::words(&words, word).is_empty()) {
                found.push((path, number, word));
            }
        }
    }
    // A small tree may have one such line: a rate says nothing there.
    let most = (comments * limit).div_ceil(1000);
    if found.len() <= most {
        return Vec::new();
    }
    let (number, all) = (found.len(), found.into_iter());
    let message = |(path, line, word): (&str, usize, &&str)| {
        format!(
            "{path}:{line}: `{word}` stands for a noun, name it; {number} of {comments} comment lines of {kind} have such a word, {most} may"
        )
    };
    all.map(message).collect()
}

fn is_test(path: &str) -> bool {
    path.split('/').any(|folder| ["tests", "benches", "examples"].contains(&folder))
}

/// The comment without its code in backticks.
fn prose(line: &str) -> String {
    line.split('`').step_by(2).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str, text: &str) -> Vec<String> {
        comments_name_their_nouns(&Tree::of([(path, text)]))
    }

    #[test]
    fn a_question_holds_and_headless_clauses_fail() {
        let one = "/// Says what differs.\nfn f() {}\n";
        let two = "fn f() {\n    // What is read.\n    f(); // whatever\n}\n//! Whoever asks.\n";
        for path in ["src/a.rs", "plan/tests/a.rs", "benches/a.rs", "examples/b/a.rs"] {
            assert_eq!(of(path, one), [""; 0]);
            let messages = of(path, two);
            assert_eq!(messages.len(), 2, "{messages:?}");
            assert!(messages[0].starts_with(&format!("{path}:2: `what` stands for a noun")), "{messages:?}");
            assert!(messages[1].starts_with(&format!("{path}:5: `whoever`")), "{messages:?}");
            assert!(messages[0].contains("2 of 2 comment lines"), "{messages:?}");
        }
    }

    #[test]
    fn code_literals_and_parts_of_words_are_not_counted() {
        let text = "/// Runs `what`, somewhat later.\nfn f(what: &str) {}\nconst A: &str = \"what is\";\n";
        assert_eq!(of("src/a.rs", &text.repeat(3)), [""; 0]);
    }

    #[test]
    fn the_limit_is_a_rate() {
        let text = "// A noun.\n".repeat(998 * 3) + &"// What is read.\n".repeat(3);
        assert_eq!(of("src/a.rs", &text), [""; 0]);
        assert_eq!(of("src/a.rs", &(text + "// What is written.\n")).len(), 4);
    }
}

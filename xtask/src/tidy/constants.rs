//! Rule about the tuning constants of the planners, `const NAME: Tunable<…>`.

use std::collections::BTreeSet;

use super::Tree;
use crate::lex;

/// Maximum number of tuning constants.
const MOST: usize = 66;

/// The table of the effects of half and double of each.
const TABLE: &str = "docs/measurements/constants.md";

/// The planners have few tuning constants, and each is measured.
pub(super) fn tuning_constants_are_few_and_measured(tree: &Tree) -> Vec<String> {
    let (mut section, mut measured) = ("", BTreeSet::new());
    for line in tree.text(TABLE).unwrap_or_default().lines() {
        section = line.strip_prefix("## ").unwrap_or(section);
        measured.extend(line.strip_prefix("| `").and_then(|row| Some((section, row.split_once('`')?.0))));
    }
    let (mut messages, mut count) = (Vec::new(), 0);
    for (path, text) in tree.rust("plan/").filter(|(path, _)| !path.ends_with("/tuned.rs")) {
        for (line, code) in (1..).zip(lex::code(text).lines()) {
            let Some((name, _)) =
                code.split_once("const ").and_then(|(_, rest)| rest.split_once(": Tunable<"))
            else {
                continue;
            };
            count += 1;
            if count > MOST {
                messages.push(format!("{path}:{line}: `{name}` is more than the {MOST} tuning constants there may be, derive it from another"));
            }
            if !measured.contains(&(path, name)) {
                messages.push(format!("{path}:{line}: `{name}` is not in {TABLE}, measure it as that says"));
            }
        }
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_that_is_not_measured_fails() {
        let table = (TABLE, "## plan/a.rs\n\n| `ROUNDS` | 8 |\n");
        let of = |path, text| tuning_constants_are_few_and_measured(&Tree::of([table, (path, text)]));
        assert_eq!(of("plan/a.rs", "const ROUNDS: Tunable<u64> = Tunable::new(8);"), [""; 0]);
        assert_eq!(
            of("plan/b.rs", "\npub const ROUNDS: Tunable<u64> = Tunable::new(8);"),
            ["plan/b.rs:2: `ROUNDS` is not in docs/measurements/constants.md, measure it as that says"]
        );
    }

    #[test]
    fn too_many_constants_fail() {
        let text = "const A: Tunable<u64> = Tunable::new(8);\n".repeat(MOST + 1);
        let tree = Tree::of([(TABLE, "## plan/a.rs\n| `A` |"), ("plan/a.rs", &text)]);
        assert_eq!(tuning_constants_are_few_and_measured(&tree).len(), 1);
    }
}

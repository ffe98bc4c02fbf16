//! The rule that defaults of attributes stand in the contracts of operators alone.

use super::Tree;
use crate::lex;

/// Folders whose code reads attributes of nodes.
const READERS: [&str; 7] = [
    "ir/src/",
    "mlir/src/stablehlo/",
    "onnx/src/shapes/",
    "passes/src/",
    "plan/",
    "runtime/cuda/src/",
    "runtime/kernels/src/",
];

/// Methods that return an attribute by its name.
const METHODS: [&str; 8] =
    ["attribute", "flag", "float", "float_if_any", "int", "int_if_any", "string", "text"];

/// No reader of an attribute types the value that holds where the attribute is left out.
pub(super) fn defaults_stand_in_the_contracts(tree: &Tree) -> Vec<String> {
    let mut messages = Vec::new();
    for (path, text) in READERS.iter().flat_map(|folder| tree.rust(folder)) {
        let code = lex::code(text);
        for method in METHODS {
            let calls = lex::words(&code, method).into_iter().filter(|&at| code[..at].ends_with('.'));
            for at in calls.filter(|&at| has_default(&text[at + method.len()..])) {
                messages.push(format!(
                    "{path}:{}: types the default of an attribute, write it into ir/src/contract/table.rs",
                    lex::line(text, at)
                ));
            }
        }
    }
    messages
}

/// Whether a call, of which this is the text from its parenthesis on, has the name of an attribute as its argument, and a literal
/// beside it or behind the call.
fn has_default(call: &str) -> bool {
    let Some((_, rest)) = call.strip_prefix("(\"").and_then(|name| name.split_once('"')) else {
        return false;
    };
    let literal = |text: &str| {
        let text = text.trim_start();
        text.starts_with(|c: char| "-\"".contains(c) || c.is_ascii_digit())
            || ["b\"", "true", "false"].iter().any(|word| text.starts_with(word))
    };
    match rest.strip_prefix(',') {
        Some(rest) => literal(rest),
        None => {
            // The parenthesis of the call alone: behind that of another one stands the value for its failure.
            let rest = rest.strip_prefix(')').unwrap_or(rest).trim_start_matches(['?', ' ', '\n']);
            let rest = rest.strip_prefix(".ok()").unwrap_or(rest).trim_start_matches('?');
            rest.strip_prefix(".unwrap_or(").is_some_and(literal)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_at_a_reader_fails() {
        let of = |text| defaults_stand_in_the_contracts(&Tree::of([("passes/src/a.rs", text)])).len();
        for wrong in [
            "let e = spec.float(\"epsilon\", 1e-5)?;",
            "let a = spec.axis(cx.int(\"axis\", -1)?, 4)?;",
            "let r = b.text(\"reduction\").unwrap_or(b\"mean\");",
            "let r = spec.int_if_any(\"axis\")?\n    .unwrap_or(0);",
            "let m = spec.flag(\"is_causal\", false);",
        ] {
            assert_eq!(of(wrong), 1, "{wrong}");
        }
        for right in [
            "let e = spec.float(\"epsilon\")?;",
            "let e = spec.int_if_any(\"end\")?.unwrap_or(rank);",
            "let s = spec.float_if_any(\"scale\")?.unwrap_or_else(|| width.sqrt());",
            "let n = usize::try_from(spec.int(\"block_size\")?).unwrap_or(0);",
            "// `spec.int(\"axis\", 1)` was here",
        ] {
            assert_eq!(of(right), 0, "{right}");
        }
    }
}

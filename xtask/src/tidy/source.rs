//! Rules about Rust sources: where petgraph, clap and `unsafe` may stand.

use super::Tree;
use crate::lex;

/// Files that may name petgraph. One at most: the rest of the code sees `Graph`.
const PETGRAPH: &[&str] = &["testing/benches/order.rs"];

/// Files that may contain `unsafe`.
const UNSAFE: &[&str] = &[
    "mlir/src/llvm.rs",
    "onnx/src/file.rs",
    "runtime/cuda/src/backend.rs",
    "runtime/cuda/src/blas.rs",
    "runtime/cuda/src/compile.rs",
    "runtime/cuda/src/dnn.rs",
    "runtime/cuda/src/driver.rs",
    "runtime/cuda/src/engines/library.rs",
    "runtime/cuda/src/library.rs",
    "runtime/cuda/src/measure.rs",
    "runtime/cuda/src/session.rs",
    "runtime/kernels/src/gemm/x86.rs",
    "runtime/kernels/src/vector.rs",
    "runtime/src/host.rs",
    "runtime/src/pages.rs",
    "runtime/cuda/tests/support/shim.rs",
    "tests/cuda.rs",
];

/// Methods of `Graph` that may break its invariants, and the folders that may call them.
const UNCHECKED: [&str; 3] = ["add_value", "node_mut", "set_def"];
const MAY_BREAK: [&str; 2] = ["ir/src/", "testing/src/"];

/// Only the parser and the damage of tests change a graph without checks.
pub(super) fn graphs_change_by_checked_methods(tree: &Tree) -> Vec<String> {
    let mut messages = Vec::new();
    for (path, text) in
        tree.rust("").filter(|(path, _)| !MAY_BREAK.iter().any(|folder| path.starts_with(folder)))
    {
        let code = lex::code(text);
        for method in UNCHECKED {
            for at in lex::words(&code, method) {
                messages.push(format!(
                    "{path}:{}: calls `{method}`, which checks nothing; use the other methods of `Graph`",
                    lex::line(text, at)
                ));
            }
        }
    }
    messages
}

/// Names of tests state a behaviour with its subject, so that a line of failures names the failed behaviour.
pub(super) fn tests_are_named_by_behaviour(tree: &Tree) -> Vec<String> {
    let mut messages = Vec::new();
    for (path, text) in tree.rust("") {
        for (at, _) in lex::code(text).match_indices("fn what_") {
            messages.push(format!(
                "{path}:{}: a name that begins with `what_` has no subject; name what is tested",
                lex::line(text, at)
            ));
        }
    }
    messages
}

/// petgraph stands in its file only.
pub(super) fn petgraph_stays_in_its_file(tree: &Tree) -> Vec<String> {
    let mut messages = Vec::new();
    for (path, text) in tree.rust("").filter(|(path, _)| !PETGRAPH.contains(path)) {
        for at in lex::words(&lex::code(text), "petgraph") {
            messages.push(format!(
                "{path}:{}: names petgraph, use `Graph`; its one file is listed in xtask/src/tidy/source.rs",
                lex::line(text, at)
            ));
        }
    }
    messages
}

/// The folders of the command line. Nothing else in `src/` names them, so that the library stands without them.
const COMMAND_LINE: [&str; 2] = ["src/cli/", "src/commands/"];

/// Only the command line names clap, and the library does not name the command line.
pub(super) fn the_library_knows_no_command_line(tree: &Tree) -> Vec<String> {
    let mut messages = Vec::new();
    let is_outside = |path: &str| !COMMAND_LINE.iter().any(|folder| path.starts_with(folder));
    for (path, text) in tree.rust("").filter(|(path, _)| path.split('/').any(|part| part == "src")) {
        let code = lex::code(text);
        if !path.starts_with("src/cli/") {
            for at in lex::words(&code, "clap") {
                messages
                    .push(format!("{path}:{}: names clap, which `src/cli` alone knows", lex::line(text, at)));
            }
        }
        if !path.starts_with("src/") || !is_outside(path) {
            continue;
        }
        for named in ["crate::cli", "crate::commands"] {
            for (at, _) in code.match_indices(named) {
                messages.push(format!(
                    "{path}:{}: names `{named}`; the library takes plain options (`src/job.rs`)",
                    lex::line(text, at)
                ));
            }
        }
    }
    messages
}

/// `unsafe` stands in the listed files only, and each one says above it why it is sound.
///
/// An `unsafe fn` has a contract for its callers; the blocks of its body need the argument, and the lint
/// `unsafe_op_in_unsafe_fn` demands them.
pub(super) fn unsafe_code_is_listed_and_argued(tree: &Tree) -> Vec<String> {
    let mut messages = Vec::new();
    for (path, text) in tree.rust("") {
        let code = lex::code(text);
        for at in lex::words(&code, "unsafe") {
            let line = lex::line(text, at);
            if !UNSAFE.contains(&path) {
                messages.push(format!(
                    "{path}:{line}: `unsafe` outside the files that may hold it, write it safely or list the file in xtask/src/tidy/source.rs"
                ));
            } else if !code[at..].starts_with("unsafe fn") && !is_argued(text, &code, line) {
                messages.push(format!(
                    "{path}:{line}: `unsafe` without its argument, add a `// SAFETY:` comment above it"
                ));
            }
        }
    }
    messages
}

/// Whether a `// SAFETY:` comment stands above `line` (counted from 1), in the statement's own lines.
fn is_argued(text: &str, code: &str, line: usize) -> bool {
    let lines: Vec<(&str, &str)> = text.lines().zip(code.lines()).collect();
    for (text, code) in lines[..line - 1].iter().rev() {
        let (text, code) = (text.trim(), code.trim());
        if text.starts_with("//") {
            if text.starts_with("// SAFETY:") {
                return true;
            }
        } else if text.is_empty() || (!code.starts_with('#') && code.ends_with([';', '{', '}', ','])) {
            return false;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unchecked_change_of_a_graph_outside_of_its_crate_fails() {
        let of = |path| {
            graphs_change_by_checked_methods(&Tree::of([(path, "fn f(g: &mut Graph) { g.node_mut(n); }")]))
        };
        assert_eq!(of("testing/src/damage.rs"), [""; 0]);
        let message =
            "passes/src/swap.rs:1: calls `node_mut`, which checks nothing; use the other methods of `Graph`";
        assert_eq!(of("passes/src/swap.rs"), [message]);
    }

    #[test]
    fn a_name_without_subject_fails() {
        let of = |text| tests_are_named_by_behaviour(&Tree::of([("ir/src/level.rs", text)]));
        assert_eq!(of("fn a_profile_reads_back() {}  // fn what_is_read"), [""; 0]);
        let message =
            "ir/src/level.rs:2: a name that begins with `what_` has no subject; name what is tested";
        assert_eq!(of("\nfn what_is_read() {}"), [message]);
    }

    #[test]
    fn a_library_that_knows_the_command_line_fails() {
        let of = |path, text| the_library_knows_no_command_line(&Tree::of([(path, text)]));
        assert_eq!(of("src/cli/mod.rs", "use clap::Args;"), [""; 0]);
        assert_eq!(of("src/commands/plan.rs", "use crate::cli::PlanArgs;"), [""; 0]);
        assert_eq!(of("src/load.rs", "// clap and crate::cli"), [""; 0]);
        assert_eq!(
            of("ir/src/a.rs", "use clap::Args;"),
            ["ir/src/a.rs:1: names clap, which `src/cli` alone knows"]
        );
        let message = "src/load.rs:1: names `crate::cli`; the library takes plain options (`src/job.rs`)";
        assert_eq!(of("src/load.rs", "use crate::cli::Cli;"), [message]);
    }

    #[test]
    fn petgraph_elsewhere_fails() {
        let of = |text| petgraph_stays_in_its_file(&Tree::of([("ir/src/level.rs", text)]));
        assert_eq!(of("// petgraph::algo would do\n"), [""; 0]);
        assert_eq!(
            of("\nuse petgraph::Graph;"),
            [
                "ir/src/level.rs:2: names petgraph, use `Graph`; its one file is listed in xtask/src/tidy/source.rs"
            ]
        );
    }

    #[test]
    fn unsafe_in_an_unlisted_file_fails() {
        let of = |text| unsafe_code_is_listed_and_argued(&Tree::of([("ir/src/a.rs", text)]));
        assert_eq!(of("#![forbid(unsafe_code)] const A: &str = \"unsafe\"; // unsafe"), [""; 0]);
        let messages = of("// SAFETY: argued, yet here\nunsafe { f() }");
        assert!(messages[0].starts_with("ir/src/a.rs:2: `unsafe` outside the files"), "{messages:?}");
    }

    #[test]
    fn unsafe_without_argument_fails() {
        let of = |text| unsafe_code_is_listed_and_argued(&Tree::of([("onnx/src/file.rs", text)]));
        assert_eq!(
            of("// SAFETY: the file is ours,\n// and stays.\nlet map =\n    unsafe { map(f) };"),
            [""; 0]
        );
        assert_eq!(of("unsafe fn f() {}\n// SAFETY: as `f`.\n#[allow(x)]\nunsafe impl F for G {}"), [""; 0]);
        let expected =
            ["onnx/src/file.rs:3: `unsafe` without its argument, add a `// SAFETY:` comment above it"];
        assert_eq!(of("// SAFETY: of another one\nf();\nunsafe { g() }"), expected);
        assert_eq!(of("// SAFETY: too far away\n\nunsafe { g() }"), expected);
    }
}

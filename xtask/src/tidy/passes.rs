//! Rules about passes: each is registered, tested and documented.

use super::Tree;
use crate::lex;

/// Where passes are registered, and the list there.
const REGISTRY: (&str, &str) = ("passes/src/lib.rs", "REGISTRY");
/// The same of passes of the papers.
const PAPERS: (&str, &str) = ("papers/src/lib.rs", "PASSES");

/// An `impl Pass for …`.
struct PassImpl {
    path: String,
    line: usize,
    /// The type that is a pass.
    ident: String,
    /// The result of `fn name`.
    name: Option<String>,
}

/// The passes implemented in `passes/src` and `papers/src`, test modules aside.
fn implemented(tree: &Tree) -> Vec<PassImpl> {
    let mut found = Vec::new();
    for (path, text) in tree.rust("passes/src/").chain(tree.rust("papers/src/")) {
        let code = lex::code(text);
        let end = code.find("#[cfg(test)]").unwrap_or(code.len());
        let starts: Vec<usize> = lex::words(&code[..end], "Pass")
            .into_iter()
            .filter(|at| code[*at..].starts_with("Pass for "))
            .collect();
        for (i, &start) in starts.iter().enumerate() {
            let end = starts.get(i + 1).copied().unwrap_or(end);
            let type_path = code[start + "Pass for ".len()..end].split(['{', '<']).next().unwrap_or_default();
            let ident = lex::ident(type_path.rsplit("::").next().unwrap_or_default().trim());
            let name =
                code[start..end].find("fn name").and_then(|at| text[start + at..end].split('"').nth(1));
            found.push(PassImpl {
                path: path.to_owned(),
                line: lex::line(text, start),
                ident: ident.to_owned(),
                name: name.map(str::to_owned),
            });
        }
    }
    found
}

/// The types listed in [`REGISTRY`] and [`PAPERS`]; `None` if there is no such list.
fn registered(tree: &Tree) -> Option<Vec<String>> {
    Some([listed(tree, REGISTRY)?, listed(tree, PAPERS).unwrap_or_default()].concat())
}

/// The types in the list of this name in this file.
fn listed(tree: &Tree, (path, name): (&str, &str)) -> Option<Vec<String>> {
    let code = lex::code(tree.text(path)?);
    let is_declared = |at: &&usize| code[**at + name.len()..].starts_with(':');
    let from = *lex::words(&code, name).iter().find(is_declared)?;
    let list = code[from..].split_once('=')?.1.split(';').next()?;
    let entry = |text: &str| {
        let path =
            text.trim().split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':').next()?.to_owned();
        Some(path.rsplit("::").next()?.to_owned())
    };
    // The first `&` opens the list itself.
    Some(list.split('&').skip(2).filter_map(entry).collect())
}

/// Every pass stands in `REGISTRY` and tells its name as a literal.
pub(super) fn passes_are_registered(tree: &Tree) -> Vec<String> {
    let Some(registered) = registered(tree) else { return Vec::new() };
    let mut messages = Vec::new();
    for PassImpl { path, line, ident, name } in implemented(tree) {
        if !registered.contains(&ident) {
            let (file, list) = if path.starts_with("papers/") { PAPERS } else { REGISTRY };
            messages.push(format!("{path}:{line}: `{ident}` is not registered, add it to {list} in {file}"));
        }
        if name.is_none() {
            messages
                .push(format!("{path}:{line}: `{ident}` has no name here, return a literal from `fn name`"));
        }
    }
    messages
}

/// Every pass has a case in `testdata/passes/<name>/`, and every such folder has a pass.
pub(super) fn passes_have_cases(tree: &Tree) -> Vec<String> {
    let Some(_) = registered(tree) else { return Vec::new() };
    let passes = implemented(tree);
    let mut messages = Vec::new();
    for PassImpl { path, line, ident, name } in &passes {
        let Some(name) = name else { continue };
        let folder = format!("testdata/passes/{name}/");
        if !tree.paths().any(|path| path.starts_with(&folder) && path.ends_with(".lms")) {
            messages.push(format!("{path}:{line}: `{ident}` has no test, add a case `{folder}<claim>.lms`"));
        }
    }
    let known = |folder: &str| passes.iter().any(|pass| pass.name.as_deref() == Some(folder));
    let mut last = "";
    for path in tree.paths() {
        let Some((folder, _)) = path.strip_prefix("testdata/passes/").and_then(|rest| rest.split_once('/'))
        else {
            continue;
        };
        if folder != last && !known(folder) {
            messages.push(format!(
                "{path}:1: no pass is named `{folder}`, rename or remove testdata/passes/{folder}"
            ));
        }
        last = folder;
    }
    messages
}

/// Every pass's name stands in README.md or ARCHITECTURE.md.
pub(super) fn passes_are_documented(tree: &Tree) -> Vec<String> {
    let docs: Vec<&str> =
        ["README.md", "ARCHITECTURE.md"].iter().filter_map(|path| tree.text(path)).collect();
    if docs.is_empty() || registered(tree).is_none() {
        return Vec::new();
    }
    let undocumented = implemented(tree).into_iter().filter_map(|pass| {
        let name = pass.name.filter(|name| !docs.iter().any(|doc| lex::has_name(doc, name)))?;
        Some(format!(
            "{}:{}: pass `{name}` is not documented, name it in README.md or ARCHITECTURE.md",
            pass.path, pass.line
        ))
    });
    undocumented.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIB: &str =
        "pub trait Pass {}\n/// All.\npub static REGISTRY: &[&dyn Pass] = &[&swap::Swap, &Fold /* last */];";
    const SWAP: &str = "impl Pass for Swap {\n  fn name(&self) -> &'static str {\n    \"swap\"\n  }\n}\n";
    const FOLD: &str = "impl crate::Pass for Fold { fn name(&self) -> &'static str { \"fold\" } }\n\
                        #[cfg(test)] mod tests { impl Pass for Dummy {} }";

    fn with(extra: (&str, &str)) -> Tree {
        Tree::of([
            (REGISTRY.0, LIB),
            ("passes/src/swap.rs", SWAP),
            ("passes/src/fold.rs", FOLD),
            ("testdata/passes/swap/one.lms", ""),
            ("testdata/passes/fold/one.lms", ""),
            ("README.md", "`swap` and `fold`"),
            extra,
        ])
    }

    #[test]
    fn the_registry_is_read() {
        assert_eq!(registered(&with(("a", ""))).unwrap(), ["Swap", "Fold"]);
    }

    #[test]
    fn a_complete_pass_holds() {
        let tree = with(("a", ""));
        assert_eq!(passes_are_registered(&tree), [""; 0]);
        assert_eq!(passes_have_cases(&tree), [""; 0]);
        assert_eq!(passes_are_documented(&tree), [""; 0]);
    }

    #[test]
    fn a_pass_outside_the_registry_fails() {
        let tree = with((
            "passes/src/split.rs",
            "\nimpl Pass for Split { fn name(&self) -> &'static str { NAME } }",
        ));
        assert_eq!(
            passes_are_registered(&tree),
            [
                "passes/src/split.rs:2: `Split` is not registered, add it to REGISTRY in passes/src/lib.rs",
                "passes/src/split.rs:2: `Split` has no name here, return a literal from `fn name`",
            ]
        );
    }

    #[test]
    fn a_pass_without_case_fails() {
        let tree =
            Tree::of([(REGISTRY.0, LIB), ("passes/src/swap.rs", SWAP), ("testdata/passes/swap/a.snap", "")]);
        assert_eq!(
            passes_have_cases(&tree),
            ["passes/src/swap.rs:1: `Swap` has no test, add a case `testdata/passes/swap/<claim>.lms`"]
        );
    }

    #[test]
    fn a_folder_without_pass_fails() {
        let tree = with(("testdata/passes/swop/one.lms", ""));
        assert_eq!(
            passes_have_cases(&tree),
            [
                "testdata/passes/swop/one.lms:1: no pass is named `swop`, rename or remove testdata/passes/swop"
            ]
        );
    }

    #[test]
    fn a_pass_without_documentation_fails() {
        let tree = with(("README.md", "`fold`, swap-out"));
        assert_eq!(
            passes_are_documented(&tree),
            ["passes/src/swap.rs:1: pass `swap` is not documented, name it in README.md or ARCHITECTURE.md"]
        );
    }
}

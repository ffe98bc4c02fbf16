//! Rules about packages: who may depend on whom, and that all obey the same lints.

use super::Tree;
use crate::lex;
use crate::manifest::{self, Table};

/// ARCHITECTURE.md, *Crates*: the packages below each package.
///
/// An arrow may skip rooms on its way down (`lmsc` may name types of `ir`); it never points up or sideways.
const BELOW: &[(&str, &[&str])] = &[
    ("lmsc-python", &["lmsc", "lmsc-ir"]),
    (
        "lmsc",
        &[
            "lmsc-onnx",
            "lmsc-mlir",
            "lmsc-papers",
            "lmsc-passes",
            "lmsc-plan",
            "lmsc-cuda",
            "lmsc-runtime",
            "lmsc-kernels",
            "lmsc-ir",
        ],
    ),
    ("lmsc-onnx", &["lmsc-ir"]),
    ("lmsc-mlir", &["lmsc-ir"]),
    ("lmsc-papers", &["lmsc-passes", "lmsc-plan", "lmsc-planners", "lmsc-schedule", "lmsc-ir"]),
    ("lmsc-passes", &["lmsc-plan", "lmsc-ir"]),
    ("lmsc-plan", &["lmsc-planners", "lmsc-address", "lmsc-bound", "lmsc-cost", "lmsc-schedule", "lmsc-ir"]),
    ("lmsc-planners", &["lmsc-bound", "lmsc-schedule", "lmsc-ir"]),
    ("lmsc-address", &["lmsc-schedule", "lmsc-ir"]),
    ("lmsc-bound", &["lmsc-schedule", "lmsc-ir"]),
    ("lmsc-cost", &["lmsc-schedule", "lmsc-ir"]),
    ("lmsc-schedule", &["lmsc-ir"]),
    ("lmsc-cuda", &["lmsc-runtime", "lmsc-kernels", "lmsc-ir"]),
    ("lmsc-runtime", &["lmsc-kernels", "lmsc-ir"]),
    ("lmsc-kernels", &["lmsc-ir"]),
    ("lmsc-ir", &[]),
    ("own-pass", &["lmsc", "lmsc-passes", "lmsc-ir"]),
    ("lmsc-testing", &["lmsc-planners", "lmsc-schedule", "lmsc-ir"]),
    ("xtask", &[]),
];

/// The package with inputs for the tests of all others.
const FOR_TESTS: &str = "lmsc-testing";

/// Dependencies between members follow the design's arrows.
///
/// Development dependencies do too, but for [`FOR_TESTS`], on which nothing else may depend, and planners, which the tests of bounds,
/// addresses and lowering ask for plans.
pub(super) fn arrows_are_those_of_the_design(tree: &Tree) -> Vec<String> {
    let mut messages = Vec::new();
    for (path, text) in tree.members() {
        let Some(package) = manifest::string(text, "package", "name") else { continue };
        let Some((_, below)) = BELOW.iter().find(|(name, _)| *name == package) else {
            messages.push(format!(
                "{path}:1: `{package}` has no place in the design, add it to ARCHITECTURE.md and to BELOW in xtask/src/tidy/crates.rs"
            ));
            continue;
        };
        for (line, dependency, entry, kind) in manifest::tables(text).iter().flat_map(dependencies) {
            let for_tests =
                kind == Kind::Dev && [FOR_TESTS, "lmsc-planners", "lmsc-papers"].contains(&&*dependency);
            if kind == Kind::Workspace {
                if !entry.starts_with(&dependency) {
                    messages.push(format!("{path}:{line}: `{dependency}` is renamed, use its own name"));
                }
            } else if !for_tests && !below.contains(&dependency.as_str()) {
                let may =
                    if below.is_empty() { "none".to_owned() } else { format!("`{}`", below.join("`, `")) };
                messages.push(format!(
                    "{path}:{line}: `{package}` depends on `{dependency}`, against the arrows of ARCHITECTURE.md; of ours it may depend on: {may}"
                ));
            }
        }
    }
    messages
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Workspace,
    Dev,
    Other,
}

/// Our packages named in a table of dependencies: line, name, the entry's text and kind.
fn dependencies(table: &Table) -> Vec<(usize, String, String, Kind)> {
    let parts: Vec<&str> = table.name.split('.').collect();
    let Some(at) = parts.iter().position(|part| part.ends_with("dependencies")) else { return Vec::new() };
    let kind = match (parts[0], parts[at]) {
        ("workspace", _) => Kind::Workspace,
        (_, "dev-dependencies") => Kind::Dev,
        _ => Kind::Other,
    };
    let entries: Vec<(usize, String)> = match parts.get(at + 1) {
        // `[dependencies.name]`: the table is one entry.
        Some(name) => {
            let lines = table.lines.iter().map(|(_, line)| line.as_str());
            let text: Vec<&str> = std::iter::once(*name).chain(lines).collect();
            vec![(table.line, text.join("\n"))]
        }
        None => table.lines.clone(),
    };
    let mut found = Vec::new();
    for (line, entry) in entries {
        let mut names: Vec<&str> = entry
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_')
            .filter(|word| *word == "lmsc" || word.starts_with("lmsc-"))
            .collect();
        names.sort_unstable();
        names.dedup();
        found.extend(names.into_iter().map(|name| (line, name.to_owned(), entry.clone(), kind)));
    }
    found
}

/// Every member has `[lints] workspace = true`, but for examples, which may be copied out of the workspace.
pub(super) fn members_inherit_the_lints(tree: &Tree) -> Vec<String> {
    let inherits = |text: &str| {
        manifest::string(text, "lints", "workspace").as_deref() == Some("true")
            || lex::has_name(text, "lints.workspace = true")
    };
    let members =
        tree.members().into_iter().filter(|(path, text)| !path.starts_with("examples/") && !inherits(text));
    members
        .map(|(path, _)| {
            format!("{path}:1: does not inherit the workspace's lints, add `[lints]` with `workspace = true`")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "[workspace]\nmembers = [\"plan\"]\n[package]\nname = \"lmsc\"\n";

    fn with_plan(plan: &str) -> Tree {
        Tree::of([("Cargo.toml", ROOT), ("plan/Cargo.toml", plan)])
    }

    fn plan_depends(dependencies: &str) -> Vec<String> {
        arrows_are_those_of_the_design(&with_plan(&format!(
            "[package]\nname = \"lmsc-plan\"\n{dependencies}\n"
        )))
    }

    #[test]
    fn an_arrow_against_the_design_fails() {
        let expected = [
            "plan/Cargo.toml:4: `lmsc-plan` depends on `lmsc-passes`, against the arrows of ARCHITECTURE.md; of ours it may depend on: `lmsc-planners`, `lmsc-address`, `lmsc-bound`, `lmsc-cost`, `lmsc-schedule`, `lmsc-ir`",
        ];
        assert_eq!(plan_depends("[dependencies]\nlmsc-passes.workspace = true"), expected);
        assert_eq!(plan_depends("[dev-dependencies]\nlmsc-passes.workspace = true"), expected);
        assert_eq!(
            plan_depends("[target.'cfg(unix)'.dependencies]\nx = { package = \"lmsc-passes\" }"),
            expected
        );
        assert_eq!(plan_depends("\n[build-dependencies.lmsc-passes]\nworkspace = true"), expected);
    }

    #[test]
    fn an_arrow_of_the_design_holds() {
        assert_eq!(plan_depends("[dependencies]\nlmsc-ir.workspace = true\nlmscx = \"1\""), [""; 0]);
    }

    #[test]
    fn tests_may_draw_random_graphs() {
        assert_eq!(plan_depends("[dev-dependencies]\nlmsc-testing.workspace = true"), [""; 0]);
        assert_eq!(plan_depends("[dependencies]\nlmsc-testing.workspace = true").len(), 1);
    }

    #[test]
    fn a_renamed_member_fails() {
        let root = format!("{ROOT}[workspace.dependencies]\nlmsc-ir = {{ path = \"ir\" }}\n");
        assert_eq!(arrows_are_those_of_the_design(&Tree::of([("Cargo.toml", &root)])), [""; 0]);
        let root = format!("{ROOT}[workspace.dependencies]\nbelow = {{ package = \"lmsc-ir\" }}\n");
        assert_eq!(
            arrows_are_those_of_the_design(&Tree::of([("Cargo.toml", &root)])),
            ["Cargo.toml:6: `lmsc-ir` is renamed, use its own name"]
        );
    }

    #[test]
    fn a_package_unknown_to_the_design_fails() {
        let messages = arrows_are_those_of_the_design(&with_plan("[package]\nname = \"lmsc-misc\"\n"));
        assert!(messages[0].starts_with("plan/Cargo.toml:1: `lmsc-misc` has no place in the design"));
    }

    #[test]
    fn a_member_without_lints_fails() {
        let root = format!("{ROOT}[lints]\nworkspace = true\n");
        let of =
            |plan| members_inherit_the_lints(&Tree::of([("Cargo.toml", &root), ("plan/Cargo.toml", plan)]));
        assert_eq!(of("[lints]\nworkspace = true"), [""; 0]);
        assert_eq!(
            of("[lints.rust]\nunsafe_code = \"allow\""),
            [
                "plan/Cargo.toml:1: does not inherit the workspace's lints, add `[lints]` with `workspace = true`"
            ]
        );
    }
}

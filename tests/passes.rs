//! Snapshot tests of passes: every `testdata/passes/<pass>/<case>.lms` is run as its first line says, and the
//! diff is compared with the `.snap` beside it.
//!
//! `cargo review` accepts intended changes.

use std::path::{Path, PathBuf};

use clap::Parser;
use lmsc::Binding;
use lmsc::cli::{Cli, CliCommand, OptArgs};
use lmsc_ir::Graph;
use lmsc_passes::{PassCx, Pipeline};
use similar::{ChangeTag, TextDiff};

const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/passes");

#[test]
fn cases_change_what_their_snapshots_say() {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let cases = cases();
    assert!(cases.len() > 10, "the cases are under {CASES}");
    for case in cases {
        settings.set_snapshot_path(case.parent().unwrap());
        settings.set_input_file(&case);
        settings
            .bind(|| insta::assert_snapshot!(case.file_stem().unwrap().to_str().unwrap(), outcome(&case)));
    }
}

/// Every case, in the order of its path.
fn cases() -> Vec<PathBuf> {
    let folders = std::fs::read_dir(CASES).unwrap().map(|entry| entry.unwrap().path());
    let files =
        folders.flat_map(|folder| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()));
    let mut cases: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|e| e == "lms")).collect();
    cases.sort();
    cases
}

/// The diff that the case's passes make, with the memory before and after on top; or their refusal.
fn outcome(case: &Path) -> String {
    let args = arguments(case);
    let binding = Binding::default();
    let before = lmsc::load(case, &binding).unwrap_or_else(|e| panic!("{e}")).graph;
    let after = match lmsc::commands::opt(&args) {
        Ok(text) => Graph::parse(&text).unwrap(),
        Err(error) => return format!("// exit {}\n{error}\n", error.exit_code()),
    };
    // A graph rewritten in other operators is compared by its results: tests/kernels.rs.
    let passes = Pipeline::parse_with(&args.passes.join(","), &lmsc_papers::passes()).unwrap();
    passes.prove(&before, &after).unwrap_or_else(|e| panic!("{}: {e}", case.display()));
    let mut out = format!("// before: {}\n// after:  {}\n", facts(&before), facts(&after));
    let (before, after) = (before.to_text(), after.to_text());
    for change in TextDiff::from_lines(&before, &after).iter_all_changes() {
        out += match change.tag() {
            ChangeTag::Equal => " ",
            ChangeTag::Delete => "-",
            ChangeTag::Insert => "+",
        };
        out += change.value();
    }
    out
}

fn facts(graph: &Graph) -> String {
    let memory = PassCx::default().memory(graph);
    let node = memory.peak_tick().map_or("-", |tick| &*graph.node(graph.order()[tick]).name);
    format!("resident {} + transient peak {} at [{node}]", memory.resident, memory.transient_peak())
}

/// The options of the case's `// RUN:` line.
fn arguments(case: &Path) -> OptArgs {
    let text = std::fs::read_to_string(case).unwrap();
    let run = text.lines().next().and_then(|line| line.strip_prefix("// RUN: "));
    let run = run.unwrap_or_else(|| panic!("{}: the first line is `// RUN: -p …`", case.display()));
    let words = ["lmsc", "opt", case.to_str().unwrap()].into_iter().chain(run.split_whitespace());
    let cli = Cli::try_parse_from(words).unwrap_or_else(|e| panic!("{}: {e}", case.display()));
    match cli.command {
        Some(CliCommand::Opt(args)) => *args,
        _ => unreachable!("the second word is `opt`"),
    }
}

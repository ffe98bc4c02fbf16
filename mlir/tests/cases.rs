//! Every `testdata/mlir/<case>.lms` as MLIR, compared with the `.snap` beside it, and read back.

use std::path::{Path, PathBuf};

use lmsc_ir::Graph;

const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/mlir");

/// Every case, in the order of its path.
fn cases() -> Vec<PathBuf> {
    let files = std::fs::read_dir(CASES).unwrap().map(|entry| entry.unwrap().path());
    let mut cases: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|e| e == "lms")).collect();
    cases.sort();
    assert!(cases.len() >= 3, "the cases are under {CASES}");
    cases
}

#[test]
fn cases_print_as_their_snapshots_say_and_are_read_back() {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.set_snapshot_path(Path::new(CASES));
    for case in cases() {
        let graph = Graph::parse(&std::fs::read_to_string(&case).unwrap()).unwrap();
        let text = lmsc_mlir::print(&graph).unwrap_or_else(|e| panic!("{}: {e}", case.display()));
        settings.set_input_file(&case);
        settings.bind(|| insta::assert_snapshot!(case.file_stem().unwrap().to_str().unwrap(), text));
        let read = lmsc_mlir::parse(&text).unwrap_or_else(|e| panic!("{}: {e}\n{text}", case.display()));
        assert_eq!(read.to_text(), graph.to_text());
        assert!(lmsc_mlir::looks_like(&text));
    }
}

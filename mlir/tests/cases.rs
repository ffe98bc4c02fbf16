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

#[test]
fn text_that_llvm_refuses_is_refused_without_llvm() {
    let files = std::fs::read_dir(Path::new(CASES).join("refused")).unwrap();
    let files =
        files.map(|entry| entry.unwrap().path()).filter(|p| p.extension().is_some_and(|e| e == "mlir"));
    let mut messages: Vec<String> = files
        .map(|file| {
            let text = std::fs::read_to_string(&file).unwrap();
            let message = match lmsc_mlir::parse(&text) {
                Err(error) => error.to_string(),
                Ok(graph) => lmsc_ir::verify(&graph).expect_err(&file.display().to_string()).0[0].to_string(),
            };
            format!("{}: {message}", file.file_stem().unwrap().to_str().unwrap())
        })
        .collect();
    messages.sort();
    insta::assert_snapshot!(messages.join("\n"), @r"
    a-copy-has-a-name: 5:5: `lms.swap_out` has no `onnx_node_name`
    a-copy-has-another-type: I8: `out_a1` (ai.lmsc.SwapOut) turns float[4,8] into float[4,9]; a copy keeps the type
    a-tensor-is-no-token: I3: `in_a1` (ai.lmsc.SwapIn) reads `a2` from the device; it reads host values only
    control-edges-make-no-cycle: 6:24: `%6` is not defined before this
    there-is-no-such-operation: 7:5: `lms.triger` is no operation of ONNX or of the dialect `lms`
    what-is-on-the-host-is-no-tensor: 12:12: `%1#0` is of type !lms.host<tensor<4x8xf32>>, not the one stated
    ");
}

//! LLVM's libraries and tools accept the texts that are written, and refuse wrong ones.
//!
//! `MLIR_OPT` names `mlir-opt`; without it, it is looked for in the folder that `MLIR_SYS_220_PREFIX` names, which
//! building needs.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lmsc_ir::Graph;
use lmsc_testing::{Rng, Size, training_graph};

const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/mlir");
const DIALECT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/lms.irdl.mlir");

fn files(folder: &Path, kind: &str) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|e| e == kind)).collect();
    files.sort();
    files
}

/// Output of `mlir-opt` for the text, or its error.
fn mlir_opt(text: &str) -> Result<String, String> {
    let program = std::env::var_os("MLIR_OPT").map(PathBuf::from).unwrap_or_else(|| {
        let prefix = std::env::var_os("MLIR_SYS_220_PREFIX").map(PathBuf::from);
        prefix.map_or_else(|| "mlir-opt".into(), |prefix| prefix.join("bin/mlir-opt"))
    });
    let mut child = Command::new(&program)
        .arg(format!("--irdl-file={DIALECT}"))
        .arg("--allow-unregistered-dialect")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("{}: {e}", program.display()));
    let mut stdin = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        // It may be refused before it has been read.
        scope.spawn(move || _ = stdin.write_all(text.as_bytes()));
        child.wait_with_output().unwrap()
    });
    let [out, error] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    if output.status.success() { Ok(out) } else { Err(error) }
}

fn accepted(name: &str, graph: &Graph) {
    let text = lmsc_mlir::print(graph).unwrap();
    lmsc_mlir::check(&text).unwrap_or_else(|found| panic!("{name}: {found:?}\n{text}"));
    let theirs = mlir_opt(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
    let read = lmsc_mlir::parse(&theirs).unwrap_or_else(|e| panic!("{name}: {e}\n{theirs}"));
    assert_eq!(read.to_text(), graph.to_text(), "{name}");
}

#[test]
fn mlir_opt_accepts_written_text_and_its_output_is_the_same_graph() {
    let cases = files(Path::new(CASES), "lms");
    assert!(cases.len() >= 3, "the cases are under {CASES}");
    for case in cases {
        let graph = Graph::parse(&std::fs::read_to_string(&case).unwrap()).unwrap();
        accepted(&case.display().to_string(), &graph);
    }
    for seed in 0..20 {
        accepted(&format!("seed {seed}"), &training_graph(&mut Rng::new(seed), Size::nodes(60)));
    }
}

#[test]
fn wrong_text_is_refused() {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let folder = Path::new(CASES).join("refused");
    settings.set_snapshot_path(&folder);
    let files = files(&folder, "mlir");
    assert!(files.len() >= 6, "they are under {}", folder.display());
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let found = lmsc_mlir::check(&text).expect_err(&file.display().to_string());
        let ours: Vec<String> = found.iter().map(ToString::to_string).collect();
        let theirs = mlir_opt(&text).expect_err(&file.display().to_string());
        let told = format!("{}\n\n{theirs}", ours.join("\n"));
        settings.set_input_file(&file);
        settings.bind(|| insta::assert_snapshot!(file.file_stem().unwrap().to_str().unwrap(), told));
    }
}

#[test]
fn a_context_at_a_time_is_checked_in_any_number_of_threads() {
    let graph = training_graph(&mut Rng::new(1), Size::nodes(60));
    let text = lmsc_mlir::print(&graph).unwrap();
    let check = || lmsc_mlir::check(&text).unwrap();
    std::thread::scope(|scope| (0..4).for_each(|_| _ = scope.spawn(check)));
}

//! Every source of kernels compiles for every architecture, with the compiler that GPUs get their kernels from.
//!
//! Needs NVRTC, but no GPU; says so where it is not found. With `LMSC_REQUIRE_NVRTC` that is a failure.

#[path = "support/nvrtc.rs"]
mod support;

use lmsc_cuda::{KernelSource, SOURCES};
use rayon::prelude::*;
use support::compiler;

const ARCHITECTURES: [&str; 3] = ["sm_80", "sm_90", "sm_100"];

#[test]
fn every_source_compiles_for_every_architecture() {
    let Some(compiler) = compiler() else { return };
    let parts = SOURCES.iter().flat_map(|source| [(source, false), (source, true)]);
    let parts = parts.filter(|(source, rare)| source.has_rare || !rare);
    let all = parts.flat_map(|part| ARCHITECTURES.map(|architecture| (part, architecture))).enumerate();
    // Each architecture takes its turn, unless all are asked for.
    let each = std::env::var("LMSC_THOROUGH").as_deref() == Ok("all");
    let turns = ARCHITECTURES.len();
    let all: Vec<_> = all.filter(|(i, _)| each || i / turns % turns == i % turns).map(|(_, it)| it).collect();
    all.par_iter().for_each(|&((source, rare), architecture)| {
        let image = compiler.image(source, rare, architecture).unwrap_or_else(|e| panic!("{e}"));
        assert!(image.starts_with(b"\x7fELF"), "{} for {architecture} is no image", source.name);
    });
}

#[test]
fn errors_of_a_source_name_its_line() {
    let Some(compiler) = compiler() else { return };
    let source = KernelSource {
        name: "wrong",
        text: "\nKERNEL wrong() { no_such_function(); }\n",
        has_rare: false,
        contracts: true,
    };
    let error = compiler.image(&source, false, "sm_90").unwrap_err().to_string();
    assert!(error.contains("wrong.cu(2)") && error.contains("no_such_function"), "{error}");
}

#[test]
fn compiled_kernels_are_cached_and_damaged_caches_are_ignored() {
    let Some(compiler) = compiler() else { return };
    let folder =
        std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("kept-{}", std::process::id()));
    let compiler = compiler.with_cache(Some(folder.clone()));
    let source = SOURCES.iter().find(|source| source.name == "random").unwrap();
    let image = || compiler.image(source, false, "sm_90").unwrap();
    let first = image();
    let files = || std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    let [file] = &files()[..] else { panic!("{:?}", files()) };
    let written = std::fs::metadata(file).unwrap().modified().unwrap();
    assert!(image() == first && std::fs::metadata(file).unwrap().modified().unwrap() == written);
    let mut damaged = std::fs::read(file).unwrap();
    *damaged.last_mut().unwrap() ^= 1;
    std::fs::write(file, &damaged).unwrap();
    assert!(image() == first && std::fs::read(file).unwrap() != damaged);
    std::fs::remove_dir_all(folder).unwrap();
}

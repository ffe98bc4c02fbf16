//! Models of full size over a CUDA without computation: they open, run and replay, and a log lists the calls to
//! the device.
//!
//! Needs a C++ compiler, and says so where there is none.

#[path = "../runtime/cuda/tests/support/shim.rs"]
mod shim;
mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

const GIB: u64 = 1 << 30;

/// A card of 80 GB, of which a driver gives 79 GiB.
const CARD: u64 = 79 * GIB;

/// The library in three forms: complete, without the functions of CUDA 12.8, and too old to be used; built
/// once, none where there is no compiler.
fn libraries() -> Option<&'static [PathBuf; 3]> {
    static BUILT: OnceLock<Result<Option<[PathBuf; 3]>, String>> = OnceLock::new();
    BUILT.get_or_init(shim::null).as_ref().unwrap_or_else(|e| panic!("{e}")).as_ref()
}

/// The names under which the library is found.
const DRIVER: &str = "libcuda.so.1";
const NVRTC: &str = "libnvrtc.so.13";
const BLAS: &str = "libcublas.so.13";
const DNN: &str = "libcudnn.so.9";

/// A folder with libraries, and with the files that commands write.
struct Installed(tempfile::TempDir);

impl Installed {
    /// With these libraries; the driver is the one of this number.
    fn with(names: &[&str], driver: usize) -> Option<Installed> {
        let libraries = libraries()?;
        let installed = Installed(tempfile::tempdir().unwrap());
        std::fs::create_dir(installed.path("cuda")).unwrap();
        for name in names {
            let which = if *name == DRIVER { driver } else { 0 };
            installed.copy(&libraries[which], &format!("cuda/{name}"));
        }
        Some(installed)
    }

    /// With all libraries.
    fn new() -> Option<Installed> {
        Installed::with(&[DRIVER, NVRTC, BLAS, DNN], 0)
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    /// A copy, which the loader takes for another library.
    fn copy(&self, library: &Path, name: &str) {
        let to = self.0.path().join(name);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(library, to).unwrap();
    }

    /// The command, where nothing but this folder and these settings says where libraries are.
    fn command(&self, arguments: &[&str], settings: &[(&str, &str)]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lmsc"));
        for variable in ["LD_LIBRARY_PATH", "VIRTUAL_ENV", "CONDA_PREFIX"] {
            command.env_remove(variable);
        }
        command.args(arguments).env("LMSC_CUDA_PATH", self.path("cuda")).env("HOME", self.0.path());
        command.env("XDG_CACHE_HOME", self.0.path()).env("NULLCUDA_LOG", self.path("log"));
        command.envs(settings.iter().copied());
        command
    }

    /// Exit code, output and errors of the command.
    fn lmsc(&self, arguments: &[&str], settings: &[(&str, &str)]) -> (Option<i32>, String, String) {
        _ = std::fs::remove_file(self.path("log"));
        let output = self.command(arguments, settings).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }

    /// Output of the command, which must succeed, as JSON.
    fn json(&self, arguments: &[&str], settings: &[(&str, &str)]) -> Value {
        let (code, text, errors) = self.lmsc(arguments, settings);
        assert_eq!(code, Some(0), "{arguments:?}: {errors}");
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{arguments:?}: {e}: {text}"))
    }

    /// The device calls of the last command.
    fn log(&self) -> Log {
        let text = std::fs::read_to_string(self.path("log")).unwrap_or_default();
        Log(text.lines().map(str::to_owned).collect())
    }

    /// Writes the model for a budget of a target whose kernels are CUDA's, and returns the file.
    fn plan(&self, model: &[&str], budget: u64) -> String {
        let (planned, budget) = (self.path("planned.onnx"), budget.to_string());
        let plan = ["--target", "h200-sxm", "--planner", "lru", "--budget", &budget, "-o", &planned];
        let (code, _, errors) = self.lmsc(&[model, &plan].concat(), &[]);
        assert_eq!(code, Some(0), "{errors}");
        planned
    }
}

/// The device calls of a command, one a line.
struct Log(Vec<String>);

impl Log {
    /// The lines that begin with one of these words, without it.
    fn of<'a>(&'a self, words: &'a [&str]) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter_map(|line| {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            words.contains(&word).then_some(rest)
        })
    }

    fn count(&self, words: &[&str]) -> usize {
        self.of(words).count()
    }

    /// The numbers at this place of such lines.
    fn numbers(&self, words: &[&str], place: usize) -> Vec<u64> {
        self.of(words).map(|rest| rest.split(' ').nth(place).unwrap().parse().unwrap()).collect()
    }

    /// Until the first step begins, and from then on: the first event that has a time, once the arena is cleared, is recorded
    /// where it begins.
    fn halves(&self) -> [Log; 2] {
        let cleared = self.0.iter().rposition(|line| line.starts_with("memset")).expect("there is an arena");
        let begin =
            self.0[cleared..].iter().position(|line| line == "time").expect("a step has run") + cleared;
        let (before, behind) = self.0.split_at(begin);
        [before, behind].map(|lines| Log(lines.to_vec()))
    }

    /// The most bytes of the device that were in use at once.
    fn most(&self) -> u64 {
        self.numbers(&["alloc", "chunk", "free"], 1).into_iter().max().unwrap_or(0)
    }
}

/// More than the constants of any of these steps.
const CONSTANTS: u64 = 64 << 20;

/// All that takes memory.
const ALLOCATIONS: [&str; 4] = ["alloc", "chunk", "register", "hostalloc"];

/// The path of a model of full size.
fn model(name: &str) -> String {
    format!("{}/{name}/training_model.onnx", support::models::MODELS)
}

/// Numbers of commands of a program's step, from `lmsc launches`: kernels, products, convolutions, copies out and in.
fn listed(installed: &Installed, model: &[&str]) -> [usize; 5] {
    let json = installed.json(&[&["launches", "--json"], model].concat(), &[]);
    let calls = |kind: &str| {
        let totals = json["totals"].as_array().unwrap();
        totals.iter().find(|total| total["kind"] == kind).map_or(0, |total| total["calls"].as_u64().unwrap())
    };
    ["kernel", "product", "convolution", "copy out", "copy in"].map(|kind| calls(kind) as usize)
}

/// Runs two steps, given one by one or replayed, in a card's memory, and compares the calls with those that are listed. A step that
/// was planned takes no more than its budget.
fn runs_as_listed(installed: &Installed, program: &[&str], replayed: bool, budget: Option<u64>) -> Value {
    let device = if replayed { "cuda+graph" } else { "cuda" };
    let card = CARD.to_string();
    // Pages that nobody writes take no memory of this machine.
    let settings = [("NULLCUDA_MEMORY", &*card), ("NULLCUDA_REGISTER", "0")];
    let run = ["run", "--device", device, "--steps", "2", "--require-libraries", "--json"];
    let json = installed.json(&[&run, program].concat(), &settings);
    let log = installed.log();
    let [before, within] = log.halves();
    assert_eq!(within.count(&ALLOCATIONS), 0, "something is allocated within steps");
    assert!(log.most() <= CARD, "{} bytes are in use", log.most());
    let arena = json["arena"].as_u64().unwrap();
    // Constants of kernels lie behind the tensors, within a plan's budget.
    let most = budget.unwrap_or(arena + CONSTANTS);
    let allocated = before.numbers(&["alloc"], 0);
    let whole = allocated.iter().find(|bytes| (arena..=most).contains(bytes));
    let whole = *whole.unwrap_or_else(|| panic!("an arena of {arena} bytes among {allocated:?}"));
    let cleared = before.numbers(&["memset"], 0);
    assert!(
        cleared.len() == 1 && (whole - CONSTANTS..=whole).contains(&cleared[0]),
        "{cleared:?} of {whole}"
    );
    let steps = if replayed { 1 } else { 2 };
    assert_eq!(within.count(&["replay"]), if replayed { 2 } else { 0 });
    let [kernels, products, convolutions, out, into] = listed(installed, program);
    let convolved = ["forward", "data", "filter"];
    let called = [&["launch"][..], &["product"], &convolved, &["out"]].map(|words| within.count(words));
    assert_eq!(called[..3], [kernels, products, convolutions].map(|calls| steps * calls));
    // Beside a step's copies, the caller looks at losses and sets inputs.
    assert!(called[3] >= steps * out && within.count(&["in"]) >= steps * into, "{called:?}, not {out}");
    assert!(products + convolutions > 0);
    json
}

/// ResNet-50 at a batch that needs 83 GiB is planned for 64 of them, and runs on a card of 79.
#[test]
#[ignore = "slow: `cargo xtask ci test` runs it"]
fn a_step_that_is_larger_than_the_card_runs() {
    let Some(installed) = Installed::new() else { return };
    let (resnet, budget) = (model("resnet50"), 64 * GIB);
    let step = [&*resnet, "--dim", "batch=1024"];
    let card = [("NULLCUDA_MEMORY", "84825604096")];
    let (code, _, errors) = installed.lmsc(&[&["run", "--device", "cuda"], &step[..]].concat(), &card);
    assert!(code == Some(1) && errors.contains("of the device's memory, of which 78.5 GiB"), "{errors}");
    let planned = installed.plan(&step, budget);
    for replayed in [false, true] {
        let json = runs_as_listed(&installed, &[&planned], replayed, Some(budget));
        let arena = json["arena"].as_u64().unwrap();
        assert!((budget - GIB..=budget).contains(&arena), "{arena} of {budget}");
        assert!(json["copied_out"].as_u64().unwrap() > 10 * GIB);
    }
}

/// GPT-2, BERT and a 3-dimensional U-Net, with an optimizer, at batches that people train with.
#[test]
#[ignore = "slow: `cargo xtask ci test` runs it"]
fn other_models_of_full_size_run() {
    let Some(installed) = Installed::new() else { return };
    let optimizer = |name: &str| format!("{}/{name}/optimizer_model.onnx", support::models::MODELS);
    for (name, dims, most) in [
        ("gpt2_small", &["batch=8", "seq=512"][..], 12 * GIB),
        ("bert_base", &["batch=32"], 8 * GIB),
        ("unet3d", &["batch=8"], 4 * GIB),
    ] {
        let (model, optimizer) = (model(name), optimizer(name));
        let dims = dims.iter().flat_map(|dim| ["--dim", dim]);
        let step: Vec<&str> = [&*model, "--optimizer", &optimizer].into_iter().chain(dims).collect();
        let json = runs_as_listed(&installed, &step, name == "bert_base", None);
        let arena = json["arena"].as_u64().unwrap();
        assert!((GIB..most).contains(&arena), "{name}: {arena}");
    }
}

/// A small model, for tests that do not depend on its size.
fn small() -> Vec<String> {
    [&model("tiny_vgg"), "--dim", "batch=2"].map(str::to_owned).to_vec()
}

/// Runs a step of the small model, with more arguments.
fn run_small(
    installed: &Installed,
    more: &[&str],
    settings: &[(&str, &str)],
) -> (Option<i32>, String, String) {
    let small = small();
    let small: Vec<&str> = small.iter().map(|argument| &**argument).collect();
    installed.lmsc(&[&["run", "--device", "cuda", "--steps", "1"], more, &small[..]].concat(), settings)
}

/// The warnings, but for those of the model.
fn warnings(errors: &str) -> Vec<&str> {
    let all = errors.lines().filter_map(|line| line.strip_prefix("lmsc: warning[LMS0408]: "));
    all.filter(|warning| !warning.contains("nothing is learned")).collect()
}

/// The reported libraries: names, and paths below the folder.
fn used(installed: &Installed, json: &Value) -> Vec<(String, String)> {
    let root = std::fs::canonicalize(installed.0.path()).unwrap();
    let text = |library: &Value, key: &str| library[key].as_str().unwrap().to_owned();
    let libraries = json["gpu"]["libraries"].as_array().unwrap().iter();
    let below = |path: String| Path::new(&path).strip_prefix(&root).unwrap().display().to_string();
    libraries.map(|library| (text(library, "name"), below(text(library, "path")))).collect()
}

/// Of two copies of a library, the one that is found first is called, wherever the loader would find the other: under the name
/// with a version, or that of a development file.
#[test]
fn one_of_two_copies_is_called() {
    let Some(installed) = Installed::new() else { return };
    let [library, ..] = libraries().unwrap();
    for name in [DRIVER, NVRTC, BLAS, DNN] {
        installed.copy(library, &format!("toolkit/{name}"));
        let development = name.split_inclusive(".so").next().unwrap();
        installed.copy(library, &format!("toolkit/{development}"));
    }
    let toolkit = installed.path("toolkit");
    let expected = |folder: &str| {
        [("CUDA driver", DRIVER), ("NVRTC", NVRTC), ("cuBLAS", BLAS), ("cuDNN", DNN)]
            .map(|(library, name)| (library.to_owned(), format!("{folder}/{name}")))
            .to_vec()
    };
    let opened = || {
        let root = std::fs::canonicalize(installed.0.path()).unwrap();
        let log = installed.log();
        let below = |path: &str| Path::new(path).strip_prefix(&root).unwrap().display().to_string();
        let mut all: Vec<String> = log.of(&["nvrtc", "blas", "dnn"]).map(below).collect();
        all.sort();
        all.dedup();
        all
    };
    // A folder that is usual does not end the list of those that are named.
    let usual = ["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib/aarch64-linux-gnu"];
    let usual = usual.into_iter().find(|folder| Path::new(folder).is_dir()).unwrap_or("/usr/lib64");
    let named = format!("{usual}:{}", installed.path("cuda"));
    for (named, folder) in [(&*installed.path("cuda"), "cuda"), (&named, "cuda"), ("", "toolkit")] {
        let settings = [("LD_LIBRARY_PATH", &*toolkit), ("LMSC_CUDA_PATH", named)];
        let (code, text, errors) = run_small(&installed, &["--json", "--require-libraries"], &settings);
        assert_eq!(code, Some(0), "{errors}");
        let json: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(used(&installed, &json), expected(folder), "{named}");
        assert_eq!(opened(), [BLAS, DNN, NVRTC].map(|name| format!("{folder}/{name}")), "{named}");
    }
}

/// Libraries among the packages of the `python3` that is first in PATH are found, be it a virtual environment's or one behind
/// a link; with -v it is said where.
#[test]
fn packages_beside_python3_are_found() {
    let Some(installed) = Installed::with(&[DRIVER, NVRTC], 0) else { return };
    let [library, ..] = libraries().unwrap();
    let packages = "python/lib/python3.12/site-packages/nvidia";
    installed.copy(library, &format!("{packages}/cublas/lib/{BLAS}"));
    installed.copy(library, &format!("{packages}/cudnn/lib/{DNN}"));
    installed.copy(library, "python/bin/python3");
    std::fs::create_dir_all(installed.path("links")).unwrap();
    std::os::unix::fs::symlink(installed.path("python/bin/python3"), installed.path("links/python3"))
        .unwrap();
    for folder in ["python/bin", "links"] {
        let (code, text, errors) = run_small(&installed, &["-v"], &[("PATH", &installed.path(folder))]);
        assert_eq!((code, warnings(&errors)), (Some(0), vec![]), "{folder}: {errors}");
        for line in [
            format!("\nCUDA driver 13.0: {}\n", installed.path(&format!("cuda/{DRIVER}"))),
            format!("\ncuBLAS 13.1.0: {}\n", installed.path(&format!("{packages}/cublas/lib/{BLAS}"))),
            format!("\ncuDNN 9.19.0: {}\n", installed.path(&format!("{packages}/cudnn/lib/{DNN}"))),
        ] {
            assert!(text.contains(&line), "{line} in {text}");
        }
    }
}

/// Where a library is missing, or has nothing for a convolution, that is a warning; or an answer no, if libraries are required.
#[test]
fn a_fallback_is_a_warning_or_refused() {
    let Some(installed) = Installed::with(&[DRIVER, NVRTC], 0) else { return };
    let [library, ..] = libraries().unwrap();
    let both = |settings: &[(&str, &str)]| {
        let settings = [&[("PATH", "")], settings].concat();
        let (code, _, warning) = run_small(&installed, &[], &settings);
        assert_eq!(code, Some(0), "{warning}");
        let (code, _, error) = run_small(&installed, &["--require-libraries"], &settings);
        assert_eq!(code, Some(1), "{error}");
        let small = small();
        let small = small.iter().map(|argument| &**argument);
        let (profile, measure) = (installed.path("profile.json"), ["calibrate", "--device", "cuda", "-o"]);
        let measure = measure.into_iter().chain([&*profile, "--require-libraries"]).chain(small);
        let (code, _, measured) = installed.lmsc(&measure.collect::<Vec<_>>(), &settings);
        assert_eq!((code, measured.lines().last()), (Some(1), error.lines().last()), "{measured}");
        (warning, error)
    };
    let (warning, error) = both(&[]);
    assert_eq!(
        warnings(&warning),
        ["own kernels multiply matrices: cuBLAS is not found", "own kernels convolve: cuDNN is not found"]
    );
    assert!(error.contains("does not run by --require-libraries: cuBLAS cannot be used: "), "{error}");
    assert!(error.contains("LMSC_CUDA_PATH"), "{error}");
    installed.copy(library, &format!("cuda/{BLAS}"));
    let (_, error) = both(&[]);
    assert!(error.contains("cuDNN cannot be used: cuDNN is not found"), "{error}");
    installed.copy(library, &format!("cuda/{DNN}"));
    let (warning, error) = both(&[("NULLCUDA_DNN", "0")]);
    assert!(warnings(&warning)[0].starts_with("convolutions by cuDNN 9.19.0, "), "{warning}");
    assert!(error.contains("the library has no deterministic engine for one"), "{error}");
    let (code, _, errors) = run_small(&installed, &["--require-libraries"], &[("PATH", "")]);
    assert_eq!((code, warnings(&errors)), (Some(0), vec![]), "{errors}");
    // Own kernels that were asked for are no fallback.
    let (code, _, errors) = run_small(&installed, &["--own-kernels"], &[]);
    assert_eq!((code, warnings(&errors)), (Some(0), vec![]), "{errors}");
    let (code, _, errors) = run_small(&installed, &["--own-kernels", "--require-libraries"], &[]);
    assert!(code == Some(2) && errors.contains("cannot be used with"), "{errors}");
}

/// A driver from before CUDA 12.8 runs a step; one that is too old, none, none with a device, and a card that is too small are
/// told apart.
#[test]
fn drivers_that_will_not_do_are_refused() {
    let Some(installed) = Installed::with(&[DRIVER, NVRTC, BLAS, DNN], 1) else { return };
    let (code, text, errors) = run_small(&installed, &["-v"], &[]);
    assert_eq!((code, warnings(&errors)), (Some(0), vec![]), "{errors}");
    assert!(text.contains("\nCUDA driver 12.4: "), "{text}");
    let refused = |installed: &Installed, settings: &[(&str, &str)]| {
        let (code, _, errors) = run_small(installed, &[], settings);
        assert_eq!(code, Some(1), "{errors}");
        errors
    };
    let errors = refused(&installed, &[("NULLCUDA_DEVICES", "0")]);
    assert!(errors.contains("the CUDA driver refuses: cuInit: CUDA_ERROR_NO_DEVICE"), "{errors}");
    let errors = refused(&installed, &[("NULLCUDA_MEMORY", "537000000")]);
    assert!(errors.contains(" bytes) are free: 512.12 MiB less what others use"), "{errors}");
    let ancient = Installed::with(&[DRIVER, NVRTC, BLAS, DNN], 2).unwrap();
    let errors = refused(&ancient, &[]);
    let path = ancient.path(&format!("cuda/{DRIVER}"));
    assert!(
        errors.contains(&format!("the CUDA driver in {path} is too old: it has no cuMemsetD8Async")),
        "{errors}"
    );
    let none = Installed::with(&[NVRTC], 0).unwrap();
    let errors = refused(&none, &[]);
    assert!(errors.contains("no CUDA driver: libcuda.so.1 or libcuda.so is not there"), "{errors}");
}

/// Pinned memory is registered as a whole; where that is refused, it is the driver's; where both are, that is said.
#[test]
fn pinned_memory_is_registered_or_allocated() {
    let Some(installed) = Installed::new() else { return };
    let pinned = |settings: &[(&str, &str)]| {
        let (code, _, errors) = run_small(&installed, &[], settings);
        assert_eq!(code, Some(0), "{errors}");
        let log = installed.log();
        [log.count(&["register"]), log.count(&["hostalloc"])]
    };
    // To measure the link, and for the step; each time once for a page, to see whether it can be.
    assert_eq!(pinned(&[]), [4, 0]);
    assert_eq!(pinned(&[("NULLCUDA_REGISTER", "0")]), [0, 2]);
}

//! The kernels of CUDA devices on the processor, compiled by the C++ compiler that is there.
//!
//! Without one, tests that need it say that they are skipped; with `LMSC_REQUIRE_CXX` they fail.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use half::{bf16, f16};
use lmsc_cuda::engines::ChannelOrder;
use lmsc_cuda::{
    Address, AddressBase, Arg, BLOCK, Call, Convolution, Factor, FloatType, Found, KernelLaunch, Product,
    Recipe, SCRATCH_ALIGNMENT, SOURCES, StepWords,
};
use lmsc_kernels::StepContext;

/// The package of the kernels: that of these tests, or below it.
fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    if own.join("kernels").is_dir() { own.to_owned() } else { own.join("runtime/cuda") }
}

/// How something is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Threads are fibers, optimized.
    Fibers,
    /// Threads are threads, under a sanitizer of this name.
    Sanitized(&'static str),
}

/// The C++ compiler, or none where there is none that works.
fn compiler() -> Option<String> {
    let name = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let works = Command::new(&name).arg("--version").output().is_ok_and(|output| output.status.success());
    works.then_some(name)
}

/// A number that changes whenever one of the files does.
fn fingerprint(files: &[PathBuf], flags: &[String]) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut add = |bytes: &[u8]| {
        for &byte in bytes {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for file in files {
        add(&std::fs::read(file).unwrap_or_else(|e| panic!("{}: {e}", file.display())));
    }
    flags.iter().for_each(|flag| add(flag.as_bytes()));
    format!("{hash:016x}")
}

/// Compiles `.cu` files of the folders `kernels`, each behind the prelude, and the C++ files `sources` of
/// `tests/shim`. The path of the library or program, or none where there is no compiler.
#[allow(clippy::print_stdout, reason = "what is skipped is to be seen")]
pub(crate) fn build(
    name: &str,
    kernels: &[String],
    sources: &[&str],
    mode: Mode,
    link: &[&str],
) -> Result<Option<PathBuf>, String> {
    let Some(compiler) = compiler() else {
        assert!(
            std::env::var_os("LMSC_REQUIRE_CXX").is_none(),
            "LMSC_REQUIRE_CXX is set, and there is no C++ compiler"
        );
        println!("skipped: there is no C++ compiler for the kernels of CUDA devices");
        return Ok(None);
    };
    let (shim, folder) = (root().join("tests/shim"), root().join("kernels"));
    let mut flags: Vec<String> = [
        "-std=c++17",
        "-fPIC",
        "-g1",
        "-DEVERYTHING",
        // As where kernels are fused.
        "-ffp-contract=off",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Wno-unknown-pragmas",
        "-Wno-unused-parameter",
    ]
    .map(str::to_owned)
    .to_vec();
    match mode {
        Mode::Fibers => flags.push("-O2".to_owned()),
        Mode::Sanitized(which) => {
            flags.extend(["-O1".into(), "-DSHIM_THREADS".into(), format!("-fsanitize={which}")]);
        }
    }
    flags.extend([format!("-I{}", shim.display()), format!("-I{}", folder.display())]);
    let mut files: Vec<PathBuf> = kernels.iter().map(PathBuf::from).collect();
    files.extend(sources.iter().map(|source| shim.join(source)));
    let included = ["shim.h", "fake_backend.h", "fake_library.h", "null.cpp"].map(|file| shim.join(file));
    files.extend(included.into_iter().chain([folder.join("prelude.cuh")]));
    let linked: Vec<String> = link.iter().map(|flag| (*flag).to_owned()).collect();
    let of = fingerprint(&files, &[&flags[..], &linked].concat());
    let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{of}-{name}"));
    if built.exists() {
        return Ok(Some(built));
    }
    // Several test programs may build it at once: each in its own folder, and the first that is done counts.
    let room = built.with_extension(format!("{}.tmp", std::process::id()));
    std::fs::create_dir_all(&room).unwrap();
    let mut units: Vec<PathBuf> = sources.iter().map(|source| shim.join(source)).collect();
    for kernel in kernels {
        let path = Path::new(kernel);
        let unit = room.join(path.file_name().unwrap()).with_extension("cpp");
        let text = format!(
            "#include \"shim.h\"\nnamespace {{\n#include \"prelude.cuh\"\n#include \"{}\"\n}}\n",
            path.display()
        );
        std::fs::write(&unit, text).unwrap();
        units.push(unit);
    }
    let object = |unit: &PathBuf| room.join(unit.file_name().unwrap()).with_extension("o");
    let run = |mut command: Command| -> Result<(), String> {
        let output = command.output().map_err(|e| format!("{command:?}: {e}"))?;
        let text = String::from_utf8_lossy(&output.stderr);
        if output.status.success() { Ok(()) } else { Err(format!("{command:?}\n{text}")) }
    };
    let compile = |unit: &PathBuf| {
        let mut command = Command::new(&compiler);
        command.args(&flags).arg("-c").arg(unit).arg("-o").arg(object(unit));
        run(command)
    };
    let next = AtomicUsize::new(0);
    let work = || -> Result<(), String> {
        while let Some(unit) = units.get(next.fetch_add(1, Ordering::Relaxed)) {
            compile(unit)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(2, usize::from);
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        all.into_iter().try_for_each(|thread| thread.join().expect("compiling does not panic"))
    })?;
    let mut command = Command::new(&compiler);
    command.args(&flags).args(units.iter().map(object)).args(link).arg("-pthread");
    command.arg("-o").arg(room.join("done"));
    run(command)?;
    std::fs::rename(room.join("done"), &built).unwrap();
    std::fs::remove_dir_all(&room).unwrap();
    Ok(Some(built))
}

/// The files of all kernels.
pub(crate) fn all_kernels() -> Vec<String> {
    SOURCES.iter().map(|source| format!("{}/kernels/{}.cu", root().display(), source.name)).collect()
}

type Entry = extern "C" fn(*const c_char, c_uint, c_uint, *const *const c_void) -> c_int;
type Name = extern "C" fn(c_uint) -> *const c_char;

/// Kernels that run on the processor.
pub(crate) struct Shim {
    launch: Entry,
    name: Name,
}

/// The kernels, or none where there is no C++ compiler.
pub(crate) fn shim() -> Option<&'static Shim> {
    static SHIM: OnceLock<Result<Option<Shim>, String>> = OnceLock::new();
    let build = || build("kernels.so", &all_kernels(), &["shim.cpp"], Mode::Fibers, &["-shared"]);
    let shim = SHIM.get_or_init(|| Ok(build()?.map(|library| Shim::open(&library))));
    shim.as_ref().unwrap_or_else(|e| panic!("{e}")).as_ref()
}

/// Opens a library that was built here, for good.
pub(crate) fn load(library: &Path) -> *mut c_void {
    let path = CString::new(library.to_str().unwrap()).unwrap();
    // SAFETY: the library was built here; opening it only lists its kernels.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
    assert!(!handle.is_null(), "{} does not open", library.display());
    handle
}

/// Functions of a library that was built here.
pub(crate) fn symbols<const N: usize>(library: &Path, names: [&CStr; N]) -> [*mut c_void; N] {
    let handle = load(library);
    // SAFETY: the handle is open, and never closed.
    let found = names.map(|name| unsafe { libc::dlsym(handle, name.as_ptr()) });
    assert!(found.iter().all(|symbol| !symbol.is_null()), "{} lacks a function", library.display());
    found
}

/// A driver, an NVRTC, a cuBLAS and a cuDNN that have no device, under names that a loader asks for; none where there is no
/// compiler.
pub(crate) fn fake() -> Result<Option<[PathBuf; 4]>, String> {
    let soname = |name: &str| format!("-Wl,-soname,{name}");
    let [driver, nvrtc] = ["libcuda.so.1", "libnvrtc.so.13"];
    let link = ["-shared", &soname(driver), "-ldl"];
    let files = ["shim.cpp", "fake.cpp"];
    let Some(driver) = build(driver, &all_kernels(), &files, Mode::Fibers, &link)? else { return Ok(None) };
    let link = ["-shared", &soname(nvrtc), "-ldl"];
    let nvrtc = build(nvrtc, &[], &["fake_nvrtc.cpp"], Mode::Fibers, &link)?;
    let library = |name: &str, file: &str| {
        let link = ["-shared", &soname(name), driver.to_str().expect("paths are text")];
        build(name, &[], &[file], Mode::Fibers, &link)
    };
    let blas = library("libcublas.so.13", "fake_cublas.cpp")?;
    let dnn = library("libcudnn.so.9", "fake_cudnn.cpp")?;
    Ok(nvrtc.zip(blas).zip(dnn).map(|((nvrtc, blas), dnn)| [driver, nvrtc, blas, dnn]))
}

/// A CUDA library without computation, in three forms: complete, without the functions of CUDA 12.8, and too
/// old to be used; none where there is no compiler.
pub(crate) fn null() -> Result<Option<[PathBuf; 3]>, String> {
    let one = |name: &str, source: &str| build(name, &[], &[source], Mode::Fibers, &["-shared", "-ldl"]);
    let Some(whole) = one("null.so", "null.cpp")? else { return Ok(None) };
    let old = one("null-old.so", "null_old.cpp")?;
    let ancient = one("null-ancient.so", "null_ancient.cpp")?;
    Ok(old.zip(ancient).map(|(old, ancient)| [whole, old, ancient]))
}

impl Shim {
    pub(crate) fn open(library: &Path) -> Shim {
        let [launch, name] = symbols(library, [c"shim_launch", c"shim_kernel"]);
        // SAFETY: both are functions of the library, of these types.
        unsafe {
            Shim {
                launch: std::mem::transmute::<*mut c_void, Entry>(launch),
                name: std::mem::transmute::<*mut c_void, Name>(name),
            }
        }
    }

    /// The names of all kernels, sorted.
    pub(crate) fn kernels(&self) -> Vec<String> {
        // SAFETY: the library's list ends with null, and its names stay.
        let name = |index| unsafe { (self.name)(index).as_ref().map(|name| CStr::from_ptr(name)) };
        (0..).map_while(name).map(|name| name.to_str().unwrap().to_owned()).collect()
    }

    /// Runs a kernel on arguments that are there in full.
    pub(crate) fn call(&self, kernel: &str, blocks: u32, args: &[Vec<u64>]) {
        LAUNCHED.lock().unwrap().insert(kernel.to_owned());
        let name = CString::new(kernel).unwrap();
        let pointers: Vec<*const c_void> = args.iter().map(|words| words.as_ptr().cast()).collect();
        // The buffers have the sizes of the recipe. An access beyond them is a bug that this test is to find.
        let failed = (self.launch)(name.as_ptr(), blocks, BLOCK, pointers.as_ptr());
        assert_eq!(failed, 0, "there is no kernel {kernel}");
    }

    /// Runs a recipe on operands and results at these addresses; an omitted one is null. `library` selects the
    /// fake cuBLAS and cuDNN instead of own kernels. The words of the step as the kernels leave them.
    pub(crate) fn run(
        &self,
        recipe: &Recipe,
        operands: &[u64],
        results: &[u64],
        step: StepContext,
        library: bool,
    ) -> StepWords {
        let words = |bytes: usize| bytes.div_ceil(16) * 2;
        // Garbage is no number.
        let mut workspace = vec![[u64::MAX; 2]; words(recipe.workspace().0 as usize) / 2 + 32];
        let mut constants = vec![[0u64; 2]; words(recipe.constants.len()) / 2];
        bytemuck::cast_slice_mut::<_, u8>(&mut constants)[..recipe.constants.len()]
            .copy_from_slice(&recipe.constants);
        let mut step = StepWords::new(step);
        let step_at = step.0.as_mut_ptr() as u64;
        // The workspace has exactly the size that a plan gives.
        let workspace = (workspace.as_mut_ptr() as u64).next_multiple_of(256) + 64;
        let address = |address: &Address| {
            let base = match address.at {
                AddressBase::Operand(i) => operands.get(i).copied().unwrap_or(0),
                AddressBase::Result(i) => results.get(i).copied().unwrap_or(0),
                AddressBase::Workspace => workspace,
                AddressBase::Scratch => recipe.scratch_in(workspace),
                AddressBase::Constants => constants.as_ptr() as u64,
                AddressBase::Step => step_at,
                AddressBase::Nowhere => 0,
            };
            if base == 0 { 0 } else { base + address.offset }
        };
        let launch = |launches: &[KernelLaunch]| {
            for KernelLaunch { kernel, blocks, args, .. } in launches {
                let of = |arg: &Arg| match arg {
                    Arg::Address(one) => vec![address(one)],
                    Arg::Addresses(list) => list.iter().map(address).collect(),
                    Arg::Words(words) => words.clone(),
                    Arg::Command => vec![COMMAND],
                };
                self.call(kernel, *blocks, &args.iter().map(of).collect::<Vec<_>>());
            }
        };
        for call in &recipe.calls {
            let launches = match call {
                Call::Products { library: products, .. } if library => {
                    products.iter().for_each(|product| multiply(&product.map(|at| address(&at))));
                    call.behind()
                }
                Call::Convolution { library: Some(convolution), .. } if library => {
                    launch(call.before());
                    convolve(&(**convolution).clone().map(|at| address(&at)));
                    call.behind()
                }
                _ => call.kernels(),
            };
            launch(launches);
        }
        step
    }
}

/// The position of a launch in its stream, as kernels are told here.
pub(crate) const COMMAND: u64 = 7;

/// Names in [`launched`] of a library's products and convolutions.
pub(crate) const LIBRARIES: [&str; 4] =
    ["cublasGemmEx", "cudnn forward", "cudnn image gradient", "cudnn weight gradient"];

/// An element behind an address where there is one.
fn read(stored: FloatType, (start, index): (u64, u64)) -> f64 {
    // SAFETY: as the caller promises.
    unsafe {
        match stored {
            FloatType::F32 => f64::from((start as *const f32).add(index as usize).read()),
            FloatType::F16 => f64::from((start as *const f16).add(index as usize).read()),
            FloatType::Bf16 => f64::from((start as *const bf16).add(index as usize).read()),
        }
    }
}

fn write(stored: FloatType, (start, index): (u64, u64), value: f64) {
    // SAFETY: as above.
    unsafe {
        match stored {
            FloatType::F32 => (start as *mut f32).add(index as usize).write(value as f32),
            FloatType::F16 => (start as *mut f16).add(index as usize).write(f16::from_f64(value)),
            FloatType::Bf16 => (start as *mut bf16).add(index as usize).write(bf16::from_f64(value)),
        }
    }
}

/// The library's product, from its description alone.
fn multiply(p: &Product<u64>) {
    LAUNCHED.lock().unwrap().insert(LIBRARIES[0].to_owned());
    let at = |factor: &Factor<u64>, which: i64, row: i32, column: i32| {
        let (row, column) = if factor.transposed { (column, row) } else { (row, column) };
        let element = which * factor.stride + i64::from(column) * i64::from(factor.leading) + i64::from(row);
        (factor.at, element as u64)
    };
    // The recipe's matrices lie in the tests' buffers.
    let element = |factor: &Factor<u64>, which, row, column| read(p.factors, at(factor, which, row, column));
    assert!(
        p.workspace.is_multiple_of(SCRATCH_ALIGNMENT) && p.workspace_bytes >= 16 << 10 && !p.out.transposed
    );
    scribble(p.workspace, p.workspace_bytes);
    for which in 0..i64::from(p.batch) {
        for (column, row) in (0..p.n).flat_map(|column| (0..p.m).map(move |row| (column, row))) {
            let term = |k| element(&p.left, which, row, k) * element(&p.right, which, k, column);
            let sum = f64::from(p.alpha) * (0..p.k).map(term).sum::<f64>();
            let there = if p.beta == 0.0 {
                0.0
            } else {
                f64::from(p.beta) * read(p.stored, at(&p.out, which, row, column))
            };
            write(p.stored, at(&p.out, which, row, column), sum + there);
        }
    }
    scribble(p.workspace, p.workspace_bytes);
}

/// A library may overwrite its whole workspace.
fn scribble(workspace: u64, bytes: u64) {
    // SAFETY: the tests' workspaces are as large as recipes say.
    unsafe { (workspace as *mut u8).write_bytes(0xff, bytes as usize) };
}

/// The library's convolution, from its description alone: every tap of every position adds its product to the result.
fn convolve(c: &Convolution<u64>) {
    let filter = &c.filter;
    let name = match filter.found {
        Found::Positions => LIBRARIES[1],
        Found::Image => LIBRARIES[2],
        Found::Weights => LIBRARIES[3],
    };
    LAUNCHED.lock().unwrap().insert(name.to_owned());
    assert!(c.workspace.is_multiple_of(SCRATCH_ALIGNMENT));
    let wide = |list: &[i32]| list.iter().map(|&n| i64::from(n)).collect::<Vec<_>>();
    let [image, weights, positions] =
        [&filter.image, &filter.weights, &filter.positions].map(|list| wide(list));
    let rank = filter.padding.len();
    assert!(
        (2..=3).contains(&rank) && [&image, &weights, &positions].iter().all(|dims| dims.len() == rank + 2)
    );
    assert!(image[0] == positions[0] && weights[0] == positions[1]);
    assert!(weights[1] * i64::from(filter.groups) == image[1]);
    for d in 0..rank {
        let [before, after, stride, dilation] =
            [&filter.padding, &filter.after, &filter.stride, &filter.dilation].map(|list| i64::from(list[d]));
        let reach = (weights[2 + d] - 1) * dilation + 1;
        // A requirement of the library.
        assert!(before >= 0 && after >= 0);
        assert_eq!(positions[2 + d], (image[2 + d] + before + after - reach) / stride + 1);
    }
    let mut order: Vec<usize> = (0..rank + 2).collect();
    if c.layout == ChannelOrder::Last {
        order[1..].rotate_left(1);
    }
    let element = |start: u64, dims: &[i64], at: &[i64]| {
        let index = order.iter().fold(0, |index, &d| index * dims[d] + at[d]);
        (start, index as u64)
    };
    let (found, dims) = match filter.found {
        Found::Positions => (c.positions, &positions),
        Found::Image => (c.image, &image),
        Found::Weights => (c.weights, &weights),
    };
    let mut sums = vec![0f64; dims.iter().product::<i64>() as usize];
    for place in indices(&positions) {
        let group = place[1] / (positions[1] / i64::from(filter.groups));
        for tap in indices(&weights[1..]) {
            let mut pixel = vec![place[0], group * weights[1] + tap[0]];
            pixel.extend((0..rank).map(|d| {
                let [padding, stride, dilation] =
                    [&filter.padding, &filter.stride, &filter.dilation].map(|list| i64::from(list[d]));
                place[2 + d] * stride + tap[1 + d] * dilation - padding
            }));
            if pixel.iter().zip(&image).any(|(at, dim)| !(0..*dim).contains(at)) {
                continue;
            }
            let weight = [&[place[1]], &tap[..]].concat();
            let [x, w, y] = [
                element(c.image, &image, &pixel),
                element(c.weights, &weights, &weight),
                element(c.positions, &positions, &place),
            ];
            let (a, b, to) = match filter.found {
                Found::Positions => (x, w, y),
                Found::Image => (w, y, x),
                Found::Weights => (x, y, w),
            };
            // The recipe's tensors lie in the tests' buffers.
            sums[to.1 as usize] += read(c.stored, a) * read(c.stored, b);
        }
    }
    for (index, &sum) in (0..).zip(&sums) {
        write(c.stored, (found, index), sum);
    }
}

/// All indices of a tensor.
fn indices(dims: &[i64]) -> impl Iterator<Item = Vec<i64>> {
    let at = move |mut index: i64| {
        let mut all = vec![0; dims.len()];
        for (at, dim) in all.iter_mut().zip(dims).rev() {
            (*at, index) = (index % dim, index / dim);
        }
        all
    };
    (0..dims.iter().product()).map(at)
}

static LAUNCHED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// The names of the kernels that have run in this process.
pub(crate) fn launched() -> BTreeSet<String> {
    LAUNCHED.lock().unwrap().clone()
}

/// Input of a program of kernels: buffers, then calls.
#[derive(Default)]
pub(crate) struct Input {
    buffers: Vec<Vec<u8>>,
    calls: Vec<u64>,
    count: u64,
}

impl Input {
    /// A buffer of these bytes; its number.
    pub(crate) fn buffer(&mut self, bytes: &[u8]) -> u64 {
        self.buffers.push(bytes.to_vec());
        self.buffers.len() as u64
    }

    /// A call, whose words are offsets into buffers, or words where the buffer is 0.
    pub(crate) fn call(&mut self, kernel: &str, blocks: u32, args: &[Vec<(u64, u64)>]) {
        self.count += 1;
        self.calls.push(kernel.len() as u64);
        self.calls.extend(words(kernel.as_bytes()));
        self.calls.extend([u64::from(blocks), args.len() as u64]);
        for arg in args {
            self.calls.push(arg.len() as u64);
            self.calls.extend(arg.iter().flat_map(|&(buffer, word)| [buffer, word]));
        }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut all = vec![self.buffers.len() as u64];
        for buffer in &self.buffers {
            all.push(buffer.len() as u64);
            all.extend(words(buffer));
        }
        all.push(self.count);
        all.iter().chain(&self.calls).flat_map(|word| word.to_le_bytes()).collect()
    }
}

fn words(bytes: &[u8]) -> Vec<u64> {
    let word = |chunk: &[u8]| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    };
    bytes.chunks(8).map(word).collect()
}

/// A recipe with all that it works on.
#[derive(Clone)]
pub(crate) struct Scenario {
    pub(crate) kernels: BTreeSet<String>,
    pub(crate) input: Vec<u8>,
}

static SCENARIOS: Mutex<Vec<Scenario>> = Mutex::new(Vec::new());

/// Scenarios in which every kernel that has run runs once, in few blocks where it can be.
pub(crate) fn scenarios() -> Vec<Scenario> {
    SCENARIOS.lock().unwrap().clone()
}

/// Keeps the recipe where it has a kernel that none before it had.
pub(crate) fn keep(recipe: &Recipe, operands: &[&[u8]], results: &[&[u8]], step: StepContext) {
    /// A block is as many threads of the system.
    const FEW: u32 = 12;
    let both = recipe.calls.iter().flat_map(|call| call.kernels().iter().chain(call.behind()));
    let launches: Vec<&KernelLaunch> = both.collect();
    let blocks = launches.iter().map(|launch| launch.blocks).max().unwrap_or(0);
    let kernels: BTreeSet<String> = launches.iter().map(|launch| launch.kernel.clone()).collect();
    let mut kept = SCENARIOS.lock().unwrap();
    let is_new = kernels.iter().any(|kernel| !kept.iter().any(|one| one.kernels.contains(kernel)));
    if !is_new || blocks > FEW {
        return;
    }
    let mut input = Input::default();
    let mut buffer = |bytes: &[u8]| if bytes.is_empty() { 0 } else { input.buffer(bytes) };
    let operands: Vec<u64> = operands.iter().map(|bytes| buffer(bytes)).collect();
    let results: Vec<u64> = results.iter().map(|bytes| buffer(bytes)).collect();
    let [rooms, scratch] = [recipe.rooms, recipe.scratch].map(|bytes| buffer(&vec![0xff; bytes.0 as usize]));
    let constants = buffer(&recipe.constants);
    let step = buffer(&StepWords::new(step).0.map(u64::to_le_bytes).concat());
    let address = |address: &Address| {
        let of = match address.at {
            AddressBase::Operand(i) => operands.get(i).copied().unwrap_or(0),
            AddressBase::Result(i) => results.get(i).copied().unwrap_or(0),
            AddressBase::Workspace => rooms,
            AddressBase::Scratch => scratch,
            AddressBase::Constants => constants,
            AddressBase::Step => step,
            AddressBase::Nowhere => 0,
        };
        (of, if of == 0 { 0 } else { address.offset })
    };
    for launch in launches {
        let of = |arg: &Arg| match arg {
            Arg::Address(one) => vec![address(one)],
            Arg::Addresses(list) => list.iter().map(address).collect(),
            Arg::Words(words) => words.iter().map(|&word| (0, word)).collect(),
            Arg::Command => vec![(0, COMMAND)],
        };
        input.call(&launch.kernel, launch.blocks, &launch.args.iter().map(of).collect::<Vec<_>>());
    }
    kept.push(Scenario { kernels, input: input.bytes() });
}

/// Feeds the program its input; whether it succeeded, and its output.
pub(crate) fn feed(program: &Path, input: &[u8]) -> (bool, String) {
    let mut command = Command::new(program);
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // Who fails early does not read to the end.
    _ = stdin.write_all(input);
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

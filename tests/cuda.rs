//! Programs on the device of CUDA, over a driver that has none: streams are threads, kernels run on the processor, and so do
//! the products of a cuBLAS and the convolutions of a cuDNN beside it.
//!
//! Everything between a program and the driver's calls is the code that runs on a GPU: recipes, arguments,
//! events, pinned memory, copies, modules, launches, graphs. Needs a C++ compiler, and says so where there is
//! none.

#[path = "../runtime/cuda/tests/support/shim.rs"]
mod shim;
mod support;

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use lmsc_cuda::engines::Engines;
use lmsc_cuda::{CudaOptions, CudaSession, KernelCompiler, Precision};
use lmsc_ir::program::{Checked, Program, Stream, Wait};
use lmsc_ir::{Bytes, ElementType, Graph, Type};
use lmsc_passes::{Lowering, MachineModel, PassCx, PassError, Pipeline, PlanRequest, Workspaces, lower};
use lmsc_plan::cost::Profile;
use lmsc_plan::service::Space;
use lmsc_runtime::{
    DeviceBytes, DeviceSession, HostLink, HostSession, RunError, StepObserver, Turn, Unobserved,
};
use support::models::{load, models};
use support::steps::{Feeder, STEPS, start};

/// Larger steps take long on a processor that plays a device.
const LARGEST: u64 = 1 << 20;

/// The driver, of which there is one in a process, so that its settings are one test's at a time.
struct Driver {
    slow: extern "C" fn(u32, u32),
    seed: extern "C" fn(u64),
    memory: extern "C" fn(u64),
    count: extern "C" fn(u32) -> u64,
    products: extern "C" fn(u32) -> u64,
    convolutions: extern "C" fn(u32) -> u64,
    least: extern "C" fn(u64),
}

/// The libraries of the driver, NVRTC, cuBLAS and cuDNN, built once; none where there is no compiler.
fn libraries() -> Option<&'static [PathBuf; 4]> {
    static BUILT: OnceLock<Result<Option<[PathBuf; 4]>, String>> = OnceLock::new();
    BUILT.get_or_init(shim::fake).as_ref().unwrap_or_else(|e| panic!("{e}")).as_ref()
}

fn driver() -> Option<(&'static Driver, MutexGuard<'static, ()>)> {
    static DRIVER: OnceLock<Driver> = OnceLock::new();
    static USED: Mutex<()> = Mutex::new(());
    let [driver, nvrtc, blas, dnn] = libraries()?;
    let driver = DRIVER.get_or_init(|| {
        shim::load(nvrtc);
        let [slow, count] = shim::symbols(driver, [c"fakecuda_slow", c"fakecuda_count"]);
        let [seed, memory] = shim::symbols(driver, [c"fakecuda_seed", c"fakecuda_memory"]);
        let [products] = shim::symbols(blas, [c"fakeblas_count"]);
        let [convolutions, least] = shim::symbols(dnn, [c"fakednn_count", c"fakednn_least"]);
        // SAFETY: it is a function of the driver that was just built, of this type.
        let slow = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn(u32, u32)>(slow) };
        // SAFETY: so is this.
        let count = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn(u32) -> u64>(count) };
        // SAFETY: so are these.
        let (seed, memory) = unsafe {
            (
                std::mem::transmute::<*mut c_void, extern "C" fn(u64)>(seed),
                std::mem::transmute::<*mut c_void, extern "C" fn(u64)>(memory),
            )
        };
        // SAFETY: it is a function of the library that was just built, of this type.
        let products = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn(u32) -> u64>(products) };
        // SAFETY: so are these of theirs.
        let (convolutions, least) = unsafe {
            (
                std::mem::transmute::<*mut c_void, extern "C" fn(u32) -> u64>(convolutions),
                std::mem::transmute::<*mut c_void, extern "C" fn(u64)>(least),
            )
        };
        Driver { slow, seed, memory, count, products, convolutions, least }
    });
    let guard = USED.lock().unwrap_or_else(PoisonError::into_inner);
    (0..4).for_each(|kind| driver.slow(kind, 0));
    (driver.seed)(1);
    (driver.memory)(0);
    (driver.least)(0);
    Some((driver, guard))
}

impl Driver {
    /// Delays kernels (0), copies to the host (1), to the device (2) or of inputs (3) by this number of microseconds.
    fn slow(&self, kind: u32, micros: u32) {
        (self.slow)(kind, micros);
    }

    /// Operations are held up for other random times from now on.
    fn seed(&self, seed: u64) {
        (self.seed)(seed);
    }

    /// Sets the memory of the device in bytes; 0 restores it.
    fn memory(&self, bytes: u64) {
        (self.memory)(bytes);
    }

    /// Waits (0), records (1), allocations and mappings (2) so far; bytes that are in use (3), addresses, chunks and mappings
    /// that are there (4), launches and copies since the seed was set (5), and launches so far (6).
    fn count(&self, what: u32) -> u64 {
        (self.count)(what)
    }

    /// Counters of the library's products: all (0), and those with rounded factors (1).
    fn products(&self, what: u32) -> u64 {
        (self.products)(what)
    }

    /// Counters of the library's convolutions: all (0), those with rounded factors (1), refused calls (2), and live
    /// handles and descriptors (3).
    fn convolutions(&self, what: u32) -> u64 {
        (self.convolutions)(what)
    }

    /// No convolution does with fewer bytes of workspace.
    fn least_workspace(&self, bytes: u64) {
        (self.least)(bytes);
    }
}

/// Values by name.
type Values = support::steps::Values<Vec<u8>>;

/// Outputs of every step, and the given contents at the end.
#[derive(Clone, PartialEq)]
struct Left(Vec<Values>);

impl Left {
    /// The first value that is another one than it should be: by its bits, or by more than a thousandth of its largest
    /// element or of `least`.
    fn difference(&self, other: &Left, types: &BTreeMap<String, Type>, least: Option<f32>) -> Option<String> {
        for (step, (ours, theirs)) in self.0.iter().zip(&other.0).enumerate() {
            for (name, bytes) in ours {
                let theirs = &theirs[name];
                let is_float =
                    matches!(&types[name], Type::Tensor(t) if t.element == lmsc_ir::ElementType::Float);
                let same = match least.filter(|_| is_float) {
                    None => bytes == theirs,
                    Some(least) => close(bytes, theirs, least),
                };
                if !same {
                    return Some(format!("{name} after step {step}"));
                }
            }
        }
        None
    }
}

fn close(ours: &[u8], theirs: &[u8], least: f32) -> bool {
    let floats =
        |bytes: &[u8]| -> Vec<f32> { bytes.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect() };
    let (ours, theirs) = (floats(ours), floats(theirs));
    let scale = theirs.iter().filter(|x| x.is_finite()).fold(least, |most, x| most.max(x.abs()));
    ours.iter().zip(&theirs).all(|(a, b)| a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-3 * scale)
}

fn names(program: &Program) -> (Vec<String>, Vec<String>, BTreeMap<String, Type>) {
    let outputs: Vec<String> = program.outputs.iter().map(|o| o.tensor.name.to_string()).collect();
    let given: Vec<String> = program.given.iter().map(|g| g.tensor.name.to_string()).collect();
    let tensors = program.outputs.iter().map(|o| &o.tensor).chain(program.given.iter().map(|g| &g.tensor));
    (outputs, given, tensors.map(|t| (t.name.to_string(), t.ty.clone())).collect())
}

/// Runs the steps of a session of either device.
fn execute(program: &Program, session: &mut dyn DeviceSession) -> (Left, BTreeMap<String, Type>) {
    let (outputs, given, types) = names(program);
    session.set_seed(5);
    start(program, |name, bytes| session.set(name, bytes).unwrap());
    let mut feeder = Feeder::new(program, &<[u8]>::to_vec);
    let measured = session.run(STEPS, &mut feeder).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((measured.steps.len(), session.steps()), (STEPS, STEPS));
    let mut left = feeder.steps;
    for names in [&outputs, &given] {
        left.push(names.iter().map(|name| (name.clone(), session.get(name).unwrap().unwrap())).collect());
    }
    (Left(left), types)
}

fn on_host(graph: &Graph) -> (Left, BTreeMap<String, Type>) {
    let needed = lmsc_runtime::workspaces(graph);
    let workspace = |node| needed.get(&node).copied().unwrap_or_default();
    let program = lower(graph, &Lowering { arena: None, workspace: &workspace }).unwrap();
    let session = HostSession::new(Checked::new(program.clone()).unwrap(), HostLink::default());
    execute(&program, &mut session.unwrap())
}

/// The workspaces of the graph's nodes on the device.
fn workspaces(graph: &Graph) -> BTreeMap<lmsc_ir::NodeId, Bytes> {
    Engines::of_ordinal(0, Precision::F32).unwrap().workspaces(graph)
}

fn lowered(graph: &Graph, budget: Option<Bytes>) -> Program {
    let needed = workspaces(graph);
    let workspace = |node| needed.get(&node).copied().unwrap_or_default();
    let arena = budget.filter(|_| graph.has_addresses());
    lower(graph, &Lowering { arena, workspace: &workspace }).unwrap_or_else(|e| panic!("{e}"))
}

fn compiler() -> KernelCompiler {
    KernelCompiler::new().unwrap_or_else(|e| panic!("{e}")).with_cache(None)
}

fn session(program: &Program, options: CudaOptions) -> CudaSession {
    let checked = Checked::new(program.clone()).unwrap_or_else(|e| panic!("{e}"));
    CudaSession::new(checked, options, &compiler()).unwrap_or_else(|e| panic!("{e}"))
}

fn on_device(program: &Program, options: CudaOptions) -> Left {
    execute(program, &mut session(program, options)).0
}

/// The graph rewritten for the budget, or for a little more where addresses need that; with the budget.
fn rewritten(graph: &Graph, name: &str, mut budget: u64) -> Option<(Graph, Bytes)> {
    for _ in 0..8 {
        let cx = PassCx {
            question: PlanRequest {
                budget: Some(Bytes(budget)),
                planner: lmsc_papers::ALL.named(name),
                effort: Some(1),
                space: Space::Arena,
                ..PlanRequest::default()
            },
            machine: MachineModel {
                workspaces: Some(Workspaces::new(workspaces)),
                target: Some(lmsc_plan::Target::built_in("host").unwrap().clone()),
                ..MachineModel::default()
            },
            ..PassCx::default()
        };
        let passes = lmsc_papers::pipeline(name);
        let mut rewritten = graph.clone();
        match passes.run(&mut rewritten, &cx) {
            Ok(_) => return Some((rewritten, Bytes(budget))),
            Err(PassError::Refused(_)) => budget += budget / 12,
            Err(error) => panic!("{name} at {budget}: {error}"),
        }
    }
    None
}

/// The smallest budget of any plan, and the peak of the unchanged step.
fn range(graph: &Graph) -> (u64, u64) {
    let cx = PassCx {
        machine: MachineModel { workspaces: Some(Workspaces::new(workspaces)), ..MachineModel::default() },
        ..PassCx::default()
    };
    let needed = lmsc_passes::bridge(graph, &cx).unwrap().problem.needed_bytes();
    (needed.into_iter().max().unwrap_or(0), cx.memory(graph).peak().0)
}

/// Small models and their names.
fn small() -> Vec<(String, Graph)> {
    let of = |path: PathBuf| {
        let name = path.strip_prefix(support::models::MODELS).unwrap().display().to_string();
        let graph = load(&path);
        (range(&graph).1 <= LARGEST).then_some((name, graph))
    };
    models().into_iter().filter_map(of).collect()
}

/// The part of the small models that this process is to run, of how many; none where it is to run the tests.
const PART: &str = "LMSC_PART";

/// Unchanged, in less memory and replayed as a graph: the host's numbers but for rounding, and the same bits
/// for every plan.
///
/// A process has one driver: so each processor runs a process.
#[test]
#[ignore = "slow: `cargo xtask ci test` runs it"]
fn steps_of_small_models_compute_what_the_host_computes() {
    let Some((driver, _used)) = driver() else { return };
    if let Ok(part) = std::env::var(PART) {
        let (part, parts) = part.split_once('/').unwrap();
        let report = std::env::var_os("LMSC_REPORT").is_some();
        let tell = |name: &str, took: Duration| {
            if report {
                println!("{name}: {:.1} s", took.as_secs_f64());
            }
        };
        println!("\n{PART} {:?}", small_models(driver, part.parse().unwrap(), parts.parse().unwrap(), tell));
        return;
    }
    let parts = std::thread::available_parallelism().map_or(1, usize::from);
    let this = [
        "steps_of_small_models_compute_what_the_host_computes",
        "--exact",
        "--nocapture",
        "--include-ignored",
    ];
    let children: Vec<_> = (0..parts)
        .map(|part| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(this).env(PART, format!("{part}/{parts}"));
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let mut counted = Counts::default();
    for child in children {
        let output = child.wait_with_output().unwrap();
        let [text, errors] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        assert!(output.status.success(), "{text}{errors}");
        let counts = text.lines().find_map(|line| line.strip_prefix(PART)).expect("it says what it counted");
        let counts =
            counts.trim().trim_matches(['[', ']']).split(", ").map(|count| count.parse::<u64>().unwrap());
        counted.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        if std::env::var_os("LMSC_REPORT").is_some() {
            println!("{text}");
        }
    }
    let [runs, copies, by_library, by_dnn] = counted;
    assert!(runs > 20 && copies > 100, "{runs} runs, {copies} copies");
    assert!(by_library > 20, "in {by_library} models the library multiplies");
    assert!(by_dnn > 4, "in {by_dnn} models the library convolves");
}

/// Plans that were run and their copies, and models of which a library multiplies, or convolves.
type Counts = [u64; 4];

/// Every `parts`-th small model, from number `part` on; `tell` gets the time of each.
fn small_models(driver: &Driver, part: usize, parts: usize, tell: impl Fn(&str, Duration)) -> Counts {
    // Otherwise each model takes its turn.
    let all = std::env::var_os("LMSC_REQUIRE_CXX").is_some();
    let (mut runs, mut copies, mut by_library, mut by_dnn) = (0, 0, 0, 0);
    for (number, (name, graph)) in small().into_iter().enumerate().skip(part).step_by(parts) {
        let began = std::time::Instant::now();
        let (expected, types) = on_host(&graph);
        let program = lowered(&graph, None);
        // Each model meets other delays.
        driver.seed(number as u64);
        // Adam divides gradients by their own size: where they are rounding errors, so are its steps, of about a thousandth.
        let least = if name.contains("adam") { 10.0 } else { 1e-3 };
        let before = [driver.products(0), driver.convolutions(0)];
        let own = on_device(&program, CudaOptions { own_kernels: true, ..CudaOptions::default() });
        assert_eq!(own.difference(&expected, &types, Some(least)), None, "{name}, by own kernels");
        assert_eq!([driver.products(0), driver.convolutions(0)], before, "{name}");
        let found = on_device(&program, CudaOptions::default());
        assert_eq!(found.difference(&expected, &types, Some(least)), None, "{name}");
        by_library += u64::from(driver.products(0) > before[0]);
        by_dnn += u64::from(driver.convolutions(0) > before[1]);
        let (floor, peak) = range(&graph);
        for (step, share) in [0, 50].into_iter().enumerate() {
            let turn = number + step;
            if step != number % 2 && !all {
                continue;
            }
            let budget = floor + (peak - floor) * share / 100;
            let planner = ["lru", "swap-only"][turn % 2];
            let Some((graph, budget)) = rewritten(&graph, planner, budget) else { continue };
            let swapped = lowered(&graph, Some(budget));
            for (what, program) in [("as it is", &program), ("swapped", &swapped)] {
                // Delay kernels in one turn and copies in another.
                driver.slow(turn as u32 % 3, 200);
                for graph in [false, true] {
                    let is_known = program.stream(Stream::Out).is_empty() && !graph;
                    if is_known || graph != (number / 2 % 2 == 0) && !all {
                        continue;
                    }
                    // One plan is for both.
                    let own_kernels = number % 3 == 0;
                    let single_kernels = turn % 2 == 0;
                    let options =
                        CudaOptions { graph, own_kernels, single_kernels, ..CudaOptions::default() };
                    let left = on_device(program, options);
                    let what = format!("{name}, {what}, {planner}, {budget}, replayed: {graph}");
                    let expected = if own_kernels { &own } else { &found };
                    assert_eq!(left.difference(expected, &types, None), None, "{what}");
                }
                (0..4).for_each(|kind| driver.slow(kind, 0));
            }
            copies += swapped.stream(Stream::Out).len() + swapped.stream(Stream::In).len();
            runs += 1;
        }
        tell(&name, began.elapsed());
    }
    // The library got no wrong, too small or nondeterministic call, and holds nothing at the end.
    assert_eq!([driver.convolutions(2), driver.convolutions(3)], [0, 0]);
    [runs, copies as u64, by_library, by_dnn]
}

/// A model of a family, by the name of its folder, and perhaps its file's.
fn small_model(family: &str) -> Graph {
    let found = small().into_iter().find(|(name, _)| name.starts_with(family));
    found.unwrap_or_else(|| panic!("there is no small model {family}")).1
}

/// Consecutive elementwise kernels are one launch with the same bits, for every plan; with `single_kernels` each is a launch.
#[test]
fn fused_steps_compute_the_same_bits_in_fewer_launches() {
    let Some((driver, _used)) = driver() else { return };
    // Otherwise these, of which each has something else: Adam as many operators, broadcast operands, truth values, gradients
    // that are summed up one by one, batch normalizations.
    let report = std::env::var_os("LMSC_REPORT").is_some();
    let few = [
        "tiny_gpt2/std/train_adam",
        "tiny_bert/training",
        "tiny_charlstm/std",
        "tiny_mlp_mse",
        "tiny_resnet18/training",
    ];
    let mut sums = [0; 2];
    for (name, graph) in small() {
        if !report && !few.iter().any(|few| name.starts_with(few)) {
            continue;
        }
        let (floor, peak) = range(&graph);
        let swapped = rewritten(&graph, "lru", floor + (peak - floor) / 4);
        let swapped = swapped.map(|(graph, budget)| lowered(&graph, Some(budget)));
        for (what, program) in [("as it is", Some(lowered(&graph, None))), ("swapped", swapped)] {
            let Some(program) = program else { continue };
            let began = std::time::Instant::now();
            let (_, _, types) = names(&program);
            let [fused, single] = [false, true].map(|single_kernels| {
                let mut session = session(&program, CudaOptions { single_kernels, ..CudaOptions::default() });
                let launches = session.launches();
                let before = driver.count(6);
                let (left, _) = execute(&program, &mut session);
                let ran = (driver.count(6) - before) as usize;
                assert_eq!(ran, STEPS as usize * launches[usize::from(single_kernels)], "{name}, {what}");
                (left, launches)
            });
            assert_eq!(fused.0.difference(&single.0, &types, None), None, "{name}, {what}");
            let launches = fused.1;
            assert!(launches[0] <= launches[1], "{name}, {what}");
            if name == "tiny_resnet18/training_model.onnx" {
                // The residual sum and the activation go with the end of the normalization before them.
                let text = lmsc_cuda::fused(&Checked::new(program.clone()).unwrap());
                let text = text.unwrap().expect("kernels are fused");
                let with = |lane: &str| {
                    ["batch_apply", "add", "relu"]
                        .iter()
                        .all(|op| lane.contains(&format!(" = each_{op}_f32(")))
                };
                assert!(text.split("inline void lane_").any(with), "{name}, {what}:\n{text}");
            }
            if name == "tiny_gpt2/std/train_adam.onnx" {
                assert!(launches[0] * 2 < launches[1], "{name}, {what}: {launches:?}");
            }
            sums = [0, 1].map(|i| sums[i] + launches[i]);
            if report {
                println!("{name}, {what}: {launches:?} {:.1} s", began.elapsed().as_secs_f64());
            }
        }
    }
    assert!(sums[0] * 3 < sums[1] * 2, "{sums:?} launches");
}

/// A graph of elementwise operators in some order, on operands of `rows` × `columns` elements and others that are broadcast.
fn random_chain(rows: u64, columns: u64, operators: usize, seed: u64) -> Graph {
    let mut state = seed;
    let mut any = |below: usize| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 33) as usize % below
    };
    let full = format!("[{rows},{columns}]");
    let mut wholes: Vec<String> = vec!["x".into(), "y".into()];
    let mut rows_of: Vec<String> = vec!["row".into()];
    let mut lines = String::new();
    let mut outputs = Vec::new();
    for number in 0..operators {
        let recent = |any: &mut dyn FnMut(usize) -> usize, list: &[String]| {
            list[list.len() - 1 - any(list.len().min(4))].clone()
        };
        let a = recent(&mut any, &wholes);
        let b = match any(6) {
            0 => "column".to_owned(),
            1 => "one".to_owned(),
            2 => recent(&mut any, &rows_of),
            _ => recent(&mut any, &wholes),
        };
        let c = recent(&mut any, &wholes);
        let r = format!("r{number}");
        let mut line = |result: &str, op: &str| {
            let name = result.rsplit(' ').next().unwrap_or_default();
            lines.push_str(&format!("   [{name}_] {result} = {op}\n"));
        };
        let whole = format!("float{full} {r}");
        match any(14) {
            0 => line(&whole, &format!("Tanh({a})")),
            1 => line(&whole, &format!("LeakyRelu<alpha = 0.3>({a})")),
            2 => line(&whole, &format!("Sigmoid({a})")),
            3 => line(&whole, &format!("Sub({b}, {a})")),
            4 | 5 => line(&whole, &format!("Mul({a}, {b})")),
            6 | 7 => line(&whole, &format!("Add({a}, {b})")),
            8 => line(&whole, &format!("Sum({a}, {b}, {c})")),
            9 => line(&whole, &format!("com.microsoft.TanhGrad({a}, {c})")),
            10 => {
                line(&format!("bool{full} {r}_less"), &format!("Less({a}, {b})"));
                line(&whole, &format!("Where({r}_less, {c}, {b})"));
            }
            11 => {
                line(&format!("int64{full} {r}_whole"), &format!("Cast<to = 7>({a})"));
                line(&whole, &format!("Cast<to = 1>({r}_whole)"));
            }
            12 => {
                line(&format!("float[{columns}] {r}_row"), &format!("Sin({})", recent(&mut any, &rows_of)));
                rows_of.push(format!("{r}_row"));
                line(&whole, &format!("Neg({a})"));
            }
            _ => {
                line(&whole, &format!("Max({a}, {b})"));
                outputs.push(format!("float{full} {r}"));
            }
        }
        wholes.push(r);
    }
    let last = format!("float{full} r{}", operators - 1);
    if !outputs.contains(&last) {
        outputs.push(last);
    }
    let inputs =
        format!("float{full} x, float{full} y, float[{columns}] row, float[{rows},1] column, float[] one");
    let text = format!("random ({inputs}) => ({})\n{{\n{lines}}}\n", outputs.join(", "));
    Graph::parse(&text).unwrap_or_else(|e| panic!("{e} in {text}"))
}

/// Fused kernels give the bits of single ones, for no elements, few, and more than threads.
#[test]
fn random_chains_fuse_without_a_difference() {
    let Some(_driver) = driver() else { return };
    let shapes = [(0, 3), (1, 1), (1, 255), (16, 16), (257, 1), (3, 333), (64, 65)];
    let cases = shapes.into_iter().cycle().take(14).map(|(rows, columns)| (rows, columns, 30));
    // Threads go on to further elements.
    let cases = cases.chain([(1025, 1025, 4)]);
    let mut launches = [0; 2];
    for (seed, (rows, columns, operators)) in (1..).zip(cases) {
        let graph = random_chain(rows, columns, operators, seed);
        let program = lowered(&graph, None);
        let [fused, single] = [false, true].map(|single_kernels| {
            let mut session = session(&program, CudaOptions { single_kernels, ..CudaOptions::default() });
            launches[usize::from(single_kernels)] += session.launches()[usize::from(single_kernels)];
            execute(&program, &mut session)
        });
        assert_eq!(fused.0.difference(&single.0, &fused.1, None), None, "{rows} x {columns}, {seed}");
    }
    assert!(launches[0] * 2 < launches[1], "{launches:?}");
}

/// An optimizer that has an operator for each of many parameters is a few launches, of any lengths side by side.
#[test]
fn parameters_are_updated_together() {
    let Some(_driver) = driver() else { return };
    let (mut inputs, mut outputs, mut lines) = (vec![], vec![], String::new());
    for (i, n) in [1, 300, 256, 7, 1000].into_iter().cycle().take(40).enumerate() {
        // Synthetic variances are those of these names.
        let v = format!("v{i}_running_var");
        inputs.push(format!("float[{n}] w{i}, float[{n}] g{i}, float[{n}] m{i}, float[{n}] {v}"));
        outputs.push(format!("float[{n}] x{i}"));
        lines += &format!(
            "   [adam{i}] float[{n}] x{i}, float[{n}] m{i}_, float[{n}] v{i}_ = ai.lmsc.AdamWOptimizer(lr, t, w{i}, g{i}, \
             m{i}, {v}) updates (w{i} as x{i}, m{i} as m{i}_, {v} as v{i}_)\n"
        );
    }
    let (inputs, outputs) = (inputs.join(", "), outputs.join(", "));
    let lines = format!("   [step] int64[1] t = Shape(w1)\n{lines}");
    let text = format!("adam (float[1] lr, {inputs}) => ({outputs})\n{{\n{lines}}}\n");
    let program = lowered(&Graph::parse(&text).unwrap_or_else(|e| panic!("{e}")), None);
    let [fused, single] = [false, true].map(|single_kernels| {
        let mut session = session(&program, CudaOptions { single_kernels, ..CudaOptions::default() });
        assert_eq!(session.launches(), if single_kernels { [41; 2] } else { [3, 41] });
        execute(&program, &mut session)
    });
    assert_eq!(fused.0.difference(&single.0, &fused.1, None), None);
    let moved: &[[u8; 4]] = fused.0.0[0]["x1"].as_chunks().0;
    assert!(moved.iter().all(|&bytes| f32::from_le_bytes(bytes).is_finite()), "and these are numbers");
}

/// Factors are rounded only if that is requested, and then it shows. A replayed step has as many products as
/// one given command by command.
#[test]
fn products_are_rounded_only_if_that_is_asked_for() {
    let Some((driver, _used)) = driver() else { return };
    let graph = small_model("tiny_mlp");
    let program = lowered(&graph, None);
    let (expected, types) = on_host(&graph);
    let counted = |options| {
        let before = [0, 1].map(|what| driver.products(what));
        let left = on_device(&program, options);
        (left, driver.products(0) - before[0], driver.products(1) - before[1])
    };
    let (exact, products, rounded) = counted(CudaOptions::default());
    assert!(products > 0 && rounded == 0, "{rounded} of {products} products are rounded");
    let (replayed, again, _) = counted(CudaOptions { graph: true, ..CudaOptions::default() });
    assert_eq!((replayed.difference(&exact, &types, None), again), (None, products));
    let mut before = exact;
    for (precision, least) in [(Precision::F16, 10.0), (Precision::Tf32, 10.0), (Precision::Bf16, 100.0)] {
        let (left, all, rounded) = counted(CudaOptions { precision, ..CudaOptions::default() });
        assert_eq!((all, rounded), (products, products));
        assert!(left.difference(&before, &types, None).is_some(), "it shows, {precision:?}");
        let hundredths = least / 10.0;
        assert_eq!(left.difference(&expected, &types, Some(least)), None, "not more than {hundredths} %");
        before = left;
    }
}

/// The same of convolutions.
#[test]
#[ignore = "slow: `cargo xtask ci test` runs it"]
fn convolutions_are_rounded_only_if_that_is_asked_for() {
    let Some((driver, _used)) = driver() else { return };
    // A normalization would make pure rounding errors as large as anything else.
    let graph = small_model("tiny_vgg/training_model");
    let program = lowered(&graph, None);
    let (expected, types) = on_host(&graph);
    let counted = |options| {
        let before = [0, 1].map(|what| driver.convolutions(what));
        let left = on_device(&program, options);
        (left, [0, 1].map(|what| driver.convolutions(what)).iter().zip(before).map(|(a, b)| a - b).collect())
    };
    let (exact, counts): (_, Vec<u64>) = counted(CudaOptions::default());
    let &[convolutions, rounded] = &counts[..] else { panic!() };
    assert!(convolutions > 0 && rounded == 0, "{rounded} of {convolutions} convolutions are rounded");
    // Each has run once before the first step.
    assert!(convolutions % (STEPS + 1) == 0, "{convolutions}");
    let (replayed, again) = counted(CudaOptions { graph: true, ..CudaOptions::default() });
    assert_eq!((replayed.difference(&exact, &types, None), again), (None, counts.clone()));
    for precision in [Precision::Tf32, Precision::F16] {
        let (left, counts) = counted(CudaOptions { precision, ..CudaOptions::default() });
        assert_eq!(counts[..2], [convolutions, convolutions]);
        assert!(left.difference(&exact, &types, None).is_some(), "it shows, {precision:?}");
        assert_eq!(left.difference(&expected, &types, Some(10.0)), None, "not more than a hundredth");
    }
}

/// Models whose floats are all short: libraries multiply and convolve short floats, elementwise operators are
/// fused, and the results are the host's but for rounding.
#[test]
fn short_floats_train_as_on_the_host() {
    let Some((driver, _used)) = driver() else { return };
    for (family, short, least) in [
        ("tiny_mlp/training_model", ElementType::Float16, 2.0f32.powi(-9)),
        ("tiny_mlp/training_model", ElementType::Bfloat16, 2.0f32.powi(-6)),
        ("tiny_vgg/training_model", ElementType::Bfloat16, 2.0f32.powi(-6)),
    ] {
        let all = support::models::of_short_floats(&small_model(family).to_text(), &short.to_string());
        let graph = Graph::parse(&all).unwrap_or_else(|e| panic!("{e}"));
        let program = lowered(&graph, None);
        let (expected, types) = on_host(&graph);
        let count =
            || [driver.products(0), driver.products(2), driver.convolutions(0), driver.convolutions(5)];
        let before = count();
        let opened = session(&program, CudaOptions::default());
        assert!(opened.launches()[0] < opened.launches()[1], "{:?}", opened.launches());
        drop(opened);
        let left = on_device(&program, CudaOptions::default());
        let [products, of_short, convolutions, of_short_ones] = {
            let after = count();
            [0, 1, 2, 3].map(|i| after[i] - before[i])
        };
        assert!(products > 0 && products == of_short, "{family}: {of_short} of {products} are of {short}");
        assert_eq!(convolutions, of_short_ones, "{family}");
        assert_eq!(convolutions > 0, family.contains("vgg"));
        // A bias is added to a result that a library has already rounded: gates of equal pixels then open or do
        // not, and the gradients here depend on little else.
        let own = on_device(&program, CudaOptions { own_kernels: true, ..CudaOptions::default() });
        let outputs: Vec<&Values> = left.0.iter().take(left.0.len() - 1).collect();
        for (run, steps) in [("kernels", own.0.iter().collect()), ("libraries", outputs)] {
            for (step, (ours, theirs)) in steps.into_iter().zip(&expected.0).enumerate() {
                for (name, bytes) in ours {
                    let what = format!("{name} of {family} after step {step}, as {short}, by {run}");
                    if !matches!(&types[name], Type::Tensor(tensor) if tensor.element == short) {
                        assert_eq!(bytes, &theirs[name], "{what}");
                        continue;
                    }
                    let [ours, theirs] = [bytes, &theirs[name]].map(|bytes| widened(short, bytes));
                    let scale = theirs.iter().fold(0.0f32, |most, x| most.max(x.abs()));
                    assert!(scale.is_finite(), "{what}");
                    for (a, b) in ours.iter().zip(&theirs) {
                        assert!((a - b).abs() <= least * scale, "{what}: {a}, not {b}");
                    }
                }
            }
        }
        let fused = on_device(&program, CudaOptions { single_kernels: true, ..CudaOptions::default() });
        assert_eq!(fused.difference(&left, &types, None), None, "{family}");
    }
}

/// Each small model that onnxruntime-training wrote runs with all its floats short: no kernel is missing, and launches that are one
/// give the bits of kernels one by one.
#[test]
#[ignore = "slow: `cargo xtask ci test` runs it"]
fn small_models_of_short_floats_run() {
    let Some((_driver, _used)) = driver() else { return };
    let (both, mut tried) = (lmsc_testing::cases(1, 1, 2), 0);
    let models = small().into_iter().filter(|(name, _)| name.ends_with("/training_model.onnx"));
    for (number, (name, graph)) in models.enumerate() {
        // What masks attention is in the range of all of them.
        let text = graph.to_text().replace("{-3.4028235e38}", "{-60000.0}");
        // Otherwise by turns.
        for short in ["float16", "bfloat16"].into_iter().cycle().skip(number).take(both) {
            let graph = Graph::parse(&support::models::of_short_floats(&text, short));
            let graph = graph.unwrap_or_else(|e| panic!("{name} of {short}: {e}"));
            let (program, (_, types)) = (lowered(&graph, None), on_host(&graph));
            let single = on_device(&program, CudaOptions { single_kernels: true, ..CudaOptions::default() });
            let left = on_device(&program, CudaOptions::default());
            assert_eq!(left.difference(&single, &types, None), None, "{name} of {short}");
            tried += 1;
        }
    }
    assert!(tried >= 11 * both, "{tried} steps");
}

/// The scale of a loss is part of the state, and updates choose between the old and the new value.
#[test]
fn a_step_with_a_scaled_loss_runs() {
    let Some((_driver, _used)) = driver() else { return };
    let mut graph = small_model("tiny_gpt2/std/train_adam");
    let pass = Pipeline::parse("mixed-precision{type=f16}").unwrap();
    pass.run(&mut graph, &PassCx::default()).unwrap_or_else(|e| panic!("{e}"));
    let (program, (_, types)) = (lowered(&graph, None), on_host(&graph));
    let single = on_device(&program, CudaOptions { single_kernels: true, ..CudaOptions::default() });
    let left = on_device(&program, CudaOptions::default());
    assert_eq!(left.difference(&single, &types, None), None);
}

fn widened(short: ElementType, bytes: &[u8]) -> Vec<f32> {
    let float = |&bytes: &[u8; 2]| match short {
        ElementType::Float16 => half::f16::from_le_bytes(bytes).to_f32(),
        _ => half::bf16::from_le_bytes(bytes).to_f32(),
    };
    bytes.as_chunks().0.iter().map(float).collect()
}

/// A library uses the workspace of the plan: with the size in the profile it gives the results that it gave
/// with more; where the size is too small for all of its engines, own kernels convolve.
#[test]
fn convolutions_do_with_the_workspace_that_there_is() {
    let Some((driver, _used)) = driver() else { return };
    let graph = small_model("tiny_resnet18/training_model");
    let program = lowered(&graph, None);
    let (expected, types) = on_host(&graph);
    let opened = session(&program, CudaOptions::default());
    assert_eq!(opened.convolutions().as_deref(), Some("cuDNN 9.19.0"));
    assert_eq!(opened.products(), "cuBLAS 13.0.0");
    let used: BTreeMap<String, u64> = program
        .launches()
        .map(|(index, launch)| (launch.node.to_string(), opened.workspace(index)))
        .collect();
    drop(opened);
    let counted = |program: &Program| {
        let before = driver.convolutions(0);
        let left = on_device(program, CudaOptions::default());
        (left, driver.convolutions(0) - before)
    };
    let (found, convolutions) = counted(&program);
    let given =
        |program: &Program| program.launches().map(|(_, l)| l.workspace.end - l.workspace.start).sum::<u64>();
    let with = |workspace: &dyn Fn(&str) -> u64| {
        let workspace = |node| Bytes(workspace(&graph.node(node).name));
        lower(&graph, &Lowering { arena: None, workspace: &workspace }).unwrap()
    };
    let enough = with(&|node| used.get(node).copied().unwrap_or(0));
    assert!(given(&enough) <= given(&program), "{} of {} bytes", given(&enough), given(&program));
    let (left, again) = counted(&enough);
    assert_eq!((left.difference(&found, &types, None), again), (None, convolutions));

    // Exactly the workspace of own kernels.
    let storages = lmsc_ir::Storages::of(&graph);
    let needed = |node: &str| {
        let spec = lmsc_kernels::Spec::of(&graph, &storages, graph.node_named(node).unwrap(), |_| None);
        lmsc_cuda::prepare(&spec).map_or(0, |recipe| recipe.needed().0)
    };
    let least = with(&needed);
    // Some engines need none.
    let opened = session(&least, CudaOptions::default());
    assert_eq!(opened.convolutions().as_deref(), Some("cuDNN 9.19.0"));
    drop(opened);
    let before = driver.convolutions(0);
    let left = on_device(&least, CudaOptions::default());
    assert_eq!(left.difference(&expected, &types, Some(1e-3)), None);
    assert!(driver.convolutions(0) > before);
    driver.least_workspace(1 << 40);
    let opened = session(&least, CudaOptions::default());
    let told = opened.convolutions().unwrap();
    let all = told.split(' ').nth(2).unwrap().to_owned();
    assert_eq!(
        told,
        format!(
            "cuDNN 9.19.0, {all} of {all} by own kernels: one needs 1099511627776 bytes of workspace, and has 0"
        )
    );
    assert!(opened.products().contains(" by own kernels: one has 0 bytes of workspace, not "));
    drop(opened);
    let before = driver.convolutions(0);
    let left = on_device(&least, CudaOptions::default());
    assert_eq!(left.difference(&expected, &types, Some(1e-3)), None);
    assert_eq!(driver.convolutions(0), before);
    assert_eq!([driver.convolutions(2), driver.convolutions(3)], [0, 0]);
}

/// A step whose input leaves and returns, and whose last result lies where it returned.
const LEAVES: &str = "g (float[20000] x, float[20000] w, float[] r) => (float[20000] y, float[20000] w2) {
  [out] float[20000]@host away = ai.lmsc.SwapOut(x)
  [a] float[20000] h = Exp(x)
  [b] float[20000] k = Mul(h, w)
  [in] float[20000] back = ai.lmsc.SwapIn(away) after [a]
  [c] float[20000] y = Add(k, back)
  [d] float[20000] w2 = ai.lmsc.SGDOptimizer(r, w, k) updates (w as w2)
}";

/// Every wait of small swapped steps is one event to wait for; without it the step computes something else if
/// the awaited command is slow. The same holds in chunks, which have more waits.
#[test]
fn a_missing_wait_shows() {
    let Some((driver, _used)) = driver() else { return };
    let waits = |program: &Program| -> usize {
        program.streams.iter().flatten().map(|command| command.waits.len()).sum()
    };
    let programs = small().into_iter().filter_map(|(_, graph)| {
        let (graph, budget) = rewritten(&graph, "lru", range(&graph).0)?;
        Some(lowered(&graph, Some(budget))).filter(|program| (6..40).contains(&waits(program)))
    });
    let smallest = programs.min_by_key(|program| program.stream(Stream::Compute).len());
    let leaves = lowered(&Graph::parse(LEAVES).unwrap(), None);
    for program in [smallest.expect("one is swapped"), leaves] {
        for chunk in [None, Some(1 << 16)] {
            let open = || match chunk {
                Some(chunk) => in_chunks(&program, CudaOptions::default(), chunk, None).unwrap(),
                None => session(&program, CudaOptions::default()),
            };
            all_waits_show(driver, &program, &open);
        }
    }
}

/// Looks at nothing, so that nothing is waited for here.
struct Blind;

impl StepObserver for Blind {
    fn turn(&mut self, _: &mut Turn<'_>) -> Result<(), String> {
        Ok(())
    }
}

fn all_waits_show(driver: &Driver, program: &Program, open: &dyn Fn() -> CudaSession) {
    let (outputs, given, types) = names(program);
    let run = |mut session: CudaSession, blind: bool| {
        if !blind {
            return execute(program, &mut session).0;
        }
        start(program, |name, bytes| session.set(name, bytes).unwrap());
        session.run(STEPS, &mut Blind).unwrap_or_else(|e| panic!("{e}"));
        let left =
            outputs.iter().chain(&given).map(|name| (name.clone(), session.get(name).unwrap().unwrap()));
        Left(vec![left.collect()])
    };
    let expected = [false, true].map(|blind| run(open(), blind));
    let opened = open();
    let all: Vec<_> = Stream::ALL
        .into_iter()
        .flat_map(|stream| {
            (0..).zip(opened.program().stream(stream)).map(move |(index, c)| (stream, index, c))
        })
        .flat_map(|(stream, index, c)| (0..).zip(c.waits.clone()).map(move |wait| (stream, index, wait)))
        .collect();
    drop(opened);
    let mut unnoticed = all.clone();
    for (kind, micros) in (0..4).flat_map(|kind| [(kind, 2_000), (kind, 8_000)]) {
        for blind in [false, true] {
            let is_slow = |of: &Wait| match of.stream {
                Stream::Compute => kind == 0 || kind == 3 && of.command == 0,
                stream => kind == stream as u32,
            };
            if !unnoticed.iter().any(|(.., (_, of))| is_slow(of)) {
                continue;
            }
            driver.slow(kind, micros);
            let before = driver.count(0);
            let whole = run(open(), blind);
            let obeyed = driver.count(0) - before;
            assert_eq!(whole.difference(&expected[usize::from(blind)], &types, None), None, "with all waits");
            unnoticed.retain(|&(stream, index, (wait, of))| {
                if !is_slow(&of) {
                    return true;
                }
                let mut wrong = open();
                wrong.forget(stream, index, wait);
                let before = driver.count(0);
                let left = run(wrong, blind);
                assert!(driver.count(0) - before < obeyed, "one wait less a step");
                left.difference(&expected[usize::from(blind)], &types, None).is_none()
            });
            driver.slow(kind, 0);
        }
    }
    assert!(
        unnoticed.is_empty(),
        "{} of {} missing waits do not show: {unnoticed:?}\n{}",
        unnoticed.len(),
        all.len(),
        &**open().program(),
    );
}

fn in_chunks(
    program: &Program,
    options: CudaOptions,
    chunk: u64,
    budget: Option<u64>,
) -> Result<CudaSession, RunError> {
    let checked = Checked::new(program.clone()).unwrap_or_else(|e| panic!("{e}"));
    CudaSession::in_chunks(&checked, options, &compiler(), chunk, budget)
}

/// Chunks that addresses keep from step to step hold the bits that an arena holds, in every order of the
/// streams; nothing is mapped within steps, and nothing is left.
#[test]
#[ignore = "slow: `cargo xtask ci test` runs it"]
fn chunks_hold_the_same_bits_as_an_arena() {
    let Some((driver, _used)) = driver() else { return };
    let (mut runs, mut copies, mut shared) = (0, 0, 0);
    for (number, (name, graph)) in small().into_iter().enumerate() {
        if number % 6 != 0 {
            continue;
        }
        let (floor, peak) = range(&graph);
        let planner = ["lru", "swap-only"][number / 6 % 2];
        let Some((graph, budget)) = rewritten(&graph, planner, floor + (peak - floor) / 8) else { continue };
        let program = lowered(&graph, Some(budget));
        let options = CudaOptions { own_kernels: number % 4 == 0, ..CudaOptions::default() };
        let expected = on_device(&program, options);
        let (_, _, types) = names(&program);
        let before = [3, 4].map(|what| driver.count(what));
        for (seed, graph) in [(2, false), (3, true)] {
            driver.seed(seed + number as u64);
            // Rounded up to the device's granularity of mapping.
            let mut session = in_chunks(&program, CudaOptions { graph, ..options }, 1, None).unwrap();
            let it = session.fragmentation().unwrap();
            assert_eq!(it.chunk, 1 << 16);
            assert!(it.chunks <= it.mapped && it.lost < it.bound(), "{it:?}");
            shared += usize::from(session.program().arena.0 > it.mapped * it.chunk);
            let allocated = driver.count(2);
            let (left, _) = execute(&program, &mut session);
            assert_eq!(driver.count(2), allocated, "{name}");
            let what = format!("{name}, {planner}, {budget}, replayed: {graph}");
            assert_eq!(left.difference(&expected, &types, None), None, "{what}");
            drop(session);
            assert_eq!([3, 4].map(|what| driver.count(what)), before, "{what}");
        }
        runs += 1;
        copies += program.stream(Stream::Out).len() + program.stream(Stream::In).len();
    }
    assert!(runs > 5 && copies > 50 && shared > 10, "{runs} runs, {copies} copies, {shared} share chunks");
}

/// Too few chunks are none, before anything runs: where the budget has fewer, and where the device has.
#[test]
fn chunks_are_there_before_the_first_launch() {
    let Some((driver, _used)) = driver() else { return };
    let program = lowered(&small_model("tiny_mlp/training_model"), None);
    let options = CudaOptions { own_kernels: true, ..CudaOptions::default() };
    let session = in_chunks(&program, options, 1 << 16, None).unwrap();
    let (it, bytes) = (session.fragmentation().unwrap(), driver.count(3));
    drop(session);
    // The constants of kernels count, too; with a chunk less for them, a chunk is missing.
    let constants = bytes - it.mapped * it.chunk;
    assert!((1..it.chunk).contains(&constants), "{constants}");
    let budget = bytes;
    drop(in_chunks(&program, options, 1 << 16, Some(budget)).unwrap());
    let refused = in_chunks(&program, options, 1 << 16, Some(budget - 1)).unwrap_err();
    let (needed, chunks, bytes_each) = (it.mapped, it.mapped - 1, it.chunk);
    assert_eq!(refused, RunError::Chunks { needed, chunks, bytes: bytes_each });
    driver.memory(bytes);
    drop(in_chunks(&program, options, 1 << 16, None).unwrap());
    driver.memory(bytes - 1);
    driver.seed(1);
    let why = in_chunks(&program, options, 1 << 16, None).unwrap_err();
    let (free, needed) = (Bytes(bytes - 1), Bytes(bytes));
    assert_eq!(why, RunError::DeviceMemory { needed, free, total: free });
    assert_eq!([3, 4, 5].map(|what| driver.count(what)), [0, 0, 0]);
    for chunk in [0, 1 << 41] {
        let why = in_chunks(&program, options, chunk, None).unwrap_err();
        assert_eq!(why, RunError::Chunk { bytes: chunk });
    }
}

#[test]
fn nothing_is_allocated_within_steps() {
    let Some((driver, _used)) = driver() else { return };
    let (_, graph) = small().remove(0);
    let program = lowered(&graph, None);
    let mut session = session(&program, CudaOptions::default());
    let before = driver.count(2);
    execute(&program, &mut session);
    assert_eq!(driver.count(2), before);
}

/// Gives the labels of each step, and reads the loss of each step if `reads`.
struct Labels {
    of_steps: [[i64; 2]; 3],
    reads: bool,
    looks: bool,
}

impl StepObserver for Labels {
    fn turn(&mut self, turn: &mut Turn<'_>) -> Result<(), String> {
        if self.reads && turn.has_outputs {
            turn.output("loss").ok_or("there is no loss")?;
        }
        let labels = self.of_steps[turn.number as usize % 3].map(i64::to_le_bytes).concat();
        if turn.set("t", &labels) { Ok(()) } else { Err("there are no labels".into()) }
    }

    fn looks(&self) -> bool {
        self.looks
    }
}

/// The message is that of the host; the step is the one that met the label, however late it is read.
#[test]
fn a_label_out_of_range_ends_the_run() {
    let Some(_driver) = driver() else { return };
    let text = "g (float[2,3] x, int64[2] t) => (float[] loss) \
                { [n] float[] loss, float[2,3] log = SoftmaxCrossEntropyLoss(x, t) }";
    let graph = Graph::parse(text).unwrap();
    let program = lowered(&graph, None);
    let right = Labels { of_steps: [[0, 1], [2, 1], [1, 1]], reads: true, looks: false };
    let refusal = |session: &mut dyn DeviceSession, labels: &mut Labels| {
        start(&program, |name, bytes| session.set(name, bytes).unwrap());
        session.run(3, labels).map(drop).unwrap_err()
    };
    let wrong = |reads, looks| Labels { of_steps: [[0, 1], [1, 3], [-1, 0]], reads, looks };
    let mut host = HostSession::new(Checked::new(program.clone()).unwrap(), HostLink::default()).unwrap();
    let expected = refusal(&mut host, &mut wrong(true, false)).to_string();
    assert_eq!(expected, "node `n` (SoftmaxCrossEntropyLoss), step 2: label 3 is out of range for 3 classes");
    for graph in [false, true] {
        let mut session = session(&program, CudaOptions { graph, ..CudaOptions::default() });
        for (reads, looks) in [(false, false), (true, false), (true, true)] {
            session.set_steps(0);
            let error = refusal(&mut session, &mut wrong(reads, looks));
            assert_eq!(error.to_string(), expected, "graph {graph}, reads {reads}, looks {looks}");
            assert!(matches!(error, RunError::Value { keeps_state: false, .. }));
        }
        session.set_steps(0);
        let mut labels = Labels { of_steps: right.of_steps, ..wrong(true, false) };
        session.run(3, &mut labels).unwrap();
    }
}

/// A folder with the driver's libraries, for the command.
struct Installed(tempfile::TempDir);

impl Installed {
    fn new() -> Option<Installed> {
        let [driver, nvrtc, ..] = libraries()?;
        let installed = Installed(tempfile::tempdir().unwrap());
        installed.add(driver, "libcuda.so.1");
        installed.add(nvrtc, "libnvrtc.so.13");
        Some(installed)
    }

    fn add(&self, library: &Path, name: &str) {
        std::os::unix::fs::symlink(library, self.0.path().join(name)).unwrap();
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    /// Exit code, output and errors of the command, with these settings of the driver.
    fn lmsc(&self, arguments: &[&str], settings: &[(&str, &str)]) -> (Option<i32>, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lmsc"));
        command.args(arguments).env("LMSC_CUDA_PATH", self.0.path()).env("XDG_CACHE_HOME", self.0.path());
        let output = command.envs(settings.iter().copied()).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }

    /// Output of the command, which must succeed.
    fn ok(&self, arguments: &[&str], settings: &[(&str, &str)]) -> String {
        let (code, text, errors) = self.lmsc(arguments, settings);
        assert_eq!(code, Some(0), "{arguments:?}: {errors}");
        text
    }
}

/// The command finds the libraries by their folder, compiles kernels into the user's cache, and reports
/// features that a device lacks.
#[test]
fn the_command_runs_on_a_device() {
    let Some(installed) = Installed::new() else { return };
    let model = format!("{}/tiny_mlp/training_model.onnx", support::models::MODELS);
    let run = |arguments: &[&str], memory: &str| {
        let run = ["run", &model, "--dim", "batch=4", "--steps", "3"];
        installed.lmsc(&[&run, arguments].concat(), &[("FAKECUDA_MEM", memory)])
    };
    let losses =
        |text: &str| text.lines().filter(|l| l.contains("loss")).map(str::to_owned).collect::<Vec<_>>();
    let (code, host, errors) = run(&[], "0");
    assert_eq!((code, losses(&host).len()), (Some(0), 3), "{errors}");
    for (device, products) in [
        ("cuda", "own kernels: cuBLAS is not found"),
        ("cuda", "cuBLAS 13.0.0"),
        ("cuda:0+graph", "cuBLAS 13.0.0"),
    ] {
        let (code, found, errors) = run(&["--device", device], "1000000");
        assert_eq!((code, losses(&found)), (Some(0), losses(&host)), "{device}: {errors}");
        assert!(found.contains(&format!("on a processor, products by {products}\n")), "{found}");
        if products.starts_with("own") {
            installed.add(&libraries().unwrap()[2], "libcublas.so.13");
        }
    }
    // Pinned memory that is the driver's is not zero by itself.
    let refuses = [("FAKECUDA_REGISTER", "0")];
    let driver_pins =
        installed.lmsc(&["run", &model, "--dim", "batch=4", "--steps", "3", "--device", "cuda"], &refuses);
    assert_eq!((driver_pins.0, losses(&driver_pins.1)), (Some(0), losses(&host)), "{}", driver_pins.2);
    let kept = std::fs::read_dir(installed.path("lmsc/kernels")).unwrap().count();
    assert!(kept >= lmsc_cuda::SOURCES.len(), "{kept} images are kept");
    // Where kernels need no workspace, both devices have the same chunks.
    let graph =
        "g (float[20000] x) => (float[20000] z) { [a] float[20000] y = Exp(x) [b] float[20000] z = Sqrt(y) }";
    std::fs::write(installed.path("g.lms"), graph).unwrap();
    let chunks = |device: &str| {
        let run = ["run", &installed.path("g.lms"), "--steps", "2", "--virtual", "64KiB", "--device", device];
        let text = installed.ok(&run, &[]);
        text.lines()
            .find(|line| line.starts_with("chunks of 64 KiB: at most "))
            .expect("it is told")
            .to_owned()
    };
    assert!(chunks("host").contains(": at most 6 in use, 384 KiB, of which at most 149.62 KiB are lost"));
    assert_eq!([chunks("cuda"), chunks("cuda+graph")], [chunks("host"), chunks("host")]);
    let (code, found, errors) = run(&["--device", "cuda", "--virtual", "1"], "10000000");
    assert_eq!((code, losses(&found)), (Some(0), losses(&host)), "{errors}");
    assert!(found.contains("\nchunks of 64 KiB: at most "), "{found}");
    let (code, _, errors) = run(&["--device", "cuda", "--virtual", "64KiB"], "400000");
    assert!(code == Some(1) && errors.contains("(400000 bytes) are free"), "{errors}");
    let run_on = ["run", &model, "--dim", "batch=4", "--device", "cuda", "--virtual", "64KiB"];
    let (code, _, errors) = installed.lmsc(&run_on, &[("FAKECUDA_MAPS", "0")]);
    assert!(code == Some(1) && errors.contains("this device cannot map chunks to addresses"), "{errors}");
    let (code, _, errors) = run(&["--device", "cuda"], "1000");
    assert!(code == Some(1) && errors.contains("(1000 bytes) are free"), "{errors}");
    let (code, _, errors) = run(&["--device", "cuda:7"], "1000000");
    assert!(code == Some(1) && errors.contains("no CUDA device 7; the driver knows 1"), "{errors}");
}

/// The library that convolves is reported with the losses. A profile has the workspace of its algorithms, and a
/// step with that workspace has the same results.
#[test]
fn the_command_convolves_by_a_library() {
    let Some(installed) = Installed::new() else { return };
    let model = format!("{}/tiny_resnet18/training_model.onnx", support::models::MODELS);
    let step = [&*model, "--dim", "batch=2"];
    let run = |arguments: &[&str]| {
        let json = installed.ok(&[&["run", "--steps", "2", "--json"], arguments, &step].concat(), &[]);
        serde_json::from_str::<serde_json::Value>(&json).unwrap()
    };
    let losses = |run: &serde_json::Value| -> Vec<f32> {
        run["losses"].as_array().unwrap().iter().map(|loss| loss.as_f64().unwrap() as f32).collect()
    };
    let host = run(&[]);
    let agrees = |found: &serde_json::Value| {
        let pairs: Vec<_> = losses(found).into_iter().zip(losses(&host)).collect();
        assert!(pairs.iter().all(|(a, b)| (a - b).abs() <= 1e-4 * b.abs()) && pairs.len() == 2, "{pairs:?}");
    };
    let own = run(&["--device", "cuda"]);
    assert_eq!(own["gpu"]["convolutions"], "own kernels: cuDNN is not found");
    agrees(&own);
    let [.., blas, dnn] = libraries().unwrap();
    installed.add(blas, "libcublas.so.13");
    installed.add(dnn, "libcudnn.so.9");
    let found = run(&["--device", "cuda+graph"]);
    assert_eq!(found["gpu"]["convolutions"], "cuDNN 9.19.0");
    agrees(&found);
    let own = run(&["--device", "cuda", "--own-kernels"]);
    assert_eq!(own["gpu"]["convolutions"], "own kernels: cuDNN is not asked for");
    agrees(&own);
    let text = installed.ok(&[&["run", "--device", "cuda"], &step[..]].concat(), &[]);
    assert!(text.contains(", products by cuBLAS 13.0.0, convolutions by cuDNN 9.19.0\n"), "{text}");

    let workspaces = |profile: &Calibrated| -> BTreeMap<String, u64> {
        let of = |name: &String| (name.clone(), profile.profile.get(name).unwrap().workspace);
        profile.nanos.keys().filter(|name| name.contains("Conv")).map(of).collect()
    };
    let with = workspaces(&Calibrated::of(&installed, &step, "cuda", &[]));
    let profile = installed.path("profile.json");
    let planned = installed.path("planned.onnx");
    let budget = (found["predicted_peak"].as_u64().unwrap() * 7 / 10).to_string();
    let plan = ["--profile", &profile, "--planner", "lru", "--budget", &budget, "-o", &planned];
    installed.ok(&[&step[..], &plan].concat(), &[]);
    let swapped = installed.ok(&["run", "--steps", "2", "--json", "--device", "cuda", &planned], &[]);
    let swapped: serde_json::Value = serde_json::from_str(&swapped).unwrap();
    assert_eq!(swapped["gpu"]["convolutions"], "cuDNN 9.19.0");
    assert!(swapped["copies_out"].as_u64().unwrap() > 0);
    assert_eq!(losses(&swapped), losses(&found));
    for name in ["libcublas.so.13", "libcudnn.so.9"] {
        std::fs::remove_file(installed.path(name)).unwrap();
    }
    let without = workspaces(&Calibrated::of(&installed, &step, "cuda", &[]));
    assert!(with.keys().eq(without.keys()) && !with.is_empty());
    assert!(
        with.iter().all(|(name, bytes)| *bytes >= without[name]) && with != without,
        "{with:?} {without:?}"
    );
}

/// A file states the engines for which it was planned. A run by other ones is a warning.
#[test]
fn a_run_by_other_engines_than_planned_is_told() {
    let Some(installed) = Installed::new() else { return };
    let [.., blas, dnn] = libraries().unwrap();
    installed.add(blas, "libcublas.so.13");
    installed.add(dnn, "libcudnn.so.9");
    let model = format!("{}/tiny_vgg/training_model.onnx", support::models::MODELS);
    let planned = installed.path("planned.onnx");
    let plan = |more: &[&str]| {
        let call = [&*model, "--dim", "batch=2", "--target", "auto", "--budget", "0.9x", "-o", &planned];
        installed.ok(&[&call[..], more].concat(), &[]);
    };
    let warnings = |more: &[&str], settings: &[(&str, &str)]| {
        let run = ["run", "--steps", "1", "--device", "cuda", &*planned];
        let (code, _, errors) = installed.lmsc(&[&run[..], more].concat(), settings);
        assert_eq!(code, Some(0), "{errors}");
        errors.lines().filter(|line| line.contains("LMS0410")).collect::<Vec<_>>().join("\n")
    };
    plan(&[]);
    assert_eq!(warnings(&[], &[]), "");
    let newer = warnings(&[], &[("FAKEDNN_VERSION", "92600")]);
    assert!(newer.ends_with("by cuDNN 9.26.0 in place of 9.19.0"), "{newer}");
    let rounded = warnings(&["--precision", "tf32"], &[]);
    assert!(rounded.contains(" convolutions run by other engines than planned: "), "{rounded}");
    assert!(rounded.ends_with("the precision tf32 in place of f32"), "{rounded}");
    plan(&["--precision", "tf32"]);
    assert_eq!(warnings(&["--precision", "tf32"], &[]), "");
}

/// A fault of a kernel is found by a later call, unless each launch is waited for; then the kernel and its node are named.
#[test]
fn a_kernel_that_fails_is_named_where_launches_are_synchronous() {
    let Some(installed) = Installed::new() else { return };
    let model = format!("{}/tiny_mlp/training_model.onnx", support::models::MODELS);
    let step = ["run", "--steps", "1", "--device", "cuda", &*model, "--dim", "batch=4"];
    let faulty = [("FAKECUDA_FAULT", "product")];
    let (code, _, errors) = installed.lmsc(&step, &faulty);
    assert!(code == Some(1) && errors.contains("error[LMS0111]"), "{errors}");
    assert!(errors.contains("so start it again; --synchronous names the kernel"), "{errors}");
    assert!(!errors.contains("`product`"), "{errors}");
    let (code, _, errors) = installed.lmsc(&[&step[..], &["--synchronous"]].concat(), &faulty);
    assert_eq!(code, Some(1), "{errors}");
    assert!(errors.contains("the kernel `product` of the node `"), "{errors}");
    assert!(installed.lmsc(&[&step[..], &["--synchronous"]].concat(), &[]).0 == Some(0));
    let on_host = ["run", &*model, "--dim", "batch=4", "--synchronous"];
    let (code, _, errors) = installed.lmsc(&on_host, &[]);
    assert!(code == Some(2) && errors.contains("--synchronous is of GPUs alone"), "{errors}");
}

/// Output of `lmsc calibrate`.
struct Calibrated {
    profile: Profile,
    link: lmsc_plan::target::TargetLink,
    /// Nanoseconds by signature.
    nanos: BTreeMap<String, u64>,
    /// Microseconds of a launch, if that is told.
    launch: Option<f64>,
}

impl Calibrated {
    /// Of the model on the device, where the driver has these settings.
    fn of(installed: &Installed, model: &[&str], device: &str, settings: &[(&str, &str)]) -> Calibrated {
        let to = installed.path("profile.json");
        let told = installed.ok(
            &[&["calibrate"], model, &["--device", device, "--steps", "3", "-o", &to]].concat(),
            settings,
        );
        let launch = told.lines().find_map(|line| line.strip_prefix("besides: "));
        let launch = launch.map(|line| line.split(' ').next().unwrap().parse().unwrap());
        let text = std::fs::read_to_string(to).unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let entry = |entry: &serde_json::Value| {
            (entry["node"].as_str().unwrap().to_owned(), entry["nanos"].as_u64().unwrap())
        };
        let nanos = json["entries"].as_array().unwrap().iter().map(entry).collect();
        let profile = Profile::parse(&text, "profile.json").unwrap();
        Calibrated { link: profile.link.unwrap(), profile, nanos, launch }
    }
}

/// Every operator of the host's profile is in the device's; plans and predictions go by it, and a file that is planned with it
/// runs on the device, with the workspaces that were measured.
#[test]
#[ignore = "slow: `cargo xtask ci test` runs it"]
fn a_profile_measured_on_a_device_is_what_planners_read() {
    let Some(installed) = Installed::new() else { return };
    // It makes use of all the workspace that it gets.
    installed.add(&libraries().unwrap()[2], "libcublas.so.13");
    let model = format!("{}/tiny_mlp/training_model.onnx", support::models::MODELS);
    let step = [&*model, "--dim", "batch=4"];
    let host = Calibrated::of(&installed, &step, "host", &[]);
    let device = Calibrated::of(&installed, &step, "cuda", &[]);
    assert_eq!((&*host.profile.device, &*device.profile.device), ("host", "a processor (sm_90)"));
    assert!(device.nanos.keys().eq(host.nanos.keys()) && !device.nanos.is_empty());

    // Kernels that take 5 ms more do so in the operators, not in the copies; those that are fused do so together.
    let slow = Calibrated::of(&installed, &step, "cuda", &[("FAKECUDA_SLOW", "5000 0 0")]);
    let quick: Vec<_> = slow.nanos.iter().filter(|&(_, &nanos)| nanos < 5_000_000).collect();
    let fused =
        |name: &str| !name.starts_with("MatMul") && !name.starts_with("Gemm") && !name.contains("Loss");
    assert!(quick.iter().all(|(name, nanos)| fused(name) && **nanos > 100_000), "{quick:?}");
    assert!(slow.link.latency_nanos < 5_000_000);
    // Nor does anything but launches cost more, and the host has none.
    let launch = [host.launch, device.launch, slow.launch];
    assert!(launch[0].is_none() && launch[1] < Some(5000.0) && launch[2] >= Some(5000.0), "{launch:?}");

    let profile = installed.path("profile.json");
    let run = ["run", "--device", "cuda", "--steps", "2", "--profile", &profile];
    let json = installed.ok(&[&run[..], &step, &["--json"]].concat(), &[]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["prediction"], "100 % of it from a profile");
    let launches = slow.nanos.len() as f64;
    assert!(json["predicted_step_seconds"].as_f64().unwrap() >= 5e-3 * launches);

    let planned = installed.path("planned.onnx");
    let budget = (json["predicted_peak"].as_u64().unwrap() * 3 / 4).to_string();
    let plan = ["--profile", &profile, "--planner", "lru", "--budget", &budget, "-o", &planned];
    installed.ok(&[&step[..], &plan].concat(), &[]);
    let text = installed.ok(&[&run[..], &[&planned]].concat(), &[]);
    assert!(text.contains("a step copies") && !text.contains("hidden"), "{text}");

    // If swap-ins take 20 ms more, the trace shows the waits of their readers, whose own times do not grow.
    let slow = [("FAKECUDA_SLOW", "0 0 20000")];
    let trace = installed.path("trace.json");
    let json = installed.ok(&[&run[..], &[&planned, "--trace", &trace, "--json"]].concat(), &slow);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(json["stalled_seconds"].as_f64().unwrap() >= 0.02, "{json}");
    assert!(json["hidden_percent"].as_f64().unwrap() < 50.0, "{json}");
    assert!(std::fs::read_to_string(trace).unwrap().contains(" waits for in_"));
    // Without such a wait the step computes something else; on the host there is none to leave out.
    let left = |without: &[&str]| {
        let file = installed.path("left");
        let save = ["run", "--device", "cuda", "--steps", "2", &planned, "--save", &file];
        installed.ok(&[&save, without].concat(), &slow);
        std::fs::read(file).unwrap()
    };
    let whole = left(&[]);
    assert!(whole == left(&[]) && whole != left(&["--without-waits", "1"]));
    let (code, _, errors) = installed.lmsc(&["run", &planned, "--without-waits", "1"], &[]);
    assert!(code == Some(2) && errors.contains("--without-waits is of GPUs alone"), "{errors}");
    let call = ["run", "--device", "cuda", &planned, "--without-waits", "1000"];
    let (code, _, errors) = installed.lmsc(&call, &[]);
    assert!(code == Some(1) && errors.contains("--without-waits 1000: computing waits for"), "{errors}");
    let waiting = Calibrated::of(&installed, &[&planned], "cuda", &slow);
    assert!(waiting.nanos.keys().eq(device.nanos.keys()));
    assert!(waiting.nanos.values().all(|&nanos| nanos < 20_000_000), "{:?}", waiting.nanos);
}

/// A step that cannot run on a device cannot be measured there, for the same reasons.
#[test]
fn a_step_that_a_device_refuses_is_not_measured() {
    let Some(installed) = Installed::new() else { return };
    let model = format!("{}/tiny_mlp/training_model.onnx", support::models::MODELS);
    let profile = installed.path("profile.json");
    let both = |batch: &str, device: &str, memory: &str| {
        let call = ["--dim", batch, "--device", device, &model];
        let settings = [("FAKECUDA_MEM", memory)];
        let ran = installed.lmsc(&[&["run"], &call[..]].concat(), &settings);
        let measured = installed.lmsc(&[&["calibrate", "-o", &profile], &call[..]].concat(), &settings);
        assert_eq!((ran.0, &ran.2), (Some(1), &measured.2), "{ran:?}");
        assert_eq!(measured.0, Some(1));
        measured.2
    };
    let errors = both("batch=4", "cuda:7", "1000000");
    assert!(errors.contains("no CUDA device 7; the driver knows 1"), "{errors}");
    // No plan fits the device. `run` reports the free bytes, and `calibrate` the missing plan.
    let call = ["--dim", "batch=500000", "--device", "cuda", &model];
    let settings = [("FAKECUDA_MEM", "70000000")];
    let (code, _, errors) = installed.lmsc(&[&["run"], &call[..]].concat(), &settings);
    assert!(code == Some(1) && errors.contains("(70000000 bytes) are free"), "{errors}");
    let (code, _, errors) = installed.lmsc(&[&["calibrate", "-o", &profile], &call[..]].concat(), &settings);
    assert!(code == Some(1) && errors.contains("does not fit 60.08 MiB"), "{errors}");
    assert!(!Path::new(&profile).exists());
}

/// The JSON that a command prints.
fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// The losses of a run, by their bits.
fn losses(run: &serde_json::Value) -> Vec<u64> {
    run["losses"].as_array().unwrap().iter().map(|loss| loss.as_f64().unwrap().to_bits()).collect()
}

/// A plan for a target of CUDA that is made without a device has the workspaces of its kernels and libraries: it runs on a
/// device that has no more memory than the plan's budget, constants included, and computes the same bits.
#[test]
fn a_plan_made_anywhere_runs_on_a_device() {
    let Some(installed) = Installed::new() else { return };
    let [.., blas, dnn] = libraries().unwrap();
    installed.add(blas, "libcublas.so.13");
    installed.add(dnn, "libcudnn.so.9");
    let model = format!("{}/tiny_resnet18/training_model.onnx", support::models::MODELS);
    let step = [&*model, "--dim", "batch=2"];
    let planned = installed.path("planned.onnx");
    let elsewhere = tempfile::tempdir().unwrap();
    let planned_by = |planner: &str, target: &str, budget: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lmsc"));
        command.args(step).args(["--target", target, "--planner", planner, "--budget", budget]);
        command.args(["--json", "-o", &planned]);
        let output = command.env("LMSC_CUDA_PATH", elsewhere.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        json(&String::from_utf8_lossy(&output.stdout))
    };
    let plan = |target: &str, budget: &str| planned_by("auto", target, budget);
    let run = ["run", "--steps", "2", "--json", "--device", "cuda"];
    let whole = json(&installed.ok(&[&run[..], &step].concat(), &[]));
    let report = plan("h200-sxm", "0.8x");
    let budget = report["budget"].as_u64().unwrap();
    let constants = report["constants"].as_u64().unwrap();
    assert!(constants > 0 && report["after"]["peak"].as_u64().unwrap() + constants <= budget, "{report}");
    assert_eq!(budget, (report["before"]["peak"].as_u64().unwrap() + constants) * 8 / 10);

    let memory = budget.to_string();
    let swapped = json(&installed.ok(&[&run[..], &[&planned]].concat(), &[("FAKECUDA_MEM", &memory)]));
    // The arena ends at the last address that the plan uses.
    assert!(swapped["arena"].as_u64().is_some_and(|arena| arena <= budget), "{swapped}");
    assert!(swapped["copies_out"].as_u64().unwrap() > 0, "{swapped}");
    assert_eq!(losses(&swapped), losses(&whole));
    assert_eq!(swapped["gpu"]["convolutions"], "cuDNN 9.19.0");
    assert_eq!(swapped["prediction"], "the model of the target a processor");

    // Where less than that is free, both numbers are told before anything is allocated.
    let memory = (swapped["arena"].as_u64().unwrap() - 1).to_string();
    let (code, _, errors) = installed.lmsc(&[&run[..], &[&planned]].concat(), &[("FAKECUDA_MEM", &memory)]);
    assert_eq!(code, Some(1), "{errors}");
    assert!(errors.contains(" bytes) of the device's memory, of which"), "{errors}");
    assert!(
        errors.contains(&format!("({memory} bytes) are free")) && errors.contains("--budget 90%"),
        "{errors}"
    );
    // The plan's own budget is the limit, unless a smaller one is given.
    let less = (swapped["last_address"].as_u64().unwrap() - 1).to_string();
    let (code, _, errors) = installed.lmsc(&[&run[..], &[&planned, "--budget", &less]].concat(), &[]);
    assert!(code == Some(1) && errors.contains("plan the original again"), "{errors}");

    plan("host", "0.9x");
    let (code, _, errors) = installed.lmsc(&[&run[..], &[&planned]].concat(), &[]);
    assert_eq!(code, Some(2), "{errors}");
    assert!(errors.contains("it was planned for the target `host`"), "{errors}");
    assert!(errors.contains("help: plan with --target auto, or another target of CUDA"), "{errors}");

    // Recomputed nodes omit running statistics, which kernels must not look for.
    planned_by("memonger", "h200-sxm", "0.8x");
    let is_again = |line: &str| line.contains("BatchNormInternal<") && line.contains(" recomputes ");
    assert!(installed.ok(&["opt", &planned], &[]).lines().any(is_again));
    let again = json(&installed.ok(&[&run[..], &[&planned]].concat(), &[]));
    assert_eq!(losses(&again), losses(&whole));
}

/// Planning for the device that runs the step and running it are one call.
#[test]
fn a_step_is_planned_for_a_device_and_run_in_one_call() {
    let Some(installed) = Installed::new() else { return };
    let model = format!("{}/tiny_mlp/training_model.onnx", support::models::MODELS);
    let step = [&*model, "--dim", "batch=64", "--steps", "2", "--json"];
    let host = json(&installed.ok(&[&step[..], &["--run", "--budget", "0.9x"]].concat(), &[]));
    let call = [&step[..], &["--run", "--device", "cuda", "--budget"]].concat();
    let (code, text, errors) = installed.lmsc(&[&call[..], &["0.9x"]].concat(), &[]);
    assert_eq!(code, Some(0), "{errors}");
    let device = json(&text);
    assert_eq!(device["run"]["gpu"]["name"], "a processor");
    assert_eq!(device["run"]["losses"], host["run"]["losses"]);
    assert!(device["run"]["arena"].as_u64() <= device["budget"].as_u64(), "{device}");
    assert!(errors.contains(
        "auto: a processor (compute capability 9.0), 16 GiB of 16 GiB free, 4 multiprocessors at 1000 MHz"
    ));
    assert_eq!(errors.matches("auto: ").count(), 1, "{errors}");
    // Half of the free memory is more than the step needs; the arena has the size that it needs.
    let half = json(&installed.ok(&[&call[..], &["50%"]].concat(), &[("FAKECUDA_MEM", "8000000")]));
    assert_eq!(half["budget"], 4_000_000);
    assert!(half["run"]["arena"].as_u64().is_some_and(|arena| arena < 4_000_000), "{half}");
    // A target that is named is taken as it is.
    let named = installed.lmsc(&[&call[..], &["0.9x", "--target", "t4"]].concat(), &[]);
    assert_eq!((named.0, named.2.contains("auto: ")), (Some(0), false), "{}", named.2);
    assert_eq!(json(&named.1)["run"]["prediction"], "the model of the target t4");
    let (code, _, errors) =
        installed.lmsc(&[&step[..], &["--device", "cuda", "--budget", "0.9x"]].concat(), &[]);
    assert!(
        code == Some(2) && errors.contains("nothing is run, but how is said: --device, --steps"),
        "{errors}"
    );
}

/// The target `auto` is the driver's device, and can be taken to another machine.
#[test]
fn the_target_of_a_device_can_be_written_down() {
    let Some(installed) = Installed::new() else { return };
    let text = installed.ok(&["targets", "auto"], &[("FAKECUDA_MEM", "123456789")]);
    let target = lmsc_plan::Target::parse(&text, "auto").unwrap();
    assert_eq!((&*target.name, target.device_bytes), ("a processor", Bytes(123_456_789)));
    assert_eq!(target.kernels, lmsc_plan::target::Kernels::Cuda);
    assert_eq!(target.compute.multiprocessors, 4);
    // Two bits of 64 lines a cycle; 128 multiply-adds of each multiprocessor.
    assert_eq!(target.compute.memory_bytes_per_second, 16_000_000_000);
    assert_eq!(target.compute.flops_per_second.float32, 1_024_000_000_000);
    let slow = installed.ok(&["targets", "auto:0"], &[("FAKECUDA_SLOW", "0 30000 0")]);
    let slow = lmsc_plan::Target::parse(&slow, "auto").unwrap().link;
    assert!(slow.out_bytes_per_second < 600_000_000 && slow.in_bytes_per_second > 600_000_000, "{slow:?}");

    std::fs::remove_file(installed.path("libcuda.so.1")).unwrap();
    let (code, _, errors) = installed.lmsc(&["targets", "auto:7"], &[]);
    // On a machine that has a driver, it is asked.
    assert_eq!(code, Some(1), "{errors}");
    assert!(
        errors.starts_with("lmsc: error[LMS0110]: there is no GPU to ask: ") && errors.contains("\nhelp: "),
        "{errors}"
    );
    let (code, _, errors) = installed.lmsc(&["targets", "auto:x"], &[]);
    assert!(code == Some(2) && errors.contains("`auto:N` with the number of a GPU"), "{errors}");
}

/// A step that is too large for the device is measured under a plan for the device's memory, and never in more
/// than the budget.
#[test]
fn a_step_larger_than_the_device_is_measured_within_a_budget() {
    let Some(installed) = Installed::new() else { return };
    let model = format!("{}/tiny_mlp/training_model.onnx", support::models::MODELS);
    let profile = installed.path("profile.json");
    let step = [&*model, "--dim", "batch=1024"];
    let calibrate =
        [&["calibrate"], &step[..], &["--device", "cuda", "--steps", "2", "-o", &profile]].concat();
    let report = json(
        &installed.ok(
            &[
                &step[..],
                &["--target", "h100-sxm", "--budget", "0.8x", "--json", "-o", "/dev/null", "--emit", "lms"],
            ]
            .concat(),
            &[],
        ),
    );
    let budget = report["budget"].as_u64().unwrap();
    let memory = budget.to_string();
    // The device has no byte more than the budget.
    let told = installed.ok(&[&calibrate[..], &["--budget", &memory]].concat(), &[("FAKECUDA_MEM", &memory)]);
    assert!(told.contains(&format!(", within {}\n", Bytes(budget))), "{told}");
    let planned = std::fs::read_to_string(&profile).unwrap();
    // Without a budget, the limit is most of the free memory.
    let memory = (budget * 10 / 9 + 10).to_string();
    let told = installed.ok(&calibrate, &[("FAKECUDA_MEM", &memory)]);
    assert!(told.contains(", within "), "{told}");
    let told = installed.ok(&calibrate, &[]);
    assert!(!told.contains("within"), "{told}");
    let whole = std::fs::read_to_string(&profile).unwrap();
    let nodes = |profile: &str| -> Vec<String> {
        let entries = json(profile)["entries"].as_array().unwrap().clone();
        entries.iter().map(|entry| entry["node"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(nodes(&planned), nodes(&whole));
    let (code, _, errors) = installed.lmsc(&[&calibrate[..], &["--budget", "1KiB"]].concat(), &[]);
    assert!(code == Some(1) && errors.contains("does not fit"), "{errors}");
}

/// A prediction takes kernels that are fused for one.
#[test]
fn predictions_know_fused_kernels() {
    let Some(installed) = Installed::new() else { return };
    let graph = "g (float[1024] x) => (float[1024] d) {
        [a] float[1024] a = Exp(x)
        [b] float[1024] b = Sqrt(a)
        [c] float[1024] c = Tanh(b)
        [d] float[1024] d = Neg(c) }";
    std::fs::write(installed.path("g.lms"), graph).unwrap();
    let run = ["run", &installed.path("g.lms"), "--steps", "2", "--json", "--device", "cuda"];
    let predicted = |more: &[&str]| {
        json(&installed.ok(&[&run[..], more].concat(), &[]))["predicted_step_seconds"].as_f64().unwrap()
    };
    let trace = installed.path("trace.json");
    let (fused, single) = (predicted(&[]), predicted(&["--trace", &trace]));
    // Each of four kernels takes 5 µs to start.
    assert!(single >= 20e-6 && (5e-6..7e-6).contains(&fused), "{fused} {single}");
}

/// Copies of one direction that take 30 ms more do so in that direction alone.
#[test]
#[ignore = "slow: `cargo xtask ci test` runs it"]
fn copies_are_measured_each_way() {
    let Some(installed) = Installed::new() else { return };
    let model = format!("{}/tiny_mlp/training_model.onnx", support::models::MODELS);
    for (slow, is_out) in [("0 30000 0", true), ("0 0 30000", false)] {
        let step = [&*model, "--dim", "batch=4"];
        let Calibrated { link, .. } = Calibrated::of(&installed, &step, "cuda", &[("FAKECUDA_SLOW", slow)]);
        let out = [link.out_bytes_per_second, link.out_beside_in_bytes_per_second.unwrap()];
        let into = [link.in_bytes_per_second, link.in_beside_out_bytes_per_second.unwrap()];
        let (slow, fast) = if is_out { (out, into) } else { (into, out) };
        // 42 MiB in three copies.
        assert!(slow.iter().all(|&rate| rate < 600_000_000), "{link:?}");
        assert!(slow.iter().zip(&fast).all(|(slow, fast)| 2 * slow < *fast), "{link:?}");
        assert!(link.latency_nanos < 15_000_000, "{link:?}");
    }
}

/// Another program part's bytes on the device become an input's value without a way through the host; bytes that are not there are
/// refused.
#[test]
fn inputs_are_taken_over_within_the_device() {
    let Some(_driver) = driver() else { return };
    let text = "g (float[64] x, float[64] y) => (float[64] z) { [z] float[64] z = Add(x, y) }";
    let program = lowered(&Graph::parse(text).unwrap(), None);
    let mut session = session(&program, CudaOptions::default());
    let floats = |scale: f32| -> Vec<u8> { (0..64).flat_map(|i| (scale * i as f32).to_le_bytes()).collect() };
    assert!(session.set("x", &floats(1.0)).unwrap());
    // The session's own arena stands for another part's memory.
    let x = program.given.iter().find(|given| &*given.tensor.name == "x").unwrap();
    let at = DeviceBytes { address: session.arena() + x.tensor.span().unwrap().start, bytes: 256 };
    assert!(session.set_within("y", at).unwrap());
    session.run(1, &mut Unobserved).unwrap();
    assert_eq!(session.get("z").unwrap().unwrap(), floats(2.0));
    assert!(!session.set_within("y", DeviceBytes { bytes: 252, ..at }).unwrap());
    assert!(!session.set_within("w", at).unwrap());
    let refused = session.set_within("y", DeviceBytes { address: 16, bytes: 256 }).unwrap_err();
    assert!(refused.to_string().contains("not memory of this device"), "{refused}");
}

//! Runs one operator: on the host, and where there is a C++ compiler the kernels of CUDA devices too, which must agree.

#![allow(dead_code, reason = "each test file uses a part of it")]

pub(crate) mod cases;
pub(crate) mod shim;

use half::{bf16, f16};
use lmsc_cuda::{Call, Recipe};
use lmsc_ir::{ElementType, Graph, Op, Storages};
use lmsc_kernels::{Io, Spec, StepContext, prepare};

/// A tensor: its type in the text form, and its bytes. An omitted operand has an empty type.
#[derive(Clone, Debug)]
pub(crate) struct Tensor {
    ty: String,
    pub(crate) bytes: Vec<u8>,
}

impl Tensor {
    pub(crate) fn absent() -> Tensor {
        Tensor { ty: String::new(), bytes: Vec::new() }
    }

    /// The same type, all bytes zero.
    pub(crate) fn zeros(&self) -> Tensor {
        Tensor { ty: self.ty.clone(), bytes: vec![0; self.bytes.len()] }
    }

    pub(crate) fn floats(&self) -> Vec<f32> {
        floats(&self.bytes)
    }
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect()
}

fn typed(element: &str, dims: &[u64]) -> String {
    let dims: Vec<String> = dims.iter().map(u64::to_string).collect();
    format!("{element}[{}]", dims.join(","))
}

pub(crate) fn float(dims: &[u64], values: Vec<f32>) -> Tensor {
    assert_eq!(dims.iter().product::<u64>(), values.len() as u64);
    Tensor { ty: typed("float", dims), bytes: values.iter().flat_map(|v| v.to_le_bytes()).collect() }
}

pub(crate) fn int64(dims: &[u64], values: &[i64]) -> Tensor {
    assert_eq!(dims.iter().product::<u64>(), values.len() as u64);
    Tensor { ty: typed("int64", dims), bytes: values.iter().flat_map(|v| v.to_le_bytes()).collect() }
}

/// Of a type in the text form.
pub(crate) fn tensor(ty: &str, bytes: Vec<u8>) -> Tensor {
    Tensor { ty: ty.to_owned(), bytes }
}

pub(crate) fn truth(dims: &[u64], values: &[bool]) -> Tensor {
    Tensor { ty: typed("bool", dims), bytes: values.iter().map(|&v| u8::from(v)).collect() }
}

/// Numbers between -1 and 1.
pub(crate) fn numbers(n: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9) ^ 0x1234_5678;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

pub(crate) fn dot(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

/// Bytes that begin at a multiple of 64, between others.
struct Aligned(Vec<u8>, usize, usize);

impl Aligned {
    fn new(bytes: &[u8]) -> Aligned {
        let mut room = vec![0xff; bytes.len() + 2 * 63];
        let start = room.as_ptr().align_offset(64);
        room[start..start + bytes.len()].copy_from_slice(bytes);
        Aligned(room, start, bytes.len())
    }

    fn get(&self) -> &[u8] {
        &self.0[self.1..][..self.2]
    }

    fn get_mut(&mut self) -> &mut [u8] {
        &mut self.0[self.1..][..self.2]
    }

    /// Whether the bytes around are as they were.
    fn is_alone(&self) -> bool {
        let (before, rest) = self.0.split_at(self.1);
        before.iter().chain(&rest[self.2..]).all(|&byte| byte == 0xff)
    }
}

fn graph(results: &str, op: &str, operands: &[Tensor]) -> Graph {
    let name = |i: usize| if operands[i].ty.is_empty() { "_".to_owned() } else { format!("o{i}") };
    let present = (0..operands.len()).filter(|&i| !operands[i].ty.is_empty());
    let inputs: Vec<String> = present.map(|i| format!("{} o{i}", operands[i].ty)).collect();
    let names: Vec<String> = (0..operands.len()).map(name).collect();
    let first = results.split(", ").next().unwrap();
    let text =
        format!("g ({}) => ({first}) {{ [n] {results} = {op}({}) }}", inputs.join(", "), names.join(", "));
    Graph::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// The recipe of the operator on a CUDA device.
pub(crate) fn recipe(results: &str, op: &str, operands: &[Tensor]) -> Recipe {
    let graph = graph(results, op, operands);
    let spec = Spec::of(&graph, &Storages::of(&graph), graph.order()[0], |_| None);
    lmsc_cuda::prepare(&spec).unwrap_or_else(|e| panic!("{e}"))
}

/// Prepares and runs the node of the graph, and again with short floats in place of `float`; its results' bytes. Integers and
/// the like count as constants.
fn execute(
    results: &str,
    op: &str,
    operands: &[Tensor],
    step: u64,
    written: Option<usize>,
) -> Result<Vec<Vec<u8>>, String> {
    let found = execute_as_is(results, op, operands, step, written)?;
    // Large operands test sizes only.
    let is_small = operands.iter().all(|operand| operand.bytes.len() <= 1 << 16);
    let types = || operands.iter().map(|operand| &*operand.ty).chain(results.split(", "));
    let names_its_type = op.contains("dtype") || op.starts_with("Cast") || op.starts_with("Constant");
    if types().any(|ty| ty.starts_with("float[")) && is_small && !names_its_type {
        [ElementType::Bfloat16, ElementType::Float16]
            .iter()
            .for_each(|&short| shortened(short, results, op, operands, step, written));
    }
    Ok(found)
}

fn narrow(short: ElementType, bytes: &[u8]) -> Vec<u8> {
    let bits = |x| match short {
        ElementType::Float16 => f16::from_f32(x).to_bits(),
        _ => bf16::from_f32(x).to_bits(),
    };
    floats(bytes).into_iter().flat_map(|x| bits(x).to_le_bytes()).collect()
}

fn wide(short: ElementType, bytes: &[u8]) -> Vec<f32> {
    let float = |&bytes: &[u8; 2]| match short {
        ElementType::Float16 => f16::from_le_bytes(bytes).to_f32(),
        _ => bf16::from_le_bytes(bytes).to_f32(),
    };
    bytes.as_chunks().0.iter().map(float).collect()
}

/// Runs the node on rounded operands: with short floats it computes the `f32` result, rounded once.
fn shortened(
    short: ElementType,
    results: &str,
    op: &str,
    operands: &[Tensor],
    step: u64,
    written: Option<usize>,
) {
    let name = |ty: &str| match ty.strip_prefix("float[") {
        Some(rest) => format!("{short}[{rest}"),
        None => ty.to_owned(),
    };
    let is_float = |tensor: &Tensor| tensor.ty.starts_with("float[");
    let stored = |tensor: &Tensor| {
        if is_float(tensor) {
            Tensor { ty: name(&tensor.ty), bytes: narrow(short, &tensor.bytes) }
        } else {
            tensor.clone()
        }
    };
    let stored: Vec<Tensor> = operands.iter().map(stored).collect();
    let widened = |(before, stored): (&Tensor, &Tensor)| {
        if is_float(before) {
            let bytes = wide(short, &stored.bytes).into_iter().flat_map(f32::to_le_bytes).collect();
            Tensor { ty: before.ty.clone(), bytes }
        } else {
            before.clone()
        }
    };
    let widened: Vec<Tensor> = operands.iter().zip(&stored).map(widened).collect();
    let names: Vec<&str> = results.split(", ").collect();
    let short_names = names.iter().map(|ty| name(ty)).collect::<Vec<_>>().join(", ");
    let expected = execute_as_is(results, op, &widened, step, written).unwrap_or_else(|e| panic!("{e}"));
    let found = execute_as_is(&short_names, op, &stored, step, written).unwrap_or_else(|e| panic!("{e}"));
    for ((ty, expected), found) in names.iter().zip(expected).zip(found) {
        let what = format!("{ty} of {op}, as {short}");
        if !ty.starts_with("float[") {
            assert_eq!(found, expected, "{what}");
            continue;
        }
        let expected = wide(short, &narrow(short, &expected));
        for (at, (found, expected)) in wide(short, &found).iter().zip(&expected).enumerate() {
            let same = found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan();
            assert!(same, "{what}: element {at} is {found}, not {expected}");
        }
    }
}

fn execute_as_is(
    results: &str,
    op: &str,
    operands: &[Tensor],
    step: u64,
    written: Option<usize>,
) -> Result<Vec<Vec<u8>>, String> {
    let graph = graph(results, op, operands);
    let storages = Storages::of(&graph);
    let id = graph.order()[0];
    let mut spec = Spec::of(&graph, &storages, id, |_| None);
    for (operand, tensor) in spec.operands.iter_mut().zip(operands) {
        if let Some(operand) = operand {
            operand.constant = Some(&tensor.bytes);
        }
    }
    // Views are to be computed here.
    spec.in_place = written.map(|w| (w, 0)).into_iter().collect();
    let kernel = prepare(&spec).map_err(|e| e.to_string())?;
    let given: Vec<Aligned> = operands.iter().map(|t| Aligned::new(&t.bytes)).collect();
    let slices: Vec<&[u8]> =
        given.iter().enumerate().map(|(i, a)| if Some(i) == written { &[] } else { a.get() }).collect();
    let size = |ty: &lmsc_ir::Type| ty.byte_size().unwrap().0 as usize;
    // Results and workspace hold garbage before the run.
    let garbage = |ty: Option<&lmsc_ir::Type>| Aligned::new(&vec![0xff; ty.map_or(0, size)]);
    let mut out: Vec<Aligned> = spec.results.iter().map(|ty| garbage(*ty)).collect();
    if let Some(written) = written {
        out[0].get_mut().copy_from_slice(&operands[written].bytes);
    }
    let mut workspace = Aligned::new(&vec![0xff; kernel.workspace().0 as usize]);
    let mut into: Vec<&mut [u8]> = out.iter_mut().map(Aligned::get_mut).collect();
    let step = StepContext { number: step, seed: 0 };
    kernel.run(Io::new(&slices, &mut into, workspace.get_mut()), step);
    let found: Vec<Vec<u8>> = out.iter().map(|a| a.get().to_vec()).collect();
    let check = kernel.check(&slices);
    let is_defined = check.is_ok();
    agree(&spec, operands, (&found, check), written, step);
    if written.is_none() && step.number == 0 && is_defined {
        cases::keep(&spec, results, op, operands);
    }
    Ok(found)
}

/// Runs the recipe of a node that the host has computed, and compares with the results and the answer of the host's check.
fn agree(
    spec: &Spec<'_>,
    operands: &[Tensor],
    (expected, check): (&[Vec<u8>], Result<(), String>),
    written: Option<usize>,
    step: StepContext,
) {
    let Some(shim) = shim::shim() else { return };
    let recipe = match lmsc_cuda::prepare(spec) {
        Ok(recipe) => recipe,
        // The host alone has one.
        Err(refusal) if refusal.to_string().ends_with(": CUDA devices have no kernel for it") => return,
        Err(refusal) => panic!("{refusal}"),
    };
    let given: Vec<Aligned> = operands.iter().map(|t| Aligned::new(&t.bytes)).collect();
    let libraries = recipe
        .calls
        .iter()
        .any(|call| matches!(call, Call::Products { .. } | Call::Convolution { library: Some(_), .. }));
    // With kernels alone, and with products and convolutions by libraries where there are some.
    for library in [false, true].into_iter().take(1 + usize::from(libraries)) {
        let mut out: Vec<Aligned> =
            expected.iter().map(|bytes| Aligned::new(&vec![0xff; bytes.len()])).collect();
        // Results that are written in place hold the operand.
        for &(operand, result) in &spec.in_place {
            if let Some(out) = out.get_mut(result) {
                out.get_mut().copy_from_slice(&operands[written.unwrap_or(operand)].bytes);
            }
        }
        let address = |bytes: &Aligned| if bytes.get().is_empty() { 0 } else { bytes.get().as_ptr() as u64 };
        let from: Vec<u64> = given.iter().map(address).collect();
        let to: Vec<u64> = out
            .iter_mut()
            .map(|a| if a.get().is_empty() { 0 } else { a.get_mut().as_mut_ptr() as u64 })
            .collect();
        let (from_bytes, to_bytes): (Vec<&[u8]>, Vec<&[u8]>) =
            (given.iter().map(Aligned::get).collect(), out.iter().map(Aligned::get).collect());
        shim::keep(&recipe, &from_bytes, &to_bytes, step);
        let noted = shim.run(&recipe, &from, &to, step, library).out_of_range();
        let what = format!("{} {:?}", spec.op, spec.attributes);
        assert!(out.iter().all(Aligned::is_alone), "{what}: bytes around a result are written");
        let why = noted.map(|noted| {
            assert_eq!((noted.step, u64::from(noted.command)), (step.number, shim::COMMAND), "{what}");
            recipe.range.as_ref().expect("it has a range").refusal(noted.dim, noted.value)
        });
        assert_eq!(why, check.clone().err(), "{what}");
        for (index, (expected, found)) in expected.iter().zip(&out).enumerate() {
            let element = match spec.results[index] {
                Some(lmsc_ir::Type::Tensor(tensor)) => tensor.element,
                _ => ElementType::Uint8,
            };
            let by = if library { ", by libraries" } else { "" };
            let what = format!("result {index} of {} {:?}{by}", spec.op, spec.attributes);
            // A result that is rounded only once is rounded as on the host.
            let is_exact = spec.op.name() == "Cast";
            match element {
                ElementType::Float => close(&what, &floats(found.get()), &floats(expected), [0.0, 2e-5]),
                ElementType::Double => close(&what, &doubles(found.get()), &doubles(expected), [0.0, 2e-5]),
                short @ (ElementType::Float16 | ElementType::Bfloat16) => {
                    let bits = if short == ElementType::Float16 { 11 } else { 8 };
                    let last = 0.5f32.powi(bits);
                    let rounds = if is_exact { [0.0; 2] } else { [4.0 * last, last] };
                    close(&what, &wide(short, found.get()), &wide(short, expected), rounds);
                }
                _ => assert_eq!(found.get(), expected, "{what}"),
            }
        }
    }
}

fn doubles(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|&b| f64::from_le_bytes(b) as f32).collect()
}

/// Compares with the host's result: at most these fractions of the element and of the largest element apart.
fn close(what: &str, found: &[f32], expected: &[f32], [part, of_largest]: [f32; 2]) {
    let finite = expected.iter().filter(|x| x.is_finite());
    let least = of_largest * finite.fold(0.0f32, |most, x| most.max(x.abs())) + 1e-30;
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        let same = a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= part * b.abs() + least;
        assert!(same, "{what}: element {i} of {} is {a} on the device, {b} on the host", expected.len());
    }
}

/// The results of the operator, each as floats.
pub(crate) fn run(results: &str, op: &str, operands: &[Tensor]) -> Vec<Vec<f32>> {
    run_step(results, op, operands, 0)
}

/// The same in a certain step.
pub(crate) fn run_step(results: &str, op: &str, operands: &[Tensor], step: u64) -> Vec<Vec<f32>> {
    let found = execute(results, op, operands, step, None).unwrap_or_else(|e| panic!("{e}"));
    found.iter().map(|bytes| floats(bytes)).collect()
}

/// The bytes of each result.
pub(crate) fn run_bytes(results: &str, op: &str, operands: &[Tensor]) -> Vec<Vec<u8>> {
    execute(results, op, operands, 0, None).unwrap_or_else(|e| panic!("{e}"))
}

pub(crate) fn run_int64(results: &str, op: &str, operands: &[Tensor]) -> Vec<i64> {
    let found = execute(results, op, operands, 0, None).unwrap_or_else(|e| panic!("{e}"));
    found[0].as_chunks().0.iter().map(|&b| i64::from_le_bytes(b)).collect()
}

/// The values that the operator writes over one of its operands, of the type of the last one.
pub(crate) fn run_in_place(op: &str, operands: &[Tensor], written: usize) -> Result<Vec<f32>, String> {
    let results = format!("{} y", operands.last().unwrap().ty);
    Ok(floats(&execute(&results, op, operands, 0, Some(written))?[0]))
}

/// Why there is no kernel.
pub(crate) fn refusal(results: &str, op: &str, operands: &[Tensor]) -> String {
    assert!(!Op::new("", op).name().is_empty());
    execute(results, op, operands, 0, None).expect_err("it is refused")
}

/// Compares gradients of ⟨f(operands), weights⟩ with central differences.
pub(crate) fn gradient_check(
    name: &str,
    operands: &[Tensor],
    weights: &[f32],
    f: &dyn Fn(&[Tensor]) -> Vec<f32>,
    gradients: &[(usize, &Vec<f32>)],
) {
    const STEP: f32 = 1.0 / 256.0;
    for &(operand, gradient) in gradients {
        let before = operands[operand].floats();
        assert_eq!(before.len(), gradient.len(), "{name}: operand {operand}");
        for (i, &found) in gradient.iter().enumerate() {
            let at = |by: f32| {
                let mut moved = operands.to_vec();
                let mut values = before.clone();
                values[i] += by;
                moved[operand].bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
                dot(&f(&moved), weights)
            };
            let slope = (at(STEP) - at(-STEP)) / f64::from(2.0 * STEP);
            let error = (slope - f64::from(found)).abs();
            assert!(
                error < 2e-3 * (1.0 + slope.abs()),
                "{name}: operand {operand}, element {i}: {found}, not {slope}"
            );
        }
    }
}

//! All cases that ran, as one graph with every kernel, for real devices.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};

use half::{bf16, f16};
use lmsc_cuda::prepare;
use lmsc_kernels::Spec;

use super::Tensor;

/// Operands of more bytes are inputs, and nodes with any of many more are left out.
const SMALL: usize = 256;
const LARGEST: usize = 8192;

#[derive(Default)]
struct Kept {
    kernels: BTreeSet<String>,
    inputs: Vec<String>,
    outputs: Vec<String>,
    initializers: Vec<String>,
    nodes: Vec<String>,
}

static KEPT: Mutex<Option<Kept>> = Mutex::new(None);

/// Numbers as the text form writes them.
fn values(ty: &str, bytes: &[u8]) -> Option<String> {
    macro_rules! of {
        ($t:ty) => {
            bytes
                .as_chunks()
                .0
                .iter()
                .map(|&b| format!("{:?}", <$t>::from_le_bytes(b)).replace("NaN", "nan"))
                .collect::<Vec<_>>()
        };
    }
    // Of 64 bits there is no NaN as text.
    let list = match ty.split_once('[')?.0 {
        "float" => of!(f32),
        "double" => of!(f64).into_iter().map(|x| x.replace("nan", "0.0")).collect(),
        "float16" => short(bytes, |bits| f16::from_bits(bits).to_f32()),
        "bfloat16" => short(bytes, |bits| bf16::from_bits(bits).to_f32()),
        "uint16" => of!(u16),
        "int64" => of!(i64),
        "int32" => of!(i32),
        "int16" => of!(i16),
        "int8" => of!(i8),
        "uint8" | "bool" => of!(u8),
        _ => return None,
    };
    Some(list.join(", "))
}

/// Floats of 16 bits as the text form writes them.
fn short(bytes: &[u8], number: impl Fn(u16) -> f32) -> Vec<String> {
    let all = bytes.as_chunks().0.iter().map(|&b| u16::from_le_bytes(b));
    all.map(|bits| match number(bits) {
        number if number.is_nan() => format!("nan:{bits:04x}"),
        number => format!("{number:?}"),
    })
    .collect()
}

/// Keeps the node where it has a kernel that none before it had.
pub(super) fn keep(spec: &Spec<'_>, results: &str, op: &str, operands: &[Tensor]) {
    let Ok(recipe) = prepare(spec) else { return };
    let launches =
        recipe.calls.iter().flat_map(|call| call.kernels().iter().chain(call.before()).chain(call.behind()));
    let kernels: BTreeSet<String> = launches.map(|launch| launch.kernel.clone()).collect();
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let kept = kept.get_or_insert_default();
    let tensors = || operands.iter().filter(|tensor| !tensor.ty.is_empty());
    // The node has the name of its first kernel that no other node has, so that another operator changes no names.
    let Some(first) = kernels.difference(&kept.kernels).next() else { return };
    let node: String = first.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect();
    if tensors().any(|t| t.bytes.len() > LARGEST || t.ty.contains('(')) {
        return;
    }
    let is_input = |tensor: &Tensor| tensor.ty.contains("float[") && tensor.bytes.len() > SMALL;
    let mut initializers = Vec::new();
    for (i, tensor) in operands.iter().enumerate().filter(|(_, t)| !t.ty.is_empty() && !is_input(t)) {
        let Some(values) = values(&tensor.ty, &tensor.bytes) else { return };
        initializers.push(format!("   {} {node}_o{i} = {{{values}}}", tensor.ty));
    }
    let name = |(i, tensor): (usize, &Tensor)| {
        if tensor.ty.is_empty() { "_".to_owned() } else { format!("{node}_o{i}") }
    };
    let names: Vec<String> = operands.iter().enumerate().map(name).collect();
    let results: Vec<String> = results
        .split(", ")
        .map(|result| match result.rsplit_once(' ') {
            Some((ty, name)) => format!("{ty} {node}_{name}"),
            None => result.to_owned(),
        })
        .collect();
    let inputs = operands.iter().zip(&names).filter(|(tensor, _)| is_input(tensor));
    kept.inputs.extend(inputs.map(|(tensor, name)| format!("{} {name}", tensor.ty)));
    kept.outputs.extend(results.iter().filter(|result| result.contains(' ')).cloned());
    kept.initializers.extend(initializers);
    kept.nodes.push(format!("   [{node}] {} = {op}({})", results.join(", "), names.join(", ")));
    kept.kernels.extend(kernels);
}

/// A graph of all nodes that were kept, in the text form, and their kernels.
pub(crate) fn graph() -> (String, BTreeSet<String>) {
    let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default();
    let mut text = String::new();
    // A line for each, so that another operator adds lines alone.
    let (inputs, outputs) = (kept.inputs.join(",\n   "), kept.outputs.join(",\n   "));
    _ = writeln!(text, "operators (\n   {inputs}\n) => (\n   {outputs}\n)");
    _ = writeln!(text, "<\n{}\n>\n{{\n{}\n}}", kept.initializers.join(",\n"), kept.nodes.join("\n"));
    (text, kept.kernels)
}

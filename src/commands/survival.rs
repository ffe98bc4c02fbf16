//! `lmsc verify --survives`.

use std::path::Path;

use lmsc_ir::words::count;
use lmsc_onnx::{LMSC_DOMAIN, Model, Survival};
use serde::Serialize;

use crate::{Code, Error, load};

/// The answer as JSON: numbers in the file of lmsc, and those that are left.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Survivors<'a> {
    /// Version of this format.
    format: u32,
    swap_outs: usize,
    swap_outs_left: usize,
    swap_ins: usize,
    swap_ins_left: usize,
    recomputed: usize,
    recomputed_left: usize,
    /// Functions that carry swaps.
    functions: usize,
    functions_left: usize,
    /// Names of the nodes that are gone.
    gone: &'a [String],
}

/// Counts the swaps, recomputed nodes and functions of `original` that are still in `optimized`.
pub(crate) fn survival(original: &Path, optimized: &Path, json: bool) -> Result<String, Error> {
    let open = |path: &Path| Model::open(path).map_err(|e| load::not_read(&e));
    let model = open(original)?;
    let result = lmsc_onnx::survival(&model.proto, &open(optimized)?.proto);
    if result.swap_outs + result.swap_ins + result.recomputed == 0 {
        let message = format!("{} has no swaps or recomputed nodes that could be left", original.display());
        return Err(Error::new(Code::Option, message)
            .with_help("ORIGINAL is a file that lmsc wrote, REWRITTEN what another program made of it"));
    }
    let answer = || {
        let answer = Survivors {
            format: 1,
            swap_outs: result.swap_outs,
            swap_outs_left: result.swap_outs_left,
            swap_ins: result.swap_ins,
            swap_ins_left: result.swap_ins_left,
            recomputed: result.recomputed,
            recomputed_left: result.recomputed_left,
            functions: result.functions,
            functions_left: result.functions_left,
            gone: &result.gone,
        };
        serde_json::to_string(&answer).expect("an answer is JSON")
    };
    let left = left(&result);
    if result.is_whole() {
        return Ok(if json { answer() } else { left } + "\n");
    }
    const SHOWN: usize = 10;
    let mut gone: Vec<&str> = result.gone.iter().take(SHOWN).map(|name| &**name).collect();
    let more = result.gone.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
    gone.insert(0, "");
    let swaps_left = result.swap_outs + result.swap_ins == result.swap_outs_left + result.swap_ins_left;
    let help = if as_functions(&model) && !swaps_left {
        "compile with --form ort, which writes swaps as operators that ONNX Runtime's optimizer keeps"
    } else {
        "lower the session's graph_optimization_level, down to ORT_DISABLE_ALL: the optimizer has removed what it \
         should keep"
    };
    let error =
        Error::new(Code::Lost, format!("{left}; gone are{}{more}", gone.join("\n  "))).with_help(help);
    Err(if json { error.with_answer(answer()) } else { error })
}

fn left(result: &Survival) -> String {
    let of = |left: usize, all: usize, noun: &str| format!("{left} of {}", count(all, noun));
    let outs = of(result.swap_outs_left, result.swap_outs, "swap-out");
    let ins = of(result.swap_ins_left, result.swap_ins, "swap-in");
    let mut all = vec![outs, ins];
    if result.recomputed > 0 {
        all.push(of(result.recomputed_left, result.recomputed, "recomputed node"));
    }
    if result.functions > 0 {
        all.push(of(result.functions_left, result.functions, "function"));
    }
    let last = all.pop().unwrap_or_default();
    format!("{} and {last} are left", all.join(", "))
}

/// Whether the model's swaps are functions, whose identities an optimizer removes.
fn as_functions(model: &Model) -> bool {
    model
        .proto
        .graph
        .iter()
        .flat_map(|g| &g.node)
        .any(|n| n.domain() == LMSC_DOMAIN && n.op_type().starts_with("Swap"))
}

//! `lmsc verify --survives`.

use std::path::Path;

use lmsc_onnx::Model;

use crate::Error;

/// Counts the swaps of `original` that are left in `optimized`.
pub(crate) fn survival(original: &Path, optimized: &Path, json: bool) -> Result<String, Error> {
    let open = |path: &Path| Model::open(path).map_err(|e| Error::Input(e.to_string()));
    let result = lmsc_onnx::survival(&open(original)?.proto, &open(optimized)?.proto);
    if result.swap_outs + result.swap_ins == 0 {
        return Err(Error::in_file(original, "there are no swaps in it to look for"));
    }
    let text = match json {
        true => {
            serde_json::json!({
                "swap_outs": result.swap_outs, "swap_outs_left": result.swap_outs_left,
                "swap_ins": result.swap_ins, "swap_ins_left": result.swap_ins_left, "gone": result.gone,
            })
            .to_string()
                + "\n"
        }
        false => {
            let mut text = format!(
                "{} of {} swap-outs and {} of {} swap-ins are left\n",
                result.swap_outs_left, result.swap_outs, result.swap_ins_left, result.swap_ins
            );
            for name in result.gone.iter().take(10) {
                text += &format!("gone: {name}\n");
            }
            text
        }
    };
    match (result.is_whole(), json) {
        (true, _) => Ok(text),
        (false, true) => Err(Error::NoAsJson(text.trim_end().to_owned())),
        (false, false) => Err(Error::No(text.trim_end().to_owned())),
    }
}

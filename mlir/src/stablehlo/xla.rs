//! The form for XLA: placement and order as JAX writes them.

use super::Form;
use crate::types::push;

/// For JAX's XLA.
pub(crate) struct Xla;

impl Form for Xla {
    fn barrier(&self) -> &'static str {
        "stablehlo.optimization_barrier"
    }

    fn transfer(&self, host: bool) -> (&'static str, String) {
        let place = if host { "pinned_host" } else { "device" };
        let attributes = format!(
            "<{{backend_config = \"\", call_target_name = \"annotate_device_placement\", has_side_effect = true}}> {{mhlo.frontend_attributes = {{_xla_buffer_placement = \"{place}\"}}}}"
        );
        ("stablehlo.custom_call", attributes)
    }

    fn place(&self, out: &mut String, host: bool, returns_as: Option<usize>) {
        if host {
            out.push_str(", mhlo.memory_kind = \"pinned_host\"");
        }
        if let Some(result) = returns_as {
            push(out, format_args!(", tf.aliasing_output = {result} : i32"));
        }
    }

    fn function(&self) -> &'static str {
        ""
    }

    fn anchors(&self) -> bool {
        false
    }

    fn splits_windows(&self) -> bool {
        false
    }

    fn hoists(&self) -> bool {
        true
    }
}

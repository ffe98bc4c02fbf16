//! The form for IREE: two devices, `dev` and `host`, which the user of the compiler defines.

use super::Form;

/// For IREE.
pub(crate) struct Iree;

impl Form for Iree {
    /// Without a barrier between them, IREE removes two transfers to the host and back.
    fn barrier(&self) -> &'static str {
        "util.optimization_barrier"
    }

    fn transfer(&self, host: bool) -> (&'static str, String) {
        ("flow.tensor.transfer", format!("<{{target = {}}}>", device(host)))
    }

    /// A variable's new value is a result of its own: IREE does not write into the caller's buffers.
    fn place(&self, out: &mut String, host: bool, _returns_as: Option<usize>) {
        // Also on the device: otherwise a result that is only copied to the host would be assumed to be there already.
        out.push_str(", iree.abi.affinity = ");
        out.push_str(device(host));
    }

    /// The device on which operators run; otherwise IREE runs some on the host if their results go there.
    fn function(&self) -> &'static str {
        " attributes {stream.affinity = #hal.device.promise<@dev>}"
    }

    /// IREE assumes for all operands of a barrier the ownership of the first one. If that is an argument, all operands may be
    /// held by the caller, too; otherwise they could not be returned.
    fn anchors(&self) -> bool {
        true
    }

    fn splits_windows(&self) -> bool {
        true
    }

    fn hoists(&self) -> bool {
        false
    }
}

fn device(host: bool) -> &'static str {
    if host { "#hal.device.promise<@host>" } else { "#hal.device.promise<@dev>" }
}

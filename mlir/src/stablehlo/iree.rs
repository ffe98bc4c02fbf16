//! How IREE is told where tensors are, and what waits for what: two devices, `dev` and `host`, which whoever compiles names.

use super::Form;

/// For IREE.
pub(crate) struct Iree;

impl Form for Iree {
    /// Without one between them, IREE takes two transfers, there and back, for none.
    fn barrier(&self) -> &'static str {
        "util.optimization_barrier"
    }

    fn transfer(&self, host: bool) -> (&'static str, String) {
        ("flow.tensor.transfer", format!("<{{target = {}}}>", device(host)))
    }

    /// A variable's new value is a result of its own: the caller's buffers are the caller's.
    fn place(&self, out: &mut String, host: bool, _returns_as: Option<usize>) {
        // On the device, too: what is only copied to the host would be taken to be there already.
        out.push_str(", iree.abi.affinity = ");
        out.push_str(device(host));
    }

    /// Where operators run, or IREE has some run on the host whose results go there.
    fn function(&self) -> &'static str {
        " attributes {stream.affinity = #hal.device.promise<@dev>}"
    }

    /// IREE has one notion of all that goes through a barrier, that of what is first: who else may hold it. What an argument
    /// is, everything may be: held by the caller. What is not could not be returned.
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

//! Signals that end a run.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_shutdown};

use crate::progress::stop_listening;

/// What the first Ctrl-C, the first request to end, or the end of the terminal sets from now on; the second one ends the
/// process at once.
///
/// A signal that whoever started the process has it ignore, as `nohup` does, is ignored.
pub(crate) fn listen() -> Arc<AtomicBool> {
    stop_listening();
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|&signal| !is_ignored(signal)) {
        // In this order: the first signal finds the flag not set yet. Where it cannot be listened to, it ends the process.
        let second = register_conditional_shutdown(signal, 128 + signal, Arc::clone(&flag));
        _ = second.and_then(|_| register(signal, Arc::clone(&flag)));
    }
    flag
}

/// Whether the process ignores the signal.
pub(crate) fn is_ignored(signal: i32) -> bool {
    ignored() >> (signal - 1) & 1 == 1
}

/// The signals that the process ignores, the first in the lowest bit; none where the system does not say.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let digits = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    digits.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok()).unwrap_or_default()
}

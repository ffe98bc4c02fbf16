//! Signals that end a run or a search.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_default, register_conditional_shutdown};

/// A flag that is set by the first Ctrl-C, request to terminate, or hang-up of the terminal from now on; the second
/// signal ends the process at once.
///
/// A signal that the process was started to ignore, as by `nohup`, stays ignored.
pub(crate) fn listen() -> Arc<AtomicBool> {
    stop_listening();
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|&signal| !is_ignored(signal)) {
        // In this order, as the first signal must find the flag unset. If no handler can be registered, the signal
        // ends the process.
        let second = register_conditional_shutdown(signal, 128 + signal, Arc::clone(&flag));
        _ = second.and_then(|_| register(signal, Arc::clone(&flag)));
    }
    flag
}

/// Whether the process ignores the signal.
pub(crate) fn is_ignored(signal: i32) -> bool {
    ignored() >> (signal - 1) & 1 == 1
}

/// The signals that the process ignores, the first in the lowest bit; 0 if the system does not report them.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let digits = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    digits.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok()).unwrap_or_default()
}

/// The signal handlers of searches.
static LISTENERS: Mutex<Vec<SigId>> = Mutex::new(Vec::new());

/// Registers a handler that sets the flag on the first Ctrl-C; once the flag is set, Ctrl-C ends the program.
pub(crate) fn ends_search(flag: &Arc<AtomicBool>) {
    stop_listening();
    if is_ignored(SIGINT) {
        return;
    }
    // In this order, as the first signal must find the flag unset. If no handler can be registered, Ctrl-C ends the
    // process.
    let second = register_conditional_default(SIGINT, Arc::clone(flag));
    let both = second.and_then(|second| Ok([second, register(SIGINT, Arc::clone(flag))?]));
    LISTENERS.lock().unwrap_or_else(PoisonError::into_inner).extend(both.into_iter().flatten());
}

/// Removes the handlers of searches.
fn stop_listening() {
    let mut listeners = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner);
    for listener in listeners.drain(..) {
        signal_hook::low_level::unregister(listener);
    }
}

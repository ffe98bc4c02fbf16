//! Signals that end a run.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_shutdown};

/// What the first Ctrl-C, or the first request to end, sets from now on; the second one ends the process at once.
pub(super) fn listen() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // In this order: the first signal finds the flag not set yet. Where it cannot be listened to, it ends the process.
        let second = register_conditional_shutdown(signal, 128 + signal, Arc::clone(&flag));
        _ = second.and_then(|_| register(signal, Arc::clone(&flag)));
    }
    flag
}

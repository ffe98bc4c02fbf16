//! The clock of tests that bound how long something takes.

use std::time::Duration;

/// The processor time that this thread has used. Other programs on the machine do not add to it.
pub(crate) fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("it is not negative")
}

//! Measures the link between the host and a device.

use std::cell::Cell;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Scope;
use std::time::{Duration, Instant};

use lmsc_cuda as cuda;
use lmsc_ir::program::Stream;
use lmsc_plan::problem::Duplex;
use lmsc_plan::target::TargetLink;
use lmsc_runtime::RunError;

use crate::job::Device;

/// How much repeated measurements differ: the time at the third quartile divided by the time at the first quartile.
#[derive(Clone, Copy)]
pub(crate) struct Spread(f64);

impl Spread {
    /// Above this, something else ran on the machine.
    const LARGE: f64 = 1.25;

    /// 1 for fewer than four measurements: they say nothing about their spread.
    pub(crate) fn of(times: &[Duration]) -> Spread {
        let mut times = times.to_vec();
        times.sort_unstable();
        let quartile = |part: usize| times[part * (times.len() - 1) / 4].as_secs_f64().max(1e-9);
        Spread(if times.len() < 4 { 1.0 } else { quartile(3) / quartile(1) })
    }

    pub(crate) fn max(self, other: Spread) -> Spread {
        Spread(self.0.max(other.0))
    }

    /// A line with advice where the spread is large; else nothing.
    pub(crate) fn text(self) -> String {
        if self.0 < Spread::LARGE {
            return String::new();
        }
        let percent = (self.0 - 1.0) * 100.0;
        format!(
            "Repeated measurements differ by {percent:.0} % (third quartile to first): measure again when nothing else runs.\n"
        )
    }
}

pub(crate) fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// The bandwidths and latency between the device and the host, measured with copies of at most `most` bytes.
pub(crate) fn link_of(device: Device, most: u64) -> Result<TargetLink, RunError> {
    measured_link(device, most).map(|(link, _)| link)
}

/// The link, and by how much copies of the same size differ.
pub(crate) fn measured_link(device: Device, most: u64) -> Result<(TargetLink, Spread), RunError> {
    match device {
        Device::Host => std::thread::scope(|scope| {
            let threads = [Copier::new(scope, Stream::Out)?, Copier::new(scope, Stream::In)?];
            link(most, |way, bytes, beside| Ok(Copier::time(&threads, way, bytes, beside)))
        }),
        Device::Cuda { ordinal, .. } => {
            let copies = cuda::Copies::new(ordinal, most)?;
            link(most, |way, bytes, beside| copies.time(way, bytes, beside))
        }
    }
}

/// The size of a copy whose time is the latency, in bytes.
pub(crate) const LEAST: u64 = 256;

/// The largest copy that is measured, if there is memory for it.
pub(crate) const MOST: u64 = 32 << 20;

/// The link that fits the copy times of `time`, which gets the direction, the bytes, and whether the other
/// direction is busy; and by how much its times for the largest copies differ.
fn link(
    most: u64,
    mut time: impl FnMut(Stream, u64, bool) -> Result<Duration, RunError>,
) -> Result<(TargetLink, Spread), RunError> {
    let spread = Cell::new(Spread(1.0));
    let mut typical = |way, bytes, beside, times: usize| {
        // The first copy runs with cold memory and caches.
        let all = (0..=times).map(|_| time(way, bytes, beside)).collect::<Result<Vec<_>, _>>()?;
        if bytes == most {
            spread.set(spread.get().max(Spread::of(&all[1..])));
        }
        Ok::<_, RunError>(median(all[1..].to_vec()))
    };
    // A higher latency of one direction is counted with the bytes.
    let latency = typical(Stream::Out, LEAST, false, 25)?.min(typical(Stream::In, LEAST, false, 25)?);
    let mut rate = |way, beside| {
        let (mut bytes, mut seconds) = (0, 0.0);
        for size in [most / 16, most / 4, most] {
            bytes += size;
            seconds += typical(way, size, beside, 5)?.saturating_sub(latency).as_secs_f64();
        }
        Ok::<_, RunError>(((bytes as f64 / seconds.max(1e-9)) as u64).max(1))
    };
    let [out, into] = [rate(Stream::Out, false)?, rate(Stream::In, false)?];
    let link = TargetLink {
        duplex: Duplex::Full,
        out_bytes_per_second: out,
        in_bytes_per_second: into,
        // A copy is not faster while the other direction is busy.
        out_beside_in_bytes_per_second: Some(rate(Stream::Out, true)?.min(out)),
        in_beside_out_bytes_per_second: Some(rate(Stream::In, true)?.min(into)),
        latency_nanos: latency.as_nanos() as u64,
    };
    Ok((link, spread.get()))
}

/// A thread that runs copies, as the copy threads of a session do.
struct Copier {
    requests: Sender<(Instant, u64)>,
    took: Receiver<Duration>,
}

impl Copier {
    fn new<'scope>(scope: &'scope Scope<'scope, '_>, stream: Stream) -> Result<Copier, RunError> {
        let ((requests, requested), (done, took)) = (channel::<(Instant, u64)>(), channel());
        let copy = move || {
            let (from, mut to) = (vec![1u8; MOST as usize], vec![2u8; MOST as usize]);
            for (since, bytes) in requested {
                to[..bytes as usize].copy_from_slice(std::hint::black_box(&from[..bytes as usize]));
                std::hint::black_box(&mut to);
                _ = done.send(since.elapsed());
            }
        };
        let started = std::thread::Builder::new().spawn_scoped(scope, copy);
        started.map_err(|error| RunError::NoThread { stream, why: error.to_string() })?;
        Ok(Copier { requests, took })
    }

    fn copy(&self, bytes: u64) {
        _ = self.requests.send((Instant::now(), bytes));
    }

    /// The time from the request of a copy until its end. `threads` are the one for copies out and the one for
    /// copies in.
    fn time(threads: &[Copier; 2], way: Stream, bytes: u64, beside: bool) -> Duration {
        let [out, into] = threads;
        let (this, other) = if way == Stream::In { (into, out) } else { (out, into) };
        // The other direction is busy from before this copy begins until after it ends.
        let [before, behind] = if beside { [1, 2] } else { [0, 0] };
        (0..before).for_each(|_| other.copy(bytes));
        this.copy(bytes);
        (0..behind).for_each(|_| other.copy(bytes));
        (0..before + behind).for_each(|_| _ = other.took.recv());
        this.took.recv().expect("copying does not panic")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measurements_that_differ_are_told() {
        let spread = |millis: &[u64]| {
            Spread::of(&millis.iter().map(|&m| Duration::from_millis(m)).collect::<Vec<_>>())
        };
        assert_eq!(spread(&[10, 11, 10, 10, 30]).text(), "");
        assert_eq!(spread(&[10, 90]).text(), "");
        assert!(spread(&[20, 10, 10, 20, 20]).text().contains("by 100 %"));
        assert!(spread(&[10; 5]).max(spread(&[10, 10, 15, 15])).text().contains("by 50 %"));
    }
}

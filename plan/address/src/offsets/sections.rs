//! Time, cut where lifetimes begin and end.

use super::Buffer;

/// Sections of time during which nothing is allocated or freed.
pub(super) struct Sections {
    /// The start of each; the last entry is the end of the last one.
    pub(super) starts: Vec<u64>,
}

impl Sections {
    /// The sections of the buffers.
    pub(super) fn of(buffers: &[Buffer]) -> Sections {
        let mut starts: Vec<u64> = buffers
            .iter()
            .flat_map(|buffer| buffer.present().flat_map(|(_, part)| [part.live.start, part.live.end]))
            .collect();
        starts.sort_unstable();
        starts.dedup();
        Sections { starts }
    }

    /// The number of sections.
    pub(super) fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// The section that begins at this moment, at which a lifetime begins or ends.
    pub(super) fn at(&self, moment: u64) -> u32 {
        self.starts.partition_point(|&start| start < moment) as u32
    }

    /// For each section, the live bytes.
    pub(super) fn load(&self, buffers: &[Buffer]) -> Vec<u64> {
        let mut change = vec![0i128; self.len() + 1];
        for (_, part) in buffers.iter().flat_map(Buffer::present) {
            change[self.at(part.live.start) as usize] += i128::from(part.bytes);
            change[self.at(part.live.end) as usize] -= i128::from(part.bytes);
        }
        let sums = change.iter().scan(0i128, |sum, change| {
            *sum += change;
            Some((*sum).min(u64::MAX.into()) as u64)
        });
        sums.take(self.len()).collect()
    }
}

//! Addresses backed by chunks of memory.

use std::collections::BTreeMap;
use std::ops::Range;

use super::{Launch, PlacedTensor};

/// The chunk of memory mapped to each address range of an arena; several ranges may have the same chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Bytes of a chunk, at least 1.
    pub chunk: u64,
    /// By position in the addresses, counted in chunks, the number of the chunk; none if no chunk is mapped.
    pub chunks: Vec<Option<u32>>,
}

impl Mapping {
    /// The memory behind a span of addresses, in pieces, each with its offset in the span; none if one of the addresses has no
    /// chunk.
    ///
    /// ```
    /// let mapping = lmsc_ir::program::Mapping { chunk: 10, chunks: vec![Some(1), Some(0), None] };
    /// assert_eq!(mapping.pieces(4..13), Some(vec![(0, 14..20), (6, 0..3)]));
    /// assert_eq!(mapping.pieces(19..21), None);
    /// ```
    pub fn pieces(&self, span: Range<u64>) -> Option<Vec<(u64, Range<u64>)>> {
        let mut pieces = Vec::new();
        let mut at = span.start;
        while at < span.end {
            let (spot, within) = (at / self.chunk, at % self.chunk);
            let chunk = u64::from((*self.chunks.get(usize::try_from(spot).ok()?)?)?);
            let bytes = (self.chunk - within).min(span.end - at);
            let start = chunk * self.chunk + within;
            pieces.push((at - span.start, start..start + bytes));
            at += bytes;
        }
        Some(pieces)
    }

    /// Whether different addresses that the launch uses are different bytes of memory.
    pub(super) fn keeps_apart(&self, launch: &Launch) -> bool {
        let tensors = launch.operands.iter().chain(&launch.results).flatten().filter_map(PlacedTensor::span);
        let mut spots: BTreeMap<u32, usize> = BTreeMap::new();
        for span in tensors.chain([launch.workspace.clone()]).filter(|span| !span.is_empty()) {
            for spot in span.start / self.chunk..span.end.div_ceil(self.chunk) {
                let spot = spot as usize;
                let Some(Some(chunk)) = self.chunks.get(spot) else { return false };
                if *spots.entry(*chunk).or_insert(spot) != spot {
                    return false;
                }
            }
        }
        true
    }
}

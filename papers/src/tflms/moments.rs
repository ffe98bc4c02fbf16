//! Bytes by moment: at the nodes, and between them.

use super::Analysis;
use super::absence::Candidate;

/// For each tick, transient bytes with the chosen storages swapped out as long as possible.
pub(super) fn ideal<'c>(analysis: &Analysis<'_>, chosen: impl Iterator<Item = &'c Candidate>) -> Vec<i64> {
    let transient = &analysis.transient;
    let mut deltas = vec![0i64; transient.len() + 1];
    for candidate in chosen {
        for range in &candidate.away {
            deltas[range.start as usize] -= candidate.bytes.0 as i64;
            deltas[range.end as usize] += candidate.bytes.0 as i64;
        }
    }
    let mut away = 0;
    let reduce = |(bytes, delta): (&i64, &i64)| {
        away += delta;
        bytes + away
    };
    transient.iter().zip(&deltas).map(reduce).collect()
}

/// The moment between the node of this tick and the next; moments alternate between nodes and the gaps between them.
pub(super) fn after(tick: u32) -> usize {
    2 * tick as usize + 1
}

/// The moment between the node of this tick and the previous one.
pub(super) fn before(tick: u32) -> usize {
    (2 * tick as usize).saturating_sub(1)
}

/// For each moment, transient bytes with these storages swapped out as long as possible. Encoded storages have `true`: all
/// encodings and decodings between two nodes are counted there together.
pub(super) fn moments<'c>(
    analysis: &Analysis<'_>,
    swaps: impl Iterator<Item = (&'c Candidate, bool)>,
) -> Vec<i64> {
    let mut deltas = vec![0i64; 2 * analysis.transient.len() + 1];
    let mut add = |from: usize, to: usize, bytes: i64| {
        deltas[from] += bytes;
        deltas[to] -= bytes;
    };
    for (candidate, encoded) in swaps {
        let bytes = candidate.bytes.0 as i64;
        for range in &candidate.away {
            add(before(range.start), before(range.end), -bytes);
        }
        if let Some(half) = candidate.half.filter(|_| encoded) {
            let half = half.0 as i64;
            let encoding = after(candidate.last_early);
            add(encoding, encoding + 1, bytes + half);
            for swap_in in &candidate.ins {
                let decoding = before(analysis.tick(swap_in.uses[0].0));
                add(after(analysis.tick(swap_in.trigger)), decoding, half - bytes);
                add(decoding, decoding + 1, half);
            }
        }
    }
    let plain = analysis.transient.iter().zip(&analysis.between).flat_map(|(node, gap)| [node, gap]);
    let mut away = 0;
    let reduce = |(bytes, delta): (&i64, &i64)| {
        away += delta;
        bytes + away
    };
    plain.zip(&deltas).map(reduce).collect()
}

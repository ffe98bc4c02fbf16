//! Chooses the storages that are encoded around the transfer (TFLMS §4.2.1).
//!
//! The paper writes a swap as `f⁻¹ ∘ f`, takes the identity for `f`, and leaves encodings open. Its `f` runs on the CPU and
//! saves host memory. Here `f` runs on the device and saves as many bytes of the link, which is the bottleneck of swapping.
//! It must be exact, and one encoding is: a 64-bit integer whose definition keeps it below 2³¹, such as the index of a
//! maximum, can be stored as a 32-bit integer. Graphs that train pooling hold many of them. (A mask has one byte per element
//! already, and values read only for their shapes need no memory.)
//!
//! It is an option, and not the default: identity copies are right for every operator, while this relies on operators keeping
//! to their ranges; and it adds nodes that compute.
//!
//! The device briefly holds more: the storage and its encoded copy, while it is encoded and while it is decoded. So the
//! storage is encoded after its last use before the swap, and decoded right before its first use; and only where these
//! moments stay within the limit.

use std::cmp::Reverse;

use lmsc_ir::Graph;

use super::absence::{Candidate, Candidates};
use super::{Analysis, moments};

/// For each candidate, whether it is encoded: of the chosen ones, the largest first, those whose encoding and decodings, together
/// with the other bytes in use, stay within `limit` bytes and do not raise the peak.
pub(super) fn choose(
    analysis: &Analysis<'_>,
    candidates: &Candidates,
    chosen: &[bool],
    limit: i64,
) -> Vec<bool> {
    let found = &candidates.found;
    let mut encoded = vec![false; found.len()];
    let mut possible: Vec<usize> =
        (0..found.len()).filter(|&i| chosen[i] && found[i].half.is_some()).collect();
    // In a graph that has copies already, more bytes than `Analysis::between` may be in use between two nodes.
    if possible.is_empty() || analysis.graph.order().iter().any(|&n| analysis.graph.node(n).op.is_swap()) {
        return encoded;
    }
    possible.sort_by_key(|&i| (Reverse(found[i].bytes), i));
    // Bytes with all the swaps, and with none: if only some of them are applied, the peak must not rise either.
    let swapped = found.iter().zip(chosen).filter(|(_, chosen)| **chosen).map(|(c, _)| (c, false));
    let mut with = moments::moments(analysis, swapped);
    let mut without = moments::moments(analysis, std::iter::empty());
    let peak = analysis.memory.transient_peak().0 as i64;
    let limit = limit.min(peak);
    let mut room = room(analysis.graph);
    for index in possible {
        let Candidate { half: Some(half), bytes, ins, last_early, .. } = &found[index] else { continue };
        let defined = half.0.saturating_add(bytes.0.saturating_mul(ins.len() as u64));
        let (bytes, half) = (bytes.0 as i64, half.0 as i64);
        // In the plan, the storage is swapped out from its encoding on.
        let encoding = (moments::after(*last_early), bytes + half);
        let decodings = ins.iter().map(|i| (moments::before(analysis.tick(i.uses[0].0)), half));
        let added: Vec<(usize, i64)> = std::iter::once(encoding).chain(decodings).collect();
        let fits =
            |&(moment, more): &(usize, i64)| with[moment] + more <= limit && without[moment] + half <= peak;
        if defined < room && added.iter().all(fits) {
            for (moment, more) in added {
                with[moment] += more;
                without[moment] += half;
            }
            room -= defined;
            encoded[index] = true;
        }
    }
    encoded
}

/// The number of bytes by which the values of the graph may still grow (I5).
fn room(graph: &Graph) -> u64 {
    let sizes = graph.values().filter_map(|(_, value)| value.ty.byte_size());
    (1u64 << 60).saturating_sub(sizes.fold(0, |sum, bytes| bytes.0.saturating_add(sum)))
}

#[cfg(test)]
mod tests {
    use lmsc_ir::Bytes;

    use super::*;
    use crate::tflms::absence::half;
    use crate::tflms::{Params, plan};

    fn half_of(produce: &str) -> Option<u64> {
        let text = format!(
            "g (float[2,9] x, int64[2,9] k, float[2,2147483649] long) => (float[2,9] x) {{ [n] {produce} }}"
        );
        let graph = Graph::parse(&text).unwrap();
        half(&graph, graph.value_named("v").unwrap()).map(|bytes| bytes.0)
    }

    /// TFLMS §4.2.1: `f` needs an inverse.
    #[test]
    fn indices_are_encoded_where_32_bits_hold_them() {
        assert_eq!(half_of("float[4] m, int64[4] v = MaxPool(x)"), Some(16));
        assert_eq!(half_of("float[4] m, int64[4] v = TopK(x)"), Some(16));
        for op in ["ArgMax", "ArgMin", "NonZero"] {
            assert_eq!(half_of(&format!("int64[4] v = {op}(x)")), Some(16));
            assert_eq!(half_of(&format!("int64[4] v = {op}(long)")), None);
        }
        assert_eq!(half_of("float[4] m, int64[4] v = MaxPool(long)"), None);
        assert_eq!(half_of("float[4] m, int64[4] v = TopK(long)"), None);
    }

    #[test]
    fn unbounded_integers_are_not_encoded() {
        assert_eq!(half_of("int64[4] v = Abs(k)"), None);
        assert_eq!(half_of("int64[4] v = MaxPool(k)"), None, "result 0 is a value, not an index");
        assert_eq!(half_of("int64[4] v, int64[4] i = TopK(k)"), None);
        assert_eq!(half_of("int64[4] v = my.ArgMax(x)"), None);
        assert_eq!(half_of("float[4] m, int32[4] v = MaxPool(x)"), None, "it has 32 bits already");
        assert_eq!(half_of("float[4] v = Relu(x)"), None);
    }

    fn bytes_out(huge: u64) -> u64 {
        let text = format!(
            "g (float[1,1,4,4] x, float[{huge}] huge) => (float[] loss, float[1,1,4,4] e) {{
                [pool] float[1,1,2,2] p, int64[1,1,2,2] i = MaxPool(x)
                [a] float[1,1,8,8] a = Tanh(p)
                [loss] float[] loss = ReduceMean(a)
                [d1] float[1,1,8,8] d1 = com.microsoft.MeanGrad(loss, a)
                [d2] float[1,1,2,2] d2 = com.microsoft.TanhGrad(d1)
                [d3] float[1,1,4,4] e = MaxPoolGrad(d2, i)
            }}"
        );
        let graph = Graph::parse(&text).unwrap();
        lmsc_ir::verify(&graph).unwrap();
        let params = Params { encode: true, incl_types: vec!["MaxPool".to_owned()], ..Params::default() };
        plan(&Analysis::new(&graph, &params, |_| Bytes::ZERO), &params, None).bytes_out().0
    }

    #[test]
    fn the_values_of_the_graph_stay_countable() {
        // Of the 2⁶⁰ bytes that a valid graph may have (I5), 92 or 12 are left; 48 are needed.
        assert_eq!(bytes_out((1 << 58) - 200), 16);
        assert_eq!(bytes_out((1 << 58) - 180), 32);
    }
}

//! Tensors that are copied in ranges of their elements, and the unit of memory for them: runs of bytes.
//!
//! `SwapOut<begin, end>(x)` copies some elements of `x`, counted in row-major order, into a host tensor of one dimension; a
//! SwapIn copies them back. `Join<begins>(x, …)` then names the whole again, without a copy: its operands from the second on are
//! ranges that were swapped in, and begin at `begins`; all other elements are those of `x`. If there are no others, `x` is left
//! out, and `dims` gives the dimensions of the whole.
//!
//! A variable that is on the host between steps is also swapped in by ranges, with `SwapIn<begin, end>(v)`, and swapped out by
//! SwapOuts of ranges that a Join on the host combines, as an update of `v`: the ranges are parts of the memory of `v`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use cranelift_entity::{PrimaryMap, SecondaryMap, entity_impl};

use crate::{Attr, Bytes, Graph, Node, NodeId, StorageId, Storages, TensorType, Type, ValueId};

/// A run of a [`Storages`] table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(u32);
entity_impl!(RunId, "r");

/// Bytes of a storage with one live range.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// The storage whose definition creates them.
    pub storage: StorageId,
    /// Their offset in it.
    pub begin: u64,
    /// Their number.
    pub bytes: Bytes,
}

/// The elements that a swap copies, if it does not copy all.
pub fn copied_elements(node: &Node) -> Option<Range<u64>> {
    let bound = |name| match node.attribute(name) {
        Some(&Attr::Int(value)) => u64::try_from(value).ok(),
        _ => None,
    };
    (node.op.is_swap() && !node.attributes.is_empty()).then(|| Some(bound("begin")?..bound("end")?))?
}

/// The pieces of a Join that have a type and a position, with their elements in the whole.
pub fn joined_elements(graph: &Graph, join: &Node) -> Vec<(ValueId, Range<u64>)> {
    let begins: &[i64] = match join.attribute("begins") {
        Some(Attr::Ints(begins)) => begins,
        _ => &[],
    };
    let pieces = join.operands.iter().skip(1).zip(begins).filter_map(|(piece, &begin)| {
        let count = graph.value((*piece)?).ty.as_tensor()?.element_count()?;
        let begin = u64::try_from(begin).ok()?;
        Some(((*piece)?, begin..begin.checked_add(count)?))
    });
    pieces.collect()
}

/// The pieces of a Join, each with its byte offset in the whole.
pub fn joined_bytes(graph: &Graph, join: &Node, whole: ValueId) -> Vec<(ValueId, u64)> {
    let bits = graph.value(whole).ty.as_tensor().map_or(0, |tensor| tensor.element.bits());
    let pieces = joined_elements(graph, join).into_iter();
    let begin = |elements: Range<u64>| (u128::from(elements.start) * u128::from(bits) / 8) as u64;
    pieces.map(|(piece, elements)| (piece, begin(elements))).collect()
}

/// By storage that is a range of a variable on the host: the variable's storage and the byte offset in it. The range aliases the
/// variable and takes no memory of its own.
pub fn ranges_at_home(
    graph: &Graph,
    storages: &Storages,
) -> SecondaryMap<StorageId, Option<(StorageId, u64)>> {
    let mut at_home = SecondaryMap::new();
    let joins = graph.order().iter().map(|&id| graph.node(id)).filter(|node| node.op.is_join());
    for (join, update) in joins.filter_map(|join| Some((join, join.updates.first()?))) {
        let variable = storages.storage(update.variable);
        for (piece, begin) in joined_bytes(graph, join, update.variable) {
            at_home[storages.storage(piece)] = Some((variable, begin));
        }
    }
    at_home
}

/// The type of a range of the tensor's elements, if the range consists of whole bytes.
pub(crate) fn range_type(whole: &TensorType, elements: &Range<u64>) -> Option<Type> {
    let count = whole.element_count()?;
    let is_byte =
        |place: u64| place == count || u128::from(place) * u128::from(whole.element.bits()) % 8 == 0;
    let fits = elements.start < elements.end && elements.end <= count;
    (fits && is_byte(elements.start) && is_byte(elements.end))
        .then(|| TensorType::new(whole.element, [elements.end - elements.start]).into())
}

/// The byte offset of the end of the first `elements` elements of the type.
fn bytes_of(ty: &TensorType, elements: u64) -> u64 {
    (u128::from(elements) * u128::from(ty.element.bits())).div_ceil(8).min(1 << 60) as u64
}

/// The byte range of some elements.
fn byte_range(ty: &Type, elements: Range<u64>) -> Range<u64> {
    match ty.as_tensor() {
        Some(tensor) => bytes_of(tensor, elements.start)..bytes_of(tensor, elements.end),
        None => 0..0,
    }
}

/// Maximum number of entries in all lists of runs together. Real graphs stay far below; in a graph that exceeds it, joins are
/// treated as copies.
const MOST_RUNS: usize = 1 << 20;

/// The runs of all storages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runs {
    pub(crate) all: PrimaryMap<RunId, Run>,
    /// For each storage, the begin and the end of its list.
    lists: Vec<(u32, u32)>,
    /// Runs, each with its offset in the storage that it is listed for.
    entries: Vec<(u64, RunId)>,
    /// Whether the maximum was exceeded.
    pub(crate) too_many: bool,
}

impl Runs {
    pub(crate) fn of(graph: &Graph, storages: &Storages) -> Runs {
        let mut runs = Runs { lists: vec![(0, 0); storages.len()], ..Runs::default() };
        let cuts = cuts(graph, storages);
        runs.too_many = cuts.is_none();
        let cuts = cuts.unwrap_or_default();
        for (id, storage) in storages.iter() {
            let from = runs.entries.len() as u32;
            let join = graph.producer(storage.root).filter(|&n| graph.node(n).op.is_join() && !runs.too_many);
            match join {
                Some(join) => runs.join(graph, storages, id, graph.node(join)),
                None => runs.cut(id, 0..storage.bytes.0, cuts.get(&id)),
            }
            runs.lists[id.as_u32() as usize] = (from, runs.entries.len() as u32);
            if runs.entries.len() > MOST_RUNS + storages.len() {
                runs.too_many = true;
            }
        }
        runs
    }

    /// The runs of the storage, with their offsets in it.
    pub(crate) fn list(&self, storage: StorageId) -> &[(u64, RunId)] {
        let (from, to) = self.lists[storage.as_u32() as usize];
        &self.entries[from as usize..to as usize]
    }

    /// Lists new runs for these bytes.
    fn cut(&mut self, storage: StorageId, bytes: Range<u64>, cuts: Option<&BTreeSet<u64>>) {
        let mut begin = bytes.start;
        let inner =
            cuts.into_iter().flat_map(|cuts| cuts.range(bytes.start + 1..bytes.end.max(bytes.start + 1)));
        for end in inner.copied().chain([bytes.end]) {
            let run = self.all.push(Run { storage, begin, bytes: Bytes(end - begin) });
            self.entries.push((begin, run));
            begin = end;
        }
    }

    /// Lists the runs of a joined tensor: the pieces, and between them the runs of the base.
    fn join(&mut self, graph: &Graph, storages: &Storages, id: StorageId, join: &Node) {
        let whole = &graph.value(storages.get(id).root).ty;
        let end = storages.get(id).bytes.0;
        let base = join.operands.first().copied().flatten().map(|base| storages.storage(base));
        let base = base.filter(|&base| storages.get(base).bytes.0 == end);
        let mut at = 0;
        let pieces = joined_elements(graph, join).into_iter();
        let pieces = pieces.map(|(piece, elements)| (Some(piece), byte_range(whole, elements)));
        for (piece, bytes) in pieces.chain([(None, end..end)]) {
            if bytes.start < at || bytes.end > end {
                continue;
            }
            match base {
                Some(base) => self.repeat(base, at..bytes.start, 0),
                None if at < bytes.start => self.cut(id, at..bytes.start, None),
                None => {}
            }
            if let Some(piece) = piece {
                let length = bytes.end - bytes.start;
                self.repeat(storages.storage(piece), 0..length, bytes.start);
            }
            at = bytes.end;
        }
    }

    /// Lists the runs of another storage that are in a range of it, moved by `moved` bytes.
    fn repeat(&mut self, storage: StorageId, bytes: Range<u64>, moved: u64) {
        let (from, to) = self.lists[storage.as_u32() as usize];
        for index in from as usize..to as usize {
            let (begin, run) = self.entries[index];
            if bytes.contains(&begin) {
                self.entries.push((begin + moved, run));
            }
        }
    }
}

/// For each storage, the offsets at which its bytes are cut into runs.
#[derive(Default)]
struct Cuts {
    places: BTreeMap<StorageId, BTreeSet<u64>>,
    count: usize,
}

impl Cuts {
    fn add(&mut self, storage: StorageId, places: impl IntoIterator<Item = u64>) {
        let of_storage = self.places.entry(storage).or_default();
        let before = of_storage.len();
        of_storage.extend(places);
        self.count += of_storage.len() - before;
    }
}

/// For each storage, the offsets at which its bytes are cut into runs; `None` if there are too many of them.
fn cuts(graph: &Graph, storages: &Storages) -> Option<BTreeMap<StorageId, BTreeSet<u64>>> {
    let mut cuts = Cuts::default();
    // From the end: a cut in a joined tensor is also a cut in the tensors that it is joined from.
    for &id in graph.order().iter().rev() {
        let node = graph.node(id);
        if let (Some(elements), Some(&Some(value))) = (copied_elements(node), node.operands.first()) {
            let bytes = byte_range(&graph.value(value).ty, elements);
            cuts.add(storages.storage(value), [bytes.start, bytes.end]);
        }
        if let (true, Some(&Some(whole))) = (node.op.is_join(), node.results.first()) {
            let own = cuts.places.get(&storages.storage(whole)).cloned().unwrap_or_default();
            let mut ends = Vec::new();
            for (piece, elements) in joined_elements(graph, node) {
                let bytes = byte_range(&graph.value(whole).ty, elements);
                let inside = own.iter().filter(|cut| bytes.contains(cut)).map(|cut| cut - bytes.start);
                cuts.add(storages.storage(piece), inside);
                ends.extend([bytes.start, bytes.end]);
            }
            if let Some(&Some(base)) = node.operands.first() {
                cuts.add(storages.storage(base), own.into_iter().chain(ends));
            }
        }
        if cuts.count > MOST_RUNS {
            return None;
        }
    }
    Some(cuts.places)
}

/// The runs that the node reads or defines; some may be repeated.
pub(crate) fn touched<'a>(
    graph: &'a Graph,
    storages: &'a Storages,
    id: NodeId,
) -> impl Iterator<Item = RunId> + 'a {
    let node = graph.node(id);
    let range = copied_elements(node).and_then(|elements| {
        let value = node.operands.first().copied().flatten()?;
        Some(byte_range(&graph.value(value).ty, elements))
    });
    // A join touches the runs of its result: the pieces, and those of the base for the rest.
    let reads = graph.uses(id).filter(|_| !node.op.is_join());
    reads.chain(node.defines()).flat_map(move |value| {
        let range = range.clone().filter(|_| node.operands.first() == Some(&Some(value)));
        let runs = storages.runs.list(storages.storage(value)).iter();
        runs.filter(move |(begin, _)| range.as_ref().is_none_or(|r| r.contains(begin))).map(|&(_, run)| run)
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A variable that is on the host between steps and is copied in two ranges.
    pub(crate) const VARIABLE: &str = "g (float[4]@host w, float[] lr) => (float[4]@host w_new) {
        [i1] float[3] k1 = ai.lmsc.SwapIn<begin = 0, end = 3>(w)
        [i2] float[1] k2 = ai.lmsc.SwapIn<begin = 3, end = 4>(w)
        [join] float[4] w_in = ai.lmsc.Join<begins = [0, 3], dims = [4]>(_, k1, k2)
        [sgd] float[4] w_dev = ai.lmsc.SGDOptimizer(lr, w_in, w_in) updates (w_in as w_dev)
        [o1] float[3]@host h1 = ai.lmsc.SwapOut<begin = 0, end = 3>(w_dev)
        [o2] float[1]@host h2 = ai.lmsc.SwapOut<begin = 3, end = 4>(w_dev)
        [home] float[4]@host w_new = ai.lmsc.Join<begins = [0, 3], dims = [4]>(_, h1, h2) updates (w as w_new)
    }";

    fn runs(text: &str) -> impl Fn(&str) -> String {
        let graph = Graph::parse(text).unwrap();
        crate::verify(&graph).unwrap();
        let storages = Storages::of(&graph);
        move |name| {
            let list = storages.runs_of(storages.storage(graph.value_named(name).unwrap()));
            let show = |&(begin, run): &(u64, RunId)| {
                let run = storages.run(run);
                let root = &graph.value(storages.get(run.storage).root).name;
                format!("{begin}:{root}[{}..{}]", run.begin, run.begin + run.bytes.0)
            };
            list.iter().map(show).collect::<Vec<_>>().join(" ")
        }
    }

    #[test]
    fn a_storage_swapped_in_ranges_is_cut_at_their_ends() {
        let runs = runs(
            "g (float[2,5] x) => (float[2,5] y) {
                [a] float[2,5] h = Relu(x)
                [out1] float[4]@host h1 = ai.lmsc.SwapOut<begin = 0, end = 4>(h)
                [out2] float[3]@host h2 = ai.lmsc.SwapOut<begin = 6, end = 9>(h)
                [in1] float[4] k1 = ai.lmsc.SwapIn(h1)
                [in2] float[3] k2 = ai.lmsc.SwapIn(h2)
                [join1] float[2,5] w1 = ai.lmsc.Join<begins = [0]>(h, k1)
                [b] float[2,5] u = Relu(w1)
                [join2] float[2,5] w2 = ai.lmsc.Join<begins = [6]>(w1, k2)
                [c] float[2,5] y = Add(u, w2)
            }",
        );
        assert_eq!(runs("x"), "0:x[0..40]");
        assert_eq!(runs("h"), "0:h[0..16] 16:h[16..24] 24:h[24..36] 36:h[36..40]");
        assert_eq!(runs("k1"), "0:k1[0..16]");
        assert_eq!(runs("w1"), "0:k1[0..16] 16:h[16..24] 24:h[24..36] 36:h[36..40]");
        assert_eq!(runs("w2"), "0:k1[0..16] 16:h[16..24] 24:k2[0..12] 36:h[36..40]");
    }

    #[test]
    fn a_variable_is_cut_where_its_ranges_come_and_go() {
        let runs = runs(VARIABLE);
        assert_eq!(runs("w"), "0:w[0..12] 12:w[12..16]");
        assert_eq!(runs("w_new"), runs("w"));
        assert_eq!(runs("w_dev"), "0:k1[0..12] 12:k2[0..4]");
    }

    #[test]
    fn a_joined_storage_is_cut_in_its_pieces() {
        let runs = runs(
            "g (float[8] x) => (float[8] y) {
                [a] float[8] h = Relu(x)
                [out1] float[6]@host h1 = ai.lmsc.SwapOut<begin = 0, end = 6>(h)
                [out2] float[2]@host h2 = ai.lmsc.SwapOut<begin = 6, end = 8>(h)
                [in1] float[6] k1 = ai.lmsc.SwapIn(h1)
                [in2] float[2] k2 = ai.lmsc.SwapIn(h2)
                [join] float[8] w = ai.lmsc.Join<begins = [0, 6], dims = [8]>(_, k1, k2)
                [out3] float[3]@host h3 = ai.lmsc.SwapOut<begin = 4, end = 7>(w)
                [b] float[8] y = Relu(w)
            }",
        );
        assert_eq!(runs("h"), "0:h[0..24] 24:h[24..32]");
        assert_eq!(runs("k1"), "0:k1[0..16] 16:k1[16..24]");
        assert_eq!(runs("w"), "0:k1[0..16] 16:k1[16..24] 24:k2[0..4] 28:k2[4..8]");
    }

    #[test]
    fn absurdly_many_ranges_are_refused() {
        let mut text =
            "g (float[100000] x) => (float[100000] w0) { [a] float[100000] w0 = Relu(x)\n".to_owned();
        for i in 0..1200 {
            text += &format!(
                "[o{i}] float[1]@host h{i} = ai.lmsc.SwapOut<begin = {}, end = {}>(w{i})
                 [i{i}] float[1] k{i} = ai.lmsc.SwapIn(h{i})
                 [j{i}] float[100000] w{} = ai.lmsc.Join<begins = [{}]>(w{i}, k{i})\n",
                2 * i,
                2 * i + 1,
                i + 1,
                2 * i,
            );
        }
        let graph = Graph::parse(&(text + "}")).unwrap();
        let violations = crate::verify(&graph).unwrap_err().0;
        let violations: Vec<String> = violations.iter().map(ToString::to_string).collect();
        assert_eq!(violations, ["I8: ranges of tensors are copied in too many pieces"]);
    }
}

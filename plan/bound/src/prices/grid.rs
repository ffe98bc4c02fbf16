//! A problem in the form that the search for prices uses: stretches between some of its edges.

use std::collections::BTreeMap;

use cranelift_entity::SecondaryMap;
use lmsc_schedule::problem::{Duplex, Problem, TensorId};

/// The data of a problem and a budget for the search.
pub(super) struct Fluid {
    /// For each edge, the bytes over the budget.
    pub(super) excess: Vec<f64>,
    /// For each stretch, the duration of its operator.
    nanos: Vec<f64>,
    /// The swappable tensors.
    goods: Vec<Goods>,
    /// The time of all operators, the unit of all times.
    pub(super) unit: f64,
    /// The least time of copying a byte, the unit of memory prices.
    pub(super) byte: f64,
    half: bool,
}

/// A swappable tensor.
struct Goods {
    bytes: f64,
    /// The least time of copying a byte of it, out and in.
    copy: [f64; 2],
    variable: bool,
    gaps: Vec<Gap>,
}

/// Consecutive stretches between two uses, or before the first or after the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Gap {
    pub(super) first: usize,
    /// The last of them.
    pub(super) last: usize,
    pub(super) then: Then,
}

/// The event after a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Then {
    /// The tensor changes.
    Changes,
    /// It is read, in this stretch.
    Reads(usize),
    /// The step ends.
    Ends,
}

impl Fluid {
    pub(super) fn of(problem: &Problem, budget: u64) -> Fluid {
        let ops = problem.ops.len();
        let mut uses: SecondaryMap<TensorId, Vec<(usize, bool)>> = SecondaryMap::new();
        for (tick, op) in problem.ops.iter().enumerate() {
            op.reads.iter().for_each(|&t| uses[t].push((tick, op.changes.contains(&t))));
            op.produces.iter().for_each(|&t| uses[t].push((tick, true)));
        }
        let link = problem.link;
        let goods = problem.tensors.iter().filter(|(id, facts)| facts.swappable && !uses[*id].is_empty());
        let goods = goods.map(|(id, facts)| {
            let (uses, bytes) = (&uses[id], facts.bytes as f64);
            let then = |&(tick, changes): &(usize, bool)| {
                if changes { Then::Changes } else { Then::Reads(2 * tick + 1) }
            };
            let first = facts.given.then_some(Gap { first: 0, last: 2 * uses[0].0, then: then(&uses[0]) });
            let inner = uses.windows(2).map(|pair| Gap {
                first: 2 * pair[0].0 + 2,
                last: 2 * pair[1].0,
                then: then(&pair[1]),
            });
            let last = Gap { first: 2 * uses[uses.len() - 1].0 + 2, last: 2 * ops, then: Then::Ends };
            let gaps = first.into_iter().chain(inner).chain(facts.kept.then_some(last)).collect();
            let copy = [link.out_bytes_per_second, link.in_bytes_per_second]
                .map(|rate| 1e9 / rate.max(1) as f64 + link.latency_nanos as f64 / bytes);
            Goods { bytes, copy, variable: facts.is_variable(), gaps }
        });
        let goods: Vec<Goods> = goods.collect();
        // Each moment but the first and the last has two edges.
        let live = problem.live_by_moment(&problem.uses());
        let excess = (0..2 * ops + 2).map(|edge| live[edge.div_ceil(2)] as f64 - budget as f64).collect();
        let mut nanos = vec![0.0; 2 * ops + 1];
        problem.ops.iter().enumerate().for_each(|(tick, op)| nanos[2 * tick + 1] = op.nanos as f64);
        Fluid {
            excess,
            nanos,
            unit: problem.compute_nanos().max(1) as f64,
            byte: goods.iter().flat_map(|goods| goods.copy).fold(f64::INFINITY, f64::min),
            half: link.duplex == Duplex::Half,
            goods,
        }
    }

    /// About `count` edges with about the same amount of activity between them: operator time and uses of tensors.
    pub(super) fn evenly(&self, count: usize) -> Vec<usize> {
        let mut happens: Vec<f64> = self.nanos.iter().map(|nanos| nanos / self.unit).collect();
        let bytes: f64 = self.goods.iter().map(|goods| goods.bytes).sum();
        for goods in &self.goods {
            for gap in goods.gaps.iter().filter(|gap| gap.first < gap.last) {
                happens[gap.first] += goods.bytes / bytes;
                happens[gap.last] += goods.bytes / bytes;
            }
        }
        let most = happens.iter().sum::<f64>() / count as f64;
        let (mut edges, mut since) = (Vec::new(), 0.0);
        for (stretch, happens) in happens.into_iter().enumerate() {
            since += happens;
            if happens >= most {
                edges.push(stretch);
            }
            if since >= most {
                edges.push(stretch + 1);
                since = 0.0;
            }
        }
        edges
    }
}

/// A problem in which prices change at some edges only.
///
/// Its stretches are those between its edges, one more than these; the first and the last may be empty.
pub(super) struct Grid {
    /// The problem's edges, ascending.
    pub(super) edges: Vec<usize>,
    /// For each edge, the excess over the budget, as copy time.
    pub(super) excess: Vec<f64>,
    /// For each stretch, the time of its operators.
    pub(super) nanos: Vec<f64>,
    /// For each stretch, whether it contains a pause.
    pub(super) paused: Vec<bool>,
    pub(super) lots: Vec<Lot>,
    pub(super) half: bool,
}

/// Tensors with uses in the same stretches, and with similar copy times per byte.
pub(super) struct Lot {
    /// The total time of their copies, in the faster direction.
    pub(super) weight: f64,
    /// The time of a copy relative to that, out and in.
    pub(super) copy: [f64; 2],
    pub(super) variable: bool,
    pub(super) gaps: Vec<Gap>,
}

impl Grid {
    pub(super) fn of(fluid: &Fluid, edges: Vec<usize>) -> Grid {
        let of = |stretch: usize| edges.partition_point(|&edge| edge <= stretch);
        let (mut nanos, mut paused) = (vec![0.0; edges.len() + 1], vec![false; edges.len() + 1]);
        for (stretch, time) in fluid.nanos.iter().enumerate() {
            nanos[of(stretch)] += time / fluid.unit;
            paused[of(stretch)] |= stretch % 2 == 0;
        }
        let mut lots: BTreeMap<(bool, u64, Vec<Gap>), Lot> = BTreeMap::new();
        for goods in &fluid.goods {
            let gaps = goods.gaps.iter().map(|gap| Gap {
                first: of(gap.first),
                last: of(gap.last),
                then: if let Then::Reads(stretch) = gap.then { Then::Reads(of(stretch)) } else { gap.then },
            });
            let gaps: Vec<Gap> = gaps.collect();
            if goods.variable || gaps.iter().any(|gap| gap.first < gap.last) {
                // Latency matters for a small tensor, and changes the effect of prices.
                let dear = (20.0 * goods.copy[0].max(goods.copy[1]) / fluid.byte).min(200.0) as u64;
                let lot = lots.entry((goods.variable, dear, gaps.clone())).or_insert_with(|| Lot {
                    weight: 0.0,
                    copy: [0.0; 2],
                    variable: goods.variable,
                    gaps,
                });
                let weight = goods.bytes * fluid.byte / fluid.unit;
                lot.weight += weight;
                [0, 1].into_iter().for_each(|way| lot.copy[way] += weight * goods.copy[way] / fluid.byte);
            }
        }
        let lots = lots.into_values().map(|lot| Lot { copy: lot.copy.map(|copy| copy / lot.weight), ..lot });
        Grid {
            excess: edges.iter().map(|&edge| fluid.excess[edge] * fluid.byte / fluid.unit).collect(),
            nanos,
            paused,
            lots: lots.collect(),
            half: fluid.half,
            edges,
        }
    }

    /// The number of prices.
    pub(super) fn len(&self) -> usize {
        self.edges.len() + if self.half { 1 } else { 2 } * self.nanos.len()
    }

    /// The index of a stretch's price of copying out; the prices of the edges come first.
    pub(super) fn out(&self, stretch: usize) -> usize {
        self.edges.len() + stretch
    }

    /// The same for copying in.
    pub(super) fn back(&self, stretch: usize) -> usize {
        if self.half { self.out(stretch) } else { self.out(stretch) + self.nanos.len() }
    }

    /// The number of steps to visit every pair of stretches of every gap.
    pub(super) fn pairs(&self) -> u64 {
        let gaps = self.lots.iter().flat_map(|lot| &lot.gaps);
        gaps.map(|gap| (gap.last - gap.first + 1).pow(2) as u64).sum()
    }
}

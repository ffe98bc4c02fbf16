//! The mechanisms of the search: its parts that make plans better, and without which plans would still be valid.
//!
//! Each has a row in `docs/measurements/mechanisms.md`, which says by how much plans get worse without it.

use lmsc_schedule::tuned::Mechanism;

pub(super) const LAYERS: Mechanism = Mechanism::new("layers", "choices for whole layers come first");
pub(super) const KEPT_PLACES: Mechanism =
    Mechanism::new("kept places", "in patterns of layers, single tensors are kept from some copy on");
pub(super) const PRICES: Mechanism =
    Mechanism::new("prices", "some walks start from the best choices at a price of bytes");
pub(super) const CUTS: Mechanism = Mechanism::new(
    "cuts",
    "some walks start from choices that keep tensors across cuts of the forward phase",
);
pub(super) const SEEDS: Mechanism =
    Mechanism::new("seeds", "half of the walks of a round start from the best choices of the round before");
pub(super) const READY_SETS: Mechanism =
    Mechanism::new("ready sets", "half of the walks choose swap sets by the time at which tensors are ready");
pub(super) const RESTARTS: Mechanism =
    Mechanism::new("restarts", "walks start again from the best choices found so far, at lower temperatures");
pub(super) const RETURNS: Mechanism =
    Mechanism::new("returns", "polished choices are walked from and polished again");
pub(super) const ALIKE: Mechanism =
    Mechanism::new("alike", "a move takes over what an equal range of the network does");
pub(super) const CROSSOVER: Mechanism =
    Mechanism::new("crossover", "the best choice takes over parts of the step from other good ones");
pub(super) const POLISH: Mechanism =
    Mechanism::new("polish", "each tensor, and each class of equal ones, is changed as long as that gains");
pub(super) const EXCHANGE: Mechanism =
    Mechanism::new("exchange", "a recomputed tensor is exchanged for one or two cheaper ones");
pub(super) const SMALL_PIECES: Mechanism = Mechanism::new(
    "small pieces",
    "the best choices of a round are polished and exchanged with small pieces",
);
pub(super) const TIME_AWARE: Mechanism = Mechanism::new(
    "time-aware walks",
    "the last walks of a round choose swap sets that know when copies run",
);
pub(super) const PLACEMENT: Mechanism =
    Mechanism::new("placement", "operators run again some operators before their use");
pub(super) const REFINEMENT: Mechanism =
    Mechanism::new("refinement", "the swap sets of the best plans are chosen anew");
pub(super) const STAYING: Mechanism = Mechanism::new(
    "staying variables",
    "plans in which variables stay are tried before those in which they leave",
);
pub(super) const IN_TIME: Mechanism =
    Mechanism::new("time-aware sets", "swapping alone also tries swap sets that know when copies run");
pub(super) const CLEAN: Mechanism =
    Mechanism::new("clean sets", "where variables leave, a swap set prefers tensors that need no copy out");
pub(super) const MERGING: Mechanism =
    Mechanism::new("merging", "over a link with latency, adjacent pieces are merged, by several sizes");
pub(super) const SMALL_LAST: Mechanism =
    Mechanism::new("small last", "over a link with latency, swap sets take small tensors last");
pub(super) const SPLIT: Mechanism = Mechanism::new("split", "pieces on the critical path are split");
pub(super) const WHOLE_WALKS: Mechanism =
    Mechanism::new("whole walks", "for whole tensors, annealing over swap sets and orders of copies");

/// All mechanisms, in the order of the phases of the search.
pub const MECHANISMS: [Mechanism; 23] = [
    LAYERS,
    KEPT_PLACES,
    PRICES,
    CUTS,
    SEEDS,
    READY_SETS,
    RESTARTS,
    RETURNS,
    ALIKE,
    CROSSOVER,
    POLISH,
    EXCHANGE,
    SMALL_PIECES,
    TIME_AWARE,
    PLACEMENT,
    REFINEMENT,
    STAYING,
    IN_TIME,
    CLEAN,
    MERGING,
    SMALL_LAST,
    SPLIT,
    WHOLE_WALKS,
];

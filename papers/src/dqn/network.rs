//! The network that gives the values of actions (DQN eq. 1 to 3): its weights, its inputs, and its interface.
//!
//! The equations themselves are in `by_hand`.

use std::ops::Range;
use std::rc::Rc;

use lmsc_ir::rng::{Rng, Source};

use crate::env::{ActionKind, Env, NOTHING, State};

/// The length of a node's state: p.
pub const WIDTH: usize = 16;

/// Number of rounds in which states are exchanged with neighbours: T.
pub(crate) const ROUNDS: usize = 4;

/// Number of features of a node: the length of x.
pub(crate) const FEATURES: usize = 6;

/// The names of the matrices, in the order of their numbers, each with its inputs and outputs.
pub const MATRICES: [(&str, [usize; 2]); 8] = [
    ("W1", [FEATURES, WIDTH]),
    ("W2", [WIDTH, WIDTH]),
    ("W3", [WIDTH, WIDTH]),
    ("W4", [1, WIDTH]),
    ("W5", [WIDTH, WIDTH]),
    ("W6", [WIDTH, WIDTH]),
    ("W7", [3, WIDTH]),
    ("W8", [WIDTH, WIDTH]),
];

/// All matrices, one after the other; each holds the numbers of the first input, of the second, and so on.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights(Vec<f64>);

impl Weights {
    /// The number of numbers.
    pub const COUNT: usize = {
        let (mut count, mut at) = (0, 0);
        while at < MATRICES.len() {
            count += MATRICES[at].1[0] * MATRICES[at].1[1];
            at += 1;
        }
        count
    };

    /// The weights of these numbers; none unless there are [`Weights::COUNT`] and all are finite.
    pub fn new(numbers: Vec<f64>) -> Option<Weights> {
        let fit = numbers.len() == Weights::COUNT && numbers.iter().all(|number| number.is_finite());
        fit.then_some(Weights(numbers))
    }

    /// Random initial weights.
    pub fn random(seed: u64) -> Weights {
        let mut rng = Rng::new(seed);
        let mut numbers = Vec::with_capacity(Weights::COUNT);
        for (name, [inputs, outputs]) in MATRICES {
            // At most five neighbours are usual: their sum should not grow from round to round.
            let inputs_of_one = if name == "W2" { inputs * 5 } else { inputs };
            let most = (3.0 / inputs_of_one as f64).sqrt();
            numbers.extend((0..inputs * outputs).map(|_| most * (2.0 * unit(&mut rng) - 1.0)));
        }
        Weights(numbers)
    }

    /// The numbers.
    pub fn numbers(&self) -> &[f64] {
        &self.0
    }

    pub(super) fn numbers_mut(&mut self) -> &mut [f64] {
        &mut self.0
    }
}

/// A network of weights for a graph.
pub(super) trait Network {
    fn new(graph: &Rc<Graph>, weights: &Weights) -> Self;

    /// Takes other weights.
    fn update(&mut self, weights: &Weights);

    /// The value of each valid action of a state: eq. 3.
    fn worths(&self, state: &State) -> Vec<f64>;

    /// For each weight, the gradient of the mean loss of a mini-batch: eq. 4.
    fn gradient(&mut self, batch: &[Sample]) -> Vec<f64>;

    /// The action with the highest value, of equal ones the first, and its value; nothing and 0 in the terminal state
    /// (§4.10).
    fn best(&self, state: &State) -> (u32, f64) {
        let worths = state.valid.iter().copied().zip(self.worths(state));
        worths.reduce(|best, next| if next.1 > best.1 { next } else { best }).unwrap_or((NOTHING, 0.0))
    }
}

/// A choice of a mini-batch: the action in a state, and its target value.
#[derive(Clone, Copy)]
pub(super) struct Sample<'a> {
    pub(super) state: &'a State,
    pub(super) action: u32,
    pub(super) y: f64,
}

/// A random number from 0 to 1.
pub(super) fn unit(rng: &mut Rng) -> f64 {
    (rng.word() >> 11) as f64 / (1u64 << 53) as f64
}

/// The graph of an environment as numbers.
///
/// Sizes and times are a / (a + m) with the mean m over the nodes that have any: they lie from 0 to 1 in every graph, so that
/// weights learned on one apply to another.
#[derive(Debug)]
pub(super) struct Graph {
    /// By node; the last feature, whether the action is valid, belongs to the state.
    pub(super) features: Vec<[f64; FEATURES]>,
    /// For each node, the end of its neighbours in `neighbours`, which include itself.
    ends: Vec<usize>,
    neighbours: Vec<u32>,
    /// For each neighbour, the time lag to it.
    lags: Vec<f64>,
}

impl Graph {
    pub(super) fn of(env: &Env) -> Graph {
        let nodes = env.nodes();
        let bytes = shares(nodes.iter().map(|node| node.operation.map_or(0, |o| o.bytes)));
        let transfer = shares(nodes.iter().map(|node| node.transfer_nanos));
        let recompute = shares(nodes.iter().map(|node| node.recompute_nanos));
        let revisit = shares(nodes.iter().map(|node| node.revisit_nanos));
        let features = (0..nodes.len()).map(|node| {
            let kind = match nodes[node].action.map(|action| action.kind) {
                None => 0.0,
                Some(ActionKind::Offload) => 0.5,
                Some(ActionKind::Remove) => 1.0,
            };
            [bytes[node], transfer[node], recompute[node], revisit[node], kind, 0.0]
        });
        let features = features.collect();
        let weights = shares(env.lags().iter().map(|lag| lag.nanos));
        let mut beside: Vec<Vec<(u32, f64)>> =
            (0..nodes.len() as u32).map(|node| vec![(node, 0.0)]).collect();
        for (lag, weight) in env.lags().iter().zip(weights) {
            for (node, other) in [(lag.from, lag.to), (lag.to, lag.from)] {
                beside[node as usize].push((other, weight));
            }
        }
        let ends = beside.iter().scan(0, |end, beside| {
            *end += beside.len();
            Some(*end)
        });
        let ends = ends.collect();
        let (neighbours, lags) = beside.into_iter().flatten().unzip();
        Graph { features, ends, neighbours, lags }
    }

    pub(super) fn len(&self) -> usize {
        self.features.len()
    }

    fn place(&self, node: usize) -> Range<usize> {
        let begin = if node == 0 { 0 } else { self.ends[node - 1] };
        begin..self.ends[node]
    }

    pub(super) fn neighbours(&self, node: usize) -> &[u32] {
        &self.neighbours[self.place(node)]
    }

    /// The time lags to a node's neighbours.
    pub(super) fn lags(&self, node: usize) -> &[f64] {
        &self.lags[self.place(node)]
    }
}

/// Each amount a as a / (a + m), m being the mean of those above zero.
fn shares(amounts: impl Iterator<Item = u64> + Clone) -> Vec<f64> {
    let (mut sum, mut count) = (0u128, 0u128);
    for amount in amounts.clone().filter(|&amount| amount > 0) {
        sum += u128::from(amount);
        count += 1;
    }
    let mean = (sum / count.max(1)).max(1) as f64;
    amounts.map(|amount| amount as f64 / (amount as f64 + mean)).collect()
}

//! Equations 1 to 4 of DQN and their gradients, written out by hand: the network of `dqn`.
//!
//! In 64-bit floats, every sum in a fixed order, so that a seed gives the same plan everywhere: tensor crates choose their
//! kernels by the processor, and round sums differently on different machines. It is also fast, since for a state it only
//! computes the nodes that differ from a state in which nothing is valid. A crate would have little to do here: three
//! equations, eight matrices of at most 256 numbers, sums over the three or four neighbours of a node. The price is that
//! another network needs new gradients by hand; these are tested against finite differences.

use std::rc::Rc;

use super::network::{FEATURES, Graph, MATRICES, Network, ROUNDS, Sample, WIDTH, Weights};
use crate::env::State;

type Vector = [f64; WIDTH];

/// The range of a matrix's numbers.
const fn place(matrix: usize) -> (usize, usize) {
    let (mut begin, mut at) = (0, 0);
    while at + 1 < matrix {
        begin += MATRICES[at].1[0] * MATRICES[at].1[1];
        at += 1;
    }
    (begin, begin + MATRICES[at].1[0] * MATRICES[at].1[1])
}

/// The numbers of the matrix with this index: W₁ is 1.
fn of(numbers: &[f64], matrix: usize) -> &[f64] {
    let (begin, end) = place(matrix);
    &numbers[begin..end]
}

fn of_mut(numbers: &mut [f64], matrix: usize) -> &mut [f64] {
    let (begin, end) = place(matrix);
    &mut numbers[begin..end]
}

/// The matrix times the vector.
fn times(matrix: &[f64], x: &[f64]) -> Vector {
    let mut y = [0.0; WIDTH];
    for (row, x) in matrix.chunks_exact(WIDTH).zip(x) {
        y.iter_mut().zip(row).for_each(|(y, w)| *y += w * x);
    }
    y
}

/// The transposed matrix times the vector.
fn transposed_times(matrix: &[f64], d: &Vector) -> Vector {
    let mut x = [0.0; WIDTH];
    for (x, row) in x.iter_mut().zip(matrix.chunks_exact(WIDTH)) {
        let mut lanes = [0.0; 4];
        for (row, d) in row.chunks_exact(4).zip(d.chunks_exact(4)) {
            (0..4).for_each(|lane| lanes[lane] += row[lane] * d[lane]);
        }
        *x = lanes.iter().sum();
    }
    x
}

/// Adds the gradient of a matrix whose product with `x` has the gradient `d`.
fn add_outer(gradient: &mut [f64], x: &[f64], d: &Vector) {
    for (row, x) in gradient.chunks_exact_mut(WIDTH).zip(x) {
        row.iter_mut().zip(d).for_each(|(g, d)| *g += x * d);
    }
}

fn add(y: &mut Vector, x: &Vector) {
    y.iter_mut().zip(x).for_each(|(y, x)| *y += x);
}

fn scaled(x: &Vector, by: f64) -> Vector {
    x.map(|x| x * by)
}

fn relu(x: &Vector) -> Vector {
    x.map(|x| x.max(0.0))
}

/// `d` where `x` is above zero, as behind a ReLU.
fn gated(d: &Vector, x: &Vector) -> Vector {
    std::array::from_fn(|i| if x[i] > 0.0 { d[i] } else { 0.0 })
}

fn dot(a: &[f64], b: &Vector) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The network, with its last results.
pub(super) struct ByHand {
    graph: Rc<Graph>,
    weights: Weights,
    base: Base,
    scratch: Scratch,
}

impl Network for ByHand {
    fn new(graph: &Rc<Graph>, weights: &Weights) -> ByHand {
        let base = Base::of(weights, graph);
        ByHand { graph: graph.clone(), weights: weights.clone(), base, scratch: Scratch::default() }
    }

    fn update(&mut self, weights: &Weights) {
        self.weights.clone_from(weights);
        self.base.update(weights, &self.graph);
    }

    fn worths(&self, state: &State) -> Vec<f64> {
        let seen = see(&self.weights, &self.graph, &self.base, state);
        state.valid.iter().map(|&node| worth(&self.weights, &self.base, &seen, node)).collect()
    }

    fn gradient(&mut self, batch: &[Sample]) -> Vec<f64> {
        let chosen = batch.iter().map(|&Sample { state, action, y }| {
            let seen = see(&self.weights, &self.graph, &self.base, state);
            let d = 2.0 * (worth(&self.weights, &self.base, &seen, action) - y) / batch.len() as f64;
            Chosen { seen, action, d }
        });
        let chosen: Vec<Chosen> = chosen.collect();
        gradient(&self.weights, &self.graph, &self.base, &chosen, &mut self.scratch)
    }
}

/// The sum of the vectors of a node and its neighbours.
fn sum(graph: &Graph, node: usize, of: &[Vector]) -> Vector {
    let mut sum = [0.0; WIDTH];
    graph.neighbours(node).iter().for_each(|&u| add(&mut sum, &of[u as usize]));
    sum
}

/// The sum of the time lags to a node's neighbours.
fn lags(graph: &Graph, node: usize) -> f64 {
    graph.lags(node).iter().sum()
}

/// The results for the nodes if no action is valid, with the sums over their neighbours.
///
/// A state differs from these only within [`ROUNDS`] − 1 hops of its valid nodes.
struct Base {
    /// For each node, W₁ x and the part of the time lags.
    own: Vec<Vector>,
    rounds: Vec<Round>,
    /// The sum of the last states.
    total: Vector,
}

/// The states of nodes after a round, and the sums of their neighbours' states before it.
#[derive(Default)]
struct Round {
    states: Vec<Vector>,
    sums: Vec<Vector>,
}

impl Base {
    fn of(weights: &Weights, graph: &Graph) -> Base {
        let rounds = (0..ROUNDS).map(|_| Round::default()).collect();
        let mut base = Base { own: Vec::new(), rounds, total: [0.0; WIDTH] };
        base.update(weights, graph);
        base
    }

    /// Eq. 1 if no action is valid, for other weights, in the same memory.
    fn update(&mut self, weights: &Weights, graph: &Graph) {
        let w = weights.numbers();
        // A lag is not negative, so ReLU(W₄ w) = w ReLU(W₄), and the sum over the neighbours goes before the matrix.
        let lag: Vector = times(of(w, 3), &relu(&times(of(w, 4), &[1.0])));
        self.own.clear();
        self.own.extend((0..graph.len()).map(|node| {
            let mut own = times(of(w, 1), &graph.features[node]);
            add(&mut own, &scaled(&lag, lags(graph, node)));
            own
        }));
        let first = &mut self.rounds[0].states;
        first.clear();
        first.extend(self.own.iter().map(relu));
        for round in 1..ROUNDS {
            let (before, after) = self.rounds.split_at_mut(round);
            let (before, Round { states, sums }) = (&before[round - 1].states, &mut after[0]);
            sums.clear();
            sums.extend((0..graph.len()).map(|node| sum(graph, node, before)));
            states.clear();
            states.extend(self.own.iter().zip(&*sums).map(|(own, sum)| next(w, own, sum)));
        }
        self.total = [0.0; WIDTH];
        self.rounds[ROUNDS - 1].states.iter().for_each(|state| add(&mut self.total, state));
    }
}

/// The state of a node after a round, from the sum of its neighbours' states.
fn next(w: &[f64], own: &Vector, sum: &Vector) -> Vector {
    let mut state = times(of(w, 2), sum);
    add(&mut state, own);
    relu(&state)
}

/// The results for a state where they differ from its [`Base`].
struct Seen {
    /// By round.
    changes: Vec<Changes>,
    /// The mean of the last states: a sum, as in eq. 2, would grow with the graph.
    mean: Vector,
    current: usize,
    /// W₇ of the state's part of eq. 3.
    worth: f64,
}

/// Nodes whose states differ after a round.
struct Changes {
    /// In the order in which they were found.
    nodes: Vec<u32>,
    /// For each node, its index in `nodes`; [`SAME`] for a node that does not differ.
    places: Vec<u32>,
    round: Round,
}

const SAME: u32 = u32::MAX;

impl Changes {
    fn place(&self, node: usize) -> Option<usize> {
        Some(self.places[node]).filter(|&place| place != SAME).map(|place| place as usize)
    }
}

impl Seen {
    fn state<'a>(&'a self, base: &'a Base, round: usize, node: usize) -> &'a Vector {
        let changes = &self.changes[round];
        match changes.place(node) {
            Some(place) => &changes.round.states[place],
            None => &base.rounds[round].states[node],
        }
    }

    fn last<'a>(&'a self, base: &'a Base, node: u32) -> &'a Vector {
        self.state(base, ROUNDS - 1, node as usize)
    }
}

/// Evaluates a state: eq. 1 and 2.
fn see(weights: &Weights, graph: &Graph, base: &Base, state: &State) -> Seen {
    let w = weights.numbers();
    let valid = &of(w, 1)[(FEATURES - 1) * WIDTH..];
    let mut places = vec![SAME; graph.len()];
    state.valid.iter().zip(0..).for_each(|(&node, place)| places[node as usize] = place);
    // W₁ x of the valid nodes, which come first in each round.
    let own = state.valid.iter().map(|&node| {
        let mut own = base.own[node as usize];
        own.iter_mut().zip(valid).for_each(|(own, w)| *own += w);
        own
    });
    let own: Vec<Vector> = own.collect();
    let round = Round { states: own.iter().map(relu).collect(), sums: Vec::new() };
    let mut seen = Seen {
        changes: vec![Changes { nodes: state.valid.clone(), places, round }],
        mean: base.total,
        current: state.current as usize,
        worth: 0.0,
    };
    for round in 1..ROUNDS {
        let before = &seen.changes[round - 1];
        let (mut nodes, mut places) = (before.nodes.clone(), before.places.clone());
        for &node in &before.nodes {
            for &other in graph.neighbours(node as usize) {
                if places[other as usize] == SAME {
                    places[other as usize] = nodes.len() as u32;
                    nodes.push(other);
                }
            }
        }
        let mut now = Round::default();
        for (place, &node) in nodes.iter().enumerate() {
            let mut sum = [0.0; WIDTH];
            let neighbours = graph.neighbours(node as usize);
            neighbours.iter().for_each(|&u| add(&mut sum, seen.state(base, round - 1, u as usize)));
            now.states.push(next(w, own.get(place).unwrap_or(&base.own[node as usize]), &sum));
            now.sums.push(sum);
        }
        seen.changes.push(Changes { nodes, places, round: now });
    }
    let Changes { nodes, round, .. } = &seen.changes[ROUNDS - 1];
    for (&node, state) in nodes.iter().zip(&round.states) {
        let was = &base.rounds[ROUNDS - 1].states[node as usize];
        (0..WIDTH).for_each(|i| seen.mean[i] += state[i] - was[i]);
    }
    seen.mean = scaled(&seen.mean, 1.0 / graph.len() as f64);
    let all = relu(&times(of(w, 5), &seen.mean));
    let here = relu(&times(of(w, 6), seen.last(base, state.current)));
    let w7 = of(w, 7);
    seen.worth = dot(&w7[..WIDTH], &all) + dot(&w7[WIDTH..2 * WIDTH], &here);
    seen
}

/// The value of an action: eq. 3.
fn worth(weights: &Weights, base: &Base, seen: &Seen, action: u32) -> f64 {
    let w = weights.numbers();
    let action = relu(&times(of(w, 8), seen.last(base, action)));
    seen.worth + dot(&of(w, 7)[2 * WIDTH..], &action)
}

/// A choice of a mini-batch: the evaluated state, the action, and the factor of its value.
struct Chosen {
    seen: Seen,
    action: u32,
    d: f64,
}

/// Memory for gradients by node, kept from one mini-batch to the next.
#[derive(Default)]
struct Scratch {
    common: Vec<Vector>,
    before: Vec<Vector>,
}

fn clear(vectors: &mut Vec<Vector>, count: usize) {
    vectors.clear();
    vectors.resize(count, [0.0; WIDTH]);
}

/// The sum of the gradients of the actions' values by the weights, each with its factor.
///
/// The part that the states have in common is processed once.
fn gradient(
    weights: &Weights,
    graph: &Graph,
    base: &Base,
    batch: &[Chosen],
    scratch: &mut Scratch,
) -> Vec<f64> {
    let w = weights.numbers();
    let mut gradient = vec![0.0; Weights::COUNT];
    // For each node, the gradient of its state in the base; and by choice, those of the nodes that differ.
    let Scratch { common, before } = scratch;
    clear(common, graph.len());
    let mut own: Vec<Vec<Vector>> = Vec::new();
    let mut shares = [0.0; WIDTH];
    for Chosen { seen, action, d } in batch {
        let changes = &seen.changes[ROUNDS - 1];
        let mut by_state = vec![[0.0; WIDTH]; changes.nodes.len()];
        let here = seen.current as u32;
        let parts = [(5, &seen.mean), (6, seen.last(base, here)), (8, seen.last(base, *action))];
        for (part, (matrix, x)) in parts.into_iter().enumerate() {
            let z = times(of(w, matrix), x);
            let (begin, end) = (part * WIDTH, (part + 1) * WIDTH);
            let d_relu: Vector = std::array::from_fn(|i| d * of(w, 7)[begin + i]);
            let w7 = &mut of_mut(&mut gradient, 7)[begin..end];
            w7.iter_mut().zip(relu(&z)).for_each(|(g, z)| *g += d * z);
            let d_z = gated(&d_relu, &z);
            add_outer(of_mut(&mut gradient, matrix), x, &d_z);
            let d_x = transposed_times(of(w, matrix), &d_z);
            if matrix == 5 {
                let share = scaled(&d_x, 1.0 / graph.len() as f64);
                add(&mut shares, &share);
                by_state.iter_mut().for_each(|state| add(state, &share));
                // Their states in the base do not contribute.
                let less = scaled(&share, -1.0);
                changes.nodes.iter().for_each(|&node| add(&mut common[node as usize], &less));
                continue;
            }
            let node = if matrix == 6 { seen.current } else { *action as usize };
            match changes.place(node) {
                Some(place) => add(&mut by_state[place], &d_x),
                None => add(&mut common[node], &d_x),
            }
        }
        own.push(by_state);
    }
    common.iter_mut().for_each(|state| add(state, &shares));
    let mut by_lag = [0.0; WIDTH];
    for round in (0..ROUNDS).rev() {
        clear(before, graph.len());
        for (Chosen { seen, .. }, by_state) in batch.iter().zip(&mut own) {
            let changes = &seen.changes[round];
            let earlier = round.checked_sub(1).map(|round| &seen.changes[round]);
            let mut of_earlier = vec![[0.0; WIDTH]; earlier.map_or(0, |earlier| earlier.nodes.len())];
            for (place, &node) in changes.nodes.iter().enumerate() {
                let d = gated(&by_state[place], &changes.round.states[place]);
                let node = node as usize;
                let w1 = of_mut(&mut gradient, 1);
                add_outer(w1, &graph.features[node], &d);
                if seen.changes[0].places[node] != SAME {
                    w1[(FEATURES - 1) * WIDTH..].iter_mut().zip(&d).for_each(|(g, d)| *g += d);
                }
                add(&mut by_lag, &scaled(&d, lags(graph, node)));
                let Some(earlier) = earlier else { continue };
                add_outer(of_mut(&mut gradient, 2), &changes.round.sums[place], &d);
                let by_sum = transposed_times(of(w, 2), &d);
                for &u in graph.neighbours(node) {
                    match earlier.place(u as usize) {
                        Some(place) => add(&mut of_earlier[place], &by_sum),
                        None => add(&mut before[u as usize], &by_sum),
                    }
                }
            }
            *by_state = of_earlier;
        }
        let Round { states, sums } = &base.rounds[round];
        for node in 0..graph.len() {
            let d = gated(&common[node], &states[node]);
            if d.iter().all(|&d| d == 0.0) {
                continue;
            }
            add_outer(of_mut(&mut gradient, 1), &graph.features[node], &d);
            add(&mut by_lag, &scaled(&d, lags(graph, node)));
            if round > 0 {
                add_outer(of_mut(&mut gradient, 2), &sums[node], &d);
                let by_sum = transposed_times(of(w, 2), &d);
                graph.neighbours(node).iter().for_each(|&u| add(&mut before[u as usize], &by_sum));
            }
        }
        std::mem::swap(common, before);
    }
    let w4 = times(of(w, 4), &[1.0]);
    add_outer(of_mut(&mut gradient, 3), &relu(&w4), &by_lag);
    let by_w4 = gated(&transposed_times(of(w, 3), &by_lag), &w4);
    add_outer(of_mut(&mut gradient, 4), &[1.0], &by_w4);
    gradient
}

#[cfg(test)]
mod tests {
    use lmsc_ir::rng::Rng;
    use lmsc_schedule::Request;
    use lmsc_testing::random;

    use super::*;
    use crate::env::Env;

    #[test]
    fn gradients_are_finite_differences() {
        let mut compared = 0;
        for seed in 0..4 {
            let problem = random::problem(&mut Rng::new(seed), 8);
            let (_, floor) = problem.floor();
            let request = Request { recompute: true, ..Request::new(&problem, floor) };
            let env = Env::new(&request).unwrap();
            let graph = Graph::of(&env);
            let weights = Weights::random(seed);
            // Several states at once; the last has nothing in common with the base.
            let all: Vec<u32> = (0..graph.len() as u32).collect();
            let of = |valid: &[u32]| State { current: 2, valid: valid.to_vec() };
            let batch = [(of(&[0, 3]), 3, 1.0), (of(&[5]), 5, -0.5), (of(&all), 1, 2.0)];
            let worths = |weights: &Weights| -> f64 {
                let base = Base::of(weights, &graph);
                let worth = |(state, action, d): &_| {
                    *d * worth(weights, &base, &see(weights, &graph, &base, state), *action)
                };
                batch.iter().map(worth).sum()
            };
            let base = Base::of(&weights, &graph);
            let chosen = |(state, action, d): &(State, u32, f64)| Chosen {
                seen: see(&weights, &graph, &base, state),
                action: *action,
                d: *d,
            };
            let chosen: Vec<Chosen> = batch.iter().map(chosen).collect();
            let gradient = gradient(&weights, &graph, &base, &chosen, &mut Scratch::default());
            for (at, &gradient) in gradient.iter().enumerate() {
                let moved = |by: f64| {
                    let mut moved = weights.clone();
                    moved.numbers_mut()[at] += by;
                    worths(&moved)
                };
                let [near, far] = [1e-6, 2e-6].map(|by| (moved(by) - moved(-by)) / (2.0 * by));
                // If a ReLU bends in between, the differences do not agree with each other either.
                if (near - far).abs() < 1e-7 {
                    let error = (near - gradient).abs();
                    assert!(error < 1e-5 * (1.0 + gradient.abs()), "{seed} {at}: {near} is not {gradient}");
                    compared += usize::from(gradient != 0.0);
                }
            }
        }
        assert!(compared > Weights::COUNT, "{compared}");
    }

    #[test]
    fn matrices_lie_one_after_the_other() {
        let ends: Vec<(usize, usize)> = (1..=8).map(place).collect();
        assert_eq!(ends[0].0, 0);
        assert!(ends.windows(2).all(|pair| pair[0].1 == pair[1].0));
        assert_eq!(ends[7].1, Weights::COUNT);
        assert_eq!(Weights::new(vec![0.0; 3]), None);
        assert_eq!(Weights::new(vec![f64::NAN; Weights::COUNT]), None);
    }
}

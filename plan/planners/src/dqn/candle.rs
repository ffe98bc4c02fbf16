//! Equations 1 to 4 of DQN as tensors, with gradients by candle: for experiments with other networks.
//!
//! They are written once, as in the paper, for several states of a graph at a time. A change here requires no other change
//! except in [`MATRICES`], and no gradients. The tests below compare this network with the one by hand; after a change they
//! fail, as intended.
//!
//! Two crates of tensors with gradients on the CPU are maintained, both MIT or Apache-2.0. `candle-core` 0.11 comes alone,
//! 127 crates with what it needs. `burn` 0.22 with `ndarray` and `autodiff` is 143 crates, its lock file has 600, those of
//! every GPU among them, and a network is a module with a backend as its parameter; here it is a function of tensors.

use std::rc::Rc;

use candle_core::{DType, Device, Result, Tensor, Var};

use super::network::{FEATURES, Graph, MATRICES, Network, ROUNDS, Sample, WIDTH, Weights};
use crate::env::State;

/// The network. The extents of its tensors are those of B states, n nodes, e edges and p numbers of a node's state.
pub(super) struct Candle {
    /// [n, FEATURES − 1]: all but the last, whether the action is valid, which belongs to the state.
    features: Tensor,
    /// [e]: the nodes between which there is an edge, in both directions, and from each node to itself.
    from: Tensor,
    to: Tensor,
    /// [e, 1]: the edges' time lags.
    lags: Tensor,
    /// W₁ to W₈, [inputs, outputs] each.
    weights: [Var; MATRICES.len()],
}

impl Candle {
    fn of(graph: &Graph, weights: &Weights) -> Result<Candle> {
        let cpu = &Device::Cpu;
        let features: Vec<f64> = graph.features.iter().flat_map(|x| &x[..FEATURES - 1]).copied().collect();
        let nodes = 0..graph.len();
        let from: Vec<u32> = nodes.clone().flat_map(|node| graph.neighbours(node)).copied().collect();
        let to: Vec<u32> =
            nodes.clone().flat_map(|to| graph.neighbours(to).iter().map(move |_| to as u32)).collect();
        let lags: Vec<f64> = nodes.flat_map(|node| graph.lags(node)).copied().collect();
        Ok(Candle {
            features: Tensor::from_vec(features, (graph.len(), FEATURES - 1), cpu)?,
            from: Tensor::from_vec(from, lags.len(), cpu)?,
            to: Tensor::from_vec(to, lags.len(), cpu)?,
            lags: Tensor::from_vec(lags.clone(), (lags.len(), 1), cpu)?,
            weights: variables(weights)?,
        })
    }

    /// The value of every node as an action in each state, [B, n]: eq. 1 to 3.
    fn all_worths(&self, states: &[&State]) -> Result<Tensor> {
        let [w1, w2, w3, w4, w5, w6, w7, w8] = &self.weights;
        let valid = self.marked(states.iter().map(|state| &state.valid[..]))?.unsqueeze(2)?;
        let x = Tensor::cat(&[self.features.broadcast_left(states.len())?, valid], 2)?;

        // Eq. 1.
        let lags = self.sum(&self.lags.matmul(w4)?.relu()?.unsqueeze(0)?)?.broadcast_matmul(w3)?;
        let own = x.broadcast_matmul(w1)?.broadcast_add(&lags)?;
        let mut s = own.zeros_like()?;
        for _ in 0..ROUNDS {
            let beside = self.sum(&s.index_select(&self.from, 1)?)?;
            s = (&own + beside.broadcast_matmul(w2)?)?.relu()?;
        }

        // Eq. 2, with a mean instead of the sum, which would grow with the graph.
        let current = self.marked(states.iter().map(|state| std::slice::from_ref(&state.current)))?;
        let all = s.mean_keepdim(1)?.broadcast_matmul(w5)?;
        let here = current.unsqueeze(1)?.matmul(&s)?.broadcast_matmul(w6)?;

        // Eq. 3.
        let action = s.broadcast_matmul(w8)?;
        let together = [all.broadcast_as(action.shape())?, here.broadcast_as(action.shape())?, action];
        Tensor::cat(&together, 2)?.relu()?.broadcast_matmul(&w7.reshape((3 * WIDTH, 1))?)?.squeeze(2)
    }

    /// The mean squared error of a mini-batch's values: eq. 4.
    fn loss(&self, batch: &[Sample]) -> Result<Tensor> {
        let states: Vec<&State> = batch.iter().map(|sample| sample.state).collect();
        let action = self.marked(batch.iter().map(|sample| std::slice::from_ref(&sample.action)))?;
        let y: Vec<f64> = batch.iter().map(|sample| sample.y).collect();
        let worths = (self.all_worths(&states)? * action)?.sum(1)?;
        (Tensor::new(y, &Device::Cpu)? - worths)?.sqr()?.mean_all()
    }

    /// By node, the sum over its edges: [B, e, p] becomes [B, n, p].
    fn sum(&self, along: &Tensor) -> Result<Tensor> {
        let (states, _, width) = along.dims3()?;
        let none = Tensor::zeros((states, self.features.dim(0)?, width), DType::F64, &Device::Cpu)?;
        none.index_add(&self.to, along, 1)
    }

    /// 1 at these nodes of each state, and 0 at the others: [B, n].
    fn marked<'a>(&self, nodes: impl ExactSizeIterator<Item = &'a [u32]>) -> Result<Tensor> {
        let (states, count) = (nodes.len(), self.features.dim(0)?);
        let mut marks = vec![0.0; states * count];
        for (marks, nodes) in marks.chunks_exact_mut(count).zip(nodes) {
            nodes.iter().for_each(|&node| marks[node as usize] = 1.0);
        }
        Tensor::from_vec(marks, (states, count), &Device::Cpu)
    }
}

fn variables(weights: &Weights) -> Result<[Var; MATRICES.len()]> {
    let mut rest = weights.numbers();
    let mut variables = Vec::new();
    for (_, [inputs, outputs]) in MATRICES {
        let (own, after) = rest.split_at(inputs * outputs);
        variables.push(Var::from_slice(own, (inputs, outputs), &Device::Cpu)?);
        rest = after;
    }
    Ok(variables.try_into().expect("one for each matrix"))
}

/// Tensor operations only fail if extents do not agree, which depends on the equations alone.
const AGREE: &str = "the extents of the equations' tensors agree";

impl Network for Candle {
    fn new(graph: &Rc<Graph>, weights: &Weights) -> Candle {
        Candle::of(graph, weights).expect(AGREE)
    }

    fn update(&mut self, weights: &Weights) {
        self.weights = variables(weights).expect(AGREE);
    }

    fn worths(&self, state: &State) -> Vec<f64> {
        let worths = self.all_worths(&[state]).and_then(|worths| worths.squeeze(0)?.to_vec1::<f64>());
        let worths = worths.expect(AGREE);
        state.valid.iter().map(|&node| worths[node as usize]).collect()
    }

    fn gradient(&mut self, batch: &[Sample]) -> Vec<f64> {
        let gradient = || -> Result<Vec<f64>> {
            let by_weight = self.loss(batch)?.backward()?;
            let mut gradient = Vec::with_capacity(Weights::COUNT);
            for matrix in &self.weights {
                match by_weight.get(matrix) {
                    Some(own) => gradient.extend(own.flatten_all()?.to_vec1::<f64>()?),
                    // A matrix that occurs in no equation.
                    None => gradient.resize(gradient.len() + matrix.elem_count(), 0.0),
                }
            }
            Ok(gradient)
        };
        gradient().expect(AGREE)
    }
}

#[cfg(test)]
mod tests {
    use lmsc_ir::rng::{Rng, Source};
    use lmsc_schedule::{Plan, Request, check};
    use lmsc_testing::random;

    use super::*;
    use crate::dqn::by_hand::ByHand;
    use crate::dqn::network::unit;
    use crate::dqn::{BATCH, Learner};
    use crate::env::Env;

    /// Whether numbers are equal up to the rounding of sums, relative to the largest of them.
    fn alike(one: &[f64], other: &[f64]) -> bool {
        let largest = one.iter().map(|x| x.abs()).fold(0.0, f64::max);
        one.len() == other.len() && one.iter().zip(other).all(|(a, b)| (a - b).abs() <= 1e-9 * largest)
    }

    /// Random problems with as little memory as possible.
    fn on_random_problems(mut run: impl FnMut(u64, &Request)) {
        for seed in 0..12 {
            let problem = random::problem(&mut Rng::new(seed), 16);
            let request = Request { recompute: true, ..Request::new(&problem, problem.floor().1) };
            run(seed, &request);
        }
    }

    #[test]
    fn worths_and_gradients_are_those_by_hand() {
        let mut compared = [0; MATRICES.len()];
        on_random_problems(|seed, request| {
            let (mut env, mut rng) = (Env::new(request).unwrap(), Rng::new(seed));
            let (graph, weights) = (Rc::new(Graph::of(&env)), Weights::random(seed));
            let (mut one, mut other) = (ByHand::new(&graph, &weights), Candle::new(&graph, &weights));
            // An episode of random choices, with random target values.
            let mut seen = Vec::new();
            let mut state = env.state();
            while !state.is_terminal() {
                assert!(alike(&one.worths(&state), &other.worths(&state)), "{seed}: {state:?}");
                let action = state.valid[rng.below(state.valid.len())];
                env.step(action).unwrap();
                seen.push((state, action, unit(&mut rng) - 0.5));
                state = env.state();
            }
            for batch in seen.chunks(BATCH) {
                let batch: Vec<Sample> =
                    batch.iter().map(|(state, action, y)| Sample { state, action: *action, y: *y }).collect();
                let (one, other) = (one.gradient(&batch), other.gradient(&batch));
                let mut own = 0..0;
                for (count, (name, [inputs, outputs])) in compared.iter_mut().zip(MATRICES) {
                    own = own.end..own.end + inputs * outputs;
                    assert!(alike(&one[own.clone()], &other[own.clone()]), "{seed} {name}");
                    *count += usize::from(one[own.clone()].iter().any(|g| *g != 0.0));
                }
            }
        });
        assert!(compared.iter().all(|&count| count > 8), "{compared:?}");
    }

    #[test]
    fn both_learn_the_same() {
        let mut learned = 0;
        on_random_problems(|seed, request| {
            let begin = Weights::random(seed);
            for decay in [0.0, 0.9] {
                let [mut by_hand, mut by_candle] = [(); 2].map(|()| Env::new(request).unwrap());
                let mut one = Learner::<ByHand>::new(&by_hand, begin.clone(), seed, decay);
                let mut other = Learner::<Candle>::new(&by_hand, begin.clone(), seed, decay);
                for episode in 0..2 {
                    // At random: the better of two actions may depend on the rounding of sums.
                    one.play(&mut by_hand, 0.0);
                    other.play(&mut by_candle, 0.0);
                    let far = |(a, b): (&f64, &f64)| (a - b).abs();
                    let weights = one.weights.numbers().iter().zip(other.weights.numbers());
                    let furthest = weights.map(far).fold(0.0, f64::max);
                    assert!(furthest < 1e-7, "{seed} {decay} {episode}: {furthest}");
                }
                learned += usize::from(one.weights != begin);
                let Plan { problem, schedule, .. } = by_candle.plan().unwrap();
                check(&problem, &schedule, request.budget).unwrap();
                assert_eq!(Some(schedule.steps), by_hand.plan().map(|plan| plan.schedule.steps), "{seed}");
            }
        });
        assert!(learned > 8, "{learned}");
    }
}

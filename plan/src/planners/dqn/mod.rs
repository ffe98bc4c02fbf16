//! The learned planner: a network that learns, for one graph and one limit, what to offload and what to remove.
//!
//! It plays episodes of an [`Env`], at first with random actions, then more and more with those that its network
//! thinks worth most, and fits the network to what it saw (Algorithm 1). What comes back is the best plan of all
//! episodes. A network's states do not depend on the size of the graph: weights that were learned on a small one can
//! be given to begin with on a large one ([`Learning::weights`]).
//!
//! # Source
//! Chen, *GPU Memory Management for Neural Networks Using Deep Q-Network*. What the paper leaves open of the
//! environment, [`crate::env`] says; of the learning:
//!
//! - p is [`WIDTH`]; sizes and times are scaled to 0..1, and the sum of eq. 2 is a mean, so that graphs of any size look
//!   alike. Rewards are in units of the mean time of a copy to the host and back.
//! - γ is [`DECAY`]: what is to be least is the sum of all rewards, whenever they come.
//! - A mini-batch is [`BATCH`] transitions drawn with repetition from all. After an action there are up to four where the
//!   graph is small; where it is large, there is one after several. A step is Adam's (Kingma and Ba, 2015), whose size does not depend on the rewards',
//!   where Algorithm 1 has plain SGD.
//! - In eq. 5 the next state's worth is that by the weights at the start of the episode (Mnih et al., 2015); otherwise
//!   the network follows its own errors.
//! - Algorithm 1 returns the actions of the last episode; here they are those of the best.
//! - Networks whose layers come and go (§5, stochastic depth) are planned as if all of them were there, by this planner as by
//!   any other; [`Replay::without`](crate::schedule::Replay::without) tells what that comes to in a step.
//! - Eq. 3 adds a worth of the state to a worth of the action's node. So an action's rank among the others depends on the
//!   state only by what is valid within T hops of its node.

mod network;

use std::fmt;

use lmsc_ir::rng::{Rng, Source};

use super::{DoesNotFit, Plan, Request};
use crate::env::{Env, State};
use network::{Graph, add_gradient, best, see, unit, worth};

pub use network::{FEATURES, MATRICES, ROUNDS, WIDTH, Weights};

/// The decay factor γ of eq. 5.
pub const DECAY: f64 = 1.0;

/// Transitions of a mini-batch.
pub const BATCH: usize = 8;

/// There are as many mini-batches as have so many nodes together for each action.
const NODES_PER_ACTION: usize = 2000;

/// And at most so many for each.
const MOST_PER_ACTION: usize = 4;

/// How far a weight moves in a step, about.
const RATE: f64 = 0.005;

/// How to learn.
#[derive(Clone, Copy)]
pub struct Learning<'a> {
    /// How many episodes, at an effort of 100.
    pub episodes: u32,
    /// What random choices follow from.
    pub seed: u64,
    /// The weights to begin with; random ones, if there are none.
    pub weights: Option<&'a Weights>,
    /// Who is told of each episode.
    pub watch: Option<&'a (dyn Fn(&Episode) + Sync)>,
}

impl Default for Learning<'_> {
    fn default() -> Self {
        Learning { episodes: 40, seed: 0, weights: None, watch: None }
    }
}

impl fmt::Debug for Learning<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Learning { episodes, seed, .. } = self;
        write!(f, "Learning {{ episodes: {episodes}, seed: {seed} }}")
    }
}

/// An episode that has been played.
#[derive(Clone, Copy, Debug)]
pub struct Episode<'a> {
    /// Its number, from 1.
    pub number: u32,
    /// How many there will be.
    pub of: u32,
    /// By how much its plan takes longer than the operators alone, in nanoseconds.
    pub overhead_nanos: u64,
    /// The same of the best plan so far.
    pub best_nanos: u64,
    /// The weights after it.
    pub weights: &'a Weights,
}

/// The best plan of the episodes that [`Request::learning`] asks for; removals are among the actions if operators may
/// run twice.
///
/// # Errors
/// [`DoesNotFit`] if an operator's own tensors, with what may not leave, exceed the budget.
pub fn plan(request: &Request) -> Result<Plan, DoesNotFit> {
    let mut env = Env::new(request)?;
    let Learning { episodes, seed, weights, watch } = request.learning;
    let weights = weights.cloned().unwrap_or_else(|| Weights::random(seed));
    let mut learner = Learner::new(&env, weights, seed);
    let refusal = DoesNotFit { tick: request.problem.floor().0, needed: 0, budget: request.budget };
    let mut found: Option<(u64, Plan)> = None;
    let of = (u64::from(episodes) * u64::from(request.effort) / 100).clamp(1, u64::from(u32::MAX)) as u32;
    for number in 1..=of {
        let greedy = f64::from(number) / f64::from(of);
        learner.play(&mut env, greedy);
        let overhead_nanos = env.overhead_nanos();
        if found.as_ref().is_none_or(|(best, _)| overhead_nanos < *best) {
            found = env.plan().map(|plan| (overhead_nanos, plan)).or(found);
        }
        let best_nanos = found.as_ref().map_or(overhead_nanos, |(best, _)| *best);
        if let Some(watch) = watch {
            watch(&Episode { number, of, overhead_nanos, best_nanos, weights: &learner.weights });
        }
        if best_nanos == 0 {
            break;
        }
    }
    found.map(|(_, plan)| plan).ok_or(refusal)
}

/// What was seen once: a state, what was done, what it cost, and what came of it.
struct Transition {
    state: State,
    action: u32,
    reward: f64,
    next: State,
}

struct Learner {
    graph: Graph,
    weights: Weights,
    /// Those at the start of the episode, which tell what a next state is worth.
    held: Weights,
    rng: Rng,
    /// The time of a reward of 1.
    unit: f64,
    seen: Vec<Transition>,
    /// How many nodes the mini-batches may have that are due.
    due: usize,
    step: Adam,
}

impl Learner {
    fn new(env: &Env, weights: Weights, seed: u64) -> Learner {
        let travels = env.nodes().iter().filter(|node| node.action.is_some());
        let (count, sum) = travels
            .fold((0u64, 0u128), |(count, sum), node| (count + 1, sum + u128::from(node.transfer_nanos)));
        Learner {
            graph: Graph::of(env),
            held: weights.clone(),
            weights,
            rng: Rng::new(seed),
            unit: (sum / u128::from(count.max(1))).max(1) as f64,
            seen: Vec::new(),
            due: 0,
            step: Adam::default(),
        }
    }

    /// Plays an episode, in which so large a part of the actions is the one worth most, and learns from it.
    fn play(&mut self, env: &mut Env, greedy: f64) {
        env.reset();
        self.held.clone_from(&self.weights);
        let mut state = env.state();
        while !state.is_terminal() {
            let action = if unit(&mut self.rng) > greedy {
                state.valid[self.rng.below(state.valid.len())]
            } else {
                best(&self.weights, &see(&self.weights, &self.graph, &state), &state).0
            };
            let Ok(reward) = env.step(action) else { return };
            let next = env.state();
            let reward = reward as f64 / self.unit;
            self.seen.push(Transition { state, action, reward, next: next.clone() });
            let nodes = self.graph.len();
            self.due += NODES_PER_ACTION.min(MOST_PER_ACTION * nodes);
            while self.due >= nodes {
                self.due -= nodes;
                self.learn();
            }
            state = next;
        }
    }

    /// A step down the gradient of eq. 4 on a mini-batch.
    fn learn(&mut self) {
        let mut gradient = vec![0.0; Weights::COUNT];
        for _ in 0..BATCH {
            let Transition { state, action, reward, next } = &self.seen[self.rng.below(self.seen.len())];
            // Eq. 5, through which no gradient flows.
            let ahead = match next.is_terminal() {
                true => 0.0,
                false => best(&self.held, &see(&self.held, &self.graph, next), next).1,
            };
            let seen = see(&self.weights, &self.graph, state);
            let error = worth(&self.weights, &seen, *action) - (reward + DECAY * ahead);
            let d = 2.0 * error / BATCH as f64;
            add_gradient(&self.weights, &self.graph, &seen, *action, d, &mut gradient);
        }
        self.step.apply(self.weights.numbers_mut(), &gradient);
    }
}

/// Steps whose size follows from the gradients' mean and spread.
#[derive(Default)]
struct Adam {
    mean: Vec<f64>,
    square: Vec<f64>,
    /// 0.9 and 0.999 to the power of the steps taken.
    powers: Option<(f64, f64)>,
}

impl Adam {
    fn apply(&mut self, weights: &mut [f64], gradient: &[f64]) {
        const KEPT: (f64, f64) = (0.9, 0.999);
        self.mean.resize(weights.len(), 0.0);
        self.square.resize(weights.len(), 0.0);
        let before = self.powers.unwrap_or((1.0, 1.0));
        let powers = (before.0 * KEPT.0, before.1 * KEPT.1);
        self.powers = Some(powers);
        let moments = self.mean.iter_mut().zip(&mut self.square);
        for ((weight, g), (mean, square)) in weights.iter_mut().zip(gradient).zip(moments) {
            *mean = KEPT.0 * *mean + (1.0 - KEPT.0) * g;
            *square = KEPT.1 * *square + (1.0 - KEPT.1) * g * g;
            let spread = (*square / (1.0 - powers.1)).sqrt() + 1e-8;
            *weight -= RATE * *mean / (1.0 - powers.0) / spread;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use lmsc_ir::Phase::{Backward, Forward};

    use super::*;
    use crate::planners::testing::{op, problem, produced};
    use crate::problem::{Op, Problem};
    use crate::schedule::check;

    /// A chain of so many stages whose odd operators are quick to run again, over a slow link.
    fn uneven(stages: u32) -> Problem {
        let read = |i: u32| if i == 0 { Vec::new() } else { vec![i - 1] };
        let forward = (0..stages).map(|i| {
            let nanos = if i % 2 == 1 { 2 } else { 60 };
            Op { recomputable: true, ..op(Forward, nanos, &read(i), &[i]) }
        });
        let backward = (0..stages).rev().map(|i| op(Backward, 20, &[&read(i)[..], &[i]].concat(), &[]));
        let mut problem =
            problem(&vec![produced(100); stages as usize], &forward.chain(backward).collect::<Vec<_>>());
        problem.link.out_bytes_per_second = 1_000_000_000;
        problem
    }

    fn request(problem: &Problem) -> Request<'_> {
        let peak = problem.live_by_moment(&problem.uses()).into_iter().max().unwrap();
        Request { recompute: true, ..Request::new(problem, peak * 2 / 3) }
    }

    /// What an episode of random choices loses on average.
    fn at_random(request: &Request) -> u64 {
        let mut env = Env::new(request).unwrap();
        let mut rng = Rng::new(9);
        let mut sum = 0;
        for _ in 0..20 {
            env.reset();
            let mut state = env.state();
            while !state.is_terminal() {
                env.step(state.valid[rng.below(state.valid.len())]).unwrap();
                state = env.state();
            }
            sum += env.overhead_nanos();
        }
        sum / 20
    }

    /// What the network of these weights loses if it chooses alone.
    fn chosen_by(request: &Request, weights: &Weights) -> u64 {
        let mut env = Env::new(request).unwrap();
        Learner::new(&env, weights.clone(), 0).play(&mut env, 1.0);
        env.overhead_nanos()
    }

    /// The weights after so many episodes, and the plan.
    fn learned(request: &Request, episodes: u32, seed: u64, weights: Option<&Weights>) -> (Weights, Plan) {
        let last = Mutex::new(None);
        let watch = |episode: &Episode| *last.lock().unwrap() = Some(episode.weights.clone());
        let learning = Learning { episodes, seed, weights, watch: Some(&watch) };
        let plan = plan(&Request { learning, ..*request }).unwrap();
        check(&plan.problem, &plan.schedule, request.budget).unwrap();
        (last.lock().unwrap().clone().unwrap(), plan)
    }

    #[test]
    fn what_is_learned_beats_chance_and_is_tuned_for_a_larger_graph() {
        let (small, large) = (uneven(10), uneven(24));
        let (small, large) = (request(&small), request(&large));
        let (mut beyond, mut tuned, mut from_nothing) = (0, 0, 0);
        for seed in 0..3 {
            let (weights, _) = learned(&small, 60, seed, None);
            let (after, chance) = (chosen_by(&small, &weights), at_random(&small));
            assert!(3 * after < chance, "{seed}: {after} against {chance}");
            beyond += chosen_by(&large, &weights);
            // A few episodes on the larger graph, from there and from random weights.
            tuned += chosen_by(&large, &learned(&large, 6, seed, Some(&weights)).0);
            from_nothing += chosen_by(&large, &learned(&large, 6, seed, None).0);
        }
        let chance = 3 * at_random(&large);
        println!("{beyond} {tuned} {from_nothing} {chance}");
        assert!(beyond < chance && tuned < from_nothing, "{beyond}, {tuned}, {from_nothing}, {chance}");
    }

    #[test]
    fn a_seed_gives_the_same_plan_and_the_same_weights() {
        let problem = uneven(8);
        let request = request(&problem);
        let (weights, plan) = learned(&request, 12, 1, None);
        let (again, same) = learned(&request, 12, 1, None);
        assert_eq!((weights, plan.schedule.steps), (again, same.schedule.steps));
    }
}

//! The learned planner: a network that learns, for one graph and one limit, which tensors to offload and which to remove.
//!
//! It plays episodes of an [`Env`], at first with random actions, then increasingly with those of the highest value by its
//! network, and fits the network to the transitions seen (Algorithm 1). The result is the best plan of all episodes. A
//! network's states do not depend on the size of the graph: weights learned on a small graph can be the initial weights for a
//! large one ([`Learning::weights`]).
//!
//! # Source
//! Chen, *GPU Memory Management for Neural Networks Using Deep Q-Network*. The points that the paper leaves open about the
//! environment are in [`crate::env`]; those about learning:
//!
//! - p is [`WIDTH`]; sizes and times are scaled to 0..1, and the sum of eq. 2 is a mean, so that graphs of any size look
//!   alike.
//! - *Rewards* (§4.7) are in units of the average loss of the plans of the episodes so far, so that they have the same scale
//!   in every graph, and an action is also rewarded for its progress towards the terminal state: the share that it removes of
//!   the bytes over the limit ([`Env::excess`]). Over an episode these shares sum to 1 under all choices, so plans are ranked
//!   as by their losses (Ng, Harada and Russell, *Policy invariance under reward transformations*, 1999). The paper's
//!   features do not include the bytes still over the limit; without the shares, these would dominate the effect of an
//!   action.
//! - γ is [`Learning::decay`], by default 0: the value of an action is its relief less its cost, and this stands for later
//!   effects. The maximum of eq. 5 is over dozens of actions of which a few hundred transitions have tried few; with γ = 1
//!   and without the shares, doing nothing, whose reward is certain, comes to have the highest value, and the network does
//!   worse than chance.
//! - A mini-batch is [`BATCH`] transitions drawn with repetition from all. There are as many as actions, all after the
//!   episode rather than one after each, so that an episode is played by one network. A step is Adam's (Kingma and Ba, 2015),
//!   whose size does not depend on that of the rewards, where Algorithm 1 has plain SGD.
//! - In eq. 5 the value of the next state is that by the weights at the end of the episode, before they are updated (Mnih et
//!   al., 2015); otherwise the network follows its own errors.
//! - Algorithm 1 returns the actions of the last episode; here they are those of the best.
//! - Networks with layers that are skipped at random (§5, stochastic depth) are planned with all layers, by this planner as
//!   by any other; [`Replay::without`](lmsc_schedule::Replay::without) gives the result for one step.
//! - The network and its gradients are written by hand, so that a seed gives the same plan on every machine.
//! - Eq. 3 adds a value of the state to a value of the action's node. So an action's rank among the others depends on the
//!   state only through the valid nodes within T hops of its node.

mod by_hand;
mod network;

use std::fmt;
use std::rc::Rc;

use lmsc_ir::rng::{Rng, Source};
use lmsc_planners::call::CallOption;
use lmsc_planners::{Episode, Parameters, Training};
use lmsc_schedule::{DoesNotFit, Plan, Request};
use network::{Graph, Network, Sample, unit};

use crate::env::{Env, State};

pub use network::{MATRICES, WIDTH, Weights};

/// Number of transitions in a mini-batch.
pub const BATCH: usize = 8;

/// Approximate change of a weight in one step.
const RATE: f64 = 0.005;

/// The network that is learned.
type Own = by_hand::ByHand;

/// Number of episodes that are learned from where a call names none.
const USUAL_EPISODES: u64 = 40;

pub(crate) const EPISODES: CallOption =
    CallOption::count("episodes", "learn from this many episodes", USUAL_EPISODES);
pub(crate) const SEED: CallOption = CallOption::count("seed", "seed of random choices", 0);

/// Settings of the training.
#[derive(Clone, Copy)]
pub struct Learning<'a> {
    /// Number of episodes, at an effort of 100.
    pub episodes: u32,
    /// The seed of all random choices.
    pub seed: u64,
    /// The weight of later rewards for an action: γ of eq. 5.
    pub decay: f64,
    /// The initial weights; random if there are none.
    pub weights: Option<&'a Weights>,
    /// Callback after each episode.
    pub watch: Option<&'a (dyn Fn(&Episode) + Sync)>,
}

impl Default for Learning<'_> {
    fn default() -> Self {
        Learning { episodes: USUAL_EPISODES as u32, seed: 0, decay: 0.0, weights: None, watch: None }
    }
}

impl fmt::Debug for Learning<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Learning { episodes, seed, decay, .. } = self;
        write!(f, "Learning {{ episodes: {episodes}, seed: {seed}, decay: {decay} }}")
    }
}

/// As [`plan`], with the parameters of a call.
///
/// # Panics
/// If the training begins with weights that are none of this network.
pub(crate) fn plan_with(request: &Request, parameters: &Parameters) -> Result<Plan, DoesNotFit> {
    let Training { weights, watch } = parameters.training;
    let weights = weights.map(|numbers| Weights::new(numbers.to_vec()).expect("they are of this network"));
    let mut learning = Learning { weights: weights.as_ref(), watch, ..Learning::default() };
    if let Some(call) = parameters.options {
        // Without an episode there is no plan.
        learning.episodes = u32::try_from(call.count(&EPISODES)).unwrap_or(u32::MAX).max(1);
        learning.seed = call.count(&SEED);
    }
    plan(request, &learning)
}

/// The best plan of the episodes that `learning` asks for; removals are among the actions if operators may be
/// recomputed.
///
/// # Errors
/// [`DoesNotFit`] if the tensors of an operator together with the unswappable ones exceed the budget.
pub fn plan(request: &Request, learning: &Learning) -> Result<Plan, DoesNotFit> {
    let mut env = Env::new(request)?;
    let Learning { seed, decay, weights, watch, .. } = *learning;
    let weights = weights.cloned().unwrap_or_else(|| Weights::random(seed));
    let mut learner = Learner::<Own>::new(&env, weights, seed, decay);
    best_of((request, learning.episodes), &mut env, |env, number, of, best| {
        learner.play(env, f64::from(number) / f64::from(of));
        if let Some(watch) = watch {
            let overhead_nanos = env.overhead_nanos();
            let best_nanos = best.map_or(overhead_nanos, |best| best.min(overhead_nanos));
            watch(&Episode { number, of, overhead_nanos, best_nanos, weights: learner.weights.numbers() });
        }
    })
}

/// The best plan of as many episodes with random choices only: the baseline for learning.
///
/// # Errors
/// As for [`plan`].
pub fn at_random(request: &Request, learning: &Learning) -> Result<Plan, DoesNotFit> {
    let mut env = Env::new(request)?;
    let mut rng = Rng::new(learning.seed);
    best_of((request, learning.episodes), &mut env, |env, _, _, _| {
        env.reset();
        let mut state = env.state();
        while !state.is_terminal() && env.step(state.valid[rng.below(state.valid.len())]).is_ok() {
            state = env.state();
        }
    })
}

/// The best plan of episodes; `play` gets the number of the episode, the number of episodes, and the least overhead so far.
fn best_of(
    (request, episodes): (&Request, u32),
    env: &mut Env,
    mut play: impl FnMut(&mut Env, u32, u32, Option<u64>),
) -> Result<Plan, DoesNotFit> {
    let of = (u64::from(episodes) * u64::from(request.effort) / 100).clamp(1, u64::from(u32::MAX)) as u32;
    let mut found: Option<(u64, Plan)> = None;
    for number in 1..=of {
        let best = found.as_ref().map(|(best, _)| *best);
        play(env, number, of, best);
        let overhead = env.overhead_nanos();
        if best.is_none_or(|best| overhead < best) {
            found = env.plan().map(|plan| (overhead, plan)).or(found);
        }
        if found.as_ref().is_some_and(|(best, _)| *best == 0) {
            break;
        }
    }
    let refusal = DoesNotFit { tick: request.problem.floor().0, needed: 0, budget: request.budget };
    found.map(|(_, plan)| plan).ok_or(refusal)
}

/// An observed transition: a state, the action, its cost, and the next state.
struct Transition {
    state: State,
    action: u32,
    /// The increase of the plan's makespan, in nanoseconds.
    cost: f64,
    /// The share of the initial excess that the action removed.
    relief: f64,
    next: State,
    /// The value of the next state by the held weights, if it has been computed.
    ahead: Option<f64>,
}

struct Learner<N> {
    weights: Weights,
    network: N,
    /// The network at the end of the last episode, which gives the values of next states.
    held: N,
    rng: Rng,
    decay: f64,
    seen: Vec<Transition>,
    /// Total loss of the plans of all episodes, in nanoseconds.
    lost: f64,
    played: u32,
    step: Adam,
}

impl<N: Network> Learner<N> {
    fn new(env: &Env, weights: Weights, seed: u64, decay: f64) -> Learner<N> {
        let graph = Rc::new(Graph::of(env));
        Learner {
            network: N::new(&graph, &weights),
            held: N::new(&graph, &weights),
            weights,
            rng: Rng::new(seed),
            decay,
            seen: Vec::new(),
            lost: 0.0,
            played: 0,
            step: Adam::default(),
        }
    }

    /// Plays an episode in which the given share of the actions has the highest value, and learns from all transitions.
    fn play(&mut self, env: &mut Env, greedy: f64) {
        env.reset();
        let (first, begin) = (env.excess().max(1) as f64, self.seen.len());
        let mut state = env.state();
        while !state.is_terminal() {
            let action = if unit(&mut self.rng) > greedy {
                state.valid[self.rng.below(state.valid.len())]
            } else {
                self.network.best(&state).0
            };
            let before = env.excess();
            let Ok(reward) = env.step(action) else { break };
            let relief = (before as f64 - env.excess() as f64) / first;
            let next = env.state();
            let cost = -(reward as f64);
            self.seen.push(Transition { state, action, cost, relief, next: next.clone(), ahead: None });
            state = next;
        }
        self.lost += env.overhead_nanos() as f64;
        self.played += 1;
        self.held.update(&self.weights);
        self.seen.iter_mut().for_each(|transition| transition.ahead = None);
        for _ in begin..self.seen.len() {
            self.learn();
        }
    }

    /// A step down the gradient of eq. 4 on a mini-batch.
    fn learn(&mut self) {
        let usual = (self.lost / f64::from(self.played)).max(1.0);
        let batch: [usize; BATCH] = std::array::from_fn(|_| self.rng.below(self.seen.len()));
        // Eq. 5, through which no gradient flows.
        let y = batch.map(|at| {
            let Transition { cost, relief, next, ahead, .. } = &mut self.seen[at];
            let ahead = *ahead.get_or_insert_with(|| {
                if next.is_terminal() || self.decay == 0.0 { 0.0 } else { self.held.best(next).1 }
            });
            self.decay * ahead + *relief - *cost / usual
        });
        let samples = batch.iter().zip(y).map(|(&at, y)| {
            let Transition { state, action, .. } = &self.seen[at];
            Sample { state, action: *action, y }
        });
        let gradient = self.network.gradient(&samples.collect::<Vec<_>>());
        self.step.apply(self.weights.numbers_mut(), &gradient);
        self.network.update(&self.weights);
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
    use lmsc_schedule::check;
    use lmsc_schedule::problem::{Operator, Problem};
    use lmsc_testing::small::{op, problem, produced};

    use super::*;

    /// A chain of `stages` stages, in which the odd operators are quick to recompute, over a slow link.
    fn uneven(stages: u32) -> Problem {
        let read = |i: u32| if i == 0 { Vec::new() } else { vec![i - 1] };
        let forward = (0..stages).map(|i| {
            let nanos = if i % 2 == 1 { 2 } else { 60 };
            Operator { recomputable: true, ..op(Forward, nanos, &read(i), &[i]) }
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

    /// The average loss of an episode of random choices.
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

    /// The loss of an episode in which the network with these weights makes every choice.
    fn chosen_by(request: &Request, weights: &Weights) -> u64 {
        let mut env = Env::new(request).unwrap();
        Learner::<Own>::new(&env, weights.clone(), 0, 0.0).play(&mut env, 1.0);
        env.overhead_nanos()
    }

    /// The weights after this number of episodes, and the plan.
    fn learned(request: &Request, episodes: u32, seed: u64, weights: Option<&Weights>) -> (Weights, Plan) {
        let last = Mutex::new(None);
        let watch = |episode: &Episode| *last.lock().unwrap() = Weights::new(episode.weights.to_vec());
        let learning = Learning { episodes, seed, weights, watch: Some(&watch), ..Learning::default() };
        let plan = plan(request, &learning).unwrap();
        check(&plan.problem, &plan.schedule, request.budget).unwrap();
        (last.lock().unwrap().clone().unwrap(), plan)
    }

    #[test]
    fn learned_weights_beat_chance_and_are_tuned_for_a_larger_graph() {
        let (small, large) = (uneven(10), uneven(24));
        let (small, large) = (request(&small), request(&large));
        let (mut tuned, mut from_nothing) = (0, 0);
        for seed in 0..3 {
            let (weights, _) = learned(&small, 60, seed, None);
            let (after, chance) = (chosen_by(&small, &weights), at_random(&small));
            assert!(2 * after < chance, "{seed}: {after} against {chance}");
            // A few episodes on the larger graph, from these and from random weights.
            tuned += chosen_by(&large, &learned(&large, 6, seed, Some(&weights)).0);
            from_nothing += chosen_by(&large, &learned(&large, 6, seed, None).0);
        }
        let chance = 3 * at_random(&large);
        assert!(4 * tuned < chance && tuned < from_nothing, "{tuned}, {from_nothing}, {chance}");
    }

    #[test]
    fn later_rewards_count_where_the_decay_allows() {
        let problem = uneven(8);
        let request = request(&problem);
        let weights = |decay| {
            let last = Mutex::new(None);
            let watch = |episode: &Episode| *last.lock().unwrap() = Weights::new(episode.weights.to_vec());
            let learning = Learning { episodes: 6, decay, watch: Some(&watch), ..Learning::default() };
            let plan = plan(&request, &learning).unwrap();
            check(&plan.problem, &plan.schedule, request.budget).unwrap();
            last.into_inner().unwrap().unwrap()
        };
        let far = weights(0.9);
        assert_eq!(far, weights(0.9));
        assert_ne!(far, weights(0.0));
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

//! Replays a schedule with durations that differ from the planned ones.
//!
//! Steps run by edges alone, as a runtime executes a rewritten graph: each engine in its order, each step once the steps that
//! it waits for have ended. Memory is not counted during the replay; the independent checker counts it afterwards. Where a
//! planner makes a step wait without a dependence, as on-demand planners do, the replay is faster than the plan.

use lmsc_ir::program::GateEffect;
use lmsc_ir::rng::{Rng, Source};

use super::edges::{Edge, data};
use super::lanes::{self, engine_of};
use super::{Flaw, Instruction, Schedule, Step, check_however_long};
use crate::problem::Problem;

/// How actual durations differ from planned ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Noise {
    /// Operators take up to this many percent more or less, each at random.
    pub operators_percent: u32,
    /// While copies run in both directions, each is this many percent slower.
    pub contention_percent: u32,
}

/// The result of several replays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// The mean makespan, in nanoseconds, rounded.
    pub mean: u64,
    /// The largest makespan.
    pub most: u64,
    /// The most bytes allocated at once in any replay.
    pub peak: u64,
}

/// A schedule with all dependences of its steps.
pub struct Replay<'a> {
    problem: &'a Problem,
    schedule: &'a Schedule,
    /// By engine (compute, out, in, and further lanes of operators), its steps in their order.
    engines: Vec<Vec<usize>>,
    /// For each step, the steps that it waits for, besides the previous one of its engine.
    before: Vec<Vec<usize>>,
}

impl<'a> Replay<'a> {
    /// The replay of a schedule that [`super::check`] accepts, with the edges that [`super::edges`] found for it.
    pub fn new(problem: &'a Problem, schedule: &'a Schedule, edges: &[Edge]) -> Replay<'a> {
        let mut before = data(problem, schedule);
        edges.iter().for_each(|edge| before[edge.step].push(edge.before));
        let mut engines = vec![Vec::new(); lanes::engines(problem)];
        for (index, step) in schedule.steps.iter().enumerate() {
            engines[engine_of(problem, step.instruction)].push(index);
        }
        Replay { problem, schedule, engines, before }
    }

    /// Runs `runs` replays, each with its own noise.
    ///
    /// # Errors
    /// The first [`Flaw`] found: a replayed schedule is not valid within the budget.
    pub fn several(&self, noise: Noise, runs: u32, budget: u64) -> Result<Replayed, Flaw> {
        let mut replayed = Replayed { mean: 0, most: 0, peak: 0 };
        let mut sum = 0u128;
        for seed in 0..runs {
            let schedule = self.run(noise, seed.into());
            let peak = check_however_long(self.problem, &schedule, budget)?;
            let makespan = schedule.makespan();
            sum += u128::from(makespan);
            replayed.most = replayed.most.max(makespan);
            replayed.peak = replayed.peak.max(peak);
        }
        let runs = u128::from(runs.max(1));
        replayed.mean = ((sum + runs / 2) / runs) as u64;
        Ok(replayed)
    }

    /// The schedule in which each step takes the time that the problem states, whatever it took as planned.
    pub fn retimed(&self) -> Schedule {
        let nanos = |step: &Step| {
            let piece = |piece| self.schedule.pieces[piece].len();
            match step.instruction {
                Instruction::Op(tick) => self.problem.ops[tick as usize].nanos,
                Instruction::Out(out) => self.problem.link.out_nanos(piece(out)),
                Instruction::In(back) => self.problem.link.in_nanos(piece(back)),
            }
        };
        let work = self.schedule.steps.iter().map(|step| u128::from(nanos(step)) * 100).collect();
        self.go(Noise::default(), work)
    }

    /// The schedule with the times of one replay.
    pub fn run(&self, noise: Noise, seed: u64) -> Schedule {
        self.go(noise, self.work(noise, seed))
    }

    /// The problem of a step that skips layers of stochastic depth ([`Problem::without`]), and the schedule of one replay of
    /// it, which can be checked against that problem.
    ///
    /// Copies of tensors that no operator produces are omitted. Everything else keeps its place in the order and its
    /// dependences in the plan, so that memory stays within the budget: at any time at most as much is allocated as in some
    /// replay of the whole step.
    ///
    /// # Source
    /// DQN §5 runs networks of stochastic depth with plans of the whole network; its text does not say how.
    pub fn without(&self, parts: &[GateEffect], noise: Noise, seed: u64) -> (Problem, Schedule) {
        let problem = self.problem.without(parts);
        let mut there: Vec<bool> = problem.tensors.values().map(|tensor| tensor.given).collect();
        problem.ops.iter().flat_map(|op| &op.produces).for_each(|t| there[t.as_u32() as usize] = true);
        let is_done = |step: &Step| match step.instruction {
            Instruction::Op(tick) => parts.get(tick as usize).is_none_or(|part| *part == GateEffect::Runs),
            Instruction::Out(piece) | Instruction::In(piece) => {
                there[self.schedule.pieces[piece].tensor.as_u32() as usize]
            }
        };
        let mut work = self.work(noise, seed);
        let idle = work.iter_mut().zip(&self.schedule.steps).filter(|(_, step)| !is_done(step));
        idle.for_each(|(work, _)| *work = 0);
        let mut schedule = self.go(noise, work);
        schedule.steps.retain(|step| matches!(step.instruction, Instruction::Op(_)) || is_done(step));
        (problem, schedule)
    }

    /// The schedule in which each step does the given work.
    fn go(&self, noise: Noise, mut work: Vec<u128>) -> Schedule {
        let mut schedule = self.schedule.clone();
        let mut ended = vec![false; work.len()];
        let engines = self.engines.iter().map(|queue| Engine { queue, running: None });
        let mut engines: Vec<Engine> = engines.collect();
        let mut now = 0;
        loop {
            // Steps of no duration let others start at once.
            let mut changed = true;
            while std::mem::take(&mut changed) {
                for engine in &mut engines {
                    let may = |step: &usize| self.before[*step].iter().all(|&before| ended[before]);
                    if let Some(step) = engine.start(may) {
                        schedule.steps[step].start = now;
                        engine.running = Some((step, std::mem::take(&mut work[step])));
                    }
                    if let Some((step, _)) = engine.running.take_if(|(_, left)| *left == 0) {
                        schedule.steps[step].end = now;
                        ended[step] = true;
                        changed = true;
                    }
                }
            }
            match advance(&mut engines, noise) {
                Some(nanos) => now += nanos,
                None => return schedule,
            }
        }
    }

    /// For each step, its work: a hundred units for each nanosecond of its undisturbed duration.
    fn work(&self, noise: Noise, seed: u64) -> Vec<u128> {
        let mut rng = Rng::new(seed);
        let percent = noise.operators_percent.min(100) as usize;
        let steps = self.schedule.steps.iter().map(|Step { instruction, start, end }| match instruction {
            Instruction::Op(_) => {
                // In hundredths of a percent.
                let factor = 10_000 - 100 * percent + rng.below(200 * percent + 1);
                u128::from(end - start) * factor as u128 / 10_000 * 100
            }
            Instruction::Out(_) | Instruction::In(_) => u128::from(end - start) * 100,
        });
        steps.collect()
    }
}

/// The state of an engine.
struct Engine<'a> {
    /// The steps that it has not started.
    queue: &'a [usize],
    /// The step that it runs, and the work left.
    running: Option<(usize, u128)>,
}

impl Engine<'_> {
    /// Its next step, if it is free and the step may start.
    fn start(&mut self, may: impl Fn(&usize) -> bool) -> Option<usize> {
        let (step, rest) =
            self.queue.split_first().filter(|(step, _)| self.running.is_none() && may(step))?;
        self.queue = rest;
        Some(*step)
    }
}

/// Advances until a step ends and returns the nanoseconds; none if nothing runs.
fn advance(engines: &mut [Engine<'_>], noise: Noise) -> Option<u64> {
    let contended = engines[lanes::OUT].running.is_some() && engines[lanes::IN].running.is_some();
    let slow = u128::from(100 - noise.contention_percent.min(99));
    let speed = |engine| if contended && lanes::copies(engine) { slow } else { 100 };
    let running = engines.iter().zip((0..).map(speed));
    let times = running.filter_map(|(engine, speed)| Some(engine.running?.1.div_ceil(speed)));
    let nanos = times.min()?;
    for (engine, speed) in engines.iter_mut().zip((0..).map(speed)) {
        engine.running = engine.running.map(|(step, left)| (step, left.saturating_sub(speed * nanos)));
    }
    Some(nanos as u64)
}

#[cfg(test)]
mod tests {
    use lmsc_ir::Phase::{Backward, Forward};

    use super::*;
    use crate::small::{op, problem, produced, steps};

    fn noise(operators_percent: u32, contention_percent: u32) -> Noise {
        Noise { operators_percent, contention_percent }
    }

    #[test]
    fn copies_in_both_directions_slow_each_other_down() {
        // Two tensors of 30 and 10 bytes at one byte per nanosecond: one is swapped out while the other is swapped in.
        let ops = [
            op(Forward, 10, &[], &[0]),
            op(Forward, 10, &[], &[1]),
            op(Backward, 100, &[], &[]),
            op(Backward, 10, &[0], &[]),
            op(Backward, 10, &[1], &[]),
        ];
        let problem = problem(&[produced(10), produced(30)], &ops);
        let piece = |tensor: u32, bytes| super::super::Piece {
            tensor: crate::problem::TensorId::from_u32(tensor),
            bytes: 0..bytes,
        };
        let mut schedule = Schedule::default();
        let small = schedule.pieces.push(piece(0, 10));
        let large = schedule.pieces.push(piece(1, 30));
        schedule.steps = [
            (Instruction::Op(0), 0, 10),
            (Instruction::Op(1), 10, 20),
            (Instruction::Out(small), 10, 20),
            (Instruction::Out(large), 20, 50),
            (Instruction::Op(2), 20, 120),
            (Instruction::In(small), 20, 30),
            (Instruction::In(large), 50, 80),
            (Instruction::Op(3), 120, 130),
            (Instruction::Op(4), 130, 140),
        ]
        .map(|(instruction, start, end)| Step { instruction, start, end })
        .to_vec();
        let replay = Replay::new(&problem, &schedule, &[]);
        // At half the speed the small copy takes 20 ns, in which the large one transfers 10 of its 30 bytes.
        let slow = "op0@0 op1@10 out0@10 out1@20 op2@20 in0@20 in1@60 op3@120 op4@130";
        assert_eq!(steps(&replay.run(noise(0, 50), 0)), slow);
        assert_eq!(replay.run(Noise::default(), 0).steps, schedule.steps);
    }

    #[test]
    fn the_noise_is_within_its_limits_and_the_same_for_the_same_seed() {
        let ops: Vec<_> = (0..200).map(|_| op(Forward, 1000, &[], &[])).collect();
        let problem = problem(&[], &ops);
        let step = |tick: u32| {
            let start = u64::from(tick) * 1000;
            Step { instruction: Instruction::Op(tick), start, end: start + 1000 }
        };
        let schedule = Schedule { steps: (0..200).map(step).collect(), ..Schedule::default() };
        let replay = Replay::new(&problem, &schedule, &[]);
        let (one, other) = (replay.run(noise(10, 0), 1), replay.run(noise(10, 0), 2));
        assert_eq!(one.steps, replay.run(noise(10, 0), 1).steps);
        assert_ne!(one.steps, other.steps);
        let durations: Vec<u64> = one.steps.iter().map(|step| step.end - step.start).collect();
        assert!(durations.iter().all(|nanos| (900..=1100).contains(nanos)));
        assert!(durations.iter().any(|&nanos| nanos < 920) && durations.iter().any(|&nanos| nanos > 1080));
    }
}

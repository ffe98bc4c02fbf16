//! Which step starts when: in the order of the list, at most so many at a time as there are jobs.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::job::{Job, Output, Tests};
use super::table::{Ended, Row};
use super::{Options, Step, built_program};

/// A step's results: its row of the table and the tests counted in it.
pub(super) struct Report {
    pub(super) row: Row,
    pub(super) tests: Tests,
}

/// The state of one step.
enum State {
    Waiting,
    Running,
    /// With the output that is not yet printed.
    Ended(Ended, Tests, Output),
}

/// The states of all steps of this call, shared by the threads that run them.
struct Board<'a> {
    steps: Vec<&'a Step>,
    keep_going: bool,
    /// The largest number of steps that run at the same time.
    jobs: usize,
    states: Mutex<States>,
    /// Signalled whenever a step ends.
    ended: Condvar,
}

struct States {
    states: Vec<State>,
    /// Number of steps at the beginning of the list whose output is printed.
    printed: usize,
    /// The last lines of steps that failed, which are printed again at the end: other steps' output may be between.
    failed: Vec<(&'static str, String)>,
}

/// Number of lines of a failed step that are printed again.
const LAST_LINES: usize = 60;

/// Runs the steps and prints their output: as it comes with one job; otherwise whole, in the order of the list.
pub(super) fn run(root: &Path, all: &[Step], options: &Options) -> Vec<Report> {
    let steps: Vec<&Step> = options.steps.iter().map(|&at| &all[at]).collect();
    let waiting = steps.iter().map(|_| State::Waiting).collect();
    let states = States { states: waiting, printed: 0, failed: Vec::new() };
    let jobs = options.jobs.min(steps.len());
    let (states, ended) = (Mutex::new(states), Condvar::new());
    let board = Board { steps, keep_going: options.keep_going, jobs, states, ended };
    std::thread::scope(|scope| {
        for _ in 1..jobs {
            scope.spawn(|| board.work(root));
        }
        board.work(root);
    });
    let mut states = board.states.into_inner().unwrap_or_else(PoisonError::into_inner);
    // After a failure, steps that ended may follow steps that never ran.
    while states.printed < states.states.len() {
        states.print(&board.steps);
        states.printed += 1;
    }
    for (step, lines) in &states.failed {
        println!("\n==> the last lines of {step}, which failed\n{lines}");
    }
    let reports = board.steps.iter().zip(states.states).map(|(step, state)| {
        let (ended, tests) = match state {
            State::Ended(ended, tests, _) => (Some(ended), tests),
            State::Waiting | State::Running => (None, Tests::default()),
        };
        Report { row: Row { step: step.name, ended }, tests }
    });
    reports.collect()
}

impl Board<'_> {
    /// Runs steps until none is left.
    fn work(&self, root: &Path) {
        while let Some((at, has_program)) = self.next() {
            let step = self.steps[at];
            println!("==> {}{}", step.name, if self.jobs > 1 { ": started" } else { "" });
            let output = if self.jobs > 1 { Output::Kept(Vec::new()) } else { Output::Shown };
            let program = has_program.then(|| built_program(root)).flatten();
            let mut job = Job { root, program, tests: Tests::default(), output };
            let started = Instant::now();
            let ok = catch_unwind(AssertUnwindSafe(|| (step.run)(&mut job))).unwrap_or(false);
            let ended = Ended { seconds: started.elapsed().as_secs_f64(), ok };
            let mut states = self.lock();
            states.states[at] = State::Ended(ended, job.tests, job.output);
            states.print(&self.steps);
            self.ended.notify_all();
        }
    }

    /// The next step to run, and whether the step `build` has built the program. Waits while one may become startable.
    fn next(&self) -> Option<(usize, bool)> {
        let mut states = self.lock();
        loop {
            let stops = states.has_failure() && !self.keep_going;
            if stops || !states.states.iter().any(|state| matches!(state, State::Waiting)) {
                return None;
            }
            if let Some(at) = (0..self.steps.len()).find(|&at| self.may_start(&states, at)) {
                states.states[at] = State::Running;
                return Some((at, self.build().is_some_and(|build| states.has_ended(build))));
            }
            states = self.ended.wait(states).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether a step may start beside those that run.
    fn may_start(&self, states: &States, at: usize) -> bool {
        let is_running = |other: &usize| matches!(states.states[*other], State::Running);
        let waits_for_program =
            self.steps[at].needs.runs_program() && self.build().is_some_and(|build| !states.has_ended(build));
        let waits_for_folder =
            self.builds(at) && (0..self.steps.len()).filter(is_running).any(|other| self.builds(other));
        matches!(states.states[at], State::Waiting) && !waits_for_program && !waits_for_folder
    }

    /// Whether the step has cargo build in the workspace's target folder. Without the step `build`, scripts build the program.
    fn builds(&self, at: usize) -> bool {
        let needs = self.steps[at].needs;
        needs.builds() || needs.runs_program() && self.build().is_none()
    }

    /// The index of the step `build`, if it is part of this call.
    fn build(&self) -> Option<usize> {
        self.steps.iter().position(|step| step.name == "build")
    }

    fn lock(&self) -> MutexGuard<'_, States> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl States {
    fn has_failure(&self) -> bool {
        self.states.iter().any(|state| matches!(state, State::Ended(Ended { ok: false, .. }, ..)))
    }

    fn has_ended(&self, at: usize) -> bool {
        matches!(self.states[at], State::Ended(..))
    }

    /// Prints the output and the result of each step that has ended and that no step that has not ended precedes.
    fn print(&mut self, steps: &[&Step]) {
        while let Some(State::Ended(ended, _, output)) = self.states.get_mut(self.printed) {
            let step = steps[self.printed].name;
            if let Output::Kept(kept) = output {
                let kept = std::mem::take(kept);
                println!("==> {step}");
                // A closed terminal is no reason to stop testing.
                _ = std::io::stdout().write_all(&kept);
                if !ended.ok {
                    self.failed.push((step, last_lines(&kept)));
                }
            }
            if ended.ok {
                println!("==> {step}: ok, {:.1} s", ended.seconds);
            } else {
                println!("==> {step}: FAILED, {:.1} s; `cargo xtask ci {step}` runs it alone", ended.seconds);
            }
            self.printed += 1;
        }
    }
}

/// The tests that failed anywhere in a step's output, and its last lines.
fn last_lines(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    let lines: Vec<&str> = text.lines().collect();
    let (before, last) = lines.split_at(lines.len().saturating_sub(LAST_LINES));
    let failed = before.iter().filter(|line| line.starts_with("test ") && line.ends_with("... FAILED"));
    failed.chain(last).copied().collect::<Vec<&str>>().join("\n")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use super::super::{Needs, step};
    use super::*;

    /// The results of the steps, in order: `None` for one that did not run.
    fn results(steps: &[Step], keep_going: bool, jobs: usize) -> Vec<Option<bool>> {
        let options = Options { keep_going, jobs, since: None, steps: (0..steps.len()).collect() };
        let reports = run(crate::root(), steps, &options);
        reports.iter().map(|report| report.row.ended.map(|ended| ended.ok)).collect()
    }

    #[test]
    fn a_failure_ends_the_run_unless_it_keeps_going() {
        let steps = [
            step("a", Needs::Nothing, |_| true),
            step("b", Needs::Nothing, |_| panic!("a step that panics fails")),
            step("c", Needs::Folder, |_| true),
        ];
        assert_eq!(results(&steps, false, 1), [Some(true), Some(false), None]);
        for jobs in [1, 2, 9] {
            assert_eq!(results(&steps, true, jobs), [Some(true), Some(false), Some(true)]);
        }
    }

    #[test]
    fn steps_that_build_in_one_folder_take_turns() {
        static BUILDING: AtomicUsize = AtomicUsize::new(0);
        let build = |_: &mut Job<'_>| {
            let others = BUILDING.fetch_add(1, SeqCst);
            (0..1000).for_each(|_| std::thread::yield_now());
            BUILDING.fetch_sub(1, SeqCst);
            others == 0
        };
        let steps = ["a", "build", "b", "c"].map(|name| step(name, Needs::Folder, build));
        assert_eq!(results(&steps, true, 4), [Some(true); 4]);
    }

    #[test]
    fn steps_that_run_the_program_wait_for_its_build() {
        static BUILT: AtomicUsize = AtomicUsize::new(0);
        let steps = [
            step("first", Needs::Program, |_| BUILT.load(SeqCst) == 1),
            step("build", Needs::Folder, |_| {
                (0..1000).for_each(|_| std::thread::yield_now());
                BUILT.fetch_add(1, SeqCst) == 0
            }),
            step("last", Needs::ProgramAndFolder, |_| BUILT.load(SeqCst) == 1),
        ];
        assert_eq!(results(&steps, false, 3), [Some(true); 3]);
    }

    #[test]
    fn the_end_of_an_output_is_its_last_lines() {
        let lines: Vec<String> = (0..100).map(|i| i.to_string()).collect();
        assert_eq!(last_lines(lines.join("\n").as_bytes()), lines[100 - LAST_LINES..].join("\n"));
        assert_eq!(last_lines(b"one"), "one");
    }

    #[test]
    fn independent_steps_run_at_the_same_time() {
        static MET: std::sync::Barrier = std::sync::Barrier::new(2);
        let meet = |_: &mut Job<'_>| {
            MET.wait();
            true
        };
        let steps = ["a", "b"].map(|name| step(name, Needs::Nothing, meet));
        assert_eq!(results(&steps, false, 2), [Some(true); 2]);
    }
}

//! The rule that the workflow of public hosts runs the steps of `cargo xtask ci`.

use super::Tree;
use crate::ci::{GATE, STEPS};

const WORKFLOW: &str = ".github/workflows/ci.yml";

/// The command that runs a step of the matrix; `.ci/run` gives its arguments to `cargo xtask ci`.
const RUN: &str = "run: .ci/run ${{ matrix.step }}";

/// The list `step:` of the workflow's matrix has the steps of `xtask/src/ci.rs` in their order, and each is run.
pub(super) fn steps_are_those_of_ci(tree: &Tree) -> Vec<String> {
    let expected = gate();
    let Some(text) = tree.text(WORKFLOW) else {
        // The trees of other rules' tests have no packages.
        let remedy = "write it with a job for each step of `cargo xtask ci`";
        return tree
            .text("xtask/src/ci.rs")
            .map(|_| format!("{WORKFLOW}:1: missing, {remedy}"))
            .into_iter()
            .collect();
    };
    let (line, listed) = matrix(text);
    let mut messages = Vec::new();
    if let Some(step) = expected.iter().find(|step| !listed.contains(step)) {
        messages.push(format!("{WORKFLOW}:{line}: the step `{step}` of xtask/src/ci.rs is missing, list it"));
    } else if let Some(step) = listed.iter().find(|step| !expected.contains(step)) {
        messages.push(format!("{WORKFLOW}:{line}: xtask/src/ci.rs has no step `{step}`, remove it"));
    } else if listed != expected {
        messages
            .push(format!("{WORKFLOW}:{line}: the steps have another order, write: {}", expected.join(", ")));
    }
    if !text.lines().any(|line| line.trim().trim_start_matches("- ") == RUN) {
        messages.push(format!("{WORKFLOW}:1: no line runs the steps, write `{RUN}`"));
    }
    messages
}

/// The names of the steps that `cargo xtask ci` runs.
fn gate() -> [&'static str; GATE] {
    std::array::from_fn(|at| STEPS[at].name)
}

/// The line of the first `step:` that a list follows, and the list.
fn matrix(text: &str) -> (usize, Vec<&str>) {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    for (at, _) in lines.iter().enumerate().filter(|(_, line)| **line == "step:") {
        let items: Vec<&str> = lines[at + 1..].iter().map_while(|line| line.strip_prefix("- ")).collect();
        if !items.is_empty() {
            return (at + 1, items);
        }
    }
    (1, Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(steps: &[&str], run: &str) -> Vec<String> {
        let list: String = steps.iter().map(|step| format!("          - {step}\n")).collect();
        let text = format!(
            "jobs:\n  step:\n    strategy:\n      matrix:\n        step:\n{list}    steps:\n      - {run}\n"
        );
        steps_are_those_of_ci(&Tree::of([(WORKFLOW, &text)]))
    }

    #[test]
    fn the_same_steps_hold() {
        assert_eq!(messages(&gate(), RUN), [""; 0]);
        assert_eq!(steps_are_those_of_ci(&Tree::of([])), [""; 0]);
    }

    #[test]
    fn other_steps_fail() {
        let steps = gate();
        let missing = ".github/workflows/ci.yml:5: the step `fmt` of xtask/src/ci.rs is missing, list it";
        assert_eq!(messages(&steps[1..], RUN), [missing]);
        let unknown = ".github/workflows/ci.yml:5: xtask/src/ci.rs has no step `lint`, remove it";
        assert_eq!(messages(&[&steps[..], &["lint"]].concat(), RUN), [unknown]);
        let mut swapped = steps;
        swapped.swap(0, 1);
        let message = &messages(&swapped, RUN)[0];
        assert!(
            message
                .starts_with(".github/workflows/ci.yml:5: the steps have another order, write: fmt, tidy, "),
            "{message}"
        );
        let twice = messages(&[&steps[..], &["fmt"]].concat(), RUN);
        assert_eq!(twice.len(), 1);
    }

    #[test]
    fn a_workflow_that_runs_nothing_or_is_missing_fails() {
        let steps = gate();
        let message = format!(".github/workflows/ci.yml:1: no line runs the steps, write `{RUN}`");
        assert_eq!(messages(&steps, "run: echo ${{ matrix.step }}"), [message]);
        let message =
            ".github/workflows/ci.yml:1: missing, write it with a job for each step of `cargo xtask ci`";
        assert_eq!(steps_are_those_of_ci(&Tree::of([("xtask/src/ci.rs", "")])), [message]);
    }
}

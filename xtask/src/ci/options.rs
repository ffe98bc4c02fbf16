//! The arguments of `cargo xtask ci`.

use super::{GATE, STEPS};

/// The action of `cargo xtask ci`, and its steps.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Options {
    /// Whether the steps after a failed step run, too.
    pub(super) keep_going: bool,
    /// The largest number of steps that run at the same time.
    pub(super) jobs: usize,
    /// The revision of git whose changed files choose steps in place of the gate.
    pub(super) since: Option<String>,
    /// Indices into [`STEPS`], ascending.
    pub(super) steps: Vec<usize>,
}

impl Options {
    /// Reads the arguments that follow `ci`.
    ///
    /// # Errors
    /// A message with the argument that is wrong and the arguments that exist.
    pub(crate) fn parse(arguments: &[&str]) -> Result<Options, String> {
        let mut options = Options { keep_going: false, jobs: 1, since: None, steps: Vec::new() };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            if *argument == "--keep-going" {
                options.keep_going = true;
            } else if *argument == "--jobs" {
                let number = rest.next().ok_or("`--jobs` needs a number, for example `--jobs 2`")?;
                options.jobs = jobs(number)?;
            } else if let Some(number) = argument.strip_prefix("--jobs=") {
                options.jobs = jobs(number)?;
            } else if *argument == "--since" {
                let revision =
                    rest.next().ok_or("`--since` needs a revision of git, for example `--since main`")?;
                options.since = Some((*revision).to_owned());
            } else if argument.starts_with('-') {
                return Err(format!(
                    "no option `{argument}`, the options are: --keep-going, --jobs N, --since REVISION"
                ));
            } else {
                options.steps.push(step(argument)?);
            }
        }
        if options.steps.is_empty() && options.since.is_none() {
            options.steps = (0..GATE).collect();
        }
        options.steps.sort_unstable();
        options.steps.dedup();
        Ok(options)
    }
}

fn jobs(number: &str) -> Result<usize, String> {
    let jobs = number.parse().ok().filter(|jobs| *jobs > 0);
    jobs.ok_or_else(|| format!("`--jobs {number}`: the number of jobs is a whole number, at least 1"))
}

fn step(name: &str) -> Result<usize, String> {
    let at = STEPS.iter().position(|step| step.name == name);
    at.ok_or_else(|| {
        format!("no step `{name}`, the steps are: {}", STEPS.each_ref().map(|step| step.name).join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gate_is_the_default() {
        let options = Options::parse(&[]).unwrap();
        assert_eq!(options.steps, (0..GATE).collect::<Vec<_>>());
        assert_eq!(Options::parse(&["test-all"]).unwrap().steps, [GATE]);
        assert!(Options::parse(&["--since", "main"]).unwrap().steps.is_empty());
        assert_eq!((options.keep_going, options.jobs), (false, 1));
    }

    #[test]
    fn named_steps_run_once_in_the_order_of_ci() {
        let options = Options::parse(&["clippy", "--keep-going", "fmt", "--jobs", "3", "clippy"]).unwrap();
        assert_eq!(options, Options { keep_going: true, jobs: 3, since: None, steps: vec![0, 2] });
        assert_eq!(Options::parse(&["--jobs=2"]).unwrap().jobs, 2);
    }

    #[test]
    fn wrong_arguments_are_named() {
        let error = |arguments: &[&str]| Options::parse(arguments).unwrap_err();
        assert!(error(&["fmt", "lint"]).starts_with("no step `lint`, the steps are: fmt, tidy, "));
        assert_eq!(
            error(&["-k"]),
            "no option `-k`, the options are: --keep-going, --jobs N, --since REVISION"
        );
        assert!(error(&["--since"]).starts_with("`--since` needs a revision"));
        assert_eq!(error(&["--jobs"]), "`--jobs` needs a number, for example `--jobs 2`");
        for number in ["0", "-1", "two", ""] {
            let message = format!("`--jobs {number}`: the number of jobs is a whole number, at least 1");
            assert_eq!(error(&["--jobs", number]), message);
            assert_eq!(error(&[&format!("--jobs={number}")]), message);
        }
    }
}

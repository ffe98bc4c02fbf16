//! The run of one step: its commands, their output, and the tests counted in it.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// One run of a step.
pub(super) struct Job<'a> {
    pub(super) root: &'a Path,
    /// The program that the step `build` has built in this call of `cargo xtask ci`.
    pub(super) program: Option<PathBuf>,
    pub(super) tests: Tests,
    pub(super) output: Output,
}

/// Where the output of a step goes.
pub(super) enum Output {
    /// To the terminal, as it comes.
    Shown,
    /// Standard output and standard error together, to be printed when the step ends.
    Kept(Vec<u8>),
}

/// Tests counted in the output of `cargo test`.
#[derive(Clone, Copy, Default, Debug, PartialEq)]
pub(super) struct Tests {
    pub(super) passed: usize,
    pub(super) failed: usize,
    pub(super) ignored: usize,
}

impl Job<'_> {
    /// Prints a line.
    pub(super) fn say(&mut self, line: &str) {
        self.write(format!("{line}\n").as_bytes());
    }

    fn write(&mut self, bytes: &[u8]) {
        match &mut self.output {
            // A closed terminal is no reason to stop testing.
            Output::Shown => _ = std::io::stdout().write_all(bytes),
            Output::Kept(kept) => kept.extend_from_slice(bytes),
        }
    }

    /// A command of cargo in the root, which is printed.
    pub(super) fn command(&mut self, arguments: &[&str], environment: &[(&str, &str)]) -> Command {
        let mut command = Command::new(cargo());
        command.current_dir(self.root).args(arguments).envs(environment.iter().copied());
        self.say_command("cargo", arguments);
        command
    }

    /// Runs cargo.
    pub(super) fn cargo(&mut self, arguments: &[&str], environment: &[(&str, &str)]) -> bool {
        let command = self.command(arguments, environment);
        self.succeeds(command)
    }

    /// Runs tests of the whole workspace; `thorough` is the value of `LMSC_THOROUGH`.
    pub(super) fn test(&mut self, targets: &[&str], thorough: &str) -> bool {
        let arguments = [&["test", super::BUILT, "--no-fail-fast"], targets].concat();
        // Snapshots that differ fail, and nothing is written beside them. Tests that need a C++ compiler have one, and run whole.
        let environment = [("INSTA_UPDATE", "no"), ("LMSC_REQUIRE_CXX", "1"), ("LMSC_THOROUGH", thorough)];
        let command = self.command(&arguments, &environment);
        self.counted(command)
    }

    /// Runs a script, which may run tests.
    pub(super) fn script(&mut self, name: &str, arguments: &[&str]) -> bool {
        let path = format!("scripts/{name}");
        self.say_command(&path, arguments);
        let mut command = Command::new(self.root.join(path));
        command.args(arguments).current_dir(self.root).env("INSTA_UPDATE", "no").env("CARGO", cargo());
        // Otherwise it builds one, with other features of the same packages.
        command.envs(self.program.iter().map(|program| ("LMSC", program)));
        self.counted(command)
    }

    /// Whether a command exits with status 0.
    pub(super) fn succeeds(&mut self, mut command: Command) -> bool {
        match self.output {
            // Cargo itself writes to the terminal, in colours.
            Output::Shown => {
                let status = command.status();
                self.is_success(status)
            }
            Output::Kept(_) => self.read_lines(command, |_| ()),
        }
    }

    /// Whether a command exits with status 0. The tests in its output are counted.
    pub(super) fn counted(&mut self, command: Command) -> bool {
        let mut tests = self.tests;
        let ok = self.read_lines(command, |line| tests.add(line));
        self.tests = tests;
        ok
    }

    /// Runs a command, writes its output as it comes and gives each line of it to `read`.
    fn read_lines(&mut self, mut command: Command, mut read: impl FnMut(&str)) -> bool {
        let started = std::io::pipe().and_then(|(reader, writer)| {
            if matches!(self.output, Output::Kept(_)) {
                command.stdin(Stdio::null()).stderr(writer.try_clone()?);
            }
            let child = command.stdout(writer).spawn()?;
            Ok((reader, child))
        });
        // The pipe ends when the child's copies of the writer are the only ones and are closed.
        drop(command);
        let (reader, mut child) = match started {
            Ok(started) => started,
            Err(error) => return self.is_success(Err(error)),
        };
        for line in BufReader::new(reader).split(b'\n').map_while(Result::ok) {
            self.write(&[&line[..], b"\n"].concat());
            read(&String::from_utf8_lossy(&line));
        }
        let status = child.wait();
        self.is_success(status)
    }

    /// Whether the status is 0. An error that prevents the command's own status is printed.
    fn is_success(&mut self, status: std::io::Result<ExitStatus>) -> bool {
        match status {
            Ok(status) => {
                if status.code().is_none() {
                    self.say(&status.to_string());
                }
                status.success()
            }
            Err(error) => {
                self.say(&format!("cannot start: {error}"));
                false
            }
        }
    }

    fn say_command(&mut self, program: &str, arguments: &[&str]) {
        let line: Vec<&str> = std::iter::once(program).chain(arguments.iter().copied()).collect();
        self.say(&format!("$ {}", line.join(" ")));
    }
}

impl Tests {
    /// Adds the counts of a line, if it is a summary of `cargo test`.
    fn add(&mut self, line: &str) {
        if !line.starts_with("test result: ") {
            return;
        }
        let words: Vec<&str> = line.split([' ', ';']).filter(|word| !word.is_empty()).collect();
        for pair in words.windows(2) {
            let Ok(count) = pair[0].parse::<usize>() else { continue };
            match pair[1] {
                "passed" => self.passed += count,
                "failed" => self.failed += count,
                "ignored" => self.ignored += count,
                _ => {}
            }
        }
    }
}

/// The cargo that runs this program.
pub(super) fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_are_summed() {
        let mut tests = Tests::default();
        tests.add(
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.02s",
        );
        tests.add(
            "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 9 filtered out; finished in 1s",
        );
        tests.add("running 12 passed tests");
        assert_eq!(tests, Tests { passed: 4, failed: 2, ignored: 1 });
    }

    #[test]
    #[cfg(unix)]
    fn kept_output_holds_both_streams() {
        let output = Output::Kept(Vec::new());
        let mut job = Job { root: crate::root(), program: None, tests: Tests::default(), output };
        job.say("first");
        let mut command = Command::new("sh");
        command.args(["-c", "echo out; echo err >&2; echo 'test result: ok. 5 passed'; exit 3"]);
        assert!(!job.counted(command));
        assert!(!job.succeeds(Command::new("no-such-program")));
        assert_eq!(job.tests.passed, 5);
        let Output::Kept(kept) = job.output else { panic!("is kept") };
        let text = String::from_utf8(kept).unwrap();
        assert!(text.starts_with("first\nout\nerr\ntest result: ok. 5 passed\ncannot start: "), "{text}");
    }
}

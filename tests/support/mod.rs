//! Runs the program under test and shows its results.

#![allow(dead_code, reason = "each test file uses a part")]

pub(crate) mod interpreter;
pub(crate) mod models;
pub(crate) mod onnx;
pub(crate) mod steps;
pub(crate) mod stochastic;

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Processor time of a call, of all its threads: more than any test needs on a slow machine, and the same on a busy one.
const PROCESSOR_SECONDS: u64 = 120;

/// Processor time of a call whose time must grow linearly with its input.
const LINEAR_SECONDS: u64 = 30;

/// The time after which a call that waits forever is ended. A call that computes meets the limit of its processor time.
const WATCHDOG: Duration = Duration::from_secs(600);

/// Address space of a call, in KiB: more than twice the need of any test.
const MEMORY: u64 = 1_500_000;

/// A slow test tries one in this many of its cases.
pub(crate) fn one_in() -> usize {
    lmsc_testing::cases(8, 8, 1)
}

/// A folder of its own for one test, and calls of `lmsc` that may use it.
pub(crate) struct Bench {
    folder: tempfile::TempDir,
}

/// Result of a call.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Bench {
    pub(crate) fn new() -> Bench {
        Bench { folder: tempfile::tempdir().unwrap() }
    }

    /// A path in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file into the folder.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        std::fs::write(self.path(name), content).unwrap();
        self.path(name)
    }

    /// Names of the files in the folder, sorted.
    pub(crate) fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Runs `lmsc` with these words as arguments, `@` standing for the folder.
    pub(crate) fn run(&self, arguments: &str) -> Outcome {
        self.run_with(arguments, b"")
    }

    /// The same, with something on standard input.
    pub(crate) fn run_with(&self, arguments: &str, stdin: &[u8]) -> Outcome {
        self.call(self.words(arguments), stdin)
    }

    /// Runs `lmsc` with the processor time that is enough for linear work.
    pub(crate) fn run_linear(&self, arguments: &str) -> Outcome {
        run(Self::limited(LINEAR_SECONDS).args(self.words(arguments)), b"")
    }

    /// Runs `lmsc` with a second of processor time, and 200 MB of memory for its data.
    pub(crate) fn run_frugal(&self, arguments: &str) -> Outcome {
        let limited = "ulimit -d 195000 2>/dev/null; ulimit -t 1 2>/dev/null; exec \"$0\" \"$@\"";
        let mut command = Command::new("sh");
        run(command.args(["-c", limited, env!("CARGO_BIN_EXE_lmsc")]).args(self.words(arguments)), b"")
    }

    fn words(&self, arguments: &str) -> Vec<String> {
        let folder = self.folder.path().to_str().unwrap();
        arguments.split_whitespace().map(|word| word.replace('@', folder)).collect()
    }

    /// Runs a line of shell, in which `lmsc` is the program under test.
    pub(crate) fn shell(&self, line: &str) -> Outcome {
        let folder = self.folder.path().to_str().unwrap();
        let line = line.replace('@', folder).replace("lmsc ", concat!(env!("CARGO_BIN_EXE_lmsc"), " "));
        run(Command::new("sh").args(["-c", &line]), b"")
    }

    pub(crate) fn call(
        &self,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
        stdin: &[u8],
    ) -> Outcome {
        run(Self::limited(PROCESSOR_SECONDS).args(arguments), stdin)
    }

    /// `lmsc` with limits: the system ends it (exit status -1 here) where it needs more processor time.
    fn limited(seconds: u64) -> Command {
        // Where a limit cannot be set, the call is still tried.
        let limited =
            format!("ulimit -v {MEMORY} 2>/dev/null; ulimit -t {seconds} 2>/dev/null; exec \"$0\" \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &limited, env!("CARGO_BIN_EXE_lmsc")]);
        command
    }

    /// The output of the call, for a snapshot.
    pub(crate) fn show(&self, arguments: &str, outcome: &Outcome) -> String {
        let mut out = format!("$ lmsc {arguments}\n");
        for (name, text) in
            [("stdout", &*String::from_utf8_lossy(&outcome.stdout)), ("stderr", &*outcome.stderr)]
        {
            if !text.is_empty() {
                let newline = if text.ends_with('\n') { "" } else { "\n(no newline)\n" };
                out += &format!("--- {name}\n{}{newline}", self.anonymous(text));
            }
        }
        out + &format!("--- exit {}\n", outcome.code)
    }

    /// The text without the parts that differ from machine to machine.
    pub(crate) fn anonymous(&self, text: &str) -> String {
        text.replace(self.folder.path().to_str().unwrap(), "@")
    }
}

fn run(command: &mut Command, stdin: &[u8]) -> Outcome {
    let mut child = command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env_remove("COLUMNS")
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut to, out, err) =
        (child.stdin.take().unwrap(), child.stdout.take().unwrap(), child.stderr.take().unwrap());
    std::thread::scope(|scope| {
        let (closed, until_closed) = mpsc::channel();
        let read = |mut from: Box<dyn Read + Send>| {
            let closed = closed.clone();
            scope.spawn(move || {
                let mut bytes = Vec::new();
                let read = from.read_to_end(&mut bytes).map(|_| bytes);
                _ = closed.send(());
                read
            })
        };
        let (out, err) = (read(Box::new(out)), read(Box::new(err)));
        scope.spawn(move || {
            // A program that does not read its standard input is no error here.
            _ = to.write_all(stdin);
        });
        // Both streams close when the program ends.
        for _ in 0..2 {
            if until_closed.recv_timeout(WATCHDOG).is_err() {
                child.kill().unwrap();
                panic!("{command:?} runs for more than {WATCHDOG:?}");
            }
        }
        let status = child.wait().unwrap();
        Outcome {
            code: status.code().unwrap_or(-1),
            stdout: out.join().unwrap().unwrap(),
            stderr: String::from_utf8(err.join().unwrap().unwrap()).expect("messages are UTF-8"),
        }
    })
}

/// Compares with the snapshot `testdata/<folder>/<name>.snap`.
pub(crate) fn snapshot(folder: &str, name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.set_snapshot_path(Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(folder));
    settings.bind(|| insta::assert_snapshot!(name, text));
}

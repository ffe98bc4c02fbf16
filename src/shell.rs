//! Lines of shell that a call names, with a limit of time.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::Error;

/// How a line of shell ended.
pub(crate) enum Ended {
    /// By itself.
    Exited(ExitStatus),
    /// It ran for longer than its limit.
    Late,
    /// A signal to this program ended it.
    Stopped,
}

/// Runs the line, without input; its output goes to nowhere, its messages to `stderr`. Its children end with it.
///
/// # Errors
/// If there is no shell.
pub(crate) fn run(line: &str, limit: Duration, stop: &AtomicBool, stderr: Stdio) -> io::Result<Ended> {
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
    // In its own process group, so that its children end with it.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut shell, 0);
    let mut child = shell.spawn()?;
    let started = Instant::now();
    let mut pause = Duration::from_micros(200);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Ended::Exited(status));
        }
        let stopped = stop.load(Ordering::Relaxed);
        if stopped || started.elapsed() >= limit {
            let group = format!("-{}", child.id());
            _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
            _ = child.kill().and_then(|()| child.wait());
            return Ok(if stopped { Ended::Stopped } else { Ended::Late });
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// The path as a word of shell.
pub(crate) fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

/// A temporary folder for the files of a command, which is removed when dropped.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind) if it cannot be created.
    pub(crate) fn new(of: &str) -> Result<Folder, Error> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("lmsc-{of}-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(|e| Error::writing(&path, &e))?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // If the folder cannot be removed, it stays with other temporary files.
        _ = std::fs::remove_dir_all(&self.0);
    }
}

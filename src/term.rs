//! The verbosity and colours of standard error.

use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Instant;

/// Whether warnings, notes, progress and the report of the main command are suppressed.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Whether a warning is an error.
static DENY: AtomicBool = AtomicBool::new(false);

/// The number of `-v` options.
static VERBOSE: AtomicU8 = AtomicU8::new(0);

/// Whether standard error is coloured.
static COLOR: AtomicBool = AtomicBool::new(false);

/// When standard error is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coloured {
    /// If it is a terminal with colours, unless NO_COLOR is set.
    Auto,
    Always,
    Never,
}

/// Verbosity and colours of standard error.
pub(crate) struct Settings {
    pub(crate) quiet: bool,
    pub(crate) verbose: u8,
    pub(crate) deny_warnings: bool,
    pub(crate) coloured: Coloured,
}

/// Sets verbosity and colours for the process.
pub(crate) fn set(settings: &Settings) {
    QUIET.store(settings.quiet, Ordering::Relaxed);
    VERBOSE.store(settings.verbose, Ordering::Relaxed);
    DENY.store(settings.deny_warnings, Ordering::Relaxed);
    COLOR.store(is_coloured(settings.coloured), Ordering::Relaxed);
}

/// Whether standard error is coloured.
fn is_coloured(coloured: Coloured) -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    match coloured {
        Coloured::Always => true,
        Coloured::Never => false,
        Coloured::Auto => {
            let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
            std::io::stderr().is_terminal() && !is_set("NO_COLOR") && !is_dumb
        }
    }
}

/// Whether only errors and answers are printed.
pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Whether a warning is an error.
pub(crate) fn denies_warnings() -> bool {
    DENY.load(Ordering::Relaxed)
}

/// The number of `-v` options.
pub(crate) fn verbosity() -> u8 {
    VERBOSE.load(Ordering::Relaxed)
}

/// Prints the start of a stage with `-vv`.
pub(crate) fn stage(what: &str) {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let elapsed = START.elapsed();
    if verbosity() > 1 {
        // A closed standard error does not stop the command.
        _ = writeln!(std::io::stderr(), "{} {:.3} s: {what}", note(), elapsed.as_secs_f64());
    }
}

/// The prefix of a warning with this code.
pub(crate) fn warning(code: &str) -> impl Display {
    label(&format!("warning[{code}]:"), "33")
}

/// The prefix of a note.
pub(crate) fn note() -> impl Display {
    label("note:", "36")
}

/// The prefix of an error with this code.
pub(crate) fn error(code: &str) -> impl Display {
    label(&format!("error[{code}]:"), "31")
}

fn label(word: &str, color: &str) -> String {
    if COLOR.load(Ordering::Relaxed) {
        format!("lmsc: \x1b[1;{color}m{word}\x1b[0m")
    } else {
        format!("lmsc: {word}")
    }
}

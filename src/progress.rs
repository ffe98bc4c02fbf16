//! Shows progress on standard error: the stage and the best plan so far; Ctrl-C ends a search.

use std::borrow::Cow;
use std::fmt::Write;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use lmsc_plan::schedule::{Progress, Watch};

use crate::files::write_atomically;
use crate::interrupt;
use crate::{Error, term};

/// The stage of a command, shown on a terminal if it takes long.
pub(crate) struct Stage(Option<ProgressBar>);

impl Stage {
    /// A stage that is shown if standard error is a terminal.
    pub(crate) fn new() -> Stage {
        if !std::io::stderr().is_terminal() || term::is_quiet() {
            return Stage::hidden();
        }
        let bar = ProgressBar::new_spinner();
        bar.set_style(style("{prefix}{spinner} {msg} {elapsed}"));
        // The bar ticks on its own thread, and panics if no thread can be started.
        if std::thread::Builder::new().spawn(|| ()).is_ok() {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        Stage(Some(bar))
    }

    /// A stage that is never shown.
    pub(crate) fn hidden() -> Stage {
        Stage(None)
    }

    /// Shows the next stage.
    pub(crate) fn show(&self, what: impl Into<Cow<'static, str>>) {
        let what = what.into();
        term::stage(&what);
        if let Some(bar) = &self.0 {
            bar.set_message(what);
        }
    }

    /// Shows facts above the stage.
    pub(crate) fn above(&self, facts: impl FnOnce() -> String) {
        if let Some(bar) = &self.0 {
            bar.set_prefix(facts());
        }
    }

    /// Shows the search until the returned value is dropped; Ctrl-C ends the search instead of the program. The
    /// watch keeps the decisions of the search if `keeps_decisions` is set.
    pub(crate) fn search(&self, keeps_decisions: bool) -> Search {
        let ended = Arc::new(AtomicBool::new(false));
        interrupt::ends_search(&ended);
        let watch = Watch::ended_by(ended);
        let watch = Arc::new(if keeps_decisions { watch.keeping() } else { watch });
        if let Some(bar) = &self.0 {
            let shown = Arc::clone(&watch);
            let line = move |_: &ProgressState, w: &mut dyn Write| _ = w.write_str(&line(&shown));
            bar.set_style(style("{prefix}{spinner} {msg} {elapsed}{search}").with_key("search", line));
        }
        Search { watch, bar: self.0.clone() }
    }

    /// Removes the stage from the terminal.
    pub(crate) fn done(self) {
        if let Some(bar) = self.0 {
            bar.finish_and_clear();
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is right")
}

/// The state of a search, to end a line with; empty until there is a plan.
fn line(watch: &Watch) -> String {
    let Progress { best_nanos, bound_nanos, done } = watch.progress();
    let Some(best) = best_nanos else { return String::new() };
    let millis = best as f64 / 1e6;
    let gap = bound_nanos.map_or(String::new(), |bound| {
        let gap = 100.0 * (best as f64 / bound.max(1) as f64 - 1.0).max(0.0);
        format!(", {gap:.1} % above the bound")
    });
    let end = if watch.is_ended() { "; ending" } else { "; Ctrl-C takes it" };
    format!(": {millis:.1} ms{gap}, {:.0} % of the search{end}", 100.0 * done)
}

/// A search that is shown and that Ctrl-C ends.
pub(crate) struct Search {
    watch: Arc<Watch>,
    bar: Option<ProgressBar>,
}

impl Search {
    /// Writes the decisions of the search to the file, one JSON object per line.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind) if the file cannot be written.
    pub(crate) fn write_decisions(&self, file: &Path) -> Result<(), Error> {
        let lines = self.watch.decisions().into_iter();
        let lines =
            lines.map(|decision| serde_json::to_string(&decision).expect("a decision is JSON") + "\n");
        write_atomically(file, |w| w.write_all(lines.collect::<String>().as_bytes()))
    }

    /// The watch to which the planner reports its progress.
    pub(crate) fn watch(&self) -> Arc<Watch> {
        Arc::clone(&self.watch)
    }
}

impl Drop for Search {
    fn drop(&mut self) {
        // From here on, Ctrl-C ends the program.
        self.watch.end();
        if let Some(bar) = &self.bar {
            bar.set_style(style("{prefix}{spinner} {msg} {elapsed}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_is_told_once_there_is_a_plan() {
        let watch = Watch::default();
        assert_eq!(line(&watch), "");
        watch.found(2_000_000);
        assert_eq!(line(&watch), ": 2.0 ms, 0 % of the search; Ctrl-C takes it");
        watch.proved(1_600_000);
        watch.found(1_700_000);
        watch.done(250);
        assert_eq!(line(&watch), ": 1.7 ms, 6.2 % above the bound, 25 % of the search; Ctrl-C takes it");
        watch.end();
        assert!(line(&watch).ends_with("; ending"));
    }
}

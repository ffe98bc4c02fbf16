//! The table of step times at the end of `cargo xtask ci`.

use std::fmt::Write;

/// A line of the table.
pub(super) struct Row {
    pub(super) step: &'static str,
    /// `None` for a step that did not run.
    pub(super) ended: Option<Ended>,
}

/// How long a step ran, and whether it succeeded.
#[derive(Clone, Copy)]
pub(super) struct Ended {
    pub(super) seconds: f64,
    pub(super) ok: bool,
}

impl Row {
    fn result(&self) -> &'static str {
        match self.ended {
            Some(Ended { ok: true, .. }) => "ok",
            Some(Ended { ok: false, .. }) => "FAILED",
            None => "not run",
        }
    }
}

/// The table: step, seconds and result, and the wall time of all steps in the last line.
pub(super) fn table(rows: &[Row], wall_seconds: f64) -> String {
    const ALL: &str = "all";
    let width = rows.iter().map(|row| row.step.len()).max().unwrap_or(0).max("step".len());
    let mut out = format!("{:width$}  {:>8}  result\n", "step", "seconds");
    for row in rows {
        let seconds = row.ended.map_or("-".to_owned(), |ended| format!("{:.1}", ended.seconds));
        _ = writeln!(out, "{:width$}  {seconds:>8}  {}", row.step, row.result());
    }
    let number = |result| rows.iter().filter(|row| row.result() == result).count();
    let counts = ["ok", "FAILED", "not run"].map(|result| (number(result), result));
    let counts = counts.iter().filter(|(number, _)| *number > 0);
    let counts: Vec<String> = counts.map(|(number, result)| format!("{number} {result}")).collect();
    _ = writeln!(out, "{ALL:width$}  {wall_seconds:>8.1}  {}", counts.join(", "));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(step: &'static str, seconds: f64, ok: bool) -> Row {
        Row { step, ended: Some(Ended { seconds, ok }) }
    }

    #[test]
    fn columns_are_aligned() {
        let rows = [row("fmt", 0.94, true), row("doc-test", 1234.56, true)];
        let expected = "\
step       seconds  result
fmt            0.9  ok
doc-test    1234.6  ok
all         1235.5  2 ok
";
        assert_eq!(table(&rows, 1235.5), expected);
    }

    #[test]
    fn failed_steps_and_steps_that_did_not_run_are_listed() {
        let rows = [row("fmt", 1.0, true), row("tidy", 2.0, false), Row { step: "clippy", ended: None }];
        let expected = "\
step     seconds  result
fmt          1.0  ok
tidy         2.0  FAILED
clippy         -  not run
all          3.0  1 ok, 1 FAILED, 1 not run
";
        assert_eq!(table(&rows, 3.0), expected);
    }
}

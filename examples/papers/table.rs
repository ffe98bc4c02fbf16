//! Tables, as Markdown and as comma-separated values.

/// Rows of texts under a heading.
pub(crate) struct Table {
    pub(crate) title: String,
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(title: impl Into<String>, columns: &[impl ToString]) -> Table {
        let columns = columns.iter().map(ToString::to_string).collect();
        Table { title: title.into(), columns, rows: Vec::new() }
    }

    pub(crate) fn push(&mut self, row: Vec<String>) {
        assert_eq!(row.len(), self.columns.len(), "{}: {row:?}", self.title);
        self.rows.push(row);
    }

    /// The first column to the left, the others, which are numbers, to the right.
    pub(crate) fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let mut text = format!("## {}\n\n{}|---|", self.title, line(&self.columns));
        text += &"--:|".repeat(self.columns.len() - 1);
        text.push('\n');
        self.rows.iter().for_each(|row| text += &line(row));
        text
    }

    pub(crate) fn csv(&self) -> String {
        let line = |cells: &[String]| cells.join(",") + "\n";
        self.rows.iter().fold(line(&self.columns), |text, row| text + &line(row))
    }
}

/// So many digits behind the point, or a dash for none.
pub(crate) fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.digits$}"))
}

/// A share as percent above 1, or a dash.
pub(crate) fn percent_above(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "–".to_owned(), |ratio| format!("{:+.1} %", (ratio - 1.0) * 100.0))
}

/// The mean, if there is anything.
pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_written_in_both_forms() {
        let mut table = Table::new("T", &["a", "b"]);
        table.push(vec![number(Some(1.25), 1), percent_above(Some(1.125))]);
        table.push(vec![number(mean(&[]), 1), percent_above(None)]);
        assert_eq!(table.markdown(), "## T\n\n| a | b |\n|---|--:|\n| 1.2 | +12.5 % |\n| – | – |\n");
        assert_eq!(table.csv(), "a,b\n1.2,+12.5 %\n–,–\n");
    }
}

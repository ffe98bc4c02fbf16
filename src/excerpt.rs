//! A line of a text with a mark under a column.

/// The number of characters that are shown before the column, and from the column on.
const AROUND: (usize, usize) = (50, 30);

/// The line (from 1) of the text, and below it a caret under the column (in bytes, from 1). Of a long line, only
/// the part around the column.
pub(crate) fn excerpt(text: &str, line: usize, column: usize) -> String {
    let content = text.split('\n').nth(line - 1).unwrap_or_default();
    let at = content.floor_char_boundary(column - 1);
    let (before, after) = content.split_at(at);
    let skipped = before.chars().count().saturating_sub(AROUND.0);
    let begin = if skipped > 0 { "…" } else { "" };
    let end = if after.chars().count() > AROUND.1 { "…" } else { "" };
    // Every character takes one column, so that the caret is under the right one.
    let plain = |c: char| if c.is_control() { if c.is_whitespace() { ' ' } else { '·' } } else { c };
    let before: String = before.chars().skip(skipped).map(plain).collect();
    let after: String = after.chars().take(AROUND.1).map(plain).collect();
    let number = line.to_string();
    let margin = " ".repeat(number.len());
    let caret = " ".repeat(begin.chars().count() + before.chars().count());
    let shown = format!("{begin}{before}{after}{end}");
    format!("{margin} |\n{number} | {}\n{margin} | {caret}^", shown.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_stands_under_the_column() {
        let text = "g () => () {\n\t[ä] x\0y\r\n}";
        assert_eq!(excerpt(text, 2, 7), "  |\n2 |  [ä] x·y\n  |      ^");
        assert_eq!(excerpt(text, 3, 2), "  |\n3 | }\n  |  ^");
        assert_eq!(excerpt("", 1, 1), "  |\n1 | \n  | ^");
    }

    #[test]
    fn of_a_long_line_the_part_around_the_column_is_shown() {
        let text = "[".repeat(1000) + "]";
        let shown = excerpt(&text, 1, 501);
        let caret = 4 + 1 + AROUND.0;
        assert_eq!(shown.lines().nth(2).unwrap().chars().count(), caret + 1);
        assert_eq!(shown.lines().nth(1).unwrap(), format!("1 | …{}…", "[".repeat(AROUND.0 + AROUND.1)));
    }
}

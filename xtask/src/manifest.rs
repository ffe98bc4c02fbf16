//! Reads the parts of a `Cargo.toml` that the chores need: tables, their lines, and quoted lists.

/// One table of a manifest.
pub(crate) struct Table {
    /// The text between the brackets; empty for the keys before the first table.
    pub(crate) name: String,
    /// The line, counted from 1, of the header.
    pub(crate) line: usize,
    /// Line numbers and lines, without comments, trimmed, without blank ones.
    pub(crate) lines: Vec<(usize, String)>,
}

/// The tables of a manifest, in file order.
pub(crate) fn tables(manifest: &str) -> Vec<Table> {
    let mut tables = vec![Table { name: String::new(), line: 1, lines: Vec::new() }];
    for (number, line) in (1..).zip(manifest.lines()) {
        let line = without_comment(line).trim();
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let name = name.trim_matches(['[', ']']).trim().to_owned();
            tables.push(Table { name, line: number, lines: Vec::new() });
        } else if !line.is_empty() {
            tables.last_mut().expect("begins with one").lines.push((number, line.to_owned()));
        }
    }
    tables
}

fn without_comment(line: &str) -> &str {
    let mut quoted = false;
    for (at, c) in line.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '#' if !quoted => return &line[..at],
            _ => {}
        }
    }
    line
}

/// The lines of the table `name`, joined; empty when there is no such table.
fn body(manifest: &str, name: &str) -> String {
    let lines = tables(manifest).into_iter().filter(|table| table.name == name).flat_map(|table| table.lines);
    lines.map(|(_, line)| line + "\n").collect()
}

/// The strings of the list `key = ["…", …]` in the table `name`.
pub(crate) fn list(manifest: &str, name: &str, key: &str) -> Vec<String> {
    let body = body(manifest, name);
    let mut value = String::new();
    let mut inside = false;
    for line in body.lines() {
        if let Some((left, right)) = line.split_once('=')
            && left.trim() == key
        {
            inside = true;
            value.push_str(right);
        } else if inside {
            value.push_str(line);
        }
        if inside && line.ends_with(']') {
            break;
        }
    }
    value.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The value of the string key `key` in the table `name`.
pub(crate) fn string(manifest: &str, name: &str, key: &str) -> Option<String> {
    body(manifest, name).lines().find_map(|line| {
        let (left, right) = line.split_once('=')?;
        (left.trim() == key).then(|| right.trim().trim_matches('"').to_owned())
    })
}

/// The keys of the table `name`.
pub(crate) fn keys(manifest: &str, name: &str) -> Vec<String> {
    let body = body(manifest, name);
    body.lines().filter_map(|line| line.split_once('=')).map(|(key, _)| key.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "[workspace]\nmembers = [\"a\", # first\n  \"b\",\n]\n\n[package] # p\nname = \"n\"\n\n\
                            [features]\nrandom = []\ncuda = [\"x\"]\n";

    #[test]
    fn lists_strings_and_keys_are_read() {
        assert_eq!(list(MANIFEST, "workspace", "members"), ["a", "b"]);
        assert_eq!(string(MANIFEST, "package", "name").as_deref(), Some("n"));
        assert_eq!(keys(MANIFEST, "features"), ["random", "cuda"]);
        assert_eq!(tables(MANIFEST)[2].line, 6);
    }
}

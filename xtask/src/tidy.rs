//! The rules that no compiler checks. Each is a function from the tree to messages `path:line: fault, remedy`.

mod comments;
mod constants;
mod crates;
mod defaults;
mod files;
mod glossary;
mod names;
mod passes;
mod readme;
mod source;
mod workflow;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A rule: returns its findings.
type Rule = fn(&Tree) -> Vec<String>;

/// Every rule, in the order in which messages are printed.
pub(crate) const RULES: &[Rule] = &[
    crates::arrows_are_those_of_the_design,
    crates::members_inherit_the_lints,
    source::petgraph_stays_in_its_file,
    source::the_library_knows_no_command_line,
    source::graphs_change_by_checked_methods,
    source::tests_are_named_by_behaviour,
    source::unsafe_code_is_listed_and_argued,
    defaults::defaults_stand_in_the_contracts,
    names::public_type_names_are_unique,
    constants::tuning_constants_are_few_and_measured,
    passes::passes_are_registered,
    passes::passes_have_cases,
    passes::passes_are_documented,
    files::snapshots_have_sources,
    files::files_are_small,
    files::lines_name_no_machine,
    files::chores_have_issues,
    glossary::words_are_those_of_the_glossary,
    comments::comments_name_their_nouns,
    readme::commands_exist,
    readme::paths_exist,
    workflow::steps_are_those_of_ci,
];

/// All violations of all rules.
pub(crate) fn check(tree: &Tree) -> Vec<String> {
    RULES.iter().flat_map(|rule| rule(tree)).collect()
}

/// The files of the repository, by their path from its root with `/` between folders.
///
/// Holds the files that git does not ignore; where git cannot tell, every file outside hidden folders and `target`.
pub(crate) struct Tree {
    files: BTreeMap<String, File>,
}

/// One file of a [`Tree`].
struct File {
    size: u64,
    /// The contents; `None` for a binary file.
    text: Option<String>,
    /// Whether git tracks it. Scratch files are not checked by all rules.
    tracked: bool,
}

impl Tree {
    /// Reads the repository at `root`.
    pub(crate) fn read(root: &Path) -> Tree {
        // Unpacked inside a folder that another repository ignores, git lists nothing.
        let tracked =
            git_files(root, &["--cached"]).filter(|paths| paths.iter().any(|path| path == "Cargo.toml"));
        let tracked = tracked.unwrap_or_else(|| walk(root));
        let others = git_files(root, &["--others", "--exclude-standard"]).unwrap_or_default();
        let all = tracked.into_iter().map(|p| (p, true)).chain(others.into_iter().map(|p| (p, false)));
        let files = all.filter_map(|(path, tracked)| {
            // A file deleted but not yet committed is listed and absent.
            let bytes = fs::read(root.join(&path)).ok()?;
            let size = bytes.len() as u64;
            let text = if bytes.contains(&0) { None } else { String::from_utf8(bytes).ok() };
            Some((path, File { size, text, tracked }))
        });
        Tree { files: files.collect() }
    }

    /// Text files and their contents.
    fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().filter_map(|(path, file)| Some((path.as_str(), file.text.as_deref()?)))
    }

    /// Text files that git tracks, and their contents.
    fn tracked_texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts().filter(|(path, _)| self.files[*path].tracked)
    }

    /// Rust files under `folder` (which ends with `/`, or is empty) and their contents.
    fn rust(&self, folder: &str) -> impl Iterator<Item = (&str, &str)> {
        self.texts().filter(move |(path, _)| path.starts_with(folder) && path.ends_with(".rs"))
    }

    /// The contents of the text file at `path`.
    fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path)?.text.as_deref()
    }

    fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Folders of the workspace's packages, the root's being empty, with their manifests' paths and contents.
    fn members(&self) -> Vec<(String, &str)> {
        let Some(root) = self.text("Cargo.toml") else { return Vec::new() };
        let mut paths = vec!["Cargo.toml".to_owned()];
        paths.extend(
            crate::manifest::list(root, "workspace", "members").iter().map(|m| format!("{m}/Cargo.toml")),
        );
        paths.into_iter().filter_map(|path| Some((path.clone(), self.text(&path)?))).collect()
    }

    #[cfg(test)]
    fn of<const N: usize>(files: [(&str, &str); N]) -> Tree {
        let file = |text: &str| File { size: text.len() as u64, text: Some(text.to_owned()), tracked: true };
        Tree { files: files.into_iter().map(|(path, text)| (path.to_owned(), file(text))).collect() }
    }
}

fn git_files(root: &Path, what: &[&str]) -> Option<Vec<String>> {
    let output = Command::new("git").current_dir(root).args(["ls-files", "-z"]).args(what).output().ok()?;
    let paths = String::from_utf8(output.stdout).ok()?;
    let paths: Vec<String> = paths.split_terminator('\0').map(str::to_owned).collect();
    output.status.success().then_some(paths)
}

fn walk(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(root.join(&folder)) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let ours = !name.starts_with('.') || [".ci", ".cargo", ".github"].contains(&name.as_str());
            match is_folder {
                true if ours && name != "target" => folders.push(path),
                true => {}
                false => found.push(path),
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_tidy() {
        let messages = check(&Tree::read(crate::root()));
        assert!(messages.is_empty(), "{} violations:\n{}", messages.len(), messages.join("\n"));
    }

    #[test]
    fn a_tree_without_git_is_walked() {
        let walked = walk(&crate::root().join("xtask"));
        assert!(walked.iter().any(|path| path == "src/tidy/crates.rs"), "{walked:?}");
    }
}

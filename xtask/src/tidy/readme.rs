//! The rules that commands of the documents can be typed, and that the paths in them can be opened.

use super::Tree;
use crate::{lex, manifest};

/// Commands that cargo or a tool that CONTRIBUTING.md names brings.
const CARGO: &[&str] = &[
    "add", "bench", "build", "check", "clippy", "deny", "doc", "fmt", "fuzz", "insta", "install", "miri",
    "run", "test", "tree",
];

/// Commands in `console` and `sh` blocks of README.md, CONTRIBUTING.md and `docs` name subcommands, packages and flags that exist.
/// `scripts/check-docs` runs those that are marked.
///
/// Flags and subcommands of `lmsc` are looked up as words in the sources, kebab-case or as clap derives them:
/// a word that is renamed there and not here is found, a word used for something else is not.
pub(super) fn commands_exist(tree: &Tree) -> Vec<String> {
    let is_document = |path: &str| {
        ["README.md", "CONTRIBUTING.md"].contains(&path) || path.starts_with("docs/") && path.ends_with(".md")
    };
    let documents = tree.texts().filter(|(path, _)| is_document(path));
    documents.flat_map(|(path, text)| wrong_commands(tree, path, text)).collect()
}

/// Paths of sources in backticks, in the documents at the root and in `docs`, lead to files of the repository from its root.
///
/// The tutorials name files that their reader makes.
pub(super) fn paths_exist(tree: &Tree) -> Vec<String> {
    let is_document = |path: &str| {
        path.ends_with(".md")
            && (!path.contains('/') && path != "CHANGELOG.md" || path.starts_with("docs/"))
            && !path.starts_with("docs/tutorials/")
    };
    let mut messages = Vec::new();
    for (path, text) in tree.texts().filter(|(path, _)| is_document(path)) {
        for (number, line) in (1..).zip(text.lines()) {
            let quoted = line.split('`').skip(1).step_by(2).filter(|words| is_source(words));
            messages.extend(quoted.filter(|source| !tree.files.contains_key(*source)).map(|source| {
                format!("{path}:{number}: there is no file `{source}`, write its path from the root of the repository")
            }));
        }
    }
    messages
}

/// Whether the words are the path of a source in some folder, without placeholders.
fn is_source(words: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    words.contains('/')
        && [".rs", ".py", ".cu"].iter().any(|end| words.ends_with(end))
        && words.chars().all(is_plain)
}

fn wrong_commands(tree: &Tree, path: &str, text: &str) -> Vec<String> {
    let found = commands(text).into_iter().filter_map(|(line, words)| {
        let what = match words.first().map(String::as_str)? {
            "cargo" => cargo(tree, &words[1..])?,
            "lmsc" => lmsc(tree, &words[1..])?,
            _ => return None,
        };
        Some(format!("{path}:{line}: {what}, correct the command"))
    });
    found.collect()
}

/// The commands of the fenced blocks: line and words, up to the first pipe or redirection, without variables set before them.
fn commands(text: &str) -> Vec<(usize, Vec<String>)> {
    let mut found: Vec<(usize, Vec<String>)> = Vec::new();
    let (mut inside, mut continues) = (false, false);
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            inside = ["console", "sh"].contains(&language.trim());
            continue;
        }
        if !inside {
            continue;
        }
        let line = line.trim();
        let line = line.strip_prefix("$ ").unwrap_or(line);
        for (index, command) in line.trim_end_matches('\\').split("&&").enumerate() {
            let words = command.split_whitespace().skip_while(|word| is_variable(word));
            let words: Vec<String> =
                words.take_while(|w| !w.starts_with(['|', '&', '>', '#'])).map(str::to_owned).collect();
            match found.last_mut() {
                Some((_, command)) if continues && index == 0 => command.extend(words),
                _ => found.push((number, words)),
            }
        }
        continues = line.ends_with('\\');
    }
    found
}

/// Whether the word sets a variable for the command behind it.
fn is_variable(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
    })
}

/// The part of a `cargo` command that does not exist.
fn cargo(tree: &Tree, words: &[String]) -> Option<String> {
    let split = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let (ours, theirs) = (&words[..split], &words[(split + 1).min(words.len())..]);
    let (at, subcommand) = ours.iter().enumerate().find(|(_, word)| !word.starts_with(['-', '+']))?;
    let aliases =
        tree.text(".cargo/config.toml").map(|text| manifest::keys(text, "alias")).unwrap_or_default();
    if !CARGO.contains(&subcommand.as_str()) && !aliases.contains(subcommand) {
        return Some(format!("cargo has no command `{subcommand}`"));
    }
    if subcommand == "xtask" {
        let chore = ours.get(at + 1)?;
        return (!crate::COMMANDS.contains(&chore.as_str()))
            .then(|| format!("xtask has no command `{chore}`"));
    }
    let packages: Vec<String> =
        tree.members().iter().filter_map(|(_, text)| manifest::string(text, "package", "name")).collect();
    let named = ours.windows(2).filter(|pair| pair[0] == "-p" || pair[0] == "--package").map(|pair| &pair[1]);
    if let Some(package) = named.into_iter().find(|name| !packages.contains(name)) {
        return Some(format!("the workspace has no package `{package}`"));
    }
    if subcommand == "test" {
        let programs = theirs.iter().filter(|word| !word.starts_with('-'));
        let filters: Vec<&String> = values(&ours[at + 1..]).into_iter().chain(programs).collect();
        let package = ours.windows(2).find(|pair| pair[0] == "-p").map(|pair| &*pair[1]);
        let tests = tests_of(tree, package);
        let selects = |filter: &str| tests.iter().any(|name| name.contains(filter));
        return filters
            .into_iter()
            .find(|filter| !selects(filter))
            .map(|filter| format!("`{filter}` selects no test"));
    }
    if subcommand == "run" && !ours.iter().any(|word| word == "-p") { lmsc(tree, theirs) } else { None }
}

/// The words that are neither options nor their values.
fn values(words: &[String]) -> Vec<&String> {
    let takes_value =
        |word: &String| ["-p", "--package", "--test", "--features", "--profile"].contains(&&**word);
    let is_value = |at: usize| at > 0 && takes_value(&words[at - 1]);
    let free = words.iter().enumerate().filter(|&(at, word)| !word.starts_with('-') && !is_value(at));
    free.map(|(_, word)| word).collect()
}

/// The names of the tests of a package, or of all: modules by files, and functions.
fn tests_of(tree: &Tree, package: Option<&str>) -> Vec<String> {
    let folders: Vec<String> = tree
        .members()
        .into_iter()
        .filter(|(_, text)| {
            package.is_none() || manifest::string(text, "package", "name").as_deref() == package
        })
        .map(|(path, _)| path.trim_end_matches("Cargo.toml").to_owned())
        .collect();
    let mut names = Vec::new();
    for folder in folders {
        // The root's own folders are beside those of the other members.
        let is_own = |path: &str| {
            !folder.is_empty() || ["src/", "tests/", "examples/"].iter().any(|own| path.starts_with(own))
        };
        for (path, text) in tree.rust(&folder).filter(|(path, _)| is_own(path)) {
            let below = path.strip_prefix(&folder).unwrap_or(path).trim_end_matches(".rs");
            let below = below.strip_prefix("src/").or_else(|| below.strip_prefix("tests/")).unwrap_or(below);
            let modules = below.split('/').filter(|part| !["mod", "lib", "main"].contains(part));
            let module = modules.collect::<Vec<_>>().join("::");
            let functions =
                text.split("#[test]").skip(1).filter_map(|rest| rest.split_once("fn ")?.1.split('(').next());
            names.extend(
                functions.flat_map(|name| [format!("{module}::{name}"), format!("{module}::tests::{name}")]),
            );
        }
    }
    names
}

/// The flag or subcommand in the arguments of `lmsc` that does not exist.
fn lmsc(tree: &Tree, words: &[String]) -> Option<String> {
    let rooms = ["src/", "passes/src/", "plan/src/"];
    let exists = |spelling: &str| {
        rooms.iter().any(|room| tree.rust(room).any(|(_, text)| lex::has_name(text, spelling)))
    };
    if let Some(subcommand) = words.first()
        && subcommand.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
        && !subcommand.starts_with('-')
        && !exists(subcommand)
        && !exists(&camel(subcommand))
    {
        return Some(format!("lmsc has no command `{subcommand}`"));
    }
    let flags = words.iter().filter_map(|word| word.strip_prefix("--"));
    let names = flags.map(|flag| flag.split_once('=').map_or(flag, |(name, _)| name));
    names
        .filter(|name| !name.is_empty() && !["help", "version"].contains(name))
        .find(|name| !exists(name) && !exists(&name.replace('-', "_")))
        .map(|name| format!("lmsc has no flag `--{name}`"))
}

fn camel(kebab: &str) -> String {
    let words = kebab.split('-').filter(|word| !word.is_empty());
    words.map(|word| word[..1].to_ascii_uppercase() + &word[1..]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(block: &str) -> Vec<String> {
        let readme = format!("# lmsc\n\n```console\n{block}\n```\n\n```rust\nlmsc frobnicate\n```\n");
        commands_exist(&Tree::of([
            ("README.md", &readme),
            ("Cargo.toml", "[workspace]\nmembers = []\n[package]\nname = \"lmsc\""),
            (".cargo/config.toml", "[alias]\nxtask = \"run\"\n"),
            (
                "src/cli.rs",
                "enum Command { Compile, Opt } struct Args { print_after: (), budget: () } mod tests { #[test] fn an_option() {} }",
            ),
        ]))
    }

    #[test]
    fn a_path_that_leads_nowhere_fails() {
        let of = |text| paths_exist(&Tree::of([("README.md", text), ("ir/src/level.rs", "")]));
        assert_eq!(of("Levels are in `ir/src/level.rs`, not in `level.rs` or `<name>/x.rs`."), [""; 0]);
        let message =
            "README.md:1: there is no file `src/level.rs`, write its path from the root of the repository";
        assert_eq!(of("Levels are in `src/level.rs`."), [message]);
    }

    #[test]
    fn documents_are_looked_at() {
        let text = "```console\n$ cargo frob\n```\n";
        let tree = Tree::of([("docs/how-to/a.md", text), ("testdata/a.md", text)]);
        let message = "docs/how-to/a.md:2: cargo has no command `frob`, correct the command";
        assert_eq!(commands_exist(&tree), [message]);
    }

    #[test]
    fn commands_that_exist_hold() {
        assert_eq!(
            of(
                "$ lmsc compile model.onnx \\\n    --budget=1GiB --print-after=swap | less --flag\nls --all\n\
                cargo test -p lmsc\ncargo xtask tidy\ncargo run --release -- opt a.lms --budget=1MiB"
            ),
            [""; 0]
        );
    }

    #[test]
    fn commands_that_do_not_exist_fail() {
        assert_eq!(
            of("$ lmsc frobnicate a"),
            ["README.md:4: lmsc has no command `frobnicate`, correct the command"]
        );
        assert_eq!(
            of("lmsc opt \\\n --badget=1"),
            ["README.md:4: lmsc has no flag `--badget`, correct the command"]
        );
        assert_eq!(of("cargo frob"), ["README.md:4: cargo has no command `frob`, correct the command"]);
        assert_eq!(of("cargo xtask mend"), ["README.md:4: xtask has no command `mend`, correct the command"]);
        assert_eq!(
            of("cargo test -p lmsc-x"),
            ["README.md:4: the workspace has no package `lmsc-x`, correct the command"]
        );
        assert_eq!(
            of("LMSC=1 cargo test && cargo test -p lmsc --lib cli::opt"),
            ["README.md:4: `cli::opt` selects no test, correct the command"]
        );
        assert_eq!(of("cargo test -p lmsc cli:: -- tests::an_option"), [""; 0]);
        assert_eq!(of("cargo run -- frob"), ["README.md:4: lmsc has no command `frob`, correct the command"]);
    }
}

//! Rules about files of every kind: snapshots, sizes, wording.

use super::Tree;

/// Every snapshot under `testdata/` has its source beside it, or says which test file made its input.
pub(super) fn snapshots_have_sources(tree: &Tree) -> Vec<String> {
    let snapshots = tree.paths().filter(|path| path.starts_with("testdata/"));
    let stems = snapshots.filter_map(|path| Some((path, path.strip_suffix(".snap")?)));
    let has_source = |stem: &str| {
        ["lms", "mlir", "onnx", "txt", "trycmd"]
            .iter()
            .any(|kind| tree.files.contains_key(&format!("{stem}.{kind}")))
    };
    let by_test = |path: &str| {
        let source = tree
            .files
            .get(path)
            .and_then(|file| file.text.as_ref()?.lines().find_map(|l| l.strip_prefix("source: ")));
        source.is_some_and(|source| source.starts_with("tests/support/") && tree.files.contains_key(source))
    };
    stems
        .filter(|(path, stem)| !has_source(stem) && !by_test(path))
        .map(|(path, stem)| {
            format!(
                "{path}:1: snapshot without a source, remove it or restore {stem}.{{lms,mlir,onnx,txt,trycmd}}"
            )
        })
        .collect()
}

/// The largest file outside `testdata/models`, in bytes.
const LARGEST: u64 = 2 << 20;

/// No file is over 2 MiB, except the models.
pub(super) fn files_are_small(tree: &Tree) -> Vec<String> {
    let files =
        tree.files.iter().filter(|(path, file)| file.tracked && !path.starts_with("testdata/models/"));
    files
        .filter(|(_, file)| file.size > LARGEST)
        .map(|(path, file)| {
            let mebibytes = file.size as f64 / f64::from(1 << 20);
            format!("{path}:1: {mebibytes:.1} MiB is more than 2 MiB, shrink it or generate it in the test")
        })
        .collect()
}

// The needles are split so that this file does not contain them.
const FOLDERS: &[&str] =
    &[concat!("/wo", "rk/"), concat!("/tm", "p/"), concat!("/roo", "t/"), concat!("/hom", "e/")];
const HOSTS: &[&str] = &[
    concat!("index.", "crates.io"),
    concat!("static.", "crates.io"),
    concat!("pypi.org", "/simple"),
    concat!("files.python", "hosted.org"),
    concat!("index", "-url"),
    concat!("arti", "factory"),
];

/// No tracked line holds an absolute path of somebody's machine, a package registry's host or a password.
pub(super) fn lines_name_no_machine(tree: &Tree) -> Vec<String> {
    let mut messages = Vec::new();
    for (path, text) in tree.tracked_texts() {
        for (number, line) in (1..).zip(text.lines()) {
            if let Some(folder) = FOLDERS.iter().find(|folder| holds_absolute(line, folder)) {
                messages.push(format!(
                    "{path}:{number}: `{folder}` is a path of one machine, write it relative to the repository"
                ));
            }
            if let Some(host) = HOSTS.iter().find(|host| line.to_ascii_lowercase().contains(*host)) {
                messages.push(format!(
                    "{path}:{number}: `{host}` names a registry, leave the choice to the user's configuration"
                ));
            }
            if line.split("://").skip(1).any(holds_password) {
                messages
                    .push(format!("{path}:{number}: an address with a password, remove it and revoke it"));
            }
        }
    }
    messages
}

/// Whether `folder` begins a path in `line`, rather than stands inside a longer one or an address.
fn holds_absolute(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        !line[..at]
            .ends_with(|c: char| c.is_alphanumeric() || ['.', '-', '_', '~', '}', ')', '*', '>'].contains(&c))
    })
}

/// Whether an address, its scheme cut off, has the form `user:password@host`.
fn holds_password(address: &str) -> bool {
    let host = address.split(|c: char| c == '/' || c == '"' || c.is_whitespace()).next().unwrap_or_default();
    host.split_once('@').is_some_and(|(user, _)| user.contains(':'))
}

const CHORES: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME")];

/// A note of work to be done names its issue.
pub(super) fn chores_have_issues(tree: &Tree) -> Vec<String> {
    let mut messages = Vec::new();
    for (path, text) in tree.tracked_texts() {
        for (number, line) in (1..).zip(text.lines()) {
            for chore in CHORES {
                let mut rests =
                    crate::lex::words(line, chore).into_iter().map(|at| &line[at + chore.len()..]);
                if rests.any(|rest| !names_issue(rest)) {
                    messages.push(format!(
                        "{path}:{number}: `{chore}` without an issue, write `{chore}(#123)` or do it"
                    ));
                }
            }
        }
    }
    messages
}

fn names_issue(text: &str) -> bool {
    text.split('#').skip(1).any(|number| number.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::super::File;
    use super::*;

    #[test]
    fn an_orphan_snapshot_fails() {
        let tree = Tree::of([
            ("testdata/passes/swap/a.lms", ""),
            ("testdata/passes/swap/a.snap", ""),
            ("testdata/errors/b.snap", ""),
        ]);
        assert_eq!(
            snapshots_have_sources(&tree),
            [
                "testdata/errors/b.snap:1: snapshot without a source, remove it or restore testdata/errors/b.{lms,mlir,onnx,txt,trycmd}"
            ]
        );
    }

    #[test]
    fn a_large_file_fails() {
        let mut tree = Tree::of([]);
        for path in ["testdata/models/a.onnx", "papers/a.pdf"] {
            tree.files.insert(path.to_owned(), File { size: 3 << 20, text: None, tracked: true });
        }
        assert_eq!(
            files_are_small(&tree),
            ["papers/a.pdf:1: 3.0 MiB is more than 2 MiB, shrink it or generate it in the test"]
        );
    }

    #[test]
    fn a_path_of_one_machine_fails() {
        for folder in FOLDERS {
            let of = |line: &str| lines_name_no_machine(&Tree::of([("a.md", line)]));
            assert_eq!(of(&format!("\ncd {folder}x")).len(), 1);
            assert_eq!(of(&format!("https://example.org{folder}x")), [""; 0]);
        }
        let line = format!("\ncd \"{}x\"", FOLDERS[0]);
        assert_eq!(
            lines_name_no_machine(&Tree::of([("a.md", &line)])),
            [format!(
                "a.md:2: `{}` is a path of one machine, write it relative to the repository",
                FOLDERS[0]
            )]
        );
    }

    #[test]
    fn a_registry_or_a_password_fails() {
        for host in HOSTS {
            let line = format!("--x=https://{host}/simple");
            let messages = lines_name_no_machine(&Tree::of([("pip.conf", &line)]));
            assert!(messages[0].contains("names a registry"), "{messages:?}");
        }
        let of = |line: &str| lines_name_no_machine(&Tree::of([("a", line)]));
        assert_eq!(
            of(concat!("https://me:secret", "@host/x")),
            ["a:1: an address with a password, remove it and revoke it"]
        );
        assert_eq!(of("ssh://git@host:22/x, https://host/a:b@c"), [""; 0]);
    }

    #[test]
    fn a_chore_without_issue_fails() {
        for chore in CHORES {
            let of = |line: &str| chores_have_issues(&Tree::of([("a.rs", line)]));
            assert_eq!(
                of(&format!("// {chore}: later")),
                [format!("a.rs:1: `{chore}` without an issue, write `{chore}(#123)` or do it")]
            );
            assert_eq!(of(&format!("// {chore}(#7): later\n{chore}_LIST")), [""; 0]);
        }
    }
}

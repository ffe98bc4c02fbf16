//! Where the libraries of CUDA are: the loader's own places, folders that the user names, usual ones, and Python's packages.
//!
//! What loads them later asks the loader by name, and ends the process where it finds nothing. So they are opened here
//! first, by their paths, and stay open: then the loader knows the name.

use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The variable that names folders in which libraries are, as `PATH` does.
const VARIABLE: &str = "LMSC_CUDA_PATH";

/// Folders in which a driver or a toolkit puts libraries.
const USUAL: &[&str] = &[
    "/usr/local/cuda/lib64",
    "/usr/local/cuda/compat",
    "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib/wsl/lib",
    "/usr/lib64-nvidia",
    "/opt/cuda/lib64",
];

/// A library that is not there, and where it was looked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is not there: neither the loader finds it, nor is it in {}", .names.join(" or "), folders(.searched))]
pub struct Missing {
    /// The names it may have.
    pub names: Vec<String>,
    /// The folders that were searched.
    pub searched: Vec<PathBuf>,
}

fn folders(list: &[PathBuf]) -> String {
    let list: Vec<String> = list.iter().map(|path| path.display().to_string()).collect();
    match &list[..] {
        [] => format!("a folder that {VARIABLE} names, or one of the usual ones"),
        list => list.join(", "),
    }
}

/// What the folder holds, sorted.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(list) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut all: Vec<PathBuf> = list.filter_map(|entry| Some(entry.ok()?.path())).collect();
    all.sort_unstable();
    all
}

fn named(path: &Path, begins: &str) -> bool {
    path.file_name().is_some_and(|name| name.as_bytes().starts_with(begins.as_bytes()))
}

/// The folders of libraries among the packages of Pythons that are usual or that the environment names.
fn python() -> Vec<PathBuf> {
    let roots = ["VIRTUAL_ENV", "CONDA_PREFIX"].iter().filter_map(std::env::var_os).map(PathBuf::from);
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local"));
    let mut found = Vec::new();
    for root in roots.chain(home).chain(["/usr", "/usr/local"].map(PathBuf::from)) {
        for version in entries(&root.join("lib")).into_iter().filter(|path| named(path, "python3")) {
            for packages in ["site-packages", "dist-packages"] {
                let vendor = version.join(packages).join("nvidia");
                found.extend(entries(&vendor).into_iter().map(|package| package.join("lib")));
            }
        }
    }
    found
}

/// Every folder that is searched and is there: those that the user names first.
fn searched() -> Vec<PathBuf> {
    let given = std::env::var_os(VARIABLE).unwrap_or_default();
    let given: Vec<PathBuf> =
        std::env::split_paths(&given).filter(|path| !path.as_os_str().is_empty()).collect();
    let all = given.into_iter().chain(USUAL.iter().map(PathBuf::from)).chain(python());
    all.filter(|folder| folder.is_dir()).collect()
}

/// Opens a library for the whole process and for good.
fn open(path: &OsStr) -> bool {
    let Ok(path) = CString::new(path.as_bytes()) else { return false };
    // SAFETY: what a library does when it is opened is its own; this one is the vendor's, or of a folder that the user
    // named. It is never closed.
    !unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) }.is_null()
}

/// Makes the loader know a library by one of these names; the folders it may lie in come after the loader's own places.
///
/// # Errors
/// [`Missing`], with the folders that were searched.
pub(super) fn find(names: &[&str]) -> Result<(), Missing> {
    let searched = searched();
    // What the user names goes before what the loader would find.
    let given = searched.iter().take_while(|folder| !USUAL.iter().any(|usual| **folder == Path::new(usual)));
    let given = given.count();
    let in_folders = |folders: &[PathBuf]| {
        folders.iter().any(|folder| {
            // A compiler looks for what it needs by name while it compiles, so that is opened before.
            let parts: Vec<PathBuf> =
                entries(folder).into_iter().filter(|path| named(path, "libnvrtc-builtins.so")).collect();
            names.iter().any(|name| {
                let path = folder.join(name);
                if !path.exists() {
                    return false;
                }
                if name.starts_with("libnvrtc") {
                    parts.iter().for_each(|path| _ = open(path.as_os_str()));
                }
                // cuDNN looks for its parts beside itself: not beside a link to it.
                open(path.canonicalize().unwrap_or(path).as_os_str())
            })
        })
    };
    let by_loader = || names.iter().any(|name| open(OsStr::new(name)));
    if in_folders(&searched[..given]) || by_loader() || in_folders(&searched[given..]) {
        return Ok(());
    }
    Err(Missing { names: names.iter().map(|name| (*name).to_owned()).collect(), searched })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_named_with_where_it_was_looked_for() {
        let missing = find(&["liblmsc-is-no-library.so.1"]).unwrap_err();
        let message = missing.to_string();
        assert!(message.starts_with("liblmsc-is-no-library.so.1 is not there"), "{message}");
        assert!(
            missing.searched.iter().all(|folder| message.contains(folder.to_str().unwrap())),
            "{message}"
        );
        let none = Missing { searched: Vec::new(), ..missing }.to_string();
        assert!(none.contains("LMSC_CUDA_PATH"), "{none}");
    }
}

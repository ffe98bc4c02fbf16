//! Tells the program which commit it was built from.
//!
//! Only in release builds: a development build is another one with each change, and would be built anew with each commit.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=LMSC_COMMIT");
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let commit = std::env::var("LMSC_COMMIT").ok().or_else(|| if is_release { of_git() } else { None });
    println!("cargo::rustc-env=LMSC_COMMIT={}", commit.unwrap_or_default());
}

/// The commit of the sources; none where they are no checkout.
fn of_git() -> Option<String> {
    let git = |arguments: &[&str]| {
        let output =
            Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    for file in ["HEAD", "index"] {
        println!("cargo::rerun-if-changed={}", git(&["rev-parse", "--git-path", file])?);
    }
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let is_changed =
        git(&["status", "--porcelain", "--untracked-files=no"]).is_none_or(|changes| !changes.is_empty());
    Some(if is_changed { format!("{commit}, changed") } else { commit })
}

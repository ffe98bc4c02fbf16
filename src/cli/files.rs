//! The files of a call: the table of the arguments that name files to read and files to write, for all commands.

use std::path::{Path, PathBuf};

use clap::ArgMatches;
use lmsc_onnx::Model;

use crate::cli::defaults::FILE;
use crate::files::{replaces, same_file};
use crate::job::StateOption;
use crate::run::generation;
use crate::{Code, Error, external};

/// Arguments that name files to read.
const READ: [&str; 14] = [
    "model",
    "optimizer",
    "original",
    "rewritten",
    "file",
    "instance",
    "profile",
    "plan",
    "weights",
    "params",
    "data",
    "resume",
    "feeds",
    "with",
];

/// Arguments that name a target, which may be a file to read.
const TARGETS: [&str; 2] = ["target", "gpu"];

/// Arguments that name files to write.
const WRITTEN: [&str; 13] = [
    "output",
    "report",
    "save_plan",
    "trace_plan",
    "emit_instance",
    "schedule",
    "certificate",
    "save_weights",
    "save",
    "out",
    "trace",
    "case",
    "csv",
];

/// Pairs of arguments that may name one file: it is read whole before it is replaced.
const GOES_ON: [(&str, &str); 2] = [("resume", "save"), ("weights", "save_weights")];

/// A file that the call names.
struct File {
    argument: &'static str,
    path: PathBuf,
}

/// The files of a call.
pub(crate) struct CallFiles {
    read: Vec<File>,
    written: Vec<File>,
    /// Whether the output may replace a file that is read.
    force: bool,
}

impl CallFiles {
    /// The files that the arguments of a call name.
    pub(crate) fn of(matches: &ArgMatches) -> CallFiles {
        let matches = matches.subcommand().map_or(matches, |(_, of_command)| of_command);
        let named = |ids: &[&'static str]| -> Vec<File> {
            let of = |argument: &'static str| {
                let paths = matches.try_get_many::<PathBuf>(argument).ok().flatten().into_iter().flatten();
                paths.map(move |path| File { argument, path: path.clone() })
            };
            ids.iter().copied().flat_map(of).collect()
        };
        let (mut read, mut written) = (named(&READ), named(&WRITTEN));
        let states = matches.try_get_many::<StateOption>("state").ok().flatten().into_iter().flatten();
        read.extend(states.filter_map(|state| match state {
            StateOption::File(path) => Some(File { argument: "state", path: path.clone() }),
            StateOption::None | StateOption::Pair(..) => None,
        }));
        for argument in TARGETS {
            let targets = matches.try_get_many::<String>(argument).ok().flatten().into_iter().flatten();
            read.extend(targets.map(|name| File { argument, path: name.into() }));
        }
        read.push(File { argument: FILE, path: FILE.into() });
        let generations = matches.try_get_one::<u64>("keep").ok().flatten().copied().unwrap_or(1);
        if let Some(save) = written.iter().find(|file| file.argument == "save").map(|file| file.path.clone())
        {
            let older = (1..generations).map(|number| generation(&save, number));
            written.extend(older.map(|path| File { argument: "keep", path }));
        }
        let force = matches.try_get_one::<bool>("force").ok().flatten().is_some_and(|force| *force);
        CallFiles { read, written, force }
    }

    /// Refuses a call that would write a file that it reads, also through links, or one file twice.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind) with both.
    pub(crate) fn check(&self) -> Result<(), Error> {
        for (index, written) in self.written.iter().enumerate() {
            if let Some(other) =
                self.written[..index].iter().find(|other| is_same(&other.path, &written.path))
            {
                let message = format!(
                    "{} and {} would both write {}",
                    option(other.argument),
                    option(written.argument),
                    written.path.display()
                );
                return Err(Error::new(Code::File, message).with_help("name two files"));
            }
            let is_forced = written.argument == "output" && self.force;
            let may = |read: &File| is_forced || GOES_ON.contains(&(read.argument, written.argument));
            // Standard input is not standard output.
            let replaced = |read: &&File| {
                !may(read) && read.path != Path::new("-") && is_same(&read.path, &written.path)
            };
            if let Some(read) = self.read.iter().find(replaced) {
                return Err(replaces(&written.path, &read.path, written.argument == "output"));
            }
            self.holds_no_weights(&written.path)?;
        }
        Ok(())
    }

    /// Refuses to write a file with the weights of a model that is read.
    fn holds_no_weights(&self, written: &Path) -> Result<(), Error> {
        if !written.is_file() {
            return Ok(());
        }
        let is_model =
            |file: &&File| ["model", "optimizer", "original", "rewritten"].contains(&file.argument);
        for file in self.read.iter().filter(is_model).filter(|file| !crate::load::is_text(&file.path)) {
            // A file that is no model is refused where it is read.
            if let Ok(model) = Model::open(&file.path) {
                external::check_not_data(&model, written)?;
            }
        }
        Ok(())
    }
}

/// The option in messages.
fn option(argument: &str) -> String {
    format!("--{}", argument.replace('_', "-"))
}

/// Whether the paths name one file, also one that is not there yet. Pipes and devices may be named twice.
fn is_same(a: &Path, b: &Path) -> bool {
    if a == Path::new("-") || b == Path::new("-") {
        return a == b;
    }
    let is_special = |path: &Path| path.metadata().is_ok_and(|it| !it.is_file());
    if is_special(a) || is_special(b) {
        return false;
    }
    let place = |path: &Path| {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Some((folder.canonicalize().ok()?, path.file_name()?.to_owned()))
    };
    same_file(a, b) || matches!((place(a), place(b)), (Some(a), Some(b)) if a == b)
}

#[cfg(test)]
mod tests {
    use std::any::TypeId;

    use clap::{Arg, Command, CommandFactory};

    use super::*;
    use crate::cli::args::Cli;

    #[test]
    fn every_argument_that_is_a_path_is_in_the_table() {
        let main = Cli::command();
        for command in main.get_subcommands().chain([&main]) {
            for argument in command.get_arguments() {
                let is_path = argument.get_value_parser().type_id() == TypeId::of::<PathBuf>();
                let name = argument.get_id().as_str();
                // The folder of `lmsc man` is none of a call with other files.
                let is_known = READ.contains(&name) || WRITTEN.contains(&name) || name == "folder";
                assert!(!is_path || is_known, "{} {name}", command.get_name());
            }
        }
    }

    /// The words that give an argument a path; a positional argument is its path alone.
    fn words(argument: &Arg, path: &str) -> Vec<String> {
        let path = if argument.get_id() == "state" { format!("{path}.json") } else { path.to_owned() };
        let option = argument.get_long().map(|long| format!("--{long}"));
        option.into_iter().chain([path]).collect()
    }

    /// Whether a call of `command`, in which both arguments have these paths, is refused; none where clap allows no such call.
    fn is_refused(command: &Command, pair: [&Arg; 2], paths: [&str; 2]) -> Option<bool> {
        let mut given: Vec<(&Arg, Vec<String>)> = Vec::new();
        for argument in command.get_arguments() {
            let path =
                pair.iter().position(|one| one.get_id() == argument.get_id()).map(|index| paths[index]);
            let required = argument.is_required_set().then_some("other");
            if let Some(path) = path.or(required) {
                given.push((argument, words(argument, path)));
            }
        }
        given.sort_by_key(|(argument, _)| argument.get_index());
        let name = (command.get_name() != "lmsc").then(|| command.get_name().to_owned());
        let call = ["lmsc".to_owned()].into_iter().chain(name).chain(given.into_iter().flat_map(|it| it.1));
        let matches = Cli::command().try_get_matches_from(call).ok()?;
        Some(CallFiles::of(&matches).check().is_err())
    }

    #[test]
    fn each_file_that_is_written_is_refused_beside_each_other_also_through_links() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let (file, link, twin) = (path("file"), path("link"), path("twin"));
        for ending in ["", ".json"] {
            std::fs::write(format!("{file}{ending}"), "x").unwrap();
            std::os::unix::fs::symlink(format!("{file}{ending}"), format!("{link}{ending}")).unwrap();
            std::fs::hard_link(format!("{file}{ending}"), format!("{twin}{ending}")).unwrap();
        }
        let (mut main, mut pairs) = (Cli::command(), 0);
        main.build();
        for command in main.get_subcommands().chain([&main]) {
            let is = |argument: &&Arg, of: &[&str]| of.contains(&argument.get_id().as_str());
            let written = command.get_arguments().filter(|argument| is(argument, &WRITTEN));
            for written in written {
                let files = [&READ[..], &TARGETS, &["state"], &WRITTEN].concat();
                for other in command.get_arguments().filter(|argument| is(argument, &files)) {
                    let (one, two) = (other.get_id().as_str(), written.get_id().as_str());
                    if one == two || GOES_ON.contains(&(one, two)) {
                        continue;
                    }
                    for paths in [[&file, &file], [&file, &link], [&link, &file], [&file, &twin]] {
                        // A path that ends in `.json` is the table of the variables' values.
                        let [read, mut to] = paths.map(|path| path.to_owned());
                        if one == "state" {
                            to += ".json";
                        }
                        let refused = is_refused(command, [other, written], [&read, &to]);
                        assert_ne!(refused, Some(false), "{} {one} {two}: {read}, {to}", command.get_name());
                        pairs += usize::from(refused == Some(true));
                    }
                }
            }
        }
        assert!(pairs >= 400, "{pairs} calls");
    }
}
